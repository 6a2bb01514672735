//! expire: leased → delayed | ready | dead, for leases whose deadline has passed.

use std::num::NonZeroU32;

use redrive_core::lifecycle::{OVERDUE_ERROR, Verb};
use redrive_core::message::{Cause, DeadReason, ErrorText, State};
use redrive_core::policy::{DelayRule, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::{ExpireRequest, QueueError};

use crate::world::{World, at_most};

async fn a_lease_lasts_to_its_deadline(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    w.lease_one(&q).await;
    w.advance(29_999);
    assert!(w.expire(&q).await.is_empty());
    assert_eq!((w.stats(&q).await.overdue, w.state(&q, id).await), (0, Some(State::Leased)));
    w.advance(1);
    assert_eq!(
        (w.stats(&q).await.overdue, w.state(&q, id).await),
        (1, Some(State::Leased)),
        "until somebody ends it"
    );
    let judged = w.expire(&q).await;
    assert_eq!(judged[0].verdict, Verdict::RetryAt(w.now(), DelayRule::Overdue));
    assert_eq!(w.state(&q, id).await, Some(State::Ready));
    assert_eq!(w.stats(&q).await.totals.of(Verb::Expire), 1);
}

async fn a_dead_consumer_has_had_its_attempt(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(3))).await;
    let id = w.put(&q).await;
    for attempt in 1..=3 {
        let message = w.lease_one(&q).await;
        assert_eq!(message.progress.attempts, attempt);
        w.advance(30_000);
        w.expire(&q).await;
    }
    let dead = w.get(&q, id).await.expect("there");
    assert_eq!(dead.progress.death().map(|death| death.reason), Some(DeadReason::MaxAttempts));
    assert_eq!(dead.history.failures.len(), 3);
}

async fn an_overdue_lease_waits_for_its_backoff_where_the_queue_wants_it(w: &mut World) {
    let q = w
        .queue_with("q", |c| {
            c.overdue_backoff = Some(true);
            c.retry.base_delay = Some(Millis::new(4_000));
        })
        .await;
    w.put(&q).await;
    w.lease_one(&q).await;
    w.advance(30_000);
    let due = w.now().plus(Millis::new(4_000));
    assert_eq!(w.expire(&q).await[0].verdict, Verdict::RetryAt(due, DelayRule::Backoff));
}

async fn a_lease_call_asks_the_same_judge(w: &mut World) {
    let q = w
        .queue_with("q", |c| {
            c.overdue_backoff = Some(true);
            c.retry.base_delay = Some(Millis::new(4_000));
            c.retry.max_attempts = Some(NonZeroU32::new(2));
        })
        .await;
    let id = w.put(&q).await;
    w.lease_one(&q).await;
    w.advance(30_000);
    let leased = w.lease_with(&q, 1, |_| ()).await;
    assert!(leased.messages.is_empty(), "it waits for its backoff");
    let due = w.now().plus(Millis::new(4_000));
    assert_eq!(leased.swept.expired[0].verdict, Verdict::RetryAt(due, DelayRule::Backoff));
    w.advance(4_000);
    w.lease_one(&q).await;
    w.advance(30_000);
    let leased = w.lease_with(&q, 1, |_| ()).await;
    assert_eq!(leased.swept.expired[0].verdict, Verdict::Dead(DeadReason::MaxAttempts));
    assert_eq!(w.state(&q, id).await, Some(State::Dead));
}

async fn the_failure_is_written_down(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    w.lease_one(&q).await;
    w.advance(31_000);
    w.expire(&q).await;
    let record = w.get(&q, id).await.expect("there").history.failures.pop_back().expect("one");
    assert_eq!(
        (record.cause, record.error.as_str(), record.ended_at),
        (Cause::Expire, OVERDUE_ERROR, w.now())
    );
    w.lease_one(&q).await;
    w.advance(31_000);
    let error = Some(ErrorText::new("requeued by hand"));
    let request = ExpireRequest { queue: Some(q.clone()), limit: at_most(10), error, seed: 1 };
    let judged = w.store().expire(w.at(), request).await.expect("answers");
    assert_eq!(judged[0].error.as_str(), "requeued by hand");
    let kept = w.get(&q, id).await.expect("there");
    assert_eq!(kept.history.last_error.expect("one").as_str(), "requeued by hand");
}

async fn at_most_so_many_and_the_most_overdue_first(w: &mut World) {
    let q = w.queue("q").await;
    for n in 0..5u64 {
        w.put_with(&q, |d| d.spec.lease_timeout = Some(Millis::new(5_000 - n * 1_000))).await;
    }
    let leased: Vec<_> = w.lease_ids(&q, 5).await;
    w.advance(60_000);
    let request = ExpireRequest { queue: Some(q.clone()), limit: at_most(2), error: None, seed: 1 };
    let judged = w.store().expire(w.at(), request).await.expect("answers");
    assert_eq!(judged.iter().map(|j| j.message).collect::<Vec<_>>(), [leased[4], leased[3]]);
    assert_eq!(w.stats(&q).await.overdue, 3);
}

async fn a_long_lease_in_front_hides_nothing(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 150, |_, d| d.spec.lease_timeout = Some(Millis::new(3_600_000))).await;
    let short = w.put_with(&q, |d| d.spec.lease_timeout = Some(Millis::new(1_000))).await;
    assert_eq!(w.lease(&q, 200).await.len(), 151);
    w.advance(1_000);
    let request = ExpireRequest { queue: None, limit: at_most(1), error: None, seed: 1 };
    let judged = w.store().expire(w.at(), request).await.expect("answers");
    assert_eq!(judged.iter().map(|j| j.message).collect::<Vec<_>>(), [short]);
}

async fn all_queues_can_be_swept_at_once(w: &mut World) {
    let (a, b) = (w.queue("a").await, w.queue("b").await);
    for q in [&a, &b] {
        w.put(q).await;
        w.lease_one(q).await;
    }
    w.advance(30_000);
    let request = ExpireRequest { queue: None, limit: at_most(10), error: None, seed: 1 };
    let mut queues: Vec<QueueName> =
        w.store().expire(w.at(), request).await.expect("answers").into_iter().map(|j| j.queue).collect();
    queues.sort_unstable();
    assert_eq!(queues, [a, b]);
    let nowhere =
        ExpireRequest { queue: QueueName::new("nowhere").ok(), limit: at_most(1), error: None, seed: 1 };
    assert!(matches!(w.store().expire(w.at(), nowhere).await, Err(QueueError::NotFound(_))));
}

rules!("expire";
    a_lease_lasts_to_its_deadline,
    a_dead_consumer_has_had_its_attempt,
    an_overdue_lease_waits_for_its_backoff_where_the_queue_wants_it,
    a_lease_call_asks_the_same_judge,
    the_failure_is_written_down,
    at_most_so_many_and_the_most_overdue_first,
    a_long_lease_in_front_hides_nothing,
    all_queues_can_be_swept_at_once,
);
