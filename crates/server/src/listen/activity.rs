//! What a connection is doing. The stream and the front know, and those who end idle connections ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What happened on one connection. All are counts that wrap around, and are only compared with what they were.
#[derive(Debug, Default)]
pub(super) struct Activity {
    begun: AtomicU32,
    ended: AtomicU32,
    heard: AtomicU32,
    said: AtomicU32,
}

impl Activity {
    /// A request has come whole. It is under way until what is answered here is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.begun.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// Something came from the client.
    pub(super) fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// Something went out to the client.
    pub(super) fn say(&self) {
        self.said.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests have come.
    pub(super) fn begun(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    pub(super) fn heard(&self) -> u32 {
        self.heard.load(Ordering::Relaxed)
    }

    pub(super) fn said(&self) -> u32 {
        self.said.load(Ordering::Relaxed)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.begun() != self.ended.load(Ordering::Relaxed)
    }
}

/// A request that has come and is not answered to the end.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Activity>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}
