//! What was typed and what is set, turned into what it means. The only reader of the environment.
//!
//! Nothing here comes from the working folder: an untrusted checkout can set no flag, key or URL.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::{self, Args, Command};
use crate::error::Error;
use crate::http::net::{self, NetworkSettings};
use crate::http::proxy::{ProxySettings, is_loopback};
use crate::http::recording::{self, Replay};
use crate::provider::{Api, Host, Learnt, Settings};
use crate::sandbox::environment::{self, LEAST_SECRET_BYTES};
use crate::sandbox::permissions::{self, Permissions};
use crate::sandbox::policy::{Mode, Network};
use crate::sandbox::rules::{self, Rule};
use crate::sandbox::writable::{self, Places};
use crate::sandbox::{Policy, Setup, paths};
use crate::tools;
use crate::tools::executables::Found;

/// The variables that configure cotter, as README and the manual list them.
pub const VARIABLES: &[(&str, &str)] = &[
    (
        "OPENROUTER_API_KEY, OPENROUTER_BASE_URL",
        "key and base URL for OpenRouter; first choice if the key is set",
    ),
    (
        "ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL",
        "key, or bearer token, and base URL for Anthropic's API",
    ),
    (
        "OPENAI_API_KEY, OPENAI_BASE_URL",
        "key and base URL for OpenAI or any server that speaks its API; a base URL alone will do",
    ),
    ("OPENROUTER_API_KEY_FILE, ANTHROPIC_API_KEY_FILE, OPENAI_API_KEY_FILE", "a file that holds the key"),
    ("COTTER_MODEL", "the model to ask, for every API; ANTHROPIC_MODEL for Anthropic's alone"),
    ("ANTHROPIC_CUSTOM_HEADERS", "further headers for Anthropic's API, one `Name: value` a line"),
    ("COTTER_CONFIG", "a file of flags that come before those typed, one argument a line, # for comments"),
    ("COTTER_NOW", "the time that tools see: RFC 3339 or seconds since 1970"),
    ("SOURCE_DATE_EPOCH", "the same in seconds since 1970, used only with --replay"),
    ("COTTER_RATES_URL", "where get_exchange_rate asks (default https://api.exchangerate-api.com/v4/latest)"),
    ("XDG_STATE_HOME", "where session files are kept, in cotter/sessions (default ~/.local/state)"),
    ("SSL_CERT_FILE", "a PEM bundle of certificates to trust in place of the built-in ones"),
    (
        "HTTPS_PROXY, http_proxy, ALL_PROXY, NO_PROXY",
        "proxies by scheme, as curl has them; never used for loopback",
    ),
    ("NO_COLOR", "no colour on a terminal"),
];

/// A text that is never shown: not in errors, not by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The text, and what JSON makes of it if that differs: whoever quotes it may do so in either way.
    pub fn forms(&self) -> Vec<String> {
        let quoted = serde_json::Value::from(self.expose()).to_string();
        let mut forms = vec![self.0.clone(), quoted[1..quoted.len() - 1].to_owned()];
        forms.dedup();
        forms
    }
}

#[cfg(test)]
impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HIDDEN)
    }
}

/// The text with every secret in it replaced: servers quote the keys that they refuse.
pub fn hide(text: &str, secrets: &[Secret]) -> String {
    secrets.iter().flat_map(Secret::forms).fold(text.to_owned(), |text, form| text.replace(&form, HIDDEN))
}

/// What stands where a secret stood.
pub const HIDDEN: &str = "(secret)";

/// The environment at the start of the run.
pub struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// What this process was given.
    pub fn of_process() -> Environment {
        Environment(std::env::vars_os().collect())
    }

    /// A variable's value; an empty one counts as unset.
    fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable that holds an absolute path.
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    fn text(&self, name: &str) -> Result<Option<String>, Error> {
        match self.raw(name) {
            None => Ok(None),
            Some(value) => match value.to_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(Error::Usage(format!("the variable {name} is not UTF-8"))),
            },
        }
    }

    /// A key from the variable or from the file that `NAME_FILE` names.
    fn key(&self, name: &str) -> Result<Option<Secret>, Error> {
        if let Some(text) = self.text(name)? {
            return secret(&text, &format!("the variable {name}")).map(Some);
        }
        match self.raw(&format!("{name}_FILE")) {
            Some(path) => key_file(Path::new(path)).map(Some),
            None => Ok(None),
        }
    }
}

