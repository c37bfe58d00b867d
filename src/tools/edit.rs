//! `Edit`: one text of a file for another, and not a byte beside it.
//!
//! What is looked for must be there exactly. The one licence is that a line ends with LF for the
//! model and may end with CRLF in the file; the new text then ends its lines as the file does.

use std::fs::Metadata;
use std::io::Read;
use std::path::Path;

use crate::tools::replacement::{Change, Found, View, occurrences};
use crate::tools::{Arguments, Outcome, Spec, Workspace, arguments, nearest, opening, slips, write};

/// What the model is told of `Edit`.
pub const SPEC: Spec = Spec {
    name: "Edit",
    description: "Replaces text in a file and nothing else. old_string must be the exact text, indentation \
        included, and occur once: add surrounding lines to make it unique, or set replace_all. \
        Line endings follow the file. Read the file first.",
    arguments: &["file_path", "old_string", "new_string", "replace_all"],
    schema: r#"{"type":"object","properties":{"file_path":{"type":"string","description":"absolute or relative to the workspace"},"old_string":{"type":"string","description":"text to replace"},"new_string":{"type":"string","description":"text to put in its place"},"replace_all":{"type":"boolean","description":"replace every occurrence; default false"}},"required":["file_path","old_string","new_string"]}"#,
};

/// A larger file is not held in memory.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Runs `Edit`.
pub fn run(arguments: &Arguments, workspace: &Workspace) -> Outcome {
    match edit(arguments, workspace) {
        Ok(text) => Outcome::ok(text),
        Err(problem) => Outcome::error(problem),
    }
}

/// The file that a call of this tool names.
pub fn file_path(arguments: &Arguments) -> Result<&str, String> {
    arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?.text("file_path")
}

fn edit(arguments: &Arguments, workspace: &Workspace) -> Result<String, String> {
    let given = arguments::read(&SPEC, arguments, slips::synonyms(SPEC.name))?;
    let (old, new) = (given.text("old_string")?, given.text("new_string")?);
    let replaces_all = given.flag("replace_all")?;
    if old.is_empty() {
        return Err("old_string is empty; give the text to replace, or use Write for a whole file".to_owned());
    }
    if old == new {
        return Err("old_string and new_string are the same, so nothing would change".to_owned());
    }
    let path = workspace.find(given.text("file_path")?)?;
    let name = workspace.display(&path);
    let loaded = load(&path, &name, workspace)?;
    change(&path, &name, &loaded, Asked { old, new, replaces_all })
}

/// What is to become of a file.
struct Asked<'a> {
    old: &'a str,
    new: &'a str,
    replaces_all: bool,
}

fn change(path: &Path, name: &str, loaded: &Loaded, asked: Asked) -> Result<String, String> {
    let Asked { old, new, replaces_all } = asked;
    let view = View::of(&loaded.content, old);
    let found = Found::of(&view, old);
    if found.count == 0 {
        return Err(not_found(name, &view.text, old));
    }
    if !replaces_all {
        refuse_ambiguous(name, &view, old, &found)?;
    }
    let change = Change::of(old, new);
    let size = change.size(&view);
    if size > MAX_FILE_BYTES {
        return Err(format!(
            "{name} would have {size} bytes then, and Edit makes no file larger than {MAX_FILE_BYTES} bytes; \
             replace fewer places, or give a shorter new_string"
        ));
    }
    let edited = change.apply(&view, size);
    if edited == loaded.content {
        return Err(format!("{name} has this text with these line endings already, so nothing would change"));
    }
    write::replace_known_file(path, &edited, &loaded.metadata)
        .map_err(|error| format!("cannot write {name}: {error}"))?;
    let count = match found.count {
        1 => "1 replacement".to_owned(),
        count => format!("{count} replacements"),
    };
    Ok(format!("edited {name} ({count} at {})", found.listed()))
}

/// A file as it was found.
struct Loaded {
    content: Vec<u8>,
    /// What was told of it before it was read.
    metadata: Metadata,
}

