//! Parts of a conversation that give way so that the rest can be sent: results that become a line about themselves,
//! and a beginning that becomes a summary.
//!
//! Whatever is cut, each call keeps its one result in the message after it. Both are told as lines for the session
//! file, which keeps all that was said; reading them back makes the same conversation of it.

use std::collections::HashSet;

use serde_json::json;

use super::writing::push_parts;
use super::{CallResult, Conversation, Message, Part, Role};

/// The type of both lines.
pub const LINE: &str = "compaction";

/// What a result begins with that was cut.
const CUT: &str = "[result cut to save room: ";

impl CallResult {
    /// Whether it was cut.
    pub fn is_cut(&self) -> bool {
        self.text.starts_with(CUT) && self.images.is_empty()
    }

    fn cut(&mut self) {
        let bytes = grouped(self.text.len());
        let images = match self.images.len() {
            0 => String::new(),
            1 => " and an image".to_owned(),
            count => format!(" and {count} images"),
        };
        self.text = format!("{CUT}{bytes} bytes{images}; call the tool again, for a part of it, if needed]");
        self.images.clear();
    }
}

/// A number with a comma before each three digits.
fn grouped(number: usize) -> String {
    let mut text = number.to_string();
    let mut at = text.len();
    while at > 3 {
        at -= 3;
        text.insert(at, ',');
    }
    text
}

impl Conversation {
    /// Cuts the results of these calls.
    pub fn cut_results(&mut self, calls: &HashSet<&str>) {
        for part in self.messages.iter_mut().flat_map(|message| &mut message.parts) {
            if let Part::Result(result) = part
                && calls.contains(result.call_id.as_str())
                && !result.is_cut()
            {
                result.cut();
            }
        }
    }

    /// Puts a message of the user's into the place of all but the last so many messages, of which the first is a
    /// reply.
    ///
    /// Errors: there are no such messages, so that nothing was done.
    pub fn begin_with(&mut self, parts: Vec<Part>, kept: usize) -> Result<(), ()> {
        let end = self.messages.len().checked_sub(kept).filter(|end| *end > 0).ok_or(())?;
        let fits = self.messages.get(end).is_none_or(|next| next.role == Role::Assistant);
        let is_said = parts.iter().all(|part| matches!(part, Part::Text(_) | Part::Image(_)));
        // A reply alone is what a call is answered after: the messages before it must not end with one.
        let is_answered = self.messages[end - 1].role == Role::User;
        if !fits || !is_answered || !is_said || parts.is_empty() {
            return Err(());
        }
        let first = Message { role: Role::User, parts, origin: None };
        let behind = self.messages.len() - self.handed_out.0;
        self.messages.splice(..end, [first]);
        // What was handed out stays so.
        self.handed_out.0 = self.messages.len().saturating_sub(behind);
        if kept == 0 {
            self.handed_out.1 = self.messages[0].parts.len();
        }
        Ok(())
    }
}

/// The line that tells of results that were cut.
pub fn line_of_results(calls: &[String]) -> String {
    json!({"type": LINE, "cut": calls}).to_string()
}

/// The line that tells of a beginning that was replaced.
pub fn line_of_beginning(parts: &[Part], kept: usize) -> String {
    let mut line = format!(r#"{{"type":"{LINE}","parts":["#);
    push_parts(&mut line, parts);
    line.push_str(&format!(r#"],"kept":{kept}}}"#));
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Call, Image};

    fn talk() -> Conversation {
        let mut conversation = Conversation::default();
        conversation.add_user("first");
        for id in ["a", "b"] {
            let call = Call {
                id: id.to_owned(),
                name: "Read".to_owned(),
                arguments: "{}".to_owned(),
                refusal: None,
                extra: None,
            };
            conversation.add_reply(vec![Part::Call(call)], "test");
            conversation.add_result(CallResult {
                call_id: id.to_owned(),
                text: "x".repeat(12_345),
                images: vec![Image::new("image/png", b"\x89PNG")],
                is_error: false,
            });
        }
        conversation
    }

    #[test]
    fn a_result_becomes_a_line_about_itself_once() {
        let mut conversation = talk();
        conversation.cut_results(&HashSet::from(["a"]));
        let text = "[result cut to save room: 12,345 bytes and an image; call the tool again, for a part of it, if needed]";
        let cut = |conversation: &Conversation| match &conversation.messages()[2].parts[0] {
            Part::Result(result) => (result.call_id.clone(), result.text.clone(), result.images.len()),
            part => panic!("{part:?}"),
        };
        assert_eq!(cut(&conversation), ("a".to_owned(), text.to_owned(), 0));
        conversation.cut_results(&HashSet::from(["a"]));
        assert_eq!(cut(&conversation).1, text);
    }

    #[test]
    fn a_beginning_is_replaced_only_where_the_pairs_stay_whole() {
        let summary = || vec![Part::Text("first".into()), Part::Text("summary".into())];
        let whole = talk();
        for kept in [1, 3, 5, 6, 100] {
            assert_eq!(talk().begin_with(summary(), kept), Err(()), "{kept}");
        }
        assert_eq!(talk().begin_with(Vec::new(), 2), Err(()));
        for kept in [0, 2, 4] {
            let mut conversation = talk();
            assert_eq!(conversation.new_lines().len(), 5);
            assert_eq!(conversation.begin_with(summary(), kept), Ok(()), "{kept}");
            assert_eq!(conversation.messages()[0].parts, summary());
            assert_eq!(conversation.messages()[1..], whole.messages()[5 - kept..]);
            // Nothing is handed out twice, and nothing is forgotten.
            assert_eq!(conversation.new_lines(), [] as [&str; 0]);
            conversation.add_user("next");
            let line = r#"{"type":"user","parts":[{"type":"text","text":"next"}]}"#;
            assert_eq!(conversation.new_lines(), [line]);
        }
    }

    #[test]
    fn numbers_are_written_in_groups() {
        let numbers = [0, 999, 1000, 12_345, 1_234_567].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "12,345", "1,234,567"]);
    }
}
