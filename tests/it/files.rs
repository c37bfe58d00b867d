//! The matrix of the file tools: what each of them does with each kind of thing that a path can lead to.
//!
//! One test is one condition, and in it each tool has a cell: the exact text that the model reads, and all that
//! lies in the tool's own folder afterwards. A condition that this machine or user cannot have is skipped by name.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::check::{self, Api};
use crate::processes::{children, wait_for};
use crate::server::{Record, Server};
use crate::stage::{Stage, run};
use crate::story::Story;
use crate::talk::{answer, asks, results};

// What a folder holds.

/// What can have a name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Thing {
    File(Vec<u8>),
    /// A file too large to be held: this beginning, and a hole up to this size.
    Huge(Vec<u8>, u64),
    Folder,
    Fifo,
    /// A symbolic link to this path.
    Link(String),
}

/// A folder's names and what they stand for.
type Things = BTreeMap<OsString, Thing>;

/// More of a file is not compared.
const HELD: u64 = 1 << 20;

/// A folder that holds these.
fn holds<const N: usize>(things: [(&str, Thing); N]) -> Things {
    things.into_iter().map(|(name, thing)| (name.into(), thing)).collect()
}

fn file(bytes: impl AsRef<[u8]>) -> Thing {
    Thing::File(bytes.as_ref().to_vec())
}

/// A folder that holds one file, the one that the tools are asked for.
fn one(bytes: impl AsRef<[u8]>) -> Things {
    holds([("it", file(bytes))])
}

fn link(target: &str) -> Thing {
    Thing::Link(target.to_owned())
}

fn make(path: &Path, thing: &Thing) {
    match thing {
        Thing::File(bytes) => fs::write(path, bytes).unwrap(),
        Thing::Huge(start, size) => {
            fs::write(path, start).unwrap();
            fs::OpenOptions::new().write(true).open(path).unwrap().set_len(*size).unwrap();
        }
        Thing::Folder => fs::create_dir(path).unwrap(),
        Thing::Fifo => {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }
        Thing::Link(target) => symlink(target, path).unwrap(),
    }
}

/// All that lies in a folder, what is below its folders left out.
fn found(folder: &Path) -> Things {
    let mut things = Things::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, metadata) = (entry.path(), entry.metadata().unwrap());
        let kind = metadata.file_type();
        let thing = match () {
            () if kind.is_symlink() => {
                Thing::Link(fs::read_link(&path).unwrap().to_str().unwrap().to_owned())
            }
            () if kind.is_dir() => Thing::Folder,
            () if !kind.is_file() => Thing::Fifo,
            () if metadata.len() > HELD => Thing::Huge(Vec::new(), metadata.len()),
            () => {
                fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
                Thing::File(fs::read(&path).unwrap())
            }
        };
        things.insert(entry.file_name(), thing);
    }
    things
}

// What is asked and told.

/// A result as the model reads it: its text, and whether it is an error.
type Told = (String, bool);

fn ok(text: &str) -> Told {
    (text.to_owned(), false)
}

fn failed(text: &str) -> Told {
    (text.to_owned(), true)
}

/// One cell: the tool, what it is asked, what the model is told, and what the tool's folder holds then. The
/// folder has the tool's name.
struct Cell {
    tool: &'static str,
    arguments: Value,
    told: Told,
    after: Option<Things>,
}

/// The tool is asked for `it` in its folder, and leaves the folder as it was.
fn cell(tool: &'static str, told: Told) -> Cell {
    let path = format!("{tool}/it");
    let arguments = match tool {
        "Read" => json!({"file_path": path}),
        "Write" => json!({"file_path": path, "content": "new\n"}),
        "Edit" => json!({"file_path": path, "old_string": "old", "new_string": "new"}),
        tool => panic!("what is {tool} asked for?"),
    };
    Cell { tool, arguments, told, after: None }
}

impl Cell {
    /// The folder holds this in the end.
    fn after(mut self, things: Things) -> Cell {
        self.after = Some(things);
        self
    }

    /// One argument is another one.
    fn with(mut self, argument: &str, value: impl Into<Value>) -> Cell {
        self.arguments[argument] = value.into();
        self
    }
}

