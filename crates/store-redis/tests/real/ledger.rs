//! What callers were told while the server was there, and whether it still holds.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redrive_core::message::{Message, MessageId};
use redrive_store::{EnqueueOutcome, Filter, ListRequest, Now, QueueError, RetryAdvice, Store};
use tokio::sync::oneshot;

use crate::world::{PATIENCE, World};

/// Messages of one enqueue, and of one lease; of the latter as many are kept under their lease.
const BATCH: usize = 20;
const HELD: usize = 2;

/// What was told.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) enqueued: BTreeSet<MessageId>,
    pub(crate) acked: BTreeSet<MessageId>,
    /// Whose ack was asked for; whether it was done is known where it is among those as well.
    asked: BTreeSet<MessageId>,
    /// Under a lease that was told, and never settled.
    held: Vec<Message>,
    /// What a server refused that was back before a call was given up: it knew the queue or the lease no more.
    refused: usize,
}

/// What does not hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Problems {
    /// Messages whose enqueue was acknowledged.
    pub(crate) lost: usize,
    /// Messages whose ack was acknowledged.
    pub(crate) back: usize,
    /// Leases that were told.
    pub(crate) unleased: usize,
    /// Messages that a server refused which was just back.
    pub(crate) refused: usize,
}

impl Ledger {
    /// Sends and works until so many are acknowledged, and is cut off in the middle of what follows.
    pub(crate) async fn live<E>(
        &mut self,
        world: &World,
        enough: usize,
        cut: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        let (reached, wait) = oneshot::channel();
        let over = Arc::new(AtomicBool::new(false));
        let sending = tokio::spawn(send(world.clone(), enough, reached, Arc::clone(&over)));
        let working = tokio::spawn(work(world.clone(), Arc::clone(&over)));
        tokio::time::timeout(PATIENCE, wait).await.expect("messages come in").expect("it is told");
        let done = cut();
        // Whoever was between two calls may not have noticed.
        over.store(true, Ordering::Relaxed);
        for told in [sending, working] {
            let told = tokio::time::timeout(PATIENCE, told).await.expect("it hears of it").expect("no panic");
            self.enqueued.extend(told.enqueued);
            self.acked.extend(told.acked);
            self.asked.extend(told.asked);
            self.held.extend(told.held);
            self.refused += told.refused;
        }
        done
    }

    /// Looks whether all of it holds, and settles what is still under a lease.
    pub(crate) async fn check(&mut self, world: &World) -> Problems {
        let there = present(world, &self.enqueued).await;
        let lost = |id: &&MessageId| !there.contains(*id) && !self.asked.contains(*id);
        let mut problems = Problems {
            lost: self.enqueued.iter().filter(lost).count(),
            back: self.acked.intersection(&there).count(),
            unleased: 0,
            refused: std::mem::take(&mut self.refused),
        };
        for held in std::mem::take(&mut self.held).chunks(BATCH) {
            let settled = world.ack(held).await.unwrap();
            problems.unleased += settled.iter().filter(|settled| !settled.is_applied()).count();
            self.asked.extend(held.iter().map(Message::id));
            self.acked.extend(held.iter().map(Message::id));
        }
        problems
    }
}

/// Which of these messages are there.
pub(crate) async fn present(world: &World, ids: &BTreeSet<MessageId>) -> BTreeSet<MessageId> {
    let (ids, mut there): (Vec<_>, _) = (ids.iter().copied().collect(), BTreeSet::new());
    for some in ids.chunks(100) {
        let request = ListRequest::new(world.queue.clone(), Filter::ids(some.iter().copied()));
        match world.store.list(Now::Store, request).await {
            Ok(page) => there.extend(page.messages.iter().map(Message::id)),
            // The queue is lost as well.
            Err(QueueError::NotFound(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    there
}

async fn send(world: World, enough: usize, reached: oneshot::Sender<()>, over: Arc<AtomicBool>) -> Ledger {
    let (mut told, mut reached) = (Ledger::default(), Some(reached));
    while !over.load(Ordering::Relaxed) {
        let drafts: Vec<_> = (0..BATCH).map(|_| World::draft()).collect();
        let ids: Vec<MessageId> = drafts.iter().map(|draft| draft.spec.id).collect();
        match world.send(drafts).await {
            Ok(outcomes) => {
                let new = |outcome: &EnqueueOutcome| matches!(outcome, EnqueueOutcome::Enqueued { .. });
                told.refused = outcomes.iter().filter(|outcome| !new(outcome)).count();
                if told.refused > 0 {
                    return told;
                }
                told.enqueued.extend(ids);
            }
            Err(error) => {
                assert_ne!(error.advice(), RetryAdvice::GiveUp, "{error}");
                return told;
            }
        }
        if told.enqueued.len() >= enough
            && let Some(reached) = reached.take()
        {
            reached.send(()).expect("somebody waits");
        }
    }
    told
}

async fn work(world: World, over: Arc<AtomicBool>) -> Ledger {
    let mut told = Ledger::default();
    while !over.load(Ordering::Relaxed) {
        let Ok(leased) = world.take(BATCH, redrive_core::time::Millis::from_secs(3_600)).await else {
            return told;
        };
        let mut leased = leased.messages;
        told.held.extend(leased.drain(..HELD.min(leased.len())));
        if leased.is_empty() {
            continue;
        }
        told.asked.extend(leased.iter().map(Message::id));
        let Ok(settled) = world.ack(&leased).await else {
            return told;
        };
        let applied = leased.iter().zip(&settled).filter(|(_, settled)| settled.is_applied());
        told.acked.extend(applied.map(|(message, _)| message.id()));
        told.refused = settled.iter().filter(|settled| !settled.is_applied()).count();
        if told.refused > 0 {
            return told;
        }
    }
    told
}
