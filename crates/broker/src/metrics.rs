//! Numbers for Prometheus. Labels are bounded: beyond so many queues or types, the rest is counted as `other`.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError, RwLock};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use redrive_core::message::{MessageType, State};
use redrive_core::policy::BreakerState;
use redrive_core::queue::QueueName;
use redrive_core::time::Millis;

/// A name that is one of a bounded set, or `other`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Bounded(String);

impl EncodeLabelValue for Bounded {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        EncodeLabelValue::encode(&self.0.as_str(), encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfQueue {
    queue: Bounded,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfType {
    r#type: Bounded,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    queue: Bounded,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCode {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStore {
    store: &'static str,
    survives: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCause {
    queue: Bounded,
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfChange {
    queue: Bounded,
    to: &'static str,
}

/// The first names that come get a label of their own.
#[derive(Debug)]
struct Names {
    known: RwLock<HashSet<String>>,
    max: usize,
}

impl Names {
    fn new(max: usize) -> Self {
        Self { known: RwLock::default(), max }
    }

    fn bounded(&self, name: &str) -> Bounded {
        if self.known.read().unwrap_or_else(PoisonError::into_inner).contains(name) {
            return Bounded(name.to_owned());
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.max {
            return Bounded("other".to_owned());
        }
        known.insert(name.to_owned());
        Bounded(name.to_owned())
    }

    fn forget(&self, name: &str) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// What an attempt, or a wait, can fail of.
const CAUSES: [&str; 4] = ["nack", "expire", "bury", "lapse"];

type Counters<L> = Family<L, Counter>;

/// What the broker counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    queues: Names,
    types: Names,
    enqueued: Counters<OfQueue>,
    duplicates: Counters<OfQueue>,
    leased: Counters<OfQueue>,
    acked: Counters<OfQueue>,
    failed: Counters<OfCause>,
    retried: Counters<OfQueue>,
    dead: Counters<OfQueue>,
    lease_expired: Counters<OfQueue>,
    lease_extended: Counters<OfQueue>,
    released: Counters<OfQueue>,
    type_retries: Counters<OfType>,
    type_succeeded: Counters<OfType>,
    type_died: Counters<OfType>,
    breaker_changes: Counters<OfChange>,
    breaker_state: Family<OfState, Gauge>,
    store_info: Family<OfStore, Gauge>,
    messages: Family<OfState, Gauge>,
    oldest_ready: Family<OfQueue, Gauge<f64, AtomicU64>>,
    waiting_polls: Gauge,
    wait_seconds: Family<OfQueue, Histogram>,
    run_seconds: Family<OfQueue, Histogram>,
    attempts_to_success: Histogram,
    attempts_untraced: Counter,
    refused: Counters<OfCode>,
}

#[expect(clippy::cast_precision_loss, reason = "a span is far shorter than 2^52 milliseconds")]
fn in_seconds(span: Millis) -> f64 {
    span.get() as f64 / 1_000.0
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 4.0, 10))
}

impl Metrics {
    pub(crate) fn new(labels_max: usize) -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("redrive")),
            queues: Names::new(labels_max),
            types: Names::new(labels_max),
            enqueued: Family::default(),
            duplicates: Family::default(),
            leased: Family::default(),
            acked: Family::default(),
            failed: Family::default(),
            retried: Family::default(),
            dead: Family::default(),
            lease_expired: Family::default(),
            lease_extended: Family::default(),
            released: Family::default(),
            type_retries: Family::default(),
            type_succeeded: Family::default(),
            type_died: Family::default(),
            breaker_changes: Family::default(),
            breaker_state: Family::default(),
            store_info: Family::default(),
            messages: Family::default(),
            oldest_ready: Family::default(),
            waiting_polls: Gauge::default(),
            wait_seconds: Family::new_with_constructor(seconds),
            run_seconds: Family::new_with_constructor(seconds),
            attempts_to_success: Histogram::new([1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 13.0, 21.0]),
            attempts_untraced: Counter::default(),
            refused: Family::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let counters = [
            ("enqueued", "Messages that came in", &self.enqueued),
            ("duplicates", "Enqueues that were answered with an earlier message", &self.duplicates),
            ("leased", "Messages that were handed out", &self.leased),
            ("acked", "Messages that succeeded", &self.acked),
            ("retried", "Attempts that failed and will be made again", &self.retried),
            ("dead", "Messages that died", &self.dead),
            ("lease_expired", "Leases that ran out", &self.lease_expired),
            ("lease_extended", "Leases that were extended", &self.lease_extended),
            ("released", "Messages that were given back unharmed", &self.released),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        registry.register("failed", "Attempts that failed, by cause", self.failed.clone());
        let types = [
            ("type_retries", "Retries of messages of a type", &self.type_retries),
            (
                "type_succeeded_after_retry",
                "Messages of a type that succeeded after a retry",
                &self.type_succeeded,
            ),
            ("type_died", "Messages of a type that died", &self.type_died),
        ];
        for (name, help, counter) in types {
            registry.register(name, help, counter.clone());
        }
        registry.register("breaker_changes", "Changes of a breaker's state", self.breaker_changes.clone());
        registry.register(
            "breaker_state",
            "1 for the state that a breaker is in",
            self.breaker_state.clone(),
        );
        registry.register(
            "store_info",
            "The store, and what an acknowledged write survives",
            self.store_info.clone(),
        );
        registry.register("messages", "Messages in a state", self.messages.clone());
        registry.register_with_unit(
            "oldest_ready_age",
            "How long the oldest ready message has been ready",
            Unit::Seconds,
            self.oldest_ready.clone(),
        );
        registry.register("waiting_polls", "Long polls that wait", self.waiting_polls.clone());
        registry.register_with_unit(
            "wait",
            "From when a message could have been leased to its lease",
            Unit::Seconds,
            self.wait_seconds.clone(),
        );
        registry.register_with_unit(
            "run",
            "From the lease to the ack of a message that succeeded",
            Unit::Seconds,
            self.run_seconds.clone(),
        );
        registry.register(
            "attempts_to_success",
            "Attempts that a message took to succeed",
            self.attempts_to_success.clone(),
        );
        registry.register(
            "attempts_untraced",
            "Attempts that were not traced because too many were at the same time",
            self.attempts_untraced.clone(),
        );
        registry.register("refused", "Requests that were refused to who made them", self.refused.clone());
    }

    fn of_queue(&self, queue: &QueueName) -> OfQueue {
        OfQueue { queue: self.queues.bounded(queue.as_str()) }
    }

    fn of_type(&self, kind: &MessageType) -> OfType {
        OfType { r#type: self.types.bounded(kind.as_str()) }
    }

    pub(crate) fn enqueued(&self, queue: &QueueName, new: u64, duplicates: u64) {
        let labels = self.of_queue(queue);
        self.enqueued.get_or_create(&labels).inc_by(new);
        self.duplicates.get_or_create(&labels).inc_by(duplicates);
    }

    pub(crate) fn leased(&self, queue: &QueueName, messages: u64) {
        self.leased.get_or_create(&self.of_queue(queue)).inc_by(messages);
    }

    /// How long messages had been ready when they were handed out.
    pub(crate) fn waited(&self, queue: &QueueName, waits: impl Iterator<Item = Millis>) {
        let histogram = self.wait_seconds.get_or_create_owned(&self.of_queue(queue));
        waits.for_each(|wait| histogram.observe(in_seconds(wait)));
    }

    pub(crate) fn extended(&self, queue: &QueueName, messages: u64) {
        self.lease_extended.get_or_create(&self.of_queue(queue)).inc_by(messages);
    }

    pub(crate) fn released(&self, queue: &QueueName, messages: u64) {
        self.released.get_or_create(&self.of_queue(queue)).inc_by(messages);
    }

    pub(crate) fn acked(&self, queue: &QueueName, kind: &MessageType, attempts: u32, run: Millis) {
        let labels = self.of_queue(queue);
        self.acked.get_or_create(&labels).inc();
        self.run_seconds.get_or_create(&labels).observe(in_seconds(run));
        self.attempts_to_success.observe(f64::from(attempts));
        if attempts > 1 {
            self.type_succeeded.get_or_create(&self.of_type(kind)).inc();
        }
    }

    /// An attempt failed, and the message died of it or will be tried again.
    pub(crate) fn failed(&self, queue: &QueueName, kind: &MessageType, cause: &'static str, died: bool) {
        let labels = OfCause { queue: self.queues.bounded(queue.as_str()), cause };
        self.failed.get_or_create(&labels).inc();
        if cause == "expire" {
            self.lease_expired.get_or_create(&self.of_queue(queue)).inc();
        }
        if died {
            self.dead.get_or_create(&self.of_queue(queue)).inc();
            self.type_died.get_or_create(&self.of_type(kind)).inc();
        } else {
            self.retried.get_or_create(&self.of_queue(queue)).inc();
            self.type_retries.get_or_create(&self.of_type(kind)).inc();
        }
    }

    pub(crate) fn breaker_changed(&self, queue: &QueueName, to: &'static str) {
        let labels = OfChange { queue: self.queues.bounded(queue.as_str()), to };
        self.breaker_changes.get_or_create(&labels).inc();
    }

    /// How a breaker stands at this moment; `None` where the queue has none any more.
    pub(crate) fn set_breaker(&self, queue: &QueueName, at: Option<BreakerState>) {
        for state in BreakerState::ALL {
            let labels = OfState { queue: self.queues.bounded(queue.as_str()), state: state.as_str() };
            if let Some(at) = at {
                self.breaker_state.get_or_create(&labels).set(i64::from(at == state));
            } else {
                self.breaker_state.remove(&labels);
            }
        }
    }

    pub(crate) fn untraced(&self, attempts: u64) {
        self.attempts_untraced.inc_by(attempts);
    }

    /// A caller was not let in, or may not do what it asked for.
    pub(crate) fn refused(&self, code: &'static str) {
        self.refused.get_or_create(&OfCode { code }).inc();
    }

    pub(crate) fn polls(&self, more: i64) {
        self.waiting_polls.inc_by(more);
    }

    /// Which store it is, and what it promises at this moment.
    pub(crate) fn set_store(&self, store: &redrive_store::Capabilities) {
        self.store_info.clear();
        let labels = OfStore { store: store.name, survives: store.survives.as_str() };
        self.store_info.get_or_create(&labels).set(1);
    }

    /// How many messages of a queue are in each state at this moment, and how long the oldest has been ready.
    pub(crate) fn set_depth(&self, queue: &QueueName, states: &redrive_store::StateCounts, oldest: Millis) {
        let queue = self.queues.bounded(queue.as_str());
        for state in State::ALL {
            let labels = OfState { queue: queue.clone(), state: state.name() };
            let count = i64::try_from(states.of(state)).unwrap_or(i64::MAX);
            self.messages.get_or_create(&labels).set(count);
        }
        self.oldest_ready.get_or_create(&OfQueue { queue }).set(in_seconds(oldest));
    }

    /// Gives up the labels of a queue that is gone.
    pub(crate) fn forget_queue(&self, queue: &QueueName) {
        let labels = self.of_queue(queue);
        for counter in [
            &self.enqueued,
            &self.duplicates,
            &self.leased,
            &self.acked,
            &self.retried,
            &self.dead,
            &self.lease_expired,
            &self.lease_extended,
            &self.released,
        ] {
            counter.remove(&labels);
        }
        for cause in CAUSES {
            self.failed.remove(&OfCause { queue: labels.queue.clone(), cause });
        }
        for state in BreakerState::ALL.map(BreakerState::as_str) {
            self.breaker_changes.remove(&OfChange { queue: labels.queue.clone(), to: state });
            self.breaker_state.remove(&OfState { queue: labels.queue.clone(), state });
        }
        self.wait_seconds.remove(&labels);
        self.run_seconds.remove(&labels);
        self.oldest_ready.remove(&labels);
        for state in State::ALL {
            self.messages.remove(&OfState { queue: labels.queue.clone(), state: state.name() });
        }
        self.queues.forget(queue.as_str());
    }

    /// All of it as Prometheus reads it.
    pub(crate) fn encode(&self) -> String {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        // Writing to a string cannot fail.
        if encode(&mut text, &registry).is_err() {
            text.clear();
        }
        text
    }

    /// What the counters say about each type of message, by name.
    pub(crate) fn retries(&self) -> Vec<(String, RetryShare)> {
        let known = self.types.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<String> = known.iter().cloned().collect();
        drop(known);
        names.sort_unstable();
        names.into_iter().map(|name| (name.clone(), self.retries_of(Bounded(name)))).collect()
    }

    fn retries_of(&self, name: Bounded) -> RetryShare {
        let labels = OfType { r#type: name };
        RetryShare {
            retries: self.type_retries.get_or_create(&labels).get(),
            succeeded_after_retry: self.type_succeeded.get_or_create(&labels).get(),
            died: self.type_died.get_or_create(&labels).get(),
        }
    }
}

/// How the retries of one type of message went, since the broker started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryShare {
    /// Attempts that failed and were made again.
    pub retries: u64,
    /// Messages that succeeded after a retry.
    pub succeeded_after_retry: u64,
    /// Messages that died.
    pub died: u64,
}

impl RetryShare {
    /// Of the messages that were retried and came to an end, the share that succeeded.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn succeeded(&self) -> Option<f64> {
        let ended = self.succeeded_after_retry + self.died;
        (ended > 0).then(|| self.succeeded_after_retry as f64 / ended as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded_and_given_back() {
        let metrics = Metrics::new(2);
        let queue = |name: &str| QueueName::new(name).unwrap();
        for name in ["a", "b", "c", "d"] {
            metrics.enqueued(&queue(name), 1, 0);
            for cause in CAUSES {
                metrics.failed(&queue(name), &MessageType::default(), cause, true);
            }
            metrics.breaker_changed(&queue(name), "open");
        }
        let text = metrics.encode();
        assert!(text.contains("redrive_enqueued_total{queue=\"a\"} 1"), "{text}");
        assert!(text.contains("redrive_enqueued_total{queue=\"other\"} 2"), "{text}");
        metrics.forget_queue(&queue("a"));
        metrics.enqueued(&queue("c"), 1, 0);
        let text = metrics.encode();
        assert!(
            !text.contains("queue=\"a\"") && text.contains("redrive_enqueued_total{queue=\"c\"} 1"),
            "{text}"
        );
    }

    #[test]
    fn shares_are_of_messages_that_came_to_an_end() {
        let metrics = Metrics::new(8);
        let (queue, kind) = (QueueName::new("q").unwrap(), MessageType::new("paid").unwrap());
        metrics.failed(&queue, &kind, "nack", false);
        let shares = || metrics.retries().pop().unwrap().1;
        assert_eq!(shares().succeeded(), None);
        metrics.acked(&queue, &kind, 2, Millis::new(5));
        metrics.failed(&queue, &kind, "nack", true);
        assert_eq!((shares().succeeded(), shares().retries), (Some(0.5), 1));
    }
}
