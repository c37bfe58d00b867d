//! README is the manual: what it lists is what the program has, and its commands run.
//!
//! Tables and help are compared with the program; `BLESS=1` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use serde_json::Value;

use crate::story::Story;
use crate::talk::{BOTH, answer, asks, last_text, results};

fn cotter(arguments: &[&str]) -> String {
    // Bash is listed where a shell is found, so PATH has to be there.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let output =
        Command::new(crate::story::program()).args(arguments).env_clear().env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// README with the text after a marker replaced up to the next blank line that ends a block, as the
/// program would write it. `BLESS=1 cargo test readme` writes the file anew.
fn with_block(readme: &str, marker: &str, block: &str) -> String {
    let start = readme.find(marker).unwrap_or_else(|| panic!("README has no {marker}")) + marker.len() + 1;
    let rest = &readme[start..];
    let end = match rest.starts_with("```") {
        true => rest.find("\n```\n").map(|at| at + "\n```\n".len()).unwrap(),
        // A table ends with its last line; an empty place has none yet.
        false => rest.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum(),
    };
    format!("{}{block}{}", &readme[..start], &rest[end..])
}

/// Held while README is written anew.
static BLESSING: Mutex<()> = Mutex::new(());

fn blesses() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// Writes this table behind its marker if `BLESS` asks for it; else looks at what is written there.
pub fn compare_or_bless(marker: &str, table: &str, compare: impl FnOnce(&str)) {
    let _held = BLESSING.lock().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    if blesses() {
        return fs::write(&path, with_block(&readme, marker, table)).unwrap();
    }
    let (_, rest) = readme.split_once(marker).unwrap_or_else(|| panic!("README has no {marker}"));
    let lines = rest[1..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    compare(&lines.collect::<String>());
}

/// Where the flags of `claude` stand.
const CLAUDE: &str = "<!-- claude -->";

/// The rows under a heading of the manual page: name and text.
fn manual_rows(heading: &str) -> Vec<(String, String)> {
    let page = cotter(&["--man"]);
    let section = page.split(&format!(".SH {heading}\n")).nth(1).unwrap().split(".SH ").next().unwrap();
    let plain = |text: &str| text.replace("\\-", "-").replace("\\e", "\\");
    section
        .split(".TP\n.B ")
        .skip(1)
        .map(|row| {
            let (name, text) = row.split_once('\n').unwrap();
            (plain(name), plain(text.trim_end()))
        })
        .collect()
}

/// What may run that no rule is about, a column for each kind of tool that the mode has a say in.
fn permissions() -> String {
    let mut table = String::new();
    for (mode, text) in manual_rows("PERMISSIONS") {
        let columns: Vec<_> =
            text.split("; ").skip(1).map(|column| column.split_once(": ").unwrap()).collect();
        if table.is_empty() {
            let heads: String = columns.iter().map(|(head, _)| format!(" {head} |")).collect();
            table = format!("| mode |{heads}\n|---|{}\n", "---|".repeat(columns.len()));
        }
        let cells: String = columns.iter().map(|(_, cell)| format!(" {cell} |")).collect();
        table.push_str(&format!("| {mode} |{cells}\n"));
    }
    table
}

#[test]
fn the_lists_in_readme_are_what_the_program_says() {
    let _held = BLESSING.lock().unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let mut expected =
        with_block(&readme, "<!-- help -->", &format!("```text\n{}```\n", cotter(&["--help"])));
    let table = |head: &str, rows: Vec<(String, String)>| {
        let rows: String = rows.iter().map(|(name, text)| format!("| {name} | {text} |\n")).collect();
        format!("| {head} | |\n|---|---|\n{rows}")
    };
    let variables = manual_rows("ENVIRONMENT");
    let variables =
        variables.into_iter().map(|(names, text)| (format!("`{}`", names.replace(", ", "`, `")), text));
    expected = with_block(&expected, "<!-- environment -->", &table("variable", variables.collect()));
    expected = with_block(&expected, "<!-- exit codes -->", &table("code", manual_rows("EXIT STATUS")));
    let flags = manual_rows("FLAGS OF CLAUDE");
    let flags = flags.into_iter().map(|(names, text)| (format!("`{}`", names.replace(", ", "`, `")), text));
    expected = with_block(&expected, CLAUDE, &table("flag of claude", flags.collect()));
    let tools = cotter(&["--list-tools"]);
    assert_eq!(tools.lines().count(), 11, "README lists every tool there is");
    let tools = tools.lines().map(|line| {
        let tool: Value = serde_json::from_str(line).unwrap();
        let schema = &tool["input_schema"];
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let arguments: Vec<String> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(|name| format!("`{name}{}`", if required.contains(&name.as_str()) { "" } else { "?" }))
            .collect();
        (format!("`{}`", tool["name"].as_str().unwrap()), arguments.join(", "))
    });
    expected = with_block(&expected, "<!-- tools -->", &table("tool", tools.collect()));
    expected = with_block(&expected, "<!-- permissions -->", &permissions());
    if blesses() {
        fs::write(&path, &expected).unwrap();
    } else {
        assert_eq!(readme, expected, "README is out of date: run BLESS=1 cargo test readme");
    }
}

/// The text of the first block of this language behind a marker.
pub fn block_behind<'a>(readme: &'a str, marker: &str, language: &str) -> &'a str {
    let rest = &readme[readme.find(marker).unwrap_or_else(|| panic!("README has no {marker}"))..];
    let fence = format!("```{language}\n");
    let start = rest.find(&fence).unwrap_or_else(|| panic!("no {language} behind {marker}")) + fence.len();
    &rest[start..start + rest[start..].find("```\n").unwrap()]
}

