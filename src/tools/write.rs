//! `Write`, and how any tool of ours replaces a file: all of it or nothing.
//!
//! The new content goes into a file without a name and onto the disk. Where there was no file it gets its name then,
//! else one beside the old file first, whose name it takes: whoever is killed meanwhile, or loses power, leaves the
//! old content or the new one. Owner, mode and extended attributes stay. Where a rename cannot keep what the file is
//! (hard links, a mount point, a folder that may not be written), the file is rewritten in place. Whoever is killed
//! between the two names leaves the whole new file as `.cotter-NAME-N.tmp`, which the next write to NAME removes.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, OFlags, XattrFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::claim;
use crate::tools::opening::{self, Kind};
use crate::tools::temporary::{Temporary, create_beside, create_unnamed, named_beside, own_link};
use crate::tools::{Arguments, Outcome, Spec, Workspace, arguments, slips};

/// What the model is told of `Write`.
pub const SPEC: Spec = Spec {
    name: "Write",
    description: "Creates a file, with its folders, or replaces all of a file. The content is written exactly \
        as given: end it with a newline. To change part of a file use Edit.",
    arguments: &["file_path", "content"],
    schema: r#"{"type":"object","properties":{"file_path":{"type":"string","description":"absolute or relative to the workspace"},"content":{"type":"string","description":"the whole new content"}},"required":["file_path","content"]}"#,
};

/// Runs `Write`.
pub fn run(arguments: &Arguments, workspace: &Workspace) -> Outcome {
    match write(arguments, workspace) {
        Ok(text) => Outcome::ok(text),
        Err(problem) => Outcome::error(problem),
    }
}

/// The file that a call of this tool names.
pub fn file_path(arguments: &Arguments) -> Result<&str, String> {
    arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?.text("file_path")
}

fn write(arguments: &Arguments, workspace: &Workspace) -> Result<String, String> {
    let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?;
    let (file_path, content) = (given.text("file_path")?, given.text("content")?);
    if file_path.is_empty() {
        return Err("file_path is empty; name the file to write".to_owned());
    }
    let path = workspace.find(file_path)?;
    let name = workspace.display(&path);
    if ["/", "/.", "/.."].iter().any(|end| file_path.ends_with(end)) {
        return Err(format!("{file_path} names a folder; name a file in it"));
    }
    let done = match replace_file(&path, content.as_bytes()) {
        Ok(Replaced::Created) => "created",
        Ok(Replaced::Rewritten) => "wrote",
        Err(error) => return Err(format!("cannot write {name}: {error}")),
    };
    Ok(format!("{done} {name} ({} bytes)", content.len()))
}

/// Sees that the names of a folder's files are on the disk. Passed over is what is no folder any more, and a file
/// system that syncs none.
///
/// Errors: the disk's.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // A tool may have put a FIFO in its place, which would be waited for.
    let flags = (OFlags::DIRECTORY | OFlags::NONBLOCK).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(folder);
    opened.and_then(|opened| opened.sync_all()).or_else(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput | ErrorKind::Unsupported => {
            Ok(())
        }
        _ => Err(error),
    })
}

/// What [`replace_file`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaced {
    /// There was no such file.
    Created,
    /// The file was there and has the new content now.
    Rewritten,
}

/// Makes `content` the content of the file at `path`, creating the file and its folders if they are
/// missing. A symbolic link is followed and stays.
///
/// Errors: what is there is not a regular file or may not be written, or the disk refuses. Then the
/// old content is untouched, but for a write that fails half-way in place, which the error says.
pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<Replaced> {
    let target = follow_links(path)?;
    replace(&target, content, Old::open(&target)?)
}

