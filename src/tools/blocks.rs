//! Results made of blocks, as tools of the Model Context Protocol give them: texts and images in a list.
//!
//! Pure. Images are looked at before they are shown, because one that an API refuses costs the run all of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::truncate::HeadTail;
use super::{Outcome, image};
use crate::conversation::Image;

/// How much of the beginning and as much of the end of all texts together is kept.
const HALF_TEXT_BYTES: usize = 15_000;

/// The result that an output is, if it is a JSON object with a list `content`; any other output is text.
///
/// Texts and what is said of images stand on lines of their own, in their order. `isError` is believed.
pub fn read(output: &[u8]) -> Option<Outcome> {
    let result: Value = serde_json::from_slice(output).ok()?;
    let mut text = HeadTail::new(HALF_TEXT_BYTES, HALF_TEXT_BYTES);
    let mut images = Vec::new();
    for (index, block) in result["content"].as_array()?.iter().enumerate() {
        if index > 0 {
            text.push(b"\n");
        }
        match (block["type"].as_str(), block["text"].as_str()) {
            (Some("text"), Some(piece)) => text.push(piece.as_bytes()),
            (Some("image"), _) => match showable(block) {
                Ok((image, what)) => {
                    images.push(image);
                    text.push(format!("[image: {what}]").as_bytes());
                }
                Err(why) => text.push(format!("[image left out: {why}]").as_bytes()),
            },
            (kind, _) => {
                let kind: String = kind.unwrap_or("unknown").chars().take(40).collect();
                text.push(format!("[a block of the type {kind:?} was left out]").as_bytes());
            }
        }
    }
    Some(Outcome { text: text.parts().text(), images, is_error: result["isError"] == Value::Bool(true) })
}

/// The image of a block, and what it is in words. Its bytes say of what type it is, whatever the block says.
///
/// Errors: why no API would take it.
fn showable(block: &Value) -> Result<(Image, String), String> {
    let digits = block["data"].as_str().ok_or("it has no \"data\"")?;
    // Some encoders break lines.
    let digits: String = digits.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    let file = STANDARD.decode(digits).map_err(|_| "its data is not base64")?;
    let format = image::Format::of(&file).ok_or("it is no PNG, JPEG, GIF or WebP")?;
    let name = format.name();
    if file.len() as u64 > image::MOST_BYTES {
        return Err(format!(
            "it is a {name} of {} bytes, and at most {} can be shown",
            file.len(),
            image::MOST_BYTES
        ));
    }
    let (width, height) =
        format.dimensions(&file).map_err(|problem| format!("it is a {name} that is {problem}"))?;
    if width.max(height) > image::MOST_PIXELS {
        return Err(format!(
            "it is {width} x {height} pixels, and at most {} a side can be shown",
            image::MOST_PIXELS
        ));
    }
    Ok((Image::new(format.media_type(), &file), format!("{name}, {width} x {height} pixels")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::image::tests::png_of;
    use serde_json::json;

    fn read(result: Value) -> Option<Outcome> {
        super::read(result.to_string().as_bytes())
    }

    #[test]
    fn texts_are_joined_and_an_error_is_believed() {
        let blocks = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two\n"}]);
        assert_eq!(read(json!({"content": blocks})), Some(Outcome::ok("one\ntwo\n")));
        assert_eq!(read(json!({"content": blocks, "isError": false})), Some(Outcome::ok("one\ntwo\n")));
        assert_eq!(read(json!({"content": blocks, "isError": true})), Some(Outcome::error("one\ntwo\n")));
        assert_eq!(read(json!({"content": []})), Some(Outcome::ok("")));
    }

    #[test]
    fn any_other_output_is_text() {
        for result in [json!({}), json!({"content": "x"}), json!([{"type": "text"}]), json!(5)] {
            assert_eq!(read(result.clone()), None, "{result}");
        }
        assert_eq!(super::read(b"{\"content\": ["), None);
    }

    #[test]
    fn an_image_is_shown_by_what_its_bytes_are() {
        let file = png_of(3, 2, 5);
        let mut data = STANDARD.encode(&file);
        data.insert(20, '\n');
        let result = json!({"content": [
            {"type": "text", "text": "before"}, {"type": "image", "mimeType": "image/jpeg", "data": data}]});
        let expected = Outcome::with_images(
            "before\n[image: PNG, 3 x 2 pixels]",
            vec![Image { media_type: "image/png".to_owned(), data: STANDARD.encode(&file) }],
        );
        assert_eq!(read(result), Some(expected));
    }

    #[test]
    fn what_cannot_be_shown_is_said() {
        let cut = STANDARD.encode(&png_of(3, 2, 5)[..30]);
        let wide = STANDARD.encode(png_of(8001, 2, 5));
        let large = STANDARD.encode(png_of(1, 1, image::MOST_BYTES as usize));
        for (block, said) in [
            (json!({"type": "image"}), "[image left out: it has no \"data\"]"),
            (json!({"type": "image", "data": "é"}), "[image left out: its data is not base64]"),
            (json!({"type": "image", "data": "AAAA"}), "[image left out: it is no PNG, JPEG, GIF or WebP]"),
            (json!({"type": "image", "data": cut}), "[image left out: it is a PNG that is cut off]"),
            (
                json!({"type": "image", "data": wide}),
                "[image left out: it is 8001 x 2 pixels, and at most 8000 a side can be shown]",
            ),
            (
                json!({"type": "image", "data": large}),
                "[image left out: it is a PNG of 3932217 bytes, and at most 3932160 can be shown]",
            ),
            (json!({"type": "audio", "data": "AAAA"}), "[a block of the type \"audio\" was left out]"),
            (json!({"type": "text"}), "[a block of the type \"text\" was left out]"),
            (json!(7), "[a block of the type \"unknown\" was left out]"),
        ] {
            assert_eq!(read(json!({ "content": [block] })), Some(Outcome::ok(said)));
        }
    }

    #[test]
    fn long_texts_are_cut_together() {
        let block = json!({"type": "text", "text": "x".repeat(20_000)});
        let text = read(json!({"content": [block, block]})).unwrap().text;
        assert!(text.len() < 31_000 && text.contains("[… 10001 bytes left out …]"), "{}", text.len());
    }
}
