//! A network and a set of System V objects of the tools' own, where the kernel gives them.
//!
//! A privileged process takes them directly, another one by way of a user namespace in which its own id
//! means itself. That can fail half-way (some systems allow the namespace and then refuse the mapping), and
//! there is no way back: a throw-away process tries it first. Process and mount namespaces are left out:
//! `ps` would speak of other processes, and a shell that is process 1 ignores signals.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::process::{ExitCode, ExitStatus};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use super::policy::{Network, Policy};
use super::{nothing, process};

/// What of its own a process has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespaces {
    /// Network and System V objects.
    NetworkAndIpc,
    /// System V objects.
    Ipc,
    /// Nothing.
    Shared,
}

impl Namespaces {
    /// Takes what can be had. Nothing is no failure: the system calls are refused then.
    pub fn enter(policy: &Policy) -> Namespaces {
        match policy.network {
            Network::Own if enter_directly(UnshareFlags::NEWNET | UnshareFlags::NEWIPC) => {
                // In a new network nothing is up. A failure leaves tools without a loopback, no more.
                let _ = bring_loopback_up();
                Namespaces::NetworkAndIpc
            }
            Network::Own
                if !rights_would_be_lost() && user_namespace_is_possible() && enter_as_user().is_ok() =>
            {
                Namespaces::NetworkAndIpc
            }
            // In a user namespace root's files belong to nobody, and ssh refuses its own configuration.
            // That would break what the network is asked for.
            Network::Shared if enter_directly(UnshareFlags::NEWIPC) => Namespaces::Ipc,
            _ => Namespaces::Shared,
        }
    }

    /// The word for it among the arguments of a process.
    pub fn argument(self) -> OsString {
        OsString::from(match self {
            Namespaces::NetworkAndIpc => "network-and-ipc",
            Namespaces::Ipc => "ipc",
            Namespaces::Shared => "shared",
        })
    }

    /// What the word stands for.
    pub fn read(argument: &OsString) -> Option<Namespaces> {
        [Namespaces::NetworkAndIpc, Namespaces::Ipc, Namespaces::Shared]
            .into_iter()
            .find(|namespaces| namespaces.argument() == *argument)
    }
}

/// The whole life of the throw-away process: it succeeds if a user namespace can be had.
pub fn trial() -> ExitCode {
    match enter_as_user() {
        Ok(()) => ExitCode::SUCCESS,
        Err(()) => ExitCode::FAILURE,
    }
}

/// In a user namespace root has no right to the files of others any more, as in a workspace that a container's
/// root finds mounted, and gives none to others, as `tar` does. No network at all is better then.
fn rights_would_be_lost() -> bool {
    let rights = CapabilitySet::CHOWN | CapabilitySet::DAC_OVERRIDE;
    capabilities(None).is_ok_and(|held| held.effective.intersects(rights))
}

fn user_namespace_is_possible() -> bool {
    let trial = || -> io::Result<ExitStatus> {
        let nothing = nothing::file()?;
        let mut command = process::start_again(process::TRIAL).map_err(io::Error::other)?;
        command.stdin(nothing.try_clone()?).stdout(nothing.try_clone()?).stderr(nothing).status()
    };
    trial().is_ok_and(|status| status.success())
}

fn enter_directly(flags: UnshareFlags) -> bool {
    unshare(flags).is_ok()
}

fn enter_as_user() -> Result<(), ()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET | UnshareFlags::NEWIPC).map_err(drop)?;
    let write = |name: &str, text: String| fs::write(format!("/proc/self/{name}"), text).map_err(drop);
    // Without this the kernel takes no group mapping from a process without privileges.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1\n"))?;
    write("gid_map", format!("{group} {group} 1\n"))?;
    bring_loopback_up().map_err(drop)
}

#[allow(
    deprecated,
    reason = "it is unsafe only with the flag that splits descriptor tables, never given here"
)]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    rustix::thread::unshare(flags)
}

/// Sets the flag "up" of the first interface, which in a new network is the loopback.
fn bring_loopback_up() -> rustix::io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_WITH_ANSWER: u16 = 1 | 4;
    const UP: u32 = 1;
    // Of netlink's protocols, the one that is meant where none is named is that of interfaces and routes.
    let protocol = None;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&NEW_LINK.to_ne_bytes());
    message.extend_from_slice(&REQUEST_WITH_ANSWER.to_ne_bytes());
    // Sequence number, port, and an address family of "any" with the interface's type.
    message.extend_from_slice(&[0; 12]);
    message.extend_from_slice(&1_u32.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 64];
    let (length, _) = rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty())?;
    // Behind the header of 16 bytes stands the negative error number.
    match answer[..length].get(16..20) {
        Some([0, 0, 0, 0]) => Ok(()),
        _ => Err(rustix::io::Errno::NETDOWN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_come_back_from_their_argument() {
        for namespaces in [Namespaces::NetworkAndIpc, Namespaces::Ipc, Namespaces::Shared] {
            assert_eq!(Namespaces::read(&namespaces.argument()), Some(namespaces));
        }
        assert_eq!(Namespaces::read(&"none".into()), None);
    }
}
