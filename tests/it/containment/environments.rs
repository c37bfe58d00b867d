//! Where the attempts are made: as the tests run, and from tests that root runs also with less, as an ordinary
//! user, and in a root folder of its own without /proc.
//!
//! An environment is a way to start the program and what has to be there for it; one that this machine cannot
//! make says why.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::geteuid;

/// The ordinary user.
pub const NOBODY: u32 = 65_534;

/// Who makes the attempts, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Environment {
    AsTestsRun,
    RootWithoutAdministration,
    OrdinaryUser,
    /// With the machine's programs, the folder for temporary files, and nothing else: no /proc, no /dev but null.
    RootFolder,
}

impl Environment {
    pub fn name(self) -> &'static str {
        match self {
            Environment::AsTestsRun => "as_tests_run",
            Environment::RootWithoutAdministration => "root_without_administration",
            Environment::OrdinaryUser => "ordinary_user",
            Environment::RootFolder => "root_folder",
        }
    }

    /// Whose processes and files they are, if not those of the tests.
    pub fn user(self) -> Option<u32> {
        (self == Environment::OrdinaryUser).then_some(NOBODY)
    }

    /// Whether root has less here than the tests: what fails uncontained says nothing then.
    pub fn has_less(self) -> bool {
        self != Environment::AsTestsRun
    }

    /// What stands before the program where it is started.
    fn before_program(self) -> &'static str {
        match self {
            Environment::AsTestsRun => "",
            Environment::RootWithoutAdministration => {
                "setpriv --bounding-set -sys_admin --inh-caps -sys_admin "
            }
            Environment::OrdinaryUser => "setpriv --reuid 65534 --regid 65534 --clear-groups ",
            Environment::RootFolder => "",
        }
    }

    /// Whether this machine has it.
    ///
    /// Errors: why not.
    pub fn is_offered(self) -> Result<(), String> {
        if self == Environment::AsTestsRun {
            return Ok(());
        }
        if !geteuid().is_root() {
            return Err("the tests are not run by root".to_owned());
        }
        let script = format!("{}true", self.before_program());
        let made = Command::new("sh").args(["-c", &script]).output().map_err(|error| error.to_string())?;
        match made.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&made.stderr).trim().to_owned()),
        }
    }

    /// The script that starts the program, which `$0` lies beside, with a descriptor that a tool would be glad of.
    pub fn start(self, folder: &Path, root: Option<&RootFolder>) -> String {
        let folder = folder.display();
        let open = format!("#!/bin/sh\nexec 7>>'{folder}/precious'\n");
        match root {
            None => format!("{open}exec {}'{folder}/cotter' \"$@\"\n", self.before_program()),
            Some(root) => format!(
                "{open}exec nsenter --mount --target {} chroot '{folder}/root' '{folder}/cotter' -C \"$PWD\" \"$@\"\n",
                root.holder.id()
            ),
        }
    }
}

/// A root folder with nothing but programs. It is there for processes of its own mount namespace alone, which
/// lasts as long as the process that holds it.
pub struct RootFolder {
    holder: Child,
}

impl RootFolder {
    /// Makes it in a folder, below its `root`.
    ///
    /// Errors: why it cannot be made.
    pub fn new(folder: &Path) -> Result<RootFolder, String> {
        let script = "set -e
            cd \"$0/root\"
            mkdir -p usr dev \".$1\"
            for name in bin lib lib64 sbin; do
                if test -L /$name; then ln -s \"$(readlink /$name)\" $name; elif test -d /$name; then
                    mkdir $name; mount --bind /$name $name; mount -o remount,bind,ro $name; fi
            done
            mount --bind /usr usr
            mount -o remount,bind,ro usr
            mount --bind \"$1\" \".$1\"
            : >dev/null
            mount --bind /dev/null dev/null
            echo made
            exec sleep 1000";
        fs::create_dir(folder.join("root")).map_err(|error| error.to_string())?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(folder);
        command.arg(fs::canonicalize(std::env::temp_dir()).map_err(|error| error.to_string())?);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = command.spawn().map_err(|error| error.to_string())?;
        let mut line = String::new();
        let _ = BufReader::new(holder.stdout.take().expect("it is a pipe")).read_line(&mut line);
        let root = RootFolder { holder };
        match line == "made\n" {
            true => Ok(root),
            false => Err("file systems cannot be mounted, not even in a namespace".to_owned()),
        }
    }
}

impl Drop for RootFolder {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Gives a folder and what is in it to a user.
pub fn give(folder: &Path, user: u32) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            give(&entry.path(), user);
        } else {
            std::os::unix::fs::lchown(entry.path(), Some(user), Some(user)).unwrap();
        }
    }
    std::os::unix::fs::lchown(folder, Some(user), Some(user)).unwrap();
}
