//! `get_current_datetime` and `add_duration_to_datetime`: the clock and the calendar.
//!
//! All arithmetic is jiff's. The clock is passed in, and zones come from the database inside the
//! binary, never from the machine, so that equal calls give equal bytes everywhere.

use jiff::civil::{Date, DateTime, Weekday};
use jiff::fmt::rfc2822;
use jiff::fmt::strtime::{self, BrokenDownTime, PosixCustom};
use jiff::fmt::temporal::{DateTimeParser, DateTimePrinter, PiecesOffset};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Span, Timestamp, ZonedDateTime};

use crate::tools::{Arguments, Outcome, Spec, arguments, slips};

/// What the model is told of `get_current_datetime`.
pub const NOW: Spec = Spec {
    name: "get_current_datetime",
    description: "Returns the current date and time with the weekday, such as \
        2026-11-30T03:34:26+00:00 (Monday). Use it whenever an answer depends on today or now.",
    arguments: &["timezone", "format"],
    schema: r#"{"type":"object","properties":{"timezone":{"type":"string","description":"IANA name or offset: Europe/Moscow, +03:00; default UTC"},"format":{"type":"string","description":"strftime format such as %Y-%m-%d"}},"required":[]}"#,
};

/// What the model is told of `add_duration_to_datetime`.
pub const ADD: Spec = Spec {
    name: "add_duration_to_datetime",
    description: "Adds a duration to a date or a date with time; returns the result in the same form, with \
        its weekday. Use it for any date arithmetic, and with 0 days to learn a weekday. \
        January 31 plus 1 month is the last day of February; days follow the calendar, hours are exact.",
    arguments: &["datetime", "duration", "unit"],
    schema: r#"{"type":"object","properties":{"datetime":{"type":"string","description":"2023-10-26, 2023-10-26T10:00:00 or a result of get_current_datetime"},"duration":{"type":"integer","description":"whole number, negative to subtract; for 1.5 hours give 90 minutes"},"unit":{"type":"string","description":"years, months, weeks, days, hours, minutes or seconds"}},"required":["datetime","duration","unit"]}"#,
};

/// A time that is told in more characters than this was not meant to be, nor a longer format.
const MAX_FORMATTED: usize = 1000;

static PARSER: DateTimeParser = DateTimeParser::new();

/// Runs `get_current_datetime`, where `now` is the time to tell.
pub fn run_now(arguments: &Arguments, now: Timestamp) -> Outcome {
    match tell(arguments, now) {
        Ok(text) => Outcome::ok(text),
        Err(problem) => Outcome::error(problem),
    }
}

/// Runs `add_duration_to_datetime`.
pub fn run_add(arguments: &Arguments) -> Outcome {
    match add(arguments) {
        Ok(text) => Outcome::ok(text),
        Err(problem) => Outcome::error(problem),
    }
}

fn tell(arguments: &Arguments, now: Timestamp) -> Result<String, String> {
    let given = arguments::read(&NOW, arguments, slips::synonyms(NOW.name))?;
    // Models fill optional arguments with empty texts; those ask for the default.
    let zone = match given.optional_text("timezone")?.map(str::trim) {
        None | Some("") => TimeZone::UTC,
        Some(name) => zone(name)?,
    };
    let zoned = now.to_zoned_datetime(zone);
    match given.optional_text("format")? {
        None | Some("") => Ok(with_weekday(written(&zoned, Fraction::Dropped), zoned.date())),
        Some(format) if format.chars().count() > MAX_FORMATTED => {
            Err(format!("format is longer than {MAX_FORMATTED} characters; use fewer fields"))
        }
        Some(format) if !format.contains('%') => {
            Err(format!("format {format:?} has no strftime field; use fields such as %Y-%m-%d %H:%M"))
        }
        Some(format) => {
            // The POSIX locale gives %c and %x the shape that `date` users know.
            let locale = strtime::Config::new().custom(PosixCustom::new());
            let told = BrokenDownTime::from(&zoned)
                .to_string_with_config(&locale, format)
                .map_err(|error| format!("format {format:?} is not a strftime format: {error}"))?;
            match told.chars().count() <= MAX_FORMATTED {
                true => Ok(told),
                false => Err(format!(
                    "the time in this format is longer than {MAX_FORMATTED} characters; use fewer fields"
                )),
            }
        }
    }
}

