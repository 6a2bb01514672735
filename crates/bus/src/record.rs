//! How topics and subscriptions are written down in the registry: JSON, in which what an older version did not know is absent.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use bytes::Bytes;
use redrive_core::policy::{BreakerConfig, Jitter, Multiplier, RetryOverride};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};

use crate::subscription::{
    Endpoint, Format, HeaderFilter, LiveSecret, State, Subscription, SubscriptionSettings, Target,
    WhyDisabled,
};
use crate::topic::{Dispatch, TopicConfig, TopicSettings};
use crate::webhook::{SigningSecret, WebhookUrl};

/// A field that may be unset, set to nothing, or set.
type Tri<T> = Option<Option<T>>;

/// Tells `null` from a field that is not there.
fn some_null<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Tri<T>, D::Error> {
    Option::deserialize(from).map(Some)
}

#[derive(Serialize, Deserialize)]
struct WrittenSubscription {
    pattern: String,
    target: WrittenTarget,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    filter: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    retry: WrittenRetry,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_in_flight: Option<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_null")]
    breaker: Tri<WrittenBreaker>,
    order: u64,
    created_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disabled: Option<WrittenDisabled>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failing_since: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum WrittenTarget {
    Handler,
    Queue {
        queue: String,
    },
    Webhook {
        url: String,
        format: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        disable_after_ms: Option<u64>,
        secrets: Vec<WrittenSecret>,
    },
}

#[derive(Serialize, Deserialize)]
struct WrittenSecret {
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct WrittenDisabled {
    at: u64,
    why: String,
}

#[derive(Serialize, Deserialize, Default)]
struct WrittenRetry {
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_null")]
    max_attempts: Tri<NonZeroU32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    multiplier: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some_null")]
    max_delay_ms: Tri<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    jitter: Option<WrittenJitter>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenJitter {
    None,
    Full,
    Proportional(u16),
}

#[derive(Serialize, Deserialize)]
struct WrittenBreaker {
    window_ms: u64,
    min_messages: u32,
    failure_share_permille: u32,
    open_for_ms: u64,
    probe_timeout_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct WrittenTopic {
    number: u64,
    #[serde(default)]
    sequenced: bool,
    dispatch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retain_ms: Option<u64>,
    created_at: u64,
}

impl Subscription {
    /// The bytes that are kept.
    pub(crate) fn encode(&self) -> Bytes {
        let (paused, disabled) = match self.state {
            State::Active => (None, None),
            State::Paused => (Some(true), None),
            State::Disabled { at, why } => {
                (None, Some(WrittenDisabled { at: at.as_millis(), why: why.name().to_owned() }))
            }
        };
        let settings = &self.settings;
        let filter = settings.filter.iter().map(|(name, values)| (name.to_owned(), values.to_vec()));
        let written = WrittenSubscription {
            pattern: settings.pattern.as_str().to_owned(),
            target: WrittenTarget::of(&self.target),
            filter: filter.collect(),
            retry: WrittenRetry::of(&settings.retry),
            timeout_ms: settings.timeout.map(Millis::get),
            max_in_flight: settings.max_in_flight,
            breaker: settings.breaker.map(|breaker| breaker.map(|breaker| WrittenBreaker::of(&breaker))),
            order: self.order,
            created_at: self.created_at.as_millis(),
            paused,
            disabled,
            failing_since: self.failing_since.map(Timestamp::as_millis),
        };
        serde_json::to_vec(&written).expect("plain fields are JSON").into()
    }

    /// What was kept; `None` where it cannot be read.
    pub(crate) fn decode(id: &str, version: u64, bytes: &[u8]) -> Option<Self> {
        let written: WrittenSubscription = serde_json::from_slice(bytes).ok()?;
        let state = match (written.disabled, written.paused) {
            (Some(WrittenDisabled { at, why }), _) => {
                let why = WhyDisabled::ALL.into_iter().find(|known| known.name() == why)?;
                State::Disabled { at: Timestamp::from_millis(at), why }
            }
            (None, Some(true)) => State::Paused,
            (None, _) => State::Active,
        };
        Some(Self {
            id: SubscriptionId::new(id).ok()?,
            version,
            order: written.order,
            created_at: Timestamp::from_millis(written.created_at),
            target: written.target.read()?,
            settings: SubscriptionSettings {
                pattern: written.pattern.parse().ok()?,
                filter: HeaderFilter::new(written.filter).ok()?,
                retry: written.retry.read()?,
                timeout: written.timeout_ms.map(Millis::new),
                max_in_flight: written.max_in_flight,
                breaker: written.breaker.map(|breaker| breaker.map(WrittenBreaker::read)),
            },
            state,
            failing_since: written.failing_since.map(Timestamp::from_millis),
        })
    }
}

impl WrittenTarget {
    fn of(target: &Target) -> Self {
        match target {
            Target::Handler => Self::Handler,
            Target::Queue(queue) => Self::Queue { queue: queue.as_str().to_owned() },
            Target::Webhook(endpoint) => Self::Webhook {
                url: endpoint.url.as_str().to_owned(),
                format: endpoint.format.name().to_owned(),
                disable_after_ms: endpoint.disable_after.map(Millis::get),
                secrets: endpoint.secrets.iter().map(WrittenSecret::of).collect(),
            },
        }
    }

