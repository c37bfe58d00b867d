//! What a run leaves and what a later one makes of it: recordings that are replayed in another folder and
//! notice what has changed, and the session file with each message before the next request.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::server::{Ending, Reply, Server};
use crate::stage::{
    Ran, Stage, accept, calls, ran, read_request, requests, run, says, says_in_messages, serve,
};
use crate::story::{DEADLINE, finish};

/// A folder in which a recording can be made or replayed.
fn stage(name: &str) -> Stage {
    let stage = Stage::new(name);
    stage.write("notes.txt", "The bridge opened in 1932.\n");
    stage
}

/// Replies that make a run read, write, say where it is, and answer.
fn a_run_with_calls() -> Vec<Reply> {
    vec![
        calls("call_1", "Read", &json!({"file_path": "notes.txt"})),
        calls("call_2", "Write", &json!({"file_path": "year.txt", "content": "1932\n"})),
        calls("call_3", "Bash", &json!({"command": "pwd; echo $TMPDIR; cat year.txt; cat $PWD/no-such"})),
        calls("call_4", "Read", &json!({"file_path": "no-such"})),
        says(&["In ", "1932.\n"]),
    ]
}

/// Records a run of these replies into `recording`; cookies come with each of them.
#[track_caller]
fn record(stage: &Stage, replies: Vec<Reply>) -> Ran {
    let replies = replies.into_iter().map(|reply| reply.header("set-cookie: id=s3cret")).collect();
    let server = Server::start(replies);
    let mut command = stage.ask(server.port(), &["--record", "recording", "-p", "When?"]);
    let ran = run(command.env("OPENAI_API_KEY", "s3cret-key"));
    requests(server);
    ran
}

#[test]
fn a_replay_that_ends_in_a_refusal_ends() {
    let stage = stage("refused");
    fs::create_dir(stage.path("recording")).unwrap();
    stage.write("recording/01.response.http", "HTTP/1.1 503\n\nbusy");
    let expected = "cotter: the API is overloaded or limits the rate (HTTP 503: busy): asking again in 0.0 s (1 of 4)\n\
                    cotter: the recording \"recording\" ends after reply 1 and the run asks for one more: record it anew \
                    with --record\n";
    run(&mut stage.command(&["--replay", "recording", "-p", "When?"])).code(9).stdout("").stderr(expected);
}

/// Takes a recording from one stage to another.
fn copy_recording(from: &Stage, to: &Stage) {
    fs::create_dir(to.path("recording")).unwrap();
    for entry in fs::read_dir(from.path("recording")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.path("recording").join(entry.file_name())).unwrap();
    }
}

/// Replays `recording` with no variable set but PATH and TMPDIR, without which there is no shell.
#[track_caller]
fn replay(stage: &Stage, args: &[&str]) -> Ran {
    let mut command = stage.command(&["--replay", "recording", "-p", "When?"]);
    run(command.args(args).env_remove("HOME"))
}

#[test]
fn a_recording_of_fifos_and_devices_is_refused_at_once() {
    let stage = stage("special");
    fs::create_dir(stage.path("recording")).unwrap();
    let response = stage.path("recording/01.response.http");
    let request = stage.path("recording/01.request.json");
    let refused = |name: &str| {
        let why = "cannot be used: it is not a regular file";
        replay(&stage, &[])
            .code(2)
            .stdout("")
            .stderr(format!("cotter: the recording \"recording/{name}\" {why}\n"));
    };
    let fifo = |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fifo(&response);
    refused("01.response.http");
    fs::remove_file(&response).unwrap();
    stage.write("recording/01.response.http", "HTTP/1.1 200\n\n");
    fifo(&request);
    refused("01.request.json");
    fs::remove_file(&request).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &request).unwrap();
    refused("01.request.json");
}

#[test]
fn a_recorded_run_is_replayed_in_another_folder() {
    let recorded = stage("recorded");
    record(&recorded, a_run_with_calls()).code(0).stdout("In 1932.\n").stderr("");
    for args in [&[][..], &["--replay-strict"]] {
        let replayed = stage("a folder of another name");
        copy_recording(&recorded, &replayed);
        replay(&replayed, args).code(0).stdout("In 1932.\n").stderr("");
        // The tools have run for real.
        assert_eq!(replayed.read("year.txt"), "1932\n");
    }
}

