//! Calls that a model printed as text, because its server did not know its way of writing them.
//!
//! Pure, and strict: a reply's text is calls only as a whole. It must hold nothing else, each name must be
//! that of a tool on offer, and the arguments must fit that tool's schema. Anything less is the answer, since
//! JSON that somebody asked for must never be run.

use serde_json::{Map, Value};

use super::finish_call;
use crate::conversation::Call;
use crate::tools::{Spec, schema};

/// What stands around calls, and where it ends; an empty end is the end of the text. Hermes and Qwen write
/// `<tool_call>`, Qwen2.5-Coder a fence or `<tools>`, Mistral `[TOOL_CALLS]`, Llama 3 `<|python_tag|>`.
const WRAPPERS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tools>", "</tools>"),
    ("```json", "```"),
    ("```tool_call", "```"),
    ("```", "```"),
    ("[TOOL_CALLS]", ""),
    ("<|python_tag|>", ""),
];
const FENCE: &str = "```";
/// What a fence of calls may say that it holds.
const LANGUAGES: &[&str] = &["", "json", "tool_call"];
/// How deep wrappers may stand in each other: tags in a fence, and no further.
const MOST_WRAPPERS: u8 = 2;

/// How Llama 3 and Qwen3-Coder begin a call outside JSON: `<function=Read>`.
const FUNCTION: &str = "<function=";
const PARAMETER: &str = "<parameter=";

/// The calls that this text is, in order; none if it is anything else.
pub fn calls(text: &str, offered: &[&Spec]) -> Vec<Call> {
    let mut rest = text;
    let written = items(&mut rest, "", MOST_WRAPPERS);
    let calls = written.and_then(|written| written.iter().map(|one| call(one, offered)).collect());
    calls.unwrap_or_default()
}

/// Whether a text of which this is the beginning may turn out to be calls.
pub fn may_become_calls(beginning: &str) -> bool {
    let start = beginning.trim_start();
    match start.strip_prefix(FENCE) {
        Some(fenced) => match fenced.find(|next: char| !next.is_alphanumeric() && next != '_') {
            Some(end) => {
                LANGUAGES.contains(&&fenced[..end]) && may_be_unfenced_calls(fenced[end..].trim_start())
            }
            None => LANGUAGES.iter().any(|language| language.starts_with(fenced)),
        },
        None => FENCE.starts_with(start) || may_be_unfenced_calls(start),
    }
}

fn may_be_unfenced_calls(start: &str) -> bool {
    let wrappers = WRAPPERS.iter().map(|(open, _)| *open).filter(|open| !open.starts_with(FENCE));
    let mut openings = wrappers.chain([FUNCTION, "{", "["]);
    openings.any(|open| open.starts_with(start) || start.starts_with(open))
}

/// A call as it was written, before anything of it is believed.
struct Written {
    name: String,
    arguments: Arguments,
}

enum Arguments {
    /// An object, or an object's text.
    Json(Value),
    /// Names and texts, as Qwen3-Coder writes them: what type each has, only the schema tells.
    Texts(Vec<(String, String)>),
}

/// Takes calls off the front up to and with `close`, of which there must be one at least.
fn items(rest: &mut &str, close: &str, wrappers: u8) -> Option<Vec<Written>> {
    let mut found = Vec::new();
    loop {
        *rest = rest.trim_start();
        match rest.strip_prefix(close) {
            Some(after) if !close.is_empty() || rest.is_empty() => {
                *rest = after;
                return if found.is_empty() { None } else { Some(found) };
            }
            _ => found.extend(item(rest, wrappers)?),
        }
    }
}

fn item(rest: &mut &str, wrappers: u8) -> Option<Vec<Written>> {
    for (open, close) in WRAPPERS {
        if let Some(inside) = rest.strip_prefix(open) {
            *rest = inside;
            return items(rest, close, wrappers.checked_sub(1)?);
        }
    }
    if let Some(after) = rest.strip_prefix(FUNCTION) {
        *rest = after;
        return function(rest).map(|written| vec![written]);
    }
    // The template of Qwen2.5-Coder shows a call in double braces, and the model does likewise.
    let single = rest.strip_prefix('{').filter(|inside| inside.starts_with('{'));
    if let Some(inside) = single {
        *rest = inside;
        let written = object(json(rest)?)?;
        *rest = rest.trim_start().strip_prefix('}')?;
        return Some(vec![written]);
    }
    match json(rest)? {
        Value::Array(values) => values.into_iter().map(object).collect(),
        value => object(value).map(|written| vec![written]),
    }
}

