//! All queues together, at one moment.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use redrive_core::access::{On, Use};
use redrive_core::message::State;
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Capabilities, Limit, QueueError, QueueStats, StateCounts};

use super::attention::{
    Attention, Facts, OperationFacts, QueueFacts, StorageFacts, SubscriptionFacts, attention,
};
use crate::access::Caller;
use crate::broker::Broker;
use crate::error::BrokerError;
use crate::history::Sample;
use crate::operations::{OperationId, OperationState};

/// How long ago an operation may have been started for its end to be looked for.
const OPERATIONS_SINCE: Millis = Millis::from_days(7);
/// Most operations that are looked at.
const OPERATIONS_LOOKED_MAX: usize = 10_000;

/// What the store said of the queues that have numbers of their own: the first by name, as many as have metrics.
#[derive(Debug)]
pub(crate) struct Look {
    pub(crate) stats: Vec<QueueStats>,
    /// The last of them, where there are more behind it.
    behind: Option<QueueName>,
}

/// Looks at all queues: those who ask while one is under way share the next, so that there is one at a time however many
/// pages are open.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    asked: AtomicU64,
    /// How many had asked when it began, and what it found.
    last: tokio::sync::Mutex<Option<(u64, Arc<Look>)>>,
}

/// Since when the store refuses messages for want of room; 0 where it does not.
#[derive(Debug, Default)]
pub(crate) struct Full(AtomicU64);

impl Full {
    /// The store took messages, or had no room for them.
    pub(crate) fn note(&self, full: bool, now: Timestamp) {
        if full {
            // Whoever was first knows since when.
            let since = now.as_millis().max(1);
            self.0.compare_exchange(0, since, Ordering::Relaxed, Ordering::Relaxed).ok();
        } else if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    fn facts(&self) -> Option<StorageFacts> {
        let since = self.0.load(Ordering::Relaxed);
        (since != 0).then(|| StorageFacts { full_since: Timestamp::from_millis(since) })
    }
}

impl Broker {
    /// What the store says of the queues that have numbers of their own, no earlier than this was asked.
    pub(crate) async fn look_at_queues(&self) -> Result<Arc<Look>, BrokerError> {
        let ticket = self.looks.asked.fetch_add(1, Ordering::SeqCst);
        let mut last = self.looks.last.lock().await;
        if let Some((began, look)) = &*last
            && *began > ticket
        {
            return Ok(Arc::clone(look));
        }
        let began = self.looks.asked.load(Ordering::SeqCst);
        let look = Arc::new(self.look_once_at_queues().await?);
        *last = Some((began, Arc::clone(&look)));
        Ok(look)
    }

    async fn look_once_at_queues(&self) -> Result<Look, BrokerError> {
        let (mut stats, mut after) = (Vec::new(), None);
        loop {
            let page = self.store.list_queues(after.as_ref(), Limit::MAX).await?;
            if page.is_empty() {
                return Ok(Look { stats, behind: None });
            }
            for queue in page {
                if stats.len() >= self.config.metric_labels_max.max(1) {
                    return Ok(Look { stats, behind: after });
                }
                match self.store.stats(self.at(), &queue.name).await {
                    Ok(found) => stats.push(found),
                    // It was deleted since it was listed.
                    Err(QueueError::NotFound(_)) => {}
                    Err(error) => return Err(error.into()),
                }
                after = Some(queue.name);
            }
        }
    }

