//! A strict replay server on 127.0.0.1: it hands out a list of replies in order and records every
//! request with the connection it came on. What a request should look like is `check.rs`'s subject.
//!
//! It breaks replies on purpose where a test says so: cut, reset, stalled, in pieces, too early.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// By `content-length`.
    Length,
    /// By `transfer-encoding: chunked`; each piece is a chunk of its own.
    Chunked,
    /// By closing the connection.
    Close,
}

/// What happens to the connection after the bytes of a reply that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It is closed in good order.
    Close,
    /// It is reset: the client's next read fails once it has read what was sent.
    Reset,
    /// Nothing more is sent until the client goes.
    Stall,
    /// These bytes follow one by one, again and again and with a rest after each, until the client goes.
    Drip(&'static [u8]),
    /// These bytes follow again and again until the client goes or has taken so many of them; then all is over.
    Flood(&'static [u8], u64),
}

/// The rest after each byte that drips.
const REST: Duration = Duration::from_millis(100);

/// When a reply is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// After the whole request was read.
    AfterBody,
    /// After the request's head; the body is never read and the connection is closed.
    BeforeBody,
}

/// Holds a reply back, so that a test can look at a program that waits for it.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    asked: bool,
    open: bool,
}

impl Gate {
    /// Returns once the whole request for the reply has arrived.
    #[track_caller]
    pub fn wait_until_asked(&self) {
        let state = self.state.lock().unwrap();
        let waited = self.changed.wait_timeout_while(state, Duration::from_secs(60), |state| !state.asked);
        let (state, _) = waited.unwrap();
        assert!(state.asked, "the reply that is held back was never asked for");
    }

    /// Lets the reply go.
    pub fn open(&self) {
        self.state.lock().unwrap().open = true;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.asked = true;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| !state.open).unwrap());
    }
}

/// One reply and how it is sent.
#[derive(Debug, Clone)]
pub struct Reply {
    status_line: String,
    headers: Vec<String>,
    body: Vec<u8>,
    framing: Framing,
    timing: Timing,
    pieces: Vec<usize>,
    cut: Option<(usize, Ending)>,
    has_head: bool,
    gate: Option<Arc<Gate>>,
}

impl Reply {
    /// The reply that a `NN.response.http` file holds: status line, headers, an empty line, and the raw
    /// body up to the end of the file.
    pub fn recorded(file: &[u8]) -> Reply {
        let (head, body) = split_head(file);
        let head = String::from_utf8(head.to_vec()).expect("the head of a recording is text");
        let mut lines = head.lines().map(str::to_owned);
        let status_line = lines.next().expect("a recording starts with a status line");
        assert!(status_line.starts_with("HTTP/1.1 "), "not a status line: {status_line}");
        Reply {
            status_line,
            headers: lines.filter(|line| !is_framing(line)).collect(),
            body: body.to_vec(),
            framing: Framing::Length,
            timing: Timing::AfterBody,
            pieces: Vec::new(),
            cut: None,
            has_head: true,
            gate: None,
        }
    }

    /// No reply at all: the request is read, not a byte is sent, and the connection ends in this way.
    pub fn nothing(ending: Ending) -> Reply {
        let mut reply = Reply::new(200, "text/plain", "").cut(0, ending);
        reply.has_head = false;
        reply
    }

    /// Bytes as they go over the wire, HTTP or not; then the connection ends in this way.
    pub fn raw(bytes: impl AsRef<[u8]>, ending: Ending) -> Reply {
        let reply = Reply::new(200, "text/plain", bytes.as_ref());
        let length = reply.body.len();
        Reply { has_head: false, framing: Framing::Close, ..reply.cut(length, ending) }
    }

    /// The reply in a file of the project, named from its root.
    pub fn file(path: &str) -> Reply {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Reply::recorded(&bytes)
    }

