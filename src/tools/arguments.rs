//! What a call's arguments mean: names and values as models really send them, read against the
//! tool's schema.
//!
//! A slip whose meaning is certain is taken as meant (`filePath` for `file_path`, `"10"` for 10).
//! Anything else is an error that states the schema, never a guess.

use serde_json::Value;

use crate::tools::{Arguments, Spec, nearest, quotes, schema};

/// How much of a schema an error states: the model has all of it in its list of tools.
const MOST_SCHEMA_BYTES: usize = 4000;

/// The arguments of one call, under the names of the tool's schema. A `null` counts as not given, and so
/// does `false` for something that the tool does not have: either asks for nothing.
pub struct Given<'a> {
    spec: &'a Spec,
    values: Vec<(&'a str, &'a Value)>,
}

/// Reads `arguments` against the schema of `spec`. `synonyms` are pairs of another name that can
/// mean only one thing for this tool and the name it stands for.
///
/// Errors: a name that is none of the tool's, or one that is given twice.
pub fn read<'a>(
    spec: &'a Spec,
    arguments: &'a Arguments,
    synonyms: &[(&str, &'a str)],
) -> Result<Given<'a>, String> {
    let mut given = Given { spec, values: Vec::new() };
    for (typed, value) in arguments.iter().filter(|(_, value)| !value.is_null()) {
        let meant = spec.arguments.iter().find(|name| alike(name, typed)).copied().or_else(|| {
            let pair = synonyms.iter().find(|(other, _)| alike(other, typed));
            pair.map(|(_, name)| *name)
        });
        match meant {
            None if *value == Value::Bool(false) => {}
            None => return Err(given.complaint(&unknown(typed, spec.arguments))),
            Some(name) if given.value(name).is_some() => {
                return Err(given.complaint(&format!("got the argument \"{name}\" twice")));
            }
            Some(name) => given.values.push((name, value)),
        }
    }
    Ok(given)
}

impl<'a> Given<'a> {
    /// A text that must be there.
    pub fn text(&self, name: &str) -> Result<&'a str, String> {
        self.optional_text(name)?.ok_or_else(|| self.complaint(&format!("needs \"{name}\"")))
    }

    /// A text, if it was given.
    pub fn optional_text(&self, name: &str) -> Result<Option<&'a str>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_type(name, "a string", other)),
        }
    }

    /// One of the values that the schema lists, if it was given, in whatever case and with whatever
    /// hyphens.
    pub fn optional_choice(&self, name: &str) -> Result<Option<String>, String> {
        let Some(typed) = self.optional_text(name)?.filter(|typed| !typed.trim().is_empty()) else {
            return Ok(None);
        };
        let schema: Value = serde_json::from_str(self.spec.schema).unwrap_or_default();
        let listed = schema::listed(&schema["properties"][name], Value::from(typed), name);
        let listed = listed.map_err(|problem| self.complaint(&problem))?;
        Ok(listed.as_str().map(str::to_owned))
    }

    /// A whole number that must be there.
    pub fn integer(&self, name: &str) -> Result<i64, String> {
        self.optional_integer(name)?.ok_or_else(|| self.complaint(&format!("needs \"{name}\"")))
    }

    /// A whole number, if it was given: as a number or as its text, `10.0` too.
    pub fn optional_integer(&self, name: &str) -> Result<Option<i64>, String> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = match value {
            Value::Number(number) => number.as_i64().or_else(|| number.as_f64().and_then(whole)),
            // Models fill in what is optional with empty texts.
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| text.parse().ok().and_then(whole))
            }
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.wrong_type(name, "a whole number", value))
    }

    /// A yes or no, which is no unless it was given: as a boolean or as its text.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.optional_flag(name)?.unwrap_or(false))
    }

    /// A yes or no, if it was given.
    pub fn optional_flag(&self, name: &str) -> Result<Option<bool>, String> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(other) => Err(self.wrong_type(name, "true or false", other)),
        }
    }

    /// An error about these arguments: `problem` continues the tool's name, the schema follows.
    pub fn complaint(&self, problem: &str) -> String {
        complaint(self.spec, problem)
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        self.values.iter().find(|(given, _)| *given == name).map(|(_, value)| *value)
    }

    fn wrong_type(&self, name: &str, wanted: &str, value: &Value) -> String {
        self.complaint(&format!("takes {wanted} as \"{name}\", not {}", shown(value)))
    }
}

