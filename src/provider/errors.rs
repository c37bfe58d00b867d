//! What an API's refusal means: its message found in any of the shapes servers use, whether waiting helps,
//! and what can be changed about the request so that it is accepted.
//!
//! Pure. Texts and codes are those of the providers' documentation and of reports about real servers.

use serde_json::Value;

use super::json::pick;
use super::window::{self, Told};
use super::{Api, Learnt, NoImages, Settings, excerpt, number, parse, thinking};

/// What stands for the message of a refusal without one.
const SAYS_NO_MORE: &str = "(the response says no more)";

/// An error that an API reported, with its status or inside a successful response.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiError {
    /// The HTTP status, or the one that the error's own code stands for.
    pub status: u16,
    /// The vendor's code or type word; empty if there is none.
    pub code: String,
    /// The vendor's message, on one line.
    pub message: String,
    /// `x-should-retry`, where the server sent it.
    pub should_retry: Option<bool>,
    /// Whether the server said when to come back.
    pub has_retry_after: bool,
}

/// What to do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The key is missing or not accepted.
    Credentials,
    /// Overloaded or rate-limited: waiting may help.
    Wait,
    /// Overloaded or rate-limited in a way that no waiting of ours will end, such as a used-up quota.
    Exhausted,
    /// The model failed to write a call that its server could read; another try usually works.
    Botched,
    /// The conversation is too long for the model's context window.
    Overflow,
    /// Not what the API speaks: a redirect, or the offer of another protocol.
    Redirected,
    /// Not what the API speaks: a status that HTTP does not have.
    Unknown,
    /// Refused for good.
    Refused,
}

impl ApiError {
    /// Reads the error out of a response's body.
    pub fn from_response(status: u16, content_type: &str, body: &[u8]) -> ApiError {
        let text = String::from_utf8_lossy(body);
        let trimmed = text.trim_start_matches('\u{feff}').trim();
        let mut error = match parse(trimmed) {
            Ok(value) if value.is_object() => ApiError::from_value(&value),
            _ if looks_like_html(content_type, trimmed) => ApiError::new(status, "", &without_tags(trimmed)),
            _ => ApiError::new(status, "", &excerpt(trimmed)),
        };
        error.status = status;
        if error.message.is_empty() {
            error.message = SAYS_NO_MORE.to_owned();
        }
        error
    }

    /// The error that a JSON object tells inside a successful response, in any of the shapes servers use;
    /// absent if it tells none.
    pub fn inside(value: &Value) -> Option<ApiError> {
        let [error, kind, object] = pick(value, ["error", "type", "object"]);
        let tells = match error {
            // Some servers send an empty member with every chunk.
            Value::Object(error) => !error.is_empty(),
            error => !error.is_null(),
        };
        let is_error = kind == "error" || object == "error";
        (tells || is_error).then(|| ApiError::from_value(value))
    }

    /// Reads the error out of a JSON object that holds one, inside a successful response.
    pub fn from_value(value: &Value) -> ApiError {
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let word = |member: &str| match &error[member] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let metadata = &error["metadata"];
        let code =
            [word("code"), word("type"), metadata["error_type"].as_str().unwrap_or_default().to_owned()]
                .into_iter()
                .filter(|word| !word.is_empty() && word != "error")
                .collect::<Vec<_>>()
                .join(" ");
        let mut message = [
            error["message"].as_str(),
            error.as_str(),
            value["message"].as_str(),
            value["detail"].as_str(),
            error["detail"].as_str(),
        ]
        .into_iter()
        .flatten()
        .find(|text| !text.trim().is_empty())
        .map_or_else(|| detail(&value["detail"]), excerpt);
        // "Provider returned error" alone says nothing: the cause is in the metadata, as JSON text at times.
        if let Some(raw) = raw_cause(&metadata["raw"]) {
            let provider = metadata["provider_name"].as_str().map_or_else(|| "upstream".to_owned(), excerpt);
            message = format!("{message} ({provider}: {raw})");
        }
        if let Some(generation) = error["failed_generation"].as_str() {
            message = format!("{message} (the model wrote: {})", excerpt(generation));
        }
        // llama.cpp has the numbers beside the text; its older versions have them there alone.
        if let (Some(prompt), Some(window)) = (number(&error["n_prompt_tokens"]), number(&error["n_ctx"]))
            && !message.contains(&window.to_string())
        {
            message = format!("{message} (n_prompt_tokens: {prompt}, n_ctx: {window})");
        }
        if message.is_empty() {
            message = excerpt(&value.to_string());
        }
        ApiError::new(status_of(&code), &code, &message)
    }

