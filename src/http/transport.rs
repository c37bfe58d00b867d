//! The byte transport below ureq: names to addresses, TCP connections, and waiting with a limit.
//!
//! It replaces ureq's own so that no thread is started, a name is looked up only when a connection is
//! made, and an answer that comes before the whole request was sent is read instead of lost.

use std::io::{self, IoSlice, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg, sockopt};
use ureq::Timeout;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, Either, NextTimeout, Transport};

use super::buffers::FreshBuffers;
use super::net::Failure;
use super::proxy::is_localhost;
use crate::alarm::Alarm;

/// How many bytes may come without any headway. ureq itself reads interim heads, trailers and whatever else
/// frames an answer as long as they come.
const MOST_IDLE_BYTES: usize = 256 * 1024;

/// How much output waits for more. The head of a request is handed over before its body, TLS's last word of the
/// handshake before both: together they are one packet, and the server wakes up once.
const MOST_HELD_BYTES: usize = 4096;

/// What a transport and the exchange that uses it tell each other; ureq stands between them and has no
/// word for it. One for each client: a client has one exchange under way at a time.
#[derive(Debug, Default)]
pub struct Watch(Mutex<Observed>);

#[derive(Debug, Default)]
struct Observed {
    /// How many connections are being made: 2 while the one to a proxy is made on behalf of the outer one.
    connecting: u32,
    /// Whether a connection was made, or tried, for this exchange: it had no kept one.
    fresh: bool,
    /// When waiting for input ends, whatever the idle limit.
    deadline: Option<Instant>,
    /// How many bytes came since the exchange last made headway.
    idle_bytes: usize,
    /// Whether a read of this exchange met a reset, which ureq takes for the end of an unframed body.
    reset: bool,
}

impl Watch {
    /// Forgets the exchange before.
    pub fn start(&self) {
        *self.observed() = Observed::default();
    }

    /// How many connections are being made now.
    pub fn connecting(&self) -> u32 {
        self.observed().connecting
    }

    /// Whether the exchange had a connection of its own rather than a kept one.
    pub fn is_fresh(&self) -> bool {
        self.observed().fresh
    }

    /// Whether the connection was reset.
    pub fn is_reset(&self) -> bool {
        self.observed().reset
    }

    /// The exchange has made headway: the head of the answer is whole, or a piece of its body is.
    pub fn headway(&self) {
        self.observed().idle_bytes = 0;
    }

    /// Whether the moment at which waiting ends is over.
    pub fn is_late(&self) -> bool {
        self.observed().deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Sets or lifts the moment at which waiting for input ends.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        self.observed().deadline = deadline;
    }

    fn observed(&self) -> MutexGuard<'_, Observed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The two ends of the chain of connectors: between them, a failure is a failure to connect.
#[derive(Debug)]
pub enum Stage {
    /// Stands first in the chain.
    Begins(Arc<Watch>),
    /// Stands last, and is reached when a connection was made.
    Made(Arc<Watch>),
}

impl<In: Transport> Connector<In> for Stage {
    type Out = In;

    fn connect(&self, _: &ConnectionDetails, chained: Option<In>) -> Result<Option<In>, ureq::Error> {
        match self {
            Stage::Begins(watch) => {
                let mut observed = watch.observed();
                observed.connecting += 1;
                observed.fresh = true;
            }
            Stage::Made(watch) => {
                let mut observed = watch.observed();
                observed.connecting = observed.connecting.saturating_sub(1);
            }
        }
        Ok(chained)
    }
}

/// Looks names up without a thread, and only where ureq itself needs the addresses: for a SOCKS proxy.
/// ureq asks before every request, also when it has a connection to reuse; [`TcpConnector`] looks the
/// name up when it makes one.
#[derive(Debug)]
pub struct Names;

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut found = self.empty();
        if config.proxy().is_some_and(is_socks) {
            // ureq's array is of a fixed size, and more addresses than it holds help nobody.
            for address in look_up(uri)?.into_iter().take(16) {
                found.push(address);
            }
        }
        Ok(found)
    }
}

/// Whether ureq's own SOCKS connector makes the connection, rather than [`TcpConnector`].
pub fn is_socks(proxy: &ureq::Proxy) -> bool {
    use ureq::ProxyProtocol::{Socks4, Socks4A, Socks5, Socks5h};
    matches!(proxy.protocol(), Socks4 | Socks4A | Socks5 | Socks5h)
}

