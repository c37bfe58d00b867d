//! One HTTP exchange: a request goes out, a response comes back to be read, or a failure says why not.
//!
//! With `transport.rs` the only place that names ureq. It knows nothing of APIs, retries or recordings,
//! follows no redirect, starts no thread, and never waits longer than the idle limit in silence.

use std::borrow::Cow;
use std::error;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{AlertDescription, CertificateError};
use ureq::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use ureq::http::{Method, Request, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::{ConnectProxyConnector, Connector, RustlsConnector, SocksConnector};
use ureq::{Agent, AsSendBody, BodyReader, Proxy, ProxyProtocol, SendBody, Timeout};

use super::proxy::{Choice, ProxySettings};
use super::transport::{Names, Stage, TcpConnector, Watch, bare_host, default_port, describe, is_socks};
use crate::alarm::{Alarm, Ring};
use crate::named_file;

/// How cotter names itself.
const PRODUCT: &str = concat!("cotter/", env!("CARGO_PKG_VERSION"));

/// The longest head of a response that is accepted.
const HEAD_BYTES: usize = 64 * 1024;

/// Larger than the head, so that a head which is too long can be told from a connection without progress.
const INPUT_BYTES: usize = HEAD_BYTES + 8 * 1024;

/// How much of a request goes to the kernel at once. The half takes an eighth more of a run with 1,000 turns.
const OUTPUT_BYTES: usize = 128 * 1024;

/// How long an unused connection is kept. Servers close theirs after a minute or more, which is seen;
/// routers forget theirs after some minutes, which is not.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// How long a server that has bytes waiting for us may take none of ours before the rest is not sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// How to reach the network; made by `config.rs`.
#[derive(Debug, Clone)]
pub struct NetworkSettings {
    /// A PEM bundle of authorities used instead of Mozilla's, which are built in (`--cacert`,
    /// `SSL_CERT_FILE`). It is read when TLS is first needed.
    pub ca_bundle: Option<PathBuf>,
    /// The proxy variables.
    pub proxies: ProxySettings,
    /// How long no byte may come or go before the exchange has stalled.
    pub idle_timeout: Duration,
    /// How long making a connection may take: name, TCP, proxy and TLS together.
    pub connect_timeout: Duration,
    /// What ends every wait for the network.
    pub alarm: Alarm,
}

/// Why there is no whole answer, each with text for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The request cannot even be tried: bad URL, header or proxy value, unreadable CA bundle.
    Setup(String),
    /// The server's certificate is not to be trusted. Trying again does not help.
    Certificate(String),
    /// The proxy refuses the connection (4xx), or TLS cannot be agreed on. Trying again does not help.
    Refused(String),
    /// No connection was made: name lookup, TCP, proxy or TLS.
    Connect(String),
    /// No byte came or went for the idle limit.
    Stalled {
        /// The text.
        text: String,
        /// Whether the whole head of the response had arrived.
        answered: bool,
    },
    /// The connection ended before the answer did, or the answer's framing is wrong.
    Broken(String),
    /// What came back is not HTTP, or its head is longer than any sane one.
    Protocol(String),
    /// The run's alarm rang.
    Ended(Ring),
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Setup(text)
            | Failure::Certificate(text)
            | Failure::Refused(text)
            | Failure::Connect(text)
            | Failure::Stalled { text, .. }
            | Failure::Broken(text)
            | Failure::Protocol(text) => formatter.write_str(text),
            Failure::Ended(ring) => write!(formatter, "{ring}"),
        }
    }
}

impl error::Error for Failure {}

/// Makes requests and keeps connections alive between them.
pub struct Client {
    settings: NetworkSettings,
    patience: Duration,
    watch: Arc<Watch>,
    /// Where the last request went: the next to the same place need not parse it again.
    target: Option<Target>,
    /// One for each way out that was needed. ureq's pool belongs to an agent, and so does its proxy.
    agents: Vec<(Route, Agent)>,
}

/// Where a request goes and what it says of itself, as it was given and as ureq takes it. Almost all requests have
/// the same.
struct Target {
    url: String,
    given: Vec<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
}

/// What distinguishes the agents: the proxy, and whether roots of trust were loaded.
#[derive(PartialEq, Eq)]
struct Route {
    proxy: Option<Proxy>,
    secure: bool,
}

