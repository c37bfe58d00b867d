//! Runs and commands that are ended from outside at moments drawn by lot: each time nothing is left.
//!
//! A trial is known by its seed and number. It counts only because three processes of tools were seen alive
//! before the signal. Few trials run each time; `cargo test --test it -- --ignored kill` runs 400.

use std::collections::BTreeMap;
use std::process::{Child, Stdio};

use super::ends::{
    FORKING, HARD_TO_END, Victim, did_not_finish, one_chain, random, sleeping, wait_until_only,
};
use super::*;
use crate::stage::{Ran, Stage, ran};
use crate::story::can_end;

/// Many at once: up to 200 live, one more about every 2 ms.
const CROWD: &str =
    "(n=0; while test $n -lt 200; do sleep 1000 & n=$((n + 1)); sleep 0.002; done; sleep 1000) &";

/// What ends a run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ending {
    /// One of its processes is killed. Where a command runs, it stands in the place of the worker.
    Killed(Victim),
    /// cotter is told to end.
    Told(Signal),
}

/// What runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Tools,
    UncontainedTools,
    Command,
    UncontainedCommand,
}

const PLACES: [Place; 4] = [Place::Tools, Place::UncontainedTools, Place::Command, Place::UncontainedCommand];

impl Place {
    fn is_command(self) -> bool {
        matches!(self, Place::Command | Place::UncontainedCommand)
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Place::Tools | Place::Command => &[],
            Place::UncontainedTools => &UNCONTAINED,
            Place::UncontainedCommand => &["--sandbox", "off"],
        }
    }
}

/// What the tools do.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Work {
    /// Processes that fork without end, or many at once, beside what is hard to end.
    Forking(u64),
    /// Sessions of their own, double forks, processes that ignore signals.
    HardToEnd,
    /// The same below shells in the background.
    Shells,
    /// The same below a program that is a tool.
    Program,
}

struct Trial {
    seed: u64,
    number: u64,
    ending: Ending,
    place: Place,
    work: Work,
}

impl Trial {
    /// Of four trials one forks without end. In 12 each ending meets each place, in 48 with each work.
    fn new(seed: u64, number: u64, endings: [Ending; 3]) -> Trial {
        let drawn = random(seed.wrapping_add(number));
        let work = match (number + number / 12) % 4 {
            0 => Work::Forking(drawn / 8 % 3),
            1 => Work::HardToEnd,
            2 => Work::Shells,
            _ => Work::Program,
        };
        let place = PLACES[(number / 3 % 4) as usize];
        Trial { seed, number, ending: endings[(number % 3) as usize], place, work }
    }

    fn name(&self) -> String {
        let Trial { seed, number, ending, place, work } = self;
        format!("seed {seed} trial {number} {place:?} {ending:?} {work:?}")
    }

    fn delay(&self) -> Duration {
        Duration::from_micros(random(self.seed.wrapping_add(self.number) ^ 1 << 40) % 30_000)
    }

    /// cotter lives on and tells the model.
    fn goes_on(&self) -> bool {
        let below = [Victim::Supervisor, Victim::Worker].map(Ending::Killed);
        !self.place.is_command() && below.contains(&self.ending)
    }

    /// What the last call, or the command, runs: it is at work once `begun` holds its number.
    fn script(&self) -> String {
        let more = match self.work {
            Work::Forking(kind @ 0..=1) => FORKING[kind as usize],
            Work::Forking(_) => CROWD,
            Work::HardToEnd | Work::Shells | Work::Program => "",
        };
        format!("echo $$ >begun\n{more}{HARD_TO_END}")
    }

    fn calls(&self) -> Vec<Value> {
        let script = self.script();
        match self.work {
            Work::Forking(_) | Work::HardToEnd => vec![bash(&script)],
            Work::Shells => {
                let background =
                    json!({"name": "Bash", "input": {"command": HARD_TO_END, "run_in_background": true}});
                vec![background.clone(), background, bash(&script)]
            }
            Work::Program => vec![json!({"name": "probe", "input": {}})],
        }
    }

    /// Runs it to its end, and returns how long it took until nothing was left.
    fn run(&self) -> Duration {
        if self.place.is_command() { self.run_command() } else { self.run_tools() }
    }

    fn run_tools(&self) -> Duration {
        let story = bare(&self.name()).args(self.place.flags()).reply(asking(1, &self.calls()));
        let story = match self.work {
            Work::Program => {
                let schema = json!({"type": "object"});
                let description = json!({"name": "probe", "description": "Probes.", "input_schema": schema});
                let program = story.executable("probe", &format!("#!/bin/bash\n{}", self.script()));
                program.file("probe.json", description.to_string()).args(&["--tool", "./probe"])
            }
            Work::Forking(_) | Work::HardToEnd | Work::Shells => story,
        };
        let run = Run::start(match self.goes_on() {
            true => story.reply(done()),
            false => story.args(&["--output-format", "json"]),
        });
        let victim = self.wait_for_victim(run.cotter(), &run.mark, run.running.folder());
        let victim = victim.unwrap_or_else(|| run.worker());
        let time = self.end(victim, run.cotter(), &run.mark, run.running.folder());
        let outcome = run.finish();
        if self.goes_on() {
            outcome.code(0).stdout(DONE);
            let told = results(&outcome);
            outcome.equal(told.len(), self.calls().len());
            let tool = if self.work == Work::Program { "probe" } else { "Bash" };
            did_not_finish(&outcome, tool, &told[told.len() - 1]);
        } else {
            outcome.stdout("").equal((outcome.code, outcome.signal), (None, Some(self.signal().as_raw())));
        }
        time
    }

