use serde_json::json;

use super::*;
use crate::conversation::{Message, Parts};

fn read(lines: &[impl AsRef<[u8]>]) -> (Conversation, Vec<(String, usize)>) {
    let mut reading = Reading::default();
    lines.iter().for_each(|line| reading.line(line.as_ref()));
    let (conversation, left_out) = reading.finish();
    (conversation, left_out)
}

fn texts_of(conversation: &Conversation) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Image(image) => image.media_type.clone(),
        Part::Call(call) => format!("call {}", call.id),
        Part::Result(result) => format!("result {} {}", result.call_id, result.text),
        Part::Vendor(text) => text.clone(),
    };
    let message = |message: &Message| {
        let parts: Vec<String> = message.parts.iter().map(part).collect();
        format!("{:?}: {}", message.role, parts.join(" | "))
    };
    conversation.messages().iter().map(message).collect()
}

/// Numbers that are the same each time (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }

    fn text(&mut self) -> String {
        let pieces =
            ["a", " ", "\n", "\r\n", "\"", "\\", "\0", "é", "\u{1f600}", "\u{202e}", "</x>", "{", "\u{2028}"];
        (0..self.below(12)).map(|_| pieces[self.below(pieces.len())]).collect()
    }

    fn call(&mut self) -> Call {
        let arguments =
            ["{}", r#"{"a":1.10,"b":"\ud83d\ude00\n"}"#, " {\"deep\":[[[{}]]], \"a\":1, \"a\":1e2}"];
        Call {
            // Missing and repeated ids are among them.
            id: ["", "call_0", "call_1", "toolu_1"][self.below(4)].to_owned(),
            name: self.text(),
            arguments: arguments[self.below(3)].to_owned(),
            refusal: (self.below(4) == 0).then(|| self.text()),
            extra: (self.below(4) == 0).then(|| r#""extra_content":{"s":"\"1.0\""}"#.to_owned()),
        }
    }

    fn reply(&mut self) -> Vec<Part> {
        (0..=self.below(4))
            .map(|_| match self.below(3) {
                0 => Part::Text(self.text()),
                1 => Part::Vendor(r#"{"type":"thinking","signature":"a\/b","n":1.50}"#.to_owned()),
                _ => Part::Call(self.call()),
            })
            .collect()
    }

    fn results(&mut self, calls: Vec<Call>) -> Vec<CallResult> {
        let mut result = |call: Call| CallResult {
            call_id: call.id,
            text: self.text(),
            images: vec![Image::new("image/png", &[1, 2, 3]); self.below(3)],
            is_error: self.below(2) == 0,
        };
        calls.into_iter().map(&mut result).collect()
    }
}

/// A conversation and its lines, handed out at moments drawn by lot.
fn random_conversation(random: &mut Random) -> (Conversation, Vec<String>) {
    let mut conversation = Conversation::default();
    let mut lines = Vec::new();
    for _ in 0..random.below(8) {
        let mut said = Parts::from(random.text().as_str()).0;
        said.extend((random.below(4) == 0).then(|| Part::Image(Image::new("image/gif", b"GIF89a"))));
        conversation.add_user(said);
        for _ in 0..random.below(4) {
            let origin = ["anthropic a", "openai b"][random.below(2)];
            let calls = conversation.add_reply(random.reply(), origin);
            if random.below(2) == 0 {
                lines.extend(conversation.new_lines());
            }
            for result in random.results(calls) {
                conversation.add_result(result);
                if random.below(2) == 0 {
                    lines.extend(conversation.new_lines());
                }
            }
        }
    }
    lines.extend(conversation.new_lines());
    (conversation, lines)
}

#[test]
fn any_conversation_is_read_back_as_it_was() {
    for seed in 0..500 {
        let (mut conversation, lines) = random_conversation(&mut Random(seed));
        // A file begins with what the user says.
        if conversation.messages().first().is_none_or(|first| first.role == Role::Assistant) {
            continue;
        }
        let (mut found, left_out) = read(&lines);
        assert_eq!(found.messages(), conversation.messages(), "seed {seed}: {lines:#?}");
        assert_eq!((left_out, found.new_lines()), (vec![], vec![]), "seed {seed}");
        // Both go on alike, ids included.
        let calls = [&mut found, &mut conversation]
            .map(|each| each.add_reply(vec![Part::Call(Random(seed).call())], "x"));
        assert_eq!(calls[0], calls[1], "seed {seed}");
    }
}

/// Each call is followed by one result, each id is unique, and the user speaks first.
#[track_caller]
fn can_be_sent(conversation: &Conversation, what: &str) {
    let messages = conversation.messages();
    let mut ids = std::collections::HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let asked: Vec<&str> = match index.checked_sub(1) {
            Some(before) => messages[before].calls().map(|call| call.id.as_str()).collect(),
            None => Vec::new(),
        };
        let is_result = |part: &&Part| matches!(part, Part::Result(_));
        let answered: Vec<&str> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Result(result) => Some(result.call_id.as_str()),
                _ => None,
            })
            .collect();
        let mut sorted = [asked.clone(), answered.clone()];
        sorted.iter_mut().for_each(|ids| ids.sort_unstable());
        assert_eq!(sorted[0], sorted[1], "{what}: message {index} of {messages:#?}");
        assert_eq!(
            message.parts.iter().take_while(is_result).count(),
            answered.len(),
            "{what}: results come first"
        );
        assert!(message.calls().all(|call| ids.insert(call.id.clone())), "{what}: an id comes twice");
        assert!(!message.parts.is_empty(), "{what}: an empty message");
    }
    assert!(messages.first().is_none_or(|first| first.role == Role::User), "{what}: the user speaks first");
    assert!(messages.last().is_none_or(|last| last.calls().next().is_none()), "{what}: a call stays open");
}

