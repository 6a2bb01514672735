//! Who gets an event, and how often.

use std::num::NonZeroU64;

use redrive_bus::{HeaderFilter, NewEvent, SubscriptionSettings};
use redrive_core::message::{DedupKey, State};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::topic::Topic;
use redrive_store::{CreateQueue, UpdateQueue};

use crate::dispatch::id;
use crate::world::{World, event, event_with, exact, fine};

#[tokio::test(start_paused = true)]
async fn an_event_reaches_everybody_whose_pattern_matches_and_nobody_else() {
    let world = World::new().await;
    for (name, pattern) in [
        ("all", "*"),
        ("orders", "orders.*"),
        ("deep", "orders.**"),
        ("created", "*.created"),
        ("eu", "orders.eu.*"),
    ] {
        world.handler(name, exact(pattern), fine).await;
    }
    assert_eq!(world.publish("orders.created", "x").await.subscriptions, 4);
    assert_eq!(world.publish("orders.eu.created", "y").await.subscriptions, 3);
    assert_eq!(world.publish("payments", "z").await.subscriptions, 1);
    world.until("all", async |world| world.log.len() == 8).await;
    let got = |name: &str| {
        let mut bodies: Vec<String> = world.log.of(name).into_iter().map(|seen| seen.body).collect();
        bodies.sort_unstable();
        bodies.concat()
    };
    assert_eq!(["all", "orders", "deep", "created", "eu"].map(got), ["xyz", "x", "xy", "x", "y"]);
}

#[tokio::test(start_paused = true)]
async fn a_filter_on_headers_leaves_out_the_rest() {
    let world = World::new().await;
    let filter = HeaderFilter::new([("region".to_owned(), vec!["eu".to_owned(), "uk".to_owned()])]).unwrap();
    world.handler("europe", SubscriptionSettings { filter, ..exact("a") }, fine).await;
    let topic: Topic = "a".parse().unwrap();
    let events = vec![event_with("1", &[("region", "eu")]), event_with("2", &[("region", "us")]), event("3")];
    let published = world.bus.publish(&topic, events).await.unwrap();
    let subscriptions: Vec<usize> = published.iter().map(|one| one.as_ref().unwrap().subscriptions).collect();
    assert_eq!(subscriptions, [1, 0, 0]);
    world.drained(&["bus.sub.europe"]).await;
    assert_eq!(world.log.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_event_of_the_same_dedup_key_is_the_first() {
    let world = World::new().await;
    world.queue_subscription("one", "a", "q1").await;
    world.queue_subscription("two", "*", "q2").await;
    let topic: Topic = "a".parse().unwrap();
    let keyed = || NewEvent { dedup_key: Some(DedupKey::new("k").unwrap()), ..event("x") };
    let first = world.bus.publish(&topic, vec![keyed()]).await.unwrap().pop().unwrap().unwrap();
    let again = world.bus.publish(&topic, vec![keyed()]).await.unwrap().pop().unwrap().unwrap();
    assert!(!first.duplicate && again.duplicate);
    assert_eq!(first.id, again.id);
    assert_eq!((world.count("q1", State::Ready).await, world.count("q2", State::Ready).await), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn who_subscribes_later_gets_later_events_only() {
    let world = World::new().await;
    world.publish("a", "before").await;
    world.handler("mail", exact("a"), fine).await;
    world.publish("a", "after").await;
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.of("mail").iter().map(|seen| seen.body.as_str()).collect::<Vec<_>>(), ["after"]);
}

/// Two subscriptions that go to one queue bring an event there once.
#[tokio::test(start_paused = true)]
async fn a_queue_gets_an_event_once() {
    let world = World::new().await;
    world.queue_subscription("one", "a.*", "q").await;
    world.queue_subscription("two", "*", "q").await;
    world.publish("a.b", "x").await;
    assert_eq!(world.count("q", State::Ready).await, 1);
}

/// A plain queue that is full or gone stands in nobody's way: the others have the event at once, and it when it can.
#[tokio::test(start_paused = true)]
async fn a_full_or_missing_queue_delays_nobody_but_itself() {
    let world = World::new().await;
    world.queue_subscription("full", "a", "full").await;
    world.queue_subscription("gone", "a", "gone").await;
    world.queue_subscription("good", "a", "good").await;
    let name = QueueName::new("full").unwrap();
    let config = QueueConfig { max_waiting: Some(NonZeroU64::new(1)), ..QueueConfig::default() };
    world.broker.update_queue(UpdateQueue { name: name.clone(), config, expected: None }).await.unwrap();
    world.publish("a", "1").await;
    let gone = QueueName::new("gone").unwrap();
    let delete = redrive_store::DeleteQueue { name: gone.clone(), force: true };
    world.broker.delete_queue(delete).await.unwrap();
    let second = world.publish("a", "2").await;
    assert_eq!((second.subscriptions, world.count("good", State::Ready).await), (3, 2));
    assert_eq!(world.count("full", State::Ready).await, 1);
    let config = QueueConfig::default();
    world.broker.update_queue(UpdateQueue { name, config: config.clone(), expected: None }).await.unwrap();
    world.broker.create_queue(CreateQueue { name: gone, config }).await.unwrap();
    world
        .until("brought", async |world| {
            world.count("full", State::Ready).await == 2 && world.count("gone", State::Ready).await == 1
        })
        .await;
    world.drained(&["bus.relay"]).await;
}

/// More kinds of events than a queue can tell apart are no reason to lose one.
#[tokio::test(start_paused = true)]
async fn more_types_than_a_queue_tells_apart_are_delivered_all_the_same() {
    let world = World::new().await;
    world.handler("all", exact("**"), fine).await;
    world.bus.stop_handling(&id("all")).await;
    for n in 0..1_030 {
        world.publish(&format!("topic.{n}"), "x").await;
    }
    world.attach("all", fine).await;
    world.drained(&["bus.sub.all"]).await;
    assert_eq!(world.log.len(), 1_030);
}

#[tokio::test(start_paused = true)]
async fn headers_of_the_bus_are_its_own() {
    let world = World::new().await;
    let topic: Topic = "a".parse().unwrap();
    let refused =
        world.bus.publish(&topic, vec![event_with("x", &[("redrive-topic", "b")])]).await.unwrap_err();
    assert_eq!(refused.code(), "INVALID_ARGUMENT");
    assert!(refused.to_string().contains("headers"), "{refused}");
    let many = (0..1_001).map(|_| event("x")).collect();
    let refused = world.bus.publish(&topic, many).await.unwrap_err();
    assert!(refused.to_string().contains("events: is 1001 items long, the limit is 1000"), "{refused}");
}

/// Batches larger than one step of the store, by items and by bytes, and with an event that is refused among them.
#[tokio::test(start_paused = true)]
async fn a_large_batch_is_published_whole() {
    let world = World::new().await;
    for n in 0..3 {
        world.queue_subscription(&format!("s{n}"), "a", &format!("q{n}")).await;
    }
    let bodies: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    let published = world.publish_all("a", bodies.iter().map(String::as_str)).await;
    assert_eq!(published.len(), 1_000);
    let large = "x".repeat(1_000_000);
    world.publish_all("a", (0..20).map(|_| large.as_str())).await;
    for n in 0..3 {
        assert_eq!(world.count(&format!("q{n}"), State::Ready).await, 1_020);
    }
}
