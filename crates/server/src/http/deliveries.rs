//! How the deliveries of a subscription went: attempts, dead letters and the way back, and replays.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use redrive_broker::Work;
use redrive_bus::Bus;
use redrive_core::access::{Deed, Use};
use redrive_core::invalid::Invalid;
use redrive_core::message::{MessageId, Note};
use redrive_wire as wire;

use super::dead::dead;
use super::extract::{Caller, Json, OfReplay, OfSubscription, Query};
use super::problem::{Refusal, Refusals};
use super::queues::PageQuery;
use super::{Api, page_limit};
use crate::convert;
use crate::convert::timestamp;

/// The last attempts of a subscription at this instance, the newest first, with what was sent and answered.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/attempts", tag = "subscriptions",
    operation_id = "subscription_attempts",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "The attempts", body = wire::DeliveryAttempts), Refusals))]
pub(crate) async fn attempts(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<axum::Json<wire::DeliveryAttempts>, Refusal> {
    let bus = api.bus.may(&caller, Use::Inspect, &id.queue())?;
    let id = &bus.subscription(&id).await?.id;
    let attempts = bus.attempts(id).iter().map(convert::subscription::attempt).collect();
    Ok(axum::Json(wire::DeliveryAttempts { attempts }))
}

/// Lists events that are dead for a subscription: in its own queue, and where handlers run one after another.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/dead", tag = "subscriptions",
    operation_id = "list_dead_of_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription"), PageQuery),
    responses((status = 200, description = "Some events", body = wire::DeadDeliveryPage), Refusals))]
pub(crate) async fn list_dead(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::DeadDeliveryPage>, Refusal> {
    let limit = page_limit(query.limit)?;
    let from = query.cursor.as_deref().map(convert::subscription::dead_cursor).transpose()?;
    let bus = api.bus.may(&caller, Use::Inspect, &id.queue())?;
    let (dead, next) = bus.dead(&id, from, limit).await?;
    let now = api.gate.now();
    let dead = dead.iter().map(|one| convert::subscription::dead(one, now)).collect();
    let next_cursor = next.as_ref().map(convert::subscription::dead_cursor_view);
    Ok(axum::Json(wire::DeadDeliveryPage { dead, next_cursor }))
}

/// Groups of events that are dead in the queue of a subscription and whose errors are alike, the largest first.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/dead/groups", tag = "subscriptions",
    operation_id = "failure_groups_of_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription"), PageQuery),
    responses((status = 200, description = "The groups", body = wire::FailureGroups), Refusals))]
pub(crate) async fn groups(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::FailureGroups>, Refusal> {
    let bus = api.bus.may(&caller, Use::Inspect, &id.queue())?;
    let groups = bus.failure_groups(&id, page_limit(query.limit)?).await?;
    Ok(axum::Json(wire::FailureGroups { groups: groups.iter().map(convert::operation::group).collect() }))
}

/// Brings what is dead for a subscription back, as one operation for each queue where something is; a dry run counts it.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/dead/redrive", tag = "subscriptions",
    operation_id = "redrive_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    request_body = wire::RedriveRequest,
    responses((status = 200, description = "How many match", body = wire::Matched),
        (status = 202, description = "It has begun", body = wire::OperationPage), Refusals))]
pub(crate) async fn redrive(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
    Json(request): Json<wire::RedriveRequest>,
) -> Result<Response, Refusal> {
    if request.rate == Some(0) {
        return Err(Refusal::field("/rate", "must be at least 1"));
    }
    let filter = dead(request.filter)?;
    let work = Work::Redrive { by: Note::new(request.by)?, reason: Note::new(request.reason)? };
    if request.dry_run {
        let bus = api.bus.may(&caller, Deed::Redrive, &id.queue())?;
        let matched = bus.redrive_dry_run(&id, filter, work).await?;
        return Ok(axum::Json(wire::Matched { matched }).into_response());
    }
    let redrive = async |bus: Bus| bus.redrive(&id, filter, work, request.rate).await;
    let begun = api.bus.act_on(&caller, Deed::Redrive, &id, redrive).await?;
    let operations = begun.iter().map(|one| convert::operation::view(&caller, one)).collect();
    let page = wire::OperationPage { operations, next_cursor: None };
    Ok((StatusCode::ACCEPTED, axum::Json(page)).into_response())
}

/// Brings events of the past to a subscription, as far as their topics retained them. It goes on in the background.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/replays", tag = "subscriptions",
    operation_id = "replay_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    request_body = wire::ReplayRequest,
    responses((status = 202, description = "It has begun", body = wire::ReplayStarted), Refusals))]
pub(crate) async fn replay(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
    Json(request): Json<wire::ReplayRequest>,
) -> Result<Response, Refusal> {
    let replay = async |bus: Bus| bus.replay(&id, timestamp(request.from)).await;
    let replay = api.bus.act_on(&caller, Deed::Replay, &id, replay).await?;
    let started = wire::ReplayStarted { id: replay.to_string() };
    Ok((StatusCode::ACCEPTED, axum::Json(started)).into_response())
}

/// The replays to a subscription that are under way.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/replays", tag = "subscriptions", operation_id = "list_replays",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "The replays", body = wire::Replays), Refusals))]
pub(crate) async fn replays(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<axum::Json<wire::Replays>, Refusal> {
    let bus = api.bus.may(&caller, Use::Look, &id.queue())?;
    let id = &bus.subscription(&id).await?.id;
    let replays = bus.replays(id).await?.iter().map(convert::subscription::replay).collect();
    Ok(axum::Json(wire::Replays { replays }))
}

/// Ends a replay. What was brought stays.
#[utoipa::path(delete, path = "/v1/subscriptions/{id}/replays/{replay}", tag = "subscriptions",
    operation_id = "cancel_replay",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription"),
        ("replay" = wire::schema::MessageId, Path, description = "The replay")),
    responses((status = 204, description = "It has ended"), Refusals))]
pub(crate) async fn cancel_replay(
    State(api): State<Api>,
    caller: Caller,
    OfReplay(id, replay): OfReplay,
) -> Result<StatusCode, Refusal> {
    let cancel = async |bus: Bus| bus.cancel_replay(&id, replay).await;
    api.bus.act_on(&caller, Deed::CancelReplay, &id, cancel).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Brings one event to a subscription once more: out of its dead letters, at once where it waits, or again where its topic has
/// retained it. Nobody else gets it.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/resend", tag = "subscriptions", operation_id = "resend",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    request_body = wire::ResendRequest,
    responses((status = 202, description = "It comes, by this way", body = wire::Resent), Refusals))]
pub(crate) async fn resend(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
    Json(request): Json<wire::ResendRequest>,
) -> Result<Response, Refusal> {
    let wrong = |wrong| Invalid { field: "event", ..wrong };
    let event: MessageId = request.event.parse().map_err(wrong)?;
    let how = api.bus.resend(&caller, &id, event).await?;
    let resent = wire::Resent { event: event.to_string(), how: how.name().to_owned() };
    Ok((StatusCode::ACCEPTED, axum::Json(resent)).into_response())
}
