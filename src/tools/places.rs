//! Paths of folders in what tools say: taken out, so that equal work gives equal bytes wherever it is done.
//!
//! Pure.

use std::path::Path;

/// Replaces a folder's path where it stands whole: not as the beginning of another name, nor as the end
/// of another path.
pub fn replace_folder(text: &str, folder: &Path, by: &str) -> String {
    // A name that is not UTF-8 is in the text as all such bytes are.
    let folder = &*folder.to_string_lossy();
    if folder.len() <= 1 {
        return text.to_owned();
    }
    let is_name = |character: char| character.is_alphanumeric() || matches!(character, '_' | '-');
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(folder) {
        let (before, after) = (&rest[..at], &rest[at + folder.len()..]);
        // A full stop belongs to a name where the name goes on behind it.
        let goes_on = |character| is_name(character) || matches!(character, '/' | '.');
        let inside = before.ends_with(goes_on) && !before.ends_with("://")
            || after.trim_start_matches('.').starts_with(is_name);
        replaced.push_str(before);
        replaced.push_str(if inside { folder } else { by });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_folder_is_replaced_where_it_stands_whole() {
        let folder = Path::new("/home/me/code");
        let cases = [
            ("/home/me/code", "."),
            ("/home/me/code/a.txt: no", "./a.txt: no"),
            ("in '/home/me/code'\n/home/me/code/b", "in '.'\n./b"),
            ("/home/me/code2/a", "/home/me/code2/a"),
            ("/home/me/code.bak", "/home/me/code.bak"),
            ("cannot enter /home/me/code.\n/home/me/code...", "cannot enter ..\n...."),
            ("/mnt/home/me/code/a", "/mnt/home/me/code/a"),
            ("PATH=/bin:/home/me/code/bin", "PATH=/bin:./bin"),
            ("file:///home/me/code/a", "file://./a"),
            ("file:///mnt/home/me/code/a", "file:///mnt/home/me/code/a"),
            ("a//home/me/code", "a//home/me/code"),
        ];
        for (text, expected) in cases {
            assert_eq!(replace_folder(text, folder, "."), expected, "{text}");
        }
        assert_eq!(replace_folder("/a / b", Path::new("/"), "."), "/a / b");
        let latin = Path::new(std::ffi::OsStr::from_bytes(b"/caf\xe9"));
        assert_eq!(replace_folder("in /caf\u{fffd}/a", latin, "."), "in ./a");
    }
}
