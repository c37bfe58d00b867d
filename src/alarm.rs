//! The run's alarm: it rings when all waiting has to end, though what is waited for has not come.
//!
//! There is one, made at the start and handed to whoever waits: for a server, between two attempts, for a tool,
//! for standard input. Where it is not set, nobody makes a system call for it.

use std::fmt;
use std::time::{Duration, Instant};

use crate::error::Error;

/// When waiting ends. A copy of it rings with the others.
#[derive(Debug, Clone, Default)]
pub struct Alarm {
    deadline: Option<Deadline>,
}

#[derive(Debug, Clone, Copy)]
struct Deadline {
    at: Instant,
    /// How long the run may take, for the message.
    limit: Duration,
}

/// Why waiting has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ring {
    /// The run has taken as long as it may (`--timeout`).
    Timeout(Duration),
}

impl Alarm {
    /// An alarm that rings after this time from now; one so long that no clock can tell never rings.
    pub fn after(limit: Duration) -> Alarm {
        Alarm { deadline: Instant::now().checked_add(limit).map(|at| Deadline { at, limit }) }
    }

    /// Whether it can ring at all.
    pub fn is_set(&self) -> bool {
        self.deadline.is_some()
    }

    /// Why waiting has to end now, if it has to.
    pub fn rung(&self) -> Option<Ring> {
        let deadline = self.deadline?;
        (Instant::now() >= deadline.at).then_some(Ring::Timeout(deadline.limit))
    }

    /// The longest that may be waited before [`Alarm::rung`] is asked again: `limit`, or what is left.
    pub fn shortened(&self, limit: Duration) -> Duration {
        match self.deadline {
            Some(deadline) => limit.min(deadline.at.saturating_duration_since(Instant::now())),
            None => limit,
        }
    }

    /// Whether so long a wait can come to its end: one that cannot is not worth beginning.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub fn may_sleep(&self, duration: Duration) -> Result<(), Ring> {
        match self.deadline {
            Some(deadline) if self.shortened(duration) < duration => Err(Ring::Timeout(deadline.limit)),
            _ => Ok(()),
        }
    }

    /// Waits for nothing but the time to pass.
    ///
    /// # Errors
    ///
    /// Why it was not waited to the end.
    pub fn sleep(&self, duration: Duration) -> Result<(), Ring> {
        std::thread::sleep(self.shortened(duration));
        self.rung().map_or(Ok(()), Err)
    }
}

impl Ring {
    /// The error that ends the run.
    pub fn error(self) -> Error {
        match self {
            Ring::Timeout(_) => Error::Time(format!("{self}: raise the limit or ask for less")),
        }
    }

    /// The same where a trouble would have been waited out for so long.
    pub fn error_of_wait(self, trouble: &Error, wait: Duration) -> Error {
        let wait = wait.as_secs_f64();
        match self {
            Ring::Timeout(limit) => Error::Time(format!(
                "{trouble}; not asked again: the wait of {wait:.1} s would outlast the run's {} s (--timeout)",
                limit.as_secs_f64()
            )),
        }
    }
}

/// As a reason: it completes "Bash did not finish: …".
impl fmt::Display for Ring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ring::Timeout(limit) => {
                write!(formatter, "the run's {} s are over (--timeout)", limit.as_secs_f64())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_that_is_not_set_never_rings_and_shortens_nothing() {
        for alarm in [Alarm::default(), Alarm::after(Duration::MAX)] {
            assert!(!alarm.is_set());
            assert_eq!(alarm.rung(), None);
            assert_eq!(alarm.shortened(Duration::MAX), Duration::MAX);
        }
    }

    #[test]
    fn it_rings_once_its_time_is_over_and_shortens_what_is_longer() {
        let over = Alarm::after(Duration::ZERO);
        assert_eq!(over.rung(), Some(Ring::Timeout(Duration::ZERO)));
        assert_eq!(over.shortened(Duration::from_secs(9)), Duration::ZERO);
        let hour = Duration::from_secs(3600);
        let later = Alarm::after(hour);
        assert_eq!(later.rung(), None);
        assert_eq!(later.shortened(Duration::from_secs(9)), Duration::from_secs(9));
        assert!(later.shortened(Duration::from_secs(7200)) <= hour);
        assert_eq!(later.may_sleep(Duration::from_secs(7200)), Err(Ring::Timeout(hour)));
        assert_eq!((later.may_sleep(Duration::ZERO), later.sleep(Duration::ZERO)), (Ok(()), Ok(())));
        assert_eq!(over.sleep(hour), Err(Ring::Timeout(Duration::ZERO)));
    }
}
