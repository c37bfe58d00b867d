//! What is changed while the program runs: a workspace that is gone, and a program in whose place something else
//! lies.

use super::*;

/// Outside of the sandbox a command can remove the workspace.
const UNCONTAINED: Launch = Launch {
    script: r#"echo --dangerously-skip-permissions >../flags; as_user="env COTTER_CONFIG=../flags"; run"#,
    after: ".",
};

/// A program of the workspace is a tool.
const WITH_A_PROGRAM: Launch = Launch {
    script: r#"echo --tool=probe >../flags; as_user="env COTTER_CONFIG=../flags"; run"#,
    after: ".",
};

#[track_caller]
fn tells(stage: &Stage, launch: &Launch, cells: &[Cell]) {
    let told = tell(stage, launch, cells);
    let differences = cells.iter().zip(&told).filter(|(cell, told)| cell.told != **told);
    let differences: Vec<String> = differences.map(|(cell, told)| difference(cell, told)).collect();
    assert!(differences.is_empty() && told.len() == cells.len(), "{}", differences.join("\n"));
}

#[test]
fn a_workspace_that_is_gone_is_said_to_be_gone() {
    let stage = Stage::new("gone");
    let gone = || failed("the current folder is gone: No such file or directory (os error 2)");
    tells(
        &stage,
        &UNCONTAINED,
        &[
            cell("Bash", ok("(no output)")).with("command", "rm -r \"$PWD\""),
            cell("Read", gone()),
            cell("Write", gone()),
            cell("Edit", gone()),
            cell("Glob", gone()),
            cell("Glob", gone()).with("path", "."),
            cell("Grep", gone()),
            cell("Grep", gone()).with("path", "."),
            cell("Bash", gone()),
            cell("Bash", gone()).with("run_in_background", true),
        ],
    );
    fs::create_dir_all(stage.path("")).unwrap();
}

#[test]
fn a_program_in_whose_place_something_else_lies_is_not_run() {
    const GONE: &str =
        "it or the interpreter in its first line is gone (No such file or directory (os error 2))";
    const FORMAT: &str = "Exec format error (os error 8)";
    let not_started = |why: &str| failed(&format!("the program cannot be started: {why}"));
    let stage = Stage::new("replaced");
    stage.write(
        "probe.json",
        r#"{"name": "probe", "description": "Probes.", "input_schema": {"type": "object"}}"#,
    );
    stage.write("other", "#!/bin/sh\necho other\n");
    stage.write("probe", "#!/bin/sh\necho probe\n");
    for name in ["probe", "other"] {
        fs::set_permissions(stage.path(name), Permissions::from_mode(0o700)).unwrap();
    }
    let mut cells = vec![cell("probe", ok("probe\n"))];
    for (command, told) in [
        ("ln -sf other probe", ok("other\n")),
        ("chmod 600 other", not_started("it is not executable")),
        ("ln -sf gone probe", not_started(GONE)),
        ("ln -sf probe probe", not_started("Too many levels of symbolic links (os error 40)")),
        ("ln -sf /dev/null probe", not_started("it is a device, not a file")),
        ("rm probe", not_started(GONE)),
        ("mkfifo -m 700 probe", not_started("it is a FIFO, not a file")),
        ("rm probe; mkdir probe", not_started("it is a directory, not a file")),
        ("rmdir probe; printf '#!/no/interpreter' >probe; chmod 700 probe", not_started(GONE)),
        ("printf 'no program\\n' >probe", not_started(FORMAT)),
        ("printf '\\177ELF\\0' >probe", not_started(FORMAT)),
        ("printf '' >probe", not_started(FORMAT)),
        (
            "printf '#!/bin/sh\\nprintf \"caf\\\\351\\\\0\\\\r\\\\n\"\\n' >probe",
            ok("caf\u{fffd}\u{fffd}\r\n"),
        ),
    ] {
        cells.push(cell("Bash", ok("(no output)")).with("command", command));
        cells.push(cell("probe", told));
    }
    tells(&stage, &WITH_A_PROGRAM, &cells);
}
