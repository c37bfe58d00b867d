//! Lines that a person types at a terminal. The kernel edits them; nothing of the terminal is changed, so Ctrl-C
//! ends the process as it does any other.

use rustix::event::PollFlags;

use crate::alarm::Alarm;
use crate::error::Error;
use crate::output::Output;

/// What a person has typed, as far as it is no whole line yet.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    has_ended: bool,
}

/// What is typed next.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// This, which is not empty.
    Said(String),
    /// Nothing more: the end of the input, or the word for it.
    End,
}

/// The lines that end a session.
const EXITS: [&str; 4] = ["/exit", "/quit", "exit", "quit"];
/// Stands before what is typed, and before a line that goes on.
const SIGN: &str = "> ";
const GOES_ON: &str = "… ";

impl Lines {
    /// Waits for the next line, or for several of which all but the last end with a backslash.
    ///
    /// # Errors
    ///
    /// The terminal is gone, or the alarm rang.
    pub fn next(&mut self, alarm: &Alarm, output: &mut Output) -> Result<Line, Error> {
        let mut said = String::new();
        let mut sign = SIGN;
        loop {
            output.sign(sign)?;
            let Some(line) = self.line(alarm)? else {
                // The sign's line is ended in place of the one that was not typed.
                output.sign("\n")?;
                return Ok(match said.trim().is_empty() {
                    true => Line::End,
                    false => Line::Said(said),
                });
            };
            let Ok(line) = String::from_utf8(line) else {
                output.notice("what was typed is not UTF-8 and was not sent");
                (said, sign) = (String::new(), SIGN);
                continue;
            };
            match line.strip_suffix('\\') {
                Some(line) => {
                    said.push_str(line);
                    said.push('\n');
                    sign = GOES_ON;
                    continue;
                }
                None => said.push_str(&line),
            }
            match said.trim() {
                "" => (said, sign) = (String::new(), SIGN),
                word if EXITS.contains(&word) => return Ok(Line::End),
                _ => return Ok(Line::Said(said)),
            }
        }
    }

    /// The next line without its end; none if there is none. Ctrl-D within a line hands on what there is of it.
    fn line(&mut self, alarm: &Alarm) -> Result<Option<Vec<u8>>, Error> {
        let failed = |error: std::io::Error| Error::Internal(format!("cannot read the terminal: {error}"));
        let mut chunk = [0; 4096];
        loop {
            if let Some(length) = self.begun.iter().position(|byte| *byte == b'\n') {
                let rest = self.begun.split_off(length + 1);
                let mut line = std::mem::replace(&mut self.begun, rest);
                line.pop();
                return Ok(Some(line));
            }
            if self.has_ended {
                let line = std::mem::take(&mut self.begun);
                return Ok((!line.is_empty()).then_some(line));
            }
            let stdin = rustix::stdio::stdin();
            alarm.wait_for(Some((stdin, PollFlags::IN)), None).map_err(failed)?;
            if let Some(ring) = alarm.rung() {
                return Err(ring.error());
            }
            match rustix::io::read(stdin, &mut chunk) {
                Ok(0) => self.has_ended = true,
                Ok(count) => self.begun.extend_from_slice(&chunk[..count]),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
                // The terminal has been hung up.
                Err(rustix::io::Errno::IO) => self.has_ended = true,
                Err(error) => return Err(failed(error.into())),
            }
        }
    }
}
