//! The texts made from the table of flags for a person: the help and the manual page.

use super::flags::{FLAGS, Flag, SANDBOX_FLAGS, groups};

const SUMMARY: &str = "A coding agent for the shell: it lets a language model read, write, edit and run things until the work is
done, and prints the answer. The answer goes to stdout, everything else to stderr; the exit code says how
the run ended.";

const EXAMPLES: &str = "  cotter -p \"What does main.rs do?\"
  git diff | cotter -p \"Write a commit message for this\" --tools \"\"
  cotter -p \"Make the tests pass\" --max-turns 30 -o report.md";

/// The text of `--help`.
pub fn help() -> String {
    let mut help = format!(
        "{SUMMARY}\n\nUsage: cotter [OPTIONS] [PROMPT]\n       cotter sandbox [OPTIONS] [--] CMD [ARG...]\n\nExamples:\n{EXAMPLES}\n"
    );
    for group in groups() {
        help.push_str(&format!("\n{group}:\n"));
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            help.push_str(&help_line(flag));
        }
    }
    help.push_str(
        "\nKeys: OPENROUTER_API_KEY, ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY; a server of your own\n\
         needs only --base-url. COTTER_CONFIG names a file of default flags, one argument a line.\n\
         The manual, with the exit codes: cotter --man | man -l -\n",
    );
    help
}

fn help_line(flag: &Flag) -> String {
    let indent = if flag.short.is_empty() { "      " } else { "  " };
    let left = format!("{indent}{}", flag.spellings());
    match left.len() < 34 {
        true => format!("{left:<34}{}\n", flag.help),
        false => format!("{left}\n{:<34}{}\n", "", flag.help),
    }
}

const SANDBOX_SUMMARY: &str = "Runs CMD in the containment that tools get: it writes only in the current folder, in the folders added and in
a temporary folder of its own (TMPDIR), reaches no network and is given no credential from the environment.";

const SANDBOX_NOTES: &str = "Standard input, output and error are CMD's own. It has no controlling terminal: a terminal can be read and
written, but there is no job control, and Ctrl-C ends cotter with all that CMD has started. Nothing that CMD
leaves running outlives it. The exit status is CMD's, or that of the signal that ended it; 2 for a wrong flag,
10 if CMD cannot be contained here, 126 if it cannot be run, 127 if it is not found.";

/// The text of `cotter sandbox --help`.
pub fn sandbox_help() -> String {
    let mut help = format!("{SANDBOX_SUMMARY}\n\nUsage: cotter sandbox [OPTIONS] [--] CMD [ARG...]\n\n");
    for flag in FLAGS.iter().filter(|flag| SANDBOX_FLAGS.contains(&flag.long)) {
        help.push_str(&help_line(flag));
    }
    help.push_str(&format!("\n{SANDBOX_NOTES}\n"));
    help
}

/// The manual page, in the man macros.
pub fn man_page() -> String {
    // ASCII alone: not every formatter is told the encoding.
    let escape =
        |text: &str| text.replace('\\', "\\e").replace('-', "\\-").replace('`', "").replace('…', "...");
    let mut page = format!(
        ".TH COTTER 1 \"\" \"cotter {}\"\n.SH NAME\ncotter \\- a coding agent for the shell\n.SH SYNOPSIS\n.nf\n\\fBcotter\\fR [OPTIONS] [PROMPT]\n\\fBcotter sandbox\\fR [OPTIONS] [\\-\\-] CMD [ARG...]\n.fi\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n",
        env!("CARGO_PKG_VERSION"),
        escape(SUMMARY)
    );
    for group in groups() {
        page.push_str(&format!(".SS {group}\n"));
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            page.push_str(&format!(".TP\n.B {}\n{}\n", escape(&flag.spellings()), escape(flag.help)));
        }
    }
    page.push_str(".SH EXIT STATUS\n");
    for (code, meaning) in crate::error::EXIT_CODES {
        page.push_str(&format!(".TP\n.B {code}\n{}\n", escape(meaning)));
    }
    page.push_str(".SH ENVIRONMENT\n");
    for (name, meaning) in crate::config::VARIABLES {
        page.push_str(&format!(".TP\n.B {name}\n{}\n", escape(meaning)));
    }
    page.push_str(".SH PERMISSIONS\nWhat may run where no rule is about it.\n");
    for (mode, meaning) in crate::sandbox::permissions::table() {
        page.push_str(&format!(".TP\n.B {}\n{}\n", escape(&mode), escape(&meaning)));
    }
    page.push_str(".SH FLAGS OF CLAUDE\nFor scripts that come from there.\n");
    for (names, verdict) in super::claude::table() {
        page.push_str(&format!(".TP\n.B {}\n{}\n", escape(&names), escape(&verdict)));
    }
    page.push_str(&format!(".SH EXAMPLES\n.nf\n{}\n.fi\n", escape(EXAMPLES)));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_fits_a_terminal() {
        for line in help().lines() {
            assert!(line.chars().count() <= 110, "{line}");
        }
    }
}
