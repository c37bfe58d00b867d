//! What was typed: the table of flags, the parser, and the texts made from the table (help, man page,
//! completions). It decides nothing about meaning; that is `config.rs`.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::Error;
use crate::sandbox::{permissions, policy, rules};
use crate::tools::executables;
use crate::tools::nearest::distance;

/// One flag, as the parser, the help, the man page and the completions know it.
struct Flag {
    /// The heading it stands under.
    group: &'static str,
    /// Its letters, each with one dash; empty for none.
    short: &'static str,
    /// Its name with two dashes.
    long: &'static str,
    /// What its value is called; empty for a switch.
    value: &'static str,
    /// What it does.
    help: &'static str,
}

const fn flag(
    group: &'static str,
    short: &'static str,
    long: &'static str,
    value: &'static str,
    help: &'static str,
) -> Flag {
    Flag { group, short, long, value, help }
}

/// Every flag there is.
const FLAGS: &[Flag] = &[
    flag("Prompt", "p", "print", "", "answer once and exit, which this version always does"),
    flag("Prompt", "f", "prompt-file", "FILE", "read the prompt from FILE; a first line `#!…` is skipped"),
    flag("Prompt", "n", "no-stdin", "", "do not read standard input"),
    flag("Prompt", "", "system-prompt", "TEXT", "use TEXT in place of the built-in system prompt"),
    flag("Prompt", "", "system-prompt-file", "FILE", "the same, from FILE"),
    flag("Prompt", "", "append-system-prompt", "TEXT", "add TEXT to the system prompt"),
    flag("Prompt", "", "append-system-prompt-file", "FILE", "the same, from FILE"),
    flag("Prompt", "C", "directory", "DIR", "run in DIR"),
    flag("Prompt", "", "dry-run", "", "print the first request's body and stop"),
    flag("Model", "", "model", "NAME", "which model to ask (else COTTER_MODEL, else the API's default)"),
    flag("Model", "", "api", "NAME", "which protocol to speak: openai or anthropic"),
    flag(
        "Model",
        "",
        "base-url",
        "URL",
        "where the API is, up to but without /chat/completions or /v1/messages",
    ),
    flag("Model", "", "api-key-file", "FILE", "read the key from FILE"),
    flag("Model", "", "header", "'NAME: VALUE'", "send this header with every request (repeatable)"),
    flag("Model", "", "max-output-tokens", "N", "limit each reply to N tokens"),
    flag("Model", "", "temperature", "X", "sampling temperature, 0 to 2 (else the model's own)"),
    flag("Model", "", "stop", "TEXT", "end a reply at TEXT (repeatable, at most 4)"),
    flag("Model", "", "cacert", "FILE", "trust the certificates in FILE (PEM) in place of the built-in ones"),
    flag(
        "Model",
        "",
        "idle-timeout",
        "SECS",
        "give up a connection silent for SECS (default 120; 600 on loopback)",
    ),
    flag(
        "Model",
        "",
        "max-retries",
        "N",
        "ask again at most N times after overload or a broken connection (4)",
    ),
    flag(
        "Model",
        "",
        "text-tool-calls",
        "WHEN",
        "run calls printed as text: on or off (default: on only on loopback)",
    ),
    flag("Tools", "", "tools", "LIST", "which tools the model has: names, \"\" for none, default for all"),
    flag(
        "Tools",
        "",
        "tool",
        "FILE",
        "let the model run this program, described by FILE.json or FILE --schema",
    ),
    flag("Tools", "", "tool-dir", "DIR", "the same for each program in DIR"),
    flag(
        "Tools",
        "",
        "allowedTools",
        "RULES",
        "write and run by these alone: \"Edit(src/**),Bash(git log:*)\"",
    ),
    flag("Tools", "", "disallowedTools", "RULES", "forbid these calls; a tool's name alone takes it away"),
    flag("Tools", "", "list-tools", "", "print the tools and their schemas as JSON lines"),
    flag(
        "Containment",
        "",
        "sandbox",
        "MODE",
        "where tools write: workspace-write (default), read-only, or off",
    ),
    flag("Containment", "", "allow-net", "", "let tools use the network"),
    flag(
        "Containment",
        "",
        "add-dir",
        "DIR",
        "let tools write in DIR too (repeatable; `.` means the current folder)",
    ),
    flag(
        "Containment",
        "",
        "pass-env",
        "NAME",
        "pass NAME to tools though it looks like a credential (repeatable)",
    ),
    flag(
        "Containment",
        "",
        "permission-mode",
        "MODE",
        "default, acceptEdits, plan (change nothing), dontAsk, bypassPermissions",
    ),
    flag(
        "Containment",
        "",
        "dangerously-skip-permissions",
        "",
        "allow all calls, with no sandbox unless --sandbox is given",
    ),
    flag("Output", "o", "output", "FILE", "write the answer to FILE, complete or not at all"),
    flag("Output", "", "output-format", "FORMAT", "text, json, or stream-json"),
    flag("Output", "", "verbose", "", "one line on stderr for each request and each call"),
    flag("Output", "q", "quiet", "", "nothing on stderr but errors and the wait for standard input"),
    flag("Limits", "", "max-turns", "N", "end with code 20 rather than ask the model an N+1st time"),
    flag("Recording", "", "record", "DIR", "write every exchange with the API to DIR"),
    flag("Recording", "", "replay", "DIR", "answer requests from DIR, offline and without a key"),
    flag(
        "Recording",
        "",
        "replay-strict",
        "",
        "with --replay: the whole request must equal the recorded one",
    ),
    flag(
        "Other",
        "",
        "single-step",
        "",
        "one request; run the first call it asks for and print its raw result",
    ),
    flag("Other", "", "no-session-persistence", "", "do not keep the conversation in a session file"),
    flag("Other", "", "completions", "SHELL", "print completions for bash, zsh or fish"),
    flag("Other", "", "man", "", "print the manual page (try: cotter --man | man -l -)"),
    flag("Other", "h", "help", "", "print this help"),
    flag("Other", "vV", "version", "", "print the version"),
];

