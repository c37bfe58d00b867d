//! Bytes → events: the same as a plain reading of the whole text gives, however they are cut.

use crate::sse::{Event, events};

/// The first byte chooses the cuts.
pub fn run(bytes: &[u8]) {
    let Some((seed, stream)) = bytes.split_first() else { return };
    let expected = plain(stream);
    assert_eq!(events(&[stream]), expected, "whole");
    assert_eq!(events(&super::pieces(stream, *seed)), expected, "in pieces");
    if stream.len() <= 256 {
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(events(&single), expected, "byte by byte");
    }
    for Event { kind, data } in expected {
        assert!(!data.trim().is_empty(), "an event without data");
        assert!(!kind.contains(['\n', '\r']) && !data.contains('\r'), "a line's end in a line");
    }
}

/// The events as the standard words it, read from the whole stream at once.
fn plain(stream: &[u8]) -> Vec<Event> {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut bytes = stream.iter().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\r' | b'\n' => {
                if *byte == b'\r' && bytes.peek() == Some(&&b'\n') {
                    bytes.next();
                }
                lines.push(String::from_utf8_lossy(&line).into_owned());
                line.clear();
            }
            byte => line.push(*byte),
        }
    }
    let (mut events, mut kind, mut data) = (Vec::new(), String::new(), Vec::new());
    for line in lines {
        if line.is_empty() {
            let event = Event { kind: std::mem::take(&mut kind), data: data.join("\n") };
            data.clear();
            if !event.data.trim().is_empty() {
                events.push(event);
            }
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => kind = value.to_owned(),
            "data" => data.push(value.to_owned()),
            _ => {}
        }
    }
    events
}
