//! A stage: a folder to run the program in by hand, where a test needs more than a story gives. A
//! terminal, a file as standard input, several runs in a row, a server with a script of its own.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::pty::OpenptFlags;
use serde_json::{Value, json};

use crate::server::{Reply, Request, Server};
use crate::story::{DEADLINE, Finished, drain, finish, new_folder, without_way_on};

/// A folder with a workspace, a home and a place for temporary files; it goes with the value, unless the
/// test has failed.
pub struct Stage {
    root: PathBuf,
}

impl Stage {
    /// An empty stage; the name shows in the folder's name.
    pub fn new(name: &str) -> Stage {
        Stage { root: new_folder(name, &["work", "home", "tmp"]) }
    }

    /// The folder that holds `work`, `home` and `tmp`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join("work").join(name)
    }

    /// Writes a file of the workspace, making its folders; gives its path as text.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder")).unwrap();
        fs::write(&path, bytes).unwrap();
        path.into_os_string().into_string().expect("the folder's name is text")
    }

    /// A file of the workspace as text.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The program with these arguments in the workspace, and an environment of PATH, HOME and TMPDIR.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(crate::story::program());
        command.args(args);
        self.prepare(command)
    }

    /// The program with a Chat Completions server and a model, and then these arguments.
    pub fn ask(&self, port: u16, args: &[&str]) -> Command {
        let mut command = self.command(&["--base-url", &base_url(port), "--model", "test-model"]);
        command.args(args);
        command
    }

    /// A shell script in the workspace; `$cotter` is the program and `$url` the server's base URL.
    pub fn shell(&self, port: u16, script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command.env("cotter", crate::story::program()).env("url", base_url(port));
        self.prepare(command)
    }

    fn prepare(&self, mut command: Command) -> Command {
        let own: Vec<_> = command.get_envs().map(|(n, v)| (n.to_owned(), v.map(ToOwned::to_owned))).collect();
        command.env_clear().current_dir(self.root.join("work"));
        command.envs(own.into_iter().filter_map(|(name, value)| Some((name, value?))));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.root.join("home")).env("TMPDIR", self.root.join("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Every file below the stage with its bytes, its path shown from the root.
    pub fn all_files(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&self.root).unwrap().display().to_string();
                    found.push((name, fs::read(&path).unwrap()));
                }
            }
        }
        found.sort();
        found
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// Where a server of a test is, as `--base-url` has it.
pub fn base_url(port: u16) -> String {
    format!("http://127.0.0.1:{port}/v1")
}

/// What came of one run. Each assertion gives it back, so that they can be chained.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, but for the last line of a run that failed and can be gone on with.
    pub stderr: String,
    /// The id of the session that this line names.
    pub way_on: Option<String>,
    what: String,
}

/// Runs a command to its end.
#[track_caller]
pub fn run(command: &mut Command) -> Ran {
    let child = command.spawn().expect("the program can be started");
    ran(finish(child, None), format!("{command:?}"))
}

/// Runs a command to its end with these bytes in a pipe as its standard input.
#[track_caller]
pub fn run_with_input(command: &mut Command, bytes: impl AsRef<[u8]>) -> Ran {
    let child = command.stdin(Stdio::piped()).spawn().expect("the program can be started");
    ran(finish(child, Some(bytes.as_ref().to_vec())), format!("{command:?}"))
}

/// What came of a child that has ended.
#[track_caller]
pub fn ran(finished: Finished, what: String) -> Ran {
    let (stderr, way_on) = without_way_on(&String::from_utf8_lossy(&finished.stderr));
    let ran = Ran {
        code: finished.status.code(),
        signal: finished.status.signal(),
        stdout: finished.stdout,
        stderr,
        way_on,
        what,
    };
    assert_eq!(finished.problem, None, "{}", ran.report());
    ran
}

impl Ran {
    /// The program ended by itself with this code.
    #[track_caller]
    pub fn code(&self, expected: i32) -> &Ran {
        assert!(self.code == Some(expected), "the exit code is not {expected}\n{}", self.report());
        self
    }

    /// Standard output is exactly this.
    #[track_caller]
    pub fn stdout(&self, expected: impl AsRef<[u8]>) -> &Ran {
        let text = String::from_utf8_lossy(expected.as_ref()).into_owned();
        assert!(self.stdout == expected.as_ref(), "standard output is not {text:?}\n{}", self.report());
        self
    }

    /// Standard error is exactly this.
    #[track_caller]
    pub fn stderr(&self, expected: impl AsRef<str>) -> &Ran {
        let expected = expected.as_ref();
        assert!(self.stderr == expected, "standard error is not {expected:?}\n{}", self.report());
        self
    }

    /// Standard output as text.
    #[track_caller]
    pub fn text(&self) -> &str {
        str::from_utf8(&self.stdout).unwrap_or_else(|error| panic!("{error}\n{}", self.report()))
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("standard output is not JSON: {error}\n{}", self.report()))
    }

    /// All there is to know about the run.
    pub fn report(&self) -> String {
        let Ran { code, signal, stdout, stderr, way_on, what } = self;
        let stdout = String::from_utf8_lossy(stdout);
        format!(
            "--- {what}\ncode {code:?}, signal {signal:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}\nway on: {way_on:?}"
        )
    }
}

/// A Chat Completions stream of these chunks, each a choice's delta or finish reason.
fn stream(choices: &[Value]) -> Reply {
    let mut body = String::new();
    for choice in choices {
        body.push_str(&format!("data: {}\n\n", json!({"model": "test-model", "choices": [choice]})));
    }
    Reply::new(200, "text/event-stream", format!("{body}data: [DONE]\n\n"))
}