/// Flags of `claude` that cannot change what was asked for here: accepted, and named by `--verbose`.
const ACCEPTED: &[&str] = &["bare", "disable-slash-commands", "ide", "no-chrome", "strict-mcp-config"];

/// Other spellings of flags.
const SPELLINGS: &[(&str, &str)] =
    &[("allowed-tools", "allowedTools"), ("disallowed-tools", "disallowedTools")];

/// Flags that would change what was asked for and are not there: refused, with the nearest way.
const REFUSED: &[(&str, &str)] = &[
    ("agent", "put the agent's instructions into --append-system-prompt-file"),
    ("agents", "put the agent's instructions into --append-system-prompt-file"),
    ("context-window", NOT_YET),
    ("continue", NOT_YET),
    ("effort", NOT_YET),
    ("fallback-model", NOT_YET),
    ("fork-session", NOT_YET),
    ("include-partial-messages", NOT_YET),
    ("input-format", "the prompt is text, from the argument, -f or standard input"),
    ("json-schema", NOT_YET),
    ("max-budget-usd", NOT_YET),
    ("max-tool-calls", "limit the run with --max-turns"),
    ("max-total-tokens", "limit the run with --max-turns"),
    ("mcp-config", NOT_YET),
    ("no-compaction", NOT_YET),
    ("plugin-dir", "there are no plugins"),
    ("price", NOT_YET),
    ("resume", NOT_YET),
    ("session-id", NOT_YET),
    ("setting-sources", "no settings files are read"),
    ("settings", "no settings files are read; put flags into the file named by COTTER_CONFIG"),
    ("timeout", "run cotter under timeout(1)"),
];

const NOT_YET: &str = "it is not in this version";

