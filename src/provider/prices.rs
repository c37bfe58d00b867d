//! What models cost, for servers that do not say it themselves: the default ones, and of those that the short names
//! stand for all whose price is certain.
//!
//! Anthropic's price list as of 2026-11-30 (<https://platform.claude.com/docs/en/about-claude/pricing>): base
//! input, output, cache reads and five-minute cache writes, which are all that a request asks for here.
//! OpenRouter passes these prices on, and says in each reply what it charged, which goes before these.

use super::Usage;
use crate::cost::Price;

/// The price of a reply by a model, if that is one of those known here. One of them costs more where the prompt,
/// with what of it came from the cache or went there, is long.
pub fn of(model: &str, usage: Usage) -> Option<Price> {
    const LONG_PROMPT: u64 = 100_000;
    let prompt = usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    let price = match model {
        "claude-haiku-5-5" | "anthropic/claude-haiku-5.5" if prompt > LONG_PROMPT => {
            Price::in_mills(500, 2_500, 50, 625)
        }
        "claude-haiku-5-5" | "anthropic/claude-haiku-5.5" => Price::in_mills(100, 500, 10, 125),
        "claude-haiku-4-5" | "claude-haiku-4-5-20251001" | "anthropic/claude-haiku-4.5" => {
            Price::in_mills(1_000, 5_000, 100, 1_250)
        }
        "claude-sonnet-5-5" | "anthropic/claude-sonnet-5.5" => Price::in_mills(2_000, 10_000, 100, 2_500),
        "claude-opus-5-5" | "anthropic/claude-opus-5.5" => Price::in_mills(4_000, 20_000, 200, 5_000),
        "claude-opus-4-6" | "anthropic/claude-opus-4.6" => Price::in_mills(5_000, 25_000, 500, 6_250),
        "claude-fable-5-1" | "anthropic/claude-fable-5.1" => Price::in_mills(10_000, 50_000, 250, 12_500),
        _ => return None,
    };
    Some(price)
}

/// Whether the price of a model is known.
pub fn has(model: &str) -> bool {
    of(model, Usage::default()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_models_and_those_of_short_names_have_a_price_and_others_have_none() {
        let million = 1_000_000;
        let each = [
            Usage { input: million, ..Usage::default() },
            Usage { output: million, ..Usage::default() },
            Usage { cache_read: million, ..Usage::default() },
            Usage { cache_write: million, ..Usage::default() },
        ];
        for (model, costs) in [
            ("anthropic/claude-haiku-4.5", ["$1", "$5", "$0.1", "$1.25"]),
            ("claude-opus-4-6", ["$5", "$25", "$0.5", "$6.25"]),
            ("claude-opus-5-5", ["$4", "$20", "$0.2", "$5"]),
            ("claude-sonnet-5-5", ["$2", "$10", "$0.1", "$2.5"]),
            ("anthropic/claude-fable-5.1", ["$10", "$50", "$0.25", "$12.5"]),
        ] {
            let found = each.map(|usage| of(model, usage).unwrap().cost(usage).to_string());
            assert_eq!(found, costs, "{model}");
        }
        assert!(["gpt-5", "claude-fable-5-2", "claude-opus-4-6-fast", ""].iter().all(|model| !has(model)));
    }

    #[test]
    fn a_long_prompt_has_its_own_price() {
        for (input, cache_read, cache_write, output, cost) in [
            (100_000, 0, 0, 1_000, "$0.0105"),
            (100_001, 0, 0, 1_000, "$0.0525005"),
            (50_000, 50_000, 0, 0, "$0.0055"),
            (50_000, 50_001, 0, 0, "$0.02750005"),
            (50_000, 0, 50_000, 0, "$0.01125"),
            (50_000, 0, 50_001, 0, "$0.056250625"),
        ] {
            let usage = Usage { input, output, cache_read, cache_write };
            let found = of("claude-haiku-5-5", usage).unwrap().cost(usage);
            assert_eq!(found.to_string(), cost, "{usage:?}");
        }
    }
}
