//! How full each queue was and how fast it went, in memory, for charts.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};

use redrive_core::lifecycle::Verb;
use redrive_core::message::State;
use redrive_core::queue::{Queue, QueueName, Totals};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{QueueStats, StateCounts};

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::numbers::Counts;

/// Over how long times are told for a queue as a whole, and how far back what happened lately is looked for.
pub(crate) const LATELY: Millis = Millis::from_secs(15 * 60);
/// Over how long rates are told.
const MINUTE: Millis = Millis::from_secs(60);
/// How long the parts are in which times are kept for longer than a sample.
const BLOCK: Millis = Millis::from_secs(3 * 60);
/// Most points of the depth of a queue.
const DEPTHS_MAX: usize = 30;

/// How long half of some messages took at most, and how long nearly all of them did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// Half of them took this long at most.
    pub p50: Millis,
    /// 99 of 100 took this long at most.
    pub p99: Millis,
}

impl Times {
    fn of(counts: &Counts) -> Option<Self> {
        Some(Self { p50: counts.at_most(500)?, p99: counts.at_most(990)? })
    }
}

/// A queue at one moment, and what happened in it since the moment before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// How many messages were in each state.
    pub states: StateCounts,
    /// Messages that came in since the sample before.
    pub enqueued: u64,
    /// Messages that were handed out.
    pub leased: u64,
    /// Messages that succeeded.
    pub acked: u64,
    /// Attempts that failed, those whose lease ran out included.
    pub failed: u64,
    /// Leases that ran out.
    pub expired: u64,
    /// Messages that died.
    pub died: u64,
    /// How long messages had been ready when this instance handed them out.
    pub wait: Option<Times>,
    /// How long messages that succeeded at this instance were with their consumer.
    pub run: Option<Times>,
    /// Samples of one round are of one number, whichever queue they are of.
    pub(crate) round: u64,
    /// How long before it the sample before was taken.
    covers: Millis,
}

impl Sample {
    /// A sample of no queue, to which those of the same round are added.
    pub(crate) fn before_the_first(&self) -> Self {
        let Self { at, round, covers, .. } = *self;
        let (enqueued, leased, acked, failed, expired, died) = (0, 0, 0, 0, 0, 0);
        let (states, wait, run) = (StateCounts::default(), None, None);
        Self { at, states, enqueued, leased, acked, failed, expired, died, wait, run, round, covers }
    }

    /// Adds the sample of another queue. Times cannot be added up.
    pub(crate) fn add(&mut self, other: &Self) {
        self.at = self.at.max(other.at);
        for state in State::ALL {
            self.states.add(state, other.states.of(state));
        }
        self.enqueued += other.enqueued;
        self.leased += other.leased;
        self.acked += other.acked;
        self.failed += other.failed;
        self.expired += other.expired;
        self.died += other.died;
        (self.wait, self.run) = (None, None);
    }
}

/// How fast a queue went, in messages or attempts a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rates {
    /// Messages that came in.
    pub enqueued: f64,
    /// Messages that succeeded.
    pub acked: f64,
    /// Attempts that failed.
    pub failed: f64,
    /// Of the attempts that ended, the share that failed.
    pub failed_share: Option<f64>,
}

/// What happened in a queue lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Lately {
    /// Messages that were handed out in the last minute.
    pub(crate) leased: u64,
    /// Messages that died in the last quarter of an hour.
    pub(crate) died: u64,
    /// Leases that ran out in that time.
    pub(crate) expired: u64,
}

/// Times that are kept for longer than a sample, in parts, so that they can be forgotten.
#[derive(Debug, Default)]
struct Blocks(VecDeque<(Timestamp, Counts)>);

impl Blocks {
    fn add(&mut self, at: Timestamp, counts: &Counts) {
        match self.0.back_mut() {
            Some((since, block)) if at.since(*since) < BLOCK => block.add(counts),
            _ => self.0.push_back((at, counts.clone())),
        }
        self.forget(at);
    }

    fn forget(&mut self, now: Timestamp) {
        while self.0.front().is_some_and(|(since, _)| now.since(*since) >= LATELY) {
            self.0.pop_front();
        }
    }

