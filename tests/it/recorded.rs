//! Recordings of a real model behind a real server: each replays, request for request and byte for byte, in
//! a folder of another name. `fixtures/record.py` makes them anew.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

/// A rates service that knows the currencies given, for as many requests as come; its address.
fn rates_service(rates: Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut first = String::new();
            stream.read_line(&mut first).unwrap();
            let mut line = String::new();
            while stream.read_line(&mut line).unwrap() > 2 {
                line.clear();
            }
            let currency = first.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
            let body = serde_json::json!({"base": currency, "rates": {"RUB": rates[&currency]}}).to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
        }
    });
    address
}

fn replay(recording: &Path) {
    let name = recording.file_name().unwrap().to_str().unwrap();
    let run: Value = serde_json::from_slice(&fs::read(recording.join("run.json")).unwrap()).unwrap();
    let folder = crate::story::new_folder(&format!("replayed-{name}"), &["a folder of another name"]);
    let work = folder.join("a folder of another name");
    for (path, text) in run["files"].as_object().into_iter().flatten() {
        fs::write(work.join(path), text.as_str().unwrap()).unwrap();
    }
    let mut command = Command::new(crate::story::program());
    command.current_dir(&work).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("TMPDIR", &folder).stdin(Stdio::null());
    for (variable, value) in run["env"].as_object().into_iter().flatten() {
        command.env(variable, value.as_str().unwrap());
    }
    if let Some(rates) = run.get("rates") {
        command.env("COTTER_RATES_URL", rates_service(rates.clone()));
    }
    command.arg("--replay").arg(recording).arg("--replay-strict");
    command.args(run["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()));
    let output = command.output().unwrap();
    let found = (output.status.code(), String::from_utf8(output.stdout).unwrap());
    let expected = (run["code"].as_i64().map(|code| code as i32), run["stdout"].as_str().unwrap().to_owned());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(found, expected, "{name}: {command:?}\n{stderr}");
    // What makes the recording what it is, where that shows on standard error alone.
    let said = run["said"].as_str().unwrap_or_default();
    assert!(stderr.contains(said), "{name} did not say {said:?}:\n{stderr}");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn every_recording_replays_to_the_byte_in_another_folder() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/recorded");
    let mut recordings: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    recordings.sort();
    assert!(recordings.len() >= 28, "both APIs, streamed and plain, of seven tasks: {recordings:?}");
    for recording in recordings {
        replay(&recording);
    }
}
