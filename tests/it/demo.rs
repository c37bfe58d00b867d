//! What `make demo` shows: the main job on a recording, with a file that is really read.
//!
//! It runs the same command, offline and without a key, on the files that the repository holds.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the demo's command, as the Makefile has it, in a copy of its folder.
fn demo(apple: &str) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let command = makefile.split("--replay recording").nth(1).unwrap().split("</dev/null").next().unwrap();
    let command = format!("--replay recording{}", command.replace("\\\n", " "));
    let folder = crate::story::new_folder("demo", &["recording"]);
    for entry in fs::read_dir(root.join("fixtures/demo/recording")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), folder.join("recording").join(entry.file_name())).unwrap();
    }
    fs::write(folder.join("apple.py"), apple).unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("exec \"$0\" {command}"), crate::story::program()])
        .current_dir(&folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    fs::remove_dir_all(folder).unwrap();
    output
}

fn apple() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/demo/apple.py")).unwrap()
}

#[test]
fn the_demo_prints_what_the_file_holds() {
    let output = demo(&apple());
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for line in apple().lines() {
        assert!(stdout.contains(line), "{stdout:?} lacks {line:?}");
    }
}

#[test]
fn a_changed_file_ends_the_demo_with_the_place_and_both_values() {
    let output = demo(&apple().replace("red", "green"));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(9), Vec::new()), "{stderr}");
    assert!(
        stderr.contains("messages[2].content") && stderr.contains("red") && stderr.contains("green"),
        "{stderr}"
    );
}
