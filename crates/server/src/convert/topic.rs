//! Topics, and events that are published on them.

use redrive_bus::{BusError, Dispatch, NewEvent, Published, TopicConfig, TopicSettings};
use redrive_core::invalid::Invalid;
use redrive_core::message::Headers;
use redrive_core::time::Millis;
use redrive_core::topic::TopicPattern;
use redrive_wire as wire;

use super::message::Given;
use super::{millis, time};

/// An event that somebody handed over. The largest body is the server's to say.
pub(crate) fn new_event(event: wire::NewEvent, body_bytes_max: usize) -> Result<NewEvent, Invalid> {
    let given = Given { text: event.body, base64: event.body_base64, json: event.json };
    let (body, content_type) = given.body(event.content_type, body_bytes_max)?;
    Ok(NewEvent {
        body,
        content_type,
        headers: Headers::new(event.headers)?,
        kind: event.r#type.map(|kind| kind.parse()).transpose()?,
        fairness_key: event.fairness_key.unwrap_or_default().parse()?,
        dedup_key: event.dedup_key.map(|key| key.parse()).transpose()?,
        request: None,
    })
}

/// What became of one event, where it was published.
pub(crate) fn published(published: Published) -> wire::PublishResult {
    wire::PublishResult {
        id: Some(published.id.to_string()),
        subscriptions: Some(published.subscriptions as u64),
        duplicate: Some(published.duplicate),
        ..wire::PublishResult::default()
    }
}

/// What became of it in the words of the other API.
pub(crate) fn published_or_not(outcome: Result<Published, BusError>) -> wire::v1::PublishResult {
    match outcome {
        Ok(published) => wire::v1::PublishResult {
            id: published.id.to_string(),
            subscriptions: published.subscriptions as u64,
            duplicate: published.duplicate,
            ..wire::v1::PublishResult::default()
        },
        Err(error) => wire::v1::PublishResult {
            code: error.code().to_owned(),
            detail: error.to_string(),
            retryable: error.advice() == redrive_store::RetryAdvice::Retry,
            ..wire::v1::PublishResult::default()
        },
    }
}

pub(crate) fn config(
    pattern: TopicPattern,
    dispatch: Option<&str>,
    retain_ms: Option<u64>,
) -> Result<TopicConfig, Invalid> {
    let dispatch = dispatch.map(Dispatch::named).transpose()?.unwrap_or_default();
    Ok(TopicConfig { pattern, dispatch, retain: millis(retain_ms) })
}

pub(crate) fn view(settings: &TopicSettings) -> wire::TopicView {
    let sequence = (settings.config.dispatch == Dispatch::Sequential).then(|| settings.sequence_queue());
    wire::TopicView {
        pattern: settings.config.pattern.as_str().to_owned(),
        dispatch: settings.config.dispatch.name().to_owned(),
        retain_ms: settings.config.retain.map(Millis::get),
        version: settings.version,
        created_at: time(settings.created_at),
        sequence_queue: sequence.map(|queue| queue.as_str().to_owned()),
    }
}
