//! Leases of before a failover: what their holders are told, what becomes of their messages, and when a server that is started again is
//! taken for one that took over.

use redrive_core::message::{DeadReason, ErrorText, Message, State};
use redrive_core::policy::Asked;
use redrive_core::receipt::Claim;
use redrive_core::time::Millis;
use redrive_store::{
    Batch, BuryItem, ExpireRequest, ExtendItem, Filter, LeaseTarget, Limit, ListRequest, NackItem, Now,
    QueueError, ReleaseItem, Settled, Store, StoreError,
};
use redrive_test_servers::{Redis, RedisCluster, RedisSettings};

use crate::cluster::{home_of, queue_at};
use crate::server::until_it_has_all;
use crate::world::{World, options, patient, until_it_works};

/// Why something was not applied.
type Code = Option<&'static str>;

/// What all are told whose lease is none any more.
const ALL_LOST: [Code; 5] = [Some("LEASE_LOST"); 5];
/// What a master says that was started again.
const NAMES_NOBODY: &[&str] = &["role:master", "master_replid2:00000000"];
/// The record of the store.
const RECORD: &str = "redrive:{redrive}:store";

fn kept() -> Redis {
    Redis::start(RedisSettings::default()).expect("it starts")
}

/// Waits until a server says so of itself.
fn until_it_says(server: &Redis, section: &str, lines: &[&str]) {
    let ask = || server.command(&["INFO", section]).expect("it answers");
    let said = (0..100_000).any(|_| {
        let said = ask();
        lines.iter().all(|line| said.contains(line))
    });
    assert!(said, "it never says {lines:?}, but {}", ask());
}

/// Lets a server follow another until it has all of it in its file. That it follows is not among its settings: started again, it is a
/// master.
fn follow(replica: &Redis, master: &Redis) {
    replica.command(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).expect("it follows");
    until_it_says(replica, "replication", &["master_link_status:up"]);
    until_it_has_all(master, replica);
    until_it_says(replica, "persistence", &["aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"]);
}

/// Lets a replica take over from a master that is lost, and starts it again: it names nobody any more.
fn take_over_unseen(replica: &mut Redis, master: &mut Redis) {
    follow(replica, master);
    master.kill().expect("it is killed");
    replica.command(&["REPLICAOF", "NO", "ONE"]).expect("it takes over");
    replica.restart().expect("it starts again");
    until_it_says(replica, "replication", NAMES_NOBODY);
}

/// What it calls itself.
fn name_of(server: &Redis) -> String {
    let said = server.command(&["INFO", "replication"]).expect("it answers");
    let name = said.lines().find_map(|line| line.trim().strip_prefix("master_replid:"));
    name.expect("it has one").to_owned()
}

async fn seen(world: &World) -> Vec<Message> {
    let request = ListRequest::new(world.queue.clone(), Filter::default());
    world.store.list(Now::Store, request).await.unwrap().messages
}

/// Does to each message what needs its lease, one after the other; answers all that came of it.
async fn settle_in_every_way(world: &World, message: &Message) -> Result<Vec<Code>, StoreError> {
    fn outcome<T>(settled: Vec<Settled<T>>) -> impl Iterator<Item = Code> {
        settled.into_iter().map(|settled| settled.code())
    }
    let (store, claim) = (&world.store, || Claim::on(message).expect("leased"));
    let target = || LeaseTarget::Claim(claim());
    let extend = ExtendItem { target: target(), time: Millis::from_secs(9), checkpoint: None };
    let release = ReleaseItem { target: target(), delay: None };
    let error = ErrorText::new("late");
    let nack = NackItem { claim: claim(), asked: Asked::Nothing, error: error.clone(), checkpoint: None };
    let bury = BuryItem { claim: claim(), reason: DeadReason::Buried, error };
    let mut outcomes = Vec::new();
    outcomes.extend(outcome(store.extend(Now::Store, Batch::one(extend).unwrap()).await?));
    outcomes.extend(outcome(store.release(Now::Store, Batch::one(release).unwrap()).await?));
    outcomes.extend(outcome(store.nack(Now::Store, Batch::one(nack).unwrap(), 1).await?));
    outcomes.extend(outcome(store.bury(Now::Store, Batch::one(bury).unwrap()).await?));
    outcomes.extend(outcome(world.ack(std::slice::from_ref(message)).await?));
    Ok(outcomes)
}