/// The addresses of a URL's host: literals as they are, `localhost` and names below it without DNS
/// (RFC 6761), anything else from the system.
fn look_up(uri: &Uri) -> Result<Vec<SocketAddr>, ureq::Error> {
    let host = bare_host(uri);
    let port = uri.port_u16().unwrap_or_else(|| default_port(uri.scheme_str().unwrap_or_default()));
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if is_localhost(host) {
        let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok(addresses.map(|address| SocketAddr::new(address, port)).to_vec());
    }
    match (host, port).to_socket_addrs() {
        Ok(found) if found.len() > 0 => Ok(found.collect()),
        Ok(_) => Err(unreachable(format!("the name \"{host}\" has no address (check the spelling)"))),
        Err(error) => Err(unreachable(format!(
            "the name \"{host}\" could not be looked up: {} (check the spelling and the network)",
            describe(&error)
        ))),
    }
}

/// The host of a URL without the brackets of an IPv6 address.
pub fn bare_host(uri: &Uri) -> &str {
    let host = uri.host().unwrap_or_default();
    host.strip_prefix('[').and_then(|inside| inside.strip_suffix(']')).unwrap_or(host)
}

/// The port that a URL's scheme implies.
pub fn default_port(scheme: &str) -> u16 {
    match scheme {
        "https" => 443,
        "http" => 80,
        _ => 1080,
    }
}

/// Opens TCP connections, unless a SOCKS or HTTP proxy gave one already.
#[derive(Debug)]
pub struct TcpConnector {
    /// Shared with the client.
    pub watch: Arc<Watch>,
    /// How long no byte may come or go.
    pub idle_timeout: Duration,
    /// How long a server that has bytes waiting for us may take none of ours, before its answer is
    /// taken as given and the rest of the request is not sent.
    pub patience: Duration,
    /// What ends every wait.
    pub alarm: Alarm,
}

impl<In: Transport> Connector<In> for TcpConnector {
    type Out = Either<In, TcpTransport>;

    fn connect(
        &self,
        details: &ConnectionDetails,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, ureq::Error> {
        if let Some(transport) = chained {
            return Ok(Some(Either::A(transport)));
        }
        let begun = Instant::now();
        let addresses = look_up(details.uri)?;
        let limit = self.alarm.shortened(total_limit(&details.timeout).unwrap_or(self.idle_timeout));
        let (stream, is_loopback) = connect_to_one(&addresses, begun, limit).map_err(|error| {
            let proxy = if self.watch.connecting() > 1 { "the proxy " } else { "" };
            let port = addresses.first().map_or(0, SocketAddr::port);
            let host = details.uri.host().unwrap_or_default();
            unreachable(format!(
                "could not connect to {proxy}{host}:{port}: {} ({})",
                describe(&error),
                remedy(error.kind())
            ))
        })?;
        set_up(&stream, is_loopback, self.idle_timeout)?;
        let config = details.config;
        Ok(Some(Either::B(TcpTransport {
            stream,
            buffers: FreshBuffers::new(config.input_buffer_size(), config.output_buffer_size()),
            watch: Arc::clone(&self.watch),
            idle_timeout: self.idle_timeout,
            patience: self.patience,
            alarm: self.alarm.clone(),
            held: Vec::new(),
            broken: None,
            is_answered_early: false,
            was_read: false,
        })))
    }
}

/// Tries the addresses in turn. Each gets half of the time that is left, the last one all of it. Gives too whether
/// the one that was reached is on this machine.
fn connect_to_one(
    addresses: &[SocketAddr],
    begun: Instant,
    limit: Duration,
) -> io::Result<(TcpStream, bool)> {
    let mut failure: Option<io::Error> = None;
    for (index, address) in addresses.iter().enumerate() {
        let left = limit.saturating_sub(begun.elapsed());
        let share = if index + 1 == addresses.len() { left } else { left / 2 };
        if share.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, share) {
            Ok(stream) => return Ok((stream, address.ip().is_loopback())),
            // A machine without IPv6 fails every IPv6 address at once, which says nothing of the server.
            Err(error) if failure.is_some() && is_family_missing(&error) => {}
            Err(error) => failure = Some(error),
        }
    }
    Err(failure.unwrap_or_else(|| io::ErrorKind::TimedOut.into()))
}

fn is_family_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::NetworkUnreachable)
        || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

