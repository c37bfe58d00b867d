//! The events of `--output-format stream-json`: whole lines, for both APIs, in good runs and in bad ones.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::check::Api;
use crate::images::PNG;
use crate::server::{Ending, Reply, Server};
use crate::stage::{Stage, requests, run, says};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, ends, messages};

/// A run that asks the same model over either API and prints events.
fn story(api: Api) -> Story {
    let story = Story::new("events").api(api).file("notes.txt", "1932\n");
    story.args(&["-p", "Hi.", "--model", "test-model", "--tools", "Read", "--output-format", "stream-json"])
}

/// The lines of a run, with what differs from run to run put into a fixed form. Every line has an id of its
/// own and the same session.
#[track_caller]
fn lines(outcome: &Outcome) -> Vec<Value> {
    let text = String::from_utf8(outcome.stdout.clone()).expect("standard output is text");
    assert!(text.ends_with('\n'), "{}", outcome.report());
    let mut lines: Vec<Value> = text
        .split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let mut ids = HashMap::new();
    let session = lines[0]["session_id"].clone();
    assert_eq!(session.as_str().map(str::len), Some(36), "{}", outcome.report());
    for line in &mut lines {
        assert_eq!(line["session_id"], session, "{}", outcome.report());
        let uuid = line["uuid"].take();
        assert_eq!(uuid.as_str().map(str::len), Some(36), "{}", outcome.report());
        assert_eq!(ids.insert(uuid, 0), None, "{}", outcome.report());
        for member in ["uuid", "session_id"] {
            line.as_object_mut().unwrap().remove(member);
        }
        for duration in ["duration_ms", "duration_api_ms"] {
            if line[duration].is_u64() {
                line[duration] = json!(0);
            }
        }
    }
    name_messages(&mut lines);
    lines
}

/// Gives messages the ids `m1`, `m2` … in the order in which they come.
fn name_messages(lines: &mut [Value]) {
    let mut names: Vec<String> = Vec::new();
    for line in lines {
        for place in ["/message/id", "/event/message/id"] {
            let Some(Value::String(id)) = line.pointer_mut(place) else { continue };
            assert!(id.starts_with("msg_") && id.len() == 36, "{id}");
            let known = names.iter().position(|name| name == id);
            let at = known.unwrap_or_else(|| {
                names.push(id.clone());
                names.len() - 1
            });
            *id = format!("m{}", at + 1);
        }
    }
}

/// The tokens that a made-up reply takes.
fn usage(api: Api, replies: u64) -> Value {
    let (input, output) = if api == Api::Anthropic { (2500 * replies, 40 * replies) } else { (0, 0) };
    json!({
        "input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": output,
    })
}

fn init(outcome: &Outcome, api: Api) -> Value {
    let source = if api == Api::Anthropic { "ANTHROPIC_API_KEY" } else { "none" };
    json!({
        "type": "system", "subtype": "init", "cwd": outcome.folder, "tools": ["Read"], "mcp_servers": [],
        "model": "test-model", "permissionMode": "default", "slash_commands": [], "apiKeySource": source,
        "claude_code_version": env!("CARGO_PKG_VERSION"), "output_style": "default", "agents": [],
        "skills": [], "plugins": [],
    })
}

