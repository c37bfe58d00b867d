//! What the two sides say, in the shape of either API: replies made up on the spot, as a stream of events,
//! and the parts of a request that tell what the program made of them.
//!
//! Replies that are worth a look of their own are files under `fixtures/`.

use serde_json::{Value, json};

use crate::check::Api;
use crate::server::Reply;

/// Both APIs, for stories that are the same in both.
pub const BOTH: [Api; 2] = [Api::Anthropic, Api::OpenAi];

/// The program's tools, in the order in which they are offered.
pub const TOOLS: [&str; 11] = [
    "Read",
    "Write",
    "Edit",
    "Glob",
    "Grep",
    "Bash",
    "BashOutput",
    "KillShell",
    "get_current_datetime",
    "add_duration_to_datetime",
    "get_exchange_rate",
];

/// A call that a made-up reply asks for: its id, the tool's name, and the arguments as JSON text.
pub type Call<'a> = (&'a str, &'a str, &'a str);

/// A reply that is an answer.
pub fn answer(api: Api, text: &str) -> Reply {
    ends(api, text, &[], if api == Api::Anthropic { "end_turn" } else { "stop" })
}

/// A reply that asks for calls.
pub fn asks(api: Api, text: &str, calls: &[Call]) -> Reply {
    ends(api, text, calls, if api == Api::Anthropic { "tool_use" } else { "tool_calls" })
}

/// A reply that ends with this word of the API's.
pub fn ends(api: Api, text: &str, calls: &[Call], word: &str) -> Reply {
    match api {
        Api::Anthropic => {
            let said = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            let calls = calls.iter().map(|(id, name, arguments)| {
                // The input stays text: one that was cut is no JSON.
                json!({"type": "tool_use", "id": id, "name": name, "input": arguments})
            });
            let blocks: Vec<Value> = said.into_iter().chain(calls).collect();
            messages(&blocks, &json!({"stop_reason": word, "stop_sequence": null}))
        }
        Api::OpenAi | Api::OpenRouter => chat(text, calls, &json!(word)),
    }
}

/// A stream of Messages with these blocks. The input of a call is its text.
pub fn messages(blocks: &[Value], end: &Value) -> Reply {
    let mut events = vec![json!({"type": "message_start", "message": {
        "id": "msg_01XFDUDYJgAACzvnptvVoY15", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
        "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 2500, "output_tokens": 1}}})];
    for (index, block) in blocks.iter().enumerate() {
        let mut start = block.clone();
        let mut deltas = Vec::new();
        let grows = |member: &str, delta: &str, deltas: &mut Vec<Value>| {
            let whole = block[member].as_str().unwrap_or_default();
            for piece in halves(whole) {
                deltas.push(json!({"type": delta, delta_member(delta): piece}));
            }
        };
        match block["type"].as_str() {
            Some("text") => {
                start["text"] = json!("");
                grows("text", "text_delta", &mut deltas);
            }
            Some("thinking") => {
                (start["thinking"], start["signature"]) = (json!(""), json!(""));
                grows("thinking", "thinking_delta", &mut deltas);
                grows("signature", "signature_delta", &mut deltas);
            }
            Some("tool_use" | "server_tool_use") => {
                start["input"] = json!({});
                grows("input", "input_json_delta", &mut deltas);
            }
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(
            deltas.iter().map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": 40}}));
    events.push(json!({"type": "message_stop"}));
    let body: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default()))
        .collect();
    Reply::new(200, "text/event-stream; charset=utf-8", body)
}

fn delta_member(delta: &str) -> &'static str {
    match delta {
        "text_delta" => "text",
        "thinking_delta" => "thinking",
        "signature_delta" => "signature",
        _ => "partial_json",
    }
}

fn chat(text: &str, calls: &[Call], word: &Value) -> Reply {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    deltas.extend(halves(text).into_iter().map(|piece| json!({"content": piece})));
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        deltas.push(json!({"tool_calls": [
            {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}));
        deltas.extend(
            halves(arguments)
                .into_iter()
                .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})),
        );
    }
    let mut chunks: Vec<Value> = deltas.into_iter().map(|delta| chunk(&delta, &Value::Null)).collect();
    chunks.push(chunk(&json!({}), word));
    let mut body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    body.push_str("data: [DONE]\n\n");
    Reply::new(200, "text/event-stream", body)
}

/// A stream of Chat Completions that ends with `[DONE]` and no reason.
pub fn chat_without_reason(text: &str) -> Reply {
    chat(text, &[], &Value::Null)
}

fn chunk(delta: &Value, finish_reason: &Value) -> Value {
    json!({"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJ93", "object": "chat.completion.chunk",
        "created": 1_787_309_000, "model": "test-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

/// Two pieces of a text, none if it is empty.
fn halves(text: &str) -> Vec<&str> {
    let middle = (text.len() / 2..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let (first, second) = text.split_at(middle);
    [first, second].into_iter().filter(|piece| !piece.is_empty()).collect()
}

/// The body's results of calls, in order: the call's id, the text, and whether it is marked as an error.
/// Chat Completions has no mark: there the text begins with a word that says it, which is taken off here.
pub fn results(api: Api, body: &Value) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = body["messages"].as_array().expect("a request has messages").iter();
    if api == Api::Anthropic {
        let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
        let results = blocks.filter(|block| block["type"] == "tool_result");
        let results = results.map(|block| {
            (text(&block["tool_use_id"]), text(&block["content"]), block["is_error"] == json!(true))
        });
        return results.collect();
    }
    let results = messages.filter(|message| message["role"] == "tool");
    let results = results.map(|message| {
        let content = text(&message["content"]);
        let id = text(&message["tool_call_id"]);
        match content.strip_prefix("Error: ") {
            Some(why) => (id, why.to_owned(), true),
            None => (id, content, false),
        }
    });
    results.collect()
}

/// The text of the last message of a body, which is the user's.
pub fn last_text(body: &Value) -> String {
    let messages = body["messages"].as_array().expect("a request has messages");
    match &messages.last().expect("there is a message")["content"] {
        Value::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            texts.map(|block| block["text"].as_str().unwrap_or_default()).collect::<Vec<_>>().join("\n\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}
