//! What was typed and what is set, turned into what it means. The only reader of the environment.
//!
//! Nothing here comes from the working folder: an untrusted checkout can set no flag, key or URL.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::alarm::Alarm;
use crate::answer::schema::Schema;
use crate::args::{self, Args, Command, InputFormat};
use crate::budget::Limits;
use crate::checkout::{Checkout, Sources};
use crate::context::{self, Context};
use crate::error::Error;
use crate::http::net::NetworkSettings;
use crate::http::proxy::{ProxySettings, is_loopback};
use crate::http::recording::Replay;
use crate::mailbox::{Desk, Mailbox, Wishes};
use crate::named_file;
use crate::provider::thinking::Thinking;
use crate::provider::{Host, Learnt, Settings, prices};
use crate::sandbox::Setup;
use crate::sandbox::permissions::{self, Permissions};
use crate::session::{self, Place};
use crate::skills::Skills;

mod accounts;
mod answer;
mod containment;
mod endpoint;
mod skills;
mod variables;

use containment::state_folder;
pub use containment::{
    Executables, executables, forgo_temp_folder, offered_tools, permissions, rules_without_effect, setup,
    setup_without_api,
};
pub use endpoint::ModelNames;
use endpoint::{
    check_base_url, endpoint, full_id, headers, host_of, key_source, keys, model, replayed_endpoint, secrets,
};
pub use skills::{SkillRules, skill_tool, skills};
pub use variables::{Environment, HIDDEN, Secret, VARIABLES, hide};

/// The flags in the file that `COTTER_CONFIG` names, if it names one: they hold where nothing else is typed.
///
/// # Errors
///
/// `Usage` names the file and what is wrong with it.
pub fn defaults(environment: &Environment) -> Result<Option<Args>, Error> {
    let Some(path) = environment.raw("COTTER_CONFIG") else { return Ok(None) };
    let path = Path::new(path);
    const MOST_BYTES: usize = 1 << 20;
    let text = named_file::read(path, MOST_BYTES).map_err(|error| {
        Error::Usage(format!("cannot read COTTER_CONFIG \"{}\": {error}", path.display()))
    })?;
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let unusable = |why: &str| {
        Error::Usage(format!(
            "COTTER_CONFIG \"{}\" (one argument a line, such as --max-turns=9): {why}",
            path.display()
        ))
    };
    let spaced = lines.clone().find_map(|line| {
        let (flag, value) = str::from_utf8(line).ok()?.split_once(char::is_whitespace)?;
        (flag.starts_with("--") && !flag.contains('=')).then(|| (flag, value.trim()))
    });
    let arguments = lines.map(|line| OsStr::from_bytes(line).to_owned()).collect();
    match args::parse(arguments, Args::default()) {
        Ok(Command::Run(defaults)) => Ok(Some(*defaults)),
        Ok(Command::Print(_)) => Err(unusable("a flag that prints and ends has no place there")),
        Ok(Command::Sandbox(..)) => Err(unusable("a command has no place there")),
        Err(error) => Err(unusable(&match spaced {
            Some((flag, value)) => format!("write {flag}={value}, or put {value} on a line of its own"),
            None => error.to_string(),
        })),
    }
}

/// What is done with calls that the model printed as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCalls {
    /// They are run as any other.
    Run,
    /// They are the answer, and a line says what they look like.
    Report,
    /// They are the answer.
    Leave,
}

/// Everything a run needs to know.
pub struct Config {
    /// What all requests have in common. The model is empty if the server is to be asked.
    pub settings: Settings,
    /// What the system prompt is made of.
    pub instructions: Instructions,
    /// The models that are asked when the first stays overloaded, in order.
    pub fallback_models: Vec<String>,
    /// What a client may call models.
    pub model_names: ModelNames,
    /// The base URL as given.
    pub base_url: String,
    /// The base URL's host, for messages.
    pub host_name: String,
    /// Whether the base URL is on this machine.
    pub loopback: bool,
    /// The key's header and those asked for. Never printed.
    pub headers: Vec<(String, String)>,
    /// The key and the values of the headers asked for.
    pub secrets: Vec<Secret>,
    /// The variable or flag that the key comes from, or `none`.
    pub key_source: &'static str,
    /// The programs that are tools, yet to be asked what they are.
    pub executables: Executables,
    /// What context files say, which is in the system prompt, and what there is to say of them.
    pub context: Context,
    /// The skills that may be used.
    pub skills: Skills,
    /// How the rules of skills are read.
    pub skill_rules: SkillRules,
    /// How the network is reached.
    pub network: NetworkSettings,
    /// How often a request is asked again.
    pub max_retries: u32,
    /// Where exchanges are written.
    pub record: Option<PathBuf>,
    /// Where replies come from in place of the network.
    pub replay: Option<Replay>,
    /// Whether a conversation that is too long is made shorter.
    pub compaction: bool,
    /// What is done with calls that the model printed as text.
    pub text_calls: TextCalls,
    /// What the run may take.
    pub limits: Limits,
    /// What ends the run's waiting.
    pub alarm: Alarm,
    /// The clock that tools see, if it is fixed.
    pub now: Option<jiff::Timestamp>,
    /// Where exchange rates come from.
    pub rates_url: String,
    /// The schema of the final answer, if it has one.
    pub answer_schema: Option<Schema>,
    /// Where and with what environment tools run.
    pub setup: Setup,
    /// What may run.
    pub permissions: Permissions,
    /// What the user is to read of how tools are contained, if the run has any that write or run something.
    pub containment_lines: Vec<String>,
    /// Where sessions are.
    pub sessions: Place,
    /// Whether colour may be used on a terminal.
    pub color: bool,
}