fn key_file(path: &Path) -> Result<Secret, Error> {
    const MOST_BYTES: u64 = 64 * 1024;
    let mut text = String::new();
    File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_string(&mut text)).map_err(|error| {
        Error::Credentials(format!("cannot read the key file \"{}\": {error}", path.display()))
    })?;
    secret(&text, &format!("the key file \"{}\"", path.display()))
}

fn secret(text: &str, place: &str) -> Result<Secret, Error> {
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Credentials(format!("{place} holds no usable key: a key is one word of ASCII")));
    }
    Ok(Secret(key.to_owned()))
}

/// The flags in the file that `COTTER_CONFIG` names, if it names one: they hold where nothing else is typed.
///
/// # Errors
///
/// `Usage` names the file and what is wrong with it.
pub fn defaults(environment: &Environment) -> Result<Option<Args>, Error> {
    let Some(path) = environment.raw("COTTER_CONFIG") else { return Ok(None) };
    let path = Path::new(path);
    let text = fs::read(path).map_err(|error| {
        Error::Usage(format!("cannot read COTTER_CONFIG \"{}\": {error}", path.display()))
    })?;
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let arguments = lines.map(|line| OsStr::from_bytes(line).to_owned()).collect();
    let unusable = |why: &str| {
        Error::Usage(format!(
            "COTTER_CONFIG \"{}\" (one argument a line, such as --max-turns=9): {why}",
            path.display()
        ))
    };
    match args::parse(arguments, Args::default()) {
        Ok(Command::Run(defaults)) => Ok(Some(*defaults)),
        Ok(Command::Print(_)) => Err(unusable("a flag that prints and ends has no place there")),
        Ok(Command::Sandbox(..)) => Err(unusable("a command has no place there")),
        Err(error) => Err(unusable(&error.to_string())),
    }
}

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyHeader {
    Bearer,
    ApiKey,
}

/// An API to talk to.
#[derive(Debug)]
struct Endpoint {
    api: Api,
    base_url: String,
    key: Option<(Secret, KeyHeader)>,
    default_model: Option<String>,
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
    /// The programs that are tools, yet to be asked what they are.
    pub executables: Executables,
    /// How the network is reached.
    pub network: NetworkSettings,
    /// How often a request is asked again.
    pub max_retries: u32,
    /// Where exchanges are written.
    pub record: Option<PathBuf>,
    /// Where replies come from in place of the network.
    pub replay: Option<Replay>,
    /// What is done with calls that the model printed as text.
    pub text_calls: TextCalls,
    /// How many replies the run may have.
    pub max_turns: Option<u32>,
    /// The clock that tools see, if it is fixed.
    pub now: Option<jiff::Timestamp>,
    /// Where exchange rates come from.
    pub rates_url: String,
    /// Where and with what environment tools run.
    pub setup: Setup,
    /// What may run.
    pub permissions: Permissions,
    /// What the user is to read of how tools are contained, if the run has any that write or run something.
    pub containment_lines: Vec<String>,
    /// The folder of session files; absent if none are kept.
    pub sessions: Option<PathBuf>,
    /// Whether colour may be used on a terminal.
    pub color: bool,
}

