//! Programs as tools: what the model is told of them, how its calls reach them, and what comes back.
//!
//! What they leave running and how they are ended is in `processes/programs.rs`.

use serde_json::{Value, json};

use crate::check::Api;
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, Call, TOOLS, answer, asks, results};

/// The description of a tool that takes nothing.
const PLAIN: &str = r#"{"name": "probe", "description": "Probes.", "input_schema": {"type": "object"}}"#;
/// The description of a tool with arguments.
const FUSSY: &str = r#"{"name": "probe", "description": "Probes.", "input_schema": {"type": "object", "properties": {"days": {"type": "integer"}, "city_name": {"type": "string"}}, "required": ["city_name"]}}"#;
const FUSSY_SCHEMA: &str = r#"{"type":"object","properties":{"days":{"type":"integer"},"city_name":{"type":"string"}},"required":["city_name"]}"#;

/// An example under `fixtures/tools`.
fn example(name: &str) -> String {
    format!("{}/fixtures/tools/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn story(api: Api) -> Story {
    Story::new("executables").api(api).args(&["-p", "Do it."])
}

/// A story with one program, described beside it, and no other tool.
fn with_program(api: Api, description: &str, script: &str) -> Story {
    let story = story(api).executable("probe.sh", script).file("probe.json", description);
    story.args(&["--tool", "probe.sh", "--tools", ""])
}

/// The story in which the model makes these calls in one reply, and the results that it reads.
fn told(api: Api, story: Story, calls: &[Call]) -> (Outcome, Vec<(String, bool)>) {
    let outcome = story.reply(asks(api, "", calls)).reply(answer(api, "Done.")).run();
    outcome.code(0).stdout("Done.\n").stderr("").request_count(2);
    let results = results(api, &outcome.body(2)).into_iter().map(|(_, text, is_error)| (text, is_error));
    let results = results.collect();
    (outcome, results)
}

/// What one call of a program gives.
fn result_of(description: &str, script: &str, arguments: &str) -> (String, bool) {
    // A long request is warned of, since the made-up server counts few tokens.
    let story = with_program(Api::Anthropic, description, script).args(&["-q"]);
    told(Api::Anthropic, story, &[("toolu_1", "probe", arguments)]).1.remove(0)
}

fn ok(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

fn failed(text: &str) -> (String, bool) {
    (text.to_owned(), true)
}

/// The names of the tools in a request.
fn names(api: Api, body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().unwrap().iter();
    let names = tools.map(|tool| match api {
        Api::Anthropic => &tool["name"],
        Api::OpenAi | Api::OpenRouter => &tool["function"]["name"],
    });
    names.map(|name| name.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_script_and_a_program_that_describes_itself_are_tools_like_any_other() {
    for api in BOTH {
        let calls = [
            ("call_1", "word_count", r#"{"file_path": "notes.txt"}"#),
            ("call_2", "word_count", r#"{"file_path": "missing.txt"}"#),
            ("call_3", "convert_units", r#"{"value": 3, "from_unit": "mile", "to_unit": "km"}"#),
            ("call_4", "convert_units", r#"{"value": 1, "from_unit": "kg", "to_unit": "m"}"#),
            (
                "call_5",
                "convert_units",
                r#"{"input": {"value": "2", "fromUnit": "FOOT", "to_unit": ["cm"]}}"#,
            ),
            ("call_6", "convert_units", r#"{"value": 1, "from_unit": "parsec", "to_unit": "m"}"#),
        ];
        let story = story(api).file("notes.txt", "one two\nthree\n");
        let tools = [example("word_count.sh"), example("units.py")];
        let story = story.args(&["--tool", &tools[0], "--tool", &tools[1]]);
        let (outcome, results) = told(api, story, &calls);
        outcome.equal(
            names(api, &outcome.body(1)),
            [&TOOLS[..], &["word_count", "convert_units"]]
                .concat()
                .iter()
                .map(|name| (*name).to_owned())
                .collect(),
        );
        outcome.equal(&results[0], &ok("notes.txt: 2 lines, 3 words, 14 bytes\n"));
        // The shell names the program by its path, which is not the model's business, and adds words of its own.
        let (text, is_error) = &results[1];
        let told = text.starts_with("word_count: ") && text.ends_with("\n[exit code: 1]");
        outcome.equal((told, text.contains("missing.txt"), *is_error), (true, true, true));
        outcome.equal(&results[2], &ok("4.82803 km\n"));
        outcome.equal(&results[3], &failed("kg and m do not measure the same thing\n[exit code: 1]"));
        outcome.equal(&results[4], &ok("60.96 cm\n"));
        let problem = "convert_units takes one of \"mm\", \"cm\", \"m\", \"km\", \"inch\", \"foot\", \"mile\", \"g\", \"kg\", \"ounce\", \"pound\" as \"from_unit\", not \"parsec\"; the schema of its arguments is {\"type\":\"object\",";
        outcome.equal((results[5].0.starts_with(problem), results[5].1), (true, true));
    }
}

/// A rule that says something of a program's calls forbade none of them.
#[test]
fn a_program_of_which_some_calls_are_forbidden_is_taken_away() {
    for api in BOTH {
        let call = ("call_1", "probe", "{}");
        let story = with_program(api, FUSSY, "#!/bin/sh\n: >ran\n");
        let story = story.args(&["--disallowedTools", "probe(Rome)", "--tools", "Read"]);
        let outcome = story.reply(asks(api, "", &[call])).reply(answer(api, "Done.")).run();
        outcome.code(0).no_file("ran").equal(names(api, &outcome.body(1)), vec!["Read".to_owned()]);
        outcome.stderr(
            "cotter: --disallowedTools: nothing of a program's calls can be specified, so the rule \"probe(Rome)\" forbids all of them\n",
        );
        let story = with_program(api, FUSSY, "#!/bin/sh\n: >ran\n").args(&["--allowedTools", "probe(Rome)"]);
        let outcome = story.reply(asks(api, "", &[call])).reply(answer(api, "Done.")).run();
        outcome.code(0).no_file("ran").stderr(
            "cotter: --allowedTools: nothing of a program's calls can be specified, so the rule \"probe(Rome)\" allows none of them\n",
        );
    }
}

#[test]
fn descriptions_and_schemas_are_told_to_both_apis() {
    for api in BOTH {
        let outcome = with_program(api, FUSSY, "#!/bin/sh\n").reply(answer(api, "Hi.")).run();
        let (name, description): (_, _) = ("probe", "Probes.");
        let schema: Value = serde_json::from_str(FUSSY_SCHEMA).unwrap();
        let expected = match api {
            Api::Anthropic => json!({"name": name, "description": description, "input_schema": schema}),
            Api::OpenAi | Api::OpenRouter => {
                json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
            }
        };
        let mut tool = outcome.body(1)["tools"][0].clone();
        tool.as_object_mut().unwrap().remove("cache_control");
        outcome.code(0).equal(tool, expected);
    }
}

#[test]
fn the_description_with_the_whole_name_comes_first_and_a_file_beats_the_program_itself() {
    let longer = PLAIN.replace("probe", "longer");
    let lists = |story: Story| {
        let outcome = story.args(&["--tool", "./probe.sh", "--tools", "", "--list-tools"]).run();
        outcome.code(0).stderr("");
        outcome.json()["name"].clone()
    };
    let own = r#"#!/bin/sh
echo '{"name": "own", "description": "d", "input_schema": {"type": "object"}}'
"#;
    let story = || Story::new("descriptions").executable("probe.sh", own);
    assert_eq!(lists(story().file("probe.json", PLAIN).file("probe.sh.json", &longer)), "longer");
    assert_eq!(lists(story().file("probe.json", PLAIN)), "probe");
    assert_eq!(lists(story()), "own");
}

#[test]
fn tools_are_listed_and_shown_dry_without_a_key_and_without_an_api() {
    let tools = [example("word_count.sh"), example("units.py")];
    let story = || {
        Story::new("listed").openai().args(&[
            "--tools",
            "Read,word_count",
            "--tool",
            &tools[0],
            "--tool",
            &tools[1],
        ])
    };
    let outcome = story().args(&["--list-tools"]).run();
    let listed = String::from_utf8(outcome.stdout.clone()).unwrap();
    let listed: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = listed.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    outcome.code(0).stderr("").request_count(0).equal(names, vec!["Read", "word_count", "convert_units"]);
    outcome.equal(&listed[1]["input_schema"]["required"], &json!(["file_path"]));
    let outcome = story().args(&["--dry-run", "-p", "Hi"]).run();
    outcome.code(0).stderr("").request_count(0);
    outcome.equal(
        self::names(Api::OpenAi, &outcome.json()),
        vec!["Read".to_owned(), "word_count".to_owned(), "convert_units".to_owned()],
    );
}

#[test]
fn a_folder_of_tools_gives_its_programs_in_the_order_of_their_names() {
    let describes = |name: &str| PLAIN.replace("probe", name);
    let story = Story::new("folder")
        .files(&[("tools/.hidden.sh", "#!/bin/sh\n"), ("tools/notes.txt", "no program\n")]);
    let story = story.executable("tools/B", "#!/bin/sh\n").file("tools/B.json", describes("upper"));
    let story = story.executable("tools/b.sh", "#!/bin/sh\n").file("tools/b.json", describes("lower"));
    let story = story.executable("tools/a", "#!/bin/sh\n").file("tools/a.json", describes("first"));
    let story = story
        .executable("tools/.hidden", "#!/bin/sh\n")
        .executable("tools/c.json", "{}")
        .file("tools/sub/x", "");
    let story = story.executable("one", "#!/bin/sh\n").file("one.json", describes("one"));
    let args = ["--tool-dir", "tools", "--tool", "one", "--tools", "", "--list-tools"];
    let outcome = story.args(&args).run();
    let listed = String::from_utf8(outcome.stdout.clone()).unwrap();
    let names: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["name"].clone()).collect();
    outcome.code(0).stderr("").equal(json!(names), json!(["upper", "first", "lower", "one"]));
}

#[test]
fn the_file_of_defaults_and_the_folder_of_the_run_count() {
    let story = Story::new("defaults").file("flags", "--tool=tools/probe.sh\n--tools=Read\n");
    let story = story.executable("sub/tools/probe.sh", "#!/bin/sh\n").file("sub/tools/probe.json", PLAIN);
    let outcome = story.env("COTTER_CONFIG", "flags").args(&["-C", "sub", "--list-tools"]).run();
    let listed = String::from_utf8(outcome.stdout.clone()).unwrap();
    outcome.code(0).equal(listed.lines().count(), 2);
}

#[test]
fn a_program_reads_its_arguments_and_works_in_the_workspace_with_the_environment_of_commands() {
    let script = r#"#!/bin/sh
cat
test -f probe.json && echo in the workspace
echo "$LC_ALL $TZ $TERM ${OPENAI_API_KEY-no key} $#"
readlink -f "$0" >path.txt
echo "$0"
"#;
    let story = with_program(Api::OpenAi, FUSSY, script).env("OPENAI_API_KEY", "a-key-of-some-length");
    let arguments = r#"{"cityName": "Zürich\n\"x\"", "days": "2.0"}"#;
    let (_, results) = told(Api::OpenAi, story, &[("call_1", "probe", arguments)]);
    let expected = "{\"city_name\":\"Zürich\\n\\\"x\\\"\",\"days\":2}\nin the workspace\nC.UTF-8 UTC dumb no key 0\n./probe.sh\n";
    assert_eq!(results, [ok(expected)]);
}

#[test]
fn arguments_that_do_not_fit_the_schema_do_not_reach_the_program() {
    let story = with_program(Api::Anthropic, FUSSY, "#!/bin/sh\necho ran >>ran.txt\n");
    let cases = [
        ("{}", "probe needs \"city_name\""),
        (r#"{"city_name": 5}"#, "probe takes a string as \"city_name\", not 5"),
        (r#"{"city_name": "a", "days": "two"}"#, "probe takes a whole number as \"days\", not \"two\""),
        (r#"{"city": "a"}"#, "probe has no argument \"city\" (did you mean \"city_name\"?)"),
        (r#"{"city_name": "a", "zoom": 3}"#, "probe has no argument \"zoom\""),
    ];
    let ids: Vec<String> = (0..cases.len()).map(|number| format!("toolu_{number}")).collect();
    let calls: Vec<Call> =
        ids.iter().zip(cases).map(|(id, (arguments, _))| (&**id, "probe", arguments)).collect();
    let (outcome, results) = told(Api::Anthropic, story, &calls);
    let expected = cases
        .map(|(_, problem)| failed(&format!("{problem}; the schema of its arguments is {FUSSY_SCHEMA}")));
    outcome.equal(results, expected.to_vec()).no_file("ran.txt");
}

#[test]
fn what_a_program_prints_and_how_it_ends_is_the_result() {
    for (script, expected) in [
        ("echo out; echo progress >&2", ok("out\n")),
        ("printf '  no line end'", ok("  no line end")),
        ("echo progress >&2", ok("(no output)")),
        ("exit 3", failed("[exit code: 3]")),
        ("echo why >&2; exit 3", failed("why\n[exit code: 3]")),
        ("echo out; echo why >&2; exit 4", failed("out\n[standard error]\nwhy\n[exit code: 4]")),
        ("echo out; exit 5", failed("out\n[exit code: 5]")),
        ("echo last; kill -KILL $$", failed("last\n[killed by signal 9 (SIGKILL)]")),
        // Its group is its own.
        ("kill -TERM 0", failed("[killed by signal 15 (SIGTERM)]")),
        ("kill -TERM $$", failed("[killed by signal 15 (SIGTERM)]")),
        ("printf 'caf\\351 \\000'", ok("caf\u{fffd} \u{fffd}")),
        ("exec >&- 2>&-; exit 6", failed("[exit code: 6]")),
        ("echo '[1, 2]'", ok("[1, 2]\n")),
        ("echo '{\"content\": 5}'", ok("{\"content\": 5}\n")),
        ("echo '{\"content\": [{\"type\": \"text\"'", ok("{\"content\": [{\"type\": \"text\"\n")),
    ] {
        assert_eq!(result_of(PLAIN, &format!("#!/bin/sh\n{script}\n"), "{}"), expected, "{script}");
    }
}

#[test]
fn blocks_of_text_are_the_result_and_an_error_is_believed() {
    let prints = |result: &str, then: &str| {
        result_of(PLAIN, &format!("#!/bin/sh\ncat <<'END'\n{result}\nEND\n{then}\n"), "{}")
    };
    let two = r#"{"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "isError": false}"#;
    assert_eq!(prints(two, ""), ok("one\ntwo"));
    assert_eq!(prints(&two.replace("false", "true"), ""), failed("one\ntwo"));
    assert_eq!(prints(two, "exit 1"), failed("one\ntwo\n[exit code: 1]"));
    let other = r#"{"content": [{"type": "audio", "data": "AAAA"}, {"text": "x"}]}"#;
    assert_eq!(
        prints(other, ""),
        ok("[2 blocks that are no text or image were left out: \"audio\", \"unknown\"]")
    );
    assert_eq!(prints(r#"{"content": []}"#, ""), ok("(no output)"));
}

#[test]
fn a_program_that_cannot_be_a_tool_is_named_with_the_reason_before_anything_is_asked() {
    let cannot = |why: &str| format!("cotter: the tool \"./probe\" cannot be used: {why}\n");
    let plain = |script: &str| Story::new("refused").executable("probe", script).file("probe.json", PLAIN);
    let self_described = |script: &str| Story::new("refused").executable("probe", script);
    let described =
        |text: &str| Story::new("refused").executable("probe", "#!/bin/sh\n").file("probe.json", text);
    let unusable =
        |why: &str| format!("cotter: the description of a tool in \"./probe.json\" cannot be used: {why}");
    let no_schema = "there is no description beside it, and run with --schema it failed: ";
    let cases = [
        (Story::new("refused"), cannot("there is no such file; give its path, for a command in PATH \"$(command -v NAME)\"")),
        (Story::new("refused").file("probe/x", ""), cannot("it is a folder; pass --tool-dir for the programs in it")),
        (Story::new("refused").file("probe", "#!/bin/sh\n"), cannot("it is not executable; try chmod +x './probe'")),
        (plain("echo hello\n"), cannot("it is neither a binary nor a script with an interpreter; begin it with a line such as #!/bin/sh")),
        (plain(""), cannot("it is neither a binary nor a script with an interpreter; begin it with a line such as #!/bin/sh")),
        (plain("#!/no/such/sh -e\n"), cannot("its first line names the interpreter \"/no/such/sh\", which is not there or cannot be run; mend that line or install it")),
        (plain("#!/bin/sh\r\necho\r\n"), cannot("its first line ends with a carriage return, so that \"/bin/sh\" is not found; write it with plain line ends")),
        (self_described("#!/bin/sh\necho oops >&2\nexit 7\n"), cannot(&format!("{no_schema}oops [exit code: 7]"))),
        (self_described("#!/bin/sh\n"), cannot(&format!("{no_schema}it printed nothing"))),
        (self_described("#!/bin/sh\necho hello\n"), cannot(&format!("{no_schema}what it printed is no JSON object of at most 262144 bytes"))),
        (self_described("#!/bin/sh\nprintf '{'; yes\n"), cannot(&format!("{no_schema}[timed out after 10000 ms: the command and what it started were ended; ask for less at once]"))),
        (described("{"), unusable("it is not JSON")),
        (described("[]"), unusable("\"name\" is missing or no text")),
        (described(&PLAIN.replace("probe", "pro be")), unusable("the APIs take no name such as \"pro be\"")),
        (described(&PLAIN.replace("probe", "Read")), "cotter: the tool \"./probe\" cannot be used: it calls itself \"Read\" as a built-in tool does; give it another name\n".to_owned()),
        (described(r#"{"name": "n", "description": "d"}"#), unusable("\"input_schema\" is missing")),
        (described(&" ".repeat(300_000)), cannot("\"./probe.json\" cannot be read: it is longer than 262144 bytes")),
    ];
    for (story, error) in cases {
        let outcome = story.openai().args(&["-p", "Do it.", "--tool", "./probe"]).run();
        outcome.code(2).stdout("").request_count(0);
        match error.ends_with('\n') {
            true => outcome.stderr(&error),
            false => outcome.stderr_has(&error),
        };
    }
}

#[test]
fn two_tools_of_one_name_an_unknown_name_and_a_folder_without_tools_are_refused() {
    let story = || {
        let story = Story::new("refused").executable("a", "#!/bin/sh\n").file("a.json", PLAIN);
        let story = story.executable("tools/b", "#!/bin/sh\n").file("tools/b.json", PLAIN);
        story.file("empty/notes.txt", "").args(&["-p", "Do it."])
    };
    for (args, error) in [
        (
            &["--tool", "a", "--tool-dir", "tools"][..],
            "the tools \"a\" and \"tools/b\" both call themselves \"probe\"; rename one or leave it out",
        ),
        (
            &["--tool-dir", "empty"],
            "the folder of tools \"empty\" cannot be used: no file in it is executable; try chmod +x on those that are meant",
        ),
        (
            &["--tool-dir", "a"],
            "the folder of tools \"a\" cannot be used: it is no folder; pass --tool for one program",
        ),
        (
            &["--tool-dir", "none"],
            "the folder of tools \"none\" cannot be used: No such file or directory (os error 2)",
        ),
        (
            &["--tool", "a", "--tools", "Read,prob"],
            "--tools: there is no tool \"prob\": choose from Read, Write, Edit, Glob, Grep, Bash, BashOutput, KillShell, get_current_datetime, add_duration_to_datetime, get_exchange_rate, probe",
        ),
    ] {
        story()
            .openai()
            .args(args)
            .run()
            .code(2)
            .stdout("")
            .request_count(0)
            .stderr(&format!("cotter: {error}\n"));
    }
}

#[test]
fn what_was_changed_since_the_start_is_what_runs() {
    let api = Api::Anthropic;
    let story = story(api).executable("probe.sh", "#!/bin/sh\necho first\n").file("probe.json", PLAIN);
    let story = story.args(&["--tool", "probe.sh"]);
    let write = json!({"file_path": "probe.sh", "content": "#!/bin/sh\necho second\n"}).to_string();
    let calls = [
        ("toolu_1", "probe", "{}"),
        ("toolu_2", "Write", &*write),
        ("toolu_3", "probe", "{}"),
        ("toolu_4", "Bash", r#"{"command": "rm probe.sh"}"#),
        ("toolu_5", "probe", "{}"),
    ];
    let (outcome, results) = told(api, story, &calls);
    let gone = "the program cannot be started: it or the interpreter in its first line is gone (No such file or directory (os error 2))";
    outcome.equal(
        results,
        vec![ok("first\n"), ok("wrote probe.sh (22 bytes)"), ok("second\n"), ok("(no output)"), failed(gone)],
    );
}

#[test]
fn single_step_prints_what_the_program_printed() {
    for api in BOTH {
        let story = |script: &str| with_program(api, PLAIN, script).args(&["--single-step"]);
        let call = ("call_1", "probe", "{}");
        let outcome =
            story("#!/bin/sh\nprintf 'a\\n\\nb\\n\\n'; echo x >&2\n").reply(asks(api, "", &[call])).run();
        outcome.code(0).stdout("a\n\nb\n\n").stderr("").request_count(1);
        let outcome = story("#!/bin/sh\necho why >&2; exit 3\n").reply(asks(api, "", &[call])).run();
        outcome.code(1).stdout("").stderr("cotter: the call of probe failed: why\n  [exit code: 3]\n");
    }
}

#[test]
fn an_output_of_any_length_is_told_by_its_head_and_tail() {
    let script = "#!/bin/sh\necho first\nhead -c 1000000000 /dev/zero | tr '\\0' x\nprintf '\\nlast\\n'\n";
    let (text, is_error) = result_of(PLAIN, script, "{}");
    assert!(text.starts_with("first\nxx") && text.ends_with("xx\nlast\n") && !is_error);
    assert!(text.contains("\n[… 999970012 bytes left out …]\n"), "{}", text.replace('x', ""));
}

#[test]
fn arguments_of_any_length_do_not_wait_for_a_program_that_reads_none() {
    let any = r#"{"name": "probe", "description": "d", "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}}}"#;
    let of = |length: usize| json!({"text": "x".repeat(length)}).to_string();
    assert_eq!(result_of(any, "#!/bin/sh\necho done\n", &of(10_000_000)), ok("done\n"));
    assert_eq!(result_of(any, "#!/bin/sh\nhead -c 12 | tr x y\n", &of(1_000_000)), ok("{\"teyt\":\"yyy"));
    assert_eq!(result_of(any, "#!/bin/sh\nwc -c | tr -d ' '\n", &of(1_000_000)), ok("1000012\n"));
}

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn images_in_blocks_are_shown_unless_the_call_failed() {
    let prints = |is_error: bool| {
        let blocks = json!({"isError": is_error, "content": [
            {"type": "text", "text": "Here:"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}]});
        format!("#!/bin/sh\ncat <<'END'\n{blocks}\nEND\n")
    };
    for api in BOTH {
        let run =
            |is_error| told(api, with_program(api, PLAIN, &prints(is_error)), &[("call_1", "probe", "{}")]).0;
        let outcome = run(false);
        let messages = outcome.body(2)["messages"].clone();
        let last = messages.as_array().unwrap().last().unwrap();
        let text = "Here:\n[image: PNG, 1 x 1 pixels]";
        match api {
            Api::Anthropic => {
                let source = json!({"type": "base64", "media_type": "image/png", "data": PIXEL});
                let expected = json!([{"type": "text", "text": text}, {"type": "image", "source": source}]);
                outcome.equal(&last["content"][0]["content"], &expected);
            }
            Api::OpenAi | Api::OpenRouter => {
                outcome.equal(results(api, &outcome.body(2))[0].1.as_str(), text);
                let url = json!({"url": format!("data:image/png;base64,{PIXEL}")});
                outcome.equal(&last["content"][1], &json!({"type": "image_url", "image_url": url}));
            }
        }
        let outcome = run(true);
        outcome.equal(outcome.sent(2).contains(PIXEL), false);
        let expected = format!("{text}\n[image left out: the call failed]");
        outcome.equal(results(api, &outcome.body(2)), vec![("call_1".to_owned(), expected, true)]);
    }
}