/// Works out the meaning of the arguments in this environment.
///
/// # Errors
///
/// `Usage` and `Credentials` errors that name the flag or variable and the way out.
pub fn config(args: &Args, environment: &Environment) -> Result<Config, Error> {
    // The time counts from here.
    let mut alarm = args.timeout.map(Alarm::after).unwrap_or_default();
    if args.input_format == InputFormat::StreamJson {
        alarm.heed(Arc::new(mailbox(args, environment)));
    }
    let workspace = workspace()?;
    // What can be wrong with the command line itself is said before a key is asked for.
    let checkout = checkout(args, environment, &workspace);
    let context = context(args, environment, checkout.as_ref());
    let instructions = instructions(args, &context)?;
    let answer_schema = args.json_schema.as_deref().map(answer::schema).transpose()?;
    let permissions = permissions(args, environment, &workspace)?;
    let mut skills = skills(args, environment, checkout.as_ref(), &permissions);
    let tools = offered_tools(args, environment, &permissions, &mut skills)?;
    let executables = executables(args)?;
    let mut replay =
        args.replay.as_deref().map(|folder| Replay::open(folder, args.replay_strict)).transpose()?;
    let recorded = replay.as_ref().map(Replay::origin).transpose()?;
    let endpoint = match &recorded {
        Some(recorded) => replayed_endpoint(args, recorded)?,
        None => endpoint(args, environment)?,
    };
    let host_name = host_of(&endpoint.base_url)?;
    check_base_url(&endpoint.base_url)?;
    let loopback = is_loopback(&host_name);
    let settings = Settings {
        api: endpoint.api,
        host: Host::of(&host_name),
        model: model(args, environment, &endpoint, recorded.as_ref())?,
        // It depends on the form of the answer, and that on the model, which the server may have to name.
        system: String::new(),
        tools,
        max_output_tokens: args.max_output_tokens,
        context_window: args.context_window,
        temperature: args.temperature,
        stop: args.stop.clone(),
        thinking: Thinking {
            effort: args.effort.clone(),
            mode: args.thinking,
            display: args.thinking_display.clone(),
        },
        answer: None,
        learnt: Learnt::default(),
    };
    let fallback_models = fallback_models(args, environment, &settings)?;
    if replay.is_none() {
        check_prices(args, &settings, &fallback_models)?;
    }
    let headers = headers(args, environment, &endpoint)?;
    let mut secrets = secrets(&headers);
    if let Some(replay) = &mut replay {
        secrets.extend(keys(environment));
        replay.keep_secret(secrets.clone());
    }
    let default_idle_secs = if loopback { 600 } else { 120 };
    let idle_timeout = Duration::from_secs(args.idle_timeout_secs.unwrap_or(default_idle_secs).into());
    let network = NetworkSettings {
        ca_bundle: args.cacert.clone().or_else(|| environment.raw("SSL_CERT_FILE").map(PathBuf::from)),
        proxies: proxies(environment)?,
        idle_timeout,
        connect_timeout: CONNECT_TIMEOUT.min(idle_timeout),
        alarm: alarm.clone(),
    };
    let now = clock(environment, replay.is_some())?;
    let own_key = endpoint.key.as_ref().map(|(key, _)| key.expose());
    let skill_rules = SkillRules::new(environment, &workspace);
    let (mut setup, containment_lines) = containment::setup_in(workspace, args, environment, own_key)?;
    forgo_temp_folder(&mut setup, &settings.tools, &executables.found, environment);
    let key_source = key_source(args, &endpoint);
    let patience = alarm.shortened(session::MOST_PATIENCE);
    Ok(Config {
        instructions,
        fallback_models,
        model_names: ModelNames::new(environment, settings.api, settings.host),
        settings,
        base_url: endpoint.base_url,
        key_source,
        secrets,
        host_name,
        loopback,
        headers,
        executables,
        context,
        skills,
        skill_rules,
        network,
        max_retries: args.max_retries.unwrap_or(4),
        record: if args.dry_run { None } else { args.record.clone() },
        replay,
        compaction: !args.no_compaction,
        text_calls: text_calls(args, loopback),
        limits: Limits {
            turns: args.max_turns,
            tool_calls: args.max_tool_calls,
            tokens: args.max_total_tokens,
            cost: args.max_budget_usd,
            price: args.price,
            unknown_is_free: loopback,
        },
        alarm,
        now,
        rates_url: environment
            .text("COTTER_RATES_URL")?
            .unwrap_or_else(|| "https://api.exchangerate-api.com/v4/latest".to_owned()),
        answer_schema,
        sessions: Place {
            folder: sessions_folder(environment),
            keeps: !(args.no_session || args.dry_run || args.single_step),
            workspace: setup.workspace.clone(),
            patience,
        },
        setup,
        permissions,
        containment_lines,
        color: environment.raw("NO_COLOR").is_none(),
    })
}