    fn new(status: u16, code: &str, message: &str) -> ApiError {
        ApiError {
            status,
            code: code.to_owned(),
            message: message.to_owned(),
            should_retry: None,
            has_retry_after: false,
        }
    }

    /// What to do about it.
    pub fn verdict(&self) -> Verdict {
        let by_status = match self.status {
            // Another protocol, which nobody asked for, comes of a URL that is something else's.
            101 | 300..=399 => return Verdict::Redirected,
            600.. => return Verdict::Unknown,
            401 | 403 => Verdict::Credentials,
            _ if self.is_overflow() => Verdict::Overflow,
            400 if self.mentions(&["tool_use_failed"]) => Verdict::Botched,
            402 if self.has_retry_after => Verdict::Wait,
            408 | 409 | 425 | 429 | 498 | 500.. if self.is_exhausted() => Verdict::Exhausted,
            408 | 409 | 425 | 429 | 498 | 500.. => Verdict::Wait,
            _ => Verdict::Refused,
        };
        match (self.should_retry, by_status) {
            (Some(true), _) => Verdict::Wait,
            (Some(false), Verdict::Wait) => Verdict::Exhausted,
            _ => by_status,
        }
    }

    fn mentions(&self, words: &[&str]) -> bool {
        let text = format!("{} {}", self.code, self.message).to_lowercase();
        words.iter().any(|word| text.contains(word))
    }

    fn is_exhausted(&self) -> bool {
        self.mentions(&[
            "insufficient_quota",
            "exceeded your current quota",
            "credit balance is too low",
            "billing",
            "spend limit",
            "spend_limit",
        ])
    }

    /// Whether the error may be that the conversation is too long, though it does not say so: a proxy knows only that
    /// the body is, and Cerebras sends nothing beside the status.
    pub fn may_be_overflow(&self) -> bool {
        let may_be = match self.status {
            413 => !self.is_of_rate(),
            400 => self.message == SAYS_NO_MORE,
            _ => false,
        };
        may_be || self.is_overflow()
    }

    /// Whether the error is about how much is sent in a time, or about something else that is too long.
    fn is_of_rate(&self) -> bool {
        self.mentions(&[
            "rate limit",
            "too many requests",
            "throttling",
            "tokens per minute",
            "string_above_max_length",
        ])
    }

    /// What the error says of tokens.
    pub fn told(&self) -> Told {
        window::told(&self.message)
    }

    /// The output limit that would fit beside the prompt, where that is worth more than making the prompt shorter.
    fn room(&self, learnt: &Learnt) -> Option<u32> {
        let Told { window: Some(window), prompt: Some(prompt), completion: Some(completion) } = self.told()
        else {
            return None;
        };
        // A little less: what a server counts is an estimate at times.
        let left = window.checked_sub(prompt)? / 16 * 15;
        let room = u32::try_from(left).ok()?;
        // One that is lowered again and again, a little each time, would be asked for without end.
        let is_less = learnt.room.is_none_or(|before| room <= before - before / 8);
        (is_less && left < completion && left >= window / 8).then_some(room).filter(|room| *room > 0)
    }

