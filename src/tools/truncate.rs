//! Output of any length, kept as its beginning and its end.
//!
//! Memory is bounded whatever comes in: what lies between is counted and let go.

/// The beginning and the end of everything pushed.
#[derive(Debug)]
pub struct HeadTail {
    head: Vec<u8>,
    head_bytes: usize,
    /// The last bytes after the head, at least `tail_bytes` of them if there were so many.
    tail: Vec<u8>,
    tail_bytes: usize,
    total: u64,
}

impl HeadTail {
    /// Keeps the first `head_bytes` and the last `tail_bytes`.
    pub fn new(head_bytes: usize, tail_bytes: usize) -> HeadTail {
        HeadTail { head: Vec::new(), head_bytes, tail: Vec::new(), tail_bytes, total: 0 }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.head_bytes - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(&rest[rest.len().saturating_sub(self.tail_bytes)..]);
        // The front is cut off now and then instead of each time, so that a byte is moved once.
        if self.tail.len() > self.tail_bytes.saturating_mul(2) {
            self.tail.drain(..self.tail.len() - self.tail_bytes);
        }
    }

    /// What is kept: all of it as the head if it fits, else head and tail. Cut at a line's end where that
    /// keeps at least half of the part, never inside a character. Bytes that are not UTF-8 are shown as
    /// U+FFFD.
    pub fn parts(mut self) -> Parts {
        self.tail.drain(..self.tail.len().saturating_sub(self.tail_bytes));
        let limit = self.head_bytes + self.tail_bytes;
        if self.total == (self.head.len() + self.tail.len()) as u64 {
            let text = String::from_utf8_lossy(&[self.head.as_slice(), &self.tail].concat()).into_owned();
            // U+FFFD takes three bytes, so binary output can outgrow the limit when it is shown.
            if text.len() <= limit {
                return Parts { head: text, left_out: 0, tail: String::new() };
            }
        }
        let (head, head_used) = beginning(&self.head, self.head_bytes);
        let (tail, tail_used) = end(&self.tail, self.tail_bytes);
        Parts { head, left_out: self.total - (head_used + tail_used) as u64, tail }
    }
}

/// The two parts of a text of which the middle may have been left out.
#[derive(Debug)]
pub struct Parts {
    /// The beginning, or all of it.
    pub head: String,
    /// How many bytes are missing between the two.
    pub left_out: u64,
    /// The end.
    pub tail: String,
}

impl Parts {
    /// The text, with a line that says how many bytes were left out, if any were.
    pub fn text(self) -> String {
        let Parts { head, left_out, tail } = self;
        if left_out == 0 {
            return head + &tail;
        }
        let border = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        format!("{head}{border}[… {left_out} bytes left out …]\n{tail}")
    }
}

/// The longest beginning of `bytes` that takes at most `limit` bytes as text, and how many of the
/// bytes it shows.
fn beginning(bytes: &[u8], limit: usize) -> (String, usize) {
    // A character cut off at the end is left out rather than shown as U+FFFD.
    let whole = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    let pieces = pieces(&bytes[..whole]);
    let mut size = 0;
    let fitting = pieces.iter().take_while(|(letter, _)| {
        size += letter.len_utf8();
        size <= limit
    });
    let mut count = fitting.count();
    if let Some(newline) = pieces[..count].iter().rposition(|(letter, _)| *letter == '\n')
        && newline >= count / 2
    {
        count = newline + 1;
    }
    joined(&pieces[..count])
}

/// The longest end of `bytes` that takes at most `limit` bytes as text, and how many it shows.
fn end(bytes: &[u8], limit: usize) -> (String, usize) {
    // These continue a character whose first byte was let go.
    let cut_off = bytes.iter().take(3).take_while(|byte| (0x80..0xc0).contains(*byte)).count();
    let pieces = pieces(&bytes[cut_off..]);
    let mut size = 0;
    let fitting = pieces.iter().rev().take_while(|(letter, _)| {
        size += letter.len_utf8();
        size <= limit
    });
    let mut start = pieces.len() - fitting.count();
    if let Some(newline) = pieces[start..].iter().position(|(letter, _)| *letter == '\n')
        && newline < (pieces.len() - start) / 2
    {
        start += newline + 1;
    }
    joined(&pieces[start..])
}

