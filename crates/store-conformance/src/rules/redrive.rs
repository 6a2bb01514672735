//! redrive: dead → ready.

use std::num::NonZeroU32;

use redrive_core::lifecycle::Verb;
use redrive_core::message::{State, Uniqueness};
use redrive_store::{BulkRefusal, EnqueueOutcome, Filter, Selection};

use crate::world::{World, after, at_most, dedup, kind, note};

async fn a_redriven_message_starts_anew_and_keeps_its_history(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(2))).await;
    let id = w.put(&q).await;
    for _ in 0..2 {
        let message = w.lease_one(&q).await;
        w.nack(&message).await;
    }
    w.advance(5_000);
    let bulk = w.redrive(&q, Filter::default()).await;
    assert_eq!((bulk.matched, bulk.applied), (1, vec![id]));
    let back = w.get(&q, id).await.expect("there");
    assert_eq!((back.state(w.now()), back.progress.visible_at), (State::Ready, w.now()));
    assert_eq!((back.progress.attempts, back.progress.deliveries, back.progress.redrives), (0, 2, 1));
    assert_eq!(back.history.failures.len(), 2);
    let redriven = back.history.redriven.expect("noted");
    assert_eq!((redriven.at, redriven.to_string().as_str()), (w.now(), "Retry requested by operator: fixed"));
    assert_eq!(w.stats(&q).await.totals.of(Verb::Redrive), 1);
    for _ in 0..2 {
        let message = w.lease_one(&q).await;
        w.nack(&message).await;
    }
    assert_eq!(w.state(&q, id).await, Some(State::Dead), "two more attempts, and no more");
}

async fn only_the_dead_that_match_are_redriven(w: &mut World) {
    let q = w.queue("q").await;
    let mail = w.dead(&q, |d| d.spec.kind = kind("mail")).await;
    let sms = w.dead(&q, |d| d.spec.kind = kind("sms")).await;
    let ready = w.put_with(&q, |d| d.spec.kind = kind("mail")).await;
    let bulk = w.redrive(&q, Filter { kinds: vec![kind("mail")], ..Filter::default() }).await;
    assert_eq!(bulk.applied, [mail]);
    assert_eq!(w.state(&q, sms).await, Some(State::Dead));
    assert_eq!(w.get(&q, ready).await.expect("there").progress.redrives, 0);
}

async fn a_dry_run_counts_and_changes_nothing(w: &mut World) {
    let q = w.queue("q").await;
    for _ in 0..3 {
        w.dead(&q, |_| ()).await;
    }
    let before = w.list(&q, Filter::default()).await;
    let selection = Selection { dry_run: true, ..Selection::new(q.clone(), Filter::default()) };
    let bulk = w.store().redrive(w.at(), selection, note("me"), note("")).await.expect("answers");
    assert_eq!((bulk.matched, bulk.applied.len()), (3, 0));
    assert_eq!(w.list(&q, Filter::default()).await, before);
}

async fn a_long_redrive_goes_step_by_step(w: &mut World) {
    let q = w.queue("q").await;
    let mut ids = w.put_many(&q, 7, |_, _| ()).await;
    for message in w.lease(&q, 7).await {
        w.bury(&message).await;
    }
    let mut after = None;
    let mut applied = Vec::new();
    for _ in 0..20 {
        let selection =
            Selection { after, limit: at_most(3), ..Selection::new(q.clone(), Filter::default()) };
        let step = w.store().redrive(w.at(), selection, note("me"), note("")).await.expect("answers");
        assert!(step.applied.len() <= 3);
        applied.extend(step.applied);
        after = step.next;
        if after.is_none() {
            break;
        }
    }
    ids.sort_unstable();
    assert_eq!((applied, after), (ids, None));
}

async fn a_taken_unique_key_refuses_that_message_alone(w: &mut World) {
    let q = w.queue("q").await;
    let unique = || dedup("order 17", Uniqueness::UntilDone);
    let first = w.dead(&q, |d| d.spec.dedup = unique()).await;
    let other = w.dead(&q, |_| ()).await;
    let second = w.put_with(&q, |d| d.spec.dedup = unique()).await;
    let bulk = w.redrive(&q, Filter::default()).await;
    assert_eq!(bulk.refused, [(first, BulkRefusal::Duplicate(second))]);
    assert_eq!((bulk.matched, bulk.applied), (2, vec![other]));
    assert_eq!(w.state(&q, first).await, Some(State::Dead));
    for message in w.lease(&q, 10).await {
        w.ack(&message).await;
    }
    assert_eq!(w.redrive(&q, Filter::default()).await.applied, [first], "the key is free again");
    let again = w.try_put(&q, |d| d.spec.dedup = unique()).await;
    assert_eq!(again, EnqueueOutcome::Duplicate { id: first }, "and taken again");
}

