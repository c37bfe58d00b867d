//! Runs a program that is a tool, in the worker: its arguments are on its standard input, its result is what it
//! prints.
//!
//! The program is a stranger. What is kept of its output is bounded, nothing is waited for beyond its time,
//! and what is no result is told as text.

use std::fs::{self, File};
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::background::Background;
use super::command::{self, Ending};
use super::executables::MAX_DESCRIPTION_BYTES;
use super::opening::{self, Kind};
use super::truncate::HeadTail;
use super::{Outcome, blocks};
use crate::sandbox::descendants::{self, Kept};
use crate::sandbox::process::{self, Watched};

/// How much of the beginning and as much of the end of a text is kept.
const HALF_OUTPUT_BYTES: usize = 15_000;
/// The longest output that is looked into for blocks: a few images.
const MAX_BLOCKS_BYTES: usize = 16 * 1024 * 1024;

/// What is run, and where.
pub struct Program<'a> {
    /// The absolute path of the file.
    pub file: &'a Path,
    /// The folder it works in.
    pub folder: &'a Path,
    /// How long it may take.
    pub timeout: Duration,
}

/// What a program printed on one stream.
struct Printed {
    bounded: HeadTail,
    /// All of it, as long as it could be a JSON object of at most this many bytes.
    whole: Option<Vec<u8>>,
    most: usize,
}

impl Program<'_> {
    /// A call: the program is given `arguments`, a JSON object. The process must be a child subreaper without
    /// other children that somebody waits for.
    pub fn call(&self, arguments: &Value, background: &mut Background) -> Outcome {
        let run =
            input(arguments).and_then(|input| self.run(&[], input.into(), MAX_BLOCKS_BYTES, background));
        match run {
            Ok((output, errors, ending)) => outcome(output, errors, &failure(ending)),
            Err(error) => Outcome::error(cannot_start(self.file, &error)),
        }
    }

    /// What the program says of itself when it is asked by `--schema`: text that should be a JSON object.
    pub fn description(&self, background: &mut Background) -> Outcome {
        let run = self.run(&["--schema"], Stdio::null(), MAX_DESCRIPTION_BYTES, background);
        let (output, errors, ending) = match run {
            Ok(run) => run,
            Err(error) => return Outcome::error(cannot_start(self.file, &error)),
        };
        let failure = failure(ending);
        match output.whole {
            _ if failure.is_some() => outcome(Printed::new(0), errors, &failure),
            Some(whole) if !whole.trim_ascii().is_empty() => Outcome::ok(String::from_utf8_lossy(&whole)),
            Some(_) => Outcome::error("it printed nothing"),
            None => Outcome::error(format!(
                "what it printed is no JSON object of at most {MAX_DESCRIPTION_BYTES} bytes"
            )),
        }
    }

    fn run(
        &self,
        arguments: &[&str],
        input: Stdio,
        most: usize,
        background: &mut Background,
    ) -> io::Result<(Printed, Printed, Ending)> {
        let earlier =
            Kept::running_now(command::SHELL_VARIABLE, |pid, status| background.note_end(pid, status));
        let ((mut output_pipe, output_end), (mut error_pipe, error_end)) = (io::pipe()?, io::pipe()?);
        rustix::io::ioctl_fionbio(&output_pipe, true)?;
        rustix::io::ioctl_fionbio(&error_pipe, true)?;
        let process = background
            .command(self.file)?
            .args(arguments)
            .current_dir(self.folder)
            .envs(command::NOBODY_IS_THERE)
            .envs(command::SAME_FOR_ALL)
            .stdin(input)
            .stdout(output_end)
            .stderr(error_end)
            .process_group(0)
            .spawn()?;
        let process = Watched::new(Pid::from_child(&process));
        let (mut output, mut errors) = (Printed::new(most), Printed::new(0));
        let mut open = [true; 2];
        let ending = background.follow(process.pid, self.timeout, |wait| {
            let pipes = [&output_pipe, &error_pipe].into_iter().zip(open).filter(|(_, open)| *open);
            let waited: Vec<_> = pipes.map(|(pipe, _)| (pipe.as_fd(), PollFlags::IN)).collect();
            process::wait_for_any(&waited, &[&process], Some(wait));
            let streams = [(&mut output_pipe, &mut output), (&mut error_pipe, &mut errors)];
            for ((pipe, printed), open) in streams.into_iter().zip(&mut open) {
                *open = command::take_some(pipe, &mut |bytes| printed.push(bytes));
            }
        });
        if ending.is_to_be_ended() {
            let _ = kill_process_group(process.pid, Signal::KILL);
            descendants::end_descendants(&earlier, |pid, status| background.note_end(pid, status));
        }
        for (mut pipe, printed) in [(output_pipe, &mut output), (error_pipe, &mut errors)] {
            let goes_on = command::take_rest(&mut pipe, &mut |bytes| printed.push(bytes));
            background.keep(goes_on.then_some(pipe));
        }
        Ok((output, errors, ending))
    }
}

