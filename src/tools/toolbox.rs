//! The way from a call to its outcome: checks the call, runs it here or in the worker, and tidies the text.
//!
//! The worker is started by the first call that needs it, and again if it was killed. Its answers are
//! hostile input: a tool may have taken it over.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::access::Access;
use super::background::Background;
use super::executables::{self, Executable, Found};
use super::places::replace_folder;
use super::rates::Fetched;
use super::requests::program_request;
use super::truncate::HeadTail;
use super::{
    Arguments, Outcome, Spec, Surroundings, Workspace, access, arguments, asking, bash, belongs_to_worker,
    command, execute, in_private_folder, leaves_private_folder, needs_shell, quotes, schema, slips, write,
};
use crate::alarm::Alarm;
use crate::config::Executables;
use crate::conversation::{Call, Image};
use crate::error::Error;
use crate::sandbox::git::Snapshot;
use crate::sandbox::paths::Places;
use crate::sandbox::permissions::{self, Denial, Ground, InUse, Permissions};
use crate::sandbox::policy;
use crate::sandbox::{Held, Program as OwnProgram, Setup, Unstarted, Worker, hints};
use crate::skills::Place;

/// How long ending a command may take once its time is over.
const GRACE: Duration = Duration::from_secs(30);
/// How long a call that runs no command may take: a slow disk is slow.
const LIMIT: Duration = Duration::from_secs(600);
const MILLISECOND: Duration = Duration::from_millis(1);
/// How long a program may take to describe itself.
const DESCRIPTION_LIMIT: Duration = Duration::from_secs(10);
/// The longest text that is taken from the worker: every tool keeps far below it.
const MOST_TEXT_BYTES: usize = 1024 * 1024;

/// The tools of a run.
pub struct Toolbox {
    offered: Vec<&'static Spec>,
    executables: Vec<Executable>,
    workspace: Workspace,
    setup: Setup,
    shell: Option<PathBuf>,
    now: Option<jiff::Timestamp>,
    rates_url: String,
    worker: Option<Worker>,
    /// What is held until nothing that a tool has started is left.
    held: Option<Held>,
    /// The program that a worker is, as it was before the first tool did anything.
    program: Option<OwnProgram>,
    /// How many shells have been started in the background, whichever worker had them.
    shells: u64,
    permissions: Permissions,
    denied: Vec<Denied>,
    /// Folders that Write and Edit have changed, which may not be on the disk yet.
    unsynced: BTreeSet<PathBuf>,
    /// What git would run commands from, before the first tool did anything.
    git: Option<Snapshot>,
    /// What ends every call.
    alarm: Alarm,
}

/// A call that was not allowed to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Denied {
    /// The tool's name.
    pub tool: String,
    /// The call's id.
    pub call_id: String,
    /// Its arguments.
    pub input: Arguments,
    /// Why it was denied.
    pub denial: Denial,
}

impl Toolbox {
    /// The tools offered, with nothing running yet.
    pub fn new(
        offered: Vec<&'static Spec>,
        setup: Setup,
        now: Option<jiff::Timestamp>,
        rates_url: String,
        permissions: Permissions,
    ) -> Toolbox {
        // Before the first tool can put another one there.
        let needs_shell = offered.iter().any(|spec| needs_shell(spec.name));
        let path = || setup.environment.for_tools_named("PATH").unwrap_or_default();
        let shell = needs_shell.then(path).and_then(|path| command::shell(&path));
        let workspace = Workspace { root: setup.workspace.clone(), private: None, places: Vec::new() };
        Toolbox {
            offered,
            executables: Vec::new(),
            workspace,
            setup,
            shell,
            now,
            rates_url,
            worker: None,
            held: None,
            program: None,
            shells: 0,
            permissions,
            denied: Vec::new(),
            unsynced: BTreeSet::new(),
            git: None,
            alarm: Alarm::default(),
        }
    }

