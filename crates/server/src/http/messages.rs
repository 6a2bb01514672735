//! Messages: in, and what an operator does to them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use redrive_broker::{Broker, BrokerError, NewMessage, NewOperation, Work};
use redrive_core::access::{Deed, Use};
use redrive_core::queue::QueueName;
use redrive_store::{EnqueueOutcome, Filter, ListRequest, Selection};
use redrive_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Caller, IdempotencyKey, InQueue, Json, OfMessage, Query, Traced};
use super::problem::{Refusal, Refusals};
use super::queues::ForceQuery;
use super::{Api, listed, page_cursor, page_limit};
use crate::convert;

/// What of a queue is listed. Lists are divided by commas.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// In one of these states.
    #[param(value_type = Option<Vec<wire::schema::State>>, style = Form, explode = false, min_items = 1, max_items = 100)]
    state: Option<String>,
    /// One of these ids.
    #[param(value_type = Option<Vec<wire::schema::MessageId>>, style = Form, explode = false, min_items = 1, max_items = 100)]
    id: Option<String>,
    /// Of one of these types.
    #[param(value_type = Option<Vec<wire::schema::Class>>, style = Form, explode = false, min_items = 1, max_items = 100)]
    r#type: Option<String>,
    /// From one of these sources.
    #[param(value_type = Option<Vec<wire::schema::Class>>, style = Form, explode = false, min_items = 1, max_items = 100)]
    source: Option<String>,
    /// Of one of these fairness keys.
    #[param(value_type = Option<Vec<wire::schema::FairnessKey>>, style = Form, explode = false, min_items = 1, max_items = 100)]
    key: Option<String>,
    /// Leased by one of these.
    #[param(value_type = Option<Vec<wire::schema::ConsumerName>>, style = Form, explode = false, min_items = 1, max_items = 100)]
    consumer: Option<String>,
    /// Dead for one of these reasons.
    #[param(value_type = Option<Vec<wire::schema::DeadReason>>, style = Form, explode = false, min_items = 1, max_items = 100)]
    reason: Option<String>,
    /// Dead with this fingerprint.
    #[param(value_type = Option<wire::schema::Fingerprint>)]
    fingerprint: Option<String>,
    /// With at least so many attempts.
    #[param(value_type = Option<wire::schema::Count>)]
    attempts_min: Option<u32>,
    /// With at most so many attempts.
    #[param(value_type = Option<wire::schema::Count>)]
    attempts_max: Option<u32>,
    /// Enqueued at this time or later.
    #[param(value_type = Option<wire::Time>)]
    created_after: Option<String>,
    /// Enqueued at this time or earlier.
    #[param(value_type = Option<wire::Time>)]
    created_before: Option<String>,
    /// With this text somewhere in the last error.
    #[param(value_type = Option<wire::schema::ErrorPart>)]
    error: Option<String>,
    /// The newest first.
    #[serde(default)]
    newest_first: bool,
    /// Whether the bodies are in the answer; how long they are is there anyway.
    #[serde(default = "with_bodies")]
    #[param(default = true)]
    bodies: bool,
    /// How many at most, 1 to 1,000.
    #[param(value_type = Option<wire::schema::Limit>)]
    limit: Option<u32>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// Bodies are left out only for who says so.
const fn with_bodies() -> bool {
    true
}

impl ListQuery {
    /// Refuses to leave the bodies out, where they are what it is about.
    pub(crate) fn with_bodies(self) -> Result<Self, Refusal> {
        if self.bodies { Ok(self) } else { Err(Refusal::field("bodies", "must not be false here")) }
    }

