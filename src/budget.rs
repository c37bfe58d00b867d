//! What a run may take and what it has taken: replies, calls, tokens and money. Time is the alarm's.
//!
//! A limit that is gone beyond ends the run, in the middle of a reply too. Turns count from the user's last
//! message, everything else over the whole run: one session of several messages spends one budget.

use std::cmp::Ordering;

use crate::alarm::Alarm;
use crate::cost::{Cost, Price};
use crate::error::Error;
use crate::provider::{Spent, Stated, Usage, prices};

/// The limits and what they are measured by.
#[derive(Debug, Default, Clone)]
pub struct Limits {
    /// How many replies there may be to one message of the user's.
    pub turns: Option<u32>,
    /// How many calls may be run.
    pub tool_calls: Option<u32>,
    /// How many tokens may be read and written in all.
    pub tokens: Option<u64>,
    /// What all replies may cost.
    pub cost: Option<Cost>,
    /// What tokens cost, in place of what a server says and of what is known here.
    pub price: Option<Price>,
    /// Whether a cost that is not known counts as none: a server on this machine sends no bill.
    pub unknown_is_free: bool,
}

/// What one model was asked for in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpending {
    /// The model as it was asked for.
    pub model: String,
    /// Its tokens.
    pub usage: Usage,
    /// What it cost; absent if that is not known of one of its replies.
    pub cost: Option<Cost>,
}

/// The state of a run's budget.
#[derive(Debug, Default)]
pub struct Budget {
    limits: Limits,
    alarm: Alarm,
    /// Since the user's last message.
    turns: u32,
    /// Likewise.
    turn_usage: Usage,
    tool_calls: u32,
    /// A guess of the tokens of replies to which the server gave no count.
    guessed_tokens: u64,
    /// All costs that are known.
    known_cost: Cost,
    /// Whether a reply broke off before anything was said of what it took.
    has_uncounted: bool,
    /// The model of a reply whose cost is not known, if there was one.
    unpriced: Option<String>,
    /// Whether it was said that the limit to the cost limits nothing.
    told_no_cost: bool,
    /// In the order in which models were first asked.
    models: Vec<ModelSpending>,
}

impl Budget {
    /// Nothing taken yet.
    pub fn new(limits: Limits, alarm: Alarm) -> Budget {
        Budget { limits, alarm, ..Budget::default() }
    }

    /// Begins the answer to another message of the user's.
    pub fn begin_turn(&mut self) {
        (self.turns, self.turn_usage) = (0, Usage::default());
    }

    /// The replies since the user's last message.
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// The tokens of all replies since the user's last message.
    pub fn turn_usage(&self) -> Usage {
        self.turn_usage
    }

    /// The tokens of all replies.
    pub fn usage(&self) -> Usage {
        let mut sum = Usage::default();
        self.models.iter().for_each(|spending| sum.add(spending.usage));
        sum
    }

    /// What all replies cost; absent if that is not known of one of them.
    pub fn cost(&self) -> Option<Cost> {
        (self.unpriced.is_none() && !self.has_uncounted).then_some(self.known_cost)
    }

    /// The same for each model.
    pub fn models(&self) -> &[ModelSpending] {
        &self.models
    }

    /// Whether there is anything left for another request.
    pub fn check_request(&self) -> Result<(), Error> {
        if let Some(most) = self.limits.turns
            && self.turns >= most
        {
            let turns = if most == 1 { "turn" } else { "turns" };
            return Err(Error::Turns(format!(
                "the answer is not finished after {most} {turns} (--max-turns): raise the limit or ask for less"
            )));
        }
        self.check_time()?;
        self.check(self.tokens(), self.known_cost, Ordering::is_ge)
    }

    /// Whether a call may be run, which counts from here.
    pub fn take_call(&mut self) -> Result<(), Error> {
        self.check_time()?;
        if let Some(most) = self.limits.tool_calls
            && self.tool_calls >= most
        {
            let calls = if most == 1 { "call" } else { "calls" };
            return Err(Error::ToolCalls(format!(
                "the run has made {} of {} tool {calls} (--max-tool-calls): raise the limit or ask for less",
                grouped(self.tool_calls.into()),
                grouped(most.into())
            )));
        }
        self.tool_calls += 1;
        Ok(())
    }