    /// A reply made up on the spot.
    pub fn new(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Reply {
        let head = format!("HTTP/1.1 {status} Status\ncontent-type: {content_type}\n\n");
        Reply::recorded(&[head.as_bytes(), body.as_ref()].concat())
    }

    /// Adds a header line, such as `retry-after: 1`.
    pub fn header(mut self, line: &str) -> Reply {
        self.headers.push(line.to_owned());
        self
    }

    /// Tells the end of the body in this way; `Framing::Length` unless asked.
    pub fn framing(mut self, framing: Framing) -> Reply {
        self.framing = framing;
        self
    }

    /// Sends only the first `bytes` of the body, then ends in this way.
    pub fn cut(mut self, bytes: usize, ending: Ending) -> Reply {
        assert!(bytes <= self.body.len(), "the body has only {} bytes", self.body.len());
        self.cut = Some((bytes, ending));
        self
    }

    /// Sends the body in pieces that end at these offsets.
    pub fn pieces(mut self, offsets: &[usize]) -> Reply {
        self.pieces = offsets.to_vec();
        self
    }

    /// Answers as soon as the request's head is there, and closes without reading its body.
    pub fn before_body(mut self) -> Reply {
        self.timing = Timing::BeforeBody;
        self
    }

    /// The whole reply as it goes over the wire, for a server of a test's own.
    pub fn wire(&self) -> Vec<u8> {
        [self.head().as_bytes(), &self.body].concat()
    }

    /// The same reply with another text in the place of a text of its body.
    pub fn replace(mut self, old: &str, new: &str) -> Reply {
        self.body = String::from_utf8(self.body).expect("the body is text").replace(old, new).into_bytes();
        self
    }

    /// Sends nothing until the gate is opened.
    pub fn held_by(mut self, gate: &Arc<Gate>) -> Reply {
        self.gate = Some(Arc::clone(gate));
        self
    }

    /// The body as it was recorded.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    fn head(&self) -> String {
        let mut head = format!("{}\r\n", self.status_line);
        for line in &self.headers {
            head.push_str(&format!("{line}\r\n"));
        }
        match self.framing {
            Framing::Length => head.push_str(&format!("content-length: {}\r\n", self.body.len())),
            Framing::Chunked => head.push_str("transfer-encoding: chunked\r\n"),
            Framing::Close => head.push_str("connection: close\r\n"),
        }
        head + "\r\n"
    }

    fn leaves_the_connection_open(&self) -> bool {
        self.framing != Framing::Close && self.cut.is_none() && self.timing == Timing::AfterBody
    }
}

/// Splits at the first empty line, whichever way lines end.
fn split_head(file: &[u8]) -> (&[u8], &[u8]) {
    let mut start = 0;
    for (index, byte) in file.iter().enumerate() {
        if *byte == b'\n' {
            if matches!(&file[start..index], b"" | b"\r") {
                return (&file[..start], &file[index + 1..]);
            }
            start = index + 1;
        }
    }
    panic!("a recording has an empty line after its headers");
}

/// Headers that the server writes itself.
fn is_framing(line: &str) -> bool {
    let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
    matches!(name.as_str(), "content-length" | "transfer-encoding" | "connection")
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// The connection it came on, counted from 0.
    pub connection: usize,
    /// `POST` or `GET`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// Names in lower case, in the order sent.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub body: Vec<u8>,
    /// Whether the body was read to its end; false only if the reply was sent before it.
    pub complete: bool,
}

impl Request {
    /// The value of the header of this lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(each, _)| each == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body of a request is JSON")
    }
}

/// What a server saw until it was stopped.
#[derive(Debug)]
pub struct Record {
    /// All requests in the order of their arrival.
    pub requests: Vec<Request>,
    /// What was wrong with the exchange as such: a request too many, a reply nobody asked for.
    pub problems: Vec<String>,
    /// How many bytes of replies the client's side took; what it did not read of them is not known here.
    pub sent: u64,
}

#[derive(Default)]
struct State {
    replies: VecDeque<Reply>,
    requests: Vec<Request>,
    problems: Vec<String>,
    sent: u64,
    connections: Vec<Weak<TcpStream>>,
    stopping: bool,
}

/// A running server.
pub struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Starts to listen on a free port of 127.0.0.1.
    pub fn start(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let state = Arc::new(Mutex::new(State { replies: replies.into(), ..State::default() }));
        let shared = Arc::clone(&state);
        let accepting = thread::spawn(move || accept(&listener, &shared));
        Server { address, state, accepting }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How many whole requests have come.
    pub fn count(&self) -> usize {
        self.state.lock().unwrap().requests.len()
    }

    /// Ends all connections and tells what was seen.
    pub fn stop(self) -> Record {
        self.state.lock().unwrap().stopping = true;
        // Connections that wait to be accepted come before this one, so none is overlooked.
        let _ = TcpStream::connect(self.address);
        self.accepting.join().expect("the server thread does not panic");
        let mut state = self.state.lock().unwrap();
        let mut problems = std::mem::take(&mut state.problems);
        if !state.replies.is_empty() {
            problems.push(format!("{} replies were never asked for", state.replies.len()));
        }
        Record { requests: std::mem::take(&mut state.requests), problems, sent: state.sent }
    }
}

