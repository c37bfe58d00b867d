//! What a file that is no text most likely is, told by its first bytes.
//!
//! Only words an error: what is not in the table is a binary file all the same.

/// What a file that begins like this is called.
pub fn name(head: &[u8]) -> Option<&'static str> {
    const TABLE: &[(usize, &[u8], &str)] = &[
        (0, b"\x7fELF", "ELF program or library"),
        (0, b"%PDF-", "PDF document"),
        (0, b"PK\x03\x04", "zip archive, or a document or package made of one"),
        (0, b"PK\x05\x06", "zip archive"),
        (0, b"\x1f\x8b", "gzip"),
        (0, b"BZh", "bzip2"),
        (0, b"\xfd7zXZ\0", "xz"),
        (0, b"\x28\xb5\x2f\xfd", "zstd"),
        (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
        (257, b"ustar", "tar archive"),
        (0, b"!<arch>\n", "library archive or Debian package"),
        (0, b"SQLite format 3\0", "SQLite database"),
        (0, b"\0asm", "WebAssembly"),
        (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
        (0, b"\xcf\xfa\xed\xfe", "Mach-O program"),
        (0, b"MZ", "Windows program"),
        (0, b"PAR1", "Parquet"),
        (0, b"BM", "BMP image"),
        (0, b"II*\0", "TIFF image"),
        (0, b"MM\0*", "TIFF image"),
        (0, b"\0\0\x01\0", "icon"),
        (4, b"ftypavif", "AVIF image"),
        (4, b"ftypheic", "HEIC image"),
        (4, b"ftyp", "MP4 or a relative of it"),
        (0, b"OggS", "Ogg"),
        (0, b"ID3", "MP3"),
        (0, b"fLaC", "FLAC"),
        (0, b"RIFF", "WAV, AVI or a relative of them"),
        (0, b"wOFF", "WOFF font"),
        (0, b"wOF2", "WOFF2 font"),
        (0, b"\0\x01\0\0", "TrueType font"),
        (0, b"OTTO", "OpenType font"),
    ];
    let begins = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    TABLE.iter().find(|(at, magic, _)| begins(*at, magic)).map(|(_, _, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_files_have_a_name() {
        let tar = [&[0; 257][..], b"ustar\0"].concat();
        let cases: [(&[u8], Option<&str>); 6] = [
            (b"\x7fELF\x02", Some("ELF program or library")),
            (b"SQLite format 3\0x", Some("SQLite database")),
            (&tar, Some("tar archive")),
            (b"\0\0\0\x20ftypavif", Some("AVIF image")),
            (b"\0\0\0\0", None),
            (b"", None),
        ];
        for (head, expected) in cases {
            assert_eq!(name(head), expected);
        }
    }
}
