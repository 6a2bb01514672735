//! A server that is killed in the middle of whatever it does, again and again: what it has acknowledged is there, and every batch as a
//! whole or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use redrive_core::lifecycle::Verb;
use redrive_core::message::{DeadReason, ErrorText, FairnessKey, Message, MessageId, Note};
use redrive_core::policy::Asked;
use redrive_core::receipt::Claim;
use redrive_store::{
    Batch, BuryItem, EnqueueOutcome, Filter, LeaseTarget, ListRequest, NackItem, Now, QueueError,
    ReleaseItem, RetryAdvice, Selection, Store, StoreError,
};
use redrive_test_servers::{Redis, RedisSettings};

use crate::audit::Eye;
use crate::world::{PATIENCE, World, hasty, options, until_it_works};

const ROUNDS: u32 = 6;
/// As much as a script does at a time: a few hundredths of a second.
const BATCH: usize = 1_000;

async fn present(world: &World, ids: &[MessageId]) -> usize {
    let mut found = 0;
    for some in ids.chunks(100) {
        let request = ListRequest::new(world.queue.clone(), Filter::ids(some.iter().copied()));
        found += world.store.list(Now::Store, request).await.unwrap().messages.len();
    }
    found
}

/// Waits until the server is in the midst of a script, as it tells whoever asks for something else.
fn until_it_runs_a_script(server: &Redis) {
    let busy = || server.command(&["PING"]).is_err_and(|error| error.to_string().contains("BUSY"));
    assert!((0..1_000_000).any(|_| busy()), "no script takes long");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_is_cut_off_has_done_all_or_nothing() {
    // It says so after a thousandth of a second.
    let settings = RedisSettings::default().set("busy-reply-threshold", "1");
    let mut server = Redis::start(settings).expect("it starts");
    // Who asks while it is at it is told that it is busy, and asks again.
    let world = World::open(options(&server.url())).await;
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
        // Later in each round, so that the kill meets another moment.
        let target = u64::from(round) + 1;
        let grown = async { while world.stats().await.states.all() < target * BATCH as u64 {} };
        tokio::time::timeout(PATIENCE, grown).await.expect("messages come in");
        tokio::task::block_in_place(|| until_it_runs_a_script(&server));
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

/// Settles what was leased in every way there is, and lets an operator bring the dead back.
async fn live(world: &World) -> Result<(), StoreError> {
    let drafts = (0..60).map(|n| {
        let mut draft = World::draft();
        draft.spec.fairness_key = FairnessKey::new(format!("key {}", n % 7)).unwrap();
        draft
    });
    world.send(drafts.collect()).await?;
    let leased =
        world.take(50, redrive_core::time::Millis::from_secs(3_600)).await.map_err(of_store)?.messages;
    let (store, claim) = (&world.store, |message: &Message| Claim::on(message).expect("it is leased"));
    let nack = |message| NackItem {
        claim: claim(message),
        asked: Asked::Nothing,
        error: ErrorText::new("not now"),
        checkpoint: None,
    };
    let bury = |message| BuryItem {
        claim: claim(message),
        reason: DeadReason::Buried,
        error: ErrorText::new("never"),
    };
    let release = |message| ReleaseItem { target: LeaseTarget::Claim(claim(message)), delay: None };
    let mut parts = leased.chunks(10);
    let mut next = || parts.next().unwrap_or_default();
    for part in [next(), next()].into_iter().filter(|part| !part.is_empty()) {
        world.ack(part).await?;
    }
    let batch = Batch::each(next().iter().map(nack).collect());
    if let Ok(batch) = batch {
        store.nack(Now::Store, batch, 1).await?;
    }
    if let Ok(batch) = Batch::each(next().iter().map(bury).collect()) {
        store.bury(Now::Store, batch).await?;
    }
    if let Ok(batch) = Batch::each(next().iter().map(release).collect()) {
        store.release(Now::Store, batch).await?;
    }
    let dead = Selection::new(world.queue.clone(), Filter::default());
    let note = |text| Note::new(text).expect("a good note");
    store.redrive(Now::Store, dead, note("test"), note("again")).await.map_err(of_store)?;
    Ok(())
}

fn of_store(error: QueueError) -> StoreError {
    match error {
        QueueError::Store(error) => error,
        other => panic!("{other}"),
    }
}

/// The keys of a queue are changed by one script each time, so that there is no moment at which they contradict each other, and whoever
/// looks after any kill finds that they do not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_script_did_when_its_server_was_killed_all_keys_agree() {
    let mut server = Redis::start(RedisSettings::default()).expect("it starts");
    let world = World::open(hasty(&server.url())).await;
    for round in 1..=u64::from(ROUNDS) {
        let done = Arc::new(AtomicU64::new(0));
        let working: Vec<_> = (0..3)
            .map(|_| {
                let (world, done) = (world.clone(), Arc::clone(&done));
                tokio::spawn(async move {
                    loop {
                        if let Err(error) = live(&world).await {
                            return error;
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        let busy = async {
            while done.load(Ordering::Relaxed) < 3 * round {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, busy).await.expect("they work");
        server.kill().expect("it is killed");
        for one in working {
            let error = tokio::time::timeout(PATIENCE, one).await.expect("it hears of it").expect("no panic");
            assert_ne!(error.advice(), RetryAdvice::GiveUp, "{error}");
        }
        server.restart().expect("it starts again");
        until_it_works(async || world.store.get_queue(&world.queue).await).await;

        Eye::at(&server.url()).audit("redrive");
        let stats = world.stats().await;
        assert_eq!(
            stats.totals.expected_present(),
            Some(stats.states.all()),
            "what came in is there or went"
        );
        for verb in [Verb::Ack, Verb::Nack, Verb::Bury, Verb::Release, Verb::Redrive] {
            assert!(stats.totals.of(verb) > 0, "{verb:?} was among it");
        }
    }
}
