//! The neutral transcript: messages made of parts, whatever API they came from or go to.
//!
//! Two invariants are kept here. Every call has exactly one result, in the message right after it, before
//! the conversation is sent again. Every call's id is unique in the whole conversation. Vendor data that
//! must return unchanged is carried as the text received; this file never looks inside it.

use std::collections::{HashSet, VecDeque};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub mod cuts;
mod reading;
mod writing;

pub use reading::Reading;
use writing::line;
pub use writing::{push_member, push_text};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, and the results of calls.
    User,
    /// The model.
    Assistant,
}

/// A tool call that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Unique in the conversation; the result names it.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The text of a JSON object, as received; `{}` where what came cannot be sent back.
    pub arguments: String,
    /// Why this call must not run, as its result will say; absent for a sound call.
    pub refusal: Option<String>,
    /// Further members of the vendor's call object that must come back, as JSON member text.
    pub extra: Option<String>,
}

/// A picture, as both APIs take it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// One of [`Image::MEDIA_TYPES`].
    pub media_type: String,
    /// The file's bytes in base64.
    pub data: String,
}

impl Image {
    /// What both APIs take.
    const MEDIA_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
    /// The most characters of base64 that one image may have: Anthropic's limit, the smallest there is.
    pub const MOST_CHARACTERS: usize = 5 << 20;

    /// An image of a file's bytes.
    pub fn new(media_type: &str, bytes: &[u8]) -> Image {
        Image { media_type: media_type.to_owned(), data: STANDARD.encode(bytes) }
    }

    /// The members that hold it, as JSON.
    pub fn to_json(&self) -> Value {
        json!({"media_type": self.media_type, "data": self.data})
    }

    /// Reads an image from its JSON, from wherever that comes.
    ///
    /// # Errors
    ///
    /// What is wrong with it: no API would take it.
    pub fn from_json(value: &Value) -> Result<Image, &'static str> {
        let (Some(media_type), Some(data)) = (value["media_type"].as_str(), value["data"].as_str()) else {
            return Err("it lacks a media type or data");
        };
        if !Image::MEDIA_TYPES.contains(&media_type) {
            return Err("it is no PNG, JPEG, GIF or WebP");
        }
        if data.is_empty() || data.len() > Image::MOST_CHARACTERS {
            return Err("it is empty or larger than 5 MiB in base64");
        }
        match STANDARD.decode(data) {
            Ok(_) => Ok(Image { media_type: media_type.to_owned(), data: data.to_owned() }),
            Err(_) => Err("its data is not base64"),
        }
    }
}

/// What is sent back for one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// The id of the call that this answers.
    pub call_id: String,
    /// What the model reads.
    pub text: String,
    /// What the model sees, after the text.
    pub images: Vec<Image>,
    /// Whether the text says why the call failed.
    pub is_error: bool,
}

/// One piece of a message, in the order received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text of the user or the model.
    Text(String),
    /// A picture that the user shows.
    Image(Image),
    /// A call by the model.
    Call(Call),
    /// The result of a call.
    Result(CallResult),
    /// Data that only the vendor who sent it understands, as the JSON text received.
    Vendor(String),
}

/// The parts of a message, made from a string, a list of parts or the results of calls.
pub struct Parts(pub Vec<Part>);

impl From<&str> for Parts {
    fn from(text: &str) -> Parts {
        Parts(vec![Part::Text(text.to_owned())])
    }
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Parts {
        Parts(parts)
    }
}

impl From<Vec<CallResult>> for Parts {
    fn from(results: Vec<CallResult>) -> Parts {
        Parts(results.into_iter().map(Part::Result).collect())
    }
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// Which API and model made an assistant message: vendor data goes back only to where it came from.
    pub origin: Option<String>,
}

impl Message {
    /// The text of the message: its text parts, joined by line breaks.
    pub fn text(&self) -> String {
        texts(&self.parts).join("\n")
    }

    /// The calls of the message, in order.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// Whether one of these parts is a call.
pub fn holds_call(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Call(_)))
}