/// A fallback that is the model itself would be asked in vain.
fn fallback_models(
    args: &Args,
    environment: &Environment,
    settings: &Settings,
) -> Result<Vec<String>, Error> {
    let id = |name: &String| {
        let id = full_id(name, environment, settings.api, settings.host)?;
        match id == settings.model {
            true => Err(Error::Usage(format!(
                "--fallback-model \"{name}\" is the model that is asked already: name another"
            ))),
            false => Ok(id),
        }
    };
    args.fallback_models.iter().map(id).collect()
}

/// Anthropic's API never says what a reply cost: a budget of money would end the run behind a reply paid for.
fn check_prices(args: &Args, settings: &Settings, fallback_models: &[String]) -> Result<(), Error> {
    if settings.host != Host::Anthropic || args.max_budget_usd.is_none() || args.price.is_some() {
        return Ok(());
    }
    let mut models = std::iter::once(&settings.model).chain(fallback_models);
    match models.find(|model| !model.is_empty() && !prices::has(model)) {
        Some(model) => Err(Error::Usage(format!(
            "the price of \"{model}\" is not known, which --max-budget-usd needs: pass its --price"
        ))),
        None => Ok(()),
    }
}

/// What a client's letters come to.
fn mailbox(args: &Args, environment: &Environment) -> Mailbox {
    let states = environment.raw("CLAUDE_CODE_SDK_READS_SESSION_STATE").is_some_and(|value| value == "1");
    let wishes = Wishes { echo: args.replay_user_messages, states };
    let may_bypass = containment::permission_mode(args) == permissions::Mode::Bypass;
    Mailbox::new(Desk::new(may_bypass), wishes)
}

/// Servers on this machine are often those that do not know their model's way of writing calls; elsewhere a
/// text that looks like a call is rather one that was asked for.
fn text_calls(args: &Args, loopback: bool) -> TextCalls {
    match args.text_tool_calls {
        Some(true) => TextCalls::Run,
        Some(false) => TextCalls::Leave,
        None if loopback => TextCalls::Run,
        None => TextCalls::Report,
    }
}

fn workspace() -> Result<PathBuf, Error> {
    std::env::current_dir()
        .map_err(|error| Error::Usage(format!("the current folder cannot be used: {error}: pass -C DIR")))
}

/// Where session files are kept. A home that does not exist is not made.
fn sessions_folder(environment: &Environment) -> Option<PathBuf> {
    Some(state_folder(environment)?.join("sessions"))
}

/// The folder of the run, entered before any other path is looked at.
pub fn enter(directory: &Path) -> Result<(), Error> {
    std::env::set_current_dir(directory)
        .map_err(|error| Error::Usage(format!("cannot run in \"{}\": {error}", directory.display())))
}

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

const BUILT_IN_PROMPT: &str = include_str!("prompt.md");

/// Whose files about the work are read: context and skills.
pub fn sources(args: &Args) -> Sources {
    match args.bare {
        true => Sources::NONE,
        false => args.setting_sources.unwrap_or(Sources::ALL),
    }
}

/// The checkout that the run stands in, where anything is read of it or of the user's own.
pub fn checkout(args: &Args, environment: &Environment, workspace: &Path) -> Option<Checkout> {
    let home = environment.absolute("HOME");
    (sources(args) != Sources::NONE).then(|| Checkout::around(workspace, home.as_deref()))
}

