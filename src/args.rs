//! What was typed. Below it are the table of flags, the parser, and the texts made from the table. Nothing here
//! decides about meaning; that is `config.rs`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::checkout::Sources;
use crate::cost::{Cost, Price};
use crate::error::Error;
use crate::provider::thinking;
use crate::sandbox::{permissions, policy};
use crate::session::Source;
use crate::tools::executables;

mod claude;
mod completions;
mod flags;
mod manual;
mod parser;

pub use parser::{output_format, parse};

/// What was typed.
#[derive(Debug, Default, Clone)]
pub struct Args {
    /// The positional prompt, without a `-` that stood for standard input.
    pub prompt: Option<String>,
    /// A `-` as or after the prompt: standard input is read whatever it is.
    pub force_stdin: bool,
    /// `-f`.
    pub prompt_file: Option<PathBuf>,
    /// `-p`.
    pub print: bool,
    /// `--input-format`.
    pub input_format: InputFormat,
    /// `--replay-user-messages`.
    pub replay_user_messages: bool,
    /// `-n`.
    pub no_stdin: bool,
    /// `--system-prompt`.
    pub system_prompt: Option<String>,
    /// `--system-prompt-file`.
    pub system_prompt_file: Option<PathBuf>,
    /// `--append-system-prompt`.
    pub append_system_prompt: Option<String>,
    /// `--append-system-prompt-file`.
    pub append_system_prompt_file: Option<PathBuf>,
    /// `--bare`.
    pub bare: bool,
    /// `--setting-sources`.
    pub setting_sources: Option<Sources>,
    /// `--disable-slash-commands`.
    pub no_skills: bool,
    /// `-C`.
    pub directory: Option<PathBuf>,
    /// `--dry-run`.
    pub dry_run: bool,
    /// `--model`.
    pub model: Option<String>,
    /// `--api`.
    pub api: Option<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--api-key-file`.
    pub api_key_file: Option<PathBuf>,
    /// `--betas`, in order.
    pub betas: Vec<String>,
    /// `--header`, in order.
    pub headers: Vec<String>,
    /// `--max-output-tokens`.
    pub max_output_tokens: Option<u32>,
    /// `--temperature`.
    pub temperature: Option<f64>,
    /// `--stop`, in order.
    pub stop: Vec<String>,
    /// `--effort`.
    pub effort: Option<String>,
    /// `--thinking` and `--max-thinking-tokens`, whichever came last.
    pub thinking: Option<thinking::Mode>,
    /// `--thinking-display`.
    pub thinking_display: Option<String>,
    /// `--fallback-model`, in order.
    pub fallback_models: Vec<String>,
    /// `--cacert`.
    pub cacert: Option<PathBuf>,
    /// `--idle-timeout`, in seconds.
    pub idle_timeout_secs: Option<u32>,
    /// `--max-retries`.
    pub max_retries: Option<u32>,
    /// `--text-tool-calls`.
    pub text_tool_calls: Option<bool>,
    /// `--tools`.
    pub tools: Option<String>,
    /// `--tool` and `--tool-dir`, in order.
    pub executables: Vec<executables::Source>,
    /// `--allowedTools`: the lists of rules, in order; absent where the flag is.
    pub allowed_tools: Option<Vec<String>>,
    /// `--disallowedTools`: the lists of rules, in order.
    pub disallowed_tools: Vec<String>,
    /// `--permission-mode`.
    pub permission_mode: Option<permissions::Mode>,
    /// `--dangerously-skip-permissions`.
    pub skip_permissions: bool,
    /// `--permission-prompt-tool stdio`.
    pub asks_client: bool,
    /// `--list-tools`.
    pub list_tools: bool,
    /// `--sandbox`.
    pub sandbox: Option<policy::Mode>,
    /// `--allow-net`.
    pub allow_net: bool,
    /// `--add-dir`, in order.
    pub add_dirs: Vec<PathBuf>,
    /// `--pass-env`, in order.
    pub pass_env: Vec<String>,
    /// `-o`.
    pub output: Option<PathBuf>,
    /// `--output-format`.
    pub output_format: OutputFormat,
    /// `--json-schema`: the schema, or `@` and the name of its file.
    pub json_schema: Option<OsString>,
    /// `--include-partial-messages`.
    pub partial_messages: bool,
    /// `--verbose`.
    pub verbose: bool,
    /// `-q`.
    pub quiet: bool,
    /// `--max-turns`.
    pub max_turns: Option<u32>,
    /// `--max-tool-calls`.
    pub max_tool_calls: Option<u32>,
    /// `--max-total-tokens`.
    pub max_total_tokens: Option<u64>,
    /// `--context-window`.
    pub context_window: Option<u64>,
    /// `--no-compaction`.
    pub no_compaction: bool,
    /// `--max-budget-usd`.
    pub max_budget_usd: Option<Cost>,
    /// `--timeout`.
    pub timeout: Option<Duration>,
    /// `--price`.
    pub price: Option<Price>,
    /// `--record`.
    pub record: Option<PathBuf>,
    /// `--replay`.
    pub replay: Option<PathBuf>,
    /// `--replay-strict`.
    pub replay_strict: bool,
    /// `--single-step`.
    pub single_step: bool,
    /// `-c` and `-r`.
    pub source: Source,
    /// `--session-id`.
    pub session_id: Option<String>,
    /// `--fork-session`.
    pub fork_session: bool,
    /// `--no-session-persistence`.
    pub no_session: bool,
    /// Flags of `claude` that were accepted and mean nothing here.
    pub ignored: Vec<String>,
}

/// The form of standard input.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Text of the prompt.
    #[default]
    Text,
    /// A client's letters as JSON lines.
    StreamJson,
}

/// The form of standard output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// The answer's text.
    #[default]
    Text,
    /// One JSON object at the end.
    Json,
    /// JSON lines, the last of them the same object.
    StreamJson,
}

impl OutputFormat {
    fn named(name: &str) -> Option<OutputFormat> {
        match name {
            "text" => Some(OutputFormat::Text),
            "json" => Some(OutputFormat::Json),
            "stream-json" => Some(OutputFormat::StreamJson),
            _ => None,
        }
    }
}

/// What the command line asks for.
pub enum Command {
    /// A run.
    Run(Box<Args>),
    /// A text that is printed, and nothing else.
    Print(String),
    /// `cotter sandbox`: a command, with the flags that contain it.
    Sandbox(Box<Args>, Vec<OsString>),
}

impl Args {
    /// Whether the flags go together.
    ///
    /// # Errors
    ///
    /// `Error::Usage` names those that do not.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::Usage(why.to_owned()));
        if self.replay_strict && self.replay.is_none() {
            return refuse("--replay-strict needs --replay DIR");
        }
        if self.record.is_some() && self.replay.is_some() {
            return refuse("--record and --replay exclude each other: record a live run");
        }
        if self.partial_messages && self.output_format != OutputFormat::StreamJson {
            return refuse("--include-partial-messages needs --output-format stream-json");
        }
        if self.session_id.is_some() && self.source != Source::New && !self.fork_session {
            return refuse(
                "--session-id names a new session: with --continue or --resume it needs --fork-session",
            );
        }
        match self.input_format {
            InputFormat::StreamJson => self.check_with_client()?,
            InputFormat::Text if self.asks_client => {
                return refuse("--permission-prompt-tool stdio needs --input-format stream-json");
            }
            InputFormat::Text if self.replay_user_messages => {
                return refuse("--replay-user-messages needs --input-format stream-json");
            }
            InputFormat::Text => {}
        }
        if self.single_step && (self.output.is_some() || self.output_format != OutputFormat::Text) {
            return refuse(
                "--single-step writes raw results to stdout: it goes with neither -o nor --output-format",
            );
        }
        if self.single_step && self.json_schema.is_some() {
            return refuse(
                "--single-step and --json-schema exclude each other: one step gives no final answer",
            );
        }
        Ok(())
    }

    /// What `--verbose` tells of flags that change nothing.
    pub fn without_effect(&self) -> Vec<String> {
        let changes_nothing = |flag: &String| format!("{flag} is accepted and changes nothing here");
        let mut lines: Vec<String> = self.ignored.iter().map(changes_nothing).collect();
        if self.fork_session && self.source == Source::New {
            lines.push("--fork-session changes nothing without -c or -r".to_owned());
        }
        lines
    }

    /// Whether the flags go with messages on standard input.
    fn check_with_client(&self) -> Result<(), Error> {
        let with = |flag: &str| format!("--input-format stream-json does not go with {flag}");
        let typed = self.prompt.as_ref().is_some_and(|prompt| !prompt.trim().is_empty());
        let why = if self.output_format != OutputFormat::StreamJson {
            "--input-format stream-json needs --output-format stream-json".to_owned()
        } else if typed || self.prompt_file.is_some() {
            "with --input-format stream-json the prompt comes on standard input: send it as a message"
                .to_owned()
        } else if self.single_step {
            with("--single-step")
        } else if self.dry_run {
            with("--dry-run")
        } else if self.output.is_some() {
            with("-o")
        } else if self.no_stdin {
            with("-n")
        } else {
            return Ok(());
        };
        Err(Error::Usage(why))
    }
}
