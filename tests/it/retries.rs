//! Refusals, broken and silent connections: what is asked again, how often, and how the run ends where
//! that does not help.

use serde_json::json;

use crate::check::Api;
use crate::server::{Ending, Framing, Reply};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, last_text, results};

/// No test waits longer than a millisecond, unless it is about the wait.
const SOON: &str = "retry-after-ms: 1";

fn story(api: Api) -> Story {
    Story::new("retries").api(api).args(&["-p", "Tell me."])
}

/// A refusal as the API words it.
fn refusal(api: Api, status: u16, kind: &str, message: &str) -> Reply {
    let body = match api {
        Api::Anthropic => {
            json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"})
        }
        _ => json!({"error": {"message": message, "type": kind, "param": null, "code": kind}}),
    };
    Reply::new(status, "application/json", body.to_string())
}

fn overloaded(api: Api) -> Reply {
    refusal(api, 529, "overloaded_error", "Overloaded").header(SOON)
}

const OVERLOADED: &str = "the API is overloaded or limits the rate (HTTP 529: Overloaded)";

fn run(api: Api, args: &[&str], replies: impl IntoIterator<Item = Reply>) -> Outcome {
    replies.into_iter().fold(story(api).args(args), Story::reply).run()
}

#[track_caller]
fn asked_again_and_answered(outcome: &Outcome, requests: usize) {
    outcome.code(0).stdout("Told.\n").request_count(requests);
    for request in &outcome.requests {
        outcome.equal(&request.body, &outcome.requests[0].body);
    }
}

// Refusals.

#[test]
fn what_is_final_is_final_after_something_that_was_asked_again() {
    for api in BOTH {
        let refused = refusal(api, 401, "authentication_error", "No.").header(SOON);
        let outcome = run(api, &[], [overloaded(api), overloaded(api), refused]);
        outcome.code(3).stdout("").request_count(3);
        outcome.stderr_has("(HTTP 401: No");
    }
}

#[test]
fn a_key_that_a_refusal_quotes_is_not_shown() {
    let message = "Incorrect API key provided: sk-quoted-key-1.";
    let refused = refusal(Api::Anthropic, 401, "authentication_error", message);
    let story = story(Api::Anthropic).env("ANTHROPIC_API_KEY", "sk-quoted-key-1");
    let outcome = story.args(&["--output-format", "json", "--record", "recording"]).reply(refused).run();
    let why = "the API does not accept the key (HTTP 401: Incorrect API key provided: (secret): check the key, \
               or name another with --api-key-file)";
    outcome.code(3).stderr(&format!("cotter: {why}\n"));
    outcome.equal(&outcome.json()["error"]["message"], &json!(why));
    let recorded = std::fs::read_to_string(outcome.folder.join("recording/01.response.http")).unwrap();
    assert!(recorded.contains("provided: (secret).") && !recorded.contains("sk-quoted"), "{recorded}");
}

#[test]
fn a_text_that_only_begins_like_a_field_is_no_stream() {
    for body in ["event not found", "database is down", "identity unknown"] {
        let reply = Reply::new(200, "text/event-stream", body);
        let outcome = run(Api::OpenAi, &[], [reply]);
        outcome.code(7).stdout("").request_count(1);
        outcome.stderr(&format!("cotter: the API's reply cannot be read: {body}\n"));
    }
}

#[test]
fn what_may_pass_is_asked_again() {
    for api in BOTH {
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
            let refused = refusal(api, status, "some_error", "Not now.").header(SOON);
            let outcome = run(api, &[], [refused, answer(api, "Told.")]);
            asked_again_and_answered(&outcome, 2);
            outcome.stderr(&format!(
                "cotter: the API is overloaded or limits the rate (HTTP {status}: Not now.): asking again in \
                 0.0 s (1 of 4)\n"
            ));
        }
    }
}

#[test]
fn what_is_not_found_is_told_with_the_address_that_was_asked() {
    for api in BOTH {
        let path = if api == Api::OpenAi { "/v1/chat/completions" } else { "/v1/messages" };
        let outcome = run(api, &[], [refusal(api, 404, "not_found_error", "No.")]);
        outcome.code(4).stdout("").request_count(1);
        outcome.stderr_has("(HTTP 404: No: check --model and the base URL): http://127.0.0.1:");
        outcome.stderr_has(&format!("{path} was asked\n"));
    }
}

