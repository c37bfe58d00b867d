//! Faults on the way to the server: its name, its port, TLS and proxies. The turn before goes well, each on a
//! connection of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::Case;
use super::replies;
use super::runs::{Seen, ask};
use crate::check::Api;
use crate::server::Framing;
use crate::stage::{Scripted, accept, read_head, read_request, serve};
use crate::tls::{fixture, secured};

/// No resolver asks the network for a label of 64 letters.
pub const UNKNOWN_NAME: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.invalid";

/// A name that nobody has. There is no turn before: the first request fails.
pub fn unknown_name(api: Api, _: Case) -> Seen {
    let seen = ask(api, &format!("http://{UNKNOWN_NAME}"), &[], &[]);
    seen.failed_at_once(6)
}

/// A server that is gone when the second turn comes.
pub fn refused_port(api: Api, _: Case) -> Seen {
    let (port, serving) = serve(move |listener| {
        let mut stream = accept(&listener);
        read_request(&mut stream).expect("a request");
        drop(listener);
        stream.write_all(&replies::first(api).wire()).unwrap();
    });
    let seen = ask(api, &format!("http://127.0.0.1:{port}"), &[], &[]);
    serving.join().unwrap();
    seen.failed(6)
}

/// What a connection is good for: the first for the turn before, the next for the fault, again if it stays.
fn scripted(
    api: Api,
    case: Case,
    mut good: impl FnMut(TcpStream, &[u8]) + Send + 'static,
    mut faulty: impl FnMut(TcpStream) + Send + 'static,
) -> Scripted<()> {
    let mut number = 0;
    Scripted::start(move |stream| {
        let reply = match (number, case) {
            (0, _) => Some(replies::first(api)),
            (1, _) | (_, Case::Stays) => None,
            (2, Case::Passes) => Some(replies::second(api)),
            (_, Case::Passes) => Some(replies::answer(api)),
        };
        number += 1;
        match reply {
            Some(reply) => good(stream, &reply.framing(Framing::Close).wire()),
            None => faulty(stream),
        }
    })
}

/// How many connections a run has that ends in this way after so many tries: one a turn, one a try.
#[track_caller]
fn connected(server: Scripted<()>, seen: Seen) -> Seen {
    let turns = if seen.code == 0 { 2 } else { 1 };
    assert_eq!(server.stop().len(), seen.tries + turns, "{seen:?}");
    seen
}

/// A run over TLS that meets this on its second connection.
fn over_tls(api: Api, case: Case, args: &[&str], faulty: fn(TcpStream)) -> Seen {
    let good = |stream, reply: &[u8]| {
        let mut stream = secured(stream, "localhost.pem");
        read_request(&mut stream).expect("a request");
        stream.write_all(reply).unwrap();
        stream.conn.send_close_notify();
        let _ = stream.flush();
    };
    let server = scripted(api, case, good, faulty);
    let url = format!("https://localhost:{}", server.port());
    let seen = ask(api, &url, args, &[("SSL_CERT_FILE", &fixture("ca.pem"))]);
    connected(server, seen)
}

/// A certificate whose time is over.
pub fn expired_certificate(api: Api, case: Case) -> Seen {
    over_tls(api, case, &[], |stream| drop(read_request(&mut secured(stream, "expired.pem")))).failed(6)
}

pub fn other_hosts_certificate(api: Api, case: Case) -> Seen {
    over_tls(api, case, &[], |stream| drop(read_request(&mut secured(stream, "elsewhere.pem")))).failed(6)
}

