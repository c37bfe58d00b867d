//! Output written for a terminal, reduced to the text that would be left standing there.
//!
//! Followed, within a number of last rows and of bytes: line ends, carriage returns, backspaces, the
//! cursor's moves by rows and columns, and erasing in a row or below. Dropped: colours, titles and other
//! strings, all other sequences and control characters. Not followed: absolute rows (they begin a new line),
//! saved positions, insertion and deletion, scroll regions, wrapping, characters that take two columns or
//! none, and a tab's width at a row's end, where it is kept and counts as one column.
//!
//! Pure, and bounded in memory whatever comes in. How the bytes are split into pieces makes no difference.

use std::collections::VecDeque;

/// How far to the right the cursor moves beyond the text. Text itself is never wrapped.
const WIDTH: usize = 80;
/// A row that was longer and is erased gives its memory back.
const SMALL_ROW: usize = 256;

const BELL: u8 = 0x07;
const BACKSPACE: u8 = 0x08;
const CANCEL: u8 = 0x18;
const SUBSTITUTE: u8 = 0x1a;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// The rows that can still change, and how far the sequence in progress has come.
#[derive(Debug)]
pub struct Terminal {
    /// Never empty.
    rows: VecDeque<Row>,
    max_rows: usize,
    max_bytes: usize,
    /// What the rows take with the line ends between them.
    bytes: usize,
    /// The cursor's place; its column may be beyond the row's end.
    row: usize,
    column: usize,
    /// The beginning of a character whose other bytes are to come.
    unfinished: Vec<u8>,
    state: State,
}

/// One character a column. In a text, finding a column would take a walk through all before it.
#[derive(Debug, Default, Clone)]
struct Row {
    letters: VecDeque<char>,
    /// What they take as UTF-8.
    bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Text,
    /// Behind an escape character.
    Escape,
    /// Behind an escape character and an intermediate one, as before the name of a character set.
    EscapeIntermediate,
    Control(Control),
    /// In a title or another string, up to its end or the line's: one that is never ended is not to
    /// swallow all that follows.
    String,
}

/// A control sequence in progress, of which only the first number can matter.
#[derive(Debug, Clone, Copy, Default)]
struct Control {
    number: usize,
    number_ended: bool,
    /// It is one of those that are never followed.
    is_private: bool,
}

impl Terminal {
    /// An empty screen, on which at most the last `max_rows` rows and `max_bytes` can change: of a longer line
    /// only its end. What is before them is passed on.
    pub fn new(max_rows: usize, max_bytes: usize) -> Terminal {
        Terminal {
            rows: VecDeque::from([Row::default()]),
            max_rows,
            max_bytes,
            bytes: 0,
            row: 0,
            column: 0,
            unfinished: Vec::new(),
            state: State::Text,
        }
    }

