//! Calls that a model printed as text.

use crate::provider::text_calls::{calls, may_become_calls};
use crate::tools::{self, Spec, schema};

/// The text of a reply.
pub fn run(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let offered: Vec<&Spec> = tools::all().iter().collect();
    let calls = calls(text, &offered);
    for call in &calls {
        let spec = offered.iter().find(|spec| spec.name == call.name).expect("the tool is on offer");
        let (schema, arguments) = (serde_json::from_str(spec.schema), serde_json::from_str(&call.arguments));
        let (schema, arguments) = (schema.expect("a schema"), arguments.expect("arguments are an object"));
        assert!(schema::fit(&schema, &arguments).is_ok(), "{:?} do not fit", call.arguments);
        assert_eq!(call.refusal, None);
    }
    // What streams as text cannot become calls at its end.
    if !calls.is_empty() {
        for end in (0..=text.len().min(400)).filter(|end| text.is_char_boundary(*end)) {
            assert!(may_become_calls(&text[..end]), "{:?} is shown, and becomes calls", &text[..end]);
        }
    }
}
