//! Another server takes over.

use redrive_core::time::Millis;
use redrive_store::{Now, Settled};
use redrive_store_postgres::Options;
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Postgres, Settings};

use crate::load::Load;
use crate::world::{World, claims};

/// Two servers, of which the second follows the first.
fn two(synchronous: bool) -> (Postgres, Postgres) {
    let primary = Postgres::start(Settings::default().fsync(false)).unwrap();
    let standby = primary.standby("second").unwrap();
    if synchronous {
        primary.wait_for_commits_on(&standby).unwrap();
    }
    (primary, standby)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_standby_that_is_promoted_has_lost_nothing() {
    let (mut primary, standby) = two(true);
    let options = Options { connections: 4, ..Options::new(primary.url_with(&standby)) };
    let world = World::open(options.clone()).await;
    world.put().await.unwrap();
    let before = world.take_one().await;
    assert_eq!(before.lease().unwrap().id.epoch(), 1);
    let load = Load::on(&world);
    load.ledger.goes_on(50).await;
    tokio::task::block_in_place(|| primary.kill9().and_then(|()| standby.promote())).unwrap();
    load.ledger.goes_on(50).await;
    // A lease that the old server gave is one of the new one, too.
    let answer = world.ack(&claims(&[before])).await.unwrap();
    assert!(matches!(answer[..], [Settled::Applied(_)]), "{answer:?}");
    let ledger = load.end().await;
    assert_eq!(ledger.epochs().into_iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(ledger.unknown(), 0);
    // It was raised once, whoever saw it.
    let another = World::beside(options).await;
    another.put().await.unwrap();
    assert_eq!(another.take_one().await.lease().unwrap().id.epoch(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_lost_is_told_from_the_one_that_follows() {
    let (mut primary, standby) = two(false);
    let proxy = Proxy::before(&primary.url()).unwrap();
    let world = World::open(Options { connections: 2, ..Options::new(proxy.url()) }).await;
    world.put().await.unwrap();
    let position = primary.sql("SELECT pg_current_wal_lsn()").unwrap();
    while standby.sql(&format!("SELECT pg_last_wal_replay_lsn() >= '{position}'")).unwrap() != "t" {}
    // From here on the standby hears nothing.
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''").unwrap();
    standby.sql("SELECT pg_reload_conf()").unwrap();
    while standby.sql("SELECT count(*) FROM pg_stat_wal_receiver").unwrap() != "0" {}
    let lost = world.take_one().await;
    tokio::task::block_in_place(|| primary.kill9().and_then(|()| standby.promote())).unwrap();
    proxy.lead_to(&standby.url()).unwrap();
    let again = world.take(Now::Store, 1, Millis::new(600_000)).await.unwrap().messages.remove(0);
    assert_eq!(again.id(), lost.id());
    assert!(again.lease().unwrap().id > lost.lease().unwrap().id);
    assert_eq!(again.lease().unwrap().id.epoch(), 2);
    let answer = world.ack(&claims(&[lost])).await.unwrap();
    assert!(matches!(answer[..], [Settled::LeaseLost]), "{answer:?}");
    let answer = world.ack(&claims(&[again])).await.unwrap();
    assert!(matches!(answer[..], [Settled::Applied(_)]), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_is_read_only_is_left() {
    let (primary, standby) = two(false);
    let world = World::open(Options { connections: 4, ..Options::new(primary.url_with(&standby)) }).await;
    world.put().await.unwrap();
    let position = primary.sql("SELECT pg_current_wal_lsn()").unwrap();
    while standby.sql(&format!("SELECT pg_last_wal_replay_lsn() >= '{position}'")).unwrap() != "t" {}
    tokio::task::block_in_place(|| standby.promote()).unwrap();
    // Connections stay open, and are of no use.
    primary.set("default_transaction_read_only", "on").unwrap();
    let id = world.put().await.unwrap();
    assert_eq!(standby.sql(&format!("SELECT count(*) FROM redrive.message WHERE id = '{id}'")).unwrap(), "1");
    assert_eq!(world.messages().await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_keeps_its_history_to_itself_is_another_one_after_each_restart() {
    let mut server = Postgres::start(Settings::default().fsync(false)).unwrap();
    let make = "CREATE ROLE worker LOGIN PASSWORD 'worker'; GRANT CREATE ON DATABASE redrive TO worker;
        REVOKE EXECUTE ON FUNCTION pg_walfile_name(pg_lsn) FROM PUBLIC";
    server.sql(make).unwrap();
    let url = format!("postgres://worker:worker@127.0.0.1:{}/redrive", server.port());
    let proxy = Proxy::before(&url).unwrap();
    let world = World::open(Options { connections: 2, ..Options::new(proxy.url()) }).await;
    world.put().await.unwrap();
    world.put().await.unwrap();
    assert_eq!(world.take_one().await.lease().unwrap().id.epoch(), 1);
    tokio::task::block_in_place(|| server.restart()).unwrap();
    assert_eq!(world.take_one().await.lease().unwrap().id.epoch(), 2);
    // One who may do nothing special finds out what became of a commit, too.
    let rule =
        proxy.inject(Rule::new(Trigger::Statement("INSERT INTO redrive.mark".to_owned()), Fault::CutReply));
    world.put().await.unwrap();
    assert_eq!((rule.fired(), world.messages().await), (1, 3));
}