    /// Takes the next bytes and passes on, in order, the text that can no longer change.
    pub fn push(&mut self, bytes: &[u8], pass_on: &mut impl FnMut(&str)) {
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            let length = match self.state {
                State::Text => rest.iter().position(|byte| !is_plain(*byte)).unwrap_or(rest.len()),
                _ => 0,
            };
            if length > 0 {
                self.write(&rest[..length], pass_on);
            } else {
                self.step(*byte, pass_on);
            }
            rest = &rest[length.max(1)..];
        }
    }

    /// Passes on all there is, and begins again with an empty row. A character or a sequence of which only
    /// the beginning has come goes on with the next bytes.
    pub fn pass_on_all(&mut self, pass_on: &mut impl FnMut(&str)) {
        self.pass_on_ended_rows(pass_on);
        pass_on(&std::mem::take(&mut self.rows[0]).text());
        (self.bytes, self.row, self.column) = (0, 0, 0);
    }

    /// Passes on all rows but the last, and tells whether there is anything in that one.
    pub fn pass_on_ended_rows(&mut self, pass_on: &mut impl FnMut(&str)) -> bool {
        while self.rows.len() > 1 {
            self.pass_on_row(pass_on);
        }
        !self.rows[0].letters.is_empty()
    }

    /// Passes on all there is at the end of the output.
    pub fn finish(&mut self, pass_on: &mut impl FnMut(&str)) {
        self.end_character(pass_on);
        self.pass_on_all(pass_on);
    }

    /// One byte that is not plain text, or that may end a sequence.
    fn step(&mut self, byte: u8, pass_on: &mut impl FnMut(&str)) {
        self.end_character(pass_on);
        match (self.state, byte) {
            (_, ESCAPE) => self.state = State::Escape,
            (State::Text, b'\r') => self.column = 0,
            (State::Text, BACKSPACE) => self.column = self.column.saturating_sub(1),
            (State::Text, byte) if is_plain(byte) => self.write(&[byte], pass_on),
            (State::Text, _) => {}
            (State::Escape, b'[') => self.state = State::Control(Control::default()),
            (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => self.state = State::String,
            (State::Escape | State::EscapeIntermediate, 0x20..=0x2f) => {
                self.state = State::EscapeIntermediate
            }
            (State::Escape | State::EscapeIntermediate, 0x30..=0x7e) => self.state = State::Text,
            (State::Control(control), 0x20..=0x3f) => self.state = State::Control(control.and(byte)),
            (State::Control(control), 0x40..=0x7e) => {
                self.state = State::Text;
                if !control.is_private {
                    self.obey(byte, control.number, pass_on);
                }
            }
            (State::String, BELL | CANCEL | SUBSTITUTE) => self.state = State::Text,
            (State::String, byte) if byte != b'\n' => {}
            // Not part of a sequence: that one is over, and this is what it is elsewhere.
            _ => {
                self.state = State::Text;
                self.step(byte, pass_on);
            }
        }
    }

    /// What a control sequence asks for.
    fn obey(&mut self, name: u8, number: usize, pass_on: &mut impl FnMut(&str)) {
        let count = number.max(1);
        match name {
            b'A' => self.go_to(self.row.saturating_sub(count), self.column),
            b'B' => self.go_to(self.row.saturating_add(count), self.column),
            b'C' | b'a' => self.go_to(self.row, self.column.saturating_add(count)),
            b'D' => self.go_to(self.row, self.column.saturating_sub(count)),
            b'E' => self.go_to(self.row.saturating_add(count), 0),
            b'F' => self.go_to(self.row.saturating_sub(count), 0),
            b'G' | b'`' => self.go_to(self.row, count - 1),
            b'H' | b'f' => self.begin_line(pass_on),
            b'J' if number == 0 => self.erase_below(),
            b'K' if number == 0 => self.erase_from_cursor(),
            b'K' if number == 1 => self.change(|row, column| row.blank(0, column.saturating_add(1))),
            b'K' if number == 2 => self.change(|row, _| row.erase_from(0)),
            b'X' => self.change(|row, column| row.blank(column, column.saturating_add(count))),
            _ => {}
        }
    }

    /// Moves the cursor as far as there are rows, and columns or room for them.
    fn go_to(&mut self, row: usize, column: usize) {
        self.row = row.min(self.rows.len() - 1);
        self.column = column.min(self.rows[self.row].letters.len().max(WIDTH - 1));
    }

    /// A program that draws whole screens has each one, and each row of it, told one after the other.
    fn begin_line(&mut self, pass_on: &mut impl FnMut(&str)) {
        self.go_to(self.rows.len() - 1, 0);
        if !self.rows[self.row].letters.is_empty() {
            self.end_line(pass_on);
        }
    }

    fn erase_below(&mut self) {
        self.erase_from_cursor();
        for row in self.rows.drain(self.row + 1..) {
            self.bytes -= row.bytes + 1;
        }
    }

    fn erase_from_cursor(&mut self) {
        self.change(|row, column| row.erase_from(column));
    }

    /// Changes the cursor's row, told the cursor's column, in a way that makes it no longer.
    fn change(&mut self, change: impl FnOnce(&mut Row, usize)) {
        let row = &mut self.rows[self.row];
        let before = row.bytes;
        change(row, self.column);
        self.bytes -= before - row.bytes;
    }

    /// Writes bytes without control characters but line ends and tabs.
    fn write(&mut self, bytes: &[u8], pass_on: &mut impl FnMut(&str)) {
        let mut joined = std::mem::take(&mut self.unfinished);
        let bytes = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        let (whole, unfinished) = bytes.split_at(bytes.len() - unfinished_bytes(bytes));
        self.unfinished.extend_from_slice(unfinished);
        for chunk in whole.utf8_chunks() {
            self.put(chunk.valid(), pass_on);
            if !chunk.invalid().is_empty() {
                self.put("\u{fffd}", pass_on);
            }
        }
    }

    /// What has begun as a character and does not go on as one is shown as U+FFFD.
    fn end_character(&mut self, pass_on: &mut impl FnMut(&str)) {
        if !self.unfinished.is_empty() {
            self.unfinished.clear();
            self.put("\u{fffd}", pass_on);
        }
    }

    fn put(&mut self, text: &str, pass_on: &mut impl FnMut(&str)) {
        let mut text = text;
        // Much text at the end of all: what would only go through the rows is passed on at once.
        let kept = self.start_of_last_rows(text);
        if kept > 0 && self.row + 1 == self.rows.len() && self.is_at_end() {
            self.pass_on_all(pass_on);
            pass_on(&text[..kept]);
            text = &text[kept..];
        }
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                self.end_line(pass_on);
            }
            self.put_line(line, pass_on);
        }
    }

    fn put_line(&mut self, line: &str, pass_on: &mut impl FnMut(&str)) {
        let mut rest = line.chars();
        while !self.is_at_end() {
            // One at a time, each time looking at the limit: had they all been written first, what
            // is passed on would depend on where the bytes were split.
            match rest.next() {
                Some('\t') => self.go_to(self.row, (self.column / 8 + 1) * 8),
                Some(letter) => self.overwrite(letter, pass_on),
                None => return,
            }
        }
        let rest = rest.as_str();
        let row = &mut self.rows[self.row];
        row.letters.extend(rest.chars());
        row.bytes += rest.len();
        self.column = row.letters.len();
        self.bytes += rest.len();
        self.keep_to_limits(pass_on);
    }

    fn is_at_end(&self) -> bool {
        self.column == self.rows[self.row].letters.len()
    }

    /// Writes one character at the cursor.
    fn overwrite(&mut self, letter: char, pass_on: &mut impl FnMut(&str)) {
        let row = &mut self.rows[self.row];
        let before = row.bytes;
        row.set(self.column, letter);
        self.bytes = self.bytes - before + row.bytes;
        self.column += 1;
        self.keep_to_limits(pass_on);
    }

    fn end_line(&mut self, pass_on: &mut impl FnMut(&str)) {
        self.row += 1;
        self.column = 0;
        if self.row == self.rows.len() {
            self.rows.push_back(Row::default());
            self.bytes += 1;
            self.keep_to_limits(pass_on);
        }
    }

    /// Passes on no more than it takes.
    fn keep_to_limits(&mut self, pass_on: &mut impl FnMut(&str)) {
        while self.rows.len() > self.max_rows || (self.rows.len() > 1 && self.excess() > self.rows[0].bytes) {
            self.pass_on_row(pass_on);
        }
        if self.excess() > 0 {
            self.pass_on_beginning(self.excess(), pass_on);
        }
    }

    /// Where the part of a text begins that the limits allow to stay.
    fn start_of_last_rows(&self, text: &str) -> usize {
        let start = character_from(text, text.len().saturating_sub(self.max_bytes));
        match text[start..].rmatch_indices('\n').nth(self.max_rows - 1) {
            Some((index, _)) => start + index + 1,
            None => start,
        }
    }

    fn excess(&self) -> usize {
        self.bytes.saturating_sub(self.max_bytes)
    }

    fn pass_on_row(&mut self, pass_on: &mut impl FnMut(&str)) {
        let Some(row) = self.rows.pop_front() else { return };
        self.bytes -= row.bytes + 1;
        pass_on(&row.text());
        pass_on("\n");
        self.row = self.row.saturating_sub(1);
    }

    /// Passes on the beginning of the first row: at least so many bytes, and whole characters.
    fn pass_on_beginning(&mut self, bytes: usize, pass_on: &mut impl FnMut(&str)) {
        let row = &mut self.rows[0];
        let passed_on = row.take_beginning(bytes);
        let columns = passed_on.chars().count();
        self.bytes -= passed_on.len();
        if self.row == 0 {
            self.column = self.column.saturating_sub(columns);
        }
        pass_on(&passed_on);
    }
}

