//! Skills: what the model is told of them and when, how a prompt uses them, what their tools may do, and which
//! files count as skills at all.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::check::Api;
use crate::server::Server;
use crate::stage::{Stage, Terminal, calls, requests, run, says};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, Call, TOOLS, answer, asks, last_text, results};

const LINT: &str =
    "---\nname: lint\ndescription: Checks the style. Use before a commit.\n---\n\nRun the linter.\n";
const PLAIN: &str = "---\ndescription: Counts lines.\n---\nCount $ARGUMENTS.\n";

fn story(api: Api, prompt: &str) -> Story {
    Story::new("skills").api(api).args(&["-p", prompt])
}

/// The description of the tool by which the model uses skills.
fn told_at_start(api: Api, body: &Value) -> Option<String> {
    let tools = body["tools"].as_array().expect("there are tools");
    let function = |tool: &Value| match api {
        Api::Anthropic => tool.clone(),
        _ => tool["function"].clone(),
    };
    let tool = tools.iter().map(function).find(|tool| tool["name"] == "Skill")?;
    Some(tool["description"].as_str().expect("a description").to_owned())
}

/// The list of skills in a first request.
fn listed(outcome: &Outcome) -> String {
    let told = told_at_start(Api::OpenAi, &outcome.body(1)).unwrap_or_default();
    told.split_once('\n').map_or_else(String::new, |(_, list)| list.to_owned())
}

