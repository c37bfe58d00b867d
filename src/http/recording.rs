//! Recorded exchanges: `NN.request.json` is a request's body, pretty-printed; `NN.response.http` a status
//! line, the headers that matter and the body as it came, an event stream still an event stream.
//!
//! No key, no cookie and no path of the machine is ever written. Numbers have at least two digits and
//! are ordered by value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use serde_json::Value;

use super::net::shown;
use crate::config::{HIDDEN, Secret, hide};
use crate::error::Error;
use crate::named_file;
use crate::provider::Api;

/// The response headers that a later reading needs.
const KEPT_HEADERS: &[&str] = &[
    "content-type",
    "location",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "x-generation-id",
    "x-request-id",
    "x-should-retry",
];

/// Which API and host a recording was made with: a header of its responses.
const ORIGIN_HEADER: &str = "x-cotter-origin";

/// How many tokens the model reads, where its server's list said it: a replay has no list to ask for.
const WINDOW_HEADER: &str = "x-cotter-context-window";

/// Where a recording comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The protocol.
    pub api: Api,
    /// The host's name, which decides over a few of the request's details.
    pub host: String,
    /// The model asked.
    pub model: String,
}

/// Writes exchanges into a folder.
pub struct Recorder {
    /// Its path, for messages.
    folder: PathBuf,
    /// The folder itself. By its path a tool could lead cotter, which nothing contains, to another one: where
    /// the folder lies in the workspace, it can put a symbolic link in its place.
    opened: OwnedFd,
    origin: String,
    /// How many tokens the model reads, where the server's list of models said it.
    pub window: Option<u64>,
    secrets: Vec<Secret>,
    number: usize,
    file: Option<File>,
    /// The end of what came, held back because a secret may have begun in it.
    held: Vec<u8>,
}

impl Recorder {
    /// Makes the folder if need be.
    ///
    /// # Errors
    ///
    /// `Usage` if it cannot be made or already holds a recording.
    pub fn create(folder: &Path, api: Api, host: &str, secrets: Vec<Secret>) -> Result<Recorder, Error> {
        let unusable = |error: std::io::Error| {
            Error::Usage(format!("cannot record into \"{}\": {error}", folder.display()))
        };
        fs::create_dir_all(folder).map_err(unusable)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened =
            rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| unusable(error.into()))?;
        let occupied = |ending| numbered(folder, ending).map(|found| !found.is_empty()).map_err(unusable);
        // A request alone would be taken for the request to a response of this run's.
        if occupied(".response.http")? || occupied(".request.json")? {
            return Err(Error::Usage(format!(
                "\"{}\" already holds a recording: remove it or choose another folder for --record",
                folder.display()
            )));
        }
        let api = match api {
            Api::OpenAi => "openai",
            Api::Anthropic => "anthropic",
        };
        Ok(Recorder {
            folder: folder.to_owned(),
            opened,
            origin: format!("{api} {host}"),
            window: None,
            secrets,
            number: 0,
            file: None,
            held: Vec::new(),
        })
    }

    /// Begins an exchange, once the response's head is there.
    pub fn begin<'a>(
        &mut self,
        body: &[&[u8]],
        status: u16,
        headers: impl Iterator<Item = (&'a str, Cow<'a, str>)>,
    ) -> Result<(), Error> {
        self.end()?;
        self.number += 1;
        let request = serde_json::from_slice::<Value>(&body.concat())
            .map(|request| format!("{request:#}\n"))
            .map_err(|error| Error::Internal(format!("a request of our own is not JSON: {error}")))?;
        // A result may quote the key, as that of a file which holds it.
        self.new_file("request.json", &hide(request, &self.secrets))?;
        let mut head = format!("HTTP/1.1 {status}\n{ORIGIN_HEADER}: {}\n", self.origin);
        if let Some(window) = self.window {
            head.push_str(&format!("{WINDOW_HEADER}: {window}\n"));
        }
        for (name, value) in headers.filter(|(name, _)| KEPT_HEADERS.contains(name)) {
            match name {
                // A redirect repeats the query, which holds the key of some servers.
                "location" => head.push_str(&format!("{name}: {}\n", shown(&value))),
                _ => head.push_str(&format!("{name}: {value}\n")),
            }
        }
        head.push('\n');
        let file = self.new_file("response.http", &hide(head, &self.secrets));
        self.file = Some(file.inspect_err(|error| {
            // A request alone would keep the folder from the next recording. Where another run has made the response,
            // which is a mistake of usage, nothing is removed.
            if !matches!(error, Error::Usage(_)) {
                self.remove("request.json");
            }
        })?);
        Ok(())
    }

    /// Makes a file that begins with this text.
    fn new_file(&self, kind: &str, text: &str) -> Result<File, Error> {
        // Another run that records into the same folder must not be mixed with this one.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let path = self.path(kind);
        let created = rustix::fs::openat(&self.opened, self.name(kind), flags, Mode::from_raw_mode(0o666));
        let created = created.map_err(std::io::Error::from).map(File::from);
        let mut file = created.map_err(|error| lost(&path, &error))?;
        file.write_all(text.as_bytes()).map_err(|error| self.give_up(kind, &error))?;
        Ok(file)
    }

    /// Leaves no half of an exchange that the disk did not take: those before it are a whole recording.
    fn give_up(&self, kind: &str, error: &std::io::Error) -> Error {
        self.remove("request.json");
        self.remove("response.http");
        lost(&self.path(kind), error)
    }

    fn remove(&self, kind: &str) {
        let _ = rustix::fs::unlinkat(&self.opened, self.name(kind), AtFlags::empty());
    }

    /// Takes the next bytes of the response's body. A server that quotes the key gets it replaced.
    pub fn body(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.held.extend_from_slice(bytes);
        let mut longest = 1;
        for form in self.secrets.iter().flat_map(Secret::forms) {
            replace(&mut self.held, form.as_bytes());
            longest = longest.max(form.len());
        }
        let sure = self.held.len().saturating_sub(longest - 1);
        self.write(sure)
    }

    /// Ends the exchange: nothing more of its body will come.
    pub fn end(&mut self) -> Result<(), Error> {
        self.write(self.held.len())
    }

    fn write(&mut self, count: usize) -> Result<(), Error> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(&self.held[..count]));
        self.held.drain(..count);
        written.map_err(|error| self.give_up("response.http", &error))
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.folder.join(self.name(kind))
    }

    fn name(&self, kind: &str) -> String {
        format!("{:02}.{kind}", self.number)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // The last body may have broken off; that it cannot be written whole was told when it could not.
        let _ = self.end();
    }
}

