//! A cluster: slots are moved under load, a node is lost and comes back, a dead letter finds its queue away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redrive_core::lifecycle::Verb;
use redrive_core::message::{DeadReason, Message, MessageId, State};
use redrive_core::policy::Verdict;
use redrive_core::queue::{QueueConfig, QueueName};
use redrive_store::{Acked, Limit, Now, QueueError, RetryAdvice, Settled, Store, StoreError, SweepRequest};
use redrive_test_servers::{Redis, RedisCluster, RedisSettings};

use crate::relay::bury;
use crate::server::until_it_has_all;
use crate::world::{PATIENCE, World, hasty, options, patient, queue_name, until_it_works};

const MESSAGES: usize = 3_000;

/// The slot in which the keys of a queue lie.
pub(crate) fn slot_of(cluster: &RedisCluster, name: &QueueName) -> u16 {
    let asked = |node: &Redis| node.command(&["HGET", "redrive:{redrive}:queues", name.as_str()]).ok();
    let id = cluster.nodes().iter().find_map(asked).expect("one of them has the directory");
    cluster.slot_of(&format!("redrive:{{{}}}:q", id.trim())).expect("a slot")
}

/// The node that has the directory of queues.
pub(crate) fn home_of(cluster: &RedisCluster) -> usize {
    let directory = cluster.slot_of("redrive:{redrive}:store").expect("a slot");
    cluster.node_of_slot(directory).expect("somebody has it")
}

/// A queue whose keys lie at that node.
pub(crate) async fn queue_at(
    cluster: &RedisCluster,
    world: &World,
    node: usize,
    config: QueueConfig,
) -> World {
    for n in 0..1_000 {
        let name = queue_name(&format!("q-{node}-{n}"));
        world.create(&name, config.clone()).await;
        if cluster.node_of_slot(slot_of(cluster, &name)).expect("somebody has it") == node {
            return World { queue: name, ..world.clone() };
        }
    }
    panic!("no queue lies at node {node}");
}

/// Acks until that works; answers what became of each, and whether an answer was lost on the way.
async fn acked(world: &World, leased: &[Message]) -> (Vec<Settled<Acked>>, bool) {
    let lost = AtomicBool::new(false);
    let outcomes = until_it_works(async || {
        let answer = world.ack(leased).await;
        lost.fetch_or(matches!(answer, Err(StoreError::OutcomeUnknown(_))), Ordering::SeqCst);
        answer
    })
    .await;
    (outcomes, lost.into_inner())
}

