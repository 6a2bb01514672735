//! Requirement 001, "Retry Observability": the line that every retry writes, and the metrics.

use std::sync::{Arc, Mutex};

use redrive_core::message::State;
use tracing::field::{Field, Visit};
use tracing::span;

use crate::world::{World, boom, exact, fail};

/// The fields of every line that was written about a retry.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

/// Its level and its fields.
type Line = (tracing::Level, Vec<(String, String)>);

struct Fields<'a>(&'a mut Vec<(String, String)>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push((field.name().to_owned(), format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name().to_owned(), value.to_owned()));
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "redrive::retry"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Vec::new();
        event.record(&mut Fields(&mut fields));
        self.0.lock().unwrap().push((*event.metadata().level(), fields));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn field<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap()
}

/// Level `warn`, `event_id`, `event_type`, `subscription_id`, `attempt`, `max_attempts`, `delay_ms`, `error`: in both ways of
/// dispatch.
#[tokio::test(start_paused = true)]
async fn every_retry_writes_a_line_with_all_of_its_fields() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let world = World::new().await;
    world.sequential("seq").await;
    world.handler("mail", exact("*"), boom).await;
    let alone = world.publish("order.created", "x").await;
    world.until("dead", async |world| world.count("bus.sub.mail", State::Dead).await == 1).await;
    let queue = world.bus.topics().await.unwrap()[0].sequence_queue();
    let in_line = world.publish("seq", "x").await;
    world.until("dead", async |world| world.count(queue.as_str(), State::Dead).await == 1).await;

    let lines = lines.0.lock().unwrap();
    assert_eq!(lines.len(), 6, "three retries each: {lines:?}");
    for (n, (level, fields)) in lines.iter().enumerate() {
        let (id, kind) = if n < 3 { (alone.id, "order.created") } else { (in_line.id, "seq") };
        assert_eq!(*level, tracing::Level::WARN);
        assert_eq!(field(fields, "event_id"), id.to_string());
        assert_eq!(field(fields, "event_type"), kind);
        assert_eq!(field(fields, "subscription_id"), "mail");
        assert_eq!(field(fields, "attempt"), (n % 3 + 1).to_string());
        assert_eq!(field(fields, "max_attempts"), "4");
        assert_eq!(field(fields, "delay_ms"), ["1000", "2000", "4000"][n % 3]);
        assert!(field(fields, "error").ends_with("boom"));
    }
}

/// Total retries, successes after a retry and deaths, for each type of event; and how long deliveries took.
#[tokio::test(start_paused = true)]
async fn retries_successes_and_deaths_are_counted_for_each_type() {
    let world = World::new().await;
    world
        .handler("mail", exact("*"), |seen| match (seen.body.as_str(), seen.attempt) {
            ("dies", _) | ("recovers", 1 | 2) => fail("x"),
            _ => Ok(()),
        })
        .await;
    world.publish_all("order.created", ["dies", "recovers", "fine"]).await;
    world.publish("other", "fine").await;
    world.drained(&["bus.sub.mail"]).await;
    let retries = world.broker.retries();
    let (_, orders) = retries.iter().find(|(kind, _)| kind == "order.created").unwrap();
    assert_eq!((orders.retries, orders.succeeded_after_retry, orders.died), (3 + 2, 1, 1));
    assert_eq!(orders.succeeded(), Some(0.5));
    let mut text = world.broker.metrics_text().await.unwrap();
    world.bus.add_metrics(&mut text);
    for line in [
        "redrive_type_retries_total{type=\"order.created\"} 5",
        "redrive_type_succeeded_after_retry_total{type=\"order.created\"} 1",
        "redrive_type_died_total{type=\"order.created\"} 1",
        "redrive_published_total 4",
        "redrive_published_deliveries_total 4",
        "redrive_delivery_attempts_total{subscription=\"mail\",outcome=\"delivered\"} 3",
        "redrive_delivery_attempts_total{subscription=\"mail\",outcome=\"failed\"} 6",
        "redrive_delivery_seconds_count{subscription=\"mail\"} 3",
        "redrive_subscriptions{target=\"handler\",state=\"active\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(text.matches("# EOF").count(), 1);
    assert!(text.ends_with("# EOF\n"));
}