/// What was typed.
#[derive(Debug, Default, Clone)]
pub struct Args {
    /// The positional prompt, without a `-` that stood for standard input.
    pub prompt: Option<String>,
    /// A `-` as or after the prompt: standard input is read whatever it is.
    pub force_stdin: bool,
    /// `-f`.
    pub prompt_file: Option<PathBuf>,
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
    /// `--header`, in order.
    pub headers: Vec<String>,
    /// `--max-output-tokens`.
    pub max_output_tokens: Option<u32>,
    /// `--temperature`.
    pub temperature: Option<f64>,
    /// `--stop`, in order.
    pub stop: Vec<String>,
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
    pub permission_mode: permissions::Mode,
    /// `--dangerously-skip-permissions`.
    pub skip_permissions: bool,
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
    /// `--verbose`.
    pub verbose: bool,
    /// `-q`.
    pub quiet: bool,
    /// `--max-turns`.
    pub max_turns: Option<u32>,
    /// `--record`.
    pub record: Option<PathBuf>,
    /// `--replay`.
    pub replay: Option<PathBuf>,
    /// `--replay-strict`.
    pub replay_strict: bool,
    /// `--single-step`.
    pub single_step: bool,
    /// `--no-session-persistence`.
    pub no_session: bool,
    /// Flags of `claude` that were accepted and mean nothing here.
    pub without_effect: Vec<String>,
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

/// Parses the arguments that follow the program's name; what they do not say is as in `args`.
///
/// # Errors
///
/// `Error::Usage` names the flag or value and, for a mistyped flag, the nearest real one.
pub fn parse(mut arguments: Vec<OsString>, mut args: Args) -> Result<Command, Error> {
    // Only as the first word: `cotter -p sandbox` asks the model.
    if arguments.first().is_some_and(|word| word == SUBCOMMAND) {
        arguments.remove(0);
        return parse_sandbox(arguments, args);
    }
    let mut parser = lexopt::Parser::from_args(arguments);
    // The flag whose list of rules the next argument may go on with.
    let mut open_list: Option<&Flag> = None;
    loop {
        // What stands behind `--` is no rule.
        if parser.try_raw_args().is_some_and(|left| left.peek().is_some_and(|next| next == "--")) {
            open_list = None;
        }
        let Some(argument) = parser.next().map_err(|error| misused(&error))? else { break };
        let found = match &argument {
            lexopt::Arg::Short(letter) => FLAGS.iter().find(|flag| flag.short.contains(*letter)),
            lexopt::Arg::Long(name) => FLAGS.iter().find(|flag| flag.long == main_spelling(name)),
            lexopt::Arg::Value(value) => {
                let rules = value.to_str().filter(|text| rules::continues_list(text));
                if let (Some(flag), Some(_)) = (open_list, rules) {
                    take(&mut args, flag, value.clone())?;
                    continue;
                }
                open_list = None;
                positional(&mut args, value.clone())?;
                continue;
            }
        };
        let Some(flag) = found else {
            let name = match argument {
                lexopt::Arg::Long(name) => name.to_owned(),
                lexopt::Arg::Short(letter) => return Err(unknown_letter(letter)),
                lexopt::Arg::Value(_) => unreachable!("handled above"),
            };
            if !ACCEPTED.contains(&name.as_str()) {
                return Err(unknown(&name));
            }
            args.without_effect.push(format!("--{name}"));
            continue;
        };
        let value = match flag.value {
            "" => OsString::new(),
            kind => {
                parser.value().map_err(|_| Error::Usage(format!("--{} needs a value: {kind}", flag.long)))?
            }
        };
        open_list = (flag.value == "RULES").then_some(flag);
        if let Some(text) = take(&mut args, flag, value)? {
            return Ok(Command::Print(text));
        }
    }
    Ok(Command::Run(Box::new(args)))
}

fn main_spelling(name: &str) -> &str {
    SPELLINGS.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name)
}

/// The first argument that makes the rest a command to contain.
const SUBCOMMAND: &str = "sandbox";

/// The flags of `cotter sandbox`.
const SANDBOX_FLAGS: [&str; 6] = ["sandbox", "allow-net", "add-dir", "pass-env", "directory", "help"];

/// Parses what follows `cotter sandbox`: flags until the first word that is none, or `--`; the rest is the
/// command.
fn parse_sandbox(arguments: Vec<OsString>, mut args: Args) -> Result<Command, Error> {
    let unknown =
        |name: &str| Error::Usage(format!("cotter sandbox has no flag {name}: see cotter sandbox --help"));
    let known = |flag: &&Flag| SANDBOX_FLAGS.contains(&flag.long);
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next().map_err(|error| misused(&error))? {
        let flag = match argument {
            lexopt::Arg::Value(program) => {
                let rest = parser.raw_args().map_err(|error| misused(&error))?;
                return Ok(Command::Sandbox(Box::new(args), std::iter::once(program).chain(rest).collect()));
            }
            lexopt::Arg::Long(name) => FLAGS
                .iter()
                .filter(known)
                .find(|flag| flag.long == name)
                .ok_or_else(|| unknown(&format!("--{name}")))?,
            lexopt::Arg::Short(letter) => FLAGS
                .iter()
                .filter(known)
                .find(|flag| flag.short.contains(letter))
                .ok_or_else(|| unknown(&format!("-{letter}")))?,
        };
        if flag.long == "help" {
            return Ok(Command::Print(sandbox_help()));
        }
        let value = match flag.value {
            "" => OsString::new(),
            kind => {
                parser.value().map_err(|_| Error::Usage(format!("--{} needs a value: {kind}", flag.long)))?
            }
        };
        take(&mut args, flag, value)?;
    }
    Err(Error::Usage(
        "cotter sandbox needs a command, as in: cotter sandbox -- make test; to ask the model, say cotter -p sandbox"
            .to_owned(),
    ))
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
        if self.single_step && (self.output.is_some() || self.output_format != OutputFormat::Text) {
            return refuse(
                "--single-step writes raw results to stdout: it goes with neither -o nor --output-format",
            );
        }
        Ok(())
    }
}

/// What lexopt says of a switch with a value is not how people think of it.
fn misused(error: &lexopt::Error) -> Error {
    match error {
        lexopt::Error::UnexpectedValue { option, .. } => {
            Error::Usage(format!("{option} takes no value: the prompt is an argument of its own"))
        }
        other => Error::Usage(other.to_string()),
    }
}

