//! What each consumer does: counted by queue as it happens, because who may see a queue may see who works on it, and nobody
//! else may. What a consumer holds is never counted up and down; it follows from the leases.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use redrive_core::access::{On, Use};
use redrive_core::lease::{ConsumerName, Lease};
use redrive_core::message::State;
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::Limit;

use super::leases::{LeasesWanted, MINUTE};
use crate::access::Caller;
use crate::broker::Broker;
use crate::error::BrokerError;
use crate::queues::Live;

/// Most consumers that are told of; those that were seen last.
const CONSUMERS_MAX: usize = 1_000;
/// Most pairs of a consumer and a queue that are remembered. The one that was seen last longest ago makes room.
const PAIRS_MAX: usize = 10_000;
/// How many make room at a time: to find them takes a look at all.
const PAIRS_FORGOTTEN: usize = 1_000;
/// Most queues that are named of one consumer.
const QUEUES_MAX: usize = 100;
/// Most pages of leases that are read to say who holds what.
const LEASE_PAGES_MAX: usize = 20;
/// Most moments that are remembered of a consumer to say how fast it is.
const MARKS_MAX: usize = 64;

/// What a consumer did with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    /// It acked it.
    Ack,
    /// It said that its attempt failed, or that it must never be tried again.
    Fail,
    /// It let its lease run out.
    Expire,
    /// It gave it back unharmed, or an operator took it.
    Release,
}

/// How much a consumer had done at one moment.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Timestamp,
    acked: u64,
    failed: u64,
}

/// What one consumer does in one queue.
#[derive(Debug)]
pub(crate) struct Doing {
    leased: AtomicU64,
    acked: AtomicU64,
    failed: AtomicU64,
    expired: AtomicU64,
    released: AtomicU64,
    first_seen: Timestamp,
    last_seen: AtomicU64,
    /// The oldest first.
    marks: Mutex<VecDeque<Mark>>,
}

impl Doing {
    fn new(now: Timestamp) -> Self {
        Self {
            leased: AtomicU64::new(0),
            acked: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            released: AtomicU64::new(0),
            first_seen: now,
            last_seen: AtomicU64::new(now.as_millis()),
            marks: Mutex::default(),
        }
    }

    fn did(&self, did: Did, now: Timestamp) {
        let count = match did {
            Did::Ack => &self.acked,
            Did::Fail => &self.failed,
            Did::Expire => &self.expired,
            Did::Release => &self.released,
        };
        count.fetch_add(1, Ordering::Relaxed);
        // It is not there any more, or somebody else did this to it.
        if did != Did::Expire {
            self.seen(now);
        }
    }

    fn seen(&self, now: Timestamp) {
        self.last_seen.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    fn last_seen(&self) -> Timestamp {
        Timestamp::from_millis(self.last_seen.load(Ordering::Relaxed))
    }

    fn mark(&self, at: Timestamp) -> Mark {
        let failed = self.failed.load(Ordering::Relaxed) + self.expired.load(Ordering::Relaxed);
        Mark { at, acked: self.acked.load(Ordering::Relaxed), failed }
    }

    /// Remembers how much it has done by now, and forgets what is no longer needed to say how fast it was in the last minute.
    fn remember(&self, now: Timestamp) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.back().is_none_or(|last| last.at < now) {
            marks.push_back(self.mark(now));
        }
        let horizon = now.minus(MINUTE);
        while marks.get(1).is_some_and(|second| second.at <= horizon) || marks.len() > MARKS_MAX {
            marks.pop_front();
        }
    }

    /// How many messages it acked, and how many attempts failed, a second, over about the last minute.
    fn per_second(&self, now: Timestamp) -> (f64, f64) {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let horizon = now.minus(MINUTE);
        let first = Mark { at: self.first_seen, acked: 0, failed: 0 };
        let known = marks.iter().rev().find(|mark| mark.at <= horizon).or_else(|| marks.front());
        // Before it was first marked it had done nothing, if it is that young.
        let base = match known {
            Some(mark) if mark.at <= horizon || self.first_seen <= horizon => *mark,
            _ => first,
        };
        let (done, span) = (self.mark(now), now.since(base.at).max(Millis::from_secs(1)));
        #[expect(clippy::cast_precision_loss, reason = "rates for people")]
        let rate = |more: u64| more as f64 * 1_000.0 / span.get() as f64;
        (rate(done.acked.saturating_sub(base.acked)), rate(done.failed.saturating_sub(base.failed)))
    }
}

/// How much is remembered of all consumers together.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    pairs: AtomicUsize,
    /// Whether something was forgotten to make room.
    forgot: AtomicBool,
}

