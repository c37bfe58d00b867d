//! From a response to a reply: a stream of events or one document, told by its first bytes.
//!
//! What a response is not is said as exactly as what it is: a page of a proxy, a compressed body, an error with
//! its details. Nothing here decides whether to ask again.

use std::time::Duration;

use crate::error::Error;
use crate::http::{Answer, Trouble, net};
use crate::provider::{self, Api, ApiError, Fault, Reader, Reply, Spent, errors};
use crate::sse;

/// The longest stream. The longest replies of real models take some tens of MiB: a few hundred bytes a token.
const MOST_STREAM_BYTES: usize = 128 << 20;

/// How much of a stream may pass without an event, be it one that does not end, comments or blank lines: a
/// server that keeps a silent connection alive sends a few bytes a second. Likewise the longest document.
const MOST_EVENT_BYTES: usize = 64 << 20;

/// How much of a reply is taken at a time of what the connection has read. Most events are shorter.
const READ_BYTES: usize = 2 * 1024;

/// The most that is read of an error, and for how long: the status says the most.
const MOST_ERROR_BYTES: usize = 1024 * 1024;
const ERROR_PATIENCE: Duration = Duration::from_secs(10);

/// How long the usage that may follow a whole reply is awaited.
const USAGE_PATIENCE: Duration = Duration::from_secs(5);

/// What there was of a reply that did not come to its end.
pub struct Broken {
    /// What it took all the same.
    pub spent: Spent,
    /// The text that can be shown.
    pub text: String,
}

/// Makes a reply of a response, whatever form it takes. `grown` is told of a reply that has grown. Of one
/// that does not come to its end, what there was of it goes to `broken`.
///
/// # Errors
///
/// Why there is no reply: the API refused, the connection broke, or what came is not the protocol.
pub fn read(
    answer: Answer,
    api: Api,
    grown: &mut dyn FnMut(&Reader) -> Result<(), Error>,
    broken: &mut Vec<Broken>,
) -> Result<Reply, Trouble> {
    if !(200..300).contains(&answer.status) {
        return Err(refusal(answer));
    }
    let mut reader = Reader::new(api);
    let read = read_into(&mut reader, answer, grown);
    // What can be long is copied only where it may be of use.
    let is_of_no_use = reader.is_whole() || matches!(read, Err(Trouble::Fault(Fault::Malformed(_), _)));
    let text = if is_of_no_use { String::new() } else { reader.visible_text().to_owned() };
    let part = Broken { spent: reader.spent(), text };
    let reply = match read {
        Ok(()) => reader.finish().map_err(Trouble::from),
        // Where the reply is whole the connection may end as it likes.
        Err(trouble @ Trouble::Network(_)) => reader.finish().map_err(|_| trouble),
        Err(trouble) => Err(trouble),
    };
    reply.inspect_err(|_| broken.push(part))
}

/// Reads a response to its end, or to that of the reply in it.
fn read_into(
    reader: &mut Reader,
    mut answer: Answer,
    grown: &mut dyn FnMut(&Reader) -> Result<(), Error>,
) -> Result<(), Trouble> {
    let mut decoder = sse::Decoder::default();
    let mut buffer = [0; READ_BYTES];
    let mut head = Vec::new();
    let (mut streaming, mut hurries) = (false, false);
    let (mut received, mut since_event) = (0, 0);
    loop {
        let count = answer.read(&mut buffer)?;
        let bytes = &buffer[..count];
        received += count;
        since_event += count;
        if received > MOST_STREAM_BYTES || since_event > MOST_EVENT_BYTES {
            return match reader.awaits_usage() {
                true => Ok(()),
                false if received > MOST_STREAM_BYTES => Err(too_long(MOST_STREAM_BYTES)),
                false => {
                    let why = format!("{} MiB of it hold no event", MOST_EVENT_BYTES >> 20);
                    Err(Fault::Malformed(why).into())
                }
            };
        }
        if !streaming {
            head.extend_from_slice(bytes);
            match form(&head) {
                Form::Blank if count > 0 => {
                    drop_blanks(&mut head);
                    continue;
                }
                Form::Blank => return Err(Fault::Incomplete.into()),
                Form::Document => return read_document(answer, head, reader),
                Form::Foreign(what) => return Err(Fault::Malformed(what).into()),
                Form::Events => streaming = true,
            }
            decoder = sse::Decoder::of(std::mem::take(&mut head));
        } else {
            decoder.feed(bytes);
        }
        while let Some(event) = decoder.next_event() {
            since_event = 0;
            reader.event(&event).map_err(|fault| Trouble::Fault(fault, answer.retry_hint()))?;
            // At each event, however many came at once: how a reply is told is not to depend on the network.
            grown(reader)?;
        }
        if reader.is_over() {
            return answer.finish();
        }
        if count == 0 {
            return Ok(());
        }
        if reader.awaits_usage() && !hurries {
            hurries = true;
            answer.hurry(USAGE_PATIENCE);
        }
    }
}

