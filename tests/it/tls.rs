//! TLS through the program: a certificate is trusted because of the bundle that was named and of nothing
//! else, and one that is not ends the run at once with what to do about it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::check;
use crate::server::{Reply, Request};
use crate::stage::{Ran, Scripted, Stage, calls, read_request, result, run, says};

/// A file of `fixtures/tls`.
pub fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name);
    path.into_os_string().into_string().expect("the project's folder is text")
}

/// The server's side of TLS over an accepted connection.
pub fn secured(stream: TcpStream, certificate: &str) -> StreamOwned<ServerConnection, TcpStream> {
    let chain = vec![CertificateDer::from_pem_file(fixture(certificate)).unwrap()];
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    StreamOwned::new(ServerConnection::new(Arc::new(config)).unwrap(), stream)
}

/// What a connection brought: its requests, none if TLS was not agreed on.
type Brought = Vec<Request>;

/// Answers the requests of one connection; the rest of the replies is for the next.
pub fn answer_all(stream: &mut (impl Read + Write), replies: &mut impl Iterator<Item = Reply>) -> Brought {
    let mut requests = Vec::new();
    while let Some(request) = read_request(stream) {
        requests.push(request);
        stream.write_all(&replies.next().expect("a reply for each request").wire()).unwrap();
        stream.flush().unwrap();
    }
    requests
}

/// A server with this certificate.
fn secure_server(certificate: &'static str, replies: Vec<Reply>) -> Scripted<Brought> {
    let mut replies = replies.into_iter();
    Scripted::start(move |stream| answer_all(&mut secured(stream, certificate), &mut replies))
}

/// Asks a server for one answer, by this name of the loopback host; gives the connections there were too.
#[track_caller]
fn asked(
    host: &str,
    certificate: &'static str,
    args: &[&str],
    variables: &[(&str, &str)],
) -> (Ran, Vec<Brought>) {
    let stage = Stage::new("tls");
    let server = secure_server(certificate, vec![says(&["Safely."])]);
    let url = format!("https://{host}:{}/v1", server.port());
    let mut command = stage.command(&["--base-url", &url, "--model", "test-model", "-p", "Hi."]);
    command.args(args).envs(variables.iter().copied());
    let ran = run(&mut command);
    (ran, server.stop())
}

#[test]
fn a_bundle_named_by_flag_or_variable_is_trusted() {
    let ca = fixture("ca.pem");
    for host in ["localhost", "127.0.0.1"] {
        for (args, variables) in [
            (&["--cacert", &*ca][..], &[][..]),
            (&[], &[("SSL_CERT_FILE", &*ca)]),
            (&["--cacert", &ca], &[("SSL_CERT_FILE", "/missing")]),
        ] {
            let (ran, connections) = asked(host, "localhost.pem", args, variables);
            ran.code(0).stdout("Safely.\n").stderr("");
            assert_eq!(connections.iter().map(Vec::len).collect::<Vec<_>>(), [1]);
        }
    }
}

/// The certificate is refused: code 6 at once, after one connection and no request.
#[track_caller]
fn distrusted(host: &str, certificate: &'static str, args: &[&str], why: &str) {
    let (ran, connections) = asked(host, certificate, args, &[]);
    let expected = format!("cotter: the certificate of {host} is not to be trusted: {why}\n");
    ran.code(6).stdout("").stderr(expected);
    assert_eq!(connections.iter().map(Vec::len).collect::<Vec<_>>(), [0]);
}

#[test]
fn what_is_not_to_be_trusted_ends_the_run_at_once_with_what_to_do() {
    let ca = ["--cacert", &*fixture("ca.pem")];
    let unknown = "it was issued by an authority that is not known here; \
                   name the CA bundle with --cacert FILE or SSL_CERT_FILE";
    distrusted("localhost", "localhost.pem", &[], unknown);
    let expired = "it has expired (if this machine's clock is right, the server needs a new one)";
    distrusted("localhost", "expired.pem", &ca, expired);
    let other = "it is for another host, DnsName(\"elsewhere.test\") (check the URL)";
    distrusted("localhost", "elsewhere.pem", &ca, other);
    distrusted("127.0.0.1", "elsewhere.pem", &ca, other);
}

#[test]
fn a_bundle_that_cannot_be_used_is_a_usage_error_before_anything_is_asked() {
    let key = fixture("server.key");
    for (file, why) in [
        ("/missing/ca.pem", "cannot be read: no such file or directory"),
        (&*key, "holds no certificate in PEM form"),
        ("/dev/null", "holds no certificate in PEM form"),
    ] {
        for (args, variables) in [(&["--cacert", file][..], &[][..]), (&[], &[("SSL_CERT_FILE", file)])] {
            let (ran, connections) = asked("localhost", "localhost.pem", args, variables);
            let expected =
                format!("cotter: the CA bundle \"{file}\" named by --cacert or SSL_CERT_FILE {why}\n");
            ran.code(2).stdout("").stderr(expected);
            assert_eq!(connections.len(), 0);
        }
    }
}

#[test]
fn a_server_without_tls_is_named_as_such() {
    let stage = Stage::new("plain");
    let server = Scripted::start(|mut stream| {
        let mut greeting = [0; 5];
        stream.read_exact(&mut greeting).unwrap();
        let length = u64::from(u16::from_be_bytes([greeting[3], greeting[4]]));
        (&mut stream).take(length).read_to_end(&mut Vec::new()).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
    });
    let url = format!("https://localhost:{}/v1", server.port());
    let args = ["--base-url", &url, "--model", "m", "--max-retries", "0", "-p", "Hi."];
    run(&mut stage.command(&args)).code(6).stdout("").stderr(
        "cotter: localhost does not answer with TLS (is it meant to be reached by http:// and not https://?)\n",
    );
    assert_eq!(server.stop().len(), 1);
}

#[test]
fn a_run_with_a_call_keeps_its_connection() {
    let stage = Stage::new("call over tls");
    stage.write("notes.txt", "The bridge opened in 1932.\n");
    let server = secure_server(
        "localhost.pem",
        vec![calls("call_1", "Read", &json!({"file_path": "notes.txt"})), says(&["In ", "1932."])],
    );
    let url = format!("https://localhost:{}/v1", server.port());
    let mut command = stage.command(&["--base-url", &url, "--model", "test-model", "-p", "When?"]);
    command.env("SSL_CERT_FILE", fixture("ca.pem")).env("OPENAI_API_KEY", "test-key");
    run(&mut command).code(0).stdout("In 1932.\n").stderr("");
    let connections = server.stop();
    assert_eq!(connections.len(), 1);
    let requests = &connections[0];
    assert_eq!(check::requests(check::Api::OpenAi, requests), Ok(()));
    assert_eq!(requests.len(), 2);
    assert_eq!(result(&requests[1]), "The bridge opened in 1932.\n");
    for request in requests {
        assert_eq!(request.header("authorization"), Some("Bearer test-key"));
        let host = url.trim_start_matches("https://").trim_end_matches("/v1");
        assert_eq!(request.header("host"), Some(host));
    }
}
