//! Paths that lead to no plain file, or by an odd way to one.

use super::*;

#[test]
fn a_missing_file_is_created_by_write_alone() {
    matrix(
        "missing",
        &holds([]),
        &[
            cell("Read", failed("there is no file Read/it, and no name like it in Read")),
            cell(
                "Glob",
                ok(
                    "[no files match *; ignored and hidden ones are only looked for in a path that names them]",
                ),
            ),
            cell("Glob", failed("there is no file Glob/it, and no name like it in Glob"))
                .with("path", "Glob/it"),
            cell("Grep", failed("there is no file Grep/it, and no name like it in Grep")),
            cell("Bash", ok("refused")),
            cell("Write", ok("created Write/it (4 bytes)")).after(one("new\n")),
            cell(
                "Edit",
                failed(
                    "there is no file Edit/it, and no name like it in Edit; \
                 Edit changes a file that is there, Write creates one",
                ),
            ),
        ],
    );
}

#[test]
fn a_missing_folder_is_made_by_write_alone() {
    let it = |tool, told| cell(tool, told).with("file_path", format!("{tool}/sub/deep/it"));
    matrix(
        "missing-folder",
        &holds([]),
        &[
            it("Read", failed("there is no file Read/sub/deep/it: there is no folder Read/sub/deep")),
            cell("Glob", failed("there is no file Glob/sub/deep: there is no folder Glob/sub"))
                .with("path", "Glob/sub/deep"),
            cell("Grep", failed("there is no file Grep/sub/deep/it: there is no folder Grep/sub/deep"))
                .with("path", "Grep/sub/deep/it"),
            it("Write", ok("created Write/sub/deep/it (4 bytes)")).after(holds([("sub", Thing::Folder)])),
            it(
                "Edit",
                failed(
                    "there is no file Edit/sub/deep/it: there is no folder Edit/sub/deep; \
                 Edit changes a file that is there, Write creates one",
                ),
            ),
        ],
    );
}

#[test]
fn a_directory_is_refused_by_read_write_and_edit() {
    matrix_in(
        "directory",
        &PLAIN,
        &holds([("it", Thing::Folder)]),
        |folder| make(&folder.join("it/a"), &file("")),
        &[
            cell("Read", failed("Read/it is a directory, not a file; it holds: a")),
            cell("Glob", ok("Glob/it/a\n")).with("path", "Glob/it"),
            cell(
                "Grep",
                ok(
                    "[no matches; hidden, ignored and binary files are only searched in a path that names them]",
                ),
            ),
            cell("Bash", ok("refused")),
            cell("Write", failed("cannot write Write/it: it is a directory; name a file in it")),
            cell("Edit", failed("Edit/it is a directory, not a file; it holds: a")),
        ],
    );
}

#[test]
fn a_fifo_is_refused_by_read_write_and_edit_without_blocking() {
    matrix(
        "fifo",
        &holds([("it", Thing::Fifo)]),
        &[
            cell("Read", failed("Read/it is a FIFO, not a file")),
            cell("Glob", ok("[no files match *; ignored and hidden ones are only looked for in a path that names them]")),
            cell("Glob", failed("Glob/it is a FIFO, neither a folder nor a file")).with("path", "Glob/it"),
            cell("Grep", failed("Grep/it is a FIFO, neither a folder nor a file")),
            cell("Grep", ok("[no matches; hidden, ignored and binary files are only searched in a path that names them]")).with("path", "Grep"),
            cell("Bash", failed("[timed out after 100 ms: the command and what it started were ended; give a longer `timeout` (at most 600000), or run it in the background]")).with("timeout", 100),
            cell("Write", failed("cannot write Write/it: it is a FIFO, not a file")),
            cell("Edit", failed("Edit/it is a FIFO, not a file")),
        ],
    );
}

#[test]
fn a_device_is_refused_by_read_write_and_edit_without_being_opened() {
    matrix(
        "device",
        &holds([("it", link("/dev/zero"))]),
        &[
            cell("Read", failed("Read/it is a device, not a file")),
            cell("Glob", ok("[no files match *, only symbolic links such as Glob/it, which are not listed]")),
            cell("Glob", failed("Glob/it is a device, neither a folder nor a file")).with("path", "Glob/it"),
            cell("Grep", failed("Grep/it is a device, neither a folder nor a file")),
            cell("Grep", ok("[no matches; hidden, ignored and binary files are only searched in a path that names them]")).with("path", "Grep"),
            cell("Bash", ok("(no output)")).with("command", "head -c 3 Bash/it"),
            cell("Write", failed("cannot write Write/it: it is a device, not a file")),
            cell("Edit", failed("Edit/it is a device, not a file")),
        ],
    );
}