impl Client {
    /// A client that has not touched the network yet.
    pub fn new(settings: NetworkSettings) -> Client {
        Client { settings, patience: PATIENCE, watch: Arc::default(), target: None, agents: Vec::new() }
    }

    /// What ends every wait.
    pub fn alarm(&self) -> &Alarm {
        &self.settings.alarm
    }

    /// One POST, one attempt. The slices of `body` are sent one after another as one body. `user-agent`,
    /// `accept: */*` and `accept-encoding: identity` are added where `headers` has no such header.
    ///
    /// A kept connection that breaks before an answer was about to be closed by the server, which says
    /// nothing about the request: it is sent once more over a new one.
    ///
    /// Through an HTTP proxy even an http URL is reached by CONNECT, which is ureq's way; a proxy that
    /// allows CONNECT to port 443 only refuses it.
    pub fn post(
        &mut self,
        url: &str,
        headers: &[(String, String)],
        body: &[&[u8]],
    ) -> Result<Response, Failure> {
        let length: usize = body.iter().map(|slice| slice.len()).sum();
        let mut send = || {
            let mut slices = Slices { rest: body, offset: 0 };
            self.exchange(Method::POST, url, headers, Some(length), SendBody::from_reader(&mut slices))
                .map_err(|failure| (failure, self.watch.is_fresh()))
        };
        match send() {
            Err((Failure::Broken(_), false)) => send().map_err(|(failure, _)| failure),
            answered => answered.map_err(|(failure, _)| failure),
        }
    }

    /// One GET, one attempt; otherwise as [`Client::post`].
    pub fn get(&mut self, url: &str, headers: &[(String, String)]) -> Result<Response, Failure> {
        self.exchange(Method::GET, url, headers, None, SendBody::none())
    }

    fn exchange(
        &mut self,
        method: Method,
        url: &str,
        headers: &[(String, String)],
        length: Option<usize>,
        body: SendBody<'_>,
    ) -> Result<Response, Failure> {
        let (uri, mut headers) = self.target(url, headers)?;
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        if let Some(ring) = self.settings.alarm.rung() {
            return Err(Failure::Ended(ring));
        }
        let secure = uri.scheme_str() == Some("https");
        let host = bare_host(&uri);
        let port = uri.port_u16().unwrap_or_else(|| default_port(uri.scheme_str().unwrap_or_default()));
        let proxy = self.settings.proxies.choose(secure, host, port).map(parse_proxy).transpose()?;
        let peer = Peer {
            host: host.to_owned(),
            proxy: proxy.as_ref().map(|proxy| format!("{}:{}", proxy.host(), proxy.port())),
            idle_timeout: self.settings.idle_timeout,
            connect_timeout: self.settings.connect_timeout,
            alarm: self.settings.alarm.clone(),
        };
        let is_socks = proxy.as_ref().is_some_and(is_socks);
        let agent = self.agent(Route { proxy, secure })?;

        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        if is_socks {
            request = self.with_limits(&agent, request);
        }
        self.watch.start();
        match agent.run(request) {
            Ok(response) => Ok(Response::new(response, peer, Arc::clone(&self.watch), is_socks)),
            Err(error) => {
                let phase = match self.watch.connecting() {
                    0 => Phase::Asking,
                    1 => Phase::Connecting,
                    _ => Phase::ConnectingToProxy,
                };
                Err(peer.explain(error, phase))
            }
        }
    }

    /// The URL and the headers of a request, read only where they are others than the last one's.
    fn target(&mut self, url: &str, given: &[(String, String)]) -> Result<(Uri, HeaderMap), Failure> {
        let target = match self.target.take().filter(|last| last.url == url && last.given == given) {
            Some(last) => last,
            None => {
                let (uri, headers) = (parse_url(url)?, header_map(given)?);
                Target { url: url.to_owned(), given: given.to_vec(), uri, headers }
            }
        };
        let Target { uri, headers, .. } = self.target.insert(target);
        Ok((uri.clone(), headers.clone()))
    }

    /// ureq's own SOCKS transport does not know the alarm; what ureq can limit for it is each step by itself.
    fn with_limits<S: AsSendBody>(&self, agent: &Agent, request: Request<S>) -> Request<S> {
        let alarm = &self.settings.alarm;
        let left = alarm.shortened(Duration::MAX);
        if left == Duration::MAX {
            return request;
        }
        agent
            .configure_request(request)
            .timeout_connect(Some(alarm.shortened(self.settings.connect_timeout)))
            .timeout_send_request(Some(left))
            .timeout_send_body(Some(left))
            .timeout_recv_response(Some(left))
            .timeout_recv_body(Some(left))
            .build()
    }

