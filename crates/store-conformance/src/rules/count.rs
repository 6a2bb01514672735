//! Numbers about a queue, and when something happens next.

use std::num::NonZeroU32;

use redrive_core::message::{ErrorText, State};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{CountBy, CountRow, NextDue};

use crate::world::{World, after, at_most, key, kind, source};

async fn messages_are_counted_by_what_is_asked(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 12, |n, d| {
        d.spec.kind = kind(["mail", "sms"][usize::from(n % 3 == 0)]);
        d.spec.source = source(["web", "app"][n % 2]);
        d.spec.fairness_key = key(["a", "b"][usize::from(n >= 6)]);
        d.visible = after(if n == 11 { 1_000 } else { 0 });
    })
    .await;
    let count = |by| w.store().count(w.at(), &q, by, at_most(100));
    let row = |state, messages| CountRow { state, kind: None, source: None, key: None, messages };
    let plain = count(CountBy::default()).await.expect("answers");
    assert_eq!(plain.rows, [row(State::Ready, 11), row(State::Delayed, 1)], "the most first");
    let by_kind = count(CountBy { kind: true, ..CountBy::default() }).await.expect("answers").rows;
    let kinds: Vec<_> = by_kind.iter().map(|row| (row.state, row.kind.clone(), row.messages)).collect();
    assert_eq!(kinds[0], (State::Ready, Some(kind("mail")), 7));
    assert_eq!(kinds[1], (State::Ready, Some(kind("sms")), 4));
    assert_eq!(kinds[2], (State::Delayed, Some(kind("mail")), 1));
    let all = CountBy { kind: true, source: true, key: true };
    let cube = count(all).await.expect("answers").rows;
    assert_eq!(cube.iter().map(|row| row.messages).sum::<u64>(), 12);
    let cut = w.store().count(w.at(), &q, all, at_most(2)).await.expect("answers");
    assert!(cut.truncated && cut.rows.len() == 2);
}

async fn the_oldest_ready_message_is_known(w: &mut World) {
    let q = w.queue("q").await;
    assert_eq!(w.stats(&q).await.oldest_ready, None);
    w.put_with(&q, |d| d.visible = after(50)).await;
    assert_eq!(w.stats(&q).await.oldest_ready, None, "a delayed message is not ready");
    w.advance(100);
    let since = w.now().minus(Millis::new(50));
    w.put(&q).await;
    assert_eq!(w.stats(&q).await.oldest_ready, Some(since), "since when it could have been leased");
}

async fn what_happens_next_is_known(w: &mut World) {
    let (q, other) = (w.queue("q").await, w.queue("other").await);
    let due = |w: &World| w.now();
    let start = due(w);
    let at = |ms| Some(start.plus(Millis::new(ms)));
    let idle = NextDue { at: start, ..NextDue::default() };
    assert_eq!(w.store().next_due(w.at(), None).await.expect("answers"), idle);
    w.put_with(&q, |d| d.visible = after(500)).await;
    w.put_with(&q, |d| d.visible = after(300)).await;
    w.put_with(&other, |d| d.expires = Some(after(200))).await;
    w.put_with(&other, |d| d.spec.lease_timeout = Some(Millis::new(100))).await;
    let next = w.store().next_due(w.at(), Some(&q)).await.expect("answers");
    assert_eq!(next, NextDue { ready: at(300), ..idle });
    for message in w.lease(&other, 2).await {
        if message.progress.expires_at.is_some() {
            w.release(&message).await;
        }
    }
    let next = w.store().next_due(w.at(), None).await.expect("answers");
    assert_eq!(next, NextDue { at: start, ready: at(300), overdue: at(100), lapse: at(200), resume: None });
    assert_eq!(next.earliest(), at(100));
    w.advance(150);
    let next = w.store().next_due(w.at(), Some(&other)).await.expect("answers");
    assert_eq!(next.overdue, at(100), "a time that has passed means now");
    w.advance(150);
    let next = w.store().next_due(w.at(), Some(&q)).await.expect("answers");
    assert_eq!(next.ready, at(500), "what is ready is not due any more");
}

async fn a_count_that_fits_is_whole(w: &mut World) {
    let q = w.queue("q").await;
    w.put_with(&q, |d| d.visible = after(1_000)).await;
    w.put(&q).await;
    let cut = w.store().count(w.at(), &q, CountBy::default(), at_most(1)).await.expect("answers");
    assert_eq!((cut.rows.len(), cut.truncated), (1, true));
    let whole = w.store().count(w.at(), &q, CountBy::default(), at_most(2)).await.expect("answers");
    assert_eq!((whole.rows.len(), whole.truncated), (2, false), "as many rows as the limit are all of them");
}

async fn failures_are_grouped_and_the_largest_group_is_first(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(1))).await;
    w.put_many(&q, 6, |_, _| ()).await;
    let start = w.now();
    let errors = ["disk 1 is full", "timeout after 1 ms", "timeout after 2 ms"];
    let errors = errors.into_iter().chain(["no route to host 1", "no route to host 2", "no route to host 3"]);
    for (message, error) in w.lease(&q, 6).await.iter().rev().zip(errors) {
        w.advance(10);
        w.nack_with(message, |item| item.error = ErrorText::new(error)).await;
    }
    let groups = w.store().failure_groups(&q, at_most(2)).await.expect("answers");
    let since = |at: Timestamp| at.since(start).get();
    let groups: Vec<_> =
        groups.iter().map(|g| (g.messages, g.sample.as_str(), since(g.first), since(g.last))).collect();
    let expected = [(3, "no route to host 3", 40, 60), (2, "timeout after 2 ms", 20, 30)];
    assert_eq!(groups, expected, "two of three");
}

rules!("count";
    failures_are_grouped_and_the_largest_group_is_first,
    messages_are_counted_by_what_is_asked,
    the_oldest_ready_message_is_known,
    what_happens_next_is_known,
    a_count_that_fits_is_whole,
);
