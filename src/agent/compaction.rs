//! A conversation that is too long, in the loop: results are cut, then its beginning is summarised, so that it fits.
//!
//! Room is made before a request where the window is known, and after a refusal where it was not. Each question makes
//! room a few times at most: what is too long after that ends the run.

use std::collections::HashSet;

use super::Agent;
use super::attempt::{Attempt, Shown};
use crate::compaction::{self, Fill, Weighed};
use crate::conversation::cuts::{line_of_beginning, line_of_results};
use crate::conversation::{Message, Part, Role, holds_call, texts};
use crate::error::Error;
use crate::http::{error_of_api, with_text};
use crate::image_limits;
use crate::output::Output;
use crate::provider::window::{self, Told};
use crate::provider::{self, Api, Reply, Stop, Wire};

/// How often room is made for one question.
pub(super) const MOST_OVERFLOWS: u32 = 4;
/// The calls of the last so many replies keep their results; where that is too much, those of the last one.
const KEPT_REPLIES: [usize; 2] = [3, 1];
/// How often in a row the results of the last reply itself may give way: a model that asks for the same again and again
/// would do so for ever.
const MOST_TIGHT: u32 = 3;
/// A reply of no more tokens that was cut had no room.
const FEW_TOKENS: u64 = 16;

/// What a conversation needs to know of the room that it has.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// How much of it is taken.
    pub fill: Fill,
    /// What the messages weigh that were there at the last reply.
    weighed: Weighed,
    /// The message in which the user last said something.
    pub prompt_at: usize,
    /// What the window is taken for, where a server has refused too much and says no number.
    guessed_window: Option<u64>,
    /// Whether the results of the last reply itself had to give way for the present question.
    is_tight: bool,
    /// For how many questions in a row before it they had.
    tight_questions: u32,
    /// Whether there is no summary for the present prompt, though one was asked for: none is asked for again while the
    /// conversation fits, which would be each time.
    is_unsummarized: bool,
}

/// What came of asking for a summary.
enum Summary {
    /// The parts that stand in the place of what was summarised.
    Made(Vec<Part>),
    /// A reply that is none, for this reason. The next may be one.
    Unusable(&'static str),
    /// No reply, for this reason, and there would be none again.
    Refused(String),
}

impl Room {
    /// Another model is asked from here on.
    pub(super) fn forget_window(&mut self) {
        self.guessed_window = None;
        self.is_unsummarized = false;
    }
}

impl Agent {
    /// Notes that the user is about to say something, in a message of its own or at the end of the last one.
    pub(super) fn note_prompt(&mut self) {
        let messages = self.conversation.messages();
        self.room.prompt_at = match messages.last() {
            Some(last) if last.role == Role::User => messages.len() - 1,
            _ => messages.len(),
        };
        self.room.is_unsummarized = false;
    }

    /// Notes what a reply told of the room, before it is added.
    pub(super) fn measure(&mut self, reply: &Reply) {
        self.room.weighed.keep(self.conversation.messages());
        let weight = self.weight() + compaction::weight_of_parts(&reply.parts);
        self.room.fill.measure(reply.usage.total(), weight);
    }

    /// Makes room before a request, where the window is known and nearly full.
    ///
    /// # Errors
    ///
    /// There is none, and none may be made.
    pub(super) fn make_room_ahead(&mut self, output: &mut Output) -> Result<(), Error> {
        let Some(window) = self.settings.window().or(self.room.guessed_window) else { return Ok(()) };
        let fill = self.fill();
        if !self.compacts {
            return match fill > window {
                true => Err(Error::Refused(format!(
                    "the conversation is too long: it has about {fill} tokens, and the model's window {window}: leave \
                     --no-compaction out, or choose a --model with a larger window"
                ))),
                false => Ok(()),
            };
        }
        match fill > compaction::limit(window, self.settings.max_output_tokens) {
            true => self.fit(window, output).map(|_| ()),
            false => Ok(()),
        }
    }

