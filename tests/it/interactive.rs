//! A session on a terminal: a person types lines, and answers are shown as they come.

use std::process::Command;

use crate::server::{Reply, Server};
use crate::stage::{Stage, Terminal, prompt, ran, requests, says};
use crate::story::finish;

struct Session {
    terminal: Terminal,
    child: std::process::Child,
    server: Server,
    _stage: Stage,
}

fn start(name: &str, replies: Vec<Reply>, args: &[&str]) -> Session {
    let stage = Stage::new(name);
    let terminal = Terminal::new();
    let server = Server::start(replies);
    let mut command: Command = stage.ask(server.port(), args);
    command.stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream());
    let child = command.spawn().unwrap();
    drop(command);
    Session { terminal, child, server, _stage: stage }
}

impl Session {
    /// Its exit code, what was shown, and the prompts that the model was sent last in each request.
    fn end(self) -> (Option<i32>, String, Vec<String>) {
        let ended = ran(finish(self.child, None), "a session".to_owned());
        let prompts = requests(self.server).iter().map(prompt).collect();
        (ended.code, self.terminal.shown(), prompts)
    }
}

#[test]
fn each_line_is_a_turn() {
    let session = start("each line", vec![says(&["fir", "st"]), says(&["second"])], &["-q"]);
    session.terminal.wait_for("> ");
    session.terminal.type_in("\n  \nhello\n");
    session.terminal.wait_for("first\r\n> ");
    session.terminal.type_in("and \\\nmore\n");
    session.terminal.wait_for("second\r\n> ");
    session.terminal.type_in("/exit\n");
    let (code, shown, prompts) = session.end();
    assert_eq!((code, prompts), (Some(0), vec!["hello".to_owned(), "and \nmore".to_owned()]));
    assert!(shown.contains("… "), "{shown}");
}

#[test]
fn what_is_typed_on_the_command_line_is_the_first_turn_and_the_end_of_input_the_last() {
    let session = start("the first turn", vec![says(&["well"])], &["-q", "hello"]);
    session.terminal.wait_for("well\r\n> ");
    // Ctrl-D.
    session.terminal.type_in("\u{4}");
    let (code, shown, prompts) = session.end();
    assert_eq!((code, prompts), (Some(0), vec!["hello".to_owned()]));
    assert_eq!(shown, "well\r\n> \r\n");
}

#[test]
fn a_turn_that_fails_is_told_and_the_session_goes_on() {
    let refusal = Reply::new(400, "application/json", r#"{"error":{"message":"no such thing"}}"#);
    let session = start("a failure", vec![refusal, says(&["well"])], &["-q", "one"]);
    session.terminal.wait_for("no such thing");
    session.terminal.wait_for("> ");
    session.terminal.type_in("two\n");
    session.terminal.wait_for("well\r\n> ");
    session.terminal.type_in("\u{4}");
    let (code, _, prompts) = session.end();
    assert_eq!((code, prompts.len()), (Some(4), 2));
}

#[test]
fn a_session_says_who_is_there_and_how_it_is_gone_on_with() {
    let stage = Stage::new("a greeting");
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let on_terminal = |replies: Vec<Reply>, args: &[&str], typed: &[(&str, &str)]| {
        let (terminal, server) = (Terminal::new(), Server::start(replies));
        let mut command: Command = stage.ask(server.port(), args);
        command.stdin(terminal.stream()).stdout(terminal.stream()).stderr(terminal.stream());
        let child = command.spawn().unwrap();
        drop(command);
        for (shown, text) in typed {
            terminal.wait_for(shown);
            terminal.type_in(text);
        }
        let ended = ran(finish(child, None), "a session".to_owned());
        assert_eq!(ended.code, Some(0), "{}", ended.report());
        let asked = requests(server).iter().map(prompt).collect::<Vec<_>>();
        (terminal.shown(), asked)
    };
    let hello =
        format!("version {}, test-model; /exit or Ctrl-D ends the session\r\n", env!("CARGO_PKG_VERSION"));
    let way = format!("cotter: cotter -r {id} goes on with it\r\n");
    let typed = [("> ", "/clear now\n"), ("is a command of claude's", "hi  there\n"), ("well\r\n", "quit\n")];
    let (shown, asked) = on_terminal(vec![says(&["well"])], &["--session-id", id], &typed);
    assert!(shown.starts_with(&format!("cotter: {hello}")) && shown.ends_with(&way), "{shown}");
    assert!(!shown.contains("going on"), "{shown}");
    assert_eq!(asked, ["hi  there"]);
    let (shown, asked) = on_terminal(Vec::new(), &["-r", id], &[("> ", "exit\n")]);
    let on = format!("cotter: {hello}cotter: going on with {id}: \"hi there\"\r\n");
    assert!(shown.starts_with(&on) && !shown.contains("goes on with it"), "{shown}");
    assert_eq!(asked, [] as [&str; 0]);
}

#[test]
fn print_mode_on_a_terminal_is_one_turn() {
    let session = start("print mode", vec![says(&["well"])], &["-q", "-p", "hello"]);
    let (code, shown, _) = session.end();
    assert_eq!((code, shown.as_str()), (Some(0), "well\r\n"));
}