impl Row {
    fn text(self) -> String {
        self.letters.into_iter().collect()
    }

    /// Sets the character in a column. Spaces fill what is missing before it.
    fn set(&mut self, column: usize, letter: char) {
        if self.letters.len() <= column {
            self.bytes += column + 1 - self.letters.len();
            self.letters.resize(column + 1, ' ');
        }
        self.bytes = self.bytes - self.letters[column].len_utf8() + letter.len_utf8();
        self.letters[column] = letter;
    }

    /// Overwrites what text there is between two columns with spaces.
    fn blank(&mut self, from: usize, to: usize) {
        let end = to.min(self.letters.len());
        for letter in self.letters.range_mut(from.min(end)..end) {
            self.bytes -= letter.len_utf8() - 1;
            *letter = ' ';
        }
    }

    fn erase_from(&mut self, column: usize) {
        self.bytes -= bytes_of(self.letters.range(column.min(self.letters.len())..));
        self.letters.truncate(column);
        self.give_back();
    }

    /// Takes away the beginning: at least so many bytes, and whole characters.
    fn take_beginning(&mut self, bytes: usize) -> String {
        let mut taken = 0;
        let letters = self.letters.iter().take_while(|letter| {
            let is_wanted = taken < bytes;
            taken += letter.len_utf8();
            is_wanted
        });
        let count = letters.count();
        let beginning: String = self.letters.drain(..count).collect();
        self.bytes -= beginning.len();
        self.give_back();
        beginning
    }

