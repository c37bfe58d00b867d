//! A key goes to its server and nowhere else: not into what is printed, nor into any file, nor to any other
//! process, whoever quotes it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::process::{Pid, geteuid};

use crate::check::Api;
use crate::containment::skipped;
use crate::processes::{UNCONTAINED, children, wait_for};
use crate::server::{Gate, Reply};
use crate::stage::{Stage, run};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, results};

const KEY: &str = "sk-or-v1-0123456789abcdef/+\"\\x";

fn variable(api: Api) -> &'static str {
    if api == Api::Anthropic { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" }
}

fn story(name: &str, api: Api) -> Story {
    let args = ["-p", "Do it.", "--verbose", "--record", "../home/rec"];
    Story::new(name).api(api).env(variable(api), KEY).args(&args)
}

/// Neither stream nor any file but those named quotes the key, also not as JSON has it.
#[track_caller]
fn is_not_told(outcome: &Outcome, key: &str, but: &[&str]) {
    let quoted = serde_json::Value::from(key).to_string();
    let tells = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.contains(key) || text.contains(quoted.trim_matches('"'))
    };
    assert!(!tells(&outcome.stdout) && !tells(outcome.stderr.as_bytes()), "{}", outcome.report());
    let mut folders = vec![outcome.folder.parent().unwrap().to_owned()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if !but.iter().any(|name| path.ends_with(name)) {
                files += 1;
                let name = path.display();
                assert!(!tells(&fs::read(&path).unwrap()), "{name} tells the key\n{}", outcome.report());
            }
        }
    }
    // A session, and a recorded exchange.
    assert!(files >= 3, "{}", outcome.report());
}

