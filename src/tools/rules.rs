//! The rules that leave files out of a search: those that ripgrep goes by, in ripgrep's order.
//!
//! Their files are read here and not by the crate that knows what rules mean. It opens them by name, and so
//! waits for ever for a FIFO that took the name of one, and holds all of an endless device in memory.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::tools::opening::{self, Kind};

/// A file of rules larger than this is not taken for one: all of it is held in memory.
const MAX_BYTES: u64 = 1 << 20;
/// How many kinds of rules there are. Those from this one on hold in repositories only.
const KINDS: usize = 4;
const FIRST_OF_GIT: usize = 2;

/// The rules of a folder and of those above it.
#[derive(Default)]
pub struct Rules {
    /// Outermost first, without the folders that have nothing to say.
    levels: Vec<Level>,
}

/// The rules of one folder.
struct Level {
    /// Of `.rgignore`, `.ignore`, `.gitignore` and `.git/info/exclude`: an earlier one goes before those
    /// behind it, whichever folder it is in.
    matchers: [Gitignore; KINDS],
    is_repository: bool,
}

impl Rules {
    /// How many folders have rules, for going back to them.
    pub fn height(&self) -> usize {
        self.levels.len()
    }

    /// Forgets the rules of all folders entered since the height was this.
    pub fn leave(&mut self, height: usize) {
        self.levels.truncate(height);
    }

    /// Adds the rules of a folder, given by its real path, inside those entered before. `holds` tells
    /// whether there can be a file of this name in it, which spares looking.
    ///
    /// Errors: which file of rules cannot be read without harm. No rules are added then.
    pub fn enter(&mut self, folder: &Path, holds: impl Fn(&str) -> bool) -> Result<(), String> {
        let matcher = |name: &str| match holds(name) {
            false => Ok(Gitignore::empty()),
            true => read(&folder.join(name))
                .map(|text| matcher(folder, text.unwrap_or_default()))
                .map_err(|trouble| format!("{name} is {trouble}")),
        };
        let exclude = match holds(".git") {
            false => Gitignore::empty(),
            true => matcher_of_exclude(folder)?,
        };
        let matchers = [matcher(".rgignore")?, matcher(".ignore")?, matcher(".gitignore")?, exclude];
        let is_repository = [".git", ".jj"].iter().any(|name| holds(name) && folder.join(name).exists());
        if is_repository || matchers.iter().any(|matcher| !matcher.is_empty()) {
            self.levels.push(Level { matchers, is_repository });
        }
        Ok(())
    }

    /// What the rules say of what is in the folder entered last, given by its real path.
    pub fn verdict(&self, path: &Path, is_folder: bool) -> Match<()> {
        let mut verdicts = [const { Match::None }; KINDS];
        // The rules of git are for repositories, and end at the border of the innermost.
        let mut kinds = match self.levels.iter().any(|level| level.is_repository) {
            true => KINDS,
            false => FIRST_OF_GIT,
        };
        for level in self.levels.iter().rev() {
            for (verdict, matcher) in verdicts.iter_mut().zip(&level.matchers).take(kinds) {
                if verdict.is_none() {
                    *verdict = matcher.matched(path, is_folder).map(|_| ());
                }
            }
            if level.is_repository {
                kinds = FIRST_OF_GIT;
            }
        }
        verdicts.into_iter().find(|verdict| !verdict.is_none()).unwrap_or(Match::None)
    }
}

/// Makes rules relative to `folder` of the text of a file. One that is no glob is passed over, as git does.
fn matcher(folder: &Path, text: Vec<u8>) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Ok(line) = str::from_utf8(line) {
            let _ = builder.add_line(None, line);
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The text of a file of rules, or why it must not be read, in words that follow "is". What is missing or
/// cannot be opened is no trouble: it has no rules.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    // Asked before opening, since opening a device can set it going; asked again of what was opened, since
    // something else may have taken the name.
    match fs::metadata(path) {
        Ok(metadata) if is_file(&metadata)? => {}
        _ => return Ok(None),
    }
    let Ok(file) = opening::without_waiting(path) else { return Ok(None) };
    match file.metadata() {
        Ok(metadata) if is_file(&metadata)? => read_opened(file),
        _ => Ok(None),
    }
}

