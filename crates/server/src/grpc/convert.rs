//! Between the protos and the domain. What comes in is checked here; what goes out cannot fail.

use std::num::NonZeroU32;

use redrive_broker::{
    Bury, Delivery, Event, Extend, Happening, LeaseCall, Nack, Release, Settlement, Target,
};
use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::Draft;
use redrive_core::message::{
    Body, Checkpoint, ContentType, Dedup, ErrorText, Headers, Lane, MessageId, Priority, Spec, Uniqueness,
};
use redrive_core::policy::Verdict;
use redrive_core::queue as domain;
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Acked, Judged, LaneChoice, Limit, Released};
use redrive_wire as wire;
use redrive_wire::{Maybe, v1};

use crate::convert;

pub(crate) fn new_message(
    queue: QueueName,
    message: v1::NewMessage,
    body_bytes_max: usize,
) -> Result<redrive_broker::NewMessage, Invalid> {
    let unique = if message.unique_until_done { Uniqueness::UntilDone } else { Uniqueness::Window };
    let spec = Spec {
        id: MessageId::MIN,
        body: Body::within(message.body, body_bytes_max)?,
        content_type: match message.content_type.as_str() {
            "" => ContentType::default(),
            content_type => ContentType::new(content_type)?,
        },
        headers: Headers::new(message.headers)?,
        kind: message.r#type.parse()?,
        source: message.source.parse()?,
        fairness_key: message.fairness_key.parse()?,
        dedup: match message.dedup_key.as_str() {
            "" => None,
            key => Some(Dedup { key: key.parse()?, unique }),
        },
        lease_timeout: convert::millis(message.lease_timeout_ms),
        max_attempts: match message.max_attempts {
            Some(max) => {
                Some(NonZeroU32::new(max).ok_or_else(|| Invalid::out_of_range("max_attempts", 1, u32::MAX))?)
            }
            None => None,
        },
    };
    let priority = match message.priority {
        Some(level) => Priority::new(u8::try_from(level).unwrap_or(u8::MAX))?,
        None => Priority::default(),
    };
    let visible_at = message.visible_at_ms.map(Timestamp::from_millis);
    let expires_at = message.expires_at_ms.map(Timestamp::from_millis);
    let draft = Draft {
        spec,
        priority,
        visible: convert::when("delay_ms", message.delay_ms, visible_at)?.unwrap_or_default(),
        expires: convert::when("ttl_ms", message.ttl_ms, expires_at)?,
    };
    let id = match message.id.as_str() {
        "" => None,
        id => Some(id.parse()?),
    };
    Ok(redrive_broker::NewMessage { queue, id, draft, idempotency_key: None, request: None })
}

fn lane(lane: i32) -> Result<LaneChoice, Invalid> {
    match v1::Lane::try_from(lane) {
        Ok(v1::Lane::Unspecified) => Ok(LaneChoice::Queue),
        Ok(v1::Lane::Fresh) => Ok(LaneChoice::Only(Lane::Fresh)),
        Ok(v1::Lane::Retry) => Ok(LaneChoice::Only(Lane::Retry)),
        Err(_) => Err(Invalid::unusable("lane", "must be one of the lanes")),
    }
}

pub(crate) fn lease(request: &v1::LeaseRequest) -> Result<LeaseCall, Invalid> {
    Ok(LeaseCall {
        queue: request.queue.parse()?,
        limit: Limit::new(request.limit.max(1) as usize)?,
        consumer: request.consumer.parse()?,
        time: convert::millis(request.lease_ms),
        lane: lane(request.lane)?,
        filter: convert::filter::classes(&request.types, &request.sources)?,
        wait: Millis::new(request.wait_ms),
    })
}

/// What a stream asks for, one message at a time or more.
pub(crate) fn consume(start: &v1::ConsumeStart) -> Result<LeaseCall, Invalid> {
    Ok(LeaseCall {
        queue: start.queue.parse()?,
        limit: credit(start.credit)?.unwrap_or(Limit::ONE),
        consumer: start.consumer.parse()?,
        time: convert::millis(start.lease_ms),
        lane: lane(start.lane)?,
        filter: convert::filter::classes(&start.types, &start.sources)?,
        wait: Millis::ZERO,
    })
}

/// How many messages may be unsettled; `None` is none.
pub(crate) fn credit(credit: u32) -> Result<Option<Limit>, Invalid> {
    if credit == 0 {
        return Ok(None);
    }
    Limit::new(credit as usize).map(Some).map_err(|invalid| Invalid { field: "credit", ..invalid })
}

