//! The head of a skill's file: `key: value`, quoted strings, block text and lists of texts.
//!
//! That is the part of YAML that skills are written in. Anything else is an error that names the line, and no
//! value is ever guessed; what a key says that nobody asks for may have any form. Pure; no bytes make it panic.

/// What a key says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing stands there.
    Nothing,
    /// A text, whatever its quotes.
    Text(String),
    /// A list of texts.
    List(Vec<String>),
}

/// The keys of a front matter with what they say, or why that cannot be read, in order.
pub type Keys = Vec<(String, Result<Value, String>)>;

/// The most keys: nobody writes more, and each is compared with all.
const MOST_KEYS: usize = 100;

/// Divides a file into the keys of its front matter and its body. Without one the whole file is body.
///
/// # Errors
///
/// What cannot be read, with its line; the text completes "its front matter cannot be read: …".
pub fn read(text: &str) -> Result<(Keys, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Lines { rest: text };
    if lines.next().map(str::trim_end) != Some("---") {
        return Ok((Keys::new(), text));
    }
    let mut head = Vec::new();
    loop {
        match lines.next() {
            None => return Err("no line --- ends it".to_owned()),
            Some(line) if matches!(line.trim_end(), "---" | "...") => break,
            Some(line) => head.push(line.trim_end_matches('\r')),
        }
    }
    Ok((keys(&head)?, lines.rest))
}

/// Lines without their ends, and what follows them.
struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        Some(line)
    }
}

fn keys(lines: &[&str]) -> Result<Keys, String> {
    let mut keys = Keys::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let number = at + 2;
        at += 1;
        if is_blank(line) || line.starts_with('#') {
            continue;
        }
        let problem = |what: &str| format!("line {number} {what}");
        let (key, rest) = key_of(line).ok_or_else(|| problem("is no \"key: value\""))?;
        if keys.len() == MOST_KEYS {
            return Err(problem(&format!("is one of more than {MOST_KEYS} keys")));
        }
        if keys.iter().any(|(other, _)| other == key) {
            return Err(problem(&format!("gives \"{key}\" a second time")));
        }
        let end = at + length_of_block(&lines[at..], without_comment(rest).is_empty());
        let value = value(rest, &lines[at..end]);
        keys.push((key.to_owned(), value.map_err(|what| problem(&format!("(\"{key}\") has {what}")))));
        at = end;
    }
    Ok(keys)
}

fn is_blank(line: &str) -> bool {
    line.trim_matches([' ', '\t']).is_empty()
}

/// A key at the beginning of a line, and what stands behind its colon.
fn key_of(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let is_key = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let is_whole = rest.is_empty() || rest.starts_with([' ', '\t']);
    (is_whole && !key.is_empty() && key.chars().all(is_key)).then(|| (key, rest.trim_matches([' ', '\t'])))
}

/// How many lines belong to the key above them: those set in, and the blank ones among them. A list may begin
/// right below its key.
fn length_of_block(lines: &[&str], may_be_list: bool) -> usize {
    let belongs = |line: &&str| {
        is_blank(line)
            || line.starts_with([' ', '\t'])
            || may_be_list && (line.starts_with("- ") || *line == "-")
    };
    lines.iter().take_while(|line| belongs(line)).count()
}

/// What a key says: behind its colon and in the lines below. Errors complete "it has …".
fn value(rest: &str, block: &[&str]) -> Result<Value, String> {
    match rest.chars().next() {
        Some('|' | '>') => block_text(rest, block).map(Value::Text),
        Some('"' | '\'') => quoted(&joined(rest, block)).map(Value::Text),
        Some('[') => flow_list(&joined(rest, block)).map(Value::List),
        _ if without_comment(rest).is_empty() => below(block),
        _ => {
            refuse_foreign(rest)?;
            Ok(plain(&folded_lines(rest, block)))
        }
    }
}

fn joined(rest: &str, block: &[&str]) -> String {
    std::iter::once(rest).chain(block.iter().copied()).collect::<Vec<_>>().join("\n")
}