/// A zone by its IANA name or its offset. POSIX zone strings are left out on purpose: in them
/// `UTC+3` lies west of Greenwich, which nobody who writes it means.
fn zone(name: &str) -> Result<TimeZone, String> {
    let database = TimeZoneDatabase::bundled();
    if name.eq_ignore_ascii_case("Z") {
        return Ok(TimeZone::UTC);
    }
    let found = match name.starts_with(['+', '-']) {
        true => PARSER.parse_time_zone_with(&database, name),
        false => database.get(name),
    };
    found.ok().filter(|zone| !zone.is_unknown()).ok_or_else(|| {
        let close = zones_like(&database, name);
        let examples = if close.is_empty() { "Europe/Moscow".to_owned() } else { close.join(", ") };
        format!("there is no time zone {name:?}; give an IANA name such as {examples}, or an offset such as +03:00")
    })
}

/// Up to three zones whose names hold the given one, as `Europe/Moscow` does `moscow`.
fn zones_like(database: &TimeZoneDatabase, name: &str) -> Vec<String> {
    let wanted = name.replace(' ', "_").to_lowercase();
    let names = database.available().map(|zone| zone.as_str().to_owned());
    let mut close: Vec<_> =
        names.filter(|zone| wanted.len() > 2 && zone.to_lowercase().contains(&wanted)).collect();
    close.sort();
    close.truncate(3);
    close
}

fn add(arguments: &Arguments) -> Result<String, String> {
    let given = arguments::read(&ADD, arguments, slips::synonyms(ADD.name))?;
    let moment = Moment::parse(given.text("datetime")?)?;
    let count = given.integer("duration")?;
    let unit = Unit::parse(given.text("unit")?)?;
    let out_of_range = |error: jiff::Error| {
        let Unit { name, .. } = unit;
        let start = moment.written();
        format!("{start} plus {count} {name}s is out of range, years go from -9999 to 9999: {error}")
    };
    let span = (unit.span)(Span::new(), count).map_err(out_of_range)?;
    let sum = moment.plus(span, unit.size).map_err(out_of_range)?;
    Ok(with_weekday(sum.written(), sum.date()))
}

/// A unit of duration, as jiff counts it.
#[derive(Clone, Copy)]
struct Unit {
    name: &'static str,
    size: UnitSize,
    span: fn(Span, i64) -> Result<Span, jiff::Error>,
}

/// Whether a unit is made of whole days.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitSize {
    Days,
    PartOfADay,
}

const UNITS: [Unit; 7] = [
    Unit { name: "year", size: UnitSize::Days, span: Span::try_years },
    Unit { name: "month", size: UnitSize::Days, span: Span::try_months },
    Unit { name: "week", size: UnitSize::Days, span: Span::try_weeks },
    Unit { name: "day", size: UnitSize::Days, span: Span::try_days },
    Unit { name: "hour", size: UnitSize::PartOfADay, span: Span::try_hours },
    Unit { name: "minute", size: UnitSize::PartOfADay, span: Span::try_minutes },
    Unit { name: "second", size: UnitSize::PartOfADay, span: Span::try_seconds },
];

impl Unit {
    fn parse(typed: &str) -> Result<Unit, String> {
        let lower = typed.trim().to_lowercase();
        let singular = lower.strip_suffix('s').unwrap_or(&lower);
        UNITS.into_iter().find(|unit| unit.name == singular).ok_or_else(|| {
            let names = "years, months, weeks, days, hours, minutes or seconds";
            format!("there is no unit {typed:?}; use {names}")
        })
    }
}

/// A point in time in the form it was given in, which its sums keep.
enum Moment {
    /// A day of the calendar.
    Date(Date),
    /// A day and a time, in no zone.
    DateTime(DateTime),
    /// A time in UTC, written with `Z`.
    Zulu(ZonedDateTime),
    /// A time with an offset or in a named zone.
    Zoned(ZonedDateTime),
}

