//! A client that steers a run while it goes on: it interrupts, is asked, changes things, and goes away.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::thread;

use serde_json::{Value, json};

use crate::check::Api;
use crate::client::{Client, WITH_CLIENT, answered, message, request};
use crate::server::{Ending, Gate, Reply};
use crate::story::{DEADLINE, Outcome, Running, Story};
use crate::talk::{BOTH, answer, asks, last_text, results};

fn story(name: &str, api: Api) -> Story {
    Story::new(name).api(api).args(&WITH_CLIENT).stdin("")
}

fn interrupt() -> String {
    request("stop", &json!({"subtype": "interrupt"}))
}

/// The next answer is one to this request and grants it.
#[track_caller]
fn granted(client: &Client, id: &str) -> Value {
    let (answers, answer) = answered(&client.next_of("control_response")).expect("it is an answer");
    assert_eq!(answers, id);
    answer.expect("it is granted")
}

/// The next result is that of a turn that was interrupted.
#[track_caller]
fn interrupted(client: &Client) {
    let result = client.next_of("result");
    assert_eq!(
        (&result["subtype"], &result["error"]["class"]),
        (&json!("error_during_execution"), &json!("interrupted")),
        "{result}"
    );
}

#[track_caller]
fn finish(mut client: Client, running: Running) -> Outcome {
    client.close();
    let rest = client.rest();
    assert_eq!(rest, [] as [Value; 0]);
    running.finish()
}

/// A pipe by which a command tells something, made before the run.
fn make_pipe(folder: &Path) {
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
}

/// What a command writes into the pipe, once it does.
#[track_caller]
fn told(folder: &Path) -> String {
    let (sender, told) = mpsc::channel();
    let pipe = folder.join("pipe");
    thread::spawn(move || sender.send(fs::read_to_string(pipe)));
    told.recv_timeout(DEADLINE).expect("the command tells something").unwrap().trim().to_owned()
}

#[test]
fn letters_are_the_same_byte_by_byte() {
    let api = Api::OpenAi;
    let mut running = story("byte by byte", api).reply(answer(api, "a")).start();
    let mut client = running.client();
    let lines = request("1", &json!({"subtype": "mcp_status"})) + &message("z\u{e4}hle");
    for byte in lines.as_bytes() {
        client.send([*byte]);
    }
    granted(&client, "1");
    assert_eq!(client.next_of("result")["result"], "a");
    let outcome = finish(client, running);
    outcome.code(0).equal(last_text(&outcome.body(1)), "z\u{e4}hle".to_owned());
}

#[test]
fn a_turn_is_interrupted_in_the_middle_of_a_stream() {
    for api in BOTH {
        let whole = answer(api, "one two three four");
        let part = whole.body().windows(8).position(|bytes| bytes == b"e four\"}").unwrap();
        let mut running = story("in the middle of a stream", api)
            .reply(whole.cut(part - 40, Ending::Stall))
            .reply(answer(api, "well"))
            .start();
        let mut client = running.client();
        // The answer to a request tells that the stream is being waited for: nothing else is answered then.
        client.send(message("go"));
        running.wait_for_request(1);
        client.send(request("1", &json!({"subtype": "set_model", "model": "other"})));
        granted(&client, "1");
        client.send(interrupt());
        granted(&client, "stop");
        interrupted(&client);
        client.send(message("then this"));
        assert_eq!(client.next_of("result")["result"], "well");
        let outcome = finish(client, running);
        let second = outcome.code(0).body(2);
        let text = last_text(&second);
        outcome.equal(text.contains("[Request interrupted by user]") && text.ends_with("then this"), true);
        outcome.equal(&second["model"], &json!("other"));
    }
}

#[test]
fn a_turn_is_interrupted_before_anything_came() {
    let api = Api::OpenAi;
    let gate = Arc::new(Gate::default());
    let mut running = story("before anything came", api)
        .reply(answer(api, "too late").held_by(&gate))
        .reply(answer(api, "well"))
        .start();
    let mut client = running.client();
    client.send(message("go"));
    gate.wait_until_asked();
    client.send(interrupt());
    granted(&client, "stop");
    interrupted(&client);
    gate.open();
    client.send(message("again"));
    assert_eq!(client.next_of("result")["result"], "well");
    finish(client, running).code(0).request_count(2);
}

