//! Runs a program that is a tool, in the worker: its arguments are on its standard input, its result is what it
//! prints.
//!
//! The program is a stranger. What is kept of its output is bounded, nothing is waited for beyond its time,
//! and what is no result is told as text.

use std::fs::File;
use std::io::{self, PipeReader, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};
use serde_json::Value;

use super::bash::{self, Available, Background};
use super::executables::MAX_DESCRIPTION_BYTES;
use super::truncate::HeadTail;
use super::{Outcome, blocks};
use crate::sandbox::process::{self, Kept, Watched};

/// How much of the beginning and as much of the end of a text is kept.
const HALF_OUTPUT_BYTES: usize = 15_000;
/// The longest output that is looked into for blocks: a few images.
const MAX_BLOCKS_BYTES: usize = 16 * 1024 * 1024;
/// How often orphans are reaped while a program runs.
const ROUND: Duration = Duration::from_millis(100);
/// What a pipe holds, and so the most that one read can bring.
const PIPE_BYTES: usize = 64 * 1024;

/// What is run, and where.
pub struct Program<'a> {
    /// The absolute path of the file.
    pub file: &'a Path,
    /// The folder it works in.
    pub folder: &'a Path,
    /// How long it may take.
    pub timeout: Duration,
}

/// How a program ended.
enum Ending {
    /// By itself or by a signal.
    Status(WaitStatus),
    /// The kernel has thrown its status away.
    Unknown,
    /// Its time was over.
    TimedOut,
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
            Ok((output, errors, ending)) => outcome(output, errors, &self.failure(&ending)),
            Err(error) => Outcome::error(cannot_start(&error)),
        }
    }

    /// What the program says of itself when it is asked by `--schema`: text that should be a JSON object.
    pub fn description(&self, background: &mut Background) -> Outcome {
        let run = self.run(&["--schema"], Stdio::null(), MAX_DESCRIPTION_BYTES, background);
        let (output, errors, ending) = match run {
            Ok(run) => run,
            Err(error) => return Outcome::error(cannot_start(&error)),
        };
        let failure = self.failure(&ending);
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
        let earlier = Kept::running_now();
        let ((mut output_pipe, output_end), (mut error_pipe, error_end)) = (io::pipe()?, io::pipe()?);
        rustix::io::ioctl_fionbio(&output_pipe, true)?;
        rustix::io::ioctl_fionbio(&error_pipe, true)?;
        let process = Command::new(self.file)
            .args(arguments)
            .current_dir(self.folder)
            .envs(bash::NOBODY_IS_THERE)
            .envs(bash::SAME_FOR_ALL)
            .stdin(input)
            .stdout(output_end)
            .stderr(error_end)
            .process_group(0)
            .spawn()?;
        let process = Watched::new(Pid::from_child(&process));
        let (mut output, mut errors) = (Printed::new(most), Printed::new(0));
        let mut streams = [(&mut output_pipe, &mut output), (&mut error_pipe, &mut errors)];
        let ending = self.follow(&process, &mut streams, background);
        if let Ending::TimedOut = ending {
            let _ = kill_process_group(process.pid, Signal::KILL);
            process::end_descendants(&earlier, |_, _| {});
        }
        for (mut pipe, printed) in [(output_pipe, &mut output), (error_pipe, &mut errors)] {
            if bash::drain(&mut pipe, |bytes| printed.push(bytes)) && !matches!(ending, Ending::TimedOut) {
                background.keep(pipe);
            }
        }
        Ok((output, errors, ending))
    }

    /// Collects what is printed until the program ends or its time is over.
    fn follow(
        &self,
        process: &Watched,
        streams: &mut [(&mut PipeReader, &mut Printed); 2],
        background: &mut Background,
    ) -> Ending {
        let deadline = Instant::now() + self.timeout;
        let mut buffer = [0; PIPE_BYTES];
        let mut open = [true; 2];
        loop {
            let mut status = None;
            process::reap(process::REAPED_AT_ONCE, |pid, ended_with| {
                if pid == process.pid {
                    status = Some(ended_with);
                }
            });
            if let Some(status) = status {
                return Ending::Status(status);
            }
            if process::was_reaped_by_the_kernel(process.pid) {
                return Ending::Unknown;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ending::TimedOut;
            }
            background.discard_output();
            let waited = streams.iter().zip(open).filter(|(_, open)| *open);
            let waited: Vec<_> = waited.map(|((pipe, _), _)| (pipe.as_fd(), PollFlags::IN)).collect();
            process::wait_for_any(&waited, &[process], Some(left.min(ROUND)));
            for ((pipe, printed), open) in streams.iter_mut().zip(&mut open) {
                match bash::available(pipe, &mut buffer) {
                    Available::Bytes(length) => printed.push(&buffer[..length]),
                    Available::Nothing => {}
                    Available::Closed => *open = false,
                }
            }
        }
    }

    /// The line that says how a program failed; nothing if it did not.
    fn failure(&self, ending: &Ending) -> Option<String> {
        match ending {
            Ending::TimedOut => Some(format!(
                "[timed out after {} ms: the program and what it started were ended; ask for less at once]",
                self.timeout.as_millis()
            )),
            Ending::Unknown => Some(
                "[exit code unknown: SIGCHLD is ignored where cotter was started; start it with env \
--default-signal=CHLD]"
                    .to_owned(),
            ),
            Ending::Status(status) => match (status.exit_status(), status.terminating_signal()) {
                (Some(0), _) => None,
                (Some(code), _) => Some(format!("[exit code: {code}]")),
                (None, Some(signal)) => {
                    Some(format!("[killed by signal {signal}{}]", bash::signal_name(signal)))
                }
                (None, None) => Some("[ended in an unknown way]".to_owned()),
            },
        }
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

/// The arguments as a file without a name: unlike a pipe it takes any length at once, and a program that never
/// reads it keeps nobody waiting.
fn input(arguments: &Value) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("arguments", MemfdFlags::CLOEXEC)?);
    file.write_all(format!("{arguments}\n").as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn cannot_start(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            format!(
                "the program cannot be started: it or the interpreter in its first line is gone ({error})"
            )
        }
        _ => format!("the program cannot be started: {error}"),
    }
}

/// What the model reads: the output, or with a failure both streams and how it ended.
fn outcome(output: Printed, errors: Printed, failure: &Option<String>) -> Outcome {
    let blocks = output.whole.as_deref().and_then(blocks::read);
    let mut outcome = blocks.unwrap_or_else(|| Outcome::ok(output.bounded.finish()));
    let Some(failure) = failure else {
        if outcome.text.is_empty() {
            outcome.text = "(no output)".to_owned();
        }
        return outcome;
    };
    let (text, errors) = (outcome.text.trim_end_matches('\n'), errors.bounded.finish());
    let errors = errors.trim_end_matches('\n');
    let border = if text.is_empty() || errors.is_empty() { "" } else { "[standard error]" };
    let lines = [text, border, errors, failure].into_iter().filter(|line| !line.is_empty());
    Outcome { text: lines.collect::<Vec<_>>().join("\n"), images: outcome.images, is_error: true }
}
