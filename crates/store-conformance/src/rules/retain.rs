//! Retention: done and dead messages are kept as long, and as many, as the queue says.

use redrive_core::lifecycle::Verb;
use redrive_core::message::State;
use redrive_core::queue::{QueueName, Retention};
use redrive_core::time::Millis;
use redrive_store::{Filter, SweepRequest};

use crate::world::{World, at_most};

async fn sweep(w: &mut World, queue: &QueueName, limit: usize) -> u64 {
    let request = SweepRequest { queue: Some(queue.clone()), limit: at_most(limit) };
    w.store().retain(w.at(), request).await.expect("answers")
}

async fn acked(w: &mut World, queue: &QueueName, messages: usize) {
    for _ in 0..messages {
        w.put(queue).await;
        let message = w.lease_one(queue).await;
        assert!(w.ack(&message).await.is_applied());
        w.advance(1_000);
    }
}

async fn done_messages_go_when_they_are_too_old(w: &mut World) {
    let kept = Retention { age: Some(Millis::new(2_500)), count: None };
    let q = w.queue_with("q", |c| c.retain_done = Some(Some(kept))).await;
    acked(w, &q, 4).await;
    assert_eq!(sweep(w, &q, 100).await, 2);
    assert_eq!(w.stats(&q).await.states.of(State::Done), 2);
    assert_eq!(w.stats(&q).await.totals.of(Verb::Discard), 2);
}

async fn done_messages_go_when_there_are_too_many(w: &mut World) {
    let kept = Retention { age: None, count: Some(3) };
    let q = w.queue_with("q", |c| c.retain_done = Some(Some(kept))).await;
    acked(w, &q, 5).await;
    let newest: Vec<_> = w.ids(&q, Filter::state(State::Done)).await[2..].to_vec();
    assert_eq!((sweep(w, &q, 1).await, sweep(w, &q, 100).await, sweep(w, &q, 100).await), (1, 1, 0));
    assert_eq!(w.ids(&q, Filter::state(State::Done)).await, newest, "the oldest go first");
}

async fn dead_messages_are_kept_for_ever_unless_the_queue_says_otherwise(w: &mut World) {
    let q = w.queue("q").await;
    w.dead(&q, |_| ()).await;
    w.advance(1_000 * 86_400 * 365);
    assert_eq!(sweep(w, &q, 100).await, 0);
    w.update(&q, |c| c.retain_dead = Some(Some(Retention { age: Some(Millis::new(10)), count: None }))).await;
    assert_eq!(sweep(w, &q, 100).await, 1);
    assert_eq!(w.stats(&q).await.states.all(), 0);
}

async fn nothing_else_is_touched(w: &mut World) {
    let none = Some(Some(Retention { age: Some(Millis::ZERO), count: Some(0) }));
    let q = w
        .queue_with("q", |c| {
            c.retain_done = none;
            c.retain_dead = none;
        })
        .await;
    w.put_many(&q, 3, |_, _| ()).await;
    w.lease_one(&q).await;
    w.advance(1_000_000);
    assert_eq!(sweep(w, &q, 100).await, 0);
    assert_eq!(w.stats(&q).await.states.all(), 3);
}

async fn the_oldest_go_first_whether_done_or_dead(w: &mut World) {
    let q = w.queue_with("q", |c| c.retain_done = Some(Some(Retention { age: None, count: Some(9) }))).await;
    let dead = w.dead(&q, |_| ()).await;
    w.advance(1_000);
    acked(w, &q, 1).await;
    let none = Some(Some(Retention { age: None, count: Some(0) }));
    w.update(&q, |c| (c.retain_done, c.retain_dead) = (none, none)).await;
    assert_eq!(sweep(w, &q, 1).await, 1);
    assert_eq!(w.state(&q, dead).await, None, "it ended first");
    assert_eq!(w.stats(&q).await.states.of(State::Done), 1);
}

async fn what_was_kept_goes_when_nothing_is_kept_any_more(w: &mut World) {
    let q = w.queue_with("q", |c| c.retain_done = Some(Some(Retention { age: None, count: Some(9) }))).await;
    acked(w, &q, 2).await;
    assert_eq!(sweep(w, &q, 100).await, 0);
    w.update(&q, |c| c.retain_done = Some(None)).await;
    assert_eq!((sweep(w, &q, 100).await, w.stats(&q).await.states.all()), (2, 0));
}

rules!("retain";
    done_messages_go_when_they_are_too_old,
    done_messages_go_when_there_are_too_many,
    dead_messages_are_kept_for_ever_unless_the_queue_says_otherwise,
    nothing_else_is_touched,
    the_oldest_go_first_whether_done_or_dead,
    what_was_kept_goes_when_nothing_is_kept_any_more,
);
