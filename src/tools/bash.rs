//! Bash: runs a command line in a shell and returns what it printed and how it ended.
//!
//! One thread, one `poll`: output and the shell's end are waited for together, so that a call returns
//! when its shell does, whatever it leaves running.

use std::ffi::OsStr;
use std::io::{self, PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::fs::Access;
use rustix::process::{Pid, Signal, WaitStatus, kill_process_group};
use serde_json::Value;

use super::truncate::HeadTail;
use super::{Arguments, Outcome, Spec, Workspace, arguments, slips};
use crate::sandbox::process::{self, Kept, Watched};

/// What the model is told of this tool.
pub const SPEC: Spec = Spec {
    name: "Bash",
    description: "Runs a command line with `bash -c` (`sh -c` where there is no bash) in the workspace \
folder and returns its standard output and standard error as they were printed, in order; when it fails, \
a last line says how, such as `[exit code: 1]`. Each call is a new shell: `cd` and variables do not last, \
so join steps with `&&`. There is no terminal and no input: pass flags such as `--yes` instead of waiting \
for a question. Of output over 30000 bytes the middle is left out: filter it, or send it to a file in \
$TMPDIR and read that in parts. A command that takes longer than `timeout` is ended together with all it \
started. To leave a server running for later calls, end its command with `&` and send its output to a \
file; it is ended when the whole run ends. To read, edit or search files, prefer the tools made for that.",
    schema: r#"{"type":"object","properties":{"command":{"type":"string","description":"The command line."},"timeout":{"type":"integer","minimum":1,"maximum":600000,"description":"Milliseconds after which the command is ended; 120000 if not given."},"description":{"type":"string","description":"What the command is for, in five to ten words."}},"required":["command"]}"#,
};

const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;
/// How much of the beginning and as much of the end of an output is kept.
const HALF_OUTPUT_BYTES: usize = 15_000;
/// How often orphans are reaped while a command runs.
const ROUND: Duration = Duration::from_millis(100);
/// What a pipe holds, and so the most that one read can bring.
const PIPE_BYTES: usize = 64 * 1024;
/// Told to programs that would wait for a person.
pub const NOBODY_IS_THERE: [(&str, &str); 4] =
    [("TERM", "dumb"), ("GIT_PAGER", "cat"), ("PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// Messages, quotes, sorting and times are the same whoever runs a command, so that equal work gives equal
/// bytes. A command that wants the user's language or zone can set it.
pub const SAME_FOR_ALL: [(&str, &str); 3] = [("LC_ALL", "C.UTF-8"), ("LANGUAGE", ""), ("TZ", "UTC")];

/// What earlier calls left running, as far as it has to be attended to.
#[derive(Debug, Default)]
pub struct Background {
    /// Output pipes that a background process still holds. Were they closed, its next line of output
    /// would kill it (SIGPIPE); were they not read, it would block once the pipe is full.
    pipes: Vec<PipeReader>,
}

impl Background {
    /// Reaps what has ended and lets go of what was printed since. True while there is anything to
    /// attend to. Called ten times a second, so a background process prints at most that often a
    /// full pipe, and does not keep a processor busy with output nobody reads.
    pub fn attend(&mut self) -> bool {
        let reaped = process::reap(process::REAPED_AT_ONCE, |_, _| {});
        self.discard_output();
        reaped.children_left || !self.pipes.is_empty()
    }

    /// Keeps a pipe that a process in the background may still write to.
    pub fn keep(&mut self, pipe: PipeReader) {
        self.pipes.push(pipe);
    }

    /// Lets go of what was printed since.
    pub fn discard_output(&mut self) {
        let mut buffer = [0; PIPE_BYTES];
        self.pipes.retain_mut(|pipe| !matches!(available(pipe, &mut buffer), Available::Closed));
    }
}

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

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, Access::EXEC_OK).is_ok()
}

/// How long a call of this tool may take by its own arguments.
pub fn timeout(arguments: &Arguments) -> Duration {
    // One that is refused takes no time.
    Request::read(arguments).map_or(Duration::ZERO, |request| request.timeout)
}

/// Runs a call. The process must be a child subreaper without other children that somebody waits for.
pub fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    shell: &Path,
    background: &mut Background,
) -> Outcome {
    let request = match Request::read(arguments) {
        Ok(request) => request,
        Err(text) => return Outcome::error(text),
    };
    match request.execute(workspace, shell, background) {
        Ok((output, ending)) => outcome(&output, ending),
        Err(error) => Outcome::error(cannot_start(&error, shell)),
    }
}

