//! Anthropic's Messages API: its JSON, its stream, its words for how a reply ended.
//!
//! Pure. Blocks that only Anthropic understands (thinking, server tools) are kept as JSON text and go back
//! unchanged, in their place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json::without_nul;
use super::said::Said;
use super::shown::Growing;
use super::{
    ALPHANUMERIC, ApiError, Fault, Reply, Settings, Stated, Stop, Usage, excerpt, finish_call, hashed_id,
    is_too_deep, legal_name, number, parse_and_mend, plain_name, push_string, result_text, shown_images,
    static_mark, thinking,
};
use crate::conversation::{Image, Message, Part, Role};
use crate::sse;

/// Output limit when none was asked for: the API demands one, and the reply is streamed.
const DEFAULT_MAX_TOKENS: u32 = 32_000;

/// The body up to the messages.
pub fn head(settings: &Settings) -> String {
    let asked = settings.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    let limit = settings.output_limit(thinking::room(settings, asked));
    let mark = static_mark(settings);
    let mut head = String::from(r#"{"model":"#);
    push_string(&mut head, &settings.model);
    head.push_str(&format!(r#","max_tokens":{limit},"stream":true"#));
    head.push_str(&thinking::messages_members(settings));
    if let Some(temperature) = settings.temperature {
        head.push_str(&format!(r#","temperature":{}"#, json!(temperature)));
    }
    if !settings.stop.is_empty() {
        head.push_str(&format!(r#","stop_sequences":{}"#, json!(settings.stop)));
    }
    let tools = settings.offered();
    if !tools.is_empty() {
        head.push_str(r#","tools":["#);
        for (index, tool) in tools.iter().enumerate() {
            let last = index + 1 == tools.len();
            head.push_str(if index > 0 { r#",{"name":"# } else { r#"{"name":"# });
            push_string(&mut head, tool.name);
            head.push_str(r#","description":"#);
            push_string(&mut head, tool.description);
            head.push_str(r#","input_schema":"#);
            head.push_str(&without_nul(tool.schema));
            head.push_str(if last { mark } else { "" });
            head.push('}');
        }
        head.push(']');
    }
    if !settings.system.is_empty() {
        head.push_str(r#","system":[{"type":"text","text":"#);
        push_string(&mut head, &settings.system);
        head.push_str(mark);
        head.push_str("}]");
    }
    head.push_str(r#","messages":["#);
    head
}

/// One message's JSON text, empty if nothing of it can be sent, and where a cache mark may be put.
pub fn message(settings: &Settings, message: &Message, vendor_returns: bool) -> (String, Option<usize>) {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let mut text = format!(r#"{{"role":"{role}","content":["#);
    let empty = text.len();
    for part in &message.parts {
        let before = text.len();
        if before > empty {
            text.push(',');
        }
        let from = text.len();
        push_block(&mut text, settings, part, message.role, vendor_returns);
        if text.len() == from {
            text.truncate(before);
        }
    }
    if text.len() == empty {
        return (String::new(), None);
    }
    text.push_str("]}");
    let mark_at = (message.role == Role::User).then(|| text.len() - "}]}".len());
    (text, mark_at)
}

fn push_block(out: &mut String, settings: &Settings, part: &Part, role: Role, vendor_returns: bool) {
    match part {
        // Blank text blocks are refused, and so is an assistant's last one that ends in blanks.
        Part::Text(text) if text.trim().is_empty() => {}
        Part::Text(text) => {
            out.push_str(r#"{"type":"text","text":"#);
            push_string(out, if role == Role::Assistant { text.trim_end() } else { text });
            out.push('}');
        }
        Part::Image(image) => match settings.learnt.no_images {
            None => push_image(out, image),
            Some(why) => {
                out.push_str(r#"{"type":"text","text":"#);
                push_string(out, &why.in_place());
                out.push('}');
            }
        },
        Part::Call(call) => {
            out.push_str(r#"{"type":"tool_use","id":"#);
            push_string(out, &legal_id(&call.id));
            out.push_str(r#","name":"#);
            push_string(out, &legal_name(&call.name));
            out.push_str(r#","input":"#);
            out.push_str(&without_nul(&call.arguments));
            if let (Some(extra), true) = (&call.extra, vendor_returns) {
                out.push(',');
                out.push_str(extra);
            }
            out.push('}');
        }
        Part::Result(result) => {
            out.push_str(r#"{"type":"tool_result","tool_use_id":"#);
            push_string(out, &legal_id(&result.call_id));
            out.push_str(r#","content":"#);
            push_result(out, &result_text(settings, result), shown_images(settings, result));
            out.push_str(if result.is_error { r#","is_error":true}"# } else { "}" });
        }
        Part::Vendor(block) => {
            if vendor_returns {
                out.push_str(block);
            }
        }
    }
}

/// The content of a result: a string, or a list of blocks where there are images.
fn push_result(out: &mut String, text: &str, images: &[Image]) {
    if images.is_empty() {
        return push_string(out, text);
    }
    out.push_str(r#"[{"type":"text","text":"#);
    push_string(out, text);
    out.push('}');
    for image in images {
        out.push(',');
        push_image(out, image);
    }
    out.push(']');
}

fn push_image(out: &mut String, image: &Image) {
    out.push_str(r#"{"type":"image","source":{"type":"base64","media_type":"#);
    push_string(out, &image.media_type);
    out.push_str(r#","data":"#);
    push_string(out, &image.data);
    out.push_str("}}");
}

fn legal_id(id: &str) -> Cow<'_, str> {
    let legal = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    match legal && id.len() <= 64 {
        true => Cow::Borrowed(id),
        false => Cow::Owned(format!("call_{}", hashed_id(id, ALPHANUMERIC, 10))),
    }
}

/// A block being built.
enum Block {
    Text(String),
    Call {
        id: String,
        name: String,
        input: String,
        placeholder: String,
        extra: Option<String>,
    },
    /// Thinking: the start's object, with the text and the signature gathered since.
    Thinking {
        object: Map<String, Value>,
        thinking: String,
        signature: String,
    },
    /// Anything else, as the text received, and what was gathered of its input: a server's tool has one.
    Vendor {
        kind: String,
        text: String,
        input: String,
    },
    /// What is no block at all: it keeps its place, so that its deltas go nowhere else.
    Nothing,
}

/// A reply being built from the stream's events or from one document.
#[derive(Default)]
pub struct Reader {
    blocks: BTreeMap<u64, Block>,
    text: Said,
    stop_reason: Option<String>,
    stop_explanation: String,
    usage: Usage,
    begun: bool,
    over: bool,
}

impl Reader {
    /// Takes one event of the stream.
    pub fn event(&mut self, event: &sse::Event) -> Result<(), Fault> {
        let (value, text) = parse_and_mend(&event.data)?;
        if let Some(error) = ApiError::inside(&value) {
            return Err(Fault::Api(error));
        }
        // Imitations leave out the `event` lines; the JSON's own type always says it.
        match value["type"].as_str().unwrap_or(&event.kind) {
            "error" => return Err(Fault::Api(ApiError::from_value(&value))),
            "message_start" => {
                if std::mem::replace(&mut self.begun, true) {
                    return Err(Fault::Malformed("a second message_start in one reply".to_owned()));
                }
                self.take_usage(&value["message"]["usage"]);
            }
            "content_block_start" => {
                self.begun = true;
                let raw = raw_member(&text, "content_block").unwrap_or_default();
                let index = self.free_index(&value["index"])?;
                let block = self.start(&value["content_block"], raw)?;
                self.blocks.insert(index, block);
            }
            "content_block_delta" => self.delta(&value),
            "message_delta" => {
                self.take_end(&value["delta"]);
                self.take_usage(&value["usage"]);
            }
            "message_stop" => self.over = true,
            "" if !self.begun => {
                return Err(Fault::Malformed(format!(
                    "its events have no type, does the server speak another API (--api)? It begins: {}",
                    excerpt(&event.data)
                )));
            }
            // `ping`, `content_block_stop`, and whatever may be added: the API promises to add.
            _ => {}
        }
        Ok(())
    }

    /// Takes a whole reply in one document.
    pub fn document(&mut self, text: &str) -> Result<(), Fault> {
        let (value, text) = parse_and_mend(text)?;
        if let Some(error) = ApiError::inside(&value) {
            return Err(Fault::Api(error));
        }
        let Some(blocks) = value["content"].as_array() else {
            return Err(Fault::Malformed(format!("a reply without \"content\": {}", super::excerpt(&text))));
        };
        let raw_blocks: Vec<String> = raw_member(&text, "content")
            .and_then(|content| serde_json::from_str::<Vec<Box<RawValue>>>(&content).ok())
            .map(|blocks| blocks.iter().map(|block| block.get().to_owned()).collect())
            .unwrap_or_else(|| blocks.iter().map(Value::to_string).collect());
        for (index, (block, raw)) in blocks.iter().zip(raw_blocks).enumerate() {
            let block = self.start(block, raw)?;
            self.blocks.insert(index as u64, block);
        }
        self.take_end(&value);
        self.take_usage(&value["usage"]);
        self.begun = true;
        self.over = true;
        Ok(())
    }

    /// Whether `message_stop` was seen.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The tokens so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Whether the reason of the end was seen, which follows the last block.
    pub fn is_whole(&self) -> bool {
        self.over || self.stop_reason.is_some()
    }

    /// The text so far, blocks one after another.
    pub fn visible_text(&self) -> &str {
        self.text.visible()
    }

    /// So many of the blocks so far, from this index on.
    pub fn growing(&self, from: u64, most: usize) -> Vec<(u64, Growing<'_>)> {
        let growing = self.blocks.range(from..).filter_map(|(index, block)| {
            let growing = match block {
                Block::Nothing => return None,
                // Thousands of them would keep what follows from being seen.
                Block::Text(text) if text.trim_start().is_empty() => return None,
                Block::Text(text) => Growing::Text(text),
                Block::Call { id, name, input, placeholder, .. } => {
                    let whole = input.is_empty() && placeholder != "{}";
                    let arguments = if whole { placeholder } else { input };
                    Growing::Call { id, name: plain_name(name), arguments }
                }
                Block::Thinking { thinking, signature, .. } => {
                    Growing::Thinking(Cow::Borrowed(thinking), signature)
                }
                Block::Vendor { text, input, .. } => Growing::Other(input.is_empty().then_some(text)),
            };
            Some((*index, growing))
        });
        growing.take(most).collect()
    }

    /// The place of a block that begins: a place taken twice would lose what stands there.
    fn free_index(&self, index: &Value) -> Result<u64, Fault> {
        let index = match index {
            Value::Null => self.blocks.keys().next_back().map_or(0, |last| last.saturating_add(1)),
            index => index.as_u64().ok_or_else(|| {
                Fault::Malformed(format!("a content block's index is no whole number: {index}"))
            })?,
        };
        match self.blocks.contains_key(&index) {
            true => Err(Fault::Malformed(format!("two content blocks have the index {index}"))),
            false => Ok(index),
        }
    }

    fn start(&mut self, block: &Value, raw: String) -> Result<Block, Fault> {
        let Some(kind) = block["type"].as_str() else { return Ok(Block::Nothing) };
        Ok(match kind {
            "text" => {
                let text = block["text"].as_str().unwrap_or_default();
                if !self.text.is_empty() {
                    self.text.push("\n");
                }
                self.text.push(text);
                Block::Text(text.to_owned())
            }
            "tool_use" => Block::Call {
                id: block["id"].as_str().unwrap_or_default().to_owned(),
                name: block["name"].as_str().unwrap_or_default().to_owned(),
                input: String::new(),
                // In a stream the start's `{}` only holds the place; in a document it is the input.
                placeholder: raw_member(&raw, "input").unwrap_or_default(),
                extra: other_members(&raw, &["type", "id", "name", "input", "cache_control"])
                    .map(|extra| shallow(kind, extra))
                    .transpose()?,
            },
            "thinking" => Block::Thinking {
                object: block.as_object().cloned().unwrap_or_default(),
                thinking: block["thinking"].as_str().unwrap_or_default().to_owned(),
                signature: block["signature"].as_str().unwrap_or_default().to_owned(),
            },
            kind => Block::Vendor { kind: kind.to_owned(), text: raw, input: String::new() },
        })
    }

    fn delta(&mut self, value: &Value) {
        let block = match &value["index"] {
            Value::Null => self.blocks.values_mut().next_back(),
            index => index.as_u64().and_then(|index| self.blocks.get_mut(&index)),
        };
        let delta = &value["delta"];
        let piece = |member: &str| delta[member].as_str().unwrap_or_default();
        match (block, delta["type"].as_str()) {
            (Some(Block::Text(text)), Some("text_delta")) => {
                text.push_str(piece("text"));
                self.text.push(piece("text"));
            }
            (Some(Block::Call { input, .. } | Block::Vendor { input, .. }), Some("input_json_delta")) => {
                input.push_str(piece("partial_json"))
            }
            (Some(Block::Thinking { thinking, .. }), Some("thinking_delta")) => {
                thinking.push_str(piece("thinking"))
            }
            (Some(Block::Thinking { signature, .. }), Some("signature_delta")) => {
                signature.push_str(piece("signature"));
            }
            _ => {}
        }
    }

    fn take_end(&mut self, value: &Value) {
        if let Some(reason) = value["stop_reason"].as_str() {
            self.stop_reason = Some(reason.to_owned());
        }
        if let Some(explanation) = value["stop_details"]["explanation"].as_str() {
            self.stop_explanation = explanation.to_owned();
        }
    }

    /// The counts are running totals, and imitations put the input's into only one of the two places:
    /// the larger one counts.
    fn take_usage(&mut self, usage: &Value) {
        let larger = |old: u64, member: &str| number(&usage[member]).map_or(old, |new| new.max(old));
        self.usage = Usage {
            input: larger(self.usage.input, "input_tokens"),
            cache_write: larger(self.usage.cache_write, "cache_creation_input_tokens"),
            cache_read: larger(self.usage.cache_read, "cache_read_input_tokens"),
            output: larger(self.usage.output, "output_tokens"),
        };
    }

    /// The whole reply.
    pub fn finish(self) -> Result<Reply, Fault> {
        if !self.over {
            return Err(Fault::Incomplete);
        }
        if !self.begun {
            return Err(Fault::Hollow);
        }
        let parts = self.blocks.into_values().filter_map(|block| finish_block(block).transpose());
        let parts = parts.collect::<Result<Vec<Part>, Fault>>()?;
        let mut unknown_stop = None;
        let stop = match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence" | "tool_use" | "compaction") | None => Stop::Finished,
            Some("max_tokens") => Stop::Cut,
            Some("model_context_window_exceeded") => Stop::WindowFull,
            Some("refusal") => Stop::Declined(self.stop_explanation),
            Some("pause_turn") => Stop::Paused,
            Some(other) => {
                unknown_stop = Some(other.to_owned());
                Stop::Finished
            }
        };
        Ok(Reply { parts, stop, usage: self.usage, stated: Stated::Nothing, unknown_stop })
    }
}

/// The part that a block becomes; absent where it holds nothing.
fn finish_block(block: Block) -> Result<Option<Part>, Fault> {
    Ok(Some(match block {
        Block::Nothing => return Ok(None),
        Block::Text(text) if text.trim().is_empty() => return Ok(None),
        Block::Text(text) => Part::Text(text),
        Block::Call { id, name, input, placeholder, extra } => {
            let raw = if input.trim().is_empty() { &placeholder } else { &input };
            Part::Call(finish_call(id, &name, raw, extra))
        }
        Block::Thinking { mut object, thinking, signature } => {
            object.insert("thinking".to_owned(), Value::from(thinking));
            // Imitations send no signature; then none is made up.
            if !signature.is_empty() {
                object.insert("signature".to_owned(), Value::from(signature));
            }
            Part::Vendor(shallow("thinking", Value::Object(object).to_string())?)
        }
        Block::Vendor { kind, text, input } => {
            let input = shallow(&kind, input)?;
            Part::Vendor(shallow(&kind, with_input(&text, &input).unwrap_or(text))?)
        }
    }))
}

/// The text of such a block or of a part of it, if it is not too deep to be sent back.
fn shallow(kind: &str, text: String) -> Result<String, Fault> {
    match is_too_deep(&text) {
        true => Err(Fault::Malformed(format!("a block \"{kind}\" is nested too deeply"))),
        false => Ok(text),
    }
}

/// The object's text with this input in the place of the one that only held the place; absent if there is
/// nothing to put there.
fn with_input(object: &str, input: &str) -> Option<String> {
    let (Value::Object(_), input) = parse_and_mend(input).ok()? else { return None };
    let object: Map<String, Value> = serde_json::from_str(object).ok()?;
    let members = object.iter().map(|(name, value)| match name.as_str() {
        "input" => format!(r#""input":{}"#, input.trim()),
        _ => format!("{}:{value}", Value::from(name.as_str())),
    });
    Some(format!("{{{}}}", members.collect::<Vec<_>>().join(",")))
}

/// The text of one member of a JSON object, as it stands there.
fn raw_member(object: &str, name: &str) -> Option<String> {
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
    Some(members.remove(name)?.get().to_owned())
}

/// All members but the named ones, as JSON member text; absent if there are none.
fn other_members(object: &str, known: &[&str]) -> Option<String> {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(object).ok()?;
    let others: Vec<String> = members
        .iter()
        .filter(|(name, value)| !known.contains(&name.as_str()) && value.get() != "null")
        .map(|(name, value)| format!("{}:{}", Value::from(name.as_str()), value.get()))
        .collect();
    (!others.is_empty()).then(|| others.join(","))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::provider::{Api, Host, NoImages};

    fn event(data: &str) -> sse::Event {
        sse::Event { kind: String::new(), data: data.to_owned() }
    }

    fn read(events: &[&str]) -> Result<Reply, Fault> {
        let mut reader = Reader::default();
        for data in events {
            reader.event(&event(data))?;
        }
        reader.finish()
    }

    const START: &str = r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":25,"cache_read_input_tokens":3,"output_tokens":1}}}"#;

    #[test]
    fn the_input_of_a_servers_own_tool_is_put_in_its_place() {
        let reply = read(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{},"caller":null}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\": "}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"1.10}"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_2","name":"x","input":{}}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"pause_turn"}}"#,
            r#"{"type":"message_stop"}"#,
        ])
        .unwrap();
        let [first, second] = [
            r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": 1.10},"caller":null}"#,
            r#"{"type":"server_tool_use","id":"srvtoolu_2","name":"x","input":{}}"#,
        ];
        assert_eq!(reply.parts, [Part::Vendor(first.into()), Part::Vendor(second.into())]);
        assert_eq!(reply.stop, Stop::Paused);
    }

    #[test]
    fn text_thinking_and_calls_keep_their_order() {
        let reply = read(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"x","n":1.10}}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Look. "}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"Read","input":{},"caller":{"type":"direct"}}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"file_path\": \"a\"}"}}"#,
            r#"{"type":"content_block_stop","index":3}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":58}}"#,
            r#"{"type":"message_stop"}"#,
        ])
        .unwrap();
        assert_eq!(
            reply.parts,
            [
                Part::Vendor(r#"{"type":"thinking","thinking":"hm","signature":"c2ln"}"#.into()),
                Part::Vendor(r#"{"type":"redacted_thinking","data":"x","n":1.10}"#.into()),
                Part::Text("Look. ".into()),
                Part::Call(crate::conversation::Call {
                    id: "toolu_1".into(),
                    name: "Read".into(),
                    arguments: r#"{"file_path": "a"}"#.into(),
                    refusal: None,
                    extra: Some(r#""caller":{"type":"direct"}"#.into()),
                }),
            ]
        );
        assert_eq!(reply.stop, Stop::Finished);
        assert_eq!(reply.usage, Usage { input: 25, cache_write: 0, cache_read: 3, output: 58 });
    }

    #[test]
    fn a_document_keeps_the_input_as_it_was_written() {
        let mut reader = Reader::default();
        reader
            .document(r#"{"type":"message","content":[{"type":"tool_use","id":"t","name":"x","input":{"n": 1e2}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}"#)
            .unwrap();
        let reply = reader.finish().unwrap();
        let Part::Call(call) = &reply.parts[0] else { panic!("{reply:?}") };
        assert_eq!(call.arguments, r#"{"n": 1e2}"#);
    }

    #[test]
    fn every_stop_reason_has_its_meaning() {
        let cases = [
            ("end_turn", Stop::Finished, None),
            ("stop_sequence", Stop::Finished, None),
            ("tool_use", Stop::Finished, None),
            ("max_tokens", Stop::Cut, None),
            ("model_context_window_exceeded", Stop::WindowFull, None),
            ("refusal", Stop::Declined("too risky".into()), None),
            ("pause_turn", Stop::Paused, None),
            ("brand_new", Stop::Finished, Some("brand_new".to_owned())),
        ];
        for (word, stop, unknown) in cases {
            let end = format!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}","stop_details":{{"explanation":"too risky"}}}}}}"#
            );
            let reply = read(&[START, &end, r#"{"type":"message_stop"}"#]).unwrap();
            assert_eq!((reply.stop, reply.unknown_stop), (stop, unknown), "{word}");
        }
    }

    #[test]
    fn a_stream_without_its_last_event_is_incomplete() {
        assert_eq!(read(&[START]), Err(Fault::Incomplete));
    }

    #[test]
    fn an_error_event_ends_the_reply_with_the_status_it_stands_for() {
        let fault =
            read(&[START, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#]);
        let Err(Fault::Api(error)) = fault else { panic!("{fault:?}") };
        assert_eq!((error.status, error.message.as_str()), (529, "Overloaded"));
    }

    #[test]
    fn blank_text_is_left_out_and_an_empty_message_disappears() {
        let blank = Message { role: Role::Assistant, parts: vec![Part::Text(" \n".into())], origin: None };
        assert_eq!(message(&settings(), &blank, true), (String::new(), None));
    }

    #[test]
    fn a_mark_fits_into_the_last_block_of_a_user_message() {
        let results = Message {
            role: Role::User,
            parts: vec![Part::Result(crate::conversation::CallResult {
                call_id: "functions.Read:1".into(),
                text: "no".into(),
                images: Vec::new(),
                is_error: true,
            })],
            origin: None,
        };
        let (text, at) = message(&settings(), &results, true);
        let (before, after) = text.split_at(at.unwrap());
        let marked: Value = serde_json::from_str(&format!("{before}{}{after}", super::super::MARK)).unwrap();
        assert_eq!(marked["content"][0]["cache_control"]["type"], "ephemeral");
        assert_eq!(marked["content"][0]["is_error"], true);
        let id = marked["content"][0]["tool_use_id"].as_str().unwrap();
        assert!(id.starts_with("call_") && id.len() == 15, "{id}");
    }

    /// Settings of nothing but the model.
    pub fn settings() -> Settings {
        Settings::plain(Api::Anthropic, Host::Other, "m")
    }

    #[test]
    fn images_follow_the_text_of_their_result_unless_it_failed_or_they_are_refused() {
        let image = |data: &str| Image { media_type: "image/png".into(), data: data.into() };
        let mut result = crate::conversation::CallResult {
            call_id: "a".into(),
            text: "two".into(),
            images: vec![image("AAAA"), image("BBBB")],
            is_error: false,
        };
        let rendered = |settings: &Settings, result: &crate::conversation::CallResult| {
            let parts = vec![Part::Result(result.clone())];
            let text = message(settings, &Message { role: Role::User, parts, origin: None }, true).0;
            serde_json::from_str::<Value>(&text).unwrap()["content"][0].clone()
        };
        let block = |data: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
        let mut settings = settings();
        let content = json!([{"type": "text", "text": "two"}, block("AAAA"), block("BBBB")]);
        assert_eq!(
            rendered(&settings, &result),
            json!({"type": "tool_result", "tool_use_id": "a", "content": content})
        );
        settings.learnt.no_images = Some(NoImages::Refused);
        let left_out = "two\n[image left out: the server refused one of them]\n[image left out: the server refused one of them]";
        assert_eq!(rendered(&settings, &result)["content"], left_out);
        settings.learnt.no_images = None;
        result.is_error = true;
        assert_eq!(rendered(&settings, &result)["content"], "two");
    }

    fn start(index: &str, block: &str) -> String {
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
    }

    fn read_blocks(blocks: &[String]) -> Result<Reply, Fault> {
        let mut events = vec![START];
        events.extend(blocks.iter().map(String::as_str));
        events.extend([r#"{"type":"message_delta","delta":{}}"#, r#"{"type":"message_stop"}"#]);
        read(&events)
    }

    fn read_document(content: &str) -> Result<Reply, Fault> {
        let mut reader = Reader::default();
        reader.document(&format!(r#"{{"type":"message","content":{content}}}"#))?;
        reader.finish()
    }

    /// The blocks went back as they came, and the request was no sound JSON.
    #[test]
    fn half_a_surrogate_pair_goes_back_in_no_block() {
        let delta = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"q\": \"\\ud83d\"}"}}"#;
        let streamed = read_blocks(&[
            start("0", r#"{"type":"redacted_thinking","data":"\ud83d x","n":1.10}"#),
            start("1", r#"{"type":"server_tool_use","id":"s","name":"x","input":{}}"#),
            delta.to_owned(),
            start(
                "2",
                r#"{"type":"tool_use","id":"t","name":"x","input":{"a": "\ude00"},"caller":{"b": "\ud83d"}}"#,
            ),
        ])
        .unwrap();
        let whole = read_document(
            r#"[{"type":"redacted_thinking","data":"\ud83d x","n":1.10},
            {"type":"server_tool_use","id":"s","name":"x","input":{"q": "\ud83d"}},
            {"type":"tool_use","id":"t","name":"x","input":{"a": "\ude00"},"caller":{"b": "\ud83d"}}]"#,
        )
        .unwrap();
        let expected = concat!(
            r#"{"role":"assistant","content":[{"type":"redacted_thinking","data":"\ufffd x","n":1.10},"#,
            r#"{"type":"server_tool_use","id":"s","name":"x","input":{"q": "\ufffd"}},"#,
            r#"{"type":"tool_use","id":"t","name":"x","input":{"a": "\ufffd"},"caller":{"b": "\ufffd"}}]}"#
        );
        for parts in [streamed.parts, whole.parts] {
            let said = Message { role: Role::Assistant, parts, origin: None };
            assert_eq!(message(&settings(), &said, true).0, expected);
        }
    }

    /// They were echoed, and no server takes them back.
    #[test]
    fn what_is_no_block_does_not_go_back() {
        let odd = ["null", "3", "[]", r#""text""#, "{}", r#"{"text":"x"}"#, r#"{"type":3}"#];
        let text = r#"{"type":"text","text":"yes"}"#;
        for odd in odd {
            let streamed = read_blocks(&[start("0", odd), start("1", text)]);
            let whole = read_document(&format!("[{odd},{text}]"));
            for reply in [streamed, whole] {
                assert_eq!(reply.unwrap().parts, [Part::Text("yes".into())], "{odd}");
            }
        }
        let missing = r#"{"type":"content_block_start","index":0}"#.to_owned();
        assert_eq!(read_blocks(&[missing]).unwrap().parts, []);
    }

    /// The later block took the place of the earlier one, whose text was lost.
    #[test]
    fn a_block_whose_index_cannot_be_is_malformed() {
        let text = r#"{"type":"text","text":"x"}"#;
        for index in ["-1", "1.5", "1.0", r#""1""#, "[]"] {
            let expected = format!("a content block's index is no whole number: {index}");
            assert_eq!(read_blocks(&[start(index, text)]), Err(Fault::Malformed(expected)), "{index}");
        }
        let twice = read_blocks(&[start("0", text), start("1", text), start("0", text)]);
        assert_eq!(twice, Err(Fault::Malformed("two content blocks have the index 0".to_owned())));
    }

    #[test]
    fn a_block_without_an_index_takes_the_next_place_and_a_delta_without_its_block_none() {
        let no_index = r#"{"type":"content_block_start","content_block":{"type":"text","text":"two"}}"#;
        let stray = r#"{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"x"}}"#;
        let reply = read_blocks(&[
            start("1", r#"{"type":"text","text":"one"}"#),
            no_index.to_owned(),
            stray.to_owned(),
            stray.replace('9', "-1"),
            stray.replace(r#""index":9,"#, ""),
        ])
        .unwrap();
        assert_eq!(reply.parts, [Part::Text("one".into()), Part::Text("twox".into())]);
    }

    #[test]
    fn a_second_beginning_is_malformed() {
        let fault = read(&[START, START]);
        assert_eq!(fault, Err(Fault::Malformed("a second message_start in one reply".to_owned())));
    }

    /// Alone such a block can be read; inside a request it was too deep for any reader.
    #[test]
    fn a_block_nested_too_deeply_is_malformed_and_such_arguments_are_refused() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let vendor = |levels| format!(r#"{{"type":"odd","data":{}}}"#, deep(levels));
        let thinking = format!(r#"{{"type":"thinking","thinking":"x","more":{}}}"#, deep(100));
        let extra = format!(r#"{{"type":"tool_use","id":"t","name":"x","input":{{}},"more":{}}}"#, deep(101));
        for (kind, block) in [("odd", vendor(100)), ("thinking", thinking), ("tool_use", extra)] {
            let expected = Fault::Malformed(format!("a block \"{kind}\" is nested too deeply"));
            assert_eq!(read_blocks(&[start("0", &block)]), Err(expected.clone()), "{block}");
            assert_eq!(read_document(&format!("[{block}]")), Err(expected), "{block}");
        }
        assert_eq!(read_blocks(&[start("0", &vendor(99))]).unwrap().parts, [Part::Vendor(vendor(99))]);
        let delta = |levels| {
            let input = Value::from(format!(r#"{{"a":{}}}"#, deep(levels)));
            format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":{input}}}}}"#
            )
        };
        for levels in [99, 100, 1000] {
            let server = start("0", r#"{"type":"server_tool_use","id":"s","name":"x","input":{}}"#);
            let expected = Fault::Malformed("a block \"server_tool_use\" is nested too deeply".to_owned());
            assert_eq!(read_blocks(&[server, delta(levels)]), Err(expected), "{levels}");
        }
        let own = start("0", r#"{"type":"tool_use","id":"t","name":"x","input":{}}"#);
        let reply = read_blocks(&[own, delta(100)]).unwrap();
        let Part::Call(call) = &reply.parts[0] else { panic!("{reply:?}") };
        assert_eq!((call.arguments.as_str(), call.refusal.is_some()), ("{}", true));
    }

    #[test]
    fn an_error_of_another_api_inside_a_success_is_an_error() {
        let fault = Reader::default().document(r#"{"object":"error","message":"m","code":400}"#);
        let Err(Fault::Api(error)) = fault else { panic!("{fault:?}") };
        assert_eq!((error.status, error.message.as_str()), (400, "m"));
    }
}
