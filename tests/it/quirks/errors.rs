//! Quirks 32, 50 to 54, 57, 68, 69, 73 and 74: errors and what is done about them.
//!
//! Each test has the number of its quirk in its name, as `fixtures/README.md` lists them.

use super::*;
use crate::check::cache_marks;
use crate::images::PNG;

/// The exchange ends the run at its only reply; what is said of it is kept short and quotes the server.
#[track_caller]
fn fails(fixture: &str, code: i32, said: &[&str]) -> Outcome {
    let outcome = chat(fixture).args(&["--max-retries", "0"]).run();
    outcome.code(code).stdout("").request_count(1);
    for text in said {
        outcome.stderr_has(text);
    }
    outcome
}

#[test]
fn q32_a_server_without_tool_flags_is_told_of_and_not_asked_again() {
    let outcome = chat("q32-server-without-tool-flags").run();
    outcome.code(4).stdout("").request_count(1).stderr_has("--enable-auto-tool-choice");
}

#[test]
fn q50_an_error_in_a_200_has_the_class_of_its_code() {
    fails("q50-error-in-a-200", 4, &["402", "Insufficient credits"]);
}

#[test]
fn q51_a_reply_without_choices_is_asked_for_again() {
    chat("q51-no-choices").run().code(0).stdout(ANSWER).request_count(2);
}

#[test]
fn q52_the_cause_in_the_metadata_is_shown_beside_the_message() {
    let cause = "tools.0.name: String should match pattern";
    fails("q52-cause-in-the-metadata", 4, &["400", "Provider returned error", cause]);
}

#[test]
fn q53_an_error_chunk_wins_over_done_and_over_complete_calls() {
    fails("q53-error-chunk-before-done", 5, &["502", "Upstream connection lost"]);
}

#[test]
fn q53_a_code_that_is_a_word_is_understood() {
    fails("q53-code-is-a-word", 5, &["Generation failed upstream"]);
}

#[test]
fn q53_a_code_that_is_a_number_in_a_string_is_understood() {
    fails("q53-code-is-text", 5, &["429", "slow down"]);
}

#[test]
fn q53_an_error_that_is_a_string_is_quoted() {
    fails("q53-error-is-a-string", 4, &["400", "Invalid tool_choice type: 'object'"]);
}

#[test]
fn q54_a_page_is_classified_by_its_status_and_condensed() {
    fails("q54-page-with-502", 5, &["502 Bad Gateway"]).stderr_lacks("<h1>").stderr_lacks("<html");
    fails("q54-page-with-413", 4, &["413 Request Entity Too Large"]).stderr_lacks("<h1>");
    fails("q54-page-with-200", 7, &["Sign in"]).stderr_lacks("<h1>");
    fails("q54-cloudflare-json", 5, &["522"]);
}

#[test]
fn q57_a_generation_that_failed_is_asked_for_again() {
    let outcome = chat("q57-failed-generation").run();
    outcome.request_count(3).equal(&outcome.requests[1].body, &outcome.requests[0].body);
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
}

#[test]
fn q68_max_tokens_is_swapped_once_and_for_the_whole_run() {
    let outcome = chat("q68-max-tokens-refused").args(&["--max-output-tokens", "1000"]).run();
    outcome.request_count(3);
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    let limits = [1, 2, 3].map(|number| {
        let body = outcome.body(number);
        [body["max_tokens"].as_u64(), body["max_completion_tokens"].as_u64()]
    });
    outcome.equal(limits, [[Some(1000), None], [None, Some(1000)], [None, Some(1000)]]);
}

#[test]
fn q23_null_content_beside_calls_becomes_an_empty_string_where_it_is_refused() {
    let outcome = chat("q23-null-content-refused").run();
    outcome.request_count(3);
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    let content = [2, 3].map(|number| outcome.body(number)["messages"][2]["content"].clone());
    outcome.equal(content, [serde_json::Value::Null, serde_json::Value::from("")]);
}

#[test]
fn q69_stream_options_are_dropped_once_and_for_the_whole_run() {
    let outcome = chat("q69-stream-options-refused").run();
    outcome.request_count(3);
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    let sent = [1, 2, 3].map(|number| outcome.body(number).get("stream_options").is_some());
    outcome.equal(sent, [true, false, false]);
}

#[test]
fn q73_with_too_many_cache_marks_two_fewer_are_sent_from_then_on() {
    let outcome = messages("q73-too-many-cache-marks").run();
    outcome.code(0).stdout(ANSWER).request_count(3);
    let marks = [1, 2, 3].map(|number| cache_marks(&outcome.body(number)));
    let fewer = marks[1] < marks[0] && marks[1] <= 2 && marks[2] <= 2;
    outcome.equal((marks, fewer), (marks, true));
}

#[test]
fn q74_images_that_are_refused_give_way_to_a_text_and_the_run_goes_on() {
    for fixture in ["q74-images-refused", "q74-images-refused-with-500"] {
        let outcome = chat(fixture).file("bridge.png", PNG).run();
        outcome.request_count(3);
        let shown = "bridge.png: PNG image, 2 x 1 pixels, 72 bytes";
        outcome.equal(&*told(&outcome.body(2))[0].result, shown);
        let told_instead = format!("{shown}\n[image left out: the model takes none]");
        reads_and_answers(&outcome, &[("bridge.png", &told_instead)]);
        outcome.equal(outcome.sent(2).contains("image_url"), true);
        outcome.equal(outcome.sent(3).contains("image_url"), false);
        outcome.stderr("cotter: images are left out of this run's requests: the model takes none\n");
    }
}
