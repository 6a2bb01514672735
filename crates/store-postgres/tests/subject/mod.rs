//! PostgreSQL as a subject of the suite: a schema of its own for each store, on one server.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use redrive_core::time::Timestamp;
use redrive_store::Store;
use redrive_store_conformance::{Instance, Setup, Subject};
use redrive_store_postgres::{Durability, Options, PostgresStore};
use tokio::runtime::Runtime;

/// Tables that hold something; sequences go on, as they would.
const TABLES: &str =
    "shared queue key_setting class message content history failure hold tally entry log record";

/// PostgreSQL.
pub(crate) struct Postgres {
    runtime: Runtime,
    url: String,
    /// Schemas that a test is done with. Emptying one is much faster than making one.
    free: Arc<Mutex<Vec<String>>>,
    made: AtomicU32,
}

impl Postgres {
    pub(crate) fn new() -> Self {
        let url = redrive_test_servers::shared_postgres_url();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { runtime, url, free: Arc::default(), made: AtomicU32::new(0) }
    }

    async fn execute(&self, sql: &str) {
        let (client, connection) =
            tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await.expect("it runs");
        let running = tokio::spawn(connection);
        client.batch_execute(sql).await.expect("it is done");
        drop(client);
        running.await.expect("it ends").expect("it ends well");
    }

    /// A schema with nothing in it.
    async fn schema(&self) -> String {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(schema) = free {
            let tables: Vec<String> = TABLES.split(' ').map(|table| format!("{schema}.{table}")).collect();
            self.execute(&format!("TRUNCATE {}", tables.join(", "))).await;
            return schema;
        }
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{made}", std::process::id());
        self.execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await;
        schema
    }
}

struct Open {
    options: Options,
    store: Arc<PostgresStore>,
    free: Arc<Mutex<Vec<String>>>,
}

impl Open {
    async fn at(options: Options, free: Arc<Mutex<Vec<String>>>) -> Self {
        let store = Arc::new(opened(&options).await);
        Self { options, store, free }
    }
}

fn opened(options: &Options) -> impl Future<Output = PostgresStore> {
    let options = options.clone();
    async { PostgresStore::open(options, [42; 32]).await.expect("it opens") }
}

#[async_trait]
impl Subject for Postgres {
    fn name(&self) -> &'static str {
        "postgres"
    }

    async fn open(&self, setup: &Setup) -> Box<dyn Instance> {
        let options = Options {
            schema: self.schema().await,
            connections: 4,
            defaults: setup.defaults.clone(),
            limits: setup.limits,
            first_epoch: setup.first_epoch,
            // The server that tests share does without syncs.
            durability: Durability::Any,
            ..Options::new(&self.url)
        };
        Box::new(Open::at(options, Arc::clone(&self.free)).await)
    }

    fn block_on(&self, test: BoxFuture<'_, ()>) {
        self.runtime.block_on(test);
    }
}

#[async_trait]
impl Instance for Open {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn another(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(opened(&self.options).await))
    }

    async fn restart(mut self: Box<Self>, _: Timestamp) -> Box<dyn Instance> {
        self.store = Arc::new(opened(&self.options).await);
        self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.store.close();
        self.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.options.schema.clone());
    }
}