    fn times(&self, now: Timestamp) -> Option<Times> {
        let mut all = Counts::default();
        for (_, block) in self.0.iter().filter(|(since, _)| now.since(*since) < LATELY) {
            all.add(block);
        }
        Times::of(&all)
    }
}

/// Which samples are being taken, and when that began last.
#[derive(Debug)]
pub(crate) struct Rounds {
    number: AtomicU64,
    began: AtomicU64,
}

impl Rounds {
    pub(crate) fn new(started_at: Timestamp) -> Self {
        Self { number: AtomicU64::new(0), began: AtomicU64::new(started_at.as_millis()) }
    }

    /// Whether a queue that has no sample yet came into being since the last round began. All that ever happened in it has
    /// then happened since.
    pub(crate) fn is_young(&self, queue: &Queue) -> bool {
        queue.created_at.as_millis() >= self.began.load(Ordering::Relaxed)
    }
}

/// The samples of a queue.
#[derive(Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    before: Option<Totals>,
    oldest_ready: Option<Timestamp>,
    waits: Blocks,
    runs: Blocks,
}

impl History {
    /// What had happened in the queue when it was last looked at.
    fn before(&self, stats: &QueueStats, young: bool) -> Totals {
        self.before.unwrap_or(if young { Totals::default() } else { stats.totals })
    }

    fn add(
        &mut self,
        stats: &QueueStats,
        (wait, run): (Option<Counts>, Option<Counts>),
        (round, young, keep): (u64, bool, usize),
    ) {
        let before = self.before(stats, young);
        self.before = Some(stats.totals);
        self.oldest_ready = stats.oldest_ready;
        let more = |count: fn(&Totals) -> u64| count(&stats.totals).saturating_sub(count(&before));
        let since = match self.samples.back() {
            Some(last) => last.at,
            None if young => stats.queue.created_at,
            None => stats.at,
        };
        if self.samples.len() >= keep.max(1) {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            at: stats.at,
            states: stats.states,
            enqueued: more(|totals| totals.of(Verb::Enqueue)),
            leased: more(|totals| totals.of(Verb::Lease)),
            acked: more(|totals| totals.of(Verb::Ack)),
            failed: more(|totals| totals.of(Verb::Nack) + totals.of(Verb::Expire)),
            expired: more(|totals| totals.of(Verb::Expire)),
            died: more(|totals| totals.died),
            wait: wait.as_ref().and_then(Times::of),
            run: run.as_ref().and_then(Times::of),
            round,
            covers: stats.at.since(since),
        });
        for (blocks, counts) in [(&mut self.waits, wait), (&mut self.runs, run)] {
            match counts {
                Some(counts) => blocks.add(stats.at, &counts),
                None => blocks.forget(stats.at),
            }
        }
    }

    /// The samples of the last quarter of an hour, the oldest first.
    pub(crate) fn lately(&self, now: Timestamp) -> impl Iterator<Item = &Sample> {
        let after = now.minus(LATELY);
        self.samples.iter().filter(move |sample| sample.at > after)
    }

    /// What happened lately, also since the last sample.
    pub(crate) fn happened(&self, stats: &QueueStats, young: bool) -> Lately {
        let before = self.before(stats, young);
        let more = |count: fn(&Totals) -> u64| count(&stats.totals).saturating_sub(count(&before));
        let mut lately = Lately {
            leased: more(|totals| totals.of(Verb::Lease)),
            died: more(|totals| totals.died),
            expired: more(|totals| totals.of(Verb::Expire)),
        };
        for sample in self.lately(stats.at) {
            lately.died += sample.died;
            lately.expired += sample.expired;
            if stats.at.since(sample.at) < MINUTE {
                lately.leased += sample.leased;
            }
        }
        lately
    }

    /// How fast the queue went in the last minute that there are samples of.
    pub(crate) fn rates(&self) -> Rates {
        let Some(last) = self.samples.back() else { return Rates::default() };
        let minute = || self.samples.iter().rev().take_while(|sample| last.at.since(sample.at) < MINUTE);
        let sum = |count: fn(&Sample) -> u64| minute().map(count).sum::<u64>();
        let (span, acked, failed) =
            (sum(|one| one.covers.get()), sum(|one| one.acked), sum(|one| one.failed));
        #[expect(clippy::cast_precision_loss, reason = "rates and shares for people")]
        let (per_second, share) = (
            |count: u64| if span == 0 { 0.0 } else { count as f64 * 1_000.0 / span as f64 },
            |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64),
        );
        Rates {
            enqueued: per_second(sum(|sample| sample.enqueued)),
            acked: per_second(acked),
            failed: per_second(failed),
            failed_share: share(failed, acked + failed),
        }
    }

    /// How many attempts failed in the last minute that there are samples of.
    pub(crate) fn failed_lately(&self) -> u64 {
        let last = self.samples.back().map(|sample| sample.at).unwrap_or_default();
        let minute = self.samples.iter().rev().take_while(|sample| last.since(sample.at) < MINUTE);
        minute.map(|sample| sample.failed).sum()
    }

    /// The last sample.
    pub(crate) fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Since when the oldest message was ready that was so at the last sample.
    pub(crate) fn oldest_ready(&self) -> Option<Timestamp> {
        self.oldest_ready
    }

    /// How long messages waited and ran lately.
    pub(crate) fn times(&self, now: Timestamp) -> (Option<Times>, Option<Times>) {
        (self.waits.times(now), self.runs.times(now))
    }

    /// How many messages were ready, delayed or leased lately, the oldest first.
    pub(crate) fn depths(&self, now: Timestamp) -> Vec<u64> {
        let of = |sample: &Sample| {
            [State::Ready, State::Delayed, State::Leased].map(|state| sample.states.of(state)).iter().sum()
        };
        let all: Vec<u64> = self.lately(now).map(of).collect();
        let step = all.len().div_ceil(DEPTHS_MAX).max(1);
        // The last of each part, so that the last of all is among them.
        let mut depths: Vec<u64> = all.rchunks(step).filter_map(|part| part.last().copied()).collect();
        depths.reverse();
        depths
    }
}

