//! ack and bury, and the guard that every settlement passes first.

use redrive_core::lease::Lease;
use redrive_core::lifecycle::{self, Terms, Verb};
use redrive_core::message::{Message, Phase};
use redrive_core::queue::{QueueSettings, Totals};
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{AckItem, Acked, Batch, BuryItem, Judged, LeaseTarget, Settled};

use crate::state::State;

/// A leased message, and what its settlement needs of its queue.
pub(crate) struct Held<'a> {
    pub(crate) message: &'a mut Message,
    pub(crate) lease: Lease,
    pub(crate) settings: &'a QueueSettings,
    pub(crate) totals: &'a mut Totals,
}

impl Held<'_> {
    /// What it is judged by.
    pub(crate) fn terms(&self) -> Terms {
        Terms::new(self.settings, self.message.spec.max_attempts)
    }
}

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

impl State {
    /// Applies a batch of settlements.
    pub(crate) fn settle<T, O>(
        &mut self,
        batch: Batch<T>,
        mut one: impl FnMut(&mut Self, T) -> Result<O, NotHeld>,
    ) -> Vec<Settled<O>> {
        let settled = |state: &mut Self, item| match one(state, item) {
            Ok(applied) => Settled::Applied(applied),
            Err(refused) => refused.into(),
        };
        self.apply(batch, settled, Settled::is_applied, || Settled::Aborted)
    }

    /// The message under the lease that is meant. One that is gone or done is not found; any other that is not
    /// under this lease has lost it.
    pub(crate) fn held(&mut self, target: &LeaseTarget) -> Result<Held<'_>, NotHeld> {
        let queue = self.queues.get_mut(target.queue()).ok_or(NotHeld::NotFound)?;
        let message = queue.messages.get_mut(&target.message()).ok_or(NotHeld::NotFound)?;
        let lease = match &message.progress.phase {
            Phase::Leased(lease) if target.lease().is_none_or(|id| id == lease.id) => lease.clone(),
            Phase::Done(_) => return Err(NotHeld::NotFound),
            _ => return Err(NotHeld::LeaseLost),
        };
        Ok(Held { message, lease, settings: &queue.settings, totals: &mut queue.totals })
    }

    pub(crate) fn ack(&mut self, now: Timestamp, batch: Batch<AckItem>) -> Vec<Settled<Acked>> {
        self.settle(batch, |state, item| state.ack_one(now, item.claim))
    }

    fn ack_one(&mut self, now: Timestamp, claim: Claim) -> Result<Acked, NotHeld> {
        let (name, id) = (claim.queue.clone(), claim.message);
        let held = self.held(&LeaseTarget::Claim(claim))?;
        let acked = Acked {
            message: id,
            kind: held.message.spec.kind.clone(),
            attempts: held.message.progress.attempts,
            leased_at: held.lease.leased_at,
            consumer: held.lease.consumer,
        };
        held.totals.count(Verb::Ack);
        lifecycle::ack(&mut held.message.progress, now);
        if let Some(queue) = self.queues.get_mut(&name)
            && let Some(message) = queue.messages.remove(&id)
        {
            queue.let_go(&message);
            if queue.settings.retain_done.is_some() {
                queue.totals.retained += 1;
                queue.messages.insert(id, message);
            }
        }
        Ok(acked)
    }

    pub(crate) fn bury(&mut self, now: Timestamp, batch: Batch<BuryItem>) -> Vec<Settled<Judged>> {
        self.settle(batch, |state, item| state.bury_one(now, item))
    }

    fn bury_one(&mut self, now: Timestamp, item: BuryItem) -> Result<Judged, NotHeld> {
        let (name, id) = (item.claim.queue.clone(), item.claim.message);
        let held = self.held(&LeaseTarget::Claim(item.claim))?;
        let ended = lifecycle::bury(&mut held.message.progress, held.lease, (item.reason, item.error), now);
        self.ended((Verb::Bury, &name, id), ended, now).ok_or(NotHeld::NotFound)
    }
}
