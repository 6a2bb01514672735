//! What happened, for whoever watches: coalesced, numbered, and kept for a while so that a reader can come back.
//!
//! A busy queue would drown a watcher in single events, so those of one kind, queue and cause are counted together for
//! [`COALESCE`] and told as one. Events about a breaker or a queue itself are told one by one.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::policy::Change;
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use tokio::sync::{Notify, watch};

use crate::clock::pause;
use crate::instances::Outbox;

/// How long events of one kind are counted together.
const COALESCE: Millis = Millis::new(20);
/// Most events of different kinds, queues and causes that wait to be told; then they are told at once.
const PENDING_MAX: usize = 1_024;

/// Who or what caused an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A producer enqueued.
    Producer,
    /// A consumer leased or settled.
    Consumer,
    /// Time: a sweeper ended what was overdue.
    Scheduler,
    /// A person, or an operation that a person started.
    Operator,
}

impl Trigger {
    /// Every one of them.
    pub const ALL: [Self; 4] = [Self::Producer, Self::Consumer, Self::Scheduler, Self::Operator];

    /// The word in the payload.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Scheduler => "scheduler",
            Self::Operator => "operator",
        }
    }
}

/// What happened to a queue or a subscription itself, or to many of its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// It was created.
    Created,
    /// Its configuration was changed.
    Updated,
    /// It was deleted.
    Deleted,
    /// It, or a key of it, was paused.
    Paused,
    /// It, or a key of it, was resumed.
    Resumed,
    /// Messages were discarded.
    Discarded,
    /// Messages were moved to another queue.
    Moved,
    /// Messages were rescheduled.
    Rescheduled,
    /// An operation was started, went on, or ended.
    Operation,
    /// It was switched off: its endpoint is gone, or has failed for too long.
    Disabled,
    /// It was switched on again.
    Enabled,
    /// Its secret was replaced.
    Rotated,
    /// Events of the past are brought to it.
    Replayed,
}

impl Act {
    /// Every one of them.
    pub const ALL: [Self; 13] = [
        Self::Created,
        Self::Updated,
        Self::Deleted,
        Self::Paused,
        Self::Resumed,
        Self::Discarded,
        Self::Moved,
        Self::Rescheduled,
        Self::Operation,
        Self::Disabled,
        Self::Enabled,
        Self::Rotated,
        Self::Replayed,
    ];

    /// The word in the payload.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Deleted => "deleted",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Discarded => "discarded",
            Self::Moved => "moved",
            Self::Rescheduled => "rescheduled",
            Self::Operation => "operation",
            Self::Disabled => "disabled",
            Self::Enabled => "enabled",
            Self::Rotated => "rotated",
            Self::Replayed => "replayed",
        }
    }
}

/// What an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// Messages came in.
    Enqueue,
    /// Messages were handed out, or their leases extended.
    Lease,
    /// Messages were acked.
    Ack,
    /// Attempts failed.
    Nack,
    /// Leased or dead messages are ready again.
    Requeue,
    /// Messages died.
    MoveToDlq,
    /// A breaker changed its state.
    Breaker(Change),
    /// Something was done to the queue itself.
    Queue(Act),
    /// Something was done to the subscription whose queue it is.
    Subscription(Act),
}

impl Happening {
    /// The name of the event.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Lease => "lease",
            Self::Ack => "ack",
            Self::Nack => "nack",
            Self::Requeue => "requeue",
            Self::MoveToDlq => "move_to_dlq",
            Self::Breaker(_) => "breaker",
            Self::Queue(_) => "queue",
            Self::Subscription(_) => "subscription",
        }
    }

    /// Whether several can be told as one: it is about messages.
    pub(crate) const fn adds_up(self) -> bool {
        !matches!(self, Self::Breaker(_) | Self::Queue(_) | Self::Subscription(_))
    }
}

/// One event, or several that were alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its place in the stream, from 1. A number is never used twice while the broker runs.
    pub offset: u64,
    /// What happened.
    pub what: Happening,
    /// When; the last time where there were several.
    pub at: Timestamp,
    /// To which queue.
    pub queue: QueueName,
    /// How many messages.
    pub count: u64,
    /// How many messages died in the same step.
    pub dlq_count: u64,
    /// Who or what caused it.
    pub trigger: Trigger,
}