/// The output format that a command line asks for, for the report on one that is refused: whoever reads
/// JSON gets JSON then too.
pub fn output_format(arguments: &[OsString]) -> Option<OutputFormat> {
    let mut format = None;
    let mut words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--output-format") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        format = value.and_then(OutputFormat::named).or(format);
    }
    format
}

/// Stores one flag's value. Gives back the text to print for the flags that print and end.
fn take(args: &mut Args, flag: &Flag, value: OsString) -> Result<Option<String>, Error> {
    let path = || PathBuf::from(&value);
    match flag.long {
        // There is no other way to run yet.
        "print" => {}
        "prompt-file" if value == "-" => args.force_stdin = true,
        "prompt-file" => args.prompt_file = Some(path()),
        "no-stdin" => args.no_stdin = true,
        "system-prompt" => args.system_prompt = Some(text(flag, &value)?),
        "system-prompt-file" => args.system_prompt_file = Some(path()),
        "append-system-prompt" => args.append_system_prompt = Some(text(flag, &value)?),
        "append-system-prompt-file" => args.append_system_prompt_file = Some(path()),
        "directory" => args.directory = Some(path()),
        "dry-run" => args.dry_run = true,
        "model" => args.model = Some(filled(flag, &value)?),
        "api" => args.api = Some(one_of(flag, &value, &["openai", "anthropic"])?),
        "base-url" => args.base_url = Some(filled(flag, &value)?),
        "api-key-file" => args.api_key_file = Some(path()),
        "header" => args.headers.push(text(flag, &value)?),
        "max-output-tokens" => args.max_output_tokens = Some(count(flag, &value, 1)?),
        "temperature" => args.temperature = Some(temperature(flag, &value)?),
        "stop" if args.stop.len() == 4 => {
            return Err(Error::Usage("--stop can be given at most 4 times".to_owned()));
        }
        "stop" => args.stop.push(filled(flag, &value)?),
        "cacert" => args.cacert = Some(path()),
        "idle-timeout" => args.idle_timeout_secs = Some(count(flag, &value, 1)?),
        "max-retries" => args.max_retries = Some(count(flag, &value, 0)?),
        "text-tool-calls" => {
            args.text_tool_calls = Some(one_of(flag, &value, &["on", "off"])? == "on");
        }
        "tools" => args.tools = Some(text(flag, &value)?),
        "tool" => args.executables.push(executables::Source::File(path())),
        "tool-dir" => args.executables.push(executables::Source::Folder(path())),
        "allowedTools" => args.allowed_tools.get_or_insert_default().push(text(flag, &value)?),
        "disallowedTools" => args.disallowed_tools.push(text(flag, &value)?),
        "permission-mode" => {
            let names: Vec<&str> = permissions::MODES.iter().map(|(name, _)| *name).collect();
            let name = one_of(flag, &value, &names)?;
            args.permission_mode =
                permissions::MODES.iter().find(|(known, _)| *known == name).expect("it is one of these").1;
        }
        "dangerously-skip-permissions" => args.skip_permissions = true,
        "list-tools" => args.list_tools = true,
        "sandbox" => {
            let name = one_of(flag, &value, &policy::Mode::NAMES)?;
            args.sandbox = Some(policy::Mode::named(&name).expect("it is one of these"));
        }
        "allow-net" => args.allow_net = true,
        "add-dir" => args.add_dirs.push(path()),
        "pass-env" => args.pass_env.push(filled(flag, &value)?),
        "output" => args.output = if value == "-" { None } else { Some(path()) },
        "output-format" => {
            let name = one_of(flag, &value, &["text", "json", "stream-json"])?;
            args.output_format = OutputFormat::named(&name).expect("it is one of these");
        }
        // The last one said holds, so that a flag typed overrides one in the file of defaults.
        "verbose" => (args.verbose, args.quiet) = (true, false),
        "quiet" => (args.verbose, args.quiet) = (false, true),
        "max-turns" => args.max_turns = Some(count(flag, &value, 1)?),
        "record" => args.record = Some(path()),
        "replay" => args.replay = Some(path()),
        "replay-strict" => args.replay_strict = true,
        "single-step" => args.single_step = true,
        "no-session-persistence" => args.no_session = true,
        "completions" => {
            let shell = one_of(flag, &value, &["bash", "zsh", "fish"])?;
            return Ok(Some(completions(&shell)));
        }
        "man" => return Ok(Some(man_page())),
        "help" => return Ok(Some(help())),
        "version" => return Ok(Some(format!("cotter {}\n", env!("CARGO_PKG_VERSION")))),
        name => unreachable!("the table has a flag that the parser does not know: --{name}"),
    }
    Ok(None)
}

