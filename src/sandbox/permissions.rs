//! Which calls may run: the mode, the rules, and whether the sandbox holds what runs.
//!
//! A call that a rule forbids never runs. One that nothing allows is answered as if a person had said no,
//! since there is nobody to ask. Nothing here knows how a call is run.

use std::path::{Path, PathBuf};

use super::commands::{self, PRIVATE_FOLDER, Part, Redirection, Word};
use super::paths::{lexical, real};
use super::rules::{Rule, Specifier};
use super::suspects;
use crate::tools::access::{self, Access};

/// How calls are judged that no rule is about.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// What the sandbox holds is allowed, until a rule allows something: then only what rules allow.
    #[default]
    Default,
    /// The same, and files of the workspace may be written.
    AcceptEdits,
    /// Nothing is changed.
    Plan,
    /// As the default, but the first call that is denied ends the run.
    DontAsk,
    /// All is allowed that no rule forbids.
    Bypass,
}

/// The modes by their names.
pub const MODES: &[(&str, Mode)] = &[
    ("default", Mode::Default),
    ("acceptEdits", Mode::AcceptEdits),
    ("plan", Mode::Plan),
    ("dontAsk", Mode::DontAsk),
    ("bypassPermissions", Mode::Bypass),
];

/// What may run.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// How calls are judged that no rule is about.
    pub mode: Mode,
    /// Whether what runs is held by nothing but these rules.
    pub sandbox_is_off: bool,
    /// The rules that allow; absent if none were asked for, and then everything is.
    pub allowed: Option<Vec<Rule>>,
    /// The rules that forbid.
    pub denied: Vec<Rule>,
    /// The folders whose files `acceptEdits` is about.
    pub roots: Vec<PathBuf>,
}

/// Why a call may not run, and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial(pub String);

impl Denial {
    /// What the model reads in place of a result.
    pub fn for_model(&self) -> String {
        format!(
            "permission denied, the call was not run: {}. Do not try to get the same done in another way: \
             go on without it, or say what is missing.",
            self.0
        )
    }
}

impl Permissions {
    /// Judges a call of `tool`, whose relative paths begin at `workspace`.
    ///
    /// # Errors
    ///
    /// Why the call may not run.
    pub fn judge(&self, tool: &str, access: &Access, workspace: &Path) -> Result<(), Denial> {
        if let Some(rule) = self.forbidding(tool, access, workspace) {
            return Err(forbidden_by(rule));
        }
        match access {
            Access::Nothing | Access::Read(_) | Access::Fail => Ok(()),
            _ if self.mode == Mode::Plan && self.breaks_plan(access) => Err(only_plans()),
            _ if self.mode == Mode::Bypass => Ok(()),
            Access::Write(path) | Access::Edit(path) => self.judge_write(tool, path, workspace),
            Access::Run(command) => self.judge_command(tool, command, workspace),
            Access::Execute if self.all_is_allowed() || self.allows_whole(tool) => Ok(()),
            Access::Execute => Err(self.not_allowed(tool, "it runs a program")),
        }
    }

    /// Judges a call of `tool` that reads or writes `file` in the private folder: as with redirections, no rule
    /// is needed there.
    ///
    /// # Errors
    ///
    /// Why the call may not run.
    pub fn judge_private(&self, tool: &str, access: &Access, file: &Path) -> Result<(), Denial> {
        match self.denied.iter().find(|rule| rule.denies_file(tool, file)) {
            Some(rule) => Err(forbidden_by(rule)),
            None if self.mode == Mode::Plan && !matches!(access, Access::Read(_)) => Err(only_plans()),
            None => Ok(()),
        }
    }

    /// Whether `tool` may look into a file that it comes upon below a folder it was asked to search.
    pub fn may_search(&self, tool: &str, file: &Path) -> bool {
        !self.denied.iter().any(|rule| rule.denies_file(tool, file))
    }

    /// Whether the rules forbid all that a tool could be asked for, so that it need not be offered.
    pub fn removes(&self, tool: &str) -> bool {
        self.denied.iter().any(|rule| rule.is_about_whole_tool() && access::deny_covers(&rule.tool, tool))
    }

    /// Whether anything that is not forbidden may run.
    fn all_is_allowed(&self) -> bool {
        self.allowed.is_none() && !self.sandbox_is_off
    }

