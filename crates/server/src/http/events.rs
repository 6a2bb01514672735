//! The live stream of events.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use redrive_broker::{Told, Watch};
use redrive_core::access::{On, Use};
use redrive_core::queue::QueueName;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Caller, Query};
use super::problem::{Refusal, Refusals};
use crate::convert;

/// How often a comment is sent where nothing happens, so that nobody takes the stream for dead.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a browser waits before it comes back.
const RETRY: Duration = Duration::from_secs(2);

/// Which events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Of this queue only.
    queue: Option<String>,
}

/// Streams events as they happen. A reader that comes back with `Last-Event-ID` goes on where it was, or is told by a
/// `lagged` event that something was missed.
#[utoipa::path(get, path = "/v1/events", tag = "server", operation_id = "events",
    params(EventsQuery, ("Last-Event-ID" = Option<String>, Header, description = "Where the reader was")),
    responses((status = 200, description = "Events, one after the other", body = redrive_wire::Event,
        content_type = "text/event-stream"), Refusals))]
pub(crate) async fn events(
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<EventsQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let queue = query.queue.map(QueueName::new).transpose()?;
    let after = match headers.get("last-event-id") {
        None => None,
        Some(value) => {
            let text = value.to_str().unwrap_or_default();
            Some(text.parse().map_err(|_| Refusal::field("Last-Event-ID", "must be the id of an event"))?)
        }
    };
    let broker = caller.may(Use::Watch, queue.as_ref().map_or(On::Some, On::Queue))?;
    let watch = broker.watch(after);
    let hello = stream::once(async { Ok(Event::default().retry(RETRY).comment("redrive")) });
    let ended = Box::pin(caller.ended());
    let stream = hello.chain(told(watch, queue, caller)).take_until(ended);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

fn told(
    watch: Watch,
    queue: Option<QueueName>,
    caller: Caller,
) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(watch, |mut watch| async move { Some((watch.next().await, watch)) }).filter_map(
        move |told| {
            let event = match told {
                Told::Lagged(after) => Some(
                    Event::default()
                        .id(after.to_string())
                        .event("lagged")
                        .data(format!("{{\"after\":{after}}}")),
                ),
                Told::Event(event) if queue.as_ref().is_some_and(|queue| *queue != event.queue) => None,
                Told::Event(event) if !caller.sees(Use::Watch, &event.queue) => None,
                Told::Event(event) => {
                    let data = serde_json::to_string(&convert::event::event(&event)).unwrap_or_default();
                    Some(Event::default().id(event.offset.to_string()).event(event.what.name()).data(data))
                }
            };
            async move { event.map(Ok) }
        },
    )
}
