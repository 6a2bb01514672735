//! The bodies of HTTP requests, and what they become.

use std::fmt::Display;

use redrive_core::access::Grants;
use redrive_core::lifecycle::enqueue;
use redrive_core::limits::{
    BODY_BYTES_DEFAULT_MAX, CHECKPOINT_BYTES_MAX, DELAY_MAX, FILTER_VALUES_MAX, GRANTS_MAX,
    HEADERS_BYTES_MAX, LEASE_MAX,
};
use redrive_core::message::{ErrorText, FairnessKey, Message, MessageId, Note};
use redrive_core::policy::Asked;
use redrive_core::queue::{QueueName, QueueSettings};
use redrive_core::time::{Millis, Timestamp};
use redrive_server::fuzzing;
use redrive_wire as wire;
use redrive_wire::Object;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::trial::note;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

/// Notes why something was refused.
fn accepted<T>(answer: Result<T, impl Display>) -> Option<T> {
    answer.map_err(note).ok()
}

fn read<T: DeserializeOwned>(input: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(input).map(|Object(value)| value)
}

/// An object as the handlers read it. What is read is written, read, and written as the same.
fn object<T: DeserializeOwned + Serialize>(input: &[u8]) -> Option<T> {
    let value: T = accepted(read(input))?;
    let written = serde_json::to_vec(&value).expect("what was read can be written");
    let again: T = read(&written).expect("what was written can be read");
    let again = serde_json::to_vec(&again).expect("what was read can be written");
    assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(&written));
    Some(value)
}

fn queue() -> QueueName {
    QueueName::new("orders").expect("a good name")
}

/// A message to enqueue. What is accepted keeps its limits, and what is exported of it is imported as the same.
pub fn message(input: &[u8]) {
    if let Some(message) = object::<wire::NewMessage>(input) {
        new_message(message);
    }
}

fn new_message(message: wire::NewMessage) -> Option<Message> {
    let new = accepted(fuzzing::new_message(queue(), message, BODY_BYTES_DEFAULT_MAX))?;
    accepted(new.draft.check())?;
    let mut draft = new.draft;
    draft.spec.id = new.id.unwrap_or(MessageId::MIN);
    let headers: usize = draft.spec.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(draft.spec.body.bytes().len() <= BODY_BYTES_DEFAULT_MAX && headers <= HEADERS_BYTES_MAX);
    Some(enqueue(draft, queue(), 1, NOW))
}

/// Several messages.
pub fn batch(input: &[u8]) {
    if let Some(batch) = object::<wire::EnqueueBatchRequest>(input) {
        for message in batch.messages {
            new_message(message);
        }
    }
}

/// Lines of an import. What is exported is imported as the same.
pub fn import(input: &[u8]) {
    for line in input.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let Some(message) = accepted(read(line)).and_then(new_message) else { continue };
        let exported =
            serde_json::to_vec(&fuzzing::exported(&message, NOW)).expect("a message can be exported");
        let imported = read(&exported).ok().and_then(new_message);
        assert_eq!(imported.as_ref(), Some(&message), "exported as {}", String::from_utf8_lossy(&exported));
    }
}

/// A consumer asks for work.
pub fn lease(input: &[u8]) {
    let Some(request) = object::<wire::LeaseRequest>(input) else { return };
    if let Some(classes) = accepted(fuzzing::classes(&request.types, &request.sources)) {
        assert_eq!(classes.kinds.len(), request.types.len());
        assert_eq!(classes.sources.len(), request.sources.len());
    }
}

/// A settlement of any kind; the first byte says which.
pub fn settle(input: &[u8]) {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 12 {
        0 => drop(object::<wire::AckRequest>(input)),
        1 => object::<wire::NackRequest>(input).iter().for_each(nack),
        2 => object::<wire::ExtendRequest>(input).iter().for_each(extend),
        3 => object::<wire::ReleaseRequest>(input).iter().for_each(|release| delay(release.delay_ms)),
        4 => object::<wire::BuryRequest>(input).iter().for_each(|bury| error(&bury.error)),
        5 => drop(object::<wire::Batch<wire::AckRequest>>(input)),
        6 => items(input, nack),
        7 => items(input, extend),
        8 => items(input, |release: &wire::ReleaseRequest| delay(release.delay_ms)),
        9 => items(input, |bury: &wire::BuryRequest| error(&bury.error)),
        10 => drop(object::<wire::OperatorReleaseRequest>(input)),
        _ => drop(object::<wire::RequeueExpiredRequest>(input)),
    }
}

fn items<T: DeserializeOwned + Serialize>(input: &[u8], one: impl Fn(&T)) {
    if let Some(batch) = object::<wire::Batch<T>>(input) {
        batch.items.iter().for_each(one);
    }
}

