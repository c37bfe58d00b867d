//! Exchanges with servers made for the purpose, over real loopback sockets.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::{JoinHandle, spawn};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::*;
use crate::alarm::Alarm;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Long enough never to be reached where all goes well.
const LONG: Duration = Duration::from_secs(60);

/// Starts a server that does what `script` says; its result is had by joining.
fn serve<T: Send + 'static>(script: impl FnOnce(TcpListener) -> T + Send + 'static) -> (u16, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, spawn(move || script(listener)))
}

/// A server that takes one connection, reads one request, says `answer` and closes. Gives the request.
fn serve_once(answer: impl Into<Vec<u8>>) -> (u16, JoinHandle<Seen>) {
    let answer = answer.into();
    serve(move |listener| {
        let mut stream = accept(&listener);
        let seen = read_request(&mut stream);
        stream.write_all(&answer).unwrap();
        seen
    })
}

fn accept(listener: &TcpListener) -> TcpStream {
    let stream = listener.accept().unwrap().0;
    // What waits for an acknowledgement is lost when closing resets.
    stream.set_nodelay(true).unwrap();
    stream
}

/// A request as a server saw it.
#[derive(Debug, PartialEq)]
struct Seen {
    head: String,
    body: Vec<u8>,
}

impl Seen {
    fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(known, _)| *known == name)
            .map(|(_, v)| v)
    }
}

fn read_request(stream: &mut impl Read) -> Seen {
    let mut seen = Seen { head: read_head(stream), body: Vec::new() };
    let length = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    stream.take(length).read_to_end(&mut seen.body).unwrap();
    seen
}

fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name)
}

/// The server's side of TLS over an accepted connection.
fn tls(stream: TcpStream, certificate: &str) -> StreamOwned<ServerConnection, TcpStream> {
    tls_of(rustls::ALL_VERSIONS, stream, certificate)
}