/// What stands below a key that has nothing on its own line.
fn below(block: &[&str]) -> Result<Value, String> {
    let mut lines = block.iter().filter(|line| !is_blank(line) && !line.trim_start().starts_with('#'));
    let Some(first) = lines.next() else { return Ok(Value::Nothing) };
    let first = first.trim_matches([' ', '\t']);
    if first == "-" || first.starts_with("- ") {
        return block_list(block).map(Value::List);
    }
    if key_of(first).is_some() {
        return Err("keys below it: only texts and lists of texts are understood".to_owned());
    }
    match first.chars().next() {
        Some('"' | '\'') => quoted(block.join("\n").trim_start()).map(Value::Text),
        Some('[') => flow_list(block.join("\n").trim_start()).map(Value::List),
        _ => {
            refuse_foreign(first)?;
            Ok(plain(&folded_lines("", block)))
        }
    }
}

/// Refuses what YAML gives another meaning than that of a text.
fn refuse_foreign(text: &str) -> Result<(), String> {
    match text.chars().next() {
        Some('{') => Err("a mapping in braces".to_owned()),
        Some('&' | '*' | '!') => Err("an anchor, an alias or a tag".to_owned()),
        Some(letter @ ('%' | '@' | '`' | ']' | '}' | ',')) => {
            Err(format!("a text that begins with {letter}"))
        }
        _ if text == "-" || text.starts_with("- ") => Err("a list on its own line".to_owned()),
        _ if text == "?" || text.starts_with("? ") => Err("a key that is no word".to_owned()),
        _ => Ok(()),
    }
}

/// A text without quotes. Numbers and the like are texts too, but nothing is nothing.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Nothing,
        text => Value::Text(text.to_owned()),
    }
}

/// The line up to a comment: a `#` begins one at the line's beginning or behind a blank.
fn without_comment(line: &str) -> &str {
    let begins = |(at, _): &(usize, &str)| *at == 0 || line[..*at].ends_with([' ', '\t']);
    let end = line.match_indices('#').find(begins).map_or(line.len(), |(at, _)| at);
    line[..end].trim_matches([' ', '\t'])
}

/// Lines of a text without quotes: a line's end is a blank, an empty line a line's end.
fn folded_lines(first: &str, block: &[&str]) -> String {
    let mut text = without_comment(first).to_owned();
    let mut empty = 0;
    for line in block {
        match without_comment(line) {
            "" if is_blank(line) => empty += 1,
            "" => {}
            more => {
                text.push_str(&gap(empty, text.is_empty()));
                text.push_str(more);
                empty = 0;
            }
        }
    }
    text
}

/// What stands between two lines of a folded text that have so many empty ones between them.
fn gap(empty: usize, is_start: bool) -> String {
    match (is_start, empty) {
        (true, _) => String::new(),
        (false, 0) => " ".to_owned(),
        (false, more) => "\n".repeat(more),
    }
}

/// A text in quotes, which may go on over lines, and nothing behind it but a comment.
fn quoted(text: &str) -> Result<String, String> {
    let (text, rest) = match text.strip_prefix('\'') {
        Some(inner) => single_quoted(inner)?,
        None => double_quoted(text.strip_prefix('"').unwrap_or(text))?,
    };
    refuse_rest(rest)?;
    Ok(text)
}

/// Refuses anything but comments behind a value.
fn refuse_rest(rest: &str) -> Result<(), String> {
    let is_set_off = rest.is_empty() || rest.starts_with([' ', '\t', '\n']);
    match is_set_off && rest.split('\n').all(|line| without_comment(line).is_empty()) {
        true => Ok(()),
        false => Err("something behind its value".to_owned()),
    }
}

const UNCLOSED: &str = "a quotation that nothing ends";

/// The text up to the quote that ends it, and what follows that.
fn single_quoted(text: &str) -> Result<(String, &str), String> {
    let mut read = String::new();
    let mut rest = text;
    loop {
        let at = rest.find(['\'', '\n']).ok_or(UNCLOSED)?;
        read.push_str(&rest[..at]);
        let found = &rest[at..];
        rest = if found.starts_with('\n') {
            line_end(&mut read, 0, found)
        } else if let Some(rest) = found.strip_prefix("''") {
            read.push('\'');
            rest
        } else {
            return Ok((read, &found[1..]));
        };
    }
}

