//! ack, nack, extend, release and bury: what a consumer says about its lease.
//!
//! Receipts are opened here, so that the store sees claims it can believe. An item with a bad receipt is answered by
//! itself; the others go on.

use std::collections::BTreeMap;

use redrive_core::invalid::Invalid;
use redrive_core::lease::LeaseId;
use redrive_core::limits::BATCH_ITEMS_MAX;
use redrive_core::message::{Checkpoint, DeadReason, ErrorText, MessageId};
use redrive_core::policy::{Asked, Outcome, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::receipt::Claim;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, BuryItem, ExtendItem, Item, Judged, LeaseTarget, NackItem, ReleaseItem, Released,
    Settled,
};

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::events::{Happening, Trigger};
use crate::numbers::{Did, Noted};
use crate::trace::{Ended, Failure, HowEnded, Which};

/// What became of one settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement<T> {
    /// The store answered.
    Answered(Settled<T>),
    /// The receipt is not one of this store's. Nothing was changed.
    InvalidReceipt,
}

impl<T> Settlement<T> {
    /// The stable word for why it was not applied.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Answered(settled) => settled.code(),
            Self::InvalidReceipt => Some(redrive_core::receipt::InvalidReceipt::CODE),
        }
    }

    /// What was applied.
    pub fn applied(self) -> Option<T> {
        match self {
            Self::Answered(settled) => settled.applied(),
            Self::InvalidReceipt => None,
        }
    }
}

/// The work failed.
#[derive(Debug, Clone)]
pub struct Nack {
    /// The receipt of the lease.
    pub receipt: String,
    /// When the consumer wants it back.
    pub asked: Asked,
    /// What went wrong.
    pub error: ErrorText,
    /// Where to go on from.
    pub checkpoint: Option<Checkpoint>,
}

/// Which lease an extension or a release is about.
#[derive(Debug, Clone)]
pub enum Target {
    /// The lease of a receipt.
    Receipt(String),
    /// The current lease of a message, for an operator.
    Message(QueueName, MessageId),
    /// This lease of a message, for an operator who saw it.
    Seen(QueueName, MessageId, LeaseId),
}

/// The work takes longer.
#[derive(Debug, Clone)]
pub struct Extend {
    /// Which lease.
    pub target: Target,
    /// For how long from now; `None` is as long as the queue's leases are.
    pub time: Option<Millis>,
    /// Where to go on from.
    pub checkpoint: Option<Checkpoint>,
}

/// The message goes back unharmed.
#[derive(Debug, Clone)]
pub struct Release {
    /// Which lease.
    pub target: Target,
    /// Not before this much time.
    pub delay: Option<Millis>,
}

/// The work must never be tried again.
#[derive(Debug, Clone)]
pub struct Bury {
    /// The receipt of the lease.
    pub receipt: String,
    /// What went wrong.
    pub error: ErrorText,
}

/// Items whose receipts were right, and where they were among all.
struct Opened<T> {
    items: Vec<T>,
    places: Vec<bool>,
}

impl<T: Item> Opened<T> {
    fn new(items: impl Iterator<Item = Option<T>>) -> Self {
        let mut opened = Self { items: Vec::new(), places: Vec::new() };
        for item in items {
            opened.places.push(item.is_some());
            opened.items.extend(item);
        }
        opened
    }

    fn batch(&mut self) -> Result<Batch<T>, BrokerError> {
        // All of them count, also those whose receipts are wrong.
        Invalid::check_length("batch", self.places.len(), BATCH_ITEMS_MAX, "items")?;
        Ok(Batch::each(std::mem::take(&mut self.items))?)
    }

    fn answers<O>(self, settled: Vec<Settled<O>>) -> Vec<Settlement<O>> {
        let mut settled = settled.into_iter();
        let one = |right: bool| {
            let answer = right.then(|| settled.next()).flatten();
            answer.map_or(Settlement::InvalidReceipt, Settlement::Answered)
        };
        self.places.into_iter().map(one).collect()
    }
}

impl Broker {
    fn open(&self, receipt: &str) -> Option<Claim> {
        self.receipts.open(receipt).ok()
    }

    fn target(&self, target: Target) -> Option<LeaseTarget> {
        match target {
            Target::Receipt(receipt) => self.open(&receipt).map(LeaseTarget::Claim),
            Target::Message(queue, message) => Some(LeaseTarget::Current { queue, message }),
            Target::Seen(queue, message, lease) => Some(LeaseTarget::Seen { queue, message, lease }),
        }
    }