/// Sends this in the place of the server's greeting, and waits until the client has gone.
fn greet(mut stream: TcpStream, bytes: &[u8]) {
    let mut head = [0; 5];
    stream.read_exact(&mut head).unwrap();
    let length = u64::from(u16::from_be_bytes([head[3], head[4]]));
    (&mut stream).take(length).read_to_end(&mut Vec::new()).unwrap();
    // The client may leave when it likes.
    let _ = stream.write_all(bytes);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// The alert that there is no way to agree.
pub fn tls_alert(api: Api, case: Case) -> Seen {
    over_tls(api, case, &[], |stream| greet(stream, b"\x15\x03\x03\x00\x02\x02\x28")).failed(6)
}

/// The alert that the server has failed.
pub fn tls_internal_error(api: Api, case: Case) -> Seen {
    let seen = over_tls(api, case, &[], |stream| greet(stream, b"\x15\x03\x03\x00\x02\x02\x50"));
    when_it_stays(case, seen)
}

/// A server that speaks without TLS.
pub fn no_tls(api: Api, case: Case) -> Seen {
    over_tls(api, case, &[], |stream| greet(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")).failed(6)
}

/// A server that closes in the place of a greeting.
pub fn tls_closed(api: Api, case: Case) -> Seen {
    let seen = over_tls(api, case, &[], |stream| {
        let mut greeting = [0; 5];
        (&stream).read_exact(&mut greeting).unwrap();
        let _ = stream.shutdown(Shutdown::Write);
        let _ = (&stream).read_to_end(&mut Vec::new());
    });
    when_it_stays(case, seen)
}

/// A server that never greets.
pub fn tls_silence(api: Api, case: Case) -> Seen {
    let seen = over_tls(api, case, &["--idle-timeout", "1"], |mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    when_it_stays(case, seen)
}

/// A record in the middle of the answer that was not made with the key.
pub fn tls_garbage(api: Api, case: Case) -> Seen {
    let seen = over_tls(api, case, &[], |stream| {
        let mut stream = secured(stream, "localhost.pem");
        read_request(&mut stream).expect("a request");
        stream.write_all(replies::STREAM.as_bytes()).unwrap();
        stream.flush().unwrap();
        let mut stream = stream.sock;
        let _ = stream.write_all(b"\x17\x03\x03\x00\x20what is this? no cipher made that");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    when_it_stays(case, seen)
}

fn when_it_stays(case: Case, seen: Seen) -> Seen {
    match case {
        Case::Stays => seen.failed(6),
        Case::Passes => seen,
    }
}

/// A run through a proxy that is its own server and answers the second tunnel so.
fn through_proxy(api: Api, case: Case, faulty: fn(TcpStream)) -> Seen {
    let good = |mut stream: TcpStream, reply: &[u8]| {
        read_head(&mut stream);
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        read_request(&mut stream).expect("a request");
        stream.write_all(reply).unwrap();
    };
    let server = scripted(api, case, good, faulty);
    let proxy = format!("http://127.0.0.1:{}", server.port());
    let seen = ask(api, "http://models.example", &["--idle-timeout", "1"], &[("http_proxy", &proxy)]);
    connected(server, seen)
}

fn answer_tunnel(mut stream: TcpStream, answer: &str) {
    read_head(&mut stream);
    let _ = stream.write_all(answer.as_bytes());
}

pub fn proxy_wants_password(api: Api, case: Case) -> Seen {
    let answer = |stream| answer_tunnel(stream, "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    through_proxy(api, case, answer).failed(6)
}

pub fn proxy_forbids(api: Api, case: Case) -> Seen {
    through_proxy(api, case, |stream| answer_tunnel(stream, "HTTP/1.1 403 Forbidden\r\n\r\n")).failed(6)
}

pub fn proxy_fails(api: Api, case: Case) -> Seen {
    let answer = |stream| answer_tunnel(stream, "HTTP/1.1 502 Bad Gateway\r\n\r\n");
    when_it_stays(case, through_proxy(api, case, answer))
}

pub fn proxy_closes(api: Api, case: Case) -> Seen {
    when_it_stays(case, through_proxy(api, case, |stream| answer_tunnel(stream, "")))
}

pub fn proxy_garbage(api: Api, case: Case) -> Seen {
    let answer = |stream| answer_tunnel(stream, "what is this?\r\n\r\n");
    when_it_stays(case, through_proxy(api, case, answer))
}

pub fn proxy_silence(api: Api, case: Case) -> Seen {
    let answer = |mut stream: TcpStream| drop(stream.read_to_end(&mut Vec::new()));
    when_it_stays(case, through_proxy(api, case, answer))
}
