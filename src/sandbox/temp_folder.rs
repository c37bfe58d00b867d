//! The private temporary folder of tools: its name, its making and its removal.
//!
//! cotter thinks of the name and the supervisor makes the folder. So cotter can remove it at whatever moment
//! the supervisor is killed, and the supervisor whenever cotter is.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

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

/// Makes the folder, which only its owner can enter.
///
/// Errors: why it cannot be made, with the remedy.
pub fn make(folder: &Path) -> Result<(), String> {
    DirBuilder::new().mode(0o700).create(folder).map_err(|error| {
        let parent = folder.parent().unwrap_or(folder).display();
        format!(
            "cannot make a temporary folder in '{parent}': {error}; set TMPDIR to a folder that can be written"
        )
    })
}

/// Removes the folder and all that is in it. Called when nothing that could write to it runs any more.
pub fn remove(folder: &Path) {
    // A tool that may write in the folder above can put a link to another one in its place.
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|data| data.is_dir());
    if fs::remove_dir_all(folder).is_err() && is_folder {
        // Some programs (Go's module cache) leave folders that even their owner may not change.
        make_folders_writable(folder);
        // What remains now cannot be helped, and nobody is left to tell: stderr is closed here.
        let _ = fs::remove_dir_all(folder);
    }
}

fn make_folders_writable(folder: &Path) {
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_folders_writable(&entry.path());
        }
    }
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
        remove(&parent);
        assert!(!parent.exists());
    }
}
