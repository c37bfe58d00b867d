//! The only writer of standard output and standard error.
//!
//! Standard output carries the answer (or its JSON) and nothing else; all that is said about the run goes
//! to standard error. On a terminal, control characters of the model's are made visible.

use std::io::{self, IsTerminal, Write};

use serde_json::{Map, Value};

use crate::args::{Args, OutputFormat};
use crate::config::{Secret, hide};
use crate::conversation::CallResult;
use crate::error::Error;
use crate::provider::Stop;
use crate::provider::shown::Growing;
use crate::uuid;

mod answer_file;
mod events;
mod partial;
mod stdout;
mod summary;
mod whole;

use answer_file::AnswerFile;
pub use events::{Retry, Said, Start};
use partial::Partial;
pub use stdout::stdout_error;
use stdout::{Stdout, write_stdout};
pub use summary::Summary;

/// Both streams, and what is known of them.
pub struct Output {
    format: OutputFormat,
    file: Option<AnswerFile>,
    /// Whether a conversation within the run's is going on, and the call that has begun it.
    is_apart: bool,
    parent_call: Option<String>,
    /// Whether the answer is shown only when it is whole.
    holds_text: bool,
    verbose: bool,
    quiet: bool,
    color: bool,
    secrets: Vec<Secret>,
    stdout_terminal: bool,
    stderr_terminal: bool,
    /// What stands on the terminal of the reply in progress.
    shown: String,
    /// How long the text was of which that is the beginning, line ends at its end included.
    seen: usize,
    /// Whether the line of what is shown goes on.
    in_line: bool,
    /// Whether the waiting indicator stands on the terminal.
    waiting: bool,
    /// Whether events tell a reply while it grows.
    tells_growth: bool,
    /// The reply in progress, as far as events have told it.
    partial: Option<Partial>,
    /// The run's id, once a turn has begun.
    session_id: String,
    /// Whether the turn's result has been printed: there is one for each.
    is_reported: bool,
}

impl Output {
    /// The streams before anything is known of the run.
    pub fn new() -> Output {
        Output {
            format: OutputFormat::Text,
            file: None,
            is_apart: false,
            parent_call: None,
            holds_text: false,
            verbose: false,
            quiet: false,
            color: false,
            secrets: Vec::new(),
            stdout_terminal: io::stdout().is_terminal(),
            stderr_terminal: io::stderr().is_terminal(),
            shown: String::new(),
            seen: 0,
            in_line: false,
            waiting: false,
            tells_growth: false,
            partial: None,
            session_id: String::new(),
            is_reported: false,
        }
    }

    /// Sets the form of what is reported from now on.
    pub fn set_format(&mut self, format: OutputFormat) {
        self.format = format;
    }

    /// Takes the flags that concern output.
    ///
    /// # Errors
    ///
    /// `Usage` if `-o` names a place where no file can be.
    pub fn configure(&mut self, args: &Args) -> Result<(), Error> {
        self.format = args.output_format;
        self.holds_text = args.json_schema.is_some();
        // Scripts written for `claude` have to ask for it beside stream-json, whose events tell all of it, and many
        // keep both streams in one file of JSON lines.
        self.verbose = args.verbose && args.output_format != OutputFormat::StreamJson;
        self.quiet = args.quiet;
        self.tells_growth = args.partial_messages;
        if let Some(file) = &args.output {
            self.file = Some(AnswerFile::new(file)?);
        }
        Ok(())
    }

    /// Allows colour on a terminal.
    pub fn allow_color(&mut self, allowed: bool) {
        self.color = allowed;
    }

    /// Keeps these texts out of all that is said about the run: a server may quote the key that it refuses.
    pub fn keep_secret(&mut self, secrets: Vec<Secret>) {
        self.secrets = secrets;
    }

    /// What follows is said in a conversation within the run's, which this call has begun if one has: no text of it
    /// is shown as an answer.
    pub fn begin_apart(&mut self, call_id: Option<&str>) {
        self.is_apart = true;
        self.parent_call = call_id.map(str::to_owned);
    }

    /// The conversation within has ended.
    pub fn end_apart(&mut self) {
        self.is_apart = false;
        self.parent_call = None;
    }