/// What a call asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    command: &'a str,
    timeout: Duration,
}

/// How a command ended.
#[derive(Debug, Clone, Copy)]
enum Ending {
    /// The shell ended with this status.
    Status(WaitStatus),
    /// The shell ended, and the kernel has thrown its status away.
    Unknown,
    /// The time given was over.
    TimedOut(Duration),
}

impl<'a> Request<'a> {
    fn read(arguments: &'a Arguments) -> Result<Request<'a>, String> {
        let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name)).map_err(|problem| {
            // Models know it from elsewhere, and the schema does not say what to do instead.
            match arguments.get("run_in_background") {
                Some(Value::Bool(true)) => format!("end the command with `&` instead: {problem}"),
                _ => problem,
            }
        })?;
        let command = given.text("command")?;
        if command.trim().is_empty() {
            return Err(given.complaint("cannot run a \"command\" that is empty"));
        }
        if command.contains('\0') {
            return Err(given.complaint("cannot run a \"command\" that holds a NUL character"));
        }
        let timeout_ms = match given.optional_integer("timeout")? {
            None => DEFAULT_TIMEOUT_MS,
            Some(timeout_ms) if timeout_ms > 0 => timeout_ms.unsigned_abs().min(MAX_TIMEOUT_MS),
            Some(other) => {
                return Err(given.complaint(&format!("takes a \"timeout\" above 0, not {other}")));
            }
        };
        given.optional_text("description")?;
        Ok(Request { command, timeout: Duration::from_millis(timeout_ms) })
    }

    fn execute(
        &self,
        workspace: &Workspace,
        shell: &Path,
        background: &mut Background,
    ) -> io::Result<(String, Ending)> {
        let earlier = Kept::running_now();
        // One pipe for both streams keeps the order in which they were written.
        let (mut pipe, writer) = io::pipe()?;
        rustix::io::ioctl_fionbio(&pipe, true)?;
        let process = Command::new(shell)
            .arg("-c")
            .arg(self.command)
            .current_dir(&workspace.root)
            .envs(NOBODY_IS_THERE)
            .envs(SAME_FOR_ALL)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        let process = Watched::new(Pid::from_child(&process));
        let mut output = HeadTail::new(HALF_OUTPUT_BYTES, HALF_OUTPUT_BYTES);
        let ending = self.follow(&process, &mut pipe, &mut output, background);
        if let Ending::TimedOut(_) = ending {
            let _ = kill_process_group(process.pid, Signal::KILL);
            process::end_descendants(&earlier, |_, _| {});
        }
        if drain(&mut pipe, |bytes| output.push(bytes)) && !matches!(ending, Ending::TimedOut(_)) {
            background.keep(pipe);
        }
        Ok((output.finish(), ending))
    }

    /// Collects output until the shell ends or its time is over.
    fn follow(
        &self,
        process: &Watched,
        pipe: &mut PipeReader,
        output: &mut HeadTail,
        background: &mut Background,
    ) -> Ending {
        let deadline = Instant::now() + self.timeout;
        let mut buffer = [0; PIPE_BYTES];
        let mut open = true;
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
                return Ending::TimedOut(self.timeout);
            }
            background.discard_output();
            let waited = open.then(|| (pipe.as_fd(), PollFlags::IN));
            process::wait_for(waited, &[process], Some(left.min(ROUND)));
            match available(pipe, &mut buffer) {
                Available::Bytes(length) => output.push(&buffer[..length]),
                Available::Nothing => {}
                Available::Closed => open = false,
            }
        }
    }
}

/// What a pipe that is not waited for has to give.
pub enum Available {
    /// So many bytes are in the buffer now.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// Nothing any more.
    Closed,
}

/// Reads once from a pipe that does not block.
pub fn available(pipe: &mut PipeReader, buffer: &mut [u8]) -> Available {
    match pipe.read(buffer) {
        Ok(0) => Available::Closed,
        Ok(length) => Available::Bytes(length),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Available::Nothing
        }
        Err(_) => Available::Closed,
    }
}

