//! Programs that run code of their own language: where they take it from, and what it might run in turn.
//!
//! As with all suspicions, rather too much than too little.

use super::suspects::{Suspect, base_name};

const SHELLS: &[&str] = &["ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "sh", "tcsh", "zsh"];
const LANGUAGES: &[&str] =
    &["bun", "deno", "irb", "lua", "node", "nodejs", "perl", "php", "pypy", "python", "ruby", "tclsh"];
/// Programs whose language can run commands, and whose code is always an argument.
const FILTERS: &[&str] = &["awk", "gawk", "mawk", "nawk"];

/// Where the commands come from that a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// From its arguments or a file that they name, or it runs none.
    NoCommands,
    /// From its input.
    Input,
    /// From what only a shell can tell.
    Anything,
}

/// Where a command takes from what it runs.
pub fn reads(words: &[Suspect]) -> Reads {
    let Some(name) = words.first().and_then(Suspect::known).map(base_name) else { return Reads::NoCommands };
    match name {
        "at" | "batch" => Reads::Input,
        "." | "source" if words.len() < 2 => Reads::NoCommands,
        "." | "source" => reads_as(&words[1..], Kind::Shell),
        name if SHELLS.contains(&name) => reads_as(&words[1..], Kind::Shell),
        name if LANGUAGES.contains(&without_version(name)) => reads_as(&words[1..], Kind::Language),
        _ => Reads::NoCommands,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Shell,
    Language,
}

fn reads_as(arguments: &[Suspect], kind: Kind) -> Reads {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = match argument {
            // A substitution: a script, or an option with a text behind it, or a descriptor.
            Suspect::Anything(text) if text.is_empty() => return Reads::Anything,
            Suspect::Anything(_) => return Reads::NoCommands,
            Suspect::Known(text) => text.as_str(),
        };
        let is_option = text.starts_with(['-', '+']) && text.len() > 1;
        match text {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" if kind == Kind::Shell => {
                arguments.next();
            }
            "--version" | "--help" | "-V" | "--eval" | "--print" => return Reads::NoCommands,
            _ if is_option && has_code(text, kind) => {
                // `xargs` adds the text, or puts it in the place of braces.
                return match arguments.next().map(Suspect::text) {
                    None | Some("{}") => Reads::Input,
                    Some(_) => Reads::NoCommands,
                };
            }
            _ if is_option && kind == Kind::Shell && is_cluster(text) && text.contains('s') => {
                return Reads::Input;
            }
            _ if is_option => {}
            "-" => return Reads::Input,
            _ => {
                let is_input =
                    ["/dev/stdin", "/dev/fd/", "/proc/"].iter().any(|place| text.starts_with(place));
                return if is_input { Reads::Input } else { Reads::NoCommands };
            }
        }
    }
    Reads::Input
}

/// Whether the code, or the name of a module, follows this option.
fn has_code(option: &str, kind: Kind) -> bool {
    let letters: &[char] = match kind {
        Kind::Shell => &['c'],
        Kind::Language => &['c', 'm', 'e', 'E', 'r'],
    };
    is_cluster(option) && option.contains(letters)
}

fn is_cluster(option: &str) -> bool {
    !option.starts_with("--")
}

fn without_version(name: &str) -> &str {
    name.trim_end_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-'))
}

/// The code among an interpreter's arguments, made into lines that might be commands: texts in quotes are, and
/// so are lists of words.
pub fn code_texts(words: &[Suspect]) -> Vec<String> {
    let name = words.first().and_then(Suspect::known).map(base_name).unwrap_or_default();
    if !LANGUAGES.contains(&without_version(name)) && !FILTERS.contains(&name) {
        return Vec::new();
    }
    let is_code = |text: &&str| text.contains(['(', '"', '\'', '`', ' ']);
    let codes = words[1..].iter().map(Suspect::text).filter(is_code);
    codes.flat_map(|code| [lines(code, ' '), lines(code, '\n')]).collect()
}

/// Code without what is no word, `quote` in the place of each quotation mark.
fn lines(code: &str, quote: char) -> String {
    let letter = |letter: char| match letter {
        '\'' | '"' | ',' | '[' | ']' => quote,
        letter if letter.is_alphanumeric() || " -_./:=+@%~".contains(letter) => letter,
        _ => '\n',
    };
    code.chars().map(letter).collect()
}