    /// Whether an answer's text is shown while it grows.
    pub fn streams_text(&self) -> bool {
        self.stdout_terminal
            && self.file.is_none()
            && self.format == OutputFormat::Text
            && !self.holds_text
            && !self.is_apart
    }

    /// Shows what is new of a growing text. Line ends at its end wait for what follows them: at the end of
    /// an answer there is exactly one.
    pub fn show(&mut self, text: &str) -> Result<(), Error> {
        if !self.streams_text() {
            return Ok(());
        }
        // Many of them may come one by one: what is known of the end is not looked at again.
        let is_end = |rest: &str| rest.bytes().all(|byte| matches!(byte, b'\n' | b'\r'));
        let known = std::mem::replace(&mut self.seen, text.len());
        if known > self.shown.len() && text.get(known..).is_some_and(is_end) {
            return Ok(());
        }
        let text = text.trim_end_matches(['\n', '\r']);
        let fresh = match rest_of(text, &self.shown) {
            Some(fresh) => fresh,
            // What was shown was thinking, which only its end tells at times: the answer begins here.
            None => {
                self.end_shown()?;
                text
            }
        };
        if fresh.is_empty() {
            return Ok(());
        }
        self.clear_waiting();
        self.shown.push_str(fresh);
        self.in_line = true;
        write_stdout(visible(fresh).as_bytes(), false)
    }

    /// Ends the line of a text that was shown, before something else is.
    pub fn end_shown(&mut self) -> Result<(), Error> {
        self.shown.clear();
        self.seen = 0;
        self.end_line()
    }

