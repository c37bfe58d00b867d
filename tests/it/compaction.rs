//! Conversations that are too long for the model: results of tools give way first, then the beginning, and nothing
//! that the session file keeps.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::check::{self, Api};
use crate::images::PNG;
use crate::server::{Reply, Request, Server};
use crate::stage::{Ran, Stage, requests, run};
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, ends, last_text, results};

const SMALL: [&str; 5] = ["--bare", "--system-prompt", "Work.", "--tools", "Read,Write"];
const CUT: &str = "[result cut to save room: 9,000 bytes; call the tool again, for a part of it, if needed]";
const SUMMARY: &str = "[summary of what was said since, which was too long to be kept whole]";
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The text of a file: 9,000 bytes that are about 3,000 tokens.
fn text(name: &str) -> String {
    format!("{}\n", name.repeat(89)).repeat(100)
}

fn story(api: Api) -> Story {
    let story = Story::new("compaction").api(api).args(&SMALL).args(&["-p", "Read them all."]);
    NAMES.iter().fold(story, |story, name| story.file(name, text(name)))
}

/// A reply that asks for a file, or for several.
fn reads(api: Api, names: &[&str]) -> Reply {
    let calls: Vec<_> =
        names.iter().map(|name| (format!("toolu_{name}"), json!({"file_path": name}).to_string())).collect();
    let calls: Vec<_> = calls.iter().map(|(id, arguments)| (&**id, "Read", &**arguments)).collect();
    asks(api, "", &calls)
}

/// A reply that writes a long file.
fn writes(api: Api, name: &str) -> Reply {
    let arguments = json!({"file_path": name, "content": text(name)}).to_string();
    asks(api, "", &[(&format!("toolu_{name}"), "Write", &arguments)])
}

/// The reply to a request that the server counted so many tokens for.
fn used(api: Api, reply: Reply, input: u64) -> Reply {
    if api == Api::Anthropic {
        return reply.replace("\"input_tokens\":2500", &format!("\"input_tokens\":{input}"));
    }
    let usage = json!({"prompt_tokens": input, "completion_tokens": 40, "total_tokens": input + 40});
    let chunk = json!({"id": "gen-1", "choices": [], "usage": usage});
    reply.replace("data: [DONE]", &format!("data: {chunk}\n\ndata: [DONE]"))
}

/// The replies that read one file after another, each counted as the conversation grows.
fn reading(api: Api, names: &[&str]) -> Vec<Reply> {
    (0..).zip(names).map(|(number, name)| used(api, reads(api, &[name]), 2000 + 3000 * number)).collect()
}

/// A refusal of what is too long, as its server has it.
fn too_long(api: Api) -> Reply {
    let error = match api {
        Api::Anthropic => json!({"type": "error", "error": {"type": "invalid_request_error",
            "message": "prompt is too long: 16100 tokens > 16000 maximum"}}),
        _ => {
            json!({"error": {"code": "context_length_exceeded", "type": "invalid_request_error", "param": "messages",
            "message": "This model's maximum context length is 16000 tokens. However, your messages resulted in 16100 \
                tokens. Please reduce the length of the messages."}})
        }
    };
    Reply::new(400, "application/json", error.to_string())
}

fn all(story: Story, replies: Vec<Reply>) -> Story {
    replies.into_iter().fold(story, Story::reply)
}

/// Of each result whether it is whole.
fn wholes(api: Api, body: &Value) -> Vec<bool> {
    results(api, body).iter().map(|(_, text, _)| !text.starts_with("[result cut")).collect()
}

