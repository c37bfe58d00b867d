//! The JSON that programs read, with the names that `claude` gives to its members. Pure: what happened
//! becomes a value, and nothing is printed here.
//!
//! One object a line. What a model or tool said is only ever a string or a parsed value in it, so a line is
//! valid JSON whatever that was.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::summary::Summary;
use crate::budget::ModelSpending;
use crate::conversation::{CallResult, Image, Part};
use crate::cost::Cost;
use crate::error::Error;
use crate::provider::{self, Stop, Usage, shown};
use crate::tools::Spec;
use crate::tools::toolbox::Denied;

/// What a turn of the user's begins with.
pub struct Start<'a> {
    /// The run's id.
    pub session_id: &'a str,
    /// The working folder.
    pub folder: &'a Path,
    /// The tools that the model has.
    pub tools: &'a [&'static Spec],
    /// The model asked.
    pub model: &'a str,
    /// `--permission-mode`'s word for the mode.
    pub permission_mode: &'a str,
    /// The variable or flag that the key comes from, or `none`.
    pub key_source: &'a str,
    /// The names of the skills that the model or the user may use.
    pub skills: &'a [String],
}

/// A whole reply, as the conversation keeps it.
pub struct Said<'a> {
    /// Its parts, with the ids that calls really have.
    pub parts: &'a [Part],
    /// Why it ended.
    pub stop: &'a Stop,
    /// What it took.
    pub usage: Usage,
    /// The model that said it.
    pub model: &'a str,
}

/// Another attempt that is about to be waited for.
pub struct Retry<'a> {
    /// Why the last one failed.
    pub error: &'a Error,
    /// Its HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// Which of the further attempts this is, from 1.
    pub attempt: u32,
    /// How many there may be.
    pub most: u32,
    /// How long is waited.
    pub wait: std::time::Duration,
}

/// The line that begins a turn.
pub fn init(start: &Start, uuid: &str) -> Value {
    let tools: Vec<&str> = start.tools.iter().map(|spec| spec.name).collect();
    json!({
        "type": "system",
        "subtype": "init",
        "cwd": start.folder.to_string_lossy(),
        "session_id": start.session_id,
        "tools": tools,
        "mcp_servers": [],
        "model": start.model,
        "permissionMode": start.permission_mode,
        "slash_commands": start.skills,
        "apiKeySource": start.key_source,
        "claude_code_version": env!("CARGO_PKG_VERSION"),
        "output_style": "default",
        "agents": [],
        "skills": start.skills,
        "plugins": [],
        "uuid": uuid,
    })
}

/// The lines of a reply's blocks, each a message of its own with the same id: so `claude` does it, and
/// readers look at the first block of each. Only the last one says why the reply ended.
pub fn assistant(said: &Said, message_id: &str) -> Vec<Value> {
    let mut blocks = said.parts.iter().filter_map(block).peekable();
    let mut lines = Vec::new();
    while let Some(block) = blocks.next() {
        let stop_reason = match blocks.peek() {
            Some(_) => None,
            None => Some(said.stop.word(said.parts)),
        };
        let mut message = message(message_id, said.model, usage(said.usage));
        message["content"] = json!([block]);
        message["stop_reason"] = json!(stop_reason);
        lines.push(json!({"type": "assistant", "message": message, "parent_tool_use_id": null}));
    }
    lines
}

