//! One server: its scripts are flushed, it is killed and started again, its answers are lost, a replica takes over.

use redrive_core::lifecycle::Verb;
use redrive_core::message::{ErrorText, State};
use redrive_core::policy::Asked;
use redrive_core::receipt::Claim;
use redrive_core::time::Millis;
use redrive_store::{
    Batch, EnqueueOutcome, ExpireRequest, Limit, NackItem, Now, QueueError, Settled, Store, StoreError,
    Survives,
};
use redrive_store_redis::{Durability, Options, RedisStore};
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Redis, RedisSettings};

use crate::world::{World, hasty, options, until_it_works};

fn kept() -> Redis {
    Redis::start(RedisSettings::default()).expect("it starts")
}

fn forgetful() -> Redis {
    Redis::start(RedisSettings::default().appendonly(false)).expect("it starts")
}

/// Waits until a replica has all that its master has been told by now.
pub(crate) fn until_it_has_all(master: &Redis, replica: &Redis) {
    let offset = |server: &Redis, name: &str| -> u64 {
        let said = server.command(&["INFO", "replication"]).expect("it answers");
        let line = said.lines().find_map(|line| line.trim().strip_prefix(name)).expect("it says so");
        line.trim_start_matches(':').parse().expect("a number")
    };
    let told = offset(master, "master_repl_offset");
    let follows = (0..100_000).any(|_| offset(replica, "slave_repl_offset") >= told);
    assert!(follows, "the replica does not follow");
}

