//! What a command prints, reduced to what a model reads: the same however the stream is cut, and bounded.

use crate::tools::terminal::Terminal;
use crate::tools::truncate::{HeadTail, Parts};

/// Rows, bytes of rows, bytes of the head and of the tail, the seed of the cuts, then the stream.
pub fn run(bytes: &[u8]) {
    let Some((&[rows, row_bytes, head, tail, seed], stream)) = bytes.split_first_chunk::<5>() else { return };
    let limits = Limits {
        rows: usize::from(rows).max(1),
        row_bytes: usize::from(row_bytes) * 8 + 1,
        head: usize::from(head) * 4,
        tail: usize::from(tail) * 4,
    };
    let whole = limits.reduced(&[stream]);
    assert_eq!(whole, limits.reduced(&super::pieces(stream, seed)), "in pieces");
    if stream.len() <= 200 {
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(whole, limits.reduced(&single), "byte by byte");
    }
    limits.kept(stream, seed);
    // What no terminal would change is passed on as it is, also to who looks at it in between.
    if let Ok(text) = str::from_utf8(stream)
        && text.chars().all(|letter| !letter.is_control() || letter == '\n')
    {
        assert_eq!(whole, text, "plain text has changed");
        assert_eq!(limits.looked_at(&super::pieces(stream, seed)), text, "plain text has changed in between");
    }
    assert!(!whole.contains(['\u{1b}', '\r', '\u{8}']), "a control character is left");
}

struct Limits {
    rows: usize,
    row_bytes: usize,
    head: usize,
    tail: usize,
}

impl Limits {
    /// The text that a terminal passes on.
    fn reduced(&self, pieces: &[&[u8]]) -> String {
        let mut terminal = Terminal::new(self.rows, self.row_bytes);
        let mut text = String::new();
        let mut keep = |more: &str| text.push_str(more);
        for piece in pieces {
            terminal.push(piece, &mut keep);
        }
        terminal.finish(&mut keep);
        text
    }

    /// The same where somebody looks at it after each piece.
    fn looked_at(&self, pieces: &[&[u8]]) -> String {
        let mut terminal = Terminal::new(self.rows, self.row_bytes);
        let mut text = String::new();
        let mut keep = |more: &str| text.push_str(more);
        for piece in pieces {
            terminal.push(piece, &mut keep);
            terminal.pass_on_all(&mut keep);
        }
        terminal.finish(&mut keep);
        text
    }

    /// The beginning and the end of the text.
    fn kept(&self, stream: &[u8], seed: u8) {
        let kept = |pieces: &[&[u8]]| {
            let mut output = HeadTail::new(self.head, self.tail);
            pieces.iter().for_each(|piece| output.push(piece));
            output.parts()
        };
        let whole = kept(&[stream]);
        let pieced = kept(&super::pieces(stream, seed));
        let Parts { head, left_out, tail } = &whole;
        assert_eq!((head, *left_out, tail), (&pieced.head, pieced.left_out, &pieced.tail), "in pieces");
        let limit = self.head + self.tail;
        assert!(head.len() + tail.len() <= limit, "{} and {} bytes of {limit}", head.len(), tail.len());
        assert!(*left_out <= stream.len() as u64, "more is left out than there was");
        let shown = String::from_utf8_lossy(stream);
        if *left_out == 0 {
            assert_eq!(format!("{head}{tail}"), shown, "nothing is left out");
        } else if let Ok(text) = str::from_utf8(stream) {
            assert!(text.starts_with(head.as_str()) && text.ends_with(tail.as_str()), "{head:?} … {tail:?}");
            assert_eq!(
                (head.len() + tail.len()) as u64 + left_out,
                text.len() as u64,
                "what is left out is counted"
            );
        }
        let _ = whole.text();
    }
}
