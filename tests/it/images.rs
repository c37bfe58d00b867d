//! Images that Read shows: how either API is sent them, and what becomes of those that are too many.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::check::{Api, cache_marks};
use crate::server::Reply;
use crate::story::{Outcome, Story};
use crate::talk::{answer, asks, results};

/// A PNG of two pixels, one red and one green.
pub const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x01\x08\x02\0\0\0{@\xe8\xdd\
    \0\0\0\x0fIDATx\xdac\xf8\xcf\xc0\xc0\xf0\x9f\x01\0\x07\xff\x01\xff\xb8\x045\xe0\
    \0\0\0\0IEND\xaeB`\x82";

const TEXT: &str = "bridge.png: PNG image, 2 x 1 pixels, 72 bytes";

fn read(id: &'static str, path: &str) -> (&'static str, &'static str, String) {
    (id, "Read", json!({"file_path": path}).to_string())
}

/// A run in which the model reads these files, all in its first reply, and answers.
fn reads(name: &str, api: Api, files: &[(&str, &[u8])]) -> Outcome {
    let calls: Vec<_> = (1..)
        .zip(files)
        .map(|(number, (path, _))| (format!("call_{number}"), json!({"file_path": path}).to_string()))
        .collect();
    let calls: Vec<_> = calls.iter().map(|(id, arguments)| (&**id, "Read", &**arguments)).collect();
    let story = Story::new(name).api(api).args(&["-p", "What do they show?"]);
    let story = files.iter().fold(story, |story, (path, bytes)| story.file(path, bytes));
    story.reply(asks(api, "", &calls)).reply(answer(api, "A bridge.")).run()
}

/// The last messages of a body, after the model's first reply.
fn sent_back(body: &Value) -> &[Value] {
    let messages = body["messages"].as_array().unwrap();
    let reply = messages.iter().position(|message| message["role"] == "assistant").unwrap();
    &messages[reply + 1..]
}

#[test]
fn on_messages_an_image_stands_in_its_result_after_the_text() {
    let outcome = reads("blocks", Api::Anthropic, &[("bridge.png", PNG), ("notes.txt", b"1932")]);
    outcome.code(0).stdout("A bridge.\n");
    let source = json!({"type": "base64", "media_type": "image/png", "data": STANDARD.encode(PNG)});
    let content = json!([{"type": "text", "text": TEXT}, {"type": "image", "source": source}]);
    let expected = json!([{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "call_1", "content": content},
        {"type": "tool_result", "tool_use_id": "call_2", "content": "1932", "cache_control": {"type": "ephemeral"}},
    ]}]);
    outcome.equal(sent_back(&outcome.body(2)), expected.as_array().unwrap());
}

#[test]
fn on_chat_completions_images_follow_all_results_in_a_message_of_the_users() {
    let files: [(&str, &[u8]); 3] = [("bridge.png", PNG), ("notes.txt", b"1932"), ("other.jpg", PNG)];
    let outcome = reads("follow", Api::OpenAi, &files);
    outcome.code(0).stdout("A bridge.\n");
    let body = outcome.body(2);
    let other = "other.jpg: PNG image, 2 x 1 pixels, 72 bytes";
    let told = [("call_1", TEXT), ("call_2", "1932"), ("call_3", other)];
    let told = told.map(|(id, text)| (id.to_owned(), text.to_owned(), false));
    outcome.equal(results(Api::OpenAi, &body), told.to_vec());
    let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    let text = |id: &str, what: &str| json!({"type": "text", "text": format!("[shown by the call \"{id}\": {what}]")});
    let content = [text("call_1", TEXT), image.clone(), text("call_3", other), image];
    outcome.equal(&sent_back(&body)[3..], &[json!({"role": "user", "content": content})]);
}

#[test]
fn for_claude_behind_openrouter_a_text_beside_the_image_carries_the_cache_mark() {
    let (id, name, arguments) = read("call_1", "bridge.png");
    let story = Story::new("marked").openrouter().host("http://openrouter.ai/api/v1").file("bridge.png", PNG);
    let story = story.args(&["-p", "What does it show?"]);
    let story = story.reply(asks(Api::OpenRouter, "", &[(id, name, &arguments)]));
    let outcome = story.reply(answer(Api::OpenRouter, "A bridge.")).run();
    outcome.code(0).stdout("A bridge.\n");
    let body = outcome.body(2);
    let content = &sent_back(&body)[1]["content"];
    outcome.equal([0, 1].map(|part| cache_marks(&content[part])), [1, 0]);
}

#[test]
fn what_is_said_after_images_joins_their_message() {
    let api = Api::OpenAi;
    let (id, name, arguments) = read("call_1", "bridge.png");
    let story = Story::new("joined").api(api).file("bridge.png", PNG).args(&["-p", "What does it show?"]);
    let story = story.reply(asks(api, "", &[(id, name, &arguments)])).reply(answer(api, ""));
    let outcome = story.reply(answer(api, "A bridge.")).run();
    outcome.code(0).stdout("A bridge.\n").request_count(3);
    let body = outcome.body(3);
    let kinds: Vec<_> =
        sent_back(&body)[1]["content"].as_array().unwrap().iter().map(|part| &part["type"]).collect();
    outcome.equal(kinds, ["text", "image_url", "text"].map(Value::from).iter().collect::<Vec<_>>());
}

#[test]
fn images_beyond_what_a_request_can_hold_are_refused_in_words() {
    // Five of these are more than 24 MiB in base64.
    let mut large = PNG[..PNG.len() - 12].to_vec();
    large.extend((3_900_000_u32).to_be_bytes());
    large.extend(b"teXt");
    large.extend(vec![b'x'; 3_900_000 + 4]);
    large.extend(&PNG[PNG.len() - 12..]);
    let names = ["1.png", "2.png", "3.png", "4.png", "5.png"];
    let api = Api::Anthropic;
    let outcome = reads("many", api, &names.map(|name| (name, &large[..])));
    // The request is long for the tokens that the server counts, and yet nothing of it was cut.
    outcome.code(0).stdout("A bridge.\n").stderr("");
    let (id, text, is_error) = results(api, &outcome.body(2)).pop().unwrap();
    let expected = "5.png: PNG image, 2 x 1 pixels, 3900084 bytes [not shown: a conversation holds at most \
         100 images and 24 MiB of them in base64; go by those shown before, or make smaller copies to look at]";
    outcome.equal((&*id, &*text, is_error), ("call_5", expected, true));
}

/// The API would refuse the request, and with it all images.
#[test]
fn a_wide_image_and_more_than_twenty_do_not_come_together() {
    let mut wide = PNG.to_vec();
    wide[16..20].copy_from_slice(&2001_u32.to_be_bytes());
    let names: Vec<String> = (1..=21).map(|number| format!("{number}.png")).collect();
    for (at, why) in [
        (
            21,
            "in a conversation of more than 20 images none may have a side of more than 2000 pixels; make a smaller copy to look at",
        ),
        (
            1,
            "a conversation that holds an image with a side of more than 2000 pixels takes at most 20 images; go by those shown before",
        ),
    ] {
        let files: Vec<_> = (1..)
            .zip(&names)
            .map(|(number, name)| (&**name, if number == at { &wide } else { PNG }))
            .collect();
        let outcome = reads("wide", Api::Anthropic, &files);
        outcome.code(0).stdout("A bridge.\n");
        let told = results(Api::Anthropic, &outcome.body(2));
        let width = if at == 21 { 2001 } else { 2 };
        let refused = format!("21.png: PNG image, {width} x 1 pixels, 72 bytes [not shown: {why}]");
        let refusals: Vec<_> = told.iter().filter(|(_, _, is_error)| *is_error).collect();
        outcome.equal(refusals, vec![&("call_21".to_owned(), refused, true)]);
    }
}

#[test]
fn a_single_step_gives_an_images_own_bytes() {
    let api = Api::Anthropic;
    let (id, name, arguments) = read("call_1", "bridge.png");
    let story = Story::new("raw").api(api).file("bridge.png", PNG).args(&["--single-step", "-p", "Show it."]);
    story.reply(asks(api, "", &[(id, name, &arguments)])).run().code(0).stdout(PNG);
}

const MENTIONED: &str = "Compare @a.png, \"@b.png\" and @gone.png";

/// A run whose prompt mentions two images and a third that does not exist, with a fourth on standard input.
fn mentions(name: &str, api: Api) -> Outcome {
    let story = Story::new(name).api(api).args(&["-p", MENTIONED]).file("a.png", PNG).file("b.png", PNG);
    story.file("c.png", PNG).stdin("@c.png\n").reply(answer(api, "Equal.")).run()
}

const REST: &str = "\" and @gone.png\n\n<stdin>\n@c.png\n</stdin>";
const GONE: &str = "cotter: \"@gone.png\" is left as text: there is no file gone.png";

#[test]
fn on_messages_an_image_that_the_prompt_mentions_stands_behind_its_mention() {
    let outcome = mentions("mentioned-blocks", Api::Anthropic);
    outcome.code(0).stdout("Equal.\n").stderr_has(GONE);
    let image = json!({"type": "image", "source":
        {"type": "base64", "media_type": "image/png", "data": STANDARD.encode(PNG)}});
    let expected = json!([{"role": "user", "content": [
        {"type": "text", "text": "Compare @a.png"}, image,
        {"type": "text", "text": ", \"@b.png"}, image,
        {"type": "text", "text": REST, "cache_control": {"type": "ephemeral"}},
    ]}]);
    outcome.equal(&outcome.body(1)["messages"], &expected);
}

#[test]
fn on_chat_completions_an_image_that_the_prompt_mentions_stands_behind_its_mention() {
    let outcome = mentions("mentioned-parts", Api::OpenAi);
    outcome.code(0).stdout("Equal.\n").stderr_has(GONE);
    let url = format!("data:image/png;base64,{}", STANDARD.encode(PNG));
    let image = json!({"type": "image_url", "image_url": {"url": url}});
    let expected = json!([
        {"type": "text", "text": "Compare @a.png"}, image,
        {"type": "text", "text": ", \"@b.png"}, image,
        {"type": "text", "text": REST},
    ]);
    outcome.equal(&outcome.body(1)["messages"][1]["content"], &expected);
}

#[test]
fn a_file_that_is_no_image_is_not_attached_and_verbose_says_so() {
    let story = Story::new("mentioned-text").args(&[
        "--verbose",
        "-p",
        "Sum up @notes.txt and @gone.txt, me@notes.txt.",
    ]);
    let outcome = story.file("notes.txt", "1932\n").reply(answer(Api::OpenAi, "Done.")).run();
    outcome.code(0).stderr_has("cotter: \"@notes.txt\" is not attached: the model has tools to read it\n");
    outcome.equal(outcome.stderr.matches("is not attached").count(), 1);
    assert!(!outcome.sent(1).contains("1932"));
}

#[test]
fn an_image_that_stands_alone_on_standard_input_is_mentioned_by_the_prompt() {
    let api = Api::Anthropic;
    let story = Story::new("mentioned-stdin").api(api).args(&["-p"]).file("my picture.png", PNG);
    let outcome = story.stdin("@\"my picture.png\"\n").reply(answer(api, "A bridge.")).run();
    outcome.code(0).stdout("A bridge.\n").stderr("");
    let body = outcome.body(1);
    let kinds: Vec<_> = body["messages"][0]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    outcome.equal(kinds, vec!["text", "image"]);
}

/// The model's text stays a list of parts, with a word in the place of each image.
#[test]
fn a_model_that_takes_no_images_is_told_that_the_prompt_had_one() {
    for api in [Api::Anthropic, Api::OpenAi] {
        let story = Story::new("mentioned-refused").api(api).args(&["-p", "See @a.png"]).file("a.png", PNG);
        let error =
            r#"{"error":{"type":"not_found_error","message":"No endpoints found that support image input"}}"#;
        let refused = Reply::new(404, "application/json", error);
        let outcome = story.reply(refused).reply(answer(api, "I see nothing.")).run();
        outcome.code(0).stdout("I see nothing.\n").stderr_has("images are left out");
        let body = outcome.body(2);
        let content = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let texts: Vec<_> =
            content.as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
        outcome.equal(texts, vec!["See @a.png", "[image left out: the model takes none]"]);
    }
}

/// Each was read and held before they were counted: a text that mentions one a million times took all memory.
#[test]
fn no_more_images_are_read_than_a_prompt_can_hold() {
    let outcome = Story::new("many")
        .args(&["-p", &format!("{}@gone.png", "@bridge.png ".repeat(101))])
        .file("bridge.png", PNG)
        .run();
    outcome.code(2).request_count(0).stderr(
        "cotter: an image of the prompt is not shown: a conversation holds at most 100 images and 24 MiB of them in \
         base64; go by those shown before, or make smaller copies to look at\n",
    );
}