fn assistant(api: Api, id: &str, block: Value, stop_reason: Option<&str>) -> Value {
    json!({"type": "assistant", "parent_tool_use_id": null, "message": {
        "id": id, "type": "message", "role": "assistant", "model": "test-model", "content": [block],
        "stop_reason": stop_reason, "stop_sequence": null, "usage": usage(api, 1),
    }})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn user(id: &str, content: Value, is_error: bool) -> Value {
    let result = json!({
        "tool_use_id": id, "type": "tool_result", "content": content, "is_error": is_error,
    });
    json!({"type": "user", "message": {"role": "user", "content": [result]}, "parent_tool_use_id": null})
}

/// The result of a run that went well.
fn result(api: Api, turns: u64, text: &str) -> Value {
    let total = usage(api, turns);
    json!({
        "type": "result", "subtype": "success", "is_error": false, "api_error_status": null,
        "duration_ms": 0, "duration_api_ms": 0, "num_turns": turns, "result": text,
        "stop_reason": "end_turn", "total_cost_usd": null, "usage": total,
        "modelUsage": {"test-model": {
            "inputTokens": total["input_tokens"], "outputTokens": total["output_tokens"],
            "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "webSearchRequests": 0,
            "costUSD": null,
        }},
        "permission_denials": [], "terminal_reason": "completed",
    })
}

fn read() -> (&'static str, &'static str, &'static str) {
    ("call_1", "Read", r#"{"file_path": "notes.txt"}"#)
}

/// The events inside of the `stream_event` lines.
fn told(lines: &[Value]) -> Vec<Value> {
    lines.iter().filter(|line| line["type"] == "stream_event").map(|line| line["event"].clone()).collect()
}

fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn a_run_with_a_call_is_told_line_by_line() {
    for api in BOTH {
        let failing = ("call_2", "Read", r#"{"file_path": "missing.txt"}"#);
        let replies = [asks(api, "Let me look.", &[read(), failing]), answer(api, "In 1932.")];
        let outcome = replies.into_iter().fold(story(api), Story::reply).run();
        outcome.code(0).stderr("");
        let call = |id: &str, path: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": path}});
        let found = lines(&outcome);
        let why = found[5]["message"]["content"][0]["content"].as_str().unwrap().to_owned();
        assert!(why.contains("missing.txt"), "{why}");
        let expected = [
            init(&outcome, api),
            assistant(api, "m1", text("Let me look."), None),
            assistant(api, "m1", call("call_1", "notes.txt"), None),
            assistant(api, "m1", call("call_2", "missing.txt"), Some("tool_use")),
            user("call_1", json!("1932\n"), false),
            user("call_2", json!(why), true),
            assistant(api, "m2", text("In 1932."), Some("end_turn")),
            result(api, 2, "In 1932."),
        ];
        outcome.equal(found, expected.to_vec());
    }
}

#[test]
fn json_is_the_last_of_these_lines_alone() {
    for api in BOTH {
        let replies = [asks(api, "", &[read()]), answer(api, "In 1932.")];
        let outcome =
            replies.into_iter().fold(story(api).args(&["--output-format", "json"]), Story::reply).run();
        outcome.code(0).stderr("");
        outcome.equal(lines(&outcome), vec![result(api, 2, "In 1932.")]);
    }
}

#[test]
fn the_result_in_readme_has_the_members_of_a_real_one() {
    fn members(value: &Value) -> Vec<&String> {
        value.as_object().unwrap().keys().collect()
    }
    let readme = include_str!("../../README.md");
    let start = readme.find("```json\n{\"type\":\"result\"").expect("README shows a result");
    let block = readme[start..].strip_prefix("```json\n").unwrap().split("```").next().unwrap();
    let shown: Value = serde_json::from_str(block).unwrap();
    let outcome =
        story(Api::OpenAi).args(&["--output-format", "json"]).reply(answer(Api::OpenAi, "1932.")).run();
    let real = outcome.json();
    assert_eq!(members(&shown), members(&real));
    assert_eq!(members(&shown["usage"]), members(&real["usage"]));
    assert_eq!(members(&shown["modelUsage"]["…"]), members(&real["modelUsage"]["test-model"]));
}

#[test]
fn a_growing_reply_is_told_in_the_same_events_by_both_apis() {
    let mut by_api = Vec::new();
    for api in BOTH {
        let replies = [asks(api, "Let me look.", &[read()]), answer(api, "In 1932.")];
        let story = story(api).args(&["--include-partial-messages"]);
        let outcome = replies.into_iter().fold(story, Story::reply).run();
        outcome.code(0).stderr("");
        let found = lines(&outcome);
        let message = |id: &str| {
            json!({"type": "message_start", "message": {
                "id": id, "type": "message", "role": "assistant", "model": "test-model", "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0},
            }})
        };
        let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
        let end = |reason: &str| {
            json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
                "usage": usage(api, 1)})
        };
        let call = json!({"type": "tool_use", "id": "call_1", "name": "Read", "input": {}});
        let expected = [
            message("m1"),
            start(0, text("")),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": "Let me look."}}),
            stop(0),
            start(1, call),
            json!({"type": "content_block_delta", "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": read().2}}),
            stop(1),
            end("tool_use"),
            json!({"type": "message_stop"}),
            message("m2"),
            start(0, text("")),
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": "In 1932."}}),
            stop(0),
            end("end_turn"),
            json!({"type": "message_stop"}),
        ];
        outcome.equal(joined(&told(&found)), expected.to_vec());
        // The whole messages follow, with the same ids, as they come without the flag.
        let whole: Vec<Value> = found.into_iter().filter(|line| line["type"] != "stream_event").collect();
        let places = [&whole[1]["message"]["id"], &whole[4]["message"]["id"]];
        assert_eq!(places, [&json!("m1"), &json!("m2")]);
        assert_eq!(whole.len(), 6);
        by_api.push(whole);
    }
    assert_eq!(by_api[0][3], by_api[1][3]);
}

