//! How a prompt begins: `/name arguments` uses a skill, and several in a row share the arguments.
//!
//! Only the user's own words are looked at, and what stands there is a path as often as a skill: a word that is
//! no skill's name is left as it is.

use std::path::Path;

use super::{Skill, Skills, is_name};
use crate::conversation::{Part, Parts};
use crate::error::Error;
use crate::input::Prompt;
use crate::mentions;
use crate::output::Output;
use crate::tools::{Workspace, nearest};

/// What a prompt comes to.
pub struct Opening {
    /// What the model reads.
    pub parts: Parts,
    /// The names of the skills that are used.
    pub skills: Vec<String>,
    /// The prompt as typed, if a skill runs in a conversation of its own.
    pub forked: Option<String>,
}

impl From<Parts> for Opening {
    fn from(parts: Parts) -> Opening {
        Opening { parts, skills: Vec::new(), forked: None }
    }
}

/// Reads a prompt: the skills that it begins with, and the images that it mentions.
///
/// # Errors
///
/// `Usage` if a skill cannot be used that the prompt asks for.
pub fn read(
    prompt: Prompt,
    skills: &Skills,
    workspace: &Workspace,
    output: &mut Output,
) -> Result<Opening, Error> {
    let (typed, data) = prompt.text.split_at(prompt.typed_bytes);
    if skills.are_off {
        return Ok(mentions::parts(prompt, workspace, output).into());
    }
    let (used, arguments) = asked_for(typed, skills);
    let Some(last) = used.last() else {
        if let Some(line) = unknown(typed, skills) {
            output.warn(&line);
        }
        return Ok(mentions::parts(prompt, workspace, output).into());
    };
    let told = |skill: &&Skill| {
        let told = skills.told(skill, arguments);
        told.map_err(|why| Error::Usage(format!("the skill \"{}\" cannot be used: {why}", skill.name)))
    };
    let text = used.iter().map(told).collect::<Result<Vec<_>, _>>()?.join("\n\n");
    let mut parts = vec![Part::Text(format!("{text}{data}"))];
    let names = used.iter().map(|skill| skill.name.clone()).collect();
    let forked = last.is_fork.then(|| prompt.text.clone());
    // What a skill mentions shows nothing: the user has not chosen it.
    let shown = mentions::parts(prompt, workspace, output).0.into_iter();
    parts.extend(shown.filter(|part| matches!(part, Part::Image(_))));
    Ok(Opening { parts: Parts(parts), skills: names, forked })
}

/// The skills at the beginning of a text, and the arguments for all of them. One that runs in a conversation of its
/// own stands alone.
fn asked_for<'a, 'b>(typed: &'b str, skills: &'a Skills) -> (Vec<&'a Skill>, &'b str) {
    let mut used: Vec<&Skill> = Vec::new();
    let mut rest = typed.trim();
    while let Some((name, behind)) = slash_word(rest) {
        match skills.named(name).filter(|skill| skill.is_for_user) {
            Some(skill) if skill.is_fork && used.is_empty() => return (vec![skill], behind),
            Some(skill) if !skill.is_fork => used.push(skill),
            _ => break,
        }
        rest = behind;
    }
    (used, rest)
}

/// The word behind the slash that a text begins with, and what follows it.
fn slash_word(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    Some((&text[..end], text[end..].trim_start()))
}

/// What is to be said of a beginning that looks like a skill's name and is none, nor a path.
fn unknown(typed: &str, skills: &Skills) -> Option<String> {
    let (name, _) = slash_word(typed.trim_start())?;
    if !is_name(name) || Path::new("/").join(name).symlink_metadata().is_ok() {
        return None;
    }
    if skills.named(name).is_some() {
        return Some(format!("the skill \"{name}\" is for the model alone: the prompt is sent as it is"));
    }
    let near = nearest::names(name, skills.slash_commands()).into_iter().next();
    let hint = near.map_or_else(String::new, |near| format!(" (did you mean /{near}?)"));
    Some(format!("there is no skill \"{name}\"{hint}: the prompt is sent as it is"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_word_ends_at_a_blank() {
        assert_eq!(slash_word("/a b  c"), Some(("a", "b  c")));
        assert_eq!(slash_word("/a\n\nb"), Some(("a", "b")));
        assert_eq!(slash_word("/etc/passwd is short"), Some(("etc/passwd", "is short")));
        assert_eq!(slash_word("/"), Some(("", "")));
        assert_eq!(slash_word("a /b"), None);
    }

    #[test]
    fn a_path_is_no_unknown_skill() {
        let skills = Skills::default();
        for prompt in
            ["/etc/passwd is short", "/", "//", "/tmp is full", "/* a comment */", "hello /you", "/ x"]
        {
            assert_eq!(unknown(prompt, &skills), None, "{prompt}");
        }
        let line = unknown("/no-such-skill x", &skills);
        assert_eq!(line.as_deref(), Some("there is no skill \"no-such-skill\": the prompt is sent as it is"));
    }
}
