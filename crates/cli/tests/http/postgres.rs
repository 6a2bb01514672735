//! The server on PostgreSQL, as one of several.

use std::process::Command;

use redrive_test_servers::{Postgres, Settings};
use serde_json::{Value, json};

use crate::database::{Database, eventually};
use crate::leases::next_event;
use crate::server::Server;

#[tokio::test]
async fn a_message_lives_and_dies_on_postgres() {
    let database = Database::new().await;
    let server = database.instance(&[]);
    let slow = json!({"retry": {"max_attempts": 2, "base_delay_ms": 60_000, "max_delay_ms": null, "jitter": "none"}});
    server.create("orders", slow).await;
    for n in 0..3 {
        server.enqueue("orders", json!({"body": n.to_string()})).await;
    }
    let leased = server.lease("orders", json!({"limit": 3, "lease_ms": 600_000})).await;
    let receipts: Vec<&Value> = leased.iter().map(|message| &message["receipt"]).collect();
    assert_eq!(server.post("/v1/leases/ack", json!({"receipt": receipts[0]})).await.status, 204);
    server.post("/v1/leases/ack", json!({"receipt": receipts[0]})).await.refused(404, "NOT_FOUND");
    let nacked = server.post("/v1/leases/nack", json!({"receipt": receipts[1], "error": "503"})).await;
    assert_eq!((&nacked.body["state"], &nacked.body["delay_ms"]), (&json!("delayed"), &json!(60_000)));
    let states = json!({"ready": 0, "delayed": 1, "leased": 1, "dead": 0, "done": 0});
    assert_eq!(server.stats("orders").await["states"], states);

    // Another process finds all of it, receipts included.
    drop(server);
    let server = database.instance(&[]);
    assert_eq!(server.stats("orders").await["states"], states);
    assert_eq!(server.post("/v1/leases/bury", json!({"receipt": receipts[2]})).await.status, 200);
    let redriven = server.post("/v1/queues/orders/dead/redrive", json!({"reason": "mended"})).await;
    assert!(redriven.status < 300, "{redriven:?}");
    let again = server.lease("orders", json!({"wait_ms": 30_000})).await.remove(0);
    assert_eq!((&again["id"], &again["redrives"]), (&leased[2]["id"], &json!(1)));
}

#[tokio::test]
async fn a_poll_at_one_instance_wakes_for_an_enqueue_at_another() {
    let database = Database::new().await;
    // Where nothing is told, nobody looks before the test is over.
    let quiet = ["--config", "quiet.toml"];
    let start = || {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(quiet[1]);
        std::fs::write(&path, "overdue_check_interval_ms = 600000\n").unwrap();
        let server = database.instance(&["--config", path.to_str().unwrap()]);
        (server, dir)
    };
    let ((one, _keep), (other, _keep_too)) = (start(), start());
    one.create("orders", json!({})).await;
    let request = one.client.post(one.url("/v1/queues/orders/lease")).json(&json!({"wait_ms": 50_000}));
    let poll = tokio::spawn(async move { request.send().await.unwrap().json::<Value>().await.unwrap() });
    eventually("the poll waits", async || {
        one.get("/metrics").await.text.contains("redrive_waiting_polls 1\n").then_some(())
    })
    .await;
    let id = other.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(poll.await.unwrap()["messages"][0]["id"], json!(id));
}

#[tokio::test]
async fn events_of_one_instance_reach_the_watchers_of_another() {
    let database = Database::new().await;
    let (one, other) = (database.instance(&[]), database.instance(&[]));
    let mut events = one.client.get(one.url("/v1/events")).send().await.unwrap();
    // Until it listens, an instance hears nothing of the others. The first event that arrives says that it does.
    let mut made = 0;
    eventually("an event of the other instance", async || {
        other.create(&format!("probe-{made}"), json!({})).await;
        made += 1;
        let heard = tokio::time::timeout(std::time::Duration::from_secs(1), next_event(&mut events, "queue"));
        heard.await.ok()
    })
    .await;
    other.enqueue("orders", json!({"body": "x"})).await;
    let enqueued = next_event(&mut events, "enqueue").await;
    assert_eq!((&enqueued["payload"]["queue"], &enqueued["payload"]["count"]), (&json!("orders"), &json!(1)));
}

#[tokio::test]
async fn an_instance_that_ends_leaves_its_lock_to_another() {
    let database = Database::new().await;
    let mut one = database.instance(&[]);
    let held = eventually("one sweeps", async || database.sweeper().await).await;
    let _other = database.instance(&[]);
    assert!(tokio::task::spawn_blocking(move || one.terminate()).await.unwrap().success());
    eventually("the other one sweeps", async || {
        database.sweeper().await.filter(|lock| lock.token != held.token)
    })
    .await;
}

