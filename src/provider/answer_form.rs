//! How a server is told the schema of the final answer: by the format that its API has for it, or by a tool that
//! takes the answer.
//!
//! Pure. The format is used where it is known to be kept beside tools. Elsewhere it does harm: some servers refuse
//! the two together, and others hold every reply to the schema, so that no tool is ever called.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{Api, Host, Settings};
use crate::answer::{
    self,
    schema::{self, Schema},
};
use crate::tools::Spec;

/// The form that the final answer has to have.
pub struct AnswerForm {
    /// The tool that takes the answer.
    pub tool: &'static Spec,
    /// The schema as the API's own format has it; absent where that is not used.
    pub native: Option<String>,
}

/// The form for an answer of this schema under these settings.
pub fn form(settings: &Settings, schema: &Schema) -> AnswerForm {
    let tool = Spec::leaked(answer::TOOL.to_owned(), answer::DESCRIPTION.to_owned(), schema.root());
    AnswerForm { tool, native: native(settings, schema.root()) }
}

fn native(settings: &Settings, root: &Value) -> Option<String> {
    let narrowed = |limits: Limits| narrowed(root, limits).map(|schema| schema.to_string());
    match (settings.api, settings.host) {
        (Api::Anthropic, Host::Anthropic) => narrowed(ANTHROPIC),
        (Api::OpenAi, Host::OpenAi) => narrowed(OPENAI),
        // Of its providers, these two are known to take both.
        (Api::OpenAi, Host::OpenRouter)
            if settings.model.trim_start_matches('~').starts_with("anthropic/") =>
        {
            narrowed(Limits { optional: false, ..ANTHROPIC })
        }
        (Api::OpenAi, Host::OpenRouter) if settings.model.starts_with("openai/") => narrowed(OPENAI),
        (Api::OpenAi, Host::Other) if settings.tools.is_empty() => Some(root.to_string()),
        _ => None,
    }
}

/// What the format of an API takes beyond the common part.
#[derive(Clone, Copy)]
struct Limits {
    /// Properties that are not required.
    optional: bool,
    /// Least and most numbers, and counts of elements.
    ranges: bool,
    /// References that lead back to where they stand.
    recursion: bool,
}

const ANTHROPIC: Limits = Limits { optional: true, ranges: false, recursion: false };
const OPENAI: Limits = Limits { optional: false, ranges: true, recursion: true };

/// The schema as a format with these limits takes it: where it says nothing of further members, they are
/// excluded. Whatever fits it fits the schema. Absent if the format cannot express it.
fn narrowed(root: &Value, limits: Limits) -> Option<Value> {
    if !limits.recursion && recurs(root, root, &mut vec!["#"], &mut HashSet::new()) {
        return None;
    }
    narrow(root, limits)
}

