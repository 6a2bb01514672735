//! Within a lane and a key: priority first, then who was there first.

use redrive_core::lifecycle::{Reschedule, When};
use redrive_core::message::MessageId;
use redrive_core::time::Millis;
use redrive_store::{Filter, LeaseTarget, Selection};

use crate::world::{World, after, claim, priority};

async fn the_first_in_is_the_first_out(w: &mut World) {
    let q = w.queue("q").await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(w.put(&q).await);
        w.advance(1);
    }
    ids.extend(w.put_many(&q, 20, |_, _| ()).await);
    assert_eq!(w.lease_ids(&q, 7).await, ids[..7]);
    let mut one_by_one = Vec::new();
    for _ in 7..ids.len() {
        one_by_one.push(w.lease_one(&q).await.id());
    }
    assert_eq!(one_by_one, ids[7..]);
}

async fn the_order_is_not_the_order_of_ids(w: &mut World) {
    let q = w.queue("q").await;
    let mut ids: Vec<MessageId> = (0..10).map(|_| w.draft().spec.id).collect();
    ids.reverse();
    for id in &ids {
        w.put_with(&q, |d| d.spec.id = *id).await;
    }
    assert_eq!(w.lease_ids(&q, 10).await, ids, "a caller may choose its ids in any order");
}

async fn a_higher_priority_is_served_first(w: &mut World) {
    let q = w.queue("q").await;
    let mut by_level: Vec<(u8, MessageId)> = Vec::new();
    for level in [5, 0, 9, 5, 9, 3] {
        by_level.push((level, w.put_with(&q, |d| d.priority = priority(level)).await));
        w.advance(1);
    }
    by_level.sort_by_key(|(level, _)| std::cmp::Reverse(*level));
    let expected: Vec<MessageId> = by_level.into_iter().map(|(_, id)| id).collect();
    assert_eq!(w.lease_ids(&q, 10).await, expected);
}

async fn a_delayed_message_goes_to_the_back_when_its_time_comes(w: &mut World) {
    let q = w.queue("q").await;
    let delayed = w.put_with(&q, |d| d.visible = after(100)).await;
    w.advance(50);
    let early = w.put(&q).await;
    w.advance(50);
    w.advance(1);
    let late = w.put(&q).await;
    assert_eq!(w.lease_ids(&q, 10).await, [early, delayed, late]);
}

async fn a_nacked_message_goes_to_the_back_of_the_retries(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 3, |_, _| ()).await;
    for _ in 0..2 {
        for message in w.lease(&q, 3).await {
            assert!(w.nack(&message).await.is_applied());
        }
    }
    let first = w.lease_one(&q).await;
    assert_eq!(first.id(), ids[0]);
    w.nack(&first).await;
    assert_eq!(w.lease_ids(&q, 3).await, [ids[1], ids[2], ids[0]]);
}

async fn a_released_message_keeps_its_place(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 4, |_, _| ()).await;
    let leased = w.lease(&q, 2).await;
    w.advance(10);
    w.put(&q).await;
    w.release(&leased[1]).await;
    w.release(&leased[0]).await;
    assert_eq!(w.lease_ids(&q, 4).await, ids);
}

async fn a_snoozed_message_goes_to_the_back(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 2, |_, _| ()).await;
    let first = w.lease_one(&q).await;
    w.release_with(LeaseTarget::Claim(claim(&first)), Some(0)).await;
    assert_eq!(w.lease_ids(&q, 2).await, [ids[1], ids[0]]);
}

async fn an_expired_message_goes_to_the_back_of_the_retries(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 2, |_, _| ()).await;
    let both = w.lease(&q, 2).await;
    w.nack(&both[1]).await;
    w.advance(30_000);
    w.expire(&q).await;
    assert_eq!(w.lease_ids(&q, 2).await, [ids[1], ids[0]]);
}

async fn leases_that_run_out_together_return_in_the_order_of_their_deadlines(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 3, |n, d| d.spec.lease_timeout = Some(Millis::new(300 - 100 * n as u64))).await;
    w.lease(&q, 3).await;
    w.advance(1_000);
    let expired: Vec<MessageId> = w.expire(&q).await.into_iter().map(|judged| judged.message).collect();
    assert_eq!(expired, [ids[2], ids[1], ids[0]]);
    assert_eq!(w.lease_ids(&q, 3).await, [ids[2], ids[1], ids[0]]);
}

async fn a_time_in_the_past_means_now(w: &mut World) {
    let q = w.queue("q").await;
    let first = w.put(&q).await;
    let second = w.put_with(&q, |d| d.visible = When::At(redrive_core::time::Timestamp::EPOCH)).await;
    assert_eq!(w.lease_ids(&q, 2).await, [first, second]);
}

async fn of_those_that_return_at_one_moment_the_first_is_the_first(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 3, |n, d| d.spec.lease_timeout = Some(Millis::new(1_000 + n as u64))).await;
    let leased = w.lease(&q, 3).await;
    w.advance(1_000);
    w.nack(&leased[1]).await;
    w.expire(&q).await;
    w.nack(&leased[2]).await;
    assert_eq!(w.lease_ids(&q, 3).await, [ids[1], ids[0], ids[2]]);
}

async fn a_redriven_message_goes_to_the_back_of_the_retries(w: &mut World) {
    let q = w.queue("q").await;
    let dead = w.dead(&q, |_| ()).await;
    let nacked = w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.nack(&message).await;
    w.redrive(&q, Filter::default()).await;
    assert_eq!(w.lease_ids(&q, 2).await, [nacked, dead], "both since the same moment");
}

async fn a_rescheduled_message_goes_to_the_back(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 3, |_, _| ()).await;
    let change = Reschedule { visible: Some(When::Now), priority: None };
    let selection = Selection::new(q.clone(), Filter::ids([ids[0]]));
    w.store().reschedule(w.at(), selection, change).await.expect("answers");
    assert_eq!(w.lease_ids(&q, 3).await, [ids[1], ids[2], ids[0]]);
}

rules!("ordering";
    the_first_in_is_the_first_out,
    the_order_is_not_the_order_of_ids,
    a_higher_priority_is_served_first,
    a_delayed_message_goes_to_the_back_when_its_time_comes,
    a_nacked_message_goes_to_the_back_of_the_retries,
    a_released_message_keeps_its_place,
    a_snoozed_message_goes_to_the_back,
    an_expired_message_goes_to_the_back_of_the_retries,
    leases_that_run_out_together_return_in_the_order_of_their_deadlines,
    a_time_in_the_past_means_now,
    of_those_that_return_at_one_moment_the_first_is_the_first,
    a_redriven_message_goes_to_the_back_of_the_retries,
    a_rescheduled_message_goes_to_the_back,
);
