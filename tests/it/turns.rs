//! Several turns in one process: messages as JSON lines on standard input, all there from the start.

use serde_json::{Value, json};

use crate::check::Api;
use crate::client::{WITH_CLIENT, answered, message, request};
use crate::server::Reply;
use crate::stage::{Stage, run, run_with_input};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, last_text, results};

fn story(name: &str, api: Api) -> Story {
    Story::new(name).api(api).args(&WITH_CLIENT)
}

/// The lines of standard output of this type.
fn lines(outcome: &Outcome, kind: &str) -> Vec<Value> {
    let lines = std::str::from_utf8(&outcome.stdout).unwrap().lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    lines.filter(|line| line["type"] == kind).collect()
}

/// Of each turn: whether it failed, and its text.
fn told(outcome: &Outcome) -> Vec<(bool, String)> {
    let told = lines(outcome, "result").into_iter().map(|result| {
        (result["is_error"].as_bool().unwrap(), result["result"].as_str().unwrap_or_default().to_owned())
    });
    told.collect()
}

fn well(text: &str) -> (bool, String) {
    (false, text.to_owned())
}

#[test]
fn messages_are_turns_of_one_conversation() {
    for api in BOTH {
        let said = message("one") + "\r\n  \n" + &message(json!([{"type": "text", "text": "two"}]));
        let outcome = story("messages are turns", api)
            .reply(answer(api, "first"))
            .reply(answer(api, "second"))
            .stdin(said.trim_end())
            .run();
        outcome.code(0).equal(told(&outcome), vec![well("first"), well("second")]);
        let second = outcome.body(2);
        outcome.equal(last_text(&second), "two".to_owned());
        let texts = second["messages"].to_string();
        outcome.equal(texts.contains("one") && texts.contains("first"), true);
        let results = lines(&outcome, "result");
        outcome.equal(&results[0]["num_turns"], &json!(1)).equal(&results[1]["num_turns"], &json!(1));
    }
}

#[test]
fn a_message_may_show_images() {
    for api in BOTH {
        let image = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="});
        let content = json!([{"type": "text", "text": "see"}, {"type": "image", "source": image}]);
        let outcome = story("images", api).reply(answer(api, "a cat")).stdin(message(content)).run();
        outcome.code(0);
        let sent = outcome.body(1)["messages"].as_array().unwrap().last().unwrap()["content"][1].clone();
        let expected = match api {
            Api::Anthropic => json!({"type": "image", "source": image}),
            _ => json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}),
        };
        let mut sent = sent;
        if let Some(sent) = sent.as_object_mut() {
            sent.remove("cache_control");
        }
        outcome.equal(sent, expected);
    }
}

