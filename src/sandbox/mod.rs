//! Where the tools that write or run something live: two processes below cotter.
//!
//! cotter (this handle) starts the supervisor, the supervisor the worker. Requests go down one pipe
//! and answers come up another, one line each, with the same number before both. Whichever of the three dies, another one ends
//! whatever is left: nothing that a tool started outlives cotter. The worker is contained by the kernel, and
//! what it starts with it; cotter itself never is.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use rustix::rand::GetRandomFlags;

use crate::alarm::{Alarm, Ring};
use crate::output;
use crate::tools::background::Background;
use descendants::Kept;
use process::Watched;

pub mod command;
pub mod commands;
mod containment;
pub mod descendants;
mod effects;
pub mod environment;
mod filesystem;
pub mod git;
pub mod hints;
mod interpreters;
mod namespaces;
pub mod nothing;
pub mod paths;
pub mod permissions;
pub mod policy;
mod privileges;
pub mod process;
pub mod rules;
mod supervisor;
mod suspects;
mod syscalls;
mod temp_folder;
mod worker;
mod wrappers;
pub mod writable;

pub use containment::{Signals, is_offered};
pub use policy::Policy;
pub use process::Program;
use process::SUPERVISOR;
pub use temp_folder::can_be_made_in;

/// The start-up line of a worker that waits for requests.
const READY: &str = "ready";
/// The first word of the start-up line that says why tools cannot be contained.
const UNCONTAINED: &str = "uncontained";
/// The reason where the time is over.
const LATE: &str = "did not answer in time";
/// The longest answer taken from the worker, which a tool may have taken over.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;
/// How long both processes may take to start.
const START: Duration = Duration::from_secs(60);
/// How much later than the alarm an answer is still waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long a call that was interrupted may take to end.
const CANCELLED: Duration = Duration::from_secs(5);
/// How long the supervisor may take to end everything before cotter does it itself.
const ORDERLY_END: Duration = Duration::from_secs(10);

/// Plays the part that this process was started for by another one of ours, if that is what its name says. A
/// worker has requests answered by `serve`.
pub fn play(
    name: &OsStr,
    arguments: impl Iterator<Item = OsString>,
    serve: fn(&str, &mut Background) -> String,
) -> Option<ExitCode> {
    let part = name.to_str()?;
    let arguments = || arguments.collect::<Vec<OsString>>();
    Some(match part {
        process::SUPERVISOR => supervisor::supervisor(&arguments()),
        process::WORKER => worker::worker(&arguments(), serve),
        process::TRIAL => namespaces::trial(),
        process::LAUNCH => command::launch(&arguments()),
        process::COMMAND => command::become_command(&arguments()),
        _ => return None,
    })
}

/// What the worker is given.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The folder it works in.
    pub workspace: PathBuf,
    /// Where its environment comes from, to which only `TMPDIR` is added.
    pub environment: environment::Inherited,
    /// The folder in which its private temporary folder is made, such as `/tmp`. Without one it has none, which
    /// only programs would miss.
    pub temp_parent: Option<PathBuf>,
    /// What it may do.
    pub policy: Policy,
    /// What it may do where the run does not only plan.
    pub policy_beyond_plan: Policy,
}

/// Why there is no worker.
#[derive(Debug, PartialEq, Eq)]
pub enum Unstarted {
    /// Tools cannot be contained on this system; the text says what is missing.
    Uncontained(String),
    /// Something else failed, which may go well another time.
    Failed(String),
}

/// The running worker. Dropping it ends the worker and everything that tools have started.
#[derive(Debug)]
pub struct Worker {
    temp_folder: Option<PathBuf>,
    /// What ran below cotter before.
    earlier: Kept,
    /// None once the worker is gone.
    running: Option<Running>,
}

/// A file whose lock is to be held until nothing of what tools have started is left.
#[derive(Debug)]
pub struct Held(OwnedFd);

impl Held {
    /// The lowest number under which the supervisor has it. What it is started with from there on it passes to nobody.
    const LOWEST: RawFd = 900;

    /// Another descriptor of this file.
    pub fn new(file: &File) -> Option<Held> {
        Some(Held(file.try_clone().ok()?.into()))
    }

