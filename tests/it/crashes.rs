//! Runs that are killed at moments drawn by lot, gone on with, and compared with a run that nobody disturbed.
//!
//! A trial is known by its seed and number. Few run each time. What a session must keep is looked at after each kill,
//! and what the next run tells the model of it. 1,000 trials, and where runs were met in them:
//!
//! `cargo build --release && COTTER_BINARY=$PWD/target/release/cotter cargo test --test it -- --ignored crash`

mod disks;
mod model;
mod order;
mod task;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check::{self, Api};
use crate::processes::random;
use crate::stage::{Ran, Stage, ran};
use crate::story::{DEADLINE, finish};
use crate::talk::{BOTH, results};
use model::{Model, Moment};
use task::{DONE, JOURNAL, Task, repeated};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";
const PROMPT: &str = "Do the task.";

/// The files of a workspace with their modes and bytes.
type Tree = BTreeMap<String, (u32, Vec<u8>)>;

/// When a run is killed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// So long after its start.
    After(Duration),
    /// So long after something that the server sees.
    At(Moment, Duration),
}

/// A session file and what its lines say.
#[derive(Debug, Default)]
struct Kept {
    exists: bool,
    /// Whether the last line broke off.
    is_torn: bool,
    messages: usize,
    /// The results, each with its call's id.
    results: Vec<(String, String)>,
    /// The calls without one.
    open: Vec<String>,
    has_answer: bool,
}

impl Kept {
    /// What the next run tells its user.
    fn notices(&self) -> String {
        let torn = "cotter: the last line of the session's file broke off: it is left out\n";
        let empty = "cotter: nothing was said in this session yet: it begins here\n";
        let is_empty = self.exists && self.messages == 0;
        [(torn, self.is_torn), (empty, is_empty)]
            .iter()
            .filter(|(_, is_told)| *is_told)
            .map(|(text, _)| *text)
            .collect()
    }
}

/// How often runs were met where.
type Figures = BTreeMap<&'static str, usize>;

struct Trial {
    name: String,
    stage: Stage,
    model: Model,
    figures: Figures,
}

impl Trial {
    fn new(name: String, task: &Arc<Task>) -> Trial {
        let stage = Stage::new(&name);
        for (file, text) in &task.before {
            stage.write(file, text);
        }
        fs::set_permissions(stage.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        Trial { name, stage, model: Model::start(Arc::clone(task)), figures: Figures::new() }
    }

    fn start(&self, api: Api, args: &[&str], moment: Option<Moment>) -> Child {
        let url = self.model.begin(api, moment);
        let mut command = self.stage.command(args);
        match api {
            Api::Anthropic => command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "test-key"),
            Api::OpenAi | Api::OpenRouter => {
                command.args(["--base-url", &format!("{url}/v1"), "--model", "test-model"])
            }
        };
        command.spawn().unwrap()
    }

    /// Runs until it is killed, or has ended before.
    fn run(&mut self, api: Api, when: Option<When>) -> Ran {
        let before = self.kept();
        let args = match before.exists {
            true => ["-r", ID, "-p", PROMPT],
            false => ["--session-id", ID, "-p", PROMPT],
        };
        let moment = match when {
            Some(When::At(moment, _)) => Some(moment),
            _ => None,
        };
        let mut child = self.start(api, &args, moment);
        match when {
            Some(When::After(delay)) => thread::sleep(delay),
            Some(When::At(_, delay)) => {
                let deadline = Instant::now() + DEADLINE;
                while !self.model.wait(Duration::from_millis(1)) && child.try_wait().unwrap().is_none() {
                    assert!(Instant::now() < deadline, "{}: the moment does not come", self.name);
                }
                thread::sleep(delay);
            }
            None => {}
        }
        if when.is_some() {
            child.kill().unwrap();
        }
        let ran = ran(finish(child, None), self.name.clone());
        self.check_requests(api, &before, &ran);
        ran
    }

