//! ack and bury, and the guard that every settlement passes first.

use redrive_core::lease::Lease;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{Phase, Progress};
use redrive_core::time::Timestamp;
use redrive_store::{AckItem, Acked, Batch, BuryItem, Judged, LeaseTarget, Settled};

use crate::core::Core;
use crate::format::message::Link;
use crate::state::entry::Stage;

/// Why a settlement is not applied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NotHeld {
    NotFound,
    LeaseLost,
}

impl<T> From<NotHeld> for Settled<T> {
    fn from(refused: NotHeld) -> Self {
        match refused {
            NotHeld::NotFound => Self::NotFound,
            NotHeld::LeaseLost => Self::LeaseLost,
        }
    }
}

impl Core {
    /// Applies a batch of settlements.
    pub(crate) fn settle<T, O>(
        &mut self,
        batch: Batch<T>,
        mut one: impl FnMut(&mut Self, T) -> Result<O, NotHeld>,
    ) -> Vec<Settled<O>> {
        let settled = |core: &mut Self, item| match one(core, item) {
            Ok(applied) => Settled::Applied(applied),
            Err(refused) => refused.into(),
        };
        self.apply(batch, settled, Settled::is_applied, || Settled::Aborted)
    }

    /// The message under the lease that is meant. One that is gone or done is not found; any other that is not
    /// under this lease has lost it.
    pub(crate) fn held(&mut self, now: Timestamp, target: &LeaseTarget) -> Result<u32, NotHeld> {
        let number = self.number(target.queue()).map_err(|_| NotHeld::NotFound)?;
        let (queue, messages) = self.parts(number);
        queue.promote(messages, now);
        let slot = self.find(number, target.message()).ok_or(NotHeld::NotFound)?;
        match self.messages.held(slot) {
            Some(held) if target.lease().is_none_or(|id| id == held.id) => Ok(slot),
            _ if self.stage(slot) == Stage::Done => Err(NotHeld::NotFound),
            _ => Err(NotHeld::LeaseLost),
        }
    }

    /// Where a held message stands, and its lease.
    pub(crate) fn progress_and_lease(&self, slot: u32) -> (Progress, Lease) {
        let progress = self.messages.progress(slot);
        let lease = progress.lease().cloned().expect("a held message has a lease");
        (progress, lease)
    }

    pub(crate) fn ack(&mut self, now: Timestamp, batch: Batch<AckItem>) -> Vec<Settled<Acked>> {
        self.settle(batch, |core, item| core.ack_one(now, item))
    }

    fn ack_one(&mut self, now: Timestamp, item: AckItem) -> Result<Acked, NotHeld> {
        let target = LeaseTarget::Claim(item.claim);
        let slot = self.held(now, &target)?;
        let number = self.messages.at(slot).queue;
        let acked = Acked {
            message: target.message(),
            kind: self.queue(number).class_of(&self.messages, slot).0.clone(),
            attempts: self.messages.at(slot).attempts,
            leased_at: self.messages.held(slot).map_or(now, |held| held.leased_at),
            consumer: self.messages.consumer(slot),
        };
        self.count(number, Verb::Ack);
        if self.queue(number).settings.retain_done.is_some() {
            self.totals(number).retained += 1;
            let mut progress = self.messages.progress(slot);
            lifecycle::ack(&mut progress, now);
            debug_assert!(matches!(progress.phase, Phase::Done(_)), "an acked message is done");
            self.change(slot, progress, None, Link::default());
        } else {
            self.remove_all(&[slot]);
        }
        Ok(acked)
    }

    pub(crate) fn bury(&mut self, now: Timestamp, batch: Batch<BuryItem>) -> Vec<Settled<Judged>> {
        self.settle(batch, |core, item| core.bury_one(now, item))
    }

    fn bury_one(&mut self, now: Timestamp, item: BuryItem) -> Result<Judged, NotHeld> {
        let slot = self.held(now, &LeaseTarget::Claim(item.claim))?;
        let (mut progress, lease) = self.progress_and_lease(slot);
        let ended = lifecycle::bury(&mut progress, lease, (item.reason, item.error), now);
        Ok(self.ended(Verb::Bury, slot, progress, ended, None, now))
    }
}
