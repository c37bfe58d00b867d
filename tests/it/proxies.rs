//! Proxies through the program, with a small CONNECT proxy: used for other machines and never for this one,
//! left out where NO_PROXY says so, and never quoted with its password.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::thread;

use serde_json::json;

use crate::server::Server;
use crate::stage::{Ran, Scripted, Stage, calls, read_head, requests, run, says};
use crate::tls::{answer_all, secured};

/// A proxy that connects whatever it is asked for to one port of this machine.
fn proxy_to(port: u16) -> Scripted<String> {
    Scripted::start(move |mut stream| {
        let head = read_head(&mut stream);
        let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").unwrap();
        let (from_server, to_client) = (server.try_clone().unwrap(), stream.try_clone().unwrap());
        let back = thread::spawn(move || pass_on(from_server, to_client));
        pass_on(stream, server);
        back.join().unwrap();
        head
    })
}

/// Passes bytes on to their end. Either side may leave as it likes.
fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}

/// A proxy that answers with this and closes.
fn refusing_proxy(answer: &'static str) -> Scripted<String> {
    Scripted::start(move |mut stream| {
        let head = read_head(&mut stream);
        stream.write_all(answer.as_bytes()).unwrap();
        head
    })
}

/// Runs with this base URL and these variables, where nothing is tried twice.
#[track_caller]
fn ask(url: &str, args: &[&str], variables: &[(&str, &str)]) -> Ran {
    let stage = Stage::new("proxy");
    stage.write("notes.txt", "1932\n");
    let mut command = stage.command(&["--base-url", url, "--model", "test-model", "--max-retries", "0"]);
    command.args(["-p", "When?"]).args(args).envs(variables.iter().copied());
    run(&mut command)
}