    fn allow_rules(&self) -> &[Rule] {
        self.allowed.as_deref().unwrap_or_default()
    }

    fn allows_whole(&self, tool: &str) -> bool {
        self.allow_rules()
            .iter()
            .any(|rule| rule.is_about_whole_tool() && access::allow_covers(&rule.tool, tool))
    }

    fn forbidding(&self, tool: &str, access: &Access, workspace: &Path) -> Option<&Rule> {
        let path = |path: &str| workspace.join(path);
        match access {
            Access::Read(file) | Access::Write(file) | Access::Edit(file) => {
                let file = path(file);
                self.denied.iter().find(|rule| rule.denies_file(tool, &file))
            }
            Access::Run(_) if self.denied.is_empty() => None,
            Access::Run(command) => {
                let suspects = suspects::suspects(command);
                let by_command =
                    self.denied.iter().find(|rule| rule.denies_command(tool, command, &suspects));
                by_command.or_else(|| self.forbidding_redirection(command, workspace))
            }
            Access::Nothing | Access::Execute | Access::Fail => self
                .denied
                .iter()
                .find(|rule| rule.is_about_whole_tool() && access::deny_covers(&rule.tool, tool)),
        }
    }

    /// A rule about files holds for redirections too, where a command line can be understood.
    fn forbidding_redirection(&self, command: &str, workspace: &Path) -> Option<&Rule> {
        let parts = commands::understand(command).unwrap_or_default();
        let redirections = parts.iter().flat_map(|part| &part.redirections);
        let redirections: Vec<_> = redirections.filter(|it| !it.path().starts_with(PRIVATE_FOLDER)).collect();
        let denies = |rule: &&Rule| {
            redirections.iter().any(|redirection| {
                let file = workspace.join(redirection.path());
                rule.denies_file(access::like(redirection), &file) && !rule.is_about_whole_tool()
            })
        };
        self.denied.iter().find(denies)
    }

    /// Whether a call could change something in a run that only plans. A sandbox that is on is read-only then.
    fn breaks_plan(&self, access: &Access) -> bool {
        !matches!(access, Access::Run(_)) || self.sandbox_is_off
    }

    fn judge_write(&self, tool: &str, path: &str, workspace: &Path) -> Result<(), Denial> {
        let file = workspace.join(path);
        match self.all_is_allowed() || self.may_write(tool, &file) {
            true => Ok(()),
            false => {
                Err(self.not_allowed(&format!("Edit({})", as_pattern(path, workspace)), "it writes a file"))
            }
        }
    }

    fn may_write(&self, tool: &str, file: &Path) -> bool {
        let by_mode = self.mode == Mode::AcceptEdits && self.is_inside(file);
        by_mode || self.allow_rules().iter().any(|rule| rule.allows_file(tool, file))
    }

    /// Whether a file lies in the workspace, by its name and in truth.
    fn is_inside(&self, file: &Path) -> bool {
        let (by_name, in_truth) = (lexical(file), real(file));
        let inside = |path: &Path, of: &dyn Fn(&Path) -> PathBuf| {
            self.roots.iter().any(|root| path.starts_with(of(root)))
        };
        inside(&by_name, &lexical) && inside(&in_truth, &real)
    }

    fn judge_command(&self, tool: &str, command: &str, workspace: &Path) -> Result<(), Denial> {
        if self.all_is_allowed() || self.allow_rules().iter().any(|rule| rule.names_command(tool, command)) {
            return Ok(());
        }
        let parts = commands::understand(command).map_err(|what| {
            let why = format!("no rule about commands matches a command line that has {what}");
            self.not_allowed(tool, &why)
        })?;
        for part in &parts {
            if !self.allow_rules().iter().any(|rule| rule.allows_command(tool, part)) {
                let wanted = format!("{tool}({}:*)", beginning(part));
                return Err(self.not_allowed(&wanted, "it runs a command that no rule allows"));
            }
        }
        let mut redirections = parts.iter().flat_map(|part| &part.redirections);
        match redirections.find(|it| !self.may_redirect(it, workspace)) {
            None => Ok(()),
            Some(redirection) => {
                let file = as_pattern(redirection.path(), workspace);
                Err(self.not_allowed(&format!("Edit({file})"), "its output goes to a file"))
            }
        }
    }