pub(crate) fn message(delivery: Delivery) -> v1::Message {
    let Delivery { message, receipt } = delivery;
    let lease = message.lease();
    let (lease_id, deadline_ms) = lease.map_or((0, 0), |lease| (lease.id.bits(), lease.deadline.as_millis()));
    let history = message.history;
    v1::Message {
        id: message.spec.id.to_string(),
        queue: message.queue.as_str().to_owned(),
        content_type: message.spec.content_type.as_str().to_owned(),
        headers: message
            .spec
            .headers
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        r#type: message.spec.kind.as_str().to_owned(),
        source: message.spec.source.as_str().to_owned(),
        priority: u32::from(message.progress.priority.get()),
        fairness_key: message.spec.fairness_key.as_str().to_owned(),
        created_at_ms: message.created_at.as_millis(),
        visible_at_ms: message.progress.visible_at.as_millis(),
        attempts: message.progress.attempts,
        deliveries: message.progress.deliveries,
        redrives: message.progress.redrives,
        receipt,
        lease_id,
        deadline_ms,
        last_error: history.last_error.map(|error| error.as_str().to_owned()).unwrap_or_default(),
        checkpoint: history.checkpoint.map(|checkpoint| checkpoint.bytes().clone()).unwrap_or_default(),
        expires_at_ms: message.progress.expires_at.map(Timestamp::as_millis),
        body: message.spec.body.bytes().clone(),
    }
}

pub(crate) fn nack(nack: v1::Nack) -> Result<Nack, Invalid> {
    let asked = convert::asked(nack.delay_ms, nack.exact)?;
    let checkpoint = nack.checkpoint.map(Checkpoint::new).transpose()?;
    Ok(Nack { receipt: nack.receipt, asked, error: ErrorText::new(nack.error), checkpoint })
}

pub(crate) fn extend(extend: v1::Extend) -> Result<Extend, Invalid> {
    Ok(Extend {
        target: Target::Receipt(extend.receipt),
        time: convert::extension(extend.lease_ms)?,
        checkpoint: extend.checkpoint.map(Checkpoint::new).transpose()?,
    })
}

pub(crate) fn release(release: v1::Release) -> Result<Release, Invalid> {
    Ok(Release { target: Target::Receipt(release.receipt), delay: convert::delay(release.delay_ms)? })
}

pub(crate) fn bury(bury: v1::Bury) -> Bury {
    Bury { receipt: bury.receipt, error: ErrorText::new(bury.error) }
}

/// What became of settlements, each with what there is to say about it.
pub(crate) fn settled<T>(
    settlements: Vec<Settlement<T>>,
    say: impl Fn(T, &mut v1::SettleResult),
) -> Vec<v1::SettleResult> {
    let one = |settlement: Settlement<T>| {
        let mut result = v1::SettleResult {
            code: settlement.code().unwrap_or_default().to_owned(),
            ..v1::SettleResult::default()
        };
        if let Some(applied) = settlement.applied() {
            say(applied, &mut result);
        }
        result
    };
    settlements.into_iter().map(one).collect()
}

pub(crate) fn say_acked(_: Acked, _: &mut v1::SettleResult) {}

pub(crate) fn say_judged(judged: Judged, result: &mut v1::SettleResult) {
    match judged.verdict {
        Verdict::RetryAt(due, _) => {
            let state = if due > judged.at { "delayed" } else { "ready" };
            state.clone_into(&mut result.state);
            result.visible_at_ms = Some(due.as_millis());
        }
        Verdict::Dead(reason) => {
            "dead".clone_into(&mut result.state);
            reason.name().clone_into(&mut result.dead_reason);
        }
    }
    result.moved_to = judged.moved_to.map(|queue| queue.as_str().to_owned()).unwrap_or_default();
}

pub(crate) fn say_extended(deadline: Timestamp, result: &mut v1::SettleResult) {
    result.deadline_ms = Some(deadline.as_millis());
}

pub(crate) fn say_released(released: Released, result: &mut v1::SettleResult) {
    result.visible_at_ms = Some(released.visible_at.as_millis());
    if let Some(Verdict::Dead(reason)) = released.lapsed.map(|judged| judged.verdict) {
        "dead".clone_into(&mut result.state);
        reason.name().clone_into(&mut result.dead_reason);
    }
}

