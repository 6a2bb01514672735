//! Time: nothing early, nothing lost, whatever the clock does.

use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::When;
use redrive_core::limits::{DELAY_MAX, LEASE_MAX};
use redrive_core::message::State;
use redrive_core::policy::Asked;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{LeaseRequest, Now, QueueError, Settled, StoreError};

use crate::world::{World, after, at_most};

async fn a_retry_is_not_one_millisecond_early(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.base_delay = Some(Millis::new(1_537))).await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.nack(&message).await;
    w.advance(1_536);
    assert!(w.lease(&q, 1).await.is_empty());
    assert_eq!(w.state(&q, message.id()).await, Some(State::Delayed));
    w.advance(1);
    assert_eq!(w.lease(&q, 1).await.len(), 1);
}

async fn a_clock_that_is_set_back_expires_nothing_and_loses_nothing(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    let start = w.now();
    w.set_clock(start.minus(Millis::from_days(1)));
    assert!(w.expire(&q).await.is_empty());
    assert!(w.lease(&q, 1).await.is_empty(), "still leased");
    let id = w.put(&q).await;
    assert_eq!(w.lease_ids(&q, 1).await, [id], "a message that is enqueued now is ready now");
    assert!(w.ack(&message).await.is_applied());
    w.set_clock(start.plus(Millis::new(29_999)));
    assert!(w.expire(&q).await.is_empty(), "a lease taken while the clock was behind lasts as long as any");
    w.advance(1);
    assert_eq!(w.expire(&q).await.len(), 1);
}

async fn time_never_runs_back(w: &mut World) {
    let q = w.queue("q").await;
    let delayed = w.put_with(&q, |d| d.visible = after(1_000)).await;
    let start = w.now();
    w.advance(1_000);
    assert_eq!(w.stats(&q).await.states.of(State::Ready), 1);
    w.set_clock(start);
    assert_eq!(w.stats(&q).await.states.of(State::Ready), 1, "what was ready stays ready");
    assert_eq!(w.lease_ids(&q, 1).await, [delayed]);
    w.set_clock(start.plus(Millis::new(1_000)));
}

async fn a_clock_that_jumps_ahead_ends_leases_and_loses_nothing(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 3, |_, _| ()).await;
    let leased = w.lease(&q, 2).await;
    w.advance(1_000 * 86_400 * 365);
    assert!(w.ack(&leased[0]).await.is_applied(), "nothing has ended it yet");
    assert_eq!(w.expire(&q).await.len(), 1);
    assert_eq!(w.ack(&leased[1]).await, Settled::LeaseLost);
    let mut left = w.lease_ids(&q, 10).await;
    left.sort_unstable();
    assert_eq!(left, [ids[1], ids[2]]);
}

async fn an_overdue_lease_is_settled_late(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 4, |_, _| ()).await;
    let leased = w.lease(&q, 4).await;
    w.advance(1_000_000);
    assert!(w.ack(&leased[0]).await.is_applied());
    assert!(w.nack(&leased[1]).await.is_applied());
    assert!(w.release(&leased[2]).await.is_applied());
    assert!(w.bury(&leased[3]).await.is_applied());
}

async fn an_extend_that_races_the_sweeper_wins(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.advance(30_000);
    assert!(
        w.extend(&message, 30_000).await.is_applied(),
        "the sweeper has seen it overdue, but not ended it"
    );
    assert!(w.expire(&q).await.is_empty());
    assert!(w.lease(&q, 1).await.is_empty());
    w.advance(29_999);
    assert!(w.expire(&q).await.is_empty());
    w.advance(1);
    assert_eq!(w.expire(&q).await.len(), 1);
    assert_eq!(w.extend(&message, 1).await, Settled::LeaseLost, "and now the sweeper has won");
}

async fn the_end_of_time_is_no_end(w: &mut World) {
    let q = w.queue("q").await;
    w.set_clock(Timestamp::MAX);
    w.put_with(&q, |d| d.visible = When::After(DELAY_MAX)).await;
    let message = w.lease_one(&q).await;
    assert!(w.extend(&message, LEASE_MAX.get()).await.is_applied());
    assert!(w.nack_with(&message, |item| item.asked = Asked::Exactly(DELAY_MAX)).await.is_applied());
    assert_eq!(w.stats(&q).await.states.of(State::Ready), 1);
}

async fn a_store_without_a_clock_says_so(w: &mut World) {
    let q = w.queue("q").await;
    let request = || LeaseRequest::new(q.clone(), at_most(1), ConsumerName::default(), 0);
    let answer = w.store().lease(Now::Store, request()).await;
    if w.store().capabilities().store_clock {
        assert!(answer.is_ok(), "{answer:?}");
    } else {
        let unsupported = matches!(answer, Err(QueueError::Store(StoreError::Unsupported { .. })));
        assert!(unsupported, "{answer:?}");
    }
}

rules!("time";
    a_store_without_a_clock_says_so,
    a_retry_is_not_one_millisecond_early,
    a_clock_that_is_set_back_expires_nothing_and_loses_nothing,
    time_never_runs_back,
    a_clock_that_jumps_ahead_ends_leases_and_loses_nothing,
    an_overdue_lease_is_settled_late,
    an_extend_that_races_the_sweeper_wins,
    the_end_of_time_is_no_end,
);
