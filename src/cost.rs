//! Money: what replies cost, and the prices it is worked out from. Whole numbers all the way, so that sums are
//! exact; no rounding but of a server's figure that has more decimals than a number of a computer holds.

use std::fmt;

use serde_json::Value;

use crate::provider::Usage;

/// How many decimals of a dollar are kept. A price per million tokens has six fewer for each token.
const DECIMALS: usize = 15;

/// An amount of US dollars, in units of 10⁻¹⁵ of one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u128);

impl Cost {
    /// An amount as people write it: digits, with decimals or without.
    pub fn parse(text: &str) -> Option<Cost> {
        units(text, DECIMALS).map(Cost)
    }

    /// An amount as JSON has it; none if it is no amount: negative, not finite, or more than there is money.
    pub fn of_number(number: f64) -> Option<Cost> {
        if !number.is_finite() || number < 0.0 {
            return None;
        }
        // The shortest decimal number that means this one, which is what the server wrote.
        let mut text = number.to_string();
        if let Some(point) = text.find('.') {
            text.truncate(text.len().min(point + 1 + DECIMALS));
        }
        Cost::parse(&text)
    }

    /// The sum with another amount.
    #[must_use]
    pub fn plus(self, other: Cost) -> Cost {
        Cost(self.0.saturating_add(other.0))
    }

    /// The amount as a JSON number.
    pub fn to_json(self) -> Value {
        let digits = self.digits();
        match digits.parse::<u64>() {
            Ok(whole) => Value::from(whole),
            Err(_) => Value::from(digits.parse::<f64>().expect("digits and a point are a number")),
        }
    }

    fn digits(self) -> String {
        let digits = format!("{:0width$}", self.0, width = DECIMALS + 1);
        let (whole, decimals) = digits.split_at(digits.len() - DECIMALS);
        match decimals.trim_end_matches('0') {
            "" => whole.to_owned(),
            decimals => format!("{whole}.{decimals}"),
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${}", self.digits())
    }
}

/// What tokens cost, each kind in units of [`Cost`] for one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    input: u128,
    output: u128,
    cache_read: u128,
    cache_write: u128,
}

impl Price {
    /// A price in thousandths of a dollar per million tokens.
    pub const fn in_mills(input: u16, output: u16, cache_read: u16, cache_write: u16) -> Price {
        const MILL_PER_MILLION: u128 = 10_u128.pow(DECIMALS as u32 - 3 - 6);
        Price {
            input: input as u128 * MILL_PER_MILLION,
            output: output as u128 * MILL_PER_MILLION,
            cache_read: cache_read as u128 * MILL_PER_MILLION,
            cache_write: cache_write as u128 * MILL_PER_MILLION,
        }
    }

    /// `IN,OUT` or `IN,OUT,CACHE_READ,CACHE_WRITE`, in dollars per million tokens. Without the last two, tokens
    /// of the cache cost as much as other input.
    pub fn parse(text: &str) -> Option<Price> {
        let numbers: Option<Vec<u128>> =
            text.split(',').map(|number| units(number.trim(), DECIMALS - 6)).collect();
        match *numbers? {
            [input, output] => Some(Price { input, output, cache_read: input, cache_write: input }),
            [input, output, cache_read, cache_write] => {
                Some(Price { input, output, cache_read, cache_write })
            }
            _ => None,
        }
    }

    /// What so many tokens cost.
    pub fn cost(&self, usage: Usage) -> Cost {
        let part = |tokens: u64, price: u128| Cost(u128::from(tokens).saturating_mul(price));
        part(usage.input, self.input)
            .plus(part(usage.output, self.output))
            .plus(part(usage.cache_read, self.cache_read))
            .plus(part(usage.cache_write, self.cache_write))
    }
}

/// A decimal number as a count of its smallest unit.
fn units(text: &str, decimals: usize) -> Option<u128> {
    // More than anybody has, so that no sum comes near the end of the numbers.
    const MOST_DIGITS: usize = 12;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) || whole.len() > MOST_DIGITS {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > decimals {
        return None;
    }
    format!("{whole}{fraction:0<decimals$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_kept_to_the_last_decimal() {
        for (text, shown) in [
            ("0", "$0"),
            ("1", "$1"),
            ("007.50", "$7.5"),
            ("0.000000000000001", "$0.000000000000001"),
            ("999999999999.1", "$999999999999.1"),
            ("0.10000000000000000000", "$0.1"),
        ] {
            assert_eq!(Cost::parse(text).unwrap().to_string(), shown);
        }
        for text in [
            "",
            ".",
            "1.",
            ".5",
            "-1",
            "+1",
            "1e3",
            "1,5",
            " 1",
            "$1",
            "nan",
            "inf",
            "0x1",
            "１",
            "0.0000000000000001",
            "1000000000000",
        ] {
            assert_eq!(Cost::parse(text), None, "{text}");
        }
    }

    #[test]
    fn sums_are_exact_where_those_of_floating_point_are_not() {
        let tenth = Cost::parse("0.1").unwrap();
        let sum = (0..10).fold(Cost::default(), |sum, _| sum.plus(tenth));
        assert_eq!(sum, Cost::parse("1").unwrap());
        assert_eq!(tenth.plus(Cost::parse("0.2").unwrap()).to_json().to_string(), "0.3");
        assert_eq!(Cost(u128::MAX).plus(tenth), Cost(u128::MAX));
    }

    #[test]
    fn a_number_of_json_is_the_amount_that_was_written() {
        for (text, shown) in [
            ("0.00014", "$0.00014"),
            ("1.23e-05", "$0.0000123"),
            ("3", "$3"),
            ("0", "$0"),
            ("0.012345678901234567", "$0.012345678901234"),
            ("1e-300", "$0"),
        ] {
            assert_eq!(Cost::of_number(text.parse().unwrap()).unwrap().to_string(), shown);
        }
        for number in [-0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e12, f64::MAX] {
            assert_eq!(Cost::of_number(number), None, "{number}");
        }
        assert_eq!(Cost::of_number(1.23e-5).unwrap().to_json().as_f64(), Some(1.23e-5));
    }

    #[test]
    fn a_price_has_two_or_four_numbers() {
        let usage = Usage { input: 1, output: 10, cache_read: 100, cache_write: 1000 };
        let cost = |text: &str| Price::parse(text).map(|price| price.cost(usage).to_string());
        assert_eq!(cost("1,5").as_deref(), Some("$0.001151"));
        assert_eq!(cost("1,5,0.1,1.25").as_deref(), Some("$0.001311"));
        assert_eq!(cost(" 1 , 5 ").as_deref(), Some("$0.001151"));
        assert_eq!(cost("0,0").as_deref(), Some("$0"));
        assert_eq!(cost("0.000000001,0").as_deref(), Some("$0.000000000001101"));
        assert_eq!(Price::parse("1,5,0.1,1.25"), Some(Price::in_mills(1_000, 5_000, 100, 1_250)));
        for text in ["", "1", "1,", "1,2,3", "1,2,3,4,5", "a,b", "-1,5", "1;5", "1,5,,", "0.0000000001,1"] {
            assert_eq!(Price::parse(text), None, "{text}");
        }
    }

    #[test]
    fn no_number_of_tokens_overflows() {
        let usage = Usage { input: u64::MAX, output: u64::MAX, cache_read: u64::MAX, cache_write: u64::MAX };
        let dearest = Price::parse("999999999999,999999999999,999999999999,999999999999").unwrap();
        assert!(dearest.cost(usage) <= Cost(u128::MAX));
    }
}
