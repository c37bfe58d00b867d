//! Shells in the background: Bash starts them, BashOutput looks at them, KillShell ends them.

use std::sync::Arc;

use super::*;
use crate::server::Gate;

/// A call that starts a shell in the background.
fn start(command: &str) -> Value {
    json!({"name": "Bash", "input": {"command": command, "run_in_background": true}})
}

fn look(id: &str) -> Value {
    json!({"name": "BashOutput", "input": {"bash_id": id}})
}

fn look_for(id: &str, filter: &str) -> Value {
    json!({"name": "BashOutput", "input": {"bash_id": id, "filter": filter}})
}

fn kill(id: &str) -> Value {
    json!({"name": "KillShell", "input": {"shell_id": id}})
}

fn runs(id: &str) -> Told {
    ok(&format!("{id} runs in the background: see its output with BashOutput"))
}

fn killed(id: &str) -> Told {
    ok(&format!("{id} and all it had started have been ended"))
}

fn timed_out(milliseconds: u64) -> Told {
    failed(&format!(
        "[timed out after {milliseconds} ms: the command and what it started were ended; give a longer \
         `timeout` (at most 600000), or run it in the background]"
    ))
}

/// Waits until the shell that has written its number to this file is gone.
fn gone(file: &str) -> Value {
    bash(&format!(
        "until test -s {file}; do sleep 0.01; done; while kill -0 $(cat {file}) 2>/dev/null; do sleep 0.01; done"
    ))
}

#[test]
fn a_server_is_started_reached_watched_and_ended() {
    let server = "
        echo $$ >server
        mkfifo answer ask
        while read -r line <ask; do printf '\\033[32masked\\033[0m for %s\\n' $line; echo to $line >answer; done
    ";
    let calls = [
        start(server),
        bash("until test -p ask; do sleep 0.01; done; echo one >ask; cat answer"),
        look("bash_1"),
        look("bash_1"),
        // The end of a command that takes too long is not that of the server.
        bash_for(200, "sleep 1000"),
        bash("echo two >ask; cat answer; echo three >ask; cat answer; echo four >ask; cat answer"),
        look_for("bash_1", "two$|^.*our"),
        look("bash_1"),
        kill("bash_1"),
        bash("kill -0 $(cat server) 2>&1 | grep -o 'No such process'"),
        look("bash_1"),
    ];
    let expected = [
        runs("bash_1"),
        ok("to one"),
        ok("asked for one\n[bash_1 is running]"),
        ok("(no new output)\n[bash_1 is running]"),
        timed_out(200),
        ok("to two\nto three\nto four"),
        ok("asked for two\nasked for four\n[bash_1 is running]"),
        ok("(no new output)\n[bash_1 is running]"),
        killed("bash_1"),
        ok("No such process"),
        ok("(no new output)\n[bash_1 was killed by KillShell]"),
    ];
    tells(story("server", &calls), &expected);
}

#[test]
fn a_look_tells_what_is_new_and_how_the_shell_ended() {
    let calls = [
        start(
            "echo $$ >pid1; printf one; touch first; until test -e go; do sleep 0.01; done; echo two; exit 3",
        ),
        bash("until test -e first; do sleep 0.01; done"),
        look("bash_1"),
        bash("touch go"),
        gone("pid1"),
        look("bash_1"),
        look("bash_1"),
        start("echo $$ >pid2; echo done"),
        gone("pid2"),
        start("echo $$ >pid3; kill -9 $$"),
        gone("pid3"),
        look("bash_3"),
        look("bash_2"),
        kill("bash_2"),
    ];
    let expected = [
        runs("bash_1"),
        ok("(no output)"),
        ok("one\n[bash_1 is running]"),
        ok("(no output)"),
        ok("(no output)"),
        ok("two\n[bash_1 has failed: exit code: 3]"),
        ok("(no new output)\n[bash_1 has failed: exit code: 3]"),
        runs("bash_2"),
        ok("(no output)"),
        runs("bash_3"),
        ok("(no output)"),
        ok("(no new output)\n[bash_3 has failed: killed by signal 9 (SIGKILL)]"),
        ok("done\n[bash_2 has completed: exit code: 0]"),
        ok("bash_2 has completed: exit code: 0; what it had left running has been ended"),
    ];
    tells(story("looks", &calls), &expected);
}