/// None of these leases is good for anything, and who tries changes nothing; when their time is up, the messages are handed out again.
async fn refused_and_handed_out_again(world: &World, leased: &[Message]) {
    let before = until_it_works(async || world.store.get_queue(&world.queue).await).await;
    let (there, stats) = (seen(world).await, world.stats().await);
    assert_eq!(stats.states.of(State::Leased), leased.len() as u64, "until their time is up");
    for message in leased {
        let outcomes = until_it_works(async || settle_in_every_way(world, message).await).await;
        assert_eq!(outcomes, ALL_LOST);
    }
    assert_eq!((seen(world).await, world.stats().await.totals), (there, stats.totals), "nothing was changed");
    assert_eq!(world.store.get_queue(&world.queue).await.unwrap(), before);

    let deadlines = leased.iter().map(|message| message.lease().expect("leased").deadline);
    let after = Now::At(deadlines.max().expect("some are leased").plus(Millis::new(1)));
    let request = ExpireRequest { queue: None, limit: Limit::MAX, error: None, seed: 1 };
    let expired = world.store.expire(after, request).await.unwrap();
    assert_eq!(expired.len(), leased.len(), "{expired:?}");
    let again = world.lease(100).await;
    for message in leased {
        let lease = |message: &Message| message.lease().expect("leased").id;
        let newer = again.iter().find(|newer| newer.id() == message.id()).expect("it is handed out again");
        assert!(lease(newer) > lease(message) && lease(newer).epoch() > lease(message).epoch());
    }
    for message in leased {
        let outcomes = settle_in_every_way(world, message).await.unwrap();
        assert_eq!(outcomes, ALL_LOST, "the lease of another is no better");
    }
    assert!(world.ack(&again).await.unwrap().iter().all(Settled::is_applied));
}

#[tokio::test]
async fn after_a_failover_a_lease_of_before_changes_nothing_and_its_message_comes_back() {
    let (mut master, replica) = (kept(), kept());
    let before = World::open(options(&master.url())).await;
    before.put(8).await;
    let leased = before.lease(3).await;
    follow(&replica, &master);
    master.kill().expect("it is killed");
    replica.command(&["REPLICAOF", "NO", "ONE"]).expect("it takes over");
    refused_and_handed_out_again(&World::beside(options(&replica.url())).await, &leased).await;
}

