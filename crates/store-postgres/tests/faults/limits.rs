//! What takes too long is ended, and what there is too little of is not waited for for ever.

use std::time::Duration;

use redrive_store::StoreError;
use redrive_store_postgres::{Options, Patience};
use redrive_test_servers::proxy::Proxy;
use redrive_test_servers::{Postgres, Settings};
use tokio_postgres::{Client, NoTls};

use crate::world::{World, unique};

/// Somebody else's connection.
async fn stranger(server: &Postgres) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// More than go along with others.
const MANY: usize = 20;

const LOCK: &str = "BEGIN; LOCK TABLE redrive.message IN ACCESS EXCLUSIVE MODE";

/// With what it is refused: the code of the database, where it comes from there.
fn refusal<T: std::fmt::Debug>(outcome: Result<T, StoreError>) -> String {
    match outcome {
        Err(StoreError::Unavailable(cause)) => {
            let told = cause.to_string();
            let code = told.strip_suffix(')').and_then(|told| told.rsplit_once('('));
            code.map_or(told.clone(), |(_, code)| code.to_owned())
        }
        other => panic!("it was not refused: {other:?}"),
    }
}

async fn says(world: &World) -> String {
    refusal(world.put().await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_somebody_keeps_is_not_waited_for_for_ever() {
    let server = Postgres::start(Settings::default().fsync(false)).unwrap();
    let short = Duration::from_millis(300);
    let by_lock = Patience { lock: short, ..Patience::default() };
    let by_statement = Patience { statement: short, ..Patience::default() };
    let world = World::open(Options { patience: by_lock, ..Options::new(server.url()) }).await;
    let other = World::beside(Options { patience: by_statement, ..Options::new(server.url()) }).await;
    let pooled = Options { patience: by_lock, transaction_pooling: true, ..Options::new(server.url()) };
    let pooled = World::beside(pooled).await;
    let stranger = stranger(&server).await;
    stranger.batch_execute(LOCK).await.unwrap();
    assert_eq!(says(&world).await, "55P03");
    assert_eq!(says(&other).await, "57014");
    // What is a transaction has its limits there, too.
    let mut draft = World::draft();
    draft.spec.dedup = Some(unique("once"));
    let refused = pooled.send(vec![draft]).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    stranger.batch_execute("COMMIT").await.unwrap();
    for world in [world, other, pooled] {
        world.put().await.unwrap();
    }
    assert_eq!(server.sql("SELECT count(*) FROM redrive.message").unwrap(), "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_still_under_way_on_a_lost_connection_is_ended_before_it_is_sent_again() {
    let server = Postgres::start(Settings::default().fsync(false)).unwrap();
    let proxy = Proxy::before(&server.url()).unwrap();
    let world = World::open(Options { connections: 2, ..Options::new(proxy.url()) }).await;
    // The first one is a transaction, the second prepares the statement that is meant.
    world.put().await.unwrap();
    world.put().await.unwrap();
    let stranger = stranger(&server).await;
    stranger.batch_execute(LOCK).await.unwrap();
    let putting = {
        let world = world.clone();
        tokio::spawn(async move { world.put().await })
    };
    let blocked = || server.sql("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'").unwrap();
    let mut first = String::new();
    while first.is_empty() {
        first = blocked();
    }
    proxy.cut_all();
    // Whoever waits next is the second try, and the first is gone by then.
    let mut second = first.clone();
    while second == first || second.is_empty() {
        second = blocked();
    }
    assert!(!second.contains(&first), "{first} waits beside {second}");
    stranger.batch_execute("COMMIT").await.unwrap();
    putting.await.unwrap().unwrap();
    assert_eq!(world.messages().await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_finds_no_connection_says_so_and_the_next_one_does() {
    let server = Postgres::start(Settings::default().fsync(false)).unwrap();
    let patience = Patience { connection: Duration::from_millis(300), ..Patience::default() };
    let world = World::open(Options { connections: 1, patience, ..Options::new(server.url()) }).await;
    world.put().await.unwrap();
    let stranger = stranger(&server).await;
    stranger.batch_execute(LOCK).await.unwrap();
    let waiting = {
        let world = world.clone();
        tokio::spawn(async move { world.put().await })
    };
    // It has the only connection.
    let blocked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while server.sql(blocked).unwrap() != "1" {}
    // Small enqueues wait for each other and need no connection of their own.
    let many = (0..MANY).map(|_| World::draft()).collect();
    assert_eq!(refusal(world.send(many).await), "all connections to the database are in use");
    stranger.batch_execute("COMMIT").await.unwrap();
    waiting.await.unwrap().unwrap();
    world.put().await.unwrap();
    assert_eq!(world.messages().await, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_no_room_for_another_connection_is_asked_again() {
    let settings =
        Settings::default().fsync(false).max_connections(5).set("superuser_reserved_connections", "0");
    let server = Postgres::start(settings).unwrap();
    let world = World::open(Options { connections: 1, ..Options::new(server.url()) }).await;
    // Nobody else is let in, and our own connection is ended.
    let mut strangers = vec![stranger(&server).await];
    let end =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'redrive'";
    strangers[0].batch_execute(end).await.unwrap();
    while let Ok((client, connection)) = tokio_postgres::connect(&server.url(), NoTls).await {
        tokio::spawn(async move { drop(connection.await) });
        strangers.push(client);
    }
    assert_eq!(says(&world).await, "53300");
    strangers.truncate(1);
    while strangers[0]
        .query_one("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'", &[])
        .await
        .unwrap()
        .get::<_, i64>(0)
        > 1
    {}
    world.put().await.unwrap();
}
