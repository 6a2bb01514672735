//! claim: who is served, with what, and for how long.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Cause, FairnessKey, State};
use redrive_core::policy::{DelayRule, RetryLane, RetryOverride};
use redrive_core::queue::{Pause, QueueConfig};
use redrive_core::time::Millis;
use redrive_store::{Now, PauseQueue, Store};
use tokio_postgres::Client;

use crate::world::{World, connected, queue};

#[tokio::test]
async fn a_claim_hands_out_the_whole_message_for_as_long_as_is_asked() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '7', type => 'paid', source => 'shop', headers => '{\"a\": \"b\"}')").await;
    let rows = world
        .rows(
            "SELECT convert_from(body, 'UTF8'), content_type, headers ->> 'a', type, message_source, attempts,
                lease_id::text, extract(epoch FROM deadline - leased_at)::int
            FROM redrive.claim('orders', 1, 'worker', 180)",
            &[],
        )
        .await;
    let text = |column: usize| rows[0].get::<_, String>(column);
    assert_eq!([text(0), text(1), text(2), text(3), text(4)], ["7", "application/json", "b", "paid", "shop"]);
    assert_eq!((rows[0].get::<_, i32>(5), rows[0].get::<_, i32>(7)), (1, 180));
    let message = world.only().await;
    let lease = message.lease().unwrap();
    assert_eq!((lease.consumer.as_str(), text(6)), ("worker", lease.id.bits().to_string()));
    assert_eq!(lease.deadline, lease.leased_at.plus(Millis::from_secs(180)));
    world.audit().await;
}

#[tokio::test]
async fn the_message_then_the_queue_say_how_long_where_the_call_does_not() {
    let config = QueueConfig {
        lease_timeout: Some(Millis::from_secs(7)),
        max_lease: Some(Millis::from_secs(60)),
        ..QueueConfig::default()
    };
    let world = World::with(|_| {}, config).await;
    world
        .run("SELECT redrive.enqueue('orders', '1'), redrive.enqueue('orders', '1', lease_timeout => '9 s')")
        .await;
    let seconds =
        "SELECT extract(epoch FROM deadline - leased_at)::int FROM redrive.claim('orders', lease_seconds => ";
    assert_eq!(world.one::<i32>(&format!("{seconds}null)")).await, 7);
    assert_eq!(world.one::<i32>(&format!("{seconds}null)")).await, 9);
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    assert_eq!(world.one::<i32>(&format!("{seconds}180)")).await, 60);
    let (_, message) = world.refused("SELECT redrive.claim('orders', lease_seconds => 0)").await;
    assert_eq!(message, "lease_seconds: must lie between 0.001 and 604800");
    let (_, message) = world.refused("SELECT redrive.claim('orders', 1001)").await;
    assert_eq!(message, "max_messages: must lie between 1 and 1000");
}

#[tokio::test]
async fn priority_comes_first_then_order_and_what_is_due_is_ready() {
    let world = World::new().await;
    for arguments in ["'1'", "'2'", "'3', priority => 9", "'4', delay => '1 hour'", "'5', delay => '1 hour'"]
    {
        world.run(&format!("SELECT redrive.enqueue('orders', {arguments})")).await;
    }
    world.run("SELECT redrive.enqueue('orders', '6', ttl => '0 s')").await;
    // The hour of one of them is over.
    world.run("UPDATE redrive.message SET visible_at = created_at WHERE no = 4").await;
    assert_eq!(world.claim_bodies("'orders', 2").await, ["3", "1"]);
    assert_eq!(world.claim_bodies("'orders', 10").await, ["2", "4"]);
    let stats = world.audit().await;
    assert_eq!((stats.states.of(State::Delayed), stats.states.of(State::Leased)), (1, 4));
}

#[tokio::test]
async fn a_pause_hands_nothing_out() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1', fairness_key => 'a'), redrive.enqueue('orders', '2', fairness_key => 'b')").await;
    let pause = |key: Option<&str>, pause: Option<Pause>| PauseQueue {
        name: queue("orders"),
        key: key.map(|key| FairnessKey::new(key).unwrap()),
        pause,
    };
    world.store.pause_queue(Now::Store, pause(None, Some(Pause::UntilResumed))).await.unwrap();
    assert!(world.claim("'orders', 10").await.is_empty());
    world.store.pause_queue(Now::Store, pause(None, None)).await.unwrap();
    world.store.pause_queue(Now::Store, pause(Some("a"), Some(Pause::UntilResumed))).await.unwrap();
    assert_eq!(world.claim_bodies("'orders', 10").await, ["2"]);
    world.audit().await;
}

#[tokio::test]
async fn a_lease_that_ran_out_is_claimed_in_the_same_call() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    let lost = world.claim("'orders', 1, 'first', 180").await.remove(0);
    world.run_out().await;
    let receipt = world.claim("'orders', 1, 'second', 180").await.remove(0);
    assert_eq!(world.settle("ack", &lost, "").await, "LEASE_LOST");
    let message = world.only().await;
    assert_eq!((message.progress.attempts, message.progress.deliveries), (2, 2));
    let failure = message.history.failures.back().unwrap();
    assert_eq!((failure.cause, failure.attempt, failure.consumer.as_str()), (Cause::Expire, 1, "first"));
    assert_eq!(failure.delay, Some((Millis::ZERO, DelayRule::Overdue)));
    assert_eq!(message.history.last_error.unwrap().as_str(), "the lease ran out");
    let stats = world.audit().await;
    assert_eq!(
        (stats.totals.of(Verb::Expire), stats.totals.of(Verb::Lease), stats.retries_in_flight),
        (1, 2, 1)
    );
    assert_eq!(world.settle("ack", &receipt, "").await, "applied");
    world.audit().await;
}