    fn read(self) -> Option<Target> {
        Some(match self {
            Self::Handler => Target::Handler,
            Self::Queue { queue } => Target::Queue(QueueName::new(queue).ok()?),
            Self::Webhook { url, format, disable_after_ms, secrets } => Target::Webhook(Endpoint {
                // Whether it may be dialled is found out when it is.
                url: WebhookUrl::kept(&url).ok()?,
                format: Format::named(&format).ok()?,
                disable_after: disable_after_ms.map(Millis::new),
                secrets: secrets.into_iter().map(WrittenSecret::read).collect::<Option<_>>()?,
            }),
        })
    }
}

impl WrittenSecret {
    fn of(live: &LiveSecret) -> Self {
        Self { secret: live.secret.reveal(), until: live.until.map(Timestamp::as_millis) }
    }

    fn read(self) -> Option<LiveSecret> {
        let secret = SigningSecret::parse(&self.secret).ok()?;
        Some(LiveSecret { secret, until: self.until.map(Timestamp::from_millis) })
    }
}

impl WrittenRetry {
    fn of(retry: &RetryOverride) -> Self {
        Self {
            max_attempts: retry.max_attempts,
            base_delay_ms: retry.base_delay.map(Millis::get),
            multiplier: retry.multiplier.map(Multiplier::thousandths),
            max_delay_ms: retry.max_delay.map(|max| max.map(Millis::get)),
            jitter: retry.jitter.map(|jitter| match jitter {
                Jitter::None => WrittenJitter::None,
                Jitter::Full => WrittenJitter::Full,
                Jitter::Proportional(share) => WrittenJitter::Proportional(share),
            }),
        }
    }

    fn read(self) -> Option<RetryOverride> {
        Some(RetryOverride {
            max_attempts: self.max_attempts,
            base_delay: self.base_delay_ms.map(Millis::new),
            multiplier: self.multiplier.map(Multiplier::from_thousandths).transpose().ok()?,
            max_delay: self.max_delay_ms.map(|max| max.map(Millis::new)),
            jitter: self.jitter.map(|jitter| match jitter {
                WrittenJitter::None => Jitter::None,
                WrittenJitter::Full => Jitter::Full,
                WrittenJitter::Proportional(share) => Jitter::Proportional(share),
            }),
        })
    }
}

impl WrittenBreaker {
    fn of(breaker: &BreakerConfig) -> Self {
        Self {
            window_ms: breaker.window.get(),
            min_messages: breaker.min_messages,
            failure_share_permille: breaker.failure_share_permille,
            open_for_ms: breaker.open_for.get(),
            probe_timeout_ms: breaker.probe_timeout.get(),
        }
    }

    fn read(self) -> BreakerConfig {
        BreakerConfig {
            window: Millis::new(self.window_ms),
            min_messages: self.min_messages,
            failure_share_permille: self.failure_share_permille,
            open_for: Millis::new(self.open_for_ms),
            probe_timeout: Millis::new(self.probe_timeout_ms),
        }
    }
}

impl TopicSettings {
    /// The bytes that are kept.
    pub(crate) fn encode(&self) -> Bytes {
        let written = WrittenTopic {
            number: self.number,
            sequenced: self.sequenced,
            dispatch: self.config.dispatch.name().to_owned(),
            retain_ms: self.config.retain.map(Millis::get),
            created_at: self.created_at.as_millis(),
        };
        serde_json::to_vec(&written).expect("plain fields are JSON").into()
    }