/// What is handed to the kernel leaves at once: it is gathered here. A read ends at the idle limit by itself, so that it
/// costs one system call. On a network, probes keep a silent connection in the tables of the routers in between: a
/// model may think for minutes.
fn set_up(stream: &TcpStream, is_loopback: bool, idle_timeout: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(idle_timeout.max(Duration::from_millis(1))))?;
    if !is_loopback {
        sockopt::set_socket_keepalive(stream, true)?;
        sockopt::set_tcp_keepidle(stream, Duration::from_secs(60))?;
    }
    Ok(())
}

/// A TCP connection with the buffers that ureq reads from and writes to.
#[derive(Debug)]
pub struct TcpTransport {
    stream: TcpStream,
    buffers: FreshBuffers,
    watch: Arc<Watch>,
    idle_timeout: Duration,
    patience: Duration,
    alarm: Alarm,
    /// Output that leaves with the next, or before an answer is waited for.
    held: Vec<u8>,
    /// Why sending failed, which may have been in the middle of what was handed over. TLS keeps all of it and would
    /// send it once more: from then on each sending fails at once, and for the same reason.
    broken: Option<Errno>,
    /// Set when the server answered, or closed, before it had taken the request: nothing is sent from
    /// then on, and the connection is never used again.
    is_answered_early: bool,
    /// Whether the last read gave bytes, and nobody has asked since whether this is still open.
    was_read: bool,
}

impl Transport for TcpTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        if self.is_answered_early {
            // ureq reads the answer only when it believes the request was sent.
            return Ok(());
        }
        if self.broken.is_none() && self.held.is_empty() && amount <= MOST_HELD_BYTES {
            self.held.extend_from_slice(&self.buffers.output()[..amount]);
            return Ok(());
        }
        self.send_held_and(amount, &timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        if !self.held.is_empty() {
            self.send_held_and(0, &timeout)?;
        }
        let until_deadline =
            self.watch.observed().deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let until_alarm = self.alarm.is_set().then(|| self.alarm.shortened(self.idle_timeout));
        // The socket's own limit is the idle limit; any other is waited for first.
        // Where one is over nothing is taken any more, though it be there: an answer may never end.
        if let Some(limit) = total_limit(&timeout).into_iter().chain(until_deadline).chain(until_alarm).min()
            && (limit.is_zero()
                || self.alarm.wait_for(Some((self.stream.as_fd(), PollFlags::IN)), Some(limit))?.is_empty())
        {
            return Err(ureq::Error::Timeout(timeout.reason));
        }
        let input = self.buffers.input_append_buf();
        if input.is_empty() {
            // A read into no space gives 0, which would pass for the end.
            return Err(io::Error::other("a piece of the answer is too long to take in").into());
        }
        let amount = loop {
            match (&self.stream).read(input) {
                Ok(amount) => break amount,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(ureq::Error::Timeout(Timeout::PerRead));
                }
                Err(error) => {
                    self.watch.observed().reset |= error.kind() == io::ErrorKind::ConnectionReset;
                    return Err(error.into());
                }
            }
        };
        self.buffers.input_appended(amount);
        self.was_read = amount > 0;
        let mut observed = self.watch.observed();
        observed.idle_bytes += amount;
        if observed.idle_bytes > MOST_IDLE_BYTES {
            return Err(ureq::Error::LargeResponseHeader(observed.idle_bytes, MOST_IDLE_BYTES));
        }
        Ok(amount > 0)
    }

    /// Asked before a connection is kept and before it is used again. Bytes that nobody asked for make it unusable as
    /// the end does: they are TLS's goodbye, a late 408, or the rest of another answer. They are looked for before it
    /// is used: when it is kept it was read from just now.
    fn is_open(&mut self) -> bool {
        let was_read = std::mem::take(&mut self.was_read);
        !self.is_answered_early
            && self.broken.is_none()
            && self.buffers.input().is_empty()
            && (was_read || peek(&self.stream, &mut [0]) == Err(Errno::AGAIN))
    }
}

impl Drop for TcpTransport {
    /// Sends what is held still, as TLS's last word on a certificate that it refuses. Nobody waits for it any more, and
    /// why the connection ends is known: whether it goes out changes nothing here. (Of the two records that TLS 1.3 says
    /// it in, ureq hands over the first alone.)
    fn drop(&mut self) {
        if !self.held.is_empty() && !self.is_answered_early {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let _ = send(&self.stream, &self.held, flags);
        }
    }
}

