//! How large everything is.

use std::time::Duration;

use crate::arguments::Arguments;

/// How large everything is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    /// How often each figure is measured.
    pub(crate) rounds: usize,
    /// How often the arms of a round take turns.
    pub(crate) turns: usize,
    /// How long a turn is.
    pub(crate) turn: Duration,
    /// Messages that stand in the queue while others pass.
    pub(crate) backlog: u64,
    /// The many keys of the fairness figure, and the messages over them.
    pub(crate) keys: u64,
    pub(crate) keys_backlog: u64,
    /// Messages that pass under an old transaction.
    pub(crate) pinned: u64,
    /// Messages of a turn of the COPY figure.
    pub(crate) copied: u64,
}

impl Scale {
    pub(crate) fn new(arguments: &Arguments) -> Self {
        let full = Self {
            rounds: 3,
            turns: 5,
            turn: Duration::from_secs(1),
            backlog: 10_000,
            keys: 100_000,
            keys_backlog: 200_000,
            pinned: 1_000_000,
            copied: 20_000,
        };
        let quick = Self {
            rounds: 3,
            turns: 1,
            turn: Duration::from_millis(20),
            backlog: 1_000,
            keys: 500,
            keys_backlog: 1_000,
            pinned: 4_000,
            copied: 1_000,
        };
        let scale = if arguments.quick { quick } else { full };
        Self { pinned: arguments.messages.unwrap_or(scale.pinned), ..scale }
    }
}