impl Broker {
    /// Takes a sample of every queue that has metrics of its own, again and again.
    pub(crate) async fn keep_history(&self) {
        loop {
            if let Err(error) = self.sample().await {
                tracing::warn!(%error, "no sample was taken of the queues");
            }
            self.clock.until(self.now().plus(self.config.history_interval)).await;
        }
    }

    /// Takes a sample of the queues.
    pub(crate) async fn sample(&self) -> Result<(), BrokerError> {
        let began = self.now();
        let look = self.look_at_queues().await?;
        let round = self.rounds.number.fetch_add(1, Ordering::Relaxed);
        for stats in &look.stats {
            let Ok(live) = self.live(&stats.queue.name).await else { continue };
            let young = self.rounds.is_young(&stats.queue);
            let times = live.numbers.take_times();
            let mut history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.add(stats, times, (round, young, self.config.history_samples));
        }
        self.rounds.began.fetch_max(began.as_millis(), Ordering::Relaxed);
        self.mark_consumers(self.now());
        Ok(())
    }

    /// Brings the gauges up to date.
    pub(crate) async fn measure_depth(&self) -> Result<(), BrokerError> {
        for stats in &self.look_at_queues().await?.stats {
            let oldest = stats.oldest_ready.map_or(Millis::ZERO, |since| stats.at.since(since));
            self.metrics.set_depth(&stats.queue.name, &stats.states, oldest);
            self.measure_breaker(&stats.queue.name);
        }
        Ok(())
    }

    /// A breaker that nobody has asked for since the broker started has heard of nothing.
    fn measure_breaker(&self, queue: &QueueName) {
        let Some(live) = self.queues.known(queue) else { return };
        let at = live.rules().breaker.as_ref().map(|breaker| breaker.state(self.now()));
        self.metrics.set_breaker(queue, at);
    }

    /// The samples of a queue, the oldest first.
    pub async fn history(&self, queue: &QueueName) -> Result<Vec<Sample>, BrokerError> {
        let live = self.live(queue).await?;
        let history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(history.samples.iter().copied().collect())
    }
}

#[cfg(test)]
mod tests;
