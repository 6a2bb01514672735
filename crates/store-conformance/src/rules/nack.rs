//! nack: leased → delayed | ready | dead, as the judge decides.

use std::num::NonZeroU32;

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Cause, DeadReason, ErrorText, Message, State};
use redrive_core::policy::{Asked, DelayRule, Fingerprint, Jitter, Verdict};
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_core::time::{Millis, Timestamp};

use crate::world::{World, after, kind};

fn backoff(config: &mut QueueConfig) {
    config.retry.base_delay = Some(Millis::new(1_000));
}

async fn failed(w: &mut World, message: &Message, asked: Asked) -> Verdict {
    let judged = w.nack_with(message, |item| item.asked = asked).await.applied().expect("applied");
    judged.verdict
}

async fn a_failed_message_waits_for_its_backoff(w: &mut World) {
    let q = w.queue_with("q", backoff).await;
    let id = w.put(&q).await;
    for delay in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        let message = w.lease_one(&q).await;
        let due = w.now().plus(Millis::new(delay));
        assert_eq!(failed(w, &message, Asked::Nothing).await, Verdict::RetryAt(due, DelayRule::Backoff));
        assert_eq!(w.state(&q, id).await, Some(State::Delayed));
        w.advance(delay - 1);
        assert!(w.lease(&q, 1).await.is_empty(), "one millisecond early");
        w.advance(1);
    }
    assert_eq!(w.lease_one(&q).await.progress.attempts, 8);
}

async fn without_a_delay_it_is_ready_at_once_and_for_ever(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    for attempt in 1..=30 {
        let message = w.lease_one(&q).await;
        assert_eq!(message.progress.attempts, attempt);
        assert!(w.nack(&message).await.is_applied());
    }
}

async fn the_cap_is_exact(w: &mut World) {
    for max in 1..=4u32 {
        let name = format!("cap{max}");
        let q = w.queue_with(&name, |c| c.retry.max_attempts = Some(NonZeroU32::new(max))).await;
        let id = w.put(&q).await;
        for attempt in 1..=max {
            let message = w.lease_one(&q).await;
            let judged = w.nack(&message).await.applied().expect("applied");
            let dead = judged.verdict == Verdict::Dead(DeadReason::MaxAttempts);
            assert_eq!(dead, attempt == max, "{max} attempts are allowed, this was number {attempt}");
            assert_eq!((judged.attempts, judged.max_attempts), (attempt, NonZeroU32::new(max)));
        }
        assert_eq!(w.state(&q, id).await, Some(State::Dead));
        assert!(w.lease(&q, 1).await.is_empty());
    }
}

async fn the_messages_own_cap_wins(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(3))).await;
    let id = w.put_with(&q, |d| d.spec.max_attempts = NonZeroU32::new(1)).await;
    let message = w.lease_one(&q).await;
    w.nack(&message).await;
    assert_eq!(w.state(&q, id).await, Some(State::Dead));
}

async fn what_the_consumer_asks_for_is_honoured(w: &mut World) {
    let q = w.queue_with("q", backoff).await;
    w.put(&q).await;
    let due = |w: &World, ms| w.now().plus(Millis::new(ms));
    let cases: [(Asked, u64, DelayRule); 4] = [
        (Asked::AtLeast(Millis::new(10)), 1_000, DelayRule::Backoff),
        (Asked::AtLeast(Millis::new(70_000)), 70_000, DelayRule::AtLeast),
        (Asked::Exactly(Millis::new(3)), 3, DelayRule::Exactly),
        (Asked::Exactly(Millis::ZERO), 0, DelayRule::Exactly),
    ];
    for (asked, delay, rule) in cases {
        let message = w.lease_one(&q).await;
        assert_eq!(failed(w, &message, asked).await, Verdict::RetryAt(due(w, delay), rule));
        w.advance(delay);
    }
}

async fn a_retry_that_would_come_too_late_is_dead_now(w: &mut World) {
    let q = w.queue_with("q", backoff).await;
    let in_time = w.put_with(&q, |d| d.expires = Some(after(1_001))).await;
    let too_late = w.put_with(&q, |d| d.expires = Some(after(1_000))).await;
    for message in w.lease(&q, 2).await {
        w.nack(&message).await;
    }
    assert_eq!(w.state(&q, in_time).await, Some(State::Delayed));
    let dead = w.get(&q, too_late).await.expect("there");
    assert_eq!(dead.progress.death().map(|death| death.reason), Some(DeadReason::ExpiredTtl));
}