    /// What the model was told is well formed, and all that the session held, with the open calls as interrupted.
    fn check_requests(&mut self, api: Api, before: &Kept, ran: &Ran) {
        let (requests, problems) = self.model.seen();
        let report = || format!("{}\n{}\nsession {:?}", self.name, ran.report(), self.session());
        assert_eq!(problems, [""; 0], "{}", report());
        check::requests(api, &requests).unwrap_or_else(|why| panic!("{why}\n{}", report()));
        let Some(first) = requests.first() else { return };
        let told = results(api, &first.json());
        let (old, interrupted) = told.split_at(before.results.len());
        let old: Vec<(&str, &str)> = old.iter().map(|(id, text, _)| (&**id, &**text)).collect();
        let kept: Vec<(&str, &str)> = before.results.iter().map(|(id, text)| (&**id, &**text)).collect();
        assert!(old == kept, "what was kept is told\n{}", report());
        let ids: Vec<&str> = interrupted.iter().map(|(id, _, _)| &**id).collect();
        let is_told = interrupted.iter().all(|(_, text, error)| *error && text.starts_with("interrupted: "));
        assert!(is_told && ids == before.open, "{ids:?} {:?}\n{}", before.open, report());
        *self.figures.entry("calls answered as interrupted").or_default() += ids.len();
    }

    fn session(&self) -> PathBuf {
        self.stage.root().join(format!("home/.local/state/cotter/sessions/{ID}.jsonl"))
    }

    fn kept(&self) -> Kept {
        let Ok(bytes) = fs::read(self.session()) else { return Kept::default() };
        let mut kept = Kept { exists: !bytes.is_empty(), ..Kept::default() };
        // What broke off is dropped; what lacks its end alone is whole.
        let last = bytes.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        kept.is_torn = !last.is_empty() && serde_json::from_slice::<Value>(last).is_err();
        let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        for line in lines.skip(1).collect::<Vec<Value>>() {
            kept.messages += 1;
            for part in line["parts"].as_array().unwrap() {
                match part["type"].as_str().unwrap() {
                    "call" => kept.open.push(part["id"].as_str().unwrap().to_owned()),
                    "result" => {
                        let text = part["text"].as_str().unwrap().to_owned();
                        let marked = text.strip_prefix("Error: ").map_or(text.clone(), str::to_owned);
                        assert_eq!(kept.open.remove(0), part["call_id"], "results are kept in order");
                        kept.results.push((part["call_id"].as_str().unwrap().to_owned(), marked));
                    }
                    text => kept.has_answer |= text == "text" && part["text"] == DONE,
                }
            }
        }
        kept
    }

    /// Notes where a run was met that did not end by itself.
    fn note(&mut self, ran: &Ran) {
        let kept = self.kept();
        let exists = self.session().exists();
        let what = match kept {
            _ if ran.signal.is_none() => "had ended before",
            Kept { exists: false, .. } if !exists => "before there was a session",
            Kept { exists: false, .. } => "in an empty session",
            Kept { messages: 0, .. } => "before the first message was kept",
            Kept { has_answer: true, .. } => "behind the last message",
            Kept { open, .. } if !open.is_empty() => "in a call",
            _ if self.model.seen().0.is_empty() => "before its first request",
            _ => "in a request or a reply",
        };
        *self.figures.entry(what).or_default() += 1;
    }

    /// Goes on until it is done.
    fn finish(&mut self, api: Api) -> Tree {
        let notices = self.kept().notices();
        let ran = self.run(api, None);
        ran.code(0).stdout(format!("{DONE}\n")).stderr(notices);
        let journal = self.stage.read(JOURNAL);
        assert_eq!(repeated(&journal), [""; 0], "calls that ran twice: {journal}\n{}", ran.report());
        self.tree()
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        for (name, bytes) in self.stage.all_files() {
            if let Some(name) = name.strip_prefix("work/").filter(|name| *name != JOURNAL) {
                let mode = fs::metadata(self.stage.path(name)).unwrap().permissions().mode();
                tree.insert(name.to_owned(), (mode, bytes));
            }
        }
        tree
    }
}

