//! release: leased → ready | delayed, with the attempt refunded.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, ReleaseItem, Settled};

use crate::state::State;

impl State {
    pub(crate) fn release(&mut self, now: Timestamp, batch: Batch<ReleaseItem>) -> Vec<Settled<Timestamp>> {
        self.settle(batch, |state, item| state.release_one(now, &item))
    }

    fn release_one(&mut self, now: Timestamp, item: &ReleaseItem) -> Settled<Timestamp> {
        if let Err(refused) = self.held(&item.target) {
            return refused.into();
        }
        let sequence = self.next_sequence();
        let Some(queue) = self.queues.get_mut(item.target.queue()) else {
            return Settled::NotFound;
        };
        let Some(message) = queue.messages.get_mut(&item.target.message()) else {
            return Settled::NotFound;
        };
        lifecycle::release(&mut message.progress, item.delay, sequence, now);
        queue.totals.count(Verb::Release);
        Settled::Applied(message.progress.visible_at)
    }
}
