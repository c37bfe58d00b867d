//! The checkout that a run stands in: where it begins, which folders lead from there to the current one, and how
//! a text file in it is read that says something to the model.
//!
//! Nobody trusts what a checkout holds. A file counts only if it really lies inside: each folder on its way is
//! opened without following links, and what was opened is asked what it is, so that no name can be swapped in
//! between. Nothing here blocks, opens a device or reads procfs.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};

use crate::sandbox::paths;
use crate::tools::opening;

/// Whose files a run reads: those that say something to the model (context, skills), never settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// The user's own, from the folder of configuration.
    pub user: bool,
    /// The checkout's.
    pub project: bool,
    /// The user's own notes in a checkout, which are not checked in.
    pub local: bool,
}

impl Sources {
    /// What is read if nothing else is asked for.
    pub const ALL: Sources = Sources { user: true, project: true, local: true };
    /// Nothing is read.
    pub const NONE: Sources = Sources { user: false, project: false, local: false };

    /// Those in a list such as `user,project`, which may be empty. Errors: the word that names none.
    pub fn named(list: &str) -> Result<Sources, &str> {
        let mut sources = Sources::NONE;
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "user" => sources.user = true,
                "project" => sources.project = true,
                "local" => sources.local = true,
                _ => return Err(word),
            }
        }
        Ok(sources)
    }
}

/// A checkout, or the current folder where there is none.
#[derive(Debug)]
pub struct Checkout {
    folders: Vec<PathBuf>,
}

impl Checkout {
    /// The checkout around the current folder, given by its real path: it begins at the nearest folder with a
    /// `.git` in it. A home, and what is above it, is the checkout of nothing below: whoever keeps it in git does
    /// not mean that a download in it may name the files beside it.
    pub fn around(current: &Path, home: Option<&Path>) -> Checkout {
        let is_above_home = |folder: &Path| home.is_some_and(|home| paths::real(home).starts_with(folder));
        let is_root = |folder: &&Path| {
            has_git(folder) && (*folder == current || !is_above_home(folder) && !is_planted(folder))
        };
        let root = current.ancestors().find(is_root).unwrap_or(current);
        let mut folders: Vec<PathBuf> = current
            .ancestors()
            .take_while(|folder| folder.starts_with(root))
            .map(Path::to_path_buf)
            .collect();
        folders.reverse();
        Checkout { folders }
    }

    /// Where it begins: nothing outside of this folder is read for it.
    pub fn root(&self) -> &Path {
        &self.folders[0]
    }

    /// Whether a real path lies in it. A run in `/`, as of a container, stands in none that came from elsewhere.
    pub fn holds(&self, real: &Path) -> bool {
        self.root().parent().is_some() && real.starts_with(self.root())
    }

    /// The folders from where it begins down to the current one, at least one.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// A path as the model is told it: relative to the current folder, so that it is the same wherever the
    /// checkout lies.
    pub fn name(&self, path: &Path) -> String {
        let mut up = PathBuf::new();
        for folder in self.folders.iter().rev() {
            if let Ok(inside) = path.strip_prefix(folder) {
                return printable(&up.join(inside));
            }
            up.push("..");
        }
        printable(Path::new(path.file_name().unwrap_or(OsStr::new("a file"))))
    }
}

/// A path in one line.
pub fn printable(path: &Path) -> String {
    let name = path.display().to_string();
    if name.contains(char::is_control) { format!("{name:?}") } else { name }
}

/// A worktree and a submodule have a file of that name.
fn has_git(folder: &Path) -> bool {
    fs::metadata(folder.join(".git")).is_ok_and(|git| git.is_dir() || git.is_file())
}

/// Whether somebody else made the `.git` in a folder that anybody may write in, such as `/tmp`.
fn is_planted(folder: &Path) -> bool {
    // Of a link, who made the link counts.
    match (fs::metadata(folder), fs::symlink_metadata(folder.join(".git"))) {
        (Ok(place), Ok(git)) => is_strangers(place.mode(), git.uid(), rustix::process::geteuid().as_raw()),
        _ => true,
    }
}

fn is_strangers(mode_of_folder: u32, owner: u32, own: u32) -> bool {
    const ANYBODY_WRITES: u32 = 0o002;
    mode_of_folder & ANYBODY_WRITES != 0 && owner != own && owner != 0
}

/// A text that was read.
#[derive(Debug)]
pub struct TextFile {
    /// The text, without a byte order mark and with line ends as on Unix: how a checkout ends its lines is a
    /// setting of git, and equal work gives equal bytes.
    pub text: String,
    /// Where the file really lies.
    pub real: PathBuf,
    /// How long the file is, in bytes.
    pub bytes: u64,
    /// Whether only its beginning was read.
    pub is_cut: bool,
}

