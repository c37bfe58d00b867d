//! Files that the user names, by a flag or a variable: read whole, but never more than such a file can hold.
//!
//! A pipe is as good as a file, since a shell gives one for `<(…)`: reading it waits for its writer.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The bytes of a file, at most this many.
///
/// # Errors
///
/// The file cannot be read, or is longer.
pub fn read(path: &Path, most_bytes: usize) -> io::Result<Vec<u8>> {
    read_opened(File::open(path)?, most_bytes)
}

/// The same of a file that must be a regular one.
///
/// # Errors
///
/// It is none, cannot be read, or is longer.
pub fn read_regular(path: &Path, most_bytes: usize) -> io::Result<Vec<u8>> {
    read_opened(open_regular(path)?, most_bytes)
}

/// Opens a regular file, and waits for nothing if it is none.
///
/// # Errors
///
/// It is none, or cannot be opened.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn read_opened(file: File, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most_bytes as u64 + 1).read_to_end(&mut bytes)?;
    match bytes.len() > most_bytes {
        true => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is longer than {most_bytes} bytes, which no such file is"),
        )),
        false => Ok(bytes),
    }
}
