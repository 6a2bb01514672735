//! A lock over all instances: `SET NX PX` with a token, let go by its owner alone, and ended by itself.
//!
//! [`Lock`] is held for one call, which waits for it; the locks of the port are held for as long as their owner says so.
//!
//! It saves work and keeps people from stepping on each other's toes; whatever is done under it is right without it, because a lock
//! that ended while its owner was stopped is somebody else's.

use std::sync::Arc;
use std::time::Duration;

use redis::Value;
use redrive_core::time::Millis;
use redrive_store::LockClaim;
use redrive_store_shared::Pauses;

use crate::error::{Fault, unavailable};
use crate::link::{Args, Link};
use crate::reply;
use crate::store::Shared;

/// How long a lock is held, if nobody lets go of it.
const LIFETIME: Duration = Duration::from_secs(30);
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
        let lifetime = LIFETIME.as_millis().to_string();
        let mut command = redis::cmd("SET");
        command.arg(&self.key).arg(&self.token).arg("NX").arg("PX").arg(lifetime);
        Ok(self.link.send(&self.key, &command, true).await? != Value::Nil)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let (link, key, token) = (Arc::clone(&self.link), self.key.clone(), self.token.clone());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let mut args = Args::default();
            args.push(token);
            // One that is not let go ends by itself.
            drop(link.run(&link.scripts.lock_release, &[key], &args).await);
        });
    }
}

impl Shared {
    pub(crate) async fn hold_lock(&self, claim: &LockClaim, lifetime: Millis) -> Result<bool, Fault> {
        let mut args = Args::default();
        args.push(claim.token.to_string()).number(lifetime.get());
        let key = self.link.keys.lock(claim.name.as_str());
        Ok(reply::number(self.link.run(&self.link.scripts.lock_hold, &[key], &args).await?)? > 0)
    }

    pub(crate) async fn release_lock(&self, claim: &LockClaim) -> Result<bool, Fault> {
        let mut args = Args::default();
        args.push(claim.token.to_string());
        let key = self.link.keys.lock(claim.name.as_str());
        Ok(reply::number(self.link.run(&self.link.scripts.lock_release, &[key], &args).await?)? > 0)
    }
}
