//! A client of a running program: it writes letters to standard input and reads lines of JSON, one at a time.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};

use crate::story::DEADLINE;

/// The arguments of a program that has a client.
pub const WITH_CLIENT: [&str; 4] = ["--input-format", "stream-json", "--output-format", "stream-json"];

/// A client.
pub struct Client {
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

/// A message of the user's as a line.
pub fn message(content: impl Into<Value>) -> String {
    let content: Value = content.into();
    format!(
        "{}\n",
        json!({"type": "user", "message": {"role": "user", "content": content},
        "parent_tool_use_id": null, "session_id": ""})
    )
}

/// A control request as a line.
pub fn request(id: &str, request: &Value) -> String {
    format!("{}\n", json!({"type": "control_request", "request_id": id, "request": request}))
}

/// The answer to a control request, if a line is one: its id and what it says.
pub fn answered(line: &Value) -> Option<(String, Result<Value, String>)> {
    let response = &line["response"];
    let id = response["request_id"].as_str()?.to_owned();
    match response["subtype"].as_str()? {
        "success" => Some((id, Ok(response["response"].clone()))),
        _ => Some((id, Err(response["error"].as_str()?.to_owned()))),
    }
}

impl Client {
    /// The other side of these streams.
    pub fn new(stdin: ChildStdin, stdout: ChildStdout) -> Client {
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let parsed = serde_json::from_str(&line);
                let parsed =
                    parsed.unwrap_or_else(|error| json!({"no JSON": line, "error": error.to_string()}));
                if sender.send(parsed).is_err() {
                    return;
                }
            }
        });
        Client { stdin: Some(stdin), lines }
    }

    /// Writes a line or a part of one.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        stdin.write_all(bytes.as_ref()).unwrap();
    }

    /// Ends what is written.
    pub fn close(&mut self) {
        self.stdin = None;
    }

    /// The next line.
    #[track_caller]
    pub fn next(&self) -> Value {
        self.lines.recv_timeout(DEADLINE).expect("the program writes another line")
    }

    /// The next line of this type; those before it are passed over.
    #[track_caller]
    pub fn next_of(&self, kind: &str) -> Value {
        loop {
            let line = self.next();
            if line["type"] == kind {
                return line;
            }
        }
    }

    /// All lines that are still to come.
    #[track_caller]
    pub fn rest(mut self) -> Vec<Value> {
        self.close();
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => rest.push(line),
                Err(mpsc::RecvTimeoutError::Disconnected) => return rest,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("the program goes on: {rest:?}"),
            }
        }
    }
}
