//! Each subscription by itself: retries, time-outs, what a handler may say, and who waits for whom.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::FutureExt;
use redrive_broker::pause;
use redrive_bus::{HandlerFailure, Incoming, Outcome, SubscriptionSettings};
use redrive_core::message::{DeadReason, State};
use redrive_core::policy::{Jitter, RetryOverride};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Millis;

use crate::world::{World, boom, exact, fail, fine, settings};

/// Requirement 001, the table of delays: 0, 1, 2, 4 s before attempts 1 to 4, and no fifth one.
#[tokio::test(start_paused = true)]
async fn attempts_come_at_the_times_of_the_table_and_end_at_the_cap() {
    let world = World::new().await;
    world.handler("mail", exact("order.*"), boom).await;
    world.publish("order.created", "a").await;
    world.until("dead", async |world| world.count("bus.sub.mail", State::Dead).await == 1).await;
    assert_eq!(world.log.times("mail"), [0, 1_000, 3_000, 7_000]);
    let (dead, _) = world.bus.dead(&id("mail"), None, redrive_store::Limit::MAX).await.unwrap();
    assert_eq!(dead[0].reason, DeadReason::MaxAttempts);
    assert_eq!(dead[0].message.history.failures.len(), 4, "the history of every attempt is kept");
    assert!(dead[0].message.history.failures.iter().all(|failure| failure.error.as_str() == "boom"));
}

