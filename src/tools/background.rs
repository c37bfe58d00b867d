//! What calls of Bash leave running in the worker: shells started in the background, which BashOutput and
//! KillShell speak of, and pipes that a finished command's children still hold.
//!
//! All of it is attended to between calls and during them, so that no server blocks for want of a reader.

use std::fs::File;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};

use super::command::{self, Ending, SHELL_VARIABLE, Started};
use super::truncate::Parts;
use super::{Outcome, Workspace};
use crate::sandbox::Signals;
use crate::sandbox::descendants::{self, Kept};
use crate::sandbox::process;

/// How many background shells may run at once.
const MAX_RUNNING: usize = 32;
/// How many that have ended are remembered, the latest.
const MAX_ENDED: usize = 32;
/// How often orphans are reaped and background shells attended to while a call runs.
const ROUND: Duration = Duration::from_millis(100);
/// How often a pipe is read at most in one round, ten of which are a second: output that nobody reads
/// does not keep a processor busy.
const READS_AT_ONCE: usize = 4;

/// What earlier calls left running, as far as it has to be attended to.
#[derive(Debug, Default)]
pub struct Background {
    signals: Signals,
    /// Where something can be read as soon as the call that runs is to end.
    cancellations: Option<File>,
    /// Output pipes that a background process still holds. Were they closed, its next line of output
    /// would kill it (SIGPIPE); were they not read, it would block once the pipe is full.
    pipes: Vec<PipeReader>,
    shells: Vec<Shell>,
    /// How many shells were ever started in the background in this run.
    count: u64,
    /// How many of them ran in an earlier worker, which was lost.
    lost: u64,
}

/// A shell in the background.
#[derive(Debug)]
struct Shell {
    number: u64,
    started: Started,
    /// None while it runs.
    ending: Option<Ending>,
    /// When it is to be ended, and the time that was given.
    limit: Option<(Instant, Duration)>,
}

impl Background {
    /// Nothing yet. With [`Signals::ToBeRefused`], programs start without the right to send any.
    pub fn new(signals: Signals) -> Background {
        Background { signals, ..Background::default() }
    }

    /// From now on, a byte that comes from this file while a call runs ends that call.
    pub fn heed(&mut self, cancellations: File) {
        self.cancellations = Some(cancellations);
    }

    /// Takes note of a byte that ends the call, or of there being nobody left to want it.
    fn is_cancelled(&mut self) -> bool {
        self.cancellations.as_mut().is_some_and(|file| {
            process::readable(file.as_fd(), Duration::ZERO) && file.read(&mut [0]).is_ok()
        })
    }

    /// The command that starts a program as a tool.
    pub fn command(&self, program: &Path) -> io::Result<Command> {
        match self.signals {
            Signals::Judged => Ok(Command::new(program)),
            Signals::ToBeRefused => {
                let mut command = process::start_again(process::LAUNCH).map_err(io::Error::other)?;
                command.arg(program);
                Ok(command)
            }
        }
    }

    /// Takes note of how many background shells this run has started: more than are known here, if the
    /// worker that had them was lost.
    pub fn count_from(&mut self, started: u64) {
        if started > self.count {
            (self.count, self.lost) = (started, started);
        }
    }

    /// Reaps what has ended, ends what is over its time, and takes what was printed since. True while there is
    /// anything to attend to.
    pub fn attend(&mut self) -> bool {
        let reaped = process::reap(process::REAPED_AT_ONCE, |pid, status| self.note_end(pid, status));
        self.take_output();
        reaped.children_left
            || !self.pipes.is_empty()
            || self.shells.iter().any(|shell| shell.started.pipe().is_some())
    }

    /// Takes what was printed, and ends shells that are over their time. Returns the children that ended
    /// meanwhile: one may be the caller's.
    fn take_output(&mut self) -> Vec<(Pid, WaitStatus)> {
        self.pipes.retain_mut(|pipe| command::take_some(pipe, &mut |_| {}));
        for shell in &mut self.shells {
            shell.attend();
        }
        let mut ended = Vec::new();
        for shell in self.shells.iter_mut().filter(|shell| shell.ending.is_none()) {
            if let Some((deadline, limit)) = shell.limit
                && Instant::now() >= deadline
            {
                shell.end_all(&mut ended);
                shell.ending = Some(Ending::TimedOut(limit));
            }
        }
        for (pid, status) in &ended {
            self.note_end(*pid, *status);
        }
        self.forget_oldest();
        ended
    }

