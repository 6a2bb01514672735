//! ack and bury, and the guard that every settlement passes first.

use std::collections::HashMap;
use std::sync::Arc;

use redrive_core::lease::Lease;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{MessageId, Phase};
use redrive_store::{AckItem, Acked, Batch, BuryItem, Judged, LeaseTarget, Now, Settled};
use uuid::Uuid;

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Columns, Kept, uuid};
use crate::store::Shared;
use crate::tally::Other;
use crate::work::Work;

/// The messages of a batch, each as the items before it left it; `None` once it is gone from its queue.
pub(crate) struct Held {
    messages: HashMap<(i32, MessageId), Option<Slot>>,
    /// How many items were applied: who goes to the back goes there in the order of the items.
    turns: usize,
}

struct Slot {
    kept: Kept,
    was: Phase,
    turn: Option<usize>,
}

/// Why a settlement is not applied.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NotHeld {
    NotFound,
    LeaseLost,
}

/// A leased message.
pub(crate) struct Leased {
    pub(crate) known: Arc<Known>,
    pub(crate) kept: Kept,
    pub(crate) lease: Lease,
    was: Phase,
}

impl Held {
    pub(crate) async fn read<'t>(
        work: &mut Work<'_>,
        targets: impl Iterator<Item = (&'t redrive_core::queue::QueueName, MessageId)> + Clone,
    ) -> Result<Self, Fault> {
        work.hold_queues(targets.clone().map(|(queue, _)| queue)).await?;
        let mut names = HashMap::new();
        let (mut queues, mut ids): (Vec<i32>, Vec<Uuid>) = (Vec::new(), Vec::new());
        for (queue, id) in targets {
            if let Some(known) = work.held(queue) {
                queues.push(known.id);
                ids.push(uuid(id));
                names.insert(known.id, known);
            }
        }
        let rows = work.session.rows(&work.shared.link.sql.settle_lock, &[&queues, &ids]).await?;
        let mut messages = HashMap::new();
        for row in &rows {
            let queue: i32 = Columns::from(row, 26).take()?;
            let Some(known) = names.get(&queue) else { continue };
            let kept = work.read(known, std::slice::from_ref(row)).await?;
            for kept in kept {
                let was = kept.message.progress.phase.clone();
                messages.insert((queue, kept.message.id()), Some(Slot { kept, was, turn: None }));
            }
        }
        Ok(Self { messages, turns: 0 })
    }

    /// The message under the lease that is meant. One that is gone or done is not found; any other that is not under
    /// this lease has lost it.
    pub(crate) fn take(&mut self, work: &Work<'_>, target: &LeaseTarget) -> Result<Leased, NotHeld> {
        let known = work.held(target.queue()).ok_or(NotHeld::NotFound)?;
        let entry = self.messages.get_mut(&(known.id, target.message())).ok_or(NotHeld::NotFound)?;
        let slot = entry.as_ref().filter(|slot| slot.kept.queue_id == known.id).ok_or(NotHeld::NotFound)?;
        let lease = match &slot.kept.message.progress.phase {
            // Its consumer has ended it by a nack in SQL, and nobody has judged that yet.
            Phase::Leased(_) if slot.kept.nacked.is_some() => return Err(NotHeld::LeaseLost),
            Phase::Leased(lease) if target.lease().is_none_or(|id| id == lease.id) => lease.clone(),
            Phase::Done(_) => return Err(NotHeld::NotFound),
            _ => return Err(NotHeld::LeaseLost),
        };
        let Some(slot) = entry.take() else { return Err(NotHeld::NotFound) };
        Ok(Leased { known, kept: slot.kept, lease, was: slot.was })
    }

    /// The message stands there now. One that moved is not in its old queue any more, but must still be written.
    pub(crate) fn put(&mut self, leased: Leased) {
        let at = (leased.kept.was_in, leased.kept.message.id());
        self.turns += 1;
        self.messages.insert(at, Some(Slot { kept: leased.kept, was: leased.was, turn: Some(self.turns) }));
    }