    fn agent(&mut self, route: Route) -> Result<Agent, Failure> {
        // An agent is a handle; a copy of it shares the connections.
        if let Some((_, agent)) = self.agents.iter().find(|(known, _)| *known == route) {
            return Ok(agent.clone());
        }
        let agent = self.new_agent(&route)?;
        self.agents.push((route, agent.clone()));
        Ok(agent)
    }

    fn new_agent(&self, route: &Route) -> Result<Agent, Failure> {
        let proxy_speaks_tls =
            route.proxy.as_ref().is_some_and(|proxy| proxy.protocol() == ProxyProtocol::Https);
        let roots = match &self.settings.ca_bundle {
            Some(path) if route.secure || proxy_speaks_tls => load_roots(path)?,
            _ => RootCerts::WebPki,
        };
        // Our own transport has the idle limit built in, ureq's for SOCKS has not.
        let idle_timeout =
            route.proxy.as_ref().filter(|proxy| is_socks(proxy)).map(|_| self.settings.idle_timeout);
        // The limits on the whole call and on name lookup stay unset: they make ureq start a thread.
        let config = Agent::config_builder()
            .proxy(route.proxy.clone())
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy is told it too.
            .user_agent(PRODUCT)
            .max_response_header_size(HEAD_BYTES)
            .input_buffer_size(INPUT_BYTES)
            .output_buffer_size(OUTPUT_BYTES)
            .max_idle_age(KEPT_FOR)
            .timeout_connect(Some(self.settings.connect_timeout))
            .timeout_per_read(idle_timeout)
            .timeout_per_write(idle_timeout)
            .build();
        let connector = ()
            .chain(Stage::Begins(Arc::clone(&self.watch)))
            .chain(SocksConnector::default())
            .chain(ConnectProxyConnector::default())
            .chain(TcpConnector {
                watch: Arc::clone(&self.watch),
                idle_timeout: self.settings.idle_timeout,
                patience: self.patience,
                alarm: self.settings.alarm.clone(),
            })
            .chain(RustlsConnector::default())
            .chain(Stage::Made(Arc::clone(&self.watch)));
        Ok(Agent::with_parts(config, connector, Names))
    }
}

/// A response whose head has arrived and whose body is still to be read.
pub struct Response {
    /// The status; redirects and errors are responses like any other.
    pub status: u16,
    headers: HeaderMap,
    body: BodyReader<'static>,
    peer: Peer,
    watch: Arc<Watch>,
    /// ureq's own SOCKS transport knows nothing of our deadlines.
    is_socks: bool,
    /// The body ended, or failed for good.
    end: Option<Result<(), Failure>>,
}

impl Response {
    fn new(
        response: ureq::http::Response<ureq::Body>,
        peer: Peer,
        watch: Arc<Watch>,
        is_socks: bool,
    ) -> Response {
        watch.headway();
        let (parts, body) = response.into_parts();
        Response {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.into_reader(),
            peer,
            watch,
            is_socks,
            end: None,
        }
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<Cow<'_, str>> {
        self.headers.get(name).map(text)
    }

