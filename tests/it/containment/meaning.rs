//! What containment means for ordinary work: which folders a run writes in, what a repository elsewhere, a
//! program's cache and the network take, and which line tells the model so.

use std::path::Path;

use super::*;
use crate::processes::ok;

/// Whether the test can have a repository.
pub fn has_git(test: &str) -> bool {
    let is_there = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        skipped(test, "there is no git");
    }
    is_there
}

/// Makes a repository with one commit of this folder, and calls git in it once more.
pub fn new_repository(folder: &Path, then: &[&str]) {
    let nothing: &[&str] = &["commit", "-q", "--allow-empty", "-m", "first"];
    for args in [&["init", "-q"][..], nothing, then] {
        let mut command = Command::new("git");
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(AUTHOR).env("GIT_CONFIG_NOSYSTEM", "1").current_dir(folder).args(args);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

const AUTHOR: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "A"),
    ("GIT_AUTHOR_EMAIL", "a@example.org"),
    ("GIT_COMMITTER_NAME", "A"),
    ("GIT_COMMITTER_EMAIL", "a@example.org"),
];

const ADDED_STATE: &str =
    "cotter: --add-dir lets tools change cotter's own session files, which lie below it\n";

/// The text of the only result.
#[track_caller]
fn told(outcome: &Outcome) -> String {
    outcome.code(0).stdout(DONE);
    results(outcome).remove(0).0
}

#[test]
fn a_folder_where_nobody_means_it_is_read_only_unless_it_is_added() {
    let call = [bash("echo x >\"$HOME/a\" && echo written")];
    let root = || story("root", &call).args(&["-C", "/"]).told_folder();
    let parent = || story("parent", &call).places("work", "work/home", "tmp").told_folder();
    for (what, story, added) in
        [("the root folder", root(), root()), ("above the home folder", parent(), parent())]
    {
        let outcome = story.run();
        let line = format!(
            "cotter: the current folder is {what}: this run is read-only (--add-dir . lets tools write here)\n"
        );
        assert!(
            told(outcome.stderr(&line)).contains("[sandbox: this run is read-only"),
            "{}",
            outcome.report()
        );
        let outcome = added.args(&["--add-dir", "."]).run();
        assert_eq!(told(outcome.stderr(ADDED_STATE)), "written");
    }
    let outcome = story("everything", &call).args(&["--add-dir", "/"]).run();
    assert_eq!(told(outcome.stderr(ADDED_STATE)), "written");
}

#[test]
fn the_folder_of_sessions_is_read_only_unless_it_is_added() {
    let call = [bash("echo x >a && echo written")];
    let state = |args: &[&str]| {
        let folder = new_folder("state", &["work/cotter"]);
        let outcome = story("state", &call).args(args).args(&["-C", folder.join("work").to_str().unwrap()]);
        let outcome = outcome.env("XDG_STATE_HOME", folder.join("work").to_str().unwrap()).run();
        outcome.code(0);
        fs::remove_dir_all(folder).unwrap();
        (outcome.stderr.clone(), results(&outcome)[0].0 == "written")
    };
    let line = "cotter: the current folder is where cotter keeps its sessions: this run is read-only (--add-dir . \
                lets tools write here)\n";
    assert_eq!(state(&[]), (line.to_owned(), false));
    assert_eq!(state(&["--add-dir", "."]), (ADDED_STATE.to_owned(), true));
}

#[test]
fn a_worktree_of_a_repository_elsewhere_is_committed_to_where_that_is_added() {
    if !has_git("a_worktree_of_a_repository_elsewhere_is_committed_to_where_that_is_added") {
        return;
    }
    let call = [bash("echo x >a && git add a && git commit -qm second && git log --format=%s")];
    let commit = |args: &[&str]| {
        let story =
            AUTHOR.iter().fold(story("worktree", &call), |story, (name, value)| story.env(name, value));
        let story = story.args(args).told_folder().prepared(|folder| {
            let repository = folder.parent().unwrap().join("home/repository");
            fs::create_dir(&repository).unwrap();
            fs::remove_dir(folder).unwrap();
            new_repository(&repository, &["worktree", "add", "-q", folder.to_str().unwrap()]);
        });
        told(&story.run())
    };
    let closed = commit(&[]);
    let hint = "\n[sandbox: commands write only in the workspace and in $TMPDIR; --add-dir \"$(git rev-parse \
                --git-common-dir)\" opens a repository that lies elsewhere]";
    assert!(closed.ends_with(hint), "{closed}");
    // What the command in the hint says there.
    assert_eq!(commit(&["--add-dir", "../home/repository/.git"]), "second\nfirst");
}

