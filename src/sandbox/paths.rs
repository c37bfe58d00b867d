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
        let (mut base, mut rest) = match text {
            _ if text.starts_with("//") => (PathBuf::from("/"), text[1..].to_owned()),
            _ if text == "~" || text.starts_with("~/") => {
                let home = places.home.clone().ok_or("it begins at home, and HOME is not set")?;
                (home, format!("/{}", text[1..].trim_start_matches('/')))
            }
            _ if text == "." || text.starts_with("./") => {
                (places.workspace.clone(), format!("/{}", text[1..].trim_start_matches('/')))
            }
            _ => (places.workspace.clone(), text.to_owned()),
        };
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
        if rest.split('/').any(|name| name == "..") {
            return Err("`..` stands within its path".to_owned());
        }
        if rest.starts_with('!') {
            return Err("a rule cannot be negated".to_owned());
        }
        // The whole place: gitignore has no pattern for the folder that it lies in.
        let rest = if matches!(rest.as_str(), "/" | "") { "/**".to_owned() } else { rest };
        let escaped = if rest.starts_with('#') { format!("\\{rest}") } else { rest.clone() };
        let mut builder = GitignoreBuilder::new("");
        builder.add_line(None, &escaped).map_err(|error| format!("its path is no pattern: {error}"))?;
        let matcher = builder.build().map_err(|error| format!("its path is no pattern: {error}"))?;
        let whole = rest.trim_end_matches("/**").trim_end_matches('/');
        let literal =
            (!whole.contains(['*', '?', '[', '\\'])).then(|| base.join(whole.trim_start_matches('/')));
        Ok(PathPattern { base, matcher, literal })
    }

    /// Whether it certainly means this file: by its name and by where it really is.
    pub fn allows(&self, path: &Path) -> bool {
        let matches_from = |base: &Path, path: &Path| self.matches(base, path, false);
        matches_from(&self.base, &lexical(path)) && matches_from(&real(&self.base), &real(path))
    }

    /// Whether it might mean this file: by either.
    pub fn denies(&self, path: &Path) -> bool {
        let (lexical, real_path) = (lexical(path), real(path));
        let bases = [self.base.clone(), real(&self.base)];
        let named = |path: &Path| {
            bases.iter().any(|base| self.matches(base, path, false) || self.matches(base, path, true))
        };
        // The rule may name the file by a link, and the call by where it leads.
        let target = self.literal.as_deref().map(real);
        named(&lexical) || named(&real_path) || target.is_some_and(|target| real_path.starts_with(target))
    }

    fn matches(&self, base: &Path, path: &Path, is_folder: bool) -> bool {
        let Ok(below) = path.strip_prefix(base) else { return false };
        match below.as_os_str().is_empty() {
            true => self.literal.as_deref() == Some(self.base.as_path()),
            false => self.matcher.matched_path_or_any_parents(below, is_folder).is_ignore(),
        }
    }
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
}
