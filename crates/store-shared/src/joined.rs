//! Small calls of many callers as one: what goes together, and what each is told.
//!
//! Only what cannot touch another caller is joined: batches whose items succeed or fail one by one, of one queue, at the
//! same time. Where the joint call fails as a whole each is done alone, so that nobody is told another's refusal; unless
//! something of it may have happened, which then is so for all of them.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use redrive_core::message::{Lane, Message, MessageType, Source};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, EnqueueItem, EnqueueOutcome, Item, Judged, LaneChoice, LeaseRequest, Leased,
    NackItem, Now, Pick, QueueError, Settled, StoreError, Swept,
};

use crate::together::{Apart, Ask, Together};
use crate::turns::{Turn, Turns};

/// Most items of a call that is joined with others; a larger one is worth a call of its own.
const JOINED_ITEMS: usize = 16;

/// What calls of a verb must have in common: the queue, the time, and whether dedup keys are among them, because those
/// need more than one step on some stores.
type Key = (QueueName, Option<Timestamp>, bool);

type Answer<T> = Result<Vec<T>, StoreError>;

/// What leases must have in common besides.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct LeaseKey {
    queue: QueueName,
    at: Option<Timestamp>,
    time: Option<Millis>,
    lane: Option<bool>,
    kinds: Vec<MessageType>,
    sources: Vec<Source>,
}

/// Nacks, and the chance that their judge gets; of those that go together the first one's is taken.
struct Nacks(Vec<NackItem>, u64);

/// A store whose calls can be joined. What it is handed here was asked for by one or several callers.
#[async_trait]
pub trait Alone: Send + Sync + 'static {
    /// enqueue, as it is in [`redrive_store::Store`].
    async fn enqueue_alone(
        &self,
        now: Now,
        batch: &Batch<EnqueueItem>,
    ) -> Result<Vec<EnqueueOutcome>, StoreError>;

    /// ack, as it is in [`redrive_store::Store`].
    async fn ack_alone(&self, now: Now, batch: &Batch<AckItem>) -> Result<Vec<Settled<Acked>>, StoreError>;

    /// nack, as it is in [`redrive_store::Store`].
    async fn nack_alone(
        &self,
        now: Now,
        batch: &Batch<NackItem>,
        seed: u64,
    ) -> Result<Vec<Settled<Judged>>, StoreError>;

    /// One lease for all who ask, who want the same and differ only in their names and in how many they want. The messages
    /// are handed out in the order of the requests.
    async fn lease_alone(&self, now: Now, requests: &[LeaseRequest]) -> Result<Leased, QueueError>;
}

/// The lines of all verbs that are joined.
#[derive(Debug, Default)]
pub struct Joints {
    enqueue: Arc<Together<Key, Vec<EnqueueItem>, Answer<EnqueueOutcome>>>,
    ack: Arc<Together<Key, Vec<AckItem>, Answer<Settled<Acked>>>>,
    nack: Arc<Together<Key, Nacks, Answer<Settled<Judged>>>>,
    lease: Arc<Together<LeaseKey, LeaseRequest, Result<Leased, QueueError>>>,
    /// Where rounds of a queue take turns; otherwise each verb has one under way.
    turns: Option<Arc<Turns>>,
}

impl<T: Item + Send + 'static> Ask for Vec<T> {
    fn items(&self) -> usize {
        self.len()
    }

    fn bytes(&self) -> usize {
        self.iter().map(Item::load).sum()
    }
}

