//! `Grep`: what ripgrep finds, by ripgrep's own parts, in one thread and within bounds.
//!
//! A file is streamed through a buffer that only an immense line makes grow, up to a limit. Nothing is
//! opened that is not a regular file.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use ignore::overrides::Override;
use ignore::types::{Types, TypesBuilder};
use rustix::fs::OFlags;

use crate::alarm::Alarm;
use crate::tools::matches::{Found, MAX_COUNT, Mode, Output};
use crate::tools::walk::{self, Form, LeftOut, Options, Start, Walk};
use crate::tools::{Arguments, Outcome, Spec, Workspace, arguments, nearest, opening, slips};

/// What the model is told of `Grep`.
pub const SPEC: Spec = Spec {
    name: "Grep",
    description: "Searches files for a regular expression as ripgrep does: hidden, binary and ignored ones are left \
        out. files_with_matches lists paths, content shows path:line:text, count counts lines.",
    arguments: &[
        "pattern",
        "path",
        "glob",
        "type",
        "output_mode",
        "-i",
        "-n",
        "-A",
        "-B",
        "-C",
        "head_limit",
        "offset",
        "multiline",
    ],
    schema: r#"{"type":"object","properties":{"pattern":{"type":"string","description":"Rust regex; escape literal ( { [ . with \\"},"path":{"type":"string","description":"folder or file"},"glob":{"type":"string","description":"*.js or !*.min.js"},"type":{"type":"string","description":"rust, py, js"},"output_mode":{"type":"string","enum":["files_with_matches","content","count"],"description":"default: paths"},"-i":{"type":"boolean","description":"ignore case"},"-n":{"type":"boolean","description":"line numbers, default true"},"-A":{"type":"integer","description":"lines after"},"-B":{"type":"integer","description":"lines before"},"-C":{"type":"integer","description":"both"},"head_limit":{"type":"integer","description":"lines shown"},"offset":{"type":"integer","description":"lines skipped"},"multiline":{"type":"boolean","description":"match across lines"}},"required":["pattern"]}"#,
};

/// What a search may hold in memory of one file: a line, or all of it when matches may span lines.
const HEAP_BYTES: usize = 16 << 20;
/// No more of a file is searched.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// How much the compiled parts of a regular expression may take, and what running it may cache.
const REGEX_BYTES: usize = 16 << 20;
const MAX_CONTEXT: i64 = 1000;

/// Runs `Grep`. Files that it may not read are not there for it.
pub fn run(
    arguments: &Arguments,
    workspace: &Workspace,
    may_read: &dyn Fn(&Path) -> bool,
    alarm: &Alarm,
) -> Outcome {
    search(arguments, workspace, may_read, alarm).map_or_else(Outcome::error, Outcome::ok)
}

/// The folder or file that a call of this tool names.
pub fn path(arguments: &Arguments) -> Result<&str, String> {
    let path = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?.optional_text("path")?;
    Ok(path.filter(|path| !path.is_empty()).unwrap_or("."))
}

fn search(
    arguments: &Arguments,
    workspace: &Workspace,
    may_read: &dyn Fn(&Path) -> bool,
    alarm: &Alarm,
) -> Result<String, String> {
    let request = Request::read(arguments)?;
    let start = Start::find(&workspace.find(request.path.unwrap_or_default())?, workspace)?;
    let mut search = Search::new(&request, workspace)?;
    match &start {
        Start::File(path) => search.named_file(path)?,
        Start::Folder(folder) => {
            let options =
                Options { hidden: false, overrides: request.overrides(workspace)?, types: request.types()? };
            let mut walk = Walk::new(folder, workspace, options, alarm)?;
            while !search.output.is_full()
                && let Some((path, form)) = walk.next()
            {
                if form == Form::File && may_read(&path) {
                    search.file(&path);
                }
            }
            search.left_out.append(walk.into_left_out());
        }
    }
    Ok(search.finish(&start))
}

