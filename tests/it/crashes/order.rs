//! What a file that tools write goes through, system call by system call: its content is on the disk before it has a
//! name, its name before the session is, and whichever call a kill meets, the file is whole.
//!
//! strace tells the calls and kills at them; where it is not installed or may not trace, these tests are skipped.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::check::Api;
use crate::containment::skipped;
use crate::server::{Reply, Request, Server};
use crate::stage::{Ran, Stage, requests, run};
use crate::talk::{answer, asks, results};

const NAMING: &str = "linkat,?link,?rename,?renameat,?renameat2";

fn can_trace(test: &str) -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", crate::story::program(), "--version"]);
    let can = strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let can = can.is_ok_and(|status| status.success());
    if !can {
        skipped(test, "there is no strace that may trace");
    }
    can
}

/// A run of these calls, one after the other, under strace with these arguments.
#[track_caller]
fn traced(stage: &Stage, args: &str, calls: &[(&str, serde_json::Value)]) -> (Ran, Vec<Request>) {
    let asked = calls.iter().enumerate().map(|(number, (tool, arguments))| {
        asks(Api::OpenAi, "", &[(&format!("call_{number}"), tool, &arguments.to_string())])
    });
    let replies: Vec<Reply> = asked.chain([answer(Api::OpenAi, "Done.")]).collect();
    let server = Server::start(replies);
    let script = format!(
        r#"exec strace -f -y -qq -o ../trace {args} -- "$cotter" --base-url "$url" --model test-model -p Go"#
    );
    let ran = run(&mut stage.shell(server.port(), &script));
    (ran, requests(server))
}

/// A line of the trace in words; none if it is of no interest here.
fn step(line: &str) -> Option<String> {
    // What another process did in between cuts a line in two, of which the first names the call.
    let (_, call) = line.split_once(' ')?;
    let (name, arguments) = call.trim_start().split_once('(')?;
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let texts: Vec<String> = arguments.split('"').skip(1).step_by(2).map(last).collect();
    let open =
        || arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>')).map(|(path, _)| last(path));
    match name {
        "openat" | "open" => arguments.contains("O_TMPFILE").then(|| "new".to_owned()),
        "fsync" | "fdatasync" if open()?.starts_with('#') => Some("sync new".to_owned()),
        "fsync" | "fdatasync" if open()?.ends_with(".jsonl") => Some("sync the session".to_owned()),
        "fsync" | "fdatasync" => Some(format!("sync {}", open()?)),
        "linkat" | "link" => Some(format!("name it {}", texts.last()?)),
        "rename" | "renameat" | "renameat2" => {
            Some(format!("rename {} to {}", texts.first()?, texts.last()?))
        }
        _ => None,
    }
}

#[test]
fn a_file_is_on_the_disk_before_it_has_a_name_and_its_name_before_the_session_is() {
    let test = "a_file_is_on_the_disk_before_it_has_a_name_and_its_name_before_the_session_is";
    if !can_trace(test) {
        return;
    }
    let stage = Stage::new("order");
    let calls = [
        ("Write", json!({"file_path": "deep/it", "content": "one\n"})),
        ("Write", json!({"file_path": "deep/it", "content": "two\n"})),
        ("Edit", json!({"file_path": "deep/it", "old_string": "two", "new_string": "three"})),
    ];
    let args = format!("-e trace=openat,?open,fsync,fdatasync,{NAMING}");
    traced(&stage, &args, &calls).0.code(0).stdout("Done.\n");
    let trace = fs::read_to_string(stage.root().join("trace")).unwrap();
    if trace.lines().any(|line| line.contains("openat(") && line.contains(", 0x")) {
        // Cotter keeps its user out of its memory, where the names are, and so strace unless root runs it.
        return skipped(test, "strace may not look into cotter here");
    }
    let steps: Vec<String> = trace.lines().filter_map(step).collect();
    if !steps.contains(&"new".to_owned()) {
        return skipped(test, "there are no files without a name here");
    }
    let replaced = ["new", "sync new", "name it .cotter-it-0.tmp", "rename .cotter-it-0.tmp to it"];
    let created = ["new", "sync new", "name it it"];
    let end = ["sync work", "sync deep", "sync the session", "sync sessions"];
    assert_eq!(steps, [&created[..], &replaced, &replaced, &end].concat(), "{trace}");
}

/// Behind the content's last byte: a kill before that is met in the story of a long write.
#[test]
fn a_kill_before_either_naming_leaves_the_old_file_and_the_next_write_leaves_nothing_else() {
    let test = "a_kill_before_either_naming_leaves_the_old_file_and_the_next_write_leaves_nothing_else";
    if !can_trace(test) {
        return;
    }
    let edit = ("Edit", json!({"file_path": "it", "old_string": "old", "new_string": "new"}));
    let read = ("Read", json!({"file_path": "it"}));
    for call in ["linkat", "?rename,?renameat,?renameat2"] {
        let stage = Stage::new("naming");
        stage.write("it", "old\n");
        let args = format!("-e trace={call} -e inject={call}:signal=SIGKILL:when=1");
        let calls = [edit.clone(), read.clone(), edit.clone()];
        let (ran, requests) = traced(&stage, &args, &calls[..2]);
        ran.code(0).stdout("Done.\n");
        let told = results(Api::OpenAi, &requests[2].json());
        assert!(told[0].1.starts_with("Edit did not finish: the process that runs tools "), "{told:?}");
        assert_eq!(told[1].1, "old\n", "{call}");
        let (ran, _) = traced(&stage, "-e trace=none", &calls[2..]);
        ran.code(0).stdout("Done.\n");
        let names: Vec<_> =
            fs::read_dir(stage.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!((names, stage.read("it")), (vec!["it".into()], "new\n".to_owned()), "{call}");
    }
}
