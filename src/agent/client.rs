//! What a client changes in a run that goes on: the model, the mode, the system prompt; and the end of a turn that
//! it interrupts. The agent looks here before each request and each call.

use super::Agent;
use crate::alarm::{Alarm, Ring};
use crate::error::Error;
use crate::mailbox::Change;
use crate::tools::skill;

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
                    Some(name) => self.model_names.id_of(&name),
                    None => self.first_model.clone(),
                };
                if model == self.settings.model {
                    return;
                }
                self.choose_model(model);
            }
            // Context files stay, as where a prompt is typed.
            Change::SystemPrompt(text) => self.instructions.base = text,
            Change::AppendSystemPrompt(text) => {
                let added = &mut self.instructions.added;
                if !added.is_empty() {
                    added.push_str("\n\n");
                }
                added.push_str(&text);
            }
            Change::Skills(names) => {
                self.skills.hide_from_model(|name| !names.iter().any(|wanted| wanted == name));
                let list = self.skills.list();
                self.settings.tools.retain(|spec| spec.name != skill::NAME || !list.is_empty());
                for spec in self.settings.tools.iter_mut().filter(|spec| spec.name == skill::NAME) {
                    *spec = skill::spec(&list);
                }
            }
        }
        self.instruct();
    }
}