fn load(path: &Path, name: &str, workspace: &Workspace) -> Result<Loaded, String> {
    let (file, metadata) = opening::open(path, workspace).map_err(|problem| match path.try_exists() {
        // Write would make a second file beside one whose name cannot be spelt.
        Ok(false) if !name.contains('\u{fffd}') => {
            format!("{problem}; Edit changes a file that is there, Write creates one")
        }
        _ => problem,
    })?;
    let too_large = || {
        format!(
            "{name} is larger than {MAX_FILE_BYTES} bytes, which is too large for Edit; if you can run a \
             command, use sed"
        )
    };
    if metadata.len() > MAX_FILE_BYTES {
        return Err(too_large());
    }
    // With room for all of it and a byte to see the end by, it is not copied about as it grows.
    let mut content = Vec::with_capacity(metadata.len() as usize + 1);
    // A file may grow while it is read.
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large());
    }
    // A letter put between the halves of UTF-16 units would make nonsense of all that follows.
    if content.starts_with(&[0xFF, 0xFE]) || content.starts_with(&[0xFE, 0xFF]) {
        return Err(format!(
            "{name} is UTF-16, which Edit cannot change; if you can run a command, convert it with iconv"
        ));
    }
    Ok(Loaded { content, metadata })
}

fn refuse_ambiguous(name: &str, view: &View, old: &str, found: &Found) -> Result<(), String> {
    let way_out = "add surrounding lines to make it unique, or set replace_all";
    let Found { count, first, .. } = *found;
    if count > 1 {
        return Err(format!("old_string occurs {count} times in {name}, at {}: {way_out}", found.listed()));
    }
    // `aa` is found once in `aaa`, and yet it is not clear which one is meant.
    let step = old.chars().next().map_or(1, char::len_utf8);
    match occurrences(&view.text[first + step..], old).next() {
        None => Ok(()),
        Some(_) => Err(format!(
            "old_string occurs more than once in {name}, overlapping itself, at {}: {way_out}",
            found.listed()
        )),
    }
}