fn positional(args: &mut Args, value: OsString) -> Result<(), Error> {
    if value == "-" && !args.force_stdin {
        args.force_stdin = true;
        return Ok(());
    }
    let text = value.into_string().map_err(|_| {
        Error::Usage("the prompt is not UTF-8: put it into a file and pass -f FILE".to_owned())
    })?;
    if let Some(prompt) = &args.prompt {
        return Err(Error::Usage(format!(
            "unexpected argument \"{}\" after the prompt \"{}\": quote the prompt as one argument",
            shortened(&text),
            shortened(prompt)
        )));
    }
    args.prompt = Some(text);
    Ok(())
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(40).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn text(flag: &Flag, value: &OsString) -> Result<String, Error> {
    value
        .clone()
        .into_string()
        .map_err(|_| Error::Usage(format!("the value of --{} is not UTF-8", flag.long)))
}

fn filled(flag: &Flag, value: &OsString) -> Result<String, Error> {
    let text = text(flag, value)?;
    if text.is_empty() {
        return Err(Error::Usage(format!("--{} needs a value that is not empty", flag.long)));
    }
    Ok(text)
}

fn one_of(flag: &Flag, value: &OsString, allowed: &[&str]) -> Result<String, Error> {
    let text = text(flag, value)?;
    if !allowed.contains(&text.as_str()) {
        return Err(Error::Usage(format!(
            "--{} is one of {}, not \"{text}\"",
            flag.long,
            allowed.join(", ")
        )));
    }
    Ok(text)
}

fn count(flag: &Flag, value: &OsString, least: u32) -> Result<u32, Error> {
    let text = text(flag, value)?;
    match text.parse::<u32>() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(Error::Usage(format!("--{} is a whole number from {least}, not \"{text}\"", flag.long))),
    }
}

fn temperature(flag: &Flag, value: &OsString) -> Result<f64, Error> {
    let text = text(flag, value)?;
    match text.parse::<f64>() {
        Ok(number) if (0.0..=2.0).contains(&number) => Ok(number),
        _ => Err(Error::Usage(format!("--{} is a number from 0 to 2, not \"{text}\"", flag.long))),
    }
}

fn unknown_letter(letter: char) -> Error {
    match letter {
        'c' => unknown("continue"),
        'r' => unknown("resume"),
        letter if letter.is_alphanumeric() => {
            Error::Usage(format!("there is no flag -{letter}: see cotter --help"))
        }
        _ => Error::Usage(
            "a prompt that begins with a dash goes after --, as in: cotter -p -- \"- one\"".to_owned(),
        ),
    }
}

fn unknown(name: &str) -> Error {
    if let Some((_, way)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Error::Usage(format!("--{name} is not supported: {way}"));
    }
    let nearest = FLAGS.iter().map(|flag| (distance(name, flag.long), flag.long)).min();
    match nearest {
        Some((distance, long)) if distance <= 1 + long.len() / 4 => {
            Error::Usage(format!("there is no flag --{name}: did you mean --{long}?"))
        }
        _ => Error::Usage(format!("there is no flag --{name}: see cotter --help")),
    }
}

/// The groups in the order of the table.
fn groups() -> Vec<&'static str> {
    let mut groups: Vec<&str> = FLAGS.iter().map(|flag| flag.group).collect();
    groups.dedup();
    groups
}

impl Flag {
    /// All spellings with the value, as help and manual show them: `-o, --output FILE`.
    fn spellings(&self) -> String {
        let spellings = dashed(self).join(", ");
        if self.value.is_empty() { spellings } else { format!("{spellings} {}", self.value) }
    }
}

const SUMMARY: &str = "A coding agent for the shell: it lets a language model read, write, edit and run things until the work is
done, and prints the answer. The answer goes to stdout, everything else to stderr; the exit code says how
the run ended.";

const EXAMPLES: &str = "  cotter -p \"What does main.rs do?\"
  git diff | cotter -p \"Write a commit message for this\" --tools \"\"
  cotter -p \"Make the tests pass\" --max-turns 30 -o report.md";

/// The text of `--help`.
fn help() -> String {
    let mut help = format!(
        "{SUMMARY}\n\nUsage: cotter [OPTIONS] [PROMPT]\n       cotter sandbox [OPTIONS] [--] CMD [ARG...]\n\nExamples:\n{EXAMPLES}\n"
    );
    for group in groups() {
        help.push_str(&format!("\n{group}:\n"));
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            help.push_str(&help_line(flag));
        }
    }
    help.push_str(
        "\nKeys: OPENROUTER_API_KEY, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY; a server of your own\n\
         needs only --base-url. COTTER_CONFIG names a file of default flags, one argument a line.\n\
         The manual, with the exit codes: cotter --man | man -l -\n",
    );
    help
}

