//! What a shell command line certainly is: its simple commands, their words and redirections.
//!
//! Whatever a shell could understand in another way than this file does is not understood at all, since
//! what is said here decides what may run. It must never guess. What a command line *might* be, for rules
//! that forbid, is in `suspects.rs`.

use std::iter::Peekable;
use std::str::CharIndices;

use super::effects::{changes_shell, makes_links, moves_files};

/// A longer command line is a program, not a command.
const MOST_BYTES: usize = 32 * 1024;

/// One simple command.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Part {
    /// The command's name and its arguments.
    pub words: Vec<Word>,
    /// The files it reads and writes by redirection, in order.
    pub redirections: Vec<Redirection>,
}

/// One word, after quotes were taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// The shell passes exactly this on.
    Literal(String),
    /// The shell makes something of it first: the text as typed.
    Expanded(String),
}

/// A file that a redirection opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redirection {
    /// It is read.
    From(String),
    /// It is written.
    To(String),
}

impl Word {
    /// What the shell passes on, where that is certain.
    pub fn literal(&self) -> Option<&str> {
        match self {
            Word::Literal(text) => Some(text),
            Word::Expanded(_) => None,
        }
    }

    /// The word in the one way of writing it that is compared with patterns: quoted only where it must be.
    pub fn written(&self) -> String {
        let plain = |letter: char| letter.is_alphanumeric() || "-_./:=@%+,".contains(letter);
        match self {
            Word::Expanded(typed) => typed.clone(),
            Word::Literal(text) if !text.is_empty() && text.chars().all(plain) => text.clone(),
            Word::Literal(text) => format!("'{}'", text.replace('\'', "'\\''")),
        }
    }
}

/// Words that begin something else than a simple command.
pub const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "until", "while", "{", "}",
];

/// The simple commands of a command line, in order.
///
/// # Errors
///
/// What in it keeps it from being understood; the text completes "it has …".
pub fn understand(command: &str) -> Result<Vec<Part>, &'static str> {
    let parts = take_apart(command)?;
    let moves = parts.iter().flat_map(|part| &part.words).any(moves_files);
    let mut redirections = parts.iter().flat_map(|part| &part.redirections);
    if moves && redirections.any(|redirection| !redirection.path().starts_with('/')) {
        return Err("a change of folder beside a redirection");
    }
    let writes = |part: &Part| part.redirections.iter().any(Redirection::makes_file);
    for (at, part) in parts.iter().enumerate() {
        let later = &parts[at + 1..];
        if !later.is_empty() && changes_shell(part) {
            return Err("a builtin that changes what the commands behind it mean");
        }
        if makes_links(part) && later.iter().any(writes) {
            return Err("a command that can make links ahead of a redirection");
        }
    }
    Ok(parts)
}

/// The simple commands of a command line, in order, whatever they do to each other: for rules that forbid.
///
/// # Errors
///
/// As of [`understand`].
pub fn take_apart(command: &str) -> Result<Vec<Part>, &'static str> {
    let command = command.trim_matches([' ', '\t', '\n']);
    refuse_by_sight(command)?;
    let mut reader = Reader { rest: command, parts: Vec::new(), part: Part::default(), is_full: false };
    reader.read()?;
    Ok(reader.parts)
}

impl Redirection {
    /// The file's path as typed.
    pub fn path(&self) -> &str {
        match self {
            Redirection::From(path) | Redirection::To(path) => path,
        }
    }

    /// Whether a file may come of it.
    fn makes_file(&self) -> bool {
        matches!(self, Redirection::To(path) if !path.starts_with("/dev/"))
    }
}

/// What is refused wherever it stands, quoted or not: several builtins evaluate their arguments once more.
fn refuse_by_sight(command: &str) -> Result<(), &'static str> {
    const SIGHTS: &[(&str, &str)] = &[
        ("$(", "a command substitution"),
        ("`", "a command substitution"),
        ("<(", "a process substitution"),
        (">(", "a process substitution"),
        ("$[", "an arithmetic expansion"),
        ("$'", "a quotation of a kind that not every shell knows"),
        ("$\"", "a quotation of a kind that not every shell knows"),
        ("\n", "more than one line"),
    ];
    if command.len() > MOST_BYTES {
        return Err("more than 32 KiB");
    }
    if let Some((_, what)) = SIGHTS.iter().find(|(sight, _)| command.contains(sight)) {
        return Err(what);
    }
    match command.chars().any(|letter| letter.is_control() && letter != '\t') {
        true => Err("a control character"),
        false => Ok(()),
    }
}