#[test]
fn a_wait_for_the_next_attempt_is_interrupted() {
    let api = Api::OpenAi;
    let overloaded = Reply::new(503, "application/json", "{}").header("retry-after: 100");
    let mut running = story("a wait", api).reply(overloaded).start();
    let mut client = running.client();
    client.send(message("go"));
    running.wait_for_request(1);
    client.send(interrupt());
    granted(&client, "stop");
    interrupted(&client);
    finish(client, running).code(0);
}

#[test]
fn a_command_is_interrupted_and_what_it_started_ends() {
    for api in BOTH {
        let calls = [
            ("a", "Bash", r#"{"command":"echo begun; sleep 1000 & echo $! > pipe; wait"}"#),
            ("b", "Bash", r#"{"command":"touch never"}"#),
        ];
        let background = r#"{"command":"sleep 1000","run_in_background":true}"#;
        let mut running = story("a command", api)
            .prepared(make_pipe)
            .reply(asks(api, "", &[("s", "Bash", background)]))
            .reply(asks(api, "", &calls))
            .reply(asks(api, "", &[("o", "BashOutput", r#"{"bash_id":"bash_1"}"#)]))
            .reply(answer(api, "well"))
            .start();
        let mut client = running.client();
        client.send(message("go"));
        let process = told(running.folder());
        client.send(interrupt());
        granted(&client, "stop");
        interrupted(&client);
        assert!(!Path::new("/proc").join(&process).exists(), "{process} runs on");
        client.send(message("and the other?"));
        assert_eq!(client.next_of("result")["result"], "well");
        let outcome = finish(client, running);
        let sent = results(api, &outcome.code(0).no_file("never").body(3));
        let ended = "begun\n[interrupted by the user: the command and what it started were ended]";
        outcome.equal(
            sent[1..].to_vec(),
            vec![
                ("a".to_owned(), ended.to_owned(), true),
                ("b".to_owned(), "not run: interrupted by the user".to_owned(), true),
            ],
        );
        // What runs in the background is no part of the turn.
        let shell = &results(api, &outcome.body(4))[3];
        outcome.equal(shell.2 || !shell.1.contains("running"), false);
    }
}

#[test]
fn the_end_of_input_ends_the_run_after_the_turn() {
    let api = Api::OpenAi;
    let gate = Arc::new(Gate::default());
    let mut running = story("the end", api).reply(answer(api, "a").held_by(&gate)).start();
    let mut client = running.client();
    client.send(message("go"));
    gate.wait_until_asked();
    client.close();
    gate.open();
    let last = client.rest().pop().unwrap();
    assert_eq!((&last["type"], &last["result"]), (&json!("result"), &json!("a")));
    running.finish().code(0);
}

/// A run in which Bash is called, its client asked, and answered so.
fn asked(
    name: &str,
    command: &str,
    args: &[&str],
    respond: impl FnOnce(&mut Client, &Value),
) -> (Outcome, (String, bool)) {
    let api = Api::OpenAi;
    let call = json!({"command": command}).to_string();
    let mut running = story(name, api)
        .args(&["--permission-prompt-tool", "stdio"])
        .args(args)
        .reply(asks(api, "", &[("c", "Bash", &call)]))
        .reply(answer(api, "done"))
        .start();
    let mut client = running.client();
    client.send(message("go"));
    let question = client.next_of("control_request");
    respond(&mut client, &question);
    assert_eq!(client.next_of("result")["result"], "done");
    let outcome = finish(client, running);
    let (_, text, is_error) = results(api, &outcome.code(0).body(2)).remove(0);
    (outcome, (text, is_error))
}

fn response(question: &Value, response: &Value) -> String {
    format!(
        "{}\n",
        json!({"type": "control_response", "response":
        {"subtype": "success", "request_id": question["request_id"], "response": response}})
    )
}

#[test]
fn the_client_is_asked_about_a_call_that_no_rule_allows() {
    let (_, result) = asked("allowed", "echo hi", &[], |client, question| {
        assert_eq!(
            question["request"],
            json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "echo hi"},
                "permission_suggestions": [], "blocked_path": null, "tool_use_id": "c",
                "decision_reason": "it runs a command that no rule allows; it needs --allowedTools \"Bash(echo hi:*)\""})
        );
        client
            .send(response(question, &json!({"behavior": "allow", "updatedInput": {"command": "echo hi"}})));
    });
    assert_eq!(result, ("hi".to_owned(), false));
}

#[test]
fn the_client_may_change_a_call_or_refuse_it() {
    let (_, result) = asked("changed", "echo hi", &[], |client, question| {
        client.send(response(
            question,
            &json!({"behavior": "allow", "updatedInput": {"command": "echo other"}}),
        ));
    });
    assert_eq!(result, ("other".to_owned(), false));
    let (_, result) = asked("refused", "echo hi", &[], |client, question| {
        client.send(response(question, &json!({"behavior": "deny", "message": "not on a Monday"})));
    });
    assert_eq!(result, ("not on a Monday".to_owned(), true));
    let (_, result) = asked("not answered", "echo hi", &[], |client, question| {
        let response =
            json!({"subtype": "error", "request_id": question["request_id"], "error": "callback failed"});
        client.send(format!("{}\n", json!({"type": "control_response", "response": response})));
    });
    assert_eq!(result, ("not run: the client could not be asked about it: callback failed".to_owned(), true));
    let (_, result) = asked("gone", "echo hi", &[], |client, _| client.close());
    let ended = "not run: the client could not be asked about it: standard input has ended";
    assert_eq!(result, (ended.to_owned(), true));
}

#[test]
fn what_is_forbidden_stays_so_whatever_the_client_makes_of_it() {
    let (outcome, (text, is_error)) =
        asked("forbidden", "echo hi", &["--disallowedTools", "Bash(touch:*)"], |client, question| {
            client.send(response(
                question,
                &json!({"behavior": "allow", "updatedInput": {"command": "touch x"}}),
            ));
        });
    outcome.no_file("x").equal(is_error, true);
    assert!(text.contains("the rule \"Bash(touch:*)\" of --disallowedTools forbids it"), "{text}");
}

#[test]
fn the_client_is_not_asked_about_what_a_rule_or_its_own_word_allows() {
    let api = Api::OpenAi;
    let bash = |id, command: &'static str| (id, "Bash", command);
    let mut running = story("not asked", api)
        .args(&["--permission-prompt-tool", "stdio", "--allowedTools", "Bash(echo:*)"])
        .reply(asks(api, "", &[bash("a", r#"{"command":"echo 1"}"#), ("r", "Glob", r#"{"pattern":"*"}"#)]))
        .reply(asks(
            api,
            "",
            &[bash("b", r#"{"command":"printf 2"}"#), bash("c", r#"{"command":"printf 3"}"#)],
        ))
        .reply(answer(api, "done"))
        .start();
    let mut client = running.client();
    client.send(message("go"));
    let question = client.next_of("control_request");
    assert_eq!(question["request"]["tool_use_id"], "b");
    let rule = json!({"toolName": "Bash", "ruleContent": "printf:*"});
    let update = json!({"type": "addRules", "behavior": "allow", "destination": "session", "rules": [rule]});
    client.send(response(&question, &json!({"behavior": "allow", "updatedPermissions": [update]})));
    assert_eq!(client.next_of("result")["result"], "done");
    let outcome = finish(client, running);
    let texts: Vec<String> =
        results(api, &outcome.code(0).body(3)).into_iter().map(|(_, text, _)| text).collect();
    outcome.equal(texts[2..].to_vec(), vec!["2".to_owned(), "3".to_owned()]);
}

#[test]
fn a_refusal_may_end_the_turn_and_a_question_is_taken_back() {
    let api = Api::OpenAi;
    let calls = [("a", "Bash", r#"{"command":"touch a"}"#), ("b", "Bash", r#"{"command":"touch b"}"#)];
    let mut running = story("a refusal ends", api)
        .args(&["--permission-prompt-tool", "stdio"])
        .reply(asks(api, "", &calls))
        .reply(asks(api, "", &[("c", "Bash", r#"{"command":"touch c"}"#)]))
        .reply(answer(api, "done"))
        .start();
    let mut client = running.client();
    client.send(message("go"));
    let question = client.next_of("control_request");
    client.send(response(&question, &json!({"behavior": "deny", "message": "stop", "interrupt": true})));
    interrupted(&client);
    client.send(message("more"));
    let question = client.next_of("control_request");
    client.send(interrupt());
    granted(&client, "stop");
    assert_eq!(client.next_of("control_cancel_request")["request_id"], question["request_id"]);
    interrupted(&client);
    client.send(message("and now"));
    assert_eq!(client.next_of("result")["result"], "done");
    let outcome = finish(client, running);
    outcome.code(0).no_file("a").no_file("b").no_file("c");
    let texts: Vec<String> = results(api, &outcome.body(3)).into_iter().map(|(_, text, _)| text).collect();
    outcome.equal(
        texts,
        ["stop", "not run: interrupted by the user", "not run: interrupted by the user"]
            .map(str::to_owned)
            .to_vec(),
    );
}

#[test]
fn the_sdk_is_told_when_no_turn_is_owed() {
    let api = Api::OpenAi;
    let mut running = story("states", api)
        .env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
        .reply(answer(api, "a"))
        .reply(answer(api, "b"))
        .start();
    let mut client = running.client();
    let state = |client: &Client| {
        let line = loop {
            let line = client.next();
            if line["type"] == "result" || line["subtype"] == "session_state_changed" {
                break line;
            }
        };
        line["state"].as_str().unwrap_or("result").to_owned()
    };
    assert_eq!(state(&client), "idle");
    client.send(message("one") + &message("two"));
    let states: Vec<String> = (0..4).map(|_| state(&client)).collect();
    assert_eq!(states, ["running", "result", "result", "idle"]);
    finish(client, running).code(0);
}

#[test]
fn a_client_that_reads_no_more_is_a_quiet_end() {
    let api = Api::OpenAi;
    let gate = Arc::new(Gate::default());
    let mut running = story("reads no more", api).reply(answer(api, "a").held_by(&gate)).start();
    let (mut stdin, stdout) = running.streams();
    stdin.write_all(message("go").as_bytes()).unwrap();
    gate.wait_until_asked();
    drop(stdout);
    gate.open();
    running.finish().code(0).stderr("");
}

/// A client that sets the prompt at the start means the one it types, not what the checkout says.
#[test]
fn a_clients_system_prompt_leaves_context_files_and_its_skills_are_the_only_ones() {
    let api = Api::Anthropic;
    let skill = |what: &str| format!("---\ndescription: {what}\nargument-hint: [file]\n---\nDo it.\n");
    let story = story("initialize", api).file("AGENTS.md", "Use tabs.\n").reply(answer(api, "Yes."));
    let story = story
        .file(".claude/skills/a/SKILL.md", skill("cuts"))
        .file(".claude/skills/b/SKILL.md", skill("glues"));
    let mut running = story.start();
    let mut client = running.client();
    client.send(request(
        "1",
        &json!({"subtype": "initialize", "systemPrompt": "Be a cat.", "appendSystemPrompt": "Purr.", "skills": ["b"]}),
    ));
    let told = granted(&client, "1");
    assert_eq!(
        told["commands"],
        json!([
            {"name": "a", "description": "cuts", "argumentHint": "[file]"},
            {"name": "b", "description": "glues", "argumentHint": "[file]"},
        ])
    );
    client.send(message("Well?"));
    client.next_of("result");
    let outcome = finish(client, running);
    let body = outcome.code(0).body(1);
    let system = body["system"][0]["text"].as_str().unwrap();
    assert!(system.starts_with("Be a cat.\n\n") && system.ends_with("\n\nPurr."), "{system}");
    assert!(system.contains("Use tabs."), "{system}");
    let tools = body["tools"].as_array().unwrap();
    let skills = tools.iter().find(|tool| tool["name"] == "Skill").unwrap()["description"].as_str().unwrap();
    assert!(skills.ends_with(":\n- b: glues"), "{skills}");
}
