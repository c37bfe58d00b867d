//! What a command of a line can do to how its others are understood.
//!
//! Some of it only the shell that runs the line can tell; rather too much counts than too little.

use super::commands::{Part, Word};
use super::wrappers::unwrapped;

/// Whether a word could make a redirection mean another file than it says. What comes of braces is not
/// followed, so it could be anything.
pub fn moves_files(word: &Word) -> bool {
    match word {
        Word::Literal(text) => matches!(text.as_str(), "cd" | "pushd" | "popd") || text.contains("TMPDIR"),
        Word::Expanded(typed) => typed.replace("${", "$").contains('{'),
    }
}

/// Builtins, of whatever shell, that set variables, options, functions or the folder of the shell itself, or
/// run another builtin that does.
const CHANGERS: &[&str] = &[
    ".",
    "alias",
    "bind",
    "builtin",
    "cd",
    "chdir",
    "command",
    "compgen",
    "complete",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "float",
    "getopts",
    "hash",
    "integer",
    "let",
    "local",
    "mapfile",
    "nameref",
    "popd",
    "print",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "set",
    "shift",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "vared",
];

/// Whether a command can change how the shell understands those that follow: which program a name means,
/// which file a path. A rule that allows it and one that allows them are not meant to be more together than
/// they are one by one.
pub fn changes_shell(part: &Part) -> bool {
    [&part.words, unwrapped(&part.words).words].into_iter().any(is_changer)
}

fn is_changer(words: &[Word]) -> bool {
    let Some((Some(name), arguments)) = words.split_first().map(|(name, rest)| (name.literal(), rest)) else {
        return false;
    };
    // An option, or what could turn out as one.
    let is_option = |word: &Word| word.literal().is_none_or(|text| text.starts_with('-') && text != "--");
    match name {
        // `-v` is an assignment, and nothing but an option stands before the format.
        "printf" => arguments.first().is_some_and(is_option),
        // And so is `-p`.
        "wait" => arguments.iter().any(is_option),
        // It only asks where a program is.
        "command" => !matches!(arguments.first().and_then(Word::literal), Some("-v" | "-V")),
        name => CHANGERS.contains(&name),
    }
}

/// Whether a command is one whose work may be a symbolic link. Where a redirection leads is looked at before
/// the line runs.
pub fn makes_links(part: &Part) -> bool {
    const LINKERS: &[&str] =
        &["bsdtar", "cp", "cpio", "install", "link", "ln", "mv", "rename", "rsync", "tar", "unzip"];
    let name = unwrapped(&part.words).words.first().and_then(Word::literal).unwrap_or_default();
    LINKERS.contains(&name.rsplit('/').next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::super::commands::{take_apart, understand};

    /// One command set the variable by which another was found.
    #[test]
    fn no_command_changes_what_another_means() {
        let changes = [
            "printf -v PATH ./bin",
            "printf -vPATH ./bin",
            "printf {-v,PATH,./bin}",
            "printf $x ./bin",
            "time printf -v PATH ./bin",
            "wait -n -p PATH",
            "wait $x",
            "read PATH",
            "mapfile -t PATH",
            "readarray PATH",
            "getopts a PATH",
            "export PATH=.",
            "declare PATH=.",
            "typeset -x PATH=.",
            "local PATH=.",
            "readonly PATH=.",
            "let PATH=1",
            "unset PATH",
            "eval 'PATH=.'",
            ". ./a",
            "source ./a",
            "set -- a",
            "shopt -s expand_aliases",
            "alias git=rm",
            "unalias git",
            "hash -p ./git git",
            "enable -n echo",
            "trap ./a DEBUG",
            "exec ./a",
            "cd a",
            "pushd a",
            "popd",
            "chdir a",
            "builtin cd a",
            "command cd a",
        ];
        for change in changes {
            for operator in ["&&", ";", "||", "|", "&"] {
                let command = format!("{change} {operator} git log");
                let why = "a builtin that changes what the commands behind it mean";
                assert_eq!(understand(&command), Err(why), "{command}");
            }
            assert!(understand(change).is_ok(), "{change}: nothing is behind it");
            assert!(understand(&format!("git log && {change}")).is_ok(), "{change}: nothing is behind it");
            assert_eq!(take_apart(&format!("{change}; git log")).unwrap().len(), 2);
        }
        for command in ["printf '-v' -v; ls", "printf -; ls"] {
            assert!(understand(command).is_err(), "{command}");
        }
        for command in
            ["printf %s -v PATH; ls", "printf -- -v PATH; ls", "wait; ls", "wait 5; ls", "command -v x; ls"]
        {
            assert!(understand(command).is_ok(), "{command}");
        }
        for command in ["ln -s a b 2>/dev/null; ls", "ls > a && ln -s a b", "ln a b && ls >/dev/null < c"] {
            assert!(understand(command).is_ok(), "{command}");
        }
    }
}
