//! The first stage of the main job: one request, the first call of the reply is run, and its raw result is
//! all that is printed. A reply without calls is printed as text.

use serde_json::json;

use crate::check::Api;
use crate::server::{Framing, Reply};
use crate::story::{FOLDER, Outcome, Story};
use crate::talk::{BOTH, answer, asks, ends};

const PROMPT: &str = "What is the content of apple.py? Print exact file contents without backticks.";
const APPLE: &str = "def apple(count):\n    return \"🍎\" * count\n";

/// Each form that a reply with one call of Read for apple.py takes, with the API it belongs to.
const FORMS: [(Api, &str); 4] = [
    (Api::OpenRouter, "document"),
    (Api::OpenAi, "stream"),
    (Api::Anthropic, "messages"),
    (Api::Anthropic, "messages-document"),
];

fn story(name: &str, api: Api) -> Story {
    Story::new(name).api(api).args(&["-p", PROMPT, "--single-step"])
}

/// The reply of one form.
fn form(name: &str) -> Reply {
    Reply::file(&format!("fixtures/single-step/{name}/01.response.http"))
}

/// A run in which apple.py holds these bytes, and this reply comes.
fn step(api: Api, reply: Reply) -> Outcome {
    story("step", api).file("apple.py", APPLE).reply(reply).run()
}

#[test]
fn the_bytes_of_the_file_are_printed_and_nothing_else() {
    let long_line = "x".repeat(100_000);
    let large: Vec<u8> =
        (0..130_000).flat_map(|line| format!("{line}: a line of apples\n").into_bytes()).collect();
    assert!(large.len() > 3_000_000);
    let contents: [&[u8]; 11] = [
        APPLE.as_bytes(),
        b"",
        b"\n",
        b"no line end at the last line",
        b"one\r\ntwo\r\n\r\nthree\r\n",
        b"\n\n  blanks around  \n\n\n",
        b"latin-1: caf\xe9, cut: \xf0\x9f, alone: \x80\xff\n",
        b"\xef\xbb\xbfa byte order mark\n",
        b"\xff\xfeU\x00T\x00F\x00\n\x00",
        long_line.as_bytes(),
        &large,
    ];
    for (api, name) in FORMS {
        for bytes in contents {
            let outcome = story(name, api).file("apple.py", bytes).reply(form(name)).run();
            outcome.code(0).stdout(bytes).stderr("").request_count(1);
        }
    }
}

#[test]
fn the_one_request_holds_the_prompt_and_the_tools() {
    for (api, name) in FORMS {
        let outcome = step(api, form(name));
        let body = outcome.body(1);
        let messages = body["messages"].as_array().unwrap();
        let user = messages.last().unwrap();
        let mark = json!({"type": "ephemeral"});
        let content = match api {
            Api::Anthropic => json!([{"type": "text", "text": PROMPT, "cache_control": mark}]),
            _ => json!(PROMPT),
        };
        outcome.equal(user, &json!({"role": "user", "content": content}));
        outcome.equal(messages.len(), if api == Api::Anthropic { 1 } else { 2 });
        let first = &body["tools"][0];
        let tool_name = if api == Api::Anthropic { &first["name"] } else { &first["function"]["name"] };
        outcome.equal(tool_name, &json!("Read"));
    }
}

#[test]
fn the_end_of_the_body_may_be_told_in_any_way() {
    for (api, name) in FORMS {
        for framing in [Framing::Chunked, Framing::Close] {
            step(api, form(name).framing(framing)).code(0).stdout(APPLE).stderr("");
        }
    }
}

