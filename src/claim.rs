//! Files that one process makes and no other takes from it: each is locked while it is in use, and looked at under its
//! name once it is.
//!
//! Between making a file and locking it, another process may take it for what a killed one has left. So a file is its
//! maker's only when the lock is had and its name still leads to it. Not every file system has locks: there nobody gets
//! one, and nothing is ever removed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// Makes a file of this name, and locks it until it is closed.
///
/// # Errors
///
/// `AlreadyExists` if there is one, or another process has taken this one: then what has the name is not to be touched.
pub fn create(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options.create_new(true).open(path)?;
    match claim(&file, path) {
        true => Ok(file),
        false => Err(ErrorKind::AlreadyExists.into()),
    }
}

/// Locks a file that was just made, and says whether it is its maker's.
fn claim(file: &File, path: &Path) -> bool {
    lock(file) && is_at(file, path)
}

/// Marks a file as in use until it is closed. Gives whether no other has it in use, as far as that can be known.
pub fn lock(file: &File) -> bool {
    !matches!(flock(file, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK))
}

/// Removes a file that nobody has in use any more, if it is of no use. Gives whether it did.
pub fn remove_abandoned(path: &Path, is_useless: impl Fn(&File) -> bool) -> bool {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let Ok(file) = OpenOptions::new().read(true).custom_flags(flags).open(path) else { return false };
    // Whoever uses one holds its lock, also while it gets another name. Then the lock that is had here is that of the
    // file which was in its place.
    file.metadata().is_ok_and(|metadata| metadata.is_file())
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
        && is_useless(&file)
        && is_at(&file, path)
        && fs::remove_file(path).is_ok()
}

/// Whether an open file is the one of this name.
fn is_at(file: &File, path: &Path) -> bool {
    let marks = |metadata: Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(open), Ok(there)) => marks(open) == marks(there),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::write::tests::{Folder, skipped};

    fn options() -> OpenOptions {
        let mut options = OpenOptions::new();
        options.write(true);
        options
    }

    /// A writer that was slower to lock its file than another was to find it went on to use the other's.
    #[test]
    fn a_file_that_another_has_taken_since_it_was_made_is_not_its_makers() {
        let folder = Folder::new("claim-taken");
        let path = folder.path.join("a");
        let make = || options().create_new(true).open(&path).unwrap();
        let made = make();
        let other = File::open(&path).unwrap();
        if flock(&other, FlockOperation::NonBlockingLockExclusive).is_err() {
            return skipped(
                "a_file_that_another_has_taken_since_it_was_made_is_not_its_makers",
                "there are no locks here",
            );
        }
        assert!(!claim(&made, &path), "the other has its lock");
        fs::remove_file(&path).unwrap();
        drop(other);
        assert!(!claim(&made, &path), "it is there no more");
        let others = make();
        assert!(!claim(&made, &path), "another file has its name");
        assert!(claim(&others, &path));
    }

    #[test]
    fn what_is_in_use_or_of_use_is_not_removed() {
        let folder = Folder::new("claim-remove");
        let path = folder.path.join("a");
        let file = create(&path, &mut options()).unwrap();
        assert_eq!(create(&path, &mut options()).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert!(!remove_abandoned(&path, |_| true), "it is in use");
        drop(file);
        assert!(!remove_abandoned(&path, |_| false), "it is of use");
        assert_eq!(folder.names(), ["a"]);
        assert!(remove_abandoned(&path, |_| true));
        assert!(!remove_abandoned(&path, |_| true), "there is none");
        assert_eq!(folder.names(), [""; 0]);
    }

    /// Each of many makers of one name, of which each removes what it finds abandoned, has a file of its own.
    #[test]
    fn of_many_makers_one_at_a_time_has_the_name() {
        let folder = Folder::new("claim-many");
        let (path, done) = (folder.path.join("a"), folder.path.join("done"));
        let make = |content: String| {
            loop {
                match create(&path, &mut options()) {
                    Ok(mut file) => {
                        io::Write::write_all(&mut file, content.as_bytes()).unwrap();
                        fs::rename(&path, &done).unwrap();
                        let content = fs::read_to_string(&done).unwrap();
                        return assert_eq!(content, content[..1].repeat(5000));
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::AlreadyExists),
                }
                // What has the name now is another's, who may have been killed for all that is known.
                remove_abandoned(&path, |_| true);
            }
        };
        let make = &make;
        std::thread::scope(|scope| {
            for maker in 0..4 {
                scope.spawn(move || (0..200).for_each(|_| make(maker.to_string().repeat(5000))));
            }
        });
        assert_eq!(folder.names(), ["done"]);
    }
}
