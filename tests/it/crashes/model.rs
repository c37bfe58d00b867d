//! The server of these trials: it asks the task what to say, on one connection after the other, and can stop in the
//! middle of it for as long as the client lives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::task::Task;
use crate::check::Api;
use crate::server::Request;

/// A moment of which the server tells. Requests are counted from 1 in each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// This request is whole and is not answered.
    Asked(usize),
    /// Of the reply to this request so many thousandths are sent.
    Streamed(usize, usize),
    /// The reply to this request is sent.
    Replied(usize),
}

#[derive(Default)]
struct State {
    api: Option<Api>,
    /// Stands at the beginning of the paths of this run: one that was killed may have asked a moment ago.
    prefix: String,
    runs: usize,
    moment: Option<Moment>,
    requests: Vec<Request>,
    problems: Vec<String>,
}

/// A server that plays the model.
pub struct Model {
    port: u16,
    state: Arc<Mutex<State>>,
    reached: Receiver<()>,
}

impl Model {
    /// Starts to listen. It ends with the tests.
    pub fn start(task: Arc<Task>) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let (sender, reached) = mpsc::channel();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let session = Session { task: &task, state: &shared, reached: &sender };
                // A client that was killed is the usual end here.
                let _ = session.serve(&stream.unwrap());
            }
        });
        Model { port, state, reached }
    }

    /// A run with this API begins, of which this moment is to be told. Gives the address that it is to ask.
    pub fn begin(&self, api: Api, moment: Option<Moment>) -> String {
        let mut state = self.state.lock().unwrap();
        while self.reached.try_recv().is_ok() {}
        state.runs += 1;
        state.prefix = format!("/run{}", state.runs);
        (state.api, state.moment) = (Some(api), moment);
        state.requests.clear();
        format!("http://127.0.0.1:{}{}", self.port, state.prefix)
    }

    /// Waits until the moment is there; false if it does not come for so long.
    pub fn wait(&self, time: Duration) -> bool {
        self.reached.recv_timeout(time).is_ok()
    }

    /// The requests of the run, and all that was wrong until now.
    pub fn seen(&self) -> (Vec<Request>, Vec<String>) {
        let state = self.state.lock().unwrap();
        (state.requests.clone(), state.problems.clone())
    }
}

struct Session<'a> {
    task: &'a Task,
    state: &'a Mutex<State>,
    reached: &'a Sender<()>,
}

impl Session<'_> {
    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader)? {
            self.answer(request, stream)?;
        }
        Ok(())
    }

    fn answer(&self, mut request: Request, mut stream: &TcpStream) -> std::io::Result<()> {
        let mut state = self.state.lock().unwrap();
        match request.path.strip_prefix(&format!("{}/", state.prefix)) {
            Some(path) => request.path = format!("/{path}"),
            None => return Err(std::io::ErrorKind::ConnectionAborted.into()),
        }
        let api = state.api.expect("a run has begun");
        let reply = self.task.reply(api, &request.json());
        state.requests.push(request);
        let (number, moment) = (state.requests.len(), state.moment);
        let reply = match reply {
            Ok(reply) => reply.wire(),
            Err(problem) => {
                state.problems.push(problem);
                b"HTTP/1.1 400 Bad\r\ncontent-length: 0\r\n\r\n".to_vec()
            }
        };
        drop(state);
        match moment {
            Some(Moment::Asked(asked)) if asked == number => self.hold(stream),
            Some(Moment::Streamed(asked, part)) if asked == number => {
                stream.write_all(&reply[..reply.len() * part / 1000])?;
                self.hold(stream)
            }
            Some(Moment::Replied(asked)) if asked == number => {
                stream.write_all(&reply)?;
                let _ = self.reached.send(());
                Ok(())
            }
            _ => stream.write_all(&reply),
        }
    }

    /// Tells that the moment is there, and waits for the client's end.
    fn hold(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        let _ = self.reached.send(());
        let _ = stream.read(&mut [0])?;
        Err(std::io::ErrorKind::ConnectionAborted.into())
    }
}

/// The next request; none if the client has gone, be it in the middle of one.
fn read_request(reader: &mut BufReader<&TcpStream>) -> std::io::Result<Option<Request>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some("") => break,
            Some(text) => lines.push(text.to_owned()),
            None => return Ok(None),
        }
    }
    let mut words = lines[0].split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: Vec<(String, String)> = lines[1..]
        .iter()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let mut request = Request { connection: 0, method, path, headers, body: Vec::new(), complete: true };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body.resize(length, 0);
    match reader.read_exact(&mut request.body) {
        Ok(()) => Ok(Some(request)),
        Err(_) => Ok(None),
    }
}
