//! What Bash gives the model and what it keeps from commands.
//!
//! Real shells run behind made-up replies, and what they print is compared whole.

use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::*;
use crate::server::Gate;

/// Says whether the worker has a child beside this command's shell, running or a zombie.
pub const ALONE: &str = r#"test "$(cat /proc/$PPID/task/$PPID/children)" = "$$ " && echo alone"#;

#[test]
fn both_streams_keep_their_order_and_a_last_line_says_how_a_command_failed() {
    let commands = [
        "echo one; echo two >&2; echo three; echo four >&2",
        "echo some; exit 3",
        "exit 4",
        "echo last; kill -9 $$",
        "kill -TERM $$",
        "true",
        "printf 'no newline'",
        "exec >&- 2>&-; exit 5",
        "no-such-command-anywhere",
    ];
    let story = story("streams", &commands.map(bash));
    let expected = [
        ok("one\ntwo\nthree\nfour"),
        failed("some\n[exit code: 3]"),
        failed("[exit code: 4]"),
        failed("last\n[killed by signal 9 (SIGKILL)]"),
        failed("[killed by signal 15 (SIGTERM)]"),
        ok("(no output)"),
        ok("no newline"),
        failed("[exit code: 5]"),
    ];
    let outcome = Run::start(story).finish();
    let mut results = results(&outcome);
    let (text, is_error) = results.pop().unwrap();
    outcome.code(0).equal(results, expected.to_vec());
    // The rest of this line is the shell's own.
    outcome.equal(
        (text.contains("not found"), text.ends_with("\n[exit code: 127]"), is_error),
        (true, true, true),
    );
}

#[test]
fn there_is_no_input_and_nobody_to_page_for() {
    let story = story(
        "no input",
        &[
            bash("cat; read line || echo nothing; echo \"$TERM $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT\""),
            bash("readlink /proc/$$/fd/0 /proc/$PPID/fd/0 /proc/$PPID/fd/1; test -t 1 || echo no terminal"),
        ],
    );
    tells(
        story.args(&UNCONTAINED).stdin("what cotter is asked\n"),
        &[ok("nothing\ndumb cat cat 0"), ok("/dev/null\n/dev/null\n/dev/null\nno terminal")],
    );
}

#[test]
fn places_are_told_relative_to_the_workspace() {
    let commands = [
        r#"pwd; echo "$PWD/a/b.txt:$PWD"; echo "$TMPDIR"; echo "'$TMPDIR/c'" >&2"#,
        "echo kept >file; cd /; pwd",
        r#"cat file; pwd; echo "no $TMPDIR/c"; exit 1"#,
    ];
    let expected = [
        ok(".\n./a/b.txt:.\n$TMPDIR\n'$TMPDIR/c'"),
        ok("/"),
        failed("kept\n.\nno $TMPDIR/c\n[exit code: 1]"),
    ];
    tells(story("places", &commands.map(bash)), &expected);
}

#[test]
fn places_are_known_again_behind_links_and_relative_paths() {
    let command = r#"pwd; echo "$PWD, $OLDPWD"; cd "$TMPDIR"; pwd; pwd -P"#;
    for temp in ["link", "../tmp", "./inside"] {
        let story = story("links", &[bash(command)]).prepared(|work| {
            symlink("../tmp", work.join("link")).unwrap();
            fs::create_dir(work.join("inside")).unwrap();
        });
        // Another name of the current folder, as a shell gives it that came here through a link.
        let run = Run::start(story.env("TMPDIR", temp).env("PWD", "/proc/self/cwd").env("OLDPWD", "/"));
        let outcome = run.finish();
        outcome.code(0).equal(results(&outcome), vec![ok(".\n., \n$TMPDIR\n$TMPDIR")]);
        outcome.equal(fs::read_dir(outcome.folder.join("inside")).unwrap().count(), 0);
    }
}