fn is_file(metadata: &Metadata) -> Result<bool, String> {
    match opening::kind(metadata) {
        Kind::Special(kind) => Err(format!("{kind}, not a file")),
        kind => Ok(kind == Kind::File),
    }
}

fn read_opened(file: File) -> Result<Option<Vec<u8>>, String> {
    // Its files can be endless, and look empty.
    if opening::is_procfs(&file).unwrap_or(true) {
        return Err("on procfs".to_owned());
    }
    let mut text = Vec::new();
    if file.take(MAX_BYTES + 1).read_to_end(&mut text).is_err() {
        return Ok(None);
    }
    match text.len() as u64 > MAX_BYTES {
        true => Err(format!("larger than {MAX_BYTES} bytes")),
        false => Ok(Some(text)),
    }
}

/// The rules that a repository keeps for itself.
fn matcher_of_exclude(folder: &Path) -> Result<Gitignore, String> {
    let git = folder.join(".git");
    let git = match fs::metadata(&git).map(|metadata| opening::kind(&metadata)) {
        Ok(Kind::Directory) => Some(git),
        Ok(Kind::File) => linked_git(&git)?,
        // It only tells that there is a repository.
        Ok(Kind::Special(_)) | Err(_) => None,
    };
    let Some(git) = git else { return Ok(Gitignore::empty()) };
    let text = read(&git.join("info/exclude"));
    let text = text.map_err(|trouble| format!(".git/info/exclude is {trouble}"))?;
    Ok(matcher(folder, text.unwrap_or_default()))
}

/// The folder that the file `.git` of a linked worktree leads to, found the way ripgrep finds it.
fn linked_git(git: &Path) -> Result<Option<PathBuf>, String> {
    let line = first_line(git).map_err(|trouble| format!(".git is {trouble}"))?;
    let Some(folder) = line.as_deref().and_then(|line| line.strip_prefix("gitdir: ")) else {
        return Ok(None);
    };
    let folder = PathBuf::from(folder);
    let line = first_line(&folder.join("commondir"))
        .map_err(|trouble| format!("the commondir that .git leads to is {trouble}"))?;
    Ok(line.map(|line| if line.starts_with('.') { folder.join(line) } else { line.into() }))
}

fn first_line(path: &Path) -> Result<Option<String>, String> {
    let text = read(path)?.and_then(|text| String::from_utf8(text).ok());
    Ok(text.and_then(|text| text.lines().next().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::write::tests::{Folder, make_fifo};

    /// Whichever of the two has the name when it is looked at and when it is opened. The search went on
    /// for ever where the name changed hands in between.
    #[test]
    fn a_fifo_that_takes_the_place_of_rules_is_not_waited_for() {
        let folder = Folder::new("rules-swapped");
        make_fifo(&folder.path.join("fifo"));
        folder.put("file", "*.log\n");
        folder.put(".gitignore", "*.log\n");
        folder.put(".git", "");
        let path = folder.path.clone();
        let swapping = std::thread::spawn(move || {
            for turn in 0..20_000 {
                let kept = path.join(if turn % 2 == 0 { "fifo" } else { "file" });
                fs::hard_link(kept, path.join("new")).unwrap();
                fs::rename(path.join("new"), path.join(".gitignore")).unwrap();
            }
        });
        let mut count = 0;
        while !swapping.is_finished() || count == 0 {
            let mut rules = Rules::default();
            match rules.enter(&folder.path, |_| true) {
                Ok(()) => assert!(rules.verdict(&folder.path.join("a.log"), false).is_ignore()),
                Err(trouble) => assert_eq!(trouble, ".gitignore is a FIFO, not a file"),
            }
            count += 1;
        }
        swapping.join().unwrap();
    }

    #[test]
    fn rules_are_read_line_by_line_whatever_the_lines_hold() {
        let text = b"\xef\xbb\xbf*.a\r\n\xff.b\n# *.c\n!x.a\n[\n";
        let rules = matcher(Path::new("/w"), text.to_vec());
        let says = |name: &str| rules.matched(Path::new("/w").join(name), false);
        assert!(says("y.a").is_ignore());
        assert!(says("x.a").is_whitelist());
        assert!(says("y.b").is_none() && says("y.c").is_none());
    }
}