    /// What is asked for; `states` where no state is named.
    pub(crate) fn request(self, queue: QueueName, states: &[&str]) -> Result<ListRequest, Refusal> {
        let at = |text: Option<String>, field: &str| {
            let parsed = text.map(|text| text.parse::<wire::Time>()).transpose();
            parsed.map_err(|problem| Refusal::field(field, problem))
        };
        let states = match self.state {
            Some(state) => listed(Some(state)),
            None => states.iter().map(|state| (*state).to_owned()).collect(),
        };
        let body = wire::FilterBody {
            states,
            ids: listed(self.id),
            types: listed(self.r#type),
            sources: listed(self.source),
            keys: listed(self.key),
            consumers: listed(self.consumer),
            reasons: listed(self.reason),
            fingerprint: self.fingerprint,
            attempts_min: self.attempts_min,
            attempts_max: self.attempts_max,
            created_after: at(self.created_after, "created_after")?,
            created_before: at(self.created_before, "created_before")?,
            error: self.error,
        };
        Ok(ListRequest {
            queue,
            filter: convert::filter::filter(body)?,
            after: page_cursor(self.cursor)?,
            limit: page_limit(self.limit)?,
            newest_first: self.newest_first,
        })
    }
}

/// A page of messages.
pub(crate) async fn page(
    caller: &Caller,
    query: ListQuery,
    queue: QueueName,
    states: &[&str],
) -> Result<wire::MessagePage, Refusal> {
    let bodies = query.bodies;
    let request = query.request(queue, states)?;
    let page = caller.may(Use::Inspect, &request.queue)?.list(request).await?;
    let view = if bodies { convert::message::view } else { convert::message::without_body };
    let messages = page.messages.iter().map(|message| view(message, page.at)).collect();
    let next_cursor = page.next.map(|next| next.to_string());
    Ok(wire::MessagePage { messages, next_cursor })
}

/// A dry run, or an operation.
pub(crate) async fn start(
    caller: &Caller,
    deed: Deed,
    new: NewOperation,
    dry_run: bool,
) -> Result<Response, Refusal> {
    if new.rate == Some(0) {
        return Err(Refusal::field("/rate", "must be at least 1"));
    }
    if dry_run {
        let matched = caller.dry_run(deed, &new).await?;
        return Ok(axum::Json(wire::Matched { matched }).into_response());
    }
    let operation = caller.start_operation(deed, new).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(convert::operation::view(caller, &operation))).into_response())
}

/// What became of one message.
fn outcome(outcome: Result<EnqueueOutcome, BrokerError>) -> Result<wire::Enqueued, Refusal> {
    match outcome {
        Ok(EnqueueOutcome::Enqueued { id, visible_at }) => Ok(wire::Enqueued {
            id: id.to_string(),
            duplicate: false,
            visible_at: Some(convert::time(visible_at)),
        }),
        Ok(EnqueueOutcome::Duplicate { id }) => {
            Ok(wire::Enqueued { id: id.to_string(), duplicate: true, visible_at: None })
        }
        Ok(EnqueueOutcome::Refused(refusal)) => Err(Refusal::from(&refusal)),
        Ok(EnqueueOutcome::Aborted) => {
            Err(Refusal::new(StatusCode::CONFLICT, "ABORTED", "another message of the batch was refused"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Enqueues a message. It is on the disk before this answers.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages", tag = "messages", operation_id = "enqueue",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"),
        ("Idempotency-Key" = Option<String>, Header, max_length = 256, pattern = "^[!-~]([ -~]*[!-~])?$",
            description = "Under the same key the same message is taken once, and another is refused")),
    request_body = wire::NewMessage,
    responses((status = 200, description = "It was there already", body = wire::Enqueued),
        (status = 201, description = "It is in the queue", body = wire::Enqueued), Refusals))]
pub(crate) async fn enqueue(
    State(api): State<Api>,
    caller: Caller,
    InQueue(queue): InQueue,
    IdempotencyKey(key): IdempotencyKey,
    Traced(trace): Traced,
    Json(message): Json<wire::NewMessage>,
) -> Result<Response, Refusal> {
    if key.is_some() && (message.id.is_some() || message.dedup_key.is_some()) {
        let problem = "an id or a dedup_key must not be given with it";
        return Err(Refusal::field("Idempotency-Key", problem));
    }
    let mut message = convert::message::new_message(queue, message, api.body_bytes_max)?;
    message.idempotency_key = key;
    message.request = trace;
    let mut outcomes = caller.enqueue(vec![message], false).await?;
    let enqueued = outcomes.pop().map(outcome).transpose()?;
    let status = match &enqueued {
        Some(enqueued) if enqueued.duplicate => StatusCode::OK,
        _ => StatusCode::CREATED,
    };
    Ok((status, axum::Json(enqueued)).into_response())
}

/// Enqueues several messages, each with an outcome of its own, or all together.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages/batch", tag = "messages", operation_id = "enqueue_batch",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = wire::EnqueueBatchRequest,
    responses((status = 200, description = "One result for each", body = wire::EnqueueResults), Refusals))]
