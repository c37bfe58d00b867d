//! Many prompts at once, as `examples/many` has it: each gets one result, whatever becomes of the runs, and a start
//! that was killed is gone on with by the next.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::containment::{has_git, skipped};
use crate::processes::wait_for;
use crate::readme::block_behind;
use crate::server::{Reply, Request, Server};
use crate::stage::{Ran, Stage, base_url, calls, prompt, read_request, requests, run, says, serve};

/// How long is waited for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often each prompt was asked, and whether those that wait get their answer.
#[derive(Default)]
struct Asked {
    counts: Mutex<(HashMap<String, usize>, bool)>,
    changed: Condvar,
}

impl Asked {
    fn count(&self, prompt: &str) -> usize {
        let mut state = self.counts.lock().unwrap();
        let count = state.0.entry(prompt.to_owned()).or_default();
        *count += 1;
        let count = *count;
        self.changed.notify_all();
        if prompt.starts_with("wait") {
            drop(self.changed.wait_while(state, |state| !state.1).unwrap());
        }
        count
    }

    #[track_caller]
    fn wait_for(&self, what: impl Fn(&HashMap<String, usize>) -> bool) {
        let state = self.counts.lock().unwrap();
        let waited = self.changed.wait_timeout_while(state, PATIENCE, |state| !what(&state.0)).unwrap();
        assert!(!waited.1.timed_out(), "what is waited for does not come: {:?}", waited.0.0);
    }