/// Why a file was not read, as a message goes on after the file's name.
#[derive(Debug)]
pub enum Skip {
    /// There is nothing of that name.
    Missing,
    /// It is a folder.
    Folder,
    /// It really lies outside of where it may.
    Outside,
    /// It is a FIFO, a socket or a device.
    Special,
    /// It lies on procfs, where other processes' secrets are.
    Procfs,
    /// It is no UTF-8 text.
    NotText,
    /// The kernel does not let it be read.
    Unreadable(io::Error),
}

impl fmt::Display for Skip {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Skip::Missing => "there is no such file",
            Skip::Folder => "it is a folder",
            Skip::Outside => "it lies outside of the checkout",
            Skip::Special => "it is not a regular file",
            Skip::Procfs => "it is on procfs",
            Skip::NotText => "it is not UTF-8 text",
            Skip::Unreadable(error) => return write!(formatter, "{error}"),
        })
    }
}

/// Reads a text file that really lies in one of the folders, which are real paths: at most this many bytes of it,
/// up to the end of a line.
///
/// # Errors
///
/// Why it was not read.
pub fn read_text(path: &Path, folders: &[&Path], most_bytes: usize) -> Result<TextFile, Skip> {
    // One call where there is nothing, which is the usual case.
    fs::symlink_metadata(path).map_err(unreadable)?;
    let real = fs::canonicalize(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Skip::Unreadable(io::Error::other("it is a symbolic link that leads nowhere")),
        _ => Skip::Unreadable(error),
    })?;
    let within = folders.iter().find_map(|folder| Some((folder, real.strip_prefix(folder).ok()?)));
    let (folder, inside) = within.ok_or(Skip::Outside)?;
    let file = open_inside(folder, inside)?;
    let (text, bytes, is_cut) = text_of(file, most_bytes)?;
    Ok(TextFile { text, real, bytes, is_cut })
}

/// Opens the regular file at a path below the folder. No link is followed: there was none in a real path, and one
/// that has come since leads elsewhere.
fn open_inside(folder: &Path, inside: &Path) -> Result<File, Skip> {
    let (Some(name), Some(parent)) = (inside.file_name(), inside.parent()) else { return Err(Skip::Folder) };
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let failed = |error: rustix::io::Errno| unreadable(error.into());
    let mut opened = openat(CWD, folder, step, Mode::empty()).map_err(failed)?;
    for component in parent.components() {
        let Component::Normal(name) = component else { return Err(Skip::Outside) };
        opened = openat(&opened, name, step, Mode::empty()).map_err(failed)?;
    }
    // Before it is opened, since opening a device can set it going; and once more what was opened.
    let found = statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Err(Skip::Folder),
        _ => return Err(Skip::Special),
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(&opened, name, flags, Mode::empty()).map_err(failed)?);
    match (opening::is_procfs(&file).map_err(unreadable)?, file.metadata().map_err(unreadable)?.is_file()) {
        (true, _) => Err(Skip::Procfs),
        (false, false) => Err(Skip::Special),
        (false, true) => Ok(file),
    }
}

/// Why a file that cannot be opened is not read.
pub fn unreadable(error: io::Error) -> Skip {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Skip::Missing,
        // Such a name cannot be: a mention that was taken for a file.
        ErrorKind::InvalidFilename => Skip::Missing,
        _ => Skip::Unreadable(error),
    }
}

