//! What gives way and what never does, over many conversations made by chance from fixed seeds.

use std::collections::HashSet;

use super::*;
use crate::conversation::{Call, CallResult, Conversation, Image, Reading};

/// Numbers that look random and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most
    }
}

fn call(id: String) -> Call {
    Call { id, name: "Read".to_owned(), arguments: "{}".to_owned(), refusal: None, extra: None }
}

/// A conversation with its lines as a session file would have them, and the message of its last prompt.
fn talk(chance: &mut Chance) -> (Conversation, Vec<String>, usize) {
    let mut conversation = Conversation::default();
    conversation.add_user("the first prompt");
    let mut prompt_at = 0;
    for turn in 0..chance.below(12) {
        if chance.below(4) == 0 {
            conversation.add_reply(vec![Part::Text("an answer".to_owned())], "test");
            prompt_at = conversation.messages().len();
            conversation.add_user(vec![Part::Text(format!("prompt {turn}")), Part::Text("x".repeat(3000))]);
            continue;
        }
        let count = 1 + chance.below(3);
        let mut parts = vec![Part::Text("y".repeat(chance.below(4000)))];
        parts.extend((0..count).map(|index| Part::Call(call(format!("call_{turn}_{index}")))));
        let calls = conversation.add_reply(parts, "test");
        conversation.add_results(
            calls
                .into_iter()
                .map(|call| CallResult {
                    call_id: call.id,
                    text: "z".repeat(1 + chance.below(9000)),
                    images: vec![Image::new("image/png", b"\x89PNG"); chance.below(2)],
                    is_error: chance.below(5) == 0,
                })
                .collect(),
        );
    }
    let lines = conversation.new_lines();
    (conversation, lines, prompt_at)
}

/// Each call has its one result, in order, in the message right after it.
fn check_pairs(messages: &[Message]) {
    let results = |message: &Message| -> Vec<String> {
        let parts = message.parts.iter().filter_map(|part| match part {
            Part::Result(result) => Some(result.call_id.clone()),
            _ => None,
        });
        parts.collect()
    };
    assert_eq!(messages[0].role, Role::User);
    assert_eq!(results(&messages[0]), [] as [&str; 0]);
    for pair in messages.windows(2) {
        assert_ne!(pair[0].role, pair[1].role);
        let calls: Vec<String> = pair[0].calls().map(|call| call.id.clone()).collect();
        if pair[0].role == Role::Assistant {
            assert_eq!(calls, results(&pair[1]));
        }
    }
}

fn read_back(lines: &[String]) -> Conversation {
    let mut reading = Reading::default();
    lines.iter().for_each(|line| reading.line(line.as_bytes()));
    let (conversation, left_out) = reading.finish();
    assert_eq!(left_out, []);
    conversation
}

#[test]
fn results_give_way_oldest_first_and_the_last_replies_stay_to_the_byte() {
    let mut chance = Chance(1);
    for _ in 0..120 {
        let (mut conversation, mut lines, _) = talk(&mut chance);
        let before = conversation.messages().to_vec();
        let all = weight(&before);
        let (replies, goal) = (chance.below(4), chance.below(40_000) as u64);
        let cut = results(&before, replies, all, goal);
        conversation.cut_results(&cut.iter().map(String::as_str).collect());
        let after = conversation.messages();
        check_pairs(after);
        assert_eq!(before.len(), after.len());
        assert_eq!(before[0], after[0]);
        let kept = match replies {
            0 => before.len(),
            _ => tail(&before, replies).unwrap_or(0),
        };
        assert_eq!(before[kept..], after[kept..]);
        for (before, after) in before.iter().zip(after).filter(|(message, _)| message.role == Role::Assistant)
        {
            assert_eq!(before, after);
        }
        // No more is cut than is needed: without the last one there would be too much.
        if let Some((last, others)) = cut.split_last() {
            let mut less = read_back(&lines);
            less.cut_results(&others.iter().map(String::as_str).collect());
            assert!(weight(less.messages()) > goal, "{last}");
        }
        lines.push(crate::conversation::cuts::line_of_results(&cut));
        assert_eq!(read_back(&lines).messages(), after);
        // What was cut is not cut again.
        let again: HashSet<String> = results(after, replies, weight(after), 0).into_iter().collect();
        assert!(cut.iter().all(|id| !again.contains(id)));
    }
}

