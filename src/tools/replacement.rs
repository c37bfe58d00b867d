//! Where a text stands in a file's bytes, and the bytes with another in its place.
//!
//! Places are looked for again rather than kept: there can be as many as bytes, and memory is to stay at
//! the content, what is searched of it and the result.

use std::borrow::Cow;
use std::ops::Range;

/// How many lines are kept by their numbers.
const KEPT_LINES: usize = 10;

/// A file's content as it is searched. Unless the searched text itself speaks of carriage returns,
/// every CRLF is an LF here.
pub struct View<'a> {
    content: &'a [u8],
    /// What is searched.
    pub text: Cow<'a, [u8]>,
}

impl View<'_> {
    /// The content as it is searched for `old`.
    pub fn of<'a>(content: &'a [u8], old: &str) -> View<'a> {
        if old.contains('\r') || !content.windows(2).any(|pair| pair == b"\r\n") {
            return View { content, text: Cow::Borrowed(content) };
        }
        let mut text = Vec::with_capacity(content.len());
        for (at, byte) in content.iter().enumerate() {
            if *byte != b'\r' || content.get(at + 1) != Some(&b'\n') {
                text.push(*byte);
            }
        }
        View { content, text: Cow::Owned(text) }
    }
}

/// Follows places of a view, which come in order, through the file.
struct Follower<'a> {
    view: &'a View<'a>,
    /// A place in the view, and the same in the file.
    at: usize,
    in_file: usize,
    /// The newline found last, in the file.
    newline: Option<usize>,
    /// Whether that one is the last.
    is_last: bool,
}

impl<'a> Follower<'a> {
    fn new(view: &'a View<'a>) -> Follower<'a> {
        Follower { view, at: 0, in_file: 0, newline: None, is_last: false }
    }

    /// The place in the file of a place in the view. A CRLF is one place: nothing falls into it.
    fn advance(&mut self, to: usize) -> usize {
        if matches!(self.view.text, Cow::Borrowed(_)) {
            (self.at, self.in_file) = (to, to);
        }
        while self.at < to {
            let is_crlf = self.view.content[self.in_file..].starts_with(b"\r\n");
            self.in_file += if is_crlf { 2 } else { 1 };
            self.at += 1;
        }
        self.in_file
    }

    /// Whether a line of text put at a place in the file ends with CRLF: as the first line there does, or the
    /// next one after it, or the last one before it.
    fn ends_with_crlf(&mut self, place: usize) -> bool {
        let content = self.view.content;
        if !self.is_last && self.newline.is_none_or(|newline| newline < place) {
            let next = content[place..].iter().position(|byte| *byte == b'\n').map(|at| place + at);
            self.is_last = next.is_none();
            self.newline = next.or_else(|| content.iter().rposition(|byte| *byte == b'\n'));
        }
        self.newline.is_some_and(|newline| content[..newline].ends_with(b"\r"))
    }
}

/// Where `wanted` occurs in `text`, occurrences that overlap an earlier one left out.
///
/// The text need not be UTF-8 all through, but `wanted` is, and a decoder can neither start nor stop
/// within one of its characters: every occurrence lies in one valid chunk. So the search of `str`
/// can be used, which takes linear time.
pub fn occurrences(text: &[u8], wanted: &str) -> impl Iterator<Item = usize> {
    let mut end = 0;
    text.utf8_chunks().flat_map(move |chunk| {
        let start = end;
        end += chunk.valid().len() + chunk.invalid().len();
        chunk.valid().match_indices(wanted).map(move |(at, _)| start + at)
    })
}

/// The occurrences of a text, counted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// How many there are.
    pub count: usize,
    /// Where the first one is, in the view.
    pub first: usize,
    /// The first lines that one begins on, counted from 1.
    pub lines: Vec<usize>,
    /// How many such lines there are.
    pub line_count: usize,
}

impl Found {
    /// Counts those of `wanted`.
    pub fn of(view: &View, wanted: &str) -> Found {
        let mut found = Found::default();
        let (mut line, mut from, mut last_line) = (1, 0, 0);
        for place in occurrences(&view.text, wanted) {
            line += view.text[from..place].iter().filter(|byte| **byte == b'\n').count();
            from = place;
            if found.count == 0 {
                found.first = place;
            }
            found.count += 1;
            if line == last_line {
                continue;
            }
            last_line = line;
            found.line_count += 1;
            if found.lines.len() < KEPT_LINES {
                found.lines.push(line);
            }
        }
        found
    }

