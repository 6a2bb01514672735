//! release: leased → ready | delayed, with the attempt refunded.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, ReleaseItem, Released, Settled};

use crate::settle::NotHeld;
use crate::state::State;

impl State {
    pub(crate) fn release(&mut self, now: Timestamp, batch: Batch<ReleaseItem>) -> Vec<Settled<Released>> {
        self.settle(batch, |state, item| state.release_one(now, &item))
    }

    fn release_one(&mut self, now: Timestamp, item: &ReleaseItem) -> Result<Released, NotHeld> {
        let sequence = self.next_sequence();
        let held = self.held(&item.target)?;
        let (terms, consumer) = (held.terms(), held.lease.consumer.clone());
        let progress = &mut held.message.progress;
        lifecycle::release(progress, item.delay, sequence, now);
        held.totals.count(Verb::Release);
        let visible_at = progress.visible_at;
        // With no delivery left nothing could ever be done with it.
        let lapsed = terms
            .spent(progress.attempts, progress.deliveries_counted())
            .and_then(|reason| self.lapse_one(now, item.target.queue(), item.target.message(), reason));
        Ok(Released { visible_at, consumer, lapsed })
    }
}