    /// A redirection is judged as the write that it is; what goes nowhere or into the private folder is none.
    fn may_redirect(&self, redirection: &Redirection, workspace: &Path) -> bool {
        const NOWHERE: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr"];
        match redirection {
            // Bash makes a connection of `/dev/tcp/host/port`.
            Redirection::From(path) => {
                !lexical(&workspace.join(path)).starts_with("/dev") || path == "/dev/null"
            }
            Redirection::To(path) => {
                NOWHERE.contains(&path.as_str())
                    || path.starts_with(PRIVATE_FOLDER)
                    || self.may_write(access::like(redirection), &workspace.join(path))
            }
        }
    }

    /// What is said where nothing allows a call that a rule could allow.
    fn not_allowed(&self, rule: &str, why: &str) -> Denial {
        let way = match (&self.allowed, self.sandbox_is_off) {
            (None, true) => format!(
                "with --sandbox off it needs --allowedTools \"{rule}\" or --permission-mode bypassPermissions"
            ),
            _ => format!("it needs --allowedTools \"{rule}\""),
        };
        Denial(format!("{why}; {way}"))
    }
}

fn forbidden_by(rule: &Rule) -> Denial {
    Denial(format!("the rule \"{}\" of --disallowedTools forbids it", rule.text))
}

fn only_plans() -> Denial {
    Denial("this run only plans (--permission-mode plan) and changes nothing".to_owned())
}

/// A path as a rule would name it, without telling more of the machine than the call did.
fn as_pattern(path: &str, workspace: &Path) -> String {
    let (file, workspace) = (lexical(&workspace.join(path)), lexical(workspace));
    if let Ok(inside) = file.strip_prefix(&workspace) {
        return format!("/{}", inside.display());
    }
    if path.starts_with('/') {
        return format!("/{}", file.display());
    }
    let mut above = workspace.ancestors().enumerate();
    let shared = above.find_map(|(count, folder)| Some((count, file.strip_prefix(folder).ok()?)));
    let (count, rest) = shared.unwrap_or((0, &file));
    format!("{}{}", "../".repeat(count), rest.display())
}

/// The words by which a rule would allow a command: its name, and what it is to do if that is one word.
fn beginning(part: &Part) -> String {
    let words = commands::unwrapped(&part.words).words;
    let is_word = |word: &&Word| {
        word.literal().is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
            && !word.literal().is_some_and(|text| text.starts_with('-'))
    };
    let name = words.first().map(Word::written).unwrap_or_default();
    match words.get(1).filter(is_word).and_then(Word::literal) {
        Some(second) => format!("{name} {second}"),
        None => name,
    }
}

/// What may run that no rule is about, for the manual: the mode with the sandbox, and what it allows.
pub fn table() -> Vec<(String, String)> {
    // With the sandbox off, rules or none make no difference to what they are not about.
    let columns = [
        ("sandbox on", false, None),
        ("sandbox on, with --allowedTools", false, Some(Vec::new())),
        ("sandbox off", true, None),
    ];
    let row = |(name, mode): &(&str, Mode)| {
        columns.clone().map(|(column, sandbox_is_off, allowed)| {
            let roots = vec![PathBuf::from("/workspace")];
            let permissions = Permissions { mode: *mode, sandbox_is_off, allowed, denied: Vec::new(), roots };
            (format!("{name}, {column}"), permissions.row())
        })
    };
    MODES.iter().flat_map(row).collect()
}