    /// Follows a child until it ends or its time is over, and attends to what else runs meanwhile.
    /// `take_output` waits at most as long as it is told for the child's end or for what it prints, and takes
    /// that.
    pub fn follow(&mut self, child: Pid, limit: Duration, mut take_output: impl FnMut(Duration)) -> Ending {
        let deadline = Instant::now() + limit;
        let mut next_round = Instant::now();
        loop {
            let mut status = None;
            process::reap(process::REAPED_AT_ONCE, |pid, ended_with| match pid == child {
                true => status = Some(ended_with),
                false => self.note_end(pid, ended_with),
            });
            if let Some(status) = status {
                return Ending::Status(status);
            }
            if process::was_reaped_by_the_kernel(child) {
                return Ending::Unknown;
            }
            let now = Instant::now();
            if now >= deadline {
                return Ending::TimedOut(limit);
            }
            if now >= next_round {
                next_round = now + ROUND;
                if self.is_cancelled() {
                    return Ending::Cancelled;
                }
                let ended = self.take_output();
                if let Some((_, status)) = ended.into_iter().find(|(pid, _)| *pid == child) {
                    return Ending::Status(status);
                }
            }
            take_output((deadline - now).min(ROUND));
        }
    }

    /// Keeps a finished command's pipe open for those who still write to it.
    pub fn keep(&mut self, pipe: Option<PipeReader>) {
        self.pipes.extend(pipe);
    }

    /// Takes note that a child has ended, which may be one of the shells.
    pub fn note_end(&mut self, pid: Pid, status: WaitStatus) {
        let running = self.shells.iter_mut().filter(|shell| shell.ending.is_none());
        for shell in running.filter(|shell| shell.started.process.pid == pid) {
            shell.ending = Some(Ending::Status(status));
        }
    }

    /// Starts a shell in the background.
    pub fn start(
        &mut self,
        shell: &Path,
        command: &str,
        workspace: &Workspace,
        limit: Option<Duration>,
    ) -> Outcome {
        self.attend();
        if self.shells.iter().filter(|shell| shell.ending.is_none()).count() >= MAX_RUNNING {
            return Outcome::error(format!(
                "{MAX_RUNNING} background shells are running, and there may be no more: end one with KillShell; \
                 the shells are {}",
                self.ids()
            ));
        }
        let number = self.count + 1;
        let id = id(number);
        let started =
            self.command(shell).and_then(|shell| Started::new(shell, command, &workspace.root, Some(&id)));
        match started {
            Ok(started) => {
                self.count = number;
                let limit = limit.map(|limit| (Instant::now() + limit, limit));
                self.shells.push(Shell { number, started, ending: None, limit });
                Outcome::ok(format!("{id} runs in the background: see its output with BashOutput"))
            }
            Err(error) => Outcome::error(command::cannot_start(&error, shell)),
        }
    }

    /// What a shell has printed since the last look, and how it is. With a filter only lines that it wants are
    /// shown; the others count as seen too. A line that goes on can still come to be one that it wants, and so
    /// waits for the next look.
    pub fn look(&mut self, id: &str, filter: Option<&dyn Fn(&str) -> bool>) -> Outcome {
        self.attend();
        let shell = match self.find(id) {
            Ok(shell) => shell,
            Err(problem) => return Outcome::error(problem),
        };
        let (printed, is_in_line) = match filter {
            Some(_) if shell.ending.is_none() => shell.started.printed_lines(),
            _ => (shell.started.printed(), false),
        };
        let Parts { head, left_out, tail } = printed;
        let is_wanted = |line: &&str| filter.is_none_or(|is_wanted| is_wanted(line));
        let wanted = |text: &str| text.split_inclusive('\n').filter(is_wanted).collect();
        let text = Parts { head: wanted(&head), left_out, tail: wanted(&tail) }.text();
        let text = if text.is_empty() { "(no new output)\n" } else { &text };
        let line_end = if text.ends_with('\n') { "" } else { "\n" };
        let in_line = if is_in_line { "; its last line is not ended and left for the next look" } else { "" };
        Outcome::ok(format!("{text}{line_end}[{id} {}{in_line}]", shell.status()))
    }

