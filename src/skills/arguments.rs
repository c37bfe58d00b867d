//! What was given to a skill, put into its body: `$ARGUMENTS`, `$ARGUMENTS[N]`, `$N` and named ones.
//!
//! Pure, in one pass: what was put in is never looked at again. Counting starts at 0.

/// A filled body may not be longer: a body that names its arguments a thousand times makes a giant of them.
const MOST_BYTES: usize = 16 << 20;

/// What a body may ask for.
pub struct Given<'a> {
    /// The arguments as typed.
    pub arguments: &'a str,
    /// The names that the skill gives to the first of them.
    pub names: &'a [String],
    /// Where the skill's folder is.
    pub folder: &'a str,
    /// Where the repository begins.
    pub project: &'a str,
}

/// The body with its placeholders filled. Arguments that none of them took stand behind it.
///
/// # Errors
///
/// It would be longer than any model takes.
pub fn fill(body: &str, given: &Given) -> Result<String, String> {
    let typed = given.arguments.trim();
    let words = split(typed);
    let mut filled = String::with_capacity(body.len() + typed.len());
    let mut took_any = false;
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        let (before, from) = (&rest[..at], &rest[at..]);
        let placeholder = placeholder(from, given.names);
        let (meant, length) = match &placeholder {
            Some((placeholder, length)) => (meaning(placeholder, given, typed, &words), *length),
            None => (None, 1),
        };
        // One backslash makes a text of a placeholder, two do not.
        let is_escaped = before.ends_with('\\') && !before.ends_with("\\\\");
        let is_argument =
            !matches!(placeholder, None | Some((Placeholder::Folder | Placeholder::Project, _)));
        if is_escaped && is_argument {
            filled.push_str(&before[..before.len() - 1]);
            filled.push_str(&from[..length]);
        } else {
            filled.push_str(before);
            filled.push_str(meant.unwrap_or(&from[..length]));
            took_any |= is_argument && meant.is_some();
        }
        if filled.len() > MOST_BYTES {
            return Err(format!("with its arguments it is longer than {} MiB", MOST_BYTES >> 20));
        }
        rest = &from[length..];
    }
    filled.push_str(rest);
    if !typed.is_empty() && !took_any {
        filled.truncate(filled.trim_end().len());
        filled.push_str("\n\nARGUMENTS: ");
        filled.push_str(typed);
    }
    Ok(filled)
}

/// The arguments one by one, divided at blanks as a shell does it. Where quotes do not match they are letters.
pub fn split(typed: &str) -> Vec<String> {
    quoted_words(typed).unwrap_or_else(|| typed.split_whitespace().map(str::to_owned).collect())
}

fn quoted_words(typed: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = typed.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some('\''), letter) => word.get_or_insert_default().push(letter),
            (Some(_), '\\') => {
                let next = letters.next()?;
                let word = word.get_or_insert_default();
                if !matches!(next, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(next);
            }
            (None, '\\') => word.get_or_insert_default().push(letters.next()?),
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

enum Placeholder {
    All,
    Number(usize),
    /// Which of the names.
    Name(usize),
    Folder,
    Project,
}

/// The placeholder at the beginning of a text that begins with `$`, and its length.
fn placeholder(text: &str, names: &[String]) -> Option<(Placeholder, usize)> {
    let behind = &text[1..];
    for (name, placeholder) in
        [("{CLAUDE_SKILL_DIR}", Placeholder::Folder), ("{CLAUDE_PROJECT_DIR}", Placeholder::Project)]
    {
        if behind.starts_with(name) {
            return Some((placeholder, 1 + name.len()));
        }
    }
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let word = &behind[..behind.find(|letter| !is_word(letter)).unwrap_or(behind.len())];
    if word == "ARGUMENTS" {
        let length = 1 + word.len();
        return Some(match index(&text[length..]) {
            Some((number, more)) => (Placeholder::Number(number), length + more),
            None => (Placeholder::All, length),
        });
    }
    if let Some(name) = names.iter().position(|name| name == word) {
        return Some((Placeholder::Name(name), 1 + word.len()));
    }
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|_| is_number)?;
    Some((Placeholder::Number(number), 1 + word.len()))
}

/// The number in `[N]`, and how long that is.
fn index(text: &str) -> Option<(usize, usize)> {
    let inner = text.strip_prefix('[')?;
    let number = &inner[..inner.bytes().take_while(u8::is_ascii_digit).count()];
    inner[number.len()..].starts_with(']').then_some(())?;
    Some((number.parse().ok()?, number.len() + 2))
}

