//! Programs of the user's that are tools: which files these are, and what they say of themselves.
//!
//! Nothing is run here. A program that describes itself is asked in the worker, as for any call, because it
//! is somebody's program.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::{Spec, command};

/// How long a call may take where the description does not say.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;
const MAX_TIMEOUT_MS: u64 = 600_000;
/// The longest description.
pub const MAX_DESCRIPTION_BYTES: usize = 256 * 1024;
/// What a description is, for those that are none.
const FORM: &str = r#"it is a JSON object such as {"name":"weather","description":"…","input_schema":{"type":"object","properties":{}}}"#;
/// What both APIs refuse at the top of a schema.
const REFUSED_AT_THE_TOP: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// What was typed, in the order given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `--tool`.
    File(PathBuf),
    /// `--tool-dir`.
    Folder(PathBuf),
}

/// A program that is to be a tool.
#[derive(Debug)]
pub struct Found {
    /// Its absolute path. What runs is what lies there at the time of a call.
    pub file: PathBuf,
    /// As it was typed, for errors.
    pub shown: String,
    /// The file that describes it and the text in it; absent if the program does so itself.
    pub description: Option<(String, String)>,
}

/// A program that is a tool.
#[derive(Debug)]
pub struct Executable {
    /// What the model is told of it.
    pub spec: &'static Spec,
    /// What the arguments have to fit.
    pub schema: Value,
    /// Its absolute path.
    pub file: PathBuf,
    /// How long a call may take.
    pub timeout: Duration,
}

/// The programs that are meant, in the order given; those of a folder in the order of the bytes of their names.
///
/// Errors: what cannot be a tool, why, and what to do.
pub fn find(sources: &[Source]) -> Result<Vec<Found>, String> {
    let mut all = Vec::new();
    for source in sources {
        match source {
            Source::File(file) => all.push(found(file)?),
            Source::Folder(folder) => all.extend(in_folder(folder)?),
        }
    }
    Ok(all)
}

fn found(typed: &Path) -> Result<Found, String> {
    let shown = typed.display().to_string();
    let refuse = |why: &str| format!("the tool \"{shown}\" cannot be used: {why}");
    let file = std::path::absolute(typed).map_err(|error| refuse(&error.to_string()))?;
    let metadata = fs::metadata(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            refuse("there is no such file; give its path, for a command in PATH \"$(command -v NAME)\"")
        }
        _ => refuse(&error.to_string()),
    })?;
    if metadata.is_dir() {
        return Err(refuse("it is a folder; pass --tool-dir for the programs in it"));
    }
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file"));
    }
    if !command::is_executable(&file) {
        return Err(refuse(&format!("it is not executable; try chmod +x '{shown}'")));
    }
    can_start(&file).map_err(|why| refuse(&why))?;
    let description = description_beside(typed, &file).map_err(|why| refuse(&why))?;
    Ok(Found { file, shown, description })
}

fn in_folder(folder: &Path) -> Result<Vec<Found>, String> {
    let shown = folder.display();
    let refuse = |why: &str| format!("the folder of tools \"{shown}\" cannot be used: {why}");
    let entries = fs::read_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotADirectory => refuse("it is no folder; pass --tool for one program"),
        _ => refuse(&error.to_string()),
    })?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry.map_err(|error| refuse(&error.to_string()))?.file_name());
    }
    names.sort();
    let mut all = Vec::new();
    for name in names {
        let path = folder.join(&name);
        if !name.as_bytes().starts_with(b".")
            && !name.as_bytes().ends_with(b".json")
            && command::is_executable(&path)
        {
            all.push(found(&path)?);
        }
    }
    match all.is_empty() {
        true => Err(refuse("no file in it is executable; try chmod +x on those that are meant")),
        false => Ok(all),
    }
}

