//! The model of a server that has only one.

use crate::error::Error;
use crate::http::{self, Http};
use crate::provider::errors::Verdict;
use crate::provider::{self, ApiError, window};

/// The model of a server that has only one, and how many tokens it reads if the server says it.
pub(super) fn only_model(
    client: &mut Http,
    url: &str,
    headers: &[(String, String)],
) -> Result<(String, Option<u64>), Error> {
    let unnamed = |why: &str| Error::Usage(format!("no model: pass --model or set COTTER_MODEL ({why})"));
    let (status, body) = client.get(url, headers).map_err(|failure| failure.error())?;
    let models = provider::parse(&String::from_utf8_lossy(&body)).ok();
    let list = models.as_ref().and_then(|value| value["data"].as_array().or(value.as_array()));
    match list.map(Vec::as_slice) {
        Some([only]) if status == 200 => match only["id"].as_str() {
            Some(id) => Ok((id.to_owned(), models.as_ref().and_then(|list| window::of_list(list, id)))),
            None => Err(unnamed("the server's list of models has no id")),
        },
        Some(models) if status == 200 => {
            let names: Vec<&str> = models.iter().filter_map(|model| model["id"].as_str()).take(10).collect();
            if names.is_empty() {
                return Err(unnamed("the server has none"));
            }
            Err(unnamed(&format!("the server has {} models: {}", models.len(), names.join(", "))))
        }
        _ => {
            let error = ApiError::from_response(status, "", &body);
            match error.verdict() {
                Verdict::Credentials | Verdict::Wait | Verdict::Exhausted => {
                    Err(http::error_of_api(&error, url, Some(headers)))
                }
                _ => Err(unnamed(&format!("the server does not list its models: HTTP {status}"))),
            }
        }
    }
}
