//! extend: leased → leased, with a later deadline.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::Phase;
use redrive_core::time::Timestamp;
use redrive_store::{Batch, ExtendItem, Settled};

use crate::settle::NotHeld;
use crate::state::State;

impl State {
    pub(crate) fn extend(&mut self, now: Timestamp, batch: Batch<ExtendItem>) -> Vec<Settled<Timestamp>> {
        self.settle(batch, |state, item| state.extend_one(now, item))
    }

    fn extend_one(&mut self, now: Timestamp, item: ExtendItem) -> Result<Timestamp, NotHeld> {
        let mut held = self.held(&item.target)?;
        let deadline = lifecycle::extend(&mut held.lease, item.time, held.settings.max_lease, now);
        held.message.progress.phase = Phase::Leased(held.lease);
        if item.checkpoint.is_some() {
            held.message.history.checkpoint = item.checkpoint;
        }
        held.totals.count(Verb::Extend);
        Ok(deadline)
    }
}
