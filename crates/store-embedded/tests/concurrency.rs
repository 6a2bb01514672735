//! Conservation under concurrency: sixty-four callers at once, who also steal each other's receipts.
//!
//! Every call is noted with the moments before it was made and after it was answered, on a counter that all share.
//! Two calls that overlap may have happened in either order; of two that do not, the order is known.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use futures::executor::block_on;
use redrive_core::dice::Dice;
use redrive_core::lease::{ConsumerName, LeaseId};
use redrive_core::lifecycle::{Draft, Verb as Transition, When};
use redrive_core::message::{
    Body, ContentType, ErrorText, FairnessKey, Headers, MessageId, MessageType, Priority, Source, Spec, State,
};
use redrive_core::policy::{Asked, Jitter, RetryOverride, Verdict};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Batch, CreateQueue, EnqueueItem, EnqueueOutcome, ExtendItem, Item, LeaseRequest, LeaseTarget,
    Limit, NackItem, Now, QueueStats, ReleaseItem, Settled, Store,
};
use redrive_store_embedded::{EmbeddedStore, Options};

const TASKS: u64 = 64;
const STEPS: u64 = 250;
/// Leases last longer than the test, so that only settles end them.
const LEASE: Millis = Millis::from_secs(3_600);
/// How many receipts lie about for others to take.
const LOOSE_MAX: usize = 200;

/// The moments before a call and after its answer.
#[derive(Debug, Clone, Copy)]
struct Span {
    asked: u64,
    told: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Settle {
    Extended,
    Acked,
    Died,
    Returned,
}

#[derive(Debug, Default)]
struct Notes {
    enqueued: BTreeSet<MessageId>,
    granted: Vec<(MessageId, LeaseId, Span)>,
    settled: Vec<(MessageId, LeaseId, Span, Settle)>,
    refused: u64,
}

/// What all callers share.
struct Shared<'a> {
    store: &'a EmbeddedStore,
    queue: QueueName,
    moment: AtomicU64,
    loose: Mutex<Vec<Claim>>,
    /// How many messages a caller takes that takes several.
    some: Limit,
}

struct Caller<'a> {
    shared: &'a Shared<'a>,
    dice: Dice,
    task: u64,
    held: Vec<Claim>,
    notes: Notes,
}

#[test]
fn what_sixty_four_callers_do_at_once_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 256 * 1024, ..Options::default() };
    let store = EmbeddedStore::open(dir.path().join("store"), options.clone()).unwrap();
    let queue = create(&store);
    let shared = Shared {
        store: &store,
        queue: queue.clone(),
        moment: AtomicU64::new(0),
        loose: Mutex::default(),
        some: Limit::new(4).unwrap(),
    };
    let notes = run(&shared);
    let granted = by_message(&notes.granted, |(id, ..)| *id);
    let settled = by_message(&notes.settled, |(id, ..)| *id);
    for (id, grants) in &granted {
        assert!(notes.enqueued.contains(id), "{id} was handed out, and nobody enqueued it");
        exclusive(*id, grants, settled.get(id).map_or(&[], Vec::as_slice));
    }
    assert!(notes.refused > 0, "no receipt was tried twice: the test does not test that");
    let stats = block_on(store.stats(Now::Store, &queue)).unwrap();
    adds_up(&notes, &stats);
    store.close().unwrap();

    let store = EmbeddedStore::open(dir.path().join("store"), options).unwrap();
    let again = block_on(store.stats(Now::Store, &queue)).unwrap();
    assert_eq!(again.totals, stats.totals, "the totals are others after a restart");
    for states in [&[State::Ready, State::Delayed][..], &[State::Leased], &[State::Dead]] {
        assert_eq!(count(&again, states), count(&stats, states), "{states:?} after a restart");
    }
}

fn run(shared: &Shared<'_>) -> Notes {
    let mut all = Notes::default();
    thread::scope(|scope| {
        let tasks: Vec<_> =
            (0..TASKS).map(|task| scope.spawn(move || Caller::new(shared, task).run())).collect();
        for task in tasks {
            let notes = task.join().expect("a caller failed");
            all.enqueued.extend(notes.enqueued);
            all.granted.extend(notes.granted);
            all.settled.extend(notes.settled);
            all.refused += notes.refused;
        }
    });
    all
}

fn by_message<T: Copy>(notes: &[T], id: impl Fn(&T) -> MessageId) -> BTreeMap<MessageId, Vec<T>> {
    let mut all: BTreeMap<_, Vec<T>> = BTreeMap::new();
    for note in notes {
        all.entry(id(note)).or_default().push(*note);
    }
    all
}