pub(crate) async fn enqueue_batch(
    State(api): State<Api>,
    caller: Caller,
    InQueue(queue): InQueue,
    Traced(trace): Traced,
    Json(request): Json<wire::EnqueueBatchRequest>,
) -> Result<axum::Json<wire::EnqueueResults>, Refusal> {
    let mut messages = Vec::with_capacity(request.messages.len());
    for (at, message) in request.messages.into_iter().enumerate() {
        let message = convert::message::new_message(queue.clone(), message, api.body_bytes_max);
        let message = message.map_err(|invalid| {
            Refusal::field(format!("/messages/{at}/{}", invalid.field), invalid.problem.to_string())
        })?;
        messages.push(NewMessage { request: trace, ..message });
    }
    let outcomes = caller.enqueue(messages, request.all_or_nothing).await?;
    let results = outcomes.into_iter().map(|one| match outcome(one) {
        Ok(enqueued) => wire::EnqueueResult {
            id: Some(enqueued.id),
            duplicate: Some(enqueued.duplicate),
            visible_at: enqueued.visible_at,
            code: None,
            detail: None,
            advice: None,
        },
        Err(refusal) => wire::EnqueueResult {
            id: None,
            duplicate: None,
            visible_at: None,
            code: Some(refusal.code().to_owned()),
            detail: Some(refusal.detail().to_owned()),
            advice: Some(refusal.advice().to_owned()),
        },
    });
    Ok(axum::Json(wire::EnqueueResults { results: results.collect() }))
}

/// Lists messages by id, which is the order in which they were made.
#[utoipa::path(get, path = "/v1/queues/{queue}/messages", tag = "messages", operation_id = "list_messages",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ListQuery),
    responses((status = 200, description = "Some messages", body = wire::MessagePage), Refusals))]
pub(crate) async fn list(
    caller: Caller,
    InQueue(queue): InQueue,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<wire::MessagePage>, Refusal> {
    Ok(axum::Json(page(&caller, query, queue, &[]).await?))
}

/// A message.
#[utoipa::path(get, path = "/v1/queues/{queue}/messages/{id}", tag = "messages", operation_id = "get_message",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ("id" = wire::schema::MessageId, Path, description = "The message")),
    responses((status = 200, description = "The message", body = wire::MessageView), Refusals))]
pub(crate) async fn get(
    State(api): State<Api>,
    caller: Caller,
    OfMessage(queue, id): OfMessage,
) -> Result<axum::Json<wire::MessageView>, Refusal> {
    let message = caller.may(Use::Inspect, &queue)?.get(&queue, id).await?;
    Ok(axum::Json(convert::message::view(&message, api.gate.now())))
}

/// One message, which must be there and not leased.
fn only(queue: &QueueName, id: redrive_core::message::MessageId) -> Selection {
    Selection::new(queue.clone(), Filter::ids([id]))
}

/// What was done to one message was done, or says why not.
fn one(bulk: &redrive_store::Bulk) -> Result<(), BrokerError> {
    if let Some((_, refusal)) = bulk.refused.first() {
        return Err(BrokerError::NotApplied { code: refusal.code(), detail: refusal.to_string() });
    }
    if bulk.applied.is_empty() {
        let detail = "the message is not there, or not in a state for that".to_owned();
        return Err(BrokerError::NotApplied { code: "WRONG_STATE", detail });
    }
    Ok(())
}

/// Discards a message.
#[utoipa::path(delete, path = "/v1/queues/{queue}/messages/{id}", tag = "messages", operation_id = "discard_message",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ("id" = wire::schema::MessageId, Path, description = "The message"),
        ForceQuery),
    responses((status = 204, description = "It is gone"), Refusals))]
