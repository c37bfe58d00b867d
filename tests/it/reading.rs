//! What Read makes of files that are odd: of immense ones, and of what is no file at all. Nothing is waited for
//! and nothing is held in memory but what is shown.

use std::fs::{self, OpenOptions};
use std::sync::Arc;

use serde_json::json;

use crate::check::Api;
use crate::server::Gate;
use crate::story::{Outcome, Story};
use crate::talk::{answer, asks, results};

const API: Api = Api::Anthropic;

/// A reply that asks to read each of these.
fn reads(calls: &[serde_json::Value]) -> crate::server::Reply {
    let ids: Vec<String> = (1..=calls.len()).map(|number| format!("call_{number}")).collect();
    let arguments: Vec<String> = calls.iter().map(ToString::to_string).collect();
    let calls: Vec<_> =
        ids.iter().zip(&arguments).map(|(id, arguments)| (&**id, "Read", &**arguments)).collect();
    asks(API, "", &calls)
}

fn texts(outcome: &Outcome) -> Vec<(String, bool)> {
    results(API, &outcome.body(2)).into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

fn refused(text: &str) -> (String, bool) {
    (text.to_owned(), true)
}

/// The peak of memory, in KiB, of a run that reads twice in a file of 3,000 lines and as many bytes as this.
fn peak_of_reading(bytes: u64) -> u64 {
    let [start, end] = [(); 2].map(|()| Arc::new(Gate::default()));
    let calls = [json!({"file_path": "log"}), json!({"file_path": "log", "offset": 2999})];
    let story = Story::new("peak").api(API).file("log", "a line\n".repeat(3000)).args(&["-p", "Read it."]);
    let story = story.reply(reads(&calls).held_by(&start));
    let running = story.reply(answer(API, "Read.").held_by(&end)).start();
    start.wait_until_asked();
    let log = OpenOptions::new().write(true).open(running.folder().join("log")).unwrap();
    log.set_len(bytes.max(log.metadata().unwrap().len())).unwrap();
    start.open();
    end.wait_until_asked();
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    end.open();
    running.finish().code(0).stdout("Read.\n").request_count(2);
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn a_file_of_ten_gigabytes_takes_no_more_memory_than_a_small_one() {
    let [small, large] = [0, 10 << 30].map(peak_of_reading);
    assert!(large < small + 1024, "{small} and {large} KiB");
}

/// The peak of memory, in KiB, of a run that reads a file of 50 kB so many times, and how much longer its last request
/// is than its first, in KiB too.
fn peak_of_a_history(turns: usize) -> (u64, u64) {
    let end = Arc::new(Gate::default());
    let text = format!("{}\n", "x".repeat(99)).repeat(499);
    let story = Story::new("history").api(API).file("large.txt", text).args(&["-p", "Read it."]);
    let call = [json!({"file_path": "large.txt"})];
    let story = (0..turns).fold(story, |story, _| story.reply(reads(&call)));
    let running = story.reply(answer(API, "Read.").held_by(&end)).start();
    end.wait_until_asked();
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    end.open();
    let outcome = running.finish();
    outcome.code(0).stdout("Read.\n").request_count(turns + 1);
    let history = outcome.sent(turns + 1).len() - outcome.sent(1).len();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    (peak.trim_end_matches("kB").trim().parse().unwrap(), history as u64 / 1024)
}

/// A request is sent from the texts that are kept of it: they, and what they are made from, are all that grows. A third
/// copy would be more than what is allowed for here beside the two.
#[test]
fn a_history_takes_twice_its_size_in_memory_and_no_more() {
    let [(base, short), (peak, long)] = [1, 30].map(peak_of_a_history);
    assert!(long > 1400 && peak < base + 2 * (long - short) + 1024, "{base} and {peak} KiB for {long} KiB");
}

#[test]
fn what_is_no_file_is_refused_and_never_waited_for() {
    let procfs = "is on procfs, which is not read: it shows other processes' secrets";
    let cases = [
        ("/dev/zero", refused("/dev/zero is a device, not a file")),
        // The story's standard input is a pipe.
        ("/dev/stdin", refused("/dev/stdin is a FIFO, not a file")),
        // Others, such as environ, the kernel itself keeps from an ordinary user: nobody may look into cotter.
        ("/proc/self/status", refused(&format!("/proc/self/status {procfs}"))),
        ("/proc/self/fd/0", refused("/proc/self/fd/0 is a FIFO, not a file")),
        ("/proc/self/maps", refused(&format!("/proc/self/maps {procfs}"))),
        (".", refused(". is a directory, not a file; it holds: notes.txt")),
    ];
    let calls: Vec<_> = cases.iter().map(|(path, _)| json!({"file_path": path})).collect();
    let story = Story::new("no-file").api(API).file("notes.txt", "1932").stdin("more").args(&["-p", "Read."]);
    let outcome = story.reply(reads(&calls)).reply(answer(API, "Read.")).run();
    outcome.code(0).equal(texts(&outcome), cases.map(|(_, expected)| expected).to_vec());
}
