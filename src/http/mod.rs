//! One question to the API until it is answered: attempts, waiting, recording and replaying.
//!
//! The official clients' rules for trying again, and two of our own: nothing that was read in a dead attempt
//! is used, and a stall of a server on this machine is not repeated, since it is still at the prompt.

use std::borrow::Cow;
use std::io::Read;
use std::time::{Duration, SystemTime};

use crate::alarm::Ring;
use crate::error::Error;
use crate::output::{Output, Retry};
use crate::provider::errors::Verdict;
use crate::provider::{ApiError, Fault};

mod buffers;
pub mod net;
pub mod proxy;
pub mod recording;
mod transport;

use net::{Client, Failure};
use recording::{Recorded, Recorder, Replay};

/// How long all waiting between the attempts of one question may take.
const WAITING_LIMIT: Duration = Duration::from_secs(120);

/// How long the body's end is awaited after a stream's terminal event, so that the connection can be kept.
const END_PATIENCE: Duration = Duration::from_millis(50);

/// The way to the API.
pub struct Http {
    client: Client,
    recorder: Option<Recorder>,
    replay: Option<Replay>,
    max_retries: u32,
    /// How often a server that is overloaded is asked again.
    overload_retries: u32,
    loopback: bool,
    /// The HTTP status with which the last question failed, if it did and there was one.
    failed_status: Option<u16>,
}

/// A request, the same in every attempt.
pub struct Request<'a> {
    /// Where it goes.
    pub url: &'a str,
    /// All headers but those of HTTP itself.
    pub headers: &'a [(String, String)],
    /// The body, in slices.
    pub body: &'a [&'a [u8]],
}

/// Why an attempt gave no reply.
#[derive(Debug)]
pub enum Trouble {
    /// The network.
    Network(Failure),
    /// What the server sent. The time is its own word on when to ask again.
    Fault(Fault, Option<Duration>),
    /// The request has to be written anew: something was learnt of the server.
    Rewrite,
    /// Nothing that another attempt could mend.
    Fatal(Error),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        Trouble::Network(failure)
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Trouble {
        Trouble::Fault(fault, None)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Fatal(error)
    }
}

/// What became of a question.
pub enum Asked<T> {
    /// The reply.
    Answered(T),
    /// The request has to be written anew.
    Rewrite,
}

/// A response whose body is still to be read.
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u16,
    body: Body,
    recorder: Option<&'a mut Recorder>,
}

enum Body {
    Live(Box<net::Response>),
    Recorded(Recorded),
}

