//! Chunks of Chat Completions → a reply that can be sent back.

use crate::provider::Api;

/// A stream, or chunks or a document as JSON lines.
pub fn run(bytes: &[u8]) {
    super::replies::check(Api::OpenAi, bytes);
}
