//! The line that is added to a failed call where containment is a likely reason: what is closed, and which
//! flag opens it. It states facts; that they are the reason is a guess.
//!
//! Pure, and the same text in any folder.

use std::path::{Component, Path};

use super::policy::{Mode, Network, Policy};

/// What programs say where there is no network.
const NO_NETWORK: &[&str] = &[
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "name or service not known",
    "network is unreachable",
    "network unreachable",
    "no address associated with hostname",
    "enotfound",
    "eai_again",
    "enetunreach",
    "getaddrinfo",
    "failed to lookup address",
    "unknownhostexception",
    "unknown host",
    "dial tcp",
    "dns error",
];

/// What programs say where they may not write.
const NO_WRITE: &[&str] = &["permission denied", "eacces", "read-only file system", "erofs", "access denied"];

/// What they say where the kernel refuses something else.
const REFUSED: &[&str] = &["operation not permitted", "eperm", "cannot connect to the docker daemon"];

/// What speaks of a UNIX socket or a terminal, which no folder opens.
const NEVER_WRITTEN: &[&str] =
    &[".sock", "daemon socket", "unix socket", "/dev/pts", "/dev/ptmx", "/dev/tty", "pseudo-terminal"];

/// What a cache is called in the message of a program that cannot write to its own.
const CACHE: &[&str] =
    &["cache", "/.cargo", "/.npm", "/.rustup", "/.m2", "/.gradle", "/go/pkg", "/.local/share"];

/// What speaks of memory shared by name, which Python's `multiprocessing` cannot do without.
const SHARED_MEMORY: &[&str] = &["/dev/shm", "semlock", "shm_open"];

/// What speaks of sockets, in the message of a program that was refused something.
const SOCKET: &[&str] = &["socket", "/dev/tcp/", "/dev/udp/", "listen", "connect"];

/// What to add to the output of a command that failed.
pub fn for_command(policy: &Policy, output: &str) -> Option<String> {
    if policy.mode == Mode::Off {
        return None;
    }
    let output = output.to_lowercase();
    let closed_network = policy.network == Network::Own;
    if closed_network && says(&output, NO_NETWORK) && says(&output, NO_WRITE) {
        let write = for_write(policy, &output);
        let write = write.trim_start_matches("[sandbox: ");
        return Some(format!("[sandbox: commands reach no network; --allow-net opens it. And {write}"));
    }
    if closed_network && says(&output, NO_NETWORK) {
        return Some("[sandbox: commands reach no network; --allow-net opens it]".to_owned());
    }
    if says(&output, NO_WRITE) && says(&output, NEVER_WRITTEN) {
        return Some(CLOSED.to_owned());
    }
    if says(&output, NO_WRITE) {
        return Some(for_write(policy, &output));
    }
    if says(&output, REFUSED) && says(&output, SOCKET) && closed_network {
        return Some(NO_SOCKETS.to_owned());
    }
    if says(&output, REFUSED) {
        return Some(CLOSED.to_owned());
    }
    // What a filter that does not know a program's machine does to it.
    output.contains("(sigsys)").then(|| OTHER_MACHINE.to_owned())
}

fn says(output: &str, signs: &[&str]) -> bool {
    signs.iter().any(|sign| output.contains(sign))
}

fn for_write(policy: &Policy, output: &str) -> String {
    match policy.mode {
        Mode::ReadOnly => read_only(),
        _ if output.contains("/.git/") => "[sandbox: commands write only in the workspace and in $TMPDIR; \
             --add-dir \"$(git rev-parse --git-common-dir)\" opens a repository that lies elsewhere]"
            .to_owned(),
        _ if says(output, SHARED_MEMORY) => {
            "[sandbox: commands share no memory by name; --add-dir /dev/shm opens the machine's]".to_owned()
        }
        _ if says(output, CACHE) => format!(
            "{}, or let the program keep its cache in $TMPDIR (XDG_CACHE_HOME, GOCACHE, CARGO_HOME, \
             npm_config_cache)]",
            outside("commands").trim_end_matches(']')
        ),
        _ => outside("commands"),
    }
}

const NO_SOCKETS: &str = "[sandbox: where commands get no network of their own, as in many containers, they open no sockets, \
     not even to the loopback; --allow-net opens the machine's network. UNIX sockets are closed everywhere; \
     --sandbox off opens them]";

const CLOSED: &str = "[sandbox: UNIX sockets, namespaces, mounts, signals to processes outside and devices are closed to \
     commands; --sandbox off opens all of it]";

const OTHER_MACHINE: &str =
    "[sandbox: programs for another machine, 32-bit ones too, cannot run; --sandbox off lets them]";

/// What to add to the failure of a tool that writes this file.
pub fn for_file(policy: &Policy, path: &Path) -> Option<String> {
    let climbs = path.components().any(|part| part == Component::ParentDir);
    match policy.mode {
        Mode::Off => None,
        Mode::ReadOnly => Some(read_only()),
        Mode::WorkspaceWrite => {
            let is_inside = !climbs && policy.writable.iter().any(|folder| path.starts_with(folder));
            (!is_inside).then(|| outside("tools"))
        }
    }
}

