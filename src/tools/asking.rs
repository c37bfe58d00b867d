//! Calls that no rule allows, put to the client: what it is asked, and what its answer means.
//!
//! What the client forbids is not run, whatever else it says; an answer that cannot be followed is a refusal.

use serde_json::{Value, json};

use super::Arguments;
use crate::alarm::Alarm;
use crate::conversation::Call;
use crate::mailbox::{Change, Mailbox};
use crate::provider;
use crate::sandbox::permissions::{self, Denial, Mode};

/// What the client lets a call do.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Allowed {
    /// Other arguments than the model's.
    pub input: Option<Arguments>,
    /// What holds for further calls too.
    pub updates: Vec<Update>,
}

/// What holds for further calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// A rule, as it is typed, that allows.
    Allow(String),
    /// A rule that forbids.
    Deny(String),
    /// How calls are judged.
    Mode(Mode),
}

/// Asks the client whether a call may run that is denied otherwise, and waits for its answer.
///
/// # Errors
///
/// Why it may not, in the client's words if it has any.
pub fn ask(
    client: &Mailbox,
    alarm: &Alarm,
    call: &Call,
    input: &Arguments,
    denial: &Denial,
) -> Result<Allowed, String> {
    client.ask(&json!({
        "subtype": "can_use_tool",
        "tool_name": call.name,
        "input": input,
        "permission_suggestions": [],
        "blocked_path": null,
        "decision_reason": denial.0,
        "tool_use_id": call.id,
    }));
    loop {
        if let Some(ring) = alarm.rung() {
            client.give_up();
            return Err(format!("not run: {ring}"));
        }
        if let Some(answer) = client.answer() {
            let answer =
                answer.map_err(|why| format!("not run: the client could not be asked about it: {why}"))?;
            return understand(&answer, client);
        }
        alarm
            .wait_for(None, None)
            .map_err(|error| format!("not run: cannot wait for the client: {error}"))?;
    }
}

fn understand(answer: &Value, client: &Mailbox) -> Result<Allowed, String> {
    match answer["behavior"].as_str() {
        Some("allow") => {
            let input = answer["updatedInput"].as_object().filter(|input| !input.is_empty()).cloned();
            let updates = answer["updatedPermissions"].as_array().map(Vec::as_slice).unwrap_or_default();
            let updates = updates.iter().map(update).collect::<Result<Vec<_>, _>>()?;
            let updates: Vec<Update> = updates.into_iter().flatten().collect();
            for change in updates.iter().filter_map(Update::change) {
                client.change(change);
            }
            Ok(Allowed { input, updates })
        }
        Some("deny") => {
            if answer["interrupt"] == true {
                client.interrupt();
            }
            let why = answer["message"].as_str().filter(|why| !why.trim().is_empty());
            Err(why.unwrap_or("The user does not want this call to run.").to_owned())
        }
        _ => Err("not run: the client's answer is neither \"allow\" nor \"deny\"".to_owned()),
    }
}

impl Update {
    fn change(&self) -> Option<Change> {
        match self {
            Update::Mode(mode) => Some(Change::Mode(*mode)),
            Update::Allow(_) | Update::Deny(_) => None,
        }
    }
}

/// What one of the `updatedPermissions` comes to.
fn update(value: &Value) -> Result<Vec<Update>, String> {
    let kind = value["type"].as_str().unwrap_or_default();
    let unusable = || {
        format!(
            "not run: the client's update of permissions is not one that can be followed here: {}",
            provider::excerpt(&value.to_string())
        )
    };
    match (kind, value["behavior"].as_str()) {
        ("addRules", Some(behavior @ ("allow" | "deny"))) => {
            let rules = value["rules"].as_array().ok_or_else(unusable)?.iter();
            let texts = rules.map(rule).collect::<Option<Vec<_>>>().ok_or_else(unusable)?;
            let update = |text| if behavior == "allow" { Update::Allow(text) } else { Update::Deny(text) };
            Ok(texts.into_iter().map(update).collect())
        }
        ("setMode", _) => {
            let mode = value["mode"].as_str().and_then(permissions::mode_named);
            // That would be more than the client was asked for.
            let mode = mode.filter(|mode| *mode != Mode::Bypass).ok_or_else(unusable)?;
            Ok(vec![Update::Mode(mode)])
        }
        _ => Err(unusable()),
    }
}

fn rule(value: &Value) -> Option<String> {
    let tool = value["toolName"].as_str()?;
    match &value["ruleContent"] {
        Value::Null => Some(tool.to_owned()),
        content => Some(format!("{tool}({})", content.as_str()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mailbox::{Desk, Wishes};

    fn understood(answer: &Value) -> (Result<Allowed, String>, bool) {
        let client = Mailbox::new(Desk::default(), Wishes::default());
        let allowed = understand(answer, &client);
        (allowed, client.is_interrupted())
    }

    #[test]
    fn an_answer_allows_as_it_is_or_with_other_arguments() {
        let as_it_is = Ok(Allowed::default());
        for answer in [json!({"behavior": "allow"}), json!({"behavior": "allow", "updatedInput": {}})] {
            assert_eq!(understood(&answer), (as_it_is.clone(), false), "{answer}");
        }
        let answer = json!({"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": [
            {"type": "addRules", "behavior": "allow", "destination": "session",
                "rules": [{"toolName": "Bash", "ruleContent": "git log:*"}, {"toolName": "Write"}]},
            {"type": "addRules", "behavior": "deny", "rules": [{"toolName": "Edit", "ruleContent": "/etc/**"}]},
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"}]});
        let allowed = understood(&answer).0.unwrap();
        assert_eq!(allowed.input.map(Value::Object), Some(json!({"command": "ls"})));
        assert_eq!(
            allowed.updates,
            [
                Update::Allow("Bash(git log:*)".to_owned()),
                Update::Allow("Write".to_owned()),
                Update::Deny("Edit(/etc/**)".to_owned()),
                Update::Mode(Mode::AcceptEdits)
            ]
        );
    }

    #[test]
    fn whatever_else_an_answer_is_it_refuses() {
        let refused = |text: &str| Err(text.to_owned());
        for (answer, why, interrupts) in [
            (json!({"behavior": "deny", "message": "not now"}), "not now", false),
            (json!({"behavior": "deny", "message": "stop", "interrupt": true}), "stop", true),
            (json!({"behavior": "deny"}), "The user does not want this call to run.", false),
            (json!({}), "not run: the client's answer is neither \"allow\" nor \"deny\"", false),
            (
                json!({"behavior": "allow", "updatedPermissions": [{"type": "addDirectories"}]}),
                "not run: the client's update of permissions is not one that can be followed here: \
                 {\"type\":\"addDirectories\"}",
                false,
            ),
            (
                json!({"behavior": "allow", "updatedPermissions": [{"type": "setMode", "mode": "bypassPermissions"}]}),
                "not run: the client's update of permissions is not one that can be followed here: \
                 {\"type\":\"setMode\",\"mode\":\"bypassPermissions\"}",
                false,
            ),
        ] {
            assert_eq!(understood(&answer), (refused(why), interrupts), "{answer}");
        }
    }
}
