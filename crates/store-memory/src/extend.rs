//! extend: leased → leased, with a later deadline.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::Phase;
use redrive_core::time::Timestamp;
use redrive_store::{Batch, ExtendItem, Settled};

use crate::state::State;

impl State {
    pub(crate) fn extend(&mut self, now: Timestamp, batch: Batch<ExtendItem>) -> Vec<Settled<Timestamp>> {
        self.settle(batch, |state, item| state.extend_one(now, item))
    }

    fn extend_one(&mut self, now: Timestamp, item: ExtendItem) -> Settled<Timestamp> {
        if let Err(refused) = self.held(&item.target) {
            return refused.into();
        }
        let Some(queue) = self.queues.get_mut(item.target.queue()) else {
            return Settled::NotFound;
        };
        let Some(message) = queue.messages.get_mut(&item.target.message()) else {
            return Settled::NotFound;
        };
        let Phase::Leased(lease) = &mut message.progress.phase else {
            return Settled::LeaseLost;
        };
        let deadline = lifecycle::extend(lease, item.time, queue.settings.max_lease, now);
        if item.checkpoint.is_some() {
            message.history.checkpoint = item.checkpoint;
        }
        queue.totals.count(Verb::Extend);
        Settled::Applied(deadline)
    }
}
