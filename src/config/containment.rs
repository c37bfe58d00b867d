//! Which tools there are, what they may do, and where and with what environment they run.

use std::cell::LazyCell;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::accounts;
use super::endpoint::endpoint;
use super::variables::Environment;
use super::{skill_tool, workspace};
use crate::args::Args;
use crate::error::Error;
use crate::sandbox::environment;
use crate::sandbox::permissions::{self, Permissions};
use crate::sandbox::policy::{Mode, Network};
use crate::sandbox::rules::{self, Rule};
use crate::sandbox::writable::{self, Places};
use crate::sandbox::{self, Policy, Setup, paths};
use crate::skills::Skills;
use crate::tools;
use crate::tools::executables::Found;

/// How tools run that are only listed: no key is needed then, but one that is there is kept from them.
///
/// # Errors
///
/// `Usage` names the folder that cannot be used.
pub fn setup_without_api(args: &Args, environment: &Environment) -> Result<(Setup, Vec<String>), Error> {
    let key = endpoint(args, environment).ok().and_then(|endpoint| endpoint.key);
    setup(args, environment, key.as_ref().map(|(key, _)| key.expose()))
}

/// Where cotter keeps what outlives a run.
pub fn state_folder(environment: &Environment) -> Option<PathBuf> {
    let state = match environment.absolute("XDG_STATE_HOME") {
        Some(state) => state,
        None => environment.absolute("HOME").filter(|home| home.is_dir())?.join(".local/state"),
    };
    Some(state.join("cotter"))
}

/// How tools run, and what the user is to read about that. The key that the run uses is kept from them.
///
/// # Errors
///
/// `Usage` names the folder that cannot be used.
pub fn setup(
    args: &Args,
    environment: &Environment,
    own_key: Option<&str>,
) -> Result<(Setup, Vec<String>), Error> {
    setup_in(workspace()?, args, environment, own_key)
}

/// The same where the current folder is known.
pub fn setup_in(
    workspace: PathBuf,
    args: &Args,
    environment: &Environment,
    own_key: Option<&str>,
) -> Result<(Setup, Vec<String>), Error> {
    let (policy, lines) = policy(mode(args), args, environment, &workspace)?;
    let policy_beyond_plan = match permission_mode(args) {
        permissions::Mode::Plan => self::policy(mode_beyond_plan(args), args, environment, &workspace)?.0,
        _ => policy.clone(),
    };
    let rules = environment::Rules { own_key, mode: policy.mode, passed: &args.pass_env };
    let setup = Setup {
        environment: environment::Inherited::new(&environment.0, &rules),
        // A command may go elsewhere.
        temp_parent: Some(workspace.join(environment.raw("TMPDIR").unwrap_or(OsStr::new("/tmp")))),
        workspace,
        policy,
        policy_beyond_plan,
    };
    Ok((setup, lines))
}

/// Does without a private temporary folder where nobody named a place for it, there is none, and only Write and
/// Edit are there to have one: an image may hold nothing but cotter.
pub fn forgo_temp_folder(
    setup: &mut Setup,
    tools: &[&tools::Spec],
    programs: &[Found],
    environment: &Environment,
) {
    let runs_none = programs.is_empty() && !tools.iter().any(|spec| tools::needs_shell(spec.name));
    if runs_none && environment.raw("TMPDIR").is_none() {
        setup.temp_parent.take_if(|parent| sandbox::can_be_made_in(parent).is_err());
    }
}

fn policy(
    mode: Mode,
    args: &Args,
    environment: &Environment,
    workspace: &Path,
) -> Result<(Policy, Vec<String>), Error> {
    let mut added = Vec::new();
    for folder in &args.add_dirs {
        let unusable = |why: &str| Error::Usage(format!("--add-dir \"{}\": {why}", folder.display()));
        let real = fs::canonicalize(folder).map_err(|error| unusable(&error.to_string()))?;
        if !real.is_dir() {
            return Err(unusable("it is no folder"));
        }
        added.push(real);
    }
    let network = if args.allow_net { Network::Shared } else { Network::Own };
    let is_folder = |home: &PathBuf| home.is_dir();
    let named = environment.absolute("HOME").filter(is_folder);
    let home = named.or_else(|| accounts::home().filter(is_folder)).map(|home| paths::real(&home));
    // Without a variable no sessions are kept, but those of other runs lie there.
    let usual = || home.as_ref().map(|home| home.join(".local/state/cotter"));
    let state = state_folder(environment).or_else(usual).map(|state| paths::real(&state));
    let places = Places { workspace, home: home.as_deref(), state: state.as_deref() };
    Ok(writable::policy(mode, network, &added, places))
}

/// What is typed beats what is implied, but a run that only plans writes nowhere.
fn mode(args: &Args) -> Mode {
    match mode_beyond_plan(args) {
        mode if args.sandbox == Some(Mode::Off) => mode,
        _ if permission_mode(args) == permissions::Mode::Plan => Mode::ReadOnly,
        mode => mode,
    }
}

/// The same where a run does not only plan.
fn mode_beyond_plan(args: &Args) -> Mode {
    match (args.sandbox, args.skip_permissions) {
        (None, true) => Mode::Off,
        (mode, _) => mode.unwrap_or_default(),
    }
}

/// How calls are judged that no rule is about.
pub fn permission_mode(args: &Args) -> permissions::Mode {
    match args.skip_permissions {
        true => args.permission_mode.unwrap_or(permissions::Mode::Bypass),
        false => args.permission_mode.unwrap_or_default(),
    }
}

