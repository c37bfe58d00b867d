//! What a client changes in a run that goes on: the model, the mode, the system prompt; and the end of a turn that
//! it interrupts. The agent looks here before each request and each call.

use super::Agent;
use crate::alarm::{Alarm, Ring};
use crate::error::Error;
use crate::mailbox::Change;
use crate::provider::{Learnt, Wire, aliases, answer_form};

impl Agent {
    /// What ends the run's waiting.
    pub fn alarm(&self) -> &Alarm {
        &self.alarm
    }

    /// The run's id.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Says something to the model before what the user says next.
    pub fn note(&mut self, text: &str) {
        self.conversation.add_user(text);
    }

    /// Does what the client asked for since the last time.
    ///
    /// # Errors
    ///
    /// `Interrupted` if that is the end of the turn.
    pub(super) fn heed_client(&mut self) -> Result<(), Error> {
        let ring = self.alarm.rung().filter(|ring| *ring == Ring::Interrupted);
        let changes = self.alarm.client().map(|client| client.changes()).unwrap_or_default();
        for change in changes {
            self.change(change);
        }
        ring.map_or(Ok(()), |ring| Err(ring.error()))
    }

    fn change(&mut self, change: Change) {
        match change {
            Change::Mode(mode) => {
                self.permission_mode = mode;
                self.toolbox.set_mode(mode);
                return;
            }
            Change::Model(name) => {
                let model = match name {
                    Some(name) => match aliases::id_of(&name, self.settings.api, self.settings.host) {
                        Some((id, _)) => id.to_owned(),
                        None => name,
                    },
                    None => self.first_model.clone(),
                };
                if model == self.settings.model {
                    return;
                }
                self.settings.model = model;
                // It was learnt of the other one, and the form of an answer is the model's too.
                self.settings.learnt = Learnt::default();
                if let Some(answer) = &self.answer {
                    self.settings.answer = Some(answer_form::form(&self.settings, answer.schema()));
                }
            }
            Change::SystemPrompt(text) => self.settings.system = text,
            Change::AppendSystemPrompt(text) => {
                let system = &mut self.settings.system;
                if !system.is_empty() {
                    system.push_str("\n\n");
                }
                system.push_str(&text);
            }
        }
        self.wire = Wire::new(&self.settings);
    }
}