#[test]
fn a_turn_that_fails_has_its_result_and_the_next_one_goes_on() {
    for api in BOTH {
        let refusal = Reply::new(400, "application/json", r#"{"error":{"message":"no such thing"}}"#);
        let outcome = story("a turn fails", api)
            .reply(refusal)
            .reply(answer(api, "well"))
            .stdin(message("one") + &message(json!([{"type": "document"}])) + &message("three"))
            .run();
        outcome.code(4);
        let results = lines(&outcome, "result");
        outcome.equal(results.len(), 3);
        outcome.equal(&results[0]["error"]["code"], &json!(4));
        outcome.equal(
            &results[1]["error"],
            &json!({"class": "usage", "code": 2, "message":
                "a block of type \"document\" cannot be sent: a message of the user's holds text and images"}),
        );
        outcome.equal(&results[2]["result"], &json!("well"));
        // What was not answered is still said.
        outcome.equal(last_text(&outcome.body(2)).contains("three"), true);
    }
}

#[test]
fn a_limit_of_turns_is_one_of_replies_to_each_message() {
    let api = Api::OpenAi;
    let outcome = story("a limit", api)
        .args(&["--max-turns", "1"])
        .reply(answer(api, "a"))
        .reply(answer(api, "b"))
        .stdin(message("one") + &message("two"))
        .run();
    outcome.code(0).equal(told(&outcome), vec![well("a"), well("b")]);
}

#[test]
fn a_line_that_is_not_understood_ends_the_run_behind_what_came_before_it() {
    let why = "line 2 of standard input cannot be used: it is not JSON: oops";
    let outcome = story("not understood", Api::OpenAi)
        .reply(answer(Api::OpenAi, "first"))
        .stdin(message("one") + "oops\n" + &message("two"))
        .run();
    outcome.code(2).stderr(&format!("cotter: {why}\n"));
    let results = lines(&outcome, "result");
    outcome.equal(&results[0]["result"], &json!("first")).equal(&results[1]["error"]["message"], &json!(why));
    let outcome = story("not understood at all", Api::OpenAi).stdin("hello\n").run();
    let why = "line 1 of standard input cannot be used: it is not JSON: hello";
    outcome.code(2).stderr(&format!("cotter: {why}\n")).equal(lines(&outcome, "result").len(), 1);
}

#[test]
fn nothing_to_answer_is_no_failure() {
    for stdin in ["", "\n", &request("1", &json!({"subtype": "interrupt"}))] {
        let outcome = story("nothing", Api::OpenAi).stdin(stdin).run();
        outcome.code(0).stderr("").equal(lines(&outcome, "result"), Vec::new());
    }
}

#[test]
fn control_requests_are_answered_by_name() {
    let asked = [
        json!({"subtype": "initialize", "hooks": null, "excludeDynamicSections": true}),
        json!({"subtype": "mcp_status"}),
        json!({"subtype": "set_permission_mode", "mode": "plan"}),
        json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
        json!({"subtype": "rewind_files", "user_message_id": "x"}),
    ];
    let stdin =
        asked.iter().enumerate().map(|(id, asked)| request(&id.to_string(), asked)).collect::<String>();
    let outcome = story("control requests", Api::OpenAi).stdin(stdin).run();
    outcome.code(0).stderr("");
    let answers: Vec<_> = lines(&outcome, "control_response").iter().filter_map(answered).collect();
    let ids: Vec<&str> = answers.iter().map(|(id, _)| id.as_str()).collect();
    outcome.equal(ids, vec!["0", "1", "2", "3", "4"]);
    let initialized = answers[0].1.as_ref().unwrap();
    outcome.equal(&initialized["models"][0]["value"], &json!("test-model"));
    outcome.equal(initialized["commands"].is_array() && initialized["account"].is_object(), true);
    let refused = |why: &str| Err(why.to_owned());
    let rest: Vec<_> = answers.into_iter().skip(1).map(|(_, answer)| answer).collect();
    outcome.equal(
        rest,
        vec![
            Ok(json!({"mcpServers": []})),
            Ok(json!({"mode": "plan"})),
            refused(
                "the permission mode bypassPermissions has to be there from the start (--permission-mode)",
            ),
            refused("there is no control request \"rewind_files\" here"),
        ],
    );
}

#[test]
fn what_a_client_wants_and_is_not_there_is_an_error() {
    for (member, value, why) in [
        ("hooks", json!({"PreToolUse": [{}]}), "there are no hooks here: leave \"hooks\" out"),
        (
            "sdkMcpServers",
            json!(["calc"]),
            "tools of the client's (\"sdkMcpServers\") cannot be called here: give programs with --tool",
        ),
        (
            "agents",
            json!({"reviewer": {"prompt": "p"}}),
            "there are no subagents here: put what an agent is told (\"agents\") into the system prompt",
        ),
    ] {
        let asked = request("1", &json!({"subtype": "initialize", member: value}));
        let outcome = story("not there", Api::OpenAi).stdin(asked).run();
        outcome.code(0);
        let answers: Vec<_> = lines(&outcome, "control_response").iter().filter_map(answered).collect();
        outcome.equal(answers, vec![("1".to_owned(), Err(why.to_owned()))]);
    }
}

#[test]
fn a_model_and_a_system_prompt_hold_from_the_next_request_on() {
    for api in BOTH {
        let outcome = story("a model", api)
            .reply(answer(api, "a"))
            .stdin(
                request("1", &json!({"subtype": "initialize", "systemPrompt": "be brief", "appendSystemPrompt": "and kind"}))
                    + &request("2", &json!({"subtype": "set_model", "model": "other"}))
                    + &message("one"),
            )
            .run();
        let body = outcome.code(0).body(1);
        outcome.equal(&body["model"], &json!("other"));
        let system = match api {
            Api::Anthropic => body["system"][0]["text"].clone(),
            _ => body["messages"][0]["content"].clone(),
        };
        outcome.equal(system, json!("be brief\n\nand kind"));
    }
}

/// As with `--model`, the variable that scripts written for `claude` set decides what a short name means.
#[test]
fn a_client_names_models_as_the_command_line_does() {
    let outcome = story("a short name", Api::Anthropic)
        .env("ANTHROPIC_DEFAULT_SONNET_MODEL", "ours")
        .reply(answer(Api::Anthropic, "a"))
        .stdin(request("1", &json!({"subtype": "set_model", "model": "sonnet"})) + &message("one"))
        .run();
    outcome.equal(&outcome.code(0).body(1)["model"], &json!("ours"));
}

#[test]
fn a_mode_that_only_plans_comes_and_goes() {
    let api = Api::OpenAi;
    let call = [("a", "Write", r#"{"file_path":"new.txt","content":"x"}"#)];
    let mode = |mode: &str| request("1", &json!({"subtype": "set_permission_mode", "mode": mode}));
    let write = |first: &[&str], stdin: String| {
        let outcome = story("plan", api)
            .args(first)
            .reply(asks(api, "", &call))
            .reply(answer(api, "done"))
            .stdin(stdin)
            .run();
        outcome.code(0);
        (outcome.folder.join("new.txt").exists(), results(api, &outcome.body(2))[0].2)
    };
    assert_eq!(write(&[], mode("plan") + &message("go")), (false, true));
    assert_eq!(write(&["--permission-mode", "plan"], message("go")), (false, true));
    assert_eq!(write(&["--permission-mode", "plan"], mode("default") + &message("go")), (true, false));
    // The sandbox follows: no command writes while there is only a plan.
    let outcome = story("plan in the sandbox", api)
        .reply(asks(api, "", &[("a", "Bash", r#"{"command":"echo x > new.txt"}"#)]))
        .reply(answer(api, "done"))
        .stdin(mode("plan") + &message("go"))
        .run();
    outcome.code(0).no_file("new.txt").equal(results(api, &outcome.body(2))[0].2, true);
}

#[test]
fn messages_are_repeated_where_that_is_asked_for() {
    let outcome = story("repeated", Api::OpenAi)
        .args(&["--replay-user-messages"])
        .reply(answer(Api::OpenAi, "a"))
        .stdin(message("one"))
        .run();
    outcome.code(0);
    let repeated = lines(&outcome, "user");
    outcome.equal(&repeated[0]["message"], &json!({"role": "user", "content": "one"}));
    outcome.equal(&repeated[0]["isReplay"], &json!(true));
    outcome.equal(&repeated[0]["session_id"], &lines(&outcome, "result")[0]["session_id"]);
}

#[test]
fn flags_that_do_not_go_with_messages_are_refused() {
    let stage = Stage::new("flags with messages");
    for (args, why) in [
        (
            &["--input-format", "stream-json", "--output-format", "text"][..],
            "--input-format stream-json needs --output-format stream-json",
        ),
        (&["--input-format", "stream-json"], "--input-format stream-json needs --output-format stream-json"),
        (
            &["-p", "hi", "--input-format", "stream-json", "--output-format", "stream-json"],
            "with --input-format stream-json the prompt comes on standard input: send it as a message",
        ),
        (
            &["--input-format", "stream-json", "--output-format", "stream-json", "--dry-run"],
            "--input-format stream-json does not go with --dry-run",
        ),
        (
            &["--permission-prompt-tool", "stdio", "hi"],
            "--permission-prompt-tool stdio needs --input-format stream-json",
        ),
        (
            &["--permission-prompt-tool", "mcp__auth__ask", "hi"],
            "--permission-prompt-tool asks the client on standard input (stdio), not \"mcp__auth__ask\": there are no MCP tools",
        ),
        (&["--replay-user-messages", "hi"], "--replay-user-messages needs --input-format stream-json"),
        (&["--input-format", "xml"], "--input-format is one of text, stream-json, not \"xml\""),
    ] {
        run(&mut stage.command(args)).code(2).stderr(format!("cotter: {why}\n"));
    }
    // An empty prompt is none, as scripts have it.
    let mut command = stage.ask(9, &WITH_CLIENT);
    run_with_input(command.args(["-p", ""]), "").code(0).stdout("");
}