#[test]
fn cotters_keys_are_not_in_the_environment_of_commands() {
    // That of the command, that of the worker, which a command can read, and that of the supervisor.
    let commands = [
        "env",
        "tr '\\0' '\\n' </proc/$PPID/environ",
        "read -r _ _ _ supervisor _ </proc/$PPID/stat; tr '\\0' '\\n' </proc/$supervisor/environ | grep -v ^TMPDIR=",
    ];
    let story = story("keys", &commands.map(bash))
        .env("HOME", "/home/nobody")
        .env("OPENAI_API_KEY", "other-key")
        .env("OPENROUTER_API_KEY_FILE", "/key")
        .env("ANTHROPIC_AUTH_TOKEN", "token")
        .env("ANTHROPIC_CUSTOM_HEADERS", "x-team: secret-team")
        .env("COPY", "Bearer test-key")
        .env("KEPT", "kept value");
    let outcome = Run::start(story.args(&["--api", "anthropic"]).args(&UNCONTAINED)).finish();
    outcome.code(0).stdout(DONE);
    let results = results(&outcome);
    let names: Vec<Vec<_>> = results.iter().map(|(text, _)| names(text)).collect();
    let kept = ["ANTHROPIC_BASE_URL", "HOME", "KEPT", "PATH", "STORY_MARK"];
    let same = ["LANGUAGE", "LC_ALL", "TZ"];
    let nobody =
        ["DEBIAN_FRONTEND", "EDITOR", "GIT_ASKPASS", "GIT_EDITOR", "GIT_PAGER", "GIT_TERMINAL_PROMPT"];
    let is_there =
        ["MANPAGER", "PAGER", "PIP_NO_INPUT", "SSH_ASKPASS_REQUIRE", "SYSTEMD_PAGER", "TERM", "VISUAL"];
    // The shell's own.
    let shell = ["PWD", "SHLVL", "_"];
    outcome.equal(&names[0], &sorted(&[&kept[..], &same, &nobody, &is_there, &shell, &["TMPDIR"]]));
    outcome.equal(&names[1], &sorted(&[&kept[..], &["TMPDIR"]]));
    outcome.equal(&names[2], &sorted(&[&kept[..]]));
    outcome.equal(results[0].0.contains("KEPT=kept value\n"), true);
}

fn names(environment: &str) -> Vec<&str> {
    let names: Vec<_> = environment.lines().map(|line| line.split_once('=').unwrap().0).collect();
    sorted(&[&names])
}

fn sorted<'a>(lists: &[&[&'a str]]) -> Vec<&'a str> {
    let mut all = lists.concat();
    all.sort_unstable();
    all
}

#[test]
fn what_the_workspace_calls_bash_is_never_run() {
    let path = std::env::var("PATH").unwrap();
    let absolute: Vec<_> = path.split(':').filter(|folder| folder.starts_with('/')).collect();
    let intruder = "#!/bin/sh\necho intruder\n";
    let story = story("intruder", &[bash("echo \"$PATH\"; command -v tool || echo none")])
        .executable("bash", intruder)
        .executable("sh", intruder)
        .executable("tool", intruder)
        .executable("bin/bash", intruder)
        .executable("bin/tool", intruder)
        .env("PATH", &format!(".:bin:./bin::{path}:"));
    tells(story, &[ok(&format!("{}\nnone", absolute.join(":")))]);
}

#[test]
fn a_call_returns_when_its_shell_does_whatever_it_leaves_running() {
    let commands = [
        "sleep 1000 & disown; echo one",
        "setsid sleep 1000 & echo two",
        "(sleep 1000 &); echo three",
        "yes >/dev/null & echo four >&2",
        "exec 3>&1; (sleep 1000 >&3 &); echo five",
    ];
    tells(
        story("returns", &commands.map(bash)),
        &[ok("one"), ok("two"), ok("three"), ok("four"), ok("five")],
    );
}

#[test]
fn what_runs_in_the_background_outlives_later_calls_and_their_timeouts() {
    let both = bash("kill -0 $(cat plain) && kill -0 $(cat session) && echo both");
    let calls = [
        bash(
            "sleep 1000 & echo $! >plain; setsid sh -c 'echo $$ >session; exec sleep 1000' & until test -s session; do sleep 0.01; done",
        ),
        both.clone(),
        bash_for(
            1500,
            "(sleep 1000 & echo $! >orphan); setsid sh -c 'echo $$ >late; exec sleep 1000' & sleep 1000",
        ),
        both,
        bash("for name in orphan late; do kill -0 $(cat $name) 2>&1 | grep -o 'No such process'; done"),
    ];
    let expected = [
        ok("(no output)"),
        ok("both"),
        timed_out("", 1500),
        ok("both"),
        ok("No such process\nNo such process"),
    ];
    tells(story("background", &calls), &expected);
}