#[test]
fn a_recording_holds_what_was_exchanged_and_nothing_of_the_machine() {
    let stage = stage("contents");
    record(&stage, a_run_with_calls()).code(0);
    let files = stage.all_files();
    let recording: Vec<_> = files
        .iter()
        .filter_map(|(name, bytes)| Some((name.strip_prefix("work/recording/")?, bytes)))
        .collect();
    let names: Vec<&str> = recording.iter().map(|(name, _)| *name).collect();
    let expected: Vec<String> = (1..=5)
        .flat_map(|number| [format!("0{number}.request.json"), format!("0{number}.response.http")])
        .collect();
    assert_eq!(names, expected);
    for (name, bytes) in &recording {
        let text = String::from_utf8_lossy(bytes);
        for secret in ["s3cret", "cookie", "authorization", stage.root().to_str().unwrap()] {
            assert!(
                !text.to_ascii_lowercase().contains(&secret.to_ascii_lowercase()),
                "{name} tells {secret}"
            );
        }
    }
    let body = String::from_utf8(a_run_with_calls()[4].body().to_vec()).unwrap();
    let head = "HTTP/1.1 200\nx-cotter-origin: openai 127.0.0.1\ncontent-type: text/event-stream\n\n";
    assert_eq!(stage.read("recording/05.response.http"), format!("{head}{body}"));
    let request = stage.read("recording/04.request.json");
    let value: Value = serde_json::from_str(&request).unwrap();
    assert_eq!(request, format!("{value:#}\n"));
    let result = &value["messages"].as_array().unwrap().last().unwrap()["content"];
    let expected = "Error: .\n$TMPDIR\n1932\ncat: ./no-such: No such file or directory\n[exit code: 1]";
    assert_eq!(result.as_str().unwrap().trim_end(), expected);
}

#[test]
fn a_recording_is_replayed_with_nothing_set_at_all() {
    let stage = stage("nothing set");
    record(&stage, vec![calls("call_1", "Read", &json!({"file_path": "notes.txt"})), says(&["In 1932."])]);
    let mut command = stage.command(&["--replay", "recording", "-p", "When?"]);
    run(command.env_clear()).code(0).stdout("In 1932.\n").stderr("");
}

#[test]
fn a_changed_file_is_a_mismatch_that_names_the_place_and_both_values() {
    let recorded = stage("unchanged");
    record(&recorded, a_run_with_calls());
    let changed = stage("changed");
    copy_recording(&recorded, &changed);
    changed.write("notes.txt", "The bridge opened in 1933.\n");
    let message = "request 2 differs from \"recording/02.request.json\" at messages[2].content: \
                   recorded …bridge opened in 1932.\\n\", now …bridge opened in 1933.\\n\"";
    replay(&changed, &[]).code(9).stdout("").stderr(format!("cotter: {message}\n"));
    assert!(!changed.path("year.txt").exists());
    let ran = replay(&changed, &["--output-format", "json"]);
    let error = json!({"class": "replay", "code": 9, "message": message});
    assert_eq!(ran.code(9).json()["error"], error);
}

#[test]
fn another_prompt_is_a_mismatch_and_another_system_prompt_only_a_strict_one() {
    let stage = stage("prompts");
    record(&stage, vec![says(&["In 1932."])]);
    let place = "request 1 differs from \"recording/01.request.json\" at";
    run(&mut stage.command(&["--replay", "recording", "-p", "Where?"]))
        .code(9)
        .stdout("")
        .stderr(format!("cotter: {place} messages[0].content: recorded \"When?\", now \"Where?\"\n"));
    let other = ["--system-prompt", "Be brief."];
    replay(&stage, &other).code(0).stdout("In 1932.\n").stderr("");
    let ran = replay(&stage, &[&other[..], &["--replay-strict"]].concat());
    ran.code(9).stdout("");
    let expected = format!("cotter: {place} messages[0].content: recorded \"");
    let at_end = ", now \"Be brief.\"\n";
    assert!(ran.stderr.starts_with(&expected) && ran.stderr.ends_with(at_end), "{}", ran.report());
    fs::remove_file(stage.path("recording/01.request.json")).unwrap();
    replay(&stage, &[]).code(0).stdout("In 1932.\n");
    replay(&stage, &["--replay-strict"]).code(9).stdout("").stderr(
        "cotter: request 1 has no recording to be compared with: \"recording/01.request.json\" is missing\n",
    );
}

