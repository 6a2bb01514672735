//! The wall clock is set, ahead and back, while the store runs and while it is closed (P19).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::executor::block_on;
use libtest_mimic::Failed;
use redrive_core::lifecycle::When;
use redrive_core::message::{Message, MessageId};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::receipt::Claim;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{
    AckItem, Batch, CreateQueue, EnqueueItem, ExpireRequest, LeaseRequest, Limit, Now, Store, SweepRequest,
};
use redrive_store_embedded::disk::RealDisk;
use redrive_store_embedded::{Clock, EmbeddedStore, Options};

use crate::caller::draft;

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// How long a lease, a delay and a time to live last here.
const SPAN: Millis = Millis::from_secs(30);

/// A clock that the test sets. Both kinds of time pass together; the wall clock can also be set.
#[derive(Debug)]
struct Watch {
    wall: AtomicU64,
    uptime: AtomicU64,
    /// The sabotage: what should be a clock that nobody can set follows the wall clock.
    follows_wall: bool,
}

impl Watch {
    fn new(follows_wall: bool) -> Arc<Self> {
        let start = AtomicU64::new(1_800_000_000_000);
        Arc::new(Self { wall: start, uptime: AtomicU64::new(1_000_000), follows_wall })
    }

    fn pass(&self, span: Millis) {
        self.wall.fetch_add(span.get(), Ordering::SeqCst);
        self.uptime.fetch_add(span.get(), Ordering::SeqCst);
    }

    fn set(&self, by: i64) {
        let wall = self.wall.load(Ordering::SeqCst);
        self.wall.store(wall.saturating_add_signed(by), Ordering::SeqCst);
    }
}

impl Clock for Watch {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.wall.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Millis {
        let clock = if self.follows_wall { &self.wall } else { &self.uptime };
        Millis::new(clock.load(Ordering::SeqCst))
    }
}

pub(crate) fn a_wall_clock_that_is_set_ends_no_lease_early_and_loses_nothing() -> Result<(), Failed> {
    for by in [-HOUR, -DAY, HOUR, DAY] {
        set_while_running(&Watch::new(false), by).map_err(|problem| format!("set by {by} ms: {problem}"))?;
        set_while_closed(&Watch::new(false), by).map_err(|problem| format!("closed, {by} ms: {problem}"))?;
    }
    Ok(())
}

/// The sabotage: timers that follow the wall clock are caught, whichever way it is set.
pub(crate) fn timers_on_the_wall_clock_are_caught() -> Result<(), Failed> {
    for by in [-HOUR, -DAY, HOUR, DAY] {
        if set_while_running(&Watch::new(true), by).is_ok() {
            return Err(format!("set by {by} ms: not caught").into());
        }
    }
    Ok(())
}

/// Half the time passes, the wall clock is set, and nothing is early; the rest passes, and nothing is late.
fn set_while_running(watch: &Arc<Watch>, by: i64) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let world = World::open(dir.path(), watch)?;
    world.create()?;
    world.put(1, When::Now, None)?;
    let leased = world.lease("first", &[1])?;
    world.put(2, When::After(SPAN), None)?;
    world.put(3, When::After(Millis::from_days(9)), Some(When::After(SPAN)))?;
    watch.pass(Millis::new(SPAN.get() / 2));
    watch.set(by);
    world.nothing_moves("set")?;
    watch.pass(Millis::new(SPAN.get() / 2 - 1));
    world.nothing_moves("a millisecond before its time")?;
    watch.pass(Millis::new(1));
    world.ends(1)?;
    world.lapses(3)?;
    let again = world.lease("second", &[1, 2])?;
    if world.ack(&leased[0])? {
        return Err("a receipt of the lease that ran out worked".to_owned());
    }
    for message in &again {
        if !world.ack(message)? {
            return Err(format!("{}: a current receipt did not work", message.id()));
        }
    }
    world.count(1)
}

/// The wall clock is set while the store is closed. Back: time does not go back with it. Ahead: the store cannot
/// know how long it was closed, and grants every lease that ran out a grace.
fn set_while_closed(watch: &Arc<Watch>, by: i64) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let world = World::open(dir.path(), watch)?;
    world.create()?;
    (1..=2).try_for_each(|n| world.put(n, When::Now, None))?;
    let leased = world.lease("first", &[1, 2])?;
    watch.pass(Millis::new(SPAN.get() - 1));
    (3..=4).try_for_each(|n| world.put(n, When::Now, None))?;
    world.close()?;
    watch.set(by);
    let world = World::open(dir.path(), watch)?;
    world.nothing_ends("opened again")?;
    if !world.ack(&leased[0])? {
        return Err("a receipt from before did not work".to_owned());
    }
    let left = if by > 0 { Options::default().restart_grace } else { Millis::new(1) };
    watch.pass(Millis::new(left.get() - 1));
    world.nothing_ends("a millisecond before the end")?;
    watch.pass(Millis::new(1));
    world.ends(2)?;
    world.lease("second", &[2, 3, 4])?;
    world.count(3)
}

