//! Every exit code of the manual is reached, in each output format: the same code, the same line on
//! standard error, and in the JSON formats a result that says both.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::mpsc;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::check::Api;
use crate::server::{Ending, Reply, Server};
use crate::stage::{Ran, Stage, accept, calls, read_request, requests, run, says, serve};
use crate::story::{DEADLINE, Story, can_end, finish};
use crate::talk::answer;

/// How a case ends.
struct Case {
    name: &'static str,
    replies: Vec<Reply>,
    args: &'static [&'static str],
    code: i32,
    class: &'static str,
    /// The line on standard error, without `cotter: ` and the line's end.
    message: String,
    /// What `result` of the JSON formats holds.
    text: &'static str,
}

impl Case {
    fn new(name: &'static str, code: i32, class: &'static str, message: &str) -> Case {
        let message = message.to_owned();
        Case { name, replies: Vec::new(), args: &["-p", "Hi."], code, class, message, text: "" }
    }

    fn replies(self, replies: impl Into<Vec<Reply>>) -> Case {
        Case { replies: replies.into(), ..self }
    }

    fn args(self, args: &'static [&'static str]) -> Case {
        Case { args, ..self }
    }

    fn text(self, text: &'static str) -> Case {
        Case { text, ..self }
    }
}

fn refusal(status: u16, message: &str) -> Reply {
    let body = json!({"error": {"message": message}});
    Reply::new(status, "application/json", body.to_string()).header("x-should-retry: false")
}

fn ends_with(reason: &str, text: &str) -> Reply {
    let body = json!({"choices": [{"message": {"content": text}, "finish_reason": reason}]});
    Reply::new(200, "application/json", body.to_string())
}

