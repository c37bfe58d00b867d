//! What was probably meant: the names nearest to one that is missing, the lines nearest to a text that
//! does not occur.
//!
//! This only words errors. Nothing found here is ever acted on.

use std::fmt::Write;

/// No name is longer, neither of a file nor of anything else: what is longer is near to none, and comparing it
/// would take seconds.
const MOST_NAME_BYTES: usize = 255;

/// Up to three of `names` that are spelt nearly like `wanted`, nearest first.
pub fn names<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut nearest = Nearest::to(wanted);
    names.into_iter().for_each(|name| nearest.add(name));
    nearest.into_names()
}

/// The nearest of any number of names, of which only these are kept.
pub struct Nearest {
    wanted: String,
    /// How many letters may be others.
    tolerated: usize,
    /// Each with its distance, nearest first.
    kept: Vec<(usize, String)>,
}

impl Nearest {
    const KEPT: usize = 3;

    /// Those nearest to `wanted`, with none looked at yet.
    pub fn to(wanted: &str) -> Nearest {
        let wanted = wanted.to_lowercase();
        let tolerated = (wanted.chars().count() / 3).max(2);
        Nearest { wanted, tolerated, kept: Vec::new() }
    }

    /// Looks at a name.
    pub fn add(&mut self, name: &str) {
        if self.wanted.len() > MOST_NAME_BYTES {
            return;
        }
        let (wanted, lower) = (&self.wanted, name.to_lowercase());
        let holds =
            wanted.len() > 2 && lower.len() > 2 && (lower.contains(wanted) || wanted.contains(&lower));
        let is_far = lower.len().abs_diff(wanted.len()) > 4 * self.tolerated;
        let steps = if is_far { usize::MAX } else { distance(wanted, &lower) };
        if steps <= self.tolerated || holds {
            self.kept.push((steps.min(self.tolerated), name.to_owned()));
            self.kept.sort();
            self.kept.truncate(Nearest::KEPT);
        }
    }

    /// Up to three names.
    pub fn into_names(self) -> Vec<String> {
        self.kept.into_iter().map(|(_, name)| name).collect()
    }
}

/// How many letters must be changed, added or dropped to make one text of the other.
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, there) in other.iter().enumerate() {
            let change = diagonal + usize::from(letter != *there);
            diagonal = row[column + 1];
            row[column + 1] = change.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

/// Only this much of a file is searched for a near place, so that an error stays cheap: a file of nothing but
/// newlines is the worst.
pub const SEARCHED_BYTES: usize = 1 << 20;
/// A long text is looked for by its first lines, and no more of the file is shown.
const SHOWN_LINES: usize = 20;
/// Lines in an error are cut to this many characters.
const SHOWN_CHARACTERS: usize = 160;
/// A place counts as near if this part of its text, in percent, is what was looked for.
const NEAR_PERCENT: usize = 50;

/// Words where in `content` the missing `wanted` nearly stands and what differs there, or nothing if
/// no place is near.
pub fn place(content: &[u8], wanted: &str) -> Option<String> {
    let content = String::from_utf8_lossy(&content[..content.len().min(SEARCHED_BYTES)]);
    let content = content.strip_prefix('\u{feff}').unwrap_or(&content);
    let there: Vec<&str> = content.split_inclusive('\n').collect();
    let wanted: Vec<&str> = wanted.split_inclusive('\n').collect();
    let there_plain: Vec<String> = there.iter().map(|line| plain(line, &ALL)).collect();
    let wanted_plain: Vec<String> = wanted.iter().take(SHOWN_LINES).map(|line| plain(line, &ALL)).collect();

    let full: usize = wanted_plain.iter().map(|line| line.len().max(1)).sum();
    let mut best = (0, 0);
    for start in 0..there.len() {
        let window = there_plain[start..].iter().zip(&wanted_plain);
        let alike: usize = window.map(|(one, other)| alike(one, other)).sum();
        if alike > best.0 {
            best = (alike, start);
        }
    }
    let (alike, start) = best;
    if alike == 0 || alike * 100 < full * NEAR_PERCENT {
        return None;
    }
    let window = &there[start..there.len().min(start + wanted.len())];
    let mut text = format!("the nearest place is line {}:\n", start + 1);
    for line in window.iter().take(SHOWN_LINES) {
        writeln!(text, "{}", shown(line)).expect("a string takes any text");
    }
    text.push_str(&differences(window, &wanted, start + 1));
    Some(text)
}

/// How much two lines have in common: their common beginning and end, in bytes.
fn alike(one: &str, other: &str) -> usize {
    if one == other {
        return one.len().max(1);
    }
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let start = one.iter().zip(other).take_while(|(left, right)| left == right).count();
    let rest = one.len().min(other.len()) - start;
    let (left, right) = (one.iter().rev(), other.iter().rev());
    start + left.zip(right).take(rest).take_while(|(left, right)| left == right).count()
}

/// What can differ unseen between a file and a model's idea of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A no-break space where there is a plain one, or the other way round.
    NoBreakSpaces,
    /// Typographic quotes and plain ones.
    Quotes,
    /// Tabs and spaces at the start of lines.
    Indentation,
    /// Spaces within or at the end of lines.
    Spacing,
    /// CRLF and LF.
    LineEndings,
}