/// An error about the arguments of a tool: `problem` continues the tool's name, the schema follows.
pub fn complaint(spec: &Spec, problem: &str) -> String {
    let Spec { name, schema, .. } = spec;
    let most = schema.len().min(MOST_SCHEMA_BYTES);
    let end = (0..=most).rev().find(|at| schema.is_char_boundary(*at)).unwrap_or_default();
    let cut = if end < schema.len() { "… (the rest is as in the list of tools)" } else { "" };
    format!("{name} {problem}; the schema of its arguments is {}{cut}", &schema[..end])
}

/// A value as an error names it.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) if text.len() > 100 => "a long text".to_owned(),
        other => other.to_string(),
    }
}

/// The problem with a name that is none of `names`.
fn unknown(typed: &str, names: &[&str]) -> String {
    let near = nearest::names(typed, names.iter().copied());
    let typed = quotes::shortened(typed);
    match near.first() {
        Some(near) => format!("has no argument \"{typed}\" (did you mean \"{near}\"?)"),
        None => format!("has no argument \"{typed}\""),
    }
}

/// Whether two names differ in nothing but what models vary: case, underscores, hyphens.
pub fn alike(one: &str, other: &str) -> bool {
    // Longer than any name is. A name is compared with many, and one of a megabyte took seconds.
    const MOST_BYTES: usize = 1000;
    fn letters(name: &str) -> impl Iterator<Item = char> {
        name.chars().filter(|it| !matches!(it, '_' | '-')).flat_map(char::to_lowercase)
    }
    one == other || (one.len().max(other.len()) <= MOST_BYTES && letters(one).eq(letters(other)))
}

