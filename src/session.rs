//! The file that a run leaves: its conversation as JSON lines, only ever appended to.
//!
//! Each message is handed to the kernel by one write before the next request, so a kill loses nothing; the
//! file is synced when the run ends. Where no file can be had, a run goes on without.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::{Secret, hide};
use crate::error::Error;

/// A session file that is being written.
pub struct Session {
    path: PathBuf,
    file: File,
    /// Never written, though a result may quote them.
    secrets: Vec<Secret>,
}

impl Session {
    /// Makes the file in `folder`, which is made with its parents if need be.
    ///
    /// # Errors
    ///
    /// Why there can be none, for `--verbose`: a read-only home is no reason to end a run.
    pub fn create(
        folder: &Path,
        id: &str,
        workspace: &Path,
        origin: &str,
        secrets: Vec<Secret>,
    ) -> Result<Session, String> {
        let path = folder.join(format!("{id}.jsonl"));
        let unusable = |error: std::io::Error| format!("no session is kept: \"{}\": {error}", path.display());
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unusable)?;
        let file =
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path).map_err(unusable)?;
        let mut session = Session { path: path.clone(), file, secrets };
        let first = json!({
            "type": "session", "version": 1, "id": id, "folder": workspace.to_string_lossy(), "origin": origin,
        });
        session.append(&first.to_string()).map_err(|error| error.to_string())?;
        Ok(session)
    }

    /// Appends one line.
    ///
    /// # Errors
    ///
    /// `Internal` if the disk does not take it: a session once begun is kept whole or the run ends.
    pub fn append(&mut self, line: &str) -> Result<(), Error> {
        self.file
            .write_all(format!("{}\n", hide(line, &self.secrets)).as_bytes())
            .map_err(|error| self.lost(&error))
    }

    /// Sees that the file is on the disk.
    pub fn sync(&self) -> Result<(), Error> {
        self.file.sync_data().map_err(|error| self.lost(&error))
    }

    fn lost(&self, error: &std::io::Error) -> Error {
        Error::Internal(format!(
            "cannot write the session \"{}\": {error}: make room, or pass --no-session-persistence",
            self.path.display()
        ))
    }
}