impl Printed {
    fn new(most: usize) -> Printed {
        Printed {
            bounded: HeadTail::new(HALF_OUTPUT_BYTES, HALF_OUTPUT_BYTES),
            whole: Some(Vec::new()),
            most,
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bounded.push(bytes);
        let Some(whole) = &mut self.whole else { return };
        whole.extend_from_slice(bytes);
        let begins = whole.trim_ascii_start().first();
        if whole.len() > self.most || begins.is_some_and(|first| *first != b'{') {
            self.whole = None;
        }
    }
}

/// The line that says how a program failed; nothing if it did not.
fn failure(ending: Ending) -> Option<String> {
    match ending {
        _ if ending.is_success() => None,
        Ending::TimedOut(_) => Some(format!("[{}; ask for less at once]", ending.words())),
        _ => Some(format!("[{}]", ending.words())),
    }
}

/// The arguments as a file without a name: unlike a pipe it takes any length at once, and a program that never
/// reads it keeps nobody waiting.
fn input(arguments: &Value) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("arguments", MemfdFlags::CLOEXEC)?);
    file.write_all(format!("{arguments}\n").as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Why the program could not be started. What lies in its place may have changed since it was looked at, and
/// the kernel has one error for most of that.
fn cannot_start(file: &Path, error: &io::Error) -> String {
    let why = match fs::metadata(file).map(|metadata| opening::kind(&metadata)) {
        Ok(Kind::Special(kind)) => format!("it is {kind}, not a file"),
        Ok(Kind::Directory) => "it is a directory, not a file".to_owned(),
        Ok(Kind::File) if !command::is_executable(file) => "it is not executable".to_owned(),
        _ if error.kind() == io::ErrorKind::NotFound => {
            format!("it or the interpreter in its first line is gone ({error})")
        }
        _ => error.to_string(),
    };
    format!("the program cannot be started: {why}")
}

/// What the model reads: the output, or with a failure both streams and how it ended.
fn outcome(output: Printed, errors: Printed, failure: &Option<String>) -> Outcome {
    let blocks = output.whole.as_deref().and_then(blocks::read);
    let mut outcome = blocks.unwrap_or_else(|| Outcome::ok(output.bounded.parts().text()));
    // A NUL is valid UTF-8, but many servers refuse a request that holds one.
    outcome.text = outcome.text.replace('\0', "\u{fffd}");
    let Some(failure) = failure else {
        if outcome.text.is_empty() {
            outcome.text = "(no output)".to_owned();
        }
        return outcome;
    };
    let (text, errors) =
        (outcome.text.trim_end_matches('\n'), errors.bounded.parts().text().replace('\0', "\u{fffd}"));
    let errors = errors.trim_end_matches('\n');
    let border = if text.is_empty() || errors.is_empty() { "" } else { "[standard error]" };
    let lines = [text, border, errors, failure].into_iter().filter(|line| !line.is_empty());
    Outcome { text: lines.collect::<Vec<_>>().join("\n"), images: outcome.images, is_error: true }
}
