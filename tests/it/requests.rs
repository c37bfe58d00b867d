//! What a request holds, and that equal work makes equal requests wherever and whenever it is done.
//!
//! Every request of every test is held to its API's rules by `check.rs`; here stands what goes beyond them.

use serde_json::{Value, json};

use crate::check::{Api, cache_marks};
use crate::server::{Ending, Framing, Reply};
use crate::story::{FOLDER, Outcome, Story, exchange};
use crate::talk::{BOTH, TOOLS, answer, asks, messages, results};

const PROMPT: &str = "What is the title? It is in notes.txt.";
const NOTES: &str = "Bridges\n";

fn story(name: &str, api: Api) -> Story {
    Story::new(name).api(api).files(&[("notes.txt", NOTES), ("other.txt", "Tunnels\n")]).args(&["-p", PROMPT])
}

/// A run of one answer with these flags.
fn once(api: Api, args: &[&str]) -> Outcome {
    story("once", api).args(args).reply(answer(api, "Bridges.")).run()
}

/// The system prompt of a body.
fn system(api: Api, body: &Value) -> Value {
    match api {
        Api::Anthropic => body["system"][0]["text"].clone(),
        _ => body["messages"][0]["content"].clone(),
    }
}

fn built_in_prompt() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/prompt.md");
    std::fs::read_to_string(path).unwrap().trim_end().to_owned()
}

