//! The fault matrix: what can go wrong on the way to a reply, where it strikes, and what comes of it.
//!
//! Each row is run against both APIs, with a turn before it whose call leaves a mark in a file: once so that the
//! fault stays, where it is tried again also once so that it passes. No call may run twice, no run may hang or
//! grow without bound. The table in README is these rows: what is the same in every run is compared with it,
//! what is measured has bounds and is written down by the run that prints the table (`BLESS=1`).

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;

use crate::check::Api;
use crate::readme;
use crate::server::{Ending, Framing, Reply, Server};
use crate::stage::{Stage, base_url, requests, run};
use crate::story::Story;
use crate::talk::BOTH;

mod links;
mod replies;
mod rows;
mod runs;

use runs::Seen;

/// A fault and what is right to do about it.
struct Row {
    /// What goes wrong.
    fault: &'static str,
    /// Where it strikes.
    place: &'static str,
    /// How it is made.
    way: Way,
    /// What has to become of it.
    verdict: Verdict,
    /// The exit code where the fault stays.
    code: i32,
    /// Arguments that it needs.
    args: &'static [&'static str],
    /// The APIs that it can strike.
    apis: &'static [Api],
    /// The most memory that the run may take, in MiB.
    most_mib: u64,
}

/// How a fault is made.
enum Way {
    /// Each of these replies is one of it.
    Replies(fn(Api) -> Vec<Reply>),
    /// The same, of a server that is not on this machine.
    Elsewhere(fn(Api) -> Vec<Reply>),
    /// On the way to the server.
    Link(fn(Api, Case) -> Seen),
}

/// What is right to do about a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Nothing is lost: the reply is whole.
    Harmless,
    /// Asking again may help.
    Again,
    /// Asking again may help; that the fault passes cannot be shown here.
    AgainUnseen,
    /// Asking again does not help.
    Final,
}

/// Whether the fault meets every attempt or the first alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Stays,
    Passes,
}

/// How long a run may take. Waiting takes five seconds of it at most, the rest is for a machine under load.
const MOST_SECONDS: f64 = 40.0;

/// How many runs are under way at once: most of them wait. Those at the table's end do not.
const AT_ONCE: usize = 12;
const AT_ONCE_FROM_THE_END: usize = 2;

/// What a run that takes no more than others needs, in MiB.
const USUAL_MIB: u64 = 40;

impl Row {
    /// Runs it in all ways, and gives its line of the table.
    fn measure(&self) -> Line {
        let mut seen: Vec<Seen> = Vec::new();
        for api in self.apis {
            match self.way {
                Way::Replies(faults) => self.serve(*api, faults, runs::NEAR, &mut seen),
                Way::Elsewhere(faults) => self.serve(*api, faults, runs::FAR, &mut seen),
                Way::Link(run) => {
                    seen.push(run(*api, Case::Stays));
                    if self.verdict == Verdict::Again {
                        run(*api, Case::Passes).answered(2);
                    }
                }
            }
        }
        self.line(&seen)
    }

    fn serve(&self, api: Api, faults: fn(Api) -> Vec<Reply>, host: Option<&str>, seen: &mut Vec<Seen>) {
        let name = format!("{} {}", self.fault, self.place);
        for fault in faults(api) {
            let run = |replies: Vec<Reply>| runs::serve(&name, api, host, self.args, replies);
            let first = replies::first(api);
            let rest = [replies::second(api), replies::answer(api)];
            match self.verdict {
                Verdict::Harmless => {
                    seen.push(run(vec![first, fault, replies::answer(api)]).answered(1));
                }
                Verdict::Final => seen.push(run(vec![first, fault]).failed(self.code)),
                _ => {
                    seen.push(run(vec![first.clone(), fault.clone(), fault.clone()]).failed(self.code));
                    run([vec![first, fault], rest.into()].concat()).answered(2);
                }
            }
        }
    }

    /// What was seen, which has to be the same in all runs.
    fn line(&self, seen: &[Seen]) -> Line {
        let first = &seen[0];
        let tries = if matches!(self.verdict, Verdict::Again | Verdict::AgainUnseen) { 2 } else { 1 };
        for each in seen {
            assert_eq!(
                (each.code, each.tries),
                (self.code, tries),
                "{} {}: {each:?}",
                self.fault,
                self.place
            );
            assert_eq!(each.says, first.says, "{} {}: {each:?}", self.fault, self.place);
            assert!(
                each.peak_mib <= self.most_mib && each.seconds < MOST_SECONDS,
                "{}: {each:?}",
                self.fault
            );
        }
        let most = |value: fn(&Seen) -> u64| seen.iter().map(value).max().unwrap_or_default();
        let tenths = most(|seen| (seen.seconds * 10.0).round() as u64);
        Line {
            known: [
                format!("{} | {}", self.fault, self.place),
                format!("{tries} | {}", self.code),
                first.says.clone(),
            ],
            measured: [tenths, most(|seen| seen.sent), most(|seen| seen.peak_mib)],
        }
    }
}

/// A line of the table.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    /// Fault and place, tries and code, and what is said.
    known: [String; 3],
    /// Tenths of seconds, bytes, MiB.
    measured: [u64; 3],
}

const HEAD: &str = "| fault | where it strikes | tries | code | seconds | bytes | MiB | what is said |\n\
                    |---|---|---|---|---|---|---|---|\n";

impl Line {
    fn text(&self) -> String {
        let [fault, tries, says] = &self.known;
        let [tenths, bytes, mib] = self.measured;
        // Where TLS or a proxy fails nobody counts.
        let bytes = if bytes == 0 { "–".to_owned() } else { bytes.to_string() };
        format!("| {fault} | {tries} | {}.{} | {bytes} | {mib} | {says} |\n", tenths / 10, tenths % 10)
    }

