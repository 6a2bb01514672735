//! enqueue: a producer hands messages over.

use std::collections::BTreeMap;
use std::sync::Arc;

use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{Dedup, DedupKey, MessageId, Uniqueness};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::time::Timestamp;
use redrive_store::{
    Batch, CreateQueue, EnqueueItem, EnqueueOutcome, EnqueueRefusal, QueueError, StoreError,
};
use sha2::{Digest, Sha256};

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::events::{Happening, Trigger};
use crate::queues::Live;
use crate::trace::TraceParent;
use crate::waiters::Ready;

/// A message that a producer hands over.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// Where it goes.
    pub queue: QueueName,
    /// Its id, if the producer chose one.
    pub id: Option<MessageId>,
    /// What it is; the id in it is not looked at.
    pub draft: Draft,
    /// A key under which the producer may repeat the call: the same message is taken once, another is refused.
    pub idempotency_key: Option<DedupKey>,
    /// The trace that the producer's request is a part of. What the message's own headers say goes before it.
    pub request: Option<TraceParent>,
}

impl Broker {
    /// nothing → ready | delayed, each message by itself or all together.
    pub async fn enqueue(
        &self,
        messages: Vec<NewMessage>,
        all_or_nothing: bool,
    ) -> Result<Vec<Result<EnqueueOutcome, BrokerError>>, BrokerError> {
        Ok(self.enqueue_as(messages, all_or_nothing, true).await?.0)
    }

    /// The same for somebody who may or may not create queues; answers also which came into being.
    pub(crate) async fn enqueue_as(
        &self,
        messages: Vec<NewMessage>,
        all_or_nothing: bool,
        create: bool,
    ) -> Result<(Vec<Result<EnqueueOutcome, BrokerError>>, Vec<QueueName>), BrokerError> {
        let start = self.now();
        let requests = self.requests_to_trace(&messages);
        let items = self.items(messages, start)?;
        let prints: Vec<Option<MessageId>> =
            items.iter().map(|(item, keyed)| keyed.then_some(item.draft.spec.id)).collect();
        let mut items: Vec<EnqueueItem> = items.into_iter().map(|(item, _)| item).collect();
        let sends = self.begin_sends(&mut items, &requests);
        let batch = if all_or_nothing { Batch::all_or_nothing(items)? } else { Batch::each(items)? };
        let (outcomes, created) = self.enqueue_batch(batch, create && self.config.auto_create).await?;
        self.end_sends(&sends, &outcomes, start);
        let outcomes = outcomes.into_iter().zip(prints).map(|(outcome, print)| same_message(outcome, print));
        Ok((outcomes.collect(), created))
    }

    /// The messages with ids, and whether the id tells what is in the message.
    fn items(
        &self,
        messages: Vec<NewMessage>,
        now: Timestamp,
    ) -> Result<Vec<(EnqueueItem, bool)>, BrokerError> {
        let mut ids = self.chance.ids(now, messages.len())?.into_iter();
        let mut items = Vec::with_capacity(messages.len());
        for message in messages {
            let NewMessage { queue, id, mut draft, idempotency_key, request: _ } = message;
            let fresh = ids.next().unwrap_or(MessageId::MIN);
            draft.spec.id = id.unwrap_or(fresh);
            let keyed = idempotency_key.is_some();
            if let Some(key) = idempotency_key {
                draft.spec.id = MessageId::new(now, print(&queue, &key, &draft));
                draft.spec.dedup = Some(Dedup { key, unique: Uniqueness::Window });
            }
            items.push((EnqueueItem { queue, draft }, keyed));
        }
        Ok(items)
    }

    async fn enqueue_batch(
        &self,
        batch: Batch<EnqueueItem>,
        create: bool,
    ) -> Result<(Vec<EnqueueOutcome>, Vec<QueueName>), BrokerError> {
        let told: Vec<Told> = batch.items().iter().map(Told::of).collect();
        let known = self.known_queues(&batch, create).await?;
        let unknown = create && known.iter().any(Option::is_none);
        let repeat = unknown.then(|| batch.clone());
        let answered = self.store.enqueue(self.at(), batch).await;
        self.full.note(matches!(answered, Err(StoreError::StorageFull)), self.now());
        let mut outcomes = answered?;
        let mut created = Vec::new();
        if let Some(repeat) = repeat
            && self.create_missing(&outcomes, &mut created).await?
        {
            // Where something was enqueued beside it, only what was refused is asked for again.
            outcomes = self.enqueue_rest(repeat, outcomes).await?;
        }
        self.tell_enqueued(&told, &known, &outcomes);
        Ok((outcomes, created))
    }

    /// The queues of a batch that are there, or were a moment ago.
    async fn known_queues(
        &self,
        batch: &Batch<EnqueueItem>,
        create: bool,
    ) -> Result<Vec<Option<Arc<Live>>>, BrokerError> {
        let mut known = Vec::new();
        for item in batch.items().chunk_by(|one, next| one.queue == next.queue).filter_map(<[_]>::first) {
            if !create {
                known.push(self.queues.known(&item.queue));
                continue;
            }
            match self.live(&item.queue).await {
                Ok(live) => known.push(Some(live)),
                Err(BrokerError::Queue(QueueError::NotFound(_))) => known.push(None),
                Err(error) => return Err(error),
            }
        }
        Ok(known)
    }

