//! Subscriptions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use redrive_broker::BrokerError;
use redrive_bus::{Bus, Subscription, WhyDisabled};
use redrive_core::access::{Deed, Use};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Millis;
use redrive_wire as wire;

use super::extract::{Caller, Json, OfSubscription, Options, Query};
use super::problem::{Refusal, Refusals};
use super::queues::{PageQuery, expected, tagged};
use super::{Api, page_cursor, page_limit};
use crate::convert;

/// For how long the secrets before a new one sign as well, where nothing is said.
pub(crate) const OVERLAP_DEFAULT: Millis = Millis::from_days(1);

impl Api {
    fn subscription_response(&self, subscription: &Subscription) -> Response {
        let view = convert::subscription::view(subscription, self.gate.now());
        tagged(StatusCode::OK, subscription.version, view)
    }
}

/// Creates a subscription. Events that are published after this answers come to it.
#[utoipa::path(post, path = "/v1/subscriptions", tag = "subscriptions", operation_id = "create_subscription",
    request_body = wire::CreateSubscriptionRequest,
    responses((status = 201, description = "It is there, with the secret that was made for it",
        body = wire::NewSubscriptionView), Refusals))]
pub(crate) async fn create(
    State(api): State<Api>,
    caller: Caller,
    Json(request): Json<wire::CreateSubscriptionRequest>,
) -> Result<Response, Refusal> {
    let new = convert::subscription::created(request)?;
    let created = api.bus.create_subscription(&caller, new).await?;
    let view = convert::subscription::created_view(&created, api.gate.now());
    Ok(tagged(StatusCode::CREATED, created.subscription.version, view))
}

/// Lists subscriptions by name.
#[utoipa::path(get, path = "/v1/subscriptions", tag = "subscriptions", operation_id = "list_subscriptions",
    params(PageQuery),
    responses((status = 200, description = "Some subscriptions", body = wire::SubscriptionPage), Refusals))]
