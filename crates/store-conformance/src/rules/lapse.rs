//! lapse: ready | delayed → dead, for messages that can never be handed out again.

use std::num::NonZeroU32;

use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::Verb;
use redrive_core::message::{DeadReason, Message, State};
use redrive_store::{Filter, LeaseRequest, SweepRequest};

use crate::world::{World, after, at_most, key};

async fn a_message_that_is_too_old_is_never_handed_out(w: &mut World) {
    let q = w.queue("q").await;
    let old = w.put_with(&q, |d| d.expires = Some(after(1_000))).await;
    let good = w.put(&q).await;
    w.advance(999);
    assert_eq!(w.lease_ids(&q, 1).await, [old], "in the last millisecond");
    w.advance(30_000);
    let leased = w.lease_with(&q, 10, |_| ()).await;
    assert_eq!(leased.messages.iter().map(redrive_core::message::Message::id).collect::<Vec<_>>(), [good]);
    let dead = w.get(&q, old).await.expect("there");
    assert_eq!(dead.progress.death().map(|death| death.reason), Some(DeadReason::ExpiredTtl));
}

async fn a_sweeper_lapses_what_is_too_old(w: &mut World) {
    let q = w.queue("q").await;
    let ready = w.put_with(&q, |d| d.expires = Some(after(1_000))).await;
    let delayed = w
        .put_with(&q, |d| {
            d.expires = Some(after(1_000));
            d.visible = after(60_000);
        })
        .await;
    w.put(&q).await;
    w.advance(999);
    assert!(w.lapse(&q).await.is_empty());
    let due = w.store().next_due(w.at(), Some(&q)).await.expect("answers").lapse;
    w.advance(1);
    assert_eq!(due, Some(w.now()));
    let lapsed: Vec<_> = w.lapse(&q).await.into_iter().map(|judged| judged.message).collect();
    assert_eq!(lapsed, [ready, delayed]);
    let stats = w.stats(&q).await;
    assert_eq!((stats.states.of(State::Dead), stats.states.of(State::Ready)), (2, 1));
    assert_eq!((stats.totals.of(Verb::Lapse), stats.totals.died), (2, 2));
}

async fn a_message_is_found_behind_any_number_that_are_too_old(w: &mut World) {
    // More than what one call deals with, or one command takes, on any store.
    const OLD: usize = 9_000;
    let q = w.queue("q").await;
    w.put_many(&q, OLD, |n, d| {
        d.spec.fairness_key = key(&format!("k{n}"));
        d.expires = Some(after(1_000));
    })
    .await;
    let good = w.put(&q).await;
    w.advance(1_000);
    let mut found = Vec::new();
    for _ in 0..=OLD {
        let request = LeaseRequest::new(q.clone(), at_most(10), ConsumerName::default(), 1);
        let leased = w.store().lease(w.at(), request).await.expect("answers");
        found.extend(leased.messages.iter().map(Message::id));
        if !leased.more {
            break;
        }
    }
    assert_eq!(found, [good]);
    while !w.lapse(&q).await.is_empty() {}
    assert_eq!(w.stats(&q).await.states.of(State::Dead), OLD as u64);
    // The audit behind every rule looks at all there is.
    while !w.discard(&q, Filter::state(State::Dead), true).await.applied.is_empty() {}
}

async fn a_lease_outlives_the_time_to_live(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put_with(&q, |d| d.expires = Some(after(1_000))).await;
    let message = w.lease_one(&q).await;
    w.advance(5_000);
    assert!(w.lapse(&q).await.is_empty());
    assert_eq!(w.state(&q, id).await, Some(State::Leased));
    assert!(w.ack(&message).await.is_applied());
}

async fn a_lowered_cap_lapses_what_has_used_it_up(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(5))).await;
    let tried = w.put(&q).await;
    for _ in 0..2 {
        let message = w.lease_one(&q).await;
        w.nack(&message).await;
    }
    let fresh = w.put(&q).await;
    w.update(&q, |c| c.retry.max_attempts = Some(NonZeroU32::new(2))).await;
    assert_eq!(w.lease_ids(&q, 10).await, [fresh], "a third attempt would go over the cap");
    assert_eq!(w.lapse(&q).await.len(), 1);
    let dead = w.get(&q, tried).await.expect("there");
    assert_eq!(dead.progress.death().map(|death| death.reason), Some(DeadReason::MaxAttempts));
}

async fn at_most_so_many_at_a_time(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 5, |_, d| d.expires = Some(after(10))).await;
    w.advance(10);
    for expected in [2, 2, 1, 0] {
        let request = SweepRequest { queue: None, limit: at_most(2) };
        assert_eq!(w.store().lapse(w.at(), request).await.expect("answers").len(), expected);
    }
}

async fn a_dead_letter_loses_its_time_to_live(w: &mut World) {
    let graveyard = w.queue("graveyard").await;
    let q = w.queue_with("q", |c| c.dead_letter_to = Some(Some(graveyard.clone()))).await;
    let id = w.put_with(&q, |d| d.expires = Some(after(10))).await;
    w.advance(10);
    assert_eq!(w.lapse(&q).await[0].moved_to, Some(graveyard.clone()));
    assert!(w.lapse(&graveyard).await.is_empty());
    assert_eq!(w.lease_ids(&graveyard, 1).await, [id], "what killed it there does not kill it here");
}

async fn the_earliest_go_first_and_what_is_over_a_cap_last(w: &mut World) {
    let q = w.queue("q").await;
    let capped = w.put_many(&q, 2, |n, d| d.expires = Some(after(9_000 - 1_000 * n as u64))).await;
    for message in w.lease(&q, 2).await {
        w.nack(&message).await;
    }
    let late = w.put_with(&q, |d| d.expires = Some(after(2_000))).await;
    let early = w.put_with(&q, |d| d.expires = Some(after(1_000))).await;
    w.update(&q, |c| c.retry.max_attempts = Some(NonZeroU32::new(1))).await;
    w.advance(2_000);
    let lapsed: Vec<_> = w.lapse(&q).await.into_iter().map(|judged| judged.message).collect();
    assert_eq!(lapsed, [early, late, capped[0], capped[1]]);
}

rules!("lapse";
    a_message_that_is_too_old_is_never_handed_out,
    a_sweeper_lapses_what_is_too_old,
    a_message_is_found_behind_any_number_that_are_too_old,
    a_lease_outlives_the_time_to_live,
    a_lowered_cap_lapses_what_has_used_it_up,
    at_most_so_many_at_a_time,
    the_earliest_go_first_and_what_is_over_a_cap_last;
    across queues: a_dead_letter_loses_its_time_to_live,
);
