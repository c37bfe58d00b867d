//! Where the JSON of a growing text ends. Pure.

use serde_json::value::RawValue;

/// Whether a growing text is a whole JSON object or list. It is parsed once, where it may end: with each of many small
/// pieces, that would take long arguments minutes.
#[derive(Default)]
pub struct Whole {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    /// Whether what was open has been closed.
    has_ended: bool,
    /// What parsing it has told since, or what followed.
    verdict: Option<bool>,
}

impl Whole {
    /// Takes the next piece of the text.
    pub fn take(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' if self.depth > 0 => self.in_string = !self.in_string,
                _ if self.in_string || byte.is_ascii_whitespace() => {}
                _ if self.has_ended => self.verdict = Some(false),
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.has_ended = self.depth == 0;
                }
                _ => {}
            }
        }
    }

    /// Whether the text, which is all that was taken, is whole.
    pub fn holds(&mut self, text: &str) -> bool {
        let parses = || serde_json::from_str::<&RawValue>(text).is_ok();
        self.has_ended && *self.verdict.get_or_insert_with(parses)
    }
}
