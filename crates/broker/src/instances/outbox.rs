//! What other instances are to be told: gathered for a moment, each thing once, and told outside of anybody's call.
//!
//! The first thing after a silence is told at once, so that a poll elsewhere waits for nothing but the way there; what comes
//! in the moment after it is told together.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use redrive_core::queue::QueueName;
use redrive_core::time::Millis;
use redrive_store::{EntryKey, Signal};
use tokio::sync::Notify;

use super::event::{self, Carried};
use crate::events::Event;

/// How long signals are gathered.
pub(super) const COALESCE: Millis = Millis::new(5);
/// How long to wait before telling again what the store did not take.
pub(super) const TRY_AGAIN: Millis = Millis::from_secs(1);
/// Most signals of one call.
const TOLD_MAX: usize = 256;
/// Most events that wait to be told; then the watchers of other instances are told that they missed some.
const EVENTS_MAX: usize = 4_096;

#[derive(Debug, Default)]
struct Waiting {
    queues: BTreeSet<QueueName>,
    entries: BTreeSet<EntryKey>,
    ready: BTreeSet<QueueName>,
    events: Vec<Carried>,
    /// Events were dropped.
    missed: bool,
}

/// What waits to be told.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    some: Notify,
}

/// What is being told.
#[derive(Debug, Default)]
pub(super) struct Untold(VecDeque<Signal>);

impl Untold {
    /// The next signals for one call.
    pub(super) fn next_few(&mut self) -> Option<Vec<Signal>> {
        let few: Vec<Signal> = self.0.drain(..self.0.len().min(TOLD_MAX)).collect();
        (!few.is_empty()).then_some(few)
    }
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ready(&self, queue: &QueueName) {
        let mut waiting = self.lock();
        if !waiting.ready.contains(queue) {
            waiting.ready.insert(queue.clone());
            self.some.notify_one();
        }
    }

    pub(super) fn queue(&self, queue: &QueueName) {
        self.lock().queues.insert(queue.clone());
        self.some.notify_one();
    }

    pub(super) fn entry(&self, key: EntryKey) {
        self.lock().entries.insert(key);
        self.some.notify_one();
    }

    /// Carries an event to the watchers of other instances.
    pub(crate) fn event(&self, event: &Event) {
        let mut waiting = self.lock();
        if waiting.events.len() >= EVENTS_MAX {
            waiting.events.clear();
            waiting.missed = true;
        }
        waiting.events.push(Carried::of(event));
        self.some.notify_one();
    }

    /// Returns when something waits to be told.
    pub(super) async fn some(&self) {
        self.some.notified().await;
    }

    /// Takes all that waits. Whoever hears it forgets first, and looks then.
    pub(super) fn take(&self) -> Untold {
        let waiting = std::mem::take(&mut *self.lock());
        let queues = waiting.queues.into_iter().map(Signal::Queue);
        let entries = waiting.entries.into_iter().map(Signal::Entry);
        let ready = waiting.ready.into_iter().map(Signal::Ready);
        let notices = event::notices(waiting.missed, &waiting.events).into_iter().map(Signal::Notice);
        Untold(queues.chain(entries).chain(ready).chain(notices).collect())
    }

    /// Puts back what the store did not take. Events are not kept: that they are missed is told instead.
    pub(super) fn put_back(&self, failed: Vec<Signal>, untold: Untold) {
        let mut waiting = self.lock();
        for signal in failed.into_iter().chain(untold.0) {
            match signal {
                Signal::Queue(queue) => waiting.queues.extend([queue]),
                Signal::Entry(key) => waiting.entries.extend([key]),
                Signal::Ready(queue) => waiting.ready.extend([queue]),
                Signal::Notice(_) => waiting.missed = true,
            }
        }
        self.some.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).unwrap()
    }

    #[test]
    fn each_thing_is_told_once_and_what_is_changed_before_what_is_ready() {
        let outbox = Outbox::default();
        (0..5).for_each(|_| outbox.ready(&queue("a")));
        outbox.ready(&queue("b"));
        outbox.queue(&queue("b"));
        let told = outbox.take().next_few().unwrap();
        let (a, b) = (Signal::Ready(queue("a")), Signal::Ready(queue("b")));
        assert_eq!(told, [Signal::Queue(queue("b")), a, b]);
        assert!(outbox.take().next_few().is_none());
    }

    #[test]
    fn many_are_told_in_several_calls_and_what_failed_is_told_again() {
        let outbox = Outbox::default();
        for number in 0..TOLD_MAX + 10 {
            outbox.ready(&queue(&format!("q{number}")));
        }
        let mut untold = outbox.take();
        let first = untold.next_few().unwrap();
        assert_eq!(first.len(), TOLD_MAX);
        outbox.put_back(first, untold);
        let mut again = outbox.take();
        let mut count = 0;
        while let Some(few) = again.next_few() {
            count += few.len();
        }
        assert_eq!(count, TOLD_MAX + 10);
    }
}
