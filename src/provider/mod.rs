//! The two APIs behind one face: a message becomes its JSON text (once), settings become a request's head
//! and tail, events become a half-built reply. Pure: no socket, no printing, no clock.
//!
//! A request body is head + messages + tail; `wire.rs` keeps their texts from request to request.

use std::borrow::Cow;

use serde_json::Value;

use crate::conversation::{Call, CallResult, Image, Part, holds_call, push_text};
use crate::cost::Cost;
use crate::sse;
use crate::tools;
use shown::Growing;

pub mod aliases;
pub mod answer_form;
pub mod anthropic;
#[cfg(test)]
mod cuts;
pub mod errors;
mod json;
pub mod openai;
pub mod prices;
mod said;
pub mod shown;
pub mod text_calls;
pub mod thinking;
pub mod window;
mod wire;

pub use answer_form::AnswerForm;
pub use errors::ApiError;
pub use wire::Wire;

/// The wire protocol spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// Chat Completions, as OpenAI, OpenRouter and most local servers speak it.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
}

/// A server whose rules differ from the rest of its API, told by the host name of the base URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// api.anthropic.com.
    Anthropic,
    /// api.openai.com.
    OpenAi,
    /// openrouter.ai.
    OpenRouter,
    /// api.mistral.ai: call ids are nine letters or digits, no user message after a tool's.
    Mistral,
    /// api.deepseek.com: reasoning goes back with every message that calls a tool.
    DeepSeek,
    /// api.moonshot.ai: call ids go back as they came, and so does the reasoning.
    Moonshot,
    /// Any other server.
    Other,
}

impl Host {
    /// Which of the known servers a host name belongs to.
    pub fn of(name: &str) -> Host {
        let is = |domain: &str| {
            name == domain || name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
        };
        if is("openrouter.ai") {
            Host::OpenRouter
        } else if is("api.openai.com") {
            Host::OpenAi
        } else if is("api.anthropic.com") {
            Host::Anthropic
        } else if is("mistral.ai") {
            Host::Mistral
        } else if is("deepseek.com") {
            Host::DeepSeek
        } else if is("moonshot.ai") || is("moonshot.cn") {
            Host::Moonshot
        } else {
            Host::Other
        }
    }
}

/// What every request of a run has in common.
pub struct Settings {
    /// The protocol.
    pub api: Api,
    /// The server behind the base URL.
    pub host: Host,
    /// The model asked.
    pub model: String,
    /// The system prompt; empty for none.
    pub system: String,
    /// The tools offered, in order.
    pub tools: Vec<&'static tools::Spec>,
    /// The most tokens a reply may have; absent for the server's own limit.
    pub max_output_tokens: Option<u32>,
    /// Sampling temperature; absent for the model's own.
    pub temperature: Option<f64>,
    /// Texts that end a reply.
    pub stop: Vec<String>,
    /// How hard the model is to think.
    pub thinking: thinking::Thinking,
    /// How many tokens the model reads, as the user has it.
    pub context_window: Option<u64>,
    /// The form of the final answer; absent where any text is one.
    pub answer: Option<AnswerForm>,
    /// What was learnt of this server from its refusals.
    pub learnt: Learnt,
}

impl Settings {
    /// Those of nothing but the model, which all that is thrown at a provider begins with.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn plain(api: Api, host: Host, model: &str) -> Settings {
        Settings {
            api,
            host,
            model: model.to_owned(),
            system: String::new(),
            tools: Vec::new(),
            max_output_tokens: None,
            context_window: None,
            temperature: None,
            stop: Vec::new(),
            thinking: Default::default(),
            answer: None,
            learnt: Learnt::default(),
        }
    }

    /// Names the API and model that make a reply, so that vendor data goes back only there.
    pub fn origin(&self) -> String {
        match self.api {
            Api::OpenAi => format!("openai {}", self.model),
            Api::Anthropic => format!("anthropic {}", self.model),
        }
    }

    /// How many tokens the model reads, if that is known. What a server says holds only where it is less than what
    /// the user says: some take fewer than their list promises.
    pub fn window(&self) -> Option<u64> {
        [self.context_window, self.learnt.window].into_iter().flatten().min()
    }

    /// The output limit that is sent where this one is wished for.
    fn output_limit(&self, wished: u32) -> u32 {
        [self.learnt.output_ceiling, self.learnt.room].into_iter().flatten().fold(wished, u32::min)
    }

    /// The tools that requests offer: those of the run, and the one that takes the answer where that is needed.
    pub fn offered(&self) -> Vec<&'static tools::Spec> {
        let by_tool = self.answer.as_ref().filter(|_| self.native_answer().is_none());
        self.tools.iter().copied().chain(by_tool.map(|answer| answer.tool)).collect()
    }

    /// The schema of the final answer where the API itself is asked to keep to it.
    pub fn native_answer(&self) -> Option<&str> {
        self.answer.as_ref()?.native.as_deref().filter(|_| !self.learnt.answer_by_tool)
    }

    /// Claude behind OpenRouter takes Anthropic's cache marks, on text parts.
    fn claude_through_openrouter(&self) -> bool {
        self.host == Host::OpenRouter
            && (self.model.starts_with("anthropic/") || self.model.starts_with("~anthropic/"))
    }
}

