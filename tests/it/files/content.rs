//! What is in a file: bytes that are no text, ends of lines, and any others.

use super::*;

#[test]
fn a_binary_file_is_not_read_but_written_and_edited_byte_for_byte() {
    matrix(
        "binary",
        &one(b"\x7fELF\x02\0\0old\0\xff"),
        &[
            cell(
                "Read",
                failed(
                    "Read/it is a binary file of 12 bytes (ELF program or library); only text and PNG, JPEG, GIF and WebP images can be read",
                ),
            ),
            cell("Glob", ok("Glob/it\n")),
            cell("Grep", ok("Grep/it: binary file with a match\n")),
            cell("Grep", ok("[no matches; hidden, ignored and binary files are only searched in a path that names them]")).with("path", "Grep"),
            cell("Bash", ok("ELFold\u{fffd}")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)"))
                .after(one(b"\x7fELF\x02\0\0new\0\xff")),
        ],
    );
}

#[test]
fn an_empty_file_is_said_to_be_empty_and_is_filled_by_write_alone() {
    matrix(
        "empty",
        &one(""),
        &[
            cell("Read", ok("(the file is empty)")),
            cell("Glob", ok("Glob/it\n")),
            cell("Grep", ok("[no matches]")),
            cell("Bash", ok("(no output)")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", failed("Edit/it is empty, so there is nothing to replace; use Write to fill it")),
        ],
    );
}

#[test]
fn of_a_huge_file_a_window_is_read_it_is_replaced_whole_and_not_edited() {
    let huge = |start: &str| holds([("it", Thing::Huge(start.as_bytes().to_vec(), 10 << 30))]);
    let read = "old\n".repeat(2000) + "[lines 1-2000 shown, more follow: Read with offset=2001]";
    // The beginning of a file of that size is not compared afterwards.
    matrix(
        "huge",
        &huge(&"old\n".repeat(2500)),
        &[
            cell("Read", ok(&read)).after(huge("")),
            cell("Glob", ok("Glob/it\n")).after(huge("")),
            cell("Grep", ok("Grep/it: binary file with a match\n")).with("head_limit", 2).after(huge("")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell(
                "Edit",
                failed(
                    "Edit/it is larger than 67108864 bytes, which is too large for Edit; if you can run a command, use sed",
                ),
            )
            .after(huge("")),
        ],
    );
}

#[test]
fn crlf_is_shown_as_it_is_and_kept_by_edit() {
    matrix(
        "crlf",
        &one("one\r\nold\r\n"),
        &[
            cell("Read", ok("one\r\nold\r\n")),
            cell("Glob", ok("Glob/it\n")),
            cell("Grep", ok("Grep/it:2:old\r\n")),
            cell("Bash", ok("one\nold")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)"))
                .with("old_string", "one\nold\n")
                .with("new_string", "one\nnew\nmore\n")
                .after(one("one\r\nnew\r\nmore\r\n")),
        ],
    );
}

#[test]
fn mixed_endings_and_a_missing_final_newline_are_kept_by_edit() {
    matrix(
        "mixed",
        &one("one\nold\r\ntwo\rthree"),
        &[
            cell("Read", ok("one\nold\r\ntwo\rthree")),
            cell("Grep", ok("Grep/it:2:old\r\n")),
            cell("Bash", ok("one\nold\nthree")),
            cell("Write", ok("wrote Write/it (3 bytes)")).with("content", "new").after(one("new")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)"))
                .with("old_string", "one\nold\ntwo")
                .with("new_string", "one\nnew\ntwo")
                .after(one("one\nnew\r\ntwo\rthree")),
        ],
    );
}

#[test]
fn a_byte_order_mark_is_not_shown_and_kept_by_edit() {
    matrix(
        "bom",
        &one("\u{feff}old\n"),
        &[
            cell("Read", ok("old\n")),
            cell("Grep", ok("Grep/it:1:old\n")).with("pattern", "^old"),
            cell("Bash", ok("\u{feff}old")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(one("\u{feff}new\n")),
        ],
    );
}

#[test]
fn utf_16_is_decoded_by_read_and_refused_by_edit() {
    let refused =
        "Edit/it is UTF-16, which Edit cannot change; if you can run a command, convert it with iconv";
    for bytes in [b"\xff\xfeo\0l\0d\0\n\0", b"\xfe\xff\0o\0l\0d\0\n"] {
        matrix(
            "utf-16",
            &one(bytes),
            &[
                cell("Read", ok("old\n[decoded from UTF-16]")),
                cell("Grep", ok("Grep/it:1:old\n")).with("pattern", "^old"),
                cell("Bash", ok("\u{fffd}\u{fffd}old")),
                cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
                cell("Edit", failed(refused)),
            ],
        );
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_shown_as_replaced_and_kept_by_edit() {
    matrix(
        "latin-1",
        &one(b"caf\xe9 old\xff\n"),
        &[
            cell(
                "Read",
                ok("caf\u{fffd} old\u{fffd}\n[bytes that are not UTF-8 text are shown as \u{fffd}]"),
            ),
            cell("Grep", ok("Grep/it:1:caf\u{fffd} old\u{fffd}\n")),
            cell("Bash", ok("caf\u{fffd} old\u{fffd}")),
            cell("Write", ok("wrote Write/it (4 bytes)")).after(one("new\n")),
            cell(
                "Edit",
                failed(
                    "old_string does not occur in Edit/it; \
             U+FFFD may stand for bytes that are not UTF-8 there, so choose a text without it",
                ),
            )
            .with("old_string", "caf\u{fffd} old"),
            cell("Edit", ok("edited Edit/it (1 replacement at line 1)")).after(one(b"caf\xe9 new\xff\n")),
        ],
    );
}

#[test]
fn edits_of_one_file_in_one_reply_apply_in_order() {
    let edit = |old: &str, new: &str, line: u32| {
        cell("Edit", ok(&format!("edited Edit/it (1 replacement at line {line})")))
            .with("old_string", old)
            .with("new_string", new)
    };
    let missing = "old_string does not occur in Edit/it; the nearest place is line 1:\nthree\n\
                   line 1 is not what old_string has: th ree";
    matrix(
        "order",
        &one("one\r\n"),
        &[
            edit("one", "two", 1),
            edit("two", "two\nthree", 1),
            edit("two\n", "", 1),
            cell("Edit", failed(missing)).with("old_string", "th ree"),
            edit("three", "four", 1).after(one("four\r\n")),
        ],
    );
}

/// Random files are edited and written through the whole program: all bytes outside the edit stay, and any
/// content arrives as it was sent.
#[test]
fn random_files_are_edited_and_written_byte_for_byte() {
    let around: [&[u8]; 9] =
        [b"\n", b"\r\n", b"\r", b"a", "é".as_bytes(), b"\xff", b"\xe2\x82", b"\0", "\u{feff}".as_bytes()];
    let letters: [&[u8]; 6] = [b"\n", b"\r\n", b"a", "é".as_bytes(), "\u{1f600}".as_bytes(), b"\0"];
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let (mut before, mut after, mut written, mut cells) =
        (Things::new(), Things::new(), Things::new(), vec![]);
    for number in 0..60 {
        let name = format!("{number:02}");
        // A UTF-16 mark at the start would be refused, which another test is about.
        let start = [b"-".to_vec(), random.pieces(12, &around)].concat();
        let (end, new) = (random.pieces(12, &around), random.pieces(6, &letters[2..]));
        before.insert(name.clone().into(), Thing::File([&start[..], b"<old>", &end].concat()));
        after.insert(name.clone().into(), Thing::File([&start[..], &new, &end].concat()));
        let line = start.iter().filter(|byte| **byte == b'\n').count() + 1;
        let told = format!("edited Edit/{name} (1 replacement at line {line})");
        let edit = cell("Edit", ok(&told)).with("file_path", format!("Edit/{name}"));
        let edit = edit.with("old_string", "<old>").with("new_string", String::from_utf8(new).unwrap());
        cells.push(edit);
    }
    for number in 0..60 {
        let name = format!("{number:02}");
        let content = random.pieces(30, &letters);
        let told = format!("wrote Write/{name} ({} bytes)", content.len());
        let text = String::from_utf8(content.clone()).unwrap();
        cells.push(cell("Write", ok(&told)).with("file_path", format!("Write/{name}")).with("content", text));
        written.insert(name.into(), Thing::File(content));
    }
    cells.iter_mut().for_each(|cell| {
        cell.after = Some(if cell.tool == "Edit" { after.clone() } else { written.clone() });
    });
    matrix("random", &before, &cells);
}