    /// Has calls end when this alarm rings.
    pub fn obey(&mut self, alarm: Alarm) {
        self.alarm = alarm;
    }

    /// Has what tools start hold the lock of this file too.
    pub fn hold(&mut self, file: &File) {
        self.held = Held::new(file);
        // One that was started to have programs describe themselves does not hold it: the next one will.
        self.worker = None;
    }

    /// Offers these programs too, after all others and in this order. Those without a description are asked
    /// for it, which starts the worker.
    ///
    /// # Errors
    ///
    /// `Usage` names the program that cannot be a tool, and why, or a name in `--tools` that none has.
    pub fn add(&mut self, programs: Executables) -> Result<(), Error> {
        let mut described = Vec::new();
        for found in programs.found {
            let executable = match &found.description {
                Some((place, text)) => executables::described(&found, place, text),
                None => {
                    let text = self.ask_for_description(&found)?;
                    executables::described(&found, &format!("{} --schema", found.shown), &text)
                }
            };
            described.push((executable.map_err(Error::Usage)?, found.shown));
        }
        executables::check_names(&described).map_err(Error::Usage)?;
        let specs = described.iter().map(|(executable, _)| executable.spec);
        self.offered.extend(specs.filter(|spec| !self.permissions.removes(spec.name)));
        self.executables.extend(described.into_iter().map(|(executable, _)| executable));
        match programs.named.iter().find(|name| !self.has_executable(name)) {
            None => Ok(()),
            Some(name) => {
                let built_in = super::all().iter().map(|spec| spec.name);
                let own = self.executables.iter().map(|one| one.spec.name);
                Err(Error::Usage(format!(
                    "--tools: there is no tool \"{name}\": choose from {}",
                    built_in.chain(own).collect::<Vec<_>>().join(", ")
                )))
            }
        }
    }

    fn ask_for_description(&mut self, found: &Found) -> Result<String, Error> {
        let request = program_request(&found.file, DESCRIPTION_LIMIT, &Value::Null);
        let outcome = self.ask_worker("--schema", request, DESCRIPTION_LIMIT + GRACE)?;
        match outcome.is_error {
            false => Ok(outcome.text),
            true => Err(Error::Usage(format!(
                "the tool \"{}\" cannot be used: there is no description beside it, and run with --schema it failed: {}",
                found.shown,
                crate::provider::excerpt(&outcome.text)
            ))),
        }
    }

    /// Whether a program of this name was given as a tool.
    pub fn has_executable(&self, name: &str) -> bool {
        self.executables.iter().any(|one| one.spec.name == name)
    }

    /// The tools that the model has, in order.
    pub fn offered(&self) -> &[&'static Spec] {
        &self.offered
    }

    /// Lets calls name files in these folders by their variables.
    pub fn name_places(&mut self, places: Vec<Place>) {
        self.workspace.places = places;
    }

    /// These skills are in use from now on, and none that were before.
    pub fn use_skills(&mut self, in_use: InUse) {
        self.permissions.in_use = vec![in_use];
    }

    /// Whether a skill is in use in the conversation that goes on now.
    pub fn uses_skill(&self, name: &str) -> bool {
        self.permissions.in_use.last().is_some_and(|in_use| in_use.skills.iter().any(|other| other == name))
    }

    /// These skills are in use besides the others.
    pub fn use_more_skills(&mut self, more: InUse) {
        match self.permissions.in_use.last_mut() {
            Some(in_use) => in_use.add(more),
            None => self.permissions.in_use.push(more),
        }
    }

    /// A conversation within the conversation begins, in which these skills are in use besides.
    pub fn begin_apart(&mut self, in_use: InUse) {
        self.permissions.in_use.push(in_use);
    }

    /// It ends, and with it what was in use there.
    pub fn end_apart(&mut self) {
        self.permissions.in_use.pop();
    }

