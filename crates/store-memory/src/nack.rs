//! nack: leased → delayed | ready | dead.

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, Judged, LeaseTarget, NackItem, Settled};

use crate::settle::NotHeld;
use crate::state::State;

impl State {
    pub(crate) fn nack(&mut self, now: Timestamp, batch: Batch<NackItem>, seed: u64) -> Vec<Settled<Judged>> {
        self.settle(batch, |state, item| state.nack_one(now, item, seed))
    }

    fn nack_one(&mut self, now: Timestamp, item: NackItem, seed: u64) -> Result<Judged, NotHeld> {
        let (name, id) = (item.claim.queue.clone(), item.claim.message);
        let sequence = self.next_sequence();
        let held = self.held(&LeaseTarget::Claim(item.claim))?;
        let terms = held.terms();
        if item.checkpoint.is_some() {
            held.message.history.checkpoint = item.checkpoint;
        }
        let progress = &mut held.message.progress;
        let mut dice = Dice::for_attempt(seed, id, progress.attempts);
        let failure = (item.asked, item.error);
        let ended = lifecycle::nack(progress, held.lease, &terms, failure, sequence, now, &mut dice);
        self.ended((Verb::Nack, &name, id), ended, now).ok_or(NotHeld::NotFound)
    }
}
