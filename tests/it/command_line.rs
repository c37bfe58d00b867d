//! The command line and the environment: what is printed without a run, which server is asked with which
//! key and model, and that no key is ever told to anyone else.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::server::{Reply, Request, Server};
use crate::stage::{
    Ran, Stage, base_url, calls, prompt, requests, run, run_with_input, says, says_in_messages,
};
use crate::talk::TOOLS;

/// What is printed with nothing set and these arguments.
#[track_caller]
fn printed(args: &[&str]) -> String {
    let stage = Stage::new("printed");
    let mut command = stage.command(args);
    let ran = run(command.env_clear());
    ran.code(0).stderr("");
    ran.text().to_owned()
}

#[test]
fn help_fits_is_grouped_and_names_each_flag_once() {
    let help = printed(&["--help"]);
    assert_eq!(printed(&["-h"]), help);
    assert_eq!(printed(&["-p", "Hi.", "--model", "m", "--help"]), help);
    assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
    assert!(
        help.contains(
            "\nUsage: cotter [OPTIONS] [PROMPT]\n       cotter sandbox [OPTIONS] [--] CMD [ARG...]\n"
        )
    );
    let headings: Vec<&str> = help
        .lines()
        .filter(|line| line.ends_with(':') && line.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect();
    let groups = [
        "Prompt:",
        "Model:",
        "Tools:",
        "Containment:",
        "Output:",
        "Limits:",
        "Sessions:",
        "Recording:",
        "Other:",
    ];
    assert_eq!(headings, [&["Examples:"][..], &groups].concat());
    let mut flags: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Prompt:")
        .filter(|line| line.starts_with("  -") || line.starts_with("      --"))
        .map(|line| line[line.find("--").unwrap()..].split([' ', ',']).next().unwrap())
        .collect();
    let count = flags.len();
    flags.sort_unstable();
    flags.dedup();
    assert_eq!((flags.len(), flags.contains(&"--output-format")), (count, true));
}

#[test]
fn the_version_has_one_line() {
    let expected = format!("cotter {}\n", env!("CARGO_PKG_VERSION"));
    for flag in ["-v", "-V", "--version"] {
        assert_eq!(printed(&[flag]), expected);
    }
}

#[test]
fn the_tools_are_listed_as_json_lines_with_schemas() {
    let stage = Stage::new("list");
    let list = String::from_utf8(run(&mut stage.command(&["--list-tools"])).code(0).stdout.clone()).unwrap();
    let mut names = Vec::new();
    for line in list.lines() {
        let tool: Value = serde_json::from_str(line).unwrap();
        let members: Vec<&String> = tool.as_object().unwrap().keys().collect();
        assert_eq!(members, ["name", "description", "input_schema"]);
        assert!(tool["description"].as_str().unwrap().len() > 40, "{line}");
        names.push(tool["name"].as_str().unwrap().to_owned());
        let schema = &tool["input_schema"];
        assert_eq!(schema["type"], "object", "{line}");
        let properties = schema["properties"].as_object().unwrap();
        for (name, property) in properties {
            assert!(property["type"].is_string() && property["description"].is_string(), "{name}: {line}");
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(properties.contains_key(name.as_str().unwrap()), "{name}: {line}");
        }
    }
    assert_eq!(names, TOOLS);
    // Only what would be offered is listed.
    assert_eq!(
        printed(&["--list-tools"]).lines().count(),
        TOOLS.len() - 3,
        "without a PATH there is no shell for Bash and its companions"
    );
    assert_eq!(printed(&["--list-tools", "--tools", "Read,Edit"]).lines().count(), 2);
    assert_eq!(printed(&["--list-tools", "--tools", ""]), "");
    for name in ["Bash", "BashOutput", "KillShell"] {
        let args = ["--list-tools", "--tools", name];
        let needs = format!("cotter: --tools: {name} needs a bash or sh in PATH, and there is none\n");
        run(stage.command(&args).env_remove("PATH")).code(2).stderr(needs);
    }
    // Bash brings the tools for what it starts in the background, and is itself brought by neither.
    for (list, count) in [("Bash", 3), ("KillShell", 1), ("Bash,BashOutput,Read", 4)] {
        let listed = run(&mut stage.command(&["--list-tools", "--tools", list])).code(0).stdout.clone();
        assert_eq!(String::from_utf8(listed).unwrap().lines().count(), count, "{list}");
    }
}

/// Runs a program of the system with this text as its input; none if it is not installed.
fn system(program: &str, args: &[&str], text: &str) -> Option<Ran> {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).env("LC_ALL", "C");
    let installed = Command::new("sh")
        .args(["-c", "command -v \"$0\" >/dev/null", program])
        .status()
        .expect("there is a shell");
    installed.success().then(|| run_with_input(&mut command, text))
}