/// Where a server departs from the rule. Each is learnt at most once from a refusal that names it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Learnt {
    /// The output limit goes by the other of its two names.
    pub other_limit_name: bool,
    /// `stream_options` is refused.
    pub no_stream_options: bool,
    /// `content: null` beside calls is refused: an empty string goes instead.
    pub empty_string_content: bool,
    /// Reasoning must come back with every message that calls a tool, even where it was empty.
    pub reasoning_required: bool,
    /// The model's ceiling for the output limit.
    pub output_ceiling: Option<u32>,
    /// How many tokens the model reads.
    pub window: Option<u64>,
    /// The output limit that is left beside a long prompt.
    pub room: Option<u32>,
    /// How many of the four cache marks are to be left out.
    pub fewer_marks: u8,
    /// The effort asked for is refused.
    pub no_effort: bool,
    /// How often the way of thinking asked for was refused.
    pub thinking_refusals: u8,
    /// The API's own format for the final answer is refused, or not kept to: a tool takes the answer.
    pub answer_by_tool: bool,
    /// Why images are left out, if they are.
    pub no_images: Option<NoImages>,
}

/// Why images are left out of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoImages {
    /// The model, or the server, reads text alone.
    NoneTaken,
    /// The server refused one for its size, number or content, and does not say which.
    Refused,
}

impl NoImages {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            NoImages::NoneTaken => "the model takes none",
            NoImages::Refused => "the server refused one of them",
        }
    }

    /// What stands in the place of an image.
    pub fn in_place(self) -> String {
        format!("[image left out: {}]", self.text())
    }
}

/// Where to send requests: the path joined to the base URL, before any query of it.
pub fn endpoint(api: Api, base_url: &str) -> String {
    match api {
        Api::OpenAi => join(base_url, "/chat/completions"),
        Api::Anthropic if path_of(base_url).ends_with("/v1") => join(base_url, "/messages"),
        Api::Anthropic => join(base_url, "/v1/messages"),
    }
}

/// Where a server lists its models.
pub fn models_endpoint(api: Api, base_url: &str) -> String {
    match api {
        Api::Anthropic if !path_of(base_url).ends_with("/v1") => join(base_url, "/v1/models"),
        _ => join(base_url, "/models"),
    }
}

fn path_of(base_url: &str) -> &str {
    base_url.split('?').next().unwrap_or_default().trim_end_matches('/')
}

fn join(base_url: &str, path: &str) -> String {
    let base = path_of(base_url);
    match base_url.split_once('?') {
        Some((_, query)) => format!("{base}{path}?{query}"),
        None => format!("{base}{path}"),
    }
}

/// The headers that the protocol itself asks for, key aside.
pub fn headers(settings: &Settings) -> Vec<(String, String)> {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "text/event-stream".to_owned()),
    ];
    if settings.api == Api::Anthropic {
        headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
    }
    if settings.host == Host::OpenRouter {
        headers.push(("x-openrouter-title".to_owned(), "cotter".to_owned()));
    }
    headers
}

/// The cache mark, spliced in where a message may carry one.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

/// The images of a result that are sent. In a failed one Anthropic takes only text.
fn shown_images<'a>(settings: &Settings, result: &'a CallResult) -> &'a [Image] {
    match settings.learnt.no_images {
        None if !result.is_error => &result.images,
        _ => &[],
    }
}

/// The text of a result, which says what became of its images where they are not sent.
fn result_text<'a>(settings: &Settings, result: &'a CallResult) -> Cow<'a, str> {
    match settings.learnt.no_images {
        Some(why) if !result.images.is_empty() => {
            let left_out = format!("\n{}", why.in_place()).repeat(result.images.len());
            Cow::Owned(result.text.clone() + &left_out)
        }
        _ => Cow::Borrowed(&result.text),
    }
}

