//! The window of `Read` beside a plain model of it, and the raw copy of `--single-step`.

use std::fs;

use serde_json::{Value, json};

use crate::tools::{Outcome, Workspace, read};

const MOST_BYTES: usize = 50_000;
const MOST_LINE_BYTES: usize = 2000;

/// `OFFSET,LIMIT` (either may be missing), the number of times that the content is repeated, and the content.
pub fn run(bytes: &[u8]) {
    let [window, times, content] = super::parts::<3>(bytes);
    let window = String::from_utf8_lossy(window);
    let (offset, limit) = window.split_once(',').unwrap_or((&window, ""));
    // A number that no file has so many lines for is refused.
    let number = |text: &str| text.parse().ok().filter(|number| i64::try_from(*number).is_ok());
    let (offset, limit): (Option<u64>, Option<u64>) = (number(offset), number(limit));
    let times = String::from_utf8_lossy(times).parse::<usize>().unwrap_or(1).clamp(1, 4000);
    let content = content.repeat(times.min(1 + 200_000 / content.len().max(1)));
    let folder = super::folder("read");
    fs::write(folder.join("read"), &content).expect("a file to read");
    let workspace = Workspace { root: folder, private: None, places: Vec::new() };
    let arguments = json!({"file_path": "read", "offset": offset, "limit": limit});
    let Value::Object(arguments) = arguments else { return };
    let outcome = read::run(&arguments, &workspace);
    assert!(outcome.text.len() < MOST_BYTES + 8000, "{} bytes", outcome.text.len());
    assert!(!outcome.text.contains('\0'), "a NUL");
    let mut raw = Vec::new();
    let copied = read::copy_raw(&arguments, &workspace, &mut raw);
    if limit == Some(0) {
        return assert!(outcome.is_error && copied.is_err());
    }
    let Some(text) = decoded(&content) else { return };
    let first = offset.unwrap_or(1).max(1);
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let skipped = usize::try_from(first - 1).unwrap_or(usize::MAX).min(lines.len());
    let rest = &lines[skipped..];
    if rest.is_empty() {
        let expected = match first {
            1 => Outcome::ok("(the file is empty)"),
            _ => {
                let (count, end) = (lines.len(), if lines.len() == 1 { "" } else { "s" });
                Outcome::error(format!("offset {first} is past the end: read has {count} line{end}"))
            }
        };
        return assert_eq!(outcome, expected);
    }
    assert!(!outcome.is_error, "{}", outcome.text);
    let expected = plain(rest, first, limit);
    let (shown, remarks) = match outcome.text.strip_prefix(&expected.text) {
        Some("") => (true, ""),
        // The remarks begin a line.
        Some(remarks) => (true, remarks.strip_prefix('\n').unwrap_or(remarks)),
        None => (false, ""),
    };
    assert!(shown, "{:?} is shown, not {:?}", outcome.text, expected.text);
    let says = |what: &str| remarks.starts_with('[') && remarks.ends_with(']') && remarks.contains(what);
    let goes_on =
        format!("lines {first}-{} shown, more follow: Read with offset={}", expected.next - 1, expected.next);
    assert_eq!(says(&goes_on), expected.is_cut, "{remarks}");
    assert_eq!(says("shortened to 2000 bytes"), expected.is_shortened, "{remarks}");
    assert_eq!(says("shown as \u{fffd}"), expected.has_odd_bytes, "{remarks}");
    // Of UTF-16 the bytes themselves are copied.
    if copied.is_ok() && !content.starts_with(b"\xFF\xFE") && !content.starts_with(b"\xFE\xFF") {
        let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let wanted: Vec<&[u8]> = lines[skipped.min(lines.len())..].iter().take(limit).copied().collect();
        assert_eq!(raw, wanted.concat(), "the raw copy");
    }
}

/// The text of a file as bytes of UTF-8, as far as it is text; absent where it may be taken for something else.
fn decoded(content: &[u8]) -> Option<Vec<u8>> {
    let unit: fn([u8; 2]) -> u16 = match content {
        [0xFF, 0xFE, 0, 0, ..] => return None,
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        _ => {
            let text = content.strip_prefix("\u{feff}".as_bytes()).unwrap_or(content);
            let is_text = std::str::from_utf8(content).is_ok() && !content.contains(&0);
            let is_plain = content.iter().all(|byte| (0x20..0x7F).contains(byte) || *byte == b'\n');
            return (is_text || is_plain).then(|| text.to_vec());
        }
    };
    let mut pairs = content[2..].chunks_exact(2);
    let units: Vec<u16> = pairs.by_ref().map(|pair| unit([pair[0], pair[1]])).collect();
    let mut text: String =
        char::decode_utf16(units).map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
    if !pairs.remainder().is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Some(text.into_bytes())
}

struct Shown {
    text: String,
    /// The line to go on with.
    next: u64,
    is_cut: bool,
    is_shortened: bool,
    has_odd_bytes: bool,
}

fn plain(lines: &[&[u8]], first: u64, limit: Option<u64>) -> Shown {
    let mut shown =
        Shown { text: String::new(), next: first, is_cut: false, is_shortened: false, has_odd_bytes: false };
    for line in lines {
        if shown.next - first >= limit.unwrap_or(2000) {
            shown.is_cut = true;
            break;
        }
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let mut short = line.to_vec();
        let is_long = content.len() > MOST_LINE_BYTES;
        if is_long {
            let mut end = MOST_LINE_BYTES;
            while end > MOST_LINE_BYTES - 4 && content[end] & 0xC0 == 0x80 {
                end -= 1;
            }
            short = [&content[..end], b"\n"].concat();
        }
        let text = String::from_utf8_lossy(&short).replace('\0', "\u{fffd}");
        if shown.text.len() + text.len() > MOST_BYTES && shown.next > first {
            shown.is_cut = true;
            break;
        }
        shown.is_shortened |= is_long;
        shown.has_odd_bytes |= text.as_bytes() != short;
        shown.text.push_str(&text);
        shown.next += 1;
    }
    shown
}
