//! Which files a context file names with `@path`, and what of its text is a comment.
//!
//! A path is an import where it stands in the text, after white space, as Claude Code has it: not in code, not in
//! a comment, and not the end of an e-mail address. Nothing here looks at a file.

use std::collections::BTreeSet;

/// The text without comments that stand by themselves, and the paths that it imports, in order.
pub fn read(text: &str) -> (String, Vec<String>) {
    let (kept, prose) = split(text);
    let paths = mentions(&without_spans(&prose));
    (kept, paths)
}

/// What a line is part of.
enum Block {
    /// Text, in which an indented line is no code: it belongs to a list or a paragraph.
    Text,
    /// Nothing yet: an indented line begins a block of code.
    Start,
    /// Code that is indented.
    Indented,
    /// Code between fences of this character and at least this length.
    Fenced(char, usize),
}

/// The text without its comments, and of that the lines that are not code.
fn split(text: &str) -> (String, String) {
    let (mut kept, mut prose) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let mut block = Block::Start;
    // Below the item of a list, an indented line is text, however many empty ones there are between.
    let mut in_list = false;
    // Behind this no comment ends, and none is looked for.
    let last_close = text.rfind("-->");
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let (line, after) = rest.split_at(end);
        let inner = line.trim_start();
        // A tab is as good as four spaces; what is in a list may be indented further.
        let is_indented = line.starts_with("    ") || line[..line.len() - inner.len()].contains('\t');
        match block {
            Block::Fenced(mark, length) => {
                kept.push_str(line);
                if fence(inner).is_some_and(|(other, found)| other == mark && found >= length)
                    && inner.trim_start_matches(mark).trim().is_empty()
                {
                    block = Block::Start;
                }
            }
            _ if inner.is_empty() => {
                kept.push_str(line);
                prose.push('\n');
                block = Block::Start;
            }
            Block::Start | Block::Indented if is_indented && !in_list => {
                kept.push_str(line);
                block = Block::Indented;
            }
            _ if fence(inner).is_some() => {
                kept.push_str(line);
                prose.push('\n');
                let (mark, length) = fence(inner).expect("it was just found");
                block = Block::Fenced(mark, length);
            }
            _ if inner.starts_with("<!--") && last_close > Some(text.len() - rest.len()) => {
                // What follows the comment is a line of its own, which may begin a comment again.
                let close = rest.find("-->").expect("there is one behind this place") + "-->".len();
                let left = &rest[close..];
                rest = left.strip_prefix('\n').unwrap_or(left);
                block = Block::Start;
                continue;
            }
            _ => {
                in_list = is_item(inner) || in_list && line.starts_with([' ', '\t']);
                kept.push_str(line);
                prose.push_str(line);
                block = Block::Text;
            }
        }
        rest = after;
    }
    (kept, prose)
}

/// The character and the length of a line of code's fence.
fn fence(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.chars().take_while(|character| *character == mark).count();
    // A line such as ```x``` is a span of code.
    (length >= 3 && !(mark == '`' && line[length..].contains('`'))).then_some((mark, length))
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let after = match digits {
        0 => line.strip_prefix(['-', '*', '+']),
        _ => line[digits..].strip_prefix(['.', ')']),
    };
    after.is_some_and(|after| after.starts_with([' ', '\t', '\n']))
}

/// What stands for a span of code or a comment: no path holds it.
const SPAN: char = '\0';

/// The text with each span of code and each comment in it made one character. None goes beyond a paragraph.
fn without_spans(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    for paragraph in text.split_inclusive("\n\n") {
        let last_close = paragraph.rfind("-->");
        let mut rest = paragraph;
        while let Some(at) = rest.find(['`', '<']) {
            left.push_str(&rest[..at]);
            rest = &rest[at..];
            let is_comment = rest.starts_with("<!--") && last_close > Some(paragraph.len() - rest.len());
            let length = match rest.chars().take_while(|character| *character == '`').count() {
                0 if is_comment => rest.find("-->").map(|close| close + "-->".len()),
                0 => None,
                ticks => closing(rest, ticks),
            };
            // Without an end, its first characters are text.
            let passed = length.unwrap_or_else(|| rest.len() - rest[1..].trim_start_matches('`').len());
            match length {
                Some(_) => left.push(SPAN),
                None => left.push_str(&rest[..passed]),
            }
            rest = &rest[passed..];
        }
        left.push_str(rest);
    }
    left
}

/// Where the span of code ends that so many backticks begin.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let mut at = ticks;
    loop {
        at += text[at..].find('`')?;
        let run = text[at..].chars().take_while(|character| *character == '`').count();
        at += run;
        if run == ticks {
            return Some(at);
        }
    }
}

