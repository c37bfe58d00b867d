//! Bash: runs a command line in a shell and returns what it printed and how it ended.
//!
//! Output and the shell's end are waited for together, so that a call returns when its shell does, whatever
//! it leaves running.

use std::path::Path;
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::process::{Signal, kill_process_group};

use super::background::Background;
use super::command::{self, Ending, Started};
use super::{Arguments, Outcome, Spec, Workspace, arguments, slips};
use crate::sandbox::descendants::{self, Kept};
use crate::sandbox::process;

/// What the model is told of this tool.
pub const SPEC: Spec = Spec {
    name: "Bash",
    description: "Runs a command line with `bash -c` (`sh -c` where there is no bash) in the workspace \
folder and returns both output streams in order, as a terminal would finally show them; when it fails, a last \
line says how, such as `[exit code: 1]`. Each call is a new shell: `cd` and variables do not last, so join \
steps with `&&`. There is no terminal and no input: pass flags such as `--yes`. Of output over 30000 bytes the \
middle is left out: filter it, or send it to a file in $TMPDIR and Read that in parts. Most runs let commands \
write only in the workspace and in $TMPDIR and reach no network; a failure that comes of it says so. A command \
over its `timeout` is ended with all it started. Instead of `&`, set `run_in_background` for a server or a long job: \
BashOutput shows its output, KillShell or the end of the run ends it. To read, edit or search files, prefer \
the tools made for that.",
    arguments: &["command", "timeout", "description", "run_in_background"],
    schema: r#"{"type":"object","properties":{"command":{"type":"string","description":"The command line."},"timeout":{"type":"integer","minimum":1,"maximum":600000,"description":"Milliseconds; 120000 if not given, no limit in the background."},"description":{"type":"string","description":"What the command is for, in five to ten words."},"run_in_background":{"type":"boolean","description":"Return at once with the shell's id."}},"required":["command"]}"#,
};

const DEFAULT_TIMEOUT: Duration = Duration::from_millis(120_000);
const MAX_TIMEOUT_MS: u64 = 600_000;

/// How long a call of this tool may take by its own arguments.
pub fn timeout(arguments: &Arguments) -> Duration {
    // One that is refused takes no time, nor does one that goes on in the background.
    match Request::read(arguments) {
        Ok(request) if !request.run_in_background => request.timeout.unwrap_or(DEFAULT_TIMEOUT),
        _ => Duration::ZERO,
    }
}

/// Whether a call asks for a shell in the background.
pub fn runs_in_background(arguments: &Arguments) -> bool {
    Request::read(arguments).is_ok_and(|request| request.run_in_background)
}

/// The command line that a call of this tool runs.
pub fn command(arguments: &Arguments) -> Result<&str, String> {
    Request::read(arguments).map(|request| request.command)
}

/// Runs a call. The process must be a child subreaper without other children that somebody waits for.
pub fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    shell: &Path,
    background: &mut Background,
) -> Outcome {
    match Request::read(arguments) {
        Err(text) => Outcome::error(text),
        Ok(request) if request.run_in_background => {
            background.start(shell, request.command, workspace, request.timeout)
        }
        Ok(request) => request.execute(workspace, shell, background),
    }
}

/// What a call asks for.
#[derive(Debug, PartialEq, Eq)]
struct Request<'a> {
    command: &'a str,
    timeout: Option<Duration>,
    run_in_background: bool,
}

