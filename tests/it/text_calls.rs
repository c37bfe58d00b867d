//! Calls that a model prints as text: run like any other where the reply is nothing else, on by default for a
//! server on this machine alone, and an answer in every other case.

use serde_json::json;

use crate::check::Api;
use crate::server::{Framing, Reply, Server};
use crate::stage::{Stage, Terminal, requests, run, says};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, ends, messages, results};

const NOTES: &str = "The bridge opened in 1932.\n";
const CALL: &str =
    "```json\n{\n  \"name\": \"Read\",\n  \"arguments\": {\"file_path\": \"notes.txt\"}\n}\n```";
const RAN: &str =
    "cotter: the reply is a call written as text (Read), which is run: --text-tool-calls off leaves it\n";
const REPORT: &str =
    "cotter: the answer is a call written as text (Read): --text-tool-calls on has such calls run\n";

fn story(name: &str, api: Api) -> Story {
    Story::new(name).api(api).files(&[("notes.txt", NOTES)]).args(&["-p", "When did the bridge open?"])
}

/// A run that asked twice: the call was run, and its result went back as any other's.
#[track_caller]
fn read_and_answered(outcome: &Outcome, api: Api) {
    outcome.code(0).stdout("In 1932.\n").request_count(2);
    outcome.equal(results(api, &outcome.body(2)), vec![("call_1".to_owned(), NOTES.to_owned(), false)]);
}

/// A run of one request, whose reply's text is the answer.
#[track_caller]
fn answered(outcome: &Outcome, text: &str) {
    outcome.code(0).stdout(format!("{text}\n")).request_count(1);
}

/// A whole reply in one document, of either API.
fn document(api: Api, text: &str) -> Reply {
    let document = match api {
        Api::Anthropic => {
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "test-model",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 2500, "output_tokens": 9}})
        }
        _ => json!({"id": "1", "object": "chat.completion", "choices": [{"index": 0,
            "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}),
    };
    Reply::new(200, "application/json", document.to_string())
}

#[test]
fn a_reply_that_is_a_call_is_run_in_each_form() {
    let forms = [
        CALL,
        r#"{"name":"Read","arguments":{"file_path":"notes.txt"}}"#,
        "\n<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"file_path\": \"notes.txt\"}}\n</tool_call>\n",
        "<function=Read>\n<parameter=file_path>\nnotes.txt\n</parameter>\n</function>",
    ];
    for api in BOTH {
        for form in forms {
            for reply in [answer(api, form), document(api, form)] {
                let outcome = story("a call as text", api).reply(reply).reply(answer(api, "In 1932.")).run();
                read_and_answered(&outcome, api);
                outcome.stderr("");
            }
        }
    }
}

/// What goes back is what the API has for a call: nothing of the text stays beside it.
#[test]
fn the_call_goes_back_as_a_call_and_not_as_text() {
    let outcome = story("sent back", Api::OpenAi)
        .reply(answer(Api::OpenAi, CALL))
        .reply(answer(Api::OpenAi, "In 1932."))
        .run();
    let expected = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
        "function": {"name": "Read", "arguments": "{\"file_path\":\"notes.txt\"}"}}]});
    outcome.equal(&outcome.body(2)["messages"][2], &expected);
    let thinking = json!({"type": "thinking", "thinking": "The notes will say.", "signature": "c2ln"});
    let said = [thinking.clone(), json!({"type": "text", "text": CALL})];
    let outcome = story("sent back", Api::Anthropic)
        .reply(messages(&said, &json!({"stop_reason": "end_turn", "stop_sequence": null})))
        .reply(answer(Api::Anthropic, "In 1932."))
        .run();
    read_and_answered(&outcome, Api::Anthropic);
    let call =
        json!({"type": "tool_use", "id": "call_1", "name": "Read", "input": {"file_path": "notes.txt"}});
    outcome.equal(&outcome.body(2)["messages"][1]["content"], &json!([thinking, call]));
}

#[test]
fn thinking_before_a_call_is_no_text_beside_it() {
    let text = format!("<think>\nThe notes will say.\n</think>\n\n{CALL}");
    let outcome = story("thinking", Api::OpenAi)
        .reply(answer(Api::OpenAi, &text))
        .reply(answer(Api::OpenAi, "In 1932."))
        .run();
    read_and_answered(&outcome, Api::OpenAi);
}

