//! What the suite needs to know of a store under test: how to open it, and how to end it and open it again.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use redrive_core::limits::Limits;
use redrive_core::queue::QueueSettings;
use redrive_core::receipt::ReceiptKey;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::Store;
use redrive_store_memory::{MemoryStore, Options};

/// What a store under test is opened with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The settings of a queue that sets nothing.
    pub defaults: QueueSettings,
    /// What a queue may hold: little, so that the suite can reach every limit.
    pub limits: Limits,
    /// The first epoch of lease ids: so large that a lease id is neither exact as a double nor positive as a
    /// signed number, and a store that keeps it as one is found out.
    pub first_epoch: u16,
}

impl Default for Setup {
    fn default() -> Self {
        let limits = Limits { classes_per_queue: 20, dedup_keys_per_queue: 30, queues: 40 };
        Self { defaults: QueueSettings::default(), limits, first_epoch: 40_000 }
    }
}

/// A kind of store under test.
#[async_trait]
pub trait Subject: Send + Sync {
    /// Its name in reports.
    fn name(&self) -> &str;

    /// An empty store of its own: nothing that another test does can be seen in it.
    async fn open(&self, setup: &Setup) -> Box<dyn Instance>;

    /// Drives a test to its end. A store that needs a runtime brings it here.
    fn block_on(&self, test: BoxFuture<'_, ()>) {
        futures::executor::block_on(test);
    }
}

/// An open store.
#[async_trait]
pub trait Instance: Send + Sync {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// Another instance on the same data, as another process would open it; `None` where one process owns the data,
    /// and callers share the store itself.
    async fn another(&self) -> Option<Arc<dyn Store>> {
        None
    }

    /// Panics unless what the store shows to people beside the port, in its tables or keys, is what the port says.
    async fn audit(&self) {}

    /// Ends the process, as far as the store can tell, and opens what it left behind at `now`.
    async fn restart(self: Box<Self>, now: Timestamp) -> Box<dyn Instance>;
}

/// The reference, as a subject.
#[derive(Debug, Clone, Copy, Default)]
pub struct Memory;

#[async_trait]
impl Subject for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn open(&self, setup: &Setup) -> Box<dyn Instance> {
        Box::new(OpenMemory(Arc::new(reference(setup, Millis::from_secs(5)))))
    }
}

/// An empty reference store.
pub(crate) fn reference(setup: &Setup, restart_grace: Millis) -> MemoryStore {
    let options = Options::new(ReceiptKey::new([42; 32]));
    MemoryStore::new(Options {
        defaults: setup.defaults.clone(),
        limits: setup.limits,
        first_epoch: setup.first_epoch,
        restart_grace,
        shared: true,
        ..options
    })
}

struct OpenMemory(Arc<MemoryStore>);

#[async_trait]
impl Instance for OpenMemory {
    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }

    async fn another(&self) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.0.door()?))
    }

    async fn restart(self: Box<Self>, now: Timestamp) -> Box<dyn Instance> {
        Box::new(OpenMemory(Arc::new(self.0.reopen(now).expect("epochs are left"))))
    }
}