    /// One that the next child has too; none where there may not be so many.
    fn for_child(&self) -> Option<OwnedFd> {
        let held = rustix::io::fcntl_dupfd_cloexec(&self.0, Held::LOWEST).ok()?;
        rustix::io::fcntl_setfd(&held, FdFlags::empty()).ok()?;
        Some(held)
    }

    /// Keeps it from the children of this process, which was started with it.
    fn keep() {
        close_fds::set_fds_cloexec(Held::LOWEST, &[]);
    }
}

#[derive(Debug)]
struct Running {
    supervisor: Watched,
    requests: ChildStdin,
    answers: ChildStdout,
    /// The number of the last request. A tool can write to the answer pipe through /proc: without
    /// numbers each later call would be given the answer to the one before it.
    number: u64,
    /// What was read from `answers` beyond the last line handed out.
    received: Vec<u8>,
}

impl Worker {
    /// Starts supervisor and worker and returns once the worker is ready.
    ///
    /// Children that cotter has by then live on when the worker is gone; all later ones are ended. What is `held`
    /// is so by the supervisor too: until everything has ended, however cotter did.
    ///
    /// Errors: why no process could be started. Nothing has run then.
    pub fn start(setup: &Setup, program: &Program, held: Option<&Held>) -> Result<Worker, Unstarted> {
        // Should the supervisor be killed, what ran below it comes to cotter instead of init.
        set_child_subreaper(Some(getpid())).map_err(|error| {
            Unstarted::Failed(format!("cannot become the reaper of tool processes: {error}"))
        })?;
        let temp_folder = setup.temp_parent.as_deref().map(temp_folder::new_path);
        let earlier = Kept::before_tools();
        let running =
            Running::start(setup, program, temp_folder.as_deref(), held).map_err(Unstarted::Failed)?;
        let mut worker = Worker { temp_folder, earlier, running: Some(running) };
        worker.wait_until_ready()?;
        Ok(worker)
    }

    /// Hands a request to the worker, one JSON text without a newline, and returns its answer, which may
    /// take until `limit` is over or the alarm rings.
    ///
    /// Errors: the worker is gone, what it had started has been ended, and the text says why.
    pub fn call(&mut self, request: &str, limit: Duration, alarm: &Alarm) -> Result<String, String> {
        let Some(running) = &mut self.running else {
            return Err("the process that runs tools is gone".to_owned());
        };
        // What ends by itself when the alarm rings is given the time to say what came of it.
        let answer = running.call(request, limit.min(alarm.shortened(limit) + LAST_WORDS), alarm);
        answer.map_err(|reason| match alarm.rung() {
            Some(ring) => {
                self.end();
                format!("{ring}; everything it had started has been ended")
            }
            None => self.gone(&reason),
        })
    }

    /// The private temporary folder, `TMPDIR` of all tools, if it has one.
    pub fn temp_folder(&self) -> Option<&Path> {
        self.temp_folder.as_deref()
    }

    fn wait_until_ready(&mut self) -> Result<(), Unstarted> {
        let line = match &mut self.running {
            Some(running) => running.line(Instant::now() + START, &Alarm::default()),
            None => Err("is gone"),
        };
        line.map_err(|reason| Unstarted::Failed(self.gone(reason))).and_then(|line| announced(&line))
    }

    /// Ends everything and says what happened.
    fn gone(&mut self, reason: &str) -> String {
        self.end();
        format!("the process that runs tools {reason}; everything it had started has been ended")
    }

    fn end(&mut self) {
        let Some(running) = self.running.take() else { return };
        running.end(&self.earlier);
        // The supervisor removes its folder unless it was killed.
        remove_private(self.temp_folder.as_deref());
    }
}

