//! What the doors of one store tell each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use redrive_store::{Heard, Listener, Signal};
use tokio::sync::broadcast;

/// How many signals wait for a door that does not listen; then it has lost some.
const KEPT_MAX: usize = 1_024;

/// What was told, as a database would carry it, and by which door.
#[derive(Debug, Clone)]
struct Told {
    door: u64,
    text: Arc<str>,
}

/// One door to what is told.
#[derive(Debug)]
pub(crate) struct Signals {
    door: u64,
    doors: Arc<AtomicU64>,
    told: broadcast::Sender<Told>,
}

impl Default for Signals {
    fn default() -> Self {
        Self { door: 0, doors: Arc::new(AtomicU64::new(1)), told: broadcast::Sender::new(KEPT_MAX) }
    }
}

impl Signals {
    pub(crate) fn door(&self) -> Self {
        let door = self.doors.fetch_add(1, Ordering::Relaxed);
        Self { door, doors: Arc::clone(&self.doors), told: self.told.clone() }
    }

    pub(crate) fn tell(&self, signals: &[Signal]) {
        for signal in signals {
            // Nobody may be listening.
            drop(self.told.send(Told { door: self.door, text: signal.encode().into() }));
        }
    }

    pub(crate) fn listen(&self) -> Ear {
        Ear { door: self.door, listens: false, told: self.told.subscribe() }
    }
}

/// A door that listens to the others.
#[derive(Debug)]
pub(crate) struct Ear {
    door: u64,
    listens: bool,
    told: broadcast::Receiver<Told>,
}

#[async_trait]
impl Listener for Ear {
    async fn hear(&mut self) -> Heard {
        if !std::mem::replace(&mut self.listens, true) {
            return Heard::Lost;
        }
        loop {
            match self.told.recv().await {
                Ok(Told { door, .. }) if door == self.door => {}
                Ok(Told { text, .. }) => {
                    if let Some(signal) = Signal::decode(&text) {
                        return Heard::Signal(signal);
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => return Heard::Lost,
                // Every door is closed: nobody is left to tell anything.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}
