//! What every request must look like, whatever the story is about: the strictest server of each
//! API would accept it, and each conversation only ever grows at its end.
//!
//! A check that fails is told as one sentence with the place in the body.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::server::Request;

mod compaction;

/// Which rules hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Chat Completions on a server that knows nothing but the essentials.
    OpenAi,
    /// Chat Completions with OpenRouter's extensions.
    OpenRouter,
    /// Anthropic Messages.
    Anthropic,
}

type Checked = Result<(), String>;

/// Checks all requests of one run, each alone and each against the one before it.
///
/// Errors: the first rule that does not hold.
pub fn requests(api: Api, requests: &[Request]) -> Checked {
    conversations(api, requests, 1)
}

/// The same of a run that has so many conversations: each request goes on with one of them.
///
/// Errors: the first rule that does not hold.
pub fn conversations(api: Api, requests: &[Request], most: usize) -> Checked {
    let mut latest: Vec<Latest> = Vec::new();
    let posts =
        requests.iter().enumerate().filter(|(_, request)| request.complete && request.method == "POST");
    for (index, request) in posts {
        let checked = head(api, request)
            .and_then(|()| body(api, &request.body))
            .and_then(|()| goes_on(&mut latest, request, most));
        checked.map_err(|problem| format!("request {}: {problem}", index + 1))?;
    }
    Ok(())
}

/// A request goes on with one of the conversations, or begins one if there may be more.
fn goes_on<'a>(latest: &mut Vec<Latest<'a>>, request: &'a Request, most: usize) -> Checked {
    let mut problem = Ok(());
    let is_for_summary = compaction::ends_with_instruction(&raw_messages(&raw_members(&request.body)?)?);
    for talk in latest.iter_mut().rev() {
        match grown(&talk.request.body, &request.body, talk.summary) {
            Ok(()) => {
                match is_for_summary {
                    true => talk.summary = Summary::Asked,
                    false => *talk = Latest { request, summary: Summary::None },
                }
                return Ok(());
            }
            found => problem = problem.and(found),
        }
    }
    if latest.len() >= most {
        return problem;
    }
    // A run that goes on with an earlier one may have to begin with a summary, of which less follows than was there.
    if !is_for_summary {
        latest.push(Latest { request, summary: Summary::None });
    }
    Ok(())
}

/// The last request of a conversation, summaries aside.
struct Latest<'a> {
    request: &'a Request,
    summary: Summary,
}

/// Whether the model was asked for a summary, which the next request may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Summary {
    None,
    Asked,
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(problem()) }
}

fn head(api: Api, request: &Request) -> Checked {
    let path = if api == Api::Anthropic { "/v1/messages" } else { "/chat/completions" };
    ensure(request.path.ends_with(path), || format!("the path is {}", request.path))?;
    has_header(request, "content-type", "application/json")?;
    let streamed = request.json()["stream"] == Value::Bool(true);
    has_header(request, "accept", if streamed { "text/event-stream" } else { "application/json" })?;
    let agent = request.header("user-agent").unwrap_or_default();
    ensure(!agent.is_empty(), || "there is no user-agent".to_owned())?;
    let bearer = request.header("authorization");
    let key = request.header("x-api-key");
    ensure(
        bearer.is_none_or(|value| value.strip_prefix("Bearer ").is_some_and(|key| !key.trim().is_empty())),
        || format!("authorization is {bearer:?}"),
    )?;
    ensure(key != Some(""), || "x-api-key is empty".to_owned())?;
    if api == Api::Anthropic {
        has_header(request, "anthropic-version", "2023-06-01")?;
        return ensure(bearer.is_some() != key.is_some(), || {
            "not exactly one of the two keys is sent".to_owned()
        });
    }
    ensure(key.is_none(), || "x-api-key is sent to Chat Completions".to_owned())
}

fn has_header(request: &Request, name: &str, expected: &str) -> Checked {
    let all: Vec<_> = request.headers.iter().filter(|(each, _)| each == name).collect();
    ensure(all.len() == 1 && all[0].1 == expected, || format!("{name} is {all:?}, not {expected:?}"))
}

/// Checks one body against the rules of its API.
///
/// Errors: the first rule that does not hold.
pub fn body(api: Api, bytes: &[u8]) -> Checked {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("the body is not JSON: {error}"))?;
    let body = object(&value, "the body")?;
    ensure(text_at(body, "model").is_some_and(|model| !model.is_empty()), || "model is missing".to_owned())?;
    let messages = array(body.get("messages"), "messages")?;
    for (key, value) in body {
        no_nulls_and_empty_lists(key, value)?;
    }
    no_nul(&value)?;
    match api {
        Api::Anthropic => anthropic_body(body, messages),
        Api::OpenAi | Api::OpenRouter => openai_body(api, body, messages),
    }
}

/// `null` is an error on several servers, and so is an empty list; a schema may hold either.
fn no_nulls_and_empty_lists(key: &str, value: &Value) -> Checked {
    ensure(!value.is_null(), || format!("{key} is null"))?;
    ensure(value.as_array().is_none_or(|list| !list.is_empty()), || format!("{key} is an empty list"))
}

