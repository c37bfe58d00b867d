//! One request and what comes of it: a reply, something learnt of the server, or an end. What is done about it is
//! the caller's.

use std::time::Instant;

use super::Agent;
use super::asking::show_growth;
use crate::error::Error;
use crate::http::net;
use crate::http::{Asked, Request, Trouble};
use crate::output::Output;
use crate::provider::errors::Verdict;
use crate::provider::{ApiError, Fault, Learnt, Reader, Reply, Wire};
use crate::response::{self, Broken};

/// What became of a question.
pub(super) enum Attempt {
    /// The reply, and how many bytes asked for it.
    Answered(Reply, usize),
    /// Something was learnt of the server: the request is to be written anew.
    Rewrite(Learnt),
    /// The conversation is too long, or may be.
    TooLong(ApiError),
    /// There is no reply. What there was of one comes with the error.
    Failed(Error, Option<Broken>),
}

/// What the user is to see of a reply while it grows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// Its text.
    Growth,
    /// Nothing.
    Nothing,
}

impl Agent {
    /// Sends this conversation and reads the reply.
    pub(super) fn attempt(&mut self, wire: &Wire, shown: Shown, output: &mut Output) -> Attempt {
        let body = wire.body(&self.settings);
        let bytes: usize = body.iter().map(|slice| slice.len()).sum();
        if output.tells_details() {
            output.detail(&self.line_of_request(shown, bytes));
        }
        output.waiting();
        let request = Request { url: &self.url, headers: &self.headers, body: &body };
        let api = self.settings.api;
        let (settings, text_calls, budget) = (&self.settings, self.text_calls, &self.budget);
        let (compacts, conversation) = (self.compacts, &self.conversation);
        let mut learnt = settings.learnt.clone();
        let mut too_long = None;
        let begun = Instant::now();
        let mut broken = Vec::new();
        let asked = self.http.ask(&request, output, |answer, output| {
            if shown == Shown::Growth {
                output.reply_begins(&settings.model);
            }
            let grown = &mut |reader: &Reader| {
                if shown == Shown::Growth {
                    show_growth(reader, text_calls, conversation, output)?;
                }
                match reader.is_whole() {
                    true => Ok(()),
                    false => budget.check_reply(&settings.model, &reader.spent()),
                }
            };
            let reply = response::read(answer, api, grown, &mut broken);
            reply.map_err(|trouble| match trouble {
                Trouble::Fault(Fault::Api(error), _) if error.teach(settings, &mut learnt) => {
                    Trouble::Rewrite
                }
                Trouble::Fault(Fault::Api(error), _) if is_too_long(&error, compacts) => {
                    too_long = Some(error);
                    Trouble::Rewrite
                }
                trouble => trouble,
            })
        });
        self.api_time += begun.elapsed();
        for part in &broken {
            self.budget.take_part(&self.settings.model, &part.spent);
        }
        match (asked, too_long) {
            (Ok(Asked::Answered(reply)), _) => Attempt::Answered(reply, bytes),
            (Ok(Asked::Rewrite), Some(error)) => Attempt::TooLong(error),
            (Ok(Asked::Rewrite), None) => Attempt::Rewrite(learnt),
            (Err(error), _) => Attempt::Failed(error, broken.pop()),
        }
    }

    fn line_of_request(&self, shown: Shown, bytes: usize) -> String {
        let to = match self.http.is_replaying() {
            true => "the recording".to_owned(),
            false => net::shown(&self.url),
        };
        match shown {
            Shown::Growth => format!("request {}: {bytes} bytes to {to}", self.budget.turns() + 1),
            Shown::Nothing => format!("request for a summary: {bytes} bytes to {to}"),
        }
    }
}

/// Whether a conversation was refused for its length, or, where room could be made, may have been.
fn is_too_long(error: &ApiError, compacts: bool) -> bool {
    match error.verdict() {
        Verdict::Overflow => error.may_be_overflow(),
        Verdict::Refused => compacts && error.may_be_overflow(),
        _ => false,
    }
}