pub(crate) async fn discard(
    caller: Caller,
    OfMessage(queue, id): OfMessage,
    Query(query): Query<ForceQuery>,
) -> Result<StatusCode, Refusal> {
    let discard = async |broker: Broker| {
        broker.get(&queue, id).await?;
        one(&broker.discard(only(&queue, id), query.force).await?)
    };
    caller.act(Deed::DiscardMessages, &queue, discard).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Changes when, or how urgently, a waiting message is served.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages/{id}/reschedule", tag = "messages",
    operation_id = "reschedule_message",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ("id" = wire::schema::MessageId, Path, description = "The message")),
    request_body = wire::RescheduleRequest,
    responses((status = 200, description = "The message", body = wire::MessageView), Refusals))]
pub(crate) async fn reschedule(
    State(api): State<Api>,
    caller: Caller,
    OfMessage(queue, id): OfMessage,
    Json(request): Json<wire::RescheduleRequest>,
) -> Result<axum::Json<wire::MessageView>, Refusal> {
    let change = convert::message::reschedule(&request)?;
    let reschedule = async |broker: Broker| {
        broker.get(&queue, id).await?;
        one(&broker.reschedule(only(&queue, id), change).await?)?;
        broker.get(&queue, id).await
    };
    let message = caller.act(Deed::RescheduleMessage, &queue, reschedule).await?;
    Ok(axum::Json(convert::message::view(&message, api.gate.now())))
}

/// Moves a message to another queue.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages/{id}/move", tag = "messages", operation_id = "move_message",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ("id" = wire::schema::MessageId, Path, description = "The message")),
    request_body = wire::MoveRequest,
    responses((status = 204, description = "It is there"), Refusals))]
pub(crate) async fn move_one(
    caller: Caller,
    OfMessage(queue, id): OfMessage,
    Json(request): Json<wire::MoveRequest>,
) -> Result<StatusCode, Refusal> {
    let target = QueueName::new(request.queue)?;
    let relocate = async |broker: Broker| {
        caller.may(Use::Enqueue, &target)?;
        broker.get(&queue, id).await?;
        one(&broker.move_to(only(&queue, id), target).await?)
    };
    caller.act(Deed::MoveMessages, &queue, relocate).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Why a message is not running, and when it is expected to.
#[utoipa::path(get, path = "/v1/queues/{queue}/messages/{id}/why", tag = "messages", operation_id = "why",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ("id" = wire::schema::MessageId, Path, description = "The message")),
    responses((status = 200, description = "What keeps it", body = wire::WhyView), Refusals))]
pub(crate) async fn why(
    caller: Caller,
    OfMessage(queue, id): OfMessage,
) -> Result<axum::Json<wire::WhyView>, Refusal> {
    let why = caller.may(Use::Inspect, &queue)?.why(&queue, id).await?;
    Ok(axum::Json(convert::message::why(&why)))
}

/// Discards messages, as an operation; a dry run counts them.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages/discard", tag = "messages", operation_id = "discard_messages",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = wire::DiscardRequest,
    responses((status = 200, description = "How many match", body = wire::Matched),
        (status = 202, description = "It has begun", body = wire::OperationView), Refusals))]
pub(crate) async fn discard_many(
    caller: Caller,
    InQueue(queue): InQueue,
    Json(request): Json<wire::DiscardRequest>,
) -> Result<Response, Refusal> {
    let filter = convert::filter::filter(request.filter)?;
    let work = Work::Discard { force: request.force };
    let new = NewOperation { queue, filter, work, rate: request.rate };
    start(&caller, Deed::DiscardMessages, new, request.dry_run).await
}

/// Moves messages to another queue, as an operation; a dry run counts them.
#[utoipa::path(post, path = "/v1/queues/{queue}/messages/move", tag = "messages", operation_id = "move_messages",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = wire::MoveManyRequest,
    responses((status = 200, description = "How many match", body = wire::Matched),
        (status = 202, description = "It has begun", body = wire::OperationView), Refusals))]
pub(crate) async fn move_many(
    caller: Caller,
    InQueue(queue): InQueue,
    Json(request): Json<wire::MoveManyRequest>,
) -> Result<Response, Refusal> {
    let filter = convert::filter::filter(request.filter)?;
    let work = Work::Move { target: QueueName::new(request.queue)? };
    let new = NewOperation { queue, filter, work, rate: request.rate };
    start(&caller, Deed::MoveMessages, new, request.dry_run).await
}
