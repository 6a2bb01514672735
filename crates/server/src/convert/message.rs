//! Messages.

use std::num::NonZeroU32;

use bytes::Bytes;
use data_encoding::BASE64;
use redrive_broker::{Delivery, Obstacle, Why};
use redrive_core::invalid::Invalid;
use redrive_core::lease::Lease;
use redrive_core::lifecycle::{Draft, Reschedule};
use redrive_core::limits::JSON_DEPTH_MAX;
use redrive_core::message::{
    AttemptRecord, Body, Cause, Checkpoint, ContentType, Dedup, Headers, Message, MessageId, Priority, Spec,
    Uniqueness,
};
use redrive_core::policy::{BreakerState, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Judged, Released};
use redrive_wire as wire;
use serde_json::value::RawValue;

use super::{millis, time, timestamp, when};

/// A message that somebody handed over. The largest body is the server's to say.
pub(crate) fn new_message(
    queue: QueueName,
    mut message: wire::NewMessage,
    body_bytes_max: usize,
) -> Result<redrive_broker::NewMessage, Invalid> {
    let given =
        Given { text: message.body.take(), base64: message.body_base64.take(), json: message.json.take() };
    let (body, content_type) = given.body(message.content_type.take(), body_bytes_max)?;
    let unique = uniqueness(message.unique.as_deref())?;
    let spec = Spec {
        id: MessageId::MIN,
        body,
        content_type,
        headers: Headers::new(message.headers)?,
        kind: message.r#type.unwrap_or_default().parse()?,
        source: message.source.unwrap_or_default().parse()?,
        fairness_key: message.fairness_key.unwrap_or_default().parse()?,
        dedup: match message.dedup_key {
            Some(key) => Some(Dedup { key: key.parse()?, unique }),
            None => None,
        },
        lease_timeout: millis(message.lease_timeout_ms),
        max_attempts: match message.max_attempts {
            Some(max) => {
                Some(NonZeroU32::new(max).ok_or_else(|| Invalid::out_of_range("max_attempts", 1, u32::MAX))?)
            }
            None => None,
        },
    };
    let draft = Draft {
        spec,
        priority: priority(message.priority)?,
        visible: when("delay_ms", message.delay_ms, message.visible_at.map(timestamp))?.unwrap_or_default(),
        expires: when("ttl_ms", message.ttl_ms, message.expires_at.map(timestamp))?,
    };
    let id = message.id.map(|id| id.parse()).transpose()?;
    Ok(redrive_broker::NewMessage { queue, id, draft, idempotency_key: None, request: None })
}

/// How deep a text of JSON is nested. It was parsed before, so brackets are all that has to be counted.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A body in one of the three ways in which JSON can carry it.
pub(crate) struct Given {
    pub(crate) text: Option<String>,
    pub(crate) base64: Option<String>,
    pub(crate) json: Option<Box<RawValue>>,
}

impl Given {
    /// The body, and what it is: what was said, or what goes with the way in which it was given.
    pub(crate) fn body(
        self,
        content_type: Option<String>,
        bytes_max: usize,
    ) -> Result<(Body, ContentType), Invalid> {
        let typed = |name: &str| ContentType::new(name).unwrap_or_default();
        let (bytes, usual) = match (self.text, self.base64, self.json) {
            (None, None, None) => (Bytes::new(), ContentType::default()),
            (Some(text), None, None) => (Bytes::from(text), typed("text/plain; charset=utf-8")),
            (None, Some(text), None) => (base64("body_base64", &text)?, ContentType::default()),
            (None, None, Some(json)) => {
                Invalid::check_length("json", depth(json.get()), JSON_DEPTH_MAX, "levels")?;
                (Bytes::from(json.get().to_owned()), typed("application/json"))
            }
            _ => {
                return Err(Invalid::unusable("body", "only one of body, body_base64 and json may be given"));
            }
        };
        let content_type = content_type.map(ContentType::new).transpose()?.unwrap_or(usual);
        Ok((Body::within(bytes, bytes_max)?, content_type))
    }
}

fn base64(field: &'static str, text: &str) -> Result<Bytes, Invalid> {
    let bytes = BASE64.decode(text.as_bytes());
    bytes.map(Bytes::from).map_err(|_| Invalid::unusable(field, "must be base64 with padding"))
}

pub(crate) fn checkpoint(text: Option<&str>) -> Result<Option<Checkpoint>, Invalid> {
    text.map(|text| Checkpoint::new(base64("checkpoint_base64", text)?)).transpose()
}

fn uniqueness(text: Option<&str>) -> Result<Uniqueness, Invalid> {
    match text {
        None | Some("window") => Ok(Uniqueness::Window),
        Some("until_done") => Ok(Uniqueness::UntilDone),
        Some(_) => Err(Invalid::unusable("unique", "must be window or until_done")),
    }
}

