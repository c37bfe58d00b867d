//! One run of the matrix: it is started, its memory is watched, and what was seen of it is told.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::replies::{BOTH_MARKS, FIRST_MARK};
use crate::check::Api;
use crate::server::Reply;
use crate::stage::{Stage, ran};
use crate::story::{Story, finish};

/// A server of this machine.
pub const NEAR: Option<&str> = None;
/// A server that is not of this machine, though it is reached here.
pub const FAR: Option<&str> = Some("http://models.example");

const PROMPT: [&str; 4] = ["--max-retries", "1", "-p", "Mark it."];

/// What was seen of a run.
#[derive(Debug)]
pub struct Seen {
    pub code: i32,
    /// How often the request that the fault struck was sent, or was to be.
    pub tries: usize,
    /// The error that ended it, without what differs from run to run.
    pub says: String,
    /// How many bytes the server could send.
    pub sent: u64,
    pub seconds: f64,
    pub peak_mib: u64,
    stdout: Vec<u8>,
    marks: String,
    report: String,
}

impl Seen {
    /// The run had its answer after so many tries, and each call has run once.
    pub fn answered(self, tries: usize) -> Seen {
        let found = (self.code, self.tries, &*self.stdout, &*self.marks);
        assert_eq!(found, (0, tries, &b"Told.\n"[..], BOTH_MARKS), "{}", self.report);
        self
    }

    /// The run ended with this code, said so in one line, and the call before the fault has run once.
    pub fn failed(self, code: i32) -> Seen {
        let found = (self.code, &*self.stdout, &*self.marks);
        assert_eq!(found, (code, &b""[..], FIRST_MARK), "{}", self.report);
        self
    }

    /// The same where there was no turn before the fault.
    pub fn failed_at_once(self, code: i32) -> Seen {
        assert_eq!((self.code, &*self.stdout, &*self.marks), (code, &b""[..], ""), "{}", self.report);
        self
    }
}

/// A run whose server gives these replies.
pub fn serve(name: &str, api: Api, host: Option<&str>, args: &[&str], replies: Vec<Reply>) -> Seen {
    let story = Story::new(name).api(api).args(args).args(&PROMPT);
    let story = host.into_iter().fold(story, |story, host| {
        let path = if api == Api::Anthropic { "" } else { "/v1" };
        story.host(&format!("{host}{path}"))
    });
    let begun = Instant::now();
    let running = replies.into_iter().fold(story, Story::reply).start();
    let pid = running.pid();
    let (outcome, peak_mib) = watched(pid, || running.finish());
    let seconds = begun.elapsed().as_secs_f64();
    let requests = outcome.requests.len();
    // The turn before is no try, nor is the turn after a reply.
    let turns = if outcome.code == Some(0) { 2 } else { 1 };
    let tries = 1 + outcome.stderr.matches(": asking again in ").count();
    assert_eq!(requests, tries + turns, "{}", outcome.report());
    Seen {
        code: outcome.code.unwrap_or(-1),
        tries,
        says: said(&outcome.stderr),
        sent: outcome.sent,
        seconds,
        peak_mib,
        stdout: outcome.stdout.clone(),
        marks: fs::read_to_string(outcome.folder.join("log.txt")).unwrap_or_default(),
        report: outcome.report(),
    }
}

/// A run with a server of another kind at this URL, which is without `/v1`.
pub fn ask(api: Api, url: &str, args: &[&str], variables: &[(&str, &str)]) -> Seen {
    let stage = Stage::new("fault");
    let mut command = match api {
        Api::Anthropic => {
            let mut command = stage.command(args);
            command.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", "test-key");
            command
        }
        Api::OpenAi | Api::OpenRouter => {
            let mut command = stage.command(&["--base-url", &format!("{url}/v1"), "--model", "test-model"]);
            command.args(args);
            command
        }
    };
    command.args(PROMPT).envs(variables.iter().copied());
    let (ran, seconds, peak_mib) = run(&mut command);
    Seen {
        code: ran.code.unwrap_or(-1),
        tries: 1 + ran.stderr.matches(": asking again in ").count(),
        says: said(&ran.stderr),
        sent: 0,
        seconds,
        peak_mib,
        marks: fs::read_to_string(stage.path("log.txt")).unwrap_or_default(),
        report: ran.report(),
        stdout: ran.stdout,
    }
}

fn run(command: &mut Command) -> (crate::stage::Ran, f64, u64) {
    let begun = Instant::now();
    let child = command.spawn().expect("the program can be started");
    let pid = child.id();
    let (ran, peak_mib) = watched(pid, || ran(finish(child, None), format!("{command:?}")));
    (ran, begun.elapsed().as_secs_f64(), peak_mib)
}

/// Does something to the end of a process, and tells the peak of its memory in MiB. The kernel keeps the peak as
/// long as the process has memory at all, so only what it took in its last moment can be missed.
fn watched<T>(pid: u32, until_end: impl FnOnce() -> T) -> (T, u64) {
    let peak_kib = AtomicU64::new(0);
    let found = thread::scope(|scope| {
        scope.spawn(|| {
            while let Some(kib) = peak_of(pid) {
                peak_kib.fetch_max(kib, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(2));
            }
        });
        until_end()
    });
    (found, peak_kib.into_inner().div_ceil(1024))
}

/// The peak so far in KiB; none once the process has ended. In the first moment after it was started its memory
/// may still be that of the tests.
fn peak_of(pid: u32) -> Option<u64> {
    if fs::read_link(format!("/proc/{pid}/exe")).ok()? == fs::read_link("/proc/self/exe").ok()? {
        return Some(0);
    }
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim_end_matches("kB").trim().parse().ok()
}

/// The error in the last line, with the parts left out that another machine or run words otherwise.
fn said(stderr: &str) -> String {
    let last = stderr.lines().last().unwrap_or("(nothing)");
    let text = last.strip_prefix("cotter: ").unwrap_or(last);
    let mut text = text.strip_suffix("; gave up after 2 attempts").unwrap_or(text).to_owned();
    for (from, to, instead) in [("127.0.0.1:", "", "PORT"), ("could not be looked up: ", " (check", "…")] {
        let Some(start) = text.find(from).map(|at| at + from.len()) else { continue };
        let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
        let length = if to.is_empty() { digits } else { text[start..].find(to).unwrap_or_default() };
        text.replace_range(start..start + length, instead);
    }
    // A pipe would end the cell.
    text.replace('|', "\\|").replace(super::links::UNKNOWN_NAME, "NAME.invalid")
}
