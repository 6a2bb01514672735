//! ack: leased → gone | done.

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Message, State};
use redrive_core::queue::Retention;
use redrive_store::Filter;

use crate::world::{World, kind};

async fn an_acked_message_is_gone(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put_with(&q, |d| d.spec.kind = kind("mail")).await;
    let message = w.lease_one(&q).await;
    let acked = w.ack(&message).await.applied().expect("applied");
    assert_eq!((acked.message, acked.kind, acked.attempts), (id, kind("mail"), 1));
    assert_eq!(w.get(&q, id).await, None);
    assert!(w.list(&q, Filter::default()).await.is_empty());
    assert_eq!(w.stats(&q).await.totals.of(Verb::Ack), 1);
    w.advance(1_000_000);
    w.restart().await;
    assert!(w.expire(&q).await.is_empty() && w.lease(&q, 10).await.is_empty(), "it never comes back");
}

async fn an_ack_after_the_deadline_applies_while_nothing_ended_the_lease(w: &mut World) {
    let q = w.queue("q").await;
    w.put(&q).await;
    let message = w.lease_one(&q).await;
    w.advance(3_600_000);
    assert!(w.ack(&message).await.is_applied());
}

async fn a_queue_that_keeps_done_messages_keeps_them(w: &mut World) {
    let kept = Retention { age: None, count: Some(10) };
    let q = w.queue_with("q", |c| c.retain_done = Some(Some(kept))).await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    assert!(w.ack(&message).await.is_applied());
    assert_eq!(w.state(&q, id).await, Some(State::Done));
    assert!(w.lease(&q, 10).await.is_empty());
    let totals = w.stats(&q).await.totals;
    assert_eq!((totals.of(Verb::Ack), totals.retained), (1, 1));
}

async fn whoever_ends_a_lease_is_told_who_had_it(w: &mut World) {
    let q = w.queue("q").await;
    let had = |message: &Message| message.lease().map(|lease| lease.consumer.clone());
    for _ in 0..5 {
        w.put(&q).await;
    }
    let [acked, nacked, buried, released, _] = w.lease(&q, 5).await.try_into().expect("five messages");
    let name = had(&acked);
    assert!(name.as_ref().is_some_and(|name| !name.as_str().is_empty()));
    let told = [
        w.ack(&acked).await.applied().map(|acked| acked.consumer),
        w.nack(&nacked).await.applied().and_then(|judged| judged.consumer),
        w.bury(&buried).await.applied().and_then(|judged| judged.consumer),
        w.release(&released).await.applied().map(|released| released.consumer),
    ];
    assert_eq!(told, [(); 4].map(|()| name.clone()));
    w.advance(3_600_000);
    assert_eq!(w.expire(&q).await.pop().expect("one ran out").consumer, name);
}

rules!("ack";
    whoever_ends_a_lease_is_told_who_had_it,
    an_acked_message_is_gone,
    an_ack_after_the_deadline_applies_while_nothing_ended_the_lease,
    a_queue_that_keeps_done_messages_keeps_them,
);
