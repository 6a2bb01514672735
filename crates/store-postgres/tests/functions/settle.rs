//! ack and nack: one receipt, whoever made it and whoever takes it.

use redrive_core::message::{Cause, DeadReason, State};
use redrive_core::policy::{DelayRule, Jitter, RetryOverride, Verdict};
use redrive_core::queue::{QueueConfig, Retention};
use redrive_core::receipt::Claim;
use redrive_core::time::Millis;
use redrive_store::{AckItem, Batch, ExtendItem, LeaseTarget, Now, ReleaseItem, Settled, Store};
use uuid::Uuid;

use crate::world::{World, queue};

/// Exactly ten seconds between attempts.
fn ten_seconds() -> QueueConfig {
    let retry = RetryOverride {
        base_delay: Some(Millis::from_secs(10)),
        jitter: Some(Jitter::None),
        ..RetryOverride::default()
    };
    QueueConfig { retry, ..QueueConfig::default() }
}

#[tokio::test]
async fn a_receipt_from_sql_settles_through_the_store() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1', max_attempts => 4)").await;
    let receipt = world.claim("'orders', 1, 'worker'").await.remove(0);
    let key = world.store.receipt_key().await.unwrap();
    let claim = key.open(&receipt).unwrap();
    assert_eq!(Some(&claim), Claim::on(&world.only().await).as_ref());
    assert_eq!(key.seal(&claim), receipt);
    let acked = world.store.ack(Now::Store, Batch::one(AckItem { claim }).unwrap()).await.unwrap();
    assert!(acked[0].is_applied());
    assert_eq!(world.audit().await.states.all(), 0);
}

#[tokio::test]
async fn a_receipt_of_the_store_settles_through_sql() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1', dedup_key => 'k', unique_until_done => true)").await;
    let message = world.lease(1).await.remove(0);
    let key = world.store.receipt_key().await.unwrap();
    let receipt = key.seal(&Claim::on(&message).unwrap());
    assert_eq!(world.settle("ack", &receipt, "").await, "applied");
    assert_eq!(world.settle("ack", &receipt, "").await, "NOT_FOUND");
    assert_eq!(world.settle("nack", &receipt, "").await, "NOT_FOUND");
    // The key is free again.
    assert!(
        !world.one::<bool>("SELECT duplicate FROM redrive.enqueue('orders', '1', dedup_key => 'k')").await
    );
    world.audit().await;
}

#[tokio::test]
async fn what_is_no_receipt_is_refused_and_changes_nothing() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    let receipt = world.claim("'orders'").await.remove(0);
    let last = receipt.chars().last().unwrap();
    let flip = |c: char| if c == 'A' { 'B' } else { 'A' };
    let mut forged =
        vec![String::new(), "A".to_owned(), "AB==".to_owned(), "ü".repeat(90), receipt.repeat(4)];
    forged.push(format!("{}{}", flip(receipt.chars().next().unwrap()), &receipt[1..]));
    forged.push(format!("{}{}", &receipt[..receipt.len() - 1], flip(last)));
    forged.extend((1..receipt.len()).map(|cut| receipt[..cut].to_owned()));
    for receipt in forged {
        let error =
            world.sql.query(&world.text("SELECT redrive.ack($1)"), &[&receipt]).await.expect_err(&receipt);
        assert_eq!(error.code().unwrap().code(), "RD005", "{receipt}");
    }
    assert_eq!(world.settle("ack", &receipt, "").await, "applied");
}

#[tokio::test]
async fn an_acked_message_is_kept_where_the_queue_keeps_such() {
    let kept = Retention { age: None, count: Some(10) };
    let world =
        World::with(|_| {}, QueueConfig { retain_done: Some(Some(kept)), ..QueueConfig::default() }).await;
    world.run("SELECT redrive.enqueue('orders', '1'), redrive.enqueue('orders', '2')").await;
    let receipt = world.claim("'orders'").await.remove(0);
    assert_eq!(world.settle("ack", &receipt, "").await, "applied");
    assert_eq!(world.settle("ack", &receipt, "").await, "NOT_FOUND");
    // The store makes the same of the other one.
    let claim = Claim::on(&world.lease(1).await[0]).unwrap();
    world.store.ack(Now::Store, Batch::one(AckItem { claim }).unwrap()).await.unwrap();
    let stats = world.audit().await;
    assert_eq!((stats.states.of(State::Done), stats.totals.retained), (2, 2));
    let alike: i64 = world
        .one("SELECT count(*) FROM (SELECT DISTINCT state, retry, lease_id, deadline, leased_at, consumer, attempts
            FROM redrive.message) m")
        .await;
    assert_eq!(alike, 1);
}

