//! The window on a text that `Read` shows: so many lines, within bounds, and what must be said of them.
//!
//! Memory is bounded by the window, whatever the size of the file or of its lines.

use std::borrow::Cow;
use std::io::{self, BufRead};

use crate::tools::lines::{MAX_LINE_BYTES, next_line};
use crate::tools::read::Request;
use crate::tools::{PRIVATE, in_private_folder};

const DEFAULT_LINES: u64 = 2000;
const MAX_BYTES: usize = 50_000;
/// After this much of a file was looked at for one window, the window ends with the line at hand:
/// only lines of immense length lead there.
const MAX_SCANNED_BYTES: u64 = 16 << 20;

/// The lines that are shown, and what is known of them.
#[derive(Default)]
pub struct Window {
    text: String,
    lines: u64,
    /// Whether the file goes on.
    is_cut: bool,
    /// The numbers of lines of which only the beginning is shown.
    shortened: Vec<u64>,
    /// Whether some bytes are no text.
    has_odd_bytes: bool,
}

impl Window {
    /// Takes lines until what was asked for, or a bound, is reached.
    pub fn fill(reader: &mut impl BufRead, request: &Request) -> io::Result<Window> {
        let mut window = Window::default();
        let mut scanned = 0;
        while window.lines < request.limit.unwrap_or(DEFAULT_LINES) {
            let Some(line) = next_line(reader, MAX_SCANNED_BYTES - scanned)? else { return Ok(window) };
            // A NUL is valid UTF-8, but many servers refuse a request that holds one.
            let text = String::from_utf8_lossy(&line.start);
            let shown = match text.contains('\0') {
                true => Cow::Owned(text.replace('\0', "\u{fffd}")),
                false => text,
            };
            if window.text.len() + shown.len() > MAX_BYTES && window.lines > 0 {
                window.is_cut = true;
                return Ok(window);
            }
            window.has_odd_bytes |= shown.as_bytes() != line.start;
            window.text.push_str(&shown);
            if line.is_shortened {
                window.shortened.push(request.offset + window.lines);
            }
            window.lines += 1;
            scanned += line.bytes;
            if scanned >= MAX_SCANNED_BYTES {
                break;
            }
        }
        window.is_cut = !reader.fill_buf()?.is_empty();
        Ok(window)
    }

    /// The text, with what must be said of it in brackets at the end.
    pub fn with_remarks(mut self, request: &Request, name: &str, said_already: &[&str]) -> String {
        let mut remarks = Vec::new();
        if self.is_cut {
            let (first, next) = (request.offset, request.offset + self.lines);
            let limit = request.limit.map(|limit| format!(" and limit={limit}")).unwrap_or_default();
            let last = next - 1;
            remarks.push(format!("lines {first}-{last} shown, more follow: Read with offset={next}{limit}"));
        }
        if let Some(first) = self.shortened.first() {
            let numbers: Vec<String> = self.shortened.iter().take(5).map(u64::to_string).collect();
            let more = self.shortened.len() - numbers.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let (lines, numbers) =
                (if self.shortened.len() == 1 { "line" } else { "lines" }, numbers.join(", "));
            let command = format!("sed -n {first}p {}", quoted_path(name));
            remarks.push(format!(
                "{lines} {numbers}{more} shortened to {MAX_LINE_BYTES} bytes: if you can run a command, {command} \
                 shows more of line {first}"
            ));
        }
        if self.has_odd_bytes {
            remarks.push("bytes that are not UTF-8 text are shown as \u{fffd}".to_owned());
        }
        remarks.extend(said_already.iter().map(|remark| (*remark).to_owned()));
        if !remarks.is_empty() {
            if !self.text.ends_with('\n') {
                self.text.push('\n');
            }
            self.text.push_str(&format!("[{}]", remarks.join("; ")));
        }
        self.text
    }
}

/// The path of a file as a shell takes it for one: what begins with a hyphen would be an option, and what leads
/// to the private folder is left to the shell to replace.
pub fn quoted_path(name: &str) -> String {
    match in_private_folder(name) {
        Some("") => format!("\"{PRIVATE}\""),
        Some(rest) => format!("\"{PRIVATE}\"/{}", quoted(rest)),
        None if name.starts_with('-') => quoted(&format!("./{name}")),
        None => quoted(name),
    }
}

/// A word as a shell takes it, in quotes where it needs them.
pub fn quoted(word: &str) -> String {
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Whether a letter means nothing but itself to a shell.
pub fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "_-./=:@%+,".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In single quotes `$TMPDIR` was a folder of that name.
    #[test]
    fn a_shell_takes_a_quoted_path_for_the_file() {
        let cases = [
            ("a/b.txt", "a/b.txt"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("-n", "./-n"),
            ("$HOME", "'$HOME'"),
            ("$TMPDIR", "\"$TMPDIR\""),
            ("$TMPDIR/out.log", "\"$TMPDIR\"/out.log"),
            ("$TMPDIR/a/it's $x", r#""$TMPDIR"/'a/it'\''s $x'"#),
            ("$TMPDIR/../a", "'$TMPDIR/../a'"),
            ("$TMPDIRS/a", "'$TMPDIRS/a'"),
        ];
        for (name, expected) in cases {
            assert_eq!(quoted_path(name), expected, "{name}");
        }
    }
}
