//! Streams that break: each recorded stream is sent whole and cut at many places, and the run must go on
//! exactly if the reply was complete. A call in a reply that was cut is never run.

use crate::server::{Ending, Framing, Reply};
use crate::story::{Outcome, Story, exchange};

/// What a stream's last reply says.
const ANSWER: &str = "It is written: naïve — done. 🌉\n";
const WRITTEN: &str = "naïve — done\n";

/// How many places are tried besides the borders of events.
const OTHER_PLACES: usize = 40;

/// A way to send the bytes up to the cut.
const WAYS: [(Framing, Ending); 4] = [
    (Framing::Close, Ending::Close),
    (Framing::Length, Ending::Close),
    (Framing::Chunked, Ending::Close),
    (Framing::Length, Ending::Reset),
];

/// Sends the first reply of an exchange whole, in pieces, and cut at many places.
#[track_caller]
fn whole_and_cut(name: &str) {
    let replies = exchange(&format!("fixtures/streams/{name}"));
    for framing in [Framing::Length, Framing::Chunked, Framing::Close] {
        succeeds(&run(name, &replies, replies[0].clone().framing(framing)), &replies);
    }
    let bytes: Vec<_> = (1..replies[0].body().len()).collect();
    let in_bytes = replies[0].clone().framing(Framing::Chunked).pieces(&bytes);
    succeeds(&run(&format!("{name} byte by byte"), &replies, in_bytes), &replies);

    let complete = complete_from(name, replies[0].body());
    for (number, place) in places(replies[0].body()).into_iter().enumerate() {
        let (framing, ending) = WAYS[number % WAYS.len()];
        let first = replies[0].clone().framing(framing).cut(place, ending);
        let name = format!("{name} cut at {place} ({framing:?}, {ending:?}), complete from {complete}");
        if place >= complete {
            succeeds(&run(&name, &replies, first), &replies);
        } else {
            run(&name, &[], first).code(6).stdout("").request_count(1).no_file("written.txt");
        }
    }
}

/// Runs with this first reply and those after the first of an exchange.
#[track_caller]
fn run(name: &str, replies: &[Reply], first: Reply) -> Outcome {
    let story =
        if name.starts_with("anthropic") { Story::new(name).anthropic() } else { Story::new(name).openai() };
    let story = replies.iter().skip(1).cloned().fold(story.reply(first), Story::reply);
    story.args(&["--max-retries", "0", "-p", "Write it, then tell me."]).run()
}

#[track_caller]
fn succeeds(outcome: &Outcome, replies: &[Reply]) {
    outcome.code(0).stdout(ANSWER).request_count(replies.len());
    if replies.len() > 1 {
        outcome.file("written.txt", WRITTEN);
    }
}

/// From this many bytes on the reply is complete: after the event with a finish reason, or after
/// `message_stop`. An event counts from its empty line on; a carriage return ends a line by itself.
fn complete_from(name: &str, body: &[u8]) -> usize {
    let text = std::str::from_utf8(body).expect("these streams are text");
    let marks =
        [r#""finish_reason":"stop""#, r#""finish_reason":"tool_calls""#, r#"{"type":"message_stop"}"#];
    let mark = marks.iter().find_map(|mark| text.find(mark)).expect("the stream has an end");
    let border = borders(body).into_iter().find(|border| *border > mark).expect("its event has an end");
    if name.ends_with("-crlf") { border - 1 } else { border }
}

/// The offsets after each event's empty line.
fn borders(body: &[u8]) -> Vec<usize> {
    let ends = (0..body.len()).filter(|end| {
        let before = &body[..=*end];
        before.ends_with(b"\n\n") || before.ends_with(b"\r\n\r\n")
    });
    ends.map(|end| end + 1).collect()
}

/// All borders, the places around the last ones, and others spread evenly, the same in each run.
fn places(body: &[u8]) -> Vec<usize> {
    let mut places = borders(body);
    for border in borders(body).into_iter().rev().take(4) {
        places.extend(border.saturating_sub(4)..border);
    }
    places.extend((0..OTHER_PLACES).map(|number| body.len() * number / OTHER_PLACES));
    places.sort_unstable();
    places.dedup();
    places
}

#[test]
fn a_text_is_complete_or_an_error_in_chat_completions() {
    whole_and_cut("openai-text");
    whole_and_cut("openai-text-crlf");
    whole_and_cut("openai-reasoning-text");
}

#[test]
fn a_call_is_complete_or_never_run_in_chat_completions() {
    whole_and_cut("openai-write-call");
    whole_and_cut("openai-reasoning-write-call");
}

#[test]
fn a_call_is_complete_or_never_run_in_chat_completions_with_crlf() {
    whole_and_cut("openai-write-call-crlf");
}

#[test]
fn a_text_is_complete_or_an_error_in_messages() {
    whole_and_cut("anthropic-text");
    whole_and_cut("anthropic-text-crlf");
    whole_and_cut("anthropic-thinking-text");
}

#[test]
fn a_call_is_complete_or_never_run_in_messages() {
    whole_and_cut("anthropic-write-call");
    whole_and_cut("anthropic-thinking-write-call");
}

#[test]
fn a_call_is_complete_or_never_run_in_messages_with_crlf() {
    whole_and_cut("anthropic-write-call-crlf");
}

#[test]
fn a_call_is_complete_or_never_run_from_an_imitation_of_messages() {
    whole_and_cut("anthropic-imitation-write-call");
}

#[test]
fn a_broken_stream_is_asked_for_again_and_leaves_nothing_in_the_answer() {
    let file = "fixtures/streams/openai-text/01.response.http";
    let whole = Reply::file(file);
    let half = whole.clone().cut(whole.body().len() / 2, Ending::Reset);
    let outcome = Story::new("again").openai().reply(half).reply_file(file).args(&["-p", "Tell me."]).run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    outcome.equal(&outcome.requests[1].body, &outcome.requests[0].body);
}

#[test]
fn a_stream_that_stalls_is_given_up() {
    let reply = Reply::file("fixtures/streams/openai-text/01.response.http").cut(300, Ending::Stall);
    let args = ["--max-retries", "0", "--idle-timeout", "1", "-p", "Tell me."];
    Story::new("stalled").openai().reply(reply).args(&args).run().code(6).stdout("").request_count(1);
}

#[test]
fn an_answer_sent_before_the_request_was_read_is_heard() {
    let refused = r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
    let reply = Reply::new(401, "application/json", refused).before_body();
    let story = Story::new("early answer").anthropic().reply(reply).stdin("a long text\n".repeat(1_000_000));
    story.args(&["-p", "Tell me."]).run().code(3).stdout("").stderr_has("invalid x-api-key");
}

#[test]
fn borders_and_the_end_of_a_reply_are_found() {
    let body = b"data: {\"finish_reason\":\"stop\"}\r\n\r\ndata: [DONE]\r\n\r\n";
    assert_eq!(borders(body), [34, 50]);
    assert_eq!(complete_from("x-crlf", body), 33);
    assert_eq!(complete_from("x", b"data: {\"finish_reason\":\"stop\"}\n\ndata: [DONE]\n\n"), 32);
}
