//! `cotter sandbox`: any command inside the same containment that tools get, with the user's own standard
//! streams, and its status passed on.
//!
//! As with tools there is a supervisor in between, so nothing that the command starts outlives it, nor cotter.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, set_child_subreaper, waitpid};

use super::containment::{self, Orders, Signals};
use super::descendants::{self, Kept};
use super::process::{self, SUPERVISOR};
use super::{Setup, remove_private, syscalls, temp_folder};
use crate::error::Error;
use crate::output;

/// The exit codes of env(1) and timeout(1) for a command that is not found, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_EXECUTABLE: u8 = 126;

/// cotter's side: runs the command, waits for its end, and ends this process likewise.
///
/// # Errors
///
/// `Internal`: no process can be started, or how it ended is not known.
pub fn run(setup: &Setup, command: &[OsString]) -> Result<ExitCode, Error> {
    // Should the supervisor be killed, what ran below it comes to cotter instead of init.
    set_child_subreaper(Some(getpid()))
        .map_err(|error| Error::Internal(format!("cannot become the reaper of the command: {error}")))?;
    let earlier = Kept::before_tools();
    let temp_folder = setup.temp_parent.as_deref().map(temp_folder::new_path);
    let child = process::start_again(SUPERVISOR)
        .map_err(Error::Internal)?
        .arg(getpid().to_string())
        .arg(temp_folder::argument(temp_folder.as_deref()))
        .args(setup.policy.arguments())
        .args(command)
        .env_clear()
        .envs(setup.environment.for_tools())
        .spawn()
        .map_err(|error| Error::Internal(format!("cannot start a process for the command: {error}")))?;
    let status = end_of(Pid::from_child(&child));
    descendants::end_descendants(&earlier, |_, _| {});
    // The supervisor removes its folder unless it was killed.
    remove_private(temp_folder.as_deref());
    let status = status.map_err(|error| {
        Error::Internal(format!("how the command ended is not known: {error} (is SIGCHLD ignored here?)"))
    })?;
    Ok(process::end_like(status))
}

fn end_of(pid: Pid) -> Result<WaitStatus, Errno> {
    loop {
        match waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// The whole life of the process that becomes the command. It returns only if it cannot.
pub fn become_command(arguments: &[OsString]) -> ExitCode {
    let Some((orders, command)) = Orders::take(arguments) else { return ExitCode::FAILURE };
    match containment::put_on(&orders) {
        Ok(Signals::Judged) => execute(command),
        Ok(Signals::ToBeRefused) => launch(command),
        Err(missing) => uncontained(&missing),
    }
}

/// The whole life of the process that becomes a program without the right to send signals.
pub fn launch(command: &[OsString]) -> ExitCode {
    match syscalls::refuse_signals() {
        Ok(()) => execute(command),
        Err(missing) => uncontained(&missing),
    }
}

fn uncontained(missing: &str) -> ExitCode {
    let error = Error::uncontained_command(missing);
    output::complain(&error.to_string());
    ExitCode::from(error.exit_code())
}

fn execute(command: &[OsString]) -> ExitCode {
    let [program, rest @ ..] = command else { return ExitCode::FAILURE };
    let error = Command::new(program).args(rest).exec();
    output::complain(&format!("cannot run '{}': {error}", program.to_string_lossy()));
    ExitCode::from(match error.kind() {
        io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_EXECUTABLE,
    })
}
