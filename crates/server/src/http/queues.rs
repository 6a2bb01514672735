//! Queues.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use redrive_broker::{Broker, NewOperation, Work};
use redrive_core::access::{Deed, On, Use};
use redrive_core::queue::{Pause, Queue, QueueName};
use redrive_core::time::Millis;
use redrive_store::{CreateQueue, DeleteQueue, Filter, PauseQueue, UpdateQueue};
use redrive_wire as wire;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::extract::{Caller, InQueue, Json, Options, Query};
use super::messages::start;
use super::problem::{Refusal, Refusals};
use super::{Api, page_cursor, page_limit};
use crate::convert;

/// A page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageQuery {
    /// How many items at most, 1 to 1,000.
    #[param(value_type = Option<wire::schema::Limit>)]
    pub(crate) limit: Option<u32>,
    /// Where the last page ended.
    pub(crate) cursor: Option<String>,
}

impl Api {
    fn queue_view(&self, queue: &Queue) -> wire::QueueView {
        convert::queue::queue_view(queue, &self.gate.config().defaults, self.gate.now())
    }

    fn queue_response(&self, status: StatusCode, queue: &Queue) -> Response {
        tagged(status, queue.version, self.queue_view(queue))
    }
}

/// An answer with the version of what it shows.
pub(crate) fn tagged(status: StatusCode, version: u64, view: impl Serialize) -> Response {
    let mut response = (status, axum::Json(view)).into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The version that the caller saw.
pub(crate) fn expected(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    if text == "*" {
        return Ok(None);
    }
    let version = text.trim_matches('"').parse();
    version.map(Some).map_err(|_| Refusal::field("If-Match", "must be the ETag of what is changed"))
}

/// Creates a queue.
#[utoipa::path(post, path = "/v1/queues", tag = "queues", operation_id = "create_queue",
    request_body = wire::CreateQueueRequest,
    responses((status = 201, description = "It is there", body = wire::QueueView), Refusals))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Json(request): Json<wire::CreateQueueRequest>,
) -> Result<Response, Refusal> {
    let config = convert::queue::config(request.config)?;
    let request = CreateQueue { name: QueueName::new(request.name)?, config };
    let queue = caller.create_queue(request).await?;
    Ok(api.queue_response(StatusCode::CREATED, &queue))
}

/// Lists queues by name.
#[utoipa::path(get, path = "/v1/queues", tag = "queues", operation_id = "list_queues", params(PageQuery),
    responses((status = 200, description = "Some queues", body = wire::QueuePage), Refusals))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::QueuePage>, Refusal> {
    let limit = page_limit(query.limit)?;
    let after = page_cursor(query.cursor)?;
    let (queues, next) = caller.list_queues(after, limit).await?;
    let next_cursor = next.map(|name| name.as_str().to_owned());
    let queues = queues.iter().map(|queue| api.queue_view(queue)).collect();
    Ok(axum::Json(wire::QueuePage { queues, next_cursor }))
}

/// A queue.
#[utoipa::path(get, path = "/v1/queues/{queue}", tag = "queues", operation_id = "get_queue",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")),
    responses((status = 200, description = "The queue", body = wire::QueueView), Refusals))]
pub(crate) async fn get(
    State(api): State<Api>,
    caller: Caller,
    InQueue(name): InQueue,
) -> Result<Response, Refusal> {
    let queue = caller.may(Use::Look, &name)?.get_queue(&name).await?;
    Ok(api.queue_response(StatusCode::OK, &queue))
}

/// Sets the configuration of a queue, as a whole. It acts on what is waiting at once.
#[utoipa::path(put, path = "/v1/queues/{queue}", tag = "queues", operation_id = "update_queue",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"),
        ("If-Match" = Option<String>, Header, description = "Only if the queue still has this ETag",
            pattern = r#"^(\*|"?[0-9]{1,19}"?)$"#)),
    request_body = wire::UpdateQueueRequest,
    responses((status = 200, description = "The queue", body = wire::QueueView), Refusals))]
pub(crate) async fn update(
    State(api): State<Api>,
    caller: Caller,
    InQueue(name): InQueue,
    headers: HeaderMap,
    Json(request): Json<wire::UpdateQueueRequest>,
) -> Result<Response, Refusal> {
    let config = convert::queue::config(request.config)?;
    let update = UpdateQueue { name, config, expected: expected(&headers)? };
    let queue = caller.update_queue(update).await?;
    Ok(api.queue_response(StatusCode::OK, &queue))
}

/// Whether what is there goes, too.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForceQuery {
    /// With everything in it, leased messages too.
    #[serde(default)]
    pub(crate) force: bool,
}

