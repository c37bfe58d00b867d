//! Rules about calls as they are typed, `Tool` or `Tool(specifier)`, and what they match.
//!
//! The same rule allows only what it certainly means and forbids all that it might mean.

use std::path::Path;

use super::commands::{self, Part, Word};
use super::paths::{PathPattern, Places};
use super::suspects::{Suspect, Suspects, base_name};
use super::wrappers::unwrapped;
use crate::tools::access::{self, Family};

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule as typed.
    pub text: String,
    /// The tool that it names.
    pub tool: String,
    /// What it says of the tool's calls.
    pub specifier: Specifier,
}

/// Which calls of its tool a rule means.
#[derive(Debug, Clone)]
pub enum Specifier {
    /// All of them.
    All,
    /// Those that run such a command.
    Command(CommandPattern),
    /// Those that touch such a file.
    File(Box<PathPattern>),
    /// Those that use a skill of such a name, whatever the arguments.
    Skill(String),
    /// It says something of a program that nothing can be specified of: it allows none of its calls, and forbids
    /// all, since one that was meant is not told from one that was not.
    Unknown,
}

/// Rules stand one after another, divided by commas and blanks outside parentheses.
pub fn split(list: &str) -> Vec<&str> {
    let (mut rules, mut depth, mut start, mut escaped) = (Vec::new(), 0_usize, 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' | ' ' | '\t' | '\n' if depth == 0 => {
                rules.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    rules.push(&list[start..]);
    rules.retain(|rule| !rule.is_empty());
    rules
}

/// Whether an argument behind a list of rules goes on with it, rather than being the prompt.
pub fn continues_list(argument: &str) -> bool {
    let rules = split(argument);
    let is_rule = |rule: &&str| match taken_apart(rule) {
        Ok((name, None)) => access::is_known(name),
        Ok((_, Some(_))) => true,
        Err(_) => false,
    };
    !rules.is_empty() && rules.iter().all(is_rule)
}

/// The name and the specifier of a rule.
fn taken_apart(rule: &str) -> Result<(&str, Option<&str>), &'static str> {
    let (name, specifier) = match rule.split_once('(') {
        None => (rule, None),
        Some((name, rest)) => (name, Some(rest.strip_suffix(')').ok_or("its parenthesis is not closed")?)),
    };
    let server_wide = if name.starts_with("mcp__") { name.trim_end_matches('*') } else { name };
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    if server_wide.is_empty() || !server_wide.chars().all(is_name) {
        return Err("it begins with no tool's name");
    }
    match specifier.map(balance) {
        Some(Some(0)) | None => {}
        Some(_) => return Err("its parentheses do not match"),
    }
    match specifier {
        Some(text) if text.trim().is_empty() => Err("its parentheses are empty"),
        _ => Ok((name, specifier)),
    }
}

/// How many parentheses stay open; nothing if one is closed that was not open.
fn balance(text: &str) -> Option<usize> {
    let (mut depth, mut escaped) = (0_usize, false);
    for letter in text.chars() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    Some(depth)
}

impl Rule {
    /// Reads a rule.
    ///
    /// # Errors
    ///
    /// What is wrong with it; the text completes "the rule cannot be used: …".
    pub fn parse(text: &str, places: &Places) -> Result<Rule, String> {
        let (tool, specifier) = taken_apart(text)?;
        let specifier = match (access::family(tool), specifier) {
            (_, None) => Specifier::All,
            (Some(Family::Commands), Some(text)) => CommandPattern::parse(text)?,
            (Some(Family::Readers | Family::Writers), Some(text)) => {
                Specifier::File(Box::new(PathPattern::parse(text, places)?))
            }
            (_, Some("*")) => Specifier::All,
            (Some(Family::Skills), Some(text)) => Specifier::Skill(skill_name(text).to_owned()),
            (_, Some(_)) if access::exists(tool) => {
                return Err("this tool has nothing to specify, name it alone".to_owned());
            }
            (_, Some(_)) => Specifier::Unknown,
        };
        Ok(Rule { text: text.to_owned(), tool: tool.to_owned(), specifier })
    }