/// What stands for a placeholder; nothing if it stays, since there are fewer arguments.
fn meaning<'a>(
    placeholder: &Placeholder,
    given: &Given<'a>,
    typed: &'a str,
    words: &'a [String],
) -> Option<&'a str> {
    match placeholder {
        Placeholder::All => Some(typed),
        Placeholder::Number(number) => words.get(*number).map(String::as_str),
        Placeholder::Name(number) => Some(words.get(*number).map_or("", String::as_str)),
        Placeholder::Folder => Some(given.folder),
        Placeholder::Project => Some(given.project),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(body: &str, arguments: &str) -> String {
        let names = ["issue".to_owned(), "branch".to_owned()];
        let given = Given { arguments, names: &names, folder: "f/x", project: ".." };
        fill(body, &given).unwrap()
    }

    #[test]
    fn placeholders_are_filled_and_counting_starts_at_0() {
        let cases = [
            ("Fix $ARGUMENTS now.", "123 urgent", "Fix 123 urgent now."),
            ("$0 from $1 to $ARGUMENTS[2].", "SearchBar React Vue", "SearchBar from React to Vue."),
            ("[$0][$1]", "\"hello world\" second", "[hello world][second]"),
            ("[$ARGUMENTS]", " \"a b\"  c ", "[\"a b\"  c]"),
            ("$0 $2", "solo", "solo $2"),
            ("$issue on $branch.", "42 hotfix", "42 on hotfix."),
            ("[$issue][$branch]", "42", "[42][]"),
            ("$total $HOME ${x} $0", "a", "$total $HOME ${x} a"),
            ("$ARGUMENTS[x] $ARGUMENTS[] $ARGUMENTS[9]", "a b", "a b[x] a b[] $ARGUMENTS[9]"),
            ("$ARGUMENTSX $1st $0", "a b", "$ARGUMENTSX $1st a"),
            ("Sum $0", "\"$ARGUMENTS from $0\" x", "Sum $ARGUMENTS from $0"),
            ("bash ${CLAUDE_SKILL_DIR}/y.sh ${CLAUDE_PROJECT_DIR}/z $0", "a", "bash f/x/y.sh ../z a"),
            ("$99999999999999999999 $0", "a", "$99999999999999999999 a"),
            ("cost $ $0$", "a", "cost $ a$"),
        ];
        for (body, arguments, expected) in cases {
            assert_eq!(filled(body, arguments), expected, "{body}");
        }
    }

    #[test]
    fn arguments_that_nothing_took_stand_behind_the_body() {
        assert_eq!(filled("Do it.\n", "a  b"), "Do it.\n\nARGUMENTS: a  b");
        assert_eq!(filled("Only $7.\n", "a"), "Only $7.\n\nARGUMENTS: a");
        assert_eq!(filled("\\$0 ${CLAUDE_SKILL_DIR}", "a"), "$0 f/x\n\nARGUMENTS: a");
        assert_eq!(filled("[$branch]", "a"), "[]");
        assert_eq!(filled("Do it.\n", " "), "Do it.\n");
        assert_eq!(filled("Do $ARGUMENTS.\n", ""), "Do .\n");
    }

    #[test]
    fn a_backslash_makes_a_text_of_a_placeholder() {
        assert_eq!(filled("\\$1.00 \\$ARGUMENTS \\$issue $0", "a b"), "$1.00 $ARGUMENTS $issue a");
        assert_eq!(filled("\\$x \\\\$0 $0", "a"), "\\$x \\\\a a");
        assert_eq!(filled("\\${CLAUDE_SKILL_DIR} $0", "a"), "\\f/x a");
    }

    #[test]
    fn arguments_are_divided_as_a_shell_does_it() {
        let cases: &[(&str, &[&str])] = &[
            ("a  b\tc\nd", &["a", "b", "c", "d"]),
            ("'a b' \"c d\"e", &["a b", "c de"]),
            ("\"a\\\"b\" a\\ b \"c\\d\"", &["a\"b", "a b", "c\\d"]),
            ("'' \"\"", &["", ""]),
            ("don't do it", &["don't", "do", "it"]),
            ("\"open", &["\"open"]),
            ("end\\", &["end\\"]),
            ("", &[]),
        ];
        for (typed, expected) in cases {
            assert_eq!(split(typed), *expected, "{typed}");
        }
    }

    #[test]
    fn no_body_and_no_arguments_make_it_panic() {
        let pieces = [
            "$",
            "ARGUMENTS",
            "[",
            "0",
            "]",
            "\\",
            "{CLAUDE_SKILL_DIR}",
            "issue",
            "é",
            " ",
            "\"",
            "'",
            "_",
            "{",
            "\n",
        ];
        let mut state = 7_u64;
        let mut text = || {
            let piece = |state: &mut u64| {
                *state =
                    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                pieces[(*state >> 33) as usize % pieces.len()]
            };
            (0..10).map(|_| piece(&mut state)).collect::<String>()
        };
        for _ in 0..20_000 {
            filled(&text(), &text());
        }
    }

    #[test]
    fn a_body_that_would_become_a_giant_is_refused() {
        let given = Given { arguments: &"x".repeat(1 << 20), names: &[], folder: "f", project: "." };
        let error = fill(&"$ARGUMENTS ".repeat(1000), &given).unwrap_err();
        assert_eq!(error, "with its arguments it is longer than 16 MiB");
    }
}