/// Why the kernel would not start a file, as far as its beginning tells: a script needs a first line that
/// names an interpreter. A binary that is no good is found out by running it.
fn can_start(file: &Path) -> Result<(), String> {
    let mut head = Vec::new();
    // A file may be run by those who may not read it.
    let Ok(opened) = File::open(file) else { return Ok(()) };
    opened.take(256).read_to_end(&mut head).map_err(|error| error.to_string())?;
    let Some(line) = head.strip_prefix(b"#!") else {
        return match head.contains(&0) {
            true => Ok(()),
            false => Err("it is neither a binary nor a script with an interpreter; begin it with a line such as #!/bin/sh".to_owned()),
        };
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
    let interpreter = Path::new(OsStr::from_bytes(words.next().unwrap_or_default()));
    if command::is_executable(interpreter) {
        return Ok(());
    }
    let shown = interpreter.display().to_string();
    Err(match shown.strip_suffix('\r') {
        Some(name) => format!(
            "its first line ends with a carriage return, so that \"{name}\" is not found; write it with plain line ends"
        ),
        None => format!(
            "its first line names the interpreter \"{shown}\", which is not there or cannot be run; mend that line or install it"
        ),
    })
}

/// The description that lies beside a program: of `weather.sh` it is `weather.sh.json` or `weather.json`.
fn description_beside(typed: &Path, file: &Path) -> Result<Option<(String, String)>, String> {
    let mut longer = file.file_name().unwrap_or_default().to_owned();
    longer.push(".json");
    let names = [file.with_file_name(longer), file.with_extension("json")];
    let Some(beside) = names.iter().find(|name| *name != file && fs::symlink_metadata(name).is_ok()) else {
        return Ok(None);
    };
    let shown = typed.with_file_name(beside.file_name().unwrap_or_default()).display().to_string();
    let text = read(beside).map_err(|why| format!("\"{shown}\" cannot be read: {why}"))?;
    Ok(Some((shown, text)))
}

fn read(file: &Path) -> Result<String, String> {
    // A FIFO would keep the run waiting.
    let opened = fs::OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(file);
    let opened = opened.map_err(|error| error.to_string())?;
    if !opened.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let most = MAX_DESCRIPTION_BYTES as u64 + 1;
    opened.take(most).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > MAX_DESCRIPTION_BYTES {
        return Err(format!("it is longer than {MAX_DESCRIPTION_BYTES} bytes"));
    }
    String::from_utf8(bytes)
        .map_err(|error| format!("it is not UTF-8 from byte {}", error.utf8_error().valid_up_to()))
}

/// Makes a tool of a program by its description: `text`, which comes from `place`.
///
/// Errors: what is wrong with the description.
pub fn described(found: &Found, place: &str, text: &str) -> Result<Executable, String> {
    let refuse = |why: &str| format!("the description of a tool in \"{place}\" cannot be used: {why}");
    let description: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| refuse(&format!("it is not JSON ({error}); {FORM}")))?;
    let text = |name: &str| match description[name].as_str().map(str::trim) {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(refuse(&format!("\"{name}\" is missing or no text; {FORM}"))),
    };
    let name = text("name")?;
    if !is_legal(&name, b"_-") {
        return Err(refuse(&format!(
            "the APIs take no name such as \"{name}\"; use at most 64 of the letters a-z, A-Z, 0-9, _ and -"
        )));
    }
    let schema = input_schema(&description).map_err(|why| refuse(&why))?;
    Ok(Executable {
        spec: Spec::leaked(name, text("description")?, &schema),
        schema,
        file: found.file.clone(),
        timeout: timeout(&description).map_err(|why| refuse(&why))?,
    })
}

/// Whether a name is one that the APIs take: of a tool, or with a full stop also of a property.
fn is_legal(name: &str, marks: &[u8]) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(&byte))
}

