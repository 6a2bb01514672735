//! HTTP/JSON: each handler decodes, calls the broker once, and encodes.

mod dead;
mod deliveries;
mod description;
mod events;
mod extract;
mod health;
mod keys;
mod leases;
mod messages;
mod operations;
mod overview;
mod problem;
mod queues;
mod subscriptions;
mod topics;
mod transfer;

use std::str::FromStr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, OriginalUri};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use redrive_broker::Gate;
use redrive_bus::{Bus, BusGate};
use redrive_core::invalid::Invalid;
use redrive_core::limits::{BATCH_BYTES_MAX, BODY_BYTES_DEFAULT_MAX};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use description::LeftOut;
#[cfg(test)]
pub(crate) use extract::broken;
pub(crate) use problem::Refusal;
pub(crate) use subscriptions::OVERLAP_DEFAULT;

use crate::base_path::BasePath;
use crate::dashboard::Dashboard;
use crate::listen::PortMetrics;

/// The largest body of a request: a batch whose bodies are base64, and what is around them.
const BODY_BYTES_MAX: usize = BATCH_BYTES_MAX / 3 * 4 + 1024 * 1024;

/// What every handler is given.
#[derive(Debug, Clone)]
pub struct Api {
    gate: Gate,
    bus: BusGate,
    /// The largest body of a message, in bytes.
    body_bytes_max: usize,
    /// What the port counts, where there is one.
    port: Option<Arc<PortMetrics>>,
    /// Below which path it is found.
    base: BasePath,
}

impl Api {
    /// The API of a broker behind its gate, and of the bus over it.
    pub fn new(gate: Gate, bus: Bus) -> Self {
        Self {
            gate,
            bus: BusGate::new(bus),
            body_bytes_max: BODY_BYTES_DEFAULT_MAX,
            port: None,
            base: BasePath::default(),
        }
    }

    /// The same below a path.
    #[must_use]
    pub fn below(self, base: BasePath) -> Self {
        Self { base, ..self }
    }

    /// Tells among the metrics what this port counts.
    #[must_use]
    pub fn on_port(self, port: Arc<PortMetrics>) -> Self {
        Self { port: Some(port), ..self }
    }
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Redrive",
        description = "A durable work queue for work that fails.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(redrive_wire::Problem, redrive_wire::FieldProblem, redrive_wire::schema::Topic,
        redrive_wire::schema::StatsOrder, redrive_wire::schema::QueueNamePart)),
    tags(
        (name = "queues", description = "Queues and their settings"),
        (name = "messages", description = "Messages: in, out, and looking at them"),
        (name = "leases", description = "Taking work and settling it"),
        (name = "dead letters", description = "What was given up, and the way back"),
        (name = "topics", description = "Events: publishing them, and how they are dispatched and kept"),
        (name = "subscriptions", description = "Who gets which events, and how that went"),
        (name = "operations", description = "Work on many messages"),
        (name = "access", description = "API keys, and the audit trail"),
        (name = "server", description = "The server itself")
    )
)]
struct Documented;

fn documented() -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(Documented::openapi())
        .routes(routes!(queues::create, queues::list))
        .routes(routes!(queues::get, queues::update, queues::delete))
        .routes(routes!(queues::pause))
        .routes(routes!(queues::resume))
        .routes(routes!(queues::set_weights))
        .routes(routes!(queues::purge))
        .routes(routes!(queues::stats))
        .routes(routes!(queues::history))
        .routes(routes!(queues::breaker))
        .routes(routes!(queues::trip_breaker))
        .routes(routes!(queues::reset_breaker))
        .routes(routes!(queues::breakers))
        .routes(routes!(queues::types))
        .routes(routes!(messages::enqueue, messages::list))
        .routes(routes!(messages::enqueue_batch))
        .routes(routes!(messages::get, messages::discard))
        .routes(routes!(messages::reschedule))
        .routes(routes!(messages::move_one))
        .routes(routes!(messages::why))
        .routes(routes!(messages::discard_many))
        .routes(routes!(messages::move_many))
        .routes(routes!(transfer::export))
        .routes(routes!(transfer::import))
        .routes(routes!(leases::lease))
        .routes(routes!(leases::list))
        .routes(routes!(leases::operator_extend))
        .routes(routes!(leases::operator_release))
        .routes(routes!(leases::ack))
        .routes(routes!(leases::ack_batch))
        .routes(routes!(leases::nack))
        .routes(routes!(leases::nack_batch))
        .routes(routes!(leases::extend))
        .routes(routes!(leases::extend_batch))
        .routes(routes!(leases::release))
        .routes(routes!(leases::release_batch))
        .routes(routes!(leases::bury))
        .routes(routes!(leases::bury_batch))
        .routes(routes!(leases::requeue_expired))
        .routes(routes!(leases::requeue_expired_everywhere))
        .routes(routes!(dead::list))
        .routes(routes!(dead::groups))
        .routes(routes!(dead::redrive))
        .routes(routes!(dead::discard))
        .merge(of_the_bus())
        .merge(for_people())
        .routes(routes!(operations::list))
        .routes(routes!(operations::get))
        .routes(routes!(operations::pause))
        .routes(routes!(operations::resume))
        .routes(routes!(operations::cancel))
        .routes(routes!(keys::create, keys::list))
        .routes(routes!(keys::get))
        .routes(routes!(keys::rotate))
        .routes(routes!(keys::revoke))
        .routes(routes!(keys::whoami))
        .routes(routes!(keys::audit))
        .routes(routes!(events::events))
        .routes(routes!(health::alive))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}