/// A message of the Messages API that has no content yet.
pub fn message(id: &str, model: &str, usage: Value) -> Value {
    json!({
        "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    })
}

/// The line that stands for the answer where the API gave none: what `claude` says in the model's place.
/// Absent where it is not the API that failed.
pub fn api_failure(error: &Error, status: Option<u16>, text: &str, message_id: &str) -> Option<Value> {
    let word = api_error(error, status)?;
    let mut message = message(message_id, "<synthetic>", usage(Usage::default()));
    message["content"] = json!([{"type": "text", "text": text}]);
    message["stop_reason"] = json!("stop_sequence");
    message["stop_sequence"] = json!("");
    Some(json!({"type": "assistant", "message": message, "parent_tool_use_id": null, "error": word}))
}

/// The line of a call's result.
pub fn user(result: &CallResult) -> Value {
    let content = match result.images.as_slice() {
        [] => json!(result.text),
        images => {
            let text = json!({"type": "text", "text": result.text});
            std::iter::once(text).chain(images.iter().map(image)).collect()
        }
    };
    let block = json!({
        "tool_use_id": result.call_id, "type": "tool_result", "content": content, "is_error": result.is_error,
    });
    json!({"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": null})
}

/// The line of a wait before another attempt.
pub fn retry(retry: &Retry) -> Value {
    json!({
        "type": "system",
        "subtype": "api_retry",
        "attempt": retry.attempt,
        "max_retries": retry.most,
        "retry_delay_ms": whole(retry.wait.as_millis()),
        "error_status": retry.status,
        "error": api_error(retry.error, retry.status).unwrap_or("unknown"),
    })
}

/// The line of a conversation whose beginning was summarised.
pub fn compact_boundary(before: u64, after: u64) -> Value {
    json!({
        "type": "system",
        "subtype": "compact_boundary",
        "compact_metadata": {"trigger": "auto", "pre_tokens": before, "post_tokens": after},
    })
}

/// The line of one event of a growing reply.
pub fn stream_event(event: Value) -> Value {
    json!({"type": "stream_event", "event": event, "parent_tool_use_id": null})
}

/// The object that ends a turn. The error comes with its message as it may be shown.
pub fn result(summary: &Summary, error: Option<(&Error, &str)>) -> Value {
    let mut value = json!({
        "type": "result",
        "subtype": error.map_or("success", |(error, _)| subtype(error)),
        "is_error": error.is_some(),
        "api_error_status": error.and(summary.api_error_status),
        "duration_ms": whole(summary.duration_ms),
        "duration_api_ms": whole(summary.duration_api_ms),
        "num_turns": summary.turns,
        "result": summary.text,
        "stop_reason": summary.stop_reason,
        "session_id": summary.session_id,
        "total_cost_usd": summary.total_cost_usd.map(Cost::to_json),
        "usage": usage(summary.usage),
        "modelUsage": model_usage(&summary.models),
        "permission_denials": summary.denied.iter().map(denial).collect::<Vec<_>>(),
    });
    if let Some(output) = &summary.structured_output {
        value["structured_output"] = output.clone();
    }
    match error {
        None => value["terminal_reason"] = json!("completed"),
        Some((error, message)) => {
            if let Some(reason) = terminal_reason(error) {
                value["terminal_reason"] = json!(reason);
            }
            value["errors"] = json!([message]);
            value["error"] = json!({
                "class": error.class(), "code": error.exit_code(), "message": message,
            });
        }
    }
    value
}

/// Tokens, as the Messages API counts them.
pub fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

fn model_usage(models: &[ModelSpending]) -> Value {
    let one = |used: &ModelSpending| {
        let counts = json!({
            "inputTokens": used.usage.input,
            "outputTokens": used.usage.output,
            "cacheReadInputTokens": used.usage.cache_read,
            "cacheCreationInputTokens": used.usage.cache_write,
            "webSearchRequests": 0,
            "costUSD": used.cost.map(Cost::to_json),
        });
        (used.model.clone(), counts)
    };
    Value::Object(models.iter().map(one).collect::<Map<String, Value>>())
}

/// A denied call.
fn denial(denied: &Denied) -> Value {
    json!({"tool_name": denied.tool, "tool_use_id": denied.call_id, "tool_input": denied.input})
}

/// A part as a block of the Messages API; absent where there is nothing to show.
pub fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Call(call) => {
            let input = provider::parse(&call.arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
        }
        Part::Image(picture) => image(picture),
        Part::Vendor(text) => return shown::block(text),
        Part::Result(_) => return None,
    })
}

fn image(image: &Image) -> Value {
    json!({
        "type": "image",
        "source": {"type": "base64", "media_type": image.media_type, "data": image.data},
    })
}

fn subtype(error: &Error) -> &'static str {
    match error {
        Error::Turns(_) => "error_max_turns",
        Error::Cost(_) => "error_max_budget_usd",
        Error::Unfit(_) => "error_max_structured_output_retries",
        _ => "error_during_execution",
    }
}

fn terminal_reason(error: &Error) -> Option<&'static str> {
    match error {
        Error::Turns(_) => Some("max_turns"),
        _ => api_error(error, None).map(|_| "api_error"),
    }
}

/// The word that `claude` has for a failure of the API; absent where something else failed.
fn api_error(error: &Error, status: Option<u16>) -> Option<&'static str> {
    match (error, status) {
        (Error::Refused(_) | Error::Credentials(_) | Error::Overloaded(_), Some(402)) => {
            Some("billing_error")
        }
        (Error::Credentials(_), _) => Some("authentication_failed"),
        (Error::Overloaded(_), Some(429)) => Some("rate_limit"),
        (Error::Overloaded(_), _) => Some("server_error"),
        (Error::Refused(_), _) => Some("invalid_request"),
        (Error::Network(_) | Error::Malformed(_), _) => Some("unknown"),
        _ => None,
    }
}

/// A number of milliseconds as JSON has it.
fn whole(milliseconds: u128) -> u64 {
    u64::try_from(milliseconds).unwrap_or(u64::MAX)
}
