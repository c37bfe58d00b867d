//! The conversation as it goes over the wire: each message becomes its JSON text once, and a request is a head, these
//! texts and a tail.
//!
//! What a turn costs is not to depend on how many messages there were, only on their bytes. So the texts of messages
//! that can neither grow nor carry a cache mark any more are joined in blocks; only a few stand alone.

use super::{Api, MARK, Settings, anthropic, openai};
use crate::conversation::{Message, Role};

const TAIL: &str = "]}";
/// Up to here texts are joined. A longer one is not copied for it.
const BLOCK_BYTES: usize = 8 * 1024;

/// The conversation as it goes over the wire, kept from request to request.
#[derive(Default)]
pub struct Wire {
    head: String,
    /// The texts of the first messages, joined by commas.
    blocks: Vec<String>,
    /// How many messages these are.
    settled: usize,
    /// The messages behind them.
    fragments: Vec<Fragment>,
}

/// One message's JSON text. `mark_at` is where a cache mark may be spliced in.
struct Fragment {
    text: String,
    mark_at: Option<usize>,
    role: Role,
    parts: usize,
}

impl Fragment {
    fn new(settings: &Settings, message: &Message) -> Fragment {
        let vendor_returns = message.origin.as_deref() == Some(&settings.origin());
        let (text, mark_at) = match settings.api {
            Api::OpenAi => openai::message(settings, message, vendor_returns),
            Api::Anthropic => anthropic::message(settings, message, vendor_returns),
        };
        // It stays, and was made piece by piece, so that it is larger than its text. `shrink_to_fit` would leave a hole
        // behind each message that nothing fills.
        let text = text.as_str().to_owned();
        Fragment { text, mark_at, role: message.role, parts: message.parts.len() }
    }
}

impl Wire {
    /// An empty conversation under these settings.
    pub fn new(settings: &Settings) -> Wire {
        let head = match settings.api {
            Api::OpenAi => openai::head(settings),
            Api::Anthropic => anthropic::head(settings),
        };
        Wire { head, ..Wire::default() }
    }

    /// Renders what was added to the conversation since the last call. Only the last message can
    /// have grown; all others are kept as they are.
    pub fn update(&mut self, settings: &Settings, messages: &[Message]) {
        let known = self.settled + self.fragments.len();
        if let Some(last) = self.fragments.last()
            && last.parts != messages[known - 1].parts.len()
        {
            self.fragments.pop();
        }
        for message in &messages[self.settled + self.fragments.len()..] {
            self.fragments.push(Fragment::new(settings, message));
        }
        self.settle(settings);
    }

    /// Renders all messages anew, of which the first have changed or gone: what was cut to save room is cut seldom and
    /// much at a time.
    pub fn renew(&mut self, settings: &Settings, messages: &[Message]) {
        let head = std::mem::take(&mut self.head);
        *self = Wire { head, ..Wire::default() };
        self.update(settings, messages);
    }

    /// Joins what can neither grow nor carry a mark any more.
    fn settle(&mut self, settings: &Settings) {
        let last = self.fragments.len().saturating_sub(1);
        // The last message may lose its mark as it grows. Then the two before it carry one.
        let end = match takes_marks(settings) {
            true => self.markable().nth(2).unwrap_or(0),
            false => last,
        };
        for fragment in self.fragments.drain(..end) {
            self.settled += 1;
            match self.blocks.last_mut() {
                _ if fragment.text.is_empty() => {}
                Some(block) if block.len() + fragment.text.len() < BLOCK_BYTES => {
                    block.push(',');
                    block.push_str(&fragment.text);
                }
                _ => self.blocks.push(fragment.text),
            }
        }
    }

    /// How many bytes stand before the messages.
    pub fn head_length(&self) -> usize {
        self.head.len()
    }

    /// The request body, in slices that are sent one after another.
    pub fn body(&self, settings: &Settings) -> Vec<&[u8]> {
        let mut slices: Vec<&[u8]> = Vec::with_capacity(2 * self.blocks.len() + 4 * self.fragments.len() + 2);
        slices.push(self.head.as_bytes());
        let marked = self.marked(settings);
        // A head that ends with the system message needs a comma before what follows.
        let mut comma = !self.head.ends_with('[');
        let blocks = self.blocks.iter().map(|block| (block, None));
        let fragments = self.fragments.iter().enumerate().map(|(index, fragment)| {
            (&fragment.text, fragment.mark_at.filter(|_| marked.contains(&Some(index))))
        });
        for (text, mark_at) in blocks.chain(fragments).filter(|(text, _)| !text.is_empty()) {
            if comma {
                slices.push(b",");
            }
            comma = true;
            match mark_at {
                Some(at) => {
                    slices.push(&text.as_bytes()[..at]);
                    slices.push(MARK.as_bytes());
                    slices.push(&text.as_bytes()[at..]);
                }
                None => slices.push(text.as_bytes()),
            }
        }
        slices.push(TAIL.as_bytes());
        slices
    }

    /// The last two user messages carry a mark: the newer one writes what the next request reads,
    /// the older one is where the request before wrote, however many blocks lie between.
    fn marked(&self, settings: &Settings) -> [Option<usize>; 2] {
        if !takes_marks(settings) {
            return [None, None];
        }
        let mut users = self.markable();
        [users.next(), users.next()]
    }

