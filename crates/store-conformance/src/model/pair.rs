//! The store under test and the reference, side by side.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::sync::Arc;

use bytes::Bytes;
use proptest::sample::Index;
use redrive_core::dice::Dice;
use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Draft, Reschedule, Verb, When};
use redrive_core::message::{
    Body, Checkpoint, ContentType, DeadReason, ErrorText, Headers, Lane, Message, MessageId, Priority,
    Source, Spec, State, Uniqueness,
};
use redrive_core::policy::{Asked, Jitter, RetryLane, RetryOverride, Weight};
use redrive_core::queue::{Pause, QueueConfig, QueueName, QueueSettings, Retention, Weights};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Batch, Bulk, BuryItem, CreateQueue, DeleteQueue, EnqueueItem, EntryKey, EntryKind, EntryName,
    Expect, ExpireRequest, ExtendItem, Filter, Judged, LaneChoice, LeaseRequest, LeaseTarget, LogName,
    NackItem, Now, PauseQueue, Pick, QueueError, ReleaseItem, Selection, Settled, Store, SweepRequest,
    UpdateQueue, Write, WriteOutcome, Writes,
};
use redrive_store_memory::MemoryStore;

use super::compare::{coded, compare, plain, same};
use super::ledger::{Ledger, States, explained};
use super::step::{self, Act, Ask, Expected, Item, Select, Setting, Step, Sweep};
use crate::check;
use crate::subject::{Instance, Setup, Subject, reference};
use crate::world::{dedup, key, kind, note};

/// Most receipts that consumers remember; settled and lost ones among them.
const RECEIPTS_MAX: usize = 40;

/// The errors that consumers report; the first two are one failure group.
const ERRORS: [&str; 3] = ["timeout after 31 ms", "timeout after 577 ms", "no route to host"];

/// One receipt for each of the two stores.
struct Receipt {
    subject: Claim,
    reference: Claim,
}

/// The store under test, the reference, and what consumers remember.
pub(super) struct Pair {
    instance: Option<Box<dyn Instance>>,
    subject: Arc<dyn Store>,
    reference: MemoryStore,
    ledger: Ledger,
    states: States,
    now: Timestamp,
    dice: Dice,
    ids: Vec<MessageId>,
    receipts: Vec<Receipt>,
    /// The versions of registry entries that each store has told.
    versions: BTreeMap<u8, (Option<u64>, Option<u64>)>,
}

type Checked = Result<(), String>;

