//! A subscription: which events, to where, and what happens when that fails.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use redrive_core::invalid::Invalid;
use redrive_core::limits::{HEADER_FILTERS_MAX, HEADERS_BYTES_MAX, IN_FLIGHT_MAX, LEASE_MAX};
use redrive_core::message::Headers;
use redrive_core::policy::{BreakerConfig, Jitter, Multiplier, RetryOverride, RetryPolicy};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::TopicPattern;

use crate::webhook::{SigningSecret, WebhookUrl};

/// How long a handler or an endpoint may take where nothing is said.
pub(crate) const TIMEOUT_DEFAULT: Millis = Millis::from_secs(30);
/// The longest time that a handler or an endpoint may be given.
const TIMEOUT_MAX: Millis = Millis::from_secs(3_600);
/// How many deliveries of a subscription are under way at a time where nothing is said.
pub(crate) const IN_FLIGHT_DEFAULT: u32 = 16;
/// How long an endpoint may do nothing but fail before it is switched off, where nothing is said.
pub(crate) const DISABLE_AFTER_DEFAULT: Millis = Millis::from_days(5);
/// How much longer than its time-out a delivery is leased: it must be settled by whoever tried it.
const LEASE_MARGIN: Millis = Millis::from_secs(10);

/// Where the events of a subscription go.
#[derive(Debug, Clone)]
pub enum Target {
    /// To a function in the process that embeds the broker.
    Handler,
    /// To an HTTP endpoint.
    Webhook(Endpoint),
    /// Into a queue that others consume.
    Queue(QueueName),
}

impl Target {
    /// The word in APIs.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Handler => "handler",
            Self::Webhook(_) => "webhook",
            Self::Queue(_) => "queue",
        }
    }
}

/// How an event is written for an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The whole event is a JSON object, with the data in it.
    #[default]
    Structured,
    /// The body is the data as it was published; the rest is in headers.
    Binary,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 2] = [Self::Structured, Self::Binary];

    /// The word in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Structured => "structured",
            Self::Binary => "binary",
        }
    }

    /// The format of that name.
    pub fn named(name: &str) -> Result<Self, Invalid> {
        let found = Self::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| Invalid::unusable("target.format", "must be structured or binary"))
    }
}

/// A secret with which requests are signed.
#[derive(Debug, Clone)]
pub struct LiveSecret {
    /// The secret; it shows itself to nobody.
    pub(crate) secret: SigningSecret,
    /// Until when, where another one has taken its place.
    pub until: Option<Timestamp>,
}

/// An HTTP endpoint.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where it is.
    pub url: WebhookUrl,
    /// How events are written for it.
    pub format: Format,
    /// For how long it may do nothing but fail before it is switched off; `None` is for ever.
    pub disable_after: Option<Millis>,
    pub(crate) secrets: Vec<LiveSecret>,
}

impl Endpoint {
    /// The secrets that requests are signed with at `now`, the newest first.
    pub(crate) fn live_secrets(&self, now: Timestamp) -> Vec<SigningSecret> {
        let live = self.secrets.iter().filter(|secret| secret.until.is_none_or(|until| until > now));
        live.map(|secret| secret.secret.clone()).collect()
    }

    /// How many secrets requests are signed with at `now`, and when the last of the old ones ends.
    pub fn secrets_at(&self, now: Timestamp) -> (usize, Option<Timestamp>) {
        let ends = self.secrets.iter().filter_map(|secret| secret.until).filter(|until| *until > now);
        (self.live_secrets(now).len(), ends.max())
    }
}

/// Headers that an event must have: each of them, with one of the values that are named for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderFilter(BTreeMap<String, Vec<String>>);

impl HeaderFilter {
    /// Refuses too many, too large, and headers that no event can have.
    pub fn new(wanted: impl IntoIterator<Item = (String, Vec<String>)>) -> Result<Self, Invalid> {
        let mut filter = BTreeMap::new();
        let mut size = 0;
        for (name, values) in wanted {
            let some = values.first().cloned().ok_or_else(|| {
                Invalid::unusable("filter", "each header needs at least one value that it may have")
            })?;
            Headers::new([(name.clone(), some)]).map_err(|wrong| Invalid { field: "filter", ..wrong })?;
            size += name.len() + values.iter().map(String::len).sum::<usize>();
            Invalid::check_length("filter", size, HEADERS_BYTES_MAX / 16, "bytes")?;
            if filter.insert(name, values).is_some() {
                return Err(Invalid::unusable("filter", "a header must not be named twice"));
            }
        }
        Invalid::check_length("filter", filter.len(), HEADER_FILTERS_MAX, "headers")?;
        Ok(Self(filter))
    }

    /// Whether an event with those headers passes.
    pub fn passes(&self, headers: &Headers) -> bool {
        let has = |(name, values): (&String, &Vec<String>)| {
            headers.get(name).is_some_and(|value| values.iter().any(|wanted| wanted == value))
        };
        self.0.iter().all(has)
    }