#[test]
fn completions_are_accepted_by_the_shells_that_are_there() {
    let bash = printed(&["--completions", "bash"]);
    let complete = |words: &str| {
        let script = format!(
            "{bash}\ncomplete -p cotter\nCOMP_WORDS=(cotter {words}) COMP_CWORD=$((${{#COMP_WORDS[@]}}-1))\n_cotter\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        );
        system("bash", &["--norc", "-s"], &script)
    };
    if let Some(ran) = system("bash", &["-n"], &bash) {
        ran.code(0).stdout("").stderr("");
        let loaded = "complete -o filenames -F _cotter cotter\n";
        for (words, expected) in [
            ("--out", "--output\n--output-format\n"),
            ("--output-format ''", "text\njson\nstream-json\n"),
            ("-p --api a", "anthropic\n"),
            ("--no-s", "--no-stdin\n--no-session-persistence\n"),
        ] {
            complete(words).unwrap().code(0).stdout(format!("{loaded}{expected}")).stderr("");
        }
    }
    let zsh = printed(&["--completions", "zsh"]);
    assert!(zsh.starts_with("#compdef cotter\n_arguments -s \\\n"), "{zsh}");
    if let Some(ran) = system("zsh", &["-n"], &zsh) {
        ran.code(0).stdout("").stderr("");
    }
    let fish = printed(&["--completions=fish"]);
    assert!(fish.lines().all(|line| line.starts_with("complete -c cotter ")), "{fish}");
    if let Some(ran) = system("fish", &["-n"], &fish) {
        ran.code(0).stdout("").stderr("");
    }
    for flag in ["output-format", "replay-strict", "no-session-persistence"] {
        assert!(zsh.contains(&format!("'*--{flag}[")), "{flag}");
        assert!(fish.contains(&format!(" -l {flag} ")), "{flag}");
    }
}

#[test]
fn the_manual_is_accepted_by_the_formatters_that_are_there() {
    let page = printed(&["--man"]);
    assert!(page.is_ascii(), "a formatter may not know the encoding");
    let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    let expected = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "OPTIONS",
        "EXIT STATUS",
        "ENVIRONMENT",
        "PERMISSIONS",
        "FLAGS OF CLAUDE",
        "EXAMPLES",
    ];
    assert_eq!(sections, expected);
    let known = [".TH ", ".SH ", ".SS ", ".TP", ".B ", ".nf", ".fi"];
    for line in page.lines().filter(|line| line.starts_with(['.', '\''])) {
        assert!(known.iter().any(|request| line.starts_with(request)), "{line}");
    }
    for (program, args) in [
        ("groff", &["-man", "-Tascii", "-ww"][..]),
        // It would have a date too, which would make two builds differ.
        ("mandoc", &["-Tlint", "-Werror"]),
    ] {
        if let Some(ran) = system(program, args, &page) {
            ran.code(0).stderr("");
            let is_shown = String::from_utf8_lossy(&ran.stdout).contains("mismatch:");
            assert!(program == "mandoc" || is_shown, "{}", ran.report());
        }
    }
}

#[test]
fn a_flag_of_claude_without_effect_is_named_by_verbose_alone() {
    let stage = Stage::new("accepted");
    let server = Server::start(vec![says(&["Done."]), says(&["Done."])]);
    let args = ["--ide", "--strict-mcp-config", "-p", "Hi."];
    run(&mut stage.ask(server.port(), &args)).code(0).stdout("Done.\n").stderr("");
    let ran = run(stage.ask(server.port(), &args).arg("--verbose"));
    let expected = "cotter: --ide is accepted and changes nothing here\n\
                    cotter: --strict-mcp-config is accepted and changes nothing here\n";
    assert!(ran.stderr.starts_with(expected), "{}", ran.report());
    requests(server);
}