    fn is_overflow(&self) -> bool {
        matches!(self.status, 400 | 413 | 422 | 500)
            && !self.is_of_rate()
            && self.mentions(&[
                "prompt is too long",
                "request_too_large",
                "exceed context limit",
                "input is too long for requested model",
                "input tokens exceeded",
                "context_length_exceeded",
                "token_limit_exceeded",
                "maximum context length",
                "exceeds the context window",
                "exceeds the maximum number of tokens allowed",
                "maximum prompt length is",
                "reduce the length of the messages",
                "too large for model with",
                "exceeded model token limit",
                "context window exceeds limit",
                "exceed_context_size_error",
                "exceeds the available context size",
                "prompt too long; exceeded max context length",
                "no user query found in messages",
                "tokens to keep from the initial prompt is greater than the context length",
                "is longer than the model's context length",
                "`inputs` tokens + `max_new_tokens` must be",
                "maximum input length",
                "prompt token count of",
                "current length is",
                "longer than the maximum model length",
                "context length is only",
                "context length of only",
                "`inputs` must have less than",
            ])
    }

    /// Learns from a refusal how to write the request so that this server takes it. True if something
    /// new was learnt: the request is worth asking again. Each lesson is learnt once.
    pub fn teach(&self, settings: &Settings, learnt: &mut Learnt) -> bool {
        let before = learnt.clone();
        if self.is_overflow() {
            if let Some(room) = self.room(learnt) {
                (learnt.room, learnt.window) = (Some(room), self.told().window);
            }
        } else if matches!(self.status, 400 | 422) {
            self.teach_thinking(settings, learnt);
            match settings.api {
                Api::OpenAi => self.teach_openai(settings, learnt),
                Api::Anthropic => self.teach_anthropic(settings, learnt),
            }
            if self.mentions(&["cache_control"]) {
                let fewer = if self.mentions(&["found 5", "found 6"]) { 2 } else { 4 };
                learnt.fewer_marks = learnt.fewer_marks.max(fewer);
            }
        }
        if settings.native_answer().is_some() && self.refuses_answer_format() {
            learnt.answer_by_tool = true;
        }
        learnt.no_images = learnt.no_images.or_else(|| self.refused_images());
        *learnt != before
    }

    /// Whether the error may be about the format of the final answer: as a whole, beside tools, or for its schema.
    fn refuses_answer_format(&self) -> bool {
        matches!(self.status, 400 | 404 | 405 | 422 | 500 | 501)
            && !self.mentions(&["output_config.effort"])
            && self.mentions(&[
                "response_format",
                "response format",
                "response mime type",
                "json_schema",
                "json schema",
                "json mode",
                "output_config",
                "output_format",
                "output format",
                "structured output",
                "structured_output",
                "schema is too complex",
                "invalid schema",
                "grammar",
            ])
    }

    /// Whether the error is about images, which llama.cpp says with a 500 and OpenRouter with a 404.
    fn refused_images(&self) -> Option<NoImages> {
        if !matches!(self.status, 400 | 404 | 413 | 415 | 422 | 500 | 501) {
            return None;
        }
        let none_taken = [
            "support image",
            "support vision",
            "support multimodal",
            "image input is not supported",
            "images are not supported",
            "is not a multimodal model",
            "at most 0 image",
            "unknown variant `image",
            "unknown variant image",
            "content part type: \"image_url\"",
            "image_url is only supported by certain models",
        ];
        let refused = [
            "could not process image",
            "image exceeds",
            "image dimensions exceed",
            "image_dimensions_too_large",
            "image(s) may be provided",
            "too many images",
            "unsupported image",
            "invalid image",
            "invalid_image",
        ];
        if self.mentions(&none_taken) {
            Some(NoImages::NoneTaken)
        } else {
            self.mentions(&refused).then_some(NoImages::Refused)
        }
    }

    /// A model that knows no effort, or thinks in another way than it was asked to. What is said of thinking in
    /// the history, or of its budget beside the output limit, is about something else.
    fn teach_thinking(&self, settings: &Settings, learnt: &mut Learnt) {
        let others = [
            "signature",
            "cannot be modified",
            "passed back",
            "missing",
            "expected `thinking`",
            "greater than",
        ];
        if self.mentions(&others) {
            return;
        }
        // The form of an answer stands there too.
        let names_effort =
            self.mentions(&["effort", "output_config"]) && !self.mentions(&["output_config.format"]);
        let names_thinking = self.mentions(&["thinking", "reasoning"]);
        // Where both go by one name, one refusal is about both.
        let one_name = settings.api == Api::OpenAi;
        if settings.thinking.effort.is_some() && (names_effort || one_name && names_thinking) {
            learnt.no_effort = true;
        }
        if let Some(mode) = settings.thinking.mode
            && (names_thinking || one_name && names_effort)
            && learnt.thinking_refusals < thinking::most_refusals(mode)
        {
            learnt.thinking_refusals = if one_name { u8::MAX } else { learnt.thinking_refusals + 1 };
        }
    }

