//! enqueue, from inside a transaction.

use std::num::{NonZeroU32, NonZeroU64};

use redrive_core::lifecycle::Verb;
use redrive_core::message::State;
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use uuid::Uuid;

use crate::world::World;

#[tokio::test]
async fn a_message_is_what_the_store_would_have_made_of_it() {
    let world = World::new().await;
    let rows = world
        .rows(
            "SELECT * FROM redrive.enqueue('orders', '{\"id\": 7}', type => 'paid', source => 'shop', priority => 8,
                fairness_key => 'tenant', dedup_key => 'order 7', headers => '{\"trace\": \"ab\"}', max_attempts => 5,
                lease_timeout => '90 s', ttl => '1 hour')",
            &[],
        )
        .await;
    let (id, duplicate): (Uuid, bool) = (rows[0].get("id"), rows[0].get("duplicate"));
    assert!(!duplicate);
    assert_eq!(id.get_version_num(), 7);
    let leased = world.lease(1).await.remove(0);
    let (spec, progress) = (&leased.spec, &leased.progress);
    assert_eq!(leased.id().as_bytes(), id.as_bytes());
    assert_eq!(&spec.body.bytes()[..], br#"{"id": 7}"#);
    assert_eq!((spec.content_type.as_str(), spec.headers.get("trace")), ("application/json", Some("ab")));
    assert_eq!((spec.kind.as_str(), spec.source.as_str(), progress.priority.get()), ("paid", "shop", 8));
    assert_eq!((spec.fairness_key.as_str(), spec.max_attempts), ("tenant", NonZeroU32::new(5)));
    assert_eq!(spec.lease_timeout, Some(Millis::from_secs(90)));
    assert_eq!(progress.expires_at, Some(leased.created_at.plus(Millis::from_secs(3_600))));
    assert_eq!(world.audit().await.totals.of(Verb::Enqueue), 1);
}

#[tokio::test]
async fn what_is_rolled_back_was_never_enqueued() {
    let world = World::new().await;
    world.run("BEGIN; SELECT redrive.enqueue('orders', '1', dedup_key => 'k'); ROLLBACK").await;
    assert_eq!(world.audit().await.totals.of(Verb::Enqueue), 0);
    world.run("BEGIN; SELECT redrive.enqueue('orders', '1', dedup_key => 'k'); COMMIT").await;
    assert_eq!(world.audit().await.states.of(State::Ready), 1);
}

#[tokio::test]
async fn the_second_is_answered_with_the_first() {
    let config = QueueConfig { max_waiting: Some(NonZeroU64::new(3)), ..QueueConfig::default() };
    let world = World::with(|_| {}, config).await;
    let id = "01890000-0000-7000-8000-000000000001";
    for extra in [
        ", dedup_key => 'window'",
        ", dedup_key => 'k', unique_until_done => true",
        &format!(", id => '{id}'"),
    ] {
        let statement = format!("SELECT * FROM redrive.enqueue('orders', '1'{extra})");
        let first = world.rows(&statement, &[]).await.remove(0);
        let second = world.rows(&statement, &[]).await.remove(0);
        assert_eq!(first.get::<_, Uuid>(0), second.get::<_, Uuid>(0), "{extra}");
        assert_eq!((first.get::<_, bool>(1), second.get::<_, bool>(1)), (false, true), "{extra}");
    }
    // Even where a new one is refused.
    let (code, message) = world.refused("SELECT redrive.enqueue('orders', '1')").await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("RD002", "QUEUE_FULL: the queue orders is full: max_waiting is 3")
    );
    assert!(
        world.one::<bool>("SELECT duplicate FROM redrive.enqueue('orders', '1', dedup_key => 'k')").await
    );
    let stats = world.audit().await;
    assert_eq!((stats.totals.duplicates, stats.dedup_keys), (4, 2));
}

#[tokio::test]
async fn a_window_that_is_over_lets_the_next_one_in() {
    let config = QueueConfig { dedup_window: Some(Millis::ZERO), ..QueueConfig::default() };
    let world = World::with(|_| {}, config).await;
    for _ in 0..3 {
        assert!(
            !world
                .one::<bool>("SELECT duplicate FROM redrive.enqueue('orders', '1', dedup_key => 'k')")
                .await
        );
    }
    assert_eq!(world.audit().await.states.of(State::Ready), 3);
}

#[tokio::test]
async fn two_that_race_for_a_key_are_one_message() {
    let world = World::new().await;
    let (other, _) = crate::world::connected(&world.url).await;
    let statement = world.text("SELECT id, duplicate FROM redrive.enqueue('orders', '1', dedup_key => 'k')");
    world.sql.batch_execute("BEGIN").await.unwrap();
    let first = world.sql.query_one(&statement, &[]).await.unwrap();
    let (second, _) = tokio::join!(other.query_one(&statement, &[]), world.sql.batch_execute("COMMIT"));
    let second = second.unwrap();
    assert_eq!((second.get::<_, Uuid>(0), second.get::<_, bool>(1)), (first.get(0), true));
    world.audit().await;
}