/// Many servers keep what they are sent where a text may hold no NUL.
fn no_nul(value: &Value) -> Checked {
    let text = |text: &str| ensure(!text.contains('\0'), || format!("a text holds a NUL: {text:?}"));
    match value {
        Value::String(string) => text(string),
        Value::Array(list) => list.iter().try_for_each(no_nul),
        Value::Object(object) => {
            object.iter().try_for_each(|(name, value)| text(name).and_then(|()| no_nul(value)))
        }
        _ => Ok(()),
    }
}

fn tools_are_wanted(body: &Map<String, Value>, history_has_calls: bool) -> Checked {
    let tools = body.contains_key("tools");
    for key in ["tool_choice", "parallel_tool_calls"] {
        ensure(tools || !body.contains_key(key), || format!("{key} without tools"))?;
    }
    ensure(tools || !history_has_calls, || "there are calls in the history but no tools".to_owned())
}

/// Names are legal for both APIs and for Gemini, and there are no two of the same.
fn tool_names(names: &[&str]) -> Checked {
    for (index, name) in names.iter().enumerate() {
        let first = name.chars().next().unwrap_or('-');
        let legal = name.len() <= 64 && legal_word(name) && (first.is_ascii_alphabetic() || first == '_');
        ensure(legal, || format!("tools[{index}] has the name {name:?}"))?;
        ensure(!names[..index].contains(name), || format!("two tools are called {name:?}"))?;
    }
    Ok(())
}

fn legal_word(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn schema(value: Option<&Value>, place: &str) -> Checked {
    let schema = value.and_then(Value::as_object).ok_or_else(|| format!("{place} is not an object"))?;
    ensure(text_at(schema, "type") == Some("object"), || format!("{place}.type is not \"object\""))?;
    ensure(schema.get("properties").is_some_and(Value::is_object), || {
        format!("{place}.properties is missing")
    })
}

// Chat Completions.

const OPENAI_BODY: &[&str] = &[
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "stop",
    "seed",
    "response_format",
    "reasoning_effort",
];

const OPENROUTER_BODY: &[&str] =
    &["reasoning", "models", "provider", "session_id", "prompt_cache_key", "cache_control", "usage"];

const REASONING_TEXTS: &[&str] = &["reasoning_content", "reasoning", "reasoning_text"];

fn openai_body(api: Api, body: &Map<String, Value>, messages: &[Value]) -> Checked {
    let extra = if api == Api::OpenRouter { OPENROUTER_BODY } else { &[] };
    only(body, &[OPENAI_BODY, extra].concat(), "the body")?;
    let both = body.contains_key("max_tokens") && body.contains_key("max_completion_tokens");
    ensure(!both, || "max_tokens and max_completion_tokens are both sent".to_owned())?;
    if let Some(options) = body.get("stream_options") {
        only(object(options, "stream_options")?, &["include_usage"], "stream_options")?;
        ensure(body.get("stream") == Some(&Value::Bool(true)), || {
            "stream_options without stream".to_owned()
        })?;
    }
    if let Some(choice) = body.get("tool_choice") {
        // LM Studio and others know the strings alone.
        let known = matches!(choice.as_str(), Some("auto" | "none" | "required"));
        ensure(known, || format!("tool_choice is {choice}"))?;
    }
    openai_tools(body)?;
    openai_messages(api, messages)?;
    tools_are_wanted(body, messages.iter().any(|message| message.get("tool_calls").is_some()))?;
    at_most_four_marks(&Value::Object(body.clone()))
}

fn openai_tools(body: &Map<String, Value>) -> Checked {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let mut names = Vec::new();
    for (index, tool) in array(Some(tools), "tools")?.iter().enumerate() {
        let place = format!("tools[{index}]");
        let tool = object(tool, &place)?;
        only(tool, &["type", "function"], &place)?;
        ensure(text_at(tool, "type") == Some("function"), || format!("{place}.type is not \"function\""))?;
        let function = object(&tool["function"], &format!("{place}.function"))?;
        only(function, &["name", "description", "parameters"], &format!("{place}.function"))?;
        schema(function.get("parameters"), &format!("{place}.function.parameters"))?;
        names.push(text_at(function, "name").unwrap_or_default());
    }
    tool_names(&names)
}

fn openai_messages(api: Api, messages: &[Value]) -> Checked {
    let mut open: Vec<&str> = Vec::new();
    let mut ids = BTreeSet::new();
    let mut before = "";
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let message = object(message, &place)?;
        let role = text_at(message, "role").unwrap_or_default();
        ensure(role == "tool" || open.is_empty(), || {
            format!("{place} comes before the results of {open:?}")
        })?;
        ensure(role == "tool" || role != before, || {
            format!("{place} is a second {role:?} message in a row")
        })?;
        match role {
            "system" => {
                ensure(index == 0, || format!("{place} is a late system message"))?;
                only(message, &["role", "content"], &place)?;
                openai_text(api, &message["content"], &place)?;
            }
            "user" => {
                only(message, &["role", "content"], &place)?;
                openai_user_content(api, message.get("content"), &place)?;
            }
            "assistant" => {
                ensure(!matches!(before, "" | "system"), || {
                    format!("{place} comes before any user message")
                })?;
                open = openai_assistant(api, message, &place)?;
                for id in &open {
                    ensure(ids.insert(*id), || format!("{place} uses the id {id:?} again"))?;
                }
            }
            "tool" => {
                only(message, &["role", "tool_call_id", "content"], &place)?;
                let id = text_at(message, "tool_call_id").unwrap_or_default();
                ensure(open.first() == Some(&id), || format!("{place} answers {id:?}; open are {open:?}"))?;
                open.remove(0);
                openai_text(api, &message["content"], &place)?;
            }
            _ => return Err(format!("{place} has the role {role:?}")),
        }
        before = role;
    }
    ensure(open.is_empty(), || format!("the calls {open:?} have no results"))?;
    ensure(matches!(before, "user" | "tool"), || format!("the last message is of role {before:?}"))
}

