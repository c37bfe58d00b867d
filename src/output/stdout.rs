//! Standard output as a descriptor: every write goes to the kernel at once and is seen to arrive.

use std::io::{self, Write};

use rustix::event::{PollFd, PollFlags, poll};

use crate::error::Error;

/// Standard output, written to without a buffer. The standard library's own takes a descriptor that cannot
/// be written for one that swallows everything, and gives up where a pipe that does not block is full.
pub struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stdout = rustix::stdio::stdout();
        loop {
            match rustix::io::write(stdout, bytes) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let mut waited = [PollFd::from_borrowed_fd(stdout, PollFlags::OUT)];
                    match poll(&mut waited, None) {
                        Ok(_) | Err(rustix::io::Errno::INTR) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes to standard output and sees that it arrives.
pub fn write_stdout(bytes: &[u8], answered: bool) -> Result<(), Error> {
    Stdout.write_all(bytes).map_err(|error| stdout_error(&error, answered))
}

/// What a failed write to standard output means.
pub fn stdout_error(error: &io::Error, answered: bool) -> Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Error::ClosedOutput { answered },
        _ => Error::Internal(format!("cannot write standard output: {error}")),
    }
}