    /// All headers, names in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), text(value)))
    }

    /// Reads what is there, at least one byte; 0 at the body's end. A body that is cut is a failure, and
    /// stays one when asked again.
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        if let Some(end) = &self.end {
            return end.clone().map(|()| 0);
        }
        // A stream that never stalls is not read for ever either.
        let is_late = self.peer.alarm.rung().is_some() || self.watch.is_late();
        let read = if is_late { Err(io::ErrorKind::TimedOut.into()) } else { self.body.read(buffer) };
        let result = match read {
            Ok(0) if !buffer.is_empty() && self.is_cut_by_reset() => Err(self
                .peer
                .explain(io::Error::from(io::ErrorKind::ConnectionReset).into(), Phase::Answering)),
            Ok(amount) => {
                self.watch.headway();
                Ok(amount)
            }
            // What was read before the reset may have told it as an end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && self.watch.is_reset() => Err(self
                .peer
                .explain(io::Error::from(io::ErrorKind::ConnectionReset).into(), Phase::Answering)),
            Err(error) => Err(self.peer.explain(error.into(), Phase::Answering)),
        };
        let result = result.map_err(|failure| self.named_late(failure));
        if !buffer.is_empty() && !matches!(result, Ok(1..)) {
            self.end = Some(result.clone().map(|_| ()));
        }
        result
    }

    /// The same failure, told as what it is where the time for the rest of the body was over.
    fn named_late(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Stalled { answered, .. } if self.watch.is_late() => Failure::Stalled {
                text: format!("{} did not come to the end of its answer in time", self.peer),
                answered,
            },
            failure => failure,
        }
    }

    /// Reads the rest of the body for at most `limit` from now, and no longer than a silence may last; what has
    /// not come by then has stalled.
    pub fn hurry(&self, limit: Duration) {
        self.watch.set_deadline(Instant::now().checked_add(limit.min(self.peer.idle_timeout)));
    }

    /// Waits at most `limit` for the end of a body of which everything needed was read, so that the
    /// connection can be used again; if the end does not come, the connection is closed.
    pub fn finish(mut self, limit: Duration) {
        if self.is_socks {
            return;
        }
        self.hurry(limit);
        while matches!(self.read(&mut [0; 512]), Ok(1..)) {}
        self.watch.set_deadline(None);
    }

    /// A body with neither length nor chunks ends when the connection does, and ureq takes a reset for that
    /// end. The text of a refusal is good for what it is: a server that did not read the request resets.
    fn is_cut_by_reset(&self) -> bool {
        self.status < 400
            && self.watch.is_reset()
            && self.header("content-length").is_none()
            && self.header("transfer-encoding").is_none()
    }
}

fn text(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

/// Who is spoken to, for the texts of failures.
struct Peer {
    host: String,
    /// Host and port only: the variable's value may hold a password.
    proxy: Option<String>,
    idle_timeout: Duration,
    connect_timeout: Duration,
    alarm: Alarm,
}

/// How far an exchange had come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    ConnectingToProxy,
    Connecting,
    Asking,
    Answering,
}

impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.proxy {
            Some(proxy) => write!(formatter, "{} through the proxy {proxy}", self.host),
            None => formatter.write_str(&self.host),
        }
    }
}

