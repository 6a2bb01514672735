//! enqueue: nothing → ready | delayed.

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Body, ContentType, Headers, State};
use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::{Batch, EnqueueItem, EnqueueOutcome, EnqueueRefusal};

use crate::world::{World, after, dedup, key, kind, priority, source};

async fn a_message_comes_back_as_it_went_in(w: &mut World) {
    let q = w.queue("q").await;
    let mut draft = w.draft();
    draft.spec.body = Body::new((0..=255).collect::<Vec<u8>>()).expect("small");
    draft.spec.content_type = ContentType::new("image/png").expect("good");
    let headers = [("a".to_owned(), "ü\t1".to_owned()), ("Trace-Id".to_owned(), String::new())];
    draft.spec.headers = Headers::new(headers).expect("good");
    draft.spec.kind = kind("mail'; DROP TABLE messages; --");
    draft.spec.source = source("web {tag} \\ \" é");
    draft.spec.fairness_key = key("tenant:{1}");
    draft.spec.dedup = dedup("order 17", redrive_core::message::Uniqueness::Window);
    draft.spec.lease_timeout = Some(Millis::new(1_234));
    draft.spec.max_attempts = std::num::NonZeroU32::new(7);
    draft.priority = priority(8);
    draft.expires = Some(after(60_000));
    let expected = draft.clone();
    let id = w.put_with(&q, |d| *d = draft).await;
    for message in [w.get(&q, id).await.expect("there"), w.lease_one(&q).await] {
        assert_eq!(message.spec, expected.spec);
        assert_eq!(message.created_at, w.now());
        assert_eq!(message.progress.priority, priority(8));
        assert_eq!(message.progress.expires_at, Some(w.now().plus(Millis::new(60_000))));
        assert_eq!((message.progress.redrives, message.origin_queue), (0, None));
    }
}

async fn an_empty_body_is_a_body(w: &mut World) {
    let q = w.queue("q").await;
    w.put_with(&q, |d| d.spec.body = Body::default()).await;
    assert!(w.lease_one(&q).await.spec.body.bytes().is_empty());
}

async fn a_message_is_ready_at_once_or_when_its_time_comes(w: &mut World) {
    let q = w.queue("q").await;
    let now = w.put(&q).await;
    let later = w.put_with(&q, |d| d.visible = after(500)).await;
    assert_eq!(
        (w.state(&q, now).await, w.state(&q, later).await),
        (Some(State::Ready), Some(State::Delayed))
    );
    assert_eq!(w.lease_ids(&q, 9).await, [now]);
    w.advance(500);
    assert_eq!(w.state(&q, later).await, Some(State::Ready));
    assert_eq!(w.lease_ids(&q, 9).await, [later]);
}

async fn the_same_id_is_taken_once(w: &mut World) {
    let q = w.queue("q").await;
    let draft = w.draft();
    let first = w.put_with(&q, |d| *d = draft.clone()).await;
    let again = w.try_put(&q, |d| *d = draft.clone()).await;
    assert_eq!(
        again,
        EnqueueOutcome::Duplicate { id: first },
        "a repeated enqueue is answered with the first"
    );
    assert_eq!(w.stats(&q).await.states.all(), 1);
    let other = w.queue("other").await;
    assert!(
        matches!(w.try_put(&other, |d| *d = draft).await, EnqueueOutcome::Enqueued { .. }),
        "another queue"
    );
}

async fn a_queue_that_is_not_there_is_refused_by_name(w: &mut World) {
    let nowhere = QueueName::new("nowhere").expect("good");
    let outcome = w.try_put(&nowhere, |_| ()).await;
    assert!(
        matches!(&outcome, EnqueueOutcome::Refused(EnqueueRefusal::QueueNotFound(name)) if name.0 == nowhere)
    );
}

async fn one_call_reaches_several_queues_with_an_outcome_each(w: &mut World) {
    let (a, b) = (w.queue("a").await, w.queue("b").await);
    let nowhere = QueueName::new("nowhere").expect("good");
    let items =
        [&a, &nowhere, &b, &a].map(|queue| EnqueueItem { queue: queue.clone(), draft: w.draft() }).to_vec();
    let ids: Vec<_> = items.iter().map(|item| item.draft.spec.id).collect();
    let outcomes = w.store().enqueue(w.at(), Batch::each(items).expect("few")).await.expect("answers");
    let enqueued = |n: usize| EnqueueOutcome::Enqueued { id: ids[n], visible_at: w.now() };
    assert_eq!((&outcomes[0], &outcomes[2], &outcomes[3]), (&enqueued(0), &enqueued(2), &enqueued(3)));
    assert!(matches!(outcomes[1], EnqueueOutcome::Refused(EnqueueRefusal::QueueNotFound(_))));
    assert_eq!(w.lease_ids(&a, 9).await, [ids[0], ids[3]]);
    assert_eq!(w.lease_ids(&b, 9).await, [ids[2]]);
}

async fn an_empty_batch_is_answered_with_nothing(w: &mut World) {
    let batch = Batch::each(Vec::new()).expect("empty");
    assert_eq!(w.store().enqueue(w.at(), batch).await.expect("answers"), []);
}

async fn a_full_queue_refuses_more_and_still_serves(w: &mut World) {
    let q = w.queue_with("q", |c| c.max_waiting = Some(std::num::NonZeroU64::new(3))).await;
    w.put_with(&q, |d| d.visible = after(1_000_000)).await;
    w.put_many(&q, 2, |_, _| ()).await;
    let full = EnqueueOutcome::Refused(EnqueueRefusal::QueueFull { max_waiting: 3 });
    assert_eq!(w.try_put(&q, |_| ()).await, full);
    let message = w.lease_one(&q).await;
    w.put(&q).await;
    assert_eq!(w.try_put(&q, |_| ()).await, full, "what is leased does not wait");
    assert!(w.nack(&message).await.is_applied(), "a retry is never refused");
    assert_eq!(w.try_put(&q, |_| ()).await, full);
    assert_eq!(w.stats(&q).await.states.of(State::Ready), 3);
}

async fn enqueues_are_counted(w: &mut World) {
    let q = w.queue("q").await;
    w.put_many(&q, 3, |_, _| ()).await;
    let totals = w.stats(&q).await.totals;
    assert_eq!((totals.of(Verb::Enqueue), totals.duplicates), (3, 0));
}

rules!("enqueue";
    a_message_comes_back_as_it_went_in,
    an_empty_body_is_a_body,
    a_message_is_ready_at_once_or_when_its_time_comes,
    the_same_id_is_taken_once,
    a_queue_that_is_not_there_is_refused_by_name,
    one_call_reaches_several_queues_with_an_outcome_each,
    an_empty_batch_is_answered_with_nothing,
    a_full_queue_refuses_more_and_still_serves,
    enqueues_are_counted,
);
