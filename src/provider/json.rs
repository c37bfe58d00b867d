//! JSON text from outside, before it is parsed and before it goes back. Pure.
//!
//! What is sound stays as it came. Text is scanned byte by byte and never parsed here: it may be long, deep or wrong.

use std::borrow::Cow;

use serde_json::Value;

/// The most values that one text may hold. Parsed, each takes some forty times the two bytes that it is written in,
/// and the arguments of a call are parsed several times; the longest replies of real models hold some thousands.
const MOST_VALUES: usize = 500_000;
/// What holds too much is this instead.
pub const TOO_MUCH: &str = "more than 500,000 values";

/// The members of these names, in their order; `null` for one that is not there. An object is gone through once: of
/// the few that a piece of a reply has, most are asked for.
pub fn pick<'a, const COUNT: usize>(value: &'a Value, names: [&str; COUNT]) -> [&'a Value; COUNT] {
    const NONE: &Value = &Value::Null;
    let mut picked = [NONE; COUNT];
    for (name, member) in value.as_object().into_iter().flatten() {
        if let Some(at) = names.iter().position(|wanted| wanted == name) {
            picked[at] = member;
        }
    }
    picked
}

/// Whether so much is held in a text that parsing it would take a large part of a machine's memory.
pub fn holds_too_much(text: &str) -> bool {
    // Each is counted by a byte of its own, an empty list or object in a list by two.
    text.len() > MOST_VALUES && outside_strings(text, b"[{,").nth(MOST_VALUES).is_some()
}

/// The text in which each name stands once, if a name stands twice in an object of its value: which of the two is
/// meant differs from reader to reader, and some refuse both. The last is, as it is here.
pub fn without_repeats(text: &str, value: &Value) -> Option<String> {
    (outside_strings(text, b":").count() > members(value)).then(|| value.to_string())
}

/// The same for a text that is yet to be sent without NUL: two names can become one by that.
pub fn without_repeats_or_nul(text: &str, value: &Value) -> Option<String> {
    let once = without_repeats(text, value);
    let sent = match without_nul(once.as_deref().unwrap_or(text)) {
        Cow::Borrowed(_) => return once,
        Cow::Owned(sent) => sent,
    };
    // What does not become one keeps its NUL here: what is run is what came.
    super::parse(&sent).ok().and_then(|value| without_repeats(&sent, &value)).or(once)
}

/// The text without NUL characters in its strings: many servers refuse a request that holds one, and then all later
/// ones too.
pub fn without_nul(text: &str) -> Cow<'_, str> {
    const NUL: &str = "\\u0000";
    if !text.contains(NUL) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        // The backslash and the character behind it, which may be a backslash.
        let length = match escape.starts_with(NUL) {
            true => NUL.len(),
            false => escape.char_indices().nth(2).map_or(escape.len(), |(end, _)| end),
        };
        clean.push_str(if escape.starts_with(NUL) { "\\ufffd" } else { &escape[..length] });
        rest = &escape[length..];
    }
    clean.push_str(rest);
    Cow::Owned(clean)
}

/// The bytes of this kind that stand outside all strings.
fn outside_strings<'a>(text: &'a str, kind: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
    let (mut in_string, mut is_escaped) = (false, false);
    text.bytes().filter(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ => return !in_string && kind.contains(byte),
        }
        false
    })
}

/// How many members the objects of a value have in all.
fn members(value: &Value) -> usize {
    match value {
        Value::Object(object) => object.len() + object.values().map(members).sum::<usize>(),
        Value::Array(array) => array.iter().map(members).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_strings() {
        assert_eq!(TOO_MUCH.replace(',', ""), format!("more than {MOST_VALUES} values"));
        let numbers = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert!(!holds_too_much(&numbers(MOST_VALUES)));
        assert!(holds_too_much(&numbers(MOST_VALUES + 1)));
        let objects = format!("[{}{{}}]", "{},".repeat(MOST_VALUES / 2));
        assert!(holds_too_much(&objects));
        for text in [r#"[""#, r#"["\""#, r#"["\\\""#] {
            assert!(!holds_too_much(&format!("{text}{}\"]", "[{,".repeat(MOST_VALUES))), "{text}");
        }
    }

    #[test]
    fn of_a_name_that_stands_twice_the_last_is_kept() {
        let once = |text: &str| without_repeats(text, &serde_json::from_str(text).unwrap());
        assert_eq!(once(r#"{"a":1,"b":2,"a":3}"#).as_deref(), Some(r#"{"a":3,"b":2}"#));
        assert_eq!(once(r#"{"a":1,"\u0061":2}"#).as_deref(), Some(r#"{"a":2}"#));
        assert_eq!(once(r#"[{"x":{"a":{},"a":[{"b":0}]}}]"#).as_deref(), Some(r#"[{"x":{"a":[{"b":0}]}}]"#));
        for text in [r#"{"a:\":":{"b":"x:y"},"c":[{"b":1.10}]}"#, "{}", "1"] {
            assert_eq!(once(text), None, "{text}");
        }
    }

    #[test]
    fn names_that_become_one_without_their_nul_stand_once() {
        let once = |text: &str| without_repeats_or_nul(text, &serde_json::from_str(text).unwrap());
        let text = r#"{"command":"echo A","command\u0000":"x","command\ufffd":"y"}"#;
        assert_eq!(once(text).as_deref(), Some("{\"command\":\"echo A\",\"command\u{fffd}\":\"y\"}"));
        assert_eq!(once(r#"{"a\u0000":1,"a\u0000":2}"#).as_deref(), Some(r#"{"a\u0000":2}"#));
        assert_eq!(once(r#"{"a\u0000":"\u0000","b":1}"#), None);
    }

    #[test]
    fn the_escape_of_a_nul_is_told_from_an_escaped_backslash() {
        for (text, clean) in [
            (r#"{"a\u0000":"\u0000\u0000b"}"#, r#"{"a\ufffd":"\ufffd\ufffdb"}"#),
            (r#""\\u0000""#, r#""\\u0000""#),
            (r#""\\\u0000é\é""#, r#""\\\ufffdé\é""#),
            (r#""\u0001""#, r#""\u0001""#),
            (r#"\u0000\"#, r#"\ufffd\"#),
        ] {
            assert_eq!(without_nul(text), clean, "{text}");
        }
    }
}