pub(crate) fn maybe<T: Default + PartialEq>(value: Option<T>) -> Maybe<T> {
    match value {
        None => Maybe::Unset,
        Some(value) if value == T::default() => Maybe::Nothing,
        Some(value) => Maybe::Some(value),
    }
}

pub(crate) fn retry(retry: v1::Retry) -> wire::Retry {
    wire::Retry {
        max_attempts: maybe(retry.max_attempts),
        base_delay_ms: retry.base_delay_ms,
        multiplier: retry.multiplier,
        max_delay_ms: maybe(retry.max_delay_ms),
        jitter: retry.jitter,
    }
}

pub(crate) fn retry_view(retry: wire::Retry) -> v1::Retry {
    v1::Retry {
        max_attempts: retry.max_attempts.set().map(Option::unwrap_or_default),
        base_delay_ms: retry.base_delay_ms,
        multiplier: retry.multiplier,
        max_delay_ms: retry.max_delay_ms.set().map(Option::unwrap_or_default),
        jitter: retry.jitter,
    }
}

pub(crate) fn config(config: Option<v1::QueueConfig>) -> Result<domain::QueueConfig, Invalid> {
    let config = config.unwrap_or_default();
    convert::queue::config(wire::QueueConfig {
        lease_timeout_ms: config.lease_timeout_ms,
        max_lease_ms: config.max_lease_ms,
        max_deliveries: maybe(config.max_deliveries),
        retry: config.retry.map(retry),
        retry_share: config.retry_share,
        retry_lane: config.retry_lane,
        max_retries_in_flight: maybe(config.max_retries_in_flight),
        overdue_backoff: config.overdue_backoff,
        breaker: match config.breaker {
            None => Maybe::Unset,
            Some(false) => Maybe::Nothing,
            Some(true) => Maybe::Some(wire::Breaker::default()),
        },
        dead_letter_to: maybe(config.dead_letter_to),
        dedup_window_ms: config.dedup_window_ms,
        max_waiting: maybe(config.max_waiting),
        weights: (!config.weights.is_empty()).then(|| config.weights.into_iter().collect()),
        ..wire::QueueConfig::default()
    })
}

pub(crate) fn queue(queue: &domain::Queue, now: Timestamp) -> v1::Queue {
    let config = &queue.config;
    let millis = |value: Option<Millis>| value.map(Millis::get);
    let cap = |value: Option<Option<NonZeroU32>>| value.map(|cap| cap.map_or(0, NonZeroU32::get));
    let view = convert::queue::config_view(config);
    v1::Queue {
        name: queue.name.as_str().to_owned(),
        created_at_ms: queue.created_at.as_millis(),
        version: queue.version,
        paused: queue.pauses.holds_queue(now),
        config: Some(v1::QueueConfig {
            lease_timeout_ms: millis(config.lease_timeout),
            max_lease_ms: millis(config.max_lease),
            max_deliveries: cap(config.max_deliveries),
            retry: Some(retry_view(view.retry.unwrap_or_default())),
            retry_share: view.retry_share,
            retry_lane: view.retry_lane,
            max_retries_in_flight: cap(config.max_retries_in_flight),
            overdue_backoff: config.overdue_backoff,
            breaker: config.breaker.map(|breaker| breaker.is_some()),
            dead_letter_to: view.dead_letter_to.set().map(Option::unwrap_or_default),
            dedup_window_ms: millis(config.dedup_window),
            max_waiting: view.max_waiting.set().map(Option::unwrap_or_default),
            weights: view.weights.unwrap_or_default().into_iter().collect(),
        }),
    }
}

pub(crate) fn event(event: &Event) -> v1::Event {
    let mut told = v1::Event {
        offset: event.offset,
        r#type: event.what.name().to_owned(),
        timestamp_ms: event.at.as_millis(),
        queue: event.queue.as_str().to_owned(),
        count: event.count,
        dlq_count: event.dlq_count,
        triggered_by: event.trigger.name().to_owned(),
        subscription: SubscriptionId::of_queue(&event.queue).unwrap_or_default().to_owned(),
        ..v1::Event::default()
    };
    match event.what {
        Happening::Queue(act) => act.name().clone_into(&mut told.action),
        Happening::Subscription(act) => act.name().clone_into(&mut told.act),
        Happening::Breaker(change) => {
            change.from.as_str().clone_into(&mut told.from);
            change.to.as_str().clone_into(&mut told.to);
            change.reason.as_str().clone_into(&mut told.reason);
        }
        _ => {}
    }
    told
}
