//! The row that the breakers of a queue share: one probe means one over all instances.
//!
//! An act that changes the row counts once it was swapped in for what was read. Until then the breaker stands where it stood,
//! so nobody here acts on what the others may refuse. Where another instance was faster, its row is adopted, and the act is
//! done again on that.

use std::sync::Arc;

use bytes::Bytes;
use redrive_core::policy::{Breaker, BreakerRow, Change};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{EntryKey, EntryKind, EntryName, Expect, RetryAdvice, StoreError};

use crate::broker::Broker;
use crate::clock::pause;
use crate::error::BrokerError;
use crate::queues::Live;

/// How often an act is done again because another instance was faster.
const SWAPS_MAX: usize = 16;
/// How often an outcome is told to a store that cannot be reached. Then the probe's time runs out instead.
const TRIES_MAX: usize = 5;
/// How long to wait between two of these.
const TRY_AGAIN: Millis = Millis::from_secs(1);

impl Broker {
    /// Takes over what the row of a breaker says, where there are other instances.
    pub(crate) async fn refresh_breaker(&self, live: &Arc<Live>) -> Result<(), BrokerError> {
        if self.peers.is_none() || live.rules().breaker.is_none() {
            return Ok(());
        }
        let _swapping = live.swapping.lock().await;
        self.adopt_row(live).await.map(drop)
    }

    /// Reads the row and takes it over; answers what must be there for another to take its place.
    async fn adopt_row(&self, live: &Live) -> Result<Expect, BrokerError> {
        let entry = self.store.registry_get(&key(live)?).await?;
        let expect = entry.as_ref().map_or(Expect::Absent, |entry| Expect::Version(entry.version));
        // What cannot be read is written anew by who changes it next.
        let row = entry.and_then(|entry| BreakerRow::from_bytes(&entry.value).ok()).unwrap_or_default();
        let now = self.now();
        let (changes, news) = {
            let mut rules = live.rules();
            let Some(breaker) = rules.breaker.as_mut() else { return Ok(expect) };
            let before = breaker.row();
            ([breaker.adopt(row, now), breaker.poll(now)], breaker.row() != before)
        };
        for change in changes {
            self.tell_breaker(live, change);
        }
        // A slot that was freed is no change of its state.
        if news {
            live.wake();
        }
        Ok(expect)
    }

    /// Does something to a breaker; answers nothing where the queue has none. Where there are other instances, it counts
    /// once they must know it.
    pub(crate) async fn act_on_breaker<T>(
        &self,
        live: &Arc<Live>,
        act: impl Fn(&mut Breaker, Timestamp) -> (T, Option<Change>),
    ) -> Result<Option<T>, BrokerError> {
        if self.peers.is_none() {
            let done = live.rules().breaker.as_mut().map(|breaker| act(breaker, self.now()));
            return Ok(done.map(|(answer, change)| {
                self.tell_breaker(live, change);
                answer
            }));
        }
        let _swapping = live.swapping.lock().await;
        for _ in 0..SWAPS_MAX {
            let expect = self.adopt_row(live).await?;
            let (answer, change, after) = {
                let mut rules = live.rules();
                let Some(breaker) = rules.breaker.as_mut() else { return Ok(None) };
                let before = breaker.footing();
                let (answer, change) = act(breaker, self.now());
                let after = breaker.footing();
                let same = after.row() == before.row();
                if !same {
                    breaker.stand_on(before);
                }
                (answer, change, (!same).then_some(after))
            };
            if let Some(after) = after {
                let value = Bytes::copy_from_slice(&after.row().to_bytes());
                if self.swap_entry(key(live)?, expect, Some(value)).await?.is_none() {
                    continue;
                }
                if let Some(breaker) = live.rules().breaker.as_mut() {
                    breaker.stand_on(after);
                }
                self.tell_entry(EntryKind::Breaker, live.name.as_str());
            }
            self.tell_breaker(live, change);
            return Ok(Some(answer));
        }
        Err(StoreError::Unavailable("others change the same breaker all the time".into()).into())
    }

    /// The same for somebody who does not wait for it.
    pub(crate) fn swap_row_later(
        &self,
        live: &Arc<Live>,
        act: impl Fn(&mut Breaker) -> Option<Change> + Send + Sync + 'static,
    ) {
        // Where everything ends, the probe's time runs out by itself.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (broker, live) = (self.clone(), Arc::clone(live));
        runtime.spawn(async move {
            for _ in 0..TRIES_MAX {
                match broker.act_on_breaker(&live, |breaker, _| ((), act(breaker))).await {
                    Err(error) if error.advice() != RetryAdvice::GiveUp => pause(TRY_AGAIN).await,
                    Err(error) => {
                        return tracing::error!(queue = %live.name, %error, "a breaker was not told");
                    }
                    Ok(_) => return,
                }
            }
            tracing::warn!(queue = %live.name, "a breaker was not told of an outcome");
        });
    }

    /// Forgets the row: the queue is gone, or its breaker has other rules.
    pub(crate) async fn forget_row(&self, live: &Live) {
        if self.peers.is_none() {
            return;
        }
        let _swapping = live.swapping.lock().await;
        let forgotten = async { self.swap_entry(key(live)?, Expect::Anything, None).await };
        match forgotten.await {
            Ok(_) => self.tell_entry(EntryKind::Breaker, live.name.as_str()),
            // An open breaker lets probes through when its time is over, whoever it belongs to by then.
            Err(error) => tracing::warn!(queue = %live.name, %error, "the row of a breaker was left behind"),
        }
    }
}

fn key(live: &Live) -> Result<EntryKey, BrokerError> {
    Ok(EntryKey { kind: EntryKind::Breaker, name: EntryName::new(live.name.as_str())? })
}
