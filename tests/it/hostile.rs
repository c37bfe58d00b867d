//! Replies and prompts that no sound server or user would send: thousands of calls, values and pieces, names that
//! stand twice, NUL characters. What comes of them is bounded, and what is sent next any server takes.
//!
//! What takes time or memory that grows faster than the reply does is beyond the deadline or the limit by far.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::check::Api;
use crate::server::Reply;
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, last_text, results};

const MANY: usize = 10_000;
/// Enough to be seen where each is compared with all others again and again.
const SOME: usize = 2500;

fn story(name: &str, api: Api) -> Story {
    Story::new(&format!("hostile {name} {api:?}")).api(api)
}

/// A run that may not have more than so much memory.
fn run_within(mebibytes: u64, story: Story) -> Outcome {
    let running = story.start();
    let bytes = Some(mebibytes << 20);
    let pid = Pid::from_raw(running.pid().try_into().unwrap());
    prlimit(pid, Resource::As, Rlimit { current: bytes, maximum: bytes }).unwrap();
    running.finish()
}

/// So many calls of one reply, with these ids.
fn calls(api: Api, count: usize, id: impl Fn(usize) -> String) -> Reply {
    let ids: Vec<String> = (0..count).map(id).collect();
    let inputs: Vec<String> = (0..count)
        .map(|days| json!({"datetime": "2026-01-01", "duration": days, "unit": "days"}).to_string())
        .collect();
    let calls: Vec<_> =
        ids.iter().zip(&inputs).map(|(id, input)| (&**id, "add_duration_to_datetime", &**input)).collect();
    asks(api, "", &calls)
}

/// Ids that are missing, that all are one, and of which half are those that are made for the other half.
#[test]
fn each_of_thousands_of_calls_has_one_result_whatever_its_id() {
    type Id = fn(usize) -> String;
    let ids: [(&str, usize, Id); 3] =
        [
            ("missing", SOME, |_| String::new()),
            ("equal", SOME, |_| "call_7".to_owned()),
            ("taken", MANY, |at| {
                if at < MANY / 2 { format!("call_{}", at + MANY / 2 + 1) } else { String::new() }
            }),
        ];
    for (name, count, id) in ids {
        let api = if name == "equal" { Api::Anthropic } else { Api::OpenAi };
        let story = story(name, api).args(&["-p", "Count."]);
        let outcome = story.reply(calls(api, count, id)).reply(answer(api, "Counted.")).run();
        outcome.code(0).stdout("Counted.\n");
        let results = results(api, &outcome.body(2));
        outcome.equal(results.len(), count);
        for (at, day) in [(0, "2026-01-01 (Thursday)"), (SOME - 1, "2032-11-04 (Thursday)")] {
            outcome.equal((results[at].1.as_str(), results[at].2), (day, false));
        }
    }
}

