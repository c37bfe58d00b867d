//! Quirks 55 and 58 to 62: what happens to bytes on their way.
//!
//! Each test has the number of its quirk in its name, as `fixtures/README.md` lists them.

use super::*;
use crate::server::{Framing, Reply};

#[test]
fn q55_keep_alives_and_empty_events_are_skipped() {
    reads_and_answers(&chat("q55-keep-alives").run(), &[("notes.txt", NOTES)]);
}

#[test]
fn q58_code_points_may_be_split_over_reads() {
    let reply = Reply::file("fixtures/quirks/q58-code-points-over-two-reads/01.response.http");
    let offsets: Vec<_> = (1..reply.body().len()).collect();
    let reply = reply.framing(Framing::Chunked).pieces(&offsets);
    let outcome = bare("q58-code-points-over-two-reads").reply(reply).args(&["-p", PROMPT]).run();
    outcome.code(0).stdout("Мост открыли в 1932 году — 橋は一九三二年に開通 🌉👩‍🔧.\n");
}

#[test]
fn q59_escapes_may_be_split_over_deltas() {
    let outcome = chat("q59-escapes-over-two-deltas").run();
    outcome.code(0).stdout("Written.\n").file("out.txt", "café\n🌉\\x \"quoted\" ß");
}

#[test]
fn q59_bytes_that_are_not_utf_8_are_replaced_and_end_nothing() {
    chat("q59-bytes-that-are-not-utf-8").run().code(0).stdout("caf\u{fffd} au lait\n");
}

#[test]
fn q59_half_a_surrogate_pair_ends_nothing() {
    let outcome = chat("q59-half-a-surrogate-pair").run();
    outcome.code(0).request_count(1);
    let text = String::from_utf8_lossy(&outcome.stdout);
    let middle = text.strip_prefix("Open ").and_then(|rest| rest.strip_suffix(" now.\n"));
    // Joined is best; a replacement for each half is right as well.
    outcome.equal(matches!(middle, Some("🌉" | "\u{fffd}\u{fffd}")), true);
}

#[test]
fn q60_blank_lines_before_a_json_body_are_skipped() {
    chat("q60-blank-lines-before-json").run().code(0).stdout(ANSWER).request_count(1);
}

#[test]
fn q61_a_byte_order_mark_does_not_cost_the_first_event() {
    chat("q61-byte-order-mark").run().code(0).stdout(ANSWER).request_count(1);
}

#[test]
fn q62_gzip_without_a_label_is_named_and_was_not_asked_for() {
    let outcome = chat("q62-gzip-without-a-label").args(&["--max-retries", "0"]).run();
    outcome.code(7).stdout("").request_count(1).stderr_has("gzip");
    outcome.equal(outcome.requests[0].header("accept-encoding"), Some("identity"));
}
