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
    // The window that the suffix asks for is what these models have.
    let name = match name.strip_suffix("[1m]").unwrap_or(name) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_is_an_id_where_the_family_is_served() {
        let id = |name: &str, api, host| id_of(name, api, host).map(|(id, _)| id);
        assert_eq!(id("sonnet", Api::Anthropic, Host::Other), Some("claude-sonnet-5-5"));
        assert_eq!(id("Opus[1m]", Api::Anthropic, Host::Other), Some("claude-opus-5-5"));
        assert_eq!(id("best", Api::Anthropic, Host::Other), Some("claude-opus-5-5"));
        assert_eq!(id("haiku", Api::OpenAi, Host::OpenRouter), Some("anthropic/claude-haiku-5.5"));
        assert_eq!(id("haiku", Api::OpenAi, Host::Other), None);
        assert_eq!(id("claude-sonnet-5-5", Api::Anthropic, Host::Other), None);
    }
}
