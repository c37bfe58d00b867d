//! Files and folders that may not be changed, or not in the usual way.

use super::*;

/// A command that says which of two files can be written: the one that is there, and a new one.
const WRITES: &str = "for name in it other; do
(echo new >Bash/$name) 2>/dev/null && echo written || echo refused
done";

#[test]
fn a_file_without_permission_is_refused_by_read_write_and_edit() {
    let test = "a_file_without_permission_is_refused_by_read_write_and_edit";
    if !can_be_nobody(test) {
        return;
    }
    let mode = |bits| {
        move |folder: &Path| fs::set_permissions(folder.join("it"), Permissions::from_mode(bits)).unwrap()
    };
    matrix_in(
        test,
        &AS_NOBODY,
        &one("old\n"),
        mode(0o000),
        &[
            cell("Read", failed("cannot read Read/it: Permission denied (os error 13)")),
            cell("Glob", ok("Glob/it\n")),
            cell("Grep", failed("cannot read Grep/it: Permission denied (os error 13)")),
            cell("Grep", ok("[no matches; hidden, ignored and binary files are only searched in a path that names them; not searched: Grep/it (Permission denied (os error 13))]")).with("path", "Grep"),
            cell("Bash", ok("refused")),
            cell("Write", failed("cannot write Write/it: Permission denied (os error 13)")),
            cell("Edit", failed("cannot read Edit/it: Permission denied (os error 13)")),
        ],
    );
    // Renaming would get round the mode, against the owner's will.
    matrix_in(
        test,
        &AS_NOBODY,
        &one("old\n"),
        mode(0o444),
        &[
            cell("Read", ok("old\n")),
            cell("Write", failed("cannot write Write/it: Permission denied (os error 13)")),
            cell("Edit", failed("cannot write Edit/it: Permission denied (os error 13)")),
        ],
    );
}

#[test]
fn a_file_in_a_read_only_folder_is_rewritten_in_place_and_no_new_one_is_made() {
    let test = "a_file_in_a_read_only_folder_is_rewritten_in_place_and_no_new_one_is_made";
    if !can_be_nobody(test) {
        return;
    }
    let close = |folder: &Path| fs::set_permissions(folder, Permissions::from_mode(0o555)).unwrap();
    let beside = |tool, told| cell(tool, told).with("file_path", format!("{tool}/other"));
    matrix_in(
        test,
        &AS_NOBODY,
        &one("old\n"),
        close,
        &[
            cell("Read", ok("old\n")),
            cell("Glob", ok("Glob/it\n")),
            cell("Grep", ok("Grep/it:1:old\n")),
            cell("Bash", ok("written\nrefused")).with("command", WRITES).after(one("new\n")),
            beside("Write", failed("cannot write Write/other: Permission denied (os error 13)")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(one("new\n")),
        ],
    );
}

#[test]
fn a_file_with_two_names_is_rewritten_in_place() {
    let names = |text: &str| holds([("it", file(text)), ("other", file(text))]);
    let before = one("old\n");
    let name_twice = |folder: &Path| fs::hard_link(folder.join("it"), folder.join("other")).unwrap();
    matrix_in(
        "two-names",
        &PLAIN,
        &before,
        name_twice,
        &[
            cell("Read", ok("old\n")).after(names("old\n")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(names("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(names("new\n")),
        ],
    );
}

#[test]
fn a_mount_point_is_rewritten_in_place() {
    let test = "a_mount_point_is_rewritten_in_place";
    if !can_mount(test) {
        return;
    }
    matrix_in(
        test,
        &ON_MOUNTED_FILES,
        &one("a long old text\n"),
        |_| {},
        &[
            cell("Read", ok("a long old text\n")),
            cell("Glob", ok("Glob/it\n")),
            cell("Grep", ok("Grep/it:1:a long old text\n")),
            cell("Bash", ok("written\nwritten"))
                .with("command", WRITES)
                .after(holds([("it", file("new\n")), ("other", file("new\n"))])),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(one("a long new text\n")),
        ],
    );
}

#[test]
fn a_read_only_filesystem_is_read_and_nothing_else() {
    let test = "a_read_only_filesystem_is_read_and_nothing_else";
    if !can_mount(test) {
        return;
    }
    let beside = |tool, told| cell(tool, told).with("file_path", format!("{tool}/other"));
    matrix_in(
        test,
        &READ_ONLY,
        &one("old\n"),
        |_| {},
        &[
            cell("Read", ok("old\n")),
            cell("Write", failed("cannot write Write/it: Read-only file system (os error 30)")),
            beside("Write", failed("cannot write Write/other: Read-only file system (os error 30)")),
            cell("Glob", ok("Glob/it\n")),
            cell("Grep", ok("Grep/it:1:old\n")),
            cell("Bash", ok("refused\nrefused")).with("command", WRITES),
            cell("Edit", failed("cannot write Edit/it: Read-only file system (os error 30)")),
        ],
    );
}