/// What was not yet a line when it was looked at was dropped as one that does not match.
#[test]
fn a_filter_sees_lines_whole_however_they_are_printed() {
    let until = |file: &str| format!("until test -e {file}; do sleep 0.01; done; ");
    let command = format!(
        "printf 'one\\nerr'; touch a; {}printf 'or: disk full\\nerr'; touch c; {}printf or; echo $$ >pid",
        until("b"),
        until("d")
    );
    let calls = [
        start(&command),
        bash(&until("a")),
        look_for("bash_1", "error"),
        bash(&format!("touch b; {}", until("c"))),
        look_for("bash_1", "error"),
        bash("touch d"),
        gone("pid"),
        look_for("bash_1", "error"),
    ];
    let waits = "[bash_1 is running; its last line is not ended and left for the next look]";
    let expected = [
        runs("bash_1"),
        ok("(no output)"),
        ok(&format!("(no new output)\n{waits}")),
        ok("(no output)"),
        ok(&format!("error: disk full\n{waits}")),
        ok("(no output)"),
        ok("(no output)"),
        ok("error\n[bash_1 has completed: exit code: 0]"),
    ];
    tells(story("whole lines", &calls), &expected);
}

/// Without a reader it would stand still after 64 KiB, and die if the pipe were closed.
#[test]
fn what_nobody_looks_at_is_taken_and_bounded() {
    let calls = [
        start("yes 0123456789abcde | head -c 3000000; touch written; exec sleep 1000"),
        bash("until test -e written; do sleep 0.01; done"),
        look("bash_1"),
    ];
    let line = "0123456789abcde\n";
    let part = line.repeat(15_000 / line.len());
    let left_out = 3_000_000 - 2 * part.len();
    let bounded = format!("{part}[… {left_out} bytes left out …]\n{part}[bash_1 is running]");
    let expected = [runs("bash_1"), ok("(no output)"), ok(&bounded)];
    tells(story("bounded", &calls), &expected);
}

#[test]
fn output_is_taken_while_the_model_thinks() {
    // In KiB, most of it the program's own file.
    let peak = |output: &str| {
        let gate = Arc::new(Gate::default());
        let command = format!("{output}; touch written; exec sleep 1000");
        let story = bare("thinks").reply(asking(1, &[start(&command)])).reply(done().held_by(&gate));
        let run = Run::start(story);
        gate.wait_until_asked();
        wait_for("the end of the output", || run.file("written").exists().then_some(()));
        let peak = status_number(run.worker(), "VmHWM");
        gate.open();
        run.finish().code(0).stdout(DONE);
        peak
    };
    let (none, much) = (peak("true"), peak("yes 0123456789abcde | head -c 8000000"));
    assert!(much < none + 4_000, "{none} without output, {much} with 8 MB of it");
}