/// A reply that says a text, in these pieces.
pub fn says(pieces: &[&str]) -> Reply {
    let mut choices: Vec<Value> =
        pieces.iter().map(|text| json!({"index": 0, "delta": {"content": text}})).collect();
    choices.push(json!({"index": 0, "delta": {}, "finish_reason": "stop"}));
    stream(&choices)
}

/// A reply that calls a tool.
pub fn calls(id: &str, name: &str, arguments: &Value) -> Reply {
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let call = json!({"index": 0, "id": id, "type": "function", "function": function});
    stream(&[
        json!({"index": 0, "delta": {"tool_calls": [call]}}),
        json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"}),
    ])
}

/// A reply of Anthropic Messages that says a text, as one document.
pub fn says_in_messages(text: &str) -> Reply {
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "test-model",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 1500, "output_tokens": 3},
    });
    Reply::new(200, "application/json", message.to_string())
}

/// Stops a server with which all went well, and gives the requests it had.
#[track_caller]
pub fn requests(server: Server) -> Vec<Request> {
    let record = server.stop();
    assert_eq!(record.problems, [""; 0]);
    record.requests
}

/// The text of the last user message of a request to Chat Completions.
#[track_caller]
pub fn prompt(request: &Request) -> String {
    last_of(request, "user")
}

/// The text of the last result that a request to Chat Completions holds.
#[track_caller]
pub fn result(request: &Request) -> String {
    last_of(request, "tool")
}

#[track_caller]
fn last_of(request: &Request, role: &str) -> String {
    let body = request.json();
    let messages = body["messages"].as_array().expect("a list of messages");
    let last = messages.iter().rfind(|message| message["role"] == role);
    let last = last.unwrap_or_else(|| panic!("no message of {role}: {body}"));
    last["content"].as_str().unwrap_or_else(|| panic!("not a text: {last}")).to_owned()
}

/// Starts a server that does what the script says; its result is had by joining.
pub fn serve<T: Send + 'static>(
    script: impl FnOnce(TcpListener) -> T + Send + 'static,
) -> (u16, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (port, thread::spawn(move || script(listener)))
}

/// The next connection of a server with a script.
pub fn accept(listener: &TcpListener) -> TcpStream {
    let stream = listener.accept().unwrap().0;
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads the head of a request, its empty line included; empty if the other side has closed.
pub fn read_head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// Reads a whole request; none if the other side has closed.
pub fn read_request(stream: &mut impl Read) -> Option<Request> {
    let head = read_head(stream);
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { connection: 0, method, path, headers, body: Vec::new(), complete: true };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    stream.take(length).read_to_end(&mut request.body).unwrap();
    Some(request)
}

/// A server that gives each connection to a script of the test's, one after another, and tells how many
/// there were.
pub struct Scripted<T> {
    port: u16,
    stopping: Arc<AtomicBool>,
    serving: JoinHandle<Vec<T>>,
}

impl<T: Send + 'static> Scripted<T> {
    /// Starts to listen; the script gets each connection and gives what is to be known of it.
    pub fn start(mut script: impl FnMut(TcpStream) -> T + Send + 'static) -> Scripted<T> {
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let (port, serving) = serve(move |listener| {
            let mut seen = Vec::new();
            loop {
                let stream = accept(&listener);
                if stop.load(Ordering::SeqCst) {
                    return seen;
                }
                seen.push(script(stream));
            }
        });
        Scripted { port, stopping, serving }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it, and gives what the script said of each connection.
    #[track_caller]
    pub fn stop(self) -> Vec<T> {
        self.stopping.store(true, Ordering::SeqCst);
        // Connections that wait to be accepted come before this one, so none is overlooked.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.serving.join().expect("the script does not panic")
    }
}

/// A terminal; what is written to it is collected.
pub struct Terminal {
    master: fs::File,
    side: OwnedFd,
    shown: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Terminal {
    /// A terminal that nobody writes to yet.
    pub fn new() -> Terminal {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = rustix::pty::openpt(flags).unwrap();
        rustix::pty::grantpt(&master).unwrap();
        rustix::pty::unlockpt(&master).unwrap();
        let side = rustix::pty::ioctl_tiocgptpeer(&master, flags).unwrap();
        let (sender, ended) = mpsc::channel();
        let master = fs::File::from(master);
        let shown = drain(Some(master.try_clone().unwrap()), sender);
        Terminal { master, side, shown, ended }
    }

    /// Types a text.
    pub fn type_in(&self, text: &str) {
        (&self.master).write_all(text.as_bytes()).unwrap();
    }

    /// The terminal as a child's stream.
    pub fn stream(&self) -> Stdio {
        self.side.try_clone().unwrap().into()
    }

    /// How it treats what is typed and shown (raw, without echo …), as text.
    pub fn modes(&self) -> String {
        format!("{:?}", rustix::termios::tcgetattr(&self.side).unwrap())
    }

    /// Waits until this text is shown.
    #[track_caller]
    pub fn wait_for(&self, text: &str) {
        let deadline = Instant::now() + DEADLINE;
        while !String::from_utf8_lossy(&self.shown.lock().unwrap()).contains(text) {
            assert!(Instant::now() < deadline, "the terminal never showed {text:?}");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// All that was shown, once the last writer is gone. A line ends in CR and LF, as terminals have it.
    #[track_caller]
    pub fn shown(self) -> String {
        drop(self.side);
        self.ended.recv_timeout(DEADLINE).expect("nobody holds the terminal open");
        String::from_utf8(std::mem::take(&mut *self.shown.lock().unwrap())).unwrap()
    }
}
