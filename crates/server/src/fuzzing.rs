//! What the fuzz targets may call: the conversions of what clients send, which are nobody else's.

use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Checkpoint, Message};
use redrive_core::policy::Asked;
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{ClassFilter, Filter};
use redrive_wire as wire;

use crate::convert;

/// A message that somebody handed over.
pub fn new_message(
    queue: QueueName,
    message: wire::NewMessage,
    body_bytes_max: usize,
) -> Result<redrive_broker::NewMessage, Invalid> {
    convert::message::new_message(queue, message, body_bytes_max)
}

/// A message as it can be imported again.
pub fn exported(message: &Message, now: Timestamp) -> wire::NewMessage {
    convert::message::exported(message, now)
}

/// Another time, or another priority.
pub fn reschedule(request: &wire::RescheduleRequest) -> Result<Reschedule, Invalid> {
    convert::message::reschedule(request)
}

/// Where a consumer wants to go on from.
pub fn checkpoint(text: Option<&str>) -> Result<Option<Checkpoint>, Invalid> {
    convert::message::checkpoint(text)
}

/// When a consumer wants what failed back.
pub fn asked(ms: Option<u64>, exact: bool) -> Result<Asked, Invalid> {
    convert::asked(ms, exact)
}

/// For how long a lease is to go on.
pub fn extension(ms: Option<u64>) -> Result<Option<Millis>, Invalid> {
    convert::extension(ms)
}

/// Which messages are meant.
pub fn filter(body: wire::FilterBody) -> Result<Filter, Invalid> {
    convert::filter::filter(body)
}

/// Which messages a consumer takes.
pub fn classes(types: &[String], sources: &[String]) -> Result<ClassFilter, Invalid> {
    convert::filter::classes(types, sources)
}

/// What is set of a queue.
pub fn config(config: wire::QueueConfig) -> Result<QueueConfig, Invalid> {
    convert::queue::config(config)
}

/// A key that somebody wants.
pub fn new_key(request: wire::CreateKeyRequest) -> Result<redrive_broker::NewKey, Invalid> {
    convert::key::new_key(request)
}

/// The same the other way round.
pub fn config_view(config: &QueueConfig) -> wire::QueueConfig {
    convert::queue::config_view(config)
}
