//! Results made of blocks, as tools of the Model Context Protocol give them: texts and images in a list.
//!
//! Pure. Images are looked at before they are shown, because one that an API refuses costs the run all of them.
//! Blocks are read one at a time, so that a list of millions takes no more memory than its text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::truncate::HeadTail;
use super::{Outcome, image, pieces};
use crate::conversation::Image;

/// How much of the beginning and as much of the end of all texts together is kept.
const HALF_TEXT_BYTES: usize = 15_000;
/// How many blocks are looked at.
const MOST_BLOCKS: usize = 1000;
/// The most types of other blocks that are named, and letters of each.
const MOST_TYPES: usize = 5;
const MOST_TYPE_LETTERS: usize = 40;

/// The result that an output is, if it is a JSON object with a list `content`; any other output is text.
///
/// Texts and what is said of images stand on lines of their own, in their order, and after them what is said of
/// other blocks. `isError` is believed.
pub fn read(output: &[u8]) -> Option<Outcome> {
    let result = pieces::checked(output)?;
    let mut blocks = pieces::elements(pieces::member(result, "content")?)?;
    let mut shown = Shown::new();
    for block in blocks.by_ref().take(MOST_BLOCKS) {
        shown.add(block);
    }
    shown.say_what_is_missing(blocks.next().is_some());
    let is_error = pieces::member(result, "isError") == Some("true");
    Some(Outcome { text: shown.text.parts().text(), images: shown.images, is_error })
}

/// What the blocks so far come to.
struct Shown {
    text: HeadTail,
    is_begun: bool,
    images: Vec<Image>,
    /// How many blocks are neither text nor image.
    others: usize,
    /// Their types, each once.
    types: Vec<String>,
}

impl Shown {
    fn new() -> Shown {
        Shown {
            text: HeadTail::new(HALF_TEXT_BYTES, HALF_TEXT_BYTES),
            is_begun: false,
            images: Vec::new(),
            others: 0,
            types: Vec::new(),
        }
    }

    fn add(&mut self, block: &str) {
        let member = |name: &str| pieces::member(block, name).and_then(pieces::text);
        let kind = member("type");
        match (kind.as_deref(), member("text")) {
            (Some("text"), Some(piece)) => self.say(&piece),
            (Some("image"), _) => match showable(member("data")) {
                Ok((image, what)) => {
                    self.images.push(image);
                    self.say(&format!("[image: {what}]"));
                }
                Err(why) => self.say(&format!("[image left out: {why}]")),
            },
            (kind, _) => self.count(kind.unwrap_or("unknown")),
        }
    }

    fn say(&mut self, text: &str) {
        if std::mem::replace(&mut self.is_begun, true) {
            self.text.push(b"\n");
        }
        self.text.push(text.as_bytes());
    }

    fn count(&mut self, kind: &str) {
        self.others += 1;
        let shown = format!("{:?}", kind.chars().take(MOST_TYPE_LETTERS).collect::<String>());
        if self.types.len() < MOST_TYPES && !self.types.contains(&shown) {
            self.types.push(shown);
        }
    }

    fn say_what_is_missing(&mut self, are_there_more: bool) {
        let types = self.types.join(", ");
        match self.others {
            0 => {}
            1 => self.say(&format!("[a block of the type {types} was left out]")),
            count => self.say(&format!("[{count} blocks that are no text or image were left out: {types}]")),
        }
        if are_there_more {
            self.say(&format!("[what follows the first {MOST_BLOCKS} blocks was left out]"));
        }
    }
}

/// The image that digits of base64 are, and what it is in words. Its bytes say of what type it is, whatever the
/// block says.
///
/// Errors: why no API would take it.
fn showable(digits: Option<String>) -> Result<(Image, String), String> {
    let mut digits = digits.ok_or("it has no \"data\"")?;
    // Some encoders break lines.
    digits.retain(|letter| !letter.is_ascii_whitespace());
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
    use serde_json::{Value, json};

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
    fn other_blocks_are_counted_and_said_once() {
        let kinds = ["audio", "b", "audio", "c", "d", "e", "f"];
        let mut blocks: Vec<Value> = kinds.iter().map(|kind| json!({ "type": kind })).collect();
        blocks.insert(1, json!({"type": "text", "text": "said"}));
        let said =
            "said\n[7 blocks that are no text or image were left out: \"audio\", \"b\", \"c\", \"d\", \"e\"]";
        assert_eq!(read(json!({ "content": blocks })), Some(Outcome::ok(said)));
        let long = json!({"content": [{"type": "x".repeat(99)}]});
        let said = format!("[a block of the type \"{}\" was left out]", "x".repeat(40));
        assert_eq!(read(long), Some(Outcome::ok(said)));
    }

    /// As many values as there could be took forty times the memory of the text, and a line for each.
    #[test]
    fn only_so_many_blocks_are_looked_at() {
        let blocks = |count: usize| format!("{{\"content\":[{}1],\"isError\":true}}", "1,".repeat(count - 1));
        let others = "[1000 blocks that are no text or image were left out: \"unknown\"]";
        assert_eq!(super::read(blocks(1000).as_bytes()), Some(Outcome::error(others)));
        let more = format!("{others}\n[what follows the first 1000 blocks was left out]");
        for count in [1001, 500_000] {
            assert_eq!(super::read(blocks(count).as_bytes()), Some(Outcome::error(more.as_str())));
        }
    }

    #[test]
    fn long_texts_are_cut_together() {
        let block = json!({"type": "text", "text": "x".repeat(20_000)});
        let text = read(json!({"content": [block, block]})).unwrap().text;
        assert!(text.len() < 31_000 && text.contains("[… 10001 bytes left out …]"), "{}", text.len());
    }
}
