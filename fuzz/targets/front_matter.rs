//! The head of a skill's file, and its body filled with arguments.

use crate::skills::arguments::{self, Given};
use crate::skills::front_matter::{Keys, Value, read};

/// The arguments, and the file.
pub fn run(bytes: &[u8]) {
    let Some([typed, text]) = super::texts::<2>(bytes) else { return };
    let without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (keys, body) = match read(text) {
        Ok(read) => read,
        Err(what) => return assert!(!what.is_empty() && what.len() < 2 * text.len() + 300, "{what}"),
    };
    assert!(text.ends_with(body), "the body is the end of the file");
    if without_mark.lines().next().is_none_or(|line| line.trim_end() != "---") {
        assert!(keys.is_empty() && body == without_mark, "a file without a head is all body");
    }
    assert!(keys.len() <= 100, "{} keys", keys.len());
    for (at, (key, value)) in keys.iter().enumerate() {
        assert!(!key.is_empty() && keys[..at].iter().all(|(other, _)| other != key), "{key:?} twice");
        match value {
            Ok(Value::List(texts)) => assert!(texts.len() <= text.len()),
            Ok(Value::Text(said)) => assert!(said.len() <= 3 * text.len(), "a text longer than the file"),
            Ok(Value::Nothing) | Err(_) => {}
        }
    }
    written_anew(keys, body);
    filled(typed, body);
}

/// What was read, written in quotes, is read as the same.
fn written_anew(keys: Keys, body: &str) {
    let sound: Keys = keys.into_iter().filter(|(_, value)| value.is_ok()).collect();
    let mut text = "---\n".to_owned();
    for (key, value) in &sound {
        let value = match value {
            Ok(Value::Text(said)) => quoted(said),
            Ok(Value::List(said)) => {
                format!("[{}]", said.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", "))
            }
            _ => String::new(),
        };
        text.push_str(&format!("{key}: {value}\n"));
    }
    text.push_str("---\n");
    text.push_str(body);
    assert_eq!(read(&text), Ok((sound, body)), "{text}");
}

fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|letter| match letter {
            '"' | '\\' => format!("\\{letter}"),
            letter if letter.is_ascii_graphic() || letter == ' ' => letter.to_string(),
            letter => format!("\\U{:08x}", u32::from(letter)),
        })
        .collect();
    format!("\"{escaped}\"")
}

fn filled(typed: &str, body: &str) {
    let names = ["name".to_owned(), "other".to_owned()];
    let given = Given { arguments: typed, names: &names, folder: "f", project: "." };
    match arguments::fill(body, &given) {
        Ok(text) => {
            assert!(text.len() <= (16 << 20) + body.len() + typed.len() + 20, "{} bytes", text.len());
            if !body.contains('$') && typed.trim().is_empty() {
                assert_eq!(text, body, "a body without placeholders stays");
            }
        }
        Err(what) => assert_eq!(what, "with its arguments it is longer than 16 MiB"),
    }
}