    /// Runs a call, whatever it is: each failure is an outcome that the model can read.
    ///
    /// # Errors
    ///
    /// `Containment` alone: the tool cannot be contained, and has not run.
    pub fn run(&mut self, call: &Call, fetch: &mut dyn FnMut(&str) -> Fetched) -> Result<Outcome, Error> {
        let arguments = match self.check(call) {
            Ok(arguments) => arguments,
            Err(refusal) => return Ok(Outcome::error(refusal)),
        };
        let mut outcome = self.execute(call, arguments, fetch)?;
        // What a command printed is bounded already, and is more than an error.
        if outcome.is_error && call.name != "Bash" && !self.has_executable(&call.name) {
            outcome.text = quotes::bounded(outcome.text, call);
        }
        Ok(outcome)
    }

    /// Runs a call that may run, with these arguments.
    fn execute(
        &mut self,
        call: &Call,
        arguments: Arguments,
        fetch: &mut dyn FnMut(&str) -> Fetched,
    ) -> Result<Outcome, Error> {
        if let Some(executable) = self.executables.iter().find(|one| one.spec.name == call.name) {
            let timeout = self.ending_with_run(executable.timeout);
            let limit = timeout + GRACE;
            let request = program_request(&executable.file, timeout, &Value::Object(arguments));
            let (file, name) = (executable.file.clone(), executable.spec.name);
            let mut outcome = self.ask_worker(name, request, limit)?;
            // Where a program lies is no business of the model's.
            outcome.text = replace_folder(&outcome.text, &file, name);
            self.add_hint(name, &Arguments::new(), &mut outcome);
            self.add_ring(&mut outcome);
            return Ok(outcome);
        }
        Ok(match belongs_to_worker(&call.name) {
            true => self.run_in_worker(&call.name, arguments)?,
            false => {
                let may_read = |file: &Path| self.permissions.may_search(&call.name, file);
                let mut surroundings = Surroundings {
                    workspace: &self.workspace,
                    may_read: &may_read,
                    now: self.now.unwrap_or_else(jiff::Timestamp::now),
                    shell: Path::new(""),
                    background: &mut Background::default(),
                    rates_url: &self.rates_url,
                    fetch,
                    alarm: &self.alarm,
                };
                execute(&call.name, &arguments, &mut surroundings)
            }
        })
    }

    /// The arguments of a call that may run, as they were meant: names and values are those of the schema, so
    /// that whoever looks at them sees what the tool will do.
    ///
    /// # Errors
    ///
    /// Why it may not, as the model reads it.
    pub fn check(&mut self, call: &Call) -> Result<Arguments, String> {
        self.checked(call).map_err(|refusal| quotes::bounded(refusal, call))
    }

    fn checked(&mut self, call: &Call) -> Result<Arguments, String> {
        if let Some(refusal) = &call.refusal {
            return Err(refusal.clone());
        }
        if !self.offered.iter().any(|spec| spec.name == call.name) {
            let names: Vec<&str> = self.offered.iter().map(|spec| spec.name).collect();
            return Err(match names.is_empty() {
                true => format!("there is no tool \"{}\": this run has none; answer without", call.name),
                false => format!("there is no tool \"{}\": the tools are {}", call.name, names.join(", ")),
            });
        }
        let Ok(Value::Object(arguments)) = crate::provider::parse(&call.arguments) else {
            return Err("the arguments are not a JSON object".to_owned());
        };
        // A rule judges what the tool is given, not what was written.
        let mended = self.mended(call, arguments)?;
        self.permitted(call, mended)
    }

    /// The arguments of a call as they were meant.
    fn mended(&self, call: &Call, arguments: Arguments) -> Result<Arguments, String> {
        let Some(spec) = self.offered.iter().find(|spec| spec.name == call.name) else {
            return Ok(arguments);
        };
        match self.executables.iter().find(|executable| executable.spec.name == call.name) {
            None => Ok(slips::mended(spec, arguments)),
            Some(executable) => schema::fit(&executable.schema, &slips::unwrapped(spec, arguments))
                .map_err(|problem| arguments::complaint(spec, &problem)),
        }
    }