/// How the program is started.
struct Launch {
    /// Shell commands without single quotes, of which `run` starts the program. Those that mount something have
    /// namespaces of their own.
    script: &'static str,
    /// The folder of the workspace in which the tools' folders are found in the end.
    after: &'static str,
}

const PLAIN: Launch = Launch { script: "run", after: "." };

/// As a user whom modes keep out. Nothing is done for one who is not root.
const AS_NOBODY: Launch = Launch {
    script: r#"
        if [ "$(id -u)" != 0 ]; then run; exit; fi
        chown -hR 65534:65534 ..
        as_user="setpriv --reuid=65534 --regid=65534 --clear-groups"
        run"#,
    after: ".",
};

/// The tools' folders lie on a filesystem of 256 KiB. It is gone with the run, so what it holds is copied.
const ON_A_SMALL_DISK: Launch = Launch {
    script: r#"
        for tool in Write Edit; do
            mv "$tool" before && mkdir "$tool" && mount -t tmpfs -o size=256k none "$tool" || exit
            cp -a before/. "$tool" && rm -r before
        done
        run
        status=$?
        mkdir after && cp -a Write Edit after
        exit $status"#,
    after: "after",
};

/// No file may grow beyond 64 KiB. The session would be one more file; there is none without a HOME.
const WITH_SHORT_FILES: Launch =
    Launch { script: "export HOME=/dev/null; prlimit --fsize=65536 --pid $$; run", after: "." };

/// Each tool's file is a mount point of its own.
const ON_MOUNTED_FILES: Launch = Launch {
    script: r#"
        for tool in Read Write Edit; do
            mount --bind "$tool/it" "$tool/it" || exit
        done
        run"#,
    after: ".",
};

/// Each tool's folder lies on a filesystem of its own that is read-only.
const READ_ONLY: Launch = Launch {
    script: r#"
        for tool in Read Write Edit; do
            mount --bind "$tool" "$tool" && mount -o remount,ro,bind "$tool" || exit
        done
        run"#,
    after: ".",
};

/// Runs all cells of a condition in one run. `before` is what each tool's folder holds at first, and `prepare` does
/// to the folder what cannot be said there.
#[track_caller]
fn matrix_in(test: &str, launch: &Launch, before: &Things, prepare: impl Fn(&Path), cells: &[Cell]) {
    let stage = Stage::new(test);
    let mut folders: Vec<&str> = cells.iter().map(|cell| cell.tool).collect();
    folders.dedup();
    for tool in &folders {
        let folder = stage.path(tool);
        fs::create_dir(&folder).unwrap();
        before.iter().for_each(|(name, thing)| make(&folder.join(name), thing));
        prepare(&folder);
    }
    let told = tell(&stage, launch, cells);
    assert_eq!(told.len(), cells.len(), "{test}");
    for (cell, told) in cells.iter().zip(&told) {
        let arguments: String = cell.arguments.to_string().chars().take(200).collect();
        assert_eq!(*told, cell.told, "{test}: {} {arguments}", cell.tool);
    }
    for tool in folders {
        let folder = stage.path(launch.after).join(tool);
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let last = cells.iter().rfind(|cell| cell.tool == tool).unwrap();
        assert_eq!(found(&folder), *last.after.as_ref().unwrap_or(before), "{test}: {tool}");
    }
}

#[track_caller]
fn matrix(test: &str, before: &Things, cells: &[Cell]) {
    matrix_in(test, &PLAIN, before, |_| {}, cells);
}

