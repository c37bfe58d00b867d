//! The calls of a reply: each is run, or not, and has exactly one result before the next request.

use super::Agent;
use crate::conversation::{Call, CallResult, Part};
use crate::error::Error;
use crate::output::Output;
use crate::provider::{self, Reply};
use crate::sandbox::permissions::Mode;
use crate::tools::toolbox::Denied;
use crate::tools::{Outcome, skill};

impl Agent {
    /// Answers every call, in order, also where the run ends with one of them. Behind that one none is run.
    /// The calls are in the session before they run, and each result before the next call does: a run that is
    /// killed is told apart from one that did nothing.
    pub(super) fn run_calls(&mut self, calls: &[Call], output: &mut Output) -> Result<(), Error> {
        let (mut ended, mut told) = (self.save(), Ok(()));
        for call in calls {
            if ended.is_ok() {
                ended = self.heed_client();
            }
            let mut outcome = match &ended {
                Ok(()) if told.is_err() => Outcome::error("not run: the reader of the output has left"),
                Ok(()) => self.run_call(call, output).unwrap_or_else(|error| {
                    let outcome = Outcome::error(format!("not run: {error}"));
                    ended = Err(error);
                    outcome
                }),
                Err(Error::Interrupted(why)) => Outcome::error(format!("not run: {why}")),
                Err(_) => Outcome::error("not run: a call before it ended the run"),
            };
            if ended.is_ok() {
                ended = self.check_denials();
            }
            if let Err(why) = self.images.add(&outcome.images) {
                outcome = Outcome::error(format!("{} [{why}]", outcome.text));
            }
            let result = CallResult {
                call_id: call.id.clone(),
                text: outcome.text,
                images: outcome.images,
                is_error: outcome.is_error,
            };
            if told.is_ok() {
                told = output.result(&result);
            }
            self.conversation.add_result(result);
            if ended.is_ok() {
                ended = self.save();
            }
        }
        // A reader that has left, too, leaves a conversation in which every call has its result.
        ended.and(told)
    }

    pub(super) fn run_call(&mut self, call: &Call, output: &mut Output) -> Result<Outcome, Error> {
        output.call(&call.name, || subject(call));
        if let Some(outcome) = self.take_answer(call) {
            return Ok(outcome);
        }
        self.budget.take_call()?;
        if call.name == skill::NAME {
            return self.run_skill(call, output);
        }
        let (http, denied_before) = (&mut self.http, self.toolbox.denied().len());
        let mut outcome = self.toolbox.run(call, &mut |url| {
            let headers = [("accept".to_owned(), "application/json".to_owned())];
            http.get(url, &headers).map_err(|failure| failure.to_string())
        })?;
        self.tell_denials(denied_before, output);
        // Several servers refuse an empty result.
        if outcome.text.trim().is_empty() {
            outcome.text = "(no output)".to_owned();
        }
        Ok(outcome)
    }

    /// Tells what was denied behind so many, each kind once. What ends the run is told by its error.
    pub(super) fn tell_denials(&self, before: usize, output: &mut Output) {
        let denied = self.toolbox.denied();
        for (index, last) in denied.iter().enumerate().skip(before) {
            let is_same = |earlier: &Denied| earlier.tool == last.tool && earlier.denial.0 == last.denial.0;
            let is_new = !denied[..index].iter().any(is_same);
            let text = format!("{} was denied: {}", last.tool, last.denial.0);
            output.denied(&text, is_new && self.permission_mode != Mode::DontAsk);
        }
    }

    /// Whether the run may go on after what was denied.
    pub(super) fn check_denials(&self) -> Result<(), Error> {
        match self.toolbox.denied()[self.denied_before..].first() {
            Some(denied) if self.permission_mode == Mode::DontAsk => Err(Error::Permission(format!(
                "a call of {} was denied, which ends the run (--permission-mode dontAsk): {}",
                denied.tool, denied.denial.0
            ))),
            _ => Ok(()),
        }
    }

    /// Answers the calls of a reply that was cut: none of them has run.
    pub(super) fn refuse_cut_calls(&mut self, reply: Reply, output: &mut Output) -> Result<(), Error> {
        const WHY: &str = "not run: the reply was cut at the output limit before its calls were complete. Make smaller calls, for instance a long file in several parts";
        self.refuse_calls(reply, WHY, output)
    }

    /// Answers the calls of a reply, none of which is run.
    pub(super) fn refuse_calls(
        &mut self,
        mut reply: Reply,
        why: &str,
        output: &mut Output,
    ) -> Result<(), Error> {
        for part in &mut reply.parts {
            if let Part::Call(call) = part {
                call.refusal = Some(why.to_owned());
            }
        }
        let calls = self.add_reply(reply, output)?;
        let results: Vec<CallResult> = calls
            .into_iter()
            .map(|call| CallResult {
                call_id: call.id,
                text: why.to_owned(),
                images: Vec::new(),
                is_error: true,
            })
            .collect();
        let told = results.iter().try_for_each(|result| output.result(result));
        if !results.is_empty() {
            self.conversation.add_results(results);
        }
        told
    }
}

/// What a call is about, for the one line that is shown of it: its first argument that is a text.
pub(super) fn subject(call: &Call) -> String {
    match provider::parse(&call.arguments) {
        Ok(value) => value
            .as_object()
            .and_then(|arguments| arguments.values().find_map(|value| value.as_str()))
            .unwrap_or_default()
            .to_owned(),
        Err(_) => String::new(),
    }
}