struct Reader<'a> {
    rest: &'a str,
    parts: Vec<Part>,
    part: Part,
    /// Behind `&>`, which to a plain `sh` is the end of one command and the beginning of another.
    is_full: bool,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), &'static str> {
        // Whether a command has to follow.
        let mut open = true;
        while let Some(first) = self.rest.chars().next() {
            let operator =
                ["&&", "||", "|&", "&>", ";", "|", "&"].iter().find(|it| self.rest.starts_with(**it));
            match (first, operator) {
                (' ' | '\t', _) => self.rest = &self.rest[1..],
                (_, Some(&"&>")) => self.redirection(&first.to_string())?,
                (_, Some(operator)) => {
                    self.rest = &self.rest[operator.len()..];
                    self.end_part()?;
                    open = !matches!(*operator, ";" | "&");
                }
                ('(' | ')', _) => return Err("a subshell or a function"),
                ('#', _) => return Err("a comment"),
                ('<' | '>', _) => self.redirection("")?,
                _ => self.word_or_redirection()?,
            }
        }
        match self.part == Part::default() && !open {
            true => Ok(()),
            false => self.end_part(),
        }
    }

    fn end_part(&mut self) -> Result<(), &'static str> {
        let part = std::mem::take(&mut self.part);
        self.is_full = false;
        let Some(first) = part.words.first() else { return Err("a part without a command") };
        match first {
            Word::Expanded(_) => return Err("a command whose name is not spelt out"),
            Word::Literal(name) if RESERVED.contains(&name.as_str()) => {
                return Err("a keyword of the shell's language");
            }
            Word::Literal(name) if is_assignment(name) => return Err("a leading assignment"),
            Word::Literal(_) => {}
        }
        self.parts.push(part);
        Ok(())
    }

    fn word_or_redirection(&mut self) -> Result<(), &'static str> {
        let before = self.rest;
        let word = self.word()?;
        let typed = &before[..before.len() - self.rest.len()];
        // `2>` is a descriptor, `{name}>` asks for one, and `a>` is an argument.
        if self.rest.starts_with(['<', '>']) {
            if typed.bytes().all(|byte| byte.is_ascii_digit()) {
                return self.redirection(typed);
            }
            if typed.starts_with('{') {
                return Err("a redirection of a kind that not every shell knows");
            }
        }
        match self.is_full {
            true => Err("an argument behind `&>`"),
            false => {
                self.part.words.push(word);
                Ok(())
            }
        }
    }

    /// Reads a redirection whose descriptor, or the `&` of `&>`, has been looked at.
    fn redirection(&mut self, before: &str) -> Result<(), &'static str> {
        if before == "&" {
            self.rest = &self.rest[1..];
            self.is_full = true;
        }
        const OPERATORS: &[&str] = &["<<", "<>", "<&", "<", ">>", ">|", ">&", ">"];
        let operator = OPERATORS.iter().find(|it| self.rest.starts_with(**it)).ok_or("a redirection")?;
        self.rest = self.rest[operator.len()..].trim_start_matches([' ', '\t']);
        let typed = self.rest;
        let word = self.word()?;
        let typed = &typed[..typed.len() - self.rest.len()];
        let is_descriptor = typed.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        match *operator {
            _ if typed.is_empty() => return Err("a redirection to nothing"),
            "<<" | "<>" => return Err("a here-document or a file opened for both"),
            "<&" | ">&" if before != "&" && is_descriptor => return Ok(()),
            "<&" => return Err("a redirection from what is not spelt out"),
            _ => {}
        }
        let path = word.literal().map(str::to_owned).or_else(|| in_private_folder(typed));
        let path = path.ok_or("a redirection to a file that is not spelt out")?;
        self.part.redirections.push(match *operator {
            "<" => Redirection::From(path),
            _ => Redirection::To(path),
        });
        Ok(())
    }

    /// Reads a word, which may turn out empty.
    fn word(&mut self) -> Result<Word, &'static str> {
        let start = self.rest;
        let (mut text, mut is_certain) = (String::new(), true);
        let mut letters = start.char_indices().peekable();
        let mut end = start.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                ' ' | '\t' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                    end = at;
                    break;
                }
                '\\' => text.push(letters.next().ok_or("a backslash at its end")?.1),
                '\'' => loop {
                    match letters.next().ok_or("a quotation without an end")?.1 {
                        '\'' => break,
                        inner => text.push(inner),
                    }
                },
                '"' => is_certain &= double_quoted(start, &mut letters, &mut text)?,
                '$' if expands(&start[at..])? => is_certain = false,
                '*' | '?' | '[' | '{' => is_certain = false,
                '~' if at == 0 || start[..at].ends_with([':', '=']) => is_certain = false,
                letter if letter.is_whitespace() => return Err("a blank that only looks like one"),
                letter => text.push(letter),
            }
        }
        self.rest = &start[end..];
        match is_certain {
            true => Ok(Word::Literal(text)),
            false => Ok(Word::Expanded(start[..end].to_owned())),
        }
    }
}