impl Ask for Nacks {
    fn items(&self) -> usize {
        self.0.items()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Ask for LeaseRequest {
    fn items(&self) -> usize {
        self.limit.get()
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// Whether a batch is joined with others: it is small, of one queue, and each item of it stands alone.
fn joins<'q, T>(batch: &'q Batch<T>, queue: impl Fn(&'q T) -> &'q QueueName) -> Option<QueueName> {
    let items = batch.items();
    let first = queue(items.first()?);
    let small = items.len() <= JOINED_ITEMS && !batch.is_all_or_nothing();
    (small && items.iter().all(|item| queue(item) == first)).then(|| first.clone())
}

fn at(now: Now) -> Option<Timestamp> {
    match now {
        Now::At(at) => Some(at),
        Now::Store => None,
    }
}

fn lost() -> StoreError {
    StoreError::OutcomeUnknown("the call that it went along with ended without an answer".into())
}

/// Each one's part of the outcomes, in order.
fn parts<T>(outcomes: Vec<T>, sizes: &[usize]) -> Vec<Answer<T>> {
    let mut outcomes = outcomes.into_iter();
    sizes.iter().map(|size| Ok(outcomes.by_ref().take(*size).collect())).collect()
}

/// Whether something of a call that failed may have been done: then nobody does it again.
fn may_have_begun(error: &StoreError) -> bool {
    matches!(error, StoreError::OutcomeUnknown(_) | StoreError::Damaged { .. })
}

/// What each of those is told whose call that was.
fn for_each(error: &StoreError) -> StoreError {
    match error {
        StoreError::Damaged { location, problem } => {
            StoreError::Damaged { location: location.clone(), problem: problem.clone() }
        }
        unknown => StoreError::OutcomeUnknown(unknown.to_string().into()),
    }
}

/// Carries out batches as one, and each alone where that did not work.
async fn as_one<T: Item + Clone, R, F: Future<Output = Answer<R>>>(
    asks: Vec<Vec<T>>,
    call: impl Fn(Batch<T>) -> F,
) -> Vec<Answer<R>> {
    let sizes: Vec<usize> = asks.iter().map(Vec::len).collect();
    let alone = async |items: Vec<T>| match Batch::each(items) {
        Ok(batch) => call(batch).await,
        Err(invalid) => Err(StoreError::Unavailable(invalid.into())),
    };
    if let [_] = sizes[..] {
        return join_all(asks.into_iter().map(alone)).await;
    }
    match alone(asks.concat()).await {
        Ok(outcomes) => parts(outcomes, &sizes),
        Err(error) if may_have_begun(&error) => sizes.iter().map(|_| Err(for_each(&error))).collect(),
        Err(_) => join_all(asks.into_iter().map(alone)).await,
    }
}

impl Joints {
    /// Rounds of a queue take turns, over all verbs, but for those that are full.
    pub fn taking_turns() -> Self {
        Self { turns: Some(Arc::default()), ..Self::default() }
    }

    fn turn(&self, queue: &QueueName) -> Option<Turn> {
        self.turns.as_ref().map(|turns| turns.of(queue))
    }

    /// enqueue, together with whoever else asks for the same.
    pub async fn enqueue<S: Alone>(
        &self,
        store: &Arc<S>,
        now: Now,
        batch: Batch<EnqueueItem>,
    ) -> Answer<EnqueueOutcome> {
        let Some(queue) = joins(&batch, |item| &item.queue) else {
            return store.enqueue_alone(now, &batch).await;
        };
        let deduped = batch.items().iter().any(|item| item.draft.spec.dedup.is_some());
        let turn = || self.turn(&queue);
        let key = (queue.clone(), at(now), deduped);
        let shared = Arc::clone(store);
        let work = move |asks| {
            let shared = Arc::clone(&shared);
            async move { as_one(asks, async |batch| shared.enqueue_alone(now, &batch).await).await }
        };
        match self.enqueue.call(key, batch.into_items(), turn, work).await {
            Ok(answer) => answer,
            Err(Apart::Full(items)) => store.enqueue_alone(now, &rejoined(items)?).await,
            Err(Apart::Lost) => Err(lost()),
        }
    }

    /// ack, together with whoever else asks for the same.
    pub async fn ack<S: Alone>(
        &self,
        store: &Arc<S>,
        now: Now,
        batch: Batch<AckItem>,
    ) -> Answer<Settled<Acked>> {
        let Some(queue) = joins(&batch, |item| &item.claim.queue) else {
            return store.ack_alone(now, &batch).await;
        };
        let shared = Arc::clone(store);
        let work = move |asks| {
            let shared = Arc::clone(&shared);
            async move { as_one(asks, async |batch| shared.ack_alone(now, &batch).await).await }
        };
        let (key, turn) = ((queue.clone(), at(now), false), || self.turn(&queue));
        match self.ack.call(key, batch.into_items(), turn, work).await {
            Ok(answer) => answer,
            Err(Apart::Full(items)) => store.ack_alone(now, &rejoined(items)?).await,
            Err(Apart::Lost) => Err(lost()),
        }
    }

    /// nack, together with whoever else asks for the same.
    pub async fn nack<S: Alone>(
        &self,
        store: &Arc<S>,
        now: Now,
        batch: Batch<NackItem>,
        seed: u64,
    ) -> Answer<Settled<Judged>> {
        let Some(queue) = joins(&batch, |item| &item.claim.queue) else {
            return store.nack_alone(now, &batch, seed).await;
        };
        let shared = Arc::clone(store);
        let work = move |asks: Vec<Nacks>| {
            let shared = Arc::clone(&shared);
            async move {
                let seed = asks.first().map_or(0, |nacks| nacks.1);
                let asks = asks.into_iter().map(|nacks| nacks.0).collect();
                as_one(asks, async |batch| shared.nack_alone(now, &batch, seed).await).await
            }
        };
        let ask = Nacks(batch.into_items(), seed);
        let (key, turn) = ((queue.clone(), at(now), false), || self.turn(&queue));
        match self.nack.call(key, ask, turn, work).await {
            Ok(answer) => answer,
            Err(Apart::Full(nacks)) => store.nack_alone(now, &rejoined(nacks.0)?, seed).await,
            Err(Apart::Lost) => Err(lost()),
        }
    }

    /// lease, together with whoever else asks for the same.
    pub async fn lease<S: Alone>(
        &self,
        store: &Arc<S>,
        now: Now,
        request: LeaseRequest,
    ) -> Result<Leased, QueueError> {
        request.check()?;
        if request.pick != Pick::Fair || request.limit.get() > JOINED_ITEMS {
            return store.lease_alone(now, &[request]).await;
        }
        let key = LeaseKey {
            queue: request.queue.clone(),
            at: at(now),
            time: request.time,
            lane: match request.lane {
                LaneChoice::Queue => None,
                LaneChoice::Only(lane) => Some(lane == Lane::Retry),
            },
            kinds: request.filter.kinds.clone(),
            sources: request.filter.sources.clone(),
        };
        let shared = Arc::clone(store);
        let work = move |asks: Vec<LeaseRequest>| {
            let shared = Arc::clone(&shared);
            async move { lease_as_one(&*shared, now, asks).await }
        };
        let queue = key.queue.clone();
        match self.lease.call(key, request, || self.turn(&queue), work).await {
            Ok(answer) => answer,
            Err(Apart::Full(request)) => store.lease_alone(now, &[request]).await,
            Err(Apart::Lost) => Err(lost().into()),
        }
    }
}

async fn lease_as_one<S: Alone>(
    store: &S,
    now: Now,
    asks: Vec<LeaseRequest>,
) -> Vec<Result<Leased, QueueError>> {
    match store.lease_alone(now, &asks).await {
        Ok(leased) => shares(leased, &asks),
        Err(error) if asks.len() == 1 => vec![Err(error)],
        Err(QueueError::Store(error)) if may_have_begun(&error) => {
            asks.iter().map(|_| Err(for_each(&error).into())).collect()
        }
        Err(_) => {
            let alone = asks.iter().map(|ask| store.lease_alone(now, std::slice::from_ref(ask)));
            join_all(alone).await
        }
    }
}

/// Items that were a batch.
fn rejoined<T: Item>(items: Vec<T>) -> Result<Batch<T>, StoreError> {
    Batch::each(items).map_err(|invalid| StoreError::Unavailable(invalid.into()))
}

/// Each one's messages, in order: those who asked first are served first. One that is not there, because it cannot be read, is
/// missing where it belongs. What was swept on the way is told once.
fn shares(leased: Leased, asks: &[LeaseRequest]) -> Vec<Result<Leased, QueueError>> {
    let Leased { at, messages, more, swept } = leased;
    let (mut messages, mut swept) = (messages.into_iter().peekable(), Some(swept));
    let mut share = |ask: &LeaseRequest| {
        let is_theirs =
            |message: &Message| message.lease().is_some_and(|lease| lease.consumer == ask.consumer);
        let next = || messages.next_if(is_theirs);
        Leased {
            at,
            messages: std::iter::from_fn(next).take(ask.limit.get()).collect(),
            more,
            swept: swept.take().unwrap_or_else(Swept::default),
        }
    };
    asks.iter().map(|ask| Ok(share(ask))).collect()
}