impl TcpTransport {
    /// Sends what is held and so much of the output behind it.
    fn send_held_and(&mut self, amount: usize, timeout: &NextTimeout) -> Result<(), ureq::Error> {
        if self.broken.is_none() {
            self.broken = self.send(amount, timeout).err();
            // Though it may not all have been taken: then nothing is sent any more.
            self.held.clear();
        }
        match self.broken {
            None => Ok(()),
            Some(Errno::AGAIN) => Err(ureq::Error::Timeout(Timeout::PerWrite)),
            Some(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Does so without copying either. The error of a server that takes nothing more is that it should be tried again.
    fn send(&mut self, amount: usize, timeout: &NextTimeout) -> Result<(), Errno> {
        let limit = self.alarm.shortened(total_limit(timeout).unwrap_or(self.idle_timeout));
        let mut slices = [IoSlice::new(&self.held), IoSlice::new(&self.buffers.output()[..amount])];
        let mut rest = &mut slices[..];
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match sendmsg(&self.stream, rest, &mut SendAncillaryBuffer::default(), flags) {
                Ok(sent) => IoSlice::advance_slices(&mut rest, sent),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let waited = wait_to_send(&self.stream, limit, self.patience, &self.alarm);
                    match waited.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))? {
                        Sending::Possible => {}
                        Sending::Pointless => {
                            self.is_answered_early = true;
                            break;
                        }
                        Sending::Stalled => return Err(Errno::AGAIN),
                    }
                }
                // What the server sent before it closed is still there to be read.
                Err(Errno::PIPE | Errno::CONNRESET) => {
                    self.is_answered_early = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What became of waiting until more can be sent.
enum Sending {
    Possible,
    Pointless,
    Stalled,
}

/// Waits until the server takes more of the request. A server that refuses a request often answers without
/// reading it, and then holds the connection open; waiting for it to read would end in the idle limit.
fn wait_to_send(
    stream: &TcpStream,
    limit: Duration,
    patience: Duration,
    alarm: &Alarm,
) -> io::Result<Sending> {
    let wait_for =
        |events: PollFlags, limit: Duration| alarm.wait_for(Some((stream.as_fd(), events)), Some(limit));
    let ready = wait_for(PollFlags::IN | PollFlags::OUT, limit)?;
    if ready.is_empty() {
        return Ok(Sending::Stalled);
    }
    if ready != PollFlags::IN {
        return Ok(Sending::Possible);
    }
    // Bytes are here, but they need not be an answer: a TLS server sends session tickets, and an
    // HTTP server may say 100 or 102 and read on. Only a readable refusal is certain.
    let mut start = [0; 12];
    let seen = peek(stream, &mut start).unwrap_or(0);
    if is_refusal(&start[..seen]) {
        return Ok(Sending::Pointless);
    }
    if !wait_for(PollFlags::OUT, limit.min(patience))?.is_empty() {
        return Ok(Sending::Possible);
    }
    Ok(if patience < limit { Sending::Pointless } else { Sending::Stalled })
}

/// Whether an answer begins as one that says why the request is not wanted (`HTTP/1.1 413`).
fn is_refusal(start: &[u8]) -> bool {
    start.starts_with(b"HTTP/1.") && matches!(start.get(8..10), Some([b' ', b'3'..=b'5']))
}

/// Looks at received bytes without taking them and without waiting.
fn peek(stream: &TcpStream, buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match recv(stream, &mut *buffer, RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, amount)) => return Ok(amount),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// What is left of ureq's limit on making a connection; later there is none.
fn total_limit(timeout: &NextTimeout) -> Option<Duration> {
    (!timeout.after.is_not_happening()).then_some(*timeout.after)
}

fn unreachable(text: String) -> ureq::Error {
    ureq::Error::Other(Box::new(Failure::Connect(text)))
}

/// The system's words for an error, as the middle of a sentence.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut characters = text.chars();
    characters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(characters).collect()
}

fn remedy(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "is the server running, and is the port right?",
        _ => "check the address, the network and the proxy variables",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(url: &str) -> Vec<String> {
        let found = look_up(&url.parse().unwrap()).unwrap();
        found.iter().map(SocketAddr::to_string).collect()
    }

    /// A transport with this idle limit, and the other end.
    fn transport(idle_timeout: Duration) -> (TcpTransport, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (peer, _) = listener.accept().unwrap();
        let transport = TcpTransport {
            stream,
            buffers: FreshBuffers::new(1 << 16, 1 << 16),
            watch: Arc::default(),
            idle_timeout,
            patience: Duration::from_secs(60),
            alarm: Alarm::default(),
            held: Vec::new(),
            broken: None,
            is_answered_early: false,
            was_read: false,
        };
        (transport, peer)
    }

    fn no_limit() -> NextTimeout {
        NextTimeout {
            after: ureq::unversioned::transport::time::Duration::NotHappening,
            reason: Timeout::Global,
            ..Default::default()
        }
    }

    #[test]
    fn the_head_of_a_request_leaves_with_its_body_or_before_an_answer_is_awaited() {
        let (mut transport, mut peer) = transport(Duration::from_secs(60));
        let hand_over = |transport: &mut TcpTransport, text: &[u8]| {
            transport.buffers.output()[..text.len()].copy_from_slice(text);
            transport.transmit_output(text.len(), no_limit()).unwrap();
        };
        hand_over(&mut transport, b"head ");
        assert_eq!(peek(&peer, &mut [0]), Err(Errno::AGAIN));
        hand_over(&mut transport, b"body");
        let mut taken = [0; 64];
        assert_eq!(peer.read(&mut taken).map(|amount| taken[..amount].to_vec()).unwrap(), b"head body");
        hand_over(&mut transport, b"the end");
        assert_eq!(peek(&peer, &mut [0]), Err(Errno::AGAIN));
        std::io::Write::write_all(&mut peer, b"answer").unwrap();
        assert!(transport.await_input(no_limit()).unwrap());
        assert_eq!(transport.buffers.input(), b"answer");
        assert_eq!(peer.read(&mut taken).map(|amount| taken[..amount].to_vec()).unwrap(), b"the end");
    }

    /// What was handed over is kept by TLS until it is sent, and was sent once more, behind a part of itself.
    #[test]
    fn after_a_stall_in_the_middle_of_a_piece_nothing_is_sent_any_more() {
        const PIECE: usize = 50_021;
        let (mut transport, mut peer) = transport(Duration::from_millis(50));
        for (at, byte) in transport.buffers.output()[..PIECE].iter_mut().enumerate() {
            *byte = (at % 251) as u8;
        }
        let sent = |transport: &mut TcpTransport| match transport.transmit_output(PIECE, no_limit()) {
            Ok(()) => true,
            Err(ureq::Error::Timeout(Timeout::PerWrite)) => false,
            Err(other) => panic!("{other}"),
        };
        while sent(&mut transport) {}
        // There is room again.
        let mut taken = vec![0; 1_000_000];
        peer.read_exact(&mut taken).unwrap();
        assert!(!sent(&mut transport) && !sent(&mut transport) && !transport.is_open());
        drop(transport);
        peer.read_to_end(&mut taken).unwrap();
        let wrong = taken.iter().enumerate().position(|(at, byte)| usize::from(*byte) != at % PIECE % 251);
        assert_eq!(wrong, None);
    }

    #[test]
    fn literals_are_taken_as_they_are() {
        assert_eq!(addresses("http://192.0.2.7/v1"), ["192.0.2.7:80"]);
        assert_eq!(addresses("https://192.0.2.7:8443"), ["192.0.2.7:8443"]);
        assert_eq!(addresses("https://[2001:db8::1]/"), ["[2001:db8::1]:443"]);
        assert_eq!(addresses("socks5://[::1]"), ["[::1]:1080"]);
    }

    #[test]
    fn localhost_and_names_below_it_need_no_dns() {
        for host in ["localhost", "LocalHost.", "ollama.localhost"] {
            assert_eq!(
                addresses(&format!("http://{host}:11434")),
                ["127.0.0.1:11434", "[::1]:11434"],
                "{host}"
            );
        }
    }

    #[test]
    fn only_a_final_refusal_stops_the_sending_at_once() {
        for start in ["HTTP/1.1 413", "HTTP/1.0 401", "HTTP/1.1 503", "HTTP/1.1 302"] {
            assert!(is_refusal(start.as_bytes()), "{start}");
        }
        for start in ["HTTP/1.1 100", "HTTP/1.1 200", "HTTP/1.1", "", "\u{17}\u{3}\u{3}012345678"] {
            assert!(!is_refusal(start.as_bytes()), "{start}");
        }
    }

    #[test]
    fn system_errors_read_as_the_middle_of_a_sentence() {
        assert_eq!(describe(&Errno::CONNREFUSED.into()), "connection refused");
        assert_eq!(describe(&io::ErrorKind::TimedOut.into()), "timed out");
    }
}