    /// Whether the rule says nothing but a tool's name.
    pub fn is_about_whole_tool(&self) -> bool {
        matches!(self.specifier, Specifier::All)
    }

    /// Whether this rule forbids all calls of `tool`.
    pub fn denies_whole(&self, tool: &str) -> bool {
        access::deny_covers(&self.tool, tool) && matches!(self.specifier, Specifier::All | Specifier::Unknown)
    }

    /// Whether this rule allows a command, or a part of one.
    pub fn allows_command(&self, tool: &str, part: &Part) -> bool {
        access::allow_covers(&self.tool, tool)
            && match &self.specifier {
                Specifier::Command(pattern) => pattern.allows(part),
                other => matches!(other, Specifier::All),
            }
    }

    /// Whether this rule allows a whole command line because it is the very one that it names.
    pub fn names_command(&self, tool: &str, command: &str) -> bool {
        access::allow_covers(&self.tool, tool)
            && match &self.specifier {
                Specifier::Command(pattern) => pattern.is_exactly(command),
                other => matches!(other, Specifier::All),
            }
    }

    /// Whether this rule forbids what a command line might run.
    pub fn denies_command(&self, tool: &str, command: &str, suspects: &Suspects) -> bool {
        access::deny_covers(&self.tool, tool)
            && match &self.specifier {
                Specifier::Command(pattern) => pattern.denies(command, suspects),
                other => matches!(other, Specifier::All),
            }
    }

    /// Whether this rule allows a call of `tool` to touch `path`.
    pub fn allows_file(&self, tool: &str, path: &Path) -> bool {
        access::allow_covers(&self.tool, tool)
            && match &self.specifier {
                Specifier::File(pattern) => pattern.allows(path),
                other => matches!(other, Specifier::All),
            }
    }

    /// Whether this rule forbids a call of `tool` to touch `path`. A rule with a path is about all tools that
    /// could do the same to the file, one without about its tool alone.
    pub fn denies_file(&self, tool: &str, path: &Path) -> bool {
        match &self.specifier {
            Specifier::File(pattern) => access::deny_covers_file(&self.tool, tool) && pattern.denies(path),
            Specifier::All => access::deny_covers(&self.tool, tool),
            Specifier::Command(_) | Specifier::Skill(_) | Specifier::Unknown => false,
        }
    }

    /// Whether this rule forbids that the model uses a skill.
    pub fn denies_skill(&self, tool: &str, name: &str) -> bool {
        access::deny_covers(&self.tool, tool)
            && match &self.specifier {
                Specifier::Skill(pattern) => wildcard(pattern, name),
                other => matches!(other, Specifier::All),
            }
    }
}

/// The skill that a rule names, with or without a slash, and with or without its arguments.
fn skill_name(text: &str) -> &str {
    let name = text.trim().trim_start_matches('/');
    name.strip_suffix(":*").unwrap_or(name).split_whitespace().next().unwrap_or_default()
}

/// Which commands a rule means.
#[derive(Debug, Clone)]
pub struct CommandPattern {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    /// One command, word for word; none if it is more than a simple command.
    Exact(Option<Vec<String>>),
    /// Those that begin with these words; none if they cannot be understood.
    Prefix(Option<Vec<String>>),
    /// Those that look so, `*` being anything.
    Glob,
}

impl CommandPattern {
    fn parse(typed: &str) -> Result<Specifier, String> {
        let text = typed.trim().replace("\\(", "(").replace("\\)", ")");
        if text == "*" {
            return Ok(Specifier::All);
        }
        let front = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *"));
        let kind = match front {
            Some(front) if front.trim().is_empty() => return Err("no command stands before its *".to_owned()),
            Some(front) if !front.contains('*') => Kind::Prefix(words_of(front)),
            _ if text.contains('*') => Kind::Glob,
            _ => Kind::Exact(words_of(&text)),
        };
        let text = match text.strip_suffix(":*") {
            Some(front) if matches!(kind, Kind::Glob) => format!("{front} *"),
            _ => text,
        };
        Ok(Specifier::Command(CommandPattern { text, kind }))
    }

