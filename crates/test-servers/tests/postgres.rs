//! A server of one's own: it starts, it is killed, it comes back, it goes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use redrive_test_servers::{Failure, Postgres, Settings, shared_postgres_url};
use tokio_postgres::{Client, NoTls};

fn quick() -> Settings {
    Settings::default().fsync(false)
}

async fn connected(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    // It ends with an error when the server goes, which the client sees, too.
    tokio::spawn(async move { drop(connection.await) });
    client
}

async fn value(client: &Client, sql: &str) -> String {
    client.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_server_has_the_settings_it_was_given() {
    let settings = quick().max_connections(7).set("work_mem", "5MB").set("application_name", "it's");
    let server = Postgres::start(settings).unwrap();
    for url in [server.url(), server.socket_url()] {
        let client = connected(&url).await;
        assert_eq!(value(&client, "SELECT current_database()::text").await, "redrive");
        for (name, expected) in [
            ("fsync", "off"),
            ("max_connections", "7"),
            ("work_mem", "5MB"),
            ("application_name", "it's"),
            ("synchronous_commit", "on"),
        ] {
            assert_eq!(value(&client, &format!("SHOW {name}")).await, expected, "{name}");
        }
        // What sorts by bytes is wrong in most databases that people have.
        assert_eq!(value(&client, "SELECT ('a' < 'B')::text").await, "true");
    }
}

#[test]
fn a_wrong_setting_is_a_failure_that_tells_why() {
    let failure = Postgres::start(quick().set("no_such_setting", "1")).unwrap_err();
    assert!(failure.to_string().contains("no_such_setting"), "{failure}");
}

#[test]
fn a_setting_is_changed_under_way() {
    let server = Postgres::start(quick()).unwrap();
    server.set("work_mem", "6MB").unwrap();
    assert_eq!(server.sql("SHOW work_mem").unwrap(), "6MB");
    // The same once more is no change, and nothing to wait for.
    server.set("work_mem", "6MB").unwrap();
    assert!(matches!(server.set("no_such_setting", "1"), Err(Failure::Exited { .. })));
}

#[test]
fn a_stranger_gets_no_further_than_the_password() {
    let server = Postgres::start(quick()).unwrap();
    let url = server.url().replace("postgres:", "postgres:wrong");
    let url = url.replacen("postgres:wrong//", "postgres://", 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let Err(refused) = runtime.block_on(tokio_postgres::connect(&url, NoTls)) else {
        panic!("a wrong password was good enough")
    };
    assert_eq!(refused.as_db_error().unwrap().code().code(), "28P01");
}

#[tokio::test]
async fn what_was_committed_outlives_a_kill() {
    let mut server = Postgres::start(quick()).unwrap();
    let (url, port) = (server.url(), server.port());
    let client = connected(&url).await;
    client.batch_execute("CREATE TABLE kept (id int); INSERT INTO kept VALUES (1), (2)").await.unwrap();
    client.batch_execute("BEGIN; INSERT INTO kept VALUES (3)").await.unwrap();
    // One that is busy and would not notice for a while.
    let busy = connected(&url).await;
    let busy = tokio::spawn(async move {
        busy.query("SELECT count(*) FROM generate_series(1, 100000000) a WHERE a % 7 = 3", &[]).await
    });

    server.kill9().unwrap();
    assert!(client.batch_execute("COMMIT").await.is_err());
    assert!(busy.await.unwrap().is_err());
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
    assert!(matches!(server.kill9(), Err(Failure::Stopped)));

    server.restart().unwrap();
    assert_eq!((server.url(), server.port()), (url.clone(), port));
    assert!(server.log().contains("automatic recovery in progress"), "{}", server.log());
    assert_eq!(value(&connected(&url).await, "SELECT count(*)::text FROM kept").await, "2");
}

#[tokio::test]
async fn a_restart_is_clean_and_a_stop_can_be_repeated() {
    let mut server = Postgres::start(quick()).unwrap();
    server.sql("CREATE TABLE kept AS SELECT 1 AS id").unwrap();
    server.restart().unwrap();
    assert!(!server.log().contains("recovery"), "{}", server.log());
    assert_eq!(server.sql("SELECT id FROM kept").unwrap(), "1");
    server.stop().unwrap();
    server.stop().unwrap();
    assert!(server.sql("SELECT 1").is_err());
}

#[tokio::test]
async fn nothing_stays_behind() {
    let server = Postgres::start(quick()).unwrap();
    let (url, folder) = (server.url(), server.folder().to_owned());
    let client = connected(&url).await;
    assert!(folder.join("data").is_dir());
    drop(server);
    assert!(!folder.exists());
    assert!(client.batch_execute("SELECT 1").await.is_err());
    assert!(tokio_postgres::connect(&url, NoTls).await.is_err());
}

#[tokio::test]
async fn the_shared_server_is_there_for_everybody() {
    let url = shared_postgres_url();
    assert_eq!(url, shared_postgres_url());
    assert_eq!(value(&connected(&url).await, "SHOW synchronous_commit").await, "on");
}
