//! The tools: what each is called, what it takes, and the one `match` that runs it.
//!
//! A failure in here is text for the model ([`Outcome::error`]), never the end of the run.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::alarm::Alarm;
use crate::conversation::Image;
use crate::skills::Place;

pub mod access;
pub mod arguments;
pub mod asking;
pub mod background;
pub mod bash;
pub mod bash_output;
pub mod blocks;
pub mod command;
pub mod datetime;
pub mod edit;
pub mod executables;
pub mod glob;
pub mod grep;
pub mod image;
pub mod kill_shell;
pub mod lines;
pub mod magic;
pub mod matches;
pub mod nearest;
pub mod opening;
pub mod pieces;
pub mod places;
pub mod program;
pub mod quotes;
pub mod rates;
pub mod read;
pub mod replacement;
pub mod requests;
pub mod rules;
pub mod schema;
pub mod skill;
pub mod slips;
pub mod temporary;
pub mod terminal;
pub mod toolbox;
pub mod truncate;
pub mod walk;
pub mod window;
pub mod write;

/// What a tool is called, what the model is told of it, and the JSON Schema of its arguments.
#[derive(Debug)]
pub struct Spec {
    /// The name the model calls it by.
    pub name: &'static str,
    /// Prose for the model.
    pub description: &'static str,
    /// The names of its arguments, in the order of the schema: each call is read against them, and no call has the
    /// schema read for it.
    pub arguments: &'static [&'static str],
    /// A JSON Schema object, as compact JSON text.
    pub schema: &'static str,
}

impl Spec {
    /// A tool that is made while cotter runs. It is known from the first request to the last, as the built-in ones
    /// are, so that freeing what is told of it would change nothing.
    pub fn leaked(name: String, description: String, schema: &Value) -> &'static Spec {
        let text = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        let properties = schema["properties"].as_object().into_iter().flatten();
        let arguments: Vec<&'static str> = properties.map(|(name, _)| text(name.clone())).collect();
        Box::leak(Box::new(Spec {
            name: text(name),
            description: text(description),
            arguments: Vec::leak(arguments),
            schema: text(schema.to_string()),
        }))
    }
}

/// Every tool there is, in the order in which they are offered.
pub fn all() -> &'static [Spec] {
    const ALL: &[Spec] = &[
        read::SPEC,
        write::SPEC,
        edit::SPEC,
        glob::SPEC,
        grep::SPEC,
        bash::SPEC,
        bash_output::SPEC,
        kill_shell::SPEC,
        datetime::NOW,
        datetime::ADD,
        rates::SPEC,
    ];
    ALL
}

/// Whether a tool writes or runs something, and so belongs into the worker.
pub fn belongs_to_worker(name: &str) -> bool {
    matches!(name, "Write" | "Edit") || needs_shell(name)
}

/// Whether a tool is of use only where there is a shell. These are offered together: without the other two
/// a shell in the background could be started and neither seen nor ended.
pub fn needs_shell(name: &str) -> bool {
    matches!(name, "Bash" | "BashOutput" | "KillShell")
}

/// What a call came to, as the model reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The text of the result.
    pub text: String,
    /// What is shown beside the text; none where the call failed.
    pub images: Vec<Image>,
    /// Whether the text says why the call failed.
    pub is_error: bool,
}

impl Outcome {
    /// A result of a call that did what was asked.
    pub fn ok(text: impl Into<String>) -> Outcome {
        Outcome { text: text.into(), images: Vec::new(), is_error: false }
    }

    /// A result that shows images, which the text names.
    pub fn with_images(text: impl Into<String>, images: Vec<Image>) -> Outcome {
        Outcome { text: text.into(), images, is_error: false }
    }

    /// A result that says why the call failed and what to do about it. It may quote a NUL of the call's, which is
    /// shown as `\0`: many servers refuse a request that holds one.
    pub fn error(text: impl Into<String>) -> Outcome {
        Outcome { text: text.into().replace('\0', "\\0"), images: Vec::new(), is_error: true }
    }
}

/// Where tools work: relative paths start at `root`, and results name paths below it relatively.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// The absolute path of the current folder.
    pub root: PathBuf,
    /// The private temporary folder of what tools run, once there is one. Paths call it `$TMPDIR`.
    pub private: Option<PathBuf>,
    /// Folders elsewhere that are written by a variable: those of the user's own skills.
    pub places: Vec<Place>,
}

/// What of a path follows the name of a folder elsewhere, and does not lead out of that. A home may be written in
/// every way that a shell knows.
fn in_place<'a>(path: &'a str, place: &Place) -> Option<&'a str> {
    let (variable, inner) = place.shown.strip_prefix('$')?.split_once('/')?;
    let named = [format!("${variable}/"), format!("${{{variable}}}/")];
    let behind = named.iter().find_map(|name| path.strip_prefix(name.as_str()));
    let behind = behind.or_else(|| path.strip_prefix("~/").filter(|_| variable == "HOME"))?;
    let rest = behind.strip_prefix(inner)?;
    let is_whole = rest.is_empty() || rest.starts_with('/');
    (is_whole && !climbs(rest)).then(|| rest.trim_start_matches('/'))
}