/// The characters that bytes are shown as, each with the number of bytes it stands for.
fn pieces(bytes: &[u8]) -> Vec<(char, usize)> {
    let mut pieces = Vec::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        pieces.extend(chunk.valid().chars().map(|letter| (letter, letter.len_utf8())));
        if !chunk.invalid().is_empty() {
            pieces.push((char::REPLACEMENT_CHARACTER, chunk.invalid().len()));
        }
    }
    pieces
}

fn joined(pieces: &[(char, usize)]) -> (String, usize) {
    (pieces.iter().map(|(letter, _)| letter).collect(), pieces.iter().map(|(_, length)| length).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(head_bytes: usize, tail_bytes: usize, parts: &[&[u8]]) -> String {
        let mut output = HeadTail::new(head_bytes, tail_bytes);
        for part in parts {
            output.push(part);
        }
        output.parts().text()
    }

    #[test]
    fn what_fits_is_returned_unchanged() {
        assert_eq!(kept(4, 4, &[]), "");
        assert_eq!(kept(4, 4, &[b"12345678"]), "12345678");
        assert_eq!(kept(4, 4, &[b"123", b"", b"45\n", b"78"]), "12345\n78");
        // The border between head and tail may fall inside a character.
        assert_eq!(kept(2, 4, &["aé€".as_bytes()]), "aé€");
        assert_eq!(kept(0, 0, &[]), "");
    }

    #[test]
    fn the_middle_is_counted_and_left_out() {
        assert_eq!(kept(4, 4, &[b"123456789"]), "1234\n[… 1 bytes left out …]\n6789");
        assert_eq!(kept(0, 2, &[b"123456789"]), "[… 7 bytes left out …]\n89");
        assert_eq!(kept(2, 0, &[b"123456789"]), "12\n[… 7 bytes left out …]\n");
    }

    #[test]
    fn parts_are_cut_at_the_border_of_a_line_where_that_keeps_half_of_them() {
        let text = b"one\ntwo\nthree\nfour\nfive\nsix\n";
        assert_eq!(kept(10, 10, &[text]), "one\ntwo\n[… 11 bytes left out …]\nfive\nsix\n");
        // A line longer than half of the part is cut inside.
        assert_eq!(kept(4, 4, &[b"abbbbbbbbbbbbb\nc"]), "abbb\n[… 8 bytes left out …]\nbb\nc");
    }

    #[test]
    fn no_character_is_cut() {
        // Each is three bytes, so that both cuts fall inside one.
        assert_eq!(kept(4, 4, &["€€€€".as_bytes()]), "€\n[… 6 bytes left out …]\n€");
        assert_eq!(kept(5, 5, &["€€€€".as_bytes()]), "€\n[… 6 bytes left out …]\n€");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_shown_lossily_and_still_bounded() {
        assert_eq!(kept(8, 8, &[b"a\xffb"]), "a\u{fffd}b");
        assert_eq!(kept(4, 4, &[&[0xff; 8]]), "\u{fffd}\n[… 6 bytes left out …]\n\u{fffd}");
    }

    #[test]
    fn any_split_of_the_input_gives_the_same_text() {
        let text = "zeile 1 ä\nzeile 2 €\nzeile 3 \u{1f980}\nzeile 4\n".repeat(3);
        let whole = kept(20, 20, &[text.as_bytes()]);
        for size in 1..text.len() {
            let parts: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            assert_eq!(kept(20, 20, &parts), whole, "in parts of {size} bytes");
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_output() {
        let mut output = HeadTail::new(100, 100);
        for _ in 0..10_000 {
            output.push(&[b'x'; 999]);
            assert!(output.head.capacity() + output.tail.capacity() <= 1000);
        }
        assert!(output.parts().text().contains("[… 9989800 bytes left out …]"));
    }
}
