//! The store under test and the reference, side by side.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use proptest::sample::Index;
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, Verb, When};
use redrive_core::limits::Limits;
use redrive_core::message::{
    Body, Checkpoint, ContentType, DeadReason, ErrorText, Headers, Lane, Message, MessageId, Priority,
    Source, Spec, Uniqueness,
};
use redrive_core::policy::Asked;
use redrive_core::queue::{QueueName, QueueSettings};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Acked, Batch, BuryItem, EnqueueItem, EnqueueOutcome, ExtendItem, Filter, Judged, LaneChoice,
    LeaseRequest, LeaseTarget, Limit, NackItem, Now, Pick, ReleaseItem, Released, Settled, Store,
};
use redrive_store_memory::MemoryStore;

use super::compare::{coded, compare, plain, same};
use super::ledger::{Ledger, States, explained};
use super::step::{Act, Ask, Item, Picking, Step};
use crate::check;
use crate::subject::{Instance, Setup, Subject, reference};
use crate::world::{at_most, dedup, key, kind};

/// Most receipts that consumers remember; settled and lost ones among them.
const RECEIPTS_MAX: usize = 40;

/// The errors that consumers report; the first two are one failure group.
pub(super) const ERRORS: [&str; 3] = ["timeout after 31 ms", "timeout after 577 ms", "no route to host"];

/// One receipt for each of the two stores.
struct Receipt {
    subject: Claim,
    reference: Claim,
}

/// The store under test, the reference, and what consumers remember.
pub(super) struct Pair {
    instance: Option<Box<dyn Instance>>,
    pub(super) subject: Arc<dyn Store>,
    pub(super) reference: MemoryStore,
    pub(super) ledger: Ledger,
    pub(super) states: States,
    pub(super) now: Timestamp,
    pub(super) dice: Dice,
    pub(super) ids: Vec<MessageId>,
    receipts: Vec<Receipt>,
    /// The versions of registry entries that each store has told.
    pub(super) versions: BTreeMap<u8, Versions>,
}

/// The version of an entry in the store under test, and in the reference.
pub(super) type Versions = (Option<u64>, Option<u64>);

pub(super) type Checked = Result<(), String>;

impl Pair {
    pub(super) async fn open(subject: &dyn Subject) -> Self {
        let setup = tight();
        let instance = subject.open(&setup).await;
        let store = instance.store();
        let grace = store.capabilities().restart_grace;
        let mut pair = Self {
            subject: store,
            instance: Some(instance),
            reference: reference(&setup, grace),
            ledger: Ledger::default(),
            states: States::new(),
            now: Timestamp::from_millis(1_800_000_000_000),
            dice: Dice::seeded(7),
            ids: Vec::new(),
            receipts: Vec::new(),
            versions: BTreeMap::new(),
        };
        for queue in 0..3 {
            pair.create(queue).await.expect("an empty store takes a queue");
        }
        pair
    }

    /// Carries out a step on both and compares all there is to see.
    pub(super) async fn step(&mut self, step: &Step) -> Checked {
        let verbs = self.carry_out(step).await?;
        compare(self.subject.as_ref(), &self.reference, self.now).await?;
        check::audit(self.subject.as_ref(), self.now).await;
        if let Some(instance) = &self.instance {
            instance.audit().await;
        }
        let states = self.look().await;
        if !matches!(step, Step::Delete { .. }) {
            explained(&self.states, &states, &verbs)?;
        }
        self.ledger.agrees(&states)?;
        self.states = states;
        Ok(())
    }

    async fn look(&self) -> States {
        let mut states = States::new();
        for queue in self.subject.list_queues(None, Limit::MAX).await.expect("the store answers") {
            for message in check::list(self.subject.as_ref(), self.now, &queue.name, Filter::default()).await
            {
                states.insert((queue.name.clone(), message.id()), message.state(self.now));
            }
        }
        states
    }

    /// To how many messages each verb was applied, in the queues that are left.
    pub(super) async fn applied(&self) -> BTreeMap<Verb, u64> {
        let mut applied = BTreeMap::new();
        for queue in self.subject.list_queues(None, Limit::MAX).await.expect("the store answers") {
            let stats = self.subject.stats(self.at(), &queue.name).await.expect("the store answers");
            for verb in Verb::ALL {
                *applied.entry(verb).or_default() += stats.totals.of(verb);
            }
        }
        applied
    }

