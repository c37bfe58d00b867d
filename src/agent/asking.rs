//! One reply: the request is written anew where something was learnt of the server, and another model is asked
//! where the first stays overloaded. What came is counted and understood.

use super::attempt::{Attempt, Shown};
use super::compaction::MOST_OVERFLOWS;
use super::{Agent, system_prompt};
use crate::config::TextCalls;
use crate::conversation::{Conversation, Part, holds_call, texts};
use crate::error::Error;
use crate::http::with_text;
use crate::output::Output;
use crate::provider::shown::Growing;
use crate::provider::{
    AnswerForm, Learnt, Reader, Reply, Stated, Stop, Usage, Wire, answer_form, text_calls, thinking,
};
use crate::response::Broken;

/// How often an overloaded model is asked again where another one can be asked instead.
const RETRIES_BEFORE_FALLBACK: u32 = 2;

impl Agent {
    /// Asks until there is a reply, writing the request anew where something was learnt of the server.
    pub(super) fn ask(&mut self, output: &mut Output) -> Result<Reply, Error> {
        self.heed_client()?;
        self.budget.check_request()?;
        self.save()?;
        output.end_shown()?;
        self.make_room_ahead(output)?;
        let mut overflows = 0;
        loop {
            self.wire.update(&self.settings, self.conversation.messages());
            let wire = std::mem::take(&mut self.wire);
            let attempt = self.attempt(&wire, Shown::Growth, output);
            self.wire = wire;
            match attempt {
                Attempt::Answered(mut reply, bytes) => {
                    self.take_note(&mut reply, bytes, output)?;
                    if let Err(error) = self.budget.check_spent() {
                        self.text = texts(&reply.parts).join("\n");
                        if !reply.parts.is_empty() {
                            self.refuse_calls(reply, &format!("not run: {error}"), output)?;
                        }
                        return Err(error);
                    }
                    overflows += 1;
                    if !self.asks_again(&reply, overflows, output)? {
                        return Ok(reply);
                    }
                }
                Attempt::Rewrite(learnt) => self.learn(learnt, output),
                Attempt::TooLong(error) if !self.compacts => {
                    let error = self.http.refused(&error, &self.url);
                    return Err(with_text(error, |text| format!("{text}, or leave --no-compaction out")));
                }
                Attempt::TooLong(error) => {
                    overflows += 1;
                    if overflows > MOST_OVERFLOWS || !self.make_room(error.told(), output)? {
                        return Err(self.http.refused(&error, &self.url));
                    }
                }
                Attempt::Failed(error, part) => {
                    self.keep_part(&error, part);
                    self.fall_back(error, output)?;
                }
            }
        }
    }

    /// Writes requests as this server takes them from now on, and says what of the wishes is lost by it.
    pub(super) fn learn(&mut self, learnt: Learnt, output: &mut Output) {
        output.detail("the API refused a detail of the request: asking again without it");
        let before = std::mem::replace(&mut self.settings.learnt, learnt);
        let learnt = &self.settings.learnt;
        if let (None, Some(why)) = (before.no_images, learnt.no_images) {
            output.warn(&format!("images are left out of this run's requests: {}", why.text()));
        }
        if learnt.no_effort && !before.no_effort {
            output.warn("the model does not take the --effort asked for: asking without it");
        }
        if learnt.thinking_refusals > before.thinking_refusals && thinking::mode(&self.settings).is_none() {
            output.warn("the model does not take the thinking asked for: asking without it");
        }
        self.wire = Wire::new(&self.settings);
    }

    /// Asks the next fallback model from now on where this one stays overloaded. Errors: that which ends the run, since
    /// there is none or it would not help.
    pub(super) fn fall_back(&mut self, error: Error, output: &mut Output) -> Result<(), Error> {
        let next = match error {
            Error::Overloaded(_) => self.fallback_models.pop_front(),
            _ => None,
        };
        let Some(model) = next else { return Err(error) };
        output.attempt_broke()?;
        output.warn(&format!("{error}: asking {model} from here on (--fallback-model)"));
        self.choose_model(model);
        self.expect_overload();
        Ok(())
    }

    /// Asks this model from the next request on. What was learnt was learnt of the other one, and the form of an
    /// answer is the model's too.
    pub(super) fn choose_model(&mut self, model: String) {
        self.settings.model = model;
        self.settings.learnt = Learnt::default();
        self.room.forget_window();
        self.settings.answer = self.answer_form();
        self.wire = Wire::new(&self.settings);
    }

    /// The form of the answer for the model that is asked.
    pub(super) fn answer_form(&self) -> Option<AnswerForm> {
        self.answer.as_ref().map(|answer| answer_form::form(&self.settings, answer.schema()))
    }

    /// Begins the conversation anew with another system prompt. What is only learnt of a server leaves the prompt as
    /// it is: beginnings of requests that stay the same are kept in caches.
    pub(super) fn instruct(&mut self) {
        self.settings.system = system_prompt(&self.instructions, &self.settings);
        self.wire = Wire::new(&self.settings);
    }

    /// Where another model can be asked, this one is not waited for as long.
    pub(super) fn expect_overload(&mut self) {
        self.http.retry_overload(match self.fallback_models.is_empty() {
            true => u32::MAX,
            false => RETRIES_BEFORE_FALLBACK,
        });
    }