impl Pair {
    pub(super) async fn open(subject: &dyn Subject) -> Self {
        let setup = Setup::default();
        let instance = subject.open(&setup).await;
        let mut pair = Self {
            subject: instance.store(),
            instance: Some(instance),
            reference: reference(&setup),
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
        for queue in self.subject.list_queues(None, 100).await.expect("the store answers") {
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
        for queue in self.subject.list_queues(None, 100).await.expect("the store answers") {
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
            Step::Restart => {
                self.restart().await?;
                return Ok(vec![]);
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
                return Ok(vec![Verb::Release]);
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

    fn at(&self) -> Now {
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
        let batch = if all_or_nothing { Batch::all_or_nothing(items) } else { Batch::each(items) };
        let batch = batch.map_err(|error| error.to_string())?;
        let ours = self.subject.enqueue(self.at(), batch.clone()).await.map_err(|error| error.code());
        let theirs = self.reference.enqueue(self.at(), batch).await.map_err(|error| error.code());
        same("enqueue", &ours, &theirs)
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
        let pick = match &ask.probe {
            Some(last) => Pick::Probe { avoid: last.as_ref().and_then(avoid) },
            None => Pick::Fair,
        };
        let lane = match ask.lane {
            Some(fresh) => LaneChoice::Only(if fresh { Lane::Fresh } else { Lane::Retry }),
            None => LaneChoice::Queue,
        };
        let consumer = ConsumerName::new(format!("consumer {}", ask.consumer)).expect("a good name");
        let mut request = LeaseRequest::new(name(ask.queue), ask.limit, consumer, self.dice.roll());
        request.filter.kinds = ask.kind.iter().map(|n| kind(&format!("type {n}"))).collect();
        (request.lane, request.pick, request.time) = (lane, pick, ask.time.map(Millis::new));
        let settings = self.settings(&request.queue).await;
        let ours = coded(self.subject.lease(self.at(), request.clone()).await);
        let picked: Vec<MessageId> =
            ours.iter().flat_map(|leased| &leased.messages).map(Message::id).collect();
        let theirs = coded(self.reference.follow_lease(self.at(), &request, &picked)?);
        let (Ok(ours), Ok(theirs)) = (&ours, &theirs) else {
            return same("lease", &ours.map(|_| ()), &theirs.map(|_| ()));
        };
        same("what the lease call swept", &ours.swept, &theirs.swept)?;
        self.judged(&ours.swept.expired);
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

    /// Leases that were ended by a sweeper.
    fn judged(&mut self, judged: &[Judged]) {
        for one in judged {
            self.ledger.ended(&one.queue, one.message);
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
        let subject = settled(self.subject.as_ref(), now, act, &ours, all_or_nothing, seed).await?;
        let reference = settled(&self.reference, now, act, &theirs, all_or_nothing, seed).await?;
        same("a settlement", &subject, &reference)?;
        for (claim, outcome) in ours.iter().zip(&subject) {
            if outcome.is_applied() {
                self.ledger.accepted(claim, !matches!(act, Act::Extend { .. }))?;
            }
        }
        Ok(match act {
            Act::Ack => vec![Verb::Ack],
            Act::Nack { .. } => vec![Verb::Nack, Verb::Move],
            Act::Extend { .. } => vec![],
            Act::Release(_) => vec![Verb::Release],
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
            if ours.iter().flatten().any(Settled::is_applied) {
                self.ledger.ended(&queue, message);
            }
            return same("a release by an operator", &ours, &theirs);
        }
        let item = ExtendItem { target, time: Millis::new(45_000), checkpoint: None };
        let batch = || Batch::one(item.clone()).expect("one item");
        let ours = self.subject.extend(self.at(), batch()).await.map_err(|error| error.code());
        let theirs = self.reference.extend(self.at(), batch()).await.map_err(|error| error.code());
        same("an extension by an operator", &ours, &theirs)
    }

    async fn sweep(&mut self, sweep: Sweep, queue: Option<u8>, limit: usize) -> Result<Vec<Verb>, String> {
        let (now, seed, queue) = (self.at(), self.dice.roll(), queue.map(name));
        let request = SweepRequest { queue: queue.clone(), limit };
        match sweep {
            Sweep::Expire => {
                let request = ExpireRequest { queue, limit, error: None, seed };
                let ours = coded(self.subject.expire(now, request.clone()).await);
                // Which of several leases with the same deadline goes first depends on their ids.
                let sorted = |judged: Result<Vec<Judged>, _>| judged.map(by_message);
                let theirs = coded(self.reference.expire(now, request).await);
                self.judged(ours.as_deref().unwrap_or_default());
                same("expire", &sorted(ours), &sorted(theirs))?;
                Ok(vec![Verb::Expire, Verb::Move])
            }
            Sweep::Lapse => {
                let ours = coded(self.subject.lapse(now, request.clone()).await);
                same("lapse", &ours, &coded(self.reference.lapse(now, request).await))?;
                Ok(vec![Verb::Lapse, Verb::Move])
            }
            Sweep::Retain => {
                let ours = coded(self.subject.retain(now, request.clone()).await);
                same("retain", &ours, &coded(self.reference.retain(now, request).await))?;
                Ok(vec![Verb::Discard])
            }
        }
    }

    async fn bulk(
        &mut self,
        bulk: &step::Bulk,
        queue: u8,
        pick: &Select,
        (limit, dry_run): (usize, bool),
    ) -> Result<Vec<Verb>, String> {
        let filter = self.filter(pick);
        let selection = Selection { limit, dry_run, ..Selection::new(name(queue), filter) };
        let ours = stepwise(self.subject.as_ref(), self.at(), bulk, selection.clone()).await;
        let theirs = stepwise(&self.reference, self.at(), bulk, selection).await;
        let ours = coded(ours);
        if let (step::Bulk::Discard { .. }, Ok(bulk)) = (bulk, &ours) {
            for id in &bulk.applied {
                self.ledger.ended(&name(queue), *id);
            }
        }
        same("a bulk verb", &ours, &coded(theirs))?;
        Ok(match bulk {
            step::Bulk::Reschedule { .. } => vec![Verb::Reschedule],
            step::Bulk::Move(_) => vec![Verb::Move],
            step::Bulk::Redrive => vec![Verb::Redrive],
            step::Bulk::Discard { .. } => vec![Verb::Discard],
        })
    }

    fn filter(&self, pick: &Select) -> Filter {
        match pick {
            Select::All => Filter::default(),
            Select::State(n) => Filter::state(State::ALL[usize::from(*n) % State::ALL.len()]),
            Select::Kind(n) => Filter { kinds: vec![kind(&format!("type {n}"))], ..Filter::default() },
            Select::Message(index) if !self.ids.is_empty() => Filter::ids([*index.get(&self.ids)]),
            Select::Message(_) => Filter::default(),
            Select::Attempts(n) => Filter { attempts: Some(*n..=u32::MAX), ..Filter::default() },
            Select::Error(n) => {
                Filter { error: Some(ERRORS[usize::from(*n)].to_owned()), ..Filter::default() }
            }
        }
    }

    async fn configure(&mut self, queue: u8, setting: &Setting) -> Checked {
        let request = UpdateQueue { name: name(queue), config: config(setting), expected: None };
        let ours = coded(self.subject.update_queue(self.at(), request.clone()).await).map(|_| ());
        let theirs = coded(self.reference.update_queue(self.at(), request).await).map(|_| ());
        same("update_queue", &ours, &theirs)
    }

    async fn pause(&mut self, queue: u8, of: Option<u8>, pause: Option<Option<u64>>) -> Checked {
        let pause = pause.map(|end| match end {
            Some(ms) => Pause::Until(self.now.plus(Millis::new(ms))),
            None => Pause::UntilResumed,
        });
        let key = of.map(|n| key(&format!("tenant {n}")));
        let request = PauseQueue { name: name(queue), key, pause };
        let ours =
            coded(self.subject.pause_queue(self.at(), request.clone()).await).map(|queue| queue.pauses);
        let theirs = coded(self.reference.pause_queue(self.at(), request).await).map(|queue| queue.pauses);
        same("pause_queue", &ours, &theirs)
    }

    async fn create(&mut self, queue: u8) -> Checked {
        let request = CreateQueue { name: name(queue), config: QueueConfig::default() };
        let ours = coded(self.subject.create_queue(self.at(), request.clone()).await).map(|_| ());
        let theirs = coded(self.reference.create_queue(self.at(), request).await).map(|_| ());
        same("create_queue", &ours, &theirs)
    }

    async fn delete(&mut self, queue: u8, force: bool) -> Checked {
        let request = DeleteQueue { name: name(queue), force };
        let ours = coded(self.subject.delete_queue(self.at(), request.clone()).await);
        let theirs = coded(self.reference.delete_queue(self.at(), request).await);
        if ours.is_ok() {
            self.ledger.deleted(&name(queue));
        }
        same("delete_queue", &ours, &theirs)
    }

    async fn register(&mut self, writes: &[(u8, Expected, bool)]) -> Checked {
        let value = Bytes::from(self.dice.roll().to_string());
        let mut writes = writes.to_vec();
        writes.sort_by_key(|(entry, ..)| *entry);
        writes.dedup_by_key(|(entry, ..)| *entry);
        let versions = &self.versions;
        let build = |of: fn(&(Option<u64>, Option<u64>)) -> Option<u64>| {
            let write = |(entry, expected, delete): &(u8, Expected, bool)| {
                let known = versions.get(entry).and_then(of);
                Write {
                    key: entry_key(*entry),
                    expect: expect(*expected, known),
                    value: (!delete).then(|| value.clone()),
                }
            };
            Writes::new(writes.iter().map(write).collect()).expect("distinct entries")
        };
        let ours = self.subject.registry_write(build(|known| known.0)).await.map_err(|error| error.code())?;
        let theirs =
            self.reference.registry_write(build(|known| known.1)).await.map_err(|error| error.code())?;
        match (ours, theirs) {
            (WriteOutcome::Committed(ours), WriteOutcome::Committed(theirs)) => {
                for ((entry, ..), known) in writes.iter().zip(ours.into_iter().zip(theirs)) {
                    self.versions.insert(*entry, known);
                }
                Ok(())
            }
            (WriteOutcome::Conflict { index: ours, .. }, WriteOutcome::Conflict { index: theirs, .. }) => {
                same("the conflict", &ours, &theirs)
            }
            (ours, theirs) => same("registry_write", &ours, &theirs),
        }
    }

    async fn log(&mut self, records: usize, trim: Option<u64>) -> Checked {
        let log = LogName::new("audit").expect("a good name");
        let values: Vec<Bytes> = (0..records).map(|_| Bytes::from(self.dice.roll().to_string())).collect();
        for store in [self.subject.as_ref(), &self.reference as &dyn Store] {
            store.log_append(self.at(), &log, values.clone()).await.map_err(|error| error.to_string())?;
            if let Some(ms) = trim {
                let horizon = self.now.minus(Millis::new(ms));
                store.log_trim(&log, horizon).await.map_err(|error| error.to_string())?;
            }
        }
        let ours = self.subject.log_read(&log, 0, 1_000).await.map_err(|error| error.to_string())?;
        let theirs = self.reference.log_read(&log, 0, 1_000).await.map_err(|error| error.to_string())?;
        let told = |records: &[redrive_store::LogRecord]| -> Vec<(Timestamp, Bytes)> {
            records.iter().map(|record| (record.at, record.value.clone())).collect()
        };
        same("the log", &told(&ours), &told(&theirs))
    }
}

fn name(queue: u8) -> QueueName {
    QueueName::new(format!("q{queue}")).expect("a good name")
}

fn entry_key(entry: u8) -> EntryKey {
    EntryKey {
        kind: EntryKind::Operation,
        name: EntryName::new(format!("entry {entry}")).expect("a good name"),
    }
}

fn expect(expected: Expected, known: Option<u64>) -> Expect {
    match expected {
        Expected::Anything => Expect::Anything,
        Expected::Absent => Expect::Absent,
        Expected::Current => known.map_or(Expect::Absent, Expect::Version),
        Expected::Stale => Expect::Version(known.unwrap_or(1) - 1),
    }
}

fn by_message(mut judged: Vec<Judged>) -> Vec<Judged> {
    judged.sort_by(|a, b| (&a.queue, a.message).cmp(&(&b.queue, b.message)));
    judged
}

/// What a settlement answered, in a form that is the same for all of them.
type Answer = Settled<(Option<Timestamp>, Option<Judged>)>;

fn answer<T>(
    outcomes: Vec<Settled<T>>,
    told: impl Fn(T) -> (Option<Timestamp>, Option<Judged>),
) -> Vec<Answer> {
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
) -> Result<Vec<Answer>, String> {
    fn batch<T: redrive_store::Load>(all_or_nothing: bool, items: Vec<T>) -> Batch<T> {
        let batch = if all_or_nothing { Batch::all_or_nothing(items) } else { Batch::each(items) };
        batch.expect("a small batch")
    }
    let claims = claims.iter().cloned();
    let note = |wanted: bool| wanted.then(|| Checkpoint::new(seed.to_string()).expect("small"));
    let answers = match act {
        Act::Ack => {
            let items = claims.map(|claim| AckItem { claim }).collect();
            store.ack(now, batch(all_or_nothing, items)).await.map(|all| answer(all, |_| (None, None)))
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
            store.nack(now, batch, seed).await.map(|all| answer(all, |judged| (None, Some(judged))))
        }
        Act::Extend { time, checkpoint } => {
            let item = |claim| ExtendItem {
                target: LeaseTarget::Claim(claim),
                time: Millis::new(*time),
                checkpoint: note(*checkpoint),
            };
            let batch = batch(all_or_nothing, claims.map(item).collect());
            store.extend(now, batch).await.map(|all| answer(all, |deadline| (Some(deadline), None)))
        }
        Act::Release(delay) => {
            let item =
                |claim| ReleaseItem { target: LeaseTarget::Claim(claim), delay: delay.map(Millis::new) };
            let batch = batch(all_or_nothing, claims.map(item).collect());
            store.release(now, batch).await.map(|all| answer(all, |visible_at| (Some(visible_at), None)))
        }
        Act::Bury => {
            let error = ErrorText::new(ERRORS[2]);
            let item = |claim| BuryItem { claim, reason: DeadReason::Buried, error: error.clone() };
            let batch = batch(all_or_nothing, claims.map(item).collect());
            store.bury(now, batch).await.map(|all| answer(all, |judged| (None, Some(judged))))
        }
    };
    answers.map_err(|error| error.to_string())
}

/// Carries out a bulk verb in as many steps as it takes to reach its limit or the end: a store may take smaller
/// ones than the reference.
async fn stepwise(
    store: &dyn Store,
    now: Now,
    bulk: &step::Bulk,
    whole: Selection,
) -> Result<Bulk, QueueError> {
    let mut sum = Bulk::default();
    let mut after = None;
    loop {
        let left = whole.limit.saturating_sub(usize::try_from(sum.matched).unwrap_or(usize::MAX));
        let selection = Selection { after, limit: left, ..whole.clone() };
        let step = one_step(store, now, bulk, selection).await?;
        sum.matched += step.matched;
        sum.applied.extend(step.applied);
        sum.refused.extend(step.refused);
        after = step.next;
        if after.is_none() || sum.matched as usize >= whole.limit {
            return Ok(sum);
        }
    }
}

async fn one_step(
    store: &dyn Store,
    now: Now,
    bulk: &step::Bulk,
    selection: Selection,
) -> Result<Bulk, QueueError> {
    match bulk {
        step::Bulk::Reschedule { delay, priority } => {
            let visible = delay.map(|ms| When::After(Millis::new(ms)));
            let priority = priority.map(|level| Priority::new(level).expect("0 to 9"));
            store.reschedule(now, selection, Reschedule { visible, priority }).await
        }
        step::Bulk::Move(target) => store.move_to(now, selection, name(*target)).await,
        step::Bulk::Redrive => store.redrive(now, selection, note("operator"), note("why not")).await,
        step::Bulk::Discard { force } => store.discard(now, selection, *force).await,
    }
}

fn config(setting: &Setting) -> QueueConfig {
    let kept = |count: Option<u64>| count.map(|count| Retention { age: None, count: Some(count) });
    let weight = Weight::new(setting.weight).expect("1 to 4");
    QueueConfig {
        max_deliveries: Some(setting.max_deliveries.and_then(NonZeroU32::new)),
        retry_lane: Some(if setting.separate { RetryLane::Separate } else { RetryLane::Shared }),
        max_retries_in_flight: Some(setting.retries_in_flight.and_then(NonZeroU32::new)),
        overdue_backoff: Some(setting.overdue_backoff),
        dead_letter_to: Some(setting.dead_letter_to.map(name)),
        retain_done: Some(kept(setting.retain_done)),
        retain_dead: Some(kept(setting.retain_dead)),
        dedup_window: Some(Millis::new(setting.dedup_window)),
        max_waiting: Some(setting.max_waiting.and_then(NonZeroU64::new)),
        weights: Some(Weights::new([(key("tenant 0"), weight)]).expect("one key")),
        retry: RetryOverride {
            max_attempts: Some(setting.max_attempts.and_then(NonZeroU32::new)),
            base_delay: Some(Millis::new(setting.base_delay)),
            jitter: Some(if setting.jitter { Jitter::Proportional(100) } else { Jitter::None }),
            ..RetryOverride::default()
        },
        ..QueueConfig::default()
    }
}