    /// The arguments of a call, if the rules let it run.
    fn permitted(&mut self, call: &Call, input: Arguments) -> Result<Arguments, String> {
        let access = access::of(&call.name, &input);
        if let Some(path) = access.path().filter(|path| leaves_private_folder(path)) {
            return Err(format!("{path} leads out of $TMPDIR: give the path that is meant itself"));
        }
        if self.setup.temp_parent.is_none()
            && access.path().is_some_and(|path| in_private_folder(path).is_some())
        {
            return Err("there is no $TMPDIR here: give a path in the workspace".to_owned());
        }
        if matches!(access, Access::Write(path) | Access::Edit(path) if self.workspace.elsewhere(path).is_some())
        {
            return Err("the user's own skills are not written here: write in the workspace".to_owned());
        }
        let Err(denial) = self.permissions.judge(&call.name, &access, &self.workspace) else {
            return Ok(input);
        };
        let denial = match self.permissions.may_ask() && denial.1 == Ground::NotAllowed {
            false => denial,
            true => match self.ask_client(call, input.clone(), &denial) {
                Ok(input) => return Ok(input),
                Err(denial) => denial,
            },
        };
        let (tool, call_id, text) = (call.name.clone(), call.id.clone(), denial.for_model());
        self.denied.push(Denied { tool, call_id, input, denial });
        Err(text)
    }

    /// Asks the client about a call that no rule allows. Gives the arguments to run it with.
    fn ask_client(&mut self, call: &Call, input: Arguments, denial: &Denial) -> Result<Arguments, Denial> {
        let Some(client) = self.alarm.client() else { return Err(denial.clone()) };
        let answer = asking::ask(client, &self.alarm, call, &input, denial);
        let refused = |why| Denial(why, Ground::Refused);
        let allowed = answer.map_err(refused)?;
        let home = self.setup.environment.for_tools_named("HOME").map(PathBuf::from);
        let places = Places { workspace: self.workspace.root.clone(), home };
        for update in &allowed.updates {
            let added = self.permissions.add(update, &places);
            added.map_err(|why| refused(format!("not run: the client's rule cannot be used: {why}")))?;
        }
        let Some(changed) = allowed.input else { return Ok(input) };
        let changed = self.mended(call, changed).map_err(refused)?;
        // Whatever the client makes of a call, what is forbidden stays so.
        match self.permissions.judge(&call.name, &access::of(&call.name, &changed), &self.workspace) {
            Err(denial) if denial.1 == Ground::Forbidden => Err(denial),
            _ => Ok(changed),
        }
    }

    /// Judges calls by this mode from now on. Where tools may write changes with it if it is one that only plans,
    /// or was: what is running ends then.
    pub fn set_mode(&mut self, mode: permissions::Mode) {
        self.permissions.mode = mode;
        let mut policy = self.setup.policy_beyond_plan.clone();
        if mode == permissions::Mode::Plan && policy.mode != policy::Mode::Off {
            (policy.mode, policy.writable) = (policy::Mode::ReadOnly, Vec::new());
        }
        if policy != self.setup.policy {
            self.setup.policy = policy;
            self.worker = None;
        }
    }

    /// The calls that were not allowed to run, in order.
    pub fn denied(&self) -> &[Denied] {
        &self.denied
    }

