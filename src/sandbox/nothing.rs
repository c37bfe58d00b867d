//! A file that leads nowhere, for the standard streams of processes: `/dev/null`, or what does as well in an
//! image that holds cotter alone.

use std::fs::File;
use std::io;

use rustix::fs::MemfdFlags;

/// An empty file, new each time, that takes what is written to it.
///
/// Errors: there is no `/dev/null`, and no memory for a file either.
pub fn file() -> io::Result<File> {
    File::options().read(true).write(true).open("/dev/null").or_else(|_| {
        let file = rustix::fs::memfd_create("nothing", MemfdFlags::CLOEXEC)?;
        Ok(File::from(file))
    })
}
