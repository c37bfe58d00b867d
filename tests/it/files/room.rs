//! Where there is no room, and where a write is cut short.

use std::io::{self, ErrorKind};

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::containment::skipped;
use crate::processes::{children, wait_for};
use crate::story::Story;

const OLD_BYTES: usize = 150_000;

/// Cells in which the new content has no room. The old one, and a file of two names, are whole afterwards, and
/// nothing is left of the new one.
fn cells_without_room(refusal: &str, error: &str) -> Vec<Cell> {
    let text = "x".repeat(OLD_BYTES);
    let beside = |tool, name: &str, told: String| {
        cell(tool, failed(&told)).with("file_path", format!("{tool}/{name}"))
    };
    let grown = |cell: Cell| cell.with("new_string", "longer").with("replace_all", true);
    vec![
        cell("Write", failed(&format!("cannot write Write/it: {refusal}"))).with("content", text.as_str()),
        beside("Write", "twice", format!("cannot write Write/twice: {refusal}"))
            .with("content", text.repeat(2)),
        beside("Write", "another", format!("cannot write Write/another: {error}"))
            .with("content", text.as_str()),
        grown(cell("Edit", failed(&format!("cannot write Edit/it: {refusal}")))),
        grown(beside("Edit", "twice", format!("cannot write Edit/twice: {refusal}"))),
    ]
}

/// A command fails as any program does that has no room, and says nothing here.
fn a_command_without_room() -> Cell {
    let fill = "{ head -c 400000 /dev/zero >Bash/new; } 2>/dev/null || echo refused; rm Bash/new";
    cell("Bash", ok("refused")).with("command", fill)
}

fn name_twice(folder: &Path) {
    fs::hard_link(folder.join("twice"), folder.join("other")).unwrap();
}

#[test]
fn on_a_full_disk_the_old_file_is_whole_and_nothing_is_left() {
    let test = "on_a_full_disk_the_old_file_is_whole_and_nothing_is_left";
    if !can_mount(test) {
        return;
    }
    let before = holds([("it", file("old ".repeat(OLD_BYTES / 4))), ("twice", file("old ".repeat(1000)))]);
    let mut after = before.clone();
    after.insert("other".into(), before[OsStr::new("twice")].clone());
    let error = "No space left on device (os error 28)";
    let mut cells = cells_without_room(&format!("{error}; its old content is untouched"), error);
    // What has a thousand places to grow in does not fit into the room that is left.
    cells.last_mut().unwrap().arguments["new_string"] = json!("n".repeat(200));
    cells.push(a_command_without_room());
    let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.after(after.clone())).collect();
    matrix_in(test, &ON_A_SMALL_DISK, &before, name_twice, &cells);
}

#[test]
fn beyond_a_limit_for_files_the_old_file_is_whole_and_nothing_is_left() {
    let test = "beyond_a_limit_for_files_the_old_file_is_whole_and_nothing_is_left";
    if !can_limit_files(test) {
        return;
    }
    let text = "old ".repeat(15_000);
    let before = holds([("it", file(&text)), ("twice", file(&text))]);
    let after = holds([("it", file(&text)), ("twice", file(&text)), ("other", file(&text))]);
    let error = "File too large (os error 27)";
    let mut cells = cells_without_room(&format!("{error}; its old content is untouched"), error);
    cells.push(a_command_without_room());
    let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.after(after.clone())).collect();
    matrix_in(test, &WITH_SHORT_FILES, &before, name_twice, &cells);
}

/// Of Write 3 MB are enough, since the model sends them all; an edit makes 30 MB of a few bytes. Both replace the
/// file in the same way.
#[test]
fn a_kill_during_a_long_write_leaves_the_old_content_or_the_new_one() {
    let test = "a_kill_during_a_long_write_leaves_the_old_content_or_the_new_one";
    let mut random = Random(0x1234_5678_9ABC_DEF1);
    let mut is_seen = true;
    let text = "a line that is new\n".repeat(3_000_000 / 19);
    let write = ("Write", json!({"file_path": "it", "content": text}));
    for mark in [0, random.below(text.len())] {
        is_seen &= kill_at(mark, &write, "old\n", &text);
    }
    let old = format!("old{}\n", "x".repeat(996)).repeat(30_000);
    let arguments =
        json!({"file_path": "it", "old_string": "old", "new_string": "newer", "replace_all": true});
    let (edit, new) = (("Edit", arguments), old.replace("old", "newer"));
    for mark in [0, random.below(new.len()), random.below(new.len()), random.below(new.len()), new.len()] {
        is_seen &= kill_at(mark, &edit, &old, &new);
    }
    if !is_seen {
        skipped(test, "who runs this may not see how far a write has come: the kills were at any moment");
    }
}

/// Kills the program when so many bytes of the new content are written, and looks at what is there then. Tells whether
/// it could be seen how many are: nobody but root may look into cotter's processes.
#[track_caller]
fn kill_at(mark: usize, (tool, arguments): &(&str, Value), old: &str, new: &str) -> bool {
    let reply = asks(Api::OpenAi, "", &[("call_1", tool, &arguments.to_string())]);
    let story = Story::new("kill").openai().file("it", old).args(&["-p", "Do it."]).reply(reply);
    let running = story.start();
    let cotter = Pid::from_raw(running.pid().try_into().unwrap()).unwrap();
    let it = running.folder().join("it");
    let (worker, is_seen) = wait_for("a part of the new content", || {
        let worker = *children(*children(cotter).first()?).first()?;
        let is_new = fs::metadata(&it).unwrap().len() != old.len() as u64;
        match written(worker, &it) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Some((worker, false)),
            found => (is_new || found.ok().flatten()? >= mark as u64).then_some((worker, true)),
        }
    });
    kill_process(cotter, Signal::KILL).unwrap();
    wait_for("the worker's end", || is_over(worker).then_some(()));
    let outcome = running.finish();
    let held = fs::read_to_string(outcome.folder.join("it")).unwrap();
    assert!(held == old || held == new, "{tool}: {} bytes at {mark}", held.len());
    // Between its last byte and its renaming the new file has a name, which may be left.
    for name in found(&outcome.folder).into_keys().filter(|name| name != "it") {
        let name = name.into_string().unwrap();
        assert!(name.starts_with(".cotter-") && name.ends_with(".tmp"), "{tool}: {name} at {mark}");
    }
    is_seen
}

/// How much a process has written to another file in the folder of this one.
fn written(process: Pid, it: &Path) -> io::Result<Option<u64>> {
    let mut most = None;
    for each in fs::read_dir(format!("/proc/{process}/fd"))?.flatten() {
        match fs::read_link(each.path()) {
            Ok(path) if path.parent() == it.parent() && path != it => {
                most = most.max(fs::metadata(each.path()).ok().map(|file| file.len()));
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
    }
    Ok(most)
}

/// Whether a process has ended, be it waited for or not.
fn is_over(process: Pid) -> bool {
    fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default().is_empty()
}
