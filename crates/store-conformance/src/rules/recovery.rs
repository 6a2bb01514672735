//! Recovery: what was answered is there after a restart, and goes on where it was.

use redrive_core::message::{Checkpoint, State};
use redrive_core::time::Millis;
use redrive_store::{Filter, LeaseTarget};

use crate::world::{World, after, claim, key};

async fn everything_is_as_it_was(w: &mut World) {
    let kept = redrive_core::queue::Retention { age: None, count: Some(9) };
    let q = w
        .queue_with("q", |c| {
            c.retain_done = Some(Some(kept));
            c.retry.base_delay = Some(Millis::new(60_000));
        })
        .await;
    w.dead(&q, |_| ()).await;
    w.put_many(&q, 6, |n, d| d.spec.fairness_key = key(["a", "b"][n % 2])).await;
    w.put_with(&q, |d| d.visible = after(5_000)).await;
    let leased = w.lease(&q, 3).await;
    w.nack(&leased[0]).await;
    w.ack(&leased[1]).await;
    let checkpoint = Checkpoint::new("half way").expect("small");
    w.extend_with(LeaseTarget::Claim(claim(&leased[2])), 90_000, Some(checkpoint)).await;
    let (messages, stats) = (w.list(&q, Filter::default()).await, w.stats(&q).await);
    w.restart().await;
    assert_eq!(w.list(&q, Filter::default()).await, messages);
    assert_eq!(w.stats(&q).await, stats);
}

async fn a_receipt_survives_a_restart(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 3, |_, _| ()).await;
    let leased = w.lease(&q, 3).await;
    let key = w.store().receipt_key().await.expect("answers");
    let receipt = key.seal(&claim(&leased[0]));
    w.restart().await;
    let key = w.store().receipt_key().await.expect("answers");
    assert_eq!(key.open(&receipt), Ok(claim(&leased[0])), "the key is the same");
    assert!(w.ack(&leased[0]).await.is_applied());
    assert!(w.nack(&leased[1]).await.is_applied());
    assert!(w.extend(&leased[2], 1_000).await.is_applied());
}

async fn a_lease_is_not_handed_out_again_by_a_restart(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.advance(10_000);
    w.restart().await;
    assert!(w.lease(&q, 1).await.is_empty() && w.expire(&q).await.is_empty());
    w.advance(20_000);
    let again = w.lease_one(&q).await;
    assert_eq!(again.progress.attempts, 2, "attempts survive");
    assert!(again.lease().map(|l| l.id) > message.lease().map(|l| l.id), "fencing tokens go on growing");
    assert!(!w.ack(&message).await.is_applied());
}

async fn a_lease_that_ran_out_meanwhile_has_a_grace(w: &mut World) {
    let q = w.queue("q").await;
    let grace = w.store().capabilities().restart_grace.get();
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.advance(3_600_000);
    w.restart().await;
    if grace > 0 {
        w.advance(grace - 1);
        assert!(w.expire(&q).await.is_empty(), "the consumer had no way to extend it");
        w.advance(1);
    }
    assert_eq!(w.expire(&q).await.len(), 1);
    assert!(!w.ack(&message).await.is_applied());
}

async fn delays_and_deadlines_go_on_over_a_restart(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.base_delay = Some(Millis::new(10_000))).await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.nack(&message).await;
    w.advance(4_000);
    w.restart().await;
    w.advance(5_999);
    assert!(w.lease(&q, 1).await.is_empty(), "not early");
    w.advance(1);
    assert_eq!(w.lease(&q, 1).await.len(), 1, "and not late");
}

async fn an_acked_message_stays_gone(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 20, |_, _| ()).await;
    for message in w.lease(&q, 10).await {
        w.ack(&message).await;
    }
    for _ in 0..3 {
        w.restart().await;
        assert_eq!(w.stats(&q).await.states.all(), 10);
    }
    assert_eq!(w.stats(&q).await.states.of(State::Ready), 10);
}

rules!("recovery";
    everything_is_as_it_was,
    a_receipt_survives_a_restart,
    a_lease_is_not_handed_out_again_by_a_restart,
    a_lease_that_ran_out_meanwhile_has_a_grace,
    delays_and_deadlines_go_on_over_a_restart,
    an_acked_message_stays_gone,
);