/// Replaces a secret wherever it stands whole.
fn replace(bytes: &mut Vec<u8>, secret: &[u8]) {
    let mut from = 0;
    while let Some(at) = bytes[from..].windows(secret.len()).position(|window| window == secret) {
        bytes.splice(from + at..from + at + secret.len(), HIDDEN.bytes());
        from += at + HIDDEN.len();
    }
}

fn lost(path: &Path, error: &std::io::Error) -> Error {
    if error.kind() == std::io::ErrorKind::AlreadyExists {
        return Error::Usage(format!(
            "\"{}\" appeared while this run was recording: choose a folder of its own for each run",
            path.display()
        ));
    }
    Error::Internal(format!(
        "cannot write the recording \"{}\": {error}: make room, or leave --record out",
        path.display()
    ))
}

/// The files of a folder that are a number and this ending, by number.
fn numbered(folder: &Path, ending: &str) -> std::io::Result<BTreeMap<u64, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let number =
            name.to_str().and_then(|name| name.strip_suffix(ending)).and_then(|number| number.parse().ok());
        if let Some(number) = number {
            found.insert(number, entry.path());
        }
    }
    Ok(found)
}

/// Answers requests from a folder.
pub struct Replay {
    folder: PathBuf,
    responses: Vec<(u64, PathBuf)>,
    requests: BTreeMap<u64, PathBuf>,
    next: usize,
    strict: bool,
    secrets: Vec<Secret>,
}

/// A recorded response, its body still to be read.
pub struct Recorded {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// The rest of the file.
    pub body: BufReader<File>,
}

impl Recorded {
    /// The first value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All headers, names in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value.as_str())))
    }
}

impl Replay {
    /// Looks what there is to replay.
    ///
    /// # Errors
    ///
    /// `Usage` if the folder cannot be read or holds no response.
    pub fn open(folder: &Path, strict: bool) -> Result<Replay, Error> {
        let unusable = |error| Error::Usage(format!("cannot replay from \"{}\": {error}", folder.display()));
        let responses: Vec<_> = numbered(folder, ".response.http").map_err(unusable)?.into_iter().collect();
        if responses.is_empty() {
            return Err(Error::Usage(format!(
                "\"{}\" holds no recording: a recording has files named 01.response.http, 02.response.http, …",
                folder.display()
            )));
        }
        let requests = numbered(folder, ".request.json").map_err(unusable)?;
        Ok(Replay { folder: folder.to_owned(), responses, requests, next: 0, strict, secrets: Vec::new() })
    }

    /// Takes these keys for those of the recorded run, which wrote none down.
    pub fn keep_secret(&mut self, secrets: Vec<Secret>) {
        self.secrets = secrets;
    }

