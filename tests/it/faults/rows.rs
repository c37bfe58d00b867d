//! The rows of the matrix, in the order of the table.

use super::Verdict::{Again, AgainUnseen, Final, Harmless};
use super::replies::{self, FRAMINGS, STREAM, Wire, cut_at, stream};
use super::{BOTH, Row, USUAL_MIB, Verdict, Way, links};
use crate::check::Api;
use crate::server::Ending::{self, Close, Drip, Flood, Reset, Stall};
use crate::server::Framing::{Chunked, Length};
use crate::server::{Framing, Reply};

const WITHOUT_LIMIT: u64 = u64::MAX;
const IDLE: &[&str] = &["--idle-timeout", "1"];
const TIMEOUT: &[&str] = &["--timeout", "5"];
const GARBAGE: &[u8] = b"\x00\xff\x13 garbage \x80\xc0\r\n\x01\x02 more of it \xfe\r\n";
const PAGE: &str = "<html><head><title>504 Gateway Time-out</title></head><body>nginx</body></html>\n";

fn row(
    fault: &'static str,
    place: &'static str,
    verdict: Verdict,
    code: i32,
    faults: fn(Api) -> Vec<Reply>,
) -> Row {
    Row {
        fault,
        place,
        way: Way::Replies(faults),
        verdict,
        code,
        args: &[],
        apis: &BOTH,
        most_mib: USUAL_MIB,
    }
}

fn link(
    fault: &'static str,
    place: &'static str,
    verdict: Verdict,
    run: fn(Api, super::Case) -> super::Seen,
) -> Row {
    Row { way: Way::Link(run), ..row(fault, place, verdict, 6, |_| Vec::new()) }
}

impl Row {
    fn args(self, args: &'static [&'static str]) -> Row {
        Row { args, ..self }
    }

    fn only(self, apis: &'static [Api]) -> Row {
        Row { apis, ..self }
    }

    fn most_mib(self, most_mib: u64) -> Row {
        Row { most_mib, ..self }
    }

    fn elsewhere(self) -> Row {
        match self.way {
            Way::Replies(faults) => Row { way: Way::Elsewhere(faults), ..self },
            _ => self,
        }
    }
}

pub fn all() -> Vec<Row> {
    let mut rows = links();
    rows.extend(endings());
    rows.extend(silences());
    rows.extend(foreign());
    rows.extend(framings());
    rows.extend(errors());
    rows.extend(endless());
    rows
}

fn links() -> Vec<Row> {
    vec![
        link("name without an address", "first request", AgainUnseen, links::unknown_name),
        link("port refused", "second turn", AgainUnseen, links::refused_port),
        link("TLS alert", "handshake failure", Final, links::tls_alert),
        link("TLS alert", "internal error", Again, links::tls_internal_error),
        link("no TLS", "greeting", Final, links::no_tls),
        link("TLS closed", "greeting", Again, links::tls_closed),
        link("TLS silent", "greeting", Again, links::tls_silence),
        link("TLS garbage", "in the body", Again, links::tls_garbage),
        link("certificate expired", "greeting", Final, links::expired_certificate),
        link("certificate of another host", "greeting", Final, links::other_hosts_certificate),
        link("proxy", "407", Final, links::proxy_wants_password),
        link("proxy", "403", Final, links::proxy_forbids),
        link("proxy", "502", Again, links::proxy_fails),
        link("proxy", "closes", Again, links::proxy_closes),
        link("proxy", "garbage", Again, links::proxy_garbage),
        link("proxy", "silent", Again, links::proxy_silence),
    ]
}

fn nothing(ending: Ending) -> Vec<Reply> {
    vec![Reply::nothing(ending)]
}

