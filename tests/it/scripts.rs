//! Scripts and jobs written for `claude -p`, as people have published them, run on cotter with nothing changed but
//! the command's name. What stands around each command is of the tests' own wording, and does what theirs does.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::check::Api;
use crate::containment::has_git;
use crate::server::{Reply, Request, Server};
use crate::stage::{Ran, Stage, requests, run};
use crate::talk::{Call, answer, asks};

/// The filters that the scripts give to jq, which is not on every machine.
const JQ: &str = r#"#!/usr/bin/env python3
import json, sys

wanted = sys.argv[-1]
texts, rest = [], sys.stdin.read().lstrip()
while rest:
    value, end = json.JSONDecoder().raw_decode(rest)
    rest = rest[end:].lstrip()
    if wanted.startswith("select("):
        event = value.get("event", {})
        if value["type"] == "stream_event" and event.get("delta", {}).get("type") == "text_delta":
            texts.append(event["delta"]["text"])
    else:
        found = value[wanted.removeprefix(".")]
        texts.append(found if "-r" in sys.argv and isinstance(found, str) else json.dumps(found))
print(*texts, sep="" if "-rj" in sys.argv else "\n", end="" if "-rj" in sys.argv else "\n")
"#;

/// A script, with `cotter` and `jq` where `PATH` leads, a key, and a server that gives these replies.
struct Script {
    stage: Stage,
    server: Server,
}

impl Script {
    fn new(name: &str, replies: Vec<Reply>) -> Script {
        let stage = Stage::new(name);
        let programs = stage.root().join("bin");
        fs::create_dir(&programs).unwrap();
        symlink(crate::story::program(), programs.join("cotter")).unwrap();
        fs::write(programs.join("jq"), JQ).unwrap();
        fs::set_permissions(programs.join("jq"), fs::Permissions::from_mode(0o755)).unwrap();
        Script { stage, server: Server::start(replies) }
    }

    /// Runs the script's text with these arguments to its end.
    fn run(self, text: &str, arguments: &[&str]) -> Played {
        let mut command: Command = self.stage.shell(self.server.port(), text);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.stage.root().join("bin");
        let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&path))).unwrap();
        let url = format!("http://127.0.0.1:{}", self.server.port());
        command.arg("script").args(arguments).env("PATH", path);
        command.env("ANTHROPIC_API_KEY", "sk-ant-test-key").env("ANTHROPIC_BASE_URL", url);
        let ran = run(&mut command);
        Played { ran, requests: requests(self.server), stage: self.stage }
    }
}

/// What came of a script.
struct Played {
    ran: Ran,
    requests: Vec<Request>,
    stage: Stage,
}

impl Played {
    fn body(&self, number: usize) -> Value {
        self.requests[number - 1].json()
    }

