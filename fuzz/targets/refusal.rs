//! What a server says when it refuses a request: a line for the user, a verdict, and lessons that end.

use crate::provider::{Api, ApiError, Host, Learnt, Settings};

/// The status and the content type on a line, then the body.
pub fn run(bytes: &[u8]) {
    let [head, body] = super::parts::<2>(bytes);
    let head = String::from_utf8_lossy(head);
    let (status, content_type) = head.split_once(' ').unwrap_or((&head, ""));
    let error = ApiError::from_response(status.parse().unwrap_or(400), content_type, body);
    assert!(!error.message.trim().is_empty(), "a message says something");
    assert!(!error.message.contains(char::is_control), "a message is one line: {:?}", error.message);
    assert!(error.message.len() < 8000 && error.code.len() < 8000, "{} bytes", error.message.len());
    let _ = (error.verdict(), error.may_be_overflow(), error.told(), error.remedy());
    for (api, host) in
        [(Api::Anthropic, Host::Anthropic), (Api::OpenAi, Host::OpenRouter), (Api::OpenAi, Host::Other)]
    {
        let mut settings = Settings { temperature: Some(0.5), ..Settings::plain(api, host, "m") };
        let mut lessons = 0;
        let mut learnt = Learnt::default();
        while error.teach(&settings, &mut learnt) {
            settings.learnt = learnt.clone();
            lessons += 1;
            assert!(lessons < 20, "the same refusal teaches without end: {:?}", error.message);
        }
    }
}
