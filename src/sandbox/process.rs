//! What cotter, supervisor and worker share: starting this program again, waiting for a process, and ending
//! as one has ended. Ending whatever runs below one is in `descendants.rs`.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    self, Pid, PidfdFlags, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus,
};

/// The name by which `main` knows that it is the supervisor.
pub const SUPERVISOR: &str = "cotter-supervisor";
/// The name by which `main` knows that it is the worker.
pub const WORKER: &str = "cotter-worker";
/// The name by which `main` knows that it is to become a command of the user's.
pub const COMMAND: &str = "cotter-command";
/// The name by which `main` knows that it is to become a command of a tool's.
pub const LAUNCH: &str = "cotter-launch";
/// The name by which `main` knows that it is to try a user namespace and end.
pub const TRIAL: &str = "cotter-trial";

/// How often waiting is interrupted where the kernel cannot say that a process has ended.
const WITHOUT_PIDFD: Duration = Duration::from_millis(10);
/// How many ended children are reaped in one go.
pub const REAPED_AT_ONCE: usize = 4096;

/// The command that starts this same program once more under the name `role`.
///
/// Errors: where the program lies cannot be found out.
pub fn start_again(role: &str) -> Result<Command, String> {
    Program::own()?.start_again(role)
}

/// This program's own file, as it was before any tool ran.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    /// Where only a path leads to the file, what tells it from another one: a tool may write where it lies, and
    /// what took its place would be started outside of all containment. The time is that of the last change of
    /// anything, which nobody can set back.
    known_by: Option<KnownBy>,
}

/// Device, number, and time of the last change.
type KnownBy = (u64, u64, (i64, i64));

impl Program {
    /// The kernel's link to the program, which holds even after the file was replaced, or without /proc the path
    /// by which it was started.
    ///
    /// Errors: where the program lies cannot be found out.
    pub fn own() -> Result<Program, String> {
        let link = Path::new("/proc/self/exe");
        if kernel_makes_proc() && link.exists() {
            return Ok(Program { path: link.to_owned(), known_by: None });
        }
        if !kernel_tells_how_it_was_started() {
            return Err("cannot find the program's own file: mount /proc".to_owned());
        }
        let started = Path::new(std::ffi::OsStr::from_bytes(rustix::param::linux_execfn().to_bytes()));
        let not_found = |error| format!("cannot find the program's own file: {error}");
        let path = std::path::absolute(started).map_err(not_found)?;
        let known_by = Some(known_by(&path).map_err(not_found)?);
        Ok(Program { path, known_by })
    }

    /// The command that starts it once more under the name `role`.
    ///
    /// Errors: another file has taken its place.
    pub fn start_again(&self, role: &str) -> Result<Command, String> {
        if self.known_by.is_some() && self.known_by != known_by(&self.path).ok() {
            return Err("another file has taken the place of the program's own: mount /proc, or keep the \
                        program where tools do not write"
                .to_owned());
        }
        let mut command = Command::new(&self.path);
        command.arg0(role);
        Ok(command)
    }
}

/// Whether /proc is the kernel's. Where it is not mounted and a tool may write in the root folder, anything
/// could lie there.
pub(super) fn kernel_makes_proc() -> bool {
    rustix::fs::statfs("/proc").is_ok_and(|data| data.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

fn known_by(path: &Path) -> io::Result<KnownBy> {
    fs::metadata(path).map(|data| (data.dev(), data.ino(), (data.ctime(), data.ctime_nsec())))
}

/// Whether `linux_execfn` can be asked without /proc, which Linux 6.4 brought: before, it panics.
fn kernel_tells_how_it_was_started() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (6, 4),
        _ => false,
    }
}

/// A process whose end can be waited for together with other things.
#[derive(Debug)]
pub struct Watched {
    /// The process.
    pub pid: Pid,
    /// Readable once the process has ended; none on a kernel (or under a filter) without pidfds.
    ended: Option<OwnedFd>,
}

impl Watched {
    /// Watches a process that cannot have been reaped yet: a child of ours, or our parent.
    pub fn new(pid: Pid) -> Watched {
        Watched { pid, ended: process::pidfd_open(pid, PidfdFlags::empty()).ok() }
    }

    /// Whether the process has ended; false where the kernel does not say.
    pub fn has_ended(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| readable(ended.as_fd(), Duration::ZERO))
    }
}

