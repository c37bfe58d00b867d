//! The files that a search goes through: those ripgrep would, in the order of their paths.
//!
//! The walk reads nothing but folders and the files of rules in them, neither of which it may wait for: a
//! checkout can hold a FIFO of any name. It asks for no setting of the user's, so that equal trees give
//! equal results in any HOME.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::vec;

use ignore::Match;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::Types;
use rustix::fs::{Dir, FileType, OFlags};

use crate::alarm::Alarm;
use crate::tools::Workspace;
use crate::tools::opening::{self, Kind};
use crate::tools::rules::Rules;

/// A walk ends after this many files and folders.
const MAX_ENTRIES: usize = 1_000_000;
/// No more names are held in memory, of all folders that the walk is in.
const MAX_WAITING: usize = 200_000;

/// Where a search starts: a folder to walk through, or one file.
pub enum Start {
    /// Each file below it that no rule leaves out.
    Folder(PathBuf),
    /// This file, whatever the rules say.
    File(PathBuf),
}

impl Start {
    /// Finds what there is at an absolute path.
    ///
    /// Errors: why nothing can be searched there, with the nearest names if there is no such path.
    pub fn find(path: &Path, workspace: &Workspace) -> Result<Start, String> {
        // Put together anew, a path has no `./` and no slash at its end.
        let path: PathBuf = path.components().collect();
        let name = workspace.display(&path);
        let metadata = fs::metadata(&path).map_err(|error| opening::not_opened(&path, workspace, &error))?;
        match opening::kind(&metadata) {
            Kind::Special(kind) => Err(format!("{name} is {kind}, neither a folder nor a file")),
            _ if opening::is_on_procfs(&path) => {
                Err(format!("{name} is on procfs, which is not searched: it shows other processes' secrets"))
            }
            Kind::File => Ok(Start::File(path)),
            Kind::Directory => Ok(Start::Folder(path)),
        }
    }
}

/// What a walk takes beside the rules that it finds.
pub struct Options {
    /// Whether hidden files are gone through too.
    pub hidden: bool,
    /// Globs that go before all rules.
    pub overrides: Override,
    /// The types of files asked for.
    pub types: Types,
}

/// Makes globs, `!` before those that leave out, relative to `folder` as ripgrep's `--glob` takes them.
///
/// Errors: what is wrong with one, and how to write what may have been meant.
pub fn overrides(globs: &[&str], folder: &Path) -> Result<Override, String> {
    let mut builder = OverrideBuilder::new(folder);
    let complaint = |error: ignore::Error| {
        format!(
            "{error}; in a glob * matches within a name, ** across folders, {{a,b}} either, [ab] one of these \
             letters; \\ before one of * ? [ ] {{ }} \\ makes it plain"
        )
    };
    for glob in globs {
        builder.add(&relative(glob, folder)).map_err(complaint)?;
    }
    builder.build().map_err(complaint)
}

/// A glob as paths in `folder` are compared with it: they begin with no `./`, and not with the folder.
fn relative(glob: &str, folder: &Path) -> String {
    let (sign, path) = glob.strip_prefix('!').map_or(("", glob), |path| ("!", path));
    let absolute = || path.strip_prefix(folder.to_str()?)?.strip_prefix('/');
    match path.strip_prefix("./").or_else(absolute) {
        Some(inside) => format!("{sign}/{inside}"),
        None => glob.to_owned(),
    }
}

/// What a search had to leave out, as its result tells it.
#[derive(Default)]
pub struct LeftOut {
    first: Vec<String>,
    count: usize,
}

impl LeftOut {
    const SHOWN: usize = 3;

    /// Notes what was left out, and why.
    pub fn add(&mut self, name: &str, reason: &str) {
        if self.count < LeftOut::SHOWN {
            self.first.push(format!("{name} ({reason})"));
        }
        self.count += 1;
    }

    /// Notes what another part of the search left out.
    pub fn append(&mut self, other: LeftOut) {
        self.first.extend(other.first);
        self.first.truncate(LeftOut::SHOWN);
        self.count += other.count;
    }

    /// The remark that tells of it, if there is anything to tell.
    pub fn remark(&self) -> Option<String> {
        let more = self.count - self.first.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (self.count > 0).then(|| format!("not searched: {}{more}", self.first.join(", ")))
    }
}

/// What a walk comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A regular file.
    File,
    /// A folder, which is gone through next.
    Folder,
    /// A symbolic link, which is not followed.
    Link,
    /// Something that is never opened.
    Other,
}

