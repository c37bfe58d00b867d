//! The targets on mutated seeds, the same ones in every run: what a fuzzer would find soon is found without one.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many mutations of each seed are tried.
const TIMES: usize = 150;

/// Runs a target on its seeds and on what becomes of them by changes such as a fuzzer makes.
fn hold(target: &str, run: fn(&[u8])) {
    let place = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz");
    let seeds = fs::read(format!("{place}/seeds/{target}")).unwrap();
    let seeds: Vec<&[u8]> = seeds.split(|byte| *byte == 0x1D).collect();
    let words = dictionary(&fs::read_to_string(format!("{place}/dictionaries/{target}.dict")).unwrap());
    let mut random = Random(target.len() as u64);
    for seed in &seeds {
        tried(run, seed);
        let mut input = seed.to_vec();
        for time in 0..TIMES {
            // Changes gather for a while, so that some inputs are far from any seed.
            if time % 8 == 0 {
                input = seed.to_vec();
            }
            change(&mut input, &seeds, &words, &mut random);
            tried(run, &input);
        }
    }
    let _ = fs::remove_dir_all(super::folder(target));
}

fn tried(run: fn(&[u8]), input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| run(input))).is_err() {
        panic!("the input was \"{}\"", input.escape_ascii());
    }
}

struct Random(u64);

impl Random {
    /// A number below this one.
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }

    /// A part of something of this length.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let (one, other) = (self.below(length + 1), self.below(length + 1));
        one.min(other)..one.max(other)
    }
}

/// Changes an input in one place.
fn change(input: &mut Vec<u8>, seeds: &[&[u8]], words: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    match random.below(7) {
        0 | 1 => {
            input.splice(at..at, words[random.below(words.len())].iter().copied());
        }
        2 => {
            let word = &words[random.below(words.len())];
            input.splice(at..(at + word.len()).min(input.len()), word.iter().copied());
        }
        3 => {
            let part = random.range(input.len().min(at + 12) - at);
            input.drain(at + part.start..at + part.end);
        }
        4 => {
            let part = input[random.range(input.len())].to_vec();
            input.splice(at..at, part);
        }
        5 => {
            let seed = seeds[random.below(seeds.len())];
            let part = &seed[random.range(seed.len())];
            input.splice(at..at, part.iter().copied());
        }
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.below(256) as u8;
            }
        }
    }
    input.truncate(20_000);
}

/// The words of a dictionary as fuzzers write them: one a line in quotes, odd bytes as `\xNN`.
fn dictionary(text: &str) -> Vec<Vec<u8>> {
    let word = |line: &str| {
        let mut word = Vec::new();
        let mut letters = line.trim_matches('"').bytes();
        while let Some(letter) = letters.next() {
            match (letter, letter == b'\\') {
                (_, true) => match letters.next() {
                    Some(b'x') => {
                        let digits = [letters.next().unwrap(), letters.next().unwrap()];
                        word.push(u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap());
                    }
                    other => word.extend(other),
                },
                (letter, false) => word.push(letter),
            }
        }
        word
    };
    text.lines().map(word).collect()
}

/// The crate is built by hand alone: what it needs is looked at here.
#[test]
fn the_crate_of_targets_is_as_the_program_and_whole() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |name: &str| fs::read_to_string(format!("{root}/{name}")).unwrap();
    let (program, targets) = (read("Cargo.toml"), read("fuzz/Cargo.toml"));
    let needed = program.split("\n[").find_map(|part| part.strip_prefix("dependencies]\n")).unwrap();
    for line in needed.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert!(targets.contains(line), "fuzz/Cargo.toml does not hold: {line}");
    }
    for file in fs::read_dir(format!("{root}/fuzz/fuzz_targets")).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        let name = file.strip_suffix(".rs").unwrap();
        assert!(targets.contains(&format!("name = \"{name}\"\npath = \"fuzz_targets/{file}\"")), "{name}");
        let calls = format!("|bytes: &[u8]| cotter::targets::{name}::run(bytes)");
        assert!(read(&format!("fuzz/fuzz_targets/{file}")).contains(&calls), "{name}");
        assert!(include_str!("tests.rs").contains(&format!("hold(\"{name}\"")), "{name} runs in no test");
        let row = format!("`{name}`");
        assert!(read("fuzz/README.md").contains(&row), "{name} is not in fuzz/README.md");
    }
}

#[test]
fn anthropic_holds_for_mutated_seeds() {
    hold("anthropic", super::anthropic::run);
}

#[test]
fn arguments_holds_for_mutated_seeds() {
    hold("arguments", super::arguments::run);
}

#[test]
fn completions_holds_for_mutated_seeds() {
    hold("completions", super::completions::run);
}

#[test]
fn edit_holds_for_mutated_seeds() {
    hold("edit", super::edit::run);
}

#[test]
fn front_matter_holds_for_mutated_seeds() {
    hold("front_matter", super::front_matter::run);
}

#[test]
fn imports_holds_for_mutated_seeds() {
    hold("imports", super::imports::run);
}

#[test]
fn letters_holds_for_mutated_seeds() {
    hold("letters", super::letters::run);
}

#[test]
fn output_holds_for_mutated_seeds() {
    hold("output", super::output::run);
}

#[test]
fn permissions_holds_for_mutated_seeds() {
    hold("permissions", super::permissions::run);
}

#[test]
fn prompt_holds_for_mutated_seeds() {
    hold("prompt", super::prompt::run);
}

#[test]
fn read_holds_for_mutated_seeds() {
    hold("read", super::read::run);
}

#[test]
fn recording_holds_for_mutated_seeds() {
    hold("recording", super::recording::run);
}

#[test]
fn refusal_holds_for_mutated_seeds() {
    hold("refusal", super::refusal::run);
}

#[test]
fn schema_holds_for_mutated_seeds() {
    hold("schema", super::schema::run);
}

#[test]
fn session_holds_for_mutated_seeds() {
    hold("session", super::session::run);
}

#[test]
fn sse_holds_for_mutated_seeds() {
    hold("sse", super::sse::run);
}

#[test]
fn text_calls_holds_for_mutated_seeds() {
    hold("text_calls", super::text_calls::run);
}
