//! What a search has found, as lines within bounds: of paths, of counts, or of text.
//!
//! Once the bounds are reached the search is told to stop, so that a pattern which fits everything costs
//! no more than what is shown of it.

use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

/// What is shown of the files that have a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Their paths.
    Files,
    /// The lines that match, and those around them.
    Content,
    /// How many lines match, or how many matches there are where one may span lines.
    Count,
}

const MAX_BYTES: usize = 30_000;
const MAX_LINE_BYTES: usize = 500;
/// No more is counted in one file: in a hole, each byte of an immense one is an empty line.
pub const MAX_COUNT: u64 = 10_000_000;
/// A long line is shown from this far before its first match.
const BYTES_BEFORE_MATCH: usize = 100;

/// The lines of a result.
pub struct Output {
    text: String,
    /// How many lines at the beginning are left out.
    offset: u64,
    limit: Option<u64>,
    lines: u64,
    is_full: bool,
    has_shortened: bool,
}

impl Output {
    /// Leaves out the first `offset` lines, and all behind `limit` more.
    pub fn new(offset: u64, limit: Option<u64>) -> Output {
        Output { text: String::new(), offset, limit, lines: 0, is_full: false, has_shortened: false }
    }

    /// Whether nothing was shown.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether a line did not fit, so that there is no use in searching on.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// The lines, each with its end.
    pub fn into_text(self) -> String {
        self.text
    }

    /// What must be said of the lines.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.is_full {
            let (first, last) = (self.offset + 1, self.lines);
            let limit = self.limit.map(|limit| format!(" and head_limit={limit}")).unwrap_or_default();
            remarks.push(format!(
                "lines {first}-{last} shown, more follow: give offset={last}{limit}, or a narrower pattern, path or glob"
            ));
        }
        if self.has_shortened {
            remarks.push(format!("lines longer than {MAX_LINE_BYTES} bytes are shortened at …"));
        }
        remarks
    }

    /// Adds a line, and tells whether there may be more.
    fn add(&mut self, line: &str) -> bool {
        if self.lines < self.offset {
            self.lines += 1;
            return true;
        }
        let has_reached = self.limit.is_some_and(|limit| self.lines - self.offset >= limit);
        if has_reached || self.text.len() + line.len() >= MAX_BYTES {
            self.is_full = true;
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
        true
    }
}

/// What is found in one file.
pub struct Found<'a> {
    name: &'a str,
    mode: Mode,
    matcher: &'a RegexMatcher,
    output: &'a mut Output,
    count: u64,
    /// Whether a line of this file was shown already.
    has_begun: bool,
    is_binary: bool,
}

impl<'a> Found<'a> {
    /// Nothing yet, in the file of this name.
    pub fn new(name: &'a str, mode: Mode, matcher: &'a RegexMatcher, output: &'a mut Output) -> Found<'a> {
        Found { name, mode, matcher, output, count: 0, has_begun: false, is_binary: false }
    }

    /// Whether there may be more than were counted.
    pub fn is_counted_out(&self) -> bool {
        self.count >= MAX_COUNT
    }

    /// Shows lines of the file; `border` stands around the number of the first.
    fn show(&mut self, searcher: &Searcher, bytes: &[u8], first: Option<u64>, border: char) -> bool {
        let has_context = searcher.before_context() + searcher.after_context() > 0;
        if !self.has_begun && has_context && self.output.lines > 0 && !self.output.add("--") {
            return false;
        }
        self.has_begun = true;
        for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            let place = match border {
                ':' if line.len() > MAX_LINE_BYTES => self.first_match(line),
                _ => 0,
            };
            let text = shortened(line, place);
            self.output.has_shortened |= line.len() > MAX_LINE_BYTES;
            let number = first.map(|first| format!("{}{border}", first + number as u64)).unwrap_or_default();
            if !self.output.add(&format!("{}{border}{number}{text}", self.name)) {
                return false;
            }
        }
        true
    }

    fn first_match(&self, line: &[u8]) -> usize {
        self.matcher.find(line).ok().flatten().map_or(0, |found| found.start())
    }

    /// How many matches a block of lines holds.
    fn matches_in(&self, block: &[u8]) -> u64 {
        let mut count = 0;
        let counted = self.matcher.find_iter(block, |_| {
            count += 1;
            true
        });
        // What was found with the lines around it may need them.
        counted.map_or(1, |()| count.max(1))
    }

    /// Whether the lines of this file can no longer be shown, though it is still searched.
    fn is_hidden(&self, searcher: &Searcher) -> bool {
        self.is_binary && searcher.binary_detection().convert_byte().is_some()
    }
}