    /// Ends the line of a text that was shown and may go on.
    fn end_line(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.in_line) {
            true => write_stdout(b"\n", false),
            false => Ok(()),
        }
    }

    /// Says that what was shown of a reply is void.
    pub fn attempt_broke(&mut self) -> Result<(), Error> {
        if !self.shown.is_empty() {
            self.end_shown()?;
            self.line("the reply broke off; what follows is a new one");
        }
        Ok(())
    }

    /// Shows that the model is being waited for, until something else is shown.
    pub fn waiting(&mut self) {
        if self.stderr_terminal && !self.quiet && !self.verbose {
            self.raw("… waiting for the model");
            self.waiting = true;
        }
    }

    fn clear_waiting(&mut self) {
        if std::mem::take(&mut self.waiting) {
            self.raw("\r\x1b[K");
        }
    }

    /// One line about a call: on a terminal, or with `--verbose`.
    pub fn call(&mut self, name: &str, subject: impl FnOnce() -> String) {
        if self.verbose || (self.stderr_terminal && !self.quiet) {
            let subject = one_line(&crate::provider::excerpt(&hide(subject(), &self.secrets)));
            let name = one_line(&crate::provider::excerpt(name));
            match self.stderr_terminal && self.color {
                true => self.line_as_is(&format!("\x1b[2m{name} {subject}\x1b[0m")),
                false => self.line_as_is(&format!("{name} {subject}")),
            }
        }
    }

    /// Whether lines are told that `--verbose` asks for.
    pub fn tells_details(&self) -> bool {
        self.verbose
    }

    /// A line that `--verbose` asks for.
    pub fn detail(&mut self, text: &str) {
        if self.verbose {
            self.line(text);
        }
    }

    /// A line that `--quiet` leaves out.
    pub fn warn(&mut self, text: &str) {
        if !self.quiet {
            self.line(text);
        }
    }

    /// A line about a call that was denied; the JSON formats say it in their own way. One that says what another has
    /// said already is for `--verbose`.
    pub fn denied(&mut self, text: &str, is_new: bool) {
        match self.format {
            OutputFormat::Text if is_new => self.warn(text),
            _ => self.detail(text),
        }
    }

    /// A line that is always shown.
    pub fn notice(&mut self, text: &str) {
        self.line(text);
    }

    fn line(&mut self, text: &str) {
        const LIMIT: usize = 4000;
        let text = hide(text, &self.secrets);
        // A further line is set in, so that no text of a model or server can pass for a line of ours.
        let mut line: String = visible(&text).replace('\n', "\n  ").chars().take(LIMIT).collect();
        if text.chars().nth(LIMIT).is_some() {
            line.push('…');
        }
        self.line_as_is(&format!("cotter: {line}"));
    }

    fn line_as_is(&mut self, line: &str) {
        self.clear_waiting();
        if self.stderr_terminal {
            // Both are one screen. Where that cannot be written, the text that follows says so.
            let _ = self.end_line();
        }
        self.raw(&format!("{line}\n"));
    }

    fn raw(&self, text: &str) {
        // Nobody is left to be told that standard error cannot be written.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Prints a text that is no answer: help, a schema, a request body.
    pub fn print(&mut self, text: &str) -> Result<(), Error> {
        self.clear_waiting();
        match &self.file {
            Some(file) => file.write(text.as_bytes()),
            None => write_stdout(text.as_bytes(), true),
        }
    }

    /// Stands before what a person types, at the beginning of a line.
    pub fn sign(&mut self, sign: &str) -> Result<(), Error> {
        self.clear_waiting();
        self.end_line()?;
        write_stdout(sign.as_bytes(), true)
    }

    /// Repeats a message of the client's, if there is one to be repeated.
    pub fn repeat(&mut self, mut message: Map<String, Value>, session_id: &str) -> Result<(), Error> {
        if message.is_empty() {
            return Ok(());
        }
        message.insert("session_id".to_owned(), Value::from(session_id));
        message.insert("isReplay".to_owned(), Value::from(true));
        print_line(&Value::Object(message))
    }

    /// Prints raw bytes of a single step.
    pub fn raw_bytes(&mut self) -> impl Write {
        self.clear_waiting();
        Stdout
    }

    /// Whether a turn has begun.
    pub fn has_begun(&self) -> bool {
        !self.session_id.is_empty()
    }

    /// A turn of the user's begins: in stream-json, the event that says what it begins with.
    pub fn turn_begins(&mut self, start: &Start) -> Result<(), Error> {
        self.is_reported = false;
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        start.session_id.clone_into(&mut self.session_id);
        let event = events::init(start, &uuid::random());
        self.write_line(&event, Progress::Going)
    }

    /// An attempt at a reply begins; whatever an earlier one has said is void.
    pub fn reply_begins(&mut self, model: &str) {
        self.partial = self.tells_growth.then(|| Partial::new(message_id(), model));
    }

    /// Whether events tell a reply while it grows.
    pub fn tells_growth(&self) -> bool {
        self.partial.is_some()
    }

    /// The number of the last block of the growing reply that events have told: those before it are done with.
    pub fn told_to(&self) -> u64 {
        self.partial.as_ref().map_or(0, Partial::told_to)
    }

    /// Tells what is new of a growing reply, and whether the number of the last block told has risen: then those
    /// behind it may be told too. A call whose id `is_taken` gets another in the conversation.
    pub fn grows(
        &mut self,
        growing: &[(u64, Growing)],
        is_taken: impl Fn(&str) -> bool,
    ) -> Result<bool, Error> {
        let Some(partial) = &mut self.partial else { return Ok(false) };
        let before = partial.told_to();
        let events = partial.grow(growing, is_taken);
        let has_risen = partial.told_to() > before;
        for event in events {
            self.event(events::stream_event(event), Progress::Going)?;
        }
        Ok(has_risen)
    }

    /// A reply is whole and in the conversation.
    pub fn replied(&mut self, said: &Said) -> Result<(), Error> {
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        // A reader that leaves now does so behind the answer.
        let progress = match (said.stop, said.stop.word(said.parts)) {
            (Stop::Finished, "end_turn") if self.parent_call.is_none() => Progress::Answered,
            _ => Progress::Going,
        };
        let id = match self.partial.take() {
            Some(mut partial) => {
                for event in partial.finish(said) {
                    self.event(events::stream_event(event), progress)?;
                }
                partial.message_id().to_owned()
            }
            None => message_id(),
        };
        events::assistant(said, &id).into_iter().try_for_each(|event| self.event(event, progress))
    }

    /// A call has its result.
    pub fn result(&mut self, result: &CallResult) -> Result<(), Error> {
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        let text = hide(&result.text, &self.secrets);
        self.event(events::user(&CallResult { text, ..result.clone() }), Progress::Going)
    }

    /// The beginning of the conversation was summarised: from about so many tokens to so many.
    pub fn compacted(&mut self, before: u64, after: u64) -> Result<(), Error> {
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        self.event(events::compact_boundary(before, after), Progress::Going)
    }

    /// The request is made again after a wait.
    pub fn retrying(&mut self, retry: &Retry) -> Result<(), Error> {
        self.attempt_broke()?;
        let Retry { error, attempt, most, wait, .. } = retry;
        self.warn(&format!("{error}: asking again in {:.1} s ({attempt} of {most})", wait.as_secs_f64()));
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        self.event(events::retry(retry), Progress::Going)
    }

    /// Prints the finished answer.
    pub fn answer(&mut self, summary: &Summary) -> Result<(), Error> {
        self.clear_waiting();
        if !self.shown.is_empty() {
            return self.end_shown();
        }
        let text = match self.format {
            OutputFormat::Text => {
                let text = summary.text.trim_end_matches(['\n', '\r']);
                match self.stdout_terminal && self.file.is_none() {
                    true => format!("{}\n", visible(text)),
                    false => format!("{text}\n"),
                }
            }
            OutputFormat::Json | OutputFormat::StreamJson => self.result_line(summary, None),
        };
        if let Some(file) = &self.file {
            file.write(text.as_bytes()).or_else(|error| {
                // The answer is not lost with its file. In JSON, the report of the failure carries it.
                if self.format == OutputFormat::Text {
                    write_stdout(text.as_bytes(), true)?;
                }
                Err(error)
            })?;
        }
        self.is_reported = true;
        // The events of a run end with its result, wherever else that goes.
        match self.file.is_some() && self.format != OutputFormat::StreamJson {
            true => Ok(()),
            false => write_stdout(text.as_bytes(), true),
        }
    }

    /// Reports how a run failed: on standard error, and in the JSON formats as the turn's result too.
    pub fn failure(&mut self, error: &Error, summary: &Summary) {
        // A reader that has gone is a quiet end.
        if let Error::ClosedOutput { .. } = error {
            return;
        }
        let _ = self.end_shown();
        let message = hide(error.to_string(), &self.secrets);
        // Whoever interrupts knows.
        if !matches!(error, Error::Interrupted(_)) {
            self.line(&message);
        }
        if self.format == OutputFormat::Text || std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        // The result is never lost: what cannot go into the file goes to standard output.
        match self.print_failure(error, &message, summary) {
            Ok(()) | Err(Error::ClosedOutput { .. }) => {}
            // Where standard output is what failed, it fails again in the same way.
            Err(second) if second.to_string() == error.to_string() => {}
            Err(second) => self.line(&second.to_string()),
        }
    }

    fn print_failure(&mut self, error: &Error, message: &str, summary: &Summary) -> Result<(), Error> {
        if self.has_begun()
            && let Some(event) = events::api_failure(error, summary.api_error_status, message, &message_id())
        {
            self.event(event, Progress::Going)?;
        }
        let text = self.result_line(summary, Some((error, message)));
        let in_file = self.file.as_ref().is_some_and(|file| file.write(text.as_bytes()).is_ok());
        match in_file && self.format != OutputFormat::StreamJson {
            true => Ok(()),
            false => write_stdout(text.as_bytes(), false),
        }
    }

    fn result_line(&self, summary: &Summary, error: Option<(&Error, &str)>) -> String {
        let mut result = events::result(summary, error);
        result["uuid"] = Value::from(uuid::random());
        format!("{result}\n")
    }

    /// Prints an event with the run's id and its own.
    fn event(&mut self, mut event: Value, progress: Progress) -> Result<(), Error> {
        if let (Some(id), Some(parent)) = (&self.parent_call, event.get_mut("parent_tool_use_id")) {
            *parent = Value::from(id.as_str());
        }
        event["session_id"] = Value::from(self.session_id.as_str());
        event["uuid"] = Value::from(uuid::random());
        self.write_line(&event, progress)
    }

    fn write_line(&mut self, event: &Value, progress: Progress) -> Result<(), Error> {
        self.clear_waiting();
        write_stdout(format!("{event}\n").as_bytes(), matches!(progress, Progress::Answered))
    }
}

