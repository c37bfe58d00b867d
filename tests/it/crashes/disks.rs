//! Disks that are full or read-only in the middle of a run: what was kept stays whole, the exit code and the message
//! say what is missing, and the run is gone on with once there is room.
//!
//! The disks are mounted where only the run sees them. Tools are not contained here, so that a command can fill a disk
//! or mount it anew between two steps of the run. A user may change but the mount (`bind`), not the disk below it.
//! Linux makes none read-only on which a file is open for writing: for a session and a recording that are being
//! written the full disk stands for both.

use serde_json::{Value, json};

use crate::check::{self, Api};
use crate::files::can_mount;
use crate::server::{Reply, Request, Server};
use crate::stage::{Stage, requests, run};
use crate::talk::{answer, asks, results};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";
const FULL: &str = "No space left on device (os error 28)";

/// Runs a script in which `disk` is a disk of 64 KiB and `run` is cotter. Gives what it printed, each run's streams
/// and code one after the other, and the bodies of the requests.
#[track_caller]
fn on_a_disk(stage: &Stage, replies: Vec<Reply>, script: &str) -> (String, Vec<Value>) {
    let server = Server::start(replies);
    let script = format!(
        r#"mkdir disk && mount -t tmpfs -o size=64k none disk || exit
        run() {{
            "$cotter" --base-url "$url" --model test-model --dangerously-skip-permissions "$@" 2>&1
            echo "code $?"
        }}
        {script}"#
    );
    let ran = run(&mut stage.shell(server.port(), &format!("exec unshare -rm sh -c '{script}'")));
    let told = ran.code(0).stderr("").text().to_owned();
    let requests = requests(server);
    for request in &requests {
        check::body(Api::OpenAi, &request.body).unwrap();
    }
    (told, requests.iter().map(Request::json).collect())
}

fn bash(id: &str, command: &str) -> Reply {
    asks(Api::OpenAi, "", &[(id, "Bash", &json!({"command": command}).to_string())])
}

fn done() -> Reply {
    answer(Api::OpenAi, "Done.")
}

/// A command that leaves no room.
const FILL: &str = "head -c 100000 /dev/zero >disk/fill 2>/dev/null";

