//! What an image is, told by its first bytes, and how large its picture is, read from its header.
//!
//! Pure, and no decoder: nothing of the picture itself is looked at. It only finds out what an API would
//! refuse, because a refusal there costs the run all its images and not just this one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::conversation::Image;

/// The most bytes of a file that fit into the 5 MiB of base64 that Anthropic takes of one image; others take
/// more (OpenAI 50 MB in a request).
pub const MOST_BYTES: u64 = (5 << 20) / 4 * 3;
/// The longest side that Anthropic takes, in requests of few images.
pub const MOST_PIXELS: u32 = 8000;

/// A format that both APIs take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Portable Network Graphics.
    Png,
    /// JPEG, of any kind.
    Jpeg,
    /// GIF, of which models see the first picture.
    Gif,
    /// WebP, lossy or not.
    Webp,
}

impl Format {
    /// The format of a file that begins like this.
    pub fn of(head: &[u8]) -> Option<Format> {
        match head {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..] => Some(Format::Png),
            [0xFF, 0xD8, 0xFF, ..] => Some(Format::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Format::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Format::Webp),
            _ => None,
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "PNG",
            Format::Jpeg => "JPEG",
            Format::Gif => "GIF",
            Format::Webp => "WebP",
        }
    }

    /// What it is called in a request.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Png => "image/png",
            Format::Jpeg => "image/jpeg",
            Format::Gif => "image/gif",
            Format::Webp => "image/webp",
        }
    }

    /// Width and height of the picture in a whole file of this format.
    ///
    /// # Errors
    ///
    /// What is wrong with the file: it is cut off or broken.
    pub fn dimensions(self, file: &[u8]) -> Result<(u32, u32), &'static str> {
        let (width, height) = match self {
            Format::Png => png(file)?,
            Format::Jpeg => jpeg(file)?,
            Format::Gif => gif(file).ok_or(CUT_OFF)?,
            Format::Webp => webp(file)?,
        };
        match width == 0 || height == 0 {
            true => Err("broken: its header says that it has no pixels"),
            false => Ok((width, height)),
        }
    }
}

/// The longer side of an image in pixels, if its header can be read.
pub fn longest_side(image: &Image) -> Option<u32> {
    let file = STANDARD.decode(&image.data).ok()?;
    let (width, height) = Format::of(&file)?.dimensions(&file).ok()?;
    Some(width.max(height))
}

const CUT_OFF: &str = "cut off";
const BROKEN: &str = "broken: its header makes no sense";

/// The header is the first chunk. The chunks are followed to the last one, which a file that is cut off lacks.
fn png(file: &[u8]) -> Result<(u32, u32), &'static str> {
    let mut at = 8;
    let mut dimensions = None;
    loop {
        let length = big_endian(file, at, 4).ok_or(CUT_OFF)? as usize;
        let kind = file.get(at + 4..at + 8).ok_or(CUT_OFF)?;
        // A checksum of four bytes follows.
        let data = file.get(at + 8..(at + 12).saturating_add(length)).ok_or(CUT_OFF)?;
        match kind {
            b"IHDR" if at == 8 && length == 13 => {
                dimensions = big_endian(data, 0, 4).zip(big_endian(data, 4, 4));
            }
            b"IEND" => return dimensions.ok_or(BROKEN),
            _ if dimensions.is_none() => return Err(BROKEN),
            _ => {}
        }
        at += 12 + length;
    }
}

/// Segments are passed over until the frame's header comes, before any picture data.
fn jpeg(file: &[u8]) -> Result<(u32, u32), &'static str> {
    let mut at = 2;
    loop {
        let [mark, kind] = file.get(at..at + 2).ok_or(CUT_OFF)? else { return Err(CUT_OFF) };
        match (mark, kind) {
            // Any number of these may stand before a marker.
            (0xFF, 0xFF) => at += 1,
            (0xFF, 0x01 | 0xD0..=0xD7) => at += 2,
            (0xFF, 0xC0..=0xC3 | 0xC5..=0xC7 | 0xC9..=0xCB | 0xCD..=0xCF) => {
                let height = big_endian(file, at + 5, 2).ok_or(CUT_OFF)?;
                let width = big_endian(file, at + 7, 2).ok_or(CUT_OFF)?;
                let is_ended = file[at..].windows(2).any(|pair| pair == [0xFF, 0xD9]);
                return if is_ended { Ok((width, height)) } else { Err(CUT_OFF) };
            }
            (0xFF, 0x02..=0xBF | 0xC4 | 0xC8 | 0xCC | 0xDB..=0xFE) => {
                let length = big_endian(file, at + 2, 2).ok_or(CUT_OFF)? as usize;
                at += 2 + length.max(2);
            }
            _ => return Err(BROKEN),
        }
    }
}

fn gif(file: &[u8]) -> Option<(u32, u32)> {
    // The screen's description is followed by one byte at least: the end.
    file.get(13)?;
    Some((little_endian(file, 6, 2)?, little_endian(file, 8, 2)?))
}