/// How far a turn is, for a reader that leaves.
#[derive(Clone, Copy)]
enum Progress {
    /// The answer is not there yet.
    Going,
    /// It is.
    Answered,
}

/// What follows in a text that has grown; none where it is another one. Both ends of what is known are compared, not
/// all of it: with each of many small pieces, that would take a long reply minutes.
fn rest_of<'a>(text: &'a str, known: &str) -> Option<&'a str> {
    const MOST: usize = 4096;
    let (begins, rest) = text.as_bytes().split_at_checked(known.len())?;
    let (known, most) = (known.as_bytes(), known.len().min(MOST));
    let ends_alike = begins[known.len() - most..] == known[known.len() - most..];
    match begins[..most] == known[..most] && ends_alike {
        true => text.get(text.len() - rest.len()..),
        false => None,
    }
}

/// A name for a message, as the Messages API makes them.
fn message_id() -> String {
    format!("msg_{}", uuid::random().replace('-', ""))
}

/// One line of JSON that belongs to no turn, such as an answer to a client, whole and at once.
pub fn print_line(value: &Value) -> Result<(), Error> {
    write_stdout(format!("{value}\n").as_bytes(), false)
}

/// An error of a process that has nobody above it to report to.
pub fn complain(text: &str) {
    let _ = io::stderr().write_all(format!("cotter: {}\n", visible(text)).as_bytes());
}