const ALL: [Kind; 5] =
    [Kind::NoBreakSpaces, Kind::Quotes, Kind::Indentation, Kind::Spacing, Kind::LineEndings];

/// A line without what the given kinds of difference are about.
fn plain(line: &str, kinds: &[Kind]) -> String {
    let mut line = line.to_owned();
    for kind in kinds {
        line = match kind {
            Kind::NoBreakSpaces => line.replace(['\u{a0}', '\u{202f}'], " "),
            Kind::Quotes => line
                .replace(['\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'], "'")
                .replace(['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{ab}', '\u{bb}'], "\""),
            Kind::Indentation => line.trim_start_matches([' ', '\t']).to_owned(),
            Kind::Spacing => {
                let text = line.trim_start_matches([' ', '\t']);
                let indentation = &line[..line.len() - text.len()];
                let ending = &text[text.trim_end_matches(['\r', '\n']).len()..];
                let words: Vec<&str> = text[..text.len() - ending.len()].split([' ', '\t']).collect();
                let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
                format!("{indentation}{}{ending}", words.join(" "))
            }
            Kind::LineEndings => line.trim_end_matches(['\r', '\n']).to_owned(),
        };
    }
    line
}

/// Says what is different between the lines of a file and those looked for.
fn differences(there: &[&str], wanted: &[&str], first_line: usize) -> String {
    if there.len() < wanted.len() {
        return format!(
            "it ends there: old_string has {} lines, the file only {} from there on",
            wanted.len(),
            there.len()
        );
    }
    let last = wanted.len() - 1;
    let mut kinds = Vec::new();
    for (index, (there, wanted)) in there.iter().zip(wanted).enumerate() {
        // The text may begin and end in the middle of a line.
        let fits = |there: &str, wanted: &str| match (index == 0, index == last) {
            (true, true) => there.contains(wanted),
            (true, false) => there.ends_with(wanted),
            (false, true) => there.starts_with(wanted),
            (false, false) => there == wanted,
        };
        if fits(there, wanted) {
            continue;
        }
        if !fits(&plain(there, &ALL), &plain(wanted, &ALL)) {
            return other_line(first_line, index, there, wanted);
        }
        for kind in ALL {
            let others: Vec<Kind> = ALL.into_iter().filter(|it| *it != kind).collect();
            // Indentation is also what a first line cut short lacks: only whole lines tell.
            if !fits(&plain(there, &others), &plain(wanted, &others)) && !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
    }
    let named: Vec<String> = kinds.iter().map(|kind| described(*kind, there, wanted)).collect();
    match named.is_empty() {
        true => "it differs in white space".to_owned(),
        false => format!("it differs in {}", named.join(" and ")),
    }
}

/// Says that a line is another one than was looked for, and how if that cannot be seen.
fn other_line(first_line: usize, index: usize, there: &str, wanted: &str) -> String {
    let line = first_line + index;
    let mut text = match index < SHOWN_LINES {
        true => format!("line {line} is not what old_string has: {}", shown(wanted)),
        false => format!("line {line} is not what old_string has:\n{}\n{}", shown(there), shown(wanted)),
    };
    let pair = there.chars().zip(wanted.chars()).enumerate().find(|(_, (there, wanted))| there != wanted);
    // ASCII can be told apart by looking.
    if let Some((column, (there, wanted))) = pair
        && !(there.is_ascii() && wanted.is_ascii())
    {
        let (column, there, wanted) = (column + 1, u32::from(there), u32::from(wanted));
        let point = format!("\nat character {column} the file has U+{there:04X}, old_string U+{wanted:04X}");
        text.push_str(&point);
    }
    text
}

fn described(kind: Kind, there: &[&str], wanted: &[&str]) -> String {
    match kind {
        Kind::NoBreakSpaces => "no-break spaces (U+00A0 or U+202F against a plain space)".to_owned(),
        Kind::Quotes => "quotes (typographic against plain)".to_owned(),
        Kind::Spacing => "spaces within or at the end of a line".to_owned(),
        Kind::LineEndings if !there.iter().all(|line| line.ends_with('\n')) => {
            "its end (the file has no newline there)".to_owned()
        }
        Kind::LineEndings => "line endings (CRLF against LF)".to_owned(),
        Kind::Indentation => {
            let pairs =
                there.iter().zip(wanted).map(|(there, wanted)| (indentation(there), indentation(wanted)));
            let pair = pairs.into_iter().find(|(there, wanted)| there != wanted);
            let (there, wanted) = pair.unwrap_or_default();
            format!("indentation (the file has {there}, old_string {wanted})")
        }
    }
}

/// The indentation of a line in words, such as `2 tabs and 1 space`.
fn indentation(line: &str) -> String {
    let blank = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    let counted = |letter: char, name: &str| match blank.matches(letter).count() {
        0 => None,
        1 => Some(format!("1 {name}")),
        count => Some(format!("{count} {name}s")),
    };
    let parts: Vec<String> = [counted('\t', "tab"), counted(' ', "space")].into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(" and ") }
}