impl Moment {
    fn parse(typed: &str) -> Result<Moment, String> {
        let (text, weekday) = split_weekday(typed.trim());
        let moment = Moment::parse_iso(text).or_else(|error| {
            let mail = rfc2822::DateTimeParser::new().parse_zoned_datetime(text);
            mail.map(Moment::Zoned).map_err(|_| {
                let forms = "2023-10-26, 2023-10-26T10:00:00 or 2023-10-26T10:00:00+03:00[Europe/Moscow]";
                format!("datetime {typed:?} is not understood; write it as {forms}: {error}")
            })
        })?;
        match weekday {
            Some(claimed) if claimed != moment.date().weekday() => {
                let date = moment.date();
                Err(format!("{date} is a {}, not a {}", day_name(date.weekday()), day_name(claimed)))
            }
            _ => Ok(moment),
        }
    }

    fn parse_iso(text: &str) -> Result<Moment, jiff::Error> {
        let pieces = PARSER.parse_pieces(text)?;
        if pieces.time_zone_annotation().is_some() {
            let database = TimeZoneDatabase::bundled();
            return PARSER.parse_zoned_datetime_with(&database, text).map(Moment::Zoned);
        }
        match (pieces.offset(), pieces.time()) {
            (Some(PiecesOffset::Zulu), _) => {
                Ok(Moment::Zulu(PARSER.parse_timestamp(text)?.to_zoned_datetime(TimeZone::UTC)))
            }
            (Some(offset), _) => {
                let zone = TimeZone::fixed(offset.to_numeric_offset());
                Ok(Moment::Zoned(PARSER.parse_timestamp(text)?.to_zoned_datetime(zone)))
            }
            (None, Some(time)) => Ok(Moment::DateTime(pieces.date().to_datetime(time))),
            (None, None) => Ok(Moment::Date(pieces.date())),
        }
    }

    fn plus(&self, span: Span, size: UnitSize) -> Result<Moment, jiff::Error> {
        Ok(match self {
            // A date plus hours is a time of day: the day's first moment is where it starts.
            Moment::Date(date) if size == UnitSize::PartOfADay => {
                Moment::DateTime(date.at(0, 0, 0, 0).checked_add(span)?)
            }
            Moment::Date(date) => Moment::Date(date.checked_add(span)?),
            Moment::DateTime(datetime) => Moment::DateTime(datetime.checked_add(span)?),
            Moment::Zulu(zoned) => Moment::Zulu(zoned.checked_add(span)?),
            Moment::Zoned(zoned) => Moment::Zoned(zoned.checked_add(span)?),
        })
    }

    fn date(&self) -> Date {
        match self {
            Moment::Date(date) => *date,
            Moment::DateTime(datetime) => datetime.date(),
            Moment::Zulu(zoned) | Moment::Zoned(zoned) => zoned.date(),
        }
    }

    fn written(&self) -> String {
        match self {
            Moment::Date(date) => date.to_string(),
            Moment::DateTime(datetime) => datetime.to_string(),
            Moment::Zulu(zoned) => zoned.timestamp().to_string(),
            Moment::Zoned(zoned) => written(zoned, Fraction::Kept),
        }
    }
}

/// A text without a weekday at its end, and that weekday: `2026-11-30 (Monday)`, `2026-11-30 Mon`.
fn split_weekday(text: &str) -> (&str, Option<Weekday>) {
    let bare = text.trim_end_matches(')');
    let start = bare
        .rfind(|letter: char| !letter.is_ascii_alphabetic())
        .map_or(0, |at| at + bare[at..].chars().next().map_or(0, char::len_utf8));
    let (rest, word) = bare.split_at(start);
    let rest = rest.trim_end_matches(['(', ',', ' ']);
    let weekday = ["%A", "%a"]
        .iter()
        .find_map(|format| strtime::parse(format, word).ok().and_then(|parsed| parsed.weekday()));
    match weekday {
        Some(_) if !rest.is_empty() => (rest, weekday),
        _ => (text, None),
    }
}

/// What becomes of the parts of a second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fraction {
    Kept,
    Dropped,
}

/// RFC 3339 with the offset, and the zone's name where it says more: it is what makes a day added
/// later follow the zone's clock changes.
fn written(zoned: &ZonedDateTime, fraction: Fraction) -> String {
    let precision = if fraction == Fraction::Dropped { Some(0) } else { None };
    let printer = DateTimePrinter::new().precision(precision);
    match zoned.time_zone().iana_name() {
        Some(name) if name != "UTC" => printer.zoned_datetime_to_string(zoned),
        _ => printer.timestamp_with_offset_to_string(&zoned.timestamp(), zoned.offset()),
    }
}

