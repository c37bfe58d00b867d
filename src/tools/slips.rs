//! Slips in the shape of a call's arguments that models are known for, mended before anything looks at them:
//! what is checked and shown is then what the tool does.
//!
//! Only what has one meaning is mended. Anything else is left for the tool to refuse with its schema.

use serde_json::Value;

use super::arguments::alike;
use super::window::{self, is_plain};
use super::{Arguments, Spec};

/// Names under which all arguments come together, as in `{"input": {"command": "ls"}}`.
const WRAPPERS: &[&str] =
    &["input", "toolinput", "arguments", "args", "parameters", "params", "kwargs", "properties"];
/// Names that may stand beside, with the tool's name or the kind of the block.
const LABELS: &[&str] = &["name", "tool", "toolname", "function", "type"];

/// Far more arguments than any tool has. Where there are more, whose names are each compared with all others, nothing is
/// mended: the tool refuses them by the first that it does not have.
const MOST_ARGUMENTS: usize = 100;

/// Other names of arguments that can mean only one thing for the tool, each with the tool's own.
pub fn synonyms(tool: &str) -> &'static [(&'static str, &'static str)] {
    match tool {
        "Read" => &[
            ("path", "file_path"),
            ("file", "file_path"),
            ("filename", "file_path"),
            ("absolute_path", "file_path"),
            ("target_file", "file_path"),
            ("start_line", "offset"),
            ("max_lines", "limit"),
            ("num_lines", "limit"),
        ],
        "Write" => &[
            ("path", "file_path"),
            ("file", "file_path"),
            ("filename", "file_path"),
            ("absolute_path", "file_path"),
            ("target_file", "file_path"),
            ("contents", "content"),
            ("text", "content"),
            ("file_text", "content"),
            ("file_content", "content"),
        ],
        "Edit" => &[
            ("path", "file_path"),
            ("file", "file_path"),
            ("filename", "file_path"),
            ("absolute_path", "file_path"),
            ("target_file", "file_path"),
            ("old_str", "old_string"),
            ("old_text", "old_string"),
            ("old", "old_string"),
            ("search", "old_string"),
            ("new_str", "new_string"),
            ("new_text", "new_string"),
            ("new", "new_string"),
            ("replace", "new_string"),
        ],
        "Glob" => &[
            ("glob", "pattern"),
            ("glob_pattern", "pattern"),
            ("directory", "path"),
            ("dir", "path"),
            ("folder", "path"),
            ("cwd", "path"),
        ],
        "Grep" => &[
            ("regex", "pattern"),
            ("query", "pattern"),
            ("regexp", "pattern"),
            ("directory", "path"),
            ("dir", "path"),
            ("folder", "path"),
            ("file_path", "path"),
            ("include", "glob"),
            ("globs", "glob"),
            ("file_type", "type"),
            ("mode", "output_mode"),
            ("case_insensitive", "-i"),
            ("ignore_case", "-i"),
            ("line_number", "-n"),
            ("line_numbers", "-n"),
            ("after", "-A"),
            ("after_context", "-A"),
            ("before", "-B"),
            ("before_context", "-B"),
            ("context", "-C"),
            ("context_lines", "-C"),
            ("limit", "head_limit"),
            ("max_results", "head_limit"),
        ],
        "Bash" => &[
            ("cmd", "command"),
            ("script", "command"),
            ("shell_command", "command"),
            ("command_line", "command"),
            ("timeout_ms", "timeout"),
            ("background", "run_in_background"),
        ],
        "BashOutput" => &[("shell_id", "bash_id"), ("id", "bash_id"), ("task_id", "bash_id")],
        "KillShell" => &[("bash_id", "shell_id"), ("id", "shell_id"), ("task_id", "shell_id")],
        "get_current_datetime" => &[("tz", "timezone"), ("zone", "timezone"), ("time_zone", "timezone")],
        "add_duration_to_datetime" => {
            &[("date", "datetime"), ("datetime_str", "datetime"), ("amount", "duration"), ("units", "unit")]
        }
        "Skill" => &[
            ("skill", "name"),
            ("skill_name", "name"),
            ("command", "name"),
            ("args", "arguments"),
            ("argument", "arguments"),
        ],
        "get_exchange_rate" => &[("currency_code", "currency"), ("code", "currency")],
        _ => &[],
    }
}

/// Names that can mean only the opposite of an argument of the tool's.
fn opposites(tool: &str) -> &'static [(&'static str, &'static str)] {
    match tool {
        "Grep" => &[("case_sensitive", "-i")],
        _ => &[],
    }
}