fn help_line(flag: &Flag) -> String {
    let indent = if flag.short.is_empty() { "      " } else { "  " };
    let left = format!("{indent}{}", flag.spellings());
    match left.len() < 34 {
        true => format!("{left:<34}{}\n", flag.help),
        false => format!("{left}\n{:<34}{}\n", "", flag.help),
    }
}

const SANDBOX_SUMMARY: &str = "Runs CMD in the containment that tools get: it writes only in the current folder, in the folders added and in
a temporary folder of its own (TMPDIR), reaches no network and is given no credential from the environment.";

const SANDBOX_NOTES: &str = "Standard input, output and error are CMD's own. It has no controlling terminal: a terminal can be read and
written, but there is no job control, and Ctrl-C ends cotter with all that CMD has started. Nothing that CMD
leaves running outlives it. The exit status is CMD's, or that of the signal that ended it; 2 for a wrong flag,
10 if CMD cannot be contained here, 126 if it cannot be run, 127 if it is not found.";

/// The text of `cotter sandbox --help`.
fn sandbox_help() -> String {
    let mut help = format!("{SANDBOX_SUMMARY}\n\nUsage: cotter sandbox [OPTIONS] [--] CMD [ARG...]\n\n");
    for flag in FLAGS.iter().filter(|flag| SANDBOX_FLAGS.contains(&flag.long)) {
        help.push_str(&help_line(flag));
    }
    help.push_str(&format!("\n{SANDBOX_NOTES}\n"));
    help
}

/// The manual page, in the man macros.
fn man_page() -> String {
    // ASCII alone: not every formatter is told the encoding.
    let escape =
        |text: &str| text.replace('\\', "\\e").replace('-', "\\-").replace('`', "").replace('…', "...");
    let mut page = format!(
        ".TH COTTER 1 \"\" \"cotter {}\"\n.SH NAME\ncotter \\- a coding agent for the shell\n.SH SYNOPSIS\n.nf\n\\fBcotter\\fR [OPTIONS] [PROMPT]\n\\fBcotter sandbox\\fR [OPTIONS] [\\-\\-] CMD [ARG...]\n.fi\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n",
        env!("CARGO_PKG_VERSION"),
        escape(SUMMARY)
    );
    for group in groups() {
        page.push_str(&format!(".SS {group}\n"));
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            page.push_str(&format!(".TP\n.B {}\n{}\n", escape(&flag.spellings()), escape(flag.help)));
        }
    }
    page.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in crate::error::EXIT_CODES {
        page.push_str(&format!(".TP\n.B {code}\n{}\n", escape(meaning)));
    }
    page.push_str(".SH ENVIRONMENT\n");
    for (name, meaning) in crate::config::VARIABLES {
        page.push_str(&format!(".TP\n.B {name}\n{}\n", escape(meaning)));
    }
    page.push_str(".SH PERMISSIONS\nWhat may run where no rule is about it.\n");
    for (mode, meaning) in crate::sandbox::permissions::table() {
        page.push_str(&format!(".TP\n.B {}\n{}\n", escape(&mode), escape(&meaning)));
    }
    page.push_str(&format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", escape(EXAMPLES)));
    page
}

/// Completions for a shell.
fn completions(shell: &str) -> String {
    match shell {
        "bash" => bash_completions(),
        "zsh" => zsh_completions(),
        _ => fish_completions(),
    }
}

fn bash_completions() -> String {
    let words: Vec<String> = FLAGS.iter().flat_map(dashed).collect();
    let mut script = String::from(
        "_cotter() {\n  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n  case $before in\n",
    );
    for flag in FLAGS {
        let way = match (flag.value, choices(flag)) {
            (_, Some(choice)) => format!("-W \"{choice}\""),
            ("DIR", None) => "-d".to_owned(),
            ("FILE", None) => "-f".to_owned(),
            _ => continue,
        };
        script.push_str(&format!(
            "    {}) COMPREPLY=($(compgen {way} -- \"$word\")); return ;;\n",
            dashed(flag).join("|")
        ));
    }
    script.push_str(&format!(
        "  esac\n  case $word in\n    -*) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n",
        words.join(" ")
    ));
    script.push_str("    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n");
    script.push_str("  esac\n}\ncomplete -o filenames -F _cotter cotter\n");
    script
}