#[test]
fn one_request_more_than_recorded_is_a_mismatch() {
    let recorded = stage("whole");
    record(&recorded, a_run_with_calls());
    let shortened = stage("too short");
    copy_recording(&recorded, &shortened);
    for kind in ["request.json", "response.http"] {
        fs::remove_file(shortened.path(&format!("recording/05.{kind}"))).unwrap();
    }
    replay(&shortened, &[]).code(9).stdout("").stderr(
        "cotter: the recording \"recording\" ends after reply 4 and the run asks for one more: record it anew with --record\n",
    );
}

#[test]
fn replies_are_ordered_by_the_value_of_their_numbers() {
    let stage = stage("numbers");
    let read = |id: &str, file: &str| calls(id, "Read", &json!({"file_path": file}));
    for (name, reply) in [
        ("9.response.http", read("call_1", "notes.txt")),
        ("010.response.http", read("call_2", "notes.txt")),
        ("99.response.http", read("call_3", "notes.txt")),
        ("100.response.http", says(&["The last."])),
    ] {
        stage.write(&format!("recording/{name}"), reply.wire());
    }
    let ran = replay(&stage, &["--output-format", "json"]);
    let result = ran.code(0).json();
    assert_eq!((&result["result"], &result["num_turns"]), (&json!("The last."), &json!(4)));
    fs::remove_file(stage.path("recording/010.response.http")).unwrap();
    assert_eq!(replay(&stage, &["--output-format", "json"]).code(0).json()["num_turns"], 3);
}

#[test]
fn more_than_nine_exchanges_are_recorded_and_replayed_in_order() {
    let stage = stage("twelve");
    let mut replies: Vec<Reply> = (1..=11)
        .map(|number| calls(&format!("call_{number}"), "Read", &json!({"file_path": "notes.txt"})))
        .collect();
    replies.push(says(&["In 1932."]));
    record(&stage, replies).code(0);
    assert!(
        stage.path("recording/09.request.json").is_file()
            && stage.path("recording/12.request.json").is_file()
    );
    replay(&stage, &["--replay-strict"]).code(0).stdout("In 1932.\n").stderr("");
}

#[test]
fn a_folder_that_holds_a_recording_is_not_recorded_into() {
    let stage = stage("occupied");
    record(&stage, vec![says(&["In 1932."])]).code(0);
    let before = stage.all_files();
    let server = Server::start(Vec::new());
    run(&mut stage.ask(server.port(), &["--record", "recording", "--no-session-persistence", "-p", "When?"]))
        .code(2)
        .stdout("")
        .stderr("cotter: \"recording\" already holds a recording: remove it or choose another folder for --record\n");
    requests(server);
    assert_eq!(stage.all_files(), before);
    // A request without a response, as a run that was killed leaves it, is part of a recording too.
    fs::remove_file(stage.path("recording/01.response.http")).unwrap();
    let server = Server::start(Vec::new());
    run(&mut stage.ask(server.port(), &["--record", "recording", "-p", "When?"])).code(2).stdout("").stderr(
        "cotter: \"recording\" already holds a recording: remove it or choose another folder for --record\n",
    );
    requests(server);
}

#[test]
fn a_folder_with_other_files_may_hold_a_recording() {
    let stage = stage("other files");
    stage.write("recording/README", "What this is.\n");
    record(&stage, vec![says(&["In 1932."])]).code(0).stdout("In 1932.\n").stderr("");
    assert_eq!(fs::read_dir(stage.path("recording")).unwrap().count(), 3);
    replay(&stage, &["--replay-strict"]).code(0).stdout("In 1932.\n").stderr("");
}

#[test]
fn a_folder_that_cannot_be_recorded_into_is_a_usage_error() {
    let stage = stage("no folder");
    let server = Server::start(Vec::new());
    run(&mut stage.ask(server.port(), &["--record", "notes.txt", "-p", "When?"]))
        .code(2)
        .stdout("")
        .stderr("cotter: cannot record into \"notes.txt\": File exists (os error 17)\n");
    requests(server);
}

