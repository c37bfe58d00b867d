//! Conversations that go on: continued, resumed by another API, copied, mended, and refused where the file is
//! in use or is none of ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::check::{self, Api};
use crate::server::{Gate, Reply, Request, Server};
use crate::stage::{Ran, Stage, ran, requests, run};
use crate::story::finish;
use crate::talk::{answer, asks};

mod ends;
mod files;
mod places;

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";
const OTHER: &str = "550e8411-e29b-41d4-a716-446655440000";

/// A run against a server of this API, and the bodies of the requests that it made, each well formed.
#[track_caller]
fn ask(stage: &Stage, api: Api, replies: Vec<Reply>, args: &[&str]) -> (Ran, Vec<Value>) {
    let server = Server::start(replies);
    let ran = run(&mut command(stage, api, server.port(), args));
    (ran, bodies(api, server))
}

#[track_caller]
fn bodies(api: Api, server: Server) -> Vec<Value> {
    let requests = requests(server);
    check::requests(api, &requests).unwrap();
    requests.iter().map(Request::json).collect()
}

fn command(stage: &Stage, api: Api, port: u16, args: &[&str]) -> std::process::Command {
    if api != Api::Anthropic {
        return stage.ask(port, args);
    }
    let mut command = stage.command(args);
    command
        .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
        .env("ANTHROPIC_API_KEY", "test-key");
    command
}

/// One question and one answer.
#[track_caller]
fn says(stage: &Stage, said: &str, args: &[&str]) -> (Ran, Value) {
    let (ran, mut bodies) = ask(stage, Api::OpenAi, vec![answer(Api::OpenAi, said)], args);
    ran.code(0).stdout(format!("{said}\n"));
    (ran, bodies.remove(0))
}

/// What a request to Chat Completions holds behind the system prompt, each as role and text.
fn told(body: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let messages = body["messages"].as_array().unwrap()[1..].iter();
    messages.map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

fn lines_of(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(role, text)| ((*role).to_owned(), (*text).to_owned())).collect()
}

fn folder(stage: &Stage) -> PathBuf {
    stage.root().join("home/.local/state/cotter/sessions")
}

