//! Work on many messages.

use redrive_core::access::Deed;
use redrive_wire as wire;

use super::extract::{Caller, OfOperation, Query};
use super::problem::{Refusal, Refusals};
use super::queues::PageQuery;
use super::{page_cursor, page_limit};
use crate::convert;

/// Lists operations, the oldest first.
#[utoipa::path(get, path = "/v1/operations", tag = "operations", operation_id = "list_operations", params(PageQuery),
    responses((status = 200, description = "Some operations", body = wire::OperationPage), Refusals))]
pub(crate) async fn list(
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::OperationPage>, Refusal> {
    let limit = page_limit(query.limit)?;
    let after = page_cursor(query.cursor)?;
    let (operations, next) = caller.operations(after, limit).await?;
    let next_cursor = next.map(|id| id.to_string());
    let operations = operations.iter().map(|one| convert::operation::view(&caller, one)).collect();
    Ok(axum::Json(wire::OperationPage { operations, next_cursor }))
}

/// An operation.
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "operations", operation_id = "get_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "How far it is", body = wire::OperationView), Refusals))]
pub(crate) async fn get(
    caller: Caller,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    let operation = caller.operation(id).await?;
    Ok(axum::Json(convert::operation::view(&caller, &operation)))
}

/// Pauses an operation after the step it is at.
#[utoipa::path(post, path = "/v1/operations/{id}/pause", tag = "operations", operation_id = "pause_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "What it will be", body = wire::OperationView), Refusals))]
pub(crate) async fn pause(
    caller: Caller,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    let operation = caller.change_operation(id, Deed::PauseOperation).await?;
    Ok(axum::Json(convert::operation::view(&caller, &operation)))
}

/// Lets an operation go on.
#[utoipa::path(post, path = "/v1/operations/{id}/resume", tag = "operations", operation_id = "resume_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "What it will be", body = wire::OperationView), Refusals))]
pub(crate) async fn resume(
    caller: Caller,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    let operation = caller.change_operation(id, Deed::ResumeOperation).await?;
    Ok(axum::Json(convert::operation::view(&caller, &operation)))
}

/// Ends an operation after the step it is at. What it did stays done.
#[utoipa::path(post, path = "/v1/operations/{id}/cancel", tag = "operations", operation_id = "cancel_operation",
    params(("id" = wire::schema::OperationId, Path, description = "The operation")),
    responses((status = 200, description = "What it will be", body = wire::OperationView), Refusals))]
pub(crate) async fn cancel(
    caller: Caller,
    OfOperation(id): OfOperation,
) -> Result<axum::Json<wire::OperationView>, Refusal> {
    let operation = caller.change_operation(id, Deed::CancelOperation).await?;
    Ok(axum::Json(convert::operation::view(&caller, &operation)))
}
