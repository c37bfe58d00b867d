//! Lines of a session file → a conversation that can be sent, whatever they hold; and the file as a run goes on
//! with it.

use std::fs;

use serde_json::Value;

use super::requests;
use crate::conversation::{Conversation, Message, Part, Reading, Role};
use crate::session::{self, Place, Source, Wanted};

/// The lines behind the first.
pub fn run(bytes: &[u8]) {
    let (read, left_out) = read(bytes);
    assert!(left_out <= 20, "{left_out} kinds of what was left out");
    // Who writes a call as vendor data into a session file gets it sent as that.
    if !poses(&read) {
        requests::check(&read);
    }
    requests::check_kept(&mut copied(&read));
    // Files take time, and what they add is little.
    if bytes.len() < 2000 {
        gone_on_with(bytes);
    }
}

/// Whether vendor data says that it is what is never kept as such.
fn poses(conversation: &Conversation) -> bool {
    let parts = conversation.messages().iter().flat_map(|message| &message.parts);
    let kinds = parts.filter_map(|part| match part {
        Part::Vendor(json) => serde_json::from_str::<Value>(json).ok()?["type"].as_str().map(str::to_owned),
        _ => None,
    });
    kinds.into_iter().any(|kind| ["text", "image", "tool_use", "tool_result"].contains(&kind.as_str()))
}

fn read(bytes: &[u8]) -> (Conversation, usize) {
    let mut reading = Reading::default();
    bytes.split(|byte| *byte == b'\n').for_each(|line| reading.line(line));
    let (conversation, left_out) = reading.finish();
    (conversation, left_out.len())
}

/// The same conversation as one of this run.
fn copied(read: &Conversation) -> Conversation {
    let mut copy = Conversation::default();
    for message in read.messages() {
        match (message.role, &message.origin) {
            (Role::User, _) => copy.add_user(message.parts.clone()),
            (Role::Assistant, origin) => {
                copy.add_reply(message.parts.clone(), origin.as_deref().unwrap_or("unknown"));
            }
        }
    }
    copy
}

/// A run that goes on with the file finds what can be read of it, and the next run finds what this one adds.
fn gone_on_with(bytes: &[u8]) {
    const ID: &str = "01234567-89ab-4cde-8f01-23456789abcd";
    let folder = super::folder("session").join("sessions");
    fs::create_dir_all(&folder).expect("a folder for sessions");
    let path = folder.join(format!("{ID}.jsonl"));
    let first = "{\"type\":\"session\",\"version\":1,\"id\":\"x\",\"folder\":\"/w\",\"origin\":\"test\"}\n";
    fs::write(&path, [first.as_bytes(), bytes].concat()).expect("a session file");
    let place = Place {
        folder: Some(folder.clone()),
        keeps: true,
        workspace: "/w".into(),
        patience: Default::default(),
    };
    let wanted = Wanted { source: Source::Named(ID.to_owned()), fork: false, id: None };
    let mut said = Vec::new();
    for turn in 0..2 {
        let start = session::open(&wanted, &place, "unused").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(start.id, ID);
        let begun = start.begin("test", Vec::new()).unwrap_or_else(|error| panic!("{error}"));
        let (mut conversation, mut kept) = (begun.conversation, begun.session.expect("a session"));
        let now = conversation.messages().to_vec();
        if turn > 0 {
            assert_eq!(in_order(now), in_order(said), "what was added is read");
        }
        conversation.add_user(vec![Part::Text(format!("turn {turn}"))]);
        kept.append(conversation.new_lines()).unwrap_or_else(|error| panic!("{error}"));
        said = conversation.messages().to_vec();
    }
}

/// The messages with their results by id: where a file has an id twice, they may come in another order.
fn in_order(mut messages: Vec<Message>) -> Vec<Message> {
    for message in &mut messages {
        message.parts.sort_by_key(|part| match part {
            Part::Result(result) => (0, result.call_id.clone()),
            _ => (1, String::new()),
        });
    }
    messages
}
