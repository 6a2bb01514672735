//! What comes in: hostile until it is parsed, and refused by name.

use std::ops::Deref;

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use redrive_broker::TraceParent;
use redrive_core::invalid::Invalid;
use redrive_core::message::{DedupKey, MessageId};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Millis;
use redrive_core::topic::{Topic, TopicPattern};
use redrive_store::RetryAdvice;
use redrive_wire::Object;
use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::Api;
use super::problem::Refusal;
use crate::listen::is_too_slow;

/// Who makes the request. It comes before the body, which nobody reads for a stranger.
pub(crate) struct Caller(redrive_broker::Caller);

impl Deref for Caller {
    type Target = redrive_broker::Caller;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        Ok(Self(crate::caller(&api.gate, &parts.headers, &parts.extensions)?))
    }
}

/// Who wants to be told what happens, be it without a key.
pub(crate) struct Watcher(pub(crate) redrive_broker::Watcher);

impl FromRequestParts<Api> for Watcher {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Refusal> {
        Ok(Self(crate::watcher(&api.gate, &parts.headers, &parts.extensions)?))
    }
}

/// A body that is an object of JSON.
pub(crate) struct Json<T>(pub(crate) T);

/// The same where everything has a default: no body is an empty object.
pub(crate) struct Options<T>(pub(crate) T);

async fn read<S: Send + Sync, T: DeserializeOwned>(
    request: Request,
    state: &S,
    empty: &'static [u8],
) -> Result<T, Refusal> {
    check_type(&request)?;
    let bytes = whole(request, state).await?;
    parse(if bytes.is_empty() { empty } else { &bytes })
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Options<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        read(request, state, b"{}").await.map(Self)
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Json<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        read(request, state, b"").await.map(Self)
    }
}

/// The body as it is, where it is not too large.
pub(crate) async fn whole<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Refusal> {
    check_length(&request)?;
    Bytes::from_request(request, state).await.map_err(|error| unread(&error))
}

/// What the body is, in small letters and without parameters.
pub(crate) fn essence(headers: &HeaderMap) -> String {
    let content_type = headers.get(header::CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?"));
    content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn check_type(request: &Request) -> Result<(), Refusal> {
    if !request.headers().contains_key(header::CONTENT_TYPE) {
        return Ok(());
    }
    let essence = essence(request.headers());
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    let detail = "the body must be application/json";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail))
}

/// Refuses a body that says itself that it is too large, before any of it is read.
fn check_length(request: &Request) -> Result<(), Refusal> {
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > super::BODY_BYTES_MAX) { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> Refusal {
    let detail = format!("the body is larger than {} bytes", super::BODY_BYTES_MAX);
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "BODY_TOO_LARGE", detail)
}

fn unread(error: &BytesRejection) -> Refusal {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE { too_large() } else { broken(error) }
}

/// The refusal of a body that could not be read to its end.
pub(crate) fn broken(error: &(dyn std::error::Error + 'static)) -> Refusal {
    if is_too_slow(error) {
        let detail = "the body came more slowly than 1024 bytes a second";
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "TOO_SLOW", detail).with_advice(RetryAdvice::Retry)
    } else {
        Refusal::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", "the body ended too early")
    }
}

/// Reads an object of JSON, and says where it is wrong.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    match serde_json::from_slice(bytes) {
        Ok(Object(value)) => Ok(value),
        Err(error) => Err(misplaced::<T>(bytes).unwrap_or_else(|| Refusal::field("", error.to_string()))),
    }
}

/// Where the first mistake is. To keep track of that costs more than to read, so it is done only where there is one.
fn misplaced<T: DeserializeOwned>(bytes: &[u8]) -> Option<Refusal> {
    let mut from = serde_json::Deserializer::from_slice(bytes);
    let read: Result<Object<T>, _> = serde_path_to_error::deserialize(&mut from);
    let error = read.err()?;
    Some(Refusal::field(pointer(error.path()), error.inner().to_string()))
}

/// A path as a JSON pointer, as far as it is known.
fn pointer(path: &serde_path_to_error::Path) -> String {
    let segments = path.iter().map_while(|segment| match segment {
        Segment::Seq { index } => Some(format!("/{index}")),
        Segment::Map { key } | Segment::Enum { variant: key } => {
            Some(format!("/{}", key.replace('~', "~0").replace('/', "~1")))
        }
        Segment::Unknown => None,
    });
    segments.collect()
}

