//! The process between cotter and the worker, or a command in its place: it makes namespaces and a private
//! temporary folder, waits until one of the two is gone, then ends everything below it and removes the folder.
//!
//! It never reads a request and never runs a tool, so nothing that a tool does makes it busy.

use std::ffi::OsString;
use std::io::{self, Stdin, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Pid, Signal, WaitStatus, getpid, getppid, kill_process, set_child_subreaper, setsid};

use super::descendants::{self, Kept};
use super::namespaces::Namespaces;
use super::policy::{Mode, Policy};
use super::process::{self, Watched};
use super::{Held, temp_folder};
use crate::output;

/// How often the worker is looked after, and orphans are reaped: these go to the worker, so there are
/// hardly ever any here.
const ROUND: Duration = Duration::from_secs(1);

/// The supervisor's whole life. Its arguments are [`Orders`]. Above a worker, standard input is the request
/// pipe and standard output the answer pipe; above a command, both are the user's.
pub fn supervisor(arguments: &[OsString]) -> ExitCode {
    let Some(orders) = Orders::read(arguments) else {
        announce("this name of the program is for its own use");
        return ExitCode::FAILURE;
    };
    let is_command = !orders.command.is_empty();
    match supervise(&orders) {
        Ok(Some(status)) if is_command => process::end_like(status),
        Ok(_) if is_command => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(text) => {
            if is_command {
                output::complain(&text)
            } else {
                announce(&text)
            }
            ExitCode::FAILURE
        }
    }
}

/// What the supervisor is told.
struct Orders {
    cotter: Watched,
    temp_folder: Option<PathBuf>,
    policy: Policy,
    /// What runs below in place of the worker; empty for the worker.
    command: Vec<OsString>,
}

impl Orders {
    fn read(arguments: &[OsString]) -> Option<Orders> {
        let [number, temp_folder, rest @ ..] = arguments else { return None };
        let pid = number.to_str().and_then(process::process_number)?;
        if getppid() != Some(pid) {
            return None;
        }
        let (policy, command) = Policy::read(rest)?;
        Some(Orders {
            cotter: Watched::new(pid),
            temp_folder: temp_folder::of_argument(temp_folder).map(PathBuf::from),
            policy,
            command: command.to_vec(),
        })
    }

    /// The pipe by which cotter says that it needs the worker no more.
    fn requests(&self) -> Option<Stdin> {
        self.command.is_empty().then(io::stdin)
    }

    /// Whether cotter has ended or has closed the request pipe. The pipe alone is not enough: a tool may
    /// have opened its writing end through /proc.
    fn cotter_is_gone(&self) -> bool {
        getppid() != Some(self.cotter.pid)
            || self.requests().is_some_and(|requests| process::hung_up(requests.as_fd()))
    }
}

/// How what runs below ended, if that came before cotter's end.
fn supervise(orders: &Orders) -> Result<Option<WaitStatus>, String> {
    Held::keep();
    // A session of its own: a Ctrl-C at the terminal is for cotter, and no tool gets the terminal.
    setsid().map_err(|error| format!("cannot open a session for tools: {error}"))?;
    set_child_subreaper(Some(getpid()))
        .map_err(|error| format!("cannot become the reaper of tool processes: {error}"))?;
    let namespaces = match orders.policy.mode {
        Mode::Off => Namespaces::Shared,
        Mode::WorkspaceWrite | Mode::ReadOnly => {
            // What cotter was started with (descriptors of a build, of a terminal) is not for tools.
            close_fds::set_fds_cloexec(3, &[]);
            Namespaces::enter(&orders.policy)
        }
    };
    orders.temp_folder.as_deref().map_or(Ok(()), temp_folder::make)?;
    let status = start(orders, namespaces).map(|below| watch(orders, &below));
    descendants::end_descendants(&Kept::nothing(), |_, _| {});
    // cotter tries it once more, and says so if that fails.
    let _ = orders.temp_folder.as_deref().map(temp_folder::remove);
    status
}

/// Returns when cotter is gone, or what runs below: then with its status.
fn watch(orders: &Orders, below: &Watched) -> Option<WaitStatus> {
    let requests = orders.requests();
    let mut status = None;
    while status.is_none() && !orders.cotter_is_gone() {
        // Asked for nothing, poll still reports that the pipe was hung up, and unread requests do
        // not wake it.
        let pipe = requests.as_ref().map(|requests| (requests.as_fd(), PollFlags::empty()));
        process::wait_for(pipe, &[&orders.cotter, below], Some(ROUND));
        if requests.is_some() {
            // A tool may have stopped its parent, which would then end no command at its time, and cotter
            // would wait for an answer for ever. To a process that runs the signal means nothing.
            let _ = kill_process(below.pid, Signal::CONT);
        }
        let reaped = process::reap(process::REAPED_AT_ONCE, |pid, ended_with| {
            if pid == below.pid {
                status = Some(ended_with);
            }
        });
        if !reaped.children_left {
            break;
        }
    }
    status
}

fn start(orders: &Orders, namespaces: Namespaces) -> Result<Watched, String> {
    let role = if orders.command.is_empty() { process::WORKER } else { process::COMMAND };
    let child = process::start_again(role)?
        .arg(getpid().to_string())
        .arg(temp_folder::argument(orders.temp_folder.as_deref()))
        .arg(namespaces.argument())
        .args(orders.policy.arguments())
        .args(&orders.command)
        .envs(orders.temp_folder.iter().map(|folder| ("TMPDIR", folder)))
        .spawn()
        .map_err(|error| format!("cannot start a process for tools: {error}"))?;
    Ok(Watched::new(Pid::from_child(&child)))
}

/// Writes a start-up line to cotter. If cotter is gone there is nobody to tell.
fn announce(text: &str) {
    let mut answers = io::stdout().lock();
    let _ = writeln!(answers, "{text}");
    let _ = answers.flush();
}