    /// Ends a shell with all it has started.
    pub fn kill(&mut self, id: &str) -> Outcome {
        self.attend();
        let shell = match self.find(id) {
            Ok(shell) => shell,
            Err(problem) => return Outcome::error(problem),
        };
        let already = shell.ending.map(|_| shell.status());
        let mut ended = Vec::new();
        shell.end_all(&mut ended);
        let text = match already {
            None => format!("{id} and all it had started have been ended"),
            Some(status) => format!("{id} {status}; what it had left running has been ended"),
        };
        shell.ending = shell.ending.or(Some(Ending::Killed));
        for (pid, status) in ended {
            self.note_end(pid, status);
        }
        Outcome::ok(text)
    }

    fn find(&mut self, id: &str) -> Result<&mut Shell, String> {
        let number = id.strip_prefix("bash_").and_then(|digits| digits.parse().ok()).unwrap_or(0);
        if number > 0 && number <= self.lost && id == self::id(number) {
            return Err(format!(
                "{id} is gone: the process that runs tools was lost, and everything it had started was ended"
            ));
        }
        let known = self.ids();
        self.shells.iter_mut().find(|shell| self::id(shell.number) == id).ok_or_else(|| {
            match known.as_str() {
                "" => {
                    format!("there is no shell \"{id}\": none was started: a command with run_in_background is one")
                }
                known => format!("there is no shell \"{id}\": the shells are {known}"),
            }
        })
    }

    fn ids(&self) -> String {
        let ids: Vec<String> = self.shells.iter().map(|shell| id(shell.number)).collect();
        ids.join(", ")
    }

    fn forget_oldest(&mut self) {
        let mut surplus =
            self.shells.iter().filter(|shell| shell.ending.is_some()).count().saturating_sub(MAX_ENDED);
        while surplus > 0
            && let Some(index) = self.shells.iter().position(|shell| shell.ending.is_some())
        {
            surplus -= 1;
            let pipe = self.shells.remove(index).started.into_pipe();
            self.keep(pipe);
        }
    }
}

impl Shell {
    fn attend(&mut self) {
        let reads = (0..READS_AT_ONCE).take_while(|_| self.started.take_some()).count();
        if self.ending.is_none() && process::was_reaped_by_the_kernel(self.started.process.pid) {
            self.ending = Some(Ending::Unknown);
        }
        // What an ended shell printed last is there by now; one that runs has its turn again.
        if self.ending.is_some() && reads == READS_AT_ONCE {
            self.started.take_rest();
        }
    }

    fn status(&self) -> String {
        match self.ending {
            None => "is running".to_owned(),
            Some(ending) if ending.is_success() => format!("has completed: {}", ending.words()),
            Some(Ending::Killed) => "was killed by KillShell".to_owned(),
            Some(ending) => format!("has failed: {}", ending.words()),
        }
    }

    /// Ends the shell and what it has started, as far as that is known to be its own; children that end
    /// meanwhile are added to `ended`.
    fn end_all(&mut self, ended: &mut Vec<(Pid, WaitStatus)>) {
        // The number of one that was reaped may be another's by now.
        let running = self.ending.is_none().then_some(self.started.process.pid);
        let mark = format!("{SHELL_VARIABLE}={}", id(self.number));
        let own = Kept::below(running, mark);
        if let Some(group) = running {
            // All that can be told without /proc.
            let _ = kill_process_group(group, Signal::KILL);
        }
        descendants::end_tree(&own, |pid, status| ended.push((pid, status)));
        self.started.take_rest();
    }
}

fn id(number: u64) -> String {
    format!("bash_{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_starts_by_way_of_the_launcher_only_where_signals_are_to_be_refused() {
        let started = |signals| {
            let command = Background::new(signals).command(Path::new("/bin/true")).unwrap();
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(started(Signals::Judged), ["/bin/true"]);
        assert_eq!(started(Signals::ToBeRefused), ["/proc/self/exe", "/bin/true"]);
    }
}