/// Makes `content` the content of a file that was read before, when this was `known` of it.
///
/// Errors: those of [`replace_file`], and that it is not that file any more or has been written since. What
/// another wrote is not to be lost, so it is looked at last thing before the file is replaced. Only a write
/// within the clock's tick of the last one (some milliseconds) that keeps the size is not seen.
pub fn replace_known_file(path: &Path, content: &[u8], known: &Metadata) -> io::Result<Replaced> {
    let target = follow_links(path)?;
    let Some(old) = Old::open(&target)? else { return Err(changed()) };
    replace(&target, content, Some(Old { known: Some(known.clone()), ..old }))
}

fn replace(target: &Path, content: &[u8], old: Option<Old>) -> io::Result<Replaced> {
    if content.len() as u64 > longest_allowed() {
        let error = Errno::FBIG.into();
        return Err(if old.is_some() { unharmed(&error) } else { error });
    }
    let Some(old) = old else {
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(|error| match error.kind() {
                // What is no folder and yet not missing is there as a name only.
                ErrorKind::AlreadyExists => {
                    io::Error::new(error.kind(), "its folder is a symbolic link that leads nowhere")
                }
                _ => error,
            })?;
        }
        // Beside a missing file nothing stands in the way, so an impossible swap is its error.
        return swap(target, content, None).map_err(Failure::into_error).map(|()| Replaced::Created);
    };
    // Renaming would part a file from its other names.
    if old.metadata.nlink() == 1 {
        match swap(target, content, Some(&old)) {
            Ok(()) => return Ok(Replaced::Rewritten),
            Err(Failure::Impossible(_)) => {}
            Err(Failure::Broken(error)) => return Err(unharmed(&error)),
            Err(Failure::Changed) => return Err(changed()),
        }
    }
    if old.has_changed() {
        return Err(changed());
    }
    rewrite_in_place(&old, content)?;
    Ok(Replaced::Rewritten)
}

/// How long a file the user's limits allow (`ulimit -f`). Writing beyond would end the process by a signal.
fn longest_allowed() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// An error after which the old content is whole.
fn unharmed(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{error}; its old content is untouched"))
}

/// The error for a file that is not as it was when it was read.
fn changed() -> io::Error {
    io::Error::other("it was changed meanwhile, so nothing was written: read it again")
}

/// An error that came in the middle.
fn partly_new(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{error}; its content is now partly new and partly old"))
}

/// The file that is to be replaced.
struct Old {
    path: PathBuf,
    /// Open for writing: what may not be written is found out before anything is done. A program
    /// that is running cannot be opened so, but can be renamed over.
    file: io::Result<File>,
    metadata: Metadata,
    /// What was told of it when it was read, if what is written now was made of that.
    known: Option<Metadata>,
}

impl Old {
    fn open(path: &Path) -> io::Result<Option<Old>> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // Asked before opening too, since opening a device can set it going.
        refuse_special(&metadata)?;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = OpenOptions::new().write(true).custom_flags(flags.bits() as i32).open(path);
        let metadata = match &file {
            Ok(file) => {
                if opening::is_procfs(file)? {
                    return Err(io::Error::new(ErrorKind::Unsupported, "it is on procfs"));
                }
                file.metadata()?
            }
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => metadata,
            Err(_) => return file.map(|_| None),
        };
        refuse_special(&metadata)?;
        Ok(Some(Old { path: path.to_owned(), file, metadata, known: None }))
    }

    /// Whether the path leads to another file than the one that was read, or to other content.
    fn has_changed(&self) -> bool {
        let marks = |it: &Metadata| (it.dev(), it.ino(), it.size(), it.mtime(), it.mtime_nsec());
        match (&self.known, fs::metadata(&self.path)) {
            (None, _) => false,
            (Some(known), Ok(now)) => marks(known) != marks(&now),
            (Some(_), Err(_)) => true,
        }
    }
}

fn refuse_special(metadata: &Metadata) -> io::Result<()> {
    match opening::kind(metadata) {
        Kind::File => Ok(()),
        Kind::Directory => {
            Err(io::Error::new(ErrorKind::IsADirectory, "it is a directory; name a file in it"))
        }
        Kind::Special(kind) => {
            Err(io::Error::new(ErrorKind::Unsupported, format!("it is {kind}, not a file")))
        }
    }
}