#[test]
fn whatever_lines_are_missing_what_is_left_can_be_sent_and_gone_on_with() {
    for seed in 0..600 {
        let mut random = Random(seed);
        let (_, mut lines) = random_conversation(&mut random);
        for _ in 0..random.below(4) {
            if !lines.is_empty() {
                let at = random.below(lines.len());
                match random.below(3) {
                    0 => drop(lines.remove(at)),
                    1 => lines.truncate(at),
                    _ => lines[at] = lines[at].replace("call_", "x").replace("text", "audio"),
                }
            }
        }
        let (mut found, _) = read(&lines);
        can_be_sent(&found, &format!("seed {seed}, {lines:#?}"));
        // What was added in reading is kept: the next time it is read instead.
        lines.extend(found.new_lines());
        let (again, _) = read(&lines);
        assert_eq!(again.messages(), found.messages(), "seed {seed}");
    }
}

#[test]
fn any_bytes_are_read_without_an_error() {
    let mut random = Random(7);
    let (_, lines) = random_conversation(&mut Random(3));
    for seed in 0..500 {
        let mut bytes = lines.join("\n").into_bytes();
        for _ in 0..=random.below(5) {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        can_be_sent(&read(&lines).0, &format!("seed {seed}"));
    }
}

const USER: &str = r#"{"type":"user","parts":[{"type":"text","text":"hi"}]}"#;
const CALLS: &str = concat!(
    r#"{"type":"assistant","parts":[{"type":"call","id":"a","name":"Read","arguments":"{}"},"#,
    r#"{"type":"call","id":"b","name":"Read","arguments":"{}"}],"origin":"test"}"#
);
const RESULT_A: &str =
    r#"{"type":"user","parts":[{"type":"result","call_id":"a","text":"x","is_error":false}]}"#;

#[test]
fn a_call_without_a_result_is_answered_as_interrupted_and_that_is_new() {
    let (mut conversation, left_out) = read(&[USER, CALLS, RESULT_A]);
    let interrupted = format!("result b {INTERRUPTED}");
    let expected = [
        "User: hi".to_owned(),
        "Assistant: call a | call b".to_owned(),
        format!("User: result a x | {interrupted}"),
    ];
    assert_eq!(texts_of(&conversation), expected);
    assert_eq!(left_out, []);
    let line = json!({"type": "user", "parts": [
        {"type": "result", "call_id": "b", "text": INTERRUPTED, "is_error": true}]});
    assert_eq!(conversation.new_lines(), [line.to_string()]);
}

#[test]
fn in_the_middle_too_and_a_result_that_comes_late_is_left_out() {
    let (mut conversation, left_out) = read(&[USER, CALLS, USER, RESULT_A]);
    let expected = format!("User: result a {INTERRUPTED} | result b {INTERRUPTED} | hi");
    assert_eq!(texts_of(&conversation)[2..], [expected]);
    assert_eq!(left_out, [("a result without its call".to_owned(), 1)]);
    assert_eq!(conversation.new_lines(), [""; 0], "it is derived anew each time");
}

#[test]
fn what_is_not_known_is_left_out_and_counted() {
    let lines = [
        USER,
        r#"{"type":"note","parts":[]}"#,
        r#"{"type":"note"}"#,
        "{\"type\":\"us",
        r#"{"type":"user","parts":[{"type":"audio","data":"x"},{"type":"call","id":"a"},{"type":"text","text":7}]}"#,
        r#"{"type":"assistant","parts":[{"type":"vendor","json":"]"}],"origin":"test"}"#,
        r#"{"type":"assistant","parts":[{"type":"call","id":"a","name":"Read","arguments":"{}}"}],"origin":"test"}"#,
        "",
        r#"["user"]"#,
    ];
    let (conversation, left_out) = read(&lines);
    assert_eq!(texts_of(&conversation), ["User: hi"]);
    let expected = [
        ("a line of the type \"note\"", 2),
        ("a damaged line", 1),
        ("a part of the type \"audio\"", 1),
        ("a part of the type \"call\"", 1),
        ("a damaged part of the type \"text\"", 1),
        ("a damaged part of the type \"vendor\"", 1),
        ("a damaged part of the type \"call\"", 1),
        ("a line of the type null", 1),
    ];
    assert_eq!(left_out, expected.map(|(what, count)| (what.to_owned(), count)));
}

/// They went into requests, which no reader took then, nor could a recording be made of them.
#[test]
fn what_would_spoil_a_request_is_damaged() {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    for object in [r#"{"n":1e999}"#, r#"{"a":"\ud83d"}"#, &deep] {
        let call =
            |arguments: &str| json!({"type": "call", "id": "a", "name": "Read", "arguments": arguments});
        let mut with_extra = call("{}");
        with_extra["extra"] = json!(object.trim_start_matches('{').strip_suffix('}'));
        let vendor = json!({"type": "vendor", "json": object});
        let line = json!({"type": "assistant", "parts": [call(object), with_extra, vendor]});
        let (conversation, left_out) = read(&[USER, &line.to_string()]);
        assert_eq!(texts_of(&conversation), ["User: hi"], "{object}");
        let expected =
            [("a damaged part of the type \"call\"", 2), ("a damaged part of the type \"vendor\"", 1)];
        assert_eq!(left_out, expected.map(|(what, count)| (what.to_owned(), count)), "{object}");
    }
}

#[test]
fn an_id_that_comes_twice_is_replaced_with_its_result() {
    let (conversation, left_out) = read(&[USER, CALLS, RESULT_A, CALLS, RESULT_A]);
    assert_eq!(left_out, []);
    assert_eq!(
        texts_of(&conversation)[3..],
        [
            "Assistant: call call_3 | call call_4".to_owned(),
            format!("User: result call_3 x | result call_4 {INTERRUPTED}")
        ]
    );
}

#[test]
fn a_reply_that_nothing_stands_before_gets_a_beginning() {
    let (conversation, _) = read(&[CALLS]);
    assert_eq!(texts_of(&conversation)[0], format!("User: {LOST_BEGINNING}"));
}

/// A file of others' making, or one that lost lines, is read all the same.
#[test]
fn a_compaction_that_does_not_fit_is_left_out() {
    let lines = [
        r#"{"type":"user","parts":[{"type":"text","text":"a"}]}"#,
        r#"{"type":"compaction","cut":["nowhere",7]}"#,
        r#"{"type":"compaction","parts":[{"type":"text","text":"b"}],"kept":7}"#,
        r#"{"type":"compaction","parts":[{"type":"text","text":"b"}]}"#,
        r#"{"type":"compaction","parts":[{"type":"call","id":"x","name":"Read","arguments":"{}"}],"kept":0}"#,
        r#"{"type":"compaction","parts":[{"type":"result","call_id":"x","text":"","is_error":false}],"kept":0}"#,
        r#"{"type":"compaction"}"#,
    ];
    let mut reading = Reading::default();
    lines.iter().for_each(|line| reading.line(line.as_bytes()));
    let (conversation, left_out) = reading.finish();
    assert_eq!(left_out, [("a compaction that does not fit".to_owned(), 5)]);
    assert_eq!(conversation.messages().len(), 1);
    assert_eq!(conversation.messages()[0].text(), "a");
}