fn input_schema(description: &Value) -> Result<Value, String> {
    let mut schema = description["input_schema"].clone();
    if schema["type"] != "object" {
        return Err(format!("\"input_schema\" is missing or no object with \"type\":\"object\"; {FORM}"));
    }
    if let Some(word) = REFUSED_AT_THE_TOP.iter().find(|word| schema.get(**word).is_some()) {
        return Err(format!(
            "the APIs take no \"{word}\" at the top of \"input_schema\"; put it into a property"
        ));
    }
    match schema.get("properties") {
        // Servers want the member even where there is nothing to say.
        None => schema["properties"] = json!({}),
        Some(Value::Object(properties)) => {
            if let Some(name) = properties.keys().find(|name| !is_legal(name, b"_.-")) {
                return Err(format!(
                    "the APIs take no property such as \"{name}\"; use at most 64 of the letters a-z, A-Z, 0-9, _, . and -"
                ));
            }
        }
        Some(_) => return Err("\"properties\" of \"input_schema\" is no object".to_owned()),
    }
    let is_list_of_texts = |list: &Vec<Value>| list.iter().all(Value::is_string);
    if schema.get("required").is_some_and(|required| !required.as_array().is_some_and(is_list_of_texts)) {
        return Err("\"required\" of \"input_schema\" is no list of names".to_owned());
    }
    Ok(schema)
}

fn timeout(description: &Value) -> Result<Duration, String> {
    match &description["timeout_ms"] {
        Value::Null => Ok(Duration::from_millis(DEFAULT_TIMEOUT_MS)),
        given => match given.as_u64() {
            Some(milliseconds) if (1..=MAX_TIMEOUT_MS).contains(&milliseconds) => {
                Ok(Duration::from_millis(milliseconds))
            }
            _ => Err(format!("\"timeout_ms\" is a whole number from 1 to {MAX_TIMEOUT_MS}, not {given}")),
        },
    }
}

