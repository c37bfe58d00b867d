//! The process between cotter and the worker: it waits until one of the two is gone, then ends
//! everything below it and removes the private temporary folder.
//!
//! It never reads a request and never runs a tool, so nothing that a tool does makes it busy.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_child_subreaper, setsid};

use super::process::{self, Kept, Watched};
use super::remove_folder;

/// How often the worker is looked after, and orphans are reaped: these go to the worker, so there are
/// hardly ever any here.
const ROUND: Duration = Duration::from_secs(1);

/// The supervisor's whole life. Its arguments: cotter's process number and the folder in which the
/// temporary folder is made. Standard input is the request pipe, standard output the answer pipe.
pub fn supervisor(arguments: &[OsString]) -> ExitCode {
    let result = Cotter::read(arguments).and_then(|(cotter, temp_parent)| supervise(&cotter, &temp_parent));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            announce(&text);
            ExitCode::FAILURE
        }
    }
}

/// The process above, as seen from here.
struct Cotter(Watched);

impl Cotter {
    fn read(arguments: &[OsString]) -> Result<(Cotter, PathBuf), String> {
        let [number, temp_parent] = arguments else {
            return Err("this name of the program is for its own use".to_owned());
        };
        let pid = number.to_str().and_then(process::process_number).filter(|pid| getppid() == Some(*pid));
        let pid = pid.ok_or("this name of the program is for its own use")?;
        Ok((Cotter(Watched::new(pid)), PathBuf::from(temp_parent)))
    }

    /// Whether cotter has ended or has closed the request pipe. The pipe alone is not enough: a tool
    /// may have opened its writing end through /proc.
    fn is_gone(&self) -> bool {
        getppid() != Some(self.0.pid) || process::hung_up(io::stdin().as_fd())
    }
}

fn supervise(cotter: &Cotter, temp_parent: &Path) -> Result<(), String> {
    // A session of its own: a Ctrl-C at the terminal is for cotter, and no tool gets the terminal.
    setsid().map_err(|error| format!("cannot open a session for tools: {error}"))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| format!("cannot become the reaper of tool processes: {error}"))?;
    // Restrictions that hold for everything below (namespaces) belong here.
    let temp_folder = make_temp_folder(temp_parent)?;
    let name = temp_folder.file_name().unwrap_or_default().to_string_lossy();
    announce(&format!("temporary folder {name}"));
    let started = start_worker(&temp_folder);
    if let Ok(worker) = &started {
        watch(cotter, worker);
    }
    process::end_descendants(&Kept::nothing(), |_, _| {});
    remove_folder(&temp_folder);
    started.map(|_| ())
}

/// Returns when cotter or the worker is gone.
fn watch(cotter: &Cotter, worker: &Watched) {
    let requests = io::stdin();
    let mut worker_ended = false;
    while !worker_ended && !cotter.is_gone() {
        // Asked for nothing, poll still reports that the pipe was hung up, and unread requests do
        // not wake it.
        process::wait_for(Some((requests.as_fd(), PollFlags::empty())), &[&cotter.0, worker], Some(ROUND));
        // A tool may have stopped its parent, which would then end no command at its time, and cotter would
        // wait for an answer for ever. To a process that runs the signal means nothing.
        let _ = kill_process(worker.pid, Signal::CONT);
        let reaped = process::reap(process::REAPED_AT_ONCE, |pid, _| worker_ended |= pid == worker.pid);
        worker_ended |= !reaped.children_left;
    }
}

fn start_worker(temp_folder: &Path) -> Result<Watched, String> {
    let child = process::start_again(process::WORKER)?
        .arg(getpid().to_string())
        .env("TMPDIR", temp_folder)
        .spawn()
        .map_err(|error| format!("cannot start a process for tools: {error}"))?;
    Ok(Watched::new(Pid::from_child(&child)))
}

/// Makes a folder that only its owner can enter. The number has a fixed width, so that outputs that
/// hold the path are cut at the same place in every run.
fn make_temp_folder(temp_parent: &Path) -> Result<PathBuf, String> {
    let own = getpid().as_raw_nonzero();
    for attempt in 0..1000 {
        let folder = temp_parent.join(format!("cotter-{own:07}-{attempt}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                let parent = temp_parent.display();
                return Err(format!(
                    "cannot make a temporary folder in '{parent}': {error}; set TMPDIR to a folder that can be written"
                ));
            }
        }
    }
    Err(format!("cannot make a temporary folder in '{}': remove old cotter-* folders", temp_parent.display()))
}

/// Writes a start-up line to cotter. If cotter is gone there is nobody to tell.
fn announce(text: &str) {
    let mut answers = io::stdout().lock();
    let _ = writeln!(answers, "{text}");
    let _ = answers.flush();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_temporary_folder_is_new_and_private_and_its_parent_is_named_when_it_fails() {
        let parent = std::env::temp_dir().join(format!("cotter-supervisor-test-{}", getpid()));
        let error = make_temp_folder(&parent).unwrap_err();
        assert_eq!(
            error,
            format!(
                "cannot make a temporary folder in '{}': No such file or directory (os error 2); set TMPDIR to a folder that can be written",
                parent.display()
            )
        );
        std::fs::create_dir(&parent).unwrap();
        let first = make_temp_folder(&parent).unwrap();
        let second = make_temp_folder(&parent).unwrap();
        assert_ne!(first, second);
        assert_eq!(std::fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o700);
        // A folder without permissions inside does not keep it from being removed.
        let locked = first.join("locked/inner");
        std::fs::create_dir_all(&locked).unwrap();
        std::fs::set_permissions(first.join("locked"), std::fs::Permissions::from_mode(0o000)).unwrap();
        remove_folder(&parent);
        assert!(!parent.exists());
    }
}
