//! The short names that scripts give to models, and the ids that they stand for.
//!
//! Pure: whether the environment says otherwise is for `config.rs` to know.

use super::{Api, Host};

/// A short name, its id at Anthropic's API and at OpenRouter, and the variable by which scripts written for
/// `claude` name another model in its place.
struct Alias {
    name: &'static str,
    anthropic: &'static str,
    openrouter: &'static str,
    variable: &'static str,
}

/// How the names of these variables begin.
pub const VARIABLES_BEGIN: &str = "ANTHROPIC_DEFAULT_";

/// The newest of each family, as of November 2026.
const ALIASES: &[Alias] = &[
    Alias {
        name: "sonnet",
        anthropic: "claude-sonnet-5-5",
        openrouter: "anthropic/claude-sonnet-5.5",
        variable: "ANTHROPIC_DEFAULT_SONNET_MODEL",
    },
    Alias {
        name: "opus",
        anthropic: "claude-opus-5-5",
        openrouter: "anthropic/claude-opus-5.5",
        variable: "ANTHROPIC_DEFAULT_OPUS_MODEL",
    },
    Alias {
        name: "haiku",
        anthropic: "claude-haiku-5-5",
        openrouter: "anthropic/claude-haiku-5.5",
        variable: "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    },
    Alias {
        name: "fable",
        anthropic: "claude-fable-5-2",
        openrouter: "anthropic/claude-fable-5.1",
        variable: "ANTHROPIC_DEFAULT_FABLE_MODEL",
    },
];

/// The id that a short name stands for at this server, and the variable that may name another; absent for a
/// name that is none, and at servers that may have models of that name themselves.
pub fn id_of(name: &str, api: Api, host: Host) -> Option<(&'static str, &'static str)> {
    let name = match without_window(name) {
        "best" => "opus",
        name => name,
    };
    let alias = ALIASES.iter().find(|alias| alias.name.eq_ignore_ascii_case(name))?;
    match (api, host) {
        (Api::Anthropic, _) => Some((alias.anthropic, alias.variable)),
        (Api::OpenAi, Host::OpenRouter) => Some((alias.openrouter, alias.variable)),
        (Api::OpenAi, _) => None,
    }
}

/// A name without the suffix by which `claude` asks for a long window: no API knows it, and newer models have one.
pub fn without_window(name: &str) -> &str {
    let end = name.len().saturating_sub("[1m]".len());
    match name.get(end..) {
        Some(suffix) if suffix.eq_ignore_ascii_case("[1m]") => &name[..end],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_of_a_window_is_no_part_of_an_id() {
        assert_eq!(without_window("claude-opus-4-6[1m]"), "claude-opus-4-6");
        assert_eq!(without_window("a[1M]"), "a");
        assert_eq!(without_window("[1m"), "[1m");
        assert_eq!(without_window("é1m]"), "é1m]");
    }

    #[test]
    fn a_short_name_is_an_id_where_the_family_is_served() {
        let id = |name: &str, api, host| id_of(name, api, host).map(|(id, _)| id);
        assert_eq!(id("sonnet", Api::Anthropic, Host::Other), Some("claude-sonnet-5-5"));
        assert_eq!(id("Opus[1m]", Api::Anthropic, Host::Other), Some("claude-opus-5-5"));
        assert_eq!(id("SONNET[1M]", Api::Anthropic, Host::Other), Some("claude-sonnet-5-5"));
        assert_eq!(id("best", Api::Anthropic, Host::Other), Some("claude-opus-5-5"));
        assert_eq!(id("haiku", Api::OpenAi, Host::OpenRouter), Some("anthropic/claude-haiku-5.5"));
        assert_eq!(id("haiku", Api::OpenAi, Host::Other), None);
        assert_eq!(id("claude-sonnet-5-5", Api::Anthropic, Host::Other), None);
    }
}
