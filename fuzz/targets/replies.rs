//! A reply being folded: what is shown only grows, and what comes of it can be kept, sent back and answered.

use serde_json::Value;

use super::requests;
use crate::conversation::{CallResult, Conversation, Part, texts};
use crate::provider::{Api, Fault, Reader, Reply, is_too_deep, shown};
use crate::sse::{Event, events};

/// Folds the bytes in the form that their beginning shows.
pub fn check(api: Api, bytes: &[u8]) {
    let Some((seed, rest)) = bytes.split_first() else { return };
    match rest.first() {
        // A line is an event; where there is only one, it may be the whole reply too.
        Some(b'{') => {
            let text = String::from_utf8_lossy(rest);
            let line = |line: &str| Event { kind: String::new(), data: line.to_owned() };
            let events: Vec<Event> = text.lines().filter(|text| !text.trim().is_empty()).map(line).collect();
            sound(api, fold(api, &events));
            if let [event] = &events[..] {
                let mut reader = Reader::new(api);
                let read = reader.document(&event.data);
                let _ = reader.growing(0, usize::MAX);
                sound(api, read.and_then(|()| reader.finish()));
            }
        }
        _ => {
            let whole = fold(api, &events(&[rest]));
            assert_eq!(whole, fold(api, &events(&super::pieces(rest, *seed))), "the cuts made a difference");
            sound(api, whole);
        }
    }
}

fn fold(api: Api, events: &[Event]) -> Result<Reply, Fault> {
    let mut reader = Reader::new(api);
    let mut seen = String::new();
    for event in events {
        let was_whole = reader.is_whole();
        reader.event(event)?;
        let numbers: Vec<u64> = reader.growing(0, usize::MAX).iter().map(|(number, _)| *number).collect();
        assert!(
            numbers.is_sorted_by(|one, other| one < other),
            "blocks have numbers of their own: {numbers:?}"
        );
        // Of the other API, thinking that only its end tells is taken back.
        if api == Api::Anthropic {
            assert!(reader.visible_text().starts_with(&seen), "the text shown grows");
        }
        seen = reader.visible_text().to_owned();
        assert!(!was_whole || reader.is_whole(), "a whole reply stays whole");
        reader.spent().usage.total();
        if reader.is_over() {
            break;
        }
    }
    let (is_whole, awaits_usage) = (reader.is_whole(), reader.awaits_usage());
    let finished = reader.finish();
    match &finished {
        Ok(reply) => {
            assert!(is_whole, "a reply of a stream that has not ended");
            if api == Api::OpenAi && !seen.trim().is_empty() {
                assert_eq!(texts(&reply.parts).concat(), seen, "what was shown is what there is");
            }
        }
        Err(Fault::Incomplete) => assert!(!awaits_usage, "nothing but usage was awaited"),
        Err(_) => {}
    }
    finished
}

/// Asserts that a reply can be kept and sent back, with a result for each call.
fn sound(api: Api, finished: Result<Reply, Fault>) {
    let reply = match finished {
        Ok(reply) => reply,
        Err(Fault::Malformed(what)) => {
            return assert!(what.len() < 8000, "a message of {} bytes", what.len());
        }
        Err(_) => return,
    };
    for part in &reply.parts {
        match part {
            Part::Call(call) => {
                assert!(!call.name.is_empty(), "a call names a tool");
                assert!(requests::is_object(&call.arguments), "arguments are an object: {}", call.arguments);
                assert!(!is_too_deep(&call.arguments), "arguments fit into a request");
                let extra = call.extra.as_deref().map(|members| format!("{{{members}}}"));
                assert!(extra.is_none_or(|extra| requests::is_object(&extra)), "{:?}", call.extra);
            }
            Part::Vendor(text) => {
                assert!(requests::is_object(text), "vendor data is an object: {text}");
                assert!(!is_too_deep(text) || api == Api::OpenAi, "vendor data fits into a request");
                let block: Value = serde_json::from_str(text).expect("it is JSON");
                assert!(api == Api::OpenAi || block["type"].is_string(), "a block has a type: {text}");
                let _ = shown::block(text);
            }
            Part::Text(_) => {}
            Part::Image(_) | Part::Result(_) => panic!("no part of a reply: {part:?}"),
        }
    }
    let _ = reply.stop.word(&reply.parts);
    if reply.parts.is_empty() {
        return;
    }
    let origin = requests::origin(api);
    let mut conversation = Conversation::default();
    conversation.add_user("ask");
    // Twice, since ids are repeated by servers that count them.
    for _ in 0..2 {
        let calls = conversation.add_reply(reply.parts.clone(), &origin);
        let results = calls.into_iter().map(|call| CallResult {
            call_id: call.id,
            text: call.refusal.unwrap_or_else(|| "done".to_owned()),
            images: Vec::new(),
            is_error: false,
        });
        conversation.add_results(results.collect());
        conversation.add_user("go on");
    }
    requests::check(&conversation);
    requests::check_kept(&mut conversation);
}
