//! The prompt: argument, file and standard input put together.
//!
//! Standard input is never lost, never waited for in silence and never cut by a timer but the run's own. What another
//! program is still reading (a file with its offset moved on, a terminal) is left alone unless `-` asks for it.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;

use crate::alarm::Alarm;
use crate::args::Args;
use crate::error::Error;
use crate::named_file;
use crate::output::Output;

const NO_PROMPT: &str =
    "no prompt: give it as an argument, with -f FILE, or on standard input (see cotter --help)";

/// The part of the prompt that is typed: the file's text, then the argument. The line ends that end every
/// text file are dropped, so that a prompt is the same wherever it stands.
///
/// # Errors
///
/// `Usage` if the file cannot be read or is no text, or if there is nothing and standard input gives nothing.
pub fn typed(args: &Args) -> Result<String, Error> {
    let typed = typed_so_far(args)?;
    if typed.trim().is_empty() && !stdin_is_wanted(args) {
        return Err(Error::Usage(NO_PROMPT.to_owned()));
    }
    Ok(typed)
}

/// The same where more may be typed later.
///
/// # Errors
///
/// `Usage` if the file cannot be read or is no text.
pub fn typed_so_far(args: &Args) -> Result<String, Error> {
    let mut pieces = Vec::new();
    if let Some(path) = &args.prompt_file {
        let text = read_text_file(path)?;
        pieces.push(without_line_ends(without_script_line(&text)).to_owned());
    }
    pieces.extend(args.prompt.clone());
    Ok(pieces.join("\n\n"))
}

/// What is typed as the whole of a prompt, if it is one.
pub fn first_prompt(typed: String) -> Option<Prompt> {
    let is_prompt = !typed.trim().is_empty();
    is_prompt.then_some(Prompt { typed_bytes: typed.len(), text: typed })
}

/// What the user asks.
pub struct Prompt {
    /// The whole of it.
    pub text: String,
    /// How many bytes at its beginning the user chose: beside a typed prompt, standard input is data.
    pub typed_bytes: usize,
}

/// The whole prompt: what is typed, then standard input in a marked block, or standard input alone.
///
/// # Errors
///
/// `Usage` if there is none, or standard input cannot be read or is no text; the alarm's own if it rings first.
pub fn prompt(args: &Args, typed: String, alarm: &Alarm, output: &mut Output) -> Result<Prompt, Error> {
    let stdin = match stdin_is_wanted(args) {
        true => decode(read_stdin(alarm, output)?, "standard input")?,
        false => {
            if args.no_stdin && has_something_to_read() {
                output.warn("-n: standard input is not read");
            }
            String::new()
        }
    };
    let mut typed_bytes = typed.len();
    let text = match (typed.trim().is_empty(), stdin.trim().is_empty()) {
        (true, true) => return Err(Error::Usage(NO_PROMPT.to_owned())),
        (false, true) => typed,
        (true, false) => {
            let text = without_line_ends(&stdin).to_owned();
            typed_bytes = text.len();
            text
        }
        (false, false) => {
            let end = if stdin.ends_with('\n') { "" } else { "\n" };
            format!("{typed}\n\n<stdin>\n{stdin}{end}</stdin>")
        }
    };
    Ok(Prompt { text, typed_bytes })
}

fn without_line_ends(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

/// A first line that makes a prompt file an executable script is not part of the prompt.
fn without_script_line(text: &str) -> &str {
    match text.starts_with("#!") {
        true => text.split_once('\n').map_or("", |(_, rest)| rest),
        false => text,
    }
}

/// Whether standard input belongs to the prompt.
fn stdin_is_wanted(args: &Args) -> bool {
    if args.force_stdin || args.no_stdin {
        return args.force_stdin;
    }
    let stdin = std::io::stdin();
    let Ok(status) = rustix::fs::fstat(stdin.as_fd()) else { return false };
    match FileType::from_raw_mode(status.st_mode) {
        FileType::Fifo | FileType::Socket => true,
        // A loop such as `while read` owns a file that it has begun to read.
        FileType::RegularFile => {
            let file = stdin.as_fd().try_clone_to_owned().map(File::from);
            file.and_then(|mut file| file.stream_position()).is_ok_and(|offset| offset == 0)
        }
        _ => false,
    }
}

/// Whether standard input is a pipe that something has been written to. Nothing is waited for.
fn has_something_to_read() -> bool {
    let stdin = std::io::stdin();
    let status = rustix::fs::fstat(stdin.as_fd());
    let is_pipe = status.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::Fifo);
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    is_pipe
        && poll(&mut waiting, Some(&Timespec::default())).is_ok()
        && waiting[0].revents().contains(PollFlags::IN)
}