/// P3 and P4: one lease at a time, each ended once, and none that has ended can do anything.
fn exclusive(
    id: MessageId,
    grants: &[(MessageId, LeaseId, Span)],
    settled: &[(MessageId, LeaseId, Span, Settle)],
) {
    let mut grants: Vec<_> = grants.iter().map(|(_, lease, span)| (*lease, *span)).collect();
    grants.sort_by_key(|(lease, _)| *lease);
    for (index, (lease, granted)) in grants.iter().enumerate() {
        let ends: Vec<_> =
            settled.iter().filter(|(_, of, _, how)| of == lease && *how != Settle::Extended).collect();
        assert!(ends.len() <= 1, "{id}: the receipt of {lease} worked more than once: {ends:?}");
        let Some((next, later)) = grants.get(index + 1) else { continue };
        assert!(next > lease, "{id}: {lease} was handed out twice");
        assert!(granted.asked < later.told, "{id}: {next} is the later lease and was handed out earlier");
        let Some((.., end, how)) = ends.first() else {
            panic!("{id}: {next} was handed out while {lease} was current")
        };
        assert_eq!(*how, Settle::Returned, "{id}: {next} was handed out, and {lease} had ended it all");
        assert!(end.asked < later.told, "{id}: {next} was handed out before {lease} ended");
        for (.., span, how) in settled.iter().filter(|(_, of, ..)| of == lease) {
            assert!(span.asked < later.told, "{id}: {lease} still did {how:?} after {next} was handed out");
        }
    }
}

/// P7: what came in is there or went out, by the notes and by the counters.
fn adds_up(notes: &Notes, stats: &QueueStats) {
    let ended = |wanted| notes.settled.iter().filter(|(.., how)| *how == wanted).count() as u64;
    let (acked, dead) = (ended(Settle::Acked), ended(Settle::Died));
    let leased = notes.granted.len() as u64 - acked - dead - ended(Settle::Returned);
    let enqueued = notes.enqueued.len() as u64;
    assert_eq!(stats.totals.of(Transition::Enqueue), enqueued, "enqueued");
    assert_eq!(stats.totals.of(Transition::Lease), notes.granted.len() as u64, "leased in all");
    assert_eq!(stats.totals.of(Transition::Ack), acked, "acked");
    assert_eq!(count(stats, &[State::Dead]), dead, "dead");
    assert_eq!(count(stats, &[State::Leased]), leased, "leased");
    let waiting = count(stats, &[State::Ready, State::Delayed]);
    assert_eq!(enqueued, acked + dead + waiting + leased, "enqueued = acked + dead + waiting + leased");
    assert_eq!(stats.totals.expected_present(), Some(stats.states.all()), "present");
    println!("{enqueued} enqueued = {acked} acked + {dead} dead + {waiting} waiting + {leased} leased");
}

fn count(stats: &QueueStats, wanted: &[State]) -> u64 {
    wanted.iter().map(|state| stats.states.of(*state)).sum()
}

fn create(store: &EmbeddedStore) -> QueueName {
    let name = QueueName::new("q").expect("a good name");
    let retry = RetryOverride {
        base_delay: Some(Millis::ZERO),
        jitter: Some(Jitter::None),
        ..RetryOverride::default()
    };
    let config = QueueConfig { lease_timeout: Some(LEASE), retry, ..QueueConfig::default() };
    let request = CreateQueue { name: name.clone(), config };
    block_on(store.create_queue(Now::Store, request)).expect("the queue is created");
    name
}

impl Shared<'_> {
    /// Makes a call and notes when.
    fn timed<T>(&self, call: impl FnOnce(&EmbeddedStore) -> T) -> (T, Span) {
        let asked = self.moment.fetch_add(1, Ordering::SeqCst);
        let answer = call(self.store);
        (answer, Span { asked, told: self.moment.fetch_add(1, Ordering::SeqCst) })
    }
}

impl<'a> Caller<'a> {
    fn new(shared: &'a Shared<'a>, task: u64) -> Self {
        Self { shared, dice: Dice::seeded(task), task, held: Vec::new(), notes: Notes::default() }
    }

    fn run(mut self) -> Notes {
        for step in 0..STEPS {
            match self.dice.between(0, 9) {
                0..=2 => self.enqueue(step),
                3..=4 => self.lease(),
                _ => self.settle(),
            }
        }
        self.notes
    }

    fn enqueue(&mut self, step: u64) {
        let at = Timestamp::from_millis(1_800_000_000_000 + step);
        let items = (0..self.dice.between(1, 3)).map(|n| {
            let id = MessageId::new(at, u128::from(self.task) << 20 | u128::from(n));
            EnqueueItem { queue: self.shared.queue.clone(), draft: draft(id, self.task) }
        });
        let batch = Batch::each(items.collect()).expect("a small batch");
        let (outcomes, _) =
            self.shared.timed(|store| block_on(store.enqueue(Now::Store, batch)).expect("the store answers"));
        for outcome in outcomes {
            let EnqueueOutcome::Enqueued { id, .. } = outcome else { panic!("not enqueued: {outcome:?}") };
            assert!(self.notes.enqueued.insert(id), "{id} was enqueued twice");
        }
    }