impl Answer<'_> {
    /// A header's value, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        match &self.body {
            Body::Live(response) => response.header(name),
            Body::Recorded(recorded) => recorded.header(name).map(Cow::Borrowed),
        }
    }

    /// The next bytes of the body; none at its end.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Trouble> {
        let count = match &mut self.body {
            Body::Live(response) => response.read(buffer)?,
            Body::Recorded(recorded) => recorded
                .body
                .read(buffer)
                .map_err(|error| Error::Internal(format!("cannot read the recording: {error}")))?,
        };
        if let Some(recorder) = &mut self.recorder {
            match count {
                0 => recorder.end()?,
                _ => recorder.body(&buffer[..count])?,
            }
        }
        Ok(count)
    }

    /// Adds the rest of the body to what is there of it, up to so many bytes in all. True if that was all.
    pub fn read_all(&mut self, body: &mut Vec<u8>, limit: usize) -> Result<bool, Trouble> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(true),
                count => body.extend_from_slice(&buffer[..count]),
            }
            if body.len() > limit {
                body.truncate(limit);
                return Ok(false);
            }
        }
    }

    /// The rest of the body is of little use: it is read no longer than this.
    pub fn hurry(&self, limit: Duration) {
        if let Body::Live(response) = &self.body {
            response.hurry(limit);
        }
    }

    /// Leaves the rest of the body, which holds nothing that matters.
    pub fn finish(self) -> Result<(), Trouble> {
        if let Body::Live(response) = self.body {
            response.finish(END_PATIENCE);
        }
        match self.recorder {
            Some(recorder) => Ok(recorder.end()?),
            None => Ok(()),
        }
    }

    /// When the server says that it may be asked again.
    pub fn retry_hint(&self) -> Option<Duration> {
        let number = |name: &str| self.header(name)?.trim().parse::<f64>().ok();
        let seconds = match (number("retry-after-ms"), number("retry-after")) {
            (Some(milliseconds), _) => milliseconds / 1000.0,
            (None, Some(seconds)) => seconds,
            (None, None) => {
                let date = jiff::fmt::rfc2822::parse(self.header("retry-after")?.trim()).ok()?;
                let now = jiff::Timestamp::try_from(SystemTime::now()).ok()?;
                date.timestamp().duration_since(now).as_secs_f64()
            }
        };
        Duration::try_from_secs_f64(seconds).ok().filter(|hint| !hint.is_zero())
    }

    /// The server's own word on whether trying again makes sense.
    pub fn should_retry(&self) -> Option<bool> {
        match &*self.header("x-should-retry")? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

impl Http {
    /// A way to the API that has not been used yet.
    pub fn new(
        client: Client,
        recorder: Option<Recorder>,
        replay: Option<Replay>,
        max_retries: u32,
        loopback: bool,
    ) -> Http {
        Http {
            client,
            recorder,
            replay,
            max_retries,
            overload_retries: u32::MAX,
            loopback,
            failed_status: None,
        }
    }

    /// Whether replies come from a recording.
    pub fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// Writes down with what is recorded how many tokens the model reads, where the server's list of models said it.
    pub fn record_window(&mut self, window: Option<u64>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.window = window;
        }
    }

    /// What the recorded run knew in this way at its next request.
    pub fn recorded_window(&self) -> Option<u64> {
        self.replay.as_ref()?.next_window()
    }

    /// The error that a refusal is, where it is final.
    pub fn refused(&mut self, error: &ApiError, url: &str) -> Error {
        self.failed_status = Some(error.status);
        error_of_api(error, url, None)
    }

    /// Sets how often a server that is overloaded is asked again, where that is less than the limit of all.
    pub fn retry_overload(&mut self, most: u32) {
        self.overload_retries = most;
    }

    /// The HTTP status with which the last question failed, if it did and there was one.
    pub fn failed_status(&self) -> Option<u16> {
        self.failed_status
    }

    /// Asks until `read` makes a reply of a response, or nothing helps any more.
    pub fn ask<T>(
        &mut self,
        request: &Request,
        output: &mut Output,
        mut read: impl FnMut(Answer, &mut Output) -> Result<T, Trouble>,
    ) -> Result<Asked<T>, Error> {
        let mut retries = 0;
        let mut waited = Duration::ZERO;
        self.failed_status = None;
        loop {
            let trouble = match self.attempt(request).and_then(|answer| read(answer, output)) {
                Ok(reply) => return Ok(Asked::Answered(reply)),
                Err(Trouble::Rewrite) => return Ok(Asked::Rewrite),
                Err(Trouble::Fatal(error)) => return Err(error),
                Err(trouble) => trouble,
            };
            let most = self.retries_worth(&trouble).min(self.max_retries);
            let hint = match &trouble {
                Trouble::Fault(_, hint) => *hint,
                _ => None,
            };
            let status = status_of(&trouble);
            self.failed_status = status;
            let error = match self.replay {
                Some(_) => error_of(trouble, request.url, None),
                None => error_of(trouble, request.url, Some(request.headers)),
            };
            // A trouble that is worth fewer attempts than were made already is final too.
            if retries >= most {
                return Err(after(error, retries));
            }
            let wait = match self.replay {
                Some(_) => Duration::ZERO,
                None => hint.unwrap_or_else(|| backoff(retries)),
            };
            if wait > WAITING_LIMIT.saturating_sub(waited) {
                return Err(too_long(error, wait));
            }
            if let Err(ring) = self.client.alarm().may_sleep(wait) {
                // Where another model can be asked, it may answer at once.
                let has_another = matches!(error, Error::Overloaded(_)) && self.overload_retries < u32::MAX;
                return Err(if has_another { error } else { ring.error_of_wait(&error, wait) });
            }
            retries += 1;
            output.retrying(&Retry { error: &error, status, attempt: retries, most, wait })?;
            self.failed_status = None;
            self.client.alarm().sleep(wait).map_err(Ring::error)?;
            waited += wait;
        }
    }

    fn attempt(&mut self, request: &Request) -> Result<Answer<'_>, Trouble> {
        let (status, body) = match &mut self.replay {
            Some(replay) => {
                let recorded = replay.answer(request.body)?;
                (recorded.status, Body::Recorded(recorded))
            }
            None => {
                let response = self.client.post(request.url, request.headers, request.body)?;
                (response.status, Body::Live(Box::new(response)))
            }
        };
        if let Some(recorder) = &mut self.recorder {
            match &body {
                Body::Live(response) => recorder.begin(request.body, status, response.headers())?,
                Body::Recorded(recorded) => recorder.begin(request.body, status, recorded.headers())?,
            }
        }
        Ok(Answer { status, body, recorder: self.recorder.as_mut() })
    }

    /// Fetches something that is neither recorded nor tried twice: its status and body.
    pub fn get(&mut self, url: &str, headers: &[(String, String)]) -> Result<(u16, Vec<u8>), Failure> {
        const LIMIT: usize = 4 * 1024 * 1024;
        const PATIENCE: Duration = Duration::from_secs(30);
        let mut response = self.client.get(url, headers)?;
        response.hurry(PATIENCE);
        let mut body = Vec::new();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            match response.read(&mut buffer)? {
                0 => return Ok((response.status, body)),
                count => body.extend_from_slice(&buffer[..count]),
            }
            if body.len() > LIMIT {
                let url = net::shown(url);
                return Err(Failure::Protocol(format!("the answer of {url} is longer than {LIMIT} bytes")));
            }
        }
    }

    /// How often a trouble of this kind is worth another attempt.
    fn retries_worth(&self, trouble: &Trouble) -> u32 {
        match trouble {
            Trouble::Network(Failure::Stalled { answered: false, .. }) if self.loopback => 0,
            Trouble::Network(Failure::Connect(_) | Failure::Stalled { .. } | Failure::Broken(_)) => u32::MAX,
            Trouble::Network(
                Failure::Setup(_)
                | Failure::Certificate(_)
                | Failure::Refused(_)
                | Failure::Protocol(_)
                | Failure::Ended(_),
            ) => 0,
            Trouble::Fault(Fault::Incomplete | Fault::Hollow, _) => u32::MAX,
            Trouble::Fault(Fault::Malformed(_), _) => 0,
            Trouble::Fault(Fault::Api(error), _) => match error.verdict() {
                Verdict::Wait => self.overload_retries,
                Verdict::Botched => 2,
                _ => 0,
            },
            Trouble::Rewrite | Trouble::Fatal(_) => 0,
        }
    }
}

