//! What happened to a message: its failed attempts, its last error, its checkpoint, who brought it back.

use std::collections::VecDeque;
use std::fmt;

use crate::lease::ConsumerName;
use crate::limits::{ATTEMPT_RECORDS_MAX, ERROR_BYTES_MAX, NOTE_BYTES_MAX};
use crate::message::{Checkpoint, Death};
use crate::policy::DelayRule;
use crate::text::{cut, text_type};
use crate::time::{Millis, Timestamp};

/// What a consumer said went wrong. A text that is too long is cut, not refused: losing the end of a stack
/// trace is better than losing the nack.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ErrorText(Box<str>);

impl ErrorText {
    /// Keeps at most the first [`ERROR_BYTES_MAX`] bytes. A NUL, which PostgreSQL cannot keep in a text, becomes a
    /// space.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(cut(text.as_ref(), ERROR_BYTES_MAX).replace('\0', " ").into())
    }

    /// The text itself. It came from outside: print it as text, never as markup.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ErrorText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

text_type! {
    /// Who asked for something, or why.
    Note, field = "note", max = NOTE_BYTES_MAX, empty = true,
    allowed = "text without control characters other than line breaks", |c| !c.is_control() || c == '\n'
}

/// What ended an attempt that did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The consumer said it failed.
    Nack,
    /// The lease ran out.
    Expire,
    /// The consumer said: never retry this.
    Bury,
}

/// One attempt that did not succeed, as it is kept with the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The attempt's number, counted from 1 since the last redrive.
    pub attempt: u32,
    /// Who had the lease.
    pub consumer: ConsumerName,
    /// When it was taken.
    pub leased_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// What ended it.
    pub cause: Cause,
    /// What went wrong.
    pub error: ErrorText,
    /// How long the judge made it wait, and by which rule; `None` where it died.
    pub delay: Option<(Millis, DelayRule)>,
}

/// Who brought a dead message back, when and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedriveNote {
    /// When it was redriven.
    pub at: Timestamp,
    /// Who asked.
    pub by: Note,
    /// Why.
    pub reason: Note,
}

impl fmt::Display for RedriveNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Retry requested by {}", self.by)?;
        if self.reason.as_str().is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

/// What happened to a message so far. It survives retries, moves and redrives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    /// The error of the last failed attempt.
    pub last_error: Option<ErrorText>,
    /// The last failed attempts, oldest first.
    pub failures: VecDeque<AttemptRecord>,
    /// What the last consumer wrote down to go on from.
    pub checkpoint: Option<Checkpoint>,
    /// How it died the last time, kept when it is moved on or brought back.
    pub death: Option<Death>,
    /// The last redrive.
    pub redriven: Option<RedriveNote>,
}

impl History {
    /// Adds a failed attempt; the oldest makes room for it.
    pub fn add(&mut self, record: AttemptRecord) {
        if self.failures.len() == ATTEMPT_RECORDS_MAX {
            self.failures.pop_front();
        }
        self.last_error = Some(record.error.clone());
        self.failures.push_back(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_cut_between_characters() {
        let text = "é".repeat(ERROR_BYTES_MAX);
        let kept = ErrorText::new(&text);
        assert_eq!(kept.as_str().len(), ERROR_BYTES_MAX);
        assert!(text.starts_with(kept.as_str()));
        assert_eq!(ErrorText::new(format!("x{text}")).as_str().len(), ERROR_BYTES_MAX - 1);
    }

    #[test]
    fn only_the_last_twenty_failures_are_kept() {
        let mut history = History::default();
        for attempt in 1..=25 {
            history.add(AttemptRecord {
                attempt,
                consumer: ConsumerName::default(),
                leased_at: Timestamp::EPOCH,
                ended_at: Timestamp::EPOCH,
                cause: Cause::Nack,
                error: ErrorText::new(format!("error {attempt}")),
                delay: None,
            });
        }
        let attempts: Vec<u32> = history.failures.iter().map(|record| record.attempt).collect();
        assert_eq!(attempts, (6..=25).collect::<Vec<u32>>());
        assert_eq!(history.last_error.unwrap().as_str(), "error 25");
    }

    #[test]
    fn a_redrive_note_reads_as_a_sentence() {
        let mut note = RedriveNote {
            at: Timestamp::EPOCH,
            by: Note::new("nightly workflow").unwrap(),
            reason: Note::new("").unwrap(),
        };
        assert_eq!(note.to_string(), "Retry requested by nightly workflow");
        note.reason = Note::new("fixed in 1.2").unwrap();
        assert_eq!(note.to_string(), "Retry requested by nightly workflow: fixed in 1.2");
    }
}