    /// Where tools work.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn run_in_worker(&mut self, name: &str, mut arguments: Arguments) -> Result<Outcome, Error> {
        let own = bash::timeout(&arguments);
        let timeout = self.ending_with_run(own);
        if name == "Bash" && timeout < own {
            arguments.insert("timeout".to_owned(), json!(u64::try_from(timeout.as_millis()).unwrap_or(1)));
        }
        let arguments = &arguments;
        let shell = self.shell.as_deref().unwrap_or(Path::new(""));
        let request = json!({
            "name": name, "arguments": arguments, "shell": shell.to_string_lossy(), "shells": self.shells,
        });
        let mut outcome = self.ask_worker(name, request, time_limit(name, arguments))?;
        if name == "Bash" && !outcome.is_error && bash::runs_in_background(arguments) {
            self.shells += 1;
        }
        if let (false, Access::Write(path) | Access::Edit(path)) =
            (outcome.is_error, access::of(name, arguments))
        {
            self.note_folders(path);
        }
        self.add_hint(name, arguments, &mut outcome);
        if name == "Bash" {
            self.add_ring(&mut outcome);
        }
        Ok(outcome)
    }

    /// Notes the folder of a file that was written, and those above it where tools may write, which may be new.
    fn note_folders(&mut self, path: &str) {
        let found = self.workspace.find(path).map(|path| write::follow_links(&path));
        let Ok(Ok(file)) = found else { return };
        let writable = self.setup.policy.writable.iter();
        let within: Vec<&Path> = writable.map(PathBuf::as_path).chain([&*self.workspace.root]).collect();
        self.unsynced.extend(folders_above(&file, &within));
    }

    /// Sees that the names of the files that Write and Edit have made are on the disk, as their contents are. It is
    /// done once, since each time can take as long as a hundred writes. A folder that is no more is passed over.
    ///
    /// # Errors
    ///
    /// The first folder that may not be on the disk, and why.
    pub fn sync_folders(&mut self) -> Result<(), String> {
        let mut failed = Ok(());
        for folder in std::mem::take(&mut self.unsynced) {
            let synced = write::sync_folder(&folder);
            failed =
                failed
                    .and(synced.map_err(|error| {
                        format!("\"{}\" may not be on the disk: {error}", folder.display())
                    }));
        }
        failed
    }

    /// The time that a command is given which may take so long: no more than the run has. So the worker ends it
    /// itself, and what it has printed is not lost.
    fn ending_with_run(&self, timeout: Duration) -> Duration {
        // Up to a whole millisecond, which is what it is told in: a command that ended before the run's time is
        // over would be followed by another.
        timeout.min(self.alarm.shortened(timeout) + MILLISECOND)
    }

    /// Adds to a failure that the time of the run is over, which may be why, unless the text says it already.
    fn add_ring(&self, outcome: &mut Outcome) {
        if let Some(ring) = self.alarm.rung().map(|ring| ring.to_string())
            && outcome.is_error
            && !outcome.text.contains(&ring)
        {
            outcome.text.push_str(&format!("\n[{ring}]"));
        }
    }

    /// Hands a request to the worker, which is started if there is none.
    ///
    /// # Errors
    ///
    /// Tools cannot be contained here, and nothing has run.
    fn ask_worker(&mut self, name: &str, mut request: Value, limit: Duration) -> Result<Outcome, Error> {
        let alarm = self.alarm.clone();
        let answered = match self.worker() {
            Ok(worker) => {
                request["private"] = json!(worker.temp_folder().map(Path::to_string_lossy));
                worker.call(&request.to_string(), limit, &alarm)
            }
            Err(Unstarted::Uncontained(missing)) => return Err(Error::uncontained(&missing)),
            Err(Unstarted::Failed(reason)) => Err(reason),
        };
        let answer = match answered {
            Ok(answer) => answer,
            Err(reason) => {
                self.worker = None;
                return Ok(Outcome::error(self.without_places(&format!("{name} did not finish: {reason}"))));
            }
        };
        let Ok(Value::Object(answer)) = crate::provider::parse(&answer) else {
            self.worker = None;
            return Ok(Outcome::error(format!(
                "{name} did not finish: what came back from its process is no answer"
            )));
        };
        let text = answer.get("text").and_then(Value::as_str).unwrap_or_default();
        let text = &bounded(text);
        let mut text = match shows_files(name) {
            true => text.clone().into_owned(),
            false => self.without_places(text),
        };
        let is_error = answer.get("is_error").and_then(Value::as_bool).unwrap_or(true);
        let shown = answer.get("images").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let images = images(shown, is_error, &mut text);
        Ok(Outcome { text, images, is_error })
    }

    /// Adds to a failure what containment may have to do with it.
    fn add_hint(&self, name: &str, arguments: &Arguments, outcome: &mut Outcome) {
        // Where there is no worker, it could not be started, and nothing was there to be contained.
        if !outcome.is_error || self.worker.is_none() {
            return;
        }
        let policy = &self.setup.policy;
        let hint = match arguments.get("file_path").and_then(Value::as_str) {
            Some(path) if belongs_to_worker(name) && outcome.text.contains("ermission denied") => {
                hints::for_file(policy, &self.workspace.resolve(path))
            }
            _ if name == "Bash" || !belongs_to_worker(name) => hints::for_command(policy, &outcome.text),
            _ => None,
        };
        if let Some(hint) = hint {
            outcome.text.push('\n');
            outcome.text.push_str(&hint);
        }
    }

    /// Ends what runs, and names the files that have changed from which git runs commands.
    pub fn end(&mut self) -> Vec<String> {
        self.worker = None;
        let before = self.git.take();
        before.map_or_else(Vec::new, |before| self.snapshot().changes_since(&before))
    }

    fn snapshot(&self) -> Snapshot {
        let others: Vec<PathBuf> = self
            .setup
            .policy
            .writable
            .iter()
            .filter(|folder| **folder != self.workspace.root)
            .cloned()
            .collect();
        Snapshot::take(&self.workspace.root, &others)
    }

    fn worker(&mut self) -> Result<&mut Worker, Unstarted> {
        if self.worker.is_none() {
            if self.git.is_none() {
                self.git = Some(self.snapshot());
            }
            let program = match self.program.take() {
                Some(program) => program,
                None => OwnProgram::own().map_err(Unstarted::Failed)?,
            };
            let worker = Worker::start(&self.setup, self.program.insert(program), self.held.as_ref())?;
            self.workspace.private = worker.temp_folder().map(Path::to_owned);
            self.worker = Some(worker);
        }
        Ok(self.worker.as_mut().expect("it was started above"))
    }

    /// The text with the workspace's absolute path made relative and the private folder shown as
    /// `$TMPDIR`: equal work gives equal bytes wherever it is done.
    fn without_places(&self, text: &str) -> String {
        let mut text = match &self.workspace.private {
            Some(private) => replace_folder(text, private, "$TMPDIR"),
            None => text.to_owned(),
        };
        for place in &self.workspace.places {
            text = replace_folder(&text, &place.path, &place.shown);
        }
        replace_folder(&text, &self.workspace.root, ".")
    }
}

