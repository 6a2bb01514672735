//! How spans and their attributes are called. The semantic conventions for messaging are still in development: when they
//! change, this is the place.

use std::borrow::Cow;

use opentelemetry::KeyValue;
use opentelemetry::trace::{SpanKind, Status};
use redrive_broker::{Attempted, Failure, Sent};
use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;

/// Who speaks: the service, and the library by which it does.
pub(super) const SERVICE: &str = "redrive";

/// What a span is called, and what it says.
pub(super) struct Named {
    pub(super) name: Cow<'static, str>,
    pub(super) kind: SpanKind,
    pub(super) attributes: Vec<KeyValue>,
    pub(super) status: Status,
}

/// A message was handed over by a producer.
pub(super) fn sent(sent: &Sent<'_>) -> Named {
    Named {
        name: format!("send {}", sent.queue.as_str()).into(),
        kind: SpanKind::Producer,
        attributes: common("send", "send", sent.queue, sent.message).into(),
        status: Status::Unset,
    }
}

/// A consumer had a message.
pub(super) fn attempted(attempted: &Attempted<'_>) -> Named {
    let common = common("process", "process", attempted.queue, attempted.message);
    let mut attributes = Vec::from(common);
    attributes.push(KeyValue::new("redrive.attempt", i64::from(attempted.attempt)));
    attributes.push(KeyValue::new("redrive.outcome", attempted.ended.as_str()));
    let mut status = Status::Unset;
    if let Some(Failure { cause, error }) = attempted.failure {
        attributes.push(KeyValue::new("error.type", error_type(cause)));
        status = Status::error(error.to_owned());
    }
    Named {
        name: format!("process {}", attempted.queue.as_str()).into(),
        kind: SpanKind::Consumer,
        attributes,
        status,
    }
}

fn common(
    operation: &'static str,
    kind: &'static str,
    queue: &QueueName,
    message: MessageId,
) -> [KeyValue; 5] {
    [
        KeyValue::new("messaging.system", "redrive"),
        KeyValue::new("messaging.operation.name", operation),
        KeyValue::new("messaging.operation.type", kind),
        KeyValue::new("messaging.destination.name", queue.as_str().to_owned()),
        KeyValue::new("messaging.message.id", message.to_string()),
    ]
}

/// One of a few words, as `error.type` must be.
fn error_type(cause: &'static str) -> &'static str {
    if cause == "expire" { "lease_expired" } else { cause }
}
