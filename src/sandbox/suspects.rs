//! What a shell command line might run, for the rules that forbid: rather a command too many than one
//! too few.
//!
//! It looks behind assignments, keywords, wrappers, options and substitutions, and into quoted texts where
//! something evaluates them; a shell or an interpreter that is fed might run anything. It is a guard against
//! accidents: what a program does by itself no reader of command lines can know. That stays open for scripts
//! and whatever else lies in files (`sh x.sh`, `make`, the aliases and hooks of git), for programs that run
//! others and are not named below (`sed` with `e`, `vim -c`, `git bisect run`), for code that puts the name of
//! what it runs together, and for a function or a link with another name. It must never be used to allow
//! something.

use super::commands::is_assignment;
use super::interpreters::{Reads, code_texts, reads};

/// One word as it might reach a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspect {
    /// It is this.
    Known(String),
    /// It is anything, and any number of words: the shell makes something of this.
    Anything(String),
}

/// What a command line might run.
#[derive(Debug, Default)]
pub struct Suspects {
    /// Commands with their arguments, each a possible one.
    pub commands: Vec<Vec<Suspect>>,
    /// Whether it is too long or too entangled to tell, or runs what it is fed.
    pub is_boundless: bool,
    /// Whether something in it may be fed by a pipe or from a file.
    is_fed: bool,
}

/// More than this is not looked at.
const MOST_BYTES: usize = 128 * 1024;
const MOST_COMMANDS: usize = 2000;
const MOST_DEPTH: usize = 4;

/// Words that stand in front of a command.
const KEYWORDS: &[&str] = &[
    "!", "case", "coproc", "do", "elif", "else", "for", "function", "if", "in", "select", "then", "until",
    "while", "{", "}",
];

/// Programs and builtins that run what their arguments say.
const WRAPPERS: &[&str] = &[
    ".",
    "alias",
    "ash",
    "bash",
    "builtin",
    "busybox",
    "bwrap",
    "capsh",
    "cgexec",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "command",
    "csh",
    "dash",
    "dbus-run-session",
    "doas",
    "dumb-init",
    "entr",
    "env",
    "eval",
    "exec",
    "fakechroot",
    "fakeroot",
    "faketime",
    "fd",
    "find",
    "firejail",
    "fish",
    "flock",
    "function",
    "gosu",
    "hyperfine",
    "ifne",
    "ionice",
    "ksh",
    "linux32",
    "linux64",
    "ltrace",
    "mksh",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "pkexec",
    "prlimit",
    "proot",
    "rbash",
    "rlwrap",
    "runuser",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "sh",
    "source",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "tcsh",
    "time",
    "timeout",
    "tini",
    "toybox",
    "trap",
    "unbuffer",
    "unshare",
    "valgrind",
    "watch",
    "xargs",
    "xvfb-run",
    "zsh",
];

/// All that a command line might run.
pub fn suspects(command: &str) -> Suspects {
    let mut found = Suspects::default();
    if command.len() > MOST_BYTES {
        found.is_boundless = true;
        return found;
    }
    let is_plain = found.scan(command, 0);
    if !is_plain {
        // Where quotes cannot be told from text (here-documents, quotes without an end), they are not there.
        let bare: String = command.chars().filter(|letter| !matches!(letter, '\'' | '"' | '\\')).collect();
        found.scan(&bare, 1);
    }
    found
}