fn endings() -> Vec<Row> {
    vec![
        row("close", "before the head", Again, 6, |_| nothing(Close)),
        row("close", "in the head", Again, 6, |api| cut_at(api, &FRAMINGS, Close, Wire::in_head)),
        row("close", "in the body", Again, 6, |api| cut_at(api, &[Length, Chunked], Close, Wire::in_body)),
        row("close", "in a body without length", Again, 6, |api| {
            cut_at(api, &[Framing::Close], Close, Wire::in_body)
        }),
        row("close", "after the last event", Harmless, 0, |api| {
            cut_at(api, &FRAMINGS, Close, |wire| [wire.complete()])
        }),
        row("reset", "before the head", Again, 6, |_| nothing(Reset)),
        row("reset", "in the head", Again, 6, |api| cut_at(api, &FRAMINGS, Reset, Wire::in_head)),
        row("reset", "in the body", Again, 6, |api| cut_at(api, &FRAMINGS, Reset, Wire::in_body)),
        row("reset", "after the last event", Harmless, 0, |api| {
            cut_at(api, &FRAMINGS, Reset, |wire| [wire.complete()])
        }),
    ]
}

fn silences() -> Vec<Row> {
    vec![
        row("stall", "before the head, on this machine", Final, 6, |_| nothing(Stall)).args(IDLE),
        row("stall", "before the head, elsewhere", Again, 6, |_| nothing(Stall)).elsewhere().args(IDLE),
        row("stall", "in the head, elsewhere", Again, 6, |api| {
            cut_at(api, &[Length], Stall, |wire| [wire.in_head()[2]])
        })
        .elsewhere()
        .args(IDLE),
        row("stall", "in the body", Again, 6, |api| cut_at(api, &[Length], Stall, Wire::in_body)).args(IDLE),
        // With a length the connection would be kept: its silence would meet the next request.
        row("stall", "after the last event", Harmless, 0, |api| {
            cut_at(api, &[Framing::Close, Chunked], Stall, |wire| [wire.complete()])
        })
        .args(IDLE),
        row("stall", "in a refusal", Again, 5, |_| vec![refusal(Stall)]).args(IDLE),
        row("slow drip", "of the head", Final, 24, |_| {
            vec![Reply::raw("HTTP/1.1 200 OK\r\n", Drip(b"x-more: drops\r\n"))]
        })
        .args(TIMEOUT),
        row("slow drip", "of an event", Final, 24, |api| {
            cut_at(api, &[Framing::Close], Drip(b"drop "), |wire| [wire.in_body()[2]])
        })
        .args(TIMEOUT),
        row("slow drip", "of comments", Final, 24, |_| stream(Drip(b": drop\n\n"))).args(TIMEOUT),
        row("slow drip", "after the last event", Harmless, 0, |api| {
            cut_at(api, &[Framing::Close, Chunked], Drip(b": drop\n\n"), |wire| [wire.complete()])
        })
        .args(IDLE),
        row("slow drip", "of a refusal", Again, 5, |_| vec![refusal(Drip(b" "))]).args(IDLE),
    ]
}

/// A refusal that does not come to its end.
fn refusal(ending: Ending) -> Reply {
    let head = "HTTP/1.1 503 Unavailable\r\ncontent-type: text/plain\r\nretry-after-ms: 1\r\nconnection: close\r\n\r\n";
    Reply::raw(format!("{head}Not now"), ending)
}