    /// Keeps the text of a reply that a budget or the client cut.
    fn keep_part(&mut self, error: &Error, part: Option<Broken>) {
        let is_cut =
            matches!(error, Error::Tokens(_) | Error::Cost(_) | Error::Time(_) | Error::Interrupted(_));
        if let Some(part) = part.filter(|_| is_cut) {
            self.keep_text(part.text);
        }
    }

    /// Counts a reply to a request of so many bytes, says what is odd about it, and understands its text.
    fn take_note(&mut self, reply: &mut Reply, bytes: usize, output: &mut Output) -> Result<(), Error> {
        self.measure(reply);
        let said: usize = reply.parts.iter().map(length).sum();
        self.budget.take_reply(&self.settings.model, &reply.spent(), bytes + said);
        if let Some(line) = self.budget.tell_no_cost() {
            output.warn(line);
        }
        if let Stated::Unusable(what) = &reply.stated {
            output.detail(&format!("what the server says that the reply cost is no amount: {what}"));
        }
        self.stop_reason = Some(reply.stop.word(&reply.parts));
        if !self.http.is_replaying() {
            // Images cost tokens by their dimensions, few for their bytes.
            let images = match self.settings.learnt.no_images {
                None => self.images.characters(),
                Some(_) => 0,
            };
            warn_of_cut_prompt(bytes.saturating_sub(images), reply.usage, output);
        }
        if let Some(word) = &reply.unknown_stop {
            output.detail(&format!("the reply ended with an unknown word, taken as its end: {word}"));
        }
        self.understand_text(reply, output)
    }

    /// Puts the calls that a reply's text is, if it is nothing else, in the place of that text. From there on
    /// they are as any other. Sent back as text, with the result as a user's message, they did better only under
    /// a template that shows no tools, where a model hardly ever calls one; under one that does, a real model
    /// read its own text as a call that was still open, and repeated it.
    fn understand_text(&self, reply: &mut Reply, output: &mut Output) -> Result<(), Error> {
        let text = texts(&reply.parts).join("\n");
        // Where the server keeps to the form of the answer, JSON is that.
        let is_native = self.settings.native_answer().is_some();
        let is_answer = reply.stop == Stop::Finished && !holds_call(&reply.parts) && !is_native;
        let calls = match is_answer && self.text_calls != TextCalls::Leave {
            true => text_calls::calls(&text, &self.settings.offered()),
            false => Vec::new(),
        };
        let names = calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(", ");
        match self.text_calls {
            TextCalls::Run if !calls.is_empty() => {
                output.detail(&format!(
                    "the reply is a call written as text ({names}), which is run: --text-tool-calls off leaves it"
                ));
                reply.parts.retain(|part| !matches!(part, Part::Text(_)));
                reply.parts.extend(calls.into_iter().map(Part::Call));
                Ok(())
            }
            // It was held back as long as it could become a call.
            TextCalls::Run if text_calls::may_become_calls(&text) => output.show(&text),
            TextCalls::Report if !calls.is_empty() => {
                output.warn(&format!(
                    "the answer is a call written as text ({names}): --text-tool-calls on has such calls run"
                ));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// How many blocks of a growing reply are looked at together: one may hold thousands, and each piece of it is told.
const MOST_AT_ONCE: usize = 16;

/// Shows what is new of a reply. What may yet become a call is not shown as an answer.
pub(super) fn show_growth(
    reader: &Reader,
    text_calls: TextCalls,
    conversation: &Conversation,
    output: &mut Output,
) -> Result<(), Error> {
    if !output.streams_text() && !output.tells_growth() {
        return Ok(());
    }
    let text = reader.visible_text();
    let is_held = text_calls == TextCalls::Run && text_calls::may_become_calls(text);
    while output.tells_growth() {
        let mut growing = reader.growing(output.told_to(), MOST_AT_ONCE);
        growing.retain(|(_, block)| !(is_held && matches!(block, Growing::Text(_))));
        if !output.grows(&growing, |id| conversation.has_call(id))? {
            return Ok(());
        }
    }
    match is_held {
        true => Ok(()),
        false => output.show(text),
    }
}

/// Ollama cuts the front of a prompt that is longer than its context, system prompt and tools first, and says
/// nothing. No text has that many bytes for each token.
fn warn_of_cut_prompt(bytes: usize, usage: Usage, output: &mut Output) {
    const MOST_BYTES_PER_TOKEN: u64 = 10;
    let read = usage.total_input();
    if read > 0 && bytes as u64 > read.saturating_mul(MOST_BYTES_PER_TOKEN) {
        output.warn(&format!(
            "the server read only {read} tokens of a request of {bytes} bytes and may have dropped its beginning: \
             give it a larger context (for Ollama, OLLAMA_CONTEXT_LENGTH)"
        ));
    }
}

/// About how many bytes the model wrote for a part.
fn length(part: &Part) -> usize {
    match part {
        Part::Text(text) | Part::Vendor(text) => text.len(),
        Part::Call(call) => call.name.len() + call.arguments.len(),
        Part::Result(_) | Part::Image(_) => 0,
    }
}
