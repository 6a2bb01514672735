//! At most one current lease; a stale receipt changes nothing.

use redrive_core::lease::LeaseId;
use redrive_core::message::{Message, MessageId, State};
use redrive_core::queue::QueueName;
use redrive_store::{LeaseTarget, Settled};

use crate::world::World;

/// Tries every settlement with a receipt that must not work, and sees that the message stays as it is.
async fn nothing_works(w: &mut World, stale: &Message, lost: bool) {
    let before = w.get(&stale.queue, stale.id()).await;
    let totals = w.stats(&stale.queue).await.totals;
    let refused = |name: &str, found: bool, lost_it: bool| {
        assert!(
            if lost { lost_it } else { found },
            "{name} with a stale receipt was not refused as it should be"
        );
    };
    let ack = w.ack(stale).await;
    refused("ack", ack == Settled::NotFound, ack == Settled::LeaseLost);
    let nack = w.nack(stale).await;
    refused("nack", nack == Settled::NotFound, nack == Settled::LeaseLost);
    let extend = w.extend(stale, 60_000).await;
    refused("extend", extend == Settled::NotFound, extend == Settled::LeaseLost);
    let release = w.release(stale).await;
    refused("release", release == Settled::NotFound, release == Settled::LeaseLost);
    let bury = w.bury(stale).await;
    refused("bury", bury == Settled::NotFound, bury == Settled::LeaseLost);
    assert_eq!(w.get(&stale.queue, stale.id()).await, before, "a stale receipt changed the message");
    assert_eq!(w.stats(&stale.queue).await.totals, totals, "a stale receipt was counted");
}

async fn leased(w: &mut World, name: &str) -> (QueueName, Message) {
    let q = w.queue(name).await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    (q, message)
}

async fn a_stale_receipt_changes_nothing(w: &mut World) {
    let (q, first) = leased(w, "q").await;
    w.nack(&first).await;
    let second = w.lease_one(&q).await;
    nothing_works(w, &first, true).await;
    assert!(w.ack(&second).await.is_applied(), "the current lease still works");
}

async fn a_receipt_of_an_expired_lease_changes_nothing(w: &mut World) {
    let (q, first) = leased(w, "q").await;
    w.advance(30_000);
    w.expire(&q).await;
    nothing_works(w, &first, true).await;
    let second = w.lease_one(&q).await;
    nothing_works(w, &first, true).await;
    assert!(w.nack(&second).await.is_applied());
}

async fn a_receipt_works_once(w: &mut World) {
    let (q, message) = leased(w, "acked").await;
    assert!(w.ack(&message).await.is_applied());
    nothing_works(w, &message, false).await;
    let q2 = w.queue("nacked").await;
    w.put(&q2).await;
    let message = w.lease_one(&q2).await;
    assert!(w.nack(&message).await.is_applied());
    nothing_works(w, &message, true).await;
    assert_eq!(w.stats(&q).await.states.all(), 0);
}

async fn a_kept_done_message_is_settled(w: &mut World) {
    let kept = redrive_core::queue::Retention { age: None, count: Some(9) };
    let q = w.queue_with("q", |config| config.retain_done = Some(Some(kept))).await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.ack(&message).await;
    nothing_works(w, &message, false).await;
}

async fn a_receipt_of_a_dead_message_changes_nothing(w: &mut World) {
    let (q, message) = leased(w, "q").await;
    w.bury(&message).await;
    nothing_works(w, &message, true).await;
    assert_eq!(w.state(&q, message.id()).await, Some(State::Dead));
}

async fn a_receipt_of_a_message_discarded_by_force_changes_nothing(w: &mut World) {
    let (q, message) = leased(w, "q").await;
    w.discard(&q, redrive_store::Filter::default(), true).await;
    nothing_works(w, &message, false).await;
}

async fn a_receipt_of_a_deleted_queue_changes_nothing(w: &mut World) {
    let (q, message) = leased(w, "q").await;
    let request = redrive_store::DeleteQueue { name: q.clone(), force: true };
    w.store().delete_queue(w.at(), request).await.expect("deleted");
    assert_eq!(w.ack(&message).await, Settled::NotFound);
    w.queue("q").await;
    assert_eq!(w.ack(&message).await, Settled::NotFound, "a queue of the same name is another queue");
    assert_eq!(w.extend(&message, 1).await, Settled::NotFound);
}

async fn a_message_enqueued_again_after_its_queue_was_deleted_is_another(w: &mut World) {
    let q = w.queue("q").await;
    let draft = w.draft();
    w.put_with(&q, |d| *d = draft.clone()).await;
    let old = w.lease_one(&q).await;
    let request = redrive_store::DeleteQueue { name: q.clone(), force: true };
    w.store().delete_queue(w.at(), request).await.expect("deleted");
    w.queue("q").await;
    w.put_with(&q, |d| *d = draft).await;
    let new = w.lease_one(&q).await;
    assert!(new.lease().map(|lease| lease.id) > old.lease().map(|lease| lease.id), "tokens go on growing");
    nothing_works(w, &old, true).await;
    assert!(w.ack(&new).await.is_applied());
}

