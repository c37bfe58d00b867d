//! Skills: instructions in a folder of their own that are told to the model when they are used, and not before.
//!
//! What a skill says is text for the model. It starts nothing, and what a checkout's skill says of tools can take
//! rights away and never give any.

pub mod arguments;
pub mod folders;
pub mod front_matter;
pub mod opening;

use std::path::PathBuf;

use serde_json::json;

use crate::checkout;
use arguments::Given;
use front_matter::{Keys, Value};

/// The longest file of a skill.
const MOST_BYTES: usize = 256 * 1024;
/// The most letters of a hint.
const MOST_HINT: usize = 200;
/// The longest name, and the most letters of a description, as the standard has them.
const MOST_NAME: usize = 64;
const MOST_DESCRIPTION: usize = 1024;
/// The most arguments that have names.
const MOST_ARGUMENTS: usize = 100;
/// How much of the list of skills holds descriptions, and how much of it names.
const MOST_DESCRIBED: usize = 16_000;
const MOST_LISTED: usize = 24_000;

/// Whose a skill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The user's own: it may grant what no rule allows.
    User,
    /// The checkout's, which nobody trusts.
    Checkout,
}

/// A skill, without its body.
#[derive(Debug)]
pub struct Skill {
    /// What it is called by: the name of its folder.
    pub name: String,
    /// What it does and when it is of use, in one line.
    pub description: String,
    /// Whose it is.
    pub owner: Owner,
    /// Its folder as the model is told it; absent for a single file.
    pub folder: Option<String>,
    /// The rules of what may be called while it is in use, if it has any.
    pub allowed_tools: Option<String>,
    /// The rules of what may not.
    pub disallowed_tools: Option<String>,
    /// Whether it runs in a conversation of its own.
    pub is_fork: bool,
    /// Whether the model may use it.
    pub is_for_model: bool,
    /// Whether the user may, by `/name`.
    pub is_for_user: bool,
    /// What a client shows of its arguments.
    hint: String,
    /// The names of its first arguments.
    argument_names: Vec<String>,
    file: PathBuf,
    /// Where the file has to lie, in truth.
    within: PathBuf,
}

/// A folder with skills of the user's own, which lies anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// How it is written, for commands and for tools: it begins with a variable.
    pub shown: String,
    /// Where it is.
    pub path: PathBuf,
}

/// The skills of a run.
#[derive(Debug, Default)]
pub struct Skills {
    skills: Vec<Skill>,
    /// The folders of the user's own that hold some of them.
    pub places: Vec<Place>,
    /// The way from the current folder to where the checkout begins.
    project: String,
    /// Whether there are to be none, so that `/name` is a text as any other.
    are_off: bool,
    /// What the user is to read: skills that were left out.
    pub notices: Vec<String>,
    /// What `--verbose` tells.
    pub details: Vec<String>,
}

impl Skills {
    /// None, and a `/name` means nothing.
    pub fn off() -> Skills {
        Skills { are_off: true, ..Skills::default() }
    }

    /// The names of those that the model or the user may use, in order.
    pub fn names(&self) -> Vec<String> {
        let usable = self.skills.iter().filter(|skill| skill.is_for_model || skill.is_for_user);
        usable.map(|skill| skill.name.clone()).collect()
    }

    /// The names that the user may type after a slash, in order.
    pub fn slash_commands(&self) -> Vec<&str> {
        self.skills.iter().filter(|skill| skill.is_for_user).map(|skill| skill.name.as_str()).collect()
    }

    /// What a client is told of what the user may type after a slash.
    pub fn commands(&self) -> Vec<serde_json::Value> {
        let usable = self.skills.iter().filter(|skill| skill.is_for_user);
        let command = |skill: &Skill| json!({"name": skill.name, "description": skill.description, "argumentHint": skill.hint});
        usable.map(command).collect()
    }

    /// The names of the skills that the model may use, in order.
    pub fn for_model(&self) -> Vec<&str> {
        self.skills.iter().filter(|skill| skill.is_for_model).map(|skill| skill.name.as_str()).collect()
    }