/// The ids of the calls it asks for, in order.
fn openai_assistant<'a>(
    api: Api,
    message: &'a Map<String, Value>,
    place: &str,
) -> Result<Vec<&'a str>, String> {
    let known = [&["role", "content", "tool_calls", "reasoning_details"], REASONING_TEXTS].concat();
    only(message, &known, place)?;
    let texts = REASONING_TEXTS.iter().filter(|key| message.contains_key(**key)).count();
    ensure(texts <= 1, || format!("{place} has the reasoning in {texts} members"))?;
    let content = message.get("content").ok_or_else(|| format!("{place} has no content member"))?;
    let Some(calls) = message.get("tool_calls") else {
        return openai_text(api, content, place).map(|()| Vec::new());
    };
    // Beside calls, some servers refuse null and others the empty string: that is a matter of the host.
    if !content.is_null() && content != "" {
        openai_text(api, content, place)?;
    }
    let calls = array(Some(calls), &format!("{place}.tool_calls"))?;
    ensure(!calls.is_empty(), || format!("{place}.tool_calls is an empty list"))?;
    let mut ids = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        ids.push(openai_call(call, &format!("{place}.tool_calls[{index}]"))?);
    }
    Ok(ids)
}

fn openai_call<'a>(call: &'a Value, place: &str) -> Result<&'a str, String> {
    let call = object(call, place)?;
    only(call, &["id", "type", "function", "extra_content"], place)?;
    ensure(text_at(call, "type") == Some("function"), || format!("{place}.type is not \"function\""))?;
    let function = object(&call["function"], &format!("{place}.function"))?;
    only(function, &["name", "arguments"], &format!("{place}.function"))?;
    let name = text_at(function, "name").unwrap_or_default();
    ensure(legal_word(name) && name.len() <= 64, || format!("{place} has the name {name:?}"))?;
    let arguments =
        text_at(function, "arguments").ok_or_else(|| format!("{place} has no string of arguments"))?;
    let parsed: Result<Map<String, Value>, _> = serde_json::from_str(arguments);
    ensure(parsed.is_ok(), || format!("{place} has the arguments {arguments:?}, no JSON object"))?;
    no_nul(&Value::Object(parsed.unwrap_or_default()))?;
    let id = text_at(call, "id").unwrap_or_default();
    ensure(!id.is_empty() && id.chars().count() <= 40, || format!("{place} has the id {id:?}"))?;
    Ok(id)
}

fn openai_text(api: Api, content: &Value, place: &str) -> Checked {
    match content {
        Value::String(text) => not_blank(text, place),
        // A list is needed to carry a cache mark; other servers may refuse it.
        Value::Array(parts) if api == Api::OpenRouter => {
            parts.iter().try_for_each(|part| text_part(part, &["type", "text", "cache_control"], place))
        }
        _ => Err(format!("{place} has the content {content}")),
    }
}

fn openai_user_content(api: Api, content: Option<&Value>, place: &str) -> Checked {
    let Some(Value::Array(parts)) = content else {
        return openai_text(api, content.unwrap_or(&Value::Null), place);
    };
    ensure(!parts.is_empty(), || format!("{place} has no parts"))?;
    for part in parts {
        if part["type"] != "image_url" {
            let marks: &[&str] = if api == Api::OpenRouter { &["cache_control"] } else { &[] };
            text_part(part, &[&["type", "text"], marks].concat(), place)?;
            continue;
        }
        only(object(part, place)?, &["type", "image_url"], place)?;
        let image = object(&part["image_url"], place)?;
        only(image, &["url", "detail"], place)?;
        let url = text_at(image, "url").unwrap_or_default();
        let (media, data) =
            url.strip_prefix("data:").and_then(|url| url.split_once(";base64,")).unwrap_or_default();
        image_data(media, data, place)?;
    }
    Ok(())
}

fn text_part(part: &Value, known: &[&str], place: &str) -> Checked {
    let part = object(part, place)?;
    only(part, known, place)?;
    ensure(text_at(part, "type") == Some("text"), || format!("{place} has a part of an unknown type"))?;
    mark(part, place)?;
    not_blank(text_at(part, "text").unwrap_or_default(), place)
}