#[tokio::test]
async fn scripts_that_were_flushed_are_sent_again() {
    let server = forgetful();
    let flush = || server.command(&["SCRIPT", "FLUSH"]).expect("it flushes");
    let world = World::open(options(&server.url())).await;
    flush();
    world.put(2).await;
    flush();
    let leased = world.lease(2).await;
    flush();
    let acked = world.ack(&leased).await.unwrap();
    assert!(acked.iter().all(Settled::is_applied), "{acked:?}");
    flush();
    assert_eq!(world.stats().await.states.all(), 0);
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill_and_leases_go_on() {
    let mut server = kept();
    let world = World::open(options(&server.url())).await;
    world.put(10).await;
    let leased = world.lease(6).await;
    world.ack(&leased[..3]).await.unwrap();
    let before = world.stats().await;

    server.kill().expect("it is killed");
    server.restart().expect("it starts again");

    let after = until_it_works(async || match world.store.stats(Now::Store, &world.queue).await {
        Ok(stats) => Ok(stats),
        Err(QueueError::Store(error)) => Err(error),
        Err(other) => panic!("{other}"),
    })
    .await;
    assert_eq!((after.states, after.totals), (before.states, before.totals));
    let acked = world.ack(&leased[3..5]).await.unwrap();
    assert!(acked.iter().all(Settled::is_applied), "a consumer can ack what it leased before: {acked:?}");
    let again = world.ack(&leased[..3]).await.unwrap();
    assert!(again.iter().all(|settled| *settled == Settled::NotFound), "no ack was undone: {again:?}");
    let newer = world.lease(1).await;
    let lease = |message: &redrive_core::message::Message| message.lease().expect("leased").id;
    assert!(lease(&newer[0]).epoch() > lease(&leased[0]).epoch(), "no token is given out twice");
}

#[tokio::test]
async fn an_answer_that_is_lost_is_an_outcome_that_nobody_knows() {
    let server = forgetful();
    let direct = World::open(options(&server.url())).await;
    let proxy = Proxy::before(&server.url()).expect("it stands before it");
    let through = World::beside(options(proxy.url())).await;
    // Scripts are known by their hashes from here on, and what is cached of the queue is read.
    through.put(1).await;
    let warm = through.lease(1).await;
    through.ack(&warm).await.unwrap();
    let cut_reply = || proxy.inject(Rule::new(Trigger::Statement("evalsha".to_owned()), Fault::CutReply));

    let draft = World::draft();
    let rule = cut_reply();
    let lost = through.send(vec![draft.clone()]).await;
    assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
    assert_eq!(rule.fired(), 1);
    assert_eq!(direct.stats().await.states.of(State::Ready), 1, "it was done");
    let again = through.send(vec![draft.clone()]).await.unwrap();
    assert_eq!(again, [EnqueueOutcome::Duplicate { id: draft.spec.id }], "to repeat it is safe");

    let leased = through.lease(1).await;
    cut_reply();
    let lost = through.ack(&leased).await;
    assert!(matches!(lost, Err(StoreError::OutcomeUnknown(_))), "{lost:?}");
    assert_eq!(through.ack(&leased).await.unwrap(), [Settled::NotFound], "it was done, and is done once");

    through.put(1).await;
    cut_reply();
    let lost = through.take(1, Millis::new(1)).await;
    assert!(matches!(lost, Err(QueueError::Store(StoreError::OutcomeUnknown(_)))), "{lost:?}");
    assert_eq!(direct.stats().await.totals.of(Verb::Lease), 3, "it was handed out, and nobody got it");
    let mut expired = Vec::new();
    while expired.is_empty() {
        let request = ExpireRequest { queue: None, limit: Limit::MAX, error: None, seed: 1 };
        expired = direct.store.expire(Now::Store, request).await.unwrap();
    }
    assert_eq!(direct.lease(1).await.len(), 1, "its lease ran out, and somebody else gets it");
}

#[tokio::test]
async fn what_never_got_there_has_not_happened() {
    let mut server = forgetful();
    let world = World::open(hasty(&server.url())).await;
    world.put(1).await;
    server.stop().expect("it ends");
    // The first call may have been on its way when the connection ended.
    drop(world.send(vec![World::draft()]).await);
    let refused = world.send(vec![World::draft()]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}

#[tokio::test]
async fn a_replica_that_takes_over_refuses_the_leases_of_before() {
    let mut master = kept();
    let replica = master.replica().expect("it follows");
    let before = World::open(options(&master.url())).await;
    before.put(2).await;
    let leased = before.lease(1).await;
    until_it_has_all(&master, &replica);
    master.kill().expect("it is killed");
    let refused = RedisStore::open(hasty(&replica.url()), [7; 32]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "a replica is no master: {refused:?}");
    replica.command(&["REPLICAOF", "NO", "ONE"]).expect("it takes over");

    let after = World::beside(options(&replica.url())).await;
    assert_eq!(
        after.ack(&leased).await.unwrap(),
        [Settled::LeaseLost],
        "nobody knows what it knows of that lease"
    );
    let item = NackItem {
        claim: Claim::on(&leased[0]).unwrap(),
        asked: Asked::Nothing,
        error: ErrorText::new("late"),
        checkpoint: None,
    };
    let nacked = after.store.nack(Now::Store, Batch::one(item).unwrap(), 1).await.unwrap();
    assert_eq!(nacked, [Settled::LeaseLost]);
    let newer = after.lease(2).await;
    let epoch = |message: &redrive_core::message::Message| message.lease().expect("leased").id.epoch();
    assert_eq!(newer.len(), 1, "the other message is leased until its time is up");
    assert!(epoch(&newer[0]) > epoch(&leased[0]));
    assert!(after.ack(&newer).await.unwrap()[0].is_applied());
    assert_eq!(after.stats().await.states.of(State::Leased), 1);
}

#[tokio::test]
async fn a_server_that_promises_less_than_is_wanted_is_refused() {
    let open = async |server: &Redis, durability| {
        RedisStore::open(Options { durability, ..Options::new(server.url()) }, [7; 32]).await
    };
    let server = forgetful();
    let refused = open(&server, Durability::Process).await.expect_err("it keeps nothing").to_string();
    assert!(refused.contains("appendonly is no"), "{refused}");
    let store = open(&server, Durability::Any).await.expect("that is the operator's word");
    assert_eq!(store.capabilities().survives, Survives::Nothing);

    let every_second = RedisSettings::default().appendfsync(redrive_test_servers::AppendFsync::EverySecond);
    let server = Redis::start(every_second).expect("it starts");
    let refused = open(&server, Durability::Power).await.expect_err("it syncs now and then").to_string();
    assert!(refused.contains("appendfsync is everysec"), "{refused}");
    let store = open(&server, Durability::Process).await.expect("that much it keeps");
    assert_eq!(store.capabilities().survives, Survives::ProcessCrash);

    let evicts = RedisSettings::default().set("maxmemory", "100mb").set("maxmemory-policy", "allkeys-lru");
    let server = Redis::start(evicts).expect("it starts");
    let refused = open(&server, Durability::Process).await.expect_err("it evicts").to_string();
    assert!(refused.contains("maxmemory-policy is allkeys-lru"), "{refused}");

    let store = open(&kept(), Durability::Power).await.expect("always");
    assert_eq!(store.capabilities().survives, Survives::PowerLoss);
}
