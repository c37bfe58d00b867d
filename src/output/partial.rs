//! A reply while it grows, told in the events of the Messages API, whichever API it comes from. Pure.
//!
//! Nothing is told that would have to be taken back: blocks begin and end one after another, a call is told
//! once its id and name are sure, and what came out of order follows at the end. So the texts told, joined,
//! are the text of the whole reply.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::events::{self, Said};
use super::rest_of;
use super::whole::Whole;
use crate::conversation::Part;
use crate::provider;
use crate::provider::Usage;
use crate::provider::shown::Growing;

/// What has been told of a reply.
pub struct Partial {
    message_id: String,
    model: String,
    begun: bool,
    blocks: Vec<Told>,
    /// The numbers of the blocks that have been told, and the highest of them.
    numbers: HashSet<u64>,
    told_to: u64,
    /// Whether the last block goes on.
    is_open: bool,
    /// Whether its text is whole, as far as JSON tells.
    whole: Whole,
}

/// What has been told of a block.
struct Told {
    /// The number by which the growing reply knows it; absent if what it held turned out to be another.
    number: Option<u64>,
    kind: Kind,
    id: String,
    text: String,
    is_signed: bool,
    /// Whether the whole reply was seen to hold it.
    is_found: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Thinking,
    Text,
    Call,
    /// Told whole or not at all; the text is its JSON.
    Other,
}

/// A block as it stands. Only a call has an id and a name.
struct Block<'a> {
    kind: Kind,
    id: &'a str,
    name: &'a str,
    text: &'a str,
    signature: &'a str,
}

impl Partial {
    /// Nothing has been told yet.
    pub fn new(message_id: String, model: &str) -> Partial {
        Partial {
            message_id,
            model: model.to_owned(),
            begun: false,
            blocks: Vec::new(),
            numbers: HashSet::new(),
            told_to: 0,
            is_open: false,
            whole: Whole::default(),
        }
    }

    /// The highest number of a block that has been told.
    pub fn told_to(&self) -> u64 {
        self.told_to
    }

    /// The id of the message that is told.
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// Tells what is new. A call whose id `is_taken` by an earlier one gets another in the conversation.
    pub fn grow(&mut self, growing: &[(u64, Growing)], is_taken: impl Fn(&str) -> bool) -> Vec<Value> {
        let mut events = self.begin();
        let blocks: Vec<_> = growing.iter().map(|(number, block)| (*number, view(block))).collect();
        for (number, block) in &blocks {
            match (self.blocks.last_mut(), block) {
                (Some(told), Some(block)) if self.is_open && told.number == Some(*number) => {
                    // Where it begins anew it was thinking, which only its end tells at times.
                    match rest_of(block.text, &told.text) {
                        Some(_) => self.tell_rest(block, &mut events),
                        None => {
                            told.number = None;
                            self.numbers.remove(number);
                        }
                    }
                    break;
                }
                _ => {}
            }
        }
        for (place, (number, block)) in blocks.iter().enumerate() {
            let Some(block) = block else { break };
            // What a block gains after its end is told with the whole reply.
            if self.numbers.contains(number) {
                continue;
            }
            let goes_on = growing[place + 1..].iter().any(|(_, later)| has_come(later));
            let is_sure = match block.kind {
                Kind::Thinking | Kind::Text if block.text.trim_start().is_empty() => continue,
                Kind::Thinking | Kind::Text => true,
                Kind::Call => {
                    let named = !block.id.is_empty() && !block.name.is_empty() && !is_taken(block.id);
                    named && (!block.text.is_empty() || goes_on)
                }
                Kind::Other => goes_on,
            };
            if !is_sure || !self.may_close() {
                break;
            }
            self.start(Some(*number), block, &mut events);
        }
        events
    }

