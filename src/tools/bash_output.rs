//! BashOutput: what a background shell has printed since the last look, and how it is.

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

use super::background::Background;
use super::{Arguments, Outcome, Spec, arguments, slips};

/// What the model is told of this tool.
pub const SPEC: Spec = Spec {
    name: "BashOutput",
    description: "Returns what a background shell has printed since the last look, and whether it runs or how \
it ended. It does not wait.",
    arguments: &["bash_id", "filter"],
    schema: r#"{"type":"object","properties":{"bash_id":{"type":"string","description":"The shell's id, such as bash_1."},"filter":{"type":"string","description":"A regular expression: lines that do not match are dropped."}},"required":["bash_id"]}"#,
};

/// How much memory a filter may take: a pattern can ask for any amount.
const MAX_FILTER_BYTES: usize = 1 << 20;

/// Runs a call.
pub fn run(arguments: &Arguments, background: &mut Background) -> Outcome {
    let looked = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name)).and_then(|given| {
        let id = given.text("bash_id")?;
        let filter = given.optional_text("filter")?.filter(|pattern| !pattern.is_empty());
        let filter = filter.map(compile).transpose()?;
        Ok(match filter {
            Some(filter) => background.look(id, Some(&|line| is_wanted(&filter, line))),
            None => background.look(id, None),
        })
    });
    looked.unwrap_or_else(Outcome::error)
}

fn compile(pattern: &str) -> Result<RegexMatcher, String> {
    let mut builder = RegexMatcherBuilder::new();
    builder.size_limit(MAX_FILTER_BYTES).dfa_size_limit(MAX_FILTER_BYTES).build(pattern).map_err(|error| {
        format!("\"filter\" is not a regular expression that can be used, and nothing was read: {error}")
    })
}

fn is_wanted(filter: &RegexMatcher, line: &str) -> bool {
    let line = line.strip_suffix('\n').unwrap_or(line);
    // Matching cannot fail for this kind of matcher; a line too many does no harm.
    filter.is_match(line.as_bytes()).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_keeps_the_lines_it_matches() {
        let filter = compile("^error|ü$").unwrap();
        let wanted = |line| is_wanted(&filter, line);
        assert_eq!(
            ["error: x\n", "no error\n", "grün\n", "ü\n", "ü"].map(wanted),
            [true, false, false, true, true]
        );
    }

    #[test]
    fn a_filter_that_cannot_be_used_is_refused() {
        for pattern in ["(", "a{1000}{1000}{1000}", "(?<=a)b"] {
            let error = compile(pattern).unwrap_err();
            assert!(error.starts_with("\"filter\" is not a regular expression that can be used"), "{error}");
        }
    }
}
