//! Which calls may run: the mode, the rules, and whether the sandbox holds what runs.
//!
//! A call that a rule forbids never runs. One that nothing allows is answered as if a person had said no,
//! since there is nobody to ask. Nothing here knows how a call is run.

use std::path::{Path, PathBuf};

use super::commands::{self, PRIVATE_FOLDER, Part, Redirection, Word};
use super::paths::{Places, lexical, real};
use super::rules::{Rule, Specifier};
use super::suspects;
use super::wrappers::unwrapped;
use crate::tools::access::{self, Access};
use crate::tools::asking::Update;
use crate::tools::{Workspace, in_private_folder, skill};

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

/// The mode of this name. `manual` is what `claude` calls its default; in `auto` it has a second model judge what
/// the sandbox judges here.
pub fn mode_named(name: &str) -> Option<Mode> {
    let name = if ["auto", "manual"].contains(&name) { "default" } else { name };
    MODES.iter().find(|(known, _)| *known == name).map(|(_, mode)| *mode)
}

/// The modes by their names.
pub const MODES: &[(&str, Mode)] = &[
    ("default", Mode::Default),
    ("acceptEdits", Mode::AcceptEdits),
    ("plan", Mode::Plan),
    ("dontAsk", Mode::DontAsk),
    ("bypassPermissions", Mode::Bypass),
];

/// The mode's name.
pub fn name(mode: Mode) -> &'static str {
    MODES.iter().find(|(_, known)| *known == mode).map_or("default", |(name, _)| name)
}

/// What may run.
#[derive(Debug, Clone, Default)]
pub struct Permissions {
    /// How calls are judged that no rule is about.
    pub mode: Mode,
    /// Whether what runs is held by nothing but these rules.
    pub sandbox_is_off: bool,
    /// Whether somebody is asked about calls that no rule is about, so that none of them is allowed by itself.
    pub asks: bool,
    /// The rules that allow; absent if none were asked for, and then everything is.
    pub allowed: Option<Vec<Rule>>,
    /// The rules that forbid.
    pub denied: Vec<Rule>,
    /// The folders whose files `acceptEdits` is about.
    pub roots: Vec<PathBuf>,
    /// What the skills say that are in use: those of the run, then those of a conversation within it.
    pub in_use: Vec<InUse>,
}

/// What skills say of calls while they are in use.
#[derive(Debug, Clone, Default)]
pub struct InUse {
    /// The names of the skills.
    pub skills: Vec<String>,
    /// What the user's own skills allow beyond all rules that allow.
    pub granted: Vec<Rule>,
    /// All that other skills leave of what is allowed; absent if none has anything to say of it.
    pub narrowed: Option<Vec<Rule>>,
    /// What skills forbid.
    pub denied: Vec<Rule>,
    /// The names of the skills that narrow, for messages.
    pub narrowing: Vec<String>,
}

impl InUse {
    /// What more skills say besides.
    pub fn add(&mut self, more: InUse) {
        self.skills.extend(more.skills);
        self.granted.extend(more.granted);
        self.denied.extend(more.denied);
        self.narrowing.extend(more.narrowing);
        if let Some(rules) = more.narrowed {
            self.narrowed.get_or_insert_default().extend(rules);
        }
    }
}

/// Why a call may not run, and what would allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial(pub String, pub Ground);

/// What a denial stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// The call is forbidden, whoever would allow it.
    Forbidden,
    /// Nothing allows the call.
    NotAllowed,
    /// The client was asked and does not allow it; the text is its own.
    Refused,
}

impl Denial {
    /// What the model reads in place of a result.
    pub fn for_model(&self) -> String {
        if self.1 == Ground::Refused {
            return self.0.clone();
        }
        format!(
            "permission denied, the call was not run: {}. Do not try to get the same done in another way: \
             go on without it, or say what is missing.",
            self.0
        )
    }
}

impl Permissions {
    /// Judges a call of `tool`, whose paths are those of `workspace`.
    ///
    /// # Errors
    ///
    /// Why the call may not run.
    pub fn judge(&self, tool: &str, access: &Access, workspace: &Workspace) -> Result<(), Denial> {
        let judged = self.judge_alone(tool, access, workspace);
        let granted: Vec<Rule> = self.in_use.iter().flat_map(|skills| &skills.granted).cloned().collect();
        if granted.is_empty()
            && (judged.is_err() || self.in_use.iter().all(|skills| skills.narrowed.is_none()))
        {
            return judged;
        }
        if judged.is_err() {
            let allowed = self.allow_rules().iter().cloned().chain(granted.clone()).collect();
            Permissions { allowed: Some(allowed), ..self.clone() }
                .judge_alone(tool, access, workspace)
                .or(judged)?;
        }
        let by = |rules: &[Rule]| {
            let mode = Mode::Default;
            let (roots, allowed) = (Vec::new(), Some(rules.to_vec()));
            Permissions { mode, allowed, roots, ..Permissions::default() }
                .judge_alone(tool, access, workspace)
        };
        if !granted.is_empty() && by(&granted).is_ok() {
            return Ok(());
        }
        for skills in &self.in_use {
            if skills.narrowed.as_deref().is_some_and(|rules| by(rules).is_err()) {
                let narrowing = skills.narrowing.join(", ");
                let why = format!("it is not among the allowed-tools of the skill in use ({narrowing})");
                return Err(Denial(why, Ground::Forbidden));
            }
        }
        Ok(())
    }