/// Each with the variable by which its program takes another folder.
const CACHES: [(&str, &str); 4] = [
    ("GOCACHE", ".cache/go-build"),
    ("npm_config_cache", ".npm"),
    ("CARGO_HOME", ".cargo"),
    ("XDG_CACHE_HOME", ".cache"),
];

#[test]
fn a_cache_at_home_is_kept_elsewhere_or_its_folder_is_added() {
    for (variable, folder) in CACHES {
        let fill = format!("mkdir -p \"${{{variable}:-$HOME/{folder}}}/x\" && echo filled");
        let moved = format!("export {variable}=\"$TMPDIR/cache\"; {fill}");
        let closed = told(&story("cache", &[bash(&fill)]).told_folder().run());
        assert!(
            closed.contains("--add-dir DIR opens another folder") && closed.contains(variable),
            "{variable}: {closed}"
        );
        assert_eq!(told(&story("moved cache", &[bash(&moved)]).run()), "filled");
        let home = |path: &Path| fs::create_dir_all(path.parent().unwrap().join("home/cache")).unwrap();
        let story = story("added cache", &[bash(&format!("export {variable}=\"$HOME/cache\"; {fill}"))]);
        assert_eq!(told(&story.prepared(home).args(&["--add-dir", "../home/cache"]).run()), "filled");
    }
}

/// A program that tells which kinds of sockets it can make.
const SOCKETS: &str = "python3 -c '
import socket
def can(family, kind):
    try:
        socket.socket(family, kind).close()
        return True
    except OSError:
        return False