/// What there is below a folder, each folder's in the order of their names.
pub struct Walk {
    options: Options,
    workspace: Workspace,
    folder: PathBuf,
    /// What the folder's path really is. Rules are looked for there.
    real: PathBuf,
    rules: Rules,
    /// The folders that the walk is in, the innermost last.
    within: Vec<Folder>,
    left_out: LeftOut,
    seen: usize,
    /// Ends the walk.
    alarm: Alarm,
}

/// A folder that the walk is in.
struct Folder {
    path: PathBuf,
    rest: vec::IntoIter<Entry>,
    /// How many folders around it have rules.
    height: usize,
}

struct Entry {
    name: Box<OsStr>,
    form: Form,
}

impl Walk {
    /// Starts at `folder`.
    ///
    /// Errors: a file of rules in the folder or above it that cannot be read without harm.
    pub fn new(
        folder: &Path,
        workspace: &Workspace,
        options: Options,
        alarm: &Alarm,
    ) -> Result<Walk, String> {
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let mut rules = Rules::default();
        let above: Vec<&Path> = real.ancestors().collect();
        for above in above.into_iter().rev() {
            rules.enter(above, |_| true).map_err(|trouble| {
                let name = workspace.display(folder);
                let place = if above == real { name } else { format!("a folder above {name}") };
                format!("cannot search: in {place}, {trouble}; remove it or search another path")
            })?;
        }
        let mut walk = Walk {
            options,
            workspace: workspace.clone(),
            folder: folder.to_owned(),
            real,
            rules,
            within: Vec::new(),
            left_out: LeftOut::default(),
            seen: 0,
            alarm: alarm.clone(),
        };
        match list(folder, MAX_WAITING, OFlags::empty()) {
            Ok(entries) => walk.push(folder.to_owned(), entries, 0),
            Err(error) => walk.leave_out(folder, &error.to_string()),
        }
        Ok(walk)
    }

    /// What the walk itself had to leave out, once it is over.
    pub fn into_left_out(self) -> LeftOut {
        self.left_out
    }

    fn push(&mut self, path: PathBuf, entries: Vec<Entry>, height: usize) {
        self.within.push(Folder { path, rest: entries.into_iter(), height });
    }

    fn leave_out(&mut self, path: &Path, reason: &str) {
        self.left_out.add(&line(path, &self.workspace), reason);
    }

    /// Goes into a folder, and tells whether it could.
    fn enter(&mut self, path: &Path) -> bool {
        let waiting: usize = self.within.iter().map(|folder| folder.rest.len()).sum();
        // Should a link have taken its name, it is not followed.
        let entries = match list(path, MAX_WAITING.saturating_sub(waiting), OFlags::NOFOLLOW) {
            Ok(entries) => entries,
            Err(error) => {
                // It was there when the folder around it was listed.
                if error.kind() != ErrorKind::NotFound {
                    self.leave_out(path, &error.to_string());
                }
                return false;
            }
        };
        let height = self.rules.height();
        let real = real_path(path, &self.folder, &self.real);
        if let Err(trouble) = self.rules.enter(&real, |name| holds(&entries, name)) {
            self.leave_out(path, &trouble);
            return false;
        }
        self.push(path.to_owned(), entries, height);
        true
    }

    /// Whether nothing leaves out what is in the folder entered last. What goes first is ripgrep's order.
    fn lets_through(&self, path: &Path, entry: &Entry) -> bool {
        let is_folder = entry.form == Form::Folder;
        match self.options.overrides.matched(path, is_folder) {
            Match::Ignore(_) => return false,
            Match::Whitelist(_) => return true,
            Match::None => {}
        }
        let by_rules = self.rules.verdict(&real_path(path, &self.folder, &self.real), is_folder);
        if by_rules.is_ignore() {
            return false;
        }
        let by_type = self.options.types.matched(path, is_folder);
        let is_asked_for = by_rules.is_whitelist() || by_type.is_whitelist() || self.options.hidden;
        !by_type.is_ignore() && (is_asked_for || !entry.name.as_bytes().starts_with(b"."))
    }
}

impl Iterator for Walk {
    type Item = (PathBuf, Form);

    fn next(&mut self) -> Option<(PathBuf, Form)> {
        loop {
            let folder = self.within.last_mut()?;
            let Some(entry) = folder.rest.next() else {
                self.rules.leave(folder.height);
                self.within.pop();
                continue;
            };
            let path = folder.path.join(&*entry.name);
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                let reason = format!("the first {MAX_ENTRIES} files and folders were; give a narrower path");
                self.left_out.add("the rest", &reason);
                self.within.clear();
                return None;
            }
            if let Some(ring) = self.alarm.rung() {
                self.left_out.add("the rest", &ring.to_string());
                self.within.clear();
                return None;
            }
            if self.lets_through(&path, &entry) && (entry.form != Form::Folder || self.enter(&path)) {
                return Some((path, entry.form));
            }
        }
    }
}