/// Deletes a queue.
#[utoipa::path(delete, path = "/v1/queues/{queue}", tag = "queues", operation_id = "delete_queue",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ForceQuery),
    responses((status = 204, description = "It is gone"), Refusals))]
pub(crate) async fn delete(
    caller: Caller,
    InQueue(name): InQueue,
    Query(query): Query<ForceQuery>,
) -> Result<StatusCode, Refusal> {
    let request = DeleteQueue { name: name.clone(), force: query.force };
    caller.act(Deed::DeleteQueue, &name, async |broker| broker.delete_queue(request).await).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn pause_of(api: &Api, request: &wire::PauseRequest) -> Result<Pause, Refusal> {
    match (request.until, request.for_ms) {
        (Some(_), Some(_)) => Err(Refusal::field("/for_ms", "a span and a time must not both be given")),
        (Some(until), None) => Ok(Pause::Until(convert::timestamp(until))),
        (None, Some(ms)) => Ok(Pause::Until(api.gate.now().plus(Millis::new(ms)))),
        (None, None) => Ok(Pause::UntilResumed),
    }
}

/// Pauses a queue, or one fairness key of it: nothing of it is handed out.
#[utoipa::path(post, path = "/v1/queues/{queue}/pause", tag = "queues", operation_id = "pause_queue",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = Option<wire::PauseRequest>,
    responses((status = 200, description = "The queue", body = wire::QueueView), Refusals))]
pub(crate) async fn pause(
    State(api): State<Api>,
    caller: Caller,
    InQueue(name): InQueue,
    Options(request): Options<wire::PauseRequest>,
) -> Result<Response, Refusal> {
    let pause = Some(pause_of(&api, &request)?);
    let key = request.key.map(|key| key.parse()).transpose()?;
    let request = PauseQueue { name: name.clone(), key, pause };
    let queue = caller.act(Deed::PauseQueue, &name, async |broker| broker.pause_queue(request).await).await?;
    Ok(api.queue_response(StatusCode::OK, &queue))
}

/// Ends a pause.
#[utoipa::path(post, path = "/v1/queues/{queue}/resume", tag = "queues", operation_id = "resume_queue",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = Option<wire::ResumeRequest>,
    responses((status = 200, description = "The queue", body = wire::QueueView), Refusals))]
pub(crate) async fn resume(
    State(api): State<Api>,
    caller: Caller,
    InQueue(name): InQueue,
    Options(request): Options<wire::ResumeRequest>,
) -> Result<Response, Refusal> {
    let key = request.key.map(|key| key.parse()).transpose()?;
    let request = PauseQueue { name: name.clone(), key, pause: None };
    let queue =
        caller.act(Deed::ResumeQueue, &name, async |broker| broker.pause_queue(request).await).await?;
    Ok(api.queue_response(StatusCode::OK, &queue))
}

/// Sets how many messages each fairness key is served in its turn. It acts on the backlog at once.
#[utoipa::path(put, path = "/v1/queues/{queue}/weights", tag = "queues", operation_id = "set_weights",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = wire::schema::Weights,
    responses((status = 200, description = "The queue", body = wire::QueueView), Refusals))]
pub(crate) async fn set_weights(
    State(api): State<Api>,
    caller: Caller,
    InQueue(name): InQueue,
    Json(weights): Json<wire::KeyWeights>,
) -> Result<Response, Refusal> {
    let weights = convert::queue::weights(weights)?;
    let set = async |broker: Broker| broker.set_weights(name.clone(), weights).await;
    let queue = caller.act(Deed::SetWeights, &name, set).await?;
    Ok(api.queue_response(StatusCode::OK, &queue))
}

/// Discards everything in a queue, as an operation; a dry run counts it.
#[utoipa::path(post, path = "/v1/queues/{queue}/purge", tag = "queues", operation_id = "purge_queue",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = wire::PurgeRequest,
    responses((status = 200, description = "How much there is", body = wire::Matched),
        (status = 202, description = "It has begun", body = wire::OperationView), Refusals))]
pub(crate) async fn purge(
    caller: Caller,
    InQueue(queue): InQueue,
    Json(request): Json<wire::PurgeRequest>,
) -> Result<Response, Refusal> {
    let work = Work::Discard { force: request.force };
    let new = NewOperation { queue, filter: Filter::default(), work, rate: None };
    start(&caller, Deed::PurgeQueue, new, request.dry_run).await
}

/// A queue at this moment.
#[utoipa::path(get, path = "/v1/queues/{queue}/stats", tag = "queues", operation_id = "queue_stats",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")),
    responses((status = 200, description = "Its numbers", body = wire::QueueStats), Refusals))]