async fn a_queue_with_no_room_for_its_key_refuses_that_message_alone(w: &mut World) {
    let q = w.queue("q").await;
    let max = crate::subject::Setup::default().limits.dedup_keys_per_queue;
    let keyed = w.dead(&q, |d| d.spec.dedup = dedup("mine", Uniqueness::UntilDone)).await;
    let plain = w.dead(&q, |_| ()).await;
    w.put_many(&q, max, |n, d| d.spec.dedup = dedup(&format!("key {n}"), Uniqueness::Window)).await;
    let bulk = w.redrive(&q, Filter::default()).await;
    assert_eq!(bulk.refused, [(keyed, BulkRefusal::TooManyDedupKeys { max })]);
    assert_eq!(bulk.applied, [plain]);
    assert_eq!(w.state(&q, keyed).await, Some(State::Dead));
}

async fn what_killed_it_does_not_kill_it_again(w: &mut World) {
    let q = w.queue_with("q", |c| c.max_deliveries = Some(NonZeroU32::new(1))).await;
    let old = w.put_with(&q, |d| d.expires = Some(after(10))).await;
    w.advance(10);
    w.lapse(&q).await;
    let often = w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.nack(&message).await;
    assert_eq!(w.stats(&q).await.states.of(State::Dead), 2);
    w.redrive(&q, Filter::default()).await;
    let mut leased = w.lease_ids(&q, 10).await;
    leased.sort_unstable();
    assert_eq!(leased, [old, often]);
}

async fn a_group_of_failures_is_redriven_by_its_fingerprint(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(1))).await;
    let mut ids = Vec::new();
    for error in ["timeout after 31 ms", "bad address 10.0.0.1:80", "timeout after 577 ms"] {
        ids.push(w.put(&q).await);
        let message = w.lease_one(&q).await;
        w.nack_with(&message, |item| item.error = redrive_core::message::ErrorText::new(error)).await;
        w.advance(10);
    }
    let groups = w.store().failure_groups(&q, at_most(10)).await.expect("answers");
    assert_eq!(groups.iter().map(|group| group.messages).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(groups[0].sample.as_str(), "timeout after 577 ms", "the latest");
    assert_eq!(groups[0].last.since(groups[0].first).get(), 20);
    let filter = Filter { fingerprint: Some(groups[0].fingerprint), ..Filter::default() };
    assert_eq!(w.redrive(&q, filter).await.applied, [ids[0], ids[2]]);
    assert_eq!(w.store().failure_groups(&q, at_most(10)).await.expect("answers").len(), 1);
}

async fn a_window_does_not_keep_its_own_message_dead(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.dead(&q, |d| d.spec.dedup = dedup("order 17", Uniqueness::Window)).await;
    let bulk = w.redrive(&q, Filter::default()).await;
    assert_eq!((bulk.applied, bulk.refused), (vec![id], vec![]));
}

async fn a_queue_without_room_for_its_key_refuses_that_message_alone(w: &mut World) {
    let q = w.queue("q").await;
    let max = crate::subject::Setup::default().limits.dedup_keys_per_queue;
    let unique = w.dead(&q, |d| d.spec.dedup = dedup("order 17", Uniqueness::UntilDone)).await;
    let plain = w.dead(&q, |_| ()).await;
    w.put_many(&q, max, |n, d| d.spec.dedup = dedup(&format!("key {n}"), Uniqueness::UntilDone)).await;
    let bulk = w.redrive(&q, Filter::default()).await;
    assert_eq!(bulk.refused, [(unique, BulkRefusal::TooManyDedupKeys { max })]);
    assert_eq!((bulk.applied, w.state(&q, unique).await), (vec![plain], Some(State::Dead)));
}

rules!("redrive";
    a_redriven_message_starts_anew_and_keeps_its_history,
    only_the_dead_that_match_are_redriven,
    a_dry_run_counts_and_changes_nothing,
    a_long_redrive_goes_step_by_step,
    a_taken_unique_key_refuses_that_message_alone,
    a_queue_with_no_room_for_its_key_refuses_that_message_alone,
    what_killed_it_does_not_kill_it_again,
    a_group_of_failures_is_redriven_by_its_fingerprint,
    a_window_does_not_keep_its_own_message_dead,
    a_queue_without_room_for_its_key_refuses_that_message_alone,
);
