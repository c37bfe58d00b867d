//! The schema of the final answer, read before anything is asked: what is in it can be checked, or it is refused.
//!
//! Known are the keywords that the APIs take in structured output. Any other is refused by name and place, and
//! never passed over: an answer that was checked by half of its schema has not been checked.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::check::inside;
use super::formats;
use super::numbers::whole;
use super::text::wide_number;
use crate::provider::is_too_deep;

/// The longest schema. It goes into every request.
pub const MOST_BYTES: usize = 256 * 1024;
/// Through how many references and alternatives in a row one value may be looked at.
const MOST_STEPS: usize = 20;

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];
/// What says nothing of whether a value fits.
pub const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "$schema",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// A schema that answers can be checked against.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    root: Value,
}

impl Schema {
    /// The schema: an object whose `type` is `object`, without references at the top.
    pub fn root(&self) -> &Value {
        &self.root
    }
}

/// Reads a schema from its text.
///
/// Errors: what is wrong with it and where.
pub fn read(text: &str) -> Result<Schema, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("it is longer than {MOST_BYTES} bytes"));
    }
    if is_too_deep(text) {
        return Err("it is nested too deeply".to_owned());
    }
    let root: Value = serde_json::from_str(text)
        .map_err(|error| format!("it is not JSON ({error}); a file is named as in @schema.json"))?;
    if !root.is_object() {
        return Err("it is not a JSON object".to_owned());
    }
    if let Some(number) = wide_number(text) {
        return Err(format!("the number {number} is too large to be kept exactly"));
    }
    let mut walk = Walk { root: &root, seen: HashSet::new(), referred: Vec::new() };
    walk.schema(&root, "")?;
    while let Some((schema, place)) = walk.referred.pop() {
        walk.schema(schema, &place)?;
    }
    ends(&root)?;
    with_object_at_top(root).map(|root| Schema { root })
}

/// What a reference leads to. All of them lead to a place of the same document.
pub fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    root.pointer(reference.strip_prefix('#')?)
}

/// The keywords of all schemas there are, those that only a reference leads to among them.
struct Walk<'a> {
    root: &'a Value,
    seen: HashSet<*const Value>,
    referred: Vec<(&'a Value, String)>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, place: &str) -> Result<(), String> {
        if !self.seen.insert(schema) {
            return Ok(());
        }
        match schema {
            Value::Bool(_) => Ok(()),
            Value::Object(members) => members
                .iter()
                .try_for_each(|(name, value)| self.keyword(name, value, place, &inside(place, name))),
            _ => Err(format!("at \"{place}\" there must be a schema: an object, true or false")),
        }
    }

    fn keyword(&mut self, name: &str, value: &'a Value, of: &str, place: &str) -> Result<(), String> {
        let must_be = |what: &str| Err(format!("\"{name}\" at \"{place}\" must be {what}"));
        match name {
            "type" => match value {
                Value::String(name) if TYPES.contains(&name.as_str()) => Ok(()),
                Value::Array(names) if !names.is_empty() && names.iter().all(is_type) => Ok(()),
                _ => must_be(&format!("one of {}, or a list of them", TYPES.join(", "))),
            },
            "properties" | "$defs" | "definitions" => match value {
                Value::Object(schemas) => {
                    schemas.iter().try_for_each(|(name, schema)| self.schema(schema, &inside(place, name)))
                }
                _ => must_be("an object of schemas"),
            },
            "items" | "additionalProperties" => self.schema(value, place),
            "anyOf" => match value {
                Value::Array(schemas) if !schemas.is_empty() => {
                    let mut numbered = schemas.iter().enumerate();
                    numbered.try_for_each(|(index, schema)| self.schema(schema, &format!("{place}/{index}")))
                }
                _ => must_be("a list of schemas"),
            },
            "required" => match value {
                Value::Array(names) if names.iter().all(Value::is_string) => Ok(()),
                _ => must_be("a list of names"),
            },
            "enum" => match value {
                Value::Array(values) if !values.is_empty() => Ok(()),
                _ => must_be("a list of values"),
            },
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if !value.is_number() => {
                must_be("a number")
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" if !is_count(value) => {
                must_be("a whole number from 0")
            }
            "format" if !value.as_str().is_some_and(|name| formats::NAMES.contains(&name)) => {
                must_be(&format!("one of {}", formats::NAMES.join(", ")))
            }
            "$ref" => self.reference(value, place),
            "const" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minLength"
            | "maxLength" | "minItems" | "maxItems" | "format" => Ok(()),
            // Elsewhere it changes what references mean.
            "$id" if of.is_empty() => Ok(()),
            name if ANNOTATIONS.contains(&name) => Ok(()),
            _ => Err(format!(
                "the keyword \"{name}\" at \"{place}\" is not supported: leave it out, and say in a description what it says"
            )),
        }
    }

    fn reference(&mut self, value: &'a Value, place: &str) -> Result<(), String> {
        let reference = value.as_str().unwrap_or_default();
        match target(self.root, reference) {
            Some(schema) => {
                self.referred.push((schema, reference.trim_start_matches('#').to_owned()));
                Ok(())
            }
            None => Err(format!(
                "\"$ref\" at \"{place}\" must lead to a place in the schema itself, as in \"#/$defs/name\", not {value}"
            )),
        }
    }
}