/// The texts among these parts, in order.
pub fn texts(parts: &[Part]) -> Vec<&str> {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// What the user says between the replies of two models: one went on with what the other paused, or what stood
/// between them in a session file was lost.
const GO_ON: &str = "(go on)";

/// The whole conversation.
#[derive(Debug, Default)]
pub struct Conversation {
    messages: Vec<Message>,
    ids: HashSet<String>,
    /// The last message that was handed out as a line, and how many of its parts were.
    handed_out: (usize, usize),
    /// The calls of the last reply that have no result yet. They are kept apart since a reply may hold thousands.
    open: VecDeque<String>,
    /// The number in the last id that was made here: no lower one is tried again.
    last_number: usize,
}

impl Conversation {
    /// The messages so far, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Adds what the user says. Where the user spoke last, it joins that message: many servers
    /// insist on alternating roles.
    pub fn add_user(&mut self, content: impl Into<Parts>) {
        let parts = content.into().0;
        match self.messages.last_mut() {
            Some(last) if last.role == Role::User => last.parts.extend(parts),
            _ => self.messages.push(Message { role: Role::User, parts, origin: None }),
        }
    }

    /// Adds the model's reply and gives back its calls. Where the model spoke last, because the reply was
    /// paused, it joins that message. A missing or repeated id is replaced: some servers send none,
    /// others start anew at `call_0` in each reply. The replacement is counted, not random, so that
    /// equal work gives equal bytes. Where another model spoke last, the user is taken to have said so.
    pub fn add_reply(&mut self, content: impl Into<Parts>, origin: &str) -> Vec<Call> {
        self.push_reply(content.into().0, Some(origin.to_owned()))
    }

    fn push_reply(&mut self, mut parts: Vec<Part>, origin: Option<String>) -> Vec<Call> {
        let mut calls = Vec::new();
        for part in &mut parts {
            if let Part::Call(call) = part {
                if call.id.is_empty() || self.ids.contains(&call.id) {
                    call.id = self.unused_id();
                }
                self.ids.insert(call.id.clone());
                self.open.push_back(call.id.clone());
                calls.push(call.clone());
            }
        }
        // It stays to the end of the run, and was made piece by piece.
        parts.shrink_to_fit();
        match self.messages.last_mut() {
            Some(last) if last.role == Role::Assistant && last.origin == origin => {
                last.parts.extend(parts);
                return calls;
            }
            // Vendor data keeps two models' replies apart, and many servers insist on alternating roles.
            Some(last) if last.role == Role::Assistant => self.add_user(GO_ON),
            _ => {}
        }
        self.messages.push(Message { role: Role::Assistant, parts, origin });
        calls
    }

    /// Adds the results of the last reply's calls: one for each, in order.
    pub fn add_results(&mut self, results: Vec<CallResult>) {
        results.into_iter().for_each(|result| self.add_result(result));
        assert_eq!(self.open.front(), None, "each call is answered exactly once, in order");
    }

    /// Adds the result of the first call of the last reply that has none yet.
    pub fn add_result(&mut self, mut result: CallResult) {
        let open = self.open.pop_front();
        assert_eq!(open.as_ref(), Some(&result.call_id), "each call is answered exactly once, in order");
        // Of its own size, in memory of its own. What was made piece by piece is larger, and cut down it would leave a
        // hole behind each result that nothing fills.
        result.text = result.text.as_str().to_owned();
        self.add_user(vec![result]);
    }

    /// Has all images looked at, in order: where there is an error, they are left out, and a text says why.
    pub fn check_images(&mut self, mut check: impl FnMut(&[Image]) -> Result<(), &'static str>) {
        for part in self.messages.iter_mut().flat_map(|message| &mut message.parts) {
            match part {
                Part::Image(image) => {
                    if let Err(why) = check(std::slice::from_ref(image)) {
                        *part = Part::Text(format!("[image {why}]"));
                    }
                }
                Part::Result(result) => {
                    if let Err(why) = check(&result.images) {
                        result.images.clear();
                        result.text = format!("{} [{why}]", result.text);
                    }
                }
                Part::Text(_) | Part::Call(_) | Part::Vendor(_) => {}
            }
        }
    }

    /// What was said since the last call of this function, as lines of JSON without their ends. A
    /// user message that has grown gives a line with what is new; reading joins the two again.
    pub fn new_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let (mut index, mut known) = self.handed_out;
        while let Some(message) = self.messages.get(index) {
            let fresh = &message.parts[known..];
            if !fresh.is_empty() {
                lines.push(line(message.role, fresh, message.origin.as_deref()));
            }
            self.handed_out = (index, message.parts.len());
            (index, known) = (index + 1, 0);
        }
        lines
    }

    /// Whether a call has this id already.
    pub fn has_call(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// The last parts of the last message, so many of them.
    pub fn last_parts(&self, count: usize) -> &[Part] {
        let parts = self.messages.last().map_or(&[][..], |message| &message.parts);
        &parts[parts.len().saturating_sub(count)..]
    }

    fn unused_id(&mut self) -> String {
        // Where all were made here, as many numbers are taken as there are ids. What was passed over once is not looked
        // at again.
        let mut number = self.ids.len().max(self.last_number) + 1;
        loop {
            let id = format!("call_{number}");
            if !self.ids.contains(&id) {
                self.last_number = number;
                return id;
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Call {
        Call {
            id: id.to_owned(),
            name: "Read".to_owned(),
            arguments: "{}".to_owned(),
            refusal: None,
            extra: None,
        }
    }

    fn result(id: &str) -> CallResult {
        CallResult { call_id: id.to_owned(), text: "x".to_owned(), images: Vec::new(), is_error: false }
    }

    #[test]
    fn a_reply_that_goes_on_joins_the_message_that_was_paused() {
        let mut conversation = Conversation::default();
        conversation.add_user("hello");
        assert_eq!(conversation.add_reply(vec![Part::Text("one".into())], "test"), []);
        assert_eq!(conversation.new_lines().len(), 2);
        let calls = conversation.add_reply(vec![Part::Call(call("a"))], "test");
        assert_eq!(calls, [call("a")]);
        conversation.add_results(vec![result("a")]);
        assert_eq!(conversation.messages().len(), 3);
        assert_eq!(conversation.messages()[1].parts, [Part::Text("one".into()), Part::Call(call("a"))]);
        let lines = conversation.new_lines();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with(r#"{"type":"assistant","parts":[{"type":"call","id":"a""#), "{lines:?}");
    }

    /// They were two messages of the model's in a row, which strict servers refuse.
    #[test]
    fn between_the_replies_of_two_models_the_user_speaks() {
        let mut conversation = Conversation::default();
        conversation.add_user("hello");
        conversation.add_reply(vec![Part::Text("one".into())], "test");
        conversation.add_reply(vec![Part::Text("two".into())], "other");
        let roles: Vec<Role> = conversation.messages().iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
        assert_eq!(conversation.messages()[2].parts, [Part::Text("(go on)".into())]);
        let lines = conversation.new_lines();
        let mut reading = Reading::default();
        lines.iter().for_each(|line| reading.line(line.as_bytes()));
        let (read, left_out) = reading.finish();
        assert_eq!((read.messages(), &left_out[..]), (conversation.messages(), &[][..]));
    }

    #[test]
    fn a_message_is_made_from_a_string_a_list_of_parts_or_results() {
        let mut conversation = Conversation::default();
        conversation.add_user("hello");
        conversation.add_reply(vec![Part::Text("one".into()), Part::Call(call("a"))], "test");
        conversation.add_results(vec![result("a")]);
        let roles: Vec<Role> = conversation.messages().iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
        assert_eq!(conversation.messages()[2].parts, [Part::Result(result("a"))]);
    }

    #[test]
    fn the_text_of_several_blocks_is_joined_and_calls_are_left_out() {
        let mut conversation = Conversation::default();
        let parts = vec![
            Part::Vendor("{}".into()),
            Part::Text("one".into()),
            Part::Call(call("a")),
            Part::Text("two".into()),
        ];
        conversation.add_reply(parts, "test");
        assert_eq!(conversation.messages()[0].text(), "one\ntwo");
    }

    #[test]
    fn repeated_and_missing_ids_are_replaced_by_counted_ones() {
        let mut conversation = Conversation::default();
        let first = conversation.add_reply(vec![Part::Call(call("call_0"))], "test");
        conversation.add_results(vec![result("call_0")]);
        let second = conversation
            .add_reply(vec![Part::Call(call("call_0")), Part::Call(call("")), Part::Call(call("x"))], "test");
        assert_eq!(first[0].id, "call_0");
        let ids: Vec<&str> = second.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["call_2", "call_3", "x"]);
    }

    #[test]
    fn the_user_speaking_twice_is_one_message() {
        let mut conversation = Conversation::default();
        conversation.add_user("one");
        conversation.add_user("two");
        assert_eq!(conversation.messages().len(), 1);
        assert_eq!(conversation.messages()[0].text(), "one\ntwo");
    }

    #[test]
    #[should_panic(expected = "each call is answered exactly once")]
    fn an_unanswered_call_is_a_defect() {
        let mut conversation = Conversation::default();
        conversation.add_reply(vec![Part::Call(call("a")), Part::Call(call("b"))], "test");
        conversation.add_results(vec![result("a")]);
    }

    #[test]
    fn what_is_new_is_handed_out_once_as_lines_of_json() {
        let mut conversation = Conversation::default();
        conversation.add_user("hi");
        assert_eq!(conversation.new_lines(), [r#"{"type":"user","parts":[{"type":"text","text":"hi"}]}"#]);
        let parts = vec![
            Part::Vendor("{\"type\":\"thinking\"}".into()),
            Part::Text("two\nlines".into()),
            Part::Call(call("a")),
        ];
        conversation.add_reply(parts, "anthropic m");
        conversation.add_results(vec![result("a")]);
        assert_eq!(
            conversation.new_lines(),
            [
                concat!(
                    r#"{"type":"assistant","parts":[{"type":"vendor","json":"{\"type\":\"thinking\"}"},"#,
                    r#"{"type":"text","text":"two\nlines"},"#,
                    r#"{"type":"call","id":"a","name":"Read","arguments":"{}"}],"origin":"anthropic m"}"#
                ),
                r#"{"type":"user","parts":[{"type":"result","call_id":"a","text":"x","is_error":false}]}"#,
            ]
        );
        conversation.add_user("more");
        assert_eq!(conversation.new_lines(), [r#"{"type":"user","parts":[{"type":"text","text":"more"}]}"#]);
        assert_eq!(conversation.new_lines(), [] as [&str; 0]);
    }

    #[test]
    fn images_of_results_are_handed_out_with_them() {
        let mut conversation = Conversation::default();
        conversation.add_user("look");
        conversation.add_reply(vec![Part::Call(call("a"))], "test");
        let image = Image::new("image/png", b"\x89PNG");
        assert_eq!(image.data, "iVBORw==");
        conversation
            .add_results(vec![CallResult { images: vec![image.clone(), image.clone()], ..result("a") }]);
        let one = r#"{"media_type":"image/png","data":"iVBORw=="}"#;
        let expected = format!(
            r#"{{"type":"user","parts":[{{"type":"result","call_id":"a","text":"x","is_error":false,"images":[{one},{one}]}}]}}"#
        );
        assert_eq!(conversation.new_lines()[2], expected);
        assert_eq!(Image::from_json(&serde_json::from_str(one).unwrap()), Ok(image));
    }

    #[test]
    fn images_that_are_too_many_are_left_out_with_the_reason() {
        let image = Image::new("image/png", b"\x89PNG");
        let mut conversation = Conversation::default();
        conversation.add_user(vec![Part::Image(image.clone()), Part::Image(image.clone())]);
        conversation.add_reply(vec![Part::Call(call("a")), Part::Call(call("b"))], "test");
        let shows = |id| CallResult { images: vec![image.clone()], ..result(id) };
        conversation.add_results(vec![shows("a"), shows("b")]);
        let mut seen = 0;
        conversation.check_images(|images| {
            seen += images.len();
            if seen % 2 == 0 { Err("not shown: too many") } else { Ok(()) }
        });
        let left_out = Part::Text("[image not shown: too many]".to_owned());
        assert_eq!(conversation.messages()[0].parts, [Part::Image(image.clone()), left_out]);
        let without = CallResult { text: "x [not shown: too many]".to_owned(), ..result("b") };
        assert_eq!(conversation.messages()[2].parts, [Part::Result(shows("a")), Part::Result(without)]);
    }

    #[test]
    fn an_image_that_no_api_would_take_is_refused() {
        let image = |media_type: &str, data: &str| {
            Image::from_json(&json!({"media_type": media_type, "data": data})).map(|image| image.data.len())
        };
        let most = "A".repeat(Image::MOST_CHARACTERS);
        assert_eq!(image("image/webp", &most), Ok(most.len()));
        assert_eq!(
            image("image/webp", &format!("{most}AAAA")),
            Err("it is empty or larger than 5 MiB in base64")
        );
        assert_eq!(image("image/webp", ""), Err("it is empty or larger than 5 MiB in base64"));
        assert_eq!(image("image/svg+xml", "AAAA"), Err("it is no PNG, JPEG, GIF or WebP"));
        for data in ["AAA", "AA\n==", "A\"}]", "====", "AA-_"] {
            assert_eq!(image("image/png", data), Err("its data is not base64"), "{data}");
        }
        assert_eq!(Image::from_json(&json!(["image/png"])), Err("it lacks a media type or data"));
    }
}
