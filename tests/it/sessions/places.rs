//! Where sessions cannot be, belong elsewhere, or come from a recording.

use std::os::unix::ffi::OsStrExt;

use super::*;

#[test]
fn where_there_can_be_no_sessions_none_goes_on() {
    let stage = Stage::new("homeless");
    let missing = stage.root().join("no-home");
    let nowhere = "cotter: there are no sessions to go on with: without XDG_STATE_HOME and a HOME that exists none are \
                   kept\n";
    for args in [&["-c"][..], &["-r", ID], &["-c", "--fork-session"]] {
        for home in [Some(&missing), None] {
            let mut command = stage.ask(1, &[args, &["-p", "And?"]].concat());
            match home {
                Some(home) => command.env("HOME", home),
                None => command.env_remove("HOME"),
            };
            run(&mut command).code(2).stdout("").stderr(nowhere);
        }
    }
    assert!(!missing.exists());
    // No folder can be made in /proc, whoever asks. There nothing can be gone on with later either.
    let mut command = stage.ask(1, &["-c", "-p", "And?"]);
    let ran = run(command.env("XDG_STATE_HOME", "/proc/state"));
    let expected = "cotter: this folder has no session to continue: a new one begins\n\
        cotter: there is no session to continue, and none can be kept to go on with: \"/proc/state/cotter/sessions/";
    assert!(ran.code(2).stderr.starts_with(expected), "{}", ran.report());
    let mut command = stage.ask(1, &["-r", ID, "-p", "And?"]);
    run(command.env("XDG_STATE_HOME", "/proc/state"))
        .code(2)
        .stderr(format!("cotter: there is no session \"{ID}\": this folder has none yet\n"));
    // Who names an id is told that it will not be found.
    let server = Server::start(vec![answer(Api::OpenAi, "Yes.")]);
    let mut command = stage.ask(server.port(), &["--session-id", ID, "-p", "Here?"]);
    let ran = run(command.env("XDG_STATE_HOME", "/proc/state"));
    requests(server);
    let expected = "cotter: no session is kept: \"/proc/state/cotter/sessions/";
    assert!(ran.code(0).stderr.starts_with(expected), "{}", ran.report());
}

#[test]
fn a_session_of_another_folder_goes_on_when_it_is_named() {
    let stage = Stage::new("elsewhere");
    says(&stage, "Yes.", &["--session-id", ID, "-p", "Here?"]);
    fs::create_dir(stage.path("other")).unwrap();
    let (ran, body) = says(&stage, "No.", &["-C", "other", "-r", ID, "-p", "There?"]);
    let work = stage.path("");
    let work = work.to_str().unwrap().trim_end_matches('/');
    ran.stderr(format!("cotter: this session was begun in another folder, \"{work}\"\n"));
    assert_eq!(told(&body), lines_of(&[("user", "Here?"), ("assistant", "Yes."), ("user", "There?")]));
}

#[test]
fn a_session_that_nothing_was_said_in_is_not_the_last() {
    let stage = Stage::new("silent");
    put(&stage, OTHER, begun(&stage, OTHER, &format!("{HI}{HELLO}")));
    put(&stage, ID, begun(&stage, ID, ""));
    let (ran, body) = says(&stage, "Well.", &["-c", "-p", "And?"]);
    ran.stderr("");
    assert_eq!(told(&body).len(), 3);
    // Named, it is as good as any. Whoever asks it to go on is told that it knows nothing to go on with.
    let (ran, body) = says(&stage, "Well.", &["-r", ID, "-p", "And?"]);
    ran.stderr("cotter: nothing was said in this session yet: it begins here\n");
    assert_eq!(told(&body).len(), 1);
}

#[test]
fn a_run_that_went_on_is_replayed_by_one_that_goes_on() {
    let stage = Stage::new("replayed");
    let path = put(&stage, ID, begun(&stage, ID, &format!("{HI}{HELLO}")));
    let before = fs::read(&path).unwrap();
    says(&stage, "Well.", &["-r", ID, "--record", "recording", "-p", "And?"]);
    fs::write(&path, &before).unwrap();
    let replay =
        |args: &[&str]| run(&mut stage.command(&[&["--replay", "recording", "-p", "And?"], args].concat()));
    replay(&["-r", ID]).code(0).stdout("Well.\n").stderr("");
    assert_eq!(lines(&path).len(), 5);
    let other = replay(&[]);
    assert!(other.code(9).stderr.contains("differs"), "{}", other.report());
}

#[test]
fn the_session_is_named_once_where_that_is_asked_for() {
    let stage = Stage::new("verbose");
    for args in [&["--session-id", ID][..], &["-c"]] {
        let (ran, _) = says(&stage, "Yes.", &[args, &["--verbose", "-p", "Here?"]].concat());
        assert_eq!(ran.stderr.matches(&format!("cotter: session {ID}\n")).count(), 1, "{}", ran.report());
        assert_eq!(ran.stderr.matches(ID).count(), 1, "{}", ran.report());
    }
    let (ran, _) = says(&stage, "Yes.", &["--verbose", "--fork-session", "-p", "Here?"]);
    let line = "cotter: --fork-session changes nothing without -c or -r\n";
    assert!(ran.stderr.starts_with(line), "{}", ran.report());
}

#[test]
fn folders_that_are_no_utf_8_are_told_apart() {
    let stage = Stage::new("bytes");
    let [one, other] = [b"caf\xe8", b"caf\xe9"].map(|name| std::ffi::OsStr::from_bytes(name));
    let said = |folder: &std::ffi::OsStr, said: &str, args: &[&str]| {
        let server = Server::start(vec![answer(Api::OpenAi, said)]);
        let mut command = stage.ask(server.port(), args);
        run(command.arg("-C").arg(folder)).code(0);
        told(&requests(server)[0].json()).len()
    };
    [one, other].iter().for_each(|folder| fs::create_dir(stage.path("").join(folder)).unwrap());
    assert_eq!(said(one, "Yes.", &["-p", "Here?"]), 1);
    assert_eq!(said(other, "No.", &["-c", "-p", "There?"]), 1, "it has no session yet");
    assert_eq!(said(one, "Still.", &["-c", "-p", "Here?"]), 3);
}
