//! The private temporary folder of tools: its name, its making and its removal.
//!
//! cotter thinks of the name and the supervisor makes the folder. So cotter can remove it at whatever moment
//! the supervisor is killed, and the supervisor whenever cotter is.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
use std::ops::RangeFrom;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::process::getpid;
use rustix::rand::{GetRandomFlags, getrandom};

/// A path for a new folder. The number is drawn, since process numbers meet where two containers share
/// a folder, and has a fixed width, so that outputs that hold the path are cut at the same place in every run.
pub fn new_path(parent: &Path) -> PathBuf {
    // The real path: what a tool prints of the folder it is in must be known again.
    let parent = fs::canonicalize(parent).unwrap_or_else(|_| parent.to_owned());
    let mut drawn = [0; 8];
    let number = match getrandom(&mut drawn, GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(drawn),
        _ => u64::from(getpid().as_raw_nonzero().get().unsigned_abs()),
    };
    parent.join(format!("cotter-{number:016x}"))
}

/// Whether a folder can be made in `parent`, as far as that can be told without making one: where there is none
/// for tools, each call would fail, and nobody but the model would read why.
///
/// Errors: why not, with the remedy.
pub fn can_be_made_in(parent: &Path) -> Result<(), String> {
    // What is behind the slash is there in folders alone.
    let inside = parent.join(".");
    rustix::fs::access(&inside, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| unusable(parent, error.into()))
}

/// The folder as an argument of supervisor and worker, which is empty where there is none.
pub fn argument(folder: Option<&Path>) -> &OsStr {
    folder.map(Path::as_os_str).unwrap_or_default()
}

/// The folder that an argument names.
pub fn of_argument(argument: &OsStr) -> Option<&Path> {
    (!argument.is_empty()).then_some(Path::new(argument))
}

/// Makes the folder, which only its owner can enter.
///
/// Errors: why it cannot be made, with the remedy.
pub fn make(folder: &Path) -> Result<(), String> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    made.map_err(|error| unusable(folder.parent().unwrap_or(folder), error))
}

fn unusable(parent: &Path, error: io::Error) -> String {
    let parent = parent.display();
    format!(
        "cannot make a temporary folder in '{parent}': {error}; set TMPDIR to a folder that can be written"
    )
}

/// Removes the folder and all that is in it. Called when nothing that could write to it runs any more.
///
/// A tool may have made a tree of any depth. What follows it down holds a descriptor, or a longer path, for
/// each level, of which there are only so many. So what lies in a subfolder is moved up until nothing is deep.
///
/// Errors: why it is still there.
pub fn remove(folder: &Path) -> io::Result<()> {
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A tool that may write in the folder above can put a link to another one in its place.
        Ok(data) if !data.is_dir() => return fs::remove_file(folder),
        _ => make_writable(folder),
    }
    let mut names = 0_u64..;
    while empty_once(folder, &mut names)? {}
    fs::remove_dir(folder)
}

/// Goes once through the folder; whether anything was removed. What fails may work the next time, when
/// something else is gone.
fn empty_once(folder: &Path, names: &mut RangeFrom<u64>) -> io::Result<bool> {
    let mut progress = false;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let removed = match entry.file_type()?.is_dir() {
            true => flatten(folder, &entry.path(), names),
            false => fs::remove_file(entry.path()),
        };
        progress |= removed.is_ok();
    }
    Ok(progress)
}

/// Removes a subfolder; the folders in it become subfolders of `top`.
fn flatten(top: &Path, folder: &Path, names: &mut RangeFrom<u64>) -> io::Result<()> {
    if fs::remove_dir(folder).is_ok() {
        return Ok(());
    }
    make_writable(folder);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => move_up(top, &entry.path(), names)?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir(folder)
}

fn move_up(top: &Path, folder: &Path, names: &mut RangeFrom<u64>) -> io::Result<()> {
    // A folder is moved only by one who may write in it.
    make_writable(folder);
    for name in names {
        match fs::rename(folder, top.join(name.to_string())) {
            // A tool has used the name.
            Err(error) if matches!(error.kind(), DirectoryNotEmpty | NotADirectory | AlreadyExists) => {}
            moved => return moved,
        }
    }
    Ok(())
}

/// Some programs (Go's module cache) leave folders that even their owner may not change.
fn make_writable(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_new_and_private_and_its_parent_is_named_when_it_fails() {
        let parent = new_path(&std::env::temp_dir());
        let error = make(&new_path(&parent)).unwrap_err();
        let expected = format!(
            "cannot make a temporary folder in '{}': No such file or directory (os error 2); set TMPDIR to a folder that can be written",
            parent.display()
        );
        assert_eq!(error, expected);
        make(&parent).unwrap();
        assert_eq!(fs::metadata(&parent).unwrap().permissions().mode() & 0o777, 0o700);
        let folders = [new_path(&parent), new_path(&parent)];
        assert_ne!(folders[0], folders[1]);
        make(&folders[0]).unwrap();
        assert!(make(&folders[0]).unwrap_err().contains("File exists"));
        // A folder without permissions inside does not keep it from being removed.
        fs::create_dir_all(folders[0].join("locked/inner")).unwrap();
        fs::set_permissions(folders[0].join("locked"), fs::Permissions::from_mode(0o000)).unwrap();
        remove(&parent).unwrap();
        assert!(!parent.exists());
        // What is gone already is no failure.
        remove(&parent).unwrap();
    }

    #[test]
    fn a_parent_that_is_no_folder_to_write_in_is_told_from_one_that_is() {
        let own = new_path(&std::env::temp_dir());
        make(&own).unwrap();
        assert_eq!(can_be_made_in(&own), Ok(()));
        fs::write(own.join("file"), "").unwrap();
        for (name, why) in
            [("missing", "No such file or directory (os error 2)"), ("file", "Not a directory (os error 20)")]
        {
            let parent = own.join(name);
            let expected = format!(
                "cannot make a temporary folder in '{}': {why}; set TMPDIR to a folder that can be written",
                parent.display()
            );
            assert_eq!(can_be_made_in(&parent), Err(expected));
        }
        remove(&own).unwrap();
    }

    #[test]
    fn a_tree_of_any_depth_is_removed_whatever_its_names_and_permissions() {
        let top = new_path(&std::env::temp_dir());
        make(&top).unwrap();
        fs::create_dir(top.join("inner")).unwrap();
        // Deeper than descriptors, and than a path may be long, from the innermost folder outwards.
        for level in 0..1200 {
            fs::create_dir(top.join("outer")).unwrap();
            fs::rename(top.join("inner"), top.join("outer/inner")).unwrap();
            fs::write(top.join("outer/file"), "").unwrap();
            if level % 7 == 0 {
                fs::create_dir_all(top.join("outer/0/0")).unwrap();
                fs::set_permissions(top.join("outer/0"), fs::Permissions::from_mode(0o000)).unwrap();
            }
            fs::rename(top.join("outer"), top.join("inner")).unwrap();
        }
        // The names that what is moved up gets may be there.
        fs::create_dir_all(top.join("0/1/2")).unwrap();
        fs::write(top.join("1"), "").unwrap();
        std::os::unix::fs::symlink("/", top.join("2")).unwrap();
        remove(&top).unwrap();
        assert!(!top.exists());
    }

    #[test]
    fn what_cannot_be_removed_is_told() {
        assert!(remove(Path::new("/proc/self/fdinfo")).is_err());
    }
}