/// The folder of a file, and those above it that lie within one of these.
fn folders_above(file: &Path, within: &[&Path]) -> Vec<PathBuf> {
    let folders = file.ancestors().skip(1).enumerate();
    let is_noted =
        |index: usize, folder: &Path| index == 0 || within.iter().any(|outer| folder.starts_with(outer));
    folders.filter(|(index, folder)| is_noted(*index, folder)).map(|(_, folder)| folder.to_owned()).collect()
}

/// A text of the worker's, without its middle where it is longer than any tool makes one.
fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= MOST_TEXT_BYTES {
        return Cow::Borrowed(text);
    }
    let mut kept = HeadTail::new(MOST_TEXT_BYTES / 2, MOST_TEXT_BYTES / 2);
    kept.push(text.as_bytes());
    Cow::Owned(kept.parts().text())
}

/// The images of an answer that can be sent; the text gets a line for each that cannot.
fn images(shown: &[Value], is_error: bool, text: &mut String) -> Vec<Image> {
    const MOST_IMAGES: usize = 20;
    let mut images = Vec::new();
    for value in shown.iter().take(MOST_IMAGES) {
        match Image::from_json(value) {
            // Anthropic takes only text in the result of a call that failed.
            Ok(_) if is_error => text.push_str("\n[image left out: the call failed]"),
            Ok(image) => images.push(image),
            Err(reason) => text.push_str(&format!("\n[image left out: {reason}]")),
        }
    }
    if let more @ 1.. = shown.len().saturating_sub(MOST_IMAGES) {
        text.push_str(&format!("\n[{more} images left out: a result shows at most {MOST_IMAGES}]"));
    }
    images
}

