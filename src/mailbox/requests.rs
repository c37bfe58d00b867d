//! What a client's control requests mean and how they are answered. What is asked for and is not there is
//! refused by its name, never passed over.
//!
//! Pure: a request in, an answer and what is to be done out.

use serde_json::{Map, Value, json};

use crate::provider;
use crate::sandbox::permissions::{self, MODES, Mode};

/// What a request changes, from the next request to the API on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The model; the one of the start if none is named.
    Model(Option<String>),
    /// How calls are judged.
    Mode(Mode),
    /// The system prompt, in the place of what there is.
    SystemPrompt(String),
    /// What is added to the system prompt.
    AppendSystemPrompt(String),
    /// The only skills that the model is told of.
    Skills(Vec<String>),
}

/// What a request asks for, and its answer.
#[derive(Debug, PartialEq)]
pub struct Granted {
    /// What the answer holds.
    pub answer: Value,
    /// What is to be done for it.
    pub effect: Effect,
}

/// What is to be done for a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// These changes, if any.
    Changes(Vec<Change>),
    /// The turn in progress ends.
    Interrupt,
}

/// What has to be known to answer.
#[derive(Debug, Default)]
pub struct Desk {
    model: String,
    commands: Vec<Value>,
    may_bypass: bool,
    is_initialized: bool,
}

/// Members of `initialize` that ask for nothing that could be missing: parts of a prompt, a subagent's words and
/// suggestions that are never made here.
const WITHOUT_EFFECT: [&str; 5] = [
    "excludeDynamicSections",
    "systemPromptSnapshot",
    "forwardSubagentText",
    "promptSuggestions",
    "agentProgressSummaries",
];

impl Desk {
    /// What is known at the start; with `may_bypass`, all calls are allowed then.
    pub fn new(may_bypass: bool) -> Desk {
        Desk { may_bypass, ..Desk::default() }
    }

    /// Names the model of the start, and the commands that a message may begin with.
    pub fn introduce(&mut self, model: &str, commands: Vec<Value>) {
        model.clone_into(&mut self.model);
        self.commands = commands;
    }

    /// Grants a request.
    ///
    /// # Errors
    ///
    /// Why it cannot be granted.
    pub fn handle(&mut self, request: &Map<String, Value>) -> Result<Granted, String> {
        let nothing = || Granted { answer: json!({}), effect: Effect::Changes(Vec::new()) };
        let change = |change: Change| Granted { answer: json!({}), effect: Effect::Changes(vec![change]) };
        match request.get("subtype").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => self.initialize(request),
            "interrupt" => Ok(Granted { answer: json!({}), effect: Effect::Interrupt }),
            "set_model" => match request.get("model") {
                None | Some(Value::Null) => Ok(change(Change::Model(None))),
                Some(Value::String(name)) if name == "default" => Ok(change(Change::Model(None))),
                Some(Value::String(name)) if !name.trim().is_empty() => {
                    Ok(change(Change::Model(Some(name.clone()))))
                }
                Some(_) => Err("set_model needs a \"model\" that is a name or null".to_owned()),
            },
            "set_permission_mode" => {
                let mode = self.mode(request.get("mode").and_then(Value::as_str).unwrap_or_default())?;
                Ok(Granted { answer: json!({"mode": request.get("mode")}), ..change(Change::Mode(mode)) })
            }
            "mcp_status" => Ok(Granted { answer: json!({"mcpServers": []}), ..nothing() }),
            other => Err(format!("there is no control request \"{}\" here", provider::excerpt(other))),
        }
    }

    fn mode(&self, name: &str) -> Result<Mode, String> {
        match permissions::mode_named(name) {
            Some(Mode::Bypass) if !self.may_bypass => Err(
                "the permission mode bypassPermissions has to be there from the start (--permission-mode)"
                    .to_owned(),
            ),
            Some(mode) => Ok(mode),
            None => {
                let names: Vec<&str> = MODES.iter().map(|(name, _)| *name).collect();
                Err(format!(
                    "there is no permission mode \"{}\": choose from {}",
                    provider::excerpt(name),
                    names.join(", ")
                ))
            }
        }
    }

    fn initialize(&mut self, request: &Map<String, Value>) -> Result<Granted, String> {
        if self.is_initialized {
            return Err("it is initialized already".to_owned());
        }
        let mut changes = Vec::new();
        for (name, value) in request {
            match name.as_str() {
                "subtype" => {}
                "systemPrompt" => changes.extend(text(name, value)?.map(Change::SystemPrompt)),
                "appendSystemPrompt" => changes.extend(text(name, value)?.map(Change::AppendSystemPrompt)),
                "skills" if !value.is_null() => changes.push(Change::Skills(names(name, value)?)),
                known if WITHOUT_EFFECT.contains(&known) => {}
                _ if is_empty(value) => {}
                "hooks" => return Err("there are no hooks here: leave \"hooks\" out".to_owned()),
                "sdkMcpServers" => {
                    return Err(
                        "tools of the client's (\"sdkMcpServers\") cannot be called here: give programs with --tool"
                            .to_owned(),
                    );
                }
                "agents" => {
                    return Err(
                        "there are no subagents here: put what an agent is told (\"agents\") into the system prompt"
                            .to_owned(),
                    );
                }
                "jsonSchema" => {
                    return Err("give the schema with --json-schema, not in \"jsonSchema\"".to_owned());
                }
                other => {
                    return Err(format!("\"{}\" cannot be set in initialize", provider::excerpt(other)));
                }
            }
        }
        self.is_initialized = true;
        let model = json!({"value": self.model, "displayName": self.model, "description": ""});
        let answer = json!({
            "commands": self.commands,
            "agents": [],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": [model],
            "account": {},
            "pid": std::process::id(),
        });
        Ok(Granted { answer, effect: Effect::Changes(changes) })
    }
}

