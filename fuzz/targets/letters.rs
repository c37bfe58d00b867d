//! Lines of `--input-format stream-json`.

use crate::conversation::Part;
use crate::mailbox::letters::{Letter, read};

/// Lines.
pub fn run(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        match read(line) {
            Ok(Letter::Message(message)) => {
                let Ok(parts) = message.parts else { continue };
                assert!(!parts.is_empty(), "a message says something");
                for part in parts {
                    match part {
                        Part::Text(text) => assert!(!text.trim().is_empty(), "a blank text"),
                        Part::Image(image) => assert!(!image.data.is_empty(), "an empty image"),
                        other => panic!("the user says {other:?}"),
                    }
                }
            }
            Ok(Letter::Request { .. } | Letter::Answer { .. }) => {}
            Ok(Letter::Nothing) => {}
            Err(what) => assert!(!what.contains(['\n', '\r', '\u{1b}']) && what.len() < 2000, "{what:?}"),
        }
    }
}
