//! Which API is asked, where, for which model, and with which key and headers.
//!
//! A key goes to no server but its own.

use crate::args::Args;
use crate::error::Error;
use crate::http::net;
use crate::http::recording;
use crate::provider::{Api, Host, aliases};
use crate::sandbox::environment::LEAST_SECRET_BYTES;

use super::variables::{Environment, Secret, key_file};

/// How the key is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyHeader {
    Bearer,
    ApiKey,
}

/// An API to talk to.
#[derive(Debug)]
pub struct Endpoint {
    pub api: Api,
    pub base_url: String,
    pub key: Option<(Secret, KeyHeader)>,
    default_model: Option<String>,
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
pub fn endpoint(args: &Args, environment: &Environment) -> Result<Endpoint, Error> {
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
        (false, _) if environment.raw("CLAUDE_CODE_OAUTH_TOKEN").is_some() => Err(Error::Credentials(
            format!("CLAUDE_CODE_OAUTH_TOKEN is for claude alone, and there is {NO_KEY}"),
        )),
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

/// The variable or flag that the key comes from, or `none`.
pub fn key_source(args: &Args, endpoint: &Endpoint) -> &'static str {
    let at_openrouter = || host_of(&endpoint.base_url).is_ok_and(|host| Host::of(&host) == Host::OpenRouter);
    match (&endpoint.key, endpoint.api) {
        (None, _) => "none",
        _ if args.api_key_file.is_some() => "--api-key-file",
        (Some((_, KeyHeader::Bearer)), Api::Anthropic) => "ANTHROPIC_AUTH_TOKEN",
        (Some(_), Api::Anthropic) => "ANTHROPIC_API_KEY",
        (Some(_), Api::OpenAi) if endpoint.default_model.is_some() || at_openrouter() => "OPENROUTER_API_KEY",
        (Some(_), Api::OpenAi) => "OPENAI_API_KEY",
    }
}

/// The API that a recording was made with: no key, and no request ever leaves.
pub fn replayed_endpoint(args: &Args, recorded: &recording::Origin) -> Result<Endpoint, Error> {
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
pub fn host_of(base_url: &str) -> Result<String, Error> {
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

/// Refuses the address of a request, which documentation of servers often shows in place of the base URL.
///
/// # Errors
///
/// `Usage` names the part to leave out.
pub fn check_base_url(base_url: &str) -> Result<(), Error> {
    let address = base_url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    for end in ["/chat/completions", "/messages"] {
        if let Some(base) = address.strip_suffix(end) {
            return Err(Error::Usage(format!(
                "the base URL \"{}\" is the address of a request: leave {end} out, as in {}",
                net::shown(base_url),
                net::shown(base)
            )));
        }
    }
    Ok(())
}

pub fn model(
    args: &Args,
    environment: &Environment,
    endpoint: &Endpoint,
    recorded: Option<&recording::Origin>,
) -> Result<String, Error> {
    let host = Host::of(&host_of(&endpoint.base_url)?);
    let typed = args.model.as_ref().filter(|name| *name != "default");
    if let Some(name) = typed {
        return full_id(name, environment, endpoint.api, host);
    }
    if let Some(recorded) = recorded {
        return Ok(recorded.model.clone());
    }
    if let Some(name) = environment.text("COTTER_MODEL")?.or_else(|| endpoint.default_model.clone()) {
        return full_id(&name, environment, endpoint.api, host);
    }
    match args.dry_run {
        // The server may list exactly one model; whoever asks first finds out.
        false => Ok(String::new()),
        true => Err(Error::Usage(
            "no model: pass --model or set COTTER_MODEL (--dry-run asks no server)".to_owned(),
        )),
    }
}

/// The id that a name of a model stands for: itself, unless it is a short one that this server does not know.
///
/// # Errors
///
/// `Usage` if the variable that names another model is no text.
pub fn full_id(name: &str, environment: &Environment, api: Api, host: Host) -> Result<String, Error> {
    let id = match aliases::id_of(name, api, host) {
        Some((id, variable)) => environment.text(variable)?.unwrap_or_else(|| id.to_owned()),
        None => name.to_owned(),
    };
    Ok(match api {
        Api::Anthropic => aliases::without_window(&id).to_owned(),
        Api::OpenAi => id,
    })
}

/// Names of models as a client gives them while the run goes on.
pub struct ModelNames {
    /// The variables that name models, and nothing else: no key is kept here.
    environment: Environment,
    api: Api,
    host: Host,
}

impl ModelNames {
    /// Names for this server.
    pub fn new(environment: &Environment, api: Api, host: Host) -> ModelNames {
        ModelNames { environment: environment.begun_with(aliases::VARIABLES_BEGIN), api, host }
    }

    /// The id that a name stands for, as that of `--model` does.
    pub fn id_of(&self, name: &str) -> String {
        // A variable that is no text names no model.
        full_id(name, &self.environment, self.api, self.host).unwrap_or_else(|_| name.to_owned())
    }
}

/// The key's header, then those asked for, which may not repeat what the protocol sets.
pub fn headers(
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
    let betas = match (args.betas.is_empty(), endpoint.api) {
        (true, _) => String::new(),
        (false, Api::Anthropic) => format!("anthropic-beta: {}", args.betas.join(",")),
        (false, Api::OpenAi) => {
            return Err(Error::Usage(
                "--betas is about Anthropic's API, and another is asked: leave it out, or pass --api anthropic"
                    .to_owned(),
            ));
        }
    };
    let lines =
        custom.lines().filter(|line| !line.trim().is_empty()).map(|line| ("ANTHROPIC_CUSTOM_HEADERS", line));
    let betas = betas.lines().map(|line| ("--betas", line));
    for (place, line) in lines.chain(betas).chain(args.headers.iter().map(|line| ("--header", line.as_str())))
    {
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
pub fn secrets(headers: &[(String, String)]) -> Vec<Secret> {
    let is_key = |name: &str| ["authorization", "x-api-key"].contains(&name);
    let is_word = |value: &str| value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let values = headers.iter().filter(|(name, value)| is_key(name) || !is_word(value));
    let values = values.map(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value));
    values.filter(|value| value.len() >= LEAST_SECRET_BYTES).map(|value| Secret(value.to_owned())).collect()
}

/// The keys in the environment: a replay needs none, and yet shows none.
pub fn keys(environment: &Environment) -> Vec<Secret> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::variables::tests::environment;

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
    fn a_short_name_of_a_model_is_its_id_or_what_its_variable_says() {
        let asked = |typed: Option<&str>, variables: &[(&str, &str)]| {
            let args = Args { model: typed.map(str::to_owned), ..Args::default() };
            let environment = environment(variables);
            model(&args, &environment, &endpoint(&args, &environment).unwrap(), None).unwrap()
        };
        let key = ("ANTHROPIC_API_KEY", "a");
        assert_eq!(asked(Some("sonnet"), &[key]), "claude-sonnet-5-5");
        assert_eq!(asked(Some("sonnet"), &[key, ("ANTHROPIC_DEFAULT_SONNET_MODEL", "glm")]), "glm");
        assert_eq!(asked(None, &[key, ("ANTHROPIC_MODEL", "opus")]), "claude-opus-5-5");
        assert_eq!(asked(Some("default"), &[key, ("ANTHROPIC_MODEL", "m")]), "m");
        assert_eq!(asked(Some("haiku"), &[("OPENROUTER_API_KEY", "r")]), "anthropic/claude-haiku-5.5");
        assert_eq!(asked(Some("haiku"), &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]), "haiku");
    }

    #[test]
    fn betas_are_a_header_of_anthropics_api_alone() {
        let args = Args { betas: vec!["a-1,b-2".to_owned(), "c-3".to_owned()], ..Args::default() };
        let sent = |variables: &[(&str, &str)]| {
            let environment = environment(variables);
            headers(&args, &environment, &endpoint(&args, &environment).unwrap())
        };
        let sent_to_anthropic = sent(&[("ANTHROPIC_API_KEY", "a")]).unwrap();
        assert_eq!(sent_to_anthropic[1], ("anthropic-beta".to_owned(), "a-1,b-2,c-3".to_owned()));
        assert_eq!(
            sent(&[("OPENAI_API_KEY", "o")]).unwrap_err().to_string(),
            "--betas is about Anthropic's API, and another is asked: leave it out, or pass --api anthropic"
        );
    }

    #[test]
    fn the_login_of_claude_is_no_key() {
        let error =
            endpoint(&Args::default(), &environment(&[("CLAUDE_CODE_OAUTH_TOKEN", "x")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("CLAUDE_CODE_OAUTH_TOKEN is for claude alone, and there is {NO_KEY}")
        );
    }

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
}
