//! The environment of the run, and the secrets in it. Nothing else reads a variable.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::error::Error;
use crate::named_file;

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
    (
        "ANTHROPIC_DEFAULT_SONNET_MODEL, ANTHROPIC_DEFAULT_OPUS_MODEL, ANTHROPIC_DEFAULT_HAIKU_MODEL, ANTHROPIC_DEFAULT_FABLE_MODEL",
        "the model that `sonnet`, `opus`, `haiku` or `fable` stands for (else the newest this version knows)",
    ),
    ("ANTHROPIC_CUSTOM_HEADERS", "further headers for Anthropic's API, one `Name: value` a line"),
    ("COTTER_CONFIG", "a file of flags that come before those typed, one argument a line, # for comments"),
    ("COTTER_NOW", "the time that tools see: RFC 3339 or seconds since 1970"),
    ("SOURCE_DATE_EPOCH", "the same in seconds since 1970, used only with --replay"),
    ("COTTER_RATES_URL", "where get_exchange_rate asks (default https://api.exchangerate-api.com/v4/latest)"),
    ("XDG_STATE_HOME", "where session files are kept, in cotter/sessions (default ~/.local/state)"),
    ("XDG_CONFIG_HOME", "where your own AGENTS.md and skills are, in cotter (default ~/.config)"),
    ("SSL_CERT_FILE", "a PEM bundle of certificates to trust in place of the built-in ones"),
    (
        "HTTPS_PROXY, http_proxy, ALL_PROXY, NO_PROXY",
        "proxies by scheme, as curl has them; never used for loopback",
    ),
    ("NO_COLOR", "no colour on a terminal"),
];

/// A text that is never shown: not in errors, not by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub(super) String);

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
pub fn hide(text: impl Into<String>, secrets: &[Secret]) -> String {
    secrets.iter().flat_map(Secret::forms).fold(text.into(), |text, form| match text.contains(&form) {
        true => text.replace(&form, HIDDEN),
        false => text,
    })
}

/// What stands where a secret stood.
pub const HIDDEN: &str = "(secret)";

/// The environment at the start of the run. Tools get their part of the same.
pub struct Environment(pub(super) Rc<BTreeMap<OsString, OsString>>);

impl Environment {
    /// What this process was given.
    pub fn of_process() -> Environment {
        Environment(Rc::new(std::env::vars_os().collect()))
    }

    /// The variables alone whose names begin so.
    pub fn begun_with(&self, start: &str) -> Environment {
        let named = self.0.iter().filter(|(name, _)| name.as_encoded_bytes().starts_with(start.as_bytes()));
        Environment(Rc::new(named.map(|(name, value)| (name.clone(), value.clone())).collect()))
    }

    /// A variable's value; an empty one counts as unset.
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable that holds an absolute path.
    pub fn absolute(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// A variable that must be text.
    pub fn text(&self, name: &str) -> Result<Option<String>, Error> {
        match self.raw(name) {
            None => Ok(None),
            Some(value) => match value.to_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(Error::Usage(format!("the variable {name} is not UTF-8"))),
            },
        }
    }

    /// A key from the variable or from the file that `NAME_FILE` names.
    pub fn key(&self, name: &str) -> Result<Option<Secret>, Error> {
        if let Some(text) = self.text(name)? {
            return secret(&text, &format!("the variable {name}")).map(Some);
        }
        match self.raw(&format!("{name}_FILE")) {
            Some(path) => key_file(Path::new(path)).map(Some),
            None => Ok(None),
        }
    }
}

/// The key in a file.
pub fn key_file(path: &Path) -> Result<Secret, Error> {
    const MOST_BYTES: usize = 64 * 1024;
    let bytes = named_file::read(path, MOST_BYTES).map_err(|error| {
        Error::Credentials(format!("cannot read the key file \"{}\": {error}", path.display()))
    })?;
    // What is no text is no key either.
    secret(&String::from_utf8_lossy(&bytes), &format!("the key file \"{}\"", path.display()))
}

fn secret(text: &str, place: &str) -> Result<Secret, Error> {
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::Credentials(format!("{place} holds no usable key: a key is one word of ASCII")));
    }
    Ok(Secret(key.to_owned()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// An environment of these variables alone.
    pub fn environment(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Environment(Rc::new(variables.collect()))
    }

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Secret("key".to_owned())), "(secret)");
    }
}
