//! Requests to the worker: how one to run a program is made, and how any of them is answered there.
//!
//! What comes of a request is hostile input to whoever made it. Those for built-in tools are made by
//! [`super::toolbox`].

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::background::Background;
use super::program::Program;
use super::{Arguments, Outcome, Surroundings, Workspace, execute};
use crate::alarm::Alarm;
use crate::conversation::Image;

/// The worker's side: runs one request, made by [`super::toolbox::Toolbox`], and gives its answer.
pub fn serve(request: &str, background: &mut Background) -> String {
    let outcome = match (serde_json::from_str::<Value>(request), std::env::current_dir()) {
        (Ok(request), Ok(root)) if request["program"].is_array() => run_program(&request, &root, background),
        (Ok(request), Ok(root)) => {
            let nothing = Arguments::new();
            background.count_from(request["shells"].as_u64().unwrap_or(0));
            let mut surroundings = Surroundings {
                workspace: &Workspace {
                    root,
                    private: request["private"].as_str().map(PathBuf::from),
                    places: Vec::new(),
                },
                may_read: &|_| false,
                now: jiff::Timestamp::UNIX_EPOCH,
                shell: Path::new(request["shell"].as_str().unwrap_or_default()),
                background,
                rates_url: "",
                fetch: &mut |_| Err("tools that run here do not use the network".to_owned()),
                // What runs here is ended by its own time, or with this process.
                alarm: &Alarm::default(),
            };
            let arguments = request["arguments"].as_object().unwrap_or(&nothing);
            execute(request["name"].as_str().unwrap_or_default(), arguments, &mut surroundings)
        }
        (_, Err(error)) => Outcome::error(format!("the current folder is gone: {error}")),
        (Err(error), _) => Outcome::error(format!("the request cannot be read: {error}")),
    };
    let mut answer = json!({"text": outcome.text, "is_error": outcome.is_error});
    if !outcome.images.is_empty() {
        answer["images"] = outcome.images.iter().map(Image::to_json).collect();
    }
    answer.to_string()
}

/// A request to run a program: with these arguments, or where there are none to describe itself. The path is told
/// as bytes, because it need not be text.
pub fn program_request(file: &Path, timeout: Duration, arguments: &Value) -> Value {
    let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    json!({"program": file.as_os_str().as_bytes(), "timeout_ms": milliseconds, "arguments": arguments})
}

/// Runs what [`program_request`] asks for.
fn run_program(request: &Value, folder: &Path, background: &mut Background) -> Outcome {
    let path = request["program"].as_array().into_iter().flatten();
    let path: Vec<u8> = path.filter_map(|byte| byte.as_u64()?.try_into().ok()).collect();
    let program = Program {
        file: Path::new(OsStr::from_bytes(&path)),
        folder,
        timeout: Duration::from_millis(request["timeout_ms"].as_u64().unwrap_or_default()),
    };
    match &request["arguments"] {
        Value::Null => program.description(background),
        arguments => program.call(arguments, background),
    }
}
