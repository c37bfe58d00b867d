//! How many tokens a model reads: from the texts with which servers refuse what is too long, and from their lists
//! of models.
//!
//! Pure. Texts are those of the providers' documentation and of reports about real servers. A number is taken only
//! where the words beside it say what it counts: some refusals hold the number of an error.

use serde_json::Value;

use super::number;

/// What a refusal says of tokens, each where it says it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// How many the model reads, or reads and writes.
    pub window: Option<u64>,
    /// How many the request has.
    pub prompt: Option<u64>,
    /// How many the reply was to be allowed.
    pub completion: Option<u64>,
}

/// No model has fewer, and none more.
const SENSIBLE: std::ops::RangeInclusive<u64> = 256..=100_000_000;

/// Words that a number follows, each the beginning of what says how much a model reads.
const WINDOW: &[&str] = &[
    "maximum context length is ",
    "maximum context length of ",
    "maximum prompt length is ",
    "maximum model length of ",
    "maximum number of tokens allowed (",
    "maximum number of tokens allowed ",
    "model token limit: ",
    "available context size (",
    "n_ctx: ",
    "context length (",
    "context length is only ",
    "context length of only ",
    "`max_new_tokens` must be <= ",
    "`inputs` must have less than ",
    "exceeds the limit of ",
    "while limit is ",
];

/// The same of the whole of a request and what was to be written.
const TOTAL: &[&str] = &["you requested ", "you requested a total of ", "requested about "];

/// The same of the request. What says the most comes first.
const PROMPT: &[&str] = &[
    "prompt is too long: ",
    "messages resulted in ",
    "prompt contains ",
    "request contains ",
    "input token count (",
    "(requested: ",
    "the request (",
    "request (",
    "n_prompt_tokens: ",
    "n_keep: ",
    "the input (",
    "prompt (length ",
    "given: ",
    "token count of ",
    "current length is ",
    "you passed ",
    "your request has ",
    "keep the first ",
];

/// Words that stand behind a number: that of the request,
const BEFORE_PROMPT: &[&str] = &[" in the messages", " of text input", " tokens from the input messages"];

/// and that of what was to be written.
const BEFORE_COMPLETION: &[&str] = &[
    " in the completion",
    " for the completion",
    " tokens for the completion",
    " in the output",
    " `max_new_tokens`",
    " output tokens",
];

/// What the text of a refusal says.
pub fn told(text: &str) -> Told {
    let text = text.to_lowercase();
    let any = |words: &[&str]| words.iter().find_map(|words| number_after(&text, words));
    let any_before = |words: &[&str]| words.iter().find_map(|words| number_before(&text, words));
    // "188240 + 21333 > 200000": prompt, limit of the reply, window.
    let sum = text.split_once("exceed context limit: ").and_then(|(_, sum)| {
        let (prompt, rest) = leading(sum)?;
        let (completion, rest) = leading(rest.strip_prefix(" + ")?)?;
        let (window, _) = leading(rest.strip_prefix(" > ")?)?;
        Some(Told { window: Some(window), prompt: Some(prompt), completion: Some(completion) })
    });
    if let Some(sum) = sum {
        return sum;
    }
    let completion = any_before(BEFORE_COMPLETION).or_else(|| {
        number_after(&text, "max_completion_tokens' is too large: ")
            .or_else(|| number_after(&text, "max_tokens' is too large: "))
    });
    let total = any(TOTAL);
    let prompt = match (total, completion) {
        // What is neither written nor in the messages is in the tools.
        (Some(total), Some(completion)) if total >= completion => Some(total - completion),
        _ => any(PROMPT).or_else(|| any_before(BEFORE_PROMPT)).or(total),
    };
    let window = any(WINDOW)
        .or_else(|| {
            // "210000 tokens > 200000 maximum"
            let (_, after) = text.split_once("prompt is too long: ")?;
            number_after(after, " tokens > ")
        })
        .or_else(|| number_before(&text, " maximum context length"))
        .filter(|window| SENSIBLE.contains(window));
    Told { window, prompt, completion }
}

