//! A cluster that has no place for a call: a slot is on its way, a node is lost and with it the cluster, or one queue of a batch.

use std::time::Duration;

use redrive_core::lifecycle::Verb;
use redrive_core::message::{Message, State};
use redrive_core::time::Millis;
use redrive_store::{
    Batch, EnqueueItem, EnqueueOutcome, ExpireRequest, Limit, Now, QueueError, Settled, Store, StoreError,
    SweepRequest,
};
use redrive_store_redis::{Options, Patience};
use redrive_test_servers::{RedisCluster, RedisSettings};
use tokio::runtime::Handle;

use crate::cluster::{home_of, queue_at, slot_of};
use crate::world::{PATIENCE, World, hasty, options, patient, until_it_works};

/// Options of somebody who waits for a busy server so long.
fn waits(url: &str, busy: Duration) -> Options {
    Options { patience: Patience { busy, ..Patience::default() }, ..options(url) }
}

fn unavailable<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
}

/// Whatever is asked of a queue that cannot be served is refused, and nothing of it is done.
async fn nothing_is_served(world: &World, leased: &[Message]) {
    unavailable(&world.send(vec![World::draft()]).await);
    unavailable(&world.ack(leased).await);
    match world.take(1, Millis::from_secs(60)).await {
        Err(QueueError::Store(error)) => unavailable(&Err::<(), _>(error)),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_whose_slot_is_half_moved_serves_nobody_and_all_of_it_once_it_is_there() {
    let cluster = RedisCluster::start(&RedisSettings::shared()).expect("it forms");
    let world = World::open(waits(&cluster.url(), Duration::from_millis(20))).await;
    let patient = World::beside(waits(&cluster.url(), PATIENCE)).await;
    world.put(3).await;
    patient.put(2).await;
    let leased = world.lease(1).await;
    let before = world.stats().await;

    let slot = slot_of(&cluster, &world.queue);
    let to = (cluster.node_of_slot(slot).expect("somebody has it") + 1) % 3;
    let handle = Handle::current();
    let moving = tokio::task::spawn_blocking({
        let (world, leased) = (world.clone(), leased.clone());
        move || {
            let (mut steps, mut waiting) = (0, None);
            let moved = cluster.move_slot_slowly(slot, to, |_| {
                handle.block_on(nothing_is_served(&world, &leased));
                steps += 1;
                if steps == 2 {
                    // Who waits long enough is served when it is over.
                    let patient = patient.clone();
                    let call = async move { patient.send(vec![World::draft()]).await };
                    waiting = Some(handle.spawn(call));
                }
            });
            moved.expect("it moves");
            assert!(steps > 3, "a queue has several keys: {steps}");
            (cluster, waiting.expect("there was a second step"))
        }
    });
    let (cluster, waiting) =
        tokio::time::timeout(PATIENCE, moving).await.expect("it moves").expect("no panic");
    let waited = tokio::time::timeout(PATIENCE, waiting).await.expect("it is served").expect("no panic");
    assert!(matches!(waited.unwrap()[..], [EnqueueOutcome::Enqueued { .. }]));
    assert_eq!(cluster.node_of_slot(slot).expect("somebody has it"), to);

    let after = world.stats().await;
    assert_eq!(after.totals.of(Verb::Enqueue), before.totals.of(Verb::Enqueue) + 1, "only who has waited");
    assert_eq!((after.states.of(State::Ready), after.states.of(State::Leased)), (5, 1));
    let acked = world.ack(&leased).await.unwrap();
    assert!(acked.iter().all(Settled::is_applied), "leases go along: {acked:?}");
    let rest = world.lease(10).await;
    assert_eq!(rest.len(), 5);
    assert!(world.ack(&rest).await.unwrap().iter().all(Settled::is_applied));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_wants_all_of_its_slots_serves_nobody_until_the_lost_node_is_back() {
    let mut cluster = RedisCluster::start(&RedisSettings::default()).expect("it forms");
    let world = World::beside(hasty(&cluster.url())).await;
    let home = home_of(&cluster);
    let lost = (home + 1) % 3;
    let world = queue_at(&cluster, &world, home, patient()).await;
    let mut sent = world.put(3).await.len();
    let leased = world.lease(1).await;
    cluster.kill(lost).expect("it is killed");
    cluster.wait_until_lost(lost).expect("the others notice");

    // Its own node is there, and takes messages until it has drawn the conclusion.
    let refused = async {
        loop {
            match world.send(vec![World::draft()]).await {
                Ok(_) => sent += 1,
                Err(error) => return error,
            }
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await.expect("the cluster is down");
    assert!(refused.to_string().contains("ClusterDown"), "{refused}");
    nothing_is_served(&world, &leased).await;

    cluster.restart(lost).expect("it comes back");
    let acked = until_it_works(async || world.ack(&leased).await).await;
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
    let stats = world.stats().await;
    let found = (stats.totals.of(Verb::Enqueue), stats.totals.of(Verb::Lease), stats.states.of(State::Ready));
    assert_eq!(found, (sent as u64, 1, sent as u64 - 1), "what was refused was not done");
}

/// A batch with a new message for each of these queues.
fn for_each(queues: &[&World]) -> Batch<EnqueueItem> {
    let item = |world: &&World| EnqueueItem { queue: world.queue.clone(), draft: World::draft() };
    Batch::each(queues.iter().map(item).collect()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_batch_that_is_half_done_when_a_node_is_away_nobody_says_that_nothing_happened() {
    let settings = RedisSettings::default().set("cluster-require-full-coverage", "no");
    let mut cluster = RedisCluster::start(&settings).expect("it forms");
    let world = World::beside(hasty(&cluster.url())).await;
    let home = home_of(&cluster);
    let away = (home + 1) % 3;
    let there = queue_at(&cluster, &world, home, patient()).await;
    let gone = queue_at(&cluster, &world, away, patient()).await;
    there.put(1).await;
    gone.put(1).await;
    let leased = [there.lease(1).await, gone.lease(1).await].concat();
    cluster.kill(away).expect("it is killed");
    // What was on its way on the connection of before is not known; from here on there is none.
    drop(gone.send(vec![World::draft()]).await);
    unavailable(&gone.send(vec![World::draft()]).await);

    let store = &there.store;
    unavailable(&store.enqueue(Now::Store, for_each(&[&gone, &there])).await);
    assert_eq!(there.stats().await.totals.of(Verb::Enqueue), 1, "it did not come that far");

    let batch = for_each(&[&there, &gone]);
    let half = store.enqueue(Now::Store, batch.clone()).await;
    assert!(matches!(half, Err(StoreError::OutcomeUnknown(_))), "{half:?}");
    assert_eq!(there.stats().await.totals.of(Verb::Enqueue), 2, "that half was done");
    let half = there.ack(&leased).await;
    assert!(matches!(half, Err(StoreError::OutcomeUnknown(_))), "{half:?}");
    assert_eq!(there.stats().await.totals.of(Verb::Ack), 1, "that half was done");

    cluster.restart(away).expect("it comes back");
    let again = until_it_works(async || store.enqueue(Now::Store, batch.clone()).await).await;
    let first = batch.items()[0].draft.spec.id;
    assert_eq!(again[0], EnqueueOutcome::Duplicate { id: first }, "to repeat it is safe");
    assert!(matches!(again[1], EnqueueOutcome::Enqueued { .. }), "{again:?}");
    let acked = until_it_works(async || there.ack(&leased).await).await;
    assert!(matches!(acked[..], [Settled::NotFound, Settled::Applied(_)]), "{acked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_batch_that_is_half_done_when_a_node_is_full_nobody_says_that_nothing_happened() {
    let cluster = RedisCluster::start(&RedisSettings::shared()).expect("it forms");
    let world = World::beside(hasty(&cluster.url())).await;
    let home = home_of(&cluster);
    let full = (home + 1) % 3;
    let there = queue_at(&cluster, &world, home, patient()).await;
    let crammed = queue_at(&cluster, &world, full, patient()).await;
    let room = |bytes: &str| {
        cluster.node(full).command(&["CONFIG", "SET", "maxmemory", bytes]).expect("it is set");
    };
    room("1");
    let store = &there.store;
    let refused = store.enqueue(Now::Store, for_each(&[&crammed, &there])).await;
    assert!(matches!(refused, Err(StoreError::StorageFull)), "{refused:?}");
    assert_eq!(there.stats().await.states.all(), 0, "it did not come that far");
    let batch = for_each(&[&there, &crammed]);
    let half = store.enqueue(Now::Store, batch.clone()).await;
    assert!(matches!(half, Err(StoreError::OutcomeUnknown(_))), "{half:?}");
    assert_eq!(there.stats().await.states.all(), 1, "that half was done");
    room("0");
    let again = store.enqueue(Now::Store, batch.clone()).await.unwrap();
    let first = batch.items()[0].draft.spec.id;
    assert_eq!(again[0], EnqueueOutcome::Duplicate { id: first }, "to repeat it is safe");
    assert!(matches!(again[1], EnqueueOutcome::Enqueued { .. }), "{again:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queues_at_other_nodes_are_swept_while_a_node_is_away() {
    let settings = RedisSettings::default().set("cluster-require-full-coverage", "no");
    let mut cluster = RedisCluster::start(&settings).expect("it forms");
    let world = World::beside(hasty(&cluster.url())).await;
    let home = home_of(&cluster);
    let away = (home + 1) % 3;
    let gone = queue_at(&cluster, &world, away, patient()).await;
    let there = queue_at(&cluster, &world, home, patient()).await;
    for queue in [&gone, &there] {
        queue.put(1).await;
        assert_eq!(queue.take(1, Millis::new(1)).await.unwrap().messages.len(), 1);
    }
    cluster.kill(away).expect("it is killed");

    // Who asks for all queues.
    let expire = async || {
        let request = ExpireRequest { queue: None, limit: Limit::MAX, error: None, seed: 1 };
        world.store.expire(Now::Store, request).await
    };
    let all = || SweepRequest { queue: None, limit: Limit::MAX };
    let until_expired = async || {
        loop {
            let expired = expire().await.expect("nobody waits for that node");
            if !expired.is_empty() {
                return expired.into_iter().map(|judged| judged.queue).collect::<Vec<_>>();
            }
        }
    };
    let expired = tokio::time::timeout(PATIENCE, until_expired()).await.expect("its lease has run out");
    assert_eq!(expired, std::slice::from_ref(&there.queue));
    world.store.next_due(Now::Store, None).await.expect("nobody waits for that node");
    world.store.lapse(Now::Store, all()).await.expect("nobody waits for that node");
    world.store.retain(Now::Store, all()).await.expect("nobody waits for that node");
    // Who asks for that one is told.
    let request = ExpireRequest { queue: Some(gone.queue.clone()), limit: Limit::MAX, error: None, seed: 1 };
    let refused = world.store.expire(Now::Store, request).await;
    assert!(matches!(refused, Err(QueueError::Store(StoreError::Unavailable(_)))), "{refused:?}");

    cluster.restart(away).expect("it comes back");
    let expired = tokio::time::timeout(PATIENCE, until_expired()).await.expect("its lease has run out");
    assert_eq!(expired, std::slice::from_ref(&gone.queue));
}