#[test]
fn what_will_not_pass_ends_the_run_at_once_with_its_code() {
    let cases = [
        (400, "invalid_request_error", 4, "the API refused the request (HTTP 400: No.)"),
        (
            401,
            "authentication_error",
            3,
            "the API does not accept the key (HTTP 401: No: check the key, or name another with \
             --api-key-file)",
        ),
        (
            402,
            "billing_error",
            4,
            "the API refused the request (HTTP 402: No: the account has no credit left)",
        ),
        (
            403,
            "permission_error",
            3,
            "the API does not accept the key (HTTP 403: No: check the key, or name another with \
             --api-key-file)",
        ),
        (405, "method_error", 4, "the API refused the request (HTTP 405: No.)"),
        (422, "unprocessable", 4, "the API refused the request (HTTP 422: No.)"),
    ];
    for api in BOTH {
        for (status, kind, code, why) in cases {
            let key: &[&str] = match api {
                Api::OpenAi => &["--header", "authorization: Bearer test-key"],
                Api::Anthropic | Api::OpenRouter => &[],
            };
            let outcome = run(api, key, [refusal(api, status, kind, "No.")]);
            outcome.code(code).stdout("").request_count(1).stderr(&format!("cotter: {why}\n"));
        }
    }
}

#[test]
fn a_prompt_that_is_too_long_is_refused_for_good() {
    let cases = [
        (Api::Anthropic, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", ""),
        // The sentence ends, and the error goes on.
        (Api::OpenAi, "context_length_exceeded", "This model's maximum context length is 8192 tokens", ". "),
    ];
    for (api, kind, message, end) in cases {
        let outcome = run(api, &[], [refusal(api, 400, kind, &format!("{message}{end}"))]);
        outcome.code(4).stdout("").request_count(1).stderr(&format!(
            "cotter: the API refused the request (HTTP 400: {message}: the conversation is too long for this \
             model: shorten the input or choose another --model)\n"
        ));
    }
}

#[test]
fn a_quota_that_is_used_up_is_not_waited_for() {
    let openai = "You exceeded your current quota, please check your plan and billing details.";
    let anthropic = "Your credit balance is too low to access the Anthropic API.";
    let cases = [
        (Api::OpenAi, "insufficient_quota", openai),
        (Api::OpenAi, "insufficient_quota", "No."),
        (Api::Anthropic, "rate_limit_error", anthropic),
    ];
    for (api, kind, message) in cases {
        let outcome = run(api, &[], [refusal(api, 429, kind, message).header("retry-after: 1")]);
        let message = message.trim_end_matches('.');
        outcome.code(5).stdout("").request_count(1).stderr(&format!(
            "cotter: the API is overloaded or limits the rate (HTTP 429: {message}: waiting does not help \
             here: check the account's plan and limits)\n"
        ));
    }
}

#[test]
fn the_json_result_names_the_class_and_the_code() {
    let cases = [
        (529, "overloaded_error", 5, "overloaded"),
        (401, "authentication_error", 3, "credentials"),
        (400, "invalid_request_error", 4, "refused"),
    ];
    for api in BOTH {
        for (status, kind, code, class) in cases {
            let args = ["--max-retries", "0", "--output-format", "json"];
            let outcome = run(api, &args, [refusal(api, status, kind, "No.")]);
            let found = outcome.code(code).json();
            outcome.equal(&found["subtype"], &json!("error_during_execution"));
            outcome.equal((&found["error"]["class"], &found["error"]["code"]), (&json!(class), &json!(code)));
            outcome.equal((&found["num_turns"], &found["result"]), (&json!(0), &json!("")));
            let said = format!("cotter: {}\n", found["error"]["message"].as_str().unwrap());
            outcome.stderr(&said);
        }
    }
}

// How often, and how long.

#[test]
fn the_number_of_attempts_is_the_number_of_retries_and_one() {
    let gave_up = |attempts: usize| format!("cotter: {OVERLOADED}; gave up after {attempts} attempts\n");
    let again = |number: usize, most: usize| {
        format!("cotter: {OVERLOADED}: asking again in 0.0 s ({number} of {most})\n")
    };
    for api in BOTH {
        let failures = |count: usize| std::iter::repeat_n(overloaded(api), count);
        let outcome = run(api, &["--max-retries", "0"], failures(1));
        outcome.code(5).stdout("").request_count(1).stderr(&format!("cotter: {OVERLOADED}\n"));
        let outcome = run(api, &["--max-retries", "1"], failures(1).chain([answer(api, "Told.")]));
        asked_again_and_answered(&outcome, 2);
        outcome.stderr(&again(1, 1));
        let outcome = run(api, &["--max-retries", "1"], failures(2));
        outcome.code(5).stdout("").request_count(2).stderr(&(again(1, 1) + &gave_up(2)));
        let outcome = run(api, &[], failures(4).chain([answer(api, "Told.")]));
        asked_again_and_answered(&outcome, 5);
        let all: String = (1..=4).map(|number| again(number, 4)).collect();
        outcome.stderr(&all);
        run(api, &[], failures(5)).code(5).stdout("").request_count(5).stderr(&(all + &gave_up(5)));
    }
}

#[test]
fn each_turn_has_its_retries_anew() {
    let call = |id: &'static str| (id, "get_current_datetime", "{}");
    for api in BOTH {
        let replies = [
            overloaded(api),
            asks(api, "", &[call("call_1")]),
            overloaded(api),
            asks(api, "", &[call("call_2")]),
            overloaded(api),
            answer(api, "Told."),
        ];
        let outcome = run(api, &["--max-retries", "1", "--max-turns", "3"], replies);
        outcome.code(0).stdout("Told.\n").request_count(6);
    }
}

#[test]
fn quiet_leaves_out_what_is_asked_again_and_keeps_the_error() {
    let outcome = run(Api::Anthropic, &["-q"], [overloaded(Api::Anthropic), answer(Api::Anthropic, "Told.")]);
    outcome.code(0).stdout("Told.\n").stderr("");
    let outcome = run(Api::Anthropic, &["-q", "--max-retries", "0"], [overloaded(Api::Anthropic)]);
    outcome.code(5).stderr(&format!("cotter: {OVERLOADED}\n"));
}

/// How a refusal with these headers is answered: what is said of it, when nothing else is.
#[track_caller]
fn waits(headers: &[&str], said: &str) {
    let api = Api::Anthropic;
    let refused = refusal(api, 529, "overloaded_error", "Overloaded");
    let refused = headers.iter().fold(refused, |reply, line| reply.header(line));
    let outcome = run(api, &[], [refused, answer(api, "Told.")]);
    asked_again_and_answered(&outcome, 2);
    outcome.stderr(&format!("cotter: {OVERLOADED}: asking again in {said} s (1 of 4)\n"));
}

#[test]
fn the_servers_own_time_is_kept_to() {
    waits(&["retry-after: 0.04"], "0.0");
    waits(&["retry-after: 0.1"], "0.1");
    waits(&["retry-after-ms: 100"], "0.1");
    waits(&["Retry-After: 500", "Retry-After-Ms: 2.5"], "0.0");
}

#[test]
fn a_date_is_waited_for() {
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let date = at.strftime("%a, %d %b %Y %H:%M:%S GMT");
    let api = Api::OpenAi;
    let refused = refusal(api, 503, "x", "Not now.").header(&format!("retry-after: {date}"));
    let outcome = run(api, &[], [refused, answer(api, "Told.")]);
    asked_again_and_answered(&outcome, 2);
    // The date has whole seconds: the wait ends within the second before it.
    let second = jiff::Timestamp::from_second(at.as_second()).unwrap();
    outcome.equal(jiff::Timestamp::now() >= second, true);
}

#[test]
fn a_time_that_says_nothing_is_replaced_by_half_a_second_or_less() {
    for line in
        ["retry-after: 0", "retry-after: soon", "retry-after: Sun, 06 Nov 1994 08:49:37 GMT", "x-none: 1"]
    {
        let api = Api::OpenAi;
        let refused = refusal(api, 503, "x", "Not now.").header(line);
        let outcome = run(api, &[], [refused, answer(api, "Told.")]);
        asked_again_and_answered(&outcome, 2);
        let (_, rest) = outcome.stderr.split_once("asking again in ").unwrap();
        outcome.equal(matches!(&rest[..3], "0.4" | "0.5"), true).equal(&rest[3..], " s (1 of 4)\n");
    }
}

#[test]
fn a_wait_that_would_be_too_long_is_not_begun() {
    for (line, long) in
        [("retry-after: 121", "121"), ("retry-after: 3600", "3600"), ("retry-after-ms: 7200000", "7200")]
    {
        for api in BOTH {
            let outcome = run(api, &[], [refusal(api, 429, "rate_limit_error", "Slow down.").header(line)]);
            outcome.code(5).stdout("").request_count(1).stderr(&format!(
                "cotter: the API is overloaded or limits the rate (HTTP 429: Slow down.); not asked again: \
                 the wait of {long} s would exceed 120 s in all\n"
            ));
        }
    }
    let date = "retry-after: Sat, 06 Nov 2094 08:49:37 GMT";
    let outcome = run(Api::OpenAi, &[], [refusal(Api::OpenAi, 429, "x", "Slow down.").header(date)]);
    outcome.code(5).request_count(1).stderr_has("would exceed 120 s in all");
}

#[test]
fn all_waits_together_are_limited() {
    for api in BOTH {
        let refusals = ["retry-after-ms: 20", "retry-after: 120"]
            .map(|line| refusal(api, 429, "rate_limit_error", "Slow down.").header(line));
        let outcome = run(api, &[], refusals);
        const WHY: &str = "the API is overloaded or limits the rate (HTTP 429: Slow down.)";
        outcome.code(5).stdout("").request_count(2).stderr(&format!(
            "cotter: {WHY}: asking again in 0.0 s (1 of 4)\n\
             cotter: {WHY}; not asked again: the wait of 120 s would exceed 120 s in all\n"
        ));
    }
}

#[test]
fn the_servers_own_word_on_asking_again_is_heard() {
    for api in BOTH {
        let refused = refusal(api, 503, "x", "Gone.").header(SOON).header("x-should-retry: false");
        let outcome = run(api, &[], [refused]);
        outcome.code(5).stdout("").request_count(1);
        let refused = refusal(api, 400, "x", "Odd.").header(SOON).header("X-Should-Retry: true");
        let outcome = run(api, &[], [refused.clone(), answer(api, "Told.")]);
        asked_again_and_answered(&outcome, 2);
        outcome
            .stderr("cotter: the API refused the request (HTTP 400: Odd.): asking again in 0.0 s (1 of 4)\n");
        let outcome = run(api, &["--max-retries", "1"], [refused.clone(), refused]);
        outcome.code(4).stdout("").request_count(2);
        let refused = refusal(api, 503, "x", "Gone.").header(SOON).header("x-should-retry: perhaps");
        asked_again_and_answered(&run(api, &[], [refused, answer(api, "Told.")]), 2);
    }
}

#[test]
fn an_error_in_the_middle_of_the_stream_is_asked_again() {
    let half = answer(Api::Anthropic, "Half of it");
    let body = String::from_utf8(half.body().to_vec()).unwrap();
    let (begun, _) = body.split_once("event: message_delta").unwrap();
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let broken = Reply::new(200, "text/event-stream", format!("{begun}event: error\ndata: {error}\n\n"));
    let outcome = run(Api::Anthropic, &[], [broken.header(SOON), answer(Api::Anthropic, "Told.")]);
    asked_again_and_answered(&outcome, 2);
    outcome.stderr(&format!("cotter: {OVERLOADED}: asking again in 0.0 s (1 of 4)\n"));
}

// Broken and silent connections.

/// A reply that breaks off before its last event but one, whichever API's it is.
fn broken(reply: Reply, ending: Ending) -> Reply {
    let text = String::from_utf8(reply.body().to_vec()).unwrap();
    let mark = if text.contains("message_delta") { "event: message_delta" } else { r#""delta":{},"# };
    let at = text.find(mark).unwrap();
    // Up to the beginning of the event that says why the reply ended.
    let border = text[..at].rfind("\n\n").map_or(at, |border| border + 2);
    reply.header(SOON).cut(border, ending)
}

#[test]
fn a_call_that_was_complete_in_a_broken_reply_runs_once() {
    let call = ("call_1", "Bash", r#"{"command": "echo run >>log.txt"}"#);
    for api in BOTH {
        for ending in [Ending::Close, Ending::Reset] {
            let reply = asks(api, "I write.", &[call]);
            let replies = [broken(reply.clone(), ending), reply, answer(api, "Told.")];
            let outcome = run(api, &[], replies);
            outcome.code(0).stdout("Told.\n").request_count(3).file("log.txt", "run\n");
            outcome.equal(&outcome.requests[1].body, &outcome.requests[0].body);
            let expected = vec![("call_1".to_owned(), "(no output)".to_owned(), false)];
            outcome.equal(results(api, &outcome.body(3)), expected);
        }
    }
}

#[test]
fn the_text_of_a_dead_attempt_is_in_no_answer_and_no_request() {
    for api in BOTH {
        for format in ["text", "json"] {
            let dead = broken(answer(api, "A dead text."), Ending::Close);
            let replies = [
                dead.clone(),
                asks(api, "I look.", &[("call_1", "get_current_datetime", "{}")]),
                dead,
                answer(api, "Told."),
            ];
            let outcome = run(api, &["--output-format", format], replies);
            outcome.code(0).request_count(4).stderr_lacks("dead");
            match format {
                "text" => outcome.stdout("Told.\n"),
                _ => outcome.equal(&outcome.json()["result"], &json!("Told.")),
            };
            outcome.equal(outcome.sent(4).contains("dead"), false);
        }
    }
}

#[test]
fn a_connection_that_ends_without_a_reply_is_asked_again_and_then_a_network_error() {
    for api in BOTH {
        for (ending, why) in [
            (Ending::Close, "127.0.0.1 closed the connection without an answer"),
            (Ending::Reset, "127.0.0.1 reset the connection without an answer"),
        ] {
            let outcome = run(api, &["--max-retries", "0"], [Reply::nothing(ending)]);
            outcome.code(6).stdout("").request_count(1).stderr(&format!("cotter: {why}\n"));
        }
        let outcome = run(api, &[], [Reply::nothing(Ending::Close), answer(api, "Told.")]);
        asked_again_and_answered(&outcome, 2);
    }
}

#[test]
fn nobody_listening_is_a_network_error_that_names_the_place() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let args = ["-p", "Tell me.", "--max-retries", "0"];
    let url = format!("http://{free}");
    let outcome = Story::new("nobody").anthropic().env("ANTHROPIC_BASE_URL", &url).args(&args).run();
    outcome.code(6).stdout("").stderr(&format!(
        "cotter: could not connect to {free}: connection refused (is the server running, and is the port \
         right?)\n"
    ));
}

const SILENT: &str = "127.0.0.1 sent nothing for 1 s (--idle-timeout sets how long to wait)";

#[test]
fn a_server_of_this_machine_that_says_nothing_is_still_reading_and_is_not_asked_again() {
    let outcome = run(Api::OpenAi, &["--idle-timeout", "1"], [Reply::nothing(Ending::Stall)]);
    outcome.code(6).stdout("").request_count(1).stderr(&format!("cotter: {SILENT}\n"));
}

#[test]
fn a_server_that_falls_silent_in_its_reply_is_asked_again() {
    let stalled = broken(answer(Api::OpenAi, "Half of it"), Ending::Stall);
    let outcome = run(Api::OpenAi, &["--idle-timeout", "1"], [stalled.clone(), answer(Api::OpenAi, "Told.")]);
    asked_again_and_answered(&outcome, 2);
    outcome.stderr_has(&format!("cotter: {SILENT}: asking again in "));
    let outcome = run(Api::OpenAi, &["--idle-timeout", "1", "--max-retries", "0"], [stalled]);
    outcome.code(6).stdout("").request_count(1).stderr(&format!("cotter: {SILENT}\n"));
}

#[test]
fn a_host_elsewhere_that_says_nothing_is_asked_again() {
    let story = story(Api::OpenAi).host("http://models.example/v1").args(&["--idle-timeout", "1"]);
    let outcome = story.reply(Reply::nothing(Ending::Stall)).reply(answer(Api::OpenAi, "Told.")).run();
    asked_again_and_answered(&outcome, 2);
}

// Answers that come early, and what is no answer.

#[test]
fn an_answer_before_the_request_was_read_is_heard() {
    // The first is more than the kernel takes on its way, the others may fit.
    let cases = [
        (600_000, 413, "request_too_large", "Request exceeds the maximum size", 4),
        (100_000, 401, "authentication_error", "invalid x-api-key", 3),
        (1, 400, "invalid_request_error", "Too much.", 4),
    ];
    for api in BOTH {
        for (lines, status, kind, message, code) in cases {
            let early = refusal(api, status, kind, message).before_body();
            let outcome = story(api).stdin("a long text\n".repeat(lines)).reply(early).run();
            outcome.code(code).stdout("").request_count(1);
            outcome.stderr_has(&format!("HTTP {status}: {message}"));
        }
    }
}

#[test]
fn after_an_early_answer_the_whole_request_is_sent_again() {
    let long = "a long text\n".repeat(300_000);
    for api in BOTH {
        let early = refusal(api, 429, "rate_limit_error", "Slow down.").header(SOON).before_body();
        let outcome = story(api).stdin(&long).reply(early).reply(answer(api, "Told.")).run();
        outcome.code(0).stdout("Told.\n").request_count(2);
        let prompt = format!("Tell me.\n\n<stdin>\n{long}</stdin>");
        outcome.equal(last_text(&outcome.body(2)) == prompt, true);
    }
}

#[test]
fn an_early_page_for_people_is_condensed() {
    let page = "<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>";
    let reply = Reply::new(413, "text/html", page).before_body().framing(Framing::Close);
    let outcome = story(Api::OpenAi).stdin("a long text\n".repeat(100_000)).reply(reply).run();
    outcome
        .code(4)
        .stdout("")
        .request_count(1)
        .stderr("cotter: the API refused the request (HTTP 413: 413 Request Entity Too Large nginx)\n");
}

#[test]
fn a_redirect_is_not_followed_and_its_location_named() {
    for api in BOTH {
        for status in [301, 302, 303, 307, 308] {
            let location = "https://models.example/v1/chat";
            let reply = Reply::new(status, "text/html", "<html>Moved</html>");
            let outcome = run(api, &[], [reply.header(&format!("Location: {location}"))]);
            outcome.code(7).stdout("").request_count(1).stderr(&format!(
                "cotter: HTTP {status}: redirected to {location}, which is not followed: check the scheme and \
                 path of the base URL\n"
            ));
        }
    }
}

#[test]
fn a_page_for_people_is_no_reply() {
    for api in BOTH {
        let page = "<!doctype html><html><title>Log in</title><body>Welcome\nto the portal</body></html>";
        let outcome = run(api, &[], [Reply::new(200, "text/html", page)]);
        outcome.code(7).stdout("").request_count(1).stderr(
            "cotter: the API's reply cannot be read: it is a page for people: Log in Welcome to the portal\n",
        );
        let outcome = run(api, &[], [Reply::new(200, "text/plain", "It works!\n")]);
        outcome.code(7).stdout("").request_count(1);
        outcome.stderr("cotter: the API's reply cannot be read: It works!\n");
    }
}

#[test]
fn a_document_that_is_no_reply_is_malformed() {
    let cases = [
        (Api::Anthropic, r#"{"status":"ok"}"#, r#"a reply without "content": {"status":"ok"}"#),
        (Api::OpenAi, r#"{"status":"ok"}"#, r#"a reply without "choices": {"status":"ok"}"#),
        (Api::OpenAi, "{not json}", "not JSON (key must be a string at line 1 column 2): {not json}"),
    ];
    for (api, body, why) in cases {
        let outcome = run(api, &[], [Reply::new(200, "application/json", body)]);
        outcome.code(7).stdout("").request_count(1);
        outcome.stderr(&format!("cotter: the API's reply cannot be read: {why}\n"));
    }
}

#[test]
fn an_empty_or_broken_document_is_asked_again() {
    for api in BOTH {
        for body in ["", "  \n", r#"{"id":"x","choices":[{"#] {
            let reply = Reply::new(200, "application/json", body).header(SOON).framing(Framing::Close);
            let outcome = run(api, &[], [reply.clone(), answer(api, "Told.")]);
            asked_again_and_answered(&outcome, 2);
            let outcome = run(api, &["--max-retries", "0"], [reply]);
            outcome.code(6).stdout("").stderr("cotter: the reply ended before it was complete\n");
        }
    }
}

#[test]
fn a_byte_order_mark_may_come_in_pieces() {
    for api in BOTH {
        let reply = answer(api, "Told.");
        let marked = [b"\xef\xbb\xbf", reply.body()].concat();
        let reply =
            Reply::new(200, "text/event-stream", marked).framing(Framing::Chunked).pieces(&[1, 2, 3, 4]);
        run(api, &[], [reply]).code(0).stdout("Told.\n").request_count(1);
    }
}
