//! How any tool of ours opens a file to read it, and what is said where that cannot be.
//!
//! Nothing here blocks on a FIFO, touches a device, or reads procfs, where other processes' keys are.

use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Dir, FileType, OFlags};

use crate::tools::Workspace;
use crate::tools::nearest::Nearest;

/// Opens the regular file at `path` to read it, or says why not, naming what there is instead.
pub fn open(path: &Path, workspace: &Workspace) -> Result<(File, Metadata), String> {
    let name = || workspace.display(path);
    let unreadable = |error: io::Error| cannot_read(&name(), &error);
    let special = |kind| format!("{} is {kind}, not a file", name());
    // Asked before opening, since opening a device can set it going; asked again of what was opened,
    // since another file may have taken the name.
    let metadata = fs::metadata(path).map_err(|error| not_opened(path, workspace, &error))?;
    if let Kind::Special(kind) = kind(&metadata) {
        return Err(special(kind));
    }
    let file = without_waiting(path).map_err(|error| not_opened(path, workspace, &error))?;
    if is_procfs(&file).map_err(unreadable)? {
        return Err(format!("{} is on procfs, which is not read: it shows other processes' secrets", name()));
    }
    let metadata = file.metadata().map_err(unreadable)?;
    match kind(&metadata) {
        Kind::File => Ok((file, metadata)),
        Kind::Directory => Err(describe_directory(&name(), &file)),
        Kind::Special(kind) => Err(special(kind)),
    }
}

/// Opens what is at `path` to read it, whatever it is. A FIFO is not waited for.
pub fn without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// Whether an open file lies on procfs. The descriptor is asked, because paths lead there in many ways.
pub fn is_procfs(file: &File) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(file)?.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// Whether a path leads to procfs now, for what is not opened yet.
pub fn is_on_procfs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// What a path leads to, as far as reading and writing files goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
    /// Something that is never opened, in words.
    Special(&'static str),
}

/// Tells what `metadata` is of.
pub fn kind(metadata: &Metadata) -> Kind {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => Kind::File,
        () if kind.is_dir() => Kind::Directory,
        () if kind.is_fifo() => Kind::Special("a FIFO"),
        () if kind.is_socket() => Kind::Special("a socket"),
        () => Kind::Special("a device"),
    }
}

/// The error for a file that cannot be read.
pub fn cannot_read(name: &str, error: &io::Error) -> String {
    format!("cannot read {name}: {error}")
}

/// The error for a path that could not be opened, with what might have been meant.
pub fn not_opened(path: &Path, workspace: &Workspace, error: &io::Error) -> String {
    let name = workspace.display(path);
    if error.kind() != ErrorKind::NotFound {
        return cannot_read(&name, error);
    }
    if path.starts_with(&workspace.root) && !workspace.root.exists() {
        return format!("the current folder is gone: {error}");
    }
    if let Ok(target) = fs::read_link(path) {
        let target = workspace.display(&target);
        return format!("{name} is a symbolic link to {target}, which does not exist");
    }
    let (folder, wanted) = match (path.parent(), path.file_name()) {
        (Some(folder), Some(wanted)) => (folder, wanted.to_string_lossy()),
        _ => return format!("there is no file {name}"),
    };
    let shown_folder = workspace.display(folder);
    let mut nearest = Nearest::to(&wanted);
    let mut is_shown = false;
    let listed = File::open(folder).and_then(|folder| {
        list(&folder, MOST_NAMES, |shown| {
            is_shown |= shown.trim_end_matches('/') == wanted;
            nearest.add(&shown);
        })
    });
    match listed {
        Ok(Some(_)) => {}
        Ok(None) => {
            return format!("there is no file {name}; {shown_folder} holds more than {MOST_NAMES} names");
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return format!("there is no file {name}: there is no folder {shown_folder}");
        }
        Err(_) => return format!("there is no file {name}"),
    }
    // What is no text in a name is shown as U+FFFD, which is then another name.
    if wanted.contains('\u{fffd}') && is_shown {
        return format!(
            "the name of {name} holds bytes that are not UTF-8, which a call cannot give; if you can run a \
             command, rename it there, with * in place of those bytes"
        );
    }
    let near = nearest.into_names();
    match near.is_empty() {
        true => format!("there is no file {name}, and no name like it in {shown_folder}"),
        false => {
            format!("there is no file {name}; the nearest names in {shown_folder} are: {}", near.join(", "))
        }
    }
}

fn describe_directory(name: &str, directory: &File) -> String {
    let holds = match first_names(directory, MOST_NAMES) {
        Err(error) => format!("it cannot be listed: {error}"),
        Ok(None) => format!("it holds more than {MOST_NAMES} names"),
        Ok(Some((_, 0))) => "it is empty".to_owned(),
        Ok(Some((first, count))) => {
            let more = count - first.len();
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("it holds: {}{rest}", first.join(", "))
        }
    };
    format!("{name} is a directory, not a file; {holds}")
}

