//! The texts that `format` asks for, of those that the APIs know.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The names that are known.
pub const NAMES: [&str; 8] = ["date-time", "date", "time", "email", "uri", "uuid", "ipv4", "ipv6"];

/// Whether a text has this format.
pub fn fits(name: &str, text: &str) -> bool {
    match name {
        "date-time" => text.split_once(['T', 't']).is_some_and(|(date, time)| is_date(date) && is_time(time)),
        "date" => is_date(text),
        "time" => is_time(text),
        "email" => is_email(text),
        "uri" => is_uri(text),
        "uuid" => is_uuid(text),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// A time of RFC 3339: seconds are there, and so is the offset.
fn is_time(text: &str) -> bool {
    if !text.is_ascii() || text.len() < 9 {
        return false;
    }
    let (clock, rest) = text.split_at(8);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let within = |text: &str, most: u8| {
        text.len() == 2 && digits(text) && text.parse::<u8>().is_ok_and(|number| number <= most)
    };
    // A leap second is one.
    let most = [23, 59, 60];
    let parts: Vec<&str> = clock.split(':').collect();
    let offset = rest.trim_start_matches(|next: char| next == '.' || next.is_ascii_digit());
    let fraction = &rest[..rest.len() - offset.len()];
    parts.len() == 3
        && parts.iter().zip(most).all(|(part, most)| within(part, most))
        && (fraction.is_empty() || fraction.strip_prefix('.').is_some_and(digits))
        && match offset.split_at_checked(1) {
            Some(("Z" | "z", "")) => true,
            Some(("+" | "-", offset)) => offset
                .split_once(':')
                .is_some_and(|(hours, minutes)| within(hours, 23) && within(minutes, 59)),
            _ => false,
        }
}

fn is_email(text: &str) -> bool {
    let is_word = |part: &str| {
        !part.is_empty()
            && !part.contains(|next: char| next.is_whitespace() || next.is_control() || next == '@')
    };
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        is_word(local) && is_word(domain) && domain.split('.').all(|label| !label.is_empty())
    })
}

fn is_uri(text: &str) -> bool {
    let is_plain = |next: char| next.is_ascii_graphic() && !"\"<>\\^`{|}".contains(next);
    text.chars().all(is_plain)
        && text.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|next| next.is_ascii_alphanumeric() || "+-.".contains(next))
        })
}

fn is_uuid(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_format_or_not() {
        let table = [
            ("date", "2024-02-29", "2023-02-29 2024-2-9 20240229 +002024-02-29 soon"),
            (
                "time",
                "23:59:60Z 08:30:00.25+02:00 08:30:00z",
                "08:30 08:30:00 24:00:00Z 08:30:00.Z 08:30:00+2 +8:30:00Z é8:30:00Z",
            ),
            (
                "date-time",
                "2024-02-29T08:30:00Z 2024-02-29t08:30:00.1-05:30",
                "2024-02-29 2024-02-30T08:30:00Z T 2024-02-29T08:30:00",
            ),
            ("email", "a@b.example a.b+c@d", "a a@ @b a@b..c a@.b"),
            ("uri", "https://a.example/b?c#d mailto:a@b urn:x", "a.example /b 1:x https://é <x:y>"),
            (
                "uuid",
                "123e4567-e89b-12d3-a456-426614174000",
                "123e4567e89b12d3a456426614174000 123e4567-e89b-12d3-a456-42661417400g",
            ),
            ("ipv4", "127.0.0.1", "127.0.0 256.0.0.1 ::1"),
            ("ipv6", "::1 2001:db8::8", "127.0.0.1 :::1"),
        ];
        assert_eq!(table.len(), NAMES.len());
        for (name, fit, unfit) in table {
            assert!(NAMES.contains(&name));
            for text in fit.split(' ') {
                assert!(fits(name, text), "{name} {text}");
            }
            for text in unfit.split(' ').chain([""]) {
                assert!(!fits(name, text), "{name} {text}");
            }
        }
    }
}
