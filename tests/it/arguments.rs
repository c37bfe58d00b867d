//! Arguments as models really write them: every built-in tool is called with every slip whose meaning is certain
//! and does what was meant, and with those that are not, and says what it takes.

use serde_json::{Map, Value, json};

use crate::check::Api;
use crate::story::{Outcome, Story};
use crate::talk::{Call, answer, asks, results};

/// Sound calls of each tool that needs no service, each with what it gives. They can be made any number of times.
fn sound() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        ("Read", json!({"file_path": "lines.txt", "offset": 2, "limit": 1}), LINE),
        ("Write", json!({"file_path": "out.txt", "content": "same\n"}), "wrote out.txt (5 bytes)"),
        (
            "Edit",
            json!({"file_path": "ab.txt", "old_string": "ab", "new_string": "abab", "replace_all": true}),
            "edited ab.txt (1 replacement at line 1)",
        ),
        (
            "Bash",
            json!({"command": "cat lines.txt", "timeout": 60_000, "description": "Show"}),
            "one\ntwo\nthree",
        ),
        ("Glob", json!({"pattern": "lines.*", "path": "."}), "lines.txt\n"),
        (
            "Grep",
            json!({"pattern": "TWO", "path": "lines.txt", "output_mode": "content", "-i": true, "-A": 1}),
            "lines.txt:2:two\nlines.txt-3-three\n",
        ),
        ("BashOutput", json!({"bash_id": "bash_1", "filter": "^a"}), "(no new output)\n[bash_1 is running]"),
        ("KillShell", json!({"shell_id": "bash_1"}), "bash_1 and all it had started have been ended"),
        ("get_current_datetime", json!({"timezone": "UTC", "format": "%Y"}), "2023"),
        (
            "add_duration_to_datetime",
            json!({"datetime": "2023-10-26", "duration": 1, "unit": "days"}),
            "2023-10-27 (Friday)",
        ),
    ]
}

const LINE: &str = "two\n[lines 2-2 shown, more follow: Read with offset=3 and limit=1]";

/// A run in which the model makes these calls in one reply, and their results.
fn told(calls: &[(&str, String)]) -> Vec<(String, bool)> {
    results_of(&run(calls))
}

fn results_of(outcome: &Outcome) -> Vec<(String, bool)> {
    results(Api::Anthropic, &outcome.body(2))
        .into_iter()
        .map(|(_, text, is_error)| (text, is_error))
        .collect()
}

fn run(calls: &[(&str, String)]) -> Outcome {
    let api = Api::Anthropic;
    let ids: Vec<String> = (0..calls.len()).map(|number| format!("toolu_{number}")).collect();
    let asked: Vec<Call> =
        ids.iter().zip(calls).map(|(id, (name, arguments))| (&**id, *name, &**arguments)).collect();
    let story =
        Story::new("arguments").api(api).file("lines.txt", "one\ntwo\nthree\n").file("out.txt", "before\n");
    let story = story.file("ab.txt", "ab\n").env("COTTER_NOW", "1698278400").args(&["-q", "-p", "Do it."]);
    let outcome = story.reply(asks(api, "", &asked)).reply(answer(api, "Done.")).run();
    outcome.code(0).stdout("Done.\n").stderr("");
    outcome
}

/// The arguments with each member changed.
fn each(arguments: &Value, change: impl Fn(&str, &Value) -> (String, Value)) -> Value {
    let members = arguments.as_object().unwrap().iter();
    Value::Object(members.map(|(name, value)| change(name, value)).collect::<Map<String, Value>>())
}

/// The arguments with every slip whose meaning is certain, one at a time.
fn slips(tool: &str, sound: &Value) -> Vec<Value> {
    let as_text = |value: &Value| match value {
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    };
    let camel = |name: &str| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| name + &word[..1].to_uppercase() + &word[1..])
    };
    let mut slips = vec![
        sound.clone(),
        each(sound, |name, value| (camel(name), value.clone())),
        each(sound, |name, value| (name.to_uppercase().replace('_', "-"), value.clone())),
        each(sound, |name, value| (name.to_owned(), as_text(value))),
        each(sound, |name, value| (name.to_owned(), json!([value]))),
        json!(sound.to_string()),
        json!({"input": sound}),
        json!({"arguments": sound.to_string()}),
        json!({"name": tool, "parameters": each(sound, |name, value| (camel(name), as_text(value)))}),
    ];
    let mut with_more = sound.clone();
    with_more["no_such_option"] = Value::Null;
    with_more["dry_run"] = json!(false);
    slips.push(with_more);
    slips
}

/// Edit changes what it is to find and KillShell ends it, so that their slips are calls on files and shells of
/// their own.
fn own(text: &str, number: usize) -> String {
    text.replace("ab.txt", &format!("ab{number}.txt")).replace("bash_1", &format!("bash_{}", number + 1))
}

