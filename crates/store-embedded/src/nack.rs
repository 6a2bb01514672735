//! nack: leased → delayed | ready | dead.

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, Judged, LeaseTarget, NackItem, Settled};

use crate::core::Core;
use crate::settle::NotHeld;

impl Core {
    pub(crate) fn nack(&mut self, now: Timestamp, batch: Batch<NackItem>, seed: u64) -> Vec<Settled<Judged>> {
        self.settle(batch, |core, item| core.nack_one(now, item, seed))
    }

    fn nack_one(&mut self, now: Timestamp, item: NackItem, seed: u64) -> Result<Judged, NotHeld> {
        let id = item.claim.message;
        let sequence = self.next_sequence();
        let slot = self.held(now, &LeaseTarget::Claim(item.claim))?;
        let (mut progress, lease) = self.progress_and_lease(slot);
        let terms = self.queue(self.messages.at(slot).queue).terms(&self.messages, slot);
        let mut dice = Dice::for_attempt(seed, id, progress.attempts);
        let failure = (item.asked, item.error);
        let ended = lifecycle::nack(&mut progress, lease, &terms, failure, sequence, now, &mut dice);
        Ok(self.ended(Verb::Nack, slot, progress, ended, item.checkpoint, now))
    }
}