    /// The skill of this name.
    pub fn named(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    /// Takes those from the model that it may not use.
    pub fn hide_from_model(&mut self, is_hidden: impl Fn(&str) -> bool) {
        for skill in &mut self.skills {
            skill.is_for_model &= !is_hidden(&skill.name);
        }
    }

    /// What the model is told of all of them, a line for each. A long list names the last ones only, and a longer
    /// one ends; then the user is told.
    pub fn list(&mut self) -> String {
        let (mut list, mut undescribed, mut unlisted) = (String::new(), 0, 0);
        for skill in self.skills.iter().filter(|skill| skill.is_for_model) {
            let line = match skill.description.is_empty() {
                true => format!("\n- {}", skill.name),
                false => format!("\n- {}: {}", skill.name, skill.description),
            };
            if list.len() + line.len() <= MOST_DESCRIBED && undescribed == 0 {
                list.push_str(&line);
            } else if list.len() + skill.name.len() + 3 <= MOST_LISTED && unlisted == 0 {
                undescribed += 1;
                list.push_str(&format!("\n- {}", skill.name));
            } else {
                unlisted += 1;
            }
        }
        if undescribed + unlisted > 0 {
            self.notices.push(format!(
                "the list of skills is long: the model is told {undescribed} of them without a description and \
                 {unlisted} not at all (/name uses any)"
            ));
        }
        list
    }

    /// What the model is told when a skill is used with these arguments.
    ///
    /// # Errors
    ///
    /// Why it cannot be used.
    pub fn told(&self, skill: &Skill, arguments: &str) -> Result<String, String> {
        let file = checkout::read_text(&skill.file, &[&skill.within], MOST_BYTES)
            .map_err(|skip| format!("its file cannot be read: {skip}"))?;
        if file.is_cut {
            return Err(format!("its file is longer than {} KiB", MOST_BYTES >> 10));
        }
        let (_, body) = front_matter::read(&file.text).map_err(|why| unreadable(&why))?;
        let given = Given {
            arguments,
            names: &skill.argument_names,
            folder: skill.folder.as_deref().unwrap_or("."),
            project: &self.project,
        };
        let body = arguments::fill(body.trim(), &given)?;
        let mut head = String::new();
        if let Some(folder) = &skill.folder {
            head.push_str(&format!(
                "The skill \"{}\" lies in {folder}, which paths in it are relative to; commands run in the workspace.",
                skill.name
            ));
        }
        if has_commands(&body) {
            head.push_str(" No command in it has been run: run those written as !`…` that are needed.");
        }
        match head.trim_start() {
            "" => Ok(body),
            head => Ok(format!("{head}\n\n{body}")),
        }
    }
}

/// Whether commands are written in a body for another agent to put their output there. Nobody trusts a skill that
/// much here.
fn has_commands(body: &str) -> bool {
    let begins = |at: usize| body[..at].is_empty() || body[..at].ends_with(char::is_whitespace);
    let inline = body.match_indices("!`").any(|(at, _)| begins(at));
    inline || body.lines().any(|line| line.trim_start().starts_with("```!"))
}

fn bracketed(names: &[String]) -> String {
    let hint = names.iter().map(|name| format!("[{name}]")).collect::<Vec<_>>().join(" ");
    one_line(&hint, MOST_HINT)
}

/// Where the file of a skill is, and whose it is.
struct Source {
    name: String,
    owner: Owner,
    folder: Option<String>,
    file: PathBuf,
    within: PathBuf,
}

impl Skill {
    /// What the front matter makes of a skill. The body is looked at for want of a description.
    ///
    /// Errors: what in it cannot be used.
    fn new(source: Source, keys: &Keys, body: &str) -> Result<Skill, String> {
        let value = |key: &str| match keys.iter().find(|(name, _)| name == key) {
            None => Ok(&Value::Nothing),
            Some((_, Ok(value))) => Ok(value),
            Some((_, Err(why))) => Err(unreadable(why)),
        };
        let text = |key: &str| match value(key)? {
            Value::Nothing => Ok(None),
            Value::Text(text) => Ok(Some(text.as_str())),
            Value::List(_) => Err(format!("\"{key}\" is a list and not a text")),
        };
        let flag = |key: &str, usual: bool| match text(key)?.map(str::to_ascii_lowercase).as_deref() {
            None => Ok(usual),
            Some("true" | "yes" | "on" | "1") => Ok(true),
            Some("false" | "no" | "off" | "0") => Ok(false),
            Some(other) => Err(format!("\"{key}\" is true or false, not \"{}\"", one_line(other, 40))),
        };
        let rules = |key: &str| {
            Ok::<_, String>(match value(key)? {
                Value::Nothing => None,
                Value::Text(text) => Some(text.clone()),
                // A rule may hold a comma, which divides a list in brackets.
                Value::List(rules) => Some(rules.join(",")),
            })
        };
        let argument_names = match value("arguments")? {
            Value::Nothing => Vec::new(),
            Value::Text(text) => {
                text.split([' ', ',']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
            }
            Value::List(names) => names.clone(),
        };
        if argument_names.len() > MOST_ARGUMENTS {
            return Err(format!("it names more than {MOST_ARGUMENTS} arguments"));
        }
        if !matches!(value("hooks"), Ok(Value::Nothing)) {
            return Err("it has hooks, and none are run here".to_owned());
        }
        let is_fork = match text("context")? {
            None | Some("inline" | "inherit") => false,
            Some("fork") => true,
            Some(other) => {
                return Err(format!("\"context\" is fork or inline, not \"{}\"", one_line(other, 40)));
            }
        };
        let first_line = || {
            let mut lines = body.lines().map(|line| line.trim_start_matches('#').trim());
            lines.find(|line| !line.is_empty()).unwrap_or_default()
        };
        let description = text("description")?.unwrap_or_else(first_line);
        let when = text("when_to_use")?.unwrap_or_default();
        Ok(Skill {
            description: one_line(&format!("{description} {when}"), MOST_DESCRIPTION),
            allowed_tools: rules("allowed-tools")?,
            disallowed_tools: rules("disallowed-tools")?,
            is_fork,
            is_for_model: !flag("disable-model-invocation", false)?,
            is_for_user: flag("user-invocable", true)?,
            hint: match value("argument-hint") {
                Ok(Value::Text(hint)) => one_line(hint, MOST_HINT),
                Ok(Value::List(words)) => bracketed(words),
                // Several lists in a row are usual here, and no value.
                Ok(Value::Nothing) | Err(_) => bracketed(&argument_names),
            },
            argument_names,
            name: source.name,
            owner: source.owner,
            folder: source.folder,
            file: source.file,
            within: source.within,
        })
    }
}

fn unreadable(why: &str) -> String {
    format!("its front matter cannot be read: {why}")
}

/// Whether a skill can be called so.
fn is_name(name: &str) -> bool {
    let is_inner = |letter: char| letter.is_alphanumeric() || "-_.:".contains(letter);
    name.chars().all(is_inner)
        && name.starts_with(char::is_alphanumeric)
        && name.chars().nth(MOST_NAME).is_none()
}

/// A text in one line of at most this many letters.
fn one_line(text: &str, most: usize) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(text: &str) -> Result<Skill, String> {
        let source = Source {
            name: "x".to_owned(),
            owner: Owner::Checkout,
            folder: None,
            file: PathBuf::new(),
            within: PathBuf::new(),
        };
        let (keys, body) = front_matter::read(text)?;
        Skill::new(source, &keys, body)
    }

