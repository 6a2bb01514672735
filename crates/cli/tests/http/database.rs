//! PostgreSQL under the real binary: a schema of a test's own on the server that tests share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio_postgres::{Client, NoTls};

use crate::server::Server;

/// How long something may take that is sure to happen, on a machine that does a lot else.
const PATIENCE: Duration = Duration::from_mins(3);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(50);

/// A schema, and a connection to look into it.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) client: Client,
}

/// A sweeper's lock, as it stands in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) token: String,
    pub(crate) version: i64,
}

impl Database {
    pub(crate) async fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let url = redrive_test_servers::shared_postgres_url();
        let schema = format!("cli_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.unwrap();
        Self { url, schema, client }
    }

    /// Another instance. The shared server keeps nothing over a power cut, which a default instance would refuse.
    pub(crate) fn instance(&self, flags: &[&str]) -> Server {
        let own = ["--store", &self.url, "--store-schema", &self.schema, "--durability", "any"];
        Server::with(&[&own[..], &["--store-connections", "8"], flags].concat())
    }

    /// Who sweeps leases that ran out.
    pub(crate) async fn sweeper(&self) -> Option<Lock> {
        let sql = "SELECT version, value FROM SCHEMA.entry WHERE kind = 'lock' AND name = 'sweep.expire'";
        let row = self.client.query_opt(&sql.replace("SCHEMA", &self.schema), &[]).await.unwrap()?;
        let value: Value = serde_json::from_slice(row.get(1)).unwrap();
        Some(Lock { token: value["token"].as_str().unwrap().to_owned(), version: row.get(0) })
    }

    pub(crate) async fn execute(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }

    /// The first number that a statement answers.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.client.query_one(&sql.replace("SCHEMA", &self.schema), &[]).await.unwrap().get(0)
    }
}

/// Looks until there is what was looked for.
pub(crate) async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            looks.tick().await;
            if let Some(found) = look().await {
                return found;
            }
        }
    });
    found.await.unwrap_or_else(|_| panic!("this did not happen: {what}"))
}
