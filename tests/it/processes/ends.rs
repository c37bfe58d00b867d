//! Nothing outlives the program, however it ends and whichever of its processes is killed.
//!
//! Victims are killed for real, in the middle of calls that are hard to end.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::*;
use crate::containment::skipped;
use crate::server::Gate;
use crate::story::can_end;

/// What is hard to end: processes whose parents are gone, that have sessions of their own, or that
/// ignore signals. There are seven of them, and the last keeps the call from returning.
pub const HARD_TO_END: &str = r#"
    (sleep 1000 & sleep 1000 &)
    setsid sh -c 'trap "" TERM HUP INT; (sleep 1000 &); sleep 1000' &
    setsid setsid sleep 1000 &
    sleep 1000 & disown
    sleep 1000
"#;

/// Processes that never stop forking and exiting (but for a number that ends it when a test fails), in
/// one process group or with a new session each time. `beat` grows as long as they live.
pub const FORKING: [&str; 2] = [
    "spin() { printf . >>beat; test $1 = 0 || spin $(($1 - 1)) & }; spin 20000;",
    r#"printf '#!/bin/sh\nprintf . >>beat\ntest $1 = 0 || setsid "$0" $(($1 - 1)) &\n' >again
       chmod +x again; ./again 10000;"#,
];

/// Only one such chain runs at a time, as it takes all the processor and process numbers it can get.
static ONE_CHAIN: Mutex<()> = Mutex::new(());

/// The right to start one.
pub fn one_chain() -> MutexGuard<'static, ()> {
    ONE_CHAIN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Victim {
    Cotter,
    Supervisor,
    Worker,
}

use Victim::{Cotter, Supervisor, Worker};

/// Kills these in each of `rounds` runs, each time at another moment, and returns the longest time until
/// nothing was left.
fn kill_at_many_moments(victims: &[Victim], rounds: u64) -> Duration {
    let _one_chain = one_chain();
    (0..rounds).map(|round| kill_once(victims, round)).max().unwrap()
}

fn kill_once(victims: &[Victim], round: u64) -> Duration {
    let forking = if round % 4 == 3 { FORKING[(round / 4 % 2) as usize] } else { "" };
    let call = bash(&format!("{forking}{HARD_TO_END}"));
    let name = format!("{victims:?} killed, round {round}");
    // When cotter lives, it tells the model and goes on.
    let goes_on = !victims.contains(&Cotter);
    let run = Run::start(match goes_on {
        true => story(&name, &[call]),
        false => bare(&name).reply(asking(1, &[call])),
    });
    let victims: Vec<_> = victims.iter().map(|victim| process(*victim, &run)).collect();
    // One in five is killed as soon as it is there, the others some time after their tools have begun:
    // that moment is what is tested here, nothing is waited for.
    if round % 5 != 4 {
        wait_for("three processes of tools", || (sleeping(&run.mark) >= 3).then_some(()));
        thread::sleep(Duration::from_micros(random(round) % 25_000));
    }
    for pid in victims {
        // The second may have been ended already because of the first.
        let _ = kill_process(pid, Signal::KILL);
    }
    let time = wait_until_nothing_is_left(&run);
    let beats = beats(run.running.folder());
    let outcome = run.finish();
    outcome.equal(self::beats(&outcome.folder), beats);
    if goes_on {
        outcome.code(0).stdout(DONE).equal(results(&outcome).len(), 1);
        did_not_finish(&outcome, "Bash", &results(&outcome)[0]);
    } else {
        outcome.stdout("").equal(outcome.signal, Some(9));
    }
    time
}

fn process(victim: Victim, run: &Run) -> Pid {
    match victim {
        Cotter => {
            // Before it has started anything, nothing can be left.
            run.supervisor();
            run.cotter()
        }
        Supervisor => run.supervisor(),
        Worker => run.worker(),
    }
}