    /// The lines in words: `line 3`, `lines 1, 5, 9 and 4 more`.
    pub fn listed(&self) -> String {
        let numbers: Vec<String> = self.lines.iter().map(usize::to_string).collect();
        let more = self.line_count - numbers.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("line{} {}{more}", if self.line_count == 1 { "" } else { "s" }, numbers.join(", "))
    }
}

/// What is really replaced at each place, and by what.
pub struct Change<'a> {
    /// The text that is looked for.
    old: &'a str,
    /// The part of the old text that goes.
    range: Range<usize>,
    /// What comes instead, as it was given.
    text: &'a str,
    /// The same with a CRLF for each LF.
    crlf_text: String,
    endings: Endings,
}

/// How the lines of a new text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endings {
    /// As they were given.
    Given,
    /// With CRLF.
    Crlf,
    /// As those of the file do at the place.
    OfTheFile,
}

impl Change<'_> {
    /// The change from `old` to `new`.
    pub fn of<'a>(old: &'a str, new: &'a str) -> Change<'a> {
        if old.contains('\r') {
            // Who wrote carriage returns in the old text and none in the new either means to drop them,
            // which is all the edit does then, or has forgotten them.
            let all_crlf = old.matches('\n').count() == old.matches("\r\n").count() && old.contains('\n');
            let drops_them = old.replace("\r\n", "\n") == new;
            let endings = match all_crlf && !new.contains('\r') && !drops_them {
                true => Endings::Crlf,
                false => Endings::Given,
            };
            let crlf_text = new.replace('\n', "\r\n");
            return Change { old, range: 0..old.len(), text: new, crlf_text, endings };
        }
        // What both texts begin and end with is left alone, so that lines which only surround the change
        // keep their endings, mixed as they may be.
        let start = common_start(old, new);
        let mut end = common_start_reversed(&old[start..], &new[start..]);
        if new[start..new.len() - end].ends_with('\r') && new[new.len() - end..].starts_with('\n') {
            end -= 1;
        }
        let text = &new[start..new.len() - end];
        // A new text that speaks of carriage returns is taken at its word.
        let endings = match !text.contains('\r') && text.contains('\n') {
            true => Endings::OfTheFile,
            false => Endings::Given,
        };
        let crlf_text = text.replace('\n', "\r\n");
        Change { old, range: start..old.len() - end, text, crlf_text, endings }
    }

    /// What is replaced in the file, and by what, at a place of the view behind the one before.
    fn at(&self, place: usize, follower: &mut Follower) -> (Range<usize>, &str) {
        let start = follower.advance(place + self.range.start);
        let with_crlf = match self.endings {
            Endings::Given => false,
            Endings::Crlf => true,
            Endings::OfTheFile => follower.ends_with_crlf(start),
        };
        let end = follower.advance(place + self.range.end);
        (start..end, if with_crlf { &self.crlf_text } else { self.text })
    }

    /// What is replaced in the file, and by what, at all places.
    fn all<'b>(&'b self, view: &'b View) -> impl Iterator<Item = (Range<usize>, &'b str)> {
        let mut follower = Follower::new(view);
        occurrences(&view.text, self.old).map(move |place| self.at(place, &mut follower))
    }

    /// The size of the content once it is changed at all places: a short text replaced by a long one in
    /// many of them is more than any memory holds.
    pub fn size(&self, view: &View) -> u64 {
        self.all(view).fold(view.content.len() as u64, |size, (range, text)| {
            size - range.len() as u64 + text.len() as u64
        })
    }

    /// The content changed at all places, which has the given size then.
    pub fn apply(&self, view: &View, size: u64) -> Vec<u8> {
        let mut edited = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
        let mut copied = 0;
        for (range, text) in self.all(view) {
            edited.extend_from_slice(&view.content[copied..range.start]);
            edited.extend_from_slice(text.as_bytes());
            copied = range.end;
        }
        edited.extend_from_slice(&view.content[copied..]);
        edited
    }
}

/// The length of the longest common beginning of two texts.
fn common_start(one: &str, other: &str) -> usize {
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(left, right)| left == right).map(|(letter, _)| letter.len_utf8()).sum()
}

/// The length of the longest common end of two texts.
fn common_start_reversed(one: &str, other: &str) -> usize {
    let pairs = one.chars().rev().zip(other.chars().rev());
    pairs.take_while(|(left, right)| left == right).map(|(letter, _)| letter.len_utf8()).sum()
}