/// The events with neighbouring deltas of a block joined: how a reply is cut depends on the network.
fn joined(events: &[Value]) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for event in events {
        let member = ["text", "thinking", "partial_json"]
            .into_iter()
            .find(|member| event["delta"][member].is_string());
        match (joined.last_mut(), member) {
            (Some(last), Some(member))
                if last["index"] == event["index"] && last["delta"]["type"] == event["delta"]["type"] =>
            {
                let both = format!(
                    "{}{}",
                    last["delta"][member].as_str().unwrap(),
                    event["delta"][member].as_str().unwrap()
                );
                last["delta"][member] = json!(both);
            }
            _ => joined.push(event.clone()),
        }
    }
    joined
}

/// A reply with thinking before its text, as either API sends it.
fn thinks(api: Api) -> Reply {
    if api == Api::Anthropic {
        let thinking = json!({"type": "thinking", "thinking": "Hm, 1932?", "signature": "c2ln"});
        let end = json!({"stop_reason": "end_turn", "stop_sequence": null});
        return messages(&[thinking, text("In 1932.")], &end);
    }
    let deltas = [
        json!({"reasoning_content": "Hm, "}),
        json!({"reasoning_content": "1932?"}),
        json!({"content": "In "}),
        json!({"content": "1932."}),
    ];
    let chunks = deltas.map(|delta| json!({"choices": [{"index": 0, "delta": delta}]}));
    let mut body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    body.push_str("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    Reply::new(200, "text/event-stream", body + "data: [DONE]\n\n")
}

#[test]
fn thinking_is_a_block_of_its_own_in_both_apis() {
    for api in BOTH {
        let outcome = story(api).args(&["--include-partial-messages"]).reply(thinks(api)).run();
        let found = lines(&outcome);
        let signature = if api == Api::Anthropic { "c2ln" } else { "" };
        let blocks: Vec<&Value> =
            of_type(&found, "assistant").into_iter().map(|line| &line["message"]["content"][0]).collect();
        let thinking = json!({"type": "thinking", "thinking": "Hm, 1932?", "signature": signature});
        outcome.equal(blocks, vec![&thinking, &text("In 1932.")]);
        let kinds: Vec<Value> = joined(&told(&found))
            .iter()
            .map(|event| match &event["delta"]["type"] {
                Value::Null => event["type"].clone(),
                kind => kind.clone(),
            })
            .collect();
        let mut expected = vec!["message_start", "content_block_start", "thinking_delta"];
        if api == Api::Anthropic {
            expected.push("signature_delta");
        }
        expected.extend(["content_block_stop", "content_block_start", "text_delta", "content_block_stop"]);
        expected.extend(["message_delta", "message_stop"]);
        outcome.equal(kinds, expected.into_iter().map(Value::from).collect());
    }
}

#[test]
fn the_image_of_a_result_is_told_with_it() {
    for api in BOTH {
        let call = ("call_1", "Read", r#"{"file_path": "bridge.png"}"#);
        let outcome = story(api)
            .file("bridge.png", PNG)
            .reply(asks(api, "", &[call]))
            .reply(answer(api, "A bridge."))
            .run();
        outcome.code(0);
        let found = lines(&outcome);
        let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, PNG);
        let content = json!([
            text("bridge.png: PNG image, 2 x 1 pixels, 72 bytes"),
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}},
        ]);
        outcome.equal(of_type(&found, "user"), vec![&user("call_1", content, false)]);
    }
}

fn overloaded(api: Api) -> Reply {
    let body = match api {
        Api::Anthropic => json!({"type": "error", "error": {"type": "overloaded_error", "message": "No."}}),
        _ => json!({"error": {"message": "No."}}),
    };
    Reply::new(529, "application/json", body.to_string()).header("retry-after-ms: 1")
}