#[test]
fn a_file_of_defaults_comes_before_what_is_typed() {
    let stage = Stage::new("config");
    let server = Server::start(vec![says(&["1"]), says(&["2"]), says(&["3"])]);
    let url = base_url(server.port());
    let defaults = format!(
        "# where and whom to ask\n--base-url\n{url}\n\n  --model=from-file\n#--model=not-this\r\n\
         --system-prompt\r\nBe brief, please.\r\n--stop=one"
    );
    let path = stage.write("defaults", defaults);
    let ask = |args: &[&str]| run(stage.command(args).env("COTTER_CONFIG", &path));
    ask(&["-p", "Hi."]).code(0).stdout("1\n").stderr("");
    ask(&["-p", "Hi.", "--model", "typed", "--stop", "two"]).code(0).stdout("2\n").stderr("");
    run(stage.command(&["-p", "Hi.", "--base-url", &url, "--model", "m"]).env("COTTER_CONFIG", ""))
        .code(0)
        .stdout("3\n");
    let bodies: Vec<Value> = requests(server).iter().map(Request::json).collect();
    assert_eq!(bodies[0]["model"], "from-file");
    assert_eq!(bodies[0]["messages"][0], json!({"role": "system", "content": "Be brief, please."}));
    assert_eq!(bodies[0]["stop"], json!(["one"]));
    assert_eq!((&bodies[1]["model"], &bodies[1]["stop"]), (&json!("typed"), &json!(["one", "two"])));
    assert_eq!((&bodies[2]["model"], &bodies[2]["stop"]), (&json!("m"), &Value::Null));
}

#[test]
fn a_file_of_defaults_that_cannot_be_used_is_a_usage_error() {
    let stage = Stage::new("bad config");
    let ask = |path: &str| run(stage.command(&["-p", "Hi."]).env("COTTER_CONFIG", path));
    ask("missing")
        .code(2)
        .stdout("")
        .stderr("cotter: cannot read COTTER_CONFIG \"missing\": No such file or directory (os error 2)\n");
    ask(".")
        .code(2)
        .stdout("")
        .stderr("cotter: cannot read COTTER_CONFIG \".\": Is a directory (os error 21)\n");
    ask("/dev/zero").code(2).stdout("").stderr(
        "cotter: cannot read COTTER_CONFIG \"/dev/zero\": it is longer than 1048576 bytes, which no such file is\n",
    );
    stage.write("typo", "--modle=m\n");
    for (line, why) in [
        ("--modle=m", "there is no flag --modle: did you mean --model?"),
        ("--model m", "write --model=m, or put m on a line of its own"),
        ("--max-turns", "--max-turns needs a value: N"),
        ("--help", "a flag that prints and ends has no place there"),
    ] {
        stage.write("typo", format!("{line}\n"));
        let expected =
            format!("cotter: COTTER_CONFIG \"typo\" (one argument a line, such as --max-turns=9): {why}\n");
        ask("typo").code(2).stdout("").stderr(&expected);
    }
    // Help is there all the same.
    run(stage.command(&["--version"]).env("COTTER_CONFIG", "typo")).code(0);
}

#[test]
fn the_working_folder_configures_nothing() {
    let stage = Stage::new("inert");
    for name in [".cotter", ".cotterrc", "cotter.toml", ".env", ".claude/settings.json", ".config/cotter"] {
        stage.write(name, "--model=evil\nOPENAI_API_KEY=evil\n");
    }
    run(&mut stage.command(&["-p", "Hi."])).code(3).stdout("");
    let server = Server::start(vec![says(&["Done."])]);
    run(&mut stage.ask(server.port(), &["-p", "Hi."])).code(0).stdout("Done.\n").stderr("");
    let requests = requests(server);
    assert_eq!(requests[0].header("authorization"), None);
    assert!(!String::from_utf8_lossy(&requests[0].body).contains("evil"));
}