/// A line as an error shows it: without its ending, not too long, and without NULs, for which many servers
/// refuse a request.
fn shown(line: &str) -> String {
    let line = line.trim_end_matches(['\r', '\n']).replace('\0', "\u{fffd}");
    match line.char_indices().nth(SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_nearest_first() {
        let there = ["main.rs", "mian.rs", "lib.rs", "README.md", "main.rs.orig", "domain.rs"];
        assert_eq!(names("main.rs", there), ["main.rs", "domain.rs", "main.rs.orig"]);
        assert_eq!(names("Readme.md", there), ["README.md"]);
        assert_eq!(names("readme", there), ["README.md"]);
        assert_eq!(names("zebra.txt", there), [""; 0]);
        assert_eq!(names("", ["a", "abc"]), ["a"]);
        let (long, longest) = ("a".repeat(254), "a".repeat(255));
        assert_eq!(names(&longest, [long.as_str()]), [long.as_str()]);
        assert_eq!(names(&"a".repeat(256), [longest.as_str()]), [""; 0]);
    }

    #[test]
    fn distance_counts_changed_letters() {
        assert_eq!(distance("", ""), 0);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("modle", "model"), 2);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("дом", "том"), 1);
    }

    #[test]
    fn the_difference_is_named() {
        let cases = [
            (
                "fn a() {\n\treturn 1;\n}\n",
                "fn a() {\n    return 1;\n}",
                "the nearest place is line 1:\nfn a() {\n\treturn 1;\n}\n\
                 it differs in indentation (the file has 1 tab, old_string 4 spaces)",
            ),
            (
                "x\n\nlet a  = 1;\n",
                "let a = 1;",
                "the nearest place is line 3:\nlet a  = 1;\nit differs in spaces within or at the end of a line",
            ),
            (
                "a = \u{201c}one\u{201d}\n",
                "a = \"one\"",
                "the nearest place is line 1:\na = \u{201c}one\u{201d}\nit differs in quotes (typographic against plain)",
            ),
            (
                "price: 10\u{a0}EUR\n",
                "price: 10 EUR",
                "the nearest place is line 1:\nprice: 10\u{a0}EUR\n\
                 it differs in no-break spaces (U+00A0 or U+202F against a plain space)",
            ),
            (
                "one\ntwo\n",
                "one\r\ntwo",
                "the nearest place is line 1:\none\ntwo\nit differs in line endings (CRLF against LF)",
            ),
            (
                "one\n  \u{2018}two\u{2019}\nthree\n",
                "one\n'two'\nthree",
                "the nearest place is line 1:\none\n  \u{2018}two\u{2019}\nthree\n\
                 it differs in quotes (typographic against plain) and indentation \
                 (the file has 2 spaces, old_string none)",
            ),
            (
                "head\nlet value = compute(1);\nend\n",
                "head\nlet value = compute(2);\nend\n",
                "the nearest place is line 1:\nhead\nlet value = compute(1);\nend\n\
                 line 2 is not what old_string has: let value = compute(2);",
            ),
            (
                "one line\ntwo line\n",
                "two line\nred\n",
                "the nearest place is line 2:\ntwo line\n\
                 it ends there: old_string has 2 lines, the file only 1 from there on",
            ),
        ];
        for (content, wanted, text) in cases {
            assert_eq!(place(content.as_bytes(), wanted).as_deref(), Some(text), "{wanted}");
        }
    }

    /// It was said to differ in line endings.
    #[test]
    fn a_final_newline_that_the_file_has_not_is_named() {
        let text = "the nearest place is line 2:\ntwo\nit differs in its end (the file has no newline there)";
        assert_eq!(place(b"one\ntwo", "two\n").as_deref(), Some(text));
    }

    /// Only the first twenty lines were compared, and it was said to differ in white space.
    #[test]
    fn a_difference_behind_the_lines_shown_is_found() {
        let lines: Vec<String> = (1..=30).map(|number| format!("line {number}\n")).collect();
        let wanted = lines.concat().replace("line 25\n", "line 52\n");
        let text = format!(
            "the nearest place is line 1:\n{}line 25 is not what old_string has:\nline 25\nline 52",
            lines[..20].concat()
        );
        assert_eq!(place(lines.concat().as_bytes(), &wanted), Some(text));
    }

    #[test]
    fn letters_that_look_alike_are_told_by_their_code_points() {
        let text = "the nearest place is line 1:\nfrom 1 \u{2013} 2\n\
                    line 1 is not what old_string has: from 1 - 2\n\
                    at character 8 the file has U+2013, old_string U+002D";
        assert_eq!(place("from 1 \u{2013} 2\n".as_bytes(), "from 1 - 2").as_deref(), Some(text));
    }

    /// Many servers refuse a request that holds a NUL.
    #[test]
    fn a_nul_is_not_shown() {
        let text = "the nearest place is line 1:\nkey\u{fffd}value\n\
                    line 1 is not what old_string has: key\u{fffd}values";
        assert_eq!(place(b"key\0value\n", "key\0values").as_deref(), Some(text));
    }

    #[test]
    fn nothing_near_is_nothing() {
        assert_eq!(place(b"", "abc"), None);
        assert_eq!(place(b"alpha\nbeta\n", "completely different\nlines of text"), None);
    }

    #[test]
    fn a_long_line_is_cut_in_the_error() {
        let line = "é".repeat(500);
        let text = place(line.as_bytes(), &format!("{line}!")).unwrap();
        assert!(text.contains(&format!("\n{}…\n", "é".repeat(160))), "{text}");
    }

    #[test]
    fn no_input_panics() {
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let parts = ["\n", "\r\n", "\r", " ", "\t", "a", "é", "\u{a0}", "\u{201c}", "\"", "\u{feff}", "abc"];
        for _ in 0..5_000 {
            let mut text =
                || -> String { (0..random() % 12).map(|_| parts[random() % parts.len()]).collect() };
            let (content, wanted) = (text(), text());
            place(content.as_bytes(), &wanted);
            names(&wanted, [content.as_str()]);
        }
    }
}
