//! How full a model's window is, and what of a conversation gives way where it is too full.
//!
//! Pure and the same for the same conversation. What is cut is cut in one large step, down to half of the window: a
//! little each turn would spoil the server's cache each turn.

use crate::conversation::{Message, Part, Role};

/// A guess that is rather too high: a token of code has three to four bytes.
const BYTES_PER_TOKEN: usize = 3;
/// About what both APIs take for a picture of the usual size.
const TOKENS_PER_IMAGE: usize = 1500;
/// A result that weighs less is not worth cutting.
const LEAST_RESULT: u64 = 200;

/// What the instruction to summarise says, at the end of what is to be summarised.
pub const INSTRUCTION: &str = "This conversation is about to become too long to be sent. Stop the work here, call no \
tools, and write a summary of it, from which someone can go on who knows nothing of it but the first message: what \
else the user has asked for, in the user's words; what was done and found out, with the names of files, commands and \
values as they are; what went wrong; what is still to be done, and what was being done last. Write nothing but the \
summary.";

/// What is said behind it where the reply was no summary, for this reason.
pub fn instruction_again(why: &str) -> String {
    format!(
        "This was asked once already, and {why}. Answer with the summary alone, as plain text of at most 1000 words, and \
         call no tool."
    )
}

const SUMMARY: &str = "[summary of what was said since, which was too long to be kept whole]";
const END: &str = "[end of the summary]";
const LAST_PROMPT: &str = "[end of the summary; what the user said last follows]";

/// How many tokens a conversation takes, as far as the server has told.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fill {
    /// What the last reply told; none if nothing has.
    tokens: u64,
    /// What was guessed for the same.
    weight: u64,
}

impl Fill {
    /// Takes the server's count for what is guessed to weigh so much.
    pub fn measure(&mut self, tokens: u64, weight: u64) {
        if tokens > 0 {
            *self = Fill { tokens, weight };
        }
    }

    /// The tokens of a conversation that is guessed to weigh so much.
    pub fn of(&self, weight: u64) -> u64 {
        match self.tokens {
            0 => weight,
            // What was added since is guessed.
            tokens if weight >= self.weight => tokens.saturating_add(weight - self.weight),
            tokens => scale(tokens, weight, self.weight),
        }
    }

    /// The tokens of a part of a conversation, by what both weigh.
    pub fn share(&self, part: u64, weight: u64) -> u64 {
        scale(self.of(weight), part, weight)
    }

    /// What a conversation of this weight may weigh to have so many tokens.
    pub fn weight_of(&self, tokens: u64, weight: u64) -> u64 {
        scale(weight, tokens, self.of(weight)).min(weight)
    }

    /// Goes on from the count so far after so much was cut.
    pub fn cut(&mut self, before: u64, after: u64) {
        if self.tokens > 0 {
            *self = Fill { tokens: scale(self.of(before), after, before), weight: after };
        }
    }
}

/// What the messages weigh that cannot grow any more, so that a long conversation is not gone through at each reply.
#[derive(Debug, Default)]
pub struct Weighed {
    messages: usize,
    weight: u64,
}

impl Weighed {
    /// The guess for messages of which the first are those that were weighed before.
    pub fn of(&self, messages: &[Message]) -> u64 {
        self.weight + weight(messages.get(self.messages..).unwrap_or_default())
    }

    /// Weighs all but the last message, to which more may be added. What was weighed must not change from here on.
    pub fn keep(&mut self, messages: &[Message]) {
        let settled = &messages[..messages.len().saturating_sub(1)];
        *self = Weighed { weight: self.of(settled), messages: self.messages.max(settled.len()) };
    }
}

