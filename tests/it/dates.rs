//! Several turns through the clock and the calendar: "which day is 103 days from today".
//!
//! The clock is fixed by `COTTER_NOW`, so that every result is the same on any day.

use serde_json::json;

use crate::check::Api;
use crate::server::Reply;
use crate::story::{Outcome, Story};
use crate::talk::{BOTH, answer, asks, results};

const QUESTION: &str = "Какой день будет через 103 дня от сегодняшней даты?";
const NOW: &str = "2023-10-26T08:30:15.25Z";
const TODAY: &str = "2023-10-26T08:30:15+00:00 (Thursday)";
const THEN: &str = "2024-02-06 (Tuesday)";

fn story(name: &str, api: Api) -> Story {
    Story::new(name).api(api).env("COTTER_NOW", NOW).args(&["-p", QUESTION])
}

/// What a tool says to each of some calls with these arguments, and whether it is an error.
fn told(api: Api, name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Vec<(String, bool)> {
    let ids: Vec<_> = (0..arguments.len()).map(|number| format!("call_{number}")).collect();
    let calls: Vec<_> = ids.iter().zip(arguments).map(|(id, text)| (&**id, name, *text)).collect();
    let story = story(name, api).reply(asks(api, "", &calls)).reply(answer(api, "Вот."));
    let story = environment.iter().fold(story, |story, (name, value)| story.env(name, value));
    let outcome = story.run();
    outcome.code(0).stdout("Вот.\n").stderr("").request_count(2);
    results(api, &outcome.body(2)).into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

fn fine(texts: &[&str]) -> Vec<(String, bool)> {
    texts.iter().map(|text| ((*text).to_owned(), false)).collect()
}

#[test]
fn text_and_calls_alternate_until_the_texts_of_the_last_reply_are_the_answer() {
    let outcome = story("messages", Api::Anthropic).exchange("fixtures/dates/messages").run();
    outcome.code(0).stderr("").request_count(3);
    outcome.stdout("Через 103 дня от сегодняшней даты будет 6 февраля 2024 года.\nЭто вторник.\n");
    let [now, add] = ["toolu_01NowKx7Qm2ZtRb5WcYpVfLh", "toolu_01AddHs9Ld4NvJq6TkXrGmPw"];
    let mark = json!({"type": "ephemeral"});
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Сначала узнаю сегодняшнюю дату."},
            {"type": "tool_use", "id": now, "name": "get_current_datetime", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": now, "content": TODAY, "cache_control": mark}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "Сегодня 26 октября 2023 года."},
            {"type": "text", "text": "Прибавлю 103 дня."},
            {"type": "tool_use", "id": add, "name": "add_duration_to_datetime",
                "input": {"datetime": "2023-10-26", "duration": 103, "unit": "days"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": add, "content": THEN, "cache_control": mark}]},
    ]);
    outcome.equal(&outcome.body(3)["messages"], &expected);
}

#[test]
fn the_json_result_holds_the_last_replys_text_and_counts_all() {
    let story = story("json", Api::Anthropic).exchange("fixtures/dates/messages");
    let outcome = story.args(&["--output-format", "json"]).run();
    let found = outcome.code(0).json();
    let text = "Через 103 дня от сегодняшней даты будет 6 февраля 2024 года.\nЭто вторник.";
    outcome.equal(&found["result"], &json!(text)).equal(&found["num_turns"], &json!(3));
    let usage = json!({"input_tokens": 2590, "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 5100, "output_tokens": 180});
    outcome.equal(&found["usage"], &usage);
}

#[test]
fn chat_completions_does_the_same() {
    let outcome = story("chat", Api::OpenAi).exchange("fixtures/dates/chat").run();
    outcome.code(0).stderr("").request_count(3);
    outcome.stdout("Через 103 дня от сегодняшней даты будет 6 февраля 2024 года.\n");
    let [now, add] = ["call_q3VbT0fXKe7LmZr9sYw2NcHd", "call_W8pJxG5uAa1oTk6iRy4FvBzQ"];
    let arguments = r#"{"datetime": "2023-10-26", "duration": 103, "unit": "days"}"#;
    let body = outcome.body(3);
    let expected = json!([
        body["messages"][0],
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": "Сначала узнаю сегодняшнюю дату.", "tool_calls": [
            {"id": now, "type": "function", "function": {"name": "get_current_datetime", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": now, "content": TODAY},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": add, "type": "function",
                "function": {"name": "add_duration_to_datetime", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": add, "content": THEN},
    ]);
    outcome.equal(&body["messages"], &expected);
}

#[test]
fn the_first_result_can_be_given_to_the_second_call_as_it_is() {
    for api in BOTH {
        let arguments = format!(r#"{{"datetime": "{TODAY}", "duration": "103", "unit": "day"}}"#);
        let expected = fine(&["2024-02-06T08:30:15+00:00 (Tuesday)"]);
        assert_eq!(told(api, "add_duration_to_datetime", &[&arguments], &[]), expected);
    }
}

#[test]
fn both_calls_may_stand_in_one_reply() {
    for api in BOTH {
        let calls = [
            ("call_1", "get_current_datetime", "{}"),
            (
                "call_2",
                "add_duration_to_datetime",
                r#"{"datetime": "2023-10-26", "duration": 103, "unit": "days"}"#,
            ),
        ];
        let outcome = story("both", api).reply(asks(api, "", &calls)).reply(answer(api, "6 февраля.")).run();
        outcome.code(0).stdout("6 февраля.\n").request_count(2);
        let expected = [("call_1", TODAY), ("call_2", THEN)];
        let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned(), false));
        outcome.equal(results(api, &outcome.body(2)), expected.to_vec());
    }
}

#[test]
fn the_clock_is_told_in_the_zone_asked_for() {
    let arguments = [
        r#"{"timezone": "Europe/Moscow"}"#,
        r#"{"timezone": "Asia/Tokyo", "format": "%Y-%m-%d %H:%M %A"}"#,
        r#"{"timezone": "Pacific/Kiritimati"}"#,
        r#"{"timezone": "-09:30"}"#,
        r#"{"timezone": null, "format": ""}"#,
    ];
    let expected = fine(&[
        "2023-10-26T11:30:15+03:00[Europe/Moscow] (Thursday)",
        "2023-10-26 17:30 Thursday",
        "2023-10-26T22:30:15+14:00[Pacific/Kiritimati] (Thursday)",
        "2023-10-25T23:00:15-09:30 (Wednesday)",
        TODAY,
    ]);
    for api in BOTH {
        assert_eq!(told(api, "get_current_datetime", &arguments, &[]), expected);
    }
}

#[test]
fn the_machines_zone_and_locale_change_nothing() {
    for zone in ["Asia/Tokyo", "America/St_Johns", "UTC+11", ":/etc/localtime", "nonsense"] {
        let environment = [("TZ", zone), ("LC_ALL", "C"), ("LANG", "ru_RU.UTF-8")];
        let expected = fine(&[TODAY, "2023-10-26 Thu"]);
        let arguments = ["{}", r#"{"format": "%F %a"}"#];
        assert_eq!(told(Api::Anthropic, "get_current_datetime", &arguments, &environment), expected);
    }
}

#[test]
fn a_day_added_follows_the_clock_changes_of_the_zone_and_an_hour_does_not() {
    let before = "2023-10-28T12:00:00+02:00[Europe/Berlin]";
    let arguments = [
        format!(r#"{{"datetime": "{before}", "duration": 1, "unit": "days"}}"#),
        format!(r#"{{"datetime": "{before}", "duration": 24, "unit": "hours"}}"#),
        r#"{"datetime": "2024-01-31", "duration": 1, "unit": "months"}"#.to_owned(),
        r#"{"datetime": "2024-02-06", "duration": -103, "unit": "days"}"#.to_owned(),
        r#"{"datetime": "2023-10-26", "duration": 36, "unit": "hours"}"#.to_owned(),
    ];
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let expected = fine(&[
        "2023-10-29T12:00:00+01:00[Europe/Berlin] (Sunday)",
        "2023-10-29T11:00:00+01:00[Europe/Berlin] (Sunday)",
        "2024-02-29 (Thursday)",
        "2023-10-26 (Thursday)",
        "2023-10-27T12:00:00 (Friday)",
    ]);
    for api in BOTH {
        assert_eq!(told(api, "add_duration_to_datetime", &arguments, &[]), expected);
    }
}

#[test]
fn mistakes_are_results_that_say_what_to_do() {
    let wrong = |text: &str| vec![(text.to_owned(), true)];
    for api in BOTH {
        let found = told(api, "get_current_datetime", &[r#"{"timezone": "Moscow"}"#], &[]);
        assert_eq!(
            found,
            wrong(
                "there is no time zone \"Moscow\"; give an IANA name such as Europe/Moscow, or an offset such \
                 as +03:00"
            )
        );
        let arguments = r#"{"datetime": "2023-10-26 (Friday)", "duration": 1, "unit": "days"}"#;
        let found = told(api, "add_duration_to_datetime", &[arguments], &[]);
        assert_eq!(found, wrong("2023-10-26 is a Thursday, not a Friday"));
        let arguments = r#"{"datetime": "2023-10-26", "duration": 1, "unit": "fortnight"}"#;
        let found = told(api, "add_duration_to_datetime", &[arguments], &[]);
        let why = "there is no unit \"fortnight\"; use years, months, weeks, days, hours, minutes or seconds";
        assert_eq!(found, wrong(why));
    }
}

#[test]
fn without_a_fixed_clock_the_time_is_the_machines() {
    let seconds = || jiff::Timestamp::now().as_second();
    let call = ("call_1", "get_current_datetime", r#"{"format": "%s"}"#);
    let story = Story::new("clock").anthropic().args(&["-p", QUESTION]);
    let before = seconds();
    let outcome = story.reply(asks(Api::Anthropic, "", &[call])).reply(answer(Api::Anthropic, "Вот.")).run();
    let told: i64 = results(Api::Anthropic, &outcome.body(2))[0].1.parse().unwrap();
    outcome.equal((before..=seconds()).contains(&told), true);
}

#[test]
fn a_clock_that_cannot_be_read_is_a_usage_error() {
    let outcome: Outcome =
        Story::new("bad clock").anthropic().env("COTTER_NOW", "yesterday").args(&["-p", QUESTION]).run();
    outcome.code(2).stdout("").request_count(0).stderr(
        "cotter: COTTER_NOW is RFC 3339 (2026-01-31T12:00:00Z) or seconds since 1970, not \"yesterday\"\n",
    );
}

#[test]
fn a_long_run_of_turns_ends_with_its_answer() {
    let ids: Vec<_> = (1..=30).map(|number| format!("call_{number}")).collect();
    for api in BOTH {
        let replies = ids.iter().map(|id| asks(api, "", &[(id, "get_current_datetime", "{}")]));
        let replies: Vec<Reply> = replies.chain([answer(api, "Четверг.")]).collect();
        let outcome = replies.into_iter().fold(story("long", api), Story::reply).run();
        outcome.code(0).stdout("Четверг.\n").stderr("").request_count(31);
        let expected: Vec<_> = ids.iter().map(|id| (id.clone(), TODAY.to_owned(), false)).collect();
        outcome.equal(results(api, &outcome.body(31)), expected);
    }
}
