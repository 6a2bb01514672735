//! Between what is written here and the domain.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use redrive_broker::{BrokerError, Delivery, LeaseCall};
use redrive_bus::Incoming;
use redrive_client::{
    Ask, CallError, Jitter, Lane, LeaseError, Message, NewMessage, QueueSettings, RetrySettings, Stats,
};
use redrive_core::invalid::Invalid;
use redrive_core::lease::LeaseId;
use redrive_core::lifecycle::{Draft, When};
use redrive_core::message::{
    Body, ContentType, Dedup, Headers, Lane as DomainLane, MessageId, Priority, Spec, State, Uniqueness,
};
use redrive_core::policy::{BreakerConfig, Multiplier, RetryOverride, Share, Weight};
use redrive_core::queue::{QueueConfig, QueueName, Weights};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{ClassFilter, LaneChoice, Limit, QueueError, QueueStats, RetryAdvice};

/// When something that was refused may work.
const RETRY_AFTER: Duration = Duration::from_secs(1);

pub(crate) fn millis(span: Duration) -> Millis {
    Millis::new(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}

pub(crate) fn duration(span: Millis) -> Duration {
    Duration::from_millis(span.get())
}

/// A delay that somebody asks for: at most the longest that there is.
pub(crate) fn delay(span: Duration) -> Millis {
    millis(span).min(redrive_core::limits::DELAY_MAX)
}

pub(crate) fn timestamp(at: SystemTime) -> Timestamp {
    // What lies before the epoch lies before everything.
    Timestamp::from_millis(millis(at.duration_since(UNIX_EPOCH).unwrap_or_default()).get())
}

pub(crate) fn system_time(at: Timestamp) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(at.as_millis())
}

pub(crate) fn new_message(queue: &str, message: NewMessage) -> Result<redrive_broker::NewMessage, Invalid> {
    let unique = if message.unique_until_done { Uniqueness::UntilDone } else { Uniqueness::Window };
    let at_least_one =
        |max| NonZeroU32::new(max).ok_or_else(|| Invalid::out_of_range("max_attempts", 1, u32::MAX));
    let spec = Spec {
        id: MessageId::MIN,
        body: Body::new(message.body)?,
        content_type: message.content_type.map(ContentType::new).transpose()?.unwrap_or_default(),
        headers: Headers::new(message.headers)?,
        kind: message.kind.parse()?,
        source: message.source.parse()?,
        fairness_key: message.fairness_key.parse()?,
        dedup: match message.dedup_key {
            None => None,
            Some(key) => Some(Dedup { key: key.parse()?, unique }),
        },
        lease_timeout: message.lease_timeout.map(millis),
        max_attempts: message.max_attempts.map(at_least_one).transpose()?,
    };
    let draft = Draft {
        spec,
        priority: message.priority.map(Priority::new).transpose()?.unwrap_or_default(),
        visible: message.delay.map(|delay| When::After(millis(delay))).unwrap_or_default(),
        expires: message.ttl.map(|ttl| When::After(millis(ttl))),
    };
    let id = message.id.as_deref().map(str::parse).transpose()?;
    Ok(redrive_broker::NewMessage { queue: queue.parse()?, id, draft, idempotency_key: None, request: None })
}

pub(crate) fn config(settings: QueueSettings) -> Result<QueueConfig, Invalid> {
    let weights: Result<Vec<_>, Invalid> =
        settings.weights.into_iter().map(|(key, weight)| Ok((key.parse()?, Weight::new(weight)?))).collect();
    let weights = weights?;
    Ok(QueueConfig {
        lease_timeout: settings.lease_timeout.map(millis),
        max_lease: settings.max_lease.map(millis),
        max_deliveries: settings.max_deliveries.map(NonZeroU32::new),
        retry: retry(&settings.retry)?,
        retry_share: settings.retry_share.map(Share::new).transpose()?,
        breaker: settings.breaker.map(|on| on.then(BreakerConfig::default)),
        dead_letter_to: match settings.dead_letter_to.as_deref() {
            None => None,
            Some("") => Some(None),
            Some(name) => Some(Some(QueueName::new(name)?)),
        },
        dedup_window: settings.dedup_window.map(millis),
        max_waiting: settings.max_waiting.map(NonZeroU64::new),
        weights: if weights.is_empty() { None } else { Some(Weights::new(weights)?) },
        ..QueueConfig::default()
    })
}

/// What is retried otherwise than others are.
pub(crate) fn retry(retry: &RetrySettings) -> Result<RetryOverride, Invalid> {
    let jitter = |jitter| match jitter {
        Jitter::None => Ok(redrive_core::policy::Jitter::None),
        Jitter::Full => Ok(redrive_core::policy::Jitter::Full),
        Jitter::Proportional(share) => redrive_core::policy::Jitter::proportional(share),
    };
    Ok(RetryOverride {
        max_attempts: retry.max_attempts.map(NonZeroU32::new),
        base_delay: retry.base_delay.map(millis),
        multiplier: retry.multiplier.map(Multiplier::new).transpose()?,
        max_delay: retry.max_delay.map(|max| (!max.is_zero()).then(|| millis(max))),
        jitter: retry.jitter.map(jitter).transpose()?,
    })
}

