//! cotter: a coding agent for the shell.
//!
//! Parse, run, report, exit. The modules stand in the order to read them.

// What was typed, and what it means.
mod args;
mod config;
mod input;
mod named_file;
mod tool_list;

// What is said, by whom, and what it stands on.
mod checkout;
mod context;
mod conversation;
mod image_limits;
mod mentions;
mod skills;

// The loop, its limits and its end.
mod agent;
mod alarm;
mod answer;
mod budget;
mod compaction;
mod cost;
mod dialogue;

// To the model and back.
mod http;
mod provider;
mod response;
mod sse;

// What the model has done, and in which bounds.
mod sandbox;
mod tools;

// What is kept, printed and asked.
mod claim;
mod error;
mod mailbox;
mod output;
mod session;
mod terminal;
mod uuid;

// What hostile bytes are thrown at: see fuzz/README.md.
#[cfg(any(test, feature = "fuzz"))]
#[path = "../fuzz/targets/mod.rs"]
pub mod targets;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::process::ExitCode;

use agent::Agent;
use args::{Args, Command, InputFormat, OutputFormat};
use config::Environment;
use cost::Cost;
use dialogue::Dialogue;
use error::Error;
use input::Prompt;
use output::{Output, Summary};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use sandbox::Setup;
use sandbox::policy::Mode;
use session::Wanted;
use skills::opening::{self, Opening};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    // The same program runs below itself, where tools write and run things.
    if let Some(code) = sandbox::play(&name, &mut arguments, tools::requests::serve) {
        return code;
    }
    let mut output = Output::new();
    let mut summary = Summary::default();
    match run(arguments, &mut output, &mut summary) {
        Ok(code) => code,
        Err(error) => {
            output.failure(&error, &summary);
            if summary.is_kept && !matches!(error, Error::ClosedOutput { .. }) {
                output.warn(&format!(
                    "what was said is kept: cotter -r {} goes on with it",
                    summary.session_id
                ));
            }
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(
    typed: impl Iterator<Item = OsString>,
    output: &mut Output,
    summary: &mut Summary,
) -> Result<ExitCode, Error> {
    summary.session_id = uuid::random();
    summary.total_cost_usd = Some(Cost::default());
    // Before a key is read: nobody but root looks into this process, and no core dump holds the key.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let environment = Environment::of_process();
    let typed: Vec<OsString> = typed.collect();
    let format = args::output_format(&typed);
    output.set_format(format.unwrap_or_default());
    let mut command = args::parse(typed.clone(), Args::default());
    // Help is there whatever the file of defaults holds.
    if !matches!(command, Ok(Command::Print(_)))
        && let Some(defaults) = config::defaults(&environment)?
    {
        output.set_format(format.unwrap_or(defaults.output_format));
        command = args::parse(typed, defaults);
    }
    match command? {
        Command::Print(text) => output.print(&text)?,
        Command::Run(args) => {
            let ended = converse(&args, &environment, output, summary);
            if ended.is_err() && args.input_format == InputFormat::StreamJson && !output.has_begun() {
                input::await_client();
            }
            return ended;
        }
        Command::Sandbox(args, command) => return run_contained(&args, &command, &environment, output),
    }
    Ok(ExitCode::SUCCESS)
}

/// `cotter sandbox`: a command in the containment of tools.
fn run_contained(
    args: &Args,
    command: &[OsString],
    environment: &Environment,
    output: &mut Output,
) -> Result<ExitCode, Error> {
    if let Some(directory) = &args.directory {
        config::enter(directory)?;
    }
    let (setup, lines) = config::setup(args, environment, None)?;
    contain(&setup, &lines, output, Error::uncontained_command)?;
    sandbox::command::run(&setup, command)
}

/// A run: the model is asked until it has answered.
fn converse(
    args: &Args,
    environment: &Environment,
    output: &mut Output,
    summary: &mut Summary,
) -> Result<ExitCode, Error> {
    args.check()?;
    if let Some(directory) = &args.directory {
        config::enter(directory)?;
    }
    output.configure(args)?;
    if args.list_tools {
        let list = tool_list::list(args, environment, output)?;
        return output.print(&list).map(|()| ExitCode::SUCCESS);
    }
    args.without_effect().iter().for_each(|line| output.detail(line));
    let asker = asker(args, output);
    let (mut agent, prompt) = begin(args, asker, environment, output, summary)?;
    if args.dry_run {
        let prompt = asked(prompt, &agent, output)?;
        let request = agent.first_request(prompt)?;
        return output.print(&format!("{request}\n")).map(|()| ExitCode::SUCCESS);
    }
    let ended = work(&mut agent, args, asker, prompt, output);
    *summary = agent.summary();
    let saved = agent.end_session(output);
    summary.is_kept &= saved.is_ok();
    // What tools left running ends before the answer is out, not after.
    let changed = agent.end_tools();
    if !changed.is_empty() {
        output.notice(&format!(
            "tools have changed {}, which git runs commands from: look at it before git runs here",
            changed.join(", ")
        ));
    }
    drop(agent);
    // A session that cannot be written does not keep a finished answer back. In JSON, the one result that
    // there is reports the failure and carries the answer.
    let code = match ended? {
        Ended::Answered if saved.is_ok() || args.output_format == OutputFormat::Text => {
            output.answer(summary)?;
            0
        }
        Ended::Answered | Ended::Printed => 0,
        Ended::Told(code) => code,
    };
    saved.map(|()| ExitCode::from(code))
}

/// All that comes before the first request: what was typed and set, the session, the containment and the prompt.
fn begin(
    args: &Args,
    asker: Asker,
    environment: &Environment,
    output: &mut Output,
    summary: &mut Summary,
) -> Result<(Agent, Option<Prompt>), Error> {
    let typed = match asker {
        Asker::Prompt => input::typed(args)?,
        Asker::Person | Asker::Client => input::typed_so_far(args)?,
    };
    let config = config::config(args, environment)?;
    output.allow_color(config.color);
    output.keep_secret(config.secrets.clone());
    let wanted = Wanted { source: args.source.clone(), fork: args.fork_session, id: args.session_id.clone() };
    let start = session::open(&wanted, &config.sessions, &summary.session_id)?;
    summary.session_id.clone_from(&start.id);
    let notices = [&config.context.notices, &start.notices, &config.skills.notices];
    notices.into_iter().flatten().for_each(|line| output.warn(line));
    let details = [&config.context.details, &config.skills.details];
    details.into_iter().flatten().for_each(|line| output.detail(line));
    let runs_any = config.settings.tools.iter().any(|spec| tools::belongs_to_worker(spec.name));
    if runs_any && !args.dry_run || !config.executables.found.is_empty() {
        contain(&config.setup, &config.containment_lines, output, Error::uncontained)?;
    }
    let prompt = match asker {
        Asker::Prompt => Some(input::prompt(args, typed, &config.alarm, output)?),
        Asker::Person | Asker::Client => input::first_prompt(typed),
    };
    let agent = Agent::new(config, start, output)?;
    let lines = config::rules_without_effect(args, |name| agent.has_executable(name));
    lines.iter().for_each(|line| output.warn(line));
    Ok((agent, prompt))
}

/// Who asks, and how.
#[derive(Clone, Copy)]
enum Asker {
    /// One prompt, made of arguments, a file and standard input.
    Prompt,
    /// A program, by letters on standard input.
    Client,
    /// A person at a terminal, line by line.
    Person,
}

fn asker(args: &Args, output: &Output) -> Asker {
    let is_one = args.print || args.dry_run || args.single_step || args.force_stdin || args.no_stdin;
    match args.input_format {
        InputFormat::StreamJson => Asker::Client,
        InputFormat::Text if !is_one && output.streams_text() && io::stdin().is_terminal() => Asker::Person,
        InputFormat::Text => Asker::Prompt,
    }
}

/// The one prompt with what it shows.
fn asked(prompt: Option<Prompt>, agent: &Agent, output: &mut Output) -> Result<Opening, Error> {
    let prompt = prompt.unwrap_or(Prompt { text: String::new(), typed_bytes: 0 });
    opening::read(prompt, agent.skills(), agent.workspace(), output)
}

/// Says how tools are contained where that is not as usual. Errors: what is missing to run or contain them.
fn contain(
    setup: &Setup,
    lines: &[String],
    output: &mut Output,
    uncontained: fn(&str) -> Error,
) -> Result<(), Error> {
    lines.iter().for_each(|line| output.notice(line));
    setup.temp_parent.as_deref().map_or(Ok(()), sandbox::can_be_made_in).map_err(Error::Usage)?;
    match setup.policy.mode {
        Mode::Off => Ok(()),
        Mode::WorkspaceWrite | Mode::ReadOnly => {
            sandbox::is_offered().map_err(|missing| uncontained(&missing))
        }
    }
}

enum Ended {
    /// The answer is in the summary.
    Answered,
    /// What there was to print has been printed.
    Printed,
    /// All turns have been reported; the exit code is this.
    Told(u8),
}

fn work(
    agent: &mut Agent,
    args: &Args,
    asker: Asker,
    prompt: Option<Prompt>,
    output: &mut Output,
) -> Result<Ended, Error> {
    match asker {
        Asker::Client => Dialogue::new(agent, output).with_client().map(Ended::Told),
        Asker::Person => Dialogue::new(agent, output).with_person(prompt).map(Ended::Told),
        Asker::Prompt => {
            let prompt = asked(prompt, agent, output)?;
            if !args.single_step {
                return agent.run(prompt, output).map(|()| Ended::Answered);
            }
            match agent.single_step(prompt, output)? {
                true => Ok(Ended::Printed),
                false => Ok(Ended::Answered),
            }
        }
    }
}
