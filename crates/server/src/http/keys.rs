//! API keys, and the trail of what was done with them.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use redrive_broker::{About, ApiKey};
use redrive_core::access::Token;
use redrive_core::time::Millis;
use redrive_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Caller, Json, OfKey, Options, Query};
use super::problem::{Refusal, Refusals};
use super::queues::PageQuery;
use super::{Api, page_cursor, page_limit};
use crate::convert;

/// A key with its secret, which nobody on the way is to keep.
fn shown(api: &Api, status: StatusCode, key: &ApiKey, token: &Token) -> Response {
    let view = wire::NewKeyView { key: convert::key::view(key, api.gate.now()), token: token.expose() };
    (status, [(header::CACHE_CONTROL, "no-store")], axum::Json(view)).into_response()
}

/// Makes an API key. Its token is in the answer and nowhere else.
#[utoipa::path(post, path = "/v1/keys", tag = "access", operation_id = "create_key",
    request_body = wire::CreateKeyRequest,
    responses((status = 201, description = "The key and its token", body = wire::NewKeyView), Refusals))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Json(request): Json<wire::CreateKeyRequest>,
) -> Result<Response, Refusal> {
    let (key, token) = caller.create_key(convert::key::new_key(request)?).await?;
    Ok(shown(&api, StatusCode::CREATED, &key, &token))
}

/// Lists API keys, those that ended included.
#[utoipa::path(get, path = "/v1/keys", tag = "access", operation_id = "list_keys", params(PageQuery),
    responses((status = 200, description = "Some keys", body = wire::KeyPage), Refusals))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::KeyPage>, Refusal> {
    let (keys, next) = caller.list_keys(page_cursor(query.cursor)?, page_limit(query.limit)?)?;
    let now = api.gate.now();
    let keys = keys.iter().map(|key| convert::key::view(key, now)).collect();
    Ok(axum::Json(wire::KeyPage { keys, next_cursor: next.map(|id| id.to_string()) }))
}

/// An API key.
#[utoipa::path(get, path = "/v1/keys/{id}", tag = "access", operation_id = "get_key",
    params(("id" = wire::schema::KeyId, Path, description = "The key")),
    responses((status = 200, description = "The key", body = wire::KeyView), Refusals))]
pub(crate) async fn get(
    State(api): State<Api>,
    caller: Caller,
    OfKey(id): OfKey,
) -> Result<axum::Json<wire::KeyView>, Refusal> {
    Ok(axum::Json(convert::key::view(&caller.get_key(id)?, api.gate.now())))
}

/// Gives an API key another secret; the one before may work for a while, so that those who use it can change over.
#[utoipa::path(post, path = "/v1/keys/{id}/rotate", tag = "access", operation_id = "rotate_key",
    params(("id" = wire::schema::KeyId, Path, description = "The key")),
    request_body = Option<wire::RotateKeyRequest>,
    responses((status = 200, description = "The key and its new token", body = wire::NewKeyView), Refusals))]
pub(crate) async fn rotate(
    State(api): State<Api>,
    caller: Caller,
    OfKey(id): OfKey,
    Options(request): Options<wire::RotateKeyRequest>,
) -> Result<Response, Refusal> {
    let overlap = Millis::new(request.overlap_ms.unwrap_or_default());
    let (key, token) = caller.rotate_key(id, overlap).await?;
    Ok(shown(&api, StatusCode::OK, &key, &token))
}

/// Ends an API key, at once. Polls and streams that wait under it are cut.
#[utoipa::path(post, path = "/v1/keys/{id}/revoke", tag = "access", operation_id = "revoke_key",
    params(("id" = wire::schema::KeyId, Path, description = "The key")),
    responses((status = 200, description = "The key", body = wire::KeyView), Refusals))]
pub(crate) async fn revoke(
    State(api): State<Api>,
    caller: Caller,
    OfKey(id): OfKey,
) -> Result<axum::Json<wire::KeyView>, Refusal> {
    let key = caller.revoke_key(id).await?;
    Ok(axum::Json(convert::key::view(&key, api.gate.now())))
}

/// Who the server takes the caller for, and what it may do.
#[utoipa::path(get, path = "/v1/whoami", tag = "access", operation_id = "whoami",
    responses((status = 200, description = "The caller", body = wire::WhoAmI), Refusals))]
pub(crate) async fn whoami(State(api): State<Api>, caller: Caller) -> axum::Json<wire::WhoAmI> {
    let key = caller.key().map(|key| convert::key::view(&key, api.gate.now()));
    axum::Json(wire::WhoAmI { keys_needed: api.gate.needs_keys(), key })
}

/// Which entries of the trail.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// By this key.
    key: Option<String>,
    /// Of this kind, such as `delete_queue`.
    what: Option<String>,
    /// About this queue or key.
    on: Option<String>,
    /// With this result, such as `ok` or `FORBIDDEN`.
    result: Option<String>,
    /// The newest first.
    #[serde(default)]
    newest_first: bool,
    /// How many items at most, 1 to 1,000.
    #[param(value_type = Option<wire::schema::Limit>)]
    limit: Option<u32>,
    /// Where the last page ended.
    cursor: Option<String>,
}

/// Reads the audit trail: what operators did, and what was refused to whom. The oldest first, unless asked otherwise.
#[utoipa::path(get, path = "/v1/audit", tag = "access", operation_id = "audit", params(AuditQuery),
    responses((status = 200, description = "Some entries", body = wire::AuditPage), Refusals))]
pub(crate) async fn audit(
    caller: Caller,
    Query(query): Query<AuditQuery>,
) -> Result<axum::Json<wire::AuditPage>, Refusal> {
    let wrong = |_| Refusal::field("cursor", "must be the next_cursor of a page");
    let behind = query.cursor.as_deref().map(str::parse).transpose().map_err(wrong)?;
    let is = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let (entries, next) = caller
        .audit(query.newest_first, behind, page_limit(query.limit)?, |entry| {
            is(&query.key, entry.act.who.key.as_deref())
                && is(&query.what, Some(&entry.act.what))
                && is(&query.on, entry.act.on.as_ref().map(About::name))
                && is(&query.result, Some(&entry.act.result))
        })
        .await?;
    let entries = entries.into_iter().map(convert::key::entry).collect();
    Ok(axum::Json(wire::AuditPage { entries, next_cursor: next.map(|next| next.to_string()) }))
}
