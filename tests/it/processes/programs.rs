//! Programs that are tools, as processes: what they leave running, and how they are ended.

use std::sync::Arc;

use super::*;
use crate::server::Gate;

/// A story with a program that is given half a second, whose model calls it and then makes these calls.
fn with_program(script: &str, calls: &[Value]) -> Story {
    let first = json!({"name": "probe", "input": {}});
    let calls: Vec<Value> = [first].into_iter().chain(calls.iter().cloned()).collect();
    let story = story("program", &calls).executable("probe", &format!("#!/bin/sh\n{script}\n"));
    story.file("probe.json", description(500)).args(&["--tool", "./probe"])
}

/// The description of a program that is given this much time.
fn description(milliseconds: u64) -> String {
    let schema = json!({"type": "object"});
    json!({"name": "probe", "description": "Probes.", "input_schema": schema, "timeout_ms": milliseconds})
        .to_string()
}

const TIMED_OUT: &str =
    "[timed out after 500 ms: the command and what it started were ended; ask for less at once]";

#[test]
fn a_program_that_takes_too_long_is_ended_with_all_it_started() {
    for (script, said) in [
        ("echo begun; sleep 60", "begun\n"),
        ("trap '' TERM INT HUP; while :; do sleep 1; done", ""),
        ("setsid sleep 60 & (setsid sleep 60 &); sleep 60", ""),
        ("exec >&- 2>&-; sleep 60", ""),
    ] {
        let alone = bash("test \"$(cat /proc/$PPID/task/$PPID/children)\" = \"$$ \" && echo alone");
        tells(with_program(script, &[alone]), &[failed(&format!("{said}{TIMED_OUT}")), ok("alone")]);
    }
}

#[test]
fn what_a_program_leaves_in_the_background_lives_on_and_ends_with_the_run() {
    // It holds both streams and prints more than a pipe takes, for ever.
    let script = "sh -c 'n=0; while :; do head -c 100000 /dev/zero || exit; echo $((n += 1)) >count; done' &
while ! [ -s count ]; do sleep 0.01; done";
    let goes_on = "n=$(cat count); while [ \"$(cat count)\" = \"$n\" ]; do sleep 0.01; done; echo alive";
    let outcome = Run::start(with_program(script, &[bash_for(20_000, goes_on)])).finish();
    let told = results(&outcome);
    outcome.code(0).equal((told[0].1, &told[1]), (false, &ok("alive")));
}

#[test]
fn a_long_output_that_begins_like_blocks_is_not_kept_to_find_out() {
    let gate = Arc::new(Gate::default());
    let call = asking(1, &[json!({"name": "probe", "input": {}})]);
    let story = bare("output")
        .executable("probe", "#!/bin/sh\nprintf '{'; head -c 300000000 /dev/zero | tr '\\0' x\n");
    let story = story.file("probe.json", description(120_000)).args(&["--tool", "./probe", "-q"]);
    let run = Run::start(story.reply(call).reply(done().held_by(&gate)));
    gate.wait_until_asked();
    let peaks = [run.cotter(), run.supervisor(), run.worker()].map(|pid| status_number(pid, "VmHWM"));
    gate.open();
    let outcome = run.finish();
    let told = results(&outcome).remove(0);
    outcome.code(0).equal((told.0.contains("bytes left out"), told.1), (true, false));
    // In KiB. Twice the longest output with blocks is less, and all of the output is much more.
    assert!(peaks.iter().all(|peak| *peak < 80_000), "{peaks:?}");
}

#[test]
fn a_program_that_ends_the_worker_fails_alone() {
    let script = "kill -KILL $PPID; sleep 60";
    let expected = [
        failed(
            "probe did not finish: the process that runs tools ended; everything it had started has been ended",
        ),
        ok("next"),
    ];
    tells(with_program(script, &[bash("echo next")]), &expected);
}