/// The arguments of a built-in tool, mended. None of these tools takes a list.
pub fn mended(spec: &Spec, arguments: Arguments) -> Arguments {
    let names = spec.arguments;
    if arguments.iter().all(|(name, value)| names.contains(&name.as_str()) && !value.is_array()) {
        return arguments;
    }
    let arguments = unwrapped(spec, arguments);
    if arguments.len() > MOST_ARGUMENTS {
        return arguments;
    }
    let mut mended = Arguments::new();
    let arguments = turned(spec, names, arguments);
    for (typed, value) in &arguments {
        let meant = meant(spec.name, names, typed).filter(|name| {
            // Of two that mean the same neither is certain.
            arguments.keys().filter(|other| self::meant(spec.name, names, other) == Some(name)).count() == 1
        });
        let name = meant.unwrap_or(typed);
        let value = match value {
            Value::Array(elements) if spec.name == "Bash" && name == "command" => {
                command(elements).map_or_else(|| value.clone(), Value::String)
            }
            Value::Array(elements) if meant.is_some() => match &elements[..] {
                [only] if !only.is_array() && !only.is_object() => only.clone(),
                _ => value.clone(),
            },
            other => other.clone(),
        };
        mended.insert(name.to_owned(), value);
    }
    mended
}

/// The arguments with what is given by its opposite under the tool's own name, unless it is given by both.
fn turned(spec: &Spec, names: &[&str], arguments: Arguments) -> Arguments {
    let own = |typed: &str| {
        let pair = opposites(spec.name).iter().find(|(other, _)| alike(other, typed))?;
        let is_given = arguments.keys().any(|other| meant(spec.name, names, other) == Some(pair.1));
        (!is_given).then_some(pair.1)
    };
    let turn = |(typed, value): (&String, &Value)| match (own(typed), yes_or_no(value)) {
        (Some(own), Some(flag)) => (own.to_owned(), Value::Bool(!flag)),
        _ => (typed.clone(), value.clone()),
    };
    arguments.iter().map(turn).collect()
}

/// The boolean that a value is or spells, alone in a list too.
fn yes_or_no(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        Value::Array(elements) => match &elements[..] {
            [only] if !only.is_array() => yes_or_no(only),
            _ => None,
        },
        _ => None,
    }
}

/// The tool's own name for an argument.
fn meant<'a>(tool: &str, names: &[&'a str], typed: &str) -> Option<&'a str> {
    let synonym = || synonyms(tool).iter().find(|(other, _)| alike(other, typed)).map(|(_, name)| *name);
    let own = names.iter().find(|name| alike(name, typed));
    own.or_else(|| names.iter().find(|name| Some(**name) == synonym())).copied()
}

/// The arguments without what was put around them: `{"input": {…}}`, the same with the object as a text, and
/// a lone text where the tool needs no more than one.
pub fn unwrapped(spec: &Spec, arguments: Arguments) -> Arguments {
    let is_own = |typed: &str| spec.arguments.iter().any(|name| alike(name, typed));
    let (labels, rest): (Vec<_>, Vec<_>) =
        arguments.iter().partition(|(typed, value)| is_label(spec, typed, value));
    let inner = match &rest[..] {
        [(typed, value)] if WRAPPERS.iter().any(|name| alike(name, typed)) && !is_own(typed) => *value,
        _ => return arguments,
    };
    // A label can be the tool's own argument, as `type` is Grep's. If it were, the needed ones would be there.
    let needs = required(spec);
    let is_given = |name: &String| labels.iter().any(|(typed, _)| alike(typed, name));
    if labels.iter().any(|(typed, _)| is_own(typed)) && needs.iter().all(is_given) {
        return arguments;
    }
    match inner {
        Value::Object(inner) => inner.clone(),
        Value::String(text) => match (crate::provider::parse(text), only_text(spec)) {
            (Ok(Value::Object(inner)), _) => inner,
            (_, Some(name)) => Arguments::from_iter([(name, inner.clone())]),
            _ => arguments,
        },
        _ => arguments,
    }
}

fn is_label(spec: &Spec, typed: &str, value: &Value) -> bool {
    match LABELS.iter().find(|label| alike(label, typed)) {
        Some(&"type") => matches!(value.as_str(), Some("function" | "tool_use" | "tool_call" | "object")),
        Some(_) => value.as_str() == Some(spec.name),
        None => false,
    }
}