/// The first chunk tells: one of three kinds, each with the dimensions in another form.
fn webp(file: &[u8]) -> Result<(u32, u32), &'static str> {
    let length = little_endian(file, 4, 4).ok_or(CUT_OFF)? as usize;
    if file.len() < length.saturating_add(8) {
        return Err(CUT_OFF);
    }
    let data = file.get(20..).ok_or(CUT_OFF)?;
    match (&file[12..16], data) {
        (b"VP8 ", [_, _, _, 0x9D, 0x01, 0x2A, ..]) => little_endian(data, 6, 2)
            .zip(little_endian(data, 8, 2))
            .map(|(width, height)| (width & 0x3FFF, height & 0x3FFF)),
        (b"VP8L", [0x2F, ..]) => {
            little_endian(data, 1, 4).map(|bits| ((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1))
        }
        (b"VP8X", _) => little_endian(data, 4, 3)
            .zip(little_endian(data, 7, 3))
            .map(|(width, height)| (width + 1, height + 1)),
        _ => return Err(BROKEN),
    }
    .ok_or(CUT_OFF)
}

fn big_endian(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(count)?)?;
    Some(digits.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

fn little_endian(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(count)?)?;
    Some(digits.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A PNG of these dimensions with as many bytes of data.
    pub fn png_of(width: u32, height: u32, data: usize) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut chunk = |kind: &[u8], data: &[u8]| {
            file.extend((data.len() as u32).to_be_bytes());
            file.extend([kind, data, b"\0\0\0\0"].concat());
        };
        chunk(b"IHDR", &[&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 2, 0, 0, 0]].concat());
        chunk(b"IDAT", &vec![7; data]);
        chunk(b"IEND", b"");
        file
    }

    fn jpeg_of(frame: u8) -> Vec<u8> {
        [
            &b"\xff\xd8\xff\xe0\0\x04\xff\xc0\xff\xff\xfe\0\x05abc\xff"[..],
            &[frame, 0, 17, 8, 0x01, 0x02, 0x03, 0x04, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1],
            b"\xff\xda\0\x02data\xff\xd9",
        ]
        .concat()
    }

    fn gif_of() -> Vec<u8> {
        b"GIF89a\x02\x01\x03\x00\0\0\0\x3b".to_vec()
    }

    fn webp_of(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
        let length = |bytes: usize| (bytes as u32).to_le_bytes();
        [b"RIFF", &length(12 + data.len())[..], b"WEBP", kind, &length(data.len()), data].concat()
    }

    fn examples() -> Vec<(Vec<u8>, Format, (u32, u32))> {
        let lossy = webp_of(b"VP8 ", b"\x10\0\0\x9d\x01\x2a\x80\x42\xe0\x01");
        // 640 - 1 and 480 - 1 in 14 bits each.
        let lossless = [&[0x2F][..], &(639_u32 | 479 << 14).to_le_bytes()].concat();
        let extended = b"\x10\0\0\0\x7f\x02\0\xdf\x01\0";
        vec![
            (png_of(640, 480, 5), Format::Png, (640, 480)),
            (jpeg_of(0xC0), Format::Jpeg, (0x304, 0x102)),
            (jpeg_of(0xC2), Format::Jpeg, (0x304, 0x102)),
            (gif_of(), Format::Gif, (0x102, 3)),
            (lossy, Format::Webp, (640, 480)),
            (webp_of(b"VP8L", &lossless), Format::Webp, (640, 480)),
            (webp_of(b"VP8X", extended), Format::Webp, (640, 480)),
        ]
    }

    #[test]
    fn the_dimensions_are_read_from_the_header_of_each_format() {
        for (file, format, dimensions) in examples() {
            assert_eq!(Format::of(&file), Some(format));
            assert_eq!(format.dimensions(&file), Ok(dimensions), "{format:?}");
        }
    }

    #[test]
    fn the_longer_side_is_that_of_the_picture() {
        let side = |file: &[u8]| longest_side(&Image::new("image/png", file));
        assert_eq!((side(&png_of(3, 5, 9)), side(&png_of(5, 3, 9))), (Some(5), Some(5)));
        assert_eq!((side(b"text"), side(&png_of(3, 5, 9)[..20])), (None, None));
    }

    #[test]
    fn a_file_cut_anywhere_is_said_to_be_cut_off() {
        for (file, format, _) in examples() {
            for end in 0..file.len() {
                assert_eq!(format.dimensions(&file[..end]), Err(CUT_OFF), "{format:?} {end}");
            }
        }
    }

    #[test]
    fn no_change_of_bytes_is_a_panic() {
        for (file, format, _) in examples() {
            for at in 0..file.len() {
                for byte in [0, 0xFF, file[at] ^ 1, file[at] ^ 0x80] {
                    let mut broken = file.clone();
                    broken[at] = byte;
                    let _ = format.dimensions(&broken);
                }
            }
        }
    }

    #[test]
    fn a_broken_header_is_said_to_be_broken() {
        let broken = |file: Vec<u8>| Format::of(&file).unwrap().dimensions(&file);
        assert_eq!(broken(png_of(0, 1, 1)), Err("broken: its header says that it has no pixels"));
        let mut png = png_of(1, 1, 1);
        png[12] = b'X';
        assert_eq!(broken(png), Err(BROKEN));
        assert_eq!(broken(b"\xff\xd8\xff\xda\0\x02\xff\xd9".to_vec()), Err(BROKEN));
        assert_eq!(broken(webp_of(b"VP8 ", b"0123456789")), Err(BROKEN));
        assert_eq!(broken(webp_of(b"ICCP", b"0123456789")), Err(BROKEN));
    }

    #[test]
    fn other_files_are_no_images() {
        for head in [&b""[..], b"\x89PNG", b"\xff\xd8", b"GIF88a", b"BM", b"RIFF1234WAVE", b"<svg>"] {
            assert_eq!(Format::of(head), None);
        }
    }
}