/// The paths behind an `@` at the start of a word.
fn mentions(text: &str) -> Vec<String> {
    let (mut paths, mut seen) = (Vec::new(), BTreeSet::new());
    for (at, _) in text.match_indices('@') {
        let before = &text[..at];
        // What is emphasised is a text of its own.
        let emphasis = before.len() - before.trim_end_matches(['*', '_']).len();
        if before.trim_end_matches(['*', '_']).ends_with(|character: char| !character.is_whitespace()) {
            continue;
        }
        let mut path = word(&text[at + 1..]);
        if emphasis > 0 {
            path.truncate(path.trim_end_matches(['*', '_']).len());
        }
        if let Some(fragment) = path.find('#') {
            path.truncate(fragment);
        }
        if is_path(&path) && seen.insert(path.clone()) {
            paths.push(path);
        }
    }
    paths
}

/// The text up to the first white space or span; a space behind a backslash belongs to it.
fn word(text: &str) -> String {
    let mut word = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if characters.peek() == Some(&' ') => word.extend(characters.next()),
            '\\' | SPAN => break,
            _ if character.is_whitespace() => break,
            _ => word.push(character),
        }
    }
    word
}

/// Whether a word can be meant as a path.
fn is_path(word: &str) -> bool {
    match word.chars().next() {
        Some('/') => word != "/",
        Some('~') => word.starts_with("~/"),
        Some(first) => first.is_ascii_alphanumeric() || matches!(first, '.' | '_' | '-'),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        read(text).1
    }

    #[test]
    fn a_path_stands_at_the_start_of_a_word() {
        assert_eq!(paths("See @README and @docs/a.md.\n- @./b\n"), ["README", "docs/a.md.", "./b"]);
        assert_eq!(paths("@~/x.md @/etc/x @../up @.hidden"), ["~/x.md", "/etc/x", "../up", ".hidden"]);
        assert_eq!(paths("> @quoted\n# @title\n\t@tab"), ["quoted", "title", "tab"]);
        assert_eq!(paths("**@bold.md** and _@slanted_"), ["bold.md", "slanted"]);
    }

    #[test]
    fn what_is_no_path_is_no_import() {
        for text in [
            "me@example.org",
            "(@a)",
            "x:@a",
            "@",
            "@ a",
            "@/",
            "@~",
            "@~x",
            "@@a",
            "@#a",
            "@(a)",
            "\\@a",
            "@*",
        ] {
            assert_eq!(paths(text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn a_fragment_is_left_out_and_a_space_may_be_escaped() {
        assert_eq!(paths(r"@a.md#part @my\ notes.md @b\c @a.md"), ["a.md", "my notes.md", "b"]);
    }

    /// The mark that stood for them became the end of the path.
    #[test]
    fn a_span_or_a_comment_ends_a_path() {
        assert_eq!(paths("@a.md<!-- why --> @b.md`code` `c`@c"), ["a.md", "b.md"]);
        assert_eq!(paths("@it`s.md and @d` @e"), ["it", "e"]);
        assert_eq!(paths("@it`s.md"), ["it`s.md"]);
    }

    #[test]
    fn code_imports_nothing() {
        for text in [
            "`@a`",
            "`` ` @a ``",
            "`one\n@a two`",
            "```\n@a\n```",
            "~~~ sh\n@a\n```\n@a\n~~~",
            "````\n```\n@a\n````",
            "```\n@a",
            "    @a",
            "text\n\n    @a\n    @a\n",
            "\t@a",
        ] {
            assert_eq!(paths(text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_code_is_text() {
        for text in [
            "a ` b\n\n@a `",
            "`` ` @a",
            "```x``` @a",
            "```\n```\n@a",
            "text\n    @a",
            "- one\n\n    @a",
            "1. one\n\n    two\n\n    @a",
            "``\n@a\n",
        ] {
            assert_eq!(paths(text), ["a"], "{text}");
        }
    }

    #[test]
    fn a_comment_by_itself_is_left_out_with_its_imports() {
        let text = "one\n<!-- @a\n\n@b -->\ntwo <!-- @c --> three\n<!-- x --> @d\n<!-- @e";
        assert_eq!(
            read(text),
            ("one\ntwo <!-- @c --> three\n @d\n<!-- @e".to_owned(), vec!["d".to_owned(), "e".to_owned()])
        );
        let code = "```\n<!-- kept -->\n```\n";
        assert_eq!(read(code), (code.to_owned(), Vec::new()));
    }
}
