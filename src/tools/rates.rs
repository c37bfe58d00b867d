//! `get_exchange_rate`: what one unit of a currency costs in roubles, from the rates service.
//!
//! Nothing but three checked letters ever becomes part of the address, so a call can carry nothing
//! out. The rate is passed on in the service's own digits.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::tools::{Arguments, Outcome, Spec, arguments, slips};

/// What the model is told of `get_exchange_rate`.
pub const SPEC: Spec = Spec {
    name: "get_exchange_rate",
    description: "Returns how many Russian roubles (RUB) one unit of a currency costs now. \
        Use it for exchange rates, conversions and prices in roubles.",
    arguments: &["currency"],
    schema: r#"{"type":"object","properties":{"currency":{"type":"string","description":"ISO 4217 code of three letters: USD, EUR, GBP"}},"required":["currency"]}"#,
};

/// What came of asking for a URL: the status and the body, or why there is no answer.
pub type Fetched = Result<(u16, Vec<u8>), String>;

/// What the model is told where there is no answer.
const UNREACHABLE: &str = "the rates service cannot be reached: no answer came back; try again later, or say that the rate is not known";

/// Asks the service at `base_url` through `fetch`.
pub fn run(arguments: &Arguments, base_url: &str, fetch: &mut dyn FnMut(&str) -> Fetched) -> Outcome {
    match rate(arguments, base_url, fetch) {
        Ok(text) => Outcome::ok(text),
        Err(problem) => Outcome::error(serde_json::json!({ "error": problem }).to_string()),
    }
}

