//! Calls whose texts are very long: whatever is wrong with one, its result stays short, because it is sent
//! with every later request.

use serde_json::{Value, json};

use crate::check::Api;
use crate::story::{Outcome, Story};
use crate::talk::{answer, asks, results};

const LONG: usize = 1_000_000;
/// As much as forty calls can hold without taking long.
const RATHER_LONG: usize = 40_000;

/// A run of these calls, and their results.
fn told(name: &str, calls: &[(String, Value)]) -> (Outcome, Vec<(String, bool)>) {
    let texts: Vec<String> = calls.iter().map(|(_, input)| input.to_string()).collect();
    let ids: Vec<String> = (0..calls.len()).map(|number| format!("call_{number}")).collect();
    let calls: Vec<_> =
        ids.iter().zip(calls).zip(&texts).map(|((id, (tool, _)), text)| (&**id, &**tool, &**text)).collect();
    let api = Api::OpenAi;
    let story = Story::new(name).files(&[("notes.txt", "Bridges.\n")]).args(&["-p", "Go."]);
    let outcome = story.reply(asks(api, "", &calls)).reply(answer(api, "Done.")).run();
    outcome.code(0);
    let results = results(api, &outcome.body(2)).into_iter().map(|(_, text, is_error)| (text, is_error));
    let results = results.collect();
    (outcome, results)
}

/// Arguments that the tool takes, as few as it can do with.
fn least(tool: &str) -> Value {
    match tool {
        "Read" => json!({"file_path": "notes.txt"}),
        "Write" => json!({"file_path": "new.txt", "content": "x"}),
        "Edit" => json!({"file_path": "notes.txt", "old_string": "none", "new_string": "x"}),
        "Glob" | "Grep" => json!({"pattern": "none"}),
        "Bash" => json!({"command": "true"}),
        "BashOutput" => json!({"bash_id": "bash_1"}),
        "KillShell" => json!({"shell_id": "bash_1"}),
        "add_duration_to_datetime" => json!({"datetime": "2026-11-30", "duration": 1, "unit": "days"}),
        _ => json!({}),
    }
}

/// Each tool with each of its arguments that long, and with one of a name that long.
fn calls() -> Vec<(String, Value)> {
    let story = Story::new("tools").args(&["-p", "Go.", "--dry-run"]).run();
    story.code(0);
    let mut calls = Vec::new();
    let body: Value = serde_json::from_slice(&story.stdout).unwrap();
    for tool in body["tools"].as_array().unwrap() {
        let name = tool["function"]["name"].as_str().unwrap();
        let with = |argument: &str, value: Value| {
            let mut input = least(name);
            input[argument] = value;
            (name.to_owned(), input)
        };
        for argument in tool["function"]["parameters"]["properties"].as_object().unwrap().keys() {
            // No regular expression, no glob, no command.
            calls.push(with(argument, format!("({}", "a".repeat(RATHER_LONG)).into()));
        }
        calls.push(with(&"b".repeat(RATHER_LONG), true.into()));
    }
    calls
}

#[test]
fn however_long_an_argument_is_its_result_stays_short() {
    let calls = calls();
    let (outcome, results) = told("long arguments", &calls);
    outcome.equal(results.len(), calls.len());
    for ((tool, input), (text, _)) in calls.iter().zip(&results) {
        let long = |value: &&Value| value.as_str().is_some_and(|text| text.len() > RATHER_LONG);
        let which: Vec<_> = input.as_object().unwrap().iter().filter(|(_, value)| long(value)).collect();
        let which = which.first().map_or("an unknown one", |(name, _)| name.as_str());
        // What a command prints is bounded by its own limit, and so is a regular expression's error.
        let most = match (tool.as_str(), which) {
            ("Bash", "command") => 31_000,
            ("Grep", "pattern") | ("BashOutput", "filter") => 16_100,
            _ => 4000,
        };
        assert!(text.len() <= most, "{tool} {which}: {} bytes: {:.300}", text.len(), text);
    }
}

#[test]
fn a_long_text_is_quoted_by_its_beginning_and_its_end() {
    let calls = [
        ("Read".to_owned(), json!({"file_path": "a".repeat(LONG)})),
        ("Glob".to_owned(), json!({"pattern": "a".repeat(LONG)})),
        ("Grep".to_owned(), json!({"pattern": "x", "type": "a".repeat(LONG)})),
        ("Grep".to_owned(), json!({"pattern": "x", ("b".repeat(LONG)): true})),
        ("KillShell".to_owned(), json!({"shell_id": "a".repeat(LONG)})),
        ("a".repeat(LONG), json!({})),
    ];
    let (outcome, results) = told("long names", &calls);
    let short = format!("{}…{}", "a".repeat(150), "a".repeat(50));
    let texts: Vec<&str> = results.iter().map(|(text, _)| text.as_str()).collect();
    outcome.equal(texts[0], &format!("cannot read {short}: File name too long (os error 36)"));
    let remark = "ignored and hidden ones are only looked for in a path that names them";
    outcome.equal(texts[1], &format!("[no files match {short}; {remark}]"));
    outcome.equal(texts[2], &format!("there is no file type \"{short}\"; use glob, such as *.{short}"));
    let unknown = short.replace('a', "b");
    let unknown = format!("Grep has no argument \"{unknown}\"; the schema of its arguments is {{");
    outcome.equal(texts[3].starts_with(&unknown), true);
    outcome.equal(texts[4].contains(&format!("\"{short}\"")), true);
    outcome.equal(texts[5].starts_with(&format!("there is no tool \"{short}\": the tools are Read, ")), true);
}
