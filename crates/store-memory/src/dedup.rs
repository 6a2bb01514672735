//! Dedup keys: who holds one, until when, and who may not have it.

use redrive_core::message::{Dedup, Message, MessageId, Uniqueness};
use redrive_core::time::Timestamp;

use crate::state::QueueState;

/// A dedup key that is taken.
#[derive(Debug, Clone)]
pub(crate) struct Hold {
    /// By this message.
    pub(crate) message: MessageId,
    /// Until this time; `None` while the message is delayed, ready or leased.
    until: Option<Timestamp>,
}

impl QueueState {
    /// The message that keeps a second one with that key out.
    pub(crate) fn holder(&mut self, dedup: Option<&Dedup>, now: Timestamp) -> Option<MessageId> {
        self.forget_holds(now);
        self.holds.get(&dedup?.key).map(|hold| hold.message)
    }

    /// How many keys are taken.
    pub(crate) fn holds(&self, now: Timestamp) -> usize {
        self.holds.values().filter(|hold| hold.until.is_none_or(|until| until > now)).count()
    }

    /// Takes the key of a message.
    pub(crate) fn hold(&mut self, message: MessageId, dedup: Option<&Dedup>, now: Timestamp) {
        let Some(dedup) = dedup else { return };
        let until = match dedup.unique {
            Uniqueness::Window => Some(now.plus(self.settings.dedup_window)),
            Uniqueness::UntilDone => None,
        };
        self.holds.insert(dedup.key.clone(), Hold { message, until });
    }

    /// Lets the key go that a message holds while it is not done. A key held for a window stays held.
    pub(crate) fn let_go(&mut self, message: &Message) {
        if let Some(dedup) = &message.spec.dedup {
            let ours = |hold: &Hold| hold.message == message.id() && hold.until.is_none();
            if self.holds.get(&dedup.key).is_some_and(ours) {
                self.holds.remove(&dedup.key);
            }
        }
    }

    fn forget_holds(&mut self, now: Timestamp) {
        self.holds.retain(|_, hold| hold.until.is_none_or(|until| until > now));
    }
}