#[test]
fn a_symbolic_link_is_followed_and_stays() {
    let linked = |text: &str| holds([("it", link("real")), ("real", file(text))]);
    matrix(
        "link",
        &linked("old\n"),
        &[
            cell("Read", ok("old\n")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(linked("new\n")),
            // A search goes through files, of which the link is none; named, it is followed.
            cell("Glob", ok("Glob/real\n")),
            cell("Grep", ok("Grep/it:1:old\n")),
            cell("Grep", ok("Grep/real:1:old\n")).with("path", "Grep"),
            cell("Bash", ok("old")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(linked("new\n")),
        ],
    );
}

#[test]
fn a_dangling_link_is_named_as_one_and_its_target_created_by_write_alone() {
    matrix(
        "dangling",
        &holds([("it", link("gone"))]),
        &[
            // The target is shown as the link has it, relative to its own folder.
            cell("Read", failed("Read/it is a symbolic link to gone, which does not exist")),
            cell("Glob", ok("[no files match *, only symbolic links such as Glob/it, which are not listed]")),
            cell("Glob", failed("Glob/it is a symbolic link to gone, which does not exist")).with("path", "Glob/it"),
            cell("Grep", failed("Grep/it is a symbolic link to gone, which does not exist")),
            cell("Grep", ok("[no matches; hidden, ignored and binary files are only searched in a path that names them]")).with("path", "Grep"),
            cell("Bash", ok("refused")),
            cell("Write", ok("created Write/it (4 bytes)"))
                .after(holds([("it", link("gone")), ("gone", file("new\n"))])),
            cell(
                "Edit",
                failed(
                    "Edit/it is a symbolic link to gone, which does not exist; \
                 Edit changes a file that is there, Write creates one",
                ),
            ),
        ],
    );
}

#[test]
fn a_circle_of_links_is_refused_by_read_write_and_edit() {
    matrix(
        "circle",
        &holds([("it", link("other")), ("other", link("it"))]),
        &[
            cell("Glob", ok("[no files match *, only symbolic links such as Glob/it, which are not listed]")),
            cell("Glob", failed("cannot read Glob/it: Too many levels of symbolic links (os error 40)")).with("path", "Glob/it"),
            cell("Grep", failed("cannot read Grep/it: Too many levels of symbolic links (os error 40)")),
            cell("Grep", ok("[no matches; hidden, ignored and binary files are only searched in a path that names them]")).with("path", "Grep"),
            cell("Bash", ok("refused")),
            cell("Read", failed("cannot read Read/it: Too many levels of symbolic links (os error 40)")),
            cell("Write", failed("cannot write Write/it: its symbolic links lead in a circle")),
            cell("Edit", failed("cannot read Edit/it: Too many levels of symbolic links (os error 40)")),
        ],
    );
}

/// As a search lists it: one that would take two lines in quotes.
fn on_one_line(name: &str) -> String {
    if name.contains('\n') { format!("{name:?}") } else { name.to_owned() }
}

#[test]
fn a_name_may_hold_spaces_newlines_and_quotes() {
    for name in ["two words", "two\nlines", " it's \"here\" ", "-rf", "$(it)", "\u{1f600}"] {
        let it = |tool, told: &str| cell(tool, ok(told)).with("file_path", format!("{tool}/{name}"));
        matrix(
            "name",
            &holds([(name, file("old\n"))]),
            &[
                it("Read", "old\n"),
                cell("Glob", ok(&format!("{}\n", on_one_line(&format!("Glob/{name}"))))),
                cell("Grep", ok(&format!("{}:1:old\n", on_one_line(&format!("Grep/{name}")))))
                    .with("path", format!("Grep/{name}")),
                cell("Bash", ok(&format!("{name}\nold")))
                    .with("command", "cd Bash && printf '%s\\n' * && cat ./*"),
                it("Write", &format!("wrote Write/{name} (4 bytes)")).after(holds([(name, file("new\n"))])),
                it("Edit", &format!("edited Edit/{name} (1 replacement at line 1)"))
                    .after(holds([(name, file("new\n"))])),
            ],
        );
    }
}

#[test]
fn a_name_that_is_not_utf_8_cannot_be_spelt_and_the_way_out_is_told() {
    let name = OsString::from_vec(b"caf\xe9".to_vec());
    let before = Things::from([(name, file("old\n"))]);
    let mut both = before.clone();
    both.insert("caf\u{fffd}".into(), file("new\n"));
    let way_out = |tool: &str| {
        format!(
            "the name of {tool}/caf\u{fffd} holds bytes that are not UTF-8, which a call cannot give; \
             if you can run a command, rename it there, with * in place of those bytes"
        )
    };
    let it = |tool, told| cell(tool, told).with("file_path", format!("{tool}/caf\u{fffd}"));
    matrix(
        "latin-name",
        &before,
        &[
            it("Read", failed(&way_out("Read"))),
            cell("Glob", ok("Glob/caf\u{fffd}\n")),
            cell("Grep", failed("the name of Grep/caf\u{fffd} holds bytes that are not UTF-8, which a call cannot give; if you can run a command, rename it there, with * in place of those bytes")).with("path", "Grep/caf\u{fffd}"),
            cell("Grep", ok("Grep/caf\u{fffd}:1:old\n")).with("path", "Grep"),
            cell("Bash", ok("caf\u{fffd}\nold")).with("command", "cd Bash && ls && cat caf*"),
            it("Write", ok("created Write/caf\u{fffd} (4 bytes)")).after(both),
            it("Edit", failed(&way_out("Edit"))),
        ],
    );
}