/// The mark of the system text and the tools, unless the server takes fewer.
fn static_mark(settings: &Settings) -> &'static str {
    if settings.learnt.fewer_marks >= 2 { "" } else { MARK }
}

/// Tokens, as the neutral names have it: the four kinds never overlap.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Input tokens read at full price.
    pub input: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
}

impl Usage {
    /// All tokens of the prompt, however they were priced.
    pub fn total_input(&self) -> u64 {
        self.input.saturating_add(self.cache_write).saturating_add(self.cache_read)
    }

    /// All tokens.
    pub fn total(&self) -> u64 {
        self.total_input().saturating_add(self.output)
    }

    /// Adds the usage of another request.
    pub fn add(&mut self, other: Usage) {
        self.input = self.input.saturating_add(other.input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.output = self.output.saturating_add(other.output);
    }
}

/// What a reply took, as far as the server has said it.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Spent {
    /// Tokens; none where the server does not say.
    pub usage: Usage,
    /// Money.
    pub stated: Stated,
}

/// What a server says that a reply cost.
#[derive(Debug, Default, Clone, PartialEq)]
pub enum Stated {
    /// It says nothing.
    #[default]
    Nothing,
    /// This amount.
    Cost(Cost),
    /// Something that is no amount, as it came.
    Unusable(String),
}

/// Why a reply ended, by meaning. Whether it holds calls is seen from its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The model was done.
    Finished,
    /// The output limit cut the reply.
    Cut,
    /// The context window was full before the reply was done.
    WindowFull,
    /// A filter withheld the reply or a part of it.
    Filtered,
    /// The model declined; the text is the vendor's explanation, which may be empty.
    Declined(String),
    /// A server-side tool loop wants to be continued with the reply sent back unchanged.
    Paused,
    /// The model tried to call a tool and failed to write the call.
    Botched,
}

impl Stop {
    /// The word that the Messages API has for the end of a reply with these parts.
    pub fn word(&self, parts: &[Part]) -> &'static str {
        match self {
            Stop::Finished | Stop::Botched if holds_call(parts) => "tool_use",
            Stop::Finished | Stop::Botched => "end_turn",
            Stop::Cut => "max_tokens",
            Stop::WindowFull => "model_context_window_exceeded",
            Stop::Filtered | Stop::Declined(_) => "refusal",
            Stop::Paused => "pause_turn",
        }
    }
}

/// A whole reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// Text, calls and vendor data in the order received.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub stop: Stop,
    /// What it cost in tokens; zero where the server does not say.
    pub usage: Usage,
    /// What it cost, by the server's own account.
    pub stated: Stated,
    /// The vendor's own word for the end, if it is not one that is known.
    pub unknown_stop: Option<String>,
}

impl Reply {
    /// What it took.
    pub fn spent(&self) -> Spent {
        Spent { usage: self.usage, stated: self.stated.clone() }
    }
}

/// Why a stream or document did not become a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// The server reported an error inside a successful response.
    Api(ApiError),
    /// The stream ended before its terminal event.
    Incomplete,
    /// The server sent a reply without content, which happens and may pass.
    Hollow,
    /// What came is not the protocol; the text says what is wrong with it.
    Malformed(String),
}

/// A reply being built, of either API.
pub enum Reader {
    /// Of the Chat Completions API.
    OpenAi(Box<openai::Reader>),
    /// Of the Messages API.
    Anthropic(anthropic::Reader),
}

impl Reader {
    /// A reader that has seen nothing yet.
    pub fn new(api: Api) -> Reader {
        match api {
            Api::OpenAi => Reader::OpenAi(Box::default()),
            Api::Anthropic => Reader::Anthropic(anthropic::Reader::default()),
        }
    }

    /// Takes one event of the stream.
    pub fn event(&mut self, event: &sse::Event) -> Result<(), Fault> {
        match self {
            Reader::OpenAi(reader) => reader.event(event),
            Reader::Anthropic(reader) => reader.event(event),
        }
    }

    /// Takes a whole reply in one JSON document.
    pub fn document(&mut self, text: &str) -> Result<(), Fault> {
        match self {
            Reader::OpenAi(reader) => reader.document(text),
            Reader::Anthropic(reader) => reader.document(text),
        }
    }