/// The text up to the quote that ends it, and what follows that.
fn double_quoted(text: &str) -> Result<(String, &str), String> {
    let mut read = String::new();
    // What was written with a backslash is no blank at a line's end.
    let mut escaped_to = 0;
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\', '\n']).ok_or(UNCLOSED)?;
        read.push_str(&rest[..at]);
        let found = &rest[at..];
        rest = if found.starts_with('\n') {
            line_end(&mut read, escaped_to, found)
        } else if let Some(rest) = found.strip_prefix("\\\n") {
            rest.trim_start_matches([' ', '\t'])
        } else if let Some(behind) = found.strip_prefix('\\') {
            let (letter, rest) = escape(behind)?;
            read.push(letter);
            escaped_to = read.len();
            rest
        } else {
            return Ok((read, &found[1..]));
        };
    }
}

/// Takes the end of a line in a quotation, with the empty lines and blanks around it. Gives what follows.
fn line_end<'a>(read: &mut String, keep: usize, rest: &'a str) -> &'a str {
    let length = read[keep..].trim_end_matches([' ', '\t']).len();
    read.truncate(keep + length);
    let behind = rest.trim_start_matches([' ', '\t', '\n']);
    let ends = rest[..rest.len() - behind.len()].matches('\n').count();
    read.push_str(&gap(ends - 1, false));
    behind
}

/// The letter that an escape stands for, and what follows it.
fn escape(text: &str) -> Result<(char, &str), String> {
    let unknown = || "an escape that YAML does not know".to_owned();
    let letter = text.chars().next().ok_or(UNCLOSED)?;
    let rest = &text[letter.len_utf8()..];
    let digits = match letter {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        letter => {
            const KNOWN: &[(char, char)] = &[
                ('0', '\0'),
                ('a', '\u{7}'),
                ('b', '\u{8}'),
                ('t', '\t'),
                ('\t', '\t'),
                ('n', '\n'),
                ('v', '\u{b}'),
                ('f', '\u{c}'),
                ('r', '\r'),
                ('e', '\u{1b}'),
                (' ', ' '),
                ('"', '"'),
                ('/', '/'),
                ('\\', '\\'),
                ('N', '\u{85}'),
                ('_', '\u{a0}'),
                ('L', '\u{2028}'),
                ('P', '\u{2029}'),
            ];
            let known = KNOWN.iter().find(|(name, _)| *name == letter);
            return known.map(|(_, meant)| (*meant, rest)).ok_or_else(unknown);
        }
    };
    let code = rest.get(..digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let meant = code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
    meant.map(|meant| (meant, &rest[digits..])).ok_or_else(unknown)
}

/// A list in brackets, which may go on over lines.
fn flow_list(text: &str) -> Result<Vec<String>, String> {
    let mut items = Vec::new();
    let mut rest = text.strip_prefix('[').unwrap_or(text);
    loop {
        rest = skip_blanks_and_comments(rest);
        if let Some(rest) = rest.strip_prefix(']') {
            refuse_rest(rest)?;
            return Ok(items);
        }
        let item;
        (item, rest) = match rest.chars().next() {
            None => return Err("a list that nothing ends".to_owned()),
            Some('"') => double_quoted(&rest[1..])?,
            Some('\'') => single_quoted(&rest[1..])?,
            Some('[' | '{') => return Err("a list or a mapping in a list".to_owned()),
            Some(_) => {
                refuse_foreign(rest)?;
                let end = rest.find([',', ']', '[', '{', '}', '\n']).unwrap_or(rest.len());
                (without_comment(&rest[..end]).to_owned(), &rest[end..])
            }
        };
        items.push(item);
        rest = skip_blanks_and_comments(rest);
        rest = match rest.strip_prefix(',') {
            Some(rest) => rest,
            None if rest.starts_with(']') => rest,
            None if rest.is_empty() => return Err("a list that nothing ends".to_owned()),
            None => return Err("something in a list that is no text".to_owned()),
        };
    }
}

fn skip_blanks_and_comments(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n']);
        match rest.starts_with('#') {
            true => rest = rest.split_once('\n').map_or("", |(_, rest)| rest),
            false => return rest,
        }
    }
}

