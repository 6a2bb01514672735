//! Several at once: callers that race, and instances on the same data, where a store can have several.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use futures::future::{join, join_all};
use redrive_core::lease::ConsumerName;
use redrive_core::message::{ErrorText, Message, MessageId, State};
use redrive_core::policy::{Asked, DelayRule, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::{
    AckItem, Append, Batch, EnqueueItem, EntryKey, EntryKind, EntryName, Expect, ExpireRequest, ExtendItem,
    LeaseRequest, LeaseTarget, Limit, LogName, LogRange, NackItem, Now, Settled, Store, Write, WriteOutcome,
    Writes,
};

use crate::world::{World, at_most, claim};

/// Leases until a call says that nothing is left.
async fn drain(store: Arc<dyn Store>, now: Now, queue: QueueName, seed: u64) -> Vec<Message> {
    let mut taken = Vec::new();
    loop {
        let request = LeaseRequest::new(queue.clone(), at_most(7), ConsumerName::default(), seed);
        let leased = store.lease(now, request).await.expect("the store answers");
        taken.extend(leased.messages);
        if !leased.more {
            return taken;
        }
    }
}

async fn racing_consumers_share_the_work_without_overlap(w: &mut World) {
    let q = w.queue("q").await;
    let mut ids =
        w.put_many(&q, 400, |n, d| d.spec.fairness_key = crate::world::key(["a", "b", "c"][n % 3])).await;
    let doors = w.doors(8).await;
    let drains = doors.into_iter().zip(0..).map(|(door, seed)| drain(door, w.at(), q.clone(), seed));
    let taken: Vec<Message> = join_all(drains).await.into_iter().flatten().collect();
    let mut got: Vec<MessageId> = taken.iter().map(Message::id).collect();
    got.sort_unstable();
    ids.sort_unstable();
    assert_eq!(got, ids, "each message once, and none left behind");
    let tokens: BTreeSet<_> =
        taken.iter().filter_map(|message| message.lease().map(|lease| lease.id)).collect();
    assert_eq!(tokens.len(), taken.len(), "no token was given out twice");
}

async fn a_receipt_of_one_instance_works_at_another(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    let doors = w.doors(2).await;
    let keys = join(doors[0].receipt_key(), doors[1].receipt_key()).await;
    assert_eq!(keys.0.expect("answers"), keys.1.expect("answers"), "they share the key");
    let batch = || Batch::one(AckItem { claim: claim(&message) }).expect("one item");
    let (first, second) = join(doors[0].ack(w.at(), batch()), doors[1].ack(w.at(), batch())).await;
    let applied = [first.expect("answers"), second.expect("answers")].concat();
    assert_eq!(
        applied.iter().filter(|settled| settled.is_applied()).count(),
        1,
        "it works once: {applied:?}"
    );
}

async fn a_changed_policy_judges_at_every_instance(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    let doors = w.doors(2).await;
    for door in &doors {
        door.stats(w.at(), &q).await.expect("it has looked at the queue before");
    }
    w.update(&q, |c| c.retry.base_delay = Some(Millis::new(5_000))).await;
    let item = NackItem {
        claim: claim(&message),
        asked: Asked::Nothing,
        error: ErrorText::new("x"),
        checkpoint: None,
    };
    let settled = doors[1].nack(w.at(), Batch::one(item).expect("one item"), 1).await.expect("answers");
    let Settled::Applied(judged) = &settled[0] else { panic!("{settled:?}") };
    assert_eq!(judged.verdict, Verdict::RetryAt(w.now().plus(Millis::new(5_000)), DelayRule::Backoff));
}

async fn an_extend_and_an_expire_that_race_do_not_both_win(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 40, |_, _| ()).await;
    let leased = w.lease(&q, 40).await;
    w.advance(30_000);
    let doors = w.doors(2).await;
    let extend = |message: &Message| ExtendItem {
        target: LeaseTarget::Claim(claim(message)),
        time: Millis::new(30_000),
        checkpoint: None,
    };
    let batch = Batch::each(leased.iter().map(extend).collect()).expect("few");
    let request = ExpireRequest { queue: Some(q.clone()), limit: Limit::MAX, error: None, seed: 1 };
    let (extended, expired) = join(doors[0].extend(w.at(), batch), doors[1].expire(w.at(), request)).await;
    let expired: BTreeSet<MessageId> =
        expired.expect("answers").into_iter().map(|judged| judged.message).collect();
    for (message, settled) in leased.iter().zip(extended.expect("answers")) {
        assert_ne!(settled.is_applied(), expired.contains(&message.id()), "one of the two wins");
        let state = if settled.is_applied() { State::Leased } else { State::Ready };
        assert_eq!(w.state(&q, message.id()).await, Some(state));
    }
}

