//! bury: leased → dead.

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Cause, DeadReason, ErrorText, State};
use redrive_core::policy::Verdict;
use redrive_store::{Batch, BuryItem};

use crate::world::{World, claim};

async fn a_buried_message_is_dead_whatever_attempts_are_left(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    let judged = w.bury(&message).await.applied().expect("applied");
    assert_eq!(judged.verdict, Verdict::Dead(DeadReason::Buried));
    let dead = w.get(&q, id).await.expect("there");
    assert_eq!(dead.state(w.now()), State::Dead);
    let record = dead.history.failures.back().expect("one");
    assert_eq!((record.cause, record.error.as_str(), record.delay), (Cause::Bury, "hopeless", None));
    let totals = w.stats(&q).await.totals;
    assert_eq!((totals.of(Verb::Bury), totals.died), (1, 1));
}

async fn a_dispatcher_may_name_the_reason(w: &mut World) {
    let q = w.queue("q").await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    let item =
        BuryItem { claim: claim(&message), reason: DeadReason::NotReached, error: ErrorText::new("x") };
    w.store().bury(w.at(), Batch::one(item).expect("one")).await.expect("answers");
    let dead = w.get(&q, id).await.expect("there");
    assert_eq!(dead.progress.death().map(|death| death.reason), Some(DeadReason::NotReached));
}

async fn a_buried_message_goes_to_dead_letter_to(w: &mut World) {
    let graveyard = w.queue("graveyard").await;
    let q = w.queue_with("q", |c| c.dead_letter_to = Some(Some(graveyard.clone()))).await;
    let id = w.put(&q).await;
    let message = w.lease_one(&q).await;
    assert_eq!(w.bury(&message).await.applied().expect("applied").moved_to, Some(graveyard.clone()));
    assert_eq!((w.state(&q, id).await, w.state(&graveyard, id).await), (None, Some(State::Ready)));
}

rules!("bury";
    a_buried_message_is_dead_whatever_attempts_are_left,
    a_dispatcher_may_name_the_reason;
    across queues: a_buried_message_goes_to_dead_letter_to,
);