/// The tools that the model is told of: those of `--tools` but for those that the rules take away, and the one for
/// skills if there are any.
///
/// # Errors
///
/// `Usage` names the tool that is not there.
pub fn offered_tools(
    args: &Args,
    environment: &Environment,
    permissions: &Permissions,
    skills: &mut Skills,
) -> Result<Vec<&'static tools::Spec>, Error> {
    let mut offered = chosen_tools(args, environment)?;
    offered.retain(|spec| !permissions.removes(spec.name));
    offered.extend(skill_tool(args, permissions, skills));
    Ok(offered)
}

/// What the rules and the mode come to.
///
/// # Errors
///
/// `Usage` names the rule that cannot be used.
pub fn permissions(args: &Args, environment: &Environment, workspace: &Path) -> Result<Permissions, Error> {
    let places =
        paths::Places { workspace: workspace.to_owned(), home: environment.raw("HOME").map(PathBuf::from) };
    let read = |flag: &str, lists: &[String]| -> Result<Vec<Rule>, Error> {
        let texts = lists.iter().flat_map(|list| rules::split(list));
        let refuse = |text: &str, why: &str| {
            Error::Usage(format!(
                "--{flag}: the rule \"{text}\" cannot be used: {why}: a rule is Tool or Tool(specifier), such as \"Bash(git log:*)\" or \"Edit(src/**)\""
            ))
        };
        texts.map(|text| Rule::parse(text, &places).map_err(|why| refuse(text, &why))).collect()
    };
    let allowed = args.allowed_tools.as_ref().map(|lists| read("allowedTools", lists)).transpose()?;
    let denied = read("disallowedTools", &args.disallowed_tools)?;
    Ok(Permissions {
        mode: permission_mode(args),
        sandbox_is_off: mode(args) == Mode::Off,
        asks: args.asks_client,
        allowed,
        denied,
        roots: std::iter::once(workspace.to_owned())
            .chain(args.add_dirs.iter().map(|folder| workspace.join(folder)))
            .collect(),
        in_use: Vec::new(),
    })
}

/// What to say of rules whose tools are not there: scripts written for another agent may name some.
pub fn rules_without_effect(args: &Args, is_executable: impl Fn(&str) -> bool) -> Vec<String> {
    let allowed = args.allowed_tools.as_deref().unwrap_or_default();
    let flags = [("allowedTools", allowed), ("disallowedTools", &args.disallowed_tools[..])];
    let unspecific = |(flag, lists): (&str, &[String])| {
        let effect = if flag == "allowedTools" { "allows none" } else { "forbids all" };
        let rules = lists.iter().flat_map(|list| rules::split(list));
        let warning = |rule: &str| {
            let (name, specifier) = rule.split_once('(')?;
            (is_executable(name) && specifier != "*)").then(|| {
                format!("--{flag}: nothing of a program's calls can be specified, so the rule \"{rule}\" {effect} of them")
            })
        };
        rules.filter_map(warning).collect::<Vec<_>>()
    };
    let warning = |(flag, lists): (&str, &[String])| {
        let rules = lists.iter().flat_map(|list| rules::split(list));
        let mut names: Vec<&str> = rules.map(|rule| rule.split('(').next().unwrap_or_default()).collect();
        names.retain(|name| !tools::access::exists(name) && !is_executable(name));
        names.sort_unstable();
        names.dedup();
        (!names.is_empty()).then(|| {
            format!("--{flag}: there is no tool {}, so rules about it have no effect", names.join(", "))
        })
    };
    flags.into_iter().filter_map(warning).chain(flags.into_iter().flat_map(unspecific)).collect()
}

/// The tools of `--tools`, in the table's order. Bash needs a shell to be there, and brings the tools for what
/// it starts in the background.
fn chosen_tools(args: &Args, environment: &Environment) -> Result<Vec<&'static tools::Spec>, Error> {
    let has_shell =
        LazyCell::new(|| tools::command::shell(environment.raw("PATH").unwrap_or_default()).is_some());
    let list = args.tools.as_deref().unwrap_or("default");
    let mut names: Vec<&str> = list.split([',', ' ']).filter(|name| !name.is_empty()).collect();
    if names == ["default"] {
        let all = tools::all().iter().map(|spec| spec.name);
        names = all.filter(|name| !tools::needs_shell(name) || *has_shell).collect();
    }
    for name in &names {
        if !tools::access::exists(name) {
            // It may be the name of a program, which is known when that was asked.
            if !args.executables.is_empty() {
                continue;
            }
            let known: Vec<&str> = tools::all().iter().map(|spec| spec.name).collect();
            return Err(Error::Usage(format!(
                "--tools: there is no tool \"{name}\": choose from {}",
                known.join(", ")
            )));
        }
        if tools::needs_shell(name) && !*has_shell {
            return Err(Error::Usage(format!(
                "--tools: {name} needs a bash or sh in PATH, and there is none"
            )));
        }
    }
    let is_brought = |name| names.contains(&"Bash") && tools::needs_shell(name);
    let is_offered = |spec: &&tools::Spec| names.contains(&spec.name) || is_brought(spec.name);
    Ok(tools::all().iter().filter(is_offered).collect())
}

/// Programs that are tools, and the names in `--tools` that must be theirs.
pub struct Executables {
    /// The programs, in the order given. They are offered whatever `--tools` says.
    pub found: Vec<Found>,
    /// Names in `--tools` that no built-in tool has.
    pub named: Vec<String>,
}

/// The programs of `--tool` and `--tool-dir`.
///
/// # Errors
///
/// `Usage` names what cannot be a tool.
pub fn executables(args: &Args) -> Result<Executables, Error> {
    let found = tools::executables::find(&args.executables).map_err(Error::Usage)?;
    let names = args.tools.as_deref().unwrap_or("default").split([',', ' ']);
    let is_other = |name: &&str| !name.is_empty() && *name != "default" && !tools::access::exists(name);
    Ok(Executables { found, named: names.filter(is_other).map(str::to_owned).collect() })
}