#[test]
fn a_key_that_results_quote_is_written_nowhere() {
    for api in BOTH {
        let shown = [("call_1", "Read", r#"{"file_path": "key.txt"}"#)];
        let more = [
            ("call_2", "Bash", r#"{"command": "cat key.txt; cat key.txt >&2; echo \"[$COPY]\""}"#),
            ("call_3", "Grep", r#"{"pattern": "sk-or", "output_mode": "content"}"#),
            ("call_4", "Bash", r#"{"command": "env | grep -c sk-or; cat no/$(cat key.txt)"}"#),
        ];
        let story = story("results", api).file("key.txt", format!("{KEY}\n"));
        let story = story.env("COPY", KEY).args(&["--pass-env", "COPY", "--pass-env", variable(api)]);
        let story = story.reply(asks(api, "", &shown)).reply(asks(api, "Its text.", &more));
        let outcome = story.reply(answer(api, "Done.")).run();
        outcome.code(0).stdout("Done.\n");
        // The model reads what the file says: an edit needs it, and the server knows it.
        let results = results(api, &outcome.body(3));
        outcome.equal(&*results[0].1, &*format!("{KEY}\n"));
        assert!(results[1].1.ends_with("\n[]") && results[3].1.starts_with("0\n"), "{}", outcome.report());
        is_not_told(&outcome, KEY, &["key.txt"]);
    }
}

/// Where the key is known, what was left out of a recording is no difference to it.
#[test]
fn a_recording_without_the_key_is_replayed() {
    let stage = Stage::new("replay");
    stage.write("key.txt", KEY);
    let shown = [("call_1", "Read", r#"{"file_path": "key.txt"}"#)];
    let replies = vec![asks(Api::OpenAi, "", &shown), answer(Api::OpenAi, "Done.")];
    let server = crate::server::Server::start(replies);
    let mut command = stage.ask(server.port(), &["-p", "Do it.", "--record", "rec"]);
    run(command.env("OPENAI_API_KEY", KEY)).code(0);
    crate::stage::requests(server);
    for args in [&[][..], &["--replay-strict"]] {
        let mut command = stage.command(&["-p", "Do it.", "--replay", "rec"]);
        run(command.args(args).env("OPENAI_API_KEY", KEY)).code(0).stdout("Done.\n").stderr("");
    }
    // Another difference is told, and the key with it no more than before.
    stage.write("key.txt", format!("other {KEY}"));
    let ran = run(stage.command(&["-p", "Do it.", "--replay", "rec"]).env("OPENAI_API_KEY", KEY));
    ran.code(9);
    assert!(ran.stderr.contains("other (secret)") && !ran.stderr.contains("sk-or"), "{}", ran.report());
}

#[test]
fn a_key_that_a_server_quotes_is_written_nowhere() {
    let quoted = serde_json::Value::from(format!("the key {KEY} is no good")).to_string();
    let body = format!(r#"{{"type": "error", "error": {{"type": "x", "message": {quoted}}}}}"#);
    for api in BOTH {
        for (status, code) in [(400, 4), (401, 3), (403, 3), (500, 5), (302, 7)] {
            for format in ["text", "json"] {
                let reply = Reply::new(status, "application/json", &body)
                    .header(&format!("x-request-id: {KEY}"))
                    .header(&format!("location: http://127.0.0.1/?key={KEY}"));
                let story = story("errors", api).args(&["--output-format", format, "--max-retries", "0"]);
                let outcome = story.reply(reply).run();
                outcome.code(code);
                is_not_told(&outcome, KEY, &[]);
            }
        }
        let story = story("no JSON", api).reply(Reply::new(200, "text/html", format!("<p>{KEY}")));
        let outcome = story.args(&["--max-retries", "0"]).run();
        assert_ne!(outcome.code, Some(0));
        is_not_told(&outcome, KEY, &[]);
    }
}

/// A header that is typed stands in cotter's own command line, and goes no further.
#[test]
fn a_header_that_is_a_credential_is_written_nowhere() {
    let token = "tok-0123456789abcdef";
    for api in BOTH {
        // A typed header takes the place of the key's own.
        let own = if api == Api::Anthropic { "X-Api-Key:" } else { "Authorization: Bearer" };
        for name in [own, "X-Gateway:"] {
            let header = format!("{name} {token}");
            let call = [("call_1", "Bash", r#"{"command": "cat token.txt"}"#)];
            let story = story("header", api).file("token.txt", token).args(&["--header", &header]);
            let outcome = story.reply(asks(api, "", &call)).reply(answer(api, "Done.")).run();
            outcome.code(0);
            is_not_told(&outcome, token, &["token.txt"]);
        }
    }
}

/// A header's value may be a word that requests are made of.
#[test]
fn a_header_that_is_a_word_spoils_no_recording() {
    for api in BOTH {
        let story =
            story("word", api).args(&["--header", "x-mode: assistant", "--header", "x-kind: messages"]);
        let call = [("call_1", "Bash", r#"{"command": "true"}"#)];
        let outcome = story.reply(asks(api, "", &call)).reply(answer(api, "Done.")).run();
        let path = outcome.folder.join("../home/rec/02.request.json");
        let written: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        outcome.code(0).equal(written, outcome.body(2));
    }
}

#[test]
fn the_credentials_of_a_proxy_are_not_told() {
    let password = "pr0xy-pass-99";
    let stage = Stage::new("proxy");
    for (proxy, code) in [("127.0.0.1:1", 6), ("no such host", 2), ("127.0.0.1:port", 2)] {
        for args in [&["--verbose"][..], &["--output-format", "json"]] {
            let url = format!("http://me:{password}@{proxy}");
            let ask =
                ["-p", "Hi.", "--base-url", "https://api.example/v1", "--model", "m", "--max-retries", "0"];
            let mut command = stage.command(&ask);
            let ran = run(command.args(args).env("HTTPS_PROXY", &url));
            ran.code(code);
            assert!(!ran.report().replace(&url, "").contains(password), "{}", ran.report());
        }
    }
    let mut command = stage.command(&["sandbox", "--", "sh", "-c", "echo [$HTTPS_PROXY]"]);
    let ran = run(command.env("HTTPS_PROXY", format!("http://me:{password}@127.0.0.1:1")));
    ran.code(0).stdout("[]\n");
}

fn read(pid: Pid, name: &str) -> String {
    String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default()).into_owned()
}

#[test]
fn no_process_below_is_given_the_key_in_words_or_variables() {
    for api in BOTH {
        for by_file in [false, true] {
            for args in [&[][..], &UNCONTAINED] {
                let wait =
                    [("call_1", "Bash", r#"{"command": "echo >up; until test -e go; do sleep 0.01; done"}"#)];
                let story = Story::new("below").api(api).args(&["-p", "Do it."]).args(args);
                let story = match by_file {
                    true => story.env(variable(api), "").args(&["--api-key-file", "./key"]).file("key", KEY),
                    false => story.env(variable(api), KEY),
                };
                let story = if api == Api::Anthropic { story.args(&["--api", "anthropic"]) } else { story };
                let running = story.reply(asks(api, "", &wait)).reply(answer(api, "Done.")).start();

                wait_for("the command", || running.folder().join("up").exists().then_some(()));
                let cotter = Pid::from_raw(running.pid().try_into().unwrap()).unwrap();
                let mut all = vec![cotter];
                let mut next = 0;
                while let Some(&pid) = all.get(next) {
                    next += 1;
                    all.extend(children(pid));
                }
                // cotter, supervisor, worker, shell.
                assert!(all.len() >= 4, "{all:?}");
                for pid in &all {
                    assert!(!read(*pid, "cmdline").contains(KEY), "{pid}");
                    // What cotter was given, root alone sees.
                    let given = *pid == cotter && !by_file && geteuid().is_root();
                    assert_eq!(
                        read(*pid, "environ").contains(KEY),
                        given,
                        "{pid}: {}",
                        read(*pid, "cmdline")
                    );
                }
                fs::write(running.folder().join("go"), "").unwrap();
                running.finish().code(0).stdout("Done.\n");
            }
        }
    }
}

/// A process of the same user, with no more rights than cotter has, cannot look into it: nor is there a core
/// dump then.
#[test]
fn the_memory_of_cotter_is_closed_to_its_user() {
    let test = "the_memory_of_cotter_is_closed_to_its_user";
    // Root looks into everything by a capability.
    let unprivileged: &[&str] = match geteuid().is_root() {
        true => &["setpriv", "--bounding-set=-all", "--inh-caps=-all"],
        false => &["env"],
    };
    let start = |words: &[&str]| {
        let mut command = Command::new(unprivileged[0]);
        command.args(&unprivileged[1..]).args(words).stdin(Stdio::null()).stderr(Stdio::null());
        command
    };
    let can_look = |pid: u32| {
        start(&["sh", "-c", &format!("exec 3</proc/{pid}/mem")]).status().is_ok_and(|status| status.success())
    };
    let Ok(mut sleep) = start(&["sleep", "1000"]).spawn() else {
        return skipped(test, "there is no setpriv");
    };
    let sleeping = Pid::from_raw(sleep.id().try_into().unwrap()).unwrap();
    wait_for("the victim", || {
        (read(sleeping, "comm") == "sleep\n" || sleep.try_wait().unwrap().is_some()).then_some(())
    });
    let others = can_look(sleep.id());
    let _ = sleep.kill();
    sleep.wait().unwrap();
    if !others {
        return skipped(test, "nobody looks into a process of the same user here");
    }
    let gate = Arc::new(Gate::default());
    let reply = answer(Api::Anthropic, "Done.").held_by(&gate);
    let script = format!("#!/bin/sh\nexec {} '{}' \"$@\"\n", unprivileged.join(" "), crate::story::program());
    let folder = crate::story::new_folder("start", &["."]);
    let program = folder.join("start");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let story = Story::new("memory").anthropic().program(&program).args(&["-p", "Hi.", "--tools", ""]);
    let running = story.reply(reply).start();
    gate.wait_until_asked();
    assert!(!can_look(running.pid()));
    gate.open();
    running.finish().code(0).stdout("Done.\n");
    fs::remove_dir_all(Path::new(&folder)).unwrap();
}
