//! Runs that fail or are killed, and how they are gone on with.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::talk::ends;

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

/// A process that stands still, and goes on whatever a test finds: nobody else would let it end.
struct Stopped(Pid);

impl Stopped {
    fn new(process: Pid) -> Stopped {
        kill_process(process, Signal::STOP).unwrap();
        Stopped(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// What a killed run had started could still be at work when the next run was, which looked at what is done.
#[test]
fn a_run_that_is_killed_is_not_gone_on_with_before_what_it_had_started_has_ended() {
    // A tool that has to describe itself has what runs tools start before there is a session.
    let flags: [&[&str]; 3] = [&[], &["--dangerously-skip-permissions"], &["--tool", "./mine"]];
    for flags in flags {
        let stage = Stage::new("still at work");
        let description = r#"{"name":"mine","description":"Mine.","input_schema":{"type":"object"}}"#;
        let mine = stage.write("mine", format!("#!/bin/sh\necho '{description}'\n"));
        fs::set_permissions(mine, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let bash = ("call_1", "Bash", "{\"command\":\"ls -l /proc/self/fd >fds; touch begun; sleep 1000\"}");
        let server = Server::start(vec![asks(Api::OpenAi, "", &[bash])]);
        let args = [flags, &["--session-id", ID, "-p", "When?"]].concat();
        let mut first = stage.ask(server.port(), &args);
        let mut child = first.spawn().unwrap();
        wait_for(&stage, "begun");
        let stopped = Stopped::new(crate::processes::children(Pid::from_child(&child))[0]);
        child.kill().unwrap();
        assert_eq!(ran_of(child, &first).signal, Some(9));
        bodies(Api::OpenAi, server);
        let busy = format!(
            "cotter: the session {ID} is in use by another run: wait for its end, or go on with a copy of it \
             (--fork-session)\n"
        );
        run(&mut stage.ask(1, &["-r", ID, "-p", "Go on"])).code(2).stderr(busy);
        drop(stopped);
        says(&stage, "In 1932.", &["-r", ID, "-p", "Go on"]);
        // No tool has the file, though the process above them all does.
        assert!(!stage.read("fds").contains(".jsonl"), "{}", stage.read("fds"));
    }
}

/// The loop of the manual, with a first run that is killed in its first call.
#[test]
fn what_the_manual_says_to_do_after_a_crash_goes_on() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let example = readme.split("<!-- crash -->\n```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let stage = Stage::new("manual");
    let bash = ("call_1", "Bash", "{\"command\":\"touch begun; sleep 1000\"}");
    let server = Server::start(vec![asks(Api::OpenAi, "", &[bash]), answer(Api::OpenAi, "In 1932.")]);
    let script = format!(
        r#"task="When?"
        cotter() {{
            set -- --base-url "$url" --model test-model "$@"
            if [ -e begun ]; then "$cotter" "$@"; return; fi
            "$cotter" "$@" &
            until [ -e begun ]; do sleep 0.01; done
            kill -9 $!
            wait $!
        }}
        {example}"#
    );
    run(&mut stage.shell(server.port(), &script)).code(0).stdout("In 1932.\n");
    let body = bodies(Api::OpenAi, server).remove(1);
    let said = told(&body);
    assert_eq!(said[0], ("user".to_owned(), "When?".to_owned()));
    assert!(said[2].1.contains("interrupted: "), "{said:?}");
    let again = "Interrupted: look what is done, then finish. When?";
    assert_eq!(said[3], ("user".to_owned(), again.to_owned()));
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

/// The message names the session as the way on, and the text was shown: a run that goes on has to know it.
#[test]
fn the_text_of_a_reply_that_was_cut_is_in_the_session_and_one_that_was_withheld_is_not() {
    for (api, word, kept) in [
        (Api::OpenAi, "length", true),
        (Api::Anthropic, "max_tokens", true),
        (Api::Anthropic, "model_context_window_exceeded", true),
        (Api::OpenAi, "content_filter", false),
        (Api::Anthropic, "refusal", false),
    ] {
        let stage = Stage::new("cut text");
        let cut = vec![ends(api, "It was built in", &[], word)];
        ask(&stage, api, cut, &["-p", "When?"]).0.code(8).stdout("");
        let written = lines(&only(&stage));
        let said = match kept {
            true => vec![json!([{"type": "text", "text": "It was built in"}])],
            false => vec![],
        };
        let replies: Vec<Value> = written[2..].iter().map(|line| line["parts"].clone()).collect();
        assert_eq!(replies, said, "{word}");
        let (_, body) = says(&stage, "1932.", &["-c", "-p", "Go on"]);
        let expected = match kept {
            true => lines_of(&[("user", "When?"), ("assistant", "It was built in"), ("user", "Go on")]),
            false => lines_of(&[("user", "When?\n\nGo on")]),
        };
        assert_eq!(told(&body), expected, "{word}");
    }
}

#[test]
fn the_reply_whose_cut_ends_the_run_is_in_the_session_with_a_result_for_each_of_its_calls() {
    let stage = Stage::new("third cut");
    let half = |id| ("Writing.", id, "Write", "{\"file_path\":\"a\",\"content\":\"a long te");
    let cut = |(text, id, name, arguments)| ends(Api::OpenAi, text, &[(id, name, arguments)], "length");
    let replies = ["call_1", "call_2", "call_3"].map(half).map(cut).to_vec();
    ask(&stage, Api::OpenAi, replies, &["-p", "Write"]).0.code(8);
    let kinds: Vec<Value> = lines(&only(&stage)).iter().map(|line| line["type"].clone()).collect();
    let turn = ["assistant", "user"];
    assert_eq!(kinds, [&["session", "user"][..], &turn, &turn, &turn].concat());
}

/// A run in which no file grows beyond this many of the shell's blocks, which are 512 or 1,024 bytes.
#[track_caller]
fn limited(stage: &Stage, blocks: u32, said: &str, args: &str) -> Ran {
    let server = Server::start(vec![answer(Api::OpenAi, said)]);
    let script = format!(
        r#"trap "" XFSZ; ulimit -f {blocks}; exec "$cotter" --base-url "$url" --model m {args} -p "When?""#
    );
    let ran = run(&mut stage.shell(server.port(), &script));
    requests(server);
    ran
}

#[test]
fn a_session_that_cannot_be_begun_leaves_its_id_unused() {
    let stage = Stage::new("no room");
    let ran = limited(&stage, 0, "In 1932.", &format!("--session-id {ID}"));
    let place = file(&stage, ID);
    ran.code(0).stdout("In 1932.\n").stderr(format!(
        "cotter: no session is kept: \"{}\": File too large (os error 27)\n",
        place.display()
    ));
    assert!(!place.exists());
    says(&stage, "In 1932.", &["--session-id", ID, "-p", "When?"]).0.stderr("");
}

#[test]
fn a_session_that_was_not_kept_whole_is_not_said_to_be_and_goes_on_from_what_is() {
    let stage = Stage::new("little room");
    let said = "In 1932. ".repeat(600);
    let ran = limited(&stage, 1, &said, &format!("--session-id {ID}"));
    let place = file(&stage, ID);
    let lost = format!(
        "cotter: cannot write the session \"{}\": File too large (os error 27): make room, or pass \
         --no-session-persistence\n",
        place.display()
    );
    ran.code(1).stdout(format!("{said}\n")).stderr(&lost);
    assert_eq!(ran.way_on, None);
    let (ran, body) = says(&stage, "In 1932.", &["-c", "-p", "Again"]);
    ran.stderr("cotter: the last line of the session's file broke off: it is left out\n");
    assert_eq!(told(&body), lines_of(&[("user", "When?\n\nAgain")]));
    assert_eq!(lines(&place).len(), 4);
}
