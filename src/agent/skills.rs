//! Skills in a conversation: what their use changes, and those that run in a conversation of their own.
//!
//! Such a conversation is one level deep. Its turns, calls and tokens are the run's; of what is said in it only the
//! answer comes back.

use super::Agent;
use crate::conversation::{Call, Part, Parts};
use crate::error::Error;
use crate::output::Output;
use crate::provider::Wire;
use crate::sandbox::permissions::InUse;
use crate::skills::Skills;
use crate::skills::opening::Opening;
use crate::tools::{Outcome, skill};

/// The most skills that a result names where none was meant.
const MOST_NAMED: usize = 50;

impl Agent {
    /// The skills that may be used.
    pub fn skills(&self) -> &Skills {
        &self.skills
    }

    /// Begins with a prompt: what skills said of calls before it holds no longer, what its own say does.
    ///
    /// # Errors
    ///
    /// `Usage` if the prompt shows what no API would take.
    pub(super) fn open(&mut self, opening: Opening, output: &mut Output) -> Result<(), Error> {
        let in_use = self.in_use(&opening.skills, output);
        self.toolbox.use_skills(in_use);
        self.add_prompt(opening.parts)
    }

    /// Runs a prompt in a conversation of its own. Of the two the prompt as typed and the answer stay.
    pub(super) fn run_apart(
        &mut self,
        typed: &str,
        opening: Opening,
        output: &mut Output,
    ) -> Result<(), Error> {
        self.toolbox.use_skills(InUse::default());
        self.conversation.add_user(typed);
        let in_use = self.in_use(&opening.skills, output);
        let answer = self.fork(opening.parts, in_use, None, output)?;
        self.conversation.add_reply(vec![Part::Text(answer.clone())], &self.settings.origin());
        self.text = answer;
        Ok(())
    }

    /// Runs a call of `Skill`.
    pub(super) fn run_skill(&mut self, call: &Call, output: &mut Output) -> Result<Outcome, Error> {
        let denied_before = self.toolbox.denied().len();
        let arguments = match self.toolbox.check(call) {
            Ok(arguments) => arguments,
            Err(refusal) => {
                self.tell_denials(denied_before, output);
                return Ok(Outcome::error(refusal));
            }
        };
        let (name, arguments) = match skill::wanted(&arguments) {
            Ok(wanted) => wanted,
            Err(problem) => return Ok(Outcome::error(problem)),
        };
        let found = self.skills.named(name).filter(|skill| skill.is_for_model);
        let Some(skill) = found else { return Ok(Outcome::error(self.not_there(name))) };
        if skill.is_fork && self.is_apart {
            return Ok(Outcome::error(format!(
                "the skill \"{name}\" runs in a conversation of its own, which cannot begin here: do without it"
            )));
        }
        let told = match self.skills.told(skill, arguments) {
            Ok(told) => told,
            Err(why) => return Ok(Outcome::error(format!("the skill \"{name}\" cannot be used: {why}"))),
        };
        let is_fork = skill.is_fork;
        // What its rules say holds already.
        if !is_fork && self.toolbox.uses_skill(name) {
            return Ok(Outcome::ok(told));
        }
        let in_use = self.in_use(&[name.to_owned()], output);
        if !is_fork {
            self.toolbox.use_more_skills(in_use);
            return Ok(Outcome::ok(told));
        }
        match self.fork(Parts::from(told.as_str()), in_use, Some(call), output) {
            Ok(answer) => Ok(Outcome::ok(answer)),
            // The model can go on without the answer; all else ends the run as it does everywhere.
            Err(Error::Incomplete(why)) => {
                Ok(Outcome::error(format!("the skill \"{name}\" came to no answer: {why}")))
            }
            Err(error) => Err(error),
        }
    }

    /// What is said of a skill that is not there for the model.
    fn not_there(&self, name: &str) -> String {
        if self.skills.named(name).is_some() {
            return format!(
                "the skill \"{name}\" is not for you to use: do not do its work in another way; the user can begin \
                 a prompt with /{name}"
            );
        }
        let names = self.skills.for_model();
        let (some, rest) = names.split_at(names.len().min(MOST_NAMED));
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        format!("there is no skill \"{name}\": the skills are {}{more}", some.join(", "))
    }

    /// What these skills say of calls.
    fn in_use(&self, names: &[String], output: &mut Output) -> InUse {
        let mut in_use = InUse::default();
        for skill in names.iter().filter_map(|name| self.skills.named(name)) {
            if in_use.skills.contains(&skill.name) {
                continue;
            }
            for unusable in self.skill_rules.add(skill, &mut in_use) {
                output.warn(&format!(
                    "the skill \"{}\" has a rule that cannot be used, {unusable}",
                    skill.name
                ));
            }
        }
        in_use
    }

    /// Has a conversation of its own about these parts and gives its answer. What is said of calls holds within. One
    /// that a call has begun is answered as a text: a schema is for the run's own answer.
    fn fork(
        &mut self,
        parts: Parts,
        in_use: InUse,
        call: Option<&Call>,
        output: &mut Output,
    ) -> Result<String, Error> {
        self.save()?;
        let before = (self.settings.learnt.clone(), self.settings.origin());
        let system = self.settings.system.clone();
        let schema = call.map(|_| (self.settings.answer.take(), self.answer.take()));
        let conversation = std::mem::take(&mut self.conversation);
        let wire = std::mem::replace(&mut self.wire, Wire::new(&self.settings));
        if schema.is_some() {
            // It says nothing of the answer's form.
            self.instruct();
        }
        let images = std::mem::take(&mut self.images);
        let room = std::mem::take(&mut self.room);
        let text = std::mem::take(&mut self.text);
        self.is_apart = true;
        self.toolbox.begin_apart(in_use);
        output.begin_apart(call.map(|call| call.id.as_str()));
        let ended = self.add_prompt(parts).and_then(|()| self.go_on(output));
        output.end_apart();
        self.toolbox.end_apart();
        self.is_apart = false;
        self.conversation = conversation;
        self.images = images;
        self.room = room;
        self.settings.system = system;
        let is_same_model = before.1 == self.settings.origin();
        if !is_same_model {
            self.room.forget_window();
        }
        if let Some((form, answer)) = schema {
            self.answer = answer;
            self.settings.answer = if is_same_model { form } else { self.answer_form() };
        }
        // What was learnt of the server meanwhile is in every request, and another model's is not sent back.
        let is_same = is_same_model && before.0 == self.settings.learnt;
        self.wire = if is_same { wire } else { Wire::new(&self.settings) };
        // Where the run ends, what was said last is what there is to show.
        ended.map(|()| std::mem::replace(&mut self.text, text))
    }
}
