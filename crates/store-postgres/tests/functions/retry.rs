//! `requeue_expired` and `retry_failed`: what workflows do by night.

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Message, State};
use redrive_core::queue::QueueConfig;
use redrive_store::{Now, Selection, Store};
use uuid::Uuid;

use crate::world::{World, queue};

/// A dead message; the arguments are those of its enqueue.
async fn dead(world: &World, arguments: &str) -> Uuid {
    let id = world
        .one(&format!("SELECT id FROM redrive.enqueue('orders', '1', max_attempts => 1{arguments})"))
        .await;
    let receipt = world.claim("'orders'").await.remove(0);
    world.settle("nack", &receipt, ", 'boom'").await;
    assert_eq!(world.expire().await.len(), 1);
    id
}

#[tokio::test]
async fn leases_that_ran_out_are_requeued_with_the_error_that_is_given() {
    let world = World::new().await;
    world.create("backoff", QueueConfig { overdue_backoff: Some(true), ..QueueConfig::default() }).await;
    world
        .run(
            "SELECT redrive.enqueue('orders', to_jsonb(n)) FROM generate_series(1, 5) AS n;
            SELECT redrive.enqueue('backoff', '1'), redrive.claim('orders', 5)",
        )
        .await;
    assert_eq!(world.claim("'orders', 5").await.len() + world.claim("'backoff'").await.len(), 1);
    assert_eq!(world.one::<i32>("SELECT redrive.requeue_expired()").await, 0);
    world.run_out().await;
    assert_eq!(world.one::<i32>("SELECT redrive.requeue_expired(2, 'stuck', 'orders')").await, 2);
    assert_eq!(world.one::<i32>("SELECT redrive.requeue_expired(100, 'stuck')").await, 3);
    assert_eq!(world.one::<i32>("SELECT redrive.requeue_expired(100, 'stuck')").await, 0);
    for message in world.all().await {
        assert_eq!(message.history.last_error.unwrap().as_str(), "stuck");
        assert!(message.progress.lease().is_none());
    }
    let stats = world.audit().await;
    assert_eq!((stats.states.of(State::Ready), stats.totals.of(Verb::Expire)), (5, 5));
    // The one that wants a backoff waits for the judge.
    assert_eq!(world.expire().await.len(), 1);
}

#[tokio::test]
async fn only_the_last_twenty_failures_are_kept() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1', max_attempts => 100)").await;
    for _ in 0..25 {
        assert_eq!(world.claim("'orders'").await.len(), 1);
        world.run_out().await;
    }
    let failures = world.only().await.history.failures;
    assert_eq!((failures.len(), failures[0].attempt), (20, 5));
}

/// What a redrive makes of a message, but for what differs between any two.
fn alike(mut message: Message) -> Message {
    message.spec.id = redrive_core::message::MessageId::MIN;
    message.progress.sequence = 0;
    message.progress.visible_at = message.created_at;
    message.progress.expires_at = None;
    message.created_at = redrive_core::time::Timestamp::EPOCH;
    message.progress.visible_at = message.created_at;
    message.history.failures.clear();
    message.history.death = None;
    if let Some(note) = &mut message.history.redriven {
        note.at = message.created_at;
    }
    message
}

#[tokio::test]
async fn retry_failed_is_the_redrive_of_the_store() {
    let world = World::new().await;
    let (ours, theirs) = (dead(&world, "").await, dead(&world, "").await);
    let by = |text: &str| redrive_core::message::Note::new(text).unwrap();
    let back: i32 = world
        .one(&format!(
            "SELECT redrive.retry_failed('orders', 'nightly workflow', 'fixed', ids => ARRAY['{ours}'::uuid])"
        ))
        .await;
    assert_eq!(back, 1);
    let rest = Selection::new(queue("orders"), redrive_store::Filter::default());
    let bulk = world.store.redrive(Now::Store, rest, by("nightly workflow"), by("fixed")).await.unwrap();
    assert_eq!(bulk.applied.len(), 1);
    let (ours, theirs) = (world.get(ours).await, world.get(theirs).await);
    assert_eq!(
        ours.history.redriven.as_ref().unwrap().to_string(),
        "Retry requested by nightly workflow: fixed"
    );
    assert_eq!(
        (ours.progress.attempts, ours.progress.redrives, ours.progress.deliveries_counted()),
        (0, 1, 0)
    );
    assert_eq!(alike(ours), alike(theirs));
    let stats = world.audit().await;
    assert_eq!((stats.states.of(State::Ready), stats.totals.of(Verb::Redrive)), (2, 2));
    assert_eq!(world.claim("'orders', 10").await.len(), 2);
}

#[tokio::test]
async fn only_what_matches_comes_back() {
    let world = World::new().await;
    let id = dead(&world, ", type => 'a', source => 's', fairness_key => 'k', ttl => '1 hour'").await;
    let misses = [
        "type => 'b'",
        "source => 'b'",
        "fairness_key => 'b'",
        "reason => 'buried'",
        "error_contains => 'nothing'",
        "dead_since => now() + interval '1 hour'",
        "dead_until => now() - interval '1 hour'",
        "ids => '{}'",
    ];
    for filter in misses {
        assert_eq!(
            world.one::<i32>(&format!("SELECT redrive.retry_failed('orders', {filter})")).await,
            0,
            "{filter}"
        );
    }
    let (_, message) = world.refused("SELECT redrive.retry_failed('orders', reason => 'age')").await;
    assert!(message.starts_with("reason: must be one of max_attempts, buried"), "{message}");
    // Its hour is over, which must not kill it again.
    world.run("UPDATE redrive.message SET expires_at = created_at").await;
    let hit =
        "type => 'a', source => 's', fairness_key => 'k', reason => 'max_attempts', error_contains => 'oo',
        dead_since => now() - interval '1 hour', dead_until => now() + interval '1 hour'";
    assert_eq!(world.one::<i32>(&format!("SELECT redrive.retry_failed('orders', {hit})")).await, 1);
    assert_eq!(world.get(id).await.progress.expires_at, None);
    let by: String = world.one("SELECT redriven_by FROM redrive.history").await;
    assert_eq!(by, world.one::<String>("SELECT session_user::text").await);
    world.audit().await;
}

#[tokio::test]
async fn one_whose_unique_key_is_taken_stays_dead() {
    let world = World::new().await;
    let unique = ", dedup_key => 'k', unique_until_done => true";
    dead(&world, unique).await;
    dead(&world, unique).await;
    // The first takes the key again; then it is not free for the second.
    assert_eq!(world.one::<i32>("SELECT redrive.retry_failed('orders')").await, 1);
    assert_eq!(world.one::<i32>("SELECT redrive.retry_failed('orders')").await, 0);
    let stats = world.audit().await;
    assert_eq!((stats.states.of(State::Dead), stats.dedup_keys), (1, 1));
}
