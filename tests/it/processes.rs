//! Tools with real processes: what they give the model, what it takes to run them, and that none of
//! them outlives the program, however it ends.
//!
//! The processes of one run are known by a word in their environment, whatever they fork and whichever
//! session they open. Nothing here sleeps for something to happen: a condition is looked at until it holds.

mod bash;
mod earlier;
mod edits;
mod ends;
mod kills;
mod programs;
mod shells;
mod terminal;
mod worker;

pub use ends::random;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::server::Reply;
use crate::story::{Outcome, Running, Story};

/// How long anything here may take. Nothing waits this long when all is well.
const LIMIT: Duration = Duration::from_secs(20);

/// What the model says in the end.
pub const DONE: &str = "Done.\n";

/// A call of Bash.
pub fn bash(command: &str) -> Value {
    json!({"name": "Bash", "input": {"command": command}})
}

/// A call of Bash that is given this much time.
fn bash_for(milliseconds: u64, command: &str) -> Value {
    json!({"name": "Bash", "input": {"command": command, "timeout": milliseconds}})
}

/// A reply that asks for calls; its number makes their ids unique.
pub fn asking(number: usize, calls: &[Value]) -> Reply {
    let blocks = calls.iter().enumerate().map(|(index, call)| {
        let id = format!("toolu_{number}_{index}");
        json!({"type": "tool_use", "id": id, "name": call["name"], "input": call["input"]})
    });
    reply(number, blocks.collect(), "tool_use")
}

/// The reply that ends a run.
pub fn done() -> Reply {
    reply(0, vec![json!({"type": "text", "text": "Done."})], "end_turn")
}

fn reply(number: usize, content: Vec<Value>, stop_reason: &str) -> Reply {
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "test-model",
        "content": content, "stop_reason": stop_reason, "stop_sequence": null,
        "usage": {"input_tokens": 20_000, "output_tokens": 20},
    });
    Reply::new(200, "application/json", message.to_string())
}

/// A story whose model asks for nothing yet.
pub fn bare(name: &str) -> Story {
    Story::new(name).anthropic().args(&["-p", "Do it."])
}

/// Tools may look into the processes above them, and the workspace may go.
pub const UNCONTAINED: [&str; 1] = ["--dangerously-skip-permissions"];

/// A story whose model asks for these calls, one after the other, and is done then.
pub fn story(name: &str, calls: &[Value]) -> Story {
    let asked = (1..).zip(calls).map(|(number, call)| asking(number, std::slice::from_ref(call)));
    asked.fold(bare(name), Story::reply).reply(done())
}

/// A result as the model reads it: its text, and whether it is an error.
pub type Told = (String, bool);

pub fn ok(text: &str) -> Told {
    (text.to_owned(), false)
}

pub fn failed(text: &str) -> Told {
    (text.to_owned(), true)
}

/// All results of a run, as its last request tells them.
#[track_caller]
pub fn results(outcome: &Outcome) -> Vec<Told> {
    let body = outcome.body(outcome.requests.len());
    let messages = body["messages"].as_array().unwrap().iter();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|block| (text_of(&block["content"]), block["is_error"] == true)).collect()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().map(|part| part["text"].as_str().unwrap()).collect(),
        content => content.as_str().unwrap().to_owned(),
    }
}

/// The story is run to its good end and gives these results; nothing of it is left then.
#[track_caller]
fn tells(story: Story, expected: &[Told]) {
    let outcome = Run::start(story).finish();
    outcome.code(0).stdout(DONE).equal(results(&outcome), expected.to_vec());
}

/// A word in the environment by which all processes of one run are found.
struct Mark(String);

impl Mark {
    const NAME: &str = "STORY_MARK";

    fn new() -> Mark {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        Mark(format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)))
    }

    /// Every living process of the run: its number and its command line. One in the middle of `exec`
    /// may be missing.
    fn processes(&self) -> Vec<(Pid, String)> {
        let word = format!("{}={}", Mark::NAME, self.0);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let found = entries.filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let environment = fs::read(entry.path().join("environ")).ok()?;
            if !environment.split(|byte| *byte == 0).any(|variable| variable == word.as_bytes()) {
                return None;
            }
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            Some((pid, String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned()))
        });
        found.collect()
    }
}

impl Drop for Mark {
    /// After a failure something may be left. What forks here does so only a number of times.
    fn drop(&mut self) {
        for (pid, _) in self.processes() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// A story that runs.
struct Run {
    running: Running,
    mark: Mark,
}

impl Run {
    fn start(story: Story) -> Run {
        let mark = Mark::new();
        Run { running: story.env(Mark::NAME, &mark.0).start(), mark }
    }

    fn cotter(&self) -> Pid {
        Pid::from_raw(self.running.pid().try_into().unwrap()).unwrap()
    }

    /// The process below cotter, once there is one.
    fn supervisor(&self) -> Pid {
        wait_for("the supervisor", || only_child(self.cotter()))
    }

    /// The process below the supervisor, once there is one.
    fn worker(&self) -> Pid {
        let supervisor = self.supervisor();
        // Before it there may be one that tries whether there are namespaces.
        wait_for("the worker", || only_child(supervisor).filter(|child| is_worker(*child)))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.running.folder().join(name)
    }

    /// What a command has written to a file in the workspace, once that is a whole line.
    fn line_in(&self, name: &str) -> String {
        wait_for(name, || {
            let text = fs::read_to_string(self.file(name)).ok()?;
            text.strip_suffix('\n').map(str::to_owned)
        })
    }

    /// Makes a file that a command waits for.
    fn let_go(&self, name: &str) {
        fs::write(self.file(name), "").unwrap();
    }

    /// What lies in the folder in which private temporary folders are made.
    fn temp_folders(&self) -> Vec<PathBuf> {
        temp_folders(self.running.folder())
    }

    /// Waits for the end and checks that nothing is left by then: neither a process nor its folder.
    #[track_caller]
    fn finish(self) -> Outcome {
        let outcome = self.running.finish();
        outcome.equal(self.mark.processes(), Vec::new());
        outcome.equal(temp_folders(&outcome.folder), Vec::new());
        outcome
    }
}

fn temp_folders(workspace: &Path) -> Vec<PathBuf> {
    let folder = workspace.parent().unwrap().join("tmp");
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Looks until there is what is looked for.
#[track_caller]
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited for {what} in vain");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The children of all threads of a process.
pub fn children(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().map(pid_in).collect::<Vec<_>>()).collect()
}

fn is_worker(pid: Pid) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.starts_with(b"cotter-worker\0")
}

fn only_child(pid: Pid) -> Option<Pid> {
    match children(pid)[..] {
        [child] => Some(child),
        _ => None,
    }
}

fn pid_in(digits: &str) -> Pid {
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}

/// A number in `/proc/PID/status`, such as `Threads` or `VmHWM`.
pub fn status_number(pid: Pid, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap().split_whitespace().next().unwrap().parse().unwrap()
}

/// The session of a process: 0 where its leader is outside the tests' process namespace, as it can be in a
/// container.
fn session(pid: Pid) -> i32 {
    stat_word(pid, 3).unwrap().parse().unwrap()
}

/// Whether a process runs no more, be it that its parent has not noticed yet.
fn has_ended(pid: Pid) -> bool {
    stat_word(pid, 0).is_none_or(|state| state == "Z" || state == "X")
}

/// A word of `/proc/PID/stat`, counted from 0 behind the process's name.
fn stat_word(pid: Pid, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(index).map(str::to_owned)
}
