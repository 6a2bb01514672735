//! Topics: what is set for them, and events that are published on them.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use redrive_bus::cloudevents::{self, BATCH_MEDIA_TYPE, MEDIA_TYPE};
use redrive_bus::{Bus, NewEvent};
use redrive_core::access::Deed;
use redrive_core::topic::TopicPattern;
use redrive_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Caller, IdempotencyKey, Json, OfTopic, OnTopics, Query, Traced, essence, parse, whole};
use super::problem::{Refusal, Refusals};
use super::queues::{PageQuery, expected, tagged};
use super::{Api, page_cursor, page_limit};
use crate::convert;

/// The header that says that the others carry the attributes of an event.
const BINARY: &str = "ce-specversion";

/// Events, however they were written.
pub(crate) enum Events {
    /// As this API has them.
    Own(Vec<NewEvent>),
    /// As CloudEvents.
    Cloud(Vec<NewEvent>),
}

impl FromRequest<Api> for Events {
    type Rejection = Refusal;

    async fn from_request(request: Request, api: &Api) -> Result<Self, Refusal> {
        let kind = essence(request.headers());
        let max = api.body_bytes_max;
        if kind == MEDIA_TYPE {
            return Ok(Self::Cloud(vec![cloudevents::structured(&whole(request, api).await?, max)?]));
        }
        if kind == BATCH_MEDIA_TYPE {
            return Ok(Self::Cloud(cloudevents::batch(&whole(request, api).await?, max)?));
        }
        if request.headers().contains_key(BINARY) {
            let headers = request.headers().clone();
            return Ok(Self::Cloud(vec![binary(&headers, whole(request, api).await?, max)?]));
        }
        if !matches!(kind.as_str(), "" | "application/json") {
            let detail = "the body must be application/json, or CloudEvents in one of their formats";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", detail));
        }
        let request: wire::PublishRequest = parse(&whole(request, api).await?)?;
        let read = |(at, event): (usize, wire::NewEvent)| {
            convert::topic::new_event(event, max).map_err(|wrong| {
                Refusal::field(format!("/events/{at}/{}", wrong.field), wrong.problem.to_string())
            })
        };
        Ok(Self::Own(request.events.into_iter().enumerate().map(read).collect::<Result<_, _>>()?))
    }
}

/// An event whose attributes are headers, and whose data is the body.
fn binary(headers: &HeaderMap, body: Bytes, body_bytes_max: usize) -> Result<NewEvent, Refusal> {
    let mut attributes = Vec::new();
    for (name, value) in headers {
        let Some(attribute) = name.as_str().strip_prefix("ce-") else { continue };
        let value = value.to_str().map_err(|_| Refusal::field(name.as_str(), "must be printable ASCII"))?;
        attributes.push((attribute, value));
    }
    let content_type = match headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) {
        None => None,
        Some(Ok(text)) => Some(text),
        Some(Err(_)) => return Err(Refusal::field("Content-Type", "must be printable ASCII")),
    };
    Ok(cloudevents::binary(attributes, content_type, body, body_bytes_max)?)
}

impl Events {
    /// The events, where the key under which the call may be repeated is that of the only one.
    fn under(self, key: IdempotencyKey) -> Result<Vec<NewEvent>, Refusal> {
        let wrong = |problem| Err(Refusal::field("Idempotency-Key", problem));
        let (own, mut events) = match self {
            Self::Own(events) => (true, events),
            Self::Cloud(events) => (false, events),
        };
        let Some(key) = key.0 else { return Ok(events) };
        match events.as_mut_slice() {
            // A CloudEvent always has one, which its publisher need not know.
            [event] if own && event.dedup_key.is_some() => wrong("a dedup_key must not be given with it"),
            [event] => {
                event.dedup_key = Some(key);
                Ok(events)
            }
            _ => wrong("it is for one event, and there are others beside it"),
        }
    }
}

/// Publishes events. Each is on the disk for every subscription that wants it, or for none, before this answers.
///
/// Beside this API's own JSON, CloudEvents 1.0 are taken: one as `application/cloudevents+json`, several as
/// `application/cloudevents-batch+json`, and one whose attributes are `ce-` headers and whose data is the body.
#[utoipa::path(post, path = "/v1/topics/{topic}/events", tag = "topics", operation_id = "publish",
    params(("topic" = wire::schema::Topic, Path, description = "The topic"),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256, pattern = "^[!-~]([ -~]*[!-~])?$",
            description = "The key that keeps the only event from being published twice")),
    request_body = wire::PublishRequest,
    responses((status = 200, description = "One result for each", body = wire::PublishResults), Refusals))]