    /// Whether it certainly means this simple command.
    fn allows(&self, part: &Part) -> bool {
        let wrapped = unwrapped(&part.words);
        let begins = |words: &[Word], wanted: &[String]| {
            words.len() >= wanted.len()
                && words.iter().zip(wanted).all(|(word, it)| word.literal() == Some(it))
        };
        match &self.kind {
            Kind::Prefix(Some(wanted)) => begins(&part.words, wanted) || begins(wrapped.words, wanted),
            Kind::Exact(Some(wanted)) => [&part.words, wrapped.words]
                .iter()
                .any(|words| words.len() == wanted.len() && begins(words, wanted) && !wrapped.grows),
            Kind::Glob if wrapped.grows => wildcard(&self.text, &written(&part.words)),
            Kind::Glob => {
                [&part.words, wrapped.words].iter().any(|words| wildcard(&self.text, &written(words)))
            }
            Kind::Prefix(None) | Kind::Exact(None) => false,
        }
    }

    fn is_exactly(&self, command: &str) -> bool {
        matches!(self.kind, Kind::Exact(_)) && command.trim_matches([' ', '\t', '\n']) == self.text
    }

    /// Whether it might mean something that this command line runs.
    fn denies(&self, command: &str, suspects: &Suspects) -> bool {
        if suspects.is_boundless || wildcard(&self.text, command.trim()) {
            return true;
        }
        let mut commands = suspects.commands.iter();
        match &self.kind {
            Kind::Prefix(Some(wanted)) => commands.any(|words| might_begin(words, wanted) != Fit::No),
            Kind::Exact(Some(wanted)) => commands.any(|words| match might_begin(words, wanted) {
                Fit::Maybe => true,
                Fit::Yes => words.len() == wanted.len() || words[wanted.len()].is_anything(),
                Fit::No => false,
            }),
            Kind::Prefix(None) | Kind::Exact(None) => {
                let wanted = self.text.trim_end_matches(":*").trim_end_matches(" *");
                blanks_folded(command).contains(&blanks_folded(wanted))
            }
            Kind::Glob => commands.any(|words| self.glob_denies(words)),
        }
    }

