//! Standard input as a client's letters, one JSON object a line: messages of the user's, in order, and the
//! control protocol, whose requests are answered as soon as they are seen.
//!
//! The only reader of standard input in that mode. Whoever waits for something else waits for this too and lets
//! it take what has come; what that means for the turn in progress is told by a flag and a list of changes,
//! which the agent looks at where it is safe to. It never waits itself.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::output;
use crate::sandbox::process::readable;

pub mod letters;
mod requests;

use letters::Letter;
pub use letters::Message;
pub use requests::{Change, Desk};
use requests::{Effect, Granted};

/// The most that is held of what has come and was not worked on yet.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// The letters of a client. It is shared by all who wait; nothing of it is held while something is waited for.
#[derive(Debug)]
pub struct Mailbox(Mutex<State>);

/// What the client wants to be told beside events and answers.
#[derive(Debug, Default, Clone, Copy)]
pub struct Wishes {
    /// Each message again, when its turn begins (`--replay-user-messages`).
    pub echo: bool,
    /// Whether a turn is in progress or none is owed: by that the SDK knows when it may end our input.
    pub states: bool,
}

#[derive(Debug)]
struct State {
    desk: Desk,
    wishes: Wishes,
    /// The state that was told last.
    told: Option<&'static str>,
    /// What has come of a line that goes on.
    begun: Vec<u8>,
    /// How many lines were read.
    lines: u64,
    /// Whether more may come.
    is_open: bool,
    /// Whether anything has ever come.
    is_used: bool,
    letters: VecDeque<Held>,
    /// The bytes of the lines among them, and the most that these and the line begun may have together.
    held_bytes: usize,
    most_bytes: usize,
    is_in_turn: bool,
    is_interrupted: bool,
    changes: Vec<Change>,
    /// The request of ours that waits for its answer, and that.
    asked: Option<(String, Option<Result<Value, String>>)>,
    /// How many requests of ours there were.
    count: u64,
    /// Why nothing can be said to the client any more.
    failure: Option<Error>,
}

#[derive(Debug)]
struct Held {
    mail: Mail,
    bytes: usize,
}

/// What the next turn is about.
#[derive(Debug)]
pub enum Mail {
    /// A message of the user's.
    Message(Message),
    /// A line that cannot be understood, with which reading ends: what is wrong with it.
    Broken(String),
}

impl Mailbox {
    /// A mailbox that nothing has come to yet.
    pub fn new(desk: Desk, wishes: Wishes) -> Mailbox {
        Mailbox(Mutex::new(State::new(desk, wishes, MOST_BYTES)))
    }

