//! A new session that begins with a copy of another's lines, which stays as it is.

use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{Mend, Session, folder, header, make_folder, new_file};
use crate::claim;
use crate::error::Error;

/// A copy that is yet to be made.
pub struct Fork {
    /// The file to copy.
    pub path: PathBuf,
    /// How much of it is whole lines.
    pub whole: u64,
    /// Whether the last of them lacks its end.
    pub needs_line_end: bool,
    /// Where the copy goes.
    pub folder: PathBuf,
    /// The working folder that it belongs to.
    pub workspace: PathBuf,
}

impl Fork {
    /// Makes the copy under this id, and locks it. Under its name it is there whole or not at all: half of a
    /// conversation could not be told from all of it.
    ///
    /// # Errors
    ///
    /// `Usage` if the id is taken or nothing may be written there, `Internal` if the disk does not take the copy.
    pub fn make(self, id: &str, origin: &str) -> Result<Session, Error> {
        folder::check_unused(&self.folder, id)?;
        let path = folder::path_of(&self.folder, id);
        let unfinished = folder::unfinished_of(&self.folder, id);
        // What a run has left that was killed while it copied would keep the id for ever, and be as long as the copy.
        folder::unfinished(&self.folder).for_each(|path| {
            claim::remove_abandoned(&path, |_| true);
        });
        // One that is not to be had is another run's, and stays.
        let created = make_folder(&self.folder).and_then(|()| new_file(&unfinished));
        let made = created.and_then(|file| {
            let copied = self.copy(Session::of(path.clone(), file), id, origin);
            let renamed = copied.and_then(|session| rename_to_new(&unfinished, &path).map(|()| session));
            renamed.inspect_err(|_| {
                let _ = fs::remove_file(&unfinished);
            })
        });
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => folder::used(id),
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Error::Usage(format!(
                "cannot make the session \"{}\": {error}: pass --no-session-persistence to go on without a copy",
                path.display()
            )),
            _ => Error::Internal(format!(
                "cannot make the session \"{}\": {error}: make room, or pass --no-session-persistence",
                path.display()
            )),
        })
    }

    /// Copies into a new file.
    fn copy(&self, mut session: Session, id: &str, origin: &str) -> io::Result<Session> {
        let opened = folder::open_file(&self.path, OpenOptions::new().read(true));
        let mut from = BufReader::with_capacity(64 * 1024, opened.map_err(io::Error::other)?);
        let header_bytes = from.skip_until(b'\n')? as u64;
        let first = header(id, &self.workspace, origin, Some(&folder::id_of(&self.path)));
        session.file.write_all(first.as_bytes())?;
        let mut whole = first.len() as u64;
        let mut lines = from.take(self.whole.saturating_sub(header_bytes));
        loop {
            let piece = lines.fill_buf()?;
            let count = piece.len();
            if count == 0 {
                break;
            }
            session.file.write_all(piece)?;
            lines.consume(count);
            whole += count as u64;
        }
        session.is_new = true;
        session.mend = Some(Mend { whole, read: whole, needs_line_end: self.needs_line_end });
        Ok(session)
    }
}

/// Gives a file a name that no other has. Not every file system can be asked that in one step.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => match to.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        renamed => Ok(renamed?),
    }
}
