//! Several turns of one conversation in one process: with a client that writes letters, or with a person at a
//! terminal.
//!
//! Each turn has its own result. One that fails is reported and the next one goes on, unless nothing can follow;
//! the exit code is that of the first that failed. A turn that the client interrupted is no failure.

use std::time::Duration;

use crate::agent::Agent;
use crate::alarm::{Alarm, Ring};
use crate::conversation::{Part, Parts};
use crate::error::Error;
use crate::input::Prompt;
use crate::mailbox::{Mail, Mailbox, Message};
use crate::output::Output;
use crate::skills::opening::{self, Opening};
use crate::terminal::{Line, Lines};

/// What is said to the model of a turn that was interrupted, before what the user says next.
const INTERRUPTED: &str = "[Request interrupted by user]";

/// The commands of `claude`'s own that people type, rather than skills.
const FOREIGN: [&str; 20] = [
    "agents",
    "clear",
    "compact",
    "config",
    "context",
    "cost",
    "doctor",
    "help",
    "hooks",
    "init",
    "login",
    "logout",
    "mcp",
    "memory",
    "model",
    "permissions",
    "resume",
    "rewind",
    "status",
    "usage",
];

/// A conversation that goes on.
pub struct Dialogue<'a> {
    agent: &'a mut Agent,
    output: &'a mut Output,
    /// The exit code of the first turn that failed.
    code: Option<u8>,
}

impl Dialogue<'_> {
    /// A conversation that nothing was said in by this process.
    pub fn new<'a>(agent: &'a mut Agent, output: &'a mut Output) -> Dialogue<'a> {
        Dialogue { agent, output, code: None }
    }

    /// Answers a client's messages until there are no more; gives the exit code.
    ///
    /// # Errors
    ///
    /// A line that is not understood, and what nothing can follow.
    pub fn with_client(mut self) -> Result<u8, Error> {
        let alarm = self.agent.alarm().clone();
        let Some(mailbox) = alarm.client() else { return Ok(0) };
        while let Some(mail) = self.next_mail(mailbox, &alarm)? {
            let ended = match mail {
                Mail::Message(Message { parts: Ok(parts), object }) => {
                    self.output.repeat(object, self.agent.session_id()).and_then(|()| self.message(parts))
                }
                Mail::Message(Message { parts: Err(why), .. }) | Mail::Broken(why) => {
                    self.agent.begin_turn(self.output).and_then(|()| self.fail(Error::Usage(why)))
                }
            };
            mailbox.end_turn().and(ended)?;
        }
        Ok(self.code.unwrap_or_default())
    }

    /// Waits for the next letter that is a turn; none if there are no more.
    fn next_mail(&mut self, mailbox: &Mailbox, alarm: &Alarm) -> Result<Option<Mail>, Error> {
        const PATIENCE: Duration = Duration::from_secs(1);
        // A client that has begun to speak may take its time.
        let mut patience = (!mailbox.is_used()).then_some(PATIENCE);
        // What has come by now is seen before the client is told that nothing is owed.
        mailbox.look();
        loop {
            if let Some(mail) = mailbox.open() {
                return Ok(Some(mail));
            }
            if mailbox.source().is_none() {
                return Ok(None);
            }
            let waited = alarm.wait_for(None, patience);
            waited.map_err(|error| Error::Internal(format!("cannot wait for standard input: {error}")))?;
            match alarm.rung() {
                Some(Ring::Interrupted) => mailbox.end_turn()?,
                Some(ring) => return Err(ring.error()),
                None if patience.is_some() && !mailbox.is_used() && mailbox.source().is_some() => {
                    self.output.notice(
                        "waiting for messages on standard input, one JSON object a line (--input-format stream-json)",
                    );
                    patience = None;
                }
                None => patience = None,
            }
        }
    }

    /// Answers a person line by line until there are no more; gives the exit code. What is given is the first turn.
    ///
    /// # Errors
    ///
    /// What nothing can follow.
    pub fn with_person(mut self, first: Option<Prompt>) -> Result<u8, Error> {
        let mut lines = Lines::default();
        let mut next = first;
        self.greet();
        loop {
            if let Some(prompt) = next.take() {
                match self.foreign_command(&prompt.text) {
                    Some(line) => self.output.notice(&line),
                    None => self.opened(prompt)?,
                }
            }
            match lines.next(self.agent.alarm(), self.output)? {
                Line::Said(text) => next = Some(Prompt { typed_bytes: text.len(), text }),
                Line::End => break,
            }
        }
        let summary = self.agent.summary();
        if summary.is_kept {
            self.output.warn(&format!("cotter -r {} goes on with it", summary.session_id));
        }
        Ok(self.code.unwrap_or_default())
    }

    /// Says who is there, and what is gone on with.
    fn greet(&mut self) {
        let version = env!("CARGO_PKG_VERSION");
        let model = self.agent.model();
        self.output.warn(&format!("version {version}, {model}; /exit or Ctrl-D ends the session"));
        if let Some(words) = self.agent.first_words() {
            let id = self.agent.session_id();
            self.output.warn(&format!("going on with {id}: \"{words}\""));
        }
    }

    /// What there is to say of a line that is one of `claude`'s own commands, and no skill.
    fn foreign_command(&self, line: &str) -> Option<String> {
        let name = line.split_whitespace().next()?.strip_prefix('/')?;
        let is_foreign = FOREIGN.contains(&name) && self.agent.skills().named(name).is_none();
        is_foreign.then(|| {
            format!("/{name} is a command of claude's and not here: /exit ends the session, and cotter --help tells the flags")
        })
    }

    /// A message of the client's: one that is a text is read as what is typed.
    fn message(&mut self, mut parts: Vec<Part>) -> Result<(), Error> {
        match parts.as_mut_slice() {
            [Part::Text(text)] => {
                let text = std::mem::take(text);
                self.opened(Prompt { typed_bytes: text.len(), text })
            }
            _ => self.turn(Parts(parts).into()),
        }
    }

    /// A turn with the skills and images that its prompt names.
    fn opened(&mut self, prompt: Prompt) -> Result<(), Error> {
        match opening::read(prompt, self.agent.skills(), self.agent.workspace(), self.output) {
            Ok(opening) => self.turn(opening),
            Err(error) => self.agent.begin_turn(self.output).and_then(|()| self.fail(error)),
        }
    }

    /// One turn, with its result. Errors: nothing can follow.
    fn turn(&mut self, prompt: Opening) -> Result<(), Error> {
        let ended = self.agent.run(prompt, self.output).and_then(|()| self.agent.save());
        match ended {
            Ok(()) => self.output.answer(&self.agent.summary()),
            Err(error) => self.fail(error),
        }
    }

    /// Ends a turn that came to nothing. Errors: nothing can follow.
    fn fail(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Internal(_) | Error::ClosedOutput { .. } => Err(error),
            Error::Interrupted(_) => {
                self.agent.note(INTERRUPTED);
                self.output.failure(&error, &self.agent.summary());
                Ok(())
            }
            error => {
                self.report(&error);
                Ok(())
            }
        }
    }

    fn report(&mut self, error: &Error) {
        self.code.get_or_insert(error.exit_code());
        self.output.failure(error, &self.agent.summary());
    }
}
