//! A conversation read back from its lines of JSON.
//!
//! What is read can be sent, whatever the lines hold: each call has one result, each result its call, each id is
//! unique. What cannot be taken in is counted and left out, never an error: the file keeps it.

use std::collections::VecDeque;

use serde_json::Value;

use super::{Call, CallResult, Conversation, Image, Part, Role, cuts};
use crate::provider::is_too_deep;

/// The result of a call whose own was never kept.
pub const INTERRUPTED: &str = "interrupted: the run ended before the result of this call was kept. It may have run \
    in part, wholly or not at all: look before you make it again";

/// How many kinds of what is left out are told apart.
const MOST_KINDS: usize = 20;

/// What the user is taken to have said before a reply that nothing stands before.
const LOST_BEGINNING: &str = "(the beginning of this conversation is lost)";

/// A conversation that is being read.
#[derive(Default)]
pub struct Reading {
    conversation: Conversation,
    /// The calls that have no result yet: the id that the lines have for each, and the one in the conversation.
    open: VecDeque<(String, String)>,
    /// What could not be taken in, each with how often.
    left_out: Vec<(String, usize)>,
}

impl Reading {
    /// Takes in a line, with or without its end.
    pub fn line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let parsed = str::from_utf8(line).ok().and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(value) = parsed else {
            return self.leave_out("a damaged line".to_owned());
        };
        if value["type"] == cuts::LINE {
            return self.compaction(&value);
        }
        let Value::Array(parts) = &value["parts"] else {
            return self.leave_out(format!("a line of the type {}", shown(&value["type"])));
        };
        match value["type"].as_str() {
            Some("user") => self.user(parts),
            Some("assistant") => self.assistant(parts, value["origin"].as_str()),
            _ => self.leave_out(format!("a line of the type {}", shown(&value["type"]))),
        }
    }

    /// The conversation, and what was left out of it, each with how often. What stands in the lines counts as
    /// handed out; results of calls that were interrupted at the end do not.
    pub fn finish(mut self) -> (Conversation, Vec<(String, usize)>) {
        let messages = &self.conversation.messages;
        self.conversation.handed_out =
            messages.last().map_or((0, 0), |last| (messages.len() - 1, last.parts.len()));
        self.answer_open();
        self.conversation.open.clear();
        (self.conversation, self.left_out)
    }

    /// What had given way in the run that wrote the line gives way again.
    fn compaction(&mut self, value: &Value) {
        let names = |list: &'_ [Value]| -> Vec<String> {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        if let Value::Array(calls) = &value["cut"] {
            let calls = names(calls);
            self.conversation.cut_results(&calls.iter().map(String::as_str).collect());
            return;
        }
        self.answer_open();
        let parts: Result<Vec<Part>, _> =
            value["parts"].as_array().into_iter().flatten().map(|value| part(value, Role::User)).collect();
        let kept = value["kept"].as_u64().and_then(|kept| usize::try_from(kept).ok());
        let done = match (parts, kept) {
            (Ok(parts), Some(kept)) => self.conversation.begin_with(parts, kept),
            _ => Err(()),
        };
        if done.is_err() {
            self.leave_out("a compaction that does not fit".to_owned());
        }
    }

    fn user(&mut self, parts: &[Value]) {
        for value in parts {
            match part(value, Role::User) {
                Ok(Part::Result(result)) => self.result(result),
                Ok(part) => {
                    // Results come first in a message: the ones that are missing here never came.
                    self.answer_open();
                    self.conversation.add_user(vec![part]);
                }
                Err(what) => self.leave_out(what),
            }
        }
    }

    fn result(&mut self, result: CallResult) {
        match self.open.iter().position(|(written, _)| *written == result.call_id) {
            Some(index) => {
                if let Some((_, call_id)) = self.open.remove(index) {
                    self.conversation.add_user(vec![Part::Result(CallResult { call_id, ..result })]);
                }
            }
            None => self.leave_out("a result without its call".to_owned()),
        }
    }

    fn assistant(&mut self, parts: &[Value], origin: Option<&str>) {
        let mut taken = Vec::new();
        for value in parts {
            match part(value, Role::Assistant) {
                Ok(part) => taken.push(part),
                Err(what) => self.leave_out(what),
            }
        }
        if taken.is_empty() {
            return;
        }
        self.answer_open();
        if self.conversation.messages.is_empty() {
            self.conversation.add_user(LOST_BEGINNING);
        }
        let written: Vec<String> = calls(&taken).map(|call| call.id.clone()).collect();
        let calls = self.conversation.push_reply(taken, origin.map(str::to_owned));
        self.open = written.into_iter().zip(calls.into_iter().map(|call| call.id)).collect();
    }

    fn answer_open(&mut self) {
        for (_, call_id) in std::mem::take(&mut self.open) {
            let text = INTERRUPTED.to_owned();
            let result = CallResult { call_id, text, images: Vec::new(), is_error: true };
            self.conversation.add_user(vec![Part::Result(result)]);
        }
    }

    fn leave_out(&mut self, what: String) {
        let known = self.left_out.iter().position(|(known, _)| *known == what);
        match known {
            Some(index) => self.left_out[index].1 += 1,
            // A file of others' making may have any number of types.
            None if self.left_out.len() < MOST_KINDS => self.left_out.push((what, 1)),
            None => {}
        }
    }
}

fn calls(parts: &[Part]) -> impl Iterator<Item = &Call> {
    parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    })
}

/// Reads a part that this speaker may say. Errors: what it is instead.
fn part(value: &Value, role: Role) -> Result<Part, String> {
    let kind = value["type"].as_str();
    let part = match (role, kind) {
        (_, Some("text")) => value["text"].as_str().map(|text| Part::Text(text.to_owned())),
        (Role::User, Some("image")) => Image::from_json(value).ok().map(Part::Image),
        (Role::User, Some("result")) => result(value),
        (Role::Assistant, Some("call")) => call(value),
        (Role::Assistant, Some("vendor")) => {
            value["json"].as_str().filter(|text| is_object(text)).map(|text| Part::Vendor(text.to_owned()))
        }
        _ => return Err(format!("a part of the type {}", shown(&value["type"]))),
    };
    part.ok_or_else(|| format!("a damaged part of the type {}", shown(&value["type"])))
}

fn result(value: &Value) -> Option<Part> {
    let images = match &value["images"] {
        Value::Null => Vec::new(),
        images => images.as_array()?.iter().map(Image::from_json).collect::<Result<_, _>>().ok()?,
    };
    Some(Part::Result(CallResult {
        call_id: value["call_id"].as_str()?.to_owned(),
        text: value["text"].as_str()?.to_owned(),
        images,
        is_error: value["is_error"].as_bool()?,
    }))
}

fn call(value: &Value) -> Option<Part> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    Some(Part::Call(Call {
        id: text("id")?,
        name: text("name")?,
        // Both stand in a request as they are: what is no JSON would spoil all of it.
        arguments: text("arguments").filter(|arguments| is_object(arguments))?,
        extra: match text("extra") {
            Some(members) if !is_object(&format!("{{{members}}}")) => return None,
            extra => extra,
        },
        refusal: text("refusal"),
    }))
}

/// Whether a text is an object that a request can hold and any reader of that can read: not too deep, and without
/// numbers that are JSON alone, such as 1e999.
fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && !is_too_deep(text) && serde_json::from_str::<Value>(text).is_ok()
}

/// A type as a message quotes it.
fn shown(kind: &Value) -> String {
    kind.to_string().chars().take(40).collect()
}

#[cfg(test)]
mod tests;