/// Works out the meaning of the arguments in this environment.
///
/// # Errors
///
/// `Usage` and `Credentials` errors that name the flag or variable and the way out.
pub fn config(args: &Args, environment: &Environment) -> Result<Config, Error> {
    let workspace = workspace()?;
    // What can be wrong with the command line itself is said before a key is asked for.
    let (system, tools) = (system_prompt(args)?, offered_tools(args, environment)?);
    let executables = executables(args)?;
    let permissions = permissions(args, environment, &workspace)?;
    let mut replay =
        args.replay.as_deref().map(|folder| Replay::open(folder, args.replay_strict)).transpose()?;
    let recorded = replay.as_ref().map(Replay::origin).transpose()?;
    let endpoint = match &recorded {
        Some(recorded) => replayed_endpoint(args, recorded)?,
        None => endpoint(args, environment)?,
    };
    let host_name = host_of(&endpoint.base_url)?;
    let loopback = is_loopback(&host_name);
    let settings = Settings {
        api: endpoint.api,
        host: Host::of(&host_name),
        model: model(args, environment, &endpoint, recorded.as_ref())?,
        system,
        tools,
        max_output_tokens: args.max_output_tokens,
        temperature: args.temperature,
        stop: args.stop.clone(),
        learnt: Learnt::default(),
    };
    let headers = headers(args, environment, &endpoint)?;
    let mut secrets = secrets(&headers);
    if let Some(replay) = &mut replay {
        secrets.extend(keys(environment));
        replay.keep_secret(secrets.clone());
    }
    let default_idle_secs = if loopback { 600 } else { 120 };
    let network = NetworkSettings {
        ca_bundle: args.cacert.clone().or_else(|| environment.raw("SSL_CERT_FILE").map(PathBuf::from)),
        proxies: proxies(environment)?,
        idle_timeout: Duration::from_secs(args.idle_timeout_secs.unwrap_or(default_idle_secs).into()),
        connect_timeout: Duration::from_secs(30),
    };
    let now = clock(environment, replay.is_some())?;
    let own_key = endpoint.key.as_ref().map(|(key, _)| key.expose());
    let (setup, containment_lines) = setup(args, environment, own_key)?;
    Ok(Config {
        settings,
        base_url: endpoint.base_url,
        secrets,
        host_name,
        loopback,
        headers,
        executables,
        network,
        max_retries: args.max_retries.unwrap_or(4),
        record: if args.dry_run { None } else { args.record.clone() },
        replay,
        text_calls: text_calls(args, loopback),
        max_turns: args.max_turns,
        now,
        rates_url: environment
            .text("COTTER_RATES_URL")?
            .unwrap_or_else(|| "https://api.exchangerate-api.com/v4/latest".to_owned()),
        setup,
        permissions,
        containment_lines,
        sessions: if args.no_session || args.dry_run || args.single_step {
            None
        } else {
            sessions_folder(environment)
        },
        color: environment.raw("NO_COLOR").is_none(),
    })
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

/// How tools run that are only listed: no key is needed then, but one that is there is kept from them.
///
/// # Errors
///
/// `Usage` names the folder that cannot be used.
pub fn setup_without_api(args: &Args, environment: &Environment) -> Result<(Setup, Vec<String>), Error> {
    let key = endpoint(args, environment).ok().and_then(|endpoint| endpoint.key);
    setup(args, environment, key.as_ref().map(|(key, _)| key.expose()))
}

/// Where session files are kept. A home that does not exist is not made.
fn sessions_folder(environment: &Environment) -> Option<PathBuf> {
    Some(state_folder(environment)?.join("sessions"))
}

fn state_folder(environment: &Environment) -> Option<PathBuf> {
    let state = match environment.absolute("XDG_STATE_HOME") {
        Some(state) => state,
        None => environment.absolute("HOME").filter(|home| home.is_dir())?.join(".local/state"),
    };
    Some(state.join("cotter"))
}

/// How tools run, and what the user is to read about that. The key that the run uses is kept from them.
///
/// # Errors
///
/// `Usage` names the folder that cannot be used.
pub fn setup(
    args: &Args,
    environment: &Environment,
    own_key: Option<&str>,
) -> Result<(Setup, Vec<String>), Error> {
    let workspace = workspace()?;
    let (policy, lines) = policy(args, environment, &workspace)?;
    let rules = environment::Rules { own_key, mode: policy.mode, passed: &args.pass_env };
    let setup = Setup {
        environment: environment::for_tools(environment.0.iter(), &rules),
        // A command may go elsewhere, and Landlock opens no folder through a link.
        temp_parent: real_path(Path::new(environment.raw("TMPDIR").unwrap_or(OsStr::new("/tmp")))),
        workspace,
        policy,
    };
    Ok((setup, lines))
}

fn policy(args: &Args, environment: &Environment, workspace: &Path) -> Result<(Policy, Vec<String>), Error> {
    let mut added = Vec::new();
    for folder in &args.add_dirs {
        let unusable = |why: &str| Error::Usage(format!("--add-dir \"{}\": {why}", folder.display()));
        let real = fs::canonicalize(folder).map_err(|error| unusable(&error.to_string()))?;
        if !real.is_dir() {
            return Err(unusable("it is no folder"));
        }
        added.push(real);
    }
    let network = if args.allow_net { Network::Shared } else { Network::Own };
    let home = environment.absolute("HOME").map(|home| real_path(&home)).filter(|home| home.is_dir());
    let state = state_folder(environment).map(|state| real_path(&state));
    let places = Places { workspace, home: home.as_deref(), state: state.as_deref() };
    Ok(writable::policy(mode(args), network, &added, places))
}

/// What is typed beats what is implied, but a run that only plans writes nowhere.
fn mode(args: &Args) -> Mode {
    match (args.sandbox, args.skip_permissions) {
        (Some(Mode::Off), _) | (None, true) => Mode::Off,
        _ if permission_mode(args) == permissions::Mode::Plan => Mode::ReadOnly,
        (mode, _) => mode.unwrap_or_default(),
    }
}

fn permission_mode(args: &Args) -> permissions::Mode {
    if args.skip_permissions { permissions::Mode::Bypass } else { args.permission_mode }
}

/// The path without symbolic links, as far as it exists.
pub fn real_path(path: &Path) -> PathBuf {
    let real = |above: &Path| {
        let rest = path.strip_prefix(above).ok()?;
        fs::canonicalize(above).ok().map(|real| real.join(rest))
    };
    path.ancestors().find_map(real).unwrap_or_else(|| path.to_owned())
}

/// The folder of the run, entered before any other path is looked at.
pub fn enter(directory: &Path) -> Result<(), Error> {
    std::env::set_current_dir(directory)
        .map_err(|error| Error::Usage(format!("cannot run in \"{}\": {error}", directory.display())))
}

const NO_KEY: &str = "no API key: set OPENROUTER_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, or pass --base-url for a local server, or --replay DIR";
const OPENROUTER: &str = "https://openrouter.ai/api/v1";
const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com/v1";
const DEFAULT_OPENROUTER_MODEL: &str = "anthropic/claude-haiku-4.5";
const DEFAULT_ANTHROPIC_MODEL: &str = "claude-opus-4-6";

fn asked_api(args: &Args) -> Option<Api> {
    args.api.as_deref().map(|name| if name == "anthropic" { Api::Anthropic } else { Api::OpenAi })
}

/// Which API is asked, where, and with which key. A key goes only to its own API: to the base URL set
/// beside it, or to the one typed for that API.
fn endpoint(args: &Args, environment: &Environment) -> Result<Endpoint, Error> {
    let asked = asked_api(args);
    if let Some(base_url) = &args.base_url {
        return typed_endpoint(args, environment, asked.unwrap_or(Api::OpenAi), base_url);
    }
    let from_file = args.api_key_file.as_deref().map(key_file).transpose()?;
    let kind = from_file.as_ref().map(|key| key_kind(key, asked)).transpose()?;
    let openrouter =
        if asked != Some(Api::Anthropic) { environment.key("OPENROUTER_API_KEY")? } else { None };
    if kind == Some(KeyKind::OpenRouter) || (kind.is_none() && openrouter.is_some()) {
        return Ok(Endpoint {
            api: Api::OpenAi,
            base_url: environment.text("OPENROUTER_BASE_URL")?.unwrap_or_else(|| OPENROUTER.to_owned()),
            key: from_file.or(openrouter).map(|key| (key, KeyHeader::Bearer)),
            default_model: Some(DEFAULT_OPENROUTER_MODEL.to_owned()),
        });
    }
    let anthropic_url = environment.text("ANTHROPIC_BASE_URL")?;
    let anthropic = if asked != Some(Api::OpenAi) { anthropic_key(environment)? } else { None };
    let keyless = asked == Some(Api::Anthropic) && anthropic_url.is_some();
    if kind == Some(KeyKind::Anthropic) || (kind.is_none() && (anthropic.is_some() || keyless)) {
        return Ok(Endpoint {
            api: Api::Anthropic,
            base_url: anthropic_url.unwrap_or_else(|| ANTHROPIC.to_owned()),
            key: from_file.map(anthropic_header).or(anthropic),
            default_model: Some(
                environment.text("ANTHROPIC_MODEL")?.unwrap_or_else(|| DEFAULT_ANTHROPIC_MODEL.to_owned()),
            ),
        });
    }
    let openai_url = environment.text("OPENAI_BASE_URL")?;
    let openai = if asked != Some(Api::Anthropic) { environment.key("OPENAI_API_KEY")? } else { None };
    let keyless = asked != Some(Api::Anthropic) && openai_url.is_some();
    if kind == Some(KeyKind::OpenAi) || openai.is_some() || keyless {
        return Ok(Endpoint {
            api: Api::OpenAi,
            base_url: openai_url.unwrap_or_else(|| OPENAI.to_owned()),
            key: from_file.or(openai).map(|key| (key, KeyHeader::Bearer)),
            default_model: None,
        });
    }
    match (args.dry_run, asked) {
        (false, _) => Err(Error::Credentials(NO_KEY.to_owned())),
        // Nothing is sent, so no key is needed.
        (true, Some(Api::Anthropic)) => Ok(Endpoint {
            api: Api::Anthropic,
            base_url: ANTHROPIC.to_owned(),
            key: None,
            default_model: Some(DEFAULT_ANTHROPIC_MODEL.to_owned()),
        }),
        (true, _) => Ok(Endpoint {
            api: Api::OpenAi,
            base_url: OPENROUTER.to_owned(),
            key: None,
            default_model: Some(DEFAULT_OPENROUTER_MODEL.to_owned()),
        }),
    }
}

/// The API behind `--base-url`: its own key if one is set, none otherwise, and OpenRouter's only there.
fn typed_endpoint(
    args: &Args,
    environment: &Environment,
    api: Api,
    base_url: &str,
) -> Result<Endpoint, Error> {
    let at_openrouter = Host::of(&host_of(base_url)?) == Host::OpenRouter;
    let key = match (&args.api_key_file, api) {
        (Some(path), Api::Anthropic) if !at_openrouter => Some(anthropic_header(key_file(path)?)),
        (Some(path), _) => Some((key_file(path)?, KeyHeader::Bearer)),
        (None, _) if at_openrouter => {
            environment.key("OPENROUTER_API_KEY")?.map(|key| (key, KeyHeader::Bearer))
        }
        (None, Api::OpenAi) => environment.key("OPENAI_API_KEY")?.map(|key| (key, KeyHeader::Bearer)),
        (None, Api::Anthropic) => anthropic_key(environment)?,
    };
    let default_model = match api {
        Api::Anthropic => environment.text("ANTHROPIC_MODEL")?,
        Api::OpenAi => None,
    };
    Ok(Endpoint { api, base_url: base_url.to_owned(), key, default_model })
}

/// The API that a recording was made with: no key, and no request ever leaves.
fn replayed_endpoint(args: &Args, recorded: &recording::Origin) -> Result<Endpoint, Error> {
    let api = asked_api(args).unwrap_or(recorded.api);
    let base_url = args.base_url.clone().unwrap_or_else(|| format!("https://{}", recorded.host));
    Ok(Endpoint { api, base_url, key: None, default_model: None })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    OpenRouter,
    Anthropic,
    OpenAi,
}

/// Whose key it is: OpenRouter's and Anthropic's say so themselves.
fn key_kind(key: &Secret, asked: Option<Api>) -> Result<KeyKind, Error> {
    let own = match key.expose() {
        key if key.starts_with("sk-or-") => Some(KeyKind::OpenRouter),
        key if key.starts_with("sk-ant-") => Some(KeyKind::Anthropic),
        _ => None,
    };
    match (own, asked) {
        (Some(KeyKind::OpenRouter), None | Some(Api::OpenAi)) => Ok(KeyKind::OpenRouter),
        (_, Some(Api::Anthropic)) => Ok(KeyKind::Anthropic),
        (_, Some(Api::OpenAi)) => Ok(KeyKind::OpenAi),
        (Some(kind), None) => Ok(kind),
        (None, None) => Err(Error::Usage(
            "the key in --api-key-file does not say whose it is: pass --api openai or anthropic, or --base-url".to_owned(),
        )),
    }
}

fn anthropic_key(environment: &Environment) -> Result<Option<(Secret, KeyHeader)>, Error> {
    if let Some(key) = environment.key("ANTHROPIC_API_KEY")? {
        return Ok(Some(anthropic_header(key)));
    }
    Ok(environment.key("ANTHROPIC_AUTH_TOKEN")?.map(|token| (token, KeyHeader::Bearer)))
}

/// OAuth tokens are refused in `x-api-key`.
fn anthropic_header(key: Secret) -> (Secret, KeyHeader) {
    let header = if key.expose().starts_with("sk-ant-oat") { KeyHeader::Bearer } else { KeyHeader::ApiKey };
    (key, header)
}

/// The host name of a base URL, in lower case, without port and brackets.
fn host_of(base_url: &str) -> Result<String, Error> {
    let refuse =
        |why: &str| Error::Usage(format!("the base URL \"{}\" cannot be used: {why}", net::shown(base_url)));
    let rest = base_url
        .strip_prefix("https://")
        .or_else(|| base_url.strip_prefix("http://"))
        .ok_or_else(|| refuse("it starts with http:// or https://"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err(refuse("it holds a name or password: pass the key by its variable or --api-key-file"));
    }
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let blank = base_url.bytes().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control());
    if host.is_empty() || blank {
        return Err(refuse("it names no host"));
    }
    Ok(host.to_ascii_lowercase())
}

fn model(
    args: &Args,
    environment: &Environment,
    endpoint: &Endpoint,
    recorded: Option<&recording::Origin>,
) -> Result<String, Error> {
    if let Some(model) = &args.model {
        return Ok(model.clone());
    }
    if let Some(recorded) = recorded {
        return Ok(recorded.model.clone());
    }
    if let Some(model) = environment.text("COTTER_MODEL")?.or_else(|| endpoint.default_model.clone()) {
        return Ok(model);
    }
    match args.dry_run {
        // The server may list exactly one model; whoever asks first finds out.
        false => Ok(String::new()),
        true => Err(Error::Usage(
            "no model: pass --model or set COTTER_MODEL (--dry-run asks no server)".to_owned(),
        )),
    }
}

const BUILT_IN_PROMPT: &str = include_str!("prompt.md");

fn system_prompt(args: &Args) -> Result<String, Error> {
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
    Ok([base, added].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n"))
}

fn twice(flag: &str) -> Error {
    Error::Usage(format!("--{flag} and --{flag}-file exclude each other"))
}

fn prompt_text(path: &Path) -> Result<String, Error> {
    crate::input::read_text_file(path).map(|text| text.trim_end().to_owned())
}

/// The tools that the model is told of: those of `--tools` but for those that `--disallowedTools` takes away.
///
/// # Errors
///
/// `Usage` names the tool that is not there, or the rule that is none.
pub fn offered_tools(args: &Args, environment: &Environment) -> Result<Vec<&'static tools::Spec>, Error> {
    let permissions = permissions(args, environment, Path::new("/"))?;
    let mut offered = chosen_tools(args, environment)?;
    offered.retain(|spec| !permissions.removes(spec.name));
    Ok(offered)
}

/// What the rules and the mode come to.
///
/// # Errors
///
/// `Usage` names the rule that cannot be used.
pub fn permissions(args: &Args, environment: &Environment, workspace: &Path) -> Result<Permissions, Error> {
    let places =
        paths::Places { workspace: workspace.to_owned(), home: environment.raw("HOME").map(PathBuf::from) };
    let read = |flag: &str, lists: &[String]| -> Result<Vec<Rule>, Error> {
        let texts = lists.iter().flat_map(|list| rules::split(list));
        let refuse = |text: &str, why: &str| {
            Error::Usage(format!(
                "--{flag}: the rule \"{text}\" cannot be used: {why}: a rule is Tool or Tool(specifier), such as \"Bash(git log:*)\" or \"Edit(src/**)\""
            ))
        };
        texts.map(|text| Rule::parse(text, &places).map_err(|why| refuse(text, &why))).collect()
    };
    let allowed = args.allowed_tools.as_ref().map(|lists| read("allowedTools", lists)).transpose()?;
    let denied = read("disallowedTools", &args.disallowed_tools)?;
    Ok(Permissions {
        mode: permission_mode(args),
        sandbox_is_off: mode(args) == Mode::Off,
        allowed,
        denied,
        roots: std::iter::once(workspace.to_owned())
            .chain(args.add_dirs.iter().map(|folder| workspace.join(folder)))
            .collect(),
    })
}

/// What to say of rules whose tools are not there: scripts written for another agent may name some.
pub fn rules_without_effect(args: &Args, is_executable: impl Fn(&str) -> bool) -> Vec<String> {
    let allowed = args.allowed_tools.as_deref().unwrap_or_default();
    let flags = [("allowedTools", allowed), ("disallowedTools", &args.disallowed_tools)];
    let warning = |(flag, lists): (&str, &[String])| {
        let rules = lists.iter().flat_map(|list| rules::split(list));
        let mut names: Vec<&str> = rules.map(|rule| rule.split('(').next().unwrap_or_default()).collect();
        names.retain(|name| !tools::access::exists(name) && !is_executable(name));
        names.sort_unstable();
        names.dedup();
        (!names.is_empty()).then(|| {
            format!("--{flag}: there is no tool {}, so rules about it have no effect", names.join(", "))
        })
    };
    flags.into_iter().filter_map(warning).collect()
}

/// The tools of `--tools`, in the table's order. Bash needs a shell to be there, and brings the tools for what
/// it starts in the background.
fn chosen_tools(args: &Args, environment: &Environment) -> Result<Vec<&'static tools::Spec>, Error> {
    let has_shell = || tools::command::shell(environment.raw("PATH").unwrap_or_default()).is_some();
    let list = args.tools.as_deref().unwrap_or("default");
    let mut names: Vec<&str> = list.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    if names == ["default"] {
        let all = tools::all().iter().map(|spec| spec.name);
        names = all.filter(|name| !tools::needs_shell(name) || has_shell()).collect();
    }
    for name in &names {
        if !tools::all().iter().any(|spec| spec.name == *name) {
            // It may be the name of a program, which is known when that was asked.
            if !args.executables.is_empty() {
                continue;
            }
            let known: Vec<&str> = tools::all().iter().map(|spec| spec.name).collect();
            return Err(Error::Usage(format!(
                "--tools: there is no tool \"{name}\": choose from {}",
                known.join(", ")
            )));
        }
        if tools::needs_shell(name) && !has_shell() {
            return Err(Error::Usage(format!(
                "--tools: {name} needs a bash or sh in PATH, and there is none"
            )));
        }
    }
    let is_brought = |name| names.contains(&"Bash") && tools::needs_shell(name);
    let is_offered = |spec: &&tools::Spec| names.contains(&spec.name) || is_brought(spec.name);
    Ok(tools::all().iter().filter(is_offered).collect())
}

