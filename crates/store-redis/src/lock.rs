//! A lock over all instances: `SET NX PX` with a token, let go by its owner alone, and ended by itself.
//!
//! [`Lock`] is held for one call, which waits for it; the locks of the port are held for as long as their owner says so.
//!
//! It saves work and keeps people from stepping on each other's toes; whatever is done under it is right without it, because a lock
//! that ended while its owner was stopped is somebody else's.

use std::sync::Arc;
use std::time::Duration;

use redrive_core::time::Millis;
use redrive_store::LockClaim;
use redrive_store_shared::Pauses;

use crate::error::{Fault, unavailable};
use crate::link::{Args, Link};
use crate::reply;
use crate::store::Shared;

/// How long a lock is held, if nobody lets go of it.
const LIFETIME: Millis = Millis::from_secs(30);
/// The first and the longest pause before a lock is tried again that somebody else holds, and how often it is.
const PAUSES: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
const TRIES: usize = 500;

/// A lock that is held. It is let go when it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    link: Arc<Link>,
    key: String,
    token: String,
}

impl Lock {
    /// Waits until nobody else holds it.
    pub(crate) async fn take(link: &Arc<Link>, token: String, name: &str) -> Result<Self, Fault> {
        // Let go of even where the answer is lost, or where it was never held: nobody else has the token.
        let lock = Self { link: Arc::clone(link), key: link.keys.lock(name), token };
        let mut pauses = Pauses::new(PAUSES.0, PAUSES.1);
        for _ in 0..TRIES {
            if lock.hold().await? {
                return Ok(lock);
            }
            pauses.wait().await;
        }
        Err(Fault::Undone(unavailable("another instance changes queues all the time")))
    }

    /// The same where nobody else holds it now.
    pub(crate) async fn take_free(
        link: &Arc<Link>,
        token: String,
        name: &str,
    ) -> Result<Option<Self>, Fault> {
        let lock = Self { link: Arc::clone(link), key: link.keys.lock(name), token };
        Ok(lock.hold().await?.then_some(lock))
    }

    async fn hold(&self) -> Result<bool, Fault> {
        hold(&self.link, &self.key, self.token.as_str(), LIFETIME).await
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let (link, key, token) = (Arc::clone(&self.link), self.key.clone(), self.token.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            // One that is not let go ends by itself.
            drop(release(&link, &key, &token).await);
        });
    }
}

/// Whether the lock is the token's, from now on for so long.
async fn hold(link: &Link, key: &str, token: &str, lifetime: Millis) -> Result<bool, Fault> {
    let mut args = Args::default();
    args.push(token).number(lifetime.get());
    Ok(reply::number(link.run(&link.scripts.lock_hold, &[key.to_owned()], &args).await?)? > 0)
}

/// Whether the lock was the token's until now.
async fn release(link: &Link, key: &str, token: &str) -> Result<bool, Fault> {
    let mut args = Args::default();
    args.push(token);
    Ok(reply::number(link.run(&link.scripts.lock_release, &[key.to_owned()], &args).await?)? > 0)
}

impl Shared {
    pub(crate) async fn hold_lock(&self, claim: &LockClaim, lifetime: Millis) -> Result<bool, Fault> {
        let key = self.link.keys.lock(claim.name.as_str());
        hold(&self.link, &key, &claim.token.to_string(), lifetime).await
    }

    pub(crate) async fn release_lock(&self, claim: &LockClaim) -> Result<bool, Fault> {
        let key = self.link.keys.lock(claim.name.as_str());
        release(&self.link, &key, &claim.token.to_string()).await
    }
}
