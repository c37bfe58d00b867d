//! One test for each oddity of real servers that concerns the loop: a whole exchange is replayed, and
//! what the next request and the output hold is compared with what a robust client makes of it.
//!
//! The number in a name is the quirk's number in the table of `fixtures/README.md`.

mod calls;
mod ends;
mod errors;
mod messages;
mod transport;

use serde_json::Value;

use crate::story::{Outcome, Story};

const PROMPT: &str = "When did the bridge open? It is in notes.txt.";
const NOTES: &str = "The bridge opened in 1932.";
const OTHER: &str = "The tunnel opened in 1954.";
const THIRD: &str = "The ferry stopped in 1955.";

/// What most exchanges end with.
const ANSWER: &str = "The bridge opened in 1932.\n";

/// The story of a quirk of Chat Completions.
fn chat(fixture: &str) -> Story {
    story(fixture).openai()
}

/// The story of a quirk of Anthropic Messages.
fn messages(fixture: &str) -> Story {
    story(fixture).anthropic()
}

fn story(fixture: &str) -> Story {
    bare(fixture).exchange(&folder(fixture)).args(&["-p", PROMPT])
}

/// A story without replies and arguments yet.
fn bare(fixture: &str) -> Story {
    let line = |text: &str| format!("{text}\n");
    let (notes, other, third) = (line(NOTES), line(OTHER), line(THIRD));
    Story::new(fixture).files(&[("notes.txt", &notes), ("other.txt", &other), ("third.txt", &third)])
}

fn folder(fixture: &str) -> String {
    format!("fixtures/quirks/{fixture}")
}

/// A call with its result, as the history of a request tells it.
#[derive(Debug, PartialEq)]
struct Told {
    id: String,
    name: String,
    /// The arguments as compact JSON, whichever way the API carries them.
    arguments: String,
    /// The result without the line end of the last line.
    result: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// All calls in a Chat Completions body with their results; `check.rs` has seen that they pair up.
fn told(body: &Value) -> Vec<Told> {
    let messages = body["messages"].as_array().unwrap();
    let results: Vec<_> = messages.iter().filter(|message| message["role"] == "tool").collect();
    let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
    let pairs = calls.zip(results).map(|(call, result)| {
        let arguments: Value = serde_json::from_str(&text(&call["function"]["arguments"])).unwrap();
        Told {
            id: text(&call["id"]),
            name: text(&call["function"]["name"]),
            arguments: arguments.to_string(),
            result: text(&result["content"]).trim_end().to_owned(),
        }
    });
    pairs.collect()
}

/// All blocks of one type in a Messages body.
fn blocks(body: &Value, kind: &str) -> Vec<Value> {
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == kind).cloned().collect()
}

/// The text of a `tool_result` block without the line end of the last line.
fn result_text(block: &Value) -> String {
    let text = match &block["content"] {
        Value::Array(parts) => parts.iter().map(|part| text(&part["text"])).collect(),
        content => text(content),
    };
    text.trim_end().to_owned()
}

/// The first assistant message of a body.
fn assistant(body: &Value) -> Value {
    let messages = body["messages"].as_array().unwrap();
    messages.iter().find(|message| message["role"] == "assistant").unwrap().clone()
}

fn read(id: &str, file: &str, result: &str) -> Told {
    let arguments = format!(r#"{{"file_path":"{file}"}}"#);
    Told { id: id.to_owned(), name: "Read".to_owned(), arguments, result: result.to_owned() }
}

/// The run read these files in this order, each once, and went on to the usual answer.
#[track_caller]
fn reads_and_answers(outcome: &Outcome, files: &[(&str, &str)]) {
    outcome.code(0).stdout(ANSWER);
    let told = told(&outcome.body(outcome.requests.len()));
    let found: Vec<_> = told.iter().map(|call| (&*call.name, &*call.arguments, &*call.result)).collect();
    let arguments: Vec<_> = files.iter().map(|(file, _)| format!(r#"{{"file_path":"{file}"}}"#)).collect();
    let results = files.iter().map(|(_, result)| *result);
    let expected: Vec<_> = arguments.iter().zip(results).map(|(a, r)| ("Read", &**a, r)).collect();
    outcome.equal(found, expected);
}
