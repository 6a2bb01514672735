//! An outage of ten minutes with fifty thousand events, with and without a breaker.

use std::num::NonZeroU32;
use std::sync::Arc;

use futures::FutureExt;
use redrive_broker::{Clock, pause};
use redrive_bus::{HandlerFailure, Incoming, SubscriptionSettings};
use redrive_core::message::State;
use redrive_core::policy::{Multiplier, RetryOverride};
use redrive_core::time::Millis;

use crate::dispatch::id;
use crate::world::{START, Seen, World, fine, settings, with_breaker};

const EVENTS: usize = 50_000;
const OUTAGE_MS: u64 = 600_000;
/// How long a call to the target takes, whatever comes of it.
const CALL: Millis = Millis::new(10);
/// How many steps after the outage are looked at, each as long as a call.
const STEPS: usize = 6;

/// What came of it.
#[derive(Debug)]
struct Report {
    during: usize,
    delivered: usize,
    dead: u64,
    opened: u64,
    /// How many calls began in each of the first steps after the first one that succeeded.
    ramp: Vec<usize>,
    /// When everything was over, after the end of the outage.
    over_after: u64,
}

/// Events come evenly from `from` until the end of the outage, which begins at `down`.
async fn run(settings: SubscriptionSettings, down: u64) -> Report {
    let world = World::on_journal().await;
    let up = down + OUTAGE_MS;
    let settings = SubscriptionSettings { max_in_flight: NonZeroU32::new(1_000), ..settings };
    world.handler("target", settings, fine).await;
    let (log, clock) = (world.log.clone(), Arc::clone(&world.clock));
    let target = move |incoming: Incoming| {
        let at = clock.now().as_millis() - START;
        let (event, attempt) = (incoming.event.id, incoming.attempt);
        let subscription = incoming.subscription.as_str().to_owned();
        log.lock().push(Seen { subscription, event, body: String::new(), attempt, at });
        async move {
            pause(CALL).await;
            let refused = HandlerFailure::Retry { error: "connection refused".to_owned(), after: None };
            if (down..up).contains(&at) { Err(refused) } else { Ok(()) }
        }
        .boxed()
    };
    world.bus.handle(&id("target"), Arc::new(target)).await.unwrap();
    let steps = 250;
    let each: Vec<String> = (0..EVENTS / steps).map(|n| n.to_string()).collect();
    for step in 0..steps {
        world.pass_to(up * step as u64 / steps as u64).await;
        world.publish_all("a", each.iter().map(String::as_str)).await;
    }
    world.drained(&["bus.sub.target"]).await;
    let calls: Vec<u64> = world.log.lock().iter().map(|seen| seen.at).collect();
    let back = calls.iter().copied().filter(|at| *at >= up).min().unwrap_or(up);
    let step = |n: usize| {
        let begin = back + n as u64 * CALL.get();
        calls.iter().filter(|at| (begin..begin + CALL.get()).contains(*at)).count()
    };
    let during = calls.iter().filter(|at| (down..up).contains(*at)).count();
    let metrics = world.broker.metrics_text().await.unwrap();
    let opened = metrics.lines().find_map(|line| {
        line.strip_prefix("redrive_breaker_changes_total{queue=\"bus.sub.target\",to=\"open\"} ")
    });
    Report {
        during,
        delivered: calls.len() - during,
        dead: world.count("bus.sub.target", State::Dead).await,
        opened: opened.map_or(0, |count| count.parse().unwrap()),
        ramp: (0..STEPS).map(step).collect(),
        over_after: calls.iter().max().unwrap() - up,
    }
}

fn print(title: &str, with: &Report, without: &Report) {
    println!("\n{title}\n{EVENTS} events, {OUTAGE_MS} ms of outage{:>24}{:>32}", "breaker", "no breaker");
    let number = |value: u64| value.to_string();
    let rows = [
        ("calls during the outage", number(with.during as u64), number(without.during as u64)),
        ("delivered", number(with.delivered as u64), number(without.delivered as u64)),
        ("dead", number(with.dead), number(without.dead)),
        ("times the breaker opened", number(with.opened), number(without.opened)),
        ("all over, ms after the outage", number(with.over_after), number(without.over_after)),
        ("begun in each 10 ms afterwards", format!("{:?}", with.ramp), format!("{:?}", without.ramp)),
    ];
    for (name, one, other) in rows {
        println!("{name:<32}{one:>32}{other:>32}");
    }
}

fn without_breaker(settings: SubscriptionSettings) -> SubscriptionSettings {
    SubscriptionSettings { breaker: Some(None), ..settings }
}

/// The target is met by one call, then by as many as the ramp allows, whatever waits.
fn assert_ramps(report: &Report) {
    assert_eq!(
        report.ramp[..4],
        [1, 1, 2, 8],
        "the probe, and then each success doubles what may be under way"
    );
}

/// With the policy that subscriptions have by default, which gives up after seven seconds: the first events that fail open the
/// breaker, and none dies.
#[tokio::test(start_paused = true)]
async fn behind_a_breaker_nothing_dies_of_ten_minutes_without_a_target() {
    let with = run(with_breaker(settings("a")), 0).await;
    let without = run(without_breaker(settings("a")), 0).await;
    print("down from the beginning, four attempts in seven seconds", &with, &without);
    assert!(with.opened >= 1);
    assert_eq!((with.delivered, with.dead), (EVENTS, 0), "everything is delivered, and nothing dies");
    assert_ramps(&with);
    assert!(without.dead > 45_000 && without.during > 150_000, "so the test can fail: {without:?}");
}

/// The limit of a breaker that opens by a share: after a busy minute it opens late, and a policy that gives up sooner than that
/// loses what failed before it did, and nothing after.
#[tokio::test(start_paused = true)]
async fn what_a_hasty_policy_loses_after_a_busy_minute_it_loses_before_the_breaker_opens() {
    let report = run(with_breaker(settings("a")), 60_000).await;
    println!("\na busy minute before, four attempts in seven seconds, with a breaker: {report:?}");
    assert!(report.opened >= 1);
    assert_eq!(report.delivered as u64 + report.dead, EVENTS as u64);
    // Half of the window's sixty seconds, at an even rate of events.
    let until_open = EVENTS as u64 * 30_000 / (OUTAGE_MS + 60_000);
    assert!((1..until_open).contains(&report.dead), "{} of {until_open}", report.dead);
}

/// With the policy of webhooks, and a busy minute of successes before the outage, which the window still holds when it begins.
#[tokio::test(start_paused = true)]
async fn behind_a_breaker_a_busy_target_is_left_alone_while_it_is_down() {
    let retry = RetryOverride {
        max_attempts: Some(NonZeroU32::new(12)),
        base_delay: Some(Millis::from_secs(5)),
        multiplier: Some(Multiplier::new(3.0).unwrap()),
        max_delay: Some(Some(Millis::from_secs(43_200))),
        ..RetryOverride::default()
    };
    let patient = SubscriptionSettings { retry, ..settings("a") };
    let with = run(with_breaker(patient.clone()), 60_000).await;
    let without = run(without_breaker(patient), 60_000).await;
    print("a busy minute before, twelve attempts over days", &with, &without);
    assert!(with.opened >= 1);
    assert_eq!((with.delivered, with.dead), (EVENTS, 0), "everything is delivered, and nothing dies");
    assert_ramps(&with);
    assert!(
        without.during > 10 * with.during,
        "the target is spared: {} against {}",
        with.during,
        without.during
    );
}
