//! A story: files and replies are given, the program is run once, and what came of it is compared.
//!
//! Each story has a folder of its own with workspace, HOME and TMPDIR, and an environment of nothing
//! but what it says. A failure shows all there is to know, so that no second run is needed; only then
//! is the folder kept.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::check::{self, Api};
use crate::client::Client;
use crate::server::{Record, Reply, Request, Server};

/// A run that takes longer has hung.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// The program that is tested: the binary that was built with the tests, or the one that `COTTER_BINARY` names.
pub fn program() -> &'static str {
    static PROGRAM: LazyLock<String> = LazyLock::new(|| {
        let named = std::env::var("COTTER_BINARY").ok().filter(|named| !named.is_empty());
        named.unwrap_or_else(|| env!("CARGO_BIN_EXE_cotter").to_owned())
    });
    &PROGRAM
}

/// What is done in the workspace before the program is run.
type Prepare = Box<dyn FnOnce(&Path) + Send>;

/// What is given before the program is run.
pub struct Story {
    name: String,
    api: Api,
    files: Vec<(String, Vec<u8>)>,
    programs: Vec<String>,
    prepare: Option<Prepare>,
    replies: Vec<Reply>,
    args: Vec<String>,
    stdin: Option<Vec<u8>>,
    environment: Vec<(String, String)>,
    program: PathBuf,
    host: Option<String>,
    places: [String; 3],
    told_folder: bool,
    conversations: usize,
}

/// Stands for the workspace's absolute path in replies that [`Story::told_folder`] lets know it. One
/// character is never split between two pieces of a stream.
pub const FOLDER: &str = "⌂";

impl Story {
    /// An empty story; the name shows in failures and in the folder's name.
    pub fn new(name: &str) -> Story {
        Story {
            name: name.to_owned(),
            api: Api::OpenAi,
            files: Vec::new(),
            programs: Vec::new(),
            prepare: None,
            replies: Vec::new(),
            args: Vec::new(),
            stdin: None,
            environment: Vec::new(),
            program: program().into(),
            host: None,
            places: ["work", "home", "tmp"].map(str::to_owned),
            told_folder: false,
            conversations: 1,
        }
    }

    /// The server speaks this API.
    pub fn api(mut self, api: Api) -> Story {
        self.api = api;
        self
    }

    /// The server speaks Chat Completions, is named by `--base-url` and wants no key.
    pub fn openai(self) -> Story {
        self.api(Api::OpenAi)
    }

    /// The server stands in for OpenRouter.
    pub fn openrouter(self) -> Story {
        self.api(Api::OpenRouter)
    }

    /// The server speaks Anthropic Messages.
    pub fn anthropic(self) -> Story {
        self.api(Api::Anthropic)
    }

