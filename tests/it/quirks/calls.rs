//! Quirks 1 to 19: arguments, ids and names of calls.
//!
//! Each test has the number of its quirk in its name, as `fixtures/README.md` lists them.

use super::*;

const FIRST_ID: &str = "call_q3VbT0fXKe7LmZr9sYw2NcHd";
const SECOND_ID: &str = "call_W8pJxG5uAa1oTk6iRy4FvBzQ";
const THIRD_ID: &str = "call_h2CsD7nEl9PqU3gMj0OtSxIw";

/// A clock that stands still, and what is said of it.
const NOW: (&str, &str) = ("COTTER_NOW", "2026-08-21T12:00:00Z");
const TODAY: &str = "It is the 21st of August 2026.\n";

#[track_caller]
fn tells_the_date(outcome: &Outcome, calls: usize) {
    outcome.code(0).stdout(TODAY).request_count(2);
    let told = told(&outcome.body(2));
    outcome.equal(told.len(), calls);
    for call in &told {
        outcome.equal((&*call.name, &*call.arguments), ("get_current_datetime", "{}"));
        outcome.equal(call.result.contains("2026-08-21"), true);
    }
}

#[test]
fn q01_an_empty_arguments_string_is_an_empty_object() {
    tells_the_date(&chat("q01-empty-arguments").env(NOW.0, NOW.1).run(), 1);
}

#[test]
fn q02_null_arguments_are_an_empty_object_as_text_and_as_json() {
    tells_the_date(&chat("q02-null-arguments").env(NOW.0, NOW.1).run(), 2);
}

#[test]
fn q03_arguments_that_come_as_an_object_go_back_as_a_string() {
    let outcome = chat("q03-arguments-as-an-object").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    outcome.equal(told(&outcome.body(2)), vec![read(FIRST_ID, "notes.txt", NOTES)]);
}

#[test]
fn q04_input_goes_back_as_an_object_in_messages() {
    let outcome = messages("q04-an-object-in-messages").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    let body = outcome.body(2);
    let input = serde_json::json!({"file_path": "notes.txt"});
    outcome.equal(&blocks(&body, "tool_use")[0]["input"], &input);
    outcome.equal(result_text(&blocks(&body, "tool_result")[0]), NOTES.to_owned());
    outcome.equal(&assistant(&body)["content"][0]["text"], &Value::from("Let me look."));
}

#[test]
fn q05_arguments_encoded_twice_are_decoded_twice() {
    let outcome = chat("q05-arguments-encoded-twice").run();
    outcome.request_count(2);
    outcome.equal(told(&outcome.body(2)), vec![read(FIRST_ID, "notes.txt", NOTES)]);
    outcome.code(0).stdout(ANSWER);
}

#[test]
fn q07_broken_arguments_are_stored_as_an_empty_object_and_quoted_in_the_result() {
    let outcome = chat("q07-broken-arguments").run();
    outcome.code(0).stdout(ANSWER).request_count(3);
    let told = told(&outcome.body(3));
    outcome.equal((&*told[0].id, &*told[0].name, &*told[0].arguments), (FIRST_ID, "Read", "{}"));
    outcome.equal(told[0].result.contains(r#"{"file_path": "notes.txt", limit: }"#), true);
    outcome.equal(&told[1], &read(SECOND_ID, "notes.txt", NOTES));
}

#[test]
fn q07_broken_input_is_stored_as_an_empty_object_and_quoted_in_the_result() {
    let outcome = messages("q07-broken-input").run();
    outcome.code(0).stdout(ANSWER).request_count(3);
    let body = outcome.body(3);
    let (calls, results) = (blocks(&body, "tool_use"), blocks(&body, "tool_result"));
    outcome.equal(&calls[0]["input"], &serde_json::json!({}));
    outcome.equal(&results[0]["is_error"], &Value::Bool(true));
    outcome.equal(result_text(&results[0]).contains("limit: }"), true);
    outcome.equal(result_text(&results[1]), NOTES.to_owned());
}

#[test]
fn q08_calls_are_run_although_the_reason_says_stop() {
    let outcome = chat("q08-stop-although-there-are-calls").run();
    outcome.request_count(2);
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
}

#[test]
fn q09_calls_without_an_index_are_told_apart_by_their_ids() {
    let outcome = chat("q09-no-index").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    let expected = vec![read(FIRST_ID, "notes.txt", NOTES), read(SECOND_ID, "other.txt", OTHER)];
    outcome.equal(told(&outcome.body(2)), expected);
}

#[test]
fn q10_calls_that_share_index_0_are_told_apart_by_their_ids() {
    let outcome = chat("q10-every-index-is-0").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    let expected = vec![
        read(FIRST_ID, "notes.txt", NOTES),
        read(SECOND_ID, "other.txt", OTHER),
        read(THIRD_ID, "third.txt", THIRD),
    ];
    outcome.equal(told(&outcome.body(2)), expected);
}

#[test]
fn q11_an_empty_or_repeated_id_in_a_later_delta_opens_no_call() {
    let outcome = chat("q11-empty-id-in-later-deltas").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    outcome.equal(told(&outcome.body(2)), vec![read(FIRST_ID, "notes.txt", NOTES)]);
}

#[test]
fn q12_a_call_without_an_id_gets_one_and_the_same_in_each_run() {
    let outcome = chat("q12-no-id").run();
    outcome.request_count(2);
    reads_and_answers(&outcome, &[("notes.txt", NOTES), ("other.txt", OTHER)]);
    outcome.equal(&chat("q12-no-id").run().requests[1].body, &outcome.requests[1].body);
}

#[test]
fn q13_an_id_that_was_used_before_is_replaced_in_call_and_result() {
    let outcome = chat("q13-ids-start-again").run();
    outcome.request_count(3);
    reads_and_answers(&outcome, &[("notes.txt", NOTES), ("other.txt", OTHER)]);
    let told = told(&outcome.body(3));
    outcome.equal(&*told[0].id, "call_0").equal(told[1].id == "call_0", false);
}

#[test]
fn q14_ids_over_40_characters_are_shortened_and_stay_different() {
    let outcome = chat("q14-long-ids").run();
    outcome.request_count(2);
    reads_and_answers(&outcome, &[("notes.txt", NOTES), ("other.txt", OTHER)]);
    outcome.equal(&chat("q14-long-ids").run().requests[1].body, &outcome.requests[1].body);
}

#[test]
fn q16_ids_with_dots_and_colons_go_back_as_they_came() {
    let outcome = chat("q16-kimi-ids").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    let expected =
        vec![read("functions.Read:0", "notes.txt", NOTES), read("functions.Read:1", "other.txt", OTHER)];
    outcome.equal(told(&outcome.body(2)), expected);
}

#[test]
fn q17_a_name_repeated_in_every_delta_is_one_name() {
    reads_and_answers(&chat("q17-name-in-every-delta").run(), &[("notes.txt", NOTES)]);
}

#[test]
fn q17_a_name_split_over_two_deltas_is_put_together() {
    reads_and_answers(&chat("q17-name-in-two-deltas").run(), &[("notes.txt", NOTES)]);
}

#[test]
fn q18_a_channel_marker_is_cut_off_the_name() {
    reads_and_answers(&chat("q18-channel-marker-in-the-name").run(), &[("notes.txt", NOTES)]);
}

#[test]
fn q19_arguments_may_come_before_the_name() {
    let outcome = chat("q19-arguments-before-the-name").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    outcome.equal(told(&outcome.body(2)), vec![read(FIRST_ID, "notes.txt", NOTES)]);
}
