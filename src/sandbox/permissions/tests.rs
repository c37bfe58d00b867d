//! What rules and modes allow and forbid, case by case and against command lines made at random.

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
        asks: false,
        allowed: allowed.map(rules),
        denied: rules(denied),
        roots: vec![WORKSPACE.into()],
        in_use: Vec::new(),
    }
}

fn judged(permissions: &Permissions, tool: &str, access: &Access) -> Result<(), String> {
    let workspace = Workspace { root: WORKSPACE.into(), private: None, places: Vec::new() };
    permissions.judge(tool, access, &workspace).map_err(|denial| denial.0)
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
        ("Bash(ls -l)", &["ls -l\u{a0}", "ls", "ls -la", "ls -l x", "xargs ls -l", "ls -l; x", "ls -l > a"]),
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

/// A rule that says something of a program's calls forbade none of them.
#[test]
fn a_rule_about_some_calls_of_a_program_forbids_all_and_allows_none() {
    let some = permissions(Mode::Bypass, None, "weather(Rome)");
    let forbidden = "the rule \"weather(Rome)\" of --disallowedTools forbids it";
    assert_eq!(judged(&some, "weather", &Access::Execute), Err(forbidden.to_owned()));
    assert_eq!(judged(&some, "weathers", &Access::Execute), Ok(()));
    assert!(some.removes("weather") && !some.removes("weathers"));
    let allows = |list| judged(&permissions(Mode::Default, Some(list), ""), "weather", &Access::Execute);
    assert!(allows("weather(Rome)").is_err() && allows("weather(*)").is_ok() && allows("weather").is_ok());
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
    assert_eq!(reason("Read", "", Access::Execute), "it runs a program; it needs --allowedTools \"weather\"");
}

/// A link in the private folder led out of it, and what was behind it needed no rule.
#[test]
fn the_private_folder_ends_where_its_links_lead_out() {
    let folder = std::fs::canonicalize(std::env::temp_dir())
        .unwrap()
        .join(format!("cotter-private-{}", std::process::id()));
    let at = |name: &str| folder.join(name);
    std::fs::create_dir_all(at("private/sub")).unwrap();
    std::fs::create_dir_all(at("w")).unwrap();
    std::fs::create_dir_all(at("else")).unwrap();
    for (target, link) in [("w", "in"), ("else", "out"), ("private/sub", "self"), ("w/new", "dangling")] {
        std::os::unix::fs::symlink(at(target), at("private").join(link)).unwrap();
    }
    let workspace = Workspace { root: at("w"), private: Some(at("private")), places: Vec::new() };
    let judged = |mode, list: &str, denied: &str, tool: &str, access: &Access| {
        let permissions = permissions(mode, Some(list), denied);
        let permissions = Permissions { roots: vec![at("w")], ..permissions };
        permissions.judge(tool, access, &workspace).map_err(|denial| denial.0)
    };
    let elsewhere = format!("/{}", at("else/a").display());
    for (path, pattern) in [("in/a", "/a"), ("dangling", "/new"), ("out/a", &elsewhere)] {
        let (path, edit) = (format!("$TMPDIR/{path}"), format!("Edit({pattern})"));
        let needs = |why: &str| Err(format!("{why}; it needs --allowedTools \"{edit}\""));
        let line = format!("ls > {path}");
        let (write, run) = (Access::Write(&path), Access::Run(&line));
        assert_eq!(judged(Mode::Default, "Bash(ls:*)", "", "Write", &write), needs("it writes a file"));
        assert_eq!(judged(Mode::Default, "Bash(ls:*)", "", "Bash", &run), needs("its output goes to a file"));
        assert_eq!(judged(Mode::Plan, "Edit", "", "Write", &write), Err(only_plans().0));
        // A rule about the place where the file really is holds.
        let list = match pattern.starts_with("//") {
            true => format!("{edit} Bash(ls:*)"),
            false => "Edit Bash(ls:*)".to_owned(),
        };
        for (tool, access) in [("Write", &write), ("Bash", &run)] {
            assert_eq!(judged(Mode::Default, &list, "", tool, access), Ok(()), "{path}");
            let rule = format!("Edit(/{}/**)", folder.display());
            let forbidden = Err(format!("the rule \"{rule}\" of --disallowedTools forbids it"));
            assert_eq!(judged(Mode::Bypass, "", &rule, tool, access), forbidden, "{path}");
        }
    }
    assert_eq!(judged(Mode::AcceptEdits, "", "", "Write", &Access::Write("$TMPDIR/in/a")), Ok(()));
    for path in ["$TMPDIR/a", "$TMPDIR/sub/new/a", "$TMPDIR/self/a"] {
        let line = format!("ls > {path}");
        assert_eq!(judged(Mode::Default, "Bash(ls:*)", "", "Write", &Access::Write(path)), Ok(()), "{path}");
        assert_eq!(judged(Mode::Default, "Bash(ls:*)", "", "Bash", &Access::Run(&line)), Ok(()), "{path}");
    }
    // Another folder in the place of the private one is not it.
    std::fs::rename(at("private"), at("moved")).unwrap();
    std::os::unix::fs::symlink(at("w"), at("private")).unwrap();
    assert!(judged(Mode::Default, "Bash(ls:*)", "", "Write", &Access::Write("$TMPDIR/a")).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
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
                0 => char::from_u32(u32::try_from(numbers.below(0x3000)).unwrap()).unwrap_or('a').to_string(),
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
