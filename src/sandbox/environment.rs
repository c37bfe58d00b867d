//! What tools get of the environment: nothing that looks like a credential, and no folder to run programs
//! from that depends on where they stand.
//!
//! Pure: names and values in, names and values out.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use super::policy::Mode;

/// A key shorter than this is a word that stands in any value.
pub const LEAST_SECRET_BYTES: usize = 8;

/// What decides about a variable beside itself.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The key that cotter uses. It is withheld under every name.
    pub own_key: Option<&'a str>,
    /// With the mode `Off`, credentials that are not cotter's own are passed on.
    pub mode: Mode,
    /// The variables that are passed on though they look like credentials.
    pub passed: &'a [String],
}

/// Where programs lie if `PATH` names no folder. Shells take an empty one for the current folder, and look
/// there too if there is none.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The environment that cotter was given, of which tools get their part when the first of them starts: a run
/// that starts none pays nothing for finding out what looks like a credential.
#[derive(Clone)]
pub struct Inherited {
    variables: Rc<BTreeMap<OsString, OsString>>,
    own_key: Option<String>,
    mode: Mode,
    passed: Vec<String>,
}

impl Inherited {
    /// These variables, under these rules.
    pub fn new(variables: &Rc<BTreeMap<OsString, OsString>>, rules: &Rules) -> Inherited {
        Inherited {
            variables: Rc::clone(variables),
            own_key: rules.own_key.map(str::to_owned),
            mode: rules.mode,
            passed: rules.passed.to_vec(),
        }
    }

    /// The variables for tools.
    pub fn for_tools(&self) -> Vec<(OsString, OsString)> {
        for_tools(self.variables.iter(), &self.rules())
    }

    /// One of them.
    pub fn for_tools_named(&self, wanted: &str) -> Option<OsString> {
        let variables = self.variables.iter().filter(|(name, _)| *name == wanted);
        let kept = for_tools(variables, &self.rules());
        kept.into_iter().find(|(name, _)| name == wanted).map(|(_, value)| value)
    }

    fn rules(&self) -> Rules<'_> {
        Rules { own_key: self.own_key.as_deref(), mode: self.mode, passed: &self.passed }
    }
}

/// No value is shown: some are secret.
impl fmt::Debug for Inherited {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.variables.keys()).finish()
    }
}

fn for_tools<'a>(
    variables: impl Iterator<Item = (&'a OsString, &'a OsString)>,
    rules: &Rules,
) -> Vec<(OsString, OsString)> {
    let kept = variables.filter(|(name, value)| rules.keep(name, value));
    let (paths, mut kept): (Vec<_>, Vec<_>) =
        kept.map(|(name, value)| (name.clone(), value.clone())).partition(|(name, _)| name == "PATH");
    let path = paths.first().map(|(_, value)| absolute_entries(value)).filter(|path| !path.is_empty());
    kept.push(("PATH".into(), path.unwrap_or_else(|| USUAL_PATH.into())));
    kept
}

/// By which variables cotter is given a key.
const OWN: [&str; 9] = [
    "OPENROUTER_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY_FILE",
    "ANTHROPIC_API_KEY_FILE",
    "ANTHROPIC_AUTH_TOKEN_FILE",
    "OPENAI_API_KEY_FILE",
    "ANTHROPIC_CUSTOM_HEADERS",
];

/// Where the user's shell stands and stood. A command's shell would believe it, and tell the workspace by the
/// name of a symbolic link to it.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];

impl Rules<'_> {
    fn keep(&self, name: &OsStr, value: &OsStr) -> bool {
        if FOLDERS.iter().any(|folder| name == *folder) || self.holds_own_key(value) {
            return false;
        }
        if self.passed.iter().any(|passed| name == passed.as_str()) {
            return true;
        }
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        let is_own = OWN.contains(&&*name);
        !is_own && (self.mode == Mode::Off || !(is_secret_name(&name, &value) || is_secret_value(&value)))
    }

    fn holds_own_key(&self, value: &OsStr) -> bool {
        let Some(key) = self.own_key else { return false };
        // A server of one's own gets a word such as `local` for a key, which PATH holds by chance.
        let is_secret = key.len() >= LEAST_SECRET_BYTES;
        let (key, value) = (key.as_bytes(), value.as_bytes());
        value == key || (is_secret && value.windows(key.len()).any(|window| window == key))
    }
}

fn absolute_entries(path: &OsStr) -> OsString {
    let entries: Vec<&[u8]> =
        path.as_bytes().split(|byte| *byte == b':').filter(|entry| entry.starts_with(b"/")).collect();
    OsStr::from_bytes(&entries.join(&b':')).to_owned()
}

