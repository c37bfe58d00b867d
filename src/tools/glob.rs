//! `Glob`: the files whose paths fit a pattern, newest first.
//!
//! The rules of .gitignore come before the pattern, which only chooses among the files they leave.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ignore::overrides::Override;
use ignore::types::Types;

use crate::alarm::Alarm;
use crate::tools::walk::{self, Form, LeftOut, Options, Start, Walk};
use crate::tools::{Arguments, Outcome, Spec, Workspace, arguments, in_private_folder, quotes, slips};

/// What the model is told of `Glob`.
pub const SPEC: Spec = Spec {
    name: "Glob",
    description: "Lists files by a glob of their paths, newest first, at most 200. Files that git ignores are left \
        out, hidden ones too unless the pattern names them.",
    arguments: &["pattern", "path"],
    schema: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"**/*.rs or src/**/*.{ts,tsx}"},"path":{"type":"string","description":"folder to look in"}},"required":["pattern"]}"#,
};

/// More files than this are counted only.
const MAX_SHOWN: usize = 200;
const MAX_BYTES: usize = 30_000;

/// Runs `Glob`. Files that it may not read are not there for it.
pub fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    may_read: &dyn Fn(&Path) -> bool,
    alarm: &Alarm,
) -> Outcome {
    find(arguments, workspace, may_read, alarm).map_or_else(Outcome::error, Outcome::ok)
}

/// The folder or file that a call of this tool names.
pub fn path(arguments: &Arguments) -> Result<&str, String> {
    let path = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?.optional_text("path")?;
    Ok(path.filter(|path| !path.is_empty()).unwrap_or("."))
}

fn find(
    arguments: &Arguments,
    workspace: &Workspace,
    may_read: &dyn Fn(&Path) -> bool,
    alarm: &Alarm,
) -> Result<String, String> {
    let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?;
    let typed = given.text("pattern")?.trim();
    if typed.is_empty() {
        return Err("the pattern is empty; ** lists all files".to_owned());
    }
    if typed.contains('\0') {
        return Err("the pattern holds a NUL character, which no path does".to_owned());
    }
    let path = given.optional_text("path")?;
    // A pattern can begin with a home folder as well as a path.
    if workspace.elsewhere(leading(typed)).is_none() {
        workspace.find(&typed[..typed.find('/').map_or(typed.len(), |slash| slash + 1)])?;
    }
    let (folder, pattern) = place(typed, &workspace.find(path.unwrap_or_default())?, workspace);
    let folder = match Start::find(&folder, workspace)? {
        Start::Folder(folder) => folder,
        Start::File(file) => {
            return Err(format!("{} is a file; path names the folder to look in", workspace.display(&file)));
        }
    };
    let wanted = walk::overrides(&[&pattern], &folder)?;
    let mut walk = Walk::new(&folder, workspace, options(&pattern, &wanted, &folder)?, alarm)?;
    let mut newest = Newest::default();
    for (path, form) in &mut walk {
        if fits(&wanted, &path, form) && may_read(&path) {
            newest.add(path, form);
        }
    }
    Ok(newest.listed(typed, &walk.into_left_out(), workspace))
}

/// The folders at the beginning of a pattern that are spelt out.
fn leading(pattern: &str) -> &str {
    let fixed = pattern.find(['*', '?', '[', '{', '\\', '!']).unwrap_or(pattern.len());
    &pattern[..pattern[..fixed].rfind('/').map_or(0, |slash| slash + 1)]
}

/// The folder that a pattern is relative to, and the pattern without what leads there: a path that leads
/// out of the workspace, one inside it that is written absolutely, or one to the private folder.
fn place(pattern: &str, base: &Path, workspace: &Workspace) -> (PathBuf, String) {
    let leading = leading(pattern);
    let rest = &pattern[leading.len()..];
    let leads_out = Path::new(leading).is_absolute() && Path::new(leading).is_dir() && leading.len() > 1
        || leading.split('/').any(|part| part == "..");
    let is_private = workspace.private.is_some() && in_private_folder(leading).is_some();
    let elsewhere = workspace.elsewhere(leading);
    let (folder, pattern) = match () {
        () if elsewhere.is_some() => (elsewhere.unwrap_or_default(), format!("/{rest}")),
        () if is_private => (workspace.resolve(leading), format!("/{rest}")),
        () if leads_out => (base.join(leading), format!("/{rest}")),
        () => (base.to_owned(), pattern.to_owned()),
    };
    // Only files are listed, so that a folder stands for what is in it.
    let pattern = if pattern.ends_with('/') { format!("{pattern}**") } else { pattern };
    (folder, pattern)
}

