//! What ran below cotter before it was cotter, as where a script starts a server and becomes cotter then: it lives
//! on, however the processes below cotter end.

use std::path::Path;

use super::*;

const WAITING: &str = "echo $PPID >worker; until test -e go; do sleep 0.01; done";

/// Processes that a script starts before it becomes cotter: one in cotter's session, and one in its own with a
/// child. None of them carries the run's mark.
struct Earlier(Vec<Pid>);

impl Earlier {
    const SCRIPT: &str = "#!/bin/sh
        alone='env -u STORY_MARK'
        $alone sleep 1000 >/dev/null 2>&1 &
        echo $! >>../earlier
        $alone setsid sh -c 'sleep 1000 & echo $$ $! >>../earlier; wait' >/dev/null 2>&1 &
        until test \"$(wc -l <../earlier)\" = 2; do sleep 0.01; done
        exec \"$COTTER\" \"$@\"
        ";

    fn story(story: Story, folder: &Path) -> Story {
        let script = folder.join("script");
        fs::write(&script, Earlier::SCRIPT).unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        story.program(&script).env("COTTER", crate::story::program())
    }

    fn of(workspace: &Path) -> Earlier {
        let numbers = fs::read_to_string(workspace.parent().unwrap().join("earlier")).unwrap();
        Earlier(numbers.split_whitespace().map(pid_in).collect())
    }

    fn living(&self) -> usize {
        self.0.iter().filter(|pid| !has_ended(**pid)).count()
    }
}

impl Drop for Earlier {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = kill_process(*pid, Signal::KILL);
        }
    }
}

#[test]
fn what_ran_before_lives_on_whichever_process_below_is_killed() {
    for victim in ["nobody", "worker", "supervisor"] {
        let folder = crate::story::new_folder("earlier", &["."]);
        let calls =
            [bash("setsid sleep 1000 >/dev/null 2>&1 & echo left"), bash(WAITING), bash("echo again")];
        let run = Run::start(Earlier::story(story("earlier", &calls), &folder));
        let worker = pid_in(&run.line_in("worker"));
        let earlier = Earlier::of(run.running.folder());
        match victim {
            "nobody" => run.let_go("go"),
            "worker" => kill_process(worker, Signal::KILL).unwrap(),
            _ => kill_process(pid_in(&stat_word(worker, 1).unwrap()), Signal::KILL).unwrap(),
        }
        let outcome = run.finish();
        outcome.code(0).stdout(DONE).equal(results(&outcome)[2].clone(), ok("again"));
        outcome.equal((victim, earlier.0.len(), earlier.living()), (victim, 3, 3));
        fs::remove_dir_all(&folder).unwrap();
    }
}