fn priority(level: Option<u8>) -> Result<Priority, Invalid> {
    level.map_or(Ok(Priority::default()), Priority::new)
}

pub(crate) fn reschedule(request: &wire::RescheduleRequest) -> Result<Reschedule, Invalid> {
    let visible = when("delay_ms", request.delay_ms, request.visible_at.map(timestamp))?;
    let priority = request.priority.map(Priority::new).transpose()?;
    if visible.is_none() && priority.is_none() {
        return Err(Invalid::unusable("delay_ms", "one of delay_ms, visible_at and priority must be given"));
    }
    let change = Reschedule { visible, priority };
    change.check()?;
    Ok(change)
}

fn text_or_base64(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(BASE64.encode(bytes))),
    }
}

fn attempt(record: &AttemptRecord) -> wire::AttemptView {
    wire::AttemptView {
        attempt: record.attempt,
        consumer: record.consumer.as_str().to_owned(),
        leased_at: time(record.leased_at),
        ended_at: time(record.ended_at),
        cause: match record.cause {
            Cause::Nack => "nack",
            Cause::Expire => "expire",
            Cause::Bury => "bury",
        }
        .to_owned(),
        error: record.error.as_str().to_owned(),
        delay_ms: record.delay.map(|(delay, _)| delay.get()),
        delay_rule: record.delay.map(|(_, rule)| rule.name().to_owned()),
    }
}

pub(crate) fn view(message: &Message, now: Timestamp) -> wire::MessageView {
    let (body, body_base64) = text_or_base64(message.spec.body.bytes());
    wire::MessageView { body, body_base64, ..without_body(message, now) }
}

/// The lease of a message.
pub(crate) fn lease(lease: &Lease, now: Timestamp) -> wire::LeaseView {
    wire::LeaseView {
        lease_id: lease.id.to_string(),
        consumer: lease.consumer.as_str().to_owned(),
        leased_at: time(lease.leased_at),
        deadline: time(lease.deadline),
        age_ms: now.since(lease.leased_at).get(),
        overdue: lease.is_overdue(now),
    }
}

/// A message, for lists in which nobody reads the bodies.
pub(crate) fn without_body(message: &Message, now: Timestamp) -> wire::MessageView {
    let (spec, progress, history) = (&message.spec, &message.progress, &message.history);
    let death = progress.death();
    wire::MessageView {
        id: message.id().to_string(),
        queue: message.queue.as_str().to_owned(),
        state: message.state(now).name().to_owned(),
        body: None,
        body_base64: None,
        body_bytes: spec.body.bytes().len() as u64,
        content_type: spec.content_type.as_str().to_owned(),
        headers: spec.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        r#type: spec.kind.as_str().to_owned(),
        source: spec.source.as_str().to_owned(),
        priority: progress.priority.get(),
        fairness_key: spec.fairness_key.as_str().to_owned(),
        dedup_key: spec.dedup.as_ref().map(|dedup| dedup.key.as_str().to_owned()),
        created_at: time(message.created_at),
        visible_at: time(progress.visible_at),
        expires_at: progress.expires_at.map(time),
        attempts: progress.attempts,
        deliveries: progress.deliveries,
        redrives: progress.redrives,
        lease_timeout_ms: spec.lease_timeout.map(Millis::get),
        max_attempts: spec.max_attempts.map(NonZeroU32::get),
        lease: progress.lease().map(|held| lease(held, now)),
        last_error: history.last_error.as_ref().map(|error| error.as_str().to_owned()),
        failures: history.failures.iter().map(attempt).collect(),
        checkpoint_base64: history.checkpoint.as_ref().map(|checkpoint| BASE64.encode(checkpoint.bytes())),
        dead_reason: death.map(|death| death.reason.name().to_owned()),
        dead_at: death.map(|death| time(death.at)),
        fingerprint: death.map(|death| death.fingerprint.to_string()),
        origin_queue: message.origin_queue.as_ref().map(|queue| queue.as_str().to_owned()),
        note: history.redriven.as_ref().map(ToString::to_string),
    }
}

pub(crate) fn delivered(delivery: Delivery, now: Timestamp) -> wire::DeliveredMessage {
    wire::DeliveredMessage { message: view(&delivery.message, now), receipt: delivery.receipt }
}