/// The names of the tools of a body, in order.
fn tool_names(api: Api, body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default().iter();
    let tools = tools.map(|tool| if api == Api::Anthropic { tool } else { &tool["function"] });
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn read(id: &'static str) -> (&'static str, &'static str, &'static str) {
    (id, "Read", r#"{"file_path": "notes.txt"}"#)
}

// The members of a body.

#[test]
fn a_request_holds_these_members_in_this_order_and_no_others() {
    let keys = |body: &Value| body.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let outcome = once(Api::Anthropic, &[]);
    outcome.equal(keys(&outcome.body(1)), "model max_tokens stream tools system messages".to_owned());
    outcome.equal(&outcome.body(1)["model"], &json!("claude-opus-4-6"));
    outcome.equal(&outcome.body(1)["max_tokens"], &json!(32_000));
    let outcome = once(Api::OpenAi, &[]);
    outcome.equal(keys(&outcome.body(1)), "model stream stream_options tools messages".to_owned());
    outcome.equal(&outcome.body(1)["model"], &json!("test-model"));
    let outcome = once(Api::OpenRouter, &[]);
    outcome.equal(keys(&outcome.body(1)), "model stream stream_options tools messages".to_owned());
    outcome.equal(&outcome.body(1)["model"], &json!("anthropic/claude-haiku-4.5"));
}

#[test]
fn limits_temperature_and_stops_are_sent_as_given() {
    let args = ["--max-output-tokens", "77", "--temperature", "0.25", "--stop", "END", "--stop", "\n\"x\""];
    let stops = json!(["END", "\n\"x\""]);
    let outcome = once(Api::Anthropic, &args);
    let body = outcome.body(1);
    outcome.equal((&body["max_tokens"], &body["temperature"]), (&json!(77), &json!(0.25)));
    outcome.equal(&body["stop_sequences"], &stops);
    let outcome = once(Api::OpenAi, &args);
    let body = outcome.body(1);
    outcome.equal((&body["max_tokens"], &body["temperature"]), (&json!(77), &json!(0.25)));
    outcome.equal((&body["stop"], body.get("max_completion_tokens")), (&stops, None));
    let story = story("OpenAI", Api::OpenAi).host("http://api.openai.com/v1").args(&args);
    let outcome = story.reply(answer(Api::OpenAi, "Bridges.")).run();
    let body = outcome.code(0).body(1);
    outcome.equal((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(77), None));
    for (typed, sent) in [("0", r#""temperature":0.0,"#), ("1", r#""temperature":1.0,"#)] {
        let outcome = once(Api::Anthropic, &["--temperature", typed]);
        outcome.equal(outcome.sent(1).contains(sent), true);
    }
}

/// A refusal of the output limit that names this ceiling.
fn too_many_tokens(asked: u32, ceiling: u32) -> Reply {
    let message = format!(
        "max_tokens: {asked} > {ceiling}, which is the maximum allowed number of output tokens for m"
    );
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Reply::new(400, "application/json", error.to_string())
}

#[test]
fn the_ceiling_of_the_output_limit_is_learnt_once_and_for_the_whole_run() {
    let api = Api::Anthropic;
    let story = story("ceiling", api).reply(too_many_tokens(32_000, 8192));
    let outcome = story.reply(asks(api, "", &[read("call_1")])).reply(answer(api, "Bridges.")).run();
    outcome.code(0).stdout("Bridges.\n").stderr("").request_count(3);
    let limits = [1, 2, 3].map(|number| outcome.body(number)["max_tokens"].clone());
    outcome.equal(limits, [json!(32_000), json!(8192), json!(8192)]);
}

#[test]
fn a_ceiling_that_is_lowered_again_ends_the_run() {
    let story = story("ceilings", Api::Anthropic).reply(too_many_tokens(32_000, 8192));
    let outcome = story.reply(too_many_tokens(8192, 4096)).run();
    outcome.code(4).stdout("").request_count(2).stderr_has("max_tokens: 8192 > 4096, which is the maximum");
    let limits = [1, 2].map(|number| outcome.body(number)["max_tokens"].clone());
    outcome.equal(limits, [json!(32_000), json!(8192)]);
}

#[test]
fn tools_come_in_the_tables_order_whatever_order_they_are_named_in() {
    for api in BOTH {
        let outcome = once(api, &[]);
        outcome.equal(tool_names(api, &outcome.body(1)), TOOLS.map(str::to_owned).to_vec());
        let outcome = once(api, &["--tools", "Bash,Edit Read"]);
        outcome.equal(
            tool_names(api, &outcome.body(1)).join(" "),
            "Read Edit Bash BashOutput KillShell".to_owned(),
        );
        let outcome = once(api, &["--tools", ""]);
        outcome.equal(outcome.body(1).get("tools"), None);
        let outcome = once(api, &["--tools", "default"]);
        outcome.equal(tool_names(api, &outcome.body(1)).len(), TOOLS.len());
    }
}

#[test]
fn the_tools_of_a_request_are_those_that_are_listed() {
    let listed = Story::new("list").openai().args(&["--list-tools"]).run();
    let text = String::from_utf8(listed.code(0).stdout.clone()).unwrap();
    let listed: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcome = once(Api::Anthropic, &[]);
    let mut tools = outcome.body(1)["tools"].as_array().unwrap().clone();
    tools.last_mut().unwrap().as_object_mut().unwrap().remove("cache_control");
    outcome.equal(tools, listed);
}

// The system prompt.

#[test]
fn the_system_prompt_is_built_in_replaced_or_added_to() {
    let built_in = built_in_prompt();
    let cases: [(&[&str], String); 8] = [
        (&[], built_in.clone()),
        (&["--system-prompt", "Be brief."], "Be brief.".to_owned()),
        (&["--append-system-prompt", "Be brief."], format!("{built_in}\n\nBe brief.")),
        (&["--system-prompt", "One.", "--append-system-prompt", "Two."], "One.\n\nTwo.".to_owned()),
        (&["--system-prompt-file", "system.txt"], "From\na file — “quoted”.".to_owned()),
        (&["--append-system-prompt-file", "system.txt"], format!("{built_in}\n\nFrom\na file — “quoted”.")),
        (
            &["--system-prompt-file", "system.txt", "--append-system-prompt", "Two."],
            "From\na file — “quoted”.\n\nTwo.".to_owned(),
        ),
        (&["--system-prompt", "", "--append-system-prompt", "Alone."], "Alone.".to_owned()),
    ];
    for api in BOTH {
        for (args, expected) in &cases {
            let story =
                story("system", api).files(&[("system.txt", "From\na file — “quoted”.\n\n")]).args(args);
            let outcome = story.reply(answer(api, "Bridges.")).run();
            outcome.equal(system(api, &outcome.body(1)), json!(expected));
        }
    }
}

#[test]
fn an_empty_system_prompt_leaves_the_member_out() {
    let outcome = once(Api::Anthropic, &["--system-prompt", ""]);
    outcome.equal(outcome.body(1).get("system"), None);
    let outcome = once(Api::OpenAi, &["--system-prompt", ""]);
    outcome.equal(&outcome.body(1)["messages"], &json!([{"role": "user", "content": PROMPT}]));
}

#[test]
fn a_system_prompt_given_twice_or_missing_is_a_usage_error() {
    let cases: [(&[&str], &str); 3] = [
        (
            &["--system-prompt", "a", "--system-prompt-file", "notes.txt"],
            "cotter: --system-prompt and --system-prompt-file exclude each other\n",
        ),
        (
            &["--append-system-prompt", "a", "--append-system-prompt-file", "notes.txt"],
            "cotter: --append-system-prompt and --append-system-prompt-file exclude each other\n",
        ),
        (
            &["--system-prompt-file", "missing.txt"],
            "cotter: cannot read \"missing.txt\": No such file or directory (os error 2)\n",
        ),
    ];
    for (args, said) in cases {
        let outcome = story("twice", Api::Anthropic).args(args).run();
        outcome.code(2).stdout("").stderr(said).request_count(0);
    }
}

// Headers.

#[test]
fn each_api_gets_its_headers_and_its_key() {
    let outcome = once(Api::Anthropic, &[]);
    let request = &outcome.requests[0];
    let version = concat!("cotter/", env!("CARGO_PKG_VERSION"));
    outcome.equal((&*request.path, request.header("x-api-key")), ("/v1/messages", Some("test-key")));
    outcome.equal(
        (request.header("user-agent"), request.header("anthropic-version")),
        (Some(version), Some("2023-06-01")),
    );
    outcome.equal(request.header("authorization"), None);
    let outcome = once(Api::OpenRouter, &[]);
    let request = &outcome.requests[0];
    outcome.equal(&*request.path, "/api/v1/chat/completions");
    outcome.equal(request.header("authorization"), Some("Bearer test-key"));
    outcome.equal((request.header("x-api-key"), request.header("anthropic-version")), (None, None));
    let outcome = once(Api::OpenAi, &[]);
    outcome.equal(
        (&*outcome.requests[0].path, outcome.requests[0].header("authorization")),
        ("/v1/chat/completions", None),
    );
}

#[test]
fn headers_asked_for_go_with_every_request_and_the_last_one_said_wins() {
    for api in BOTH {
        let args = ["--header", "X-Team:  tools ", "--header", "x-run: 1", "--header", "X-Run: 2"];
        let story = story("headers", api).args(&args).reply(asks(api, "", &[read("call_1")]));
        let outcome = story.reply(answer(api, "Bridges.")).run();
        outcome.code(0).request_count(2);
        for request in &outcome.requests {
            outcome.equal((request.header("x-team"), request.header("x-run")), (Some("tools"), Some("2")));
            let runs = request.headers.iter().filter(|(name, _)| name == "x-run").count();
            outcome.equal(runs, 1);
        }
    }
}

/// It was sent twice.
#[test]
fn a_header_of_the_protocols_own_can_be_given_anew() {
    let given = [("accept", "text/event-stream"), ("anthropic-version", "2023-06-01")];
    let args = given.map(|(name, value)| format!("--header={name}: {value}"));
    let outcome = once(Api::Anthropic, &args.each_ref().map(String::as_str));
    for (name, value) in given {
        let sent: Vec<&str> = outcome.requests[0]
            .headers
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
            .collect();
        outcome.equal(sent, vec![value]);
    }
}

#[test]
fn custom_headers_of_the_environment_go_to_anthropic_alone() {
    let lines = "anthropic-beta: one,two\n\nX-Team: tools\r\nx-run: 1";
    for api in [Api::Anthropic, Api::OpenAi, Api::OpenRouter] {
        let story =
            story("custom", api).env("ANTHROPIC_CUSTOM_HEADERS", lines).args(&["--header", "x-run: 2"]);
        let outcome = story.reply(answer(api, "Bridges.")).run();
        let request = &outcome.code(0).requests[0];
        let found = (request.header("anthropic-beta"), request.header("x-team"), request.header("x-run"));
        let expected = match api {
            Api::Anthropic => (Some("one,two"), Some("tools"), Some("2")),
            _ => (None, None, Some("2")),
        };
        outcome.equal(found, expected);
    }
}

#[test]
fn a_header_that_cannot_be_sent_is_a_usage_error_that_does_not_show_it() {
    let cases = [
        ("secret", "cotter: --header: a header is written 'Name: value', in printable ASCII\n"),
        ("x-a: секрет", "cotter: --header: a header is written 'Name: value', in printable ASCII\n"),
        ("Content-Length: 1", "cotter: --header: the header content-length is cotter's own to set\n"),
    ];
    for (header, said) in cases {
        let outcome = story("header", Api::Anthropic).args(&["--header", header]).run();
        outcome.code(2).stdout("").stderr(said).request_count(0);
    }
}

// Cache marks.

/// Where the cache marks of a Messages body stand.
fn marks(body: &Value) -> Vec<String> {
    let mut places = Vec::new();
    let mut look = |place: String, value: &Value| {
        if value.get("cache_control") == Some(&json!({"type": "ephemeral"})) {
            places.push(place);
        }
    };
    for (index, tool) in body["tools"].as_array().into_iter().flatten().enumerate() {
        look(format!("tools {index}"), tool);
    }
    for (index, block) in body["system"].as_array().into_iter().flatten().enumerate() {
        look(format!("system {index}"), block);
    }
    for (number, message) in body["messages"].as_array().unwrap().iter().enumerate() {
        for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            look(format!("message {number} {index}"), block);
        }
    }
    places
}

#[test]
fn marks_stand_on_tools_and_system_and_move_with_the_last_two_user_messages() {
    let api = Api::Anthropic;
    let replies = [
        asks(api, "I look.", &[read("call_1"), read("call_2")]),
        asks(api, "Again.", &[read("call_3")]),
        asks(api, "And again.", &[read("call_4")]),
        answer(api, "Bridges."),
    ];
    let outcome = replies.into_iter().fold(story("marks", api), Story::reply).run();
    outcome.code(0).request_count(4);
    let expected = [
        vec!["tools 10", "system 0", "message 0 0"],
        vec!["tools 10", "system 0", "message 0 0", "message 2 1"],
        vec!["tools 10", "system 0", "message 2 1", "message 4 0"],
        vec!["tools 10", "system 0", "message 4 0", "message 6 0"],
    ];
    for (index, places) in expected.iter().enumerate() {
        let body = outcome.body(index + 1);
        outcome.equal(marks(&body), places.iter().map(|place| (*place).to_owned()).collect());
        outcome.equal(cache_marks(&body), places.len());
    }
}

#[test]
fn without_tools_or_system_prompt_there_are_fewer_marks() {
    let outcome = once(Api::Anthropic, &["--tools", "", "--system-prompt", ""]);
    outcome.equal(marks(&outcome.body(1)), vec!["message 0 0".to_owned()]);
}

#[test]
fn claude_through_openrouter_gets_marks_on_text_parts_and_others_get_none() {
    let run = |model: &str| {
        let api = Api::OpenRouter;
        let story = story("OpenRouter", api).host("http://openrouter.ai/api/v1").args(&["--model", model]);
        story.reply(asks(api, "", &[read("call_1")])).reply(answer(api, "Bridges.")).run()
    };
    let outcome = run("anthropic/claude-haiku-4.5");
    outcome.code(0).request_count(2);
    outcome.equal(outcome.requests[0].header("x-openrouter-title"), Some("cotter"));
    outcome.equal(outcome.requests[0].header("host"), Some("openrouter.ai"));
    let text = |text: &str| json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
    let first = json!([{"role": "system", "content": text(&built_in_prompt())},
        {"role": "user", "content": text(PROMPT)}]);
    outcome.equal(&outcome.body(1)["messages"], &first);
    let second = json!([first[0], first[1],
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": "Read", "arguments": r#"{"file_path": "notes.txt"}"#}}]},
        {"role": "tool", "tool_call_id": "call_1", "content": text(NOTES)}]);
    outcome.equal(&outcome.body(2)["messages"], &second);
    let outcome = run("openai/gpt-5");
    outcome.equal(cache_marks(&outcome.body(2)), 0);
    outcome.equal(&outcome.body(2)["messages"][1]["content"], &json!(PROMPT));
}

// What goes back.

#[test]
fn thinking_goes_back_to_the_byte_through_all_turns() {
    let outcome = story("thinking", Api::Anthropic).exchange("fixtures/requests/thinking").run();
    outcome.code(0).stdout("The title is “Bridges”.\n").stderr("").request_count(3);
    let thinking = r#"{"type":"thinking","thinking":"The user wants the title — \"naïve\" quotes, a tab\tand C:\\path.\nRead notes.txt first. 🌉","signature":"EqoBCkYIBxgCKkBq+T0/Zx3vLk8w1Yc9RmNs5uHt2PbVfGjKdQxWoEiAzMCnYrJlS7hXg4TaUe6BpIw=="}"#;
    let redacted = r#"{"type":"redacted_thinking","data":"EvAFCoYBGAIiQL7asBuQ+Ue1/Rk0mZ3xWcVt9YhNp5sJfGdKqLw2oXiAzMCnYrJlS7hXg4TaUe6BpIw=="}"#;
    let text = r#"{"type":"text","text":"Let me look."}"#;
    let call = r#"{"type":"tool_use","id":"toolu_01ReadAx7Qm2ZtRb5WcYpVfL","name":"Read","input":{"file_path": "notes.txt"}}"#;
    let first = format!(r#"{{"role":"assistant","content":[{thinking},{redacted},{text},{call}]}}"#);
    let thinking = r#"{"type":"thinking","thinking":"","signature":"ErUBCkYIBxgCIkD9c+X1kQ/vT7mWz0LpRn4bYsHg8jFuKdEoAxViZqMcCnYrJlS7hXg4TaUe6BpIwQ=="}"#;
    let second = format!(r#"{{"role":"assistant","content":[{thinking},{{"type":"tool_use","#);
    outcome.equal(outcome.sent(2).contains(&first), true);
    outcome.equal(outcome.sent(3).contains(&first), true).equal(outcome.sent(3).contains(&second), true);
    let id = |end: &str| format!("toolu_01Read{end}");
    let missing = "there is no file missing.txt, and no name like it in .";
    let expected = vec![
        (id("Ax7Qm2ZtRb5WcYpVfL"), NOTES.to_owned(), false),
        (id("Bs9Ld4NvJq6TkXrGmP"), "Tunnels\n".to_owned(), false),
        (id("Cd5RfVtY8xWzKbN3mQ"), missing.to_owned(), true),
    ];
    outcome.equal(results(Api::Anthropic, &outcome.body(3)), expected);
}

#[test]
fn thinking_in_a_reply_without_calls_is_no_answer_and_does_not_go_back() {
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let empty = messages(&[thinking], &json!({"stop_reason": "end_turn"}));
    let story = story("only thinking", Api::Anthropic).reply(empty).reply(answer(Api::Anthropic, "Bridges."));
    let outcome = story.run();
    outcome.code(0).stdout("Bridges.\n").request_count(2);
    outcome.equal(outcome.body(2)["messages"].as_array().unwrap().len(), 1);
}

#[test]
fn reasoning_details_go_back_through_openrouter_joined_and_in_order() {
    let outcome = story("details", Api::OpenRouter).exchange("fixtures/requests/reasoning-details").run();
    outcome.code(0).stdout("The title is “Bridges”.\n").stderr("").request_count(2);
    let expected = json!({"role": "assistant", "content": null,
        "reasoning_details": [
            {"type": "reasoning.text", "text": "The user wants the title — naïve.",
                "format": "anthropic-claude-v1", "index": 0,
                "signature": "EqoBCkYIBxgCKkBq+T0/Zx3vLk8w1Yc9RmNs5uHt2PbVfGjKdQxWoEiAzMCnYrJlS7hXg4TaUe6BpIw=="},
            {"type": "reasoning.encrypted", "data": "EvAFCoYBGAIiQL7asBuQ+Ue1/Rk0mZ3x==", "id": "rs_0a1b",
                "format": "anthropic-claude-v1", "index": 1}],
        "tool_calls": [{"id": "toolu_bdrk_01ReadAx7Qm2ZtRb5WcYp", "type": "function",
            "function": {"name": "Read", "arguments": r#"{"file_path": "notes.txt"}"#}}]});
    outcome.equal(&outcome.body(2)["messages"][2], &expected);
}

// One request told beforehand, and one connection.

#[test]
fn a_dry_run_prints_the_first_request_to_the_byte() {
    for api in [Api::Anthropic, Api::OpenAi, Api::OpenRouter] {
        for args in
            [&["--temperature", "0.5", "--stop", "END"][..], &["--tools", "Read", "--system-prompt", "ü"]]
        {
            let outcome = story("real", api).args(args).stdin("more\n").reply(answer(api, "Bridges.")).run();
            let dry = story("dry", api).args(args).args(&["--dry-run"]).stdin("more\n").run();
            dry.code(0).stderr("").request_count(0).stdout(format!("{}\n", outcome.sent(1)));
        }
    }
}

#[test]
fn a_run_keeps_one_connection_while_the_server_ends_its_bodies() {
    for api in BOTH {
        for framing in [Framing::Length, Framing::Chunked] {
            let replies = [
                asks(api, "", &[read("call_1")]),
                asks(api, "", &[("call_2", "Bash", r#"{"command": "true"}"#)]),
                answer(api, ""),
                answer(api, "Bridges."),
            ];
            let replies = replies.into_iter().map(|reply| reply.framing(framing));
            let outcome = replies.fold(story("one connection", api), Story::reply).run();
            outcome.code(0).stdout("Bridges.\n").request_count(4);
            let connections: Vec<_> = outcome.requests.iter().map(|request| request.connection).collect();
            outcome.equal(connections, vec![0; 4]);
        }
    }
}

#[test]
fn a_server_that_closes_after_each_reply_gets_a_new_connection() {
    for api in BOTH {
        let replies = [asks(api, "", &[read("call_1")]), answer(api, "Bridges.")];
        let replies = replies.into_iter().map(|reply| reply.framing(Framing::Close));
        let outcome = replies.fold(story("closing", api), Story::reply).run();
        outcome.code(0).stdout("Bridges.\n").stderr("").request_count(2);
        let connections: Vec<_> = outcome.requests.iter().map(|request| request.connection).collect();
        outcome.equal(connections, vec![0, 1]);
    }
}

#[test]
fn a_server_that_holds_a_finished_stream_open_is_not_waited_for() {
    for api in BOTH {
        let hold = |reply: Reply| {
            let length = reply.body().len();
            reply.framing(Framing::Chunked).cut(length, Ending::Stall)
        };
        let replies = [asks(api, "", &[read("call_1")]), answer(api, "Bridges.")];
        let outcome = replies.into_iter().map(hold).fold(story("held", api), Story::reply).run();
        outcome.code(0).stdout("Bridges.\n").stderr("").request_count(2);
    }
}

// Equal work gives equal bytes.

/// Commands whose output tells where they run, unless that is put right.
const TELLING: [&str; 8] = [
    "pwd; pwd -P; echo \"$PWD\" \"$OLDPWD\"",
    "cd sub && pwd && cd - && cd \"$OLDPWD\" && pwd",
    "echo \"$TMPDIR\"; test -d \"$TMPDIR\" && test -w \"$TMPDIR\"; ls -A \"$TMPDIR\"",
    "file=$(mktemp) && echo kept >\"$file\" && cat \"$file\" && dirname \"$file\" && cp \"$file\" \"$TMPDIR/kept\"",
    "cat \"$TMPDIR/kept\" \"$TMPDIR/missing\"",
    "cat \"$(pwd)/missing\"; ls \"$(pwd)/sub/missing\"; rm ./missing",
    "realpath notes.txt; readlink -f sub/deep.txt; find \"$(pwd)\" -name '*.txt' | sort",
    "\"$(pwd)/no-such-program\" 2>&1; sh -c 'nonsense-of-ours'",
];

/// A run of everything that could tell a place, in these places and under these variables.
fn telling(api: Api, places: [&str; 3], environment: &[(&str, &str)]) -> Outcome {
    let read = |path: &str| json!({"file_path": path}).to_string();
    let bash: Vec<_> = TELLING.iter().map(|command| json!({"command": command}).to_string()).collect();
    let write = json!({"file_path": "sub/new.txt", "content": "new\n"}).to_string();
    let edit = |path: &str, old: &str| {
        json!({"file_path": path, "old_string": old, "new_string": "newer"}).to_string()
    };
    let mut calls: Vec<(&str, String)> = vec![
        ("Read", read("notes.txt")),
        ("Read", read("sub")),
        ("Read", read("note.txt")),
        ("Read", read("nowhere/at/all.txt")),
        ("Read", read("link.txt")),
        ("Write", write),
        ("Write", json!({"file_path": "sub", "content": "x"}).to_string()),
        ("Write", json!({"file_path": "notes.txt/x", "content": "x"}).to_string()),
        ("Edit", edit("sub/new.txt", "new")),
        ("Edit", edit("sub/new.txt", "old")),
        ("Edit", edit("sub/old.txt", "old")),
        ("get_current_datetime", "{}".to_owned()),
    ];
    calls.extend(bash.into_iter().map(|arguments| ("Bash", arguments)));
    let ids: Vec<_> = (1..=calls.len()).map(|number| format!("call_{number}")).collect();
    let calls: Vec<_> = ids.iter().zip(&calls).map(|(id, (name, text))| (&**id, *name, &**text)).collect();
    let (some, others) = calls.split_at(7);
    let story = story("telling", api).files(&[("sub/deep.txt", "deep\n")]).env("COTTER_NOW", "0");
    let story = story.places(places[0], places[1], places[2]);
    let story = environment.iter().fold(story, |story, (name, value)| story.env(name, value));
    let story = story.reply(asks(api, "I look.", some)).reply(asks(api, "", others));
    story.reply(answer(api, "Bridges.")).run()
}

#[test]
fn equal_work_makes_equal_requests_in_any_place_zone_and_locale() {
    // No blanks in the names: GNU programs put quotes around a path that has some.
    for api in BOTH {
        let first = telling(api, ["work", "home", "tmp"], &[]);
        first.code(0).stdout("Bridges.\n").request_count(3);
        let second = telling(
            api,
            ["a/deeper/folder-of-another.name/tmp", "homes/me", "var/tmp/mine"],
            &[
                ("TZ", "Pacific/Kiritimati"),
                ("LC_ALL", "xx_XX.UTF-8"),
                ("LANGUAGE", "de"),
                ("LANG", "C.UTF-8"),
                ("USER", "somebody"),
                ("OLDPWD", "/usr"),
                ("PWD", "/usr/lib"),
                ("COLUMNS", "40"),
                ("XDG_STATE_HOME", "/dev/null/state"),
                ("COTTER_UNRELATED", "x"),
            ],
        );
        second.code(0).stdout("Bridges.\n").request_count(3);
        for (number, request) in first.requests.iter().enumerate() {
            let same = request.body == second.requests[number].body;
            assert!(same, "request {} differs\n{}\n{}", number + 1, first.report(), second.report());
        }
    }
}

/// The output of a cat that fails, whose words around the path are its own.
#[track_caller]
fn fails_to_open(outcome: &Outcome, text: &str, start: &str, path: &str) {
    outcome.equal((text.starts_with(start), text.contains(path)), (true, true));
    outcome.equal(text.ends_with(": No such file or directory\n[exit code: 1]"), true);
    let root = outcome.folder.parent().unwrap().to_str().unwrap();
    outcome.equal(text.contains(root), false);
}

#[test]
fn results_of_commands_tell_no_place() {
    let outcome = telling(Api::Anthropic, ["work", "home", "tmp"], &[]);
    let results = results(Api::Anthropic, &outcome.body(3));
    let texts: Vec<_> = results.iter().map(|(_, text, _)| text.as_str()).collect();
    let expected = [
        NOTES,
        "sub is a directory, not a file; it holds: deep.txt",
        "there is no file note.txt; the nearest names in . are: notes.txt",
        "there is no file nowhere/at/all.txt: there is no folder nowhere/at",
    ];
    outcome.equal(&texts[..4], &expected[..]);
    let expected = [".\n.\n. ", "./sub\n.\n./sub"];
    outcome.equal(&texts[12..14], &expected[..]);
    outcome.equal(texts[14], "$TMPDIR");
    outcome.equal(texts[15], "kept\n$TMPDIR");
    fails_to_open(&outcome, texts[16], "kept\ncat: ", "$TMPDIR/missing");
    let expected = "./notes.txt\n./sub/deep.txt\n./notes.txt\n./other.txt\n./sub/deep.txt\n./sub/new.txt";
    outcome.equal(texts[18], expected);
}

#[test]
fn a_workspace_reached_by_a_symbolic_link_is_told_as_the_workspace() {
    // The shell that starts a program tells it by PWD how it came there.
    let link = std::env::temp_dir().join(format!("cotter-it-link-{}", std::process::id()));
    let real = std::env::temp_dir().join(format!("cotter-it-real-{}", std::process::id()));
    std::fs::create_dir_all(&real).unwrap();
    let _ = std::os::unix::fs::symlink(&real, &link);
    let api = Api::Anthropic;
    let link_name = link.to_str().unwrap();
    let call = ("call_1", "Bash", r#"{"command": "pwd; echo \"$PWD\""}"#);
    let story = story("link", api).args(&["-C", link_name]).env("PWD", link_name);
    let outcome = story.reply(asks(api, "", &[call])).reply(answer(api, "Here.")).run();
    std::fs::remove_file(&link).unwrap();
    std::fs::remove_dir_all(&real).unwrap();
    outcome.code(0);
    let told = results(api, &outcome.body(2)).remove(0).1;
    outcome.equal(told, ".\n.".to_owned());
}

/// A run in which the model names files by absolute paths, which it was told or has guessed.
fn absolute(api: Api, place: &str) -> Outcome {
    let call = |name: &str, arguments: Value| (name.to_owned(), arguments.to_string());
    let path = |name: &str| format!("{FOLDER}/{name}");
    let calls = [
        call("Read", json!({"file_path": path("notes.txt")})),
        call("Read", json!({"file_path": path("missing.txt")})),
        call("Read", json!({"file_path": FOLDER})),
        call("Write", json!({"file_path": path("sub/new.txt"), "content": "new\n"})),
        call("Edit", json!({"file_path": path("sub/new.txt"), "old_string": "new", "new_string": "old"})),
        call("Edit", json!({"file_path": path("sub/new.txt"), "old_string": "new", "new_string": "old"})),
        call("Bash", json!({"command": format!("cat {FOLDER}/sub/new.txt; cat {FOLDER}/missing.txt")})),
    ];
    let ids: Vec<_> = (1..=calls.len()).map(|number| format!("call_{number}")).collect();
    let calls: Vec<_> = ids.iter().zip(&calls).map(|(id, (name, text))| (&**id, &**name, &**text)).collect();
    let story = story("absolute", api).places(place, "home", "tmp").told_folder();
    story.reply(asks(api, "", &calls)).reply(answer(api, "Done.")).run()
}

#[test]
fn absolute_paths_of_the_workspace_come_back_relative() {
    for api in BOTH {
        let outcome = absolute(api, "work");
        outcome.code(0).stdout("Done.\n").request_count(2).file("sub/new.txt", "old\n");
        let results = results(api, &outcome.body(2));
        let expected = [
            (NOTES, false),
            ("there is no file missing.txt, and no name like it in .", true),
            (". is a directory, not a file; it holds: notes.txt, other.txt", false),
            ("created sub/new.txt (4 bytes)", false),
            ("edited sub/new.txt (1 replacement at line 1)", false),
        ];
        let found: Vec<_> = results.iter().map(|(_, text, is_error)| (text.as_str(), *is_error)).collect();
        outcome.equal(&found[..2], &expected[..2]).equal(&found[3..5], &expected[3..]);
        outcome.equal(found[2], (expected[2].0, true));
        outcome.equal(found[5].0.starts_with("old_string does not occur in sub/new.txt"), true);
        fails_to_open(&outcome, found[6].0, "old\ncat: ", "./missing.txt");
        // But for the model's own words the requests are those of any other folder.
        let elsewhere = absolute(api, "else/where");
        let neutral = |outcome: &Outcome| outcome.sent(2).replace(outcome.folder.to_str().unwrap(), FOLDER);
        outcome.equal(neutral(&outcome), neutral(&elsewhere));
        let own_words = outcome.sent(2).matches(outcome.folder.to_str().unwrap()).count();
        outcome.equal(own_words, 8);
    }
}

#[test]
fn recorded_exchanges_give_equal_requests_in_every_run() {
    for folder in ["fixtures/requests/thinking", "fixtures/dates/messages"] {
        let run = |place: &str| {
            let story = story("again", Api::Anthropic).places(place, "home", "tmp").env("COTTER_NOW", "0");
            exchange(folder).into_iter().fold(story, Story::reply).run()
        };
        let (first, second) = (run("one"), run("some/where/else"));
        for number in 1..=3 {
            first.equal(first.sent(number), second.sent(number));
        }
    }
}