/// Takes one JSON value off the front. Where it ends, only a parser knows: its strings may hold anything.
fn json(rest: &mut &str) -> Option<Value> {
    let mut values = serde_json::Deserializer::from_str(rest).into_iter();
    let value = values.next()?.ok()?;
    *rest = &rest[values.byte_offset()..];
    Some(value)
}

/// A call that is an object: `name` and `arguments` (`parameters` with Llama), perhaps as OpenAI's API has
/// them, inside `function`. A further member says that it is something else.
fn object(value: Value) -> Option<Written> {
    let Value::Object(mut object) = value else { return None };
    object.remove("id");
    if object.remove("type").is_some_and(|kind| kind != "function") {
        return None;
    }
    if let (1, Some(Value::Object(function))) = (object.len(), object.get_mut("function")) {
        object = std::mem::take(function);
    }
    let arguments = object.remove("arguments").or_else(|| object.remove("parameters"))?;
    match (object.remove("name"), object.is_empty()) {
        (Some(Value::String(name)), true) => Some(Written { name, arguments: Arguments::Json(arguments) }),
        _ => None,
    }
}

/// A call after its `<function=`: the arguments are an object, or parameters with a tag each.
fn function(rest: &mut &str) -> Option<Written> {
    let (name, after) = rest.split_once('>')?;
    *rest = after.trim_start();
    let arguments = match rest.starts_with('{') {
        true => Arguments::Json(json(rest)?),
        false => Arguments::Texts(parameters(rest)?),
    };
    *rest = rest.trim_start().strip_prefix("</function>")?;
    Some(Written { name: name.to_owned(), arguments })
}

fn parameters(rest: &mut &str) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    while let Some(after) = rest.strip_prefix(PARAMETER) {
        let (name, after) = after.split_once('>')?;
        let (text, after) = after.split_once("</parameter>")?;
        // The tags stand on lines of their own, which are no part of the text.
        let text = text.strip_prefix('\n').unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        found.push((name.to_owned(), text.to_owned()));
        *rest = after.trim_start();
    }
    Some(found)
}

/// The call that was written, if a tool on offer can be called so.
fn call(written: &Written, offered: &[&Spec]) -> Option<Call> {
    let spec = offered.iter().find(|spec| spec.name == written.name)?;
    let arguments = match &written.arguments {
        Arguments::Json(value @ (Value::Object(_) | Value::String(_))) => value.to_string(),
        Arguments::Json(_) => return None,
        Arguments::Texts(texts) => Value::Object(typed(texts, spec)?).to_string(),
    };
    let call = finish_call(String::new(), spec.name, &arguments, None);
    (call.refusal.is_none() && fit(spec, &call.arguments)).then_some(call)
}

/// Whether arguments fit as they are. Elsewhere slips are mended; here each is a reason to take the text for an
/// answer. A `null` asks for nothing, and some models fill in all that is optional with it.
fn fit(spec: &Spec, arguments: &str) -> bool {
    let (Ok(schema), Ok(Value::Object(mut arguments))) =
        (serde_json::from_str(spec.schema), serde_json::from_str(arguments))
    else {
        return false;
    };
    arguments.retain(|_, value| !value.is_null());
    schema::fit(&schema, &arguments).is_ok_and(|fitted| fitted == arguments)
}

