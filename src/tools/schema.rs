//! Arguments against the JSON Schema that somebody else wrote: they are checked, and a slip whose meaning is
//! certain is taken as meant.
//!
//! Pure. What is looked at is `type`, `properties`, `required`, `additionalProperties`, `items`, `enum`,
//! `minimum` and `maximum`, at any depth. Whatever else a schema says, `$ref` too, is the program's to check.

use serde_json::{Map, Number, Value};

use super::arguments::{alike, shown, whole};
use super::{Arguments, nearest};

/// The most values of an `enum` that an error lists.
const LISTED: usize = 20;

/// The arguments as the schema has them: names in its spelling, numbers that came as texts as numbers.
///
/// Errors: the first thing that does not fit; the text continues the tool's name.
pub fn fit(schema: &Value, arguments: &Arguments) -> Result<Arguments, String> {
    object(schema, arguments, "")
}

fn object(schema: &Value, members: &Arguments, place: &str) -> Result<Arguments, String> {
    let nothing = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&nothing);
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().flat_map(Value::as_str).collect();
    let mut fitted = Arguments::new();
    for (typed, value) in members {
        let Some((name, of_name)) = property(properties, members, typed) else {
            if let Some(value) = further(schema, properties, typed, value, place)? {
                fitted.insert(typed.clone(), value);
            }
            continue;
        };
        let inner = inside(place, name);
        if fitted.contains_key(name) {
            return Err(format!("got the argument \"{inner}\" twice"));
        }
        if !is_left_open(of_name, value, required.contains(&name)) {
            fitted.insert(name.to_owned(), self::value(of_name, value, &inner)?);
        }
    }
    match required.iter().find(|name| !fitted.contains_key(**name)) {
        Some(missing) => Err(format!("needs \"{}\"", inside(place, missing))),
        None => Ok(fitted),
    }
}

/// The property that a name means: its own, or the only one spelt so but for case, underscores and hyphens.
fn property<'a>(
    properties: &'a Map<String, Value>,
    members: &Arguments,
    typed: &str,
) -> Option<(&'a str, &'a Value)> {
    let own = properties.get_key_value(typed);
    let mut close = properties.iter().filter(|(name, _)| alike(name, typed));
    let meant = own.or_else(|| match (close.next(), close.next()) {
        (Some(only), None) if !members.contains_key(only.0) => Some(only),
        _ => None,
    });
    meant.map(|(name, schema)| (name.as_str(), schema))
}

/// What becomes of a member that `properties` does not name; nothing where it asks for nothing.
///
/// JSON Schema allows any further member unless it is told otherwise. A model that sends one has mistaken
/// the name, so that here the schema has to allow it, by a word or by naming no properties at all.
fn further(
    schema: &Value,
    properties: &Map<String, Value>,
    typed: &str,
    value: &Value,
    place: &str,
) -> Result<Option<Value>, String> {
    let inner = inside(place, typed);
    match schema.get("additionalProperties") {
        Some(of_others @ Value::Object(_)) => return self::value(of_others, value, &inner).map(Some),
        Some(Value::Bool(true)) => return Ok(Some(value.clone())),
        None if properties.is_empty() || schema.get("patternProperties").is_some() => {
            return Ok(Some(value.clone()));
        }
        _ if value.is_null() || *value == Value::Bool(false) => return Ok(None),
        _ => {}
    }
    let near = nearest::names(typed, properties.keys().map(String::as_str));
    Err(match near.first() {
        Some(near) => format!("has no argument \"{inner}\" (did you mean \"{near}\"?)"),
        None => format!("has no argument \"{inner}\""),
    })
}

/// Whether a value only says that there is none: models fill in what is optional.
fn is_left_open(schema: &Value, value: &Value, is_required: bool) -> bool {
    let takes = |name: &str| types(&schema["type"]).is_empty() || types(&schema["type"]).contains(&name);
    match value {
        Value::Null => !takes("null"),
        Value::String(text) => text.trim().is_empty() && !takes("string") && !is_required,
        _ => false,
    }
}