/// Reads on to the closing quote and adds what stands before it to `text`. Whether that is all the shell makes
/// of it.
fn double_quoted(
    start: &str,
    letters: &mut Peekable<CharIndices>,
    text: &mut String,
) -> Result<bool, &'static str> {
    let mut is_certain = true;
    loop {
        match letters.next().ok_or("a quotation without an end")? {
            (_, '"') => return Ok(is_certain),
            (_, '\\') => match letters.next().ok_or("a quotation without an end")?.1 {
                escaped @ ('$' | '"' | '\\') => text.push(escaped),
                other => text.extend(['\\', other]),
            },
            (at, '$') if expands(&start[at..])? => is_certain = false,
            (_, inner) => text.push(inner),
        }
    }
}

/// Whether the `$` at the beginning of `text` is more than a dollar sign.
fn expands(text: &str) -> Result<bool, &'static str> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    match text[1..].chars().next() {
        // `${x@P}`, `${x:=…}` and their like evaluate what they hold.
        Some('{') => match text[2..].split_once('}') {
            Some((name, _)) if !name.is_empty() && name.chars().all(is_name) => Ok(true),
            _ => Err("a parameter expansion that is more than a name"),
        },
        Some(letter) => Ok(is_name(letter) || "?!#$@*-".contains(letter)),
        None => Ok(false),
    }
}

/// Whether a word is `name=…`, which in front of a command is no argument.
pub fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split('[').next().unwrap_or_default();
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Stands for the private temporary folder, which exists only while tools run. No file can have this name.
pub const PRIVATE_FOLDER: &str = "\0TMPDIR";

