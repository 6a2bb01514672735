//! What was given up, and the way back.

use axum::response::Response;
use redrive_broker::{NewOperation, Work};
use redrive_core::access::{Deed, Use};
use redrive_core::message::{Note, State as MessageState};
use redrive_store::Filter;
use redrive_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Caller, InQueue, Json, Query};
use super::messages::{ListQuery, page, start};
use super::page_limit;
use super::problem::{Refusal, Refusals};
use super::queues::PageQuery;
use crate::convert;

/// Which dead messages are meant.
pub(crate) fn dead(body: wire::FilterBody) -> Result<Filter, Refusal> {
    let filter = convert::filter::filter(body)?;
    if filter.states.iter().any(|state| *state != MessageState::Dead) {
        return Err(Refusal::field("/filter/states", "only dead messages are meant here"));
    }
    Ok(Filter { states: vec![MessageState::Dead], ..filter })
}

/// Lists dead messages.
#[utoipa::path(get, path = "/v1/queues/{queue}/dead", tag = "dead letters", operation_id = "list_dead",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), ListQuery),
    responses((status = 200, description = "Some messages", body = wire::MessagePage), Refusals))]
pub(crate) async fn list(
    caller: Caller,
    InQueue(queue): InQueue,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<wire::MessagePage>, Refusal> {
    Ok(axum::Json(page(&caller, query, queue, &["dead"]).await?))
}

/// Groups of dead messages whose errors are alike, the largest first.
#[utoipa::path(get, path = "/v1/queues/{queue}/dead/groups", tag = "dead letters", operation_id = "failure_groups",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue"), PageQuery),
    responses((status = 200, description = "The groups", body = wire::FailureGroups), Refusals))]
pub(crate) async fn groups(
    caller: Caller,
    InQueue(queue): InQueue,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::FailureGroups>, Refusal> {
    let groups = caller.may(Use::Inspect, &queue)?.failure_groups(&queue, page_limit(query.limit)?).await?;
    Ok(axum::Json(wire::FailureGroups { groups: groups.iter().map(convert::operation::group).collect() }))
}

/// How many.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitQuery {
    /// How many items at most, 1 to 1,000.
    #[param(value_type = Option<wire::schema::Limit>)]
    limit: Option<u32>,
}

/// Groups of dead messages whose errors are alike, of all queues that the caller may inspect, the largest first.
#[utoipa::path(get, path = "/v1/dead/groups", tag = "dead letters", operation_id = "all_failure_groups", params(LimitQuery),
    responses((status = 200, description = "The groups", body = wire::AllFailureGroups), Refusals))]
pub(crate) async fn all_groups(
    caller: Caller,
    Query(query): Query<LimitQuery>,
) -> Result<axum::Json<wire::AllFailureGroups>, Refusal> {
    let found = caller.failure_groups(page_limit(query.limit)?).await?;
    let groups = found.groups.iter().map(convert::overview::group).collect();
    Ok(axum::Json(wire::AllFailureGroups { groups, complete: found.complete }))
}

/// Brings dead messages back, as an operation; a dry run counts them.
#[utoipa::path(post, path = "/v1/queues/{queue}/dead/redrive", tag = "dead letters", operation_id = "redrive",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = wire::RedriveRequest,
    responses((status = 200, description = "How many match", body = wire::Matched),
        (status = 202, description = "It has begun", body = wire::OperationView), Refusals))]
pub(crate) async fn redrive(
    caller: Caller,
    InQueue(queue): InQueue,
    Json(request): Json<wire::RedriveRequest>,
) -> Result<Response, Refusal> {
    let filter = dead(request.filter)?;
    let work = Work::Redrive { by: Note::new(request.by)?, reason: Note::new(request.reason)? };
    let new = NewOperation { queue, filter, work, rate: request.rate };
    start(&caller, Deed::Redrive, new, request.dry_run).await
}

/// Discards dead messages, as an operation; a dry run counts them.
#[utoipa::path(post, path = "/v1/queues/{queue}/dead/discard", tag = "dead letters", operation_id = "discard_dead",
    params(("queue" = wire::schema::QueueName, Path, description = "The queue")), request_body = wire::DiscardRequest,
    responses((status = 200, description = "How many match", body = wire::Matched),
        (status = 202, description = "It has begun", body = wire::OperationView), Refusals))]
pub(crate) async fn discard(
    caller: Caller,
    InQueue(queue): InQueue,
    Json(request): Json<wire::DiscardRequest>,
) -> Result<Response, Refusal> {
    let filter = dead(request.filter)?;
    let work = Work::Discard { force: request.force };
    let new = NewOperation { queue, filter, work, rate: request.rate };
    start(&caller, Deed::DiscardDead, new, request.dry_run).await
}
