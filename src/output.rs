//! The only writer of standard output and standard error.
//!
//! Standard output carries the answer (or its JSON) and nothing else; all that is said about the run goes
//! to standard error. On a terminal, control characters of the model's are made visible.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Access, access};
use serde_json::{Value, json};

use crate::args::{Args, OutputFormat};
use crate::config::{Secret, hide};
use crate::error::Error;
use crate::provider::Usage;
use crate::tools::toolbox::Denied;

/// How a run ended, for the JSON formats.
#[derive(Default)]
pub struct Summary {
    /// The answer, or what there was of it.
    pub text: String,
    /// What the answer says, where it fits a schema.
    pub structured_output: Option<Value>,
    /// How many replies the model gave.
    pub turns: u32,
    /// The tokens of all requests.
    pub usage: Usage,
    /// How long the run took.
    pub duration_ms: u128,
    /// The run's id, a random UUID.
    pub session_id: String,
    /// The calls that were not allowed to run.
    pub denied: Vec<Denied>,
}

/// Both streams, and what is known of them.
pub struct Output {
    format: OutputFormat,
    file: Option<AnswerFile>,
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
    /// Whether the line of what is shown goes on.
    in_line: bool,
    /// Whether the waiting indicator stands on the terminal.
    waiting: bool,
}

impl Output {
    /// The streams before anything is known of the run.
    pub fn new() -> Output {
        Output {
            format: OutputFormat::Text,
            file: None,
            holds_text: false,
            verbose: false,
            quiet: false,
            color: false,
            secrets: Vec::new(),
            stdout_terminal: io::stdout().is_terminal(),
            stderr_terminal: io::stderr().is_terminal(),
            shown: String::new(),
            in_line: false,
            waiting: false,
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
        self.verbose = args.verbose;
        self.quiet = args.quiet;
        if let Some(file) = &args.output {
            let folder = folder_of(file);
            if !folder.is_dir() {
                return Err(Error::Usage(format!(
                    "-o \"{}\": there is no folder \"{}\"",
                    file.display(),
                    folder.display()
                )));
            }
            let refuse = |why: &str| Err(Error::Usage(format!("-o \"{}\": {why}", file.display())));
            if file.is_dir() || file.as_os_str().as_bytes().ends_with(b"/") {
                return refuse("it is a folder");
            }
            let target = real_target(file);
            // An answer that has nowhere to go is found out before it is paid for.
            if let Err(error) = may_be_written(file, target.as_deref()) {
                return refuse(&error.to_string());
            }
            self.file = Some(AnswerFile { path: file.clone(), target });
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

    /// Whether an answer's text is shown while it grows.
    pub fn streams_text(&self) -> bool {
        self.stdout_terminal && self.file.is_none() && self.format == OutputFormat::Text && !self.holds_text
    }

    /// Shows what is new of a growing text. Line ends at its end wait for what follows them: at the end of
    /// an answer there is exactly one.
    pub fn show(&mut self, text: &str) -> Result<(), Error> {
        if !self.streams_text() {
            return Ok(());
        }
        let text = text.trim_end_matches(['\n', '\r']);
        let fresh = match text.strip_prefix(self.shown.as_str()) {
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
    pub fn call(&mut self, name: &str, subject: &str) {
        if self.verbose || (self.stderr_terminal && !self.quiet) {
            let subject = one_line(&crate::provider::excerpt(&hide(subject, &self.secrets)));
            let name = one_line(&crate::provider::excerpt(name));
            match self.stderr_terminal && self.color {
                true => self.line_as_is(&format!("\x1b[2m{name} {subject}\x1b[0m")),
                false => self.line_as_is(&format!("{name} {subject}")),
            }
        }
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
            Some(file) => write_file(file, text.as_bytes()),
            None => write_stdout(text.as_bytes(), true),
        }
    }

    /// Prints raw bytes of a single step.
    pub fn raw_bytes(&mut self) -> impl Write {
        self.clear_waiting();
        Stdout
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
            OutputFormat::Json | OutputFormat::StreamJson => format!("{}\n", result(summary, None)),
        };
        let Some(file) = &self.file else { return write_stdout(text.as_bytes(), true) };
        write_file(file, text.as_bytes()).or_else(|error| {
            // The answer is not lost with its file. In JSON, the report of the failure carries it.
            if self.format == OutputFormat::Text {
                write_stdout(text.as_bytes(), true)?;
            }
            Err(error)
        })
    }

    /// Reports how a run failed: on standard error, and in the JSON formats as the result too.
    pub fn failure(&mut self, error: &Error, summary: &Summary) {
        // A reader that has gone is a quiet end.
        if let Error::ClosedOutput { .. } = error {
            return;
        }
        let _ = self.end_shown();
        let message = hide(&error.to_string(), &self.secrets);
        self.line(&message);
        if self.format != OutputFormat::Text {
            let text = format!("{}\n", result(summary, Some((error, &message))));
            let in_file = self.file.as_ref().is_some_and(|file| write_file(file, text.as_bytes()).is_ok());
            // The result is never lost: what cannot go into the file goes to standard output.
            match if in_file { Ok(()) } else { write_stdout(text.as_bytes(), false) } {
                Ok(()) | Err(Error::ClosedOutput { .. }) => {}
                // Where standard output is what failed, it fails again in the same way.
                Err(second) if second.to_string() == error.to_string() => {}
                Err(second) => self.line(&second.to_string()),
            }
        }
    }
}

/// The terminal result object, with the member names that `claude` uses.
fn result(summary: &Summary, error: Option<(&Error, &str)>) -> Value {
    let usage = summary.usage;
    let mut value = json!({
        "type": "result",
        "subtype": match error {
            None => "success",
            Some((Error::Turns(_), _)) => "error_max_turns",
            Some((Error::Unfit(_), _)) => "error_max_structured_output_retries",
            Some(_) => "error_during_execution",
        },
        "is_error": error.is_some(),
        "duration_ms": u64::try_from(summary.duration_ms).unwrap_or(u64::MAX),
        "num_turns": summary.turns,
        "result": summary.text,
        "session_id": summary.session_id,
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": usage.output,
        },
        "permission_denials": summary.denied.iter().map(denial).collect::<Vec<_>>(),
    });
    if let Some(answer) = &summary.structured_output {
        value["structured_output"] = answer.clone();
    }
    if let Some((error, message)) = error {
        value["error"] = json!({
            "class": error.class(), "code": error.exit_code(), "message": message,
        });
    }
    value
}

/// A denied call, with the member names that `claude` uses.
fn denial(denied: &Denied) -> Value {
    json!({"tool_name": denied.tool, "tool_use_id": denied.call_id, "tool_input": denied.input})
}

/// Standard output, written to without a buffer. The standard library's own takes a descriptor that cannot
/// be written for one that swallows everything, and gives up where a pipe that does not block is full.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stdout = rustix::stdio::stdout();
        loop {
            match rustix::io::write(stdout, bytes) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let mut waited = [PollFd::from_borrowed_fd(stdout, PollFlags::OUT)];
                    match poll(&mut waited, None) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to standard output and sees that it arrives.
fn write_stdout(bytes: &[u8], answered: bool) -> Result<(), Error> {
    Stdout.write_all(bytes).map_err(|error| stdout_error(&error, answered))
}

/// An error of a process that has nobody above it to report to.
pub fn complain(text: &str) {
    let _ = io::stderr().write_all(format!("cotter: {}\n", visible(text)).as_bytes());
}

/// What a failed write to standard output means.
pub fn stdout_error(error: &io::Error, answered: bool) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Error::ClosedOutput { answered },
        _ => Error::Internal(format!("cannot write standard output: {error}")),
    }
}

/// The file whole or not at all: beside it first, then in its place. What is no regular file (a FIFO, a
/// device) is written as it is, and so is what a descriptor leads to: replacing the file behind
/// `/dev/stdout` would take it from whoever opened it.
/// The file that `-o` names.
struct AnswerFile {
    path: PathBuf,
    /// Where that really lay at the start. Nothing contains cotter, so a tool that makes a symbolic link of
    /// the file, or of a folder above it, must not choose where the answer goes.
    target: Option<PathBuf>,
}

/// Whether the answer can go there, as far as that can be told without touching anything.
fn may_be_written(path: &Path, target: Option<&Path>) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        // Nobody can make a file among these.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_descriptor(path) => {
            let folder = folder_of(target.unwrap_or(path));
            Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// Whether a path leads to what is open already, or to the like.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|place| path.starts_with(place))
}

