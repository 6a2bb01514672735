//! PostgreSQL under the real binary: a schema of a test's own on the server that tests share.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tokio_postgres::{Client, NoTls};

use crate::shared::{Kept, Lock, SharedStore};

/// A schema, and a connection to look into it.
pub(crate) struct Database {
    pub(crate) url: String,
    pub(crate) schema: String,
    pub(crate) client: Client,
}

impl SharedStore for Database {
    async fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let url = redrive_test_servers::shared_postgres_url();
        let schema = format!("cli_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await.unwrap();
        Self { url, schema, client }
    }

    /// The shared server keeps nothing over a power cut, which a default instance would refuse.
    fn flags(&self) -> Vec<String> {
        let flags = ["--store", &self.url, "--store-schema", &self.schema, "--durability", "any"];
        flags.iter().chain(&["--store-connections", "8"]).map(|flag| (*flag).to_owned()).collect()
    }

    async fn sweeper(&self) -> Option<Lock> {
        let sql = "SELECT version, value FROM SCHEMA.entry WHERE kind = 'lock' AND name = 'sweep.expire'";
        let row = self.client.query_opt(&sql.replace("SCHEMA", &self.schema), &[]).await.unwrap()?;
        let value: Value = serde_json::from_slice(row.get(1)).unwrap();
        Some(Lock { token: value["token"].as_str().unwrap().to_owned(), version: row.get(0) })
    }

    async fn kept(&self) -> Kept {
        let number = async |what: &str| {
            let sql = format!("SELECT count(*) FROM {}.{what}", self.schema);
            self.client.query_one(&sql, &[]).await.unwrap().get(0)
        };
        Kept {
            messages: number("message").await,
            bodies: number("content").await,
            leases: number("message WHERE lease_id IS NOT NULL OR deadline IS NOT NULL").await,
        }
    }
}

impl Database {
    pub(crate) async fn execute(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap();
    }
}