    /// Carries out a step on both; answers the verbs that it may have applied.
    async fn carry_out(&mut self, step: &Step) -> Result<Vec<Verb>, String> {
        match step {
            Step::Advance(ms) => {
                self.now = self.now.plus(Millis::new(*ms));
                return Ok(vec![Verb::Promote]);
            }
            Step::Restart(down) => {
                self.now = self.now.plus(Millis::new(*down));
                self.restart().await?;
                return Ok(vec![Verb::Promote]);
            }
            Step::Enqueue { items, all_or_nothing } => {
                self.enqueue(items, *all_or_nothing).await?;
                return Ok(vec![Verb::Enqueue]);
            }
            Step::Lease(ask) => {
                self.lease(ask).await?;
                return Ok(vec![Verb::Lease, Verb::Expire, Verb::Lapse, Verb::Move]);
            }
            Step::Settle { act, receipts, all_or_nothing } => {
                return self.settle(act, receipts, *all_or_nothing).await;
            }
            Step::Override { queue, message, release } => {
                self.overrule(*queue, message, *release).await?;
                return Ok(vec![Verb::Release, Verb::Lapse, Verb::Move]);
            }
            Step::Sweep { sweep, queue, limit } => return self.sweep(*sweep, *queue, *limit).await,
            Step::Bulk { bulk, queue, pick, limit, dry_run } => {
                return self.bulk(bulk, *queue, pick, (*limit, *dry_run)).await;
            }
            Step::Configure { queue, config } => self.configure(*queue, config).await?,
            Step::Pause { queue, key, pause } => self.pause(*queue, *key, *pause).await?,
            Step::Create(queue) => self.create(*queue).await?,
            Step::Delete { queue, force } => self.delete(*queue, *force).await?,
            Step::Register(writes) => self.register(writes).await?,
            Step::Log { records, trim } => self.log(*records, *trim).await?,
        }
        Ok(vec![])
    }

    pub(super) fn at(&self) -> Now {
        Now::At(self.now)
    }

    async fn restart(&mut self) -> Checked {
        let instance = self.instance.take().expect("an instance is always put back");
        let instance = instance.restart(self.now).await;
        self.subject = instance.store();
        self.instance = Some(instance);
        self.reference = self.reference.reopen(self.now).map_err(|error| error.to_string())?;
        Ok(())
    }

    async fn enqueue(&mut self, items: &[Item], all_or_nothing: bool) -> Checked {
        let items: Vec<EnqueueItem> = items.iter().map(|item| self.draft(item)).collect();
        let queues: Vec<QueueName> = items.iter().map(|item| item.queue.clone()).collect();
        let batch = if all_or_nothing { Batch::all_or_nothing(items) } else { Batch::each(items) };
        let batch = batch.map_err(|error| error.to_string())?;
        let ours = self.subject.enqueue(self.at(), batch.clone()).await.map_err(|error| error.code());
        if all_or_nothing && self.spans_too_much(&queues) {
            return same("a batch over several queues", &ours, &Err("UNSUPPORTED"));
        }
        let theirs = self.reference.enqueue(self.at(), batch).await.map_err(|error| error.code());
        for (queue, outcome) in queues.iter().zip(ours.iter().flatten()) {
            if let EnqueueOutcome::Enqueued { id, visible_at } = outcome {
                self.ledger.enqueued(queue, *id, *visible_at);
            }
        }
        same("enqueue", &ours, &theirs)
    }

    /// Whether one step over these queues is more than the subject can do, by its own word. It must say so, and do nothing: the
    /// reference is not asked, and the comparison after the step finds whatever was done.
    fn spans_too_much(&self, queues: &[QueueName]) -> bool {
        let several = queues.windows(2).any(|pair| pair.first() != pair.last());
        several && !self.subject.capabilities().atomic_across_queues
    }

    fn draft(&mut self, item: &Item) -> EnqueueItem {
        let id = match &item.repeat {
            Some(index) if !self.ids.is_empty() => *index.get(&self.ids),
            _ => MessageId::new(self.now, u128::from(self.dice.roll()) << 3),
        };
        self.ids.push(id);
        let unique = |until_done| if until_done { Uniqueness::UntilDone } else { Uniqueness::Window };
        let spec = Spec {
            id,
            body: Body::new(format!("body of {id}")).expect("a small body"),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind: kind(&format!("type {}", item.kind)),
            source: Source::default(),
            fairness_key: key(&format!("tenant {}", item.key)),
            dedup: item.dedup.and_then(|(key, until_done)| dedup(&format!("key {key}"), unique(until_done))),
            lease_timeout: item.lease_timeout.map(Millis::new),
            max_attempts: item.max_attempts.and_then(NonZeroU32::new),
        };
        let draft = Draft {
            spec,
            priority: Priority::new(item.priority).expect("0 to 9"),
            visible: When::After(Millis::new(item.delay)),
            expires: item.ttl.map(|ms| When::After(Millis::new(ms))),
        };
        EnqueueItem { queue: name(item.queue), draft }
    }