/// The only session there is.
#[track_caller]
fn only(stage: &Stage) -> PathBuf {
    let files: Vec<PathBuf> =
        fs::read_dir(folder(stage)).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn id_of(path: &Path) -> String {
    path.file_stem().unwrap().to_str().unwrap().to_owned()
}

/// The file of a session of this id.
fn file(stage: &Stage, id: &str) -> PathBuf {
    folder(stage).join(format!("{id}.jsonl"))
}

#[track_caller]
fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line is whole: {text:?}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A file that begins as a session of this stage's workspace.
fn begun(stage: &Stage, id: &str, lines: &str) -> String {
    let work = stage.path("");
    let work = work.to_str().unwrap().trim_end_matches('/');
    let first =
        json!({"type": "session", "version": 1, "id": id, "folder": work, "origin": "openai test-model"});
    format!("{first}\n{lines}")
}

/// Puts a file among the sessions.
fn put(stage: &Stage, id: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    fs::create_dir_all(folder(stage)).unwrap();
    fs::write(file(stage, id), bytes).unwrap();
    file(stage, id)
}

const HI: &str = "{\"type\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"hi\"}]}\n";
const HELLO: &str =
    "{\"type\":\"assistant\",\"parts\":[{\"type\":\"text\",\"text\":\"hello\"}],\"origin\":\"openai m\"}\n";

#[test]
fn the_last_session_of_the_folder_goes_on() {
    let stage = Stage::new("continue");
    let (first, _) = says(&stage, "In 1932.", &["-p", "When?"]);
    first.stderr("");
    let path = only(&stage);
    let before = fs::read_to_string(&path).unwrap();
    let (ran, body) = says(&stage, "Sydney.", &["-c", "-p", "Where?"]);
    ran.stderr("");
    assert_eq!(told(&body), lines_of(&[("user", "When?"), ("assistant", "In 1932."), ("user", "Where?")]));
    let after = fs::read_to_string(only(&stage)).unwrap();
    let added = concat!(
        r#"{"type":"user","parts":[{"type":"text","text":"Where?"}]}"#,
        "\n",
        r#"{"type":"assistant","parts":[{"type":"text","text":"Sydney."}],"origin":"openai test-model"}"#,
        "\n",
    );
    assert_eq!(after, format!("{before}{added}"));
    // A third run finds what both said, and says whose it is.
    let server = Server::start(vec![answer(Api::OpenAi, "Yes.")]);
    let json = run(&mut stage.ask(server.port(), &["--continue", "-p", "Sure?", "--output-format", "json"]));
    assert_eq!(told(&requests(server)[0].json()).len(), 5);
    assert_eq!(json.code(0).json()["session_id"], id_of(&path));
    assert_eq!(json.json()["num_turns"], 1, "limits and counts are those of this run");
}

#[test]
fn a_folder_without_a_session_begins_a_new_one_and_says_so() {
    let stage = Stage::new("none yet");
    let notice = "cotter: this folder has no session to continue: a new one begins\n";
    let (ran, _) = says(&stage, "Yes.", &["-c", "-p", "Here?"]);
    ran.stderr(notice);
    // What another folder said is not this one's.
    fs::create_dir(stage.path("other")).unwrap();
    let (ran, body) = says(&stage, "No.", &["-c", "-C", "other", "-p", "There?"]);
    ran.stderr(notice);
    assert_eq!(told(&body), lines_of(&[("user", "There?")]));
    let (ran, body) = says(&stage, "Fine.", &["-c", "-p", "And now?"]);
    ran.stderr("");
    assert_eq!(told(&body)[..2], lines_of(&[("user", "Here?"), ("assistant", "Yes.")]));
}

#[test]
fn a_session_is_resumed_by_its_id_or_the_beginning_of_it() {
    let stage = Stage::new("by id");
    put(&stage, ID, begun(&stage, ID, &format!("{HI}{HELLO}")));
    put(&stage, OTHER, begun(&stage, OTHER, &format!("{HI}{HELLO}")));
    let upper = ID.to_ascii_uppercase();
    let attached = format!("--resume={ID}");
    for args in [&["-r", ID][..], &["--resume", "550e8400"], &[&attached], &["-r", &upper]] {
        let (ran, body) = says(&stage, "Well.", &[args, &["-p", "And?"]].concat());
        ran.stderr("");
        assert_eq!(told(&body)[..2], lines_of(&[("user", "hi"), ("assistant", "hello")]), "{args:?}");
    }
    assert_eq!(lines(&file(&stage, ID)).len(), 3 + 4 * 2);
    assert_eq!(lines(&file(&stage, OTHER)).len(), 3);
    let refused = |args: &[&str], expected: &str| {
        let mut command = stage.ask(1, &[args, &["-p", "And?"]].concat());
        run(&mut command).code(2).stdout("").stderr(format!("cotter: {expected}\n"));
    };
    refused(&["-r", "550e84"], "2 sessions have an id that begins with 550e84: give more of it");
    // The one that was used last comes first.
    let changed = |id: &str, seconds: u64| {
        let session = fs::File::options().append(true).open(file(&stage, id)).unwrap();
        session.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
        session.metadata().unwrap().len().div_ceil(1000)
    };
    let (size, other) = (changed(ID, 1_700_000_100), changed(OTHER, 1_700_000_000));
    let list = format!(
        "; the last ones of this folder:\n  {ID} 2023-11-14 22:15 UTC, {size} kB: hi\n  \
         {OTHER} 2023-11-14 22:13 UTC, {other} kB: hi"
    );
    refused(&["-r", "0000"], &format!("there is no session \"0000\"{list}"));
    refused(&["-r", "550"], &format!("there is no session \"550\"{list}"));
    refused(&["-r", "../../x"], &format!("there is no session \"../../x\"{list}"));
    refused(&["--resume", "--verbose"], &format!("-r needs the id of a session{list}"));
    let empty = Stage::new("no sessions");
    run(&mut empty.ask(1, &["-p", "And?", "-r"]))
        .code(2)
        .stderr("cotter: -r needs the id of a session: this folder has none yet\n");
}

#[test]
fn a_session_goes_on_with_the_other_api_and_back_and_each_gets_its_own_thinking() {
    let stage = Stage::new("apis");
    stage.write("notes.txt", "1932\n");
    let thinking = json!({"type": "thinking", "thinking": "A file may tell.", "signature": "c2ln/+=="});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": "{\"file_path\":\"notes.txt\"}"});
    let first = crate::talk::messages(&[thinking.clone(), call], &json!({"stop_reason": "tool_use"}));
    let (ran, bodies) =
        ask(&stage, Api::Anthropic, vec![first, answer(Api::Anthropic, "In 1932.")], &["-p", "When?"]);
    ran.code(0).stderr("");
    let called = bodies[1]["messages"][1].clone();
    assert_eq!(called["content"][0], thinking);

    let read = asks(Api::OpenAi, "", &[("call_1", "Read", "{\"file_path\":\"notes.txt\"}")]);
    let (ran, bodies) =
        ask(&stage, Api::OpenAi, vec![read, answer(Api::OpenAi, "Yes.")], &["-c", "-p", "Sure?"]);
    ran.code(0).stdout("Yes.\n").stderr("");
    let function = json!({"name": "Read", "arguments": "{\"file_path\":\"notes.txt\"}"});
    let as_chat = json!([
        {"role": "user", "content": "When?"},
        {"role": "assistant", "content": null,
            "tool_calls": [{"id": "toolu_1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "1932\n"},
        {"role": "assistant", "content": "In 1932."},
        {"role": "user", "content": "Sure?"},
    ]);
    assert_eq!(bodies[0]["messages"].as_array().unwrap()[1..], *as_chat.as_array().unwrap());

    let (ran, bodies) =
        ask(&stage, Api::Anthropic, vec![answer(Api::Anthropic, "Bye.")], &["-c", "-p", "Bye"]);
    ran.code(0).stdout("Bye.\n").stderr("");
    let messages = bodies[0]["messages"].as_array().unwrap();
    assert_eq!(messages[1], called, "the thinking comes back as it was");
    let kinds: Vec<Vec<&str>> = messages
        .iter()
        .map(|message| {
            message["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap())
        })
        .map(Iterator::collect)
        .collect();
    let expected: [&[&str]; 9] = [
        &["text"],
        &["thinking", "tool_use"],
        &["tool_result"],
        &["text"],
        &["text"],
        &["tool_use"],
        &["tool_result"],
        &["text"],
        &["text"],
    ];
    assert_eq!(kinds, expected);
    only(&stage);
}

#[test]
fn what_a_server_adds_to_its_calls_goes_back_to_it_alone() {
    let stage = Stage::new("extra");
    let call = json!({"type": "call", "id": "a", "name": "Read", "arguments": "{}",
        "extra": "\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}"});
    let call = json!({"type": "assistant", "parts": [call], "origin": "openai test-model"});
    let result =
        json!({"type": "user", "parts": [{"type": "result", "call_id": "a", "text": "x", "is_error": true}]});
    put(&stage, ID, begun(&stage, ID, &format!("{HI}{call}\n{result}\n")));
    let (_, bodies) =
        ask(&stage, Api::Anthropic, vec![answer(Api::Anthropic, "No.")], &["-r", ID, "-p", "And?"]);
    assert_eq!(
        bodies[0]["messages"][1]["content"],
        json!([{"type": "tool_use", "id": "a", "name": "Read", "input": {}}])
    );
    let (_, body) = says(&stage, "Yes.", &["-r", ID, "-p", "And?"]);
    let expected = json!({"google": {"thought_signature": "s"}});
    assert_eq!(body["messages"][2]["tool_calls"][0]["extra_content"], expected);
}

#[test]
fn images_are_shown_again() {
    let stage = Stage::new("images");
    stage.write("bridge.png", crate::images::PNG);
    let read = asks(Api::Anthropic, "", &[("call_1", "Read", "{\"file_path\":\"bridge.png\"}")]);
    let (ran, first) = ask(
        &stage,
        Api::Anthropic,
        vec![read, answer(Api::Anthropic, "A bridge.")],
        &["-p", "What? @bridge.png"],
    );
    ran.code(0);
    let (ran, second) =
        ask(&stage, Api::Anthropic, vec![answer(Api::Anthropic, "Yes.")], &["-c", "-p", "Sure?"]);
    ran.code(0).stderr("");
    let shown = |body: &Value| {
        let said = body["messages"][0]["content"].as_array().unwrap().iter();
        let said: Vec<Value> = said.filter(|block| block["type"] == "image").cloned().collect();
        (said, body["messages"][2]["content"][0]["content"].clone())
    };
    let (said, read) = shown(&second[0]);
    assert_eq!((said.len(), &read[1]["type"]), (1, &json!("image")));
    let (said, first) = (said[0]["source"].clone(), shown(&first[1]));
    assert_eq!((said, read), (first.0[0]["source"].clone(), first.1));
}

#[test]
fn a_fork_goes_on_with_a_copy_and_leaves_the_other_as_it_is() {
    let stage = Stage::new("fork");
    // A line of a kind that is not known is copied too, one that breaks off is not.
    let said = format!("{HI}{HELLO}{{\"type\":\"note\",\"text\":\"x\"}}\n");
    let path = put(&stage, ID, begun(&stage, ID, &format!("{said}{{\"type\":\"us")));
    let before = fs::read(&path).unwrap();
    let notices = "cotter: the last line of the session's file broke off: it is left out\n\
        cotter: left out of what is sent, though the session's file keeps it: a line of the type \"note\" (1)\n";
    let (ran, body) =
        says(&stage, "Well.", &["-r", ID, "--fork-session", "--session-id", OTHER, "-p", "And?"]);
    ran.stderr(notices);
    assert_eq!(told(&body), lines_of(&[("user", "hi"), ("assistant", "hello"), ("user", "And?")]));
    assert_eq!(fs::read(&path).unwrap(), before);
    let (first, rest) = (&lines(&file(&stage, OTHER))[0], fs::read_to_string(file(&stage, OTHER)).unwrap());
    assert_eq!((&first["id"], &first["forked_from"]), (&json!(OTHER), &json!(ID)));
    let (_, rest) = rest.split_once('\n').unwrap();
    let (copied, added) = rest.split_at(said.len());
    assert_eq!((copied, added.lines().count()), (&*said, 2));
    // Without a name it gets one by lot, which the result tells.
    let server = Server::start(vec![answer(Api::OpenAi, "Well.")]);
    let args = ["-r", OTHER, "--fork-session", "-p", "And?", "--output-format", "json"];
    let third =
        run(&mut stage.ask(server.port(), &args)).code(0).json()["session_id"].as_str().unwrap().to_owned();
    assert_eq!(told(&requests(server)[0].json()).len(), 5);
    let names: Vec<PathBuf> =
        fs::read_dir(folder(&stage)).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!((names.len(), names.contains(&file(&stage, &third))), (3, true), "{names:?}");
    assert_eq!(lines(&file(&stage, &third))[0]["forked_from"], OTHER);
}

#[test]
fn a_session_is_kept_under_the_id_that_is_named_and_only_once() {
    let stage = Stage::new("named");
    let (ran, _) = says(&stage, "Yes.", &["--session-id", &ID.to_ascii_uppercase(), "-p", "Here?"]);
    ran.stderr("");
    let before = fs::read(file(&stage, ID)).unwrap();
    let refused = |args: &[&str], expected: &str| {
        run(&mut stage.ask(1, args)).code(2).stdout("").stderr(format!("cotter: {expected}\n"));
    };
    let taken = format!("there is a session {ID} already: go on with it by -r {ID}, or choose another id");
    refused(&["--session-id", ID, "-p", "Here?"], &taken);
    refused(&["-c", "--fork-session", "--session-id", ID, "-p", "Here?"], &taken);
    let not_new = "--session-id names a new session: with --continue or --resume it needs --fork-session";
    refused(&["--session-id", OTHER, "-c", "-p", "x"], not_new);
    refused(&["--session-id", OTHER, "-r", ID, "-p", "x"], not_new);
    refused(
        &["--session-id", "mine", "-p", "x"],
        "--session-id is a UUID (hexadecimal digits, 8-4-4-4-12), not \"mine\"",
    );
    assert_eq!(fs::read(only(&stage)).unwrap(), before);
}

#[test]
fn what_only_reads_leaves_the_file_as_it_is() {
    let stage = Stage::new("reads");
    let path = put(&stage, ID, begun(&stage, ID, &format!("{HI}{HELLO}{{\"ty")));
    let before = fs::read(&path).unwrap();
    let expected = lines_of(&[("user", "hi"), ("assistant", "hello"), ("user", "And?")]);
    let (_, body) = says(&stage, "Well.", &["-r", ID, "--no-session-persistence", "-p", "And?"]);
    assert_eq!(told(&body), expected);
    let (_, body) = says(&stage, "Well.", &["-c", "--single-step", "-p", "And?"]);
    assert_eq!(told(&body), expected);
    let dry = run(&mut stage.ask(1, &["-c", "--dry-run", "-p", "And?"]));
    assert_eq!(told(&dry.code(0).json()), expected);
    // A run that ends before there is anything to add has not touched it either.
    run(&mut stage.ask(1, &["-c", "-p", "", "-n"])).code(2);
    assert_eq!(fs::read(only(&stage)).unwrap(), before);
    let server = Server::start(vec![answer(Api::OpenAi, "Well.")]);
    let args = ["-r", ID, "--no-session-persistence", "-p", "And?", "--output-format", "json"];
    assert_eq!(run(&mut stage.ask(server.port(), &args)).code(0).json()["session_id"], ID);
    requests(server);
}

#[test]
fn a_session_in_use_is_refused_before_anything_is_asked() {
    let stage = Stage::new("busy");
    put(&stage, ID, begun(&stage, ID, &format!("{HI}{HELLO}")));
    let gate = Arc::new(Gate::default());
    let server = Server::start(vec![answer(Api::OpenAi, "First.").held_by(&gate)]);
    let mut first = stage.ask(server.port(), &["-c", "-p", "One"]);
    let child = first.spawn().unwrap();
    gate.wait_until_asked();
    let busy = format!(
        "cotter: the session {ID} is in use by another run: wait for its end, or go on with a copy of it (--fork-session)\n"
    );
    for args in [&["-c"][..], &["-r", ID]] {
        run(&mut stage.ask(1, &[args, &["-p", "Two"]].concat())).code(2).stdout("").stderr(&busy);
    }
    // A copy takes what was said up to here.
    let (ran, body) = says(&stage, "Copied.", &["-r", ID, "--fork-session", "-p", "Two"]);
    ran.stderr("");
    assert_eq!(told(&body)[2..], lines_of(&[("user", "One\n\nTwo")]));
    gate.open();
    ran_of(child, &first).code(0).stdout("First.\n");
    requests(server);
    let (_, body) = says(&stage, "Second.", &["-r", ID, "-p", "Two"]);
    assert_eq!(told(&body)[2..], lines_of(&[("user", "One"), ("assistant", "First."), ("user", "Two")]));
}

#[track_caller]
fn ran_of(child: std::process::Child, command: &std::process::Command) -> Ran {
    ran(finish(child, None), format!("{command:?}"))
}

#[test]
fn of_many_runs_at_once_on_one_session_each_either_adds_whole_lines_or_is_refused() {
    let stage = Stage::new("many");
    put(&stage, ID, begun(&stage, ID, &format!("{HI}{HELLO}")));
    let replies = 12;
    let server = Server::start((0..replies).map(|_| answer(Api::OpenAi, "Yes.")).collect());
    let mut commands: Vec<_> = (0..replies).map(|_| stage.ask(server.port(), &["-c", "-p", "One"])).collect();
    let children: Vec<_> = commands.iter_mut().map(|command| command.spawn().unwrap()).collect();
    let codes: Vec<i32> = children
        .into_iter()
        .zip(&commands)
        .map(|(child, command)| ran_of(child, command).code.unwrap())
        .collect();
    let answered = codes.iter().filter(|code| **code == 0).count();
    assert!(codes.iter().all(|code| [0, 2].contains(code)) && answered > 0, "{codes:?}");
    assert_eq!(server.stop().requests.len(), answered);
    assert_eq!(lines(&only(&stage)).len(), 3 + 2 * answered);
}
