//! A command line given to a shell: how it is started, what it has printed, and how it ended in words.
//!
//! One pipe takes both streams, so that they keep the order in which they were written. Nothing here waits.

use std::ffi::OsStr;
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::Access;
use rustix::process::{Pid, WaitStatus};

use super::terminal::Terminal;
use super::truncate::{HeadTail, Parts};
use crate::sandbox::process::Watched;

/// How much of the beginning and as much of the end of an output is kept.
const HALF_OUTPUT_BYTES: usize = 15_000;
/// What can still be changed of what was printed: more rows than are redrawn at a time.
const MAX_ROWS: usize = 64;
const MAX_ROWS_BYTES: usize = 16 * 1024;
/// What a pipe holds, and so the most that one read can bring.
const PIPE_BYTES: usize = 64 * 1024;

/// Told to programs that would wait for a person. An editor that changes nothing lets git take the message
/// it proposes, and refuse an empty one. Whether output is coloured does not matter, as colours are dropped.
pub const NOBODY_IS_THERE: [(&str, &str); 13] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("EDITOR", "true"),
    ("VISUAL", "true"),
    ("GIT_EDITOR", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS_REQUIRE", "never"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
];

/// Messages, quotes, sorting and times are the same whoever runs a command, so that equal work gives equal
/// bytes. A command that wants the user's language or zone can set it.
pub const SAME_FOR_ALL: [(&str, &str); 3] = [("LC_ALL", "C.UTF-8"), ("LANGUAGE", ""), ("TZ", "UTC")];

/// The variable that says in which background shell a process was started. It is how those are found that
/// have left its process group and session.
pub const SHELL_VARIABLE: &str = "COTTER_SHELL";

/// The shell that commands are given to: the first `bash` in the folders of `path_variable`, else
/// the first `sh`. Relative and empty folders are ignored: what they name is the workspace's choice.
pub fn shell(path_variable: &OsStr) -> Option<PathBuf> {
    ["bash", "sh"].into_iter().find_map(|name| {
        std::env::split_paths(path_variable)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|file| is_executable(file))
    })
}

/// Whether there is a file that can be run as far as its mode tells.
pub fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok()
}

/// A shell that was started, and what came of it so far.
#[derive(Debug)]
pub struct Started {
    /// The shell itself, which leads a process group of its own.
    pub process: Watched,
    /// None once nobody can write to it any more.
    pipe: Option<PipeReader>,
    terminal: Terminal,
    printed: HeadTail,
}

