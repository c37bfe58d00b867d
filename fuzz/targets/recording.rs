//! Recordings: a folder of any content is replayed or refused, and what is recorded is replayed as it was.

use std::borrow::Cow;
use std::fs;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::http::recording::{Recorder, Replay};
use crate::provider::Api;

/// The recorded request, the request of now (empty for the same), and the response's file.
pub fn run(bytes: &[u8]) {
    let [then, now, response] = super::parts::<3>(bytes);
    let folder = super::folder("recording").join("recording");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for a recording");
    fs::write(folder.join("01.request.json"), then).expect("a request");
    fs::write(folder.join("01.response.http"), response).expect("a response");
    replayed(&folder, then, if now.is_empty() { then } else { now }, response);
    if let Ok(Value::Object(_)) = serde_json::from_slice(then) {
        recorded(&folder, then, now, response);
    }
}

fn replayed(folder: &Path, then: &[u8], now: &[u8], response: &[u8]) {
    let Ok(now_value) = serde_json::from_slice::<Value>(now) else { return };
    for strict in [false, true] {
        let mut replay = Replay::open(folder, strict).unwrap_or_else(|error| panic!("{error}"));
        let _ = (replay.origin(), replay.next_window());
        let answered = replay.answer(&[now]);
        if let Err(error) = &answered {
            assert!([2, 9].contains(&error.exit_code()), "{error}");
        }
        let mismatch = answered.as_ref().is_err_and(|error| error.exit_code() == 9);
        let Ok(then) = serde_json::from_slice::<Value>(then) else {
            assert!(answered.is_err() && !mismatch, "a recording that is no JSON is unusable");
            continue;
        };
        // The order of members is a difference too, so the texts are compared.
        let is_same = match strict {
            true => written(&then) == written(&now_value),
            false => said(&then) == said(&now_value),
        };
        assert_eq!(mismatch, !is_same, "{then} and {now_value}");
        if let Ok(mut recorded) = answered {
            assert!((100..1000).contains(&recorded.status));
            let mut body = Vec::new();
            recorded.body.read_to_end(&mut body).expect("the body can be read");
            assert!(response.ends_with(&body), "the body is the end of the file");
            for (name, value) in recorded.headers() {
                assert!(!name.contains(char::is_uppercase) || !name.is_ascii());
                assert!(name.trim() == name && value.trim() == value);
            }
        }
        assert_eq!(
            replay.answer(&[now]).map(|_| ()).map_err(|error| error.exit_code()),
            Err(9),
            "it has ended"
        );
    }
}

fn written(value: &Value) -> String {
    value.to_string()
}

/// The messages but for the system's and for cache marks.
fn said(request: &Value) -> String {
    fn unmarked(value: &Value) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .filter(|(name, _)| *name != "cache_control")
                .map(|(name, value)| (name.clone(), unmarked(value)))
                .collect(),
            Value::Array(items) => items.iter().map(unmarked).collect(),
            other => other.clone(),
        }
    }
    match &request["messages"] {
        Value::Array(messages) => {
            let kept = messages.iter().filter(|message| message["role"] != "system").map(unmarked);
            Value::Array(kept.collect()).to_string()
        }
        other => unmarked(other).to_string(),
    }
}

/// A body is replayed as it was recorded, in whatever pieces it came.
fn recorded(folder: &Path, request: &[u8], header: &[u8], body: &[u8]) {
    let _ = fs::remove_dir_all(folder);
    let mut recorder = Recorder::create(folder, Api::Anthropic, "localhost", Vec::new())
        .unwrap_or_else(|error| panic!("{error}"));
    // A header's value as HTTP lets it come.
    let value: String = header
        .iter()
        .map(|byte| char::from(*byte))
        .filter(|letter| (' '..='~').contains(letter))
        .take(100)
        .collect();
    let headers = [("content-type", Cow::Borrowed(&*value)), ("set-cookie", Cow::Borrowed("secret"))];
    recorder.begin(&[request], 200, headers.into_iter()).unwrap_or_else(|error| panic!("{error}"));
    for piece in super::pieces(body, 7) {
        recorder.body(piece).unwrap_or_else(|error| panic!("{error}"));
    }
    recorder.end().unwrap_or_else(|error| panic!("{error}"));
    let mut replay = Replay::open(folder, true).unwrap_or_else(|error| panic!("{error}"));
    let mut answer = replay.answer(&[request]).unwrap_or_else(|error| panic!("{error}"));
    let mut replayed = Vec::new();
    answer.body.read_to_end(&mut replayed).expect("the body can be read");
    assert_eq!(replayed, body, "the body is what came");
    assert_eq!(answer.status, 200);
    assert_eq!((answer.header("content-type"), answer.header("set-cookie")), (Some(value.trim()), None));
}