    /// Whether the terminal event was seen: nothing that matters can follow.
    pub fn is_over(&self) -> bool {
        match self {
            Reader::OpenAi(reader) => reader.is_over(),
            Reader::Anthropic(reader) => reader.is_over(),
        }
    }

    /// The answer's text so far, for showing while it grows. It gets longer, but for thinking that only its
    /// end tells: then the text begins anew.
    pub fn visible_text(&self) -> &str {
        match self {
            Reader::OpenAi(reader) => reader.visible_text(),
            Reader::Anthropic(reader) => reader.visible_text(),
        }
    }

    /// What has been reported so far.
    pub fn spent(&self) -> Spent {
        match self {
            Reader::OpenAi(reader) => reader.spent(),
            Reader::Anthropic(reader) => Spent { usage: reader.usage(), stated: Stated::Nothing },
        }
    }

    /// Whether all of the reply is here, and only news of it can follow.
    pub fn is_whole(&self) -> bool {
        match self {
            Reader::OpenAi(reader) => reader.is_whole(),
            Reader::Anthropic(reader) => reader.is_whole(),
        }
    }

    /// Whether what is here can be finished as it is, and nothing but its usage may follow. In Messages its end
    /// follows, and is told.
    pub fn awaits_usage(&self) -> bool {
        match self {
            Reader::OpenAi(reader) => reader.is_whole(),
            Reader::Anthropic(_) => false,
        }
    }

    /// Some of the blocks so far, in order, each with a number that stays its own: from this number on, and no more than
    /// so many calls or blocks of a kind that may be many.
    pub fn growing(&self, from: u64, most: usize) -> Vec<(u64, Growing<'_>)> {
        match self {
            Reader::OpenAi(reader) => reader.growing(from, most),
            Reader::Anthropic(reader) => reader.growing(from, most),
        }
    }

    /// The whole reply, once the stream or document has ended.
    pub fn finish(self) -> Result<Reply, Fault> {
        match self {
            Reader::OpenAi(reader) => reader.finish(),
            Reader::Anthropic(reader) => reader.finish(),
        }
    }
}

/// Parses JSON as servers send it: a lone surrogate, which `serde_json` refuses, becomes U+FFFD.
pub fn parse(text: &str) -> Result<Value, Fault> {
    parse_and_mend(text).map(|(value, _)| value)
}

/// Parses JSON likewise, and gives the text too, as it can be sent back: as it came, unless it was mended.
pub fn parse_and_mend(text: &str) -> Result<(Value, Cow<'_, str>), Fault> {
    if json::holds_too_much(text) {
        let why = format!("it holds {}: {}", json::TOO_MUCH, excerpt(text));
        return Err(Fault::Malformed(why));
    }
    let parsed = match serde_json::from_str(text) {
        Ok(value) => Ok((value, Cow::Borrowed(text))),
        Err(error) => match replace_lone_surrogates(text) {
            Some(mended) => serde_json::from_str(&mended).map(|value| (value, Cow::Owned(mended))),
            None => Err(error),
        },
    };
    parsed.map_err(|error| Fault::Malformed(format!("not JSON ({error}): {}", excerpt(text))))
}

/// Whether JSON text can be read alone, but perhaps not inside a request: readers bound the depth, many
/// at 128 levels, and a request puts a few around it.
pub fn is_too_deep(text: &str) -> bool {
    const MOST_LEVELS: usize = 100;
    let mut levels: usize = 0;
    let mut in_string = false;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' if in_string => {
                bytes.next();
            }
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                levels += 1;
                if levels > MOST_LEVELS {
                    return true;
                }
            }
            b'}' | b']' if !in_string => levels = levels.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The text with each `\uD800`-`\uDFFF` escape that has no partner replaced; absent if there is none.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::with_capacity(text.len());
    let mut found = false;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let Some(backslash) = rest.find('\\') else {
            mended.push_str(rest);
            break;
        };
        mended.push_str(&rest[..backslash]);
        at += backslash;
        let length = match (unit(at), unit(at + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                found = true;
                mended.push_str("\\ufffd");
                at += 6;
                continue;
            }
            // Another escape: the backslash and the character it escapes, which may be a backslash.
            _ => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        };
        mended.push_str(&text[at..at + length]);
        at += length;
    }
    found.then_some(mended)
}

