//! Images that a prompt mentions, as `@picture.png` or `@"my picture.png"`: they are shown to the model right
//! behind their mention.
//!
//! Only what is typed is looked at: what comes in on standard input beside a prompt is data, and must not choose
//! which files are sent. Other files are not read: the model has tools for that, and a line says so.

use crate::conversation::{Part, Parts};
use crate::image_limits::Held;
use crate::input::Prompt;
use crate::output::Output;
use crate::tools::{Workspace, read};

/// What the name of an image ends with.
const ENDINGS: [&str; 5] = [".png", ".jpg", ".jpeg", ".gif", ".webp"];

/// The prompt with its images. A mention of a file that cannot be shown stays text, with a warning: it may have
/// meant something else.
pub fn parts(prompt: Prompt, workspace: &Workspace, output: &mut Output) -> Parts {
    let Prompt { text: prompt, typed_bytes } = prompt;
    let mut parts = Vec::new();
    let mut said = 0;
    let mut held = Held::default();
    for mention in mentions(&prompt[..typed_bytes]) {
        if !mention.is_image {
            if workspace.root.join(mention.path).is_file() {
                output.detail(&format!(
                    "\"@{}\" is not attached: the model has tools to read it",
                    mention.path
                ));
            }
            continue;
        }
        match read::image(mention.path, workspace) {
            Ok(image) => {
                let is_too_much = held.add(std::slice::from_ref(&image)).is_err();
                parts.push(Part::Text(prompt[said..mention.end].to_owned()));
                parts.push(Part::Image(image));
                said = mention.end;
                // The prompt will be refused for this one: no more of them have to be read.
                if is_too_much {
                    break;
                }
            }
            Err(why) => output.warn(&format!("\"@{}\" is left as text: {why}", mention.path)),
        }
    }
    if parts.is_empty() {
        return Parts(vec![Part::Text(prompt)]);
    }
    if !prompt[said..].trim().is_empty() {
        parts.push(Part::Text(prompt[said..].to_owned()));
    }
    Parts(parts)
}

#[derive(Debug, PartialEq)]
struct Mention<'a> {
    path: &'a str,
    /// Where the prompt goes on.
    end: usize,
    is_image: bool,
}

/// The mentions of files in a text. One begins the text or stands behind a blank or a bracket, so that an
/// address of mail is none.
fn mentions(text: &str) -> Vec<Mention<'_>> {
    let mut found = Vec::new();
    let mut before = ' ';
    let mut rest = 0;
    for (at, letter) in text.char_indices() {
        let begins = letter == '@' && (before.is_whitespace() || "([{<\"'`".contains(before));
        before = letter;
        if !begins || at < rest {
            continue;
        }
        let from = at + 1;
        let (path, end) = match text[from..].strip_prefix('"') {
            Some(quoted) => match quoted.find(['"', '\n']) {
                Some(length) if quoted[length..].starts_with('"') => (&quoted[..length], from + length + 2),
                _ => continue,
            },
            None => {
                let length = text[from..].find(char::is_whitespace).unwrap_or(text.len() - from);
                // What ends a sentence or a bracket is not of the name.
                let path = text[from..from + length].trim_end_matches(|end| ".,:;!?)]}>\"'`".contains(end));
                (path, from + path.len())
            }
        };
        let lower = path.to_ascii_lowercase();
        let is_image = ENDINGS.iter().any(|ending| lower.len() > ending.len() && lower.ends_with(ending));
        if !path.is_empty() {
            found.push(Mention { path, end, is_image });
            rest = end;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<&str> {
        mentions(text).iter().filter(|mention| mention.is_image).map(|mention| mention.path).collect()
    }

    #[test]
    fn a_mention_begins_with_a_sign_and_ends_with_an_ending_of_images() {
        assert_eq!(paths("@a.png"), ["a.png"]);
        assert_eq!(paths("Compare @a.PNG, (@b/c.jpeg) and @../d.webp."), ["a.PNG", "b/c.jpeg", "../d.webp"]);
        assert_eq!(paths("see @\"my picture.gif\"?"), ["my picture.gif"]);
        assert_eq!(paths("@/tmp/ä b.png @ö.jpg"), ["ö.jpg"]);
    }

    #[test]
    fn what_only_looks_like_a_mention_is_none() {
        for text in
            ["me@host.png", "@", "@.png", "@a.txt", "@\"a.png", "@\"a\n.png\"", "a.png", "@@", "@ a.png"]
        {
            assert_eq!(paths(text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn the_text_goes_on_right_behind_a_mention() {
        let text = "a @b.png. c";
        assert_eq!(mentions(text), [Mention { path: "b.png", end: 8, is_image: true }]);
        let quoted = "a @\"b.png\" c";
        assert_eq!(&quoted[mentions(quoted)[0].end..], " c");
    }
}