#[test]
fn only_the_lines_asked_for_are_printed() {
    for api in BOTH {
        let call = ("call_1", "Read", r#"{"file_path": "apple.py", "offset": 2, "limit": 1}"#);
        step(api, asks(api, "", &[call])).code(0).stdout("    return \"🍎\" * count\n");
    }
}

#[test]
fn an_absolute_path_is_read_as_well() {
    for api in BOTH {
        let arguments = format!(r#"{{"file_path": "{FOLDER}/apple.py"}}"#);
        let reply = asks(api, "", &[("call_1", "Read", &arguments)]);
        let outcome = story("absolute", api).file("apple.py", APPLE).reply(reply).told_folder().run();
        outcome.code(0).stdout(APPLE);
    }
}

#[test]
fn a_reply_without_calls_is_printed_as_text() {
    for api in BOTH {
        step(api, answer(api, "I cannot see any file.\n\n")).code(0).stdout("I cannot see any file.\n");
    }
    let blocks = [json!({"type": "text", "text": "Two"}), json!({"type": "text", "text": "blocks."})];
    let reply = crate::talk::messages(&blocks, &json!({"stop_reason": "end_turn"}));
    step(Api::Anthropic, reply).code(0).stdout("Two\nblocks.\n").request_count(1);
}

#[test]
fn text_beside_a_call_is_not_printed() {
    for api in BOTH {
        let call = ("call_1", "Read", r#"{"file_path": "apple.py"}"#);
        step(api, asks(api, "Here it comes:", &[call])).code(0).stdout(APPLE);
    }
}

#[test]
fn of_several_calls_only_the_first_is_run() {
    for api in BOTH {
        let read = ("call_1", "Read", r#"{"file_path": "apple.py"}"#);
        let first = ("call_2", "Write", r#"{"file_path": "first.txt", "content": "one"}"#);
        let second = ("call_3", "Write", r#"{"file_path": "second.txt", "content": "two"}"#);
        let outcome = step(api, asks(api, "", &[read, first, second]));
        outcome.code(0).stdout(APPLE).request_count(1).no_file("first.txt").no_file("second.txt");
        let outcome = step(api, asks(api, "", &[first, second, read]));
        outcome.code(0).stdout("created first.txt (3 bytes)").request_count(1);
        outcome.file("first.txt", "one").no_file("second.txt");
    }
}

#[test]
fn any_tool_can_be_the_first() {
    let cases = [
        ("Bash", r#"{"command": "printf 'a\\nb'; echo c >&2"}"#, "a\nbc"),
        (
            "Edit",
            r#"{"file_path": "apple.py", "old_string": "🍎", "new_string": "🍏"}"#,
            "edited apple.py (1 replacement at line 2)",
        ),
        ("get_current_datetime", "{}", "2023-10-26T00:00:00+00:00 (Thursday)"),
        (
            "add_duration_to_datetime",
            r#"{"datetime": "2023-10-26", "duration": 103, "unit": "days"}"#,
            "2024-02-06 (Tuesday)",
        ),
    ];
    for api in BOTH {
        for (name, arguments, printed) in cases {
            let story = story(name, api).file("apple.py", APPLE).env("COTTER_NOW", "1698278400");
            let outcome = story.reply(asks(api, "", &[("call_1", name, arguments)])).run();
            outcome.code(0).stdout(printed).stderr("").request_count(1);
        }
    }
}

#[test]
fn a_call_that_fails_prints_nothing_and_is_no_success() {
    let cases = [
        (
            "Read",
            r#"{"file_path": "aple.py"}"#,
            "there is no file aple.py; the nearest names in . are: apple.py",
        ),
        ("Read", r#"{"file_path": "."}"#, ". is a directory, not a file; it holds: apple.py"),
        ("Bash", r#"{"command": "echo out; exit 3"}"#, "out\n  [exit code: 3]"),
        (
            "read_file",
            r#"{"path": "apple.py"}"#,
            "there is no tool \"read_file\": the tools are Read, Write, Edit, Glob, Grep, Bash, BashOutput, KillShell, get_current_datetime, \
             add_duration_to_datetime, get_exchange_rate",
        ),
        (
            "Read",
            r#"{"file_path": apple.py}"#,
            "the arguments are not a JSON object, so the call was not run: {\"file_path\": apple.py}",
        ),
    ];
    for api in BOTH {
        for (name, arguments, why) in cases {
            let outcome = step(api, asks(api, "", &[("call_1", name, arguments)]));
            outcome.code(1).stdout("").request_count(1);
            outcome.stderr(&format!("cotter: the call of {name} failed: {why}\n"));
        }
    }
}

#[test]
fn a_file_that_is_binary_is_refused() {
    let story = story("binary", Api::OpenAi).file("apple.py", b"\x7fELF\0\0\0\x01");
    story.reply(form("stream")).run().code(1).stdout("").stderr(
        "cotter: the call of Read failed: apple.py is a binary file of 8 bytes (ELF program or library); \
         only text and PNG, JPEG, GIF and WebP images can be read\n",
    );
}

#[test]
fn a_reply_that_was_cut_runs_no_call() {
    for (api, word) in [(Api::Anthropic, "max_tokens"), (Api::OpenAi, "length")] {
        let call = ("call_1", "Write", r#"{"file_path": "cut.txt", "content": "on"}"#);
        let outcome = step(api, ends(api, "Wait.", &[call], word));
        outcome.code(8).stdout("").request_count(1).no_file("cut.txt");
        outcome.stderr("cotter: the reply was cut, so its call was not run: raise --max-output-tokens\n");
        let outcome = step(api, ends(api, "Half an ans", &[], word));
        outcome.code(8).stdout("").request_count(1);
        outcome.stderr(
            "cotter: the answer was cut at the output limit: raise --max-output-tokens or ask for less\n",
        );
    }
}

/// It was called a cut at the output limit, which it is not.
#[test]
fn a_call_of_a_reply_that_was_declined_is_not_run_and_the_reason_is_told() {
    let call = ("call_1", "Write", r#"{"file_path": "cut.txt", "content": "on"}"#);
    for api in BOTH {
        let outcome = step(api, ends(api, "", &[call], "refusal"));
        outcome
            .code(8)
            .stdout("")
            .request_count(1)
            .no_file("cut.txt")
            .stderr("cotter: the model declined to answer: rephrase the request or choose another --model\n");
    }
    let outcome = step(Api::OpenAi, ends(Api::OpenAi, "", &[call], "content_filter"));
    outcome.code(8).stdout("").no_file("cut.txt").stderr(
        "cotter: the answer was withheld by the API's content filter: \
         rephrase the request or choose another --model\n",
    );
}

#[test]
fn with_verbose_the_call_has_its_line() {
    for (name, arguments) in [("Read", r#"{"file_path": "apple.py"}"#), ("Bash", r#"{"command": "true"}"#)] {
        let story = story("verbose", Api::OpenAi).file("apple.py", APPLE).args(&["--verbose"]);
        let outcome = story.reply(asks(Api::OpenAi, "", &[("call_1", name, arguments)])).run();
        let subject = if name == "Read" { "apple.py" } else { "true" };
        outcome.code(0).stderr_has(&format!("\n{name} {subject}\n"));
    }
}

#[test]
fn an_empty_reply_is_incomplete_and_is_not_asked_for_again() {
    for api in BOTH {
        let outcome = step(api, answer(api, ""));
        outcome.code(8).stdout("").request_count(1).stderr(
            "cotter: the reply is empty or incomplete: rephrase the request or choose another --model\n",
        );
    }
}

#[test]
fn raw_bytes_go_to_standard_output_only() {
    for arguments in [&["--output-format", "json"][..], &["--output-format", "stream-json"], &["-o", "out"]] {
        let outcome = story("refused", Api::OpenAi).args(arguments).run();
        let error = "--single-step writes raw results to stdout: it goes with neither -o nor --output-format";
        outcome.code(2).stderr(&format!("cotter: {error}\n")).request_count(0).no_file("out");
    }
}

#[test]
fn the_prompt_may_come_from_standard_input() {
    let outcome = Story::new("stdin").openai().file("apple.py", APPLE).reply(form("stream")).stdin(PROMPT);
    let outcome = outcome.args(&["--single-step"]).run();
    outcome.code(0).stdout(APPLE);
    outcome.equal(&outcome.body(1)["messages"][1]["content"], &json!(PROMPT));
}