    /// Judges a call as if no skill said what it may use.
    fn judge_alone(&self, tool: &str, access: &Access, workspace: &Workspace) -> Result<(), Denial> {
        match access.path().filter(|path| in_private_folder(path).is_some()) {
            Some(path) => self.judge_private(tool, access, &workspace.resolve(path), workspace),
            None => self.judge_public(tool, access, workspace),
        }
    }

    /// Judges a call that reads or writes `file` in the private folder: as with redirections, no rule is needed
    /// there. Where a link leads out of it, the file at its end is judged as any other.
    fn judge_private(
        &self,
        tool: &str,
        access: &Access,
        file: &Path,
        workspace: &Workspace,
    ) -> Result<(), Denial> {
        match (self.deny_rules().find(|rule| rule.denies_file(tool, file)), led_out(file, workspace)) {
            (Some(rule), _) => Err(self.forbidden_by(rule)),
            (None, Some(elsewhere)) => {
                self.judge_public(tool, &access.of_file(&elsewhere.to_string_lossy()), workspace)
            }
            (None, None) if self.mode == Mode::Plan && !matches!(access, Access::Read(_)) => {
                Err(only_plans())
            }
            (None, None) => Ok(()),
        }
    }

    fn judge_public(&self, tool: &str, access: &Access, workspace: &Workspace) -> Result<(), Denial> {
        if let Some(rule) = self.forbidding(tool, access, workspace) {
            return Err(self.forbidden_by(rule));
        }
        match access {
            Access::Nothing | Access::Read(_) | Access::Skill(_) | Access::Fail => Ok(()),
            _ if self.mode == Mode::Plan && self.breaks_plan(access) => Err(only_plans()),
            _ if self.mode == Mode::Bypass => Ok(()),
            Access::Write(path) | Access::Edit(path) => self.judge_write(tool, path, workspace),
            Access::Run(command) => self.judge_command(tool, command, workspace),
            Access::Execute if self.all_is_allowed() || self.allows_whole(tool) => Ok(()),
            Access::Execute => Err(self.not_allowed(tool, "it runs a program")),
        }
    }

    /// Whether `tool` may look into a file that it comes upon below a folder it was asked to search.
    pub fn may_search(&self, tool: &str, file: &Path) -> bool {
        !self.deny_rules().any(|rule| rule.denies_file(tool, file))
    }

    /// Whether the rules forbid all that a tool could be asked for, so that it need not be offered.
    pub fn removes(&self, tool: &str) -> bool {
        self.denied.iter().any(|rule| rule.denies_whole(tool))
    }

    /// Whether the rules forbid that the model uses a skill, so that it need not be told of it.
    pub fn removes_skill(&self, name: &str) -> bool {
        self.denied.iter().any(|rule| rule.denies_skill(skill::NAME, name))
    }

    /// The rules that forbid, those of skills in use among them.
    fn deny_rules(&self) -> impl Iterator<Item = &Rule> {
        self.denied.iter().chain(self.in_use.iter().flat_map(|skills| &skills.denied))
    }

    fn forbidden_by(&self, rule: &Rule) -> Denial {
        let is_typed = self.denied.iter().any(|typed| std::ptr::eq(typed, rule));
        let place = if is_typed { "--disallowedTools" } else { "a skill in use" };
        Denial(format!("the rule \"{}\" of {place} forbids it", rule.text), Ground::Forbidden)
    }

    /// Has a rule allow, or forbid, further calls.
    ///
    /// # Errors
    ///
    /// Why there can be no such rule.
    pub fn add(&mut self, update: &Update, places: &Places) -> Result<(), String> {
        match update {
            Update::Allow(text) => self.allowed.get_or_insert_default().push(Rule::parse(text, places)?),
            Update::Deny(text) => self.denied.push(Rule::parse(text, places)?),
            Update::Mode(_) => {}
        }
        Ok(())
    }

    /// Whether somebody is asked about what no rule allows.
    pub fn may_ask(&self) -> bool {
        self.asks && matches!(self.mode, Mode::Default | Mode::AcceptEdits)
    }

    /// Whether anything that is not forbidden may run.
    fn all_is_allowed(&self) -> bool {
        self.allowed.is_none() && !self.sandbox_is_off && !self.asks
    }

    fn allow_rules(&self) -> &[Rule] {
        self.allowed.as_deref().unwrap_or_default()
    }

    fn allows_whole(&self, tool: &str) -> bool {
        self.allow_rules()
            .iter()
            .any(|rule| rule.is_about_whole_tool() && access::allow_covers(&rule.tool, tool))
    }