/// The name of a program without its folders.
pub fn base_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl Suspects {
    /// Adds what `text` might run. True if its quotes could be followed to the end.
    fn scan(&mut self, text: &str, depth: usize) -> bool {
        let mut scan = Scan::default();
        scan.read(text);
        self.is_fed |= scan.is_fed;
        for words in scan.parts {
            self.add(&words, depth);
        }
        for inner in scan.evaluated {
            self.scan_inner(&inner, depth);
        }
        scan.is_plain
    }

    fn scan_inner(&mut self, text: &str, depth: usize) {
        match depth < MOST_DEPTH {
            true => drop(self.scan(text, depth + 1)),
            false => self.is_boundless = true,
        }
    }

    /// Adds the command that begins at each place of `words` where one might.
    fn add(&mut self, words: &[Suspect], depth: usize) {
        let stands_before = |word: &&Suspect| {
            word.known().is_some_and(|text| KEYWORDS.contains(&text) || is_assignment(text))
        };
        let before = words.iter().take_while(stands_before).count();
        let words = &words[before..];
        let Some(name) = words.first() else { return };
        let places = match name.known().is_some_and(|name| WRAPPERS.contains(&base_name(name))) {
            true => words.len(),
            false => 1,
        };
        if self.commands.len() + places > MOST_COMMANDS {
            self.is_boundless = true;
            return;
        }
        for place in 0..places {
            if place == 0 || words[place].known().is_some() || is_likely_start(words, place) {
                self.add_one(&words[place..], depth);
            }
        }
        for text in words[1..places].iter().map(Suspect::text) {
            // `alias a='b c'` and `env -S` have their command behind the sign.
            if let Some((_, value)) = text.split_once('=') {
                self.scan_inner(value, depth);
            }
            if text.contains(is_shell_text) {
                self.scan_inner(text, depth);
            }
        }
    }

    /// Adds the command of these words, and what it might be without the options in front of what it is to do.
    fn add_one(&mut self, words: &[Suspect], depth: usize) {
        self.is_boundless |= match reads(words) {
            Reads::Anything => true,
            Reads::Input => self.is_fed,
            Reads::NoCommands => false,
        };
        for text in code_texts(words) {
            self.scan_inner(&text, depth);
        }
        self.commands.push(words.to_vec());
        let is_option = |at: usize| words[at].known().is_some_and(|text| text.starts_with('-'));
        // An option stands alone or has a value behind it.
        let mut place = 1;
        while place < words.len() && (is_option(place) || place > 1 && is_option(place - 1)) {
            place += 1;
            if self.commands.len() >= MOST_COMMANDS {
                self.is_boundless = true;
                return;
            }
            if place < words.len() {
                self.commands.push(without_options(words, place));
            }
        }
    }
}

/// A command without what stands between its name and `place`. Of a long one the end is not known, since there
/// is one for each option.
fn without_options(words: &[Suspect], place: usize) -> Vec<Suspect> {
    const MOST_WORDS: usize = 64;
    let end = words.len().min(place + MOST_WORDS);
    let mut command = [&words[..1], &words[place..end]].concat();
    if end < words.len() {
        command.push(Suspect::Anything(String::new()));
    }
    command
}

impl Suspect {
    /// Whether nothing is known of it.
    pub fn is_anything(&self) -> bool {
        self.known().is_none()
    }

    /// The word, if it is known.
    pub fn known(&self) -> Option<&str> {
        match self {
            Suspect::Known(text) => Some(text),
            Suspect::Anything(_) => None,
        }
    }

    /// The word as typed, without quotes.
    pub fn text(&self) -> &str {
        match self {
            Suspect::Known(text) | Suspect::Anything(text) => text,
        }
    }
}

/// Whether a word is more than one word to a shell that is given it as text.
fn is_shell_text(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | ';' | '&' | '|' | '`')
}

