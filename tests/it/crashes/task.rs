//! A task of twenty turns, and the model that does it: what it says next follows from the conversation alone, so a
//! run that goes on after a kill gets the reply that it would have got.
//!
//! A call that was interrupted is looked after before it is made again, as a careful model does. What a look can
//! find is that the step is done or not; anything else (a line that stands there twice, a file of which a part is
//! new) is a problem.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::check::Api;
use crate::server::Reply;
use crate::talk::{answer, asks, results};

/// What the model says in the end.
pub const DONE: &str = "Done.";
/// Where each command notes the id of its call.
pub const JOURNAL: &str = "journal";

/// One thing to do.
struct Step {
    tool: &'static str,
    arguments: Value,
    /// A command that tells whether it is done. A step without one is simply done again.
    look: Option<String>,
    /// What the result is, where that can be said.
    result: Option<String>,
}

/// All there is to do, in turns whose steps do not depend on each other.
pub struct Task {
    /// The files that are there at first.
    pub before: BTreeMap<&'static str, String>,
    turns: Vec<Vec<Step>>,
    files: BTreeMap<&'static str, String>,
}

/// How a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Interrupted,
    Done,
}

impl Task {
    /// The task; its commands take at least so long as is needed to be met in the middle.
    pub fn new() -> Task {
        let big: String =
            (0..20_000).map(|number| format!("line {number}: a value = {}\n", number % 7)).collect();
        let before = BTreeMap::from([
            ("notes.txt", "The bridge was opened in 1932.\n".to_owned()),
            ("big.txt", big),
            ("crlf.txt", "one\r\ntwo\r\nthree\r\n".to_owned()),
            ("run.sh", "#!/bin/sh\necho old\n".to_owned()),
        ]);
        let mut task = Task { files: before.clone(), before, turns: Vec::new() };
        task.read("notes.txt");
        task.write("a.txt", "The first line.\nThe second line.\n");
        task.append(1, "");
        task.edit("a.txt", "first", "very first");
        task.append(2, "sleep 0.01; ");
        task.edit("big.txt", "value = 3", "number = 33");
        task.write("run.sh", "#!/bin/sh\necho new and longer\n");
        task.append(3, "");
        task.read("a.txt");
        task.write("deep/er/c.txt", &"0123456789\n".repeat(300));
        task.join_last(3);
        task.numbers();
        task.edit("crlf.txt", "two", "twenty-two");
        task.append(4, "sleep 0.02; ");
        task.edit("big.txt", "number = 33", "x = 3");
        task.move_file("deep/er/c.txt", "deep/moved.txt");
        task.edit("a.txt", "second", "2nd");
        task.edit("crlf.txt", "three", "3");
        task.join_last(2);
        task.append(5, "");
        task.write("d.txt", "x\n");
        task.edit("d.txt", "x", "xyz");
        task.read("crlf.txt");
        task.write("notes.txt", "");
        task.append(6, "sleep 0.005; ");
        assert_eq!(task.turns.len(), 20, "the task has twenty turns");
        task
    }

    fn add(&mut self, tool: &'static str, arguments: Value, look: Option<String>, result: Option<String>) {
        self.turns.push(vec![Step { tool, arguments, look, result }]);
    }

    /// The last steps are asked for by one reply.
    fn join_last(&mut self, count: usize) {
        let steps = self.turns.split_off(self.turns.len() - count);
        self.turns.push(steps.into_iter().flatten().collect());
    }

    fn read(&mut self, file: &'static str) {
        let text = self.files[file].clone();
        self.add("Read", json!({"file_path": file}), None, Some(text));
    }

    fn write(&mut self, file: &'static str, content: &str) {
        let look = self.replaced(file, content.to_owned());
        self.add("Write", json!({"file_path": file, "content": content}), Some(look), None);
    }

    fn edit(&mut self, file: &'static str, old: &str, new: &str) {
        let content = self.files[file].replace(old, new);
        let look = self.replaced(file, content);
        let arguments = json!({"file_path": file, "old_string": old, "new_string": new, "replace_all": true});
        self.add("Edit", arguments, Some(look), None);
    }

    /// A file has its old length or the new one.
    fn replaced(&mut self, file: &'static str, content: String) -> String {
        let new = content.len();
        let old = self.files.insert(file, content).map_or(String::new(), |old| old.len().to_string());
        assert_ne!(old, new.to_string(), "the lengths tell the contents apart");
        let length = format!("$(cat {file} 2>/dev/null | wc -c)");
        let old = if old.is_empty() { "0".to_owned() } else { old };
        format!("case {length} in {new}) echo done;; {old}) echo open;; *) echo torn;; esac")
    }