/// The path that a symbolic link of this name leads to in the end, whether there is anything or not.
///
/// Errors: the links lead in a circle, or one cannot be read.
pub fn follow_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    // As many links as the kernel follows.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            // Not a link, or missing.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("its symbolic links lead in a circle"))
}

/// Why a file was not swapped for a new one. Either way the temporary file is gone.
enum Failure {
    /// It cannot be done by renaming; rewriting the file may do.
    Impossible(io::Error),
    /// It cannot be done at all.
    Broken(io::Error),
    /// Another has changed the file meanwhile.
    Changed,
}

impl Failure {
    fn into_error(self) -> io::Error {
        match self {
            Failure::Impossible(error) | Failure::Broken(error) => error,
            Failure::Changed => changed(),
        }
    }

    /// Sorts errors of making and renaming files: a full disk would not spare the file either.
    fn of(error: io::Error) -> Failure {
        match error.kind() {
            ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::ResourceBusy
            | ErrorKind::CrossesDevices => Failure::Impossible(error),
            _ => Failure::Broken(error),
        }
    }
}

/// Puts a new file with `content` in the place of `target`, with all that `old` has beside content.
fn swap(target: &Path, content: &[u8], old: Option<&Old>) -> Result<(), Failure> {
    let temporary = match write_unnamed(target, content, old)? {
        Written::InPlace => return Ok(()),
        Written::Beside(temporary) => temporary,
        Written::Nowhere => write_named(target, content, old)?,
    };
    let renamed = match old.is_some_and(Old::has_changed) {
        true => Err(Failure::Changed),
        false => fs::rename(&temporary.path, target).map_err(Failure::of),
    };
    renamed.inspect_err(|_| {
        // The first error is the one to tell.
        let _ = fs::remove_file(&temporary.path);
    })
}

/// Where a file is that had no name.
enum Written {
    /// Under the name that it is for, which was free.
    InPlace,
    Beside(Temporary),
    /// Files without a name cannot be had here.
    Nowhere,
}

/// Writes a file that is given a name only when it is whole: should the process be killed before, the kernel
/// removes it.
fn write_unnamed(target: &Path, content: &[u8], old: Option<&Old>) -> Result<Written, Failure> {
    let Some(file) = create_unnamed(target, old.is_some()) else { return Ok(Written::Nowhere) };
    fill(&file, content, old)?;
    let link = own_link(&file);
    let name = |path: &Path| Ok(rustix::fs::linkat(CWD, &link, CWD, path, AtFlags::SYMLINK_FOLLOW)?);
    if old.is_none() && name(target).is_ok() {
        return Ok(Written::InPlace);
    }
    // Before it has a name, so that nobody takes it for what a killed process has left. Nobody else has it open.
    claim::lock(&file);
    Ok(match named_beside(target, name) {
        Ok((path, ())) => Written::Beside(Temporary::new(path, file)),
        Err(_) => Written::Nowhere,
    })
}

/// Writes a file of a temporary name, and removes it if that fails.
fn write_named(target: &Path, content: &[u8], old: Option<&Old>) -> Result<Temporary, Failure> {
    let (path, file) = create_beside(target, old.is_some()).map_err(Failure::of)?;
    fill(&file, content, old).inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })?;
    Ok(Temporary::new(path, file))
}

fn fill(mut file: &File, content: &[u8], old: Option<&Old>) -> Result<(), Failure> {
    file.write_all(content).map_err(Failure::Broken)?;
    if let Some(old) = old {
        // An owner or an access list that cannot be given to a new file is kept by the old one.
        keep_attributes(old, file).map_err(Failure::Impossible)?;
    }
    file.sync_all().map_err(Failure::Broken)
}

