//! A master that is lost, and sentinels that let a replica take its place: killed, or cut off from everybody but its clients.

use std::collections::BTreeSet;

use redrive_core::message::{Message, MessageId, State};
use redrive_store::{Filter, ListRequest, Now, Settled, Store, StoreError};
use redrive_store_redis::{Options, Patience, RedisStore};
use redrive_test_servers::{AppendFsync, RedisSentinels, RedisSettings};

use crate::server::until_it_has_all;
use crate::world::{World, hasty, options, until_it_works};

fn watched(settings: RedisSettings) -> RedisSentinels {
    RedisSentinels::start(&settings.appendfsync(AppendFsync::No), 2).expect("it starts")
}

/// Waits until the replicas have what the master was told.
fn until_all_have_it(group: &RedisSentinels) {
    (1..3).for_each(|replica| until_it_has_all(group.server(0), group.server(replica)));
}

async fn present(world: &World, ids: &[MessageId]) -> BTreeSet<MessageId> {
    let request = ListRequest::new(world.queue.clone(), Filter::ids(ids.iter().copied()));
    let page = world.store.list(Now::Store, request).await.unwrap();
    page.messages.iter().map(Message::id).collect()
}

/// How many messages of the queue a server has, whatever it is at the moment.
fn count_at(group: &RedisSentinels, server: usize) -> usize {
    let server = group.server(server);
    let id = server.command(&["HGET", "redrive:{redrive}:queues", "work"]).unwrap();
    server.command(&["HLEN", &format!("redrive:{{{}}}:p", id.trim())]).unwrap().parse().unwrap()
}

fn epoch(message: &Message) -> u16 {
    message.lease().expect("leased").id.epoch()
}

async fn put_again(world: &World) -> MessageId {
    let draft = World::draft();
    let id = draft.spec.id;
    until_it_works(async || world.send(vec![draft.clone()]).await).await;
    id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_goes_on_with_the_replica_that_takes_over_and_leaves_the_old_master_alone() {
    let mut group = watched(RedisSettings::default());
    let world = World::open(options(&group.url())).await;
    let ids = world.put(20).await;
    let leased = world.lease(5).await;
    until_all_have_it(&group);
    group.server_mut(0).kill().expect("it is killed");

    let first = put_again(&world).await;
    assert!(present(&world, &ids).await.len() == 20 && present(&world, &[first]).await.len() == 1);
    let acked = world.ack(&leased).await.unwrap();
    assert!(acked.iter().all(|settled| *settled == Settled::LeaseLost), "{acked:?}");
    let newer = world.lease(3).await;
    assert!(newer.iter().all(|message| epoch(message) > epoch(&leased[0])), "{newer:?}");
    assert!(world.ack(&newer).await.unwrap().iter().all(Settled::is_applied));

    // It thinks that it is the master, with what it had; nobody writes to it before it hears better.
    group.server_mut(0).restart().expect("it comes back");
    let beside = World::beside(options(&group.url())).await;
    world.put(3).await;
    beside.put(3).await;
    group.wait_until_replica(0).expect("it follows");
    assert_eq!(world.stats().await.states.all(), 20 + 1 - 3 + 6);
    assert_eq!(beside.stats().await.states, world.stats().await.states);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_master_acknowledged_that_was_cut_off_is_lost_and_its_leases_are_refused() {
    let group = watched(RedisSettings::default());
    let world = World::open(options(&group.url())).await;
    let ids = world.put(20).await;
    let leased = world.lease(5).await;
    until_all_have_it(&group);
    group.cut_off(0).expect("nobody but clients reaches it");
    // It does not know, and neither do its clients.
    let lost = world.put(10).await;
    let late = world.lease(5).await;
    assert!(world.ack(&late[..2]).await.unwrap().iter().all(Settled::is_applied));
    group.wait_until_followed(0).expect("a replica takes over");
    assert_eq!(count_at(&group, 0), 28);
    group.join(0).expect("sentinels reach it again");
    group.wait_until_replica(0).expect("it is told");

    let first = put_again(&world).await;
    let there = present(&world, &[&ids[..], &lost, &[first]].concat()).await;
    let kept: BTreeSet<_> = ids.iter().copied().chain([first]).collect();
    assert_eq!(there, kept, "what the replica had is there, and nothing that came later");
    for stale in [&leased, &late] {
        let acked = world.ack(stale).await.unwrap();
        assert!(acked.iter().all(|settled| *settled == Settled::LeaseLost), "{acked:?}");
    }
    assert_eq!(world.stats().await.states.of(State::Leased), 5, "until their time is up");
    let newer = world.lease(100).await;
    assert_eq!(newer.len(), 16, "also what was acked where nobody has heard of it");
    let given: BTreeSet<_> = leased.iter().chain(&late).map(|message| message.lease().unwrap().id).collect();
    assert!(newer.iter().all(|message| !given.contains(&message.lease().unwrap().id)));
    assert!(newer.iter().all(|message| epoch(message) > epoch(&late[0])));
    assert!(world.ack(&newer).await.unwrap().iter().all(Settled::is_applied));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_wants_its_replicas_loses_nothing_when_it_is_cut_off() {
    let group = watched(RedisSettings::default().set("min-replicas-to-write", "1"));
    let world = World::open(options(&group.url())).await;
    let ids = world.put(20).await;
    until_all_have_it(&group);
    group.cut_off(0).expect("nobody but clients reaches it");
    // It refuses, and who was refused asks the sentinels until they know better: nobody has to reach it for that.
    let first = put_again(&world).await;
    let master = group.wait_until_followed(0).expect("a replica has taken over");
    assert_eq!((count_at(&group, 0), count_at(&group, master)), (20, 21));
    assert_eq!(present(&world, &[&ids[..], &[first]].concat()).await.len(), 21);
}

#[tokio::test]
async fn sentinels_that_know_no_such_master_are_asked_for_a_while_and_nothing_secret_is_told() {
    let group = watched(RedisSettings::default());
    let patience = Patience { busy: std::time::Duration::from_millis(50), ..Patience::default() };
    let open = async |url: String| RedisStore::open(Options { patience, ..hasty(&url) }, [7; 32]).await;
    let unknown = open(group.url().replace("/work", "/other")).await.expect_err("nobody knows it");
    assert!(matches!(unknown, StoreError::Unavailable(_)), "{unknown:?}");
    assert!(unknown.to_string().contains("no sentinel knows a master of that name"), "{unknown}");
    let wrong = open(group.url().replace(group.password(), "wr0ng")).await.expect_err("it is not let in");
    let told = format!("{wrong} {wrong:?}");
    assert!(!told.contains("wr0ng") && !told.contains(group.password()), "{told}");
}