fn not_blank(text: &str, place: &str) -> Checked {
    ensure(!text.trim().is_empty(), || format!("{place} has an empty text"))
}

// Anthropic Messages.

const ANTHROPIC_BODY: &[&str] = &[
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "stop_sequences",
    "temperature",
    "metadata",
    "thinking",
    "output_config",
    "cache_control",
];

fn anthropic_body(body: &Map<String, Value>, messages: &[Value]) -> Checked {
    only(body, ANTHROPIC_BODY, "the body")?;
    let limit = body.get("max_tokens").and_then(Value::as_u64).unwrap_or_default();
    ensure(limit > 0, || "max_tokens is missing".to_owned())?;
    match body.get("system") {
        None => {}
        Some(Value::String(text)) => not_blank(text, "system")?,
        Some(blocks) => {
            for block in array(Some(blocks), "system")? {
                text_part(block, &["type", "text", "cache_control"], "system")?;
            }
        }
    }
    if let Some(choice) = body.get("tool_choice") {
        only(object(choice, "tool_choice")?, &["type", "name", "disable_parallel_tool_use"], "tool_choice")?;
    }
    anthropic_tools(body)?;
    let calls = anthropic_messages(messages)?;
    tools_are_wanted(body, calls > 0)?;
    at_most_four_marks(&Value::Object(body.clone()))
}

fn anthropic_tools(body: &Map<String, Value>) -> Checked {
    let Some(tools) = body.get("tools") else { return Ok(()) };
    let mut names = Vec::new();
    for (index, tool) in array(Some(tools), "tools")?.iter().enumerate() {
        let place = format!("tools[{index}]");
        let tool = object(tool, &place)?;
        only(tool, &["name", "description", "input_schema", "cache_control"], &place)?;
        mark(tool, &place)?;
        schema(tool.get("input_schema"), &format!("{place}.input_schema"))?;
        names.push(text_at(tool, "name").unwrap_or_default());
    }
    tool_names(&names)
}

/// The number of calls in all messages.
fn anthropic_messages(messages: &[Value]) -> Result<usize, String> {
    let mut ids = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    let mut before = "assistant";
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let message = object(message, &place)?;
        only(message, &["role", "content"], &place)?;
        let role = text_at(message, "role").unwrap_or_default();
        ensure(role != before, || format!("{place} is of role {role:?}, which is not its turn"))?;
        match role {
            "user" => anthropic_user(&message["content"], &mut open, &place)?,
            "assistant" => {
                open = anthropic_assistant(&message["content"], &place)?;
                for id in &open {
                    ensure(ids.insert(*id), || format!("{place} uses the id {id:?} again"))?;
                }
            }
            _ => return Err(format!("{place} has the role {role:?}")),
        }
        before = role;
    }
    let paused = messages.last().is_some_and(|message| holds_a_server_tool(&message.to_string()));
    ensure(before == "user" || paused, || format!("the last message is of role {before:?}"))?;
    Ok(ids.len())
}

fn anthropic_user(content: &Value, open: &mut Vec<&str>, place: &str) -> Checked {
    if let Value::String(text) = content {
        ensure(open.is_empty(), || format!("{place} has no results for {open:?}"))?;
        return not_blank(text, place);
    }
    let blocks = array(Some(content), place)?;
    ensure(!blocks.is_empty(), || format!("{place} has no blocks"))?;
    for block in blocks {
        let fields = object(block, place)?;
        let kind = text_at(fields, "type").unwrap_or_default();
        if kind == "tool_result" {
            let id = text_at(fields, "tool_use_id").unwrap_or_default();
            ensure(open.first() == Some(&id), || format!("{place} answers {id:?}; open are {open:?}"))?;
            open.remove(0);
            anthropic_result(fields, place)?;
            continue;
        }
        ensure(open.is_empty(), || format!("{place} has a {kind} before the results of {open:?}"))?;
        match kind {
            "text" => text_part(block, &["type", "text", "cache_control"], place)?,
            "image" => image(fields, &["type", "source", "cache_control"], place)?,
            _ => return Err(format!("{place} has a block of type {kind:?}")),
        }
    }
    ensure(open.is_empty(), || format!("{place} has no results for {open:?}"))
}

fn anthropic_result(result: &Map<String, Value>, place: &str) -> Checked {
    only(result, &["type", "tool_use_id", "content", "is_error", "cache_control"], place)?;
    mark(result, place)?;
    let failed = result.get("is_error").is_some_and(|flag| flag != &Value::Bool(false));
    ensure(result.get("is_error").is_none_or(Value::is_boolean), || format!("{place} has an odd is_error"))?;
    match result.get("content") {
        None | Some(Value::String(_)) => Ok(()),
        Some(content) => {
            for block in array(Some(content), place)? {
                match block["type"].as_str() {
                    Some("image") if !failed => image(object(block, place)?, &["type", "source"], place)?,
                    _ => text_part(block, &["type", "text"], place)?,
                }
            }
            Ok(())
        }
    }
}