    /// Makes room after a server has refused what was sent, or cut it in silence. False if there is nothing that could
    /// give way.
    pub(super) fn make_room(&mut self, told: Told, output: &mut Output) -> Result<bool, Error> {
        if !self.could_give_way() {
            return Ok(false);
        }
        output.detail("the conversation is too long for the model's window: making room");
        if told.window.is_some() {
            self.settings.learnt.window = told.window;
        } else if self.settings.window().is_none() {
            self.settings.learnt.window = self.listed_window();
        }
        let weight = self.weight();
        let guess = self.fill();
        let window = self.settings.window().or(self.room.guessed_window).unwrap_or_else(|| {
            self.room.guessed_window = Some(guess);
            guess
        });
        // It did not fit, whatever was guessed.
        self.room.fill.measure(told.prompt.unwrap_or(guess).max(window), weight);
        if self.settings.learnt.room.take().is_some() {
            self.wire = Wire::new(&self.settings);
        }
        self.fit(window, output)
    }

    /// Whether to ask anew, since a server has cut the conversation in silence and there is room now.
    ///
    /// # Errors
    ///
    /// There is none, though the reply is to only a part of the conversation.
    pub(super) fn asks_again(
        &mut self,
        reply: &Reply,
        overflows: u32,
        output: &mut Output,
    ) -> Result<bool, Error> {
        let Some(told) = self.silent_overflow(reply) else {
            let is_tight = std::mem::take(&mut self.room.is_tight);
            self.room.tight_questions = if is_tight { self.room.tight_questions + 1 } else { 0 };
            return Ok(false);
        };
        if self.compacts && overflows <= MOST_OVERFLOWS && self.make_room(told, output)? {
            output.attempt_broke()?;
            return Ok(true);
        }
        match self.is_full(reply) {
            true => Err(Error::Refused(format!(
                "the conversation is too long: the server counts {} tokens, which fill a window of {}, so that the \
                 reply may be to a part of it: ask for less{}, choose a --model with a larger window, or correct \
                 --context-window",
                reply.usage.total_input(),
                self.settings.window().unwrap_or_default(),
                if self.compacts { "" } else { ", leave --no-compaction out" }
            ))),
            false => Ok(false),
        }
    }

    fn is_full(&self, reply: &Reply) -> bool {
        self.settings.window().is_some_and(|window| reply.usage.total_input() >= window)
    }

    /// What a reply tells of a conversation that was too long, though there was no error; absent if it was not.
    fn silent_overflow(&self, reply: &Reply) -> Option<Told> {
        let (read, total) = (reply.usage.total_input(), reply.usage.total());
        let told =
            |window| Some(Told { window, prompt: Some(read).filter(|read| *read > 0), completion: None });
        let written = match reply.usage.output {
            0 => compaction::weight_of_parts(&reply.parts),
            output => output,
        };
        let limit = self.settings.max_output_tokens.map_or(u64::MAX, u64::from);
        let has_calls = holds_call(&reply.parts);
        let is_round = total >= 2048 && total.is_multiple_of(1024);
        match reply.stop {
            _ if self.is_full(reply) => told(None),
            Stop::WindowFull => told(Some(total).filter(|total| *total > 0)),
            Stop::Cut if has_calls || written >= limit => None,
            // As servers cut that say nothing of a window: Ollama's usual one has 4,096 tokens.
            Stop::Cut if is_round && self.settings.api == Api::OpenAi => told(Some(total)),
            Stop::Cut if written <= FEW_TOKENS => told(Some(total).filter(|_| read > 0)),
            _ => None,
        }
    }

    /// Whether there is anything but the first prompt and one reply, or a result.
    fn could_give_way(&self) -> bool {
        let messages = self.conversation.messages();
        !compaction::results(messages, 0, u64::MAX, 0).is_empty()
            || compaction::tail(messages, 1).is_some_and(|from| from > 1)
    }

    /// Lets results and then the beginning give way until what is left fits. False if nothing did.
    fn fit(&mut self, window: u64, output: &mut Output) -> Result<bool, Error> {
        let before = self.weight();
        let goal = compaction::goal(window);
        let enough = compaction::enough(window, self.settings.max_output_tokens);
        for replies in KEPT_REPLIES {
            self.cut_results(replies, goal, output)?;
            if self.fill() <= enough {
                return Ok(self.weight() < before);
            }
        }
        if self.summarize(window, output)? && self.fill() > enough {
            // What is left is one reply and what it asked for.
            if self.room.tight_questions >= MOST_TIGHT {
                return Err(Error::Refused(format!(
                    "what the model asks for at a time does not fit into its window of {window} tokens: choose a \
                     --model with a larger window, or ask for less at a time"
                )));
            }
            let weight = self.weight();
            self.cut_results(0, enough, output)?;
            self.room.is_tight |= self.weight() < weight;
        }
        Ok(self.weight() < before)
    }