#[test]
fn a_run_in_another_folder_finds_everything_there() {
    let stage = Stage::new("folder");
    stage.write("there/prompt", "When?");
    stage.write("there/notes.txt", "1932\n");
    let server =
        Server::start(vec![calls("call_1", "Read", &json!({"file_path": "notes.txt"})), says(&["In 1932."])]);
    let args = ["-C", "there", "-f", "prompt", "-o", "answer", "--record", "recording"];
    run(&mut stage.ask(server.port(), &args)).code(0).stdout("").stderr("");
    assert_eq!(prompt(&requests(server)[0]), "When?");
    assert_eq!(stage.read("there/answer"), "In 1932.\n");
    assert!(stage.path("there/recording/02.response.http").is_file());
    assert_eq!(fs::read_dir(stage.path(".")).unwrap().count(), 1);
}

#[test]
fn a_dry_run_prints_the_body_that_would_be_sent() {
    let stage = Stage::new("dry run");
    let server = Server::start(vec![says(&["Done."])]);
    let ran = run(stage
        .ask(server.port(), &["-p", "Hi.", "--dry-run", "--record", "r"])
        .env("OPENAI_API_KEY", "s3cret"));
    ran.code(0).stderr("");
    assert!(!stage.path("r").exists());
    run(&mut stage.ask(server.port(), &["-p", "Hi."])).code(0).stdout("Done.\n");
    let body = &requests(server)[0].body;
    assert_eq!(ran.text(), format!("{}\n", String::from_utf8_lossy(body)));
}

const OPENROUTER: (&str, &str) = ("OPENROUTER_API_KEY", "key-of-openrouter");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "key-of-anthropic");
const TOKEN: (&str, &str) = ("ANTHROPIC_AUTH_TOKEN", "token-of-anthropic");
const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "key-of-openai");

/// Which server was asked, and how.
#[derive(Debug, PartialEq)]
struct Asked {
    server: &'static str,
    path: String,
    authorization: Option<String>,
    x_api_key: Option<String>,
    model: String,
}

/// A server for each API, named by its own variable, and one for `--base-url`, which is the first argument's
/// `{typed}` where it stands. Gives who was asked; nobody else was.
#[track_caller]
fn asked_of(stage: &Stage, args: &[&str], variables: &[(&str, &str)]) -> Asked {
    let anthropic = args.contains(&"anthropic");
    let typed = if anthropic { says_in_messages("Done.") } else { says(&["Done."]) };
    let servers = [
        ("openrouter", Server::start(vec![says(&["Done."])])),
        ("anthropic", Server::start(vec![says_in_messages("Done.")])),
        ("openai", Server::start(vec![says(&["Done."])])),
        ("typed", Server::start(vec![typed])),
    ];
    let url = |index: usize| format!("http://127.0.0.1:{}", servers[index].1.port());
    let typed_url = format!("{}/v1", url(3));
    let args: Vec<&str> = args.iter().map(|arg| if *arg == "{typed}" { &*typed_url } else { arg }).collect();
    let mut command = stage.command(&args);
    command.arg("-p").arg("Hi.");
    command.env("OPENROUTER_BASE_URL", format!("{}/api/v1", url(0)));
    command.env("ANTHROPIC_BASE_URL", url(1)).env("OPENAI_BASE_URL", format!("{}/v1", url(2)));
    let ran = run(command.envs(variables.iter().copied()));
    ran.code(0).stdout("Done.\n").stderr("");
    let mut asked = Vec::new();
    for (name, server) in servers {
        for request in server.stop().requests {
            let header = |name: &str| request.header(name).map(str::to_owned);
            asked.push(Asked {
                server: name,
                path: request.path.clone(),
                authorization: header("authorization"),
                x_api_key: header("x-api-key"),
                model: request.json()["model"].as_str().unwrap().to_owned(),
            });
        }
    }
    assert_eq!(asked.len(), 1, "{asked:?}\n{}", ran.report());
    asked.remove(0)
}

fn openrouter(key: &str) -> Asked {
    let authorization = Some(format!("Bearer {key}"));
    let model = "anthropic/claude-haiku-4.5".to_owned();
    let path = "/api/v1/chat/completions".to_owned();
    Asked { server: "openrouter", path, authorization, x_api_key: None, model }
}

fn anthropic(x_api_key: Option<&str>, authorization: Option<&str>) -> Asked {
    Asked {
        server: "anthropic",
        path: "/v1/messages".to_owned(),
        authorization: authorization.map(str::to_owned),
        x_api_key: x_api_key.map(str::to_owned),
        model: "claude-opus-4-6".to_owned(),
    }
}