/// The call that makes what a call of this tool needs, if it needs anything, and its result.
fn prepared(tool: &str, number: usize) -> Option<((&'static str, String), String)> {
    let shell = || ("Bash", json!({"command": "sleep 1000", "run_in_background": true}).to_string());
    let started = format!("bash_{} runs in the background: see its output with BashOutput", number + 1);
    match tool {
        "Edit" => {
            let file = json!({"file_path": format!("ab{number}.txt"), "content": "ab\n"});
            Some((("Write", file.to_string()), format!("created ab{number}.txt (3 bytes)")))
        }
        "BashOutput" if number == 0 => Some((shell(), started)),
        // The shell that BashOutput looked at is the first to be ended.
        "KillShell" if number > 0 => Some((shell(), started)),
        _ => None,
    }
}

#[test]
fn every_tool_does_what_was_meant_whatever_the_slip() {
    let mut calls = Vec::new();
    let mut expected = Vec::new();
    for (tool, arguments, result) in sound() {
        for (number, slip) in slips(tool, &arguments).iter().enumerate() {
            let (call, result) = match tool {
                "Edit" | "KillShell" => (own(&slip.to_string(), number), own(result, number)),
                _ => (slip.to_string(), result.to_owned()),
            };
            if let Some((first, told)) = prepared(tool, number) {
                calls.push(first);
                expected.push((told, false));
            }
            calls.push((tool, call));
            expected.push((result, false));
        }
    }
    let outcome = run(&calls);
    let offered = outcome.body(1)["tools"].as_array().unwrap().clone();
    let mut offered: Vec<&str> = offered.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    // It needs the network.
    offered.retain(|name| *name != "get_exchange_rate");
    let mut called: Vec<&str> = sound().iter().map(|(tool, _, _)| *tool).collect();
    offered.sort_unstable();
    called.sort_unstable();
    outcome.equal(called, offered);
    for (found, (expected, call)) in results_of(&outcome).into_iter().zip(expected.into_iter().zip(&calls)) {
        assert_eq!(found, expected, "{} {}", call.0, call.1);
    }
}

#[test]
fn names_that_models_know_from_elsewhere_are_understood() {
    let cases = [
        ("Read", json!({"path": "lines.txt", "start_line": "2", "max_lines": 1}), LINE),
        ("Read", json!({"absolute_path": "lines.txt", "offset": "", "limit": ""}), "one\ntwo\nthree\n"),
        ("Write", json!({"path": "out.txt", "file_text": "a"}), "wrote out.txt (1 bytes)"),
        ("Write", json!({"target_file": "out.txt", "contents": "a"}), "wrote out.txt (1 bytes)"),
        (
            "Edit",
            json!({"path": "ab.txt", "old_str": "ab", "new_str": "cd"}),
            "edited ab.txt (1 replacement at line 1)",
        ),
        (
            "Edit",
            json!({"file": "ab.txt", "oldText": "cd", "newText": "ef"}),
            "edited ab.txt (1 replacement at line 1)",
        ),
        (
            "Edit",
            json!({"filePath": "ab.txt", "search": "ef", "replace": "gh"}),
            "edited ab.txt (1 replacement at line 1)",
        ),
        (
            "Grep",
            json!({"regex": "TWO", "file_path": "lines.txt", "mode": "content", "caseSensitive": false}),
            "lines.txt:2:two\n",
        ),
        ("Grep", json!({"pattern": "TWO", "path": "lines.txt", "case_sensitive": "true"}), "[no matches]"),
        ("Bash", json!({"cmd": "echo one"}), "one"),
        ("Bash", json!({"cmd": ["bash", "-lc", "echo one | cat"]}), "one"),
        ("Bash", json!({"command": ["printf", "%s-", "one", "two (three)"]}), "one-two (three)-"),
        ("Bash", json!({"arguments": "echo one"}), "one"),
        ("get_current_datetime", json!({"tz": "", "format": ""}), "2023-10-26T00:00:00+00:00 (Thursday)"),
        (
            "add_duration_to_datetime",
            json!({"date": "2023-10-26", "amount": "-1", "units": "day"}),
            "2023-10-25 (Wednesday)",
        ),
    ];
    let calls: Vec<(&str, String)> = cases.iter().map(|(tool, slip, _)| (*tool, slip.to_string())).collect();
    for (found, (tool, slip, result)) in told(&calls).into_iter().zip(cases) {
        assert_eq!(found, (result.to_owned(), false), "{tool} {slip}");
    }
}

#[test]
fn what_is_not_certain_is_an_error_that_says_what_the_tool_takes() {
    let cases = [
        ("Read", json!({}), "Read needs \"file_path\""),
        ("Read", json!({"file_pth": "a"}), "Read has no argument \"file_pth\" (did you mean \"file_path\"?)"),
        ("Read", json!({"file_path": "a", "path": "b"}), "Read got the argument \"file_path\" twice"),
        ("Read", json!({"file_path": ["a", "b"]}), "Read takes a string as \"file_path\", not an array"),
        (
            "Read",
            json!({"file_path": "a", "limit": "all"}),
            "Read takes a whole number as \"limit\", not \"all\"",
        ),
        ("Write", json!({"file_path": "package.json"}), "Write needs \"content\""),
        (
            "Write",
            json!({"file_path": "package.json", "content": {"name": "x"}}),
            "Write takes a string as \"content\", not an object",
        ),
        (
            "Edit",
            json!({"file_path": "a", "edits": [{"oldText": "a", "newText": "b"}]}),
            "Edit has no argument \"edits\"",
        ),
        (
            "Edit",
            json!({"file_path": "a", "old_string": 5, "new_string": "b"}),
            "Edit takes a string as \"old_string\", not 5",
        ),
        (
            "Edit",
            json!({"file_path": "a", "old_string": "a", "new_string": "b", "replace_all": "maybe"}),
            "Edit takes true or false as \"replace_all\", not \"maybe\"",
        ),
        (
            "Bash",
            json!({"command": ["cd sub dir", "ls"]}),
            "Bash takes a string as \"command\", not an array",
        ),
        ("Bash", json!({"comand": "ls"}), "Bash has no argument \"comand\" (did you mean \"command\"?)"),
        (
            "get_current_datetime",
            json!({"timezne": "UTC"}),
            "get_current_datetime has no argument \"timezne\" (did you mean \"timezone\"?)",
        ),
        (
            "add_duration_to_datetime",
            json!({"datetime": "2023-10-26", "duration": "", "unit": "days"}),
            "add_duration_to_datetime needs \"duration\"",
        ),
        (
            "get_exchange_rate",
            json!({"currency": 978}),
            "get_exchange_rate takes a string as \"currency\", not 978",
        ),
    ];
    let calls: Vec<(&str, String)> = cases.iter().map(|(tool, slip, _)| (*tool, slip.to_string())).collect();
    for ((found, is_error), (tool, slip, problem)) in told(&calls).into_iter().zip(cases) {
        // One of the tools tells its problems in JSON.
        let found = found.replace("\\\"", "\"");
        let beginning =
            format!("{problem}; the schema of its arguments is {{\"type\":\"object\",\"properties\":{{");
        assert!(found.contains(&beginning) && is_error, "{tool} {slip}\n{found}");
    }
}

/// Write made a folder of that name, and told of a file in it.
#[test]
fn a_home_folder_is_refused_with_the_way_out() {
    let cases = [
        ("Read", json!({"file_path": "~/notes.txt"}), "~/notes.txt"),
        ("Write", json!({"file_path": "~/notes.txt", "content": "a"}), "~/notes.txt"),
        ("Write", json!({"file_path": "~", "content": "a"}), "~"),
        ("Edit", json!({"file_path": "~/notes.txt", "old_string": "a", "new_string": "b"}), "~/notes.txt"),
        ("Glob", json!({"pattern": "*", "path": "~"}), "~"),
        ("Glob", json!({"pattern": "~/*.txt"}), "~/"),
        ("Grep", json!({"pattern": "a", "path": "~/"}), "~/"),
    ];
    let mut calls: Vec<_> = cases.iter().map(|(tool, input, _)| (*tool, input.to_string())).collect();
    // What is really called so can be had.
    calls.push(("Write", json!({"file_path": "./~/a", "content": "one"}).to_string()));
    calls.push(("Read", json!({"file_path": "~/a"}).to_string()));
    let refused = cases.iter().map(|(_, _, path)| {
        let text = format!(
            "~ does not stand for a home folder here: give an absolute path, or one relative to the workspace \
             (./{path} if that is what it is called)"
        );
        (text, true)
    });
    let had = [("created ~/a (3 bytes)".to_owned(), false), ("one".to_owned(), false)];
    assert_eq!(told(&calls), refused.chain(had).collect::<Vec<_>>());
}

/// Many servers refuse a request that holds a NUL.
#[test]
fn a_nul_is_shown_escaped() {
    let no_path =
        |doing: &str| (format!("cannot {doing} a\\0b: file name contained an unexpected NUL byte"), true);
    let cases = [
        ("Read", json!({"file_path": "a\0b"}), no_path("read")),
        ("Write", json!({"file_path": "a\0b", "content": "a"}), no_path("write")),
        ("Edit", json!({"file_path": "a\0b", "old_string": "a", "new_string": "b"}), no_path("read")),
        ("Glob", json!({"pattern": "*", "path": "a\0b"}), no_path("read")),
        ("Grep", json!({"pattern": "a", "path": "a\0b"}), no_path("read")),
        (
            "Glob",
            json!({"pattern": "a\0b"}),
            ("the pattern holds a NUL character, which no path does".to_owned(), true),
        ),
        (
            "Grep",
            json!({"pattern": "a", "type": "z9\0z9z9"}),
            ("there is no file type \"z9\\0z9z9\"; use glob, such as *.z9\\0z9z9".to_owned(), true),
        ),
    ];
    let calls: Vec<_> = cases.iter().map(|(tool, input, _)| (*tool, input.to_string())).collect();
    assert_eq!(told(&calls), cases.map(|(_, _, expected)| expected).to_vec());
}
