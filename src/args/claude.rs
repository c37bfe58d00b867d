//! The flags of `claude`, and what becomes of each here: what is not a flag of the table is either accepted,
//! since it cannot change what was asked for, or refused with the nearest way.
//!
//! It says what there is, and reads and prints nothing. The flags are those of Claude Code 2.1.332.

use super::flags::{ACCEPTED, FLAGS, REFUSED};

/// A row of the table.
pub struct Row {
    /// Names, without their two dashes.
    names: &'static [&'static str],
    here: Here,
}

/// What becomes of a flag.
enum Here {
    /// What the tables of flags say; if it is a flag, with this difference.
    Listed(&'static str),
    /// Nothing, and why.
    Accepted(Takes, &'static str),
    /// An error that names this way.
    Refused(&'static str),
}

/// What follows a flag that is accepted.
#[derive(Clone, Copy)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A value.
    Value,
    /// A value, if one word without a dash stands there.
    Perhaps,
}

const fn listed(names: &'static [&'static str], difference: &'static str) -> Row {
    Row { names, here: Here::Listed(difference) }
}

const fn accepted(names: &'static [&'static str], takes: Takes, why: &'static str) -> Row {
    Row { names, here: Here::Accepted(takes, why) }
}

const fn refused(names: &'static [&'static str], way: &'static str) -> Row {
    Row { names, here: Here::Refused(way) }
}