    /// What is known of a queue.
    async fn facts(&self, stats: &QueueStats) -> Result<QueueFacts, BrokerError> {
        let (name, now) = (&stats.queue.name, stats.at);
        let overdue_since = if stats.overdue == 0 {
            None
        } else {
            match self.store.next_due(self.at(), Some(name)).await {
                Ok(next) => next.overdue,
                Err(QueueError::NotFound(_)) => None,
                Err(error) => return Err(error.into()),
            }
        };
        let live = self.queues.known(name);
        let young = self.rounds.is_young(&stats.queue);
        let lately = live
            .as_ref()
            .map(|live| live.history.lock().unwrap_or_else(PoisonError::into_inner).happened(stats, young));
        let lately = lately.unwrap_or_default();
        let breaker = live.as_ref().and_then(|live| {
            let rules = live.rules();
            rules.breaker.as_ref().map(|breaker| (breaker.state(now), breaker.row().open_until))
        });
        let asked_at = live.as_ref().map(|live| live.numbers.last_asked()).unwrap_or_default();
        Ok(QueueFacts {
            queue: name.clone(),
            ready: stats.states.of(State::Ready),
            delayed: stats.states.of(State::Delayed),
            leased: stats.states.of(State::Leased),
            oldest_ready: stats.oldest_ready,
            overdue: stats.overdue,
            overdue_since,
            paused: stats.queue.pauses.queue.filter(|pause| pause.holds(now)),
            breaker,
            asked_at: asked_at.max(self.started_at).max(stats.queue.created_at),
            waited_for: live.as_ref().is_some_and(|live| !live.waiters.is_empty()),
            // Who leases here asks here, which is known to the millisecond.
            leased_lately: if self.peers.is_some() { lately.leased } else { 0 },
            died_lately: lately.died,
            expired_lately: lately.expired,
        })
    }
}

/// All queues that a caller may see, together.
#[derive(Debug, Clone)]
pub struct Overview {
    /// When.
    pub at: Timestamp,
    /// How many queues were added up.
    pub queues: u64,
    /// Whether those are all that the caller may see.
    pub complete: bool,
    /// How many messages are in each state.
    pub states: StateCounts,
    /// How many leases have run out and were not ended yet.
    pub overdue: u64,
    /// The sums of the samples of the last quarter of an hour, the oldest first.
    pub samples: Vec<Sample>,
    /// What somebody should look at, the worst first.
    pub attention: Vec<Attention>,
    /// How many more there are.
    pub attention_more: u64,
    /// What the store promises.
    pub store: Capabilities,
    /// When the broker started.
    pub started_at: Timestamp,
}

impl Caller {
    /// All queues that the caller may see, together, and what somebody should look at. What is wrong with subscriptions,
    /// the bus knows.
    pub async fn overview(&self, subscriptions: Vec<SubscriptionFacts>) -> Result<Overview, BrokerError> {
        let broker = self.may(Use::Look, On::Some)?;
        let look = broker.look_at_queues().await?;
        let complete = self.sees_no_more(broker, &look).await?;
        let now = broker.now();
        let mut overview = Overview {
            at: look.stats.iter().map(|stats| stats.at).max().unwrap_or(now),
            queues: 0,
            complete,
            states: StateCounts::default(),
            overdue: 0,
            samples: Vec::new(),
            attention: Vec::new(),
            attention_more: 0,
            store: broker.store.capabilities(),
            started_at: broker.started_at,
        };
        let (mut queues, mut rounds) = (Vec::new(), BTreeMap::new());
        for stats in look.stats.iter().filter(|stats| self.sees(Use::Look, &stats.queue.name)) {
            overview.queues += 1;
            overview.overdue += stats.overdue;
            for state in State::ALL {
                overview.states.add(state, stats.states.of(state));
            }
            add_samples(broker, stats, &mut rounds);
            queues.push(broker.facts(stats).await?);
        }
        overview.samples = rounds.into_values().collect();
        let facts = Facts {
            now,
            overdue_check_interval: broker.config.overdue_check_interval,
            queues,
            subscriptions,
            operations: self.failed_operations(broker, now).await?,
            storage: broker.full.facts(),
        };
        (overview.attention, overview.attention_more) = attention(&facts);
        Ok(overview)
    }

    /// Whether nothing that the caller may see is behind the queues that were looked at.
    pub(super) async fn sees_no_more(&self, broker: &Broker, look: &Look) -> Result<bool, BrokerError> {
        let mut after = look.behind.clone();
        while after.is_some() {
            let page = broker.list_queues(after.as_ref(), Limit::MAX).await?;
            if page.iter().any(|queue| self.sees(Use::Look, &queue.name)) {
                return Ok(false);
            }
            after = page.into_iter().next_back().map(|queue| queue.name);
        }
        Ok(true)
    }

    /// Operations on queues that the caller may see, that were started lately and failed. Their ids are in the order in which
    /// they were started.
    async fn failed_operations(
        &self,
        broker: &Broker,
        now: Timestamp,
    ) -> Result<Vec<OperationFacts>, BrokerError> {
        let mut after = Some(OperationId::first_of(now.minus(OPERATIONS_SINCE)));
        let (mut failed, mut looked) = (Vec::new(), 0);
        while after.is_some() && looked < OPERATIONS_LOOKED_MAX {
            let page = broker.operations(after, Limit::MAX).await?;
            looked += page.len();
            after = page.last().map(|operation| operation.id).filter(|_| page.len() == Limit::MAX.get());
            for operation in page {
                let is_told =
                    operation.state == OperationState::Failed && self.sees(Use::Look, &operation.queue);
                if is_told {
                    failed.push(OperationFacts {
                        id: operation.id,
                        what: operation.work.name(),
                        queue: operation.queue,
                        failed_at: operation.updated_at,
                        problem: operation.problem.unwrap_or_default(),
                    });
                }
            }
        }
        Ok(failed)
    }
}

/// Adds the samples of a queue to those of the others, round by round.
fn add_samples(broker: &Broker, stats: &QueueStats, rounds: &mut BTreeMap<u64, Sample>) {
    let Some(live) = broker.queues.known(&stats.queue.name) else { return };
    let history = live.history.lock().unwrap_or_else(PoisonError::into_inner);
    for sample in history.lately(stats.at) {
        rounds.entry(sample.round).or_insert_with(|| sample.before_the_first()).add(sample);
    }
}