/// What every row but 0 of the table is reached by; some rows have several ways.
fn cases() -> Vec<Case> {
    let broken = says(&["Half of it"]).cut(30, Ending::Close);
    let read = calls("call_1", "Read", &json!({"file_path": "notes.txt"}));
    let counted = json!({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1200, "completion_tokens": 34}});
    let counted = Reply::new(200, "application/json", counted.to_string());
    let moved = Reply::new(308, "text/html", "").header("location: https://elsewhere.test/v1");
    vec![
        Case::new(
            "full disk",
            1,
            "internal",
            "cannot write \"/dev/full\": No space left on device (os error 28): the answer is on standard output",
        )
        .args(&["-o", "/dev/full", "-p", "Hi."])
        .replies([says(&["Hello."])])
        .text("Hello."),
        Case::new(
            "no prompt",
            2,
            "usage",
            "no prompt: give it as an argument, with -f FILE, or on standard input (see cotter --help)",
        )
        .args(&["-p"]),
        Case::new(
            "no prompt file",
            2,
            "usage",
            "cannot read \"missing\": No such file or directory (os error 2)",
        )
        .args(&["-f", "missing"]),
        Case::new(
            "no such folder",
            2,
            "usage",
            "cannot run in \"missing\": No such file or directory (os error 2)",
        )
        .args(&["-C", "missing", "-p", "Hi."]),
        Case::new(
            "401",
            3,
            "credentials",
            "no key was sent, and the server wants one (HTTP 401: bad key): set OPENAI_API_KEY or pass --api-key-file",
        )
        .replies([refusal(401, "bad key")]),
        Case::new(
            "403",
            3,
            "credentials",
            "the API does not accept the key (HTTP 403: not for you: check the key, or name another with --api-key-file)",
        )
        .replies([refusal(403, "not for you")]),
        Case::new("400", 4, "refused", "the API refused the request (HTTP 400: no such thing)")
            .replies([refusal(400, "no such thing")]),
        Case::new(
            "422",
            4,
            "refused",
            "the API refused the request (HTTP 422: no such model)",
        )
        .replies([refusal(422, "no such model")]),
        Case::new(
            "too long",
            4,
            "refused",
            "the API refused the request (HTTP 400: prompt is too long: the conversation is too long for this model: \
             shorten the input or choose another --model)",
        )
        .replies([refusal(400, "prompt is too long")]),
        Case::new(
            "503",
            5,
            "overloaded",
            "the API is overloaded or limits the rate (HTTP 503: busy)",
        )
        .args(&["--max-retries", "0", "-p", "Hi."])
        .replies([Reply::new(503, "application/json", r#"{"error":{"message":"busy"}}"#)]),
        Case::new(
            "quota",
            5,
            "overloaded",
            "the API is overloaded or limits the rate (HTTP 429: insufficient_quota: waiting does not help here: \
             check the account's plan and limits)",
        )
        .replies([refusal(429, "insufficient_quota")]),
        Case::new(
            "broken",
            6,
            "network",
            "127.0.0.1 closed the connection in the middle of its answer",
        )
        .args(&["--max-retries", "0", "-p", "Hi."])
        .replies([broken]),
        Case::new(
            "a page",
            7,
            "malformed",
            "the API's reply cannot be read: it is a page for people: Sign in",
        )
        .replies([Reply::new(200, "text/html", "<html><h1>Sign in</h1></html>")]),
        Case::new(
            "an empty page",
            7,
            "malformed",
            "the API's reply cannot be read: it is a page for people that holds no text",
        )
        .replies([Reply::new(200, "text/html", "<html><script>go()</script></html>")]),
        Case::new("no text", 7, "malformed", "the API's reply cannot be read: it is no text")
            .replies([Reply::new(200, "text/plain", "\u{1}\u{2}")]),
        Case::new(
            "no status",
            7,
            "malformed",
            "HTTP 999: denied: HTTP has no such status; check the base URL, and what lies on the way there",
        )
        .replies([Reply::new(999, "application/json", r#"{"error":{"message":"denied"}}"#)]),
        Case::new(
            "moved",
            7,
            "malformed",
            "HTTP 308: redirected to https://elsewhere.test/v1, which is not followed: \
             check the scheme and path of the base URL",
        )
        .replies([moved]),
        Case::new(
            "cut",
            8,
            "incomplete",
            "the answer was cut at the output limit: raise --max-output-tokens or ask for less",
        )
        .replies([ends_with("length", "Once upon")])
        .text("Once upon"),
        Case::new(
            "filtered",
            8,
            "incomplete",
            "the answer was withheld by the API's content filter: rephrase the request or choose another --model",
        )
        .replies([ends_with("content_filter", "")]),
        Case::new(
            "empty",
            8,
            "incomplete",
            "the model's answer is empty, twice in a row: rephrase the request or choose another --model",
        )
        .replies([ends_with("stop", ""), ends_with("stop", " ")]),
        Case::new(
            "recording",
            9,
            "replay",
            "the recording \"recording\" ends after reply 1 and the run asks for one more: record it anew with --record",
        )
        .args(&["--replay", "recording", "-p", "Hi."]),
        Case::new(
            "denied",
            11,
            "permission",
            "a call of Read was denied, which ends the run (--permission-mode dontAsk): \
             the rule \"Read(*.txt)\" of --disallowedTools forbids it",
        )
        .args(&["--permission-mode", "dontAsk", "--disallowedTools", "Read(*.txt)", "-p", "Hi."])
        .replies([read.clone()]),
        Case::new(
            "turns",
            20,
            "max_turns",
            "the answer is not finished after 1 turn (--max-turns): raise the limit or ask for less",
        )
        .args(&["--max-turns", "1", "-p", "Hi."])
        .replies([read.clone()]),
        Case::new(
            "calls",
            21,
            "max_tool_calls",
            "the run has made 0 of 0 tool calls (--max-tool-calls): raise the limit or ask for less",
        )
        .args(&["--max-tool-calls", "0", "-p", "Hi."])
        .replies([read]),
        Case::new(
            "tokens",
            22,
            "max_total_tokens",
            "the run has used 1,234 of 1,000 tokens (--max-total-tokens): raise the limit or ask for less",
        )
        .args(&["--max-total-tokens", "1000", "-p", "Hi."])
        .replies([counted.clone()])
        .text("Hello."),
        Case::new(
            "money",
            23,
            "max_budget_usd",
            "the run has cost $0.01234 of $0.01 (--max-budget-usd): raise the limit or ask for less",
        )
        .args(&["--max-budget-usd", "0.01", "--price", "10,10", "-p", "Hi."])
        .replies([counted])
        .text("Hello."),
        Case::new(
            "time",
            24,
            "timeout",
            "the API is overloaded or limits the rate (HTTP 503: busy); not asked again: the wait of 100.0 s would \
             outlast the run's 60 s (--timeout)",
        )
        .args(&["--timeout", "60", "-p", "Hi."])
        .replies([Reply::new(503, "application/json", r#"{"error":{"message":"busy"}}"#).header("retry-after: 100")]),
    ]
}

/// A stage with a file to read and a recording that ends with a call.
fn stage(name: &str) -> Stage {
    let stage = Stage::new(name);
    stage.write("notes.txt", "1932\n");
    let read = calls("call_1", "Read", &json!({"file_path": "notes.txt"}));
    stage.write("recording/01.response.http", read.wire());
    stage
}

#[track_caller]
fn run_case(case: &Case, format: &str) -> Ran {
    let stage = stage(case.name);
    let server = Server::start(case.replies.clone());
    let ran = run(stage.ask(server.port(), case.args).args(["--output-format", format]));
    requests(server);
    ran.code(case.code).stderr(format!("cotter: {}\n", case.message));
    ran
}

/// A result has these members, of these kinds; a failure has one more.
#[track_caller]
fn check_result(result: &Value, ran: &Ran) {
    let object = result.as_object().unwrap_or_else(|| panic!("no object\n{}", ran.report()));
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.retain(|name| !["errors", "error", "terminal_reason"].contains(name));
    let expected = [
        "type",
        "subtype",
        "is_error",
        "api_error_status",
        "duration_ms",
        "duration_api_ms",
        "num_turns",
        "result",
        "stop_reason",
        "session_id",
        "total_cost_usd",
        "usage",
        "modelUsage",
        "permission_denials",
        "uuid",
    ];
    assert_eq!(names, expected, "{}", ran.report());
    assert_eq!(result["type"], "result");
    assert!(result["duration_ms"].is_u64() && result["duration_api_ms"].is_u64());
    assert!(result["num_turns"].is_u64());
    // Nothing asked costs nothing; what a reply costs that broke off before it told is not known.
    let cost = &result["total_cost_usd"];
    assert!(cost.is_number() || result["error"]["code"] != 2 && cost.is_null(), "{result}");
    let id: Vec<usize> = result["session_id"].as_str().unwrap().split('-').map(str::len).collect();
    assert_eq!(id, [8, 4, 4, 4, 12], "{result}");
    let usage: Vec<&String> = result["usage"].as_object().unwrap().keys().collect();
    let counts = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"];
    assert_eq!(usage, counts);
    assert_eq!(object.contains_key("error"), result["is_error"] == true, "{result}");
}

#[test]
fn every_failure_has_one_code_and_one_line_in_every_format() {
    for case in cases() {
        // Only an answer that could not go into its file is printed all the same.
        let printed = if case.name == "full disk" { "Hello.\n" } else { "" };
        run_case(&case, "text").stdout(printed);
        for format in ["json", "stream-json"] {
            let ran = run_case(&case, format);
            let lines: Vec<Value> =
                ran.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert!(format != "json" || lines.len() == 1, "{}", ran.report());
            let results = lines.iter().filter(|line| line["type"] == "result").count();
            assert_eq!(results, 1, "{}", ran.report());
            let result = lines.last().unwrap();
            check_result(result, &ran);
            assert_eq!(result["errors"], json!([case.message]), "{}", ran.report());
            let error = json!({"class": case.class, "code": case.code, "message": case.message});
            assert_eq!(result["error"], error, "{}", ran.report());
            assert_eq!(result["is_error"], true);
            let subtype = match case.code {
                20 => "error_max_turns",
                23 => "error_max_budget_usd",
                _ => "error_during_execution",
            };
            assert_eq!(result["subtype"], subtype);
            assert_eq!(result["result"], case.text, "{}", ran.report());
        }
    }
}

#[test]
fn success_has_code_0_in_every_format() {
    let read = calls("call_1", "Read", &json!({"file_path": "notes.txt"}));
    for format in ["text", "json", "stream-json"] {
        let stage = stage("success");
        let server = Server::start(vec![read.clone(), says(&["In ", "1932."])]);
        let ran = run(&mut stage.ask(server.port(), &["-p", "Hi.", "--output-format", format]));
        requests(server);
        ran.code(0).stderr("");
        if format == "text" {
            ran.stdout("In 1932.\n");
            continue;
        }
        let result: Value = serde_json::from_str(ran.text().lines().last().unwrap()).unwrap();
        check_result(&result, &ran);
        let found = json!([result["subtype"], result["is_error"], result["num_turns"], result["result"]]);
        assert_eq!(found, json!(["success", false, 2, "In 1932."]), "{}", ran.report());
    }
}

#[test]
fn the_cases_are_all_the_codes_that_the_manual_lists() {
    let ran = run(&mut Stage::new("manual").command(&["--man"]));
    let page = ran.text();
    let section = page.split(".SH EXIT STATUS\n").nth(1).unwrap().split(".SH").next().unwrap();
    let listed: BTreeSet<i32> =
        section.lines().filter_map(|line| line.strip_prefix(".B ")?.parse().ok()).collect();
    // 0 is `success_has_code_0_in_every_format`, 10 is in `containment`.
    let reached: BTreeSet<i32> = cases().iter().map(|case| case.code).chain([0, 10]).collect();
    assert_eq!(listed, reached);
}

/// What is said with nothing set and these arguments.
#[track_caller]
fn usage(args: &[&str], code: i32) -> String {
    let stage = Stage::new("usage");
    let ran = run(&mut stage.command(args));
    ran.code(code).stdout("");
    ran.stderr
}

#[test]
fn without_a_key_the_ways_to_give_one_are_named() {
    let expected = "cotter: no API key: set OPENROUTER_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, \
                    or pass --base-url for a local server, or --replay DIR\n";
    assert_eq!(usage(&["-p", "Hi."], 3), expected);
    let stage = Stage::new("no key");
    let mut command = stage.command(&["-p", "Hi."]);
    command.env("OPENROUTER_API_KEY", "").env("OPENAI_API_KEY", "");
    run(&mut command).code(3).stdout("").stderr(expected);
    let ran = run(&mut stage.command(&["-p", "Hi.", "--output-format", "json"]));
    ran.code(3).stderr(expected);
    let error = &ran.json()["error"];
    assert_eq!((&error["class"], &error["code"]), (&json!("credentials"), &json!(3)));
}

const DASHED: &str = "a prompt that begins with a dash goes after --, as in: cotter -p -- \"- one\"";

/// The word alone asks nothing; behind `-p` it is a prompt, as any other word is.
#[test]
fn a_command_of_another_program_is_a_prompt_where_it_is_said_to_be_one() {
    for args in [&["-p", "update"][..], &["update", "-p"], &["update it", "-n"]] {
        let story = Story::new("commands").args(args).reply(answer(Api::OpenAi, "Done."));
        story.run().code(0).stdout("Done.\n").stderr("");
    }
}

#[test]
fn a_server_that_wants_a_key_where_none_was_sent_says_which_variable_is_missing() {
    let stage = Stage::new("keyless");
    for (api, variable) in [("openai", "OPENAI_API_KEY"), ("anthropic", "ANTHROPIC_API_KEY")] {
        let refusal = Reply::new(401, "application/json", r#"{"error":{"message":"No."}}"#);
        let server = Server::start(vec![refusal]);
        let expected = format!(
            "cotter: no key was sent, and the server wants one (HTTP 401: No.): set {variable} or pass --api-key-file\n"
        );
        run(&mut stage.ask(server.port(), &["--api", api, "-p", "Hi."])).code(3).stdout("").stderr(expected);
        server.stop();
    }
}

#[test]
fn a_command_line_that_cannot_be_understood_names_what_is_wrong() {
    for (args, expected) in [
        (&["--max-turn", "3"][..], "there is no flag --max-turn: did you mean --max-turns?"),
        (&["-z"], "there is no flag -z: see cotter --help"),
        (&["-p", "-dash"], DASHED),
        (&["-p", "--not this"], DASHED),
        (
            &["-p", "--", "Hi.", "--output-format", "json"],
            "unexpected argument \"--output-format\" after the prompt \"Hi.\": nothing behind -- is a flag: put flags before it",
        ),
        (
            &["mcp", "list"],
            "\"mcp\" is a command of claude's and not here; to ask the model, say cotter -p mcp",
        ),
        (
            &["update", "--model", "m"],
            "\"update\" is a command of claude's and not here; to ask the model, say cotter -p update",
        ),
        (
            &["--base-url", "http://h/v1/chat/completions", "-p", "Hi."],
            "the base URL \"http://h/v1/chat/completions\" is the address of a request: leave /chat/completions out, as in http://h/v1",
        ),
        (
            &["--api", "anthropic", "--base-url", "http://h/v1/messages/", "-p", "Hi."],
            "the base URL \"http://h/v1/messages/\" is the address of a request: leave /messages out, as in http://h/v1",
        ),
        (
            &["-p", "two", "words"],
            "unexpected argument \"words\" after the prompt \"two\": quote the prompt as one argument",
        ),
        (
            &["--settings", "x.json", "-p", "Hi."],
            "--settings is not supported: no settings files are read; put flags into the file named by COTTER_CONFIG",
        ),
        (&["--plugin-dir=x"], "--plugin-dir is not supported: there are no plugins"),
        (&["--temperature", "3"], "--temperature is a number from 0 to 2, not \"3\""),
        (&["--max-turns", "0"], "--max-turns is a whole number from 1, not \"0\""),
        (&["--output-format", "xml"], "--output-format is one of text, json, stream-json, not \"xml\""),
        (&["--model"], "--model needs a value: NAME"),
        (&["-o", ""], "--output needs a value that is not empty"),
        (&["--model", ""], "--model needs a value that is not empty"),
        (
            &["--base-url", "ftp://h", "-p", "Hi."],
            "the base URL \"ftp://h\" cannot be used: it starts with http:// or https://",
        ),
        (
            &["--base-url", "http://a:b@h", "-p", "Hi."],
            "the base URL \"http://h\" cannot be used: it holds a name or password: pass the key by its variable or --api-key-file",
        ),
        (
            &["--replay", "missing", "-p", "Hi."],
            "cannot replay from \"missing\": No such file or directory (os error 2)",
        ),
        (
            &["--replay", ".", "-p", "Hi."],
            "\".\" holds no recording: a recording has files named 01.response.http, 02.response.http, …",
        ),
        (
            &["--replay", "x", "--record", "y", "-p", "Hi."],
            "--record and --replay exclude each other: record a live run",
        ),
        (&["--replay-strict", "-p", "Hi."], "--replay-strict needs --replay DIR"),
        (
            &["--base-url", "http://h", "--model", "m", "--tools", "Reed", "-p", "Hi."],
            "--tools: there is no tool \"Reed\": choose from Read, Write, Edit, Glob, Grep, Bash, BashOutput, KillShell, get_current_datetime, add_duration_to_datetime, get_exchange_rate",
        ),
        (
            &["--base-url", "http://h", "--model", "m", "--header", "no colon", "-p", "Hi."],
            "--header: a header is written 'Name: value', in printable ASCII",
        ),
    ] {
        assert_eq!(usage(args, 2), format!("cotter: {expected}\n"), "{args:?}");
    }
}

#[test]
fn a_command_line_that_is_not_understood_has_a_json_result_too_if_it_asks_for_json() {
    for args in
        [&["--output-format", "json", "--max-turn", "3"][..], &["--max-turn", "3", "--output-format=json"]]
    {
        let ran = run(&mut Stage::new("json usage").command(args));
        let message = "there is no flag --max-turn: did you mean --max-turns?";
        ran.code(2).stderr(format!("cotter: {message}\n"));
        let result = ran.json();
        check_result(&result, &ran);
        assert_eq!(result["error"], json!({"class": "usage", "code": 2, "message": message}));
    }
    let stage = Stage::new("json config");
    let mut command = stage.command(&["--output-format", "json", "-p", "Hi."]);
    let ran = run(command.env("COTTER_CONFIG", "missing"));
    let message = "cannot read COTTER_CONFIG \"missing\": No such file or directory (os error 2)";
    ran.code(2).stderr(format!("cotter: {message}\n"));
    assert_eq!(ran.json()["error"]["message"], message);
}

#[test]
fn arguments_and_variables_that_are_no_text_are_named() {
    let stage = Stage::new("no text");
    let bytes = std::ffi::OsStr::from_bytes(b"caf\xe9");
    for (expected, change) in [
        (
            "the prompt is not UTF-8: put it into a file and pass -f FILE",
            Box::new(|command: &mut Command| {
                command.arg(bytes);
            }) as Box<dyn Fn(&mut Command)>,
        ),
        (
            "the value of --model is not UTF-8",
            Box::new(|command| {
                command.arg("--model").arg(bytes);
            }),
        ),
        (
            "the variable OPENAI_API_KEY is not UTF-8",
            Box::new(|command| {
                command.arg("Hi.").env("OPENAI_API_KEY", bytes);
            }),
        ),
    ] {
        let mut command = stage.command(&["-p"]);
        change(&mut command);
        run(&mut command).code(2).stdout("").stderr(format!("cotter: {expected}\n"));
    }
}

/// Runs until the server has the request, sends a signal, and gives what came of it.
#[track_caller]
fn killed_by(
    signal: Signal,
    mut command: impl FnMut(&Stage, u16) -> Command,
) -> (Option<i32>, Vec<u8>, Vec<u8>) {
    let (arrived, has_arrived) = mpsc::channel();
    let (port, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        assert!(read_request(&mut stream).is_some());
        arrived.send(()).unwrap();
        // The client goes without having been answered.
        let _ = std::io::Read::read(&mut stream, &mut [0]);
    });
    let stage = Stage::new("killed");
    let child = command(&stage, port).spawn().unwrap();
    has_arrived.recv_timeout(DEADLINE).unwrap();
    kill_process(Pid::from_child(&child), signal).unwrap();
    let finished = finish(child, None);
    server.join().unwrap();
    assert_eq!(finished.problem, None);
    (finished.status.signal(), finished.stdout, finished.stderr)
}

#[test]
fn a_signal_is_the_status_and_leaves_no_result() {
    let signals = [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL];
    for signal in
        signals.into_iter().filter(|signal| can_end(*signal, "a_signal_is_the_status_and_leaves_no_result"))
    {
        for format in ["text", "json", "stream-json"] {
            let (status, stdout, stderr) =
                killed_by(signal, |stage, port| stage.ask(port, &["-p", "Hi.", "--output-format", format]));
            assert_eq!(status, Some(signal.as_raw()));
            assert_eq!(stderr, b"", "{signal:?} {format}");
            let stdout = String::from_utf8(stdout).unwrap();
            let begun = format == "stream-json" && stdout.starts_with(r#"{"type":"system","subtype":"init""#);
            assert!(stdout.lines().count() == usize::from(begun), "{signal:?} {format}: {stdout}");
        }
    }
}