/// Names that do not say it by one of their words: sockets and files that open something.
const SECRET_NAMES: [&str; 9] = [
    "BW_SESSION",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "KUBECONFIG",
    "MYSQL_PWD",
    "NETRC",
    "PGPASSFILE",
    "SSHPASS",
];

/// How names begin that hold the key of an open vault.
const SECRET_BEGINNINGS: [&str; 1] = ["OP_SESSION_"];

/// Words that name a credential wherever they stand in a name.
const SECRET_WORDS: [&str; 17] = [
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "OAUTH",
    "COOKIE",
    "JWT",
];

/// Words that do so only as the last one: elsewhere they mean many things.
const SECRET_LAST_WORDS: [&str; 4] = ["PAT", "PWD", "DSN", "PSK"];

/// What a longer word without underscores ends with, such as `PGPASSWORD` and `APIKEY`.
const SECRET_ENDS: [&str; 12] = [
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "OAUTH",
];

/// Words that end with `PASS`, as `MYPASS` does, and mean no password.
const NO_PASSWORDS: [&str; 6] = ["COMPASS", "BYPASS", "SURPASS", "TRESPASS", "OVERPASS", "UNDERPASS"];

/// Whether a variable's name says that it holds a credential. A value that cannot be one is none.
fn is_secret_name(name: &str, value: &str) -> bool {
    let words = words(name);
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let Some(last) = words.iter().rfind(|word| !is_number(word)) else { return false };
    if is_switch(value) || (is_number(value) && last == "TOKENS") {
        return false;
    }
    let name = name.to_ascii_uppercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || (last.ends_with("PASS") && !NO_PASSWORDS.iter().any(|word| last.ends_with(word)))
        || SECRET_LAST_WORDS.contains(&last.as_str())
        || words.iter().any(|word| {
            SECRET_WORDS.contains(&word.as_str()) || SECRET_ENDS.iter().any(|end| word.ends_with(end))
        })
}

/// Nothing, yes or no.
fn is_switch(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    ["", "0", "1", "true", "false", "yes", "no", "on", "off"].contains(&value.as_str())
}

/// The words of a name in upper case: `npmAuthToken`, `NPM_AUTH_TOKEN`, `npm.auth-token` and `NPM_AUTH_TOKEN2`
/// have the same.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_lower = false;
    for character in name.chars() {
        let starts_word = character.is_ascii_uppercase() && before_is_lower;
        if starts_word || !character.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if character.is_ascii_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.push(character.to_ascii_uppercase());
        }
        before_is_lower = character.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words.into_iter().map(without_number).collect()
}

/// A word without the digits at its end, if there is more to it. Auth0 is the name of a company.
fn without_number(mut word: String) -> String {
    let length = word.trim_end_matches(|character: char| character.is_ascii_digit()).len();
    if length > 0 && word != "AUTH0" {
        word.truncate(length);
    }
    word
}

/// How keys of well-known services begin.
const KEY_BEGINNINGS: [&str; 34] = [
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "whsec_",
    "gsk_",
    "xai-",
    "hf_",
    "r8_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "dop_v1_",
    "shpat_",
    "tskey-",
    "eyJ",
];

/// The shortest key there is behind such a beginning.
const LEAST_KEY_BYTES: usize = 16;

/// What stands in texts that carry a credential, in lower case.
const SECRET_PARTS: [&str; 9] = [
    "//hooks.slack.com/",
    "/api/webhooks/",
    ".webhook.office.com/",
    "private key-----",
    "authorization:",
    "password=",
    "accountkey=",
    "sharedaccesskey=",
    "age-secret-key-1",
];

/// Whether a value is a credential, or holds one.
fn is_secret_value(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    SECRET_PARTS.iter().any(|part| lower.contains(part))
        || KEY_BEGINNINGS.iter().any(|beginning| holds_key(value, beginning))
        || holds_password_in_url(value)
}

/// Whether a word of the value begins like this and goes on like a key: long, and with a digit.
fn holds_key(value: &str, beginning: &str) -> bool {
    value.match_indices(beginning).any(|(at, _)| {
        let inside_word = value[..at].ends_with(|character: char| character.is_ascii_alphanumeric());
        let in_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
        let rest: Vec<u8> = value.bytes().skip(at + beginning.len()).take_while(in_key).collect();
        !inside_word && rest.len() >= LEAST_KEY_BYTES && rest.iter().any(u8::is_ascii_digit)
    })
}