/// The same in these versions.
fn tls_of(
    versions: &[&'static rustls::SupportedProtocolVersion],
    stream: TcpStream,
    certificate: &str,
) -> StreamOwned<ServerConnection, TcpStream> {
    let chain = vec![CertificateDer::from_pem_file(fixture(certificate)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream)
}

/// Says goodbye as TLS has it, and closes.
fn close(mut stream: StreamOwned<ServerConnection, TcpStream>) {
    stream.conn.send_close_notify();
    stream.flush().unwrap();
}

fn settings() -> NetworkSettings {
    NetworkSettings {
        alarm: Alarm::default(),
        ca_bundle: Some(fixture("ca.pem")),
        proxies: ProxySettings::default(),
        idle_timeout: LONG,
        connect_timeout: LONG,
    }
}

fn client() -> Client {
    Client::new(settings())
}

fn idle_client(idle_timeout: Duration) -> Client {
    Client::new(NetworkSettings { idle_timeout, ..settings() })
}

fn proxy_client(proxy: &str) -> Client {
    let proxies = ProxySettings { all: Some(proxy.to_owned()), ..ProxySettings::default() };
    Client::new(NetworkSettings { proxies, ..settings() })
}

fn read_all(response: &mut Response) -> Result<String, Failure> {
    let mut text = Vec::new();
    let mut buffer = [0; 1000];
    loop {
        match response.read(&mut buffer)? {
            0 => return Ok(String::from_utf8(text).unwrap()),
            amount => text.extend_from_slice(&buffer[..amount]),
        }
    }
}

/// A GET and its whole body, or what went wrong with either.
fn fetch(client: &mut Client, url: &str) -> Result<String, Failure> {
    read_all(&mut client.get(url, &[])?)
}

/// What an exchange that is meant to fail says.
fn failure(client: &mut Client, url: &str) -> Failure {
    fetch(client, url).unwrap_err()
}

fn plain_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

#[test]
fn a_post_sends_its_slices_as_one_body_and_gives_status_headers_and_body() {
    let (port, server) = serve_once(
        "HTTP/1.1 418 Teapot\r\nX-Request-Id: 7\r\nX-Odd: caf\u{e9}\r\ncontent-length: 5\r\n\r\nshort",
    );
    let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
    let mut response = client()
        .post(&format!("http://localhost:{port}/v1/messages?beta=true"), &headers, &[b"{\"a\"", b"", b":1}"])
        .unwrap();
    assert_eq!(response.status, 418);
    assert_eq!(response.header("x-request-id").as_deref(), Some("7"));
    assert_eq!(response.header("x-odd").as_deref(), Some("caf\u{e9}"));
    assert_eq!(response.header("absent"), None);
    assert_eq!(read_all(&mut response).unwrap(), "short");
    assert_eq!(response.read(&mut [0]), Ok(0));

    let seen = server.join().unwrap();
    assert_eq!(seen.body, b"{\"a\":1}");
    let mut lines: Vec<&str> = seen.head.trim_end().lines().collect();
    lines[1..].sort_unstable();
    let expected = [
        "POST /v1/messages?beta=true HTTP/1.1".to_owned(),
        "accept-encoding: identity".to_owned(),
        "accept: */*".to_owned(),
        "content-length: 7".to_owned(),
        "content-type: application/json".to_owned(),
        format!("host: localhost:{port}"),
        format!("user-agent: cotter/{}", env!("CARGO_PKG_VERSION")),
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_empty_body_and_a_large_one_arrive_whole() {
    for length in [0, 1, 3_000_000] {
        let (port, server) = serve_once(OK);
        let body: Vec<u8> = (0..length).map(|index: usize| (index % 251) as u8).collect();
        let slices: Vec<&[u8]> = body.chunks(70_001).collect();
        let mut response = client().post(&plain_url(port), &[], &slices).unwrap();
        assert_eq!(read_all(&mut response).unwrap(), "ok");
        assert!(server.join().unwrap().body == body, "{length}");
    }
}

/// The map that ureq takes them in panics where they are more than it holds.
#[test]
fn more_headers_than_can_be_sent_are_an_error() {
    let headers: Vec<_> = (0..25_000).map(|number| (format!("x-{number}"), String::new())).collect();
    let refused = client().get("http://127.0.0.1:1", &headers).err();
    assert_eq!(
        refused,
        Some(Failure::Setup("there are more headers than a request can carry: pass fewer".to_owned()))
    );
}

#[test]
fn given_headers_take_the_place_of_the_usual_ones() {
    let (port, server) = serve_once(OK);
    let headers = [("Accept-Encoding", "gzip"), ("User-Agent", "curl"), ("Accept", "text/event-stream")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    client().get(&plain_url(port), &headers).unwrap();
    let seen = server.join().unwrap();
    assert_eq!(seen.header("accept-encoding"), Some("gzip"));
    assert_eq!(seen.header("user-agent"), Some("curl"));
    assert_eq!(seen.header("accept"), Some("text/event-stream"));
    assert_eq!(seen.header("content-length"), None);
}

#[test]
fn redirects_are_responses() {
    for (status, rest) in [
        (301, "content-length: 0\r\n\r\n"),
        (302, "content-length: 5\r\n\r\nmoved"),
        (303, "transfer-encoding: chunked\r\n\r\n5\r\nmoved\r\n0\r\n\r\n"),
        (307, "\r\n"),
        (308, "content-length: 0\r\n\r\n"),
    ] {
        let (port, server) =
            serve_once(format!("HTTP/1.1 {status} Moved\r\nlocation: ::elsewhere\r\n{rest}"));
        let mut response = client().post(&plain_url(port), &[], &[b"{}"]).unwrap();
        assert_eq!((response.status, response.header("location").as_deref()), (status, Some("::elsewhere")));
        let expected = if rest.contains("moved") { "moved" } else { "" };
        assert_eq!(read_all(&mut response).unwrap(), expected);
        server.join().unwrap();
    }
}

#[test]
fn informational_answers_are_skipped() {
    let (port, server) = serve_once(format!(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n{OK}"
    ));
    assert_eq!(fetch(&mut client(), &plain_url(port)), Ok("ok".to_owned()));
    server.join().unwrap();
}

#[test]
fn what_is_not_http_is_a_protocol_failure() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(129));
    let long = format!("HTTP/1.1 200 OK\r\na: {}\r\n\r\n", "b".repeat(70_000));
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(80_000));
    let hint = "(check host, port and scheme of the URL)";
    for (answer, expected) in [
        (
            "SSH-2.0-OpenSSH_9.6\r\n".to_owned(),
            format!("what 127.0.0.1 answered is not HTTP/1.1: http parse fail: invalid HTTP version {hint}"),
        ),
        (
            many,
            format!(
                "what 127.0.0.1 answered is not HTTP/1.1: http parse resulted in too many headers {hint}"
            ),
        ),
        (long, "the head of the answer of 127.0.0.1 is longer than 64 KiB".to_owned()),
        (endless, "the head of the answer of 127.0.0.1 is longer than 64 KiB".to_owned()),
    ] {
        let (port, server) = serve_once(answer);
        assert_eq!(failure(&mut client(), &plain_url(port)), Failure::Protocol(expected));
        server.join().unwrap();
    }
}

#[test]
fn a_cut_body_is_a_failure_and_stays_one() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nshort",
    ] {
        let (port, server) = serve_once(answer);
        let mut response = client().get(&plain_url(port), &[]).unwrap();
        let mut buffer = [0; 100];
        assert_eq!(response.read(&mut buffer), Ok(5));
        let cut = Failure::Broken("127.0.0.1 closed the connection in the middle of its answer".to_owned());
        assert_eq!(response.read(&mut buffer), Err(cut.clone()));
        assert_eq!(response.read(&mut buffer), Err(cut));
        server.join().unwrap();
    }
}