/// How many names the error for a directory shows.
const SHOWN_NAMES: usize = 20;
/// A folder of more names than this is not described by any of them: which ones come first is the disk's
/// choice, and comparing them all takes seconds.
const MOST_NAMES: usize = 100_000;

/// The first names in a folder in sorted order, and how many there are; nothing if that is more than `most`.
fn first_names(folder: &File, most: usize) -> io::Result<Option<(Vec<String>, usize)>> {
    let mut first = BinaryHeap::new();
    let count = list(folder, most, |name| {
        first.push(name);
        if first.len() > SHOWN_NAMES {
            first.pop();
        }
    })?;
    Ok(count.map(|count| (first.into_sorted_vec(), count)))
}

/// Visits the names in a folder in the disk's order, folders with a slash at their end. Returns how many there
/// are, or nothing if there are more than `most`, of which only so many were visited.
fn list(folder: &File, most: usize, mut visit: impl FnMut(String)) -> io::Result<Option<usize>> {
    if is_procfs(folder)? {
        return Err(io::Error::new(ErrorKind::Unsupported, "it is on procfs"));
    }
    let mut count = 0;
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let mut name = OsString::from_vec(entry.file_name().to_bytes().to_vec()).display().to_string();
        if name == "." || name == ".." {
            continue;
        }
        if count == most {
            return Ok(None);
        }
        count += 1;
        if name.contains(char::is_control) {
            name = format!("{name:?}");
        }
        if entry.file_type() == FileType::Directory {
            name.push('/');
        }
        visit(name);
    }
    Ok(Some(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Outcome;
    use crate::tools::read::tests::{raw, read};
    use crate::tools::write::tests::{Folder, make_fifo, skipped_as_root};
    use serde_json::json;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_directory_is_refused_with_its_names() {
        let folder = Folder::new("read-directory");
        fs::create_dir(folder.path.join("d")).unwrap();
        assert_eq!(read(&folder, "d"), Outcome::error("d is a directory, not a file; it is empty"));
        fs::create_dir(folder.path.join("d/sub")).unwrap();
        folder.put("d/b", "");
        folder.put("d/a\nc", "");
        let text = "d is a directory, not a file; it holds: \"a\\nc\", b, sub/";
        assert_eq!(read(&folder, "d"), Outcome::error(text));
        assert_eq!(read(&folder, "d/"), Outcome::error(text));
        for number in 10..40 {
            folder.put(&format!("d/f{number}"), "");
        }
        let names: Vec<String> = (10..28).map(|number| format!("f{number}")).collect();
        let text =
            format!("d is a directory, not a file; it holds: \"a\\nc\", b, {} and 13 more", names.join(", "));
        assert_eq!(read(&folder, "d"), Outcome::error(&text));
        assert_eq!(raw(&folder, json!({ "file_path": "d" })), Err(text));
        assert!(read(&folder, ".").text.starts_with(". is a directory, not a file; it holds: d/"));
    }

    /// The first 10,000 names in the disk's order were taken for all.
    #[test]
    fn of_a_large_folder_all_names_are_looked_at() {
        let folder = Folder::new("read-many-names");
        let path = folder.put("seed", "");
        fs::create_dir(folder.path.join("d")).unwrap();
        for number in 0..12_000 {
            fs::hard_link(&path, folder.path.join(format!("d/f{number:05}"))).unwrap();
        }
        let names: Vec<String> = (0..20).map(|number| format!("f{number:05}")).collect();
        let text = format!("d is a directory, not a file; it holds: {} and 11980 more", names.join(", "));
        assert_eq!(read(&folder, "d"), Outcome::error(text));
        // Wherever the disk has these names, some lie behind ten thousand others.
        for number in 0..12 {
            let wanted = format!("f{:05}-and-a-half", number * 1000);
            let nearest = format!("f{:05}", number * 1000);
            let text = format!("there is no file d/{wanted}; the nearest names in d are: {nearest}");
            assert_eq!(read(&folder, &format!("d/{wanted}")), Outcome::error(text));
        }
    }

    #[test]
    fn of_a_folder_larger_than_is_looked_at_no_name_is_told() {
        let folder = Folder::new("read-bound");
        for name in ["c", "a", "b"] {
            folder.put(name, "");
        }
        let directory = File::open(&folder.path).unwrap();
        let names = vec!["a".to_owned(), "b".to_owned(), "c".to_owned()];
        assert_eq!(first_names(&directory, 3).unwrap(), Some((names, 3)));
        assert_eq!(first_names(&directory, 2).unwrap(), None);
    }

    #[test]
    fn a_missing_file_is_an_error_with_the_nearest_names() {
        let folder = Folder::new("read-missing");
        folder.put("main.rs", "");
        folder.put("README.md", "");
        symlink("gone", folder.path.join("link")).unwrap();
        symlink(folder.path.join("d/gone"), folder.path.join("absolute")).unwrap();
        let cases = [
            ("mian.rs", "there is no file mian.rs; the nearest names in . are: main.rs"),
            ("readme", "there is no file readme; the nearest names in . are: README.md"),
            ("zzzzzz", "there is no file zzzzzz, and no name like it in ."),
            ("src/main.rs", "there is no file src/main.rs: there is no folder src"),
            ("link", "link is a symbolic link to gone, which does not exist"),
            ("absolute", "absolute is a symbolic link to d/gone, which does not exist"),
            ("main.rs/x", "cannot read main.rs/x: Not a directory (os error 20)"),
        ];
        for (path, text) in cases {
            assert_eq!(read(&folder, path), Outcome::error(text));
            assert_eq!(raw(&folder, json!({ "file_path": path })), Err(text.to_owned()));
        }
        let text = "cannot read a\\0b: file name contained an unexpected NUL byte";
        assert_eq!(read(&folder, "a\0b"), Outcome::error(text));
    }

    #[test]
    fn a_name_of_any_text_is_taken_and_others_are_told_of() {
        let folder = Folder::new("read-names");
        for name in ["a b", " ", "a\nb", "-n", "h\u{e9}", "$HOME", "'\""] {
            folder.put(name, name);
            assert_eq!(read(&folder, name), Outcome::ok(name));
        }
        let latin = OsString::from_vec(b"caf\xe9".to_vec());
        fs::write(folder.path.join(&latin), "x").unwrap();
        let text = "the name of caf\u{fffd} holds bytes that are not UTF-8, which a call cannot give; if you \
                    can run a command, rename it there, with * in place of those bytes";
        assert_eq!(read(&folder, "caf\u{fffd}"), Outcome::error(text));
        let text = "there is no file cafe; the nearest names in . are: caf\u{fffd}";
        assert_eq!(read(&folder, "cafe"), Outcome::error(text));
    }

    #[test]
    fn links_that_lead_in_a_circle_are_an_error() {
        let folder = Folder::new("read-circle");
        symlink("b", folder.path.join("a")).unwrap();
        symlink("a", folder.path.join("b")).unwrap();
        let text = "cannot read a: Too many levels of symbolic links (os error 40)";
        assert_eq!(read(&folder, "a"), Outcome::error(text));
    }

    /// Whichever of the two has the name when it is looked at and when it is opened.
    #[test]
    fn a_fifo_that_takes_the_place_of_a_file_is_not_waited_for() {
        let folder = Folder::new("read-swapped");
        make_fifo(&folder.path.join("fifo"));
        folder.put("file", "text");
        folder.put("a", "text");
        let path = folder.path.clone();
        let swapping = std::thread::spawn(move || {
            for turn in 0..20_000 {
                let kept = path.join(if turn % 2 == 0 { "fifo" } else { "file" });
                fs::hard_link(kept, path.join("new")).unwrap();
                fs::rename(path.join("new"), path.join("a")).unwrap();
            }
        });
        let (mut texts, mut refusals) = (0, 0);
        while !swapping.is_finished() || texts + refusals == 0 {
            match read(&folder, "a") {
                Outcome { is_error: false, text, .. } => {
                    assert_eq!(text, "text");
                    texts += 1;
                }
                outcome => {
                    assert_eq!(outcome, Outcome::error("a is a FIFO, not a file"));
                    refusals += 1;
                }
            }
        }
        swapping.join().unwrap();
    }

    #[test]
    fn what_is_not_a_file_is_refused_without_waiting() {
        let folder = Folder::new("read-special");
        make_fifo(&folder.path.join("fifo"));
        let _socket = UnixListener::bind(folder.path.join("socket")).unwrap();
        symlink("fifo", folder.path.join("link")).unwrap();
        let cases = [
            ("fifo", "fifo is a FIFO, not a file"),
            ("link", "link is a FIFO, not a file"),
            ("socket", "socket is a socket, not a file"),
            ("/dev/zero", "/dev/zero is a device, not a file"),
        ];
        for (path, text) in cases {
            assert_eq!(read(&folder, path), Outcome::error(text));
            assert_eq!(raw(&folder, json!({ "file_path": path })), Err(text.to_owned()));
        }
    }

    #[test]
    fn procfs_is_refused_however_it_is_reached() {
        let folder = Folder::new("read-procfs");
        symlink("/proc/self/environ", folder.path.join("link")).unwrap();
        symlink("/proc/self", folder.path.join("self")).unwrap();
        let paths = ["/proc/self/environ", "/proc/1/status", "link", "self/environ", "/proc/self", "/proc"];
        for path in paths {
            let text = format!("{path} is on procfs, which is not read: it shows other processes' secrets");
            assert_eq!(read(&folder, path), Outcome::error(&text));
            assert_eq!(raw(&folder, json!({ "file_path": path })), Err(text));
        }
        let text = "there is no file /proc/self/environs";
        assert_eq!(read(&folder, "/proc/self/environs"), Outcome::error(text));
    }

    #[test]
    fn a_file_that_may_not_be_read_is_an_error() {
        if skipped_as_root("a_file_that_may_not_be_read_is_an_error") {
            return;
        }
        let folder = Folder::new("read-forbidden");
        folder.put("a", "secret");
        folder.mode("a", 0o200);
        assert_eq!(read(&folder, "a"), Outcome::error("cannot read a: Permission denied (os error 13)"));
    }
}