    /// What it asks for, by header.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }
}

/// What may be set of a subscription, beside its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionSettings {
    /// Of which topics.
    pub pattern: TopicPattern,
    /// With which headers.
    pub filter: HeaderFilter,
    /// What is retried otherwise than others are.
    pub retry: RetryOverride,
    /// How long an attempt may take; `None` is as long as most.
    pub timeout: Option<Millis>,
    /// How many deliveries are under way at a time, at one instance.
    pub max_in_flight: Option<NonZeroU32>,
    /// When deliveries stop because the target is down; `Some(None)` is never, `None` is as for most.
    pub breaker: Option<Option<BreakerConfig>>,
}

impl SubscriptionSettings {
    /// Everything of these topics, with nothing special about it.
    pub fn new(pattern: TopicPattern) -> Self {
        Self {
            pattern,
            filter: HeaderFilter::default(),
            retry: RetryOverride::default(),
            timeout: None,
            max_in_flight: None,
            breaker: None,
        }
    }

    /// Refuses what is out of range, and what has no meaning for a plain queue.
    pub(crate) fn check(&self, target: &Target) -> Result<(), Invalid> {
        if let Target::Queue(_) = target {
            return self.check_plain();
        }
        if let Some(timeout) = self.timeout {
            timeout.within("timeout", Millis::new(1), TIMEOUT_MAX)?;
        }
        if self.max_in_flight.is_some_and(|max| max.get() > IN_FLIGHT_MAX) {
            return Err(Invalid::out_of_range("max_in_flight", 1, IN_FLIGHT_MAX));
        }
        if let Some(Some(breaker)) = &self.breaker {
            breaker.check()?;
        }
        self.retry.over(default_policy(target)).check()
    }

    /// Whoever consumes a queue is told by its settings how long, how often and how many.
    fn check_plain(&self) -> Result<(), Invalid> {
        let why = "has no meaning where the target is a queue: set it in the settings of the queue";
        match () {
            () if self.retry != RetryOverride::default() => Err(Invalid::unusable("retry", why)),
            () if self.timeout.is_some() => Err(Invalid::unusable("timeout", why)),
            () if self.max_in_flight.is_some() => Err(Invalid::unusable("max_in_flight", why)),
            () if self.breaker.is_some() => Err(Invalid::unusable("breaker", why)),
            () => Ok(()),
        }
    }
}

/// The policy of a subscription that overrides nothing: three retries; webhooks have more, over days.
pub(crate) fn default_policy(target: &Target) -> RetryPolicy {
    match target {
        Target::Webhook(_) => RetryPolicy {
            max_attempts: NonZeroU32::new(12),
            base_delay: Millis::from_secs(5),
            multiplier: Multiplier::from_thousandths(3_000).expect("within its range"),
            max_delay: Some(Millis::from_secs(12 * 3_600)),
            jitter: Jitter::Proportional(100),
        },
        Target::Handler | Target::Queue(_) => {
            RetryPolicy { max_attempts: NonZeroU32::new(4), ..RetryPolicy::default() }
        }
    }
}

/// Why a subscription was switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyDisabled {
    /// Its endpoint answered 410: it is gone.
    Gone,
    /// Its endpoint did nothing but fail for longer than it may.
    Failing,
    /// A person switched it off.
    Operator,
}

impl WhyDisabled {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Gone, Self::Failing, Self::Operator];

    /// The word in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Operator => "operator",
        }
    }
}

/// Whether events come to a subscription, and go on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    /// Both.
    #[default]
    Active,
    /// They come, and wait.
    Paused,
    /// Neither. What waited still does.
    Disabled {
        /// Since when.
        at: Timestamp,
        /// Why.
        why: WhyDisabled,
    },
}

impl State {
    /// The word in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Disabled { .. } => "disabled",
        }
    }
}

/// A subscription as it is kept.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Its name.
    pub id: SubscriptionId,
    /// Raised by every change; an update names the version it saw.
    pub version: u64,
    /// Its place among all that were ever created: handlers of one event run in this order.
    pub order: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// Where its events go.
    pub target: Target,
    /// What was set.
    pub settings: SubscriptionSettings,
    /// Whether events come and go.
    pub state: State,
    /// Since when its endpoint does nothing but fail, as far as that was worth writing down.
    pub failing_since: Option<Timestamp>,
}

impl Subscription {
    /// The queue its events are enqueued to.
    pub fn queue(&self) -> QueueName {
        match &self.target {
            Target::Queue(queue) => queue.clone(),
            Target::Handler | Target::Webhook(_) => self.id.queue(),
        }
    }

    /// Whether the queue is its own.
    pub fn owns_queue(&self) -> bool {
        !matches!(self.target, Target::Queue(_))
    }

    /// The policy in force: what it overrides over the default for its target.
    pub fn policy(&self) -> RetryPolicy {
        self.settings.retry.over(default_policy(&self.target))
    }