fn accept(listener: &TcpListener, state: &Arc<Mutex<State>>) {
    let mut threads = Vec::new();
    for (number, stream) in listener.incoming().enumerate() {
        let stream = Arc::new(stream.expect("a connection"));
        let mut locked = state.lock().unwrap();
        if locked.stopping {
            for stream in locked.connections.iter().filter_map(Weak::upgrade) {
                let _ = stream.shutdown(Shutdown::Both);
            }
            break;
        }
        locked.connections.push(Arc::downgrade(&stream));
        let shared = Arc::clone(state);
        threads.push(thread::spawn(move || serve(number, &stream, &shared)));
    }
    for thread in threads {
        thread.join().expect("a connection's thread does not panic");
    }
}

/// Answers the requests of one connection until one side closes it. An error means that the client
/// went away, which is its right: what it should have asked for is missing from the record.
fn serve(connection: usize, stream: &TcpStream, state: &Mutex<State>) {
    let _ = stream.set_nodelay(true);
    while let Ok(Some(head)) = read_head(stream) {
        // As a proxy it leads to itself, whatever host is asked for.
        if head.starts_with("CONNECT ") {
            let _ = (&mut &*stream).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n");
            continue;
        }
        let reply = next_reply(&head, state);
        let request = read_request(connection, &head, &reply, stream);
        let mut locked = state.lock().unwrap();
        if !request.complete && reply.timing == Timing::AfterBody {
            locked.problems.push(format!("the body of {} {} ended early", request.method, request.path));
        }
        locked.requests.push(request);
        drop(locked);
        if let Some(gate) = &reply.gate {
            gate.pass();
        }
        let mut counted = Counted { stream, count: 0 };
        let sent = send(&reply, &mut counted);
        state.lock().unwrap().sent += counted.count;
        if sent.is_err() || !reply.leaves_the_connection_open() {
            return;
        }
    }
}

fn next_reply(head: &str, state: &Mutex<State>) -> Reply {
    let mut locked = state.lock().unwrap();
    locked.replies.pop_front().unwrap_or_else(|| {
        let first_line = head.lines().next().unwrap_or_default().to_owned();
        locked.problems.push(format!("a request too many: {first_line}"));
        // The word in the header keeps a client from asking again and again.
        Reply::new(
            599,
            "application/json",
            r#"{"error":{"message":"the replay server has no more replies"}}"#,
        )
        .header("x-should-retry: false")
        .framing(Framing::Close)
    })
}

/// Reads up to the empty line, byte by byte: what is left unread in the kernel decides between a
/// close and a reset. `None` if the client closed between requests.
fn read_head(mut stream: &TcpStream) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    Ok(Some(String::from_utf8_lossy(&head).into_owned()))
}

fn read_request(connection: usize, head: &str, reply: &Reply, stream: &TcpStream) -> Request {
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    let mut request =
        Request { connection, method, path, headers: headers.collect(), body: Vec::new(), complete: false };
    if reply.timing == Timing::AfterBody {
        let length = request.header("content-length").map_or(Ok(0), str::parse);
        let length = length.expect("content-length is a number");
        if request.header("expect").is_some() {
            let _ = (&mut &*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        request.body = vec![0; length];
        request.complete = read_body(&mut request.body, reply, stream).is_ok();
    }
    request
}

/// Reads the body; before a reset its last byte is only looked at, because a socket that is closed
/// with unread bytes sends a reset, the one way to get it from the standard library.
fn read_body(body: &mut [u8], reply: &Reply, mut stream: &TcpStream) -> io::Result<()> {
    match (body.split_last_mut(), reply.cut) {
        (Some((last, start)), Some((_, Ending::Reset))) => {
            stream.read_exact(start)?;
            let mut byte = [0];
            match stream.peek(&mut byte)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                _ => *last = byte[0],
            }
            Ok(())
        }
        _ => stream.read_exact(body),
    }
}

/// A connection that counts what it takes.
struct Counted<'a> {
    stream: &'a TcpStream,
    count: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.stream.write(bytes)?;
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn send(reply: &Reply, stream: &mut Counted) -> io::Result<()> {
    if reply.has_head {
        stream.write_all(reply.head().as_bytes())?;
    }
    let end = reply.cut.map_or(reply.body.len(), |(bytes, _)| bytes);
    let mut start = 0;
    let offsets = reply.pieces.iter().copied().filter(|offset| *offset < end);
    for offset in offsets.chain([end]).collect::<Vec<_>>() {
        let piece = &reply.body[start..offset];
        match reply.framing {
            _ if piece.is_empty() => {}
            Framing::Chunked => {
                let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                stream.write_all(&chunk)?;
            }
            Framing::Length | Framing::Close => stream.write_all(piece)?,
        }
        stream.flush()?;
        start = offset;
    }
    match reply.cut {
        None if reply.framing == Framing::Chunked => stream.write_all(b"0\r\n\r\n"),
        Some((_, Ending::Stall)) => wait_until_gone(stream.stream),
        Some((_, Ending::Drip(bytes))) => drip(bytes, stream),
        Some((_, Ending::Flood(bytes, most))) => flood(bytes, most, stream),
        _ => Ok(()),
    }
}

fn wait_until_gone(mut stream: &TcpStream) -> io::Result<()> {
    let mut bytes = [0; 1024];
    while stream.read(&mut bytes)? > 0 {}
    Ok(())
}

/// Sends a byte, and another whenever the client is still there after the rest.
fn drip(bytes: &[u8], stream: &mut Counted) -> io::Result<()> {
    stream.stream.set_read_timeout(Some(REST))?;
    for byte in bytes.iter().cycle() {
        stream.write_all(&[*byte])?;
        match (&mut &*stream.stream).read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            gone => return gone.map(|_| ()),
        }
    }
    Ok(())
}

