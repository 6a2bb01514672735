//! The one mapping from what went wrong to HTTP.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redrive_broker::BrokerError;
use redrive_bus::BusError;
use redrive_core::invalid::Invalid;
use redrive_core::receipt::InvalidReceipt;
use redrive_store::{EnqueueRefusal, QueueError, RetryAdvice, StoreError};
use redrive_wire::{FieldProblem, Problem};
use utoipa::ToSchema;
use utoipa::openapi::{Content, RefOr, Response as Documented, ResponseBuilder};

/// Where each kind of problem is explained.
const TYPES: &str = "https://redrive.dev/problems/";
/// How long to wait before a retry, unless something says otherwise.
const RETRY_AFTER_MS: u64 = 1_000;

/// A request that was not carried out.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    detail: String,
    advice: RetryAdvice,
    errors: Vec<FieldProblem>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), advice: RetryAdvice::GiveUp, errors: Vec::new() }
    }

    /// A field of the request is wrong.
    pub(crate) fn field(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let (pointer, detail) = (pointer.into(), detail.into());
        let mut refusal =
            Self::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", format!("{pointer}: {detail}"));
        refusal.errors.push(FieldProblem { pointer, detail });
        refusal
    }

    #[must_use]
    pub(crate) fn with_advice(self, advice: RetryAdvice) -> Self {
        Self { advice, ..self }
    }

    /// The stable word, for results of single items.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn advice(&self) -> &'static str {
        advice(self.advice)
    }

    fn problem(self) -> Problem {
        Problem {
            r#type: format!("{TYPES}{}", self.code.to_ascii_lowercase()),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            code: self.code.to_owned(),
            detail: self.detail,
            advice: advice(self.advice).to_owned(),
            errors: self.errors,
            retry_after_ms: (self.advice == RetryAdvice::Retry).then_some(RETRY_AFTER_MS),
        }
    }
}

/// What a program can do about an error.
const fn advice(advice: RetryAdvice) -> &'static str {
    match advice {
        RetryAdvice::Retry => "retry",
        RetryAdvice::Ask => "ask",
        RetryAdvice::GiveUp => "give_up",
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let problem = self.problem();
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let retry_after = problem.retry_after_ms.map(|ms| ms.div_ceil(1_000));
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"redrive\""));
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::field(invalid.field, invalid.problem.to_string())
    }
}

impl From<BrokerError> for Refusal {
    fn from(error: BrokerError) -> Self {
        if let BrokerError::Queue(QueueError::Invalid(invalid)) = error {
            return invalid.into();
        }
        let (code, advice, detail) = (error.code(), error.advice(), error.to_string());
        Self { advice, ..Self::new(status(&error), code, detail) }
    }
}

