//! `--single-step`: one request, and the raw result of the first call that it is answered with.

use super::calls::subject;
use super::{Agent, broken_off};
use crate::conversation::{Call, texts};
use crate::error::Error;
use crate::output::{Output, stdout_error};
use crate::provider::Stop;
use crate::skills::opening::Opening;
use crate::tools::read::{self, RawError};

impl Agent {
    /// One request. If the reply asks for a tool, its first call is run and the raw result written; the
    /// text is in the summary otherwise. True if a call was run.
    pub fn single_step(&mut self, prompt: Opening, output: &mut Output) -> Result<bool, Error> {
        self.open(prompt, output)?;
        let reply = self.ask(output)?;
        self.text = texts(&reply.parts).join("\n");
        let calls = self.conversation.add_reply(reply.parts, &self.settings.origin());
        match (&reply.stop, calls.first()) {
            (Stop::Declined(_) | Stop::Filtered | Stop::WindowFull, _) | (Stop::Cut, None) => {
                Err(broken_off(&reply.stop))
            }
            (Stop::Cut, Some(_)) => Err(Error::Incomplete(
                "the reply was cut, so its call was not run: raise --max-output-tokens".to_owned(),
            )),
            (_, Some(call)) => self.print_result(call, output).map(|()| true),
            (Stop::Finished, None) if !self.text.trim().is_empty() => Ok(false),
            _ => Err(Error::Incomplete(
                "the reply is empty or incomplete: rephrase the request or choose another --model".to_owned(),
            )),
        }
    }

    /// Runs a call and prints what it gives: for Read the file's own bytes.
    fn print_result(&mut self, call: &Call, output: &mut Output) -> Result<(), Error> {
        output.end_shown()?;
        let failed = |text: &str| Error::Internal(format!("the call of {} failed: {text}", call.name));
        if call.name != "Read" {
            // A skill in a conversation of its own would take more than the one request.
            self.is_apart = true;
            let outcome = self.run_call(call, output)?;
            self.check_denials()?;
            return match outcome.is_error {
                true => Err(failed(&outcome.text)),
                false => output.print(&outcome.text),
            };
        }
        self.budget.take_call()?;
        output.call(&call.name, || subject(call));
        let checked = self.toolbox.check(call);
        self.check_denials()?;
        let arguments = checked.map_err(|text| failed(&text))?;
        read::copy_raw(&arguments, self.toolbox.workspace(), &mut output.raw_bytes()).map_err(|error| {
            match error {
                RawError::Refused(text) => failed(&text),
                RawError::Output(error) => stdout_error(&error, true),
            }
        })
    }
}