    fn forbidding(&self, tool: &str, access: &Access, workspace: &Workspace) -> Option<&Rule> {
        match access {
            Access::Read(file) | Access::Write(file) | Access::Edit(file) => {
                let file = workspace.resolve(file);
                self.deny_rules().find(|rule| rule.denies_file(tool, &file))
            }
            Access::Run(_) if self.deny_rules().next().is_none() => None,
            Access::Run(command) => {
                let suspects = suspects::suspects(command);
                let by_command = self.deny_rules().find(|rule| rule.denies_command(tool, command, &suspects));
                by_command.or_else(|| self.forbidding_redirection(command, workspace))
            }
            Access::Skill(name) => self.deny_rules().find(|rule| rule.denies_skill(tool, name)),
            Access::Nothing | Access::Execute | Access::Fail => {
                self.deny_rules().find(|rule| rule.denies_whole(tool))
            }
        }
    }

    /// A rule about files holds for redirections too, where a command line can be understood.
    fn forbidding_redirection(&self, command: &str, workspace: &Workspace) -> Option<&Rule> {
        let parts = commands::take_apart(command).unwrap_or_default();
        let redirections = parts.iter().flat_map(|part| &part.redirections);
        let files: Vec<(&str, PathBuf)> =
            redirections.filter_map(|it| Some((access::like(it), opened(it.path(), workspace)?))).collect();
        let denies = |rule: &&Rule| {
            files.iter().any(|(tool, file)| rule.denies_file(tool, file) && !rule.is_about_whole_tool())
        };
        self.deny_rules().find(denies)
    }

    /// Whether a call could change something in a run that only plans. A sandbox that is on is read-only then.
    fn breaks_plan(&self, access: &Access) -> bool {
        !matches!(access, Access::Run(_)) || self.sandbox_is_off
    }

    fn judge_write(&self, tool: &str, path: &str, workspace: &Workspace) -> Result<(), Denial> {
        let file = workspace.root.join(path);
        match self.all_is_allowed() || self.may_write(tool, &file) {
            true => Ok(()),
            false => {
                Err(self
                    .not_allowed(&format!("Edit({})", as_pattern(path, &workspace.root)), "it writes a file"))
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

    fn judge_command(&self, tool: &str, command: &str, workspace: &Workspace) -> Result<(), Denial> {
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
        let refused = redirections.find_map(|it| {
            let file = opened(it.path(), workspace)?;
            (!self.may_redirect(it, &file)).then_some((it, file))
        });
        let Some((redirection, file)) = refused else { return Ok(()) };
        let pattern = match redirection.path().starts_with(PRIVATE_FOLDER) {
            true => as_pattern(&file.to_string_lossy(), &workspace.root),
            false => as_pattern(redirection.path(), &workspace.root),
        };
        Err(self.not_allowed(&format!("Edit({pattern})"), "its output goes to a file"))
    }

    /// A redirection, which opens `file`, is judged as the write that it is; what goes nowhere is none.
    fn may_redirect(&self, redirection: &Redirection, file: &Path) -> bool {
        const NOWHERE: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr"];
        match redirection {
            // Bash makes a connection of `/dev/tcp/host/port`.
            Redirection::From(path) => !lexical(file).starts_with("/dev") || path == "/dev/null",
            Redirection::To(path) => {
                NOWHERE.contains(&path.as_str()) || self.may_write(access::like(redirection), file)
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
        Denial(format!("{why}; {way}"), Ground::NotAllowed)
    }
}

fn only_plans() -> Denial {
    let why = "this run only plans (--permission-mode plan) and changes nothing";
    Denial(why.to_owned(), Ground::Forbidden)
}

/// Where a file of the private folder really is, if links lead out of that. The folder's own name holds no
/// links, unless one has been put in its place.
fn led_out(file: &Path, workspace: &Workspace) -> Option<PathBuf> {
    let private = workspace.private.as_deref()?;
    let real = real(file);
    (!real.starts_with(private)).then_some(real)
}

/// The file that a redirection to `path` opens. None in the private folder, which has no links before the first
/// worker makes it.
fn opened(path: &str, workspace: &Workspace) -> Option<PathBuf> {
    match path.strip_prefix(PRIVATE_FOLDER) {
        None => Some(workspace.root.join(path)),
        Some(inside) => led_out(&workspace.private.as_ref()?.join(inside.trim_start_matches('/')), workspace),
    }
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
    let words = unwrapped(&part.words).words;
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
            let permissions =
                Permissions { mode: *mode, sandbox_is_off, allowed, roots, ..Permissions::default() };
            (format!("{name}, {column}"), permissions.row())
        })
    };
    MODES.iter().flat_map(row).collect()
}

impl Permissions {
    /// What is allowed that no rule is about.
    fn row(&self) -> String {
        let workspace = &Workspace { root: "/workspace".into(), private: None, places: Vec::new() };
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
mod tests;
