//! Glob and Grep through the program: that they find what ripgrep finds, and what they do where it would
//! wait, read secrets, or print without end.
//!
//! What ripgrep finds was recorded by `fixtures/search/record.py`, so that no test needs it.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::Pid;
use serde_json::{Value, json};

use crate::check::Api;
use crate::processes::status_number;
use crate::server::Gate;
use crate::story::{FOLDER, Story};
use crate::talk::{answer, asks, results};

/// What the tools say to these calls in a workspace that was prepared, and whether it is an error.
fn told(
    name: &str,
    prepare: impl FnOnce(&Path) + Send + 'static,
    calls: &[(&str, Value)],
) -> Vec<(String, bool)> {
    let api = Api::OpenAi;
    let calls: Vec<(String, &str, String)> = calls
        .iter()
        .enumerate()
        .map(|(number, (tool, arguments))| (format!("call_{number}"), *tool, arguments.to_string()))
        .collect();
    let asked: Vec<_> = calls.iter().map(|(id, tool, text)| (&**id, *tool, &**text)).collect();
    let story = Story::new(name).api(api).prepared(prepare).args(&["-p", "Search."]);
    let outcome = story.reply(asks(api, "", &asked)).reply(answer(api, "Found.")).run();
    outcome.code(0).stdout("Found.\n").stderr("").request_count(2);
    results(api, &outcome.body(2)).into_iter().map(|(_, text, is_error)| (text, is_error)).collect()
}

/// Makes the tree of `fixtures/search/tree.jsonl`.
fn make_tree(root: &Path) {
    let bytes = |text: &Value| -> Vec<u8> {
        let letters = text.as_str().unwrap().chars();
        letters.map(|letter| u8::try_from(u32::from(letter)).unwrap()).collect()
    };
    for line in include_str!("../../fixtures/search/tree.jsonl").lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let (path, content) = (bytes(&entry[1]), bytes(&entry[2]));
        let path = root.join(OsStr::from_bytes(&path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match entry[0].as_str().unwrap() {
            "folder" => fs::create_dir_all(path).unwrap(),
            "link" => symlink(OsStr::from_bytes(&content), path).unwrap(),
            _ => {
                let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
                let times = entry[3].as_u64().unwrap_or(1) as usize;
                file.write_all(&content.repeat(times)).unwrap();
            }
        }
    }
}

/// The lines of a result. What is said of them stands behind the last line's end.
fn lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    lines
}

