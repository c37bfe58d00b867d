//! The one exception to the rule that a conversation only ever grows: one that was too long for the model.
//!
//! A result may become a line that tells its size exactly, with its images gone. The beginning may become a summary,
//! once the request before has asked for one by the same words; then the first prompt and what follows the summary are
//! what they were, byte for byte.

use std::collections::BTreeMap;

use serde_json::{Value, json};

const SUMMARY: &str = "[summary of what was said since, which was too long to be kept whole]";
const INSTRUCTION: &str = "This conversation is about to become too long to be sent.";
const CUT: &str = "[result cut to save room: ";

/// The messages as they are after the cuts that the later ones show; none where a cut tells another size.
pub fn after_cuts(before: &[String], now: &[String]) -> Option<Vec<String>> {
    let cuts: BTreeMap<String, String> =
        now.iter().flat_map(|message| results(&parsed(message))).filter(|(_, text)| is_cut(text)).collect();
    if cuts.is_empty() {
        return Some(before.to_vec());
    }
    let mut left_out = Vec::new();
    let mut after = Vec::new();
    for message in before {
        let mut value = parsed(message);
        match cut(&mut value, &cuts, before, &mut left_out)? {
            Changed::No => after.push(message.clone()),
            Changed::Yes => after.push(value.to_string()),
            Changed::Gone => {}
        }
    }
    Some(after)
}

enum Changed {
    No,
    Yes,
    Gone,
}

fn cut(
    message: &mut Value,
    cuts: &BTreeMap<String, String>,
    before: &[String],
    left_out: &mut Vec<String>,
) -> Option<Changed> {
    if message["role"] == "tool" {
        let id = text(&message["tool_call_id"]);
        let Some(line) = cuts.get(&id).filter(|_| !is_cut(&content(&message["content"]))).cloned() else {
            return Some(Changed::No);
        };
        if !tells(&line, &content(&message["content"]), shown_by(&id, before)) {
            return None;
        }
        left_out.push(id);
        match &mut message["content"] {
            Value::Array(parts) => parts[0]["text"] = json!(line),
            content => *content = json!(line),
        }
        return Some(Changed::Yes);
    }
    let Value::Array(blocks) = &mut message["content"] else { return Some(Changed::No) };
    let mut changed = false;
    // Chat Completions shows the images of results behind them.
    let mut is_left_out = false;
    let count = blocks.len();
    blocks.retain(|block| {
        let label = text(&block["text"]);
        if block["type"] == "text" {
            is_left_out =
                left_out.iter().any(|id| label.starts_with(&format!("[shown by the call {}: ", json!(id))));
        }
        !is_left_out
    });
    changed |= blocks.len() != count;
    if blocks.is_empty() {
        return Some(Changed::Gone);
    }
    for block in blocks.iter_mut().filter(|block| block["type"] == "tool_result") {
        let Some(line) = cuts.get(&text(&block["tool_use_id"])) else { continue };
        if is_cut(&content(&block["content"])) {
            continue;
        }
        let images = block["content"]
            .as_array()
            .map_or(0, |parts| parts.iter().filter(|part| part["type"] == "image").count());
        if !tells(line, &content(&block["content"]), images) {
            return None;
        }
        block["content"] = json!(line);
        changed = true;
    }
    Some(if changed { Changed::Yes } else { Changed::No })
}

/// Whether a line tells the size of this result.
fn tells(line: &str, original: &str, images: usize) -> bool {
    let images = match images {
        0 => String::new(),
        1 => " and an image".to_owned(),
        count => format!(" and {count} images"),
    };
    let said = |bytes: usize| {
        format!("{CUT}{} bytes{images}; call the tool again, for a part of it, if needed]", grouped(bytes))
    };
    // Chat Completions marks a failure in the text.
    let own = original.strip_prefix("Error: ").unwrap_or(original).len();
    line == said(original.len())
        || [own, original.len()].iter().any(|bytes| line == format!("Error: {}", said(*bytes)))
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn shown_by(id: &str, messages: &[String]) -> usize {
    let label = format!("[shown by the call {}: ", json!(id));
    let mut count = 0;
    for message in messages {
        let mut is_own = false;
        for part in parsed(message)["content"].as_array().into_iter().flatten() {
            match part["type"].as_str() {
                Some("text") => is_own = text(&part["text"]).starts_with(&label),
                Some("image_url") if is_own => count += 1,
                _ => {}
            }
        }
    }
    count
}

fn results(message: &Value) -> Vec<(String, String)> {
    if message["role"] == "tool" {
        return vec![(text(&message["tool_call_id"]), content(&message["content"]))];
    }
    let blocks = message["content"].as_array().into_iter().flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|block| (text(&block["tool_use_id"]), content(&block["content"]))).collect()
}

fn is_cut(text: &str) -> bool {
    text.strip_prefix("Error: ").unwrap_or(text).starts_with(CUT)
}

