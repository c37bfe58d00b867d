//! Standard input, output and error over real pipes, files, sockets and terminals: nothing given is lost,
//! nothing but the answer is printed, and nobody waits in silence.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;

use crate::server::{Ending, Reply, Server};
use crate::stage::{Ran, Stage, Terminal, calls, prompt, ran, requests, run, run_with_input, says};
use crate::story::{DEADLINE, finish};

const NO_PROMPT: &str =
    "cotter: no prompt: give it as an argument, with -f FILE, or on standard input (see cotter --help)\n";

/// Runs with one answer to come, and gives the prompt that was sent.
#[track_caller]
fn prompt_sent(stage: &Stage, run: impl FnOnce(&Stage, u16) -> Ran) -> String {
    let server = Server::start(vec![says(&["Done."])]);
    run(stage, server.port()).code(0).stdout("Done.\n").stderr("");
    prompt(&requests(server)[0])
}

/// The prompt sent when a shell script runs the program.
#[track_caller]
fn prompt_of_script(stage: &Stage, script: &str) -> String {
    prompt_sent(stage, |stage, port| run(&mut stage.shell(port, script)))
}

/// The prompt sent with these bytes in a pipe.
#[track_caller]
fn prompt_of_pipe(bytes: &[u8], args: &[&str]) -> String {
    let stage = Stage::new("pipe");
    prompt_sent(&stage, |stage, port| run_with_input(&mut stage.ask(port, args), bytes))
}

/// What is said to a command line that asks nothing of any server.
#[track_caller]
fn refused(stage: &Stage, args: &[&str], input: Option<&[u8]>) -> String {
    let server = Server::start(Vec::new());
    let mut command = stage.ask(server.port(), args);
    let ran = match input {
        Some(bytes) => run_with_input(&mut command, bytes),
        None => run(&mut command),
    };
    assert_eq!(requests(server).len(), 0, "{}", ran.report());
    ran.code(2).stdout("");
    ran.stderr
}

#[test]
fn a_pipe_is_the_prompt_or_follows_it_in_a_marked_block() {
    assert_eq!(prompt_of_pipe(b"What is this?\n", &[]), "What is this?");
    assert_eq!(prompt_of_pipe(b"\nWhat is this?\r\n\n", &["-p"]), "\nWhat is this?");
    assert_eq!(prompt_of_pipe(b"a\nb\n", &["-p", "Sort."]), "Sort.\n\n<stdin>\na\nb\n</stdin>");
    assert_eq!(prompt_of_pipe(b"no end", &["Sort."]), "Sort.\n\n<stdin>\nno end\n</stdin>");
}

#[test]
fn a_long_pipe_arrives_whole() {
    let text = "0123456789abcde\n".repeat(200_000);
    assert!(prompt_of_pipe(text.as_bytes(), &["-p"]) == text.trim_end());
}

#[test]
fn an_empty_pipe_adds_nothing_and_is_no_prompt() {
    assert_eq!(prompt_of_pipe(b"", &["-p", "Hi."]), "Hi.");
    let stage = Stage::new("empty pipe");
    assert_eq!(refused(&stage, &["-p"], Some(b"")), NO_PROMPT);
    assert_eq!(refused(&stage, &["-p"], Some(b" \n")), NO_PROMPT);
}

#[test]
fn the_null_device_a_closed_stdin_and_the_flag_mean_none() {
    let stage = Stage::new("none");
    stage.write("data", "data\n");
    let ask = r#""$cotter" --base-url "$url" --model m -p "Hi.""#;
    for redirection in ["</dev/null", "<&-", "-n <data", "--no-stdin <data"] {
        assert_eq!(prompt_of_script(&stage, &format!("{ask} {redirection}")), "Hi.", "{redirection}");
    }
    assert_eq!(prompt_of_pipe(b"unread", &["-q", "-n", "-p", "Hi."]), "Hi.");
    for (bytes, flag, said) in
        [("unread", "-p", "cotter: -n: standard input is not read\n"), ("unread", "-q", ""), ("", "-p", "")]
    {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(bytes.as_bytes()).unwrap();
        let server = Server::start(vec![says(&["Done."])]);
        let mut command = stage.ask(server.port(), &["-n", flag, "Hi."]);
        run(command.stdin(reader)).code(0).stdout("Done.\n").stderr(said);
        server.stop();
    }
    assert_eq!(refused(&stage, &["-p"], None), NO_PROMPT);
}