impl Started {
    /// Starts a shell with a command line in a folder. `id` names it if it is a background shell.
    pub fn new(mut shell: Command, command: &str, folder: &Path, id: Option<&str>) -> io::Result<Started> {
        let (pipe, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        shell.arg("-c").arg(command).current_dir(folder).envs(NOBODY_IS_THERE).envs(SAME_FOR_ALL);
        match id {
            Some(id) => shell.env(SHELL_VARIABLE, id),
            None => shell.env_remove(SHELL_VARIABLE),
        };
        shell.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let child = shell.process_group(0).spawn()?;
        Ok(Started {
            process: Watched::new(Pid::from_child(&child)),
            pipe: Some(pipe),
            terminal: Terminal::new(MAX_ROWS, MAX_ROWS_BYTES),
            printed: nothing_printed(),
        })
    }

    /// The pipe, to be waited for, unless it is closed.
    pub fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Takes what one read of the pipe brings. False when there was nothing.
    pub fn take_some(&mut self) -> bool {
        let mut is_some = false;
        self.take(|pipe, keep| {
            take_some(pipe, &mut |bytes| {
                is_some = true;
                keep(bytes);
            })
        });
        is_some
    }

    /// Takes what is in the pipe now and no more.
    pub fn take_rest(&mut self) {
        self.take(|pipe, keep| take_rest(pipe, keep));
    }

    /// Takes from the pipe by `from`, which tells whether more may come.
    fn take(&mut self, from: impl FnOnce(&mut PipeReader, &mut dyn FnMut(&[u8])) -> bool) {
        let Started { terminal, printed, pipe, .. } = self;
        let mut keep = |bytes: &[u8]| terminal.push(bytes, &mut |text| printed.push(text.as_bytes()));
        if pipe.as_mut().is_some_and(|pipe| !from(pipe, &mut keep)) {
            *pipe = None;
        }
    }

    /// What was printed since this was asked for the last time.
    pub fn printed(&mut self) -> Parts {
        let Started { terminal, printed, pipe, .. } = self;
        let mut keep = |text: &str| printed.push(text.as_bytes());
        match pipe {
            Some(_) => terminal.pass_on_all(&mut keep),
            None => terminal.finish(&mut keep),
        }
        std::mem::replace(printed, nothing_printed()).parts()
    }

    /// The whole lines that were printed since this or [`Started::printed`] was asked for the last time, and
    /// whether another one is begun.
    pub fn printed_lines(&mut self) -> (Parts, bool) {
        let Started { terminal, printed, .. } = self;
        let is_in_line = terminal.pass_on_ended_rows(&mut |text| printed.push(text.as_bytes()));
        (std::mem::replace(printed, nothing_printed()).parts(), is_in_line)
    }

    /// The pipe, if somebody can still write to it.
    pub fn into_pipe(self) -> Option<PipeReader> {
        self.pipe
    }
}

fn nothing_printed() -> HeadTail {
    HeadTail::new(HALF_OUTPUT_BYTES, HALF_OUTPUT_BYTES)
}

/// Takes what one read of a pipe that does not block brings. False once nobody can write to it any more.
pub fn take_some(pipe: &mut PipeReader, take: &mut dyn FnMut(&[u8])) -> bool {
    read_once(pipe, PIPE_BYTES, take).is_some()
}

/// Takes what is in a pipe now and no more: a background process may go on writing for ever. False if nobody
/// can write to it any more.
pub fn take_rest(pipe: &mut PipeReader, take: &mut dyn FnMut(&[u8])) -> bool {
    let mut left = usize::try_from(rustix::io::ioctl_fionread(&*pipe).unwrap_or(0)).unwrap_or(0);
    while left > 0 {
        match read_once(pipe, left.min(PIPE_BYTES), take) {
            Some(length) if length > 0 => left = left.saturating_sub(length),
            ended => return ended.is_some(),
        }
    }
    // Whether there will be more is told by a read of an empty pipe.
    read_once(pipe, 1, take).is_some()
}

/// How many bytes one read of at most `limit` brings: none if there is nothing yet, absent once the pipe is
/// closed.
fn read_once(pipe: &mut PipeReader, limit: usize, take: &mut dyn FnMut(&[u8])) -> Option<usize> {
    let mut buffer = [0; PIPE_BYTES];
    match pipe.read(&mut buffer[..limit]) {
        Ok(0) => None,
        Ok(length) => {
            take(&buffer[..length]);
            Some(length)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Some(0)
        }
        Err(_) => None,
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
pub enum Ending {
    /// The shell ended with this status.
    Status(WaitStatus),
    /// The shell ended, and the kernel has thrown its status away.
    Unknown,
    /// The time given was over, and it was ended with what it had started.
    TimedOut(Duration),
    /// KillShell ended it.
    Killed,
    /// The user did not want to wait for it, and it was ended with what it had started.
    Cancelled,
}

impl Ending {
    /// Whether the command is still running and has to be ended.
    pub fn is_to_be_ended(self) -> bool {
        matches!(self, Ending::TimedOut(_) | Ending::Cancelled)
    }

    /// Whether the command did what it was to do.
    pub fn is_success(self) -> bool {
        matches!(self, Ending::Status(status) if status.exit_status() == Some(0))
    }

    /// The way in which it ended, in a few words.
    pub fn words(self) -> String {
        match self {
            Ending::Status(status) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => format!("exit code: {code}"),
                (None, Some(signal)) => format!("killed by signal {signal}{}", signal_name(signal)),
                (None, None) => "ended in an unknown way".to_owned(),
            },
            Ending::Unknown => "exit code unknown: SIGCHLD is ignored where cotter was started; start it \
                                with env --default-signal=CHLD"
                .to_owned(),
            Ending::TimedOut(limit) => {
                format!(
                    "timed out after {} ms: the command and what it started were ended",
                    limit.as_millis()
                )
            }
            Ending::Killed => "killed by KillShell".to_owned(),
            Ending::Cancelled => {
                "interrupted by the user: the command and what it started were ended".to_owned()
            }
        }
    }
}

/// The usual name of a signal in parentheses, for those that end a process by default.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        5 => " (SIGTRAP)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        10 => " (SIGUSR1)",
        11 => " (SIGSEGV)",
        12 => " (SIGUSR2)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        31 => " (SIGSYS)",
        _ => "",
    }
}

/// Why a shell could not be started, in words for the model.
pub fn cannot_start(error: &io::Error, shell: &Path) -> String {
    let shell = shell.display();
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => {
            format!("the command is too long for '{shell}' ({error}): write it to a file and run that file")
        }
        _ => format!("cannot start '{shell}': {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_shell_is_an_executable_file_in_an_absolute_folder() {
        let folder = std::env::temp_dir().join(format!("cotter-bash-test-{}", std::process::id()));
        let file = |name: &str, mode: u32| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let found = |names: &[&str]| {
            let folders = names.iter().map(|name| folder.join(name));
            shell(&std::env::join_paths(folders).unwrap())
        };
        file("plain/bash", 0o644);
        fs::create_dir_all(folder.join("folder/bash")).unwrap();
        let sh = file("one/sh", 0o755);
        let bash = file("two/bash", 0o755);
        assert_eq!(found(&["plain", "folder", "missing"]), None);
        assert_eq!(found(&["plain", "folder", "one"]), Some(sh.clone()));
        assert_eq!(found(&["one", "two"]), Some(bash));
        for relative in ["", ":", "bin::.", "src"] {
            assert_eq!(shell(OsStr::new(relative)), None, "{relative:?}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_signal_has_its_usual_name() {
        assert_eq!(signal_name(9), " (SIGKILL)");
        assert_eq!(signal_name(64), "");
    }
}
