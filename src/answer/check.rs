//! A value against a schema that was read: the verdict, and each thing that does not fit with its place.
//!
//! Unlike `tools/schema.rs`, which takes a slip of a model's as meant, this mends nothing: a program reads the
//! answer.

use serde_json::{Map, Number, Value};

use super::formats;
use super::numbers::{compare, equal, whole};
use super::schema::target;
use crate::tools::arguments::shown;
use crate::tools::schema::{in_words, is_of, types};

/// How many problems the model is told at once.
const MOST_PROBLEMS: usize = 10;
/// How many values are looked at, one for each schema that it must fit: alternatives within alternatives could
/// take for ever.
const MOST_STEPS: u32 = 200_000;
/// The most values of an `enum` that a problem lists.
const LISTED: usize = 20;

/// Everything about a value that does not fit, the first few; nothing if it fits.
pub fn problems(root: &Value, value: &Value) -> Vec<String> {
    let mut check = Check { root, steps: 0 };
    let mut problems = Vec::new();
    check.value(root, value, "", &mut problems);
    if check.steps > MOST_STEPS {
        return vec!["the answer is too involved to be checked against its schema".to_owned()];
    }
    problems.truncate(MOST_PROBLEMS);
    problems
}

struct Check<'a> {
    root: &'a Value,
    steps: u32,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
        self.steps += 1;
        if self.steps > MOST_STEPS || problems.len() >= MOST_PROBLEMS {
            return;
        }
        let Value::Object(schema) = schema else {
            if *schema == Value::Bool(false) {
                problems.push(format!("{} must not be there", named(place)));
            }
            return;
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = target(self.root, reference)
        {
            self.value(target, value, place, problems);
        }
        if let Some(problem) = unfit(schema, value) {
            problems.push(format!("{} {problem}", named(place)));
            return;
        }
        match value {
            Value::Object(members) => self.object(schema, members, place, problems),
            Value::Array(elements) => {
                if let Some(items) = schema.get("items") {
                    for (index, element) in elements.iter().enumerate() {
                        self.value(items, element, &format!("{place}/{index}"), problems);
                    }
                }
            }
            _ => {}
        }
        if let Some(Value::Array(alternatives)) = schema.get("anyOf") {
            self.any_of(alternatives, value, place, problems);
        }
    }

    fn object(
        &mut self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        place: &str,
        problems: &mut Vec<String>,
    ) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = name.as_str().filter(|name| !members.contains_key(*name)) {
                problems.push(format!("{} lacks \"{name}\"", named(place)));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, value) in members {
            let inner = inside(place, name);
            match (properties.and_then(|properties| properties.get(name)), schema.get("additionalProperties"))
            {
                (Some(of_name), _) => self.value(of_name, value, &inner, problems),
                (None, Some(of_others)) => self.value(of_others, value, &inner, problems),
                (None, None) => {}
            }
        }
    }

    /// One alternative that fits is enough; of each that does not, the first problem is told.
    fn any_of(&mut self, alternatives: &[Value], value: &Value, place: &str, problems: &mut Vec<String>) {
        let mut reasons = Vec::new();
        for alternative in alternatives {
            let mut found = Vec::new();
            self.value(alternative, value, place, &mut found);
            match found.into_iter().next() {
                None => return,
                Some(first) => reasons.push(first),
            }
        }
        reasons.dedup();
        let rest = reasons.len().saturating_sub(LISTED);
        reasons.truncate(LISTED);
        let list = reasons.join("; or ");
        let more = if rest > 0 { "; or …" } else { "" };
        problems.push(format!("{} fits no alternative: {list}{more}", named(place)));
    }
}

