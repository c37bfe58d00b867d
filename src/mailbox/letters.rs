//! What one line of a client's says: a message of the user's, or something of the control protocol.
//!
//! Pure. A line that is neither is told apart from a message that cannot be used: the first says that the two
//! sides do not understand each other, the second costs no more than its turn.

use serde_json::{Map, Value};

use crate::conversation::{Image, Part};
use crate::provider;

/// What a line says.
#[derive(Debug, PartialEq)]
pub enum Letter {
    /// What the user says and shows: one turn.
    Message(Message),
    /// A request of the client's, which gets one answer.
    Request {
        /// What the answer names.
        id: String,
        /// Its subtype and what belongs to that.
        request: Map<String, Value>,
    },
    /// The client's answer to a request of ours.
    Answer {
        /// The request that it answers.
        id: String,
        /// What was asked for, or why it was refused.
        answer: Result<Value, String>,
    },
    /// Nothing that matters here.
    Nothing,
}

/// A message of the user's.
#[derive(Debug, PartialEq)]
pub struct Message {
    /// What it says and shows, or why that cannot be sent.
    pub parts: Result<Vec<Part>, String>,
    /// The line's object as it came, for whoever wants it repeated.
    pub object: Map<String, Value>,
}

/// What a line says, if it says anything.
///
/// # Errors
///
/// What is wrong with it.
pub fn read(line: &[u8]) -> Result<Letter, String> {
    let text = std::str::from_utf8(line)
        .map_err(|error| format!("the byte at offset {} is not valid UTF-8", error.valid_up_to()))?;
    if text.trim().is_empty() {
        return Ok(Letter::Nothing);
    }
    let mut object = match provider::parse(text.trim()) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(format!("it is no JSON object: {}", provider::excerpt(text))),
        Err(_) => return Err(format!("it is not JSON: {}", provider::excerpt(text))),
    };
    let kind = object.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "user" => Ok(Letter::Message(message(object)?)),
        "control_request" => {
            let id = id(&object).ok_or("a control_request needs a \"request_id\" that is a text")?;
            match object.remove("request") {
                Some(Value::Object(request)) => Ok(Letter::Request { id, request }),
                _ => Err("a control_request needs a \"request\" that is an object".to_owned()),
            }
        }
        "control_response" => answer(object.remove("response")),
        // Nothing of the client's is still being worked on when its next line is read.
        "control_cancel_request" | "keep_alive" => Ok(Letter::Nothing),
        "" => Err("it has no \"type\" that is a text".to_owned()),
        other => Err(format!(
            "\"{}\" is no type that is read here: there are user, control_request, control_response, \
             control_cancel_request and keep_alive",
            provider::excerpt(other)
        )),
    }
}

fn id(object: &Map<String, Value>) -> Option<String> {
    object.get("request_id").and_then(Value::as_str).map(str::to_owned)
}

fn answer(response: Option<Value>) -> Result<Letter, String> {
    let Some(Value::Object(mut response)) = response else {
        return Err("a control_response needs a \"response\" that is an object".to_owned());
    };
    let id = id(&response).ok_or("a control_response needs a \"request_id\" that is a text")?;
    let answer = match response.get("subtype").and_then(Value::as_str) {
        Some("success") => Ok(response.remove("response").unwrap_or_default()),
        Some("error") => {
            Err(response.get("error").and_then(Value::as_str).unwrap_or("no reason was given").to_owned())
        }
        _ => return Err("a control_response has the \"subtype\" success or error".to_owned()),
    };
    Ok(Letter::Answer { id, answer })
}

/// A message is understood if it has a role and a content; what the content holds is its own affair.
fn message(object: Map<String, Value>) -> Result<Message, String> {
    let message = object.get("message").and_then(Value::as_object);
    let message = message.ok_or("a user's line needs a \"message\" that is an object")?;
    if message.get("role").and_then(Value::as_str) != Some("user") {
        return Err("the \"role\" of a user's message is \"user\"".to_owned());
    }
    let content = message.get("content").ok_or("a user's message needs a \"content\"")?;
    Ok(Message { parts: parts(content), object })
}

fn parts(content: &Value) -> Result<Vec<Part>, String> {
    let parts = match content {
        Value::String(text) => vec![Part::Text(text.clone())],
        Value::Array(blocks) => blocks.iter().map(part).collect::<Result<_, _>>()?,
        _ => return Err("the content of a message is a text or a list of blocks".to_owned()),
    };
    let says = |part: &Part| !matches!(part, Part::Text(text) if text.trim().is_empty());
    match parts.iter().any(says) {
        true => Ok(parts.into_iter().filter(says).collect()),
        false => Err("a message of the user's is empty".to_owned()),
    }
}

fn part(block: &Value) -> Result<Part, String> {
    match (block["type"].as_str().unwrap_or_default(), block["text"].as_str()) {
        ("text", Some(text)) => Ok(Part::Text(text.to_owned())),
        ("text", None) => Err("a text block of a message has no text".to_owned()),
        ("image", _) => image(&block["source"]).map(Part::Image),
        (other, _) => Err(format!(
            "a block of type \"{}\" cannot be sent: a message of the user's holds text and images",
            provider::excerpt(other)
        )),
    }
}

