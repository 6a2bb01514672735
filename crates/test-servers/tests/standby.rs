//! A streaming replica becomes the primary, and has what the old one had acknowledged.

use redrive_test_servers::{Failure, Postgres, Settings};
use tokio_postgres::NoTls;

#[tokio::test]
async fn a_synchronous_standby_has_every_commit_when_it_is_promoted() {
    let mut primary = Postgres::start(Settings::default().fsync(false)).unwrap();
    primary.sql("CREATE TABLE kept (id int)").unwrap();
    let standby = primary.standby("second").unwrap();
    primary.wait_for_commits_on(&standby).unwrap();
    let state = "SELECT application_name, sync_state FROM pg_stat_replication";
    assert_eq!(primary.sql(state).unwrap(), "second|sync");
    primary.sql("INSERT INTO kept SELECT generate_series(1, 1000)").unwrap();
    let Err(Failure::Exited { said, .. }) = standby.sql("INSERT INTO kept VALUES (0)") else {
        panic!("a standby was written")
    };
    assert!(said.contains("read-only transaction"), "{said}");

    primary.kill9().unwrap();
    standby.promote().unwrap();
    let (client, connection) = tokio_postgres::connect(&primary.url_with(&standby), NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    // It waits for no standby of its own.
    client.batch_execute("INSERT INTO kept VALUES (0)").await.unwrap();
    let count: i64 = client.query_one("SELECT count(*) FROM kept", &[]).await.unwrap().get(0);
    assert_eq!(count, 1_001);
}

#[test]
fn a_standby_finds_its_primary_again() {
    let mut primary = Postgres::start(Settings::default().fsync(false)).unwrap();
    let standby = primary.standby("second").unwrap();
    primary.kill9().unwrap();
    primary.restart().unwrap();
    // It comes back by itself, and only then a commit can wait for it.
    primary.wait_for_commits_on(&standby).unwrap();
    primary.sql("CREATE TABLE kept AS SELECT 1 AS id").unwrap();
    standby.promote().unwrap();
    assert_eq!(standby.sql("SELECT id FROM kept").unwrap(), "1");
}