/// Programs that are tools, and the names in `--tools` that must be theirs.
pub struct Executables {
    /// The programs, in the order given. They are offered whatever `--tools` says.
    pub found: Vec<Found>,
    /// Names in `--tools` that no built-in tool has.
    pub named: Vec<String>,
}

/// The programs of `--tool` and `--tool-dir`.
///
/// # Errors
///
/// `Usage` names what cannot be a tool.
pub fn executables(args: &Args) -> Result<Executables, Error> {
    let found = tools::executables::find(&args.executables).map_err(Error::Usage)?;
    let names = args.tools.as_deref().unwrap_or("default").split([',', ' ']);
    let is_other = |name: &&str| {
        !name.is_empty() && *name != "default" && !tools::all().iter().any(|spec| spec.name == *name)
    };
    Ok(Executables { found, named: names.filter(is_other).map(str::to_owned).collect() })
}

/// The key's header, then those asked for, which may not repeat what the protocol sets.
fn headers(
    args: &Args,
    environment: &Environment,
    endpoint: &Endpoint,
) -> Result<Vec<(String, String)>, Error> {
    let mut headers = Vec::new();
    match &endpoint.key {
        Some((key, KeyHeader::Bearer)) => {
            headers.push(("authorization".to_owned(), format!("Bearer {}", key.expose())))
        }
        Some((key, KeyHeader::ApiKey)) => headers.push(("x-api-key".to_owned(), key.expose().to_owned())),
        None => {}
    }
    let custom = match endpoint.api {
        Api::Anthropic => environment.text("ANTHROPIC_CUSTOM_HEADERS")?.unwrap_or_default(),
        Api::OpenAi => String::new(),
    };
    let lines =
        custom.lines().filter(|line| !line.trim().is_empty()).map(|line| ("ANTHROPIC_CUSTOM_HEADERS", line));
    for (place, line) in lines.chain(args.headers.iter().map(|line| ("--header", line.as_str()))) {
        let (name, value) = header(line).ok_or_else(|| {
            Error::Usage(format!("{place}: a header is written 'Name: value', in printable ASCII"))
        })?;
        if ["content-length", "transfer-encoding", "host", "content-type", "accept-encoding"]
            .contains(&name.as_str())
        {
            return Err(Error::Usage(format!("{place}: the header {name} is cotter's own to set")));
        }
        // The last one said wins, so that a key can be replaced by a header of one's own.
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value));
    }
    Ok(headers)
}