/// Whether all names differ, from each other and from those of the built-in tools.
///
/// Errors: the name that stands for two tools, and the files.
pub fn check_names(executables: &[(Executable, String)]) -> Result<(), String> {
    for (index, (executable, shown)) in executables.iter().enumerate() {
        let name = executable.spec.name;
        if super::access::exists(name) {
            return Err(format!(
                "the tool \"{shown}\" cannot be used: it calls itself \"{name}\" as a built-in tool does; give it another name"
            ));
        }
        if let Some((_, earlier)) = executables[..index].iter().find(|(earlier, _)| earlier.spec.name == name)
        {
            return Err(format!(
                "the tools \"{earlier}\" and \"{shown}\" both call themselves \"{name}\"; rename one or leave it out"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::write::tests::{Folder, make_fifo};
    use std::os::unix::fs::PermissionsExt;

    fn described_by(text: &str) -> Result<Executable, String> {
        let found = Found { file: "/x/weather".into(), shown: "./weather".to_owned(), description: None };
        described(&found, "./weather.json", text)
    }

    #[test]
    fn what_would_keep_the_run_waiting_is_not_opened() {
        let folder = Folder::new("executables-fifo");
        make_fifo(&folder.path.join("fifo"));
        let program = folder.put("program", "#!/bin/sh\n");
        folder.mode("program", 0o755);
        make_fifo(&folder.path.join("program.json"));
        let (fifo, shown) = (folder.path.join("fifo"), folder.path.display());
        for (file, why) in [
            (fifo, format!("the tool \"{shown}/fifo\" cannot be used: it is not a regular file")),
            (
                program,
                format!(
                    "the tool \"{shown}/program\" cannot be used: \"{shown}/program.json\" cannot be read: it is not a regular file"
                ),
            ),
        ] {
            assert_eq!(find(&[Source::File(file)]).unwrap_err(), why);
        }
    }

    #[test]
    fn a_name_that_is_no_text_and_a_link_are_no_obstacle() {
        let folder = Folder::new("executables-names");
        let latin = folder.path.join(OsStr::from_bytes(b"caf\xe9"));
        fs::write(&latin, "#! /bin/sh -e\n").unwrap();
        fs::set_permissions(&latin, fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&latin, folder.path.join("link")).unwrap();
        let found = find(&[Source::Folder(folder.path.clone())]).unwrap();
        let files: Vec<&Path> = found.iter().map(|found| &*found.file).collect();
        assert_eq!(files, [latin, folder.path.join("link")]);
    }

    #[test]
    fn a_description_becomes_what_the_model_is_told() {
        let text = "\u{feff}{\"name\": \" weather \", \"description\": \"Tells it.\\n\", \"version\": 1, \"input_schema\": {\"type\": \"object\"}}";
        let executable = described_by(text).unwrap();
        let spec = executable.spec;
        assert_eq!((spec.name, spec.description), ("weather", "Tells it."));
        assert_eq!(spec.schema, r#"{"type":"object","properties":{}}"#);
        assert_eq!((executable.file, executable.timeout), ("/x/weather".into(), Duration::from_secs(120)));
    }

    #[test]
    fn members_of_a_schema_keep_their_order() {
        let schema = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{}},"required":["z"]}"#;
        let text = format!(r#"{{"name":"n","description":"d","timeout_ms":600000,"input_schema":{schema}}}"#);
        let executable = described_by(&text).unwrap();
        assert_eq!((executable.spec.schema, executable.timeout), (schema, Duration::from_secs(600)));
    }

    #[test]
    fn a_description_that_cannot_be_used_says_why() {
        let with = |member: &str, value: &str| {
            let mut description =
                json!({"name": "n", "description": "d", "input_schema": {"type": "object"}});
            description[member] = serde_json::from_str(value).unwrap();
            let error = described_by(&description.to_string()).unwrap_err();
            error
                .strip_prefix("the description of a tool in \"./weather.json\" cannot be used: ")
                .unwrap()
                .to_owned()
        };
        for (member, value, why) in [
            ("name", "5", format!("\"name\" is missing or no text; {FORM}")),
            ("description", "\" \"", format!("\"description\" is missing or no text; {FORM}")),
            (
                "name",
                "\"wéather\"",
                "the APIs take no name such as \"wéather\"; use at most 64 of the letters a-z, A-Z, 0-9, _ and -".to_owned(),
            ),
            (
                "input_schema",
                "{\"type\":\"string\"}",
                format!("\"input_schema\" is missing or no object with \"type\":\"object\"; {FORM}"),
            ),
            (
                "input_schema",
                "{\"type\":\"object\",\"anyOf\":[]}",
                "the APIs take no \"anyOf\" at the top of \"input_schema\"; put it into a property".to_owned(),
            ),
            (
                "input_schema",
                "{\"type\":\"object\",\"properties\":[]}",
                "\"properties\" of \"input_schema\" is no object".to_owned(),
            ),
            (
                "input_schema",
                "{\"type\":\"object\",\"properties\":{\"a.b-c_D1\":{},\"two words\":{}}}",
                "the APIs take no property such as \"two words\"; use at most 64 of the letters a-z, A-Z, 0-9, _, . and -".to_owned(),
            ),
            (
                "input_schema",
                "{\"type\":\"object\",\"properties\":{\"\":{}}}",
                "the APIs take no property such as \"\"; use at most 64 of the letters a-z, A-Z, 0-9, _, . and -".to_owned(),
            ),
            (
                "input_schema",
                "{\"type\":\"object\",\"required\":[1]}",
                "\"required\" of \"input_schema\" is no list of names".to_owned(),
            ),
            ("timeout_ms", "0", "\"timeout_ms\" is a whole number from 1 to 600000, not 0".to_owned()),
            ("timeout_ms", "\"9\"", "\"timeout_ms\" is a whole number from 1 to 600000, not \"9\"".to_owned()),
        ] {
            assert_eq!(with(member, value), why);
        }
        assert!(described_by("[]").unwrap_err().contains("\"name\" is missing"));
        assert!(described_by("{\"name\":").unwrap_err().contains("it is not JSON (EOF while"));
    }
}
