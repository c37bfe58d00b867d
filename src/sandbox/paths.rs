//! Paths in rules: which files a pattern means, however a call spells them.
//!
//! A file is judged by the name given and by the place where symbolic links lead. Nothing here opens a file.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// Where patterns begin.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The workspace.
    pub workspace: PathBuf,
    /// The user's home, if there is one.
    pub home: Option<PathBuf>,
}

/// A pattern as in `.gitignore`, from one place on.
#[derive(Debug, Clone)]
pub struct PathPattern {
    base: PathBuf,
    matcher: Gitignore,
    /// What it names in so many words, without a pattern: a file, or a folder with all in it.
    literal: Option<PathBuf>,
    /// The same from the real place of the folders that an absolute pattern names in so many words.
    resolved: Option<Resolved>,
}

#[derive(Debug, Clone)]
struct Resolved {
    base: PathBuf,
    matcher: Gitignore,
}

/// What a path is taken to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl PathPattern {
    /// Reads a pattern: `//x` begins at the root, `~/x` at home, `/x` and `./x` at the workspace, and a bare
    /// one anywhere in it, as in `.gitignore`.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str, places: &Places) -> Result<PathPattern, String> {
        let text = text.trim();
        let (base, rest) = climbed(beginning(text, places)?);
        if rest.split('/').any(|name| name == "..") {
            return Err("`..` stands within its path".to_owned());
        }
        if rest.starts_with('!') {
            return Err("a rule cannot be negated".to_owned());
        }
        // The whole place: gitignore has no pattern for the folder that it lies in.
        let rest = if matches!(rest.as_str(), "/" | "") { "/**".to_owned() } else { rest };
        let whole = rest.trim_end_matches("/**").trim_end_matches('/');
        let literal = is_literal(whole).then(|| base.join(whole.trim_start_matches('/')));
        let resolved = match text.starts_with("//") || text.starts_with('~') {
            true => Some(Resolved::new(&base, &rest, &real(&places.workspace))?),
            false => None,
        };
        Ok(PathPattern { matcher: matcher(&rest)?, base, literal, resolved })
    }

    /// Whether it certainly means this file: by its name and by where it really is.
    pub fn allows(&self, path: &Path) -> bool {
        let real_path = real(path);
        self.matches(&self.base, &lexical(path), Kind::File)
            && (self.matches(&real(&self.base), &real_path, Kind::File)
                || self.resolved.as_ref().is_some_and(|it| it.matches(&real_path, Kind::File)))
    }

    /// Whether it might mean this file: by either.
    pub fn denies(&self, path: &Path) -> bool {
        let (lexical, real_path) = (lexical(path), real(path));
        let bases = [self.base.clone(), real(&self.base)];
        let might_be = |path: &Path, kind: Kind| {
            bases.iter().any(|base| self.matches(base, path, kind))
                || self.resolved.as_ref().is_some_and(|it| it.matches(path, kind))
        };
        let named = |path: &Path| [Kind::File, Kind::Folder].iter().any(|kind| might_be(path, *kind));
        // The rule may name the file by a link, and the call by where it leads.
        let target = self.literal.as_deref().map(real);
        named(&lexical) || named(&real_path) || target.is_some_and(|target| real_path.starts_with(target))
    }

    fn matches(&self, base: &Path, path: &Path, kind: Kind) -> bool {
        let Ok(below) = path.strip_prefix(base) else { return false };
        match below.as_os_str().is_empty() {
            true => self.literal.as_deref() == Some(self.base.as_path()),
            false => is_meant(&self.matcher, below, kind),
        }
    }
}

impl Resolved {
    /// Follows links in the folders that the pattern begins with, once and for all: one that a tool makes later
    /// moves no rule. Nor does one in the workspace, which may be a stranger's.
    fn new(base: &Path, rest: &str, workspace: &Path) -> Result<Resolved, String> {
        let mut names: VecDeque<&str> = rest.split('/').filter(|name| !name.is_empty()).collect();
        let mut folder = real(base);
        while names.len() > 1 && is_literal(names[0]) && !folder.starts_with(workspace) {
            folder = real(&folder.join(names[0]));
            names.pop_front();
        }
        let names: Vec<&str> = names.into();
        let end = if rest.ends_with('/') { "/" } else { "" };
        Ok(Resolved { base: folder, matcher: matcher(&format!("/{}{end}", names.join("/")))? })
    }