#[test]
fn recorded_retries_are_replayed_without_waiting() {
    let recorded = stage("retries");
    let overloaded = Reply::new(503, "application/json", r#"{"error":{"message":"busy"}}"#);
    let answer = says(&["In the year", " 1932."]);
    let replies = vec![
        overloaded.clone().header("retry-after-ms: 1"),
        answer.clone().cut(150, Ending::Close),
        answer.clone(),
    ];
    let ran = record(&recorded, replies);
    ran.code(0).stdout("In the year 1932.\n");
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.report());
    let busy =
        "cotter: the API is overloaded or limits the rate (HTTP 503: busy): asking again in 0.0 s (1 of 4)\n";
    let cut = "cotter: the reply ended before it was complete: asking again in 0.0 s (2 of 4)\n";
    replay(&recorded, &["--replay-strict"])
        .code(0)
        .stdout("In the year 1932.\n")
        .stderr(format!("{busy}{cut}"));
    // By hand: a wait that no test would sit out.
    let by_hand = stage("long wait");
    by_hand.write("recording/01.response.http", overloaded.header("retry-after: 100").wire());
    by_hand.write("recording/02.response.http", answer.wire());
    replay(&by_hand, &[]).code(0).stdout("In the year 1932.\n").stderr(busy);
}

#[test]
fn a_plain_document_and_the_other_api_are_replayed_too() {
    let stage = stage("document");
    let server = Server::start(vec![says_in_messages("In 1932.")]);
    let url = format!("http://127.0.0.1:{}", server.port());
    let mut command = stage.command(&["--record", "recording", "--model", "m", "-p", "When?"]);
    command.env("ANTHROPIC_BASE_URL", &url).env("ANTHROPIC_API_KEY", "s3cret-key");
    run(&mut command).code(0).stdout("In 1932.\n").stderr("");
    requests(server);
    let head = "HTTP/1.1 200\nx-cotter-origin: anthropic 127.0.0.1\ncontent-type: application/json\n\n";
    let body = String::from_utf8(says_in_messages("In 1932.").body().to_vec()).unwrap();
    assert_eq!(stage.read("recording/01.response.http"), format!("{head}{body}"));
    replay(&stage, &["--replay-strict"]).code(0).stdout("In 1932.\n").stderr("");
}

#[test]
fn a_fixed_clock_makes_the_time_a_matter_of_the_recording() {
    let stage = stage("clock");
    let server = Server::start(vec![
        calls("call_1", "get_current_datetime", &json!({"timezone": "UTC"})),
        says(&["Now."]),
    ]);
    let mut command = stage.ask(server.port(), &["--record", "recording", "-p", "When?"]);
    run(command.env("COTTER_NOW", "2026-01-31T12:00:00Z")).code(0).stdout("Now.\n");
    requests(server);
    for (name, value, code) in [
        ("COTTER_NOW", "1769860800", 0),
        ("SOURCE_DATE_EPOCH", "1769860800", 0),
        ("SOURCE_DATE_EPOCH", "1769860801", 9),
    ] {
        let mut command = stage.command(&["--replay", "recording", "--replay-strict", "-p", "When?"]);
        run(command.env(name, value)).code(code);
    }
}

/// All session files below a folder of state, which holds nothing else.
fn sessions(state: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(state.join("cotter/sessions")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[track_caller]
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line is whole: {text:?}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o7777
}

#[test]
fn each_message_is_in_the_session_file_before_the_next_request() {
    let stage = stage("session");
    let replies = [calls("call_1", "Read", &json!({"file_path": "notes.txt"})), says(&["In 1932."])];
    let (arrived, has_arrived) = mpsc::channel();
    let (go, may_go) = mpsc::channel::<()>();
    let (port, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        for reply in replies {
            assert!(read_request(&mut stream).is_some());
            arrived.send(()).unwrap();
            may_go.recv().unwrap();
            stream.write_all(&reply.wire()).unwrap();
        }
    });
    let state = stage.path("state");
    let mut command = stage.ask(port, &["-p", "When?", "--output-format", "json"]);
    let child = command.env("XDG_STATE_HOME", &state).spawn().unwrap();

    let begun = |path: &Path| {
        json!({
            "type": "session", "version": 1, "id": path.file_stem().unwrap().to_str().unwrap(),
            "folder": stage.path("").to_str().unwrap().trim_end_matches('/'),
            "origin": "openai test-model",
        })
    };
    let prompt = json!({"type": "user", "parts": [{"type": "text", "text": "When?"}]});
    let call =
        json!({"type": "call", "id": "call_1", "name": "Read", "arguments": "{\"file_path\":\"notes.txt\"}"});
    let call = json!({"type": "assistant", "parts": [call], "origin": "openai test-model"});
    let text = "The bridge opened in 1932.\n";
    let result = json!({"type": "result", "call_id": "call_1", "text": text, "is_error": false});
    let result = json!({"type": "user", "parts": [result]});
    let answer = json!({"type": "text", "text": "In 1932."});
    let answer = json!({"type": "assistant", "parts": [answer], "origin": "openai test-model"});

    has_arrived.recv_timeout(DEADLINE).unwrap();
    let files = sessions(&state);
    assert_eq!(files.len(), 1);
    assert_eq!(lines(&files[0]), [begun(&files[0]), prompt.clone()]);
    go.send(()).unwrap();
    has_arrived.recv_timeout(DEADLINE).unwrap();
    assert_eq!(lines(&files[0]), [begun(&files[0]), prompt.clone(), call.clone(), result.clone()]);
    go.send(()).unwrap();
    let ran = ran(finish(child, None), format!("{command:?}"));
    server.join().unwrap();
    ran.code(0);
    assert_eq!(lines(&files[0]), [begun(&files[0]), prompt, call, result, answer]);
    assert_eq!(ran.json()["session_id"], files[0].file_stem().unwrap().to_str().unwrap());
    assert_eq!(mode(&files[0]), 0o600);
    assert_eq!(mode(files[0].parent().unwrap()), 0o700);
    assert_eq!(sessions(&state), files);
}

