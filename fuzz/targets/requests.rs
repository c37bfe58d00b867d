//! A conversation that is to be sent: for all servers it makes a request that a strict one takes, and its session
//! file makes the same conversation of it.

use std::collections::HashSet;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{Conversation, Message, Part, Reading, Role};
use crate::provider::{Api, Host, NoImages, Settings, Wire};

const MODEL: &str = "anthropic/m";

/// The origin of replies whose vendor data goes back.
pub fn origin(api: Api) -> String {
    settings(api, Host::Other).origin()
}

/// Whether a text is one JSON object.
pub fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

fn settings(api: Api, host: Host) -> Settings {
    let tools = crate::tools::all().iter().take(2).collect();
    Settings { system: "be brief".to_owned(), tools, ..Settings::plain(api, host, MODEL) }
}

/// Asserts that calls and results are paired and that the requests of all servers are sound.
pub fn check(conversation: &Conversation) {
    pairs(conversation.messages());
    let hosts = [Host::Other, Host::OpenRouter, Host::Mistral, Host::DeepSeek, Host::Moonshot];
    let settings = hosts.map(|host| settings(Api::OpenAi, host)).into_iter();
    for mut settings in settings.chain([self::settings(Api::Anthropic, Host::Anthropic)]) {
        let body = body(&settings, conversation);
        match settings.api {
            Api::Anthropic => messages_api(&body),
            Api::OpenAi => completions(&body, settings.host),
        }
        settings.learnt.no_images = Some(NoImages::Refused);
        settings.learnt.empty_string_content = true;
        self::body(&settings, conversation);
    }
}

/// The request of a whole conversation, which is that of one that has grown message by message.
fn body(settings: &Settings, conversation: &Conversation) -> Value {
    let messages = conversation.messages();
    let mut wire = Wire::new(settings);
    wire.update(settings, messages);
    let text = wire.body(settings).concat();
    let mut grown = Wire::new(settings);
    (1..=messages.len()).for_each(|count| grown.update(settings, &messages[..count]));
    assert!(grown.body(settings).concat() == text, "a request depends on how the conversation has grown");
    match serde_json::from_slice(&text) {
        Ok(body) => {
            assert!(!holds_nul(&body), "a NUL is sent");
            body
        }
        Err(error) => panic!("a request is not JSON ({error}): {}", String::from_utf8_lossy(&text)),
    }
}

/// Whether a text that is not the vendor's own holds a NUL, which many servers refuse.
fn holds_nul(value: &Value) -> bool {
    const OURS: [&str; 7] = ["messages", "content", "text", "input", "tool_calls", "function", "arguments"];
    const KINDS: [&str; 5] = ["text", "tool_use", "tool_result", "image", "function"];
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(members)
            if members.get("type").is_none_or(|kind| KINDS.iter().any(|it| kind == it)) =>
        {
            members.iter().any(|(name, value)| OURS.contains(&name.as_str()) && holds_nul(value))
        }
        _ => false,
    }
}

/// Each call has one result, in the message right after it and in order; each id is unique; the user begins.
fn pairs(messages: &[Message]) {
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let expected = if index % 2 == 0 { Role::User } else { Role::Assistant };
        assert_eq!(message.role, expected, "who speaks in message {index}");
        assert!(!message.parts.is_empty(), "an empty message");
        let calls: Vec<&str> = message.calls().map(|call| call.id.as_str()).collect();
        assert!(calls.iter().all(|id| !id.is_empty() && ids.insert(*id)), "an id twice: {calls:?}");
        assert!(message.role == Role::Assistant || calls.is_empty(), "a call of the user's");
        let next = messages.get(index + 1).map_or(&[][..], |next| &next.parts);
        if message.role == Role::Assistant {
            // A session file may hold them in another order.
            let results = sorted(next.iter().filter_map(result));
            assert_eq!(results, sorted(calls.iter().copied()), "each call has one result");
            assert!(next.iter().take(calls.len()).all(|part| result(part).is_some()), "results come first");
        }
    }
    let first = messages.first().map_or(&[][..], |first| &first.parts);
    assert!(first.iter().all(|part| result(part).is_none()), "a result before any call");
}

