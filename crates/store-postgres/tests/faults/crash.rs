//! The server ends, or ends connections, under load.

use redrive_store_postgres::Options;
use redrive_test_servers::{Postgres, Settings};

use crate::load::Load;
use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_and_restarted_loses_nothing() {
    let mut server = Postgres::start(Settings::default().fsync(false)).unwrap();
    let world = World::open(Options { connections: 4, ..Options::new(server.url()) }).await;
    let load = Load::on(&world);
    for _ in 0..2 {
        load.ledger.goes_on(50).await;
        tokio::task::block_in_place(|| server.kill9().and_then(|()| server.restart())).unwrap();
    }
    load.ledger.goes_on(50).await;
    let ledger = load.end().await;
    // The server was back soon enough for every enqueue to be answered.
    assert_eq!(ledger.unknown(), 0);
    // It is still the same one.
    assert_eq!(ledger.epochs().into_iter().collect::<Vec<_>>(), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_ended_again_and_again_lose_nothing() {
    let server = Postgres::start(Settings::default().fsync(false)).unwrap();
    let world = World::open(Options { connections: 4, ..Options::new(server.url()) }).await;
    let load = Load::on(&world);
    for _ in 0..10 {
        load.ledger.goes_on(20).await;
        let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let ended = tokio::task::block_in_place(|| server.sql(all)).unwrap();
        assert!(ended.contains('t'), "nobody was connected");
    }
    load.ledger.goes_on(20).await;
    let ledger = load.end().await;
    assert_eq!(ledger.unknown(), 0);
}
