//! Long JSON text taken apart piece by piece, without a tree of all there is in it: a tree takes forty times the
//! memory of a list of small numbers.
//!
//! Pure. Only what has been found to be JSON is taken apart: of anything else the pieces end early.

use serde_json::Deserializer;
use serde_json::value::RawValue;

/// The text if it is JSON, without the blanks around it.
pub fn checked(text: &[u8]) -> Option<&str> {
    serde_json::from_slice::<&RawValue>(text).ok().map(RawValue::get)
}

/// The values of a list, as they are written; absent if it is no list.
pub fn elements(list: &str) -> Option<impl Iterator<Item = &str>> {
    let mut rest = list.strip_prefix('[')?;
    Some(std::iter::from_fn(move || {
        let (value, after) = first(rest)?;
        rest = after.strip_prefix(',').unwrap_or_default();
        Some(value)
    }))
}

/// The names and values of an object, as they are written; absent if it is no object.
fn members(object: &str) -> Option<impl Iterator<Item = (&str, &str)>> {
    let mut rest = object.strip_prefix('{')?;
    Some(std::iter::from_fn(move || {
        let (name, after) = first(rest)?;
        let (value, after) = first(after.strip_prefix(':')?)?;
        rest = after.strip_prefix(',').unwrap_or_default();
        Some((name, value))
    }))
}

/// The value of an object's member, as it is written; of several with this name, of the last.
pub fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    members(object)?.filter(|(written, _)| is_name(written, name)).last().map(|(_, value)| value)
}

/// Whether what is written as a member's name is this one.
fn is_name(written: &str, name: &str) -> bool {
    match written.contains('\\') {
        true => text(written).as_deref() == Some(name),
        false => written.trim_matches('"') == name,
    }
}

/// The text that a value is, if it is one.
pub fn text(value: &str) -> Option<String> {
    if !value.starts_with('"') {
        return None;
    }
    crate::provider::parse(value).ok()?.as_str().map(str::to_owned)
}

/// The first value of what may go on with anything, and what follows it and the blanks behind it.
fn first(text: &str) -> Option<(&str, &str)> {
    let mut values = Deserializer::from_str(text).into_iter::<&RawValue>();
    let value = values.next()?.ok()?;
    Some((value.get(), text[values.byte_offset()..].trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_and_an_object_come_apart_as_they_are_written() {
        let list = checked(b" [1 ,\"a,]\\\"\",[[ ]] , {\"x\": [2]},null,-1e5, true] \n").unwrap();
        let found: Vec<&str> = elements(list).unwrap().collect();
        assert_eq!(found, ["1", "\"a,]\\\"\"", "[[ ]]", "{\"x\": [2]}", "null", "-1e5", "true"]);
        let object = checked(b"{ \"a\" : 1 , \"b\":{\"c\":[]}, \"a\":\"}\"}").unwrap();
        let found: Vec<(&str, &str)> = members(object).unwrap().collect();
        assert_eq!(found, [("\"a\"", "1"), ("\"b\"", "{\"c\":[]}"), ("\"a\"", "\"}\"")]);
        assert_eq!(
            ["a", "b", "c"].map(|name| member(object, name)),
            [Some("\"}\""), Some("{\"c\":[]}"), None]
        );
        assert_eq!(member(r#"{"\u0061":1}"#, "a"), Some("1"));
    }

    #[test]
    fn what_is_empty_or_another_thing_has_no_pieces() {
        assert_eq!(elements("[ ]").unwrap().count(), 0);
        assert_eq!(members("{}").unwrap().count(), 0);
        assert!(elements("{}").is_none() && members("[]").is_none() && elements("1").is_none());
        for broken in [&b"{\"a\":"[..], b"[1] 2", b"", b"[\"\xff\"]"] {
            assert_eq!(checked(broken), None);
        }
    }

    #[test]
    fn a_text_is_read_and_other_values_are_none() {
        assert_eq!(text(r#""a\u00e9\n""#).as_deref(), Some("aé\n"));
        assert_eq!(text(r#""a\ud800""#).as_deref(), Some("a\u{fffd}"));
        assert_eq!(["1", "[\"a\"]", "null"].map(text), [None, None, None]);
    }
}