/// What of the value itself does not fit, whatever is in it; the text continues its name.
fn unfit(schema: &Map<String, Value>, value: &Value) -> Option<String> {
    let types = types(schema.get("type").unwrap_or(&Value::Null));
    if !types.is_empty() && !types.iter().any(|name| is_of(name, value)) {
        let wanted: Vec<&str> = types.iter().map(|name| in_words(name)).collect();
        return Some(format!("must be {}, not {}", wanted.join(" or "), shown(value)));
    }
    if let Some(constant) = schema.get("const")
        && !equal(constant, value)
    {
        return Some(format!("must be {constant}, not {}", shown(value)));
    }
    if let Some(Value::Array(values)) = schema.get("enum")
        && !values.iter().any(|one| equal(one, value))
    {
        let mut list: Vec<String> = values.iter().take(LISTED).map(Value::to_string).collect();
        if values.len() > LISTED {
            list.push("…".to_owned());
        }
        return Some(format!("must be one of {}, not {}", list.join(", "), shown(value)));
    }
    match value {
        Value::Number(number) => out_of_range(schema, number),
        Value::String(text) => {
            wrong_count(schema, text.chars().count(), ["minLength", "maxLength"], "characters").or_else(
                || {
                    let name = schema.get("format").and_then(Value::as_str)?;
                    (!formats::fits(name, text))
                        .then(|| format!("must have the format {name}, not {}", shown(value)))
                },
            )
        }
        Value::Array(elements) => wrong_count(schema, elements.len(), ["minItems", "maxItems"], "elements"),
        _ => None,
    }
}

fn out_of_range(schema: &Map<String, Value>, number: &Number) -> Option<String> {
    let limits = [
        ("minimum", "at least", [false, true, true]),
        ("exclusiveMinimum", "more than", [false, false, true]),
        ("maximum", "at most", [true, true, false]),
        ("exclusiveMaximum", "less than", [true, false, false]),
    ];
    for (keyword, words, [less, same, more]) in limits {
        let Some(Value::Number(limit)) = schema.get(keyword) else { continue };
        let order = compare(number, limit);
        let fits = if order.is_lt() {
            less
        } else if order.is_eq() {
            same
        } else {
            more
        };
        if !fits {
            return Some(format!("must be {words} {limit}, not {number}"));
        }
    }
    None
}

fn wrong_count(
    schema: &Map<String, Value>,
    count: usize,
    [least, most]: [&str; 2],
    what: &str,
) -> Option<String> {
    let limit = |name: &str| match schema.get(name) {
        Some(Value::Number(number)) => whole(number),
        _ => None,
    };
    if let Some(least) = limit(least).filter(|least| (count as i128) < *least) {
        return Some(format!("must have at least {least} {what}, not {count}"));
    }
    let most = limit(most).filter(|most| (count as i128) > *most)?;
    Some(format!("must have at most {most} {what}, not {count}"))
}

/// A place as a JSON Pointer, and how the model reads it.
fn named(place: &str) -> String {
    if place.is_empty() { "the answer".to_owned() } else { format!("\"{place}\"") }
}

