//! What tools may do in a run: decided where the command line is read, enforced where tools run.
//!
//! It goes from one process to the next as arguments, so that nothing of it is read from a place that a
//! tool can write to.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// How far tools are contained.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// They write in the workspace and in their private temporary folder.
    #[default]
    WorkspaceWrite,
    /// They write in their private temporary folder alone.
    ReadOnly,
    /// They may do whatever the user may.
    Off,
}

impl Mode {
    /// Every mode, as `--sandbox` names them.
    pub const NAMES: [&str; 3] = ["workspace-write", "read-only", "off"];

    /// The mode of a name.
    pub fn named(name: &str) -> Option<Mode> {
        match name {
            "workspace-write" => Some(Mode::WorkspaceWrite),
            "read-only" => Some(Mode::ReadOnly),
            "off" => Some(Mode::Off),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mode::WorkspaceWrite => "workspace-write",
            Mode::ReadOnly => "read-only",
            Mode::Off => "off",
        }
    }
}

/// Whether tools reach the network.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// They have one of their own, with nobody else in it, or none.
    #[default]
    Own,
    /// They have the machine's.
    Shared,
}

impl Network {
    fn named(name: &str) -> Option<Network> {
        match name {
            "own-network" => Some(Network::Own),
            "shared-network" => Some(Network::Shared),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Network::Own => "own-network",
            Network::Shared => "shared-network",
        }
    }
}

/// What tools may do.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How far they are contained.
    pub mode: Mode,
    /// Whether they reach the network.
    pub network: Network,
    /// The folders below which they write, beside their temporary folder: real paths, without a symbolic
    /// link in them. Empty unless the mode is to write in the workspace.
    pub writable: Vec<PathBuf>,
}

impl Policy {
    /// The policy as arguments of a process.
    pub fn arguments(&self) -> Vec<OsString> {
        let count = self.writable.len().to_string();
        let words = [self.mode.name(), self.network.name(), &count].map(OsString::from);
        words.into_iter().chain(self.writable.iter().map(|folder| folder.clone().into_os_string())).collect()
    }

    /// The policy at the beginning of these arguments, and the arguments behind it.
    pub fn read(arguments: &[OsString]) -> Option<(Policy, &[OsString])> {
        let [mode, network, count, rest @ ..] = arguments else { return None };
        let count = count.to_str()?.parse().ok()?;
        let (folders, rest) = rest.split_at_checked(count)?;
        let policy = Policy {
            mode: Mode::named(text(mode)?)?,
            network: Network::named(text(network)?)?,
            writable: folders.iter().map(PathBuf::from).collect(),
        };
        Some((policy, rest))
    }
}

fn text(argument: &OsStr) -> Option<&str> {
    argument.to_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_comes_back_from_its_arguments_with_what_follows() {
        for name in Mode::NAMES {
            let mode = Mode::named(name).unwrap();
            for network in [Network::Own, Network::Shared] {
                let writable = vec![PathBuf::from("/a b"), PathBuf::from("/c")];
                let policy = Policy { mode, network, writable };
                let mut arguments = policy.arguments();
                arguments.push("next".into());
                assert_eq!(Policy::read(&arguments), Some((policy, &["next".into()] as &[OsString])));
            }
        }
    }

    #[test]
    fn arguments_that_are_no_policy_are_refused() {
        for words in ["", "off", "off own-network 1", "on own-network 0", "off net 0", "off own-network -1"] {
            let arguments: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(Policy::read(&arguments), None, "{words}");
        }
    }
}