    /// Whether a reply may go on that has come to this.
    pub fn check_reply(&self, model: &str, spent: &Spent) -> Result<(), Error> {
        if self.limits.tokens.is_none() && self.limits.cost.is_none() {
            return Ok(());
        }
        let cost = self.cost_of(model, spent).unwrap_or_default();
        let tokens = self.tokens().saturating_add(spent.usage.total());
        self.check(tokens, self.known_cost.plus(cost), Ordering::is_gt)
    }

    /// Counts a whole reply. Where the server gave no count, about so many bytes went and came.
    pub fn take_reply(&mut self, model: &str, spent: &Spent, bytes: usize) {
        self.turns += 1;
        self.take_summary(model, spent, bytes);
    }

    /// The same for a reply that is no turn: it has only made room for the next.
    pub fn take_summary(&mut self, model: &str, spent: &Spent, bytes: usize) {
        const BYTES_PER_TOKEN: u64 = 4;
        if spent.usage.total() == 0 {
            self.guessed_tokens = self.guessed_tokens.saturating_add(bytes as u64 / BYTES_PER_TOKEN);
        }
        self.take(model, spent);
    }

    /// Counts what was reported of a reply that did not come to its end; it was paid for all the same.
    pub fn take_part(&mut self, model: &str, spent: &Spent) {
        match *spent == Spent::default() {
            true => self.has_uncounted = true,
            false => self.take(model, spent),
        }
    }

    /// Whether what was taken is within the limits, and known where there is a limit to it.
    pub fn check_spent(&self) -> Result<(), Error> {
        match &self.unpriced {
            Some(model) if self.limits.cost.is_some() && !self.limits.unknown_is_free => {
                Err(Error::Cost(format!(
                    "the cost of a reply by \"{model}\" is not known, which --max-budget-usd needs: pass its --price"
                )))
            }
            _ => self.check(self.tokens(), self.known_cost, Ordering::is_gt),
        }
    }

    /// Says, once, that the limit to the cost limits nothing, since what is not known counts as none.
    pub fn tell_no_cost(&mut self) -> Option<&'static str> {
        let is_void = self.limits.cost.is_some() && self.limits.unknown_is_free && self.unpriced.is_some();
        if !is_void || std::mem::replace(&mut self.told_no_cost, true) {
            return None;
        }
        Some(match self.limits.price {
            Some(_) => {
                "--max-budget-usd has no effect here: the server is on this machine and counts no tokens"
            }
            None => {
                "--max-budget-usd has no effect here: the server is on this machine and names no cost; \
                 give --price to count one"
            }
        })
    }

    fn take(&mut self, model: &str, spent: &Spent) {
        let (usage, cost) = (spent.usage, self.cost_of(model, spent));
        self.turn_usage.add(usage);
        match cost {
            Some(cost) => self.known_cost = self.known_cost.plus(cost),
            None => self.unpriced = Some(model.to_owned()),
        }
        match self.models.iter_mut().find(|spending| spending.model == model) {
            Some(spending) => {
                spending.usage.add(usage);
                spending.cost = spending.cost.zip(cost).map(|(sum, cost)| sum.plus(cost));
            }
            None => self.models.push(ModelSpending { model: model.to_owned(), usage, cost }),
        }
    }

    /// What the user says goes before what the server says: it is how a wrong figure, or one that leaves
    /// something out, is put right. What is known here goes last: it may be out of date.
    fn cost_of(&self, model: &str, spent: &Spent) -> Option<Cost> {
        let by = |price: Price| (spent.usage.total() > 0).then(|| price.cost(spent.usage));
        match (self.limits.price, &spent.stated) {
            (Some(price), _) => by(price),
            (None, Stated::Cost(cost)) => Some(*cost),
            (None, Stated::Unusable(_)) => None,
            (None, Stated::Nothing) => prices::of(model, spent.usage).and_then(by),
        }
    }

    fn tokens(&self) -> u64 {
        self.usage().total().saturating_add(self.guessed_tokens)
    }

    fn check_time(&self) -> Result<(), Error> {
        self.alarm.rung().map_or(Ok(()), |ring| Err(ring.error()))
    }

    fn check(&self, tokens: u64, cost: Cost, is_too_much: fn(Ordering) -> bool) -> Result<(), Error> {
        match (self.limits.tokens, self.limits.cost) {
            (Some(most), _) if is_too_much(tokens.cmp(&most)) => Err(Error::Tokens(format!(
                "the run has used {}{} of {} tokens (--max-total-tokens): raise the limit or ask for less",
                if self.guessed_tokens > 0 { "about " } else { "" },
                grouped(tokens),
                grouped(most)
            ))),
            (_, Some(most)) if is_too_much(cost.cmp(&most)) => Err(Error::Cost(format!(
                "the run has cost {cost} of {most} (--max-budget-usd): raise the limit or ask for less"
            ))),
            _ => Ok(()),
        }
    }
}