#[test]
fn wrong_chunks_are_a_broken_answer() {
    let (port, server) = serve_once("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nshort\r\n");
    let expected = "the answer of 127.0.0.1 is framed wrongly: chunk length cannot be read as a number";
    assert_eq!(failure(&mut client(), &plain_url(port)), Failure::Broken(expected.to_owned()));
    server.join().unwrap();
}

#[test]
fn a_body_without_framing_ends_with_the_connection() {
    let (port, server) = serve_once("HTTP/1.1 200 OK\r\n\r\nall there is");
    assert_eq!(fetch(&mut client(), &plain_url(port)), Ok("all there is".to_owned()));
    server.join().unwrap();
}

#[test]
fn a_reset_does_not_pass_for_the_end_of_a_body_without_framing() {
    let (go, wait) = mpsc::channel();
    let (port, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nhalf").unwrap();
        wait.recv().unwrap();
        // The request's body is still unread, so that closing resets.
    });
    let mut response = client().post(&plain_url(port), &[], &[b"unread"]).unwrap();
    let mut buffer = [0; 100];
    assert_eq!(response.read(&mut buffer), Ok(4));
    go.send(()).unwrap();
    let expected = "127.0.0.1 reset the connection in the middle of its answer";
    assert_eq!(response.read(&mut buffer), Err(Failure::Broken(expected.to_owned())));
    server.join().unwrap();
}

#[test]
fn silence_is_a_stall_and_says_whether_an_answer_had_begun() {
    let (done, wait) = mpsc::channel::<()>();
    let (port, server) = serve(move |listener| {
        let silent = accept(&listener);
        let mut half = accept(&listener);
        half.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").unwrap();
        let _ = wait.recv();
        drop((silent, half));
    });
    let text = "127.0.0.1 sent nothing for 0.05 s (--idle-timeout sets how long to wait)".to_owned();
    let mut client = idle_client(Duration::from_millis(50));
    let stalled = failure(&mut client, &plain_url(port));
    assert_eq!(stalled, Failure::Stalled { text: text.clone(), answered: false });
    let stalled = failure(&mut client, &plain_url(port));
    assert_eq!(stalled, Failure::Stalled { text, answered: true });
    drop(done);
    server.join().unwrap();
}

#[test]
fn a_server_that_takes_nothing_is_a_stall() {
    let (done, wait) = mpsc::channel::<()>();
    let (port, server) = serve(move |listener| {
        let _stream = accept(&listener);
        let _ = wait.recv();
    });
    let mut client = idle_client(Duration::from_millis(50));
    let stalled = client.post(&plain_url(port), &[], &[&vec![0; 20_000_000]]).err();
    let text = "127.0.0.1 took nothing for 0.05 s (--idle-timeout sets how long to wait)".to_owned();
    assert_eq!(stalled, Some(Failure::Stalled { text, answered: false }));
    drop(done);
    server.join().unwrap();
}

