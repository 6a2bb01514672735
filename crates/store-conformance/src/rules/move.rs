//! move: any but leased → another queue.

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Message, State, Uniqueness};
use redrive_core::queue::{QueueName, Retention};
use redrive_store::{BulkRefusal, EnqueueOutcome, Filter, QueueError, Selection};

use crate::world::{World, after, dedup, kind};

async fn two(w: &mut World) -> (QueueName, QueueName) {
    (w.queue("from").await, w.queue("to").await)
}

async fn what_waits_goes_on_waiting_with_its_attempts(w: &mut World) {
    let (from, to) = two(w).await;
    let tried = w.put(&from).await;
    let message = w.lease_one(&from).await;
    w.nack(&message).await;
    let delayed = w.put_with(&from, |d| d.visible = after(500)).await;
    let there = w.put(&to).await;
    w.advance(1);
    let bulk = w.move_to(&from, Filter::default(), &to).await;
    assert_eq!((bulk.applied, bulk.refused), (vec![tried, delayed], vec![]));
    assert!(w.list(&from, Filter::default()).await.is_empty(), "it is not in two queues");
    assert_eq!(w.state(&to, delayed).await, Some(State::Delayed));
    let moved = w.get(&to, tried).await.expect("there");
    assert_eq!((moved.progress.attempts, moved.progress.deliveries), (1, 1));
    assert_eq!((moved.origin_queue.as_ref(), moved.history.failures.len()), (Some(&from), 1));
    let first = w.lease_with(&to, 1, |r| r.lane = redrive_store::LaneChoice::Queue).await.messages;
    assert_eq!(first[0].id(), there, "a moved message goes to the back");
    let (out, into) = (w.stats(&from).await.totals, w.stats(&to).await.totals);
    assert_eq!((out.of(Verb::Move), into.moved_in), (2, 2));
}

async fn what_was_dead_starts_anew_and_what_is_done_stays_done(w: &mut World) {
    let kept = Retention { age: None, count: Some(10) };
    let from = w.queue_with("from", |c| c.retain_done = Some(Some(kept))).await;
    let to = w.queue("to").await;
    let dead = w.dead(&from, |_| ()).await;
    let done = w.put(&from).await;
    let message = w.lease_one(&from).await;
    w.ack(&message).await;
    w.move_to(&from, Filter::default(), &to).await;
    let back = w.get(&to, dead).await.expect("there");
    assert_eq!((back.state(w.now()), back.progress.attempts, back.progress.deliveries), (State::Ready, 0, 1));
    assert_eq!(w.state(&to, done).await, Some(State::Done), "an ack is not undone");
}

async fn a_leased_message_stays_where_it_is(w: &mut World) {
    let (from, to) = two(w).await;
    w.put(&from).await;
    let message = w.lease_one(&from).await;
    let bulk = w.move_to(&from, Filter::default(), &to).await;
    assert_eq!((bulk.matched, w.stats(&to).await.states.all()), (0, 0));
    assert!(w.ack(&message).await.is_applied());
}

async fn the_same_id_in_the_target_is_refused(w: &mut World) {
    let (from, to) = two(w).await;
    let draft = w.draft();
    let id = w.put_with(&from, |d| *d = draft.clone()).await;
    w.put_with(&to, |d| *d = draft).await;
    let bulk = w.move_to(&from, Filter::default(), &to).await;
    assert_eq!((bulk.applied, bulk.refused), (vec![], vec![(id, BulkRefusal::Duplicate(id))]));
    assert_eq!((w.stats(&from).await.states.all(), w.stats(&to).await.states.all()), (1, 1));
}

async fn the_target_must_be_another_queue_that_is_there(w: &mut World) {
    let (from, _) = two(w).await;
    let id = w.put(&from).await;
    let nowhere = QueueName::new("nowhere").expect("good");
    let selection = Selection::new(from.clone(), Filter::default());
    let error = w.store().move_to(w.at(), selection.clone(), nowhere).await.expect_err("no such queue");
    assert!(matches!(error, QueueError::NotFound(_)), "{error}");
    let error = w.store().move_to(w.at(), selection, from.clone()).await.expect_err("the same queue");
    assert!(matches!(error, QueueError::Invalid(_)), "{error}");
    assert_eq!(w.state(&from, id).await, Some(State::Ready));
}

async fn a_moved_message_leaves_its_unique_key_free(w: &mut World) {
    let (from, to) = two(w).await;
    let unique = || dedup("order 17", Uniqueness::UntilDone);
    let id = w.put_with(&from, |d| d.spec.dedup = unique()).await;
    w.move_to(&from, Filter::default(), &to).await;
    assert_eq!(w.get(&to, id).await.and_then(|m: Message| m.spec.dedup), None);
    let again = w.try_put(&from, |d| d.spec.dedup = unique()).await;
    assert!(matches!(again, EnqueueOutcome::Enqueued { .. }), "{again:?}");
}

async fn the_target_keeps_its_limit_of_types(w: &mut World) {
    let (from, to) = two(w).await;
    let max = crate::subject::Setup::default().limits.classes_per_queue;
    w.put_many(&to, max, |n, d| d.spec.kind = kind(&format!("type {n}"))).await;
    let known = w.put_with(&from, |d| d.spec.kind = kind("type 0")).await;
    let new = w.put_with(&from, |d| d.spec.kind = kind("another")).await;
    let bulk = w.move_to(&from, Filter::default(), &to).await;
    assert_eq!(bulk.applied, [known]);
    assert_eq!(bulk.refused, [(new, BulkRefusal::TooManyClasses { max })]);
}

async fn a_moved_message_goes_to_the_back(w: &mut World) {
    let (from, to) = two(w).await;
    let early = w.put(&from).await;
    w.advance(10);
    let late = w.put(&from).await;
    let there = w.put(&to).await;
    w.move_to(&from, Filter::default(), &to).await;
    assert_eq!(w.lease_ids(&to, 3).await, [there, early, late], "of those that are there since that moment");
}

rules!("move";
    a_leased_message_stays_where_it_is,
    the_target_must_be_another_queue_that_is_there;
    across queues:
    what_waits_goes_on_waiting_with_its_attempts,
    what_was_dead_starts_anew_and_what_is_done_stays_done,
    the_same_id_in_the_target_is_refused,
    a_moved_message_leaves_its_unique_key_free,
    the_target_keeps_its_limit_of_types,
    a_moved_message_goes_to_the_back,
);