fn foreign() -> Vec<Row> {
    vec![
        row("garbage", "in place of the head", Final, 7, |_| vec![Reply::raw(GARBAGE, Close)]),
        row("garbage", "in the status", Final, 7, |api| {
            let wire = Wire::framed(api, Length);
            vec![wire.cut_and(wire.in_head()[1], GARBAGE, Close)]
        }),
        row("garbage", "in a header", Final, 7, |api| {
            let wire = Wire::framed(api, Length);
            vec![wire.cut_and(wire.in_head()[2], GARBAGE, Close)]
        }),
        row("garbage", "in place of the body", Final, 7, |_| {
            vec![Reply::raw([STREAM.as_bytes(), GARBAGE].concat(), Close)]
        }),
        row("garbage", "in an event", Final, 7, |api| {
            let wire = Wire::framed(api, Framing::Close);
            vec![wire.cut_and(wire.in_data(), &[GARBAGE, b"\n\n"].concat(), Close)]
        }),
        row("garbage", "between events", Again, 6, |api| {
            let wire = Wire::framed(api, Framing::Close);
            vec![wire.cut_and(wire.between_events(), GARBAGE, Close)]
        }),
        row("gzip", "with its header", Final, 7, |_| {
            let reply = Reply::new(200, "text/event-stream", GZIP).header("content-encoding: gzip");
            vec![reply.clone(), reply.framing(Chunked)]
        }),
        row("gzip", "without a header", Final, 7, |_| vec![Reply::new(200, "text/event-stream", GZIP)]),
        row("HTML", "200", Final, 7, |_| vec![Reply::new(200, "text/html", PAGE)]),
        row("HTML", "504", Again, 5, |_| {
            vec![Reply::new(504, "text/html", PAGE).header("retry-after-ms: 1")]
        }),
        row("HTML", "between events", Again, 6, |api| {
            let wire = Wire::framed(api, Framing::Close);
            vec![wire.cut_and(wire.between_events(), PAGE.as_bytes(), Close)]
        }),
        row("redirect", "307", Final, 7, |_| {
            vec![Reply::new(307, "text/html", "Moved").header("location: https://models.example/v2")]
        }),
        row("dialect of Messages", "Chat Completions", Final, 7, |_| vec![replies::second(Api::Anthropic)])
            .only(&[Api::OpenAi]),
        row("dialect of Chat Completions", "Messages", Final, 7, |_| vec![replies::second(Api::OpenAi)])
            .only(&[Api::Anthropic]),
    ]
}

const GZIP: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\x49\x2c\x49\xb4\x52\xa8\x06\x00\x27\x5c\x1a";

/// The reply with this length in its head.
fn with_length(api: Api, change: fn(usize) -> String) -> Vec<Reply> {
    let reply = replies::second(api);
    let length = reply.body().len();
    let head = format!("content-length: {length}");
    let wire = String::from_utf8(reply.wire()).expect("the reply is text");
    vec![Reply::raw(wire.replace(&head, &change(length)), Close)]
}

fn framings() -> Vec<Row> {
    vec![
        row("wrong length", "longer than the body", Harmless, 0, |api| {
            with_length(api, |length| format!("content-length: {}", length + 100))
        }),
        row("wrong length", "shorter than the body", Again, 6, |api| {
            with_length(api, |length| format!("content-length: {}", length / 2))
        }),
        row("wrong length", "two that differ", Final, 7, |api| {
            with_length(api, |length| format!("content-length: {length}\r\ncontent-length: 5"))
        }),
        row("wrong length", "no number", Final, 7, |api| {
            with_length(api, |_| "content-length: much".to_owned())
        }),
        row("wrong length", "of a chunk", Again, 6, |api| {
            let wire = Wire::framed(api, Chunked);
            vec![wire.cut_and(wire.body(), b"what\r\n", Close)]
        }),
    ]
}

/// The reply's beginning, and then an error as the API tells it.
fn broken_by(api: Api, kind: &str, status: u16) -> Vec<Reply> {
    let wire = Wire::framed(api, Framing::Close);
    let error = match api {
        Api::Anthropic => format!(
            "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\",\"message\":\"It broke\"}}}}\n\n"
        ),
        _ => format!("data: {{\"error\":{{\"code\":{status},\"message\":\"It broke\"}}}}\n\n"),
    };
    vec![wire.cut_and(wire.between_events(), error.as_bytes(), Close)]
}

/// A reply that an overload ends after its text.
pub fn overloaded_in_its_reply(api: Api) -> Reply {
    broken_by(api, "overloaded_error", 529).remove(0)
}