/// What consumers do in one queue.
#[derive(Debug)]
pub(crate) struct Doings {
    consumers: RwLock<HashMap<ConsumerName, Arc<Doing>>>,
    remembered: Arc<Remembered>,
}

impl Drop for Doings {
    fn drop(&mut self) {
        let gone = self.consumers.get_mut().unwrap_or_else(PoisonError::into_inner).len();
        self.remembered.pairs.fetch_sub(gone, Ordering::Relaxed);
    }
}

impl Doings {
    pub(crate) fn new(remembered: Arc<Remembered>) -> Self {
        Self { consumers: RwLock::default(), remembered }
    }

    fn known(&self, consumer: &ConsumerName) -> Option<Arc<Doing>> {
        self.consumers.read().unwrap_or_else(PoisonError::into_inner).get(consumer).cloned()
    }

    /// What is known of a consumer, from now on if it is new.
    fn of(&self, consumer: &ConsumerName, now: Timestamp) -> Arc<Doing> {
        self.known(consumer).unwrap_or_else(|| {
            let mut consumers = self.consumers.write().unwrap_or_else(PoisonError::into_inner);
            let doing = consumers.entry(consumer.clone()).or_insert_with(|| {
                self.remembered.pairs.fetch_add(1, Ordering::Relaxed);
                Arc::new(Doing::new(now))
            });
            Arc::clone(doing)
        })
    }

    fn forget(&self, consumer: &ConsumerName) {
        let mut consumers = self.consumers.write().unwrap_or_else(PoisonError::into_inner);
        if consumers.remove(consumer).is_some() {
            self.remembered.pairs.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn all(&self) -> Vec<(ConsumerName, Arc<Doing>)> {
        let consumers = self.consumers.read().unwrap_or_else(PoisonError::into_inner);
        consumers.iter().map(|(name, doing)| (name.clone(), Arc::clone(doing))).collect()
    }
}

/// The queue and the consumer of the message before: most batches are one consumer's, out of one queue, and are looked up
/// once.
pub(crate) struct Noted<'a> {
    broker: &'a Broker,
    live: Option<Arc<Live>>,
    doing: Option<(ConsumerName, Arc<Doing>)>,
}

impl<'a> Noted<'a> {
    pub(crate) fn new(broker: &'a Broker) -> Self {
        Self { broker, live: None, doing: None }
    }

    /// A queue that somebody asked for at this instance.
    fn live(&mut self, queue: &QueueName) -> Option<&Arc<Live>> {
        if self.live.as_ref().is_none_or(|live| live.name != *queue) {
            self.live = self.broker.queues.known(queue);
            self.doing = None;
        }
        self.live.as_ref()
    }

    fn doing(&mut self, queue: &QueueName, consumer: &ConsumerName, now: Timestamp) -> Option<&Arc<Doing>> {
        let live = Arc::clone(self.live(queue)?);
        if self.doing.as_ref().is_none_or(|(name, _)| name != consumer) {
            self.doing = Some((consumer.clone(), self.broker.doing(&live, consumer, now)));
        }
        self.doing.as_ref().map(|(_, doing)| doing)
    }

    /// A consumer acked a message of a queue, that long after it was handed out.
    pub(crate) fn acked(&mut self, queue: &QueueName, consumer: &ConsumerName, run: Millis, now: Timestamp) {
        if let Some(live) = self.live(queue) {
            live.numbers.ran(run);
        }
        self.did(queue, consumer, Did::Ack, now);
    }

    /// A consumer did something with a message of a queue.
    pub(crate) fn did(&mut self, queue: &QueueName, consumer: &ConsumerName, did: Did, now: Timestamp) {
        if let Some(doing) = self.doing(queue, consumer, now) {
            doing.did(did, now);
        }
    }
}

impl Broker {
    /// What is known of a consumer of a queue, after making room for it where that is needed.
    fn doing(&self, live: &Live, consumer: &ConsumerName, now: Timestamp) -> Arc<Doing> {
        let doing = live.numbers.doings.of(consumer, now);
        if self.queues.remembered.pairs.load(Ordering::Relaxed) > PAIRS_MAX {
            self.forget_consumers();
        }
        doing
    }

    /// A consumer was handed messages of a queue.
    pub(crate) fn note_leased(&self, live: &Live, consumer: &ConsumerName, count: u64, now: Timestamp) {
        let doing = self.doing(live, consumer, now);
        doing.leased.fetch_add(count, Ordering::Relaxed);
        doing.seen(now);
    }

