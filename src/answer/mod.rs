//! The final answer of a run that has a schema for it: what counts as one, how often it is asked for, and what
//! the model is told of one that does not.
//!
//! Pure. An answer is checked here and nowhere else before anybody sees it, whatever the server promised.

use serde_json::Value;

use schema::Schema;

mod check;
mod formats;
mod numbers;
pub mod schema;
mod text;

/// The tool that takes the answer where the server knows no such format, named as `claude` names it.
pub const TOOL: &str = "StructuredOutput";

/// What the model reads of that tool.
pub const DESCRIPTION: &str = "Gives the final answer. When the work is done, call this once: the arguments are the answer. Text of the final message is not read, so an answer given as text is lost.";

/// What the system prompt says of it, against what else it may say of the last message.
pub const INSTRUCTION: &str =
    "Give the answer itself by calling StructuredOutput when the work is done, not as text.";

/// How many answers that do not fit end the run, as with `claude`.
const MOST_ATTEMPTS: u32 = 5;

/// The answer of a run, or the way there.
pub struct FinalAnswer {
    schema: Schema,
    attempts: u32,
    found: Option<Found>,
    /// Why the last attempt was none.
    problems: Vec<String>,
}

/// An answer that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Its text as the model wrote it, without blanks between its parts.
    pub text: String,
    /// What it says.
    pub value: Value,
}

impl FinalAnswer {
    /// An answer that is yet to come.
    pub fn new(schema: Schema) -> FinalAnswer {
        FinalAnswer { schema, attempts: 0, found: None, problems: Vec::new() }
    }

    /// What the answer has to fit.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Forgets the answer and the attempts of an earlier prompt.
    pub fn begin(&mut self) {
        (self.attempts, self.found) = (0, None);
        self.problems.clear();
    }

    /// The answer, once there is one.
    pub fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }

    /// Takes the text of an answer, or of a call's arguments. The first that fits is the answer.
    ///
    /// Errors: what is wrong with it, as the model reads it.
    pub fn take(&mut self, text: &str) -> Result<(), String> {
        if self.found.is_some() {
            return Err(format!("not taken: an earlier call of {TOOL} gave the answer already"));
        }
        let problems = match text::read(text) {
            Ok(found) => match check::problems(self.schema.root(), &found.value) {
                problems if problems.is_empty() => {
                    self.found = Some(found);
                    return Ok(());
                }
                problems => problems,
            },
            Err(problem) => vec![problem],
        };
        self.attempts += 1;
        let list: String = problems.iter().map(|problem| format!("\n- {problem}")).collect();
        self.problems = problems;
        Err(format!(
            "The answer does not fit its schema:{list}\nGive the whole answer again by calling {TOOL}."
        ))
    }

    /// Why the run ends without an answer; absent as long as another attempt is left.
    pub fn failure(&self) -> Option<String> {
        (self.attempts >= MOST_ATTEMPTS && self.found.is_none()).then(|| {
            format!(
                "the answer does not fit --json-schema after {MOST_ATTEMPTS} attempts: {}: simplify the schema or choose another --model",
                self.problems.join("; ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> FinalAnswer {
        let text = r#"{"type":"object","properties":{"year":{"type":"integer"}},"required":["year"]}"#;
        FinalAnswer::new(schema::read(text).unwrap())
    }

    #[test]
    fn the_first_that_fits_is_the_answer() {
        let mut answer = answer();
        let told = answer.take(r#"{"year": "soon"}"#).unwrap_err();
        assert_eq!(
            told,
            "The answer does not fit its schema:\n- \"/year\" must be a whole number, not \"soon\"\nGive the whole answer again by calling StructuredOutput."
        );
        answer.take(r#"{"year": 1932}"#).unwrap();
        assert_eq!(
            answer.take(r#"{"year": 1933}"#).unwrap_err(),
            "not taken: an earlier call of StructuredOutput gave the answer already"
        );
        assert_eq!(answer.found().map(|found| found.text.as_str()), Some(r#"{"year":1932}"#));
        assert_eq!(answer.failure(), None);
        answer.begin();
        assert_eq!(answer.found(), None);
        answer.take(r#"{"year": 1933}"#).unwrap();
    }

    #[test]
    fn the_fifth_that_does_not_fit_ends_the_run() {
        let mut answer = answer();
        for _ in 0..4 {
            answer.take("In 1932.").unwrap_err();
            assert_eq!(answer.failure(), None);
        }
        answer.take("{}").unwrap_err();
        assert_eq!(
            answer.failure().as_deref(),
            Some(
                "the answer does not fit --json-schema after 5 attempts: the answer lacks \"year\": simplify the schema or choose another --model"
            )
        );
    }
}