    /// Tells what is missing of the whole reply, and its end.
    pub fn finish(&mut self, said: &Said) -> Vec<Value> {
        let mut events = self.begin();
        let shown: Vec<(&Part, Option<Value>, String)> = said
            .parts
            .iter()
            .map(|part| {
                let value = vendor_block(part);
                let json = value.as_ref().map_or_else(String::new, Value::to_string);
                (part, value, json)
            })
            .collect();
        let blocks: Vec<Block> =
            shown.iter().filter_map(|(part, value, json)| whole(part, value.as_ref(), json)).collect();
        let mut places = Vec::with_capacity(blocks.len());
        // Nearly always in the order in which they were told.
        let mut first = 0;
        for block in &blocks {
            let mut rest = self.blocks[first..].iter().zip(first..);
            let place = rest.find(|(told, _)| !told.is_found && told.begins(block)).map(|(_, at)| at);
            if let Some(at) = place {
                self.blocks[at].is_found = true;
            }
            first += self.blocks[first..].iter().take_while(|told| told.is_found).count();
            places.push(place);
        }
        // The block that goes on comes first, whatever its place: the others end it.
        let last = self.blocks.len().checked_sub(1).filter(|_| self.is_open);
        let open = places.iter().position(|place| place.is_some() && *place == last);
        if let Some(open) = open {
            self.tell_rest(&blocks[open], &mut events);
        }
        for (at, (block, place)) in blocks.iter().zip(places).enumerate() {
            match place {
                _ if Some(at) == open => {}
                None => self.start(None, block, &mut events),
                Some(place) => self.tell_late(place, block, &mut events),
            }
        }
        self.close(&mut events);
        let stop_reason = said.stop.word(said.parts);
        events.push(json!({
            "type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null},
            "usage": events::usage(said.usage),
        }));
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn begin(&mut self) -> Vec<Value> {
        if std::mem::replace(&mut self.begun, true) {
            return Vec::new();
        }
        let message = events::message(&self.message_id, &self.model, events::usage(Usage::default()));
        vec![json!({"type": "message_start", "message": message})]
    }

    /// Whether the block that goes on is whole, as far as that can be told: another one has begun. Of calls
    /// that come side by side the later one has to wait.
    fn may_close(&mut self) -> bool {
        match self.blocks.last() {
            Some(told) if self.is_open && told.kind == Kind::Call => self.whole.holds(&told.text),
            _ => true,
        }
    }

    fn close(&mut self, events: &mut Vec<Value>) {
        if std::mem::replace(&mut self.is_open, false) {
            events.push(json!({"type": "content_block_stop", "index": self.blocks.len() - 1}));
        }
    }

    fn start(&mut self, number: Option<u64>, block: &Block, events: &mut Vec<Value>) {
        self.close(events);
        let start = match block.kind {
            Kind::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Kind::Text => json!({"type": "text", "text": ""}),
            Kind::Call => json!({"type": "tool_use", "id": block.id, "name": block.name, "input": {}}),
            Kind::Other => provider::parse(block.text).unwrap_or_default(),
        };
        let text = if block.kind == Kind::Other { block.text.to_owned() } else { String::new() };
        self.is_open = true;
        self.whole = Whole::default();
        self.numbers.extend(number);
        self.told_to = self.told_to.max(number.unwrap_or_default());
        let index = self.blocks.len();
        self.blocks.push(Told {
            number,
            kind: block.kind,
            id: block.id.to_owned(),
            text,
            is_signed: false,
            is_found: false,
        });
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        self.tell_rest(block, events);
    }

    /// Tells what the last block has gained.
    fn tell_rest(&mut self, block: &Block, events: &mut Vec<Value>) {
        let index = self.blocks.len() - 1;
        let told = &mut self.blocks[index];
        let mut delta = |delta: Value| {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        };
        let rest = rest_of(block.text, &told.text).unwrap_or_default();
        if !rest.is_empty() {
            delta(match block.kind {
                Kind::Thinking => json!({"type": "thinking_delta", "thinking": rest}),
                Kind::Call => json!({"type": "input_json_delta", "partial_json": rest}),
                Kind::Text | Kind::Other => json!({"type": "text_delta", "text": rest}),
            });
            told.text.push_str(rest);
            self.whole.take(rest);
        }
        if !block.signature.is_empty() && !std::mem::replace(&mut told.is_signed, true) {
            delta(json!({"type": "signature_delta", "signature": block.signature}));
        }
    }

    /// Tells what a block has gained since its end, as a block of its own.
    fn tell_late(&mut self, at: usize, block: &Block, events: &mut Vec<Value>) {
        let rest = block.text.strip_prefix(self.blocks[at].text.as_str()).unwrap_or_default();
        if !rest.is_empty() && matches!(block.kind, Kind::Text | Kind::Thinking) {
            self.start(None, &Block { text: rest, ..*block }, events);
        }
    }
}

impl Told {
    /// Whether this is the beginning of a block of the whole reply. A call's arguments may have been mended.
    fn begins(&self, block: &Block) -> bool {
        self.kind == block.kind
            && match self.kind {
                Kind::Call => self.id == block.id,
                Kind::Thinking | Kind::Text | Kind::Other => block.text.starts_with(&self.text),
            }
    }
}

/// The block, if it is one that can be told already.
fn view<'a>(growing: &'a Growing) -> Option<Block<'a>> {
    let nothing = Block { kind: Kind::Text, id: "", name: "", text: "", signature: "" };
    Some(match growing {
        Growing::Thinking(text, signature) => Block { kind: Kind::Thinking, text, signature, ..nothing },
        Growing::Text(text) => Block { text, ..nothing },
        Growing::Call { id, name, arguments } => {
            Block { kind: Kind::Call, id, name, text: arguments, ..nothing }
        }
        Growing::Other(text) => Block { kind: Kind::Other, text: (*text)?, ..nothing },
    })
}