fn image(block: &Map<String, Value>, known: &[&str], place: &str) -> Checked {
    only(block, known, place)?;
    mark(block, place)?;
    let source = object(&block["source"], place)?;
    only(source, &["type", "media_type", "data"], place)?;
    ensure(text_at(source, "type") == Some("base64"), || format!("{place} has an image from elsewhere"))?;
    let [media, data] = ["media_type", "data"].map(|key| text_at(source, key).unwrap_or_default());
    image_data(media, data, place)
}

/// An image is of a type that both APIs take, in base64 without line ends.
fn image_data(media: &str, data: &str, place: &str) -> Checked {
    let known = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&media);
    ensure(known, || format!("{place} has an image of type {media:?}"))?;
    let digits = data.trim_end_matches('=');
    let sound = !digits.is_empty()
        && data.len() - digits.len() <= 2
        && data.len().is_multiple_of(4)
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    ensure(sound, || format!("{place} has an image that is not base64"))
}

/// Whether the text of a message has a call of the server's own tools: such a message may be the last,
/// for the server to go on with, and may grow.
fn holds_a_server_tool(message: &str) -> bool {
    message.contains(r#""type":"server_tool_use""#)
}

/// The ids of the calls it asks for, in order.
fn anthropic_assistant<'a>(content: &'a Value, place: &str) -> Result<Vec<&'a str>, String> {
    if let Value::String(text) = content {
        return not_blank(text, place).map(|()| Vec::new());
    }
    let blocks = array(Some(content), place)?;
    ensure(!blocks.is_empty(), || format!("{place} has no blocks"))?;
    let mut ids = Vec::new();
    for block in blocks {
        let fields = object(block, place)?;
        match text_at(fields, "type").unwrap_or_default() {
            "text" => text_part(block, &["type", "text", "citations", "cache_control"], place)?,
            "tool_use" => {
                only(fields, &["type", "id", "name", "input", "caller", "cache_control"], place)?;
                mark(fields, place)?;
                ensure(fields.get("input").is_some_and(Value::is_object), || {
                    format!("{place}: input is no object")
                })?;
                let name = text_at(fields, "name").unwrap_or_default();
                ensure(legal_word(name) && name.len() <= 64, || format!("{place} calls {name:?}"))?;
                let id = text_at(fields, "id").unwrap_or_default();
                ensure(legal_word(id) && id.len() <= 64, || format!("{place} has the id {id:?}"))?;
                ids.push(id);
            }
            // Imitations send thinking without a signature and want it back like that.
            "thinking" => only(fields, &["type", "thinking", "signature"], place)?,
            "redacted_thinking" => only(fields, &["type", "data"], place)?,
            kind if is_carried_through(kind) => {}
            kind => return Err(format!("{place} has a block of type {kind:?}")),
        }
    }
    Ok(ids)
}

/// Blocks of the vendor's own tools go back as they came.
fn is_carried_through(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use" | "container_upload" | "fallback" | "compaction")
        || (kind != "tool_result" && kind.ends_with("_tool_result"))
}

// What both have in common.

/// A cache mark, where there is one, is of the one kind there is.
fn mark(fields: &Map<String, Value>, place: &str) -> Checked {
    let Some(mark) = fields.get("cache_control") else { return Ok(()) };
    let mark = object(mark, &format!("{place}.cache_control"))?;
    only(mark, &["type", "ttl"], &format!("{place}.cache_control"))?;
    ensure(text_at(mark, "type") == Some("ephemeral"), || format!("{place} has an odd cache_control"))
}

fn at_most_four_marks(body: &Value) -> Checked {
    let marks = cache_marks(body);
    ensure(marks <= 4, || format!("{marks} blocks with cache_control, and at most 4 may be"))
}

/// How many members called `cache_control` a body has; what is inside of a call's input is the model's.
pub fn cache_marks(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let inside =
                fields.iter().filter(|(key, _)| *key != "input").map(|(_, value)| cache_marks(value));
            inside.sum::<usize>() + usize::from(fields.contains_key("cache_control"))
        }
        Value::Array(items) => items.iter().map(cache_marks).sum(),
        _ => 0,
    }
}