/// Makes a call of what came, so that it can be run or refused and, either way, be sent back.
pub fn finish_call(id: String, name: &str, raw: &str, extra: Option<String>) -> Call {
    let name = plain_name(name).to_owned();
    let (arguments, refusal) = match object_text(raw) {
        Ok(arguments) if !name.is_empty() => (arguments, None),
        Ok(arguments) => (arguments, Some("the call names no tool; it was not run".to_owned())),
        Err(fault) => {
            let refusal = format!("the arguments are {fault}, so the call was not run: {}", excerpt(raw));
            ("{}".to_owned(), Some(refusal))
        }
    };
    // Both APIs refuse an empty name in the history.
    let name = if name.is_empty() { "unnamed".to_owned() } else { name };
    Call { id, name, arguments, refusal, extra }
}

/// gpt-oss behind vLLM leaves channel markers in the name.
fn plain_name(name: &str) -> &str {
    name.split("<|").next().unwrap_or_default().trim()
}

/// The text of the object that the arguments are: nothing and `null` mean an empty one, and an object
/// encoded twice is decoded once more. Sound text is kept as it came; what goes back is what is run, but for a NUL
/// character, which goes back as U+FFFD.
///
/// Errors say what the arguments are instead.
fn object_text(raw: &str) -> Result<String, &'static str> {
    let trimmed = raw.trim();
    if trimmed.is_empty() {
        return Ok("{}".to_owned());
    }
    if is_too_deep(trimmed) {
        return Err("nested too deeply");
    }
    if json::holds_too_much(trimmed) {
        return Err(json::TOO_MUCH);
    }
    match parse_and_mend(trimmed) {
        Ok((Value::Null, _)) => Ok("{}".to_owned()),
        Ok((value @ Value::Object(_), text)) => {
            Ok(json::without_repeats_or_nul(&text, &value).unwrap_or_else(|| text.into_owned()))
        }
        Ok((Value::String(inner), _)) if inner.trim_start().starts_with('{') => object_text(&inner),
        _ => Err("not a JSON object"),
    }
}

/// The beginning of a text, on one line, for an error message.
pub fn excerpt(text: &str) -> String {
    const LIMIT: usize = 300;
    let mut line: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(LIMIT)
        .collect();
    if text.chars().nth(LIMIT).is_some() {
        line.push('…');
    }
    line.trim().to_owned()
}

/// A number that a server may write as an integer, a float or a string.
pub fn number(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_f64().map(|float| float.max(0.0) as u64))
        .or_else(|| value.as_str()?.trim().parse().ok())
}

/// Appends a string as JSON text. Many servers refuse a request that holds a NUL, and then all later ones too.
fn push_string(out: &mut String, text: &str) {
    match text.contains('\0') {
        true => push_text(out, &text.replace('\0', "\u{fffd}")),
        false => push_text(out, text),
    }
}

/// A tool's name as both APIs allow it, for a call that made one up.
fn legal_name(name: &str) -> Cow<'_, str> {
    const MOST_LETTERS: usize = 64;
    let legal = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    match name.len() <= MOST_LETTERS && name.chars().all(legal) {
        true => Cow::Borrowed(name),
        false => {
            let letters = name.chars().map(|character| if legal(character) { character } else { '_' });
            letters.take(MOST_LETTERS).collect()
        }
    }
}

/// A short name for an id that the destination would refuse. FNV-1a over 64 bits: the same id gives the
/// same name in call and result, and two ids of one conversation practically never meet.
fn hashed_id(id: &str, alphabet: &[u8], length: usize) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in id.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // FNV's low bits mix least; folding the high ones in makes every digit depend on the whole id.
    hash ^= hash >> 32;
    (0..length)
        .map(|_| {
            let digit = alphabet[(hash % alphabet.len() as u64) as usize];
            hash /= alphabet.len() as u64;
            digit as char
        })
        .collect()
}

