//! `Edit` beside a plain model of it: the asked bytes change, no other does, and every refusal has its reason.

use std::fs;

use serde_json::{Value, json};

use crate::tools::{Outcome, Workspace, edit};

/// A flag (`a` replaces all), the old text, the new one, and the file's content.
pub fn run(bytes: &[u8]) {
    let [flag, old, new, content] = super::parts::<4>(bytes);
    let (Ok(old), Ok(new)) = (str::from_utf8(old), str::from_utf8(new)) else { return };
    let all = flag.starts_with(b"a");
    let folder = super::folder("edit");
    let path = folder.join("edited");
    fs::write(&path, content).expect("a file to edit");
    let workspace = Workspace { root: folder.clone(), private: None, places: Vec::new() };
    let arguments = json!({"file_path": "edited", "old_string": old, "new_string": new, "replace_all": all});
    let Value::Object(arguments) = arguments else { return };
    let Outcome { text, is_error, .. } = edit::run(&arguments, &workspace);
    let edited = fs::read(&path).expect("the edited file");
    let names = fs::read_dir(&folder).expect("the folder").flatten().filter(|entry| entry.path().is_file());
    assert_eq!(names.count(), 1, "nothing but the file is left");
    assert!(text.len() < 20_000, "an answer of {} bytes", text.len());
    let expected = plain(content, old, new, all);
    match (is_error, expected) {
        (true, None) => assert_eq!(edited, content, "a refused edit changes nothing: {text}"),
        (false, Some(places)) => {
            assert_ne!(edited, content, "an edit changes something");
            assert_changed(content, &edited, &places, new);
            endings(content, &edited, &[old, new]);
        }
        (true, Some(places)) => {
            assert_eq!(edited, content);
            // The new text with the endings of the file may be what is there already.
            assert!(text.contains("nothing would change"), "refused: {text} ({places:?})");
            assert_eq!(
                unified(content, old),
                replaced(&unified(content, old), old, &unified(new.as_bytes(), old))
            );
        }
        (false, None) => panic!("an edit that was none: {text}"),
    }
}

/// The places in the file that are to change, each with its length; absent where the edit is to be refused.
fn plain(content: &[u8], old: &str, new: &str, all: bool) -> Option<Vec<(usize, usize)>> {
    if old.is_empty() || old == new || content.starts_with(b"\xFF\xFE") || content.starts_with(b"\xFE\xFF") {
        return None;
    }
    // Each place of what is searched, in the file.
    let mut searched = Vec::new();
    let mut places = Vec::new();
    let mut at = 0;
    while at < content.len() {
        let is_crlf = !old.contains('\r') && content[at..].starts_with(b"\r\n");
        places.push(at);
        searched.push(if is_crlf { b'\n' } else { content[at] });
        at += if is_crlf { 2 } else { 1 };
    }
    places.push(at);
    let old = old.as_bytes();
    let (mut found, mut any) = (Vec::new(), 0);
    let mut from = 0;
    for start in 0..(searched.len() + 1).saturating_sub(old.len()) {
        if &searched[start..start + old.len()] == old {
            any += 1;
            if start >= from {
                found.push((places[start], places[start + old.len()] - places[start]));
                from = start + old.len();
            }
        }
    }
    (!found.is_empty() && (all || any == 1)).then_some(found)
}

/// Walks through both files: between the places each byte is the same, and at each stands the new text, whose lines
/// may end as those of the file.
fn assert_changed(content: &[u8], edited: &[u8], places: &[(usize, usize)], new: &str) {
    let (mut from, mut at) = (0, 0);
    for (start, length) in places {
        let same = &content[from..*start];
        assert!(edited[at..].starts_with(same), "a byte before a place has changed");
        at += same.len();
        for byte in new.bytes() {
            if byte == b'\n' && edited[at..].starts_with(b"\r\n") {
                at += 1;
            }
            assert_eq!(edited.get(at), Some(&byte), "the new text stands at each place");
            at += 1;
        }
        from = start + length;
    }
    assert_eq!(edited[at..], content[from..], "the bytes behind the last place stay");
}

/// A file all of whose lines end in one way goes on doing so.
fn endings(content: &[u8], edited: &[u8], asked: &[&str]) {
    let count = |bytes: &[u8], end: &[u8]| bytes.windows(end.len()).filter(|part| *part == end).count();
    let (lines, crlf) = (count(content, b"\n"), count(content, b"\r\n"));
    if asked.iter().any(|text| text.contains('\r'))
        || content.windows(2).any(|pair| pair == b"\r\r")
        || lines == 0
    {
        return;
    }
    if lines == crlf && count(content, b"\r") == crlf {
        assert_eq!(count(edited, b"\n"), count(edited, b"\r\n"), "a bare LF among CRLF");
    }
    if count(content, b"\r") == 0 {
        assert_eq!(count(edited, b"\r"), 0, "a CR where there was none");
    }
}

fn unified(bytes: &[u8], old: &str) -> Vec<u8> {
    if old.contains('\r') {
        return bytes.to_vec();
    }
    let mut unified = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        if *byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
            unified.push(*byte);
        }
    }
    unified
}

fn replaced(text: &[u8], old: &str, new: &[u8]) -> Vec<u8> {
    let old = old.as_bytes();
    let mut replaced = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(old) {
            replaced.extend_from_slice(new);
            at += old.len();
        } else {
            replaced.push(text[at]);
            at += 1;
        }
    }
    replaced
}