    fn teach_openai(&self, settings: &Settings, learnt: &mut Learnt) {
        if settings.max_output_tokens.is_some() && self.mentions(&["max_tokens", "max_completion_tokens"]) {
            learnt.other_limit_name = true;
        }
        if self.mentions(&["stream_options", "include_usage"]) {
            learnt.no_stream_options = true;
        }
        if self.mentions(&["'content' field must be a string", "invalid message content type: <nil>"]) {
            learnt.empty_string_content = true;
        }
        if self.mentions(&["reasoning_content"]) && self.mentions(&["passed back", "missing"]) {
            learnt.reasoning_required = true;
        }
    }

    fn teach_anthropic(&self, settings: &Settings, learnt: &mut Learnt) {
        // Once: a server that names another ceiling each time would be asked without end.
        if learnt.output_ceiling.is_none()
            && self.mentions(&["max_tokens:"])
            && let Some(ceiling) = self.ceiling()
            && settings.max_output_tokens.is_none_or(|asked| asked > ceiling)
        {
            learnt.output_ceiling = Some(ceiling);
        }
    }

    /// The number after `>` in "max_tokens: 32000 > 8192, which is the maximum …".
    fn ceiling(&self) -> Option<u32> {
        let (_, after) = self.message.split_once('>')?;
        let digits: String = after.trim_start().chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|ceiling| *ceiling > 0)
    }

    /// What the user can do about it, beyond what the vendor says; empty if nothing is known.
    pub fn remedy(&self) -> &'static str {
        if self.mentions(&["--enable-auto-tool-choice"]) {
            "start vLLM with --enable-auto-tool-choice and --tool-call-parser, or pass --tools \"\""
        } else if self.mentions(&["does not support tools", "support tool use"]) {
            "choose another model with --model, or pass --tools \"\""
        } else {
            match self.verdict() {
                Verdict::Credentials => "check the key, or name another with --api-key-file",
                Verdict::Overflow => {
                    "the conversation is too long for this model: shorten the input or choose another --model"
                }
                Verdict::Exhausted => "waiting does not help here: check the account's plan and limits",
                Verdict::Redirected => "check the scheme and path of the base URL",
                Verdict::Unknown => {
                    "HTTP has no such status; check the base URL, and what lies on the way there"
                }
                _ if self.status == 404 => "check --model and the base URL",
                _ if self.status == 402 => "the account has no credit left",
                _ => "",
            }
        }
    }
}

/// The status that an error's own code or type stands for; 500 if it says nothing.
fn status_of(code: &str) -> u16 {
    let by_number =
        code.split(' ').find_map(|word| word.parse::<u16>().ok()).filter(|code| (400..600).contains(code));
    let by_word = || {
        Some(match code {
            _ if code.contains("overloaded") => 529,
            _ if code.contains("rate_limit") => 429,
            _ if code.contains("insufficient_quota") => 429,
            _ if code.contains("authentication") || code.contains("invalid_api_key") => 401,
            _ if code.contains("permission") => 403,
            _ if code.contains("billing") || code.contains("payment_required") => 402,
            _ if code.contains("not_found") => 404,
            _ if code.contains("request_too_large") || code.contains("payload_too_large") => 413,
            _ if code.contains("timeout") => 504,
            _ if code.contains("invalid_request")
                || code.contains("context_length")
                || code.contains("exceed_context") =>
            {
                400
            }
            _ => return None,
        })
    };
    by_number.or_else(by_word).unwrap_or(500)
}

