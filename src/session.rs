//! The files that runs leave: conversations as JSON lines, only ever appended to.
//!
//! Each message is handed to the kernel by one write before the next request, so a kill loses nothing; the
//! file is synced when the run ends. A file in use is locked, so that no two runs write into one. Where no file
//! can be had, a run goes on without, unless it was to go on with an earlier one.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::claim;
use crate::config::{Secret, hide};
use crate::conversation::{Conversation, push_member};
use crate::error::Error;
use crate::tools::write;

mod folder;
mod forks;
mod id;
mod reading;

use forks::Fork;
pub use id::is_id;
use reading::{Kept, VERSION};

/// Which conversation a run is part of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Source {
    /// One of its own.
    #[default]
    New,
    /// The last one of this folder, if there is one.
    Last,
    /// The one of this id, or the only one whose id begins so.
    Named(String),
}

/// What a command line asks for.
pub struct Wanted {
    /// The conversation.
    pub source: Source,
    /// Whether to go on with a copy.
    pub fork: bool,
    /// The id that a new file is to have, if it was named.
    pub id: Option<String>,
}

/// Where sessions are, and what this run may do there.
#[derive(Debug, Clone)]
pub struct Place {
    /// The folder of session files; absent if there can be none.
    pub folder: Option<PathBuf>,
    /// Whether this run keeps one.
    pub keeps: bool,
    /// The folder that the run works in.
    pub workspace: PathBuf,
    /// How long a session that is in use is waited for.
    pub patience: Duration,
}

/// How long a killed run's session is waited for at most: ending what its tools had started takes milliseconds, on a
/// machine with too much to do half a second.
pub const MOST_PATIENCE: Duration = Duration::from_secs(2);

/// How a run begins.
pub struct Start {
    /// The id of the session.
    pub id: String,
    /// What the user is to read of it.
    pub notices: Vec<String>,
    conversation: Conversation,
    file: Planned,
}

enum Planned {
    /// None is written.
    None,
    /// A new one.
    New { folder: PathBuf, workspace: PathBuf, purpose: Purpose },
    /// One that begins with a copy.
    Fork(Fork),
    /// One that is there.
    Open(Session),
}

/// What a new file is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It is kept where that can be.
    Usual,
    /// It is to be found under the id that was named.
    Named,
    /// The next run is to go on with it.
    Continued,
}

/// What a run has once it begins.
pub struct Begun {
    /// What was said before.
    pub conversation: Conversation,
    /// The file that is written, if there is one.
    pub session: Option<Session>,
    /// Why there is none though one was wanted, and whether that was asked for by name.
    pub unkept: Option<Unkept>,
}

/// Why a run keeps no session.
pub enum Unkept {
    /// Nobody asked for one, and the reason is no fault.
    Quiet(String),
    /// An id was named, or the disk is full.
    Warned(String),
}

/// Finds the conversation that is wanted and reads it. Nothing is written yet, but a file that will be is locked.
/// A new file has the id that was named, or this one.
///
/// # Errors
///
/// `Usage` says which session is missing, in use, or no session.
pub fn open(wanted: &Wanted, place: &Place, fresh_id: &str) -> Result<Start, Error> {
    let own_id = wanted.id.as_deref().unwrap_or(fresh_id).to_owned();
    let found = match (&wanted.source, &place.folder) {
        (Source::New, _) => None,
        (_, None) => {
            return Err(Error::Usage(
                "there are no sessions to go on with: without XDG_STATE_HOME and a HOME that exists none are kept"
                    .to_owned(),
            ));
        }
        (Source::Last, Some(folder)) => folder::last(folder, &place.workspace)?,
        (Source::Named(name), Some(folder)) => Some(folder::named(folder, name, &place.workspace)?),
    };
    match (found, &place.folder) {
        (Some(path), Some(_)) if place.keeps && !wanted.fork => go_on(path, place),
        (Some(path), Some(folder)) if place.keeps => {
            // What is being written to can be copied too, as far as it goes.
            let kept = read(&path, place)?;
            folder::check_unused(folder, &own_id)?;
            let fork = Fork {
                path,
                whole: kept.whole,
                needs_line_end: kept.needs_line_end,
                folder: folder.clone(),
                workspace: place.workspace.clone(),
            };
            Ok(start(own_id, kept, Planned::Fork(fork)))
        }
        (Some(path), _) => {
            let kept = read(&path, place)?;
            let id = if wanted.fork { own_id } else { folder::id_of(&path) };
            Ok(start(id, kept, Planned::None))
        }
        (None, _) => begin(own_id, wanted, place),
    }
}

fn start(id: String, kept: Kept, file: Planned) -> Start {
    Start { id, conversation: kept.conversation, notices: kept.notices, file }
}

fn read(path: &Path, place: &Place) -> Result<Kept, Error> {
    let file = folder::open_file(path, OpenOptions::new().read(true)).map_err(|why| unusable(path, &why))?;
    reading::read(&file, &place.workspace).map_err(|why| unusable(path, &why))
}