#[derive(Debug)]
struct State {
    kept: VecDeque<Arc<Event>>,
    pending: Vec<Event>,
    last_offset: u64,
}

/// The stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    state: Mutex<State>,
    keep: usize,
    pending: Notify,
    told: watch::Sender<u64>,
    /// By which the watchers of other instances are told.
    outbox: Option<Arc<Outbox>>,
}

impl Events {
    pub(crate) fn new(keep: NonZeroUsize, outbox: Option<Arc<Outbox>>) -> Self {
        let state = State { kept: VecDeque::new(), pending: Vec::new(), last_offset: 0 };
        Self {
            state: Mutex::new(state),
            keep: keep.get(),
            pending: Notify::new(),
            told: watch::Sender::new(0),
            outbox,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells that something happened to messages of a queue.
    pub(crate) fn tell(
        &self,
        what: Happening,
        queue: &QueueName,
        count: u64,
        trigger: Trigger,
        at: Timestamp,
    ) {
        self.tell_with_dead(what, queue, (count, 0), trigger, at);
    }

    /// The same where some of the messages died.
    pub(crate) fn tell_with_dead(
        &self,
        what: Happening,
        queue: &QueueName,
        (count, dlq_count): (u64, u64),
        trigger: Trigger,
        at: Timestamp,
    ) {
        if count + dlq_count == 0 && what.adds_up() {
            return;
        }
        let mut state = self.lock();
        let alike = |event: &&mut Event| {
            what.adds_up() && event.what == what && event.trigger == trigger && event.queue == *queue
        };
        if let Some(event) = state.pending.iter_mut().rev().find(alike) {
            event.count += count;
            event.dlq_count += dlq_count;
            event.at = event.at.max(at);
            return;
        }
        let first = state.pending.is_empty();
        state.pending.push(Event { offset: 0, what, at, queue: queue.clone(), count, dlq_count, trigger });
        if state.pending.len() >= PENDING_MAX || !what.adds_up() {
            self.flush(&mut state);
        } else if first {
            self.pending.notify_one();
        }
    }

    fn flush(&self, state: &mut State) {
        for event in std::mem::take(&mut state.pending) {
            if let Some(outbox) = &self.outbox {
                outbox.event(&event);
            }
            self.keep(state, event);
        }
        self.told.send_replace(state.last_offset);
    }

    fn keep(&self, state: &mut State, mut event: Event) {
        state.last_offset += 1;
        event.offset = state.last_offset;
        if state.kept.len() == self.keep {
            state.kept.pop_front();
        }
        state.kept.push_back(Arc::new(event));
    }

    /// Tells an event of another instance here, and nowhere else. Those that were alike were counted together there.
    pub(crate) fn pass_on(&self, event: Event) {
        let mut state = self.lock();
        self.keep(&mut state, event);
        self.told.send_replace(state.last_offset);
    }

    /// Events of other instances were missed, nobody knows how many: every reader is told.
    pub(crate) fn lose(&self) {
        let mut state = self.lock();
        // A number that nobody will find.
        state.last_offset += 1;
        state.kept.clear();
        self.told.send_replace(state.last_offset);
    }

    /// Tells what was counted together, for as long as the broker runs.
    pub(crate) async fn run(&self) {
        loop {
            self.pending.notified().await;
            pause(COALESCE).await;
            self.flush(&mut self.lock());
        }
    }

    /// Reads from behind `after`; without one, from now on.
    pub(crate) fn watch(self: &Arc<Self>, after: Option<u64>) -> Watch {
        let told = self.told.subscribe();
        let last = self.lock().last_offset;
        // A number from before a restart is ahead of us: nobody knows what was missed.
        let next = after.map_or(last + 1, |after| after.saturating_add(1));
        Watch { events: Arc::clone(self), told, next }
    }
}

/// What a reader of events is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// The next event.
    Event(Arc<Event>),
    /// Events were missed; it goes on behind this offset.
    Lagged(u64),
}

/// A reader of events.
#[derive(Debug)]
pub struct Watch {
    events: Arc<Events>,
    told: watch::Receiver<u64>,
    next: u64,
}

impl Watch {
    /// The next event, as soon as there is one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Told {
        loop {
            self.told.mark_unchanged();
            if let Some(told) = self.look() {
                return told;
            }
            if self.told.changed().await.is_err() {
                // The sender lives as long as `events`, which is held here.
                std::future::pending::<()>().await;
            }
        }
    }