fn openai(server: &'static str, key: Option<&str>) -> Asked {
    let authorization = key.map(|key| format!("Bearer {key}"));
    let path = "/v1/chat/completions".to_owned();
    Asked { server, path, authorization, x_api_key: None, model: "m".to_owned() }
}

#[test]
fn the_environment_decides_whom_to_ask_in_the_documented_order() {
    let stage = Stage::new("order");
    let asked = |args: &[&str], variables: &[(&str, &str)]| asked_of(&stage, args, variables);
    let x_api_key = anthropic(Some("key-of-anthropic"), None);
    let bearer = anthropic(None, Some("Bearer token-of-anthropic"));
    assert_eq!(asked(&[], &[OPENROUTER, ANTHROPIC, TOKEN, OPENAI]), openrouter("key-of-openrouter"));
    assert_eq!(asked(&[], &[ANTHROPIC, TOKEN, OPENAI]), x_api_key);
    assert_eq!(asked(&[], &[TOKEN, OPENAI]), bearer);
    assert_eq!(asked(&["--model", "m"], &[OPENAI]), openai("openai", Some("key-of-openai")));
    assert_eq!(asked(&["--model", "m"], &[]), openai("openai", None));
    assert_eq!(asked(&["--model", "m"], &[("OPENROUTER_API_KEY", "")]), openai("openai", None));
    // A token that an x-api-key header would not do for.
    let oauth = ("ANTHROPIC_API_KEY", "sk-ant-oat01-x");
    assert_eq!(asked(&[], &[oauth]), anthropic(None, Some("Bearer sk-ant-oat01-x")));
}

#[test]
fn flags_decide_over_the_environment_and_no_key_goes_to_a_foreign_server() {
    let stage = Stage::new("flags");
    let asked = |args: &[&str], variables: &[(&str, &str)]| asked_of(&stage, args, variables);
    let all = [OPENROUTER, ANTHROPIC, TOKEN, OPENAI];
    assert_eq!(asked(&["--api", "anthropic"], &all), anthropic(Some("key-of-anthropic"), None));
    assert_eq!(asked(&["--api", "anthropic"], &[OPENROUTER, OPENAI]), anthropic(None, None));
    let to_openai = ["--api", "openai", "--model", "m"];
    assert_eq!(asked(&to_openai, &[ANTHROPIC, OPENAI]), openai("openai", Some("key-of-openai")));
    assert_eq!(asked(&to_openai, &[ANTHROPIC, TOKEN]), openai("openai", None));
    let typed = ["--base-url", "{typed}", "--model", "m"];
    assert_eq!(asked(&typed, &all), openai("typed", Some("key-of-openai")));
    assert_eq!(asked(&typed, &all[..3]), openai("typed", None));
    let typed = ["--base-url", "{typed}", "--api", "anthropic", "--model", "claude-opus-4-6"];
    let at = |asked: Asked| Asked { server: "typed", ..asked };
    assert_eq!(asked(&typed, &all), at(anthropic(Some("key-of-anthropic"), None)));
    assert_eq!(asked(&typed, &[OPENROUTER, TOKEN]), at(anthropic(None, Some("Bearer token-of-anthropic"))));
    assert_eq!(asked(&typed, &[OPENROUTER, OPENAI]), at(anthropic(None, None)));
}

