//! How hard a model is asked to think, in the words of each server.
//!
//! Pure. Models differ in what they take, and a newer one refuses what an older one demands. So what was asked
//! for is sent in the server's most usual form, and what a refusal teaches (`errors.rs`) decides the next one.

use serde_json::json;

use super::json::without_nul;
use super::{Api, Host, Settings};

/// The tokens for thinking where a model wants a number and none was given.
const USUAL_BUDGET: u32 = 16_000;
/// How many tokens an answer is left beside thinking, at least.
const ROOM_FOR_ANSWER: u32 = 8_000;

/// What was asked for; nothing is sent of what is absent.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Thinking {
    /// How much effort an answer is worth, as the vendors name it: `low`, `medium`, `high` …
    pub effort: Option<String>,
    /// Whether the model thinks before it answers.
    pub mode: Option<Mode>,
    /// Whether Anthropic sends a summary of the thinking (`summarized`) or none (`omitted`).
    pub display: Option<String>,
}

/// Whether a model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As much as it finds useful.
    Adaptive,
    /// For at most so many tokens.
    Budget(u32),
    /// Not at all.
    Disabled,
}

/// The mode to ask for now: the other form where the model has refused the first, none where it refused both.
pub fn mode(settings: &Settings) -> Option<Mode> {
    let asked = settings.thinking.mode?;
    match (settings.learnt.thinking_refusals, asked) {
        (0, asked) => Some(asked),
        (1, Mode::Adaptive) => Some(Mode::Budget(USUAL_BUDGET)),
        (1, Mode::Budget(_)) => Some(Mode::Adaptive),
        _ => None,
    }
}

/// How often a refusal of this mode can teach anything.
pub fn most_refusals(mode: Mode) -> u8 {
    match mode {
        Mode::Adaptive | Mode::Budget(_) => 2,
        Mode::Disabled => 1,
    }
}

/// The effort to ask for now.
fn effort(settings: &Settings) -> Option<&str> {
    settings.thinking.effort.as_deref().filter(|_| !settings.learnt.no_effort)
}

/// The output limit that leaves room for an answer beside the thinking, where none was asked for.
pub fn room(settings: &Settings, limit: u32) -> u32 {
    match mode(settings) {
        Some(Mode::Budget(tokens)) if settings.max_output_tokens.is_none() => {
            limit.max(tokens.saturating_add(ROOM_FOR_ANSWER))
        }
        _ => limit,
    }
}

