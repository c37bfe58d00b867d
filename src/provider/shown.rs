//! What of a vendor's own data is shown to programs: thinking, as the Messages API has it, whichever API it
//! came from.

use std::borrow::Cow;

use serde_json::{Value, json};

/// The block that vendor data is; absent where it holds nothing to show.
pub fn block(text: &str) -> Option<Value> {
    let mut data = super::parse(text).ok()?;
    if data["type"].is_string() {
        // Readers want the member, though imitations send no signature.
        if data["type"] == "thinking" && data["signature"].is_null() {
            data["signature"] = json!("");
        }
        return Some(data);
    }
    let thinking = match data["reasoning_content"].as_str() {
        Some(text) => text.to_owned(),
        None => details(data["reasoning_details"].as_array().map_or(&[], Vec::as_slice)),
    };
    (!thinking.is_empty()).then(|| json!({"type": "thinking", "thinking": thinking, "signature": ""}))
}

/// The text of OpenRouter's items of reasoning.
fn details(items: &[Value]) -> String {
    items.iter().filter_map(detail).collect::<Vec<_>>().join("\n")
}

/// The text of one of them.
pub fn detail(item: &Value) -> Option<&str> {
    item["text"].as_str().or(item["summary"].as_str())
}

/// A block of a reply in progress, as much of it as has come.
pub enum Growing<'a> {
    /// The model's thinking, and the signature at its end.
    Thinking(Cow<'a, str>, &'a str),
    /// A part of the answer.
    Text(&'a str),
    /// A call.
    Call {
        /// Its id; empty where none has come.
        id: &'a str,
        /// The tool's name.
        name: &'a str,
        /// The JSON text of its arguments.
        arguments: &'a str,
    },
    /// A block of another kind, as JSON text; absent while more of it may come.
    Other(Option<&'a str>),
}
