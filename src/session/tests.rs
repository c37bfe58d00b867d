use std::fs;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FlockOperation, flock};

use super::*;
use crate::conversation::{Part, Parts};

const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A folder that goes with the value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("cotter-session-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn place(&self) -> Place {
        Place { folder: Some(self.0.clone()), keeps: true, workspace: "/w".into(), patience: Duration::ZERO }
    }

    fn open(&self, source: Source, fork: bool) -> Result<Start, Error> {
        open(&Wanted { source, fork, id: None }, &self.place(), &crate::uuid::random())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn named() -> Source {
    Source::Named(ID.to_owned())
}

fn text(text: &str) -> Vec<Part> {
    Parts::from(text).0
}

/// Appends what was said since to the file.
fn save(begun: &mut Begun) {
    begun.session.as_mut().unwrap().append(begun.conversation.new_lines()).unwrap();
}

/// Wherever the file is cut behind its first line, what is whole is read, and after the next run each line is whole.
#[test]
fn a_file_cut_at_any_byte_goes_on_without_a_broken_line() {
    let folder = Folder::new("cut");
    let wanted = Wanted { source: Source::New, fork: false, id: Some(ID.to_owned()) };
    let mut begun = open(&wanted, &folder.place(), "").unwrap().begin("test", Vec::new()).unwrap();
    let path = folder::path_of(&folder.0, ID);
    let first = fs::read(&path).unwrap().len();
    for number in 0..3 {
        begun.conversation.add_user(&*format!("é \"{number}\"\n"));
        begun.conversation.add_reply(text("{}"), "test");
        save(&mut begun);
    }
    let messages = begun.conversation.messages().to_vec();
    drop(begun);
    let bytes = fs::read(&path).unwrap();
    for cut in first..=bytes.len() {
        for forks in [false, true] {
            fs::write(&path, &bytes[..cut]).unwrap();
            let start = folder.open(named(), forks).unwrap();
            let mut begun = start.begin("test", Vec::new()).unwrap();
            let whole = bytes[first..cut].iter().filter(|byte| **byte == b'\n').count();
            // A line that lacks its end alone is whole too.
            let lacks_end = bytes.get(cut) == Some(&b'\n') && cut > first;
            let known = whole + usize::from(lacks_end);
            assert_eq!(begun.conversation.messages(), &messages[..known], "cut at {cut}");
            begun.conversation.add_user("more");
            save(&mut begun);
            let written = begun.session.as_ref().unwrap().path.clone();
            drop(begun);
            let found = fs::read_to_string(&written).unwrap();
            assert!(found.ends_with("\"more\"}]}\n"), "cut at {cut}: {found}");
            assert_eq!(found.lines().count(), 1 + known + 1, "cut at {cut}: {found}");
            for line in found.lines() {
                serde_json::from_str::<serde_json::Value>(line).unwrap();
            }
            assert_eq!(
                forks,
                fs::read(&path).unwrap() == bytes[..cut],
                "only a copy leaves the other as it is"
            );
            if forks {
                fs::remove_file(written).unwrap();
            }
        }
    }
}

/// A first line that broke off anywhere is no session: its id is free again.
#[test]
fn a_file_cut_at_any_byte_of_its_first_line_begins_anew() {
    let folder = Folder::new("first-line");
    let path = folder::path_of(&folder.0, ID);
    let first = header(ID, Path::new("/w/\u{e9}"), "test", None);
    let mut place = folder.place();
    place.workspace = "/w/\u{e9}".into();
    for cut in 0..first.len() {
        fs::write(&path, &first.as_bytes()[..cut]).unwrap();
        let what = if cut == 0 { "it is empty" } else { "its first line broke off" };
        let error = folder.open(named(), false).err().unwrap();
        let place_of_it = path.display();
        let expected = format!(
            "the session \"{place_of_it}\" cannot be used: {what}: begin it anew with --session-id in place of -r"
        );
        assert_eq!((error.exit_code(), error.to_string()), (2, expected), "cut at {cut}");
        let wanted = Wanted { source: Source::New, fork: false, id: Some(ID.to_owned()) };
        open(&wanted, &place, "").unwrap().begin("test", Vec::new()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), first, "cut at {cut}");
    }
    let start = open(&Wanted { source: named(), fork: false, id: None }, &place, "").unwrap();
    assert_eq!(start.notices, ["nothing was said in this session yet: it begins here"]);
}

/// A run that was killed while it copied kept the id of its copy from all others.
#[test]
fn a_copy_that_was_not_finished_is_made_anew() {
    let folder = Folder::new("half-copied");
    let path = folder::path_of(&folder.0, ID);
    let other = "550e8411-e29b-41d4-a716-446655440000";
    fs::write(&path, header(ID, Path::new("/w"), "test", None)).unwrap();
    let left = folder.0.join(format!(".{other}.part"));
    let fork = || {
        let wanted = Wanted { source: named(), fork: true, id: Some(other.to_owned()) };
        open(&wanted, &folder.place(), "").unwrap().begin("test", Vec::new())
    };
    fs::write(&left, "half of it").unwrap();
    let copier = File::open(&left).unwrap();
    flock(&copier, FlockOperation::LockExclusive).unwrap();
    assert_eq!(fork().err().unwrap().exit_code(), 2, "another run copies");
    assert_eq!(fs::read(&left).unwrap(), b"half of it");
    drop(copier);
    let others = [".550e8422-e29b-41d4-a716-446655440000.part", ".mine.part"].map(|name| folder.0.join(name));
    others.iter().for_each(|path| fs::write(path, "half of it").unwrap());
    let copied = fork().unwrap().session.unwrap();
    assert!(!left.exists());
    assert_eq!(others.map(|path| path.exists()), [false, true]);
    drop(copied);
    let copy = fs::read_to_string(folder::path_of(&folder.0, other)).unwrap();
    assert_eq!(copy, header(other, Path::new("/w"), "test", Some(ID)));
}

