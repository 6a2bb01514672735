//! Every limit is named, enforced, and answers with a clear error; what is inside it goes on.

use redrive_core::lease::ConsumerName;
use redrive_core::lifecycle::{Reschedule, When};
use redrive_core::limits::{
    BATCH_BYTES_MAX, BODY_BYTES_DEFAULT_MAX, FILTER_VALUES_MAX, HEADERS_BYTES_MAX, LEASE_MAX,
};
use redrive_core::message::{Body, Headers, Message, State, Uniqueness};
use redrive_core::queue::QueueConfig;
use redrive_core::time::Millis;
use redrive_store::{
    CreateQueue, EnqueueOutcome, EnqueueRefusal, Filter, LeaseRequest, ListRequest, QueueError, Selection,
};

use crate::subject::Setup;
use crate::world::{World, at_most, dedup, kind, source};

async fn a_queue_has_so_many_types_and_sources(w: &mut World) {
    let q = w.queue("q").await;
    let max = Setup::default().limits.classes_per_queue;
    w.put_many(&q, max, |n, d| {
        d.spec.kind = kind(&format!("type {}", n / 2));
        d.spec.source = source(&format!("source {}", n % 2));
    })
    .await;
    let refused = EnqueueOutcome::Refused(EnqueueRefusal::TooManyClasses { max });
    assert_eq!(w.try_put(&q, |d| d.spec.kind = kind("one more")).await, refused);
    w.put_with(&q, |d| {
        d.spec.kind = kind("type 0");
        d.spec.source = source("source 1");
    })
    .await;
    w.discard(&q, Filter { kinds: vec![kind("type 3")], ..Filter::default() }, false).await;
    w.put_with(&q, |d| d.spec.kind = kind("one more")).await;
}

async fn a_queue_holds_so_many_dedup_keys(w: &mut World) {
    let q = w.queue_with("q", |c| c.dedup_window = Some(Millis::new(1_000))).await;
    let max = Setup::default().limits.dedup_keys_per_queue;
    let first =
        w.put_many(&q, max, |n, d| d.spec.dedup = dedup(&format!("key {n}"), Uniqueness::Window)).await;
    let refused = EnqueueOutcome::Refused(EnqueueRefusal::TooManyDedupKeys { max });
    assert_eq!(w.try_put(&q, |d| d.spec.dedup = dedup("new", Uniqueness::UntilDone)).await, refused);
    w.put(&q).await;
    let known = w.try_put(&q, |d| d.spec.dedup = dedup("key 0", Uniqueness::Window)).await;
    assert_eq!(
        known,
        EnqueueOutcome::Duplicate { id: first[0] },
        "a producer can still learn that it got in"
    );
    w.advance(1_000);
    w.put_with(&q, |d| d.spec.dedup = dedup("new", Uniqueness::UntilDone)).await;
}

async fn a_store_has_so_many_queues(w: &mut World) {
    let max = Setup::default().limits.queues;
    for n in 0..max {
        w.queue(&format!("q{n}")).await;
    }
    let name = redrive_core::queue::QueueName::new("more").expect("good");
    let request = CreateQueue { name, config: QueueConfig::default() };
    let error = w.store().create_queue(w.at(), request).await.expect_err("too many");
    assert!(matches!(error, QueueError::TooManyQueues { max: limit } if limit == max), "{error}");
}

async fn a_call_asks_for_so_much(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    let mut request = LeaseRequest::new(q.clone(), at_most(1), ConsumerName::default(), 1);
    request.filter.kinds = vec![kind("x"); FILTER_VALUES_MAX + 1];
    let error = w.store().lease(w.at(), request.clone()).await.expect_err("too many types");
    assert!(error.to_string().starts_with("types: "), "{error}");
    request.filter.kinds.clear();
    request.time = Some(Millis::new(LEASE_MAX.get() + 1));
    let error = w.store().lease(w.at(), request).await.expect_err("too long");
    assert!(error.to_string().starts_with("lease_time: "), "{error}");
    let many = || Filter::ids(vec![id; FILTER_VALUES_MAX + 1]);
    let list = ListRequest::new(q.clone(), many());
    assert!(matches!(w.store().list(w.at(), list).await, Err(QueueError::Invalid(_))));
    let select = Selection::new(q.clone(), many());
    assert!(matches!(w.store().discard(w.at(), select, true).await, Err(QueueError::Invalid(_))));
    let never = Reschedule { visible: Some(When::After(Millis::new(u64::MAX))), priority: None };
    let select = Selection::new(q.clone(), Filter::default());
    assert!(matches!(w.store().reschedule(w.at(), select, never).await, Err(QueueError::Invalid(_))));
    assert_eq!(w.state(&q, id).await, Some(State::Ready), "nothing was done by halves");
}

async fn what_is_handed_out_at_once_is_bounded_in_bytes(w: &mut World) {
    let q = w.queue("q").await;
    let large = Body::new(vec![7; BODY_BYTES_DEFAULT_MAX]).expect("at the limit");
    for _ in 0..18 {
        w.put_with(&q, |d| d.spec.body = large.clone()).await;
    }
    let page = w.store().list(w.at(), ListRequest::new(q.clone(), Filter::default())).await.expect("answers");
    assert!((1..=16).contains(&page.messages.len()) && page.next.is_some(), "a page is bounded too");
    let request = LeaseRequest::new(q.clone(), at_most(100), ConsumerName::default(), 1);
    let first = w.store().lease(w.at(), request).await.expect("answers");
    assert!((1..=16).contains(&first.messages.len()), "16 MiB");
    assert!(first.more, "and it says that there is more");
    assert_eq!(first.messages.len() + w.lease(&q, 100).await.len(), 18, "the rest comes with the next calls");
    assert!(first.messages.iter().all(|message| message.spec.body == large));
}

async fn headers_weigh_what_bodies_weigh(w: &mut World) {
    let q = w.queue("q").await;
    let headers = Headers::new([("x".to_owned(), "v".repeat(HEADERS_BYTES_MAX - 1))]).expect("at the limit");
    let body = Body::new(vec![7; BODY_BYTES_DEFAULT_MAX - HEADERS_BYTES_MAX + 1]).expect("within");
    for _ in 0..17 {
        w.put_with(&q, |d| (d.spec.body, d.spec.headers) = (body.clone(), headers.clone())).await;
    }
    let request = LeaseRequest::new(q.clone(), at_most(100), ConsumerName::default(), 1);
    let leased = w.store().lease(w.at(), request).await.expect("answers").messages;
    let weight = |m: &Message| m.spec.body.bytes().len() + m.spec.headers.size();
    assert!(leased.iter().map(weight).sum::<usize>() <= BATCH_BYTES_MAX, "{} came", leased.len());
}

rules!("limits";
    a_queue_has_so_many_types_and_sources,
    a_queue_holds_so_many_dedup_keys,
    a_store_has_so_many_queues,
    a_call_asks_for_so_much,
    what_is_handed_out_at_once_is_bounded_in_bytes,
    headers_weigh_what_bodies_weigh,
);