fn value(schema: &Value, given: &Value, place: &str) -> Result<Value, String> {
    let types = types(&schema["type"]);
    let fits = types.is_empty() || types.iter().any(|name| is_of(name, given));
    let converted = match fits {
        true => Some(Converted::Whole(given.clone())),
        false => types.iter().find_map(|name| converted(name, schema, given)),
    };
    let fitted = match converted {
        Some(Converted::Element(element)) => Value::Array(vec![element]),
        Some(Converted::Whole(Value::Object(members))) => Value::Object(object(schema, &members, place)?),
        Some(Converted::Whole(Value::Array(elements))) => Value::Array(array(schema, &elements, place)?),
        // A program that asks for a whole number is not to be given `10.0`.
        Some(Converted::Whole(Value::Number(number))) if types.contains(&"integer") => {
            Value::Number(plain(number))
        }
        Some(Converted::Whole(other)) => other,
        None => {
            let wanted: Vec<&str> = types.iter().map(|name| in_words(name)).collect();
            return Err(format!("takes {} as \"{place}\", not {}", wanted.join(" or "), shown(given)));
        }
    };
    within(schema, &fitted, place)?;
    listed(schema, fitted, place)
}

fn array(schema: &Value, elements: &[Value], place: &str) -> Result<Vec<Value>, String> {
    match schema.get("items") {
        Some(items @ Value::Object(_)) => {
            let numbered = elements.iter().enumerate();
            numbered.map(|(index, element)| value(items, element, &format!("{place}[{index}]"))).collect()
        }
        _ => Ok(elements.to_vec()),
    }
}

/// The names in a `type`, which is one or a list, each once; none if there is none, and so anything goes.
pub fn types(of: &Value) -> Vec<&str> {
    let names = match of {
        Value::Array(names) => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    let mut types = Vec::new();
    for name in names.iter().filter_map(Value::as_str) {
        if !types.contains(&name) {
            types.push(name);
        }
    }
    types
}

/// Whether a value is of the type with this name.
pub fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // A type that JSON Schema does not have forbids nothing.
        _ => true,
    }
}

/// A type's name as a sentence has it.
pub fn in_words(name: &str) -> &str {
    match name {
        "string" => "a string",
        "number" => "a number",
        "integer" => "a whole number",
        "boolean" => "true or false",
        "array" => "an array",
        "object" => "an object",
        other => other,
    }
}

/// What another type's value certainly means.
enum Converted {
    /// A value of the wanted type.
    Whole(Value),
    /// The only element of an array, which fits already. Were it looked at again as part of the array, arrays in
    /// arrays would double the work at each level.
    Element(Value),
}

/// What a value certainly means where one of the wanted type should be.
fn converted(wanted: &str, schema: &Value, given: &Value) -> Option<Converted> {
    let found = match (wanted, given) {
        ("integer" | "number", Value::String(text)) => number(text.trim())?,
        ("boolean", Value::String(text)) => Value::Bool(text.trim().to_ascii_lowercase().parse().ok()?),
        // What was encoded as a text of JSON.
        ("array", Value::String(text)) if text.trim_start().starts_with('[') => {
            crate::provider::parse(text).ok()?
        }
        ("object", Value::String(text)) if text.trim_start().starts_with('{') => {
            crate::provider::parse(text).ok()?
        }
        // One where several could be, and one of several where there is one.
        ("array", one) => {
            return schema.get("items").and_then(|items| value(items, one, "").ok()).map(Converted::Element);
        }
        ("string" | "integer" | "number" | "boolean", Value::Array(elements)) => match &elements[..] {
            [only] => only.clone(),
            _ => return None,
        },
        _ => return None,
    };
    is_of(wanted, &found).then_some(Converted::Whole(found))
}

fn number(text: &str) -> Option<Value> {
    let integer = text.parse::<i64>().ok().map(Number::from);
    integer.or_else(|| Number::from_f64(text.parse().ok()?)).map(Value::Number)
}

/// The number without a fraction of zero.
fn plain(number: Number) -> Number {
    match number.is_f64() {
        true => number.as_f64().and_then(whole).map_or(number, Number::from),
        false => number,
    }
}

fn within(schema: &Value, given: &Value, place: &str) -> Result<(), String> {
    let Some(number) = given.as_f64() else { return Ok(()) };
    let limit = |name: &str| schema[name].as_f64();
    if limit("minimum").is_some_and(|least| number < least) {
        return Err(format!("takes \"{place}\" from {}, not {given}", schema["minimum"]));
    }
    if limit("maximum").is_some_and(|most| number > most) {
        return Err(format!("takes \"{place}\" up to {}, not {given}", schema["maximum"]));
    }
    Ok(())
}