    fn matches(&self, path: &Path, kind: Kind) -> bool {
        let below = path.strip_prefix(&self.base).ok().filter(|below| !below.as_os_str().is_empty());
        below.is_some_and(|below| is_meant(&self.matcher, below, kind))
    }
}

/// Where a pattern begins, and what of it is said from there on.
fn beginning(text: &str, places: &Places) -> Result<(PathBuf, String), String> {
    let below = |rest: &str| format!("/{}", rest.trim_start_matches('/'));
    let is_whole = |rest: &&str| rest.is_empty() || rest.starts_with('/');
    let in_home = ["~", "$HOME", "${HOME}"].iter().find_map(|home| text.strip_prefix(home).filter(is_whole));
    if let Some(rest) = in_home {
        let home = places.home.clone().ok_or("it begins at home, and HOME is not set")?;
        return Ok((home, below(rest)));
    }
    Ok(match text {
        _ if text.starts_with("//") => (PathBuf::from("/"), text[1..].to_owned()),
        _ if text == "." || text.starts_with("./") => (places.workspace.clone(), below(&text[1..])),
        _ => (places.workspace.clone(), text.to_owned()),
    })
}

/// The same without `..` at the beginning.
fn climbed((mut base, mut rest): (PathBuf, String)) -> (PathBuf, String) {
    let climbs = rest.trim_start_matches('/').starts_with("..");
    while let Some(above) =
        rest.trim_start_matches('/').strip_prefix("..").filter(|it| it.is_empty() || it.starts_with('/'))
    {
        rest = above.to_owned();
        base.pop();
    }
    if climbs && !rest.starts_with('/') {
        rest.insert(0, '/');
    }
    (base, rest)
}

fn is_literal(text: &str) -> bool {
    !text.contains(['*', '?', '[', '\\'])
}

fn matcher(pattern: &str) -> Result<Gitignore, String> {
    let escaped = if pattern.starts_with('#') { format!("\\{pattern}") } else { pattern.to_owned() };
    let mut builder = GitignoreBuilder::new("");
    builder.add_line(None, &escaped).map_err(|error| format!("its path is no pattern: {error}"))?;
    builder.build().map_err(|error| format!("its path is no pattern: {error}"))
}

fn is_meant(matcher: &Gitignore, below: &Path, kind: Kind) -> bool {
    matcher.matched_path_or_any_parents(below, kind == Kind::Folder).is_ignore()
}