/// The integer that a float stands for, if it stands for one exactly.
pub fn whole(number: f64) -> Option<i64> {
    // Above 2^53 a float no longer tells neighbouring integers apart.
    let exact = number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0;
    exact.then_some(number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;
    use serde_json::json;

    const SPEC: Spec = Spec {
        name: "Paint",
        description: "Paints.",
        arguments: &["file_path", "coats", "is_wet"],
        schema: r#"{"type":"object","properties":{"file_path":{},"coats":{},"is_wet":{}}}"#,
    };

    fn arguments(value: Value) -> Arguments {
        value.as_object().expect("an object").clone()
    }

    fn integer(value: Value) -> Result<Option<i64>, String> {
        let arguments = arguments(json!({ "coats": value }));
        read(&SPEC, &arguments, &[])?.optional_integer("coats")
    }

    fn flag(value: Value) -> Result<bool, String> {
        let arguments = arguments(json!({ "is_wet": value }));
        read(&SPEC, &arguments, &[])?.flag("is_wet")
    }

    fn with_schema(problem: &str) -> String {
        format!("Paint {problem}; the schema of its arguments is {}", SPEC.schema)
    }

    #[test]
    fn names_are_known_in_any_spelling_and_by_their_synonyms() {
        for name in ["file_path", "filePath", "FILE-PATH", "filepath", "path", "Path"] {
            let arguments = arguments(json!({ name: "a.txt" }));
            let given = read(&SPEC, &arguments, &[("path", "file_path")]).unwrap();
            assert_eq!(given.text("file_path"), Ok("a.txt"), "{name}");
        }
    }

    #[test]
    fn an_unknown_name_is_an_error_that_states_the_schema() {
        let arguments = arguments(json!({ "file_path": "a", "colour": "red" }));
        let error = read(&SPEC, &arguments, &[]).err().unwrap();
        assert_eq!(error, with_schema("has no argument \"colour\""));
    }

    #[test]
    fn a_name_given_twice_is_an_error() {
        let arguments = arguments(json!({ "file_path": "a", "path": "b" }));
        let error = read(&SPEC, &arguments, &[("path", "file_path")]).err().unwrap();
        assert_eq!(error, with_schema("got the argument \"file_path\" twice"));
    }

    #[test]
    fn null_and_an_unknown_false_count_as_not_given() {
        let arguments = arguments(json!({ "coats": null, "colour": null, "in_background": false }));
        let given = read(&SPEC, &arguments, &[]).unwrap();
        assert_eq!(given.optional_integer("coats"), Ok(None));
        assert_eq!(given.flag("is_wet"), Ok(false));
        assert_eq!(given.text("file_path"), Err(with_schema("needs \"file_path\"")));
        assert_eq!(given.integer("coats"), Err(with_schema("needs \"coats\"")));
    }

    #[test]
    fn whole_numbers_come_as_numbers_floats_or_texts() {
        for value in [json!(10), json!(10.0), json!("10"), json!(" 10 "), json!("10.0"), json!("1e1")] {
            assert_eq!(integer(value.clone()), Ok(Some(10)), "{value}");
        }
        assert_eq!(integer(json!(-3)), Ok(Some(-3)));
        assert_eq!(integer(json!(i64::MAX)), Ok(Some(i64::MAX)));
    }

    #[test]
    fn anything_else_is_not_a_whole_number() {
        let cases = [
            (json!(1.5), "1.5"),
            (json!("1.5"), "\"1.5\""),
            (json!("ten"), "\"ten\""),
            (json!("NaN"), "\"NaN\""),
            (json!("inf"), "\"inf\""),
            (json!(u64::MAX), "18446744073709551615"),
            (json!(1e300), "1e+300"),
            (json!(true), "true"),
            (json!([1]), "an array"),
            (json!({}), "an object"),
            (json!("x".repeat(200)), "a long text"),
        ];
        for (value, shown) in cases {
            let error = with_schema(&format!("takes a whole number as \"coats\", not {shown}"));
            assert_eq!(integer(value), Err(error));
        }
    }

    #[test]
    fn flags_come_as_booleans_or_texts() {
        assert_eq!(flag(json!(true)), Ok(true));
        assert_eq!(flag(json!("True")), Ok(true));
        assert_eq!(flag(json!("false")), Ok(false));
        let error = with_schema("takes true or false as \"is_wet\", not 1");
        assert_eq!(flag(json!(1)), Err(error));
    }

    #[test]
    fn a_text_is_a_string_and_nothing_else() {
        let arguments = arguments(json!({ "file_path": 5 }));
        let given = read(&SPEC, &arguments, &[]).unwrap();
        let error = with_schema("takes a string as \"file_path\", not 5");
        assert_eq!(given.text("file_path"), Err(error));
    }

    #[test]
    fn every_schema_is_compact_and_describes_what_it_requires() {
        let mut bytes = 0;
        for spec in tools::all() {
            let schema: Value = serde_json::from_str(spec.schema).unwrap();
            assert_eq!(schema.to_string(), spec.schema, "{} is not compact", spec.name);
            assert_eq!(schema["type"], "object");
            let names: Vec<&str> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(names, spec.arguments, "{}", spec.name);
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["type"].is_string(), "{} {name}", spec.name);
                assert!(property["description"].is_string(), "{} {name}", spec.name);
            }
            for name in schema["required"].as_array().unwrap() {
                assert!(schema["properties"].get(name.as_str().unwrap()).is_some(), "{name}");
            }
            bytes += spec.description.len() + spec.schema.len();
        }
        assert!(bytes < 7000, "{bytes} bytes of descriptions and schemas");
    }
}