/// FastAPI's list of what is wrong with which member.
fn detail(detail: &Value) -> String {
    let Some(items) = detail.as_array() else { return String::new() };
    let lines: Vec<String> = items
        .iter()
        .map(|item| {
            let place: Vec<String> = item["loc"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|step| step.as_str().map_or_else(|| step.to_string(), str::to_owned))
                .collect();
            format!("{}: {}", place.join("."), item["msg"].as_str().unwrap_or("not valid"))
        })
        .collect();
    excerpt(&lines.join("; "))
}

fn raw_cause(raw: &Value) -> Option<String> {
    let parsed = match raw {
        Value::String(text) => parse(text).ok().filter(Value::is_object),
        Value::Object(_) => Some(raw.clone()),
        _ => return None,
    };
    match parsed {
        Some(value) => Some(ApiError::from_value(&value).message),
        None => raw.as_str().filter(|text| !text.trim().is_empty()).map(excerpt),
    }
}

/// Whether a body is a page for people.
fn looks_like_html(content_type: &str, text: &str) -> bool {
    content_type.contains("html") || text.trim_start().starts_with('<')
}

/// The words of an HTML page, for an error message.
pub fn without_tags(page: &str) -> String {
    // Only ASCII letters change, so that every place is the same in both.
    let lower = page.to_ascii_lowercase();
    let mut words = String::new();
    let mut at = 0;
    while let Some(open) = page[at..].find('<').map(|offset| at + offset) {
        words.push_str(&page[at..open]);
        words.push(' ');
        // What stands inside these is no text.
        let hidden = ["script", "style"].iter().find(|name| lower[open + 1..].starts_with(**name));
        let from = match hidden {
            Some(name) => lower[open..].find(&format!("</{name}")).map(|offset| open + offset),
            None => Some(open),
        };
        let end = from.and_then(|from| page[from..].find('>').map(|offset| from + offset + 1));
        at = end.unwrap_or(page.len());
    }
    words.push_str(&page[at..]);
    excerpt(&words.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: u16, body: &str) -> ApiError {
        ApiError::from_response(status, "application/json", body.as_bytes())
    }

    #[test]
    fn the_message_is_found_in_every_shape() {
        let cases = [
            (r#"{"error":{"message":"m","type":"invalid_request_error","code":null}}"#, "m"),
            (r#"{"error":"plain"}"#, "plain"),
            (r#"{"object":"error","message":"mistral","code":"3230"}"#, "mistral"),
            (r#"{"detail":"fastapi"}"#, "fastapi"),
            (r#"{"detail":[{"loc":["body","x"],"msg":"extra"}]}"#, "body.x: extra"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
            (
                r#"{"error":{"code":400,"message":"Provider returned error","metadata":{"provider_name":"P","raw":"{\"error\":{\"message\":\"why\"}}"}}}"#,
                "Provider returned error (P: why)",
            ),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"provider_name":"P\u0000\nQ","raw":"why"}}}"#,
                "Provider returned error (P  Q: why)",
            ),
            (
                r#"{"error":{"message":"Provider returned error","metadata":{"raw":"not json"}}}"#,
                "Provider returned error (upstream: not json)",
            ),
            ("upstream connect error", "upstream connect error"),
            ("", "(the response says no more)"),
        ];
        for (body, message) in cases {
            assert_eq!(of(400, body).message, message, "{body}");
        }
    }

    #[test]
    fn a_page_for_people_is_condensed() {
        let page = "<!DOCTYPE html><html><head><style>b{}</style><title>502</title></head><body><h1>Bad\n gateway</h1><script>x<y</script></body>";
        assert_eq!(ApiError::from_response(502, "text/html", page.as_bytes()).message, "502 Bad gateway");
    }

    /// Each tag was searched to the end of the page: this took minutes.
    #[test]
    fn a_page_of_a_mebibyte_is_condensed_in_one_pass() {
        let page = format!("{}<script>never closed", "<b>x</b>".repeat(128 * 1024));
        assert_eq!(without_tags(&page), format!("{}…", "x ".repeat(150)));
    }

    #[test]
    fn the_verdict_follows_status_quota_and_overflow() {
        let cases = [
            (401, "{}", Verdict::Credentials),
            (403, "{}", Verdict::Credentials),
            (402, "{}", Verdict::Refused),
            (404, "{}", Verdict::Refused),
            (409, "{}", Verdict::Wait),
            (429, "{}", Verdict::Wait),
            (529, "{}", Verdict::Wait),
            (308, "", Verdict::Redirected),
            (101, "", Verdict::Redirected),
            (599, "", Verdict::Wait),
            (600, "", Verdict::Unknown),
            (999, r#"{"error":{"message":"prompt is too long"}}"#, Verdict::Unknown),
            (429, r#"{"error":{"code":"insufficient_quota","message":"m"}}"#, Verdict::Exhausted),
            (400, r#"{"error":{"message":"prompt is too long: 3 tokens > 2 maximum"}}"#, Verdict::Overflow),
            (500, r#"{"error":"no user query found in messages"}"#, Verdict::Overflow),
            (429, r#"{"error":"Rate limit: maximum context length"}"#, Verdict::Wait),
            (400, r#"{"error":{"code":"tool_use_failed","message":"m"}}"#, Verdict::Botched),
        ];
        for (status, body, verdict) in cases {
            assert_eq!(of(status, body).verdict(), verdict, "{status} {body}");
        }
    }

    #[test]
    fn the_servers_own_word_on_retrying_wins() {
        let mut error = of(400, "{}");
        error.should_retry = Some(true);
        assert_eq!(error.verdict(), Verdict::Wait);
        let mut error = of(503, "{}");
        error.should_retry = Some(false);
        assert_eq!(error.verdict(), Verdict::Exhausted);
    }

    #[test]
    fn an_error_inside_a_success_gets_the_status_it_stands_for() {
        let cases = [
            (r#"{"error":{"type":"overloaded_error","message":"m"}}"#, 529),
            (r#"{"error":{"code":"server_error","message":"m"}}"#, 500),
            (r#"{"error":{"code":429,"message":"m"}}"#, 429),
            (r#"{"error":{"code":"429","message":"m"}}"#, 429),
            (r#"{"error":{"type":"invalid_request_error","message":"m"}}"#, 400),
        ];
        for (body, status) in cases {
            let value = serde_json::from_str(body).unwrap();
            assert_eq!(ApiError::from_value(&value).status, status, "{body}");
        }
    }

    #[test]
    fn the_ceiling_of_the_output_limit_is_read_from_the_refusal() {
        let error =
            of(400, r#"{"error":{"message":"max_tokens: 32000 > 8192, which is the maximum allowed"}}"#);
        assert_eq!(error.ceiling(), Some(8192));
    }

    #[test]
    fn a_refusal_of_images_is_known_in_the_words_of_many_servers() {
        let none_taken = [
            (404, "No endpoints found that support image input"),
            (500, "image input is not supported by this server"),
            (
                500,
                "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            ),
            (500, "Failed to parse messages: Unsupported content part type: \"image_url\"; messages = ["),
            (400, "this model does not support image input (ref: 1)"),
            (400, "Qwen2.5-Coder is not a multimodal model"),
            (400, "At most 0 image(s) may be provided in one prompt."),
            (400, "Invalid content type. image_url is only supported by certain models."),
            (
                400,
                "Failed to deserialize the JSON body into the target type: messages[3]: unknown variant `image_url`, expected `text` at line 1 column 9",
            ),
        ];
        let refused = [
            (
                400,
                "messages.2.content.0.tool_result.content.1.image.source.base64: image exceeds 5 MB maximum: 6 bytes > 5 bytes",
            ),
            (
                400,
                "messages.2.content.0: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels",
            ),
            (400, "Could not process image"),
            (400, "At most 1 image(s) may be provided in one request."),
            (400, "You uploaded an unsupported image. Please make sure your image is valid."),
        ];
        let others = [
            (404, "No endpoints found for some/model"),
            (404, "No endpoints found that support tool use"),
            (429, "this model does not support image input"),
            (400, "the file image.png is missing"),
        ];
        let known = |status: u16, message: &str| {
            of(status, &json!({"error": {"message": message}}).to_string()).refused_images()
        };
        for (status, message) in none_taken {
            assert_eq!(known(status, message), Some(NoImages::NoneTaken), "{message}");
        }
        for (status, message) in refused {
            assert_eq!(known(status, message), Some(NoImages::Refused), "{message}");
        }
        for (status, message) in others {
            assert_eq!(known(status, message), None, "{message}");
        }
    }

    #[test]
    fn a_ceiling_is_learnt_once() {
        let settings = crate::provider::anthropic::tests::settings();
        let mut learnt = Learnt::default();
        let refusal =
            |ceiling: u32| of(400, &format!(r#"{{"error":{{"message":"max_tokens: 32000 > {ceiling}"}}}}"#));
        assert!(refusal(8192).teach(&settings, &mut learnt));
        assert!(!refusal(4096).teach(&settings, &mut learnt));
        assert_eq!(learnt.output_ceiling, Some(8192));
    }

    fn refusal(message: &str) -> ApiError {
        of(400, &json!({"error": {"message": message}}).to_string())
    }

    #[test]
    fn a_limit_of_the_reply_that_does_not_fit_beside_the_prompt_is_lowered() {
        let settings = crate::provider::anthropic::tests::settings();
        let asked = |prompt: u64, completion: u64| {
            refusal(&format!(
                "This model's maximum context length is 4096 tokens. However, you requested {} tokens ({prompt} in \
                 the messages, {completion} in the completion).",
                prompt + completion
            ))
        };
        let mut learnt = Learnt::default();
        assert!(asked(3000, 2000).teach(&settings, &mut learnt));
        assert_eq!(learnt, Learnt { room: Some(1020), window: Some(4096), ..Learnt::default() });
        // A little less each time would be asked for without end.
        assert!(!asked(3001, 1020).teach(&settings, &mut learnt));
        assert!(asked(3300, 1020).teach(&settings, &mut learnt));
        assert_eq!(learnt.room, Some(735));
        // Where next to nothing is left, the prompt is what is too long.
        for (prompt, completion) in [(3700, 2000), (4096, 2000), (5000, 2000), (3000, 0)] {
            assert!(!asked(prompt, completion).teach(&settings, &mut Learnt::default()), "{prompt}");
        }
    }

    #[test]
    fn what_is_too_long_is_known_in_the_words_of_many_servers() {
        let cases = [
            (413, "Request Entity Too Large", false),
            (
                413,
                "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000",
                false,
            ),
            (400, "Input is too long for requested model.", true),
            (400, "Input Tokens Exceeded: Number of input tokens exceeds maximum length.", true),
            (400, "Your input exceeds the context window of this model.", true),
            (400, "The input token count (9) exceeds the maximum number of tokens allowed (8).", true),
            (400, "invalid params, context window exceeds limit (2013)", true),
            (400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096.", true),
            (400, "Current length is 9000 while limit is 8192", true),
            (422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", true),
            (500, "no user query found in messages", true),
            (
                400,
                "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
                false,
            ),
            (400, "string_above_max_length: maximum context length", false),
            (404, "prompt is too long", false),
        ];
        for (status, message, expected) in cases {
            let error = of(status, &json!({"error": {"message": message}}).to_string());
            assert_eq!(error.verdict() == Verdict::Overflow, expected, "{message}");
        }
        // Cerebras says nothing at all.
        assert!(of(413, "<html>Request Entity Too Large</html>").may_be_overflow());
        assert!(!of(413, r#"{"error":"tokens per minute"}"#).may_be_overflow());
        assert!(of(400, "").may_be_overflow() && of(413, "").may_be_overflow());
        assert!(!of(400, "{}").may_be_overflow() && !of(404, "").may_be_overflow());
    }

    #[test]
    fn numbers_beside_the_text_are_added_to_it() {
        let body = r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}"#;
        let error = of(400, body);
        assert_eq!(
            error.message,
            "the request exceeds the available context size (n_prompt_tokens: 9000, n_ctx: 8192)"
        );
        assert_eq!(error.told(), Told { window: Some(8192), prompt: Some(9000), completion: None });
    }
}
