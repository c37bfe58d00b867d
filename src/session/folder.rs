//! Which session files there are: by id, the last one of a working folder, and the list of its latest.
//!
//! The newest by time of change is the last. Files are only opened as far as their first lines, newest first.

use std::collections::BinaryHeap;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::id::begins_an_id;
use super::{is_id, name_of, reading};
use crate::claim;
use crate::error::Error;

/// The shortest beginning of an id that names a session.
const LEAST_LETTERS: usize = 4;
/// How many sessions a list has, and how much of each one's first words.
const MOST_LISTED: usize = 10;
const MOST_WORDS: usize = 60;
/// How much of a file is read to know whose it is and how it begins.
const MOST_BEGINNING: u64 = 64 * 1024;

/// The file of the session of this id.
pub fn path_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.jsonl"))
}

/// The id of the session in this file.
pub fn id_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// Opens a file that must be a regular one under its own name. Errors: what it is instead, or why it cannot be.
pub fn open_file(path: &Path, options: &mut OpenOptions) -> Result<File, String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = options.custom_flags(flags.bits() as i32).open(path).map_err(|error| {
        match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::LOOP) => "it is a symbolic link".to_owned(),
            Some(rustix::io::Errno::ISDIR) => "it is a folder".to_owned(),
            _ => error.to_string(),
        }
    })?;
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(metadata) if metadata.is_dir() => Err("it is a folder".to_owned()),
        Ok(_) => Err("it is not a regular file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// That there is no session of this id yet. What a run has left that was killed before its first line was whole is
/// none, and is removed.
///
/// # Errors
///
/// `Usage` names the way to go on with the one that is there.
pub fn check_unused(folder: &Path, id: &str) -> Result<(), Error> {
    let path = path_of(folder, id);
    claim::remove_abandoned(&path, reading::is_unbegun);
    match path.symlink_metadata() {
        Ok(_) => Err(used(id)),
        Err(_) => Ok(()),
    }
}

/// The error for an id that is taken.
pub fn used(id: &str) -> Error {
    Error::Usage(format!("there is a session {id} already: go on with it by -r {id}, or choose another id"))
}

/// The file of the session that is named by its id or a beginning of it.
///
/// # Errors
///
/// `Usage` if there is none or more than one; it lists the sessions of this working folder.
pub fn named(folder: &Path, name: &str, workspace: &Path) -> Result<PathBuf, Error> {
    let sought = name.trim().to_ascii_lowercase();
    if sought.is_empty() {
        let list = list(folder, workspace);
        return Err(Error::Usage(format!("-r needs the id of a session{list}")));
    }
    let path = path_of(folder, &sought);
    if is_id(&sought) && path.symlink_metadata().is_ok() {
        return Ok(path);
    }
    let mut found: Vec<String> = match sought.len() >= LEAST_LETTERS && begins_an_id(&sought) {
        true => files(folder)?.map(|(_, id)| id).filter(|id| id.starts_with(&sought)).collect(),
        false => Vec::new(),
    };
    match (found.pop(), found.len()) {
        (Some(only), 0) => Ok(path_of(folder, &only)),
        (Some(_), others) => Err(Error::Usage(format!(
            "{} sessions have an id that begins with {sought}: give more of it",
            others + 1
        ))),
        (None, _) => {
            let name: String = name.chars().take(MOST_WORDS).collect();
            Err(Error::Usage(format!("there is no session \"{name}\"{}", list(folder, workspace))))
        }
    }
}

/// The last session of this working folder in which anything was said.
///
/// # Errors
///
/// `Usage` if the sessions cannot be listed.
pub fn last(folder: &Path, workspace: &Path) -> Result<Option<PathBuf>, Error> {
    Ok(newest_first(folder)?.find(|path| beginning(path, workspace).is_some()))
}

/// Where a copy of a session lies until it is whole.
pub fn unfinished_of(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!(".{id}.part"))
}

/// Every file that is named as such a copy is.
pub fn unfinished(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one =
        |name: &str| name.strip_prefix('.').and_then(|name| name.strip_suffix(".part")).is_some_and(is_id);
    entries.filter(move |entry| entry.file_name().to_str().is_some_and(is_one)).map(|entry| entry.path())
}

/// Every file that is named as a session is, with its id.
fn files(folder: &Path) -> Result<impl Iterator<Item = (DirEntry, String)>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => Some(entries),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(Error::Usage(format!(
                "cannot list the sessions in \"{}\": {error}",
                folder.display()
            )));
        }
    };
    Ok(entries.into_iter().flatten().flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let id = name.strip_suffix(".jsonl").filter(|id| is_id(id))?.to_owned();
        Some((entry, id))
    }))
}

fn newest_first(folder: &Path) -> Result<impl Iterator<Item = PathBuf>, Error> {
    let with_time = |(entry, id): (DirEntry, String)| {
        let metadata = entry.metadata().ok()?;
        Some(((metadata.mtime(), metadata.mtime_nsec()), id))
    };
    // A heap, since few of many are looked at.
    let mut found: BinaryHeap<_> = files(folder)?.filter_map(with_time).collect();
    Ok(std::iter::from_fn(move || found.pop().map(|(_, id)| path_of(folder, &id))))
}

/// What stands behind the first line of a session of this working folder, as far as it is looked at; none if the
/// file is no such session, or nothing stands there.
fn beginning(path: &Path, workspace: &Path) -> Option<Vec<u8>> {
    let file = open_file(path, OpenOptions::new().read(true)).ok()?;
    let mut reader = BufReader::with_capacity(4096, file.take(MOST_BEGINNING));
    let (folder, _) = reading::folder(&mut reader).ok()?;
    if folder != name_of(workspace) {
        return None;
    }
    let mut text = Vec::new();
    reader.read_to_end(&mut text).ok().filter(|count| *count > 0)?;
    Some(text)
}

/// The latest sessions of this working folder with their first words, as the end of a message.
fn list(folder: &Path, workspace: &Path) -> String {
    let lines: Vec<String> = newest_first(folder)
        .into_iter()
        .flatten()
        .filter_map(|path| {
            let text = beginning(&path, workspace)?;
            Some(format!("{} {} {}", id_of(&path), changed(&path), first_words(&text)))
        })
        .take(MOST_LISTED)
        .collect();
    match lines.is_empty() {
        true => ": this folder has none yet".to_owned(),
        false => format!("; the last ones of this folder:\n{}", lines.join("\n")),
    }
}

/// When a session was last gone on with, and how long it is: several may begin with the same words.
fn changed(path: &Path) -> String {
    let Ok(metadata) = path.metadata() else { return String::new() };
    let time = jiff::Timestamp::from_second(metadata.mtime()).unwrap_or_default().to_string();
    let minute: String = time.chars().take("2026-11-30T20:57".len()).collect();
    format!("{} UTC, {} kB:", minute.replace('T', " "), metadata.len().div_ceil(1000))
}

/// The beginning of the first text, on one line.
fn first_words(text: &[u8]) -> String {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let value = reading::parsed(line);
    let parts = value["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let said = parts.iter().find_map(|part| part["text"].as_str()).unwrap_or("(a long message)");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MOST_WORDS) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}