/// Whether there is a URL with a password in it; for HTTP a name alone is one, as package registries have it.
fn holds_password_in_url(value: &str) -> bool {
    value.match_indices("://").any(|(at, separator)| {
        let authority = value[at + separator.len()..].split(['/', '?', '#', ' ', '"', '\'']).next();
        let Some((user, _)) = authority.and_then(|authority| authority.rsplit_once('@')) else {
            return false;
        };
        match user.split_once(':') {
            Some((_, password)) => !password.is_empty(),
            None => !user.is_empty() && (value[..at].ends_with("http") || value[..at].ends_with("https")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { own_key: None, mode: Mode::WorkspaceWrite, passed: &[] };

    /// The names that are kept of these variables.
    fn kept(variables: &[(&str, &str)], rules: &Rules) -> Vec<String> {
        let owned: Vec<(OsString, OsString)> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let kept = for_tools(owned.iter().map(|(name, value)| (name, value)), rules);
        let names = kept.into_iter().map(|(name, _)| name.into_string().unwrap());
        // PATH is always there.
        names.filter(|kept| variables.iter().any(|(name, _)| name == kept)).collect()
    }

    #[test]
    fn a_name_that_says_credential_is_withheld() {
        for name in [
            "API_KEY",
            "STRIPE_KEY",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "GITHUB_TOKEN",
            "NPM_TOKEN",
            "npm_config__authToken",
            "npm_config_//registry.npmjs.org/:_authToken",
            "NPM_CONFIG__AUTH",
            "DOCKER_AUTH_CONFIG",
            "KUBECONFIG",
            "SSH_AUTH_SOCK",
            "GPG_AGENT_INFO",
            "PGPASSWORD",
            "MYSQL_PWD",
            "DB_PASS",
            "SSHPASS",
            "GH_PAT",
            "SENTRY_DSN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "RESTIC_PASSWORD",
            "BORG_PASSPHRASE",
            "DJANGO_SECRET",
            "secretKey",
            "MY_APIKEY",
            "GITLABTOKEN",
            "SESSION_COOKIE",
            "CARGO_REGISTRIES_MINE_TOKEN",
            "AZURE_CLIENT_SECRET",
            "OPENAI_API_KEY",
            "ANTHROPIC_CUSTOM_HEADERS",
            "OPENROUTER_API_KEY_FILE",
            "DB_PASSWORD1",
            "API_KEY2",
            "DB_PASS_2",
            "MYPASS1",
            "MYPASS",
            "BW_SESSION",
            "OP_SESSION_me",
        ] {
            assert_eq!(kept(&[(name, "x y z")], &RULES), [] as [&str; 0], "{name}");
        }
    }

    /// What tools get for PATH.
    fn path(variables: &[(&str, &str)]) -> OsString {
        let owned: Vec<(OsString, OsString)> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let kept = for_tools(owned.iter().map(|(name, value)| (name, value)), &RULES);
        kept.into_iter().find(|(name, _)| name == "PATH").unwrap().1
    }

    #[test]
    fn the_path_names_absolute_folders_and_never_none() {
        for (value, expected) in [
            ("/bin:/usr/bin", "/bin:/usr/bin"),
            (".:/bin::bin:./bin:/b:", "/bin:/b"),
            ("", USUAL_PATH),
            (":", USUAL_PATH),
            ("bin:.", USUAL_PATH),
        ] {
            assert_eq!(path(&[("PATH", value)]), expected, "{value}");
        }
        assert_eq!(path(&[]), USUAL_PATH);
    }

    #[test]
    fn a_name_that_only_sounds_like_it_is_kept() {
        for (name, value) in [
            ("KEYBOARD", "us"),
            ("LESSKEY", "/h/.less"),
            ("TOKENIZERS_PARALLELISM", "maybe"),
            ("SSH_TTY", "/dev/pts/1"),
            ("SSH_CONNECTION", "::1 4 ::1 22"),
            ("GPG_TTY", "/dev/pts/1"),
            ("MONKEY", "x"),
            ("HOCKEY_TEAM", "x"),
            ("KEYMAP", "x"),
            ("AUTHOR", "x"),
            ("GIT_AUTHOR_NAME", "A Name"),
            ("COMPASS", "north"),
            ("LOW_COMPASS2", "north"),
            ("AUTH0_DOMAIN", "example.org"),
            ("DESKTOP_SESSION", "plain"),
            ("PATH2", "/b"),
            ("7", "x"),
            ("BYPASS_LIST", "x"),
            ("PATH_TO_SECRETARY", "x"),
            ("PATTERN", "x"),
            ("PASS_THROUGH", "x"),
            ("MAX_TOKENS", "4096"),
            ("DISABLE_AUTH", "true"),
            ("FORCE_COLOR", "1"),
            ("USE_SSH_KEY", "no"),
            ("PASSWORD", ""),
            ("AWS_REGION", "eu"),
            ("HOME", "/h"),
            ("LS_COLORS", "*.key=00;90:*.tar=01;31"),
            ("XDG_SESSION_ID", "4"),
        ] {
            assert_eq!(kept(&[(name, value)], &RULES), [name]);
        }
    }

    #[test]
    fn a_value_that_is_a_credential_is_withheld() {
        for value in [
            "sk-ant-api03-abcdefgh12345678",
            "sk-or-v1-0123456789abcdef0",
            "ghp_0123456789abcdefABCD",
            "glpat-0123456789abcdefABCD",
            "github_pat_0123456789abcdef",
            "xoxb-1234567890-abcdefgh",
            "AKIA0123456789ABCDEF",
            "hf_0123456789abcdefABCD",
            "AIzaSyA-0123456789abcdefghij",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
            "note: ghp_0123456789abcdefABCD.",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3",
            "postgres://me:pw@host/db",
            "redis://:pw@host",
            "https://me:pw@proxy:8080",
            "http://token@registry/simple",
            "a=b https://x:y@h c",
            "Authorization: Basic eA==",
            "Server=s;Password=pw;",
            "DefaultEndpointsProtocol=https;AccountKey=x",
            "AGE-SECRET-KEY-1QQ",
            "https://hooks.slack.com/services/T0/B0/x",
            "https://discord.com/api/webhooks/1/x",
            "https://me.webhook.office.com/webhookb2/x",
        ] {
            assert_eq!(kept(&[("PLAIN", value)], &RULES), [] as [&str; 0], "{value}");
        }
    }

    #[test]
    fn a_value_that_only_resembles_one_is_kept() {
        for value in [
            "/mnt/disk-image-2024-of-the-archive1",
            "sk-",
            "sk-learn",
            "task-0123456789abcdefgh",
            "https://example.org/a@b",
            "ssh://git@github.com/x",
            "http://proxy:8080",
            "https://[::1]:8080/",
            "eyJ",
            "-----BEGIN CERTIFICATE-----",
            "AKIA",
            "me@example.org",
            "a:b@c",
            "postgres://me@host/db",
        ] {
            assert_eq!(kept(&[("PLAIN", value)], &RULES), ["PLAIN"], "{value}");
        }
    }

    #[test]
    fn the_own_key_is_withheld_in_every_mode_and_under_every_name() {
        let variables = [
            ("OPENAI_API_KEY", "k-1234567890"),
            ("OTHER", "x k-1234567890"),
            ("GITHUB_TOKEN", "t"),
            ("PWD", "/link"),
            ("HOME", "/h"),
        ];
        let passed = ["OTHER".to_owned(), "OPENAI_API_KEY".to_owned()];
        let own_key = Some("k-1234567890");
        let kept_in = |mode, passed| kept(&variables, &Rules { own_key, mode, passed });
        assert_eq!(kept_in(Mode::WorkspaceWrite, &[]), ["HOME"]);
        assert_eq!(kept_in(Mode::Off, &[]), ["GITHUB_TOKEN", "HOME"]);
        assert_eq!(kept_in(Mode::ReadOnly, &passed), ["HOME"]);
        // A key of another API may be passed on by its name.
        let rules = Rules { own_key: None, mode: Mode::ReadOnly, passed: &passed };
        assert_eq!(kept(&variables, &rules), ["OPENAI_API_KEY", "OTHER", "HOME"]);
    }

    #[test]
    fn a_word_in_place_of_a_key_takes_no_variable_that_only_holds_it() {
        let variables = [("OPENAI_API_KEY", "local"), ("MY_COPY", "local"), ("PATH", "/usr/local/bin")];
        assert_eq!(kept(&variables, &Rules { own_key: Some("local"), ..RULES }), ["PATH"]);
    }

    #[test]
    fn a_path_has_absolute_entries_alone() {
        let (name, value) = ("PATH".into(), "/bin:.::rel:/usr/bin".into());
        let kept = for_tools([(&name, &value)].into_iter(), &RULES);
        assert_eq!(kept, [(name.clone(), OsString::from("/bin:/usr/bin"))]);
    }
}