#[tokio::test]
async fn what_the_judge_has_to_see_is_left_to_an_instance() {
    let world =
        World::with(|_| {}, QueueConfig { overdue_backoff: Some(true), ..QueueConfig::default() }).await;
    world.create("capped", QueueConfig::default()).await;
    world
        .run("SELECT redrive.enqueue('orders', '1'), redrive.enqueue('capped', '2', max_attempts => 1)")
        .await;
    for name in ["orders", "capped"] {
        assert_eq!(world.claim(&format!("'{name}'")).await.len(), 1);
    }
    world.run_out().await;
    for name in ["orders", "capped"] {
        assert!(world.claim(&format!("'{name}'")).await.is_empty());
    }
    assert_eq!(world.expire().await.len(), 2);
    world.audit().await;
}

#[tokio::test]
async fn only_messages_of_the_source_come() {
    let world = World::new().await;
    for (n, arguments) in [
        "source => 'shop'",
        "source => 'scraper', type => 'a'",
        "type => 'a'",
        "source => 'scraper', priority => 9",
        "ttl => null",
    ]
    .iter()
    .enumerate()
    {
        world.run(&format!("SELECT redrive.enqueue('orders', '{n}', {arguments})")).await;
    }
    assert_eq!(world.claim_bodies("'orders', 10, source => 'scraper'").await, ["3", "1"]);
    assert_eq!(world.claim_bodies("'orders', 10, source => ''").await, ["2", "4"]);
    assert!(world.claim("'orders', 10, source => 'nobody'").await.is_empty());
    assert_eq!(world.claim_bodies("'orders', 10").await, ["0"]);
    world.audit().await;
}

#[tokio::test]
async fn keys_are_served_in_turn_however_much_one_of_them_has() {
    let world = World::new().await;
    world
        .run(
            "SELECT redrive.enqueue('orders', to_jsonb(n), fairness_key => 'a') FROM generate_series(1, 300) AS n;
            SELECT redrive.enqueue('orders', to_jsonb(n), fairness_key => k)
            FROM generate_series(1, 4) AS n, unnest(ARRAY['b', 'c']) AS k",
        )
        .await;
    let mut served = Vec::new();
    for _ in 0..12 {
        served.push(world.one::<String>("SELECT fairness_key FROM redrive.claim('orders')").await);
    }
    for key in ["a", "b", "c"] {
        assert_eq!(served.iter().filter(|served| *served == key).count(), 4, "{served:?}");
    }
    // What one key cannot give, another does.
    assert_eq!(world.claim("'orders', 1000").await.len(), 296);
    world.audit().await;
}

#[tokio::test]
async fn retries_keep_to_their_lane_and_their_cap() {
    let retry = RetryOverride { base_delay: Some(Millis::ZERO), ..RetryOverride::default() };
    let separate = QueueConfig { retry_lane: Some(RetryLane::Separate), retry, ..QueueConfig::default() };
    let world = World::with(|_| {}, separate).await;
    let capped = QueueConfig { max_retries_in_flight: Some(NonZeroU32::new(2)), ..QueueConfig::default() };
    world.create("capped", capped).await;
    for name in ["orders", "capped"] {
        world
            .run(&format!("SELECT redrive.enqueue('{name}', to_jsonb(n)) FROM generate_series(1, 5) AS n"))
            .await;
        for receipt in world.claim(&format!("'{name}', 5")).await {
            world.settle("nack", &receipt, ", '', now()").await;
        }
    }
    assert!(world.claim("'orders', 10").await.is_empty());
    assert_eq!(world.claim("'capped', 10").await.len(), 2);
    assert!(world.claim("'capped', 10").await.is_empty());
    world.audit().await;
}

async fn claim_all(client: Client, statement: String) -> Vec<String> {
    let mut mine = Vec::new();
    loop {
        let rows = client.query(&statement, &[]).await.expect("it answers");
        if rows.is_empty() {
            return mine;
        }
        mine.extend(rows.iter().map(|row| row.get::<_, String>(0)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_connections_claim_two_thousand_messages_each_exactly_once() {
    let world = World::new().await;
    world
        .run(
            "SELECT redrive.enqueue('orders', to_jsonb(n), fairness_key => 'key ' || n % 5, source => 's' || n % 3)
            FROM generate_series(1, 2000) AS n",
        )
        .await;
    let statement = world.text("SELECT convert_from(body, 'UTF8') FROM redrive.claim('orders', 7)");
    let mut claiming = Vec::new();
    for _ in 0..8 {
        let (client, _) = connected(&world.url).await;
        claiming.push(tokio::spawn(claim_all(client, statement.clone())));
    }
    let mut claimed = Vec::new();
    for claims in claiming {
        claimed.extend(claims.await.unwrap());
    }
    // A connection that only met what others held at that moment has stopped; there may be a rest.
    claimed.extend(world.claim_bodies("'orders', 1000").await);
    assert_eq!(claimed.len(), 2_000);
    assert_eq!(claimed.iter().collect::<BTreeSet<_>>().len(), 2_000);
    assert_eq!(world.audit().await.states.of(State::Leased), 2_000);
}
