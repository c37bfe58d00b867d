//! `./your_program.sh` from anywhere: it builds and then is the program, with its arguments, standard
//! input, folder, output and exit code. Cargo is a stand-in here, so that nothing is built.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::check::Api;
use crate::story::Story;
use crate::talk::{answer, asks, last_text, results};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/your_program.sh");

/// Takes standard input if it gets it, talks on both streams, and notes its arguments.
const CARGO: &str =
    "#!/bin/sh\ncat\necho built\necho building >&2\nprintf '%s\\n' \"$@\" >\"$CARGO_TARGET_DIR/arguments\"\n";

/// A target folder with the binary, and a folder with a cargo that does as the script says.
struct Build {
    target: PathBuf,
    bin: PathBuf,
}

impl Build {
    fn new(name: &str, cargo: &str) -> Build {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("your program {name}"));
        let (target, bin) = (root.join("target"), root.join("bin"));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(target.join("release")).unwrap();
        fs::create_dir_all(&bin).unwrap();
        symlink(crate::story::program(), target.join("release/cotter")).unwrap();
        fs::write(bin.join("cargo"), cargo).unwrap();
        fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        Build { target, bin }
    }

    /// A story of the script, with arguments that come before those of the story.
    fn story(&self, api: Api) -> Story {
        let path = format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap());
        let target = self.target.to_str().unwrap();
        let story = Story::new("your program").api(api).program(Path::new(SCRIPT));
        story.env("PATH", &path).env("CARGO_TARGET_DIR", target)
    }

    fn arguments(&self) -> String {
        fs::read_to_string(self.target.join("arguments")).unwrap()
    }
}

#[test]
fn it_builds_quietly_and_runs_the_whole_job_in_the_callers_folder() {
    let build = Build::new("job", CARGO);
    let story = build.story(Api::OpenRouter).exchange("fixtures/your-program").files(&[("old.txt", "old\n")]);
    let outcome = story.args(&["-p", "Greet politely in app/main.py and remove old.txt."]).run();
    outcome.code(0).stdout("The greeting is in app/main.py, and old.txt is gone.\n");
    outcome.stderr("built\nbuilding\n").request_count(4);
    let program = "def greet(name):\n    return f\"Hello, {name}!\"\n\nprint(greet(\"Ann\"))\n";
    outcome.file("app/main.py", program).no_file("old.txt");
    let expected = [
        ("call_q3VbT0fXKe7LmZr9sYw2NcHd", "created app/main.py (63 bytes)"),
        ("call_W8pJxG5uAa1oTk6iRy4FvBzQ", "edited app/main.py (1 replacement at line 2)"),
        ("call_h2CsD7nEl9PqU3gMj0OtSxIw", "1\n."),
    ];
    let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned(), false));
    outcome.equal(results(Api::OpenRouter, &outcome.body(4)), expected.to_vec());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let arguments = format!("build\n--release\n--locked\n--quiet\n--manifest-path\n{manifest}\n");
    outcome.equal(build.arguments(), arguments);
}

#[test]
fn arguments_reach_the_program_as_they_are() {
    let build = Build::new("arguments", CARGO);
    let prompt = "  two  blanks, 'quotes', \"more\", $HOME `id` * \\ and\na line ";
    let outcome =
        build.story(Api::Anthropic).reply(answer(Api::Anthropic, "Yes.")).args(&["-p", prompt]).run();
    outcome.code(0).stdout("Yes.\n");
    outcome.equal(last_text(&outcome.body(1)), prompt.to_owned());
}

#[test]
fn standard_input_is_the_programs_and_not_the_builds() {
    let build = Build::new("stdin", CARGO);
    let story = build.story(Api::Anthropic).reply(answer(Api::Anthropic, "Two lines."));
    let outcome = story.stdin("one\ntwo\n").args(&["-p", "Count."]).run();
    outcome.code(0).stdout("Two lines.\n").stderr("built\nbuilding\n");
    outcome.equal(last_text(&outcome.body(1)), "Count.\n\n<stdin>\none\ntwo\n</stdin>".to_owned());
}

#[test]
fn the_exit_code_is_the_programs() {
    let build = Build::new("code", CARGO);
    let call = ("call_1", "get_current_datetime", "{}");
    let story = build.story(Api::Anthropic).reply(asks(Api::Anthropic, "", &[call]));
    let outcome = story.args(&["-p", "What day is it?", "--max-turns", "1"]).run();
    outcome.code(20).stdout("");
    build.story(Api::Anthropic).args(&["--no-such-flag"]).run().code(2).stdout("").request_count(0);
}

#[test]
fn a_single_step_prints_the_files_bytes() {
    let build = Build::new("single step", CARGO);
    let story = build.story(Api::OpenRouter).exchange("fixtures/single-step/document");
    let bytes = b"apple = 'caf\xe9'\r\nno line end";
    let prompt = "What is the content of apple.py? Print exact file contents without backticks.";
    let outcome = story.file("apple.py", bytes).args(&["-p", prompt, "--single-step"]).run();
    outcome.code(0).stdout(bytes).request_count(1);
    outcome.equal(&outcome.body(1)["messages"][1]["content"], &json!(prompt));
}

#[test]
fn a_build_that_fails_is_the_end() {
    let build = Build::new("failure", "#!/bin/sh\necho 'error: no such crate' >&2\nexit 101\n");
    let outcome = build.story(Api::Anthropic).args(&["-p", "Anything."]).run();
    outcome.code(101).stdout("").stderr("error: no such crate\n").request_count(0);
}

#[test]
fn an_edit_wants_the_exact_text_and_only_one_place() {
    let build = Build::new("edit", CARGO);
    let edit = |old: &str, new: &str| {
        json!({"file_path": "list.txt", "old_string": old, "new_string": new}).to_string()
    };
    let arguments = [edit("pear", "plum"), edit("Pear\n", "plum\n"), edit("b: pear", "b: plum")];
    let calls = [
        ("call_1", "Edit", &*arguments[0]),
        ("call_2", "Edit", &*arguments[1]),
        ("call_3", "Edit", &*arguments[2]),
    ];
    let api = Api::OpenRouter;
    let story = build.story(api).file("list.txt", b"a: pear\r\nb: pear\r\n\xe9");
    let outcome = story.reply(asks(api, "", &calls)).reply(answer(api, "Done.")).args(&["-p", "Edit."]).run();
    outcome.code(0).stdout("Done.\n").file("list.txt", b"a: pear\r\nb: plum\r\n\xe9");
    let expected = [
        (
            "call_1",
            "old_string occurs 2 times in list.txt, at lines 1, 2: add surrounding lines to make it unique, or \
             set replace_all",
            true,
        ),
        (
            "call_2",
            "old_string does not occur in list.txt; the nearest place is line 1:\na: pear\nline 1 is not what \
             old_string has: Pear",
            true,
        ),
        ("call_3", "edited list.txt (1 replacement at line 2)", false),
    ];
    let expected = expected.map(|(id, text, is_error)| (id.to_owned(), text.to_owned(), is_error));
    outcome.equal(results(api, &outcome.body(2)), expected.to_vec());
}