/// What a list of models says of one of them.
pub fn of_list(list: &Value, model: &str) -> Option<u64> {
    let entries = list["data"].as_array().or(list.as_array())?;
    let entry = match entries.as_slice() {
        [only] => only,
        _ => entries.iter().find(|entry| entry["id"] == model)?,
    };
    // What a server was started with holds over what the model was made for.
    let figures = [
        &entry["max_model_len"],
        &entry["meta"]["n_ctx"],
        &entry["loaded_context_length"],
        &entry["top_provider"]["context_length"],
        &entry["context_length"],
        &entry["context_window"],
        &entry["max_context_length"],
        &entry["max_input_tokens"],
    ];
    figures.into_iter().find_map(|figure| number(figure).filter(|window| SENSIBLE.contains(window)))
}

/// The number right behind these words.
fn number_after(text: &str, words: &str) -> Option<u64> {
    text.match_indices(words).find_map(|(at, _)| leading(&text[at + words.len()..])).map(|(number, _)| number)
}

/// The number right before these words.
fn number_before(text: &str, words: &str) -> Option<u64> {
    text.match_indices(words).find_map(|(at, _)| {
        let before = &text[..at];
        let digits = before.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == ',');
        leading(&before[digits.len()..]).map(|(number, _)| number)
    })
}