#[test]
fn each_wait_before_another_attempt_is_told() {
    for api in BOTH {
        let outcome = story(api).reply(overloaded(api)).reply(answer(api, "In 1932.")).run();
        outcome.code(0);
        let retry = json!({
            "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 4, "retry_delay_ms": 1,
            "error_status": 529, "error": "server_error",
        });
        let expected = [
            init(&outcome, api),
            retry,
            assistant(api, "m1", text("In 1932."), Some("end_turn")),
            result(api, 1, "In 1932."),
        ];
        outcome.equal(lines(&outcome), expected.to_vec());
    }
}

#[test]
fn a_dead_attempt_is_no_message_and_the_next_one_begins_anew() {
    for api in BOTH {
        let whole = answer(api, "In 1932, and no other year.");
        let broken = whole.clone().cut(whole.body().len() - 120, Ending::Close);
        let story = story(api).args(&["--include-partial-messages"]);
        let outcome = story.reply(broken).reply(answer(api, "In 1932.")).run();
        outcome.code(0);
        let found = lines(&outcome);
        let said = of_type(&found, "assistant");
        outcome.equal(said, vec![&assistant(api, "m2", text("In 1932."), Some("end_turn"))]);
        let retries = found.iter().position(|line| line["subtype"] == "api_retry").unwrap();
        let before = told(&found[..retries]);
        assert_eq!(before[0]["message"]["id"], "m1", "{}", outcome.report());
        assert!(before.iter().all(|event| event["type"] != "message_stop"), "{}", outcome.report());
        let after = told(&found[retries..]);
        assert_eq!(after[0]["message"]["id"], "m2", "{}", outcome.report());
        let texts: String = after.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
        assert_eq!(texts, "In 1932.");
    }
}

