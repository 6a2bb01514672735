//! ack and bury, and the guard that every settlement passes first.

use redrive_core::lease::Lease;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::Phase;
use redrive_core::receipt::Claim;
use redrive_core::time::Timestamp;
use redrive_store::{AckItem, Acked, Batch, BuryItem, Judged, LeaseTarget, Settled};

use crate::state::State;

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
    /// The current lease that is meant. A message that is gone or done is not found; any other that is not under
    /// this lease has lost it.
    pub(crate) fn held(&self, target: &LeaseTarget) -> Result<Lease, NotHeld> {
        let message = self.queues.get(target.queue()).and_then(|queue| queue.messages.get(&target.message()));
        let message = message.ok_or(NotHeld::NotFound)?;
        match &message.progress.phase {
            Phase::Leased(lease) if target.lease().is_none_or(|id| id == lease.id) => Ok(lease.clone()),
            Phase::Done(_) => Err(NotHeld::NotFound),
            _ => Err(NotHeld::LeaseLost),
        }
    }

    pub(crate) fn ack(&mut self, now: Timestamp, batch: Batch<AckItem>) -> Vec<Settled<Acked>> {
        self.settle(batch, |state, item| state.ack_one(now, &item.claim))
    }

    fn ack_one(&mut self, now: Timestamp, claim: &Claim) -> Settled<Acked> {
        let lease = match self.held(&LeaseTarget::Claim(claim.clone())) {
            Ok(lease) => lease,
            Err(refused) => return refused.into(),
        };
        let Some(queue) = self.queues.get_mut(&claim.queue) else {
            return Settled::NotFound;
        };
        let Some(mut message) = queue.messages.remove(&claim.message) else {
            return Settled::NotFound;
        };
        queue.let_go(&message);
        queue.totals.count(Verb::Ack);
        let acked = Acked {
            message: message.id(),
            kind: message.spec.kind.clone(),
            attempts: message.progress.attempts,
            leased_at: lease.leased_at,
        };
        if queue.settings.retain_done.is_some() {
            queue.totals.retained += 1;
            lifecycle::ack(&mut message.progress, now);
            queue.messages.insert(message.id(), message);
        }
        Settled::Applied(acked)
    }

    pub(crate) fn bury(&mut self, now: Timestamp, batch: Batch<BuryItem>) -> Vec<Settled<Judged>> {
        self.settle(batch, |state, item| state.bury_one(now, item))
    }

    fn bury_one(&mut self, now: Timestamp, item: BuryItem) -> Settled<Judged> {
        let (name, id) = (item.claim.queue.clone(), item.claim.message);
        let lease = match self.held(&LeaseTarget::Claim(item.claim)) {
            Ok(lease) => lease,
            Err(refused) => return refused.into(),
        };
        let Some(message) = self.message_mut(&name, id) else {
            return Settled::NotFound;
        };
        let ended = lifecycle::bury(&mut message.progress, lease, (item.reason, item.error), now);
        self.ended((Verb::Bury, &name, id), ended, now).map_or(Settled::NotFound, Settled::Applied)
    }
}