fn nack(nack: &wire::NackRequest) {
    error(&nack.error);
    checkpoint(nack.checkpoint_base64.as_deref());
    match fuzzing::asked(nack.delay_ms, nack.exact) {
        Ok(Asked::AtLeast(delay) | Asked::Exactly(delay)) => assert!(delay <= DELAY_MAX),
        Ok(Asked::Nothing) => assert_eq!((nack.delay_ms, nack.exact), (None, false)),
        Err(invalid) => note(invalid),
    }
}

fn extend(extend: &wire::ExtendRequest) {
    checkpoint(extend.checkpoint_base64.as_deref());
    match fuzzing::extension(extend.lease_ms) {
        Ok(time) => assert!(time.is_none_or(|time| time <= LEASE_MAX && Some(time.get()) == extend.lease_ms)),
        Err(invalid) => note(invalid),
    }
}

fn delay(ms: Option<u64>) {
    match fuzzing::asked(ms, false) {
        Ok(_) => assert!(ms.is_none_or(|ms| Millis::new(ms) <= DELAY_MAX)),
        Err(invalid) => note(invalid),
    }
}

fn error(text: &str) {
    assert!(text.replace('\0', " ").starts_with(ErrorText::new(text).as_str()));
}

fn checkpoint(text: Option<&str>) {
    match fuzzing::checkpoint(text) {
        Ok(Some(checkpoint)) => assert!(checkpoint.bytes().len() <= CHECKPOINT_BYTES_MAX),
        Ok(None) => assert_eq!(text, None),
        Err(invalid) => note(invalid),
    }
}

/// What is said about a queue; the first byte says in which request.
pub fn queue_request(input: &[u8]) {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 5 {
        0 => object::<wire::CreateQueueRequest>(input).into_iter().for_each(|create| config(create.config)),
        1 => object::<wire::UpdateQueueRequest>(input).into_iter().for_each(|update| config(update.config)),
        2 => object::<wire::PauseRequest>(input).into_iter().for_each(|pause| key(pause.key)),
        3 => object::<wire::ResumeRequest>(input).into_iter().for_each(|resume| key(resume.key)),
        _ => object(input).into_iter().for_each(|weights: wire::KeyWeights| {
            config(wire::QueueConfig { weights: Some(weights), ..wire::QueueConfig::default() });
        }),
    }
}

/// What is said about an API key; the first byte says in which request.
pub fn key_request(input: &[u8]) {
    let Some((kind, input)) = input.split_first() else { return };
    if kind % 2 == 0 {
        let asked: Option<wire::CreateKeyRequest> = object(input);
        let Some(new) = asked.and_then(|asked| accepted(fuzzing::new_key(asked))) else { return };
        assert!((1..=GRANTS_MAX).contains(&new.grants.iter().count()));
        assert!(new.grants.hold(&new.grants) && Grants::everything().hold(&new.grants));
    } else {
        object::<wire::RotateKeyRequest>(input).into_iter().for_each(drop);
    }
}

/// What is accepted is shown so that it is accepted as the same.
fn config(asked: wire::QueueConfig) {
    let Some(config) = accepted(fuzzing::config(asked)) else { return };
    if accepted(config.over(&QueueSettings::default()).check()).is_none() {
        return;
    }
    let shown = serde_json::to_vec(&fuzzing::config_view(&config)).expect("a configuration can be shown");
    let again = fuzzing::config(read(&shown).expect("what is shown can be read"));
    assert_eq!(again.as_ref(), Ok(&config), "shown as {}", String::from_utf8_lossy(&shown));
}

fn key(key: Option<String>) {
    key.map(|key| accepted(key.parse::<FairnessKey>()));
}

/// Work on many messages, or another time for one; the first byte says which.
pub fn operation(input: &[u8]) {
    let Some((kind, input)) = input.split_first() else { return };
    match kind % 5 {
        0 => object::<wire::RedriveRequest>(input).into_iter().for_each(redrive),
        1 => object(input).iter().for_each(|discard: &wire::DiscardRequest| filter(&discard.filter)),
        2 => object(input).iter().for_each(|many: &wire::MoveManyRequest| filter(&many.filter)),
        3 => object(input).iter().for_each(filter),
        _ => object(input).iter().for_each(reschedule),
    }
}

fn redrive(redrive: wire::RedriveRequest) {
    for text in [redrive.by, redrive.reason] {
        accepted(Note::new(text));
    }
    filter(&redrive.filter);
}

fn filter(body: &wire::FilterBody) {
    let Some(filter) = accepted(fuzzing::filter(body.clone())) else { return };
    assert_eq!((filter.ids.len(), filter.kinds.len()), (body.ids.len(), body.types.len()));
    assert!(filter.ids.len() <= FILTER_VALUES_MAX && filter.keys.len() <= FILTER_VALUES_MAX);
    if let Some(message) = new_message(wire::NewMessage::default()) {
        note(filter.matches(&message, NOW));
    }
}

fn reschedule(change: &wire::RescheduleRequest) {
    if let Some(change) = accepted(fuzzing::reschedule(change)) {
        assert!(change.check().is_ok() && (change.visible.is_some() || change.priority.is_some()));
    }
}
