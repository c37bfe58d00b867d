//! The text of a reply while it grows, and where in it the answer begins.
//!
//! Pure. It is looked at with each of many small pieces, so that no look takes longer for a longer text.

const THINK_OPEN: &str = "<think>";
const THINK_CLOSE: &str = "</think>";

/// A text that grows.
#[derive(Default)]
pub struct Said {
    text: String,
    /// Where its first letter is; its length where all of it is blank.
    begins_at: usize,
    closed: Option<Closed>,
}

/// The first tag that ends thinking.
struct Closed {
    at: usize,
    /// Where the first letter behind it is, or the text's end.
    goes_on_at: usize,
    /// Whether what stands before it holds no opening tag and no fence, and ends with a line.
    is_bare: bool,
}

impl Said {
    /// Adds to the text. Only what is new is searched.
    pub fn push(&mut self, piece: &str) {
        let known = self.text.len();
        self.text.push_str(piece);
        if self.begins_at == known {
            self.begins_at = letter_at(&self.text, known);
        }
        match &mut self.closed {
            Some(closed) if closed.goes_on_at == known => closed.goes_on_at = letter_at(&self.text, known),
            Some(_) => {}
            None => {
                let from = known.saturating_sub(THINK_CLOSE.len());
                let from = (0..=from).rev().find(|at| self.text.is_char_boundary(*at)).unwrap_or_default();
                self.closed = self.text[from..].find(THINK_CLOSE).map(|at| self.closed(from + at));
            }
        }
    }

    fn closed(&self, at: usize) -> Closed {
        let before = &self.text[..at];
        Closed {
            at,
            goes_on_at: letter_at(&self.text, at + THINK_CLOSE.len()),
            is_bare: before.ends_with('\n') && !before.contains(THINK_OPEN) && !before.contains("```"),
        }
    }

    /// Whether nothing has come, not even a blank.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// All of the text; nothing as long as it is blank.
    pub fn visible(&self) -> &str {
        if self.begins_at == self.text.len() { "" } else { &self.text }
    }

    /// The text after a thinking block at its very beginning; all of it if there is none; absent while such a
    /// block is still open. A closing tag alone on its line, with nothing opened before it, ends a block that
    /// the server's template had opened. Tags further on are the answer's own.
    pub fn without_thinking(&self) -> Option<&str> {
        let behind = |closed: &Closed| &self.text[closed.goes_on_at..];
        if self.text[self.begins_at..].starts_with(THINK_OPEN) {
            return self.closed.as_ref().map(behind);
        }
        match &self.closed {
            Some(closed)
                if closed.is_bare && self.text[closed.at + THINK_CLOSE.len()..].starts_with('\n') =>
            {
                Some(behind(closed))
            }
            _ => Some(&self.text),
        }
    }

    /// The same as far as it can be shown: nothing that may turn out to be thinking.
    pub fn visible_without_thinking(&self) -> &str {
        let start = &self.text[self.begins_at..];
        if THINK_OPEN.starts_with(start) && start.len() < THINK_OPEN.len() {
            return "";
        }
        self.without_thinking().unwrap_or("")
    }
}

/// Where the first letter is from here on.
fn letter_at(text: &str, from: usize) -> usize {
    text.len() - text[from..].trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_at_the_beginning_is_no_answer_and_later_tags_are() {
        for (text, answer) in [
            ("\n<think>a</think>\n\nb", Some("b")),
            ("<think>a", None),
            ("<think>é</think>é</think>", Some("é</think>")),
            ("hm\n</think>\nb", Some("b")),
            ("hm\n</think>\n", Some("")),
            ("hm\n</think>b", Some("hm\n</think>b")),
            ("Use <think>x</think> so", Some("Use <think>x</think> so")),
            ("```\n</think>\n```", Some("```\n</think>\n```")),
        ] {
            let mut whole = Said::default();
            whole.push(text);
            assert_eq!(whole.without_thinking(), answer, "{text}");
            let mut pieces = Said::default();
            text.chars().for_each(|piece| pieces.push(&piece.to_string()));
            assert_eq!(pieces.without_thinking(), answer, "{text}");
        }
    }

    #[test]
    fn what_is_shown_of_a_growing_text_never_shrinks() {
        let mut said = Said::default();
        let mut shown = String::new();
        for piece in [" ", "<th", "ink>", "no ", "</thi", "nk>", "\n\nyes", " sir"] {
            said.push(piece);
            let visible = said.visible_without_thinking();
            assert!(visible.starts_with(&shown), "{visible:?} after {shown:?}");
            shown = visible.to_owned();
        }
        assert_eq!(shown, "yes sir");
    }

    #[test]
    fn blanks_are_shown_with_the_first_letter() {
        let mut said = Said::default();
        for (piece, visible) in
            [("", ""), (" ", ""), ("\n\u{2003}", ""), ("é", " \n\u{2003}é"), (" ", " \n\u{2003}é ")]
        {
            said.push(piece);
            assert_eq!((said.visible(), said.visible_without_thinking()), (visible, visible));
        }
    }
}
