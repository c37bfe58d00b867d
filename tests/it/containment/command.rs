//! `cotter sandbox`: any command in the containment of tools, with its own streams and status.

use std::os::unix::process::ExitStatusExt;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::*;
use crate::server::Server;
use crate::stage::{Stage, Terminal, base_url, run as run_to_end, run_with_input, says};
use crate::story::can_end;

/// How a command ends in the containment: its code, what it printed, and what is on standard error.
#[track_caller]
fn ended(stage: &Stage, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = stage.command(&[&["sandbox"], args].concat());
    // A folder that may not be looked into would make of a missing program one that may not be run.
    let ran = run_to_end(command.env("PATH", "/usr/bin:/bin"));
    (ran.code, ran.text().to_owned(), ran.stderr.clone())
}

fn said(code: i32, stdout: &str, stderr: &str) -> (Option<i32>, String, String) {
    (Some(code), stdout.to_owned(), stderr.to_owned())
}

#[test]
fn a_command_has_its_own_streams_and_status() {
    let stage = Stage::new("command");
    let both = ["--", "sh", "-c", "echo out; echo err >&2; exit 7"];
    assert_eq!(ended(&stage, &both), said(7, "out\n", "err\n"));
    assert_eq!(ended(&stage, &["echo", "--help", "-x"]), said(0, "--help -x\n", ""));
    assert_eq!(ended(&stage, &["--sandbox", "off", "true"]), said(0, "", ""));
    let mut cat = stage.command(&["sandbox", "cat"]);
    cat.stdin(Stdio::piped());
    run_with_input(&mut cat, "in\n").code(0).stdout("in\n");
}

#[test]
fn what_cannot_be_run_has_the_codes_of_env() {
    let stage = Stage::new("not run");
    stage.write("plain", "text");
    let missing = "cotter: cannot run 'no-such-program': No such file or directory (os error 2)\n";
    assert_eq!(ended(&stage, &["--", "no-such-program"]), said(127, "", missing));
    let plain = "cotter: cannot run './plain': Permission denied (os error 13)\n";
    assert_eq!(ended(&stage, &["--", "./plain"]), said(126, "", plain));
    let none = "cotter: cotter sandbox needs a command, as in: cotter sandbox -- make test; to ask the model, say \
                cotter -p sandbox\n";
    assert_eq!(ended(&stage, &[]), said(2, "", none));
    let unknown = "cotter: cotter sandbox has no flag --model: see cotter sandbox --help\n";
    assert_eq!(ended(&stage, &["--model", "x", "true"]), said(2, "", unknown));
    // No JSON of ours stands where the command's own output is expected.
    let format = "cotter: cotter sandbox has no flag --output-format: see cotter sandbox --help\n";
    assert_eq!(ended(&stage, &["--output-format", "json", "true"]), said(2, "", format));
    let folder = "cotter: --add-dir \"missing\": No such file or directory (os error 2)\n";
    assert_eq!(ended(&stage, &["--add-dir", "missing", "true"]), said(2, "", folder));
}

#[test]
fn a_command_that_a_signal_ends_is_passed_on_as_that() {
    let stage = Stage::new("signals");
    for signal in [Signal::TERM, Signal::KILL, Signal::SEGV, Signal::HUP] {
        if !can_end(signal, "a_command_that_a_signal_ends_is_passed_on_as_that") {
            continue;
        }
        let script = format!("kill -{} $$", signal.as_raw());
        let ran = run_to_end(&mut stage.command(&["sandbox", "--", "sh", "-c", &script]));
        assert_eq!((ran.code, ran.signal), (None, Some(signal.as_raw())), "{}", ran.report());
    }
}

#[test]
fn a_command_is_contained_as_the_flags_say() {
    let stage = Stage::new("flags");
    let write = "echo x >../home/a && echo written";
    let in_home = |args: &[&str]| {
        let args = [&["sandbox"], args, &["--", "sh", "-c", write]].concat();
        let ran = run_to_end(&mut stage.command(&args));
        (ran.code == Some(0), ran.text().to_owned())
    };
    assert_eq!(in_home(&[]), (false, String::new()));
    assert_eq!(in_home(&["--sandbox", "read-only", "--add-dir", "../home"]), (false, String::new()));
    for args in [&["--add-dir", "../home"][..], &["--sandbox", "off"], &["--add-dir", "/"]] {
        assert_eq!(in_home(args), (true, "written\n".to_owned()), "{args:?}");
    }
    let variables = |args: &[&str]| {
        let args = [&["sandbox"], args, &["--", "sh", "-c", "echo $MY_TOKEN $HOME_OF_MINE"]].concat();
        let mut command = stage.command(&args);
        run_to_end(command.env("MY_TOKEN", "t").env("HOME_OF_MINE", "h")).text().to_owned()
    };
    assert_eq!(variables(&[]), "h\n");
    assert_eq!(variables(&["--pass-env", "MY_TOKEN"]), "t h\n");
    assert_eq!(variables(&["--sandbox", "off"]), "t h\n");
    let defaults = stage.write("defaults", "--pass-env=MY_TOKEN\n");
    let mut command = stage.command(&["sandbox", "--", "sh", "-c", "echo $MY_TOKEN"]);
    run_to_end(command.env("MY_TOKEN", "t").env("COTTER_CONFIG", defaults)).code(0).stdout("t\n");
    let folder = stage.root().join("home").display().to_string();
    assert_eq!(ended(&stage, &["-C", "../tmp", "pwd"]).1, format!("{}\n", folder.replace("/home", "/tmp")));
}

