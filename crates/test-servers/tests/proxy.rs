//! Faults between a client and its server, each of them shown to have happened.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use futures::SinkExt;
use redrive_test_servers::proxy::{Fault, Proxy, Rule, Trigger};
use redrive_test_servers::{Postgres, Settings, shared_postgres_url};
use tokio_postgres::{Client, Error, NoTls};

const PATIENCE: Duration = Duration::from_mins(1);

async fn connect(url: &str) -> Result<Client, Error> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    // It ends with an error when it is cut, which the client sees, too.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// A table of the test's own, a proxy, and one client that goes through it and one that does not.
struct Scene {
    proxy: Proxy,
    through: Client,
    direct: Client,
    table: &'static str,
}

impl Scene {
    async fn new(table: &'static str) -> Self {
        let url = shared_postgres_url();
        let proxy = Proxy::before(&url).unwrap();
        let direct = connect(&url).await.unwrap();
        let make = format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id int PRIMARY KEY)");
        direct.batch_execute(&make).await.unwrap();
        let through = connect(proxy.url()).await.unwrap();
        Self { proxy, through, direct, table }
    }

    fn insert(&self, id: i32) -> String {
        format!("INSERT INTO {} VALUES ({id})", self.table)
    }

    async fn rows(&self) -> i64 {
        let sql = format!("SELECT count(*) FROM {}", self.table);
        self.direct.query_one(&sql, &[]).await.unwrap().get(0)
    }

    async fn reconnect(&mut self) {
        self.through = connect(self.proxy.url()).await.unwrap();
    }
}

#[tokio::test]
async fn without_a_rule_everything_passes() {
    let scene = Scene::new("proxy_passes").await;
    let insert = format!("INSERT INTO {} SELECT generate_series(1, $1)", scene.table);
    assert_eq!(scene.through.execute(&insert, &[&50_000]).await.unwrap(), 50_000);
    let rows = scene.through.query(&format!("SELECT id FROM {}", scene.table), &[]).await.unwrap();
    assert_eq!((rows.len(), scene.proxy.connections()), (50_000, 1));
    let refused = scene.through.batch_execute("SELECT nothing").await.unwrap_err();
    assert_eq!(refused.as_db_error().unwrap().code().code(), "42703");
    assert_eq!(scene.rows().await, 50_000);
}

#[tokio::test]
async fn a_commit_without_its_reply_is_committed() {
    let mut scene = Scene::new("proxy_cut_reply").await;
    let rule = scene.proxy.inject(Rule::new(Trigger::Commit, Fault::CutReply));
    let insert = scene.insert(1);
    let transaction = scene.through.transaction().await.unwrap();
    transaction.execute(&insert, &[]).await.unwrap();
    assert_eq!(rule.seen(), 0);
    let lost = transaction.commit().await.unwrap_err();
    assert!(lost.is_closed() || lost.as_db_error().is_none(), "{lost}");
    assert_eq!((rule.seen(), rule.fired()), (1, 1));
    assert_eq!(scene.rows().await, 1);

    // It was for once.
    scene.reconnect().await;
    let insert = scene.insert(2);
    let transaction = scene.through.transaction().await.unwrap();
    transaction.execute(&insert, &[]).await.unwrap();
    transaction.commit().await.unwrap();
    assert_eq!((rule.seen(), rule.fired(), scene.rows().await), (2, 1, 2));
}

#[tokio::test]
async fn a_commit_that_never_arrives_is_rolled_back() {
    let mut scene = Scene::new("proxy_cut_before").await;
    let rule = scene.proxy.inject(Rule::new(Trigger::Commit, Fault::CutBefore));
    let insert = scene.insert(1);
    let transaction = scene.through.transaction().await.unwrap();
    transaction.execute(&insert, &[]).await.unwrap();
    assert!(transaction.commit().await.is_err());
    assert_eq!(rule.fired(), 1);
    // The row is free as soon as the server has noticed, and this waits for that.
    scene.direct.batch_execute(&scene.insert(1)).await.unwrap();
    assert_eq!(scene.rows().await, 1);
}

#[tokio::test]
async fn a_prepared_statement_is_found_by_its_text_and_counted() {
    let scene = Scene::new("proxy_prepared").await;
    let rule = Rule::new(Trigger::Statement(format!("insert into {}", scene.table)), Fault::CutReply);
    let rule = scene.proxy.inject(rule.after(2));
    let insert = format!("INSERT INTO {} VALUES ($1)", scene.table);
    let statement = scene.through.prepare(&insert).await.unwrap();
    assert_eq!(rule.seen(), 0);
    scene.through.execute(&statement, &[&1]).await.unwrap();
    scene.through.query("SELECT 1", &[]).await.unwrap();
    scene.through.execute(&statement, &[&2]).await.unwrap();
    assert!(scene.through.execute(&statement, &[&3]).await.is_err());
    assert_eq!((rule.seen(), rule.fired(), scene.rows().await), (3, 1, 3));
}