#[test]
fn a_run_that_fails_or_is_killed_leaves_what_was_said() {
    let stage = stage("failed");
    let state = stage.path("state");
    let read = calls("call_1", "Read", &json!({"file_path": "notes.txt"}));
    let refusal = Reply::new(400, "application/json", r#"{"error":{"message":"no"}}"#);
    let server = Server::start(vec![read, refusal]);
    let mut command = stage.ask(server.port(), &["-p", "When?"]);
    run(command.env("XDG_STATE_HOME", &state)).code(4).stdout("");
    requests(server);
    let kinds: Vec<Value> = lines(&sessions(&state)[0]).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(kinds, ["session", "user", "assistant", "user"]);
}

#[test]
fn sessions_are_kept_below_home_unless_told_otherwise() {
    let stage = stage("home");
    let ask = |args: &[&str], state: Option<&str>| {
        let server = Server::start(vec![says(&["In 1932."])]);
        let mut command = stage.ask(server.port(), &["-p", "When?"]);
        if let Some(state) = state {
            command.env("XDG_STATE_HOME", state);
        }
        run(command.args(args)).code(0).stdout("In 1932.\n").stderr("");
        requests(server);
    };
    let home = stage.root().join("home");
    ask(&["--no-session-persistence"], None);
    assert_eq!(fs::read_dir(&home).unwrap().count(), 0);
    ask(&[], None);
    assert_eq!(sessions(&home.join(".local/state")).len(), 1);
    // A relative folder is no place for state, by the specification of the variable.
    ask(&[], Some("relative"));
    assert_eq!(sessions(&home.join(".local/state")).len(), 2);
    assert!(!stage.path("relative").exists());
}

#[test]
fn a_home_that_cannot_be_written_or_is_not_there_is_no_error_and_is_not_made() {
    let stage = stage("homeless");
    let missing = stage.root().join("no-home");
    let a_file = stage.write("a file", "");
    // No folder can be made in /proc, whoever asks.
    for home in
        [Some(missing.to_str().unwrap()), Some(&*a_file), Some("/proc"), Some(""), Some("relative"), None]
    {
        let server = Server::start(vec![says(&["In 1932."])]);
        let mut command = stage.ask(server.port(), &["-p", "When?"]);
        match home {
            Some(home) => command.env("HOME", home),
            None => command.env_remove("HOME"),
        };
        run(&mut command).code(0).stdout("In 1932.\n").stderr("");
        requests(server);
        assert!(!missing.exists() && !stage.path("relative").exists(), "{home:?}");
    }
    let server = Server::start(vec![says(&["In 1932."])]);
    let mut command = stage.ask(server.port(), &["-p", "When?", "--verbose"]);
    let ran = run(command.env("XDG_STATE_HOME", "/proc/state"));
    requests(server);
    let first = ran.stderr.lines().next().unwrap();
    assert!(
        first.starts_with("cotter: no session is kept: \"/proc/state/cotter/sessions/"),
        "{}",
        ran.report()
    );
    assert!(first.ends_with(".jsonl\": No such file or directory (os error 2)"), "{}", ran.report());
}