/// Whether what a tool of the worker's answers names paths relatively already and may show what is in a file,
/// which has to stay as it is: a model copies it.
fn shows_files(name: &str) -> bool {
    matches!(name, "Write" | "Edit")
}

/// How long the worker may take for a call: all it does ends by itself sooner than that, so that one
/// which is late has been taken over or hangs in the kernel.
fn time_limit(name: &str, arguments: &Arguments) -> Duration {
    match name {
        "Bash" => bash::timeout(arguments) + GRACE,
        "BashOutput" | "KillShell" => GRACE,
        _ => LIMIT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_own_time_and_a_grace() {
        let limit = |name, arguments: Value| time_limit(name, arguments.as_object().unwrap());
        assert_eq!(limit("Bash", json!({"command": "ls", "timeout": 5000})), Duration::from_secs(35));
        assert_eq!(limit("Bash", json!({"command": "ls"})), Duration::from_secs(150));
        assert_eq!(limit("Bash", json!({})), Duration::from_secs(30));
        let in_background = json!({"command": "ls", "timeout": 5000, "run_in_background": true});
        assert_eq!(limit("Bash", in_background), Duration::from_secs(30));
        assert_eq!(limit("BashOutput", json!({"bash_id": "bash_1"})), Duration::from_secs(30));
        assert_eq!(limit("Write", json!({"timeout": 5})), Duration::from_secs(600));
    }

    #[test]
    fn new_folders_below_any_place_where_tools_may_write_are_synced() {
        let within = ["/add", "/w"].map(Path::new);
        let above = |file| folders_above(Path::new(file), &within);
        assert_eq!(above("/w/a/b/c"), ["/w/a/b", "/w/a", "/w"].map(PathBuf::from));
        assert_eq!(above("/add/a/c"), ["/add/a", "/add"].map(PathBuf::from));
        assert_eq!(above("/elsewhere/a/c"), ["/elsewhere/a"].map(PathBuf::from));
        assert_eq!(above("/added/a/c"), ["/added/a"].map(PathBuf::from));
    }

    #[test]
    fn a_text_longer_than_any_tool_makes_one_loses_its_middle() {
        let half = "ä".repeat(MOST_TEXT_BYTES / 4);
        assert_eq!(bounded(&half.repeat(2)), half.repeat(2));
        let text = format!("{half}{}{half}", "x".repeat(1000));
        assert_eq!(bounded(&text), format!("{half}\n[… 1000 bytes left out …]\n{half}"));
    }

    #[test]
    fn images_in_an_answer_are_checked_and_those_left_out_are_said() {
        let good = json!({"media_type": "image/png", "data": "iVBORw=="});
        let shown =
            [good.clone(), json!({"media_type": "text/html", "data": "AAAA"}), json!(7), good.clone()];
        let image = Image::from_json(&good).unwrap();
        let mut text = "t".to_owned();
        assert_eq!(images(&shown, false, &mut text), [image.clone(), image]);
        assert_eq!(
            text,
            "t\n[image left out: it is no PNG, JPEG, GIF or WebP]\n[image left out: it lacks a media type or data]"
        );
        let mut text = "t".to_owned();
        assert_eq!(images(&shown[..1], true, &mut text), []);
        assert_eq!(text, "t\n[image left out: the call failed]");
        let mut text = String::new();
        assert_eq!(images(&vec![good; 23], false, &mut text).len(), 20);
        assert_eq!(text, "\n[3 images left out: a result shows at most 20]");
    }
}
