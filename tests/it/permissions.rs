//! Which calls may run: what rules and modes allow and forbid, what the model is told of a call that was
//! denied, and what the result counts.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::{Value, json};

use crate::check::Api;
use crate::story::{FOLDER, Outcome, Story, new_folder};
use crate::talk::{BOTH, Call, TOOLS, answer, asks, results};

fn story(api: Api, args: &[&str]) -> Story {
    Story::new("permissions").api(api).args(&["-p", "Do it."]).args(args)
}

/// A run in which the model asks for these calls in one reply and then answers.
fn run(api: Api, args: &[&str], calls: &[Call]) -> Outcome {
    given(story(api, args), api, calls)
}

fn given(story: Story, api: Api, calls: &[Call]) -> Outcome {
    story.reply(asks(api, "", calls)).reply(answer(api, "Done.")).run()
}

/// The texts of all results, and whether each is an error.
fn told(api: Api, outcome: &Outcome) -> Vec<(String, bool)> {
    let results = results(api, &outcome.body(2));
    results.into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

/// What the model reads of a denied call.
fn denied(why: &str) -> (String, bool) {
    let text = format!(
        "permission denied, the call was not run: {why}. Do not try to get the same done in another way: \
         go on without it, or say what is missing."
    );
    (text, true)
}

fn ok(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

const WRITE: Call = ("call_w", "Write", r#"{"file_path": "a.txt", "content": "one\n"}"#);
const ECHO: Call = ("call_b", "Bash", r#"{"command": "echo hi"}"#);

#[test]
fn without_rules_all_that_is_offered_may_run() {
    for api in BOTH {
        for mode in [&[][..], &["--permission-mode", "default"], &["--permission-mode", "acceptEdits"]] {
            let outcome = run(api, mode, &[WRITE, ECHO]);
            outcome.code(0).stdout("Done.\n").stderr("").file("a.txt", "one\n");
            outcome.equal(told(api, &outcome), vec![ok("created a.txt (4 bytes)"), ok("hi")]);
        }
    }
}

#[test]
fn one_rule_that_allows_makes_all_else_need_one() {
    let read = ("call_r", "Read", r#"{"file_path": "notes.txt"}"#);
    let now = ("call_n", "get_current_datetime", "{}");
    let push = ("call_p", "Bash", r#"{"command": "echo hi && git push -f"}"#);
    for api in BOTH {
        let story = story(api, &["--allowedTools", "Bash(echo:*)"]).files(&[("notes.txt", "1932\n")]);
        let story = story.env("COTTER_NOW", "0");
        let outcome = given(story, api, &[read, now, ECHO, push, WRITE]);
        outcome.code(0).stdout("Done.\n").no_file("a.txt");
        let expected = vec![
            ok("1932\n"),
            ok("1970-01-01T00:00:00+00:00 (Thursday)"),
            ok("hi"),
            denied("it runs a command that no rule allows; it needs --allowedTools \"Bash(git push:*)\""),
            denied("it writes a file; it needs --allowedTools \"Edit(/a.txt)\""),
        ];
        outcome.equal(told(api, &outcome), expected);
    }
}

#[test]
fn an_empty_list_allows_nothing_that_needs_a_rule() {
    let outcome = run(Api::OpenAi, &["--allowedTools", ""], &[WRITE, ECHO]);
    outcome.code(0).no_file("a.txt");
    outcome.equal(told(Api::OpenAi, &outcome).iter().filter(|(_, is_error)| *is_error).count(), 2);
}

#[test]
fn what_was_denied_is_in_the_result_and_in_verbose_lines() {
    for api in BOTH {
        let args = ["--allowedTools", "Bash(echo:*)", "--output-format", "json", "--verbose"];
        let outcome = run(api, &args, &[WRITE, ECHO]);
        outcome.code(0);
        let expected = json!([{"tool_name": "Write", "tool_use_id": "call_w",
            "tool_input": {"file_path": "a.txt", "content": "one\n"}}]);
        outcome.equal(&outcome.json()["permission_denials"], &expected);
        outcome.stderr_has(
            "cotter: Write was denied: it writes a file; it needs --allowedTools \"Edit(/a.txt)\"\n",
        );
        let outcome = run(api, &["--output-format", "json"], &[WRITE, ECHO]);
        outcome.equal(&outcome.json()["permission_denials"], &json!([]));
    }
}

#[test]
fn a_denied_call_is_told_once_beside_a_text() {
    let line = "cotter: Write was denied: it writes a file; it needs --allowedTools \"Edit(/a.txt)\"\n";
    for api in BOTH {
        let again = ("call_again", WRITE.1, WRITE.2);
        let rule = ["--allowedTools", "Bash(echo:*)"];
        run(api, &rule, &[WRITE, again, ECHO]).code(0).stdout("Done.\n").stderr(line);
        run(api, &[&rule[..], &["-q"]].concat(), &[WRITE]).code(0).stderr("");
        run(api, &[&rule[..], &["--output-format", "json"]].concat(), &[WRITE]).code(0).stderr("");
    }
}

/// A search showed what a file held that must not be read.
#[test]
fn a_search_finds_nothing_in_files_that_may_not_be_read() {
    let calls = [
        ("call_1", "Grep", r#"{"pattern": "word", "output_mode": "content"}"#),
        ("call_2", "Glob", r#"{"pattern": "**/*.txt"}"#),
        ("call_3", "Glob", r#"{"pattern": "secret/*"}"#),
        ("call_4", "Grep", r#"{"pattern": "word", "path": "b.txt"}"#),
        ("call_5", "Grep", r#"{"regex": "word", "dir": "secret"}"#),
    ];
    for api in BOTH {
        let files = [("a.txt", "a word\n"), ("b.txt", "the word\n"), ("secret/c.txt", "pass word\n")];
        let story = story(api, &["--disallowedTools", "Read(b.txt) Read(secret/**)"]).files(&files);
        let outcome = given(story, api, &calls);
        outcome.code(0);
        let told = told(api, &outcome);
        outcome.equal(&told[0], &ok("a.txt:1:a word\n"));
        outcome.equal(&told[1], &ok("a.txt\n"));
        outcome.equal(told[2].0.starts_with("[no files match secret/*"), true);
        outcome.equal(&told[3], &denied("the rule \"Read(b.txt)\" of --disallowedTools forbids it"));
        outcome.equal(told[4].0.contains("c.txt") || told[4].0.contains("pass"), false);
    }
}

#[test]
fn a_forbidden_command_is_found_behind_others() {
    let calls = [
        ("call_1", "Bash", r#"{"command": "echo a; touch b"}"#),
        ("call_2", "Bash", r#"{"cmd": "env A=1 sh -c 'touch b'"}"#),
        ("call_3", "Bash", r#"{"command": "echo touch b"}"#),
    ];
    for api in BOTH {
        for mode in ["default", "bypassPermissions"] {
            let outcome =
                run(api, &["--permission-mode", mode, "--disallowedTools", "Bash(touch:*)"], &calls);
            let forbidden = denied("the rule \"Bash(touch:*)\" of --disallowedTools forbids it");
            outcome.code(0).no_file("b");
            outcome.equal(told(api, &outcome), vec![forbidden.clone(), forbidden, ok("touch b")]);
        }
    }
}

/// A shell that was fed, an option in front of the second word or a wrapper got past the rule.
#[test]
fn a_forbidden_command_is_found_behind_options_and_in_what_a_shell_is_fed() {
    let commands = [
        "bash <<< 'touch b'",
        "echo touch b | sh",
        "git -C . init",
        "git --bare init",
        "fakeroot touch b",
        "flock lock touch b",
        "sh < script",
        "python3 -c 'import os; os.system(\"touch b\")'",
        "git -C . status 2>/dev/null; cat script | sh script2 2>/dev/null",
    ];
    let texts: Vec<String> = commands.iter().map(|it| json!({ "command": it }).to_string()).collect();
    let ids: Vec<String> = (0..commands.len()).map(|number| format!("call_{number}")).collect();
    let calls: Vec<Call> =
        ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), "Bash", text.as_str())).collect();
    for api in BOTH {
        let story = story(api, &["--disallowedTools", "Bash(touch:*),Bash(git init:*)"]);
        let outcome = given(story.files(&[("script", "touch b\n")]), api, &calls);
        outcome.code(0).no_file("b").no_file("lock").no_file(".git").no_file("HEAD");
        let told = told(api, &outcome);
        let denied: Vec<bool> =
            told.iter().map(|(text, _)| text.contains("of --disallowedTools forbids it")).collect();
        outcome.equal(denied, [vec![true; commands.len() - 1], vec![false]].concat());
    }
}

/// One command of a line set the variables of another, each by a rule of its own.
#[test]
fn rules_about_two_commands_allow_neither_to_change_the_other() {
    let place = new_folder("assigned", &["any"]);
    let any = place.join("any");
    let commands = [
        format!("printf -v {{TMPDIR,{}}} && printf evil > $TMPDIR/rc", any.display()),
        format!("printf -vTMPDIR {} ; printf evil > ${{TMPDIR}}/rc", any.display()),
        "printf -v PATH ./bin; ls".to_owned(),
        "printf {-v,PATH,./bin}; ls".to_owned(),
        "nice 5 ls".to_owned(),
        "printf -- -v > $TMPDIR/a; cat $TMPDIR/a".to_owned(),
    ];
    let texts: Vec<String> = commands.iter().map(|it| json!({ "command": it }).to_string()).collect();
    let ids: Vec<String> = (0..commands.len()).map(|number| format!("call_{number}")).collect();
    let calls: Vec<Call> =
        ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), "Bash", text.as_str())).collect();
    for api in BOTH {
        for sandbox in ["off", "workspace-write"] {
            let rules = "Bash(printf:*),Bash(ls:*),Bash(cat:*)";
            let story = story(api, &["--sandbox", sandbox, "--allowedTools", rules]);
            let story =
                story.executable("bin/ls", "#!/bin/sh\n: >ran\n").executable("5", "#!/bin/sh\n: >ran\n");
            let outcome = given(story, api, &calls);
            outcome.code(0).no_file("ran");
            assert!(!any.join("rc").exists());
            let told = told(api, &outcome);
            let failed: Vec<bool> = told.iter().map(|(_, is_error)| *is_error).collect();
            outcome.equal(failed, vec![true, true, true, true, true, false]);
            let (changes, beside) = (
                "a builtin that changes what the commands behind it mean",
                "a change of folder beside a redirection",
            );
            for (number, what) in [(0, beside), (1, beside), (2, changes), (3, changes)] {
                let why = format!(
                    "no rule about commands matches a command line that has {what}; it needs --allowedTools \"Bash\""
                );
                outcome.equal(&told[number], &denied(&why));
            }
        }
    }
    fs::remove_dir_all(&place).unwrap();
}

/// What lay behind a link in the private folder was written without a rule.
#[test]
fn a_link_in_the_private_folder_leads_to_no_file_that_needs_a_rule() {
    let calls = [
        ("call_1", "Write", r#"{"file_path": "$TMPDIR/l/planted", "content": "x"}"#),
        ("call_2", "Bash", r#"{"command": "ls > $TMPDIR/l/planted"}"#),
        ("call_3", "Bash", r#"{"command": "ln -s \"$PWD\" $TMPDIR/m && ls > $TMPDIR/m/planted"}"#),
        ("call_4", "Write", r#"{"file_path": "$TMPDIR/own", "content": "x"}"#),
        ("call_5", "Bash", r#"{"command": "ls > $TMPDIR/list"}"#),
    ];
    for api in BOTH {
        for sandbox in ["off", "workspace-write"] {
            let story = story(api, &["--sandbox", sandbox, "--allowedTools", "Bash(ln:*),Bash(ls:*)"]);
            let link = ("call_0", "Bash", r#"{"command": "ln -s \"$PWD\" $TMPDIR/l"}"#);
            let story = story.reply(asks(api, "", &[link])).reply(asks(api, "", &calls));
            let outcome = story.reply(answer(api, "Done.")).run();
            outcome.code(0).no_file("planted");
            let results = results(api, &outcome.body(3));
            let told: Vec<(String, bool)> =
                results.into_iter().skip(1).map(|(_, text, is_error)| (text, is_error)).collect();
            let needs = |why: &str, rule: &str| denied(&format!("{why}; it needs --allowedTools \"{rule}\""));
            let expected = vec![
                needs("it writes a file", "Edit(/planted)"),
                needs("its output goes to a file", "Edit(/planted)"),
                needs(
                    "no rule about commands matches a command line that has a command that can make links \
                     ahead of a redirection",
                    "Bash",
                ),
                ok("created $TMPDIR/own (1 bytes)"),
            ];
            outcome.equal(told[..4].to_vec(), expected);
            outcome.equal(told[4].1, false);
        }
    }
}

#[test]
fn a_forbidden_file_is_forbidden_by_all_its_names() {
    let place = new_folder("forbidden", &["secret"]);
    fs::write(place.join("secret/key"), "k-1234").unwrap();
    let arguments = |path: &str| json!({ "file_path": path }).to_string();
    let paths = [
        ".env",
        "./sub/../.env",
        "sub/.env",
        &format!("{FOLDER}/.env"),
        "link",
        "outside/key",
        "sub/../outside/key",
    ];
    let rules = format!("Read(.env) Read(/{}/**)", place.join("secret").display());
    for api in BOTH {
        let texts: Vec<String> = paths.iter().map(|path| arguments(path)).collect();
        let mut calls: Vec<Call> = texts.iter().map(|text| ("", "Read", text.as_str())).collect();
        let ids: Vec<String> = (0..paths.len() + 2).map(|number| format!("call_{number}")).collect();
        // By another name of the argument, and by a tool that shows the file when it fails.
        calls.push(("", "Read", r#"{"filename": ".env"}"#));
        calls.push(("", "Edit", r#"{"path": "link", "old_string": "a", "new_string": "b"}"#));
        for (call, id) in calls.iter_mut().zip(&ids) {
            call.0 = id;
        }
        let story = story(api, &["--disallowedTools", &rules]).told_folder();
        let story = story.files(&[(".env", "KEY=k-1234"), ("sub/.env", "KEY=k-1234"), ("a", "")]);
        let story = story.reply(asks(
            api,
            "",
            &[(
                "call_ln",
                "Bash",
                &json!({"command": format!(
            "ln -s .env link; ln -s {} outside", place.join("secret").display())})
                .to_string(),
            )],
        ));
        let outcome = story.reply(asks(api, "", &calls)).reply(answer(api, "Done.")).run();
        outcome.code(0).request_count(3);
        let results = results(api, &outcome.body(3));
        outcome.equal(results.len(), calls.len() + 1);
        for (id, text, is_error) in &results[1..] {
            assert!(*is_error && text.contains("of --disallowedTools forbids it"), "{id}: {text}");
        }
        assert!(!outcome.sent(3).contains("k-1234"), "{}", outcome.report());
    }
    fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_file_is_allowed_only_where_it_really_is() {
    let place = new_folder("allowed", &["elsewhere"]);
    for api in BOTH {
        let story = story(api, &["--allowedTools", "Edit(src/**)", "Bash(ln:*)"])
            .files(&[("src/a", "one"), ("b", "two")]);
        let calls = [
            ("call_1", "Edit", r#"{"file_path": "src/a", "old_string": "one", "new_string": "1"}"#),
            ("call_2", "Write", r#"{"file_path": "src/new/c", "content": "3"}"#),
            ("call_3", "Write", r#"{"file_path": "src/../b", "content": "x"}"#),
            ("call_4", "Write", r#"{"file_path": "src/link/d", "content": "x"}"#),
        ];
        let link =
            json!({"command": format!("ln -s {} src/link", place.join("elsewhere").display())}).to_string();
        let story = story.reply(asks(api, "", &[("call_0", "Bash", &link)]));
        let outcome = story.reply(asks(api, "", &calls)).reply(answer(api, "Done.")).run();
        outcome.code(0).file("src/a", "1").file("src/new/c", "3").file("b", "two");
        assert!(!place.join("elsewhere/d").exists());
        let denied: Vec<bool> =
            results(api, &outcome.body(3)).iter().map(|(_, _, is_error)| *is_error).collect();
        outcome.equal(denied, vec![false, false, false, true, true]);
    }
    fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_forbidden_tool_is_not_offered() {
    let names = |outcome: &Outcome, api: Api| -> Vec<String> {
        let body = outcome.body(1);
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let name = |tool: &Value| match api {
            Api::Anthropic => tool["name"].as_str().unwrap().to_owned(),
            _ => tool["function"]["name"].as_str().unwrap().to_owned(),
        };
        tools.iter().map(name).collect()
    };
    for api in BOTH {
        let outcome = run(api, &["--disallowed-tools", "Write,Bash(*)", "Edit(*)", "Read(*)"], &[WRITE]);
        let taken = ["Write", "Bash", "BashOutput", "KillShell"];
        let left: Vec<&str> = TOOLS.into_iter().filter(|name| !taken.contains(name)).collect();
        outcome
            .code(0)
            .no_file("a.txt")
            .equal(names(&outcome, api), left.iter().map(|it| it.to_string()).collect());
        let text = format!("there is no tool \"Write\": the tools are {}", left.join(", "));
        outcome.equal(told(api, &outcome), vec![(text, true)]);
    }
}

#[test]
fn where_nobody_is_to_be_asked_the_first_denial_ends_the_run() {
    for api in BOTH {
        let args =
            ["--permission-mode", "dontAsk", "--allowedTools", "Bash(echo:*)", "--output-format", "json"];
        let outcome =
            story(api, &args).reply(asks(api, "", &[ECHO, WRITE, ("call_2", "Bash", ECHO.2)])).run();
        let why = "a call of Write was denied, which ends the run (--permission-mode dontAsk): \
                   it writes a file; it needs --allowedTools \"Edit(/a.txt)\"";
        outcome.code(11).stderr(&format!("cotter: {why}\n")).request_count(1).no_file("a.txt");
        let result = outcome.json();
        let error = json!({"class": "permission", "code": 11, "message": why});
        outcome.equal(&result["error"], &error).equal(&result["subtype"], &json!("error_during_execution"));
        outcome.equal(result["permission_denials"].as_array().unwrap().len(), 1);
        // Each call has its result in what is kept, and none was run behind the denial.
        let sessions = outcome.folder.parent().unwrap().join("home/.local/state/cotter/sessions");
        let file = fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
        let kept = fs::read_to_string(file).unwrap();
        assert!(kept.contains("permission denied, the call was not run"), "{kept}");
        assert!(kept.contains("not run: a call before it ended the run"), "{kept}");
        assert_eq!(kept.matches(r#""text":"hi""#).count(), 1, "{kept}");
        run(api, &["--permission-mode", "dontAsk"], &[WRITE, ECHO]).code(0).file("a.txt", "one\n");
    }
}

#[test]
fn a_plan_changes_nothing() {
    let edit = ("call_e", "Edit", r#"{"file_path": "b", "old_string": "two", "new_string": "2"}"#);
    for api in BOTH {
        let args = ["--permission-mode", "plan", "--allowedTools", "Write,Edit,Bash"];
        let outcome = given(story(api, &args).files(&[("b", "two")]), api, &[WRITE, edit, ECHO]);
        outcome.code(0).no_file("a.txt").file("b", "two");
        let plan = denied("this run only plans (--permission-mode plan) and changes nothing");
        outcome.equal(told(api, &outcome), vec![plan.clone(), plan, ok("hi")]);
    }
}

#[test]
fn accepted_edits_stay_in_the_workspace() {
    let place = new_folder("elsewhere", &["x"]);
    let elsewhere = json!({"file_path": place.join("x/a"), "content": "x"}).to_string();
    let link = json!({"command": format!("ln -s {} link", place.join("x").display())}).to_string();
    let touch = r#"{"command": "touch b"}"#;
    let into_file = r#"{"command": "echo hi > c"}"#;
    for api in BOTH {
        let args = ["--permission-mode", "acceptEdits", "--allowedTools", "Bash(echo:*)", "Bash(ln:*)"];
        let calls = [
            ("call_0", "Bash", link.as_str()),
            WRITE,
            ("call_1", "Write", elsewhere.as_str()),
            ("call_2", "Write", r#"{"file_path": "../a", "content": "x"}"#),
            ("call_3", "Bash", touch),
            ("call_4", "Bash", into_file),
            ("call_5", "Write", r#"{"file_path": "link/a", "content": "x"}"#),
        ];
        let outcome = run(api, &args, &calls);
        outcome.code(0).file("a.txt", "one\n").no_file("../a").no_file("b").file("c", "hi\n");
        assert!(!place.join("x/a").exists());
        let denied: Vec<bool> = told(api, &outcome).into_iter().map(|(_, is_error)| is_error).collect();
        outcome.equal(denied, vec![false, false, true, true, true, false, true]);
    }
    fs::remove_dir_all(&place).unwrap();
}

#[test]
fn all_may_run_where_permissions_are_skipped() {
    for api in BOTH {
        for args in [&["--dangerously-skip-permissions"][..], &["--permission-mode", "bypassPermissions"]] {
            let args = [args, &["--allowedTools", "Read"]].concat();
            let outcome = run(api, &args, &[WRITE, ECHO]);
            outcome.code(0).stderr("").file("a.txt", "one\n");
            outcome.equal(told(api, &outcome), vec![ok("created a.txt (4 bytes)"), ok("hi")]);
        }
    }
}

/// The implied mode beat the typed one, and a run that was to plan wrote.
#[test]
fn a_mode_that_is_typed_beats_the_one_that_skipping_permissions_implies() {
    let plan = ["--permission-mode", "plan"];
    let skip = ["--dangerously-skip-permissions"];
    let touch = ("call_b", "Bash", r#"{"command": "touch b"}"#);
    let written = |config: &[&str], args: &[&str]| {
        let story = story(Api::OpenAi, args).file("flags", config.join("\n"));
        let story = if config.is_empty() { story } else { story.env("COTTER_CONFIG", "flags") };
        let outcome = given(story, Api::OpenAi, &[WRITE, touch]);
        outcome.code(0);
        (outcome.folder.join("a.txt").exists(), outcome.folder.join("b").exists())
    };
    let (all, none) = ((true, true), (false, false));
    assert_eq!(written(&[], &[plan, [skip[0], "--quiet"]].concat()), none);
    assert_eq!(written(&[], &[&skip[..], &plan].concat()), none);
    assert_eq!(written(&[], &[&skip[..], &plan, &["--sandbox", "off"]].concat()), none);
    assert_eq!(written(&[], &[skip[0], "--permission-mode", "acceptEdits"]), (true, false));
    assert_eq!(written(&[], &[skip[0], "--permission-mode", "default"]), none, "there is no sandbox");
    // What is typed beats what is in the file of defaults, in both directions.
    assert_eq!(written(&["--dangerously-skip-permissions"], &plan), none);
    assert_eq!(written(&["--permission-mode=plan"], &skip), all);
    assert_eq!(written(&["--permission-mode=plan"], &["--permission-mode", "default"]), all);
    assert_eq!(written(&["--permission-mode=plan", "--dangerously-skip-permissions"], &[]), none);
}

/// As scripts written for `claude` have them.
#[test]
fn rules_come_as_several_arguments_before_the_prompt() {
    let lists: [&[&str]; 3] = [
        &["--allowedTools", "Read", "Bash(echo hi)", "Edit(/a.txt)", "My prompt.", "-p"],
        &["-p", "--allowed-tools", "Read,Bash(echo hi) Edit(/a.txt)", "My prompt."],
        &["-p", "--allowedTools=Read", "--allowedTools", "Bash(echo hi)", "Edit(/a.txt)", "--", "My prompt."],
    ];
    for api in BOTH {
        for list in lists {
            let story = Story::new("rules").api(api).args(list);
            let outcome = given(story, api, &[WRITE, ECHO, ("call_l", "Bash", r#"{"command": "ls"}"#)]);
            let line = "cotter: Bash was denied: it runs a command that no rule allows; it needs --allowedTools \"Bash(ls:*)\"\n";
            outcome.code(0).stderr(line).file("a.txt", "one\n");
            assert!(outcome.sent(1).contains("My prompt."));
            let denied: Vec<bool> = told(api, &outcome).into_iter().map(|(_, is_error)| is_error).collect();
            outcome.equal(denied, vec![false, false, true]);
        }
    }
}

#[test]
fn rules_about_tools_that_are_not_there_are_named_and_change_nothing() {
    let args = ["--allowedTools", "WebFetch,Read,mcp__a__b", "TodoWrite(x)", "--disallowedTools", "Task"];
    let outcome = run(Api::OpenAi, &args, &[WRITE]);
    outcome.code(0).no_file("a.txt").stderr(
        "cotter: --allowedTools: there is no tool TodoWrite, WebFetch, mcp__a__b, so rules about it have no effect\n\
         cotter: --disallowedTools: there is no tool Task, so rules about it have no effect\n\
         cotter: Write was denied: it writes a file; it needs --allowedTools \"Edit(/a.txt)\"\n",
    );
    run(Api::OpenAi, &["-q", "--disallowedTools", "Task"], &[WRITE]).code(0).stderr("");
}

#[test]
fn a_rule_that_is_none_is_refused_by_name() {
    let cases = [
        ("--allowedTools", "Bash(git log", "its parenthesis is not closed"),
        ("--disallowed-tools", "Read,Edit()", "its parentheses are empty"),
        ("--disallowedTools", "Edit(!a)", "a rule cannot be negated"),
    ];
    for (flag, list, why) in cases {
        let outcome = Story::new("no rule").args(&["-p", "Hi.", flag, list]).run();
        let flag = if flag == "--disallowed-tools" { "--disallowedTools" } else { flag };
        let rule = list.trim_start_matches("Read,");
        outcome.code(2).stdout("").request_count(0).stderr(&format!(
            "cotter: {flag}: the rule \"{rule}\" cannot be used: {why}: a rule is Tool or Tool(specifier), \
             such as \"Bash(git log:*)\" or \"Edit(src/**)\"\n"
        ));
    }
    let outcome = Story::new("no mode").args(&["-p", "Hi.", "--permission-mode", "yolo"]).run();
    outcome.code(2).stderr(
        "cotter: --permission-mode is one of default, acceptEdits, plan, dontAsk, bypassPermissions, not \"yolo\"\n",
    );
}

#[test]
fn a_single_step_runs_nothing_that_is_denied() {
    for api in BOTH {
        for (mode, code) in [("default", 1), ("dontAsk", 11)] {
            let args = ["--single-step", "--permission-mode", mode, "--disallowedTools", "Read(*.txt)"];
            let calls: [Call; 1] = [("call_r", "Read", r#"{"file_path": "notes.txt"}"#)];
            let story = story(api, &args).files(&[("notes.txt", "1932")]).reply(asks(api, "", &calls));
            story
                .run()
                .code(code)
                .stdout("")
                .stderr_has("the rule \"Read(*.txt)\" of --disallowedTools forbids it");
        }
    }
}

/// Numbers that look random and are the same in every run.
fn numbers(mut state: u64) -> impl FnMut(usize) -> usize {
    move |limit| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % limit as u64).unwrap()
    }
}

/// What really runs is what the shell says, not what a reader of command lines believes: command lines made
/// at random are given to both, with programs in PATH that note that they ran.
#[test]
fn a_shell_runs_nothing_but_what_the_rule_allows() {
    const PIECES: [&str; 36] = [
        "git",
        "log",
        " git log",
        "rm",
        " rm x",
        " ",
        " ",
        " ",
        ";",
        "&",
        "|",
        "&&",
        "||",
        "\n",
        "'",
        "\"",
        "\\",
        "$",
        "$(",
        "`",
        ")",
        "(",
        "{",
        "}",
        "<",
        ">",
        "2>&1",
        ">/dev/null",
        "&>/dev/null ",
        " x",
        "#",
        "=",
        "A=rm ",
        "!",
        "-c",
        "*",
    ];
    let place = new_folder("programs", &["bin"]);
    let bin = place.join("bin");
    for shell in ["bash", "sh"] {
        let path = std::env::var_os("PATH").unwrap();
        let found = std::env::split_paths(&path).map(|folder| folder.join(shell)).find(|file| file.is_file());
        if let Some(found) = found {
            fs::create_dir_all(bin.join(shell)).unwrap();
            symlink(found, bin.join(shell).join(shell)).unwrap();
        }
    }
    for folder in fs::read_dir(&bin).unwrap() {
        let folder = folder.unwrap().path();
        for name in ["git", "rm", "log", "x", "A", "c"] {
            let program = folder.join(name);
            fs::write(&program, format!("#!/bin/sh\necho {name} \"$1\" >> notes\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut below = numbers(0xbeef);
        let commands: Vec<String> = (0..400)
            .map(|_| {
                let mut command = if below(4) == 0 { String::new() } else { "git log ".to_owned() };
                (0..below(6)).for_each(|_| command.push_str(PIECES[below(PIECES.len())]));
                json!({ "command": command }).to_string()
            })
            .collect();
        let ids: Vec<String> = (0..commands.len()).map(|number| format!("call_{number}")).collect();
        let calls: Vec<Call> =
            ids.iter().zip(&commands).map(|(id, it)| (id.as_str(), "Bash", it.as_str())).collect();
        let story = story(Api::OpenAi, &["--allowedTools", "Bash(git log:*)"]);
        let outcome = given(story.env("PATH", folder.to_str().unwrap()), Api::OpenAi, &calls);
        outcome.code(0);
        let ran = fs::read_to_string(outcome.folder.join("notes")).unwrap();
        assert!(ran.lines().count() > 50, "{} ran", ran.lines().count());
        for line in ran.lines() {
            assert_eq!(line, "git log", "{}", outcome.report());
        }
    }
    fs::remove_dir_all(&place).unwrap();
}