#[test]
fn the_skill_in_readme_does_what_is_shown() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let shown = |language| block_behind(&readme, "<!-- skill -->", language);
    let prompt = shown("sh").strip_prefix("cotter -p \"").unwrap().strip_suffix("\"\n").unwrap();
    for api in BOTH {
        let script = r#"{"command": "sh .claude/skills/notes/changes.sh v1.2"}"#;
        let write = r#"{"file_path": "CHANGELOG.md", "content": "- one\n"}"#;
        let outcome = Story::new("readme")
            .api(api)
            .args(&["-p", prompt])
            .files(&[
                (".claude/skills/notes/SKILL.md", shown("markdown")),
                (".claude/skills/notes/changes.sh", "echo \"since $1: one\"\n"),
            ])
            .reply(asks(api, "", &[("call_1", "Bash", script), ("call_2", "Write", write)]))
            .reply(answer(api, "Done."))
            .run();
        outcome.code(0).stdout("Done.\n").stderr("").file("CHANGELOG.md", "- one\n");
        outcome.equal(last_text(&outcome.body(1)), shown("text").trim_end().to_owned());
        outcome.equal(results(api, &outcome.body(2))[0].1.as_str(), "since v1.2: one");
    }
}

#[test]
fn every_flag_that_readme_mentions_exists() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let help = cotter(&["--help"]);
    // The table of another program's flags speaks of many that there are not.
    let readme = with_block(&readme, CLAUDE, "");
    let words = readme.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    let flags: Vec<&str> = words.filter(|word| word.starts_with("--") && word.len() > 3).collect();
    assert!(flags.len() > 50, "README speaks of flags: {flags:?}");
    // Those of git, of browsers, of GNU parallel and of Docker.
    const OF_OTHERS: [&str; 13] = [
        "--git-common-dir",
        "--no-sandbox",
        "--memfree",
        "--wd",
        "--cleanup",
        "--sshdelay",
        "--from",
        "--init",
        "--network",
        "--read-only",
        "--rm",
        "--tmpfs",
        "--user",
    ];
    for flag in flags.into_iter().filter(|flag| !OF_OTHERS.contains(flag)) {
        assert!(help.contains(flag), "README mentions {flag}, which --help does not");
    }
}

#[test]
fn the_make_targets_that_readme_names_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    for (file, least) in [("README.md", 10), ("bench/README.md", 4)] {
        let readme = fs::read_to_string(root.join(file)).unwrap();
        // As code within a line, and at the start of a line with a comment.
        let lines =
            readme.lines().filter(|line| line.contains(" # ")).filter_map(|line| line.strip_prefix("make "));
        let named = readme.split("`make ").skip(1).chain(lines);
        let targets: BTreeSet<&str> =
            named.map(|text| text.split([' ', '`', '\n']).next().unwrap()).collect();
        assert!(targets.len() >= least, "{file} names {targets:?}");
        for target in targets {
            assert!(makefile.contains(&format!("\n{target}:")), "{file}: there is no make {target}");
        }
    }
}