/// Takes and acks until told to stop and nothing is left; answers how often each message was acked.
async fn work(world: World, stop: Arc<AtomicBool>) -> BTreeMap<MessageId, usize> {
    let mut done = BTreeMap::new();
    loop {
        let last = stop.load(Ordering::SeqCst);
        let leased = match world.take(50, redrive_core::time::Millis::from_secs(5)).await {
            Ok(leased) => leased.messages,
            Err(QueueError::Store(error)) => {
                assert_ne!(error.advice(), RetryAdvice::GiveUp, "{error}");
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        if leased.is_empty() && last && world.stats().await.states.all() == 0 {
            return done;
        }
        let (outcomes, unknown) = acked(&world, &leased).await;
        for (message, outcome) in leased.iter().zip(outcomes) {
            match outcome {
                Settled::Applied(_) => {}
                // An answer that was lost is asked for again, and then it is not found: it was done.
                Settled::NotFound if unknown => {}
                // Its time was up, and somebody gets it again.
                Settled::LeaseLost => continue,
                other => panic!("{other:?}: {} is gone, and nobody has acked it", message.id()),
            }
            *done.entry(message.id()).or_default() += 1;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_are_moved_under_load_and_nothing_is_lost_or_done_twice() {
    let cluster = RedisCluster::start(&RedisSettings::shared()).expect("it forms");
    let world = World::open(options(&cluster.url())).await;
    let slot = slot_of(&cluster, &world.queue);
    let [moved, stop] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let worker = tokio::spawn(work(world.clone(), Arc::clone(&stop)));
    let producer = tokio::spawn({
        let (world, moved) = (world.clone(), Arc::clone(&moved));
        async move {
            let mut ids = Vec::new();
            // As long as anything moves, and not much less if that is soon over.
            while ids.len() < MESSAGES || !moved.load(Ordering::SeqCst) {
                let drafts: Vec<_> = (0..50).map(|_| World::draft()).collect();
                ids.extend(drafts.iter().map(|draft| draft.spec.id));
                until_it_works(async || world.send(drafts.clone()).await).await;
            }
            ids
        }
    });
    let moving = tokio::task::spawn_blocking(move || {
        let start = cluster.node_of_slot(slot).expect("somebody has it");
        for step in 1..=4 {
            cluster.move_slot(slot, (start + step) % 3).expect("it moves");
        }
        moved.store(true, Ordering::SeqCst);
        cluster
    });
    let cluster = tokio::time::timeout(PATIENCE, moving).await.expect("it moves").expect("no panic");
    let ids = tokio::time::timeout(PATIENCE, producer).await.expect("all are sent").expect("no panic");
    stop.store(true, Ordering::SeqCst);
    let acked = tokio::time::timeout(PATIENCE, worker).await.expect("all are taken").expect("no panic");
    assert!(ids.iter().all(|id| acked.get(id) == Some(&1)), "each message was acked, and once");
    assert_eq!(acked.len(), ids.len(), "and no other one");
    let totals = world.stats().await.totals;
    let sent = ids.len() as u64;
    assert_eq!(
        (totals.of(Verb::Enqueue), totals.of(Verb::Ack)),
        (sent, sent),
        "as the queue itself has counted"
    );
    drop(cluster);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_lost_comes_back_with_all_that_it_had() {
    // The other nodes go on without it: the slots of a lost node are not theirs to miss.
    let settings = RedisSettings::default().set("cluster-require-full-coverage", "no");
    let mut cluster = RedisCluster::start(&settings).expect("it forms");
    let world = World::beside(hasty(&cluster.url())).await;
    // The directory of queues is at one of the nodes; another one is lost.
    let home = home_of(&cluster);
    let (lost, other) = ((home + 1) % 3, home);
    let gone = queue_at(&cluster, &world, lost, patient()).await;
    let stays = queue_at(&cluster, &world, other, patient()).await;
    gone.put(20).await;
    stays.put(20).await;
    let leased = gone.lease(5).await;
    cluster.kill(lost).expect("it is killed");

    let refused = gone.send(vec![World::draft()]).await.expect_err("nobody has its slots");
    assert_ne!(refused.advice(), RetryAdvice::GiveUp, "{refused}");
    let served =
        until_it_works(async || match stays.take(20, redrive_core::time::Millis::from_secs(60)).await {
            Ok(leased) => Ok(leased.messages),
            Err(QueueError::Store(error)) => Err(error),
            Err(other) => panic!("{other}"),
        })
        .await;
    assert_eq!(served.len(), 20, "queues at other nodes are served");

    cluster.restart(lost).expect("it comes back");
    let acked = until_it_works(async || gone.ack(&leased).await).await;
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
    let states = gone.stats().await.states;
    assert!(states.of(State::Ready) >= 15 && states.of(State::Leased) == 0, "{states:?}");
}

/// A cluster with replicas, and two queues in it: one at a node that is not that of the directory, which is told too, and one at that.
async fn followed() -> (RedisCluster, usize, World, World) {
    let cluster = RedisCluster::start_with_replicas(&RedisSettings::default()).expect("it forms");
    let world = World::beside(options(&cluster.url())).await;
    let home = home_of(&cluster);
    let node = (home + 1) % 3;
    let there = queue_at(&cluster, &world, node, patient()).await;
    let elsewhere = queue_at(&cluster, &world, home, patient()).await;
    there.put(20).await;
    elsewhere.put(20).await;
    (cluster, node, there, elsewhere)
}

async fn all_lost(world: &World, leased: &[Message]) {
    let acked = until_it_works(async || world.ack(leased).await).await;
    assert!(acked.iter().all(|settled| *settled == Settled::LeaseLost), "{acked:?}");
}

async fn all_acked(world: &World, leased: &[Message]) {
    let acked = until_it_works(async || world.ack(leased).await).await;
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
}

fn epoch(messages: &[Message]) -> u16 {
    messages[0].lease().expect("leased").id.epoch()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_takes_over_refuses_the_leases_of_before_in_its_queues_only() {
    let (mut cluster, lost, there, elsewhere) = followed().await;
    let (leased, kept) = (there.lease(5).await, elsewhere.lease(5).await);
    until_it_has_all(cluster.node(lost), cluster.node(lost + 3));
    cluster.kill(lost).expect("it is killed");
    cluster.wait_until_lost(lost).expect("the others notice");
    cluster.wait_until_ok().expect("its replica takes over");

    // The first call that gets there at all is refused.
    all_lost(&there, &leased).await;
    all_acked(&elsewhere, &kept).await;
    let newer = there.lease(20).await;
    assert_eq!(newer.len(), 15, "those of before come back when their time is up");
    assert!(epoch(&newer) > epoch(&leased));
    all_acked(&there, &newer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn masters_that_change_places_are_noticed_without_a_connection_being_lost() {
    let (cluster, node, there, _) = followed().await;
    let mut leased = there.lease(5).await;
    for (from, to) in [(node, node + 3), (node + 3, node)] {
        until_it_has_all(cluster.node(from), cluster.node(to));
        cluster.change_places(to).expect("they do");
        all_lost(&there, &leased).await;
        let newer = there.lease(5).await;
        assert!(epoch(&newer) > epoch(&leased));
        leased = newer;
    }
    all_acked(&there, &leased).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_whose_queue_is_away_travels_on_later_and_arrives_once() {
    let settings = RedisSettings::default().set("cluster-require-full-coverage", "no");
    let mut cluster = RedisCluster::start(&settings).expect("it forms");
    let world = World::beside(hasty(&cluster.url())).await;
    let home = home_of(&cluster);
    let away = (home + 1) % 3;
    let graveyard = queue_at(&cluster, &world, away, patient()).await;
    let config = QueueConfig { dead_letter_to: Some(Some(graveyard.queue.clone())), ..patient() };
    let source = queue_at(&cluster, &world, home, config).await;
    source.put(1).await;
    let leased = source.lease(1).await;
    cluster.kill(away).expect("it is killed");

    let judged = bury(&source, &leased[0]).await;
    assert_eq!((judged.verdict, &judged.moved_to), (Verdict::Dead(DeadReason::Buried), &None));
    assert_eq!(source.stats().await.states.all(), 1, "it is counted where it is until it has arrived");
    assert!(source.lease(1).await.is_empty(), "and is handed out by nobody");

    cluster.restart(away).expect("it comes back");
    for _ in 0..2 {
        // A sweeper goes on with what is on its way; what has arrived is not brought again.
        until_it_works(async || {
            let request = SweepRequest { queue: None, limit: Limit::MAX };
            match source.store.retain(Now::Store, request).await {
                Ok(_) => Ok(()),
                Err(QueueError::Store(error)) => Err(error),
                Err(other) => panic!("{other}"),
            }
        })
        .await;
    }
    assert_eq!(source.stats().await.states.all(), 0);
    let arrived = graveyard.lease(10).await;
    assert_eq!(arrived.iter().map(redrive_core::message::Message::id).collect::<Vec<_>>(), [leased[0].id()]);
    assert_eq!((arrived[0].origin_queue.as_ref(), arrived[0].progress.attempts), (Some(&source.queue), 1));
}