kinds = {\"inet\": (2, 1), \"inet6\": (10, 1), \"netlink\": (16, 3), \"unix\": (1, 1), \"unix_datagram\": (1, 2), \"vsock\": (40, 1), \"packet\": (17, 3), \"alg\": (38, 5), \"bluetooth\": (31, 3), \"key\": (15, 3)}
print(*[name for name, (family, kind) in kinds.items() if can(family, kind)])
'";

#[test]
fn the_network_is_three_kinds_of_sockets_and_no_other() {
    let test = "the_network_is_three_kinds_of_sockets_and_no_other";
    if !has_what_it_runs(test, SOCKETS) {
        return;
    }
    let open = told(&story("all sockets", &[bash(SOCKETS)]).args(&UNCONTAINED).run());
    assert!(open.contains("unix unix_datagram"), "{open}");
    let usual =
        ["inet", "inet6", "netlink"].into_iter().filter(|kind| open.split(' ').any(|one| one == *kind));
    let expected = usual.collect::<Vec<_>>().join(" ");
    assert_eq!(told(&story("allowed", &[bash(SOCKETS)]).args(&["--allow-net"]).run()), expected);
    let none = without(libc::SYS_unshare, story("no namespaces", &[bash(SOCKETS)]));
    assert_eq!(told(&none), "(no output)");
}

#[test]
fn sockets_of_agents_are_not_reached_with_the_network_either() {
    let unix = || of_class(Class::Socket, Environment::AsTestsRun);
    let commands: Vec<&str> = unix().iter().map(|attempt| attempt.command).collect();
    let outcome = run("network", &commands, &["--allow-net"], &Outside::new());
    for (attempt, (text, _)) in unix().iter().zip(results(&outcome)) {
        assert!(!text.contains("reached"), "{}: {text}", attempt.name);
    }
    // The variables that lead to them are not there at all, unless they are asked for.
    let call = [bash("echo \"[$SSH_AUTH_SOCK] [$DEPLOY_TOKEN] [$DOCKER_HOST]\"")];
    let agents = |args: &[&str]| {
        let story = story("agents", &call).args(args).env("SSH_AUTH_SOCK", "/run/agent");
        told(&story.env("DEPLOY_TOKEN", "secret-of-mine").env("DOCKER_HOST", "unix:///run/docker").run())
    };
    assert_eq!(agents(&["--allow-net"]), "[] [] [unix:///run/docker]");
    let passed = agents(&["--pass-env", "SSH_AUTH_SOCK", "--pass-env", "DEPLOY_TOKEN"]);
    assert_eq!(passed, "[/run/agent] [secret-of-mine] [unix:///run/docker]");
}

/// What of Python's `multiprocessing` needs more than a fork.
#[test]
fn shared_memory_and_a_fork_server_name_their_flags() {
    let lock = "python3 -c 'import multiprocessing; multiprocessing.Lock(); print(\"locked\")'";
    let server = "cat >m.py <<'end'\nimport multiprocessing\nif __name__ == \"__main__\":\n    context = \
                  multiprocessing.get_context(\"forkserver\")\n    p = context.Process(target=print, \
                  args=(\"served\",))\n    p.start()\n    p.join()\nend\npython3 m.py";
    if !has_what_it_runs("shared_memory_and_a_fork_server_name_their_flags", lock) {
        return;
    }
    let run =
        |call: &str, args: &[&str]| told(&story("python", &[bash(call)]).told_folder().args(args).run());
    let closed = run(lock, &[]);
    let hint = "\n[sandbox: commands share no memory by name; --add-dir /dev/shm opens the machine's]";
    assert!(closed.ends_with(hint), "{closed}");
    assert_eq!(run(lock, &["--add-dir", "/dev/shm"]), "locked");
    let closed = run(server, &["--add-dir", "/dev/shm"]);
    assert!(closed.ends_with("UNIX sockets are closed everywhere; --sandbox off opens them]"), "{closed}");
    assert_eq!(run(server, &UNCONTAINED), "served");
}

/// As in a container that lets nobody make namespaces.
#[test]
fn a_loopback_that_cannot_be_had_names_the_flag_for_the_network() {
    let calls = [bash("exec 3<>/dev/tcp/127.0.0.1/$PORT && echo reached"), bash("python3 -m http.server 0")];
    let outside = Outside::new();
    let outcome = without(libc::SYS_unshare, outside.known_to(story("no loopback", &calls)));
    outcome.code(0).stdout(DONE);
    for (text, _) in results(&outcome).iter().filter(|(text, _)| !text.contains("not found")) {
        assert!(text.contains("--allow-net"), "{text}");
    }
}

/// Nothing contains cotter: where it writes itself, a tool must not lead it elsewhere.
#[test]
fn a_recording_in_the_workspace_is_led_nowhere_else() {
    let calls = [bash("mv rec moved && ln -s ../home rec && echo done"), bash("echo more")];
    let outcome = story("recording", &calls).args(&["--record", "rec"]).run();
    outcome.code(0).stdout(DONE).stderr("").equal(results(&outcome), vec![ok("done"), ok("more")]);
    assert!(outcome.folder.join("moved/03.response.http").exists(), "{}", outcome.report());
    let home = outcome.folder.parent().unwrap().join("home");
    let left: Vec<_> = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, [".local"]);
}

/// A folder that tools do not write in keeps its recording whole.
#[test]
fn a_recording_elsewhere_is_not_written_by_tools() {
    let calls = [bash("echo x >>../home/rec/01.response.http && echo written; ls ../home/rec | wc -l")];
    let outcome = story("elsewhere", &calls).args(&["--record", "../home/rec"]).run();
    let text = told(&outcome);
    assert!(text.contains("Permission denied") && text.contains("\n2"), "{text}");
}

#[test]
fn an_answers_file_is_led_nowhere_else() {
    let lead = [
        ("a.md", "ln -s ../home/planted a.md"),
        ("out/a.md", "mv out gone; ln -s ../home out"),
        ("link.md", "ln -sf ../home/planted link.md"),
    ];
    for (file, command) in lead {
        let prepare = |folder: &Path| {
            fs::create_dir(folder.join("out")).unwrap();
            std::os::unix::fs::symlink("out/b.md", folder.join("link.md")).unwrap();
        };
        let outcome = story("answer", &[bash(command)]).args(&["-o", file]).prepared(prepare).run();
        let line = format!(
            "cotter: cannot write \"{file}\": it has come to lead elsewhere during the run: \
             the answer is on standard output\n"
        );
        outcome.code(1).stdout(DONE).stderr(&line);
        let home = outcome.folder.parent().unwrap().join("home");
        assert!(!home.join("planted").exists() && !home.join("a.md").exists(), "{}", outcome.report());
        // Left alone, it is written where it always led.
        let outcome = story("answer", &[bash("true")]).args(&["-o", file]).prepared(prepare).run();
        outcome.code(0).stdout("").stderr("").file(file, DONE);
    }
}