#[test]
fn a_connection_is_kept_when_the_body_was_read_to_its_end() {
    let (port, server) = serve(|listener| {
        let mut stream = accept(&listener);
        for answer in [
            OK,
            "HTTP/1.1 204 No\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
            OK,
        ] {
            read_request(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let mut client = client();
    for expected in ["ok", "", "ok", "ok"] {
        assert_eq!(fetch(&mut client, &plain_url(port)), Ok(expected.to_owned()));
    }
    server.join().unwrap();
}

#[test]
fn a_tls_connection_is_kept_too() {
    let (port, server) = serve(|listener| {
        let mut stream = tls(accept(&listener), "localhost.pem");
        for _ in 0..3 {
            read_request(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let mut client = client();
    for host in ["localhost", "localhost", "localhost"] {
        assert_eq!(fetch(&mut client, &format!("https://{host}:{port}")), Ok("ok".to_owned()));
    }
    server.join().unwrap();
}

#[test]
fn a_kept_connection_that_the_server_closed_is_not_used() {
    for secure in [false, true] {
        let (closed, is_closed) = mpsc::channel();
        let (port, server) = serve(move |listener| {
            for _ in 0..2 {
                let mut stream = accept(&listener);
                if secure {
                    let mut stream = tls(stream, "localhost.pem");
                    read_request(&mut stream);
                    stream.write_all(OK.as_bytes()).unwrap();
                    close(stream);
                } else {
                    read_request(&mut stream);
                    stream.write_all(OK.as_bytes()).unwrap();
                    drop(stream);
                }
                closed.send(()).unwrap();
            }
        });
        let mut client = client();
        let url = format!("http{}://127.0.0.1:{port}", if secure { "s" } else { "" });
        for _ in 0..2 {
            assert_eq!(fetch(&mut client, &url), Ok("ok".to_owned()));
            is_closed.recv().unwrap();
        }
        server.join().unwrap();
    }
}

#[test]
fn a_kept_connection_with_unasked_bytes_is_not_used() {
    let (sent, is_sent) = mpsc::channel();
    let (port, server) = serve(move |listener| {
        let mut first = accept(&listener);
        read_request(&mut first);
        first.write_all(OK.as_bytes()).unwrap();
        let (mut second, late) = (accept(&listener), "HTTP/1.1 408 Late\r\ncontent-length: 0\r\n\r\n");
        read_request(&mut second);
        second.write_all(OK.as_bytes()).unwrap();
        second.write_all(late.as_bytes()).unwrap();
        sent.send(()).unwrap();
        let mut third = accept(&listener);
        read_request(&mut third);
        third.write_all(OK.as_bytes()).unwrap();
    });
    // The first connection is held by a response that was not read.
    let mut client = client();
    let held = client.get(&plain_url(port), &[]).unwrap();
    assert_eq!(fetch(&mut client, &plain_url(port)), Ok("ok".to_owned()));
    is_sent.recv().unwrap();
    assert_eq!(fetch(&mut client, &plain_url(port)), Ok("ok".to_owned()));
    drop(held);
    server.join().unwrap();
}

#[test]
fn a_post_over_a_kept_connection_that_breaks_is_sent_once_more_over_a_new_one() {
    let (port, server) = serve(|listener| {
        let mut first = accept(&listener);
        read_request(&mut first);
        first.write_all(OK.as_bytes()).unwrap();
        read_request(&mut first);
        drop(first);
        let mut second = accept(&listener);
        let request = read_request(&mut second);
        second.write_all(OK.as_bytes()).unwrap();
        read_request(&mut second);
        drop(second);
        // The new connection is not tried a third time.
        read_request(&mut accept(&listener));
        request
    });
    let mut client = client();
    let post = |client: &mut Client| {
        let mut response = client.post(&plain_url(port), &[], &[b"ab", b"cd"])?;
        let mut body = String::new();
        let mut buffer = [0; 16];
        loop {
            match response.read(&mut buffer)? {
                0 => return Ok::<String, Failure>(body),
                count => body.push_str(std::str::from_utf8(&buffer[..count]).unwrap()),
            }
        }
    };
    assert_eq!(post(&mut client), Ok("ok".to_owned()));
    assert_eq!(post(&mut client), Ok("ok".to_owned()));
    let expected = Failure::Broken("127.0.0.1 closed the connection without an answer".to_owned());
    assert_eq!(post(&mut client), Err(expected));
    assert_eq!(server.join().unwrap().body, b"abcd", "the body is sent whole again");
}

#[test]
fn a_get_over_a_kept_connection_that_breaks_is_broken() {
    let (port, server) = serve(|listener| {
        let mut stream = accept(&listener);
        read_request(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
        read_request(&mut stream);
    });
    let mut client = client();
    assert_eq!(fetch(&mut client, &plain_url(port)), Ok("ok".to_owned()));
    let expected = Failure::Broken("127.0.0.1 closed the connection without an answer".to_owned());
    assert_eq!(failure(&mut client, &plain_url(port)), expected);
    server.join().unwrap();
}

#[test]
fn finishing_waits_for_the_end_and_keeps_the_connection() {
    for secure in [false, true] {
        let (go, wait) = mpsc::channel();
        let (port, server) = serve(move |listener| {
            fn script(stream: &mut (impl Read + Write), wait: &mpsc::Receiver<()>) {
                read_request(stream);
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\ndone\r\n")
                    .unwrap();
                wait.recv().unwrap();
                stream.write_all(b"0\r\n\r\n").unwrap();
                read_request(stream);
                stream.write_all(OK.as_bytes()).unwrap();
            }
            let mut stream = accept(&listener);
            if secure { script(&mut tls(stream, "localhost.pem"), &wait) } else { script(&mut stream, &wait) }
        });
        let mut client = client();
        let url = format!("http{}://127.0.0.1:{port}", if secure { "s" } else { "" });
        let mut response = client.get(&url, &[]).unwrap();
        assert_eq!(response.read(&mut [0; 100]), Ok(4));
        go.send(()).unwrap();
        response.finish(LONG);
        assert_eq!(fetch(&mut client, &url), Ok("ok".to_owned()));
        server.join().unwrap();
    }
}

#[test]
fn finishing_gives_up_a_connection_whose_end_does_not_come() {
    let (port, server) = serve(|listener| {
        let mut first = accept(&listener);
        read_request(&mut first);
        first.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\ndone\r\n").unwrap();
        let mut second = accept(&listener);
        read_request(&mut second);
        second.write_all(OK.as_bytes()).unwrap();
        assert_eq!(first.read(&mut [0]).unwrap(), 0);
    });
    let mut client = client();
    let mut response = client.get(&plain_url(port), &[]).unwrap();
    assert_eq!(response.read(&mut [0; 100]), Ok(4));
    response.finish(Duration::from_millis(20));
    assert_eq!(fetch(&mut client, &plain_url(port)), Ok("ok".to_owned()));
    server.join().unwrap();
}

/// Posts 20 MB to a server that reads the head alone and answers with `status`. It then closes, which with
/// unread data resets the connection, or holds it open. Either way the answer must arrive whole, and the
/// next request must go over a new connection.
fn answer_before_the_body_is_read(secure: bool, closes: bool, status: u16) {
    const BODY: &str = "{\"error\":{\"message\":\"request too large\"}}";
    let answer = format!(
        "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    let (done, is_done) = mpsc::channel::<()>();
    let (port, server) = serve(move |listener| {
        let mut stream = accept(&listener);
        if secure {
            let mut stream = tls(stream, "localhost.pem");
            read_head(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
            if closes {
                close(stream)
            } else {
                let _ = is_done.recv();
            }
        } else {
            read_head(&mut stream);
            stream.write_all(answer.as_bytes()).unwrap();
            if closes {
                drop(stream)
            } else {
                let _ = is_done.recv();
            }
        }
        let next = accept(&listener);
        if secure {
            tls(next, "localhost.pem").write_all(OK.as_bytes()).unwrap()
        } else {
            { next }.write_all(OK.as_bytes()).unwrap()
        }
    });
    let mut client = client();
    client.patience = Duration::from_millis(100);
    let url = format!("http{}://127.0.0.1:{port}", if secure { "s" } else { "" });
    let large = vec![b'x'; 20_000_000];
    let mut response = client.post(&url, &[], &[&large]).unwrap();
    assert_eq!(response.status, status);
    assert_eq!(response.header("content-type").as_deref(), Some("application/json"));
    assert_eq!(read_all(&mut response).unwrap(), BODY);
    drop(done);
    assert_eq!(fetch(&mut client, &url), Ok("ok".to_owned()));
    server.join().unwrap();
}

#[test]
fn an_early_refusal_is_read_when_the_server_resets() {
    for status in [413, 401, 429] {
        answer_before_the_body_is_read(false, true, status);
    }
}

#[test]
fn an_early_refusal_is_read_when_the_server_stops_reading() {
    for status in [413, 401, 429] {
        answer_before_the_body_is_read(false, false, status);
    }
}

#[test]
fn an_early_refusal_over_tls_is_read_when_the_server_resets() {
    for status in [413, 401, 429] {
        answer_before_the_body_is_read(true, true, status);
    }
}

#[test]
fn an_early_refusal_over_tls_is_read_when_the_server_stops_reading() {
    for status in [413, 401, 429] {
        answer_before_the_body_is_read(true, false, status);
    }
}

#[test]
fn an_interim_answer_does_not_stop_the_sending() {
    let (port, server) = serve(|listener| {
        let mut stream = accept(&listener);
        let head = read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").unwrap();
        let length = Seen { head, body: vec![] }.header("content-length").unwrap().parse().unwrap();
        let mut body = Vec::new();
        (&mut stream).take(length).read_to_end(&mut body).unwrap();
        stream.write_all(OK.as_bytes()).unwrap();
        body.len()
    });
    let large = vec![b'x'; 20_000_000];
    let mut response = client().post(&plain_url(port), &[], &[&large]).unwrap();
    assert_eq!(read_all(&mut response), Ok("ok".to_owned()));
    assert_eq!(server.join().unwrap(), 20_000_000);
}

#[test]
fn a_refused_connection_names_host_and_port() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for host in ["127.0.0.1", "localhost"] {
        let expected = format!(
            "could not connect to {host}:{port}: connection refused \
             (is the server running, and is the port right?)"
        );
        assert_eq!(failure(&mut client(), &format!("http://{host}:{port}")), Failure::Connect(expected));
    }
}

#[test]
fn a_name_without_an_address_is_a_failure_to_connect() {
    // A label of more than 63 letters is refused without asking the network.
    let name = "a".repeat(64);
    let Failure::Connect(text) = failure(&mut client(), &format!("http://{name}/v1")) else { panic!() };
    assert!(text.starts_with(&format!("the name \"{name}\" could not be looked up: ")), "{text}");
    assert!(text.ends_with(" (check the spelling and the network)"), "{text}");
}

#[test]
fn a_handshake_that_is_not_answered_ends_at_the_connect_limit() {
    let (done, wait) = mpsc::channel::<()>();
    let (port, server) = serve(move |listener| {
        let _stream = accept(&listener);
        let _ = wait.recv();
    });
    let mut client =
        Client::new(NetworkSettings { connect_timeout: Duration::from_millis(50), ..settings() });
    let expected = "connecting to 127.0.0.1 took longer than 0.05 s \
        (check the network, the proxy variables, and that the URL's scheme is the server's)";
    let url = format!("https://127.0.0.1:{port}");
    assert_eq!(failure(&mut client, &url), Failure::Connect(expected.to_owned()));
    drop(done);
    server.join().unwrap();
}

/// What a client that trusts `bundle` says to a server with `certificate`. Before it hangs up in the middle of the
/// handshake, the server is told why by this alert: in TLS 1.2, since of the two records that 1.3 says it in ureq
/// writes the first alone.
fn distrust(bundle: Option<PathBuf>, certificate: &'static str, alert: &str) -> Failure {
    let (port, server) = serve(move |listener| {
        let mut stream = tls_of(&[&rustls::version::TLS12], accept(&listener), certificate);
        stream.read(&mut [0]).unwrap_err().to_string()
    });
    let mut client = Client::new(NetworkSettings { ca_bundle: bundle, ..settings() });
    let failure = failure(&mut client, &format!("https://localhost:{port}"));
    assert_eq!(server.join().unwrap(), format!("received fatal alert: {alert}"));
    failure
}

#[test]
fn a_bad_certificate_is_named_with_its_remedy() {
    let expected = "the certificate of localhost is not to be trusted: \
        it was issued by an authority that is not known here; \
        name the CA bundle with --cacert FILE or SSL_CERT_FILE";
    assert_eq!(distrust(None, "localhost.pem", "UnknownCA"), Failure::Certificate(expected.to_owned()));
    let expected = "the certificate of localhost is not to be trusted: \
        it has expired (if this machine's clock is right, the server needs a new one)";
    assert_eq!(
        distrust(settings().ca_bundle, "expired.pem", "CertificateExpired"),
        Failure::Certificate(expected.to_owned())
    );
    let expected = "the certificate of localhost is not to be trusted: \
        it is for another host, DnsName(\"elsewhere.test\") (check the URL)";
    assert_eq!(
        distrust(settings().ca_bundle, "elsewhere.pem", "BadCertificate"),
        Failure::Certificate(expected.to_owned())
    );
}

#[test]
fn the_bundle_is_read_only_when_tls_is_needed() {
    let (port, server) = serve_once(OK);
    let mut client = Client::new(NetworkSettings { ca_bundle: Some("/nowhere/ca.pem".into()), ..settings() });
    assert_eq!(fetch(&mut client, &plain_url(port)), Ok("ok".to_owned()));
    server.join().unwrap();
    let expected = "the CA bundle \"/nowhere/ca.pem\" named by --cacert or SSL_CERT_FILE \
        cannot be read: no such file or directory";
    assert_eq!(failure(&mut client, "https://127.0.0.1:1"), Failure::Setup(expected.to_owned()));
}

#[test]
fn a_bundle_without_end_is_refused() {
    let mut client = Client::new(NetworkSettings { ca_bundle: Some("/dev/zero".into()), ..settings() });
    let expected = "the CA bundle \"/dev/zero\" named by --cacert or SSL_CERT_FILE \
        cannot be read: it is longer than 16777216 bytes, which no such file is";
    assert_eq!(failure(&mut client, "https://127.0.0.1:1"), Failure::Setup(expected.to_owned()));
}

#[test]
fn a_bundle_without_certificates_is_refused() {
    for (name, why) in [
        ("make-certificates.sh", "holds no certificate in PEM form"),
        ("server.key", "holds no certificate in PEM form"),
    ] {
        let path = fixture(name);
        let expected =
            format!("the CA bundle \"{}\" named by --cacert or SSL_CERT_FILE {why}", path.display());
        let mut client = Client::new(NetworkSettings { ca_bundle: Some(path), ..settings() });
        assert_eq!(failure(&mut client, "https://127.0.0.1:1"), Failure::Setup(expected));
    }
}

#[test]
fn tls_that_cannot_be_agreed_on_is_a_refusal_unless_the_server_failed() {
    let refused: fn(String) -> Failure = Failure::Refused;
    let failed: fn(String) -> Failure = Failure::Connect;
    for (answer, kind, expected) in [
        (
            OK.as_bytes(),
            refused,
            "127.0.0.1 does not answer with TLS (is it meant to be reached by http:// and not https://?)",
        ),
        (
            &[21, 3, 3, 0, 2, 2, 40],
            refused,
            "TLS with 127.0.0.1 could not be agreed on: received fatal alert: HandshakeFailure",
        ),
        (
            &[21, 3, 3, 0, 2, 2, 80],
            failed,
            "TLS with 127.0.0.1 could not be agreed on: received fatal alert: InternalError",
        ),
        (b"", failed, "connecting to 127.0.0.1 failed: it closed the connection"),
    ] {
        let (port, server) = serve(move |listener| {
            let mut stream = accept(&listener);
            // The whole greeting is read, so that closing does not reset.
            let mut head = [0; 5];
            stream.read_exact(&mut head).unwrap();
            let length = u64::from(u16::from_be_bytes([head[3], head[4]]));
            (&mut stream).take(length).read_to_end(&mut Vec::new()).unwrap();
            stream.write_all(answer).unwrap();
        });
        let failure = failure(&mut client(), &format!("https://127.0.0.1:{port}"));
        assert_eq!(failure, kind(expected.to_owned()));
        server.join().unwrap();
    }
}

#[test]
fn an_http_proxy_is_asked_to_connect_for_both_schemes() {
    for secure in [false, true] {
        let (port, server) = serve(move |listener| {
            let mut stream = accept(&listener);
            let connect = read_head(&mut stream);
            stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
            let seen = if secure {
                let mut stream = tls(stream, "localhost.pem");
                let seen = read_request(&mut stream);
                stream.write_all(OK.as_bytes()).unwrap();
                seen
            } else {
                let seen = read_request(&mut stream);
                stream.write_all(OK.as_bytes()).unwrap();
                seen
            };
            (connect, seen)
        });
        // Without a scheme a proxy is an HTTP proxy.
        let mut client = proxy_client(&format!("us%65r:s3cret@127.0.0.1:{port}"));
        let (scheme, target) = if secure { ("https", 443) } else { ("http", 80) };
        assert_eq!(fetch(&mut client, &format!("{scheme}://api.test/v1")), Ok("ok".to_owned()));
        let (connect, seen) = server.join().unwrap();
        assert!(connect.starts_with(&format!("CONNECT api.test:{target} HTTP/1.1\r\n")), "{connect}");
        assert!(connect.contains("Proxy-Authorization: Basic dXNlcjpzM2NyZXQ=\r\n"), "{connect}");
        assert!(seen.head.starts_with("GET /v1 HTTP/1.1\r\n"), "{seen:?}");
        assert_eq!(seen.header("host"), Some("api.test"));
    }
}

#[test]
fn a_proxied_connection_is_kept() {
    let (port, server) = serve(|listener| {
        let mut stream = accept(&listener);
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 Connected\r\n\r\n").unwrap();
        let mut stream = tls(stream, "localhost.pem");
        for _ in 0..2 {
            read_request(&mut stream);
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let mut client = proxy_client(&format!("http://127.0.0.1:{port}"));
    for _ in 0..2 {
        assert_eq!(fetch(&mut client, "https://api.test/v1"), Ok("ok".to_owned()));
    }
    server.join().unwrap();
}

#[test]
fn a_socks_proxy_is_given_the_name() {
    let (port, server) = serve(|listener| {
        let mut stream = accept(&listener);
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, [5, 1, 0]);
        stream.write_all(&[5, 0]).unwrap();
        let mut asked = [0; 15];
        stream.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"\x05\x01\x00\x03\x08api.test\x00\x50");
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
        read_request(&mut stream);
        stream.write_all(OK.as_bytes()).unwrap();
    });
    let mut client = proxy_client(&format!("socks5h://127.0.0.1:{port}"));
    let response = client.get("http://api.test/v1", &[]).unwrap();
    assert_eq!(response.status, 200);
    response.finish(LONG);
    server.join().unwrap();
}

#[test]
fn a_proxy_that_refuses_is_quoted_without_the_password() {
    let final_one: fn(String) -> Failure = Failure::Refused;
    for (answer, expected, kind) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "it answered 407 and wants a user name and password, \
             which go into the proxy variable as http://USER:PASSWORD@HOST:PORT",
            final_one,
        ),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "it answered 403", final_one),
        ("HTTP/1.1 503 Service Unavailable\r\n\r\n", "it answered 503", Failure::Connect),
        ("", "proxy server did not respond", Failure::Connect),
    ] {
        let (port, server) = serve_once(answer);
        let mut client = proxy_client(&format!("http://user:s3cret@127.0.0.1:{port}"));
        let expected = format!("the proxy 127.0.0.1:{port} did not connect to api.test: {expected}");
        assert_eq!(failure(&mut client, "https://api.test"), kind(expected));
        server.join().unwrap();
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_named_without_the_password() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut client = proxy_client(&format!("http://user:s3cret@127.0.0.1:{port}"));
    let expected = format!(
        "could not connect to the proxy 127.0.0.1:{port}: connection refused \
         (is the server running, and is the port right?)"
    );
    assert_eq!(failure(&mut client, "https://api.test"), Failure::Connect(expected));

    let mut client = proxy_client(&format!("socks5h://user:s3cret@127.0.0.1:{port}"));
    let expected =
        format!("connecting to api.test through the proxy 127.0.0.1:{port} failed: connection refused");
    assert_eq!(failure(&mut client, "https://api.test"), Failure::Connect(expected));

    let expected = "the value of all_proxy is no proxy: it must be [SCHEME://][USER:PASSWORD@]HOST[:PORT] \
        with http, https, socks4, socks4a, socks5 or socks5h as scheme";
    for value in
        ["ftp://user:s3cret@proxy:3128", "http://user:s3cret@pro xy", "http://user:s3cret@proxy:99999"]
    {
        let failure = failure(&mut proxy_client(value), "https://api.test");
        assert_eq!(failure, Failure::Setup(expected.to_owned()), "{value}");
    }
}

#[test]
fn a_loopback_server_is_reached_without_the_proxy() {
    let (port, server) = serve_once(OK);
    let mut client = proxy_client("http://127.0.0.1:1");
    assert_eq!(fetch(&mut client, &format!("http://localhost:{port}")), Ok("ok".to_owned()));
    server.join().unwrap();
}

#[test]
fn what_cannot_be_asked_is_a_failure_of_the_setup() {
    let scheme = "it must begin with http:// or https://";
    for (url, shown, why) in [
        ("api.test/v1", "api.test/v1", scheme),
        ("ftp://api.test", "ftp://api.test", scheme),
        ("", "", scheme),
        ("http://", "http://", "it is not a whole URL (empty string)"),
        ("http://:80/", "http://:80/", "it names no host"),
        ("http://api.test:99999", "http://api.test:99999", "the port must be a number from 1 to 65535"),
        ("http://[::1]:0/", "http://[::1]:0/", "the port must be a number from 1 to 65535"),
        (
            "HTTPS://user:s3cret@api test?key=s3cret",
            "HTTPS://api test",
            "it is not a whole URL (invalid uri character)",
        ),
    ] {
        let expected = format!("the URL \"{shown}\" cannot be used: {why}");
        assert_eq!(failure(&mut client(), url), Failure::Setup(expected));
    }
    for (name, value, expected) in [
        ("x key", "1", "\"x key\" cannot be the name of a header"),
        ("", "1", "\"\" cannot be the name of a header"),
        (
            "x-api-key",
            "s3cret\n",
            "the value of the header x-api-key holds a line break or control character",
        ),
    ] {
        let headers = [(name.to_owned(), value.to_owned())];
        let failure = client().get("http://127.0.0.1:1", &headers).err();
        assert_eq!(failure, Some(Failure::Setup(expected.to_owned())));
    }
}