fn rate(
    arguments: &Arguments,
    base_url: &str,
    fetch: &mut dyn FnMut(&str) -> Fetched,
) -> Result<String, String> {
    let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?;
    let typed = given.text("currency")?.trim();
    if typed.len() != 3 || !typed.bytes().all(|it| it.is_ascii_alphabetic()) {
        let problem = "a currency is its ISO 4217 code of three letters, such as USD, EUR or GBP";
        return Err(format!("{problem}, not {typed:?}"));
    }
    let currency = typed.to_ascii_uppercase();
    let url = format!("{}/{currency}", base_url.trim_end_matches('/'));
    // The reason is not for the model: it can name the proxy, which is an address in somebody's network.
    let (status, body) = fetch(&url).map_err(|_| UNREACHABLE)?;
    let rate = roubles(&currency, status, &body)?;
    Ok(format!(r#"{{"currency":"{currency}","rate_to_rub":{rate}}}"#))
}

/// The rate in an answer of the service, as the text of a JSON number.
fn roubles(currency: &str, status: u16, body: &[u8]) -> Result<String, String> {
    let unknown =
        || format!("the rates service does not know the currency {currency}; check its ISO 4217 code");
    let answer: Option<BTreeMap<String, Box<RawValue>>> = serde_json::from_slice(body).ok();
    if let Some(refusal) = answer.as_ref().and_then(refusal) {
        // A refusal names its reason: a spent quota is not the currency's fault.
        return match refusal.as_str() {
            "" | "unsupported-code" | "malformed-request" => Err(unknown()),
            reason => Err(format!("the rates service failed with {reason:?}; try again later")),
        };
    }
    match status {
        200..=299 => {}
        404 => return Err(unknown()),
        _ => return Err(format!("the rates service failed with status {status}; try again later")),
    }
    let answer = answer.ok_or("the rates service answered with something that is not a JSON object")?;
    let rates: BTreeMap<String, Box<RawValue>> = answer
        .get("rates")
        .and_then(|rates| serde_json::from_str(rates.get()).ok())
        .ok_or("the answer of the rates service has no \"rates\"")?;
    let rate = rates.get("RUB").map(|rate| rate.get()).unwrap_or_default();
    // The text of any other number is short; a very long one is the service gone wrong.
    match serde_json::from_str(rate) {
        Ok(Value::Number(_)) if rate.len() <= 40 => Ok(rate.to_owned()),
        _ => Err(format!("the rates service has no rate of {currency} to RUB")),
    }
}

/// The reason of an answer that says it is an error, empty if it gives none.
fn refusal(answer: &BTreeMap<String, Box<RawValue>>) -> Option<String> {
    let text = |name: &str| -> Option<String> { serde_json::from_str(answer.get(name)?.get()).ok() };
    let failed = text("result").is_some_and(|result| result == "error");
    failed.then(|| text("error-type").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Runs a call against a service that always gives the same answer; returns the URLs asked too.
    fn call(currency: Value, status: u16, body: &str) -> (Outcome, Vec<String>) {
        let mut urls = Vec::new();
        let arguments = json!({ "currency": currency }).as_object().unwrap().clone();
        let outcome = run(&arguments, "http://127.0.0.1:1/v4/latest", &mut |url| {
            urls.push(url.to_owned());
            Ok((status, body.as_bytes().to_vec()))
        });
        (outcome, urls)
    }

    fn error(text: &str) -> Outcome {
        Outcome::error(json!({ "error": text }).to_string())
    }

    #[test]
    fn the_rate_is_the_services_own_number() {
        let (outcome, urls) = call(json!("EUR"), 200, r#"{"base":"EUR","rates":{"USD":1.1,"RUB":100.1}}"#);
        assert_eq!(outcome, Outcome::ok(r#"{"currency":"EUR","rate_to_rub":100.1}"#));
        assert_eq!(urls, ["http://127.0.0.1:1/v4/latest/EUR"]);
    }

    #[test]
    fn digits_are_kept_as_written() {
        for number in ["1.10", "1e2", "92", "0.123456789012345678901"] {
            let (outcome, _) = call(json!("USD"), 200, &format!(r#"{{"rates":{{"RUB": {number} }}}}"#));
            let text = format!(r#"{{"currency":"USD","rate_to_rub":{number}}}"#);
            assert_eq!(outcome, Outcome::ok(text));
        }
    }

    #[test]
    fn small_letters_and_spaces_around_the_code_are_accepted() {
        let (outcome, urls) = call(json!(" eur "), 200, r#"{"rates":{"RUB":1}}"#);
        assert_eq!(outcome, Outcome::ok(r#"{"currency":"EUR","rate_to_rub":1}"#));
        assert_eq!(urls, ["http://127.0.0.1:1/v4/latest/EUR"]);
    }

    #[test]
    fn a_slash_at_the_end_of_the_base_url_is_not_doubled() {
        let arguments = json!({ "currency": "EUR" }).as_object().unwrap().clone();
        let mut asked = String::new();
        run(&arguments, "http://127.0.0.1:1/", &mut |url| {
            asked = url.to_owned();
            Err("refused".to_owned())
        });
        assert_eq!(asked, "http://127.0.0.1:1/EUR");
    }

    #[test]
    fn nothing_but_three_letters_reaches_the_service() {
        for currency in ["", "EU", "EURO", "../", "€", "евр", "E/R", "a?b", "E\nR"] {
            let (outcome, urls) = call(json!(currency), 200, r#"{"rates":{"RUB":1}}"#);
            let text = format!(
                "a currency is its ISO 4217 code of three letters, such as USD, EUR or GBP, not {currency:?}"
            );
            assert_eq!(outcome, error(&text));
            assert!(urls.is_empty());
        }
        let (outcome, urls) = call(json!(7), 200, "");
        assert!(
            outcome.is_error && outcome.text.starts_with(r#"{"error":"get_exchange_rate takes a string"#)
        );
        assert!(urls.is_empty());
    }

    #[test]
    fn an_unknown_currency_is_said_to_be_unknown() {
        let text = "the rates service does not know the currency XXX; check its ISO 4217 code";
        for (status, body) in [
            (404, "Not Found"),
            (404, r#"{"result":"error","error_type":"unsupported_code"}"#),
            (200, r#"{"result":"error","error-type":"unsupported-code"}"#),
            (200, r#"{"result":"error"}"#),
        ] {
            assert_eq!(call(json!("XXX"), status, body).0, error(text), "{status} {body}");
        }
    }

    #[test]
    fn a_failing_service_is_not_the_currencys_fault() {
        let (outcome, _) = call(json!("EUR"), 503, "down");
        assert_eq!(outcome, error("the rates service failed with status 503; try again later"));
        let (outcome, _) = call(json!("EUR"), 429, r#"{"result":"error","error-type":"quota-reached"}"#);
        assert_eq!(outcome, error("the rates service failed with \"quota-reached\"; try again later"));
        let arguments = json!({ "currency": "EUR" }).as_object().unwrap().clone();
        let refused = "could not connect to 127.0.0.1:1 through the proxy 10.0.0.1:3128: connection refused";
        let outcome = run(&arguments, "http://127.0.0.1:1", &mut |_| Err(refused.to_owned()));
        let text = "the rates service cannot be reached: no answer came back; try again later, \
                    or say that the rate is not known";
        assert_eq!(outcome, error(text));
    }

    #[test]
    fn an_odd_answer_is_an_error_that_names_what_is_missing() {
        let cases = [
            ("<html>", "the rates service answered with something that is not a JSON object"),
            ("[1]", "the rates service answered with something that is not a JSON object"),
            ("{}", "the answer of the rates service has no \"rates\""),
            (r#"{"rates":[]}"#, "the answer of the rates service has no \"rates\""),
            (r#"{"rates":{"USD":1}}"#, "the rates service has no rate of EUR to RUB"),
            (r#"{"rates":{"RUB":"1"}}"#, "the rates service has no rate of EUR to RUB"),
            (r#"{"rates":{"RUB":null}}"#, "the rates service has no rate of EUR to RUB"),
        ];
        for (body, text) in cases {
            assert_eq!(call(json!("EUR"), 200, body).0, error(text), "{body}");
        }
    }
}
