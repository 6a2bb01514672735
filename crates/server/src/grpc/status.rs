//! The one mapping from what went wrong to gRPC.

use std::collections::HashMap;
use std::time::Duration;

use redrive_broker::BrokerError;
use redrive_bus::BusError;
use redrive_core::invalid::Invalid;
use redrive_store::{EnqueueRefusal, QueueError, RetryAdvice, StoreError};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// How long to wait before a retry, unless something says otherwise.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Whose reasons these are.
const DOMAIN: &str = "redrive";

/// A field of the request is wrong.
pub(crate) fn invalid(invalid: &Invalid) -> Status {
    let mut details = ErrorDetails::new();
    details
        .set_error_info("INVALID_ARGUMENT", DOMAIN, HashMap::new())
        .add_bad_request_violation(invalid.field, invalid.problem.to_string());
    Status::with_error_details(Code::InvalidArgument, invalid.to_string(), details)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` wants")]
pub(crate) fn error(error: BrokerError) -> Status {
    if let BrokerError::Queue(QueueError::Invalid(wrong)) = &error {
        return invalid(wrong);
    }
    said(code(&error), error.code(), error.advice(), error.to_string())
}

/// The same for what the bus said.
pub(crate) fn bus(wrong: BusError) -> Status {
    let code = match &wrong {
        BusError::SubscriptionNotFound(_)
        | BusError::TopicNotFound(_)
        | BusError::ReplayNotFound(_)
        | BusError::EventNotFound { .. }
        | BusError::Refused { refusal: EnqueueRefusal::QueueNotFound(_), .. } => Code::NotFound,
        BusError::SubscriptionExists(_) => Code::AlreadyExists,
        BusError::TopicNotEmpty { .. } | BusError::WrongTarget { .. } => Code::FailedPrecondition,
        BusError::VersionMismatch { .. } => Code::Aborted,
        BusError::Refused { .. } | BusError::TooMany { .. } => Code::ResourceExhausted,
        BusError::Webhooks(_) | BusError::Busy => Code::Unavailable,
        BusError::Broker(_) => Code::Internal,
    };
    match wrong {
        BusError::Broker(wrong) => error(wrong),
        wrong => said(code, wrong.code(), wrong.advice(), wrong.to_string()),
    }
}

fn said(code: Code, reason: &str, advice: RetryAdvice, detail: String) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(reason, DOMAIN, HashMap::new());
    if advice == RetryAdvice::Retry {
        details.set_retry_info(Some(RETRY_AFTER));
    }
    Status::with_error_details(code, detail, details)
}

fn code(error: &BrokerError) -> Code {
    match error {
        BrokerError::Queue(error) => queue_code(error),
        BrokerError::InvalidReceipt(_) | BrokerError::KeyReused => Code::InvalidArgument,
        BrokerError::Unauthenticated(_) => Code::Unauthenticated,
        BrokerError::Forbidden { .. } | BrokerError::NotHeld { .. } => Code::PermissionDenied,
        BrokerError::Stopping | BrokerError::NoChance(_) | BrokerError::KeyIdTaken => Code::Unavailable,
        BrokerError::TooManyPolls { .. }
        | BrokerError::TooManyOperations { .. }
        | BrokerError::QuotaReached { .. }
        | BrokerError::TooManyKeys { .. } => Code::ResourceExhausted,
        BrokerError::MessageNotFound(_) | BrokerError::OperationNotFound(_) | BrokerError::KeyNotFound(_) => {
            Code::NotFound
        }
        BrokerError::OperationEnded(_)
        | BrokerError::NoBreaker(_)
        | BrokerError::QueueOfBus(_)
        | BrokerError::NotApplied { .. }
        | BrokerError::KeyEnded(_)
        | BrokerError::KeyOfEnvironment
        | BrokerError::KeysNotInUse => Code::FailedPrecondition,
    }
}

fn queue_code(error: &QueueError) -> Code {
    match error {
        QueueError::NotFound(_) => Code::NotFound,
        QueueError::AlreadyExists(_) => Code::AlreadyExists,
        QueueError::NotEmpty { .. } | QueueError::DeadLetterCycle(_) => Code::FailedPrecondition,
        QueueError::VersionMismatch { .. } => Code::Aborted,
        QueueError::TooManyQueues { .. } => Code::ResourceExhausted,
        QueueError::Invalid(_) => Code::InvalidArgument,
        QueueError::Store(error) => store_code(error),
    }
}

fn store_code(error: &StoreError) -> Code {
    match error {
        StoreError::Unavailable(_) => Code::Unavailable,
        StoreError::OutcomeUnknown(_) => Code::Unknown,
        StoreError::StorageFull | StoreError::Exhausted(_) => Code::ResourceExhausted,
        StoreError::Unsupported { .. } => Code::Unimplemented,
        StoreError::Stopped(_) => Code::Internal,
        StoreError::Damaged { .. } => Code::DataLoss,
    }
}
