//! Which model is asked and how hard it is to think: in each server's words, with what a refusal teaches, and the
//! models that stand in for one that stays overloaded.

use serde_json::{Value, json};

use crate::check::Api;
use crate::server::Reply;
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, messages};

fn run(api: Api, args: &[&str], replies: impl IntoIterator<Item = Reply>) -> Outcome {
    let story = Story::new("thinking").api(api).args(&["-p", "Tell me."]).args(args);
    replies.into_iter().fold(story, Story::reply).run()
}

/// These members of a request.
fn members<const N: usize>(body: &Value, names: [&str; N]) -> [Value; N] {
    names.map(|name| body[name].clone())
}

fn refused(message: &str) -> Reply {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
    Reply::new(400, "application/json", body.to_string())
}

#[test]
fn messages_is_told_of_effort_and_thinking() {
    let api = Api::Anthropic;
    for (args, thinking, config) in [
        (&["--effort", "max"][..], Value::Null, json!({"effort": "max"})),
        (&["--thinking", "adaptive"], json!({"type": "adaptive"}), Value::Null),
        (
            &["--thinking", "enabled", "--thinking-display", "summarized"],
            json!({"type": "adaptive", "display": "summarized"}),
            Value::Null,
        ),
        (&["--thinking", "disabled"], json!({"type": "disabled"}), Value::Null),
        (&["--max-thinking-tokens", "2000"], json!({"type": "enabled", "budget_tokens": 2000}), Value::Null),
        (&["--max-thinking-tokens=0"], json!({"type": "disabled"}), Value::Null),
        (&[], Value::Null, Value::Null),
    ] {
        let outcome = run(api, args, [answer(api, "Told.")]);
        outcome.code(0).stdout("Told.\n").stderr("");
        outcome.equal(members(&outcome.body(1), ["thinking", "output_config"]), [thinking, config]);
    }
    let outcome = run(api, &["--thinking-display", "omitted"], [answer(api, "Told.")]);
    let said = "cotter: --thinking-display changes nothing without --thinking or --max-thinking-tokens\n";
    outcome.code(0).stderr(said).equal(&outcome.body(1)["thinking"], &Value::Null);
}

#[test]
fn chat_completions_is_told_of_effort() {
    let api = Api::OpenAi;
    for (args, effort, said) in [
        (&["--effort", "low"][..], json!("low"), ""),
        (&["--thinking", "disabled"], json!("none"), ""),
        (
            &["--thinking", "adaptive"],
            Value::Null,
            "cotter: Chat Completions has no word for thinking that all servers know, so none is asked for: try --effort\n",
        ),
        (
            &["--effort", "low", "--thinking-display", "omitted"],
            json!("low"),
            "cotter: --thinking-display is about Anthropic's API and changes nothing here\n",
        ),
    ] {
        let outcome = run(api, args, [answer(api, "Told.")]);
        outcome.code(0).stdout("Told.\n").stderr(said);
        outcome.equal(members(&outcome.body(1), ["reasoning_effort"]), [effort]);
    }
    let story = Story::new("thinking").openrouter().host("http://openrouter.ai/api/v1").args(&[
        "-p",
        "x",
        "--effort=high",
    ]);
    let outcome = story.reply(answer(Api::OpenRouter, "Told.")).run();
    outcome.equal(
        members(&outcome.body(1), ["reasoning", "reasoning_effort"]),
        [json!({"effort": "high"}), Value::Null],
    );
}

/// Models before 4.6 know a budget alone, and newer ones adaptive thinking alone.
#[test]
fn a_model_that_thinks_in_the_other_way_is_asked_to() {
    let api = Api::Anthropic;
    let no = "adaptive thinking is not supported on this model";
    let outcome = run(api, &["--thinking", "adaptive"], [refused(no), answer(api, "Told.")]);
    outcome.code(0).stdout("Told.\n").stderr("");
    let asked = json!({"type": "enabled", "budget_tokens": 16000});
    outcome.equal(members(&outcome.body(2), ["thinking", "max_tokens"]), [asked, json!(32000)]);

    let no = "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\"";
    let outcome = run(api, &["--max-thinking-tokens", "40000"], [refused(no), answer(api, "Told.")]);
    outcome.code(0).stdout("Told.\n").stderr("");
    outcome.equal(members(&outcome.body(1), ["max_tokens"]), [json!(48000)]);
    outcome.equal(members(&outcome.body(2), ["thinking"]), [json!({"type": "adaptive"})]);
}