pub(crate) async fn publish(
    State(api): State<Api>,
    caller: Caller,
    OfTopic(topic): OfTopic,
    key: IdempotencyKey,
    Traced(trace): Traced,
    events: Events,
) -> Result<axum::Json<wire::PublishResults>, Refusal> {
    let mut events = events.under(key)?;
    for event in &mut events {
        event.request = trace;
    }
    let outcomes = api.bus.publish(&caller, &topic, events).await?;
    let results = outcomes.into_iter().map(|one| match one {
        Ok(published) => convert::topic::published(published),
        Err(error) => {
            let refusal = Refusal::from(error);
            wire::PublishResult {
                code: Some(refusal.code().to_owned()),
                detail: Some(refusal.detail().to_owned()),
                advice: Some(refusal.advice().to_owned()),
                ..wire::PublishResult::default()
            }
        }
    });
    Ok(axum::Json(wire::PublishResults { results: results.collect() }))
}

/// Lists what is set for topics, by pattern.
#[utoipa::path(get, path = "/v1/topics", tag = "topics", operation_id = "list_topics", params(PageQuery),
    responses((status = 200, description = "Some of it", body = wire::TopicPage), Refusals))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::TopicPage>, Refusal> {
    let limit = page_limit(query.limit)?;
    let after: Option<TopicPattern> = page_cursor(query.cursor)?;
    let (topics, next) = api.bus.topics(&caller, after.as_ref(), limit).await?;
    let topics = topics.iter().map(convert::topic::view).collect();
    Ok(axum::Json(wire::TopicPage { topics, next_cursor: next.map(|pattern| pattern.as_str().to_owned()) }))
}

/// What is set for the topics of a pattern.
#[utoipa::path(get, path = "/v1/topics/{pattern}", tag = "topics", operation_id = "get_topic",
    params(("pattern" = wire::schema::TopicPattern, Path, description = "Which topics")),
    responses((status = 200, description = "What is set", body = wire::TopicView), Refusals))]
pub(crate) async fn get(
    State(api): State<Api>,
    caller: Caller,
    OnTopics(pattern): OnTopics,
) -> Result<Response, Refusal> {
    let settings = api.bus.topic(&caller, &pattern).await?;
    Ok(tagged(StatusCode::OK, settings.version, convert::topic::view(&settings)))
}

/// Sets how events of some topics are dispatched and kept, as a whole.
#[utoipa::path(put, path = "/v1/topics/{pattern}", tag = "topics", operation_id = "set_topic",
    params(("pattern" = wire::schema::TopicPattern, Path, description = "Which topics"),
        ("If-Match" = Option<String>, Header, description = "Only if it still has this ETag",
            pattern = r#"^(\*|"?[0-9]{1,19}"?)$"#)),
    request_body = wire::SetTopicRequest,
    responses((status = 200, description = "What is set", body = wire::TopicView), Refusals))]
pub(crate) async fn set(
    State(api): State<Api>,
    caller: Caller,
    OnTopics(pattern): OnTopics,
    headers: HeaderMap,
    Json(request): Json<wire::SetTopicRequest>,
) -> Result<Response, Refusal> {
    let config = convert::topic::config(pattern, request.dispatch.as_deref(), request.retain_ms)?;
    let settings = api.bus.set_topic(&caller, config, expected(&headers)?).await?;
    Ok(tagged(StatusCode::OK, settings.version, convert::topic::view(&settings)))
}

/// Whether events that wait go, too.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForgetQuery {
    /// With the events that wait for their handlers.
    #[serde(default)]
    force: bool,
}

/// Forgets what is set for the topics of a pattern, and the events that were kept for replays.
#[utoipa::path(delete, path = "/v1/topics/{pattern}", tag = "topics", operation_id = "delete_topic",
    params(("pattern" = wire::schema::TopicPattern, Path, description = "Which topics"), ForgetQuery),
    responses((status = 204, description = "Nothing is set for them"), Refusals))]
pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    OnTopics(pattern): OnTopics,
    Query(query): Query<ForgetQuery>,
) -> Result<StatusCode, Refusal> {
    let delete = async |bus: Bus| bus.delete_topic(&pattern, query.force).await;
    api.bus.act(&caller, Deed::DeleteTopic, &pattern, delete).await?;
    Ok(StatusCode::NO_CONTENT)
}