/// Content that was null is an empty string for the rest of a run once a server has refused null.
fn refilled(before: &str, now: &str) -> bool {
    before.replacen(r#""content":null"#, r#""content":"""#, 1) == now
}

/// Images give way to a text for the rest of a run once a server has refused one.
fn without_images(before: &str, now: &str) -> bool {
    let notes = ["the model takes none", "the server refused one of them"]
        .map(|why| format!(r"\n[image left out: {why}]"));
    holds_an_image(before) && !holds_an_image(now)
        || notes.iter().any(|note| now.contains(note) && now.replace(note, "") == before)
}

/// A message of Messages as another model gets it: thoughts go back only to the one that had them.
fn without_thoughts(message: &str) -> Option<Value> {
    let mut message: Value = serde_json::from_str(message).ok()?;
    message["content"]
        .as_array_mut()?
        .retain(|block| !matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking")));
    Some(message)
}

fn holds_an_image(message: &str) -> bool {
    message.contains(r#""type":"image""#) || message.contains(r#""type":"image_url""#)
}

/// A tool takes the answer for the rest of a run once a server has refused its form, or not kept to it.
fn gains_answer_tool(
    earlier: &BTreeMap<String, Box<RawValue>>,
    later: &BTreeMap<String, Box<RawValue>>,
) -> bool {
    let has_form = |body: &BTreeMap<String, Box<RawValue>>| {
        body.contains_key("response_format")
            || body.get("output_config").is_some_and(|config| config.get().contains("\"format\""))
    };
    let [before, now] = [earlier, later].map(|body| body.get("tools").map(|raw| without_marks(raw.get())));
    let before = before.unwrap_or_else(|| "[]".to_owned());
    let added = now.as_deref().and_then(|now| now.strip_prefix(before.trim_end_matches(']')));
    has_form(earlier) && !has_form(later) && added.is_some_and(|added| added.contains("\"StructuredOutput\""))
}

/// The later body's system prompt, tools and first messages are the earlier one's, byte for byte
/// apart from cache marks. A last message of the user's, or of a server that paused, may have grown,
/// because neighbours are merged.
fn grown(earlier: &[u8], later: &[u8], summary: Summary) -> Checked {
    let (earlier, later) = (raw_members(earlier)?, raw_members(later)?);
    for key in ["system", "tools"] {
        let [before, now] = [&earlier, &later].map(|body| body.get(key).map(|raw| without_marks(raw.get())));
        let same = before == now || key == "tools" && gains_answer_tool(&earlier, &later);
        ensure(same, || format!("{key} differs from the request before"))?;
    }
    let other_model = earlier.get("model").map(|raw| raw.get()) != later.get("model").map(|raw| raw.get());
    let (before, now) = (raw_messages(&earlier)?, raw_messages(&later)?);
    if compaction::asks_for_summary(&before, &now, has_grown)
        || summary == Summary::Asked && compaction::is_summarized(&before, &now, has_grown)
    {
        return Ok(());
    }
    let before =
        compaction::after_cuts(&before, &now).ok_or("a result was cut and its size is told wrong")?;
    for (index, message) in before.iter().enumerate() {
        let found = now.get(index).map(String::as_str).unwrap_or_default();
        let is_last = index + 1 == before.len();
        ensure(
            found == message
                || (is_last && has_grown(message, found))
                || refilled(message, found)
                || without_images(message, found)
                || (other_model && without_thoughts(message) == serde_json::from_str(found).ok()),
            || format!("messages[{index}] was\n  {message}\nand is now\n  {found}"),
        )?;
    }
    Ok(())
}

fn has_grown(before: &str, now: &str) -> bool {
    let open = before.strip_suffix("\"}").or_else(|| before.strip_suffix("]}"));
    let may_grow = before.contains(r#""role":"user""#) || holds_a_server_tool(before);
    may_grow && open.is_some_and(|open| now.starts_with(open))
}

fn raw_members(body: &[u8]) -> Result<BTreeMap<String, Box<RawValue>>, String> {
    serde_json::from_slice(body).map_err(|error| format!("the body is not an object: {error}"))
}

fn raw_messages(body: &BTreeMap<String, Box<RawValue>>) -> Result<Vec<String>, String> {
    let raw = body.get("messages").ok_or("messages is missing")?;
    let messages: Vec<Box<RawValue>> = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
    Ok(messages.iter().map(|message| without_marks(message.get())).collect())
}

/// The JSON text without its `cache_control` members. Inside of a string the quotes would be escaped,
/// so the plain text of the key is the key.
fn without_marks(json: &str) -> String {
    let mut kept = String::new();
    let mut rest = json;
    while let Some((before, after)) = rest.split_once(r#""cache_control":"#) {
        let (_, after) = after.split_once('}').unwrap_or_default();
        match before.strip_suffix(',') {
            Some(before) => {
                kept.push_str(before);
                rest = after;
            }
            None => {
                kept.push_str(before);
                rest = after.strip_prefix(',').unwrap_or(after);
            }
        }
    }
    kept + rest
}

fn only(fields: &Map<String, Value>, known: &[&str], place: &str) -> Checked {
    let unknown = fields.keys().find(|key| !known.contains(&key.as_str()));
    ensure(unknown.is_none(), || format!("{place} has the unknown member {unknown:?}"))
}

fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{place} is not an object"))
}

fn array<'a>(value: Option<&'a Value>, place: &str) -> Result<&'a [Value], String> {
    let list = value.and_then(Value::as_array).ok_or_else(|| format!("{place} is not a list"))?;
    Ok(list)
}

fn text_at<'a>(fields: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    fields.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{grown as grown_after, *};

    fn grown(earlier: &[u8], later: &[u8]) -> Checked {
        grown_after(earlier, later, Summary::None)
    }

    fn problem(api: Api, value: &Value) -> String {
        body(api, value.to_string().as_bytes()).err().unwrap_or_default()
    }

    fn chat() -> Value {
        json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "Read", "description": "d",
                "parameters": {"type": "object", "properties": {}}}}],
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": "u"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "Read", "arguments": "{}"}},
                    {"id": "b", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "a", "content": "1"},
                {"role": "tool", "tool_call_id": "b", "content": "2"}]})
    }

    fn messages() -> Value {
        json!({"model": "m", "max_tokens": 9, "stream": true,
            "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
            "tools": [{"name": "Read", "description": "d", "input_schema": {"type": "object", "properties": {}}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "u"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "", "signature": "x"},
                    {"type": "tool_use", "id": "a", "name": "Read", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "Read", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "2", "is_error": true}]}]})
    }

    /// Each way to break a good body, as a JSON pointer and the value put there, with what is said of it.
    fn broken(api: Api, good: &Value, ways: &[(&str, Value, &str)]) {
        assert_eq!(problem(api, good), "");
        for (pointer, value, expected) in ways {
            let mut bad = good.clone();
            match bad.pointer_mut(pointer) {
                Some(place) => *place = value.clone(),
                None => {
                    let (parent, key) = pointer.rsplit_once('/').unwrap();
                    bad.pointer_mut(parent).unwrap()[key] = value.clone();
                }
            }
            assert_eq!(problem(api, &bad), *expected, "{pointer}");
        }
    }

    #[test]
    fn a_broken_chat_request_is_told_with_its_place() {
        let call = "/messages/2/tool_calls/1";
        broken(
            Api::OpenAi,
            &chat(),
            &[
                ("/models", json!(["m"]), "the body has the unknown member Some(\"models\")"),
                ("/tools", json!([]), "tools is an empty list"),
                ("/stop", json!(null), "stop is null"),
                ("/messages/0/role", json!("developer"), "messages[0] has the role \"developer\""),
                ("/messages/1/role", json!("system"), "messages[1] is a second \"system\" message in a row"),
                ("/messages/1/name", json!("x"), "messages[1] has the unknown member Some(\"name\")"),
                ("/messages/1/content", json!(" "), "messages[1] has an empty text"),
                ("/messages/2/refusal", json!(null), "messages[2] has the unknown member Some(\"refusal\")"),
                ("/messages/2/tool_calls", json!([]), "messages[2].tool_calls is an empty list"),
                (&format!("{call}/id"), json!("a"), "messages[2] uses the id \"a\" again"),
                (&format!("{call}/id"), json!("c"), "messages[4] answers \"b\"; open are [\"c\"]"),
                (
                    &format!("{call}/function/arguments"),
                    json!("[]"),
                    "messages[2].tool_calls[1] has the arguments \"[]\", no JSON object",
                ),
                (
                    &format!("{call}/function/arguments"),
                    json!({}),
                    "messages[2].tool_calls[1] has no string of arguments",
                ),
                (
                    "/messages/3/tool_call_id",
                    json!("b"),
                    "messages[3] answers \"b\"; open are [\"a\", \"b\"]",
                ),
                ("/messages/4/content", json!(""), "messages[4] has an empty text"),
                (
                    "/messages/4/content",
                    json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]),
                    "messages[4] has the content [{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AAAA\"}}]",
                ),
                (
                    "/messages/1/content",
                    json!([{"type": "image_url", "image_url": {"url": "http://h/a.png"}}]),
                    "messages[1] has an image of type \"\"",
                ),
                (
                    "/messages/4",
                    json!({"role": "user", "content": "x"}),
                    "messages[4] comes before the results of [\"b\"]",
                ),
                ("/tool_choice", json!({"type": "function"}), "tool_choice is {\"type\":\"function\"}"),
            ],
        );
        let mut without_tools = chat();
        without_tools.as_object_mut().unwrap().remove("tools");
        assert_eq!(problem(Api::OpenAi, &without_tools), "there are calls in the history but no tools");
        without_tools["tool_choice"] = json!("auto");
        assert_eq!(problem(Api::OpenAi, &without_tools), "tool_choice without tools");
    }

    #[test]
    fn a_broken_messages_request_is_told_with_its_place() {
        let mark = json!({"type": "ephemeral"});
        broken(
            Api::Anthropic,
            &messages(),
            &[
                ("/max_tokens", json!(null), "max_tokens is null"),
                ("/top_p", json!(1), "the body has the unknown member Some(\"top_p\")"),
                (
                    "/messages/0/role",
                    json!("assistant"),
                    "messages[0] is of role \"assistant\", which is not its turn",
                ),
                ("/messages/0/content/0/text", json!(" \n"), "messages[0] has an empty text"),
                (
                    "/messages/1/content/0/cache_control",
                    mark,
                    "messages[1] has the unknown member Some(\"cache_control\")",
                ),
                ("/messages/1/content/1/input", json!("{}"), "messages[1]: input is no object"),
                ("/messages/1/content/1/id", json!("a.b"), "messages[1] has the id \"a.b\""),
                ("/messages/1/content/2/id", json!("a"), "messages[1] uses the id \"a\" again"),
                (
                    "/messages/2/content/1/tool_use_id",
                    json!("x"),
                    "messages[2] answers \"x\"; open are [\"b\"]",
                ),
                (
                    "/messages/2/content/1",
                    json!({"type": "text", "text": "x"}),
                    "messages[2] has a text before the results of [\"b\"]",
                ),
                ("/messages/2/content", json!("x"), "messages[2] has no results for [\"a\", \"b\"]"),
                (
                    "/messages/2/content/1/content",
                    json!([{"type": "image", "source": {}}]),
                    "messages[2] has the unknown member Some(\"source\")",
                ),
                (
                    "/messages/2/content/0/content",
                    json!([{"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "AAAA"}}]),
                    "messages[2] has an image of type \"image/bmp\"",
                ),
                (
                    "/messages/2/content/0/content",
                    json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A\nA="}}]),
                    "messages[2] has an image that is not base64",
                ),
                (
                    "/messages/2/content/0/content",
                    json!([{"type": "image", "source": {"type": "url", "url": "http://h/"}}]),
                    "messages[2] has the unknown member Some(\"url\")",
                ),
                ("/tools/0/strict", json!(true), "tools[0] has the unknown member Some(\"strict\")"),
            ],
        );
        let mut marked = messages();
        for pointer in ["/tools/0", "/messages/0/content/0", "/messages/2/content/0", "/messages/2/content/1"]
        {
            marked.pointer_mut(pointer).unwrap()["cache_control"] = json!({"type": "ephemeral"});
        }
        assert_eq!(problem(Api::Anthropic, &marked), "5 blocks with cache_control, and at most 4 may be");
    }

    #[test]
    fn a_conversation_may_only_grow_and_its_cache_marks_may_move() {
        let mark = r#","cache_control":{"type":"ephemeral"}"#;
        let first = |text: &str, mark: &str| {
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"{text}"{mark}}}]}}"#)
        };
        let body = |messages: &str| format!(r#"{{"messages":[{messages}]}}"#).into_bytes();
        let earlier = body(&first("u", mark));
        let later = body(&format!("{},{}", first("u", ""), first("v", mark)));
        assert_eq!(grown(&earlier, &later), Ok(()));
        assert!(grown(&later, &earlier).is_err());
        assert!(grown(&earlier, &body(&first("w", ""))).is_err());
        let merged = first("u", "").replace("}]}", r#"},{"type":"text","text":"v"}]}"#);
        assert_eq!(grown(&earlier, &body(&merged)), Ok(()));
        assert_eq!(
            grown(&body(r#"{"role":"user","content":"u"}"#), &body(r#"{"role":"user","content":"u\n\nv"}"#)),
            Ok(())
        );
    }

    #[test]
    fn images_may_give_way_to_a_text_that_says_so() {
        let tool = |text: &str| format!(r#"{{"role":"tool","tool_call_id":"a","content":"{text}"}}"#);
        let shown = r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}"#;
        let body = |messages: &[&str]| format!(r#"{{"messages":[{}]}}"#, messages.join(",")).into_bytes();
        let (before, after) = (tool("a.png"), tool(r"a.png\n[image left out: the model takes none]"));
        let earlier = body(&[&before, shown]);
        assert_eq!(grown(&earlier, &body(&[&after])), Ok(()));
        assert!(grown(&earlier, &body(&[&tool(r"b.png\n[image left out: the model takes none]")])).is_err());
        assert!(grown(&earlier, &body(&[&before, &shown.replace('x', "y")])).is_err());
    }

    #[test]
    fn marks_are_cut_out_of_the_text_wherever_they_stand() {
        let texts = [
            (r#"{"a":1,"cache_control":{"type":"ephemeral","ttl":"1h"}}"#, r#"{"a":1}"#),
            (r#"{"cache_control":{"type":"ephemeral"},"a":1}"#, r#"{"a":1}"#),
            (r#"{"a":"\"cache_control\":{}"}"#, r#"{"a":"\"cache_control\":{}"}"#),
        ];
        for (marked, expected) in texts {
            assert_eq!(without_marks(marked), expected);
        }
    }

    fn request(headers: &[(&str, &str)]) -> Request {
        Request {
            connection: 0,
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            headers: headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: messages().to_string().into_bytes(),
            complete: true,
        }
    }

    #[test]
    fn headers_are_checked_too() {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
            ("user-agent", "cotter/0.1.0"),
            ("anthropic-version", "2023-06-01"),
            ("x-api-key", "test-key"),
        ];
        assert_eq!(requests(Api::Anthropic, &[request(&headers)]), Ok(()));
        headers.push(("authorization", "Bearer "));
        let expected = "request 1: authorization is Some(\"Bearer \")";
        assert_eq!(requests(Api::Anthropic, &[request(&headers)]), Err(expected.to_owned()));
        let expected = "request 1: anthropic-version is [], not \"2023-06-01\"";
        headers.truncate(3);
        assert_eq!(requests(Api::Anthropic, &[request(&headers)]), Err(expected.to_owned()));
    }
}