async fn one_of_many_writers_wins_a_compare_and_set(w: &mut World) {
    let doors = w.doors(8).await;
    let key = EntryKey { kind: EntryKind::Lock, name: EntryName::new("sweeper").expect("a good name") };
    let writes = doors.iter().zip(0u8..).map(|(door, n)| {
        let value = Some(Bytes::from(vec![n]));
        let write = Write { key: key.clone(), expect: Expect::Absent, value };
        door.registry_write(Writes::new(vec![write]).expect("one write"))
    });
    let outcomes = join_all(writes).await.into_iter().map(|outcome| outcome.expect("answers"));
    let won = outcomes.filter(|outcome| matches!(outcome, WriteOutcome::Committed(_))).count();
    assert_eq!(won, 1);
}

async fn a_reader_of_a_log_misses_nothing_that_others_append(w: &mut World) {
    let doors = w.doors(8).await;
    let log = LogName::new("audit").expect("a good name");
    let now = w.at();
    let (mut seen, mut last) = (0, 0);
    for _ in 0..10 {
        let appends = doors.iter().map(|door| {
            let records = Append::new(vec![Bytes::from_static(b"x"); 3]).expect("few and small");
            door.log_append(now, &log, records)
        });
        let (_, records) =
            join(join_all(appends), doors[0].log_read(&log, LogRange::After(last), Limit::MAX)).await;
        for record in records.expect("answers") {
            assert!(record.sequence > last, "{} after {last}", record.sequence);
            (seen, last) = (seen + 1, record.sequence);
        }
    }
    seen += doors[0].log_read(&log, LogRange::After(last), Limit::MAX).await.expect("answers").len();
    assert_eq!(seen, 10 * 8 * 3, "a number that appeared behind the reader was missed");
}

async fn tokens_grow_whichever_instance_hands_out(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let doors = w.doors(3).await;
    let mut last = None;
    for n in 0..9 {
        let request = LeaseRequest::new(q.clone(), at_most(1), ConsumerName::default(), 1);
        let leased = doors[n * 2 % 3].lease(w.at(), request).await.expect("answers").messages;
        let token = leased[0].lease().map(|lease| lease.id);
        assert!(token > last, "{token:?} after {last:?}");
        last = token;
        w.release(&leased[0]).await;
    }
}

async fn messages_keep_their_order_whichever_instance_takes_them(w: &mut World) {
    let q = w.queue("q").await;
    let doors = w.doors(3).await;
    let mut ids = Vec::new();
    for n in 0..9 {
        let draft = w.draft();
        ids.push(draft.spec.id);
        let item = EnqueueItem { queue: q.clone(), draft };
        doors[n * 2 % 3].enqueue(w.at(), Batch::one(item).expect("one")).await.expect("answers");
    }
    assert_eq!(w.lease_ids(&q, 9).await, ids);
}

async fn a_changed_setting_holds_at_every_instance(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let doors = w.doors(2).await;
    for door in &doors {
        door.stats(w.at(), &q).await.expect("it has looked at the queue before");
    }
    w.update(&q, |c| c.lease_timeout = Some(Millis::new(7_000))).await;
    let request = LeaseRequest::new(q.clone(), at_most(1), ConsumerName::default(), 1);
    let leased = doors[1].lease(w.at(), request).await.expect("answers").messages;
    assert_eq!(leased[0].lease().map(|lease| lease.deadline), Some(w.now().plus(Millis::new(7_000))));
}

async fn once_one_has_seen_that_nothing_is_left_nobody_finds_more(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 600, |_, _| ()).await;
    assert_eq!(w.lease(&q, 600).await.len(), 600);
    w.advance(30_000);
    let doors = w.doors(8).await;
    let nothing_left = AtomicBool::new(false);
    let drains = doors.iter().map(|door| async {
        loop {
            let told = nothing_left.load(Ordering::SeqCst);
            let request = LeaseRequest::new(q.clone(), at_most(20), ConsumerName::default(), 1);
            let leased = door.lease(w.at(), request).await.expect("answers");
            assert!(!told || leased.messages.is_empty(), "a call before this one said that nothing is left");
            if !leased.more {
                nothing_left.store(true, Ordering::SeqCst);
                return;
            }
        }
    });
    join_all(drains).await;
}

rules!("instances";
    tokens_grow_whichever_instance_hands_out,
    messages_keep_their_order_whichever_instance_takes_them,
    a_changed_setting_holds_at_every_instance,
    once_one_has_seen_that_nothing_is_left_nobody_finds_more,
    racing_consumers_share_the_work_without_overlap,
    a_receipt_of_one_instance_works_at_another,
    a_changed_policy_judges_at_every_instance,
    an_extend_and_an_expire_that_race_do_not_both_win,
    one_of_many_writers_wins_a_compare_and_set,
    a_reader_of_a_log_misses_nothing_that_others_append,
);
