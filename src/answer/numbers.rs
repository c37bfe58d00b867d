//! Numbers of JSON by their value: `1` and `1.0` are the same, and no whole number is rounded to be compared.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Beyond this a floating-point number is not made a whole one. Every number of 64 bits lies below.
const MOST: f64 = 1e30;

/// Which of two numbers is the larger.
pub fn compare(one: &Number, other: &Number) -> Ordering {
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(one), None) => with_fraction(one, float(other)),
        (None, Some(other)) => with_fraction(other, float(one)).reverse(),
        (None, None) => float(one).total_cmp(&float(other)),
    }
}

/// Whether two values are the same, numbers by their value and objects in whatever order.
pub fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => compare(one, other).is_eq(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(name, value)| other.get(name).is_some_and(|other| equal(value, other));
            one.len() == other.len() && one.iter().all(same)
        }
        _ => one == other,
    }
}

/// A whole number of those that can be counted or compared exactly.
pub fn whole(number: &Number) -> Option<i128> {
    if let Some(small) = number.as_i64() {
        return Some(small.into());
    }
    if let Some(large) = number.as_u64() {
        return Some(large.into());
    }
    number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < MOST).map(|float| float as i128)
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

/// A whole number beside one that has a fraction or is larger than any of those.
fn with_fraction(whole: i128, float: f64) -> Ordering {
    if float.abs() >= MOST {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    match whole > float.floor() as i128 {
        true => Ordering::Greater,
        false => Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_their_value() {
        // In order; those of one line are the same.
        let lines = [
            "-1e300",
            "-9223372036854775808 -9223372036854775808.0",
            "-1.5",
            "-1 -1.0 -1e0",
            "-0.5",
            "0 0.0 -0.0 0e5",
            "0.1",
            "1 1.0 10e-1",
            "1.5",
            "9007199254740992 9007199254740992.0",
            "9007199254740993",
            "9223372036854775807",
            "9223372036854775808 9223372036854775808.0",
            "18446744073709551615",
            "18446744073709551616.0",
            "1e300",
        ];
        let numbers: Vec<(usize, Value)> = lines
            .iter()
            .enumerate()
            .flat_map(|(rank, line)| {
                line.split(' ').map(move |text| (rank, serde_json::from_str(text).unwrap()))
            })
            .collect();
        for (rank, one) in &numbers {
            for (other_rank, other) in &numbers {
                let (Value::Number(first), Value::Number(second)) = (one, other) else { unreachable!() };
                assert_eq!(compare(first, second), rank.cmp(other_rank), "{one} {other}");
                assert_eq!(equal(one, other), rank == other_rank, "{one} {other}");
            }
        }
    }

    #[test]
    fn values_are_equal_whatever_the_order_of_members() {
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let one = value(r#"{"a":[1,{"b":2.0,"c":null}],"d":"x"}"#);
        assert!(equal(&one, &value(r#"{"d":"x","a":[1.0,{"c":null,"b":2}]}"#)));
        for text in [
            r#"{"a":[{"b":2,"c":null},1],"d":"x"}"#,
            r#"{"a":[1,{"b":2,"c":0}],"d":"x"}"#,
            r#"{"a":[1,{"b":2}],"d":"x"}"#,
            r#"{"a":[1,{"b":2,"c":null}],"d":"x","e":1}"#,
            "[]",
        ] {
            assert!(!equal(&one, &value(text)), "{text}");
        }
    }
}
