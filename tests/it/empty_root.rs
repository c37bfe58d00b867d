//! cotter in a root folder that holds nothing but cotter: no shell, no /proc, no /dev, no /etc.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;
use serde_json::json;

use crate::containment::skipped;
use crate::processes::{DONE, Told, failed, ok, results, story};
use crate::story::new_folder;

/// The libraries that the program is started with, unless it is static.
fn libraries(program: &Path) -> Vec<PathBuf> {
    let listed = Command::new("ldd").arg(program).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    text.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// The worker could not be started for want of /dev/null.
#[test]
fn files_are_written_edited_and_found_in_an_empty_root_folder() {
    let name = "files_are_written_edited_and_found_in_an_empty_root_folder";
    if !geteuid().is_root() {
        return skipped(name, "only root may change the root folder");
    }
    // A private folder is made where one is named. Without any, files are written all the same.
    let none = failed("there is no $TMPDIR here: give a path in the workspace");
    in_an_empty_root_folder("export TMPDIR=/", ok("created $TMPDIR/b (2 bytes)"));
    in_an_empty_root_folder("unset TMPDIR", none);
}

#[track_caller]
fn in_an_empty_root_folder(variable: &str, written: Told) {
    let root = new_folder("empty-root", &["work"]);
    let program = Path::new(crate::story::program());
    fs::copy(program, root.join("cotter")).unwrap();
    for library in libraries(program) {
        let copy = root.join(library.strip_prefix("/").unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(library, copy).unwrap();
    }
    let start = root.join("start");
    let text = format!("#!/bin/sh\n{variable}\nexec chroot '{}' /cotter -C /work \"$@\"\n", root.display());
    fs::write(&start, text).unwrap();
    fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).unwrap();
    let calls = [
        json!({"name": "Write", "input": {"file_path": "src/a.rs", "content": "fn one() {}\n"}}),
        json!({"name": "Edit", "input": {"file_path": "src/a.rs", "old_string": "one", "new_string": "two"}}),
        json!({"name": "Grep", "input": {"pattern": "two", "output_mode": "content"}}),
        json!({"name": "Glob", "input": {"pattern": "**/*.rs"}}),
        json!({"name": "Read", "input": {"file_path": "src/a.rs"}}),
        json!({"name": "Write", "input": {"file_path": "$TMPDIR/b", "content": "x\n"}}),
    ];
    let outcome = story("empty root", &calls).program(&start).run();
    outcome.code(0).stdout(DONE).stderr("");
    let expected = [
        ok("created src/a.rs (12 bytes)"),
        ok("edited src/a.rs (1 replacement at line 1)"),
        ok("src/a.rs:1:fn two() {}\n"),
        ok("src/a.rs\n"),
        ok("fn two() {}\n"),
        written,
    ];
    outcome.equal(results(&outcome), expected.to_vec());
    assert_eq!(fs::read_to_string(root.join("work/src/a.rs")).unwrap(), "fn two() {}\n");
    let left: Vec<_> = fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("cotter-")), "{left:?}");
    fs::remove_dir_all(root).unwrap();
}
