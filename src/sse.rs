//! Server-sent events: bytes in, events out. Pure; it never looks inside the data.
//!
//! The grammar is that of the WHATWG HTML standard, part "Server-sent events": LF, CRLF and CR end a line,
//! a byte order mark at the very start is dropped, comments are skipped. Bytes become text only when a
//! whole line is there, since a read may end inside a character.

use std::borrow::Cow;

/// One event: what its `event` line said (empty if there was none) and its data lines, joined by LF.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Event {
    /// The value of the `event` field.
    pub kind: String,
    /// The data, without the final line break. Never empty or blank: such events are keep-alives.
    pub data: String,
}

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Where the first unread line starts in `buffer`.
    start: usize,
    /// How far `buffer` has been searched for that line's end.
    searched: usize,
    begun: bool,
    /// The last line ended with CR, so an LF that follows belongs to it.
    after_cr: bool,
    event: Event,
    has_data: bool,
}

impl Decoder {
    /// Begins with these bytes of the stream.
    pub fn of(start: Vec<u8>) -> Decoder {
        Decoder { buffer: start, ..Decoder::default() }
    }

    /// Takes the next bytes of the stream, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event, if the bytes fed so far hold one.
    pub fn next_event(&mut self) -> Option<Event> {
        while let Some((from, to)) = self.next_line() {
            if from == to {
                let event = std::mem::take(&mut self.event);
                let dispatched = std::mem::take(&mut self.has_data) && !event.data.trim().is_empty();
                if dispatched {
                    return Some(event);
                }
            } else {
                self.take_line(from, to);
            }
        }
        None
    }

    /// The borders of the next whole line in the buffer, without its end.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if !self.begun {
            const BYTE_ORDER_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];
            if BYTE_ORDER_MARK.starts_with(&self.buffer) && self.buffer.len() < BYTE_ORDER_MARK.len() {
                return None;
            }
            self.begun = true;
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.start = BYTE_ORDER_MARK.len();
                self.searched = self.start;
            }
        }
        if self.after_cr && self.start < self.buffer.len() {
            self.after_cr = false;
            if self.buffer[self.start] == b'\n' {
                self.start += 1;
                self.searched = self.start;
            }
        }
        let found = self.buffer[self.searched..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        let Some(offset) = found else {
            self.searched = self.buffer.len();
            return None;
        };
        let (from, to) = (self.start, self.searched + offset);
        self.after_cr = self.buffer[to] == b'\r';
        self.start = to + 1;
        self.searched = self.start;
        Some((from, to))
    }

    fn take_line(&mut self, from: usize, to: usize) {
        let line = &self.buffer[from..to];
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.event.kind = text(value).into_owned(),
            b"data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(&text(value));
            }
            // Comments (an empty field), `id`, `retry` and unknown names mean nothing here.
            _ => {}
        }
    }
}

/// The bytes as text. Sound text, which almost all is, is told at once.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// All events of a stream that comes in these pieces.
#[cfg(any(test, feature = "fuzz"))]
pub fn events(pieces: &[&[u8]]) -> Vec<Event> {
    let mut decoder = Decoder::default();
    let mut events = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        events.extend(std::iter::from_fn(|| decoder.next_event()));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.feed(piece);
            while let Some(event) = decoder.next_event() {
                events.push((event.kind, event.data));
            }
        }
        events
    }

    fn event(kind: &str, data: &str) -> (String, String) {
        (kind.to_owned(), data.to_owned())
    }

    #[test]
    fn fields_comments_and_joined_data_follow_the_standard() {
        let stream =
            b": hello\n\nevent: a\ndata: one\ndata:two\nid: 7\nretry: 5\nwhat: ever\n\ndata\n\ndata:  x\n\n";
        assert_eq!(decode(&[stream]), [event("a", "one\ntwo"), event("", " x")]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_once() {
        assert_eq!(decode(&["\u{feff}data: x\n\n".as_bytes()]), [event("", "x")]);
        assert_eq!(decode(&[b"data: \xEF\xBB\xBFx\n\n"]), [event("", "\u{feff}x")]);
    }

    #[test]
    fn an_event_without_its_blank_line_is_not_given() {
        assert_eq!(decode(&[b"data: x\n"]), []);
    }

    #[test]
    fn a_comment_and_a_blank_line_give_nothing() {
        assert_eq!(decode(&[b": ping\n\n:\n\nid: 1\n\n\n"]), []);
    }

    #[test]
    fn invalid_bytes_are_replaced_and_lose_no_event() {
        assert_eq!(decode(&[b"data: a\xFFb\n\ndata: c\n\n"]), [event("", "a\u{fffd}b"), event("", "c")]);
    }

    #[test]
    fn every_line_end_cut_at_every_byte_gives_the_same_events() {
        let expected = [event("start", "{\"text\":\"h\u{e9}llo \u{1f600}\"}"), event("", "b\nc")];
        for end in ["\n", "\r\n", "\r"] {
            let stream = [
                "\u{feff}event: start",
                "data: {\"text\":\"h\u{e9}llo \u{1f600}\"}",
                "",
                ": c",
                "",
                "data: b",
                "data: c",
                "",
                "",
            ]
            .join(end);
            // A CR that ends the stream may be half of a CRLF; the event is complete all the same.
            let bytes = stream.as_bytes();
            for cut in 0..=bytes.len() {
                assert_eq!(decode(&[&bytes[..cut], &bytes[cut..]]), expected, "end {end:?} cut {cut}");
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode(&single), expected, "end {end:?} byte by byte");
        }
    }
}