/// The lines of the one session file below a HOME.
fn session(home: &Path) -> Vec<Value> {
    let folder = home.join(".local/state/cotter/sessions");
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(files.remove(0)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn session_of(outcome: &Outcome) -> Vec<Value> {
    session(&outcome.folder.parent().unwrap().join("home"))
}

/// The session file has every result whole, and says which were cut.
#[track_caller]
fn keeps_everything(outcome: &Outcome, names: &[&str]) -> Value {
    let lines = session_of(outcome);
    for name in names {
        let whole = text(name);
        let has =
            |line: &Value| line["parts"].as_array().into_iter().flatten().any(|part| part["text"] == whole);
        assert!(lines.iter().any(has), "{name}\n{}", outcome.report());
    }
    lines.into_iter().find(|line| line["type"] == "compaction").unwrap_or_default()
}

// Results.

#[test]
fn the_oldest_results_are_cut_before_a_known_window_is_full() {
    for api in BOTH {
        let story = all(story(api), reading(api, &["a", "b", "c", "d"])).reply(answer(api, "Done."));
        let outcome = story.args(&["--context-window", "16000", "--verbose"]).run();
        outcome.code(0).stdout("Done.\n").request_count(5);
        outcome.equal(wholes(api, &outcome.body(4)), vec![true; 3]);
        let found = results(api, &outcome.body(5));
        let expected = [("a", CUT.to_owned()), ("b", CUT.to_owned()), ("c", text("c")), ("d", text("d"))];
        outcome.equal(found, expected.map(|(name, text)| (format!("toolu_{name}"), text, false)).to_vec());
        outcome.stderr_has("cotter: a result of tools cut to save room: about ");
        let line = keeps_everything(&outcome, &["a", "b", "c", "d"]);
        outcome.equal(&line, &json!({"type": "compaction", "cut": ["toolu_a"]}));
    }
}

/// Whose texts stand in lists, for the cache marks.
#[test]
fn claude_behind_openrouter_is_told_the_same() {
    let api = Api::OpenRouter;
    let story = all(story(api), reading(api, &["a", "b", "c", "d"])).reply(answer(api, "Done."));
    let story = story.host("http://openrouter.ai/api/v1").args(&["--context-window", "16000"]);
    let outcome = story.run();
    outcome.code(0).request_count(5);
    let part = format!(r#""content":[{{"type":"text","text":"{CUT}"}}]"#);
    outcome.equal(outcome.sent(5).matches(&part).count(), 2);
}

#[test]
fn what_is_cut_is_cut_once_and_in_large_steps() {
    let api = Api::Anthropic;
    // The server goes on counting from what the cut has left.
    let counts = [2000, 5000, 8000, 11_000, 8000, 11_000];
    let replies =
        NAMES.iter().zip(counts).map(|(name, count)| used(api, reads(api, &[name]), count)).collect();
    let story = all(story(api), replies).reply(answer(api, "Done."));
    let outcome = story.args(&["--context-window", "16000"]).run();
    outcome.code(0).request_count(7);
    let cut = |number| wholes(api, &outcome.body(number)).iter().filter(|whole| !**whole).count();
    outcome.equal((4..=7).map(cut).collect::<Vec<_>>(), vec![0, 2, 2, 4]);
}

#[test]
fn a_conversation_that_fits_is_left_alone() {
    for api in BOTH {
        let story = all(story(api), reading(api, &["a", "b", "c", "d"])).reply(answer(api, "Done."));
        let outcome = story.args(&["--context-window", "200000"]).run();
        outcome.code(0).equal(wholes(api, &outcome.body(5)), vec![true; 4]);
        outcome.equal(keeps_everything(&outcome, &["a"]), Value::Null);
    }
}

#[test]
fn a_window_is_learnt_from_the_refusal_and_kept_to_from_there_on() {
    for api in BOTH {
        let mut replies = reading(api, &["a", "b", "c", "d"]);
        replies.push(too_long(api));
        replies.push(used(api, reads(api, &["e"]), 7000));
        replies.push(used(api, reads(api, &["f"]), 10_600));
        replies.push(answer(api, "Done."));
        let outcome = all(story(api), replies).args(&["--verbose"]).run();
        outcome.code(0).stdout("Done.\n").request_count(8);
        outcome.stderr_has("cotter: the conversation is too long for the model's window: making room\n");
        outcome.equal(wholes(api, &outcome.body(5)), vec![true; 4]);
        outcome.equal(wholes(api, &outcome.body(6)), vec![false, false, false, true]);
        outcome.equal(wholes(api, &outcome.body(7)), vec![false, false, false, true, true]);
        // The next overflow does not come to be: the window is known.
        outcome.equal(wholes(api, &outcome.body(8)), vec![false, false, false, false, false, true]);
        keeps_everything(&outcome, &NAMES);
    }
}

/// Which says no number, and whose list of models is asked for one then.
#[test]
fn the_list_of_models_is_asked_once_a_refusal_says_no_number() {
    let api = Api::OpenAi;
    let silent = Reply::new(
        400,
        "application/json",
        json!({"error": "Please reduce the length of the messages"}).to_string(),
    );
    let list = json!({"data": [{"id": "other"}, {"id": "test-model", "context_length": 16_000}]});
    let mut replies = reading(api, &["a", "b", "c", "d"]);
    replies.extend([silent, Reply::new(200, "application/json", list.to_string()), answer(api, "Done.")]);
    let outcome = all(story(api), replies).run();
    outcome.code(0).stdout("Done.\n").request_count(7);
    outcome.equal(outcome.requests[5].path.as_str(), "/v1/models");
    outcome.equal(wholes(api, &outcome.body(7)), vec![false, false, false, true]);
}

#[test]
fn without_any_number_half_of_what_was_sent_gives_way() {
    let api = Api::OpenAi;
    let silent = Reply::new(400, "application/json", "");
    let mut replies = reading(api, &["a", "b", "c", "d"]);
    replies.extend([silent, Reply::new(404, "text/plain", "no"), answer(api, "Done.")]);
    let outcome = all(story(api), replies).run();
    outcome.code(0).stdout("Done.\n").request_count(7);
    outcome.equal(wholes(api, &outcome.body(7)), vec![false, false, false, true]);
}

#[test]
fn a_server_that_cuts_in_silence_is_seen_through() {
    let api = Api::OpenAi;
    let mut replies = reading(api, &["a", "b", "c"]);
    // All of the window, or a reply for which there was no room.
    replies.push(used(api, reads(api, &["d"]), 16_000));
    replies.push(used(api, reads(api, &["e"]), 7000));
    replies.push(used(api, ends(api, "Well", &[], "length"), 12_288 - 40));
    replies.push(answer(api, "Done."));
    let outcome = all(story(api), replies).args(&["--context-window", "16000"]).run();
    outcome.code(0).stdout("Done.\n").request_count(7);
    // The file d was never read: the reply that asked for it was to a part of the conversation.
    let names = |number| -> Vec<String> {
        results(api, &outcome.body(number)).into_iter().map(|(id, _, _)| id).collect()
    };
    outcome.equal(names(7), ["toolu_a", "toolu_b", "toolu_c", "toolu_e"].map(str::to_owned).to_vec());
    outcome.equal(wholes(api, &outcome.body(5)).iter().filter(|whole| !**whole).count() > 0, true);
}

#[test]
fn a_reply_that_ended_with_the_window_is_asked_for_anew() {
    let api = Api::Anthropic;
    let mut replies = reading(api, &["a", "b", "c", "d"]);
    replies.push(used(api, ends(api, "Half an answ", &[], "model_context_window_exceeded"), 15_900));
    replies.push(answer(api, "Done."));
    let outcome = all(story(api), replies).run();
    outcome.code(0).stdout("Done.\n").request_count(6);
    outcome.equal(wholes(api, &outcome.body(6)), vec![false, false, false, true]);
}

#[test]
fn a_limit_of_the_reply_that_does_not_fit_is_lowered_and_nothing_is_cut() {
    let message = "This model's maximum context length is 16000 tokens. However, you requested 18000 tokens (11000 in \
        the messages, 7000 in the completion). Please reduce the length of the messages or completion.";
    let api = Api::OpenAi;
    let refusal =
        Reply::new(400, "application/json", json!({"object": "error", "message": message}).to_string());
    let mut replies = reading(api, &["a", "b", "c"]);
    replies.extend([refusal, answer(api, "Done.")]);
    let outcome = all(story(api), replies).args(&["--max-output-tokens", "7000"]).run();
    outcome.code(0).request_count(5);
    outcome.equal(&outcome.body(4)["max_tokens"], &json!(7000));
    outcome.equal(&outcome.body(5)["max_tokens"], &json!(4680));
    outcome.equal(wholes(api, &outcome.body(5)), vec![true; 3]);
}

#[test]
fn images_go_with_the_results_that_showed_them() {
    let files = ["1.png", "2.png", "3.png", "4.png", "5.png"];
    for api in BOTH {
        let story = Story::new("compaction-images").api(api).args(&SMALL).args(&["-p", "Look."]);
        let story = files.iter().fold(story, |story, name| story.file(name, PNG));
        let counts = [5000, 10_000, 15_000, 20_000, 12_000];
        let replies = files.iter().zip(counts).map(|(name, count)| used(api, reads(api, &[name]), count));
        let story = all(story, replies.collect()).reply(answer(api, "Done."));
        let outcome = story.args(&["--context-window", "24000"]).run();
        outcome.code(0).request_count(6);
        let images = |number| outcome.sent(number).matches("iVBORw0K").count();
        outcome.equal((1..=6).map(images).collect::<Vec<_>>(), vec![0, 1, 2, 3, 2, 3]);
        let cut = "[result cut to save room: 40 bytes and an image; call the tool again, for a part of it, if needed]";
        outcome.equal(outcome.sent(5).matches(cut).count(), 2);
    }
}

#[test]
fn of_results_that_are_too_much_together_the_last_ones_stay() {
    for api in BOTH {
        let replies = [used(api, reads(api, &NAMES), 1000), answer(api, "Done.")];
        let outcome = all(story(api), replies.to_vec()).args(&["--context-window", "16000"]).run();
        outcome.code(0).stdout("Done.\n").request_count(2);
        outcome.equal(wholes(api, &outcome.body(2)), vec![false, false, false, true, true, true]);
    }
}

/// A model that reads the same file again and again, since it never gets it.
#[test]
fn what_never_fits_ends_the_run() {
    for api in BOTH {
        let arguments = json!({"file_path": "a"}).to_string();
        let ids: Vec<String> = (1..6).map(|number| format!("toolu_{number}")).collect();
        let replies =
            ids.iter().take(4).map(|id| used(api, asks(api, "", &[(id, "Read", &arguments)]), 600)).collect();
        let outcome = all(story(api), replies).args(&["--context-window", "3000"]).run();
        outcome.code(4).request_count(4).stderr(
            "cotter: what the model asks for at a time does not fit into its window of 3000 tokens: choose a --model \
             with a larger window, or ask for less at a time\n",
        );
    }
}

// Summaries.

/// A long conversation of which no result can be cut.
fn writing(api: Api) -> Vec<Reply> {
    (0..).zip(&NAMES[..4]).map(|(number, name)| used(api, writes(api, name), 2000 + 4000 * number)).collect()
}

fn writer(api: Api) -> Story {
    Story::new("compaction").api(api).args(&SMALL).args(&[
        "-p",
        "Write them all.",
        "--context-window",
        "16000",
    ])
}

#[test]
fn where_results_are_not_enough_the_beginning_is_summarised() {
    for api in BOTH {
        let mut replies = writing(api);
        replies.push(used(api, answer(api, " Wrote a, b and c. \n"), 11_000));
        replies.push(answer(api, "Done."));
        let outcome = all(writer(api), replies).args(&["--output-format", "stream-json", "--verbose"]).run();
        outcome.code(0).request_count(6);
        let request = last_text(&outcome.body(5));
        assert!(
            request.starts_with("This conversation is about to become too long to be sent."),
            "{request}"
        );
        outcome.equal(outcome.sent(5).contains("toolu_d"), false);
        let sent = outcome.sent(6);
        let block = format!("{SUMMARY}\\nWrote a, b and c.\\n[end of the summary]\"");
        assert!(sent.contains(&block), "{sent}");
        outcome.equal(
            ["a", "b", "c", "d"].map(|name| sent.contains(&format!("toolu_{name}"))),
            [false, false, false, true],
        );
        let lines: Vec<Value> = str::from_utf8(&outcome.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let boundary = lines.iter().find(|line| line["subtype"] == "compact_boundary").unwrap();
        outcome
            .equal(&boundary["type"], &json!("system"))
            .equal(&boundary["compact_metadata"]["trigger"], &json!("auto"));
        let tokens = |name: &str| boundary["compact_metadata"][name].as_u64().unwrap();
        assert!(tokens("pre_tokens") > 13_600 && tokens("post_tokens") < 8000, "{boundary}");
        outcome.equal(boundary["session_id"].is_string() && boundary["uuid"].is_string(), true);
        // The summary is paid for, and is no turn.
        let result = lines.last().unwrap();
        outcome.equal(&result["num_turns"], &json!(5)).equal(&result["result"], &json!("Done."));
        let output: u64 = if api == Api::Anthropic { 6 * 40 } else { 5 * 40 };
        outcome.equal(&result["usage"]["output_tokens"], &json!(output));
        let said =
            |line: &&Value| line["type"] == "assistant" && line["message"]["content"][0]["type"] == "text";
        outcome.equal(lines.iter().filter(said).count(), 1);
        outcome.file("a", text("a"));
        let kept: Vec<Value> = session_of(&outcome);
        let calls = kept.iter().filter(|line| line["parts"][0]["type"] == "call").count();
        outcome.equal(calls, 4);
        let line = kept.iter().find(|line| line["type"] == "compaction").unwrap();
        outcome.equal(&line["kept"], &json!(2)).equal(&line["parts"][0]["text"], &json!("Write them all."));
    }
}

/// A conversation that no result can be cut of, and of which the server counted so many tokens last.
fn writing_up_to(api: Api, count: u64) -> Vec<Reply> {
    let mut replies = writing(api);
    replies.truncate(3);
    replies.push(used(api, writes(api, "d"), count));
    replies
}

/// Replies that are no summary, and what is said of each.
fn no_summaries(api: Api) -> Vec<(Reply, &'static str)> {
    let done = if api == Api::Anthropic { "end_turn" } else { "stop" };
    let cut = if api == Api::Anthropic { "max_tokens" } else { "length" };
    let call = ("toolu_x", "Write", r#"{"file_path": "x", "content": "x"}"#);
    let mut replies = vec![
        (asks(api, "First I look.", &[call]), "the model called a tool instead"),
        (ends(api, "Wrote a, b an", &[], cut), "the summary was cut off"),
        (ends(api, &"x".repeat(40_000), &[], done), "the summary is no shorter than what it stands for"),
    ];
    // With the other API this is a fault of the server's, which is asked again for it.
    if api == Api::Anthropic {
        replies.push((ends(api, "", &[], done), "the summary is empty"));
    }
    replies
}

#[test]
fn a_reply_that_is_no_summary_is_asked_for_once_more() {
    for api in BOTH {
        for (reply, why) in no_summaries(api) {
            let mut replies = writing(api);
            replies.extend([reply, answer(api, "Wrote a, b and c."), answer(api, "Done.")]);
            let outcome = all(writer(api), replies).run();
            outcome.code(0).stdout("Done.\n").stderr("").request_count(7).no_file("x");
            let again = format!(
                "This was asked once already, and {why}. Answer with the summary alone, as plain text of at most 1000 \
                 words, and call no tool."
            );
            outcome.equal(last_text(&outcome.body(6)), format!("{}\n\n{again}", last_text(&outcome.body(5))));
            // What the server has cached begins with the tools.
            outcome.equal(&outcome.body(6)["tools"], &outcome.body(4)["tools"]);
            outcome.equal(&outcome.body(6)["tool_choice"], &outcome.body(4)["tool_choice"]);
            let block = format!("{SUMMARY}\\nWrote a, b and c.\\n[end of the summary]\"");
            outcome.equal(outcome.sent(7).contains(&block), true);
        }
    }
}

#[test]
fn what_fits_still_goes_on_without_a_summary() {
    for api in BOTH {
        let refusal = Reply::new(400, "application/json", json!({"error": {"message": "No."}}).to_string());
        let mut cases: Vec<(Vec<Reply>, &str)> =
            no_summaries(api).into_iter().map(|(reply, why)| (vec![reply.clone(), reply], why)).collect();
        cases.push((vec![refusal], "the API refused the request (HTTP 400: No.)"));
        for (summaries, why) in cases {
            let asked = summaries.len();
            let mut replies = writing(api);
            replies.extend(summaries);
            // Nor is it asked for again at each of the next questions.
            replies.extend([used(api, writes(api, "e"), 15_000), used(api, answer(api, "Done."), 15_800)]);
            let outcome = all(writer(api), replies).run();
            outcome.code(0).stdout("Done.\n").request_count(4 + asked + 2).file("e", text("e")).stderr(&format!(
                "cotter: the conversation nearly fills the model's window and could not be summarised ({why}): going on \
                 with all of it while it fits\n"
            ));
            let sent = outcome.sent(4 + asked + 2);
            outcome.equal(NAMES[..5].iter().all(|name| sent.contains(&format!("toolu_{name}"))), true);
        }
    }
}

#[test]
fn what_fits_no_more_and_has_no_summary_ends_the_run_and_says_what_to_do() {
    const WAY: &str = ": go on in a new session, or choose a --model with a larger window\n";
    const BEGINNING: &str =
        "cotter: the conversation is too long for the model's window and could not be summarised (";
    for api in BOTH {
        let mut replies = writing_up_to(api, 15_990);
        replies.push(too_long(api));
        let outcome = all(writer(api), replies).run();
        outcome.code(4).request_count(5).stderr_has(BEGINNING).stderr_has(WAY);
        for (reply, why) in no_summaries(api) {
            let mut replies = writing_up_to(api, 15_990);
            replies.extend([reply.clone(), reply]);
            let outcome = all(writer(api), replies).run();
            outcome.code(4).request_count(6).stderr(&format!("{BEGINNING}{why}){WAY}"));
        }
    }
}

#[test]
fn a_server_that_fails_at_a_summary_is_said_to_have_been_asked_for_one() {
    for api in BOTH {
        let mut replies = writing(api);
        replies.push(Reply::new(500, "application/json", json!({"error": {"message": "Ouch."}}).to_string()));
        let outcome = all(writer(api), replies).args(&["--max-retries", "0"]).run();
        outcome.code(5).request_count(5).stderr(
            "cotter: the API is overloaded or limits the rate (HTTP 500: Ouch.); what was asked for is a summary, since \
             the conversation is too long\n",
        );
    }
}

/// Without an end, if nothing watched over it.
#[test]
fn what_stays_too_long_ends_the_run() {
    for api in BOTH {
        let outcome = Story::new("compaction")
            .api(api)
            .args(&SMALL)
            .args(&["-p", "So long."])
            .reply(too_long(api))
            .run();
        outcome.code(4).request_count(1).stderr_has("the conversation is too long for this model");
        let mut replies = reading(api, &["a", "b", "c", "d"]);
        replies.extend((0..3).map(|_| too_long(api)));
        let outcome = all(story(api), replies).run();
        outcome.code(4);
        assert!(outcome.requests.len() <= 9, "{}", outcome.report());
    }
}

// Skills.

#[test]
fn a_skills_own_conversation_makes_room_for_itself_and_the_runs_stays() {
    const SKILL: &str = "---\ndescription: Reads.\ncontext: fork\nallowed-tools: Read\n---\nRead them.";
    for api in BOTH {
        let use_it = ("toolu_s", "Skill", r#"{"name": "reader"}"#);
        let story =
            NAMES.iter().fold(Story::new("compaction").api(api), |story, name| story.file(name, text(name)));
        let story = story.conversations(2).file(".claude/skills/reader/SKILL.md", SKILL);
        let mut replies =
            vec![used(api, reads(api, &["e"]), 2000), used(api, asks(api, "", &[use_it]), 5000)];
        replies.extend(reading(api, &["a", "b", "c", "d"]));
        replies.extend([answer(api, "All read."), answer(api, "Done.")]);
        let args = ["--system-prompt", "Work.", "--tools", "Read,Skill", "--output-format", "stream-json"];
        let outcome = all(story, replies)
            .args(&args)
            .args(&["--verbose", "-p", "Go.", "--context-window", "16000"])
            .run();
        outcome.code(0).request_count(8);
        outcome.equal(wholes(api, &outcome.body(7)), vec![false, false, true, true]);
        // What the run itself had read is as it was, and nothing of the other conversation is told or kept.
        outcome.equal(wholes(api, &outcome.body(8)), vec![true, true]);
        let lines = session_of(&outcome);
        outcome.equal(lines.iter().any(|line| line["type"] == "compaction"), false);
        outcome.equal(String::from_utf8_lossy(&outcome.stdout).contains("compact_boundary"), false);
    }
}

// Without.

#[test]
fn without_compaction_nothing_is_cut_and_the_run_ends() {
    for api in BOTH {
        let mut replies = reading(api, &["a", "b", "c", "d"]);
        replies.push(too_long(api));
        let outcome = all(story(api), replies).args(&["--no-compaction"]).run();
        outcome
            .code(4)
            .request_count(5)
            .stderr_has("cotter: the API refused the request (HTTP 400: ")
            .stderr_has("shorten the input or choose another --model), or leave --no-compaction out\n");
        outcome.equal(wholes(api, &outcome.body(5)), vec![true; 4]);
        let replies = reading(api, &["a", "b", "c", "d"]);
        let outcome = all(story(api), replies).args(&["--no-compaction", "--context-window", "13000"]).run();
        outcome
            .code(4)
            .request_count(4)
            .stderr_has("tokens, and the model's window 13000: leave --no-compaction out");
    }
}

// Again.

fn run_with(stage: &Stage, replies: Vec<Reply>, args: &[&str]) -> (Ran, Vec<Request>) {
    let server = Server::start(replies);
    let ran = run(stage.ask(server.port(), &SMALL).args(args));
    let requests = requests(server);
    check::requests(Api::OpenAi, &requests).unwrap();
    (ran, requests)
}

fn stage_with_files(name: &str) -> Stage {
    let stage = Stage::new(name);
    NAMES.iter().for_each(|name| drop(stage.write(name, text(name))));
    stage
}

fn messages(request: &Request) -> Vec<Value> {
    request.json()["messages"].as_array().unwrap().clone()
}

#[test]
fn a_run_that_goes_on_sends_what_the_first_had_cut() {
    let api = Api::OpenAi;
    let stage = stage_with_files("compaction-resume");
    let mut replies = reading(api, &["a", "b", "c", "d"]);
    replies.push(used(api, answer(api, "Read."), 8000));
    let (ran, first) = run_with(&stage, replies, &["-p", "Read them all.", "--context-window", "16000"]);
    ran.code(0);
    let (ran, second) = run_with(&stage, vec![answer(api, "Yes.")], &["-c", "-p", "Sure?"]);
    ran.code(0).stdout("Yes.\n").stderr("");
    let (before, now) = (messages(&first[4]), messages(&second[0]));
    assert_eq!(now[..before.len()], before);
    // The same rules hold for it from the start.
    let (ran, third) =
        run_with(&stage, vec![answer(api, "No.")], &["-c", "-p", "Really?", "--context-window", "6000"]);
    ran.code(0);
    assert_eq!(wholes(api, &third[0].json()), [false, false, false, true]);
}

#[test]
fn a_run_that_goes_on_begins_with_the_summary() {
    let api = Api::OpenAi;
    let stage = Stage::new("compaction-resume");
    let mut replies = writing(api);
    replies.extend([answer(api, "Wrote a, b and c."), answer(api, "Done.")]);
    let (ran, first) = run_with(&stage, replies, &["-p", "Write them all.", "--context-window", "16000"]);
    ran.code(0);
    let (ran, second) = run_with(&stage, vec![answer(api, "Yes.")], &["-c", "-p", "Sure?"]);
    ran.code(0).stdout("Yes.\n").stderr("");
    let (before, now) = (messages(&first[5]), messages(&second[0]));
    assert_eq!(now[..before.len()], before);
    assert_eq!(now.len(), before.len() + 2);
    // One that has to be summarised before anything else.
    let (ran, third) = run_with(
        &stage,
        vec![answer(api, "All is written."), answer(api, "No.")],
        &["-c", "-p", "Really?", "--context-window", "4000"],
    );
    ran.code(0).stdout("No.\n");
    let now = messages(&third[1]);
    let text = now[1]["content"].as_str().unwrap();
    assert!(text.starts_with("Write them all.\n\n[summary") && text.matches(SUMMARY).count() == 1, "{text}");
    assert!(text.contains("\nAll is written.\n") && !text.contains("Wrote a, b"), "{text}");
    assert_eq!(now.last().unwrap()["content"], "Really?");
}

#[test]
fn a_recorded_run_that_made_room_makes_it_again_in_a_replay() {
    let api = Api::OpenAi;
    let stage = stage_with_files("compaction-replay");
    let silent = Reply::new(
        400,
        "application/json",
        json!({"error": "Please reduce the length of the messages"}).to_string(),
    );
    let list = json!({"data": [{"id": "test-model", "max_model_len": 16_000}]});
    let mut replies = reading(api, &["a", "b", "c", "d"]);
    replies.extend([silent, Reply::new(200, "application/json", list.to_string())]);
    // In a window of any other size, room would be made again here, or not yet.
    replies.extend([used(api, reads(api, &["e"]), 9500), answer(api, "Done.")]);
    let (ran, _) = run_with(&stage, replies, &["-p", "Read them all.", "--record", "recording"]);
    ran.code(0).stdout("Done.\n");
    let replay = [
        "--bare",
        "--system-prompt",
        "Work.",
        "--tools",
        "Read,Write",
        "-p",
        "Read them all.",
        "--replay-strict",
    ];
    run(stage.command(&replay).args(["--replay", "recording"])).code(0).stdout("Done.\n").stderr("");
    let mut replies = writing(api);
    replies.extend([answer(api, "Wrote a, b and c."), answer(api, "Done.")]);
    let (ran, _) =
        run_with(&stage, replies, &["-p", "Write.", "--record", "summary", "--context-window", "16000"]);
    ran.code(0).stdout("Done.\n");
    let replay = [
        "--bare",
        "--system-prompt",
        "Work.",
        "--tools",
        "Read,Write",
        "-p",
        "Write.",
        "--context-window",
        "16000",
    ];
    run(stage.command(&replay).args(["--replay", "summary", "--replay-strict"]))
        .code(0)
        .stdout("Done.\n")
        .stderr("");
}

#[test]
fn a_server_of_one_model_has_said_its_window_already() {
    let api = Api::OpenAi;
    let stage = stage_with_files("compaction-list");
    let list = json!({"data": [{"id": "only", "max_model_len": 16_000}]});
    let mut replies = vec![Reply::new(200, "application/json", list.to_string())];
    replies.extend(reading(api, &["a", "b", "c", "d"]));
    replies.push(answer(api, "Done."));
    let server = Server::start(replies);
    let url = crate::stage::base_url(server.port());
    run(stage.command(&["--base-url", &url, "-p", "Read.", "--record", "r"]).args(SMALL))
        .code(0)
        .stdout("Done.\n");
    let sent = requests(server);
    assert_eq!(wholes(api, &sent[5].json()), [false, false, true, true]);
    run(stage.command(&["--replay", "r", "-p", "Read."]).args(SMALL)).code(0).stdout("Done.\n").stderr("");
}