    /// Cuts results, oldest first, until so many tokens are left.
    fn cut_results(&mut self, replies: usize, goal: u64, output: &mut Output) -> Result<(), Error> {
        let weight = self.weight();
        let goal = self.room.fill.weight_of(goal, weight);
        let cut = compaction::results(self.conversation.messages(), replies, weight, goal);
        if cut.is_empty() {
            return Ok(());
        }
        let before = self.fill();
        let calls: HashSet<&str> = cut.iter().map(String::as_str).collect();
        self.conversation.cut_results(&calls);
        self.wire.renew(&self.settings, self.conversation.messages());
        self.note_cut(weight);
        output.detail(&format!(
            "{} of tools cut to save room: about {before} tokens become {}",
            if cut.len() == 1 { "a result".to_owned() } else { format!("{} results", cut.len()) },
            self.fill()
        ));
        self.append(&line_of_results(&cut))
    }

    /// Has the model summarise all but the last replies, if there is enough of that. False if it goes on without a
    /// summary that it should have.
    fn summarize(&mut self, window: u64, output: &mut Output) -> Result<bool, Error> {
        let messages = self.conversation.messages();
        let weight = self.weight();
        let tokens = |part: &[Message]| self.room.fill.share(compaction::weight(part), weight);
        let Some(kept_from) = KEPT_REPLIES
            .into_iter()
            .filter_map(|replies| compaction::tail(messages, replies))
            .find(|from| *from > 1 && tokens(&messages[*from..]) <= window / 4)
            .or_else(|| compaction::tail(messages, 1).filter(|from| *from > 1))
        else {
            return Ok(true);
        };
        if tokens(&messages[1..kept_from]) < window / 8 {
            return Ok(true);
        }
        let before = self.fill();
        let fits = before < window;
        if fits && self.room.is_unsummarized {
            return Ok(false);
        }
        let parts = match self.ask_for_summary(kept_from, output)? {
            Summary::Made(parts) => parts,
            why if fits => {
                self.room.is_unsummarized = true;
                output.warn(&format!(
                    "the conversation nearly fills the model's window and could not be summarised ({}): going on with \
                     all of it while it fits",
                    why.reason()
                ));
                return Ok(false);
            }
            why => return Err(unsummarized(why.reason())),
        };
        let messages = self.conversation.messages();
        let kept = messages.len() - kept_from;
        let line = line_of_beginning(&parts, kept);
        self.conversation
            .begin_with(parts, kept)
            .map_err(|()| Error::Internal("a summary has no place in the conversation".to_owned()))?;
        self.wire.renew(&self.settings, self.conversation.messages());
        self.room.prompt_at = (self.room.prompt_at + 1).saturating_sub(kept_from);
        self.note_cut(weight);
        let after = self.fill();
        output.detail(&format!(
            "the beginning of the conversation was summarised to save room: about {before} tokens become {after}"
        ));
        // Events tell of the run's own conversation.
        if !self.is_apart {
            output.compacted(before, after)?;
        }
        self.append(&line)?;
        self.room.is_unsummarized = false;
        Ok(true)
    }

    /// Asks for a summary of the messages before this one, and once more if the reply is none. The tools and all else
    /// stay as they are in the other requests: whatever differed would cost what the server has cached.
    fn ask_for_summary(&mut self, end: usize, output: &mut Output) -> Result<Summary, Error> {
        output.end_shown()?;
        let mut messages = self.conversation.messages()[..end].to_vec();
        add_text(&mut messages, compaction::INSTRUCTION.to_owned());
        // A form of the answer is not that of a summary.
        let form = match self.settings.native_answer() {
            Some(_) => self.settings.answer.take(),
            None => None,
        };
        let mut asked = self.summary_of(&messages, output);
        if let Ok(Summary::Unusable(why)) = asked {
            output.detail(&format!("{why}: asking for it once more"));
            add_text(&mut messages, compaction::instruction_again(why));
            asked = self.summary_of(&messages, output);
        }
        if form.is_some() {
            self.settings.answer = form;
            self.wire = Wire::new(&self.settings);
        }
        asked
    }