pub(crate) async fn list(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<axum::Json<wire::SubscriptionPage>, Refusal> {
    let limit = page_limit(query.limit)?;
    let after: Option<SubscriptionId> = page_cursor(query.cursor)?;
    let (subscriptions, next) = api.bus.subscriptions(&caller, after, limit).await?;
    let now = api.gate.now();
    let shown = |one: &Arc<Subscription>| convert::subscription::shown_to(&caller, one, now);
    let subscriptions = subscriptions.iter().map(shown).collect();
    let next_cursor = next.map(|id| id.as_str().to_owned());
    Ok(axum::Json(wire::SubscriptionPage { subscriptions, next_cursor }))
}

/// A subscription, and how its breaker stands.
#[utoipa::path(get, path = "/v1/subscriptions/{id}", tag = "subscriptions", operation_id = "get_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "The subscription", body = wire::SubscriptionView), Refusals))]
pub(crate) async fn get(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<Response, Refusal> {
    let bus = api.bus.may(&caller, Use::Look, &id.queue())?;
    let subscription = bus.subscription(&id).await?;
    let mut view = convert::subscription::shown_to(&caller, &subscription, api.gate.now());
    if subscription.owns_queue() && subscription.breaker().is_some() {
        view.breaker_status = bus.breaker(&id).await?.as_ref().map(convert::queue::breaker_status);
    }
    Ok(tagged(StatusCode::OK, subscription.version, view))
}

/// Sets what may be set of a subscription, as a whole. It acts on what waits for it at once. The kind of its target stays.
#[utoipa::path(put, path = "/v1/subscriptions/{id}", tag = "subscriptions", operation_id = "update_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription"),
        ("If-Match" = Option<String>, Header, description = "Only if it still has this ETag",
            pattern = r#"^(\*|"?[0-9]{1,19}"?)$"#)),
    request_body = wire::UpdateSubscriptionRequest,
    responses((status = 200, description = "The subscription", body = wire::SubscriptionView), Refusals))]
pub(crate) async fn update(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
    headers: HeaderMap,
    Json(request): Json<wire::UpdateSubscriptionRequest>,
) -> Result<Response, Refusal> {
    let change = convert::subscription::changed(request, expected(&headers)?)?;
    let subscription = api.bus.update_subscription(&caller, &id, change).await?;
    Ok(api.subscription_response(&subscription))
}

/// Deletes a subscription, with the events that wait for it and its dead letters. A plain queue stays.
#[utoipa::path(delete, path = "/v1/subscriptions/{id}", tag = "subscriptions", operation_id = "delete_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 204, description = "It is gone"), Refusals))]
pub(crate) async fn delete(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<StatusCode, Refusal> {
    let delete = async |bus: Bus| bus.delete_subscription(&id).await;
    api.bus.act_on(&caller, Deed::DeleteSubscription, &id, delete).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Pauses a subscription: events come to it, and wait.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/pause", tag = "subscriptions",
    operation_id = "pause_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "The subscription", body = wire::SubscriptionView), Refusals))]
pub(crate) async fn pause(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<Response, Refusal> {
    let pause = async |bus: Bus| bus.pause_subscription(&id).await;
    let subscription = api.bus.act_on(&caller, Deed::PauseSubscription, &id, pause).await?;
    Ok(api.subscription_response(&subscription))
}

/// Lets a paused or disabled subscription go on, with what waited for it.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/resume", tag = "subscriptions",
    operation_id = "resume_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "The subscription", body = wire::SubscriptionView), Refusals))]
pub(crate) async fn resume(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<Response, Refusal> {
    let resume = async |bus: Bus| bus.resume_subscription(&id).await;
    let subscription = api.bus.act_on(&caller, Deed::ResumeSubscription, &id, resume).await?;
    Ok(api.subscription_response(&subscription))
}

/// Switches a subscription off: nothing comes to it, nothing goes out, and what waits stays.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/disable", tag = "subscriptions",
    operation_id = "disable_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "The subscription", body = wire::SubscriptionView), Refusals))]
pub(crate) async fn disable(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<Response, Refusal> {
    let disable = async |bus: Bus| bus.disable_subscription(&id, WhyDisabled::Operator).await;
    let subscription = api.bus.act_on(&caller, Deed::DisableSubscription, &id, disable).await?;
    Ok(api.subscription_response(&subscription))
}

/// Switches a subscription on again. What was published meanwhile does not come, unless it is replayed.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/enable", tag = "subscriptions",
    operation_id = "enable_subscription",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "The subscription", body = wire::SubscriptionView), Refusals))]
pub(crate) async fn enable(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<Response, Refusal> {
    let enable = async |bus: Bus| bus.enable_subscription(&id).await;
    let subscription = api.bus.act_on(&caller, Deed::EnableSubscription, &id, enable).await?;
    Ok(api.subscription_response(&subscription))
}

/// Gives a webhook another secret. Those before it sign as well for a while.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/secret", tag = "subscriptions", operation_id = "rotate_secret",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    request_body = Option<wire::RotateSecretRequest>,
    responses((status = 200, description = "The subscription, with the secret that was made for it",
        body = wire::NewSubscriptionView), Refusals))]
pub(crate) async fn rotate_secret(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
    Options(request): Options<wire::RotateSecretRequest>,
) -> Result<Response, Refusal> {
    let secret = request.secret.as_deref().map(convert::subscription::secret).transpose()?;
    let overlap = convert::millis(request.overlap_ms).unwrap_or(OVERLAP_DEFAULT);
    let rotate = async |bus: Bus| bus.rotate_secret(&id, secret, overlap).await;
    let rotated = api.bus.act_on(&caller, Deed::RotateSecret, &id, rotate).await?;
    let view = convert::subscription::created_view(&rotated, api.gate.now());
    Ok(tagged(StatusCode::OK, rotated.subscription.version, view))
}

/// The breaker of a subscription.
#[utoipa::path(get, path = "/v1/subscriptions/{id}/breaker", tag = "subscriptions",
    operation_id = "subscription_breaker",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 200, description = "Its breaker", body = wire::BreakerStatus), Refusals))]
pub(crate) async fn breaker(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<axum::Json<wire::BreakerStatus>, Refusal> {
    let view = api.bus.may(&caller, Use::Look, &id.queue())?.breaker(&id).await?;
    let view = view.ok_or_else(|| Refusal::from(BrokerError::NoBreaker(id.queue())))?;
    Ok(axum::Json(convert::queue::breaker_status(&view)))
}

/// Opens the breaker of a subscription.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/breaker/trip", tag = "subscriptions",
    operation_id = "trip_subscription_breaker",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 204, description = "It is open"), Refusals))]
pub(crate) async fn trip_breaker(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<StatusCode, Refusal> {
    let trip = async |bus: Bus| bus.set_breaker(&id, true).await;
    api.bus.act_on(&caller, Deed::TripBreaker, &id, trip).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Closes the breaker of a subscription; it starts with one event in flight.
#[utoipa::path(post, path = "/v1/subscriptions/{id}/breaker/reset", tag = "subscriptions",
    operation_id = "reset_subscription_breaker",
    params(("id" = wire::schema::SubscriptionId, Path, description = "The subscription")),
    responses((status = 204, description = "It is closed"), Refusals))]
pub(crate) async fn reset_breaker(
    State(api): State<Api>,
    caller: Caller,
    OfSubscription(id): OfSubscription,
) -> Result<StatusCode, Refusal> {
    let reset = async |bus: Bus| bus.set_breaker(&id, false).await;
    api.bus.act_on(&caller, Deed::ResetBreaker, &id, reset).await?;
    Ok(StatusCode::NO_CONTENT)
}
