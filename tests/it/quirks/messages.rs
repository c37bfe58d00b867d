//! Quirks 20 to 43 and 65: messages, deltas and reasoning, in replies and in the history sent back.
//!
//! Each test has the number of its quirk in its name, as `fixtures/README.md` lists them.

use serde_json::json;

use super::*;

#[test]
fn q20_a_missing_null_or_empty_role_is_no_matter() {
    let outcome = chat("q20-odd-roles").run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    outcome.equal(&assistant(&outcome.body(2))["content"], &json!("Let me look."));
}

#[test]
fn q21_a_choice_without_a_delta_or_with_null_is_skipped() {
    chat("q21-no-delta").run().code(0).stdout(ANSWER).request_count(1);
}

#[test]
fn q22_chunks_without_choices_are_skipped_but_for_their_usage() {
    let outcome = chat("q22-chunks-without-choices").args(&["--output-format", "json"]).run();
    outcome.code(0).request_count(1);
    let result = outcome.json();
    outcome.equal(&result["result"], &json!(ANSWER.trim_end()));
    outcome.equal(&result["usage"]["input_tokens"], &json!(498));
    outcome.equal(&result["usage"]["output_tokens"], &json!(12));
}

#[test]
fn q25_a_message_of_calls_alone_goes_back_with_a_content_member() {
    let outcome = chat("q25-no-content-member").run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    let content = &assistant(&outcome.body(2))["content"];
    outcome.equal(content.is_null() || content == "", true);
}

#[test]
fn q26_content_that_is_a_list_is_read_and_sent_as_a_string() {
    let outcome = chat("q26-content-is-a-list").run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    outcome.equal(&assistant(&outcome.body(2))["content"], &json!("Let me look."));
}

#[test]
fn q27_members_of_replies_alone_are_not_sent_back() {
    let outcome = chat("q27-members-of-replies-only").run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    let message = assistant(&outcome.body(2));
    let mut keys: Vec<_> = message.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    outcome.equal(keys, ["content", "role", "tool_calls"].map(str::to_owned).to_vec());
}

#[test]
fn q28_an_empty_list_of_calls_is_no_call() {
    chat("q28-empty-list-of-calls").run().code(0).stdout(ANSWER).request_count(1);
}

#[test]
fn q29_without_tools_none_of_their_members_is_sent() {
    let outcome = chat("q29-no-tools").args(&["--tools", ""]).run();
    outcome.code(0).stdout(ANSWER).request_count(1);
    for key in ["tools", "tool_choice", "parallel_tool_calls"] {
        outcome.equal(outcome.body(1).get(key).is_some(), false);
    }
}

#[test]
fn q30_tools_are_sent_with_every_request_of_a_conversation() {
    let outcome = story("q30-tools-stay").openrouter().run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    let (first, second) = (outcome.body(1), outcome.body(2));
    outcome.equal(first["tools"].is_array(), true).equal(&second["tools"], &first["tools"]);
}

#[test]
fn q38_reasoning_told_in_two_members_is_taken_once() {
    let outcome = chat("q38-reasoning-in-two-members").run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    let message = assistant(&outcome.body(2));
    outcome.equal(&message["reasoning_content"], &json!("The notes will say."));
    outcome.equal(message.get("reasoning"), None);
}

#[test]
fn q39_a_leading_think_tag_is_reasoning_and_a_later_one_is_text() {
    let outcome = chat("q39-think-tags-in-the-content").run();
    outcome.code(0).stdout("The tag `<think>` is in the notes: <think>1932</think>.\n").request_count(2);
    let message = assistant(&outcome.body(2)).to_string();
    outcome.equal(message.contains("think>"), false);
    outcome.equal(&*told(&outcome.body(2))[0].result, NOTES);
}

#[test]
fn q40_reasoning_goes_back_with_the_calls_under_its_own_name() {
    let outcome = chat("q40-reasoning-goes-back").run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES)]);
    outcome.equal(&assistant(&outcome.body(2))["reasoning_content"], &json!("The notes will say."));
}

#[test]
fn q41_thinking_without_a_signature_goes_back_to_where_it_came_from() {
    let outcome = messages("q41-thinking-without-a-signature").run();
    outcome.code(0).stdout(ANSWER).request_count(2);
    let content = assistant(&outcome.body(2))["content"].clone();
    outcome.equal(&content[0], &json!({"type": "thinking", "thinking": "The notes will say."}));
    outcome.equal(&content[1]["type"], &json!("tool_use"));
}

#[test]
fn q42_a_thought_signature_goes_back_on_its_call() {
    let outcome = chat("q42-thought-signature").run();
    reads_and_answers(&outcome, &[("notes.txt", NOTES), ("other.txt", OTHER)]);
    let message = assistant(&outcome.body(2));
    let signature = "CikBVKhc7kQ2oTpn0cS1Yh3/uLxZbQ+9mE8rWfJdGa5iNvPyXqA=";
    let expected = json!({"google": {"thought_signature": signature}});
    outcome.equal(&message["tool_calls"][0]["extra_content"], &expected);
    outcome.equal(message["tool_calls"][1].get("extra_content"), None);
}

#[test]
fn q65_empty_and_blank_text_blocks_do_not_go_back() {
    let outcome = messages("q65-empty-text-blocks").run();
    outcome.code(0).stdout(ANSWER).request_count(3);
    let body = outcome.body(3);
    let results: Vec<_> = blocks(&body, "tool_result").iter().map(result_text).collect();
    outcome.equal(results, vec![NOTES.to_owned(), OTHER.to_owned()]);
    let messages = body["messages"].as_array().unwrap();
    for message in messages.iter().filter(|message| message["role"] == "assistant") {
        outcome.equal(message["content"].as_array().map(Vec::len), Some(1));
    }
}
