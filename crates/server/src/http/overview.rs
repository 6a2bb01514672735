//! The server as a whole: what time it is, how full all queues are, and what somebody should look at.

use axum::extract::State;
use redrive_broker::{RowsWanted, StatsOrder};
use redrive_core::invalid::Invalid;
use redrive_core::limits::QUEUE_NAME_BYTES_MAX;
use redrive_wire as wire;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Caller, Query};
use super::problem::{Refusal, Refusals};
use super::{Api, page_cursor, page_limit};
use crate::convert;

/// What time it is by the server's clock, for who counts down to a deadline.
#[utoipa::path(get, path = "/v1/time", tag = "server", operation_id = "time",
    responses((status = 200, description = "The time", body = wire::ServerTime), Refusals))]
pub(crate) async fn time(State(api): State<Api>) -> axum::Json<wire::ServerTime> {
    let now = convert::time(api.gate.now());
    let (keys_needed, open_reading) = (api.gate.needs_keys(), api.gate.config().open_reading);
    axum::Json(wire::ServerTime { now, now_ms: now.0, keys_needed, open_reading })
}

/// All queues that the caller may see, together, and what somebody should look at, the worst first. Samples, and who leases
/// or waits, are what this instance knows.
#[utoipa::path(get, path = "/v1/overview", tag = "server", operation_id = "overview",
    responses((status = 200, description = "The whole", body = wire::Overview), Refusals))]
pub(crate) async fn overview(
    State(api): State<Api>,
    caller: Caller,
) -> Result<axum::Json<wire::Overview>, Refusal> {
    let troubled = api.bus.troubled(&caller).await?;
    let overview = caller.overview(troubled).await?;
    Ok(axum::Json(convert::overview::overview(&overview, api.gate.config().history_interval)))
}

/// Which queues, and in which order.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatsQuery {
    /// With this somewhere in their name, in small letters or capitals.
    #[param(value_type = Option<wire::schema::QueueNamePart>)]
    name: Option<String>,
    /// By what they are ordered; by name where nothing is said.
    #[param(value_type = Option<wire::schema::StatsOrder>)]
    sort: Option<String>,
    /// The largest first, or the last by name.
    #[serde(default)]
    desc: bool,
    /// How many items at most, 1 to 1,000.
    #[param(value_type = Option<wire::schema::Limit>)]
    limit: Option<u32>,
    /// Where the last page ended.
    cursor: Option<String>,
}

impl StatsQuery {
    fn wanted(self) -> Result<RowsWanted, Refusal> {
        let name = self.name.unwrap_or_default();
        Invalid::check_length("name", name.len(), QUEUE_NAME_BYTES_MAX, "bytes")?;
        let order = match self.sort {
            None => StatsOrder::default(),
            Some(word) => {
                let found = StatsOrder::ALL.into_iter().find(|order| order.name() == word);
                let known = StatsOrder::ALL.map(StatsOrder::name).join(", ");
                found.ok_or_else(|| Refusal::field("sort", format!("must be one of {known}")))?
            }
        };
        Ok(RowsWanted {
            name,
            order,
            descending: self.desc,
            limit: page_limit(self.limit)?,
            after: page_cursor(self.cursor)?,
        })
    }
}

/// The numbers of the queues that the caller may see. By name, all of them can be paged through. Any other order compares the
/// latest samples, which are seconds old and not taken of every queue where there are very many; the rows themselves are
/// fresh. Rates, depths and times are those of this instance's samples.
#[utoipa::path(get, path = "/v1/stats", tag = "queues", operation_id = "list_stats", params(StatsQuery),
    responses((status = 200, description = "Some queues", body = wire::StatsPage), Refusals))]
pub(crate) async fn stats(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<StatsQuery>,
) -> Result<axum::Json<wire::StatsPage>, Refusal> {
    let rows = caller.rows(query.wanted()?).await?;
    Ok(axum::Json(convert::overview::rows(&rows, api.gate.config().history_interval)))
}

/// Who takes work from the queues that the caller may see. What each did is what this instance has seen, at most 1,000 of
/// them; what each holds is derived from the leases in the store.
#[utoipa::path(get, path = "/v1/consumers", tag = "leases", operation_id = "list_consumers",
    responses((status = 200, description = "The consumers", body = wire::Consumers), Refusals))]
pub(crate) async fn consumers(caller: Caller) -> Result<axum::Json<wire::Consumers>, Refusal> {
    Ok(axum::Json(convert::overview::consumers(&caller.consumers().await?)))
}