    fn lease(&mut self) {
        let limit = if self.dice.between(0, 1) == 0 { Limit::ONE } else { self.shared.some };
        let consumer = ConsumerName::new(format!("task {}", self.task)).expect("a short name");
        let request = LeaseRequest::new(self.shared.queue.clone(), limit, consumer, self.dice.roll());
        let (leased, span) =
            self.shared.timed(|store| block_on(store.lease(Now::Store, request)).expect("the store answers"));
        let mut loose = self.shared.loose.lock().expect("no caller failed");
        for message in leased.messages {
            let claim = Claim::on(&message).expect("what is handed out is leased");
            self.notes.granted.push((claim.message, claim.lease, span));
            if loose.len() < LOOSE_MAX {
                loose.push(claim.clone());
            }
            self.held.push(claim);
        }
    }

    /// Settles one of its own leases or, one time in three, one that lies about.
    fn settle(&mut self) {
        let claim = if self.dice.between(0, 2) == 0 {
            draw(&mut self.shared.loose.lock().expect("no caller failed"), &mut self.dice)
        } else {
            draw(&mut self.held, &mut self.dice)
        };
        let Some(claim) = claim else { return self.lease() };
        match self.dice.between(0, 9) {
            0..=3 => self.ack(&claim),
            4..=5 => self.nack(&claim),
            6..=7 => self.release(&claim),
            _ => self.extend(claim),
        }
    }

    fn ack(&mut self, claim: &Claim) {
        let batch = one(AckItem { claim: claim.clone() });
        let (outcomes, span) =
            self.shared.timed(|store| block_on(store.ack(Now::Store, batch)).expect("the store answers"));
        self.note(claim, span, outcomes, |_| Settle::Acked);
    }

    fn nack(&mut self, claim: &Claim) {
        let (error, asked) = (ErrorText::new("it failed"), Asked::Nothing);
        let batch = one(NackItem { claim: claim.clone(), asked, error, checkpoint: None });
        let seed = self.dice.roll();
        let (outcomes, span) = self
            .shared
            .timed(|store| block_on(store.nack(Now::Store, batch, seed)).expect("the store answers"));
        self.note(claim, span, outcomes, |judged| match judged.verdict {
            Verdict::RetryAt(..) => Settle::Returned,
            Verdict::Dead(_) => Settle::Died,
        });
    }

    fn release(&mut self, claim: &Claim) {
        let delay = (self.dice.between(0, 1) == 0).then_some(Millis::ZERO);
        let batch = one(ReleaseItem { target: LeaseTarget::Claim(claim.clone()), delay });
        let (outcomes, span) =
            self.shared.timed(|store| block_on(store.release(Now::Store, batch)).expect("the store answers"));
        self.note(claim, span, outcomes, |_| Settle::Returned);
    }

    fn extend(&mut self, claim: Claim) {
        let target = LeaseTarget::Claim(claim.clone());
        let batch = one(ExtendItem { target, time: LEASE, checkpoint: None });
        let (outcomes, span) =
            self.shared.timed(|store| block_on(store.extend(Now::Store, batch)).expect("the store answers"));
        self.note(&claim, span, outcomes, |_| Settle::Extended);
        self.held.push(claim);
    }

    fn note<T>(
        &mut self,
        claim: &Claim,
        span: Span,
        outcomes: Vec<Settled<T>>,
        how: impl FnOnce(T) -> Settle,
    ) {
        match outcomes.into_iter().next().expect("an outcome per item") {
            Settled::Applied(done) => {
                self.notes.settled.push((claim.message, claim.lease, span, how(done)));
            }
            _ => self.notes.refused += 1,
        }
    }
}

fn one<T: Item>(item: T) -> Batch<T> {
    Batch::one(item).expect("one small item")
}

fn draw(from: &mut Vec<Claim>, dice: &mut Dice) -> Option<Claim> {
    let last = from.len().checked_sub(1)?;
    let index = usize::try_from(dice.between(0, last as u64)).expect("an index");
    Some(from.swap_remove(index))
}

fn draft(id: MessageId, task: u64) -> Draft {
    let spec = Spec {
        id,
        body: Body::new(vec![7; 300]).expect("a small body"),
        content_type: ContentType::default(),
        headers: Headers::default(),
        kind: MessageType::default(),
        source: Source::default(),
        fairness_key: FairnessKey::new(format!("tenant {}", task % 7)).expect("a good key"),
        dedup: None,
        lease_timeout: None,
        max_attempts: None,
    };
    Draft { spec, priority: Priority::default(), visible: When::Now, expires: None }
}
