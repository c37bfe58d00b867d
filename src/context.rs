//! Context files: what `AGENTS.md` and its like say to the model, put behind the system prompt.
//!
//! They are text and nothing else: no flag, no tool and no right comes from them. Their order and their names
//! are the same wherever the checkout and the home lie.

pub mod imports;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::checkout::{self, Checkout, Skip, Sources, TextFile};

/// The files of a checkout's folder of which the first that is there is read.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md"];
/// The user's notes in a folder of a checkout, not checked in.
const LOCAL_NAME: &str = "CLAUDE.local.md";
/// The user's own file in the folder of configuration.
const OWN_NAME: &str = "AGENTS.md";

/// The most that is given of one file, and of all.
const MOST_FILE_BYTES: usize = 64 * 1024;
const MOST_BYTES: usize = 256 * 1024;
/// The most files that are read.
const MOST_FILES: usize = 100;
/// How many files may lie in a row of which each imports the next: as many as Claude Code reads.
const MOST_DEPTH: usize = 5;
/// The most lines about files that were left out: a checkout could fill the terminal with them.
const MOST_NOTICES: usize = 10;

const INTRODUCTION: &str = "\
The files below hold standing instructions: the user's own for all work, the others for work in the folder that \
they lie in and below it. Follow them. Where two disagree the later one holds, and what the user asks for holds \
before all of them.";

/// What the context files of a run say, and what there is to say of them.
#[derive(Debug, Default)]
pub struct Context {
    /// What follows the system prompt; empty if there is no file.
    pub text: String,
    /// What the user is to read: files that were cut or left out.
    pub notices: Vec<String>,
    /// What `--verbose` tells: files that were read, and mentions that turned out to be no file.
    pub details: Vec<String>,
}

/// Where context files lie.
pub struct Places<'a> {
    /// The checkout that the run stands in.
    pub checkout: &'a Checkout,
    /// The folder of the user's own.
    pub own: Option<&'a Path>,
    /// What `~` means in the user's own.
    pub home: Option<&'a Path>,
}

/// Reads the context files of these sources: the user's, then those from the checkout's root down to the current
/// folder, each followed by what it imports.
pub fn read(places: &Places, sources: Sources) -> Context {
    let mut reader = Reader {
        places,
        own: None,
        home: None,
        seen: BTreeSet::new(),
        room: MOST_BYTES,
        is_full: false,
        skipped: 0,
        context: Context::default(),
    };
    if let (true, Some(folder)) = (sources.user, places.own) {
        reader.add_first(&Owner::User, folder, &[OWN_NAME]);
    }
    for folder in places.checkout.folders() {
        if sources.project {
            reader.add_first(&Owner::Checkout, folder, &NAMES);
        }
        if sources.local {
            reader.add_first(&Owner::Checkout, folder, &[LOCAL_NAME]);
        }
    }
    reader.finish()
}

/// Whose a file is, and with it from where it may import.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// The user: from the folder of configuration and from home.
    User,
    /// Whoever wrote what the user's file imports from home, which may be a stranger: from this folder.
    Guest(PathBuf),
    /// The checkout: from it.
    Checkout,
}

struct Reader<'a> {
    places: &'a Places<'a>,
    /// The real path of the folder of the user's own, known once there is such a file.
    own: Option<PathBuf>,
    /// The real path of home, likewise.
    home: Option<PathBuf>,
    /// The real paths of those that were read, each of them once.
    seen: BTreeSet<PathBuf>,
    /// How many bytes are left of all.
    room: usize,
    /// Whether a file was left out because there were too many.
    is_full: bool,
    /// How many notices were left out.
    skipped: usize,
    context: Context,
}

