//! What cotter, supervisor and worker share: starting this program again, waiting for a process,
//! and ending whatever runs below one.
//!
//! Each of the three is a child subreaper, so a process below it that loses its parent becomes its
//! child and cannot get away, whatever it forks and whichever session it opens.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::thread;
use std::time::{Duration, Instant};

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
/// How long ending processes goes on without one of them going: only one stuck inside the kernel
/// (a dead network disk) gets there, and it cannot run on once it comes out.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many ended children are reaped in one go.
pub const REAPED_AT_ONCE: usize = 4096;
/// The largest process number that Linux gives out.
const LAST_PROCESS: i32 = 4_194_304;

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
fn kernel_makes_proc() -> bool {
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

/// Some of the processes below this one, known again with what they start later: those that
/// [`end_descendants`] leaves alone, or those that [`end_tree`] ends.
#[derive(Debug, Default)]
pub struct Kept {
    processes: Vec<Pid>,
    groups: Vec<Pid>,
    sessions: Vec<Pid>,
    /// A variable of the environment, `NAME=value` or with any value `NAME=`, that only these have.
    mark: Option<String>,
}

impl Kept {
    /// Nothing is kept.
    pub fn nothing() -> Kept {
        Kept::default()
    }

    /// Everything that runs below this process now. A process is known again by its number or that
    /// of an ancestor, by its process group or by its session: what these processes start later and
    /// orphan is still theirs, unless it changed all of that in between. What carries the variable `mark`,
    /// with any value, is kept too. Children that have ended are handed to `ended`.
    pub fn running_now(mark: &str, ended: impl FnMut(Pid, WaitStatus)) -> Kept {
        let mut kept = Kept { mark: Some(format!("{mark}=")), ..Kept::default() };
        if reap(REAPED_AT_ONCE, ended).children_left {
            let tree = Tree::new();
            kept.processes = tree.children(process::getpid());
            kept.add_descendants(&tree);
        }
        kept
    }

    /// A child of ours, if it still runs, and everything below it or with this variable, `NAME=value`, in its
    /// environment: what was orphaned with a group and session of its own is known by that alone. It gets away
    /// only where it has neither, or where the kernel does not show it.
    pub fn below(child: Option<Pid>, mark: String) -> Kept {
        let mut kept = Kept { mark: Some(mark), ..Kept::default() };
        let tree = Tree::new();
        let children = tree.children(process::getpid());
        kept.processes =
            children.into_iter().filter(|pid| Some(*pid) == child || kept.is_marked(*pid)).collect();
        kept.add_descendants(&tree);
        kept
    }

    fn add_descendants(&mut self, tree: &Tree) {
        let mut next = 0;
        while let Some(&pid) = self.processes.get(next) {
            next += 1;
            self.processes.extend(tree.children(pid));
            self.groups.extend(foreign_group(pid));
            self.sessions.extend(process::getsid(Some(pid)).ok().filter(|session| !leads_us(*session)));
        }
    }

    fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.mark.is_none()
    }

    fn holds(&self, pid: Pid) -> bool {
        if self.is_empty() {
            return false;
        }
        self.processes.contains(&pid)
            || process::getpgid(Some(pid)).is_ok_and(|group| self.groups.contains(&group))
            || process::getsid(Some(pid)).is_ok_and(|session| self.sessions.contains(&session))
            || self.is_marked(pid)
    }

    fn is_marked(&self, pid: Pid) -> bool {
        let Some(mark) = &self.mark else { return false };
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| match mark.ends_with('=') {
            true => variable.starts_with(mark.as_bytes()),
            false => variable == mark.as_bytes(),
        })
    }
}

/// Ends every process below this one but those that are kept, at any depth, and reaps them. Children
/// that end while this runs are handed to `ended`.
pub fn end_descendants(kept: &Kept, ended: impl FnMut(Pid, WaitStatus)) {
    end_children(&Chosen::AllBut(kept), ended);
}

