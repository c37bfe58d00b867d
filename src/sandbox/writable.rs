//! Which folders tools may write in: the workspace, unless it is a place where nobody means that, and the
//! folders that are added by name.
//!
//! Pure: real paths in, a policy and what to say about it out.

use std::path::{Path, PathBuf};

use super::policy::{Mode, Network, Policy};

/// Where the run takes place, as real paths.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The current folder.
    pub workspace: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// Where cotter keeps its sessions.
    pub state: Option<&'a Path>,
}

/// The policy for a mode, a network and the folders added by `--add-dir` (real paths), and the lines that the
/// user is to read.
pub fn policy(mode: Mode, network: Network, added: &[PathBuf], places: Places) -> (Policy, Vec<String>) {
    let mut policy = Policy { mode, network, writable: Vec::new() };
    let mut lines = Vec::new();
    if mode != Mode::WorkspaceWrite {
        return (policy, lines);
    }
    policy.writable = added.to_vec();
    let is_added = added.iter().any(|folder| folder == places.workspace);
    match places.why_not_to_write() {
        Some(what) if !is_added => {
            let (run, here) = match added.is_empty() {
                true => ("this run is read-only", "--add-dir . lets tools write here"),
                false => ("tools write in the added folders alone", "add --add-dir . to let them write here"),
            };
            lines.push(format!("the current folder is {what}: {run} ({here})"));
        }
        _ if !is_added => policy.writable.insert(0, places.workspace.to_owned()),
        _ => {}
    }
    if policy.writable.is_empty() {
        policy.mode = Mode::ReadOnly;
    }
    let lets = |what: &str| format!("--add-dir lets tools change {what}");
    if policy.writable.iter().any(|folder| places.state_is_in(folder)) {
        lines.push(lets("cotter's own session files, which lie below it"));
    } else if policy.writable.iter().any(|folder| places.is_in_state(folder)) {
        lines.push(lets("what cotter keeps there of its own"));
    }
    (policy, lines)
}

impl Places<'_> {
    /// What the current folder is, if writing anywhere below it is hardly meant.
    fn why_not_to_write(&self) -> Option<&'static str> {
        let is_or_holds = |place: Option<&Path>| place.is_some_and(|place| place.starts_with(self.workspace));
        if self.workspace == Path::new("/") {
            Some("the root folder")
        } else if self.home == Some(self.workspace) {
            Some("the home folder")
        } else if is_or_holds(self.home) {
            Some("above the home folder")
        } else if is_or_holds(self.state) || self.is_in_state(self.workspace) {
            Some("where cotter keeps its sessions")
        } else {
            None
        }
    }

    fn is_in_state(&self, folder: &Path) -> bool {
        self.state.is_some_and(|state| folder.starts_with(state))
    }

    fn state_is_in(&self, folder: &Path) -> bool {
        self.state.is_some_and(|state| state.starts_with(folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The folders that may be written in, joined by spaces, and the lines.
    fn decided(workspace: &str, added: &[&str]) -> (Mode, String, Vec<String>) {
        let places = Places {
            workspace: Path::new(workspace),
            home: Some(Path::new("/home/me")),
            state: Some(Path::new("/var/state/cotter")),
        };
        let added: Vec<PathBuf> = added.iter().map(PathBuf::from).collect();
        let (policy, lines) = policy(Mode::WorkspaceWrite, Network::Own, &added, places);
        let folders: Vec<&str> = policy.writable.iter().map(|folder| folder.to_str().unwrap()).collect();
        (policy.mode, folders.join(" "), lines)
    }

    #[test]
    fn the_workspace_and_what_is_added_may_be_written() {
        let write = |folders: &str| (Mode::WorkspaceWrite, folders.to_owned(), Vec::new());
        assert_eq!(decided("/home/me/code", &[]), write("/home/me/code"));
        assert_eq!(decided("/home/me/code", &["/data"]), write("/home/me/code /data"));
        assert_eq!(decided("/home/me/code", &["/home/me/code"]), write("/home/me/code"));
        assert_eq!(decided("/home/me", &["/home/me"]), write("/home/me"));
        // Names that begin alike are different folders.
        assert_eq!(decided("/home/m", &[]), write("/home/m"));
    }

    #[test]
    fn where_nobody_means_it_the_run_is_read_only_and_says_so() {
        for (workspace, what) in [
            ("/", "the root folder"),
            ("/home/me", "the home folder"),
            ("/home", "above the home folder"),
            ("/var/state/cotter", "where cotter keeps its sessions"),
            ("/var/state/cotter/sessions/a", "where cotter keeps its sessions"),
            ("/var", "where cotter keeps its sessions"),
        ] {
            let line = format!(
                "the current folder is {what}: this run is read-only (--add-dir . lets tools write here)"
            );
            assert_eq!(decided(workspace, &[]), (Mode::ReadOnly, String::new(), vec![line]));
        }
        let line = "the current folder is the home folder: tools write in the added folders alone \
                    (add --add-dir . to let them write here)";
        let expected = (Mode::WorkspaceWrite, "/data".to_owned(), vec![line.to_owned()]);
        assert_eq!(decided("/home/me", &["/data"]), expected);
    }

    #[test]
    fn what_is_added_counts_though_it_holds_the_sessions() {
        let line = "--add-dir lets tools change cotter's own session files, which lie below it".to_owned();
        let expected = (Mode::WorkspaceWrite, "/home/me/code /".to_owned(), vec![line]);
        assert_eq!(decided("/home/me/code", &["/"]), expected);
    }

    #[test]
    fn what_is_added_counts_though_it_lies_among_the_sessions() {
        let line = "--add-dir lets tools change what cotter keeps there of its own".to_owned();
        let sessions = "/var/state/cotter/sessions";
        let expected = |folders: &str| (Mode::WorkspaceWrite, folders.to_owned(), vec![line.clone()]);
        assert_eq!(decided("/home/me/code", &[sessions]), expected(&format!("/home/me/code {sessions}")));
        assert_eq!(decided(sessions, &[sessions]), expected(sessions));
    }

    #[test]
    fn the_other_modes_write_nowhere_and_say_nothing() {
        let places = Places { workspace: Path::new("/"), home: None, state: None };
        for mode in [Mode::ReadOnly, Mode::Off] {
            let expected = Policy { mode, network: Network::Shared, writable: Vec::new() };
            let added = [PathBuf::from("/data")];
            assert_eq!(policy(mode, Network::Shared, &added, places), (expected, Vec::new()));
        }
    }
}