fn content(value: &Value) -> String {
    match value {
        Value::Array(parts) => {
            text(&parts.iter().find(|part| part["type"] == "text").unwrap_or(&Value::Null)["text"])
        }
        value => text(value),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn parsed(message: &str) -> Value {
    serde_json::from_str(message).unwrap_or_default()
}

/// Whether these messages ask for a summary of the first ones of those.
pub fn asks_for_summary(before: &[String], now: &[String], has_grown: fn(&str, &str) -> bool) -> bool {
    let Some((last, others)) = now.split_last() else { return false };
    let Some(before) = after_cuts(before, now) else { return false };
    let is_same = before.len() >= others.len() && before[..others.len()] == *others;
    let next = before.get(others.len()).map(String::as_str).unwrap_or_default();
    let is_own = parsed(last)["content"].as_str().is_some_and(|text| text.starts_with(INSTRUCTION));
    last.contains(INSTRUCTION) && is_same && (is_own || has_grown(next, last))
}

/// Whether the last message asks for a summary.
pub fn ends_with_instruction(now: &[String]) -> bool {
    now.last().is_some_and(|last| last.contains(INSTRUCTION))
}

/// Whether these messages are those with a summary in the place of the beginning.
pub fn is_summarized(before: &[String], now: &[String], has_grown: fn(&str, &str) -> bool) -> bool {
    let first = usize::from(now.first().is_some_and(|message| parsed(message)["role"] == "system"));
    let Some(before) = after_cuts(before, now) else { return false };
    if now.len() <= first || before.len() <= first || before[..first] != now[..first] {
        return false;
    }
    let prompt = |message: &str| {
        let end = message.find(SUMMARY).unwrap_or(message.len());
        message[..end].trim_end_matches(['"', '}', ']', 'n', '\\', ',', '{', ':']).to_owned()
    };
    let (was, is) = (&before[first], &now[first]);
    if !is.contains(SUMMARY) || !prompt(is).starts_with(&prompt(was)) {
        return false;
    }
    let kept = &now[first + 1..];
    let replies = kept.iter().filter(|message| parsed(message)["role"] == "assistant").count();
    let begins_with_reply = kept.first().is_some_and(|message| parsed(message)["role"] == "assistant");
    if replies == 1 && begins_with_reply {
        let was_there = before.iter().position(|message| *message == kept[0]);
        // One reply may be newer than all that was sent.
        return was_there
            .is_none_or(|at| before[at..].iter().zip(kept).all(|(was, is)| was == is || has_grown(was, is)));
    }
    (first + 1..before.len()).any(|from| {
        let tail = &before[from..];
        parsed(&tail[0])["role"] == "assistant"
            && tail.len() <= kept.len()
            && tail
                .iter()
                .zip(kept)
                .enumerate()
                .all(|(index, (was, is))| was == is || index + 1 == tail.len() && has_grown(was, is))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(messages: &[&str]) -> Vec<String> {
        messages.iter().map(|message| (*message).to_owned()).collect()
    }

    #[test]
    fn a_cut_has_to_tell_the_size() {
        let tool =
            |content: &str| json!({"role": "tool", "tool_call_id": "a", "content": content}).to_string();
        let cut =
            |size: &str| tool(&format!("{CUT}{size}; call the tool again, for a part of it, if needed]"));
        let before = owned(&[r#"{"role":"user","content":"u"}"#, &tool(&"x".repeat(1234))]);
        for (size, is_right) in
            [("1,234 bytes", true), ("1,233 bytes", false), ("1,234 bytes and an image", false)]
        {
            let now = owned(&[&before[0], &cut(size)]);
            assert_eq!(after_cuts(&before, &now), is_right.then(|| now.clone()), "{size}");
        }
    }

    #[test]
    fn a_summary_stands_between_the_first_prompt_and_what_is_kept() {
        let never = |_: &str, _: &str| false;
        let user = |text: &str| json!({"role": "user", "content": text}).to_string();
        let reply = |text: &str| json!({"role": "assistant", "content": text}).to_string();
        let before = [user("first"), reply("1"), user("2"), reply("3"), user("4")];
        let summary = user(&format!("first\n\n{SUMMARY}\nso\n[end of the summary]"));
        let now = |first: &str, kept: &[String]| [&[first.to_owned()], kept].concat();
        assert!(is_summarized(&before, &now(&summary, &before[3..]), never));
        assert!(!is_summarized(&before, &now(&summary, &before[4..]), never));
        assert!(is_summarized(&before, &now(&summary, &[reply("5"), user("6")]), never));
        let two = [reply("5"), user("6"), reply("7"), user("8")];
        assert!(!is_summarized(&before, &now(&summary, &two), never));
        assert!(!is_summarized(&before, &now(&summary, &[reply("3"), user("5")]), never));
        assert!(!is_summarized(&before, &now(&user(&format!("f\n\n{SUMMARY}")), &before[3..]), never));
        assert!(!is_summarized(&before, &now(&user("first"), &before[3..]), never));
        let instruction = user(INSTRUCTION);
        assert!(asks_for_summary(
            &before,
            &[before[..2].to_vec(), vec![instruction.clone()]].concat(),
            never
        ));
        assert!(!asks_for_summary(&before, &[before[1..2].to_vec(), vec![instruction]].concat(), never));
    }
}