    /// The messages that could carry a mark, newest first.
    fn markable(&self) -> impl Iterator<Item = usize> {
        let fragments = self.fragments.iter().enumerate().rev();
        fragments
            .filter(|(_, fragment)| fragment.role == Role::User && fragment.mark_at.is_some())
            .map(|(index, _)| index)
    }
}

fn takes_marks(settings: &Settings) -> bool {
    let has_them = settings.api == Api::Anthropic || settings.claude_through_openrouter();
    has_them && settings.learnt.fewer_marks < 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{CallResult, Conversation, Image, Part};
    use crate::provider::{Host, finish_call};

    fn result(id: &str, text: &str) -> CallResult {
        CallResult { call_id: id.to_owned(), text: text.to_owned(), images: Vec::new(), is_error: false }
    }

    /// A turn: the model reads something, and the user has something to add in each third.
    fn add_turn(conversation: &mut Conversation, settings: &Settings, turn: usize) {
        let id = format!("call_{turn}");
        let call = finish_call(id.clone(), "Read", r#"{"file_path":"a"}"#, None);
        conversation.add_reply(vec![Part::Call(call)], &settings.origin());
        let images = vec![Image::new("image/png", b"\x89PNG"); turn % 2];
        let text = "x".repeat(if turn.is_multiple_of(7) { 10_000 } else { 50 });
        conversation.add_result(CallResult { images, ..result(&id, &text) });
        if turn.is_multiple_of(3) {
            conversation.add_user("and this");
        }
    }

    /// The settings of servers with marks, with marks on texts alone, and without any.
    fn all_settings() -> [Settings; 3] {
        [(Api::Anthropic, Host::Anthropic), (Api::OpenAi, Host::OpenRouter), (Api::OpenAi, Host::Other)].map(
            |(api, host)| {
                let mut settings = anthropic::tests::settings();
                (settings.api, settings.host) = (api, host);
                settings.model = "anthropic/claude".to_owned();
                settings
            },
        )
    }

    #[test]
    fn a_request_is_the_texts_of_its_messages_however_they_came() {
        for settings in all_settings() {
            let mut conversation = Conversation::default();
            conversation.add_user("first");
            let mut wire = Wire::new(&settings);
            for turn in 0..60 {
                wire.update(&settings, conversation.messages());
                let fragments: Vec<Fragment> =
                    conversation.messages().iter().map(|message| Fragment::new(&settings, message)).collect();
                let alone = Wire { fragments, ..Wire::new(&settings) };
                let (kept, expected) = (wire.body(&settings).concat(), alone.body(&settings).concat());
                assert!(kept == expected, "turn {turn}: {}", String::from_utf8_lossy(&kept));
                add_turn(&mut conversation, &settings, turn);
                if turn.is_multiple_of(4) {
                    wire.update(&settings, conversation.messages());
                    conversation.add_user(vec![Part::Image(Image::new("image/png", b"\x89PNG"))]);
                }
            }
            assert!(wire.settled > 100, "{}", wire.settled);
        }
    }

    #[test]
    fn a_long_request_is_no_more_slices_than_its_bytes_are_worth() {
        for settings in all_settings() {
            let mut conversation = Conversation::default();
            conversation.add_user("first");
            let mut wire = Wire::new(&settings);
            for turn in 0..500 {
                let id = format!("call_{turn}");
                let call = finish_call(id.clone(), "Read", "{}", None);
                conversation.add_reply(vec![Part::Call(call)], &settings.origin());
                conversation.add_result(result(&id, "small"));
                wire.update(&settings, conversation.messages());
            }
            let body = wire.body(&settings);
            let bytes: usize = body.iter().map(|slice| slice.len()).sum();
            assert!(body.len() < 20 + bytes / 2000, "{} slices for {bytes} bytes", body.len());
        }
    }

    #[test]
    fn a_text_that_is_kept_is_not_made_again() {
        for settings in all_settings() {
            let mut conversation = Conversation::default();
            conversation.add_user("x".repeat(20_000).as_str());
            let mut wire = Wire::new(&settings);
            wire.update(&settings, conversation.messages());
            let first = wire.fragments[0].text.as_ptr();
            for turn in 0..9 {
                add_turn(&mut conversation, &settings, turn);
                wire.update(&settings, conversation.messages());
            }
            assert_eq!(wire.blocks[0].as_ptr(), first);
        }
    }

    #[test]
    fn what_was_cut_is_rendered_as_if_it_had_always_been_so() {
        for settings in all_settings() {
            let mut conversation = Conversation::default();
            conversation.add_user("first");
            (0..9).for_each(|turn| add_turn(&mut conversation, &settings, turn));
            let mut wire = Wire::new(&settings);
            wire.update(&settings, conversation.messages());
            let fresh = |conversation: &Conversation| {
                let mut wire = Wire::new(&settings);
                wire.update(&settings, conversation.messages());
                wire.body(&settings).concat()
            };
            conversation.cut_results(&["call_0", "call_7"].into());
            wire.renew(&settings, conversation.messages());
            assert!(wire.body(&settings).concat() == fresh(&conversation));
            conversation.begin_with(vec![Part::Text("summary".to_owned())], 2).unwrap();
            wire.renew(&settings, conversation.messages());
            assert!(wire.body(&settings).concat() == fresh(&conversation));
        }
    }
}