/// The path of a file in the private temporary folder, which the model knows by its variable alone.
fn in_private_folder(typed: &str) -> Option<String> {
    let bare = typed.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(typed);
    let name = bare.strip_prefix("$TMPDIR/").or_else(|| bare.strip_prefix("${TMPDIR}/"))?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./".contains(letter);
    (name.chars().all(plain) && !name.contains("..")).then(|| format!("{PRIVATE_FOLDER}/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINKS: &str = "a command that can make links ahead of a redirection";

    /// The parts as text: words in brackets if the shell makes something of them, then redirections.
    fn shown(command: &str) -> Result<Vec<String>, &'static str> {
        let word = |word: &Word| match word {
            Word::Literal(_) => word.written(),
            Word::Expanded(typed) => format!("[{typed}]"),
        };
        let part = |part: &Part| {
            let mut words: Vec<String> = part.words.iter().map(word).collect();
            words.extend(part.redirections.iter().map(|it| match it {
                Redirection::From(path) => format!("<{path}"),
                Redirection::To(path) => format!(">{path}"),
            }));
            words.join(" ")
        };
        Ok(understand(command)?.iter().map(part).collect())
    }

    #[test]
    fn a_command_line_is_taken_apart_as_a_shell_does() {
        let cases: &[(&str, &[&str])] = &[
            ("git log", &["git log"]),
            ("  git\t log  \n", &["git log"]),
            ("git log;", &["git log"]),
            ("git log &", &["git log"]),
            ("git log && ls; pwd", &["git log", "ls", "pwd"]),
            ("git log | head |& cat || true & x", &["git log", "head", "cat", "true", "x"]),
            ("a;b&c", &["a", "b", "c"]),
            ("\"git\" l'o'g", &["git log"]),
            ("g\\it log", &["git log"]),
            ("'git log' x", &["'git log' x"]),
            ("git log \"a;b && c | d > e\"", &["git log 'a;b && c | d > e'"]),
            ("git log 'a\"b' \"c'd\" e\\ f \"g\\\\h\\i\"", &["git log 'a\"b' 'c'\\''d' 'e f' 'g\\h\\i'"]),
            ("git log ''", &["git log ''"]),
            ("git log \\; x", &["git log ';' x"]),
            (
                "git log *.c ~/x $HOME \"$x\" ${x} a$ $?",
                &["git log [*.c] [~/x] [$HOME] [\"$x\"] [${x}] 'a$' [$?]"],
            ),
            ("git log a~ x=~ {a,b} [ab] a? }", &["git log 'a~' [x=~] [{a,b}] [[ab]] [a?] '}'"]),
            ("git log 2>&1", &["git log"]),
            ("git log >&2 2>&- <&0", &["git log"]),
            ("git log >/dev/null 2>&1 x", &["git log x >/dev/null"]),
            ("git log > a >> b >| c >& f <g &> d &>> e", &["git log >a >b >c >f <g >d >e"]),
            ("git log 2>a", &["git log >a"]),
            ("git log a2>a '2'>b", &["git log a2 2 >a >b"]),
            ("> a git log", &["git log >a"]),
            ("git log >'a b'", &["git log >a b"]),
            ("git log a#b", &["git log 'a#b'"]),
        ];
        for (command, parts) in cases {
            let parts = parts.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(shown(command), Ok(parts), "{command}");
        }
        let private = Redirection::To(format!("{PRIVATE_FOLDER}/a.txt"));
        for command in ["x > $TMPDIR/a.txt", "x > \"$TMPDIR/a.txt\"", "x > ${TMPDIR}/a.txt"] {
            assert_eq!(understand(command).unwrap()[0].redirections, std::slice::from_ref(&private));
        }
    }

    #[test]
    fn what_is_not_certain_is_not_understood() {
        let cases = [
            ("git log $(x)", "a command substitution"),
            ("git log '$(x)'", "a command substitution"),
            ("git log `x`", "a command substitution"),
            ("git log <(x)", "a process substitution"),
            ("git log >(x)", "a process substitution"),
            ("git log $((1))", "a command substitution"),
            ("git log $[1]", "an arithmetic expansion"),
            ("git log $'x'", "a quotation of a kind that not every shell knows"),
            ("git log $\"x\"", "a quotation of a kind that not every shell knows"),
            ("git log\nrm", "more than one line"),
            ("git log 'a\nb'", "more than one line"),
            ("git log \\\n x", "more than one line"),
            ("cat <<EOF\nx\nEOF", "more than one line"),
            ("cat << EOF", "a here-document or a file opened for both"),
            ("cat <<< x", "a redirection to nothing"),
            ("cat <> x", "a here-document or a file opened for both"),
            ("git log\rrm", "a control character"),
            ("git log\0", "a control character"),
            ("git log ${x@P}", "a parameter expansion that is more than a name"),
            ("git log ${x:-y}", "a parameter expansion that is more than a name"),
            ("git log \"${!x}\"", "a parameter expansion that is more than a name"),
            ("(git log)", "a subshell or a function"),
            ("git() { rm; }", "a subshell or a function"),
            ("git log @(a|b)", "a subshell or a function"),
            ("{ git log; }", "a command whose name is not spelt out"),
            ("! git log", "a keyword of the shell's language"),
            ("if git log; then x; fi", "a keyword of the shell's language"),
            ("for x in a; do git log; done", "a keyword of the shell's language"),
            ("FOO=1 git log", "a leading assignment"),
            ("FOO+=1", "a leading assignment"),
            ("a[0]=1 git log", "a command whose name is not spelt out"),
            ("$x log", "a command whose name is not spelt out"),
            ("g?t log", "a command whose name is not spelt out"),
            ("~/git log", "a command whose name is not spelt out"),
            ("git log #x", "a comment"),
            ("git log 'x", "a quotation without an end"),
            ("git log \"x", "a quotation without an end"),
            ("git log \"x\\", "a quotation without an end"),
            ("git log \\", "a backslash at its end"),
            ("git log\u{a0}x", "a blank that only looks like one"),
            ("git log\u{2003}x", "a blank that only looks like one"),
            ("git log &&", "a part without a command"),
            ("git log |", "a part without a command"),
            ("; git log", "a part without a command"),
            ("git log ;; x", "a part without a command"),
            ("> x", "a part without a command"),
            ("", "a part without a command"),
            ("git log > $x", "a redirection to a file that is not spelt out"),
            ("git log > *", "a redirection to a file that is not spelt out"),
            ("git log > $TMPDIR/../x", "a redirection to a file that is not spelt out"),
            ("git log > $TMPDIRx/y", "a redirection to a file that is not spelt out"),
            ("git log >", "a redirection to nothing"),
            ("git log > > x", "a redirection to nothing"),
            ("git log {fd}> x", "a redirection of a kind that not every shell knows"),
            ("git log &>/dev/null rm", "an argument behind `&>`"),
            ("git log <&x", "a redirection from what is not spelt out"),
            ("cd / && git log > x", "a change of folder beside a redirection"),
            ("export TMPDIR=/ && git log > $TMPDIR/x", "a change of folder beside a redirection"),
            ("x {TMPDIR,/} && git log > $TMPDIR/x", "a change of folder beside a redirection"),
            ("ln -s / $TMPDIR/l && git log > $TMPDIR/l/x", LINKS),
            ("timeout 5 /bin/cp -a l m | git log > m/x", LINKS),
        ];
        for (command, what) in cases {
            assert_eq!(shown(command), Err(what), "{command:?}");
        }
        assert_eq!(shown(&"x ".repeat(40_000)), Err("more than 32 KiB"));
    }
}