    fn parsed(text: &str) -> Line {
        let cells: Vec<&str> = text.trim().trim_matches('|').splitn(8, '|').map(str::trim).collect();
        let [fault, place, tries, code, seconds, bytes, mib, says] = cells[..] else {
            panic!("a line of the table has eight cells: {text}")
        };
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("no number: {text}"));
        Line {
            known: [format!("{fault} | {place}"), format!("{tries} | {code}"), says.to_owned()],
            measured: [number(&seconds.replace('.', "")), number(&bytes.replace('–', "0")), number(mib)],
        }
    }
}

/// Runs all rows, several at once, and gives their lines in order.
fn measure(rows: &[Row]) -> Vec<Line> {
    let waiting: Mutex<VecDeque<usize>> = Mutex::new((0..rows.len()).collect());
    let lines: Mutex<Vec<Option<Line>>> = Mutex::new(rows.iter().map(|_| None).collect());
    thread::scope(|scope| {
        let (waiting, lines) = (&waiting, &lines);
        for worker in 0..AT_ONCE {
            scope.spawn(move || {
                loop {
                    let mut waiting = waiting.lock().unwrap();
                    let next =
                        if worker < AT_ONCE_FROM_THE_END { waiting.pop_back() } else { waiting.pop_front() };
                    drop(waiting);
                    let Some(at) = next else { return };
                    // A row that fails keeps no other from being run.
                    let line = thread::scope(|scope| scope.spawn(|| rows[at].measure()).join().ok());
                    lines.lock().unwrap()[at] = line;
                }
            });
        }
    });
    let lines = lines.into_inner().unwrap();
    let broken = rows.iter().zip(&lines).filter(|(_, line)| line.is_none());
    let broken: Vec<String> = broken.map(|(row, _)| format!("{}: {}", row.fault, row.place)).collect();
    assert_eq!(broken, [""; 0], "rows that are not as they should be; each has said why");
    lines.into_iter().flatten().collect()
}

#[test]
fn the_table_of_faults_in_readme_is_what_happens() {
    const MARKER: &str = "<!-- faults -->";
    let rows = rows::all();
    let lines = measure(&rows);
    let table: String = lines.iter().map(Line::text).collect();
    readme::compare_or_bless(MARKER, &format!("{HEAD}{table}"), |written| {
        let written: Vec<Line> = written.lines().skip(2).map(Line::parsed).collect();
        let known = |lines: &[Line]| lines.iter().map(|line| line.known.clone()).collect::<Vec<_>>();
        let (written_ones, seen) = (known(&written), known(&lines));
        let lacks: Vec<_> = seen.iter().filter(|line| !written_ones.contains(line)).collect();
        let invents: Vec<_> = written_ones.iter().filter(|line| !seen.contains(line)).collect();
        assert!(
            written_ones == seen,
            "README lacks {lacks:#?}\nand has {invents:#?}: run BLESS=1 cargo test readme"
        );
        for (line, row) in written.iter().zip(&rows) {
            let [tenths, _, mib] = line.measured;
            assert!((tenths as f64) < MOST_SECONDS * 10.0 && mib <= row.most_mib, "{line:?}");
        }
    });
}

#[test]
fn a_kept_connection_that_the_server_has_closed_is_replaced_without_a_word() {
    for api in BOTH {
        let kept = replies::first(api).framing(Framing::Length);
        let replies = [kept, Reply::nothing(Ending::Close), replies::second(api), replies::answer(api)];
        let story = Story::new("kept").api(api).args(&["--max-retries", "0", "-p", "Mark it."]);
        let outcome = replies.into_iter().fold(story, Story::reply).run();
        outcome.code(0).stdout("Told.\n").stderr("").request_count(4);
        outcome.file("log.txt", replies::BOTH_MARKS);
    }
}

#[test]
fn a_model_that_stays_overloaded_in_mid_stream_gives_way_and_no_call_runs_twice() {
    for api in BOTH {
        let fault = rows::overloaded_in_its_reply(api);
        let replies = [
            replies::first(api),
            fault.clone(),
            fault.clone(),
            fault,
            replies::second(api),
            replies::answer(api),
        ];
        let args = ["--fallback-model", "other", "-p", "Mark it."];
        let outcome =
            replies.into_iter().fold(Story::new("overload").api(api).args(&args), Story::reply).run();
        outcome.code(0).stdout("Told.\n").request_count(6).file("log.txt", replies::BOTH_MARKS);
        let models: Vec<bool> = (1..=6).map(|number| outcome.body(number)["model"] == "other").collect();
        outcome.equal(models, vec![false, false, false, false, true, true]);
        assert_eq!(outcome.stderr.lines().count(), 3, "{}", outcome.stderr);
    }
}

#[test]
fn a_list_of_models_that_drips_is_given_up() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
    let server = Server::start(vec![Reply::raw(head, Ending::Drip(b" "))]);
    let stage = Stage::new("drip");
    let url = base_url(server.port());
    let args = ["--base-url", &url, "--idle-timeout", "1", "-p", "Mark it."];
    let why = "cotter: 127.0.0.1 did not come to the end of its answer in time\n";
    run(&mut stage.command(&args)).code(6).stdout("").stderr(why);
    requests(server);
}

#[test]
fn a_line_of_the_table_is_read_as_it_was_written() {
    let line = Line {
        known: ["reset | in the body".to_owned(), "2 | 6".to_owned(), "it | broke".to_owned()],
        measured: [105, 1234, 17],
    };
    assert_eq!(line.text(), "| reset | in the body | 2 | 6 | 10.5 | 1234 | 17 | it | broke |\n");
    assert_eq!(Line::parsed(&line.text()), line);
}
