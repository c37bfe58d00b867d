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
fn print_mode_on_a_terminal_is_one_turn() {
    let session = start("print mode", vec![says(&["well"])], &["-q", "-p", "hello"]);
    let (code, shown, _) = session.end();
    assert_eq!((code, shown.as_str()), (Some(0), "well\r\n"));
}