/// Words why `old` was not found. `content` is as it was searched: what differs from the file there is
/// not why.
fn not_found(name: &str, content: &[u8], old: &str) -> String {
    if content.is_empty() {
        return format!("{name} is empty, so there is nothing to replace; use Write to fill it");
    }
    let start = format!("old_string does not occur in {name}");
    if old.contains('\u{fffd}') {
        return format!(
            "{start}; U+FFFD may stand for bytes that are not UTF-8 there, so choose a text without it"
        );
    }
    match nearest::place(content, old) {
        Some(place) => format!("{start}; {place}"),
        None if content.len() > nearest::SEARCHED_BYTES => format!(
            "{start}, nor anything like it in the first {} bytes; Read the file and copy the text exactly",
            nearest::SEARCHED_BYTES
        ),
        None => format!("{start}, nor anything like it; Read the file and copy the text exactly"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::write::tests::{Folder, make_fifo, skipped_as_root};
    use serde_json::{Value, json};
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn call(folder: &Folder, arguments: Value) -> Outcome {
        run(arguments.as_object().unwrap(), &folder.workspace())
    }

    fn swap(folder: &Folder, old: &str, new: &str) -> Outcome {
        call(folder, json!({ "file_path": "a", "old_string": old, "new_string": new }))
    }

    fn swap_all(folder: &Folder, old: &str, new: &str) -> Outcome {
        call(folder, json!({ "file_path": "a", "old_string": old, "new_string": new, "replace_all": true }))
    }

    #[test]
    fn a_unique_text_is_replaced_and_nothing_else() {
        let folder = Folder::new("edit-one");
        folder.put("a", "one\ntwo\nthree");
        assert_eq!(swap(&folder, "two", "2"), Outcome::ok("edited a (1 replacement at line 2)"));
        assert_eq!(folder.get("a"), b"one\n2\nthree");
        assert_eq!(swap(&folder, "2\n", ""), Outcome::ok("edited a (1 replacement at line 2)"));
        assert_eq!(folder.get("a"), b"one\nthree");
        assert_eq!(swap(&folder, "one\nthree", "x\ny\n"), Outcome::ok("edited a (1 replacement at line 1)"));
        assert_eq!(folder.get("a"), b"x\ny\n");
        assert_eq!(folder.names(), ["a"]);
    }

    #[test]
    fn every_occurrence_is_replaced_when_asked() {
        let folder = Folder::new("edit-all");
        folder.put("a", "x = x + 1\ny\nx\n");
        assert_eq!(swap_all(&folder, "x", "count"), Outcome::ok("edited a (3 replacements at lines 1, 3)"));
        assert_eq!(folder.get("a"), b"count = count + 1\ny\ncount\n");
        folder.put("a", "aaaaa");
        assert_eq!(swap_all(&folder, "aa", "b"), Outcome::ok("edited a (2 replacements at line 1)"));
        assert_eq!(folder.get("a"), b"bba");
        folder.put("a", "z\n".repeat(12));
        let text = "edited a (12 replacements at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more)";
        assert_eq!(swap_all(&folder, "z", "zz"), Outcome::ok(text));
    }

    #[test]
    fn an_ambiguous_text_is_refused_with_its_lines() {
        let folder = Folder::new("edit-ambiguous");
        folder.put("a", "x\ny\nx\n");
        let text = "old_string occurs 2 times in a, at lines 1, 3: \
                    add surrounding lines to make it unique, or set replace_all";
        assert_eq!(swap(&folder, "x", "z"), Outcome::error(text));
        folder.put("a", "y\nééé\n");
        let text = "old_string occurs more than once in a, overlapping itself, at line 2: \
                    add surrounding lines to make it unique, or set replace_all";
        assert_eq!(swap(&folder, "éé", "z"), Outcome::error(text));
        assert_eq!(folder.get("a"), "y\nééé\n".as_bytes());
    }

    #[test]
    fn what_cannot_be_an_edit_is_refused_with_the_way_out() {
        let folder = Folder::new("edit-refused");
        folder.put("a", "text");
        fs::create_dir(folder.path.join("d")).unwrap();
        make_fifo(&folder.path.join("fifo"));
        let text = "old_string is empty; give the text to replace, or use Write for a whole file";
        assert_eq!(swap(&folder, "", "z"), Outcome::error(text));
        let text = "old_string and new_string are the same, so nothing would change";
        assert_eq!(swap(&folder, "text", "text"), Outcome::error(text));
        let cases = [
            (
                "b",
                "there is no file b; the nearest names in . are: a, d/; \
                 Edit changes a file that is there, Write creates one",
            ),
            ("d", "d is a directory, not a file; it is empty"),
            ("fifo", "fifo is a FIFO, not a file"),
            (
                "/proc/self/comm",
                "/proc/self/comm is on procfs, which is not read: it shows other processes' secrets",
            ),
        ];
        for (path, text) in cases {
            let outcome = call(&folder, json!({ "file_path": path, "old_string": "x", "new_string": "y" }));
            assert_eq!(outcome, Outcome::error(text));
        }
        let outcome = call(&folder, json!({ "file_path": "a", "old_string": "x" }));
        let text = format!("Edit needs \"new_string\"; the schema of its arguments is {}", SPEC.schema);
        assert_eq!(outcome, Outcome::error(text));
    }

    #[test]
    fn a_text_that_does_not_occur_is_answered_with_the_nearest_place() {
        let folder = Folder::new("edit-missing");
        folder.put("a", "fn main() {\n\tprint(1);\n}\n");
        let text = "old_string does not occur in a; the nearest place is line 2:\n\tprint(1);\n\
                    it differs in indentation (the file has 1 tab, old_string 4 spaces)";
        assert_eq!(swap(&folder, "    print(1);", "x"), Outcome::error(text));
        let text =
            "old_string does not occur in a, nor anything like it; Read the file and copy the text exactly";
        assert_eq!(swap(&folder, "0123456789", "x"), Outcome::error(text));
        let text = "old_string does not occur in a; \
                    U+FFFD may stand for bytes that are not UTF-8 there, so choose a text without it";
        assert_eq!(swap(&folder, "print\u{fffd}", "x"), Outcome::error(text));
        folder.put("a", "");
        let text = "a is empty, so there is nothing to replace; use Write to fill it";
        assert_eq!(swap(&folder, "x", "y"), Outcome::error(text));
        folder.put("a", "x".repeat((1 << 20) + 1));
        let text = "old_string does not occur in a, nor anything like it in the first 1048576 bytes; \
                    Read the file and copy the text exactly";
        assert_eq!(swap(&folder, "0123456789", "x"), Outcome::error(text));
        folder.put("a", [0xFF, 0xFE, b'a', 0]);
        let text = "a is UTF-16, which Edit cannot change; if you can run a command, convert it with iconv";
        assert_eq!(swap(&folder, "a", "x"), Outcome::error(text));
    }

    /// Line endings were named as a difference too, although an LF finds a CRLF.
    #[test]
    fn in_a_crlf_file_only_what_kept_the_text_from_being_found_is_named() {
        let folder = Folder::new("edit-missing-crlf");
        folder.put("a", "if x:\r\n\ty()\r\n\tz()\r\n");
        let text = "old_string does not occur in a; the nearest place is line 2:\n\ty()\n\tz()\n\
                    it differs in indentation (the file has 1 tab, old_string 4 spaces)";
        assert_eq!(swap(&folder, "    y()\n    z()", "x"), Outcome::error(text));
        let text = "old_string does not occur in a; the nearest place is line 3:\n\tz()\n\
                    it differs in indentation (the file has 1 tab, old_string 2 tabs)";
        assert_eq!(swap(&folder, "\t\tz()\r\n", "x"), Outcome::error(text));
    }

    /// (content, old_string, new_string, content afterwards)
    const LINE_ENDINGS: &[(&str, &str, &str, &str)] = &[
        // A CRLF file matches LF and keeps CRLF.
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b", "x\ny", "a\r\nx\r\ny\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "\nb\n", "\n", "a\r\nc\r\n"),
        ("a\r\nb\r\nc\r\n", "\nb", "\nd\nb", "a\r\nd\r\nb\r\nc\r\n"),
        ("a\r\nb", "b", "b\n", "a\r\nb\r\n"),
        ("a\r\nb\r\n", "b\n", "b", "a\r\nb"),
        ("a\r\nb", "a\n", "", "b"),
        // Carriage returns that the model wrote are matched as they are.
        ("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\ny", "x\r\ny\r\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n", "a\nb\n", "a\nb\n"),
        ("a\nb\n", "a\nb\n", "a\r\nb\r\n", "a\r\nb\r\n"),
        ("a\nb\n", "b", "x\r\ny", "a\nx\r\ny\n"),
        // Mixed endings stay, and a new line ends as its neighbour does.
        ("a\nb\r\nc\n", "a\nb\nc", "a\nB\nc", "a\nB\r\nc\n"),
        ("a\nb\r\nc\n", "b", "x\ny", "a\nx\r\ny\r\nc\n"),
        ("a\nb\r\nc\n", "c", "x\ny", "a\nb\r\nx\ny\n"),
        ("a\nb\r\nc", "c", "x\ny", "a\nb\r\nx\r\ny"),
        // Carriage returns elsewhere are letters like any other.
        ("a\rb\r\r\nc\r\n", "c", "x", "a\rb\r\r\nx\r\n"),
        ("a\rb", "a\rb", "a\nb", "a\nb"),
        // A byte order mark and a missing final newline stay.
        ("\u{feff}a\nb", "a", "x", "\u{feff}x\nb"),
        ("\u{feff}a\r\nb", "a\nb", "x\ny", "\u{feff}x\r\ny"),
    ];

    #[test]
    fn line_endings_follow_the_file() {
        let folder = Folder::new("edit-endings");
        for (content, old, new, after) in LINE_ENDINGS {
            folder.put("a", content);
            let outcome = swap(&folder, old, new);
            assert!(!outcome.is_error, "{content:?} {old:?}: {}", outcome.text);
            assert_eq!(String::from_utf8(folder.get("a")).unwrap(), *after, "{content:?} {old:?} {new:?}");
        }
    }

    #[test]
    fn carriage_returns_are_added_or_dropped_when_that_is_the_edit() {
        let folder = Folder::new("edit-convert");
        folder.put("a", "a\r\nb\r\n");
        assert_eq!(swap_all(&folder, "\r\n", "\n"), Outcome::ok("edited a (2 replacements at lines 1, 2)"));
        assert_eq!(folder.get("a"), b"a\nb\n");
        assert_eq!(swap_all(&folder, "\n", "\r\n"), Outcome::ok("edited a (2 replacements at lines 1, 2)"));
        assert_eq!(folder.get("a"), b"a\r\nb\r\n");
        let text = "a has this text with these line endings already, so nothing would change";
        assert_eq!(swap_all(&folder, "\n", "\r\n"), Outcome::error(text));
    }

    #[test]
    fn bytes_that_are_not_utf_8_stay() {
        let folder = Folder::new("edit-bytes");
        folder.put("a", b"\xff\xe9one\xc3\ntwo\0\x80\r\nthree\xf0\x9f");
        assert_eq!(swap(&folder, "one", "1"), Outcome::ok("edited a (1 replacement at line 1)"));
        assert_eq!(swap(&folder, "three", "3\n4"), Outcome::ok("edited a (1 replacement at line 3)"));
        assert_eq!(swap(&folder, "two", "dos"), Outcome::ok("edited a (1 replacement at line 2)"));
        assert_eq!(folder.get("a"), b"\xff\xe91\xc3\ndos\0\x80\r\n3\r\n4\xf0\x9f");
    }

    #[test]
    fn mode_link_and_names_of_the_file_stay() {
        let folder = Folder::new("edit-file");
        let path = folder.put("real", "old");
        folder.mode("real", 0o751);
        symlink("real", folder.path.join("a")).unwrap();
        assert_eq!(swap(&folder, "old", "new"), Outcome::ok("edited a (1 replacement at line 1)"));
        assert_eq!(folder.get("real"), b"new");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
        assert!(fs::symlink_metadata(folder.path.join("a")).unwrap().is_symlink());
        fs::hard_link(&path, folder.path.join("other")).unwrap();
        assert_eq!(swap(&folder, "new", "x"), Outcome::ok("edited a (1 replacement at line 1)"));
        assert_eq!(folder.get("other"), b"x");
        assert_eq!(folder.names(), ["a", "other", "real"]);
    }

    #[test]
    fn a_file_that_may_not_be_written_is_left_alone() {
        if skipped_as_root("edit_a_file_that_may_not_be_written_is_left_alone") {
            return;
        }
        let folder = Folder::new("edit-protected");
        folder.put("a", "old");
        folder.mode("a", 0o444);
        let text = "cannot write a: Permission denied (os error 13)";
        assert_eq!(swap(&folder, "old", "new"), Outcome::error(text));
        assert_eq!(folder.get("a"), b"old");
    }

    #[test]
    fn a_file_too_large_is_refused_without_being_held() {
        let folder = Folder::new("edit-large");
        let path = folder.put("a", "x");
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(10 << 30).unwrap();
        let text = "a is larger than 67108864 bytes, which is too large for Edit; \
                    if you can run a command, use sed";
        assert_eq!(swap(&folder, "x", "y"), Outcome::error(text));
    }

    /// What another wrote meanwhile was lost.
    #[test]
    fn a_file_that_changed_since_it_was_read_is_left_alone() {
        let text = "cannot write a: it was changed meanwhile, so nothing was written: read it again";
        let changes: [fn(&Folder); 4] = [
            |folder| drop(folder.put("a", "old and more")),
            // The same size at another time.
            |folder| {
                let file = fs::File::options().write(true).open(folder.path.join("a")).unwrap();
                file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
            },
            |folder| {
                let time = fs::metadata(folder.path.join("a")).unwrap().modified().unwrap();
                let new = folder.put("new", "odd");
                fs::File::options().write(true).open(&new).unwrap().set_modified(time).unwrap();
                fs::rename(new, folder.path.join("a")).unwrap();
            },
            |folder| fs::remove_file(folder.path.join("a")).unwrap(),
        ];
        for (number, other) in changes.into_iter().enumerate() {
            // A file of two names is rewritten in place.
            for names in 1..=2 {
                let folder = Folder::new("edit-changed");
                let path = folder.put("a", "old");
                if names == 2 {
                    fs::hard_link(&path, folder.path.join("second")).unwrap();
                }
                let loaded = load(&path, "a", &folder.workspace()).unwrap();
                other(&folder);
                let (there, all) = (fs::read(&path).ok(), folder.names());
                let asked = Asked { old: "old", new: "new", replaces_all: false };
                let told = change(&path, "a", &loaded, asked);
                assert_eq!(told, Err(text.to_owned()), "{number} {names}");
                assert_eq!((fs::read(&path).ok(), folder.names()), (there, all), "{number} {names}");
            }
        }
    }

    /// It was built in memory first, tens of gigabytes of it.
    #[test]
    fn an_edit_that_would_make_an_immense_file_is_refused_with_its_size() {
        let folder = Folder::new("edit-grows");
        folder.put("a", "x".repeat(1 << 20));
        let text = "a would have 1048576000000 bytes then, and Edit makes no file larger than 67108864 bytes; \
                    replace fewer places, or give a shorter new_string";
        assert_eq!(swap_all(&folder, "x", &"long".repeat(250_000)), Outcome::error(text));
        assert_eq!(folder.get("a").len(), 1 << 20);
        folder.put("a", "x\r\n".repeat(3));
        let size = 3 * (60_000_000 + 4);
        let text = swap_all(&folder, "x", &format!("{}\ny", "z".repeat(60_000_000))).text;
        assert!(text.starts_with(&format!("a would have {} bytes then", size + 3)), "{text}");
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit as u64) as usize
        }

        fn pieces(&mut self, most: usize, pieces: &[&[u8]]) -> Vec<u8> {
            (0..self.below(most + 1)).flat_map(|_| pieces[self.below(pieces.len())]).copied().collect()
        }
    }

    /// Line ends as one byte, to compare texts without them.
    fn folded(bytes: &[u8]) -> Vec<u8> {
        let mut folded = bytes.to_vec();
        let mut at = 0;
        while at + 1 < folded.len() {
            if folded[at..].starts_with(b"\r\n") {
                folded.remove(at);
            }
            at += 1;
        }
        folded
    }

    #[test]
    fn all_bytes_outside_the_edit_are_the_same_in_any_file() {
        let folder = Folder::new("edit-property");
        let around: [&[u8]; 11] = [
            b"\n",
            b"\r\n",
            b"\r",
            b"a",
            b"bc",
            "é".as_bytes(),
            b"\xff",
            b"\xc3",
            b"\0",
            b"\xe2\x82",
            "\u{feff}".as_bytes(),
        ];
        let inside: [&[u8]; 6] = [b"\n", b"\n", b"a", b"x", "é".as_bytes(), "\u{20ac}".as_bytes()];
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        for round in 0..3000 {
            let before = random.pieces(12, &around);
            let after = random.pieces(12, &around);
            // Two marks that occur nowhere else make the text unique.
            let mut old = b"<".to_vec();
            old.extend(random.pieces(6, &inside));
            old.push(b'>');
            let old = String::from_utf8(old).unwrap();
            let new = String::from_utf8(random.pieces(6, &inside)).unwrap();
            // The file has each line end of the text in its own way.
            let mut there = Vec::new();
            for byte in old.bytes() {
                if byte == b'\n' && random.below(2) == 0 {
                    there.push(b'\r');
                }
                there.push(byte);
            }
            let content = [&before[..], &there, &after].concat();
            let view = View::of(&content, &old);
            assert_eq!(occurrences(&view.text, &old).count(), 1, "round {round}");
            let change = Change::of(&old, &new);
            let edited = change.apply(&view, change.size(&view));
            assert_eq!(edited.len() as u64, change.size(&view), "round {round}");

            assert_eq!(edited[..before.len()], before, "round {round}");
            assert_eq!(edited[edited.len() - after.len()..], after, "round {round}");
            let middle = &edited[before.len()..edited.len() - after.len()];
            assert_eq!(folded(middle), new.as_bytes(), "round {round}");

            // Through the disk as well, now and then, since each write waits for it.
            if round % 60 == 0 && edited != content {
                folder.put("a", content);
                assert!(!swap(&folder, &old, &new).is_error, "round {round}");
                assert_eq!(folder.get("a"), edited, "round {round}");
            }
        }
    }

    #[test]
    fn replacing_all_is_what_replacing_in_the_folded_text_is() {
        let mut random = Random(0x1234_5678_9ABC_DEF1);
        let parts: [&[u8]; 6] = [b"\n", b"\r\n", b"a", b"b", "é".as_bytes(), b"\xff"];
        let letters: [&[u8]; 4] = [b"\n", b"a", b"b", "é".as_bytes()];
        for round in 0..5000 {
            let content = random.pieces(40, &parts);
            let old = format!("a{}", String::from_utf8(random.pieces(2, &letters)).unwrap());
            let new = String::from_utf8(random.pieces(3, &letters)).unwrap();
            let view = View::of(&content, &old);
            assert_eq!(*view.text, folded(&content), "round {round}");
            let change = Change::of(&old, &new);
            let edited = change.apply(&view, change.size(&view));
            assert_eq!(edited.len() as u64, change.size(&view), "round {round}");

            // The same by a search that is too simple to be wrong.
            let (plain, mut expected, mut at, mut count) = (folded(&content), Vec::new(), 0, 0);
            while at < plain.len() {
                match plain[at..].starts_with(old.as_bytes()) {
                    true => (expected.extend(new.as_bytes()), at += old.len(), count += 1).1,
                    false => (expected.push(plain[at]), at += 1).1,
                }
            }
            assert_eq!(occurrences(&view.text, &old).count(), count, "round {round}: {content:?} {old:?}");
            assert_eq!(folded(&edited), expected, "round {round}: {content:?} {old:?} {new:?}");
            let (crlf, bare) = (content.windows(2).any(|pair| pair == b"\r\n"), folded(&content) == content);
            if crlf && !has_bare_newline(&content) {
                assert!(!has_bare_newline(&edited), "round {round}: {content:?} {old:?} {new:?}");
            }
            if bare {
                assert_eq!(edited, expected, "round {round}");
            }
        }
    }

    fn has_bare_newline(bytes: &[u8]) -> bool {
        (0..bytes.len()).any(|at| bytes[at] == b'\n' && (at == 0 || bytes[at - 1] != b'\r'))
    }
}