/// The parameters behind the question mark.
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let query = axum::extract::Query::<T>::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|error| {
            let detail = error.body_text();
            let detail = detail.strip_prefix("Failed to deserialize query string: ").unwrap_or(&detail);
            Refusal::field("query", detail)
        })
    }
}

async fn path_param<S: Send + Sync>(parts: &mut Parts, state: &S, name: &str) -> Result<String, Refusal> {
    let params = RawPathParams::from_request_parts(parts, state)
        .await
        .map_err(|_| Refusal::field(name, "must be UTF-8"))?;
    let value = params.iter().find(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
    value.ok_or_else(|| Refusal::field(name, "is missing"))
}

/// The queue that the path names.
pub(crate) struct InQueue(pub(crate) QueueName);

impl<S: Send + Sync> FromRequestParts<S> for InQueue {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let name = path_param(parts, state, "queue").await?;
        Ok(Self(QueueName::new(name)?))
    }
}

/// The message that the path names.
pub(crate) struct OfMessage(pub(crate) QueueName, pub(crate) MessageId);

impl<S: Send + Sync> FromRequestParts<S> for OfMessage {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let InQueue(queue) = InQueue::from_request_parts(parts, state).await?;
        let id = path_param(parts, state, "id").await?.parse()?;
        Ok(Self(queue, id))
    }
}

/// The topic that the path names.
pub(crate) struct OfTopic(pub(crate) Topic);

impl<S: Send + Sync> FromRequestParts<S> for OfTopic {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(path_param(parts, state, "topic").await?.parse()?))
    }
}

/// The topics that the path names.
pub(crate) struct OnTopics(pub(crate) TopicPattern);

impl<S: Send + Sync> FromRequestParts<S> for OnTopics {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(path_param(parts, state, "pattern").await?.parse()?))
    }
}

/// The subscription that the path names.
pub(crate) struct OfSubscription(pub(crate) SubscriptionId);

impl<S: Send + Sync> FromRequestParts<S> for OfSubscription {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(path_param(parts, state, "id").await?.parse()?))
    }
}

/// The replay that the path names, and the subscription that it is for.
pub(crate) struct OfReplay(pub(crate) SubscriptionId, pub(crate) MessageId);

impl<S: Send + Sync> FromRequestParts<S> for OfReplay {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let OfSubscription(id) = OfSubscription::from_request_parts(parts, state).await?;
        let replay = path_param(parts, state, "replay").await?.parse();
        Ok(Self(id, replay.map_err(|wrong| Invalid { field: "replay", ..wrong })?))
    }
}

/// The operation that the path names.
pub(crate) struct OfOperation(pub(crate) redrive_broker::OperationId);

impl<S: Send + Sync> FromRequestParts<S> for OfOperation {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(path_param(parts, state, "id").await?.parse()?))
    }
}

/// The API key that the path names.
pub(crate) struct OfKey(pub(crate) redrive_core::access::KeyId);

impl<S: Send + Sync> FromRequestParts<S> for OfKey {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        Ok(Self(path_param(parts, state, "id").await?.parse()?))
    }
}

/// How long `Prefer: wait=20` asks to wait.
pub(crate) struct PreferredWait(pub(crate) Option<Millis>);

impl<S: Send + Sync> FromRequestParts<S> for PreferredWait {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let values = parts.headers.get_all("prefer").into_iter().filter_map(|value| value.to_str().ok());
        let mut preferences = values.flat_map(|value| value.split(','));
        let seconds =
            preferences.find_map(|preference| preference.trim().strip_prefix("wait=")?.parse().ok());
        Ok(Self(seconds.map(Millis::from_secs)))
    }
}

/// The key under which a call may be repeated.
pub(crate) struct IdempotencyKey(pub(crate) Option<DedupKey>);

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        const NAME: &str = "Idempotency-Key";
        let Some(value) = parts.headers.get(NAME) else {
            return Ok(Self(None));
        };
        let text = value.to_str().map_err(|_| Refusal::field(NAME, "must be printable ASCII"))?;
        let key = DedupKey::new(text).map_err(|invalid| Refusal::field(NAME, invalid.problem.to_string()))?;
        Ok(Self(Some(key)))
    }
}

/// The trace that the request is part of.
pub(crate) struct Traced(pub(crate) Option<TraceParent>);

impl<S: Send + Sync> FromRequestParts<S> for Traced {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        Ok(Self(crate::convert::trace_parent(&parts.headers)))
    }
}