/// The value if `enum` has it: as it is, or the only one spelt so but for case, underscores and hyphens.
pub fn listed(schema: &Value, given: Value, place: &str) -> Result<Value, String> {
    let Some(list) = schema["enum"].as_array() else { return Ok(given) };
    let same = |one: &Value| *one == given || one.is_number() && one.as_f64() == given.as_f64();
    if list.iter().any(same) {
        return Ok(given);
    }
    let is_close = |one: &&Value| match (one.as_str(), given.as_str()) {
        (Some(one), Some(given)) => alike(one.trim(), given.trim()),
        _ => false,
    };
    let mut close = list.iter().filter(is_close);
    if let (Some(only), None) = (close.next(), close.next()) {
        return Ok(only.clone());
    }
    let mut values: Vec<String> = list.iter().take(LISTED).map(Value::to_string).collect();
    if list.len() > LISTED {
        values.push("…".to_owned());
    }
    Err(format!("takes one of {} as \"{place}\", not {}", values.join(", "), shown(&given)))
}

/// The place of a member, as an error names it: `filter.names[2]`.
fn inside(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "share": {"type": "number"},
                "unit_name": {"type": "string", "enum": ["Celsius", "Fahrenheit"]},
                "is_long": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "range": {
                    "type": "object",
                    "properties": {"from": {"type": "integer"}, "to": {"type": ["integer", "null"]}},
                    "required": ["from"]
                },
                "stops": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "integer"}}}},
                "level": {"enum": [1, 2]},
                "extra": {"type": "object"},
                "any": {}
            },
            "required": ["city"]
        })
    }

    fn fitted(arguments: Value) -> Result<Value, String> {
        fit(&schema(), arguments.as_object().unwrap()).map(Value::Object)
    }

    /// The value that a property gets.
    fn taken(name: &str, value: Value) -> Result<Value, String> {
        let mut fitted = fitted(json!({"city": "Rome", name: value}))?;
        Ok(fitted[name].take())
    }

    #[test]
    fn what_fits_is_passed_on_unchanged() {
        let whole = json!({
            "city": "Rome", "days": 3, "share": 0.5, "unit_name": "Celsius", "is_long": true, "tags": ["a", ""],
            "range": {"from": 1, "to": null}, "stops": [{"at": 1}, {}], "level": 2,
            "extra": {"x": [1, {"y": null}]}, "any": [null]
        });
        assert_eq!(fitted(whole.clone()), Ok(whole));
        assert_eq!(taken("share", json!(2)), Ok(json!(2)));
        assert_eq!(taken("city2", Value::Null), Ok(Value::Null));
    }

    #[test]
    fn slips_that_are_certain_are_taken_as_meant() {
        for (name, value, meant) in [
            ("days", json!("3"), json!(3)),
            ("days", json!(" 3.0 "), json!(3)),
            ("days", json!(3.0), json!(3)),
            ("days", json!([3]), json!(3)),
            ("share", json!("0.5"), json!(0.5)),
            ("share", json!("2"), json!(2)),
            ("is_long", json!("True"), json!(true)),
            ("unit_name", json!("celsius"), json!("Celsius")),
            ("unit_name", json!(["FAHRENHEIT "]), json!("Fahrenheit")),
            ("tags", json!("a"), json!(["a"])),
            ("tags", json!("[\"a\", \"b\"]"), json!(["a", "b"])),
            ("range", json!("{\"from\": \"1\"}"), json!({"from": 1})),
            ("stops", json!({"AT": "5"}), json!([{"at": 5}])),
            ("level", json!(2.0), json!(2.0)),
        ] {
            assert_eq!(taken(name, value.clone()), Ok(meant), "{name} {value}");
        }
        let found = fitted(json!({"City": "Rome", "unitName": "Celsius", "is-long": false}));
        assert_eq!(found, Ok(json!({"city": "Rome", "unit_name": "Celsius", "is_long": false})));
    }

    #[test]
    fn what_asks_for_nothing_counts_as_not_given() {
        let found = fitted(
            json!({"city": "Rome", "days": null, "share": "", "tags": " ", "colour": false, "x": null}),
        );
        assert_eq!(found, Ok(json!({"city": "Rome"})));
        assert_eq!(fitted(json!({"city": null})), Err("needs \"city\"".to_owned()));
        assert_eq!(fitted(json!({"city": ""})), Ok(json!({"city": ""})));
    }

    #[test]
    fn anything_else_is_an_error_that_names_the_place() {
        for (arguments, problem) in [
            (json!({}), "needs \"city\""),
            (json!({"city": 5}), "takes a string as \"city\", not 5"),
            (json!({"city": ["a", "b"]}), "takes a string as \"city\", not an array"),
            (json!({"city": "a", "days": "soon"}), "takes a whole number as \"days\", not \"soon\""),
            (json!({"city": "a", "days": 1.5}), "takes a whole number as \"days\", not 1.5"),
            (json!({"city": "a", "days": 0}), "takes \"days\" from 1, not 0"),
            (json!({"city": "a", "days": "15"}), "takes \"days\" up to 14, not 15"),
            (json!({"city": "a", "share": "NaN"}), "takes a number as \"share\", not \"NaN\""),
            (json!({"city": "a", "is_long": 1}), "takes true or false as \"is_long\", not 1"),
            (
                json!({"city": "a", "unit_name": "Kelvin"}),
                "takes one of \"Celsius\", \"Fahrenheit\" as \"unit_name\", not \"Kelvin\"",
            ),
            (json!({"city": "a", "level": 3}), "takes one of 1, 2 as \"level\", not 3"),
            (json!({"city": "a", "tags": ["x", 1]}), "takes a string as \"tags[1]\", not 1"),
            (json!({"city": "a", "tags": 1}), "takes an array as \"tags\", not 1"),
            (json!({"city": "a", "tags": "[1"}), "takes an array as \"tags\", not \"[1\""),
            (json!({"city": "a", "range": {}}), "needs \"range.from\""),
            (
                json!({"city": "a", "range": {"from": 1, "to": "x"}}),
                "takes a whole number or null as \"range.to\", not \"x\"",
            ),
            (
                json!({"city": "a", "stops": [{}, {"at": []}]}),
                "takes a whole number as \"stops[1].at\", not an array",
            ),
            (json!({"city": "a", "citty": "b"}), "has no argument \"citty\" (did you mean \"city\"?)"),
            (json!({"city": "a", "CITY": "b"}), "has no argument \"CITY\" (did you mean \"city\"?)"),
            (json!({"city": "a", "zzzzzz": 1}), "has no argument \"zzzzzz\""),
            (json!({"CITY": "a", "City": "b"}), "got the argument \"city\" twice"),
        ] {
            assert_eq!(fitted(arguments.clone()), Err(problem.to_owned()), "{arguments}");
        }
    }

    #[test]
    fn further_members_need_a_schema_that_allows_them() {
        let with = |word: Value| {
            let schema = json!({"type": "object", "properties": {"a": {}}, "additionalProperties": word});
            fit(&schema, json!({"b": "1"}).as_object().unwrap()).map(Value::Object)
        };
        assert_eq!(with(json!(true)), Ok(json!({"b": "1"})));
        assert_eq!(with(json!({"type": "integer"})), Ok(json!({"b": 1})));
        assert_eq!(
            with(json!({"type": "boolean"})),
            Err("takes true or false as \"b\", not \"1\"".to_owned())
        );
        assert!(with(json!(false)).unwrap_err().starts_with("has no argument \"b\""));
        let any = json!({"type": "object"});
        assert_eq!(fit(&any, json!({"b": 1}).as_object().unwrap()).map(Value::Object), Ok(json!({"b": 1})));
    }

    #[test]
    fn a_schema_of_nonsense_forbids_nothing_and_never_panics() {
        let nonsense = json!({
            "type": "object", "required": "all",
            "properties": {"a": 5, "b": {"type": 7, "enum": "x", "items": 3}, "c": {"$ref": "#/x"}, "d": {"type": "date"}}
        });
        let arguments = json!({"a": 1, "b": [1], "c": {"x": 1}, "d": 4});
        assert_eq!(fit(&nonsense, arguments.as_object().unwrap()).map(Value::Object), Ok(arguments));
    }

    /// Each level was looked at twice, so that thirty of them took minutes.
    #[test]
    fn arrays_in_arrays_take_no_longer_for_being_deep() {
        let fitted = |innermost: &str| {
            let mut items = json!({"type": innermost});
            for _ in 0..100 {
                items = json!({"type": ["array", "array"], "items": items});
            }
            fit(&json!({"properties": {"a": items}}), json!({"a": "x"}).as_object().unwrap())
        };
        let mut meant = json!("x");
        for _ in 0..100 {
            meant = json!([meant]);
        }
        assert_eq!(fitted("string").map(Value::Object), Ok(json!({"a": meant})));
        assert_eq!(fitted("integer"), Err("takes an array as \"a\", not \"x\"".to_owned()));
    }

    #[test]
    fn a_long_list_is_not_told_whole() {
        let list: Vec<u32> = (0..500).collect();
        let schema = json!({"properties": {"n": {"enum": list}}});
        let problem = fit(&schema, json!({"n": 500}).as_object().unwrap()).unwrap_err();
        assert!(problem.len() < 200 && problem.contains("19, …"), "{problem}");
    }
}
