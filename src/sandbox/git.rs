//! What in the workspace makes git run commands: its configuration and its hooks. Tools may change them, since
//! they are in the workspace; the user's next git command would run what they name, outside of any
//! containment. So changes are told.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

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
/// The most entries of one folder that are looked at.
const MOST_ENTRIES: usize = 1000;

impl Snapshot {
    /// How things stand now in this workspace, and in other folders that tools may write in.
    ///
    /// Repositories in their subfolders are not looked for: that is a walk through all there is. Those that git
    /// keeps for submodules are.
    pub fn take(workspace: &Path, others: &[PathBuf]) -> Snapshot {
        let mut snapshot = Snapshot(BTreeMap::new());
        for folder in std::iter::once(workspace).chain(others.iter().map(PathBuf::as_path)) {
            snapshot.note_repository(workspace, folder);
        }
        snapshot
    }

    fn note_repository(&mut self, workspace: &Path, folder: &Path) {
        let git = folder.join(".git");
        // A file in the place of the folder names another repository.
        if !git.is_dir() {
            return self.note(workspace, &git, state);
        }
        self.note_git_folder(workspace, &git);
        for module in entries(&git.join("modules")) {
            self.note_git_folder(workspace, &module);
        }
        let config = git.join("config");
        let hooks = folder_of_hooks(&config).map(|hooks| folder.join(hooks));
        if let Some(hooks) = hooks.filter(|hooks| hooks.starts_with(folder)) {
            self.note_hooks(workspace, &hooks);
        }
    }

    fn note_git_folder(&mut self, workspace: &Path, git: &Path) {
        for name in ["config", "config.worktree"] {
            self.note(workspace, &git.join(name), config_state);
        }
        self.note_hooks(workspace, &git.join("hooks"));
    }

    fn note_hooks(&mut self, workspace: &Path, hooks: &Path) {
        for hook in entries(hooks) {
            if hook.extension().is_none_or(|extension| extension != "sample") {
                self.note(workspace, &hook, state);
            }
        }
    }

    fn note(&mut self, workspace: &Path, path: &Path, state: fn(&Path) -> Option<State>) {
        if let Some(state) = state(path) {
            let name = path.strip_prefix(workspace).unwrap_or(path);
            self.0.insert(name.to_string_lossy().into_owned(), state);
        }
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

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.take(MOST_ENTRIES).map(|entry| entry.path())
}

/// What `core.hooksPath` says, in the form that `git config` writes.
fn folder_of_hooks(config: &Path) -> Option<String> {
    let Some(State::Text(text)) = config_state(config) else { return None };
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        name.trim().eq_ignore_ascii_case("hooksPath").then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn state(path: &Path) -> Option<State> {
    fs::symlink_metadata(path).ok().map(|data| metadata(&data))
}

fn config_state(path: &Path) -> Option<State> {
    let data = fs::symlink_metadata(path).ok()?;
    match data.is_file() && data.len() <= MOST_BYTES {
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
        let bare = Snapshot::take(&folder, &[]);
        write(".git/config", "[core]\n");
        write(".git/hooks/pre-push", "");
        write(".git/hooks/a.sample", "");
        let before = Snapshot::take(&folder, &[]);
        assert_eq!(before.changes_since(&bare), [".git/config", ".git/hooks/pre-push"]);
        write(".git/config", "[core]\n");
        write(".git/index", "x");
        write(".git/hooks/a.sample", "x");
        assert_eq!(Snapshot::take(&folder, &[]).changes_since(&before), [] as [&str; 0]);
        write(".git/config", "[core]\nfsmonitor = evil\n");
        write(".git/hooks/post-merge", "evil");
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(folder.join(".git/hooks/pre-push"), mode).unwrap();
        let changed = [".git/config", ".git/hooks/post-merge", ".git/hooks/pre-push"];
        assert_eq!(Snapshot::take(&folder, &[]).changes_since(&before), changed);
        fs::remove_dir_all(folder.join(".git")).unwrap();
        write(".git", "gitdir: /elsewhere\n");
        let changed = [".git", ".git/config", ".git/hooks/pre-push"];
        assert_eq!(Snapshot::take(&folder, &[]).changes_since(&before), changed);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn hooks_elsewhere_submodules_and_added_folders_are_looked_at_too() {
        let root = std::env::temp_dir().join(format!("cotter-git-others-test-{}", std::process::id()));
        let (folder, added) = (root.join("work"), root.join("added"));
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("work/.git/config", "[core]\n\thooksPath = .husky\n");
        write("work/.husky/pre-commit", "lint");
        write("work/.git/modules/sub/config", "[core]\n");
        write("added/.git/config", "[core]\n\thookspath = \"../hooks\"\n");
        let take = || Snapshot::take(&folder, std::slice::from_ref(&added));
        let before = take();
        assert_eq!(take().changes_since(&before), [] as [&str; 0]);
        write("work/.husky/pre-commit", "evil");
        write("work/.git/modules/sub/config", "[core]\n\tfsmonitor = evil\n");
        write("work/.git/modules/sub/hooks/post-checkout", "evil");
        write("added/.git/hooks/pre-push", "evil");
        let mut expected: Vec<String> =
            [".git/modules/sub/config", ".git/modules/sub/hooks/post-checkout", ".husky/pre-commit"]
                .map(str::to_owned)
                .to_vec();
        expected.push(added.join(".git/hooks/pre-push").display().to_string());
        expected.sort();
        assert_eq!(take().changes_since(&before), expected);
        fs::remove_dir_all(&root).unwrap();
    }
}
