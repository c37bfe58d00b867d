//! Events of the Messages API → a reply that can be sent back.

use crate::provider::Api;

/// A stream, or events or a document as JSON lines.
pub fn run(bytes: &[u8]) {
    super::replies::check(Api::Anthropic, bytes);
}