/// A conversation whose file is added to.
fn go_on(path: PathBuf, place: &Place) -> Result<Start, Error> {
    let mut session = Session::open(&path, place.patience)?;
    let kept = reading::read(&session.file, &place.workspace).map_err(|why| unusable(&path, &why))?;
    session.mend = Some(Mend { whole: kept.whole, read: kept.read, needs_line_end: kept.needs_line_end });
    Ok(start(folder::id_of(&path), kept, Planned::Open(session)))
}

/// A conversation of its own.
fn begin(id: String, wanted: &Wanted, place: &Place) -> Result<Start, Error> {
    let mut notices = Vec::new();
    let purpose = match (&wanted.source, &wanted.id) {
        (Source::Last, _) => Purpose::Continued,
        (_, Some(_)) => Purpose::Named,
        _ => Purpose::Usual,
    };
    if purpose == Purpose::Continued {
        notices.push("this folder has no session to continue: a new one begins".to_owned());
    }
    let file = match &place.folder {
        Some(folder) if place.keeps => {
            if wanted.id.is_some() {
                folder::check_unused(folder, &id)?;
            }
            Planned::New { folder: folder.clone(), workspace: place.workspace.clone(), purpose }
        }
        _ => Planned::None,
    };
    Ok(Start { id, conversation: Conversation::default(), notices, file })
}

fn unusable(path: &Path, why: &str) -> Error {
    Error::Usage(format!("the session \"{}\" cannot be used: {why}", path.display()))
}

impl Start {
    /// Makes the file that the run writes, or takes the one that it goes on with. The origin is that of this
    /// run's replies; the secrets are never written.
    ///
    /// # Errors
    ///
    /// Why there is no file, where a run without one is not what was asked for.
    pub fn begin(self, origin: &str, secrets: Vec<Secret>) -> Result<Begun, Error> {
        let mut unkept = None;
        let session = match self.file {
            Planned::None => None,
            Planned::Open(session) => Some(session),
            Planned::Fork(fork) => Some(fork.make(&self.id, origin)?),
            Planned::New { folder, workspace, purpose } => {
                match Session::create(&folder, &self.id, &workspace, origin) {
                    Ok(session) => Some(session),
                    Err(error) => {
                        unkept = Some(purpose.without_file(&self.id, &error)?);
                        None
                    }
                }
            }
        };
        let session = session.map(|session| Session { secrets, ..session });
        Ok(Begun { conversation: self.conversation, session, unkept })
    }
}

impl Purpose {
    /// What it means that there can be no file. Errors: the run cannot be what was asked for.
    fn without_file(self, id: &str, error: &io::Error) -> Result<Unkept, Error> {
        let why = format!("no session is kept: {error}");
        let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        match self {
            // A home that cannot be written is usual in a container; a full disk is a fault that somebody wants to know.
            Purpose::Usual if is_full => Ok(Unkept::Warned(why)),
            Purpose::Usual => Ok(Unkept::Quiet(why)),
            Purpose::Named if error.kind() == io::ErrorKind::AlreadyExists => Err(folder::used(id)),
            Purpose::Named => Ok(Unkept::Warned(why)),
            Purpose::Continued => Err(Error::Usage(format!(
                "there is no session to continue, and none can be kept to go on with: {error}: set XDG_STATE_HOME, \
                 or leave --continue out"
            ))),
        }
    }
}

/// A session file that is being written.
pub struct Session {
    path: PathBuf,
    file: File,
    /// Whether this run has made it, so that its name may not be on the disk either.
    is_new: bool,
    /// What is done to its end before the next line is added.
    mend: Option<Mend>,
    /// Lines that are still to be written, with their ends.
    unwritten: VecDeque<String>,
    /// Never written, though a result may quote them.
    secrets: Vec<Secret>,
}

/// The end of a file that an earlier run wrote, perhaps not to its end, or that a full disk has cut.
struct Mend {
    /// How long the file is without a line that breaks off.
    whole: u64,
    /// How long it was when it was read.
    read: u64,
    /// Whether the last line lacks nothing but its end.
    needs_line_end: bool,
}

impl Session {
    /// Makes the file in `folder`, which is made with its parents if need be.
    fn create(folder: &Path, id: &str, workspace: &Path, origin: &str) -> io::Result<Session> {
        let path = folder::path_of(folder, id);
        let at = |error: io::Error| io::Error::new(error.kind(), format!("\"{}\": {error}", path.display()));
        make_folder(folder).map_err(at)?;
        let file = new_file(&path).map_err(at)?;
        let mut session = Session::of(path.clone(), file);
        let first = header(id, workspace, origin, None);
        session.file.write_all(first.as_bytes()).map_err(|error| {
            // What is no session must not keep its id from the next run.
            let _ = fs::remove_file(&path);
            at(error)
        })?;
        session.is_new = true;
        Ok(session)
    }