fn sorted<T: Ord>(of: impl Iterator<Item = T>) -> Vec<T> {
    let mut sorted: Vec<T> = of.collect();
    sorted.sort();
    sorted
}

fn result(part: &Part) -> Option<&str> {
    match part {
        Part::Result(result) => Some(&result.call_id),
        _ => None,
    }
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no text \"{name}\" in {value}"))
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// What Anthropic refuses.
fn messages_api(body: &Value) {
    let messages = list(body, "messages");
    assert_eq!(messages.first().map(|first| text(first, "role")), messages.first().map(|_| "user"));
    let of_type = |message: &Value, kind: &str, id: &str| -> Vec<String> {
        let blocks = list(message, "content").iter().filter(|block| block["type"] == kind);
        blocks.map(|block| text(block, id).to_owned()).collect()
    };
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        assert!(!list(message, "content").is_empty(), "an empty message: {message}");
        for block in list(message, "content") {
            // A session file may hold vendor data that no vendor has sent.
            match block["type"].as_str().unwrap_or_default() {
                "text" => assert!(!text(block, "text").trim().is_empty(), "a blank text"),
                "tool_use" => {
                    let (id, name) = (text(block, "id"), text(block, "name"));
                    assert!(!id.is_empty() && is_word(id) && ids.insert(id.to_owned()), "the id {id:?}");
                    assert!((1..=64).contains(&name.len()) && is_word(name), "the name {name:?}");
                    assert!(block["input"].is_object(), "{block}");
                }
                _ => {}
            }
        }
        if message["role"] == "assistant" {
            let calls = of_type(message, "tool_use", "id");
            let next = messages.get(index + 1).unwrap_or(&Value::Null);
            let results = of_type(next, "tool_result", "tool_use_id");
            assert_eq!(sorted(results.iter()), sorted(calls.iter()), "each call has one result");
        } else {
            assert!(of_type(message, "tool_use", "id").is_empty(), "a call of the user's");
        }
    }
}

/// What strict servers of Chat Completions refuse.
fn completions(body: &Value, host: Host) {
    let mut open: Vec<String> = Vec::new();
    for message in list(body, "messages") {
        let role = text(message, "role");
        assert!(open.is_empty() || role == "tool", "a call has no result");
        let content = &message["content"];
        match role {
            "tool" => {
                let id = text(message, "tool_call_id");
                let call = open.iter().position(|open| open == id);
                open.remove(call.unwrap_or_else(|| panic!("a result without a call: {id:?}")));
                assert!(content.is_string() || content.is_array());
            }
            "assistant" => {
                let calls = list(message, "tool_calls");
                assert!(!calls.is_empty() || content.as_str().is_some_and(|text| !text.trim().is_empty()));
                for call in calls {
                    let (id, name) = (text(call, "id"), text(&call["function"], "name"));
                    assert!((1..=64).contains(&name.len()) && is_word(name), "the name {name:?}");
                    assert!(is_object(text(&call["function"], "arguments")));
                    match host {
                        Host::Mistral => {
                            assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()));
                        }
                        Host::Moonshot => {}
                        _ => assert!(!id.is_empty() && id.len() <= 40, "the id {id:?}"),
                    }
                    open.push(id.to_owned());
                }
                let unique: HashSet<&String> = open.iter().collect();
                assert_eq!(unique.len(), open.len(), "an id twice: {open:?}");
            }
            "user" | "system" => assert!(content.is_string() || !list(message, "content").is_empty()),
            other => panic!("the role {other}"),
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}

/// Asserts that the lines of a conversation make the same one again.
pub fn check_kept(conversation: &mut Conversation) {
    let lines = conversation.new_lines();
    let mut reading = Reading::default();
    for line in &lines {
        assert!(!line.contains('\n'), "a line's end in a line");
        reading.line(line.as_bytes());
    }
    let (read, left_out) = reading.finish();
    assert_eq!(left_out, [], "something was left out");
    assert_eq!(read.messages(), conversation.messages(), "what was read is not what was written");
}