/// Whether a wrapper takes the word at `place`, of which nothing is known, for the command that it runs.
fn is_likely_start(words: &[Suspect], place: usize) -> bool {
    const TAKERS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir", "-x", "-X"];
    // A text is looked into instead.
    if words[place].text().contains(is_shell_text) {
        return false;
    }
    let searches = words[0].known().is_some_and(|name| matches!(base_name(name), "find" | "fd"));
    let is_own = |word: &Suspect| {
        let own = |text: &str| {
            text.starts_with(['-', '+'])
                || is_assignment(text)
                || text.starts_with(|it: char| it.is_ascii_digit())
        };
        word.known().is_some_and(own)
    };
    match searches {
        true => words[place - 1].known().is_some_and(|word| TAKERS.contains(&word)),
        false => words[1..place].iter().all(is_own),
    }
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// One pass over a text, as a shell might read it.
struct Scan {
    parts: Vec<Vec<Suspect>>,
    part: Vec<Suspect>,
    word: Option<String>,
    is_anything: bool,
    /// The next word is the file of a redirection.
    is_file: bool,
    /// Where in the part a plain `sh` begins another, because of `&>`.
    break_at: Option<usize>,
    /// Texts in double quotes of which a shell runs something.
    evaluated: Vec<String>,
    is_plain: bool,
    /// There is a pipe or a file that is read.
    is_fed: bool,
}

impl Default for Scan {
    fn default() -> Scan {
        Scan {
            parts: Vec::new(),
            part: Vec::new(),
            word: None,
            is_anything: false,
            is_file: false,
            break_at: None,
            evaluated: Vec::new(),
            is_plain: true,
            is_fed: false,
        }
    }
}

impl Scan {
    fn read(&mut self, text: &str) {
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some('\n') | None => {}
                    Some(next) => self.push(next),
                },
                '\'' => {
                    self.is_plain &= !self.word.as_deref().is_some_and(|word| word.ends_with('$'));
                    self.quoted(&mut letters, '\'');
                }
                '"' => self.quoted(&mut letters, '"'),
                '#' if self.word.is_none() => while letters.next_if(|next| *next != '\n').is_some() {},
                '&' if letters.peek() == Some(&'>') => {
                    self.end_word();
                    self.break_at = Some(self.part.len());
                }
                '<' | '>' if letters.peek() == Some(&'(') => self.end_part_open(),
                '<' | '>' => self.redirection(letter, &mut letters),
                '`' => self.end_part_open(),
                '$' if letters.peek() == Some(&'(') => self.end_part_open(),
                '|' => {
                    self.is_fed |= letters.next_if_eq(&'|').is_none();
                    self.end_part();
                }
                ';' | '&' | '\n' | '\r' | '(' | ')' => self.end_part(),
                ' ' | '\t' => self.end_word(),
                '$' | '*' | '?' | '[' => {
                    self.push(letter);
                    self.is_anything = true;
                }
                '{' if letters.peek().is_some_and(|next| !next.is_whitespace() && *next != '}') => {
                    self.push(letter);
                    self.is_anything = true;
                }
                _ => self.push(letter),
            }
        }
        self.end_part();
    }

    fn push(&mut self, letter: char) {
        self.word.get_or_insert_default().push(letter);
    }

    /// Reads on to the closing quote.
    fn quoted(&mut self, letters: &mut Letters, quote: char) {
        let word = self.word.get_or_insert_default();
        let mut inner = String::new();
        loop {
            match letters.next() {
                None => {
                    self.is_plain = false;
                    break;
                }
                Some(letter) if letter == quote => break,
                Some('\\') if quote == '"' => match letters.next() {
                    Some('\n') | None => {}
                    Some(next @ ('$' | '`' | '"' | '\\')) => {
                        word.push(next);
                        inner.extend(['\\', next]);
                    }
                    Some(next) => {
                        word.extend(['\\', next]);
                        inner.extend(['\\', next]);
                    }
                },
                Some(letter) => {
                    self.is_anything |= quote == '"' && matches!(letter, '$' | '`');
                    word.push(letter);
                    inner.push(letter);
                }
            }
        }
        if quote == '"' && (inner.contains("$(") || inner.contains("${") || inner.contains('`')) {
            // A quote within the substitution within the quotation ends it for this reader, but not for a shell.
            self.is_plain = false;
            self.evaluated.push(inner);
        }
    }

    fn end_word(&mut self) {
        let (word, is_anything) = (self.word.take(), std::mem::take(&mut self.is_anything));
        let Some(word) = word else { return };
        if std::mem::take(&mut self.is_file) {
            return;
        }
        self.part.push(if is_anything { Suspect::Anything(word) } else { Suspect::Known(word) });
    }

    /// Ends the part at a substitution: what comes of it is a word of the part.
    fn end_part_open(&mut self) {
        self.word.get_or_insert_default();
        self.is_anything = true;
        self.end_part();
    }

    fn end_part(&mut self) {
        self.end_word();
        self.is_file = false;
        let part = std::mem::take(&mut self.part);
        let break_at = self.break_at.take().filter(|at| *at < part.len());
        if let Some(at) = break_at {
            self.parts.push(part[at..].to_vec());
        }
        if !part.is_empty() {
            self.parts.push(part);
        }
    }

    /// What stands right before a redirection is a word of its own, or its descriptor.
    fn redirection(&mut self, first: char, letters: &mut Letters) {
        let mut operator = String::from(first);
        while let Some(next) = letters.next_if(|next| matches!(next, '<' | '>' | '&' | '|')) {
            operator.push(next);
        }
        self.is_plain &= !operator.starts_with("<<");
        // A here-document is in the text, line by line.
        self.is_fed |= first == '<' && operator != "<<";
        match self.word.as_deref() {
            Some(word) if word.bytes().all(|byte| byte.is_ascii_digit()) => self.word = None,
            _ => self.end_word(),
        }
        self.is_file = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a command might run `wanted`, a program and its first argument.
    fn might_run(command: &str, wanted: [&str; 2]) -> bool {
        let found = suspects(command);
        let is = |word: Option<&Suspect>, wanted: &str, of: fn(&str) -> &str| match word {
            Some(Suspect::Known(text)) => of(text) == wanted,
            Some(Suspect::Anything(_)) => true,
            None => false,
        };
        found.is_boundless
            || found.commands.iter().any(|words| {
                words[0].is_anything()
                    || is(words.first(), wanted[0], base_name) && is(words.get(1), wanted[1], |text| text)
            })
    }

    #[test]
    fn a_command_is_found_wherever_a_shell_might_run_it() {
        let cases = [
            "git push",
            "  git   push origin",
            "ls; git push",
            "ls&&git push",
            "ls | git push",
            "ls & git push",
            "ls\ngit push",
            "(git push)",
            "{ git push; }",
            "if true; then git push; fi",
            "while ! git push; do :; done",
            "for x in a b; do git push; done",
            "case x in x) git push ;; esac",
            "f() { git push; }; f",
            "A=1 B=2 git push",
            "a[0]+=x git push",
            "\"git\" pu'sh'",
            "g\\it push",
            "gi\\\nt push",
            "/usr/bin/git push",
            "./git push",
            "~/bin/git push",
            "$git push",
            "${x:-git} push",
            "git $x",
            "git \"$x\"",
            "g?t push",
            "{git,push}",
            "git pus[h]",
            "$(echo git) push",
            "`echo git` push",
            "git $(echo push)",
            "git `echo push`",
            "echo $(git push)",
            "echo \"a $(git push) b\"",
            "echo \"`git push`\"",
            "echo \"$(echo \"it's\"; git push)\"",
            "x=$(git push)",
            "cat <(git push)",
            "ls >(git push)",
            ">a git push",
            "git > a push",
            "git 2>&1 push",
            "git &> a push",
            "ls &> a git push",
            "$'git' push",
            "git $'push'",
            "sudo git push",
            "sudo -u me git push",
            "env A=1 git push",
            "env -i git push",
            "timeout 5 git push",
            "nohup nice -n 5 git push &",
            "command git push",
            "exec git push",
            "eval git push",
            "eval 'git push'",
            "eval \"ls; git push\"",
            "bash -c 'git push'",
            "bash -c \"cd $x && git push\"",
            "sh -c 'sh -c \"git push\"'",
            "sudo sh -c 'A=1 git push'",
            "env -S 'git push'",
            "xargs git push < a",
            "find . -exec git push {} \\;",
            "find . -execdir $x {} +",
            "trap 'git push' EXIT",
            "alias p='git push'",
            "sudo $x",
            "timeout 5 $x",
            "time git push",
            "ls # it's\ngit push",
            "cat <<EOF\nit's\nEOF\ngit push",
            "cat <<'EOF'\n\"\nEOF\ngit push",
            "echo 'open\ngit push",
            "git -C . push",
            "git --no-pager push",
            "git -c a=b -C . --no-pager push -f",
            "git -C $x push",
            "sudo git -C . push",
            "fakeroot git push",
            "flock /tmp/l git push",
            "script -c 'git push' a",
            "systemd-run --user git push",
            "cat <<EOF\nx\nEOF\ngit -C . push",
            "sh <<EOF\ngit push\nEOF",
            "python3 -c 'import os; os.system(\"git push\")'",
            "python3 -c \"subprocess.run(['git', 'push'])\"",
            "perl -e 'system qw(git push)'",
            "awk 'BEGIN { system(\"git push\") }'",
            "python3 <<EOF\nimport os\nos.system('git push')\nEOF",
        ];
        for command in cases {
            assert!(might_run(command, ["git", "push"]), "{command}");
        }
    }

    /// A shell did what it read, and no rule looked there.
    #[test]
    fn what_is_fed_to_a_shell_might_run_anything() {
        let cases = [
            "bash <<< 'rm f'",
            "echo rm f | sh",
            "echo rm f |& bash -x",
            "echo rm f | sudo -u me bash -",
            "echo rm f | (cd a; sh)",
            "{ sh; } < a",
            "bash < a",
            "bash -s x < a",
            "bash -o pipefail < a",
            "echo x | /bin/sh -s -- x",
            "echo x | bash /dev/stdin",
            "source /dev/stdin <<< 'rm f'",
            ". <(echo rm f)",
            "bash <(echo rm f)",
            "bash $(echo -c rm)",
            "echo rm f | xargs -d '\\n' sh -c",
            "echo rm f | xargs -I{} sh -c {}",
            "bash -c sh <<< 'rm f'",
            "echo x | python3",
            "echo x | python3.11 -",
            "echo x | perl -w",
            "node < a",
            "echo rm f | at now",
        ];
        for command in cases {
            assert!(suspects(command).is_boundless, "{command}");
        }
        let cases = [
            "bash",
            "bash x.sh < a",
            "cat a | bash x.sh",
            "cat a | sh -c 'wc -l'",
            "bash --version | head",
            "command -v bash || command -v sh",
            "cat a | python3 -c 'print(1)'",
            "cat a | python3 -m json.tool",
            "cat a | perl -pe 's/a/b/'",
            "cat a | awk '{print $1}' | sort",
            "cat a | grep sh",
            "python3 - <<'EOF'\nprint(1)\nEOF",
            "ls || sh",
        ];
        for command in cases {
            assert!(!suspects(command).is_boundless, "{command}");
        }
    }

    #[test]
    fn what_is_only_spoken_of_is_no_command() {
        let cases = [
            "git log",
            "git pull push",
            "gitx push",
            "echo git push",
            "echo 'a; git push'",
            "echo \"a; git push\"",
            "grep -n \"git push\" x | head",
            "ls # git push",
            "git commit -m 'do not git push'",
            "find . -name '*.rs' -exec grep x {} \\;",
            "find \"$DIR\" -name *.rs",
            "timeout 5 ls $x",
            "xargs grep \"$x\" < a",
            "bash -c 'ls $x'",
            "for f in *.c; do echo \"$f\"; done",
            "A=1",
            "> push",
            "ls > git push",
            "git -C . log push",
            "git --no-pager log --oneline",
            "grep -e git push",
            "awk '{ print $1, $2 }' a",
            "python3 -c 'print(\"push\")'",
        ];
        for command in cases {
            assert!(!might_run(command, ["git", "push"]), "{command}");
        }
    }

    #[test]
    fn what_is_too_large_to_tell_might_run_anything() {
        assert!(suspects(&"x ".repeat(MOST_BYTES)).is_boundless);
        assert!(suspects(&"x;".repeat(MOST_COMMANDS + 1)).is_boundless);
        assert!(suspects(&format!("sudo {}", "x ".repeat(MOST_COMMANDS + 1))).is_boundless);
        assert!(suspects(&format!("gcc {}", "-x ".repeat(MOST_COMMANDS + 1))).is_boundless);
        let many = suspects(&format!("git {} push", "-x ".repeat(MOST_COMMANDS / 2)));
        assert!(!many.is_boundless && many.commands.iter().all(|words| words.len() < MOST_COMMANDS));
        assert!(suspects(&format!("{} a", "eval 'b ".repeat(9))).commands.len() < MOST_COMMANDS);
    }
}