/// Takes what is in the pipe now and no more: a background process may go on writing for ever. True
/// if there is one that could.
pub fn drain(pipe: &mut PipeReader, mut take: impl FnMut(&[u8])) -> bool {
    let mut left = usize::try_from(rustix::io::ioctl_fionread(&*pipe).unwrap_or(0)).unwrap_or(0);
    let mut buffer = [0; PIPE_BYTES];
    loop {
        let wanted = left.clamp(1, PIPE_BYTES);
        match available(pipe, &mut buffer[..wanted]) {
            Available::Closed => return false,
            Available::Bytes(length) if length < left => {
                take(&buffer[..length]);
                left -= length;
            }
            Available::Bytes(length) => {
                take(&buffer[..length]);
                left = 0;
            }
            Available::Nothing => return true,
        }
    }
}

fn outcome(output: &str, ending: Ending) -> Outcome {
    let output = output.trim_end_matches('\n');
    let how = match ending {
        Ending::TimedOut(limit) => format!(
            "[timed out after {} ms: the command and what it started were ended; give a longer `timeout` \
(at most {MAX_TIMEOUT_MS}), or end the command with `&` if it is meant to keep running]",
            limit.as_millis()
        ),
        Ending::Unknown => "[exit code unknown: SIGCHLD is ignored where cotter was started; start it with \
env --default-signal=CHLD]"
            .to_owned(),
        Ending::Status(status) => match (status.exit_status(), status.terminating_signal()) {
            (Some(0), _) if output.is_empty() => return Outcome::ok("(no output)"),
            (Some(0), _) => return Outcome::ok(output),
            (Some(code), _) => format!("[exit code: {code}]"),
            (None, Some(signal)) => format!("[killed by signal {signal}{}]", signal_name(signal)),
            (None, None) => "[ended in an unknown way]".to_owned(),
        },
    };
    Outcome::error(if output.is_empty() { how } else { format!("{output}\n{how}") })
}

/// The usual name of a signal in parentheses, for those that end a process by default.
pub fn signal_name(signal: i32) -> &'static str {
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

fn cannot_start(error: &io::Error, shell: &Path) -> String {
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

    fn arguments(json: &str) -> Arguments {
        serde_json::from_str(json).unwrap()
    }

    fn refused(json: &str) -> String {
        let text = Request::read(&arguments(json)).unwrap_err();
        let (what, schema) = text.split_once("; the schema of its arguments is ").unwrap();
        assert_eq!(schema, SPEC.schema);
        what.to_owned()
    }

    #[test]
    fn the_schema_is_json() {
        let schema: Value = serde_json::from_str(SPEC.schema).unwrap();
        assert_eq!(schema["properties"]["timeout"]["maximum"], MAX_TIMEOUT_MS);
    }

    #[test]
    fn a_timeout_has_a_default_and_a_ceiling() {
        for (json, timeout_ms) in [
            (r#"{"command":"ls"}"#, 120_000),
            (r#"{"command":"ls","timeout":null,"description":null}"#, 120_000),
            (r#"{"command":"ls","timeout":1,"description":"List files"}"#, 1),
            (r#"{"command":"ls","timeout":"5000"}"#, 5000),
            (r#"{"cmd":"ls","timeoutMs":600000}"#, 600_000),
            (r#"{"command":"ls","timeout":900000,"run_in_background":false}"#, 600_000),
        ] {
            let expected = Request { command: "ls", timeout: Duration::from_millis(timeout_ms) };
            assert_eq!(Request::read(&arguments(json)), Ok(expected), "{json}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_schema() {
        for (json, what) in [
            ("{}", "Bash needs \"command\""),
            (r#"{"command":["ls"]}"#, "Bash takes a string as \"command\", not an array"),
            (r#"{"command":null}"#, "Bash needs \"command\""),
            (r#"{"command":" \n"}"#, "Bash cannot run a \"command\" that is empty"),
            (r#"{"command":"a\u0000b"}"#, "Bash cannot run a \"command\" that holds a NUL character"),
            (r#"{"command":"ls","timeout":0}"#, "Bash takes a \"timeout\" above 0, not 0"),
            (r#"{"command":"ls","timeout":-1}"#, "Bash takes a \"timeout\" above 0, not -1"),
            (r#"{"command":"ls","timeout":1.5}"#, "Bash takes a whole number as \"timeout\", not 1.5"),
            (r#"{"command":"ls","description":1}"#, "Bash takes a string as \"description\", not 1"),
            (r#"{"command":"ls","cwd":"/"}"#, "Bash has no argument \"cwd\""),
            (
                r#"{"command":"ls","run_in_background":true}"#,
                "end the command with `&` instead: Bash has no argument \"run_in_background\"",
            ),
        ] {
            assert_eq!(refused(json), what, "{json}");
        }
    }

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