fn too_long(most_bytes: usize) -> Trouble {
    Fault::Malformed(format!("it is longer than {} MiB", most_bytes >> 20)).into()
}

/// Blanks before a reply keep the connection alive; they may be many. What may be a mark is kept.
fn drop_blanks(head: &mut Vec<u8>) {
    if head.starts_with(BYTE_ORDER_MARK) {
        head.truncate(BYTE_ORDER_MARK.len());
    } else if head.trim_ascii().is_empty() {
        head.clear();
    }
}

/// What a response is, told by its first bytes: content types are wrong too often.
enum Form {
    Blank,
    Events,
    Document,
    Foreign(String),
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

fn form(head: &[u8]) -> Form {
    let start = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start();
    match start {
        [] => Form::Blank,
        _ if BYTE_ORDER_MARK.starts_with(start) => Form::Blank,
        [b'{', ..] => Form::Document,
        [0x1F, 0x8B, ..] => Form::Foreign(
            "it is compressed (gzip), which was not asked for: a proxy in between may do that".to_owned(),
        ),
        [b'<', ..] => {
            let page = errors::without_tags(&String::from_utf8_lossy(start));
            Form::Foreign(match page.is_empty() {
                true => "it is a page for people that holds no text".to_owned(),
                false => format!("it is a page for people: {page}"),
            })
        }
        _ if looks_like_events(start) => Form::Events,
        _ => match provider::excerpt(&String::from_utf8_lossy(start)) {
            text if text.is_empty() => Form::Foreign("it is no text".to_owned()),
            text => Form::Foreign(text),
        },
    }
}

/// A comment, or a field's name and what ends it; or the beginning of that: the first read may end anywhere.
fn looks_like_events(start: &[u8]) -> bool {
    let is_field = |name: &[u8]| match start.strip_prefix(name) {
        Some([next, ..]) => matches!(next, b':' | b'\n' | b'\r'),
        Some([]) => true,
        None => name.starts_with(start),
    };
    start.starts_with(b":") || [&b"data"[..], b"event", b"id", b"retry"].into_iter().any(is_field)
}

fn read_document(mut answer: Answer, mut text: Vec<u8>, reader: &mut Reader) -> Result<(), Trouble> {
    if !answer.read_all(&mut text, MOST_EVENT_BYTES)? {
        return Err(too_long(MOST_EVENT_BYTES));
    }
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_start_matches('\u{feff}').trim();
    // Where the server says no length, a reply that breaks off ends like any other.
    if !text.ends_with('}') {
        return Err(Fault::Incomplete.into());
    }
    Ok(reader.document(text)?)
}

fn refusal(mut answer: Answer) -> Trouble {
    let hint = answer.retry_hint();
    let content_type = answer.header("content-type").unwrap_or_default().into_owned();
    // A body that breaks off is still worth reading.
    let mut body = Vec::new();
    answer.hurry(ERROR_PATIENCE);
    if let Err(Trouble::Fatal(error)) = answer.read_all(&mut body, MOST_ERROR_BYTES) {
        return Trouble::Fatal(error);
    }
    let mut error = ApiError::from_response(answer.status, &content_type, &body);
    error.should_retry = answer.should_retry();
    error.has_retry_after = hint.is_some();
    if let (300..=399, Some(location)) = (answer.status, answer.header("location")) {
        error.message = format!("redirected to {}, which is not followed", net::shown(&location));
    }
    Trouble::Fault(Fault::Api(error), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_is_waited_for_to_its_end() {
        for head in ["", " \r\n", "\u{feff}", "\u{feff}\n"] {
            assert!(matches!(form(head.as_bytes()), Form::Blank), "{head:?}");
        }
        for head in [&b"\xef"[..], b"\xef\xbb"] {
            assert!(matches!(form(head), Form::Blank), "{head:?}");
        }
        assert!(matches!(form("\u{feff}d".as_bytes()), Form::Events));
        assert!(matches!(form("\u{feff} {".as_bytes()), Form::Document));
        assert!(matches!(form(b"\xef\xbbd"), Form::Foreign(_)));
    }
}
