//! The one error type that ends a run, with its messages and exit codes.
//!
//! What the model can act on (a missing file, bad arguments, a command that failed) is never an
//! [`Error`]: it is a tool result, which the model reads and the run goes on.

use std::fmt;

/// The exit codes and their meanings, as README prints them.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "the model finished its answer"),
    (1, "internal or I/O failure of cotter itself (disk full, output or session not writable)"),
    (2, "usage: bad flag, bad value, missing prompt, unreadable prompt file, unknown or busy session"),
    (3, "credentials: no key, or 401/403"),
    (4, "the API refused the request (other 4xx, context too long)"),
    (5, "the API stayed overloaded or rate-limited after all retries (408, 409, 425, 429, 5xx, 529)"),
    (6, "network: DNS, connect, TLS, stalled or broken stream after all retries"),
    (7, "malformed reply: what came back is not the protocol (a redirect too: none is followed)"),
    (
        8,
        "the answer is incomplete: cut at the token limit, refused, filtered, empty after one nudge, or not as `--json-schema` has it",
    ),
    (9, "replay mismatch: a request differs from the recording, or the recording has no more replies"),
    (10, "containment of the tools unavailable on this system and not switched off"),
    (11, "permission: a call was denied in `--permission-mode dontAsk`"),
    (20, "`--max-turns` was reached"),
    (21, "`--max-tool-calls` was reached"),
    (22, "`--max-total-tokens` was reached"),
    (23, "`--max-budget-usd` was reached, or a cost that counts towards it is not known"),
    (24, "`--timeout` was reached"),
];

/// Why a run ended without a finished answer. Each variant holds the text shown after `cotter: `.
#[derive(Debug)]
pub enum Error {
    /// cotter itself failed: disk full, output not writable, no process could be started.
    Internal(String),
    /// The command line or the prompt cannot be used.
    Usage(String),
    /// There is no key, or the API does not accept it (401, 403).
    Credentials(String),
    /// The API refused the request for good (other 4xx).
    Refused(String),
    /// The API stayed overloaded or rate-limited after all retries.
    Overloaded(String),
    /// The connection could not be made, broke or stalled after all retries.
    Network(String),
    /// What came back is not the protocol.
    Malformed(String),
    /// The model's answer is incomplete: cut, refused, filtered or empty.
    Incomplete(String),
    /// The answer did not come to fit `--json-schema`.
    Unfit(String),
    /// A request differs from the recording, or the recording has ended.
    Replay(String),
    /// Tools cannot be contained on this system; nothing has run.
    Containment(String),
    /// A call was denied where that ends the run.
    Permission(String),
    /// `--max-turns` was reached before the answer was finished.
    Turns(String),
    /// A call would have been more than `--max-tool-calls` allows.
    ToolCalls(String),
    /// `--max-total-tokens` was reached.
    Tokens(String),
    /// `--max-budget-usd` was reached, or what was spent of it is not known.
    Cost(String),
    /// `--timeout` was reached.
    Time(String),
    /// The client did not want the turn to go on; what was there before holds.
    Interrupted(String),
    /// The reader of standard output went away; the flag says whether the answer was complete.
    ClosedOutput {
        /// True if the whole answer existed when the reader left: a quiet success.
        answered: bool,
    },
}

impl Error {
    /// The same for `cotter sandbox`, which has no tools to do without.
    pub fn uncontained_command(missing: &str) -> Error {
        Error::Containment(format!(
            "the command cannot be contained here: {missing}: pass --sandbox off inside a container that you trust"
        ))
    }

    /// The error for a system that cannot contain tools: what is missing, and the ways out.
    pub fn uncontained(missing: &str) -> Error {
        Error::Containment(format!(
            "tools cannot be contained here: {missing}: pass --tools Read to do without those that write or run \
             something, or --sandbox off inside a container that you trust"
        ))
    }

    /// The process's exit status for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Internal(_) | Error::Interrupted(_) => 1,
            Error::Usage(_) => 2,
            Error::Credentials(_) => 3,
            Error::Refused(_) => 4,
            Error::Overloaded(_) => 5,
            Error::Network(_) => 6,
            Error::Malformed(_) => 7,
            Error::Incomplete(_) | Error::Unfit(_) => 8,
            Error::Replay(_) => 9,
            Error::Containment(_) => 10,
            Error::Permission(_) => 11,
            Error::Turns(_) => 20,
            Error::ToolCalls(_) => 21,
            Error::Tokens(_) => 22,
            Error::Cost(_) => 23,
            Error::Time(_) => 24,
            Error::ClosedOutput { answered } => u8::from(!answered),
        }
    }

    /// One word for programs, in the JSON result's `error.class`.
    pub fn class(&self) -> &'static str {
        match self {
            Error::Internal(_) => "internal",
            Error::Usage(_) => "usage",
            Error::Credentials(_) => "credentials",
            Error::Refused(_) => "refused",
            Error::Overloaded(_) => "overloaded",
            Error::Network(_) => "network",
            Error::Malformed(_) => "malformed",
            Error::Incomplete(_) => "incomplete",
            Error::Unfit(_) => "structured_output",
            Error::Replay(_) => "replay",
            Error::Containment(_) => "containment",
            Error::Permission(_) => "permission",
            Error::Turns(_) => "max_turns",
            Error::ToolCalls(_) => "max_tool_calls",
            Error::Tokens(_) => "max_total_tokens",
            Error::Cost(_) => "max_budget_usd",
            Error::Time(_) => "timeout",
            Error::Interrupted(_) => "interrupted",
            Error::ClosedOutput { .. } => "closed_output",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Internal(text)
            | Error::Usage(text)
            | Error::Credentials(text)
            | Error::Refused(text)
            | Error::Overloaded(text)
            | Error::Network(text)
            | Error::Malformed(text)
            | Error::Incomplete(text)
            | Error::Unfit(text)
            | Error::Replay(text)
            | Error::Containment(text)
            | Error::Permission(text)
            | Error::Turns(text)
            | Error::Interrupted(text)
            | Error::ToolCalls(text)
            | Error::Tokens(text)
            | Error::Cost(text)
            | Error::Time(text) => formatter.write_str(text),
            Error::ClosedOutput { .. } => formatter.write_str("the reader of standard output has gone"),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_class() {
        let text = String::new;
        let errors = [
            Error::Internal(text()),
            Error::Usage(text()),
            Error::Credentials(text()),
            Error::Refused(text()),
            Error::Overloaded(text()),
            Error::Network(text()),
            Error::Malformed(text()),
            Error::Incomplete(text()),
            Error::Unfit(text()),
            Error::Replay(text()),
            Error::Containment(text()),
            Error::Permission(text()),
            Error::Turns(text()),
            Error::ToolCalls(text()),
            Error::Tokens(text()),
            Error::Cost(text()),
            Error::Time(text()),
            Error::Interrupted(text()),
        ];
        let manual = include_str!("../README.md");
        let (_, rest) = manual.split_once("The `class` of an error").unwrap();
        let (list, _) = rest.split_once("\n\n").unwrap();
        for error in errors {
            assert!(list.contains(&format!("`{}`", error.class())), "{}", error.class());
        }
    }
}
