//! Edit in the worker: what it costs there, and that what a result says to do works when it is done.

use std::sync::Arc;

use super::*;
use crate::server::Gate;
use crate::story::FOLDER;

fn edit(path: &str, old: &str, new: &str, replaces_all: bool) -> Value {
    let input = json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": replaces_all});
    json!({"name": "Edit", "input": input})
}

/// Every place and its line was kept, seventeen times the file in memory.
#[test]
fn an_edit_takes_three_times_the_file_whatever_it_finds() {
    const BYTES: usize = 12 << 20;
    let calls = [
        edit("spaces", " ", "-", false),
        edit("spaces", " ", "-", true),
        edit("crlf", "\n", "\n\n", false),
        edit("crlf", "a", "b", true),
        edit("crlf", "b\n", "c\n\n", true),
    ];
    let gate = Arc::new(Gate::default());
    let story = bare("edits").file("spaces", " ".repeat(BYTES)).file("crlf", "a\r\n".repeat(BYTES / 6));
    let run = Run::start(story.reply(asking(1, &calls)).reply(done().held_by(&gate)));
    gate.wait_until_asked();
    let peak = status_number(run.worker(), "VmHWM");
    gate.open();
    let outcome = run.finish();
    let (count, more) = (BYTES / 6, BYTES / 6 - 10);
    let lines = format!("lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and {more} more");
    let way_out = "add surrounding lines to make it unique, or set replace_all";
    let expected = [
        failed(&format!("old_string occurs {BYTES} times in spaces, at line 1: {way_out}")),
        ok(&format!("edited spaces ({BYTES} replacements at line 1)")),
        failed(&format!("old_string occurs {count} times in crlf, at {lines}: {way_out}")),
        ok(&format!("edited crlf ({count} replacements at {lines})")),
        ok(&format!("edited crlf ({count} replacements at {lines})")),
    ];
    outcome.code(0).equal(results(&outcome), expected.to_vec());
    outcome.file("spaces", "-".repeat(BYTES)).file("crlf", "c\r\n\r\n".repeat(BYTES / 6));
    // In KiB; the program itself takes some.
    assert!(peak < 3 * (BYTES as u64 >> 10) + 16_000, "{peak}");
}

/// A path of the workspace was shown relative, and the copy of what was shown was not found either.
#[test]
fn what_edit_shows_of_a_file_is_in_the_file() {
    let near = format!("path = {FOLDER}/a/c");
    let there = format!("path = {FOLDER}/a/b");
    let calls = [edit("config", &near, "path = x", false), edit("config", &there, "path = x", false)];
    let story = story("shown", &calls).told_folder().prepared(|folder| {
        fs::write(folder.join("config"), format!("one\npath = {}/a/b\n", folder.display())).unwrap();
    });
    let outcome = Run::start(story).finish();
    let folder = outcome.folder.display();
    let miss = format!(
        "old_string does not occur in config; the nearest place is line 2:\npath = {folder}/a/b\n\
         line 2 is not what old_string has: path = {folder}/a/c"
    );
    let expected = vec![failed(&miss), ok("edited config (1 replacement at line 2)")];
    outcome.code(0).equal(results(&outcome), expected).file("config", "one\npath = x\n");
}

/// The name was put in single quotes, in which a shell leaves `$TMPDIR` as it is.
#[test]
fn the_command_that_shows_more_of_a_line_works_in_the_private_folder() {
    let read = json!({"name": "Read", "input": {"file_path": "$TMPDIR/the log", "limit": 1}});
    let calls =
        [bash("printf '%03000d\\n' 7 >\"$TMPDIR/the log\""), read, bash("sed -n 1p \"$TMPDIR\"/'the log'")];
    let told = format!(
        "{}\n[line 1 shortened to 2000 bytes: if you can run a command, sed -n 1p \"$TMPDIR\"/'the log' shows \
         more of line 1]",
        "0".repeat(2000)
    );
    let expected = [ok("(no output)"), ok(&told), ok(&format!("{:03000}", 7))];
    tells(story("more", &calls), &expected);
}