    /// What to wait for, as long as more may come.
    pub fn source(&self) -> Option<BorrowedFd<'static>> {
        self.state().is_open.then(rustix::stdio::stdin)
    }

    /// Takes what has come, which has to be something or the end, and answers the requests in it.
    pub fn take(&self) {
        let mut state = self.state();
        let mut chunk = vec![0; 64 * 1024];
        let answers = match rustix::io::read(rustix::stdio::stdin(), &mut chunk) {
            Ok(0) => state.end(),
            Ok(count) => state.feed(&chunk[..count]),
            Err(Errno::INTR | Errno::AGAIN) => Vec::new(),
            Err(error) => state.end_with(format!("cannot read standard input: {error}")),
        };
        for answer in answers {
            state.say(&answer);
        }
    }

    /// Takes what has come, if anything has.
    pub fn look(&self) {
        if let Some(source) = self.source()
            && readable(source, Duration::ZERO)
        {
            self.take();
        }
    }

    /// Whether anything has ever come.
    pub fn is_used(&self) -> bool {
        self.state().is_used
    }

    /// Begins the turn of the next letter, if one has come.
    pub fn open(&self) -> Option<Mail> {
        let mut state = self.state();
        let held = state.letters.pop_front();
        state.tell(held.as_ref().map_or("idle", |_| "running"));
        let held = held?;
        state.held_bytes -= held.bytes;
        state.is_in_turn = true;
        Some(held.mail)
    }

    /// Takes note that the turn in progress is to end.
    pub fn interrupt(&self) {
        self.state().is_interrupted = true;
    }

    /// Tells what the client is told at the start: the model, and the commands that it may send.
    pub fn introduce(&self, model: &str, commands: Vec<Value>) {
        self.state().desk.introduce(model, commands);
    }

    /// Whether the turn in progress is to end. That it was asked for holds until the turn is over.
    pub fn is_interrupted(&self) -> bool {
        let state = self.state();
        state.is_interrupted || state.failure.is_some()
    }

    /// Ends the turn in progress.
    ///
    /// # Errors
    ///
    /// Why nothing more can be said to the client.
    pub fn end_turn(&self) -> Result<(), Error> {
        let mut state = self.state();
        (state.is_in_turn, state.is_interrupted) = (false, false);
        state.failure.take().map_or(Ok(()), Err)
    }

    /// Has something changed where that is safe.
    pub fn change(&self, change: Change) {
        self.state().changes.push(change);
    }

    /// What is to be changed since this was asked for the last time.
    pub fn changes(&self) -> Vec<Change> {
        std::mem::take(&mut self.state().changes)
    }

    /// Asks the client for something; [`Mailbox::answer`] has what it says.
    pub fn ask(&self, request: &Value) {
        let mut state = self.state();
        state.count += 1;
        let id = format!("cotter-{}", state.count);
        state.say(&json!({"type": "control_request", "request_id": id, "request": request}));
        state.asked = Some((id, None));
    }

    /// What the client says to the request of ours, once it has: what was asked for, or why there is nothing.
    pub fn answer(&self) -> Option<Result<Value, String>> {
        let mut state = self.state();
        let is_open = state.is_open;
        let answer = state.asked.as_mut().and_then(|(_, answer)| answer.take());
        let answer = answer.or_else(|| (!is_open).then(|| Err("standard input has ended".to_owned())));
        if answer.is_some() {
            state.asked = None;
        }
        answer
    }

    /// Tells the client that its answer is not waited for any longer.
    pub fn give_up(&self) {
        let mut state = self.state();
        if let Some((id, _)) = state.asked.take() {
            state.say(&json!({"type": "control_cancel_request", "request_id": id}));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(desk: Desk, wishes: Wishes, most_bytes: usize) -> State {
        State {
            desk,
            wishes,
            told: None,
            begun: Vec::new(),
            lines: 0,
            is_open: true,
            is_used: false,
            letters: VecDeque::new(),
            held_bytes: 0,
            most_bytes,
            is_in_turn: false,
            is_interrupted: false,
            changes: Vec::new(),
            asked: None,
            count: 0,
            failure: None,
        }
    }

    /// Takes these bytes in and gives the answers to what is whole now.
    fn feed(&mut self, bytes: &[u8]) -> Vec<Value> {
        self.is_used = true;
        let mut answers = Vec::new();
        let mut rest = bytes;
        while let Some(length) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, behind) = rest.split_at(length);
            rest = &behind[1..];
            answers.extend(self.read_end_of_line(line));
            if !self.is_open {
                return answers;
            }
        }
        self.begun.extend_from_slice(rest);
        if self.begun.len() + self.held_bytes > self.most_bytes {
            self.break_off(format!("more than {} bytes wait to be worked on", self.most_bytes));
        }
        answers
    }

    /// There is no more: a last line may lack its end.
    fn end(&mut self) -> Vec<Value> {
        let answers = self.read_end_of_line(b"").into_iter().collect();
        self.is_open = false;
        answers
    }

    fn end_with(&mut self, why: String) -> Vec<Value> {
        self.letters.push_back(Held { mail: Mail::Broken(why), bytes: 0 });
        self.is_open = false;
        Vec::new()
    }

    fn read_end_of_line(&mut self, end: &[u8]) -> Option<Value> {
        self.lines += 1;
        let mut line = std::mem::take(&mut self.begun);
        let line = match line.is_empty() {
            true => end,
            false => {
                line.extend_from_slice(end);
                &line
            }
        };
        let line = match self.lines {
            1 => line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line),
            _ => line,
        };
        match letters::read(line) {
            Ok(letter) => self.take_in(letter, line.len()),
            Err(why) => {
                self.break_off(why);
                None
            }
        }
    }

    /// What comes behind a line that is not understood cannot be trusted to mean what it says.
    fn break_off(&mut self, why: String) {
        let line = self.lines.max(1) + u64::from(!self.begun.is_empty());
        self.begun = Vec::new();
        let mail = Mail::Broken(format!("line {line} of standard input cannot be used: {why}"));
        self.letters.push_back(Held { mail, bytes: 0 });
        self.is_open = false;
    }

    /// Keeps a message, or does what another letter says; gives the answer to a request.
    fn take_in(&mut self, letter: Letter, bytes: usize) -> Option<Value> {
        match letter {
            Letter::Nothing => None,
            Letter::Message(mut message) => {
                if !self.wishes.echo {
                    message.object = Map::new();
                }
                self.held_bytes += bytes;
                self.letters.push_back(Held { mail: Mail::Message(message), bytes });
                None
            }
            Letter::Answer { id, answer } => {
                if let Some((asked, received)) = &mut self.asked
                    && *asked == id
                {
                    *received = Some(answer);
                }
                None
            }
            Letter::Request { id, request } => Some(match self.desk.handle(&request) {
                Ok(Granted { answer, effect }) => {
                    match effect {
                        Effect::Changes(changes) => self.changes.extend(changes),
                        // A message that was not begun on is what is meant by what is said behind it.
                        Effect::Interrupt => {
                            self.is_interrupted |= self.is_in_turn || !self.letters.is_empty();
                        }
                    }
                    control_response(&json!({"subtype": "success", "request_id": id, "response": answer}))
                }
                Err(why) => control_response(&json!({"subtype": "error", "request_id": id, "error": why})),
            }),
        }
    }

    fn tell(&mut self, now: &'static str) {
        if self.wishes.states && self.told.replace(now) != Some(now) {
            self.say(&json!({
                "type": "system", "subtype": "session_state_changed", "state": now, "sdk_host_only": true,
            }));
        }
    }

    fn say(&mut self, line: &Value) {
        if self.failure.is_none() {
            self.failure = output::print_line(line).err();
        }
    }
}