    /// Creates the queues that were missing; says whether there were any.
    async fn create_missing(
        &self,
        outcomes: &[EnqueueOutcome],
        created: &mut Vec<QueueName>,
    ) -> Result<bool, BrokerError> {
        let mut any = false;
        for outcome in outcomes {
            let EnqueueOutcome::Refused(EnqueueRefusal::QueueNotFound(missing)) = outcome else { continue };
            any = true;
            let request = CreateQueue { name: missing.0.clone(), config: QueueConfig::default() };
            match self.create_queue(request).await {
                Ok(queue) => created.push(queue.name),
                Err(BrokerError::Queue(QueueError::AlreadyExists(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(any)
    }

    async fn enqueue_rest(
        &self,
        batch: Batch<EnqueueItem>,
        mut outcomes: Vec<EnqueueOutcome>,
    ) -> Result<Vec<EnqueueOutcome>, BrokerError> {
        if batch.is_all_or_nothing() {
            return Ok(self.store.enqueue(self.at(), batch).await?);
        }
        let missing = |outcome: &EnqueueOutcome| {
            matches!(outcome, EnqueueOutcome::Refused(EnqueueRefusal::QueueNotFound(_)))
        };
        let rest: Vec<EnqueueItem> = batch
            .into_items()
            .into_iter()
            .zip(&outcomes)
            .filter(|(_, outcome)| missing(outcome))
            .map(|(item, _)| item)
            .collect();
        let mut again = self.store.enqueue(self.at(), Batch::each(rest)?).await?.into_iter();
        for outcome in outcomes.iter_mut().filter(|outcome| missing(outcome)) {
            if let Some(better) = again.next() {
                *outcome = better;
            }
        }
        Ok(outcomes)
    }

    /// Wakes who waits, counts, and tells.
    fn tell_enqueued(&self, told: &[Told], known: &[Option<Arc<Live>>], outcomes: &[EnqueueOutcome]) {
        let now = self.now();
        let mut counts = BTreeMap::<&QueueName, (u64, u64)>::new();
        let mut live: Option<Arc<Live>> = None;
        for (told, outcome) in told.iter().zip(outcomes) {
            if live.as_ref().is_none_or(|live| live.name != told.queue) {
                live = self.queues.known(&told.queue);
            }
            let (new, duplicates) = counts.entry(&told.queue).or_default();
            match outcome {
                EnqueueOutcome::Enqueued { visible_at, .. } => {
                    *new += 1;
                    self.wake_for_new(live.as_deref(), told, *visible_at);
                }
                EnqueueOutcome::Duplicate { .. } => *duplicates += 1,
                // Somebody else deleted it: the next message finds that it is not there, and may create it.
                EnqueueOutcome::Refused(EnqueueRefusal::QueueNotFound(gone)) => {
                    if let Some(live) = known.iter().flatten().find(|live| live.name == gone.0) {
                        self.forget_queue(live);
                    }
                }
                EnqueueOutcome::Refused(_) | EnqueueOutcome::Aborted => {}
            }
        }
        for (queue, (new, duplicates)) in counts {
            // A queue that is not there gets no label.
            if new + duplicates == 0 {
                continue;
            }
            self.metrics.enqueued(queue, new, duplicates);
            self.events.tell(Happening::Enqueue, queue, new, Trigger::Producer, now);
            if new > 0 {
                self.tell_ready(queue);
            }
        }
    }

    fn wake_for_new(&self, live: Option<&Live>, told: &Told, visible_at: Timestamp) {
        if let Some(live) = live {
            if told.ready {
                live.waiters.wake(Ready::Fresh(&told.kind, &told.source));
            } else {
                live.due_by(visible_at);
            }
        }
        if told.expires {
            self.sweep_sooner.notify_waiters();
        }
    }
}

/// What is told about an item once it is in its queue.
struct Told {
    queue: QueueName,
    kind: redrive_core::message::MessageType,
    source: redrive_core::message::Source,
    ready: bool,
    expires: bool,
}

impl Told {
    fn of(item: &EnqueueItem) -> Self {
        let spec = &item.draft.spec;
        Self {
            queue: item.queue.clone(),
            kind: spec.kind.clone(),
            source: spec.source.clone(),
            ready: item.draft.visible == When::Now,
            expires: item.draft.expires.is_some(),
        }
    }
}

/// What a message says, in as many bits as an id has beside its time. An id that is made of it tells whether the first
/// message under an idempotency key was the same, also when that one is long gone.
fn print(queue: &QueueName, key: &DedupKey, draft: &Draft) -> u128 {
    let spec = &draft.spec;
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(queue.as_str().as_bytes());
    part(key.as_str().as_bytes());
    part(spec.kind.as_str().as_bytes());
    part(spec.source.as_str().as_bytes());
    part(spec.fairness_key.as_str().as_bytes());
    part(spec.content_type.as_str().as_bytes());
    // Each try of a producer has a span of its own; the message is the same.
    let traced = |name: &str| name == TraceParent::HEADER || name == TraceParent::STATE_HEADER;
    for (name, value) in spec.headers.iter().filter(|(name, _)| !traced(name)) {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    part(spec.body.bytes());
    let digest = hash.finalize();
    digest.iter().take(16).fold(0, |print, byte| print << 8 | u128::from(*byte))
}

/// Refuses a duplicate that was another message.
fn same_message(outcome: EnqueueOutcome, print: Option<MessageId>) -> Result<EnqueueOutcome, BrokerError> {
    // The first six bytes of an id are its time.
    let said = |id: MessageId| id.as_bytes().iter().skip(6).copied().collect::<Vec<u8>>();
    match (&outcome, print) {
        (EnqueueOutcome::Duplicate { id }, Some(print)) if said(*id) != said(print) => {
            Err(BrokerError::KeyReused)
        }
        _ => Ok(outcome),
    }
}