pub(crate) async fn stats(
    caller: Caller,
    InQueue(name): InQueue,
) -> Result<axum::Json<wire::QueueStats>, Refusal> {
    let stats = caller.may(Use::Look, &name)?.stats(&name).await?;
    Ok(axum::Json(convert::queue::stats(&stats)))
}

/// How full a queue was and how fast it went.
#[utoipa::path(get, path = "/v1/queues/{queue}/history", tag = "queues", operation_id = "queue_history",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")),
    responses((status = 200, description = "Its samples", body = wire::History), Refusals))]
pub(crate) async fn history(
    State(api): State<Api>,
    caller: Caller,
    InQueue(name): InQueue,
) -> Result<axum::Json<wire::History>, Refusal> {
    let samples = caller.may(Use::Look, &name)?.history(&name).await?;
    let interval_ms = api.gate.config().history_interval.get();
    let samples = samples.iter().map(convert::queue::sample).collect();
    Ok(axum::Json(wire::History { interval_ms, samples }))
}

/// The breaker of a queue.
#[utoipa::path(get, path = "/v1/queues/{queue}/breaker", tag = "queues", operation_id = "queue_breaker",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")),
    responses((status = 200, description = "Its breaker", body = wire::BreakerStatus), Refusals))]
pub(crate) async fn breaker(
    caller: Caller,
    InQueue(name): InQueue,
) -> Result<axum::Json<wire::BreakerStatus>, Refusal> {
    let view = caller.may(Use::Look, &name)?.breaker(&name).await?;
    let view = view.ok_or_else(|| Refusal::from(redrive_broker::BrokerError::NoBreaker(name)))?;
    Ok(axum::Json(convert::queue::breaker_status(&view)))
}

/// Opens the breaker of a queue.
#[utoipa::path(post, path = "/v1/queues/{queue}/breaker/trip", tag = "queues", operation_id = "trip_breaker",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")),
    responses((status = 204, description = "It is open"), Refusals))]
pub(crate) async fn trip_breaker(caller: Caller, InQueue(name): InQueue) -> Result<StatusCode, Refusal> {
    caller.act(Deed::TripBreaker, &name, async |broker| broker.set_breaker(&name, true).await).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Closes the breaker of a queue; it starts with one message in flight.
#[utoipa::path(post, path = "/v1/queues/{queue}/breaker/reset", tag = "queues", operation_id = "reset_breaker",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")),
    responses((status = 204, description = "It is closed"), Refusals))]
pub(crate) async fn reset_breaker(caller: Caller, InQueue(name): InQueue) -> Result<StatusCode, Refusal> {
    caller.act(Deed::ResetBreaker, &name, async |broker| broker.set_breaker(&name, false).await).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Every breaker that there is, by queue.
#[utoipa::path(get, path = "/v1/breakers", tag = "queues", operation_id = "list_breakers", params(PageQuery),
    responses((status = 200, description = "Some breakers", body = wire::BreakerPage), Refusals))]
pub(crate) async fn breakers(
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::BreakerPage>, Refusal> {
    let limit = page_limit(query.limit)?;
    let (breakers, next) = caller.breakers(page_cursor(query.cursor)?, limit).await?;
    let breakers = breakers.iter().map(convert::subscription::of_queue).collect();
    Ok(axum::Json(wire::BreakerPage { breakers, next_cursor: next.map(|name| name.as_str().to_owned()) }))
}

/// What a retry policy comes to: when each retry comes, until it gives up.
#[utoipa::path(post, path = "/v1/retry_schedule", tag = "queues", operation_id = "retry_schedule",
    request_body = Option<wire::RetryScheduleRequest>,
    responses((status = 200, description = "The retries", body = wire::RetrySchedule), Refusals))]
pub(crate) async fn retry_schedule(
    State(api): State<Api>,
    _: Caller,
    Options(request): Options<wire::RetryScheduleRequest>,
) -> Result<axum::Json<wire::RetrySchedule>, Refusal> {
    let policy = convert::queue::retry(&request.retry)?.over(api.gate.config().defaults.retry);
    Ok(axum::Json(convert::queue::schedule(&policy, request.count)?))
}

/// How retries went since the server started, by message type.
#[utoipa::path(get, path = "/v1/types", tag = "messages", operation_id = "type_stats",
    responses((status = 200, description = "One row for each type", body = wire::TypeStats), Refusals))]
pub(crate) async fn types(caller: Caller) -> Result<axum::Json<wire::TypeStats>, Refusal> {
    let retries = caller.may(Use::Measure, On::Every)?.retries();
    let types = retries.into_iter().map(convert::queue::retries).collect();
    Ok(axum::Json(wire::TypeStats { types }))
}