/// Gives `file` the owner, the extended attributes (access lists among them) and the mode of `old`.
fn keep_attributes(old: &Old, file: &File) -> io::Result<()> {
    let (uid, gid) = (old.metadata.uid(), old.metadata.gid());
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (uid, gid) {
        std::os::unix::fs::fchown(file, Some(uid), Some(gid))?;
    }
    keep_extended_attributes(&old.path, file)?;
    // Last, because a change of owner or of the access list changes the mode.
    file.set_permissions(mode_of(&old.metadata))
}

fn keep_extended_attributes(old: &Path, file: &File) -> io::Result<()> {
    // The kernel's own limit for a list and for a value is 64 KiB.
    let mut list = vec![0; 1 << 16];
    let length = match rustix::fs::listxattr(old, &mut list[..]) {
        Ok(length) => length,
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
        Err(error) => return Err(error.into()),
    };
    for name in list[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        // These vouch for the old content; the kernel drops them on any write.
        if [&b"security.capability"[..], b"security.ima", b"security.evm"].contains(&name) {
            continue;
        }
        let (mut wanted, mut there) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        let length = rustix::fs::getxattr(old, name, &mut wanted[..])?;
        wanted.truncate(length);
        // A label that the new file has by itself need not be set, which may be forbidden.
        match rustix::fs::fgetxattr(file, name, &mut there[..]) {
            Ok(length) if there[..length] == wanted[..] => {}
            _ => rustix::fs::fsetxattr(file, name, &wanted, XattrFlags::empty())?,
        }
    }
    Ok(())
}

fn mode_of(metadata: &Metadata) -> Permissions {
    Permissions::from_mode(metadata.permissions().mode() & 0o7777)
}