impl From<BusError> for Refusal {
    fn from(error: BusError) -> Self {
        let status = match &error {
            BusError::SubscriptionNotFound(_)
            | BusError::TopicNotFound(_)
            | BusError::ReplayNotFound(_)
            | BusError::EventNotFound { .. } => StatusCode::NOT_FOUND,
            BusError::SubscriptionExists(_)
            | BusError::TopicNotEmpty { .. }
            | BusError::WrongTarget { .. } => StatusCode::CONFLICT,
            BusError::VersionMismatch { .. } => StatusCode::PRECONDITION_FAILED,
            BusError::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            BusError::Refused { refusal, .. } => enqueue_status(refusal),
            BusError::Webhooks(_) | BusError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            BusError::Broker(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        match error {
            BusError::Broker(error) => error.into(),
            error => Self::new(status, error.code(), error.to_string()).with_advice(error.advice()),
        }
    }
}

impl From<&EnqueueRefusal> for Refusal {
    fn from(refusal: &EnqueueRefusal) -> Self {
        Self::new(enqueue_status(refusal), refusal.code(), refusal.to_string()).with_advice(refusal.advice())
    }
}

fn enqueue_status(refusal: &EnqueueRefusal) -> StatusCode {
    match refusal {
        EnqueueRefusal::QueueNotFound(_) => StatusCode::NOT_FOUND,
        EnqueueRefusal::QueueFull { .. }
        | EnqueueRefusal::TooManyClasses { .. }
        | EnqueueRefusal::TooManyDedupKeys { .. } => StatusCode::TOO_MANY_REQUESTS,
    }
}

fn status(error: &BrokerError) -> StatusCode {
    match error {
        BrokerError::Queue(error) => queue_status(error),
        BrokerError::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        BrokerError::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
        BrokerError::Forbidden { .. } | BrokerError::NotHeld { .. } => StatusCode::FORBIDDEN,
        BrokerError::InvalidReceipt(_) | BrokerError::NotApplied { code: InvalidReceipt::CODE, .. } => {
            StatusCode::BAD_REQUEST
        }
        BrokerError::Stopping | BrokerError::NoChance(_) | BrokerError::KeyIdTaken => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        BrokerError::TooManyPolls { .. }
        | BrokerError::TooManyOperations { .. }
        | BrokerError::QuotaReached { .. }
        | BrokerError::TooManyKeys { .. } => StatusCode::TOO_MANY_REQUESTS,
        BrokerError::MessageNotFound(_)
        | BrokerError::OperationNotFound(_)
        | BrokerError::KeyNotFound(_)
        | BrokerError::NotApplied { code: "NOT_FOUND", .. } => StatusCode::NOT_FOUND,
        BrokerError::OperationEnded(_)
        | BrokerError::NoBreaker(_)
        | BrokerError::QueueOfBus(_)
        | BrokerError::NotApplied { .. }
        | BrokerError::KeyEnded(_)
        | BrokerError::KeyOfEnvironment
        | BrokerError::KeysNotInUse => StatusCode::CONFLICT,
    }
}

fn queue_status(error: &QueueError) -> StatusCode {
    match error {
        QueueError::NotFound(_) => StatusCode::NOT_FOUND,
        QueueError::AlreadyExists(_) | QueueError::NotEmpty { .. } | QueueError::DeadLetterCycle(_) => {
            StatusCode::CONFLICT
        }
        QueueError::VersionMismatch { .. } => StatusCode::PRECONDITION_FAILED,
        QueueError::TooManyQueues { .. } => StatusCode::TOO_MANY_REQUESTS,
        QueueError::Invalid(_) => StatusCode::BAD_REQUEST,
        QueueError::Store(error) => store_status(error),
    }
}

fn store_status(error: &StoreError) -> StatusCode {
    match error {
        StoreError::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        StoreError::Unsupported { .. } => StatusCode::NOT_IMPLEMENTED,
        StoreError::Unavailable(_)
        | StoreError::OutcomeUnknown(_)
        | StoreError::Stopped(_)
        | StoreError::Damaged { .. }
        | StoreError::Exhausted(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// How a refusal is documented, for every status that it may have.
pub(crate) struct Refusals;

impl utoipa::IntoResponses for Refusals {
    fn responses() -> std::collections::BTreeMap<String, RefOr<Documented>> {
        let documented = |description: &str| {
            let schema = RefOr::Ref(utoipa::openapi::Ref::from_schema_name(Problem::name()));
            let content = Content::new(Some(schema));
            let response = ResponseBuilder::new()
                .description(description)
                .content("application/problem+json", content)
                .build();
            RefOr::T(response)
        };
        [
            ("400", "A field is wrong; `errors` says which"),
            ("401", "An API key is needed, and this is none that works"),
            ("403", "The API key may not do that, nor may a page of another origin"),
            ("404", "There is no such thing"),
            ("405", "Not with this method"),
            ("408", "The body came too slowly"),
            ("409", "It is not in a state for that"),
            ("412", "It was changed since the caller looked"),
            ("413", "The body is too large"),
            ("415", "The body is not JSON, or is compressed"),
            ("421", "The request was meant for another host"),
            ("422", "The idempotency key was used with another message"),
            ("429", "A limit is reached"),
            ("501", "The store cannot do that"),
            ("503", "Not now, or the outcome is unknown; `advice` says which"),
            ("507", "The storage is full"),
        ]
        .into_iter()
        .map(|(status, description)| (status.to_owned(), documented(description)))
        .collect()
    }
}
