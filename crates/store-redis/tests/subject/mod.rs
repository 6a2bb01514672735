//! Redis as a subject of the suite: keys of its own for each store, on one server or one cluster.

mod audit;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use redrive_core::time::Timestamp;
use redrive_store::Store;
use redrive_store_conformance::{Instance, Setup, Subject};
use redrive_store_redis::{Durability, Options, RedisStore};
use tokio::runtime::Runtime;

use audit::Eye;

/// Redis, alone or as a cluster.
pub(crate) struct Redis {
    name: &'static str,
    runtime: Runtime,
    url: String,
    made: AtomicU32,
}

impl Redis {
    pub(crate) fn at(name: &'static str, url: String) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { name, runtime, url, made: AtomicU32::new(0) }
    }
}

struct Open {
    options: Options,
    store: Arc<RedisStore>,
    eye: Mutex<Eye>,
}

async fn opened(options: &Options) -> Arc<RedisStore> {
    Arc::new(RedisStore::open(options.clone(), [42; 32]).await.expect("it opens"))
}

#[async_trait]
impl Subject for Redis {
    fn name(&self) -> &str {
        self.name
    }

    async fn open(&self, setup: &Setup) -> Box<dyn Instance> {
        let made = self.made.fetch_add(1, Ordering::Relaxed);
        let options = Options {
            prefix: format!("test-{}-{made}", std::process::id()),
            defaults: setup.defaults.clone(),
            limits: setup.limits,
            first_epoch: setup.first_epoch,
            // The server that tests share keeps nothing.
            durability: Durability::Any,
            ..Options::new(&self.url)
        };
        let store = opened(&options).await;
        let eye = Mutex::new(Eye::at(&self.url));
        Box::new(Open { options, store, eye })
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
        Some(opened(&self.options).await)
    }

    async fn audit(&self) {
        self.eye.lock().unwrap_or_else(PoisonError::into_inner).audit(&self.options.prefix);
    }

    async fn restart(mut self: Box<Self>, _: Timestamp) -> Box<dyn Instance> {
        self.store = opened(&self.options).await;
        self
    }
}
