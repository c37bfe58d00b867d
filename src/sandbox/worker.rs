//! The process that runs Write, Edit, Bash and executables: it reads one request a line, runs it
//! and writes one answer a line, with the request's number, until there are no more.
//!
//! It dies with the supervisor. What its tools leave behind becomes its children.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{getpid, set_child_subreaper};

use super::containment::{self, Orders, Signals};
use super::{READY, UNCONTAINED, nothing, process};
use crate::tools::background::Background;

/// How often the processes that earlier calls left running are attended to, if there are any.
const ROUND: Duration = Duration::from_millis(100);

/// The worker's whole life. Its arguments are [`Orders`]. `execute` turns a request into an answer, each one
/// JSON text without a newline; [`Background`] is what calls leave running.
pub fn worker(arguments: &[OsString], execute: fn(&str, &mut Background) -> String) -> ExitCode {
    match prepare(arguments).and_then(|(pipes, signals)| serve(pipes, signals, execute)) {
        Ok(()) => ExitCode::SUCCESS,
        // The supervisor and cotter notice the end; there is nobody else to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

struct Pipes {
    requests: BufReader<File>,
    answers: File,
}

fn prepare(arguments: &[OsString]) -> io::Result<(Pipes, Signals)> {
    let (orders, _) =
        Orders::take(arguments).ok_or_else(|| io::Error::other("not started by the supervisor"))?;
    set_child_subreaper(Some(getpid()))?;
    let mut pipes = take_pipes()?;
    match containment::put_on(&orders) {
        Ok(signals) => Ok((pipes, signals)),
        Err(reason) => {
            pipes.answers.write_all(format!("{UNCONTAINED} {reason}\n").as_bytes())?;
            Err(io::Error::other(reason))
        }
    }
}

/// Moves the pipes away from descriptors 0 and 1, which tools would inherit.
fn take_pipes() -> io::Result<Pipes> {
    let requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let nothing = nothing::file()?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(Pipes { requests: BufReader::new(requests), answers })
}

fn serve(mut pipes: Pipes, signals: Signals, execute: fn(&str, &mut Background) -> String) -> io::Result<()> {
    let mut background = Background::new(signals);
    background.heed(pipes.requests.get_ref().try_clone()?);
    pipes.answers.write_all(format!("{READY}\n").as_bytes())?;
    while let Some(request) = next_request(&mut pipes.requests, &mut background)? {
        let (number, request) = request.split_once(' ').unwrap_or_default();
        let answer = execute(request, &mut background);
        pipes.answers.write_all(format!("{number} {answer}\n").as_bytes())?;
    }
    Ok(())
}

/// The next line, or none at the end. Meanwhile orphans are reaped, else a program that double-forks
/// for ever would fill the process table with zombies while cotter waits for the model.
fn next_request(requests: &mut BufReader<File>, background: &mut Background) -> io::Result<Option<String>> {
    // There is one answer to each request, so nothing of the next one is in the buffer yet.
    while background.attend() && !process::readable(requests.get_ref().as_fd(), Duration::ZERO) {
        process::wait_for(Some((requests.get_ref().as_fd(), PollFlags::IN)), &[], Some(ROUND));
    }
    let mut line = String::new();
    // An empty line was to end a call that had ended by itself.
    while requests.read_line(&mut line)? == 1 {
        line.clear();
    }
    Ok(line.strip_suffix('\n').map(str::to_owned))
}
