//! What somebody is told who shows no key, where reading is open: how much happens, and nothing else.
//!
//! A page on a wall needs no more. The type of what is told has no room for a name, a reason or an error, so that none can get
//! out by a mistake further on.

use std::net::IpAddr;
use std::sync::Arc;

use redrive_core::time::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Caller, Gate, Shown};
use crate::error::BrokerError;
use crate::events::{Event, Told, Trigger, Watch};

/// Most readers without a key at a time: nobody else limits them.
const READERS_MAX: u32 = 1_000;

/// The places for readers without a key.
#[derive(Debug)]
pub(super) struct Places(Arc<Semaphore>);

impl Default for Places {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(READERS_MAX as usize)))
    }
}

/// Whoever wants to be told what happens.
#[derive(Debug)]
pub enum Watcher {
    /// Somebody who was let in.
    Caller(Caller),
    /// Somebody who showed nothing, where that is enough for counts.
    Stranger(Stranger),
}

/// Somebody who showed nothing.
#[derive(Debug, Clone)]
pub struct Stranger(Gate);

impl Gate {
    /// Who wants to be told what happens, by what is shown. A key that does not work is refused as everywhere: who has one
    /// wants to know that it has ended.
    pub fn watcher(&self, shown: Shown<'_>, from: Option<IpAddr>) -> Result<Watcher, BrokerError> {
        if matches!(shown, Shown::Nothing) && self.needs_keys() && self.config().open_reading {
            return Ok(Watcher::Stranger(Stranger(self.clone())));
        }
        self.caller(shown, from).map(Watcher::Caller)
    }
}

impl Stranger {
    /// Reads counts from behind `after`; without one, from now on.
    pub fn watch(&self, after: Option<u64>) -> Result<Counts, BrokerError> {
        let place = Arc::clone(&self.0.0.places.0).try_acquire_owned();
        let full = |_| BrokerError::QuotaReached { what: "readers without a key", max: READERS_MAX };
        Ok(Counts { watch: self.0.0.broker.watch(after), _place: place.map_err(full)? })
    }

    /// Ends when nothing more is to be told.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let gate = self.0.clone();
        async move { gate.stopped().await }
    }
}

/// How many of something happened at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The place of the event in the stream.
    pub offset: u64,
    /// The name of the event, one of those that are about messages.
    pub what: &'static str,
    /// When.
    pub at: Timestamp,
    /// How many messages.
    pub count: u64,
    /// How many messages died in the same step.
    pub dlq_count: u64,
    /// Who or what caused it.
    pub trigger: Trigger,
}

impl Counted {
    /// What may be told of an event. What happens to a queue, a subscription or a breaker is no count.
    fn of(event: &Event) -> Option<Self> {
        let Event { offset, what, at, queue: _, count, dlq_count, trigger } = *event;
        what.adds_up().then_some(Self { offset, what: what.name(), at, count, dlq_count, trigger })
    }
}

/// What a reader without a key is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldCount {
    /// So many.
    Counted(Counted),
    /// Events were missed; it goes on behind this offset.
    Lagged(u64),
}

/// A reader without a key.
#[derive(Debug)]
pub struct Counts {
    watch: Watch,
    _place: OwnedSemaphorePermit,
}

impl Counts {
    /// The next count, as soon as there is one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> ToldCount {
        loop {
            match self.watch.next().await {
                Told::Lagged(after) => return ToldCount::Lagged(after),
                Told::Event(event) => {
                    if let Some(counted) = Counted::of(&event) {
                        return ToldCount::Counted(counted);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::policy::{BreakerState, Change, ChangeReason};
    use redrive_core::queue::QueueName;

    use super::*;
    use crate::events::{Act, Happening};

    fn event(what: Happening) -> Event {
        Event {
            offset: 7,
            what,
            at: Timestamp::EPOCH,
            queue: QueueName::new("canary").unwrap(),
            count: 3,
            dlq_count: 1,
            trigger: Trigger::Scheduler,
        }
    }

    #[test]
    fn only_what_is_about_messages_is_counted_and_nothing_of_it_is_a_name() {
        for what in [
            Happening::Enqueue,
            Happening::Lease,
            Happening::Ack,
            Happening::Nack,
            Happening::Requeue,
            Happening::MoveToDlq,
        ] {
            let counted = Counted::of(&event(what)).unwrap();
            assert_eq!((counted.what, counted.count, counted.dlq_count), (what.name(), 3, 1));
            assert!(!format!("{counted:?}").contains("canary"));
        }
        let (from, to) = (BreakerState::Closed, BreakerState::Open);
        let change = Change { from, to, at: Timestamp::EPOCH, reason: ChangeReason::Operator };
        for what in [
            Happening::Breaker(change),
            Happening::Queue(Act::Created),
            Happening::Subscription(Act::Disabled),
        ] {
            assert_eq!(Counted::of(&event(what)), None, "{what:?}");
        }
    }
}