/// The members of a request of the Messages API, each behind a comma.
pub fn messages_members(settings: &Settings) -> String {
    let mut members = String::new();
    if let Some(mode) = mode(settings) {
        let mut thinking = match mode {
            Mode::Adaptive => json!({"type": "adaptive"}),
            Mode::Budget(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
            Mode::Disabled => json!({"type": "disabled"}),
        };
        if let (Some(display), Mode::Adaptive | Mode::Budget(_)) = (&settings.thinking.display, mode) {
            thinking["display"] = json!(display);
        }
        members.push_str(&format!(r#","thinking":{thinking}"#));
    }
    // The form of the answer stands beside the effort.
    let effort = effort(settings).map(|effort| format!(r#""effort":{}"#, json!(effort)));
    let format = settings.native_answer();
    let format =
        format.map(|schema| format!(r#""format":{{"type":"json_schema","schema":{}}}"#, without_nul(schema)));
    let config: Vec<String> = effort.into_iter().chain(format).collect();
    if !config.is_empty() {
        members.push_str(&format!(r#","output_config":{{{}}}"#, config.join(",")));
    }
    members
}

/// The members of a request of Chat Completions, each behind a comma. That API has no common word for thinking:
/// some hosts have one of their own, elsewhere there is effort alone.
pub fn completions_members(settings: &Settings) -> String {
    let (mode, effort) = (mode(settings), effort(settings));
    let mut members = String::new();
    match settings.host {
        Host::OpenRouter => {
            let reasoning = match (mode, effort) {
                (Some(Mode::Disabled), _) => json!({"enabled": false}),
                (Some(Mode::Budget(tokens)), _) => json!({"max_tokens": tokens}),
                (_, Some(effort)) => json!({"effort": effort}),
                (Some(Mode::Adaptive), None) => json!({"enabled": true}),
                (None, None) => return members,
            };
            members.push_str(&format!(r#","reasoning":{reasoning}"#));
            return members;
        }
        Host::DeepSeek | Host::Moonshot => match mode {
            Some(Mode::Disabled) => members.push_str(r#","thinking":{"type":"disabled"}"#),
            Some(Mode::Adaptive | Mode::Budget(_)) => members.push_str(r#","thinking":{"type":"enabled"}"#),
            None => {}
        },
        _ if mode == Some(Mode::Disabled) => {
            members.push_str(r#","reasoning_effort":"none""#);
            return members;
        }
        _ => {}
    }
    if let Some(effort) = effort {
        members.push_str(&format!(r#","reasoning_effort":{}"#, json!(effort)));
    }
    members
}

/// What of the wish has no counterpart at this server, for a warning.
pub fn without_counterpart(settings: &Settings) -> Option<&'static str> {
    let has_own_word = matches!(settings.host, Host::OpenRouter | Host::DeepSeek | Host::Moonshot);
    let thinks = matches!(settings.thinking.mode, Some(Mode::Adaptive | Mode::Budget(_)));
    match settings.api {
        Api::OpenAi if thinks && !has_own_word => Some(
            "Chat Completions has no word for thinking that all servers know, so none is asked for: try --effort",
        ),
        _ if settings.thinking.display.is_none() => None,
        Api::OpenAi => Some("--thinking-display is about Anthropic's API and changes nothing here"),
        Api::Anthropic if !thinks => {
            Some("--thinking-display changes nothing without --thinking or --max-thinking-tokens")
        }
        Api::Anthropic => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::anthropic::tests::settings;

    fn asked(api: Api, host: Host, effort: Option<&str>, mode: Option<Mode>) -> Settings {
        let mut settings = settings();
        (settings.api, settings.host) = (api, host);
        settings.thinking = Thinking { effort: effort.map(str::to_owned), mode, display: None };
        settings
    }

    #[test]
    fn each_host_has_its_own_words() {
        let adaptive = Some(Mode::Adaptive);
        for (host, effort, mode, expected) in [
            (Host::OpenAi, None, None, ""),
            (Host::OpenAi, Some("low"), None, r#","reasoning_effort":"low""#),
            (Host::Other, Some("low"), Some(Mode::Disabled), r#","reasoning_effort":"none""#),
            (Host::Other, None, adaptive, ""),
            (Host::OpenRouter, Some("xhigh"), adaptive, r#","reasoning":{"effort":"xhigh"}"#),
            (Host::OpenRouter, None, Some(Mode::Budget(2000)), r#","reasoning":{"max_tokens":2000}"#),
            (Host::OpenRouter, None, adaptive, r#","reasoning":{"enabled":true}"#),
            (Host::OpenRouter, None, Some(Mode::Disabled), r#","reasoning":{"enabled":false}"#),
            (
                Host::DeepSeek,
                Some("max"),
                adaptive,
                r#","thinking":{"type":"enabled"},"reasoning_effort":"max""#,
            ),
            (Host::Moonshot, None, Some(Mode::Disabled), r#","thinking":{"type":"disabled"}"#),
        ] {
            let settings = asked(Api::OpenAi, host, effort, mode);
            assert_eq!(completions_members(&settings), expected, "{host:?} {effort:?} {mode:?}");
        }
    }

    #[test]
    fn a_refusal_turns_one_form_into_the_other_and_a_second_one_ends_it() {
        let mut settings = asked(Api::Anthropic, Host::Other, Some("max"), Some(Mode::Adaptive));
        settings.thinking.display = Some("omitted".to_owned());
        let expected =
            r#","thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"max"}"#;
        assert_eq!(messages_members(&settings), expected);
        assert_eq!(room(&settings, 32_000), 32_000);
        settings.learnt.thinking_refusals = 1;
        settings.learnt.no_effort = true;
        let expected = r#","thinking":{"type":"enabled","budget_tokens":16000,"display":"omitted"}"#;
        assert_eq!(messages_members(&settings), expected);
        assert_eq!(room(&settings, 10_000), 24_000);
        settings.learnt.thinking_refusals = 2;
        assert_eq!(messages_members(&settings), "");
        let settings = asked(Api::Anthropic, Host::Other, None, Some(Mode::Budget(31_999)));
        assert_eq!(messages_members(&settings), r#","thinking":{"type":"enabled","budget_tokens":31999}"#);
        assert_eq!(room(&settings, 32_000), 39_999);
    }
}