impl Sink for &mut Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch) -> Result<bool, io::Error> {
        self.count += match searcher.multi_line_with_matcher(self.matcher) {
            true => self.matches_in(found.bytes()),
            false => 1,
        };
        Ok(match self.mode {
            Mode::Files => false,
            Mode::Count => self.count < MAX_COUNT,
            Mode::Content if self.is_hidden(searcher) => false,
            Mode::Content => self.show(searcher, found.bytes(), found.line_number(), ':'),
        })
    }

    fn context(&mut self, searcher: &Searcher, context: &SinkContext) -> Result<bool, io::Error> {
        Ok(!self.is_hidden(searcher) && self.show(searcher, context.bytes(), context.line_number(), '-'))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        Ok(self.output.add("--"))
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.is_binary = true;
        Ok(true)
    }

    /// A file that was given up as binary has no count, and no path unless a match came before all else.
    fn finish(&mut self, searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        let is_given_up =
            finish.binary_byte_offset().is_some() && searcher.binary_detection().quit_byte().is_some();
        let name = self.name;
        match self.mode {
            _ if self.count == 0 => {}
            Mode::Content if !self.is_binary => {}
            Mode::Content if is_given_up => {
                self.output.add(&format!("{name}: binary, and searched no further"));
            }
            Mode::Content => {
                self.output.add(&format!("{name}: binary file with a match"));
            }
            _ if is_given_up => {}
            Mode::Files => {
                self.output.add(name);
            }
            Mode::Count => {
                self.output.add(&format!("{name}:{}", self.count));
            }
        }
        Ok(())
    }
}

/// A line as it is shown: as text, and from shortly before its match on if it is long.
fn shortened(line: &[u8], place: usize) -> String {
    // A NUL is valid UTF-8, but many servers refuse a request that holds one.
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
    if line.len() <= MAX_LINE_BYTES {
        return text(line);
    }
    let is_far = place + BYTES_BEFORE_MATCH > MAX_LINE_BYTES;
    let start = if is_far { border(line, place - BYTES_BEFORE_MATCH) } else { 0 };
    let end = border(line, (start + MAX_LINE_BYTES).min(line.len()));
    let (before, after) = (if start > 0 { "…" } else { "" }, if end < line.len() { "…" } else { "" });
    format!("{before}{}{after}", text(&line[start..end]))
}

/// The last place up to `at` that is not inside a character.
fn border(line: &[u8], at: usize) -> usize {
    let continues = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000);
    (at.saturating_sub(3)..=at).rev().find(|place| !continues(place)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let letters = "\u{20ac}".repeat(400);
        for place in 0..letters.len() {
            let line = shortened(letters.as_bytes(), place);
            let kept = line.trim_matches('…');
            assert!(kept.chars().all(|letter| letter == '\u{20ac}'), "{place}: {line}");
            assert!(kept.len() <= MAX_LINE_BYTES + 3 && !kept.is_empty(), "{place}");
        }
        assert_eq!(shortened(b"a\0\xff", 0), "a\u{fffd}\u{fffd}");
        let junk = shortened(&[0x80; 600], 550);
        assert_eq!(junk, format!("…{}", "\u{fffd}".repeat(150)));
    }

    #[test]
    fn lines_are_taken_until_one_does_not_fit() {
        let mut output = Output::new(1, Some(2));
        assert!(["a", "b", "c"].iter().all(|line| output.add(line)));
        assert!(!output.is_full() && !output.add("d") && output.is_full());
        assert_eq!(output.into_text(), "b\nc\n");
        let mut output = Output::new(0, None);
        let line = "x".repeat(9_999);
        assert!(output.add(&line) && output.add(&line) && output.add(&line));
        assert!(!output.add("") && output.is_full());
        assert_eq!(output.into_text().len(), MAX_BYTES);
    }

    #[test]
    fn a_count_has_an_end() {
        let matcher = RegexMatcher::new("x").unwrap();
        for (before, count, is_counted_out) in [(4, 3, false), (3, 3, true), (2, 2, true)] {
            let mut output = Output::new(0, None);
            let mut found = Found::new("a", Mode::Count, &matcher, &mut output);
            found.count = MAX_COUNT - before;
            Searcher::new().search_slice(&matcher, b"x\nx\nx\n", &mut found).unwrap();
            assert_eq!(found.is_counted_out(), is_counted_out, "{before}");
            assert_eq!(output.into_text(), format!("a:{}\n", MAX_COUNT - before + count), "{before}");
        }
    }
}