fn zsh_completions() -> String {
    let mut script = String::from("#compdef cotter\n_arguments -s \\\n");
    for flag in FLAGS {
        let help = flag.help.replace('\'', "").replace('[', "(").replace(']', ")").replace(':', ";");
        let value = match (flag.value, choices(flag)) {
            ("", _) => String::new(),
            (_, Some(choice)) => format!(":value:({choice})"),
            ("FILE", None) => ":file:_files".to_owned(),
            ("DIR", None) => ":folder:_files -/".to_owned(),
            _ => ":value: ".to_owned(),
        };
        for spelling in dashed(flag) {
            script.push_str(&format!("  '*{spelling}[{help}]{value}' \\\n"));
        }
    }
    script.push_str("  '*:prompt:_files'\n");
    script
}

fn fish_completions() -> String {
    let mut script = String::new();
    for flag in FLAGS {
        let letters: String = flag.short.chars().map(|letter| format!(" -s {letter}")).collect();
        let value = match (flag.value, choices(flag)) {
            ("", _) => String::new(),
            (_, Some(choice)) => format!(" -x -a '{choice}'"),
            ("FILE" | "DIR", None) => " -r -F".to_owned(),
            _ => " -x".to_owned(),
        };
        let help = flag.help.replace('\'', "\\'");
        script.push_str(&format!("complete -c cotter{letters} -l {}{value} -d '{help}'\n", flag.long));
    }
    script
}

/// All spellings of a flag without its value: `-o`, `--output`.
fn dashed(flag: &Flag) -> Vec<String> {
    let letters = flag.short.chars().map(|letter| format!("-{letter}"));
    letters.chain([format!("--{}", flag.long)]).collect()
}

const VALUE_CHOICES: &[(&str, &str)] = &[
    ("api", "openai anthropic"),
    ("output-format", "text json stream-json"),
    ("sandbox", "workspace-write read-only off"),
    ("completions", "bash zsh fish"),
    ("permission-mode", "default acceptEdits plan dontAsk bypassPermissions"),
];