#[test]
fn killing_a_shell_ends_all_it_has_started_and_nothing_of_others() {
    // Five processes: the shell, a child, an orphan, one in a session of its own, and an orphan of one that
    // ignores signals.
    let tree = |name: &str| {
        start(&format!(
            "
            stay() {{ sh -c \"trap '' TERM HUP; echo \\$\\$ >>{name}; exec sleep 1000\"; }}
            echo $$ >>{name}
            stay &
            (stay &)
            (setsid sh -c 'echo $$ >>{name}; exec sleep 1000' &)
            setsid sh -c \"setsid sh -c 'echo \\$\\$ >>{name}; exec sleep 1000' & exit\"
            wait
            sleep 1000
            "
        ))
    };
    let all_there = "until test \"$(cat one two 2>/dev/null | wc -l)\" = 10; do sleep 0.01; done";
    let count = "for name in one two; do for pid in $(cat $name); do kill -0 $pid 2>/dev/null && echo $name; done; done";
    let calls = [
        tree("one"),
        tree("two"),
        bash(all_there),
        kill("bash_1"),
        bash(count),
        look("bash_2"),
        bash_for(300, "sleep 1000"),
        kill("bash_2"),
        bash(count),
    ];
    let expected = [
        runs("bash_1"),
        runs("bash_2"),
        ok("(no output)"),
        killed("bash_1"),
        ok("two\ntwo\ntwo\ntwo\ntwo"),
        ok("(no new output)\n[bash_2 is running]"),
        timed_out(300),
        killed("bash_2"),
        failed("[exit code: 1]"),
    ];
    tells(story("trees", &calls), &expected);
}

/// What starts late and leaves group and session behind was ended with the command.
#[test]
fn a_timeout_spares_what_a_background_shell_starts_meanwhile() {
    let late = "until test -e now; do sleep 0.01; done; (setsid sh -c 'echo $$ >late; exec sleep 1000' &); sleep 1000";
    let calls = [
        start(late),
        bash_for(5000, "touch now; until test -s late; do sleep 0.01; done; touch seen; sleep 1000"),
        // Else it began too late to be spared.
        bash("test -e seen && kill -0 $(cat late) && echo alive"),
    ];
    tells(story("spares", &calls), &[runs("bash_1"), timed_out(5000), ok("alive")]);
}

#[test]
fn a_shell_in_the_background_has_a_time_limit_only_if_one_is_given() {
    let limited = json!({"name": "Bash", "input": {
        "command": "echo $$ >pid; echo begun; (setsid sh -c 'echo $$ >child; exec sleep 1000' &); sleep 1000",
        "run_in_background": true, "timeout": 2000}});
    let calls = [limited, gone("pid"), gone("child"), look("bash_1")];
    let over =
        "begun\n[bash_1 has failed: timed out after 2000 ms: the command and what it started were ended]";
    tells(story("limited", &calls), &[runs("bash_1"), ok("(no output)"), ok("(no output)"), ok(over)]);
}

#[test]
fn no_more_than_32_run_at_once() {
    let mut calls = vec![start("exec sleep 1000"); 33];
    calls.extend([kill("bash_7"), start("exec sleep 1000"), look("bash_33")]);
    let ids: Vec<String> = (1..=33).map(|number| format!("bash_{number}")).collect();
    let mut expected: Vec<Told> = ids[..32].iter().map(|id| runs(id)).collect();
    let full =
        "32 background shells are running, and there may be no more: end one with KillShell; the shells are ";
    expected.push(failed(&format!("{full}{}", ids[..32].join(", "))));
    expected.extend([killed("bash_7"), runs("bash_33"), ok("(no new output)\n[bash_33 is running]")]);
    let outcome = Run::start(bare("many").reply(asking(1, &calls)).reply(done())).finish();
    outcome.code(0).stdout(DONE).equal(results(&outcome), expected);
}

#[test]
fn a_shell_that_is_not_there_and_a_filter_that_is_none_are_errors_that_help() {
    let calls = [
        look("bash_1"),
        start("echo text; touch written; exec sleep 1000"),
        start("exec sleep 1000"),
        bash("until test -e written; do sleep 0.01; done"),
        look("bash_3"),
        kill("1"),
        look_for("bash_1", "(text"),
        look("bash_1"),
        json!({"name": "KillShell", "input": {}}),
    ];
    let outcome = Run::start(story("not there", &calls)).finish();
    outcome.code(0).stdout(DONE);
    let mut results = results(&outcome);
    let (missing, bad) = (results.remove(8).0, results.remove(6).0);
    let expected = [
        failed("there is no shell \"bash_1\": none was started: a command with run_in_background is one"),
        runs("bash_1"),
        runs("bash_2"),
        ok("(no output)"),
        failed("there is no shell \"bash_3\": the shells are bash_1, bash_2"),
        failed("there is no shell \"1\": the shells are bash_1, bash_2"),
        ok("text\n[bash_1 is running]"),
    ];
    outcome.equal(results, expected.to_vec());
    let refused = "\"filter\" is not a regular expression that can be used, and nothing was read: ";
    outcome.equal((bad.starts_with(refused), bad.contains("unclosed group")), (true, true));
    outcome.equal(missing.starts_with("KillShell needs \"shell_id\"; the schema"), true);
}

#[test]
fn when_the_worker_is_lost_its_shells_are_gone_and_their_ids_stay_theirs() {
    let calls = [
        start("exec sleep 1000"),
        bash("kill -9 $PPID"),
        look("bash_1"),
        start("exec sleep 1000"),
        kill("bash_1"),
        look("bash_2"),
    ];
    let gone =
        "bash_1 is gone: the process that runs tools was lost, and everything it had started was ended";
    let lost =
        "Bash did not finish: the process that runs tools ended; everything it had started has been ended";
    let expected = [
        runs("bash_1"),
        failed(lost),
        failed(gone),
        runs("bash_2"),
        failed(gone),
        ok("(no new output)\n[bash_2 is running]"),
    ];
    tells(story("lost", &calls), &expected);
}

#[test]
fn of_shells_that_have_ended_the_latest_32_are_remembered() {
    let alone = bash(&format!("until {}; do sleep 0.01; done", super::bash::ALONE));
    let mut calls = vec![start("true"); 20];
    calls.push(alone.clone());
    calls.extend(vec![start("true"); 14]);
    calls.extend([alone, look("bash_2"), look("bash_3")]);
    let outcome = Run::start(bare("ended").reply(asking(1, &calls)).reply(done())).finish();
    let ids: Vec<String> = (3..=34).map(|number| format!("bash_{number}")).collect();
    let forgotten = failed(&format!("there is no shell \"bash_2\": the shells are {}", ids.join(", ")));
    let remembered = ok("(no new output)\n[bash_3 has completed: exit code: 0]");
    outcome.code(0).equal(results(&outcome)[36..].to_vec(), vec![forgotten, remembered]);
}
