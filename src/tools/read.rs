//! `Read`: a window on a text file, or an image.
//!
//! Files are streamed: memory is bounded by the window, whatever the size of the file or of its lines.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};

use crate::conversation::Image;
use crate::tools::lines::{Encoding, Newlines, Trouble, Utf16Decoder, pass_lines};
use crate::tools::opening::{cannot_read, open};
use crate::tools::window::{Window, quoted_path};
use crate::tools::{Arguments, Outcome, Spec, Workspace, arguments, image, magic, slips};

/// What the model is told of `Read`.
pub const SPEC: Spec = Spec {
    name: "Read",
    description: "Returns the text of a file as it is, without line numbers: at most 2000 lines or 50000 bytes, \
        and 2000 bytes of a line. What was left out, and the call that continues, is said in brackets at the end. \
        PNG, JPEG, GIF and WebP images are shown.",
    arguments: &["file_path", "offset", "limit"],
    schema: r#"{"type":"object","properties":{"file_path":{"type":"string","description":"absolute or relative to the workspace"},"offset":{"type":"integer","description":"first line, counted from 1"},"limit":{"type":"integer","description":"number of lines"}},"required":["file_path"]}"#,
};

/// How far into a file the first line asked for is looked for: behind that a hole of any size may lie.
const MAX_SKIPPED_BYTES: u64 = 1 << 30;
/// A NUL in the first bytes of a file is what tells binary from text.
const SNIFFED_BYTES: u64 = 8192;
const BUFFER_BYTES: usize = 1 << 16;

/// Runs `Read`.
pub fn run(arguments: &Arguments, workspace: &Workspace) -> Outcome {
    show(arguments, workspace).unwrap_or_else(Outcome::error)
}

/// The file that a call of this tool names.
pub fn file_path(arguments: &Arguments) -> Result<&str, String> {
    Request::read(arguments).map(|request| request.file_path)
}

/// Why [`copy_raw`] did not copy.
#[derive(Debug)]
pub enum RawError {
    /// The file cannot be read; the text is what `Read` answers.
    Refused(String),
    /// The output cannot be written.
    Output(io::Error),
}

/// Copies the bytes that a call of `Read` asks for to `out` and adds nothing: the whole file, or the
/// lines asked for; of an image all of it. What `Read` refuses is refused, but for images of any size.
pub fn copy_raw(arguments: &Arguments, workspace: &Workspace, out: &mut dyn Write) -> Result<(), RawError> {
    let mut request = Request::read(arguments).map_err(RawError::Refused)?;
    let opened = Opened::open(request.file_path, workspace).map_err(RawError::Refused)?;
    let encoding = match opened.content {
        Content::Text(encoding) => encoding,
        Content::Image(_) => {
            (request.offset, request.limit) = (1, None);
            Encoding::Utf8
        }
        Content::Binary(kind) => return Err(RawError::Refused(opened.is_binary(kind))),
    };
    let (name, mut newlines) = (opened.name, Newlines::of(encoding));
    let mut reader = BufReader::with_capacity(opened.buffer_bytes, opened.bytes);
    let raw_error = |trouble| match trouble {
        Trouble::Reading(error) => RawError::Refused(cannot_read(&name, &error)),
        Trouble::Writing(error) => RawError::Output(error),
        Trouble::TooFar => RawError::Refused(too_far(&name, request.offset)),
    };
    let skipped =
        pass_lines(&mut reader, request.offset - 1, MAX_SKIPPED_BYTES, &mut newlines, &mut io::sink())
            .map_err(raw_error)?;
    let rest = reader.fill_buf().map_err(|error| RawError::Refused(cannot_read(&name, &error)))?;
    if rest.is_empty() && request.offset > 1 {
        return Err(RawError::Refused(past_end(&name, request.offset, skipped)));
    }
    let lines = request.limit.unwrap_or(u64::MAX);
    pass_lines(&mut reader, lines, u64::MAX, &mut newlines, out).map_err(raw_error)?;
    Ok(())
}

fn past_end(name: &str, offset: u64, lines: u64) -> String {
    format!("offset {offset} is past the end: {name} has {lines} line{}", if lines == 1 { "" } else { "s" })
}