/// How the private folder is written.
const PRIVATE: &str = "$TMPDIR";
/// How it may be written too.
const PRIVATE_IN_BRACES: &str = "${TMPDIR}";

/// What follows `$TMPDIR` in a path that leads into the private folder, and not out of it again.
pub fn in_private_folder(path: &str) -> Option<&str> {
    behind_private(path).filter(|rest| !climbs(rest)).map(|rest| rest.trim_start_matches('/'))
}

/// Whether a path begins in the private folder and may leave it again.
pub fn leaves_private_folder(path: &str) -> bool {
    behind_private(path).is_some_and(climbs)
}

fn behind_private(path: &str) -> Option<&str> {
    let rest = path.strip_prefix(PRIVATE).or_else(|| path.strip_prefix(PRIVATE_IN_BRACES))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

fn climbs(path: &str) -> bool {
    path.split('/').any(|part| part == "..")
}

impl Workspace {
    /// The file that a call's `path` names: absolute as given, in the private folder behind `$TMPDIR`,
    /// relative to the workspace otherwise.
    pub fn resolve(&self, path: &str) -> PathBuf {
        match (&self.private, in_private_folder(path)) {
            (Some(private), Some(rest)) => private.join(rest),
            _ => self.elsewhere(path).unwrap_or_else(|| self.root.join(path)),
        }
    }

    /// The file that a path names by a variable in one of the places elsewhere.
    pub fn elsewhere(&self, path: &str) -> Option<PathBuf> {
        self.places.iter().find_map(|place| Some(place.path.join(in_place(path, place)?)))
    }

    /// The file that a call's `path` names, as [`Workspace::resolve`] has it.
    ///
    /// Errors: the path begins with the shell's word for a home folder, which tools do not know, and there is
    /// no file of that very name. `Write` would make a folder `~`.
    pub fn find(&self, path: &str) -> Result<PathBuf, String> {
        let found = self.resolve(path);
        let is_home = path == "~" || path.starts_with("~/");
        if is_home && self.elsewhere(path).is_none() && fs::symlink_metadata(&found).is_err() {
            return Err(format!(
                "~ does not stand for a home folder here: give an absolute path, or one relative to the workspace \
                 (./{path} if that is what it is called)"
            ));
        }
        Ok(found)
    }

    /// How a path is written in a result: relative to the workspace where it lies inside it, so that
    /// equal work gives equal bytes in any folder.
    pub fn display(&self, path: &Path) -> String {
        // The private folder first: it may lie in the workspace, and its own name is another one in every run.
        let private = self.private.as_ref().and_then(|private| path.strip_prefix(private).ok());
        let elsewhere = || {
            let mut places = self.places.iter();
            places.find_map(|place| Some((place.shown.as_str(), path.strip_prefix(&place.path).ok()?)))
        };
        let (place, inside) = match (private, path.strip_prefix(&self.root)) {
            (Some(inside), _) => (PRIVATE, inside),
            (None, Ok(inside)) if inside.as_os_str().is_empty() => (".", inside),
            (None, Ok(inside)) => ("", inside),
            (None, Err(_)) => match elsewhere() {
                Some((shown, inside)) => (shown, inside),
                None => ("", path),
            },
        };
        match (place, inside.as_os_str().is_empty()) {
            (_, true) => place.to_owned(),
            ("", false) => inside.display().to_string(),
            (_, false) => Path::new(place).join(inside).display().to_string(),
        }
    }
}

/// The arguments of a call: a JSON object that parsed.
pub type Arguments = Map<String, Value>;

/// What tools may use beside their arguments.
pub struct Surroundings<'a> {
    /// Where they work.
    pub workspace: &'a Workspace,
    /// Whether a search may look into a file.
    pub may_read: &'a dyn Fn(&Path) -> bool,
    /// What the clock shows.
    pub now: jiff::Timestamp,
    /// The shell for Bash.
    pub shell: &'a Path,
    /// What earlier calls of Bash left running; only the worker has any.
    pub background: &'a mut background::Background,
    /// Where exchange rates come from.
    pub rates_url: &'a str,
    /// Fetches a URL: its status and body, or why there is no answer.
    pub fetch: &'a mut dyn FnMut(&str) -> rates::Fetched,
    /// What ends a search.
    pub alarm: &'a Alarm,
}

