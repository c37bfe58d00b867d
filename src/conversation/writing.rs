//! What is said as lines of JSON, as a session keeps it: what `reading` reads.
//!
//! No value is made in between, since a result may be long.

use serde_json::Value;

use super::{CallResult, Image, Part, Role};

/// Room for a line about a short text, a call or its result.
const USUAL_BYTES: usize = 512;

/// Parts that one speaker said, as one line of JSON without the line's end.
pub fn line(role: Role, parts: &[Part], origin: Option<&str>) -> String {
    let mut line = String::with_capacity(USUAL_BYTES);
    line.push_str(match role {
        Role::User => r#"{"type":"user","parts":["#,
        Role::Assistant => r#"{"type":"assistant","parts":["#,
    });
    push_parts(&mut line, parts);
    line.push(']');
    if let Some(origin) = origin {
        push_member(&mut line, "origin", origin);
    }
    line.push('}');
    line
}

/// Adds parts as JSON with commas in between. They are written as they stand: a value in between would copy a long
/// result several times.
pub fn push_parts(line: &mut String, parts: &[Part]) {
    for (index, part) in parts.iter().enumerate() {
        line.push_str(if index > 0 { "," } else { "" });
        match part {
            Part::Text(text) => {
                line.push_str(r#"{"type":"text""#);
                push_member(line, "text", text);
            }
            Part::Image(image) => {
                line.push_str(r#"{"type":"image""#);
                push_member(line, "media_type", &image.media_type);
                push_member(line, "data", &image.data);
            }
            Part::Vendor(text) => {
                line.push_str(r#"{"type":"vendor""#);
                push_member(line, "json", text);
            }
            Part::Result(result) => push_result(line, result),
            Part::Call(call) => {
                line.push_str(r#"{"type":"call""#);
                push_member(line, "id", &call.id);
                push_member(line, "name", &call.name);
                push_member(line, "arguments", &call.arguments);
                let rest = [("refusal", &call.refusal), ("extra", &call.extra)];
                for (name, text) in rest.iter().filter_map(|(name, text)| Some((name, text.as_ref()?))) {
                    push_member(line, name, text);
                }
            }
        }
        line.push('}');
    }
}

fn push_result(line: &mut String, result: &CallResult) {
    line.push_str(r#"{"type":"result""#);
    push_member(line, "call_id", &result.call_id);
    push_member(line, "text", &result.text);
    line.push_str(if result.is_error { r#","is_error":true"# } else { r#","is_error":false"# });
    if !result.images.is_empty() {
        let images: Vec<Value> = result.images.iter().map(Image::to_json).collect();
        line.push_str(&format!(r#","images":{}"#, Value::from(images)));
    }
}

/// Adds a member of an object, behind others, whose value is a text.
pub fn push_member(line: &mut String, name: &str, text: &str) {
    line.push_str(",\"");
    line.push_str(name);
    line.push_str("\":");
    push_text(line, text);
}

/// Adds a text as JSON. Most hold nothing that JSON escapes: they are written once.
pub fn push_text(line: &mut String, text: &str) {
    if text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\')) {
        line.push_str(&serde_json::to_string(text).expect("a text is always JSON"));
    } else {
        line.extend(["\"", text, "\""]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_json_has_it() {
        for character in ('\0'..='\u{ff}').chain(['\u{2028}', '\u{fffd}', '\u{1f600}']) {
            for text in [String::from(character), format!("a{character}b")] {
                let mut line = "[".to_owned();
                push_text(&mut line, &text);
                assert_eq!(line, format!("[{}", Value::from(text)));
            }
        }
    }
}