/// Removes the private temporary folder, if it is there, or says that it stays.
fn remove_private(folder: Option<&Path>) {
    let Some(folder) = folder else { return };
    if let Err(error) = temp_folder::remove(folder) {
        output::complain(&format!(
            "the tools' temporary folder '{}' cannot be removed: {error}",
            folder.display()
        ));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    fn start(
        setup: &Setup,
        program: &Program,
        temp_folder: Option<&Path>,
        held: Option<&Held>,
    ) -> Result<Running, String> {
        let errors = nothing::file().map_err(|error| format!("cannot open /dev/null: {error}"))?;
        // It goes with the end of this function, from cotter.
        let _held = held.and_then(Held::for_child);
        let mut child = program
            .start_again(SUPERVISOR)?
            .arg(getpid().to_string())
            .arg(temp_folder::argument(temp_folder))
            .args(setup.policy.arguments())
            .env_clear()
            .envs(setup.environment.for_tools())
            .current_dir(&setup.workspace)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .map_err(|error| {
                format!("cannot start a process for tools in '{}': {error}", setup.workspace.display())
            })?;
        Running::of(&mut child).map_err(|error| format!("cannot talk to the process for tools: {error}"))
    }

    fn of(child: &mut Child) -> io::Result<Running> {
        let requests = child.stdin.take().expect("stdin was asked to be a pipe");
        rustix::io::ioctl_fionbio(&requests, true)?;
        // A tool is not to guess the number of a call to come. A machine that has no chance to offer yet
        // is no reason to fail: it starts from 0.
        let mut number = [0; 8];
        let _ = rustix::rand::getrandom(&mut number, GetRandomFlags::NONBLOCK);
        Ok(Running {
            supervisor: Watched::new(Pid::from_child(child)),
            requests,
            answers: child.stdout.take().expect("stdout was asked to be a pipe"),
            number: u64::from_ne_bytes(number),
            received: Vec::new(),
        })
    }

    /// The answer to a request; a reason completes "the process that runs tools …".
    fn call(&mut self, request: &str, limit: Duration, alarm: &Alarm) -> Result<String, String> {
        let deadline = Instant::now() + limit;
        self.number = self.number.wrapping_add(1);
        let late = |reason| match reason {
            LATE => format!("did not answer within {} s", limit.as_secs_f64()),
            reason => reason.to_owned(),
        };
        self.send(format!("{} {request}\n", self.number).as_bytes(), deadline).map_err(late)?;
        let line = self.line(deadline, alarm).map_err(late)?;
        match line.split_once(' ') {
            Some((number, answer)) if number == self.number.to_string() => Ok(answer.to_owned()),
            _ => Err("sent an answer that is not to this call".to_owned()),
        }
    }

    /// Writes to the request pipe, which takes no more than 64 KiB before the worker reads.
    fn send(&mut self, mut line: &[u8], deadline: Instant) -> Result<(), &'static str> {
        while !line.is_empty() {
            match self.requests.write(line) {
                Ok(length) => line = &line[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.supervisor.has_ended() {
                        return Err("ended before the call reached it");
                    }
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(LATE);
                    }
                    let room = (self.requests.as_fd(), PollFlags::OUT);
                    process::wait_for(Some(room), &[&self.supervisor], Some(left));
                }
                Err(_) => return Err("ended before the call reached it"),
            }
        }
        Ok(())
    }

    /// The next line of the answer pipe; a reason completes "the process that runs tools …".
    fn line(&mut self, mut deadline: Instant, alarm: &Alarm) -> Result<String, &'static str> {
        let mut is_cancelled = false;
        let mut searched = 0;
        let mut buffer = [0; 64 * 1024];
        loop {
            if let Some(length) = self.received[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(searched + length + 1);
                let mut line = std::mem::replace(&mut self.received, rest);
                line.pop();
                return String::from_utf8(line).map_err(|_| "sent an answer that is not UTF-8");
            }
            searched = self.received.len();
            if searched > MAX_ANSWER_BYTES {
                return Err("sent an answer of more than 64 MiB");
            }
            // The end of the pipe alone is not waited for: a tool may have opened its writing end
            // through /proc and still hold it when the supervisor is gone.
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = [Some(self.answers.as_fd()), alarm.source()];
            let waited: Vec<_> = waited.into_iter().flatten().map(|file| (file, PollFlags::IN)).collect();
            process::wait_for_any(&waited, &[&self.supervisor], Some(left));
            if !is_cancelled && alarm.rung() == Some(Ring::Interrupted) {
                is_cancelled = true;
                // It is told by an empty line. Should it not listen, its time is over soon.
                let _ = self.requests.write(b"\n");
                deadline = deadline.min(Instant::now() + CANCELLED);
            }
            if !process::readable(self.answers.as_fd(), Duration::ZERO) {
                if self.supervisor.has_ended() {
                    // The same words as at the end of the pipe: which of the two is seen first differs
                    // from run to run, and equal work gives equal bytes.
                    return Err("ended");
                }
                if left.is_zero() {
                    return Err(LATE);
                }
                continue;
            }
            match self.answers.read(&mut buffer) {
                Ok(0) => return Err("ended"),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err("can no longer be read from"),
            }
        }
    }

    /// Closes the request pipe, at which the supervisor ends everything, and waits for that. What is
    /// left, because it was killed or stopped by a tool, is ended here.
    fn end(self, earlier: &Kept) {
        drop(self.requests);
        let asked = Instant::now();
        let mut children_left = true;
        let mut supervisor_left = true;
        while supervisor_left && children_left && asked.elapsed() < ORDERLY_END {
            let reaped = process::reap(process::REAPED_AT_ONCE, |pid, _| {
                supervisor_left &= pid != self.supervisor.pid
            });
            children_left = reaped.children_left;
            supervisor_left &= !process::was_reaped_by_the_kernel(self.supervisor.pid);
            if supervisor_left && children_left {
                process::wait_for(None, &[&self.supervisor], Some(ORDERLY_END));
            }
        }
        if supervisor_left && children_left {
            // Alone and before the rest: until it has a session of its own it is in cotter's group.
            let _ = kill_process(self.supervisor.pid, Signal::KILL);
            process::wait_for(None, &[&self.supervisor], Some(ORDERLY_END));
        }
        descendants::end_descendants(earlier, |_, _| {});
    }
}