fn choices(flag: &Flag) -> Option<String> {
    if flag.long == "tools" {
        let names: Vec<&str> = crate::tools::all().iter().map(|spec| spec.name).collect();
        return Some(names.join(" "));
    }
    VALUE_CHOICES.iter().find(|(name, _)| *name == flag.long).map(|(_, choice)| (*choice).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Args {
        match parse(words.iter().map(OsString::from).collect(), Args::default()) {
            Ok(Command::Run(args)) => *args,
            Ok(Command::Print(text)) => panic!("printed {text}"),
            Ok(Command::Sandbox(..)) => panic!("taken for a command"),
            Err(error) => panic!("{error}"),
        }
    }

    fn refused(words: &[&str]) -> String {
        match parse(words.iter().map(OsString::from).collect(), Args::default()) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{words:?} was accepted"),
        }
    }

    #[test]
    fn the_prompt_stands_anywhere() {
        for words in
            [&["-p", "hi", "--model", "m"][..], &["-p", "--model", "m", "hi"], &["hi", "--model=m", "-p"]]
        {
            let args = parsed(words);
            assert_eq!((args.prompt.as_deref(), args.model.as_deref()), (Some("hi"), Some("m")));
        }
    }

    #[test]
    fn every_flag_of_the_table_is_known_to_the_parser() {
        for flag in FLAGS {
            let value = match flag.long {
                "temperature" | "max-output-tokens" | "max-turns" | "max-retries" | "idle-timeout" => "1",
                "api" => "openai",
                "text-tool-calls" => "on",
                "output-format" => "json",
                "completions" => "fish",
                "permission-mode" => "plan",
                "sandbox" => "off",
                _ => "x",
            };
            let mut words = vec![OsString::from(format!("--{}", flag.long))];
            if !flag.value.is_empty() {
                words.push(value.into());
            }
            if flag.long == "replay-strict" {
                words.extend(["--replay".into(), "x".into()]);
            }
            assert!(parse(words, Args::default()).is_ok(), "--{}", flag.long);
        }
    }

    #[test]
    fn a_mistyped_flag_is_answered_with_the_nearest_real_one() {
        assert_eq!(refused(&["--max-turn", "3"]), "there is no flag --max-turn: did you mean --max-turns?");
        assert_eq!(refused(&["--modle", "3"]), "there is no flag --modle: did you mean --model?");
        assert_eq!(refused(&["--zzzzzzz"]), "there is no flag --zzzzzzz: see cotter --help");
        assert_eq!(refused(&["-x"]), "there is no flag -x: see cotter --help");
    }

    #[test]
    fn what_is_not_there_is_refused_by_name() {
        assert_eq!(refused(&["-c"]), "--continue is not supported: it is not in this version");
        assert_eq!(
            refused(&["--settings", "x"]),
            "--settings is not supported: no settings files are read; put flags into the file named by COTTER_CONFIG"
        );
    }

    /// As scripts written for `claude` have it: the list has no end but the first argument that is no rule.
    #[test]
    fn a_list_of_rules_goes_on_until_the_prompt() {
        let rules = |words: &[&str]| {
            let args = parsed(words);
            (args.allowed_tools.unwrap_or_default(), args.disallowed_tools, args.prompt)
        };
        let texts = |texts: &[&str]| texts.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let prompt = || Some("my prompt".to_owned());
        let cases: [(&[&str], &[&str], &[&str]); 8] = [
            (&["--allowedTools", "Read", "Bash(git log:*)", "my prompt"], &["Read", "Bash(git log:*)"], &[]),
            (&["--allowed-tools", "Read,Edit", "my prompt", "-p"], &["Read,Edit"], &[]),
            (
                &["--allowedTools=Read", "WebFetch", "mcp__a__b", "my prompt"],
                &["Read", "WebFetch", "mcp__a__b"],
                &[],
            ),
            (
                &["--allowedTools", "Read", "--disallowedTools", "Bash", "Write", "my prompt"],
                &["Read"],
                &["Bash", "Write"],
            ),
            (&["--allowedTools", "Read", "--allowed-tools", "Edit", "my prompt"], &["Read", "Edit"], &[]),
            (
                &["my prompt", "--disallowed-tools", "weather(Rome)", "Read Write"],
                &[],
                &["weather(Rome)", "Read Write"],
            ),
            (&["--allowedTools", "Read", "-p", "my prompt"], &["Read"], &[]),
            (&["--allowedTools", "", "my prompt"], &[""], &[]),
        ];
        for (words, allowed, denied) in cases {
            assert_eq!(rules(words), (texts(allowed), texts(denied), prompt()), "{words:?}");
        }
        let fenced = rules(&["--allowedTools", "Read", "--", "Write"]);
        assert_eq!(fenced, (texts(&["Read"]), Vec::new(), Some("Write".to_owned())));
        let other = rules(&["--allowedTools", "Read", "-p", "Write"]);
        assert_eq!(other, (texts(&["Read"]), Vec::new(), Some("Write".to_owned())), "a flag ends the list");
    }

    #[test]
    fn a_flag_of_claude_without_effect_is_accepted_and_remembered() {
        assert_eq!(parsed(&["--strict-mcp-config", "hi"]).without_effect, ["--strict-mcp-config"]);
    }

    #[test]
    fn bad_values_name_the_flag_and_what_it_takes() {
        assert_eq!(refused(&["--max-turns", "0"]), "--max-turns is a whole number from 1, not \"0\"");
        assert_eq!(refused(&["--temperature", "2.1"]), "--temperature is a number from 0 to 2, not \"2.1\"");
        assert_eq!(refused(&["--temperature", "NaN"]), "--temperature is a number from 0 to 2, not \"NaN\"");
        assert_eq!(
            refused(&["--output-format", "yaml"]),
            "--output-format is one of text, json, stream-json, not \"yaml\""
        );
        assert_eq!(refused(&["--model"]), "--model needs a value: NAME");
        assert_eq!(
            refused(&["two", "words"]),
            "unexpected argument \"words\" after the prompt \"two\": quote the prompt as one argument"
        );
    }

    #[test]
    fn the_format_of_a_refused_command_line_is_the_last_one_asked_for() {
        let format =
            |words: &[&str]| output_format(&words.iter().map(OsString::from).collect::<Vec<OsString>>());
        assert_eq!(format(&["--output-format", "json", "--nonsense"]), Some(OutputFormat::Json));
        assert_eq!(format(&["--nonsense", "--output-format=stream-json"]), Some(OutputFormat::StreamJson));
        assert_eq!(format(&["--output-format=json", "--output-format", "text"]), Some(OutputFormat::Text));
        assert_eq!(format(&["--", "--output-format=json"]), None);
        assert_eq!(format(&["--output-format", "xml"]), None);
        assert_eq!(format(&["--output-format"]), None);
    }

    #[test]
    fn of_verbose_and_quiet_the_last_one_holds() {
        let streams = |words: &[&str]| (parsed(words).verbose, parsed(words).quiet);
        assert_eq!(streams(&["--verbose", "-q"]), (false, true));
        assert_eq!(streams(&["-q", "--verbose"]), (true, false));
    }

    #[test]
    fn a_dash_forces_standard_input_alone_or_after_the_prompt() {
        let alone = parsed(&["-p", "-"]);
        assert_eq!((alone.prompt, alone.force_stdin), (None, true));
        let after = parsed(&["-p", "hi", "-"]);
        assert_eq!((after.prompt.as_deref(), after.force_stdin), (Some("hi"), true));
    }

    #[test]
    fn help_fits_a_terminal() {
        for line in help().lines() {
            assert!(line.chars().count() <= 110, "{line}");
        }
    }
}