/// Ends the processes of `tree`, at any depth, and no others below this one.
pub fn end_tree(tree: &Kept, ended: impl FnMut(Pid, WaitStatus)) {
    end_children(&Chosen::Only(tree), ended);
}

/// Which of the children are ended.
enum Chosen<'a> {
    AllBut(&'a Kept),
    Only(&'a Kept),
}

impl Chosen<'_> {
    fn holds(&self, pid: Pid) -> bool {
        match self {
            Chosen::AllBut(kept) => !kept.holds(pid),
            Chosen::Only(tree) => tree.holds(pid),
        }
    }

    fn is_everything(&self) -> bool {
        matches!(self, Chosen::AllBut(kept) if kept.is_empty())
    }
}

/// Only children are killed, never their children by number: a child's number is its own until it is
/// reaped here, any other could have passed to a stranger. What a killed child had started becomes
/// our child, as this process is a subreaper, and has its turn in the next round.
fn end_children(chosen: &Chosen, mut ended: impl FnMut(Pid, WaitStatus)) {
    if !reap(1, &mut ended).children_left {
        return;
    }
    let mut progress = Instant::now();
    let mut idle_rounds = 0_u32;
    while progress.elapsed() < PATIENCE {
        let killed = kill_children(chosen, &mut ended);
        let reaped = reap(killed.max(REAPED_AT_ONCE), &mut ended);
        if !reaped.children_left {
            return;
        }
        // Where others live on, those that end of themselves are no sign that there is more to do.
        if reaped.count > 0 && (killed > 0 || chosen.is_everything()) {
            progress = Instant::now();
            idle_rounds = 0;
            continue;
        }
        idle_rounds += 1;
        // A list read while processes come and go may lack one, so an empty one is read again. What
        // may not be killed (a program of another user, started by set-user-id) is not counted.
        if killed == 0 && idle_rounds >= 3 {
            return;
        }
        thread::sleep(Duration::from_micros(50) * idle_rounds.min(200));
    }
}

/// Kills the chosen children, and the process groups they are in: the kernel kills a group
/// between no two forks of its members. Returns how many were sent the signal.
///
/// The list has the latest last. Those are killed first, since they are the ones that still run when
/// something forks and exits without end; before them there may be thousands of its zombies.
fn kill_children(chosen: &Chosen, ended: &mut impl FnMut(Pid, WaitStatus)) -> usize {
    let tree = Tree::new();
    if matches!(tree, Tree::Unknown) {
        // Without /proc nothing says which children are new. The caller that keeps some has killed
        // the process group it knows; what left that group lives until everything is ended.
        return if chosen.is_everything() { kill_child_by_number(ended) } else { 0 };
    }
    let mut killed = 0;
    let mut groups = Vec::new();
    for pid in tree.children(process::getpid()).into_iter().rev().filter(|pid| chosen.holds(*pid)) {
        if let Some(group) = foreign_group(pid)
            && !groups.contains(&group)
        {
            let _ = process::kill_process_group(group, Signal::KILL);
            groups.push(group);
        }
        killed += usize::from(process::kill_process(pid, Signal::KILL).is_ok());
    }
    killed
}

/// Without /proc: tries numbers until one is a child of ours, which waiting for it by number tells, and
/// ends that one. Its children become ours then. The caller sees what is left and comes again.
///
/// Numbers are given out upwards, so children most often follow our own; where few numbers are
/// allowed (32768 is usual) they start again from below; trying all there can be takes a second.
fn kill_child_by_number(ended: &mut impl FnMut(Pid, WaitStatus)) -> usize {
    let own = process::getpid().as_raw_nonzero().get();
    let near = LAST_PROCESS.min(own.saturating_add(32_768));
    for number in (own + 1..=near).chain(2..own).chain(near + 1..=LAST_PROCESS) {
        let Some(pid) = Pid::from_raw(number) else { continue };
        if !matches!(process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(None)) {
            continue;
        }
        if let Some(group) = foreign_group(pid) {
            let _ = process::kill_process_group(group, Signal::KILL);
        }
        if process::kill_process(pid, Signal::KILL).is_ok() {
            if let Ok(Some((pid, status))) = process::waitpid(Some(pid), WaitOptions::empty()) {
                ended(pid, status);
            }
            return 1;
        }
    }
    0
}