/// A flag for runs in the file of defaults took the containment away, or made it read-only, and nothing said so.
#[test]
fn the_file_of_defaults_decides_on_the_permissions_of_runs_alone() {
    let stage = Stage::new("defaults of runs");
    for (name, flags) in [("skip", "--dangerously-skip-permissions\n"), ("plan", "--permission-mode=plan\n")]
    {
        let defaults = stage.write(name, flags);
        let script = "echo x >a && echo written; echo x >../home/a || echo contained";
        let mut command = stage.command(&["sandbox", "--", "sh", "-c", script]);
        let ran = run_to_end(command.env("COTTER_CONFIG", &defaults));
        ran.code(0).stdout("written\ncontained\n");
        let mut command =
            stage.command(&["sandbox", "--sandbox", "off", "--", "sh", "-c", "echo x >../home/b"]);
        run_to_end(command.env("COTTER_CONFIG", &defaults)).code(0).stdout("");
    }
}

/// A home that is a link is known again, and so is a folder that is named by one.
#[test]
fn folders_are_told_by_their_real_paths() {
    let stage = Stage::new("links");
    let link = stage.root().join("link");
    std::os::unix::fs::symlink(stage.root().join("work"), &link).unwrap();
    let write = ["sandbox", "--", "sh", "-c", "echo x >a && echo written"];
    let mut command = stage.command(&write);
    let ran = run_to_end(command.env("HOME", &link));
    ran.code(2).stdout("");
    assert!(ran.stderr.starts_with("cotter: the current folder is the home folder"), "{}", ran.report());
    let mut command = stage.command(&[&["sandbox", "--add-dir", "../link"], &write[1..]].concat());
    run_to_end(command.env("HOME", &link)).code(0).stdout("written\n");
    let script = "cd /; echo x >\"$TMPDIR/a\" && echo \"${TMPDIR%/*}\"";
    let real = format!("{}/work\n", stage.root().display());
    for parent in [link.to_str().unwrap(), "../link", "."] {
        let mut command = stage.command(&["sandbox", "--", "sh", "-c", script]);
        run_to_end(command.env("TMPDIR", parent)).code(0).stdout(&real);
    }
}

#[test]
fn a_temporary_folder_by_a_relative_path_or_a_link_can_be_written() {
    let stage = Stage::new("temporary");
    fs::create_dir(stage.path("real")).unwrap();
    std::os::unix::fs::symlink("real", stage.path("link")).unwrap();
    for place in ["real", "link", "../tmp"] {
        let mut command = stage.command(&[
            "sandbox",
            "--",
            "sh",
            "-c",
            "cd / && echo x >\"$TMPDIR/a\" && cat \"$TMPDIR/a\"",
        ]);
        run_to_end(command.env("TMPDIR", place)).code(0).stdout("x\n").stderr("");
    }
}

#[test]
fn nothing_of_a_command_outlives_it_and_its_folder_goes() {
    let stage = Stage::new("left");
    let script = "echo x >\"$TMPDIR/file\"; setsid sleep 1000 >/dev/null 2>&1 & echo $!; exit 3";
    let (code, number, _) = ended(&stage, &["--", "sh", "-c", script]);
    assert_eq!(code, Some(3));
    let pid = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
    assert_eq!(test_kill_process(pid), Err(rustix::io::Errno::SRCH));
    assert_eq!(fs::read_dir(stage.root().join("tmp")).unwrap().count(), 0);
}

#[test]
fn what_ran_before_the_command_outlives_it() {
    let stage = Stage::new("before");
    let script = "sleep 1000 >/dev/null 2>&1 & echo $!; exec \"$cotter\" sandbox -- true";
    let ran = run_to_end(&mut stage.shell(0, script));
    ran.code(0);
    let pid = Pid::from_raw(ran.text().trim().parse().unwrap()).unwrap();
    assert_eq!(kill_process(pid, Signal::KILL), Ok(()));
}

#[test]
fn a_tree_deeper_than_there_are_descriptors_goes_with_the_folder() {
    let stage = Stage::new("deep");
    let script = "ulimit -n 256; exec \"$cotter\" sandbox -- \
                  sh -c 'mkdir -p \"$TMPDIR/$(printf a/%.0s $(seq 1500))\" && echo made'";
    run_to_end(&mut stage.shell(0, script)).code(0).stdout("made\n").stderr("");
    assert_eq!(fs::read_dir(stage.root().join("tmp")).unwrap().count(), 0);
}