/// What a worker asks for.
pub(crate) fn ask(ask: &Ask) -> Result<LeaseCall, Invalid> {
    let lane = match ask.lane {
        Lane::Shared => LaneChoice::Queue,
        Lane::Fresh => LaneChoice::Only(DomainLane::Fresh),
        Lane::Retry => LaneChoice::Only(DomainLane::Retry),
    };
    let kinds: Result<Vec<_>, Invalid> = ask.types.iter().map(|kind| kind.parse()).collect();
    let sources: Result<Vec<_>, Invalid> = ask.sources.iter().map(|source| source.parse()).collect();
    Ok(LeaseCall {
        time: Some(millis(ask.lease_time)),
        lane,
        filter: ClassFilter { kinds: kinds?, sources: sources? },
        ..LeaseCall::new(ask.queue.parse()?, Limit::ONE, ask.consumer.parse()?)
    })
}

/// A message as a handler sees it.
pub(crate) fn message(delivery: Delivery) -> Message {
    let Delivery { message, receipt } = delivery;
    let lease = message.lease();
    let (lease_id, deadline_ms) = lease.map_or((0, 0), |lease| (lease.id.bits(), lease.deadline.as_millis()));
    let headers = message.spec.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Message {
        id: message.spec.id.to_string(),
        queue: message.queue.as_str().to_owned(),
        content_type: message.spec.content_type.as_str().to_owned(),
        headers: headers.collect(),
        kind: message.spec.kind.as_str().to_owned(),
        source: message.spec.source.as_str().to_owned(),
        priority: message.progress.priority.get(),
        fairness_key: message.spec.fairness_key.as_str().to_owned(),
        created_at_ms: message.created_at.as_millis(),
        visible_at_ms: message.progress.visible_at.as_millis(),
        attempts: message.progress.attempts,
        deliveries: message.progress.deliveries,
        redrives: message.progress.redrives,
        receipt,
        lease_id,
        deadline_ms,
        last_error: message.history.last_error.map(|error| error.as_str().to_owned()).unwrap_or_default(),
        checkpoint: message.history.checkpoint.map(|last| last.bytes().clone()).unwrap_or_default(),
        expires_at_ms: message.progress.expires_at.map(Timestamp::as_millis),
        body: message.spec.body.bytes().clone(),
    }
}

/// An event as what the handler of a worker would get: whatever can be read of a message can be read of an event.
pub(crate) fn event_message(incoming: &Incoming) -> Message {
    let event = &incoming.event;
    let headers = event.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    Message {
        id: event.id.to_string(),
        queue: incoming.subscription.queue().as_str().to_owned(),
        content_type: event.content_type.as_str().to_owned(),
        headers: headers.collect(),
        kind: event.kind.as_str().to_owned(),
        source: event.attribute("source").unwrap_or_default().to_owned(),
        created_at_ms: event.published_at.as_millis(),
        attempts: incoming.attempt,
        lease_id: incoming.lease_id.map(LeaseId::bits).unwrap_or_default(),
        deadline_ms: incoming.deadline.as_millis(),
        body: event.body.bytes().clone(),
        ..Message::default()
    }
}

/// What is in a queue.
pub(crate) fn stats(stats: &QueueStats) -> Stats {
    Stats {
        delayed: stats.states.of(State::Delayed),
        ready: stats.states.of(State::Ready),
        leased: stats.states.of(State::Leased),
        dead: stats.states.of(State::Dead),
        done: stats.states.of(State::Done),
        overdue: stats.overdue,
        oldest_ready_age: stats.oldest_ready.map(|since| duration(stats.at.since(since))),
    }
}

/// Why a worker gets nothing.
pub(crate) fn refused(error: &BrokerError) -> LeaseError {
    let detail = error.to_string();
    if let BrokerError::Queue(QueueError::NotFound(_)) = error {
        return redrive_client::QueueNotFound { detail }.into();
    }
    let refused = |retry_after| {
        let code = error.code().to_owned();
        CallError::Refused(redrive_client::Refused { code, detail: detail.clone(), retry_after })
    };
    let call = match error.advice() {
        // It does not come back.
        _ if matches!(error, BrokerError::Stopping) => refused(None),
        RetryAdvice::Retry => refused(Some(RETRY_AFTER)),
        RetryAdvice::Ask => redrive_client::OutcomeUnknown { detail: detail.clone() }.into(),
        RetryAdvice::GiveUp => refused(None),
    };
    call.into()
}
