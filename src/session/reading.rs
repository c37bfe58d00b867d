//! One session file read: whether it is one, what was said, and where its last whole line ends.
//!
//! A file that is not ours is refused with what is wrong, and so is one that a newer version wrote.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value;

use crate::conversation::{Conversation, Reading};

/// The version of the format that is written.
pub const VERSION: u64 = 1;
/// The longest first line: a path of 4,096 bytes has at most six times as many characters in JSON.
const MOST_HEADER: u64 = 64 * 1024;

/// What a file holds.
pub struct Kept {
    /// What was said.
    pub conversation: Conversation,
    /// What the user is to read of it.
    pub notices: Vec<String>,
    /// How long the file is without a line that breaks off.
    pub whole: u64,
    /// How long it is.
    pub read: u64,
    /// Whether the last line lacks nothing but its end.
    pub needs_line_end: bool,
}

/// Reads a file for a run in this working folder. Errors: why it is no session that can be gone on with.
pub fn read(file: &File, workspace: &Path) -> Result<Kept, String> {
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (folder, FirstLine { version, length: header_length }) = folder(&mut reader)?;
    if version != VERSION {
        return Err(format!(
            "its format is of version {version}, and this cotter knows version {VERSION}: use the cotter that wrote it"
        ));
    }
    let mut notices = Vec::new();
    if folder != super::name_of(workspace) {
        notices.push(format!("this session was begun in another folder, \"{folder}\""));
    }
    let mut reading = Reading::default();
    let mut whole = header_length;
    let (mut torn, mut needs_line_end) = (0, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = reader.read_until(b'\n', &mut line).map_err(|error| error.to_string())? as u64;
        if count == 0 {
            break;
        }
        if !line.ends_with(b"\n") {
            // No beginning of an object is an object: what can be read is whole but for its end.
            needs_line_end = parsed(&line).is_object();
            if !needs_line_end {
                torn = count;
                notices.push("the last line of the session's file broke off: it is left out".to_owned());
                break;
            }
        }
        reading.line(&line);
        whole += count;
    }
    if whole == header_length {
        notices.push("nothing was said in this session yet: it begins here".to_owned());
    }
    let (conversation, left_out) = reading.finish();
    if !left_out.is_empty() {
        let kinds: Vec<String> = left_out.iter().map(|(what, count)| format!("{what} ({count})")).collect();
        notices.push(format!(
            "left out of what is sent, though the session's file keeps it: {}",
            kinds.join(", ")
        ));
    }
    Ok(Kept { conversation, notices, whole, read: whole + torn, needs_line_end })
}

/// What is known of a first line whatever its version.
pub struct FirstLine {
    version: u64,
    length: u64,
}

/// Reads the first line for the working folder that it names. Errors: what is wrong with it.
pub fn folder(reader: &mut impl BufRead) -> Result<(String, FirstLine), String> {
    let mut line = Vec::new();
    reader.take(MOST_HEADER).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    if is_beginning(&line) {
        let what = if line.is_empty() { "it is empty" } else { "its first line broke off" };
        return Err(format!("{what}: begin it anew with --session-id in place of -r"));
    }
    let value = match line.ends_with(b"\n") {
        true => parsed(&line),
        false => Value::Null,
    };
    let version = value["version"].as_u64().filter(|version| *version >= VERSION);
    match (value["type"].as_str(), version, value["folder"].as_str()) {
        (Some("session"), Some(version), Some(folder)) => {
            Ok((folder.to_owned(), FirstLine { version, length: line.len() as u64 }))
        }
        // What a newer version says of the folder is not known.
        (Some("session"), Some(version), None) if version > VERSION => {
            Ok((String::new(), FirstLine { version, length: line.len() as u64 }))
        }
        _ => Err("its first line is not that of a session of cotter's".to_owned()),
    }
}

/// Whether a file is no more than what a run leaves that was killed, or lost power, before its first line was whole.
pub fn is_unbegun(file: &File) -> bool {
    let mut line = Vec::new();
    file.take(MOST_HEADER).read_to_end(&mut line).is_ok() && is_beginning(&line)
}

/// Whether these bytes are a part of a first line as cotter begins it.
fn is_beginning(line: &[u8]) -> bool {
    let start = format!("{{\"type\":\"session\",\"version\":{VERSION},\"id\":\"");
    let length = line.len().min(start.len());
    line[..length] == start.as_bytes()[..length]
        && !line.contains(&b'\n')
        && (line.len() as u64) < MOST_HEADER
}

/// The value of a line, null if it has none.
pub fn parsed(line: &[u8]) -> Value {
    let value = str::from_utf8(line).ok().and_then(|text| serde_json::from_str(text).ok());
    value.unwrap_or_default()
}