#[test]
fn on_a_full_disk_a_session_is_kept_as_far_as_it_goes_and_goes_on_once_there_is_room() {
    let test = "on_a_full_disk_a_session_is_kept_as_far_as_it_goes_and_goes_on_once_there_is_room";
    if !can_mount(test) {
        return;
    }
    let stage = Stage::new("full session");
    // The result is longer than the rest of the file's last page.
    let fill = bash("call_1", &format!("{FILL}; head -c 20000 /dev/zero | tr \"\\0\" x"));
    let script = format!(
        "export XDG_STATE_HOME=$PWD/disk
        run --session-id {ID} -p Go
        tail -c 1 disk/cotter/sessions/*
        run -r {ID} -p $(head -c 20000 /dev/zero | base64 -w0)
        rm disk/fill
        run -r {ID} -p Again
        cp disk/cotter/sessions/* kept"
    );
    let (told, bodies) = on_a_disk(&stage, vec![fill, done()], &script);
    let lost = format!(
        "cotter: cannot write the session \"{}/cotter/sessions/{ID}.jsonl\": {FULL}: make room, or pass \
         --no-session-persistence\ncode 1\n",
        stage.path("disk").display()
    );
    let torn = "cotter: the last line of the session's file broke off: it is left out\n";
    // While there is no room, what is asked next is not kept either, and nothing is asked of the model.
    assert_eq!(told, format!("{lost}x{torn}{lost}{torn}Done.\ncode 0\n"));
    assert_eq!(bodies.len(), 2);
    let results = results(Api::OpenAi, &bodies[1]);
    assert!(results.len() == 1 && results[0].1.starts_with("interrupted: "), "{results:?}");
    let kept = stage.read("kept");
    let lines: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(kinds, ["session", "user", "assistant", "user", "assistant"]);
}

#[test]
fn on_a_disk_that_is_full_from_the_beginning_no_session_is_kept_and_a_line_says_so() {
    let test = "on_a_disk_that_is_full_from_the_beginning_no_session_is_kept_and_a_line_says_so";
    if !can_mount(test) {
        return;
    }
    let stage = Stage::new("full from the beginning");
    let script = format!("{FILL}\nexport XDG_STATE_HOME=$PWD/disk\nrun -p Go");
    let (told, _) = on_a_disk(&stage, vec![done()], &script);
    let kept = told.strip_prefix("cotter: no session is kept: \"").unwrap_or_else(|| panic!("{told}"));
    assert!(kept.ends_with(&format!("{FULL}\nDone.\ncode 0\n")), "{told}");
}

#[test]
fn where_nothing_may_be_written_a_copy_of_a_session_is_refused_with_the_way_to_go_on() {
    let test = "where_nothing_may_be_written_a_copy_of_a_session_is_refused_with_the_way_to_go_on";
    if !can_mount(test) {
        return;
    }
    const COPY: &str = "550e8411-e29b-41d4-a716-446655440000";
    let stage = Stage::new("read-only sessions");
    let script = format!(
        "export XDG_STATE_HOME=$PWD/disk
        run --session-id {ID} -p Go
        mount -o remount,bind,ro disk
        run -r {ID} --fork-session --session-id {COPY} -p Again
        run -r {ID} --fork-session --no-session-persistence -p Again"
    );
    let (told, bodies) = on_a_disk(&stage, vec![done(), done()], &script);
    let path = stage.path("disk").join(format!("cotter/sessions/{COPY}.jsonl"));
    let refused = format!(
        "cotter: cannot make the session \"{}\": Read-only file system (os error 30): pass --no-session-persistence to \
         go on without a copy\n",
        path.display()
    );
    assert_eq!(told, format!("Done.\ncode 0\n{refused}code 2\nDone.\ncode 0\n"));
    assert_eq!(bodies.len(), 2);
}

#[test]
fn on_a_full_disk_a_recording_keeps_whole_exchanges_and_the_session_goes_on() {
    let test = "on_a_full_disk_a_recording_keeps_whole_exchanges_and_the_session_goes_on";
    if !can_mount(test) {
        return;
    }
    let long = "x".repeat(100_000);
    // The request has no room, or the body of its response has not.
    for (command, second, file) in
        [(FILL, done(), "02.request.json"), ("echo a", answer(Api::OpenAi, &long), "02.response.http")]
    {
        let stage = Stage::new("full recording");
        let script = format!(
            "run --record disk/recording --session-id {ID} -p Go
            ls disk/recording
            rm -f disk/fill
            run --record disk/other -r {ID} -p Again
            rm -r disk/other
            run --replay disk/recording --no-session-persistence -p Go"
        );
        let (told, bodies) = on_a_disk(&stage, vec![bash("call_1", command), second, done()], &script);
        let expected = format!(
            "cotter: cannot write the recording \"disk/recording/{file}\": {FULL}: make room, or leave --record out\n\
             cotter: what was said is kept: cotter -r {ID} goes on with it\ncode 1\n\
             01.request.json\n01.response.http\nDone.\ncode 0\n\
             cotter: the recording \"disk/recording\" ends after reply 1 and the run asks for one more: record it anew \
             with --record\ncode 9\n"
        );
        assert_eq!(told, expected);
        // The call that had run is not run again.
        assert_eq!(results(Api::OpenAi, &bodies[2]).len(), 1);
    }
}

#[test]
fn on_a_full_disk_the_file_of_an_answer_is_whole_and_old() {
    if !can_mount("on_a_full_disk_the_file_of_an_answer_is_whole_and_old") {
        return;
    }
    let stage = Stage::new("full answer");
    let script = "echo old >disk/a.txt
        run -o disk/a.txt --no-session-persistence -p Go
        ls -A disk
        cat disk/a.txt";
    let (told, _) = on_a_disk(&stage, vec![bash("call_1", FILL), done()], script);
    let expected = format!(
        "Done.\ncotter: cannot write \"disk/a.txt\": {FULL}; its old content is untouched: the answer is on standard \
         output\ncode 1\na.txt\nfill\nold\n"
    );
    assert_eq!(told, expected);
}

#[test]
fn on_a_disk_that_turns_read_only_what_is_there_stays_and_everything_says_so() {
    if !can_mount("on_a_disk_that_turns_read_only_what_is_there_stays_and_everything_says_so") {
        return;
    }
    let stage = Stage::new("read-only");
    let remount = bash("call_1", "mount -o remount,bind,ro disk && echo read-only");
    let write = ("call_2", "Write", r#"{"file_path":"disk/new.txt","content":"new\n"}"#);
    let replace = ("call_3", "Write", r#"{"file_path":"disk/a.txt","content":"new\n"}"#);
    let edit = ("call_4", "Edit", r#"{"file_path":"disk/a.txt","old_string":"old","new_string":"new"}"#);
    let replies = vec![remount, asks(Api::OpenAi, "", &[write, replace, edit]), done(), done()];
    let script = format!(
        "echo old >disk/a.txt
        mkdir -p disk/state/cotter
        run -o disk/a.txt --session-id {ID} -p Go
        ls disk
        cat disk/a.txt
        mount -o remount,bind,rw disk
        mv ~/.local/state/cotter/sessions disk/state/cotter
        mount -o remount,bind,ro disk
        export XDG_STATE_HOME=$PWD/disk/state
        run -r {ID} -p Again
        run --record disk/recording -p Again
        run -r {ID} --no-session-persistence -p Again"
    );
    let (told, bodies) = on_a_disk(&stage, replies, &script);
    let error = "Read-only file system (os error 30)";
    let expected = format!(
        "Done.\ncotter: cannot write \"disk/a.txt\": {error}: the answer is on standard output\n\
         cotter: what was said is kept: cotter -r {ID} goes on with it\ncode 1\na.txt\nstate\nold\n\
         cotter: the session \"{}/state/cotter/sessions/{ID}.jsonl\" cannot be used: {error}: pass \
         --no-session-persistence to go on without adding to it\ncode 2\n\
         cotter: cannot record into \"disk/recording\": {error}\ncode 2\nDone.\ncode 0\n",
        stage.path("disk").display()
    );
    assert_eq!(told, expected);
    let failed = |id: &str, file: &str| (id.to_owned(), format!("cannot write {file}: {error}"), true);
    let expected = [
        ("call_1".to_owned(), "read-only".to_owned(), false),
        failed("call_2", "disk/new.txt"),
        failed("call_3", "disk/a.txt"),
        failed("call_4", "disk/a.txt"),
    ];
    assert_eq!(results(Api::OpenAi, &bodies[2]), expected);
}