impl Failure {
    /// The error that ends the run where this failure is final.
    pub fn error(self) -> Error {
        match self {
            Failure::Setup(text) => Error::Usage(text),
            Failure::Protocol(text) => Error::Malformed(text),
            Failure::Certificate(text)
            | Failure::Refused(text)
            | Failure::Connect(text)
            | Failure::Broken(text)
            | Failure::Stalled { text, .. } => Error::Network(text),
            Failure::Ended(ring) => ring.error(),
        }
    }
}

/// The official clients' waiting time: half a second, doubled each time up to eight seconds, less up to a
/// quarter so that many runs do not come back at once.
fn backoff(retries: u32) -> Duration {
    let full = (0.5 * 2_f64.powi(retries.min(10) as i32)).min(8.0);
    Duration::from_secs_f64(full * (1.0 - 0.25 * random_fraction()))
}

fn random_fraction() -> f64 {
    let mut bytes = [0; 4];
    // Without randomness all runs wait equally long, which still works.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    f64::from(u32::from_ne_bytes(bytes)) / f64::from(u32::MAX)
}

/// The HTTP status of an answer that was a refusal.
fn status_of(trouble: &Trouble) -> Option<u16> {
    match trouble {
        Trouble::Fault(Fault::Api(error), _) => Some(error.status),
        _ => None,
    }
}