    /// Forgets the consumers that were seen last longest ago.
    fn forget_consumers(&self) {
        let mut pairs: Vec<(Timestamp, Arc<Live>, ConsumerName)> = Vec::new();
        for live in self.queues.all() {
            let of_queue = live.numbers.doings.all().into_iter();
            pairs.extend(of_queue.map(|(name, doing)| (doing.last_seen(), Arc::clone(&live), name)));
        }
        pairs.sort_unstable_by_key(|(seen, ..)| *seen);
        // Several may have found that there are too many.
        let too_many = pairs.len().saturating_sub(PAIRS_MAX - PAIRS_FORGOTTEN);
        for (_, live, name) in pairs.iter().take(too_many) {
            live.numbers.doings.forget(name);
        }
        if too_many > 0 {
            self.queues.remembered.forgot.store(true, Ordering::Relaxed);
        }
    }

    /// Remembers how much each consumer has done by now.
    pub(crate) fn mark_consumers(&self, now: Timestamp) {
        for live in self.queues.all() {
            for (_, doing) in live.numbers.doings.all() {
                doing.remember(now);
            }
        }
    }
}

/// A consumer, as far as somebody may see it.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerSeen {
    /// Its name.
    pub consumer: ConsumerName,
    /// Where it was seen, or has something.
    pub queues: BTreeSet<QueueName>,
    /// How many messages it has.
    pub held: u64,
    /// How many of its leases have run out and were not ended yet.
    pub overdue: u64,
    /// When it took the lease that it has had longest.
    pub oldest_lease: Option<Timestamp>,
    /// Messages that it was handed.
    pub leased: u64,
    /// Messages that it acked.
    pub acked: u64,
    /// Attempts that it said had failed.
    pub failed: u64,
    /// Leases of it that ran out.
    pub expired: u64,
    /// Messages that it gave back.
    pub released: u64,
    /// Messages that it acked, a second, over the last minute.
    pub acked_per_s: f64,
    /// Attempts that failed or ran out, a second, over the last minute.
    pub failed_per_s: f64,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When it was last seen.
    pub last_seen: Timestamp,
    /// Whether it was seen here, and not only its leases.
    pub here: bool,
}

impl ConsumerSeen {
    fn new(consumer: ConsumerName) -> Self {
        Self {
            consumer,
            queues: BTreeSet::new(),
            held: 0,
            overdue: 0,
            oldest_lease: None,
            leased: 0,
            acked: 0,
            failed: 0,
            expired: 0,
            released: 0,
            acked_per_s: 0.0,
            failed_per_s: 0.0,
            first_seen: Timestamp::MAX,
            last_seen: Timestamp::EPOCH,
            here: false,
        }
    }

    fn at(&mut self, queue: &QueueName) {
        if self.queues.len() < QUEUES_MAX {
            self.queues.insert(queue.clone());
        }
    }

    fn saw(&mut self, queue: &QueueName, doing: &Doing, now: Timestamp) {
        self.at(queue);
        self.here = true;
        let sum = |total: &mut u64, count: &AtomicU64| *total += count.load(Ordering::Relaxed);
        sum(&mut self.leased, &doing.leased);
        sum(&mut self.acked, &doing.acked);
        sum(&mut self.failed, &doing.failed);
        sum(&mut self.expired, &doing.expired);
        sum(&mut self.released, &doing.released);
        let (acked, failed) = doing.per_second(now);
        self.acked_per_s += acked;
        self.failed_per_s += failed;
        self.first_seen = self.first_seen.min(doing.first_seen);
        self.last_seen = self.last_seen.max(doing.last_seen());
    }

    fn holds(&mut self, queue: &QueueName, lease: &Lease, now: Timestamp) {
        self.at(queue);
        self.held += 1;
        self.overdue += u64::from(lease.is_overdue(now));
        self.oldest_lease = Some(self.oldest_lease.map_or(lease.leased_at, |at| at.min(lease.leased_at)));
        if !self.here {
            self.first_seen = self.first_seen.min(lease.leased_at);
            self.last_seen = self.last_seen.max(lease.leased_at);
        }
    }
}

/// The consumers that somebody may see.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumersSeen {
    /// When.
    pub at: Timestamp,
    /// By name.
    pub consumers: Vec<ConsumerSeen>,
    /// Whether that is all of them, with all that they hold.
    pub complete: bool,
}

