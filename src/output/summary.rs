//! How a turn of the user's ended: the one place that says it. What is printed of it is made in `events.rs`.

use serde_json::Value;

use crate::budget::ModelSpending;
use crate::cost::Cost;
use crate::provider::Usage;
use crate::tools::toolbox::Denied;

/// How a turn ended, or how it stood when it failed.
#[derive(Default)]
pub struct Summary {
    /// The answer, or what there was of it.
    pub text: String,
    /// How many replies the model gave.
    pub turns: u32,
    /// The tokens of all requests of the turn.
    pub usage: Usage,
    /// What each model took in the whole run, in the order in which they were asked.
    pub models: Vec<ModelSpending>,
    /// How long the turn took.
    pub duration_ms: u128,
    /// How much of the run went by with requests and waiting for the next attempt.
    pub duration_api_ms: u128,
    /// The session's id, a UUID.
    pub session_id: String,
    /// Whether there is a session file that holds a reply of this run.
    pub is_kept: bool,
    /// The calls of the turn that were not allowed to run.
    pub denied: Vec<Denied>,
    /// Why the last reply ended, in the words of the Messages API; absent if there was none.
    pub stop_reason: Option<&'static str>,
    /// What the whole run cost; absent where that is not known, which is never 0.
    pub total_cost_usd: Option<Cost>,
    /// The answer as the value that a schema asked for.
    pub structured_output: Option<Value>,
    /// The HTTP status with which the last request failed.
    pub api_error_status: Option<u16>,
}
