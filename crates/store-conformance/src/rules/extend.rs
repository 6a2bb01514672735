//! extend: leased → leased, with a later deadline.

use redrive_core::lifecycle::Verb;
use redrive_core::message::Checkpoint;
use redrive_core::time::Millis;
use redrive_store::LeaseTarget;

use crate::world::{World, claim};

async fn an_extension_counts_from_now(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.advance(20_000);
    let deadline = w.extend(&message, 30_000).await.applied().expect("applied");
    assert_eq!(deadline, w.now().plus(Millis::new(30_000)));
    w.advance(29_999);
    assert!(w.expire(&q).await.is_empty(), "the old deadline has passed, the new one has not");
    w.advance(1);
    assert_eq!(w.expire(&q).await.len(), 1);
    assert_eq!(w.stats(&q).await.totals.of(Verb::Extend), 1);
}

async fn a_deadline_never_moves_back(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    let before = message.lease().expect("leased").deadline;
    assert_eq!(w.extend(&message, 1).await.applied(), Some(before));
}

async fn max_lease_bounds_all_extensions_together(w: &mut World) {
    let q = w.queue_with("q", |c| c.max_lease = Some(Millis::new(60_000))).await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    let latest = w.now().plus(Millis::new(60_000));
    for _ in 0..5 {
        w.advance(10_000);
        let deadline = w.extend(&message, 50_000).await.applied().expect("applied");
        assert_eq!(deadline, latest.min(w.now().plus(Millis::new(50_000))));
    }
    w.advance(10_000);
    assert_eq!(w.expire(&q).await.len(), 1);
}

async fn extending_after_the_deadline_applies_while_nothing_ended_the_lease(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.advance(60_000);
    assert!(w.extend(&message, 30_000).await.is_applied());
    assert!(w.expire(&q).await.is_empty(), "it is current again");
    assert!(w.ack(&message).await.is_applied());
}

async fn a_checkpoint_stays_with_the_message(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    let checkpoint = Checkpoint::new(&b"\x00step 3\xFF"[..]).expect("small");
    w.extend_with(LeaseTarget::Claim(claim(&message)), 30_000, Some(checkpoint.clone())).await;
    w.extend(&message, 30_000).await;
    assert_eq!(
        w.get(&q, id).await.expect("there").history.checkpoint,
        Some(checkpoint.clone()),
        "kept if not set"
    );
    w.nack(&message).await;
    let again = w.lease_one(&q).await;
    assert_eq!(again.history.checkpoint, Some(checkpoint), "the next attempt goes on from there");
    let later = Checkpoint::new("step 5").expect("small");
    w.nack_with(&again, |item| item.checkpoint = Some(later.clone())).await;
    w.restart().await;
    assert_eq!(w.lease_one(&q).await.history.checkpoint, Some(later));
}

rules!("extend";
    an_extension_counts_from_now,
    a_deadline_never_moves_back,
    max_lease_bounds_all_extensions_together,
    extending_after_the_deadline_applies_while_nothing_ended_the_lease,
    a_checkpoint_stays_with_the_message,
);