/// A text, alone or in pieces. An empty one is one too: it asks for no system prompt.
fn text(name: &str, value: &Value) -> Result<Option<String>, String> {
    let pieces = match value {
        Value::Null => return Ok(None),
        Value::String(text) => return Ok(Some(text.clone())),
        Value::Array(pieces) => pieces.iter().map(Value::as_str).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let pieces = pieces.ok_or_else(|| format!("\"{name}\" is a text"))?;
    Ok(Some(pieces.join("\n\n")))
}

/// A list of names, which may be empty.
fn names(name: &str, value: &Value) -> Result<Vec<String>, String> {
    let names =
        value.as_array().and_then(|list| list.iter().map(|name| Some(name.as_str()?.to_owned())).collect());
    names.ok_or_else(|| format!("\"{name}\" is a list of names"))
}

/// Whether a member asks for nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(request: Value) -> Result<(Value, Effect), String> {
        let mut desk = Desk { model: "m".to_owned(), ..Desk::default() };
        let granted = desk.handle(request.as_object().unwrap())?;
        Ok((granted.answer, granted.effect))
    }

    fn change(change: Change) -> Effect {
        Effect::Changes(vec![change])
    }

    #[test]
    fn what_can_be_changed_is_changed() {
        let none = json!({});
        for (request, effect) in [
            (json!({"subtype": "interrupt"}), Effect::Interrupt),
            (json!({"subtype": "set_model", "model": "x"}), change(Change::Model(Some("x".to_owned())))),
            (json!({"subtype": "set_model", "model": null}), change(Change::Model(None))),
            (json!({"subtype": "set_model", "model": "default"}), change(Change::Model(None))),
        ] {
            assert_eq!(handle(request.clone()), Ok((none.clone(), effect)), "{request}");
        }
        assert_eq!(
            handle(json!({"subtype": "set_permission_mode", "mode": "acceptEdits"})),
            Ok((json!({"mode": "acceptEdits"}), change(Change::Mode(Mode::AcceptEdits))))
        );
        let status = handle(json!({"subtype": "mcp_status"}));
        assert_eq!(status, Ok((json!({"mcpServers": []}), Effect::Changes(Vec::new()))));
    }

    #[test]
    fn what_is_not_there_is_refused_by_its_name() {
        for (request, why) in [
            (json!({}), "there is no control request \"\" here"),
            (json!({"subtype": "rewind_files"}), "there is no control request \"rewind_files\" here"),
            (
                json!({"subtype": "set_model", "model": 7}),
                "set_model needs a \"model\" that is a name or null",
            ),
            (
                json!({"subtype": "set_permission_mode", "mode": "delegate"}),
                "there is no permission mode \"delegate\": choose from default, acceptEdits, plan, dontAsk, bypassPermissions",
            ),
            (
                json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}),
                "the permission mode bypassPermissions has to be there from the start (--permission-mode)",
            ),
            (
                json!({"subtype": "initialize", "hooks": {"PreToolUse": []}}),
                "there are no hooks here: leave \"hooks\" out",
            ),
            (
                json!({"subtype": "initialize", "sdkMcpServers": ["a"]}),
                "tools of the client's (\"sdkMcpServers\") cannot be called here: give programs with --tool",
            ),
            (
                json!({"subtype": "initialize", "agents": {"a": {}}}),
                "there are no subagents here: put what an agent is told (\"agents\") into the system prompt",
            ),
            (
                json!({"subtype": "initialize", "jsonSchema": {"type": "object"}}),
                "give the schema with --json-schema, not in \"jsonSchema\"",
            ),
            (json!({"subtype": "initialize", "later": 1}), "\"later\" cannot be set in initialize"),
            (json!({"subtype": "initialize", "systemPrompt": 1}), "\"systemPrompt\" is a text"),
        ] {
            assert_eq!(handle(request.clone()), Err(why.to_owned()), "{request}");
        }
    }

    #[test]
    fn a_client_is_told_what_there_is_once() {
        let mut desk = Desk { model: "m".to_owned(), ..Desk::default() };
        let request = json!({"subtype": "initialize", "hooks": null, "agents": {}, "forwardSubagentText": true,
            "systemPrompt": "", "appendSystemPrompt": ["a", "b"]});
        let granted = desk.handle(request.as_object().unwrap()).unwrap();
        assert_eq!(
            granted.effect,
            Effect::Changes(vec![
                Change::SystemPrompt(String::new()),
                Change::AppendSystemPrompt("a\n\nb".to_owned())
            ])
        );
        assert_eq!(
            granted.answer,
            json!({"commands": [], "agents": [], "output_style": "default",
                "available_output_styles": ["default"],
                "models": [{"value": "m", "displayName": "m", "description": ""}],
                "account": {}, "pid": std::process::id()})
        );
        assert_eq!(desk.handle(request.as_object().unwrap()), Err("it is initialized already".to_owned()));
    }
}
