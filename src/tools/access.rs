//! What a call would do, as far as permissions go, and which tools a rule's name stands for.
//!
//! The arguments are read by the tools themselves: another spelling of a name gets around no rule.

use super::{Arguments, all, bash, edit, glob, grep, read, skill, write};
use crate::sandbox::commands::Redirection;

/// What a call would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access<'a> {
    /// Compute, or ask a service of cotter's own.
    Nothing,
    /// Read this file or folder.
    Read(&'a str),
    /// Read and write this file.
    Edit(&'a str),
    /// Write this file.
    Write(&'a str),
    /// Run this command line.
    Run(&'a str),
    /// Run a program that is no built-in tool.
    Execute,
    /// Use this skill.
    Skill(&'a str),
    /// Fail: its arguments are not what the tool takes, as the tool itself will say.
    Fail,
}

impl Access<'_> {
    /// The file or folder that is read or written.
    pub fn path(&self) -> Option<&str> {
        match self {
            Access::Read(path) | Access::Edit(path) | Access::Write(path) => Some(path),
            Access::Nothing | Access::Run(_) | Access::Execute | Access::Skill(_) | Access::Fail => None,
        }
    }

    /// The same done to another file, where it is done to one.
    pub fn of_file<'a>(&'a self, file: &'a str) -> Access<'a> {
        match self {
            Access::Read(_) => Access::Read(file),
            Access::Edit(_) => Access::Edit(file),
            Access::Write(_) => Access::Write(file),
            other => other.clone(),
        }
    }
}

/// Tools whose rules say the same kind of thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A specifier is a command.
    Commands,
    /// A specifier is a path that is read.
    Readers,
    /// A specifier is a path that is written.
    Writers,
    /// A specifier is a skill's name.
    Skills,
    /// There is nothing to specify.
    Plain,
}

/// Names of Claude Code's tools that rules may hold and that are not all there.
const ELSEWHERE: &[(&str, Family)] = &[
    ("Agent", Family::Plain),
    ("AskUserQuestion", Family::Plain),
    ("ExitPlanMode", Family::Plain),
    ("KillBash", Family::Plain),
    ("LS", Family::Readers),
    ("MultiEdit", Family::Writers),
    ("NotebookEdit", Family::Writers),
    ("NotebookRead", Family::Readers),
    ("SlashCommand", Family::Plain),
    ("Task", Family::Plain),
    ("TaskOutput", Family::Plain),
    ("TodoRead", Family::Plain),
    ("TodoWrite", Family::Plain),
    ("WebFetch", Family::Plain),
    ("WebSearch", Family::Plain),
];

/// The family of a tool that is known by name, whether it is there or not.
pub fn family(name: &str) -> Option<Family> {
    match name {
        "Bash" => Some(Family::Commands),
        "Read" | "Glob" | "Grep" => Some(Family::Readers),
        "Write" | "Edit" => Some(Family::Writers),
        skill::NAME => Some(Family::Skills),
        _ if exists(name) => Some(Family::Plain),
        _ => ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, family)| *family),
    }
}

/// Whether there is a built-in tool of this name.
pub fn exists(name: &str) -> bool {
    name == skill::NAME || all().iter().any(|spec| spec.name == name)
}

/// Whether a name is certainly meant as a tool's.
pub fn is_known(name: &str) -> bool {
    family(name).is_some() || name.starts_with("mcp__")
}

/// Whether a rule with this tool's name allows calls of `tool`. Who may edit any file may write it.
pub fn allow_covers(rule: &str, tool: &str) -> bool {
    match (rule, tool) {
        ("Edit", tool) => family(tool) == Some(Family::Writers),
        (rule, tool) => deny_covers(rule, tool),
    }
}

/// Whether a rule with this tool's name alone forbids calls of `tool`.
pub fn deny_covers(rule: &str, tool: &str) -> bool {
    match (rule, tool) {
        ("Bash", "BashOutput" | "KillShell") => true,
        (rule, tool) if rule.starts_with("mcp__") && rule.ends_with('*') => {
            tool.starts_with(rule.trim_end_matches('*'))
        }
        (rule, tool) => rule == tool,
    }
}

/// Whether a rule with this tool's name and a path forbids that `tool` touches the file. A failed Edit shows
/// what is in the file, so it reads it.
pub fn deny_covers_file(rule: &str, tool: &str) -> bool {
    match (family(rule), family(tool)) {
        (Some(Family::Readers), Some(Family::Readers)) => true,
        (Some(Family::Readers), _) => tool == "Edit",
        (Some(Family::Writers), Some(Family::Writers)) => true,
        _ => false,
    }
}

/// What a call would do.
pub fn of<'a>(name: &str, arguments: &'a Arguments) -> Access<'a> {
    let of =
        |read: Result<&'a str, String>, access: fn(&'a str) -> Access<'a>| read.map_or(Access::Fail, access);
    match name {
        "Read" => of(read::file_path(arguments), Access::Read),
        "Write" => of(write::file_path(arguments), Access::Write),
        "Edit" => of(edit::file_path(arguments), Access::Edit),
        "Glob" => of(glob::path(arguments), Access::Read),
        "Grep" => of(grep::path(arguments), Access::Read),
        "Bash" => of(bash::command(arguments), Access::Run),
        skill::NAME => of(skill::wanted(arguments).map(|(name, _)| name), Access::Skill),
        _ if exists(name) => Access::Nothing,
        _ => Access::Execute,
    }
}

/// The tool that does to a file what a redirection does.
pub fn like(redirection: &Redirection) -> &'static str {
    match redirection {
        Redirection::From(_) => "Read",
        Redirection::To(_) => "Write",
    }
}

/// One call of each kind, for the table of what is allowed: what the kind is called, a tool, and what it does
/// in the workspace and elsewhere.
pub const CLASSES: &[(&str, &str, Access, Access)] = &[
    ("Read, Glob, Grep, dates, rates", "Read", Access::Read("a"), Access::Read("/a")),
    ("Write, Edit", "Write", Access::Write("a"), Access::Write("/a")),
    ("Bash", "Bash", Access::Run("a"), Access::Run("a")),
    ("executables", "a", Access::Execute, Access::Execute),
];
