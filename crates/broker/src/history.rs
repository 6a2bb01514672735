//! How full each queue was and how fast it went, in memory, for charts.

use std::collections::VecDeque;
use std::sync::PoisonError;

use redrive_core::lifecycle::Verb;
use redrive_core::queue::{QueueName, Totals};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Limit, QueueStats, StateCounts};

use crate::broker::Broker;
use crate::error::BrokerError;

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
    /// Attempts that failed.
    pub failed: u64,
    /// Messages that died.
    pub died: u64,
}

/// The samples of a queue.
#[derive(Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
    before: Option<Totals>,
}

impl History {
    fn add(&mut self, stats: &QueueStats, keep: usize) {
        let before = self.before.replace(stats.totals).unwrap_or(stats.totals);
        let more = |count: fn(&Totals) -> u64| count(&stats.totals).saturating_sub(count(&before));
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
            died: more(|totals| totals.died),
        });
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
        for stats in self.some_stats().await? {
            let Ok(live) = self.live(&stats.queue.name).await else { continue };
            let mut history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.add(&stats, self.config.history_samples);
        }
        Ok(())
    }

    /// Brings the gauges up to date.
    pub(crate) async fn measure_depth(&self) -> Result<(), BrokerError> {
        for stats in self.some_stats().await? {
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

    /// The first queues by name, as many as have metrics of their own.
    async fn some_stats(&self) -> Result<Vec<QueueStats>, BrokerError> {
        let mut all = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.list_queues(after.as_ref(), Limit::MAX).await?;
            after = page.last().map(|queue| queue.name.clone());
            for queue in page {
                if all.len() >= self.config.metric_labels_max {
                    return Ok(all);
                }
                // A queue may be deleted between the list and the look.
                if let Ok(stats) = self.store.stats(self.at(), &queue.name).await {
                    all.push(stats);
                }
            }
            if after.is_none() {
                return Ok(all);
            }
        }
    }

    /// The samples of a queue, the oldest first.
    pub async fn history(&self, queue: &QueueName) -> Result<Vec<Sample>, BrokerError> {
        let live = self.live(queue).await?;
        let history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(history.samples.iter().copied().collect())
    }
}
