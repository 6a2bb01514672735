//! release: leased → ready | delayed, with the attempt refunded.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, Judged, LeaseTarget, ReleaseItem, Released, Settled};

use crate::state::State;

impl State {
    pub(crate) fn release(&mut self, now: Timestamp, batch: Batch<ReleaseItem>) -> Vec<Settled<Released>> {
        self.settle(batch, |state, item| state.release_one(now, &item))
    }

    fn release_one(&mut self, now: Timestamp, item: &ReleaseItem) -> Settled<Released> {
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
        let visible_at = message.progress.visible_at;
        Settled::Applied(Released { visible_at, lapsed: self.lapse_if_spent(now, &item.target) })
    }

    /// Gives up a released message that has no delivery left: nothing could ever be done with it.
    fn lapse_if_spent(&mut self, now: Timestamp, target: &LeaseTarget) -> Option<Judged> {
        let (name, id) = (target.queue(), target.message());
        let queue = self.queues.get(name)?;
        let message = queue.messages.get(&id)?;
        let progress = &message.progress;
        let reason = queue.terms(message).spent(progress.attempts, progress.deliveries_counted())?;
        self.lapse_one(now, name, id, reason)
    }
}