#[tokio::test]
async fn a_nack_without_a_time_is_judged_by_an_instance() {
    let world = World::with(|_| {}, ten_seconds()).await;
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    let receipt = world.claim("'orders', 1, 'worker', 180").await.remove(0);
    assert_eq!(world.settle("nack", &receipt, ", 'boom'").await, "applied");
    // From here on the lease is nobody's.
    assert_eq!(world.settle("nack", &receipt, ", 'boom'").await, "LEASE_LOST");
    assert_eq!(world.settle("ack", &receipt, "").await, "LEASE_LOST");
    let claim = world.store.receipt_key().await.unwrap().open(&receipt).unwrap();
    let outcomes = world.store.ack(Now::Store, Batch::one(AckItem { claim }).unwrap()).await.unwrap();
    assert_eq!(outcomes[0], Settled::LeaseLost);
    // Nor does an operator bring it back, with or without a receipt: the judge would not hear of the nack.
    let target = LeaseTarget::Current { queue: queue("orders"), message: world.only().await.id() };
    let release = ReleaseItem { target: target.clone(), delay: None };
    let outcomes = world.store.release(Now::Store, Batch::one(release).unwrap()).await.unwrap();
    assert_eq!(outcomes[0], Settled::LeaseLost);
    let extend = ExtendItem { target, time: Millis::from_secs(1), checkpoint: None };
    let outcomes = world.store.extend(Now::Store, Batch::one(extend).unwrap()).await.unwrap();
    assert_eq!(outcomes[0], Settled::LeaseLost);
    // Nobody but the judge takes it.
    assert!(world.claim("'orders'").await.is_empty());
    assert_eq!(world.one::<i32>("SELECT redrive.requeue_expired()").await, 0);
    world.audit().await;
    let judged = world.expire().await.remove(0);
    let Verdict::RetryAt(due, DelayRule::Backoff) = judged.verdict else { panic!("{:?}", judged.verdict) };
    assert_eq!(due, judged.at.plus(Millis::from_secs(10)));
    let message = world.only().await;
    let failure = message.history.failures.back().unwrap();
    assert_eq!(
        (failure.cause, failure.error.as_str(), failure.consumer.as_str()),
        (Cause::Nack, "boom", "worker")
    );
    assert_eq!(message.state(judged.at), State::Delayed);
    world.audit().await;
}

#[tokio::test]
async fn an_instances_own_lease_call_judges_it_too() {
    let retry = RetryOverride { base_delay: Some(Millis::ZERO), ..RetryOverride::default() };
    let world = World::with(|_| {}, QueueConfig { retry, ..QueueConfig::default() }).await;
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    let receipt = world.claim("'orders'").await.remove(0);
    world.settle("nack", &receipt, ", 'boom'").await;
    let again = world.lease(1).await.remove(0);
    assert_eq!((again.progress.attempts, again.history.failures.len()), (2, 1));
    assert_eq!(world.audit().await.totals.of(redrive_core::lifecycle::Verb::Nack), 1);
}

#[tokio::test]
async fn a_nack_with_a_time_is_what_the_store_makes_of_exactly_that() {
    let world = World::with(|_| {}, ten_seconds()).await;
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    let receipt = world.claim("'orders', 1, 'worker'").await.remove(0);
    assert_eq!(world.settle("nack", &receipt, ", 'boom', now() + interval '1 hour'").await, "applied");
    assert_eq!(world.settle("nack", &receipt, "").await, "LEASE_LOST");
    let message = world.only().await;
    let failure = message.history.failures.back().unwrap();
    let (delay, rule) = failure.delay.unwrap();
    assert_eq!((failure.cause, failure.attempt, rule), (Cause::Nack, 1, DelayRule::Exactly));
    assert_eq!(message.progress.visible_at, failure.ended_at.plus(delay));
    assert!((3_590_000..=3_600_000).contains(&delay.get()), "{delay}");
    assert_eq!(message.history.last_error.as_ref().unwrap().as_str(), "boom");
    // A time that has passed is now.
    world.run("UPDATE redrive.message SET state = 1, visible_at = 0").await;
    let receipt = world.claim("'orders'").await.remove(0);
    assert_eq!(world.settle("nack", &receipt, ", 'boom', '-infinity'").await, "applied");
    assert_eq!(world.claim("'orders'").await.len(), 1);
    world.audit().await;
}

#[tokio::test]
async fn a_time_too_far_ahead_is_refused() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    let receipt = world.claim("'orders'").await.remove(0);
    let (_, message) = world.refused(&format!("SELECT redrive.nack('{receipt}', '', 'infinity')")).await;
    assert_eq!(message, "retry_at: must lie within 3650 days");
    assert_eq!(world.settle("ack", &receipt, "").await, "applied");
}

#[tokio::test]
async fn death_is_left_to_an_instance_and_goes_where_the_queue_says() {
    let config = QueueConfig { dead_letter_to: Some(Some(queue("graves"))), ..QueueConfig::default() };
    let world = World::with(|_| {}, config).await;
    world.create("graves", QueueConfig::default()).await;
    world.run("SELECT redrive.enqueue('orders', '1', max_attempts => 1)").await;
    let receipt = world.claim("'orders'").await.remove(0);
    assert_eq!(world.settle("nack", &receipt, ", 'boom', now()").await, "applied");
    let judged = world.expire().await.remove(0);
    assert_eq!(judged.verdict, Verdict::Dead(DeadReason::MaxAttempts));
    assert_eq!(judged.moved_to, Some(queue("graves")));
    assert_eq!(world.audit().await.states.all(), 0);
}

#[tokio::test]
async fn a_time_behind_the_end_of_the_message_is_its_end() {
    let world = World::new().await;
    let id: Uuid = world.one("SELECT id FROM redrive.enqueue('orders', '1', ttl => '1 hour')").await;
    let receipt = world.claim("'orders'").await.remove(0);
    assert_eq!(world.settle("nack", &receipt, ", 'boom', now() + interval '2 hours'").await, "applied");
    let judged = world.expire().await.remove(0);
    assert_eq!(judged.verdict, Verdict::Dead(DeadReason::ExpiredTtl));
    assert_eq!(world.get(id).await.history.last_error.unwrap().as_str(), "boom");
    world.audit().await;
}

#[tokio::test]
async fn a_long_error_is_cut_between_characters() {
    let world = World::new().await;
    world.run("SELECT redrive.enqueue('orders', '1')").await;
    let receipt = world.claim("'orders'").await.remove(0);
    world.settle("nack", &receipt, ", repeat('a', 1023) || repeat('é', 10), now()").await;
    assert_eq!(world.only().await.history.last_error.unwrap().as_str(), "a".repeat(1_023));
}