fn errors() -> Vec<Row> {
    vec![
        row("error event", "overload, mid-stream", Again, 5, |api| broken_by(api, "overloaded_error", 529)),
        row("error event", "bad request, mid-stream", Final, 4, |api| {
            broken_by(api, "invalid_request_error", 400)
        }),
    ]
}

/// Headers that say what follows, and the body's beginning.
fn document(api: Api) -> &'static str {
    match api {
        Api::Anthropic => {
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"content\":[{\"text\":\""
        }
        _ => {
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{\"choices\":[{\"text\":\""
        }
    }
}

/// An event of 16 KiB that makes the reply longer, after those that began it.
fn endless_text(api: Api) -> Vec<Reply> {
    let event = |text: &str| match api {
        Api::Anthropic => format!(
            "data: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        ),
        _ => format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"),
    };
    let begun = match api {
        Api::Anthropic => concat!(
            "data: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[]}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
        ),
        _ => "",
    };
    // A test's few leaked kilobytes buy a flood that is a constant like the others.
    let event: &'static str = Box::leak(event(&"word ".repeat(3200)).into_boxed_str());
    vec![Reply::raw(format!("{STREAM}{begun}"), Flood(event.as_bytes(), WITHOUT_LIMIT))]
}

fn endless() -> Vec<Row> {
    const GIBIBYTE: u64 = 1 << 30;
    vec![
        row("endless", "headers", Final, 7, |_| {
            vec![Reply::raw("HTTP/1.1 200 OK\r\n", Flood(b"x-more: and more\r\n", WITHOUT_LIMIT))]
        }),
        row("endless", "line of a header", Final, 7, |_| {
            vec![Reply::raw("HTTP/1.1 200 OK\r\nx-more: ", Flood(b"more ", WITHOUT_LIMIT))]
        }),
        row("endless", "interim heads", Final, 7, |_| {
            vec![Reply::raw("", Flood(b"HTTP/1.1 100 Continue\r\n\r\n", WITHOUT_LIMIT))]
        }),
        row("endless", "line of an event", Final, 7, |_| stream(Flood(b"data: more ", WITHOUT_LIMIT)))
            .most_mib(120),
        row("endless", "lines of an event", Final, 7, |_| stream(Flood(b"data: more\n", WITHOUT_LIMIT)))
            .most_mib(120),
        row("endless", "text", Final, 7, endless_text).most_mib(320),
        row("endless", "document", Final, 7, |api| {
            vec![Reply::raw(document(api), Flood(b"more ", WITHOUT_LIMIT))]
        })
        .most_mib(120),
        row("endless", "comments, 1 GiB", Final, 7, |_| stream(Flood(b": keep-alive\n\n", GIBIBYTE))),
        row("endless", "blank lines", Final, 7, |_| stream(Flood(b"\r\n", WITHOUT_LIMIT))),
        row("endless", "blank lines after a mark", Final, 7, |_| {
            vec![Reply::raw(format!("{STREAM}\u{feff}"), Flood(b"\r\n", WITHOUT_LIMIT))]
        }),
        row("endless", "chunk's head", Again, 6, |_| {
            let head = STREAM.replace("connection: close", "transfer-encoding: chunked");
            vec![Reply::raw(format!("{head}5;"), Flood(b"more ", WITHOUT_LIMIT))]
        }),
        row("endless", "trailers", Again, 6, |_| {
            let head = STREAM.replace("connection: close", "transfer-encoding: chunked");
            vec![Reply::raw(format!("{head}0\r\n"), Flood(b"x-more: and more\r\n", WITHOUT_LIMIT))]
        }),
        row("endless", "body after the last event", Harmless, 0, |api| {
            cut_at(api, &[Framing::Close], Flood(b": more\n\n", WITHOUT_LIMIT), |wire| [wire.complete()])
        })
        .args(IDLE),
        row("endless", "refusal", Again, 5, |_| vec![refusal(Flood(b"more ", WITHOUT_LIMIT))]),
    ]
}