impl Permissions {
    /// What is allowed that no rule is about.
    fn row(&self) -> String {
        let workspace = Path::new("/workspace");
        let by_rule = |tool: &str, access: &Access| {
            let rule = Rule { text: tool.to_owned(), tool: tool.to_owned(), specifier: Specifier::All };
            let ruled = Permissions { allowed: Some(vec![rule]), ..self.clone() };
            ruled.judge(tool, access, workspace).is_ok()
        };
        let cell = |(class, tool, here, elsewhere): &(&str, &str, Access, Access)| {
            let allows = |access: &Access| self.judge(tool, access, workspace).is_ok();
            let meaning = match (allows(here), allows(elsewhere)) {
                (true, true) => "yes",
                (true, false) => "in the workspace, elsewhere by rule",
                (false, _) if by_rule(tool, here) => "by rule",
                (false, _) => "no",
            };
            format!("{class}: {meaning}")
        };
        access::CLASSES.iter().map(cell).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::paths::Places;
    use crate::sandbox::rules;

    const WORKSPACE: &str = "/nonexistent/w";

    fn rules(list: &str) -> Vec<Rule> {
        let places = Places { workspace: WORKSPACE.into(), home: Some("/nonexistent/home".into()) };
        rules::split(list).into_iter().map(|text| Rule::parse(text, &places).unwrap()).collect()
    }

    fn permissions(mode: Mode, allowed: Option<&str>, denied: &str) -> Permissions {
        Permissions {
            mode,
            sandbox_is_off: false,
            allowed: allowed.map(rules),
            denied: rules(denied),
            roots: vec![WORKSPACE.into()],
        }
    }

    fn judged(permissions: &Permissions, tool: &str, access: &Access) -> Result<(), String> {
        permissions.judge(tool, access, Path::new(WORKSPACE)).map_err(|denial| denial.0)
    }

    fn allows(list: &str, command: &str) -> bool {
        judged(&permissions(Mode::Default, Some(list), ""), "Bash", &Access::Run(command)).is_ok()
    }

    fn denies(list: &str, command: &str) -> bool {
        judged(&permissions(Mode::Bypass, None, list), "Bash", &Access::Run(command)).is_err()
    }

    #[test]
    fn a_rule_allows_the_commands_that_it_certainly_means() {
        let cases: &[(&str, &[&str])] = &[
            (
                "Bash(git log:*)",
                &[
                    "git log",
                    "git log -3",
                    "git log --format=%h -- 'a b'",
                    "git  log",
                    "git\tlog ",
                    "\"git\" log",
                    "'git' \"log\" x",
                    "g\\it log",
                    "gi''t log",
                    "git log 2>&1",
                    "git log 2>/dev/null",
                    "git log >/dev/null 2>&1",
                    "git log &>/dev/null",
                    "git log > $TMPDIR/out.txt",
                    "git log < a.txt",
                    "git log </dev/null",
                    "git log *.c",
                    "git log $BRANCH ${TAG} ~/x {a,b}",
                    "git log \"a; rm b\"",
                    "git log 'a | b > c && d'",
                    "git log \\; x",
                    "git log && git log -1",
                    "git log | git log",
                    "git log; git log;",
                    "git log & git log &",
                    "git log\n",
                    "timeout 5 git log",
                    "time git log",
                    "nohup git log",
                    "nice -n 5 git log",
                    "stdbuf -oL git log",
                    "git log | xargs git log",
                ],
            ),
            ("Bash(git log *)", &["git log", "git log -3"]),
            ("Bash(git:*)", &["git", "git push", "git log | git push"]),
            ("Bash(npm run test*)", &["npm run test", "npm run test:unit", "npm run tests x"]),
            ("Bash(git * main)", &["git push main", "git push origin main", "git 'push' main"]),
            ("Bash(* --version)", &["node --version", "timeout 5 node --version"]),
            ("Bash(ls -l)", &["ls -l", "ls  -l", " ls '-l'", "nice ls -l", "ls -l && ls -l", "ls -l 2>&1"]),
            ("Bash(echo $(date))", &["echo $(date)", " echo $(date)\n"]),
            ("Bash(a && b)", &["a && b"]),
            ("Bash(grep \"a b\":*)", &["grep 'a b' x", "grep a\\ b"]),
            ("Bash", &["anything $(at all) > /etc/x\nrm", "(git log)", ""]),
            ("Bash(*)", &["anything `at all`"]),
            ("Bash(git log:*),Bash(head:*)", &["git log | head -3", "head x && git log"]),
            ("Read Bash(ls) Edit", &["ls", "ls > a.txt", "ls > /etc/x"]),
            ("Bash(ls) Edit(out/**)", &["ls > out/a", "ls >> ./out/b/c", "ls &> out/a"]),
            ("Bash(sudo:*)", &["sudo rm"]),
            ("Bash(timeout:*)", &["timeout 5 rm", "timeout -k 5 rm"]),
        ];
        for (list, commands) in cases {
            for command in *commands {
                assert!(allows(list, command), "{list} does not allow {command:?}");
            }
        }
    }

    #[test]
    fn a_rule_allows_nothing_else() {
        let long = format!("git log {}", "x".repeat(100_000));
        let cases: &[(&str, &[&str])] = &[
            (
                "Bash(git log:*)",
                &[
                    "git logx",
                    "git",
                    "git -C x log",
                    "gitx log",
                    "git lo g",
                    "'git log'",
                    "'git log' x",
                    "git\\ log",
                    "/usr/bin/git log",
                    "./git log",
                    "Git log",
                    "git log; rm -rf .",
                    "git log;rm",
                    "git log && x",
                    "git log &&x",
                    "git log || x",
                    "git log | sh",
                    "git log |& sh",
                    "git log & rm",
                    "git log&rm",
                    "x && git log",
                    "x; git log",
                    "x | git log",
                    "git log $(x)",
                    "git log \"$(x)\"",
                    "git log '$(x)'",
                    "git log `x`",
                    "git log \"`x`\"",
                    "git log <(x)",
                    "git log >(x)",
                    "git log $((1+a[$(x)]))",
                    "git log $[a]",
                    "git log ${x@P}",
                    "git log ${x:=y}",
                    "git log ${!x}",
                    "git log $'a'",
                    "git log $\"a\"",
                    "$git log",
                    "git $log",
                    "${x} log",
                    "g?t log",
                    "git lo[g]",
                    "git {log,push}",
                    "~/git log",
                    "git log > /etc/x",
                    "git log > a.txt",
                    "git log >> a.txt",
                    "git log >| a.txt",
                    "git log &> a.txt",
                    "git log >& a.txt",
                    "git log 2> a.txt",
                    "> a.txt git log",
                    "git log > ../x",
                    "git log > $X",
                    "git log > ~/x",
                    "git log > /dev/tcp/1.2.3.4/5",
                    "git log < /dev/tcp/1.2.3.4/5",
                    "git log < /dev/../dev/udp/1/2",
                    "git log <> a.txt",
                    "git log > $TMPDIR/../x",
                    "git log > /dev/null > a.txt",
                    "git log {fd}> a.txt",
                    "FOO=1 git log",
                    "GIT_PAGER='sh -c x' git log",
                    "A=1 B=2 git log",
                    "FOO+=1 git log",
                    "git log\nrm",
                    "git log\r\nrm",
                    "git log\\\n; rm",
                    "git log \"a\nb\"",
                    "(git log)",
                    "{ git log; }",
                    "! git log",
                    "if git log; then rm; fi",
                    "while git log; do rm; done",
                    "git log() { rm; }",
                    "function git { rm; }",
                    "git log #comment",
                    "# x\ngit log",
                    "git log <<EOF\nx\nEOF",
                    "git log <<< x",
                    "git log ;; rm",
                    "git log &&",
                    "&& git log",
                    "git log 'open",
                    "git log \"open",
                    "git log \\",
                    "git\u{a0}log",
                    "git log\u{2003}-3",
                    "git\u{2028}log",
                    "git log\0",
                    "git log\u{1b}[2J",
                    "git log\u{b}x",
                    "env git log",
                    "env A=1 git log",
                    "sudo git log",
                    "command git log",
                    "builtin git log",
                    "exec git log",
                    "eval git log",
                    "eval 'git log'",
                    "bash -c 'git log'",
                    "xargs -I{} git log {}",
                    "timeout -s KILL 5 git log",
                    "time { git log; }",
                    "coproc git log",
                    "[[ -f x ]]",
                    "git log &>/dev/null rm",
                    "git log &> /dev/null rm; git log",
                    "",
                    " ",
                    ";",
                    &long,
                ],
            ),
            ("Bash(git log *)", &["git logx", "git log; x"]),
            (
                "Bash(ls -l)",
                &["ls -l\u{a0}", "ls", "ls -la", "ls -l x", "xargs ls -l", "ls -l; x", "ls -l > a"],
            ),
            ("Bash(ls -l:*)", &["ls -la", "ls"]),
            (
                "Bash(npm run test*)",
                &["npm run", "npm run build", "npm run test; x", "npm run test $(x)", "npm  run x"],
            ),
            (
                "Bash(git * main)",
                &["git main", "git push main; x", "git push main x", "'git x' main", "git push | main"],
            ),
            ("Bash(* --version)", &["$x --version", "rm x; --version", "xargs rm -- --version $(x)"]),
            ("Bash(git * main)", &["x | xargs git push"]),
            ("Bash(FOO=1 npm:*)", &["FOO=1 npm x"]),
            ("Bash($x:*)", &["$x y"]),
            ("Bash(cd:*) Bash(ls) Edit(a)", &["cd / && ls > a", "pushd / ; ls > a"]),
            ("Bash(ls) Edit(out/**)", &["ls > out/../a", "ls > outx", "ls > a out/b"]),
            ("Bash(ls) Read", &["ls > a"]),
            ("Read,Edit", &["ls", ""]),
            ("Read(**)", &["ls"]),
            ("WebFetch", &["ls"]),
            ("bash", &["ls"]),
            ("Bash(a && b:*)", &["a && b", "a", "b"]),
            ("", &["ls"]),
        ];
        let mut count = 0;
        for (list, commands) in cases {
            for command in *commands {
                assert!(!allows(list, command), "{list} allows {command:?}");
                count += 1;
            }
        }
        assert!(count > 120, "{count} cases");
    }

    #[test]
    fn a_rule_forbids_all_that_it_might_mean() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "Bash(git push:*)",
                &[
                    "git push",
                    "git push -f",
                    "ls; git push",
                    "A=1 git push",
                    "sudo env A=1 git push",
                    "/usr/bin/git push",
                    "bash -c 'git push'",
                    "echo $(git push)",
                    "git $x",
                    "$x",
                    "cat <<EOF\nit's\nEOF\ngit push",
                    "ls &>/dev/null git push",
                ],
                &["git log", "git pushx", "echo git push", "git stash push", "git commit -m 'git push'"],
            ),
            (
                "Bash(rm -rf .)",
                &["rm -rf .", "x && rm  -rf '.'", "sudo rm -rf ."],
                &["rm -rf ./a", "rm -r .", "rm"],
            ),
            (
                "Bash(git * main)",
                &["git push origin main", "x; git push main", "git push $x"],
                &["git main", "ls main"],
            ),
            ("Bash(curl*)", &["curl x", "curlx", "/bin/curl x", "x | curl y"], &["ls", "echo curl"]),
            ("Bash(FOO=1 npm:*)", &["FOO=1  npm x", "ls; FOO=1 npm y"], &["npm x"]),
            ("Bash", &["ls", "", "$x"], &[]),
            ("Bash(*)", &["ls"], &[]),
            ("Edit(/secret/**)", &["ls > secret/x", "ls 2>> ./secret/x"], &["ls > x", "cat secret/x"]),
            ("Read(/secret/**)", &["cat < secret/x"], &["ls > secret/x"]),
            ("Edit(**)", &["ls > x"], &["ls > $TMPDIR/x", "ls 2>/dev/null"]),
            ("Read,Edit,WebFetch", &[], &["ls > x", "cat < x"]),
        ];
        for (list, denied, allowed) in cases {
            for command in *denied {
                assert!(denies(list, command), "{list} lets {command:?} run");
            }
            for command in *allowed {
                assert!(!denies(list, command), "{list} forbids {command:?}");
            }
        }
    }

    #[test]
    fn files_are_allowed_and_forbidden_by_their_paths() {
        let write = |list: &str, tool: &str, path: &str| {
            let access = if tool == "Edit" { Access::Edit(path) } else { Access::Write(path) };
            judged(&permissions(Mode::Default, Some(list), ""), tool, &access).is_ok()
        };
        assert!(write("Edit(src/**)", "Edit", "src/a") && write("Edit(src/**)", "Write", "./src/../src/a"));
        assert!(write("Edit", "Write", "/etc/x") && write("Write", "Write", "a"));
        assert!(!write("Write", "Edit", "a") && !write("Edit(src/**)", "Write", "src/../a"));
        assert!(!write("Read", "Edit", "a") && !write("Bash", "Write", "a"));
        let denied = |list: &str, tool: &str, access: Access| {
            judged(&permissions(Mode::Bypass, None, list), tool, &access).is_err()
        };
        for path in [".env", "a/../.env", "sub/.env", "/nonexistent/w/.env", "./.env"] {
            assert!(denied("Read(.env)", "Read", Access::Read(path)), "{path}");
            assert!(denied("Read(.env)", "Edit", Access::Edit(path)), "a failed Edit shows the file");
            assert!(!denied("Read(.env)", "Write", Access::Write(path)), "{path}");
            assert!(denied("Write(.env)", "Edit", Access::Edit(path)), "{path}");
            assert!(denied("Grep(.env)", "Read", Access::Read(path)), "{path}");
            assert!(!denied("Edit(.env)", "Read", Access::Read(path)), "{path}");
        }
        assert!(denied("Read", "Read", Access::Read("a")) && !denied("Read", "Edit", Access::Edit("a")));
    }

    #[test]
    fn without_a_rule_the_mode_decides() {
        let texts: Vec<String> =
            table().into_iter().map(|(mode, meaning)| format!("{mode} = {meaning}")).collect();
        let row = |mode: &str, write: &str, bash: &str, executables: &str| {
            format!(
                "{mode} = Read, Glob, Grep, dates, rates: yes; Write, Edit: {write}; Bash: {bash}; executables: {executables}"
            )
        };
        let (yes, rule, never, inside) = ("yes", "by rule", "no", "in the workspace, elsewhere by rule");
        let expected = [
            row("default, sandbox on", yes, yes, yes),
            row("default, sandbox on, with --allowedTools", rule, rule, rule),
            row("default, sandbox off", rule, rule, rule),
            row("acceptEdits, sandbox on", yes, yes, yes),
            row("acceptEdits, sandbox on, with --allowedTools", inside, rule, rule),
            row("acceptEdits, sandbox off", inside, rule, rule),
            row("plan, sandbox on", never, yes, never),
            row("plan, sandbox on, with --allowedTools", never, rule, never),
            row("plan, sandbox off", never, never, never),
            row("dontAsk, sandbox on", yes, yes, yes),
            row("dontAsk, sandbox on, with --allowedTools", rule, rule, rule),
            row("dontAsk, sandbox off", rule, rule, rule),
            row("bypassPermissions, sandbox on", yes, yes, yes),
            row("bypassPermissions, sandbox on, with --allowedTools", yes, yes, yes),
            row("bypassPermissions, sandbox off", yes, yes, yes),
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn a_denial_names_what_would_allow_the_call() {
        let reason = |list: &str, denied: &str, access: Access| {
            let tool = match access {
                Access::Run(_) => "Bash",
                Access::Execute => "weather",
                _ => "Write",
            };
            judged(&permissions(Mode::Default, Some(list), denied), tool, &access).unwrap_err()
        };
        let run = |command| reason("Bash(ls:*)", "Bash(rm:*)", Access::Run(command));
        assert_eq!(run("ls; rm x"), "the rule \"Bash(rm:*)\" of --disallowedTools forbids it");
        let no_rule = |rule: &str| {
            format!("it runs a command that no rule allows; it needs --allowedTools \"Bash({rule}:*)\"")
        };
        assert_eq!(run("git push -f"), no_rule("git push"));
        assert_eq!(run("ls && timeout 5 make -j"), no_rule("make"));
        assert_eq!(run("cat A.txt"), no_rule("cat"));
        assert_eq!(
            run("ls $(x)"),
            "no rule about commands matches a command line that has a command substitution; it needs --allowedTools \"Bash\""
        );
        assert_eq!(run("ls > b/a"), "its output goes to a file; it needs --allowedTools \"Edit(/b/a)\"");
        let write = |path| reason("Read", "", Access::Write(path));
        assert_eq!(write("b/../a"), "it writes a file; it needs --allowedTools \"Edit(/a)\"");
        assert_eq!(write("/etc/x"), "it writes a file; it needs --allowedTools \"Edit(//etc/x)\"");
        assert_eq!(
            reason("Read", "", Access::Execute),
            "it runs a program; it needs --allowedTools \"weather\""
        );
    }

    /// Numbers that look random and are the same in every run.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % limit as u64).unwrap()
        }
    }

    /// Pieces of which hostile command lines are made.
    const PIECES: &[&str] = &[
        "git",
        "log",
        "git log",
        "rm",
        " ",
        " ",
        " ",
        "\t",
        ";",
        "&",
        "|",
        "&&",
        "||",
        "\n",
        "'",
        "\"",
        "\\",
        "$",
        "$(",
        "`",
        ")",
        "(",
        "{",
        "}",
        "<",
        ">",
        "2>&1",
        ">/dev/null",
        "<<",
        "#",
        "~",
        "*",
        "=",
        "FOO=1",
        "${x}",
        "$'",
        "é",
        "\u{a0}",
        "\0",
        "timeout 5 ",
        "xargs ",
        "!",
        "-c",
        "[",
        "]",
    ];

    /// A naive and severe reader: where no quote is, each piece between operators has to begin with the words.
    fn surely_only_git_log(command: &str) -> bool {
        let forbidden = ["$(", "`", "\n", "(", ")", "<<"];
        let unquoted = strip_quotes(command);
        !forbidden.iter().any(|it| unquoted.contains(it))
            && unquoted.split(['|', '&', ';']).filter(|it| !matches!(it.trim(), "" | "1" | ">/dev/null")).all(
                |piece| {
                    let words: Vec<&str> = piece.split([' ', '\t', '<', '>']).collect();
                    words.contains(&"git") && words.contains(&"log")
                        || piece.starts_with(|it: char| it.is_ascii_digit())
                },
            )
    }

    /// The text with quoted operators and blanks taken out.
    fn strip_quotes(text: &str) -> String {
        let (mut plain, mut quote, mut letters) = (String::new(), None, text.chars());
        while let Some(letter) = letters.next() {
            let inner = match (quote, letter) {
                (Some('\''), '\'') | (Some('"'), '"') => {
                    quote = None;
                    continue;
                }
                (None, '\'' | '"') => {
                    quote = Some(letter);
                    continue;
                }
                (None | Some('"'), '\\') => letters.next().map(|next| (next, true)),
                (it, letter) => Some((letter, it.is_some())),
            };
            match inner {
                Some((letter, true)) if !letter.is_alphanumeric() => plain.push('_'),
                Some((letter, _)) => plain.push(letter),
                None => {}
            }
        }
        plain
    }

    #[test]
    fn no_command_made_at_random_gets_past_a_prefix_rule() {
        let mut numbers = Numbers(0x5eed);
        let permissions = permissions(Mode::Default, Some("Bash(git log:*)"), "");
        let (mut allowed, mut denied) = (0, 0);
        for _ in 0..40_000 {
            let mut command = if numbers.below(2) == 0 { "git log ".to_owned() } else { String::new() };
            for _ in 0..numbers.below(9) {
                command.push_str(PIECES[numbers.below(PIECES.len())]);
            }
            match judged(&permissions, "Bash", &Access::Run(&command)) {
                Ok(()) => {
                    assert!(surely_only_git_log(command.trim()), "{command:?}");
                    allowed += 1;
                }
                Err(_) => denied += 1,
            }
        }
        assert!(allowed > 1000 && denied > 10_000, "{allowed} allowed, {denied} denied");
    }

    #[test]
    fn no_text_whatever_brings_the_reader_down() {
        let mut numbers = Numbers(0xfeed);
        let permissions = permissions(Mode::Bypass, Some("Bash(a *b:*) Bash(é*)"), "Bash(rm:*) Bash(* x)");
        for _ in 0..2_000 {
            let command: String = (0..numbers.below(20))
                .map(|_| match numbers.below(3) {
                    0 => char::from_u32(u32::try_from(numbers.below(0x3000)).unwrap())
                        .unwrap_or('a')
                        .to_string(),
                    _ => PIECES[numbers.below(PIECES.len())].to_owned(),
                })
                .collect();
            let _ = judged(&permissions, "Bash", &Access::Run(&command));
            let _ = judged(&permissions, "Write", &Access::Write(&command.replace('\0', "")));
            let places = Places { workspace: WORKSPACE.into(), home: None };
            for text in [command.clone(), format!("Bash({command})"), format!("Edit({command})")] {
                rules::continues_list(&text);
                for rule in rules::split(&text) {
                    let _ = Rule::parse(rule, &places);
                }
            }
        }
    }
}