impl Peer {
    fn explain(&self, error: ureq::Error, phase: Phase) -> Failure {
        // Whatever failed: where the time is over, that is why nothing more is tried.
        if let Some(ring) = self.alarm.rung() {
            return Failure::Ended(ring);
        }
        let connecting = matches!(phase, Phase::Connecting | Phase::ConnectingToProxy);
        match error {
            ureq::Error::Other(inner) => match inner.downcast::<Failure>() {
                Ok(failure) => *failure,
                Err(other) => Failure::Broken(format!("the exchange with {self} failed: {other}")),
            },
            ureq::Error::Rustls(error) => self.explain_tls(&error, phase),
            ureq::Error::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref()) {
                Some(error) => self.explain_tls(error, phase),
                None => self.explain_io(&error, phase),
            },
            ureq::Error::Timeout(_) if connecting => Failure::Connect(format!(
                "connecting to {self} took longer than {} (check the network, the proxy variables, and that the URL's scheme is the server's)",
                seconds(self.connect_timeout)
            )),
            ureq::Error::Timeout(reason) => {
                let what = if reason == Timeout::PerWrite { "took" } else { "sent" };
                let text = format!(
                    "{self} {what} nothing for {} (--idle-timeout sets how long to wait)",
                    seconds(self.idle_timeout)
                );
                Failure::Stalled { text, answered: phase == Phase::Answering }
            }
            ureq::Error::ConnectProxyFailed(reason) => self.proxy_failure(&reason),
            ureq::Error::Protocol(error) => match phase {
                Phase::Asking => Failure::Protocol(format!(
                    "what {self} answered is not HTTP/1.1: {error} (check host, port and scheme of the URL)"
                )),
                Phase::Answering => {
                    Failure::Broken(format!("the answer of {self} is framed wrongly: {error}"))
                }
                Phase::Connecting | Phase::ConnectingToProxy => Failure::Connect(format!(
                    "connecting to {self} failed: the proxy's answer is not HTTP/1.1: {error}"
                )),
            },
            ureq::Error::LargeResponseHeader(..) if phase == Phase::Answering => {
                Failure::Broken(format!("the answer of {self} is framed wrongly: its framing has no end"))
            }
            ureq::Error::LargeResponseHeader(..) => Failure::Protocol(format!(
                "the head of the answer of {self} is longer than {} KiB",
                HEAD_BYTES / 1024
            )),
            ureq::Error::Tls(_) => {
                Failure::Setup(format!("\"{}\" is no name that a certificate could be for", self.host))
            }
            other if connecting => Failure::Connect(format!("connecting to {self} failed: {other}")),
            other => Failure::Broken(format!("the exchange with {self} failed: {other}")),
        }
    }

    fn explain_io(&self, error: &io::Error, phase: Phase) -> Failure {
        let what = match error.kind() {
            io::ErrorKind::UnexpectedEof => "closed the connection",
            io::ErrorKind::ConnectionReset => "reset the connection",
            _ => "",
        };
        match phase {
            Phase::Connecting | Phase::ConnectingToProxy => {
                let why = if what.is_empty() { describe(error) } else { format!("it {what}") };
                Failure::Connect(format!("connecting to {self} failed: {why}"))
            }
            _ if what.is_empty() => {
                Failure::Broken(format!("the connection to {self} broke: {}", describe(error)))
            }
            Phase::Asking => Failure::Broken(format!("{self} {what} without an answer")),
            Phase::Answering => Failure::Broken(format!("{self} {what} in the middle of its answer")),
        }
    }

    fn explain_tls(&self, error: &rustls::Error, phase: Phase) -> Failure {
        let host = match (phase, &self.proxy) {
            (Phase::ConnectingToProxy, Some(proxy)) => proxy,
            _ => &self.host,
        };
        match error {
            rustls::Error::InvalidCertificate(problem) => Failure::Certificate(format!(
                "the certificate of {host} is not to be trusted: {}",
                explain_certificate(problem)
            )),
            _ if matches!(phase, Phase::Asking | Phase::Answering) => {
                Failure::Broken(format!("the TLS connection to {host} broke: {error}"))
            }
            // The server has failed, or is on its way down.
            rustls::Error::AlertReceived(
                AlertDescription::InternalError | AlertDescription::UserCanceled,
            ) => Failure::Connect(format!("TLS with {host} could not be agreed on: {error}")),
            rustls::Error::InvalidMessage(_) => Failure::Refused(format!(
                "{host} does not answer with TLS (is it meant to be reached by http:// and not https://?)"
            )),
            _ => Failure::Refused(format!("TLS with {host} could not be agreed on: {error}")),
        }
    }

    /// ureq has only a text for what a proxy answered, with the status in it.
    fn proxy_failure(&self, reason: &str) -> Failure {
        let proxy = self.proxy.as_deref().unwrap_or_default();
        let status = reason.split(|character: char| !character.is_ascii_digit()).find(|part| part.len() == 3);
        let why = match status {
            Some("407") => "it answered 407 and wants a user name and password, \
                which go into the proxy variable as http://USER:PASSWORD@HOST:PORT"
                .to_owned(),
            Some(status) => format!("it answered {status}"),
            None => reason.to_owned(),
        };
        let text = format!("the proxy {proxy} did not connect to {}: {why}", self.host);
        match status {
            Some(status) if status.starts_with('4') => Failure::Refused(text),
            _ => Failure::Connect(text),
        }
    }
}

/// What is wrong with a certificate and what to do about it.
fn explain_certificate(problem: &CertificateError) -> String {
    const BUNDLE: &str = "name the CA bundle with --cacert FILE or SSL_CERT_FILE";
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired (if this machine's clock is right, the server needs a new one)".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet (check this machine's clock)".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("it is for another host, {} (check the URL)", presented.join(", "))
        }
        CertificateError::NotValidForName => "it is for another host (check the URL)".to_owned(),
        CertificateError::UnknownIssuer => {
            format!("it was issued by an authority that is not known here; {BUNDLE}")
        }
        other => format!("{other}; {BUNDLE}"),
    }
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

