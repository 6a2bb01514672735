//! extend: leased → leased, with a later deadline.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::Phase;
use redrive_core::time::Timestamp;
use redrive_store::{Batch, ExtendItem, Settled};

use crate::core::Core;
use crate::format::message::Link;
use crate::settle::NotHeld;

impl Core {
    pub(crate) fn extend(&mut self, now: Timestamp, batch: Batch<ExtendItem>) -> Vec<Settled<Timestamp>> {
        self.settle(batch, |core, item| core.extend_one(now, item))
    }

    fn extend_one(&mut self, now: Timestamp, item: ExtendItem) -> Result<Timestamp, NotHeld> {
        let slot = self.held(now, &item.target)?;
        let number = self.messages.at(slot).queue;
        let (mut progress, mut lease) = self.progress_and_lease(slot);
        let max_lease = self.queue(number).settings.max_lease;
        let deadline = lifecycle::extend(&mut lease, item.time, max_lease, now);
        progress.phase = Phase::Leased(lease);
        self.count(number, Verb::Extend);
        self.change(slot, progress, None, Link { checkpoint: item.checkpoint, ..Link::default() });
        Ok(deadline)
    }
}
