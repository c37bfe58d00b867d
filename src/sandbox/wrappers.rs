//! Commands that run another one unchanged, so that a rule about that one holds for them.
//!
//! As with all that allows: where it is not certain what runs, nothing is seen through.

use super::commands::{RESERVED, Word};

/// The command that a wrapper runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapped<'a> {
    /// Its words.
    pub words: &'a [Word],
    /// Whether the wrapper adds arguments of its own at the end.
    pub grows: bool,
}

/// The command inside wrappers that run it unchanged: `timeout`, `time`, `nice`, `nohup`, `stdbuf`, and an
/// `xargs` without options. Other ways of writing them are left as they are.
pub fn unwrapped(words: &[Word]) -> Wrapped<'_> {
    let mut wrapped = Wrapped { words, grows: false };
    while let Some(own) = wrapper_length(wrapped.words) {
        match wrapped.words.get(own).and_then(Word::literal) {
            Some(name) if !name.starts_with('-') && !RESERVED.contains(&name) => {}
            _ => break,
        }
        wrapped.grows |= wrapped.words[0].literal() == Some("xargs");
        wrapped.words = &wrapped.words[own..];
    }
    wrapped
}

/// How many words belong to a wrapper itself.
fn wrapper_length(words: &[Word]) -> Option<usize> {
    let word = |at: usize| words.get(at).and_then(Word::literal).unwrap_or_default();
    let is_count = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match word(0) {
        "nohup" | "xargs" => Some(1),
        "time" => Some(if word(1) == "-p" { 2 } else { 1 }),
        "nice" if word(1) == "-n" => is_count(word(2).strip_prefix('-').unwrap_or(word(2))).then_some(3),
        "nice" => Some(if word(1).strip_prefix('-').is_some_and(is_count) { 2 } else { 1 }),
        "timeout" => {
            let own = (1..)
                .take_while(|at| matches!(word(*at), "--foreground" | "--preserve-status" | "-v"))
                .count();
            let duration = word(1 + own).trim_end_matches(['s', 'm', 'h', 'd']);
            is_count(&duration.replacen('.', "", 1)).then_some(2 + own)
        }
        "stdbuf" => {
            let is_mode =
                |text: &str| ["-i", "-o", "-e"].iter().any(|it| text.len() > 2 && text.starts_with(it));
            let own = (1..).take_while(|at| is_mode(word(*at))).count();
            (own > 0).then_some(1 + own)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::commands::understand;
    use super::*;

    #[test]
    fn wrappers_that_change_nothing_are_seen_through() {
        let cases = [
            ("timeout 5 git log", "git log", false),
            ("timeout --foreground -v 1.5m git log", "git log", false),
            ("time -p nohup git log", "git log", false),
            ("nice git log", "git log", false),
            ("nice -n 5 git log", "git log", false),
            ("nice -5 git log", "git log", false),
            ("stdbuf -oL -e0 git log", "git log", false),
            ("xargs git log", "git log", true),
            ("timeout 5 xargs nice git log", "git log", true),
            // Options that are not known could mean anything.
            ("timeout -k 5 git log", "timeout -k 5 git log", false),
            ("timeout $x git log", "timeout '$x' git log", false),
            ("xargs -n 1 git log", "xargs -n 1 git log", false),
            ("xargs -I{} git log", "xargs '-I{}' git log", false),
            ("nohup $x", "nohup '$x'", false),
            // A program of the name 5.
            ("nice 5 git log", "5 git log", false),
            ("nice -n --5 git log", "nice -n --5 git log", false),
            ("nice -n git log", "nice -n git log", false),
            ("nice -n -5 git log", "git log", false),
            ("nice --5 git log", "nice --5 git log", false),
            ("time { git log", "time '{' git log", false),
            ("stdbuf git log", "stdbuf git log", false),
            ("env git log", "env git log", false),
            ("sudo git log", "sudo git log", false),
            ("command git log", "command git log", false),
            ("nohup", "nohup", false),
        ];
        for (command, inner, grows) in cases {
            let parts = understand(command).unwrap();
            let wrapped = unwrapped(&parts[0].words);
            let words: Vec<String> = wrapped
                .words
                .iter()
                .map(|it| match it {
                    Word::Expanded(typed) => Word::Literal(typed.clone()).written(),
                    literal => literal.written(),
                })
                .collect();
            assert_eq!((words.join(" ").as_str(), wrapped.grows), (inner, grows), "{command}");
        }
    }
}