/// A flag's tags: two letters of a country, three of its part at most, and the end.
const MOST_FLAG_TAGS: usize = 6;

/// The text with control characters, those that turn the reading direction and those that cannot be seen made visible:
/// on a terminal they could hide or fake what is shown.
fn visible(text: &str) -> String {
    // Tags spell which part of a country a black flag is of; anywhere else they could spell anything unseen.
    let mut tags_left = 0;
    text.chars()
        .map(|character| match character {
            '\u{1f3f4}' => {
                tags_left = MOST_FLAG_TAGS;
                character
            }
            '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}' | '\u{e007f}' if tags_left > 0 => {
                tags_left -= 1;
                character
            }
            _ => {
                tags_left = 0;
                visible_character(character)
            }
        })
        .collect()
}

fn visible_character(character: char) -> char {
    match character {
        '\n' | '\t' => character,
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        '\u{61c}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
        // Letters without width or shape make two names look alike. Joiners stay: scripts and emoji need them.
        '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{180e}' | '\u{ad}' => '\u{fffd}',
        '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}' => '\u{fffd}',
        _ => character,
    }
}

/// The same on one line.
fn one_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_text_is_what_follows_what_is_known_of_it() {
        for (text, known, rest) in [
            ("", "", Some("")),
            ("abc", "", Some("abc")),
            ("abc", "ab", Some("c")),
            ("abc", "abc", Some("")),
            ("abc", "abd", None),
            ("ab", "abc", None),
            ("\u{e9}", "\u{e8}", None),
            ("\u{e9}b", "\u{e9}", Some("b")),
        ] {
            assert_eq!(rest_of(text, known), rest, "{text} {known}");
        }
        let long = "x".repeat(10_000);
        assert_eq!(rest_of(&format!("{long}y"), &long), Some("y"));
        assert_eq!(rest_of(&format!("{long}y"), &format!("a{long}")), None);
        assert_eq!(rest_of(&format!("{long}y"), &format!("{}a", &long[1..])), None);
    }

    #[test]
    fn control_characters_are_made_visible_on_a_terminal() {
        assert_eq!(
            visible("a\x1b[31mb\r\n\tc\u{202e}d\u{9b}e"),
            "a\u{241b}[31mb\u{240d}\n\tc\u{fffd}d\u{fffd}e"
        );
        let invisible = "a\u{200b}b\u{2060}c\u{feff}d\u{ad}e\u{2028}f\u{e0041}g\u{180e}h";
        let shown = "a?b?c?d?e?f?g?h".replace('?', "\u{fffd}");
        assert_eq!(visible(invisible), shown);
        let joined = "\u{1f468}\u{200d}\u{1f33e} \u{645}\u{6cc}\u{200c}\u{62e}";
        assert_eq!(visible(joined), joined);
        let scotland = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}";
        assert_eq!(visible(scotland), scotland);
        // What follows a flag is not hidden behind it.
        assert_eq!(visible(&format!("{scotland}\u{e0061}")), format!("{scotland}\u{fffd}"));
        assert_eq!(visible("\u{1f3f4}a\u{e0061}"), "\u{1f3f4}a\u{fffd}");
    }
}