    /// Which API, host and model the recording was made with: as its first exchange says, else as the
    /// shape of its first request shows.
    pub fn origin(&self) -> Result<Origin, Error> {
        let (number, path) = &self.responses[0];
        let response = read_response(path)?;
        let request = match self.requests.get(number) {
            Some(path) => read_request(path)?,
            None => Value::Null,
        };
        let (api, host) = match response.header(ORIGIN_HEADER).and_then(|value| value.split_once(' ')) {
            Some((api, host)) => (api, host.to_owned()),
            None if request["messages"][0]["role"] == "system"
                || request["tools"][0]["type"] == "function" =>
            {
                ("openai", "localhost".to_owned())
            }
            None if request["max_tokens"].is_u64() => ("anthropic", "localhost".to_owned()),
            None => ("openai", "localhost".to_owned()),
        };
        let api = if api == "anthropic" { Api::Anthropic } else { Api::OpenAi };
        Ok(Origin { api, host, model: request["model"].as_str().unwrap_or("recorded").to_owned() })
    }

    /// How many tokens the model reads, as the recorded run knew before its next request.
    pub fn next_window(&self) -> Option<u64> {
        let (_, path) = self.responses.get(self.next)?;
        read_response(path).ok()?.header(WINDOW_HEADER)?.parse().ok()
    }

    /// The response to the next request, if the request is the one that was recorded.
    ///
    /// # Errors
    ///
    /// `Replay` names the place and both values of the first difference, or says that the recording ended.
    pub fn answer(&mut self, body: &[&[u8]]) -> Result<Recorded, Error> {
        let Some((number, path)) = self.responses.get(self.next) else {
            return Err(Error::Replay(format!(
                "the recording \"{}\" ends after reply {} and the run asks for one more: record it anew with --record",
                self.folder.display(),
                self.responses.len()
            )));
        };
        self.next += 1;
        if let Some(request_path) = self.requests.get(number) {
            let body = body.concat();
            let text = hide(String::from_utf8_lossy(&body), &self.secrets);
            let now: Value = serde_json::from_str(&text)
                .map_err(|error| Error::Internal(format!("a request of our own is not JSON: {error}")))?;
            let then = read_request(request_path)?;
            let found = match self.strict {
                true => difference("", &then, &now),
                false => difference("messages", &conversation(&then), &conversation(&now)),
            };
            if let Some(found) = found {
                return Err(Error::Replay(format!(
                    "request {} differs from \"{}\" at {found}",
                    self.next,
                    request_path.display()
                )));
            }
        } else if self.strict {
            return Err(Error::Replay(format!(
                "request {} has no recording to be compared with: \"{}/{number:02}.request.json\" is missing",
                self.next,
                self.folder.display()
            )));
        }
        read_response(path)
    }
}

fn read_request(path: &Path) -> Result<Value, Error> {
    let unusable =
        |why: String| Error::Usage(format!("the recording \"{}\" cannot be used: {why}", path.display()));
    // A request is held in memory too when it is made; none that was recorded is longer.
    const MOST_BYTES: usize = 512 << 20;
    let text = named_file::read_regular(path, MOST_BYTES).map_err(|error| unusable(error.to_string()))?;
    serde_json::from_slice(&text).map_err(|error| unusable(error.to_string()))
}

fn read_response(path: &Path) -> Result<Recorded, Error> {
    let unusable =
        |why: String| Error::Usage(format!("the recording \"{}\" cannot be used: {why}", path.display()));
    let file = named_file::open_regular(path).map_err(|error| unusable(error.to_string()))?;
    let mut body = BufReader::new(file);
    // A head is short; a file that is no recording may be one endless line.
    let mut line = || -> Result<String, Error> {
        let mut line = Vec::new();
        body.by_ref()
            .take(64 * 1024)
            .read_until(b'\n', &mut line)
            .map_err(|error| unusable(error.to_string()))?;
        Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
    };
    let first = line()?;
    let status = first.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    let Some(status) = status.filter(|status| (100..1000).contains(status)) else {
        return Err(unusable("it does not begin with a status line such as HTTP/1.1 200".to_owned()));
    };
    let mut headers = Vec::new();
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(Recorded { status, headers, body })
}

/// The conversation of a request: its messages without the system's, whose wording may change from version
/// to version, and without cache marks.
fn conversation(request: &Value) -> Value {
    let mut messages = request["messages"].clone();
    if let Some(list) = messages.as_array_mut() {
        list.retain(|message| message["role"] != "system");
    }
    without_marks(&mut messages);
    messages
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.shift_remove("cache_control");
            object.values_mut().for_each(without_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        _ => {}
    }
}

