//! The text of an answer: what of it is the JSON, and that JSON as it is printed.
//!
//! The text is never written anew from what it says: numbers and escapes stay as the model wrote them.

use serde_json::Value;

use super::Found;
use crate::provider::{excerpt, is_too_deep, parse_and_mend};

const FENCE: &str = "```";

/// The answer that a text is: JSON and nothing else, but for one fence around all of it.
///
/// Errors: why it is none, as the model reads it.
pub fn read(text: &str) -> Result<Found, String> {
    let text = unfenced(text.trim());
    if is_too_deep(text) {
        return Err("the answer is nested too deeply".to_owned());
    }
    let Ok((value, text)) = parse_and_mend(text) else {
        return Err(format!("the answer must be JSON and nothing else, not: {}", excerpt(text)));
    };
    let scanned = scan(&text);
    if scanned.members != members(&value) {
        return Err("the answer has an object with the same member twice".to_owned());
    }
    match scanned.wide {
        Some(number) => Err(format!("the number {} is too large to be kept exactly", excerpt(&number))),
        None => Ok(Found { text: scanned.compact, value }),
    }
}

/// The first whole number in JSON text that 64 bits do not hold, and that would be rounded.
pub fn wide_number(text: &str) -> Option<String> {
    scan(text).wide
}

fn unfenced(text: &str) -> &str {
    let inner = text.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    match inner.and_then(|inner| inner.split_once('\n')) {
        Some((language, inner)) if matches!(language.trim(), "" | "json") => inner.trim(),
        _ => text,
    }
}

struct Scanned {
    /// The text without blanks between its parts.
    compact: String,
    /// How many members its objects have, as written.
    members: usize,
    wide: Option<String>,
}

/// Goes through JSON text that is sound.
fn scan(text: &str) -> Scanned {
    let mut scanned = Scanned { compact: String::with_capacity(text.len()), members: 0, wide: None };
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => end_of_string(rest),
            '-' | '0'..='9' => {
                let end = rest.find(|next: char| !is_of_number(next)).unwrap_or(rest.len());
                let number = &rest[..end];
                if scanned.wide.is_none() && is_wide(number) {
                    scanned.wide = Some(number.to_owned());
                }
                end
            }
            _ => first.len_utf8(),
        };
        scanned.members += usize::from(first == ':');
        if !first.is_ascii_whitespace() {
            scanned.compact.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    scanned
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '-' | '+' | '.' | 'e' | 'E')
}

fn is_wide(number: &str) -> bool {
    !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() && number.parse::<u64>().is_err()
}

/// How many members the objects of a value have, at all depths.
fn members(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(members).sum(),
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Result<String, String> {
        read(text).map(|found| found.text)
    }

    #[test]
    fn the_text_stays_but_for_blanks_between_its_parts() {
        for (given, printed) in [
            ("{}", "{}"),
            (
                " \n{ \"a\" : [ 1.10 , 1e2,\t-0 ],\r\n\"b c\": \" \\\" \\\\\" }\n",
                r#"{"a":[1.10,1e2,-0],"b c":" \" \\"}"#,
            ),
            (r#"{"é": "\u00e9 /\/"}"#, r#"{"é":"\u00e9 /\/"}"#),
            ("[true , null]", "[true,null]"),
            (r#"{"n": 18446744073709551615}"#, r#"{"n":18446744073709551615}"#),
            ("```json\n{\"a\": 1}\n```", r#"{"a":1}"#),
            ("```\n{\"a\": \"```\"}\n```\n", r#"{"a":"```"}"#),
            (r#"{"half": "\ud83d"}"#, r#"{"half":"\ufffd"}"#),
        ] {
            assert_eq!(text(given), Ok(printed.to_owned()), "{given}");
        }
    }

    #[test]
    fn anything_beside_the_json_makes_it_none() {
        for given in [
            "",
            "In 1932.",
            "Here it is: {\"a\": 1}",
            "{\"a\": 1} {\"a\": 2}",
            "{\"a\": 1}.",
            "Here:\n```json\n{\"a\": 1}\n```",
            "```json\n```json\n{\"a\": 1}\n```\n```",
            "```python\n{\"a\": 1}\n```",
            "```{\"a\": 1}```",
            "```",
            "``````",
            "{'a': 1}",
            "{\"a\": 1",
        ] {
            let told = text(given).unwrap_err();
            assert!(told.starts_with("the answer must be JSON and nothing else, not: "), "{given}: {told}");
        }
    }

    #[test]
    fn what_readers_would_take_differently_is_none() {
        let twice = Err("the answer has an object with the same member twice".to_owned());
        assert_eq!(text(r#"{"a": 1, "a": 1}"#), twice);
        assert_eq!(text(r#"[{"a": {"b": ":", "\u0062": 2}}]"#), twice);
        let wide = "18446744073709551616";
        let told = format!("the number {wide} is too large to be kept exactly");
        assert_eq!(text(&format!("{{\"a\": {wide}}}")), Err(told));
        assert_eq!(text(&"[".repeat(200)), Err("the answer is nested too deeply".to_owned()));
    }
}
