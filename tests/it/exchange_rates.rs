//! The loop through get_exchange_rate: calls, results, errors as results, the limit on turns, and what
//! each word for the end of a reply leads to.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::check::Api;
use crate::server::{Reply, Server};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, Call, answer, asks, chat_without_reason, ends, last_text, messages, results};

const QUESTION: &str = "Какой сейчас курс евро?";
const EURO: &str = "Текущий курс евро составляет 100.1 рубля.\n";
const ASKS_EURO: Call = ("toolu_1", "get_exchange_rate", r#"{"currency": "EUR"}"#);
const EURO_RESULT: &str = r#"{"currency":"EUR","rate_to_rub":100.1}"#;

/// The story of the question, with a service that gives these answers.
fn run_with_rates(story: Story, rates: Vec<Reply>) -> (Outcome, Vec<String>) {
    let service = Server::start(rates);
    let url = format!("http://127.0.0.1:{}/v4/latest", service.port());
    let outcome = story.env("COTTER_RATES_URL", &url).args(&["-p", QUESTION]).run();
    let record = service.stop();
    outcome.equal(record.problems, vec![]);
    for request in &record.requests {
        outcome.equal((&*request.method, request.header("accept")), ("GET", Some("application/json")));
        outcome.equal((request.header("authorization"), request.header("x-api-key")), (None, None));
    }
    (outcome, record.requests.into_iter().map(|request| request.path).collect())
}

/// What the service says of a currency.
fn rate(currency: &str, rate: &str) -> Reply {
    let body = format!(
        r#"{{"provider":"https://www.exchangerate-api.com","base":"{currency}","date":"2026-11-30","time_last_updated":1796000000,"rates":{{"{currency}":1,"AED":3.67,"RUB":{rate},"USD":1.09}}}}"#
    );
    Reply::new(200, "application/json", body)
}

fn euro() -> Vec<Reply> {
    vec![rate("EUR", "100.1")]
}

/// A story without a service: an address where nobody listens.
fn story(api: Api) -> Story {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let story = Story::new("rates").api(api).env("COTTER_RATES_URL", &format!("http://{free}/v4/latest"));
    story.args(&["-p", QUESTION])
}

fn result(id: &str, text: &str) -> (String, String, bool) {
    (id.to_owned(), text.to_owned(), false)
}

fn error(id: &str, text: &str) -> (String, String, bool) {
    (id.to_owned(), text.to_owned(), true)
}

#[test]
fn the_rate_is_asked_for_told_and_made_an_answer() {
    for (name, streams) in [("euro", true), ("documents", false)] {
        let story = Story::new(name).anthropic().exchange(&format!("fixtures/exchange-rates/{name}"));
        let (outcome, asked) = run_with_rates(story, euro());
        outcome.code(0).stdout(EURO).stderr("").request_count(2);
        outcome.equal(asked, vec!["/v4/latest/EUR".to_owned()]);
        let id = "toolu_01XqZ9KtM3bW7pYvR2sLfHcD";
        let mark = json!({"type": "ephemeral"});
        let expected = json!([
            {"role": "user", "content": [{"type": "text", "text": QUESTION, "cache_control": mark}]},
            {"role": "assistant", "content": [
                {"type": "tool_use", "id": id, "name": "get_exchange_rate", "input": {"currency": "EUR"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": EURO_RESULT, "cache_control": mark}]},
        ]);
        outcome.equal(&outcome.body(2)["messages"], &expected);
        // The input goes back with the spaces it came with.
        let input = if streams { r#""input":{"currency": "EUR"}"# } else { r#""input":{"currency":"EUR"}"# };
        outcome.equal(outcome.sent(2).contains(input), true);
    }
}

#[test]
fn several_calls_in_one_reply_have_their_results_in_one_message_and_in_order() {
    let story = Story::new("several").anthropic().exchange("fixtures/exchange-rates/several");
    let rates = vec![rate("USD", "92.4"), rate("EUR", "100.1"), rate("GBP", "117.30")];
    let (outcome, asked) = run_with_rates(story, rates);
    outcome.code(0).stdout("Доллар — 92.4, евро — 100.1, фунт — 117.3 рубля.\n").request_count(2);
    outcome.equal(asked, ["USD", "EUR", "GBP"].map(|code| format!("/v4/latest/{code}")).to_vec());
    let [dollar, euro, pound] = [
        "toolu_01UsdAq3Lk8VwXz5TbRnYcMe",
        "toolu_01XqZ9KtM3bW7pYvR2sLfHcD",
        "toolu_01GbpJm9Hs4NdQy6KcPtWvZf",
    ];
    let call = |id: &str, code: &str| json!({"type": "tool_use", "id": id, "name": "get_exchange_rate", "input": {"currency": code}});
    let mark = json!({"type": "ephemeral"});
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": QUESTION, "cache_control": mark}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Сейчас посмотрю все три курса."},
            call(dollar, "USD"), call(euro, "EUR"), call(pound, "GBP")]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": dollar,
                "content": r#"{"currency":"USD","rate_to_rub":92.4}"#},
            {"type": "tool_result", "tool_use_id": euro, "content": EURO_RESULT},
            {"type": "tool_result", "tool_use_id": pound,
                "content": r#"{"currency":"GBP","rate_to_rub":117.30}"#, "cache_control": mark}]},
    ]);
    outcome.equal(&outcome.body(2)["messages"], &expected);
}

#[test]
fn chat_completions_does_the_same() {
    let story = Story::new("chat").openai().exchange("fixtures/exchange-rates/chat");
    let (outcome, _) = run_with_rates(story, vec![rate("EUR", "100.1"), rate("USD", "92.4")]);
    outcome.code(0).stdout("Евро стоит 100.1, доллар — 92.4 рубля.\n").stderr("").request_count(2);
    let [euro, dollar] = ["call_q3VbT0fXKe7LmZr9sYw2NcHd", "call_W8pJxG5uAa1oTk6iRy4FvBzQ"];
    let call = |id: &str, arguments: &str| {
        json!({"id": id, "type": "function",
            "function": {"name": "get_exchange_rate", "arguments": arguments}})
    };
    let body = outcome.body(2);
    let expected = json!([
        body["messages"][0],
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "Сейчас посмотрю.", "tool_calls": [
            call(euro, r#"{"currency": "EUR"}"#), call(dollar, r#"{"currency": "USD"}"#)]},
        {"role": "tool", "tool_call_id": euro, "content": EURO_RESULT},
        {"role": "tool", "tool_call_id": dollar, "content": r#"{"currency":"USD","rate_to_rub":92.4}"#},
    ]);
    outcome.equal(&body["messages"], &expected);
}

#[test]
fn a_service_that_fails_or_does_not_know_is_an_error_result() {
    let page = Reply::new(502, "text/html", "<html><h1>Bad gateway</h1></html>");
    let cases = [
        (
            Reply::new(404, "application/json", r#"{"result":"error","error_type":"unsupported_code"}"#),
            "the rates service does not know the currency EUR; check its ISO 4217 code",
        ),
        (Reply::new(503, "text/plain", "down"), "the rates service failed with status 503; try again later"),
        (page, "the rates service failed with status 502; try again later"),
        (
            Reply::new(200, "text/html", "<html>Welcome</html>"),
            "the rates service answered with something that is not a JSON object",
        ),
        (rate("EUR", "null"), "the rates service has no rate of EUR to RUB"),
        (
            Reply::new(302, "text/plain", "").header("location: http://127.0.0.1:1/"),
            "the rates service failed with status 302; try again later",
        ),
    ];
    for (reply, why) in cases {
        for api in BOTH {
            let story = Story::new("service").api(api);
            let story = story.reply(asks(api, "", &[ASKS_EURO])).reply(answer(api, "Не знаю."));
            let (outcome, asked) = run_with_rates(story, vec![reply.clone()]);
            outcome.code(0).stdout("Не знаю.\n").stderr("").request_count(2);
            outcome.equal(asked.len(), 1);
            let text = json!({"error": why}).to_string();
            outcome.equal(results(api, &outcome.body(2)), vec![error("toolu_1", &text)]);
        }
    }
}

#[test]
fn a_service_that_cannot_be_reached_is_an_error_result() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let story = Story::new("unreachable").anthropic().env("COTTER_RATES_URL", &format!("http://{free}"));
    let replies = [asks(Api::Anthropic, "", &[ASKS_EURO]), answer(Api::Anthropic, "Не знаю.")];
    let outcome = replies.into_iter().fold(story, Story::reply).args(&["-p", QUESTION]).run();
    outcome.code(0).stdout("Не знаю.\n").request_count(2);
    let why = "the rates service cannot be reached: no answer came back; try again later, or say that the rate \
               is not known";
    let text = json!({"error": why}).to_string();
    outcome.equal(results(Api::Anthropic, &outcome.body(2)), vec![error("toolu_1", &text)]);
}

#[test]
fn calls_that_cannot_run_are_answered_and_the_others_run() {
    for api in BOTH {
        let calls = [
            ("toolu_1", "search_web", r#"{"query": "курс евро"}"#),
            ("toolu_2", "get_exchange_rate", r#"{"currency": "ЕВРО"}"#),
            ("toolu_3", "get_exchange_rate", r#"{"currency": 978}"#),
            ("toolu_4", "get_exchange_rate", "{}"),
            ("toolu_5", "get_exchange_rate", r#"{"currency": "EUR", "date": "2026-11-30"}"#),
            ("toolu_6", "get_exchange_rate", r#"["EUR"]"#),
            ("toolu_7", "get_exchange_rate", r#"{"currency": "eur"}"#),
        ];
        let story = Story::new("cannot run").api(api);
        let story = story.reply(asks(api, "", &calls)).reply(answer(api, EURO));
        let (outcome, asked) = run_with_rates(story, euro());
        outcome.code(0).stdout(EURO).request_count(2);
        outcome.equal(asked, vec!["/v4/latest/EUR".to_owned()]);
        let tools = outcome.body(1)["tools"].clone();
        let tool = tools.as_array().unwrap().last().unwrap();
        let schema =
            if api == Api::Anthropic { &tool["input_schema"] } else { &tool["function"]["parameters"] };
        let wrong = |what: &str| {
            let schema = format!("get_exchange_rate {what}; the schema of its arguments is {schema}");
            json!({"error": schema}).to_string()
        };
        let not_three = json!({"error":
            "a currency is its ISO 4217 code of three letters, such as USD, EUR or GBP, not \"ЕВРО\""});
        let expected = vec![
            error(
                "toolu_1",
                "there is no tool \"search_web\": the tools are Read, Write, Edit, Glob, Grep, Bash, BashOutput, KillShell, \
                 get_current_datetime, add_duration_to_datetime, get_exchange_rate",
            ),
            error("toolu_2", &not_three.to_string()),
            error("toolu_3", &wrong("takes a string as \"currency\", not 978")),
            error("toolu_4", &wrong("needs \"currency\"")),
            error("toolu_5", &wrong("has no argument \"date\"")),
            error("toolu_6", "the arguments are not a JSON object, so the call was not run: [\"EUR\"]"),
            result("toolu_7", EURO_RESULT),
        ];
        outcome.equal(results(api, &outcome.body(2)), expected);
    }
}

#[test]
fn a_tool_that_was_not_offered_is_not_run() {
    for api in BOTH {
        let write = ("toolu_1", "Write", r#"{"file_path": "a.txt", "content": "a"}"#);
        let story = story(api).args(&["--tools", "get_exchange_rate"]);
        let outcome = story.reply(asks(api, "", &[write])).reply(answer(api, "Нет.")).run();
        outcome.code(0).no_file("a.txt");
        let why = "there is no tool \"Write\": the tools are get_exchange_rate";
        outcome.equal(results(api, &outcome.body(2)), vec![error("toolu_1", why)]);
    }
}

/// A run of two turns with a call and one with the answer, under a limit.
fn limited(api: Api, most: &str, replies: usize) -> Outcome {
    let calls = [("toolu_1", "get_current_datetime", "{}"), ("toolu_2", "get_current_datetime", "{}")];
    let all =
        [asks(api, "Сначала дата.", &calls[..1]), asks(api, "Ещё раз.", &calls[1..]), answer(api, "Готово.")];
    let story = story(api).args(&["--max-turns", most, "--output-format", "json"]);
    all.into_iter().take(replies).fold(story, Story::reply).run()
}

#[test]
fn the_limit_on_turns_ends_a_run_that_needs_one_more() {
    for api in BOTH {
        let outcome = limited(api, "2", 2);
        let why = "the answer is not finished after 2 turns (--max-turns): raise the limit or ask for less";
        outcome.code(20).request_count(2).stderr(&format!("cotter: {why}\n"));
        let found = outcome.json();
        let members = ["type", "subtype", "is_error", "num_turns", "result", "error"];
        let expected = json!({"type": "result", "subtype": "error_max_turns", "is_error": true,
            "num_turns": 2, "result": "Ещё раз.",
            "error": {"class": "max_turns", "code": 20, "message": why}});
        for member in members {
            outcome.equal(&found[member], &expected[member]);
        }
    }
}

#[test]
fn the_limit_on_turns_lets_a_run_end_that_needs_as_many_or_fewer() {
    for api in BOTH {
        for most in ["3", "4"] {
            let outcome = limited(api, most, 3);
            let found = outcome.code(0).stderr("").request_count(3).json();
            outcome.equal(&found["subtype"], &json!("success")).equal(&found["is_error"], &json!(false));
            outcome.equal(&found["num_turns"], &json!(3)).equal(&found["result"], &json!("Готово."));
        }
        let outcome = story(api).args(&["--max-turns", "1"]).reply(answer(api, "Сразу.")).run();
        outcome.code(0).stdout("Сразу.\n").request_count(1);
    }
}

#[test]
fn in_text_mode_the_limit_on_turns_prints_nothing() {
    for api in BOTH {
        let outcome = story(api).args(&["--max-turns", "1"]).reply(asks(api, "Сначала.", &[ASKS_EURO])).run();
        outcome.code(20).stdout("").request_count(1);
    }
}

// How a reply ends.

/// Every word of an API for the end of a reply that holds a text and no call, with the code it leads to.
const WORDS: [(Api, &str, i32, &str); 18] = [
    (Api::Anthropic, "end_turn", 0, ""),
    (Api::Anthropic, "stop_sequence", 0, ""),
    (Api::Anthropic, "tool_use", 0, ""),
    (Api::Anthropic, "compaction", 0, ""),
    (Api::Anthropic, "a_word_of_tomorrow", 0, ""),
    (Api::Anthropic, "max_tokens", 8, CUT),
    (Api::Anthropic, "model_context_window_exceeded", 8, FULL),
    (Api::Anthropic, "refusal", 8, DECLINED),
    (Api::OpenAi, "stop", 0, ""),
    (Api::OpenAi, "tool_calls", 0, ""),
    (Api::OpenAi, "eos", 0, ""),
    (Api::OpenAi, "a_word_of_tomorrow", 0, ""),
    (Api::OpenAi, "length", 8, CUT),
    (Api::OpenAi, "max_tokens", 8, CUT),
    (Api::OpenAi, "model_length", 8, FULL),
    (Api::OpenAi, "content_filter", 8, FILTERED),
    (Api::OpenAi, "sensitive", 8, FILTERED),
    (Api::OpenAi, "refusal", 8, DECLINED),
];
const CUT: &str = "the answer was cut at the output limit: raise --max-output-tokens or ask for less";
const FULL: &str = "the answer was cut because the context window is full: shorten the input or choose \
                    another --model";
const FILTERED: &str = "the answer was withheld by the API's content filter: rephrase the request or \
                        choose another --model";
const DECLINED: &str = "the model declined to answer: rephrase the request or choose another --model";

#[test]
fn every_word_for_the_end_of_an_answer_has_its_outcome() {
    for (api, word, code, why) in WORDS {
        let reply = ends(api, "Курс евро — 100.1", &[], word);
        let outcome = story(api).reply(reply.clone()).run();
        outcome.code(code).request_count(1);
        match code {
            0 => outcome.stdout("Курс евро — 100.1\n").stderr(""),
            _ => outcome.stdout("").stderr(&format!("cotter: {why}\n")),
        };
        let outcome = story(api).args(&["--output-format", "json"]).reply(reply).run();
        let found = outcome.code(code).json();
        outcome.equal(&found["result"], &json!("Курс евро — 100.1"));
        outcome.equal(&found["is_error"], &json!(code != 0));
        let subtype = if code == 0 { "success" } else { "error_during_execution" };
        outcome.equal(&found["subtype"], &json!(subtype));
        if code != 0 {
            let error = json!({"class": "incomplete", "code": 8, "message": why});
            outcome.equal(&found["error"], &error);
        }
    }
}

#[test]
fn a_missing_word_for_the_end_is_no_matter() {
    let blocks = [json!({"type": "text", "text": "Курс — 100.1."})];
    let replies = [
        (Api::Anthropic, messages(&blocks, &json!({"stop_reason": null, "stop_sequence": null}))),
        (Api::Anthropic, messages(&blocks, &json!({}))),
        (Api::OpenAi, chat_without_reason("Курс — 100.1.")),
    ];
    for (api, reply) in replies {
        story(api).reply(reply).run().code(0).stdout("Курс — 100.1.\n").stderr("").request_count(1);
    }
}

#[test]
fn calls_are_run_whatever_word_of_an_orderly_end_stands_beside_them() {
    let words = [
        (Api::Anthropic, vec!["tool_use", "end_turn", "stop_sequence", "a_word_of_tomorrow"]),
        (
            Api::OpenAi,
            vec!["tool_calls", "stop", "function_call", "tool_use", "end_turn", "a_word_of_tomorrow"],
        ),
    ];
    for (api, words) in words {
        for word in words {
            let story = Story::new(word).api(api);
            let story = story.reply(ends(api, "", &[ASKS_EURO], word)).reply(answer(api, EURO));
            let (outcome, _) = run_with_rates(story, euro());
            outcome.code(0).stdout(EURO).stderr("");
            outcome.equal(results(api, &outcome.body(2)), vec![result("toolu_1", EURO_RESULT)]);
        }
    }
}

#[test]
fn a_call_in_a_reply_that_was_withheld_is_never_run() {
    let call = ("toolu_1", "Write", r#"{"file_path": "a.txt", "content": "a"}"#);
    let words = [
        (Api::Anthropic, "refusal"),
        (Api::Anthropic, "model_context_window_exceeded"),
        (Api::OpenAi, "content_filter"),
        (Api::OpenAi, "model_length"),
    ];
    for (api, word) in words {
        let outcome = story(api).reply(ends(api, "Пишу.", &[call], word)).run();
        outcome.code(8).stdout("").no_file("a.txt").request_count(1);
    }
}

#[test]
fn a_reply_that_the_server_broke_off_itself_is_asked_for_again() {
    for word in ["error", "abort", "insufficient_system_resource", "network_error"] {
        let api = Api::OpenAi;
        let broken =
            ends(api, "Курс", &[("call_1", "Write", r#"{"file_path": "a.txt", "content": "a"}"#)], word);
        let outcome = story(api).args(&["--max-retries", "0"]).reply(broken.clone()).run();
        outcome.code(5).stdout("").no_file("a.txt").stderr(&format!(
            "cotter: the API is overloaded or limits the rate (HTTP 503: the server ended the reply with \
             \"{word}\")\n"
        ));
        let outcome = story(api).reply(broken).reply(answer(api, "Курс — 100.1.")).run();
        outcome.code(0).stdout("Курс — 100.1.\n").request_count(2).no_file("a.txt");
    }
}

#[test]
fn a_refusal_in_the_middle_of_the_stream_makes_the_text_void_and_is_explained() {
    let blocks = [json!({"type": "text", "text": "Конечно, вот"})];
    let end = json!({"stop_reason": "refusal", "stop_sequence": null, "stop_details":
        {"type": "refusal", "category": "cyber", "explanation": "This could\nbe misused."}});
    let outcome = story(Api::Anthropic).reply(messages(&blocks, &end)).run();
    outcome.code(8).stdout("").request_count(1).stderr(
        "cotter: the model declined to answer (This could be misused.): rephrase the request or choose \
         another --model\n",
    );
    let outcome = story(Api::Anthropic).reply(messages(&[], &end)).run();
    outcome.code(8).stdout("").request_count(1);
}

#[test]
fn a_refusal_in_its_own_member_is_a_refusal() {
    let body = r#"{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"I can't help with that."},"finish_reason":"stop"}]}"#;
    let outcome = story(Api::OpenAi).reply(Reply::new(200, "application/json", body)).run();
    outcome.code(8).stdout("").request_count(1).stderr(
        "cotter: the model declined to answer (I can't help with that.): rephrase the request or choose \
         another --model\n",
    );
}

#[test]
fn the_old_form_of_a_call_is_understood() {
    let body = r#"{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"function_call":{"name":"get_exchange_rate","arguments":"{\"currency\": \"EUR\"}"}},"finish_reason":"function_call"}]}"#;
    let story = Story::new("function_call").openai().reply(Reply::new(200, "application/json", body));
    let (outcome, _) = run_with_rates(story.reply(answer(Api::OpenAi, EURO)), euro());
    outcome.code(0).stdout(EURO);
    outcome.equal(results(Api::OpenAi, &outcome.body(2)), vec![result("call_1", EURO_RESULT)]);
}

// A reply that was cut.

const NOT_RUN: &str = "not run: the reply was cut at the output limit before its calls were complete. Make \
                       smaller calls, for instance a long file in several parts";
const CUT_WORDS: [(Api, &str); 2] = [(Api::Anthropic, "max_tokens"), (Api::OpenAi, "length")];

#[test]
fn a_reply_cut_in_the_middle_of_a_call_runs_none_of_its_calls() {
    let whole = ("toolu_1", "Write", r#"{"file_path": "whole.txt", "content": "a"}"#);
    let half = ("toolu_2", "Write", r#"{"file_path": "half.txt", "content": "a long te"#);
    for (api, word) in CUT_WORDS {
        let story = story(api).reply(ends(api, "Пишу.", &[whole, half], word));
        let outcome = story.reply(answer(api, "Не вышло.")).run();
        outcome.code(0).stdout("Не вышло.\n").request_count(2).no_file("whole.txt").no_file("half.txt");
        let expected = vec![error("toolu_1", NOT_RUN), error("toolu_2", NOT_RUN)];
        outcome.equal(results(api, &outcome.body(2)), expected);
    }
}

#[test]
fn a_call_that_looks_complete_in_a_reply_that_was_cut_is_not_run() {
    for (api, word) in CUT_WORDS {
        for arguments in [r#"{"file_path": "a.txt", "content": "a"}"#, ""] {
            let call = ("toolu_1", "Write", arguments);
            let story = story(api).reply(ends(api, "", &[call], word)).reply(answer(api, "Нет."));
            let outcome = story.run();
            outcome.code(0).stdout("Нет.\n").no_file("a.txt");
            outcome.equal(results(api, &outcome.body(2)), vec![error("toolu_1", NOT_RUN)]);
        }
    }
}

#[test]
fn three_replies_cut_in_a_row_end_the_run_and_fewer_do_not() {
    let half = |id: &'static str| (id, "Write", r#"{"file_path": "a.txt", "content": "a long te"#);
    for (api, word) in CUT_WORDS {
        let cut = |id: &'static str| ends(api, "", &[half(id)], word);
        let outcome = story(api).reply(cut("toolu_1")).reply(cut("toolu_2")).reply(cut("toolu_3")).run();
        outcome.code(8).stdout("").request_count(3).no_file("a.txt").stderr(
            "cotter: 3 replies in a row were cut at the output limit in the middle of a call: raise \
             --max-output-tokens\n",
        );
        let call = ("toolu_3", "get_current_datetime", "{}");
        let replies = [
            cut("toolu_1"),
            cut("toolu_2"),
            asks(api, "", &[call]),
            cut("toolu_4"),
            cut("toolu_5"),
            answer(api, "Всё."),
        ];
        let outcome = replies.into_iter().fold(story(api), Story::reply).run();
        outcome.code(0).stdout("Всё.\n").request_count(6).no_file("a.txt");
    }
}

// An empty answer.

const NUDGE: &str = "Your last message was empty. Go on, or give your answer.";
const EMPTY: &str = "cotter: the model's answer is empty, twice in a row: rephrase the request or choose \
                     another --model\n";

#[test]
fn an_empty_answer_is_asked_about_once() {
    for api in BOTH {
        for empty in ["", "  \n"] {
            let outcome = story(api).reply(answer(api, empty)).reply(answer(api, "Вот.")).run();
            outcome.code(0).stdout("Вот.\n").stderr("").request_count(2);
            outcome.equal(last_text(&outcome.body(2)), format!("{QUESTION}\n\n{NUDGE}"));
            let outcome = story(api).reply(answer(api, empty)).reply(answer(api, empty)).run();
            outcome.code(8).stdout("").stderr(EMPTY).request_count(2);
        }
    }
}

#[test]
fn an_empty_answer_after_results_is_asked_about_beside_them() {
    for api in BOTH {
        let story = Story::new("empty after results").api(api);
        let story = story.reply(asks(api, "", &[ASKS_EURO])).reply(answer(api, "")).reply(answer(api, EURO));
        let (outcome, _) = run_with_rates(story, euro());
        outcome.code(0).stdout(EURO).request_count(3);
        let body = outcome.body(3);
        outcome.equal(results(api, &body), vec![result("toolu_1", EURO_RESULT)]);
        outcome.equal(last_text(&body), NUDGE.to_owned());
    }
}

#[test]
fn each_empty_answer_after_work_is_asked_about_anew() {
    let call = |id: &'static str| (id, "get_current_datetime", "{}");
    for api in BOTH {
        let replies = [
            answer(api, ""),
            asks(api, "", &[call("toolu_1")]),
            answer(api, ""),
            asks(api, "", &[call("toolu_2")]),
            answer(api, ""),
            answer(api, "Вот."),
        ];
        let outcome = replies.into_iter().fold(story(api), Story::reply).run();
        outcome.code(0).stdout("Вот.\n").request_count(6);
    }
}

// A server-side loop that pauses.

/// A block of the vendor's own search, whose input comes in pieces.
fn search(id: &str, query: &str) -> [Value; 2] {
    let result = json!({"type": "web_search_result", "title": "Курс", "url": "https://example.com/", "encrypted_content": "EqgfCioIARgB", "page_age": null});
    [
        json!({"type": "server_tool_use", "id": id, "name": "web_search",
            "input": format!(r#"{{"query": "{query}"}}"#)}),
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [result]}),
    ]
}

#[test]
fn a_reply_that_pauses_goes_back_unchanged_and_is_continued() {
    let [search_call, found] = search("srvtoolu_1", "курс евро");
    let text = json!({"type": "text", "text": "Ищу."});
    let paused = messages(&[text, search_call, found.clone()], &json!({"stop_reason": "pause_turn"}));
    let story = Story::new("pause").anthropic().reply(paused);
    let story = story.reply(asks(Api::Anthropic, "Сверю.", &[ASKS_EURO])).reply(answer(Api::Anthropic, EURO));
    let (outcome, _) = run_with_rates(story, euro());
    outcome.code(0).stdout(EURO).stderr("").request_count(3);
    let said = json!([{"type": "text", "text": "Ищу."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
            "input": {"query": "курс евро"}},
        found]);
    outcome.equal(&outcome.body(2)["messages"][1], &json!({"role": "assistant", "content": said}));
    // What it says when it goes on joins the message that was begun.
    let body = outcome.body(3);
    let mut continued = said.as_array().unwrap().clone();
    continued.push(json!({"type": "text", "text": "Сверю."}));
    continued.push(json!({"type": "tool_use", "id": "toolu_1", "name": "get_exchange_rate",
        "input": {"currency": "EUR"}}));
    outcome.equal(&body["messages"][1]["content"], &Value::from(continued));
    outcome.equal(results(Api::Anthropic, &body), vec![result("toolu_1", EURO_RESULT)]);
}

/// What came before the pause was left out.
#[test]
fn an_answer_that_was_paused_is_printed_from_its_beginning() {
    let [search_call, found] = search("srvtoolu_1", "курс евро");
    let text = json!({"type": "text", "text": "Ищу."});
    let paused = messages(&[text, search_call, found], &json!({"stop_reason": "pause_turn"}));
    let story = Story::new("paused answer").anthropic().reply(paused);
    let outcome = story.args(&["-p", "Курс?"]).reply(answer(Api::Anthropic, "Нашёл.")).run();
    outcome.code(0).stdout("Ищу.\nНашёл.\n").stderr("").request_count(2);
}

#[test]
fn a_call_in_a_reply_that_pauses_is_answered() {
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "get_exchange_rate",
        "input": r#"{"currency": "EUR"}"#});
    let [search_call, found] = search("srvtoolu_1", "курс евро");
    let paused = messages(&[search_call, found, call], &json!({"stop_reason": "pause_turn"}));
    let story = Story::new("pause with a call").anthropic().reply(paused);
    let (outcome, _) = run_with_rates(story.reply(answer(Api::Anthropic, EURO)), euro());
    outcome.code(0).stdout(EURO).request_count(2);
    outcome.equal(results(Api::Anthropic, &outcome.body(2)), vec![result("toolu_1", EURO_RESULT)]);
}

#[test]
fn a_server_that_pauses_for_ever_is_left() {
    let story = (0..11).fold(story(Api::Anthropic), |story, number| {
        let blocks = search(&format!("srvtoolu_{number}"), "курс");
        story.reply(messages(&blocks, &json!({"stop_reason": "pause_turn"})))
    });
    let outcome = story.run();
    outcome.code(8).stdout("").request_count(11);
    outcome.stderr("cotter: the server paused its reply 10 times in a row\n");
}
