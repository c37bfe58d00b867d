//! Each recorded stream, cut at every byte: the readers give the same reply however the bytes arrive, and no
//! reply before the terminal event is there.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Api, Fault, Reader, Reply};
use crate::sse::{Decoder, Event, events};

/// A stream fixture: its API, and the body after the first blank line of the file.
struct Stream {
    path: PathBuf,
    api: Api,
    body: Vec<u8>,
}

fn streams() -> Vec<Stream> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    for group in ["streams", "quirks", "recorded"] {
        for folder in fs::read_dir(root.join(group)).unwrap() {
            for entry in fs::read_dir(folder.unwrap().path()).unwrap() {
                let path = entry.unwrap().path();
                if path.to_str().unwrap().ends_with(".response.http") {
                    found.extend(stream(path));
                }
            }
        }
    }
    assert!(found.len() > 60, "only {} streams", found.len());
    found
}

fn stream(path: PathBuf) -> Option<Stream> {
    let text = fs::read(&path).unwrap();
    let unix = text.windows(2).position(|pair| pair == b"\n\n").map(|at| at + 2);
    let dos = text.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
    let start = unix.unwrap_or(usize::MAX).min(dos.unwrap_or(usize::MAX));
    let head = String::from_utf8_lossy(&text[..start]).to_lowercase();
    let body = text[start..].to_vec();
    let whole = head.contains("event-stream") && head.split(' ').nth(1)?.starts_with('2');
    let messages = body.windows(13).any(|window| window == b"message_start");
    // What is no stream at all is told apart before these readers see it.
    let api = if messages { Api::Anthropic } else { Api::OpenAi };
    let plain = body.contains(&b':')
        && !body.starts_with(&[0x1F, 0x8B])
        && !body.trim_ascii_start().starts_with(b"{");
    (whole && plain && !body.trim_ascii_start().starts_with(b"<")).then_some(Stream { path, api, body })
}

fn read(api: Api, events: &[Event]) -> Result<Reply, Fault> {
    let mut reader = Reader::new(api);
    for event in events {
        reader.event(event)?;
        if reader.is_over() {
            break;
        }
    }
    reader.finish()
}

/// Where the reply is complete: after the first event that says so. In Chat Completions a finish reason
/// does, in Messages only `message_stop`.
fn complete_from(stream: &Stream) -> Option<usize> {
    let text = String::from_utf8_lossy(&stream.body);
    let mut end = 0;
    // Events end with a blank line, of either kind; the blank line's own CR suffices.
    let separator = if text.contains("\r\n\r\n") { "\r\n\r" } else { "\n\n" };
    for event in text.split_inclusive(separator) {
        end += event.len();
        let terminal = match stream.api {
            Api::Anthropic => {
                event.contains(r#""type":"message_stop""#) || event.contains(r#""type": "message_stop""#)
            }
            Api::OpenAi => {
                let reason = event.split(r#""finish_reason":"#).nth(1);
                let reason = reason
                    .is_some_and(|rest| rest.trim_start().starts_with('"') && !rest.starts_with(r#""""#));
                event.contains("[DONE]") || reason
            }
        };
        if terminal && event.ends_with(separator) {
            return Some(end);
        }
    }
    None
}

#[test]
fn a_stream_cut_in_two_at_any_byte_has_the_same_events() {
    for stream in streams() {
        let whole = events(&[&stream.body]);
        for cut in 0..=stream.body.len() {
            let (head, tail) = stream.body.split_at(cut);
            assert_eq!(events(&[head, tail]), whole, "{} cut at {cut}", stream.path.display());
        }
    }
}

#[test]
fn a_stream_that_ends_early_is_incomplete_until_its_terminal_event() {
    let mut complete = 0;
    for stream in streams() {
        let whole = events(&[&stream.body]);
        // Bytes that are no text move the places that are counted in characters.
        if std::str::from_utf8(&stream.body).is_err() || read(stream.api, &whole).is_err() {
            continue;
        }
        let from = complete_from(&stream).unwrap_or_else(|| panic!("{} has no end", stream.path.display()));
        let mut decoder = Decoder::default();
        let mut arrived = 0;
        let mut reply = read(stream.api, &[]);
        for end in 0..=stream.body.len() {
            if end > 0 {
                decoder.feed(&stream.body[end - 1..end]);
            }
            while let Some(event) = decoder.next_event() {
                assert_eq!(event, whole[arrived], "{} up to {end}", stream.path.display());
                arrived += 1;
                reply = read(stream.api, &whole[..arrived]);
            }
            let place = format!("{} ends at {end}, complete from {from}", stream.path.display());
            match end < from {
                true => assert_eq!(reply, Err(Fault::Incomplete), "{place}"),
                false => assert!(reply.is_ok(), "{place}: {reply:?}"),
            }
        }
        complete += 1;
    }
    assert!(complete > 50, "only {complete} streams have an end");
}