    /// The texts of the first message of the n-th request, as one.
    fn prompt(&self, number: usize) -> String {
        let body = self.body(number);
        let content = &body["messages"][0]["content"];
        match content.as_array() {
            Some(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            None => content.as_str().unwrap_or_default().to_owned(),
        }
    }

    /// The results in the last message of the n-th request, each with whether it is an error.
    fn results(&self, number: usize) -> Vec<(String, bool)> {
        let body = self.body(number);
        let last = body["messages"].as_array().and_then(|messages| messages.last()).expect("a message");
        let parts = last["content"].as_array().expect("a list of results");
        let text = |content: &Value| match content.as_array() {
            Some(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            None => content.as_str().unwrap_or_default().to_owned(),
        };
        let results = parts.iter().filter(|part| part["type"] == "tool_result");
        results.map(|part| (text(&part["content"]), part["is_error"] == json!(true))).collect()
    }
}

fn says(text: &str) -> Reply {
    answer(Api::Anthropic, text)
}

fn calls(calls: &[Call]) -> Reply {
    asks(Api::Anthropic, "", calls)
}

const REPOSITORY: &str = "
set -eu
git init -q -b main
git config user.name Tester
git config user.email tester@example.org
echo 'one' >notes.txt
git add notes.txt
git commit -q -m 'Begin'
";

/// A launcher for quick questions: github.com/joshmu/dotfiles, scripts/raycast-claude.sh.
#[test]
fn a_launcher_of_quick_questions_prints_the_result_alone() {
    let script = Script::new(
        "script-launcher",
        vec![calls(&[("a", "Write", r#"{"file_path":"x","content":"y"}"#)]), says("It is 42.")],
    );
    let played = script.run(
        r#"
timeout 30s cotter -p "$1" \
  --model haiku \
  --allowedTools "Read" "Grep" "Glob" \
  --disallowedTools "Write" "Edit" "MultiEdit" "Bash" "TodoWrite" \
  --append-system-prompt "Respond in a concise manner. Prefer concision over grammar." \
  --output-format json | jq -r '.result'
"#,
        &["What is the answer?"],
    );
    played.ran.code(0).stdout("It is 42.\n");
    let body = played.body(1);
    assert_eq!(played.prompt(1), "What is the answer?");
    assert_eq!(body["model"], "claude-haiku-5-5");
    let system = body["system"].to_string();
    assert!(system.contains("Respond in a concise manner. Prefer concision over grammar."), "{system}");
    let offered: Vec<&str> =
        body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(
        offered.contains(&"Read") && !offered.contains(&"Write") && !offered.contains(&"Bash"),
        "{offered:?}"
    );
    assert!(played.results(2)[0].1, "a call of what was taken away is an error");
    assert!(!played.stage.path("x").exists());
}

/// A review of a branch: github.com/forest6511/claude-code-cookbook, ch16/recipe-98/scripts/review-changes.sh.
#[test]
fn a_review_of_a_branch_goes_into_a_file() {
    if !has_git("a_review_of_a_branch_goes_into_a_file") {
        return;
    }
    let script = Script::new("script-review", vec![says("notes.txt:2: the line says nothing.")]);
    let text = format!(
        r#"{REPOSITORY}
git checkout -q -b topic
echo 'two' >>notes.txt
git commit -q -a -m 'Go on'
BRANCH=$(git branch --show-current)
[ -n "$(git diff main..."$BRANCH" --name-only)" ] || exit 9
git diff main..."$BRANCH" | cotter -p \
  "Review this diff for bugs, security issues,
   and performance problems. Report each issue
   with file name and line number." \
  --output-format text \
  --max-turns 5 > review.txt
echo "Review saved to review.txt"
"#
    );
    let played = script.run(&text, &[]);
    played.ran.code(0).stdout("Review saved to review.txt\n");
    assert_eq!(played.stage.read("review.txt"), "notes.txt:2: the line says nothing.\n");
    let prompt = played.prompt(1);
    assert!(
        prompt.starts_with("Review this diff for bugs, security issues,\n   and performance"),
        "{prompt}"
    );
    assert!(prompt.contains("\n+two\n"), "{prompt}");
}

/// A job of GitLab's CI: code.claude.com/docs/en/gitlab-ci-cd.
#[test]
fn a_job_of_gitlab_edits_and_runs_what_its_rules_allow() {
    let script = Script::new(
        "script-gitlab",
        vec![
            calls(&[("a", "Read", r#"{"file_path":"notes.txt"}"#)]),
            calls(&[
                ("b", "Edit", r#"{"file_path":"notes.txt","old_string":"one","new_string":"two"}"#),
                ("c", "Bash", r#"{"command":"cat notes.txt"}"#),
            ]),
            says("Done as asked."),
        ],
    );
    let played = script.run(
        r#"
set -eu
echo one >notes.txt
AI_FLOW_INPUT="Say two in place of one"
cotter \
  -p "${AI_FLOW_INPUT:-'Review this MR and implement the requested changes'}" \
  --permission-mode acceptEdits \
  --allowedTools "Bash Read Edit Write mcp__gitlab" \
  --debug
"#,
        &[],
    );
    played.ran.code(0).stdout("Done as asked.\n");
    assert!(played.ran.stderr.contains("there is no tool mcp__gitlab"), "{}", played.ran.stderr);
    assert_eq!(played.prompt(1), "Say two in place of one");
    assert_eq!(played.stage.read("notes.txt"), "two\n");
    let results = played.results(3);
    assert!(results.iter().all(|(_, is_error)| !is_error), "{results:?}");
    assert!(results[1].0.contains("two"), "{results:?}");
}

/// A commit of what is staged, with the commands that it takes and no others: code.claude.com/docs/en/headless.
#[test]
fn a_commit_is_made_by_the_git_commands_that_are_allowed_and_no_others() {
    if !has_git("a_commit_is_made_by_the_git_commands_that_are_allowed_and_no_others") {
        return;
    }
    let script = Script::new(
        "script-commit",
        vec![
            calls(&[("a", "Bash", r#"{"command":"git diff --staged"}"#)]),
            calls(&[
                ("b", "Bash", r#"{"command":"git commit -q -m 'Say two'"}"#),
                ("c", "Bash", r#"{"command":"git push origin main"}"#),
                ("d", "Bash", r#"{"command":"git log --oneline | sh"}"#),
            ]),
            says("Committed."),
        ],
    );
    let text = format!(
        r#"{REPOSITORY}
echo 'two' >>notes.txt
git add notes.txt
cotter -p "Look at my staged changes and create an appropriate commit" \
  --allowedTools "Bash(git diff *),Bash(git log *),Bash(git status *),Bash(git commit *)"
git log --format=%s -1
git status --short
"#
    );
    let played = script.run(&text, &[]);
    played.ran.code(0).stdout("Committed.\nSay two\n");
    assert!(played.results(2)[0].0.contains("+two"), "{:?}", played.results(2));
    let results = played.results(3);
    assert_eq!(results.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [false, true, true]);
    assert!(results[1].0.starts_with("permission denied"), "{results:?}");
}

/// A review of a pull request's diff, which comes from another program: code.claude.com/docs/en/headless.
#[test]
fn a_review_of_a_pull_request_takes_its_diff_as_the_prompt() {
    let script = Script::new("script-pull-request", vec![says("No \"holes\" found.")]);
    let played = script.run(
        r#"
set -eu
gh() { printf 'diff of %s\n+ eval(input)\n' "$3"; }
gh pr diff "$1" | cotter -p \
  --append-system-prompt "You are a security engineer. Review for vulnerabilities." \
  --output-format json >review.json
jq -r '.result' <review.json
jq '.is_error' <review.json
"#,
        &["123"],
    );
    played.ran.code(0).stdout("No \"holes\" found.\nfalse\n");
    assert_eq!(played.prompt(1).trim_end(), "diff of 123\n+ eval(input)");
    let system = played.body(1)["system"].to_string();
    assert!(system.contains("You are a security engineer. Review for vulnerabilities."), "{system}");
}

/// A second opinion that may look and run, and change nothing: github.com/xihuai18/arxiv-sanity-x,
/// .skills/claude-cli.md.
#[test]
fn a_second_opinion_may_run_commands_and_gets_no_tool_that_writes() {
    if !has_git("a_second_opinion_may_run_commands_and_gets_no_tool_that_writes") {
        return;
    }
    let script = Script::new(
        "script-opinion",
        vec![calls(&[("a", "Bash", r#"{"command":"git log --format=%s"}"#)]), says("Looks good.")],
    );
    let text = format!(
        r#"{REPOSITORY}
echo 'two' >>notes.txt
git commit -q -a -m 'Go on'
git diff HEAD~1 | cotter -p "Review this diff for bugs and improvements" --allowedTools "Read,Bash" --disallowedTools "Write,Edit"
"#
    );
    let played = script.run(&text, &[]);
    played.ran.code(0).stdout("Looks good.\n");
    assert_eq!(played.results(2)[0], ("Go on\nBegin".to_owned(), false));
    let tools = played.body(1)["tools"].to_string();
    assert!(!tools.contains("\"Write\"") && !tools.contains("\"Edit\""), "{tools}");
}

/// One run for each file of a list: code.claude.com/docs/en/best-practices.
#[test]
fn a_list_of_files_is_worked_off_one_run_for_each() {
    let edit = |id, file| {
        let arguments = json!({"file_path": file, "old_string": "react", "new_string": "vue"}).to_string();
        calls(&[(id, "Edit", &arguments)])
    };
    let script = Script::new(
        "script-files",
        vec![edit("a", "a.js"), says("OK"), edit("b", "b.js"), says("OK"), says("FAIL")],
    );
    let played = script.run(
        r#"
for name in a b c; do echo "import react" >$name.js; echo $name.js; done >files.txt
for file in $(cat files.txt); do
  cotter -p "Migrate $file from React to Vue. Return OK or FAIL." \
    --allowedTools "Edit,Bash(git commit *)"
done
"#,
        &[],
    );
    played.ran.code(0).stdout("OK\nOK\nFAIL\n");
    let files = ["a.js", "b.js", "c.js"].map(|name| played.stage.read(name));
    assert_eq!(files, ["import vue\n", "import vue\n", "import react\n"]);
    let prompts = [1, 3, 5].map(|number| played.prompt(number));
    assert_eq!(prompts[2], "Migrate c.js from React to Vue. Return OK or FAIL.");
    assert_eq!(played.requests.len(), 5);
}

/// A loop that feeds a prompt file and keeps both streams in one log: github.com/Isaac-Hammett/gymnastics-graphics,
/// docs/PRD-OBS-01-StateSync/OBS-01-state-sync-run.sh.
#[test]
fn a_log_of_both_streams_holds_nothing_but_events() {
    let script = Script::new(
        "script-log",
        vec![calls(&[("a", "Bash", r#"{"command":"echo made >made.txt"}"#)]), says("Made.")],
    );
    let played = script.run(
        r#"
set -eu
SCRIPT_DIR=.
LOG_FILE="$SCRIPT_DIR/logs/claude-output.jsonl"
mkdir -p "$SCRIPT_DIR/logs"
echo "Make it." >prompt-OBS-01-state-sync.md
cat "$SCRIPT_DIR/prompt-OBS-01-state-sync.md" | \
    cotter -p --dangerously-skip-permissions --verbose --output-format stream-json 2>&1 | \
    tee -a "$LOG_FILE"
"#,
        &[],
    );
    played.ran.code(0);
    assert_eq!(played.stage.read("made.txt"), "made\n");
    assert_eq!(played.prompt(1).trim_end(), "Make it.");
    let log = played.stage.read("logs/claude-output.jsonl");
    assert_eq!(log, played.ran.text());
    let kinds: Vec<String> =
        log.lines().map(|line| event(line)["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"]);
}

/// The text while it grows: code.claude.com/docs/en/headless.
#[test]
fn the_text_is_taken_from_the_events_of_its_growth() {
    let script = Script::new("script-growth", vec![says("Roses are red,\nviolets are blue.")]);
    let played = script.run(
        r#"
cotter -p "Write a poem" --output-format stream-json --verbose --include-partial-messages | \
  jq -rj 'select(.type == "stream_event" and .event.delta.type? == "text_delta") | .event.delta.text'
"#,
        &[],
    );
    played.ran.code(0).stdout("Roses are red,\nviolets are blue.");
}

/// An answer in a form: code.claude.com/docs/en/headless.
#[test]
fn the_names_of_functions_are_had_as_a_list() {
    let script = Script::new("script-schema", vec![says(r#"{"functions": ["login", "logout"]}"#)]);
    let played = script.run(
        r#"
cotter -p "Extract the main function names from auth.py" \
  --output-format json \
  --json-schema '{"type":"object","properties":{"functions":{"type":"array","items":{"type":"string"}}},"required":["functions"]}' \
  | jq '.structured_output'
"#,
        &[],
    );
    played.ran.code(0).stdout("{\"functions\": [\"login\", \"logout\"]}\n");
}

/// The id of a first run, by which a second one goes on: code.claude.com/docs/en/headless.
#[test]
fn a_second_run_resumes_the_first_by_the_id_in_its_json() {
    let script = Script::new("script-resume", vec![says("I have begun."), says("And here is the rest.")]);
    let played = script.run(
        r#"
set -eu
session_id=$(cotter -p "Start a review" --output-format json | jq -r '.session_id')
cotter -p "Continue that review" --resume "$session_id"
"#,
        &[],
    );
    played.ran.code(0).stdout("And here is the rest.\n");
    let body = played.body(2);
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().filter_map(|message| message["role"].as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(played.prompt(2), "Start a review");
    assert!(body["messages"][2].to_string().contains("Continue that review"), "{body}");
}

/// A loop that goes on with the folder's last conversation and keeps a log: github.com/UltimatePea/chinese-ocaml,
/// claude.sh.
#[test]
fn a_loop_goes_on_with_the_last_conversation_and_logs_its_events() {
    let script = Script::new("script-loop", vec![says("Begun."), says("One more."), says("And one more.")]);
    let played = script.run(
        r#"
cotter "Read AGENTS.md and start." -p >first.txt
for round in 1 2; do
  echo "round $round" >>claude.log
  cotter "Read AGENTS.md and start or continue working." -p --verbose --continue --output-format stream-json | tee -a claude.log
done
"#,
        &[],
    );
    played.ran.code(0);
    assert_eq!(played.body(3)["messages"].as_array().unwrap().len(), 5);
    let log = played.stage.read("claude.log");
    let events = log.lines().filter(|line| !line.starts_with("round ")).map(event).collect::<Vec<Value>>();
    let ends: Vec<&str> =
        events.iter().filter(|it| it["type"] == "result").filter_map(|it| it["result"].as_str()).collect();
    assert_eq!(ends, ["One more.", "And one more."]);
    assert_eq!(events[0]["session_id"], events.last().unwrap()["session_id"]);
}

/// A message as a JSON line: docs.anthropic.com/en/docs/claude-code/sdk.
#[test]
fn a_message_is_a_json_line_on_standard_input() {
    let script = Script::new("script-input", vec![says("It is code.")]);
    let played = script.run(
        r#"
echo '{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Explain this code"}]}}' | cotter -p --output-format=stream-json --input-format=stream-json --verbose
"#,
        &[],
    );
    played.ran.code(0);
    assert_eq!(played.prompt(1), "Explain this code");
    let events: Vec<Value> = played.ran.text().lines().map(event).collect();
    assert_eq!(events[0]["subtype"], "init");
    assert_eq!(events.last().unwrap()["result"], "It is code.");
}

fn event(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}