/// The place of a member.
pub fn inside(place: &str, name: &str) -> String {
    format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What is wrong with a value that is the property `a` of an answer.
    fn told(schema: &Value, value: &Value) -> Vec<String> {
        let whole = json!({"type": "object", "properties": {"a": schema}, "$defs": {
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "n": {"type": "integer"}},
                "additionalProperties": false},
            "name": {"type": "string", "minLength": 2}}});
        let root =
            super::super::schema::read(&whole.to_string()).unwrap_or_else(|why| panic!("{schema}: {why}"));
        problems(root.root(), &json!({"a": value}))
    }

    /// A schema, values that fit it, and each value that does not with what is said of it.
    type Row = (Value, Vec<Value>, Vec<(Value, &'static str)>);

    fn table() -> Vec<Row> {
        let deep = json!({"left": {"left": {"n": 1.0}}, "n": 2});
        vec![
            (json!({}), vec![json!(null), json!({"b": [1]})], vec![]),
            (json!(true), vec![json!(1)], vec![]),
            (json!(false), vec![], vec![(json!(1), "\"/a\" must not be there")]),
            (
                json!({"title": "T", "description": "D", "default": 1, "examples": [1], "$comment": "C"}),
                vec![json!("x")],
                vec![],
            ),
            (
                json!({"type": "string"}),
                vec![json!(""), json!("x")],
                vec![
                    (json!(1), "\"/a\" must be a string, not 1"),
                    (json!(null), "\"/a\" must be a string, not null"),
                    (json!(["x"]), "\"/a\" must be a string, not an array"),
                ],
            ),
            (
                json!({"type": "integer"}),
                vec![json!(0), json!(1.0), json!(u64::MAX), json!(1e300)],
                vec![
                    (json!(1.5), "\"/a\" must be a whole number, not 1.5"),
                    (json!("1"), "\"/a\" must be a whole number, not \"1\""),
                ],
            ),
            (
                json!({"type": "number"}),
                vec![json!(1), json!(-0.5)],
                vec![(json!(true), "\"/a\" must be a number, not true")],
            ),
            (
                json!({"type": "boolean"}),
                vec![json!(false)],
                vec![(json!(0), "\"/a\" must be true or false, not 0")],
            ),
            (json!({"type": "null"}), vec![json!(null)], vec![(json!(""), "\"/a\" must be null, not \"\"")]),
            (
                json!({"type": ["integer", "null"]}),
                vec![json!(null), json!(3)],
                vec![(json!("3"), "\"/a\" must be a whole number or null, not \"3\"")],
            ),
            (
                json!({"type": "object", "properties": {"b": {"type": "string"}, "c/d": {"type": "null"}}, "required": ["b"]}),
                vec![json!({"b": ""}), json!({"b": "x", "c/d": null, "e": 1})],
                vec![
                    (json!({}), "\"/a\" lacks \"b\""),
                    (json!({"c/d": 1}), "\"/a\" lacks \"b\" | \"/a/c~1d\" must be null, not 1"),
                    (json!([]), "\"/a\" must be an object, not an array"),
                ],
            ),
            (
                json!({"properties": {"b": {}}, "additionalProperties": false}),
                vec![json!({"b": 1}), json!({}), json!("no object")],
                vec![(json!({"c": 1, "b": 2}), "\"/a/c\" must not be there")],
            ),
            (
                json!({"additionalProperties": {"type": "integer"}, "properties": {"b": true}}),
                vec![json!({"b": "x", "c": 1})],
                vec![(json!({"c": "x"}), "\"/a/c\" must be a whole number, not \"x\"")],
            ),
            (
                json!({"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}),
                vec![json!([1]), json!([1, 2])],
                vec![
                    (json!([]), "\"/a\" must have at least 1 elements, not 0"),
                    (json!([1, 2, 3]), "\"/a\" must have at most 2 elements, not 3"),
                    (json!([1, "x"]), "\"/a/1\" must be a whole number, not \"x\""),
                ],
            ),
            (
                json!({"enum": ["red", 1, null, {"b": 2}]}),
                vec![json!("red"), json!(1.0), json!(null), json!({"b": 2.0})],
                vec![(json!("RED"), "\"/a\" must be one of \"red\", 1, null, {\"b\":2}, not \"RED\"")],
            ),
            (
                json!({"const": 9_007_199_254_740_993_u64}),
                vec![json!(9_007_199_254_740_993_u64)],
                vec![(
                    json!(9_007_199_254_740_992_u64),
                    "\"/a\" must be 9007199254740993, not 9007199254740992",
                )],
            ),
            (
                json!({"minimum": 1, "maximum": 2.5}),
                vec![json!(1), json!(1.0), json!(2.5), json!("no number")],
                vec![
                    (json!(0.9), "\"/a\" must be at least 1, not 0.9"),
                    (json!(3), "\"/a\" must be at most 2.5, not 3"),
                ],
            ),
            (
                json!({"exclusiveMinimum": 1, "exclusiveMaximum": 2}),
                vec![json!(1.5)],
                vec![
                    (json!(1.0), "\"/a\" must be more than 1, not 1.0"),
                    (json!(2), "\"/a\" must be less than 2, not 2"),
                ],
            ),
            (
                json!({"minLength": 2, "maxLength": 3.0}),
                vec![json!("äö"), json!("a\u{1f600}c"), json!(["no string"])],
                vec![
                    (json!("ä"), "\"/a\" must have at least 2 characters, not 1"),
                    (json!("abcd"), "\"/a\" must have at most 3 characters, not 4"),
                ],
            ),
            (
                json!({"format": "date"}),
                vec![json!("2024-02-29"), json!(20240229)],
                vec![(json!("soon"), "\"/a\" must have the format date, not \"soon\"")],
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "object", "required": ["b"]}]}),
                vec![json!("x"), json!({"b": 1})],
                vec![(
                    json!({}),
                    "\"/a\" fits no alternative: \"/a\" must be a string, not an object; or \"/a\" lacks \"b\"",
                )],
            ),
            (
                json!({"type": "object", "anyOf": [{"required": ["b"]}, {"required": ["c"]}], "properties": {"b": {"type": "null"}}}),
                vec![json!({"c": 1}), json!({"b": null})],
                vec![(json!({"b": 1}), "\"/a/b\" must be null, not 1")],
            ),
            (
                json!({"$ref": "#/$defs/name", "maxLength": 3}),
                vec![json!("abc")],
                vec![
                    (json!("a"), "\"/a\" must have at least 2 characters, not 1"),
                    (json!("abcd"), "\"/a\" must have at most 3 characters, not 4"),
                ],
            ),
            (
                json!({"$ref": "#/$defs/tree"}),
                vec![json!({}), deep],
                vec![
                    (
                        json!({"left": {"left": {"n": "x"}}}),
                        "\"/a/left/left/n\" must be a whole number, not \"x\"",
                    ),
                    (json!({"left": {"right": {}}}), "\"/a/left/right\" must not be there"),
                ],
            ),
        ]
    }

    #[test]
    fn values_fit_or_are_told_what_does_not() {
        for (schema, fit, unfit) in table() {
            for value in fit {
                assert_eq!(told(&schema, &value), [] as [&str; 0], "{schema} {value}");
            }
            for (value, problem) in unfit {
                assert_eq!(told(&schema, &value).join(" | "), problem, "{schema} {value}");
            }
        }
    }

    /// The same value with the members of all objects the other way round.
    fn reversed(value: &Value) -> Value {
        match value {
            Value::Array(elements) => elements.iter().map(reversed).collect(),
            Value::Object(members) => Value::Object(
                members.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect(),
            ),
            other => other.clone(),
        }
    }

    #[test]
    fn the_order_of_members_means_nothing() {
        for (schema, fit, unfit) in table() {
            for value in fit {
                assert!(told(&reversed(&schema), &reversed(&value)).is_empty(), "{schema} {value}");
            }
            for (value, _) in unfit {
                assert!(!told(&reversed(&schema), &reversed(&value)).is_empty(), "{schema} {value}");
            }
        }
    }

    #[test]
    fn only_the_first_problems_are_told() {
        let values = vec![json!("x"); 1000];
        assert_eq!(told(&json!({"items": {"type": "null"}}), &json!(values)).len(), MOST_PROBLEMS);
        let many: Vec<usize> = (0..30).collect();
        let problem = &told(&json!({"enum": many}), &json!(99))[0];
        assert!(problem.ends_with("18, 19, …, not 99"), "{problem}");
    }

    /// Each level has two ways that both fail only at the bottom.
    #[test]
    fn alternatives_within_alternatives_do_not_take_for_ever() {
        let step = json!({"properties": {"a": {"$ref": "#/properties/a"}}, "required": ["b"]});
        let schema = json!({"anyOf": [step, step]});
        let mut value = json!({});
        for _ in 0..60 {
            value = json!({"a": value});
        }
        assert_eq!(told(&schema, &value), ["the answer is too involved to be checked against its schema"]);
    }
}