fn error_of(trouble: Trouble, url: &str, headers: Option<&[(String, String)]>) -> Error {
    match trouble {
        Trouble::Fatal(error) => error,
        Trouble::Network(failure) => failure.error(),
        Trouble::Fault(fault, _) => match fault {
            Fault::Api(error) => error_of_api(&error, url, headers),
            Fault::Incomplete => Error::Network("the reply ended before it was complete".to_owned()),
            Fault::Hollow => Error::Malformed("the API sent a reply without content".to_owned()),
            Fault::Malformed(text) => Error::Malformed(format!("the API's reply cannot be read: {text}")),
        },
        Trouble::Rewrite => Error::Internal("a request that was to be written anew was given up".to_owned()),
    }
}

/// What the names of headers hold that carry a key, to servers of all kinds.
const KEY_WORDS: [&str; 4] = ["auth", "key", "token", "cookie"];

/// The error that ends the run where an API's refusal of what was asked at this URL is final. The headers are those
/// that were sent, if any were.
pub fn error_of_api(error: &ApiError, url: &str, headers: Option<&[(String, String)]>) -> Error {
    if error.status == 401
        && let Some(headers) = headers
        && !headers.iter().any(|(name, _)| KEY_WORDS.iter().any(|word| name.contains(word)))
    {
        let is_anthropic = headers.iter().any(|(name, _)| name == "anthropic-version");
        let variable = if is_anthropic { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" };
        return Error::Credentials(format!(
            "no key was sent, and the server wants one (HTTP 401: {}): set {variable} or pass --api-key-file",
            error.message
        ));
    }
    let mut text = format!("HTTP {}: {}", error.status, error.message);
    let remedy = error.remedy();
    if !remedy.is_empty() {
        // Vendors end their sentence; here it goes on.
        text = format!("{}: {remedy}", text.trim_end_matches(['.', ' ']));
    }
    match (error.verdict(), error.status) {
        (Verdict::Redirected | Verdict::Unknown, _) => Error::Malformed(text),
        (_, 404) => {
            Error::Refused(format!("the API refused the request ({text}): {} was asked", net::shown(url)))
        }
        (_, 401 | 403) => Error::Credentials(format!("the API does not accept the key ({text})")),
        (Verdict::Overflow, _) => Error::Refused(format!("the API refused the request ({text})")),
        (_, 408 | 409 | 425 | 429 | 498 | 500..) => {
            Error::Overloaded(format!("the API is overloaded or limits the rate ({text})"))
        }
        _ => Error::Refused(format!("the API refused the request ({text})")),
    }
}

/// The error with the number of attempts, if there were several.
fn after(error: Error, retries: u32) -> Error {
    match retries {
        0 => error,
        _ => with_text(error, |text| format!("{text}; gave up after {} attempts", retries + 1)),
    }
}

fn too_long(error: Error, wait: Duration) -> Error {
    with_text(error, |text| {
        format!(
            "{text}; not asked again: the wait of {:.0} s would exceed {} s in all",
            wait.as_secs_f64(),
            WAITING_LIMIT.as_secs()
        )
    })
}

/// The same error in other words, where it is one of asking a server.
pub fn with_text(error: Error, change: impl Fn(String) -> String) -> Error {
    match error {
        Error::Overloaded(text) => Error::Overloaded(change(text)),
        Error::Network(text) => Error::Network(change(text)),
        Error::Malformed(text) => Error::Malformed(change(text)),
        Error::Refused(text) => Error::Refused(change(text)),
        other => other,
    }
}