const ALPHANUMERIC: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(raw: &str) -> Call {
        finish_call("id".to_owned(), "Read", raw, None)
    }

    #[test]
    fn nothing_and_null_are_an_empty_object() {
        for raw in ["", "  ", "null", " null "] {
            let call = finished(raw);
            assert_eq!((call.arguments.as_str(), call.refusal), ("{}", None), "{raw:?}");
        }
    }

    #[test]
    fn sound_arguments_are_kept_to_the_byte() {
        let raw = r#"{"b": 1.10, "a":1e2}"#;
        assert_eq!(finished(raw).arguments, raw);
    }

    #[test]
    fn arguments_encoded_twice_are_decoded_once_more() {
        let call = finished(r#""{\"file_path\": \"a\"}""#);
        assert_eq!((call.arguments.as_str(), call.refusal), (r#"{"file_path": "a"}"#, None));
    }

    #[test]
    fn arguments_that_are_no_object_are_refused_and_quoted() {
        for raw in ["[1]", "{\"a\":", "3", r#""text""#] {
            let call = finished(raw);
            assert_eq!(call.arguments, "{}");
            let refusal = call.refusal.expect("refused");
            assert_eq!(
                refusal,
                format!("the arguments are not a JSON object, so the call was not run: {raw}")
            );
        }
    }

    #[test]
    fn channel_markers_are_cut_from_the_name() {
        let call = finish_call("id".into(), "Read<|channel|>commentary", "{}", None);
        assert_eq!((call.name.as_str(), call.refusal), ("Read", None));
        let call = finish_call("id".into(), " ", "{}", None);
        assert_eq!((call.name.as_str(), call.refusal.is_some()), ("unnamed", true));
    }

    #[test]
    fn lone_surrogates_become_the_replacement_character_and_pairs_stay() {
        let parsed = parse(r#"{"a":"\ud83d x \ude00 \ud83d\ude00 \\ud83d"}"#).expect("parses");
        assert_eq!(parsed["a"], "\u{fffd} x \u{fffd} \u{1f600} \\ud83d");
    }

    #[test]
    fn an_endpoint_is_joined_before_the_query() {
        let cases = [
            (Api::OpenAi, "https://h/v1/", "https://h/v1/chat/completions"),
            (Api::OpenAi, "https://h/d/x?api-version=1", "https://h/d/x/chat/completions?api-version=1"),
            (Api::Anthropic, "https://h", "https://h/v1/messages"),
            (Api::Anthropic, "https://h/v1", "https://h/v1/messages"),
        ];
        for (api, base, expected) in cases {
            assert_eq!(endpoint(api, base), expected);
        }
    }

    #[test]
    fn a_host_is_known_by_its_whole_domain() {
        assert_eq!(Host::of("eu.openrouter.ai"), Host::OpenRouter);
        assert_eq!(Host::of("notopenrouter.ai"), Host::Other);
        assert_eq!(Host::of("api.openai.com.evil.example"), Host::Other);
    }

    #[test]
    fn different_ids_get_different_short_names() {
        let names: std::collections::HashSet<String> =
            (0..20_000).map(|n| hashed_id(&format!("functions.Read:{n}"), ALPHANUMERIC, 9)).collect();
        assert_eq!(names.len(), 20_000);
    }

    /// They could be read alone, but the request around them could not.
    #[test]
    fn arguments_nested_too_deeply_are_refused() {
        let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
        let call = finished(&nested(100));
        assert_eq!((call.arguments, call.refusal), (nested(100), None));
        for levels in [101, 127, 128, 100_000] {
            let encoded = serde_json::to_string(&nested(levels)).unwrap();
            for raw in [nested(levels), encoded] {
                let call = finished(&raw);
                let refusal = call.refusal.expect("refused");
                let start = "the arguments are nested too deeply, so the call was not run: ";
                assert!(refusal.starts_with(start), "{refusal}");
                assert_eq!(call.arguments, "{}");
            }
        }
        let brackets = format!(r#"{{"a": "{}\"{{"}}"#, "[".repeat(200));
        let call = finished(&brackets);
        assert_eq!((call.arguments, call.refusal), (brackets, None));
    }

    #[test]
    fn half_a_surrogate_pair_in_arguments_is_replaced_and_the_rest_is_kept() {
        let call = finished(r#"{"n": 1.10, "a": "\ud83d"}"#);
        assert_eq!((call.arguments.as_str(), call.refusal), (r#"{"n": 1.10, "a": "\ufffd"}"#, None));
    }

    #[test]
    fn counts_of_tokens_are_added_without_overflow() {
        let mut usage = Usage { input: u64::MAX, cache_write: 1, cache_read: 2, output: 3 };
        assert_eq!(usage.total_input(), u64::MAX);
        usage.add(Usage { input: 1, cache_write: u64::MAX, cache_read: 4, output: 5 });
        assert_eq!(usage, Usage { input: u64::MAX, cache_write: u64::MAX, cache_read: 6, output: 8 });
        assert_eq!(Usage { input: 1, cache_write: 2, cache_read: 3, output: 4 }.total_input(), 6);
    }
}
