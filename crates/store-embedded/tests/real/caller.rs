//! A caller of the store that says what it asks before each call, and what it was told after it.

use futures::executor::block_on;
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, Checkpoint, ContentType, DeadReason, Dedup, DedupKey, ErrorText, FairnessKey, Headers, Message,
    MessageId, MessageType, Priority, Source, Spec, Uniqueness,
};
use redrive_core::policy::{Asked, Jitter, RetryOverride, Verdict};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::{Claim, ReceiptKey};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Batch, BuryItem, CreateQueue, EnqueueItem, EnqueueOutcome, ExtendItem, Judged, LeaseRequest,
    LeaseTarget, Limit, NackItem, Now, QueueError, ReleaseItem, Settled, Store, StoreError,
};

use crate::line::{Answer, Ask, Grant, Line, Verb};

/// The queues of every test here. The id of a message says which one it is in.
pub(crate) const QUEUES: [&str; 2] = ["orders", "mails"];

/// How long leases last: longer than every test, so that none ends by itself.
pub(crate) const LEASE: Millis = Millis::from_secs(3_600);

/// One caller.
pub(crate) struct Caller<'a> {
    store: &'a dyn Store,
    key: ReceiptKey,
    name: String,
    calls: u64,
    dice: Dice,
    say: Box<dyn FnMut(Line) + 'a>,
}

impl<'a> Caller<'a> {
    /// A caller whose calls are named `name-0`, `name-1` and so on.
    pub(crate) fn new(store: &'a dyn Store, name: String, seed: u64, say: impl FnMut(Line) + 'a) -> Self {
        let key = block_on(store.receipt_key()).expect("the store has a receipt key");
        Self { store, key, name, calls: 0, dice: Dice::seeded(seed), say: Box::new(say) }
    }

    /// Enqueues messages; whether they were taken. A full disk refuses them, nothing else does.
    pub(crate) fn enqueue(&mut self, ids: &[MessageId]) -> bool {
        let items = ids.iter().map(|id| EnqueueItem { queue: queue_of(*id), draft: draft(*id) });
        let batch = Batch::each(items.collect()).expect("a small batch");
        let call = self.ask(Ask::Enqueue(ids.to_vec()));
        let answer = match block_on(self.store.enqueue(Now::Store, batch)) {
            Ok(outcomes) => {
                outcomes.into_iter().map(visible_at).collect::<Result<_, _>>().map(Answer::Enqueued)
            }
            Err(StoreError::StorageFull) => Ok(Answer::Refused("STORAGE_FULL".to_owned())),
            Err(error) => Err(error.to_string()),
        };
        matches!(self.tell(call, answer), Some(Answer::Enqueued(_)))
    }

    /// Leases up to `limit` messages.
    pub(crate) fn lease(&mut self, queue: &str, limit: usize) -> Vec<Grant> {
        let queue = QueueName::new(queue).expect("a good name");
        let limit = Limit::new(limit).expect("a good limit");
        let call = self.ask(Ask::Lease);
        let consumer = ConsumerName::new(call.clone()).expect("a short name");
        let request = LeaseRequest::new(queue, limit, consumer, self.dice.roll());
        let answer = match block_on(self.store.lease(Now::Store, request)) {
            Ok(leased) => leased.messages.iter().map(|m| self.grant(m)).collect::<Result<_, _>>(),
            Err(error) => Err(error.to_string()),
        };
        match self.tell(call, answer.map(Answer::Leased)) {
            Some(Answer::Leased(grants)) => grants,
            _ => Vec::new(),
        }
    }

    /// Settles a lease; what came of it, unless the store failed.
    pub(crate) fn settle(&mut self, verb: Verb, grant: &Grant) -> Option<Answer> {
        let claim = self.key.open(&grant.receipt).map_err(|_| format!("{grant:?}: the receipt is not valid"));
        let call = self.ask(Ask::Settle(verb, grant.id, grant.lease));
        let answer = claim.and_then(|claim| self.apply(verb, claim));
        self.tell(call, answer)
    }

