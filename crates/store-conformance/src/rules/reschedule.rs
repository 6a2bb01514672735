//! reschedule: ready ↔ delayed, or another priority.

use redrive_core::lifecycle::{Reschedule, Verb, When};
use redrive_core::message::State;
use redrive_core::queue::QueueName;
use redrive_store::{Bulk, Filter, Selection};

use crate::world::{World, after, priority};

async fn reschedule(w: &mut World, queue: &QueueName, filter: Filter, change: Reschedule) -> Bulk {
    let selection = Selection::new(queue.clone(), filter);
    w.store().reschedule(w.at(), selection, change).await.expect("answers")
}

fn when(visible: When) -> Reschedule {
    Reschedule { visible: Some(visible), priority: None }
}

async fn a_delayed_message_can_be_called_up_and_a_ready_one_put_off(w: &mut World) {
    let q = w.queue("q").await;
    let delayed = w.put_with(&q, |d| d.visible = after(60_000)).await;
    let ready = w.put(&q).await;
    let up = reschedule(w, &q, Filter::ids([delayed]), when(When::Now)).await;
    let off = reschedule(w, &q, Filter::ids([ready]), when(after(500))).await;
    assert_eq!((up.applied, off.applied), (vec![delayed], vec![ready]));
    assert_eq!(w.lease_ids(&q, 10).await, [delayed]);
    w.advance(500);
    assert_eq!(w.lease_ids(&q, 10).await, [ready]);
    assert_eq!(w.stats(&q).await.totals.of(Verb::Reschedule), 2);
}

async fn another_priority_keeps_the_place(w: &mut World) {
    let q = w.queue("q").await;
    let ids = w.put_many(&q, 4, |_, _| ()).await;
    let change = Reschedule { visible: None, priority: Some(priority(9)) };
    reschedule(w, &q, Filter::ids([ids[1], ids[3]]), change).await;
    assert_eq!(w.lease_ids(&q, 10).await, [ids[1], ids[3], ids[0], ids[2]]);
}

async fn what_does_not_wait_is_passed_over(w: &mut World) {
    let q = w.queue("q").await;
    let dead = w.dead(&q, |_| ()).await;
    let leased = w.put(&q).await;
    let message = w.lease_one(&q).await;
    let bulk = reschedule(w, &q, Filter::default(), when(after(1_000))).await;
    assert_eq!((bulk.matched, bulk.applied.len()), (0, 0));
    assert_eq!(
        (w.state(&q, dead).await, w.state(&q, leased).await),
        (Some(State::Dead), Some(State::Leased))
    );
    assert!(w.ack(&message).await.is_applied(), "the lease is as it was");
}

rules!("reschedule";
    a_delayed_message_can_be_called_up_and_a_ready_one_put_off,
    another_priority_keeps_the_place,
    what_does_not_wait_is_passed_over,
);
