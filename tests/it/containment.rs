//! What tools can reach. Each attempt is a command of Bash that prints `reached` where it has done what it must
//! not; it is first shown to succeed with `--sandbox off`, so that its failure otherwise means something.
//!
//! A further attempt is a line in [`attempts`]; what has to go on working is a line in [`permitted`].

mod attempts;
mod command;
mod meaning;

pub use meaning::{has_git, new_repository};

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::geteuid;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::processes::{DONE, UNCONTAINED, asking, bare, bash, done, failed, results, story};
use crate::stage::says;
use crate::story::{Outcome, Story, new_folder};
use attempts::{ATTEMPTS, Attempt, Class, Needs, PERMITTED};

/// What lies outside of every workspace: a file, sockets, a listener on the loopback, and a process.
struct Outside {
    folder: PathBuf,
    tcp: TcpListener,
    victim: Child,
    _sockets: (UnixListener, UnixDatagram),
}

impl Outside {
    fn new() -> Outside {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("cotter-outside-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = fs::canonicalize(std::env::temp_dir()).unwrap().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("precious"), "precious\n").unwrap();
        fs::create_dir(folder.join("empty")).unwrap();
        let stream = UnixListener::bind(folder.join("stream")).unwrap();
        let datagrams = UnixDatagram::bind(folder.join("datagrams")).unwrap();
        let mut sleep = Command::new("sleep");
        let victim = sleep.arg("1000").env("VICTIMS_SECRET", "1").stdout(Stdio::null()).spawn().unwrap();
        // A program that is started with a descriptor that a tool would be glad of.
        let start = folder.join("start");
        let program = env!("CARGO_BIN_EXE_cotter");
        let script = format!("#!/bin/sh\nexec 7>>'{}/precious'\nexec '{program}' \"$@\"\n", folder.display());
        fs::write(&start, script).unwrap();
        fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        Outside { folder, tcp, victim, _sockets: (stream, datagrams) }
    }

    /// The story is told where all this is.
    fn known_to(&self, story: Story) -> Story {
        story
            .program(&self.folder.join("start"))
            .env("OUTSIDE", self.folder.to_str().unwrap())
            .env("PORT", &self.tcp.local_addr().unwrap().port().to_string())
            .env("VICTIM", &self.victim.id().to_string())
            .env("DEPLOY_TOKEN", "secret-of-mine")
    }

    /// The files with their contents, and whether the process lives.
    fn state(&mut self) -> (Vec<(String, Option<String>)>, bool) {
        let entries = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).ok()))
            .collect();
        files.sort();
        (files, self.victim.try_wait().unwrap().is_none())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Runs these commands, one call each, in one run.
fn run(name: &str, commands: &[&str], args: &[&str], outside: &Outside) -> Outcome {
    let calls: Vec<_> = commands.iter().map(|command| bash(command)).collect();
    let story = bare(name).reply(asking(1, &calls)).reply(done()).args(args);
    let outcome = outside.known_to(story).run();
    outcome.code(0).stdout(DONE);
    outcome
}

/// Those of a class that this user can make here.
fn of_class(class: Class) -> Vec<&'static Attempt> {
    let possible = |attempt: &&Attempt| {
        let has_program = has_what_it_runs(attempt.name, attempt.command);
        has_program && (attempt.needs != Needs::Root || geteuid().is_root())
    };
    ATTEMPTS.iter().filter(|attempt| attempt.class == class).filter(possible).collect()
}

/// Each attempt of the class succeeds uncontained, or is skipped where the kernel does not let anybody, and
/// fails contained, in both modes; nothing outside has changed then.
#[track_caller]
fn is_closed(class: Class) {
    let attempts = of_class(class);
    let commands: Vec<&str> = attempts.iter().map(|attempt| attempt.command).collect();
    let outcome = run("uncontained", &commands, &UNCONTAINED, &Outside::new());
    let mut possible = Vec::new();
    for (attempt, (text, _)) in attempts.iter().zip(results(&outcome)) {
        match (text.lines().any(|line| line == "reached"), attempt.needs) {
            (true, _) => possible.push(*attempt),
            (false, Needs::Kernel) => {
                skip(attempt.name, "this kernel or container does not let anybody do it")
            }
            (false, _) => panic!("{}: it fails uncontained, so it shows nothing: {text}", attempt.name),
        }
    }
    let commands: Vec<&str> = possible.iter().map(|attempt| attempt.command).collect();
    for mode in ["workspace-write", "read-only"] {
        let mut outside = Outside::new();
        let before = outside.state();
        let outcome = run("contained", &commands, &["--sandbox", mode], &outside);
        for (attempt, (text, _)) in possible.iter().zip(results(&outcome)) {
            let is_reached = text.contains("reached") || text.contains("secret-of-mine");
            assert!(!is_reached, "{} succeeds in mode {mode}: {text}\n{}", attempt.name, outcome.report());
        }
        assert_eq!(outside.state(), before, "{mode}");
    }
}

