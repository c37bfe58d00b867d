//! What the default models cost, for servers that do not say it themselves.
//!
//! Anthropic's price list as of 2026-11-30 (https://platform.claude.com/docs/en/about-claude/pricing): base
//! input, output, cache reads and five-minute cache writes, which are all that a request asks for here.
//! OpenRouter passes these prices on, and says in each reply what it charged, which goes before these.

use crate::cost::Price;

/// The price of a model, if it is one of those that are asked by default.
pub fn of(model: &str) -> Option<Price> {
    match model {
        "claude-haiku-4-5" | "claude-haiku-4-5-20251001" | "anthropic/claude-haiku-4.5" => {
            Some(Price::in_cents(100, 500, 10, 125))
        }
        "claude-opus-4-6" | "anthropic/claude-opus-4.6" => Some(Price::in_cents(500, 2500, 50, 625)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::Usage;

    #[test]
    fn the_default_models_have_a_price_and_others_have_none() {
        let million = 1_000_000;
        let each = [
            Usage { input: million, ..Usage::default() },
            Usage { output: million, ..Usage::default() },
            Usage { cache_read: million, ..Usage::default() },
            Usage { cache_write: million, ..Usage::default() },
        ];
        let shown = |model: &str| of(model).map(|price| each.map(|usage| price.cost(usage).to_string()));
        assert_eq!(
            shown("anthropic/claude-haiku-4.5"),
            Some(["$1", "$5", "$0.1", "$1.25"].map(str::to_owned))
        );
        assert_eq!(shown("claude-opus-4-6"), Some(["$5", "$25", "$0.5", "$6.25"].map(str::to_owned)));
        assert_eq!((of("gpt-5"), of("claude-opus-4-6-fast"), of("")), (None, None, None));
    }
}