#[test]
fn a_server_in_the_background_answers_later_calls() {
    // Once it is let go it prints more than a pipe holds: it would block if nobody read that, and die
    // if the pipe were closed.
    let server = r#"
        mkfifo ask answer
        {
            until test -e go; do sleep 0.01; done
            head -c 300000 /dev/zero
            while read -r line <ask; do echo said; echo "to $line" >answer; done
        } &
        echo started
    "#;
    let calls = [
        bash(server),
        bash("touch go; echo one >ask; cat answer"),
        bash_for(200, "sleep 1000"),
        bash("echo two >ask; cat answer"),
    ];
    tells(story("server", &calls), &[ok("started"), ok("to one"), timed_out("", 200), ok("to two")]);
}

fn timed_out(printed: &str, milliseconds: u64) -> Told {
    failed(&format!(
        "{printed}[timed out after {milliseconds} ms: the command and what it started were ended; give a longer \
         `timeout` (at most 600000), or run it in the background]"
    ))
}

#[test]
fn a_timeout_keeps_what_was_printed_and_ends_what_ignores_signals() {
    let stubborn = "
        trap '' TERM HUP INT
        echo before
        (trap '' TERM; sleep 1000) &
        (setsid sleep 1000 &)
        echo after >&2
        while :; do sleep 1000; done
    ";
    let calls = [bash_for(1500, stubborn), bash(ALONE)];
    tells(story("timeout", &calls), &[timed_out("before\nafter\n", 1500), ok("alone")]);
}

#[test]
fn a_timeout_ends_what_never_stops_forking() {
    let _one_chain = ends::one_chain();
    let calls = ends::FORKING.map(|forking| bash_for(300, &format!("{forking} sleep 1000")));
    let [first, second] = calls;
    let run = Run::start(story("forking", &[first, bash(ALONE), second, bash(ALONE)]));
    let outcome = run.finish();
    let expected = [timed_out("", 300), ok("alone"), timed_out("", 300), ok("alone")];
    outcome.code(0).stdout(DONE).equal(results(&outcome), expected.to_vec());
}

#[test]
fn any_amount_of_output_is_bounded_in_the_result_and_in_memory() {
    let gate = Arc::new(Gate::default());
    let call = asking(1, &[bash("yes 0123456789abcde | head -c 200M")]);
    let run = Run::start(bare("output").reply(call).reply(done().held_by(&gate)));
    gate.wait_until_asked();
    let peaks = [run.cotter(), run.supervisor(), run.worker()].map(|pid| status_number(pid, "VmHWM"));
    gate.open();
    let outcome = run.finish();
    let line = "0123456789abcde\n";
    let part = line.repeat(15_000 / line.len());
    let left_out = (200 << 20) - 2 * part.len();
    let text = format!("{part}[… {left_out} bytes left out …]\n{}", part.trim_end());
    outcome.code(0).equal(results(&outcome), vec![ok(&text)]);
    // In KiB; all the output is ten times that.
    assert!(peaks.iter().all(|peak| *peak < 16_000), "{peaks:?}");
}

/// One screen of a program that draws, and what is left of a progress bar and of colours.
#[test]
fn output_is_told_as_a_terminal_shows_it_in_the_end() {
    let commands = [
        r"printf ' 10%%\r 50%%\r100%%\n'; printf '\033[1;31mred\033[0m\r\n' >&2; printf '\033]0;title\007end'",
        r"printf 'one\ntwo\n'; sleep 0.01; printf '\033[2A\033[Kfirst\n\033[Ksecond\n'",
        r"printf '\033['; sleep 0.01; printf '31mred\303'; sleep 0.01; printf '\251\377'",
        // Kept are the beginning and the end of what is left, not of what was printed.
        r"for i in 1 2 3 4 5 6 7 8 9; do printf '%09000d\r' $i; done; echo; echo end",
    ];
    let expected = [
        ok("100%\nred\nend"),
        ok("first\nsecond"),
        ok("redé\u{fffd}"),
        ok(&format!("{}9\nend", "0".repeat(8999))),
    ];
    tells(story("terminal", &commands.map(bash)), &expected);
}