fn rewrite_in_place(old: &Old, content: &[u8]) -> io::Result<()> {
    let file = match &old.file {
        Ok(file) => file,
        Err(error) => return Err(io::Error::new(error.kind(), "it is a program that is running")),
    };
    let length = content.len() as u64;
    // Room is made before the first old byte is lost. A filesystem that cannot promise room is
    // written all the same.
    let room = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, length);
    if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) = room {
        return Err(unharmed(&error.into()));
    }
    // What makes the file longer comes first, since it can be taken back if there is no room for it after all.
    let old_length = file.metadata()?.len();
    let (start, end) = content.split_at(content.len().min(usize::try_from(old_length).unwrap_or(usize::MAX)));
    let undone = |error: io::Error| match file.set_len(old_length) {
        Ok(()) => unharmed(&error),
        Err(_) => partly_new(&error),
    };
    file.write_all_at(end, start.len() as u64).map_err(undone)?;
    file.write_all_at(start, 0).map_err(|error| partly_new(&error))?;
    file.set_len(length).map_err(|error| partly_new(&error))?;
    // Writing drops set-user-id bits, and only the owner may set them again; the content matters more.
    if file.metadata()?.mode() != old.metadata.mode() {
        let _ = file.set_permissions(mode_of(&old.metadata));
    }
    file.sync_all()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    /// A folder of one test's own, removed when the test ends.
    pub(crate) struct Folder {
        pub(crate) path: PathBuf,
    }

    impl Folder {
        pub(crate) fn new(test: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("cotter-{}-{test}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir(&path).unwrap();
            Folder { path: path.canonicalize().unwrap() }
        }

        pub(crate) fn workspace(&self) -> Workspace {
            Workspace { root: self.path.clone(), private: None, places: Vec::new() }
        }

        pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
            let path = self.path.join(name);
            fs::write(&path, content).unwrap();
            path
        }

        pub(crate) fn get(&self, name: &str) -> Vec<u8> {
            fs::read(self.path.join(name)).unwrap()
        }

        /// The sorted names in the folder, which show that no temporary file is left.
        pub(crate) fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.path).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }

        pub(crate) fn mode(&self, name: &str, mode: u32) {
            fs::set_permissions(self.path.join(name), Permissions::from_mode(mode)).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::set_permissions(&self.path, Permissions::from_mode(0o700));
            let _ = fs::remove_dir_all(&self.path);
        }
    }

    pub(crate) fn make_fifo(path: &Path) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    }

    /// Says that a test cannot be run here, past the capture of a test's output: `.ci/run` counts these.
    pub(crate) fn skipped(test: &str, reason: &str) {
        writeln!(io::stderr(), "SKIPPED {test}: {reason}").unwrap();
    }

    /// Says that a test was skipped if this is root, whom no mode keeps out.
    pub(crate) fn skipped_as_root(test: &str) -> bool {
        let root = rustix::process::geteuid().is_root();
        if root {
            skipped(test, "root may write everywhere");
        }
        root
    }

    fn call(folder: &Folder, path: &str, content: &str) -> Outcome {
        let arguments = json!({ "file_path": path, "content": content });
        run(arguments.as_object().unwrap(), &folder.workspace())
    }

    fn mode(folder: &Folder, name: &str) -> u32 {
        fs::symlink_metadata(folder.path.join(name)).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_new_file_is_created_with_its_folders() {
        let folder = Folder::new("write-new");
        assert_eq!(call(&folder, "a/b/c.txt", "hé\r\nno end"), Outcome::ok("created a/b/c.txt (11 bytes)"));
        assert_eq!(folder.get("a/b/c.txt"), "hé\r\nno end".as_bytes());
        assert_eq!(call(&folder, "empty", ""), Outcome::ok("created empty (0 bytes)"));
        assert_eq!(folder.get("empty"), b"");
        assert_eq!(folder.names(), ["a", "empty"]);
    }

    #[test]
    fn a_new_file_has_the_mode_that_any_program_gives_it() {
        let folder = Folder::new("write-mode-new");
        folder.put("plain", "");
        call(&folder, "new", "x");
        assert_eq!(mode(&folder, "new"), mode(&folder, "plain"));
    }

    #[test]
    fn a_replaced_file_keeps_its_mode() {
        let folder = Folder::new("write-mode");
        folder.put("a.sh", "old");
        for bits in [0o755, 0o600, 0o640, 0o4755, 0o2711] {
            folder.mode("a.sh", bits);
            assert_eq!(call(&folder, "a.sh", "new"), Outcome::ok("wrote a.sh (3 bytes)"));
            assert_eq!(folder.get("a.sh"), b"new");
            assert_eq!(mode(&folder, "a.sh"), bits);
        }
        assert_eq!(folder.names(), ["a.sh"]);
    }

    #[test]
    fn a_replaced_file_is_swapped_whole_so_that_a_reader_keeps_the_old_one() {
        let folder = Folder::new("write-swap");
        let path = folder.put("a", "old content");
        let reader = File::open(&path).unwrap();
        call(&folder, "a", "new");
        assert_eq!(io::read_to_string(reader).unwrap(), "old content");
        assert_eq!(folder.get("a"), b"new");
    }

    #[test]
    fn a_file_keeps_its_owner() {
        if !rustix::process::geteuid().is_root() {
            return skipped("a_file_keeps_its_owner", "only root can give files away");
        }
        let folder = Folder::new("write-owner");
        let path = folder.put("a", "old");
        if let Err(error) = std::os::unix::fs::chown(&path, Some(1234), Some(4321)) {
            return skipped("a_file_keeps_its_owner", &error.to_string());
        }
        call(&folder, "a", "new");
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 4321));
    }

    #[test]
    fn a_file_keeps_its_extended_attributes() {
        let folder = Folder::new("write-attributes");
        let path = folder.put("a", "old");
        if let Err(error) = rustix::fs::setxattr(&path, "user.note", b"kept", XattrFlags::empty()) {
            return skipped("a_file_keeps_its_extended_attributes", &error.to_string());
        }
        let before = fs::metadata(&path).unwrap().ino();
        call(&folder, "a", "new");
        let mut value = [0; 16];
        let length = rustix::fs::getxattr(&path, "user.note", &mut value[..]).unwrap();
        assert_eq!(&value[..length], b"kept");
        assert_ne!(fs::metadata(&path).unwrap().ino(), before);
    }

    #[test]
    fn a_symbolic_link_stays_and_its_target_is_written() {
        let folder = Folder::new("write-link");
        fs::create_dir(folder.path.join("real")).unwrap();
        folder.put("real/a", "old");
        symlink("real/a", folder.path.join("one")).unwrap();
        symlink("one", folder.path.join("two")).unwrap();
        assert_eq!(call(&folder, "two", "new"), Outcome::ok("wrote two (3 bytes)"));
        assert_eq!(folder.get("real/a"), b"new");
        assert_eq!(fs::read_link(folder.path.join("two")).unwrap(), Path::new("one"));
        assert_eq!(fs::read_link(folder.path.join("one")).unwrap(), Path::new("real/a"));

        symlink("absent/b", folder.path.join("dangling")).unwrap();
        assert_eq!(call(&folder, "dangling", "x"), Outcome::ok("created dangling (1 bytes)"));
        assert_eq!(folder.get("absent/b"), b"x");

        symlink("circle", folder.path.join("circle")).unwrap();
        let text = "cannot write circle: its symbolic links lead in a circle";
        assert_eq!(call(&folder, "circle", "x"), Outcome::error(text));
    }

    #[test]
    fn a_file_with_more_names_keeps_them() {
        let folder = Folder::new("write-hard");
        let path = folder.put("one", "a long old content");
        fs::hard_link(&path, folder.path.join("two")).unwrap();
        folder.mode("one", 0o640);
        for content in ["short", "a content that is longer than any before it", ""] {
            call(&folder, "two", content);
            assert_eq!(folder.get("one"), content.as_bytes());
            assert_eq!(fs::metadata(&path).unwrap().nlink(), 2);
            assert_eq!(mode(&folder, "one"), 0o640);
        }
        assert_eq!(folder.names(), ["one", "two"]);
    }

    #[test]
    fn a_file_in_a_folder_that_may_not_be_written_is_rewritten_in_place() {
        if skipped_as_root("a_file_in_a_folder_that_may_not_be_written_is_rewritten_in_place") {
            return;
        }
        let folder = Folder::new("write-read-only");
        folder.put("a", "a long old content");
        fs::set_permissions(&folder.path, Permissions::from_mode(0o555)).unwrap();
        assert_eq!(call(&folder, "a", "new"), Outcome::ok("wrote a (3 bytes)"));
        assert_eq!(folder.get("a"), b"new");
        let text = "cannot write b: Permission denied (os error 13)";
        assert_eq!(call(&folder, "b", "new"), Outcome::error(text));
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn a_file_that_may_not_be_written_is_left_alone() {
        if skipped_as_root("a_file_that_may_not_be_written_is_left_alone") {
            return;
        }
        let folder = Folder::new("write-protected");
        folder.put("a", "old");
        folder.mode("a", 0o444);
        let text = "cannot write a: Permission denied (os error 13)";
        assert_eq!(call(&folder, "a", "new"), Outcome::error(text));
        assert_eq!(folder.get("a"), b"old");
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn what_is_not_a_file_is_refused_without_waiting() {
        let folder = Folder::new("write-special");
        fs::create_dir(folder.path.join("dir")).unwrap();
        make_fifo(&folder.path.join("fifo"));
        let _socket = UnixListener::bind(folder.path.join("socket")).unwrap();
        symlink("gone", folder.path.join("nowhere")).unwrap();
        let cases = [
            ("dir", "cannot write dir: it is a directory; name a file in it"),
            (".", "cannot write .: it is a directory; name a file in it"),
            ("dir/", "dir/ names a folder; name a file in it"),
            ("new/", "new/ names a folder; name a file in it"),
            ("new/.", "new/. names a folder; name a file in it"),
            ("new/..", "new/.. names a folder; name a file in it"),
            ("nowhere/a", "cannot write nowhere/a: its folder is a symbolic link that leads nowhere"),
            ("", "file_path is empty; name the file to write"),
            ("fifo", "cannot write fifo: it is a FIFO, not a file"),
            ("socket", "cannot write socket: it is a socket, not a file"),
            ("/dev/null", "cannot write /dev/null: it is a device, not a file"),
            ("/proc/self/comm", "cannot write /proc/self/comm: it is on procfs"),
            ("fifo/a", "cannot write fifo/a: Not a directory (os error 20)"),
        ];
        for (path, text) in cases {
            assert_eq!(call(&folder, path, "x"), Outcome::error(text));
        }
        assert_eq!(folder.names(), ["dir", "fifo", "nowhere", "socket"]);
    }

    #[test]
    fn a_path_with_a_nul_is_an_error() {
        let folder = Folder::new("write-nul");
        let outcome = call(&folder, "a\0b", "x");
        assert!(outcome.is_error && outcome.text.starts_with("cannot write a\\0b: "), "{}", outcome.text);
    }

    #[test]
    fn a_running_program_is_replaced() {
        let folder = Folder::new("write-busy");
        let path = folder.path.join("sleep");
        fs::copy("/bin/sleep", &path).unwrap();
        let mut child = std::process::Command::new(&path).arg("60").spawn().unwrap();
        assert_eq!(call(&folder, "sleep", "new"), Outcome::ok("wrote sleep (3 bytes)"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(folder.get("sleep"), b"new");
    }

    /// A process that was killed during a long write left a part of it in the folder.
    #[test]
    fn a_file_has_no_name_before_it_is_whole() {
        let folder = Folder::new("write-unnamed");
        let target = folder.put("a", "old");
        let old = Old::open(&target).unwrap();
        // Not every filesystem has files without a name.
        if let Some(file) = create_unnamed(&target, true) {
            assert!(fill(&file, b"new", old.as_ref()).is_ok());
            drop(file);
            assert_eq!(folder.names(), ["a"]);
            let Ok(Written::Beside(new)) = write_unnamed(&target, b"new", old.as_ref()) else { panic!() };
            assert_eq!(new.path, folder.path.join(".cotter-a-0.tmp"));
            assert_eq!(fs::read(new.path).unwrap(), b"new");
        }
    }

    #[test]
    fn both_ways_to_write_beside_a_file_give_the_same() {
        let folder = Folder::new("write-both");
        let target = folder.put("a", "old");
        folder.mode("a", 0o640);
        let old = Old::open(&target).unwrap();
        for old in [None, old.as_ref()] {
            let named = write_named(&target, b"new", old).ok().unwrap();
            let unnamed = match write_unnamed(&target, b"new", old).ok().unwrap() {
                Written::Beside(unnamed) => unnamed,
                Written::Nowhere => return,
                Written::InPlace => panic!("its name is not free"),
            };
            assert_ne!(named.path, unnamed.path);
            let [named, unnamed] = [named, unnamed].map(|Temporary { path, .. }| {
                let metadata = fs::metadata(&path).unwrap();
                let marks = (metadata.mode(), metadata.uid(), metadata.gid(), metadata.nlink());
                (fs::read(&path).unwrap(), marks)
            });
            assert_eq!(named, unnamed);
        }
    }

    /// A new file had another name first, and a process that was killed between the two left it.
    #[test]
    fn a_new_file_gets_its_name_at_once() {
        let folder = Folder::new("write-at-once");
        let target = folder.path.join("a");
        match write_unnamed(&target, b"new", None).ok().unwrap() {
            Written::InPlace => {
                assert_eq!((folder.get("a"), folder.names()), (b"new".to_vec(), vec!["a".into()]))
            }
            Written::Beside(_) => panic!("it has another name"),
            Written::Nowhere => {}
        }
    }

    /// What a process left that was killed between the two names stayed for ever.
    #[test]
    fn what_a_killed_write_has_left_goes_with_the_next_one_and_what_is_in_use_stays() {
        let folder = Folder::new("write-left");
        let target = folder.put("a", "old");
        let long = "n".repeat(255);
        folder.put(&long, "old");
        let left = format!(".cotter-{}-0.tmp", &long[..100]);
        for name in [".cotter-a-0.tmp", ".cotter-a-1.tmp", &left, ".cotter-b-0.tmp"] {
            folder.put(name, "half");
        }
        let used = File::open(folder.path.join(".cotter-a-0.tmp")).unwrap();
        if rustix::fs::flock(&used, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
            return skipped(
                "what_a_killed_write_has_left_goes_with_the_next_one_and_what_is_in_use_stays",
                "there are no locks here",
            );
        }
        assert_eq!(call(&folder, "a", "new"), Outcome::ok("wrote a (3 bytes)"));
        assert!(!call(&folder, &long, "new").is_error);
        assert_eq!(folder.names(), [".cotter-a-0.tmp", ".cotter-b-0.tmp", "a", &long]);
        assert_eq!(fs::read(&target).unwrap(), b"new");
        drop(used);
        assert_eq!(call(&folder, "a", "newer"), Outcome::ok("wrote a (5 bytes)"));
        assert_eq!(folder.names(), [".cotter-b-0.tmp", "a", &long]);
        // What is no file of ours to begin with is left alone.
        fs::create_dir(folder.path.join(".cotter-a-0.tmp")).unwrap();
        symlink("a", folder.path.join(".cotter-a-1.tmp")).unwrap();
        assert_eq!(call(&folder, "a", "new"), Outcome::ok("wrote a (3 bytes)"));
        assert_eq!(folder.names(), [".cotter-a-0.tmp", ".cotter-a-1.tmp", ".cotter-b-0.tmp", "a", &long]);
    }

    #[test]
    fn any_content_is_written_as_it_is() {
        let folder = Folder::new("write-property");
        let pieces =
            ["\n", "\r\n", "\r", "\0", "\u{feff}", "\u{fffd}", "\u{1}", "a", "é", "\u{1f600}", " ", "\t"];
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        folder.put("twice", "");
        fs::hard_link(folder.path.join("twice"), folder.path.join("other")).unwrap();
        for round in 0..150 {
            let content: String = (0..random() % 40).map(|_| pieces[random() % pieces.len()]).collect();
            // New, replaced and rewritten in place.
            for name in [&format!("new{round}"), "old", "twice"] {
                assert!(!call(&folder, name, &content).is_error, "{content:?}");
                assert_eq!(folder.get(name), content.as_bytes());
            }
        }
    }

    /// Where no file is without a name, one writer put the half-written file of another in the place of the old one.
    #[test]
    fn many_writers_of_files_with_names_never_show_half_a_content() {
        let folder = Folder::new("write-many-named");
        let target = folder.put("a", "0".repeat(20_000));
        let write = |content: &str| {
            let temporary = write_named(&target, content.as_bytes(), None).ok().unwrap();
            fs::rename(&temporary.path, &target).unwrap();
            drop(temporary);
            let found = String::from_utf8(folder.get("a")).unwrap();
            assert_eq!(found, found[..1].repeat(20_000));
        };
        let write = &write;
        std::thread::scope(|scope| {
            for writer in 1..5 {
                scope.spawn(move || (0..20).for_each(|_| write(&writer.to_string().repeat(20_000))));
            }
        });
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn many_writers_at_once_leave_one_whole_content() {
        let folder = Folder::new("write-many");
        let contents: Vec<String> = (0..8).map(|it| it.to_string().repeat(20_000)).collect();
        std::thread::scope(|scope| {
            for content in &contents {
                scope.spawn(|| (0..10).for_each(|_| assert!(!call(&folder, "a", content).is_error)));
            }
        });
        assert!(contents.contains(&String::from_utf8(folder.get("a")).unwrap()));
        assert_eq!(folder.names(), ["a"]);
    }
}
