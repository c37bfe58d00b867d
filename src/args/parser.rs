//! The parser of the command line, by the table of flags.
//!
//! It stores what was typed and decides nothing about what it means.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::claude::{self, Takes};
use super::completions::completions;
use super::flags::{FLAGS, Flag, SANDBOX_FLAGS, SPELLINGS};
use super::manual::{help, man_page, sandbox_help};
use super::{Args, Command, InputFormat, OutputFormat};
use crate::checkout::Sources;
use crate::cost::{Cost, Price};
use crate::error::Error;
use crate::provider::thinking::Mode;
use crate::sandbox::{permissions, policy, rules};
use crate::session::{self, Source};
use crate::tools::executables;
use crate::tools::nearest::distance;

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
    let command = arguments.first().and_then(|word| word.to_str()).and_then(claude::command);
    // Of what is typed, a mode beats the one that skipping implies; of that and the file of defaults, what is
    // typed beats both.
    let mode = args.permission_mode.take();
    let skips = std::mem::take(&mut args.skip_permissions);
    let printed = read(arguments, &mut args);
    // Likewise: nobody means a model by it.
    if let (Some(name), false, Ok(None) | Err(_)) = (command, args.print, &printed) {
        return Err(Error::Usage(format!(
            "\"{name}\" is a command of claude's and not here; to ask the model, say cotter -p {name}"
        )));
    }
    if let Some(text) = printed? {
        return Ok(Command::Print(text));
    }
    if !args.skip_permissions {
        args.permission_mode = args.permission_mode.or(mode);
    }
    args.skip_permissions |= skips;
    Ok(Command::Run(Box::new(args)))
}