/// There are 255 of them at most, and each waits for two others.
#[test]
fn a_timeout_ends_processes_that_multiply() {
    let _one_chain = ends::one_chain();
    let multiply =
        "grow() { test $1 = 0 && exec sleep 1000; grow $(($1 - 1)) & grow $(($1 - 1)) & wait; }; grow 7";
    let calls = [bash_for(500, multiply), bash(ALONE)];
    tells(story("multiply", &calls), &[timed_out("", 500), ok("alone")]);
}

#[test]
fn a_command_that_closes_its_output_is_waited_for() {
    let calls = [
        bash("exec >&- 2>&-; sleep 0.2; echo late >file"),
        bash("cat file"),
        bash_for(1500, "echo before; exec >&- 2>&-; trap '' TERM; sleep 1000"),
        bash(ALONE),
    ];
    let expected = [ok("(no output)"), ok("late"), timed_out("before\n", 1500), ok("alone")];
    tells(story("closes", &calls), &expected);
}

#[test]
fn orphans_that_end_do_not_stay_as_zombies() {
    let calls = [
        bash("for i in 1 2 3 4 5 6 7 8 9; do (true &); done"),
        bash(&format!("until {ALONE}; do sleep 0.01; done")),
    ];
    tells(story("zombies", &calls), &[ok("(no output)"), ok("alone")]);
}

/// It was waited for until somebody ended the run.
#[test]
fn a_command_that_stops_the_process_it_runs_in_does_not_stop_the_run() {
    let calls = [bash("kill -STOP $PPID; echo on"), bash("echo after")];
    tells(story("stopped", &calls), &[ok("on"), ok("after")]);
}

#[test]
fn arguments_of_the_wrong_kind_are_refused_with_the_schema() {
    let outcome = Run::start(story("arguments", &[bash(" ")])).finish();
    let (text, is_error) = results(&outcome).remove(0);
    let refused = text.starts_with(
        "Bash cannot run a \"command\" that is empty; the schema of its arguments is {\"type\":",
    );
    outcome.code(0).equal((refused, is_error), (true, true));
}

/// The name of the private folder in results led nowhere when a call gave it back.
#[test]
fn the_private_folder_is_reached_by_its_name_in_results() {
    let call = |tool: &str, input: Value| json!({"name": tool, "input": input});
    let calls = [
        bash("seq 3 >\"$TMPDIR/out\"; ln -s ../../etc \"$TMPDIR/up\"; echo \"$TMPDIR/out\""),
        call("Read", json!({"file_path": "$TMPDIR/out", "offset": 2})),
        call("Grep", json!({"pattern": "3", "path": "$TMPDIR", "output_mode": "content"})),
        call("Glob", json!({"pattern": "$TMPDIR/o*"})),
        call("Write", json!({"file_path": "$TMPDIR/more/in", "content": "four\n"})),
        call("Edit", json!({"file_path": "$TMPDIR/more/in", "old_string": "four", "new_string": "five"})),
        bash("cat \"$TMPDIR/more/in\""),
        call("Read", json!({"file_path": "$TMPDIR/none"})),
        call("Write", json!({"file_path": "$TMPDIR/../none", "content": "x"})),
    ];
    for args in [&[][..], &["--sandbox", "read-only"], &["--allowedTools", "Bash"]] {
        let outcome = Run::start(story("private folder", &calls).args(args)).finish();
        let told = results(&outcome);
        let expected = [
            ok("$TMPDIR/out"),
            ok("2\n3\n"),
            ok("$TMPDIR/out:3:3\n"),
            ok("$TMPDIR/out\n"),
            ok("created $TMPDIR/more/in (5 bytes)"),
            ok("edited $TMPDIR/more/in (1 replacement at line 1)"),
            ok("five"),
            failed("there is no file $TMPDIR/none, and no name like it in $TMPDIR"),
            failed("$TMPDIR/../none leads out of $TMPDIR: give the path that is meant itself"),
        ];
        outcome.code(0).equal(&told[..], &expected[..]);
    }
}