    /// Bash adds a line to a file: done twice it stands there twice.
    fn append(&mut self, number: usize, wait: &str) {
        let count = format!("$(grep -cx 'line {number}' log 2>/dev/null)");
        let look = format!("case {count} in 1) echo done;; 0|'') echo open;; *) echo twice;; esac");
        self.add("Bash", json!({"command": format!("{wait}echo 'line {number}' >>log")}), Some(look), None);
    }

    /// Bash makes several files, and may be met when it has made some of them.
    fn numbers(&mut self) {
        let command = "mkdir -p numbers; for n in 1 2 3 4 5; do echo $n >numbers/$n; sleep 0.003; done";
        let look =
            "case $(cat numbers/* 2>/dev/null | tr -d '\\n') in 12345) echo done;; *) echo open;; esac";
        self.add("Bash", json!({"command": command}), Some(look.to_owned()), None);
    }

    fn move_file(&mut self, from: &'static str, to: &'static str) {
        let content = self.files.remove(from).unwrap();
        self.files.insert(to, content);
        let look = format!("if test -e {to}; then echo done; else echo open; fi");
        self.add("Bash", json!({"command": format!("mv {from} {to}")}), Some(look), None);
    }

    /// How many replies there are in an undisturbed run.
    pub fn replies(&self) -> usize {
        self.turns.len() + 1
    }

    /// The reply to a request. Errors: what is wrong with the results that it holds.
    pub fn reply(&self, api: Api, body: &Value) -> Result<Reply, String> {
        // Of a request of this length cotter would warn that so few tokens cannot be all of it.
        let read = |count: usize| format!("\"input_tokens\":{count}");
        self.next(api, body).map(|reply| reply.replace(&read(2500), &read(20_000)))
    }

    fn next(&self, api: Api, body: &Value) -> Result<Reply, String> {
        let told = results(api, body);
        let steps: Vec<&Step> = self.turns.iter().flatten().collect();
        let mut states = vec![(State::Open, 0); steps.len()];
        for (id, text, is_error) in &told {
            let (kind, number) = parse(id).ok_or_else(|| format!("a result of an unknown call {id}"))?;
            let (state, count) = &mut states[number];
            *count += 1;
            *state = match text.starts_with("interrupted: ") {
                true => State::Interrupted,
                false => judge(kind, steps[number], text, *is_error).map_err(|why| format!("{id}: {why}"))?,
            };
        }
        let mut first = 0;
        for turn in &self.turns {
            let last = first + turn.len();
            let open: Vec<usize> = (first..last).filter(|number| states[*number].0 != State::Done).collect();
            if !open.is_empty() {
                let calls: Vec<(String, &str, String)> =
                    open.iter().map(|number| call(steps[*number], *number, states[*number])).collect();
                let calls: Vec<(&str, &str, &str)> =
                    calls.iter().map(|(id, tool, arguments)| (&**id, *tool, &**arguments)).collect();
                return Ok(asks(api, "Next.", &calls));
            }
            first = last;
        }
        Ok(answer(api, DONE))
    }
}

/// The kind and the number of the step in the id of a call.
fn parse(id: &str) -> Option<(&str, usize)> {
    let mut words = id.split('_');
    let (kind, number) = (words.next()?, words.next()?.parse().ok()?);
    Some((kind, number))
}

fn judge(kind: &str, step: &Step, text: &str, is_error: bool) -> Result<State, String> {
    match (kind, text.trim_end()) {
        ("look", "done") => Ok(State::Done),
        ("look", "open") => Ok(State::Open),
        ("step", _) if !is_error && step.result.as_deref().is_none_or(|expected| expected == text) => {
            Ok(State::Done)
        }
        _ => Err(format!("{} told {:?}", step.tool, text.chars().take(200).collect::<String>())),
    }
}

/// The call that takes a step on. Its id tells how many there were before, so that none is made twice.
fn call(step: &Step, number: usize, (state, count): (State, usize)) -> (String, &'static str, String) {
    let kind = if state == State::Interrupted && step.look.is_some() { "look" } else { "step" };
    let id = format!("{kind}_{number}_{count}");
    let noted = |command: &str| json!({"command": format!("echo {id} >>{JOURNAL}; {command}")}).to_string();
    match (&step.look, step.arguments["command"].as_str()) {
        (Some(look), _) if kind == "look" => {
            let arguments = noted(look);
            (id, "Bash", arguments)
        }
        (_, Some(command)) => {
            let arguments = noted(command);
            (id, "Bash", arguments)
        }
        _ => (id, step.tool, step.arguments.to_string()),
    }
}

/// The ids that were noted more than once.
pub fn repeated(journal: &str) -> Vec<String> {
    let mut counts = HashMap::new();
    journal.lines().for_each(|id| *counts.entry(id).or_insert(0) += 1);
    counts.into_iter().filter(|(_, count)| *count > 1).map(|(id, _)| id.to_owned()).collect()
}