#[test]
fn keys_come_from_files_too() {
    let stage = Stage::new("key files");
    let asked = |args: &[&str], variables: &[(&str, &str)]| asked_of(&stage, args, variables);
    let plain = stage.write("plain", "key-in-a-file\n");
    let of_openrouter = stage.write("openrouter", "sk-or-v1-x\n");
    let of_anthropic = stage.write("anthropic", "  sk-ant-api03-x\r\n");
    let variable = |name: &'static str| [(name, &*plain)];
    assert_eq!(asked(&[], &variable("OPENROUTER_API_KEY_FILE")), openrouter("key-in-a-file"));
    assert_eq!(asked(&[], &variable("ANTHROPIC_API_KEY_FILE")), anthropic(Some("key-in-a-file"), None));
    let model = ["--model", "m"];
    assert_eq!(asked(&model, &variable("OPENAI_API_KEY_FILE")), openai("openai", Some("key-in-a-file")));
    // The variable itself comes first.
    assert_eq!(
        asked(&model, &[OPENAI, ("OPENAI_API_KEY_FILE", &plain)]),
        openai("openai", Some("key-of-openai"))
    );
    assert_eq!(asked(&["--api-key-file", &of_openrouter], &[ANTHROPIC, OPENAI]), openrouter("sk-or-v1-x"));
    assert_eq!(
        asked(&["--api-key-file", &of_anthropic], &[OPENROUTER, OPENAI]),
        anthropic(Some("sk-ant-api03-x"), None)
    );
    let args = ["--api-key-file", &plain, "--api", "openai", "--model", "m"];
    assert_eq!(asked(&args, &[OPENROUTER, OPENAI]), openai("openai", Some("key-in-a-file")));
    let args = ["--api-key-file", &plain, "--base-url", "{typed}", "--model", "m"];
    assert_eq!(asked(&args, &[OPENAI]), openai("typed", Some("key-in-a-file")));
}

#[test]
fn a_key_that_cannot_be_used_is_named_by_its_place_alone() {
    let stage = Stage::new("bad keys");
    stage.write("two words", "s3cret key\n");
    stage.write("empty", "\n");
    stage.write("plain", "key-in-a-file");
    let unusable = "holds no usable key: a key is one word of ASCII";
    for (args, variables, code, expected) in [
        (&["--api-key-file", "missing"][..], &[][..], 3, "cannot read the key file \"missing\": No such file or directory (os error 2)".to_owned()),
        (&["--api-key-file", "two words"], &[], 3, format!("the key file \"two words\" {unusable}")),
        (&[], &[("OPENAI_API_KEY_FILE", "empty")], 3, format!("the key file \"empty\" {unusable}")),
        (&[], &[("OPENROUTER_API_KEY", "s3cret\nkey")], 3, format!("the variable OPENROUTER_API_KEY {unusable}")),
        (&[], &[("ANTHROPIC_API_KEY", "s3crét")], 3, format!("the variable ANTHROPIC_API_KEY {unusable}")),
        (&["--api-key-file", "plain"], &[], 2, "the key in --api-key-file does not say whose it is: pass --api openai or anthropic, or --base-url".to_owned()),
    ] {
        let ran = run(stage.command(&["-p", "Hi."]).args(args).envs(variables.iter().copied()));
        ran.code(code).stdout("").stderr(format!("cotter: {expected}\n"));
    }
}