fn too_far(name: &str, offset: u64) -> String {
    format!(
        "line {offset} of {name} does not begin within its first {MAX_SKIPPED_BYTES} bytes, and Read looks no \
         further; give a smaller offset, or use sed or tail -c if you can run a command"
    )
}

/// What a call asks for.
pub struct Request<'a> {
    file_path: &'a str,
    /// The first line, counted from 1.
    pub offset: u64,
    /// How many lines at most.
    pub limit: Option<u64>,
}

impl Request<'_> {
    fn read(arguments: &Arguments) -> Result<Request<'_>, String> {
        let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?;
        let file_path = given.text("file_path")?;
        if file_path.is_empty() {
            return Err("file_path is empty; name the file to read".to_owned());
        }
        let at_least = |name: &str, least: i64| match given.optional_integer(name)? {
            Some(number) if number < least => {
                Err(given.complaint(&format!("counts lines from 1, so \"{name}\" cannot be {number}")))
            }
            number => Ok(number.map(i64::unsigned_abs)),
        };
        // An offset of 0 can only mean the start.
        let offset = at_least("offset", 0)?.unwrap_or(1).max(1);
        Ok(Request { file_path, offset, limit: at_least("limit", 1)? })
    }
}

/// A file whose beginning was looked at.
struct Opened {
    name: String,
    size: u64,
    content: Content,
    /// How much of it is worth reading at a time.
    buffer_bytes: usize,
    bytes: io::Chain<Cursor<Vec<u8>>, io::Take<File>>,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Text(Encoding),
    Image(image::Format),
    /// Anything else, with a name for it if there is one.
    Binary(Option<&'static str>),
}

impl Content {
    /// Tells it from the beginning of a file.
    fn of(head: &[u8]) -> Content {
        match head {
            // Four bytes of UTF-32, which nobody writes, are left to be binary.
            [0xFF, 0xFE, 0, 0, ..] => return Content::Binary(None),
            [0xFF, 0xFE, ..] => return Content::Text(Encoding::Utf16 { little_endian: true }),
            [0xFE, 0xFF, ..] => return Content::Text(Encoding::Utf16 { little_endian: false }),
            _ => {}
        }
        let has_nul = head.contains(&0);
        // A text may begin with "GIF89a" or "%PDF-", and what begins so may have no NUL for a long while.
        let is_utf8 = std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
        match (image::Format::of(head), magic::name(head)) {
            _ if is_utf8 && !has_nul => Content::Text(Encoding::Utf8),
            (Some(format), _) => Content::Image(format),
            (None, None) if !has_nul => Content::Text(Encoding::Utf8),
            (None, kind) => Content::Binary(kind),
        }
    }
}

impl Opened {
    fn open(file_path: &str, workspace: &Workspace) -> Result<Opened, String> {
        let path = workspace.find(file_path)?;
        let name = workspace.display(&path);
        let (file, metadata) = open(&path, workspace)?;
        let size = metadata.len();
        // With room behind its end, else that is looked for by two small reads more. It may have grown, too.
        let mut head = Vec::with_capacity(size.min(SNIFFED_BYTES) as usize + 64);
        (&file).take(SNIFFED_BYTES).read_to_end(&mut head).map_err(|error| cannot_read(&name, &error))?;
        let content = Content::of(&head);
        // Of a whole file nothing more is read.
        let is_whole = (head.len() as u64) < SNIFFED_BYTES;
        let buffer_bytes = if is_whole { head.len().max(1) } else { BUFFER_BYTES };
        let rest = file.take(if is_whole { 0 } else { u64::MAX });
        Ok(Opened { name, size, content, buffer_bytes, bytes: Cursor::new(head).chain(rest) })
    }

