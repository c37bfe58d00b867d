//! The file that `-o` names: judged before anything is paid for, and written whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::error::Error;
use crate::tools::write::{follow_links, replace_file, sync_folder};

/// The file that `-o` names.
pub struct AnswerFile {
    path: PathBuf,
    /// Where that really lay at the start. Nothing contains cotter, so a tool that makes a symbolic link of
    /// the file, or of a folder above it, must not choose where the answer goes.
    target: Option<PathBuf>,
}

impl AnswerFile {
    /// The file of this name, which need not be there yet.
    ///
    /// # Errors
    ///
    /// `Usage` if no answer can go there: that is found out before it is paid for.
    pub fn new(file: &Path) -> Result<AnswerFile, Error> {
        let folder = folder_of(file);
        if !folder.is_dir() {
            return Err(Error::Usage(format!(
                "-o \"{}\": there is no folder \"{}\"",
                file.display(),
                folder.display()
            )));
        }
        let refuse = |why: &str| Err(Error::Usage(format!("-o \"{}\": {why}", file.display())));
        if file.is_dir() || file.as_os_str().as_bytes().ends_with(b"/") {
            return refuse("it is a folder");
        }
        let target = real_target(file);
        if let Err(error) = may_be_written(file, target.as_deref()) {
            return refuse(&error.to_string());
        }
        Ok(AnswerFile { path: file.to_owned(), target })
    }

    /// Writes the file whole or not at all: beside it first, then in its place. What is no regular file (a
    /// FIFO, a device) is written as it is, and so is what a descriptor leads to: replacing the file behind
    /// `/dev/stdout` would take it from whoever opened it. Tools have ended by now.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let path = &self.path;
        let failed = |error: io::Error| {
            let name = path.display();
            Error::Internal(format!("cannot write \"{name}\": {error}: the answer is on standard output"))
        };
        let is_descriptor = is_descriptor(path);
        if !is_descriptor && real_target(path) != self.target {
            return Err(failed(io::Error::other("it has come to lead elsewhere during the run")));
        }
        let special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
        match is_descriptor || special {
            true => fs::OpenOptions::new()
                .append(true)
                .open(path)
                .and_then(|mut file| file.write_all(bytes))
                .map_err(failed),
            false => {
                let folder =
                    || self.target.as_deref().map_or(Ok(()), |target| sync_folder(folder_of(target)));
                replace_file(path, bytes).and_then(|_| folder()).map_err(failed)
            }
        }
    }
}

/// Whether the answer can go there, as far as that can be told without touching anything.
fn may_be_written(path: &Path, target: Option<&Path>) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(_) => Ok(access(path, Access::WRITE_OK)?),
        // Nobody can make a file among these.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_descriptor(path) => {
            let folder = folder_of(target.unwrap_or(path));
            Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// Whether a path leads to what is open already, or to the like.
fn is_descriptor(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdout", "/dev/stderr", "/proc"].iter().any(|place| path.starts_with(place))
}

/// Where a file lies that may not be there yet. None if that cannot be told.
fn real_target(path: &Path) -> Option<PathBuf> {
    let followed = follow_links(path).ok()?;
    std::path::absolute(followed).ok().map(|path| crate::sandbox::paths::real(&path))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
