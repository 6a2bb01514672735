//! Dedup: the same work is taken once.

use redrive_core::message::{MessageId, Uniqueness};
use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::{EnqueueOutcome, Filter};

use crate::world::{World, dedup};

async fn put(w: &mut World, queue: &QueueName, key: &str, unique: Uniqueness) -> EnqueueOutcome {
    w.try_put(queue, |d| d.spec.dedup = dedup(key, unique)).await
}

fn is_new(outcome: &EnqueueOutcome) -> bool {
    matches!(outcome, EnqueueOutcome::Enqueued { .. })
}

async fn first(w: &mut World, queue: &QueueName, unique: Uniqueness) -> MessageId {
    w.put_with(queue, |d| d.spec.dedup = dedup("key", unique)).await
}

async fn a_second_one_is_answered_with_the_first(w: &mut World) {
    let (q, other) = (w.queue("q").await, w.queue("other").await);
    let id = first(w, &q, Uniqueness::Window).await;
    assert_eq!(put(w, &q, "key", Uniqueness::Window).await, EnqueueOutcome::Duplicate { id });
    assert!(is_new(&put(w, &q, "another key", Uniqueness::Window).await));
    assert!(is_new(&put(w, &other, "key", Uniqueness::Window).await), "another queue");
    let stats = w.stats(&q).await;
    assert_eq!((stats.states.all(), stats.totals.duplicates, stats.dedup_keys), (2, 1, 2));
}

async fn a_window_holds_even_after_the_ack_and_over_a_restart(w: &mut World) {
    let q = w.queue_with("q", |c| c.dedup_window = Some(Millis::new(60_000))).await;
    let id = first(w, &q, Uniqueness::Window).await;
    let message = w.lease_one(&q).await;
    w.ack(&message).await;
    w.restart().await;
    w.advance(59_999);
    assert_eq!(put(w, &q, "key", Uniqueness::Window).await, EnqueueOutcome::Duplicate { id });
    w.advance(1);
    assert!(is_new(&put(w, &q, "key", Uniqueness::Window).await), "the window is over");
}

async fn a_second_one_does_not_prolong_the_window(w: &mut World) {
    let q = w.queue_with("q", |c| c.dedup_window = Some(Millis::new(1_000))).await;
    first(w, &q, Uniqueness::Window).await;
    w.advance(900);
    assert!(!is_new(&put(w, &q, "key", Uniqueness::Window).await));
    w.advance(100);
    assert!(is_new(&put(w, &q, "key", Uniqueness::Window).await));
}

async fn a_unique_key_holds_until_the_message_is_done(w: &mut World) {
    let q = w.queue("q").await;
    let id = first(w, &q, Uniqueness::UntilDone).await;
    w.advance(1_000 * 3_600 * 24);
    let duplicate = EnqueueOutcome::Duplicate { id };
    assert_eq!(put(w, &q, "key", Uniqueness::UntilDone).await, duplicate, "ready");
    let message = w.lease_one(&q).await;
    assert_eq!(put(w, &q, "key", Uniqueness::Window).await, duplicate, "leased");
    w.nack(&message).await;
    assert_eq!(put(w, &q, "key", Uniqueness::UntilDone).await, duplicate, "to be retried");
    let message = w.lease_one(&q).await;
    w.ack(&message).await;
    assert!(is_new(&put(w, &q, "key", Uniqueness::UntilDone).await), "done");
}

async fn a_unique_key_is_free_once_the_message_is_dead_or_discarded(w: &mut World) {
    let q = w.queue("q").await;
    let dead = w.dead(&q, |d| d.spec.dedup = dedup("key", Uniqueness::UntilDone)).await;
    let second = first(w, &q, Uniqueness::UntilDone).await;
    assert_ne!(dead, second);
    w.discard(&q, Filter::ids([dead]), false).await;
    let held = put(w, &q, "key", Uniqueness::UntilDone).await;
    assert_eq!(held, EnqueueOutcome::Duplicate { id: second }, "discarding the dead one frees nothing");
    w.discard(&q, Filter::ids([second]), false).await;
    assert!(is_new(&put(w, &q, "key", Uniqueness::UntilDone).await));
}

async fn a_duplicate_changes_nothing(w: &mut World) {
    let q = w.queue("q").await;
    let id = first(w, &q, Uniqueness::Window).await;
    let before = w.get(&q, id).await;
    w.advance(10);
    w.try_put(&q, |d| {
        d.spec.dedup = dedup("key", Uniqueness::Window);
        d.priority = crate::world::priority(9);
    })
    .await;
    assert_eq!(w.get(&q, id).await, before);
}

async fn a_key_whose_window_is_over_is_held_no_more(w: &mut World) {
    let q = w.queue_with("q", |c| c.dedup_window = Some(Millis::new(1_000))).await;
    put(w, &q, "window", Uniqueness::Window).await;
    put(w, &q, "unique", Uniqueness::UntilDone).await;
    w.advance(999);
    assert_eq!(w.stats(&q).await.dedup_keys, 2);
    w.advance(1);
    assert_eq!(w.stats(&q).await.dedup_keys, 1, "nothing has to happen for that");
}

rules!("dedup";
    a_second_one_is_answered_with_the_first,
    a_window_holds_even_after_the_ack_and_over_a_restart,
    a_second_one_does_not_prolong_the_window,
    a_unique_key_holds_until_the_message_is_done,
    a_unique_key_is_free_once_the_message_is_dead_or_discarded,
    a_duplicate_changes_nothing,
    a_key_whose_window_is_over_is_held_no_more,
);
