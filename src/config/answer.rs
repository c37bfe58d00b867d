//! `--json-schema`: the schema from the command line or a file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::answer::schema::{self, MOST_BYTES, Schema};
use crate::error::Error;
use crate::named_file;

/// The schema that a value of the flag means: itself, or what is in the file behind an `@`.
///
/// # Errors
///
/// `Usage` says what is wrong with it and where.
pub fn schema(value: &OsStr) -> Result<Schema, Error> {
    let refuse = |why: &str| Error::Usage(format!("--json-schema: {why}"));
    let Some(path) = value.as_bytes().strip_prefix(b"@") else {
        return read(value.as_bytes()).map_err(|why| refuse(&why));
    };
    let path = Path::new(OsStr::from_bytes(path));
    let in_file = |why: &str| refuse(&format!("\"{}\": {why}", path.display()));
    let bytes = named_file::read(path, MOST_BYTES)
        .map_err(|error| refuse(&format!("cannot read \"{}\": {error}", path.display())))?;
    read(&bytes).map_err(|why| in_file(&why))
}

fn read(bytes: &[u8]) -> Result<Schema, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    schema::read(std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?)
}