/// A run that nobody disturbs, and how long it took.
fn undisturbed(task: &Arc<Task>) -> (Tree, Duration) {
    let mut trial = Trial::new("undisturbed".to_owned(), task);
    let begin = Instant::now();
    let tree = trial.finish(Api::OpenAi);
    let time = begin.elapsed();
    assert_eq!(trial.model.seen().0.len(), task.replies());
    (tree, time)
}

/// When a run is killed that takes so long, spread over all that can be met.
fn draw(seed: u64, whole: Duration, replies: usize) -> When {
    let below = |salt: u64, limit: u64| random(seed ^ salt << 32) % limit;
    let reply = 1 + below(1, replies as u64) as usize;
    let micros = |most: u64| Duration::from_micros(below(2, most));
    match below(3, 8) {
        0 => When::After(micros(6_000)),
        1 | 2 => When::After(micros(whole.as_micros() as u64)),
        3 => When::At(Moment::Asked(reply), Duration::ZERO),
        4 => When::At(Moment::Streamed(reply, below(4, 1000) as usize), Duration::ZERO),
        5 => When::At(Moment::Replied(replies), micros(3_000)),
        6 => When::At(Moment::Replied(reply), micros(20_000)),
        _ => When::At(Moment::Replied(reply), micros(5_000)),
    }
}

/// Runs trials, of which every third is killed once more while it goes on.
fn run_trials(seed: u64, count: u64) -> Figures {
    let task = Arc::new(Task::new());
    let (expected, whole) = undisturbed(&task);
    let mut figures = Figures::new();
    for number in 0..count {
        let own = seed.wrapping_add(number << 8);
        let apis = [BOTH[random(own) as usize % 2], BOTH[random(own + 1) as usize % 2]];
        let kills = 1 + u64::from(number % 3 == 2);
        // A run that goes on has less before it.
        let moments: Vec<When> = (0..kills)
            .map(|kill| draw(own + kill, whole, if kill == 0 { task.replies() } else { 5 }))
            .collect();
        let mut trial = Trial::new(format!("seed {seed} trial {number} {apis:?} {moments:?}"), &task);
        for (moment, api) in moments.iter().zip(apis) {
            let ran = trial.run(api, Some(*moment));
            trial.note(&ran);
        }
        let tree = trial.finish(apis[1]);
        let names = |tree: &Tree| {
            tree.iter()
                .map(|(name, (mode, bytes))| format!("{name} {mode:o} {}", bytes.len()))
                .collect::<Vec<_>>()
        };
        assert!(tree == expected, "{}\n{:#?}\n{:#?}", trial.name, names(&tree), names(&expected));
        trial.figures.into_iter().for_each(|(what, count)| *figures.entry(what).or_default() += count);
    }
    figures
}

#[test]
fn a_run_that_is_killed_at_any_moment_and_gone_on_with_leaves_what_an_undisturbed_one_does() {
    run_trials(1, 24);
}

#[test]
#[ignore = "takes minutes: the test above with 1,000 trials, telling where runs were met"]
#[expect(clippy::print_stderr, reason = "the figures are what somebody runs this for")]
fn a_thousand_crashes_leave_what_an_undisturbed_run_does() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("CRASH_SEED").map_or(now.as_secs(), |text| text.parse().unwrap());
    eprintln!("CRASH_SEED={seed}");
    let begin = Instant::now();
    let mut figures = Figures::new();
    for hundred in 0..10 {
        for (what, count) in run_trials(seed.wrapping_add(hundred << 20), 100) {
            *figures.entry(what).or_default() += count;
        }
        eprintln!("{} trials in {:.0?}", (hundred + 1) * 100, begin.elapsed());
        figures.iter().for_each(|(what, count)| eprintln!("{count:5} {what}"));
    }
}