/// What a call asks for.
struct Request<'a> {
    pattern: &'a str,
    path: Option<&'a str>,
    glob: &'a str,
    kind: &'a str,
    mode: Mode,
    ignore_case: bool,
    line_numbers: bool,
    before: usize,
    after: usize,
    head_limit: Option<u64>,
    offset: u64,
    multiline: bool,
}

impl Request<'_> {
    fn read(arguments: &Arguments) -> Result<Request<'_>, String> {
        let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?;
        let mode = match given.optional_choice("output_mode")?.as_deref() {
            Some("content") => Mode::Content,
            Some("count") => Mode::Count,
            _ => Mode::Files,
        };
        let number = |name: &str| match given.optional_integer(name)? {
            Some(number) if number < 0 => {
                Err(given.complaint(&format!("cannot take {number} as \"{name}\"")))
            }
            number => Ok(number),
        };
        let around = number("-C")?.unwrap_or(0);
        let context = |name: &str| Ok::<_, String>(number(name)?.unwrap_or(around).min(MAX_CONTEXT) as usize);
        Ok(Request {
            pattern: given.text("pattern")?,
            path: given.optional_text("path")?,
            glob: given.optional_text("glob")?.unwrap_or_default(),
            kind: given.optional_text("type")?.unwrap_or_default(),
            mode,
            ignore_case: given.flag("-i")?,
            line_numbers: given.optional_flag("-n")?.unwrap_or(true),
            before: context("-B")?,
            after: context("-A")?,
            // Zero asks for no limit, as it does where models learnt the name.
            head_limit: number("head_limit")?.map(i64::unsigned_abs).filter(|limit| *limit > 0),
            offset: number("offset")?.unwrap_or(0).unsigned_abs(),
            multiline: given.flag("multiline")?,
        })
    }

    /// The globs, relative to the workspace wherever the search starts, as ripgrep takes them.
    fn overrides(&self, workspace: &Workspace) -> Result<Override, String> {
        walk::overrides(&globs(self.glob), &workspace.root)
    }

    fn types(&self) -> Result<Types, String> {
        let kinds = listed(self.kind);
        if kinds.is_empty() {
            return Ok(Types::empty());
        }
        let mut builder = TypesBuilder::new();
        builder.add_defaults();
        for kind in kinds {
            builder.select(kind);
        }
        builder.build().map_err(|error| match error {
            ignore::Error::UnrecognizedFileType(kind) => unknown_type(&kind, &builder),
            other => other.to_string(),
        })
    }

    fn matcher(&self) -> Result<RegexMatcher, String> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .multi_line(true)
            .case_insensitive(self.ignore_case)
            .dot_matches_new_line(self.multiline)
            .line_terminator((!self.multiline).then_some(b'\n'))
            // Text that holds this byte is binary, and left out.
            .ban_byte(Some(0))
            .size_limit(REGEX_BYTES)
            .dfa_size_limit(REGEX_BYTES);
        builder.build(self.pattern).map_err(|error| match error.kind() {
            grep_regex::ErrorKind::NotAllowed(_) => {
                format!("{error}: to match across lines, set multiline to true")
            }
            grep_regex::ErrorKind::Banned(_) => {
                format!("{error}: files that hold it are binary, and not searched")
            }
            _ => format!(
                "{error}\nThe pattern is a Rust regex, without look-around and back-references; \
                 \\ before one of ( ) [ ] {{ }} . * + ? | ^ $ \\ makes it plain"
            ),
        })
    }

    fn searcher(&self) -> Searcher {
        let in_content = |lines: usize| if self.mode == Mode::Content { lines } else { 0 };
        SearcherBuilder::new()
            .line_number(self.mode == Mode::Content && self.line_numbers)
            .before_context(in_content(self.before))
            .after_context(in_content(self.after))
            .multi_line(self.multiline)
            .heap_limit(Some(HEAP_BYTES))
            .build()
    }
}

