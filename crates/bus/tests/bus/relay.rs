//! What one step cannot do: very many subscriptions, and events of the past.

use redrive_bus::{Dispatch, NewSubscription, NewTarget, TopicConfig};
use redrive_core::limits::FAN_OUT_MAX;
use redrive_core::message::State;
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};

use crate::dispatch::id;
use crate::world::{START, World, exact, fine, settings};

async fn retain(world: &World, pattern: &str, time: Millis) {
    let config = TopicConfig {
        pattern: pattern.parse().unwrap(),
        dispatch: Dispatch::Independent,
        retain: Some(time),
    };
    world.bus.set_topic(config, None).await.unwrap();
}

/// An event for more subscriptions than one step reaches is brought to them by the relay, over the end of a process in the
/// middle of it.
#[tokio::test(start_paused = true)]
async fn an_event_for_very_many_reaches_all_of_them() {
    let world = World::new().await;
    let many = FAN_OUT_MAX + 200;
    for n in 0..many {
        let new = NewSubscription {
            id: Some(id(&format!("s{n}"))),
            settings: settings("a"),
            target: NewTarget::Handler,
            replay_from: None,
        };
        world.bus.create_subscription(new).await.unwrap();
    }
    let published = world.publish("a", "x").await;
    assert_eq!(published.subscriptions, many);
    let world = world.crash().await;
    world.drained(&["bus.relay"]).await;
    for n in 0..many {
        assert_eq!(world.count(&format!("bus.sub.s{n}"), State::Ready).await, 1, "s{n}");
    }
}

/// A large event for several hundred is more than one step may carry, too.
#[tokio::test(start_paused = true)]
async fn an_event_of_too_many_bytes_in_all_is_relayed() {
    let world = World::new().await;
    for n in 0..20 {
        world.queue_subscription(&format!("s{n}"), "a", &format!("q{n}")).await;
    }
    world.publish("a", &"x".repeat(1_000_000)).await;
    world.drained(&["bus.relay"]).await;
    for n in 0..20 {
        assert_eq!(world.count(&format!("q{n}"), State::Ready).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_retained_is_replayed_from_a_time() {
    let world = World::new().await;
    retain(&world, "orders.**", Millis::from_days(1)).await;
    for n in 0..400 {
        world.pass_to(n * 1_000).await;
        world.publish("orders.created", &n.to_string()).await;
        world.publish("payments", "never kept").await;
    }
    let new = NewSubscription {
        id: Some(id("late")),
        settings: exact("orders.*"),
        target: NewTarget::Handler,
        replay_from: Some(Timestamp::from_millis(START + 100_000)),
    };
    world.bus.create_subscription(new).await.unwrap();
    world.attach("late", fine).await;
    world.publish("orders.created", "live").await;
    world.drained(&["bus.relay", "bus.sub.late"]).await;
    let mut bodies: Vec<String> = world.log.of("late").into_iter().map(|seen| seen.body).collect();
    bodies.sort_unstable();
    let mut expected: Vec<String> = (100..400).map(|n| n.to_string()).chain(["live".to_owned()]).collect();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
    assert!(world.bus.replays(&id("late")).await.unwrap().is_empty(), "it is over");
}

#[tokio::test(start_paused = true)]
async fn a_replay_goes_on_after_the_end_of_the_process_and_can_be_ended() {
    let world = World::new().await;
    retain(&world, "a", Millis::from_days(1)).await;
    let bodies: Vec<String> = (0..700).map(|n| n.to_string()).collect();
    world.publish_all("a", bodies.iter().map(String::as_str)).await;
    world.handler("late", exact("a"), fine).await;
    world.bus.replay(&id("late"), Timestamp::EPOCH).await.unwrap();
    let world = world.crash().await;
    world.attach("late", fine).await;
    world.drained(&["bus.relay", "bus.sub.late"]).await;
    let mut seen: Vec<String> = world.log.of("late").into_iter().map(|seen| seen.body).collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 700, "each at least once");
    // One that waits is ended.
    let replay = world.bus.replay(&id("late"), Timestamp::EPOCH).await.unwrap();
    let ended = world.bus.cancel_replay(&id("late"), replay).await;
    assert!(ended.is_ok() || ended.unwrap_err().code() == "REPLAY_NOT_FOUND");
    world.drained(&["bus.relay", "bus.sub.late"]).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_not_kept() {
    let world = World::new().await;
    retain(&world, "a", Millis::from_secs(3_600)).await;
    world.publish("a", "old").await;
    world.pass_to(7_200_000).await;
    world.publish("a", "new").await;
    world.handler("late", exact("a"), fine).await;
    world.bus.replay(&id("late"), Timestamp::EPOCH).await.unwrap();
    world.drained(&["bus.relay", "bus.sub.late"]).await;
    assert_eq!(world.log.of("late").iter().map(|seen| seen.body.as_str()).collect::<Vec<_>>(), ["new"]);
    assert!(world.broker.get_queue(&QueueName::new("bus.sub.late").unwrap()).await.is_ok());
}