async fn jitter_stays_in_its_band_and_spreads(w: &mut World) {
    let q = w
        .queue_with("q", |c| {
            backoff(c);
            c.retry.jitter = Some(Jitter::Proportional(100));
        })
        .await;
    w.put_many(&q, 200, |_, _| ()).await;
    let mut seen = std::collections::BTreeSet::new();
    for message in w.lease(&q, 200).await {
        let Verdict::RetryAt(due, _) = failed(w, &message, Asked::Nothing).await else { panic!("dead") };
        let delay = due.since(w.now()).get();
        assert!((900..=1_100).contains(&delay), "{delay} ms");
        seen.insert(delay);
    }
    assert!(seen.len() > 50, "200 messages share {} delays: they come back together", seen.len());
}

async fn the_failure_is_written_down(w: &mut World) {
    let q = w.queue_with("q", backoff).await;
    let id = w.put_with(&q, |d| d.spec.kind = kind("mail")).await;
    let leased_at = w.now();
    let message = w.lease_one(&q).await;
    w.advance(250);
    let error = ErrorText::new("timeout after 31 ms");
    let judged = w.nack_with(&message, |item| item.error = error.clone()).await.applied().expect("applied");
    assert_eq!((judged.message, judged.kind, judged.error), (id, kind("mail"), error.clone()));
    assert_eq!((judged.queue, judged.moved_to), (q.clone(), None));
    assert_eq!((judged.at, judged.leased_at), (w.now(), Some(leased_at)));
    let kept = w.get(&q, id).await.expect("there");
    assert_eq!(kept.history.last_error, Some(error.clone()));
    let record = kept.history.failures.back().expect("one");
    assert_eq!((record.attempt, record.cause, &record.error), (1, Cause::Nack, &error));
    assert_eq!((record.leased_at, record.ended_at), (leased_at, w.now()));
    assert_eq!(record.delay, Some((Millis::new(1_000), DelayRule::Backoff)));
    assert_eq!(w.stats(&q).await.totals.of(Verb::Nack), 1);
}

async fn only_the_last_twenty_failures_are_kept(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    for _ in 0..23 {
        let message = w.lease_one(&q).await;
        w.nack(&message).await;
    }
    let kept = w.lease_one(&q).await.history.failures;
    let attempts: Vec<u32> = kept.iter().map(|record| record.attempt).collect();
    assert_eq!(attempts, (4..=23).collect::<Vec<u32>>());
}

async fn a_dead_letter_says_why(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(1))).await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.nack_with(&message, |item| item.error = ErrorText::new("timeout after 31 ms")).await;
    let dead = w.get(&q, id).await.expect("there");
    let death = dead.progress.death().expect("dead");
    assert_eq!((death.reason, death.at), (DeadReason::MaxAttempts, w.now()));
    assert_eq!(death.fingerprint, Fingerprint::of("timeout after 577 ms"));
    assert_eq!(w.stats(&q).await.totals.died, 1);
}

async fn dying(w: &mut World, name: &str, target: &str) -> QueueName {
    let target = QueueName::new(target).expect("good");
    w.queue_with(name, |c| {
        c.retry.max_attempts = Some(NonZeroU32::new(1));
        c.dead_letter_to = Some(Some(target));
    })
    .await
}

async fn a_dead_letter_is_moved_not_copied(w: &mut World) {
    let graveyard = w.queue("graveyard").await;
    let q = dying(w, "q", "graveyard").await;
    let id = w.put_with(&q, |d| d.expires = Some(after(40_000))).await;
    let message = w.lease_one(&q).await;
    let judged = w.nack(&message).await.applied().expect("applied");
    assert_eq!(judged.moved_to, Some(graveyard.clone()));
    assert_eq!(w.get(&q, id).await, None, "it is not in two queues");
    let moved = w.get(&graveyard, id).await.expect("moved");
    assert_eq!(moved.state(w.now()), State::Ready);
    assert_eq!((moved.progress.attempts, moved.progress.deliveries), (0, 1));
    assert_eq!((moved.origin_queue.as_ref(), moved.history.failures.len()), (Some(&q), 1));
    assert_eq!(moved.spec.body, message.spec.body);
    let (from, to) = (w.stats(&q).await.totals, w.stats(&graveyard).await.totals);
    assert_eq!((from.of(Verb::Move), from.died, to.moved_in, to.of(Verb::Enqueue)), (1, 1, 1, 0));
}