fn control_response(response: &Value) -> Value {
    json!({"type": "control_response", "response": response})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Part;

    fn mailbox() -> State {
        State::new(Desk::default(), Wishes::default(), 1000)
    }

    fn message(text: &str) -> String {
        format!("{}\n", json!({"type": "user", "message": {"role": "user", "content": text}}))
    }

    fn request(id: &str, request: Value) -> String {
        format!("{}\n", json!({"type": "control_request", "request_id": id, "request": request}))
    }

    /// The texts of the messages that wait, and what is wrong with what is broken.
    fn letters(state: &State) -> Vec<String> {
        let text = |held: &Held| match &held.mail {
            Mail::Message(message) => match message.parts.as_deref() {
                Ok([Part::Text(text)]) => text.clone(),
                other => panic!("{other:?}"),
            },
            Mail::Broken(why) => why.clone(),
        };
        state.letters.iter().map(text).collect()
    }

    #[test]
    fn letters_are_the_same_however_they_arrive() {
        let mut all = "\u{feff}".to_owned() + &message("ein\u{e9}s") + "\r\n\n" + &message("two");
        all.push_str(&request("1", json!({"subtype": "mcp_status"})));
        all.push_str(message("three").trim_end());
        for size in [1, 7, 64, all.len()] {
            let mut state = mailbox();
            let mut answers = Vec::new();
            for piece in all.as_bytes().chunks(size) {
                answers.extend(state.feed(piece));
            }
            answers.extend(state.end());
            assert_eq!(letters(&state), ["ein\u{e9}s", "two", "three"], "{size}");
            let response = json!({"subtype": "success", "request_id": "1", "response": {"mcpServers": []}});
            assert_eq!(answers, [json!({"type": "control_response", "response": response})]);
            assert!(!state.is_open);
        }
    }

    #[test]
    fn a_line_that_is_not_understood_ends_the_reading_behind_what_came_before_it() {
        let mut state = mailbox();
        state.feed(format!("{}oops\n{}", message("one"), message("two")).as_bytes());
        let why = "line 2 of standard input cannot be used: it is not JSON: oops";
        assert_eq!(letters(&state), ["one", why]);
        assert!(!state.is_open);
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut state = mailbox();
        state.feed(message(&"x".repeat(500)).as_bytes());
        state.feed(&[b'y'; 400]);
        assert!(state.is_open);
        state.feed(&[b'y'; 100]);
        let why = "line 2 of standard input cannot be used: more than 1000 bytes wait to be worked on";
        assert_eq!(letters(&state)[1..], [why]);
        assert_eq!((state.begun.len(), state.is_open), (0, false));
    }

    #[test]
    fn an_interruption_is_of_the_turn_in_progress_or_of_the_message_before_it() {
        let interrupt = request("1", json!({"subtype": "interrupt"}));
        let mut state = mailbox();
        state.feed(interrupt.as_bytes());
        assert!(!state.is_interrupted);
        state.feed(message("one").as_bytes());
        state.feed(interrupt.as_bytes());
        assert!(state.is_interrupted);
        let mailbox = Mailbox(Mutex::new(state));
        assert!(matches!(mailbox.open(), Some(Mail::Message(_))));
        assert!(mailbox.is_interrupted());
        mailbox.end_turn().unwrap();
        assert!(!mailbox.is_interrupted());
    }

    #[test]
    fn an_answer_is_taken_for_the_request_that_waits_for_one() {
        let mut state = mailbox();
        state.asked = Some(("cotter-2".to_owned(), None));
        for (id, behavior) in [("cotter-1", "deny"), ("cotter-2", "allow")] {
            let response =
                json!({"subtype": "success", "request_id": id, "response": {"behavior": behavior}});
            state.feed(format!("{}\n", control_response(&response)).as_bytes());
        }
        let mailbox = Mailbox(Mutex::new(state));
        assert_eq!(mailbox.answer(), Some(Ok(json!({"behavior": "allow"}))));
        assert_eq!(mailbox.answer(), None);
        mailbox.0.lock().unwrap().end();
        assert_eq!(mailbox.answer(), Some(Err("standard input has ended".to_owned())));
    }
}
