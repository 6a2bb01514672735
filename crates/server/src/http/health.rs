//! Whether the server lives, whether it can work, and its numbers.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use redrive_core::access::{On, Use};

use super::Api;
use super::extract::Caller;
use super::problem::{Refusal, Refusals};

/// Whether the process lives.
#[utoipa::path(get, path = "/healthz", tag = "server", operation_id = "healthz",
    responses((status = 200, description = "It does", body = String, content_type = "text/plain")))]
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// Whether it can work: the store answers, and the server does not end. Says which store it is, and what an acknowledged
/// write survives: `nothing`, `process_crash`, `power_loss` or `disk_loss`.
#[utoipa::path(get, path = "/readyz", tag = "server", operation_id = "readyz",
    responses((status = 200, description = "It can", body = String, content_type = "text/plain"), Refusals))]
pub(crate) async fn ready(State(api): State<Api>) -> Result<String, Refusal> {
    let store = api.gate.ready().await?;
    Ok(format!("ok\nstore {}\nsurvives {}\n", store.name, store.survives))
}

/// The metrics, as Prometheus reads them.
#[utoipa::path(get, path = "/metrics", tag = "server", operation_id = "metrics",
    responses((status = 200, description = "The metrics", body = String,
        content_type = "application/openmetrics-text"), Refusals))]
pub(crate) async fn metrics(State(api): State<Api>, caller: Caller) -> Result<impl IntoResponse, Refusal> {
    let mut text = caller.may(Use::Measure, On::Every)?.metrics_text().await?;
    api.bus.may(&caller, Use::Measure, On::Every)?.add_metrics(&mut text);
    if let Some(port) = &api.port {
        port.add_to(&mut text);
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok((StatusCode::OK, [(header::CONTENT_TYPE, kind)], text))
}