/// Sleeps until `file` has something to read or has lost its other end, one of `processes` has
/// ended, or `limit` is over. It may also return for no reason: the caller looks again.
pub fn wait_for(file: Option<(BorrowedFd<'_>, PollFlags)>, processes: &[&Watched], limit: Option<Duration>) {
    wait_for_any(file.as_slice(), processes, limit);
}

/// The same for any number of files.
pub fn wait_for_any(files: &[(BorrowedFd<'_>, PollFlags)], processes: &[&Watched], limit: Option<Duration>) {
    let mut limit = limit;
    let mut waited: Vec<PollFd<'_>> =
        files.iter().map(|(file, wanted)| PollFd::from_borrowed_fd(*file, *wanted)).collect();
    for watched in processes {
        match &watched.ended {
            Some(ended) => waited.push(PollFd::new(ended, PollFlags::IN)),
            None => limit = Some(limit.map_or(WITHOUT_PIDFD, |limit| limit.min(WITHOUT_PIDFD))),
        }
    }
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    // An error here (a signal, no memory) is one of the returns for no reason.
    let _ = poll(&mut waited, limit.as_ref());
}

/// Whether a read would return at once, with data or with the end, waiting up to `limit` for it.
pub fn readable(file: BorrowedFd<'_>, limit: Duration) -> bool {
    let mut waited = [PollFd::from_borrowed_fd(file, PollFlags::IN)];
    let limit = Timespec::try_from(limit).ok();
    matches!(poll(&mut waited, limit.as_ref()), Ok(ready) if ready > 0)
}

/// Whether the other end of a pipe is gone for good.
pub fn hung_up(file: BorrowedFd<'_>) -> bool {
    let mut waited = [PollFd::from_borrowed_fd(file, PollFlags::empty())];
    let _ = poll(&mut waited, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    waited[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
}

/// What [`reap`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reaped {
    /// How many children had ended.
    pub count: usize,
    /// Whether there are children left, or could be.
    pub children_left: bool,
}

/// Takes note of children that have ended, of at most `limit`, so that none stays a zombie.
///
/// Without the limit this might never return: beside many processes that fork and exit, a process
/// that gets its fair share of the processor can reap fewer than appear.
pub fn reap(limit: usize, mut ended: impl FnMut(Pid, WaitStatus)) -> Reaped {
    let mut count = 0;
    while count < limit {
        match process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                count += 1;
                ended(pid, status);
            }
            Ok(None) => break,
            Err(Errno::INTR) => {}
            Err(_) => return Reaped { count, children_left: false },
        }
    }
    Reaped { count, children_left: true }
}

/// Whether a process that was a child of ours is one no longer, though [`reap`] has not told of its end:
/// where SIGCHLD is ignored, which a program inherits, the kernel reaps children itself.
pub fn was_reaped_by_the_kernel(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    matches!(process::waitid(WaitId::Pid(pid), options), Err(Errno::CHILD))
}

/// Ends this process as one below it has ended: by the same code, or by the same signal if that can end it.
/// Where it cannot (it is ignored), the code is what a shell makes of the signal.
pub fn end_like(status: WaitStatus) -> ExitCode {
    if let Some(code) = status.exit_status() {
        return ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX));
    }
    let signal = status.terminating_signal().unwrap_or_default();
    if let Some(signal) = Signal::from_named_raw(signal) {
        // The core of the one below, if any, is there already.
        let _ = process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // The standard library handles some signals once, to report an overflow of the stack, before they
        // have their usual effect.
        for _ in 0..2 {
            let _ = process::kill_process(process::getpid(), signal);
        }
    }
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// The process that decimal digits name.
pub fn process_number(digits: &str) -> Option<Pid> {
    digits.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_the_place_of_the_program_is_not_started() {
        let folder = std::env::temp_dir().join(format!("cotter-program-test-{own}", own = process::getpid()));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("program");
        fs::write(&path, "").unwrap();
        let program = Program { path: path.clone(), known_by: known_by(&path).ok() };
        assert_eq!(program.start_again("role").unwrap().get_program(), path);
        fs::write(folder.join("other"), "").unwrap();
        fs::rename(folder.join("other"), &path).unwrap();
        let error = program.start_again("role").unwrap_err();
        assert!(error.starts_with("another file has taken the place"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
        assert!(program.start_again("role").is_err());
    }

    #[test]
    fn only_positive_decimal_numbers_name_a_process() {
        assert_eq!(process_number("1"), Pid::from_raw(1));
        for text in ["", "0", "-1", "self", "99999999999"] {
            assert_eq!(process_number(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_pipe_is_hung_up_only_when_its_last_writer_is_gone() {
        let (reader, writer) = io::pipe().unwrap();
        let second = writer.try_clone().unwrap();
        drop(writer);
        assert!(!hung_up(reader.as_fd()));
        drop(second);
        assert!(hung_up(reader.as_fd()));
    }
}
