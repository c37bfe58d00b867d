//! What tools can reach. Each attempt is a command of Bash that prints `reached` where it has done what it must
//! not; it is first shown to succeed with `--sandbox off`, so that its failure otherwise means something.
//!
//! A further attempt is a line in [`attempts`]; what has to go on working is a line in [`permitted`].

#![allow(clippy::print_stdout, reason = "what was tried is a table for those who ask with --nocapture")]

mod attempts;
mod command;
mod environments;
mod meaning;

pub use meaning::{has_git, new_repository};

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, geteuid, test_kill_process};
use rustix::pty::OpenptFlags;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::processes::{DONE, UNCONTAINED, asking, bare, bash, done, failed, ok, results, story};
use crate::stage::says;
use crate::story::{Outcome, Story, new_folder};
use attempts::{ATTEMPTS, Attempt, CLASSES, Class, Needs, PERMITTED};
use environments::{Environment, RootFolder, give};

/// What lies outside of every workspace: a file, sockets, a listener on the loopback, a terminal and a process.
struct Outside {
    environment: Environment,
    folder: PathBuf,
    root: Option<RootFolder>,
    tcp: TcpListener,
    victim: Child,
    terminal: OwnedFd,
    _sockets: (UnixListener, UnixListener, UnixDatagram),
}

impl Outside {
    fn new() -> Outside {
        Outside::of(Environment::AsTestsRun)
    }

