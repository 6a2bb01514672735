//! Numbers about a queue: how much of what, since when, and when something happens next.

use redrive_core::message::{ErrorText, FairnessKey, MessageType, Source, State};
use redrive_core::policy::Fingerprint;
use redrive_core::queue::{Queue, QueueSettings, Totals};
use redrive_core::time::Timestamp;

/// How many messages are in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateCounts([u64; State::ALL.len()]);

impl StateCounts {
    /// How many are in that state.
    pub fn of(&self, state: State) -> u64 {
        self.0.get(state as usize).copied().unwrap_or_default()
    }

    /// Counts `messages` more in that state.
    pub fn add(&mut self, state: State, messages: u64) {
        if let Some(count) = self.0.get_mut(state as usize) {
            *count += messages;
        }
    }

    /// How many there are in all.
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A queue at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    /// When, by the clock that decided.
    pub at: Timestamp,
    /// The queue as it was configured.
    pub queue: Queue,
    /// The settings in force.
    pub settings: QueueSettings,
    /// How many messages are in each state.
    pub states: StateCounts,
    /// How many leases have run out and were not ended yet.
    pub overdue: u64,
    /// How many leased messages are retries.
    pub retries_in_flight: u64,
    /// Since when the oldest ready message could have been leased.
    pub oldest_ready: Option<Timestamp>,
    /// How many dedup keys are held.
    pub dedup_keys: u64,
    /// What happened since the queue was created.
    pub totals: Totals,
}

/// What to count apart; the state always is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountBy {
    /// Each type.
    pub kind: bool,
    /// Each source.
    pub source: bool,
    /// Each fairness key.
    pub key: bool,
}

/// How many messages are alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountRow {
    /// Their state.
    pub state: State,
    /// Their type, where types are counted apart.
    pub kind: Option<MessageType>,
    /// Their source, where sources are counted apart.
    pub source: Option<Source>,
    /// Their fairness key, where keys are counted apart.
    pub key: Option<FairnessKey>,
    /// How many.
    pub messages: u64,
}

/// The rows with the most messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// When, by the clock that decided.
    pub at: Timestamp,
    /// The most messages first; rows with as many in the order of their labels.
    pub rows: Vec<CountRow>,
    /// Whether there were more rows than the limit.
    pub truncated: bool,
}

/// Dead messages of a queue whose errors are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureGroup {
    /// What they have in common.
    pub fingerprint: Fingerprint,
    /// The last error of the one that died last.
    pub sample: ErrorText,
    /// How many.
    pub messages: u64,
    /// When the first of them died.
    pub first: Timestamp,
    /// When the last of them died.
    pub last: Timestamp,
}

/// When time will next change something by itself. Where somebody has to act, a time that has passed means: now. What
/// becomes ready needs nobody: those times are always ahead of `at`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NextDue {
    /// What time it is, by the clock that decides: how long to wait is the difference.
    pub at: Timestamp,
    /// A delayed message becomes ready.
    pub ready: Option<Timestamp>,
    /// A lease becomes overdue.
    pub overdue: Option<Timestamp>,
    /// A waiting message becomes too old. A cap that is lowered is not told here: it acts when it is set.
    pub lapse: Option<Timestamp>,
    /// A pause ends.
    pub resume: Option<Timestamp>,
}

impl NextDue {
    /// The first of them.
    pub fn earliest(&self) -> Option<Timestamp> {
        [self.ready, self.overdue, self.lapse, self.resume].into_iter().flatten().min()
    }

    /// The earlier of two, each by each.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        let first = |a: Option<Timestamp>, b: Option<Timestamp>| a.into_iter().chain(b).min();
        Self {
            at: self.at.max(other.at),
            ready: first(self.ready, other.ready),
            overdue: first(self.overdue, other.overdue),
            lapse: first(self.lapse, other.lapse),
            resume: first(self.resume, other.resume),
        }
    }
}