/// The process group of a process below this one, unless it is our own.
fn foreign_group(pid: Pid) -> Option<Pid> {
    process::getpgid(Some(pid)).ok().filter(|group| !leads_us(*group))
}

/// Whether a group or session below this process is the one that this process is in itself. It is named
/// after the supervisor, which is this process or, seen from the worker, the one above. cotter is never in a
/// session with what it looks at: its supervisor has one of its own.
///
/// Our own numbers are not asked for: where cotter's are those of a process outside its process namespace,
/// the kernel answers 0, which rustix does not expect.
fn leads_us(leader: Pid) -> bool {
    leader == process::getpid() || Some(leader) == process::getppid()
}

/// How the children of a process are found out.
enum Tree {
    /// The kernel lists them for each task.
    Listed,
    /// It was built without that list: pairs of a process and its parent, from `/proc/*/stat`.
    Paired(Vec<(Pid, Pid)>),
    /// There is no /proc, or it is that of another process namespace.
    Unknown,
}

impl Tree {
    fn new() -> Tree {
        let own = process::getpid();
        let is_ours = || fs::read_link("/proc/self").ok() == Some(PathBuf::from(own.to_string()));
        if !kernel_makes_proc() || !is_ours() {
            Tree::Unknown
        } else if Path::new(&format!("/proc/self/task/{own}/children")).exists() {
            Tree::Listed
        } else {
            Tree::Paired(every_process_with_its_parent())
        }
    }

    fn children(&self, parent: Pid) -> Vec<Pid> {
        match self {
            Tree::Listed => listed_children(parent).unwrap_or_default(),
            Tree::Paired(pairs) => {
                pairs.iter().filter(|(_, above)| *above == parent).map(|(pid, _)| *pid).collect()
            }
            Tree::Unknown => Vec::new(),
        }
    }
}

/// The children of every task of a process: one that a thread started is listed below that thread.
fn listed_children(parent: Pid) -> io::Result<Vec<Pid>> {
    let mut children = Vec::new();
    for task in fs::read_dir(format!("/proc/{parent}/task"))? {
        let list = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(process_number));
    }
    Ok(children)
}

fn every_process_with_its_parent() -> Vec<(Pid, Pid)> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = process_number(entry.file_name().to_str()?)?;
            let stat = fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parent_in_stat(&stat)?))
        })
        .collect()
}

/// The parent in the text of `/proc/PID/stat`: the second word after the command's name, which
/// stands in parentheses and may hold anything, parentheses too.
fn parent_in_stat(stat: &[u8]) -> Option<Pid> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    process_number(rest.split_ascii_whitespace().nth(1)?)
}

/// The process that decimal digits name.
pub fn process_number(digits: &str) -> Option<Pid> {
    digits.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_a_name_with_parentheses_and_spaces() {
        let stat = b"4242 (a) 1 (b) c) S 17 4242 4242 0 -1 4194560";
        assert_eq!(parent_in_stat(stat), Pid::from_raw(17));
        assert_eq!(parent_in_stat(b"4242 (name"), None);
        assert_eq!(parent_in_stat(b"2 (kthreadd) S 0 0 0"), None);
    }

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
    fn both_ways_to_find_children_agree() {
        let own = process::getpid();
        let parent = process::getppid().expect("a test has a parent");
        let pairs = every_process_with_its_parent();
        assert!(pairs.contains(&(own, parent)));
        assert!(Tree::Paired(pairs).children(parent).contains(&own));
        assert!(listed_children(parent).unwrap().contains(&own));
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