    /// Opens the file of an earlier run to add to it.
    fn open(path: &Path, patience: Duration) -> Result<Session, Error> {
        let file = folder::open_file(path, OpenOptions::new().read(true).append(true)).map_err(|why| {
            let way = match folder::open_file(path, OpenOptions::new().read(true)) {
                Ok(_) => ": pass --no-session-persistence to go on without adding to it",
                Err(_) => "",
            };
            unusable(path, &format!("{why}{way}"))
        })?;
        let session = Session::of(path.to_owned(), file);
        match session.lock_within(patience) {
            true => Ok(session),
            false => Err(Error::Usage(format!(
                "the session {} is in use by another run: wait for its end, or go on with a copy of it (--fork-session)",
                folder::id_of(path)
            ))),
        }
    }

    fn of(path: PathBuf, file: File) -> Session {
        Session { path, file, is_new: false, mend: None, unwritten: VecDeque::new(), secrets: Vec::new() }
    }

    /// Locks the file as soon as it is free, and gives whether it was in time. A run that was killed holds it until all
    /// that its tools had started is ended, in its first moment after: what is still at work must not meet what this
    /// run does.
    fn lock_within(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        loop {
            match claim::lock(&self.file) {
                false if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                is_locked => return is_locked,
            }
        }
    }

    /// The file whose lock this run holds.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Appends these lines, behind those that could not be written before.
    ///
    /// # Errors
    ///
    /// `Internal` if the disk does not take them: a session once begun is kept whole or the run ends.
    pub fn append(&mut self, lines: Vec<String>) -> Result<(), Error> {
        let ended = |line: String| line + "\n";
        self.unwritten.extend(lines.into_iter().map(|line| hide(ended(line), &self.secrets)));
        while let Some(line) = self.unwritten.pop_front() {
            if let Err(error) = self.write(&line) {
                self.unwritten.push_front(line);
                return Err(self.lost(&error));
            }
        }
        Ok(())
    }

    /// Writes one line whole. What the disk took of one that it did not take to its end is cut off by the next.
    fn write(&mut self, line: &str) -> io::Result<()> {
        if let Some(mend) = &self.mend {
            self.mend_end(mend)?;
        }
        let needs_line_end = self.mend.take().is_some_and(|mend| mend.needs_line_end);
        let text = match needs_line_end {
            true => Cow::Owned(format!("\n{line}")),
            false => Cow::Borrowed(line),
        };
        let mut rest = text.as_bytes();
        // Almost always one write. How much of a line the disk has taken is counted here, not asked before each.
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(amount) if amount > 0 => rest = &rest[amount..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    let length = self.file.metadata()?.len();
                    let whole = length.saturating_sub((text.len() - rest.len()) as u64);
                    self.mend = Some(Mend { whole, read: length, needs_line_end });
                    return Err(failed.err().unwrap_or_else(|| io::ErrorKind::WriteZero.into()));
                }
            }
        }
        Ok(())
    }

    /// Takes a line that breaks off away, so that the next does not join it.
    fn mend_end(&self, mend: &Mend) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length != mend.read {
            // A file system without locks lets that happen.
            return Err(io::Error::other("another run has written to it"));
        }
        match length > mend.whole {
            true => self.file.set_len(mend.whole),
            false => Ok(()),
        }
    }

    /// Sees that the file is on the disk, and its name if it is new.
    pub fn sync(&self) -> Result<(), Error> {
        let named = || match self.path.parent() {
            Some(folder) if self.is_new => write::sync_folder(folder),
            _ => Ok(()),
        };
        self.file.sync_data().and_then(|()| named()).map_err(|error| self.lost(&error))
    }

    fn lost(&self, error: &io::Error) -> Error {
        Error::Internal(format!(
            "cannot write the session \"{}\": {error}: make room, or pass --no-session-persistence",
            self.path.display()
        ))
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// A new file of this run's. Errors: `AlreadyExists` if another run has one of this name, or takes it meanwhile.
fn new_file(path: &Path) -> io::Result<File> {
    claim::create(path, OpenOptions::new().append(true).mode(0o600))
}

/// How a file names a working folder: as it is, or quoted with escapes where it is no UTF-8, so that no two folders
/// have one name.
fn name_of(workspace: &Path) -> String {
    workspace.to_str().map_or_else(|| format!("{workspace:?}"), str::to_owned)
}

/// The first line of a file.
fn header(id: &str, workspace: &Path, origin: &str, forked_from: Option<&str>) -> String {
    let mut first = format!(r#"{{"type":"session","version":{VERSION}"#);
    let folder = name_of(workspace);
    let members = [
        ("id", Some(id)),
        ("folder", Some(&*folder)),
        ("origin", Some(origin)),
        ("forked_from", forked_from),
    ];
    for (name, text) in members {
        if let Some(text) = text {
            push_member(&mut first, name, text);
        }
    }
    first.push_str("}\n");
    first
}

#[cfg(test)]
mod tests;
