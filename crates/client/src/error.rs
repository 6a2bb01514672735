//! What can go wrong: a struct for each fact, an enum for each operation, and for all of them an answer to "may I try
//! again?".

use std::time::Duration;

use thiserror::Error;
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// No connection to the server. Nothing happened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the server cannot be reached: {detail}")]
pub struct Unreachable {
    /// Why.
    pub detail: String,
}

/// The call was sent and its answer was lost: it may have happened. Look before you repeat it, or repeat what is safe to
/// repeat: a settlement with the same receipt, an enqueue under the same id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the outcome is unknown: {detail}")]
pub struct OutcomeUnknown {
    /// How the answer was lost.
    pub detail: String,
}

/// The server wants an API key, or another one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct Unauthenticated {
    /// What the server says.
    pub detail: String,
}

/// The API key may not do that.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct Forbidden {
    /// What the server says.
    pub detail: String,
}

/// A field of the request is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct InvalidRequest {
    /// Which field; empty where it is none in particular.
    pub field: String,
    /// What is wrong with it.
    pub detail: String,
}

/// The server said no, for a reason of its own.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct Refused {
    /// The stable word for it, such as `STORAGE_FULL`; empty where the server has none.
    pub code: String,
    /// The same for a person.
    pub detail: String,
    /// When the same call may work, if it may.
    pub retry_after: Option<Duration>,
}

/// There is no queue of that name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct QueueNotFound {
    /// What the server says.
    pub detail: String,
}

/// One message was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{detail}")]
pub struct Rejected {
    /// The stable word for it, such as `QUEUE_FULL`.
    pub code: String,
    /// The same for a person.
    pub detail: String,
    /// Whether it may be taken later.
    pub retryable: bool,
}

/// The message is there, but this lease of it is not current any more. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the lease is lost: the message was handed out again, or settled by somebody else")]
pub struct LeaseLost;

/// The message is not there any more: it was settled, or discarded. A repeated ack gets this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("there is no such message any more")]
pub struct NoSuchLease;

/// Why any call may fail.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CallError {
    /// No connection to the server. Nothing happened.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The answer was lost: it may have happened.
    #[error(transparent)]
    OutcomeUnknown(#[from] OutcomeUnknown),
    /// The server wants an API key, or another one.
    #[error(transparent)]
    Unauthenticated(#[from] Unauthenticated),
    /// The API key may not do that.
    #[error(transparent)]
    Forbidden(#[from] Forbidden),
    /// A field of the request is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// The server said no, for a reason of its own.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl CallError {
    /// Whether nothing happened and the same call may work later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable(_) => true,
            Self::Refused(refused) => refused.retry_after.is_some(),
            Self::OutcomeUnknown(_) | Self::Unauthenticated(_) | Self::Forbidden(_) | Self::Invalid(_) => {
                false
            }
        }
    }

    /// Whether it may have happened.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_))
    }

    /// The stable word for it.
    pub fn code(&self) -> &str {
        match self {
            Self::Unreachable(_) => "UNREACHABLE",
            Self::OutcomeUnknown(_) => "OUTCOME_UNKNOWN",
            Self::Unauthenticated(_) => "UNAUTHENTICATED",
            Self::Forbidden(_) => "FORBIDDEN",
            Self::Invalid(_) => "INVALID_ARGUMENT",
            Self::Refused(refused) => &refused.code,
        }
    }
}

/// The enums of operations answer as the call underneath does, and never for a fact of their own.
macro_rules! operation {
    ($name:ident) => {
        impl $name {
            /// Whether nothing happened and the same call may work later.
            pub fn is_retryable(&self) -> bool {
                matches!(self, Self::Call(error) if error.is_retryable())
            }

            /// Whether it may have happened.
            pub fn is_outcome_unknown(&self) -> bool {
                matches!(self, Self::Call(error) if error.is_outcome_unknown())
            }
        }
    };
}

/// Why messages were not enqueued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EnqueueError {
    /// There is no such queue, and the server makes none by itself.
    #[error(transparent)]
    QueueNotFound(#[from] QueueNotFound),
    /// The message was not taken.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The body is no JSON that can be written.
    #[error("the body cannot be written as JSON: {0}")]
    Body(String),
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}

impl EnqueueError {
    /// Whether nothing happened and the same call may work later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Rejected(rejected) => rejected.retryable,
            Self::Call(error) => error.is_retryable(),
            Self::QueueNotFound(_) | Self::Body(_) => false,
        }
    }

    /// Whether it may have happened.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_outcome_unknown())
    }
}

/// Why nothing was leased.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeaseError {
    /// There is no such queue.
    #[error(transparent)]
    QueueNotFound(#[from] QueueNotFound),
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}
operation!(LeaseError);

/// Why something was not settled.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SettleError {
    /// The lease is not current any more.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The message is not there any more.
    #[error(transparent)]
    NotFound(#[from] NoSuchLease),
    /// The receipt is none of this server's.
    #[error("the receipt is none of this server's")]
    InvalidReceipt,
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}
operation!(SettleError);