/// A list with a dash before each text.
fn block_list(block: &[&str]) -> Result<Vec<String>, String> {
    let mut items: Vec<String> = Vec::new();
    let mut depth = None;
    let mut at = 0;
    while let Some(line) = block.get(at) {
        at += 1;
        let inner = line.trim_start_matches(' ');
        if is_blank(inner) || inner.starts_with('#') {
            continue;
        }
        let indent = line.len() - inner.len();
        let item = inner.strip_prefix('-').filter(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
        let Some(item) = item.filter(|_| *depth.get_or_insert(indent) == indent) else {
            return Err("a list whose lines do not fit together".to_owned());
        };
        let is_deeper =
            |line: &&&str| is_blank(line) || line.len() - line.trim_start_matches(' ').len() > indent;
        let more = block[at..].iter().take_while(is_deeper).count();
        items.push(item_text(item.trim_matches([' ', '\t']), &block[at..at + more])?);
        at += more;
    }
    Ok(items)
}

fn item_text(item: &str, block: &[&str]) -> Result<String, String> {
    if item.starts_with(['"', '\'']) {
        return quoted(&joined(item, block));
    }
    refuse_foreign(item)?;
    let text = folded_lines(item, block);
    if item.starts_with(['[', '|', '>']) || text.ends_with(':') || text.contains(": ") {
        return Err("something in a list that is no text".to_owned());
    }
    Ok(text)
}

/// What becomes of the line ends at the end of a block of text.
enum Chomping {
    Strip,
    Clip,
    Keep,
}

/// A block of text: behind `|` line for line, behind `>` folded.
fn block_text(header: &str, block: &[&str]) -> Result<String, String> {
    let mut chomping = Chomping::Clip;
    let mut indent = None;
    for letter in without_comment(header).chars().skip(1) {
        match letter {
            '-' => chomping = Chomping::Strip,
            '+' => chomping = Chomping::Keep,
            '1'..='9' => indent = letter.to_digit(10).map(|digit| digit as usize),
            _ => return Err(format!("a block of text that begins with {header}")),
        }
    }
    let depth = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let first = block.iter().find(|line| !is_blank(line));
    let indent = indent.or(first.map(|line| depth(line))).unwrap_or(1);
    let mut lines = Vec::new();
    for line in block {
        match line.get(indent.min(depth(line))..).unwrap_or_default() {
            _ if depth(line) < indent && !is_blank(line) => {
                return Err("a block of text whose lines are not set in alike".to_owned());
            }
            inner => lines.push(if depth(line) < indent { "" } else { inner }),
        }
    }
    let ends = lines.iter().rev().take_while(|line| line.is_empty()).count();
    let content = &lines[..lines.len() - ends];
    let mut text = match header.starts_with('|') {
        true => content.join("\n"),
        false => folded_block(content),
    };
    match chomping {
        Chomping::Strip => {}
        Chomping::Clip if content.is_empty() => {}
        Chomping::Clip => text.push('\n'),
        Chomping::Keep => text.push_str(&"\n".repeat(ends + usize::from(!content.is_empty()))),
    }
    Ok(text)
}

/// Lines joined by blanks, but for those set in further, which stay as they are.
fn folded_block(lines: &[&str]) -> String {
    let mut text = String::new();
    let (mut empty, mut previous) = (0, None);
    for line in lines {
        if line.is_empty() {
            empty += 1;
            continue;
        }
        let is_deep = line.starts_with([' ', '\t']);
        match previous {
            None => text.push_str(&"\n".repeat(empty)),
            Some(was_deep) if is_deep || was_deep => text.push_str(&"\n".repeat(empty + 1)),
            Some(_) => text.push_str(&gap(empty, false)),
        }
        text.push_str(line);
        (empty, previous) = (0, Some(is_deep));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the keys say, if all of them can be read.
    fn head(text: &str) -> Result<Vec<(String, Value)>, String> {
        read(&format!("---\n{text}\n---\nbody\n")).and_then(|(keys, body)| {
            assert_eq!(body, "body\n", "{text}");
            keys.into_iter().map(|(key, value)| Ok((key, value?))).collect()
        })
    }

    #[track_caller]
    fn says(text: &str, expected: &str) {
        assert_eq!(head(text), Ok(vec![("key".to_owned(), Value::Text(expected.to_owned()))]), "{text}");
    }

    #[track_caller]
    fn lists(text: &str, expected: &[&str]) {
        let list = expected.iter().map(|item| (*item).to_owned()).collect();
        assert_eq!(head(text), Ok(vec![("key".to_owned(), Value::List(list))]), "{text}");
    }

    #[track_caller]
    fn refuses(text: &str, why: &str) {
        assert_eq!(head(text), Err(why.to_owned()), "{text}");
    }

    #[test]
    fn a_text_without_quotes_is_what_stands_there() {
        says("key: a text", "a text");
        says("# one\n\nkey:   a text  \n# two", "a text");
        says("key: use it when: the user asks", "use it when: the user asks");
        says("key: C# and a#b # a comment", "C# and a#b");
        says("key: http://a/b?c=\"d\"", "http://a/b?c=\"d\"");
        says("key: -x", "-x");
        says("key: 1.0", "1.0");
        says("key: one\n  two\n\n     three # four", "one two\nthree");
        says("key:\n  one\n  two", "one two");
    }

    #[test]
    fn nothing_is_nothing() {
        for text in ["key:", "key: ", "key: # a comment", "key: ~", "key: null", "key:\n\n"] {
            assert_eq!(head(text), Ok(vec![("key".to_owned(), Value::Nothing)]), "{text}");
        }
        assert_eq!(head(""), Ok(Vec::new()));
        says("key: \"\"", "");
    }

    #[test]
    fn quotes_are_taken_off() {
        says("key: \"a: b # c\" # d", "a: b # c");
        says("key: 'it''s \\n'", "it's \\n");
        says("key: \"\\\"\\\\\\/\\t\\x41\\u00e9\\U0001F600\\ \\_\"", "\"\\/\tA\u{e9}\u{1f600} \u{a0}");
        says("key: \"one  \n   two\n\n   three \\\n   four\"", "one two\nthree four");
        says("key: 'one\n  two'", "one two");
        says("key:\n  \"one\"", "one");
        says("key: \"a\\t\n  b\"", "a\t b");
    }

    #[test]
    fn blocks_of_text_keep_or_fold_their_lines() {
        says("key: |\n  one\n   two\n\n  three\n", "one\n two\n\nthree\n");
        says("key: |-\n  one\n  two\n\n", "one\ntwo");
        says("key: |+\n  one\n", "one\n\n");
        says("key: >\n  one\n  two\n\n  three\n", "one two\nthree\n");
        says("key: >-\n  one\n  two\n    deep\n  three", "one two\n  deep\nthree");
        says("key: >-\n\n  one\n\n\n  two", "\none\n\ntwo");
        says("key: |2-\n    one\n  two", "  one\ntwo");
        says("key: |-  # a comment\n  # no comment\n  one: two", "# no comment\none: two");
        says("key: |", "");
    }

    #[test]
    fn lists_hold_texts() {
        lists("key: [a, \"b, c\", 'd'] # e", &["a", "b, c", "d"]);
        lists("key: []", &[]);
        lists("key: [ a ,b, ]", &["a", "b"]);
        lists("key: [\n  a, # one\n  b\n  ]", &["a", "b"]);
        lists("key: [Bash(git log:*), Read]", &["Bash(git log:*)", "Read"]);
        lists("key:\n  - a\n  # b\n\n  - \"c\"\n  - d\n    e", &["a", "c", "d e"]);
        lists("key:\n- a\n- b", &["a", "b"]);
        lists("key:\n  - Bash(git log:*)", &["Bash(git log:*)"]);
    }

    #[test]
    fn what_cannot_be_read_is_the_matter_of_its_key_alone() {
        let text =
            "---\nmetadata:\n  a: {b: [c]}\n  d:\n    - e: f\nargument-hint: [file] [format]\nname: x\n---\n";
        let (keys, _) = read(text).unwrap();
        let names: Vec<&str> = keys.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["metadata", "argument-hint", "name"]);
        let hint = "line 6 (\"argument-hint\") has something behind its value";
        assert_eq!(keys[1].1, Err(hint.to_owned()));
        assert_eq!(keys[2].1, Ok(Value::Text("x".to_owned())));
    }

    #[test]
    fn anything_else_is_refused_with_its_line() {
        refuses("a: b\nhello", "line 3 is no \"key: value\"");
        refuses("key:value", "line 2 is no \"key: value\"");
        refuses("  key: value", "line 2 is no \"key: value\"");
        refuses("- a", "line 2 is no \"key: value\"");
        refuses("a: b\na: c", "line 3 gives \"a\" a second time");
        refuses("key: {a: b}", "line 2 (\"key\") has a mapping in braces");
        refuses("key: *a", "line 2 (\"key\") has an anchor, an alias or a tag");
        refuses("key: !!str a", "line 2 (\"key\") has an anchor, an alias or a tag");
        refuses("key: @a", "line 2 (\"key\") has a text that begins with @");
        refuses("key: - a", "line 2 (\"key\") has a list on its own line");
        refuses(
            "key:\n  a: b",
            "line 2 (\"key\") has keys below it: only texts and lists of texts are understood",
        );
        refuses("key: \"a", "line 2 (\"key\") has a quotation that nothing ends");
        refuses("key: \"a\\q\"", "line 2 (\"key\") has an escape that YAML does not know");
        refuses("key: \"\\ud800\"", "line 2 (\"key\") has an escape that YAML does not know");
        refuses("key: \"a\" b", "line 2 (\"key\") has something behind its value");
        refuses("key: [a", "line 2 (\"key\") has a list that nothing ends");
        refuses("key: [a] b", "line 2 (\"key\") has something behind its value");
        refuses("key: [[a]]", "line 2 (\"key\") has a list or a mapping in a list");
        refuses("key:\n  - a: b", "line 2 (\"key\") has something in a list that is no text");
        refuses("key:\n  - a\n - b", "line 2 (\"key\") has a list whose lines do not fit together");
        refuses("key: |x\n  a", "line 2 (\"key\") has a block of text that begins with |x");
        refuses("key: |\n   a\n  b", "line 2 (\"key\") has a block of text whose lines are not set in alike");
        let many: Vec<String> = (0..101).map(|number| format!("k{number}: v")).collect();
        refuses(&many.join("\n"), "line 102 is one of more than 100 keys");
        assert_eq!(read("---\na: b\n"), Err("no line --- ends it".to_owned()));
        assert_eq!(read("---"), Err("no line --- ends it".to_owned()));
    }

    #[test]
    fn a_file_without_front_matter_is_all_body() {
        assert_eq!(read("# A title\n---\n"), Ok((Keys::new(), "# A title\n---\n")));
        assert_eq!(read(""), Ok((Keys::new(), "")));
        assert_eq!(read("----\na"), Ok((Keys::new(), "----\na")));
    }

    #[test]
    fn a_byte_order_mark_and_line_ends_of_either_kind_are_understood() {
        let expected = vec![("a".to_owned(), Ok(Value::Text("b c".to_owned())))];
        assert_eq!(read("\u{feff}---\r\na: b\r\n  c\r\n---\r\nbody\r\n"), Ok((expected, "body\r\n")));
        assert_eq!(read("---\n---"), Ok((Keys::new(), "")));
    }

    /// No bytes make it panic: every piece of these texts with every letter of the format put in.
    #[test]
    fn no_text_makes_it_panic() {
        let seeds = [
            "---\nkey: \"a\\u00e9 b\"\nlist: [a, 'b', \"c\"]\n---\nbody",
            "---\nkey: >-\n  one\n   two\n\nlist:\n  - a\n  - \"b\"\n---\n",
            "---\nkey: 'it''s\n  two' # c\nm:\n  é: ü\n---",
        ];
        for seed in seeds {
            for (at, _) in seed.char_indices() {
                let _ = read(&seed[..at]);
                for put in [
                    "\"", "'", "[", "]", "|", ">", "-", ":", "#", " ", "\n", "\t", "\\", "é", "\0", "\r", "{",
                ] {
                    let _ = read(&format!("{}{put}{}", &seed[..at], &seed[at..]));
                }
            }
        }
        let letters =
            ["\"", "'", "[", "]", "|", ">", "-", ": ", "#", " ", "\n", "\n ", "\\", "é", "a", ",", "+", "2"];
        let mut state = 7_u64;
        for _ in 0..20_000 {
            let mut text = "---\nk: ".to_owned();
            for _ in 0..12 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                text.push_str(letters[(state >> 33) as usize % letters.len()]);
            }
            let _ = read(&format!("{text}\n---\n"));
        }
    }
}