fn read_only() -> String {
    "[sandbox: this run is read-only but for $TMPDIR: in a home or root folder --add-dir . opens it, else the end \
     of --sandbox read-only or --permission-mode plan]"
        .to_owned()
}

fn outside(who: &str) -> String {
    format!("[sandbox: {who} write only in the workspace and in $TMPDIR; --add-dir DIR opens another folder]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn policy(mode: Mode) -> Policy {
        Policy { mode, network: Network::Own, writable: vec![PathBuf::from("/w"), PathBuf::from("/data")] }
    }

    /// The flag that the added line names.
    fn flag(mode: Mode, network: Network, output: &str) -> Option<String> {
        let hint = for_command(&Policy { network, ..policy(mode) }, output)?;
        assert!(hint.starts_with("[sandbox: ") && hint.ends_with(']') && !hint.contains('\n'), "{hint}");
        let flag = hint.split("--").nth(1).unwrap();
        Some(format!("--{}", flag.split([' ', ',', ']']).next().unwrap()))
    }

    #[test]
    fn a_failure_that_containment_would_cause_names_the_flag_that_opens_it() {
        for (output, expected) in [
            ("curl: (6) Could not resolve host: example.org", "--allow-net"),
            ("Temporary failure in name resolution", "--allow-net"),
            ("connect: Network is unreachable", "--allow-net"),
            ("npm error code EAI_AGAIN", "--allow-net"),
            ("sh: 1: cannot create /etc/x: Permission denied", "--add-dir"),
            ("touch: cannot touch '/x': Read-only file system", "--add-dir"),
            ("fatal: Unable to create '/r/.git/worktrees/w/index.lock': Permission denied", "--add-dir"),
            ("_multiprocessing.SemLock\nPermissionError: [Errno 13] Permission denied", "--add-dir"),
            ("open /h/.cache/go-build/trim.txt: permission denied", "--add-dir"),
            ("unshare: unshare failed: Operation not permitted", "--sandbox"),
            ("PermissionError: [Errno 1] Operation not permitted", "--sandbox"),
            ("listen tcp 127.0.0.1:0: socket: operation not permitted", "--allow-net"),
            ("bash: /dev/tcp/127.0.0.1/80: Operation not permitted", "--allow-net"),
            ("[killed by signal 31 (SIGSYS)]", "--sandbox"),
            ("permission denied while trying to connect to the Docker daemon socket", "--sandbox"),
            ("script: failed to create pseudo-terminal: Permission denied", "--sandbox"),
        ] {
            let found = flag(Mode::WorkspaceWrite, Network::Own, output);
            assert_eq!(found.as_deref(), Some(expected), "{output}");
        }
        let own = |output| for_command(&policy(Mode::WorkspaceWrite), output).unwrap();
        assert_eq!(
            own("npm: EAI_AGAIN\ncannot create /etc/x: Permission denied"),
            "[sandbox: commands reach no network; --allow-net opens it. And commands write only in the workspace \
             and in $TMPDIR; --add-dir DIR opens another folder]"
        );
        assert!(own("Unable to create '/r/.git/x': Permission denied").contains("git rev-parse"));
        assert!(own("/h/.cache/x: Permission denied").contains("GOCACHE"));
        assert!(!own("/etc/x: Permission denied").contains("GOCACHE"));
    }

    #[test]
    fn other_failures_are_left_alone() {
        for output in ["[exit code: 1]", "error: no such file", "Connection refused", "test failed"] {
            assert_eq!(flag(Mode::WorkspaceWrite, Network::Own, output), None, "{output}");
        }
        assert_eq!(flag(Mode::WorkspaceWrite, Network::Shared, "Could not resolve host: x"), None);
        assert_eq!(flag(Mode::Off, Network::Own, "Permission denied"), None);
        let socket = flag(Mode::ReadOnly, Network::Shared, "socket: Operation not permitted");
        assert_eq!(socket.as_deref(), Some("--sandbox"));
    }

    #[test]
    fn a_run_that_is_read_only_says_so() {
        assert_eq!(flag(Mode::ReadOnly, Network::Own, "Permission denied").as_deref(), Some("--add-dir"));
        assert_eq!(for_file(&policy(Mode::ReadOnly), Path::new("/w/a")), Some(read_only()));
    }

    #[test]
    fn a_file_outside_names_the_flag_and_one_inside_does_not() {
        for (path, is_outside) in
            [("/w/a", false), ("/data/b/c", false), ("/w/../etc/x", true), ("/etc/x", true), ("/wide", true)]
        {
            let hint = for_file(&policy(Mode::WorkspaceWrite), Path::new(path));
            assert_eq!(hint.is_some(), is_outside, "{path}");
        }
        assert_eq!(for_file(&policy(Mode::Off), Path::new("/etc/x")), None);
    }
}
