//! A context file: its text without comments, and the files that it imports.

use crate::context::imports;

/// A context file.
pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (kept, paths) = imports::read(text);
    let mut rest = text.chars();
    assert!(kept.chars().all(|letter| rest.any(|other| other == letter)), "what is kept stood there");
    if !text.contains("<!--") {
        assert_eq!(kept, text, "a text without comments stays");
    }
    for path in &paths {
        assert!(!path.is_empty() && !path.contains(['\n', '\0']), "{path:?}");
        let last = path.split_whitespace().next_back().unwrap_or_default();
        assert!(text.contains(last.trim_start_matches('@')), "{path:?} stands nowhere");
    }
    let (again, _) = imports::read(&kept);
    assert!(again.len() <= kept.len());
}