/// A message as it can be imported again: what the producer wrote, and what is still to come.
pub(crate) fn exported(message: &Message, now: Timestamp) -> wire::NewMessage {
    let (spec, progress) = (&message.spec, &message.progress);
    let (body, body_base64) = text_or_base64(spec.body.bytes());
    wire::NewMessage {
        id: Some(message.id().to_string()),
        body,
        body_base64,
        content_type: Some(spec.content_type.as_str().to_owned()),
        headers: spec.headers.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        r#type: Some(spec.kind.as_str().to_owned()),
        source: Some(spec.source.as_str().to_owned()),
        priority: Some(progress.priority.get()),
        fairness_key: Some(spec.fairness_key.as_str().to_owned()),
        dedup_key: spec.dedup.as_ref().map(|dedup| dedup.key.as_str().to_owned()),
        unique: spec
            .dedup
            .as_ref()
            .filter(|dedup| dedup.unique == Uniqueness::UntilDone)
            .map(|_| "until_done".to_owned()),
        visible_at: (progress.visible_at > now).then(|| time(progress.visible_at)),
        expires_at: progress.expires_at.map(time),
        lease_timeout_ms: spec.lease_timeout.map(Millis::get),
        max_attempts: spec.max_attempts.map(NonZeroU32::get),
        ..wire::NewMessage::default()
    }
}

pub(crate) fn nacked(judged: &Judged) -> wire::Nacked {
    let moved_to = judged.moved_to.as_ref().map(|queue| queue.as_str().to_owned());
    match judged.verdict {
        Verdict::RetryAt(due, rule) => wire::Nacked {
            state: if due > judged.at { "delayed" } else { "ready" }.to_owned(),
            retry_at: Some(time(due)),
            delay_ms: Some(due.since(judged.at).get()),
            delay_rule: Some(rule.name().to_owned()),
            dead_reason: None,
            moved_to,
        },
        Verdict::Dead(reason) => wire::Nacked {
            state: "dead".to_owned(),
            retry_at: None,
            delay_ms: None,
            delay_rule: None,
            dead_reason: Some(reason.name().to_owned()),
            moved_to,
        },
    }
}

pub(crate) fn released(released: &Released) -> wire::Released {
    let dead_reason = released.lapsed.as_ref().and_then(|judged| match judged.verdict {
        Verdict::Dead(reason) => Some(reason.name().to_owned()),
        Verdict::RetryAt(..) => None,
    });
    wire::Released { visible_at: time(released.visible_at), dead_reason }
}

pub(crate) fn why(why: &Why) -> wire::WhyView {
    wire::WhyView {
        state: why.state.name().to_owned(),
        obstacles: why.obstacles.iter().map(obstacle).collect(),
        earliest: why.earliest.map(time),
    }
}

fn obstacle(obstacle: &Obstacle) -> wire::ObstacleView {
    let (kind, detail, until, count) = match obstacle {
        Obstacle::Leased { until } => ("leased", "a consumer has it".to_owned(), Some(*until), None),
        Obstacle::Dead => ("dead", "it is dead until somebody redrives it".to_owned(), None, None),
        Obstacle::Done => ("done", "it succeeded".to_owned(), None, None),
        Obstacle::NotDue { until } => ("not_due", "its time has not come".to_owned(), Some(*until), None),
        Obstacle::QueuePaused { until } => ("queue_paused", "the queue is paused".to_owned(), *until, None),
        Obstacle::KeyPaused { until } => {
            ("key_paused", "its fairness key is paused".to_owned(), *until, None)
        }
        Obstacle::Breaker { state: BreakerState::HalfOpen, until } => {
            let detail = "the breaker is half-open: one probe at a time";
            ("breaker_half_open", detail.to_owned(), *until, None)
        }
        Obstacle::Breaker { until, .. } => {
            ("breaker_open", "the breaker is open: nothing is handed out".to_owned(), *until, None)
        }
        Obstacle::RetryCap { max } => {
            let detail = format!("it is a retry, and {max} retries are in flight, which is the limit");
            ("retry_cap", detail, None, Some(*max))
        }
        Obstacle::SeparateLane => {
            let detail = "it is a retry, and only consumers that ask for the retry lane are given retries";
            ("separate_lane", detail.to_owned(), None, None)
        }
        Obstacle::Behind { messages, at_least } => {
            let least = if *at_least { "at least " } else { "" };
            let detail = format!("{least}{messages} messages of its key are in front of it");
            ("behind", detail, None, Some(*messages))
        }
    };
    wire::ObstacleView { kind: kind.to_owned(), detail, until: until.map(time), count }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts_only() {
        for (json, deep) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a": [1, {"b": []}], "c": []}"#, 4),
            (r#"["[[[[", "\"[[[", "\\\\"]"#, 1),
            (r#"{"\\\"{{": "}}"}"#, 1),
        ] {
            assert_eq!(depth(json), deep, "{json}");
        }
    }
}
