//! Where tools may write, by Landlock: below the given folders and to five devices that keep nothing.
//!
//! Files may be read and executed everywhere, but of the devices only those five are opened at all: whoever
//! reads a terminal reads what the user types there, and some devices take commands from a reader. Making a
//! device, and commands to one, are never granted: a root that made a block device in the workspace would
//! overwrite the disk. What is handled is a hard requirement; what this kernel's Landlock cannot judge is told,
//! so that the system calls are refused.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};

/// Where devices lie, and which folder there holds files.
const DEVICE_FOLDER: &str = "/dev";
const FILES_AMONG_DEVICES: &str = "/dev/shm";

/// The devices that may be read and written, with their numbers: a file of that name could be anything.
const DEVICES: [(&str, u32, u32); 5] = [
    ("/dev/null", 1, 3),
    ("/dev/zero", 1, 5),
    ("/dev/full", 1, 7),
    ("/dev/random", 1, 8),
    ("/dev/urandom", 1, 9),
];

/// What the kernel's Landlock can be asked to judge.
#[derive(Debug, Clone, Copy)]
pub struct Landlock {
    access: BitFlags<AccessFs>,
    scopes: BitFlags<Scope>,
}

impl Landlock {
    /// Asks the kernel, restricting nothing.
    ///
    /// Errors: why this kernel cannot contain writes.
    pub fn of_kernel() -> Result<Landlock, String> {
        Landlock::is_offered()?;
        let least = least();
        let later = [AccessFs::Refer, AccessFs::Truncate, AccessFs::IoctlDev, AccessFs::ResolveUnix];
        let offered = later.into_iter().filter(|access| ruleset(*access, BitFlags::EMPTY).is_ok());
        let access = offered.fold(least, |all, access| all | access);
        let scopes = Scope::AbstractUnixSocket | Scope::Signal;
        let scopes = if ruleset(least, scopes).is_ok() { scopes } else { BitFlags::EMPTY };
        Ok(Landlock { access, scopes })
    }

    /// Whether the kernel has what cannot be done without.
    ///
    /// Errors: it has not.
    pub fn is_offered() -> Result<(), String> {
        // Creating a ruleset shows that a filter around cotter allows the calls too.
        match ruleset(least(), BitFlags::EMPTY).and_then(Ruleset::create) {
            Ok(_) => Ok(()),
            Err(_) => Err(
                "the kernel offers no Landlock (it needs Linux 5.13 or later with `landlock` in /sys/kernel/security/lsm)"
                    .to_owned(),
            ),
        }
    }

    /// Whether cutting a file that was opened for reading is judged (from ABI 3).
    pub fn judges_truncation(self) -> bool {
        self.access.contains(AccessFs::Truncate)
    }

    /// Whether signals to processes outside are judged (from ABI 6).
    pub fn judges_signals(self) -> bool {
        self.scopes.contains(Scope::Signal)
    }

    /// Whether reaching a UNIX socket by its path is judged (from ABI 9).
    pub fn judges_unix_sockets(self) -> bool {
        self.access.contains(AccessFs::ResolveUnix)
    }

    /// From now on this process and all that it starts write only below these folders, and read no device.
    ///
    /// Errors: why that cannot be enforced, or which folder is not what it was.
    pub fn restrict(self, folders: &[&Path]) -> Result<(), String> {
        let refused = |error: landlock::RulesetError| format!("Landlock cannot be set up: {error}");
        let never = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev;
        let mut rules = ruleset(self.access, self.scopes).and_then(Ruleset::create).map_err(refused)?;
        for folder in folders {
            let opened = open(folder)
                .map_err(|error| format!("cannot let tools write in '{}': {error}", folder.display()))?;
            rules = rules.add_rule(PathBeneath::new(opened, self.access & !never)).map_err(refused)?;
        }
        for folder in readable_folders().iter().filter_map(|folder| open(folder).ok()) {
            rules = rules.add_rule(PathBeneath::new(folder, AccessFs::ReadFile)).map_err(refused)?;
        }
        let to_device = self.access & (AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate);
        for device in DEVICES.iter().filter_map(open_device) {
            rules = rules.add_rule(PathBeneath::new(device, to_device)).map_err(refused)?;
        }
        let status = rules.restrict_self().map_err(refused)?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(()),
            _ => Err("Landlock is not enforced by this kernel".to_owned()),
        }
    }
}

/// What lies in the root folder, without the devices: Landlock lets in and cannot leave out. What comes to lie
/// in the root folder later is not read.
fn readable_folders() -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from(FILES_AMONG_DEVICES)];
    match fs::read_dir("/") {
        Ok(entries) => {
            let paths = entries.flatten().map(|entry| entry.path());
            folders.extend(paths.filter(|path| path != Path::new(DEVICE_FOLDER)));
        }
        // Some systems do not list it. Without anything to read no program would start.
        Err(_) => folders.push(PathBuf::from("/")),
    }
    folders
}

/// The rights that every kernel with Landlock judges.
fn least() -> BitFlags<AccessFs> {
    AccessFs::from_write(ABI::V1) | AccessFs::ReadFile
}

fn ruleset(
    access: impl Into<BitFlags<AccessFs>>,
    scopes: BitFlags<Scope>,
) -> Result<Ruleset, landlock::RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(access)?;
    if scopes.is_empty() { Ok(ruleset) } else { ruleset.scope(scopes) }
}

/// Opens a real path. Had a tool of an earlier worker put a symbolic link in the place of a folder, the
/// link's target would become writable.
fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// A device, unless it is missing or another file lies in its place.
fn open_device((path, major, minor): &(&str, u32, u32)) -> Option<OwnedFd> {
    let device = open(Path::new(path)).ok()?;
    let stat = rustix::fs::fstat(&device).ok()?;
    let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    let number = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    (is_device && number == (*major, *minor)).then_some(device)
}