    fn is_binary(&self, kind: Option<&str>) -> String {
        let kind = kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
        format!(
            "{} is a binary file of {} bytes{kind}; only text and PNG, JPEG, GIF and WebP images can be read",
            self.name, self.size
        )
    }
}

fn show(arguments: &Arguments, workspace: &Workspace) -> Result<Outcome, String> {
    let request = Request::read(arguments)?;
    let opened = Opened::open(request.file_path, workspace)?;
    match opened.content {
        Content::Binary(kind) => Err(opened.is_binary(kind)),
        Content::Image(format) => show_image(opened, format),
        Content::Text(Encoding::Utf8) => {
            let reader = BufReader::with_capacity(opened.buffer_bytes, opened.bytes);
            show_utf8(reader, &request, &opened.name, &[]).map(Outcome::ok)
        }
        Content::Text(Encoding::Utf16 { little_endian }) => {
            let decoded = Utf16Decoder::new(opened.bytes, little_endian);
            let reader = BufReader::with_capacity(BUFFER_BYTES, decoded);
            show_utf8(reader, &request, &opened.name, &["decoded from UTF-16"]).map(Outcome::ok)
        }
    }
}

/// The image at `file_path`, for a prompt that mentions it.
///
/// # Errors
///
/// Why it cannot be shown.
pub fn image(file_path: &str, workspace: &Workspace) -> Result<Image, String> {
    let opened = Opened::open(file_path, workspace)?;
    let Content::Image(format) = opened.content else {
        return Err(format!("{} is no PNG, JPEG, GIF or WebP image", opened.name));
    };
    let mut outcome = show_image(opened, format)?;
    Ok(outcome.images.remove(0))
}

/// The image in a file, and what it is in words.
fn show_image(opened: Opened, format: image::Format) -> Result<Outcome, String> {
    let Opened { name, size, bytes, .. } = opened;
    let kind = format.name();
    // What a file system says of the size may be wrong, and the file may grow.
    let mut file = Vec::new();
    bytes.take(image::MOST_BYTES + 1).read_to_end(&mut file).map_err(|error| cannot_read(&name, &error))?;
    let smaller = format!(
        "if you can run a command, make a smaller copy and read that, as with: \
         convert {}'[0]' -resize '1568x1568>' smaller.png",
        quoted_path(&name)
    );
    if file.len() as u64 > image::MOST_BYTES {
        let most = image::MOST_BYTES;
        return Err(format!(
            "{name} is a {kind} image of {} bytes, and at most {most} can be shown; {smaller}",
            size.max(most + 1)
        ));
    }
    let (width, height) = format
        .dimensions(&file)
        .map_err(|problem| format!("{name} is a {kind} image of {} bytes that is {problem}", file.len()))?;
    if width.max(height) > image::MOST_PIXELS {
        return Err(format!(
            "{name} is a {kind} image of {width} x {height} pixels, and at most {} a side can be shown; {smaller}",
            image::MOST_PIXELS
        ));
    }
    let text = format!("{name}: {kind} image, {width} x {height} pixels, {} bytes", file.len());
    Ok(Outcome::with_images(text, vec![Image::new(format.media_type(), &file)]))
}

/// The asked lines of a text, with what must be said of them in brackets at the end.
fn show_utf8(
    mut reader: impl BufRead,
    request: &Request,
    name: &str,
    said_already: &[&str],
) -> Result<String, String> {
    let unreadable = |error: io::Error| cannot_read(name, &error);
    if reader.fill_buf().map_err(unreadable)?.starts_with("\u{feff}".as_bytes()) {
        reader.consume("\u{feff}".len());
    }
    let mut newlines = Newlines::of(Encoding::Utf8);
    let skipped =
        pass_lines(&mut reader, request.offset - 1, MAX_SKIPPED_BYTES, &mut newlines, &mut io::sink())
            .map_err(|trouble| match trouble {
                Trouble::Reading(error) | Trouble::Writing(error) => cannot_read(name, &error),
                Trouble::TooFar => too_far(name, request.offset),
            })?;
    if reader.fill_buf().map_err(unreadable)?.is_empty() {
        return match request.offset {
            1 => Ok("(the file is empty)".to_owned()),
            offset => Err(past_end(name, offset, skipped)),
        };
    }
    let window = Window::fill(&mut reader, request).map_err(unreadable)?;
    Ok(window.with_remarks(request, name, said_already))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::tools::image::tests::png_of;
    use crate::tools::write::tests::{Folder, skipped};
    use serde_json::{Value, json};
    use std::fs::{self, OpenOptions};
    use std::io::ErrorKind;

    fn call(folder: &Folder, arguments: Value) -> Outcome {
        run(arguments.as_object().unwrap(), &folder.workspace())
    }

    /// What Read answers to a path.
    pub fn read(folder: &Folder, path: &str) -> Outcome {
        call(folder, json!({ "file_path": path }))
    }

    /// What a raw copy gives, or why there is none.
    pub fn raw(folder: &Folder, arguments: Value) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        match copy_raw(arguments.as_object().unwrap(), &folder.workspace(), &mut out) {
            Ok(()) => Ok(out),
            Err(RawError::Refused(text)) => Err(text),
            Err(RawError::Output(error)) => panic!("{error}"),
        }
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        format!("\u{feff}{text}").encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn the_text_comes_as_it_is() {
        let folder = Folder::new("read-plain");
        for text in ["one\n", "no end", "\n", "\r\n\r\n", "a\r\nb\nc\rd", "h\u{e9}\t \u{1f600}\n\n\n"] {
            folder.put("a.txt", text);
            assert_eq!(read(&folder, "a.txt"), Outcome::ok(text));
            assert_eq!(read(&folder, "./a.txt"), Outcome::ok(text));
            let absolute = folder.path.join("a.txt").into_os_string().into_string().unwrap();
            assert_eq!(read(&folder, &absolute), Outcome::ok(text));
            assert_eq!(raw(&folder, json!({ "file_path": "a.txt" })).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn an_empty_file_is_said_to_be_empty() {
        let folder = Folder::new("read-empty");
        folder.put("empty", "");
        folder.put("mark", "\u{feff}");
        assert_eq!(read(&folder, "empty"), Outcome::ok("(the file is empty)"));
        assert_eq!(read(&folder, "mark"), Outcome::ok("(the file is empty)"));
        assert_eq!(raw(&folder, json!({ "file_path": "empty" })), Ok(vec![]));
        let outcome = call(&folder, json!({ "file_path": "empty", "offset": 2 }));
        assert_eq!(outcome, Outcome::error("offset 2 is past the end: empty has 0 lines"));
    }

    #[test]
    fn offset_and_limit_choose_lines_and_the_rest_is_named() {
        let folder = Folder::new("read-window");
        folder.put("a", "1\n2\n3\n4\n5");
        let window = |offset: Value, limit: Value| {
            call(&folder, json!({ "file_path": "a", "offset": offset, "limit": limit }))
        };
        let two = "2\n3\n[lines 2-3 shown, more follow: Read with offset=4 and limit=2]";
        assert_eq!(window(json!(2), json!(2)), Outcome::ok(two));
        assert_eq!(window(json!("2"), json!(2.0)), Outcome::ok(two));
        assert_eq!(window(json!(4), json!(2)), Outcome::ok("4\n5"));
        assert_eq!(window(json!(4), json!(9)), Outcome::ok("4\n5"));
        assert_eq!(window(json!(5), Value::Null), Outcome::ok("5"));
        assert_eq!(
            window(json!(0), json!(1)).text,
            "1\n[lines 1-1 shown, more follow: Read with offset=2 and limit=1]"
        );
        assert_eq!(window(json!(6), Value::Null), Outcome::error("offset 6 is past the end: a has 5 lines"));
        folder.put("a", "1\n");
        assert_eq!(window(json!(2), Value::Null), Outcome::error("offset 2 is past the end: a has 1 line"));
        assert_eq!(
            window(json!(i64::MAX), json!(i64::MAX)).text,
            format!("offset {} is past the end: a has 1 line", i64::MAX)
        );
    }

    #[test]
    fn bad_arguments_state_the_schema() {
        let folder = Folder::new("read-arguments");
        let cases = [
            (json!({}), "Read needs \"file_path\""),
            (json!({"file_path": ["a"]}), "Read takes a string as \"file_path\", not an array"),
            (
                json!({"file_path": "a", "limit": "all"}),
                "Read takes a whole number as \"limit\", not \"all\"",
            ),
            (json!({"file_path": "a", "limit": 0}), "Read counts lines from 1, so \"limit\" cannot be 0"),
            (json!({"file_path": "a", "offset": -1}), "Read counts lines from 1, so \"offset\" cannot be -1"),
            (json!({"file_path": "a", "pages": "1"}), "Read has no argument \"pages\""),
        ];
        for (arguments, problem) in cases {
            let text = format!("{problem}; the schema of its arguments is {}", SPEC.schema);
            assert_eq!(call(&folder, arguments), Outcome::error(text));
        }
        folder.put("a", "x");
        assert_eq!(call(&folder, json!({ "path": "a" })), Outcome::ok("x"));
        assert_eq!(read(&folder, ""), Outcome::error("file_path is empty; name the file to read"));
    }

    #[test]
    fn at_most_2000_lines_are_shown() {
        let folder = Folder::new("read-lines");
        let lines: Vec<String> = (1..=4001).map(|number| format!("{number}\n")).collect();
        folder.put("a", lines.concat());
        let mut expected = lines[..2000].concat();
        expected.push_str("[lines 1-2000 shown, more follow: Read with offset=2001]");
        assert_eq!(read(&folder, "a"), Outcome::ok(expected));
        folder.put("a", lines[..2000].concat());
        assert_eq!(read(&folder, "a"), Outcome::ok(lines[..2000].concat()));
    }

    #[test]
    fn at_most_50000_bytes_are_shown_and_following_the_calls_shows_all() {
        let folder = Folder::new("read-bytes");
        let text: String =
            (0..3000).map(|number| format!("{number} {}\n", "\u{e9}".repeat(number % 90))).collect();
        folder.put("a", &text);
        let (mut seen, mut offset) = (String::new(), 1);
        loop {
            let shown = call(&folder, json!({ "file_path": "a", "offset": offset, "limit": 100_000 })).text;
            assert!(shown.len() < 50_200);
            let Some((lines, remark)) = shown.rsplit_once("[lines ") else {
                seen.push_str(&shown);
                break;
            };
            seen.push_str(lines);
            let next = remark.split("offset=").nth(1).unwrap().split(' ').next().unwrap();
            offset = next.parse().unwrap();
        }
        assert_eq!(seen, text);
    }

    /// A NUL is shown as three bytes, and was counted as one.
    #[test]
    fn what_is_shown_of_odd_bytes_counts_too() {
        let folder = Folder::new("read-odd-bytes");
        let line = format!("{}\n", "\0".repeat(1000));
        folder.put("a", "x\n".repeat(4990) + &line.repeat(100));
        let shown = call(&folder, json!({ "file_path": "a", "limit": 100_000 })).text;
        let remarks = "[lines 1-5003 shown, more follow: Read with offset=5004 and limit=100000; \
                       bytes that are not UTF-8 text are shown as \u{fffd}]";
        let text = shown.strip_suffix(remarks).unwrap();
        assert_eq!(text, "x\n".repeat(4990) + &line.replace('\0', "\u{fffd}").repeat(13));
    }

    #[test]
    fn a_long_line_is_shortened_between_characters_and_said_to_be() {
        let folder = Folder::new("read-long");
        folder.put("fits", format!("{}\nb", "x".repeat(2000)));
        assert_eq!(read(&folder, "fits").text, format!("{}\nb", "x".repeat(2000)));

        let remark = |lines: &str, name: &str, line: u64| {
            format!(
                "[{lines} shortened to 2000 bytes: if you can run a command, sed -n {line}p {name} shows more of \
                 line {line}]"
            )
        };
        folder.put("it's", format!("a\n{}\nb\n", "x".repeat(2001)));
        let expected = format!("a\n{}\nb\n{}", "x".repeat(2000), remark("line 2", r"'it'\''s'", 2));
        assert_eq!(read(&folder, "it's"), Outcome::ok(expected));

        // 1999 bytes and then characters of 2, 3 and 4 bytes, which the limit falls into.
        for letter in ["\u{e9}", "\u{20ac}", "\u{1f600}"] {
            let start = "x".repeat(1999);
            folder.put("a", format!("{start}{letter}{letter}"));
            assert_eq!(read(&folder, "a").text, format!("{start}\n{}", remark("line 1", "a", 1)));
        }

        folder.put("-n", "x".repeat(2001));
        let expected = format!("{}\n{}", "x".repeat(2000), remark("line 1", "./-n", 1));
        assert_eq!(read(&folder, "-n"), Outcome::ok(expected));

        let long = "y".repeat(3000);
        folder.put("many", format!("{long}\r\n").repeat(7));
        let expected = format!("{}\n", "y".repeat(2000)).repeat(7)
            + &remark("lines 1, 2, 3, 4, 5 and 2 more", "many", 1);
        assert_eq!(read(&folder, "many").text, expected);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_from_the_text_and_kept_in_the_raw_copy() {
        let folder = Folder::new("read-mark");
        folder.put("a", "\u{feff}one\ntwo\n");
        assert_eq!(read(&folder, "a"), Outcome::ok("one\ntwo\n"));
        assert_eq!(raw(&folder, json!({ "file_path": "a" })).unwrap(), "\u{feff}one\ntwo\n".as_bytes());
        assert_eq!(raw(&folder, json!({ "file_path": "a", "offset": 2 })).unwrap(), b"two\n");
    }

    #[test]
    fn utf_16_is_decoded() {
        let folder = Folder::new("read-utf16");
        let text = "h\u{e9}\r\n\u{1f600}\u{a0a}\u{a00}\nend";
        for to_bytes in [u16::to_le_bytes as fn(u16) -> [u8; 2], u16::to_be_bytes] {
            let bytes = utf16(text, to_bytes);
            folder.put("a", &bytes);
            assert_eq!(read(&folder, "a"), Outcome::ok(format!("{text}\n[decoded from UTF-16]")));
            assert_eq!(raw(&folder, json!({ "file_path": "a" })).unwrap(), bytes);
            let line = raw(&folder, json!({ "file_path": "a", "offset": 2, "limit": 1 })).unwrap();
            assert_eq!(line, utf16("\u{1f600}\u{a0a}\u{a00}\n", to_bytes)[2..]);
            let shown = call(&folder, json!({ "file_path": "a", "offset": 2, "limit": 1 })).text;
            let remarks =
                "[lines 2-2 shown, more follow: Read with offset=3 and limit=1; decoded from UTF-16]";
            assert_eq!(shown, format!("\u{1f600}\u{a0a}\u{a00}\n{remarks}"));
            assert_eq!(
                call(&folder, json!({ "file_path": "a", "offset": 9 })).text,
                "offset 9 is past the end: a has 3 lines"
            );
        }
    }

    #[test]
    fn long_utf_16_is_decoded_across_every_buffer() {
        let folder = Folder::new("read-utf16-long");
        // An odd start makes surrogate pairs fall across the ends of buffers.
        let text = format!("x{}", "\u{1f600}\u{20ac}\n".repeat(1999));
        folder.put("a", utf16(&text, u16::to_le_bytes));
        assert_eq!(read(&folder, "a").text, format!("{text}[decoded from UTF-16]"));
        let mut broken = utf16("a", u16::to_le_bytes);
        broken.extend([0x00, 0xD8, b'b', 0, 0x41]);
        folder.put("a", broken);
        assert_eq!(read(&folder, "a").text, "a\u{fffd}b\u{fffd}\n[decoded from UTF-16]");
    }

    #[test]
    fn other_bytes_are_shown_as_replaced_and_copied_as_they_are() {
        let folder = Folder::new("read-latin");
        folder.put("a", b"caf\xe9\nok\n");
        let text = "caf\u{fffd}\nok\n[bytes that are not UTF-8 text are shown as \u{fffd}]";
        assert_eq!(read(&folder, "a"), Outcome::ok(text));
        assert_eq!(raw(&folder, json!({ "file_path": "a" })).unwrap(), b"caf\xe9\nok\n");
        assert_eq!(call(&folder, json!({ "file_path": "a", "offset": 2 })), Outcome::ok("ok\n"));
        folder.put("a", [&b"x\n".repeat(5000)[..], b"a\0b\n"].concat());
        let text = "a\u{fffd}b\n[bytes that are not UTF-8 text are shown as \u{fffd}]";
        assert_eq!(call(&folder, json!({ "file_path": "a", "offset": 5001 })), Outcome::ok(text));
    }

    #[test]
    fn a_binary_file_is_refused_with_its_size_and_kind() {
        let folder = Folder::new("read-binary");
        let cases: [(&str, &[u8], &str); 5] = [
            ("utf32", b"\xff\xfe\0\0a\0\0\0", "8 bytes"),
            ("tool", b"\x7fELF\x02\0", "6 bytes (ELF program or library)"),
            ("a.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "15 bytes (PDF document)"),
            ("a.txt", b"\x1f\x8b\x08", "3 bytes (gzip)"),
            ("zeros", b"\0", "1 bytes"),
        ];
        for (name, bytes, size) in cases {
            folder.put(name, bytes);
            let text = format!(
                "{name} is a binary file of {size}; only text and PNG, JPEG, GIF and WebP images can be read"
            );
            assert_eq!(read(&folder, name), Outcome::error(&text));
            assert_eq!(raw(&folder, json!({ "file_path": name })), Err(text));
        }
    }

    #[test]
    fn an_image_is_known_by_its_content_and_shown_with_its_dimensions() {
        let folder = Folder::new("read-image");
        let file = png_of(640, 480, 3);
        folder.put("it's.txt", &file);
        let outcome = call(&folder, json!({ "file_path": "it's.txt", "offset": 3, "limit": 1 }));
        let text = format!("it's.txt: PNG image, 640 x 480 pixels, {} bytes", file.len());
        assert_eq!(outcome, Outcome::with_images(text, vec![Image::new("image/png", &file)]));
        let copied = raw(&folder, json!({ "file_path": "it's.txt", "offset": 3, "limit": 1 }));
        assert_eq!(copied.unwrap(), file);
        for text in ["GIF89a is a format", "%PDF-1.4 begins such files", "BM"] {
            folder.put("a.gif", text);
            assert_eq!(read(&folder, "a.gif"), Outcome::ok(text));
        }
    }

    #[test]
    fn an_image_that_is_cut_off_or_broken_is_said_to_be() {
        let folder = Folder::new("read-image-cut");
        let file = png_of(640, 480, 3);
        folder.put("a.png", &file[..20]);
        folder.put("b.png", png_of(0, 480, 3));
        let cases = [
            ("a.png", "a.png is a PNG image of 20 bytes that is cut off"),
            (
                "b.png",
                "b.png is a PNG image of 60 bytes that is broken: its header says that it has no pixels",
            ),
        ];
        for (name, text) in cases {
            assert_eq!(read(&folder, name), Outcome::error(text));
        }
        assert_eq!(raw(&folder, json!({ "file_path": "a.png" })).unwrap(), &file[..20]);
    }

    #[test]
    fn an_image_over_a_limit_is_refused_with_a_remedy() {
        let folder = Folder::new("read-image-large");
        let most = image::MOST_BYTES as usize;
        let overhead = png_of(1, 1, 0).len();
        folder.put("fits.png", png_of(8000, 1, most - overhead));
        let shown = read(&folder, "fits.png");
        assert_eq!(shown.images[0].data.len(), 5 << 20);
        assert!(Image::from_json(&shown.images[0].to_json()).is_ok());
        folder.put("a b.png", png_of(1, 1, most - overhead + 1));
        folder.put("wide.png", png_of(8001, 1, 1));
        let remedy = |name: &str| {
            format!(
                "if you can run a command, make a smaller copy and read that, as with: \
                 convert {name}'[0]' -resize '1568x1568>' smaller.png"
            )
        };
        let cases = [
            (
                "a b.png",
                format!(
                    "a b.png is a PNG image of 3932161 bytes, and at most 3932160 can be shown; {}",
                    remedy("'a b.png'")
                ),
            ),
            (
                "wide.png",
                format!(
                    "wide.png is a PNG image of 8001 x 1 pixels, and at most 8000 a side can be shown; {}",
                    remedy("wide.png")
                ),
            ),
        ];
        for (name, text) in cases {
            assert_eq!(read(&folder, name), Outcome::error(text));
        }
    }

    #[test]
    fn an_immense_sparse_file_costs_nothing_more() {
        let folder = Folder::new("read-sparse");
        let size = 10 << 30;
        let empty = folder.put("empty", "");
        OpenOptions::new().write(true).open(empty).unwrap().set_len(size).unwrap();
        let text = format!(
            "empty is a binary file of {size} bytes; only text and PNG, JPEG, GIF and WebP images can be read"
        );
        assert_eq!(read(&folder, "empty"), Outcome::error(text));

        let started = folder.put("started", "line\n".repeat(3000));
        OpenOptions::new().write(true).open(started).unwrap().set_len(size).unwrap();
        let text = "line\n".repeat(2000) + "[lines 1-2000 shown, more follow: Read with offset=2001]";
        assert_eq!(read(&folder, "started"), Outcome::ok(text));
        // The last line is a hole of ten gigabytes; its end is not waited for.
        let outcome = call(&folder, json!({ "file_path": "started", "offset": 3001 }));
        let remarks = "[lines 3001-3001 shown, more follow: Read with offset=3002; \
                       line 3001 shortened to 2000 bytes: if you can run a command, sed -n 3001p started shows more of \
                       line 3001; \
                       bytes that are not UTF-8 text are shown as \u{fffd}]";
        assert_eq!(outcome, Outcome::ok(format!("{}\n{remarks}", "\u{fffd}".repeat(2000))));
        let first = raw(&folder, json!({ "file_path": "started", "limit": 2 }));
        assert_eq!(first.unwrap(), b"line\nline\n");
    }

    /// All of the hole was looked through for the newline before the second line.
    #[test]
    fn a_line_behind_an_immense_hole_is_not_looked_for() {
        let folder = Folder::new("read-hole");
        let path = folder.put("a", "x".repeat(9000));
        OpenOptions::new().write(true).open(path).unwrap().set_len(900 << 30).unwrap();
        let text = "line 2 of a does not begin within its first 1073741824 bytes, and Read looks no further; \
                    give a smaller offset, or use sed or tail -c if you can run a command";
        let arguments = json!({ "file_path": "a", "offset": 2 });
        assert_eq!(call(&folder, arguments.clone()), Outcome::error(text));
        assert_eq!(raw(&folder, arguments), Err(text.to_owned()));
    }

    /// The kernel says 4096 bytes of each such file, whatever it holds.
    #[test]
    fn a_file_whose_size_is_wrong_is_read_to_its_end() {
        let path = "/sys/devices/system/cpu/online";
        if fs::metadata(path).is_err() {
            return skipped("a_file_whose_size_is_wrong_is_read_to_its_end", "there is no sysfs");
        }
        let folder = Folder::new("read-sysfs");
        assert_eq!(read(&folder, path), Outcome::ok(fs::read_to_string(path).unwrap()));
    }

    #[test]
    fn a_raw_copy_of_lines_is_exact() {
        let folder = Folder::new("read-raw");
        let mut state = 0x1234_5678_9ABC_DEF1_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        for _ in 0..200 {
            let pieces: [&[u8]; 6] = [b"\n", b"\r\n", b"a", b"\xff", "\u{e9}".as_bytes(), &[b'x'; 40_000]];
            let content: Vec<u8> =
                (0..random() % 30).flat_map(|_| pieces[random() % pieces.len()]).copied().collect();
            folder.put("a", &content);
            let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
            let (offset, limit) = (1 + random() % 12, 1 + random() % 12);
            let result = raw(&folder, json!({ "file_path": "a", "offset": offset, "limit": limit }));
            if offset > 1 && offset > lines.len() {
                assert!(
                    result
                        .unwrap_err()
                        .starts_with(&format!("offset {offset} is past the end: a has {} line", lines.len()))
                );
                continue;
            }
            let start = offset - 1;
            let wanted = lines[start.min(lines.len())..lines.len().min(start + limit)].concat();
            assert_eq!(result.unwrap(), wanted);
        }
    }

    #[test]
    fn a_closed_output_is_told_from_a_refusal() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let folder = Folder::new("read-closed");
        folder.put("a", "text");
        let arguments = json!({ "file_path": "a" });
        let result = copy_raw(arguments.as_object().unwrap(), &folder.workspace(), &mut Closed);
        assert!(matches!(result, Err(RawError::Output(error)) if error.kind() == ErrorKind::BrokenPipe));
    }
}