    async fn lease(&mut self, ask: &Ask) -> Checked {
        let avoid = |index: &Index| if self.ids.is_empty() { None } else { Some(*index.get(&self.ids)) };
        let pick = match &ask.pick {
            Picking::Fair => Pick::Fair,
            Picking::Probe => Pick::Probe { avoid: None },
            Picking::ProbeOtherThan(last) => Pick::Probe { avoid: avoid(last) },
        };
        let lane = match ask.lane {
            Some(fresh) => LaneChoice::Only(if fresh { Lane::Fresh } else { Lane::Retry }),
            None => LaneChoice::Queue,
        };
        let consumer = ConsumerName::new(format!("consumer {}", ask.consumer)).expect("a good name");
        let mut request = LeaseRequest::new(name(ask.queue), at_most(ask.limit), consumer, self.dice.roll());
        request.filter.kinds = ask.kind.iter().map(|n| kind(&format!("type {n}"))).collect();
        (request.lane, request.pick, request.time) = (lane, pick, ask.time.map(Millis::new));
        let settings = self.settings(&request.queue).await;
        let ours = coded(self.subject.lease(self.at(), request.clone()).await);
        let picked: Vec<MessageId> =
            ours.iter().flat_map(|leased| &leased.messages).map(Message::id).collect();
        let more = ours.as_ref().is_ok_and(|leased| leased.more);
        let theirs = coded(self.reference.follow_lease(self.at(), &request, (&picked, more))?);
        let (Ok(ours), Ok(theirs)) = (&ours, &theirs) else {
            return same("lease", &ours.map(|_| ()), &theirs.map(|_| ()));
        };
        same("what the lease call swept", &ours.swept, &theirs.swept)?;
        self.judged(&ours.swept.expired);
        self.judged(&ours.swept.lapsed);
        for (ours, theirs) in ours.messages.iter().zip(&theirs.messages) {
            same("a leased message", &plain(ours.clone()), &plain(theirs.clone()))?;
            self.ledger.granted(ours, &settings.clone().unwrap_or_default(), self.now)?;
            let claim = |message| Claim::on(message).ok_or("handed out without a lease");
            self.receipts.push(Receipt { subject: claim(ours)?, reference: claim(theirs)? });
        }
        let excess = self.receipts.len().saturating_sub(RECEIPTS_MAX);
        self.receipts.drain(..excess);
        Ok(())
    }

    async fn settings(&self, queue: &QueueName) -> Option<QueueSettings> {
        self.subject.stats(self.at(), queue).await.ok().map(|stats| stats.settings)
    }

    /// Messages that were judged by a sweeper.
    pub(super) fn judged(&mut self, judged: &[Judged]) {
        for one in judged {
            self.ledger.judged(one);
        }
    }

    async fn settle(
        &mut self,
        act: &Act,
        chosen: &[Index],
        all_or_nothing: bool,
    ) -> Result<Vec<Verb>, String> {
        if self.receipts.is_empty() {
            return Ok(vec![]);
        }
        let receipts: Vec<&Receipt> = chosen.iter().map(|index| index.get(&self.receipts)).collect();
        let ours: Vec<Claim> = receipts.iter().map(|receipt| receipt.subject.clone()).collect();
        let theirs: Vec<Claim> = receipts.iter().map(|receipt| receipt.reference.clone()).collect();
        let (seed, now) = (self.dice.roll(), self.at());
        let subject = settled(self.subject.as_ref(), now, act, &ours, all_or_nothing, seed).await;
        let queues: Vec<QueueName> = ours.iter().map(|claim| claim.queue.clone()).collect();
        if all_or_nothing && self.spans_too_much(&queues) {
            return same("a batch over several queues", &subject, &Err("UNSUPPORTED")).map(|()| vec![]);
        }
        let reference = settled(&self.reference, now, act, &theirs, all_or_nothing, seed).await;
        same("a settlement", &subject, &reference)?;
        let subject = subject?;
        for (claim, outcome) in ours.iter().zip(&subject) {
            if let Settled::Applied((time, judged, _)) = outcome {
                self.ledger.accepted(claim, !matches!(act, Act::Extend { .. }))?;
                if let (Act::Release(_), Some(visible_at)) = (act, time) {
                    self.ledger.released(&claim.queue, claim.message, *visible_at);
                }
                self.judged(judged.as_slice());
            }
        }
        Ok(match act {
            Act::Ack => vec![Verb::Ack],
            Act::Nack { .. } => vec![Verb::Nack, Verb::Move],
            Act::Extend { .. } => vec![],
            Act::Release(_) => vec![Verb::Release, Verb::Lapse, Verb::Move],
            Act::Bury => vec![Verb::Bury, Verb::Move],
        })
    }