/// Waits, not for long, until a client has written something or has gone. Where there is nothing to begin with,
/// it is told so by our end; one whose first letter meets a closed pipe sees nothing but that.
pub fn await_client() {
    crate::sandbox::process::readable(rustix::stdio::stdin(), Duration::from_secs(1));
}

/// Reads standard input to its end. An open pipe that stays silent is announced, and waited for.
fn read_stdin(alarm: &Alarm, output: &mut Output) -> Result<Vec<u8>, Error> {
    let stdin = std::io::stdin();
    let failed = |error: std::io::Error| Error::Usage(format!("cannot read standard input: {error}"));
    let mut file = stdin.as_fd().try_clone_to_owned().map(File::from).map_err(failed)?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    let mut patience = Duration::from_secs(1);
    loop {
        if let Some(ring) = alarm.rung() {
            return Err(ring.error());
        }
        let events = alarm.wait_for(Some((file.as_fd(), PollFlags::IN)), Some(patience)).map_err(failed)?;
        if events.is_empty() {
            if alarm.rung().is_none() {
                output.notice("waiting for standard input to end (pass -n or </dev/null if there is none)");
                patience = Duration::from_secs(30);
            }
            continue;
        }
        match file.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) if bytes.len() + count > MOST_PROMPT_BYTES => return Err(too_long("standard input")),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// The text of a file that a flag names.
///
/// # Errors
///
/// `Usage` names the file, and the offset of the first byte that is no text.
pub fn read_text_file(path: &Path) -> Result<String, Error> {
    let shown = format!("\"{}\"", path.display());
    match named_file::read(path, MOST_PROMPT_BYTES) {
        Ok(bytes) => decode(bytes, &shown),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(too_long(&shown)),
        Err(error) => Err(Error::Usage(format!("cannot read {shown}: {error}"))),
    }
}

/// More than any model takes; what is longer is no prompt but a mistake, such as `-f /dev/zero`.
const MOST_PROMPT_BYTES: usize = 256 * 1024 * 1024;

fn too_long(place: &str) -> Error {
    Error::Usage(format!(
        "{place} is longer than {MOST_PROMPT_BYTES} bytes, which no model takes: give a part of it"
    ))
}

/// Text from UTF-8 (a byte order mark is dropped) or UTF-16 with a byte order mark.
fn decode(bytes: Vec<u8>, place: &str) -> Result<String, Error> {
    let refuse = |offset: usize, encoding: &str| {
        Error::Usage(format!("{place} is not text: the byte at offset {offset} is not valid {encoding}"))
    };
    let utf16 = |unit: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        if bytes.len() % 2 == 1 {
            return Err(refuse(bytes.len() - 1, "UTF-16"));
        }
        let mut text = String::with_capacity(units.len());
        let mut offset = 2;
        for character in char::decode_utf16(units) {
            let character = character.map_err(|_| refuse(offset, "UTF-16"))?;
            offset += 2 * character.len_utf16();
            text.push(character);
        }
        Ok(text)
    };
    match bytes.as_slice() {
        [0xFF, 0xFE, ..] => return utf16(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => return utf16(u16::from_be_bytes),
        _ => {}
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(error) => Err(refuse(error.utf8_error().valid_up_to(), "UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<String, String> {
        decode(bytes.to_vec(), "x").map_err(|error| error.to_string())
    }

    #[test]
    fn text_comes_as_utf8_or_marked_utf16() {
        assert_eq!(decoded("\u{feff}h\u{e9}".as_bytes()), Ok("h\u{e9}".to_owned()));
        assert_eq!(decoded(b"\xFF\xFEh\0\xE9\0"), Ok("h\u{e9}".to_owned()));
        assert_eq!(decoded(b"\xFE\xFF\0h\xD8\x3D\xDE\x00"), Ok("h\u{1f600}".to_owned()));
        assert_eq!(decoded(b""), Ok(String::new()));
    }

    #[test]
    fn other_bytes_are_refused_with_their_offset() {
        let refused = |offset, encoding| {
            Err(format!("x is not text: the byte at offset {offset} is not valid {encoding}"))
        };
        assert_eq!(decoded(b"ab\xFFc"), refused(2, "UTF-8"));
        assert_eq!(decoded(b"\xFF\xFEa\0b"), refused(4, "UTF-16"));
        assert_eq!(decoded(b"\xFE\xFF\xD8\x3D\0a"), refused(2, "UTF-16"));
        // A pair before the place is one character of four bytes.
        assert_eq!(decoded(b"\xFE\xFF\xD8\x3D\xDE\x00\xDE\x00\0a"), refused(6, "UTF-16"));
    }

    #[test]
    fn a_script_line_is_skipped() {
        assert_eq!(without_script_line("#!/usr/bin/env cotter\nhi\n"), "hi\n");
        assert_eq!(without_script_line("# hi"), "# hi");
        assert_eq!(without_script_line("#!only"), "");
    }
}
