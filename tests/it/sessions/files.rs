//! Files that are not as a run leaves them: of others, of later versions, with lines that are not known.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;

#[track_caller]
fn refused(stage: &Stage, why: &str) {
    let place = file(stage, ID);
    let expected = format!("cotter: the session \"{}\" cannot be used: {why}\n", place.display());
    for args in [&["-r", ID][..], &["-r", ID, "--fork-session"], &["-r", ID, "--no-session-persistence"]] {
        run(&mut stage.ask(1, &[args, &["-p", "And?"]].concat())).code(2).stdout("").stderr(&expected);
    }
}

#[test]
fn a_file_of_something_else_is_refused_and_stays() {
    let foreign = "its first line is not that of a session of cotter's";
    let version_0 = "{\"type\":\"session\",\"version\":0,\"folder\":\"/\"}\n";
    let endless = "{\"type\":\"session\",\"version\":1,\"folder\":\"/\"".repeat(5000);
    let cases: [(&[u8], &str); 8] = [
        (b"{\"type\":\"other\",\"version\":1,\"folder\":\"/\"}\n", foreign),
        (b"\0\xff\x7fELF", foreign),
        (b"\n", foreign),
        (b"{\"type\":\"session\",\"version\":1,\"folder\":\"/\"}", foreign),
        (b"{\"sessionId\":\"550e8400\",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n", foreign),
        (b"[]\n{}\n", foreign),
        (version_0.as_bytes(), foreign),
        (endless.as_bytes(), foreign),
    ];
    let stage = Stage::new("foreign");
    for (bytes, why) in cases {
        let path = put(&stage, ID, bytes);
        refused(&stage, why);
        assert_eq!(fs::read(&path).unwrap(), bytes);
        // None of them is a session of this folder.
        let list = "cotter: there is no session \"0000\": this folder has none yet\n";
        run(&mut stage.ask(1, &["-r", "0000", "-p", "x"])).code(2).stderr(list);
        run(&mut stage.ask(1, &["--session-id", ID, "-p", "x"])).code(2);
        assert_eq!(fs::read(only(&stage)).unwrap(), bytes);
    }
}