#[test]
fn what_ripgrep_finds_is_found() {
    let recorded: Vec<Value> = include_str!("../../fixtures/search/answers.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let calls: Vec<(&str, Value)> =
        recorded.iter().map(|call| (call["tool"].as_str().unwrap(), call["arguments"].clone())).collect();
    let told = told("as-ripgrep", make_tree, &calls);
    let mut differences = Vec::new();
    for (call, (text, is_error)) in recorded.iter().zip(&told) {
        let expected: Option<Vec<String>> = serde_json::from_value(call["answer"].clone()).unwrap();
        let found = (!is_error).then(|| {
            let found = lines(text).into_iter().map(|line| {
                let line = line.strip_suffix(", and searched no further").unwrap_or(line);
                line.strip_suffix(" file with a match").unwrap_or(line).to_owned()
            });
            found.collect::<Vec<String>>()
        });
        // Files found by their names come in the order of their times.
        let sorted = |lines: Option<Vec<String>>| {
            lines.map(|mut lines| {
                lines.sort();
                lines
            })
        };
        let same = match call["tool"] == "Glob" {
            true => sorted(found) == sorted(expected),
            false => found == expected,
        };
        if !same {
            differences.push(format!("{call}\n  but found {text:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
    assert!(told.len() > 100);
}

/// Compares what the tools say with what they should.
#[track_caller]
fn tells(name: &str, prepare: impl FnOnce(&Path) + Send + 'static, expected: &[(&str, Value, &str, bool)]) {
    let calls: Vec<_> = expected.iter().map(|(tool, arguments, ..)| (*tool, arguments.clone())).collect();
    let found = told(name, prepare, &calls);
    for ((tool, arguments, text, is_error), found) in expected.iter().zip(found) {
        assert_eq!(found, ((*text).to_owned(), *is_error), "{tool} {arguments}");
    }
}

fn put(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn fifo(root: &Path, path: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

#[test]
fn a_fifo_in_place_of_rules_is_not_waited_for() {
    let prepare = |root: &Path| {
        for name in [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"] {
            let folder = name.trim_start_matches('.').replace('/', "-");
            put(root, &format!("{folder}/a.txt"), "needle\n");
            fifo(root, &format!("{folder}/{name}"));
        }
        // It only tells that there is a repository.
        fifo(root, "plain/.git");
        put(root, "plain/a.txt", "needle\n");
        put(root, "worktree/.git", "gitdir: worktree/common\n");
        fifo(root, "worktree/common/commondir");
        put(root, "endless/a.txt", "needle\n");
        symlink("/dev/zero", root.join("endless/.ignore")).unwrap();
        put(root, "large/a.txt", "needle\n");
        fs::File::create(root.join("large/.ignore")).unwrap().set_len((1 << 20) + 1).unwrap();
        put(root, "secret/a.txt", "needle\n");
        symlink("/proc/self/status", root.join("secret/.ignore")).unwrap();
        fifo(root, "searched-fifo");
    };
    let left_out = "not searched: endless (.ignore is a device, not a file), \
                    git-info-exclude (.git/info/exclude is a FIFO, not a file), \
                    gitignore (.gitignore is a FIFO, not a file) and 5 more";
    let found = format!("plain/a.txt\n[{left_out}]");
    let named = |folder: &str, trouble: &str| {
        format!("cannot search: in {folder}, {trouble}; remove it or search another path")
    };
    let grep = |path: &str| json!({"pattern": "needle", "path": path});
    tells(
        "fifo-rules",
        prepare,
        &[
            ("Grep", json!({"pattern": "needle"}), &found, false),
            ("Glob", json!({"pattern": "*.txt"}), &found, false),
            ("Grep", grep("gitignore"), &named("gitignore", ".gitignore is a FIFO, not a file"), true),
            ("Grep", grep("large"), &named("large", ".ignore is larger than 1048576 bytes"), true),
            ("Grep", grep("secret"), &named("secret", ".ignore is on procfs"), true),
            (
                "Grep",
                grep("worktree"),
                &named("worktree", "the commondir that .git leads to is a FIFO, not a file"),
                true,
            ),
            ("Grep", grep("searched-fifo"), "searched-fifo is a FIFO, neither a folder nor a file", true),
            ("Grep", grep("/dev/zero"), "/dev/zero is a device, neither a folder nor a file", true),
        ],
    );
}

#[test]
fn rules_above_the_workspace_are_not_waited_for() {
    let prepare = |root: &Path| {
        put(root, "a.txt", "needle\n");
        fifo(root, "../.ignore");
    };
    let text = "cannot search: in a folder above ., .ignore is a FIFO, not a file; \
                remove it or search another path";
    tells("fifo-above", prepare, &[("Grep", json!({"pattern": "needle"}), text, true)]);
}

#[test]
fn procfs_is_not_searched_however_it_is_reached() {
    let prepare = |root: &Path| {
        put(root, "a.txt", "PATH needle\n");
        symlink("/proc/self", root.join("self")).unwrap();
        symlink("/proc/self/environ", root.join("environ")).unwrap();
    };
    let refused =
        |name: &str| format!("{name} is on procfs, which is not searched: it shows other processes' secrets");
    let grep = |path: &str| json!({"pattern": "PATH", "path": path});
    tells(
        "procfs",
        prepare,
        &[
            ("Grep", json!({"pattern": "PATH"}), "a.txt\n", false),
            ("Glob", json!({"pattern": "**"}), "a.txt\n", false),
            ("Grep", grep("self"), &refused("self"), true),
            ("Grep", grep("environ"), &refused("environ"), true),
            ("Grep", grep("/proc"), &refused("/proc"), true),
            ("Grep", grep("/proc/self/environ"), &refused("/proc/self/environ"), true),
            ("Glob", json!({"pattern": "*", "path": "self"}), &refused("self"), true),
            ("Glob", json!({"pattern": "/proc/self/*"}), &refused("/proc/self"), true),
        ],
    );
}

#[test]
fn links_are_not_followed_but_where_they_are_named() {
    let prepare = |root: &Path| {
        put(root, "d/a.txt", "needle\n");
        symlink(".", root.join("d/here")).unwrap();
        symlink("..", root.join("d/up")).unwrap();
        symlink("circle", root.join("circle")).unwrap();
        symlink("gone", root.join("dangling")).unwrap();
    };
    tells(
        "links",
        prepare,
        &[
            ("Grep", json!({"pattern": "needle"}), "d/a.txt\n", false),
            ("Glob", json!({"pattern": "**/*"}), "d/a.txt\n", false),
            ("Grep", json!({"pattern": "needle", "path": "d/here"}), "d/here/a.txt\n", false),
            (
                "Grep",
                json!({"pattern": "needle", "path": "circle"}),
                "cannot read circle: Too many levels of symbolic links (os error 40)",
                true,
            ),
            (
                "Glob",
                json!({"pattern": "*", "path": "dangling"}),
                "dangling is a symbolic link to gone, which does not exist",
                true,
            ),
        ],
    );
}

#[test]
fn a_folder_that_cannot_be_read_is_counted() {
    if rustix::process::geteuid().is_root() {
        let line = "SKIPPED a_folder_that_cannot_be_read_is_counted: root may read everything\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    let prepare = |root: &Path| {
        use std::os::unix::fs::PermissionsExt;
        put(root, "a.txt", "needle\n");
        put(root, "b.txt", "needle\n");
        touch(&root.join("a.txt"), 1000);
        touch(&root.join("b.txt"), 1000);
        fs::create_dir(root.join("closed")).unwrap();
        for name in ["closed", "b.txt"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o000)).unwrap();
        }
    };
    let denied = "Permission denied (os error 13)";
    let both = format!("a.txt\n[not searched: b.txt ({denied}), closed ({denied})]");
    let folder = format!("a.txt\nb.txt\n[not searched: closed ({denied})]");
    tells(
        "unreadable",
        prepare,
        &[
            ("Grep", json!({"pattern": "needle"}), &both, false),
            ("Glob", json!({"pattern": "/[ab].txt"}), &folder, false),
        ],
    );
}

#[test]
fn immense_files_and_lines_are_searched_in_bounded_memory() {
    let api = Api::OpenAi;
    let prepare = |root: &Path| {
        put(root, "a.txt", "needle\n");
        put(root, "hole.txt", "needle\n".repeat(20_000));
        let hole = OpenOptions::new().write(true).open(root.join("hole.txt")).unwrap();
        hole.set_len(100 << 30).unwrap();
        put(root, "line.json", [&b"needle\n"[..], &vec![b'x'; 17 << 20]].concat());
    };
    let gate = Arc::new(Gate::default());
    let calls = [
        r#"{"pattern":"needle"}"#,
        r#"{"pattern":"no such text"}"#,
        r#"{"pattern":"x","output_mode":"count","multiline":true,"path":"line.json"}"#,
    ];
    let calls = calls.map(|arguments| ("call", "Grep", arguments));
    let ids = ["call_1", "call_2", "call_3"];
    let calls: Vec<_> = ids.iter().zip(calls).map(|(id, (_, tool, text))| (*id, tool, text)).collect();
    let story = Story::new("immense").api(api).prepared(prepare).args(&["-p", "Search."]);
    let story = story.reply(asks(api, "", &calls)).reply(answer(api, "Found.").held_by(&gate));
    let running = story.start();
    gate.wait_until_asked();
    let peak = status_number(Pid::from_raw(running.pid() as i32).unwrap(), "VmHWM");
    gate.open();
    let outcome = running.finish();
    let texts: Vec<String> = results(api, &outcome.body(2)).into_iter().map(|(_, text, _)| text).collect();
    let no_matches =
        "no matches; hidden, ignored and binary files are only searched in a path that names them";
    let expected = vec![
        "a.txt\nhole.txt\nline.json\n".to_owned(),
        format!(
            "[{no_matches}; not searched: line.json (from a line on that is longer than 16777216 bytes)]"
        ),
        format!(
            "[no matches; not searched: line.json (larger than 16777216 bytes, which multiline holds in memory)]"
        ),
    ];
    outcome.code(0).equal(texts, expected);
    // In KiB; the buffer of one line may grow to a half of it while it moves.
    assert!(peak < 60_000, "{peak}");
}

fn touch(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn the_newest_files_come_first_and_equally_old_ones_by_name() {
    let prepare = |root: &Path| {
        for (path, time) in [("old", 10), ("d/b", 20), ("d/a", 20), ("new", 30), ("a", 20), ("z/y", 5)] {
            put(root, path, "");
            touch(&root.join(path), time);
        }
    };
    let text = "new\na\nd/a\nd/b\nold\nz/y\n";
    tells("newest", prepare, &[("Glob", json!({"pattern": "**"}), text, false)]);
}

#[test]
fn two_hundred_files_are_listed_and_more_are_counted() {
    let prepare = |root: &Path| {
        for number in 0..202 {
            let folders: &[&str] = match number {
                200 => &["over", "many"],
                201 => &["many"],
                _ => &["at", "over", "many"],
            };
            for folder in folders {
                let path = format!("{folder}/f{number:03}");
                put(root, &path, "");
                touch(&root.join(path), 1000 - number);
            }
        }
        for number in 0..150 {
            let path = format!("long/{number:03}{}", "x".repeat(240));
            put(root, &path, "");
            touch(&root.join(path), 1000 - number);
        }
    };
    let names = |folder: &str| (0..200).map(|number| format!("{folder}/f{number:03}\n")).collect::<String>();
    let glob = |path: &str| json!({"pattern": "*", "path": path});
    let more = |count: usize| format!("[{count} older ones match too: give a narrower pattern or a path]");
    // 249 bytes are a line, and 30,000 the limit.
    let long: String = (0..120).map(|number| format!("long/{number:03}{}\n", "x".repeat(240))).collect();
    tells(
        "two-hundred",
        prepare,
        &[
            ("Glob", glob("at"), &names("at"), false),
            ("Glob", glob("over"), &(names("over") + &more(1)), false),
            ("Glob", glob("many"), &(names("many") + &more(2)), false),
            ("Glob", glob("long"), &(long + &more(30)), false),
        ],
    );
}

#[test]
fn lines_are_counted_cut_and_gone_on_with() {
    let prepare = |root: &Path| {
        put(root, "a.txt", "1\n2\n3\n");
        put(root, "b.txt", "4\n");
        // 30 bytes are a line of the result.
        put(root, "at.log", format!("{:022}\n", 0).repeat(1000));
        put(root, "over.log", format!("{:020}\n", 0).repeat(1001));
    };
    let grep = |more: Value| {
        let mut arguments =
            json!({"pattern": "[0-9]", "output_mode": "content", "-n": false, "glob": "*.txt"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let follow = |shown: &str, next: &str| {
        format!("[lines {shown} shown, more follow: give {next}, or a narrower pattern, path or glob]")
    };
    let all = "a.txt:1\na.txt:2\na.txt:3\nb.txt:4\n";
    let [at, over] = [("at.log", 22), ("over.log", 20)]
        .map(|(name, width)| format!("{name}:{:0width$}\n", 0).repeat(1000));
    let cut = follow("1-1000", "offset=1000");
    tells(
        "limits",
        prepare,
        &[
            ("Grep", grep(json!({})), all, false),
            ("Grep", grep(json!({"head_limit": 4})), all, false),
            ("Grep", grep(json!({"head_limit": 0})), all, false),
            (
                "Grep",
                grep(json!({"head_limit": 3})),
                &format!("{}{}", &all[..24], follow("1-3", "offset=3 and head_limit=3")),
                false,
            ),
            ("Grep", grep(json!({"head_limit": 3, "offset": 3})), &all[24..], false),
            (
                "Grep",
                grep(json!({"head_limit": 1, "offset": 1})),
                &format!("{}{}", &all[8..16], follow("2-2", "offset=2 and head_limit=1")),
                false,
            ),
            ("Grep", grep(json!({"offset": 4})), "[no matches; a smaller offset may show some]", false),
            (
                "Grep",
                json!({"pattern": "[0-9]", "glob": "*.txt", "head_limit": 1}),
                &format!("a.txt\n{}", follow("1-1", "offset=1 and head_limit=1")),
                false,
            ),
            ("Grep", grep(json!({"glob": "at.log"})), &at, false),
            ("Grep", grep(json!({"glob": "over.log"})), &format!("{over}{cut}"), false),
        ],
    );
}

#[test]
fn long_lines_are_shortened_around_their_match() {
    let prepare = |root: &Path| {
        put(root, "a.js", format!("needle{}\n", "x".repeat(494)));
        put(root, "b.js", format!("needle{}\n", "x".repeat(495)));
        put(root, "c.js", format!("{}needle{}\n", "\u{e9}".repeat(1000), "\u{e9}".repeat(1000)));
    };
    let x = |count: usize| "x".repeat(count);
    let e = |count: usize| "\u{e9}".repeat(count);
    let text = format!(
        "a.js:1:needle{}\nb.js:1:needle{}…\nc.js:1:…{}needle{}…\n[lines longer than 500 bytes are shortened at …]",
        x(494),
        x(494),
        e(50),
        e(197)
    );
    let arguments = json!({"pattern": "needle", "output_mode": "content"});
    tells("long-lines", prepare, &[("Grep", arguments, &text, false)]);
}

#[test]
fn slips_in_arguments_are_taken_as_meant() {
    let prepare = |root: &Path| {
        put(root, "src/a.rs", "one\nNeedle\nthree\n");
        put(root, "src/b.tsx", "needle\n");
        for path in ["src/a.rs", "src/b.tsx"] {
            touch(&root.join(path), 1000);
        }
        put(root, ".github/workflows/ci.yml", "");
        put(root, ".git/config", "");
    };
    let content = |more: Value| {
        let mut arguments = json!({"query": "needle", "mode": "content", "ignore_case": "true"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let around = "src/a.rs-1-one\nsrc/a.rs:2:Needle\nsrc/a.rs-3-three\n--\nsrc/b.tsx:1:needle\n";
    tells(
        "slips",
        prepare,
        &[
            ("Grep", content(json!({"context": "1"})), around, false),
            ("Grep", content(json!({"-A": 1.0, "-B": 1, "head_limit": null})), around, false),
            (
                "Grep",
                content(json!({"-C": 7, "-B": 0, "-A": "0", "dir": "./src/"})),
                "src/a.rs:2:Needle\nsrc/b.tsx:1:needle\n",
                false,
            ),
            (
                "Grep",
                json!({"regex": "needle", "case_insensitive": true, "include": "*.rs, *.ts"}),
                "src/a.rs\n",
                false,
            ),
            (
                "Grep",
                json!({"pattern": "needle", "type": "rust,ts", "multiline": false}),
                "src/b.tsx\n",
                false,
            ),
            ("Grep", json!({"pattern": "needle", "glob": "./src/*.tsx"}), "src/b.tsx\n", false),
            ("Glob", json!({"pattern": "./src/*.rs"}), "src/a.rs\n", false),
            ("Glob", json!({"glob": "src/", "directory": "."}), "src/a.rs\nsrc/b.tsx\n", false),
            ("Glob", json!({"pattern": "../src/*.rs", "path": "src"}), "src/../src/a.rs\n", false),
            ("Glob", json!({"pattern": ".github/**"}), ".github/workflows/ci.yml\n", false),
            ("Glob", json!({"pattern": "**/.*/**"}), ".github/workflows/ci.yml\n", false),
            ("Glob", json!({"pattern": ".git/*"}), ".git/config\n", false),
        ],
    );
}

#[test]
fn what_is_wrong_is_told_with_the_remedy() {
    let prepare = |root: &Path| {
        put(root, "src/main.rs", "needle\n");
    };
    let plain = "in a glob * matches within a name, ** across folders, {a,b} either, [ab] one of these letters; \
                 \\ before one of * ? [ ] { } \\ makes it plain";
    let regex = "The pattern is a Rust regex, without look-around and back-references; \
                 \\ before one of ( ) [ ] { } . * + ? | ^ $ \\ makes it plain";
    let class = format!("error parsing glob '[a': unclosed character class; missing ']'; {plain}");
    let parse = format!("regex parse error:\n    (?:(needle)\n    ^\nerror: unclosed group\n{regex}");
    let grep = |name: &str, value: &str| json!({"pattern": "needle", name: value});
    tells(
        "wrong",
        prepare,
        &[
            ("Grep", json!({"pattern": "(needle"}), &parse, true),
            (
                "Grep",
                json!({"pattern": "a\\nb"}),
                "the literal \"\\n\" is not allowed in a regex: to match across lines, set multiline to true",
                true,
            ),
            ("Grep", grep("glob", "[a"), &class, true),
            ("Glob", json!({"pattern": "[a"}), &class, true),
            (
                "Grep",
                grep("type", "tsx"),
                "there is no file type \"tsx\"; near ones are: ts, typescript; or use glob, such as *.tsx",
                true,
            ),
            ("Grep", grep("type", "zzzz"), "there is no file type \"zzzz\"; use glob, such as *.zzzz", true),
            ("Grep", grep("path", "scr"), "there is no file scr; the nearest names in . are: src/", true),
            (
                "Glob",
                json!({"pattern": "*", "path": "src/main.rs"}),
                "src/main.rs is a file; path names the folder to look in",
                true,
            ),
            ("Glob", json!({"pattern": " "}), "the pattern is empty; ** lists all files", true),
            (
                "Grep",
                json!({"pattern": "needle", "path": "src", "glob": "src/*.py"}),
                "[no matches; glob is relative to the workspace, not to path]",
                false,
            ),
            (
                "Glob",
                json!({"pattern": "*.py"}),
                "[no files match *.py; ignored and hidden ones are only looked for in a path that names them]",
                false,
            ),
        ],
    );
}

/// A pattern that fits a folder alone was answered as one that fits nothing.
#[test]
fn folders_and_links_that_a_pattern_fits_are_told_of() {
    let prepare = |root: &Path| {
        put(root, "src/db/migrations/1.sql", "");
        fs::create_dir_all(root.join("empty/inside")).unwrap();
        symlink("src/db/migrations/1.sql", root.join("CLAUDE.md")).unwrap();
    };
    let folders = |pattern: &str, name: &str| {
        format!(
            "[no files match {pattern}, only folders such as {name}: {pattern}/** lists the files in them]"
        )
    };
    let glob = |pattern: &str| json!({"pattern": pattern});
    tells(
        "fitting-folders",
        prepare,
        &[
            ("Glob", glob("**/migrations"), &folders("**/migrations", "src/db/migrations"), false),
            ("Glob", glob("src"), &folders("src", "src"), false),
            ("Glob", glob("src/**"), "src/db/migrations/1.sql\n", false),
            (
                "Glob",
                glob("empty/**"),
                "[no files match empty/**; ignored and hidden ones are only looked for in a path that names them]",
                false,
            ),
            (
                "Glob",
                glob("**/CLAUDE.md"),
                "[no files match **/CLAUDE.md, only symbolic links such as CLAUDE.md, which are not listed]",
                false,
            ),
        ],
    );
}

/// An absolute glob fitted nothing, and a space in a name made two globs of it.
#[test]
fn a_glob_is_taken_as_meant_or_told_of() {
    let api = Api::OpenAi;
    let prepare = |root: &Path| {
        put(root, "src/a b.txt", "needle\n");
        put(root, "c.md", "needle\n");
    };
    let story = Story::new("meant globs").api(api).prepared(prepare).args(&["-p", "Search."]).told_folder();
    let glob = |glob: &str| json!({"pattern": "needle", "glob": glob, "output_mode": "Content"}).to_string();
    let calls = [
        glob(&format!("{FOLDER}/src/**")),
        glob(&format!("!{FOLDER}/src/**")),
        glob("a b.txt"),
        glob("a c.md"),
        glob("/elsewhere/*.md"),
    ];
    let ids = ["call_1", "call_2", "call_3", "call_4", "call_5"];
    let calls: Vec<_> = ids.iter().zip(&calls).map(|(id, text)| (*id, "Grep", &**text)).collect();
    let outcome = story.reply(asks(api, "", &calls)).reply(answer(api, "Found.")).run();
    let texts: Vec<String> = results(api, &outcome.body(2)).into_iter().map(|(_, text, _)| text).collect();
    let expected = [
        "src/a b.txt:1:needle\n",
        "c.md:1:needle\n",
        "src/a b.txt:1:needle\n",
        "[no matches; glob is taken for one name with spaces in it: put commas between several]",
        "[no matches; glob is relative to the workspace: give a folder outside of it as path]",
    ];
    outcome.code(0).equal(texts, expected.map(str::to_owned).to_vec());
}

#[test]
fn names_are_shown_on_one_line_and_nothing_of_the_user_is_read() {
    let prepare = |root: &Path| {
        put(root, "two\nlines", "needle\n");
        put(root, "a.txt", "needle\n");
        put(root, "../home/.config/git/ignore", "*.txt\n");
        put(root, "../home/.gitconfig", "[core]\nexcludesFile = ~/.config/git/ignore\n");
        put(root, "../home/.ripgreprc", "--no-ignore\n");
        fs::create_dir(root.join(".git")).unwrap();
    };
    let text = "a.txt\n\"two\\nlines\"\n";
    tells("names", prepare, &[("Grep", json!({"pattern": "needle"}), text, false)]);
}