/// The model is told that its call came to nothing because of what happened here.
#[track_caller]
pub fn did_not_finish(outcome: &Outcome, tool: &str, (text, is_error): &Told) {
    let whole = text.starts_with(&format!("{tool} did not finish: the process that runs tools "))
        && text.ends_with("; everything it had started has been ended");
    outcome.equal((text, whole, *is_error), (text, true, true));
}

pub fn sleeping(mark: &Mark) -> usize {
    mark.processes().iter().filter(|(_, line)| line == "sleep 1000").count()
}

fn beats(folder: &Path) -> u64 {
    fs::metadata(folder.join("beat")).map_or(0, |data| data.len())
}

/// Waits until no process but cotter is left, nor a private folder, and returns how long that took.
fn wait_until_nothing_is_left(run: &Run) -> Duration {
    wait_until_only(run.cotter(), &run.mark, run.running.folder())
}

/// The same for any process in this workspace.
pub fn wait_until_only(cotter: Pid, mark: &Mark, workspace: &Path) -> Duration {
    let begin = Instant::now();
    let (mut last_seen, mut looks_without, mut beats_before) = (begin, 0, 0);
    // One look can miss a process in the middle of `exec`, or a chain that is faster than the look.
    while looks_without < 5 {
        let mut left = mark.processes();
        left.retain(|(pid, _)| *pid != cotter);
        let (beats, folders) = (beats(workspace), temp_folders(workspace));
        if left.is_empty() && beats == beats_before && folders.is_empty() {
            looks_without += 1;
        } else {
            (last_seen, looks_without, beats_before) = (Instant::now(), 0, beats);
        }
        assert!(begin.elapsed() < LIMIT, "still there: {left:#?} and {folders:?}");
        thread::sleep(Duration::from_millis(1));
    }
    last_seen - begin
}

/// A small generator: the same moments are tested in each run.
pub fn random(seed: u64) -> u64 {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    state ^ (state >> 31)
}

const ROUNDS: u64 = 5;

#[test]
fn nothing_is_left_when_cotter_is_killed() {
    kill_at_many_moments(&[Cotter], ROUNDS);
}

#[test]
fn nothing_is_left_when_the_supervisor_is_killed_and_the_run_goes_on() {
    kill_at_many_moments(&[Supervisor], ROUNDS);
}

#[test]
fn nothing_is_left_when_the_worker_is_killed_and_the_run_goes_on() {
    kill_at_many_moments(&[Worker], ROUNDS);
}

#[test]
fn nothing_is_left_when_the_worker_is_killed_together_with_another() {
    kill_at_many_moments(&[Worker, Supervisor], ROUNDS);
    kill_at_many_moments(&[Cotter, Worker], ROUNDS);
}

#[test]
fn nothing_is_left_of_a_run_that_ends_by_itself() {
    let calls = [
        bash(
            r#"stat -c '%a %F' "$TMPDIR"; mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; chmod 0 "$TMPDIR/a""#,
        ),
        bash("sleep 1000 & disown; (sleep 1000 &); echo one"),
        bash(
            "setsid setsid sleep 1000 & setsid sh -c 'trap \"\" TERM HUP INT; (sleep 1000 &); sleep 1000' & echo two",
        ),
        bash("touch ready; until test -e go; do sleep 0.01; done; echo three"),
    ];
    let run = Run::start(story("ends by itself", &calls));
    wait_for("the last call", || run.file("ready").exists().then_some(()));
    wait_for("all that was started", || (sleeping(&run.mark) == 5).then_some(()));
    let folders = run.temp_folders();
    assert_eq!(folders.len(), 1);
    assert_eq!(fs::metadata(&folders[0]).unwrap().permissions().mode() & 0o777, 0o700);
    run.let_go("go");
    let outcome = run.finish();
    let expected = [ok("700 directory"), ok("one"), ok("two"), ok("three")];
    outcome.code(0).stdout(DONE).equal(results(&outcome), expected.to_vec());
}