    /// leased → gone | done.
    pub async fn ack(&self, receipts: Vec<String>) -> Result<Vec<Settlement<Acked>>, BrokerError> {
        let claims = receipts.iter().map(|receipt| self.open(receipt));
        let mut opened = Opened::new(claims.map(|claim| claim.map(|claim| AckItem { claim })));
        let batch = opened.batch()?;
        let queues: Vec<QueueName> = batch.items().iter().map(|item| item.claim.queue.clone()).collect();
        let settled = self.store.ack(self.at(), batch).await?;
        let now = self.now();
        let mut counts = BTreeMap::<&QueueName, u64>::new();
        let mut noted = Noted::new(self);
        for (queue, settled) in queues.iter().zip(&settled) {
            let Settled::Applied(acked) = settled else { continue };
            *counts.entry(queue).or_default() += 1;
            let run = now.since(acked.leased_at);
            self.metrics.acked(queue, &acked.kind, acked.attempts, run);
            noted.acked(queue, &acked.consumer, run, now);
            self.record(queue, now, acked.leased_at, acked.message, Outcome::Success);
            let which = Which::Number(acked.attempts, acked.leased_at);
            let ended = Ended { at: now, how: HowEnded::Acked, failure: None };
            self.end_attempt(queue, acked.message, which, ended);
        }
        for (queue, count) in counts {
            self.events.tell(Happening::Ack, queue, count, Trigger::Consumer, now);
            self.wake_if_gated(queue);
        }
        Ok(opened.answers(settled))
    }

    /// leased → delayed | ready | dead, as the judge decides.
    pub async fn nack(&self, nacks: Vec<Nack>) -> Result<Vec<Settlement<Judged>>, BrokerError> {
        let mut opened = Opened::new(nacks.into_iter().map(|nack| {
            let Nack { receipt, asked, error, checkpoint } = nack;
            self.open(&receipt).map(|claim| NackItem { claim, asked, error, checkpoint })
        }));
        let settled = self.store.nack(self.at(), opened.batch()?, self.chance.seed()).await?;
        self.tell_failed(settled.iter().filter_map(judged), "nack");
        Ok(opened.answers(settled))
    }

    /// leased → dead.
    pub async fn bury(&self, buries: Vec<Bury>) -> Result<Vec<Settlement<Judged>>, BrokerError> {
        let mut opened = Opened::new(buries.into_iter().map(|bury| {
            let claim = self.open(&bury.receipt)?;
            Some(BuryItem { claim, reason: DeadReason::Buried, error: bury.error })
        }));
        let settled = self.store.bury(self.at(), opened.batch()?).await?;
        self.tell_failed(settled.iter().filter_map(judged), "bury");
        Ok(opened.answers(settled))
    }

    /// leased → leased, with a later deadline; answers the deadline.
    pub async fn extend(&self, extends: Vec<Extend>) -> Result<Vec<Settlement<Timestamp>>, BrokerError> {
        let mut items = Vec::with_capacity(extends.len());
        for Extend { target, time, checkpoint } in extends {
            let Some(target) = self.target(target) else {
                items.push(None);
                continue;
            };
            let time = match time {
                Some(time) => time,
                None => self.lease_time(target.queue()).await,
            };
            items.push(Some(ExtendItem { target, time, checkpoint }));
        }
        let mut opened = Opened::new(items.into_iter());
        let batch = opened.batch()?;
        let targets: Vec<(QueueName, MessageId)> =
            batch.items().iter().map(|item| (item.target.queue().clone(), item.target.message())).collect();
        let settled = self.store.extend(self.at(), batch).await?;
        let now = self.now();
        for ((queue, message), settled) in targets.iter().zip(&settled) {
            let Settled::Applied(deadline) = settled else { continue };
            self.metrics.extended(queue, 1);
            self.events.tell(Happening::Lease, queue, 1, Trigger::Consumer, now);
            self.extend_attempt(queue, *message, *deadline);
            self.extend_probe(queue, *message, *deadline);
            self.sweep_by(Some(*deadline));
        }
        Ok(opened.answers(settled))
    }

    async fn lease_time(&self, queue: &QueueName) -> Millis {
        match self.live(queue).await {
            Ok(live) => live.settings().lease_timeout,
            // The store will say that there is no such queue.
            Err(_) => self.config.defaults.lease_timeout,
        }
    }

    /// leased → ready | delayed, with the attempt refunded.
    pub async fn release(&self, releases: Vec<Release>) -> Result<Vec<Settlement<Released>>, BrokerError> {
        let mut opened = Opened::new(releases.into_iter().map(|release| {
            let target = self.target(release.target)?;
            Some(ReleaseItem { target, delay: release.delay })
        }));
        let settled = self.release_batch(opened.batch()?).await?;
        Ok(opened.answers(settled))
    }

    pub(crate) async fn release_batch(
        &self,
        batch: Batch<ReleaseItem>,
    ) -> Result<Vec<Settled<Released>>, BrokerError> {
        let targets: Vec<(LeaseTarget, bool)> =
            batch.items().iter().map(|item| (item.target.clone(), item.delay.is_some())).collect();
        let settled = self.store.release(self.at(), batch).await?;
        let now = self.now();
        let mut noted = Noted::new(self);
        for ((target, delayed), settled) in targets.iter().zip(&settled) {
            let Settled::Applied(released) = settled else { continue };
            let (queue, message) = (target.queue(), target.message());
            self.metrics.released(queue, 1);
            noted.did(queue, &released.consumer, Did::Release, now);
            self.record(queue, now, now, message, Outcome::NoOutcome);
            let which = target.lease().map_or(Which::Current, Which::Lease);
            let ended = Ended { at: now, how: HowEnded::Released, failure: None };
            self.end_attempt(queue, message, which, ended);
            self.events.tell(Happening::Requeue, queue, 1, Trigger::Consumer, now);
            self.tell_lapsed(released.lapsed.clone().into_iter().collect());
            if let Some(live) = self.queues.known(queue) {
                if *delayed {
                    live.due_by(released.visible_at);
                } else {
                    live.wake();
                }
            }
            self.tell_ready(queue);
        }
        Ok(settled)
    }

