//! Holding the sweepers, so that a test can look at what is overdue and not moved yet.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

use super::Sweeper;
use crate::broker::Broker;
use crate::error::BrokerError;

/// What a test holds the sweepers by. Each of them reads while it sweeps; who holds them writes.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    sweeping: Arc<RwLock<()>>,
    held: Mutex<Option<OwnedRwLockWriteGuard<()>>>,
}

impl Hold {
    /// Waits until nobody holds the sweepers, and keeps who wants to waiting until the answer is dropped.
    pub(crate) async fn let_go(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.sweeping).read_owned().await
    }

    fn is_held(&self) -> bool {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn keep(&self, guard: Option<OwnedRwLockWriteGuard<()>>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = guard;
    }
}

impl Broker {
    /// Holds the sweepers: when this returns, none is at work and none begins.
    pub async fn hold_sweepers(&self) {
        if !self.sweeps.is_held() {
            let guard = Arc::clone(&self.sweeps.sweeping).write_owned().await;
            self.sweeps.keep(Some(guard));
        }
    }

    /// Lets them go, and does at once what they would have done meanwhile.
    pub async fn let_sweepers_go(&self) -> Result<(), BrokerError> {
        self.sweeps.keep(None);
        for sweeper in Sweeper::of(self) {
            self.sweep_all(sweeper).await?;
        }
        Ok(())
    }
}
