//! Quirks 44 to 49, 63 and 64: how usage is told and how a reply ends.
//!
//! Each test has the number of its quirk in its name, as `fixtures/README.md` lists them.

use serde_json::json;

use super::*;
use crate::server::Framing;
use crate::story::exchange;

/// The usage that a run of one answer reports: input, cache read, output.
#[track_caller]
fn usage_is(story: Story, expected: [u64; 3]) {
    let outcome = story.args(&["--output-format", "json"]).run();
    outcome.code(0).request_count(1);
    let result = outcome.json();
    outcome.equal(&result["subtype"], &json!("success")).equal(&result["result"], &json!(ANSWER.trim_end()));
    let usage = &result["usage"];
    let keys = ["input_tokens", "cache_read_input_tokens", "output_tokens"];
    outcome.equal(keys.map(|key| &usage[key]), expected.map(Value::from).each_ref());
}

#[test]
fn q44_more_cached_than_sent_leaves_no_uncached_tokens() {
    usage_is(chat("q44-odd-counts"), [0, 120, 5]);
}

#[test]
fn q45_usage_on_every_chunk_is_replaced_and_not_summed() {
    usage_is(chat("q45-usage-on-every-chunk"), [400, 0, 8]);
}

#[test]
fn q45_usage_in_two_message_deltas_is_replaced_and_not_summed() {
    usage_is(messages("q45-two-message-deltas"), [25, 300, 12]);
}

#[test]
fn q46_usage_is_found_inside_of_the_choice() {
    usage_is(chat("q46-usage-in-the-choice"), [400, 0, 8]);
}

#[test]
fn q47_a_reason_and_the_end_of_the_stream_suffice_without_done() {
    for framing in [Framing::Close, Framing::Chunked, Framing::Length] {
        let replies = exchange(&folder("q47-no-done")).into_iter().map(|reply| reply.framing(framing));
        let outcome = replies.fold(bare("q47-no-done"), Story::reply).args(&["-p", PROMPT]).run();
        reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    }
}

#[test]
fn q47_the_end_of_the_stream_with_neither_is_a_failure_and_runs_no_call() {
    for framing in [Framing::Close, Framing::Chunked, Framing::Length] {
        let replies = exchange(&folder("q47-neither-reason-nor-done")).into_iter();
        let replies = replies.map(|reply| reply.framing(framing));
        let story = replies.fold(bare("q47-neither-reason-nor-done"), Story::reply);
        story.args(&["--max-retries", "0", "-p", PROMPT]).run().code(6).stdout("").request_count(1);
    }
}

#[test]
fn q48_done_suffices_without_a_reason() {
    reads_and_answers(&chat("q48-no-finish-reason").run(), &[("notes.txt", NOTES)]);
}

#[test]
fn q49_what_stands_beside_the_reason_is_not_lost() {
    reads_and_answers(&chat("q49-reason-beside-the-last-delta").run(), &[("notes.txt", NOTES)]);
}

#[test]
fn q63_an_empty_answer_is_asked_for_once_more() {
    chat("q63-empty-stop").run().code(0).stdout(ANSWER).request_count(2);
}

#[test]
fn q63_a_malformed_function_call_is_asked_for_once_more() {
    chat("q63-malformed-function-call").run().code(0).stdout(ANSWER).request_count(2);
}

#[test]
fn q63_two_empty_answers_are_an_incomplete_one() {
    chat("q63-empty-twice").run().code(8).stdout("").request_count(2);
}

#[test]
fn q64_a_prompt_that_was_cut_by_the_server_is_warned_of() {
    let outcome = chat("q64-prompt-cut-silently").stdin("a word and another\n".repeat(4000)).run();
    outcome.code(0).stdout(ANSWER).stderr_has("OLLAMA_CONTEXT_LENGTH");
}
