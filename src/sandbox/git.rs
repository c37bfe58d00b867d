//! What in the workspace makes git run commands: its configuration and its hooks. Tools may change them, since
//! they are in the workspace; the user's next git command would run what they name, outside of any
//! containment. So changes are told.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Such files by their paths below the workspace.
#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot(BTreeMap<String, State>);

/// How a file is known again. The time of the last change of a file cannot be set back.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The configuration: git rewrites it often without changing anything.
    Text(Vec<u8>),
    /// Anything else: file number, size, mode, and time of the last change.
    Data(u64, u64, u32, (i64, i64)),
}

/// The most that is read of a configuration.
const MOST_BYTES: u64 = 1024 * 1024;

impl Snapshot {
    /// How things stand in this workspace now.
    pub fn take(workspace: &Path) -> Snapshot {
        let mut files = BTreeMap::new();
        let mut note = |name: String| {
            if let Some(state) = state(&workspace.join(&name)) {
                files.insert(name, state);
            }
        };
        [".git/config", ".git/config.worktree"].iter().for_each(|name| note((*name).to_owned()));
        // A file in the place of the folder names another repository.
        if !workspace.join(".git").is_dir() {
            note(".git".to_owned());
        }
        for entry in fs::read_dir(workspace.join(".git/hooks")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".sample") {
                note(format!(".git/hooks/{name}"));
            }
        }
        Snapshot(files)
    }

    /// The files that differ from an earlier state, by name.
    pub fn changes_since(&self, earlier: &Snapshot) -> Vec<String> {
        let names = self.0.keys().chain(earlier.0.keys().filter(|name| !self.0.contains_key(*name)));
        let mut changed: Vec<String> =
            names.filter(|name| self.0.get(*name) != earlier.0.get(*name)).cloned().collect();
        changed.sort();
        changed
    }
}

fn state(path: &Path) -> Option<State> {
    let data = fs::symlink_metadata(path).ok()?;
    let is_config = path.to_string_lossy().contains("/.git/config");
    match is_config && data.is_file() && data.len() <= MOST_BYTES {
        true => text(path).or(Some(metadata(&data))),
        false => Some(metadata(&data)),
    }
}

fn text(path: &Path) -> Option<State> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    Some(State::Text(text))
}

fn metadata(data: &Metadata) -> State {
    State::Data(data.ino(), data.len(), data.mode(), (data.ctime(), data.ctime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn changes_to_what_git_runs_are_told_by_name() {
        let folder = std::env::temp_dir().join(format!("cotter-git-test-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a.txt", "a");
        let bare = Snapshot::take(&folder);
        write(".git/config", "[core]\n");
        write(".git/hooks/pre-push", "");
        write(".git/hooks/a.sample", "");
        let before = Snapshot::take(&folder);
        assert_eq!(before.changes_since(&bare), [".git/config", ".git/hooks/pre-push"]);
        write(".git/config", "[core]\n");
        write(".git/index", "x");
        write(".git/hooks/a.sample", "x");
        assert_eq!(Snapshot::take(&folder).changes_since(&before), [] as [&str; 0]);
        write(".git/config", "[core]\nfsmonitor = evil\n");
        write(".git/hooks/post-merge", "evil");
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(folder.join(".git/hooks/pre-push"), mode).unwrap();
        let changed = [".git/config", ".git/hooks/post-merge", ".git/hooks/pre-push"];
        assert_eq!(Snapshot::take(&folder).changes_since(&before), changed);
        fs::remove_dir_all(folder.join(".git")).unwrap();
        write(".git", "gitdir: /elsewhere\n");
        let changed = [".git", ".git/config", ".git/hooks/pre-push"];
        assert_eq!(Snapshot::take(&folder).changes_since(&before), changed);
        fs::remove_dir_all(&folder).unwrap();
    }
}