impl Caller {
    /// Who takes work from the queues that the caller may see.
    pub async fn consumers(&self) -> Result<ConsumersSeen, BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        let at = broker.now();
        let mut seen = BTreeMap::<ConsumerName, ConsumerSeen>::new();
        for live in broker.queues.all().iter().filter(|live| self.sees(Use::Look, &live.name)) {
            for (name, doing) in live.numbers.doings.all() {
                let consumer = seen.entry(name.clone()).or_insert_with(|| ConsumerSeen::new(name));
                consumer.saw(&live.name, &doing, at);
            }
        }
        let mut complete = !broker.queues.remembered.forgot.load(Ordering::Relaxed);
        complete &= self.look_at_leases(broker, at, &mut seen).await?;
        let mut consumers: Vec<ConsumerSeen> = seen.into_values().collect();
        if consumers.len() > CONSUMERS_MAX {
            complete = false;
            consumers.sort_unstable_by_key(|consumer| std::cmp::Reverse(consumer.last_seen));
            consumers.truncate(CONSUMERS_MAX);
            consumers.sort_unstable_by(|one, other| one.consumer.cmp(&other.consumer));
        }
        Ok(ConsumersSeen { at, consumers, complete })
    }

    /// Adds who holds what; says whether all leases were looked at.
    async fn look_at_leases(
        &self,
        broker: &Broker,
        at: Timestamp,
        seen: &mut BTreeMap<ConsumerName, ConsumerSeen>,
    ) -> Result<bool, BrokerError> {
        let look = broker.look_at_queues().await?;
        let complete = self.sees_no_more(broker, &look).await?;
        let mut pages = LEASE_PAGES_MAX;
        for stats in look.stats.iter().filter(|stats| stats.states.of(State::Leased) > 0) {
            let queue = &stats.queue.name;
            if !self.sees(Use::Look, queue) {
                continue;
            }
            let mut wanted = LeasesWanted { limit: Limit::MAX, ..LeasesWanted::default() };
            loop {
                if pages == 0 {
                    return Ok(false);
                }
                pages -= 1;
                // A queue that is gone has no leases.
                let Some(page) = broker.leases_of(queue, &wanted).await? else { break };
                for message in &page.messages {
                    let Some(lease) = message.lease() else { continue };
                    let name = lease.consumer.clone();
                    let consumer = seen.entry(name.clone()).or_insert_with(|| ConsumerSeen::new(name));
                    consumer.holds(queue, lease, at);
                }
                wanted.after = page.next;
                if wanted.after.is_none() {
                    break;
                }
            }
        }
        Ok(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::EPOCH.plus(Millis::from_secs(1_000_000 + secs))
    }

    fn acked(doing: &Doing, times: u64, secs: u64) {
        for _ in 0..times {
            doing.did(Did::Ack, at(secs));
        }
    }

    #[test]
    fn how_fast_a_consumer_is_follows_from_the_last_minute() {
        let doing = Doing::new(at(0));
        let a_minute = |secs| {
            let (acked, failed) = doing.per_second(at(secs));
            format!("{:.0} {:.0}", acked * 60.0, failed * 60.0)
        };
        assert_eq!(a_minute(0), "0 0");
        acked(&doing, 30, 5);
        assert_eq!(a_minute(10), "180 0", "since it was first seen");
        for secs in (10..=120).step_by(10) {
            doing.remember(at(secs));
        }
        assert_eq!(a_minute(120), "0 0", "that was more than a minute ago");
        acked(&doing, 60, 125);
        doing.did(Did::Expire, at(125));
        doing.did(Did::Fail, at(125));
        assert_eq!(a_minute(130), "60 2");
        doing.remember(at(130));
        assert!(doing.marks.lock().unwrap().len() <= 8, "what is older is forgotten");
    }

    #[test]
    fn however_often_it_is_marked_few_marks_are_kept() {
        let doing = Doing::new(at(0));
        for ms in 0..10_000 {
            doing.remember(at(0).plus(Millis::new(ms)));
        }
        assert!(doing.marks.lock().unwrap().len() <= MARKS_MAX);
    }

    #[test]
    fn who_lets_a_lease_run_out_was_not_seen_by_that() {
        let doing = Doing::new(at(0));
        doing.did(Did::Ack, at(1));
        doing.did(Did::Expire, at(50));
        assert_eq!(doing.last_seen(), at(1));
    }

    #[test]
    fn what_is_remembered_of_a_queue_is_given_back_with_it() {
        let remembered = Arc::new(Remembered::default());
        let doings = Doings::new(Arc::clone(&remembered));
        for name in ["a", "b", "a"] {
            doings.of(&ConsumerName::new(name).unwrap(), at(0));
        }
        assert_eq!(remembered.pairs.load(Ordering::Relaxed), 2);
        doings.forget(&ConsumerName::new("a").unwrap());
        doings.forget(&ConsumerName::new("a").unwrap());
        assert_eq!(remembered.pairs.load(Ordering::Relaxed), 1);
        drop(doings);
        assert_eq!(remembered.pairs.load(Ordering::Relaxed), 0);
    }
}