    /// Files in the workspace; folders are made as needed.
    pub fn files(mut self, files: &[(&str, &str)]) -> Story {
        self.files.extend(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
        self
    }

    /// One file in the workspace, of any bytes.
    pub fn file(mut self, path: &str, bytes: impl AsRef<[u8]>) -> Story {
        self.files.push((path.to_owned(), bytes.as_ref().to_vec()));
        self
    }

    /// Where workspace, HOME and TMPDIR lie in the story's folder.
    pub fn places(mut self, work: &str, home: &str, tmp: &str) -> Story {
        self.places = [work, home, tmp].map(str::to_owned);
        self
    }

    /// Runs this program in place of the binary.
    pub fn program(mut self, program: &Path) -> Story {
        self.program = program.to_owned();
        self
    }

    /// The server stands in for this base URL, of the kind `http://openrouter.ai/api/v1`, as the proxy that
    /// leads there: some rules go by the host's name.
    pub fn host(mut self, base_url: &str) -> Story {
        self.host = Some(base_url.to_owned());
        self
    }

    /// Every [`FOLDER`] in a reply becomes the workspace's absolute path, which requests may then hold.
    pub fn told_folder(mut self) -> Story {
        self.told_folder = true;
        self
    }

    /// The run has so many conversations in all: a skill may have one of its own.
    pub fn conversations(mut self, count: usize) -> Story {
        self.conversations = count;
        self
    }

    /// What is done in the workspace before the program starts, beside making the files.
    pub fn prepared(mut self, prepare: impl FnOnce(&Path) + Send + 'static) -> Story {
        self.prepare = Some(Box::new(prepare));
        self
    }

    /// A file in the workspace that anybody may run.
    pub fn executable(mut self, path: &str, text: &str) -> Story {
        self.programs.push(path.to_owned());
        self.files(&[(path, text)])
    }

    /// The next reply.
    pub fn reply(mut self, reply: Reply) -> Story {
        self.replies.push(reply);
        self
    }

    /// The next reply, from a file named from the project's root.
    pub fn reply_file(self, path: &str) -> Story {
        self.reply(Reply::file(path))
    }

    /// All replies of a recorded exchange, from a folder named from the project's root.
    pub fn exchange(self, folder: &str) -> Story {
        exchange(folder).into_iter().fold(self, Story::reply)
    }

    /// Arguments, after those that name the server.
    pub fn args(mut self, args: &[&str]) -> Story {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// What is written to standard input, a pipe; without it standard input is `/dev/null`.
    pub fn stdin(mut self, bytes: impl AsRef<[u8]>) -> Story {
        self.stdin = Some(bytes.as_ref().to_vec());
        self
    }

    /// One variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Story {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the program and checks what holds for every run: all replies were asked for, no request was
    /// too many, each was well formed, and none told a path of the machine or a key.
    #[track_caller]
    pub fn run(self) -> Outcome {
        self.start().finish()
    }

    /// Starts the program and leaves it running.
    pub fn start(mut self) -> Running {
        let root = new_folder(&self.name, &self.places);
        let folder = root.join(&self.places[0]);
        for (path, bytes) in &self.files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).unwrap();
            fs::write(path, bytes).unwrap();
        }
        for path in &self.programs {
            fs::set_permissions(folder.join(path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        if let Some(prepare) = self.prepare.take() {
            prepare(&folder);
        }
        let mut replies = std::mem::take(&mut self.replies);
        if self.told_folder {
            let folder = folder.to_str().expect("the folder's name is text");
            replies = replies.into_iter().map(|reply| reply.replace(FOLDER, folder)).collect();
        }
        let server = Server::start(replies);
        let mut command = self.command(&root, &format!("http://127.0.0.1:{}", server.port()));
        let child = command.spawn().expect("the program can be started");
        let story = format!("{}: {command:?}", self.name);
        let told_folder = self.told_folder;
        let (api, stdin, conversations) = (self.api, self.stdin, self.conversations);
        Running { child, server, root, folder, api, stdin, story, told_folder, conversations }
    }

    fn command(&self, root: &Path, url: &str) -> Command {
        let mut command = Command::new(&self.program);
        let [work, home, tmp] = self.places.each_ref().map(|place| root.join(place));
        command.current_dir(work).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", home).env("TMPDIR", tmp);
        let base_url = self.host.clone().unwrap_or_else(|| match self.api {
            Api::OpenAi => format!("{url}/v1"),
            Api::OpenRouter => format!("{url}/api/v1"),
            Api::Anthropic => url.to_owned(),
        });
        if self.host.is_some() {
            command.env("http_proxy", url);
        }
        match self.api {
            Api::OpenAi => command.args(["--base-url", &base_url, "--model", "test-model"]),
            Api::OpenRouter => {
                command.env("OPENROUTER_BASE_URL", base_url).env("OPENROUTER_API_KEY", "test-key")
            }
            Api::Anthropic => {
                command.env("ANTHROPIC_BASE_URL", base_url).env("ANTHROPIC_API_KEY", "test-key")
            }
        };
        command.args(&self.args).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(if self.stdin.is_some() { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The program while it runs.
pub struct Running {
    child: Child,
    server: Server,
    root: PathBuf,
    api: Api,
    stdin: Option<Vec<u8>>,
    story: String,
    folder: PathBuf,
    told_folder: bool,
    conversations: usize,
}

impl Running {
    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Takes over its standard input and output; the story needs a standard input for that.
    pub fn client(&mut self) -> Client {
        let (stdin, stdout) = self.streams();
        Client::new(stdin, stdout)
    }

    /// The same as they are.
    pub fn streams(&mut self) -> (ChildStdin, ChildStdout) {
        let stdin = self.child.stdin.take().expect("standard input is a pipe");
        (stdin, self.child.stdout.take().expect("standard output is a pipe"))
    }

    /// Waits until the server has had so many requests.
    #[track_caller]
    pub fn wait_for_request(&self, count: usize) {
        let deadline = Instant::now() + DEADLINE;
        while self.server.count() < count {
            assert!(Instant::now() < deadline, "there were no {count} requests");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits for its end and checks what holds for every run.
    #[track_caller]
    pub fn finish(self) -> Outcome {
        let finished = finish(self.child, self.stdin);
        let Record { requests, mut problems, sent } = self.server.stop();
        problems.extend(finished.problem);
        problems.extend(check::conversations(self.api, &requests, self.conversations).err());
        if !self.told_folder {
            problems.extend(requests.iter().filter_map(|request| tells_too_much(request, &self.root)));
        }
        let (stderr, _) = without_way_on(&String::from_utf8_lossy(&finished.stderr));
        let outcome = Outcome {
            code: finished.status.code(),
            signal: finished.status.signal(),
            stdout: finished.stdout,
            stderr,
            requests,
            sent,
            folder: self.folder,
            root: self.root,
            story: self.story,
        };
        assert!(problems.is_empty(), "{}\n{}", problems.join("\n"), outcome.report());
        outcome
    }
}

/// The replies `01.response.http`, `02.response.http` … of a folder named from the project's root.
pub fn exchange(folder: &str) -> Vec<Reply> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = fs::read_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let numbered = names.filter_map(|name| {
        let number: u32 = name.strip_suffix(".response.http")?.parse().ok()?;
        Some((number, format!("{folder}/{name}")))
    });
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort();
    assert!(!numbered.is_empty(), "{folder} holds no recording");
    numbered.iter().map(|(_, path)| Reply::file(path)).collect()
}

/// Whether a process that the tests start can be ended by this signal. Under nohup, or as a background job of
/// a script, signals are ignored and stay so in what is started; then the test says that it skips them.
pub fn can_end(signal: rustix::process::Signal, test: &str) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1;
    if ignored {
        // Past the capture of a test's output, since `.ci/run` counts these.
        let line = format!("SKIPPED {test}: {signal:?} is ignored where the tests run\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    !ignored
}

/// A new folder with `home`, `tmp` and these places in it.
pub fn new_folder(name: &str, places: &[impl AsRef<Path>]) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let word: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let temp = fs::canonicalize(std::env::temp_dir()).expect("there is a folder for temporary files");
    let root = temp.join(format!("cotter-it-{}-{count}-{word}", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    for place in places {
        fs::create_dir_all(root.join(place)).unwrap();
    }
    root
}

/// Equal work gives equal bytes in any folder, and a key is a header's business.
fn tells_too_much(request: &Request, root: &Path) -> Option<String> {
    let body = String::from_utf8_lossy(&request.body);
    let root = root.to_str().expect("the folder's name is text");
    let secrets = [root, "test-key"];
    secrets.into_iter().find(|secret| body.contains(secret)).map(|secret| format!("a request tells {secret}"))
}

/// How a child ended and what it wrote.
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to its standard output, if that was a pipe.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error, if that was a pipe.
    pub stderr: Vec<u8>,
    /// Why this is no proper end.
    pub problem: Option<String>,
}

/// Feeds and drains the program until it has ended, or ends it at the deadline.
pub fn finish(mut child: Child, stdin: Option<Vec<u8>>) -> Finished {
    let deadline = Instant::now() + DEADLINE;
    let (sender, ended) = mpsc::channel();
    let stdout = drain(child.stdout.take(), sender.clone());
    let stderr = drain(child.stderr.take(), sender);
    if let (Some(bytes), Some(mut pipe)) = (stdin, child.stdin.take()) {
        // A program that does not read its standard input is no failure of the writer.
        thread::spawn(move || drop(pipe.write_all(&bytes)));
    }
    let streams_ended = wait_for_both(&ended, deadline);
    let mut problem = None;
    let status = loop {
        match child.try_wait().expect("the child can be waited for") {
            Some(status) => break status,
            None if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            None => {
                problem = Some(format!("the program hung for {} s and was killed", DEADLINE.as_secs()));
                child.kill().expect("the child can be killed");
                break child.wait().expect("the child can be waited for");
            }
        }
    };
    if problem.is_none() && !streams_ended {
        problem = Some("the program ended and left someone who holds its output open".to_owned());
    }
    let [stdout, stderr] = [stdout, stderr].map(|bytes| std::mem::take(&mut *bytes.lock().unwrap()));
    Finished { status, stdout, stderr, problem }
}

/// Collects all that comes from a stream, and says when it has ended. What is no pipe has ended already.
pub fn drain(stream: Option<impl Read + Send + 'static>, ended: mpsc::Sender<()>) -> Arc<Mutex<Vec<u8>>> {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&bytes);
    thread::spawn(move || {
        let mut piece = [0; 65536];
        if let Some(mut stream) = stream {
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                shared.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        }
        let _ = ended.send(());
    });
    bytes
}

/// Standard error without the line that says how to go on with the session of a run that failed, and the id in
/// that line: being random, it is in nobody's expectations.
pub fn without_way_on(stderr: &str) -> (String, Option<String>) {
    const BEGINNING: &str = "cotter: what was said is kept: cotter -r ";
    const END: &str = " goes on with it\n";
    let found = stderr.rfind(BEGINNING).and_then(|at| {
        let id = stderr[at + BEGINNING.len()..].strip_suffix(END).filter(|id| id.len() == 36)?;
        Some((stderr[..at].to_owned(), Some(id.to_owned())))
    });
    found.unwrap_or_else(|| (stderr.to_owned(), None))
}

fn wait_for_both(ended: &Receiver<()>, deadline: Instant) -> bool {
    (0..2).all(|_| match ended.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(()) => true,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => false,
    })
}

/// What came of a run. Each assertion gives the outcome back, so that they can be chained.
#[derive(Debug)]
pub struct Outcome {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error, but for the last line of a run that failed and can be gone on with.
    pub stderr: String,
    /// The requests the server received, in order.
    pub requests: Vec<Request>,
    /// How many bytes of replies its side took.
    pub sent: u64,
    /// The workspace.
    pub folder: PathBuf,
    root: PathBuf,
    story: String,
}

impl Outcome {
    /// The program ended by itself with this code.
    #[track_caller]
    pub fn code(&self, expected: i32) -> &Outcome {
        assert!(self.code == Some(expected), "the exit code is not {expected}\n{}", self.report());
        self
    }

    /// Standard output is exactly this.
    #[track_caller]
    pub fn stdout(&self, expected: impl AsRef<[u8]>) -> &Outcome {
        let expected = expected.as_ref();
        let text = String::from_utf8_lossy(expected);
        assert!(self.stdout == expected, "standard output is not {text:?}\n{}", self.report());
        self
    }

    /// Standard error holds this text somewhere.
    #[track_caller]
    pub fn stderr_has(&self, expected: &str) -> &Outcome {
        assert!(self.stderr.contains(expected), "standard error lacks {expected:?}\n{}", self.report());
        self
    }

    /// Standard error does not hold this text.
    #[track_caller]
    pub fn stderr_lacks(&self, unwanted: &str) -> &Outcome {
        assert!(!self.stderr.contains(unwanted), "standard error has {unwanted:?}\n{}", self.report());
        self
    }

    /// The server received this many requests.
    #[track_caller]
    pub fn request_count(&self, expected: usize) -> &Outcome {
        assert!(self.requests.len() == expected, "not {expected} requests\n{}", self.report());
        self
    }

    /// A file in the workspace holds exactly these bytes.
    #[track_caller]
    pub fn file(&self, path: &str, expected: impl AsRef<[u8]>) -> &Outcome {
        let found = fs::read(self.folder.join(path)).ok();
        let same = found.as_deref() == Some(expected.as_ref());
        assert!(same, "{path} is not {:?}\n{}", String::from_utf8_lossy(expected.as_ref()), self.report());
        self
    }

    /// There is nothing of this name in the workspace.
    #[track_caller]
    pub fn no_file(&self, path: &str) -> &Outcome {
        assert!(!self.folder.join(path).exists(), "{path} exists\n{}", self.report());
        self
    }

    /// Two values are equal; else everything is shown.
    #[track_caller]
    pub fn equal<T: PartialEq + std::fmt::Debug>(&self, found: T, expected: T) -> &Outcome {
        assert!(found == expected, "found    {found:?}\nexpected {expected:?}\n{}", self.report());
        self
    }

    /// The body of the n-th request, counted from 1, as JSON.
    #[track_caller]
    pub fn body(&self, number: usize) -> Value {
        let request = self.requests.get(number - 1);
        request.unwrap_or_else(|| panic!("there is no request {number}\n{}", self.report())).json()
    }

    /// The body of the n-th request, counted from 1, as it was sent.
    #[track_caller]
    pub fn sent(&self, number: usize) -> String {
        let request = self.requests.get(number - 1);
        let request = request.unwrap_or_else(|| panic!("there is no request {number}\n{}", self.report()));
        String::from_utf8(request.body.clone()).expect("a request is text")
    }

    /// Standard error is exactly this.
    #[track_caller]
    pub fn stderr(&self, expected: &str) -> &Outcome {
        assert!(self.stderr == expected, "standard error is not {expected:?}\n{}", self.report());
        self
    }

    /// Standard output as one JSON value.
    #[track_caller]
    pub fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("standard output is not JSON: {error}\n{}", self.report()))
    }

    /// All there is to know about the run.
    pub fn report(&self) -> String {
        let mut text = format!("--- {}\ncode {:?}, signal {:?}\n", self.story, self.code, self.signal);
        let _ = writeln!(text, "--- files in {}", self.folder.display());
        list(&self.folder, &self.folder, &mut text);
        let _ = writeln!(text, "--- standard output\n{}", String::from_utf8_lossy(&self.stdout));
        let _ = writeln!(text, "--- standard error\n{}", self.stderr);
        for (index, request) in self.requests.iter().enumerate() {
            let Request { connection, method, path, .. } = request;
            let _ = writeln!(text, "--- request {}: {method} {path} on connection {connection}", index + 1);
            for (name, value) in &request.headers {
                let _ = writeln!(text, "{name}: {value}");
            }
            let _ = writeln!(text, "\n{}", String::from_utf8_lossy(&request.body));
        }
        text
    }
}

impl Drop for Outcome {
    fn drop(&mut self) {
        if !thread::panicking() {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

fn list(root: &Path, folder: &Path, text: &mut String) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let length = path.symlink_metadata().map_or(0, |data| data.len());
        let name = path.strip_prefix(root).unwrap_or(&path).display();
        if path.is_dir() && !path.is_symlink() {
            let _ = writeln!(text, "{name}/");
            list(root, &path, text);
        } else {
            let _ = writeln!(text, "{name} ({length} bytes)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    #[test]
    fn a_program_is_fed_and_drained_to_its_end() {
        let input = vec![b'x'; 300_000];
        let child = shell("cat; echo oops >&2; exit 7").spawn().unwrap();
        let finished = finish(child, Some(input.clone()));
        assert_eq!(finished.status.code(), Some(7));
        assert!(finished.stdout == input);
        assert_eq!(finished.stderr, b"oops\n");
        assert_eq!(finished.problem, None);
    }

    #[test]
    fn a_folder_is_made_of_three_parts_and_an_outcome_takes_it_away() {
        let root = new_folder("of three parts", &["work", "home", "tmp"]);
        assert!(root.join("home").is_dir() && root.join("tmp").is_dir());
        let outcome = Outcome {
            code: Some(0),
            signal: None,
            stdout: b"{}".to_vec(),
            stderr: "oops".to_owned(),
            requests: Vec::new(),
            sent: 0,
            folder: root.join("work"),
            root: root.clone(),
            story: "a story".to_owned(),
        };
        fs::create_dir(outcome.folder.join("a")).unwrap();
        fs::write(outcome.folder.join("a/b"), "xyz").unwrap();
        outcome.code(0).stdout("{}").stderr_has("oops").stderr_lacks("ouch").request_count(0);
        outcome.file("a/b", "xyz").no_file("c").equal(outcome.json(), Value::Object(Default::default()));
        let folder = outcome.folder.display().to_string();
        let expected = format!(
            "--- a story\ncode Some(0), signal None\n--- files in {folder}\na/\na/b (3 bytes)\n\
             --- standard output\n{{}}\n--- standard error\noops\n"
        );
        assert_eq!(outcome.report(), expected);
        drop(outcome);
        assert!(!root.exists());
    }
}