async fn the_leases_of_one_call_grow_in_its_order(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 20, |n, d| d.spec.fairness_key = crate::world::key(["a", "b", "c"][n % 3])).await;
    let leased = w.lease(&q, 20).await;
    let tokens: Vec<_> = leased.iter().filter_map(|message| message.lease().map(|lease| lease.id)).collect();
    assert!(tokens.len() == 20 && tokens.windows(2).all(|pair| pair[0] < pair[1]), "{tokens:?}");
}

async fn a_receipt_for_another_message_or_lease_changes_nothing(w: &mut World) {
    let (q, mine) = leased(w, "q").await;
    w.put(&q).await;
    let other = w.lease_one(&q).await;
    let mut forged = mine.clone();
    forged.progress.phase = other.progress.phase.clone();
    nothing_works(w, &forged, true).await;
    forged = mine.clone();
    forged.spec.id = MessageId::MIN;
    nothing_works(w, &forged, false).await;
    forged = mine.clone();
    forged.queue = w.queue("elsewhere").await;
    nothing_works(w, &forged, false).await;
    assert!(w.ack(&mine).await.is_applied() && w.ack(&other).await.is_applied());
}

async fn lease_ids_only_grow(w: &mut World) {
    let (q, mut message) = leased(w, "q").await;
    let other = w.queue("other").await;
    let mut last: Option<LeaseId> = None;
    for round in 0..12 {
        let id = message.lease().expect("leased").id;
        assert!(last < Some(id), "round {round}: {id} is not larger than {last:?}");
        last = Some(id);
        match round % 4 {
            0 => assert!(w.nack(&message).await.is_applied()),
            1 => assert!(w.release(&message).await.is_applied()),
            2 => w.advance(30_000),
            _ => {
                assert!(w.release(&message).await.is_applied());
                let (from, to) = if message.queue == q { (&q, &other) } else { (&other, &q) };
                w.move_to(from, redrive_store::Filter::default(), to).await;
                w.restart().await;
                message.queue = to.clone();
            }
        }
        let queue = message.queue.clone();
        message = w.lease_one(&queue).await;
    }
}

async fn an_operator_needs_no_receipt(w: &mut World) {
    let (q, message) = leased(w, "q").await;
    let target = LeaseTarget::Current { queue: q.clone(), message: message.id() };
    let deadline = w.extend_with(target.clone(), 60_000, None).await.applied().expect("extended");
    assert_eq!(w.get(&q, message.id()).await.and_then(|m| m.lease().map(|l| l.deadline)), Some(deadline));
    assert!(w.release_with(target.clone(), None).await.is_applied());
    assert_eq!(
        w.release_with(target.clone(), None).await,
        Settled::LeaseLost,
        "there is no lease to release"
    );
    nothing_works(w, &message, true).await;
    let nowhere = LeaseTarget::Current { queue: q, message: MessageId::MIN };
    assert_eq!(w.extend_with(nowhere, 1, None).await, Settled::NotFound);
}

async fn an_operator_who_names_a_lease_touches_no_other(w: &mut World) {
    let (q, first) = leased(w, "q").await;
    let named = |message: &Message| {
        let lease = message.lease().expect("it was leased").id;
        LeaseTarget::Seen { queue: message.queue.clone(), message: message.id(), lease }
    };
    let deadline = w.extend_with(named(&first), 60_000, None).await.applied().expect("it is the current one");
    w.advance(60_000);
    w.expire(&q).await;
    assert_eq!(w.release_with(named(&first), None).await, Settled::LeaseLost, "nobody has the message");
    let second = w.lease_one(&q).await;
    assert!(second.lease().is_some_and(|lease| lease.deadline > deadline));
    let (before, totals) = (w.get(&q, second.id()).await, w.stats(&q).await.totals);
    assert_eq!(w.extend_with(named(&first), 60_000, None).await, Settled::LeaseLost);
    assert_eq!(w.release_with(named(&first), None).await, Settled::LeaseLost);
    assert_eq!(w.get(&q, second.id()).await, before, "the next lease was touched");
    assert_eq!(w.stats(&q).await.totals, totals, "a refusal was counted");
    assert!(w.release_with(named(&second), None).await.is_applied());
    let nowhere = LeaseTarget::Seen { queue: q, message: MessageId::MIN, lease: LeaseId::from_bits(1) };
    assert_eq!(w.extend_with(nowhere, 1, None).await, Settled::NotFound);
}

async fn a_leased_message_is_handed_out_to_nobody_else(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 10, |_, _| ()).await;
    let mut seen = w.lease_ids(&q, 4).await;
    seen.extend(w.lease_ids(&q, 100).await);
    seen.sort_unstable();
    assert_eq!(seen, ids);
    assert!(w.lease(&q, 100).await.is_empty());
}

rules!("fencing";
    a_stale_receipt_changes_nothing,
    a_receipt_of_an_expired_lease_changes_nothing,
    a_receipt_works_once,
    a_kept_done_message_is_settled,
    a_receipt_of_a_dead_message_changes_nothing,
    a_receipt_of_a_message_discarded_by_force_changes_nothing,
    a_receipt_of_a_deleted_queue_changes_nothing,
    a_message_enqueued_again_after_its_queue_was_deleted_is_another,
    the_leases_of_one_call_grow_in_its_order,
    a_receipt_for_another_message_or_lease_changes_nothing,
    lease_ids_only_grow,
    an_operator_needs_no_receipt,
    an_operator_who_names_a_lease_touches_no_other,
    a_leased_message_is_handed_out_to_nobody_else,
);