/// The absolute path without `.` and `..`, as the text says.
pub fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Where an absolute path leads, symbolic links followed, also those that lead nowhere yet: writing
/// through one creates its target.
pub fn real(path: &Path) -> PathBuf {
    const MOST_LINKS: usize = 64;
    let components =
        |path: &Path| path.components().map(|it| it.as_os_str().to_owned()).collect::<Vec<OsString>>();
    let mut left: VecDeque<OsString> = components(path).into();
    let (mut real, mut links) = (PathBuf::new(), 0);
    while let Some(name) = left.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        if name == "." {
            continue;
        }
        // The root begins anew.
        let next = real.join(&name);
        if next == Path::new("/") {
            real = next;
            continue;
        }
        match fs::read_link(&next) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                for name in components(&target).into_iter().rev() {
                    left.push_front(name);
                }
            }
            _ => real = next,
        }
    }
    real
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn pattern(text: &str) -> Result<PathPattern, String> {
        let places = Places { workspace: "/w/here".into(), home: Some("/home/me".into()) };
        PathPattern::parse(text, &places)
    }

    #[test]
    fn a_pattern_means_files_as_gitignore_does() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            (
                "src/**",
                &["/w/here/src/a", "/w/here/src/b/c"],
                &["/w/here/a/src/b", "/w/here/srcs/a", "/src/a"],
            ),
            ("src", &["/w/here/src/a", "/w/here/x/src/a", "/w/here/src"], &["/w/here/srcs"]),
            ("/src", &["/w/here/src/a"], &["/w/here/x/src/a", "/src/a"]),
            ("./src", &["/w/here/src/a"], &["/w/here/x/src/a"]),
            (".env", &["/w/here/.env", "/w/here/x/.env", "/w/here/.env/x"], &["/w/here/a.env", "/w/.env"]),
            ("*.rs", &["/w/here/a.rs", "/w/here/x/a.rs"], &["/w/here/a.rsx"]),
            ("a/*.rs", &["/w/here/a/b.rs"], &["/w/here/a/b/c.rs", "/w/here/x/a/b.rs"]),
            ("//etc/**", &["/etc/passwd", "/etc/a/b"], &["/w/here/etc/passwd", "/etcx"]),
            ("//etc/passwd", &["/etc/passwd"], &["/etc/passwd2"]),
            ("~/.ssh/**", &["/home/me/.ssh/id"], &["/home/me/ssh", "/w/here/.ssh/id"]),
            ("~", &["/home/me/a", "/home/me"], &["/home/you"]),
            // So the user's own skills are written where the model is told of them.
            ("$HOME/.ssh/**", &["/home/me/.ssh/id"], &["/home/me/ssh", "/w/here/$HOME/.ssh/id"]),
            ("${HOME}/a", &["/home/me/a"], &["/home/me/b"]),
            ("$HOMES/a", &["/w/here/$HOMES/a"], &["/home/me/a"]),
            (".", &["/w/here/a", "/w/here"], &["/w/there"]),
            ("**", &["/w/here/a", "/w/here/b/c"], &["/w/there"]),
            ("//", &["/anything"], &[]),
            ("../there/**", &["/w/there/a"], &["/w/here/there/a", "/w/a"]),
            ("#a", &["/w/here/#a"], &["/w/here/a"]),
            ("a b.txt", &["/w/here/a b.txt"], &["/w/here/a"]),
        ];
        for (text, inside, outside) in cases {
            let pattern = pattern(text).unwrap();
            for path in *inside {
                assert!(pattern.denies(Path::new(path)), "{text} does not deny {path}");
                assert!(pattern.allows(Path::new(path)), "{text} does not allow {path}");
            }
            for path in *outside {
                assert!(!pattern.denies(Path::new(path)), "{text} denies {path}");
                assert!(!pattern.allows(Path::new(path)), "{text} allows {path}");
            }
        }
        // No file says whether it is a folder: what might be one is denied and not allowed.
        let folder = pattern("build/").unwrap();
        assert!(folder.denies(Path::new("/w/here/build")) && !folder.allows(Path::new("/w/here/build")));
        assert!(folder.allows(Path::new("/w/here/build/a")));
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_refused() {
        assert_eq!(pattern("a/../b").unwrap_err(), "`..` stands within its path");
        assert_eq!(pattern("!a").unwrap_err(), "a rule cannot be negated");
        assert!(pattern("[z-a]").unwrap_err().starts_with("its path is no pattern: "));
        let homeless = Places { workspace: "/w".into(), home: None };
        let error = PathPattern::parse("~/a", &homeless).unwrap_err();
        assert_eq!(error, "it begins at home, and HOME is not set");
    }

    #[test]
    fn dots_are_taken_as_the_text_says() {
        for (path, plain) in [("/a/./b/../c", "/a/c"), ("/../a", "/a"), ("/a/..", "/"), ("/a//b/", "/a/b")] {
            assert_eq!(lexical(Path::new(path)), Path::new(plain));
        }
    }

    #[test]
    fn links_are_followed_wherever_they_lead() {
        let folder = fs::canonicalize(std::env::temp_dir())
            .unwrap()
            .join(format!("cotter-links-{}", std::process::id()));
        let at = |name: &str| folder.join(name);
        fs::create_dir_all(at("w/deep")).unwrap();
        fs::create_dir_all(at("secret")).unwrap();
        fs::write(at("secret/key"), "k").unwrap();
        symlink("../secret", at("w/link")).unwrap();
        symlink(at("secret/none"), at("w/dangling")).unwrap();
        symlink("loop", at("w/loop")).unwrap();
        symlink("deep/../../secret/key", at("w/key")).unwrap();
        let cases = [
            ("w/a", "w/a"),
            ("w/link/key", "secret/key"),
            ("w/link/../a", "a"),
            ("w/dangling", "secret/none"),
            ("w/key", "secret/key"),
            ("w/none/../b", "w/b"),
            ("w/deep/./c", "w/deep/c"),
        ];
        for (path, leads) in cases {
            assert_eq!(real(&at(path)), at(leads), "{path}");
        }
        real(&at("w/loop"));

        let places = Places { workspace: at("w"), home: None };
        let rule = |text: &str| PathPattern::parse(text, &places).unwrap();
        let secret = rule("../secret/**");
        for path in
            ["w/link/key", "w/key", "w/dangling", "w/deep/../link/key", "secret/key", "w/x/../../secret/a"]
        {
            assert!(secret.denies(&at(path)), "{path}");
        }
        // By the link's name, and by the place that the rule's own link leads to.
        assert!(rule("link/**").denies(&at("secret/key")) && rule("key").denies(&at("secret/key")));
        assert!(rule("**").allows(&at("w/deep/a")));
        for path in ["w/link/key", "w/key", "w/dangling", "w/link/../a", "w/../a"] {
            assert!(!rule("**").allows(&at(path)), "{path}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A rule that named its folder by a link allowed nothing, and the hint named the same rule again.
    #[test]
    fn an_absolute_pattern_means_the_folder_behind_its_link() {
        let folder = fs::canonicalize(std::env::temp_dir())
            .unwrap()
            .join(format!("cotter-absolute-{}", std::process::id()));
        let at = |name: &str| folder.join(name);
        for name in ["real/deep", "w", "else", "home"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for (target, link) in [("real", "lnk"), ("else", "w/out"), ("else", "real/out"), ("real", "home/lnk")]
        {
            symlink(at(target), at(link)).unwrap();
        }
        symlink(at("w"), at("to-w")).unwrap();
        let places = Places { workspace: at("w"), home: Some(at("home")) };
        let absolute = |rest: &str| format!("/{}/{rest}", folder.display());
        let allows = |rule: &str, path: &str| PathPattern::parse(rule, &places).unwrap().allows(&at(path));
        let denies = |rule: &str, path: &str| PathPattern::parse(rule, &places).unwrap().denies(&at(path));
        let cases = [
            ("lnk/**", "lnk/a", true),
            ("lnk/**", "lnk/new/a", true),
            ("lnk/a", "lnk/a", true),
            ("lnk/deep/*.rs", "lnk/deep/a.rs", true),
            ("lnk/deep/", "lnk/deep/a", true),
            ("lnk/deep/*.rs", "lnk/deep/a.txt", false),
            ("lnk/**", "lnk/out/a", false),
            ("lnk/**", "w/a", false),
            ("l*/a", "lnk/a", false),
            ("w/out/**", "w/out/a", false),
            ("to-w/out/**", "to-w/out/a", false),
            ("to-w/**", "to-w/a", true),
        ];
        for (rest, path, is_allowed) in cases {
            assert_eq!(allows(&absolute(rest), path), is_allowed, "{rest} {path}");
        }
        assert!(allows("~/lnk/**", "home/lnk/a") && !allows("~/**", "home/lnk/a"));
        assert!(
            !allows("/out/**", "w/out/a") && !allows("out/**", "w/out/a"),
            "the workspace is a stranger's"
        );
        assert!(denies(&absolute("lnk/*.key"), "real/a.key") && !denies(&absolute("lnk/*.key"), "real/a"));
        // What a link led to when the rule was read is what it means.
        let rule = PathPattern::parse(&absolute("lnk/**"), &places).unwrap();
        fs::remove_file(at("lnk")).unwrap();
        symlink(at("else"), at("lnk")).unwrap();
        assert!(!rule.allows(&at("lnk/a")));
        fs::remove_dir_all(&folder).unwrap();
    }
}
