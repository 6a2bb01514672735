//! The live stream of events.

use std::convert::Infallible;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, StreamExt, stream};
use redrive_broker::{BrokerError, Counts, Told, ToldCount, Unauthenticated, Watch};
use redrive_core::access::{On, Use};
use redrive_core::queue::QueueName;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Query, Watcher};
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
/// `lagged` event that something was missed. Where reading is open, who shows no API key is told of messages only, how many
/// there were, and not where: `payload` then has `count`, `dlq_count` and `triggered_by`.
#[utoipa::path(get, path = "/v1/events", tag = "server", operation_id = "events",
    params(EventsQuery, ("Last-Event-ID" = Option<String>, Header, description = "Where the reader was")),
    responses((status = 200, description = "Events, one after the other", body = redrive_wire::Event,
        content_type = "text/event-stream"), Refusals))]
pub(crate) async fn events(
    Watcher(watcher): Watcher,
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
    let told = match watcher {
        redrive_broker::Watcher::Caller(caller) => {
            let broker = caller.may(Use::Watch, queue.as_ref().map_or(On::Some, On::Queue))?;
            let (watch, ended) = (broker.watch(after), Box::pin(caller.ended()));
            told(watch, queue, caller).take_until(ended).boxed()
        }
        redrive_broker::Watcher::Stranger(stranger) => {
            // Whether a queue is there, and how busy it is, is nothing that a stranger may find out.
            if queue.is_some() {
                return Err(BrokerError::from(Unauthenticated::Missing).into());
            }
            counted(stranger.watch(after)?).take_until(Box::pin(stranger.ended())).boxed()
        }
    };
    let hello = stream::once(async { Ok(Event::default().retry(RETRY).comment("redrive")) });
    Ok(Sse::new(hello.chain(told)).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

fn told(
    watch: Watch,
    queue: Option<QueueName>,
    caller: redrive_broker::Caller,
) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(watch, |mut watch| async move { Some((watch.next().await, watch)) }).filter_map(
        move |told| {
            let event = match told {
                Told::Lagged(after) => Some(lagged(after)),
                Told::Event(event) if queue.as_ref().is_some_and(|queue| *queue != event.queue) => None,
                Told::Event(event) if !caller.sees(Use::Watch, &event.queue) => None,
                Told::Event(event) => Some(one(event.offset, &convert::event::event(&event))),
            };
            async move { event.map(Ok) }
        },
    )
}

fn counted(counts: Counts) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(counts, |mut counts| async move {
        let event = match counts.next().await {
            ToldCount::Lagged(after) => lagged(after),
            ToldCount::Counted(counted) => one(counted.offset, &convert::event::counted(&counted)),
        };
        Some((Ok(event), counts))
    })
}

fn one(offset: u64, event: &redrive_wire::Event) -> Event {
    let data = serde_json::to_string(event).unwrap_or_default();
    Event::default().id(offset.to_string()).event(&event.r#type).data(data)
}

fn lagged(after: u64) -> Event {
    Event::default().id(after.to_string()).event("lagged").data(format!("{{\"after\":{after}}}"))
}