/// Every flag of `claude`, those that its help does not show included.
const ROWS: &[Row] = &[
    listed(&["print"], ""),
    listed(&["output-format"], ""),
    listed(&["input-format"], "beside stream-json a prompt argument is refused, not passed over"),
    listed(&["include-partial-messages"], ""),
    listed(&["replay-user-messages"], ""),
    listed(&["json-schema"], "a keyword that is not checked is refused"),
    listed(&["verbose"], "its lines are on stderr, and none with stream-json, which does not need it"),
    listed(&["model"], "sonnet, opus, haiku and fable mean the newest ones this version knows"),
    listed(&["fallback-model"], ""),
    listed(&["effort"], ""),
    listed(&["thinking"], ""),
    listed(&["thinking-display"], ""),
    listed(&["max-thinking-tokens"], ""),
    listed(&["betas"], ""),
    listed(&["system-prompt"], ""),
    listed(&["system-prompt-file"], ""),
    listed(&["append-system-prompt"], ""),
    listed(&["append-system-prompt-file"], ""),
    listed(&["tools"], "a tool that is not there is an error"),
    listed(&["allowedTools", "allowed-tools"], "without it, all that the sandbox holds is allowed"),
    listed(&["disallowedTools", "disallowed-tools"], ""),
    listed(&["permission-mode"], "auto and manual mean default: the sandbox decides, no second model"),
    listed(&["dangerously-skip-permissions"], "--sandbox keeps its say, and root may use it"),
    listed(&["permission-prompt-tool"], "stdio alone: there are no MCP tools"),
    listed(&["add-dir"], "the first word after it, and those that go on with a path such as ../lib"),
    listed(&["max-turns"], "ends with code 20"),
    listed(&["max-budget-usd"], "ends with code 23"),
    listed(&["continue"], ""),
    listed(&["resume"], ""),
    listed(&["session-id"], ""),
    listed(&["fork-session"], ""),
    listed(&["resume-session-at"], ""),
    listed(&["no-session-persistence"], ""),
    listed(&["bare", "safe-mode"], ""),
    listed(&["disable-slash-commands"], ""),
    listed(
        &["setting-sources"],
        "it says whose context files and skills are read, since there are no settings",
    ),
    listed(&["settings"], ""),
    listed(&["mcp-config"], ""),
    listed(&["strict-mcp-config"], ""),
    listed(&["agent"], ""),
    listed(&["agents"], ""),
    listed(&["plugin-dir"], ""),
    listed(&["ide"], ""),
    listed(&["no-chrome"], ""),
    listed(&["help"], ""),
    listed(&["version"], "the version is cotter's own"),
    accepted(
        &["debug"],
        Takes::Perhaps,
        "stderr has what there is to say, with --verbose more; a filter is one word",
    ),
    accepted(&["debug-to-stderr", "mcp-debug"], Takes::Nothing, "stderr has what there is to say"),
    accepted(&["allow-dangerously-skip-permissions"], Takes::Nothing, "it skips nothing by itself"),
    accepted(&["permission-prompts"], Takes::Value, "no terminal is asked in print mode"),
    accepted(
        &["exclude-dynamic-system-prompt-sections"],
        Takes::Nothing,
        "the system prompt holds no folder, clock or state of the machine",
    ),
    accepted(&["include-hook-events"], Takes::Nothing, "there are no hooks"),
    accepted(&["forward-subagent-text"], Takes::Nothing, "there are no subagents"),
    accepted(&["prompt-suggestions"], Takes::Perhaps, "none are made"),
    accepted(&["enable-auth-status"], Takes::Nothing, "nothing logs in"),
    accepted(&["name"], Takes::Value, "a session is found by its id; the letter -n is --no-stdin"),
    accepted(&["ax-screen-reader"], Takes::Nothing, "the output is plain text"),
    refused(&["restricted"], "leave out what runs commands: --tools Read,Write,Edit,Glob,Grep"),
    refused(&["debug-file"], "send stderr to a file: --verbose 2>FILE"),
    refused(&["worktree"], "make it with git worktree add, and run there with -C DIR"),
    refused(&["task-budget"], "limit the run with --max-turns or each reply with --max-output-tokens"),
    refused(&["autocompact"], "say how many tokens the model reads with --context-window"),
    refused(&["system-prompt-snapshot"], "each run's system prompt is what its own flags say"),
    refused(&["file"], "put the file into the folder before the run"),
    refused(&["chrome"], "there is no browser"),
    refused(&["brief"], "all that the model has to say is in the answer"),
    refused(&["advisor"], "there is no second model"),
    refused(
        &["from-pr", "reply-on-resume", "resume-drops-turn", "rewind-files"],
        "it is not in this version",
    ),
    refused(&["session-mirror"], "the session files are JSON lines: read those"),
    refused(
        &["append-subagent-system-prompt", "append-subagent-system-prompt-file"],
        "there are no subagents: use --append-system-prompt",
    ),
    refused(&["plan-mode-instructions", "plan-mode-required"], "put them into --append-system-prompt"),
    refused(&["plugin-url", "plugin-dir-no-mcp"], "there are no plugins"),
    refused(&["init", "init-only", "maintenance"], "there are no hooks: run the command before cotter"),
    refused(
        &["managed-settings", "project-config-root"],
        "no settings files are read; put flags into the file named by COTTER_CONFIG",
    ),
    refused(&["bg", "background", "tmux"], "cotter runs in the foreground: use nohup, & or a job runner"),
    refused(
        &[
            "cloud",
            "remote",
            "teleport",
            "environment",
            "pool",
            "ref",
            "on-branch",
            "correlation-id",
            "forward-home-settings",
            "attach-serve",
            "desktop",
            "remote-control",
            "rc",
            "remote-control-session-name-prefix",
        ],
        "cotter runs on this machine alone",
    ),
    refused(
        &[
            "agent-id",
            "agent-name",
            "agent-type",
            "agent-color",
            "team-name",
            "teammate-mode",
            "parent-session-id",
            "inherit-permission-mode",
            "messaging-socket-path",
        ],
        "there are no teams of agents: start several runs",
    ),
    refused(
        &[
            "await-claim",
            "await-initialize",
            "sdk-url",
            "client-data-url",
            "workload",
            "channels",
            "dangerously-load-development-channels",
            "watch-artifact",
            "watch-artifact-no-autoreact",
            "prefill",
            "prefill-b64",
            "deep-link-origin",
            "deep-link-repo",
            "deep-link-last-fetch",
            "deep-link-cwd-b64",
            "enable-auto-mode",
        ],
        "it belongs to claude's own applications",
    ),
];

/// The word, if it is a command of `claude`'s.
pub fn command(word: &str) -> Option<&'static str> {
    const COMMANDS: [&str; 12] = [
        "agents",
        "auth",
        "config",
        "doctor",
        "install",
        "mcp",
        "migrate-installer",
        "plugin",
        "plugins",
        "setup-token",
        "update",
        "upgrade",
    ];
    COMMANDS.into_iter().find(|command| *command == word)
}