#[test]
fn what_the_api_refuses_is_told_in_the_models_place() {
    let refused = |status: u16| Reply::new(status, "application/json", r#"{"error":{"message":"No."}}"#);
    for (status, code, word, class) in [
        (401, 3, "authentication_failed", "credentials"),
        (402, 4, "billing_error", "refused"),
        (400, 4, "invalid_request", "refused"),
        (429, 5, "rate_limit", "overloaded"),
        (500, 5, "server_error", "overloaded"),
    ] {
        for api in BOTH {
            let outcome = story(api).args(&["--max-retries", "0"]).reply(refused(status)).run();
            outcome.code(code);
            let found = lines(&outcome);
            let message = outcome.stderr.trim_end().strip_prefix("cotter: ").unwrap();
            let expected = json!([{
                "type": "assistant", "parent_tool_use_id": null, "error": word,
                "message": {
                    "id": "m1", "type": "message", "role": "assistant", "model": "<synthetic>",
                    "content": [text(message)], "stop_reason": "stop_sequence", "stop_sequence": "",
                    "usage": {"input_tokens": 0, "cache_creation_input_tokens": 0,
                        "cache_read_input_tokens": 0, "output_tokens": 0},
                },
            }, {
                "type": "result", "subtype": "error_during_execution", "is_error": true,
                "api_error_status": status, "duration_ms": 0, "duration_api_ms": 0, "num_turns": 0,
                "result": "", "stop_reason": null, "total_cost_usd": 0, "modelUsage": {},
                "usage": {"input_tokens": 0, "cache_creation_input_tokens": 0,
                    "cache_read_input_tokens": 0, "output_tokens": 0},
                "permission_denials": [], "terminal_reason": "api_error", "errors": [message],
                "error": {"class": class, "code": code, "message": message},
            }]);
            outcome.equal(json!(found[1..]), expected);
        }
    }
}

#[test]
fn what_was_said_before_a_cut_is_told_and_kept() {
    for api in BOTH {
        let word = if api == Api::Anthropic { "max_tokens" } else { "length" };
        let story = story(api).args(&["--include-partial-messages"]);
        let outcome = story.reply(ends(api, "It was in", &[], word)).run();
        outcome.code(8);
        let found = lines(&outcome);
        let said = of_type(&found, "assistant");
        outcome.equal(said, vec![&assistant(api, "m1", text("It was in"), Some("max_tokens"))]);
        let last = found.last().unwrap();
        assert_eq!([&last["result"], &last["stop_reason"]], ["It was in", "max_tokens"]);
        assert_eq!(told(&found).last().unwrap()["type"], "message_stop");
    }
}

#[test]
fn calls_of_a_reply_that_was_cut_have_their_results_too() {
    for api in BOTH {
        let word = if api == Api::Anthropic { "max_tokens" } else { "length" };
        let outcome = story(api).reply(ends(api, "", &[read()], word)).reply(answer(api, "In 1932.")).run();
        outcome.code(0);
        let found = lines(&outcome);
        assert_eq!(found[1]["message"]["stop_reason"], "max_tokens");
        let block = &found[2]["message"]["content"][0];
        assert_eq!((&block["tool_use_id"], &block["is_error"]), (&json!("call_1"), &json!(true)));
    }
}

#[test]
fn the_call_that_ends_a_run_has_its_result_before_the_end() {
    for api in BOTH {
        let write = ("call_1", "Write", r#"{"file_path": "a", "content": "b"}"#);
        let story = story(api).args(&["--tools", "Write", "--disallowedTools", "Write(a)"]);
        let story = story.args(&["--permission-mode", "dontAsk"]);
        let outcome = story.reply(asks(api, "", &[write])).run();
        outcome.code(11);
        let found = lines(&outcome);
        let kinds: Vec<&Value> = found.iter().map(|line| &line["type"]).collect();
        assert_eq!(kinds, ["system", "assistant", "user", "result"], "{}", outcome.report());
        assert_eq!(found[0]["permissionMode"], "dontAsk");
        assert_eq!(found[3]["permission_denials"][0]["tool_use_id"], "call_1");
        assert_eq!(found[3]["error"]["class"], "permission");
    }
}

#[test]
fn a_call_that_was_printed_as_text_is_told_as_a_call() {
    let printed = r#"{"name": "Read", "arguments": {"file_path": "notes.txt"}}"#;
    for api in BOTH {
        let story = story(api).args(&["--include-partial-messages", "--text-tool-calls", "on"]);
        let outcome = story.reply(answer(api, printed)).reply(answer(api, "In 1932.")).run();
        outcome.code(0);
        let found = lines(&outcome);
        let first = &of_type(&found, "assistant")[0]["message"]["content"];
        assert_eq!(first[0]["input"], json!({"file_path": "notes.txt"}), "{}", outcome.report());
        let starts: Vec<Value> = told(&found)
            .iter()
            .filter(|event| event["type"] == "content_block_start")
            .map(|event| event["content_block"]["type"].clone())
            .collect();
        assert_eq!(starts, ["tool_use", "text"], "{}", outcome.report());
    }
}

#[test]
fn an_id_that_comes_twice_is_replaced_before_it_is_told() {
    for api in BOTH {
        let story = story(api).args(&["--include-partial-messages"]);
        let twice = [asks(api, "", &[read()]), asks(api, "", &[read()]), answer(api, "In 1932.")];
        let outcome = twice.into_iter().fold(story, Story::reply).run();
        outcome.code(0);
        let found = lines(&outcome);
        let started: Vec<Value> = told(&found)
            .iter()
            .filter_map(|event| Some(json!(event["content_block"]["id"].as_str()?)))
            .collect();
        assert_eq!(started, ["call_1", "call_2"], "{}", outcome.report());
        let results: Vec<&Value> = of_type(&found, "user")
            .iter()
            .map(|line| &line["message"]["content"][0]["tool_use_id"])
            .collect();
        assert_eq!(results, ["call_1", "call_2"], "{}", outcome.report());
    }
}

#[test]
fn a_reply_in_one_document_is_told_when_it_is_there() {
    let document = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "In 1932."}}]});
    let reply = Reply::new(200, "application/json", document.to_string());
    let outcome = story(Api::OpenAi).args(&["--include-partial-messages"]).reply(reply).run();
    let events = told(&lines(&outcome));
    let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
    let expected = [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(kinds, expected, "{}", outcome.report());
}