/// What is in a folder, in the order of names.
///
/// Errors: it cannot be listed, or holds more than `most`.
fn list(path: &Path, most: usize, flags: OFlags) -> io::Result<Vec<Entry>> {
    let flags = flags | OFlags::DIRECTORY | OFlags::NONBLOCK;
    let folder = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if opening::is_procfs(&folder)? {
        return Err(io::Error::new(ErrorKind::Unsupported, "it is on procfs"));
    }
    let mut entries = Vec::new();
    for entry in Dir::new(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        if entries.len() >= most {
            let text = format!("it holds more than {most} files and folders; give a path inside it");
            return Err(io::Error::new(ErrorKind::Unsupported, text));
        }
        entries.push(Entry { name: name.into(), form: form(entry.file_type(), path, name) });
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// What a folder says that a name in it is. Some file systems leave that to be asked of the file.
fn form(said: FileType, folder: &Path, name: &OsStr) -> Form {
    let asked = || fs::symlink_metadata(folder.join(name)).map(|it| FileType::from_raw_mode(it.mode()));
    let kind = if said == FileType::Unknown { asked().unwrap_or(said) } else { said };
    match kind {
        FileType::RegularFile => Form::File,
        FileType::Directory => Form::Folder,
        FileType::Symlink => Form::Link,
        _ => Form::Other,
    }
}

fn holds(sorted: &[Entry], name: &str) -> bool {
    sorted.binary_search_by(|entry| (*entry.name).cmp(OsStr::new(name))).is_ok()
}

/// The real path of what is below `folder`, whose real path is `real`.
fn real_path<'a>(path: &'a Path, folder: &Path, real: &Path) -> Cow<'a, Path> {
    match path.strip_prefix(folder) {
        Ok(inside) if folder != real => Cow::Owned(real.join(inside)),
        _ => Cow::Borrowed(path),
    }
}

/// A path as a line of a result.
pub fn line(path: &Path, workspace: &Workspace) -> String {
    let name = workspace.display(path);
    // A line break in a name would make two names of it.
    if name.contains(char::is_control) { format!("{name:?}") } else { name }
}

/// A result with what must be said of it in brackets at its end.
pub fn with_remarks(mut text: String, remarks: &[String]) -> String {
    if !remarks.is_empty() {
        text.push_str(&format!("[{}]", remarks.join("; ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::write::tests::Folder as TestFolder;

    #[test]
    fn a_folder_with_too_many_names_is_not_held_in_memory() {
        let folder = TestFolder::new("walk-wide");
        for name in ["b", "a", "c"] {
            folder.put(name, "");
        }
        let listed = |most| {
            let entries = list(&folder.path, most, OFlags::empty()).map_err(|error| error.to_string())?;
            Ok(entries.into_iter().map(|entry| entry.name.display().to_string()).collect::<Vec<_>>())
        };
        assert_eq!(listed(3), Ok(["a", "b", "c"].map(str::to_owned).to_vec()));
        let text = "it holds more than 2 files and folders; give a path inside it";
        assert_eq!(listed(2), Err(text.to_owned()));
    }

    #[test]
    fn a_walk_ends_with_the_run_and_says_so() {
        let folder = TestFolder::new("walk-late");
        folder.put("a", "");
        let workspace = Workspace { root: folder.path.clone(), private: None, places: Vec::new() };
        let walked = |alarm: &Alarm| {
            let overrides = overrides(&[], &folder.path).unwrap();
            let options = Options { hidden: false, overrides, types: Types::empty() };
            let mut walk = Walk::new(&folder.path, &workspace, options, alarm).unwrap();
            ((&mut walk).count(), walk.into_left_out().remark())
        };
        assert_eq!(walked(&Alarm::default()), (1, None));
        let remark = "not searched: the rest (the run's 0 s are over (--timeout))";
        assert_eq!(walked(&Alarm::after(std::time::Duration::ZERO)), (0, Some(remark.to_owned())));
    }

    #[test]
    fn a_glob_is_relative_however_it_is_written() {
        for (glob, folder, expected) in [
            ("*.rs", "/w", "*.rs"),
            ("./a", "/w", "/a"),
            ("!./a", "/w", "!/a"),
            ("/w/src/**", "/w", "/src/**"),
            ("!/w/src/**", "/w", "!/src/**"),
            ("/wide/src/**", "/w", "/wide/src/**"),
            ("/src/**", "/", "/src/**"),
        ] {
            assert_eq!(relative(glob, Path::new(folder)), expected, "{glob}");
        }
    }
}