    fn look(&mut self) -> Option<Told> {
        let state = self.events.lock();
        let first = state.kept.front().map_or(state.last_offset + 1, |event| event.offset);
        if self.next < first || self.next > state.last_offset + 1 {
            let last = first - 1;
            self.next = first;
            return Some(Told::Lagged(last));
        }
        let at = usize::try_from(self.next - first).unwrap_or(usize::MAX);
        let event = state.kept.get(at).map(Arc::clone)?;
        self.next += 1;
        Some(Told::Event(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue() -> QueueName {
        QueueName::new("orders").unwrap()
    }

    fn events(keep: usize) -> Arc<Events> {
        Arc::new(Events::new(NonZeroUsize::new(keep).unwrap(), None))
    }

    fn tell(events: &Events, what: Happening, count: u64) {
        events.tell(what, &queue(), count, Trigger::Consumer, Timestamp::EPOCH);
    }

    fn flush(events: &Events) {
        events.flush(&mut events.lock());
    }

    #[tokio::test]
    async fn what_is_alike_is_told_as_one() {
        let events = events(8);
        let mut watch = events.watch(None);
        (0..5).for_each(|_| tell(&events, Happening::Ack, 2));
        tell(&events, Happening::Nack, 1);
        flush(&events);
        let Told::Event(ack) = watch.next().await else { panic!("nothing was missed") };
        assert_eq!((ack.what, ack.count, ack.offset), (Happening::Ack, 10, 1));
        let Told::Event(nack) = watch.next().await else { panic!("nothing was missed") };
        assert_eq!((nack.what, nack.count, nack.offset), (Happening::Nack, 1, 2));
    }

    #[tokio::test]
    async fn a_reader_comes_back_to_where_it_was_or_is_told_what_it_missed() {
        let events = events(4);
        for _ in 0..6 {
            tell(&events, Happening::Queue(Act::Paused), 0);
        }
        let mut back = events.watch(Some(4));
        assert!(matches!(back.next().await, Told::Event(event) if event.offset == 5));
        let mut late = events.watch(Some(1));
        assert_eq!(late.next().await, Told::Lagged(2));
        assert!(matches!(late.next().await, Told::Event(event) if event.offset == 3));
        let mut from_before_a_restart = events.watch(Some(900));
        assert!(matches!(from_before_a_restart.next().await, Told::Lagged(_)));
    }

    #[tokio::test]
    async fn a_reader_that_is_slow_is_told_that_it_missed_something() {
        let events = events(2);
        let mut watch = events.watch(None);
        for _ in 0..5 {
            tell(&events, Happening::Queue(Act::Updated), 0);
        }
        assert_eq!(watch.next().await, Told::Lagged(3));
        assert!(matches!(watch.next().await, Told::Event(event) if event.offset == 4));
    }

    #[tokio::test]
    async fn what_was_missed_elsewhere_is_told_to_every_reader_once() {
        let events = events(4);
        tell(&events, Happening::Queue(Act::Paused), 0);
        let (mut idle, mut behind) = (events.watch(None), events.watch(Some(0)));
        events.lose();
        tell(&events, Happening::Queue(Act::Resumed), 0);
        for watch in [&mut idle, &mut behind] {
            assert_eq!(watch.next().await, Told::Lagged(2));
            assert!(matches!(watch.next().await, Told::Event(event) if event.offset == 3));
        }
        let mut later = events.watch(None);
        events.pass_on(Event {
            offset: 0,
            what: Happening::Ack,
            at: Timestamp::EPOCH,
            queue: queue(),
            count: 7,
            dlq_count: 0,
            trigger: Trigger::Consumer,
        });
        let Told::Event(passed) = later.next().await else { panic!("nothing was missed") };
        assert_eq!((passed.offset, passed.count), (4, 7));
    }
}
