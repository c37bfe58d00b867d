//! Programs that are tools, as processes: what they leave running, and how they are ended.

use std::sync::Arc;

use super::*;
use crate::server::Gate;

/// A story with a program that is given some time, whose model calls it and then makes these calls.
fn with_program(milliseconds: u64, script: &str, calls: &[Value]) -> Story {
    let first = json!({"name": "probe", "input": {}});
    let calls: Vec<Value> = [first].into_iter().chain(calls.iter().cloned()).collect();
    let story = story("program", &calls).executable("probe", &format!("#!/bin/sh\n{script}\n"));
    story.file("probe.json", description(milliseconds)).args(&["--tool", "./probe"])
}

/// The description of a program that is given this much time.
fn description(milliseconds: u64) -> String {
    let schema = json!({"type": "object"});
    json!({"name": "probe", "description": "Probes.", "input_schema": schema, "timeout_ms": milliseconds})
        .to_string()
}

#[test]
fn a_program_that_takes_too_long_is_ended_with_all_it_started() {
    let timed_out =
        "[timed out after 3000 ms: the command and what it started were ended; ask for less at once]";
    let cases = [
        ("echo begun; touch there; sleep 60", "begun\n"),
        ("trap '' TERM INT HUP; touch there; while :; do sleep 1; done", ""),
        ("setsid sleep 60 & (setsid sleep 60 &); touch there; sleep 60", ""),
        ("exec >&- 2>&-; touch there; sleep 60", ""),
    ];
    // Its file tells that the program came so far in its time.
    let alone =
        bash("test -e there && test \"$(cat /proc/$PPID/task/$PPID/children)\" = \"$$ \" && echo alone");
    // Side by side, as each takes all of its time.
    std::thread::scope(|scope| {
        for (script, said) in cases {
            let story = with_program(3000, script, std::slice::from_ref(&alone));
            let expected = [failed(&format!("{said}{timed_out}")), ok("alone")];
            scope.spawn(move || tells(story, &expected));
        }
    });
}

#[test]
fn what_a_program_leaves_in_the_background_lives_on_and_ends_with_the_run() {
    // It holds both streams and prints more than a pipe takes, for ever.
    let script = "sh -c 'n=0; while :; do head -c 100000 /dev/zero || exit; echo $((n += 1)) >count; done' &
while ! [ -s count ]; do sleep 0.01; done";
    let goes_on = "n=$(cat count); while [ \"$(cat count)\" = \"$n\" ]; do sleep 0.01; done; echo alive";
    let outcome = Run::start(with_program(60_000, script, &[bash_for(20_000, goes_on)])).finish();
    let told = results(&outcome);
    outcome.code(0).equal((told[0].1, &told[1]), (false, &ok("alive")));
}

/// A tree of all these blocks would take forty times their bytes.
#[test]
fn many_small_blocks_take_little_more_memory_than_their_bytes() {
    let gate = Arc::new(Gate::default());
    let call = asking(1, &[json!({"name": "probe", "input": {}})]);
    let script = "#!/bin/sh\nprintf '{\"content\":['; yes 1, | tr -d '\\n' | head -c 8000000; printf '1]}'\n";
    let story = bare("blocks").executable("probe", script).file("probe.json", description(120_000));
    let story = story.args(&["--tool", "./probe"]).reply(call).reply(done().held_by(&gate));
    let run = Run::start(story);
    gate.wait_until_asked();
    let peaks = [run.cotter(), run.supervisor(), run.worker()].map(|pid| status_number(pid, "VmHWM"));
    gate.open();
    let said = "[1000 blocks that are no text or image were left out: \"unknown\"]\n\
         [what follows the first 1000 blocks was left out]";
    let outcome = run.finish();
    outcome.code(0).equal(results(&outcome), vec![ok(said)]);
    // In KiB.
    assert!(peaks.iter().all(|peak| *peak < 50_000), "{peaks:?}");
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
    tells(with_program(60_000, script, &[bash("echo next")]), &expected);
}
