//! Where skills are found: the user's own folders, then the checkout's from the current folder up.
//!
//! The first of a name holds, and the user's own come first, so that no checkout can put something else in the
//! place of what the user calls by name. What really lies in the checkout is never the user's own, though the home
//! may lie there too. Nothing is read here but the heads of files.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Owner, Place, Skill, Skills, Source, front_matter, is_name, unreadable};
use crate::checkout::{self, Checkout, Skip, Sources, printable};

/// Where a folder's skills are, the first of a name first.
const SKILLS: [&str; 2] = [".claude/skills", ".agents/skills"];
/// Where its commands are: single files, which are skills for the user alone.
const COMMANDS: &str = ".claude/commands";
/// How much of a file may be head.
const MOST_HEAD_BYTES: usize = 64 * 1024;
/// The most entries of a folder that are looked at: a larger one is no folder of skills.
const MOST_ENTRIES: usize = 2000;
/// The most files that a run looks at, whatever comes of them, and the most folders of commands in others.
const MOST_FILES: usize = 1000;
const MOST_FOLDERS: usize = 100;
/// How deep commands may lie.
const MOST_DEPTH: usize = 4;
/// The most lines about skills that were left out: a checkout could fill the terminal with them.
const MOST_NOTICES: usize = 10;

/// Where to look.
pub struct Places<'a> {
    /// The user's home.
    pub home: Option<&'a Path>,
    /// The folder of the user's own for cotter, and how it is written.
    pub own: Option<Place>,
    /// The checkout that the run stands in.
    pub checkout: &'a Checkout,
}

/// Finds the skills of a run, those of these sources.
pub fn find(places: &Places, sources: Sources) -> Skills {
    let checkout = places.checkout;
    let mut finder = Finder {
        checkout,
        skills: Skills::default(),
        seen: HashSet::new(),
        files: 0,
        shadowed: Vec::new(),
        held: Vec::new(),
        folders: 0,
        stopped: None,
    };
    let mut own = Vec::new();
    if sources.user {
        own.extend(places.own.iter().cloned().chain(places.home.into_iter().flat_map(in_home)));
        for place in &own {
            if let Some((owner, within)) = finder.owner(place) {
                finder.add_folder(place, owner, within);
            }
        }
        if let Some(home) = places.home {
            let commands = Place { shown: format!("$HOME/{COMMANDS}"), path: home.join(COMMANDS) };
            if let Some((owner, within)) = finder.owner(&commands) {
                finder.add_commands(&commands, owner, within, "", 0);
            }
        }
    }
    if sources.project {
        let folders = || checkout.folders().iter().rev();
        let place = |folder: &Path, name: &str| {
            let path = folder.join(name);
            Place { shown: checkout.name(&path), path }
        };
        for (folder, name) in folders().flat_map(|folder| SKILLS.map(|name| (folder, name))) {
            finder.add_folder(&place(folder, name), Owner::Checkout, checkout.root());
        }
        for folder in folders() {
            finder.add_commands(&place(folder, COMMANDS), Owner::Checkout, checkout.root(), "", 0);
        }
    }
    finder.skills.project = match checkout.name(checkout.root()) {
        here if here.is_empty() => ".".to_owned(),
        up => up.trim_end_matches('/').to_owned(),
    };
    finder.finish(own)
}

/// The folders of skills in a home.
fn in_home(home: &Path) -> Vec<Place> {
    SKILLS.map(|name| Place { shown: format!("$HOME/{name}"), path: home.join(name) }).to_vec()
}

struct Finder<'a> {
    checkout: &'a Checkout,
    skills: Skills,
    /// The files that were read, by their real paths: what can be reached in two ways is one skill.
    seen: HashSet<PathBuf>,
    /// How many files were looked at.
    files: usize,
    /// Those left out for their names.
    shadowed: Vec<String>,
    /// The names that are taken, each with where from.
    held: Vec<(String, String)>,
    /// How many folders of commands lay in others.
    folders: usize,
    /// Of what there were too many, so that no more are looked at.
    stopped: Option<String>,
}

impl<'a> Finder<'a> {
    /// Whose a folder among the user's own is, and where its files have to lie. One that is not there, which is
    /// the usual case, costs one call.
    fn owner(&self, place: &Place) -> Option<(Owner, &'a Path)> {
        fs::symlink_metadata(&place.path).ok()?;
        Some(match fs::canonicalize(&place.path).is_ok_and(|real| self.checkout.holds(&real)) {
            true => (Owner::Checkout, self.checkout.root()),
            false => (Owner::User, Path::new("/")),
        })
    }

    /// Adds the skills in the folders of a folder.
    fn add_folder(&mut self, place: &Place, owner: Owner, within: &Path) {
        for name in self.entries(place, owner, within) {
            let shown = match place.shown.is_empty() {
                true => printable(Path::new(&name)),
                false => format!("{}/{}", place.shown, printable(Path::new(&name))),
            };
            let folder = place.path.join(&name);
            let Some(name) = name.to_str() else {
                self.leave_out(&shown, "its name is not UTF-8");
                continue;
            };
            let (file, within) = (folder.join("SKILL.md"), within.to_owned());
            let (name, folder) = (name.to_owned(), Some(shown.clone()));
            self.add(Source { name, owner, folder, file, within }, &shown);
        }
    }