#[test]
fn whatever_is_said_stays_one_line_of_json() {
    let odd = "a\0b\u{1b}[31m\u{85}\u{2028}\u{2029}\u{202e}\r\n\u{7f}\u{feff}\u{10ffff}";
    for api in BOTH {
        let arguments = r#"{"file_path": "odd.txt", "limit": 2e0}"#;
        let story = story(api).file("odd.txt", odd).args(&["--include-partial-messages"]);
        let surrogate = answer(api, "lone ⌂").replace("⌂", "\\ud800");
        let outcome = story.reply(asks(api, odd, &[("call_1", "Read", arguments)])).reply(surrogate).run();
        outcome.code(0);
        let found = lines(&outcome);
        let said = &of_type(&found, "assistant")[0]["message"]["content"][0]["text"];
        assert_eq!(said, odd, "{}", outcome.report());
        assert_eq!(found.last().unwrap()["result"], "lone \u{fffd}");
    }
}

#[test]
fn a_key_that_a_result_holds_is_not_told() {
    let call = ("call_1", "Read", r#"{"file_path": "key.txt"}"#);
    let story = story(Api::Anthropic).file("key.txt", "the key is sk-quoted-key-1\n");
    let story = story.env("ANTHROPIC_API_KEY", "sk-quoted-key-1");
    let outcome = story.reply(asks(Api::Anthropic, "", &[call])).reply(answer(Api::Anthropic, "Yes.")).run();
    outcome.code(0);
    let found = lines(&outcome);
    assert_eq!(of_type(&found, "user")[0], &user("call_1", json!("the key is (secret)\n"), false));
}

#[test]
fn words_about_the_run_leave_the_events_alone() {
    for flags in [&["--verbose"][..], &["-q"], &["--verbose", "--include-partial-messages"]] {
        let api = Api::OpenAi;
        let outcome = story(api).args(flags).reply(overloaded(api)).reply(answer(api, "In 1932.")).run();
        outcome.code(0);
        assert_eq!(outcome.stderr.is_empty(), flags == ["-q"], "{}", outcome.report());
        let found = lines(&outcome);
        let whole: Vec<&Value> = found.iter().filter(|line| line["type"] != "stream_event").collect();
        assert_eq!(whole.len(), 4, "{}", outcome.report());
        assert_eq!(whole[3], &result(api, 1, "In 1932."));
    }
}

#[test]
fn a_result_goes_into_the_file_and_ends_the_events_too() {
    let api = Api::OpenAi;
    let outcome = story(api).args(&["-o", "out.json"]).reply(answer(api, "In 1932.")).run();
    outcome.code(0).stderr("");
    let stdout = String::from_utf8(outcome.stdout.clone()).unwrap();
    assert_eq!(lines(&outcome).len(), 3);
    outcome.file("out.json", format!("{}\n", stdout.lines().last().unwrap()));
}

#[test]
fn growing_replies_are_told_in_events_alone() {
    for format in ["text", "json"] {
        let stage = Stage::new("no events");
        let args = ["-p", "Hi.", "--include-partial-messages", "--output-format", format];
        let expected = "cotter: --include-partial-messages needs --output-format stream-json\n";
        run(&mut stage.command(&args)).code(2).stderr(expected);
    }
}

#[test]
fn a_reader_that_leaves_amid_the_events_ends_the_run_quietly() {
    let stage = Stage::new("leaves");
    // The reply is held back until the reader has gone.
    let call = crate::stage::calls("call_1", "Bash", &json!({"command": "touch made.txt"}));
    let gate = std::sync::Arc::default();
    let server = Server::start(vec![call.held_by(&gate)]);
    let args = ["-p", "Hi.", "--output-format", "stream-json", "--include-partial-messages"];
    let mut child = stage.ask(server.port(), &args).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with(r#"{"type":"system","subtype":"init""#), "{line}");
    drop(reader);
    gate.open();
    let ran = crate::stage::ran(crate::story::finish(child, None), "leaves".to_owned());
    ran.code(1).stderr("");
    assert!(!stage.path("made.txt").exists());
    requests(server);
}

#[test]
fn a_reader_that_leaves_with_the_answer_has_had_what_it_wanted() {
    let stage = Stage::new("has left");
    let gate = std::sync::Arc::default();
    let server = Server::start(vec![says(&["Done."]).held_by(&gate)]);
    let mut child =
        stage.ask(server.port(), &["-p", "Hi.", "--output-format", "stream-json"]).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    gate.open();
    crate::stage::ran(crate::story::finish(child, None), "has left".to_owned()).code(0).stderr("");
    requests(server);
}