#[test]
fn headers_of_ones_own_are_sent_and_may_replace_the_key() {
    let stage = Stage::new("headers");
    let server = Server::start(vec![says(&["1"]), says_in_messages("2"), says(&["3"])]);
    let ask = |args: &[&str]| {
        let url = base_url(server.port());
        let mut command = stage.command(&["--base-url", &url, "--model", "m", "-p", "Hi."]);
        command
            .args(args)
            .env("OPENAI_API_KEY", "key-of-openai")
            .env("ANTHROPIC_API_KEY", "key-of-anthropic");
        command.env("ANTHROPIC_CUSTOM_HEADERS", "X-Team: blue\nX-Cost: 7");
        run(&mut command)
    };
    ask(&["--header", "X-One: 1", "--header", "Authorization: Basic abc"]).code(0).stdout("1\n").stderr("");
    ask(&["--api", "anthropic", "--header", "x-team: red"]).code(0).stdout("2\n").stderr("");
    ask(&[]).code(0).stdout("3\n").stderr("");
    let requests = requests(server);
    let header = |index: usize, name: &str| {
        let mut values = requests[index].headers.iter().filter(|(each, _)| each == name);
        let value = values.next().map(|(_, value)| value.clone());
        assert_eq!(values.next(), None, "{name} is sent twice");
        value
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!((header(0, "x-one"), header(0, "authorization")), (some("1"), some("Basic abc")));
    assert_eq!((header(1, "x-team"), header(1, "x-cost")), (some("red"), some("7")));
    assert_eq!((header(2, "x-team"), header(2, "authorization")), (None, some("Bearer key-of-openai")));
}

#[test]
fn the_model_is_named_by_flag_then_variable_then_the_api() {
    let stage = Stage::new("models");
    let model = |args: &[&str], variables: &[(&str, &str)]| asked_of(&stage, args, variables).model;
    let everyone = ("COTTER_MODEL", "for-all");
    let for_anthropic = ("ANTHROPIC_MODEL", "for-anthropic");
    assert_eq!(model(&["--model", "typed"], &[ANTHROPIC, everyone, for_anthropic]), "typed");
    assert_eq!(model(&[], &[ANTHROPIC, everyone, for_anthropic]), "for-all");
    assert_eq!(model(&[], &[ANTHROPIC, for_anthropic]), "for-anthropic");
    assert_eq!(model(&[], &[OPENROUTER, for_anthropic]), "anthropic/claude-haiku-4.5");
    assert_eq!(model(&[], &[OPENROUTER, everyone]), "for-all");
    assert_eq!(model(&[], &[OPENAI, everyone]), "for-all");
    assert_eq!(model(&["--base-url", "{typed}"], &[everyone]), "for-all");
}

/// A server's list of models.
fn models(ids: &[&str]) -> Reply {
    let data: Vec<Value> = ids.iter().map(|id| json!({"id": id, "object": "model"})).collect();
    Reply::new(200, "application/json", json!({"object": "list", "data": data}).to_string())
}

#[test]
fn the_only_model_of_a_server_is_asked() {
    let stage = Stage::new("one model");
    let server = Server::start(vec![models(&["the-only-one"]), says(&["Done."])]);
    let mut command = stage.command(&["--base-url", &base_url(server.port()), "-p", "Hi."]);
    run(command.env("OPENAI_API_KEY", "test-key")).code(0).stdout("Done.\n").stderr("");
    let requests = requests(server);
    let asked: Vec<_> = requests.iter().map(|request| (&*request.method, &*request.path)).collect();
    assert_eq!(asked, [("GET", "/v1/models"), ("POST", "/v1/chat/completions")]);
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer test-key")));
    assert_eq!(requests[1].json()["model"], "the-only-one");
}

#[test]
fn without_one_model_to_ask_the_models_there_are_are_named() {
    let stage = Stage::new("models");
    let refused = Reply::new(404, "application/json", "{}");
    for (reply, why) in [
        (models(&["large", "small"]), "the server has 2 models: large, small"),
        (models(&[]), "the server has none"),
        (refused, "the server does not list its models: HTTP 404"),
        (Reply::new(200, "text/html", "<html>"), "the server does not list its models: HTTP 200"),
    ] {
        let server = Server::start(vec![reply]);
        let ran = run(&mut stage.command(&["--base-url", &base_url(server.port()), "-p", "Hi."]));
        requests(server);
        let expected = format!("cotter: no model: pass --model or set COTTER_MODEL ({why})\n");
        ran.code(2).stdout("").stderr(expected);
    }
}

/// Both were usage errors.
#[test]
fn a_refusal_to_list_the_models_ends_the_run_as_any_refusal_does() {
    let stage = Stage::new("models refused");
    let body = r#"{"error": {"message": "No."}}"#;
    for (status, code, said) in [
        (
            401,
            3,
            "no key was sent, and the server wants one (HTTP 401: No.): set OPENAI_API_KEY or pass --api-key-file",
        ),
        (503, 5, "the API is overloaded or limits the rate (HTTP 503: No.)"),
    ] {
        let server = Server::start(vec![Reply::new(status, "application/json", body)]);
        let ran = run(&mut stage.command(&["--base-url", &base_url(server.port()), "-p", "Hi."]));
        requests(server);
        ran.code(code).stdout("").stderr(format!("cotter: {said}\n"));
    }
}

/// It was shown and recorded.
#[test]
fn a_key_in_the_query_is_not_told_with_a_redirect() {
    let stage = Stage::new("redirect");
    let redirect =
        Reply::new(308, "text/plain", "").header("location: https://elsewhere.example/v1?key=s3cret");
    let server = Server::start(vec![redirect]);
    let url = format!("{}?key=s3cret", base_url(server.port()));
    let args = ["--base-url", &url, "--model", "m", "--record", "recording", "-p", "Hi."];
    let ran = run(&mut stage.command(&args));
    requests(server);
    ran.code(7).stdout("");
    ran.stderr(
        "cotter: HTTP 308: redirected to https://elsewhere.example/v1, which is not followed: \
         check the scheme and path of the base URL\n",
    );
    let recorded = stage.read("recording/01.response.http");
    assert!(recorded.contains("\nlocation: https://elsewhere.example/v1\n"), "{recorded}");
}

/// The whole URL was shown, and some servers take their key in its query.
#[test]
fn a_key_in_the_query_is_not_shown_with_an_answer_that_is_too_long() {
    let stage = Stage::new("models too long");
    let server = Server::start(vec![Reply::new(200, "application/json", " ".repeat(5 * 1024 * 1024))]);
    let url = base_url(server.port());
    let ran = run(&mut stage.command(&["--base-url", &format!("{url}?key=secret"), "-p", "Hi."]));
    server.stop();
    ran.code(7).stdout("");
    ran.stderr(format!("cotter: the answer of {url}/models is longer than 4194304 bytes\n"));
}

#[test]
fn no_key_is_told_to_anyone_but_its_server() {
    for (api, key_header) in [("openai", "authorization"), ("anthropic", "x-api-key")] {
        let stage = Stage::new("secret");
        stage.write("notes.txt", "1932\n");
        let overloaded = Reply::new(503, "application/json", r#"{"error":{"message":"busy"}}"#);
        let (call, answer) = match api {
            "openai" => (calls("call_1", "Bash", &json!({"command": "env; cat notes.txt"})), says(&["In 1932."])),
            _ => (
                Reply::new(
                    200,
                    "application/json",
                    json!({
                        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                        "content": [{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "env; cat notes.txt"}}],
                        "stop_reason": "tool_use", "usage": {"input_tokens": 1500, "output_tokens": 9},
                    })
                    .to_string(),
                ),
                says_in_messages("In 1932."),
            ),
        };
        let server = Server::start(vec![
            overloaded.header("retry-after-ms: 1").header("set-cookie: session=s3cret"),
            call.header("set-cookie: session=s3cret"),
            answer,
        ]);
        let url = format!("http://127.0.0.1:{}/v1?key=s3cret", server.port());
        let args = ["--api", api, "--base-url", &url, "--model", "m", "--verbose", "--record", "recording"];
        let mut command = stage.command(&args);
        command.args(["--output-format", "json", "--header", "X-Mine: s3cret", "-p", "When?"]);
        for (name, _) in [OPENROUTER, ANTHROPIC, OPENAI] {
            command.env(name, "s3cret-key");
        }
        let ran = run(command.env("COPY", "my s3cret-key").env("XDG_STATE_HOME", stage.path("state")));
        ran.code(0);
        let requests = requests(server);
        assert_eq!(requests.len(), 3);
        for request in &requests {
            assert!(request.header(key_header).unwrap().ends_with("s3cret-key"));
            assert_eq!(request.path.split('?').nth(1), Some("key=s3cret"));
            assert!(!String::from_utf8_lossy(&request.body).contains("s3cret"));
        }
        assert!(!ran.text().contains("s3cret") && !ran.stderr.contains("s3cret"), "{}", ran.report());
        let files = stage.all_files();
        let count = |part: &str| files.iter().filter(|(name, _)| name.contains(part)).count();
        assert_eq!((count("work/recording/"), count("work/state/cotter/sessions/")), (6, 1), "{api}");
        for (name, bytes) in &files {
            assert!(!String::from_utf8_lossy(bytes).contains("s3cret"), "{name}");
        }
    }
}

#[test]
fn a_refused_key_is_not_quoted() {
    let stage = Stage::new("refused key");
    let refusal = Reply::new(401, "application/json", r#"{"error":{"message":"Incorrect API key"}}"#);
    let server = Server::start(vec![refusal]);
    let mut command = stage.ask(server.port(), &["--verbose", "--output-format", "json", "-p", "Hi."]);
    let ran = run(command.env("OPENAI_API_KEY", "s3cret"));
    requests(server);
    ran.code(3);
    assert!(!ran.text().contains("s3cret") && !ran.stderr.contains("s3cret"), "{}", ran.report());
    assert_eq!(ran.json()["error"]["class"], "credentials");
}