fn typed(texts: &[(String, String)], spec: &Spec) -> Option<Map<String, Value>> {
    let schema: Value = serde_json::from_str(spec.schema).ok()?;
    let mut arguments = Map::new();
    for (name, text) in texts {
        let value = match schema["properties"][name]["type"] == "string" {
            true => Value::String(text.clone()),
            false => serde_json::from_str(text).ok()?,
        };
        if arguments.insert(name.clone(), value).is_some() {
            return None;
        }
    }
    Some(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::all;

    fn offered() -> Vec<&'static Spec> {
        all()
            .iter()
            .filter(|spec| ["Read", "Write", "Bash", "get_current_datetime"].contains(&spec.name))
            .collect()
    }

    /// Names and arguments of the calls that a text is.
    fn read(text: &str) -> Vec<(String, String)> {
        let calls = calls(text, &offered()).into_iter();
        let pairs = calls.map(|call| {
            assert_eq!((call.id.as_str(), &call.refusal, &call.extra), ("", &None, &None), "{text}");
            (call.name, call.arguments)
        });
        pairs.collect()
    }

    fn pair(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    /// A call of Read, and all the ways in which it alone is written.
    const ARGUMENTS: &str = r#"{"file_path":"a.py"}"#;
    const FORMS: &[&str] = &[
        r#"{"name":"Read","arguments":{"file_path":"a.py"}}"#,
        "\n {\n  \"name\": \"Read\",\n  \"arguments\": {\n    \"file_path\": \"a.py\"\n  }\n}\n\n",
        r#"{"arguments":{"file_path":"a.py"},"name":"Read"}"#,
        r#"{"name":"Read","parameters":{"file_path":"a.py"}}"#,
        r#"{"type":"function","name":"Read","parameters":{"file_path":"a.py"}}"#,
        r#"{"name":"Read","arguments":"{\"file_path\":\"a.py\"}"}"#,
        r#"{"function":{"name":"Read","arguments":{"file_path":"a.py"}}}"#,
        r#"{"id":"call_9","type":"function","function":{"name":"Read","arguments":"{\"file_path\":\"a.py\"}"}}"#,
        r#"[{"name":"Read","arguments":{"file_path":"a.py"}}]"#,
        r#"{{"name":"Read","arguments":{"file_path":"a.py"}}}"#,
        "```json\n{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a.py\"}}\n```",
        "```\n{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a.py\"}}\n```\n",
        "```tool_call\n{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a.py\"}}\n```",
        "```json\r\n[{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a.py\"}}]\r\n```",
        r#"<tool_call>{"name":"Read","arguments":{"file_path":"a.py"}}</tool_call>"#,
        "<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"file_path\": \"a.py\"}}\n</tool_call>",
        "```\n<tool_call>\n{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a.py\"}}\n</tool_call>\n```",
        "<tools>\n{\"name\": \"Read\", \"arguments\": {\"file_path\": \"a.py\"}}\n</tools>",
        r#"[TOOL_CALLS] [{"name":"Read","arguments":{"file_path":"a.py"}}]"#,
        r#"[TOOL_CALLS][{"name":"Read","arguments":{"file_path":"a.py"},"id":"VvvODy9mT"}]"#,
        r#"<|python_tag|>{"name":"Read","parameters":{"file_path":"a.py"}}"#,
        r#"<function=Read>{"file_path":"a.py"}</function>"#,
        "<function=Read>\n<parameter=file_path>\na.py\n</parameter>\n</function>",
        "<tool_call>\n<function=Read>\n<parameter=file_path>\na.py\n</parameter>\n</function>\n</tool_call>",
    ];

    #[test]
    fn a_call_is_read_in_each_way_in_which_models_write_it() {
        for form in FORMS {
            assert_eq!(read(form), [pair("Read", ARGUMENTS)], "{form}");
        }
    }

    /// Text before, after and between, and each text cut short, are the answer.
    #[test]
    fn a_call_with_anything_else_beside_it_is_text() {
        for form in FORMS {
            for text in [
                format!("I will read it.\n{form}"),
                format!("{form}\nThat is the call."),
                format!("{form}."),
                format!("{form}\n{form}\nand so on"),
                format!("> {form}"),
                format!("{form}\n{{}}"),
                format!("{form}\n{{\"name\":\"Format\",\"arguments\":{{}}}}"),
            ] {
                assert_eq!(read(&text), [], "{text}");
            }
            for end in form.char_indices().map(|(at, _)| at) {
                let cut = &form[..end];
                if cut.trim_end().len() < form.trim_end().len() {
                    assert_eq!(read(cut), [], "{cut}");
                }
            }
        }
    }

    #[test]
    fn several_calls_are_read_in_order() {
        let one = r#"{"name":"Read","arguments":{"file_path":"a"}}"#;
        let two = r#"{"name":"Bash","arguments":{"command":"ls"}}"#;
        let both = [pair("Read", r#"{"file_path":"a"}"#), pair("Bash", r#"{"command":"ls"}"#)];
        for text in [
            format!("{one}\n{two}"),
            format!("[{one},{two}]"),
            format!("```json\n{one}\n{two}\n```"),
            format!("```json\n{one}\n```\n\n```json\n{two}\n```"),
            format!("<tool_call>\n{one}\n</tool_call>\n<tool_call>\n{two}\n</tool_call>"),
            format!("[TOOL_CALLS] [{one}, {two}]"),
            format!("<tools>[{one}, {two}]</tools>"),
            "<function=Read><parameter=file_path>a</parameter></function><function=Bash>{\"command\":\"ls\"}</function>"
                .to_owned(),
        ] {
            assert_eq!(read(&text), both, "{text}");
        }
    }

    #[test]
    fn what_no_tool_on_offer_could_be_called_with_is_text() {
        for text in [
            "",
            " \n",
            "No.",
            "null",
            "7",
            "{}",
            "[]",
            "[[]]",
            "```json\n```",
            "<tool_call></tool_call>",
            "[TOOL_CALLS]",
            // Another tool, or none.
            r#"{"name":"Edit","arguments":{"file_path":"a","old_string":"a","new_string":"b"}}"#,
            r#"{"name":"read","arguments":{"file_path":"a"}}"#,
            r#"{"name":"Alice","arguments":{"age":7}}"#,
            r#"{"name":7,"arguments":{"file_path":"a"}}"#,
            r#"{"arguments":{"file_path":"a"}}"#,
            "<function=Reader>{\"file_path\":\"a\"}</function>",
            // Arguments that do not fit.
            r#"{"name":"Read"}"#,
            r#"{"name":"Read","arguments":null}"#,
            r#"{"name":"Read","arguments":{}}"#,
            r#"{"name":"Read","arguments":[]}"#,
            r#"{"name":"Read","arguments":"a.py"}"#,
            r#"{"name":"Read","arguments":{"path":"a"}}"#,
            r#"{"name":"Read","arguments":{"file_path":7}}"#,
            r#"{"name":"Read","arguments":{"file_path":null}}"#,
            r#"{"name":"Read","arguments":{"file_path":"a","colour":"red"}}"#,
            r#"{"name":"Read","arguments":{"file_path":"a","limit":"ten"}}"#,
            r#"{"name":"Bash","arguments":{"command":"ls","timeout":0}}"#,
            "<function=Read><parameter=limit>3</parameter></function>",
            "<function=Read><parameter=file_path>a</parameter><parameter=limit>ten</parameter></function>",
            "<function=Read><parameter=file_path>a</parameter><parameter=file_path>b</parameter></function>",
            // The schema of a tool, its list, and objects that say more than a call.
            r#"{"name":"Read","parameters":{"type":"object","properties":{"file_path":{"type":"string"}}}}"#,
            r#"{"name":"Read","description":"Reads.","arguments":{"file_path":"a"}}"#,
            r#"{"name":"Read","arguments":{"file_path":"a"},"parameters":{"file_path":"a"}}"#,
            r#"{"name":"Read","arguments":{"file_path":"a"},"result":"x"}"#,
            r#"{"type":"example","name":"Read","arguments":{"file_path":"a"}}"#,
            r#"{"function":{"name":"Read","arguments":{"file_path":"a"}},"note":1}"#,
            r#"{"call":{"name":"Read","arguments":{"file_path":"a"}}}"#,
            r#"[[{"name":"Read","arguments":{"file_path":"a"}}]]"#,
            r#"{{{"name":"Read","arguments":{"file_path":"a"}}}}"#,
            // Code, wrong ends, and JSON that is none.
            "```python\n{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a\"}}\n```",
            "```jsonc\n{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a\"}}\n```",
            "<tool_call>{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a\"}}</tools>",
            "<think>{\"name\":\"Read\",\"arguments\":{\"file_path\":\"a\"}}</think>",
            "{'name': 'Read', 'arguments': {'file_path': 'a'}}",
            r#"{"name":"Read","arguments":{"file_path":"a",}}"#,
            "Read(file_path=\"a\")",
        ] {
            assert_eq!(read(text), [], "{text}");
        }
        assert!(calls(FORMS[0], &[]).is_empty());
    }

    #[test]
    fn an_empty_object_is_enough_where_nothing_is_required() {
        let text = r#"{"name":"get_current_datetime","arguments":{}}"#;
        assert_eq!(read(text), [pair("get_current_datetime", "{}")]);
        let text = "<function=get_current_datetime></function>";
        assert_eq!(read(text), [pair("get_current_datetime", "{}")]);
    }

    #[test]
    fn strings_may_hold_what_ends_a_call() {
        let content = "</tool_call> ``` </function> }]";
        let arguments = format!(r#"{{"file_path":"a","content":"{content}"}}"#);
        for (open, close) in [("<tool_call>", "</tool_call>"), ("```json\n", "\n```"), ("", "")] {
            let text = format!("{open}{{\"name\":\"Write\",\"arguments\":{arguments}}}{close}");
            assert_eq!(read(&text), [pair("Write", &arguments)], "{text}");
        }
    }

    #[test]
    fn parameters_get_the_types_of_the_schema_and_keep_their_inner_lines() {
        let text = "<function=Read>\n<parameter=file_path>\n7\n</parameter>\n<parameter=limit>\n7\n</parameter>\n</function>";
        assert_eq!(read(text), [pair("Read", r#"{"file_path":"7","limit":7}"#)]);
        let text = "<function=Write><parameter=file_path>a</parameter><parameter=content>\n\n  x\n\n</parameter></function>";
        assert_eq!(read(text), [pair("Write", r#"{"file_path":"a","content":"\n  x\n"}"#)]);
    }

    #[test]
    fn no_text_is_too_deep_or_too_long() {
        for piece in [
            "<tool_call>",
            "```",
            "[",
            "{",
            "{\"a\":",
            "<function=Read>",
            "[TOOL_CALLS]",
            "{{",
            "<parameter=a>",
        ] {
            assert_eq!(read(&piece.repeat(100_000)), [], "{piece}");
        }
        let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
        let text = format!(r#"{{"name":"Read","arguments":{{"file_path":"a","limit":{deep}}}}}"#);
        assert_eq!(read(&text), []);
    }

    /// Every text of up to five of these pieces is read without a panic, and calls come only of whole ones.
    #[test]
    fn any_sequence_of_pieces_is_read() {
        let call = r#"{"name":"Read","arguments":{"file_path":"é"}}"#;
        let pieces = ["<tool_call>", "</tool_call>", "```", "json", "\n", "[", "]", "{", "}", ",", "é", call];
        let mut texts = vec![String::new()];
        for _ in 0..5 {
            let longer =
                texts.iter().flat_map(|text| pieces.iter().map(move |piece| format!("{text}{piece}")));
            texts = longer.collect();
            for text in &texts {
                let found = read(text);
                assert!(found.is_empty() || text.contains(call), "{text}");
                assert!(found.iter().all(|found| *found == pair("Read", r#"{"file_path":"é"}"#)), "{text}");
                assert!(found.is_empty() || may_become_calls(text), "{text}");
            }
        }
    }

    #[test]
    fn what_may_become_a_call_is_told_from_its_beginning() {
        for form in FORMS {
            for end in form.char_indices().map(|(at, _)| at) {
                assert!(may_become_calls(&form[..end]), "{}", &form[..end]);
            }
        }
        for text in [
            "N",
            "The",
            "``x",
            "```p",
            "```jsonc",
            "```python\n{",
            "```js\n",
            "```\nx",
            "```json\n1",
            "<b>",
            "<|x",
            "1",
        ] {
            assert!(!may_become_calls(text), "{text}");
        }
    }

    #[test]
    fn arguments_fit_as_their_schema_says() {
        let spec = Spec {
            name: "Paint",
            description: "Paints.",
            arguments: &["what", "coats", "part", "is_wet", "colour", "walls", "room"],
            schema: r#"{"type":"object","properties":{"what":{"type":"string"},"coats":{"type":"integer","minimum":1,"maximum":9},"part":{"type":"number"},"is_wet":{"type":"boolean"},"colour":{"type":"string","enum":["red","blue"]},"walls":{"type":"array","items":{"type":"string"}},"room":{"type":"object","properties":{"door":{"type":"string"}},"required":["door"]}},"required":["what"]}"#,
        };
        let fit = |text: &str| fit(&spec, text);
        for text in [
            r#"{"what":"a"}"#,
            r#"{"what":"a","coats":null}"#,
            r#"{"what":"a","coats":9,"part":0.5,"is_wet":true,"colour":"red","walls":["a"],"room":{"door":"x"}}"#,
            r#"{"what":"a","coats":2,"walls":[]}"#,
        ] {
            assert!(fit(text), "{text}");
        }
        for text in [
            "{}",
            r#"{"what":null}"#,
            r#"{"What":"a"}"#,
            r#"{"what":"a","coats":"2"}"#,
            r#"{"what":"a","coats":0}"#,
            r#"{"what":"a","coats":10}"#,
            r#"{"what":"a","coats":1.5}"#,
            r#"{"what":"a","part":"1"}"#,
            r#"{"what":"a","is_wet":"true"}"#,
            r#"{"what":"a","colour":"green"}"#,
            r#"{"what":"a","walls":"a"}"#,
            r#"{"what":"a","walls":[1]}"#,
            r#"{"what":"a","room":{}}"#,
            r#"{"what":"a","room":{"door":"x","window":"y"}}"#,
            r#"{"what":"a","smell":false}"#,
            r#"{"what":"a","is-wet":true}"#,
            r#"{"what":"a","colour":"RED"}"#,
            r#"{"what":["a"]}"#,
            r#"["a"]"#,
        ] {
            assert!(!fit(text), "{text}");
        }
    }
}
