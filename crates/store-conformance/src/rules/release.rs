//! release: leased → ready | delayed, with the attempt refunded.

use std::num::NonZeroU32;

use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::Verb;
use redrive_core::message::{DeadReason, State};
use redrive_core::policy::Verdict;
use redrive_core::time::Millis;
use redrive_store::{Batch, LeaseTarget, ReleaseItem, Released, Settled};

use crate::world::{World, claim};

async fn a_released_message_is_unharmed(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(1))).await;
    let id = w.put(&q).await;
    for delivery in 1..=5 {
        let message = w.lease_one(&q).await;
        assert_eq!((message.progress.attempts, message.progress.deliveries), (1, delivery));
        assert!(w.release(&message).await.is_applied());
    }
    let kept = w.get(&q, id).await.expect("there");
    assert_eq!(
        (kept.progress.attempts, kept.progress.deliveries),
        (0, 5),
        "refunded; deliveries never go down"
    );
    assert!(kept.history.failures.is_empty() && kept.history.last_error.is_none(), "nothing failed");
    assert_eq!(w.stats(&q).await.totals.of(Verb::Release), 5);
}

async fn a_snooze_waits(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    let released = w.release_with(LeaseTarget::Claim(claim(&message)), Some(700)).await.applied();
    let visible_at = w.now().plus(Millis::new(700));
    let consumer = ConsumerName::new("consumer").expect("a good name");
    assert_eq!(released, Some(Released { visible_at, consumer, lapsed: None }));
    assert_eq!(w.state(&q, id).await, Some(State::Delayed));
    w.advance(699);
    assert!(w.lease(&q, 1).await.is_empty());
    w.advance(1);
    assert_eq!(w.lease_one(&q).await.id(), id);
}

async fn endless_releases_end_where_the_queue_says_so(w: &mut World) {
    let q = w.queue_with("q", |c| c.max_deliveries = Some(NonZeroU32::new(3))).await;
    let id = w.put(&q).await;
    for delivery in 1..=3 {
        let message = w.lease_one(&q).await;
        let released = w.release(&message).await.applied().expect("applied");
        let lapsed = released.lapsed.map(|judged| judged.verdict);
        let expected = (delivery == 3).then_some(Verdict::Dead(DeadReason::MaxDeliveries));
        assert_eq!(lapsed, expected, "three deliveries are allowed");
    }
    let totals = w.stats(&q).await.totals;
    assert_eq!((totals.of(Verb::Release), totals.of(Verb::Lapse), totals.died), (3, 1, 1));
    assert!(w.lease(&q, 1).await.is_empty());
    let dead = w.get(&q, id).await.expect("there");
    assert_eq!(dead.progress.death().map(|death| death.reason), Some(DeadReason::MaxDeliveries));
}

async fn a_message_that_left_for_another_queue_is_not_found_by_a_later_item(w: &mut World) {
    let graves = w.queue("graves").await;
    let q = w
        .queue_with("q", |c| {
            c.max_deliveries = Some(NonZeroU32::new(1));
            c.dead_letter_to = Some(Some(graves.clone()));
        })
        .await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    let item = ReleaseItem { target: LeaseTarget::Claim(claim(&message)), delay: None };
    let twice = Batch::each(vec![item.clone(), item]).expect("within the limits");
    let outcomes = w.store().release(w.at(), twice).await.expect("the store answers");
    let [Settled::Applied(released), again] = outcomes.as_slice() else { panic!("{outcomes:?}") };
    let moved_to = released.lapsed.as_ref().and_then(|lapsed| lapsed.moved_to.clone());
    assert_eq!((moved_to, again), (Some(graves.clone()), &Settled::NotFound));
    assert_eq!((w.state(&q, id).await, w.state(&graves, id).await), (None, Some(State::Ready)));
}

rules!("release";
    a_released_message_is_unharmed,
    a_snooze_waits,
    endless_releases_end_where_the_queue_says_so,
    a_message_that_left_for_another_queue_is_not_found_by_a_later_item,
);