#[test]
fn nothing_is_left_of_a_run_that_fails() {
    let call = asking(1, &[bash("sleep 1000 & (setsid sleep 1000 &); echo started")]);
    let refusal = r#"{"type":"error","error":{"type":"invalid_request_error","message":"no"}}"#;
    let story = bare("fails").reply(call).reply(Reply::new(400, "application/json", refusal));
    Run::start(story).finish().code(4).stdout("").request_count(2);
}

#[test]
fn a_signal_ends_cotter_with_its_own_status_and_nothing_is_left() {
    let test = "a_signal_ends_cotter_with_its_own_status_and_nothing_is_left";
    for signal in [Signal::TERM, Signal::INT, Signal::HUP].into_iter().filter(|signal| can_end(*signal, test))
    {
        let call = bash(HARD_TO_END);
        let run = Run::start(bare("signal").reply(asking(1, &[call])));
        wait_for("all that is started", || (sleeping(&run.mark) == 7).then_some(()));
        kill_process(run.cotter(), signal).unwrap();
        wait_until_nothing_is_left(&run);
        let outcome = run.finish();
        outcome.stdout("").equal((outcome.code, outcome.signal), (None, Some(signal.as_raw())));
    }
}

#[test]
fn a_signal_while_the_model_is_waited_for_ends_what_runs_in_the_background() {
    let gate = Arc::new(Gate::default());
    let call = asking(1, &[bash("sleep 1000 & (setsid sleep 1000 &); echo started")]);
    let run = Run::start(bare("signal between").reply(call).reply(done().held_by(&gate)));
    gate.wait_until_asked();
    wait_for("what was started", || (sleeping(&run.mark) == 2).then_some(()));
    kill_process(run.cotter(), Signal::TERM).unwrap();
    wait_until_nothing_is_left(&run);
    gate.open();
    let outcome = run.finish();
    outcome.stdout("").equal((outcome.code, outcome.signal), (None, Some(15)));
    outcome.equal(results(&outcome), vec![ok("started")]);
}

/// As in a container: the process namespace has no number for the leader of cotter's session, nor for that of
/// its group. cotter is its first process, or a shell is.
#[test]
fn in_a_process_namespace_whose_session_is_led_from_outside_everything_ends() {
    let test = "in_a_process_namespace_whose_session_is_led_from_outside_everything_ends";
    let enter = "unshare --pid --fork --mount-proc --kill-child";
    let user = if rustix::process::geteuid().is_root() { "" } else { "--user --map-current-user" };
    let can = Command::new("sh").args(["-c", &format!("{enter} {user} true")]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skipped(test, "no process namespace can be made here");
    }
    for first in ["", "sh -c '\"$@\"; exit $?' sh"] {
        let program = crate::story::program();
        let folder = crate::story::new_folder("namespace", &["."]);
        let start = folder.join("start");
        let line = format!("#!/bin/sh\nexec {enter} {user} {first} '{program}' \"$@\"\n");
        fs::write(&start, line).unwrap();
        fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).unwrap();
        let calls = [
            bash("echo $PPID >a; cat a | wc -l"),
            bash("(setsid sleep 1000 &); sleep 1000 & disown; echo started"),
            bash_for(200, "setsid sleep 1000 & sleep 1000"),
            bash("kill -9 $PPID"),
            bash("echo again"),
        ];
        for args in [&[][..], &UNCONTAINED] {
            let outcome = Run::start(story("namespace", &calls).program(&start).args(args)).finish();
            let told = results(&outcome);
            outcome.code(0).stdout(DONE).stderr("");
            outcome.equal((&told[0], &told[1], &told[4]), (&ok("1"), &ok("started"), &ok("again")));
            let ends: Vec<bool> = told.iter().map(|(_, is_error)| *is_error).collect();
            outcome.equal(ends, vec![false, false, true, true, false]);
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