#[test]
fn a_file_at_its_beginning_is_read_and_one_that_a_loop_reads_is_not() {
    let stage = Stage::new("file");
    stage.write("data", "one\ntwo\n");
    let ask = r#""$cotter" --base-url "$url" --model m"#;
    let block = "Hi.\n\n<stdin>\none\ntwo\n</stdin>";
    assert_eq!(prompt_of_script(&stage, &format!(r#"{ask} "Hi." <data"#)), block);
    assert_eq!(prompt_of_script(&stage, &format!("{ask} <data")), "one\ntwo");
    assert_eq!(prompt_of_script(&stage, &format!(r#"{{ read a; {ask} "$a"; }} <data"#)), "one");
    assert_eq!(
        prompt_of_script(&stage, &format!(r#"{{ read a; {ask} "$a" -; }} <data"#)),
        "one\n\n<stdin>\ntwo\n</stdin>"
    );
}

#[test]
fn a_loop_over_the_lines_of_a_file_asks_once_for_each() {
    let stage = Stage::new("loop");
    stage.write("data", "one\ntwo\nthree\n");
    let server = Server::start(vec![says(&["1"]), says(&["2"]), says(&["3"])]);
    let script = r#"while read line; do "$cotter" --base-url "$url" --model m -p "$line"; done <data"#;
    run(&mut stage.shell(server.port(), script)).code(0).stdout("1\n2\n3\n").stderr("");
    let prompts: Vec<_> = requests(server).iter().map(prompt).collect();
    assert_eq!(prompts, ["one", "two", "three"]);
}

#[test]
fn a_socket_is_read_to_its_end() {
    let stage = Stage::new("socket");
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    ours.write_all(b"by socket").unwrap();
    drop(ours);
    let sent =
        prompt_sent(&stage, |stage, port| run(stage.ask(port, &["-p", "Hi."]).stdin(OwnedFd::from(theirs))));
    assert_eq!(sent, "Hi.\n\n<stdin>\nby socket\n</stdin>");
}

#[test]
fn a_dash_forces_reading() {
    assert_eq!(prompt_of_pipe(b"piped", &["-n", "-p", "-"]), "piped");
    assert_eq!(prompt_of_pipe(b"piped", &["-p", "Hi.", "-"]), "Hi.\n\n<stdin>\npiped\n</stdin>");
    let stage = Stage::new("dash");
    let sent = prompt_sent(&stage, |stage, port| run(&mut stage.ask(port, &["Hi.", "-"])));
    assert_eq!(sent, "Hi.");
}

#[test]
fn a_terminal_is_read_only_when_a_dash_asks_for_it() {
    let stage = Stage::new("typed");
    let terminal = Terminal::new();
    let sent =
        prompt_sent(&stage, |stage, port| run(stage.ask(port, &["-p", "Hi."]).stdin(terminal.stream())));
    assert_eq!(sent, "Hi.");
    run(stage.ask(1, &["-p"]).stdin(terminal.stream())).code(2).stdout("").stderr(NO_PROMPT);
    // The last of these is what ends the input of a terminal.
    terminal.type_in("by hand\n\u{4}");
    let sent =
        prompt_sent(&stage, |stage, port| run(stage.ask(port, &["-p", "Hi.", "-"]).stdin(terminal.stream())));
    assert_eq!(sent, "Hi.\n\n<stdin>\nby hand\n</stdin>");
}

#[test]
fn marked_text_is_decoded_and_other_bytes_are_refused_with_their_offset() {
    assert_eq!(prompt_of_pipe(b"\xEF\xBB\xBFcaf\xC3\xA9", &["-p"]), "café");
    assert_eq!(prompt_of_pipe(b"\xFF\xFEh\x00\xE9\x00\x3D\xD8\x00\xDE", &["-p"]), "hé😀");
    assert_eq!(prompt_of_pipe(b"\xFE\xFF\x00h\x00\xE9", &["-p"]), "hé");
    let stage = Stage::new("bytes");
    let pipe = |bytes: &[u8]| refused(&stage, &["-p", "Hi."], Some(bytes));
    let place = |offset, encoding| {
        format!("cotter: standard input is not text: the byte at offset {offset} is not valid {encoding}\n")
    };
    assert_eq!(pipe(b"abc\xFFdef"), place(3, "UTF-8"));
    assert_eq!(pipe(b"\x7FELF\x02\x01\x01\x00\x80"), place(8, "UTF-8"));
    assert_eq!(pipe(b"\xFF\xFEh\x00i"), place(4, "UTF-16"));
    // The offset is that of the byte, however many bytes the characters before it take.
    assert_eq!(pipe(b"\xFF\xFE\x3D\xD8\x00\xDE\x00\xDEa\x00"), place(6, "UTF-16"));
}

#[test]
fn an_idle_pipe_is_announced_and_waited_for() {
    let stage = Stage::new("idle");
    let server = Server::start(vec![says(&["Done."])]);
    let mut command = stage.ask(server.port(), &["-q", "-p", "Hi."]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let (sender, line) = mpsc::channel();
    let reading = thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_line(&mut text);
        let _ = sender.send(text);
        let mut rest = String::new();
        stderr.read_to_string(&mut rest).map(|_| rest)
    });
    let notice =
        "cotter: waiting for standard input to end (pass -n or </dev/null if there is none)\n".to_owned();
    assert_eq!(line.recv_timeout(DEADLINE), Ok(notice));
    let ran = ran(finish(child, Some(b"late, but whole".to_vec())), format!("{command:?}"));
    ran.code(0).stdout("Done.\n");
    assert_eq!(reading.join().unwrap().unwrap(), "");
    assert_eq!(prompt(&requests(server)[0]), "Hi.\n\n<stdin>\nlate, but whole\n</stdin>");
}

#[test]
fn a_prompt_file_may_be_a_script_and_text_follows_it() {
    let stage = Stage::new("prompt file");
    stage.write("plain", "From a file.");
    stage.write("script", "#!/usr/bin/env -S cotter -f\nFrom a script.");
    stage.write("marked", b"\xFF\xFEh\x00i\x00");
    stage.write("broken", b"ab\xC3(");
    let sent = |args: &[&str]| prompt_sent(&stage, |stage, port| run(&mut stage.ask(port, args)));
    assert_eq!(sent(&["-f", "plain"]), "From a file.");
    assert_eq!(sent(&["-p", "--prompt-file=script"]), "From a script.");
    assert_eq!(sent(&["-f", "script", "And more."]), "From a script.\n\nAnd more.");
    assert_eq!(sent(&["More.", "-f", "plain"]), "From a file.\n\nMore.");
    assert_eq!(sent(&["-f", "marked"]), "hi");
    let with_pipe = prompt_sent(&stage, |stage, port| {
        run_with_input(&mut stage.ask(port, &["-f", "plain", "More."]), "piped")
    });
    assert_eq!(with_pipe, "From a file.\n\nMore.\n\n<stdin>\npiped\n</stdin>");
    assert_eq!(
        refused(&stage, &["-f", "broken"], None),
        "cotter: \"broken\" is not text: the byte at offset 2 is not valid UTF-8\n"
    );
    assert_eq!(
        refused(&stage, &["-f", "missing"], None),
        "cotter: cannot read \"missing\": No such file or directory (os error 2)\n"
    );
}

/// Runs with one reply to come.
#[track_caller]
fn answered(reply: Reply, args: &[&str]) -> Ran {
    let stage = Stage::new("answer");
    let server = Server::start(vec![reply]);
    let ran = run(&mut stage.ask(server.port(), args));
    requests(server);
    ran
}

#[test]
fn the_answer_ends_in_exactly_one_newline() {
    for text in ["Done.", "Done.\n", "Done.\n\n\n", "Done.\r\n"] {
        answered(says(&[text]), &["-p", "Hi."]).code(0).stdout("Done.\n").stderr("");
    }
    answered(says(&["\n  a\n\nb \n"]), &["-p", "Hi."]).code(0).stdout("\n  a\n\nb \n");
}

#[test]
fn only_the_last_reply_is_the_answer() {
    let stage = Stage::new("last reply");
    stage.write("notes.txt", "1932\n");
    let server = Server::start(vec![
        calls("call_1", "Read", &json!({"file_path": "notes.txt"})),
        says(&["In ", "1932."]),
    ]);
    run(&mut stage.ask(server.port(), &["-p", "When?"])).code(0).stdout("In 1932.\n").stderr("");
    requests(server);
}

#[test]
fn a_long_answer_arrives_whole() {
    let long = "0123456789abcde\n".repeat(25_000);
    let pieces: Vec<&str> = long.split_inclusive('\n').collect();
    answered(says(&pieces), &["-p", "Hi."]).code(0).stdout(&long).stderr("");
}

#[test]
fn a_very_long_answer_arrives_whole() {
    let line = "0123456789abcde\\n".repeat(2_500_000);
    let document = format!(r#"{{"choices":[{{"message":{{"content":"{line}"}},"finish_reason":"stop"}}]}}"#);
    let ran = answered(Reply::new(200, "application/json", document), &["-p", "Hi."]);
    ran.code(0).stderr("");
    assert!(ran.stdout == "0123456789abcde\n".repeat(2_500_000).as_bytes(), "{} bytes", ran.stdout.len());
}

#[test]
fn a_reader_that_leaves_is_a_quiet_end() {
    let stage = Stage::new("head");
    let long = "0123456789abcde\n".repeat(25_000);
    for format in ["text", "json", "stream-json"] {
        let server = Server::start(vec![says(&[&long])]);
        let script = format!(
            r#"{{ "$cotter" --base-url "$url" --model m --output-format {format} -p Hi.; echo $? >code; }} | head -c 1"#
        );
        let expected = if format == "text" { "0" } else { "{" };
        run(&mut stage.shell(server.port(), &script)).code(0).stdout(expected).stderr("");
        assert_eq!(stage.read("code"), "0\n", "{format}");
        requests(server);
    }
    let script = r#"{ "$cotter" --help; echo $? >code; } | head -c 1"#;
    run(&mut stage.shell(1, script)).code(0).stdout("A").stderr("");
    assert_eq!(stage.read("code"), "0\n");
}

#[test]
fn a_reader_that_has_left_before_anything_is_written_is_a_quiet_end_too() {
    let stage = Stage::new("gone");
    let refusal = Reply::new(400, "application/json", r#"{"error":{"message":"no"}}"#);
    for (reply, code, stderr) in
        [(says(&["Done."]), 0, ""), (refusal, 4, "cotter: the API refused the request (HTTP 400: no)\n")]
    {
        for format in ["text", "json", "stream-json"] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            // A stream of events that nobody reads from its beginning has nothing to be asked for.
            let (code, stderr, replies) = match format {
                "stream-json" => (1, "", Vec::new()),
                _ => (code, stderr, vec![reply.clone()]),
            };
            let server = Server::start(replies);
            let mut command = stage.ask(server.port(), &["-p", "Hi.", "--output-format", format]);
            run(command.stdout(writer)).code(code).stderr(stderr);
            requests(server);
        }
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let stage = Stage::new("full");
    for format in ["text", "json", "stream-json"] {
        // Events are refused before anything is asked.
        let replies = if format == "stream-json" { Vec::new() } else { vec![says(&["Done."])] };
        let server = Server::start(replies);
        let script =
            format!(r#""$cotter" --base-url "$url" --model m --output-format {format} -p Hi. >/dev/full"#);
        run(&mut stage.shell(server.port(), &script))
            .code(1)
            .stderr("cotter: cannot write standard output: No space left on device (os error 28)\n");
        requests(server);
    }
    run(&mut stage.shell(1, r#""$cotter" --help >/dev/full"#))
        .code(1)
        .stderr("cotter: cannot write standard output: No space left on device (os error 28)\n");
}

#[test]
fn an_output_file_is_written_whole_or_not_at_all() {
    let stage = Stage::new("output file");
    stage.write("old.txt", "old\n");
    let ask = |reply: Reply, args: &[&str]| {
        let server = Server::start(vec![reply]);
        let ran = run(&mut stage.ask(server.port(), args));
        requests(server);
        ran
    };
    ask(says(&["New."]), &["-o", "new.txt", "-p", "Hi."]).code(0).stdout("").stderr("");
    assert_eq!(stage.read("new.txt"), "New.\n");
    ask(says(&["New."]), &["-p", "Hi.", "--output=old.txt"]).code(0).stdout("").stderr("");
    assert_eq!(stage.read("old.txt"), "New.\n");
    let broken = says(&["Half of ", "it"]).cut(60, Ending::Close);
    let args = ["--max-retries", "0", "-o", "old.txt", "-p", "Hi."];
    ask(broken.clone(), &args).code(6).stdout("");
    assert_eq!(stage.read("old.txt"), "New.\n");
    ask(broken, &["--max-retries", "0", "-o", "none.txt", "-p", "Hi."]).code(6).stdout("");
    assert!(!stage.path("none.txt").exists());
    ask(says(&["New."]), &["-o", "/dev/full", "-p", "Hi."])
        .code(1)
        .stdout("New.\n")
        .stderr("cotter: cannot write \"/dev/full\": No space left on device (os error 28): the answer is on standard output\n");
    ask(says(&["New."]), &["-o", "/dev/stdout", "-p", "Hi."]).code(0).stdout("New.\n");
    let names: Vec<_> = stage.all_files().into_iter().map(|(name, _)| name).collect();
    let work: Vec<_> = names.iter().filter(|name| name.starts_with("work/")).collect();
    assert_eq!(work, ["work/new.txt", "work/old.txt"]);
}

#[test]
fn what_stands_behind_a_descriptor_is_added_to_and_not_replaced() {
    let stage = Stage::new("descriptor");
    stage.write("log", "old\n");
    for (script, expected) in [
        (r#""$cotter" --base-url "$url" --model m -o /dev/stdout Hi. >>log"#, "old\nNew.\n"),
        (r#""$cotter" --base-url "$url" --model m -o /dev/fd/3 Hi. 3>>log"#, "old\nNew.\nNew.\n"),
    ] {
        let server = Server::start(vec![says(&["New."])]);
        run(&mut stage.shell(server.port(), script)).code(0).stdout("").stderr("");
        requests(server);
        assert_eq!(stage.read("log"), expected);
    }
}

#[test]
fn a_descriptor_that_cannot_be_written_is_a_failure() {
    let stage = Stage::new("not writable");
    let server = Server::start(vec![says(&["New."])]);
    let script = r#""$cotter" --base-url "$url" --model m Hi. 1</dev/null"#;
    let expected = "cotter: cannot write standard output: Bad file descriptor (os error 9)\n";
    run(&mut stage.shell(server.port(), script)).code(1).stderr(expected);
    requests(server);
}

#[test]
fn raw_bytes_without_a_last_line_end_are_missed_too() {
    let stage = Stage::new("full");
    stage.write("notes.txt", "no line end");
    let server = Server::start(vec![calls("call_1", "Read", &json!({"file_path": "notes.txt"}))]);
    let script = r#""$cotter" --base-url "$url" --model m --single-step Hi. >/dev/full"#;
    let expected = "cotter: cannot write standard output: No space left on device (os error 28)\n";
    run(&mut stage.shell(server.port(), script)).code(1).stderr(expected);
    requests(server);
}

#[test]
fn a_pipe_that_does_not_block_gets_the_whole_answer() {
    let text = "0123456789abcde\n".repeat(60_000);
    let stage = Stage::new("non-blocking");
    let server = Server::start(vec![says(&[&text])]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut command = stage.ask(server.port(), &["-p", "Hi."]);
    let mut child = command.stdin(Stdio::null()).stdout(writer).spawn().unwrap();
    // The command holds a copy of the pipe's writing end.
    drop(command);
    let mut answer = String::new();
    reader.read_to_string(&mut answer).unwrap();
    assert_eq!((child.wait().unwrap().code(), answer == text), (Some(0), true));
    requests(server);
}

#[test]
fn an_output_file_in_json_holds_the_result_of_a_failure_too() {
    let stage = Stage::new("json file");
    let server = Server::start(vec![Reply::new(400, "application/json", r#"{"error":"no"}"#)]);
    let args = ["--output-format", "json", "-o", "result.json", "-p", "Hi."];
    run(&mut stage.ask(server.port(), &args)).code(4).stdout("");
    requests(server);
    let result: serde_json::Value = serde_json::from_str(&stage.read("result.json")).unwrap();
    assert_eq!(result["error"]["code"], 4);
}

#[test]
fn an_output_file_that_cannot_be_is_refused_before_anything_is_asked() {
    let stage = Stage::new("no folder");
    fs::create_dir(stage.path("folder")).unwrap();
    std::os::unix::fs::symlink("missing/answer.txt", stage.path("dangling")).unwrap();
    for (place, why) in [
        ("missing/answer.txt", "there is no folder \"missing\""),
        ("folder", "it is a folder"),
        ("/proc/answer.txt", "No such file or directory (os error 2)"),
        ("dangling", "No such file or directory (os error 2)"),
        ("/", "it is a folder"),
    ] {
        let expected = format!("cotter: -o \"{place}\": {why}\n");
        assert_eq!(refused(&stage, &["-o", place, "-p", "Hi."], None), expected);
    }
}

#[test]
fn an_output_file_that_may_not_be_written_is_refused_before_anything_is_asked() {
    if rustix::process::geteuid().is_root() {
        crate::containment::skipped(
            "an_output_file_that_may_not_be_written_is_refused_before_anything_is_asked",
            "root may write everywhere",
        );
        return;
    }
    let stage = Stage::new("closed");
    fs::create_dir(stage.path("folder")).unwrap();
    stage.write("folder/old.txt", "old\n");
    fs::set_permissions(stage.path("folder"), fs::Permissions::from_mode(0o500)).unwrap();
    let refusal = |place: &str| format!("cotter: -o \"{place}\": Permission denied (os error 13)\n");
    let refused = |place: &str| refused(&stage, &["-o", place, "-p", "Hi."], None);
    assert_eq!(refused("folder/new.txt"), refusal("folder/new.txt"));
    // A file that is there is rewritten in its place.
    let server = Server::start(vec![says(&["New."])]);
    run(&mut stage.ask(server.port(), &["-o", "folder/old.txt", "-p", "Hi."])).code(0).stdout("").stderr("");
    requests(server);
    assert_eq!(stage.read("folder/old.txt"), "New.\n");
    fs::set_permissions(stage.path("folder/old.txt"), fs::Permissions::from_mode(0o400)).unwrap();
    assert_eq!(refused("folder/old.txt"), refusal("folder/old.txt"));
    fs::set_permissions(stage.path("folder"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn an_answer_goes_into_a_fifo() {
    let stage = Stage::new("fifo");
    let fifo = stage.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let reading = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read_to_string(fifo).unwrap()
    });
    let server = Server::start(vec![says(&["Through it."])]);
    run(&mut stage.ask(server.port(), &["-o", "fifo", "-p", "Hi."])).code(0).stdout("").stderr("");
    requests(server);
    assert_eq!(reading.join().unwrap(), "Through it.\n");
    assert!(!fifo.metadata().unwrap().is_file());
}

/// The story of one retry and one call, with these flags; gives the port and what came of it.
#[track_caller]
fn retry_and_call(flags: &[&str]) -> (u16, Ran) {
    let stage = Stage::new("stderr");
    stage.write("notes.txt", "1932\n");
    let overloaded = Reply::new(503, "application/json", r#"{"error":{"message":"busy"}}"#);
    let server = Server::start(vec![
        overloaded.header("retry-after-ms: 1"),
        calls("call_1", "Read", &json!({"file_path": "notes.txt"})),
        says(&["In 1932."]),
    ]);
    let port = server.port();
    let mut ran = run(stage.ask(port, flags).args(["-p", "When?"]));
    let sizes: Vec<usize> = requests(server).iter().map(|request| request.body.len()).collect();
    ran.code(0).stdout("In 1932.\n");
    // The id is drawn by lot.
    if let Some((id, rest)) =
        ran.stderr.strip_prefix("cotter: session ").and_then(|rest| rest.split_once('\n'))
    {
        assert_eq!(id.len(), 36, "{id}");
        ran.stderr = format!("cotter: session ID\n{rest}");
    }
    let numbered = ran.stderr.replace(&format!("{} bytes", sizes[0]), "N bytes");
    ran.stderr = numbered.replace(&format!("{} bytes", sizes[2]), "M bytes");
    (port, ran)
}

#[test]
fn standard_error_has_warnings_nothing_or_a_line_for_each_step() {
    let retry =
        "cotter: the API is overloaded or limits the rate (HTTP 503: busy): asking again in 0.0 s (1 of 4)\n";
    retry_and_call(&[]).1.stderr(retry);
    retry_and_call(&["-q"]).1.stderr("");
    let (port, ran) = retry_and_call(&["--verbose"]);
    let url = format!("http://127.0.0.1:{port}/v1/chat/completions");
    ran.stderr(format!(
        "cotter: session ID\ncotter: request 1: N bytes to {url}\n{retry}Read notes.txt\n\
         cotter: request 2: M bytes to {url}\n"
    ));
}

#[test]
fn of_verbose_and_quiet_the_last_one_said_holds() {
    let retry =
        "cotter: the API is overloaded or limits the rate (HTTP 503: busy): asking again in 0.0 s (1 of 4)\n";
    retry_and_call(&["--verbose", "-q"]).1.stderr("");
    let (port, ran) = retry_and_call(&["-q", "--verbose"]);
    let url = format!("http://127.0.0.1:{port}/v1/chat/completions");
    ran.stderr(format!(
        "cotter: session ID\ncotter: request 1: N bytes to {url}\n{retry}Read notes.txt\n\
         cotter: request 2: M bytes to {url}\n"
    ));
}

/// Which streams are the terminal.
#[derive(Clone, Copy, PartialEq)]
enum On {
    Stdout,
    Stderr,
    Both,
}

/// Runs on a terminal; gives what the terminal showed and what came of the run.
#[track_caller]
fn on_terminal(
    on: On,
    replies: Vec<Reply>,
    change: impl FnOnce(&mut std::process::Command),
) -> (String, Ran) {
    let stage = Stage::new("terminal");
    stage.write("notes.txt", "1932\n");
    let terminal = Terminal::new();
    let server = Server::start(replies);
    let mut command = stage.ask(server.port(), &["-p", "When?"]);
    if on != On::Stderr {
        command.stdout(terminal.stream());
    }
    if on != On::Stdout {
        command.stderr(terminal.stream());
    }
    change(&mut command);
    let ran = run(&mut command);
    drop(command);
    requests(server);
    (terminal.shown(), ran)
}

const WAITING: &str = "… waiting for the model\r\x1b[K";

#[test]
fn a_terminal_shows_the_answer_once_with_one_newline() {
    for pieces in [&["In ", "1932."][..], &["In 1932.\n"], &["In ", "1932.", "\n", "\n"]] {
        let (shown, ran) = on_terminal(On::Stdout, vec![says(pieces)], |_| {});
        ran.code(0).stderr("");
        assert_eq!(shown, "In 1932.\r\n", "{pieces:?}");
    }
    let (shown, ran) = on_terminal(On::Stdout, vec![says(&["a\n", "\n", "b"])], |_| {});
    ran.code(0);
    assert_eq!(shown, "a\r\n\r\nb\r\n");
    let document = json!({"choices": [{"message": {"content": "In 1932.\n"}, "finish_reason": "stop"}]});
    let reply = Reply::new(200, "application/json", document.to_string());
    assert_eq!(on_terminal(On::Stdout, vec![reply], |_| {}).0, "In 1932.\r\n");
}

/// The warning stood behind the last word of the answer.
#[test]
fn what_is_said_after_an_answer_has_a_line_of_its_own() {
    let events = [
        json!({"choices": [{"delta": {"content": "In 1932."}}]}),
        json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}}),
    ];
    let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let reply = Reply::new(200, "text/event-stream", body + "data: [DONE]\n\n");
    let warning = "cotter: the server read only 5 tokens of a request of ";
    let (shown, ran) = on_terminal(On::Both, vec![reply.clone()], |_| {});
    ran.code(0);
    let lines: Vec<&str> = shown.split("\r\n").collect();
    assert_eq!((lines.len(), lines[0], lines[2]), (3, &*format!("{WAITING}In 1932."), ""), "{shown:?}");
    assert!(lines[1].starts_with(warning), "{shown:?}");
    // Where it goes elsewhere the line does not end early, nor twice.
    let (shown, ran) = on_terminal(On::Stdout, vec![reply], |_| {});
    assert!(ran.code(0).stderr.starts_with(warning));
    assert_eq!(shown, "In 1932.\r\n");
}

/// What a terminal shows of a text whose second half is sent when the first is there.
#[track_caller]
fn streamed(first: &'static str, second: &str) -> String {
    let stage = Stage::new("streaming");
    let terminal = Terminal::new();
    let wire = says(&[first, second]).wire();
    let sent = serde_json::to_string(first).unwrap();
    let half = String::from_utf8(wire.clone()).unwrap().find(&sent).unwrap();
    let half = half + wire[half..].windows(2).position(|pair| pair == b"\n\n").unwrap() + 2;
    let (go, wait) = mpsc::channel::<()>();
    let (port, server) = crate::stage::serve(move |listener| {
        let mut stream = crate::stage::accept(&listener);
        assert!(crate::stage::read_request(&mut stream).is_some());
        stream.write_all(&wire[..half]).unwrap();
        wait.recv().unwrap();
        stream.write_all(&wire[half..]).unwrap();
    });
    let mut command = stage.ask(port, &["-p", "Hi."]);
    let child = command.stdout(terminal.stream()).spawn().unwrap();
    let text = format!("{command:?}");
    drop(command);
    terminal.wait_for(first.trim());
    go.send(()).unwrap();
    ran(finish(child, None), text).code(0).stderr("");
    server.join().unwrap();
    terminal.shown()
}

#[test]
fn text_streams_to_a_terminal_while_the_reply_is_on_its_way() {
    assert_eq!(streamed("Half of it", " and the rest."), "Half of it and the rest.\r\n");
}

/// The program ended in the middle of a character of the answer.
#[test]
fn thinking_that_only_its_end_tells_stands_on_a_line_of_its_own() {
    assert_eq!(streamed("Hm.\n", "</think>\n\nБыло в 1932."), "Hm.\r\nБыло в 1932.\r\n");
    assert_eq!(streamed("A long thought.\n", "</think>\nNo."), "A long thought.\r\nNo.\r\n");
}

#[test]
fn control_characters_are_shown_and_not_obeyed() {
    let reply = says(&["a\u{1b}", "[31mred\u{7}\r\nb\u{9b}c\u{202e}d\te\u{7f}"]);
    let (shown, _) = on_terminal(On::Stdout, vec![reply.clone()], |_| {});
    assert_eq!(shown, "a␛[31mred␇␍\r\nb\u{fffd}c\u{fffd}d\te␡\r\n");
    // A pipe gets every byte as it is.
    answered(reply, &["-p", "Hi."]).stdout("a\u{1b}[31mred\u{7}\r\nb\u{9b}c\u{202e}d\te\u{7f}\n");
    let call = calls("call_1", "Read", &json!({"file_path": "no\u{1b}]0;x\u{7}te"}));
    let (shown, ran) = on_terminal(On::Stderr, vec![call, says(&["None."])], |command| {
        command.env("NO_COLOR", "1");
    });
    ran.code(0).stdout("None.\n");
    assert_eq!(shown, format!("{WAITING}Read no ]0;x te\r\n{WAITING}"));
    let refusal = Reply::new(400, "application/json", r#"{"error":{"message":"no\u001b[2Jway"}}"#);
    let (shown, ran) = on_terminal(On::Stderr, vec![refusal], |_| {});
    ran.code(4).stdout("");
    let expected = "cotter: the API refused the request (HTTP 400: no [2Jway)\r\n";
    assert_eq!(shown, format!("{WAITING}{expected}"));
}

#[test]
fn a_broken_attempt_is_announced_and_the_new_one_starts_on_a_fresh_line() {
    let whole = says(&["In the year", " 1932."]);
    let half = String::from_utf8_lossy(whole.body()).find("1932").unwrap();
    let replies = vec![whole.clone().cut(half, Ending::Close), whole];
    let broke = "cotter: the reply broke off; what follows is a new one";
    let again = "cotter: 127.0.0.1 closed the connection in the middle of its answer: asking again in ";
    let (shown, ran) = on_terminal(On::Both, replies.clone(), |_| {});
    ran.code(0);
    let lines: Vec<&str> = shown.split("\r\n").collect();
    assert_eq!(lines.len(), 5, "{shown:?}");
    assert_eq!((lines[0], lines[1]), (&*format!("{WAITING}In the year"), broke));
    assert!(lines[2].starts_with(again) && lines[2].ends_with(" s (1 of 4)"), "{shown:?}");
    assert_eq!((lines[3], lines[4]), ("In the year 1932.", ""));
    // Whoever reads a pipe never sees the dead attempt.
    let (shown, ran) = on_terminal(On::Stderr, replies.clone(), |_| {});
    ran.code(0).stdout("In the year 1932.\n");
    assert!(!shown.contains(broke), "{shown:?}");
    let (shown, ran) = on_terminal(On::Stdout, replies, |command| {
        command.args(["--output-format", "json"]);
    });
    ran.code(0);
    let result: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(result["result"], "In the year 1932.");
}

#[test]
fn an_attempt_that_stays_broken_leaves_its_text_on_a_line_of_its_own() {
    let whole = says(&["In the year", " 1932."]);
    let half = String::from_utf8_lossy(whole.body()).find("1932").unwrap();
    let (shown, ran) = on_terminal(On::Both, vec![whole.cut(half, Ending::Close)], |command| {
        command.args(["--max-retries", "0"]);
    });
    ran.code(6);
    let error = "cotter: 127.0.0.1 closed the connection in the middle of its answer";
    assert_eq!(shown, format!("{WAITING}In the year\r\n{error}\r\n"));
}

#[test]
fn a_terminal_has_a_line_for_each_call_with_colour_unless_told_otherwise() {
    let replies = || vec![calls("call_1", "Read", &json!({"file_path": "notes.txt"})), says(&["In 1932."])];
    let (shown, ran) = on_terminal(On::Stderr, replies(), |_| {});
    ran.code(0).stdout("In 1932.\n");
    assert_eq!(shown, format!("{WAITING}\x1b[2mRead notes.txt\x1b[0m\r\n{WAITING}"));
    let (shown, _) = on_terminal(On::Stderr, replies(), |command| {
        command.env("NO_COLOR", "1");
    });
    assert_eq!(shown, format!("{WAITING}Read notes.txt\r\n{WAITING}"));
    // An empty value counts as unset, as https://no-color.org has it.
    let (shown, _) = on_terminal(On::Stderr, replies(), |command| {
        command.env("NO_COLOR", "");
    });
    assert_eq!(shown, format!("{WAITING}\x1b[2mRead notes.txt\x1b[0m\r\n{WAITING}"));
    let (shown, _) = on_terminal(On::Stderr, replies(), |command| {
        command.arg("-q");
    });
    assert_eq!(shown, "");
}

#[test]
fn the_raw_result_of_a_single_step_stands_on_lines_of_its_own() {
    let call = |name, arguments: &serde_json::Value| calls("call_1", name, arguments);
    let line = "\x1b[2mRead notes.txt\x1b[0m\r\n";
    let read = call("Read", &json!({"file_path": "notes.txt"}));
    let (shown, ran) = on_terminal(On::Both, vec![read], |command| {
        command.arg("--single-step");
    });
    ran.code(0);
    assert_eq!(shown, format!("{WAITING}{line}1932\r\n"));
    let text = r#"data: {"choices":[{"delta":{"content":"I look."}}]}"#;
    let head = "HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\n";
    let read = call("Read", &json!({"file_path": "notes.txt"}));
    let read = [head.as_bytes(), text.as_bytes(), b"\n\n", read.body()].concat();
    let (shown, ran) = on_terminal(On::Both, vec![Reply::recorded(&read)], |command| {
        command.arg("--single-step");
    });
    ran.code(0);
    assert_eq!(shown, format!("{WAITING}I look.\r\n{line}1932\r\n"));
    let bash = call("Bash", &json!({"command": "printf 'a\\nb'"}));
    let (shown, ran) = on_terminal(On::Both, vec![bash], |command| {
        command.args(["--single-step"]).env("NO_COLOR", "1");
    });
    ran.code(0);
    assert_eq!(shown, format!("{WAITING}Bash printf 'a\\nb'\r\na\r\nb"));
}

#[test]
fn an_answer_for_a_file_does_not_stream() {
    let (shown, ran) = on_terminal(On::Stdout, vec![says(&["In 1932."])], |command| {
        command.args(["-o", "answer.txt"]);
    });
    ran.code(0).stderr("");
    assert_eq!(shown, "");
}
