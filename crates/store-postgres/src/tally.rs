//! What a transaction counts, added to the tally of its queues when it ends.

use redrive_core::lifecycle::Verb;
use redrive_core::message::Phase;
use redrive_core::queue::Totals;

/// The columns of the tally before those of the verbs: the states, and the dedup keys.
const FIRST_VERB: usize = 5;
/// The verbs in the order of their columns. Promotion is no write, so nobody counts it.
const VERBS: [Verb; 13] = [
    Verb::Enqueue,
    Verb::Lease,
    Verb::Extend,
    Verb::Ack,
    Verb::Nack,
    Verb::Release,
    Verb::Expire,
    Verb::Bury,
    Verb::Lapse,
    Verb::Reschedule,
    Verb::Move,
    Verb::Redrive,
    Verb::Discard,
];
const FIRST_OTHER: usize = FIRST_VERB + VERBS.len();
const COLUMNS: usize = FIRST_OTHER + 4;

/// Numbers that are added to those of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally([i64; COLUMNS]);

/// What is counted besides states and verbs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Other {
    MovedIn,
    Retained,
    Died,
    Duplicates,
}

fn state_column(phase: &Phase) -> usize {
    match phase {
        Phase::Waiting => 0,
        Phase::Leased(_) => 1,
        Phase::Dead(_) => 2,
        Phase::Done(_) => 3,
    }
}

impl Tally {
    fn add(&mut self, column: usize, number: i64) {
        if let Some(total) = self.0.get_mut(column) {
            *total += number;
        }
    }

    fn at(&self, column: usize) -> u64 {
        self.0.get(column).copied().and_then(|number| u64::try_from(number).ok()).unwrap_or_default()
    }

    /// So many messages more are in that state; fewer where negative.
    pub(crate) fn state(&mut self, phase: &Phase, messages: i64) {
        self.add(state_column(phase), messages);
    }

    /// So many dedup keys more are taken.
    pub(crate) fn holds(&mut self, keys: i64) {
        self.add(4, keys);
    }

    pub(crate) fn verb(&mut self, verb: Verb, messages: i64) {
        if let Some(column) = VERBS.iter().position(|known| *known == verb) {
            self.add(FIRST_VERB + column, messages);
        }
    }

    pub(crate) fn other(&mut self, what: Other) {
        self.add(FIRST_OTHER + what as usize, 1);
    }

    pub(crate) fn is_zero(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn columns(&self) -> &[i64] {
        &self.0
    }

    pub(crate) fn from_columns(columns: &[i64]) -> Self {
        let mut tally = Self::default();
        tally.0.iter_mut().zip(columns).for_each(|(to, from)| *to = *from);
        tally
    }

    /// How many messages wait, delayed or ready.
    pub(crate) fn waiting(&self) -> u64 {
        self.at(0)
    }

    pub(crate) fn leased(&self) -> u64 {
        self.at(1)
    }

    pub(crate) fn dead(&self) -> u64 {
        self.at(2)
    }

    pub(crate) fn done(&self) -> u64 {
        self.at(3)
    }

    /// How many dedup keys are written down, those whose window is over included.
    pub(crate) fn held(&self) -> u64 {
        self.at(4)
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (column, verb) in VERBS.into_iter().enumerate() {
            totals.add(verb, self.at(FIRST_VERB + column));
        }
        totals.moved_in = self.at(FIRST_OTHER);
        totals.retained = self.at(FIRST_OTHER + 1);
        totals.died = self.at(FIRST_OTHER + 2);
        totals.duplicates = self.at(FIRST_OTHER + 3);
        totals
    }
}
