//! What runs below this process, and how it is ended, all of it or some.
//!
//! cotter, supervisor and worker are child subreapers, so a process below one of them that loses its parent becomes
//! its child and cannot get away, whatever it forks and whichever session it opens.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{self, Pid, Signal, WaitOptions, WaitStatus};

use super::process::{REAPED_AT_ONCE, kernel_makes_proc, process_number, reap};

/// How long ending processes goes on without one of them going: only one stuck inside the kernel
/// (a dead network disk) gets there, and it cannot run on once it comes out.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest process number that Linux gives out.
const LAST_PROCESS: i32 = 4_194_304;

/// Some of the processes below this one, known again with what they start later: those that
/// [`end_descendants`] leaves alone, or those that [`end_tree`] ends.
#[derive(Debug, Default)]
pub struct Kept {
    processes: Vec<Pid>,
    groups: Vec<Pid>,
    /// By number: 0 is the session that began outside of this process namespace.
    sessions: Vec<i32>,
    /// A variable of the environment, `NAME=value` or with any value `NAME=`, that only these have.
    mark: Option<String>,
}

impl Kept {
    /// Nothing is kept.
    pub fn nothing() -> Kept {
        Kept::default()
    }

    /// What runs below cotter before its first supervisor starts, such as a server that a script started before
    /// it became cotter, with what that starts later. Whatever is in cotter's own session is kept too: the
    /// supervisor opens one of its own, and nothing below it can come back.
    pub fn before_tools() -> Kept {
        let mut kept = Kept::default();
        if reap(REAPED_AT_ONCE, |_, _| {}).children_left {
            let tree = Tree::new();
            kept.processes = tree.children(process::getpid());
            let mut next = 0;
            while let Some(&pid) = kept.processes.get(next) {
                next += 1;
                kept.processes.extend(tree.children(pid));
                kept.sessions.extend(session(pid));
            }
            kept.sessions.extend(session(process::getpid()));
        }
        kept
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
            let foreign = |session: &i32| Pid::from_raw(*session).is_none_or(|leader| !leads_us(leader));
            self.sessions.extend(session(pid).filter(foreign));
        }
    }

    fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.mark.is_none()
    }

    fn holds(&self, pid: Pid) -> bool {
        if self.is_empty() {
            return false;
        }
        let is_in_group = || process::getpgid(Some(pid)).is_ok_and(|group| self.groups.contains(&group));
        self.processes.contains(&pid)
            || (!self.groups.is_empty() && is_in_group())
            || session(pid).is_some_and(|session| self.sessions.contains(&session))
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

/// The session of a process by number, which the call for it gives as a process: there is none of the number 0.
fn session(pid: Pid) -> Option<i32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    word_in_stat(&stat, 3)?.parse().ok()
}

fn parent_in_stat(stat: &[u8]) -> Option<Pid> {
    process_number(word_in_stat(stat, 1)?)
}

/// A word in the text of `/proc/PID/stat`, counted from 0 behind the command's name, which stands in
/// parentheses and may hold anything, parentheses too.
fn word_in_stat(stat: &[u8], index: usize) -> Option<&str> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().nth(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_found_behind_a_name_with_parentheses_and_spaces() {
        let stat = b"4242 (a) 1 (b) c) S 17 4242 4242 0 -1 4194560";
        assert_eq!(parent_in_stat(stat), Pid::from_raw(17));
        assert_eq!(word_in_stat(stat, 3), Some("4242"));
        assert_eq!(parent_in_stat(b"4242 (name"), None);
        assert_eq!(parent_in_stat(b"2 (kthreadd) S 0 0 0"), None);
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
}
