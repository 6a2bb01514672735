//! An outage of ten minutes with fifty thousand events, with and without a breaker.

use redrive_bus::SubscriptionSettings;
use redrive_core::message::State;

use crate::world::{World, fail, settings, with_breaker};

const EVENTS: usize = 50_000;
const OUTAGE_MS: u64 = 600_000;
/// When the target goes down, and events begin to come.
const DOWN_FROM: u64 = 60_000;

/// What came of it.
#[derive(Debug)]
struct Report {
    attempts: usize,
    in_outage: usize,
    delivered: usize,
    dead: u64,
    /// How many attempts began in each of the first hundred milliseconds after the target came back, and in all of the first.
    first_second: Vec<usize>,
    changes: u64,
}

/// Events come evenly over the outage and the minute before it. A call takes 10 ms of the target's time, whatever comes of it.
async fn run(settings: SubscriptionSettings) -> Report {
    let world = World::new().await;
    let down = DOWN_FROM..DOWN_FROM + OUTAGE_MS;
    let settings = SubscriptionSettings { max_in_flight: std::num::NonZeroU32::new(1_000), ..settings };
    world
        .handler("target", settings, move |seen| {
            if down.contains(&seen.at) { fail("connection refused") } else { Ok(()) }
        })
        .await;
    let steps = 250;
    let each: Vec<String> = (0..EVENTS / steps).map(|n| n.to_string()).collect();
    let total = DOWN_FROM + OUTAGE_MS;
    for step in 0..steps {
        world.pass_to(total * step as u64 / steps as u64).await;
        world.publish_all("a", each.iter().map(String::as_str)).await;
    }
    world.drained(&["bus.sub.target"]).await;
    let log = world.log.lock();
    let up = DOWN_FROM + OUTAGE_MS;
    let mut first_second = vec![0; 10];
    for seen in log.iter().filter(|seen| seen.at >= up) {
        if let Some(slot) = first_second.get_mut(usize::try_from((seen.at - up) / 10_000).unwrap()) {
            *slot += 1;
        }
    }
    let in_outage = log.iter().filter(|seen| (DOWN_FROM..up).contains(&seen.at)).count();
    let delivered = log.iter().filter(|seen| !(DOWN_FROM..up).contains(&seen.at)).count();
    let attempts = log.len();
    drop(log);
    let dead = world.count("bus.sub.target", State::Dead).await;
    let metrics = world.broker.metrics_text().await.unwrap();
    let changes = metrics
        .lines()
        .find_map(|line| {
            line.strip_prefix("redrive_breaker_changes_total{queue=\"bus.sub.target\",to=\"open\"} ")
        })
        .map_or(0, |count| count.parse().unwrap());
    Report { attempts, in_outage, delivered, dead, first_second, changes }
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_ten_minutes_kills_nothing_behind_a_breaker() {
    let with = run(with_breaker(settings("a"))).await;
    let without = run(SubscriptionSettings { breaker: Some(None), ..settings("a") }).await;
    println!(
        "\n{:<44}{:>14}{:>14}",
        format!("{EVENTS} events, {OUTAGE_MS} ms of outage"),
        "breaker",
        "no breaker"
    );
    let rows = [
        ("attempts in all", with.attempts, without.attempts),
        ("attempts during the outage", with.in_outage, without.in_outage),
        ("delivered", with.delivered, without.delivered),
        ("dead of the outage", usize::try_from(with.dead).unwrap(), usize::try_from(without.dead).unwrap()),
        ("times the breaker opened", usize::try_from(with.changes).unwrap(), 0),
    ];
    for (name, one, other) in rows {
        println!("{name:<44}{one:>14}{other:>14}");
    }
    println!("begun in each 10 s after it: {:?} / {:?}", with.first_second, without.first_second);
    assert!(with.changes >= 1, "the breaker opened");
    assert_eq!(
        (with.delivered, with.dead),
        (EVENTS, 0),
        "everything is delivered, and nothing dies of the outage"
    );
    assert!(with.in_outage < 1_200, "no attempt is burned on a target that is down: {}", with.in_outage);
    assert!(without.dead > 40_000 && without.in_outage > 100_000, "so the test can fail: {without:?}");
}