#[tokio::test]
async fn what_was_pipelined_before_the_fault_is_answered() {
    let scene = Scene::new("proxy_pipeline").await;
    let rule = scene.proxy.inject(Rule::new(Trigger::Statement("VALUES (2)".to_owned()), Fault::CutReply));
    let sql = [1, 2, 3].map(|id| scene.insert(id));
    let (first, second, third) = tokio::join!(
        scene.through.batch_execute(&sql[0]),
        scene.through.batch_execute(&sql[1]),
        scene.through.batch_execute(&sql[2]),
    );
    assert!(first.is_ok() && second.is_err() && third.is_err());
    assert_eq!(rule.fired(), 1);
    assert!(scene.rows().await >= 2);
}

#[tokio::test]
async fn copied_rows_are_there_although_nobody_said_so() {
    let scene = Scene::new("proxy_copy").await;
    let rule = scene.proxy.inject(Rule::new(Trigger::Statement("COPY".to_owned()), Fault::CutReply));
    let copy = format!("COPY {} FROM STDIN", scene.table);
    let mut sink = Box::pin(scene.through.copy_in::<_, &[u8]>(&copy).await.unwrap());
    sink.send(b"1\n2\n").await.unwrap();
    assert_eq!((rule.seen(), rule.fired()), (1, 0));
    assert!(sink.as_mut().finish().await.is_err());
    assert_eq!((rule.fired(), scene.rows().await), (1, 2));
}

#[tokio::test]
async fn a_stalled_reply_comes_when_the_rule_is_lifted() {
    let scene = Scene::new("proxy_stall").await;
    let rule = scene.proxy.inject(Rule::new(Trigger::Statement("insert".to_owned()), Fault::StallReply));
    let sql = scene.insert(1);
    let insert = scene.through.batch_execute(&sql);
    tokio::pin!(insert);
    let waited = {
        let rule = rule.clone();
        tokio::task::spawn_blocking(move || rule.wait_fired(1, PATIENCE))
    };
    tokio::select! {
        biased;
        outcome = &mut insert => panic!("the reply was not stalled: {outcome:?}"),
        fired = waited => assert!(fired.unwrap()),
    }
    assert_eq!(scene.rows().await, 1);
    rule.lift();
    insert.await.unwrap();
}

#[tokio::test]
async fn new_connections_are_refused_until_the_rule_is_lifted() {
    let scene = Scene::new("proxy_refuse").await;
    let rule = scene.proxy.inject(Rule::new(Trigger::Connect, Fault::CutBefore).always());
    for _ in 0..3 {
        assert!(connect(scene.proxy.url()).await.is_err());
    }
    assert_eq!((rule.seen(), rule.fired()), (3, 3));
    scene.through.batch_execute("SELECT 1").await.unwrap();
    rule.lift();
    connect(scene.proxy.url()).await.unwrap().batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn any_request_is_a_reason_where_a_rule_says_so() {
    let scene = Scene::new("proxy_request").await;
    let rule = scene.proxy.inject(Rule::new(Trigger::Request, Fault::CutBefore).after(3));
    let passed = async {
        for id in 1.. {
            scene.through.batch_execute(&scene.insert(id)).await?;
        }
        Ok::<(), Error>(())
    };
    assert!(passed.await.is_err());
    assert_eq!((rule.seen(), rule.fired(), scene.rows().await), (4, 1, 3));
}

#[tokio::test]
async fn all_connections_are_cut_at_once() {
    let scene = Scene::new("proxy_cut_all").await;
    let second = connect(scene.proxy.url()).await.unwrap();
    assert_eq!(scene.proxy.cut_all(), 2);
    assert!(scene.through.batch_execute("SELECT 1").await.is_err());
    assert!(second.batch_execute("SELECT 1").await.is_err());
    assert_eq!(scene.proxy.connections(), 0);
    connect(scene.proxy.url()).await.unwrap().batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn new_connections_are_led_to_another_server() {
    let mut first = Postgres::start(Settings::default().fsync(false)).unwrap();
    let second = first.standby("second").unwrap();
    let proxy = Proxy::before(&first.url()).unwrap();
    let open = connect(proxy.url()).await.unwrap();
    proxy.lead_to(&second.url()).unwrap();
    let in_recovery = "SELECT pg_is_in_recovery()";
    assert!(!open.query_one(in_recovery, &[]).await.unwrap().get::<_, bool>(0));
    let led = connect(proxy.url()).await.unwrap();
    assert!(led.query_one(in_recovery, &[]).await.unwrap().get::<_, bool>(0));
    // Who was connected to a server that ends is told so.
    first.kill9().unwrap();
    assert!(open.batch_execute("SELECT 1").await.is_err());
    led.batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test]
async fn a_request_is_cancelled_through_the_proxy() {
    let scene = Scene::new("proxy_cancel").await;
    let rule =
        scene.proxy.inject(Rule::new(Trigger::Statement("pg_sleep".to_owned()), Fault::StallReply).times(0));
    let token = scene.through.cancel_token();
    let sleep = scene.through.batch_execute("SELECT pg_sleep(600)");
    let cancel = async {
        // A cancellation that comes before the statement runs is lost.
        let busy =
            "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)' AND state = 'active'";
        while scene.direct.query_one(busy, &[]).await.unwrap().get::<_, i64>(0) == 0 {}
        token.cancel_query(NoTls).await.unwrap();
    };
    let (cancelled, ()) = tokio::join!(sleep, cancel);
    assert_eq!(cancelled.unwrap_err().as_db_error().unwrap().code().code(), "57014");
    assert_eq!((rule.seen(), rule.fired()), (1, 0));
}