fn told(api: Api, body: &Value) -> Vec<(String, bool)> {
    results(api, body).into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

fn ok(text: &str) -> (String, bool) {
    (text.to_owned(), false)
}

fn error(text: &str) -> (String, bool) {
    (text.to_owned(), true)
}

fn denied(why: &str) -> (String, bool) {
    error(&format!(
        "permission denied, the call was not run: {why}. Do not try to get the same done in another way: \
         go on without it, or say what is missing."
    ))
}

/// What the model reads of a skill in the folder `.claude/skills`.
fn used(name: &str, body: &str) -> String {
    used_in(".claude/skills", name, body)
}

fn used_in(folder: &str, name: &str, body: &str) -> String {
    format!(
        "The skill \"{name}\" lies in {folder}/{name}, which paths in it are relative to; commands run in the \
         workspace.\n\n{body}"
    )
}

/// The prompt that the model reads where this is typed, and what was said on standard error.
fn prompted(typed: &str, files: &[(&str, &str)]) -> (String, String) {
    let outcome = story(Api::OpenAi, typed).files(files).reply(answer(Api::OpenAi, "Done.")).run();
    outcome.code(0).stdout("Done.\n");
    (last_text(&outcome.body(1)), outcome.stderr.clone())
}

#[test]
fn a_skill_is_told_by_its_description_and_its_body_only_when_it_is_used() {
    for api in BOTH {
        let outcome = story(api, "Tidy up.")
            .files(&[(".claude/skills/lint/SKILL.md", LINT), (".agents/skills/count/SKILL.md", PLAIN)])
            .reply(asks(api, "", &[("call_1", "Skill", r#"{"name": "lint"}"#)]))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).stdout("Done.\n").stderr("");
        let expected = "Gives you the instructions of a skill, which you then follow. Call it before anything else \
            where the task fits one of these:\n- lint: Checks the style. Use before a commit.\n- count: Counts lines.";
        outcome.equal(told_at_start(api, &outcome.body(1)).as_deref(), Some(expected));
        let first = outcome.sent(1);
        outcome.equal((first.contains("Run the linter"), first.contains("Count $ARG")), (false, false));
        outcome.equal(told(api, &outcome.body(2)), vec![ok(&used("lint", "Run the linter."))]);
        outcome.equal(outcome.sent(2).contains("Count "), false);
    }
}

#[test]
fn the_tool_for_skills_is_there_only_where_the_model_may_use_one() {
    let hidden = "---\ndescription: Deploys.\ndisable-model-invocation: true\n---\nDeploy.";
    let offered = |args: &[&str], files: &[(&str, &str)]| {
        let story = story(Api::OpenAi, "Hello.").args(args).files(files);
        let outcome = story.reply(answer(Api::OpenAi, "Hi.")).run();
        outcome.code(0).stderr("");
        let body = outcome.body(1);
        let tools = body["tools"].as_array().into_iter().flatten();
        tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let lint = [(".claude/skills/lint/SKILL.md", LINT)];
    let all: Vec<&str> = TOOLS.iter().copied().chain(["Skill"]).collect();
    assert_eq!(offered(&[], &[]), TOOLS);
    assert_eq!(offered(&[], &[(".claude/skills/deploy/SKILL.md", hidden)]), TOOLS);
    assert_eq!(offered(&[], &lint), all);
    assert_eq!(offered(&["--tools", "Read,Skill"], &lint), ["Read", "Skill"]);
    assert_eq!(offered(&["--tools", "Read,Skill"], &[]), ["Read"]);
    assert_eq!(offered(&["--tools", "Read"], &lint), ["Read"]);
    assert_eq!(offered(&["--allowedTools", "Skill(lint) Bash(ls:*)"], &lint), all);
    for without in [
        &["--bare"][..],
        &["--setting-sources", "user"],
        &["--setting-sources", ""],
        &["--disable-slash-commands"],
        &["--disallowedTools", "Skill"],
        &["--disallowedTools", "Skill(lint)"],
        &["--disallowedTools", "Skill(lin*:*)"],
    ] {
        assert_eq!(offered(without, &lint), TOOLS, "{without:?}");
    }
}

#[test]
fn the_list_of_tools_has_the_skills_too() {
    let outcome =
        story(Api::OpenAi, "").files(&[(".claude/skills/lint/SKILL.md", LINT)]).args(&["--list-tools"]).run();
    let last: Value =
        serde_json::from_slice(outcome.stdout.split(|byte| *byte == b'\n').rev().nth(1).unwrap()).unwrap();
    outcome.code(0).equal(&last["name"], &json!("Skill"));
    outcome.equal(last["description"].as_str().unwrap().contains("\n- lint: Checks the style."), true);
}

#[test]
fn a_call_may_have_the_names_of_arguments_that_claude_has() {
    for api in BOTH {
        let calls: [Call; 4] = [
            ("call_1", "Skill", r#"{"skill": "count", "args": "a.txt"}"#),
            ("call_2", "Skill", r#"{"command": "/count"}"#),
            ("call_3", "Skill", r#"{"name": "nothing"}"#),
            ("call_4", "Skill", r#"{"arguments": "x"}"#),
        ];
        let outcome = story(api, "Count.")
            .files(&[(".claude/skills/count/SKILL.md", PLAIN), (".claude/skills/lint/SKILL.md", LINT)])
            .reply(asks(api, "", &calls))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0);
        let told = told(api, &outcome.body(2));
        outcome.equal(&told[0], &ok(&used("count", "Count a.txt.")));
        outcome.equal(&told[1], &ok(&used("count", "Count .")));
        outcome.equal(&told[2], &error("there is no skill \"nothing\": the skills are count, lint"));
        outcome.equal(told[3].0.starts_with("Skill needs \"name\"; the schema"), true);
    }
}

#[test]
fn a_prompt_begins_with_the_skill_and_its_arguments() {
    let migrate =
        "---\narguments: [part, from]\n---\n$part: $0 from $ARGUMENTS[1] to $2, \\$1.00 ($ARGUMENTS) $7";
    let files = [
        (".claude/skills/count/SKILL.md", PLAIN),
        (".claude/skills/lint/SKILL.md", LINT),
        (".claude/skills/migrate/SKILL.md", migrate),
    ];
    let cases = [
        ("/count a b", used("count", "Count a b.")),
        ("  /count\n\na\nb\n", used("count", "Count a\nb.")),
        ("/count", used("count", "Count .")),
        ("/lint src \"a b\"", used("lint", "Run the linter.\n\nARGUMENTS: src \"a b\"")),
        (
            "/migrate 'Search Bar' React Vue",
            used("migrate", "Search Bar: Search Bar from React to Vue, $1.00 ('Search Bar' React Vue) $7"),
        ),
        (
            "/count /lint x /nothing",
            format!(
                "{}\n\n{}",
                used("count", "Count x /nothing."),
                used("lint", "Run the linter.\n\nARGUMENTS: x /nothing")
            ),
        ),
        ("Use /count a", "Use /count a".to_owned()),
        ("/count/lint", "/count/lint".to_owned()),
    ];
    for (typed, expected) in cases {
        assert_eq!(prompted(typed, &files), (expected, String::new()), "{typed}");
    }
}

#[test]
fn only_the_bodies_are_sent_that_a_prompt_asks_for() {
    for api in BOTH {
        let outcome = story(api, "/count a")
            .files(&[(".claude/skills/count/SKILL.md", PLAIN), (".claude/skills/lint/SKILL.md", LINT)])
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).request_count(1);
        outcome.equal(last_text(&outcome.body(1)), used("count", "Count a."));
        outcome.equal(outcome.sent(1).contains("Run the linter"), false);
    }
}

#[test]
fn what_comes_on_standard_input_is_data_or_the_prompt() {
    let files = [(".claude/skills/count/SKILL.md", PLAIN)];
    let beside = story(Api::OpenAi, "/count these").files(&files).stdin("/count $ARGUMENTS\n");
    let beside = beside.reply(answer(Api::OpenAi, "Done.")).run();
    let expected = format!("{}\n\n<stdin>\n/count $ARGUMENTS\n</stdin>", used("count", "Count these."));
    beside.code(0).equal(last_text(&beside.body(1)), expected);
    let alone = Story::new("skills").args(&["-p"]).files(&files).stdin("/count a\n");
    let alone = alone.reply(answer(Api::OpenAi, "Done.")).run();
    alone.code(0).equal(last_text(&alone.body(1)), used("count", "Count a."));
    let file = Story::new("skills")
        .args(&["-p", "-f", "ask"])
        .files(&files)
        .file("ask", "#!/usr/bin/env -S cotter -f\n/count a\n");
    let file = file.reply(answer(Api::OpenAi, "Done.")).run();
    file.code(0).equal(last_text(&file.body(1)), used("count", "Count a."));
}

#[test]
fn a_name_that_is_no_skill_is_sent_as_it_is_and_said_unless_it_is_a_path() {
    let quiet = "---\nuser-invocable: false\n---\nKnow this.";
    let files = [(".claude/skills/count/SKILL.md", PLAIN), (".claude/skills/quiet/SKILL.md", quiet)];
    let unknown = "cotter: there is no skill \"deploy-all\": the prompt is sent as it is\n";
    let near = "cotter: there is no skill \"cuont\" (did you mean /count?): the prompt is sent as it is\n";
    let model = "cotter: the skill \"quiet\" is for the model alone: the prompt is sent as it is\n";
    let cases = [
        ("/deploy-all now", unknown),
        ("/cuont a", near),
        ("/quiet", model),
        ("/etc/passwd has too many lines", ""),
        ("/tmp is full", ""),
        ("/* a comment */", ""),
        ("/", ""),
    ];
    for (typed, said) in cases {
        assert_eq!(prompted(typed, &files), (typed.to_owned(), said.to_owned()), "{typed}");
    }
}

#[test]
fn without_skills_a_slash_is_a_letter() {
    for args in [&["--disable-slash-commands"][..], &["--bare"]] {
        let story =
            story(Api::OpenAi, "/count a").args(args).files(&[(".claude/skills/count/SKILL.md", PLAIN)]);
        let outcome = story.reply(answer(Api::OpenAi, "Done.")).run();
        outcome.code(0).stderr("").equal(last_text(&outcome.body(1)), "/count a".to_owned());
    }
}

#[test]
fn the_model_may_not_use_what_is_for_the_user_alone() {
    let deploy = "---\ndescription: Deploys.\ndisable-model-invocation: true\n---\nDeploy it.";
    for api in BOTH {
        let files = [(".claude/skills/deploy/SKILL.md", deploy), (".claude/skills/lint/SKILL.md", LINT)];
        let outcome = story(api, "Hello.")
            .files(&files)
            .reply(asks(api, "", &[("call_1", "Skill", r#"{"name": "deploy"}"#)]))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).equal(outcome.sent(1).contains("Deploys"), false);
        let refusal = "the skill \"deploy\" is not for you to use: do not do its work in another way; the user can \
            begin a prompt with /deploy";
        outcome.equal(told(api, &outcome.body(2)), vec![error(refusal)]);
        let outcome = story(api, "/deploy").files(&files).reply(answer(api, "Done.")).run();
        outcome.code(0).equal(last_text(&outcome.body(1)), used("deploy", "Deploy it."));
    }
}

#[test]
fn a_rule_forbids_that_the_model_uses_a_skill() {
    for api in BOTH {
        let outcome = story(api, "Hello.")
            .args(&["--disallowedTools", "Skill(count *)", "--output-format", "json", "--verbose"])
            .files(&[(".claude/skills/count/SKILL.md", PLAIN), (".claude/skills/lint/SKILL.md", LINT)])
            .reply(asks(api, "", &[("call_1", "Skill", r#"{"name": "count"}"#)]))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).equal(outcome.sent(1).contains("Counts lines"), false);
        outcome.stderr_has(
            "cotter: Skill was denied: the rule \"Skill(count *)\" of --disallowedTools forbids it\n",
        );
        let why = "the rule \"Skill(count *)\" of --disallowedTools forbids it";
        outcome.equal(told(api, &outcome.body(2)), vec![denied(why)]);
        outcome.equal(&outcome.json()["permission_denials"][0]["tool_input"], &json!({"name": "count"}));
    }
}

/// The folder that is told leads to the scripts, from wherever in the checkout it is run.
#[test]
fn scripts_of_a_skill_run_from_the_folder_that_is_told() {
    let skill =
        "---\ndescription: Greets.\n---\nRun ${CLAUDE_SKILL_DIR}/hi.sh, see ${CLAUDE_PROJECT_DIR}/notes.md.";
    for api in BOTH {
        for (workspace, folder, project) in
            [(".", ".claude/skills", "."), ("sub/deep", "../../.claude/skills", "../..")]
        {
            let command = format!(r#"{{"command": "sh {folder}/greet/hi.sh"}}"#);
            let outcome = story(api, "/greet")
                .args(&["-C", workspace])
                .files(&[
                    (".git/HEAD", "ref: refs/heads/main\n"),
                    ("sub/deep/a.txt", "a\n"),
                    (".claude/skills/greet/SKILL.md", skill),
                    (".claude/skills/greet/hi.sh", "echo hello; pwd\n"),
                ])
                .reply(asks(api, "", &[("call_1", "Bash", &command)]))
                .reply(answer(api, "Done."))
                .run();
            let body = format!("Run {folder}/greet/hi.sh, see {project}/notes.md.");
            outcome.code(0).stderr("").equal(last_text(&outcome.body(1)), used_in(folder, "greet", &body));
            outcome.equal(told(api, &outcome.body(2)), vec![ok("hello\n.")]);
        }
    }
}

/// Outside of the workspace the folder is told by a variable that commands and tools know, and no path of the machine
/// is told, whatever prints it.
#[test]
fn files_of_the_users_own_skills_are_reached_by_a_variable() {
    let skill = "---\ndescription: Mine.\n---\nRun ${CLAUDE_SKILL_DIR}/a.sh.";
    let own = "$HOME/.claude/skills/mine";
    let asked: [Call; 8] = [
        ("call_1", "Bash", r#"{"command": "sh \"$HOME/.claude/skills/mine/a.sh\""}"#),
        ("call_2", "Read", r#"{"file_path": "$HOME/.claude/skills/mine/more.md"}"#),
        ("call_3", "Read", r#"{"file_path": "~/.claude/skills/mine/more.md"}"#),
        ("call_4", "Read", r#"{"file_path": "${HOME}/.claude/skills/mine/none.md"}"#),
        ("call_5", "Glob", r#"{"pattern": "*.md", "path": "$HOME/.claude/skills/mine"}"#),
        ("call_6", "Glob", r#"{"pattern": "~/.claude/skills/mine/m*"}"#),
        ("call_7", "Write", r#"{"file_path": "$HOME/.claude/skills/mine/x", "content": "x"}"#),
        ("call_8", "Grep", r#"{"pattern": "reference", "path": "$HOME/.claude/skills"}"#),
    ];
    for api in BOTH {
        let outcome = story(api, "/mine")
            .files(&[
                ("../home/.claude/skills/mine/SKILL.md", skill),
                ("../home/.claude/skills/mine/more.md", "A reference.\n"),
                ("../home/.claude/skills/mine/a.sh", "echo \"$0\"; cd \"$HOME/.claude/skills\"; pwd\n"),
            ])
            .reply(asks(api, "", &asked))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).stderr("");
        outcome.equal(
            last_text(&outcome.body(1)),
            used_in("$HOME/.claude/skills", "mine", &format!("Run {own}/a.sh.")),
        );
        let told = told(api, &outcome.body(2));
        outcome.equal(&told[0], &ok("$HOME/.claude/skills/mine/a.sh\n$HOME/.claude/skills"));
        outcome.equal(&told[1..3], &[ok("A reference.\n"), ok("A reference.\n")][..]);
        outcome.equal((told[3].1, told[3].0.contains("$HOME/.claude/skills/mine/none.md")), (true, true));
        outcome.equal(told[4].0.contains("$HOME/.claude/skills/mine/more.md"), true);
        outcome.equal(told[5].0.contains("$HOME/.claude/skills/mine/more.md"), true);
        outcome.equal(&told[6], &error("the user's own skills are not written here: write in the workspace"));
        outcome.equal(told[7].0.contains("$HOME/.claude/skills/mine/more.md"), true);
        outcome.no_file("$HOME");
    }
}

#[test]
fn the_users_own_folders_are_read_in_their_order() {
    let one = |text: &str| format!("---\ndescription: {text}\n---\n");
    let (config, claude, agents) = (one("config"), one("claude"), one("agents"));
    let files = [
        ("../home/.config/cotter/skills/a/SKILL.md", config.as_str()),
        ("../home/.claude/skills/b/SKILL.md", &claude),
        ("../home/.agents/skills/c/SKILL.md", &agents),
    ];
    let list = |args: &[&str], variable: Option<&str>| {
        let mut story = story(Api::OpenAi, "Hello.").args(args).files(&files);
        if let Some(folder) = variable {
            let folder = folder.to_owned();
            story = story.env("XDG_CONFIG_HOME", &folder);
        }
        let outcome = story.reply(answer(Api::OpenAi, "Hi.")).run();
        outcome.code(0).stderr("");
        listed(&outcome)
    };
    assert_eq!(list(&[], None), "- a: config\n- b: claude\n- c: agents");
    assert_eq!(list(&["--setting-sources", "user"], None), "- a: config\n- b: claude\n- c: agents");
    assert_eq!(list(&["--setting-sources", "project"], None), "");
    assert_eq!(list(&[], Some("/nonexistent")), "- b: claude\n- c: agents");
}

#[test]
fn a_folder_of_configuration_elsewhere_is_written_by_its_variable() {
    let stage = Stage::new("configuration");
    stage.write(
        "../elsewhere/cotter/skills/mine/SKILL.md",
        "---\ndescription: Mine.\n---\nSee ${CLAUDE_SKILL_DIR}/a.",
    );
    let mut command =
        stage.command(&["--dry-run", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "/mine"]);
    let ran = run(command.env("XDG_CONFIG_HOME", stage.root().join("elsewhere")));
    let folder = "$XDG_CONFIG_HOME/cotter/skills";
    let expected = used_in(folder, "mine", &format!("See {folder}/mine/a."));
    assert_eq!(last_text(&ran.code(0).json()), expected, "{}", ran.report());
}

#[test]
fn of_two_skills_with_one_name_the_users_own_holds_then_the_nearest() {
    let one = |text: &str| format!("---\ndescription: {text}\n---\n");
    let (own, root, sub, agents) = (one("own"), one("root"), one("sub"), one("agents"));
    let outcome = story(Api::OpenAi, "Hello.")
        .args(&["-C", "sub"])
        .files(&[
            (".git/HEAD", "ref: refs/heads/main\n"),
            ("../home/.claude/skills/a/SKILL.md", &own),
            ("sub/.claude/skills/a/SKILL.md", &sub),
            ("sub/.claude/skills/b/SKILL.md", &sub),
            ("sub/.agents/skills/b/SKILL.md", &agents),
            (".claude/skills/b/SKILL.md", &root),
            (".agents/skills/c/SKILL.md", &root),
        ])
        .reply(answer(Api::OpenAi, "Hi."))
        .run();
    outcome.code(0).equal(listed(&outcome), "- a: own\n- b: sub\n- c: root".to_owned());
    outcome.stderr(
        "cotter: of skills with the same name the first holds, which leaves out .claude/skills/a ($HOME/.claude/skills/a is \
         there), .agents/skills/b (.claude/skills/b is there), ../.claude/skills/b (.claude/skills/b is there)\n",
    );
}

/// A person's folder of skills is often a link to where it is kept; what waits or tells secrets is left out even so.
#[test]
fn the_users_own_skills_may_be_links_to_files() {
    let outcome = story(Api::OpenAi, "Hello.")
        .files(&[("../kept/lint/SKILL.md", LINT)])
        .prepared(|folder| {
            let home = folder.join("../home/.claude");
            fs::create_dir_all(&home).unwrap();
            symlink("../../kept", home.join("skills")).unwrap();
            for (name, target) in [("device", "/dev/zero"), ("procfs", "/proc/self/status")] {
                fs::create_dir(home.join("skills").join(name)).unwrap();
                symlink(target, home.join("skills").join(name).join("SKILL.md")).unwrap();
            }
            fs::create_dir(home.join("skills/fifo")).unwrap();
            mknodat(CWD, home.join("skills/fifo/SKILL.md"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        })
        .reply(answer(Api::OpenAi, "Hi."))
        .run();
    outcome.code(0).equal(listed(&outcome), "- lint: Checks the style. Use before a commit.".to_owned());
    outcome.stderr(concat!(
        "cotter: the skill $HOME/.claude/skills/device is left out: it is not a regular file\n",
        "cotter: the skill $HOME/.claude/skills/fifo is left out: it is not a regular file\n",
        "cotter: the skill $HOME/.claude/skills/procfs is left out: it is on procfs\n",
    ));
}

/// Many checkouts have one folder under two names.
#[test]
fn a_skill_that_is_reached_in_two_ways_is_one() {
    let outcome = story(Api::OpenAi, "Hello.")
        .files(&[(".agents/skills/lint/SKILL.md", LINT)])
        .prepared(|folder| {
            fs::create_dir(folder.join(".claude")).unwrap();
            symlink("../.agents/skills", folder.join(".claude/skills")).unwrap();
        })
        .reply(answer(Api::OpenAi, "Hi."))
        .run();
    outcome
        .code(0)
        .stderr("")
        .equal(listed(&outcome), "- lint: Checks the style. Use before a commit.".to_owned());
}

#[test]
fn front_matter_that_is_not_understood_leaves_the_skill_out() {
    let files = [
        (".claude/skills/a/SKILL.md", "---\ndescription: {a: b}\n---\n"),
        (".claude/skills/b/SKILL.md", "---\ndescription: x\n"),
        (".claude/skills/c/SKILL.md", "---\ncontext: spoon\n---\n"),
        (".claude/skills/d/SKILL.md", "---\nhooks:\n  PreToolUse: []\n---\n"),
        (".claude/skills/e-\u{1b}[31m/SKILL.md", LINT),
        (".claude/skills/f/SKILL.md", "---\ndescription: >-\n  Folded\n  text.\nmetadata:\n  a: [b]\n---\n"),
        (".claude/skills/g/SKILL.md", "# A title\n\nA body without a head.\n"),
    ];
    let outcome = story(Api::OpenAi, "Hello.").files(&files).reply(answer(Api::OpenAi, "Hi.")).run();
    outcome.code(0).equal(listed(&outcome), "- f: Folded text.\n- g: A title".to_owned());
    outcome.stderr(concat!(
        "cotter: the skill .claude/skills/a is left out: its front matter cannot be read: line 2 (\"description\") has a mapping in braces\n",
        "cotter: the skill .claude/skills/b is left out: its front matter cannot be read: no line --- ends it\n",
        "cotter: the skill .claude/skills/c is left out: \"context\" is fork or inline, not \"spoon\"\n",
        "cotter: the skill .claude/skills/d is left out: it has hooks, and none are run here\n",
        "cotter: the skill .claude/skills/\"e-\\u{1b}[31m\" is left out: a skill is called by a word of at most 64 letters, digits, - and _\n",
    ));
}

/// A checkout may not have anything read that lies elsewhere, nor hold up a run.
#[test]
fn what_leads_out_of_the_checkout_or_is_no_file_is_left_out() {
    let outcome = story(Api::OpenAi, "Hello.")
        .files(&[
            ("../secret/SKILL.md", LINT),
            ("inside/SKILL.md", LINT),
            (".claude/skills/text/SKILL.md", "a\0b"),
        ])
        .prepared(|folder| {
            let at = |name: &str| folder.join(".claude/skills").join(name);
            fs::create_dir_all(folder.join(".agents")).unwrap();
            symlink("../../secret", folder.join(".agents/skills")).unwrap();
            for name in ["device", "dangling", "fifo", "file", "procfs"] {
                fs::create_dir_all(at(name)).unwrap();
            }
            symlink("../../inside", at("inside")).unwrap();
            symlink("../../../secret", at("out")).unwrap();
            symlink("/dev/zero", at("device/SKILL.md")).unwrap();
            symlink("nothing", at("dangling/SKILL.md")).unwrap();
            symlink("/proc/self/environ", at("procfs/SKILL.md")).unwrap();
            symlink("../../../../secret/SKILL.md", at("file/SKILL.md")).unwrap();
            mknodat(CWD, at("fifo/SKILL.md"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        })
        .reply(answer(Api::OpenAi, "Hi."))
        .run();
    outcome.code(0).equal(listed(&outcome), "- inside: Checks the style. Use before a commit.".to_owned());
    outcome.stderr(concat!(
        "cotter: the skill .claude/skills/dangling is left out: it is a symbolic link that leads nowhere\n",
        "cotter: the skill .claude/skills/device is left out: it lies outside of the checkout\n",
        "cotter: the skill .claude/skills/fifo is left out: it is not a regular file\n",
        "cotter: the skill .claude/skills/file is left out: it lies outside of the checkout\n",
        "cotter: the skill .claude/skills/out is left out: it lies outside of the checkout\n",
        "cotter: the skill .claude/skills/procfs is left out: it lies outside of the checkout\n",
        "cotter: the skill .claude/skills/text is left out: it is not UTF-8 text\n",
        "cotter: the skills in .agents/skills are left out: it lies outside of the checkout\n",
    ));
}

#[test]
fn commands_in_single_files_are_skills_for_the_user() {
    let files = [
        (".claude/commands/review.md", "Review $ARGUMENTS.\n"),
        (".claude/commands/web/form.md", "---\ndescription: A form.\n---\nMake the form.\n"),
        (".claude/commands/lint.md", "Not this.\n"),
        (".claude/skills/lint/SKILL.md", LINT),
        ("../home/.claude/commands/mine.md", "Mine: $0.\n"),
    ];
    assert_eq!(prompted("/review a.rs", &files).0, "Review a.rs.");
    assert_eq!(prompted("/web:form", &files).0, "Make the form.");
    assert_eq!(prompted("/mine x", &files).0, "Mine: x.");
    let (lint, said) = prompted("/lint", &files);
    assert_eq!(lint, used("lint", "Run the linter."));
    let shadowed = "cotter: of skills with the same name the first holds, which leaves out .claude/commands/lint.md \
         (.claude/skills/lint is there)\n";
    assert_eq!(said, shadowed);
    let story = story(Api::OpenAi, "Hello.").files(&files[..1]);
    let outcome = story.reply(answer(Api::OpenAi, "Hi.")).run();
    outcome.code(0).equal(told_at_start(Api::OpenAi, &outcome.body(1)), None);
}

/// Another agent runs such commands before the model sees the skill. Nobody trusts a checkout that much here.
#[test]
fn commands_in_a_body_are_not_run_and_the_model_is_told() {
    let skill = "---\ndescription: Reviews.\n---\nThe diff: !`touch ran`\n\n```!\ntouch ran-too\n```\n";
    let (prompt, said) = prompted("/review", &[(".claude/skills/review/SKILL.md", skill)]);
    let expected = "The skill \"review\" lies in .claude/skills/review, which paths in it are relative to; commands run \
        in the workspace. No command in it has been run: run those written as !`…` that are needed.\n\nThe diff: \
        !`touch ran`\n\n```!\ntouch ran-too\n```";
    assert_eq!((prompt.as_str(), said.as_str()), (expected, ""));
    let story = story(Api::OpenAi, "/review").files(&[(".claude/skills/review/SKILL.md", skill)]);
    story.reply(answer(Api::OpenAi, "Done.")).run().code(0).no_file("ran").no_file("ran-too");
}

/// What a skill mentions is not shown: the user has not chosen it.
#[test]
fn images_are_shown_that_the_user_mentions_and_not_those_of_a_skill() {
    let picture = crate::images::PNG;
    let skill = "---\ndescription: Looks.\n---\nLook at $ARGUMENTS and @secret.png.";
    let outcome = story(Api::OpenAi, "/look @dot.png")
        .file("dot.png", picture)
        .file("secret.png", picture)
        .files(&[(".claude/skills/look/SKILL.md", skill)])
        .reply(answer(Api::OpenAi, "Done."))
        .run();
    outcome.code(0).stderr("");
    let body = outcome.body(1);
    let content = body["messages"].as_array().unwrap().last().unwrap()["content"].as_array().unwrap();
    outcome.equal(&content[0]["text"], &json!(used("look", "Look at @dot.png and @secret.png.")));
    outcome.equal((content.len(), content[1]["type"].as_str()), (2, Some("image_url")));
}

const WRITE: Call = ("call_w", "Write", r#"{"file_path": "a.txt", "content": "one\n"}"#);
const ECHO: Call = ("call_b", "Bash", r#"{"command": "echo hi"}"#);
const READ: Call = ("call_r", "Read", r#"{"file_path": "notes.txt"}"#);
const NARROWED: &str = "it is not among the allowed-tools of the skill in use (narrow)";

#[test]
fn allowed_tools_of_a_checkout_narrow_what_is_allowed_and_never_widen_it() {
    let narrow = "---\nallowed-tools: Bash(echo:*), Read\n---\nDo it.";
    for api in BOTH {
        let run = |prompt: &str, args: &[&str], replies: &[&[Call]]| {
            let mut story = story(api, prompt).args(args);
            story = story.files(&[(".claude/skills/narrow/SKILL.md", narrow), ("notes.txt", "1932\n")]);
            story = replies.iter().fold(story, |story, calls| story.reply(asks(api, "", calls)));
            let outcome = story.reply(answer(api, "Done.")).run();
            outcome.code(0).no_file("a.txt");
            assert!(outcome.stderr.lines().all(|line| line.contains(" was denied: ")), "{}", outcome.stderr);
            told(api, &outcome.body(replies.len() + 1))
        };
        let calls: &[Call] = &[READ, WRITE, ECHO];
        let expected = vec![ok("1932\n"), denied(NARROWED), ok("hi")];
        assert_eq!(run("/narrow", &[], &[calls]), expected);
        assert_eq!(run("/narrow", &["--dangerously-skip-permissions"], &[calls]), expected);
        // From the model's call on, but not before.
        let use_it = ("call_s", "Skill", r#"{"name": "narrow"}"#);
        let late = run("Hello.", &[], &[&[ECHO], &[use_it, WRITE]]);
        assert_eq!((&late[0], &late[2]), (&ok("hi"), &denied(NARROWED)));
        // What no rule allows stays so.
        let why = "it runs a command that no rule allows; it needs --allowedTools \"Bash(echo hi:*)\"";
        let ruled = run("/narrow", &["--allowedTools", "Bash(ls:*)"], &[calls]);
        assert_eq!(ruled[2], denied(why));
        let forbidden = run("/narrow", &["--disallowedTools", "Bash(echo:*)"], &[calls]);
        assert_eq!(forbidden[2], denied("the rule \"Bash(echo:*)\" of --disallowedTools forbids it"));
    }
}

#[test]
fn allowed_tools_of_the_users_own_skills_grant_what_no_rule_forbids() {
    let mine = "---\nallowed-tools:\n  - Bash(echo:*)\n  - Bash((\n---\nDo it.";
    let own = [("../home/.claude/skills/mine/SKILL.md", mine)];
    for api in BOTH {
        let run = |prompt: &str, args: &[&str], files: &[(&str, &str)]| {
            let story = story(api, prompt).args(args).files(files);
            let outcome = story.reply(asks(api, "", &[WRITE, ECHO])).reply(answer(api, "Done.")).run();
            let lines = outcome.code(0).stderr.split_inclusive('\n');
            let stderr: String = lines.filter(|line| !line.contains(" was denied: ")).collect();
            (told(api, &outcome.body(2)), stderr)
        };
        let needs = |rule: &str, why: &str| denied(&format!("{why}; it needs --allowedTools \"{rule}\""));
        let write = needs("Edit(/a.txt)", "it writes a file");
        let echo = needs("Bash(echo hi:*)", "it runs a command that no rule allows");
        let rules = ["--allowedTools", "Bash(ls:*)"];
        assert_eq!(run("Hello.", &rules, &own), (vec![write.clone(), echo], String::new()));
        let unusable = "cotter: the skill \"mine\" has a rule that cannot be used, \"Bash((\": its parenthesis is not closed\n";
        assert_eq!(run("/mine", &rules, &own), (vec![write, ok("hi")], unusable.to_owned()));
        // What is below `/` is no checkout.
        let in_root = run("/mine", &["-C", "/", "--allowedTools", "Bash(ls:*)"], &own);
        assert_eq!(in_root.0[1], ok("hi"));
        let both = [own[0], (".claude/skills/narrow/SKILL.md", "---\nallowed-tools: Read\n---\nDo it.")];
        let (stacked, _) = run("/mine /narrow", &[], &both);
        assert_eq!(stacked, [denied(NARROWED), ok("hi")]);
        let forbidden = ["--allowedTools", "Read", "--disallowedTools", "Bash"];
        let (told, _) = run("/mine", &forbidden, &own);
        assert!(told[1].0.starts_with("there is no tool \"Bash\""), "{told:?}");
    }
}

#[test]
fn disallowed_tools_of_a_skill_hold_while_it_is_in_use() {
    let skill = "---\ndisallowed-tools: Write, Bash(echo:*)\n---\nDo it.";
    let story = story(Api::OpenAi, "/careful").files(&[(".claude/skills/careful/SKILL.md", skill)]);
    let outcome =
        story.reply(asks(Api::OpenAi, "", &[WRITE, ECHO])).reply(answer(Api::OpenAi, "Done.")).run();
    let by = |rule: &str| denied(&format!("the rule \"{rule}\" of a skill in use forbids it"));
    outcome.code(0).equal(told(Api::OpenAi, &outcome.body(2)), vec![by("Write"), by("Bash(echo:*)")]);
}

const FORK: &str =
    "---\ndescription: Finds out.\ncontext: fork\nallowed-tools: Read\n---\nFind out $ARGUMENTS.";

#[test]
fn a_fork_runs_in_a_conversation_of_its_own_and_brings_back_only_the_answer() {
    for api in BOTH {
        let use_it = ("call_s", "Skill", r#"{"name": "ask", "arguments": "why"}"#);
        let outcome = story(api, "Hello.")
            .args(&["--output-format", "json"])
            .conversations(2)
            .files(&[(".claude/skills/ask/SKILL.md", FORK), ("notes.txt", "1932\n")])
            .reply(asks(api, "", &[use_it, ECHO]))
            .reply(asks(api, "Looking.", &[READ, WRITE, use_it]))
            .reply(answer(api, "Because of 1932."))
            .reply(asks(api, "", &[WRITE]))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).stderr("").file("a.txt", "one\n");
        // What was said before is not there, and the skill's rules hold.
        outcome.equal(last_text(&outcome.body(2)), used("ask", "Find out why."));
        outcome.equal(outcome.sent(2).contains("Hello."), false);
        let narrowed = denied("it is not among the allowed-tools of the skill in use (ask)");
        let nested =
            "the skill \"ask\" runs in a conversation of its own, which cannot begin here: do without it";
        outcome.equal(told(api, &outcome.body(3)), vec![ok("1932\n"), narrowed, error(nested)]);
        // The answer comes back and nothing else does.
        outcome.equal(told(api, &outcome.body(4)), vec![ok("Because of 1932."), ok("hi")]);
        outcome.equal(outcome.sent(4).contains("1932\\n") || outcome.sent(4).contains("Looking"), false);
        outcome.equal(told(api, &outcome.body(5))[2..].to_vec(), vec![ok("created a.txt (4 bytes)")]);
        outcome.equal(&outcome.json()["result"], &json!("Done."));
        outcome.equal(&outcome.json()["num_turns"], &json!(5));
        outcome.equal(outcome.json()["permission_denials"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn the_turns_of_a_fork_are_the_runs() {
    for api in BOTH {
        let use_it = ("call_s", "Skill", r#"{"name": "ask"}"#);
        let outcome = story(api, "Hello.")
            .args(&["--max-turns", "2"])
            .conversations(2)
            .files(&[(".claude/skills/ask/SKILL.md", FORK), ("notes.txt", "1932\n")])
            .reply(asks(api, "", &[use_it]))
            .reply(asks(api, "", &[READ]))
            .run();
        outcome.code(20).stdout("").request_count(2);
    }
}

#[test]
fn a_fork_without_an_answer_is_a_result_that_the_model_reads() {
    for api in BOTH {
        let use_it = ("call_s", "Skill", r#"{"name": "ask"}"#);
        let outcome = story(api, "Hello.")
            .conversations(2)
            .files(&[(".claude/skills/ask/SKILL.md", FORK)])
            .reply(asks(api, "", &[use_it]))
            .reply(answer(api, ""))
            .reply(answer(api, ""))
            .reply(answer(api, "Done."))
            .run();
        let why = "the skill \"ask\" came to no answer: the model's answer is empty, twice in a row: rephrase the \
            request or choose another --model";
        outcome.code(0).stdout("Done.\n").equal(told(api, &outcome.body(4)), vec![error(why)]);
    }
}

#[test]
fn a_prompt_that_begins_with_a_fork_is_answered_by_it() {
    for api in BOTH {
        let outcome = story(api, "/ask why /lint")
            .files(&[(".claude/skills/ask/SKILL.md", FORK), (".claude/skills/lint/SKILL.md", LINT)])
            .stdin("data\n")
            .reply(asks(api, "", &[WRITE]))
            .reply(answer(api, "Because."))
            .run();
        let line = "cotter: Write was denied: it is not among the allowed-tools of the skill in use (ask)\n";
        outcome.code(0).stdout("Because.\n").stderr(line).no_file("a.txt");
        let expected = format!("{}\n\n<stdin>\ndata\n</stdin>", used("ask", "Find out why /lint."));
        outcome.equal(last_text(&outcome.body(1)), expected);
        let sessions = outcome.folder.join("../home/.local/state/cotter/sessions");
        let file = fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
        let kept = fs::read_to_string(file).unwrap();
        let lines: Vec<Value> = kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        outcome.equal(lines.len(), 3);
        let asked = "/ask why /lint\n\n<stdin>\ndata\n</stdin>";
        outcome.equal(&lines[1]["parts"], &json!([{"type": "text", "text": asked}]));
        outcome.equal(&lines[2]["parts"], &json!([{"type": "text", "text": "Because."}]));
    }
}

/// On a terminal a text streams as it comes, but that of a fork is no answer to the user.
#[test]
fn what_is_said_in_a_fork_is_not_shown_on_a_terminal() {
    let stage = Stage::new("fork");
    stage.write(".claude/skills/ask/SKILL.md", FORK);
    let replies =
        vec![calls("call_s", "Skill", &json!({"name": "ask"})), says(&["Inner", " text."]), says(&["Done."])];
    let (terminal, server) = (Terminal::new(), Server::start(replies));
    let mut command = stage.ask(server.port(), &["-p", "Hello."]);
    run(command.stdout(terminal.stream())).code(0);
    drop(command);
    assert_eq!(requests(server).len(), 3);
    assert_eq!(terminal.shown(), "Done.\r\n");
}

#[test]
fn events_name_the_skills_and_the_call_that_a_fork_belongs_to() {
    for api in BOTH {
        let use_it = ("call_s", "Skill", r#"{"name": "ask"}"#);
        let outcome = story(api, "Hello.")
            .args(&["--output-format", "stream-json"])
            .conversations(2)
            .files(&[(".claude/skills/ask/SKILL.md", FORK), (".claude/commands/review.md", "Review.")])
            .files(&[("notes.txt", "1932\n")])
            .reply(asks(api, "", &[use_it]))
            .reply(asks(api, "", &[READ]))
            .reply(answer(api, "Because."))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0);
        let text = String::from_utf8(outcome.stdout.clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names = json!(["ask", "review"]);
        outcome.equal((&lines[0]["skills"], &lines[0]["slash_commands"]), (&names, &names));
        let kinds: Vec<(&str, &Value)> = lines[1..7]
            .iter()
            .map(|line| (line["type"].as_str().unwrap(), &line["parent_tool_use_id"]))
            .collect();
        let (own, within) = (&Value::Null, &json!("call_s"));
        let expected = [
            ("assistant", own),
            ("assistant", within),
            ("user", within),
            ("assistant", within),
            ("user", own),
            ("assistant", own),
        ];
        outcome.equal(&kinds[..], &expected[..]).equal(lines.len(), 8);
    }
}

/// A schema is for the answer of the run, which a fork gives only where the prompt is one.
#[test]
fn a_schema_is_for_the_answer_of_the_run() {
    let schema = r#"{"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"], "additionalProperties": false}"#;
    for api in BOTH {
        let story = |prompt: &str| {
            let args = ["--json-schema", schema];
            story(api, prompt).args(&args).files(&[(".claude/skills/ask/SKILL.md", FORK)])
        };
        let give = ("call_g", "StructuredOutput", r#"{"year": 1932}"#);
        let by_tool = story("Hello.").reply(asks(api, "", &[give])).run();
        by_tool.code(0).stdout("{\"year\":1932}\n");
        let outcome = story("Hello.")
            .conversations(2)
            .reply(asks(api, "", &[("call_s", "Skill", r#"{"name": "ask"}"#)]))
            .reply(answer(api, "In 1932."))
            .reply(asks(api, "", &[give]))
            .run();
        outcome.code(0).stdout("{\"year\":1932}\n");
        outcome.equal(told(api, &outcome.body(3)), vec![ok("In 1932.")]);
        let knows = [1, 2, 3].map(|number| outcome.sent(number).contains("StructuredOutput"));
        outcome.equal(knows, [true, false, true]);
        let outcome = story("/ask").reply(asks(api, "", &[give])).run();
        outcome.code(0).stdout("{\"year\":1932}\n");
    }
}

#[test]
fn a_single_step_prints_the_instructions_and_starts_no_conversation() {
    for api in BOTH {
        let step = |name: &str| {
            let call = format!(r#"{{"name": "{name}"}}"#);
            story(api, "Hello.")
                .args(&["--single-step"])
                .files(&[(".claude/skills/ask/SKILL.md", FORK), (".claude/skills/lint/SKILL.md", LINT)])
                .reply(asks(api, "", &[("call_s", "Skill", &call)]))
                .run()
        };
        step("lint").code(0).stdout(used("lint", "Run the linter."));
        let why = "cotter: the call of Skill failed: the skill \"ask\" runs in a conversation of its own, which cannot \
            begin here: do without it\n";
        step("ask").code(1).stdout("").stderr(why);
    }
}

/// A checkout is not searched for ever.
#[test]
fn more_skills_than_anybody_has_are_not_looked_at() {
    let outcome = story(Api::OpenAi, "/late:x")
        .files(&[(".claude/commands/late/x.md", "Late.")])
        .prepared(|folder| {
            for number in 0..1001 {
                let place = folder.join(format!(".claude/skills/s{number}"));
                fs::create_dir_all(&place).unwrap();
                fs::write(place.join("SKILL.md"), "---\nuser-invocable: maybe\n---\n").unwrap();
            }
        })
        .reply(answer(Api::OpenAi, "Hi."))
        .run();
    outcome.code(0).stderr_has("cotter: 990 further lines about skills are left out\n");
    outcome.stderr_has("cotter: there are more than 1000 files of skills: the rest is left out\n");
    outcome.equal(last_text(&outcome.body(1)), "/late:x".to_owned());
    outcome.equal(outcome.stderr.lines().count(), 13);
}

#[test]
fn a_long_list_of_skills_is_cut_and_said() {
    let outcome = story(Api::OpenAi, "Hello.")
        .prepared(|folder| {
            for number in 0..40 {
                let place = folder.join(format!(".claude/skills/skill-{number:02}"));
                fs::create_dir_all(&place).unwrap();
                let text = format!("---\ndescription: {}\n---\n", "x".repeat(2000));
                fs::write(place.join("SKILL.md"), text).unwrap();
            }
        })
        .reply(answer(Api::OpenAi, "Hi."))
        .run();
    outcome.code(0).stderr(
        "cotter: the list of skills is long: the model is told 25 of them without a description and 0 not at all \
         (/name uses any)\n",
    );
    let list = listed(&outcome);
    outcome.equal(list.lines().next().unwrap().len(), "- skill-00: ".len() + 1024 + "…".len());
    outcome.equal((list.lines().count(), list.lines().last()), (40, Some("- skill-39")));
}

/// Each use added the skill's rules and its name once more, and said again what could not be used.
#[test]
fn a_skill_that_is_used_again_is_in_use_once() {
    let narrow = "---\nallowed-tools: Read, Bash((\n---\nDo it.";
    for api in BOTH {
        let uses = ["call_1", "call_2", "call_3"].map(|id| (id, "Skill", r#"{"name": "narrow"}"#));
        let outcome = story(api, "Hello.")
            .files(&[(".claude/skills/narrow/SKILL.md", narrow)])
            .reply(asks(api, "", &[uses[0], uses[1], uses[2], WRITE]))
            .reply(answer(api, "Done."))
            .run();
        let unusable = "cotter: the skill \"narrow\" has a rule that cannot be used, \"Bash((\": its parenthesis is not closed\n";
        let line = format!("{unusable}cotter: Write was denied: {NARROWED}\n");
        outcome.code(0).stderr(&line).no_file("a.txt");
        let did = ok(&used("narrow", "Do it."));
        outcome.equal(told(api, &outcome.body(2)), vec![did.clone(), did.clone(), did, denied(NARROWED)]);
    }
}

/// Where a container's home is the checkout or a folder in it, whoever wrote the checkout wrote those skills too.
#[test]
fn a_home_in_the_checkout_grants_nothing() {
    let grants = "---\ndescription: Grants.\nallowed-tools: Bash(*)\n---\nSee ${CLAUDE_SKILL_DIR}.";
    for (home, file) in [("", ".claude/skills/it/SKILL.md"), (".home", ".home/.claude/skills/it/SKILL.md")] {
        let stage = Stage::new("home in the checkout");
        stage.write(file, grants);
        stage.write(".git/HEAD", "");
        let server = Server::start(vec![
            calls("call_b", "Bash", &json!({"command": "touch a.txt"})),
            says(&["Done."]),
        ]);
        let mut command = stage.ask(server.port(), &["-p", "/it", "--sandbox", "off"]);
        let ran = run(command.env("HOME", stage.path(home)));
        let requests = requests(server);
        let why = "it runs a command that no rule allows; with --sandbox off it needs --allowedTools \"Bash(touch:*)\" or --permission-mode bypassPermissions";
        ran.code(0);
        assert_eq!(told(Api::OpenAi, &requests[1].json()), [denied(why)], "{}", ran.report());
        assert!(!stage.path("a.txt").exists());
    }
}

#[test]
fn a_link_of_the_users_into_the_checkout_grants_nothing() {
    let grants = "---\ndescription: Grants.\nallowed-tools: Bash(*)\n---\nDo it.";
    let outcome = story(Api::OpenAi, "/it")
        .args(&["--allowedTools", "Read"])
        .files(&[("skills/it/SKILL.md", grants), ("../home/.claude/x", "")])
        .prepared(|folder| symlink(folder.join("skills"), folder.join("../home/.claude/skills")).unwrap())
        .reply(asks(Api::OpenAi, "", &[ECHO]))
        .reply(answer(Api::OpenAi, "Done."))
        .run();
    let why = "it runs a command that no rule allows; it needs --allowedTools \"Bash(echo hi:*)\"";
    outcome.code(0).equal(told(Api::OpenAi, &outcome.body(2)), vec![denied(why)]);
}

/// A checkout could hold up a run by having the same long file read in 200,000 ways.
#[test]
fn a_file_that_is_reached_in_many_ways_is_not_read_each_time() {
    let outcome = story(Api::OpenAi, "Hello.")
        .file("one.md", "One.\n")
        .file("bytes", b"\xff")
        .prepared(|folder| {
            for (folder, target) in
                [(folder.join(".claude/commands/a"), "one.md"), (folder.join(".claude/commands/b"), "bytes")]
            {
                fs::create_dir_all(&folder).unwrap();
                for number in 0..600 {
                    symlink(format!("../../../{target}"), folder.join(format!("c{number:03}.md"))).unwrap();
                }
            }
        })
        .reply(answer(Api::OpenAi, "Hi."))
        .run();
    outcome.code(0).stderr_has("cotter: there are more than 1000 files of skills: the rest is left out\n");
}

#[test]
fn what_a_key_says_that_nobody_reads_may_have_any_form() {
    let skill = "---\nname: audit\ndescription: Audits.\nargs:\n  - name: area\n    description: The area.\nmcp: {a: [b]}\n\
        argument-hint: [file] [format]\nlicense: &x MIT\nmodel: {a: b}\n---\nAudit it.\n";
    let (prompt, said) = prompted("/audit", &[(".claude/skills/audit/SKILL.md", skill)]);
    assert_eq!((prompt, said), (used("audit", "Audit it."), String::new()));
}

#[test]
fn a_name_that_is_none_is_answered_with_some_of_those_there_are() {
    let files: Vec<(String, &str)> =
        (0..60).map(|number| (format!(".claude/skills/s{number:02}/SKILL.md"), LINT)).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let outcome = story(Api::OpenAi, "Hello.")
        .files(&files)
        .reply(asks(Api::OpenAi, "", &[("call_1", "Skill", r#"{"name": "zz"}"#)]))
        .reply(answer(Api::OpenAi, "Done."))
        .run();
    let names: Vec<String> = (0..50).map(|number| format!("s{number:02}")).collect();
    let expected = format!("there is no skill \"zz\": the skills are {} and 10 more", names.join(", "));
    outcome.code(0).equal(told(Api::OpenAi, &outcome.body(2)), vec![error(&expected)]);
}