fn is_type(name: &Value) -> bool {
    name.as_str().is_some_and(|name| TYPES.contains(&name))
}

fn is_count(value: &Value) -> bool {
    value.as_number().and_then(whole).is_some_and(|count| count >= 0)
}

/// Errors: references or alternatives lead back to where they began without a step into the value, or through
/// too many of each other.
fn ends(root: &Value) -> Result<(), String> {
    let mut waiting = vec![root];
    let mut done = HashSet::new();
    while let Some(schema) = waiting.pop() {
        follow(root, schema, &mut Vec::new(), &mut done)?;
        waiting.extend(children(schema));
    }
    Ok(())
}

/// All values directly inside: also those that are no schemas, in which nothing can be found.
fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(elements) => elements.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

/// Goes from a schema to those that the same value must fit.
fn follow<'a>(
    root: &'a Value,
    schema: &'a Value,
    way: &mut Vec<*const Value>,
    done: &mut HashSet<(*const Value, usize)>,
) -> Result<(), String> {
    let reference = schema.get("$ref").and_then(Value::as_str);
    if way.contains(&std::ptr::from_ref(schema)) {
        return Err("a \"$ref\" leads back to itself".to_owned());
    }
    if way.len() > MOST_STEPS {
        return Err(format!("references lead through more than {MOST_STEPS} others"));
    }
    if !done.insert((schema, way.len())) {
        return Ok(());
    }
    way.push(schema);
    let alternatives = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let referred = reference.and_then(|reference| target(root, reference));
    for next in alternatives.chain(referred) {
        follow(root, next, way, done)?;
    }
    way.pop();
    Ok(())
}

/// The schema with an object at its top, which is all that the APIs take there.
///
/// Errors: it is one of something else.
fn with_object_at_top(root: Value) -> Result<Value, String> {
    let mut top = own_members(&root);
    // Generators write the whole as a definition and refer to it.
    while let Some(reference) = top.remove("$ref") {
        let is_definition = |name: &str| matches!(name, "$defs" | "definitions");
        if let Some(other) =
            top.keys().find(|name| !is_definition(name) && !ANNOTATIONS.contains(&name.as_str()))
        {
            return Err(format!("at the top, \"$ref\" and \"{other}\" exclude each other"));
        }
        let referred = reference.as_str().and_then(|reference| target(&root, reference));
        let definitions = top.into_iter().filter(|(name, _)| is_definition(name));
        let mut members = referred.map(own_members).unwrap_or_default();
        members.extend(definitions.collect::<Map<_, _>>());
        top = members;
    }
    match top.get("type") {
        Some(Value::String(name)) if name == "object" => {}
        Some(Value::Array(names)) if names.len() == 1 && names[0] == "object" => {}
        None if top.contains_key("properties") => {}
        _ => {
            return Err("at the top there must be \"type\": \"object\", as the APIs take no other answer: \
                        put what is meant into a property of an object"
                .to_owned());
        }
    }
    top.insert("type".to_owned(), Value::from("object"));
    // Some servers want it even where it says nothing.
    top.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    Ok(Value::Object(top))
}