/// Such a file could neither be gone on with nor begun: a run that was killed in its first milliseconds kept its id
/// from all others.
#[test]
fn what_broke_off_in_its_first_line_begins_anew_under_its_id() {
    let stage = Stage::new("unbegun");
    let first = begun(&stage, ID, "");
    for (length, what) in
        [(0, "it is empty"), (1, "its first line broke off"), (first.len() - 1, "its first line broke off")]
    {
        let path = put(&stage, ID, &first[..length]);
        refused(&stage, &format!("{what}: begin it anew with --session-id in place of -r"));
        assert_eq!(fs::read_to_string(&path).unwrap(), first[..length]);
        let (ran, _) = says(&stage, "Yes.", &["--session-id", ID, "-p", "Here?"]);
        ran.stderr("");
        assert_eq!(fs::read_to_string(&path).unwrap().lines().next(), first.lines().next());
        assert_eq!(lines(&path).len(), 3);
    }
    // Begun by another run a moment ago, it is not taken from that one.
    let path = put(&stage, ID, "");
    let held = fs::File::open(&path).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let taken =
        format!("cotter: there is a session {ID} already: go on with it by -r {ID}, or choose another id\n");
    run(&mut stage.ask(1, &["--session-id", ID, "-p", "x"])).code(2).stderr(taken);
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn what_is_no_regular_file_is_refused_without_waiting() {
    let stage = Stage::new("irregular");
    let path = put(&stage, ID, "");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    refused(&stage, "it is a folder");
    fs::remove_dir(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    refused(&stage, "it is not a regular file");
    fs::remove_file(&path).unwrap();
    let elsewhere = stage.write("elsewhere", begun(&stage, ID, HI));
    symlink(&elsewhere, &path).unwrap();
    refused(&stage, "it is a symbolic link");
    assert_eq!(stage.read("elsewhere"), begun(&stage, ID, HI));
    // Nor is one of them what `-c` goes on with, or waits for.
    let (ran, _) = says(&stage, "Yes.", &["-c", "-p", "Here?"]);
    ran.stderr("cotter: this folder has no session to continue: a new one begins\n");
}

#[test]
fn a_file_of_a_later_version_is_refused_by_its_number_and_not_passed_over() {
    let stage = Stage::new("future");
    let older = put(&stage, OTHER, begun(&stage, OTHER, &format!("{HI}{HELLO}")));
    // Clocks of file systems are coarse: both could be as old.
    let before = SystemTime::now() - Duration::from_secs(60);
    fs::File::options().append(true).open(older).unwrap().set_modified(before).unwrap();
    let bytes = begun(&stage, ID, HI).replace("\"version\":1", "\"version\":7");
    let path = put(&stage, ID, &bytes);
    let why = "its format is of version 7, and this cotter knows version 1: use the cotter that wrote it";
    refused(&stage, why);
    run(&mut stage.ask(1, &["-c", "-p", "And?"]))
        .code(2)
        .stderr(format!("cotter: the session \"{}\" cannot be used: {why}\n", path.display()));
    assert_eq!(fs::read_to_string(&path).unwrap(), bytes);
}

#[test]
fn lines_and_parts_that_are_not_known_stay_and_are_told_of() {
    let stage = Stage::new("unknown");
    let odd = format!(
        "{HI}{{\"type\":\"note\",\"parts\":[]}}\n{{\"type\":\"assistant\",\"parts\":[{{\"type\":\"audio\"}},\
         {{\"type\":\"text\",\"text\":\"hello\"}}]}}\nnot JSON\n"
    );
    let before = begun(&stage, ID, &odd);
    let path = put(&stage, ID, &before);
    let (ran, body) = says(&stage, "Well.", &["-c", "-p", "And?"]);
    ran.stderr(
        "cotter: left out of what is sent, though the session's file keeps it: a line of the \
         type \"note\" (1), a part of the type \"audio\" (1), a damaged line (1)\n",
    );
    assert_eq!(told(&body), lines_of(&[("user", "hi"), ("assistant", "hello"), ("user", "And?")]));
    let after = fs::read_to_string(&path).unwrap();
    assert_eq!(after.strip_prefix(&before).unwrap().lines().count(), 2);
    let (ran, _) = says(&stage, "Well.", &["-c", "-q", "-p", "And?"]);
    ran.stderr("");
}

#[test]
fn a_line_that_broke_off_is_taken_away_before_the_next() {
    let stage = Stage::new("torn");
    let whole = begun(&stage, ID, &format!("{HI}{HELLO}"));
    let path = put(&stage, ID, format!("{whole}{}", &HI[..HI.len() - 2]));
    let (ran, body) = says(&stage, "Well.", &["-c", "-p", "And?"]);
    ran.stderr("cotter: the last line of the session's file broke off: it is left out\n");
    assert_eq!(told(&body), lines_of(&[("user", "hi"), ("assistant", "hello"), ("user", "And?")]));
    assert!(fs::read_to_string(&path).unwrap().starts_with(&whole));
    assert_eq!(lines(&path).len(), 5);
    // Also in the middle of a character.
    let said = HI.replace("hi", "h\u{e9}");
    let middle = said.find('\u{e9}').unwrap() + 1;
    fs::write(&path, [whole.as_bytes(), &said.as_bytes()[..middle]].concat()).unwrap();
    let (ran, body) = says(&stage, "Well.", &["-c", "-p", "And?"]);
    ran.stderr("cotter: the last line of the session's file broke off: it is left out\n");
    assert_eq!(told(&body), lines_of(&[("user", "hi"), ("assistant", "hello"), ("user", "And?")]));
    assert_eq!(lines(&path).len(), 5);
    // What lacks its end alone is whole, and so is what the interrupted run asked for.
    fs::write(&path, format!("{whole}{}", HI.trim_end())).unwrap();
    let (ran, body) = says(&stage, "Well.", &["-c", "-p", "And?"]);
    ran.stderr("");
    assert_eq!(told(&body)[2..], lines_of(&[("user", "hi\n\nAnd?")]));
    assert_eq!(lines(&path).len(), 6);
}

#[test]
fn no_key_is_written_whoever_quotes_it() {
    let stage = Stage::new("secret");
    stage.write("notes.txt", "the key is s3cret-key\n");
    let read = asks(Api::OpenAi, "s3cret-key", &[("call_1", "Read", "{\"file_path\":\"notes.txt\"}")]);
    let server = Server::start(vec![read, answer(Api::OpenAi, "It is s3cret-key.")]);
    let mut command = stage.ask(server.port(), &["-p", "Is it s3cret-key?"]);
    run(command.env("OPENAI_API_KEY", "s3cret-key")).code(0);
    requests(server);
    let text = fs::read_to_string(only(&stage)).unwrap();
    assert_eq!((text.contains("s3cret"), text.matches("(secret)").count()), (false, 4), "{text}");
}

#[test]
fn files_and_folders_are_for_their_owner_alone() {
    let stage = Stage::new("modes");
    says(&stage, "Yes.", &["-p", "Here?"]);
    says(&stage, "Yes.", &["-c", "--fork-session", "-p", "Here?"]);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
    let mut folder = folder(&stage);
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    while folder != stage.root().join("home") {
        assert_eq!(mode(&folder), 0o700, "{folder:?}");
        folder.pop();
    }
}