/// The items of a list that a model wrote with commas or spaces between them.
fn listed(text: &str) -> Vec<&str> {
    split(text, |letter| letter == ',' || letter.is_whitespace())
}

/// The globs of such a list. A space can belong to a name: it parts two only where each looks like a glob.
fn globs(text: &str) -> Vec<&str> {
    let looks_like_one =
        |word: &&str| word.contains(['*', '?', '{', '!']) || Path::new(word).extension().is_some();
    let apart = |item: &'_ str| split(item, char::is_whitespace).iter().all(looks_like_one);
    let items = split(text, |letter| letter == ',').into_iter().map(str::trim);
    let items =
        items.flat_map(|item| if apart(item) { split(item, char::is_whitespace) } else { vec![item] });
    items.filter(|item| !item.is_empty()).collect()
}

/// The parts of a text between borders. Those in braces, in brackets and behind a backslash belong to a
/// glob.
fn split(text: &str, is_border: impl Fn(char) -> bool) -> Vec<&str> {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    let items = text.split(|letter: char| {
        let is_border = is_border(letter) && depth == 0 && !is_escaped;
        match letter {
            '{' | '[' if !is_escaped => depth += 1,
            '}' | ']' if !is_escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = letter == '\\' && !is_escaped;
        is_border
    });
    items.filter(|item| !item.is_empty()).collect()
}

fn unknown_type(kind: &str, known: &TypesBuilder) -> String {
    let definitions = known.definitions();
    // A name of a file in a type's definition, such as tsx in *.tsx, tells which type was meant.
    let ending = format!("*.{}", kind.trim_start_matches(['*', '.']));
    let holds = definitions.iter().filter(|it| it.globs().contains(&ending)).map(|it| it.name());
    let mut near: Vec<String> = holds.take(3).map(str::to_owned).collect();
    if near.is_empty() {
        near = nearest::names(kind, definitions.iter().map(|it| it.name()));
    }
    match near.is_empty() {
        true => format!("there is no file type \"{kind}\"; use glob, such as {ending}"),
        false => format!(
            "there is no file type \"{kind}\"; near ones are: {}; or use glob, such as {ending}",
            near.join(", ")
        ),
    }
}

/// A search under way.
struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    request: &'a Request<'a>,
    workspace: &'a Workspace,
    output: Output,
    left_out: LeftOut,
}

