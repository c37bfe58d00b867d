//! `--json-schema`: the answer is JSON that fits, however the server is told, or the run ends with code 8.

use serde_json::{Value, json};

use crate::check::Api;
use crate::server::{Reply, Server};
use crate::stage::{Stage, Terminal, requests, run, says};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, ends, last_text, results};

const SCHEMA: &str = r#"{"type":"object","properties":{"year":{"type":"integer"}},"required":["year"]}"#;
const FITS: &str = "{ \"year\": 1932 }";
const TOOL: &str = "StructuredOutput";
const NOTES: &str = "The bridge opened in 1932.\n";
/// What the model is told of an answer in words.
const IN_WORDS: &str = "The answer does not fit its schema:\n- the answer must be JSON and nothing else, not: In 1932.\nGive the whole answer again by calling StructuredOutput.";
const UNFIT: &str = "The answer does not fit its schema:\n- \"/year\" must be a whole number, not \"soon\"\nGive the whole answer again by calling StructuredOutput.";

fn story(name: &str, api: Api) -> Story {
    let args = ["-p", "When did the bridge open?", "--json-schema", SCHEMA];
    Story::new(name).api(api).files(&[("notes.txt", NOTES)]).args(&args)
}

/// A story whose server has a format for answers and is known to keep to it beside tools.
fn native(name: &str, api: Api) -> Story {
    match api {
        Api::Anthropic => story(name, api).host("http://api.anthropic.com"),
        _ => story(name, api).host("http://api.openai.com/v1"),
    }
}

fn gives(api: Api, id: &str, arguments: &str) -> Reply {
    asks(api, "", &[(id, TOOL, arguments)])
}

/// The names of the tools that a request offers.
fn offered(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned);
    tools.iter().filter_map(name).collect()
}

/// The schema that a request asks the API itself to keep to.
fn format_of(api: Api, body: &Value) -> Value {
    match api {
        Api::Anthropic => body["output_config"].clone(),
        _ => body["response_format"].clone(),
    }
}

#[track_caller]
fn answered(outcome: &Outcome, requests: usize) {
    outcome.code(0).stdout("{\"year\":1932}\n").stderr("").request_count(requests);
}