#[test]
fn a_summary_keeps_the_first_prompt_the_last_one_and_the_last_replies() {
    let mut chance = Chance(2);
    let mut count = 0;
    for _ in 0..120 {
        let (mut conversation, mut lines, mut prompt_at) = talk(&mut chance);
        for summary in ["one", "two"] {
            let before = conversation.messages().to_vec();
            let Some(from) = tail(&before, 1 + chance.below(3)).filter(|from| *from > 1) else { continue };
            count += 1;
            let parts = beginning(&before, prompt_at, from, summary);
            let kept = before.len() - from;
            conversation.begin_with(parts.clone(), kept).unwrap();
            let after = conversation.messages();
            check_pairs(after);
            assert_eq!(after[1..], before[from..]);
            assert_eq!(after[0].parts, parts);
            assert_eq!(parts[0], Part::Text("the first prompt".to_owned()));
            let is_summary = |part: &&Part| matches!(part, Part::Text(text) if text.starts_with(SUMMARY));
            assert_eq!(parts.iter().filter(is_summary).count(), 1);
            let last = &before[prompt_at].parts;
            if prompt_at > 0 && prompt_at < from {
                assert_eq!(parts[2..], last[..]);
            }
            prompt_at = (prompt_at + 1).saturating_sub(from);
            lines.push(crate::conversation::cuts::line_of_beginning(&parts, kept));
            assert_eq!(read_back(&lines).messages(), after);
            assert_eq!(conversation.new_lines(), [] as [&str; 0]);
        }
    }
    assert!(count > 60, "{count}");
}

#[test]
fn a_last_prompt_that_was_kept_behind_a_summary_is_kept_behind_the_next() {
    let mut conversation = Conversation::default();
    let reply = |conversation: &mut Conversation| {
        conversation.add_reply(vec![Part::Text("so".to_owned())], "test");
        conversation.add_user("on");
    };
    conversation.add_user("first");
    reply(&mut conversation);
    reply(&mut conversation);
    let texts = |parts: &[Part]| -> Vec<String> {
        parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                part => panic!("{part:?}"),
            })
            .collect()
    };
    let parts = beginning(conversation.messages(), 2, 3, " one\n");
    let expected =
        |text: &str| ["first".to_owned(), format!("{SUMMARY}\n{text}\n{LAST_PROMPT}"), "on".to_owned()];
    assert_eq!(texts(&parts), expected("one"));
    conversation.begin_with(parts, 2).unwrap();
    reply(&mut conversation);
    let parts = beginning(conversation.messages(), 0, 3, "two");
    assert_eq!(texts(&parts), expected("two"));
    // Where the first prompt is the last, it stands once.
    let parts = beginning(&conversation.messages()[..1], 5, 5, "x");
    assert_eq!(texts(&parts), ["first".to_owned(), format!("{SUMMARY}\nx\n{END}")]);
}

#[test]
fn the_fill_is_the_servers_count_and_a_guess_of_what_was_added() {
    let mut fill = Fill::default();
    assert_eq!(fill.of(900), 900);
    fill.measure(0, 500);
    assert_eq!(fill.of(900), 900);
    fill.measure(10_000, 5000);
    assert_eq!([fill.of(5000), fill.of(5100), fill.of(2500), fill.of(0)], [10_000, 10_100, 5000, 0]);
    assert_eq!(fill.weight_of(5000, 5000), 2500);
    assert_eq!(fill.weight_of(50_000, 5000), 5000);
    assert_eq!(fill.share(1000, 5000), 2000);
    fill.cut(5000, 1000);
    assert_eq!([fill.of(1000), fill.of(1100)], [2000, 2100]);
    fill.measure(u64::MAX, 1);
    assert_eq!(fill.of(1), u64::MAX);
    assert_eq!(Fill::default().weight_of(5, 0), 0);
}

#[test]
fn room_is_made_before_the_window_is_full_and_in_a_large_step() {
    assert_eq!([limit(200_000, None), goal(200_000), enough(200_000, None)], [170_000, 100_000, 133_332]);
    assert_eq!([limit(200_000, Some(64_000)), enough(200_000, Some(64_000))], [136_000, 133_332]);
    assert_eq!([limit(8192, Some(8000)), enough(8192, Some(8000))], [4096, 4096]);
}

#[test]
fn what_cannot_grow_is_weighed_once() {
    for seed in 0..50 {
        let (conversation, _, _) = talk(&mut Chance(seed));
        let messages = conversation.messages();
        let mut weighed = Weighed::default();
        for count in 1..=messages.len() {
            weighed.keep(&messages[..count]);
            assert_eq!(weighed.of(&messages[..count]), weight(&messages[..count]), "seed {seed}");
            assert_eq!(weighed.of(messages), weight(messages), "seed {seed}");
        }
        // Only the last one is looked at again: the others need not even be the same.
        let (last, before) = messages.split_last().unwrap();
        let others = vec![Message { role: Role::User, parts: Vec::new(), origin: None }; before.len()];
        let changed = [others, vec![last.clone()]].concat();
        assert_eq!(weighed.of(&changed), weight(messages), "seed {seed}");
    }
}
