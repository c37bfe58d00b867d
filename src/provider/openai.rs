//! Chat Completions: its JSON, its stream, and the many ways in which servers depart from it.
//!
//! Pure. Only what a server needs back is sent back: role, content, calls and the one reasoning member it
//! asks for, as strict servers refuse the rest of their own replies.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::json::{pick, without_nul};
use super::said::Said;
use super::shown::{Growing, detail};
use super::{
    ALPHANUMERIC, ApiError, Fault, Host, Reply, Settings, Spent, Stated, Stop, Usage, excerpt, finish_call,
    hashed_id, is_too_deep, legal_name, number, parse, plain_name, push_string, result_text, shown_images,
    static_mark, thinking,
};
use crate::conversation::{CallResult, Image, Message, Part, Role, texts};
use crate::cost::Cost;
use crate::sse;

/// The body up to the messages, the system message included.
pub fn head(settings: &Settings) -> String {
    let learnt = &settings.learnt;
    let mut head = String::from(r#"{"model":"#);
    push_string(&mut head, &settings.model);
    head.push_str(r#","stream":true"#);
    if !learnt.no_stream_options {
        head.push_str(r#","stream_options":{"include_usage":true}"#);
    }
    // Where none is asked for, a server's own limit may be more than is left beside a long prompt.
    if let Some(wished) = settings.max_output_tokens.or(learnt.room) {
        let limit = settings.output_limit(wished);
        // OpenAI's newer models know only the long name, most other servers only the short one.
        let long = (settings.host == Host::OpenAi) != learnt.other_limit_name;
        let name = if long { "max_completion_tokens" } else { "max_tokens" };
        head.push_str(&format!(r#","{name}":{limit}"#));
    }
    head.push_str(&thinking::completions_members(settings));
    if let Some(temperature) = settings.temperature {
        head.push_str(&format!(r#","temperature":{}"#, json!(temperature)));
    }
    if !settings.stop.is_empty() {
        head.push_str(&format!(r#","stop":{}"#, json!(settings.stop)));
    }
    let tools = settings.offered();
    if !tools.is_empty() {
        head.push_str(r#","tools":["#);
        for (index, tool) in tools.iter().enumerate() {
            head.push_str(if index > 0 { "," } else { "" });
            head.push_str(r#"{"type":"function","function":{"name":"#);
            push_string(&mut head, tool.name);
            head.push_str(r#","description":"#);
            push_string(&mut head, tool.description);
            head.push_str(r#","parameters":"#);
            head.push_str(&without_nul(tool.schema));
            head.push_str("}}");
        }
        head.push(']');
    }
    if let Some(schema) = settings.native_answer() {
        head.push_str(r#","response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":"#);
        head.push_str(&without_nul(schema));
        head.push_str("}}");
    }
    head.push_str(r#","messages":["#);
    if !settings.system.is_empty() {
        head.push_str(r#"{"role":"system","content":"#);
        if settings.claude_through_openrouter() {
            head.push_str(r#"[{"type":"text","text":"#);
            push_string(&mut head, &settings.system);
            head.push_str(static_mark(settings));
            head.push_str("}]}");
        } else {
            push_string(&mut head, &settings.system);
            head.push('}');
        }
    }
    head
}

/// The JSON text of one message (of several, joined by commas, where it holds results), empty if nothing
/// of it can be sent, and where a cache mark may be put.
pub fn message(settings: &Settings, message: &Message, vendor_returns: bool) -> (String, Option<usize>) {
    match message.role {
        Role::User => user(settings, message),
        Role::Assistant => (assistant(settings, message, vendor_returns), None),
    }
}

fn user(settings: &Settings, message: &Message) -> (String, Option<usize>) {
    let marked = settings.claude_through_openrouter();
    let mut text = String::new();
    // Images are taken in a user's message alone, which may come only after all results.
    let mut shown: Vec<String> = Vec::new();
    for part in &message.parts {
        if let Part::Result(result) = part {
            let said = result_text(settings, result);
            let mut id = String::new();
            push_string(&mut id, &legal_id(settings, &result.call_id));
            begin_message(&mut text, r#"{"role":"tool","tool_call_id":"#);
            text.push_str(&id);
            text.push_str(r#","content":"#);
            // There is no error flag: the text has to say it.
            match result.is_error && !said.starts_with("Error") {
                true => push_content(&mut text, &format!("Error: {said}"), marked),
                false => push_content(&mut text, &said, marked),
            }
            text.push('}');
            shown.extend(image_parts(result, shown_images(settings, result), &id));
        }
    }
    let texts = texts(&message.parts);
    let own_images = message.parts.iter().any(|part| matches!(part, Part::Image(_)));
    if !shown.is_empty() || own_images {
        shown.extend(message.parts.iter().filter_map(|part| said_part(settings, part)));
    }
    if settings.host == Host::Mistral && !text.is_empty() && !(texts.is_empty() && shown.is_empty()) {
        begin_message(&mut text, r#"{"role":"assistant","content":"Understood."}"#);
    }
    if !shown.is_empty() {
        begin_message(&mut text, r#"{"role":"user","content":["#);
        text.push_str(&shown.join(","));
        text.push_str("]}");
    } else if !texts.is_empty() {
        begin_message(&mut text, r#"{"role":"user","content":"#);
        push_content(&mut text, &texts.join("\n\n"), marked);
        text.push('}');
    }
    // A mark is taken on a part of text alone; what of a message stands behind it is little.
    let mark_at = match shown.iter().rposition(|part| part.starts_with(TEXT_PART)) {
        _ if !marked || text.is_empty() => None,
        None if !shown.is_empty() => None,
        None => Some(text.len() - "}]}".len()),
        Some(last) => {
            let behind: usize = shown[last + 1..].iter().map(|part| part.len() + 1).sum();
            Some(text.len() - "}]}".len() - behind)
        }
    };
    (text, mark_at)
}

/// Adds the beginning of a message behind those that are there.
fn begin_message(text: &mut String, start: &str) {
    text.push_str(if text.is_empty() { "" } else { "," });
    text.push_str(start);
}

/// What the user says or shows, as a part of content.
fn said_part(settings: &Settings, part: &Part) -> Option<String> {
    match (part, settings.learnt.no_images) {
        (Part::Text(text), _) => Some(text_part(text)),
        (Part::Image(image), None) => Some(image_part(image)),
        (Part::Image(_), Some(why)) => Some(text_part(&why.in_place())),
        _ => None,
    }
}

fn image_part(image: &Image) -> String {
    let Image { media_type, data } = image;
    format!(r#"{{"type":"image_url","image_url":{{"url":"data:{media_type};base64,{data}"}}}}"#)
}

/// How much is told again of the result that images belong to.
const MOST_LABEL_LETTERS: usize = 200;

/// The images of a result as a user shows them, after a text that says where they come from.
fn image_parts(result: &CallResult, images: &[Image], id: &str) -> Vec<String> {
    if images.is_empty() {
        return Vec::new();
    }
    let line = result.text.lines().next().unwrap_or_default();
    let mut what: String = line.chars().take(MOST_LABEL_LETTERS).collect();
    if what.len() < line.len() {
        what.push('…');
    }
    let mut parts = vec![text_part(&format!("[shown by the call {id}: {what}]"))];
    parts.extend(images.iter().map(image_part));
    parts
}

const TEXT_PART: &str = r#"{"type":"text","text":"#;

fn text_part(text: &str) -> String {
    let mut part = TEXT_PART.to_owned();
    push_string(&mut part, text);
    part + "}"
}

fn push_content(out: &mut String, text: &str, in_parts: bool) {
    match in_parts {
        true => out.extend(["[", &text_part(text), "]"]),
        false => push_string(out, text),
    }
}

fn assistant(settings: &Settings, message: &Message, vendor_returns: bool) -> String {
    let said = message.text();
    let calls_any = message.calls().next().is_some();
    if said.trim().is_empty() && !calls_any {
        return String::new();
    }
    let mut text = String::with_capacity(said.len() + 256);
    text.push_str(r#"{"role":"assistant","content":"#);
    match said.trim().is_empty() {
        // Gateways to Claude refuse an empty string here, LM Studio and Ollama refuse null.
        true if settings.learnt.empty_string_content => text.push_str(r#""""#),
        true => text.push_str("null"),
        false => push_string(&mut text, &said),
    }
    let mut reasoning = false;
    if vendor_returns {
        for part in &message.parts {
            if let Part::Vendor(members) = part {
                let (required_only, members) = unwrap_vendor(members);
                if !required_only || calls_any {
                    reasoning |= members.starts_with(r#""reasoning_content""#);
                    text.push(',');
                    text.push_str(members);
                }
            }
        }
    }
    let required = settings.learnt.reasoning_required || settings.host == Host::DeepSeek;
    if calls_any && required && !reasoning {
        text.push_str(r#","reasoning_content":"""#);
    }
    if calls_any {
        text.push_str(r#","tool_calls":["#);
        for (index, call) in message.calls().enumerate() {
            text.push_str(if index > 0 { r#",{"id":"# } else { r#"{"id":"# });
            push_string(&mut text, &legal_id(settings, &call.id));
            text.push_str(r#","type":"function","function":{"name":"#);
            push_string(&mut text, &legal_name(&call.name));
            text.push_str(r#","arguments":"#);
            push_string(&mut text, &without_nul(&call.arguments));
            text.push('}');
            if let (Some(extra), true) = (&call.extra, vendor_returns) {
                text.push(',');
                text.push_str(extra);
            }
            text.push('}');
        }
        text.push(']');
    }
    text.push('}');
    text
}

/// Vendor data of this API is one JSON object with the member that goes back. `reasoning_content` is
/// wanted (and by some servers accepted) only beside calls.
fn unwrap_vendor(object: &str) -> (bool, &str) {
    let members = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(object);
    (members.starts_with(r#""reasoning_content""#), members)
}

/// The id as the destination takes it: nine letters or digits for Mistral, as it came for Moonshot, at
/// most forty characters elsewhere.
fn legal_id<'a>(settings: &Settings, id: &'a str) -> Cow<'a, str> {
    match settings.host {
        Host::Mistral if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Cow::Borrowed(id)
        }
        Host::Mistral => Cow::Owned(hashed_id(id, ALPHANUMERIC, 9)),
        Host::Moonshot => Cow::Borrowed(id),
        // Two ids that differ in it alone would be one without it.
        _ if id.len() <= 40 && !id.contains('\0') => Cow::Borrowed(id),
        _ => Cow::Owned(format!("call_{}", hashed_id(id, ALPHANUMERIC, 10))),
    }
}

#[derive(Default)]
struct HalfCall {
    id: String,
    name: String,
    arguments: String,
    /// `extra_content`, where there is any.
    extra: Value,
}

/// A reply being built from the stream's chunks or from one document.
#[derive(Default)]
pub struct Reader {
    text: Said,
    refusal: String,
    reasoning_content: Option<String>,
    details: Vec<Value>,
    /// The text of all of them while they come in order, as it is shown.
    details_text: String,
    /// Whether one of them has a text.
    has_detail: bool,
    /// Whether an earlier one has gained text behind a later one: then the rest is shown with the whole reply.
    is_out_of_order: bool,
    /// Where in `details` the item with this index and type is.
    places: BTreeMap<(String, String), usize>,
    calls: Vec<HalfCall>,
    /// Where in `calls` the last one with this index is.
    by_index: BTreeMap<u64, usize>,
    /// Where the first one with this id is.
    by_id: BTreeMap<String, usize>,
    finish_reason: Option<String>,
    usage: Usage,
    cost: Stated,
    has_choice: bool,
    /// The first event that is none of this API's.
    foreign: Option<String>,
    done: bool,
}

impl Reader {
    /// Takes one event of the stream.
    pub fn event(&mut self, event: &sse::Event) -> Result<(), Fault> {
        let data = event.data.trim();
        if data.starts_with("[DONE]") {
            self.done = true;
            return Ok(());
        }
        let value = parse(data)?;
        if event.kind == "error" && value.get("error").is_none() {
            return Err(Fault::Api(ApiError::from_value(&value)));
        }
        self.take(&value, "delta")?;
        let is_ours = value.as_object().is_some_and(|members| {
            members.keys().any(|name| matches!(name.as_str(), "choices" | "usage" | "x_groq"))
        });
        let says_nothing = value["type"] == "ping" || value.as_object().is_some_and(Map::is_empty);
        if !is_ours && !says_nothing && self.foreign.is_none() {
            self.foreign = Some(excerpt(data));
        }
        Ok(())
    }

    /// Takes a whole reply in one document.
    pub fn document(&mut self, text: &str) -> Result<(), Fault> {
        let value = parse(text)?;
        if !value.is_object() {
            return Err(Fault::Malformed(format!("a reply that is no object: {}", excerpt(text))));
        }
        self.take(&value, "message")?;
        if !self.has_choice && value.get("choices").is_none() {
            let known = value.get("object").is_some() || value.get("id").is_some();
            return Err(match known {
                true => Fault::Hollow,
                false => Fault::Malformed(format!("a reply without \"choices\": {}", excerpt(text))),
            });
        }
        self.done = true;
        Ok(())
    }

    /// Whether `[DONE]` was seen. A finish reason alone is not the end: the usage may follow.
    pub fn is_over(&self) -> bool {
        self.done
    }

    /// What has been reported so far.
    pub fn spent(&self) -> Spent {
        Spent { usage: self.usage, stated: self.cost.clone() }
    }

    /// Whether the reason of the end was seen, or `[DONE]`.
    pub fn is_whole(&self) -> bool {
        self.done || self.finish_reason.is_some()
    }

    /// The text so far, but for a thinking block at its beginning.
    pub fn visible_text(&self) -> &str {
        self.text.visible_without_thinking()
    }

    /// The thinking and the text so far, and of the calls so many from this number on.
    pub fn growing(&self, from: u64, most: usize) -> Vec<(u64, Growing<'_>)> {
        let thinking = match (&self.reasoning_content, self.details.is_empty()) {
            (_, false) => self.details_text.as_str(),
            (Some(reasoning), true) => reasoning.as_str(),
            (None, true) => "",
        };
        let mut growing = vec![
            (0, Growing::Thinking(Cow::Borrowed(thinking), "")),
            (1, Growing::Text(self.visible_text())),
        ];
        let first = usize::try_from(from.saturating_sub(2)).unwrap_or(usize::MAX);
        growing.extend(self.calls.iter().zip(2..).skip(first).take(most).map(|(call, number)| {
            let HalfCall { id, name, arguments, .. } = call;
            (number, Growing::Call { id, name: plain_name(name), arguments })
        }));
        growing
    }

    fn take(&mut self, value: &Value, member: &str) -> Result<(), Fault> {
        if let Some(error) = ApiError::inside(value) {
            return Err(Fault::Api(error));
        }
        let [usage, x_groq, choices] = pick(value, ["usage", "x_groq", "choices"]);
        self.take_usage(usage);
        self.take_usage(&x_groq["usage"]);
        // One choice is asked for; where a server gives several, the others are no part of the reply.
        let mut choices = choices.as_array().into_iter().flatten();
        let Some(choice) = choices.find(|choice| number(&choice["index"]).unwrap_or(0) == 0) else {
            return Ok(());
        };
        self.has_choice = true;
        let [usage, error, reason, said, message] =
            pick(choice, ["usage", "error", "finish_reason", member, "message"]);
        self.take_usage(usage);
        if !error.is_null() {
            return Err(Fault::Api(ApiError::from_value(choice)));
        }
        if let Some(reason) = reason.as_str().filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason.to_owned());
        }
        // Some servers put `message` where `delta` belongs, in the last chunk.
        let delta = match said {
            Value::Null if self.text.is_empty() && self.calls.is_empty() => message,
            said => said,
        };
        let [content, refusal, reasoning, details, calls, function] = pick(
            delta,
            ["content", "refusal", "reasoning_content", "reasoning_details", "tool_calls", "function_call"],
        );
        self.take_content(content);
        if let Some(refusal) = refusal.as_str() {
            self.refusal.push_str(refusal);
        }
        // Only this member ever goes back as it is; other names for reasoning are for display.
        if let Some(piece) = reasoning.as_str() {
            self.reasoning_content.get_or_insert_default().push_str(piece);
        }
        for detail in details.as_array().into_iter().flatten() {
            self.take_detail(detail);
        }
        for fragment in calls.as_array().into_iter().flatten() {
            self.take_call(fragment);
        }
        if function.is_object() {
            self.take_call(&json!({"index": 0, "function": function}));
        }
        Ok(())
    }

    fn take_content(&mut self, content: &Value) {
        match content {
            Value::String(piece) => self.text.push(piece),
            // Mistral's thinking parts are for display; the text parts are the answer.
            Value::Array(parts) => {
                for part in parts {
                    self.text.push(part["text"].as_str().or(part.as_str()).unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    /// Joins the fragments of one item of OpenRouter's reasoning; different items are never merged.
    fn take_detail(&mut self, fragment: &Value) {
        let place = match &fragment["index"] {
            Value::Null => None,
            index => {
                let item = (index.to_string(), fragment["type"].to_string());
                Some(*self.places.entry(item).or_insert(self.details.len()))
            }
        };
        let is_last = place.is_none_or(|at| at + 1 >= self.details.len());
        let item = place.and_then(|at| self.details.get_mut(at)).filter(|item| item.is_object());
        let before = item.as_deref().and_then(detail).map(str::len);
        let item = match (item, fragment) {
            (Some(item), Value::Object(fragment)) => {
                join(item, fragment);
                &*item
            }
            _ => {
                self.details.push(fragment.clone());
                fragment
            }
        };
        match (before, detail(item)) {
            (Some(before), Some(after)) if after.len() <= before => {}
            (_, None) => {}
            _ if !is_last || self.is_out_of_order => self.is_out_of_order = true,
            (Some(before), Some(after)) => {
                self.details_text.push_str(after.get(before..).unwrap_or_default())
            }
            (None, Some(after)) => {
                if std::mem::replace(&mut self.has_detail, true) {
                    self.details_text.push('\n');
                }
                self.details_text.push_str(after);
            }
        }
    }

    fn take_call(&mut self, fragment: &Value) {
        let [index, id, function, extra] = pick(fragment, ["index", "id", "function", "extra_content"]);
        let [name, arguments] = pick(function, ["name", "arguments"]);
        let (index, id) = (number(index), id.as_str().unwrap_or_default());
        let name = name.as_str().unwrap_or_default();
        let known = match index {
            // A new id under an index in use is a new call: some servers send index 0 for all.
            Some(index) => self
                .by_index
                .get(&index)
                .copied()
                .filter(|at| id.is_empty() || self.calls[*at].id.is_empty() || self.calls[*at].id == id),
            None if !id.is_empty() => self.by_id.get(id).copied(),
            None if !name.is_empty() => None,
            None => self.calls.len().checked_sub(1),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(HalfCall::default());
            self.calls.len() - 1
        });
        if let Some(index) = index {
            self.by_index.insert(index, at);
        }
        if !id.is_empty() && self.calls[at].id.is_empty() {
            self.by_id.entry(id.to_owned()).or_insert(at);
        }
        let call = &mut self.calls[at];
        if call.id.is_empty() {
            call.id.push_str(id);
        }
        if call.name.is_empty() {
            call.name.push_str(name);
        } else if call.arguments.is_empty() && name != call.name {
            // The name itself came in pieces.
            call.name.push_str(name);
        }
        match arguments {
            Value::String(piece) => call.arguments.push_str(piece),
            Value::Null => {}
            whole => call.arguments = whole.to_string(),
        }
        if call.extra.is_null() {
            call.extra = extra.clone();
        }
    }

    /// Totals so far replace what was known: many servers repeat them with every chunk.
    fn take_usage(&mut self, usage: &Value) {
        if !usage.is_object() {
            return;
        }
        let count = |value: &Value| number(value).unwrap_or(0);
        let details = &usage["prompt_tokens_details"];
        let cache_read = count(&details["cached_tokens"]).max(count(&usage["prompt_cache_hit_tokens"]));
        let cache_write = count(&details["cache_write_tokens"]);
        // The prompt's tokens include the cached ones, though some servers report more of these than of all.
        let prompt = count(&usage["prompt_tokens"]);
        self.usage = Usage {
            input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
            cache_write,
            cache_read,
            output: count(&usage["completion_tokens"]),
        };
        self.take_cost(usage);
    }

    /// OpenRouter says what it charges, and beside it what the model's own provider charges whose key it was
    /// given (<https://openrouter.ai/docs/use-cases/usage-accounting>).
    fn take_cost(&mut self, usage: &Value) {
        let amount = |value: &Value| value.as_f64().and_then(Cost::of_number);
        let upstream = match &usage["is_byok"] {
            Value::Bool(true) => &usage["cost_details"]["upstream_inference_cost"],
            _ => &Value::Null,
        };
        self.cost = match (&usage["cost"], upstream) {
            (Value::Null, _) => return,
            (own, Value::Null) => amount(own).map_or_else(|| unusable(own), Stated::Cost),
            (own, upstream) => match (amount(own), amount(upstream)) {
                (Some(own), Some(upstream)) => Stated::Cost(own.plus(upstream)),
                (None, _) => unusable(own),
                (_, None) => unusable(upstream),
            },
        };
    }

    /// The whole reply. A finish reason or `[DONE]` makes it whole; many proxies send only one of them.
    pub fn finish(self) -> Result<Reply, Fault> {
        if let (Some(foreign), false) = (&self.foreign, self.has_choice) {
            return Err(Fault::Malformed(format!(
                "it has no \"choices\", does the server speak another API (--api)? It begins: {foreign}"
            )));
        }
        if !self.done && self.finish_reason.is_none() {
            return Err(Fault::Incomplete);
        }
        if !self.has_choice {
            return Err(Fault::Hollow);
        }
        let mut parts = Vec::new();
        if !self.details.is_empty() {
            let details = json!({"reasoning_details": self.details}).to_string();
            parts.push(Part::Vendor(shallow("reasoning_details", details)?));
        } else if let Some(reasoning) = self.reasoning_content {
            parts.push(Part::Vendor(json!({"reasoning_content": reasoning}).to_string()));
        }
        let text = self.text.without_thinking().unwrap_or_default();
        if !text.trim().is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        for call in self.calls {
            let extra = match &call.extra {
                Value::Null => None,
                extra => Some(shallow("extra_content", format!(r#""extra_content":{extra}"#))?),
            };
            parts.push(Part::Call(finish_call(call.id, &call.name, &call.arguments, extra)));
        }
        let mut unknown_stop = None;
        let stop = match self.finish_reason.as_deref() {
            _ if !self.refusal.is_empty() => Stop::Declined(self.refusal),
            None => Stop::Finished,
            Some(
                "stop" | "tool_calls" | "function_call" | "end" | "eos" | "end_turn" | "tool_use"
                | "stop_sequence",
            ) => Stop::Finished,
            Some("length" | "max_tokens") => Stop::Cut,
            Some("model_length" | "model_context_window_exceeded") => Stop::WindowFull,
            Some("content_filter" | "sensitive") => Stop::Filtered,
            Some("refusal") => Stop::Declined(String::new()),
            Some("error" | "abort" | "insufficient_system_resource" | "network_error") => {
                let reason = self.finish_reason.unwrap_or_default();
                let value = json!({"error": {"code": 503, "message": format!("the server ended the reply with \"{reason}\"")}});
                return Err(Fault::Api(ApiError::from_value(&value)));
            }
            Some(word) if is_botched(word) => Stop::Botched,
            Some(other) => {
                unknown_stop = Some(other.to_owned());
                Stop::Finished
            }
        };
        Ok(Reply { parts, stop, usage: self.usage, stated: self.cost, unknown_stop })
    }
}

/// What goes back to the server, if a request can hold it.
fn shallow(member: &str, text: String) -> Result<String, Fault> {
    match is_too_deep(&text) {
        true => Err(Fault::Malformed(format!("\"{member}\" is nested too deeply"))),
        false => Ok(text),
    }
}

/// A cost that is none: negative, a text, an object.
fn unusable(value: &Value) -> Stated {
    Stated::Unusable(excerpt(&value.to_string()))
}

/// Gemini's words for a call that its model failed to write.
fn is_botched(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word == "malformed_function_call" || word.starts_with("function_call_filter")
}

/// Adds what is new of an item of reasoning to what is there of it.
fn join(item: &mut Value, fragment: &Map<String, Value>) {
    for (name, value) in fragment {
        match (item.get_mut(name), value) {
            (Some(Value::String(old)), Value::String(new))
                if matches!(name.as_str(), "text" | "summary" | "data") =>
            {
                old.push_str(new);
            }
            (Some(_), Value::Null) => {}
            _ => item[name.as_str()] = value.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Call;
    use crate::provider::{Api, NoImages};

    fn settings(host: Host, model: &str) -> Settings {
        let plain = Settings::plain(Api::OpenAi, host, model);
        Settings { system: "be brief".to_owned(), max_output_tokens: Some(9), ..plain }
    }

    fn read(chunks: &[&str]) -> Result<Reply, Fault> {
        let mut reader = Reader::default();
        for data in chunks {
            reader.event(&sse::Event { kind: String::new(), data: (*data).to_owned() })?;
        }
        reader.finish()
    }

    fn delta(delta: &str) -> String {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
    }

    fn calls(deltas: &[&str]) -> Vec<(String, String, String)> {
        let mut chunks: Vec<String> = deltas.iter().map(|text| delta(text)).collect();
        chunks.push("[DONE]".to_owned());
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        let reply = read(&chunks).unwrap();
        let message = Message { role: Role::Assistant, parts: reply.parts, origin: None };
        message.calls().map(|call| (call.id.clone(), call.name.clone(), call.arguments.clone())).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn a_stream_without_a_choice_is_another_apis_unless_it_only_kept_the_connection_alive() {
        let other = r#"{"type":"message_start","message":{"id":"msg_1"}}"#;
        let why =
            format!("it has no \"choices\", does the server speak another API (--api)? It begins: {other}");
        assert_eq!(read(&[other, r#"{"type":"message_stop"}"#]), Err(Fault::Malformed(why.clone())));
        assert_eq!(read(&[r#"{"type":"ping"}"#, "{}", other]), Err(Fault::Malformed(why)));
        let usage = r#"{"choices":[],"usage":{"prompt_tokens":1}}"#;
        assert_eq!(read(&[r#"{"type":"ping"}"#, "{}", usage]), Err(Fault::Incomplete));
        assert_eq!(read(&[other, &delta(r#"{"content":"x"}"#)]), Err(Fault::Incomplete));
    }

    #[test]
    fn fragments_find_their_call_by_index_id_or_place() {
        let by_index = calls(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"Edit","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"","function":{"arguments":":1}"}}]}"#,
        ]);
        assert_eq!(by_index, [call("a", "Read", r#"{"x":1}"#), call("b", "Edit", "{}")]);
        let all_zero = calls(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"Read","arguments":"{"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"arguments":"}"}}]}"#,
        ]);
        assert_eq!(all_zero, [call("a", "Read", "{}"), call("b", "Read", "{}")]);
        let no_index = calls(&[
            r#"{"tool_calls":[{"id":"a","function":{"name":"Read","arguments":"{"}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":"}"}}]}"#,
            r#"{"tool_calls":[{"function":{"name":"Edit","arguments":{"y":2}}}]}"#,
        ]);
        assert_eq!(no_index, [call("a", "Read", "{}"), call("", "Edit", r#"{"y":2}"#)]);
    }

    #[test]
    fn a_name_may_come_late_repeated_or_in_pieces() {
        let late = calls(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"Read","arguments":"}"}}]}"#,
        ]);
        assert_eq!(late, [call("a", "Read", "{}")]);
        let repeated = calls(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{}"}}]}"#,
        ]);
        assert_eq!(repeated, [call("a", "Read", "{}")]);
        let pieces = calls(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"Re"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"ad"}}]}"#,
        ]);
        assert_eq!(pieces, [call("a", "Read", "{}")]);
    }

    #[test]
    fn a_cost_is_taken_where_it_is_an_amount_and_else_kept_as_it_came() {
        let stated = |usage: &str| {
            let chunk = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"stop"}}],"usage":{usage}}}"#);
            read(&[&chunk, "[DONE]"]).unwrap().stated
        };
        let cost = |text: &str| Stated::Cost(Cost::parse(text).unwrap());
        assert_eq!(stated(r#"{"cost":0.00014}"#), cost("0.00014"));
        assert_eq!(
            stated(r#"{"cost":0,"is_byok":false,"cost_details":{"upstream_inference_cost":1}}"#),
            cost("0")
        );
        // A key of the user's own: OpenRouter's fee, and what the provider charges beside it.
        let own_key = r#"{"cost":0.0005,"is_byok":true,"cost_details":{"upstream_inference_cost":0.01}}"#;
        assert_eq!(stated(own_key), cost("0.0105"));
        let own_key = r#"{"cost":0.0005,"is_byok":true,"cost_details":{"upstream_inference_cost":null}}"#;
        assert_eq!(stated(own_key), cost("0.0005"));
        for usage in [r#"{}"#, r#"{"cost":null}"#] {
            assert_eq!(stated(usage), Stated::Nothing, "{usage}");
        }
        for cost in ["-0.1", r#""0.1""#, "{\"total\":1}", "true", "1e300"] {
            let usage = format!(r#"{{"cost":{cost}}}"#);
            assert!(matches!(stated(&usage), Stated::Unusable(_)), "{usage}");
        }
        assert_eq!(stated(r#"{"cost":"NaN"}"#), Stated::Unusable("\"NaN\"".to_owned()));
    }

    #[test]
    fn usage_is_replaced_saturated_and_found_where_servers_put_it() {
        let reply = read(&[
            r#"{"choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":10,"completion_tokens":"7","prompt_tokens_details":{"cached_tokens":30}}}]}"#,
            "[DONE]",
        ])
        .unwrap();
        assert_eq!(reply.usage, Usage { input: 0, cache_write: 0, cache_read: 30, output: 7 });
    }

    #[test]
    fn reasoning_goes_back_under_the_name_it_came_by() {
        let reply = read(&[
            &delta(r#"{"reasoning_content":"th","reasoning":"th"}"#),
            &delta(r#"{"reasoning_content":"ink"}"#),
            &delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":"{}"}}]}"#),
            "[DONE]",
        ])
        .unwrap();
        let message = Message { role: Role::Assistant, parts: reply.parts, origin: None };
        let settings = settings(Host::Other, "m");
        assert_eq!(
            assistant(&settings, &message, true),
            r#"{"role":"assistant","content":null,"reasoning_content":"think","tool_calls":[{"id":"a","type":"function","function":{"name":"Read","arguments":"{}"}}]}"#
        );
        assert_eq!(
            assistant(&settings, &message, false),
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"Read","arguments":"{}"}}]}"#
        );
    }

    #[test]
    fn deepseek_gets_reasoning_with_every_call_even_an_empty_one() {
        let part = Part::Call(Call {
            id: "a".into(),
            name: "Read".into(),
            arguments: "{}".into(),
            refusal: None,
            extra: Some(r#""extra_content":{"google":{"thought_signature":"s"}}"#.into()),
        });
        let message = Message { role: Role::Assistant, parts: vec![part], origin: None };
        assert_eq!(
            assistant(&settings(Host::DeepSeek, "m"), &message, true),
            r#"{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"Read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"s"}}}]}"#
        );
    }

    /// Alone it can be read; inside a request it was too deep for any reader.
    #[test]
    fn what_goes_back_is_not_nested_too_deeply() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let details = |levels| delta(&format!(r#"{{"reasoning_details":[{{"a":{}}}]}}"#, deep(levels)));
        let extra = |levels| {
            let call = r#"{"index":0,"id":"a","function":{"name":"Read","arguments":"{}"},"extra_content":"#;
            delta(&format!(r#"{{"content":"x","tool_calls":[{call}{}}}]}}"#, deep(levels)))
        };
        let read = |chunk: &str| read(&[&delta(r#"{"content":"x"}"#), chunk, "[DONE]"]);
        let told = |member: &str| Err(Fault::Malformed(format!("\"{member}\" is nested too deeply")));
        assert_eq!(read(&details(98)), told("reasoning_details"));
        assert_eq!(read(&extra(101)), told("extra_content"));
        assert_eq!(read(&details(97)).unwrap().parts.len(), 2);
        assert_eq!(read(&extra(100)).unwrap().parts.len(), 2);
    }

    #[test]
    fn openrouters_reasoning_details_are_joined_by_index_and_keep_their_order() {
        let reply = read(&[
            &delta(
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"signature":null}]}"#,
            ),
            &delta(
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0,"signature":"s"}]}"#,
            ),
            &delta(r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"z","index":1}]}"#),
            &delta(r#"{"content":"done"}"#),
            "[DONE]",
        ])
        .unwrap();
        assert_eq!(
            reply.parts[0],
            Part::Vendor(
                r#"{"reasoning_details":[{"type":"reasoning.text","text":"ab","index":0,"signature":"s"},{"type":"reasoning.encrypted","data":"z","index":1}]}"#
                    .into()
            )
        );
    }

    #[test]
    fn every_finish_reason_has_its_meaning() {
        let cases = [
            ("stop", Ok(Stop::Finished)),
            ("tool_calls", Ok(Stop::Finished)),
            ("length", Ok(Stop::Cut)),
            ("model_length", Ok(Stop::WindowFull)),
            ("content_filter", Ok(Stop::Filtered)),
            ("MALFORMED_FUNCTION_CALL", Ok(Stop::Botched)),
            ("error", Err(503)),
            ("insufficient_system_resource", Err(503)),
        ];
        for (word, expected) in cases {
            let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"x"}},"finish_reason":"{word}"}}]}}"#);
            let found = match read(&[&chunk]) {
                Ok(reply) => Ok(reply.stop),
                Err(Fault::Api(error)) => Err(error.status),
                Err(fault) => panic!("{fault:?}"),
            };
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn mistral_gets_short_ids_and_a_word_between_results_and_the_user() {
        let settings = settings(Host::Mistral, "m");
        let message = Message {
            role: Role::User,
            parts: vec![
                Part::Result(CallResult {
                    call_id: "call_1".into(),
                    text: "x".into(),
                    images: Vec::new(),
                    is_error: true,
                }),
                Part::Text("go on".into()),
            ],
            origin: None,
        };
        let (text, mark) = user(&settings, &message);
        let id = hashed_id("call_1", ALPHANUMERIC, 9);
        assert_eq!(mark, None);
        assert_eq!(
            text,
            format!(
                r#"{{"role":"tool","tool_call_id":"{id}","content":"Error: x"}},{{"role":"assistant","content":"Understood."}},{{"role":"user","content":"go on"}}"#
            )
        );
    }

    /// A user message in which two results show three images, and what the user says then.
    fn shows_images(said: &[&str]) -> Message {
        let result = |id: &str, text: &str, data: &[&str]| {
            let image = |data: &&str| Image { media_type: "image/png".into(), data: (*data).into() };
            let images = data.iter().map(image).collect();
            Part::Result(CallResult { call_id: id.into(), text: text.into(), images, is_error: false })
        };
        let mut parts = vec![
            result("a", "one.png: PNG\nmore", &["AAAA"]),
            result("b", "no image", &[]),
            result("c", "two", &["BBBB", "CCCC"]),
        ];
        parts.extend(said.iter().map(|text| Part::Text((*text).into())));
        Message { role: Role::User, parts, origin: None }
    }

    fn rendered(settings: &Settings, message: &Message) -> Value {
        serde_json::from_str(&format!("[{}]", user(settings, message).0)).unwrap()
    }

    #[test]
    fn the_images_of_results_follow_all_of_them_in_one_message() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = |data: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{data}")}});
        let tool = |id: &str, text: &str| json!({"role": "tool", "tool_call_id": id, "content": text});
        let mut expected = json!([
            tool("a", "one.png: PNG\nmore"),
            tool("b", "no image"),
            tool("c", "two"),
            {"role": "user", "content": [
                text("[shown by the call \"a\": one.png: PNG]"), image("AAAA"),
                text("[shown by the call \"c\": two]"), image("BBBB"), image("CCCC"),
            ]},
        ]);
        let mut settings = settings(Host::Other, "m");
        assert_eq!(rendered(&settings, &shows_images(&[])), expected);
        let said = [text("go on"), text("now")];
        expected[3]["content"].as_array_mut().unwrap().extend(said);
        assert_eq!(rendered(&settings, &shows_images(&["go on", "now"])), expected);
        settings.host = Host::Mistral;
        assert_eq!(
            rendered(&settings, &shows_images(&[]))[3],
            json!({"role": "assistant", "content": "Understood."})
        );
        settings.host = Host::Other;
        settings.learnt.no_images = Some(NoImages::NoneTaken);
        let left_out = "\n[image left out: the model takes none]";
        let expected = json!([
            tool("a", &format!("one.png: PNG\nmore{left_out}")),
            tool("b", "no image"),
            tool("c", &format!("two{left_out}{left_out}")),
        ]);
        assert_eq!(rendered(&settings, &shows_images(&[])), expected);
    }

    /// A program's text can be one line of 30,000 bytes.
    #[test]
    fn of_a_long_line_images_are_told_the_beginning() {
        let text = format!("{}{}\nmore", "é".repeat(200), "x".repeat(30_000));
        let images = vec![Image { media_type: "image/png".into(), data: "AAAA".into() }];
        let result = CallResult { call_id: "a".into(), text, images, is_error: false };
        let message = Message { role: Role::User, parts: vec![Part::Result(result)], origin: None };
        let label = format!("[shown by the call \"a\": {}…]", "é".repeat(200));
        assert_eq!(rendered(&settings(Host::Other, "m"), &message)[1]["content"][0]["text"], label);
    }

    #[test]
    fn a_cache_mark_beside_images_is_on_the_last_text() {
        let settings = settings(Host::OpenRouter, "anthropic/claude-haiku-4.5");
        for (said, texts) in [(&[][..], [0, 2]), (&["go on"][..], [2, 5])] {
            let (text, at) = user(&settings, &shows_images(said));
            let (before, after) = text.split_at(at.unwrap());
            let marked = format!("[{before}{}{after}]", super::super::MARK);
            let messages: Value = serde_json::from_str(&marked).unwrap();
            let content = messages[3]["content"].as_array().unwrap();
            let places: Vec<usize> =
                (0..content.len()).filter(|place| content[*place].get("cache_control").is_some()).collect();
            assert_eq!(places, [texts[1]], "{marked}");
            assert_eq!(content[texts[0]]["type"], "text");
        }
    }

    #[test]
    fn moonshots_ids_return_as_they_came_and_long_ones_are_shortened_elsewhere() {
        let long = "functions.Read:3".repeat(4);
        assert_eq!(legal_id(&settings(Host::Moonshot, "m"), &long), long);
        let short = legal_id(&settings(Host::Other, "m"), &long);
        assert!(short.len() <= 40 && short != legal_id(&settings(Host::Other, "m"), &format!("{long}x")));
    }

    #[test]
    fn the_output_limit_goes_by_the_name_the_host_knows() {
        assert!(head(&settings(Host::OpenAi, "m")).contains(r#""max_completion_tokens":9"#));
        let mut other = settings(Host::Other, "m");
        assert!(head(&other).contains(r#""max_tokens":9"#));
        other.learnt.other_limit_name = true;
        assert!(head(&other).contains(r#""max_completion_tokens":9"#));
    }

    #[test]
    fn claude_through_openrouter_gets_cache_marks_on_parts() {
        let settings = settings(Host::OpenRouter, "anthropic/claude-haiku-4.5");
        assert!(head(&settings).ends_with(
            r#""messages":[{"role":"system","content":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}]}"#
        ));
        let message = Message { role: Role::User, parts: vec![Part::Text("hi".into())], origin: None };
        let (text, at) = user(&settings, &message);
        let (before, after) = text.split_at(at.unwrap());
        assert_eq!(before, r#"{"role":"user","content":[{"type":"text","text":"hi""#);
        assert_eq!(after, "}]}");
    }

    /// Each fragment was looked for among all items: this took most of a minute.
    #[test]
    fn twenty_thousand_items_of_reasoning_are_joined_in_one_pass() {
        let mut reader = Reader::default();
        for text in ["a", "b"] {
            for index in 0..20_000 {
                reader.take_detail(&json!({"type": "reasoning.text", "text": text, "index": index}));
            }
        }
        assert_eq!(reader.details.len(), 20_000);
        assert_eq!(reader.details[19_999], json!({"type": "reasoning.text", "text": "ab", "index": 19_999}));
    }

    #[test]
    fn items_of_reasoning_with_another_type_or_without_an_index_are_not_joined() {
        let mut reader = Reader::default();
        let items = [
            json!({"type": "reasoning.text", "text": "a", "index": 0}),
            json!({"type": "reasoning.summary", "summary": "b", "index": 0}),
            json!({"type": "reasoning.text", "text": "c"}),
            json!({"type": "reasoning.text", "text": "d", "index": null}),
            json!("e"),
        ];
        for item in &items {
            reader.take_detail(item);
        }
        assert_eq!(reader.details, items);
    }

    /// The texts of all choices were mixed into one.
    #[test]
    fn of_several_choices_the_one_numbered_0_is_read() {
        let reply = read(&[
            r#"{"choices":[{"index":1,"delta":{"content":"no"},"finish_reason":"length"}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"y"}}]}"#,
            r#"{"choices":[{"delta":{"content":"es"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}"#,
            "[DONE]",
        ])
        .unwrap();
        assert_eq!((reply.parts, reply.stop), (vec![Part::Text("yes".into())], Stop::Finished));
    }

    /// It was taken for a reply without content, and asked for again.
    #[test]
    fn an_error_object_inside_a_success_is_an_error() {
        let text = r#"{"object":"error","message":"m","code":400}"#;
        let of_document = Reader::default().document(text);
        for fault in [of_document, read(&[text]).map(|_| ())] {
            let Err(Fault::Api(error)) = fault else { panic!("{fault:?}") };
            assert_eq!((error.status, error.message.as_str()), (400, "m"));
        }
    }

    #[test]
    fn counts_that_overflow_are_saturated() {
        let most = u64::MAX;
        let usage = format!(
            r#"{{"prompt_tokens":{most},"completion_tokens":1e30,"prompt_tokens_details":{{"cached_tokens":{most},"cache_write_tokens":{most}}}}}"#
        );
        let reply =
            read(&[&format!(r#"{{"choices":[{{"delta":{{}}}}],"usage":{usage}}}"#), "[DONE]"]).unwrap();
        assert_eq!(reply.usage, Usage { input: 0, cache_write: most, cache_read: most, output: most });
    }
}
