//! The files that a search goes through: those ripgrep would, in the order of their paths.
//!
//! The walk reads nothing but folders and the files of rules in them, neither of which it may wait for: a
//! checkout can hold a FIFO of any name. It asks for no setting of the user's, so that equal trees give
//! equal results in any HOME.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::Types;
use ignore::{DirEntry, WalkBuilder};

use crate::tools::Workspace;
use crate::tools::opening::{self, Kind};

/// A walk ends after this many files and folders.
const MAX_ENTRIES: usize = 1_000_000;
/// A file of rules larger than this is not taken for one: all of it is held in memory.
const MAX_RULES_BYTES: u64 = 1 << 20;

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
            _ if is_procfs(&path) => {
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
        builder.add(without_dot_slash(glob).as_ref()).map_err(complaint)?;
    }
    builder.build().map_err(complaint)
}

/// A glob without the `./` that paths never begin with when they are compared.
fn without_dot_slash(glob: &str) -> String {
    match (glob.strip_prefix("./"), glob.strip_prefix("!./")) {
        (Some(rest), _) => format!("/{rest}"),
        (_, Some(rest)) => format!("!/{rest}"),
        _ => glob.to_owned(),
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

/// The files below a folder, each folder's in the order of their names.
pub struct Walk {
    entries: ignore::Walk,
    workspace: Workspace,
    /// Shared with the walk's filter, which the crate would hand to several threads if there were any.
    left_out: Arc<Mutex<LeftOut>>,
    seen: usize,
}

impl Walk {
    /// Starts at `folder`.
    ///
    /// Errors: a file of rules in the folder or above it that cannot be read without harm.
    pub fn new(folder: &Path, workspace: &Workspace, options: Options) -> Result<Walk, String> {
        // The crate looks for rules in what the path really is.
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        for (height, above) in real.ancestors().enumerate() {
            if let Some(trouble) = rules_trouble(above) {
                let place = match height {
                    0 => workspace.display(folder),
                    _ => format!("a folder above {}", workspace.display(folder)),
                };
                return Err(format!(
                    "cannot search: in {place}, {trouble}; remove it or search another path"
                ));
            }
        }
        let left_out = Arc::new(Mutex::new(LeftOut::default()));
        let entries = WalkBuilder::new(folder)
            // Else the crate asks the process for its current folder.
            .current_dir(&workspace.root)
            .git_global(false)
            .add_custom_ignore_filename(".rgignore")
            .hidden(!options.hidden)
            .overrides(options.overrides)
            .types(options.types)
            // Within a folder the order of paths is that of names, and found without taking paths apart.
            .sort_by_file_path(|one, other| one.as_os_str().cmp(other.as_os_str()))
            .filter_entry(filter(workspace.clone(), Arc::clone(&left_out)))
            .build();
        Ok(Walk { entries, workspace: workspace.clone(), left_out, seen: 0 })
    }

    /// What the walk itself had to leave out, once it is over.
    pub fn into_left_out(self) -> LeftOut {
        std::mem::take(&mut locked(&self.left_out))
    }
}

impl Iterator for Walk {
    type Item = PathBuf;

    fn next(&mut self) -> Option<PathBuf> {
        loop {
            let entry = self.entries.next()?;
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                let reason = format!("the first {MAX_ENTRIES} files and folders were; give a narrower path");
                locked(&self.left_out).add("the rest", &reason);
                return None;
            }
            match entry {
                // Links are not followed, so that this is a regular file itself.
                Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                    return Some(entry.into_path());
                }
                Ok(_) => {}
                Err(error) => self.note(&error),
            }
        }
    }
}

impl Walk {
    /// Notes a folder that cannot be listed. A rule that is no glob is passed over, as git does.
    fn note(&self, error: &ignore::Error) {
        if let (Some(path), Some(cause)) = (path_of(error), error.io_error())
            && cause.kind() != io::ErrorKind::NotFound
        {
            locked(&self.left_out).add(&line(path, &self.workspace), &root_cause(cause));
        }
    }
}

/// Decides about what the rules let through. A folder is asked before the crate opens anything in it.
fn filter(
    workspace: Workspace,
    left_out: Arc<Mutex<LeftOut>>,
) -> impl Fn(&DirEntry) -> bool + Send + Sync + 'static {
    move |entry| {
        if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
            return true;
        }
        let path = entry.path();
        let trouble = match is_procfs(path) {
            true => Some("it is on procfs".to_owned()),
            false => rules_trouble(path),
        };
        if let Some(trouble) = &trouble {
            locked(&left_out).add(&line(path, &workspace), trouble);
        }
        trouble.is_none()
    }
}

fn locked(left_out: &Mutex<LeftOut>) -> MutexGuard<'_, LeftOut> {
    left_out.lock().unwrap_or_else(PoisonError::into_inner)
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

/// What lies at the bottom of an error. Those above it name the path, absolutely.
fn root_cause(error: &io::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

fn is_procfs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Says which of the files that the crate reads in a folder it had better not. The crate opens and reads
/// them whatever they are: it would wait for a FIFO, and hold all of an endless device in memory.
fn rules_trouble(folder: &Path) -> Option<String> {
    for name in [".gitignore", ".ignore", ".rgignore"] {
        if let Some(trouble) = trouble(&folder.join(name)) {
            return Some(format!("{name} is {trouble}"));
        }
    }
    let git = folder.join(".git");
    let metadata = fs::metadata(&git).ok()?;
    let exclude = match opening::kind(&metadata) {
        Kind::Directory => Some(git),
        Kind::File => match linked_git(&git, &metadata) {
            Ok(folder) => folder,
            Err(trouble) => return Some(trouble),
        },
        // It only tells that there is a repository.
        Kind::Special(_) => None,
    }?;
    let trouble = trouble(&exclude.join("info/exclude"))?;
    Some(format!(".git/info/exclude is {trouble}"))
}

/// Why a file of rules must not be read, in words that follow "is". What is missing or cannot be opened
/// is no trouble: it has no rules.
fn trouble(path: &Path) -> Option<String> {
    trouble_of(path, &fs::metadata(path).ok()?)
}

fn trouble_of(path: &Path, metadata: &Metadata) -> Option<String> {
    match opening::kind(metadata) {
        Kind::Special(kind) => Some(format!("{kind}, not a file")),
        Kind::File if metadata.len() > MAX_RULES_BYTES => {
            Some(format!("larger than {MAX_RULES_BYTES} bytes"))
        }
        // Its files can be endless, and look empty.
        Kind::File if is_procfs(path) => Some("on procfs".to_owned()),
        Kind::File | Kind::Directory => None,
    }
}

/// The folder that the file `.git` of a linked worktree leads to, found the way the crate finds it.
fn linked_git(git: &Path, metadata: &Metadata) -> Result<Option<PathBuf>, String> {
    if let Some(trouble) = trouble_of(git, metadata) {
        return Err(format!(".git is {trouble}"));
    }
    let Some(line) = first_line(git) else { return Ok(None) };
    let Some(folder) = line.strip_prefix("gitdir: ").map(PathBuf::from) else { return Ok(None) };
    let common = folder.join("commondir");
    if let Some(trouble) = trouble(&common) {
        return Err(format!("the commondir that .git leads to is {trouble}"));
    }
    Ok(first_line(&common).map(|line| if line.starts_with('.') { folder.join(line) } else { line.into() }))
}

fn first_line(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(MAX_RULES_BYTES).read_to_end(&mut text).ok()?;
    String::from_utf8(text).ok()?.lines().next().map(str::to_owned)
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