fn of_the_bus() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(topics::publish))
        .routes(routes!(topics::list))
        .routes(routes!(topics::get, topics::set, topics::delete))
        .routes(routes!(subscriptions::create, subscriptions::list))
        .routes(routes!(subscriptions::get, subscriptions::update, subscriptions::delete))
        .routes(routes!(subscriptions::pause))
        .routes(routes!(subscriptions::resume))
        .routes(routes!(subscriptions::disable))
        .routes(routes!(subscriptions::enable))
        .routes(routes!(subscriptions::rotate_secret))
        .routes(routes!(subscriptions::breaker))
        .routes(routes!(subscriptions::trip_breaker))
        .routes(routes!(subscriptions::reset_breaker))
        .routes(routes!(deliveries::attempts))
        .routes(routes!(deliveries::list_dead))
        .routes(routes!(deliveries::groups))
        .routes(routes!(deliveries::redrive))
        .routes(routes!(deliveries::replay, deliveries::replays))
        .routes(routes!(deliveries::cancel_replay))
        .routes(routes!(deliveries::resend))
}

/// What a page shows of all queues at once.
fn for_people() -> OpenApiRouter<Api> {
    OpenApiRouter::new()
        .routes(routes!(overview::time))
        .routes(routes!(overview::overview))
        .routes(routes!(overview::stats))
        .routes(routes!(overview::consumers))
        .routes(routes!(leases::list_all))
        .routes(routes!(dead::all_groups))
        .routes(routes!(queues::retry_schedule))
}

/// The document that describes the API.
pub fn openapi() -> utoipa::openapi::OpenApi {
    described(documented().into_openapi())
}

fn described(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    LeftOut.modify(&mut document);
    document
}

/// The whole API, and the page beside it.
pub fn router(api: Api) -> Router {
    let (router, document) = documented().split_for_parts();
    // One for all who ask: answers that nobody takes must not be copies of it.
    let document = Bytes::from(serde_json::to_vec(&described(document)).unwrap_or_default());
    let openapi = move || async move {
        ([(axum::http::header::CONTENT_TYPE, "application/json")], document.clone()).into_response()
    };
    let (base, dashboard) = (api.base.clone(), Arc::new(Dashboard::new(&api.base)));
    let other = move |method: Method, OriginalUri(asked): OriginalUri, uri: Uri, headers: HeaderMap| async move {
        let page = dashboard.answer(&method, uri.path(), &headers);
        page.unwrap_or_else(|| no_such_route(asked.path()).into_response())
    };
    let router = router
        .route("/openapi.json", get(openapi))
        .fallback(other)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(CatchPanicLayer::custom(panicked))
        .with_state(api);
    base.over(router)
}

/// The refusal where there is nothing.
pub(crate) fn no_such_route(path: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "NO_SUCH_ROUTE", format!("there is nothing at {path}"))
}

async fn not_allowed(OriginalUri(uri): OriginalUri) -> Refusal {
    let detail = format!("not with this method at {}", uri.path());
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail)
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that the layer wants")]
fn panicked(panic: Box<dyn std::any::Any + Send>) -> Response {
    let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(panic = said, "a handler panicked");
    let detail = "the server made a mistake, which it has written down";
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", detail).into_response()
}

/// A list in one parameter, its values divided by commas.
fn listed(text: Option<String>) -> Vec<String> {
    text.map(|text| text.split(',').map(str::to_owned).collect()).unwrap_or_default()
}

/// Where the last page ended; what is no cursor is refused as one.
fn page_cursor<T: FromStr<Err = Invalid>>(cursor: Option<String>) -> Result<Option<T>, Invalid> {
    let wrong = |_| Invalid::unusable("cursor", "must be the next_cursor of a page");
    cursor.map(|cursor| cursor.parse().map_err(wrong)).transpose()
}

/// How many items a page has: 100 where nothing is said.
fn page_limit(limit: Option<u32>) -> Result<redrive_store::Limit, Refusal> {
    Ok(redrive_store::Limit::new(limit.unwrap_or(100) as usize)?)
}