/// What vendor data is shown as.
fn vendor_block(part: &Part) -> Option<Value> {
    match part {
        Part::Vendor(_) => events::block(part),
        _ => None,
    }
}

/// Whether anything of the block has come.
fn has_come(growing: &Growing) -> bool {
    match growing {
        Growing::Thinking(text, _) => !text.is_empty(),
        Growing::Text(text) => !text.is_empty(),
        Growing::Call { .. } | Growing::Other(_) => true,
    }
}

/// A part of the whole reply, vendor data as the value and the text it is shown as.
fn whole<'a>(part: &'a Part, value: Option<&'a Value>, json: &'a str) -> Option<Block<'a>> {
    let nothing = Block { kind: Kind::Text, id: "", name: "", text: "", signature: "" };
    Some(match (part, value) {
        (Part::Text(text), _) => Block { text, ..nothing },
        (Part::Call(call), _) => {
            Block { kind: Kind::Call, id: &call.id, name: &call.name, text: &call.arguments, ..nothing }
        }
        (Part::Vendor(_), Some(value)) => match value["thinking"].as_str() {
            Some(text) => {
                let signature = value["signature"].as_str().unwrap_or_default();
                Block { kind: Kind::Thinking, text, signature, ..nothing }
            }
            None => Block { kind: Kind::Other, text: json, ..nothing },
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Call;
    use crate::provider::Stop;
    use std::borrow::Cow;

    fn text(text: &str) -> Growing<'_> {
        Growing::Text(text)
    }

    fn thinking(text: &str) -> Growing<'_> {
        Growing::Thinking(Cow::Borrowed(text), "")
    }

    fn call<'a>(id: &'a str, arguments: &'a str) -> Growing<'a> {
        Growing::Call { id, name: "Read", arguments }
    }

    fn part(growing: &Growing) -> Option<Part> {
        Some(match growing {
            Growing::Text(text) if text.trim().is_empty() => return None,
            Growing::Text(text) => Part::Text((*text).to_owned()),
            Growing::Thinking(text, _) if text.is_empty() => return None,
            Growing::Thinking(text, _) => Part::Vendor(json!({"reasoning_content": text}).to_string()),
            Growing::Call { id, name, arguments } => Part::Call(Call {
                id: (*id).to_owned(),
                name: (*name).to_owned(),
                arguments: (*arguments).to_owned(),
                refusal: None,
                extra: None,
            }),
            Growing::Other(text) => Part::Vendor((*text)?.to_owned()),
        })
    }

    /// Tells these stages of a reply, the last of which is the whole, as one short line for each event.
    fn tell(stages: &[Vec<(u64, Growing)>], is_taken: impl Fn(&str) -> bool) -> Vec<String> {
        let mut partial = Partial::new("m".to_owned(), "test-model");
        let mut events = Vec::new();
        for stage in stages {
            events.extend(partial.grow(stage, &is_taken));
        }
        let parts: Vec<Part> = stages.last().unwrap().iter().filter_map(|(_, block)| part(block)).collect();
        let (stop, usage) = (&Stop::Finished, Usage::default());
        events.extend(partial.finish(&Said { parts: &parts, stop, usage, model: "test-model" }));
        events.iter().map(short).collect()
    }

    /// Checks that blocks follow one another, and puts them into one word each.
    fn short(event: &Value) -> String {
        let index = &event["index"];
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                let block = &event["content_block"];
                let id = block["id"].as_str().map(|id| format!(" {id}")).unwrap_or_default();
                format!("{index} {}{id}", block["type"].as_str().unwrap())
            }
            "content_block_delta" => {
                let members = event["delta"].as_object().unwrap();
                format!("{index} +{}", members.values().nth(1).unwrap().as_str().unwrap())
            }
            "content_block_stop" => format!("{index} end"),
            "message_start" => "begin".to_owned(),
            "message_delta" => event["delta"]["stop_reason"].as_str().unwrap().to_owned(),
            other => other.to_owned(),
        }
    }

    #[test]
    fn of_calls_that_come_side_by_side_the_later_one_waits() {
        let stages = [
            vec![(2, call("a", "")), (3, call("b", ""))],
            vec![(2, call("a", "{\"x\"")), (3, call("b", ""))],
            vec![(2, call("a", "{\"x\"")), (3, call("b", "{}"))],
            vec![(2, call("a", "{\"x\":1}")), (3, call("b", "{}"))],
        ];
        let expected = [
            "begin",
            "0 tool_use a",
            "0 +{\"x\"",
            "0 +:1}",
            "0 end",
            "1 tool_use b",
            "1 +{}",
            "1 end",
            "tool_use",
            "message_stop",
        ];
        assert_eq!(tell(&stages, |_| false), expected);
    }

    #[test]
    fn text_that_goes_on_behind_a_call_is_a_block_at_the_end() {
        let stages = [
            vec![(1, text("one")), (2, call("a", "{}"))],
            vec![(1, text("one and two")), (2, call("a", "{}"))],
        ];
        let expected = [
            "begin",
            "0 text",
            "0 +one",
            "0 end",
            "1 tool_use a",
            "1 +{}",
            "1 end",
            "2 text",
            "2 + and two",
            "2 end",
            "tool_use",
            "message_stop",
        ];
        assert_eq!(tell(&stages, |_| false), expected);
    }

    #[test]
    fn text_that_begins_anew_is_another_block() {
        let stages = [vec![(1, text("hm, let me"))], vec![(1, text(""))], vec![(1, text("42"))]];
        let expected = [
            "begin",
            "0 text",
            "0 +hm, let me",
            "0 end",
            "1 text",
            "1 +42",
            "1 end",
            "end_turn",
            "message_stop",
        ];
        assert_eq!(tell(&stages, |_| false), expected);
    }

    #[test]
    fn a_call_without_a_sure_id_or_name_is_told_with_the_whole_reply() {
        let unnamed = Growing::Call { id: "a", name: "", arguments: "{}" };
        let stages = [vec![(2, unnamed)], vec![(2, call("", "{}"))], vec![(2, call("taken", "{}"))]];
        let expected = ["begin", "0 tool_use taken", "0 +{}", "0 end", "tool_use", "message_stop"];
        assert_eq!(tell(&stages, |id| id == "taken"), expected);
    }

    #[test]
    fn a_block_of_another_kind_is_told_whole() {
        let other = || Growing::Other(Some(r#"{"type":"redacted_thinking","data":"x"}"#));
        let stages = [vec![(0, other())], vec![(0, other()), (1, text("one"))]];
        let expected = [
            "begin",
            "0 redacted_thinking",
            "0 end",
            "1 text",
            "1 +one",
            "1 end",
            "end_turn",
            "message_stop",
        ];
        assert_eq!(tell(&stages, |_| false), expected);
    }

    #[test]
    fn blank_text_is_no_block() {
        let stages = [vec![(0, thinking("")), (1, text("\n")), (2, call("a", "{}"))]];
        let expected = ["begin", "0 tool_use a", "0 +{}", "0 end", "tool_use", "message_stop"];
        assert_eq!(tell(&stages, |_| false), expected);
    }

    /// Whatever the order in which pieces come, blocks follow one another and hold together what was said.
    #[test]
    fn any_order_of_pieces_gives_the_whole_reply_in_sound_events() {
        let wholes = ["Hm, hm, hm.", "In 1932 it was.", r#"{"file_path": "a"}"#, r#"{"file_path": "b\"c"}"#];
        let mut random: u64 = 7;
        for _ in 0..2000 {
            let mut lengths = [0; 4];
            let mut stages = Vec::new();
            loop {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (random >> 33) as usize % 4;
                lengths[at] = wholes[at].len().min(lengths[at] + (random >> 40) as usize % 9);
                stages.push(vec![
                    (0, thinking(&wholes[0][..lengths[0]])),
                    (1, text(&wholes[1][..lengths[1]])),
                    (2, call("a", &wholes[2][..lengths[2]])),
                    (3, call("b", &wholes[3][..lengths[3]])),
                ]);
                if lengths.iter().zip(wholes).all(|(length, whole)| *length == whole.len()) {
                    break;
                }
            }
            let events = tell(&stages, |_| false);
            let mut told = [(); 4].map(|()| String::new());
            let mut open: Option<(usize, usize)> = None;
            let mut blocks = 0;
            for event in &events[1..events.len() - 2] {
                let (index, what) = event.split_once(' ').unwrap();
                let index: usize = index.parse().unwrap();
                match (what, what.strip_prefix('+'), open) {
                    (_, Some(piece), Some((at, kind))) if at == index => told[kind].push_str(piece),
                    ("end", None, Some((at, _))) if at == index => open = None,
                    (kind, None, None) if index == blocks => {
                        let kinds = ["thinking", "text", "tool_use a", "tool_use b"];
                        open = Some((index, kinds.iter().position(|known| *known == kind).unwrap()));
                        blocks += 1;
                    }
                    _ => panic!("{event} is out of place: {events:?}"),
                }
            }
            assert_eq!((told.each_ref().map(String::as_str), open), (wholes, None), "{events:?}");
        }
    }
}