struct World {
    store: EmbeddedStore,
    queue: QueueName,
}

impl World {
    fn open(dir: &Path, watch: &Arc<Watch>) -> Result<Self, String> {
        let disk = RealDisk::new(dir.join("store")).map_err(|error| error.to_string())?;
        let clock = Arc::clone(watch);
        let store =
            EmbeddedStore::open_on(Arc::new(disk), clock, Options::default()).map_err(|e| e.to_string())?;
        Ok(Self { store, queue: QueueName::new("q").map_err(|error| error.to_string())? })
    }

    fn close(self) -> Result<(), String> {
        self.store.close().map_err(|error| error.to_string())
    }

    fn create(&self) -> Result<(), String> {
        let config = QueueConfig { lease_timeout: Some(SPAN), ..QueueConfig::default() };
        let request = CreateQueue { name: self.queue.clone(), config };
        block_on(self.store.create_queue(Now::Store, request)).map(drop).map_err(|error| error.to_string())
    }

    fn put(&self, n: u64, visible: When, expires: Option<When>) -> Result<(), String> {
        let mut draft = draft(id(n));
        (draft.visible, draft.expires) = (visible, expires);
        let batch =
            Batch::one(EnqueueItem { queue: self.queue.clone(), draft }).map_err(|e| e.to_string())?;
        block_on(self.store.enqueue(Now::Store, batch)).map(drop).map_err(|error| error.to_string())
    }

    /// Leases what there is: exactly these. In the order of their ids.
    fn lease(&self, when: &str, expected: &[u64]) -> Result<Vec<Message>, String> {
        let consumer = redrive_core::lease::ConsumerName::default();
        let request = LeaseRequest::new(self.queue.clone(), Limit::MAX, consumer, 1);
        let leased = block_on(self.store.lease(Now::Store, request)).map_err(|error| error.to_string())?;
        let mut messages = leased.messages;
        messages.sort_by_key(Message::id);
        let ids: Vec<_> = messages.iter().map(Message::id).collect();
        let expected: Vec<_> = expected.iter().copied().map(id).collect();
        if ids == expected { Ok(messages) } else { Err(format!("{when}: leased {ids:?}, not {expected:?}")) }
    }

    fn expired(&self) -> Result<Vec<MessageId>, String> {
        let queue = Some(self.queue.clone());
        let request = ExpireRequest { queue, limit: Limit::MAX, error: None, seed: 1 };
        let ended = block_on(self.store.expire(Now::Store, request)).map_err(|error| error.to_string())?;
        Ok(ended.into_iter().map(|judged| judged.message).collect())
    }

    fn lapsed(&self) -> Result<Vec<MessageId>, String> {
        let request = SweepRequest { queue: Some(self.queue.clone()), limit: Limit::MAX };
        let lapsed = block_on(self.store.lapse(Now::Store, request)).map_err(|error| error.to_string())?;
        Ok(lapsed.into_iter().map(|judged| judged.message).collect())
    }

    fn nothing_ends(&self, when: &str) -> Result<(), String> {
        let ended = self.expired()?;
        if ended.is_empty() { Ok(()) } else { Err(format!("{when}: the leases of {ended:?} ended early")) }
    }

    fn nothing_moves(&self, when: &str) -> Result<(), String> {
        self.nothing_ends(when)?;
        let lapsed = self.lapsed()?;
        if !lapsed.is_empty() {
            return Err(format!("{when}: {lapsed:?} lapsed early"));
        }
        self.lease(when, &[]).map(drop)
    }

    fn ends(&self, n: u64) -> Result<(), String> {
        let ended = self.expired()?;
        if ended == [id(n)] { Ok(()) } else { Err(format!("of the leases, only {ended:?} ended in time")) }
    }

    fn lapses(&self, n: u64) -> Result<(), String> {
        let lapsed = self.lapsed()?;
        if lapsed == [id(n)] { Ok(()) } else { Err(format!("only {lapsed:?} lapsed in time")) }
    }

    fn ack(&self, message: &Message) -> Result<bool, String> {
        let claim = Claim::on(message).ok_or("not leased")?;
        let batch = Batch::one(AckItem { claim }).map_err(|error| error.to_string())?;
        let settled = block_on(self.store.ack(Now::Store, batch)).map_err(|error| error.to_string())?;
        Ok(settled.iter().all(redrive_store::Settled::is_applied))
    }

    /// Nothing is lost, and nothing came from nowhere.
    fn count(&self, expected: u64) -> Result<(), String> {
        let stats = block_on(self.store.stats(Now::Store, &self.queue)).map_err(|error| error.to_string())?;
        let counts = (stats.states.all(), stats.totals.expected_present());
        if counts == (expected, Some(expected)) {
            Ok(())
        } else {
            Err(format!("{counts:?} of {expected} are there"))
        }
    }
}

fn id(n: u64) -> MessageId {
    MessageId::new(Timestamp::from_millis(1_800_000_000_000), u128::from(n))
}