#[test]
fn what_a_model_does_not_take_is_left_out_and_said() {
    let api = Api::Anthropic;
    let (effort, thinking) = ("This model does not support the effort parameter.", "thinking: not supported");
    let args = ["--effort", "low", "--thinking", "disabled"];
    let outcome = run(api, &args, [refused(effort), refused(thinking), answer(api, "Told.")]);
    outcome.code(0).stdout("Told.\n").stderr(concat!(
        "cotter: the model does not take the --effort asked for: asking without it\n",
        "cotter: the model does not take the thinking asked for: asking without it\n",
    ));
    outcome.equal(members(&outcome.body(3), ["thinking", "output_config"]), [Value::Null, Value::Null]);
    let no = "Unrecognized request argument supplied: reasoning_effort";
    let outcome = run(Api::OpenAi, &["--effort", "low"], [refused(no), answer(Api::OpenAi, "Told.")]);
    outcome.code(0).stdout("Told.\n");
    outcome.stderr("cotter: the model does not take the --effort asked for: asking without it\n");
    outcome.equal(members(&outcome.body(2), ["reasoning_effort"]), [Value::Null]);
}

/// It would be asked for something else than was wanted, and for ever.
#[test]
fn a_refusal_of_thoughts_in_the_history_is_no_lesson() {
    let api = Api::Anthropic;
    let no = "Invalid `signature` in `thinking` block";
    let outcome = run(api, &["--thinking", "adaptive"], [refused(no)]);
    outcome.code(4).stdout("").stderr_has(no).request_count(1);
}

fn overloaded() -> Reply {
    let body = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    Reply::new(529, "application/json", body.to_string()).header("retry-after-ms: 1")
}

#[test]
fn a_model_that_stays_overloaded_gives_way_to_the_next_for_the_rest_of_the_run() {
    for api in BOTH {
        let call = ("call_1", "get_current_datetime", "{}");
        let replies =
            [overloaded(), overloaded(), overloaded(), asks(api, "", &[call]), answer(api, "Told.")];
        let outcome = run(api, &["--model", "first", "--fallback-model", "second, third"], replies);
        outcome.code(0).stdout("Told.\n").request_count(5);
        outcome.stderr_has("gave up after 3 attempts: asking second from here on (--fallback-model)\n");
        let models: Vec<_> = (1..=5).map(|number| outcome.body(number)["model"].clone()).collect();
        outcome.equal(models, ["first", "first", "first", "second", "second"].map(Value::from).to_vec());
    }
}

#[test]
fn the_last_model_is_waited_for_as_long_as_one_alone() {
    let api = Api::Anthropic;
    let replies = std::iter::repeat_with(overloaded).take(8);
    let outcome = run(api, &["--model", "first", "--fallback-model", "second"], replies);
    outcome.code(5).stdout("").request_count(8).stderr_has("gave up after 5 attempts\n");
}

/// Thinking goes back only to the model that made it.
#[test]
fn the_next_model_gets_no_thoughts_of_the_first() {
    let api = Api::Anthropic;
    let blocks = [
        json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
        json!({"type": "tool_use", "id": "call_1", "name": "get_current_datetime", "input": "{}"}),
    ];
    let thinks = messages(&blocks, &json!({"stop_reason": "tool_use", "stop_sequence": null}));
    let replies = [thinks, overloaded(), answer(api, "Told.")];
    let args = ["--model", "first", "--fallback-model", "second", "--max-retries", "0"];
    let outcome = run(api, &args, replies);
    outcome.code(0).stdout("Told.\n").request_count(3);
    let kinds = |number: usize| -> Vec<Value> {
        let body = outcome.body(number);
        body["messages"][1]["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect()
    };
    outcome.equal(kinds(2), vec![json!("thinking"), json!("tool_use")]);
    outcome.equal(kinds(3), vec![json!("tool_use")]);
}

#[test]
fn what_is_no_overload_asks_no_other_model() {
    let api = Api::Anthropic;
    let outcome = run(api, &["--model", "first", "--fallback-model", "second"], [refused("No.")]);
    outcome.code(4).stdout("").request_count(1);
}

#[test]
fn a_fallback_that_helps_nothing_is_refused() {
    for (args, why) in [
        (
            ["--model=m", "--fallback-model=a,m"],
            "--fallback-model \"m\" is the model that is asked already: name another",
        ),
        (
            ["--model=m", "--fallback-model=a,,b"],
            "--fallback-model is one model or several with commas, not \"a,,b\"",
        ),
        (
            ["--model=m", "--effort=most"],
            "--effort is one of none, minimal, low, medium, high, xhigh, max, not \"most\"",
        ),
    ] {
        run(Api::Anthropic, &args, []).code(2).stderr(&format!("cotter: {why}\n")).request_count(0);
    }
}