#[test]
fn a_tool_takes_the_answer_after_other_calls() {
    for api in BOTH {
        let outcome = story("by tool", api)
            .reply(asks(api, "I look.", &[("c1", "Read", r#"{"file_path":"notes.txt"}"#)]))
            .reply(gives(api, "c2", FITS))
            .run();
        answered(&outcome, 2);
        outcome.equal(results(api, &outcome.body(2)), vec![("c1".to_owned(), NOTES.to_owned(), false)]);
        for request in [1, 2] {
            let body = outcome.body(request);
            outcome.equal(offered(&body).last().map(String::as_str), Some(TOOL));
            outcome.equal(format_of(api, &body), Value::Null);
            let tool = body["tools"].as_array().unwrap().last().unwrap().clone();
            let schema =
                if api == Api::Anthropic { &tool["input_schema"] } else { &tool["function"]["parameters"] };
            outcome.equal(schema.to_string(), SCHEMA.to_owned());
            let system = if api == Api::Anthropic { &body["system"] } else { &body["messages"][0] };
            outcome
                .equal(system.to_string().contains("calling StructuredOutput when the work is done"), true);
        }
    }
}

#[test]
fn the_api_keeps_to_the_schema_where_it_has_a_format_for_that() {
    let closed = r#"{"type":"object","properties":{"year":{"type":"integer"}},"required":["year"],"additionalProperties":false}"#;
    for api in BOTH {
        let outcome = native("native", api)
            .reply(asks(api, "", &[("c1", "Read", r#"{"file_path":"notes.txt"}"#)]))
            .reply(answer(api, FITS))
            .run();
        answered(&outcome, 2);
        let schema = serde_json::from_str::<Value>(closed).unwrap();
        let expected = match api {
            Api::Anthropic => json!({"format": {"type": "json_schema", "schema": schema}}),
            _ => {
                json!({"type": "json_schema", "json_schema": {"name": "answer", "strict": true, "schema": schema}})
            }
        };
        for request in [1, 2] {
            outcome.equal(format_of(api, &outcome.body(request)), expected.clone());
            outcome.equal(offered(&outcome.body(request)).contains(&TOOL.to_owned()), false);
        }
    }
}

/// The members of `output_config` are sent as one, and what is refused of one is not taken for the other.
#[test]
fn effort_and_the_format_stand_side_by_side() {
    let refusal = |member: &str| {
        let message = format!("output_config.{member}: not supported by this model");
        let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}});
        Reply::new(400, "application/json", error.to_string())
    };
    let outcome = native("effort", Api::Anthropic)
        .args(&["--effort", "high"])
        .reply(refusal("effort"))
        .reply(answer(Api::Anthropic, FITS))
        .run();
    outcome.code(0).stdout("{\"year\":1932}\n").request_count(2);
    let form = &outcome.body(2)["output_config"]["format"];
    outcome.equal(&outcome.body(1)["output_config"], &json!({"effort": "high", "format": form}));
    outcome.equal(&form["type"], &json!("json_schema"));
    outcome.equal(outcome.body(2)["output_config"].get("effort"), None);
    let outcome = native("format", Api::Anthropic)
        .args(&["--effort", "high"])
        .reply(refusal("format"))
        .reply(gives(Api::Anthropic, "c1", FITS))
        .run();
    outcome.code(0).stdout("{\"year\":1932}\n").request_count(2);
    outcome.equal(&outcome.body(2)["output_config"], &json!({"effort": "high"}));
}

/// Another model may take another form.
#[test]
fn a_fallback_model_gets_the_form_that_it_takes() {
    let outcome = Story::new("fallback")
        .openrouter()
        .host("http://openrouter.ai/api/v1")
        .args(&[
            "-p",
            "When?",
            "--json-schema",
            SCHEMA,
            "--model",
            "openai/gpt-5.1",
            "--fallback-model",
            "google/gemini-2.5-pro",
        ])
        .reply(Reply::new(529, "application/json", "{}").header("retry-after: 0"))
        .reply(Reply::new(529, "application/json", "{}").header("retry-after: 0"))
        .reply(Reply::new(529, "application/json", "{}").header("retry-after: 0"))
        .reply(gives(Api::OpenRouter, "c1", FITS))
        .run();
    outcome.code(0).stdout("{\"year\":1932}\n");
    let forms: Vec<bool> = (1..=outcome.requests.len())
        .map(|number| !format_of(Api::OpenRouter, &outcome.body(number)).is_null())
        .collect();
    outcome.equal(forms.last(), Some(&false));
    outcome.equal(forms.first(), Some(&true));
}

/// What its format cannot say goes through the tool, and is checked here all the same.
#[test]
fn a_schema_that_the_format_cannot_express_goes_to_the_tool() {
    let schema =
        r#"{"type":"object","properties":{"year":{"type":"string","maxLength":4}},"required":["year"]}"#;
    for api in BOTH {
        let outcome = native("not expressed", api)
            .args(&["--json-schema", schema])
            .reply(gives(api, "c1", r#"{"year":"MCMXXXII"}"#))
            .reply(gives(api, "c2", r#"{"year":"1932"}"#))
            .run();
        outcome.code(0).stdout("{\"year\":\"1932\"}\n").request_count(2);
        let told = "The answer does not fit its schema:\n- \"/year\" must have at most 4 characters, not 8\nGive the whole answer again by calling StructuredOutput.";
        outcome.equal(results(api, &outcome.body(2)), vec![("c1".to_owned(), told.to_owned(), true)]);
        outcome.equal(format_of(api, &outcome.body(1)), Value::Null);
    }
}

/// Beside tools a local server would hold every reply to the schema, and none would be called.
#[test]
fn an_unknown_server_is_given_the_format_where_there_are_no_tools() {
    let outcome =
        story("no tools", Api::OpenAi).args(&["--tools", ""]).reply(answer(Api::OpenAi, FITS)).run();
    answered(&outcome, 1);
    let schema = format_of(Api::OpenAi, &outcome.body(1))["json_schema"]["schema"].to_string();
    outcome.equal(schema, SCHEMA.to_owned());
    outcome.equal(offered(&outcome.body(1)), Vec::new());
    let outcome = story("no tools", Api::Anthropic)
        .args(&["--tools", ""])
        .reply(gives(Api::Anthropic, "c1", FITS))
        .run();
    answered(&outcome, 1);
    outcome.equal(offered(&outcome.body(1)), vec![TOOL.to_owned()]);
}

/// DeepSeek, Groq and relays before Anthropic refuse the format in these words.
#[test]
fn a_refused_format_is_learnt_once_and_the_tool_takes_its_place() {
    let refusals = [
        (
            Api::OpenAi,
            400,
            r#"{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error"}}"#,
        ),
        (
            Api::OpenAi,
            422,
            r#"{"error":{"message":"Failed to deserialize: response_format.type `json_schema` is unavailable now"}}"#,
        ),
        (
            Api::OpenAi,
            400,
            r#"{"error":{"message":"json mode cannot be combined with tool/function calling"}}"#,
        ),
        (
            Api::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"output_config: Extra inputs are not permitted"}}"#,
        ),
        (
            Api::Anthropic,
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Schema is too complex for compilation."}}"#,
        ),
    ];
    for (api, status, body) in refusals {
        let outcome = native("refused", api)
            .reply(Reply::new(status, "application/json", body))
            .reply(asks(api, "", &[("c1", "Read", r#"{"file_path":"notes.txt"}"#)]))
            .reply(gives(api, "c2", FITS))
            .run();
        answered(&outcome, 3);
        for request in [2, 3] {
            outcome.equal(format_of(api, &outcome.body(request)), Value::Null);
            outcome.equal(offered(&outcome.body(request)).contains(&TOOL.to_owned()), true);
        }
        // A second refusal is one for good.
        let again = native("refused twice", api)
            .reply(Reply::new(status, "application/json", body))
            .reply(Reply::new(status, "application/json", body))
            .run();
        again.code(4).stdout("").request_count(2);
    }
}

/// A gateway may take the format and pass it on to nobody.
#[test]
fn a_server_that_does_not_keep_to_the_format_is_asked_for_a_call() {
    for api in BOTH {
        let outcome = native("ignored", api)
            .args(&["--output-format", "json"])
            .reply(answer(api, "In 1932."))
            .reply(gives(api, "c1", FITS))
            .run();
        outcome.code(0).request_count(2);
        outcome.equal(last_text(&outcome.body(2)), IN_WORDS.to_owned());
        outcome.equal(format_of(api, &outcome.body(2)), Value::Null);
        outcome.equal(offered(&outcome.body(2)).contains(&TOOL.to_owned()), true);
        outcome.equal(&outcome.json()["num_turns"], &json!(2));
    }
}

#[test]
fn an_answer_that_does_not_fit_is_asked_for_again() {
    for api in BOTH {
        let outcome = story("again", api)
            .reply(answer(api, "In 1932."))
            .reply(gives(api, "c1", r#"{"year":"soon"}"#))
            .reply(gives(api, "c2", FITS))
            .run();
        answered(&outcome, 3);
        outcome.equal(last_text(&outcome.body(2)), IN_WORDS.to_owned());
        outcome.equal(results(api, &outcome.body(3)), vec![("c1".to_owned(), UNFIT.to_owned(), true)]);
    }
}

#[test]
fn an_answer_that_never_fits_ends_with_code_8_and_is_kept() {
    let message = "the answer does not fit --json-schema after 5 attempts: \"/year\" must be a whole number, not \"soon\": simplify the schema or choose another --model";
    for api in BOTH {
        let never = |name: &str| {
            let ids = ["c1", "c2", "c3", "c4"];
            let story =
                ids.iter().fold(story(name, api), |story, id| story.reply(gives(api, id, r#"{"year":"x"}"#)));
            story.reply(gives(api, "c5", r#"{"year":"soon"}"#))
        };
        let outcome = never("never").run();
        outcome.code(8).stdout("").stderr(&format!("cotter: {message}\n")).request_count(5);
        let outcome = never("never, json").args(&["--output-format", "json"]).run();
        outcome.code(8).request_count(5);
        let result = outcome.json();
        for (member, expected) in [
            ("subtype", json!("error_max_structured_output_retries")),
            ("is_error", json!(true)),
            ("num_turns", json!(5)),
            ("result", json!("{\"year\":\"soon\"}")),
            ("structured_output", Value::Null),
            ("error", json!({"class": "structured_output", "code": 8, "message": message})),
        ] {
            outcome.equal(&result[member], &expected);
        }
        let limited = never("turns").args(&["--max-turns", "5"]).run();
        limited.code(8).request_count(5);
    }
    let outcome =
        (0..5).fold(story("words", Api::OpenAi), |story, _| story.reply(answer(Api::OpenAi, "In 1932.")));
    let outcome = outcome.args(&["--output-format", "json"]).run();
    outcome.code(8).equal(&outcome.json()["result"], &json!("In 1932."));
}

/// Each attempt is a turn.
#[test]
fn the_limit_of_turns_holds_for_attempts() {
    for api in BOTH {
        let outcome = story("turns", api)
            .args(&["--max-turns", "2"])
            .reply(answer(api, "In 1932."))
            .reply(gives(api, "c1", r#"{"year":"soon"}"#))
            .run();
        outcome.code(20).stdout("").request_count(2);
    }
}

#[test]
fn the_json_formats_have_the_answer_as_a_value_and_as_text() {
    let text = "{\"year\": 1932, \"share\": 1.50, \"name\": \"\\u00e9\"}";
    for api in BOTH {
        let outcome =
            story("json", api).args(&["--output-format", "json"]).reply(gives(api, "c1", text)).run();
        outcome.code(0).request_count(1);
        let result = outcome.json();
        outcome.equal(&result["subtype"], &json!("success"));
        outcome.equal(&result["structured_output"], &json!({"year": 1932, "share": 1.5, "name": "é"}));
        outcome.equal(&result["result"], &json!("{\"year\":1932,\"share\":1.50,\"name\":\"\\u00e9\"}"));
    }
    let without = Story::new("without").args(&["-p", "Hi.", "--output-format", "json"]);
    let outcome = without.reply(answer(Api::OpenAi, "{}")).run();
    outcome.equal(outcome.json().get("structured_output"), None);
}

/// Small models that know no calls print them, and those that know fences use them.
#[test]
fn an_answer_written_as_text_is_taken() {
    let call = r#"{"name":"StructuredOutput","arguments":{"year":1932}}"#;
    for api in BOTH {
        for text in [
            FITS.to_owned(),
            format!("```json\n{FITS}\n```"),
            call.to_owned(),
            format!("<tool_call>{call}</tool_call>"),
        ] {
            answered(&story("text", api).reply(answer(api, &text)).run(), 1);
        }
        let before = format!("Here it is:\n{FITS}");
        let outcome = story("sentence", api).reply(answer(api, &before)).reply(gives(api, "c1", FITS)).run();
        answered(&outcome, 2);
    }
}

/// JSON that the API kept to a schema is no call, whatever it looks like.
#[test]
fn a_native_answer_that_looks_like_a_call_is_the_answer() {
    let schema = r#"{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}},"required":["name","arguments"]}"#;
    let text = r#"{"name":"Read","arguments":{"file_path":"notes.txt"}}"#;
    for api in BOTH {
        let outcome = native("looks like a call", api)
            .args(&["--json-schema", schema, "--text-tool-calls", "on"])
            .reply(answer(api, text))
            .run();
        outcome.code(0).stdout(format!("{text}\n")).stderr("").request_count(1);
    }
}

#[test]
fn the_calls_beside_the_answer_are_run_and_the_first_answer_stands() {
    for api in BOTH {
        let outcome = story("beside", api)
            .reply(asks(
                api,
                "",
                &[
                    ("c1", TOOL, FITS),
                    ("c2", "Write", r#"{"file_path":"a.txt","content":"x"}"#),
                    ("c3", TOOL, r#"{"year":1933}"#),
                ],
            ))
            .run();
        answered(&outcome, 1);
        outcome.file("a.txt", "x");
    }
}

#[test]
fn a_cut_answer_is_not_taken() {
    for api in BOTH {
        let word = if api == Api::Anthropic { "max_tokens" } else { "length" };
        let outcome = native("cut", api).reply(ends(api, FITS, &[], word)).run();
        outcome.code(8).stdout("").request_count(1);
        let outcome = story("cut call", api)
            .reply(ends(api, "", &[("c1", TOOL, r#"{"year": 19"#)], word))
            .reply(gives(api, "c2", FITS))
            .run();
        answered(&outcome, 2);
    }
}

/// Each call has its result, so that the conversation can be taken up again.
#[test]
fn the_session_holds_a_result_for_the_call_that_gave_the_answer() {
    let stage = Stage::new("session of an answer");
    let server = Server::start(vec![gives(Api::OpenAi, "c1", FITS)]);
    let mut command = stage.ask(server.port(), &["-p", "When?", "--json-schema", SCHEMA]);
    run(&mut command).code(0).stdout("{\"year\":1932}\n").stderr("");
    requests(server);
    let files = stage.all_files();
    let (_, bytes) = files.iter().find(|(name, _)| name.ends_with(".jsonl")).expect("there is a session");
    let text = String::from_utf8_lossy(bytes);
    let last = serde_json::from_str::<Value>(text.lines().last().unwrap()).unwrap();
    let result =
        json!({"type": "result", "call_id": "c1", "text": "The answer was taken.", "is_error": false});
    assert_eq!(last, json!({"type": "user", "parts": [result]}));
}

#[test]
fn a_terminal_shows_the_answer_alone() {
    let stage = Stage::new("answer on a terminal");
    let terminal = Terminal::new();
    let server = Server::start(vec![says(&["In ", "1932."]), gives(Api::OpenAi, "c1", FITS)]);
    let mut command = stage.ask(server.port(), &["-p", "When?", "--json-schema", SCHEMA]);
    run(command.stdout(terminal.stream())).code(0).stderr("");
    drop(command);
    requests(server);
    assert_eq!(terminal.shown(), "{\"year\":1932}\r\n");
}

#[test]
fn the_schema_may_come_from_a_file() {
    for (name, bytes) in [("s.json", SCHEMA.to_owned()), ("bom.json", format!("\u{feff}{SCHEMA}\n"))] {
        let outcome = story("file", Api::OpenAi)
            .file(name, bytes)
            .args(&["--json-schema", &format!("@{name}")])
            .reply(gives(Api::OpenAi, "c1", FITS))
            .run();
        answered(&outcome, 1);
    }
}

#[test]
fn a_schema_that_cannot_be_checked_is_refused_before_anything_is_asked() {
    let long = format!("@{}", "x".repeat(300));
    for (schema, told) in [
        (
            "",
            "it is not JSON (EOF while parsing a value at line 1 column 0); a file is named as in @schema.json",
        ),
        ("s.json", "it is not JSON (expected value at line 1 column 1); a file is named as in @schema.json"),
        ("[1]", "it is not a JSON object"),
        (
            r#"{"type":"object","properties":{"a":{"type":"string","pattern":"x"}}}"#,
            "the keyword \"pattern\" at \"/properties/a/pattern\" is not supported: leave it out, and say in a description what it says",
        ),
        (r##"{"$ref":"#"}"##, "a \"$ref\" leads back to itself"),
        (
            r#"{"type":"array"}"#,
            "at the top there must be \"type\": \"object\", as the APIs take no other answer: put what is meant into a property of an object",
        ),
        ("@none.json", "cannot read \"none.json\": No such file or directory (os error 2)"),
        ("@folder", "cannot read \"folder\": Is a directory (os error 21)"),
        ("@bad.json", "\"bad.json\": it is not UTF-8"),
        (
            "@odd.json",
            "\"odd.json\": the keyword \"not\" at \"/not\" is not supported: leave it out, and say in a description what it says",
        ),
        ("@big.json", "cannot read \"big.json\": it is longer than 262144 bytes, which no such file is"),
        (&long, &format!("cannot read \"{}\": File name too long (os error 36)", &long[1..])),
    ] {
        let outcome = Story::new("bad schema")
            .files(&[("folder/x", ""), ("odd.json", r#"{"not":{}}"#)])
            .file("bad.json", b"{\xff}")
            .file("big.json", vec![b' '; 262_145])
            .args(&["-p", "Hi.", "--json-schema", schema])
            .run();
        outcome.code(2).stdout("").stderr(&format!("cotter: --json-schema: {told}\n")).request_count(0);
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let outcome = story("single step", Api::OpenAi).args(&["--single-step"]).run();
    outcome.code(2).stderr(
        "cotter: --single-step and --json-schema exclude each other: one step gives no final answer\n",
    );
    let outcome = story("same name", Api::OpenAi)
        .executable("StructuredOutput", "#!/bin/sh\n")
        .files(&[("StructuredOutput.json", r#"{"name":"StructuredOutput","description":"D","input_schema":{"type":"object","properties":{}}}"#)])
        .args(&["--tool", "./StructuredOutput"])
        .run();
    outcome.code(2).stderr(
        "cotter: a tool may not be called \"StructuredOutput\" beside --json-schema: that one takes the answer\n",
    );
}