/// Before the model is asked anything, whichever tools of this kind there are.
#[test]
fn without_a_folder_for_temporary_ones_nothing_runs() {
    let stage = Stage::new("no temporary folder");
    let line = "cotter: cannot make a temporary folder in 'PLACE': WHY; set TMPDIR to a folder that can be written\n";
    for (name, why) in
        [("missing", "No such file or directory (os error 2)"), ("file", "Not a directory (os error 20)")]
    {
        let place = stage.root().join("work").join(name).display().to_string();
        stage.write("file", "");
        let line = line.replace("PLACE", &place).replace("WHY", why);
        for args in [&["sandbox", "true"][..], &["sandbox", "--sandbox", "off", "true"]] {
            run_to_end(stage.command(args).env("TMPDIR", &place)).code(2).stdout("").stderr(&line);
        }
        // Nobody listens at this port.
        for args in [&["-p", "x"][..], &["-p", "x", "--tools", "Write"]] {
            run_to_end(stage.ask(9, args).env("TMPDIR", &place)).code(2).stdout("").stderr(&line);
        }
        let server = Server::start(vec![says(&["Yes."])]);
        let args = ["-p", "x", "--tools", "Read"];
        run_to_end(stage.ask(server.port(), &args).env("TMPDIR", &place)).code(0).stdout("Yes.\n");
    }
}

/// As services are started.
#[test]
fn the_home_folder_is_known_without_a_variable() {
    let test = "the_home_folder_is_known_without_a_variable";
    let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = rustix::process::getuid().as_raw().to_string();
    let own = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|line| line[2] == user);
    let Some(home) = own.map(|line| line[5]).filter(|home| fs::read_dir(home).is_ok()) else {
        return skipped(test, "the list of accounts has no home for this user");
    };
    let stage = Stage::new("no home");
    let mut command = stage.command(&["sandbox", "true"]);
    let ran = run_to_end(command.env_remove("HOME").current_dir(home));
    let line = "cotter: the current folder is the home folder: this run is read-only (--add-dir . lets tools write \
                here)\n";
    ran.code(0).stdout("").stderr(line);
}

#[test]
fn a_signal_ends_cotter_and_the_command_that_ignores_it() {
    let test = "a_signal_ends_cotter_and_the_command_that_ignores_it";
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        if !can_end(signal, test) {
            continue;
        }
        let stage = Stage::new("ended");
        let script = "trap '' TERM HUP INT; echo $$ >started; sleep 1000";
        let mut command = stage.command(&["sandbox", "--", "sh", "-c", script]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = stage.path("started");
        let number = wait_until(|| fs::read_to_string(&started).ok()?.trim().parse().ok());
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal.as_raw()));
        let pid = Pid::from_raw(number).unwrap();
        wait_until(|| test_kill_process(pid).is_err().then_some(()));
        wait_until(|| (fs::read_dir(stage.root().join("tmp")).unwrap().count() == 0).then_some(()));
    }
}

#[test]
fn a_terminal_is_read_and_written_but_is_not_controlled() {
    let stage = Stage::new("terminal");
    let terminal = Terminal::new();
    let script =
        "test -t 0 && echo ask; read -r line; echo \"got $line\"; echo x 2>/dev/null >/dev/tty || echo no";
    let mut command = stage.command(&["sandbox", "--", "sh", "-c", script]);
    let mut child =
        command.stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream()).spawn().unwrap();
    drop(command);
    terminal.wait_for("ask");
    terminal.type_in("this\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(terminal.shown(), "ask\r\nthis\r\ngot this\r\nno\r\n");
}

fn wait_until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + crate::story::DEADLINE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(std::time::Instant::now() < deadline, "waited in vain");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn the_word_is_a_prompt_behind_a_flag() {
    let stage = Stage::new("prompt");
    let server = Server::start(vec![says(&["A box."])]);
    let url = base_url(server.port());
    let args = ["-p", "sandbox", "--base-url", &url, "--model", "m"];
    run_to_end(&mut stage.command(&args)).code(0).stdout("A box.\n");
    server.stop();
}

#[test]
fn its_help_names_its_flags_and_fits() {
    let stage = Stage::new("help");
    let (code, help, stderr) = ended(&stage, &["--help"]);
    assert_eq!((code, &*stderr), (Some(0), ""));
    assert!(help.contains("\nUsage: cotter sandbox [OPTIONS] [--] CMD [ARG...]\n"), "{help}");
    for flag in ["--sandbox MODE", "--allow-net", "--add-dir DIR", "--pass-env NAME", "-C, --directory DIR"] {
        assert!(help.contains(flag), "{flag}: {help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 112) && !help.contains("--model"), "{help}");
}