/// Checks that a URL is absolute, is http or https, names a host, and has a port that exists.
fn parse_url(url: &str) -> Result<Uri, Failure> {
    let refused = |why: &str| Failure::Setup(format!("the URL \"{}\" cannot be used: {why}", shown(url)));
    if !["http://", "https://"].iter().any(|scheme| starts_with_ignoring_case(url, scheme)) {
        return Err(refused("it must begin with http:// or https://"));
    }
    let uri: Uri = url.parse().map_err(|error| refused(&format!("it is not a whole URL ({error})")))?;
    if bare_host(&uri).is_empty() {
        return Err(refused("it names no host"));
    }
    if !is_port_sound(&uri) {
        return Err(refused("the port must be a number from 1 to 65535"));
    }
    Ok(uri)
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    text.as_bytes().get(..start.len()).is_some_and(|bytes| bytes.eq_ignore_ascii_case(start.as_bytes()))
}

/// Whether the port is absent, empty or a real one. The parser takes any digits and then gives no port,
/// which would quietly mean the default one.
fn is_port_sound(uri: &Uri) -> bool {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    let after_host = host_and_port.rsplit(']').next().unwrap_or_default();
    match after_host.rsplit_once(':') {
        Some((_, port)) => port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0),
        None => true,
    }
}

/// A URL without what may be a password or key in it, safe to print.
pub fn shown(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").map_or(("", url), |(scheme, rest)| (scheme, rest));
    let rest = rest.split('?').next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, after)| after);
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{rest}").escape_debug().to_string()
}

/// As in curl, a value without a scheme is an HTTP proxy. Where no port is named, the scheme's own holds.
fn parse_proxy(choice: Choice<'_>) -> Result<Proxy, Failure> {
    let scheme = if choice.value.contains("://") { "" } else { "http://" };
    let proxy = Proxy::new(&format!("{scheme}{}", choice.value));
    proxy.ok().filter(|proxy| is_port_sound(proxy.uri())).ok_or_else(|| {
        Failure::Setup(format!(
            "the value of {} is no proxy: it must be [SCHEME://][USER:PASSWORD@]HOST[:PORT] with http, \
             https, socks4, socks4a, socks5 or socks5h as scheme",
            choice.variable
        ))
    })
}

fn load_roots(path: &Path) -> Result<RootCerts, Failure> {
    let refused = |why: &str| {
        let path = path.display();
        Failure::Setup(format!("the CA bundle \"{path}\" named by --cacert or SSL_CERT_FILE {why}"))
    };
    // The largest collections of authorities take less than one megabyte.
    const MOST_BYTES: usize = 16 << 20;
    let text = named_file::read(path, MOST_BYTES)
        .map_err(|error| refused(&format!("cannot be read: {}", describe(&error))))?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&text) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(refused("is not whole PEM text")),
        }
    }
    if certificates.is_empty() {
        return Err(refused("holds no certificate in PEM form"));
    }
    Ok(RootCerts::from(certificates))
}

/// What a request has besides, unless it has its own.
const USUAL_HEADERS: [(HeaderName, &str); 3] =
    [(USER_AGENT, PRODUCT), (ACCEPT, "*/*"), (ACCEPT_ENCODING, "identity")];

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, Failure> {
    // Adding more than a map can hold would panic.
    let mut map = HeaderMap::try_with_capacity(headers.len() + USUAL_HEADERS.len() + 1).map_err(|_| {
        Failure::Setup("there are more headers than a request can carry: pass fewer".to_owned())
    })?;
    for (name, value) in headers {
        let known = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Failure::Setup(format!("{name:?} cannot be the name of a header")))?;
        // The value may be a key, so it is not quoted.
        let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| {
            Failure::Setup(format!("the value of the header {name} holds a line break or control character"))
        })?;
        map.append(known, value);
    }
    for (name, value) in USUAL_HEADERS {
        if !map.contains_key(&name) {
            map.insert(name, HeaderValue::from_static(value));
        }
    }
    Ok(map)
}

/// A body made of slices, read as one.
struct Slices<'a> {
    rest: &'a [&'a [u8]],
    /// How much of the first slice was read.
    offset: usize,
}

impl Read for Slices<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len()
            && let Some(slice) = self.rest.first()
        {
            let part = &slice[self.offset..];
            let amount = part.len().min(buffer.len() - filled);
            buffer[filled..filled + amount].copy_from_slice(&part[..amount]);
            filled += amount;
            self.offset += amount;
            if self.offset == slice.len() {
                self.rest = &self.rest[1..];
                self.offset = 0;
            }
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests;