#[tokio::test]
async fn a_replica_that_took_over_and_was_started_again_before_anybody_met_it_is_not_taken_for_its_master() {
    let (mut master, mut replica) = (kept(), kept());
    let before = World::open(options(&master.url())).await;
    before.put(8).await;
    let leased = before.lease(3).await;
    take_over_unseen(&mut replica, &mut master);
    let after = World::beside(options(&replica.url())).await;
    refused_and_handed_out_again(&after, &leased).await;
    let commands = replica.command(&["INFO", "commandstats"]).unwrap();
    assert!(commands.contains("cmdstat_bgrewriteaof"), "it was started again, and writes its file anew");

    // From now on it is the one that is known: started again, it is the same.
    after.put(8).await;
    let leased = after.lease(3).await;
    replica.kill().expect("it is killed");
    replica.restart().expect("it starts again");
    let acked = until_it_works(async || after.ack(&leased[..1]).await).await;
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");

    // And the master of before is another one when it takes over in turn.
    master.restart().expect("it starts again");
    take_over_unseen(&mut master, &mut replica);
    refused_and_handed_out_again(&World::beside(options(&master.url())).await, &leased[1..]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_took_over_and_was_started_again_before_anybody_met_it_is_not_taken_for_its_master() {
    let mut cluster = RedisCluster::start_with_replicas(&RedisSettings::default()).expect("it forms");
    let world = World::beside(options(&cluster.url())).await;
    let home = home_of(&cluster);
    let lost = (home + 1) % 3;
    let there = queue_at(&cluster, &world, lost, patient()).await;
    let elsewhere = queue_at(&cluster, &world, home, patient()).await;
    there.put(8).await;
    elsewhere.put(3).await;
    let (leased, kept) = (there.lease(3).await, elsewhere.lease(3).await);
    until_it_has_all(cluster.node(lost), cluster.node(lost + 3));
    cluster.kill(lost).expect("it is killed");
    cluster.wait_until_lost(lost).expect("the others notice");
    cluster.wait_until_ok().expect("its replica takes over");
    cluster.kill(lost + 3).expect("it is killed");
    cluster.restart(lost + 3).expect("it starts again");
    cluster.wait_until_ok().expect("it serves again");
    until_it_says(cluster.node(lost + 3), "replication", NAMES_NOBODY);

    refused_and_handed_out_again(&there, &leased).await;
    let acked = until_it_works(async || elsewhere.ack(&kept).await).await;
    assert!(acked.iter().all(Settled::is_applied), "those of other nodes go on: {acked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_nobody_knows_has_not_taken_over_where_all_who_are_known_still_serve() {
    let cluster = RedisCluster::start(&RedisSettings::shared()).expect("it forms");
    let world = World::beside(options(&cluster.url())).await;
    let home = home_of(&cluster);
    let added = (home + 1) % 3;
    let there = queue_at(&cluster, &world, added, patient()).await;
    there.put(3).await;
    let leased = there.lease(3).await;
    // As it is when it was added since, and has slots by now.
    let field = format!("server:{}", name_of(cluster.node(added)));
    assert_eq!(cluster.node(home).command(&["HDEL", RECORD, &field]).unwrap(), "1", "it was known");

    let beside = World { queue: there.queue.clone(), ..World::beside(options(&cluster.url())).await };
    assert_eq!(cluster.node(home).command(&["HEXISTS", RECORD, &field]).unwrap(), "1", "it is met");
    let acked = beside.ack(&leased).await.unwrap();
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_meets_a_new_master_at_which_somebody_else_ended_refuses_the_leases_of_before() {
    let mut cluster = RedisCluster::start_with_replicas(&RedisSettings::default()).expect("it forms");
    let world = World::beside(options(&cluster.url())).await;
    let home = home_of(&cluster);
    let lost = (home + 1) % 3;
    let there = queue_at(&cluster, &world, lost, patient()).await;
    there.put(8).await;
    let leased = there.lease(3).await;
    until_it_has_all(cluster.node(lost), cluster.node(lost + 3));
    cluster.kill(lost).expect("it is killed");
    cluster.wait_until_lost(lost).expect("the others notice");
    cluster.wait_until_ok().expect("its replica takes over");
    // As it is when whoever met it ended before any lease was refused.
    let (home, field) = (cluster.node(home), format!("fencing:{}", name_of(cluster.node(lost + 3))));
    let epoch = home.command(&["HINCRBY", RECORD, "epoch", "1"]).expect("it is raised");
    let place = cluster.node(lost + 3).command(&["CLUSTER", "MYID"]).expect("it has a name");
    home.command(&["HSET", RECORD, &field, &format!("{epoch} {place}")]).expect("it is noted");

    let beside = World { queue: there.queue.clone(), ..World::beside(options(&cluster.url())).await };
    assert_eq!(home.command(&["HEXISTS", RECORD, &field]).unwrap(), "0", "it is done, and once");
    assert_eq!(
        home.command(&["HGET", RECORD, "epoch"]).unwrap(),
        epoch,
        "in the epoch that was raised for it"
    );
    refused_and_handed_out_again(&beside, &leased).await;
}

async fn leased(world: &World, limit: usize) -> Vec<Message> {
    until_it_works(async || match world.take(limit, Millis::from_secs(3_600)).await {
        Ok(leased) => Ok(leased.messages),
        Err(QueueError::Store(error)) => Err(error),
        Err(other) => panic!("{other}"),
    })
    .await
}

/// Nobody has told the instance of the new epoch when it asks: it hears of it on the way.
#[tokio::test]
async fn the_first_lease_at_a_server_at_which_those_of_before_are_refused_is_a_good_one() {
    let mut server = kept();
    let world = World::open(options(&server.url())).await;
    world.put(4).await;
    let before = world.lease(1).await;
    // As it is when it was not synced.
    server.command(&["HSET", RECORD, "leases", "0"]).expect("it forgets");
    server.kill().expect("it is killed");
    server.restart().expect("it starts again");
    let first = leased(&world, 2).await;
    let outcomes = until_it_works(async || settle_in_every_way(&world, &before[0]).await).await;
    assert_eq!(outcomes, ALL_LOST);
    let acked = world.ack(&first).await.unwrap();
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_of_leases_grow_though_an_instance_has_not_heard_of_an_epoch() {
    let mut cluster = RedisCluster::start(&RedisSettings::default()).expect("it forms");
    let one = World::beside(options(&cluster.url())).await;
    let home = home_of(&cluster);
    let again = (home + 1) % 3;
    let one = queue_at(&cluster, &one, home, patient()).await;
    let elsewhere = queue_at(&cluster, &one, again, patient()).await;
    one.put(1).await;
    cluster.kill(again).expect("it is killed");
    cluster.restart(again).expect("it starts again");

    // Whoever comes now meets it, and the other one has nothing to do there.
    let other = World::beside(options(&cluster.url())).await;
    let [there, other] =
        [&elsewhere, &one].map(|world| World { queue: world.queue.clone(), ..other.clone() });
    until_it_works(async || there.send(vec![World::draft()]).await).await;
    let mut last = None;
    for world in [&other, &one, &other] {
        let leased = leased(world, 1).await;
        let id = leased[0].lease().expect("leased").id;
        assert!(last < Some(id), "{last:?} and {id:?}");
        last = Some(id);
        let target = LeaseTarget::Claim(Claim::on(&leased[0]).expect("leased"));
        let release = Batch::one(ReleaseItem { target, delay: None }).unwrap();
        let released = world.store.release(Now::Store, release).await.unwrap();
        assert!(released.iter().all(Settled::is_applied), "{released:?}");
    }
}
