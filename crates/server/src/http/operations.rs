//! Work on many messages.

use axum::extract::State;
use redrive_wire as wire;

use super::extract::{OfOperation, Query};
use super::problem::{Refusal, Refusals};
use super::queues::PageQuery;
use super::{Api, page_cursor, page_limit};
use crate::convert;

/// Lists operations, the oldest first.
#[utoipa::path(get, path = "/v1/operations", tag = "operations", operation_id = "list_operations", params(PageQuery),
    responses((status = 200, description = "Some operations", body = wire::OperationPage), Refusals))]
pub(crate) async fn list(
    State(api): State<Api>,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::OperationPage>, Refusal> {
    let limit = page_limit(query.limit)?;
    let after = page_cursor(query.cursor)?;
    let operations = api.broker.operations(after, limit).await?;
    let full = operations.len() == limit.get();
    let next_cursor = operations.last().filter(|_| full).map(|operation| operation.id.to_string());
    let operations = operations.iter().map(convert::operation::view).collect();
    Ok(axum::Json(wire::OperationPage { operations, next_cursor }))
}

/// An operation.
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "operations", operation_id = "get_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "How far it is", body = wire::OperationView), Refusals))]
pub(crate) async fn get(
    State(api): State<Api>,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    Ok(axum::Json(convert::operation::view(&api.broker.operation(id).await?)))
}

/// Pauses an operation after the step it is at.
#[utoipa::path(post, path = "/v1/operations/{id}/pause", tag = "operations", operation_id = "pause_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "What it will be", body = wire::OperationView), Refusals))]
pub(crate) async fn pause(
    State(api): State<Api>,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    Ok(axum::Json(convert::operation::view(&api.broker.pause_operation(id).await?)))
}

/// Lets an operation go on.
#[utoipa::path(post, path = "/v1/operations/{id}/resume", tag = "operations", operation_id = "resume_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "What it will be", body = wire::OperationView), Refusals))]
pub(crate) async fn resume(
    State(api): State<Api>,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    Ok(axum::Json(convert::operation::view(&api.broker.resume_operation(id).await?)))
}

/// Ends an operation after the step it is at. What it did stays done.
#[utoipa::path(post, path = "/v1/operations/{id}/cancel", tag = "operations", operation_id = "cancel_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "What it will be", body = wire::OperationView), Refusals))]
pub(crate) async fn cancel(
    State(api): State<Api>,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    Ok(axum::Json(convert::operation::view(&api.broker.cancel_operation(id).await?)))
}
