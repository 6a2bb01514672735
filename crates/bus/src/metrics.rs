//! Numbers of the bus for Prometheus. Labels are bounded: beyond so many subscriptions or types, the rest is `other`.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError, RwLock};

use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use redrive_core::message::Message;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};

use crate::error::BusError;
use crate::publish::Published;
use crate::subscription::Subscription;
use crate::view::View;

/// What the text of a registry ends with.
const END: &str = "# EOF\n";

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Bounded(String);

impl EncodeLabelValue for Bounded {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        EncodeLabelValue::encode(&self.0.as_str(), encoder)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSubscription {
    subscription: Bounded,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    subscription: Bounded,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    target: &'static str,
    state: &'static str,
}

/// What the bus counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    /// Subscriptions that have a label of their own: the first ones that were tried.
    known: RwLock<HashSet<String>>,
    max: usize,
    published: Counter,
    duplicates: Counter,
    unmatched: Counter,
    fanned_out: Counter,
    publish_refused: Counter,
    deliveries: Family<OfOutcome, Counter>,
    latency: Family<OfSubscription, Histogram>,
    attempt_seconds: Family<OfSubscription, Histogram>,
    subscriptions: Family<OfKind, Gauge>,
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.005, 4.0, 10))
}

impl Metrics {
    pub(crate) fn new(max: usize) -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("redrive")),
            known: RwLock::default(),
            max,
            published: Counter::default(),
            duplicates: Counter::default(),
            unmatched: Counter::default(),
            fanned_out: Counter::default(),
            publish_refused: Counter::default(),
            deliveries: Family::default(),
            latency: Family::new_with_constructor(seconds),
            attempt_seconds: Family::new_with_constructor(seconds),
            subscriptions: Family::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, help, counter) in [
            ("published", "Events that were published", &self.published),
            ("published_duplicates", "Events that had been published before", &self.duplicates),
            ("published_unmatched", "Events that no subscription wanted", &self.unmatched),
            ("published_deliveries", "Deliveries that published events became", &self.fanned_out),
            ("publish_refused", "Events that were refused", &self.publish_refused),
        ] {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "delivery_attempts",
            "Attempts to bring an event to its target",
            self.deliveries.clone(),
        );
        registry.register_with_unit(
            "delivery",
            "From the publication of an event to its delivery",
            Unit::Seconds,
            self.latency.clone(),
        );
        registry.register_with_unit(
            "delivery_attempt",
            "How long an attempt to deliver took",
            Unit::Seconds,
            self.attempt_seconds.clone(),
        );
        registry.register("subscriptions", "Subscriptions by target and state", self.subscriptions.clone());
    }

    /// A label for a subscription, if there is one left.
    fn bounded(&self, id: &SubscriptionId) -> Bounded {
        if self.known.read().unwrap_or_else(PoisonError::into_inner).contains(id.as_str()) {
            return Bounded(id.as_str().to_owned());
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= self.max {
            return Bounded("other".to_owned());
        }
        known.insert(id.as_str().to_owned());
        Bounded(id.as_str().to_owned())
    }

    pub(crate) fn published(&self, outcomes: &[Result<Published, BusError>]) {
        for outcome in outcomes {
            match outcome {
                Err(_) => drop(self.publish_refused.inc()),
                Ok(Published { duplicate: true, .. }) => drop(self.duplicates.inc()),
                Ok(Published { subscriptions, .. }) => {
                    self.published.inc();
                    self.fanned_out.inc_by(*subscriptions as u64);
                    if *subscriptions == 0 {
                        self.unmatched.inc();
                    }
                }
            }
        }
    }

    /// An attempt ended.
    #[expect(clippy::cast_precision_loss, reason = "spans are far shorter than 2^52 milliseconds")]
    pub(crate) fn attempted(
        &self,
        subscription: &Subscription,
        message: &Message,
        delivered: bool,
        (began, took): (Timestamp, Millis),
    ) {
        let label = self.bounded(&subscription.id);
        let seconds = |time: Millis| time.get() as f64 / 1_000.0;
        let of = OfSubscription { subscription: label.clone() };
        self.attempt_seconds.get_or_create(&of).observe(seconds(took));
        let outcome = if delivered { "delivered" } else { "failed" };
        self.deliveries.get_or_create(&OfOutcome { subscription: label, outcome }).inc();
        if delivered {
            let since = began.plus(took).since(message.created_at);
            self.latency.get_or_create(&of).observe(seconds(since));
        }
    }

    /// Gives up the labels of a subscription that is gone.
    pub(crate) fn forget(&self, id: &SubscriptionId) {
        let subscription = Bounded(id.as_str().to_owned());
        for outcome in ["delivered", "failed"] {
            self.deliveries.remove(&OfOutcome { subscription: subscription.clone(), outcome });
        }
        self.latency.remove(&OfSubscription { subscription: subscription.clone() });
        self.attempt_seconds.remove(&OfSubscription { subscription });
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(id.as_str());
    }

    /// Adds all of it to the text of another registry.
    pub(crate) fn add_to(&self, text: &mut String, view: &View) {
        self.subscriptions.clear();
        for subscription in view.after(None) {
            let (target, state) = (subscription.target.kind(), subscription.state.name());
            self.subscriptions.get_or_create(&OfKind { target, state }).inc();
        }
        let mut own = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if encode(&mut own, &registry).is_ok() {
            // There is one end to all of it.
            if text.ends_with(END) {
                text.truncate(text.len() - END.len());
            }
            text.push_str(&own);
        }
    }
}