    /// How long an attempt may take.
    pub fn timeout(&self) -> Millis {
        self.settings.timeout.unwrap_or(TIMEOUT_DEFAULT)
    }

    /// How long a delivery is leased.
    pub(crate) fn lease_time(&self) -> Millis {
        Millis::new(self.timeout().get() + LEASE_MARGIN.get()).min(LEASE_MAX)
    }

    /// How many deliveries are under way at a time.
    pub fn max_in_flight(&self) -> u32 {
        self.settings.max_in_flight.map_or(IN_FLIGHT_DEFAULT, NonZeroU32::get)
    }

    /// Its breaker, where it has one.
    pub fn breaker(&self) -> Option<BreakerConfig> {
        self.settings.breaker.unwrap_or_else(|| Some(BreakerConfig::default()))
    }

    /// The configuration of the queue that is its own.
    pub(crate) fn queue_config(&self) -> QueueConfig {
        let policy = self.policy();
        QueueConfig {
            lease_timeout: Some(self.lease_time()),
            max_lease: Some(Millis::from_secs(12 * 3_600)),
            breaker: Some(self.breaker()),
            retry: RetryOverride {
                max_attempts: Some(policy.max_attempts),
                base_delay: Some(policy.base_delay),
                multiplier: Some(policy.multiplier),
                max_delay: Some(policy.max_delay),
                jitter: Some(policy.jitter),
            },
            ..QueueConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        Headers::new(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).unwrap()
    }

    fn filter(wanted: &[(&str, &[&str])]) -> Result<HeaderFilter, Invalid> {
        HeaderFilter::new(wanted.iter().map(|(name, values)| {
            ((*name).to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
        }))
    }

    #[test]
    fn every_header_of_a_filter_must_have_one_of_its_values() {
        let wanted = filter(&[("region", &["eu", "us"]), ("tier", &["gold"])]).unwrap();
        assert!(wanted.passes(&headers(&[("region", "us"), ("tier", "gold"), ("more", "x")])));
        assert!(!wanted.passes(&headers(&[("region", "us")])));
        assert!(!wanted.passes(&headers(&[("region", "asia"), ("tier", "gold")])));
        assert!(HeaderFilter::default().passes(&headers(&[])));
    }

    #[test]
    fn a_filter_that_nothing_could_pass_or_that_is_too_large_is_refused() {
        assert_eq!(filter(&[("region", &[])]).unwrap_err().field, "filter");
        assert_eq!(filter(&[("", &["x"])]).unwrap_err().field, "filter");
        let many: Vec<(String, Vec<String>)> =
            (0..=HEADER_FILTERS_MAX).map(|n| (format!("h{n}"), vec!["x".to_owned()])).collect();
        assert!(HeaderFilter::new(many).is_err());
        assert!(filter(&[("h", &["x".repeat(5_000).as_str()])]).is_err());
    }

    /// Requirement 001: partial overrides merge with the defaults, they do not replace them.
    #[test]
    fn a_partial_override_keeps_the_rest_of_the_default() {
        let retry = RetryOverride {
            max_attempts: Some(NonZeroU32::new(6)),
            base_delay: Some(Millis::new(500)),
            ..RetryOverride::default()
        };
        let policy = retry.over(default_policy(&Target::Handler));
        assert_eq!(policy.max_attempts, NonZeroU32::new(6), "five retries");
        assert_eq!(policy.base_delay, Millis::new(500));
        assert_eq!(policy.max_delay, Some(Millis::from_secs(30)));
        assert_eq!(policy.multiplier, Multiplier::TWO);
        assert_eq!(policy.jitter, Jitter::Proportional(100));
    }

    /// Requirement 001: the default policy is three retries, one second doubling up to thirty; the timeout 30 s.
    #[test]
    fn the_defaults_are_those_of_requirement_001() {
        let policy = default_policy(&Target::Handler);
        assert_eq!(policy.max_attempts, NonZeroU32::new(4));
        let table: Vec<u64> = (1..=6).map(|failed| policy.delay(failed).get()).collect();
        assert_eq!(table, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
        assert_eq!(TIMEOUT_DEFAULT, Millis::from_secs(30));
    }

    #[test]
    fn what_a_queue_decides_cannot_be_set_for_a_subscription_to_it() {
        let target = Target::Queue(QueueName::new("orders").unwrap());
        let plain = SubscriptionSettings::new("orders.*".parse().unwrap());
        assert!(plain.check(&target).is_ok());
        let timeout = SubscriptionSettings { timeout: Some(Millis::new(1)), ..plain.clone() };
        assert_eq!(timeout.check(&target).unwrap_err().field, "timeout");
        let breaker = SubscriptionSettings { breaker: Some(None), ..plain };
        assert_eq!(breaker.check(&target).unwrap_err().field, "breaker");
    }
}
