//! No other arrow exists: every verb tried on a message in every state ends where the table says, or nowhere.

use std::num::NonZeroU32;

use redrive_core::lifecycle::{ARROWS, Reschedule, Verb, When, allows};
use redrive_core::message::{Message, MessageId, State};
use redrive_core::queue::{QueueName, Retention};
use redrive_store::{Filter, LeaseTarget, Selection};

use crate::world::{World, after};

struct Stage {
    queue: QueueName,
    target: QueueName,
    id: MessageId,
    /// A receipt for the message: its current lease where it is leased, an old one where it was.
    receipt: Option<Message>,
}

async fn stage(w: &mut World, name: &str, state: State) -> Stage {
    let kept = Retention { age: None, count: Some(10) };
    let queue = w.queue_with(name, |c| c.retain_done = Some(Some(kept))).await;
    let target = w.queue(&format!("{name}-target")).await;
    let id = w.put(&queue).await;
    let leased = w.lease_one(&queue).await;
    match state {
        State::Ready => assert!(w.release(&leased).await.is_applied()),
        State::Delayed => {
            let back =
                w.release_with(LeaseTarget::Claim(crate::world::claim(&leased)), Some(1_000_000)).await;
            assert!(back.is_applied());
        }
        State::Leased => {}
        State::Dead => assert!(w.bury(&leased).await.is_applied()),
        State::Done => assert!(w.ack(&leased).await.is_applied()),
    }
    assert_eq!(w.state(&queue, id).await, Some(state));
    Stage { queue, target, id, receipt: Some(leased) }
}

/// Tries one verb, and answers whether the store says that it did something.
async fn attempt(w: &mut World, verb: Verb, stage: &Stage) -> bool {
    let receipt = stage.receipt.clone().expect("every stage has one");
    let queue = &stage.queue;
    let selection = || Selection::new(queue.clone(), Filter::ids([stage.id]));
    match verb {
        Verb::Lease => !w.lease(queue, 1).await.is_empty(),
        Verb::Extend => w.extend(&receipt, 60_000).await.is_applied(),
        Verb::Ack => w.ack(&receipt).await.is_applied(),
        Verb::Nack => w.nack(&receipt).await.is_applied(),
        Verb::Release => w.release(&receipt).await.is_applied(),
        Verb::Bury => w.bury(&receipt).await.is_applied(),
        Verb::Expire => !w.expire(queue).await.is_empty(),
        Verb::Lapse => !w.lapse(queue).await.is_empty(),
        Verb::Reschedule => {
            let change = Reschedule { visible: Some(When::Now), priority: None };
            let bulk = w.store().reschedule(w.at(), selection(), change).await.expect("answers");
            !bulk.applied.is_empty()
        }
        Verb::Move => !w.move_to(queue, Filter::ids([stage.id]), &stage.target).await.applied.is_empty(),
        Verb::Redrive => !w.redrive(queue, Filter::ids([stage.id])).await.applied.is_empty(),
        Verb::Discard => !w.discard(queue, Filter::ids([stage.id]), true).await.applied.is_empty(),
        Verb::Enqueue | Verb::Promote => false,
    }
}

/// Lets happen what a verb waits for: the lease runs out, or a cap is lowered to what the message has used.
async fn prepare(w: &mut World, verb: Verb, stage: &Stage) {
    match verb {
        Verb::Expire => w.advance(30_000),
        Verb::Lapse => w.update(&stage.queue, |c| c.max_deliveries = Some(NonZeroU32::new(1))).await,
        _ => {}
    }
}

async fn every_verb_from_every_state_ends_where_the_table_says(w: &mut World) {
    let mut happened: Vec<(Verb, State)> = Vec::new();
    for (n, from) in State::ALL.into_iter().enumerate() {
        for verb in Verb::ALL {
            let name = format!("q{n}-{verb}");
            let stage = stage(w, &name, from).await;
            prepare(w, verb, &stage).await;
            let before = w.get(&stage.queue, stage.id).await;
            let applied = attempt(w, verb, &stage).await;
            let queue = if verb == Verb::Move && applied { &stage.target } else { &stage.queue };
            let to = w.state(queue, stage.id).await;
            if applied {
                happened.push((verb, from));
                assert!(
                    allows(verb, Some(from), to),
                    "{verb} led from {from} to {to:?}, which is not in the table"
                );
            } else {
                assert_eq!(
                    w.get(&stage.queue, stage.id).await,
                    before,
                    "{verb} was refused and changed something"
                );
            }
            w.audit().await;
            for name in [&stage.queue, &stage.target] {
                let request = redrive_store::DeleteQueue { name: name.clone(), force: true };
                w.store().delete_queue(w.at(), request).await.expect("deleted");
            }
        }
    }
    for arrow in ARROWS.iter().filter(|arrow| !matches!(arrow.verb, Verb::Enqueue | Verb::Promote)) {
        let from = arrow.from.expect("every other verb starts somewhere");
        assert!(happened.contains(&(arrow.verb, from)), "{} from {from} did not happen", arrow.verb);
    }
}

async fn a_new_message_is_ready_or_delayed(w: &mut World) {
    let q = w.queue("q").await;
    for delay in [0, 1_000] {
        let id = w.put_with(&q, |d| d.visible = after(delay)).await;
        let to = w.state(&q, id).await;
        assert!(allows(Verb::Enqueue, None, to), "{to:?}");
    }
}

rules!("arrows"; a_new_message_is_ready_or_delayed; across queues: every_verb_from_every_state_ends_where_the_table_says);