fn image(source: &Value) -> Result<Image, String> {
    if source["type"] != "base64" {
        return Err("an image of a message is not in base64: nothing is fetched from elsewhere".to_owned());
    }
    Image::from_json(source).map_err(|why| format!("an image of a message cannot be sent: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(content: &Value) -> Result<Vec<Part>, String> {
        let line = json!({"type": "user", "message": {"role": "user", "content": content}}).to_string();
        match read(line.as_bytes()) {
            Ok(Letter::Message(message)) => message.parts,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_message_is_a_text_or_blocks_of_text_and_images() {
        let text = |text: &str| Part::Text(text.to_owned());
        assert_eq!(said(&json!("hi")), Ok(vec![text("hi")]));
        let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBORw=="});
        let blocks = json!([{"type": "text", "text": "see"}, {"type": "image", "source": source}, {"type": "text", "text": ""}]);
        let image = Part::Image(Image::new("image/png", b"\x89PNG"));
        assert_eq!(said(&blocks), Ok(vec![text("see"), image]));
    }

    #[test]
    fn a_message_that_cannot_be_sent_says_why() {
        let image = |source: Value| json!([{"type": "image", "source": source}]);
        for (content, why) in [
            (json!(""), "a message of the user's is empty"),
            (json!([]), "a message of the user's is empty"),
            (json!(7), "the content of a message is a text or a list of blocks"),
            (json!([{"type": "text"}]), "a text block of a message has no text"),
            (
                json!([{"type": "document"}]),
                "a block of type \"document\" cannot be sent: a message of the user's holds text and images",
            ),
            (
                json!(["hi"]),
                "a block of type \"\" cannot be sent: a message of the user's holds text and images",
            ),
            (
                image(json!({"type": "url", "url": "https://example.com/a.png"})),
                "an image of a message is not in base64: nothing is fetched from elsewhere",
            ),
            (
                image(json!({"type": "base64", "media_type": "image/svg+xml", "data": "AAAA"})),
                "an image of a message cannot be sent: it is no PNG, JPEG, GIF or WebP",
            ),
        ] {
            assert_eq!(said(&content), Err(why.to_owned()), "{content}");
        }
    }

    #[test]
    fn the_control_protocol_is_told_by_its_types() {
        let request =
            json!({"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}});
        let Ok(Letter::Request { id, request }) = read(request.to_string().as_bytes()) else { panic!() };
        assert_eq!((id.as_str(), Value::Object(request)), ("1", json!({"subtype": "interrupt"})));
        let answer = |response: Value| {
            read(json!({"type": "control_response", "response": response}).to_string().as_bytes())
        };
        assert_eq!(
            answer(json!({"subtype": "success", "request_id": "2", "response": {"behavior": "allow"}})),
            Ok(Letter::Answer { id: "2".to_owned(), answer: Ok(json!({"behavior": "allow"})) })
        );
        assert_eq!(
            answer(json!({"subtype": "error", "request_id": "2", "error": "no"})),
            Ok(Letter::Answer { id: "2".to_owned(), answer: Err("no".to_owned()) })
        );
        for line in ["", " \t\r", r#"{"type":"keep_alive"}"#, r#"{"type":"control_cancel_request"}"#] {
            assert_eq!(read(line.as_bytes()), Ok(Letter::Nothing), "{line:?}");
        }
    }

    #[test]
    fn a_line_that_is_neither_says_what_is_wrong() {
        for (line, why) in [
            (&b"hello"[..], "it is not JSON: hello"),
            (b"[1]", "it is no JSON object: [1]"),
            (b"\"\xff\"", "the byte at offset 1 is not valid UTF-8"),
            (b"{}", "it has no \"type\" that is a text"),
            (
                br#"{"type":"assistant"}"#,
                "\"assistant\" is no type that is read here: there are user, control_request, control_response, \
                 control_cancel_request and keep_alive",
            ),
            (br#"{"type":"user","content":"hi"}"#, "a user's line needs a \"message\" that is an object"),
            (
                br#"{"type":"user","message":{"role":"assistant","content":"hi"}}"#,
                "the \"role\" of a user's message is \"user\"",
            ),
            (br#"{"type":"user","message":{"role":"user"}}"#, "a user's message needs a \"content\""),
            (
                br#"{"type":"control_request","request":{}}"#,
                "a control_request needs a \"request_id\" that is a text",
            ),
            (
                br#"{"type":"control_request","request_id":"1"}"#,
                "a control_request needs a \"request\" that is an object",
            ),
            (br#"{"type":"control_response"}"#, "a control_response needs a \"response\" that is an object"),
            (
                br#"{"type":"control_response","response":{"request_id":"1"}}"#,
                "a control_response has the \"subtype\" success or error",
            ),
        ] {
            assert_eq!(read(line), Err(why.to_owned()), "{}", String::from_utf8_lossy(line));
        }
    }
}
