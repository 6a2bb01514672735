//! The breaker of a subscription: requirement 001, "Circuit breaker" and its state machine.

use redrive_broker::{Happening, Told};
use redrive_core::message::State;
use redrive_core::policy::BreakerState;
use redrive_core::queue::QueueName;

use crate::dispatch::id;
use crate::world::{World, exact, fail, fine, with_breaker};

fn queue() -> QueueName {
    QueueName::new("bus.sub.mail").unwrap()
}

async fn state(world: &World) -> BreakerState {
    world.broker.breaker(&queue()).await.unwrap().unwrap().state
}

/// closed → open at more than half of at least four; open → half-open after 30 s; a probe that fails opens it anew, one that
/// succeeds closes it. Nothing is handed out while it is open, and every change is told.
#[tokio::test(start_paused = true)]
async fn the_state_machine_of_requirement_001() {
    let world = World::new().await;
    let mut told = world.broker.watch(None);
    // The target is down for the first 50 seconds.
    world
        .handler(
            "mail",
            with_breaker(exact("a")),
            |seen| {
                if seen.at < 50_000 { fail("down") } else { Ok(()) }
            },
        )
        .await;
    for n in 0..3 {
        world.publish("a", &n.to_string()).await;
        world
            .until("tried", async |world| world.log.of("mail").iter().any(|seen| seen.body == n.to_string()))
            .await;
        assert_eq!(state(&world).await, BreakerState::Closed, "three samples are too few");
    }
    world.publish("a", "3").await;
    world.until("open", async |world| state(world).await == BreakerState::Open).await;
    let opened = *world.log.times("mail").last().unwrap();
    assert!(opened < 1_000, "{opened}");
    let before = world.log.len();
    world.pass_to(opened + 29_900).await;
    assert_eq!(world.log.len(), before, "nothing is handed out, and no attempt is burned");
    world.drained(&["bus.sub.mail"]).await;
    let probes: Vec<u64> = world.log.times("mail").into_iter().filter(|at| *at > opened).collect();
    assert!((29_990..30_010).contains(&(probes[0] - opened)), "the first probe: {probes:?}");
    assert!(
        (29_990..30_010).contains(&(probes[1] - probes[0])),
        "it failed, and the next one waits: {probes:?}"
    );
    assert_eq!(state(&world).await, BreakerState::Closed, "the second one succeeded");
    assert_eq!(world.count("bus.sub.mail", State::Dead).await, 0);
    let mut changes = Vec::new();
    while changes.len() < 5 {
        if let Told::Event(event) = told.next().await
            && let Happening::Breaker(change) = event.what
        {
            changes.push((change.from.as_str(), change.to.as_str()));
        }
    }
    let expected = [
        ("closed", "open"),
        ("open", "half_open"),
        ("half_open", "open"),
        ("open", "half_open"),
        ("half_open", "closed"),
    ];
    assert_eq!(changes, expected);
    let metrics = world.broker.metrics_text().await.unwrap();
    for line in [
        "redrive_breaker_changes_total{queue=\"bus.sub.mail\",to=\"open\"} 2",
        "redrive_breaker_state{queue=\"bus.sub.mail\",state=\"closed\"} 1",
        "redrive_breaker_state{queue=\"bus.sub.mail\",state=\"open\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

/// One poison message among good ones is one failure among many: it never opens the breaker, and dies of its own cap.
#[tokio::test(start_paused = true)]
async fn one_poison_message_never_opens_it() {
    let world = World::new().await;
    world
        .handler("mail", with_breaker(exact("a")), |seen| {
            if seen.body == "poison" { fail("poison") } else { Ok(()) }
        })
        .await;
    world.publish("a", "poison").await;
    for n in 0..60 {
        world.publish("a", &n.to_string()).await;
        world.until("a second", async |world| world.elapsed() >= (n + 1) * 1_000).await;
        assert_eq!(state(&world).await, BreakerState::Closed);
    }
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.len(), 60 + 4);
    assert_eq!(world.left("bus.sub.mail").await.get("dead"), Some(&1));
}

/// An operator opens and closes it; an open one makes events wait and charges nobody.
#[tokio::test(start_paused = true)]
async fn an_operator_trips_and_resets_it() {
    let world = World::new().await;
    world.handler("mail", with_breaker(exact("a")), fine).await;
    world.broker.set_breaker(&queue(), true).await.unwrap();
    world.publish("a", "x").await;
    world.until("a while", async |world| world.elapsed() > 10_000).await;
    assert_eq!((world.log.len(), state(&world).await), (0, BreakerState::Open));
    world.broker.set_breaker(&queue(), false).await.unwrap();
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.of("mail")[0].attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_has_a_breaker_unless_it_is_switched_off() {
    let world = World::new().await;
    let plain = crate::world::settings("a");
    world.handler("mail", plain, fine).await;
    assert_eq!(state(&world).await, BreakerState::Closed);
    world.handler("other", exact("a"), fine).await;
    let other = QueueName::new("bus.sub.other").unwrap();
    assert!(world.broker.breaker(&other).await.unwrap().is_none());
    assert!(world.bus.subscription(&id("other")).await.unwrap().breaker().is_none());
}