/// Why something about a queue was not done.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum QueueError {
    /// There is no such queue.
    #[error(transparent)]
    NotFound(#[from] QueueNotFound),
    /// There is a queue of that name already.
    #[error("{0}")]
    AlreadyExists(String),
    /// The queue still has messages.
    #[error("{0}")]
    NotEmpty(String),
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
}
operation!(QueueError);

/// Why a client could not be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The address is none.
    #[error("url: {0}")]
    Url(String),
    /// The API key cannot be sent.
    #[error("token: it has characters that no API key has")]
    Token,
    /// The certificate of the authority is none, or it is not for an address with `https://`.
    #[error("ca: {0}")]
    Ca(String),
}

/// The stable word that the server gave.
fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

/// Whether no connection was made.
fn was_not_sent(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The cause at the bottom says most.
fn told(status: &Status) -> String {
    let mut cause: &dyn std::error::Error = status;
    while let Some(below) = cause.source() {
        cause = below;
    }
    if std::ptr::addr_eq(cause, status) { status.message().to_owned() } else { cause.to_string() }
}

impl From<Status> for CallError {
    fn from(status: Status) -> Self {
        let (code, detail) = (reason(&status), status.message().to_owned());
        if code.is_empty() && was_not_sent(&status) {
            return Unreachable { detail: told(&status) }.into();
        }
        match status.code() {
            Code::Unauthenticated => Unauthenticated { detail }.into(),
            Code::PermissionDenied => Forbidden { detail }.into(),
            Code::InvalidArgument => {
                let wrong = status.get_details_bad_request();
                let field = wrong.and_then(|wrong| wrong.field_violations.into_iter().next());
                let field = field.map(|wrong| wrong.field);
                InvalidRequest { field: field.unwrap_or_default(), detail }.into()
            }
            Code::Unknown | Code::Unavailable | Code::Cancelled | Code::Internal | Code::DeadlineExceeded
                if code.is_empty() || code == "OUTCOME_UNKNOWN" =>
            {
                OutcomeUnknown { detail: told(&status) }.into()
            }
            _ => {
                let retry_after = status.get_details_retry_info().and_then(|info| info.retry_delay);
                Refused { code, detail, retry_after }.into()
            }
        }
    }
}

fn missing(status: &Status) -> Option<QueueNotFound> {
    (reason(status) == "QUEUE_NOT_FOUND").then(|| QueueNotFound { detail: status.message().to_owned() })
}

impl From<Status> for EnqueueError {
    fn from(status: Status) -> Self {
        missing(&status).map_or_else(|| Self::Call(status.into()), Self::QueueNotFound)
    }
}

impl From<Status> for LeaseError {
    fn from(status: Status) -> Self {
        missing(&status).map_or_else(|| Self::Call(status.into()), Self::QueueNotFound)
    }
}

impl From<Status> for SettleError {
    fn from(status: Status) -> Self {
        Self::Call(status.into())
    }
}

impl From<Status> for QueueError {
    fn from(status: Status) -> Self {
        if let Some(missing) = missing(&status) {
            return missing.into();
        }
        match reason(&status).as_str() {
            "QUEUE_EXISTS" => Self::AlreadyExists(status.message().to_owned()),
            "QUEUE_NOT_EMPTY" => Self::NotEmpty(status.message().to_owned()),
            _ => Self::Call(status.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tonic_types::ErrorDetails;

    use super::*;

    fn status(code: Code, reason: &str, retry: bool) -> Status {
        let mut details = ErrorDetails::new();
        details.set_error_info(reason, "redrive", HashMap::new());
        if retry {
            details.set_retry_info(Some(Duration::from_secs(1)));
        }
        Status::with_error_details(code, "said", details)
    }

    #[test]
    fn a_lost_answer_is_not_a_failure() {
        for lost in [Status::unavailable("broken pipe"), status(Code::Unknown, "OUTCOME_UNKNOWN", false)] {
            let error = CallError::from(lost);
            assert!(error.is_outcome_unknown() && !error.is_retryable(), "{error:?}");
            assert_eq!(error.code(), "OUTCOME_UNKNOWN");
        }
    }

    #[test]
    fn the_server_says_whether_a_retry_helps() {
        let full = CallError::from(status(Code::ResourceExhausted, "STORAGE_FULL", true));
        assert!(full.is_retryable());
        assert_eq!(full.code(), "STORAGE_FULL");
        assert!(!CallError::from(status(Code::Internal, "STORE_STOPPED", false)).is_retryable());
        assert!(CallError::from(status(Code::Unavailable, "SHUTTING_DOWN", true)).is_retryable());
    }

    #[test]
    fn facts_of_an_operation_have_variants_of_their_own() {
        let missing = || status(Code::NotFound, "QUEUE_NOT_FOUND", false);
        assert!(matches!(EnqueueError::from(missing()), EnqueueError::QueueNotFound(_)));
        assert!(matches!(LeaseError::from(missing()), LeaseError::QueueNotFound(_)));
        let exists = status(Code::AlreadyExists, "QUEUE_EXISTS", false);
        assert!(matches!(QueueError::from(exists), QueueError::AlreadyExists(_)));
    }
}
