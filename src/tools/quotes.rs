//! Errors that stay short whatever the model wrote: a text of the call that is long is quoted by its beginning
//! and its end.
//!
//! A result is sent with every later request, so that one bad call must not make all of them long.

use std::borrow::Cow;

use serde_json::Value;

use super::truncate::HeadTail;
use crate::conversation::Call;

/// A text that is longer is not quoted whole. The lines that an error of Edit shows are shorter.
const MOST_QUOTED_BYTES: usize = 700;
const SHOWN_HEAD_BYTES: usize = 150;
const SHOWN_TAIL_BYTES: usize = 50;
/// An error that is longer all the same loses its middle.
const MOST_ERROR_BYTES: usize = 16_000;
/// How many texts of a call are looked for in its error: each look takes time.
const MOST_TEXTS: usize = 100;

/// A text of the call's as an error quotes it.
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_QUOTED_BYTES {
        return Cow::Borrowed(text);
    }
    let head = (0..=SHOWN_HEAD_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let tail = (text.len() - SHOWN_TAIL_BYTES..text.len()).find(|at| text.is_char_boundary(*at));
    Cow::Owned(format!("{}…{}", &text[..head], &text[tail.unwrap_or(text.len())..]))
}

/// The error of a call that was refused, with the call's long texts shortened.
pub fn bounded(mut error: String, call: &Call) -> String {
    if error.len() > MOST_QUOTED_BYTES {
        let arguments = crate::provider::parse(&call.arguments).unwrap_or_default();
        let mut texts = vec![call.name.as_str()];
        long_texts(&arguments, &mut texts);
        for text in texts.into_iter().filter(|text| text.len() > MOST_QUOTED_BYTES) {
            error = error.replace(text.trim(), &shortened(text.trim()));
        }
    }
    if error.len() <= MOST_ERROR_BYTES {
        return error;
    }
    let mut kept = HeadTail::new(MOST_ERROR_BYTES / 2, MOST_ERROR_BYTES / 2);
    kept.push(error.as_bytes());
    kept.parts().text()
}

/// The names and values of arguments that are too long to be quoted whole.
fn long_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    let mut add = |text: &'a str| {
        if text.len() > MOST_QUOTED_BYTES && texts.len() < MOST_TEXTS {
            texts.push(text);
        }
    };
    match value {
        Value::String(text) => add(text),
        Value::Array(items) => items.iter().for_each(|item| long_texts(item, texts)),
        Value::Object(members) => {
            members.keys().for_each(|name| add(name));
            members.values().for_each(|member| long_texts(member, texts));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &Value) -> Call {
        Call {
            id: "call_1".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_string(),
            refusal: None,
            extra: None,
        }
    }

    #[test]
    fn a_long_text_of_the_call_is_quoted_by_its_ends() {
        let long = format!("{}{}", "ä".repeat(400), "b".repeat(100));
        let short = format!("{}…{}", "ä".repeat(75), "b".repeat(50));
        let arguments = serde_json::json!({"list": [{&*long: 1}]});
        let error = bounded(format!("no \"{long}\"; try again"), &call("Read", &arguments));
        assert_eq!(error, format!("no \"{short}\"; try again"));
        let error = bounded(format!("no {long}"), &call(&long, &Value::Null));
        assert_eq!(error, format!("no {short}"));
        let kept = "x".repeat(MOST_QUOTED_BYTES);
        assert_eq!(bounded(format!("no {kept}"), &call(&kept, &Value::Null)), format!("no {kept}"));
    }

    #[test]
    fn any_other_long_error_loses_its_middle() {
        let error = bounded("x".repeat(1_000_000), &call("Read", &Value::Null));
        let half = "x".repeat(8000);
        assert_eq!(error, format!("{half}\n[… 984000 bytes left out …]\n{half}"));
    }
}