    fn of(environment: Environment) -> Outside {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("cotter-outside-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = fs::canonicalize(std::env::temp_dir()).unwrap().join(&name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("precious"), "precious\n").unwrap();
        fs::create_dir(folder.join("empty")).unwrap();
        let stream = UnixListener::bind(folder.join("stream")).unwrap();
        let nowhere = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let datagrams = UnixDatagram::bind(folder.join("datagrams")).unwrap();
        // Where it lies, another user may have no way to.
        let (program, link) = (crate::story::program(), folder.join("cotter"));
        fs::hard_link(program, &link).or_else(|_| fs::copy(program, &link).map(drop)).unwrap();
        let terminal = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        rustix::pty::unlockpt(&terminal).unwrap();
        let log = fs::File::create(folder.join("log")).unwrap();
        let mut victim = Command::new("sleep");
        victim.arg("1000").env("VICTIMS_SECRET", "1").stdout(log).current_dir(&folder);
        if let Some(user) = environment.user() {
            victim.uid(user).gid(user);
            let side = rustix::pty::ptsname(&terminal, Vec::new()).unwrap();
            std::os::unix::fs::chown(side.to_str().unwrap(), Some(user), None).unwrap();
        }
        let root = (environment == Environment::RootFolder).then(|| RootFolder::new(&folder).unwrap());
        let start = folder.join("start");
        fs::write(&start, environment.start(&folder, root.as_ref())).unwrap();
        fs::set_permissions(&start, fs::Permissions::from_mode(0o755)).unwrap();
        if let Some(user) = environment.user() {
            give(&folder, user);
        }
        let (victim, tcp) = (victim.spawn().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        Outside { environment, folder, root, tcp, victim, terminal, _sockets: (stream, nowhere, datagrams) }
    }

    /// The story is told where all this is.
    fn known_to(&self, story: Story) -> Story {
        let text = |name: &str| self.folder.join(name).to_str().unwrap().to_owned();
        let terminal = rustix::pty::ptsname(&self.terminal, Vec::new()).unwrap();
        let story = match self.environment.user() {
            Some(user) => story.prepared(move |work| give(work.parent().unwrap(), user)),
            None => story,
        };
        // The tests' own folders may be closed to another user.
        let story = match self.environment.has_less() {
            true => story.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"),
            false => story,
        };
        story
            .program(&self.folder.join("start"))
            .env("OUTSIDE", self.folder.to_str().unwrap())
            .env("PORT", &self.tcp.local_addr().unwrap().port().to_string())
            .env("ABSTRACT", self.folder.file_name().unwrap().to_str().unwrap())
            .env("VICTIM", &self.victim.id().to_string())
            .env("TERMINAL", terminal.to_str().unwrap())
            .env("COTTER", &text("cotter"))
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
        self.root = None;
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether the kernel gives whoever asks a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewNamespaces {
    Allowed,
    Forbidden,
}

/// A story whose model asks for these commands, one call each, at once.
fn asked(name: &str, commands: &[&str], args: &[&str], outside: &Outside) -> Story {
    let calls: Vec<_> = commands.iter().map(|command| bash(command)).collect();
    outside.known_to(bare(name).reply(asking(1, &calls)).reply(done()).args(args))
}

/// Runs these commands, one call each, in one run.
fn run(name: &str, commands: &[&str], args: &[&str], outside: &Outside) -> Outcome {
    let outcome = asked(name, commands, args, outside).run();
    outcome.code(0).stdout(DONE);
    outcome
}

/// Those of a class that this user can make here.
fn of_class(class: Class, environment: Environment) -> Vec<&'static Attempt> {
    let is_root = geteuid().is_root() && environment.user().is_none();
    let possible = |attempt: &&Attempt| {
        let has_program = has_what_it_runs(attempt.name, attempt.command);
        has_program && (attempt.needs != Needs::Root || is_root)
    };
    ATTEMPTS.iter().filter(|attempt| attempt.class == class).filter(possible).collect()
}

fn is_reached(text: &str) -> bool {
    text.lines().any(|line| line == "reached")
}

/// Those of the class that succeed uncontained. Another one shows nothing: it is skipped where the kernel, or
/// the environment, does not let anybody.
#[track_caller]
fn possible(class: Class, environment: Environment) -> Vec<&'static Attempt> {
    let attempts = of_class(class, environment);
    let commands: Vec<&str> = attempts.iter().map(|attempt| attempt.command).collect();
    let outcome = run("uncontained", &commands, &UNCONTAINED, &Outside::of(environment));
    let mut possible = Vec::new();
    for (attempt, (text, _)) in attempts.iter().zip(results(&outcome)) {
        match (is_reached(&text), attempt.needs) {
            (true, _) => possible.push(*attempt),
            (false, _) if environment.has_less() => {}
            (false, Needs::Kernel) => {
                skip(attempt.name, "this kernel or container does not let anybody do it")
            }
            (false, _) => panic!("{}: it fails uncontained, so it shows nothing: {text}", attempt.name),
        }
    }
    possible
}

/// The attempts fail with these arguments, and nothing outside has changed then.
#[track_caller]
fn all_fail(attempts: &[&Attempt], args: &[&str], environment: Environment, namespaces: NewNamespaces) {
    let commands: Vec<&str> = attempts.iter().map(|attempt| attempt.command).collect();
    let mut outside = Outside::of(environment);
    let before = outside.state();
    let outcome = match namespaces {
        NewNamespaces::Allowed => run("contained", &commands, args, &outside),
        NewNamespaces::Forbidden => {
            let outcome = without(libc::SYS_unshare, asked("no namespaces", &commands, args, &outside));
            outcome.code(0).stdout(DONE);
            outcome
        }
    };
    for (attempt, (text, _)) in attempts.iter().zip(results(&outcome)) {
        let is_reached = text.contains("reached") || text.contains("secret-of-mine");
        assert!(!is_reached, "{} succeeds with {args:?}: {text}\n{}", attempt.name, outcome.report());
        let words = attempt.by.words();
        let is_silent = words.is_empty() || text.starts_with("[exit code");
        let is_told = is_silent || words.iter().any(|word| text.contains(word));
        assert!(
            is_told || environment.has_less(),
            "{} is not stopped by {:?}: {text}",
            attempt.name,
            attempt.by
        );
    }
    assert_eq!(outside.state(), before, "{args:?}");
}

/// Each attempt of the class succeeds uncontained, or is skipped where the kernel does not let anybody, and
/// fails contained, in both modes.
#[track_caller]
fn is_closed(class: Class) {
    let attempts = possible(class, Environment::AsTestsRun);
    if attempts.is_empty() {
        let reason = "nothing of this class succeeds uncontained, so nothing shows that it is closed";
        return skipped(&format!("attempts_of_{class:?}"), reason);
    }
    for mode in ["workspace-write", "read-only"] {
        all_fail(&attempts, &["--sandbox", mode], Environment::AsTestsRun, NewNamespaces::Allowed);
    }
}

/// The same for all classes in an environment, also where the kernel gives no namespaces; and where it offers no
/// Landlock, nothing runs.
#[track_caller]
#[allow(clippy::print_stdout, reason = "it is for those who ask with --nocapture")]
fn all_is_closed(environment: Environment) {
    if let Err(reason) = environment.is_offered() {
        return skipped(&format!("attempts_{}", environment.name()), &reason);
    }
    let mut count = 0;
    for class in CLASSES {
        let attempts = possible(class, environment);
        for namespaces in [NewNamespaces::Allowed, NewNamespaces::Forbidden] {
            all_fail(&attempts, &[], environment, namespaces);
        }
        count += attempts.len();
    }
    println!(
        "{}: {count} of {} attempts succeed uncontained, none contained",
        environment.name(),
        ATTEMPTS.len()
    );
    assert!(count > 25, "only {count} attempts show anything");
    nothing_runs_without_landlock(environment);
}

#[track_caller]
fn nothing_runs_without_landlock(environment: Environment) {
    let mut outside = Outside::of(environment);
    let before = outside.state();
    let story = outside.known_to(bare("no Landlock").files(&[("a", "")]));
    let outcome = without(libc::SYS_landlock_create_ruleset, story);
    outcome.code(10).stdout("").stderr_has("the kernel offers no Landlock").request_count(0);
    assert_eq!(outside.state(), before);
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
fn names_of_what_lies_outside_stay() {
    is_closed(Class::Metadata);
}

#[test]
fn procfs_and_the_like_lead_nowhere() {
    is_closed(Class::Procfs);
}

#[test]
fn no_terminal_is_read_or_written() {
    is_closed(Class::Terminal);
}

#[test]
fn nothing_is_left_that_starts_later() {
    is_closed(Class::Persistence);
}

#[test]
fn whoever_runs_the_tests_is_contained() {
    all_is_closed(Environment::AsTestsRun);
}

#[test]
fn root_without_administration_is_contained() {
    all_is_closed(Environment::RootWithoutAdministration);
}

/// As `tar` and package managers do. In a user namespace nobody else would be there to give them to.
#[test]
fn root_without_administration_gives_files_away() {
    let environment = Environment::RootWithoutAdministration;
    if let Err(reason) = environment.is_offered() {
        return skipped("root_without_administration_gives_files_away", &reason);
    }
    let command = "touch a && chown 1000:1000 a && stat -c %u:%g a";
    let outcome = run("given away", &[command], &[], &Outside::of(environment));
    outcome.equal(results(&outcome), vec![ok("1000:1000")]);
}

#[test]
fn an_ordinary_user_is_contained() {
    all_is_closed(Environment::OrdinaryUser);
}

#[test]
fn in_a_root_folder_with_programs_alone_tools_are_contained() {
    all_is_closed(Environment::RootFolder);
}

/// Prints the table of classes, attempts, and what stops each, for those who ask with `--nocapture`.
#[test]
#[allow(clippy::print_stdout, reason = "it is for those who ask with --nocapture")]
fn each_class_has_attempts_and_each_says_what_stops_it() {
    for class in CLASSES {
        let of_class: Vec<_> = ATTEMPTS.iter().filter(|attempt| attempt.class == class).collect();
        assert!(of_class.len() > 1, "{class:?}");
        of_class.iter().for_each(|attempt| println!("| {class:?} | {} | {:?} |", attempt.name, attempt.by));
    }
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

/// What leads out of the workspace leads the tools that write nowhere, and a program of the user's neither.
#[test]
fn write_edit_and_programs_reach_nothing_outside() {
    let call = |name: &str, input: serde_json::Value| serde_json::json!({"name": name, "input": input});
    let told = |args: &[&str]| {
        let mut outside = Outside::new();
        let before = outside.state();
        let folder = outside.folder.to_str().unwrap().to_owned();
        let new = [
            format!("{folder}/new1"),
            format!("/proc/self/root{folder}/new2"),
            "folder/new3".to_owned(),
            "../home/new4".to_owned(),
            "file".to_owned(),
        ];
        let mut calls: Vec<_> = new
            .iter()
            .map(|path| call("Write", serde_json::json!({"file_path": path, "content": "reached"})))
            .collect();
        let edit = serde_json::json!({
            "file_path": format!("{folder}/start"), "old_string": "#!/bin", "new_string": "reached",
        });
        calls.push(call("Edit", edit));
        calls.push(call("reach", serde_json::json!({})));
        let script = "#!/bin/sh\ncat >/dev/null\necho x >\"$OUTSIDE/new5\" && echo reached\n";
        let target = folder.clone();
        let story = bare("tools").reply(asking(1, &calls)).reply(done()).executable("reach", script);
        let schema = r#"{"name": "reach", "description": "Reaches.", "input_schema": {"type": "object", "properties": {}}}"#;
        let story = story.file("reach.json", schema).args(&["--tool", "reach"]).args(args);
        let story = outside.known_to(story).prepared(move |work| {
            std::os::unix::fs::symlink(&target, work.join("folder")).unwrap();
            std::os::unix::fs::symlink(format!("{target}/precious"), work.join("file")).unwrap();
        });
        let outcome = story.run();
        outcome.code(0).stdout(DONE);
        let is_unchanged = outside.state() == before && !outcome.folder.join("../home/new4").exists();
        (results(&outcome).iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), is_unchanged)
    };
    let uncontained = told(&UNCONTAINED);
    assert_eq!(
        (uncontained.0.iter().filter(|failed| **failed).count(), uncontained.1),
        (0, false),
        "{uncontained:?}"
    );
    for args in [&[][..], &["--sandbox", "read-only"]] {
        assert_eq!(told(args), (vec![true; 7], true), "{args:?}");
    }
}

/// Between the look at a path and the writing to it, the path leads elsewhere.
#[test]
fn a_link_that_is_swapped_while_write_runs_leads_nowhere() {
    let mut outside = Outside::new();
    let before = outside.state();
    let swap = "while :; do ln -sfn \"$OUTSIDE\" swapped; ln -sfn inside swapped; : >swapping; done";
    let swap = serde_json::json!({"name": "Bash", "input": {"command": swap, "run_in_background": true}});
    let write = |number: usize| {
        let path = format!("swapped/new{}", number % 4);
        serde_json::json!({"name": "Write", "input": {"file_path": path, "content": "x"}})
    };
    let begun = bash("until test -e swapping; do :; done");
    let calls: Vec<_> = [swap, begun].into_iter().chain((0..200).map(write)).collect();
    let story = bare("swapped").reply(asking(1, &calls)).reply(done());
    let outcome = outside
        .known_to(story)
        .prepared(|work| {
            fs::create_dir(work.join("inside")).unwrap();
            std::os::unix::fs::symlink("inside", work.join("swapped")).unwrap();
        })
        .run();
    outcome.code(0).stdout(DONE);
    let failed = results(&outcome).iter().filter(|(_, is_error)| *is_error).count();
    assert!((1..200).contains(&failed), "{failed} of 200 met the link to the outside\n{}", outcome.report());
    assert_eq!(outside.state(), before);
}

/// Processes that do all they can to stay, and what they would start with.
#[test]
fn no_process_of_a_tool_is_there_after_the_run() {
    let commands = [
        "setsid sh -c 'trap \"\" HUP TERM INT; echo $$ >>pids; sleep 1000' >/dev/null 2>&1 & sleep 0.1",
        "(setsid sh -c '(setsid sh -c \"echo \\$\\$ >>pids; exec sleep 1000\") & exit' &) >/dev/null 2>&1; sleep 0.1",
        "nohup sh -c 'echo $$ >>pids; exec sleep 1000' >/dev/null 2>&1 & disown; until test $(wc -l <pids) -eq 3; do :; done",
    ];
    for args in [&[][..], &UNCONTAINED] {
        let outcome = run("stays", &commands, args, &Outside::new());
        let pids = fs::read_to_string(outcome.folder.join("pids")).unwrap();
        let numbers: Vec<i32> = pids.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(numbers.len(), 3, "{}", outcome.report());
        for number in numbers {
            let pid = Pid::from_raw(number).unwrap();
            assert_eq!(test_kill_process(pid), Err(rustix::io::Errno::SRCH), "{args:?}");
        }
    }
}

/// Without /proc the program starts itself by its path, and a tool that may write there puts another in its place,
/// or makes a /proc of its own that leads to it; then it ends the worker.
#[test]
fn a_program_that_a_tool_puts_in_the_place_of_cotter_is_not_started() {
    let test = "a_program_that_a_tool_puts_in_the_place_of_cotter_is_not_started";
    if let Err(reason) = Environment::RootFolder.is_offered() {
        return skipped(test, &reason);
    }
    let evil = "printf '#!/bin/sh\necho x >\"%s/new\"\n' \"$OUTSIDE\" >evil; chmod +x evil";
    for place in ["mv -f evil \"$COTTER\"", "mkdir -p /proc/self && mv evil /proc/self/exe"] {
        let mut outside = Outside::of(Environment::RootFolder);
        let hidden = outside.folder.join("root");
        let program = hidden.join("cotter");
        fs::copy(crate::story::program(), &program).unwrap();
        let start = fs::read_to_string(outside.folder.join("start")).unwrap();
        let by_path = format!("'{}/cotter' -C", outside.folder.display());
        assert!(start.contains(&by_path), "{start}");
        fs::write(outside.folder.join("start"), start.replace(&by_path, "/cotter -C")).unwrap();
        let before = outside.state();
        let commands = [format!("{evil}; {place} && echo placed; kill -KILL $PPID"), "echo again".to_owned()];
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let story = asked("replaced", &commands, &["--add-dir", "/"], &outside).env("COTTER", "/cotter");
        let outcome = story.run();
        outcome.code(0);
        assert_eq!(outside.state(), before, "{place}\n{}", outcome.report());
    }
}

#[test]
fn a_run_that_is_read_only_writes_in_its_temporary_folder_alone() {
    let write = serde_json::json!({"name": "Write", "input": {"file_path": "a.txt", "content": "x"}});
    let calls = [write, bash("echo x >b.txt"), bash("echo kept >\"$TMPDIR/c\"; cat \"$TMPDIR/c\"")];
    let outcome = story("read-only", &calls).args(&["--sandbox", "read-only"]).run();
    outcome.code(0).no_file("a.txt").no_file("b.txt");
    let results = results(&outcome);
    let line = "[sandbox: this run is read-only but for $TMPDIR: in a home or root folder --add-dir . opens it, else \
                the end of --sandbox read-only or --permission-mode plan]";
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
    let line = "cotter: tools have changed .git/config, .git/hooks/post-checkout, which git runs commands from: look at it before git runs here\n";
    outcome.code(0).stdout(DONE).stderr(line);
    let outcome = story("git left alone", &[bash("echo x >.git/index")]).files(&files).run();
    outcome.code(0).stdout(DONE).stderr("");
}

/// Here the sixteen layers of Landlock that a kernel allows are used up, which only the worker finds out.
#[test]
fn where_the_worker_cannot_be_contained_the_run_ends_with_code_10_and_nothing_has_run() {
    let outside = Outside::new();
    let script = outside.folder.join("nested");
    let program = crate::story::program();
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
    let mut command = Command::new(crate::story::program());
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