/// The members of a schema, but for those that only name it.
fn own_members(schema: &Value) -> Map<String, Value> {
    let members = schema.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| !matches!(name.as_str(), "$schema" | "$id"));
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(schema: &str) -> String {
        match read(schema) {
            Ok(read) => panic!("{schema} was read as {}", read.root),
            Err(why) => why,
        }
    }

    /// The refusal of a schema that has this one as its property `a`.
    fn inside_refusal(schema: Value) -> String {
        refusal(&json!({"type": "object", "properties": {"a": schema}}).to_string())
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        for (text, why) in [
            (
                "",
                "it is not JSON (EOF while parsing a value at line 1 column 0); a file is named as in @schema.json",
            ),
            (
                "schema.json",
                "it is not JSON (expected value at line 1 column 1); a file is named as in @schema.json",
            ),
            ("[]", "it is not a JSON object"),
            ("true", "it is not a JSON object"),
            (
                r#"{"const":123456789012345678901}"#,
                "the number 123456789012345678901 is too large to be kept exactly",
            ),
        ] {
            assert_eq!(refusal(text), why, "{text}");
        }
        assert_eq!(refusal(&" ".repeat(MOST_BYTES + 1)), "it is longer than 262144 bytes");
        let deep = format!("{}{{}}{}", r#"{"items":"#.repeat(120), "}".repeat(120));
        assert_eq!(refusal(&deep), "it is nested too deeply");
    }

    #[test]
    fn an_unknown_keyword_is_refused_by_name_and_place() {
        let told = |name: &str, place: &str| {
            format!(
                "the keyword \"{name}\" at \"{place}\" is not supported: leave it out, and say in a description what it says"
            )
        };
        for name in [
            "pattern",
            "oneOf",
            "allOf",
            "not",
            "if",
            "uniqueItems",
            "multipleOf",
            "nullable",
            "patternProperties",
            "$dynamicRef",
            "x-y",
            "",
            "$id",
        ] {
            assert_eq!(
                inside_refusal(json!({name: 1})),
                told(name, &format!("/properties/a/{name}")),
                "{name}"
            );
        }
        for (schema, place) in [
            (json!({"pattern": ""}), "/pattern"),
            (json!({"properties": {"a/b~": {"pattern": ""}}}), "/properties/a~1b~0/pattern"),
            (json!({"items": {"anyOf": [true, {"pattern": ""}]}}), "/items/anyOf/1/pattern"),
            (json!({"additionalProperties": {"pattern": ""}}), "/additionalProperties/pattern"),
            (json!({"$defs": {"x": {"pattern": ""}}}), "/$defs/x/pattern"),
            // A place that only a reference makes a schema.
            (json!({"$ref": "#/const", "const": {"pattern": ""}}), "/const/pattern"),
        ] {
            assert_eq!(refusal(&schema.to_string()), told("pattern", place), "{schema}");
        }
    }

    #[test]
    fn a_keyword_with_a_value_that_it_cannot_have_is_refused() {
        let types = "one of string, number, integer, boolean, array, object, null, or a list of them";
        for (keyword, value, must_be) in [
            ("type", json!("text"), types),
            ("type", json!([]), types),
            ("type", json!(["string", 1]), types),
            ("properties", json!([]), "an object of schemas"),
            ("anyOf", json!([]), "a list of schemas"),
            ("anyOf", json!({}), "a list of schemas"),
            ("required", json!("b"), "a list of names"),
            ("required", json!([1]), "a list of names"),
            ("enum", json!([]), "a list of values"),
            ("minimum", json!("1"), "a number"),
            ("exclusiveMaximum", json!(true), "a number"),
            ("minLength", json!(-1), "a whole number from 0"),
            ("maxItems", json!(1.5), "a whole number from 0"),
            ("format", json!("int32"), "one of date-time, date, time, email, uri, uuid, ipv4, ipv6"),
        ] {
            let expected = format!("\"{keyword}\" at \"/properties/a/{keyword}\" must be {must_be}");
            assert_eq!(inside_refusal(json!({keyword: value})), expected);
        }
        let expected = "at \"/properties/a/items\" there must be a schema: an object, true or false";
        assert_eq!(inside_refusal(json!({"items": [{}]})), expected);
    }

    #[test]
    fn references_lead_to_a_place_in_the_schema_and_come_to_an_end() {
        for reference in ["#/$defs/y", "other.json", "https://a.example/b", "#x", ""] {
            let expected = format!(
                "\"$ref\" at \"/properties/a/$ref\" must lead to a place in the schema itself, as in \"#/$defs/name\", not \"{reference}\""
            );
            assert_eq!(inside_refusal(json!({"$ref": reference})), expected);
        }
        let circle = "a \"$ref\" leads back to itself";
        assert_eq!(refusal(r##"{"$ref":"#"}"##), circle);
        assert_eq!(inside_refusal(json!({"$ref": "#/properties/a"})), circle);
        assert_eq!(inside_refusal(json!({"anyOf": [{"type": "null"}, {"$ref": "#/properties/a"}]})), circle);
        let chain = |length: usize| {
            let mut defs = Map::new();
            for at in 0..length {
                defs.insert(format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}));
            }
            defs.insert(format!("d{length}"), json!({"type": "string"}));
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs}).to_string()
        };
        assert!(read(&chain(19)).is_ok());
        for length in [20, 5_000] {
            assert_eq!(refusal(&chain(length)), "references lead through more than 20 others");
        }
        // Each of many alternatives leads to all of the next: looked at one by one they would be too many.
        let mut defs = Map::new();
        for at in 0..18 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            defs.insert(format!("d{at}"), json!({"anyOf": [next, next, next]}));
        }
        defs.insert("d18".to_owned(), json!({}));
        let wide = json!({"type": "object", "properties": {}, "$defs": defs}).to_string();
        assert_eq!(refusal(&wide), "references lead through more than 20 others");
    }

    #[test]
    fn an_object_is_at_the_top() {
        let told = "at the top there must be \"type\": \"object\", as the APIs take no other answer: put what is meant into a property of an object";
        for schema in [
            r#"{}"#,
            r#"{"type":"array"}"#,
            r#"{"type":["object","null"]}"#,
            r#"{"anyOf":[{"type":"object"}]}"#,
            r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}"##,
        ] {
            assert_eq!(refusal(schema), told, "{schema}");
        }
        assert_eq!(
            refusal(r##"{"$ref":"#/$defs/a","minLength":1,"$defs":{"a":{"type":"object"}}}"##),
            "at the top, \"$ref\" and \"minLength\" exclude each other"
        );
        for (schema, root) in [
            (r#"{"type":"object"}"#, r#"{"type":"object","properties":{}}"#),
            (r#"{"type":["object"],"properties":{"a":{}}}"#, r#"{"type":"object","properties":{"a":{}}}"#),
            (r#"{"properties":{"a":true}}"#, r#"{"properties":{"a":true},"type":"object"}"#),
            (
                r#"{"$schema":"http://json-schema.org/draft-07/schema#","$id":"x","title":"T","type":"object"}"#,
                r#"{"title":"T","type":"object","properties":{}}"#,
            ),
            (
                r##"{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"type":"object","properties":{"c":{"$ref":"#/definitions/b"}}}},"$schema":"s"}"##,
                r##"{"type":"object","properties":{"c":{"$ref":"#/definitions/b"}},"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"type":"object","properties":{"c":{"$ref":"#/definitions/b"}}}}}"##,
            ),
        ] {
            assert_eq!(read(schema).unwrap().root.to_string(), root);
        }
    }
}