impl<'a> Search<'a> {
    fn new(request: &'a Request<'a>, workspace: &'a Workspace) -> Result<Search<'a>, String> {
        Ok(Search {
            matcher: request.matcher()?,
            searcher: request.searcher(),
            request,
            workspace,
            output: Output::new(request.offset, request.head_limit),
            left_out: LeftOut::default(),
        })
    }

    /// Searches the file that a call names. It is searched to its end even if it is binary.
    fn named_file(&mut self, path: &Path) -> Result<(), String> {
        let (file, _) = opening::open(path, self.workspace)?;
        self.searcher.set_binary_detection(BinaryDetection::convert(0));
        self.opened(file, path);
        Ok(())
    }

    /// Searches a file that the walk came to, up to where it turns out to be binary.
    fn file(&mut self, path: &Path) {
        self.searcher.set_binary_detection(BinaryDetection::quit(0));
        match open(path) {
            Ok(file) => self.opened(file, path),
            // It was there when the folder was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.left_out.add(&walk::line(path, self.workspace), &error.to_string()),
        }
    }

    fn opened(&mut self, file: File, path: &Path) {
        let mut file = file.take(MAX_FILE_BYTES);
        let name = walk::line(path, self.workspace);
        let mut found = Found::new(&name, self.request.mode, &self.matcher, &mut self.output);
        let result = self.searcher.search_reader(&self.matcher, &mut file, &mut found);
        let reason = match result {
            Err(error) if error.kind() == ErrorKind::Other => match self.request.multiline {
                true => format!("larger than {HEAP_BYTES} bytes, which multiline holds in memory"),
                false => format!("from a line on that is longer than {HEAP_BYTES} bytes"),
            },
            Err(error) => error.to_string(),
            Ok(()) if found.is_counted_out() => format!("once {MAX_COUNT} matches were counted"),
            Ok(()) if file.limit() == 0 => format!("only its first {MAX_FILE_BYTES} bytes were"),
            Ok(()) => return,
        };
        self.left_out.add(&name, &reason);
    }

    fn finish(self, start: &Start) -> String {
        let request = self.request;
        let mut remarks = Vec::new();
        if self.output.is_empty() {
            let scope = match start {
                _ if request.offset > 0 => "; a smaller offset may show some",
                Start::File(_) => "",
                Start::Folder(_) if globs(request.glob).iter().any(|glob| glob.contains(' ')) => {
                    "; glob is taken for one name with spaces in it: put commas between several"
                }
                Start::Folder(_) if request.path.is_some() && request.glob.contains('/') => {
                    "; glob is relative to the workspace, not to path"
                }
                Start::Folder(_) if request.glob.trim_start_matches('!').starts_with('/') => {
                    "; glob is relative to the workspace: give a folder outside of it as path"
                }
                Start::Folder(_) => {
                    "; hidden, ignored and binary files are only searched in a path that names them"
                }
            };
            remarks.push(format!("no matches{scope}"));
        }
        remarks.extend(self.output.remarks());
        remarks.extend(self.left_out.remark());
        walk::with_remarks(self.output.into_text(), &remarks)
    }
}

/// Opens a regular file that the walk came to. Should something else have taken its name since, nothing
/// waits for it and no link is followed.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    match opening::is_procfs(&file)? {
        true => Err(io::Error::new(ErrorKind::Unsupported, "it is on procfs")),
        false => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_at_commas_and_spaces_outside_of_braces() {
        let cases: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" , ", &[]),
            ("*.rs", &["*.rs"]),
            ("*.rs,*.py", &["*.rs", "*.py"]),
            ("*.rs, !*.py\t*.c", &["*.rs", "!*.py", "*.c"]),
            ("*.{rs,py} a", &["*.{rs,py}", "a"]),
            ("[ ,]x,b\\ c\\,d", &["[ ,]x", "b\\ c\\,d"]),
            ("a},b{c,d", &["a}", "b{c,d"]),
        ];
        for (text, items) in cases {
            assert_eq!(listed(text), items, "{text}");
        }
    }

    #[test]
    fn a_space_parts_two_globs_only_where_both_look_like_globs() {
        let cases: [(&str, &[&str]); 8] = [
            ("", &[]),
            (" , ", &[]),
            ("a b.txt", &["a b.txt"]),
            ("my notes/*.md, *.rs", &["my notes/*.md", "*.rs"]),
            ("*.rs, !*.py\t*.c", &["*.rs", "!*.py", "*.c"]),
            ("a.rs b.rs", &["a.rs", "b.rs"]),
            ("*.{rs,py} a", &["*.{rs,py} a"]),
            ("Makefile,a\\ b*", &["Makefile", "a\\ b*"]),
        ];
        for (text, items) in cases {
            assert_eq!(globs(text), items, "{text}");
        }
    }

    #[test]
    fn a_type_that_is_not_known_is_answered_with_near_ones() {
        let mut known = TypesBuilder::new();
        known.add_defaults();
        let near = |kind: &str| unknown_type(kind, &known).split(": ").nth(1).unwrap_or_default().to_owned();
        assert_eq!(near("jsx"), "js; or use glob, such as *.jsx");
        assert_eq!(near("*.tsx"), "ts, typescript; or use glob, such as *.tsx");
        assert_eq!(near("pyhton"), "python; or use glob, such as *.pyhton");
        assert_eq!(near("qqqqqqqq"), "");
    }
}