/// The number that a text begins with, commas between its digits or not, and what follows.
fn leading(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|letter: char| !(letter.is_ascii_digit() || letter == ',')).unwrap_or(text.len());
    let digits = text[..end].trim_end_matches(',');
    let number = digits.replace(',', "").parse().ok()?;
    Some((number, &text[digits.len()..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    type Case = (&'static str, Option<u64>, Option<u64>, Option<u64>);

    /// Each text as its provider sends it, with the window, the prompt and the limit of the reply that it names.
    #[test]
    fn the_numbers_of_each_providers_text_are_read() {
        let cases: &[Case] = &[
            // Anthropic.
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000), Some(210_000), None),
            (
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
                Some(200_000),
                Some(188_240),
                Some(21_333),
            ),
            // Bedrock.
            ("Input is too long for requested model.", None, None, None),
            // OpenAI and Azure.
            (
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens (149000 in the messages, 1000 in the functions). Please reduce the length of the messages or functions.",
                Some(128_000),
                Some(150_000),
                None,
            ),
            (
                "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (3000 in the messages, 500 in the functions, and 1500 in the completion). Please reduce the length of the messages, functions, or completion.",
                Some(4097),
                Some(3500),
                Some(1500),
            ),
            (
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
                None,
                None,
                None,
            ),
            // OpenRouter.
            (
                "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens (135000 of text input, 4000 of tool input, 1000 in the output). Please reduce the length of either one.",
                Some(131_072),
                Some(139_000),
                Some(1000),
            ),
            // Gemini.
            (
                "The input token count (1,048,577) exceeds the maximum number of tokens allowed (1,048,576).",
                Some(1_048_576),
                Some(1_048_577),
                None,
            ),
            (
                "The input token count exceeds the maximum number of tokens allowed 1048576.",
                Some(1_048_576),
                None,
                None,
            ),
            // xAI.
            (
                "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
                Some(131_072),
                Some(140_000),
                None,
            ),
            // Groq.
            ("Please reduce the length of the messages or completion.", None, None, None),
            // Mistral.
            (
                "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
                Some(32_768),
                Some(40_000),
                None,
            ),
            // DeepSeek.
            (
                "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
                Some(65_536),
                Some(66_000),
                Some(4000),
            ),
            // Moonshot.
            (
                "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
                Some(8192),
                Some(9000),
                None,
            ),
            // MiniMax: the number is that of the error.
            ("invalid params, context window exceeds limit (2013)", None, None, None),
            // llama.cpp.
            (
                "request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it",
                Some(8192),
                Some(9000),
                None,
            ),
            (
                "the request exceeds the available context size. try increasing the context size or enable context shift (n_prompt_tokens: 9000, n_ctx: 8192)",
                Some(8192),
                Some(9000),
                None,
            ),
            // Ollama: the number is the excess.
            ("prompt too long; exceeded max context length by 123 tokens", None, None, None),
            ("no user query found in messages", None, None, None),
            // LM Studio.
            (
                "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 5000>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.",
                Some(4096),
                Some(5000),
                None,
            ),
            (
                "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
                Some(4096),
                Some(5000),
                None,
            ),
            // vLLM, by age.
            (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (3000 in the messages, 2000 in the completion). Please reduce the length of the messages or completion.",
                Some(4096),
                Some(3000),
                Some(2000),
            ),
            (
                "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that `max_model_len` is no smaller than the number of text tokens.",
                Some(4096),
                Some(5000),
                None,
            ),
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 8192 tokens and your request has 500 input tokens (8000 > 8192 - 500).",
                Some(8192),
                Some(500),
                Some(8000),
            ),
            (
                "You passed 5000 input tokens and requested 0 output tokens. However, the model's context length is only 4096 tokens, resulting in a maximum input length of 4096 tokens. Please reduce the length of the input prompt.",
                Some(4096),
                Some(5000),
                Some(0),
            ),
            // SGLang.
            (
                "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
                Some(4096),
                Some(5000),
                None,
            ),
            (
                "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 3000 tokens from the input messages and 2000 tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.",
                Some(4096),
                Some(3000),
                Some(2000),
            ),
            // TGI.
            (
                "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 3000 `inputs` tokens and 2000 `max_new_tokens`",
                Some(4096),
                Some(3000),
                Some(2000),
            ),
            (
                "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000",
                Some(1024),
                Some(2000),
                None,
            ),
            // Copilot.
            ("prompt token count of 130000 exceeds the limit of 128000", Some(128_000), Some(130_000), None),
            // Cerebras.
            (
                "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
                Some(8192),
                Some(9000),
                None,
            ),
            // Nothing sensible.
            ("maximum context length is 0 tokens", None, None, None),
            ("maximum context length is 99999999999999999999999 tokens", None, None, None),
            ("", None, None, None),
        ];
        for (text, window, prompt, completion) in cases {
            assert_eq!(
                told(text),
                Told { window: *window, prompt: *prompt, completion: *completion },
                "{text}"
            );
        }
    }

    #[test]
    fn a_list_of_models_says_the_window_under_many_names() {
        let list =
            |entry: Value| json!({"object": "list", "data": [{"id": "other", "context_length": 512}, entry]});
        let cases = [
            (json!({"id": "m", "max_model_len": 4096}), Some(4096)),
            (json!({"id": "m", "meta": {"n_ctx": 8192, "n_ctx_train": 131_072}}), Some(8192)),
            (json!({"id": "m", "meta": {"n_ctx_train": 131_072}}), None),
            (
                json!({"id": "m", "context_length": 200_000, "top_provider": {"context_length": 131_072}}),
                Some(131_072),
            ),
            (
                json!({"id": "m", "context_length": 200_000, "top_provider": {"context_length": null}}),
                Some(200_000),
            ),
            (json!({"id": "m", "context_window": 131_072}), Some(131_072)),
            (json!({"id": "m", "max_context_length": "32768"}), Some(32_768)),
            (json!({"id": "m", "max_input_tokens": 1_000_000}), Some(1_000_000)),
            (json!({"id": "m", "max_model_len": 3}), None),
            (json!({"id": "n", "max_model_len": 4096}), None),
        ];
        for (entry, window) in cases {
            assert_eq!(of_list(&list(entry.clone()), "m"), window, "{entry}");
        }
        // A server of one model may call it otherwise than it was asked for.
        assert_eq!(of_list(&json!([{"id": "/models/m.gguf", "max_model_len": 4096}]), "m"), Some(4096));
        assert_eq!(of_list(&json!({"data": []}), "m"), None);
        assert_eq!(of_list(&json!("none"), "m"), None);
    }
}