    /// Asks so much, of which the last message ends with the instruction.
    fn summary_of(&mut self, messages: &[Message], output: &mut Output) -> Result<Summary, Error> {
        loop {
            let mut wire = Wire::new(&self.settings);
            wire.update(&self.settings, messages);
            match self.attempt(&wire, Shown::Nothing, output) {
                Attempt::Answered(reply, bytes) => {
                    self.budget.take_summary(&self.settings.model, &reply.spent(), bytes);
                    self.budget.check_spent()?;
                    return Ok(self.judge(&reply, messages.len()));
                }
                Attempt::Rewrite(learnt) => self.learn(learnt, output),
                Attempt::TooLong(error) => {
                    return Ok(Summary::Refused(error_of_api(&error, &self.url, None).to_string()));
                }
                Attempt::Failed(error, _) => match self.fall_back(error, output) {
                    Ok(()) => {}
                    Err(Error::Refused(why) | Error::Malformed(why)) => return Ok(Summary::Refused(why)),
                    Err(error) => {
                        return Err(with_text(error, |text| {
                            format!(
                                "{text}; what was asked for is a summary, since the conversation is too long"
                            )
                        }));
                    }
                },
            }
        }
    }

    /// What a reply is worth as a summary of the messages before this one.
    fn judge(&self, reply: &Reply, end: usize) -> Summary {
        let text = texts(&reply.parts).join("\n");
        match reply.stop {
            Stop::Declined(_) | Stop::Filtered => return Summary::Unusable("the model declined"),
            Stop::Botched => return Summary::Unusable("the model called a tool instead"),
            _ if holds_call(&reply.parts) => return Summary::Unusable("the model called a tool instead"),
            _ if text.trim().is_empty() => return Summary::Unusable("the summary is empty"),
            Stop::Cut | Stop::WindowFull => return Summary::Unusable("the summary was cut off"),
            _ => {}
        }
        let messages = self.conversation.messages();
        let parts = compaction::beginning(messages, self.room.prompt_at, end, &text);
        match compaction::weight_of_parts(&parts) < compaction::weight(&messages[..end]) {
            true => Summary::Made(parts),
            false => Summary::Unusable("the summary is no shorter than what it stands for"),
        }
    }

    fn note_cut(&mut self, before: u64) {
        self.room.weighed = Weighed::default();
        let after = self.weight();
        self.room.fill.cut(before, after);
        let mut images = image_limits::Held::default();
        self.conversation.check_images(|shown| images.add(shown));
        self.images = images;
    }

    /// The tokens that the conversation is taken to have.
    fn fill(&self) -> u64 {
        self.room.fill.of(self.weight())
    }

    fn weight(&self) -> u64 {
        compaction::weight_of_bytes(self.wire.head_length())
            + self.room.weighed.of(self.conversation.messages())
    }

    /// What the server's list of models says of the window, or the recording of a run that had asked.
    fn listed_window(&mut self) -> Option<u64> {
        if self.http.is_replaying() {
            return self.http.recorded_window();
        }
        // Whatever was known is of another model.
        self.http.record_window(None);
        let (status, body) = self.http.get(&self.models_url, &self.headers).ok()?;
        let list = provider::parse(&String::from_utf8_lossy(&body)).ok().filter(|_| status == 200)?;
        let window = window::of_list(&list, &self.settings.model)?;
        self.http.record_window(Some(window));
        Some(window)
    }

    /// Writes a line about the conversation into the session file.
    fn append(&mut self, line: &str) -> Result<(), Error> {
        match self.session.as_mut().filter(|_| !self.is_apart) {
            Some(session) => session.append(vec![line.to_owned()]),
            None => Ok(()),
        }
    }
}

impl Summary {
    /// Why there is none.
    fn reason(&self) -> &str {
        match self {
            Summary::Made(_) => "",
            Summary::Unusable(why) => why,
            Summary::Refused(why) => why,
        }
    }
}

/// Says something at the end of the last message.
fn add_text(messages: &mut [Message], text: String) {
    if let Some(last) = messages.last_mut() {
        last.parts.push(Part::Text(text));
    }
}

/// The end of a run whose conversation cannot be made shorter.
fn unsummarized(why: &str) -> Error {
    Error::Refused(format!(
        "the conversation is too long for the model's window and could not be summarised ({why}): go on in a new \
         session, or choose a --model with a larger window"
    ))
}