    fn run_command(&self) -> Duration {
        let stage = Stage::new(&self.name());
        let mark = Mark::new();
        let script = self.script();
        let args = [&["sandbox"], self.place.flags(), &["--", "bash", "-c", &script]].concat();
        let mut command = stage.command(&args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).env(Mark::NAME, &mark.0);
        let child = command.spawn().unwrap();
        let (cotter, workspace) = (Pid::from_child(&child), stage.path(""));
        let victim = self.wait_for_victim(cotter, &mark, &workspace);
        let victim = victim.unwrap_or_else(|| pid_in(stage.read("begun").trim()));
        let time = self.end(victim, cotter, &mark, &workspace);
        let ran = ended(child, &self.name());
        assert_eq!((ran.code, ran.signal), (None, Some(self.signal().as_raw())), "{}", ran.report());
        ran.stdout("");
        time
    }

    /// Waits until tools are at work, and says which process is to be ended, unless it is the worker.
    fn wait_for_victim(&self, cotter: Pid, mark: &Mark, workspace: &Path) -> Option<Pid> {
        let begun = workspace.join("begun");
        let is_begun = || fs::read_to_string(&begun).is_ok_and(|text| text.ends_with('\n'));
        wait_for(&format!("what tools do in {}", self.name()), || is_begun().then_some(()));
        wait_for("three processes of tools", || (sleeping(mark) >= 3).then_some(()));
        match self.ending {
            Ending::Killed(Victim::Cotter) | Ending::Told(_) => Some(cotter),
            Ending::Killed(Victim::Supervisor) => Some(wait_for("the supervisor", || only_child(cotter))),
            Ending::Killed(Victim::Worker) => None,
        }
    }

    fn end(&self, victim: Pid, cotter: Pid, mark: &Mark, workspace: &Path) -> Duration {
        thread::sleep(self.delay());
        kill_process(victim, self.signal()).unwrap();
        wait_until_only(cotter, mark, workspace)
    }

    fn signal(&self) -> Signal {
        match self.ending {
            Ending::Killed(_) => Signal::KILL,
            Ending::Told(signal) => signal,
        }
    }
}

fn ended(child: Child, name: &str) -> Ran {
    ran(crate::story::finish(child, None), name.to_owned())
}

const KILLS: [Ending; 3] =
    [Ending::Killed(Victim::Cotter), Ending::Killed(Victim::Supervisor), Ending::Killed(Victim::Worker)];
const SIGNALS: [Ending; 3] =
    [Ending::Told(Signal::TERM), Ending::Told(Signal::INT), Ending::Told(Signal::HUP)];

/// The times of these trials, by what ended and where.
fn run_trials(seed: u64, count: u64, endings: [Ending; 3]) -> BTreeMap<String, Vec<Duration>> {
    let _one_chain = one_chain();
    let mut times: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for trial in (0..count).map(|number| Trial::new(seed, number, endings)) {
        times.entry(format!("{:?} {:?}", trial.ending, trial.place)).or_default().push(trial.run());
    }
    times
}

#[test]
fn nothing_is_left_when_one_of_three_is_killed_at_any_moment() {
    run_trials(1, 12, KILLS);
}

#[test]
fn nothing_is_left_and_there_is_no_result_when_cotter_is_told_to_end_at_any_moment() {
    let test = "nothing_is_left_and_there_is_no_result_when_cotter_is_told_to_end_at_any_moment";
    if [Signal::TERM, Signal::INT, Signal::HUP].into_iter().all(|signal| can_end(signal, test)) {
        run_trials(2, 12, SIGNALS);
    }
}

#[test]
#[ignore = "takes minutes: the two tests above with 200 trials each, telling the longest times"]
#[expect(clippy::print_stderr, reason = "the times are what somebody runs this for")]
fn nothing_is_left_after_four_hundred_kills() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("KILL_SEED").map_or(now.as_secs(), |text| text.parse().unwrap());
    eprintln!("KILL_SEED={seed}");
    let can_end = |ending: &Ending| match ending {
        Ending::Told(signal) => can_end(*signal, "nothing_is_left_after_four_hundred_kills"),
        Ending::Killed(_) => true,
    };
    // Where a script has started this in the background, SIGINT is ignored in all of it.
    for (endings, seed) in [(KILLS, seed), (SIGNALS, seed + 200)] {
        if !endings.iter().all(can_end) {
            continue;
        }
        for (what, mut times) in run_trials(seed, 200, endings) {
            times.sort();
            let (count, longest, middle) = (times.len(), times[times.len() - 1], times[times.len() / 2]);
            eprintln!("{what}: {count} trials, nothing left after {middle:.1?}, at most {longest:.1?}");
        }
    }
}
