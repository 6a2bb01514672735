//! What a queue has counted since it was created. Kept in the same write as the transition it counts.

use crate::lifecycle::Verb;

/// How often each transition happened, in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    applied: [u64; Verb::ALL.len()],
    /// Messages that came from another queue.
    pub moved_in: u64,
    /// Messages that were acked and kept as `done`.
    pub retained: u64,
    /// Messages that died here, for whatever reason, moved on or not.
    pub died: u64,
    /// Enqueues that were answered with an earlier message.
    pub duplicates: u64,
}

impl Totals {
    /// Counts one more message that `verb` was applied to.
    pub fn count(&mut self, verb: Verb) {
        self.add(verb, 1);
    }

    /// Counts `messages` more that `verb` was applied to.
    pub fn add(&mut self, verb: Verb, messages: u64) {
        if let Some(total) = self.applied.get_mut(verb as usize) {
            *total = total.saturating_add(messages);
        }
    }

    /// How many messages `verb` was applied to.
    pub fn of(&self, verb: Verb) -> u64 {
        self.applied.get(verb as usize).copied().unwrap_or_default()
    }

    /// How many messages must be there, in any state, if none was lost and none came from nowhere.
    ///
    /// A move is counted in the queue that the message left.
    pub fn expected_present(&self) -> Option<u64> {
        let arrived = self.of(Verb::Enqueue).checked_add(self.moved_in)?;
        let acked_away = self.of(Verb::Ack).checked_sub(self.retained)?;
        arrived.checked_sub(acked_away)?.checked_sub(self.of(Verb::Discard))?.checked_sub(self.of(Verb::Move))
    }
}