    async fn overrule(&mut self, queue: u8, message: &Index, release: bool) -> Checked {
        if self.ids.is_empty() {
            return Ok(());
        }
        let (queue, message) = (name(queue), *message.get(&self.ids));
        let target = LeaseTarget::Current { queue: queue.clone(), message };
        if release {
            let batch = || Batch::one(ReleaseItem { target: target.clone(), delay: None }).expect("one item");
            let ours = self.subject.release(self.at(), batch()).await.map_err(|error| error.code());
            let theirs = self.reference.release(self.at(), batch()).await.map_err(|error| error.code());
            if let Ok([Settled::Applied(Released { visible_at, lapsed, .. })]) = ours.as_deref() {
                self.ledger.released(&queue, message, *visible_at);
                self.judged(lapsed.as_slice());
            }
            return same("a release by an operator", &ours, &theirs);
        }
        let item = ExtendItem { target, time: Millis::new(45_000), checkpoint: None };
        let batch = || Batch::one(item.clone()).expect("one item");
        let ours = self.subject.extend(self.at(), batch()).await.map_err(|error| error.code());
        let theirs = self.reference.extend(self.at(), batch()).await.map_err(|error| error.code());
        same("an extension by an operator", &ours, &theirs)
    }
}

/// Limits that histories run into: of three types, three dedup keys and three queues, one is too many.
fn tight() -> Setup {
    Setup { limits: Limits { classes_per_queue: 2, dedup_keys_per_queue: 2, queues: 3 }, ..Setup::default() }
}

pub(super) fn name(queue: u8) -> QueueName {
    QueueName::new(format!("q{queue}")).expect("a good name")
}

/// What a settlement answered, in a form that is the same for all of them.
type Answer = Settled<Told>;

/// What is told of a settlement: a time, a verdict, and, where there is no verdict that says it, who had the message.
type Told = (Option<Timestamp>, Option<Judged>, Option<ConsumerName>);

fn answer<T>(outcomes: Vec<Settled<T>>, told: impl Fn(T) -> Told) -> Vec<Answer> {
    let one = |outcome| match outcome {
        Settled::Applied(applied) => Settled::Applied(told(applied)),
        Settled::LeaseLost => Settled::LeaseLost,
        Settled::NotFound => Settled::NotFound,
        Settled::Aborted => Settled::Aborted,
    };
    outcomes.into_iter().map(one).collect()
}

async fn settled(
    store: &dyn Store,
    now: Now,
    act: &Act,
    claims: &[Claim],
    all_or_nothing: bool,
    seed: u64,
) -> Result<Vec<Answer>, &'static str> {
    fn batch<T: redrive_store::Item>(all_or_nothing: bool, items: Vec<T>) -> Batch<T> {
        let batch = if all_or_nothing { Batch::all_or_nothing(items) } else { Batch::each(items) };
        batch.expect("a small batch")
    }
    let claims = claims.iter().cloned();
    let note = |wanted: bool| wanted.then(|| Checkpoint::new(seed.to_string()).expect("small"));
    let answers = match act {
        Act::Ack => {
            let items = claims.map(|claim| AckItem { claim }).collect();
            let told = |acked: Acked| (None, None, Some(acked.consumer));
            store.ack(now, batch(all_or_nothing, items)).await.map(|all| answer(all, told))
        }
        Act::Nack { asked, error, checkpoint } => {
            let asked = match asked {
                None => Asked::Nothing,
                Some((true, ms)) => Asked::Exactly(Millis::new(*ms)),
                Some((false, ms)) => Asked::AtLeast(Millis::new(*ms)),
            };
            let error = ErrorText::new(ERRORS[usize::from(*error)]);
            let item = |claim| NackItem { claim, asked, error: error.clone(), checkpoint: note(*checkpoint) };
            let batch = batch(all_or_nothing, claims.map(item).collect());
            store.nack(now, batch, seed).await.map(|all| answer(all, |judged| (None, Some(judged), None)))
        }
        Act::Extend { time, checkpoint } => {
            let item = |claim| ExtendItem {
                target: LeaseTarget::Claim(claim),
                time: Millis::new(*time),
                checkpoint: note(*checkpoint),
            };
            let batch = batch(all_or_nothing, claims.map(item).collect());
            store.extend(now, batch).await.map(|all| answer(all, |deadline| (Some(deadline), None, None)))
        }
        Act::Release(delay) => {
            let item =
                |claim| ReleaseItem { target: LeaseTarget::Claim(claim), delay: delay.map(Millis::new) };
            let batch = batch(all_or_nothing, claims.map(item).collect());
            let told =
                |released: Released| (Some(released.visible_at), released.lapsed, Some(released.consumer));
            store.release(now, batch).await.map(|all| answer(all, told))
        }
        Act::Bury => {
            let error = ErrorText::new(ERRORS[2]);
            let item = |claim| BuryItem { claim, reason: DeadReason::Buried, error: error.clone() };
            let batch = batch(all_or_nothing, claims.map(item).collect());
            store.bury(now, batch).await.map(|all| answer(all, |judged| (None, Some(judged), None)))
        }
    };
    answers.map_err(|error| error.code())
}