#[tokio::test]
async fn what_a_queue_may_hold_is_what_its_instances_say() {
    let config = QueueConfig::default();
    let world = World::with(
        |options| {
            options.limits.classes_per_queue = 2;
            options.limits.dedup_keys_per_queue = 1;
        },
        config,
    )
    .await;
    world.run("SELECT redrive.enqueue('orders', '1', type => 'a', dedup_key => 'a')").await;
    world.run("SELECT redrive.enqueue('orders', '1', type => 'b')").await;
    let (code, message) = world.refused("SELECT redrive.enqueue('orders', '1', type => 'c')").await;
    assert_eq!(code, "RD003");
    assert_eq!(message, "TOO_MANY_TYPES: type and source: a queue has at most 2 distinct pairs");
    let (code, message) =
        world.refused("SELECT redrive.enqueue('orders', '1', type => 'a', dedup_key => 'b')").await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("RD004", "TOO_MANY_DEDUP_KEYS: dedup_key: a queue holds at most 1 keys")
    );
    // A pair that no message has makes room.
    for receipt in world.claim("'orders', 2").await {
        world.settle("ack", &receipt, "").await;
    }
    world.run("SELECT redrive.enqueue('orders', '1', type => 'c')").await;
    assert_eq!(world.lease(1).await[0].spec.kind.as_str(), "c");
    world.audit().await;
}

#[tokio::test]
async fn a_refusal_names_the_field_and_the_limit() {
    let world = World::new().await;
    let deep = format!("'{}{}'", "[".repeat(65), "]".repeat(65));
    let cases = [
        ("'1', type => repeat('x', 129)", "type: is 129 bytes long, the limit is 128"),
        (
            "'1', source => E'a\\u0085'",
            "source: byte 1 is not allowed; allowed: text without control characters",
        ),
        (
            "'1', fairness_key => E'é\\u0007'",
            "fairness_key: byte 2 is not allowed; allowed: text without control characters",
        ),
        ("'1', dedup_key => ''", "dedup_key: must not be empty"),
        ("'1', dedup_key => repeat('x', 257)", "dedup_key: is 257 bytes long, the limit is 256"),
        ("'1', unique_until_done => true", "unique_until_done: needs a dedup_key"),
        ("'1', priority => 10", "priority: must lie between 0 and 9"),
        ("'1', max_attempts => 0", "max_attempts: must lie between 1 and 2147483647"),
        ("'1', delay => '-1 s'", "delay: must lie between 0 ms and 315360000000 ms"),
        ("'1', ttl => '11 years'", "ttl: must lie between 0 ms and 315360000000 ms"),
        ("'1', lease_timeout => '8 days'", "lease_timeout: must lie between 1 ms and 604800000 ms"),
        ("'1', content_type => 'é'", "content_type: byte 0 is not allowed; allowed: printable ASCII"),
        ("'1', headers => '[]'", "headers: must be an object of strings"),
        ("'1', headers => '{\"a\": 1}'", "headers: must be an object of strings"),
        ("'1', headers => '{\"\": \"x\"}'", "headers: must not be empty"),
        (
            "'1', headers => jsonb_build_object('a', repeat('x', 65536))",
            "headers: is 65537 bytes long, the limit is 65536",
        ),
        (
            "bytes => decode(repeat('00', 1048577), 'hex')",
            "body: is 1048577 bytes long, the limit is 1048576",
        ),
        ("'1', bytes => ''", "body: needs either body (JSON) or bytes"),
        (deep.as_str(), "body: has more than 64 levels"),
    ];
    for (arguments, expected) in cases {
        let refused = world.refused(&format!("SELECT redrive.enqueue('orders', {arguments})")).await;
        assert_eq!(refused, ("22023".to_owned(), expected.to_owned()), "{arguments}");
    }
    let (code, _) = world.refused("SELECT redrive.enqueue('nowhere', '1')").await;
    assert_eq!(code, "RD001");
    world.run(&format!("SELECT redrive.enqueue('orders', '{}{}')", "[".repeat(64), "]".repeat(64))).await;
    assert_eq!(world.audit().await.totals.of(Verb::Enqueue), 1);
}

#[tokio::test]
async fn whoever_listens_is_told_once_the_transaction_is_there() {
    let world = World::new().await;
    world.run(&format!("LISTEN \"{}\"", world.schema)).await;
    assert_eq!(world.one::<String>("SELECT redrive.channel()").await, world.schema);
    world.run("BEGIN; SELECT redrive.enqueue('orders', '1'); ROLLBACK").await;
    world.run("BEGIN; SELECT redrive.enqueue('orders', '1'), redrive.enqueue('orders', '2'); COMMIT").await;
    let told: Vec<String> =
        tokio::task::spawn_blocking(move || world.told.recv().into_iter().collect()).await.unwrap();
    assert!(matches!(told.as_slice(), [one] if one.ends_with(": 1 ready orders")), "{told:?}");
}
