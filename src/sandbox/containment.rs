//! The containment of tools, put together: looked for by cotter, put on by the worker.
//!
//! It is whole or it is a failure; nothing here makes do with less.

use std::ffi::OsString;
use std::path::Path;

use rustix::process::{
    DumpableBehavior, Signal, getppid, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::filesystem::Landlock;
use super::namespaces::Namespaces;
use super::policy::{Mode, Policy};
use super::syscalls::Elsewhere;
use super::{privileges, process, syscalls, temp_folder};

/// Whether tools can be contained here, as far as that can be told without restricting anything.
///
/// Errors: what is missing.
pub fn is_offered() -> Result<(), String> {
    Landlock::is_offered()?;
    match syscalls::filters_are_offered() {
        true => Ok(()),
        false => Err("the kernel offers no filter of system calls (CONFIG_SECCOMP_FILTER)".to_owned()),
    }
}

/// What a process below the supervisor is told.
pub struct Orders<'a> {
    temp_folder: Option<&'a Path>,
    namespaces: Namespaces,
    policy: Policy,
}

impl Orders<'_> {
    /// The orders among the arguments that the supervisor gives, and what follows them. From now on the
    /// process dies with the supervisor.
    ///
    /// There are none if it is another process that gave them, or if the supervisor is dead already.
    pub fn take(arguments: &[OsString]) -> Option<(Orders<'_>, &[OsString])> {
        let [supervisor, temp_folder, namespaces, policy @ ..] = arguments else { return None };
        let supervisor = process::process_number(supervisor.to_str()?)?;
        let (policy, rest) = Policy::read(policy)?;
        let namespaces = Namespaces::read(namespaces)?;
        set_parent_process_death_signal(Some(Signal::KILL)).ok()?;
        // Had the supervisor died before the line above, nothing would end this process.
        if getppid() != Some(supervisor) {
            return None;
        }
        Some((Orders { temp_folder: temp_folder::of_argument(temp_folder), namespaces, policy }, rest))
    }
}

/// What is left to refuse to the programs that a contained process starts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Signals {
    /// Nothing: the kernel judges signals, or there is no containment.
    #[default]
    Judged,
    /// Signals, which the process itself cannot do without: it ends the programs when their time is over.
    ToBeRefused,
}

/// Puts it on: from now on this process, and all that it starts, is contained.
///
/// Errors: what cannot be enforced. The process may be contained in part then and must run nothing.
pub fn put_on(orders: &Orders) -> Result<Signals, String> {
    if orders.policy.mode == Mode::Off {
        return Ok(Signals::Judged);
    }
    let landlock = Landlock::of_kernel()?;
    // Tools are not to look into this process. What it executes can be looked into again.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| format!("the process for tools cannot be closed to them: {error}"))?;
    privileges::give_up().map_err(|error| format!("privileges cannot be given up: {error}"))?;
    let mut folders: Vec<&Path> = orders.policy.writable.iter().map(|folder| folder.as_path()).collect();
    folders.extend(orders.temp_folder);
    landlock.restrict(&folders)?;
    syscalls::refuse(Elsewhere::new(landlock, orders.namespaces, orders.policy.network))?;
    Ok(if landlock.judges_signals() { Signals::Judged } else { Signals::ToBeRefused })
}
