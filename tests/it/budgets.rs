//! Budgets: calls, tokens, money and time that a run may take, wherever they run out, and what everything
//! cost. Where a time is involved, what is compared does not depend on how long anything took.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::thread;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, listen, socket};
use serde_json::{Value, json};

use crate::check::Api;
use crate::server::{Ending, Reply};
use crate::stage::{Scripted, Stage, read_request, run, serve};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks};

const JSON: [&str; 2] = ["--output-format", "json"];

fn story(api: Api) -> Story {
    Story::new("budgets").api(api).args(&JSON).args(&["-p", "Write them."])
}

/// Calls that each make a file.
const WRITES: [(&str, &str, &str); 3] = [
    ("toolu_1", "Write", r#"{"file_path": "a", "content": "1"}"#),
    ("toolu_2", "Write", r#"{"file_path": "b", "content": "2"}"#),
    ("toolu_3", "Write", r#"{"file_path": "c", "content": "3"}"#),
];

/// The reply with 2,500 tokens read and 40 written, as replies of the Messages API have them anyway.
fn counted(api: Api, reply: Reply) -> Reply {
    billed(api, reply, &json!(null))
}

/// The same with what OpenRouter says that it cost.
fn billed(api: Api, reply: Reply, cost: &Value) -> Reply {
    if api == Api::Anthropic {
        return reply;
    }
    let usage = json!({"prompt_tokens": 2500, "completion_tokens": 40, "total_tokens": 2540, "cost": cost});
    let chunk = json!({"id": "gen-1", "choices": [], "usage": usage});
    reply.replace("data: [DONE]", &format!("data: {chunk}\n\ndata: [DONE]"))
}

/// What a run that ended by a budget says, and the members of its result that go with it.
#[track_caller]
fn ended(outcome: &Outcome, code: i32, class: &str, message: &str) -> Value {
    outcome.code(code).stderr(&format!("cotter: {message}\n"));
    let result = outcome.json();
    outcome.equal(&result["error"], &json!({"class": class, "code": code, "message": message}));
    let subtype = if class == "max_budget_usd" { "error_max_budget_usd" } else { "error_during_execution" };
    outcome.equal(&result["subtype"], &json!(subtype));
    result
}

/// The lines of the one session file below a HOME.
fn session(home: &Path) -> Vec<Value> {
    let folder = home.join(".local/state/cotter/sessions");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(files.remove(0)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a text stands somewhere in the session of a story.
#[track_caller]
fn session_has(outcome: &Outcome, text: &str) {
    let home = outcome.folder.parent().unwrap().join("home");
    let lines: Vec<String> = session(&home).iter().map(Value::to_string).collect();
    assert!(lines.iter().any(|line| line.contains(text)), "{lines:#?}\n{}", outcome.report());
}

// Calls.

#[test]
fn a_call_too_many_is_answered_and_not_run() {
    for api in BOTH {
        let outcome = story(api).args(&["--max-tool-calls", "2"]).reply(asks(api, "So.", &WRITES)).run();
        let why = "the run has made 2 of 2 tool calls (--max-tool-calls): raise the limit or ask for less";
        let result = ended(&outcome, 21, "max_tool_calls", why);
        outcome.file("a", "1").file("b", "2").no_file("c").request_count(1);
        outcome.equal(&result["result"], &json!("So.")).equal(&result["num_turns"], &json!(1));
        session_has(&outcome, &format!("not run: {why}"));
    }
}

#[test]
fn calls_within_the_limit_are_run_and_none_may_be_allowed() {
    for api in BOTH {
        let story_with = |most: &str| story(api).args(&["--max-tool-calls", most]);
        let replies = [asks(api, "", &WRITES[..2]), answer(api, "Done.")];
        let outcome = replies.into_iter().fold(story_with("2"), Story::reply).run();
        outcome.code(0).file("b", "2");
        let outcome = story_with("0").reply(asks(api, "", &WRITES[..1])).run();
        let why = "the run has made 0 of 0 tool calls (--max-tool-calls): raise the limit or ask for less";
        ended(&outcome, 21, "max_tool_calls", why);
        outcome.no_file("a");
        // What only answers needs none.
        story_with("0").reply(answer(api, "Done.")).run().code(0);
    }
}

#[test]
fn a_single_step_has_the_same_limit() {
    for api in BOTH {
        let story = Story::new("budgets").api(api).file("notes.txt", "1932\n");
        let story = story.args(&["--single-step", "--max-tool-calls", "0", "-p", "Read it."]);
        let call = ("toolu_1", "Read", r#"{"file_path": "notes.txt"}"#);
        let outcome = story.reply(asks(api, "", &[call])).run();
        outcome.code(21).stdout("").stderr(
            "cotter: the run has made 0 of 0 tool calls (--max-tool-calls): raise the limit or ask for less\n",
        );
    }
}

// Tokens.

#[test]
fn a_reply_beyond_the_tokens_ends_the_run_and_none_of_its_calls_is_run() {
    for api in BOTH {
        let story = story(api).args(&["--max-total-tokens", "2510"]);
        let outcome = story.reply(counted(api, asks(api, "So.", &WRITES[..1]))).run();
        let why =
            "the run has used 2,540 of 2,510 tokens (--max-total-tokens): raise the limit or ask for less";
        let result = ended(&outcome, 22, "max_total_tokens", why);
        outcome.no_file("a").request_count(1);
        outcome.equal(&result["result"], &json!("So."));
        outcome.equal(&result["usage"]["output_tokens"], &json!(40));
        session_has(&outcome, &format!("not run: {why}"));
    }
}

#[test]
fn with_all_tokens_used_the_calls_are_run_and_nothing_more_is_asked() {
    for api in BOTH {
        let story = story(api).args(&["--max-total-tokens", "2540"]);
        let outcome = story.reply(counted(api, asks(api, "", &WRITES[..1]))).run();
        let why =
            "the run has used 2,540 of 2,540 tokens (--max-total-tokens): raise the limit or ask for less";
        ended(&outcome, 22, "max_total_tokens", why);
        outcome.file("a", "1").request_count(1);
    }
}

#[test]
fn tokens_are_added_up_over_replies() {
    for api in BOTH {
        let replies = || [counted(api, asks(api, "", &WRITES[..1])), counted(api, answer(api, "Done."))];
        let within = story(api).args(&["--max-total-tokens", "5080"]);
        replies().into_iter().fold(within, Story::reply).run().code(0).request_count(2);
        let beyond = story(api).args(&["--max-total-tokens", "5079"]);
        let outcome = replies().into_iter().fold(beyond, Story::reply).run();
        let why =
            "the run has used 5,080 of 5,079 tokens (--max-total-tokens): raise the limit or ask for less";
        // The answer was paid for, and is there.
        let result = ended(&outcome, 22, "max_total_tokens", why);
        outcome.equal(&result["result"], &json!("Done."));
    }
}

/// The news of a reply under way is enough, and a server that falls silent then is not waited for.
#[test]
fn a_stream_ends_as_soon_as_it_is_known_to_be_beyond_the_tokens() {
    let grown =
        json!({"type": "message_delta", "delta": {"stop_reason": null}, "usage": {"output_tokens": 600}});
    let marker = "event: content_block_stop";
    let body = |reply: &Reply| String::from_utf8(reply.body().to_vec()).unwrap();
    let with_news = answer(Api::Anthropic, "Half of it")
        .replace(marker, &format!("event: message_delta\ndata: {grown}\n\n{marker}"));
    let end = body(&with_news).find(marker).unwrap();
    let anthropic = (Api::Anthropic, with_news.cut(end, Ending::Stall), "3,100");
    let chunk = json!({"choices": [], "usage": {"prompt_tokens": 2500, "completion_tokens": 600}});
    let marker = "data: {\"id\":\"chatcmpl";
    let with_news = answer(Api::OpenAi, "Half of it");
    let last = body(&with_news).rfind(marker).unwrap();
    let bytes = format!("{}data: {chunk}\n\n", &body(&with_news)[..last]);
    let openai = Reply::new(200, "text/event-stream", format!("{bytes}data: [DONE]\n\n"));
    let openai = (Api::OpenAi, openai.cut(bytes.len(), Ending::Stall), "3,100");
    for (api, reply, used) in [anthropic, openai] {
        let outcome = story(api).args(&["--max-total-tokens", "3000"]).reply(reply).run();
        let why = format!(
            "the run has used {used} of 3,000 tokens (--max-total-tokens): raise the limit or ask for less"
        );
        let result = ended(&outcome, 22, "max_total_tokens", &why);
        outcome.equal(&result["result"], &json!("Half of it"));
        outcome.equal(&result["usage"]["output_tokens"], &json!(600));
        session_has(&outcome, "Half of it");
    }
}

// Money.

/// What a run costs in all, and what its models took.
#[track_caller]
fn costs(outcome: &Outcome, total: Value, models: Value) {
    let result = outcome.json();
    outcome.code(0).equal(&result["total_cost_usd"], &total).equal(&result["modelUsage"], &models);
}

#[test]
fn the_default_model_of_the_messages_api_has_a_known_price() {
    let api = Api::Anthropic;
    let cached = r#""input_tokens":2500,"cache_read_input_tokens":10000,"cache_creation_input_tokens":1000"#;
    let reply = answer(api, "Done.").replace(r#""input_tokens":2500"#, cached);
    let outcome = story(api).reply(reply).run();
    // 2,500 at 5, 40 at 25, 10,000 at 0.5 and 1,000 at 6.25 dollars per million.
    let models = json!({"claude-opus-4-6": {"inputTokens": 2500, "outputTokens": 40, "cacheReadInputTokens": 10000,
        "cacheCreationInputTokens": 1000, "webSearchRequests": 0, "costUSD": 0.02475}});
    costs(&outcome, json!(0.02475), models);
}

#[test]
fn what_openrouter_charges_is_added_up_exactly() {
    let api = Api::OpenRouter;
    let story = story(api).reply(billed(api, asks(api, "", &WRITES[..1]), &json!(0.1)));
    let outcome = story.reply(billed(api, answer(api, "Done."), &json!(0.2))).run();
    let models = json!({"anthropic/claude-haiku-4.5": {"inputTokens": 5000, "outputTokens": 80,
        "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "webSearchRequests": 0, "costUSD": 0.3}});
    costs(&outcome, json!(0.3), models);
}

#[test]
fn openrouters_default_model_has_a_known_price_too() {
    let api = Api::OpenRouter;
    let outcome = story(api).reply(counted(api, answer(api, "Done."))).run();
    outcome.code(0).equal(&outcome.json()["total_cost_usd"], &json!(0.0027));
}

#[test]
fn a_price_of_the_users_goes_before_every_other_figure() {
    for (api, price, total) in [
        (Api::Anthropic, "1,2", 0.00258),
        (Api::OpenRouter, "1,2,0.1,1.25", 0.00258),
        (Api::OpenAi, "0.000001,0", 0.0000000025),
    ] {
        let story = story(api).args(&["--price", price]);
        let outcome = story.reply(billed(api, answer(api, "Done."), &json!(0.5))).run();
        outcome.code(0).equal(&outcome.json()["total_cost_usd"], &json!(total));
    }
}

#[test]
fn the_prices_of_the_cache_are_those_given_or_that_of_input() {
    let api = Api::OpenAi;
    let details =
        r#""prompt_tokens":2500,"prompt_tokens_details":{"cached_tokens":1000,"cache_write_tokens":500}"#;
    for (price, total) in [("2,10,0.2,2.5", 0.00385), ("2,10", 0.0054)] {
        let reply = counted(api, answer(api, "Done.")).replace(r#""prompt_tokens":2500"#, details);
        let outcome = story(api).args(&["--price", price]).reply(reply).run();
        outcome.code(0).equal(&outcome.json()["total_cost_usd"], &json!(total));
    }
}

#[test]
fn a_cost_that_is_not_known_is_null() {
    let outcome = story(Api::OpenAi).reply(counted(Api::OpenAi, answer(Api::OpenAi, "Done."))).run();
    let models = json!({"test-model": {"inputTokens": 2500, "outputTokens": 40, "cacheReadInputTokens": 0,
        "cacheCreationInputTokens": 0, "webSearchRequests": 0, "costUSD": null}});
    costs(&outcome, json!(null), models);
    // Neither is one that a price is known for, but no count of tokens.
    let outcome = story(Api::OpenRouter).reply(answer(Api::OpenRouter, "Done.")).run();
    outcome.code(0).equal(&outcome.json()["total_cost_usd"], &json!(null));
}

#[test]
fn a_figure_that_is_no_amount_is_not_known_and_told() {
    for cost in [json!(-1), json!("0.1"), json!("NaN"), json!({"total": 1})] {
        let api = Api::OpenRouter;
        let outcome = story(api).args(&["--verbose"]).reply(billed(api, answer(api, "Done."), &cost)).run();
        outcome.code(0).equal(&outcome.json()["total_cost_usd"], &json!(null));
        outcome
            .stderr_has(&format!("cotter: what the server says that the reply cost is no amount: {cost}\n"));
    }
}

#[test]
fn money_that_is_spent_ends_the_run() {
    for (api, cost) in [(Api::Anthropic, "0.0135"), (Api::OpenRouter, "0.0133")] {
        let story = story(api).args(&["--max-budget-usd", "0.013"]);
        let outcome = story.reply(billed(api, asks(api, "So.", &WRITES[..1]), &json!(0.0133))).run();
        let why =
            format!("the run has cost ${cost} of $0.013 (--max-budget-usd): raise the limit or ask for less");
        let result = ended(&outcome, 23, "max_budget_usd", &why);
        outcome.no_file("a").request_count(1).equal(&result["result"], &json!("So."));
        outcome.equal(result["total_cost_usd"].to_string(), cost.to_owned());
        session_has(&outcome, &format!("not run: {why}"));
    }
}

#[test]
fn a_stream_ends_as_soon_as_its_input_alone_is_too_dear() {
    // Thinking that never ends: only what the beginning says of the input is known.
    let reply = answer(Api::Anthropic, "Half of it");
    let text = String::from_utf8(reply.body().to_vec()).unwrap();
    let end = text.find("event: content_block_stop").unwrap();
    let outcome =
        story(Api::Anthropic).args(&["--max-budget-usd", "0.01"]).reply(reply.cut(end, Ending::Stall)).run();
    let why = "the run has cost $0.012525 of $0.01 (--max-budget-usd): raise the limit or ask for less";
    ended(&outcome, 23, "max_budget_usd", why);
}

#[test]
fn an_unknown_cost_ends_a_run_with_a_budget_unless_the_server_is_on_this_machine() {
    let api = Api::OpenAi;
    let asked =
        |story: Story| story.args(&["--max-budget-usd", "1"]).reply(counted(api, answer(api, "Done."))).run();
    let here = asked(story(api));
    here.code(0).equal(&here.json()["total_cost_usd"], &json!(null)).stderr(
        "cotter: --max-budget-usd has no effect here: the server is on this machine and names no cost; give --price \
         to count one\n",
    );
    let elsewhere = asked(story(api).host("http://models.test/v1"));
    let why =
        "the cost of a reply by \"test-model\" is not known, which --max-budget-usd needs: pass its --price";
    let result = ended(&elsewhere, 23, "max_budget_usd", why);
    elsewhere.equal(&result["total_cost_usd"], &json!(null)).equal(&result["result"], &json!("Done."));
    let priced = asked(story(api).host("http://models.test/v1").args(&["--price", "1,1"]));
    priced.code(0).equal(&priced.json()["total_cost_usd"], &json!(0.00254));
}

#[test]
fn a_budget_without_effect_is_said_once() {
    for (args, expected) in [
        (&["--max-budget-usd", "1"][..], 1),
        (&["--max-budget-usd", "1", "-q"], 0),
        (&["--max-budget-usd", "1", "--price", "1,1"], 0),
        (&[], 0),
    ] {
        let api = Api::OpenAi;
        let replies = [asks(api, "", &WRITES[..1]), asks(api, "", &WRITES[1..2]), answer(api, "Done.")];
        let replies = replies.map(|reply| counted(api, reply));
        let outcome = replies.into_iter().fold(story(api).args(args), Story::reply).run();
        let said = outcome.stderr.matches("has no effect here").count();
        outcome.code(0).equal(said, expected);
    }
}

#[test]
fn a_budget_is_refused_before_a_request_where_no_reply_would_name_its_cost() {
    let story = |args: &[&str]| {
        let story = Story::new("budgets").api(Api::Anthropic).host("http://api.anthropic.com");
        story.args(&["--max-budget-usd", "1", "-p", "Hi."]).args(args)
    };
    let why =
        "cotter: the price of \"claude-next\" is not known, which --max-budget-usd needs: pass its --price\n";
    for args in
        [&["--model", "claude-next"][..], &["--model", "sonnet", "--fallback-model", "haiku,claude-next"]]
    {
        story(args).run().code(2).stdout("").stderr(why).request_count(0);
    }
    for model in ["sonnet", "opus", "haiku", "best"] {
        story(&["--model", model]).reply(answer(Api::Anthropic, "Done.")).run().code(0).stderr("");
    }
    let priced = story(&["--model", "claude-next", "--price", "1,1"]);
    priced.reply(answer(Api::Anthropic, "Done.")).run().code(0).stderr("");
}

/// The beginning of a reply was paid for, though the connection broke and another reply took its place.
#[test]
fn what_a_broken_attempt_reported_counts() {
    let api = Api::Anthropic;
    let whole = answer(api, "Done.");
    let text = String::from_utf8(whole.body().to_vec()).unwrap();
    let broken = whole.clone().cut(text.find("event: content_block_stop").unwrap(), Ending::Reset);
    let outcome = story(api).reply(broken).reply(whole).run();
    let result = outcome.code(0).json();
    outcome.equal(&result["usage"]["input_tokens"], &json!(5000)).equal(&result["num_turns"], &json!(1));
    outcome.equal(&result["total_cost_usd"], &json!(0.026025));
}

// Time.

/// How a run ends whose time is over.
fn late(secs: &str) -> String {
    format!("cotter: the run's {secs} s are over (--timeout): raise the limit or ask for less\n")
}

/// Variables and arguments that name a server on this machine.
fn addressed(stage: &Stage, api: Api, port: u16, args: &[&str]) -> std::process::Command {
    match api {
        Api::Anthropic => {
            let mut command = stage.command(args);
            command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"));
            command.env("ANTHROPIC_API_KEY", "test-key");
            command
        }
        _ => stage.ask(port, args),
    }
}

#[test]
fn a_server_that_never_answers_is_waited_for_as_long_as_the_run_may_take() {
    for api in BOTH {
        let server = Scripted::start(|mut stream| {
            let asked = read_request(&mut stream).is_some();
            let _ = read_request(&mut stream);
            asked
        });
        let stage = Stage::new("never answers");
        let args = ["--timeout", "0.2", "-p", "Hi."];
        run(&mut addressed(&stage, api, server.port(), &args)).code(24).stdout("").stderr(late("0.2"));
        server.stop();
    }
}

#[test]
fn a_listener_that_never_accepts_is_one_that_never_answers() {
    let (port, serving) = serve(|listener| {
        let _ = listener;
        thread::park();
    });
    let stage = Stage::new("never accepts");
    run(&mut stage.ask(port, &["--timeout", "0.2", "-p", "Hi."])).code(24).stderr(late("0.2"));
    serving.thread().unpark();
    serving.join().unwrap();
}

/// A listener with room for no more connections lets none be made, as a firewall that drops packets does.
#[test]
fn a_connection_that_is_not_made_is_given_up() {
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    listen(&listener, 0).unwrap();
    let address = SocketAddrV4::try_from(getsockname(&listener).unwrap()).unwrap();
    let _one = TcpStream::connect(address).unwrap();
    let stage = Stage::new("no connection");
    let mut command = stage.ask(address.port(), &["--timeout", "0.2", "-p", "Hi."]);
    run(&mut command).code(24).stdout("").stderr(late("0.2"));
}

/// Reads whatever comes until the other side has gone, and says nothing.
fn silent(mut stream: TcpStream) {
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

#[test]
fn tls_that_is_never_agreed_on_is_given_up() {
    let server = Scripted::start(silent);
    let stage = Stage::new("no tls");
    let url = format!("https://127.0.0.1:{}/v1", server.port());
    let mut command = stage.command(&["--base-url", &url, "--model", "m", "--timeout", "0.2", "-p", "Hi."]);
    run(&mut command).code(24).stdout("").stderr(late("0.2"));
    server.stop();
}

#[test]
fn a_socks_proxy_that_is_silent_is_given_up() {
    let proxy = Scripted::start(silent);
    let stage = Stage::new("socks");
    let args = ["--base-url", "http://models.test/v1", "--model", "m", "--timeout", "0.2", "-p", "Hi."];
    let mut command = stage.command(&args);
    command.env("all_proxy", format!("socks5h://127.0.0.1:{}", proxy.port()));
    run(&mut command).code(24).stdout("").stderr(late("0.2"));
    proxy.stop();
}

/// It is never silent, so that no limit on silence ends it.
#[test]
fn a_stream_that_never_ends_is_not_read_for_ever() {
    let server = Scripted::start(|mut stream| {
        read_request(&mut stream);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let mut sent = stream.write_all(head.as_bytes());
        while sent.is_ok() {
            sent = stream.write_all(b": wait\n\n");
        }
    });
    let stage = Stage::new("never ends");
    let mut command = stage.ask(server.port(), &["--timeout", "0.2", "-p", "Hi."]);
    run(&mut command).code(24).stdout("").stderr(late("0.2"));
    server.stop();
}

#[test]
fn what_there_is_of_a_reply_when_the_time_is_over_is_kept() {
    for api in BOTH {
        let reply = answer(api, "Half of it");
        let text = String::from_utf8(reply.body().to_vec()).unwrap();
        let end = match api {
            Api::Anthropic => text.find("event: content_block_stop").unwrap(),
            _ => text.rfind("data: {").unwrap(),
        };
        // Long enough for the beginning to arrive.
        let story = story(api).args(&["--timeout", "3"]);
        let outcome = story.reply(reply.cut(end, Ending::Stall)).run();
        let why = "the run's 3 s are over (--timeout): raise the limit or ask for less";
        let result = ended(&outcome, 24, "timeout", why);
        outcome.equal(&result["result"], &json!("Half of it"));
        session_has(&outcome, "Half of it");
    }
}

#[test]
fn a_wait_that_would_outlast_the_run_is_not_begun() {
    for api in BOTH {
        let busy = Reply::new(529, "application/json", r#"{"error":{"message":"busy"}}"#);
        let outcome = story(api).args(&["--timeout", "60"]).reply(busy.header("retry-after: 100")).run();
        let why = "the API is overloaded or limits the rate (HTTP 529: busy); not asked again: the wait of 100.0 s \
                   would outlast the run's 60 s (--timeout)";
        ended(&outcome, 24, "timeout", why);
        outcome.request_count(1);
    }
}

#[test]
fn another_model_is_asked_where_the_first_would_have_to_be_waited_for_too_long() {
    for api in BOTH {
        let busy = Reply::new(529, "application/json", r#"{"error":{"message":"busy"}}"#);
        let story = story(api).args(&["--timeout", "60", "--fallback-model", "other"]);
        let outcome = story.reply(busy.header("retry-after: 100")).reply(answer(api, "Done.")).run();
        outcome.code(0).equal(&outcome.body(2)["model"], &json!("other"));
        // What was refused took nothing.
        let models: Vec<String> = outcome.json()["modelUsage"].as_object().unwrap().keys().cloned().collect();
        outcome.equal(models, vec!["other".to_owned()]);
    }
}

#[test]
fn a_command_ends_with_the_run_and_its_result_says_so() {
    for (api, sandbox) in [(Api::Anthropic, &[][..]), (Api::OpenAi, &["--dangerously-skip-permissions"])] {
        let command = json!({"command": "echo begun; echo $$ > pid; exec sleep 600"}).to_string();
        let calls = [("toolu_1", "Bash", command.as_str()), WRITES[0]];
        let story = story(api).args(&["--timeout", "3"]).args(sandbox);
        let outcome = story.reply(asks(api, "So.", &calls)).run();
        let why = "the run's 3 s are over (--timeout): raise the limit or ask for less";
        ended(&outcome, 24, "timeout", why);
        outcome.no_file("a").request_count(1);
        // What the command printed is not lost, and the call after it has a result.
        session_has(&outcome, r"begun\n[timed out after ");
        session_has(&outcome, r"\n[the run's 3 s are over (--timeout)]");
        session_has(&outcome, &format!("not run: {why}"));
        let pid = fs::read_to_string(outcome.folder.join("pid")).unwrap();
        let name = fs::read_to_string(format!("/proc/{}/comm", pid.trim())).unwrap_or_default();
        assert_ne!(name, "sleep\n", "{}", outcome.report());
    }
}

#[test]
fn a_program_that_is_a_tool_ends_with_the_run_too() {
    let api = Api::OpenAi;
    let description = r#"{"name": "slow", "description": "Waits.", "input_schema": {"type": "object"}}"#;
    let story = story(api).executable("slow", "#!/bin/sh\nexec sleep 600\n").file("slow.json", description);
    let story = story.args(&["--tool", "./slow", "--timeout", "3"]);
    let outcome = story.reply(asks(api, "", &[("call_1", "slow", "{}")])).run();
    let why = "the run's 3 s are over (--timeout): raise the limit or ask for less";
    ended(&outcome, 24, "timeout", why);
    session_has(&outcome, "[the run's 3 s are over (--timeout)]");
}

#[test]
fn standard_input_that_never_ends_is_waited_for_as_long_as_the_run_may_take() {
    let stage = Stage::new("endless input");
    let mut command = stage.ask(9, &["--timeout", "0.2", "-p", "Hi."]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take();
    let ran = crate::stage::ran(crate::story::finish(child, None), format!("{command:?}"));
    drop(held);
    ran.code(24).stdout("").stderr(late("0.2"));
}

#[test]
fn a_run_within_its_time_is_as_any_other() {
    for api in BOTH {
        let replies = [asks(api, "", &WRITES[..1]), answer(api, "Done.")];
        let outcome = replies.into_iter().fold(story(api).args(&["--timeout", "600.5"]), Story::reply).run();
        outcome.code(0).stderr("").file("a", "1").equal(&outcome.json()["result"], &json!("Done."));
    }
}

// The command line.

#[test]
fn a_limit_that_is_no_number_is_a_mistake() {
    let dollars =
        |text: &str| format!("--max-budget-usd is an amount of dollars such as 0.50, not \"{text}\"");
    let seconds = |text: &str| format!("--timeout is a number of seconds such as 90 or 0.5, not \"{text}\"");
    let price = |text: &str| {
        format!(
            "--price is IN,OUT or IN,OUT,CACHE_READ,CACHE_WRITE in dollars per million tokens, such as 1,5 or \
             1,5,0.1,1.25, not \"{text}\""
        )
    };
    let mut cases = vec![
        ("--max-tool-calls", "-1", "--max-tool-calls is a whole number from 0, not \"-1\"".to_owned()),
        ("--max-total-tokens", "0", "--max-total-tokens is a whole number from 1, not \"0\"".to_owned()),
        ("--max-total-tokens", "1e6", "--max-total-tokens is a whole number from 1, not \"1e6\"".to_owned()),
    ];
    for text in ["0", "0.0", "-1", "1e3", "$1", "", "nan", "1,5"] {
        cases.push(("--max-budget-usd", text, dollars(text)));
    }
    for text in ["0", "0.0", "-1", "1e3", "5m", "", "inf", "1.2.3", "99999999999999999999999"] {
        cases.push(("--timeout", text, seconds(text)));
    }
    for text in ["", "1", "1,", "1,2,3", "1,2,3,4,5", "-1,5", "1,nan", "1;5"] {
        cases.push(("--price", text, price(text)));
    }
    let stage = Stage::new("limits");
    for (flag, value, expected) in cases {
        let ran = run(&mut stage.command(&[&format!("{flag}={value}"), "-p", "Hi."]));
        ran.code(2).stdout("").stderr(format!("cotter: {expected}\n"));
    }
}