    fn glob_denies(&self, words: &[Suspect]) -> bool {
        let head = self.text.split('*').next().unwrap_or_default();
        let head = head.rsplit_once(' ').map_or("", |(whole_words, _)| whole_words);
        let wanted: Vec<String> = head.split_whitespace().map(str::to_owned).collect();
        let unknown = words.iter().any(Suspect::is_anything);
        match might_begin(words, &wanted) {
            Fit::No => false,
            Fit::Maybe => true,
            Fit::Yes if unknown => true,
            Fit::Yes => {
                let mut texts: Vec<&str> = words.iter().map(Suspect::text).collect();
                let whole = texts.join(" ");
                texts[0] = base_name(texts[0]);
                wildcard(&self.text, &texts.join(" ")) || wildcard(&self.text, &whole)
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Fit {
    No,
    Yes,
    /// As far as anything is known.
    Maybe,
}

/// Whether a command might begin with these words. Its program may be named with its folder.
fn might_begin(words: &[Suspect], wanted: &[String]) -> Fit {
    for (at, wanted) in wanted.iter().enumerate() {
        match words.get(at) {
            None => return Fit::No,
            Some(Suspect::Anything(_)) => return Fit::Maybe,
            Some(Suspect::Known(word)) if at == 0 && base_name(word) == base_name(wanted) => {}
            Some(Suspect::Known(word)) if word == wanted => {}
            Some(Suspect::Known(_)) => return Fit::No,
        }
    }
    Fit::Yes
}

/// The words of a simple command without anything that a shell would change.
fn words_of(text: &str) -> Option<Vec<String>> {
    let parts = commands::understand(text).ok()?;
    let [part] = &parts[..] else { return None };
    let words = part.words.iter().map(|word| word.literal().map(str::to_owned)).collect();
    if part.redirections.is_empty() { words } else { None }
}

fn written(words: &[Word]) -> String {
    words.iter().map(Word::written).collect::<Vec<_>>().join(" ")
}

fn blanks_folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text is as the pattern says, in which `*` is anything and `\*` a star.
fn wildcard(pattern: &str, text: &str) -> bool {
    let pattern = tokens(pattern);
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut place, mut star) = (0, 0, None);
    while place < text.len() {
        match pattern.get(at) {
            Some(None) => {
                star = Some((at, place));
                at += 1;
            }
            Some(Some(letter)) if *letter == text[place] => (at, place) = (at + 1, place + 1),
            _ => {
                // The last star takes one more.
                let Some((star_at, taken)) = star else { return false };
                star = Some((star_at, taken + 1));
                (at, place) = (star_at + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(Option::is_none)
}

/// The letters of a pattern, with nothing for a star.
fn tokens(pattern: &str) -> Vec<Option<char>> {
    let mut tokens = Vec::new();
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => tokens.push(letters.next_if(|next| matches!(next, '*' | '\\')).or(Some('\\'))),
            '*' => tokens.push(None),
            letter => tokens.push(Some(letter)),
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> Result<Rule, String> {
        Rule::parse(text, &Places { workspace: "/w".into(), home: None })
    }

    #[test]
    fn lists_are_divided_outside_parentheses() {
        let cases: &[(&str, &[&str])] = &[
            ("Read,Edit", &["Read", "Edit"]),
            ("Read Edit", &["Read", "Edit"]),
            (" Read , ,Edit,\n", &["Read", "Edit"]),
            ("Bash(git log:*),Edit(a, b)", &["Bash(git log:*)", "Edit(a, b)"]),
            ("Bash(echo (a b):*) Read", &["Bash(echo (a b):*)", "Read"]),
            ("Bash(echo \\( a) Read", &["Bash(echo \\( a)", "Read"]),
            ("Bash(git log", &["Bash(git log"]),
            ("a) b", &["a)", "b"]),
            ("", &[]),
            (" , ", &[]),
        ];
        for (list, rules) in cases {
            assert_eq!(split(list), *rules, "{list:?}");
        }
    }

    #[test]
    fn what_is_a_whole_rule_goes_on_with_a_list() {
        for argument in
            ["Read", "Bash(git log:*)", "weather(Rome)", "WebFetch", "mcp__a__b", "mcp__a__*", "Read,Write"]
        {
            assert!(continues_list(argument), "{argument}");
        }
        for argument in
            ["", "Readme", "Fix the bug (soon)", "fix it", "Bash(", "Read the file", "-", "Explain f(x)"]
        {
            assert!(!continues_list(argument), "{argument}");
        }
    }

    #[test]
    fn what_is_no_rule_says_why() {
        let cases = [
            ("Bash(git log", "its parenthesis is not closed"),
            ("Bash(a))", "its parentheses do not match"),
            ("Bash((a)", "its parentheses do not match"),
            ("Bash()", "its parentheses are empty"),
            ("Read( )", "its parentheses are empty"),
            ("(git log)", "it begins with no tool's name"),
            ("*", "it begins with no tool's name"),
            ("Bash)", "it begins with no tool's name"),
            ("Bäsh", "it begins with no tool's name"),
            ("Bash(:*)", "no command stands before its *"),
            ("Edit(!a)", "a rule cannot be negated"),
            ("get_exchange_rate(USD)", "this tool has nothing to specify, name it alone"),
        ];
        for (text, why) in cases {
            assert_eq!(rule(text).err().as_deref(), Some(why), "{text}");
        }
        for text in
            ["Bash", "Bash(*)", "Bash(git log:*)", "Read(*)", "mcp__a__b(c)", "Task(*)", "weather(Rome)"]
        {
            assert!(rule(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_star_is_anything() {
        let cases = [
            ("git * main", "git push origin main", true),
            ("git * main", "git main", false),
            ("git*", "gitx", true),
            ("*", "", true),
            ("**", "a", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
            ("a\\b", "a\\b", true),
            ("", "", true),
            ("", "a", false),
            ("é*", "éa", true),
        ];
        for (pattern, text, matches) in cases {
            assert_eq!(wildcard(pattern, text), matches, "{pattern} {text}");
        }
        assert!(!wildcard(&"*a".repeat(200), &"a".repeat(199)), "it takes no time");
    }
}