/// The beginning of a file as text, the length of the whole, and whether that is more.
fn text_of(file: File, most_bytes: usize) -> Result<(String, u64, bool), Skip> {
    let length = file.metadata().map_err(unreadable)?.len();
    let mut bytes = Vec::new();
    file.take(most_bytes as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let is_cut = bytes.len() > most_bytes;
    bytes.truncate(most_bytes);
    let text = match str::from_utf8(&bytes) {
        Ok(text) => text,
        // The cut may go through a character.
        Err(error) if is_cut && error.error_len().is_none() => {
            str::from_utf8(&bytes[..error.valid_up_to()]).expect("it was found to be valid up to there")
        }
        Err(_) => return Err(Skip::NotText),
    };
    if text.contains('\0') {
        return Err(Skip::NotText);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = match text.rfind('\n') {
        Some(end) if is_cut => &text[..=end],
        _ => text,
    };
    Ok((text.replace("\r\n", "\n"), length.max(bytes.len() as u64), is_cut))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::write::tests::Folder;
    use std::os::unix::fs::symlink;

    fn checkout(folders: &[&str]) -> Checkout {
        Checkout { folders: folders.iter().map(PathBuf::from).collect() }
    }

    #[test]
    fn a_path_is_named_from_the_current_folder() {
        let checkout = checkout(&["/r", "/r/a", "/r/a/b"]);
        let cases = [
            ("/r/a/b/x", "x"),
            ("/r/a/x", "../x"),
            ("/r/x", "../../x"),
            ("/r/c/x", "../../c/x"),
            ("/elsewhere/x", "x"),
            ("/r/a/b/x\ny", r#""x\ny""#),
        ];
        for (path, name) in cases {
            assert_eq!(checkout.name(Path::new(path)), name);
        }
    }

    #[test]
    fn a_list_of_sources_may_be_empty() {
        let project = Sources { project: true, ..Sources::NONE };
        assert_eq!(Sources::named(""), Ok(Sources::NONE));
        assert_eq!(Sources::named(","), Ok(Sources::NONE));
        assert_eq!(Sources::named("project"), Ok(project));
        assert_eq!(Sources::named("local, user,project"), Ok(Sources::ALL));
        assert_eq!(Sources::named("project,all"), Err("all"));
    }

    #[test]
    fn the_nearest_folder_with_git_in_it_begins_the_checkout() {
        let folder = Folder::new("checkout-root");
        let at = |name: &str| folder.path.join(name);
        fs::create_dir_all(at("home/outer/inner/deep")).unwrap();
        let root =
            |home: Option<&Path>| Checkout::around(&at("home/outer/inner/deep"), home).root().to_path_buf();
        fs::create_dir(at("home/.git")).unwrap();
        assert_eq!(root(None), at("home"));
        assert_eq!(root(Some(&at("home"))), at("home/outer/inner/deep"));
        assert_eq!(Checkout::around(&at("home"), Some(&at("home"))).root(), at("home"));
        fs::create_dir(at("home/outer/.git")).unwrap();
        assert_eq!(root(Some(&at("home"))), at("home/outer"));
        fs::write(at("home/outer/inner/.git"), "gitdir: ../.git/worktrees/inner\n").unwrap();
        assert_eq!(root(None), at("home/outer/inner"));
        let found = Checkout::around(&at("home/outer/inner/deep"), None);
        assert_eq!(found.folders(), [at("home/outer/inner"), at("home/outer/inner/deep")]);
    }

    #[test]
    fn what_lies_inside_is_read_and_a_link_out_of_it_is_not() {
        let folder = Folder::new("checkout-read");
        fs::create_dir_all(folder.path.join("in/sub")).unwrap();
        let inside = folder.path.join("in");
        fs::write(inside.join("sub/a"), "\u{feff}one\r\ntwo\n").unwrap();
        fs::write(folder.path.join("secret"), "secret").unwrap();
        symlink("sub/a", inside.join("link")).unwrap();
        symlink(inside.join("sub"), inside.join("absolute")).unwrap();
        symlink("../secret", inside.join("out")).unwrap();
        symlink("..", inside.join("up")).unwrap();
        let read = |name: &str| match read_text(&inside.join(name), &[&inside], 100) {
            Ok(file) => Ok((file.text, file.bytes)),
            Err(skip) => Err(skip.to_string()),
        };
        for name in ["sub/a", "link", "absolute/a", "sub/../link"] {
            assert_eq!(read(name), Ok(("one\ntwo\n".to_owned(), 12)), "{name}");
        }
        for name in ["out", "up/secret", "../secret"] {
            assert_eq!(read(name), Err(Skip::Outside.to_string()), "{name}");
        }
        assert_eq!(read("sub"), Err(Skip::Folder.to_string()));
        assert_eq!(read("."), Err(Skip::Folder.to_string()));
        assert_eq!(read("sub/a/b"), Err(Skip::Missing.to_string()));
    }

    #[test]
    fn what_a_stranger_put_into_a_folder_of_everybody_begins_no_checkout() {
        assert!(is_strangers(0o41777, 1001, 1000));
        for (mode, owner) in [(0o41777, 1000), (0o40777, 0), (0o40755, 1001), (0o40775, 1001)] {
            assert!(!is_strangers(mode, owner, 1000), "{mode:o} {owner}");
        }
    }

    /// What was looked at is not what is there when it is opened.
    #[test]
    fn no_link_is_followed_when_a_file_is_opened() {
        let folder = Folder::new("checkout-swapped");
        fs::create_dir_all(folder.path.join("in/sub")).unwrap();
        fs::write(folder.path.join("in/sub/a"), "a").unwrap();
        let inside = folder.path.join("in");
        symlink("sub/a", inside.join("link")).unwrap();
        symlink("sub", inside.join("folder")).unwrap();
        symlink(&inside, folder.path.join("root")).unwrap();
        let opens = |root: &Path, name: &str| open_inside(root, Path::new(name)).is_ok();
        assert!(opens(&inside, "sub/a"));
        for (root, name) in [
            (&inside, "link"),
            (&inside, "folder/a"),
            (&inside, "sub/../sub/a"),
            (&folder.path.join("root"), "sub/a"),
        ] {
            assert!(!opens(root, name), "{name}");
        }
    }

    #[test]
    fn a_cut_falls_between_lines_and_never_into_a_character() {
        let folder = Folder::new("checkout-cut");
        let read = |text: &str, most| {
            folder.put("a", text);
            read_text(&folder.path.join("a"), &[&folder.path], most)
                .map(|file| (file.text, file.is_cut))
                .unwrap()
        };
        assert_eq!(read("one\ntwo", 7), ("one\ntwo".to_owned(), false));
        assert_eq!(read("one\ntwo", 6), ("one\n".to_owned(), true));
        assert_eq!(read("äöü", 3), ("ä".to_owned(), true));
    }
}
