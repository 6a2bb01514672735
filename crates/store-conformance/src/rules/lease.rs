//! lease: ready → leased.

use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::Verb;
use redrive_core::message::{Message, State};
use redrive_core::policy::RetryLane;
use redrive_core::queue::{Pause, QueueName};
use redrive_core::time::Millis;
use redrive_store::{LeaseRequest, PauseQueue, Pick, QueueError};

use crate::world::{World, after, at_most, key, kind};

async fn taking_a_lease_charges_the_attempt(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    assert_eq!((message.progress.attempts, message.progress.deliveries), (1, 1));
    let kept = w.get(&q, id).await.expect("there");
    assert_eq!(kept, message, "what is handed out is what is kept");
    assert_eq!(w.stats(&q).await.totals.of(Verb::Lease), 1);
}

async fn a_lease_names_its_consumer_and_its_deadline(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let name = ConsumerName::new("worker-7 / é").expect("good");
    let messages = w.lease_with(&q, 1, |r| r.consumer = name.clone()).await.messages;
    let lease = messages[0].lease().expect("leased").clone();
    assert_eq!((lease.consumer, lease.leased_at), (name, w.now()));
    assert_eq!(lease.deadline, w.now().plus(Millis::from_secs(30)));
}

async fn the_call_beats_the_message_beats_the_queue(w: &mut World) {
    let q = w
        .queue_with("q", |c| {
            c.lease_timeout = Some(Millis::new(10_000));
            c.max_lease = Some(Millis::new(50_000));
        })
        .await;
    let time = |message: &Message| message.lease().map(|lease| lease.deadline.since(lease.leased_at).get());
    w.put(&q).await;
    assert_eq!(time(&w.lease_one(&q).await), Some(10_000));
    w.put_many(&q, 2, |_, d| d.spec.lease_timeout = Some(Millis::new(20_000))).await;
    assert_eq!(time(&w.lease_one(&q).await), Some(20_000));
    let asked = w.lease_with(&q, 1, |r| r.time = Some(Millis::new(180))).await.messages;
    assert_eq!(time(&asked[0]), Some(180));
    w.put(&q).await;
    let long = w.lease_with(&q, 1, |r| r.time = Some(Millis::new(999_999))).await.messages;
    assert_eq!(time(&long[0]), Some(50_000), "max_lease bounds them all");
}

async fn no_more_come_than_were_asked_for(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 5, |_, _| ()).await;
    assert_eq!(w.lease(&q, 2).await.len(), 2);
    assert_eq!(w.lease(&q, 100).await.len(), 3);
}

async fn an_empty_queue_hands_out_nothing(w: &mut World) {
    let q = w.queue("q").await;
    w.put_with(&q, |d| d.visible = after(1)).await;
    assert!(w.lease(&q, 10).await.is_empty());
}

async fn a_queue_that_is_not_there_is_an_error(w: &mut World) {
    let nowhere = QueueName::new("nowhere").expect("good");
    let request = LeaseRequest::new(nowhere, at_most(1), ConsumerName::default(), 0);
    let error = w.store().lease(w.at(), request).await.expect_err("no such queue");
    assert!(matches!(error, QueueError::NotFound(_)), "{error}");
}

async fn a_paused_queue_hands_out_nothing_and_everything_else_goes_on(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 3, |_, _| ()).await;
    let (a, b) = (w.lease_one(&q).await, w.lease_one(&q).await);
    let pause = |pause| PauseQueue { name: q.clone(), key: None, pause };
    w.store().pause_queue(w.at(), pause(Some(Pause::UntilResumed))).await.expect("paused");
    w.restart().await;
    assert!(w.lease(&q, 10).await.is_empty(), "a pause survives a restart");
    w.put(&q).await;
    assert!(w.ack(&a).await.is_applied() && w.nack(&b).await.is_applied());
    assert!(w.lease(&q, 10).await.is_empty());
    w.store().pause_queue(w.at(), pause(None)).await.expect("resumed");
    assert_eq!(w.lease(&q, 10).await.len(), 3);
}

async fn a_pause_with_an_end_ends_by_itself(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let end = w.now().plus(Millis::new(100));
    let pause = PauseQueue { name: q.clone(), key: None, pause: Some(Pause::Until(end)) };
    w.store().pause_queue(w.at(), pause).await.expect("paused");
    assert_eq!(w.store().next_due(w.at(), Some(&q)).await.expect("answers").resume, Some(end));
    w.advance(99);
    assert!(w.lease(&q, 1).await.is_empty());
    w.advance(1);
    assert_eq!(w.lease(&q, 1).await.len(), 1);
}

async fn a_lease_call_ends_what_is_overdue_in_its_queue(w: &mut World) {
    let (q, other) = (w.queue("q").await, w.queue("other").await);
    let id = w.put(&q).await;
    let elsewhere = w.put(&other).await;
    w.lease_one(&q).await;
    w.lease_one(&other).await;
    w.advance(30_000);
    let leased = w.lease_with(&q, 1, |_| ()).await;
    assert_eq!(leased.swept.expired.iter().map(|judged| judged.message).collect::<Vec<_>>(), [id]);
    assert_eq!(leased.messages[0].id(), id, "it is handed out again in the same call");
    assert_eq!(leased.messages[0].progress.attempts, 2);
    assert_eq!(w.state(&other, elsewhere).await, Some(State::Leased), "other queues are left alone");
}

