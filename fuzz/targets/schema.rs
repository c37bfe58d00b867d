//! The schema of an answer, and answers: what is taken fits, and what is not taken is wrong somewhere.

use serde_json::Value;

use crate::answer::{FinalAnswer, schema};

/// A schema, and an answer.
pub fn run(bytes: &[u8]) {
    let Some([schema, text]) = super::texts::<2>(bytes) else { return };
    let schema = match schema::read(schema) {
        Ok(schema) => schema,
        Err(what) => return assert!(!what.is_empty(), "an error says what is wrong"),
    };
    let root = schema.root().clone();
    let mut answer = FinalAnswer::new(schema.clone());
    let taken = answer.take(text);
    match (&taken, answer.found()) {
        (Ok(()), Some(found)) => {
            assert!(found.value.is_object(), "an answer is an object");
            let again: Value = serde_json::from_str(&found.text).expect("the text of an answer is JSON");
            assert_eq!(again, found.value, "the text says what the value says");
            let mut second = FinalAnswer::new(schema);
            assert_eq!(second.take(&found.text), Ok(()), "an answer is one again");
        }
        (Err(what), None) => assert!(what.len() < 100_000, "{} bytes", what.len()),
        other => panic!("{other:?}"),
    }
    // A value cannot tell that a member stood twice in the text, nor that a number had more digits than are kept.
    let of_text = ["the same member twice", "too large to be kept exactly"];
    let is_of_text = taken.as_ref().is_err_and(|what| of_text.iter().any(|words| what.contains(words)));
    if let Ok(value) = serde_json::from_str::<Value>(text)
        && !is_of_text
        && let Some(fits) = plain(&root, &value)
    {
        assert_eq!(taken.is_ok(), fits, "{root} and {value}: {taken:?}");
    }
}

/// Whether a value fits, as far as a few lines can tell.
fn plain(schema: &Value, value: &Value) -> Option<bool> {
    let members = match schema {
        Value::Bool(any) => return Some(*any),
        schema => schema.as_object()?,
    };
    let mut fits = true;
    for (name, limit) in members {
        fits &= match name.as_str() {
            "title" | "description" | "default" | "examples" | "$comment" => true,
            "properties" => {
                let mut all = true;
                for (name, schema) in limit.as_object()? {
                    if let Some(inner) = value.get(name).filter(|_| value.is_object()) {
                        all &= plain(schema, inner)?;
                    }
                }
                all
            }
            "additionalProperties" => {
                let known = members.get("properties").and_then(Value::as_object);
                let mut all = true;
                for (name, inner) in value.as_object().into_iter().flatten() {
                    if known.is_none_or(|known| !known.contains_key(name)) {
                        all &= plain(limit, inner)?;
                    }
                }
                all
            }
            "required" => {
                let names = limit.as_array()?;
                !value.is_object()
                    || names.iter().all(|name| name.as_str().is_some_and(|name| value.get(name).is_some()))
            }
            "items" => {
                let mut all = true;
                for inner in value.as_array().into_iter().flatten() {
                    all &= plain(limit, inner)?;
                }
                all
            }
            "type" => {
                let is = |name: &Value| match name.as_str() {
                    Some("string") => Some(value.is_string()),
                    Some("boolean") => Some(value.is_boolean()),
                    Some("null") => Some(value.is_null()),
                    Some("array") => Some(value.is_array()),
                    Some("object") => Some(value.is_object()),
                    Some("number") => Some(value.is_number()),
                    Some("integer") if !value.is_f64() => Some(value.is_number()),
                    _ => None,
                };
                match limit {
                    Value::Array(names) => {
                        let mut any = false;
                        for name in names {
                            any |= is(name)?;
                        }
                        any
                    }
                    name => is(name)?,
                }
            }
            "minLength" => value
                .as_str()
                .is_none_or(|text| text.chars().count() as u64 >= limit.as_u64().unwrap_or(u64::MAX)),
            "maxLength" => {
                let most = limit.as_u64()?;
                value.as_str().is_none_or(|text| text.chars().count() as u64 <= most)
            }
            "minimum" | "maximum" => {
                let limit = limit.as_i64()?;
                match (value, value.as_i64()) {
                    (Value::Number(_), None) => return None,
                    (_, Some(number)) if name == "minimum" => number >= limit,
                    (_, Some(number)) => number <= limit,
                    _ => true,
                }
            }
            _ => return None,
        };
    }
    Some(fits)
}
