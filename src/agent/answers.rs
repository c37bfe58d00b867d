//! The final answer of a run that has a schema for it, in the loop: a call or a text is taken as the answer, or the
//! model is told why not.

use super::Agent;
use crate::answer;
use crate::conversation::Call;
use crate::error::Error;
use crate::output::Output;
use crate::provider::Wire;
use crate::tools::Outcome;

impl Agent {
    /// What becomes of a call that gives the answer; absent if it is another one.
    pub(super) fn take_answer(&mut self, call: &Call) -> Option<Outcome> {
        let answer = self.answer.as_mut().filter(|_| call.name == answer::TOOL)?;
        if let Some(refusal) = &call.refusal {
            return Some(Outcome::error(refusal.clone()));
        }
        // What was said last is kept also where the run ends without an answer.
        if answer.found().is_none() {
            self.text = call.arguments.clone();
        }
        Some(match answer.take(&call.arguments) {
            Ok(()) => {
                Outcome { text: "The answer was taken.".to_owned(), images: Vec::new(), is_error: false }
            }
            Err(why) => Outcome::error(why),
        })
    }

    /// Whether a text ends the run: without a schema each does, with one that is the answer.
    ///
    /// # Errors
    ///
    /// No attempt is left.
    pub(super) fn ends_with_text(&mut self, output: &mut Output) -> Result<bool, Error> {
        let Some(answer) = &mut self.answer else { return Ok(true) };
        if let Err(why) = answer.take(&self.text)
            && answer.failure().is_none()
        {
            output.detail("the answer does not fit its schema: asking again");
            self.conversation.add_user(why.as_str());
            if self.settings.native_answer().is_some() {
                // The server did not keep to the format that it was given.
                self.settings.learnt.answer_by_tool = true;
                self.wire = Wire::new(&self.settings);
            }
        }
        self.is_answered()
    }

    /// Whether there is an answer that fits, which then is the text of the run.
    ///
    /// # Errors
    ///
    /// No attempt is left.
    pub(super) fn is_answered(&mut self) -> Result<bool, Error> {
        let Some(answer) = &self.answer else { return Ok(false) };
        if let Some(failure) = answer.failure() {
            return Err(Error::Unfit(failure));
        }
        match answer.found() {
            Some(found) => {
                self.text = found.text.clone();
                Ok(true)
            }
            None => Ok(false),
        }
    }
}
