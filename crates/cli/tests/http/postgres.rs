//! The server on PostgreSQL: its address, its schema and what it promises.

use std::process::Command;

use redrive_test_servers::{Postgres, Settings};
use serde_json::json;

use crate::database::Database;
use crate::server::Server;
use crate::shared::{SharedStore, eventually, fails};

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