/// The arguments that a tool needs.
fn required(spec: &Spec) -> Vec<String> {
    let schema: Value = serde_json::from_str(spec.schema).unwrap_or_default();
    let names = schema["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The one argument that a tool needs, if that is a text.
fn only_text(spec: &Spec) -> Option<String> {
    let schema: Value = serde_json::from_str(spec.schema).unwrap_or_default();
    match &required(spec)[..] {
        [name] if schema["properties"][name]["type"] == "string" => Some(name.clone()),
        _ => None,
    }
}

/// The command line that a list of words means: `["bash", "-lc", "…"]`, or a program with its arguments.
/// None where the list may as well be commands one after the other, or counts on the shell.
fn command(words: &[Value]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(Value::as_str).collect::<Option<_>>()?;
    match &words[..] {
        [] => None,
        [line] => Some((*line).to_owned()),
        [shell, "-c" | "-lc", line] if matches!(shell.rsplit('/').next(), Some("bash" | "sh")) => {
            Some((*line).to_owned())
        }
        [program, ..] if program.chars().all(is_plain) => {
            words.iter().map(|word| harmless(word)).collect::<Option<Vec<_>>>().map(|words| words.join(" "))
        }
        _ => None,
    }
}

/// A word that the shell takes as it is, in quotes where it needs them. None for one that would mean
/// something to a shell that is not asked.
fn harmless(word: &str) -> Option<String> {
    let is_harmless = |letter: char| is_plain(letter) || matches!(letter, ' ' | '(' | ')' | '"' | '!');
    word.chars().all(is_harmless).then(|| window::quoted(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;
    use serde_json::json;

    /// Each was once compared with all others, and each comparison wrote both names anew.
    #[test]
    fn of_very_many_arguments_none_is_mended() {
        let variant = |bits: u32| -> String {
            (0..16)
                .map(|bit| if bits & (1 << bit) == 0 { '_' } else { '-' })
                .chain("command".chars())
                .collect()
        };
        let spec = tools::all().iter().find(|spec| spec.name == "Bash").unwrap();
        let many: Arguments = (0..1 << 16).map(|bits| (variant(bits), json!("ls"))).collect();
        assert_eq!(mended(spec, many.clone()), many);
        let most: Arguments = (1..MOST_ARGUMENTS).map(|number| (number.to_string(), json!(1))).collect();
        let with_command = |name: &str| {
            let mut arguments = most.clone();
            arguments.insert(name.to_owned(), json!("ls"));
            arguments
        };
        assert_eq!(mended(spec, with_command("cmd")), with_command("command"));
    }

    /// Arguments that each tool takes, in its own words.
    fn sample(tool: &str) -> Value {
        match tool {
            "Read" => json!({"file_path": "a.txt", "offset": 2, "limit": 3}),
            "Write" => json!({"file_path": "a.txt", "content": "x\n"}),
            "Edit" => {
                json!({"file_path": "a.txt", "old_string": "a", "new_string": "b", "replace_all": true})
            }
            "Glob" => json!({"pattern": "*.rs", "path": "src"}),
            "Grep" => json!({
                "pattern": "fn", "path": "src", "glob": "*.rs", "type": "rust", "output_mode": "content",
                "-i": true, "-n": true, "-A": 1, "-B": 2, "-C": 3, "head_limit": 4, "offset": 5,
                "multiline": true,
            }),
            "Bash" => {
                json!({"command": "ls -la", "timeout": 5000, "description": "List", "run_in_background": true})
            }
            "BashOutput" => json!({"bash_id": "bash_1", "filter": "^a"}),
            "KillShell" => json!({"shell_id": "bash_1"}),
            "get_current_datetime" => json!({"timezone": "UTC", "format": "%Y"}),
            "add_duration_to_datetime" => json!({"datetime": "2026-11-30", "duration": 1, "unit": "days"}),
            "get_exchange_rate" => json!({"currency": "EUR"}),
            other => panic!("{other} has no sample"),
        }
    }

    fn mend(spec: &Spec, arguments: &Value) -> Value {
        Value::Object(mended(spec, arguments.as_object().unwrap().clone()))
    }

    #[test]
    fn every_tool_is_told_what_was_meant_whatever_the_slip() {
        for spec in tools::all() {
            let sound = sample(spec.name);
            let members = sound.as_object().unwrap();
            let renamed = |rename: &dyn Fn(&str) -> String| {
                Value::Object(members.iter().map(|(name, value)| (rename(name), value.clone())).collect())
            };
            let lists: Arguments =
                members.iter().map(|(name, value)| (name.clone(), json!([value]))).collect();
            let mut slips = vec![
                sound.clone(),
                json!(lists),
                renamed(&str::to_uppercase),
                renamed(&|name| name.replace('_', "")),
                renamed(&|name| name.replace('_', "-")),
                json!({"name": spec.name, "arguments": sound}),
                json!({"type": "function", "function": spec.name, "parameters": sound.to_string()}),
                json!({"type": "tool_use", "name": spec.name, "input": sound}),
                json!({"type": "object", "properties": sound}),
            ];
            for wrapper in ["input", "arguments", "parameters", "params", "args", "tool_input", "toolInput"] {
                slips.push(json!({wrapper: sound}));
                slips.push(json!({wrapper: sound.to_string()}));
            }
            for (other, own) in synonyms(spec.name) {
                assert!(spec.arguments.contains(own), "{}: {own}", spec.name);
                slips.push(renamed(&|name| if name == *own { (*other).to_owned() } else { name.to_owned() }));
            }
            for slip in slips {
                assert_eq!(mend(spec, &slip), sound, "{} {slip}", spec.name);
            }
        }
    }

    /// `false` under a name that a tool does not have counts as not given, so that a search for any case was
    /// one for a single case.
    #[test]
    fn an_argument_may_be_given_by_its_opposite() {
        let grep = tools::all().iter().find(|spec| spec.name == "Grep").unwrap();
        for (given, meant) in [
            (json!({"pattern": "a", "case_sensitive": false}), json!({"pattern": "a", "-i": true})),
            (json!({"caseSensitive": "False", "regex": "a"}), json!({"-i": true, "pattern": "a"})),
            (json!({"pattern": "a", "case-sensitive": [true]}), json!({"pattern": "a", "-i": false})),
            (
                json!({"input": {"pattern": "a", "case_sensitive": true}}),
                json!({"pattern": "a", "-i": false}),
            ),
        ] {
            assert_eq!(mend(grep, &given), meant, "{given}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_left_as_it_is() {
        for (tool, arguments) in [
            ("Grep", json!({"pattern": "a", "-i": true, "case_sensitive": true})),
            ("Grep", json!({"pattern": "a", "case_sensitive": 1})),
            ("Read", json!({"path": "a", "file_path": "b"})),
            ("Read", json!({"path": "a", "file": "b"})),
            ("Read", json!({"file_path": ["a", "b"]})),
            ("Read", json!({"file_path": [["a"]]})),
            ("Read", json!({"input": {"file_path": "a"}, "limit": 1})),
            ("Read", json!({"name": "Write", "input": {"file_path": "a"}})),
            ("Read", json!({"input": ["a"]})),
            ("Edit", json!({"input": "not an object"})),
            ("Write", json!({"file_path": "a", "content": {"name": "x"}})),
            ("Bash", json!({"command": ["cd a b", "ls"]})),
            ("Bash", json!({"command": ["ls", "|", "wc"]})),
            ("Bash", json!({"command": ["ls", "*.rs"]})),
            ("Bash", json!({"command": ["echo", "$HOME"]})),
            ("Bash", json!({"command": ["echo", "a\nb"]})),
            ("Bash", json!({"command": ["echo", 1]})),
            ("Bash", json!({"command": []})),
        ] {
            let spec = tools::all().iter().find(|spec| spec.name == tool).unwrap();
            assert_eq!(mend(spec, &arguments), arguments, "{tool}");
        }
    }

    #[test]
    fn a_lone_text_is_what_a_tool_needs_no_more_than() {
        let bash = tools::all().iter().find(|spec| spec.name == "Bash").unwrap();
        assert_eq!(mend(bash, &json!({"arguments": "cd /x && ls"})), json!({"command": "cd /x && ls"}));
    }

    #[test]
    fn a_list_of_words_is_a_program_with_its_arguments() {
        for (words, line) in [
            (json!(["ls -la | wc"]), "ls -la | wc"),
            (json!(["bash", "-lc", "ls | wc"]), "ls | wc"),
            (json!(["/bin/sh", "-c", "ls"]), "ls"),
            (json!(["git", "commit", "-m", "one (two) \"three\""]), "git commit -m 'one (two) \"three\"'"),
            (json!(["printf", ""]), "printf ''"),
        ] {
            assert_eq!(command(words.as_array().unwrap()).as_deref(), Some(line));
        }
    }
}
