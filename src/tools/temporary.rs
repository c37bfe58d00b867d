//! Files that are to take another's place: made beside it under a name of their own, or without one.
//!
//! What a killed process has left under such a name goes when the next one is made for the same file.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::claim;

/// A whole new file beside the one that it is for. It is locked as long as it is in use.
pub struct Temporary {
    /// Where it is.
    pub path: PathBuf,
    _file: File,
}

impl Temporary {
    /// What is at this path is this file, whose lock is had as far as there are locks.
    pub fn new(path: PathBuf, file: File) -> Temporary {
        Temporary { path, _file: file }
    }
}

/// Creates a file of a new name in the folder of `target`, which no other writer takes.
pub fn create_beside(target: &Path, replaces: bool) -> io::Result<(PathBuf, File)> {
    named_beside(target, |path| claim::create(path, OpenOptions::new().write(true).mode(new_mode(replaces))))
}

/// Makes something of a new name in the folder of `target`. What killed processes have left there of earlier
/// writes to `target` is removed.
pub fn named_beside<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    // A name may have 255 bytes, and 143 where the file system encrypts it.
    const MOST_OF_NAME: usize = 100;
    let name = target.file_name().unwrap_or_default().as_bytes();
    let name = OsStr::from_bytes(&name[..name.len().min(MOST_OF_NAME)]);
    let mut attempt = 0_u32;
    loop {
        let mut temporary = OsString::from(".cotter-");
        temporary.push(name);
        temporary.push(format!("-{attempt}.tmp"));
        let path = target.with_file_name(temporary);
        match make(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < 1000 => {
                if !claim::remove_abandoned(&path, |_| true) {
                    attempt += 1;
                }
            }
            result => return result.map(|made| (path, made)),
        }
    }
}

/// Creates a file without a name on the filesystem of `target`, if it has such files and /proc is there
/// to name them by.
pub fn create_unnamed(target: &Path, replaces: bool) -> Option<File> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let flags = OFlags::TMPFILE.bits() as i32;
    let file =
        OpenOptions::new().write(true).custom_flags(flags).mode(new_mode(replaces)).open(folder).ok()?;
    // Before Linux 6.0 some filesystems forgot the umask here. They are told by a mode that it has taken
    // nothing from.
    let forgot_umask = !replaces && file.metadata().ok()?.mode() & 0o777 == new_mode(replaces);
    (own_link(&file).is_symlink() && !forgot_umask).then_some(file)
}

/// The kernel's link to a file that this process has open.
pub fn own_link(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// The mode of a new file, from which the kernel takes what the umask forbids. Where it is to replace a
/// file, nobody else may open it before it has that file's mode.
fn new_mode(replaces: bool) -> u32 {
    if replaces { 0o600 } else { 0o666 }
}