async fn a_probe_is_the_ready_message_with_the_fewest_attempts(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 3, |_, _| ()).await;
    for (n, id) in ids.iter().enumerate() {
        for _ in 0..2 - n {
            let messages = w.lease(&q, 3).await;
            for message in &messages {
                let nack = message.id() == *id;
                assert!(if nack {
                    w.nack(message).await.is_applied()
                } else {
                    w.release(message).await.is_applied()
                });
            }
        }
    }
    let probe = |avoid| Pick::Probe { avoid };
    let first = w.lease_with(&q, 10, |r| r.pick = probe(None)).await.messages;
    assert_eq!(first.iter().map(Message::id).collect::<Vec<_>>(), [ids[2]], "one, and the least tried");
    w.release(&first[0]).await;
    let second = w.lease_with(&q, 10, |r| r.pick = probe(Some(ids[2]))).await.messages;
    assert_eq!(second[0].id(), ids[1], "another than the last probe, where there is another");
    w.ack(&second[0]).await;
    w.discard(&q, redrive_store::Filter::ids([ids[0]]), false).await;
    let alone = w.lease_with(&q, 10, |r| r.pick = probe(Some(ids[2]))).await.messages;
    assert_eq!(alone[0].id(), ids[2], "the last probe again, where there is no other");
}

async fn more_leases_ran_out_than_one_call_ends(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 250, |_, _| ()).await;
    assert_eq!(w.lease(&q, 250).await.len(), 250);
    w.advance(30_000);
    let leased = w.lease_with(&q, 250, |_| ()).await;
    assert_eq!(leased.messages.len(), 250, "a call that ends only some of them says that there is more");
    assert_eq!(leased.swept.expired.len(), 250);
}

async fn a_quiet_queue_says_that_nothing_is_left(w: &mut World) {
    let q = w.queue("q").await;
    w.put_with(&q, |d| d.visible = after(1_000)).await;
    w.put(&q).await;
    assert!(!w.lease_with(&q, 10, |_| ()).await.more);
    assert!(!w.lease_with(&q, 10, |_| ()).await.more);
    w.put_many(&q, 2, |_, _| ()).await;
    let first = w.lease_with(&q, 1, |_| ()).await;
    assert!(first.more, "one of two was asked for");
    assert_eq!(first.at, w.now());
}

async fn a_call_that_is_not_full_has_seen_everything(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 9, |n, d| {
        d.spec.fairness_key = key(["a", "b", "c"][n % 3]);
        d.spec.kind = kind(if n % 3 == 2 { "mail" } else { "sms" });
    })
    .await;
    let mail = |r: &mut LeaseRequest| r.filter.kinds = vec![kind("mail")];
    let leased = w.lease_with(&q, 20, mail).await;
    assert_eq!((leased.messages.len(), leased.more), (3, false), "keys without mail are passed over");
    for message in &leased.messages {
        w.nack(message).await;
    }
    let leased = w.lease_with(&q, 20, mail).await;
    assert_eq!((leased.messages.len(), leased.more), (3, false), "a lane without mail is passed over");
    let leased = w.lease_with(&q, 7, |_| ()).await;
    assert_eq!((leased.messages.len(), leased.more), (6, false));
}

async fn a_probe_is_what_the_call_asks_for(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 2, |n, d| d.spec.kind = kind(["sms", "mail"][n])).await;
    let probe = |r: &mut LeaseRequest| {
        r.pick = Pick::Probe { avoid: None };
        r.filter.kinds = vec![kind("mail")];
    };
    let probed = w.lease_with(&q, 1, probe).await;
    assert_eq!(probed.messages.iter().map(Message::id).collect::<Vec<_>>(), [ids[1]]);
    assert!(!probed.more && w.lease_with(&q, 1, probe).await.messages.is_empty(), "there is no other mail");
}

async fn a_probe_comes_from_any_lane(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry_lane = Some(RetryLane::Separate)).await;
    w.put_many(&q, 2, |_, _| ()).await;
    for message in w.lease(&q, 2).await {
        w.nack(&message).await;
    }
    let probed = w.lease_with(&q, 1, |r| r.pick = Pick::Probe { avoid: None }).await;
    assert_eq!((probed.messages.len(), probed.more), (1, true), "and the other retry is more to have");
}

rules!("lease";
    a_probe_comes_from_any_lane,
    more_leases_ran_out_than_one_call_ends,
    a_quiet_queue_says_that_nothing_is_left,
    taking_a_lease_charges_the_attempt,
    a_lease_names_its_consumer_and_its_deadline,
    the_call_beats_the_message_beats_the_queue,
    no_more_come_than_were_asked_for,
    an_empty_queue_hands_out_nothing,
    a_queue_that_is_not_there_is_an_error,
    a_paused_queue_hands_out_nothing_and_everything_else_goes_on,
    a_pause_with_an_end_ends_by_itself,
    a_lease_call_ends_what_is_overdue_in_its_queue,
    a_probe_is_the_ready_message_with_the_fewest_attempts,
    a_call_that_is_not_full_has_seen_everything,
    a_probe_is_what_the_call_asks_for,
);
