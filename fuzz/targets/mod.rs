//! What the fuzz targets run: bytes of any kind go in, and what `design.md` promises of them is asserted.
//!
//! A part of the program as far as the compiler goes (`src/main.rs` names this module where the feature `fuzz` is
//! on, and for tests), since a binary has no parts that others can call. Where an input has several parts, the
//! character 0x1E stands between them; the last may hold it too.

use std::fs;
use std::path::PathBuf;

pub mod anthropic;
pub mod arguments;
pub mod completions;
pub mod edit;
pub mod front_matter;
pub mod imports;
pub mod letters;
pub mod output;
pub mod permissions;
pub mod prompt;
pub mod read;
pub mod recording;
pub mod refusal;
mod replies;
mod requests;
pub mod schema;
pub mod session;
pub mod sse;
pub mod text_calls;

/// The parts of an input; those that are missing are empty.
fn parts<const COUNT: usize>(bytes: &[u8]) -> [&[u8]; COUNT] {
    let mut found = bytes.splitn(COUNT, |byte| *byte == 0x1E);
    std::array::from_fn(|_| found.next().unwrap_or_default())
}

/// The same as text.
fn texts<const COUNT: usize>(bytes: &[u8]) -> Option<[&str; COUNT]> {
    let found = parts::<COUNT>(bytes).map(|part| str::from_utf8(part).ok());
    found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default))
}

/// The bytes cut into pieces of different lengths, always the same for the same seed.
fn pieces(mut bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u64::from(seed) | 1;
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let length = 1 + (state >> 33) as usize % if state & (1 << 40) == 0 { 3 } else { 40 };
        let (piece, rest) = bytes.split_at(length.min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

/// A folder of one target in this process.
fn folder(target: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("cotter-fuzz-{}-{target}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder for a target's files can be made");
    folder
}

#[cfg(test)]
mod tests;
