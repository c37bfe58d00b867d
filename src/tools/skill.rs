//! `Skill`: what the model is told of the skills that there are, and what it asks for. The skill itself is used by
//! whoever holds the conversation.

use super::{Arguments, Spec, arguments, slips};

/// The tool's name.
pub const NAME: &str = "Skill";

const INTRODUCTION: &str = "Gives you the instructions of a skill, which you then follow. Call it before anything \
    else where the task fits one of these:";
const ARGUMENTS: &[&str] = &["name", "arguments"];
const SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"string","description":"what the skill is to work on"}},"required":["name"]}"#;

/// The tool with this list of skills, for as long as cotter runs: what is told of it is in every request.
pub fn spec(list: &str) -> &'static Spec {
    let description = Box::leak(format!("{INTRODUCTION}{list}").into_boxed_str());
    Box::leak(Box::new(Spec { name: NAME, description, arguments: ARGUMENTS, schema: SCHEMA }))
}

/// The skill that a call names, and the arguments for it.
///
/// Errors: the arguments are not those of the tool.
pub fn wanted(arguments: &Arguments) -> Result<(&str, &str), String> {
    const SPEC: Spec = Spec { name: NAME, description: "", arguments: ARGUMENTS, schema: SCHEMA };
    let given = arguments::read(&SPEC, arguments, slips::synonyms(NAME))?;
    let name = given.text("name")?.trim();
    Ok((name.strip_prefix('/').unwrap_or(name), given.optional_text("arguments")?.unwrap_or_default()))
}