/// The same share of a number as these two have of each other.
fn scale(number: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The guess for a text.
pub fn weight_of_bytes(bytes: usize) -> u64 {
    (bytes / BYTES_PER_TOKEN) as u64
}

/// The guess for messages.
pub fn weight(messages: &[Message]) -> u64 {
    messages.iter().map(|message| weight_of_parts(&message.parts)).sum()
}

/// The guess for parts.
pub fn weight_of_parts(parts: &[Part]) -> u64 {
    parts.iter().map(weight_of_part).sum()
}

fn weight_of_part(part: &Part) -> u64 {
    match part {
        Part::Text(text) | Part::Vendor(text) => weight_of_bytes(text.len()),
        Part::Image(_) => TOKENS_PER_IMAGE as u64,
        Part::Call(call) => weight_of_bytes(call.id.len() + call.name.len() + call.arguments.len()),
        Part::Result(result) => {
            weight_of_bytes(result.call_id.len() + result.text.len())
                + (TOKENS_PER_IMAGE * result.images.len()) as u64
        }
    }
}

/// Above how many tokens room is made in a window, of which a reply may take so many.
pub fn limit(window: u64, reply: Option<u32>) -> u64 {
    let usual = window / 20 * 17;
    match reply {
        Some(reply) => usual.min(window.saturating_sub(reply.into())).max(window / 2),
        None => usual,
    }
}

/// Down to how many tokens it is made.
pub fn goal(window: u64) -> u64 {
    window / 2
}

/// With how many tokens it is enough.
pub fn enough(window: u64, reply: Option<u32>) -> u64 {
    (window / 3 * 2).min(limit(window, reply))
}

/// Where the last so many replies begin, with what follows them; absent if there are none before the first of them.
pub fn tail(messages: &[Message], replies: usize) -> Option<usize> {
    let is_reply = |pair: &[Message]| pair[0].role == Role::User && pair[1].role == Role::Assistant;
    let all = (1..messages.len()).rev().filter(|index| is_reply(&messages[index - 1..=*index]));
    all.take(replies).last()
}

/// The calls whose results are cut, oldest first, so that messages of this weight come to weigh no more than `goal`.
/// The last so many replies keep theirs.
pub fn results(messages: &[Message], replies: usize, weight: u64, goal: u64) -> Vec<String> {
    let end = match replies {
        0 => messages.len(),
        _ => tail(messages, replies).unwrap_or(0),
    };
    let mut left = weight;
    let mut cut = Vec::new();
    for part in messages[..end].iter().flat_map(|message| &message.parts) {
        if left <= goal {
            break;
        }
        if let Part::Result(result) = part
            && !result.is_cut()
            && (weight_of_part(part) >= LEAST_RESULT || !result.images.is_empty())
        {
            left = left.saturating_sub(weight_of_part(part));
            cut.push(result.call_id.clone());
        }
    }
    cut
}

/// The first message of a conversation whose beginning was summarised: what was said first, the summary, and what the
/// user said last, where that stands before what is kept.
pub fn beginning(messages: &[Message], prompt_at: usize, kept_from: usize, summary: &str) -> Vec<Part> {
    let first = messages.first().map_or(&[][..], |message| &message.parts);
    let is_summary = |part: &Part| matches!(part, Part::Text(text) if text.starts_with(SUMMARY));
    let end = first.iter().position(is_summary).unwrap_or(first.len());
    let mut parts = said(&first[..end]);
    let last = match messages.get(prompt_at) {
        _ if prompt_at >= kept_from => Vec::new(),
        Some(_) if prompt_at == 0 => said(first.get(end + 1..).unwrap_or_default()),
        Some(message) => said(&message.parts),
        None => Vec::new(),
    };
    let sign = if last.is_empty() { END } else { LAST_PROMPT };
    parts.push(Part::Text(format!("{SUMMARY}\n{}\n{sign}", summary.trim())));
    parts.extend(last);
    parts
}

/// What the user said and showed.
fn said(parts: &[Part]) -> Vec<Part> {
    parts.iter().filter(|part| matches!(part, Part::Text(_) | Part::Image(_))).cloned().collect()
}

#[cfg(test)]
mod tests;
