//! `--list-tools`: the tools that a run with the same arguments would offer, as JSON lines. No key is needed, and
//! nothing is asked but the programs that are tools.

use serde_json::{Value, json};

use crate::args::Args;
use crate::config::{self, Environment};
use crate::error::Error;
use crate::output::Output;
use crate::tools;
use crate::tools::toolbox::Toolbox;

/// The list: name, description and schema of each.
///
/// # Errors
///
/// What would keep a run from offering them.
pub fn list(args: &Args, environment: &Environment, output: &mut Output) -> Result<String, Error> {
    Ok(offered(args, environment, output)?.into_iter().map(line).collect())
}

fn offered(
    args: &Args,
    environment: &Environment,
    output: &mut Output,
) -> Result<Vec<&'static tools::Spec>, Error> {
    let (setup, lines) = config::setup_without_api(args, environment)?;
    let permissions = config::permissions(args, environment, &setup.workspace)?;
    let checkout = config::checkout(args, environment, &setup.workspace);
    let mut skills = config::skills(args, environment, checkout.as_ref(), &permissions);
    let offered = config::offered_tools(args, environment, &permissions, &mut skills)?;
    let executables = config::executables(args)?;
    if !executables.found.is_empty() {
        crate::contain(&setup, &lines, output, Error::uncontained)?;
    }
    let mut toolbox = Toolbox::new(offered, setup, None, String::new(), permissions);
    toolbox.add(executables)?;
    Ok(toolbox.offered().to_vec())
}

fn line(spec: &tools::Spec) -> String {
    let schema: Value = serde_json::from_str(spec.schema).expect("a schema is JSON text");
    let line = json!({"name": spec.name, "description": spec.description, "input_schema": schema});
    format!("{line}\n")
}
