//! Nothing is lost, nothing comes from nowhere, and every message is in exactly one state.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Message, MessageId, State};
use redrive_store::{Filter, LeaseTarget};

use crate::world::{World, after, claim, key};

/// What a consumer does with the n-th message it gets.
async fn settle(w: &mut World, message: &Message, n: u64) {
    match n % 7 {
        0 | 1 => assert!(w.ack(message).await.is_applied()),
        2 | 3 => assert!(w.nack(message).await.is_applied()),
        4 => assert!(w.release_with(LeaseTarget::Claim(claim(message)), Some(n % 40)).await.is_applied()),
        5 => assert!(w.extend(message, 60_000).await.is_applied()),
        _ => {}
    }
}

async fn what_came_in_is_there_or_went_out(w: &mut World) {
    let graveyard = w.queue("graveyard").await;
    let q = w
        .queue_with("q", |c| {
            c.retry.max_attempts = Some(NonZeroU32::new(3));
            c.dead_letter_to = Some(Some(graveyard.clone()));
        })
        .await;
    let mut enqueued: BTreeSet<MessageId> = BTreeSet::new();
    for round in 0..30u64 {
        let put = w.put_many(&q, 10, |n, d| {
            d.spec.fairness_key = key(["a", "b", "c"][n % 3]);
            d.visible = after(n as u64 % 4 * 10);
            d.expires = (n == 9).then(|| after(50));
        });
        enqueued.extend(put.await);
        for message in w.lease(&q, 8).await {
            let n = w.seed();
            settle(w, &message, n).await;
        }
        w.advance(round % 5 * 1_000);
        if round % 10 == 9 {
            w.restart().await;
        }
        w.audit().await;
    }
    let (here, there) = (w.stats(&q).await, w.stats(&graveyard).await);
    assert_eq!(here.totals.of(Verb::Enqueue), enqueued.len() as u64);
    let acked = here.totals.of(Verb::Ack);
    assert_eq!(acked + here.states.all() + there.states.all(), enqueued.len() as u64);
    assert!(acked > 0 && there.states.all() > 0, "the history is worth counting");
    let mut left: Vec<MessageId> = w.ids(&q, Filter::default()).await;
    left.extend(w.ids(&graveyard, Filter::default()).await);
    assert_eq!(left.iter().collect::<BTreeSet<_>>().len(), left.len(), "no message is in two queues");
    assert!(left.iter().all(|id| enqueued.contains(id)), "nothing came from nowhere");
}

async fn everything_drains(w: &mut World) {
    let q = w.queue_with("q", |c| c.retry.max_attempts = Some(NonZeroU32::new(4))).await;
    w.put_many(&q, 60, |n, d| d.spec.fairness_key = key(["a", "b", "c", "d"][n % 4])).await;
    for _ in 0..200 {
        for message in w.lease(&q, 7).await {
            let n = w.seed();
            settle(w, &message, n % 5).await;
        }
        w.advance(10_000);
        w.expire(&q).await;
        let states = w.stats(&q).await.states;
        if states.all() == states.of(State::Dead) {
            return;
        }
    }
    panic!("after 200 rounds messages are neither acked nor dead: {:?}", w.stats(&q).await.states);
}

rules!("conservation"; everything_drains; across queues: what_came_in_is_there_or_went_out);
