//! nack: leased → delayed | ready | dead.

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, Judged, LeaseTarget, NackItem, Settled};

use crate::state::State;

impl State {
    pub(crate) fn nack(&mut self, now: Timestamp, batch: Batch<NackItem>, seed: u64) -> Vec<Settled<Judged>> {
        self.settle(batch, |state, item| state.nack_one(now, item, seed))
    }

    fn nack_one(&mut self, now: Timestamp, item: NackItem, seed: u64) -> Settled<Judged> {
        let (name, id) = (item.claim.queue.clone(), item.claim.message);
        let lease = match self.held(&LeaseTarget::Claim(item.claim)) {
            Ok(lease) => lease,
            Err(refused) => return refused.into(),
        };
        let sequence = self.next_sequence();
        let Some(queue) = self.queues.get_mut(&name) else {
            return Settled::NotFound;
        };
        let Some(message) = queue.messages.get(&id) else {
            return Settled::NotFound;
        };
        let terms = queue.terms(message);
        let mut dice = Dice::for_attempt(seed, id, message.progress.attempts);
        let Some(message) = queue.messages.get_mut(&id) else {
            return Settled::NotFound;
        };
        if item.checkpoint.is_some() {
            message.history.checkpoint = item.checkpoint;
        }
        let failure = (item.asked, item.error);
        let ended = lifecycle::nack(&mut message.progress, lease, &terms, failure, sequence, now, &mut dice);
        self.ended((Verb::Nack, &name, id), ended, now).map_or(Settled::NotFound, Settled::Applied)
    }
}