    /// Tries a receipt whose lease has ended: it must not work.
    pub(crate) fn settle_again(&mut self, verb: Verb, grant: &Grant) {
        let Ok(claim) = self.key.open(&grant.receipt) else { return };
        match self.apply(verb, claim) {
            Ok(Answer::Refused(_)) => {}
            other => (self.say)(Line::Wrong(format!("{grant:?}: a receipt worked twice: {other:?}"))),
        }
    }

    /// Enqueues another message with the dedup key of one that was enqueued: it must be taken for the first one.
    pub(crate) fn enqueue_again(&mut self, first: MessageId) {
        let mut draft = draft(first);
        draft.spec.id = MessageId::new(Timestamp::EPOCH, u128::from(self.dice.roll()));
        let batch = one(EnqueueItem { queue: queue_of(first), draft });
        match block_on(self.store.enqueue(Now::Store, batch)) {
            Ok(outcomes) if outcomes == [EnqueueOutcome::Duplicate { id: first }] => {}
            other => (self.say)(Line::Wrong(format!("{first}: its dedup key is not held: {other:?}"))),
        }
    }

    fn apply(&mut self, verb: Verb, claim: Claim) -> Result<Answer, String> {
        let (seed, store) = (self.dice.roll(), self.store);
        let delay = (seed % 3 == 0).then_some(Millis::new(seed % 50));
        let error = ErrorText::new("it failed");
        let checkpoint = Some(checkpoint(&claim));
        block_on(async {
            Ok(match verb {
                Verb::Ack => {
                    let batch = one(AckItem { claim });
                    told(store.ack(Now::Store, batch).await?, |_| Answer::Gone)
                }
                Verb::Nack => {
                    let asked = delay.map_or(Asked::Nothing, Asked::Exactly);
                    let batch = one(NackItem { claim, asked, error, checkpoint });
                    told(store.nack(Now::Store, batch, seed).await?, |done| judged(&done))
                }
                Verb::Release => {
                    let batch = one(ReleaseItem { target: LeaseTarget::Claim(claim), delay });
                    told(store.release(Now::Store, batch).await?, |done| Answer::Waiting(done.visible_at))
                }
                Verb::Bury => {
                    let batch = one(BuryItem { claim, reason: DeadReason::Buried, error });
                    told(store.bury(Now::Store, batch).await?, |done| judged(&done))
                }
                Verb::Extend => {
                    let target = LeaseTarget::Claim(claim);
                    let batch = one(ExtendItem { target, time: LEASE, checkpoint });
                    told(store.extend(Now::Store, batch).await?, Answer::Extended)
                }
            })
        })
        .map_err(|error: StoreError| error.to_string())
    }

    fn grant(&self, message: &Message) -> Result<Grant, String> {
        let claim = Claim::on(message).ok_or("a message was handed out without a lease")?;
        if let Some(problem) = foreign(message) {
            return Err(problem);
        }
        let lease = message.lease().ok_or("a message was handed out without a lease")?;
        Ok(Grant {
            id: message.id(),
            lease: lease.id,
            attempts: message.progress.attempts,
            deadline: lease.deadline,
            receipt: self.key.seal(&claim),
        })
    }

    fn ask(&mut self, ask: Ask) -> String {
        let call = format!("{}-{}", self.name, self.calls);
        self.calls += 1;
        (self.say)(Line::Asks(call.clone(), ask));
        call
    }

    fn tell(&mut self, call: String, answer: Result<Answer, String>) -> Option<Answer> {
        match answer {
            Ok(answer) => {
                (self.say)(Line::Told(call, answer.clone()));
                Some(answer)
            }
            Err(problem) => {
                (self.say)(Line::Wrong(format!("{call}: {problem}")));
                None
            }
        }
    }
}

fn one<T: redrive_store::Item>(item: T) -> Batch<T> {
    Batch::one(item).expect("one small item")
}

