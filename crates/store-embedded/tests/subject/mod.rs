//! The embedded store as a subject of the suite: on a simulated disk, with segments so small that it cleans all the time.

use std::sync::Arc;

use async_trait::async_trait;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::Store;
use redrive_store_conformance::{Instance, Setup, Subject};
use redrive_store_embedded::disk::SimulatedDisk;
use redrive_store_embedded::{Clock, EmbeddedStore, Options};

/// A clock that stands still.
#[derive(Debug)]
struct Still(Timestamp);

impl Clock for Still {
    fn wall(&self) -> Timestamp {
        self.0
    }

    fn uptime(&self) -> Millis {
        Millis::ZERO
    }
}

/// The embedded store.
pub(crate) struct Embedded;

struct Open {
    disk: SimulatedDisk,
    options: Options,
    store: Arc<EmbeddedStore>,
}

impl Open {
    fn at(disk: SimulatedDisk, options: Options, now: Timestamp) -> Box<dyn Instance> {
        let opened = EmbeddedStore::stepped(Arc::new(disk.clone()), Arc::new(Still(now)), options.clone());
        let store = Arc::new(opened.expect("what was written can be read").0);
        Box::new(Self { disk, options, store })
    }
}

#[async_trait]
impl Subject for Embedded {
    fn name(&self) -> &'static str {
        "embedded"
    }

    async fn open(&self, setup: &Setup) -> Box<dyn Instance> {
        let options = Options {
            defaults: setup.defaults.clone(),
            limits: setup.limits,
            first_epoch: setup.first_epoch,
            segment_bytes: 32 * 1024,
            ..Options::default()
        };
        Open::at(SimulatedDisk::new(1), options, Timestamp::EPOCH)
    }
}

#[async_trait]
impl Instance for Open {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn restart(self: Box<Self>, now: Timestamp) -> Box<dyn Instance> {
        let Self { disk, options, store } = *self;
        drop(store);
        Open::at(disk.crash(), options, now)
    }
}
