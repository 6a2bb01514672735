//! Sweepers: what time does to messages, done when its time comes.
//!
//! All have one shape: a step over at most so many messages, repeated until nothing is left, and then a wait for the next
//! time at which there will be something. Two may run at once, here or on other instances: every step is guarded. Where
//! there are other instances, one of them sweeps at a time, so that they don't all do the same.

#[cfg(feature = "test-clock")]
pub(crate) mod hold;

use redrive_core::time::Timestamp;
use redrive_store::{ExpireRequest, Judged, Limit, SweepRequest};

use crate::broker::Broker;
use crate::clock::pause;
use crate::error::BrokerError;
use crate::events::{Happening, Trigger};

/// What a sweeper does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sweeper {
    /// Leases that ran out end.
    Expire,
    /// Waiting messages that are too old, or over a cap that was lowered, die.
    Lapse,
    /// Dead and done messages beyond the retention of their queue go.
    Retain,
    /// Operations whose instance is gone are gone on with.
    Adopt,
}

impl Sweeper {
    /// Those that a broker runs. Nobody but itself could end before its operations do where a store has one owner.
    pub(crate) fn of(broker: &Broker) -> impl Iterator<Item = Self> + use<> {
        let alone = broker.peers.is_none();
        let all = [Self::Expire, Self::Lapse, Self::Retain, Self::Adopt];
        all.into_iter().filter(move |sweeper| !(alone && *sweeper == Self::Adopt))
    }

    /// The name of its lock.
    const fn lock(self) -> &'static str {
        match self {
            Self::Expire => "sweep.expire",
            Self::Lapse => "sweep.lapse",
            Self::Retain => "sweep.retain",
            Self::Adopt => "sweep.adopt",
        }
    }
}

/// How a sweep came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sweep {
    /// Nothing is left.
    Done,
    /// Another instance sweeps.
    Elsewhere,
}

impl Broker {
    /// Sweeps whenever something is due, for as long as the broker runs.
    pub(crate) async fn keep_sweeping(&self, sweeper: Sweeper) {
        loop {
            let sooner = self.sweep_sooner.notified();
            #[cfg(feature = "test-clock")]
            let let_go = self.sweeps.let_go().await;
            let swept = self.sweep_all(sweeper).await;
            #[cfg(feature = "test-clock")]
            drop(let_go);
            let next = match swept {
                Ok(Sweep::Done) => self.next_sweep(sweeper).await,
                Ok(Sweep::Elsewhere) => {
                    self.wait_for_lock().await;
                    continue;
                }
                // What is overdue stays overdue: waiting for it would be no wait at all.
                Err(error) => {
                    tracing::error!(?sweeper, %error, "a sweep failed");
                    pause(self.config.overdue_check_interval).await;
                    continue;
                }
            };
            tokio::select! {
                () = self.clock.until(next) => {}
                () = sooner, if sweeper != Sweeper::Adopt => {}
            }
        }
    }

    /// Steps until nothing is left, or until another instance does.
    async fn sweep_all(&self, sweeper: Sweeper) -> Result<Sweep, BrokerError> {
        loop {
            if let Some(peers) = &self.peers
                && !self.hold_lock(peers, sweeper.lock()).await?
            {
                return Ok(Sweep::Elsewhere);
            }
            if self.sweep_once(sweeper).await? == 0 {
                return Ok(Sweep::Done);
            }
        }
    }

    /// Waits until it makes sense to try for the lock again.
    async fn wait_for_lock(&self) {
        let Some(peers) = &self.peers else { return };
        tokio::select! {
            () = self.clock.until(self.now().plus(self.config.overdue_check_interval)) => {}
            () = peers.lock_freed() => {}
        }
    }

    /// One step; answers how many messages it dealt with.
    pub(crate) async fn sweep_once(&self, sweeper: Sweeper) -> Result<u64, BrokerError> {
        let limit = self.config.requeue_batch_size;
        let swept = match sweeper {
            Sweeper::Expire => {
                let request = ExpireRequest { queue: None, limit, error: None, seed: self.chance.seed() };
                self.tell_expired(self.store.expire(self.at(), request).await?, Trigger::Scheduler)
            }
            Sweeper::Lapse => {
                let request = SweepRequest { queue: None, limit };
                self.tell_lapsed(self.store.lapse(self.at(), request).await?)
            }
            Sweeper::Retain => {
                self.store.retain(self.at(), SweepRequest { queue: None, limit: Limit::MAX }).await?
            }
            Sweeper::Adopt => {
                self.adopt_operations().await?;
                0
            }
        };
        Ok(swept)
    }

    /// When there will be something to sweep, at the latest.
    async fn next_sweep(&self, sweeper: Sweeper) -> Timestamp {
        let latest = self.now().plus(self.config.overdue_check_interval);
        if matches!(sweeper, Sweeper::Retain | Sweeper::Adopt) {
            return latest;
        }
        let due = match self.store.next_due(self.at(), None).await {
            Ok(due) => due,
            Err(error) => {
                tracing::warn!(?sweeper, %error, "what is due next is not known");
                return latest;
            }
        };
        let next = match sweeper {
            Sweeper::Expire => due.overdue,
            Sweeper::Lapse => due.lapse,
            Sweeper::Retain | Sweeper::Adopt => None,
        };
        next.map_or(latest, |next| next.min(latest))
    }

    /// A lease ends then: the sweeper must be awake.
    pub(crate) fn sweep_by(&self, deadline: Option<Timestamp>) {
        // Beyond the next look by itself, nobody has to be woken.
        let latest = self.now().plus(self.config.overdue_check_interval);
        if deadline.is_some_and(|deadline| deadline < latest) {
            self.sweep_sooner.notify_waiters();
        }
    }

    /// Ends what is overdue in one queue, on demand; answers how many leases ended.
    pub async fn requeue_expired(
        &self,
        queue: Option<redrive_core::queue::QueueName>,
        limit: Limit,
        error: Option<redrive_core::message::ErrorText>,
    ) -> Result<u64, BrokerError> {
        let request = ExpireRequest { queue, limit, error, seed: self.chance.seed() };
        let expired = self.store.expire(self.at(), request).await?;
        Ok(self.tell_expired(expired, Trigger::Operator))
    }

    /// Leases ran out: counts, tells, logs and wakes; answers how many.
    pub(crate) fn tell_expired(&self, expired: Vec<Judged>, trigger: Trigger) -> u64 {
        let mut counts = std::collections::BTreeMap::<_, (u64, u64)>::new();
        let count = expired.len() as u64;
        for judged in expired {
            let died = self.tell_judged(&judged, "expire");
            let (requeued, dead) = counts.entry(judged.queue).or_default();
            *requeued += u64::from(!died);
            *dead += u64::from(died);
        }
        let now = self.now();
        for (queue, (requeued, dead)) in counts {
            self.events.tell_with_dead(Happening::Requeue, &queue, (requeued, dead), trigger, now);
            self.events.tell(Happening::MoveToDlq, &queue, dead, trigger, now);
        }
        count
    }

    /// Waiting messages died of age or of a lowered cap; answers how many.
    pub(crate) fn tell_lapsed(&self, lapsed: Vec<Judged>) -> u64 {
        let count = lapsed.len() as u64;
        let now = self.now();
        for judged in lapsed {
            self.metrics.failed(&judged.queue, &judged.kind, "lapse", true);
            self.note_death(&judged);
            self.events.tell(Happening::MoveToDlq, &judged.queue, 1, Trigger::Scheduler, now);
            self.wake_for(&judged);
        }
        count
    }
}