impl<'a> Request<'a> {
    fn read(arguments: &'a Arguments) -> Result<Request<'a>, String> {
        let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?;
        let command = given.text("command")?;
        if command.trim().is_empty() {
            return Err(given.complaint("cannot run a \"command\" that is empty"));
        }
        if command.contains('\0') {
            return Err(given.complaint("cannot run a \"command\" that holds a NUL character"));
        }
        let timeout = match given.optional_integer("timeout")? {
            None => None,
            Some(timeout_ms) if timeout_ms > 0 => {
                Some(Duration::from_millis(timeout_ms.unsigned_abs().min(MAX_TIMEOUT_MS)))
            }
            Some(other) => {
                return Err(given.complaint(&format!("takes a \"timeout\" above 0, not {other}")));
            }
        };
        given.optional_text("description")?;
        Ok(Request { command, timeout, run_in_background: given.flag("run_in_background")? })
    }

    fn execute(&self, workspace: &Workspace, shell: &Path, background: &mut Background) -> Outcome {
        let earlier =
            Kept::running_now(command::SHELL_VARIABLE, |pid, status| background.note_end(pid, status));
        let started = background
            .command(shell)
            .and_then(|shell| Started::new(shell, self.command, &workspace.root, None));
        let mut started = match started {
            Ok(started) => started,
            Err(error) => return Outcome::error(command::cannot_start(&error, shell)),
        };
        let limit = self.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let ending = background.follow(started.process.pid, limit, |wait| {
            let pipe = started.pipe().map(|pipe| (pipe, PollFlags::IN));
            process::wait_for(pipe, &[&started.process], Some(wait));
            started.take_some();
        });
        if ending.is_to_be_ended() {
            let _ = kill_process_group(started.process.pid, Signal::KILL);
            descendants::end_descendants(&earlier, |pid, status| background.note_end(pid, status));
        }
        started.take_rest();
        let outcome = outcome(&started.printed().text(), ending);
        background.keep(started.into_pipe());
        outcome
    }
}

fn outcome(output: &str, ending: Ending) -> Outcome {
    let output = output.trim_end_matches('\n');
    if ending.is_success() {
        return Outcome::ok(if output.is_empty() { "(no output)" } else { output });
    }
    let advice = match ending {
        Ending::TimedOut(_) => {
            format!("; give a longer `timeout` (at most {MAX_TIMEOUT_MS}), or run it in the background")
        }
        _ => String::new(),
    };
    let how = format!("[{}{advice}]", ending.words());
    Outcome::error(if output.is_empty() { how } else { format!("{output}\n{how}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn arguments(json: &str) -> Arguments {
        serde_json::from_str(json).unwrap()
    }

    fn refused(json: &str) -> String {
        let text = Request::read(&arguments(json)).unwrap_err();
        let (what, schema) = text.split_once("; the schema of its arguments is ").unwrap();
        assert_eq!(schema, SPEC.schema);
        what.to_owned()
    }

    #[test]
    fn the_schema_is_json() {
        let schema: Value = serde_json::from_str(SPEC.schema).unwrap();
        assert_eq!(schema["properties"]["timeout"]["maximum"], MAX_TIMEOUT_MS);
    }

    #[test]
    fn a_timeout_has_a_ceiling_and_in_the_foreground_a_default() {
        for (json, timeout_ms, limit_ms) in [
            (r#"{"command":"ls"}"#, None, 120_000),
            (r#"{"command":"ls","timeout":null,"description":null}"#, None, 120_000),
            (r#"{"command":"ls","timeout":1,"description":"List files"}"#, Some(1), 1),
            (r#"{"command":"ls","timeout":"5000"}"#, Some(5000), 5000),
            (r#"{"cmd":"ls","timeoutMs":600000}"#, Some(600_000), 600_000),
            (r#"{"command":"ls","timeout":900000,"run_in_background":false}"#, Some(600_000), 600_000),
            (r#"{"command":"ls","run_in_background":true}"#, None, 0),
            (r#"{"command":"ls","timeout":900000,"run_in_background":"true"}"#, Some(600_000), 0),
        ] {
            let run_in_background = limit_ms == 0;
            let timeout = timeout_ms.map(Duration::from_millis);
            let expected = Request { command: "ls", timeout, run_in_background };
            let arguments = arguments(json);
            assert_eq!(Request::read(&arguments), Ok(expected), "{json}");
            assert_eq!(super::timeout(&arguments), Duration::from_millis(limit_ms), "{json}");
            assert_eq!(runs_in_background(&arguments), run_in_background, "{json}");
        }
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_schema() {
        for (json, what) in [
            ("{}", "Bash needs \"command\""),
            (r#"{"command":["ls"]}"#, "Bash takes a string as \"command\", not an array"),
            (r#"{"command":null}"#, "Bash needs \"command\""),
            (r#"{"command":" \n"}"#, "Bash cannot run a \"command\" that is empty"),
            (r#"{"command":"a\u0000b"}"#, "Bash cannot run a \"command\" that holds a NUL character"),
            (r#"{"command":"ls","timeout":0}"#, "Bash takes a \"timeout\" above 0, not 0"),
            (r#"{"command":"ls","timeout":-1}"#, "Bash takes a \"timeout\" above 0, not -1"),
            (r#"{"command":"ls","timeout":1.5}"#, "Bash takes a whole number as \"timeout\", not 1.5"),
            (r#"{"command":"ls","description":1}"#, "Bash takes a string as \"description\", not 1"),
            (r#"{"command":"ls","cwd":"/"}"#, "Bash has no argument \"cwd\""),
            (
                r#"{"command":"ls","run_in_background":1}"#,
                "Bash takes true or false as \"run_in_background\", not 1",
            ),
        ] {
            assert_eq!(refused(json), what, "{json}");
        }
    }
}