/// The place and both values of the first difference.
fn difference(place: &str, then: &Value, now: &Value) -> Option<String> {
    match (then, now) {
        (Value::Object(old), Value::Object(new)) => {
            let at = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
            for (name, old_value) in old {
                match new.get(name) {
                    Some(new_value) => {
                        if let Some(found) = difference(&at(name), old_value, new_value) {
                            return Some(found);
                        }
                    }
                    None => return Some(described(&at(name), &old_value.to_string(), "(nothing)")),
                }
            }
            if let Some((name, value)) = new.iter().find(|(name, _)| !old.contains_key(*name)) {
                return Some(described(&at(name), "(nothing)", &value.to_string()));
            }
            let order = |object: &serde_json::Map<String, Value>| {
                object.keys().cloned().collect::<Vec<_>>().join(", ")
            };
            (order(old) != order(new)).then(|| described(&at("(order of members)"), &order(old), &order(new)))
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, old_value) in old.iter().enumerate() {
                let place = format!("{place}[{index}]");
                match new.get(index) {
                    Some(new_value) => {
                        if let Some(found) = difference(&place, old_value, new_value) {
                            return Some(found);
                        }
                    }
                    None => return Some(described(&place, &old_value.to_string(), "(nothing)")),
                }
            }
            let value = new.get(old.len())?;
            Some(described(&format!("{place}[{}]", old.len()), "(nothing)", &value.to_string()))
        }
        _ => (then != now).then(|| described(place, &then.to_string(), &now.to_string())),
    }
}

/// Both values from shortly before the first character that differs.
fn described(place: &str, then: &str, now: &str) -> String {
    let common = then.chars().zip(now.chars()).take_while(|(old, new)| old == new).count();
    let from = common.saturating_sub(20);
    let shown = |text: &str| {
        let part: String = text.chars().skip(from).take(120).collect();
        let before = if from > 0 { "…" } else { "" };
        let after = if text.chars().count() > from + 120 { "…" } else { "" };
        format!("{before}{part}{after}")
    };
    format!("{place}: recorded {}, now {}", shown(then), shown(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let then = json!({"a": [1, {"b": "x"}], "c": null});
        let cases = [
            (json!({"a": [1, {"b": "y"}], "c": null}), r#"a[1].b: recorded "x", now "y""#),
            (json!({"a": [1], "c": null}), r#"a[1]: recorded {"b":"x"}, now (nothing)"#),
            (json!({"a": [1, {"b": "x"}, 2], "c": null}), "a[2]: recorded (nothing), now 2"),
            (json!({"a": [1, {"b": "x"}]}), "c: recorded null, now (nothing)"),
            (json!({"a": [1, {"b": "x"}], "c": null, "d": 1}), "d: recorded (nothing), now 1"),
            (json!({"c": null, "a": [1, {"b": "x"}]}), "(order of members): recorded a, c, now c, a"),
        ];
        for (now, expected) in cases {
            assert_eq!(difference("", &then, &now).as_deref(), Some(expected));
        }
        assert_eq!(difference("", &then, &then.clone()), None);
    }

    /// Read as something next to it, it was written as another number, and the request differed from itself.
    #[test]
    fn a_number_that_is_long_is_written_as_one_that_is_read_as_the_same() {
        for number in ["92914184067440737095516167", "0.1234567890123456789", "2.2250738585072011e-308"] {
            let read: Value = serde_json::from_str(number).unwrap();
            assert_eq!(read.as_f64(), number.parse().ok(), "{number}");
            let again: Value = serde_json::from_str(&format!("{read:#}")).unwrap();
            assert_eq!(again, read, "{number}");
        }
    }

    #[test]
    fn a_secret_is_replaced_however_it_is_cut_and_two_recorders_do_not_mix() {
        let folder = std::env::temp_dir().join(format!("cotter-recorder-{}", std::process::id()));
        let recorder = |secrets| Recorder::create(&folder, Api::OpenAi, "h", secrets).unwrap();
        let secrets: Vec<Secret> = ["sk-12345678", "ab-87654321"].map(Secret::from).into();
        let body = b"one sk-12345678, two ab-87654321; sk-1234 sk-12345678";
        for cut in 0..=body.len() {
            let (mut first, mut second) = (recorder(secrets.clone()), recorder(Vec::new()));
            first.begin(&[b"{}"], 200, std::iter::empty()).unwrap();
            first.body(&body[..cut]).unwrap();
            first.body(&body[cut..]).unwrap();
            drop(first);
            let written = fs::read_to_string(folder.join("01.response.http")).unwrap();
            assert!(written.ends_with("\n\none (secret), two (secret); sk-1234 (secret)"), "{written}");
            assert!(matches!(second.begin(&[b"{}"], 200, std::iter::empty()), Err(Error::Usage(_))));
            fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn long_values_are_shown_from_where_they_differ() {
        let then = format!("{}x", "a".repeat(300));
        let now = format!("{}y", "a".repeat(300));
        let expected = format!("p: recorded …{0}x, now …{0}y", "a".repeat(20));
        assert_eq!(described("p", &then, &now), expected);
    }

    #[test]
    fn the_conversation_is_free_of_marks_and_of_the_system_prompt() {
        let request = json!({"messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]},
        ]});
        assert_eq!(
            conversation(&request),
            json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])
        );
    }
}
