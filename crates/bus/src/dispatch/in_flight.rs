//! How many deliveries of each subscription are under way: never more than it allows, whichever way they come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use redrive_core::subscription::SubscriptionId;
use tokio::sync::Notify;

use crate::subscription::Subscription;

#[derive(Debug, Default)]
struct Place {
    count: Mutex<u32>,
    freed: Notify,
}

impl Place {
    fn count(&self) -> MutexGuard<'_, u32> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is under way.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashMap<SubscriptionId, Arc<Place>>>);

/// One delivery that is under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered(Arc<Place>);

impl Entered {
    /// How many others of the same subscription are under way.
    pub(crate) fn others(&self) -> u32 {
        self.0.count().saturating_sub(1)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.freed.notify_one();
    }
}

impl InFlight {
    fn place(&self, id: &SubscriptionId) -> Arc<Place> {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry_ref(id).or_default())
    }

    /// Waits until one more may be under way.
    pub(crate) async fn enter(&self, subscription: &Subscription) -> Entered {
        let place = self.place(&subscription.id);
        loop {
            {
                let mut count = place.count();
                if *count < subscription.max_in_flight() {
                    *count += 1;
                    if *count < subscription.max_in_flight() {
                        // Two may have been freed for one who heard of it.
                        place.freed.notify_one();
                    }
                    drop(count);
                    break;
                }
            }
            // One that was freed since then left its word.
            place.freed.notified().await;
        }
        Entered(place)
    }

    pub(crate) fn forget(&self, id: &SubscriptionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}