/// Two runs with one new id both went on, one without a session or with one whose name another's file had taken.
#[test]
fn of_many_runs_with_one_new_id_one_goes_on() {
    let folder = Folder::new("one-id");
    fs::write(folder::path_of(&folder.0, ID), header(ID, Path::new("/w"), "test", None)).unwrap();
    for round in 0..60 {
        let other = format!("550e8400-e29b-41d4-a716-{round:012}");
        let forks = round % 2 == 1;
        let source = if forks { named() } else { Source::New };
        let wanted = &Wanted { source, fork: forks, id: Some(other.clone()) };
        let begin = || open(wanted, &folder.place(), "").and_then(|start| start.begin("test", Vec::new()));
        let all_done = std::sync::Barrier::new(4);
        let run = || {
            let begun = begin();
            // Whoever has a session has it until all the others were refused.
            all_done.wait();
            begun
        };
        let begun: Vec<_> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        let mut kept = 0;
        for begun in begun {
            match begun {
                Ok(Begun { session: Some(session), .. }) => {
                    kept += 1;
                    assert_eq!(
                        session.file.metadata().unwrap().len(),
                        session.path.metadata().unwrap().len()
                    );
                }
                Ok(_) => panic!("it goes on without a session"),
                Err(error) => assert_eq!(
                    (error.exit_code(), error.to_string()),
                    (
                        2,
                        format!(
                            "there is a session {other} already: go on with it by -r {other}, or choose another id"
                        )
                    )
                ),
            }
        }
        assert_eq!(kept, 1, "round {round}");
        let first = header(&other, Path::new("/w"), "test", forks.then_some(ID));
        assert_eq!(fs::read_to_string(folder::path_of(&folder.0, &other)).unwrap(), first);
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 61, "nothing unfinished is left");
}

/// Where a file system has no locks, the second to write finds out before it writes.
#[test]
fn a_file_that_grew_since_it_was_read_is_not_written() {
    let folder = Folder::new("grown");
    let path = folder::path_of(&folder.0, ID);
    fs::write(&path, header(ID, Path::new("/w"), "test", None)).unwrap();
    let mut begun = folder.open(named(), false).unwrap().begin("test", Vec::new()).unwrap();
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{}\n").unwrap();
    let before = fs::read(&path).unwrap();
    let error = begun.session.as_mut().unwrap().append(vec!["{}".to_owned()]).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot write the session \"{}\": another run has written to it: make room, or pass \
             --no-session-persistence",
            path.display()
        )
    );
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A line that was written in part joined the next one where a full disk had room again, and was lost itself.
#[test]
fn what_a_disk_did_not_take_is_written_first_once_it_does() {
    let folder = Folder::new("room");
    let path = folder::path_of(&folder.0, ID);
    let first = header(ID, Path::new("/w"), "test", None);
    fs::write(&path, format!("{first}{{}}")).unwrap();
    let mut session =
        folder.open(named(), false).unwrap().begin("test", Vec::new()).unwrap().session.unwrap();
    let file = std::mem::replace(&mut session.file, File::open(&path).unwrap());
    for lines in [vec!["[1]".to_owned(), "[2]".to_owned()], Vec::new()] {
        session.append(lines).unwrap_err();
    }
    OpenOptions::new().append(true).open(&path).unwrap().write_all(b"\n[").unwrap();
    session.mend.as_mut().unwrap().read += 2;
    session.file = file;
    session.append(vec!["[3]".to_owned()]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), format!("{first}{{}}\n[1]\n[2]\n[3]\n"));
}

#[test]
fn folders_that_are_no_utf_8_have_names_of_their_own() {
    let names = [&b"/caf\xe8"[..], b"/caf\xe9", "/caf\u{fffd}".as_bytes(), b"/caf\\xE9"];
    let names = names.map(|name| name_of(Path::new(std::ffi::OsStr::from_bytes(name))));
    assert_eq!(names, ["\"/caf\\xE8\"", "\"/caf\\xE9\"", "/caf\u{fffd}", "/caf\\xE9"]);
}

#[test]
fn a_file_is_locked_as_long_as_it_is_used() {
    let folder = Folder::new("locked");
    let path = folder::path_of(&folder.0, ID);
    fs::write(&path, header(ID, Path::new("/w"), "test", None)).unwrap();
    let first = folder.open(named(), false).unwrap();
    let busy = folder.open(named(), false).err().unwrap();
    assert_eq!(busy.exit_code(), 2);
    assert!(folder.open(named(), true).is_ok(), "a copy needs no lock");
    drop(first);
    assert!(folder.open(named(), false).is_ok());
}

#[test]
fn a_copy_that_cannot_be_made_leaves_nothing() {
    let folder = Folder::new("uncopied");
    let path = folder::path_of(&folder.0, ID);
    fs::write(&path, header(ID, Path::new("/w"), "test", None)).unwrap();
    let start = folder.open(named(), true).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(start.begin("test", Vec::new()).err().unwrap().exit_code(), 1);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}