async fn a_full_graveyard_still_takes_dead_letters(w: &mut World) {
    let graveyard = w.queue_with("graveyard", |c| c.max_waiting = Some(std::num::NonZeroU64::new(1))).await;
    w.put(&graveyard).await;
    let q = dying(w, "q", "graveyard").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.nack(&message).await;
    assert_eq!(w.stats(&graveyard).await.states.of(State::Ready), 2);
}

async fn a_missing_graveyard_leaves_it_dead_where_it_was(w: &mut World) {
    let q = dying(w, "q", "nowhere").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    let judged = w.nack(&message).await.applied().expect("applied");
    assert_eq!((judged.moved_to, w.state(&q, id).await), (None, Some(State::Dead)));
}

async fn a_changed_policy_judges_what_is_leased_already(w: &mut World) {
    let q = w.queue_with("q", backoff).await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.update(&q, |c| c.retry.base_delay = Some(Millis::new(5_000))).await;
    let due: Timestamp = w.now().plus(Millis::new(5_000));
    assert_eq!(failed(w, &message, Asked::Nothing).await, Verdict::RetryAt(due, DelayRule::Backoff));
}

async fn any_error_text_is_kept(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    for text in
        ["", "\0", "line\nline\r\n\t\u{7}", "'; DROP TABLE messages; --", "é \u{202e}\u{1F4A5}", "{}[]\"\\%_"]
    {
        let message = w.lease_one(&q).await;
        let error = ErrorText::new(text);
        assert!(w.nack_with(&message, |item| item.error = error.clone()).await.is_applied(), "{text:?}");
        let kept = w.get(&q, message.id()).await.expect("there");
        assert_eq!(kept.history.last_error, Some(error), "{text:?}");
    }
}

async fn how_it_died_stays_with_the_message(w: &mut World) {
    let graveyard = w.queue("graveyard").await;
    let q = dying(w, "q", "graveyard").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.nack_with(&message, |item| item.error = ErrorText::new("timeout after 31 ms")).await;
    let death = w.get(&graveyard, id).await.expect("moved").history.death.expect("it died");
    assert_eq!((death.reason, death.at), (DeadReason::MaxAttempts, w.now()));
    assert_eq!(death.fingerprint, Fingerprint::of("timeout after 31 ms"));
}

async fn a_graveyard_that_cannot_take_it_leaves_it_dead_where_it_was(w: &mut World) {
    let graveyard = w.queue("graveyard").await;
    let q = dying(w, "q", "graveyard").await;
    let draft = w.draft();
    w.put_with(&graveyard, |d| *d = draft.clone()).await;
    let id = w.put_with(&q, |d| *d = draft).await;
    let message = w.lease_one(&q).await;
    let judged = w.nack(&message).await.applied().expect("applied");
    assert_eq!(judged.moved_to, None, "the graveyard has a message of that id");
    assert_eq!(
        (w.state(&q, id).await, w.state(&graveyard, id).await),
        (Some(State::Dead), Some(State::Ready))
    );
}

rules!("nack";
    any_error_text_is_kept,
    a_failed_message_waits_for_its_backoff,
    without_a_delay_it_is_ready_at_once_and_for_ever,
    the_cap_is_exact,
    the_messages_own_cap_wins,
    what_the_consumer_asks_for_is_honoured,
    a_retry_that_would_come_too_late_is_dead_now,
    jitter_stays_in_its_band_and_spreads,
    the_failure_is_written_down,
    only_the_last_twenty_failures_are_kept,
    a_dead_letter_says_why,
    a_missing_graveyard_leaves_it_dead_where_it_was,
    a_changed_policy_judges_what_is_leased_already;
    across queues:
    a_dead_letter_is_moved_not_copied,
    a_full_graveyard_still_takes_dead_letters,
    how_it_died_stays_with_the_message,
    a_graveyard_that_cannot_take_it_leaves_it_dead_where_it_was,
);
