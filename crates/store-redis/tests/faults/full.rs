//! A server, or a node of a cluster, that has no room left: it takes nothing in, and everything else goes on.

use bytes::Bytes;
use redrive_core::lifecycle::{Reschedule, Verb, When};
use redrive_core::message::{Body, ErrorText, Message, Note, Priority, State};
use redrive_core::policy::Asked;
use redrive_core::queue::Pause;
use redrive_core::receipt::Claim;
use redrive_core::time::Millis;
use redrive_store::{
    Batch, CreateQueue, DeleteQueue, EnqueueOutcome, EntryKey, EntryKind, EntryName, Expect, Filter,
    NackItem, Now, PauseQueue, QueueError, Selection, Settled, Store, StoreError, UpdateQueue, Write,
    WriteOutcome, Writes,
};
use redrive_test_servers::{Redis, RedisCluster, RedisSettings};

use crate::cluster::{home_of, queue_at};
use crate::relay::bury;
use crate::server::until_it_has_all;
use crate::world::{PATIENCE, World, options, patient, queue_name, until_it_works};

/// Room for nothing.
const NONE: &str = "1";
/// Room for all there is.
const ENOUGH: &str = "0";

fn room(server: &Redis, bytes: &str) {
    server.command(&["CONFIG", "SET", "maxmemory", bytes]).expect("it is set");
}

fn forgetful() -> Redis {
    Redis::start(RedisSettings::default().appendonly(false)).expect("it starts")
}

async fn refused(world: &World) {
    let answer = world.send(vec![World::draft()]).await;
    assert!(matches!(answer, Err(StoreError::StorageFull)), "{answer:?}");
}

async fn all_acked(world: &World, leased: &[Message]) {
    let acked = world.ack(leased).await.unwrap();
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
}

#[tokio::test]
async fn a_full_server_takes_nothing_more_and_gives_out_what_it_has() {
    let small = RedisSettings::default().set("maxmemory", "6mb").set("maxmemory-policy", "noeviction");
    let server = Redis::start(small).expect("it starts");
    let world = World::open(options(&server.url())).await;
    let mut taken = 0;
    let refused = loop {
        let mut draft = World::draft();
        draft.spec.body = Body::new(vec![7; 100_000]).unwrap();
        match world.send(vec![draft]).await {
            Ok(outcomes) => {
                assert!(matches!(outcomes[..], [EnqueueOutcome::Enqueued { .. }]), "{outcomes:?}");
                taken += 1;
            }
            Err(error) => break error,
        }
        assert!(taken < 1_000, "it is never full");
    };
    assert!(matches!(refused, StoreError::StorageFull), "{refused:?}");
    assert_eq!(world.stats().await.states.of(State::Ready), taken, "nothing is half done");
    let leased = world.lease(10).await;
    assert_eq!(leased.len(), 10, "what is there is handed out");
    let acked = world.ack(&leased).await.unwrap();
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
    until_it_works(async || world.send(vec![World::draft()]).await).await;
}

#[tokio::test]
async fn a_full_server_takes_nothing_in_though_something_is_due_there() {
    let server = forgetful();
    let world = World::open(options(&server.url())).await;
    let mut later = World::draft();
    later.visible = When::After(Millis::new(1));
    world.send(vec![later]).await.unwrap();
    let waits = async || world.store.next_due(Now::Store, None).await.unwrap().ready.is_some();
    let due = async { while waits().await {} };
    tokio::time::timeout(PATIENCE, due).await.expect("its time comes");
    room(&server, NONE);
    refused(&world).await;
    let leased = world.lease(10).await;
    assert_eq!(leased.len(), 1, "what is due is handed out");
    all_acked(&world, &leased).await;
}

