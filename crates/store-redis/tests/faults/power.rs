//! A server that is killed in the middle of whatever it does, again and again: what it has acknowledged is there, and every batch as a
//! whole or not at all.

use redrive_core::message::MessageId;
use redrive_store::{EnqueueOutcome, Filter, ListRequest, Now, Store};
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{PATIENCE, World, hasty, until_it_works};

const ROUNDS: u32 = 6;
const BATCH: usize = 400;

async fn present(world: &World, ids: &[MessageId]) -> usize {
    let mut found = 0;
    for some in ids.chunks(100) {
        let request = ListRequest::new(world.queue.clone(), Filter::ids(some.iter().copied()));
        found += world.store.list(Now::Store, request).await.unwrap().messages.len();
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_is_cut_off_has_done_all_or_nothing() {
    let mut server = Redis::start(RedisSettings::default()).expect("it starts");
    let world = World::open(hasty(&server.url())).await;
    let (mut batches, mut acknowledged, mut cut) = (Vec::new(), 0, 0);
    for round in 0..ROUNDS {
        let sender = world.clone();
        let sending = tokio::spawn(async move {
            let mut sent = Vec::new();
            loop {
                let drafts: Vec<_> = (0..BATCH).map(|_| World::draft()).collect();
                let ids: Vec<MessageId> = drafts.iter().map(|draft| draft.spec.id).collect();
                let answer = sender.send(drafts).await;
                let taken = answer.as_ref().is_ok_and(|outcomes| {
                    outcomes.iter().all(|outcome| matches!(outcome, EnqueueOutcome::Enqueued { .. }))
                });
                sent.push((ids, taken));
                if answer.is_err() {
                    return sent;
                }
            }
        });
        // Later in each round, so that the kill meets another moment; which one it meets does not matter to what must hold.
        let target = 2 * u64::from(round) + 1;
        let grown = async { while world.stats().await.states.all() < target * BATCH as u64 {} };
        tokio::time::timeout(PATIENCE, grown).await.expect("messages come in");
        server.kill().expect("it is killed");
        batches.extend(
            tokio::time::timeout(PATIENCE, sending).await.expect("it hears of it").expect("no panic"),
        );
        server.restart().expect("it starts again");
        until_it_works(async || world.store.get_queue(&world.queue).await).await;
    }
    for (ids, taken) in &batches {
        let there = present(&world, ids).await;
        assert!(there == 0 || there == ids.len(), "half of a batch is there: {there}");
        assert!(!taken || there == ids.len(), "a batch that was acknowledged is gone");
        acknowledged += usize::from(*taken);
        cut += usize::from(!taken);
    }
    assert!(acknowledged > 0 && cut > 0, "{acknowledged} acknowledged, {cut} cut off");
}