    /// Keeps no more memory than for twice what there is, so that giving back costs no more than growing did.
    fn give_back(&mut self) {
        if self.letters.capacity() > 2 * self.letters.len().max(SMALL_ROW) {
            self.letters.shrink_to_fit();
        }
    }
}

fn bytes_of<'a>(letters: impl Iterator<Item = &'a char>) -> usize {
    letters.map(|letter| letter.len_utf8()).sum()
}

impl Control {
    /// The sequence with its next byte, which does not end it.
    fn and(mut self, byte: u8) -> Control {
        match byte {
            b'0'..=b'9' if !self.number_ended => {
                self.number = self.number.saturating_mul(10).saturating_add(usize::from(byte - b'0'));
            }
            b'0'..=b'9' => {}
            b';' | b':' => self.number_ended = true,
            _ => self.is_private = true,
        }
        self
    }
}

/// Whether a byte is text wherever it stands: also a line end, a tab, and any byte of a longer character.
fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != DELETE || byte == b'\n' || byte == b'\t'
}

/// How many bytes at the end begin a character that is not whole yet.
fn unfinished_bytes(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let Some(start) = last.iter().rposition(|byte| *byte >= 0xc0) else { return 0 };
    match std::str::from_utf8(&last[start..]) {
        Err(error) if error.error_len().is_none() => last.len() - start,
        _ => 0,
    }
}

/// The first place at or after an index where a character begins.
fn character_from(text: &str, index: usize) -> usize {
    (index..text.len()).find(|index| text.is_char_boundary(*index)).unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