#[tokio::test]
async fn at_a_full_server_operators_do_what_they_like_with_what_is_there() {
    let server = forgetful();
    let world = World::open(options(&server.url())).await;
    let other = World { queue: queue_name("other"), ..world.clone() };
    world.create(&other.queue, patient()).await;
    world.put(6).await;
    for message in world.lease(3).await {
        bury(&world, &message).await;
    }
    room(&server, NONE);
    refused(&world).await;
    let store = &world.store;
    let created = CreateQueue { name: queue_name("new"), config: patient() };
    let created = store.create_queue(Now::Store, created).await;
    assert!(matches!(created, Err(QueueError::Store(StoreError::StorageFull))), "{created:?}");

    let all = || Selection::new(world.queue.clone(), Filter::default());
    let dead = || Selection::new(world.queue.clone(), Filter::state(State::Dead));
    let note = |text| Note::new(text).expect("a good note");
    let redriven = Selection { limit: redrive_store::Limit::ONE, ..dead() };
    let redriven = store.redrive(Now::Store, redriven, note("test"), note("again")).await.unwrap();
    assert_eq!(redriven.applied.len(), 1);
    let first = Reschedule { visible: None, priority: Some(Priority::new(9).unwrap()) };
    assert_eq!(store.reschedule(Now::Store, all(), first).await.unwrap().applied.len(), 4);
    let one = Selection { limit: redrive_store::Limit::ONE, ..dead() };
    assert_eq!(store.move_to(Now::Store, one, other.queue.clone()).await.unwrap().applied.len(), 1);
    assert_eq!(store.discard(Now::Store, dead(), false).await.unwrap().applied.len(), 1);

    // What an operation over many messages writes down of itself.
    let key = EntryKey { kind: EntryKind::Operation, name: EntryName::new("purge").unwrap() };
    let write = Write { key, expect: Expect::Absent, value: Some(Bytes::from_static(b"begun")) };
    let written = store.registry_write(Writes::new(vec![write]).unwrap()).await.unwrap();
    assert!(matches!(written, WriteOutcome::Committed(_)), "{written:?}");

    let pause = PauseQueue { name: world.queue.clone(), key: None, pause: Some(Pause::UntilResumed) };
    store.pause_queue(Now::Store, pause.clone()).await.unwrap();
    assert!(world.lease(10).await.is_empty());
    store.pause_queue(Now::Store, PauseQueue { pause: None, ..pause }).await.unwrap();
    let update = UpdateQueue { name: world.queue.clone(), config: patient(), expected: None };
    store.update_queue(Now::Store, update).await.unwrap();
    store.delete_queue(Now::Store, DeleteQueue { name: other.queue.clone(), force: true }).await.unwrap();
    assert_eq!(store.get_queue(&other.queue).await.unwrap(), None);

    let leased = world.lease(10).await;
    assert_eq!(leased.len(), 4);
    let claim = Claim::on(&leased[0]).unwrap();
    let error = ErrorText::new("not now");
    let nack = NackItem { claim, asked: Asked::Nothing, error, checkpoint: None };
    let nacked = store.nack(Now::Store, Batch::one(nack).unwrap(), 1).await.unwrap();
    assert!(nacked.iter().all(Settled::is_applied), "{nacked:?}");
    all_acked(&world, &leased[1..]).await;
    all_acked(&world, &world.lease(10).await).await;
    room(&server, ENOUGH);
    world.put(1).await;
    let totals = world.stats().await.totals;
    assert_eq!((totals.of(Verb::Enqueue), totals.of(Verb::Ack)), (7, 4), "nothing that was refused was done");
}

#[tokio::test]
async fn an_instance_that_comes_to_a_full_server_hands_out_what_is_there() {
    let mut server = Redis::start(RedisSettings::default()).expect("it starts");
    let world = World::open(options(&server.url())).await;
    world.put(3).await;
    let leased = world.lease(1).await;
    room(&server, NONE);
    let beside = World::beside(options(&server.url())).await;
    all_acked(&beside, &beside.lease(1).await).await;

    // Started again it is new to everybody, which is written down.
    server.kill().expect("it is killed");
    server.restart().expect("it starts again");
    room(&server, NONE);
    let acked = until_it_works(async || beside.ack(&leased).await).await;
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
    refused(&beside).await;
}

#[tokio::test]
async fn a_full_server_takes_over() {
    let mut master = Redis::start(RedisSettings::default()).expect("it starts");
    let world = World::open(options(&master.url())).await;
    world.put(3).await;
    let leased = world.lease(1).await;
    let replica = master.replica().expect("it follows");
    until_it_has_all(&master, &replica);
    room(&replica, NONE);
    master.kill().expect("it is killed");
    replica.command(&["REPLICAOF", "NO", "ONE"]).expect("it takes over");
    let after = World::beside(options(&replica.url())).await;
    let lost = after.ack(&leased).await.unwrap();
    assert!(lost.iter().all(|settled| *settled == Settled::LeaseLost), "{lost:?}");
    refused(&after).await;
    all_acked(&after, &after.lease(2).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_nodes_are_full_hands_out_what_is_there() {
    let cluster = RedisCluster::start(&RedisSettings::shared()).expect("it forms");
    let world = World::beside(options(&cluster.url())).await;
    let home = home_of(&cluster);
    let queues = [
        queue_at(&cluster, &world, home, patient()).await,
        queue_at(&cluster, &world, (home + 1) % 3, patient()).await,
    ];
    for queue in &queues {
        queue.put(3).await;
    }
    cluster.nodes().iter().for_each(|node| room(node, NONE));
    let beside = World::beside(options(&cluster.url())).await;
    for queue in &queues {
        let beside = World { queue: queue.queue.clone(), ..beside.clone() };
        refused(&beside).await;
        all_acked(&beside, &queue.lease(1).await).await;
        all_acked(queue, &beside.lease(2).await).await;
        let gone = DeleteQueue { name: queue.queue.clone(), force: false };
        beside.store.delete_queue(Now::Store, gone).await.unwrap();
    }
    cluster.nodes().iter().for_each(|node| room(node, ENOUGH));
}