#[test]
fn several_calls_are_run_in_order_and_their_ids_are_counted() {
    let write =
        r#"<tool_call>{"name":"Write","arguments":{"file_path":"a.txt","content":"one"}}</tool_call>"#;
    let read = r#"<tool_call>{"name":"Read","arguments":{"file_path":"a.txt"}}</tool_call>"#;
    for api in BOTH {
        let outcome = story("several", api)
            .reply(answer(api, &format!("{write}\n{read}")))
            .reply(asks(api, "", &[("call_2", "Read", r#"{"file_path":"a.txt"}"#)]))
            .reply(answer(api, read))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).stdout("Done.\n").request_count(4).file("a.txt", "one");
        let found = results(api, &outcome.body(4)).into_iter();
        let found: Vec<(String, String)> = found.skip(1).map(|(id, text, _)| (id, text)).collect();
        let expected = ["call_2", "call_3", "call_4"].map(|id| (id.to_owned(), "one".to_owned()));
        outcome.equal(found, expected.to_vec());
    }
}

#[test]
fn a_call_that_fails_tells_the_model_why() {
    let call = r#"{"name":"Read","arguments":{"file_path":"no.txt"}}"#;
    for api in BOTH {
        let outcome = story("fails", api).reply(answer(api, call)).reply(answer(api, "There is none.")).run();
        outcome.code(0).stdout("There is none.\n").request_count(2);
        outcome.equal(results(api, &outcome.body(2))[0].2, true);
    }
}

#[test]
fn what_is_not_a_whole_call_of_a_tool_on_offer_is_the_answer() {
    let call = r#"{"name":"Read","arguments":{"file_path":"notes.txt"}}"#;
    let texts = [
        format!("I will read the notes:\n\n{CALL}"),
        format!("{CALL}\n\nThis reads the notes."),
        format!("{call}\n{{\"name\":\"Open\",\"arguments\":{{}}}}"),
        call.replace("Read", "ReadFile"),
        call.replace("file_path", "file"),
        call.replace("\"notes.txt\"", "7"),
        r#"{"name":"Read","arguments":{}}"#.to_owned(),
        format!("```python\n{call}\n```"),
        r#"{"name":"Alice","arguments":["for","against"]}"#.to_owned(),
    ];
    for api in BOTH {
        for text in &texts {
            let outcome = story("text", api).reply(answer(api, text)).run();
            answered(&outcome, text);
            outcome.stderr("");
        }
    }
}

/// JSON that was asked for may look like a call: a tool that is not on offer is never run.
#[test]
fn a_tool_that_is_not_on_offer_is_not_called() {
    for api in BOTH {
        for tools in ["", "Write", "Bash,Write"] {
            let args = ["--tools", tools, "--text-tool-calls", "on"];
            let outcome = story("not on offer", api).args(&args).reply(answer(api, CALL)).run();
            answered(&outcome, CALL);
        }
    }
}

#[test]
fn a_call_beside_real_ones_and_a_reply_that_was_cut_stay_text() {
    for api in BOTH {
        let outcome = story("beside", api)
            .reply(asks(api, CALL, &[("c1", "Read", r#"{"file_path":"notes.txt"}"#)]))
            .reply(answer(api, "In 1932."))
            .run();
        outcome.code(0).stdout("In 1932.\n").request_count(2);
        outcome.equal(results(api, &outcome.body(2)).len(), 1);
        let word = if api == Api::Anthropic { "max_tokens" } else { "length" };
        story("cut", api).reply(ends(api, CALL, &[], word)).run().code(8).stdout("").request_count(1);
    }
}

#[test]
fn the_flag_decides_and_verbose_says_when_it_happened() {
    for api in BOTH {
        let off = story("off", api).args(&["--text-tool-calls", "off"]).reply(answer(api, CALL)).run();
        answered(&off, CALL);
        off.stderr("");
        let outcome = story("verbose", api)
            .args(&["--text-tool-calls=on", "--verbose"])
            .reply(answer(api, CALL))
            .reply(answer(api, "In 1932."))
            .run();
        read_and_answered(&outcome, api);
        outcome.stderr_has(&format!("{RAN}Read notes.txt\n"));
    }
}

#[test]
fn the_flag_takes_on_or_off() {
    let outcome = Story::new("neither").args(&["--text-tool-calls", "maybe", "-p", "Hi."]).run();
    outcome.code(2).stdout("").stderr_has("--text-tool-calls");
}

/// Elsewhere than on this machine the text is the answer, and a line says what it looks like.
#[test]
fn a_server_elsewhere_has_its_text_run_only_if_asked() {
    let there = |name| story(name, Api::OpenAi).host("http://models.example/v1");
    let outcome = there("elsewhere").reply(answer(Api::OpenAi, CALL)).run();
    answered(&outcome, CALL);
    outcome.stderr(REPORT);
    let outcome = there("elsewhere, quiet").args(&["-q"]).reply(answer(Api::OpenAi, CALL)).run();
    answered(&outcome, CALL);
    outcome.stderr("");
    let outcome =
        there("elsewhere, off").args(&["--text-tool-calls", "off"]).reply(answer(Api::OpenAi, CALL)).run();
    answered(&outcome, CALL);
    outcome.stderr("");
    let outcome = there("elsewhere, on")
        .args(&["--text-tool-calls", "on"])
        .reply(answer(Api::OpenAi, CALL))
        .reply(answer(Api::OpenAi, "In 1932."))
        .run();
    read_and_answered(&outcome, Api::OpenAi);
}

#[test]
fn a_single_step_runs_the_first_call() {
    let two = r#"[{"name":"Read","arguments":{"file_path":"notes.txt"}},{"name":"Read","arguments":{"file_path":"no"}}]"#;
    for api in BOTH {
        for text in [CALL, two] {
            let outcome = story("step", api).args(&["--single-step"]).reply(answer(api, text)).run();
            outcome.code(0).stdout(NOTES).stderr("").request_count(1);
        }
        let outcome = story("step, off", api).args(&["--single-step", "--text-tool-calls", "off"]);
        answered(&outcome.reply(answer(api, CALL)).run(), CALL);
    }
}

/// However the bytes come, it is the whole reply that is looked at.
#[test]
fn a_stream_may_come_in_any_pieces() {
    for api in BOTH {
        let reply = answer(api, CALL);
        let bytes: Vec<usize> = (1..reply.body().len()).collect();
        let borders: Vec<usize> =
            bytes.iter().copied().filter(|at| reply.body()[..*at].ends_with(b"\n\n")).collect();
        for pieces in [bytes, borders] {
            let outcome = story("pieces", api)
                .reply(reply.clone().framing(Framing::Chunked).pieces(&pieces))
                .reply(answer(api, "In 1932."))
                .run();
            read_and_answered(&outcome, api);
        }
    }
}

#[test]
fn the_json_result_has_the_answer_and_not_the_call() {
    let outcome = story("json", Api::OpenAi)
        .args(&["--output-format", "json"])
        .reply(answer(Api::OpenAi, CALL))
        .reply(answer(Api::OpenAi, "In 1932."))
        .run();
    outcome.code(0).request_count(2);
    outcome.equal(&outcome.json()["result"], &json!("In 1932."));
}

/// What a terminal shows of these replies.
#[track_caller]
fn shown(replies: Vec<Reply>, args: &[&str]) -> String {
    let stage = Stage::new("text calls on a terminal");
    stage.write("notes.txt", NOTES);
    let terminal = Terminal::new();
    let server = Server::start(replies);
    let mut command = stage.ask(server.port(), &["-p", "When did the bridge open?"]);
    command.args(args).stdout(terminal.stream());
    run(&mut command).code(0).stderr("");
    drop(command);
    requests(server);
    terminal.shown()
}

#[test]
fn a_terminal_shows_the_answer_and_not_the_call() {
    let call =
        says(&["```", "json\n{\"name\":", " \"Read\", \"arguments\": {\"file_path\": \"notes.txt\"}}\n```"]);
    assert_eq!(shown(vec![call.clone(), says(&["In ", "1932."])], &[]), "In 1932.\r\n");
    let off = shown(vec![call], &["--text-tool-calls", "off"]);
    assert_eq!(
        off,
        "```json\r\n{\"name\": \"Read\", \"arguments\": {\"file_path\": \"notes.txt\"}}\r\n```\r\n"
    );
}

/// It is held back for a while, and then shown whole, once.
#[test]
fn a_terminal_shows_json_that_is_no_call() {
    assert_eq!(shown(vec![says(&["{\"year\"", ": 1932}"])], &[]), "{\"year\": 1932}\r\n");
    assert_eq!(shown(vec![says(&["```", "python\nx", " = 1\n```"])], &[]), "```python\r\nx = 1\r\n```\r\n");
    let beside = asks(Api::OpenAi, "{}", &[("c1", "Read", r#"{"file_path":"notes.txt"}"#)]);
    assert_eq!(shown(vec![beside, says(&["In 1932."])], &[]), "{}\r\nIn 1932.\r\n");
}