    /// Adds the commands in a folder and in those below it, whose names stand before theirs.
    fn add_commands(&mut self, place: &Place, owner: Owner, within: &Path, before: &str, depth: usize) {
        self.folders += usize::from(depth > 0);
        if self.folders > MOST_FOLDERS {
            self.stopped = Some(format!("{MOST_FOLDERS} folders of commands"));
        }
        for entry in self.entries(place, owner, within) {
            let path = place.path.join(&entry);
            let shown = format!("{}/{}", place.shown, printable(Path::new(&entry)));
            let Some(name) = entry.to_str() else { continue };
            if let Some(name) = name.strip_suffix(".md") {
                let (name, within) = (format!("{before}{name}"), within.to_owned());
                self.add(Source { name, owner, folder: None, file: path, within }, &shown);
            } else if depth < MOST_DEPTH && fs::symlink_metadata(&path).is_ok_and(|data| data.is_dir()) {
                self.add_commands(
                    &Place { shown, path },
                    owner,
                    within,
                    &format!("{before}{name}:"),
                    depth + 1,
                );
            }
        }
    }

    /// The names in a folder of skills, in order; none if there is no such folder.
    fn entries(&mut self, place: &Place, owner: Owner, within: &Path) -> Vec<OsString> {
        // One call where there is nothing, which is the usual case.
        if self.stopped.is_some() || fs::symlink_metadata(&place.path).is_err() {
            return Vec::new();
        }
        let real = match fs::canonicalize(&place.path) {
            Ok(real) => real,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Vec::new();
            }
            Err(error) => {
                self.leave_out_all(place, &error.to_string());
                return Vec::new();
            }
        };
        if owner == Owner::Checkout && !real.starts_with(within) {
            self.leave_out_all(place, &Skip::Outside.to_string());
            return Vec::new();
        }
        let entries = fs::read_dir(&real).and_then(|entries| {
            entries.take(MOST_ENTRIES + 1).map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()
        });
        match entries {
            Ok(names) if names.len() > MOST_ENTRIES => {
                self.leave_out_all(place, &format!("there is more in it than {MOST_ENTRIES} skills"));
                Vec::new()
            }
            Ok(mut names) => {
                names.sort();
                names
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Vec::new(),
            Err(error) => {
                self.leave_out_all(place, &error.to_string());
                Vec::new()
            }
        }
    }

    /// Adds a skill, if its file is there and can be used.
    fn add(&mut self, mut source: Source, shown: &str) {
        if self.stopped.is_some() {
            return;
        }
        let read = checkout::read_text(&source.file, &[&source.within], MOST_HEAD_BYTES);
        if matches!(read, Err(Skip::Missing)) {
            return;
        }
        self.files += 1;
        if self.files > MOST_FILES {
            self.stopped = Some(format!("{MOST_FILES} files of skills"));
            return;
        }
        let text = match read {
            Ok(file) if !self.seen.insert(file.real.clone()) => return,
            Ok(file) => {
                if self.checkout.holds(&file.real) {
                    (source.owner, source.within) = (Owner::Checkout, self.checkout.root().to_owned());
                }
                file.text
            }
            Err(skip) => return self.leave_out(shown, &skip.to_string()),
        };
        if !is_name(&source.name) {
            return self
                .leave_out(shown, "a skill is called by a word of at most 64 letters, digits, - and _");
        }
        let read = front_matter::read(&text).map_err(|why| unreadable(&why));
        let is_command = source.folder.is_none();
        match read.and_then(|(keys, body)| Ok((Skill::new(source, &keys, body)?, keys))) {
            Err(why) => self.leave_out(shown, &why),
            Ok((skill, _)) if self.skills.named(&skill.name).is_some() => {
                let winner = self.held.iter().find(|(name, _)| *name == skill.name);
                let winner = winner.map_or("", |(_, shown)| shown);
                self.shadowed.push(format!("{shown} ({winner} is there)"));
            }
            Ok((mut skill, keys)) => {
                skill.is_for_model &= !is_command;
                self.tell_what_is_ignored(&skill, &keys, shown);
                self.held.push((skill.name.clone(), shown.to_owned()));
                self.skills.skills.push(skill);
            }
        }
    }

    /// Tells whoever wants to know what of a skill makes no difference.
    fn tell_what_is_ignored(&mut self, skill: &Skill, keys: &front_matter::Keys, shown: &str) {
        const IGNORED: [&str; 5] = ["agent", "effort", "model", "paths", "shell"];
        let mut details = Vec::new();
        for (key, value) in keys {
            if IGNORED.contains(&key.as_str()) {
                details.push(format!("the skill {shown}: its \"{key}\" changes nothing here"));
            }
            if key == "name" && *value != Ok(front_matter::Value::Text(skill.name.clone())) {
                details.push(format!("the skill {shown} is called by its folder's name"));
            }
        }
        self.skills.details.extend(details);
    }

    fn leave_out_all(&mut self, place: &Place, why: &str) {
        self.skills.notices.push(format!("the skills in {} are left out: {why}", place.shown));
    }

    fn leave_out(&mut self, shown: &str, why: &str) {
        self.skills.notices.push(format!("the skill {shown} is left out: {why}"));
    }

    fn finish(mut self, own: Vec<Place>) -> Skills {
        let notices = &mut self.skills.notices;
        if let more @ 1.. = notices.len().saturating_sub(MOST_NOTICES) {
            notices.truncate(MOST_NOTICES);
            notices.push(format!("{more} further lines about skills are left out"));
        }
        if let Some(most) = &self.stopped {
            notices.push(format!("there are more than {most}: the rest is left out"));
        }
        if !self.shadowed.is_empty() {
            let (some, rest) = self.shadowed.split_at(self.shadowed.len().min(MOST_NOTICES));
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            notices.push(format!(
                "of skills with the same name the first holds, which leaves out {}{more}",
                some.join(", ")
            ));
        }
        let skills = &self.skills.skills;
        let holds_any = |place: &Place| skills.iter().any(|skill| skill.file.starts_with(&place.path));
        self.skills.places = own.into_iter().filter(holds_any).collect();
        self.skills
    }
}