    /// Attempts failed: counts them, tells them, logs every retry, and wakes who waits for what is ready again.
    pub(crate) fn tell_failed<'a>(&self, judged: impl Iterator<Item = &'a Judged>, cause: &'static str) {
        let mut counts = BTreeMap::<&QueueName, (u64, u64)>::new();
        let mut at = Timestamp::EPOCH;
        for one in judged {
            at = one.at;
            let (failed, died) = counts.entry(&one.queue).or_default();
            *failed += 1;
            *died += u64::from(self.tell_judged(one, cause));
        }
        for (queue, (failed, died)) in counts {
            self.events.tell(Happening::Nack, queue, failed, Trigger::Consumer, at);
            self.events.tell(Happening::MoveToDlq, queue, died, Trigger::Consumer, at);
        }
    }

    /// An attempt of a subscription failed in a queue that is not its own: its own breaker heard of it already.
    pub(crate) fn tell_failed_of(&self, subscription: &SubscriptionId, judged: &Judged) {
        let (queue, at) = (&judged.queue, judged.at);
        let died = self.tell_judged_as(judged, "nack", Some(subscription.as_str()));
        self.events.tell(Happening::Nack, queue, 1, Trigger::Consumer, at);
        self.events.tell(Happening::MoveToDlq, queue, u64::from(died), Trigger::Consumer, at);
    }

    /// What a failure of one message leads to; says whether it died.
    pub(crate) fn tell_judged(&self, judged: &Judged, cause: &'static str) -> bool {
        self.tell_judged_as(judged, cause, None)
    }

    fn tell_judged_as(&self, judged: &Judged, cause: &'static str, subscription: Option<&str>) -> bool {
        let died = matches!(judged.verdict, Verdict::Dead(_));
        self.metrics.failed(&judged.queue, &judged.kind, cause, died);
        self.note_death(judged);
        if let Some(consumer) = &judged.consumer {
            let what = if cause == "expire" { Did::Expire } else { Did::Fail };
            Noted::new(self).did(&judged.queue, consumer, what, judged.at);
        }
        if let Some(leased_at) = judged.leased_at {
            let outcome = if cause == "bury" { Outcome::NoOutcome } else { Outcome::Failure };
            self.record(&judged.queue, judged.at, leased_at, judged.message, outcome);
            self.end_failed(judged, leased_at, cause, died);
        }
        if let Verdict::RetryAt(due, _) = judged.verdict {
            match subscription {
                Some(subscription) => crate::log::retry_of(subscription, judged, due),
                None => crate::log::retry(judged, due),
            }
        }
        self.wake_for(judged);
        died
    }

    fn end_failed(&self, judged: &Judged, leased_at: Timestamp, cause: &'static str, died: bool) {
        let how = match (died, cause) {
            (true, _) => HowEnded::Dead,
            (false, "expire") => HowEnded::Expired,
            (false, _) => HowEnded::Retried,
        };
        let failure = Some(Failure { cause, error: judged.error.as_str() });
        let which = Which::Number(judged.attempts, leased_at);
        self.end_attempt(&judged.queue, judged.message, which, Ended { at: judged.at, how, failure });
    }

    /// Wakes who waits for a message that was judged: in its queue, or where it was moved.
    pub(crate) fn wake_for(&self, judged: &Judged) {
        if let Some(live) = self.queues.known(&judged.queue) {
            match judged.verdict {
                Verdict::RetryAt(due, _) if due > judged.at => live.due_by(due),
                Verdict::RetryAt(..) => live.wake(),
                Verdict::Dead(_) => {}
            }
        }
        if let Verdict::RetryAt(..) = judged.verdict {
            self.tell_ready(&judged.queue);
        }
        self.wake_if_gated(&judged.queue);
        if let Some(target) = &judged.moved_to {
            if let Some(live) = self.queues.known(target) {
                live.wake();
            }
            self.tell_ready(target);
        }
    }

    /// The end of a lease may make room under a cap on retries in flight, or under the ramp of a breaker.
    fn wake_if_gated(&self, queue: &QueueName) {
        let Some(live) = self.queues.known(queue) else {
            // Those who wait for it elsewhere know whether they are held back.
            return self.tell_ready(queue);
        };
        let gated = {
            let rules = live.rules();
            rules.breaker.is_some() || rules.settings.max_retries_in_flight.is_some()
        };
        if gated {
            live.wake();
            self.tell_ready(queue);
        }
    }
}

fn judged(settled: &Settled<Judged>) -> Option<&Judged> {
    match settled {
        Settled::Applied(judged) => Some(judged),
        _ => None,
    }
}