/// Requirement 001: the delay is capped; with base 1 s, multiplier 2 and max 30 s attempt 7 comes 30 s after attempt 6.
#[tokio::test(start_paused = true)]
async fn delays_stop_growing_at_their_cap() {
    let world = World::new().await;
    let retry = RetryOverride { max_attempts: Some(NonZeroU32::new(8)), ..exact("a").retry };
    world.handler("mail", SubscriptionSettings { retry, ..exact("a") }, boom).await;
    world.publish("a", "x").await;
    world.until("dead", async |world| world.count("bus.sub.mail", State::Dead).await == 1).await;
    let times = world.log.times("mail");
    let between: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(between, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
}

/// Requirement 001, per-subscription override: `{ maxRetries: 5, baseDelayMs: 500 }` merges with the defaults.
#[tokio::test(start_paused = true)]
async fn a_partial_override_changes_what_it_names_and_nothing_else() {
    let world = World::new().await;
    let retry = RetryOverride {
        max_attempts: Some(NonZeroU32::new(6)),
        base_delay: Some(Millis::new(500)),
        ..exact("a").retry
    };
    world.handler("five", SubscriptionSettings { retry, ..exact("order.*") }, boom).await;
    world.handler("plain", exact("order.*"), boom).await;
    world.publish("order.created", "a").await;
    world.drained(&["bus.sub.five", "bus.sub.plain"]).await;
    assert_eq!(world.log.times("five"), [0, 500, 1_500, 3_500, 7_500, 15_500]);
    assert_eq!(world.log.times("plain"), [0, 1_000, 3_000, 7_000], "the other one keeps its own");
}

/// Requirement 001: ± 10 % of jitter, spread and never outside.
#[tokio::test(start_paused = true)]
async fn retries_are_spread_by_a_tenth() {
    let world = World::new().await;
    let two = RetryOverride { max_attempts: Some(NonZeroU32::new(2)), ..RetryOverride::default() };
    let spread = SubscriptionSettings { retry: two, breaker: Some(None), ..settings("a") };
    let spread = SubscriptionSettings { max_in_flight: NonZeroU32::new(1_000), ..spread };
    world.handler("mail", spread, boom).await;
    let bodies: Vec<String> = (0..500).map(|n| n.to_string()).collect();
    world.publish_all("a", bodies.iter().map(String::as_str)).await;
    world.drained(&["bus.sub.mail"]).await;
    let seen = world.log.of("mail");
    let at = |attempt: u32, body: &str| {
        seen.iter().find(|one| one.attempt == attempt && one.body == body).map(|one| one.at).unwrap()
    };
    let delays: Vec<u64> = bodies.iter().map(|body| at(2, body) - at(1, body)).collect();
    assert!(delays.iter().all(|delay| (900..=1_100).contains(delay)), "{delays:?}");
    let early = delays.iter().filter(|delay| **delay < 950).count();
    let late = delays.iter().filter(|delay| **delay > 1_050).count();
    // A quarter each, give or take five deviations.
    assert!((77..=173).contains(&early) && (77..=173).contains(&late), "{early} early, {late} late");
    assert_eq!(world.bus.subscription(&id("mail")).await.unwrap().policy().jitter, Jitter::Proportional(100));
}

/// Requirement 001: a handler has 30 s, or what its subscription says. One that takes longer is cancelled: it is dropped where
/// it stands, and what it would have said is not heard.
#[tokio::test(start_paused = true)]
async fn a_handler_that_takes_too_long_is_cancelled_and_its_late_result_ignored() {
    struct Dropped(Arc<AtomicU32>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let world = World::new().await;
    let timeout = SubscriptionSettings { timeout: Some(Millis::new(250)), ..exact("a") };
    world.handler("quick", timeout, fine).await;
    world.handler("default", exact("a"), fine).await;
    let (dropped, ended) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    for name in ["quick", "default"] {
        let (dropped, ended, log) = (Arc::clone(&dropped), Arc::clone(&ended), world.log.clone());
        let clock = Arc::clone(&world.clock);
        let slow = move |incoming: Incoming| {
            let (guard, ended) = (Dropped(Arc::clone(&dropped)), Arc::clone(&ended));
            log.lock().push(crate::world::Seen {
                subscription: incoming.subscription.as_str().to_owned(),
                event: incoming.event.id,
                body: String::new(),
                attempt: incoming.attempt,
                at: redrive_broker::Clock::now(&*clock).as_millis() - crate::world::START,
            });
            async move {
                let _guard = guard;
                pause(Millis::from_secs(40)).await;
                ended.fetch_add(1, Ordering::SeqCst);
                Ok(())
            }
            .boxed()
        };
        world.bus.handle(&id(name), Arc::new(slow)).await.unwrap();
    }
    world.publish("a", "x").await;
    world.drained(&["bus.sub.quick", "bus.sub.default"]).await;
    assert_eq!(world.log.times("quick"), [0, 1_250, 3_500, 7_750], "250 ms, and then the backoff");
    assert_eq!(world.log.times("default"), [0, 31_000, 63_000, 97_000], "30 s, and then the backoff");
    assert_eq!((dropped.load(Ordering::SeqCst), ended.load(Ordering::SeqCst)), (8, 0));
    let (dead, _) = world.bus.dead(&id("quick"), None, redrive_store::Limit::MAX).await.unwrap();
    assert_eq!(dead[0].message.history.last_error.as_ref().unwrap().as_str(), "timed out after 250 ms");
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_ask_for_time_bury_or_panic() {
    let world = World::new().await;
    world
        .handler("asks", exact("a"), |seen| match seen.attempt {
            1 => Err(HandlerFailure::Retry { error: "busy".into(), after: Some(Millis::from_secs(9)) }),
            _ => Ok(()),
        })
        .await;
    world.handler("buries", exact("a"), |_| Err(HandlerFailure::Bury { error: "never".into() })).await;
    world.handler("panics", exact("a"), |seen| if seen.attempt < 3 { panic!("oh") } else { Ok(()) }).await;
    world.publish("a", "x").await;
    world.drained(&["bus.sub.asks", "bus.sub.buries", "bus.sub.panics"]).await;
    assert_eq!(world.log.times("asks"), [0, 9_000]);
    assert_eq!(world.log.times("buries"), [0]);
    assert_eq!(world.left("bus.sub.buries").await.get("dead"), Some(&1));
    assert_eq!(world.log.times("panics"), [0, 1_000, 3_000]);
    assert_eq!(world.left("bus.sub.panics").await.len(), 0);
    let attempts = world.bus.attempts(&id("panics"));
    assert_eq!(attempts.len(), 3);
    assert_eq!(attempts[0].outcome, Outcome::Delivered, "the newest first");
    assert_eq!(attempts[2].outcome, Outcome::Failed("the handler panicked: oh".into()));
}

/// In independent mode nobody waits for anybody: one that hangs and one that fails do not delay the third by a moment.
#[tokio::test(start_paused = true)]
async fn a_slow_and_a_failing_subscription_delay_nobody_else() {
    let world = World::new().await;
    world.handler("good", exact("a"), fine).await;
    world.handler("bad", exact("a"), boom).await;
    world.handler("hangs", exact("a"), fine).await;
    let hangs = |_: Incoming| std::future::pending().boxed();
    world.bus.handle(&id("hangs"), Arc::new(hangs)).await.unwrap();
    for n in 0..100 {
        world.publish("a", &n.to_string()).await;
        let count = n + 1;
        world.until("delivered", async |world| world.log.of("good").len() == count).await;
        assert_eq!(world.log.of("good").last().unwrap().attempt, 1);
    }
    let started = world.log.of("good");
    assert!(started.iter().all(|seen| seen.at < 5_000), "{:?}", started.last());
}

#[tokio::test(start_paused = true)]
async fn no_more_are_under_way_than_a_subscription_allows() {
    let world = World::new().await;
    let three = SubscriptionSettings { max_in_flight: NonZeroU32::new(3), ..exact("a") };
    world.handler("mail", three, fine).await;
    let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let counts = {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        move |_: Incoming| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                pause(Millis::new(100)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            }
            .boxed()
        }
    };
    world.bus.handle(&id("mail"), Arc::new(counts)).await.unwrap();
    let bodies: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    world.publish_all("a", bodies.iter().map(String::as_str)).await;
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
    assert!((1_000..1_500).contains(&world.elapsed()), "{}", world.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_under_way_when_the_process_ended_comes_once_more() {
    let world = World::new().await;
    world.handler("mail", exact("a"), fine).await;
    let hangs = |_: Incoming| std::future::pending().boxed();
    world.bus.handle(&id("mail"), Arc::new(hangs)).await.unwrap();
    world.publish("a", "x").await;
    world.until("leased", async |world| world.count("bus.sub.mail", State::Leased).await == 1).await;
    let world = world.crash().await;
    world.attach("mail", fine).await;
    world.drained(&["bus.sub.mail"]).await;
    let seen = world.log.of("mail");
    assert_eq!((seen.len(), seen[0].attempt), (1, 2), "the attempt that was lost was charged");
}

/// A bus that ends gives back what it cannot finish: no attempt is burned.
#[tokio::test(start_paused = true)]
async fn what_is_under_way_when_the_bus_stops_is_given_back_unharmed() {
    let world = World::new().await;
    world.handler("mail", exact("a"), fine).await;
    let hangs = |_: Incoming| std::future::pending().boxed();
    world.bus.handle(&id("mail"), Arc::new(hangs)).await.unwrap();
    world.publish("a", "x").await;
    world.until("leased", async |world| world.count("bus.sub.mail", State::Leased).await == 1).await;
    let world = world.restart().await;
    assert_eq!(world.left("bus.sub.mail").await.get("ready"), Some(&1));
    world.attach("mail", fine).await;
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.of("mail")[0].attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn events_wait_for_a_handler_that_is_not_there_and_are_not_charged() {
    let world = World::new().await;
    world.handler("mail", exact("a"), |seen| if seen.body == "no" { fail("no") } else { Ok(()) }).await;
    world.bus.stop_handling(&id("mail")).await;
    world.publish("a", "x").await;
    world.until("a day", async |world| world.elapsed() > 86_400_000).await;
    assert_eq!(world.log.len(), 0);
    world.attach("mail", fine).await;
    world.drained(&["bus.sub.mail"]).await;
    assert_eq!(world.log.of("mail")[0].attempt, 1);
}

pub(crate) fn id(text: &str) -> SubscriptionId {
    SubscriptionId::new(text).unwrap()
}
