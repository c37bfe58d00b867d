//! A prompt's bytes → text, or the place of the first byte that is none.

use std::fs;

use crate::input;

/// A prompt file.
pub fn run(bytes: &[u8]) {
    let path = super::folder("prompt").join("prompt");
    fs::write(&path, bytes).expect("a prompt file");
    let read = input::read_text_file(&path).map_err(|error| error.to_string());
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xFF, 0xFE, ..] => u16::from_le_bytes,
        [0xFE, 0xFF, ..] => u16::from_be_bytes,
        _ => {
            match str::from_utf8(bytes) {
                Ok(text) => assert_eq!(read, Ok(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())),
                Err(error) => refused(&read, error.valid_up_to(), "UTF-8"),
            }
            return;
        }
    };
    let units: Vec<u16> = bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    match String::from_utf16(&units) {
        _ if bytes.len() % 2 == 1 => refused(&read, bytes.len() - 1, "UTF-16"),
        Ok(text) => assert_eq!(read, Ok(text)),
        Err(_) => {
            let sound = (0..=units.len()).rev().find(|end| String::from_utf16(&units[..*end]).is_ok());
            // All that stands before the first half of a pair can be read.
            let sound = sound.map(|_| first_half(&units)).unwrap_or_default();
            refused(&read, 2 + 2 * sound, "UTF-16");
        }
    }
}

/// Where the first surrogate is that has no partner.
fn first_half(units: &[u16]) -> usize {
    let mut at = 0;
    while let Some(unit) = units.get(at) {
        let next = units.get(at + 1).copied().unwrap_or_default();
        match unit {
            0xD800..=0xDBFF if (0xDC00..=0xDFFF).contains(&next) => at += 2,
            0xD800..=0xDFFF => return at,
            _ => at += 1,
        }
    }
    at
}

fn refused(read: &Result<String, String>, offset: usize, encoding: &str) {
    let expected = format!("is not text: the byte at offset {offset} is not valid {encoding}");
    assert!(read.as_ref().is_err_and(|what| what.ends_with(&expected)), "{read:?}: {expected}");
}
