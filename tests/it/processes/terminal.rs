//! A person at a terminal: one Ctrl-C ends a run and all its tools, and the terminal is what it was.
//!
//! A shell stands above the program, as above every one that somebody starts, and says how it ended.

use std::io::Write;
use std::process::{Child, Command};

use super::ends::{HARD_TO_END, sleeping, wait_until_only};
use super::*;
use crate::server::Server;
use crate::stage::{Stage, Terminal, accept, base_url, calls, read_request, serve};
use crate::story::can_end;

/// Once the program has ended the shell says how, and then keeps the terminal until a line is typed.
const ABOVE: &str = r#"trap : INT; STORY_MARK=$MARK "$cotter" "$@"; echo "status $?"; read -r line"#;
const CTRL_C: &str = "\u{3}";

struct Person {
    stage: Stage,
    terminal: Terminal,
    mark: Mark,
    modes: String,
    shell: Child,
}

impl Person {
    /// Starts the program at a terminal that its shell controls.
    fn start(args: &[&str]) -> Person {
        let (stage, terminal, mark) = (Stage::new("person"), Terminal::new(), Mark::new());
        let modes = terminal.modes();
        let mut command = Command::new("setsid");
        command.args(["-c", "sh", "-c", ABOVE, "sh"]).args(args).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).current_dir(stage.path(""));
        command.env("HOME", stage.root().join("home")).env("TMPDIR", stage.root().join("tmp"));
        command.env("MARK", &mark.0).env("cotter", crate::story::program());
        command.stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream());
        let shell = command.spawn().unwrap();
        Person { stage, terminal, mark, modes, shell }
    }

    fn ask(port: u16) -> Person {
        Person::start(&["--base-url", &base_url(port), "--model", "m", "-p", "Do it."])
    }

    /// One Ctrl-C: the program has died of it, nothing is left, and the terminal is as before. Returns what
    /// the terminal showed.
    #[track_caller]
    fn interrupt(mut self) -> String {
        self.terminal.type_in(CTRL_C);
        self.terminal.wait_for("status 130");
        wait_until_only(Pid::from_child(&self.shell), &self.mark, &self.stage.path(""));
        assert_eq!(self.terminal.modes(), self.modes);
        self.terminal.type_in("\n");
        self.shell.wait().unwrap();
        self.terminal.shown()
    }
}

#[test]
fn one_ctrl_c_while_a_command_runs_ends_all_and_leaves_no_colour() {
    if !can_end(Signal::INT, "one_ctrl_c_while_a_command_runs_ends_all_and_leaves_no_colour") {
        return;
    }
    let server = Server::start(vec![calls("call_1", "Bash", &json!({"command": HARD_TO_END}))]);
    let person = Person::ask(server.port());
    wait_for("all that is started", || (sleeping(&person.mark) == 7).then_some(()));
    let shown = person.interrupt();
    assert_eq!(shown.matches("\u{1b}[2mBash").count(), 1, "{shown:?}");
    assert_eq!(shown.matches("\u{1b}[2m").count(), shown.matches("\u{1b}[0m").count(), "{shown:?}");
    server.stop();
}

#[test]
fn one_ctrl_c_while_text_streams_ends_the_run() {
    if !can_end(Signal::INT, "one_ctrl_c_while_text_streams_ends_the_run") {
        return;
    }
    let (port, served) = serve(|listener| {
        let mut stream = accept(&listener);
        read_request(&mut stream).unwrap();
        let chunk = r#"data: {"choices":[{"index":0,"delta":{"content":"Half an"}}]}"#;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 100000\r\n\r\n";
        stream.write_all(format!("{head}{chunk}\n\n").as_bytes()).unwrap();
        // The rest of the answer never comes; the program's end closes the connection.
        read_request(&mut stream).is_none()
    });
    let person = Person::ask(port);
    person.terminal.wait_for("Half an");
    let shown = person.interrupt();
    assert!(shown.ends_with("Half an^Cstatus 130\r\n\r\n"), "{shown:?}");
    assert!(served.join().unwrap());
}

#[test]
fn one_ctrl_c_ends_a_command_that_reads_the_terminal() {
    if !can_end(Signal::INT, "one_ctrl_c_ends_a_command_that_reads_the_terminal") {
        return;
    }
    for flags in [&[][..], &["--sandbox", "off"]] {
        let script = "trap '' INT; (setsid sleep 1000 &); echo ask; read -r line; echo \"got $line\"";
        let person = Person::start(&[&["sandbox"], flags, &["--", "sh", "-c", script]].concat());
        person.terminal.wait_for("ask");
        let shown = person.interrupt();
        assert_eq!(shown, "ask\r\n^Cstatus 130\r\n\r\n");
    }
}

/// What Ctrl-Z does to cotter; its tools are in a session of their own and run on.
#[test]
fn a_stopped_run_takes_what_its_tools_did_meanwhile() {
    let works = bash("touch begun; until test -e go; do sleep 0.01; done; touch gone; echo done");
    let run = Run::start(story("stopped", &[works]));
    stop(&run);
    run.let_go("go");
    wait_for("the work", || run.file("gone").exists().then_some(()));
    continue_again(&run);
    let outcome = run.finish();
    outcome.code(0).stdout(DONE).equal(results(&outcome), vec![ok("done")]);
}

#[test]
fn a_stopped_run_still_ends_a_command_at_its_time() {
    let run = Run::start(story("timed", &[bash_for(200, "echo $$ >begun; exec sleep 1000")]));
    stop(&run);
    let command = pid_in(&run.line_in("begun"));
    wait_for("its end", || has_ended(command).then_some(()));
    continue_again(&run);
    let outcome = run.finish();
    let told = results(&outcome).remove(0);
    outcome.code(0).equal((told.0.contains("timed out after 200 ms"), told.1), (true, true));
}

/// Once the tool has begun, cotter is stopped.
fn stop(run: &Run) {
    wait_for("the tool", || run.file("begun").exists().then_some(()));
    kill_process(run.cotter(), Signal::STOP).unwrap();
    wait_for("the stop", || is_stopped(run.cotter()).then_some(()));
}

fn continue_again(run: &Run) {
    assert!(is_stopped(run.cotter()));
    kill_process(run.cotter(), Signal::CONT).unwrap();
}

fn is_stopped(pid: Pid) -> bool {
    stat_word(pid, 0).as_deref() == Some("T")
}

/// The program ignores this signal, which what it starts must not inherit.
#[test]
fn a_writer_whose_reader_is_gone_dies_of_it() {
    let program = json!({"name": "probe", "input": {}});
    let line = "yes | head -n 1; echo ${PIPESTATUS[0]}";
    let story = story("pipe", &[bash(line), program]).args(&["--tool", "./probe"]);
    let story = story.executable("probe", &format!("#!/bin/bash\n{line}\n"));
    let description = json!({"name": "probe", "description": "Probes.", "input_schema": {"type": "object"}});
    let expected = [ok("y\n141"), ok("y\n141\n")];
    tells(story.file("probe.json", description.to_string()), &expected);
}
