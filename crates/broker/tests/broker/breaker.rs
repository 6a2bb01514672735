//! Breakers, probes, and the cap on retries in flight.

use std::num::NonZeroU32;

use redrive_broker::{Happening, Obstacle};
use redrive_core::policy::{BreakerConfig, BreakerState};
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use redrive_store::{Filter, ListRequest};

use crate::world::{World, done, event, retry};

#[tokio::test]
async fn a_breaker_opens_probes_and_closes() {
    let breaker = Some(Some(BreakerConfig::default()));
    let world = World::with(QueueConfig { breaker, ..retry(Millis::ZERO, 100) }).await;
    let mut watch = world.broker.watch(None);
    world.put(6).await;
    for delivery in world.lease(4).await {
        world.nack(&delivery).await;
    }
    let change = event(&mut watch, "breaker").await;
    assert!(matches!(change.what, Happening::Breaker(change) if change.to == BreakerState::Open));
    assert!(world.lease(10).await.is_empty(), "nothing while it is open");
    let attempts: u32 = {
        let page = world.broker.list(ListRequest::new(world.queue.clone(), Filter::default())).await.unwrap();
        page.messages.iter().map(|message| message.progress.attempts).sum()
    };
    assert_eq!(attempts, 4, "no attempt is burned");
    let id =
        world.broker.list(ListRequest::new(world.queue.clone(), Filter::default())).await.unwrap().messages
            [0]
        .id();
    let why = world.broker.why(&world.queue, id).await.unwrap();
    assert!(why.obstacles.iter().any(|obstacle| matches!(obstacle, Obstacle::Breaker { .. })), "{why:?}");
    let poll = world.poll(world.call(10)).await;
    world.clock.advance(Millis::from_secs(30));
    let probe = done(poll).await;
    assert_eq!(probe.len(), 1, "one probe, whatever was asked for");
    assert_eq!(probe[0].message.progress.attempts, 1, "one that has not failed yet");
    assert!(world.lease(10).await.is_empty(), "one at a time");
    let poll = world.poll(world.call(10)).await;
    world.ack(&probe[0]).await;
    let first = done(poll).await;
    assert_eq!(first.len(), 1, "the ramp starts at one");
    world.ack(&first[0]).await;
    assert_eq!(world.lease(10).await.len(), 2, "and doubles");
}

#[tokio::test]
async fn a_probe_that_finds_nothing_frees_the_slot() {
    let breaker = Some(Some(BreakerConfig::default()));
    let world = World::with(QueueConfig { breaker, ..retry(Millis::ZERO, 1) }).await;
    world.put(4).await;
    for delivery in world.lease(4).await {
        world.nack(&delivery).await;
    }
    world.clock.advance(Millis::from_secs(30));
    assert!(world.lease(1).await.is_empty());
    world.put(1).await;
    assert_eq!(world.lease(1).await.len(), 1);
}

#[tokio::test]
async fn the_end_of_a_retry_makes_room_under_the_cap() {
    let config = QueueConfig { max_retries_in_flight: Some(NonZeroU32::new(1)), ..retry(Millis::ZERO, 9) };
    let world = World::with(config).await;
    world.put(2).await;
    for delivery in world.lease(2).await {
        world.nack(&delivery).await;
    }
    let first = world.lease(2).await;
    assert_eq!(first.len(), 1);
    let poll = world.poll(world.call(1)).await;
    world.ack(&first[0]).await;
    assert_eq!(done(poll).await.len(), 1);
}
