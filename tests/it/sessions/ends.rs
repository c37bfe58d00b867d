//! Runs that fail or are killed, and how they are gone on with.

use std::time::{Duration, Instant};

use super::*;

const REFUSAL: &str = r#"{"error":{"message":"no"}}"#;

#[test]
fn a_run_that_fails_after_a_reply_names_the_way_on() {
    let stage = Stage::new("way on");
    stage.write("notes.txt", "1932\n");
    let read = || asks(Api::OpenAi, "", &[("call_1", "Read", "{\"file_path\":\"notes.txt\"}")]);
    let failing = || vec![read(), Reply::new(400, "application/json", REFUSAL)];
    let (ran, _) = ask(&stage, Api::OpenAi, failing(), &["-p", "When?"]);
    ran.code(4);
    assert_eq!(ran.way_on, Some(id_of(&only(&stage))));
    let (ran, body) = says(&stage, "In 1932.", &["-r", &ran.way_on.unwrap(), "-p", "Go on"]);
    ran.stderr("");
    let expected = lines_of(&[("user", "When?"), ("assistant", ""), ("tool", "1932\n"), ("user", "Go on")]);
    assert_eq!(told(&body), expected);
    // Not where there is nothing new, nothing is kept, or nothing is to be said.
    let at_once = vec![Reply::new(400, "application/json", REFUSAL)];
    assert_eq!(ask(&stage, Api::OpenAi, at_once, &["-p", "When?"]).0.code(4).way_on, None);
    for flag in ["-q", "--no-session-persistence"] {
        assert_eq!(ask(&stage, Api::OpenAi, failing(), &[flag, "-p", "When?"]).0.code(4).way_on, None);
    }
}

#[track_caller]
fn wait_for(stage: &Stage, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !stage.path(name).exists() {
        assert!(Instant::now() < deadline, "{name} was never there");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Of three calls the first has its result, the second is running and the third was not reached.
#[test]
fn a_run_that_is_killed_in_a_call_goes_on_and_knows_which_calls_were_interrupted() {
    let stage = Stage::new("killed");
    stage.write("notes.txt", "1932\n");
    let read = ("call_1", "Read", "{\"file_path\":\"notes.txt\"}");
    let bash = ("call_2", "Bash", "{\"command\":\"touch begun; sleep 1000\"}");
    let third = ("call_3", "Read", "{\"file_path\":\"notes.txt\"}");
    let server = Server::start(vec![asks(Api::Anthropic, "", &[read, bash, third])]);
    let mut first = command(&stage, Api::Anthropic, server.port(), &["-p", "When?"]);
    let mut child = first.spawn().unwrap();
    wait_for(&stage, "begun");
    child.kill().unwrap();
    assert_eq!(ran_of(child, &first).signal, Some(9));
    bodies(Api::Anthropic, server);
    let path = only(&stage);
    let kinds: Vec<Value> = lines(&path).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(kinds, ["session", "user", "assistant", "user"]);

    let (ran, bodies) =
        ask(&stage, Api::Anthropic, vec![answer(Api::Anthropic, "In 1932.")], &["-c", "-p", "Go on"]);
    ran.code(0).stdout("In 1932.\n").stderr("");
    let interrupted = "interrupted: the run ended before the result of this call was kept. It may have run in part, \
                       wholly or not at all: look before you make it again";
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": interrupted, "is_error": true});
    let expected = json!([
        {"type": "tool_result", "tool_use_id": "call_1", "content": "1932\n"},
        result("call_2"), result("call_3"),
        {"type": "text", "text": "Go on", "cache_control": {"type": "ephemeral"}},
    ]);
    assert_eq!(bodies[0]["messages"][2]["content"], expected);
    // It is kept with what followed, so that it is read the same way ever after.
    let kinds: Vec<Value> = lines(&path).iter().map(|line| line["type"].clone()).collect();
    assert_eq!(kinds, ["session", "user", "assistant", "user", "user", "assistant"]);
    let (_, again) = ask(&stage, Api::Anthropic, vec![answer(Api::Anthropic, "Bye.")], &["-c", "-p", "Bye"]);
    let content = again[0]["messages"][2]["content"].as_array().unwrap();
    assert_eq!(content[..3], expected.as_array().unwrap()[..3]);
}

#[test]
fn a_run_that_is_killed_in_its_first_call_has_kept_what_was_asked_of_it() {
    let stage = Stage::new("first call");
    let bash = ("call_1", "Bash", "{\"command\":\"touch begun; sleep 1000\"}");
    let server = Server::start(vec![asks(Api::OpenAi, "", &[bash])]);
    let mut first = stage.ask(server.port(), &["-p", "When?"]);
    let mut child = first.spawn().unwrap();
    wait_for(&stage, "begun");
    child.kill().unwrap();
    assert_eq!(ran_of(child, &first).signal, Some(9));
    bodies(Api::OpenAi, server);
    let (_, body) = says(&stage, "In 1932.", &["-c", "-p", "Go on"]);
    let results = crate::talk::results(Api::OpenAi, &body);
    let (id, text, _) = &results[0];
    assert_eq!((&**id, text.starts_with("interrupted: ")), ("call_1", true), "{results:?}");
}

/// The lock goes with the process, however that ends.
#[test]
fn a_run_that_is_killed_while_it_waits_leaves_a_session_that_goes_on() {
    let stage = Stage::new("waiting");
    let gate = Arc::new(Gate::default());
    let server = Server::start(vec![answer(Api::OpenAi, "First.").held_by(&gate)]);
    let mut first = stage.ask(server.port(), &["-p", "One"]);
    let mut child = first.spawn().unwrap();
    gate.wait_until_asked();
    child.kill().unwrap();
    ran_of(child, &first);
    gate.open();
    server.stop();
    let (ran, body) = says(&stage, "Both.", &["-c", "-p", "Two"]);
    ran.stderr("");
    assert_eq!(told(&body), lines_of(&[("user", "One\n\nTwo")]));
}
