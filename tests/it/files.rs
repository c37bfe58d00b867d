//! The matrix of the tools: what each of them does with each kind of thing that a path can lead to.
//!
//! One test is one condition, and in it each tool has a cell: the exact text that the model reads, and all that
//! lies in the tool's own folder afterwards. A condition that this machine or user cannot have is skipped by name.

mod changed;
mod content;
mod places;
mod rights;
mod room;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::check::{self, Api};
use crate::server::{Record, Server};
use crate::stage::{Stage, run};
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

/// The tool is asked for `it` in its folder, and leaves the folder as it was. Grep looks in the file, Glob for
/// its name, and Bash prints it or says that it cannot.
fn cell(tool: &'static str, told: Told) -> Cell {
    let path = format!("{tool}/it");
    let arguments = match tool {
        "Read" => json!({"file_path": path}),
        "Write" => json!({"file_path": path, "content": "new\n"}),
        "Edit" => json!({"file_path": path, "old_string": "old", "new_string": "new"}),
        "Glob" => json!({"pattern": "*", "path": tool}),
        "Grep" => json!({"pattern": "old", "path": path, "output_mode": "content"}),
        "Bash" => json!({"command": "cat Bash/it 2>/dev/null || echo refused"}),
        // A program, which takes nothing.
        "probe" => json!({}),
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
        tools=$(echo *)
        for tool in $tools; do
            mv "$tool" before && mkdir "$tool" && mount -t tmpfs -o size=256k none "$tool" || exit
            cp -a before/. "$tool" && rm -r before
        done
        run
        status=$?
        mkdir after && cp -a $tools after
        exit $status"#,
    after: "after",
};

/// No file may grow beyond 64 KiB. The session would be one more file; there is none without a HOME.
const WITH_SHORT_FILES: Launch =
    Launch { script: "export HOME=/dev/null; prlimit --fsize=65536 --pid $$; run", after: "." };

/// Each tool's file is a mount point of its own.
const ON_MOUNTED_FILES: Launch = Launch {
    script: r#"
        for tool in *; do
            mount --bind "$tool/it" "$tool/it" || exit
        done
        run"#,
    after: ".",
};

/// Each tool's folder lies on a filesystem of its own that is read-only.
const READ_ONLY: Launch = Launch {
    script: r#"
        for tool in *; do
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
    let differences = cells.iter().zip(&told).filter(|(cell, told)| cell.told != **told);
    let differences: Vec<String> = differences.map(|(cell, told)| difference(cell, told)).collect();
    assert!(differences.is_empty(), "{test}:\n{}", differences.join("\n"));
    for tool in folders {
        let folder = stage.path(launch.after).join(tool);
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
        let last = cells.iter().rfind(|cell| cell.tool == tool).unwrap();
        assert_eq!(found(&folder), *last.after.as_ref().unwrap_or(before), "{test}: {tool}");
    }
}

/// What a cell says and what the model was told, each as far as can be looked over.
fn difference(cell: &Cell, told: &Told) -> String {
    let start = |text: String| text.chars().take(500).collect::<String>();
    let (arguments, expected) = (start(cell.arguments.to_string()), start(format!("{:?}", cell.told)));
    format!("{} {arguments}\n  told     {}\n  expected {expected}", cell.tool, start(format!("{told:?}")))
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
    let Record { requests, problems, .. } = server.stop();
    assert!(problems.is_empty(), "{problems:?}");
    check::requests(Api::OpenAi, &requests).unwrap();
    let told = results(Api::OpenAi, &requests.last().unwrap().json());
    told.into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

/// Says that a test cannot be run here unless these shell commands can, past the capture of a test's output:
/// `.ci/run` counts these.
fn can(test: &str, script: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", script]).env("cotter", crate::story::program());
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

/// Whether a disk can be mounted where only this test sees it.
pub fn can_mount(test: &str) -> bool {
    can(test, "unshare -rm mount -t tmpfs -o size=64k none /tmp")
}

fn can_limit_files(test: &str) -> bool {
    can(test, "prlimit --fsize=65536 true")
}

/// Numbers that look random and are the same in every run.
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