/// How to walk: a pattern that leaves out is a rule of the walk, any other chooses from what comes of it.
fn options(pattern: &str, wanted: &Override, folder: &Path) -> Result<Options, String> {
    let hidden = names_hidden(pattern);
    let overrides = if wanted.num_whitelists() == 0 {
        wanted.clone()
    } else if hidden && !pattern.contains(".git/") {
        walk::overrides(&["!.git"], folder)?
    } else {
        Override::empty()
    };
    Ok(Options { hidden, overrides, types: Types::empty() })
}

/// Whether a pattern asks for a name that begins with a full stop, as `.github/**` or `{.env,a}` do.
fn names_hidden(pattern: &str) -> bool {
    let starts = pattern.match_indices('.').filter(|(at, _)| {
        let before = &pattern[..*at];
        before.is_empty() || before.ends_with(['/', '{', ','])
    });
    let mut names = starts.map(|(at, _)| pattern[at..].split(['/', ',', '}']).next().unwrap_or_default());
    names.any(|name| name != "." && name != "..")
}

fn fits(wanted: &Override, path: &Path, form: Form) -> bool {
    match wanted.num_whitelists() {
        0 => form == Form::File,
        _ => wanted.matched(path, form == Form::Folder).is_whitelist(),
    }
}

/// The newest of all files added, and how many there were.
#[derive(Default)]
struct Newest {
    /// The oldest, and of equally old ones the last by name, is on top.
    kept: BinaryHeap<(Reverse<SystemTime>, PathBuf)>,
    count: usize,
    /// The first that fits and is no file.
    other: Option<(PathBuf, Form)>,
}

impl Newest {
    fn add(&mut self, file: PathBuf, form: Form) {
        if form != Form::File {
            self.other.get_or_insert((file, form));
            return;
        }
        // A file that is gone already is as old as can be.
        let changed = fs::symlink_metadata(&file).and_then(|metadata| metadata.modified());
        self.kept.push((Reverse(changed.unwrap_or(SystemTime::UNIX_EPOCH)), file));
        self.count += 1;
        if self.kept.len() > MAX_SHOWN {
            self.kept.pop();
        }
    }

    fn listed(self, pattern: &str, left_out: &LeftOut, workspace: &Workspace) -> String {
        let mut remarks = Vec::new();
        if self.count == 0 {
            remarks.push(self.nothing(pattern, workspace));
        }
        let mut text = String::new();
        let mut shown = 0;
        for (_, file) in self.kept.into_sorted_vec() {
            let line = walk::line(&file, workspace);
            if text.len() + line.len() >= MAX_BYTES {
                break;
            }
            text.push_str(&line);
            text.push('\n');
            shown += 1;
        }
        if self.count > shown {
            let more = self.count - shown;
            remarks.push(format!("{more} older ones match too: give a narrower pattern or a path"));
        }
        remarks.extend(left_out.remark());
        walk::with_remarks(text, &remarks)
    }

    /// What is said where no file fits.
    fn nothing(&self, pattern: &str, workspace: &Workspace) -> String {
        let name = |path: &Path| walk::line(path, workspace);
        let pattern = quotes::shortened(pattern);
        match &self.other {
            Some((path, Form::Folder)) if !pattern.ends_with("**") => format!(
                "no files match {pattern}, only folders such as {}: {pattern}/** lists the files in them",
                name(path)
            ),
            Some((path, Form::Link)) => format!(
                "no files match {pattern}, only symbolic links such as {}, which are not listed",
                name(path)
            ),
            _ => format!(
                "no files match {pattern}; ignored and hidden ones are only looked for in a path that names them"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_asks_for_hidden_names_where_it_has_one() {
        for pattern in [".env", "**/.env*", ".github/**", "a/.b/c", "{a,.b}", "../.a", "{.a,b}"] {
            assert!(names_hidden(pattern), "{pattern}");
        }
        for pattern in ["*.rs", "a.b/**", "./a", "../a", "**", "{a.b,c}", "a/./b", "..", "*.{a,b}"] {
            assert!(!names_hidden(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_leads_out_of_the_folder_is_taken_off_the_pattern() {
        let cases = [
            ("*.rs", "/", "*.rs"),
            ("a/b/*.rs", "/", "a/b/*.rs"),
            ("/*.rs", "/", "/*.rs"),
            ("/no such folder/*.rs", "/", "/no such folder/*.rs"),
            ("/proc/*", "/proc/", "/*"),
            ("../a/**/*.rs", "/../a/", "/**/*.rs"),
            ("a/../*.rs", "/a/../", "/*.rs"),
            ("!../*.rs", "/", "!../*.rs"),
            ("a/", "/", "a/**"),
        ];
        let workspace = Workspace { root: "/".into(), private: None, places: Vec::new() };
        for (given, folder, pattern) in cases {
            assert_eq!(
                place(given, Path::new("/"), &workspace),
                (folder.into(), pattern.to_owned()),
                "{given}"
            );
        }
    }
}