/// Reads the arguments of a run into `args`. Gives back the text to print if one of them prints and ends.
fn read(arguments: Vec<OsString>, args: &mut Args) -> Result<Option<String>, Error> {
    if has_dashed_prompt(&arguments) {
        return Err(Error::Usage(DASHED.to_owned()));
    }
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut is_behind_flags = false;
    // The flag whose list of rules the next argument may go on with.
    let mut open_list: Option<&Flag> = None;
    loop {
        // What stands behind `--` is no rule.
        if parser.try_raw_args().is_some_and(|left| left.peek().is_some_and(|next| next == "--")) {
            open_list = None;
            is_behind_flags = true;
        }
        let Some(argument) = parser.next().map_err(|error| misused(&error))? else { break };
        let flag = match argument {
            lexopt::Arg::Short(letter) => match FLAGS.iter().find(|flag| flag.short.contains(letter)) {
                Some(flag) => flag,
                None => {
                    let name = claude::of_letter(letter).ok_or_else(|| unknown_letter(letter))?;
                    open_list = None;
                    without_effect(name, &mut parser, args)?;
                    continue;
                }
            },
            lexopt::Arg::Long(name) => {
                let name = main_spelling(name).to_owned();
                match FLAGS.iter().find(|flag| flag.long == name) {
                    Some(flag) => flag,
                    None => {
                        open_list = None;
                        without_effect(&name, &mut parser, args)?;
                        continue;
                    }
                }
            }
            lexopt::Arg::Value(value) => {
                let more = value.to_str().filter(|text| open_list.is_some_and(|flag| goes_on(flag, text)));
                if let (Some(flag), Some(text)) = (open_list, more) {
                    take_more(args, flag, text)?;
                    continue;
                }
                open_list = None;
                positional(args, value, is_behind_flags)?;
                continue;
            }
        };
        let value = value_of(flag, &mut parser)?;
        open_list = Some(flag).filter(|flag| goes_on(flag, "Read") || goes_on(flag, ".."));
        if let Some(text) = take(args, flag, value)? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// What follows a flag, if it takes something.
fn value_of(flag: &Flag, parser: &mut lexopt::Parser) -> Result<OsString, Error> {
    match flag.value {
        "" => Ok(OsString::new()),
        // Without one, `claude` lets one choose; here that is answered by a list.
        _ if flag.long == "resume" => {
            let attached = parser.optional_value();
            let is_value = |next: &std::ffi::OsStr| !next.as_encoded_bytes().starts_with(b"-");
            let next = || parser.try_raw_args().and_then(|mut left| left.next_if(is_value));
            Ok(attached.or_else(next).unwrap_or_default())
        }
        kind => parser.value().map_err(|_| Error::Usage(format!("--{} needs a value: {kind}", flag.long))),
    }
}

/// A flag of `claude` that changes nothing, with what belongs to it.
///
/// # Errors
///
/// `Error::Usage` if there is no such flag.
fn without_effect(name: &str, parser: &mut lexopt::Parser, args: &mut Args) -> Result<(), Error> {
    let takes = claude::takes(name).ok_or_else(|| unknown(name))?;
    let is_word = |next: &OsString| {
        next.to_str().is_some_and(|text| !text.starts_with('-') && !text.contains(char::is_whitespace))
    };
    match takes {
        Takes::Nothing => {}
        Takes::Perhaps if parser.optional_value().is_some() => {}
        Takes::Perhaps => {
            if let Some(mut left) = parser.try_raw_args() {
                left.next_if(|next| is_word(&next.to_owned()));
            }
        }
        Takes::Value => {
            parser.value().map_err(|_| Error::Usage(format!("--{name} needs a value")))?;
        }
    }
    args.ignored.push(format!("--{name}"));
    Ok(())
}

/// Whether an argument that follows the value of a flag is one more of them, as scripts written for `claude`
/// have it, rather than the prompt.
fn goes_on(flag: &Flag, argument: &str) -> bool {
    match flag.long {
        "allowedTools" | "disallowedTools" => rules::continues_list(argument),
        "tools" => rules::continues_list(argument) && !argument.contains('('),
        "add-dir" => is_path(argument),
        _ => false,
    }
}

/// A path that nobody takes for a prompt: neither words nor the name of a skill.
fn is_path(argument: &str) -> bool {
    let leads = [".", "..", "~"].contains(&argument)
        || ["./", "../", "~/"].iter().any(|start| argument.starts_with(start))
        || (argument.starts_with('/') && argument[1..].contains('/'));
    leads && !argument.contains(char::is_whitespace)
}

fn take_more(args: &mut Args, flag: &Flag, text: &str) -> Result<(), Error> {
    match (&mut args.tools, flag.long) {
        (Some(tools), "tools") => tools.push_str(&format!(",{text}")),
        _ => {
            take(args, flag, text.into())?;
        }
    }
    Ok(())
}

fn main_spelling(name: &str) -> &str {
    SPELLINGS.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name)
}

/// The first argument that makes the rest a command to contain.
const SUBCOMMAND: &str = "sandbox";

/// Parses what follows `cotter sandbox`: flags until the first word that is none, or `--`; the rest is the
/// command.
fn parse_sandbox(arguments: Vec<OsString>, mut args: Args) -> Result<Command, Error> {
    let unknown =
        |name: &str| Error::Usage(format!("cotter sandbox has no flag {name}: see cotter sandbox --help"));
    // Whatever the file of defaults says of runs: a command runs contained unless it is typed that it shall not.
    (args.permission_mode, args.skip_permissions) = (None, false);
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
        let value = value_of(flag, &mut parser)?;
        take(&mut args, flag, value)?;
    }
    Err(Error::Usage(
        "cotter sandbox needs a command, as in: cotter sandbox -- make test; to ask the model, say cotter -p sandbox"
            .to_owned(),
    ))
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
    // What a contained command writes is passed through, with nothing added.
    if arguments.first().is_some_and(|word| word == SUBCOMMAND) {
        return Some(OutputFormat::Text);
    }
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
        "print" => args.print = true,
        "prompt-file" if value == "-" => args.force_stdin = true,
        "prompt-file" => args.prompt_file = Some(path()),
        "no-stdin" => args.no_stdin = true,
        "input-format" => {
            let name = one_of(flag, &value, &["text", "stream-json"])?;
            args.input_format = if name == "text" { InputFormat::Text } else { InputFormat::StreamJson };
        }
        "replay-user-messages" => args.replay_user_messages = true,
        "system-prompt" => args.system_prompt = Some(text(flag, &value)?),
        "system-prompt-file" => args.system_prompt_file = Some(path()),
        "append-system-prompt" => args.append_system_prompt = Some(text(flag, &value)?),
        "append-system-prompt-file" => args.append_system_prompt_file = Some(path()),
        "bare" => args.bare = true,
        "setting-sources" => args.setting_sources = Some(sources(flag, &value)?),
        "disable-slash-commands" => args.no_skills = true,
        "directory" => args.directory = Some(path()),
        "dry-run" => args.dry_run = true,
        "model" => args.model = Some(filled(flag, &value)?),
        "api" => args.api = Some(one_of(flag, &value, &["openai", "anthropic"])?),
        "base-url" => args.base_url = Some(filled(flag, &value)?),
        "api-key-file" => args.api_key_file = Some(path()),
        "betas" => args.betas.push(filled(flag, &value)?),
        "header" => args.headers.push(text(flag, &value)?),
        "max-output-tokens" => args.max_output_tokens = Some(count(flag, &value, 1)?),
        "temperature" => args.temperature = Some(temperature(flag, &value)?),
        "stop" if args.stop.len() == 4 => {
            return Err(Error::Usage("--stop can be given at most 4 times".to_owned()));
        }
        "effort" => {
            const LEVELS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
            args.effort = Some(one_of(flag, &value, &LEVELS)?);
        }
        "thinking" => {
            args.thinking = Some(match &*one_of(flag, &value, &["adaptive", "enabled", "disabled"])? {
                "disabled" => Mode::Disabled,
                _ => Mode::Adaptive,
            });
        }
        "max-thinking-tokens" => {
            args.thinking = Some(match count(flag, &value, 0)? {
                0 => Mode::Disabled,
                tokens => Mode::Budget(tokens),
            });
        }
        "thinking-display" => {
            args.thinking_display = Some(one_of(flag, &value, &["summarized", "omitted"])?);
        }
        "fallback-model" => {
            let names = filled(flag, &value)?;
            args.fallback_models = names.split(',').map(|name| name.trim().to_owned()).collect();
            if args.fallback_models.iter().any(String::is_empty) {
                return Err(Error::Usage(format!(
                    "--fallback-model is one model or several with commas, not \"{names}\""
                )));
            }
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
            let mode = value.to_str().and_then(permissions::mode_named);
            let names: Vec<&str> = permissions::MODES.iter().map(|(name, _)| *name).collect();
            args.permission_mode = match mode {
                Some(mode) => Some(mode),
                None => return one_of(flag, &value, &names).map(|_| None),
            };
        }
        "permission-prompt-tool" if value == "stdio" => args.asks_client = true,
        "permission-prompt-tool" => {
            let name = text(flag, &value)?;
            return Err(Error::Usage(format!(
                "--permission-prompt-tool asks the client on standard input (stdio), not \"{name}\": there are no MCP tools"
            )));
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
        "output" => {
            let name = path();
            if name.as_os_str().is_empty() {
                return Err(Error::Usage("--output needs a value that is not empty".to_owned()));
            }
            args.output = if value == "-" { None } else { Some(name) };
        }
        "output-format" => {
            let name = one_of(flag, &value, &["text", "json", "stream-json"])?;
            args.output_format = OutputFormat::named(&name).expect("it is one of these");
        }
        "json-schema" => args.json_schema = Some(value),
        // The last one said holds, so that a flag typed overrides one in the file of defaults.
        "include-partial-messages" => args.partial_messages = true,
        "verbose" => (args.verbose, args.quiet) = (true, false),
        "quiet" => (args.verbose, args.quiet) = (false, true),
        "max-turns" => args.max_turns = Some(count(flag, &value, 1)?),
        "max-tool-calls" => args.max_tool_calls = Some(count(flag, &value, 0)?),
        "max-total-tokens" => args.max_total_tokens = Some(count(flag, &value, 1)?),
        "context-window" => args.context_window = Some(count(flag, &value, 256)?),
        "no-compaction" => args.no_compaction = true,
        "max-budget-usd" => args.max_budget_usd = Some(budget(flag, &value)?),
        "timeout" => args.timeout = Some(seconds(flag, &value)?),
        "price" => args.price = Some(price(flag, &value)?),
        "record" => args.record = Some(path()),
        "replay" => args.replay = Some(path()),
        "replay-strict" => args.replay_strict = true,
        "single-step" => args.single_step = true,
        // The last of these that is said holds, as with the two above.
        "continue" => args.source = Source::Last,
        "resume" => args.source = Source::Named(text(flag, &value)?),
        "session-id" => {
            let id = text(flag, &value)?.to_ascii_lowercase();
            if !session::is_id(&id) {
                return Err(Error::Usage(format!(
                    "--session-id is a UUID (hexadecimal digits, 8-4-4-4-12), not \"{}\"",
                    shortened(&id)
                )));
            }
            args.session_id = Some(id);
        }
        "fork-session" => args.fork_session = true,
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

fn positional(args: &mut Args, value: OsString, is_behind_flags: bool) -> Result<(), Error> {
    if value == "-" && !args.force_stdin {
        args.force_stdin = true;
        return Ok(());
    }
    let text = value.into_string().map_err(|_| {
        Error::Usage("the prompt is not UTF-8: put it into a file and pass -f FILE".to_owned())
    })?;
    if let Some(prompt) = &args.prompt {
        if is_behind_flags && text.starts_with('-') {
            return Err(Error::Usage(format!(
                "unexpected argument \"{}\" after the prompt \"{}\": nothing behind -- is a flag: put flags before it",
                shortened(&text),
                shortened(prompt)
            )));
        }
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

fn count<T: std::str::FromStr + PartialOrd + std::fmt::Display>(
    flag: &Flag,
    value: &OsString,
    least: T,
) -> Result<T, Error> {
    let text = text(flag, value)?;
    match text.parse::<T>() {
        Ok(number) if number >= least => Ok(number),
        _ => Err(Error::Usage(format!("--{} is a whole number from {least}, not \"{text}\"", flag.long))),
    }
}

fn sources(flag: &Flag, value: &OsString) -> Result<Sources, Error> {
    Sources::named(&text(flag, value)?).map_err(|word| {
        Error::Usage(format!(
            "--{} is a list of user, project and local, which may be empty: \"{word}\" is none of them",
            flag.long
        ))
    })
}

/// An amount of money above nothing.
fn budget(flag: &Flag, value: &OsString) -> Result<Cost, Error> {
    let text = text(flag, value)?;
    Cost::parse(&text).filter(|cost| *cost > Cost::default()).ok_or_else(|| {
        Error::Usage(format!("--{} is an amount of dollars such as 0.50, not \"{text}\"", flag.long))
    })
}

fn price(flag: &Flag, value: &OsString) -> Result<Price, Error> {
    let text = text(flag, value)?;
    Price::parse(&text).ok_or_else(|| {
        Error::Usage(format!(
            "--{} is IN,OUT or IN,OUT,CACHE_READ,CACHE_WRITE in dollars per million tokens, such as 1,5 or \
             1,5,0.1,1.25, not \"{text}\"",
            flag.long
        ))
    })
}

/// A time in seconds, with or without decimals.
fn seconds(flag: &Flag, value: &OsString) -> Result<Duration, Error> {
    let text = text(flag, value)?;
    // Words for numbers and exponents are nothing that anybody types as a time.
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = text.parse().ok().filter(|_| is_plain);
    match seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        Some(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(Error::Usage(format!(
            "--{} is a number of seconds such as 90 or 0.5, not \"{text}\"",
            flag.long
        ))),
    }
}

fn temperature(flag: &Flag, value: &OsString) -> Result<f64, Error> {
    let text = text(flag, value)?;
    match text.parse::<f64>() {
        Ok(number) if (0.0..=2.0).contains(&number) => Ok(number),
        _ => Err(Error::Usage(format!("--{} is a number from 0 to 2, not \"{text}\"", flag.long))),
    }
}

const DASHED: &str = "a prompt that begins with a dash goes after --, as in: cotter -p -- \"- one\"";

/// Whether a word right behind `-p` begins with a dash and is no flag.
fn has_dashed_prompt(arguments: &[OsString]) -> bool {
    let words: Vec<&str> = arguments
        .iter()
        .map(|word| word.to_str().unwrap_or_default())
        .take_while(|word| *word != "--")
        .collect();
    let is_flag = |letter: char| letter == '-' || FLAGS.iter().any(|flag| flag.short.contains(letter));
    words.windows(2).any(|pair| {
        let mut letters = pair[1].strip_prefix('-').unwrap_or_default().chars();
        let first = letters.next();
        let is_longer = letters.next().is_some();
        ["-p", "--print"].contains(&pair[0]) && is_longer && !first.is_some_and(is_flag)
    })
}

fn unknown_letter(letter: char) -> Error {
    match letter {
        letter if letter.is_alphanumeric() => {
            Error::Usage(format!("there is no flag -{letter}: see cotter --help"))
        }
        _ => Error::Usage(DASHED.to_owned()),
    }
}

fn unknown(name: &str) -> Error {
    if let Some(way) = claude::way(name) {
        return Error::Usage(format!("--{name} is not supported: {way}"));
    }
    // A text of any length may follow the dashes.
    let near = FLAGS.iter().filter(|flag| flag.long.len().abs_diff(name.len()) <= flag.long.len());
    let nearest = near.map(|flag| (distance(name, flag.long), flag.long)).min();
    match nearest {
        Some((distance, long)) if distance <= 1 + long.len() / 4 => {
            Error::Usage(format!("there is no flag --{name}: did you mean --{long}?"))
        }
        _ if name.contains(char::is_whitespace) => Error::Usage(DASHED.to_owned()),
        _ => Error::Usage(format!("there is no flag --{name}: see cotter --help")),
    }
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
                "temperature" | "max-output-tokens" | "max-turns" | "max-retries" | "idle-timeout"
                | "max-tool-calls" | "max-total-tokens" | "max-budget-usd" | "timeout" => "1",
                "price" => "1,5",
                "api" => "openai",
                "text-tool-calls" => "on",
                "output-format" => "json",
                "input-format" => "text",
                "permission-prompt-tool" => "stdio",
                "completions" => "fish",
                "permission-mode" => "plan",
                "sandbox" => "off",
                "setting-sources" => "user,project",
                "effort" => "high",
                "thinking" => "adaptive",
                "thinking-display" => "omitted",
                "max-thinking-tokens" => "0",
                "context-window" => "8192",
                "session-id" => "550e8400-e29b-41d4-a716-446655440000",
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
        assert_eq!(
            refused(&["--mcp-config", "x"]),
            "--mcp-config is not supported: it is not in this version"
        );
        assert_eq!(
            refused(&["-w"]),
            "--worktree is not supported: make it with git worktree add, and run there with -C DIR"
        );
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
        let cases: [(&[&str], &[&str]); 7] = [
            (&["--strict-mcp-config", "hi"], &["--strict-mcp-config"]),
            (&["--permission-prompts", "none", "hi"], &["--permission-prompts"]),
            (&["--permission-prompts=none", "hi", "--name=n"], &["--permission-prompts", "--name"]),
            (&["--debug", "api,hooks", "hi"], &["--debug"]),
            (&["hi", "-d", "--prompt-suggestions", "false"], &["--debug", "--prompt-suggestions"]),
            (&["--debug=api", "hi"], &["--debug"]),
            (&["hi", "--debug"], &["--debug"]),
        ];
        for (words, flags) in cases {
            let args = parsed(words);
            assert_eq!(args.ignored, flags, "{words:?}");
            assert_eq!(args.prompt.as_deref(), Some("hi"), "{words:?}");
        }
        let args = parsed(&["--debug", "fix it"]);
        assert_eq!(args.prompt.as_deref(), Some("fix it"), "a filter is one word");
        assert_eq!(refused(&["--name"]), "--name needs a value");
    }

    #[test]
    fn more_words_after_a_list_belong_to_it_if_they_cannot_be_the_prompt() {
        let args =
            parsed(&["--tools", "Read", "Grep", "--add-dir", "../apps", "../lib", "/srv/data", "fix it"]);
        assert_eq!(args.tools.as_deref(), Some("Read,Grep"));
        assert_eq!(args.add_dirs, ["../apps", "../lib", "/srv/data"].map(PathBuf::from));
        assert_eq!(args.prompt.as_deref(), Some("fix it"));
        let skill = parsed(&["--add-dir", "lib", "/commit"]);
        assert_eq!((skill.add_dirs.len(), skill.prompt.as_deref()), (1, Some("/commit")));
        assert_eq!(parsed(&["--tools", "Read", "--tools", "Grep"]).tools.as_deref(), Some("Grep"));
        assert_eq!(parsed(&["--tools", "", "Explain it"]).prompt.as_deref(), Some("Explain it"));
    }

    #[test]
    fn the_modes_that_only_claude_has_are_the_nearest_ones() {
        for name in ["auto", "manual", "default"] {
            let mode = parsed(&["--permission-mode", name]).permission_mode;
            assert_eq!(mode, Some(permissions::Mode::Default), "{name}");
        }
        assert_eq!(
            refused(&["--permission-mode", "delegate"]),
            "--permission-mode is one of default, acceptEdits, plan, dontAsk, bypassPermissions, not \"delegate\""
        );
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
    fn a_session_to_resume_is_named_by_what_follows_if_that_is_no_flag() {
        let named = |words: &[&str]| match parsed(words) {
            Args { source: Source::Named(name), prompt, .. } => (name, prompt.unwrap_or_default()),
            args => panic!("{:?}", args.source),
        };
        let pair = |name: &str, prompt: &str| (name.to_owned(), prompt.to_owned());
        assert_eq!(named(&["-p", "-r", "550e", "hi"]), pair("550e", "hi"));
        assert_eq!(named(&["hi", "--resume=550e"]), pair("550e", "hi"));
        assert_eq!(named(&["-r550e", "hi"]), pair("550e", "hi"));
        assert_eq!(named(&["-p", "hi", "-r"]), pair("", "hi"));
        assert_eq!(named(&["--resume", "-p", "hi"]), pair("", "hi"));
        assert_eq!(named(&["--resume=", "hi"]), pair("", "hi"));
        assert_eq!(named(&["-r", "--", "hi"]), pair("", "hi"));
        assert_eq!(named(&["-c", "-r", "550e"]), pair("550e", ""));
        assert_eq!(parsed(&["-r", "550e", "-c"]).source, Source::Last);
    }

    #[test]
    fn the_id_of_a_session_is_a_uuid() {
        let id = "550E8400-e29b-41d4-a716-446655440000";
        assert_eq!(parsed(&["--session-id", id]).session_id, Some(id.to_ascii_lowercase()));
        assert_eq!(
            refused(&["--session-id", "../x"]),
            "--session-id is a UUID (hexadecimal digits, 8-4-4-4-12), not \"../x\""
        );
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
}