    /// What was kept; `None` where it cannot be read.
    pub(crate) fn decode(pattern: &str, version: u64, bytes: &[u8]) -> Option<Self> {
        let written: WrittenTopic = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            config: TopicConfig {
                pattern: pattern.parse().ok()?,
                dispatch: Dispatch::named(&written.dispatch).ok()?,
                retain: written.retain_ms.map(Millis::new),
            },
            number: written.number,
            sequenced: written.sequenced,
            version,
            created_at: Timestamp::from_millis(written.created_at),
        })
    }
}

/// How often topics and subscriptions were changed, and what was changed last: an instance that missed a few changes reads
/// those entries, and not all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Revision {
    /// How many changes there were.
    pub(crate) number: u64,
    /// The last of them, the newest at the end.
    recent: Vec<Changed>,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Changed {
    /// A subscription, by its name.
    Subscription(String),
    /// What is set for a topic pattern.
    Topic(String),
}

impl Revision {
    /// The changes that are remembered.
    const RECENT_MAX: usize = 64;

    /// The next one, after a change.
    pub(crate) fn next(&self, changed: Changed) -> Self {
        let skip = (self.recent.len() + 1).saturating_sub(Self::RECENT_MAX);
        let recent = self.recent.iter().skip(skip).cloned().chain([changed]).collect();
        Self { number: self.number + 1, recent }
    }

    /// What was changed since another one; `None` where that is not remembered.
    pub(crate) fn since(&self, known: u64) -> Option<&[Changed]> {
        let missed = usize::try_from(self.number.checked_sub(known)?).ok()?;
        self.recent.get(self.recent.len().checked_sub(missed)?..)
    }

    pub(crate) fn encode(&self) -> Bytes {
        serde_json::to_vec(self).expect("plain fields are JSON").into()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subscription() -> Subscription {
        let mut settings = SubscriptionSettings::new("orders.*".parse().unwrap());
        settings.filter = HeaderFilter::new([("region".to_owned(), vec!["eu".to_owned()])]).unwrap();
        settings.retry = RetryOverride {
            max_attempts: Some(None),
            base_delay: Some(Millis::new(7)),
            multiplier: Some(Multiplier::TWO),
            max_delay: Some(None),
            jitter: Some(Jitter::Proportional(50)),
        };
        settings.timeout = Some(Millis::new(1_500));
        settings.max_in_flight = NonZeroU32::new(3);
        settings.breaker = Some(None);
        Subscription {
            id: SubscriptionId::new("mail").unwrap(),
            version: 5,
            order: 9,
            created_at: Timestamp::from_millis(1_000),
            target: Target::Handler,
            settings,
            state: State::Disabled { at: Timestamp::from_millis(77), why: WhyDisabled::Gone },
            failing_since: Some(Timestamp::from_millis(66)),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let written = subscription();
        let read = Subscription::decode("mail", 5, &written.encode()).unwrap();
        assert_eq!(read.settings, written.settings);
        assert_eq!((read.state, read.order, read.failing_since), (written.state, 9, written.failing_since));
        let unset = Subscription {
            settings: SubscriptionSettings::new("a".parse().unwrap()),
            state: State::Paused,
            target: Target::Queue(QueueName::new("q").unwrap()),
            ..written
        };
        let read = Subscription::decode("mail", 6, &unset.encode()).unwrap();
        assert_eq!((read.settings, read.state, read.version), (unset.settings, State::Paused, 6));
        assert!(matches!(read.target, Target::Queue(queue) if queue.as_str() == "q"));
        let topic = TopicSettings {
            config: TopicConfig {
                pattern: "a.**".parse().unwrap(),
                dispatch: Dispatch::Sequential,
                retain: Some(Millis::from_days(1)),
            },
            number: 3,
            sequenced: true,
            version: 8,
            created_at: Timestamp::from_millis(5),
        };
        assert_eq!(TopicSettings::decode("a.**", 8, &topic.encode()), Some(topic));
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        for bytes in [&b""[..], b"{}", b"[]", b"\xff"] {
            assert!(Subscription::decode("mail", 1, bytes).is_none());
            assert!(TopicSettings::decode("a", 1, bytes).is_none());
        }
    }

    #[test]
    fn a_revision_remembers_the_last_changes() {
        let change = |n: u64| Changed::Subscription(format!("s{n}"));
        let mut revision = Revision::default();
        for n in 1..=100 {
            revision = revision.next(change(n));
        }
        assert_eq!(revision.number, 100);
        assert_eq!(revision.since(100), Some(&[][..]));
        assert_eq!(revision.since(98), Some(&[change(99), change(100)][..]));
        assert_eq!(revision.since(36).map(<[_]>::len), Some(64));
        assert_eq!(revision.since(35), None, "too long ago");
        assert_eq!(revision.since(101), None, "from the future");
        assert_eq!(Revision::decode(&revision.encode()), Some(revision));
    }
}
