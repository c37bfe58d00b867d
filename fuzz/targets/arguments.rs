//! Arguments of built-in tools, as models write them.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::tools::{self, access, arguments, datetime, slips};

/// Whose call it is, and its arguments as JSON.
pub fn run(bytes: &[u8]) {
    let Some([number, text]) = super::texts::<2>(bytes) else { return };
    let Ok(given) = serde_json::from_str::<Map<String, Value>>(text) else { return };
    let number = number.bytes().next().unwrap_or_default();
    let spec = &tools::all()[usize::from(number) % tools::all().len()];
    let mended = slips::mended(spec, given.clone());
    assert_eq!(slips::mended(spec, mended.clone()), mended, "mending again changes nothing");
    let _ = slips::unwrapped(spec, given.clone());
    let _ = access::of(spec.name, &mended);
    match arguments::read(spec, &mended, slips::synonyms(spec.name)) {
        Ok(read) => {
            for name in spec.arguments {
                let _ = (read.text(name), read.optional_integer(name), read.optional_flag(name));
                let _ = read.optional_choice(name);
            }
        }
        Err(what) => assert!(what.len() < 20_000, "{} bytes", what.len()),
    }
    // They quote what they refuse, with escapes; the toolbox cuts that.
    let most_told = 20_000 + 10 * text.len();
    match spec.name {
        "get_current_datetime" => {
            let now = Timestamp::new(1_800_000_000, 0).expect("a time");
            assert!(datetime::run_now(&given, now).text.len() < most_told);
        }
        "add_duration_to_datetime" => assert!(datetime::run_add(&given).text.len() < most_told),
        _ => {}
    }
}