fn with_weekday(written: String, date: Date) -> String {
    format!("{written} ({})", day_name(date.weekday()))
}

fn day_name(weekday: Weekday) -> &'static str {
    match weekday {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn arguments(value: Value) -> Arguments {
        value.as_object().expect("an object").clone()
    }

    fn now(value: Value) -> Outcome {
        run_now(&arguments(value), "2026-11-30T03:34:26.987Z".parse().unwrap())
    }

    fn sum(datetime: &str, duration: impl Into<Value>, unit: &str) -> Outcome {
        let duration = duration.into();
        run_add(&arguments(json!({ "datetime": datetime, "duration": duration, "unit": unit })))
    }

    fn ok(text: &str) -> Outcome {
        Outcome::ok(text)
    }

    #[test]
    fn a_time_told_at_length_is_refused() {
        let format = |format: String| now(json!({ "format": format }));
        assert_eq!(format("%Y".repeat(250)), Outcome::ok("2026".repeat(250)));
        let text = "the time in this format is longer than 1000 characters; use fewer fields";
        assert_eq!(format("%Y".repeat(251)), Outcome::error(text));
        let text = "format is longer than 1000 characters; use fewer fields";
        assert_eq!(format("%c".repeat(20_000)), Outcome::error(text));
    }

    #[test]
    fn now_is_told_in_utc_with_the_weekday() {
        assert_eq!(now(json!({})), ok("2026-11-30T03:34:26+00:00 (Monday)"));
        assert_eq!(now(json!({"timezone": "", "format": ""})), ok("2026-11-30T03:34:26+00:00 (Monday)"));
        assert_eq!(now(json!({"timezone": "utc"})), ok("2026-11-30T03:34:26+00:00 (Monday)"));
        assert_eq!(now(json!({"timezone": "Z"})), ok("2026-11-30T03:34:26+00:00 (Monday)"));
    }

    #[test]
    fn now_is_told_in_a_named_zone_or_at_an_offset() {
        let cases = [
            ("Europe/Moscow", "2026-11-30T06:34:26+03:00[Europe/Moscow] (Monday)"),
            ("america/new_york", "2026-11-29T22:34:26-05:00[America/New_York] (Sunday)"),
            ("+05:30", "2026-11-30T09:04:26+05:30 (Monday)"),
            ("-08", "2026-11-29T19:34:26-08:00 (Sunday)"),
        ];
        for (timezone, told) in cases {
            assert_eq!(now(json!({ "timezone": timezone })), ok(told));
        }
    }

    #[test]
    fn a_fraction_before_the_epoch_is_dropped_towards_the_past() {
        let outcome = run_now(&Arguments::new(), "1969-12-31T23:59:58.5Z".parse().unwrap());
        assert_eq!(outcome, ok("1969-12-31T23:59:58+00:00 (Wednesday)"));
    }

    #[test]
    fn an_unknown_zone_is_an_error_that_names_it() {
        let cases = [
            ("moscow", "Europe/Moscow"),
            ("New York", "America/New_York"),
            ("UTC+3", "Europe/Moscow"),
            ("Etc/Unknown", "Europe/Moscow"),
            ("local", "Europe/Moscow"),
            ("+99:00", "Europe/Moscow"),
            ("../../etc/passwd", "Europe/Moscow"),
        ];
        for (zone, example) in cases {
            let text = format!(
                "there is no time zone {zone:?}; give an IANA name such as {example}, or an offset such as +03:00"
            );
            assert_eq!(now(json!({ "timezone": zone })), Outcome::error(text));
        }
    }

    #[test]
    fn a_format_is_strftime() {
        let format = |format: &str| now(json!({"timezone": "Europe/Moscow", "format": format}));
        assert_eq!(format("%Y-%m-%d"), ok("2026-11-30"));
        assert_eq!(format("%A, %d.%m.%Y %H:%M %Z"), ok("Monday, 30.11.2026 06:34 MSK"));
        assert_eq!(format("%s"), ok("1796009666"));
        assert_eq!(format("%c"), ok("Mon Nov 30 06:34:26 2026"));
        assert_eq!(format("100%%"), ok("100%"));
    }

    #[test]
    fn a_bad_format_is_an_error() {
        let outcome = now(json!({"format": "YYYY-MM-DD"}));
        let text = "format \"YYYY-MM-DD\" has no strftime field; use fields such as %Y-%m-%d %H:%M";
        assert_eq!(outcome, Outcome::error(text));
        for format in ["%!", "%Y %", "%E"] {
            let outcome = now(json!({ "format": format }));
            let start = format!("format {format:?} is not a strftime format: ");
            assert!(outcome.is_error && outcome.text.starts_with(&start), "{}", outcome.text);
        }
    }

    #[test]
    fn a_date_gives_a_date() {
        assert_eq!(sum("2023-10-26", 103, "days"), ok("2024-02-06 (Tuesday)"));
        assert_eq!(sum("2023-10-26", -1, "Weeks"), ok("2023-10-19 (Thursday)"));
        assert_eq!(sum("2023-10-26", 0, "days"), ok("2023-10-26 (Thursday)"));
        assert_eq!(sum("2023-10-26", "103", "DAY"), ok("2024-02-06 (Tuesday)"));
        assert_eq!(sum("2023-10-26", 103.0, " days "), ok("2024-02-06 (Tuesday)"));
        assert_eq!(sum("20231026", 103, "days"), ok("2024-02-06 (Tuesday)"));
    }

    #[test]
    fn a_date_plus_hours_has_a_time() {
        assert_eq!(sum("2023-10-26", 36, "hours"), ok("2023-10-27T12:00:00 (Friday)"));
        assert_eq!(sum("2023-10-26", -1, "second"), ok("2023-10-25T23:59:59 (Wednesday)"));
    }

    #[test]
    fn months_and_years_end_where_the_calendar_says() {
        assert_eq!(sum("2023-01-31", 1, "month"), ok("2023-02-28 (Tuesday)"));
        assert_eq!(sum("2024-01-31", 1, "month"), ok("2024-02-29 (Thursday)"));
        assert_eq!(sum("2024-02-29", 1, "year"), ok("2025-02-28 (Friday)"));
        assert_eq!(sum("2024-02-29", 4, "years"), ok("2028-02-29 (Tuesday)"));
        assert_eq!(sum("2024-03-31", -1, "months"), ok("2024-02-29 (Thursday)"));
        assert_eq!(sum("2100-02-28", 1, "day"), ok("2100-03-01 (Monday)"));
        assert_eq!(sum("2000-02-28", 1, "day"), ok("2000-02-29 (Tuesday)"));
        assert_eq!(sum("2023-12-31", 1, "minute"), ok("2023-12-31T00:01:00 (Sunday)"));
    }

    #[test]
    fn the_form_of_the_input_is_kept() {
        let cases = [
            ("2023-10-26T10:00:00", "2023-10-27T10:00:00 (Friday)"),
            ("2023-10-26 10:00", "2023-10-27T10:00:00 (Friday)"),
            ("2023-10-26T10:00:00.25", "2023-10-27T10:00:00.25 (Friday)"),
            ("2023-10-26T10:00:00Z", "2023-10-27T10:00:00Z (Friday)"),
            ("2023-10-26T10:00:00+00:00", "2023-10-27T10:00:00+00:00 (Friday)"),
            ("2023-10-26T22:00:00-03:30", "2023-10-27T22:00:00-03:30 (Friday)"),
            ("2023-10-26T10:00[Europe/Moscow]", "2023-10-27T10:00:00+03:00[Europe/Moscow] (Friday)"),
            ("2023-10-26 (Thursday)", "2023-10-27 (Friday)"),
            ("2023-10-26, Thu", "2023-10-27 (Friday)"),
            ("Thu, 26 Oct 2023 10:00:00 +0300", "2023-10-27T10:00:00+03:00 (Friday)"),
            ("26 Oct 2023 10:00:00 GMT", "2023-10-27T10:00:00+00:00 (Friday)"),
        ];
        for (datetime, result) in cases {
            assert_eq!(sum(datetime, 1, "day"), ok(result), "{datetime}");
        }
    }

    #[test]
    fn what_the_first_tool_tells_the_second_understands() {
        for zone in ["UTC", "Europe/Moscow", "America/New_York", "+05:30", "Asia/Kathmandu"] {
            let told = now(json!({ "timezone": zone })).text;
            assert_eq!(sum(&told, 0, "days"), ok(&told));
        }
    }

    #[test]
    fn days_follow_the_calendar_and_hours_are_exact_across_a_clock_change() {
        let before = "2024-03-09T12:00:00-05:00[America/New_York]";
        assert_eq!(sum(before, 1, "day"), ok("2024-03-10T12:00:00-04:00[America/New_York] (Sunday)"));
        assert_eq!(sum(before, 24, "hours"), ok("2024-03-10T13:00:00-04:00[America/New_York] (Sunday)"));
        let gap = "2024-03-09T02:30:00-05:00[America/New_York]";
        assert_eq!(sum(gap, 1, "day"), ok("2024-03-10T03:30:00-04:00[America/New_York] (Sunday)"));
    }

    #[test]
    fn a_wrong_weekday_is_corrected() {
        let outcome = sum("2023-10-26 (Friday)", 1, "day");
        assert_eq!(outcome, Outcome::error("2023-10-26 is a Thursday, not a Friday"));
    }

    #[test]
    fn a_date_that_is_not_one_is_an_error_that_shows_the_forms() {
        for datetime in ["tomorrow", "2023-02-30", "26.10.2023", "", "(Monday)", "Monday", "10:00", "é", ")"]
        {
            let outcome = sum(datetime, 1, "day");
            let start = format!(
                "datetime {datetime:?} is not understood; write it as 2023-10-26, 2023-10-26T10:00:00 \
                 or 2023-10-26T10:00:00+03:00[Europe/Moscow]: "
            );
            assert!(outcome.is_error && outcome.text.starts_with(&start), "{}", outcome.text);
        }
        let outcome = sum("2023-10-26T10:00:00+05:00[Europe/Moscow]", 1, "day");
        assert!(outcome.is_error, "an offset that is not the zone's is refused: {}", outcome.text);
    }

    #[test]
    fn a_fraction_is_refused_with_advice() {
        let outcome = sum("2023-10-26", 1.5, "hours");
        let start = "add_duration_to_datetime takes a whole number as \"duration\", not 1.5; ";
        assert!(outcome.is_error && outcome.text.starts_with(start), "{}", outcome.text);
        assert!(outcome.text.contains("for 1.5 hours give 90 minutes"), "{}", outcome.text);
    }

    #[test]
    fn an_unknown_unit_is_an_error_that_lists_them() {
        for unit in ["fortnights", "", "s", "dayss", "m"] {
            let text = format!(
                "there is no unit {unit:?}; use years, months, weeks, days, hours, minutes or seconds"
            );
            assert_eq!(sum("2023-10-26", 1, unit), Outcome::error(text));
        }
    }

    #[test]
    fn out_of_range_is_an_error_for_every_form_and_unit() {
        let forms =
            ["2023-10-26", "2023-10-26T10:00", "2023-10-26T10:00Z", "2023-10-26T10:00+03:00[Europe/Moscow]"];
        for datetime in forms {
            for unit in UNITS {
                for count in [i64::MAX, i64::MIN] {
                    let outcome = sum(datetime, count, unit.name);
                    assert!(outcome.is_error && outcome.text.contains("is out of range"), "{}", outcome.text);
                }
            }
        }
        let outcome = sum("9999-12-31", 1, "day");
        let start = "9999-12-31 plus 1 days is out of range, years go from -9999 to 9999: ";
        assert!(outcome.is_error && outcome.text.starts_with(start), "{}", outcome.text);
    }

    #[test]
    fn no_input_panics() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let parts = [
            "2023-10-26",
            "T",
            "10:00",
            " ",
            "Z",
            "+03:00",
            "[",
            "]",
            "(",
            ")",
            "Monday",
            "Mon",
            "-",
            "9999-12-31",
            "-009999-01-01",
            "24:00",
            "Europe/Moscow",
            "é",
            "%",
            "1",
            "u-ca=x",
            ".5",
            ",",
            "23:59:60",
            "Oct",
        ];
        for _ in 0..500 {
            let text: String = (0..random() % 7).map(|_| parts[random() as usize % parts.len()]).collect();
            let unit = UNITS[random() as usize % UNITS.len()].name;
            let count = random() as i64 >> (random() % 64);
            sum(&text, count, unit);
            now(json!({ "timezone": text, "format": format!("%{text}") }));
        }
    }
}
