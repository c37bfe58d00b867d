//! The run's alarm: it rings when all waiting has to end, though what is waited for has not come.
//!
//! There is one, made at the start and handed to whoever waits: for a server, between two attempts, for a tool,
//! for standard input. With a client that writes letters, every wait is one for them too. Where nothing is set,
//! nobody makes a system call for it.

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::error::Error;
use crate::mailbox::Mailbox;

/// When waiting ends. A copy of it rings with the others.
#[derive(Debug, Clone, Default)]
pub struct Alarm {
    deadline: Option<Deadline>,
    /// Whose letters may interrupt.
    client: Option<Arc<Mailbox>>,
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
    /// The client wants the turn in progress to end.
    Interrupted,
}

impl Alarm {
    /// An alarm that rings after this time from now; one so long that no clock can tell never rings.
    pub fn after(limit: Duration) -> Alarm {
        let deadline = Instant::now().checked_add(limit).map(|at| Deadline { at, limit });
        Alarm { deadline, client: None }
    }

    /// Has it ring when this client interrupts, too.
    pub fn heed(&mut self, client: Arc<Mailbox>) {
        self.client = Some(client);
    }

    /// The client whose letters are waited for.
    pub fn client(&self) -> Option<&Mailbox> {
        self.client.as_deref()
    }

    /// What else to wait for: the client's next letter.
    pub fn source(&self) -> Option<BorrowedFd<'static>> {
        self.client()?.source()
    }

    /// Whether it can ring at all.
    pub fn is_set(&self) -> bool {
        self.deadline.is_some() || self.client.is_some()
    }

    /// Why waiting has to end now, if it has to.
    pub fn rung(&self) -> Option<Ring> {
        if let Some(client) = self.client() {
            client.look();
            if client.is_interrupted() {
                return Some(Ring::Interrupted);
            }
        }
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
        match self.client {
            None => std::thread::sleep(self.shortened(duration)),
            Some(_) => {
                let end = Instant::now().checked_add(self.shortened(duration));
                let left = || end.map_or(duration, |end| end.saturating_duration_since(Instant::now()));
                while !left().is_zero() && self.rung().is_none() {
                    // Errors of waiting are for whoever waits for something.
                    let _ = self.wait_for(None, Some(left()));
                }
            }
        }
        self.rung().map_or(Ok(()), Err)
    }

    /// Waits for one of the events of a file, or for nothing but letters, and takes in what the client writes
    /// meanwhile. No event: the time is over, or the alarm rang.
    pub fn wait_for(
        &self,
        file: Option<(BorrowedFd<'_>, PollFlags)>,
        limit: Option<Duration>,
    ) -> io::Result<PollFlags> {
        let end = limit.and_then(|limit| Instant::now().checked_add(self.shortened(limit)));
        let end = end.into_iter().chain(self.deadline.map(|deadline| deadline.at)).min();
        loop {
            // A limit too long for the kernel's type is as good as none.
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            let source = self.source();
            let mut polled: Vec<PollFd<'_>> =
                file.iter().map(|(file, events)| PollFd::from_borrowed_fd(*file, *events)).collect();
            polled.extend(source.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)));
            if polled.is_empty() && left.is_none() {
                return Ok(PollFlags::empty());
            }
            match poll(&mut polled, left.as_ref()) {
                Ok(0) => return Ok(PollFlags::empty()),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let events = file.map_or(PollFlags::empty(), |_| polled[0].revents());
            let has_mail = source.is_some() && polled.last().is_some_and(|last| !last.revents().is_empty());
            if let (true, Some(client)) = (has_mail, self.client()) {
                client.take();
                if client.is_interrupted() || file.is_none() {
                    return Ok(PollFlags::empty());
                }
            }
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }
}

impl Ring {
    /// The error that ends the run.
    pub fn error(self) -> Error {
        match self {
            Ring::Timeout(_) => Error::Time(format!("{self}: raise the limit or ask for less")),
            Ring::Interrupted => Error::Interrupted(self.to_string()),
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
            Ring::Interrupted => self.error(),
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
            Ring::Interrupted => formatter.write_str("interrupted by the user"),
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
