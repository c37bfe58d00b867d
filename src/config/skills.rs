//! Which skills a run has, and what it means that one is in use.

use std::path::{Path, PathBuf};

use super::variables::Environment;
use super::{configuration_folder, sources};
use crate::args::Args;
use crate::checkout::Checkout;
use crate::sandbox::paths;
use crate::sandbox::permissions::{InUse, Permissions};
use crate::sandbox::rules::{self, Rule};
use crate::skills::{Owner, Place, Skill, Skills, folders};
use crate::tools::{self, skill};

/// The skills of the sources that are read. The model is not told of those that the rules forbid.
pub fn skills(
    args: &Args,
    environment: &Environment,
    checkout: Option<&Checkout>,
    permissions: &Permissions,
) -> Skills {
    let sources = sources(args);
    let Some(checkout) = checkout.filter(|_| !args.no_skills && (sources.user || sources.project)) else {
        return Skills::off();
    };
    let home = environment.absolute("HOME");
    let own = configuration_folder(environment).map(|folder| Place {
        path: folder.join("skills"),
        shown: match environment.absolute("XDG_CONFIG_HOME") {
            Some(_) => "$XDG_CONFIG_HOME/cotter/skills".to_owned(),
            None => "$HOME/.config/cotter/skills".to_owned(),
        },
    });
    let places = folders::Places { home: home.as_deref(), own, checkout };
    let mut skills = folders::find(&places, sources);
    skills.hide_from_model(|name| permissions.removes_skill(name));
    skills
}

/// The tool by which the model uses skills, if it is wanted and there is a skill for it.
pub fn skill_tool(
    args: &Args,
    permissions: &Permissions,
    skills: &mut Skills,
) -> Option<&'static tools::Spec> {
    let mut wanted = args.tools.as_deref().unwrap_or("default").split([',', ' ']);
    let is_wanted = wanted.any(|name| matches!(name, "default" | skill::NAME));
    if !is_wanted || permissions.removes(skill::NAME) || skills.for_model().is_empty() {
        return None;
    }
    Some(skill::spec(&skills.list()))
}

/// Reads the rules of skills.
pub struct SkillRules {
    places: paths::Places,
}

impl SkillRules {
    /// Rules whose paths are meant in this workspace.
    pub fn new(environment: &Environment, workspace: &Path) -> SkillRules {
        let home = environment.raw("HOME").map(PathBuf::from);
        SkillRules { places: paths::Places { workspace: workspace.to_owned(), home } }
    }

    /// What it means for calls that a skill is in use besides others. Gives the rules that cannot be used, each with
    /// what is wrong with it: they allow nothing.
    pub fn add(&self, skill: &Skill, in_use: &mut InUse) -> Vec<String> {
        let mut unusable = Vec::new();
        in_use.skills.push(skill.name.clone());
        let folder = skill.folder.as_deref().unwrap_or(".");
        let mut read = |list: &str| {
            let list = list.replace("${CLAUDE_SKILL_DIR}", folder);
            let rule = |text: &str| {
                Rule::parse(text, &self.places)
                    .map_err(|why| unusable.push(format!("\"{text}\": {why}")))
                    .ok()
            };
            rules::split(&list).into_iter().filter_map(rule).collect::<Vec<_>>()
        };
        let allowed = skill.allowed_tools.as_deref().map(&mut read);
        in_use.denied.extend(skill.disallowed_tools.as_deref().map(&mut read).unwrap_or_default());
        match (skill.owner, allowed) {
            (_, None) => {}
            (Owner::User, Some(rules)) => in_use.granted.extend(rules),
            (Owner::Checkout, Some(rules)) => {
                in_use.narrowed.get_or_insert_default().extend(rules);
                in_use.narrowing.push(skill.name.clone());
            }
        }
        unusable
    }
}