/// Where a file lies that may not be there yet. None if that cannot be told.
fn real_target(path: &Path) -> Option<PathBuf> {
    let followed = crate::tools::write::follow_links(path).ok()?;
    std::path::absolute(followed).ok().map(|path| crate::sandbox::paths::real(&path))
}

/// Tools have ended by now.
fn write_file(file: &AnswerFile, bytes: &[u8]) -> Result<(), Error> {
    let path = &file.path;
    let failed = |error: io::Error| Error::Internal(format!("cannot write \"{}\": {error}", path.display()));
    let is_descriptor = is_descriptor(path);
    if !is_descriptor && real_target(path) != file.target {
        return Err(failed(io::Error::other("it has come to lead elsewhere during the run")));
    }
    let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    match is_descriptor || special {
        true => fs::OpenOptions::new()
            .append(true)
            .open(path)
            .and_then(|mut file| file.write_all(bytes))
            .map_err(failed),
        false => crate::tools::write::replace_file(path, bytes).map(drop).map_err(failed),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// The text with control characters, and those that turn the reading direction, made visible: on a
/// terminal they could hide or fake what is shown.
fn visible(text: &str) -> String {
    text.chars()
        .map(|character| match character {
            '\n' | '\t' => character,
            '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + character as u32).unwrap_or('\u{fffd}'),
            '\u{7f}' => '\u{2421}',
            '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
            '\u{61c}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
            _ => character,
        })
        .collect()
}

/// The same on one line.
fn one_line(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_made_visible_on_a_terminal() {
        assert_eq!(
            visible("a\x1b[31mb\r\n\tc\u{202e}d\u{9b}e"),
            "a\u{241b}[31mb\u{240d}\n\tc\u{fffd}d\u{fffd}e"
        );
    }
}