/// The context files of the run. A custom system prompt leaves them where they are, as with `claude`.
fn context(args: &Args, environment: &Environment, checkout: Option<&Checkout>) -> Context {
    let Some(checkout) = checkout else { return Context::default() };
    let (home, own) = (environment.absolute("HOME"), configuration_folder(environment));
    let places = context::Places { checkout, own: own.as_deref(), home: home.as_deref() };
    context::read(&places, sources(args))
}

/// Where the user's own files for cotter are.
pub fn configuration_folder(environment: &Environment) -> Option<PathBuf> {
    let usual = || Some(environment.absolute("HOME")?.join(".config"));
    Some(environment.absolute("XDG_CONFIG_HOME").or_else(usual)?.join("cotter"))
}

/// What the system prompt is made of.
#[derive(Debug, Clone)]
pub struct Instructions {
    /// The built-in or custom prompt.
    pub base: String,
    /// What context files say.
    context: String,
    /// What was typed for this run.
    pub added: String,
}

impl Instructions {
    /// The system prompt; empty for none.
    pub fn text(&self) -> String {
        let parts = [&self.base, &self.context, &self.added].map(String::as_str);
        parts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    }
}

fn instructions(args: &Args, context: &Context) -> Result<Instructions, Error> {
    let base = match (&args.system_prompt, &args.system_prompt_file) {
        (Some(_), Some(_)) => return Err(twice("system-prompt")),
        (Some(text), None) => text.clone(),
        (None, Some(path)) => prompt_text(path)?,
        (None, None) => BUILT_IN_PROMPT.trim_end().to_owned(),
    };
    let added = match (&args.append_system_prompt, &args.append_system_prompt_file) {
        (Some(_), Some(_)) => return Err(twice("append-system-prompt")),
        (Some(text), None) => text.clone(),
        (None, Some(path)) => prompt_text(path)?,
        (None, None) => String::new(),
    };
    Ok(Instructions { base, context: context.text.clone(), added })
}

fn twice(flag: &str) -> Error {
    Error::Usage(format!("--{flag} and --{flag}-file exclude each other"))
}

fn prompt_text(path: &Path) -> Result<String, Error> {
    crate::input::read_text_file(path).map(|text| text.trim_end().to_owned())
}

/// Proxies by scheme, as curl reads them: either case, but `http_proxy` only in lower case, since a CGI
/// script gets `HTTP_PROXY` from whoever sends it a `Proxy` header.
fn proxies(environment: &Environment) -> Result<ProxySettings, Error> {
    let either = |name: &str| Ok(environment.text(&name.to_ascii_lowercase())?.or(environment.text(name)?));
    Ok(ProxySettings {
        https: either("HTTPS_PROXY")?,
        http: environment.text("http_proxy")?,
        all: either("ALL_PROXY")?,
        no_proxy: either("NO_PROXY")?.unwrap_or_default(),
    })
}

/// The clock of the tools, if it is fixed: by `COTTER_NOW`, or in a replay by `SOURCE_DATE_EPOCH`.
fn clock(environment: &Environment, replaying: bool) -> Result<Option<jiff::Timestamp>, Error> {
    let mut names = vec!["COTTER_NOW"];
    if replaying {
        names.push("SOURCE_DATE_EPOCH");
    }
    for name in names {
        if let Some(text) = environment.text(name)? {
            let by_seconds =
                text.parse::<i64>().ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
            return match by_seconds.or_else(|| text.parse().ok()) {
                Some(now) => Ok(Some(now)),
                None => Err(Error::Usage(format!(
                    "{name} is RFC 3339 (2026-01-31T12:00:00Z) or seconds since 1970, not \"{text}\""
                ))),
            };
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::variables::tests::environment;
    use super::*;

    #[test]
    fn the_clock_is_fixed_by_its_variables() {
        let seconds = |variables: &[(&str, &str)], replaying| {
            clock(&environment(variables), replaying).unwrap().map(jiff::Timestamp::as_second)
        };
        assert_eq!(seconds(&[("COTTER_NOW", "2023-10-26T00:00:00Z")], false), Some(1_698_278_400));
        assert_eq!(seconds(&[("COTTER_NOW", "7"), ("SOURCE_DATE_EPOCH", "8")], true), Some(7));
        assert_eq!(seconds(&[("SOURCE_DATE_EPOCH", "8")], true), Some(8));
        assert_eq!(seconds(&[("SOURCE_DATE_EPOCH", "8")], false), None);
        assert!(clock(&environment(&[("COTTER_NOW", "soon")]), false).is_err());
    }
}