/// Runs a call by the tool's name.
pub fn execute(name: &str, arguments: &Arguments, surroundings: &mut Surroundings) -> Outcome {
    match name {
        "Read" => read::run(arguments, surroundings.workspace),
        "Write" => write::run(arguments, surroundings.workspace),
        "Edit" => edit::run(arguments, surroundings.workspace),
        "Glob" => glob::run(arguments, surroundings.workspace, surroundings.may_read, surroundings.alarm),
        "Grep" => grep::run(arguments, surroundings.workspace, surroundings.may_read, surroundings.alarm),
        "Bash" => bash::run(arguments, surroundings.workspace, surroundings.shell, surroundings.background),
        "BashOutput" => bash_output::run(arguments, surroundings.background),
        "KillShell" => kill_shell::run(arguments, surroundings.background),
        "get_current_datetime" => datetime::run_now(arguments, surroundings.now),
        "add_duration_to_datetime" => datetime::run_add(arguments),
        "get_exchange_rate" => rates::run(arguments, surroundings.rates_url, surroundings.fetch),
        _ => Outcome::error(format!("there is no tool \"{name}\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gemini and others refuse schemas that say more, such as `additionalProperties` or `format`.
    #[test]
    fn schemas_keep_to_what_every_server_takes() {
        const MEMBERS: &[&str] =
            &["type", "properties", "required", "items", "enum", "description", "minimum", "maximum"];
        fn check(schema: &Value, place: &str) {
            for (name, value) in schema.as_object().unwrap() {
                assert!(MEMBERS.contains(&name.as_str()), "{place} has {name}");
                if name == "properties" {
                    for (property, inner) in value.as_object().unwrap() {
                        check(inner, &format!("{place}.{property}"));
                    }
                }
            }
        }
        for spec in all() {
            let schema: Value = serde_json::from_str(spec.schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", spec.name);
            check(&schema, spec.name);
        }
    }

    #[test]
    fn the_private_folder_has_one_name_in_every_run() {
        let mut workspace = Workspace { root: "/w".into(), private: None, places: Vec::new() };
        assert_eq!(workspace.resolve("$TMPDIR/a"), Path::new("/w/$TMPDIR/a"));
        workspace.private = Some("/tmp/cotter-0000007-0".into());
        for (typed, path, shown) in [
            ("$TMPDIR/a", "/tmp/cotter-0000007-0/a", "$TMPDIR/a"),
            ("$TMPDIR//a/b", "/tmp/cotter-0000007-0/a/b", "$TMPDIR/a/b"),
            ("$TMPDIR", "/tmp/cotter-0000007-0/", "$TMPDIR"),
            ("${TMPDIR}", "/tmp/cotter-0000007-0/", "$TMPDIR"),
            ("${TMPDIR}/a", "/tmp/cotter-0000007-0/a", "$TMPDIR/a"),
            ("${TMPDIR}S/a", "/w/${TMPDIR}S/a", "${TMPDIR}S/a"),
            ("$TMPDIR/../a", "/w/$TMPDIR/../a", "$TMPDIR/../a"),
            ("$TMPDIRS/a", "/w/$TMPDIRS/a", "$TMPDIRS/a"),
            ("a/$TMPDIR/b", "/w/a/$TMPDIR/b", "a/$TMPDIR/b"),
            ("/tmp/a", "/tmp/a", "/tmp/a"),
            (".", "/w/.", "."),
        ] {
            assert_eq!(workspace.resolve(typed), Path::new(path), "{typed}");
            assert_eq!(workspace.display(&workspace.resolve(typed)), shown, "{typed}");
        }
    }

    #[test]
    fn the_private_folder_keeps_its_name_where_it_lies_in_the_workspace() {
        for (root, shown) in [("/", "tmp/a"), ("/tmp", "a")] {
            let private = Some("/tmp/cotter-0000007-0".into());
            let workspace = Workspace { root: root.into(), private, places: Vec::new() };
            assert_eq!(workspace.display(Path::new("/tmp/cotter-0000007-0/f")), "$TMPDIR/f");
            assert_eq!(workspace.display(Path::new("/tmp/cotter-0000007-0")), "$TMPDIR");
            assert_eq!(workspace.display(Path::new("/tmp/a")), shown);
            assert_eq!(workspace.display(Path::new(root)), ".");
        }
    }

    #[test]
    fn a_path_that_climbs_leaves_the_private_folder() {
        for path in ["$TMPDIR/..", "$TMPDIR/../a", "${TMPDIR}/a/../../b"] {
            assert!(leaves_private_folder(path), "{path}");
        }
        for path in ["$TMPDIR", "${TMPDIR}/a", "$TMPDIR/a..b", "$TMPDIR../a", "a/$TMPDIR/..", ".."] {
            assert!(!leaves_private_folder(path), "{path}");
        }
    }

    #[test]
    fn names_fit_both_apis_and_are_unique() {
        let mut names: Vec<&str> = all().iter().map(|spec| spec.name).collect();
        for name in &names {
            let legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            assert!(name.bytes().all(legal) && (1..=64).contains(&name.len()), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all().len());
    }

    /// About four bytes make a token; 3,000 tokens are the budget for the system prompt and all tools.
    #[test]
    fn prompt_and_tools_stay_small() {
        let tools: usize =
            all().iter().map(|spec| spec.name.len() + spec.description.len() + spec.schema.len()).sum();
        let bytes = tools + include_str!("../prompt.md").len();
        assert!(bytes < 12_000, "{bytes} bytes");
    }
}
