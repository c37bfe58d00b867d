//! Replies that go wrong, made of one that is right: a call that leaves the second mark.

use crate::check::Api;
use crate::server::{Ending, Framing, Reply};
use crate::talk;

/// What the marks are when the calls of both turns have run once.
pub const BOTH_MARKS: &str = "one\ntwo\n";
/// What they are when the turn that the fault struck gave no reply.
pub const FIRST_MARK: &str = "one\n";

/// The reply of the turn before. Its connection is not kept: what a kept one brings is sent again in silence.
pub fn first(api: Api) -> Reply {
    let reply = talk::asks(api, "", &[("call_1", "Bash", r#"{"command": "echo one >>log.txt"}"#)]);
    reply.framing(Framing::Close)
}

/// The reply that the fault strikes.
pub fn second(api: Api) -> Reply {
    talk::asks(api, "I write.", &[("call_2", "Bash", r#"{"command": "echo two >>log.txt"}"#)])
}

/// The reply of the last turn.
pub fn answer(api: Api) -> Reply {
    talk::answer(api, "Told.")
}

/// A whole reply as it goes over the wire, and where its parts are.
pub struct Wire {
    bytes: Vec<u8>,
    body: usize,
    complete: usize,
}

impl Wire {
    fn new(bytes: Vec<u8>) -> Wire {
        let find = |text: &str, from: usize| {
            let at = bytes[from..].windows(text.len()).position(|window| window == text.as_bytes());
            at.map(|at| from + at + text.len())
        };
        let body = find("\r\n\r\n", 0).expect("a head has an end");
        let ends = [r#""finish_reason":"tool_calls""#, r#"{"type":"message_stop"}"#];
        let end = ends.iter().find_map(|end| find(end, body)).expect("a reply has an end");
        let complete = find("\n\n", end).expect("an event has an end");
        Wire { bytes, body, complete }
    }

    /// The end of its body told by this means.
    pub fn framed(api: Api, framing: Framing) -> Wire {
        let reply = second(api).framing(framing);
        Wire::new(match framing {
            Framing::Chunked => chunked(&reply),
            Framing::Length | Framing::Close => reply.wire(),
        })
    }

    /// Up to this byte, and then this ending.
    pub fn cut(&self, at: usize, ending: Ending) -> Reply {
        Reply::raw(&self.bytes[..at], ending)
    }

    /// Up to this byte, then others, and then this ending.
    pub fn cut_and(&self, at: usize, bytes: &[u8], ending: Ending) -> Reply {
        Reply::raw([&self.bytes[..at], bytes].concat(), ending)
    }

    /// Places in its head.
    pub fn in_head(&self) -> [usize; 4] {
        [1, 9, self.body / 2, self.body - 1]
    }

    /// Places in its body before the reply is whole.
    pub fn in_body(&self) -> [usize; 4] {
        let part = (self.complete - self.body) / 3;
        [self.body, self.body + part, self.body + 2 * part, self.complete - 1]
    }

    /// Between two events in the middle of its body.
    pub fn between_events(&self) -> usize {
        let middle = (self.body + self.complete) / 2;
        let text = &self.bytes[middle..];
        middle + text.windows(2).position(|window| window == b"\n\n").expect("events have ends") + 2
    }

    /// Where an event's data begin.
    pub fn in_data(&self) -> usize {
        let event = self.between_events();
        let text = &self.bytes[event..];
        event + text.windows(6).position(|window| window == b"data: ").expect("an event has data") + 6
    }

    /// Where the head ends.
    pub fn body(&self) -> usize {
        self.body
    }

    /// Where the reply is whole, though more may follow.
    pub fn complete(&self) -> usize {
        self.complete
    }
}

/// A reply in chunks, one for each event.
fn chunked(reply: &Reply) -> Vec<u8> {
    let wire = reply.wire();
    let mut bytes = wire[..wire.len() - reply.body().len()].to_vec();
    let text = String::from_utf8(reply.body().to_vec()).expect("the body is text");
    for event in text.split_inclusive("\n\n") {
        bytes.extend_from_slice(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes());
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// All ways to tell the end of a body.
pub const FRAMINGS: [Framing; 3] = [Framing::Length, Framing::Chunked, Framing::Close];

/// This ending at all places that are chosen in the reply of each framing.
pub fn cut_at<const COUNT: usize>(
    api: Api,
    framings: &[Framing],
    ending: Ending,
    places: fn(&Wire) -> [usize; COUNT],
) -> Vec<Reply> {
    let wires = framings.iter().map(|framing| Wire::framed(api, *framing));
    wires.flat_map(|wire| places(&wire).map(|at| wire.cut(at, ending))).collect()
}

/// The head of a stream that has no end of its own.
pub const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A head, and then this ending.
pub fn stream(ending: Ending) -> Vec<Reply> {
    vec![Reply::raw(STREAM, ending)]
}