/// Whether Python is there for a command that needs it.
fn has_what_it_runs(name: &str, command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join("python3").is_file());
    let is_missing = command.starts_with("python3") && !is_there;
    if is_missing {
        skip(name, "there is no python3");
    }
    !is_missing
}

fn skip(name: &str, reason: &str) {
    skipped(&format!("attempt_{name}"), reason);
}

/// Past the capture of a test's output, since `.ci/run` counts these.
pub fn skipped(test: &str, reason: &str) {
    let line = format!("SKIPPED {test}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

#[test]
fn nothing_is_written_outside() {
    is_closed(Class::Write);
}

#[test]
fn no_device_is_made_or_commanded() {
    is_closed(Class::Device);
}

#[test]
fn the_network_is_not_reached() {
    is_closed(Class::Network);
}

#[test]
fn no_socket_of_another_kind_is_reached() {
    is_closed(Class::Socket);
}

#[test]
fn no_secret_is_read_from_the_environment_or_from_cotter() {
    is_closed(Class::Secret);
}

#[test]
fn no_process_outside_is_disturbed() {
    is_closed(Class::Process);
}

#[test]
fn no_privilege_is_gained() {
    is_closed(Class::Privilege);
}

#[test]
fn no_descriptor_is_inherited() {
    is_closed(Class::Descriptor);
}

#[test]
fn names_of_attempts_are_unique() {
    let mut names: Vec<&str> = ATTEMPTS.iter().map(|attempt| attempt.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ATTEMPTS.len());
}

#[test]
fn what_work_needs_goes_on_working() {
    let permitted = || PERMITTED.iter().filter(|(name, command)| has_what_it_runs(name, command));
    let commands: Vec<&str> = permitted().map(|(_, command)| *command).collect();
    let outcome = run("permitted", &commands, &[], &Outside::new());
    for ((name, _), (text, _)) in permitted().zip(results(&outcome)) {
        assert!(text.lines().any(|line| line == "works"), "{name} fails: {text}\n{}", outcome.report());
    }
}

#[test]
fn write_and_edit_are_contained_too_and_name_the_flag() {
    let path = "../home/new.txt";
    let write = serde_json::json!({"name": "Write", "input": {"file_path": path, "content": "x"}});
    let outcome = story("write outside", std::slice::from_ref(&write)).run();
    let (text, is_error) = &results(&outcome)[0];
    outcome.code(0).equal(*is_error, true);
    let line =
        "\n[sandbox: tools write only in the workspace and in $TMPDIR; --add-dir DIR opens another folder]";
    assert!(text.ends_with(line), "{text}");
    assert!(!outcome.folder.join(path).exists());
    let outcome = story("write added", &[write]).args(&["--add-dir", "../home"]).run();
    outcome.code(0).file(path, "x");
}

#[test]
fn a_run_that_is_read_only_writes_in_its_temporary_folder_alone() {
    let write = serde_json::json!({"name": "Write", "input": {"file_path": "a.txt", "content": "x"}});
    let calls = [write, bash("echo x >b.txt"), bash("echo kept >\"$TMPDIR/c\"; cat \"$TMPDIR/c\"")];
    let outcome = story("read-only", &calls).args(&["--sandbox", "read-only"]).run();
    outcome.code(0).no_file("a.txt").no_file("b.txt");
    let results = results(&outcome);
    let line = "[sandbox: this run is read-only but for $TMPDIR; --sandbox workspace-write, or --add-dir DIR \
                for a home or root folder, opens it]";
    assert!(results[0].0.ends_with(line) && results[1].0.ends_with(line), "{results:?}");
    assert_eq!(results[2].0, "kept");
}

#[test]
fn a_home_is_not_written_in_unless_it_is_added() {
    let calls = [bash("echo x >a && echo written")];
    let line = "cotter: the current folder is the home folder: this run is read-only (--add-dir . lets tools \
                write here)\n";
    let outcome = story("home", &calls).places("work", "work", "tmp").run();
    outcome.code(0).stderr(line).no_file("a");
    let outcome = story("added home", &calls).places("work", "work", "tmp").args(&["--add-dir", "."]).run();
    let line = "cotter: --add-dir lets tools change cotter's own session files, which lie below it\n";
    outcome.code(0).stderr(line).file("a", "x\n");
}

#[test]
fn changes_to_what_git_runs_are_told() {
    let call =
        bash("printf '[core]\\n\\tfsmonitor = ./evil\\n' >.git/config; echo evil >.git/hooks/post-checkout");
    let files = [(".git/config", "[core]\n"), (".git/hooks/pre-push", "")];
    let outcome = story("git", &[call]).files(&files).run();
    let line =
        "cotter: tools have changed .git/config, .git/hooks/post-checkout, which git runs commands from\n";
    outcome.code(0).stdout(DONE).stderr(line);
    let outcome = story("git left alone", &[bash("echo x >.git/index")]).files(&files).run();
    outcome.code(0).stdout(DONE).stderr("");
}

/// Here the sixteen layers of Landlock that a kernel allows are used up, which only the worker finds out.
#[test]
fn where_the_worker_cannot_be_contained_the_run_ends_with_code_10_and_nothing_has_run() {
    let outside = Outside::new();
    let script = outside.folder.join("nested");
    let program = env!("CARGO_BIN_EXE_cotter");
    let passed = "--pass-env ANTHROPIC_API_KEY --pass-env ANTHROPIC_BASE_URL";
    let layer = format!("'{program}' sandbox --allow-net {passed} -- ");
    let text = format!("#!/bin/sh\nexec {}'{program}' --allow-net \"$@\"\n", layer.repeat(16));
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let calls = [bash("echo x >ran"), bash("echo x >ran")];
    let story = bare("nested").program(&script).reply(asking(1, &calls)).args(&["--output-format", "json"]);
    let outcome = story.run();
    outcome.code(10).no_file("ran");
    outcome.equal(outcome.json()["error"]["class"].as_str(), Some("containment"));
    outcome.stderr_has("--sandbox off").stderr_has("--tools Read");
}

/// Starts a story where a call of the kernel's is not there, as a filter around a container has it.
fn without(call: i64, story: Story) -> Outcome {
    let absent = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let rules = [(call, Vec::new())].into();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, absent, machine).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    // It holds for this thread and what it starts.
    let thread = std::thread::spawn(move || {
        seccompiler::apply_filter(&program).unwrap();
        story.start()
    });
    thread.join().unwrap().finish()
}

#[test]
fn without_landlock_a_run_with_such_tools_ends_with_code_10_before_the_first_request() {
    let refused = "tools cannot be contained here: the kernel offers no Landlock (it needs Linux 5.13 or later \
                   with `landlock` in /sys/kernel/security/lsm): pass --tools Read to do without those that write \
                   or run something, or --sandbox off inside a container that you trust";
    let outcome = without(libc::SYS_landlock_create_ruleset, Story::new("no Landlock").args(&["-p", "Hi."]));
    outcome.code(10).stdout("").stderr(&format!("cotter: {refused}\n")).request_count(0);
    let command = without(
        libc::SYS_landlock_create_ruleset,
        Story::new("no command").anthropic().args(&["sandbox", "--", "true"]),
    );
    let refused = "cotter: the command cannot be contained here: the kernel offers no Landlock";
    command.code(10).stdout("").stderr_has(refused);
    for args in [&["--tools", "Read"][..], &["--sandbox", "off"]] {
        let story = Story::new("no need").reply(says(&["Hello."])).args(&["-p", "Hi."]).args(args);
        without(libc::SYS_landlock_create_ruleset, story).code(0).stdout("Hello.\n");
    }
}

#[test]
fn without_namespaces_there_are_no_sockets_unless_the_network_is_asked_for() {
    let commands = [
        "exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached",
        "ipcmk -M 1024 && echo reached",
        "echo x >a && cat a",
    ];
    let calls = commands.map(bash);
    let run = |args: &[&str]| {
        let outside = Outside::new();
        let story = story("no namespaces", &calls).args(args);
        let outcome = without(libc::SYS_unshare, outside.known_to(story));
        outcome.code(0).stdout(DONE);
        results(&outcome).iter().map(|(text, _)| text.contains("reached") || text == "x").collect::<Vec<_>>()
    };
    assert_eq!(run(&[]), [false, false, true]);
    assert_eq!(run(&["--allow-net"]), [true, false, true]);
}

/// On kernels before 6.12 commands are started by the program under another name, which gives up signals.
#[test]
fn where_the_kernel_does_not_judge_signals_commands_start_without_them() {
    let mut outside = Outside::new();
    let before = outside.state();
    let script = "kill -TERM $VICTIM; echo $?; kill -0 $VICTIM; echo $?; exit 3";
    let mut command = Command::new(env!("CARGO_BIN_EXE_cotter"));
    command.arg0("cotter-launch").args(["sh", "-c", script]).env("VICTIM", outside.victim.id().to_string());
    let output = command.stderr(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"1\n0\n"[..]));
    assert_eq!(outside.state(), before);
}

#[test]
fn the_own_key_stays_away_from_tools_that_are_not_contained() {
    let calls = [bash("env | grep -c test.key"), bash("echo $OTHER_TOKEN")];
    let outcome =
        story("own key", &calls).env("COPY", "x test-key").env("OTHER_TOKEN", "t").args(&UNCONTAINED).run();
    outcome.code(0).equal(results(&outcome), vec![failed("0\n[exit code: 1]"), crate::processes::ok("t")]);
}