    fn release(&self) {
        self.counts.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn all(&self) -> HashMap<String, usize> {
        self.counts.lock().unwrap().0.clone()
    }
}

/// A server that answers each prompt by its first word, as many at once as there are.
fn server() -> (u16, Arc<Asked>) {
    let asked = Arc::new(Asked::default());
    let shared = Arc::clone(&asked);
    let (port, _) = serve(move |listener: TcpListener| {
        for stream in listener.incoming() {
            let asked = Arc::clone(&shared);
            thread::spawn(move || answer(&mut stream.unwrap(), &asked));
        }
    });
    (port, asked)
}

fn answer(stream: &mut TcpStream, asked: &Asked) {
    let refusal = |status, text| {
        Reply::new(status, "application/json", json!({"error": {"message": text}}).to_string())
    };
    while let Some(request) = read_request(stream) {
        let said = prompt(&request);
        let count = asked.count(&said);
        let reply = match said.split(' ').next() {
            Some("refuse") => refusal(400, "no such thing"),
            Some("busy") => refusal(503, "busy"),
            Some("once") if count == 1 => refusal(503, "busy"),
            Some("drop") => return,
            Some("loop") => calls("call_1", "Read", &json!({"file_path": "."})),
            _ => says(&["answer to ", &said]),
        };
        if stream.write_all(&reply.wire()).is_err() {
            return;
        }
    }
}

/// The code of a prompt that begins with this word.
fn code(word: &str) -> u64 {
    match word {
        "refuse" => 4,
        "busy" => 5,
        "drop" => 6,
        "loop" => 20,
        _ => 0,
    }
}

/// Prompts that begin with these words, each with something that a shell or a JSON reader could trip over.
fn prompts(words: &[&str]) -> Vec<String> {
    let odd = "\"$HOME\" `id` 'q' \\ * é\u{2028}\t@x {}";
    words.iter().enumerate().map(|(number, word)| format!("{word} {number} {odd}\n\nnext")).collect()
}

/// The queue of these prompts; their ids are their places.
fn queue(prompts: &[String]) -> String {
    let line = |(number, text): (usize, &String)| {
        let message = json!({"role": "user", "content": text});
        json!({"id": format!("p{number}"), "type": "user", "message": message}).to_string() + "\n"
    };
    prompts.iter().enumerate().map(line).collect()
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/many").join(name)
}

/// A `PATH` on which there is no GNU parallel: another program has its name, as in moreutils.
fn path_without_parallel(stage: &Stage) -> OsString {
    let folder = stage.root().join("bin");
    fs::create_dir(&folder).unwrap();
    let other = folder.join("parallel");
    fs::write(&other, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap()
}

fn has_parallel(test: &str) -> bool {
    let version = Command::new("parallel").arg("--version").output();
    let has = version.is_ok_and(|output| output.stdout.starts_with(b"GNU parallel"));
    if !has {
        skipped(test, "GNU parallel is not installed");
    }
    has
}

/// Without it the script keeps no second start away.
fn has_flock(test: &str) -> bool {
    let has = has("flock");
    if !has {
        skipped(test, "there is no flock");
    }
    has
}

/// The script on `queue.jsonl` and `results.jsonl` of the stage.
fn script(stage: &Stage, port: u16, own: &[&str], flags: &[&str]) -> Command {
    let mut command = stage.shell(port, "\"$script\" \"$@\"");
    command.arg("script").args(own).args(["queue.jsonl", "results.jsonl"]);
    command.args(["--base-url", &base_url(port), "--model", "m", "--no-session-persistence"]).args(flags);
    command.env("script", example("cotter-queue")).env("COTTER", crate::story::program());
    command
}

/// The flags with which the words of `code` come to their codes at once.
const ONCE: [&str; 4] = ["--max-retries", "0", "--max-turns", "1"];

/// The results: each line is one, and no id has two.
#[track_caller]
fn results(stage: &Stage) -> BTreeMap<String, Value> {
    let text = stage.read("results.jsonl");
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let result: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let id = result["id"].as_str().unwrap().to_owned();
        assert!(found.insert(id, result).is_none(), "an id has two results: {line}");
    }
    found
}

/// Each of these prompts has one result, and it is the right one.
#[track_caller]
fn are_answered(stage: &Stage, prompts: &[String], ran: &Ran) {
    let results = results(stage);
    assert_eq!(results.len(), prompts.len(), "{}", ran.report());
    for (number, text) in prompts.iter().enumerate() {
        let result = &results[&format!("p{number}")];
        let code = code(text.split(' ').next().unwrap());
        assert_eq!(result["code"], code, "{text}\n{}", ran.report());
        assert_eq!(result["result"]["type"], "result");
        match code {
            0 => assert_eq!(result["result"]["result"], format!("answer to {text}")),
            code => assert_eq!(result["result"]["error"]["code"], code),
        }
    }
}

const WORDS: [&str; 12] =
    ["say", "refuse", "say", "busy", "say", "drop", "say", "loop", "say", "say", "once", "say"];
const SUMMARY: &str =
    "cotter-queue: 12 prompts, 8 with code 0, 1 with code 4, 1 with code 5, 1 with code 6, 1 with code 20\n";

#[test]
fn each_prompt_of_a_queue_gets_one_result_by_parallel() {
    if !has_parallel("each_prompt_of_a_queue_gets_one_result_by_parallel") {
        return;
    }
    let (stage, (port, asked)) = (Stage::new("queue"), server());
    let prompts = prompts(&WORDS);
    stage.write("queue.jsonl", queue(&prompts));
    let ran = run(&mut script(&stage, port, &["-j", "4"], &ONCE));
    are_answered(&stage, &prompts, ran.code(75));
    assert!(ran.stderr.ends_with(SUMMARY), "{}", ran.report());
    // What no second try can help is not tried a second time.
    for (text, count) in asked.all() {
        let twice = matches!(text.split(' ').next(), Some("busy" | "drop" | "once"));
        assert_eq!(count, if twice { 2 } else { 1 }, "{text}");
    }
}

#[test]
fn each_prompt_of_a_queue_gets_one_result_by_xargs() {
    let (stage, (port, _)) = (Stage::new("queue"), server());
    let prompts = prompts(&WORDS);
    stage.write("queue.jsonl", queue(&prompts));
    let path = path_without_parallel(&stage);
    let start = || {
        let mut command = script(&stage, port, &["-j", "4"], &ONCE);
        command.env("PATH", &path);
        run(&mut command)
    };
    let ran = start();
    ran.code(75);
    assert!(ran.stderr.ends_with(
        &SUMMARY.replace("8 with code 0", "7 with code 0").replace("1 with code 5", "2 with code 5")
    ));
    are_answered(&stage, &prompts, start().code(75));
    let left: Vec<_> = fs::read_dir(stage.root().join("tmp")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn another_start_runs_what_failed_for_a_reason_outside_the_prompt_and_what_is_named() {
    let (stage, (port, asked)) = (Stage::new("again"), server());
    let prompts = prompts(&["say", "once", "refuse", "loop"]);
    stage.write("queue.jsonl", queue(&prompts));
    let path = path_without_parallel(&stage);
    let start = |own: &[&str]| run(script(&stage, port, own, &ONCE).env("PATH", &path));
    start(&[]).code(75);
    start(&[]).code(1);
    start(&[]).code(1);
    start(&["-r", "4 20"]).code(1);
    are_answered(&stage, &prompts, &start(&[]));
    let counts = asked.all();
    assert_eq!([0, 1, 2, 3].map(|number: usize| counts[&prompts[number]]), [1, 2, 2, 2]);
}

#[test]
fn a_start_that_was_killed_is_gone_on_with() {
    if !has_flock("a_start_that_was_killed_is_gone_on_with") {
        return;
    }
    let (stage, (port, asked)) = (Stage::new("killed"), server());
    let prompts = prompts(&["say", "say", "say", "wait", "wait", "say", "loop", "say", "say", "say"]);
    stage.write("queue.jsonl", queue(&prompts));
    let path = path_without_parallel(&stage);
    // Two places, and both are held by prompts that wait: then no more than three can have ended.
    let mut command = script(&stage, port, &["-j", "2"], &ONCE);
    let mut child = command.env("PATH", &path).process_group(0).spawn().unwrap();
    asked.wait_for(|counts| counts.keys().filter(|text| text.starts_with("wait")).count() == 2);
    wait_for("three results", || (stage.read("results.jsonl").lines().count() >= 3).then_some(()));
    let group = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    child.wait().unwrap();
    // So a kill in the middle of a line leaves it.
    let torn = stage.read("results.jsonl") + r#"{"id":"p7","code":0,"result":{"type":"result"}"#;
    stage.write("results.jsonl", torn);
    asked.release();
    // What was killed may take a moment to be gone.
    run(stage.shell(port, "flock results.jsonl.lock true").env("PATH", &path)).code(0);
    let ran = run(script(&stage, port, &[], &ONCE).env("PATH", &path));
    are_answered(&stage, &prompts, ran.code(1));
    let counts = asked.all();
    for (number, text) in prompts.iter().enumerate() {
        let expected = if text.starts_with("wait") { 2 } else { 1 };
        assert_eq!(counts[text], expected, "{number}");
    }
}

#[test]
fn a_queue_that_is_wrong_is_refused_before_anything_is_asked() {
    let stage = Stage::new("wrong");
    let message = r#""type":"user","message":{"role":"user","content":"x"}}"#;
    let lines = [
        format!(r#"{{"id":"a",{message}"#),
        "hello".to_owned(),
        String::new(),
        format!(r#"{{"id": "a",{message}"#),
        format!(r#"{{"id":"a b",{message}"#),
    ];
    stage.write("queue.jsonl", lines.join("\n"));
    stage.write("results.jsonl", "kept");
    let head =
        r#"of the queue does not begin with {"id":"...", of letters, digits, dots, dashes and underscores"#;
    let refused = format!(
        "cotter-queue: line 2 {head}\ncotter-queue: line 4 of the queue has the id of line 1: a\n\
         cotter-queue: line 5 {head}\n"
    );
    run(&mut script(&stage, 9, &[], &[])).code(2).stderr(refused);
    assert_eq!(stage.read("results.jsonl"), "kept");
    fs::remove_file(stage.path("queue.jsonl")).unwrap();
    run(&mut script(&stage, 9, &[], &[]))
        .code(2)
        .stderr("cotter-queue: cannot read the queue \"queue.jsonl\"\n");
    run(&mut script(&stage, 9, &["-j", "many"], &[]))
        .code(2)
        .stderr("cotter-queue: -j \"many\" is no number of runs\n");
}

#[test]
fn a_line_that_is_no_message_costs_no_more_than_itself() {
    let (stage, (port, _)) = (Stage::new("line"), server());
    let good = queue(&prompts(&["say"]));
    stage
        .write("queue.jsonl", format!("{{\"id\": 7, \"type\":\n{good}{{\"id\":\"last\",\"type\":\"user\"}}"));
    let path = path_without_parallel(&stage);
    run(script(&stage, port, &[], &[]).env("PATH", &path)).code(1);
    let found = results(&stage);
    let codes: Vec<_> = found.iter().map(|(id, result)| (id.as_str(), result["code"].as_u64())).collect();
    assert_eq!(codes, [("7", Some(2)), ("last", Some(2)), ("p0", Some(0))]);
}

#[test]
fn a_run_that_a_signal_ends_has_its_code_and_no_result() {
    let stage = Stage::new("signal");
    stage.write("queue.jsonl", queue(&prompts(&["say", "say"])));
    let wrapper =
        "#!/bin/sh\n[ \"$QUEUE_ID\" = p0 ] && printf '{\"type\":\"result\",' && kill -9 $$\nexit 3\n";
    let wrapper = stage.write("wrapper", wrapper);
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let path = path_without_parallel(&stage);
    let ran = run(script(&stage, 9, &["-j", "1"], &[]).env("COTTER", &wrapper).env("PATH", &path));
    ran.code(75);
    let expected =
        "{\"id\":\"p0\",\"code\":137,\"result\":null}\n{\"id\":\"p1\",\"code\":3,\"result\":null}\n";
    assert_eq!(stage.read("results.jsonl"), expected);
    let summary = "cotter-queue: 2 prompts, 1 with code 3, 1 with code 137\n";
    assert!(ran.stderr.ends_with(summary), "{}", ran.report());
}

#[test]
fn a_second_start_at_the_same_time_is_refused() {
    if !has_flock("a_second_start_at_the_same_time_is_refused") {
        return;
    }
    let (stage, (port, asked)) = (Stage::new("twice"), server());
    let prompts = prompts(&["wait"]);
    stage.write("queue.jsonl", queue(&prompts));
    let path = path_without_parallel(&stage);
    let mut first = script(&stage, port, &[], &ONCE);
    let mut first = first.env("PATH", &path).spawn().unwrap();
    asked.wait_for(|counts| !counts.is_empty());
    let refused = "cotter-queue: \"./results.jsonl\" is in use by another start, or by runs that one left\n";
    let second = run(script(&stage, port, &[], &ONCE).env("PATH", &path));
    second.code(2).stderr(refused);
    asked.release();
    assert!(first.wait().unwrap().success());
    are_answered(&stage, &prompts, &second);
}

/// In the place of ssh: the host, and the words of a command. It is run in a folder of the host's and with the
/// environment of a login there.
const SSH: &str = r#"#!/bin/sh
while case $1 in -*) true ;; *) false ;; esac do shift; done
host=$1 && shift
[ "$1" != -- ] || shift
mkdir -p "$hosts/$host" && cd "$hosts/$host" || exit 255
echo x >>logins
[ "$host" != broken ] || exit 255
exec env -i SHELL=/bin/sh PATH="$PATH" HOME="$PWD" TMPDIR="$TMPDIR" sh -c "$*"
"#;

#[test]
fn a_queue_is_run_by_many_machines_and_one_that_is_broken_costs_nothing() {
    if !has_parallel("a_queue_is_run_by_many_machines_and_one_that_is_broken_costs_nothing") {
        return;
    }
    let (stage, (port, _)) = (Stage::new("hosts"), server());
    let prompts = prompts(&["say", "say", "refuse", "say", "say", "say"]);
    stage.write("queue.jsonl", queue(&prompts));
    let ssh = stage.write("ssh", SSH);
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let hosts = stage.root().join("hosts");
    let mut command = script(&stage, port, &["-j", "1"], &ONCE);
    command.env("PARALLEL", format!("--ssh {ssh} -S 1/one,1/two,1/broken")).env("hosts", &hosts);
    let ran = run(&mut command);
    are_answered(&stage, &prompts, ran.code(1));
    for host in ["one", "two", "broken"] {
        assert!(hosts.join(host).join("logins").exists(), "{host} had nothing to do\n{}", ran.report());
    }
}

/// Whether there is a program of this name.
fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

#[test]
fn the_queue_in_readme_is_run() {
    let (stage, (port, _)) = (Stage::new("readme"), server());
    let path = path_without_parallel(&stage);
    symlink(crate::story::program(), stage.root().join("bin/cotter")).unwrap();
    symlink(example("cotter-queue"), stage.root().join("bin/cotter-queue")).unwrap();
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let commands = block_behind(&readme, "<!-- queue -->", "sh");
    stage.write("prompts.txt", "say \"this\"\nsay that\n");
    stage.write("queue.jsonl", queue(&["say \"this\"".to_owned(), "say that".to_owned()]));
    let has_jq = has("jq");
    if !has_jq {
        skipped("the_queue_in_readme_is_run", "there is no jq: the rest is run without its two lines");
    }
    let commands: String =
        commands.split_inclusive('\n').filter(|line| has_jq || !line.starts_with("jq")).collect();
    let mut command = stage.shell(port, &commands);
    let ran = run(command.env("PATH", path).env("OPENAI_BASE_URL", base_url(port)).env("COTTER_MODEL", "m"));
    ran.code(0).stderr("cotter-queue: 2 prompts, 2 with code 0\n");
    let found = results(&stage);
    let mut answers: Vec<_> =
        found.values().map(|result| result["result"]["result"].as_str().unwrap()).collect();
    answers.sort();
    assert_eq!(answers, ["answer to say \"this\"", "answer to say that"]);
}

#[test]
fn prompts_that_edit_files_work_in_worktrees_of_their_own() {
    if !has_git("prompts_that_edit_files_work_in_worktrees_of_their_own") {
        return;
    }
    let stage = Stage::new("worktrees");
    let path = path_without_parallel(&stage);
    let cotter = stage.root().join("bin/cotter");
    fs::write(&cotter, "#!/bin/sh\ncat >/dev/null\necho $QUEUE_ID >>same\n[ $QUEUE_ID != p1 ] || exit 5\n")
        .unwrap();
    fs::set_permissions(&cotter, fs::Permissions::from_mode(0o755)).unwrap();
    let git = "git init -q . && git config user.name N && git config user.email e@example.org && \
               git commit -q --allow-empty -m first";
    run(&mut stage.shell(9, git)).code(0);
    stage.write("queue.jsonl", queue(&prompts(&["say", "say", "say"])));
    for _ in 0..2 {
        let mut command = script(&stage, 9, &["-j", "3"], &[]);
        run(command.env("PATH", &path).env("COTTER", example("in-worktree"))).code(75);
    }
    let log = run(&mut stage
        .shell(9, "for id in p0 p1 p2; do git log --format=%s queue/$id; git show queue/$id:same; done"));
    log.code(0).stdout(
        "queue: p0, code 0\nfirst\np0\nqueue: p1, code 5\nqueue: p1, code 5\nfirst\np1\np1\nqueue: p2, code 0\nfirst\np2\n",
    );
}

/// The arguments of the container of `job.yaml`, as Kubernetes gives them to the pod of this index.
fn arguments_of_job(index: u32) -> Vec<String> {
    let text = fs::read_to_string(example("job.yaml")).unwrap();
    let lines = text.lines().map(str::trim).skip_while(|line| *line != "args:").skip(1);
    let words = lines.map_while(|line| line.strip_prefix("- ")).map(|word| word.trim_matches('"'));
    let index = index.to_string();
    words.map(|word| word.replace("$(JOB_COMPLETION_INDEX)", &index)).collect()
}

#[test]
fn a_pod_of_the_job_answers_the_prompt_of_its_index() {
    let stage = Stage::new("job");
    for place in ["queue", "results"] {
        fs::create_dir(stage.root().join(place)).unwrap();
    }
    fs::write(stage.root().join("queue/17"), "What is in it?\n").unwrap();
    let server = Server::start(vec![says(&["Nothing."])]);
    let inside = |word: String| match word.strip_prefix('/') {
        Some(path) => stage.root().join(path).into_os_string().into_string().unwrap(),
        None => word,
    };
    let arguments: Vec<String> = arguments_of_job(17).into_iter().map(inside).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = run(&mut stage.ask(server.port(), &arguments));
    ran.code(0).stdout("").stderr("");
    let result: Value =
        serde_json::from_slice(&fs::read(stage.root().join("results/17.json")).unwrap()).unwrap();
    assert_eq!((&result["type"], &result["result"]), (&json!("result"), &json!("Nothing.")));
    let [request]: [Request; 1] = requests(server).try_into().unwrap();
    assert_eq!(prompt(&request), "What is in it?");
}

#[test]
fn the_job_gives_up_an_index_by_every_code_that_another_pod_would_end_with_too() {
    let text = fs::read_to_string(example("job.yaml")).unwrap();
    let (_, list) = text.split_once("values: [").unwrap();
    let given_up: Vec<&str> = list.split(']').next().unwrap().split(", ").collect();
    let manual = run(&mut Stage::new("manual").command(&["--man"]));
    let section = manual.text().split(".SH EXIT STATUS\n").nth(1).unwrap().split(".SH ").next().unwrap();
    let codes = section.split(".TP\n.B ").skip(1).map(|row| row.split('\n').next().unwrap());
    let others = ["0", "1", "5", "6", "10"];
    assert_eq!(given_up, codes.filter(|code| !others.contains(code)).collect::<Vec<_>>());
}
