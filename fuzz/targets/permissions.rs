//! Rules and what they are about: a rule forbids all that it allows, and a rule about commands never allows what
//! the shell could make another command of.

use crate::sandbox::paths::Places;
use crate::sandbox::permissions::Permissions;
use crate::sandbox::rules::{Rule, Specifier, split};
use crate::tools::Workspace;
use crate::tools::access::Access;

/// A rule, and a command line or a path.
pub fn run(bytes: &[u8]) {
    let Some([list, subject]) = super::texts::<2>(bytes) else { return };
    let rules = split(list);
    assert!(rules.iter().all(|rule| !rule.is_empty() && list.contains(rule)));
    let places = Places { workspace: "/w".into(), home: Some("/h".into()) };
    for text in rules.into_iter().take(2) {
        let Ok(rule) = Rule::parse(text, &places) else { continue };
        let (tool, access) = match rule.tool.as_str() {
            "Bash" => ("Bash", Access::Run(subject)),
            "Read" => ("Read", Access::Read(subject)),
            "Edit" => ("Edit", Access::Edit(subject)),
            _ => ("Write", Access::Write(subject)),
        };
        let workspace = Workspace { root: "/w".into(), private: Some("/p".into()), places: Vec::new() };
        let judged = |allowed: Option<Vec<Rule>>, denied: Vec<Rule>| {
            let permissions = Permissions { allowed, denied, sandbox_is_off: true, ..Permissions::default() };
            permissions.judge(tool, &access, &workspace).is_ok()
        };
        let nothing_allows = !judged(Some(Vec::new()), Vec::new());
        let allows = judged(Some(vec![rule.clone()]), Vec::new()) && nothing_allows;
        let forbids = !judged(None, vec![rule.clone()]);
        assert!(!allows || forbids, "{text:?} allows {subject:?} and does not forbid it");
        if rule.is_about_whole_tool() && rule.tool == tool {
            assert!(forbids, "{text:?} does not forbid {subject:?}");
        }
        if let (true, "Bash", Specifier::Command(_)) = (allows, tool, &rule.specifier) {
            let typed = text.trim_start_matches("Bash(").strip_suffix(')').unwrap_or_default().trim();
            certainly_means(typed, subject);
        }
        if tool == "Bash" && !nothing_allows {
            panic!("nothing allows {subject:?}, and yet it may run");
        }
    }
}

/// Asserts that each command of a command line is one that the rule means.
fn certainly_means(rule: &str, command: &str) {
    let trim = |text: &str| text.trim_matches([' ', '\t', '\n']).to_owned();
    let plain = rule.replace("\\(", "(").replace("\\)", ")");
    if trim(command) == plain.trim() {
        return;
    }
    let command = trim(command);
    for sight in ["$(", "`", "<(", ">(", "\n"] {
        assert!(!command.contains(sight), "{rule:?} allows {command:?}");
    }
    let front = plain.strip_suffix(":*").or_else(|| plain.strip_suffix(" *"));
    let wanted = match front {
        Some(front) if !front.contains('*') => Some(words(front)),
        _ => None,
    };
    for piece in commands(&command) {
        assert!(!piece.is_assigned, "{rule:?} allows an assignment in {command:?}");
        for file in &piece.written {
            let is_nowhere = ["/dev/null", "/dev/stdout", "/dev/stderr"].contains(&file.as_str());
            assert!(
                is_nowhere || file.starts_with("$TMPDIR"),
                "{rule:?} allows to write {file:?} by {command:?}"
            );
        }
        let Some(wanted) = &wanted else { continue };
        let begins = (0..piece.words.len()).find(|at| piece.words[*at..].starts_with(wanted));
        let wrappers = ["timeout", "time", "nice", "nohup", "stdbuf", "xargs"];
        let is_meant = match begins {
            Some(0) => true,
            Some(_) => wrappers.contains(&piece.words[0].as_str()),
            None => false,
        };
        assert!(is_meant, "{rule:?} allows {:?} in {command:?}", piece.words);
    }
}

fn words(text: &str) -> Vec<String> {
    commands(text).into_iter().next().map(|piece| piece.words).unwrap_or_default()
}

#[derive(Default)]
struct Piece {
    words: Vec<String>,
    written: Vec<String>,
    is_assigned: bool,
}

/// The commands of a command line, roughly as a shell reads it.
fn commands(command: &str) -> Vec<Piece> {
    let mut pieces = vec![Piece::default()];
    let mut letters = command.chars().peekable();
    // Whether the next word is a file, and whether that is written.
    let mut redirection = None;
    while let Some(letter) = letters.peek().copied() {
        match letter {
            ' ' | '\t' => {
                letters.next();
            }
            ';' | '|' | '(' | ')' => {
                letters.next();
                pieces.push(Piece::default());
            }
            '&' => {
                letters.next();
                match letters.peek() {
                    Some('>') => {}
                    _ => pieces.push(Piece::default()),
                }
            }
            '<' | '>' => {
                letters.next();
                let mut is_written = letter == '>';
                let mut is_copy = false;
                while let Some(more) = letters.next_if(|next| "<>&|-".contains(*next)) {
                    is_written |= more == '>';
                    is_copy |= more == '&';
                }
                redirection = Some((is_written, is_copy));
            }
            _ => {
                let (mut word, mut raw, mut quote) = (String::new(), String::new(), None);
                while let Some(letter) = letters.peek().copied() {
                    if quote.is_none() && " \t;|()&<>".contains(letter) {
                        break;
                    }
                    letters.next();
                    match (quote, letter) {
                        (None, '\'' | '"') => quote = Some(letter),
                        (Some(open), letter) if open == letter => quote = None,
                        (None, '\\') => {
                            word.extend(letters.next());
                            raw.push('\\');
                        }
                        (Some('"'), '\\') => match letters.next_if(|next| "$`\"\\".contains(*next)) {
                            Some(escaped) => word.push(escaped),
                            None => word.push('\\'),
                        },
                        (None, letter) => {
                            word.push(letter);
                            raw.push(letter);
                        }
                        (_, letter) => word.push(letter),
                    }
                }
                let piece = pieces.last_mut().expect("there is one");
                let is_number =
                    !raw.is_empty() && raw.bytes().all(|byte| byte.is_ascii_digit()) && raw == word;
                match redirection.take() {
                    Some((true, is_copy)) if !(is_copy && word.bytes().all(|byte| byte.is_ascii_digit())) => {
                        piece.written.push(word);
                    }
                    Some(_) => {}
                    None if is_number && matches!(letters.peek(), Some('<' | '>')) => {}
                    None => {
                        let name = raw.split_once('=').map(|(name, _)| name.trim_end_matches('+'));
                        let is_name = |name: &str| {
                            !name.is_empty()
                                && !name.starts_with(|first: char| first.is_ascii_digit())
                                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                        };
                        piece.is_assigned |= piece.words.is_empty() && name.is_some_and(is_name);
                        piece.words.push(word);
                    }
                }
            }
        }
    }
    pieces.retain(|piece| !piece.words.is_empty() || !piece.written.is_empty());
    pieces
}