    fn write(self, work: &mut Work<'_>) {
        let mut touched: Vec<Slot> =
            self.messages.into_values().flatten().filter(|slot| slot.turn.is_some()).collect();
        touched.sort_unstable_by_key(|slot| slot.turn);
        for slot in touched {
            work.change(slot.kept, &slot.was);
        }
    }
}

impl Shared {
    pub(crate) async fn ack(&self, now: Now, batch: &Batch<AckItem>) -> Result<Vec<Settled<Acked>>, Fault> {
        let mut work = Work::begin(self, now).await?;
        let targets = batch.items().iter().map(|item| (&item.claim.queue, item.claim.message));
        let mut held = Held::read(&mut work, targets).await?;
        let mut outcomes = Vec::new();
        for item in batch.items() {
            let taken = held.take(&work, &LeaseTarget::Claim(item.claim.clone()));
            outcomes.push(settled(taken.map(|leased| work.ack_one(leased, &mut held))));
        }
        finish(work, held, batch.is_all_or_nothing(), outcomes).await
    }

    pub(crate) async fn bury(
        &self,
        now: Now,
        batch: &Batch<BuryItem>,
    ) -> Result<Vec<Settled<Judged>>, Fault> {
        let mut work = Work::begin(self, now).await?;
        let targets = batch.items().iter().map(|item| (&item.claim.queue, item.claim.message));
        let mut held = Held::read(&mut work, targets).await?;
        let mut outcomes = Vec::new();
        for item in batch.items() {
            outcomes.push(match held.take(&work, &LeaseTarget::Claim(item.claim.clone())) {
                Ok(leased) => Settled::Applied(work.bury_one(leased, item, &mut held).await?),
                Err(refused) => refused.into(),
            });
        }
        finish(work, held, batch.is_all_or_nothing(), outcomes).await
    }
}

impl Work<'_> {
    fn ack_one(&mut self, mut leased: Leased, held: &mut Held) -> Acked {
        let message = &leased.kept.message;
        let acked = Acked {
            message: message.id(),
            kind: message.spec.kind.clone(),
            attempts: message.progress.attempts,
            leased_at: leased.lease.leased_at,
            consumer: leased.lease.consumer.clone(),
        };
        self.tally(leased.known.id).verb(Verb::Ack, 1);
        self.let_go(&leased.kept);
        if leased.known.settings.retain_done.is_some() {
            self.tally(leased.known.id).other(Other::Retained);
            lifecycle::ack(&mut leased.kept.message.progress, self.now);
            held.put(leased);
        } else {
            self.remove(&leased.kept, &leased.was);
        }
        acked
    }

    async fn bury_one(
        &mut self,
        mut leased: Leased,
        item: &BuryItem,
        held: &mut Held,
    ) -> Result<Judged, Fault> {
        let known = Arc::clone(&leased.known);
        let progress = &mut leased.kept.message.progress;
        let ended =
            lifecycle::bury(progress, leased.lease.clone(), (item.reason, item.error.clone()), self.now);
        let judged = self.ended(&known, Verb::Bury, &mut leased.kept, ended).await?;
        held.put(leased);
        Ok(judged)
    }
}

impl<T> From<NotHeld> for Settled<T> {
    fn from(refused: NotHeld) -> Self {
        match refused {
            NotHeld::NotFound => Self::NotFound,
            NotHeld::LeaseLost => Self::LeaseLost,
        }
    }
}

pub(crate) fn settled<T>(outcome: Result<T, NotHeld>) -> Settled<T> {
    match outcome {
        Ok(applied) => Settled::Applied(applied),
        Err(refused) => refused.into(),
    }
}

/// Writes what was settled, unless one refusal undoes all.
pub(crate) async fn finish<T>(
    mut work: Work<'_>,
    held: Held,
    all_or_nothing: bool,
    mut outcomes: Vec<Settled<T>>,
) -> Result<Vec<Settled<T>>, Fault> {
    if all_or_nothing && !outcomes.iter().all(Settled::is_applied) {
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_applied()) {
            *outcome = Settled::Aborted;
        }
        work.undo().await?;
        return Ok(outcomes);
    }
    held.write(&mut work);
    work.commit().await?;
    Ok(outcomes)
}
