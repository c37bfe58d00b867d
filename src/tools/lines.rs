//! The lines of a file as they are read, of either encoding, whatever their number and length.
//!
//! Nothing here holds more than the buffer and the beginning of one line. What is shown of them is `read.rs`'s.

use std::io::{self, BufRead, Read, Write};

/// How much of one line is shown.
pub const MAX_LINE_BYTES: usize = 2000;

/// How a text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8, or anything else in which a newline is one byte.
    Utf8,
    /// UTF-16 of either order.
    Utf16 {
        /// Whether the smaller byte of a unit comes first.
        little_endian: bool,
    },
}

/// A line as far as it is kept.
pub struct Line {
    /// Its first bytes, with its newline.
    pub start: Vec<u8>,
    /// Whether bytes between the start and the newline were left out.
    pub is_shortened: bool,
    /// How many bytes of the file were looked at for it.
    pub bytes: u64,
}

/// Reads the next line, of which no more than a bounded start is kept and no more than about
/// `scan_limit` bytes are looked at. Nothing at the end of the file.
pub fn next_line(reader: &mut impl BufRead, scan_limit: u64) -> io::Result<Option<Line>> {
    let mut line = Line { start: Vec::new(), is_shortened: false, bytes: 0 };
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() && line.bytes == 0 {
            return Ok(None);
        }
        let newline = Newlines::of(Encoding::Utf8).end_in(buffer);
        let found = newline.unwrap_or(buffer.len());
        // One character and a newline more than is shown are kept, to cut between characters.
        let room = (MAX_LINE_BYTES + 8).saturating_sub(line.start.len());
        line.start.extend_from_slice(&buffer[..found.min(room)]);
        let is_over = buffer.is_empty() || newline.is_some() || line.bytes + found as u64 >= scan_limit;
        line.bytes += found as u64;
        reader.consume(found);
        if !is_over {
            continue;
        }
        let content = line.bytes - u64::from(newline.is_some());
        if content > MAX_LINE_BYTES as u64 {
            let mut end = MAX_LINE_BYTES;
            while end > MAX_LINE_BYTES - 4 && line.start[end] & 0b1100_0000 == 0b1000_0000 {
                end -= 1;
            }
            line.start.truncate(end);
            line.start.push(b'\n');
            line.is_shortened = true;
        }
        return Ok(Some(line));
    }
}

/// Finds where lines end, in bytes that come in pieces.
pub struct Newlines {
    encoding: Encoding,
    /// In UTF-16, the first byte of a unit whose second byte has not come yet.
    half: Option<u8>,
}

impl Newlines {
    /// Looks for those of this encoding, from the beginning of a line.
    pub fn of(encoding: Encoding) -> Newlines {
        Newlines { encoding, half: None }
    }

    /// The number of bytes up to the end of the first newline, if one ends in these bytes. Bytes
    /// behind it count as not seen.
    fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.encoding {
            // `contains` is many times faster than `position`, which matters in immense lines.
            Encoding::Utf8 if !bytes.contains(&b'\n') => None,
            Encoding::Utf8 => bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1),
            Encoding::Utf16 { little_endian } => {
                let newline = if little_endian { (b'\n', 0) } else { (0, b'\n') };
                let position = bytes.iter().position(|byte| match self.half.take() {
                    Some(first) => (first, *byte) == newline,
                    None => {
                        self.half = Some(*byte);
                        false
                    }
                });
                position.map(|at| at + 1)
            }
        }
    }
}

/// Why lines were not passed on.
pub enum Trouble {
    /// They cannot be read.
    Reading(io::Error),
    /// They cannot be written.
    Writing(io::Error),
    /// They are longer than was allowed.
    TooFar,
}

/// Moves up to `count` lines from `reader` to `out` as they are; returns how many there were. A last
/// line without a newline counts. Lines longer than about `max_bytes` together are an error.
pub fn pass_lines(
    reader: &mut impl BufRead,
    count: u64,
    max_bytes: u64,
    newlines: &mut Newlines,
    out: &mut dyn Write,
) -> Result<u64, Trouble> {
    let mut passed = 0;
    let mut passed_bytes = 0;
    let mut is_within_line = false;
    while passed < count {
        let buffer = reader.fill_buf().map_err(Trouble::Reading)?;
        if buffer.is_empty() {
            return Ok(passed + u64::from(is_within_line));
        }
        if passed_bytes >= max_bytes {
            return Err(Trouble::TooFar);
        }
        // All whole lines in the buffer go at once, so that a copy is not a write a line.
        let mut end = 0;
        while passed < count {
            let Some(length) = newlines.end_in(&buffer[end..]) else {
                is_within_line |= end < buffer.len();
                end = buffer.len();
                break;
            };
            end += length;
            passed += 1;
            is_within_line = false;
        }
        out.write_all(&buffer[..end]).map_err(Trouble::Writing)?;
        passed_bytes += end as u64;
        reader.consume(end);
    }
    Ok(passed)
}

/// Turns UTF-16 into UTF-8 as it is read, into buffers of a few dozen bytes at least; a lone surrogate
/// becomes U+FFFD.
pub struct Utf16Decoder<R> {
    bytes: R,
    little_endian: bool,
    /// Units read but not decoded yet: at most a high surrogate whose other half has not come.
    units: Vec<u16>,
    /// The first byte of a unit whose second byte has not come.
    odd: Option<u8>,
}

impl<R> Utf16Decoder<R> {
    /// A decoder that has read nothing yet.
    pub fn new(bytes: R, little_endian: bool) -> Utf16Decoder<R> {
        Utf16Decoder { bytes, little_endian, units: Vec::new(), odd: None }
    }
}

impl<R: Read> Read for Utf16Decoder<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // Two bytes become three at most, and what is left over from before adds two characters.
        let mut raw = [0; 4096];
        let length = raw.len().min(out.len().saturating_sub(8) / 3 * 2);
        loop {
            let count = self.bytes.read(&mut raw[..length])?;
            for byte in &raw[..count] {
                match self.odd.take() {
                    None => self.odd = Some(*byte),
                    Some(first) if self.little_endian => self.units.push(u16::from_le_bytes([first, *byte])),
                    Some(first) => self.units.push(u16::from_be_bytes([first, *byte])),
                }
            }
            let is_end = count == 0;
            if is_end && self.odd.take().is_some() {
                self.units.push(0xFFFD);
            }
            let is_high = |unit: &u16| (0xD800..0xDC00).contains(unit);
            let waiting = if is_end { None } else { self.units.pop_if(|unit| is_high(unit)) };
            let text: String = char::decode_utf16(self.units.drain(..))
                .map(|decoded| decoded.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            self.units.extend(waiting);
            if is_end || !text.is_empty() {
                out[..text.len()].copy_from_slice(text.as_bytes());
                return Ok(text.len());
            }
        }
    }
}