/// Each event of a growing reply once went over all of its blocks, and over all that had been told: minutes.
#[test]
fn thousands_of_calls_are_told_while_they_come() {
    for api in BOTH {
        let args =
            ["-p", "Count.", "--verbose", "--output-format", "stream-json", "--include-partial-messages"];
        let story = story("events", api).args(&args).reply(calls(api, SOME, |at| format!("c{at}")));
        let outcome = story.reply(answer(api, "Counted.")).run();
        outcome.code(0);
        let text = String::from_utf8(outcome.stdout.clone()).unwrap();
        let has = |line: &&str, what: &str| line.contains(what);
        let count = |what| text.lines().filter(|line| has(line, what)).count();
        let starts = count(r#""type":"content_block_start""#);
        outcome.equal((starts, count(r#""type":"tool_result""#)), (SOME + 1, SOME));
    }
}

/// Each piece once had all the reasoning before it joined anew: with 30,000 pieces, minutes.
#[test]
fn reasoning_in_thousands_of_items_is_told_while_it_comes() {
    let items = (0..30_000).map(|index| {
        let detail = json!([{"type": "reasoning.text", "index": index, "text": "x"}]);
        json!({"choices": [{"index": 0, "delta": {"reasoning_details": detail}}]})
    });
    let end = json!({"choices": [{"index": 0, "delta": {"content": "42"}, "finish_reason": "stop"}]});
    let events: String = items.chain([end]).map(|event| format!("data: {event}\n\n")).collect();
    let reply = Reply::new(200, "text/event-stream", events + "data: [DONE]\n\n");
    let args = ["-p", "Think.", "--verbose", "--output-format", "stream-json", "--include-partial-messages"];
    let outcome = story("reasoning", Api::OpenAi).args(&args).reply(reply).run();
    outcome.code(0);
    let told: String = String::from_utf8(outcome.stdout.clone())
        .unwrap()
        .lines()
        .filter_map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            Some(event["event"]["delta"]["thinking"].as_str()?.to_owned())
        })
        .collect();
    outcome.equal(told, vec!["x"; 30_000].join("\n"));
}

/// Parsed, a value takes some forty times the two bytes that it is written in: ten megabytes of them took 740 MiB.
#[test]
fn more_values_than_memory_is_for_are_refused() {
    let many = format!("[{}0]", "0,".repeat(5_000_000));
    for api in BOTH {
        let arguments = format!(r#"{{"file_path":{many}}}"#);
        let calls = [("call_1", "Read", arguments.as_str())];
        let reply = asks(api, "", &calls);
        let outcome = run_within(
            200,
            story("values", api).args(&["-p", "Go."]).reply(reply).reply(answer(api, "Done.")),
        );
        outcome.code(0).stdout("Done.\n");
        let error = results(api, &outcome.body(2)).remove(0).1;
        let start =
            "the arguments are more than 500,000 values, so the call was not run: {\"file_path\":[0,0,";
        outcome.equal(error.starts_with(start), true);

        let event = format!("data: {{\"type\":\"ping\",\"choices\":[],\"x\":{many}}}\n\n");
        let reply = Reply::new(200, "text/event-stream", event);
        let outcome = run_within(200, story("values of an event", api).args(&["-p", "Go."]).reply(reply));
        let start = "the API's reply cannot be read: it holds more than 500,000 values: {\"type\":\"ping\",";
        outcome.code(7).stderr_has(start);
    }
}

/// Which of the two a server means differs, and some refuse both: what goes back is what was run.
#[test]
fn a_name_that_stands_twice_goes_back_once_as_it_was_run() {
    for api in BOTH {
        let input = r#"{"file_path":"first.txt","limit":1,"file_path":"second.txt"}"#;
        let files = [("first.txt", "one\n"), ("second.txt", "two\n")];
        let args = ["-p", "Go.", "--disallowedTools", "Read(first.txt)"];
        let story = story("twice", api).files(&files).args(&args);
        let outcome =
            story.reply(asks(api, "", &[("call_1", "Read", input)])).reply(answer(api, "Done.")).run();
        outcome.code(0).stdout("Done.\n");
        outcome.equal(results(api, &outcome.body(2)), vec![("call_1".into(), "two\n".into(), false)]);
        outcome.equal(sent_arguments(api, &outcome), r#"{"file_path":"second.txt","limit":1}"#.to_owned());
    }
}

/// The arguments of the first call as they went back.
fn sent_arguments(api: Api, outcome: &Outcome) -> String {
    let body = outcome.sent(2);
    let from =
        if api == Api::Anthropic { r#""name":"Read","input":"# } else { r#""name":"Read","arguments":"# };
    let text = body.split_once(from).unwrap().1;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&serde_json::value::RawValue>();
    let raw = values.next().unwrap().unwrap().get();
    if api == Api::Anthropic { raw.to_owned() } else { serde_json::from_str(raw).unwrap() }
}

/// Many servers refuse a request that holds one, and with it all that follow. The strict server does too.
#[test]
fn no_nul_is_sent_from_wherever_it_comes() {
    let description = r#"{"name":"odd","description":"a\u0000b","input_schema":{"type":"object",
        "properties":{"x":{"type":"string","description":"c\u0000d"}}}}"#;
    for api in BOTH {
        let id = if api == Api::Anthropic { "toolu_1" } else { "call\0 1" };
        let calls = [(id, "Read", r#"{"file_path":"no\u0000thing","\u0000":"\\u0000"}"#)];
        let story = story("nul", api).stdin("one\0two").args(&["-p", "--tool", "./odd"]);
        let story = story.executable("odd", "#!/bin/sh\n").file("odd.json", description);
        let outcome = story.reply(asks(api, "say\0ing", &calls)).reply(answer(api, "a\0b")).run();
        outcome.code(0).stdout("a\0b\n");
        outcome.equal(last_text(&outcome.body(1)), "one\u{fffd}two".to_owned());
        let sent = r#"{"file_path":"no\ufffdthing","\ufffd":"\\u0000"}"#;
        outcome.equal(sent_arguments(api, &outcome), sent.to_owned());
        outcome.equal(outcome.sent(2).contains("say\u{fffd}ing"), true);
    }
}
