//! release: leased → ready | delayed, with the attempt refunded.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, ReleaseItem, Released, Settled};

use crate::core::Core;
use crate::format::message::Link;
use crate::settle::NotHeld;

impl Core {
    pub(crate) fn release(&mut self, now: Timestamp, batch: Batch<ReleaseItem>) -> Vec<Settled<Released>> {
        self.settle(batch, |core, item| core.release_one(now, &item))
    }

    fn release_one(&mut self, now: Timestamp, item: &ReleaseItem) -> Result<Released, NotHeld> {
        let sequence = self.next_sequence();
        let slot = self.held(now, &item.target)?;
        let (number, consumer) = (self.messages.at(slot).queue, self.messages.consumer(slot));
        let mut progress = self.messages.progress(slot);
        lifecycle::release(&mut progress, item.delay, sequence, now);
        self.count(number, Verb::Release);
        let visible_at = progress.visible_at;
        self.change(slot, progress, None, Link::default());
        // With no delivery left nothing could ever be done with it.
        let spent = self.queue(number).spent(&self.messages, slot);
        let lapsed = spent.map(|reason| self.lapse_one(now, slot, reason));
        Ok(Released { visible_at, consumer, lapsed })
    }
}