/// A number with a comma before each three digits: limits have many zeros.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn budget(limits: Limits) -> Budget {
        Budget::new(limits, Alarm::default())
    }

    fn tokens(input: u64, output: u64) -> Spent {
        Spent { usage: Usage { input, output, ..Usage::default() }, stated: Stated::Nothing }
    }

    fn dollars(amount: &str) -> Spent {
        Spent { stated: Stated::Cost(Cost::parse(amount).unwrap()), ..tokens(1, 1) }
    }

    #[track_caller]
    fn refused(checked: Result<(), Error>) -> (u8, String) {
        let error = checked.unwrap_err();
        (error.exit_code(), error.to_string())
    }

    #[test]
    fn turns_count_from_the_last_message_and_everything_else_from_the_start() {
        let mut budget = budget(Limits { turns: Some(1), tool_calls: Some(1), ..Limits::default() });
        budget.begin_turn();
        assert!(budget.check_request().is_ok() && budget.take_call().is_ok());
        budget.take_reply("m", &tokens(3, 4), 0);
        let why = "the answer is not finished after 1 turn (--max-turns): raise the limit or ask for less";
        assert_eq!(refused(budget.check_request()), (20, why.to_owned()));
        budget.begin_turn();
        assert!(budget.check_request().is_ok());
        assert_eq!((budget.turns(), budget.usage().total()), (0, 7));
        let why = "the run has made 1 of 1 tool call (--max-tool-calls): raise the limit or ask for less";
        assert_eq!(refused(budget.take_call()), (21, why.to_owned()));
    }

    #[test]
    fn a_limit_may_be_reached_but_not_gone_beyond_and_nothing_is_asked_with_none_left() {
        let mut budget = budget(Limits { tokens: Some(1_000), ..Limits::default() });
        let rest = tokens(900, 100);
        assert!(budget.check_request().is_ok() && budget.check_reply("m", &rest).is_ok());
        let why = "the run has used 1,234,001 of 1,000 tokens (--max-total-tokens): raise the limit or ask for less";
        assert_eq!(refused(budget.check_reply("m", &tokens(1_234_000, 1))), (22, why.to_owned()));
        budget.take_reply("m", &rest, 0);
        assert!(budget.check_spent().is_ok());
        let why =
            "the run has used 1,000 of 1,000 tokens (--max-total-tokens): raise the limit or ask for less";
        assert_eq!(refused(budget.check_request()), (22, why.to_owned()));
        budget.take_part("m", &tokens(1, 0));
        assert_eq!(refused(budget.check_spent()).0, 22);
    }

    #[test]
    fn tokens_that_a_server_does_not_count_are_guessed_for_the_limit_alone() {
        let mut budget = budget(Limits { tokens: Some(10), ..Limits::default() });
        budget.take_reply("m", &Spent::default(), 44);
        assert_eq!(budget.usage(), Usage::default());
        let why =
            "the run has used about 11 of 10 tokens (--max-total-tokens): raise the limit or ask for less";
        assert_eq!(refused(budget.check_spent()), (22, why.to_owned()));
    }

    #[test]
    fn a_cost_is_what_the_user_says_else_what_the_server_says_else_what_is_known() {
        let usage = Usage { input: 1_000_000, ..Usage::default() };
        let opus = "claude-opus-4-6";
        let price = Price::parse("7,0");
        let said = Stated::Cost(Cost::parse("3").unwrap());
        let odd = Stated::Unusable("\"3\"".to_owned());
        for (price, stated, model, expected) in [
            (price, &said, opus, Some("$7")),
            (price, &odd, "m", Some("$7")),
            (None, &said, opus, Some("$3")),
            (None, &odd, opus, None),
            (None, &Stated::Nothing, opus, Some("$5")),
            (None, &Stated::Nothing, "m", None),
        ] {
            let mut budget = budget(Limits { price, ..Limits::default() });
            budget.take_reply(model, &Spent { usage, stated: stated.clone() }, 0);
            assert_eq!(budget.cost().map(|cost| cost.to_string()).as_deref(), expected, "{stated:?} {model}");
        }
        // A price is of no use where there is no count.
        let mut budget = budget(Limits { price, ..Limits::default() });
        assert_eq!(budget.cost(), Some(Cost::default()));
        budget.take_reply(opus, &Spent::default(), 0);
        assert_eq!(budget.cost(), None);
    }

    #[test]
    fn money_that_is_spent_or_unknown_ends_the_run() {
        let limits = Limits { cost: Cost::parse("0.05"), ..Limits::default() };
        let mut known = budget(limits.clone());
        assert!(known.check_reply("m", &dollars("0.05")).is_ok());
        let why = "the run has cost $0.0512 of $0.05 (--max-budget-usd): raise the limit or ask for less";
        assert_eq!(refused(known.check_reply("m", &dollars("0.0512"))), (23, why.to_owned()));
        known.take_reply("m", &dollars("0.0512"), 0);
        assert_eq!(refused(known.check_spent()), (23, why.to_owned()));

        let mut unknown = budget(limits.clone());
        unknown.take_reply("m", &tokens(1, 1), 0);
        let why = "the cost of a reply by \"m\" is not known, which --max-budget-usd needs: pass its --price";
        assert_eq!(refused(unknown.check_spent()), (23, why.to_owned()));

        let mut local = budget(Limits { unknown_is_free: true, ..limits });
        local.take_reply("m", &tokens(1, 1), 0);
        assert!(local.check_spent().is_ok() && local.check_request().is_ok());
        assert_eq!(local.cost(), None);
    }

    #[test]
    fn each_model_has_an_account_of_its_own() {
        let mut budget = budget(Limits::default());
        budget.take_reply("a", &dollars("0.1"), 0);
        budget.take_reply("b", &tokens(2, 2), 0);
        budget.take_reply("a", &dollars("0.2"), 0);
        let account = |model: &str, usage: Spent, cost: Option<&str>| ModelSpending {
            model: model.to_owned(),
            usage: usage.usage,
            cost: cost.and_then(Cost::parse),
        };
        assert_eq!(
            budget.models(),
            [account("a", tokens(2, 2), Some("0.3")), account("b", tokens(2, 2), None)]
        );
        assert_eq!(budget.cost(), None);
    }

    #[test]
    fn time_ends_a_run_before_a_request_and_before_a_call() {
        let mut late = Budget::new(Limits::default(), Alarm::after(Duration::ZERO));
        let why = "the run's 0 s are over (--timeout): raise the limit or ask for less";
        assert_eq!(refused(late.check_request()), (24, why.to_owned()));
        assert_eq!(refused(late.take_call()), (24, why.to_owned()));
    }

    #[test]
    fn long_numbers_are_grouped() {
        let found = [0, 999, 1_000, 123_456, 1_234_567].map(grouped);
        assert_eq!(found, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }
}
