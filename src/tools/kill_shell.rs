//! KillShell: ends a background shell with all it has started.

use super::background::Background;
use super::{Arguments, Outcome, Spec, arguments, slips};

/// What the model is told of this tool.
pub const SPEC: Spec = Spec {
    name: "KillShell",
    description: "Ends a background shell and everything it started.",
    arguments: &["shell_id"],
    schema: r#"{"type":"object","properties":{"shell_id":{"type":"string","description":"The shell's id, such as bash_1."}},"required":["shell_id"]}"#,
};

/// Runs a call.
pub fn run(arguments: &Arguments, background: &mut Background) -> Outcome {
    let killed = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))
        .and_then(|given| Ok(background.kill(given.text("shell_id")?)));
    killed.unwrap_or_else(Outcome::error)
}