/// What the start-up line says: that the worker is ready, or why there is none.
fn announced(line: &str) -> Result<(), Unstarted> {
    match (line, line.strip_prefix(UNCONTAINED)) {
        (READY, _) => Ok(()),
        (_, Some(reason)) => Err(Unstarted::Uncontained(reason.trim_start().to_owned())),
        (_, None) => Err(Unstarted::Failed(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A program in the place of the supervisor.
    fn running(script: &str) -> (Child, Running) {
        let mut command = Command::new("sh");
        let command = command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let running = Running::of(&mut child).unwrap();
        (child, running)
    }

    fn answer(script: &str, request: &str, limit: Duration) -> Result<String, String> {
        let (mut child, mut running) = running(script);
        let answer = running.call(request, limit, &Alarm::default());
        child.kill().unwrap();
        child.wait().unwrap();
        answer
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_answer_is_the_rest_of_the_line_with_the_number_of_its_request() {
        let echo = "read -r line; echo \"$line\"; exec sleep 60";
        assert_eq!(answer(echo, "{\"a\": 1}", LONG), Ok("{\"a\": 1}".to_owned()));
        for forged in ["{}", "7 {}", " {}", ""] {
            let script = format!("read -r line; echo '{forged}'; echo \"$line\"; exec sleep 60");
            let error = "sent an answer that is not to this call".to_owned();
            assert_eq!(answer(&script, "{}", LONG), Err(error), "{forged:?}");
        }
    }

    #[test]
    fn what_never_answers_is_not_waited_for_longer_than_the_limit() {
        let limit = Duration::from_millis(20);
        let error = Err("did not answer within 0.02 s".to_owned());
        assert_eq!(answer("exec sleep 60", "{}", limit), error);
        // Nor what never takes all of the request.
        assert_eq!(answer("exec sleep 60", &"x".repeat(1 << 20), limit), error);
        // Half an answer does not count.
        assert_eq!(answer("printf 12; exec sleep 60", "{}", limit), error);
    }

    #[test]
    fn a_request_of_any_length_arrives() {
        let request = "x".repeat(1 << 20);
        // It takes all of the line before it answers, as the worker does.
        let script = "line=$(head -n 1); echo \"$line\"; exec sleep 60";
        assert!(answer(script, &request, LONG) == Ok(request), "it came otherwise");
    }

    #[test]
    fn a_start_up_line_that_announces_nothing_is_the_reason_why_it_failed() {
        assert_eq!(announced("ready"), Ok(()));
        assert_eq!(announced("cannot x"), Err(Unstarted::Failed("cannot x".to_owned())));
        let uncontained = Err(Unstarted::Uncontained("no Landlock".to_owned()));
        assert_eq!(announced("uncontained no Landlock"), uncontained);
    }
}