fn local(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// The request lines that a proxy was sent.
fn first_lines(heads: Vec<String>) -> Vec<String> {
    heads.iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn an_http_server_elsewhere_is_reached_through_http_proxy() {
    for variable in ["http_proxy", "all_proxy", "ALL_PROXY"] {
        let server = Server::start(vec![
            calls("call_1", "Read", &json!({"file_path": "notes.txt"})),
            says(&["1932."]),
        ]);
        let proxy = proxy_to(server.port());
        let proxy_url = local(proxy.port());
        let variables = [(variable, &*proxy_url), ("OPENAI_API_KEY", "test-key")];
        ask("http://api.example.test/v1", &[], &variables).code(0).stdout("1932.\n").stderr("");
        let heads = proxy.stop();
        assert!(heads.iter().all(|head| !head.contains("test-key")), "the key is for the server: {heads:?}");
        assert_eq!(first_lines(heads), ["CONNECT api.example.test:80 HTTP/1.1"], "{variable}");
        let requests = requests(server);
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[1].header("host"), Some("api.example.test"));
        assert_eq!(requests[1].header("authorization"), Some("Bearer test-key"));
        assert_eq!(requests[1].header("proxy-authorization"), None);
    }
}

#[test]
fn an_https_server_elsewhere_is_reached_through_https_proxy() {
    let ca = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls/ca.pem");
    for variable in ["https_proxy", "HTTPS_PROXY", "all_proxy"] {
        let mut replies = vec![says(&["1932."])].into_iter();
        let server =
            Scripted::start(move |stream| answer_all(&mut secured(stream, "localhost.pem"), &mut replies));
        let proxy = proxy_to(server.port());
        let proxy_url = format!("http://us%65r:s3cret@127.0.0.1:{}", proxy.port());
        let variables = [
            (variable, &*proxy_url),
            ("http_proxy", "http://127.0.0.1:1"),
            ("SSL_CERT_FILE", ca.to_str().unwrap()),
        ];
        ask("https://api.test/v1", &[], &variables).code(0).stdout("1932.\n").stderr("");
        let heads = proxy.stop();
        assert!(heads[0].contains("\r\nProxy-Authorization: Basic dXNlcjpzM2NyZXQ=\r\n"), "{heads:?}");
        assert_eq!(first_lines(heads), ["CONNECT api.test:443 HTTP/1.1"], "{variable}");
        let connections = server.stop();
        assert_eq!(connections.len(), 1);
        assert_eq!(connections[0][0].header("host"), Some("api.test"));
        assert_eq!(connections[0][0].header("proxy-authorization"), None);
    }
}

#[test]
fn this_machine_is_never_reached_through_a_proxy() {
    let proxy = refusing_proxy("HTTP/1.1 403 Forbidden\r\n\r\n");
    let proxy_url = local(proxy.port());
    for host in ["127.0.0.1", "localhost", "api.localhost", "127.9.8.7"] {
        let server = Server::start(vec![says(&["1932."])]);
        // All of 127.0.0.0/8 is this machine, but the server listens on one address of it.
        let expected = if host == "127.9.8.7" { 6 } else { 0 };
        let url = format!("http://{host}:{}/v1", server.port());
        ask(&url, &[], &[("http_proxy", &proxy_url), ("all_proxy", &proxy_url)]).code(expected);
        assert_eq!(server.stop().requests.len(), usize::from(expected == 0), "{host}");
    }
    assert_eq!(proxy.stop().len(), 0);
}

#[test]
fn no_proxy_is_obeyed() {
    // A connection to 0.0.0.0 is one to this machine, but the address does not say so.
    for (no_proxy, direct) in [
        ("0.0.0.0", true),
        ("one.test, 0.0.0.0 two.test", true),
        ("*", true),
        ("0.0.0.0/8", true),
        ("1.2.3.4,one.test", false),
        ("", false),
    ] {
        for variable in ["no_proxy", "NO_PROXY"] {
            let proxy = refusing_proxy("HTTP/1.1 403 Forbidden\r\n\r\n");
            let server = Server::start(vec![says(&["1932."])]);
            let url = format!("http://0.0.0.0:{}/v1", server.port());
            let ran = ask(&url, &[], &[("http_proxy", &local(proxy.port())), (variable, no_proxy)]);
            ran.code(if direct { 0 } else { 6 });
            let seen = (server.stop().requests.len(), proxy.stop().len());
            assert_eq!(seen, (usize::from(direct), usize::from(!direct)), "{variable}={no_proxy}");
        }
    }
}

#[test]
fn no_proxy_covers_the_names_below_a_domain() {
    // A label of 64 letters is refused without asking the network.
    let host = format!("{}.example.test", "a".repeat(64));
    for (no_proxy, direct) in [("example.test", true), (".example.test", true), ("ample.test", false)] {
        let proxy = refusing_proxy("HTTP/1.1 403 Forbidden\r\n\r\n");
        let variables = [("http_proxy", &*local(proxy.port())), ("no_proxy", no_proxy)];
        let ran = ask(&format!("http://{host}/v1"), &[], &variables);
        ran.code(6).stdout("");
        let why = if direct { "could not be looked up: " } else { ": it answered 403\n" };
        assert!(ran.stderr.contains(why), "{}", ran.report());
        assert_eq!(proxy.stop().len(), usize::from(!direct), "{no_proxy}");
    }
}

#[test]
fn a_variable_that_a_cgi_client_could_set_is_not_read() {
    let proxy = refusing_proxy("HTTP/1.1 403 Forbidden\r\n\r\n");
    let server = Server::start(vec![says(&["1932."])]);
    let url = format!("http://0.0.0.0:{}/v1", server.port());
    ask(&url, &[], &[("HTTP_PROXY", &local(proxy.port()))]).code(0).stdout("1932.\n");
    assert_eq!(requests(server).len(), 1);
    assert_eq!(proxy.stop().len(), 0);
}

#[test]
fn a_refusal_is_told_with_its_status_and_without_the_password() {
    for (answer, why) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "it answered 407 and wants a user name and password, \
             which go into the proxy variable as http://USER:PASSWORD@HOST:PORT",
        ),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "it answered 403"),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "it answered 502"),
    ] {
        for format in ["text", "json"] {
            let proxy = refusing_proxy(answer);
            let port = proxy.port();
            let url = format!("http://user:s3cret@127.0.0.1:{port}");
            let args = ["--verbose", "--output-format", format];
            let ran = ask("https://api.test/v1", &args, &[("https_proxy", &url)]);
            let error = format!("the proxy 127.0.0.1:{port} did not connect to api.test: {why}");
            ran.code(6);
            assert!(ran.stderr.ends_with(&format!("\ncotter: {error}\n")), "{}", ran.report());
            if format == "json" {
                assert_eq!(ran.json()["error"]["message"], error);
            } else {
                ran.stdout("");
            }
            assert!(!ran.report().replace(&url, "").contains("s3cret"), "{}", ran.report());
            assert_eq!(proxy.stop().len(), 1);
        }
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_a_usage_error_without_the_password() {
    let ran = ask("https://api.test/v1", &[], &[("https_proxy", "ftp://user:s3cret@proxy:3128")]);
    ran.code(2).stdout("").stderr(
        "cotter: the value of https_proxy is no proxy: it must be [SCHEME://][USER:PASSWORD@]HOST[:PORT] \
         with http, https, socks4, socks4a, socks5 or socks5h as scheme\n",
    );
}