fn visible_at(outcome: EnqueueOutcome) -> Result<Timestamp, String> {
    match outcome {
        EnqueueOutcome::Enqueued { visible_at, .. } => Ok(visible_at),
        other => Err(format!("not enqueued: {other:?}")),
    }
}

fn told<T>(outcomes: Vec<Settled<T>>, applied: impl FnOnce(T) -> Answer) -> Answer {
    match outcomes.into_iter().next() {
        Some(Settled::Applied(done)) => applied(done),
        Some(other) => Answer::Refused(other.code().unwrap_or("NOTHING").to_owned()),
        None => Answer::Refused("NO_OUTCOME".to_owned()),
    }
}

fn judged(judged: &Judged) -> Answer {
    match judged.verdict {
        Verdict::RetryAt(at, _) => Answer::Waiting(at),
        Verdict::Dead(_) => Answer::Dead,
    }
}

/// Creates the queues where they are not there yet.
pub(crate) fn create_queues(store: &dyn Store) -> Result<(), QueueError> {
    let retry = RetryOverride {
        base_delay: Some(Millis::ZERO),
        jitter: Some(Jitter::None),
        ..RetryOverride::default()
    };
    let config = QueueConfig { lease_timeout: Some(LEASE), retry, ..QueueConfig::default() };
    for name in QUEUES {
        let request = CreateQueue { name: QueueName::new(name)?, config: config.clone() };
        match block_on(store.create_queue(Now::Store, request)) {
            Ok(_) | Err(QueueError::AlreadyExists(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The queue that a message belongs in.
pub(crate) fn queue_of(id: MessageId) -> QueueName {
    let index = usize::from(bits(id, 0).is_multiple_of(4));
    QueueName::new(QUEUES[index]).expect("a good name")
}

/// What the checkpoint of a lease looks like.
pub(crate) fn checkpoint(claim: &Claim) -> Checkpoint {
    Checkpoint::new(claim.lease.to_string()).expect("a short text")
}

/// Whether a message has a dedup key, which is its id.
pub(crate) fn has_dedup(id: MessageId) -> bool {
    bits(id, 1).is_multiple_of(4)
}

/// Everything about a message follows from its id, so that it can be checked by whoever reads it.
pub(crate) fn draft(id: MessageId) -> Draft {
    let dedup = has_dedup(id).then(|| Dedup {
        key: DedupKey::new(id.to_string()).expect("a good key"),
        unique: Uniqueness::Window,
    });
    let spec = Spec {
        id,
        body: Body::new(body(id)).expect("a body within the limit"),
        content_type: ContentType::default(),
        headers: Headers::default(),
        kind: MessageType::new(format!("kind {}", bits(id, 2) % 3)).expect("a good type"),
        source: Source::default(),
        fairness_key: FairnessKey::new(format!("tenant {}", bits(id, 3) % 5)).expect("a good key"),
        dedup,
        lease_timeout: None,
        max_attempts: None,
    };
    let priority = Priority::new(u8::try_from(bits(id, 4) % 10).expect("0 to 9")).expect("0 to 9");
    Draft { spec, priority, visible: When::Now, expires: None }
}

/// What is wrong with what a message carries.
pub(crate) fn foreign(message: &Message) -> Option<String> {
    let id = message.id();
    if message.spec == draft(id).spec && message.queue == queue_of(id) {
        return None;
    }
    Some(format!("{id} is not what was enqueued: {:?} in {}", message.spec, message.queue))
}

/// Whether a message is about as large as a small segment; one in sixty-four is, the others are small.
pub(crate) fn is_large(id: MessageId) -> bool {
    bits(id, 5).is_multiple_of(64)
}

fn body(id: MessageId) -> Vec<u8> {
    let size = if is_large(id) { 40_000 + bits(id, 5) % 60_000 } else { bits(id, 5) % 1_000 };
    let mut dice = Dice::seeded(bits(id, 6));
    (0..size).map(|_| dice.roll().to_le_bytes()[0]).collect()
}

/// Random bits that belong to a message.
fn bits(id: MessageId, use_: u32) -> u64 {
    Dice::for_attempt(7, id, use_).roll()
}