fn flood(bytes: &[u8], most: u64, stream: &mut Counted) -> io::Result<()> {
    const LEAST: usize = 256 * 1024;
    let piece = bytes.repeat(LEAST.div_ceil(bytes.len()));
    while stream.count < most {
        stream.write_all(&piece)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(port: u16, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        ask(&mut stream, body);
        stream
    }

    fn ask(stream: &mut TcpStream, body: &str) {
        let length = body.len();
        let text = format!("POST /v1/x HTTP/1.1\r\nHost: here\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).unwrap();
    }

    fn read_all(mut stream: TcpStream) -> (String, io::Result<usize>) {
        let mut bytes = Vec::new();
        let result = stream.read_to_end(&mut bytes);
        (String::from_utf8(bytes).unwrap(), result)
    }

    fn read_bytes(stream: &mut TcpStream, count: usize) -> String {
        let mut bytes = vec![0; count];
        stream.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn hello() -> Reply {
        Reply::recorded(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\ncontent-length: 99\n\nhello\n\nyou")
    }

    #[test]
    fn the_body_is_everything_after_the_first_empty_line_and_the_length_is_its_own() {
        let server = Server::start(vec![hello().framing(Framing::Close)]);
        let (text, _) = read_all(post(server.port(), "ask"));
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nhello\n\nyou"
        );
        let record = server.stop();
        assert_eq!(record.problems, [""; 0]);
        assert_eq!(record.requests[0].body, b"ask");
        assert_eq!(record.requests[0].header("host"), Some("here"));
        assert_eq!((record.requests[0].method.as_str(), record.requests[0].path.as_str()), ("POST", "/v1/x"));
    }

    #[test]
    fn a_connection_is_kept_and_numbered() {
        let server = Server::start(vec![hello(), hello(), hello()]);
        let expected =
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nhello\n\nyou";
        let mut first = post(server.port(), "one");
        assert_eq!(read_bytes(&mut first, expected.len()), expected);
        ask(&mut first, "two");
        assert_eq!(read_bytes(&mut first, expected.len()), expected);
        let mut second = post(server.port(), "three");
        assert_eq!(read_bytes(&mut second, expected.len()), expected);
        let record = server.stop();
        assert_eq!(record.problems, [""; 0]);
        let seen: Vec<_> = record.requests.iter().map(|request| request.connection).collect();
        assert_eq!(seen, [0, 0, 1]);
    }

    #[test]
    fn chunks_are_the_pieces_asked_for() {
        let reply = hello().framing(Framing::Chunked).pieces(&[1, 7]);
        let server = Server::start(vec![reply]);
        let stream = post(server.port(), "");
        stream.shutdown(Shutdown::Write).unwrap();
        let (text, _) = read_all(stream);
        assert!(text.ends_with("\r\n\r\n1\r\nh\r\n6\r\nello\n\n\r\n3\r\nyou\r\n0\r\n\r\n"), "{text}");
        server.stop();
    }

    #[test]
    fn a_cut_reply_ends_after_its_bytes() {
        let server = Server::start(vec![hello().cut(4, Ending::Close)]);
        let (text, result) = read_all(post(server.port(), "ask"));
        assert!(text.ends_with("content-length: 10\r\n\r\nhell"), "{text}");
        assert!(result.is_ok());
        assert_eq!(server.stop().problems, [""; 0]);
    }

    #[test]
    fn a_reset_comes_after_the_bytes_were_read() {
        let server = Server::start(vec![hello().cut(4, Ending::Reset)]);
        let (text, result) = read_all(post(server.port(), "ask"));
        assert!(text.ends_with("\r\n\r\nhell"), "{text}");
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        let record = server.stop();
        assert_eq!(record.problems, [""; 0]);
        assert_eq!(record.requests[0].body, b"ask");
    }

    #[test]
    fn a_stalled_reply_ends_when_the_client_goes() {
        let server = Server::start(vec![hello().cut(4, Ending::Stall)]);
        let mut stream = post(server.port(), "ask");
        let mut bytes = [0; 16];
        stream.read_exact(&mut bytes).unwrap();
        drop(stream);
        assert_eq!(server.stop().problems, [""; 0]);
    }

    #[test]
    fn raw_bytes_have_no_head_but_their_own() {
        let server = Server::start(vec![Reply::raw("what?", Ending::Close)]);
        assert_eq!(read_all(post(server.port(), "ask")).0, "what?");
        assert_eq!(server.stop().sent, 5);
    }

    #[test]
    fn what_drips_ends_when_the_client_goes() {
        let server = Server::start(vec![hello().cut(4, Ending::Drip(b"xyz"))]);
        let mut stream = post(server.port(), "ask");
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"hellxyzx") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            bytes.push(byte[0]);
        }
        drop(stream);
        assert_eq!(server.stop().problems, [""; 0]);
    }

    #[test]
    fn a_flood_ends_when_the_client_goes_or_has_had_it_all() {
        let server = Server::start(vec![hello().cut(4, Ending::Flood(b"xyz", u64::MAX))]);
        let mut stream = post(server.port(), "ask");
        stream.read_exact(&mut [0; 1_000_000]).unwrap();
        drop(stream);
        let record = server.stop();
        assert!(record.sent > 1_000_000 && record.problems.is_empty());

        let server = Server::start(vec![hello().cut(4, Ending::Flood(b"xyz", 1_000_000))]);
        let (text, _) = read_all(post(server.port(), "ask"));
        assert!(text.ends_with("xyzxyz") && text.len() >= 1_000_000, "{} bytes", text.len());
        assert_eq!(server.stop().sent, text.len() as u64);
    }

    #[test]
    fn nothing_is_no_byte_and_then_the_end() {
        let server = Server::start(vec![Reply::nothing(Ending::Close)]);
        let (text, result) = read_all(post(server.port(), "ask"));
        assert_eq!((text.as_str(), result.unwrap()), ("", 0));
        assert_eq!(server.stop().requests[0].body, b"ask");
    }

    #[test]
    fn a_reply_is_held_back_until_its_gate_is_opened() {
        let gate = Arc::new(Gate::default());
        let server = Server::start(vec![hello().framing(Framing::Close).held_by(&gate)]);
        let stream = post(server.port(), "ask");
        gate.wait_until_asked();
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.peek(&mut [0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).unwrap();
        gate.open();
        assert!(read_all(stream).0.ends_with("hello\n\nyou"));
        assert_eq!(server.stop().problems, [""; 0]);
    }

    #[test]
    fn an_early_reply_leaves_the_body_unread() {
        let server = Server::start(vec![Reply::new(413, "text/plain", "too big").before_body()]);
        let (text, result) = read_all(post(server.port(), "a long body"));
        assert!(text.starts_with("HTTP/1.1 413 Status\r\n") && text.ends_with("too big"), "{text}");
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        let record = server.stop();
        assert_eq!(record.problems, [""; 0]);
        assert!(!record.requests[0].complete);
    }

    #[test]
    fn a_request_too_many_and_a_reply_too_many_are_problems() {
        let server = Server::start(Vec::new());
        let (text, _) = read_all(post(server.port(), "ask"));
        assert!(text.starts_with("HTTP/1.1 599 "), "{text}");
        assert_eq!(server.stop().problems, ["a request too many: POST /v1/x HTTP/1.1"]);

        let server = Server::start(vec![hello(), hello()]);
        assert_eq!(server.stop().problems, ["2 replies were never asked for"]);
    }
}