/// What of the headers must not be shown: their values, and a bearer's token by itself. Short values are
/// words that stand in any text, and so are longer ones of letters alone, such as `assistant`, if they are no key.
fn secrets(headers: &[(String, String)]) -> Vec<Secret> {
    let is_key = |name: &str| ["authorization", "x-api-key"].contains(&name);
    let is_word = |value: &str| value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let values = headers.iter().filter(|(name, value)| is_key(name) || !is_word(value));
    let values = values.map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
    values.filter(|value| value.len() >= LEAST_SECRET_BYTES).map(|value| Secret(value.to_owned())).collect()
}

/// The keys in the environment: a replay needs none, and yet shows none.
fn keys(environment: &Environment) -> Vec<Secret> {
    let names = ["OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];
    let found = names.iter().filter_map(|name| environment.key(name).ok().flatten());
    found.filter(|key| key.expose().len() >= LEAST_SECRET_BYTES).collect()
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let (name, value) = (name.trim(), value.trim());
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let sound = !name.is_empty()
        && name.bytes().all(token)
        && value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'));
    sound.then(|| (name.to_ascii_lowercase(), value.to_owned()))
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
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment(variables.iter().map(|(name, value)| (name.into(), value.into())).collect())
    }

    fn chosen(typed: &Args, variables: &[(&str, &str)]) -> (Api, String, Option<String>) {
        let endpoint = endpoint(typed, &environment(variables)).unwrap();
        (endpoint.api, endpoint.base_url, endpoint.key.map(|(key, _)| key.expose().to_owned()))
    }

    fn key(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    const ALL: &[(&str, &str)] =
        &[("OPENROUTER_API_KEY", "r"), ("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o")];

    #[test]
    fn the_first_key_set_decides_in_the_documented_order() {
        let none = Args::default();
        assert_eq!(chosen(&none, ALL), (Api::OpenAi, OPENROUTER.to_owned(), key("r")));
        assert_eq!(chosen(&none, &ALL[1..]), (Api::Anthropic, ANTHROPIC.to_owned(), key("a")));
        assert_eq!(chosen(&none, &ALL[2..]), (Api::OpenAi, OPENAI.to_owned(), key("o")));
        let url = ("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
        assert_eq!(chosen(&none, &[url]), (Api::OpenAi, url.1.to_owned(), None));
        let error = endpoint(&none, &environment(&[("OPENAI_API_KEY", "")])).unwrap_err();
        assert_eq!(error.to_string(), NO_KEY);
    }

    #[test]
    fn flags_decide_over_the_environment() {
        let anthropic = Args { api: key("anthropic"), ..Args::default() };
        assert_eq!(chosen(&anthropic, ALL).2, key("a"));
        let typed = Args { base_url: key("https://h/v1"), ..Args::default() };
        assert_eq!(chosen(&typed, ALL), (Api::OpenAi, "https://h/v1".to_owned(), key("o")));
        assert_eq!(chosen(&typed, &ALL[..2]).2, None, "no key goes to a server that is not its own");
        let openrouter = Args { base_url: key("https://openrouter.ai/api/v1"), ..Args::default() };
        assert_eq!(chosen(&openrouter, ALL).2, key("r"));
        let evil = Args { base_url: key("https://openrouter.ai.evil.example/v1"), ..Args::default() };
        assert_eq!(chosen(&evil, &ALL[..1]).2, None);
    }

    #[test]
    fn base_urls_are_checked_and_never_shown_with_a_password() {
        for (url, host) in [("https://H:1/v1", "h"), ("http://[::1]:8080", "::1"), ("http://a?x=1", "a")] {
            assert_eq!(host_of(url).unwrap(), host);
        }
        assert_eq!(
            host_of("ftp://h").unwrap_err().to_string(),
            "the base URL \"ftp://h\" cannot be used: it starts with http:// or https://"
        );
        assert_eq!(
            host_of("https://me:secret@h/v1?key=secret").unwrap_err().to_string(),
            "the base URL \"https://h/v1\" cannot be used: \
             it holds a name or password: pass the key by its variable or --api-key-file"
        );
        assert!(host_of("https:///v1").is_err() && host_of("https://a b/").is_err());
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret("key".to_owned())), "(secret)");
    }

    #[test]
    fn headers_are_checked_and_the_last_one_wins() {
        assert_eq!(header("X-A:  b "), Some(("x-a".to_owned(), "b".to_owned())));
        for bad in ["no colon", ": x", "a b: c", "x: \u{e9}", "x: a\nb: c"] {
            assert_eq!(header(bad), None, "{bad:?}");
        }
        let typed = Args { headers: vec!["Authorization: Basic x".to_owned()], ..Args::default() };
        let endpoint = endpoint(&typed, &environment(&ALL[2..])).unwrap();
        let headers = headers(&typed, &environment(&[]), &endpoint).unwrap();
        assert_eq!(headers, [("authorization".to_owned(), "Basic x".to_owned())]);
    }

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