fn fails(flags: &[&str], variables: &[(&str, &str)]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_redrive"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).args(flags).envs(variables.iter().copied());
    let output = command.current_dir(dir.path()).output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty(), "it never was ready");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_database_that_is_not_there_stops_the_start_and_no_password_is_shown() {
    let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let url = format!("postgres://somebody:hunter2@{unused}/db");
    for said in [fails(&["--store", &url], &[]), fails(&["--log-level", "trace"], &[("REDRIVE_STORE", &url)])]
    {
        assert!(said.contains(&format!("opening PostgreSQL at {unused}/db")), "{said}");
        assert!(said.contains("not available") && said.contains("refused"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_wrong_address_is_named_and_not_shown() {
    for url in ["postgres://somebody:hunter2@here:port/db", "postgrs://somebody:hunter2@here/db"] {
        for said in [fails(&["--store", url], &[]), fails(&[], &[("REDRIVE_STORE", url)])] {
            assert!(said.contains("store: ") && !said.contains("hunter2"), "{said}");
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wrong.toml");
    std::fs::write(&path, "store = \"postgres://somebody:hunter2@here/db\nworkers = 1\n").unwrap();
    let said = fails(&["--config", path.to_str().unwrap()], &[]);
    assert!(said.contains("wrong.toml:1:") && !said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn a_password_that_is_wrong_is_not_shown() {
    let address = redrive_test_servers::shared_postgres_url();
    let address = address.rsplit('@').next().unwrap();
    let said = fails(&["--store", &format!("postgres://nobody_of_that_name:hunter2@{address}")], &[]);
    assert!(said.contains("nobody_of_that_name") && !said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn an_administrator_can_make_the_schema_instead() {
    let database = Database::new().await;
    let printed = Command::new(env!("CARGO_BIN_EXE_redrive"))
        .args(["schema", "--store-schema", &database.schema])
        .output()
        .unwrap();
    assert!(printed.status.success() && printed.stderr.is_empty());
    let role = format!("{}_app", database.schema);
    let schema = &database.schema;
    let grants = format!(
        "DO $$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = '{role}') THEN DROP OWNED BY {role}; DROP ROLE {role};
         END IF; END $$;
         CREATE ROLE {role} LOGIN PASSWORD 'hunter2';
         GRANT USAGE ON SCHEMA {schema} TO {role};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
         GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
    );
    database.execute(&String::from_utf8(printed.stdout).unwrap()).await;
    database.execute(&grants).await;
    let place = database.url.rsplit('@').next().unwrap();
    let limited = Database { url: format!("postgres://{role}:hunter2@{place}"), ..database };
    let server = limited.instance(&[]);
    server.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(server.lease("orders", json!({})).await.len(), 1);
    assert!(!server.log().contains("hunter2"));
    drop(server);
    limited.execute(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn a_database_that_promises_too_little_is_refused_and_says_which_setting() {
    let url = redrive_test_servers::shared_postgres_url();
    let said = fails(&["--store", &url], &[]);
    assert!(said.contains("durability: `local`") && said.contains("fsync is off"), "{said}");

    let primary = Postgres::start(Settings::default().set("synchronous_commit", "off")).unwrap();
    let (url, password) = (primary.url(), primary.url());
    let password = password.split([':', '@']).nth(2).unwrap();
    let said = fails(&["--store", &url], &[]);
    assert!(said.contains("synchronous_commit is off") && !said.contains(password), "{said}");
    let any = Server::with(&["--store", &url, "--durability", "any"]);
    assert_eq!(any.get("/readyz").await.text, "ok\nstore postgres\nsurvives nothing\n");
    drop(any);

    primary.set("synchronous_commit", "on").unwrap();
    let local = Server::with(&["--store", &url]);
    assert_eq!(local.get("/readyz").await.text, "ok\nstore postgres\nsurvives power_loss\n");
    drop(local);
    let replicated = ["--store", &url, "--durability", "replicated"];
    assert!(fails(&replicated, &[]).contains("synchronous_standby_names is empty"));

    let standby = primary.standby("second").unwrap();
    primary.wait_for_commits_on(&standby).unwrap();
    let server = Server::with(&replicated);
    server.enqueue("orders", json!({"body": "x"})).await;
    assert_eq!(server.get("/readyz").await.text, "ok\nstore postgres\nsurvives disk_loss\n");
    let info = "redrive_store_info{store=\"postgres\",survives=\"disk_loss\"} 1\n";
    assert!(server.get("/metrics").await.text.contains(info));
}

#[tokio::test]
async fn a_promise_that_is_broken_while_the_server_runs_is_shown() {
    let mut postgres = Postgres::start(Settings::default()).unwrap();
    let server = Server::with(&["--store", &postgres.url()]);
    server.create("orders", json!({})).await;
    assert!(server.get("/readyz").await.text.ends_with("survives power_loss\n"));
    postgres.set("synchronous_commit", "off").unwrap();
    // Connections that are made from now on see it, and all of them are.
    postgres.restart().unwrap();
    eventually("it is shown", async || {
        server.get("/readyz").await.text.ends_with("survives nothing\n").then_some(())
    })
    .await;
    assert!(server.log().contains("synchronous_commit is off"), "{}", server.log());
    server.enqueue("orders", json!({"body": "x"})).await;
}