/// The name of a letter that is no flag here but one of `claude`.
pub fn of_letter(letter: char) -> Option<&'static str> {
    match letter {
        'c' => Some("continue"),
        'd' => Some("debug"),
        'r' => Some("resume"),
        'w' => Some("worktree"),
        _ => None,
    }
}

/// What follows a flag that is accepted and changes nothing; absent for any other.
pub fn takes(name: &str) -> Option<Takes> {
    if ACCEPTED.contains(&name) {
        return Some(Takes::Nothing);
    }
    match row(name)?.here {
        Here::Accepted(takes, _) => Some(takes),
        Here::Listed(_) | Here::Refused(_) => None,
    }
}

/// The nearest way to what a flag that is refused would do; absent for any other.
pub fn way(name: &str) -> Option<&'static str> {
    if let Some((_, way)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Some(way);
    }
    match row(name)?.here {
        Here::Refused(way) => Some(way),
        Here::Listed(_) => Some(NOT_YET),
        Here::Accepted(..) => None,
    }
}

/// What the manual says of the flags of `claude`: names, and what becomes of them.
pub fn table() -> Vec<(String, String)> {
    let shown = |row: &Row| {
        let names: Vec<String> = row.names.iter().map(|name| format!("--{name}")).collect();
        (names.join(", "), row.verdict())
    };
    ROWS.iter().map(shown).collect()
}

const NOT_YET: &str = "it is not in this version";

fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.names.contains(&name))
}

impl Row {
    fn verdict(&self) -> String {
        match self.here {
            Here::Accepted(_, why) => format!("accepted and without effect: {why}"),
            Here::Refused(way) => format!("not there: {way}"),
            Here::Listed(difference) => {
                let name = self.names[0];
                match (FLAGS.iter().any(|flag| flag.long == name), difference) {
                    (true, "") => "the same".to_owned(),
                    (true, difference) => format!("the same, with a difference: {difference}"),
                    _ if ACCEPTED.contains(&name) => "accepted and without effect".to_owned(),
                    _ => format!("not there: {}", way(name).unwrap_or(NOT_YET)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flag_stands_twice_and_none_that_is_there_is_called_missing() {
        let names: Vec<&str> = ROWS.iter().flat_map(|row| row.names).copied().collect();
        for name in &names {
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "--{name} stands twice");
        }
        for row in ROWS.iter().filter(|row| !matches!(row.here, Here::Listed(_))) {
            for name in row.names {
                assert!(!FLAGS.iter().any(|flag| flag.long == *name), "--{name} is a flag: say listed");
                assert!(!ACCEPTED.contains(name), "--{name} is accepted: say listed");
                assert!(
                    !REFUSED.iter().any(|(refused, _)| refused == name),
                    "--{name} is refused: say listed"
                );
            }
        }
    }

    /// Flags that only cotter has are not told as those of `claude`, and all others are told.
    #[test]
    fn every_flag_that_both_have_is_a_row() {
        const OF_COTTER: &[&str] = &[
            "prompt-file",
            "no-stdin",
            "directory",
            "dry-run",
            "api",
            "base-url",
            "api-key-file",
            "header",
            "max-output-tokens",
            "temperature",
            "stop",
            "cacert",
            "idle-timeout",
            "max-retries",
            "text-tool-calls",
            "tool",
            "tool-dir",
            "list-tools",
            "sandbox",
            "allow-net",
            "pass-env",
            "output",
            "quiet",
            "record",
            "replay",
            "replay-strict",
            "single-step",
            "completions",
            "man",
            "price",
            "timeout",
            "max-tool-calls",
            "max-total-tokens",
            "context-window",
            "no-compaction",
        ];
        let flags = FLAGS.iter().map(|flag| flag.long);
        let others = REFUSED.iter().map(|(name, _)| *name);
        for name in flags.chain(others).chain(ACCEPTED.iter().copied()) {
            assert_ne!(row(name).is_some(), OF_COTTER.contains(&name), "--{name}");
        }
    }

    #[test]
    fn a_way_names_flags_that_there_are() {
        for (names, verdict) in table() {
            let text = verdict.replace(&names, "");
            for word in text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')) {
                let Some(name) = word.strip_prefix("--") else { continue };
                assert!(FLAGS.iter().any(|flag| flag.long == name), "{names}: {verdict}");
            }
        }
    }
}