/// What the model is told of these calls, all asked for by one reply.
#[track_caller]
fn tell(stage: &Stage, launch: &Launch, cells: &[Cell]) -> Vec<Told> {
    let texts: Vec<(String, String)> = cells
        .iter()
        .enumerate()
        .map(|(number, cell)| (format!("call_{number}"), cell.arguments.to_string()))
        .collect();
    let calls: Vec<(&str, &str, &str)> = cells
        .iter()
        .zip(&texts)
        .map(|(cell, (id, arguments))| (id.as_str(), cell.tool, arguments.as_str()))
        .collect();
    let server = Server::start(vec![asks(Api::OpenAi, "", &calls), answer(Api::OpenAi, "Done.")]);
    let run_it = r#"run() { $as_user "$cotter" --base-url "$url" --model test-model -p "Do it."; }"#;
    let script = format!("{run_it}\n{}", launch.script);
    let script = match launch.script.contains("mount ") {
        true => format!("exec unshare -rm sh -c '{script}'"),
        false => script,
    };
    run(&mut stage.shell(server.port(), &script)).code(0).stdout("Done.\n");
    let Record { requests, problems } = server.stop();
    assert!(problems.is_empty(), "{problems:?}");
    check::requests(Api::OpenAi, &requests).unwrap();
    let told = results(Api::OpenAi, &requests.last().unwrap().json());
    told.into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

/// Says that a test cannot be run here unless these shell commands can, past the capture of a test's output:
/// `.ci/run` counts these.
fn can(test: &str, script: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("cotter", env!("CARGO_BIN_EXE_cotter"));
    let output = command.stdin(Stdio::null()).output().unwrap();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let line = format!("SKIPPED {test}: {}\n", why.lines().next().unwrap_or("it cannot be had here"));
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    output.status.success()
}

/// Whether there can be a user whom modes keep out.
fn can_be_nobody(test: &str) -> bool {
    can(
        test,
        r#"[ "$(id -u)" != 0 ] || setpriv --reuid=65534 --regid=65534 --clear-groups "$cotter" --version"#,
    )
}

fn can_mount(test: &str) -> bool {
    can(test, "unshare -rm mount -t tmpfs -o size=64k none /tmp")
}

fn can_limit_files(test: &str) -> bool {
    can(test, "prlimit --fsize=65536 true")
}

// The matrix.

#[test]
fn a_missing_file_is_created_by_write_alone() {
    matrix(
        "missing",
        &holds([]),
        &[
            cell("Read", failed("there is no file Read/it, and no name like it in Read")),
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
            cell("Write", failed("cannot write Write/it: it is a device, not a file")),
            cell("Edit", failed("Edit/it is a device, not a file")),
        ],
    );
}

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
            beside("Write", failed("cannot write Write/other: Permission denied (os error 13)")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(one("new\n")),
        ],
    );
}

#[test]
fn a_binary_file_is_not_read_but_written_and_edited_byte_for_byte() {
    matrix(
        "binary",
        &one(b"\x7fELF\x02\0\0old\0\xff"),
        &[
            cell(
                "Read",
                failed(
                    "Read/it is a binary file of 12 bytes (ELF program or library); only text and PNG, JPEG, GIF and WebP images can be read",
                ),
            ),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)"))
                .after(one(b"\x7fELF\x02\0\0new\0\xff")),
        ],
    );
}