fn narrow(schema: &Value, limits: Limits) -> Option<Value> {
    let members = schema.as_object()?;
    if !["type", "$ref", "anyOf", "enum", "const"].iter().any(|name| members.contains_key(*name)) {
        return None;
    }
    let mut narrow_members = Map::new();
    for (name, value) in members {
        let value = match name.as_str() {
            "properties" | "$defs" | "definitions" => Value::Object(
                value
                    .as_object()?
                    .iter()
                    .map(|(name, schema)| Some((name.clone(), narrow(schema, limits)?)))
                    .collect::<Option<_>>()?,
            ),
            "items" => narrow(value, limits)?,
            "anyOf" => {
                value.as_array()?.iter().map(|schema| narrow(schema, limits)).collect::<Option<Value>>()?
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minItems" | "maxItems"
                if !limits.ranges =>
            {
                return None;
            }
            "minLength" | "maxLength" => return None,
            "additionalProperties" if *value != Value::Bool(false) => return None,
            "enum" if !value.as_array()?.iter().all(is_scalar) => return None,
            "const" if !is_scalar(value) => return None,
            "title" | "description" => value.clone(),
            name if schema::ANNOTATIONS.contains(&name) => continue,
            _ => value.clone(),
        };
        narrow_members.insert(name.clone(), value);
    }
    if is_object(members) {
        // One without properties is for any; and what stands beside alternatives may be theirs.
        let properties = members.get("properties")?.as_object()?;
        if members.contains_key("anyOf") || members.contains_key("$ref") {
            return None;
        }
        let required =
            members.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if !limits.optional && !properties.keys().all(|name| required.iter().any(|one| one == name)) {
            return None;
        }
        narrow_members.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(narrow_members))
}

fn is_object(schema: &Map<String, Value>) -> bool {
    let named = crate::tools::schema::types(schema.get("type").unwrap_or(&Value::Null));
    named.contains(&"object") || schema.contains_key("properties")
}

fn is_scalar(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// Through how many references the search for recursion goes before it takes that for granted.
const MOST_REFERENCES: usize = 100;

/// Whether a reference leads back to a place that the way there came through.
fn recurs<'a>(
    root: &'a Value,
    value: &'a Value,
    way: &mut Vec<&'a str>,
    done: &mut HashSet<&'a str>,
) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(|element| recurs(root, element, way, done)),
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                if way.contains(&reference) || way.len() > MOST_REFERENCES {
                    return true;
                }
                if done.insert(reference) {
                    way.push(reference);
                    let found =
                        schema::target(root, reference).is_some_and(|next| recurs(root, next, way, done));
                    way.pop();
                    if found {
                        return true;
                    }
                }
            }
            // What is defined counts where it is referred to.
            let used = members.iter().filter(|(name, _)| !matches!(name.as_str(), "$defs" | "definitions"));
            used.map(|(_, member)| member).any(|member| recurs(root, member, way, done))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(limits: Limits, schema: Value) -> Option<Value> {
        narrowed(&schema, limits)
    }

    #[test]
    fn what_is_said_of_no_further_members_is_said() {
        let schema = json!({"type": "object", "title": "T", "properties": {
            "a": {"type": ["string", "null"], "default": null, "description": "D"},
            "b": {"type": "array", "items": {"$ref": "#/$defs/c"}}}, "required": ["a", "b"],
            "$defs": {"c": {"type": "object", "properties": {"d": {"enum": [1, "x"]}}, "required": ["d"]}}});
        let expected = json!({"type": "object", "title": "T", "properties": {
            "a": {"type": ["string", "null"], "description": "D"},
            "b": {"type": "array", "items": {"$ref": "#/$defs/c"}}}, "required": ["a", "b"],
            "$defs": {"c": {"type": "object", "properties": {"d": {"enum": [1, "x"]}}, "required": ["d"],
                "additionalProperties": false}},
            "additionalProperties": false});
        assert_eq!(found(ANTHROPIC, schema.clone()), Some(expected.clone()));
        assert_eq!(found(OPENAI, schema), Some(expected));
    }

    #[test]
    fn what_a_format_cannot_express_is_left_to_the_tool() {
        let with =
            |property: Value| json!({"type": "object", "properties": {"a": property}, "required": ["a"]});
        let recursive = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"],
            "$defs": {"n": {"anyOf": [{"type": "null"}, {"type": "object",
                "properties": {"next": {"$ref": "#/$defs/n"}}, "required": ["next"]}]}}});
        let to_top = with(json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]}));
        for (schema, anthropic, openai) in [
            (with(json!({"type": "string"})), true, true),
            (with(json!({"type": "number", "minimum": 1})), false, true),
            (with(json!({"type": "array", "items": {"type": "string"}, "minItems": 2})), false, true),
            (with(json!({"type": "string", "maxLength": 5})), false, false),
            (with(json!({})), false, false),
            (with(json!(true)), false, false),
            (with(json!({"type": "object"})), false, false),
            (
                with(json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}})),
                false,
                false,
            ),
            (with(json!({"type": "object", "properties": {}, "additionalProperties": true})), false, false),
            (with(json!({"enum": [[1]]})), false, false),
            (with(json!({"const": {}})), false, false),
            (
                with(json!({"type": "object", "properties": {"b": {"type": "null"}}, "required": ["b"],
                "anyOf": [{"properties": {"c": {"type": "null"}}}]})),
                false,
                false,
            ),
            (json!({"type": "object", "properties": {"a": {"type": "string"}}}), true, false),
            (recursive, false, true),
            (to_top, false, true),
        ] {
            assert_eq!(found(ANTHROPIC, schema.clone()).is_some(), anthropic, "{schema}");
            assert_eq!(found(OPENAI, schema.clone()).is_some(), openai, "{schema}");
        }
    }

    #[test]
    fn a_reference_used_twice_is_no_recursion() {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/c"}, "b": {"$ref": "#/$defs/c"}},
            "$defs": {"c": {"type": "string"}}});
        assert!(found(ANTHROPIC, schema).is_some());
    }
}