impl Reader<'_> {
    /// Adds the first of these files that can be read.
    fn add_first(&mut self, owner: &Owner, folder: &Path, names: &[&str]) {
        for name in names {
            let path = folder.join(name);
            let skip = match self.add(owner, &path, 1) {
                Ok(()) => return,
                Err(Skip::Missing) => continue,
                Err(skip) => skip,
            };
            let shown = match owner {
                Owner::Checkout => self.places.checkout.name(&path),
                Owner::User | Owner::Guest(_) => format!("your own {name}"),
            };
            self.notice(format!("{shown} is not read: {skip}"));
        }
    }

    /// Adds a file and what it imports, unless it was read before. The depth of a file that none imports is 1.
    fn add(&mut self, owner: &Owner, path: &Path, depth: usize) -> Result<(), Skip> {
        if self.seen.len() == MOST_FILES {
            self.is_full = true;
            return Ok(());
        }
        // One call where there is nothing, which is the usual case.
        fs::symlink_metadata(path).map_err(checkout::unreadable)?;
        let is_own = *owner == Owner::User && depth == 1;
        let folders: Vec<&Path> = match owner {
            Owner::User if is_own => vec![self.root_of_own(path)],
            Owner::User => [&self.own, &self.home].into_iter().flatten().map(PathBuf::as_path).collect(),
            Owner::Guest(folder) => vec![folder],
            Owner::Checkout => vec![self.places.checkout.root()],
        };
        let file = checkout::read_text(path, &folders, MOST_FILE_BYTES.min(self.room))?;
        if !self.seen.insert(file.real.clone()) {
            return Ok(());
        }
        self.room -= file.text.len();
        if is_own {
            let real = |folder: Option<&Path>| folder?.canonicalize().ok();
            (self.own, self.home) = (real(self.places.own), real(self.places.home));
        }
        let name = match owner {
            Owner::User if is_own => format!("the user's own {OWN_NAME}"),
            Owner::User | Owner::Guest(_) => self.own_name(&file.real),
            Owner::Checkout => self.places.checkout.name(&file.real),
        };
        self.context.details.push(format!("context: {name} ({} bytes)", file.bytes));
        let (text, imports) = imports::read(&file.text);
        self.put(&name, &text, &file);
        let folder = file.real.parent().unwrap_or(Path::new("/"));
        let is_guest = *owner == Owner::User && !is_own && !is_inside(folder, self.own.as_deref());
        let owner = if is_guest { &Owner::Guest(folder.to_owned()) } else { owner };
        for import in imports {
            self.import(owner, folder, &import, &name, depth + 1);
        }
        Ok(())
    }

    /// Where the user's own file has to lie. That is the user's business, as many link it from elsewhere, unless a
    /// checkout has put it there, as where a container's home lies in one.
    fn root_of_own(&self, path: &Path) -> &Path {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        match folder.is_some_and(|folder| self.places.checkout.holds(&folder)) {
            true => self.places.checkout.root(),
            false => Path::new("/"),
        }
    }

    /// Adds the file that another imports, or says why not.
    fn import(&mut self, owner: &Owner, folder: &Path, import: &str, importer: &str, depth: usize) {
        // The end of a sentence is no part of a name, unless there is such a file.
        let shorter = import.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', '"', '\'']);
        let mut added = Err(Skip::Missing);
        for path in [import, shorter] {
            added = self.import_path(owner, folder, path).and_then(|path| match depth > MOST_DEPTH {
                true => self.leave_out(&path, importer),
                false => self.add(owner, &path, depth),
            });
            if !matches!(added, Err(Skip::Missing)) || shorter.is_empty() {
                break;
            }
        }
        match added {
            Ok(()) => {}
            // A word behind an @ is as often a name, or a package, as it is a file.
            Err(skip @ (Skip::Missing | Skip::Folder)) => {
                self.context.details.push(format!("context: @{import} in {importer} is no import: {skip}"));
            }
            Err(skip) => {
                let reason = match (&skip, owner) {
                    (Skip::Outside, Owner::Checkout) if import.starts_with("~/") => {
                        "only your own AGENTS.md may import from home".to_owned()
                    }
                    (Skip::Outside, Owner::User) => {
                        "it lies neither at home nor beside your own AGENTS.md".to_owned()
                    }
                    (Skip::Outside, Owner::Guest(_)) => {
                        "what your own AGENTS.md imports from home may import from its own folder".to_owned()
                    }
                    _ => skip.to_string(),
                };
                self.notice(format!("@{import} in {importer} is not read: {reason}"));
            }
        }
    }

    /// Where an import leads. What is outside is not even looked at.
    fn import_path(&self, owner: &Owner, folder: &Path, import: &str) -> Result<PathBuf, Skip> {
        let path = match (import.strip_prefix("~/"), owner) {
            (Some(inside), Owner::User) => self.home.as_ref().ok_or(Skip::Outside)?.join(inside),
            (Some(_), _) => return Err(Skip::Outside),
            (None, _) => folder.join(import),
        };
        let path = without_dots(&path);
        let may_be = match owner {
            Owner::Checkout => is_inside(&path, Some(self.places.checkout.root())),
            Owner::Guest(folder) => is_inside(&path, Some(folder)),
            Owner::User => is_inside(&path, self.own.as_deref()) || is_inside(&path, self.home.as_deref()),
        };
        if may_be { Ok(path) } else { Err(Skip::Outside) }
    }

    /// Says of a file that is there and new that it is imported too deep to be read.
    fn leave_out(&mut self, path: &Path, importer: &str) -> Result<(), Skip> {
        let real = path.canonicalize().map_err(|_| Skip::Missing)?;
        if !self.seen.contains(&real) {
            self.notice(format!(
                "the imports of {importer} are not read: it is the {MOST_DEPTH}th file in a row"
            ));
        }
        Ok(())
    }

    /// How the model is told a file that the user's own one imports.
    fn own_name(&self, real: &Path) -> String {
        let inside =
            |folder: &Option<PathBuf>| real.strip_prefix(folder.as_ref()?).ok().map(checkout::printable);
        match (inside(&self.own), inside(&self.home)) {
            (None, Some(name)) => format!("~/{name}"),
            (name, _) => format!("the user's own {}", name.unwrap_or_default()),
        }
    }

    /// Puts a file's text behind the others.
    fn put(&mut self, name: &str, text: &str, file: &TextFile) {
        let mut text = text.trim_start_matches('\n').trim_end().to_owned();
        if file.is_cut {
            let shown = file.text.len();
            text.push_str(&format!("\n[cut here: {shown} of {} bytes are shown]", file.bytes));
            self.notice(format!(
                "{name} is {} bytes long, of which the model gets {shown}: context files are limited to \
                 {MOST_FILE_BYTES} bytes each and {MOST_BYTES} in all",
                file.bytes
            ));
        }
        if !text.is_empty() {
            let (name, text) = (name.replace('"', "'"), without_ends(&text));
            self.context.text.push_str(&format!("\n\n<file name=\"{name}\">\n{text}\n</file>"));
        }
    }

    fn notice(&mut self, line: String) {
        match self.context.notices.len() < MOST_NOTICES {
            true => self.context.notices.push(line),
            false => self.skipped += 1,
        }
    }

    fn finish(mut self) -> Context {
        if !self.context.text.is_empty() {
            self.context.text.insert_str(0, INTRODUCTION);
        }
        if self.skipped > 0 {
            self.context.notices.push(format!("{} more context files are not read, or cut", self.skipped));
        }
        if self.is_full {
            self.context.notices.push(format!("no more than {MOST_FILES} context files are read"));
        }
        self.context
    }
}

/// A file's text that cannot end the block that it stands in: what follows would pass for another's.
fn without_ends(text: &str) -> String {
    let is_end = |piece: &str| piece.get(..4).is_some_and(|name| name.eq_ignore_ascii_case("file"));
    let mut pieces = text.split("</");
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        kept.push_str(if is_end(piece) { "<\\/" } else { "</" });
        kept.push_str(piece);
    }
    kept
}

fn is_inside(path: &Path, folder: Option<&Path>) -> bool {
    folder.is_some_and(|folder| path.starts_with(folder))
}

/// The path with `..` taken by the letter.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