#[test]
fn an_empty_file_is_said_to_be_empty_and_is_filled_by_write_alone() {
    matrix(
        "empty",
        &one(""),
        &[
            cell("Read", ok("(the file is empty)")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", failed("Edit/it is empty, so there is nothing to replace; use Write to fill it")),
        ],
    );
}

#[test]
fn of_a_huge_file_a_window_is_read_it_is_replaced_whole_and_not_edited() {
    let huge = |start: &str| holds([("it", Thing::Huge(start.as_bytes().to_vec(), 10 << 30))]);
    let read = "old\n".repeat(2000) + "[lines 1-2000 shown, more follow: Read with offset=2001]";
    // The beginning of a file of that size is not compared afterwards.
    matrix(
        "huge",
        &huge(&"old\n".repeat(2500)),
        &[
            cell("Read", ok(&read)).after(huge("")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell(
                "Edit",
                failed(
                    "Edit/it is larger than 67108864 bytes, which is too large for Edit; use sed with Bash",
                ),
            )
            .after(huge("")),
        ],
    );
}

#[test]
fn crlf_is_shown_as_it_is_and_kept_by_edit() {
    matrix(
        "crlf",
        &one("one\r\nold\r\n"),
        &[
            cell("Read", ok("one\r\nold\r\n")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)"))
                .with("old_string", "one\nold\n")
                .with("new_string", "one\nnew\nmore\n")
                .after(one("one\r\nnew\r\nmore\r\n")),
        ],
    );
}

#[test]
fn mixed_endings_and_a_missing_final_newline_are_kept_by_edit() {
    matrix(
        "mixed",
        &one("one\nold\r\ntwo\rthree"),
        &[
            cell("Read", ok("one\nold\r\ntwo\rthree")),
            cell("Write", ok("wrote Write/it (3 bytes)")).with("content", "new").after(one("new")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)"))
                .with("old_string", "one\nold\ntwo")
                .with("new_string", "one\nnew\ntwo")
                .after(one("one\nnew\r\ntwo\rthree")),
        ],
    );
}

#[test]
fn a_byte_order_mark_is_not_shown_and_kept_by_edit() {
    matrix(
        "bom",
        &one("\u{feff}old\n"),
        &[
            cell("Read", ok("old\n")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(one("\u{feff}new\n")),
        ],
    );
}

#[test]
fn utf_16_is_decoded_by_read_and_refused_by_edit() {
    let refused = "Edit/it is UTF-16, which Edit cannot change; convert it with iconv and Bash, or replace it with Write";
    for bytes in [b"\xff\xfeo\0l\0d\0\n\0", b"\xfe\xff\0o\0l\0d\0\n"] {
        matrix(
            "utf-16",
            &one(bytes),
            &[
                cell("Read", ok("old\n[decoded from UTF-16]")),
                cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
                cell("Edit", failed(refused)),
            ],
        );
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_shown_as_replaced_and_kept_by_edit() {
    matrix(
        "latin-1",
        &one(b"caf\xe9 old\xff\n"),
        &[
            cell(
                "Read",
                ok("caf\u{fffd} old\u{fffd}\n[bytes that are not UTF-8 text are shown as \u{fffd}]"),
            ),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell(
                "Edit",
                failed(
                    "old_string does not occur in Edit/it; \
             U+FFFD may stand for bytes that are not UTF-8 there, so choose a text without it",
                ),
            )
            .with("old_string", "caf\u{fffd} old"),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(one(b"caf\xe9 new\xff\n")),
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
            cell("Read", failed("cannot read Read/it: Too many levels of symbolic links (os error 40)")),
            cell("Write", failed("cannot write Write/it: its symbolic links lead in a circle")),
            cell("Edit", failed("cannot read Edit/it: Too many levels of symbolic links (os error 40)")),
        ],
    );
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
            "the name of {tool}/caf\u{fffd} holds bytes that are not UTF-8, which file_path cannot give; \
             if you can run a command, rename it there, with * in place of those bytes"
        )
    };
    let it = |tool, told| cell(tool, told).with("file_path", format!("{tool}/caf\u{fffd}"));
    matrix(
        "latin-name",
        &before,
        &[
            it("Read", failed(&way_out("Read"))),
            it("Write", ok("created Write/caf\u{fffd} (4 bytes)")).after(both),
            it("Edit", failed(&way_out("Edit"))),
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
            cell("Edit", failed("cannot write Edit/it: Read-only file system (os error 30)")),
        ],
    );
}

// Where there is no room.

const OLD_BYTES: usize = 150_000;

/// Cells in which the new content has no room. The old one, and a file of two names, are whole afterwards, and
/// nothing is left of the new one.
fn cells_without_room(refusal: &str, error: &str) -> Vec<Cell> {
    let text = "x".repeat(OLD_BYTES);
    let beside = |tool, name: &str, told: String| {
        cell(tool, failed(&told)).with("file_path", format!("{tool}/{name}"))
    };
    let grown = |cell: Cell| cell.with("new_string", "longer").with("replace_all", true);
    vec![
        cell("Write", failed(&format!("cannot write Write/it: {refusal}"))).with("content", text.as_str()),
        beside("Write", "twice", format!("cannot write Write/twice: {refusal}"))
            .with("content", text.repeat(2)),
        beside("Write", "another", format!("cannot write Write/another: {error}"))
            .with("content", text.as_str()),
        grown(cell("Edit", failed(&format!("cannot write Edit/it: {refusal}")))),
        grown(beside("Edit", "twice", format!("cannot write Edit/twice: {refusal}"))),
    ]
}

fn name_twice(folder: &Path) {
    fs::hard_link(folder.join("twice"), folder.join("other")).unwrap();
}

#[test]
fn on_a_full_disk_the_old_file_is_whole_and_nothing_is_left() {
    let test = "on_a_full_disk_the_old_file_is_whole_and_nothing_is_left";
    if !can_mount(test) {
        return;
    }
    let before = holds([("it", file("old ".repeat(OLD_BYTES / 4))), ("twice", file("old ".repeat(1000)))]);
    let mut after = before.clone();
    after.insert("other".into(), before[OsStr::new("twice")].clone());
    let error = "No space left on device (os error 28)";
    let mut cells = cells_without_room(&format!("{error}; its old content is untouched"), error);
    // What has a thousand places to grow in does not fit into the room that is left.
    cells.last_mut().unwrap().arguments["new_string"] = json!("n".repeat(200));
    let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.after(after.clone())).collect();
    matrix_in(test, &ON_A_SMALL_DISK, &before, name_twice, &cells);
}

#[test]
fn beyond_a_limit_for_files_the_old_file_is_whole_and_nothing_is_left() {
    let test = "beyond_a_limit_for_files_the_old_file_is_whole_and_nothing_is_left";
    if !can_limit_files(test) {
        return;
    }
    let text = "old ".repeat(15_000);
    let before = holds([("it", file(&text)), ("twice", file(&text))]);
    let after = holds([("it", file(&text)), ("twice", file(&text)), ("other", file(&text))]);
    let error = "File too large (os error 27)";
    let cells = cells_without_room(&format!("{error}; its old content is untouched"), error);
    let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.after(after.clone())).collect();
    matrix_in(test, &WITH_SHORT_FILES, &before, name_twice, &cells);
}

// What holds for any file.

#[test]
fn edits_of_one_file_in_one_reply_apply_in_order() {
    let edit = |old: &str, new: &str, line: u32| {
        cell("Edit", ok(&format!("edited Edit/it (1 replacement at line {line})")))
            .with("old_string", old)
            .with("new_string", new)
    };
    let missing = "old_string does not occur in Edit/it; the nearest place is line 1:\nthree\n\
                   line 1 is not what old_string has: th ree";
    matrix(
        "order",
        &one("one\r\n"),
        &[
            edit("one", "two", 1),
            edit("two", "two\nthree", 1),
            edit("two\n", "", 1),
            cell("Edit", failed(missing)).with("old_string", "th ree"),
            edit("three", "four", 1).after(one("four\r\n")),
        ],
    );
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn pieces(&mut self, most: usize, pieces: &[&[u8]]) -> Vec<u8> {
        (0..self.below(most + 1)).flat_map(|_| pieces[self.below(pieces.len())]).copied().collect()
    }
}

/// Random files are edited and written through the whole program: all bytes outside the edit stay, and any
/// content arrives as it was sent.
#[test]
fn random_files_are_edited_and_written_byte_for_byte() {
    let around: [&[u8]; 9] =
        [b"\n", b"\r\n", b"\r", b"a", "é".as_bytes(), b"\xff", b"\xe2\x82", b"\0", "\u{feff}".as_bytes()];
    let letters: [&[u8]; 6] = [b"\n", b"\r\n", b"a", "é".as_bytes(), "\u{1f600}".as_bytes(), b"\0"];
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let (mut before, mut after, mut written, mut cells) =
        (Things::new(), Things::new(), Things::new(), vec![]);
    for number in 0..60 {
        let name = format!("{number:02}");
        // A UTF-16 mark at the start would be refused, which another test is about.
        let start = [b"-".to_vec(), random.pieces(12, &around)].concat();
        let (end, new) = (random.pieces(12, &around), random.pieces(6, &letters[2..]));
        before.insert(name.clone().into(), Thing::File([&start[..], b"<old>", &end].concat()));
        after.insert(name.clone().into(), Thing::File([&start[..], &new, &end].concat()));
        let line = start.iter().filter(|byte| **byte == b'\n').count() + 1;
        let told = format!("edited Edit/{name} (1 replacement at line {line})");
        let edit = cell("Edit", ok(&told)).with("file_path", format!("Edit/{name}"));
        let edit = edit.with("old_string", "<old>").with("new_string", String::from_utf8(new).unwrap());
        cells.push(edit);
    }
    for number in 0..60 {
        let name = format!("{number:02}");
        let content = random.pieces(30, &letters);
        let told = format!("wrote Write/{name} ({} bytes)", content.len());
        let text = String::from_utf8(content.clone()).unwrap();
        cells.push(cell("Write", ok(&told)).with("file_path", format!("Write/{name}")).with("content", text));
        written.insert(name.into(), Thing::File(content));
    }
    cells.iter_mut().for_each(|cell| {
        cell.after = Some(if cell.tool == "Edit" { after.clone() } else { written.clone() });
    });
    matrix("random", &before, &cells);
}

/// Of Write 3 MB are enough, since the model sends them all; an edit makes 30 MB of a few bytes. Both replace the
/// file in the same way.
#[test]
fn a_kill_during_a_long_write_leaves_the_old_content_or_the_new_one() {
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let text = "a line that is new\n".repeat(3_000_000 / 19);
    let write = ("Write", json!({"file_path": "it", "content": text}));
    for mark in [0, random.below(text.len())] {
        kill_at(mark, &write, "old\n", &text);
    }
    let old = format!("old{}\n", "x".repeat(996)).repeat(30_000);
    let arguments =
        json!({"file_path": "it", "old_string": "old", "new_string": "newer", "replace_all": true});
    let (edit, new) = (("Edit", arguments), old.replace("old", "newer"));
    for mark in [0, random.below(new.len()), random.below(new.len()), random.below(new.len()), new.len()] {
        kill_at(mark, &edit, &old, &new);
    }
}

/// Kills the program when so many bytes of the new content are written, and looks at what is there then.
#[track_caller]
fn kill_at(mark: usize, (tool, arguments): &(&str, Value), old: &str, new: &str) {
    let reply = asks(Api::OpenAi, "", &[("call_1", tool, &arguments.to_string())]);
    let story = Story::new("kill").openai().file("it", old).args(&["-p", "Do it."]).reply(reply);
    let running = story.start();
    let cotter = Pid::from_raw(running.pid().try_into().unwrap()).unwrap();
    let it = running.folder().join("it");
    let worker = wait_for("a part of the new content", || {
        let worker = *children(*children(cotter).first()?).first()?;
        let is_new = fs::metadata(&it).unwrap().len() != old.len() as u64;
        (is_new || written(worker, &it)? >= mark as u64).then_some(worker)
    });
    kill_process(cotter, Signal::KILL).unwrap();
    wait_for("the worker's end", || is_over(worker).then_some(()));
    let outcome = running.finish();
    let held = fs::read_to_string(outcome.folder.join("it")).unwrap();
    assert!(held == old || held == new, "{tool}: {} bytes at {mark}", held.len());
    // Between its last byte and its renaming the new file has a name, which may be left.
    for name in found(&outcome.folder).into_keys().filter(|name| name != "it") {
        let name = name.into_string().unwrap();
        assert!(name.starts_with(".cotter-") && name.ends_with(".tmp"), "{tool}: {name} at {mark}");
    }
}

/// How much a process has written to another file in the folder of this one.
fn written(process: Pid, it: &Path) -> Option<u64> {
    let descriptors = fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten();
    let beside = |path: &Path| path.parent() == it.parent() && path != it;
    let open = descriptors.filter(|each| fs::read_link(each.path()).is_ok_and(|path| beside(&path)));
    open.filter_map(|each| Some(fs::metadata(each.path()).ok()?.len())).max()
}

/// Whether a process has ended, be it waited for or not.
fn is_over(process: Pid) -> bool {
    fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default().is_empty()
}