    #[test]
    fn a_skill_is_for_both_and_inline_unless_it_says_otherwise() {
        let plain = skill("---\ndescription: |\n  Does\n  it.\nwhen_to_use: Now.\n---\nbody").unwrap();
        assert_eq!(plain.description, "Does it. Now.");
        assert!(plain.is_for_model && plain.is_for_user && !plain.is_fork);
        assert_eq!((plain.allowed_tools, plain.disallowed_tools), (None, None));
        let other = skill(
            "---\ndisable-model-invocation: Yes\nuser-invocable: 0\ncontext: fork\nallowed-tools: [Read, Bash(a, b)]\n---\n\n# Title\n",
        );
        let other = other.unwrap();
        assert!(!other.is_for_model && !other.is_for_user && other.is_fork);
        assert_eq!(other.description, "Title");
        assert_eq!(other.allowed_tools.as_deref(), Some("Read,Bash(a,b)"));
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let refused = |key: &str| skill(&format!("---\n{key}\n---\n")).unwrap_err();
        assert_eq!(refused("user-invocable: maybe"), "\"user-invocable\" is true or false, not \"maybe\"");
        assert_eq!(refused("context: spoon"), "\"context\" is fork or inline, not \"spoon\"");
        assert_eq!(refused("description: [a]"), "\"description\" is a list and not a text");
        assert_eq!(refused("hooks: [a]"), "it has hooks, and none are run here");
    }

    #[test]
    fn names_are_words_of_at_most_64_letters() {
        for name in ["a", "pdf-tools", "My_Skill.2", "frontend:component", "été", &"a".repeat(64)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-a", ".git", "a b", "a/b", "a\nb", "$a", "\"a\"", &"a".repeat(65)] {
            assert!(!is_name(name), "{name}");
        }
    }

    #[test]
    fn a_description_is_one_line_and_not_longer_than_the_standard_has_it() {
        assert_eq!(one_line(" a\n b\u{1b}[31m\t", 10), "a b [31m");
        assert_eq!(one_line(&"é".repeat(12), 10), format!("{}…", "é".repeat(10)));
    }

    #[test]
    fn commands_for_another_agent_are_seen() {
        for body in ["!`git diff`", "Diff:\n\n- !`git diff`", "```!\nls\n```"] {
            assert!(has_commands(body), "{body}");
        }
        for body in ["KEY=!`cmd`", "Stop!", "`!x`", "```\nls\n```"] {
            assert!(!has_commands(body), "{body}");
        }
    }

    #[test]
    fn a_long_list_ends_with_names_alone_and_says_so() {
        let mut skills = Skills::default();
        for number in 0..1000 {
            let mut one = skill(&format!("---\ndescription: {}\n---\n", "d".repeat(500))).unwrap();
            one.name = format!("skill-{number:04}");
            skills.skills.push(one);
        }
        let list = skills.list();
        assert!(list.len() <= MOST_LISTED, "{}", list.len());
        assert!(list.starts_with("\n- skill-0000: ddd") && list.ends_with("\n- skill-0648"), "{list}");
        assert_eq!(list.matches(": ").count(), 31);
        assert_eq!(
            skills.notices,
            [
                "the list of skills is long: the model is told 618 of them without a description and 351 not at all (/name uses any)"
            ]
        );
    }
}
