//! What follows from what other instances tell. Nothing here waits for the store: who listens slowly misses something.

use redrive_core::policy::BreakerState;
use redrive_core::queue::QueueName;
use redrive_store::{EntryKey, EntryKind, Heard, Listener, Signal};

use super::Peers;
use super::event::{self, Told};
use crate::broker::Broker;
use crate::events::{Event, Happening};

impl Broker {
    /// Hears what other instances tell, for as long as the broker runs.
    pub(super) async fn keep_hearing(&self, mut listener: Box<dyn Listener>) {
        let Some(peers) = &self.peers else { return };
        let mut listens = false;
        loop {
            match listener.hear().await {
                Heard::Signal(Signal::Ready(queue)) => self.wake_here(&queue),
                Heard::Signal(Signal::Queue(queue)) => {
                    // A cap may have been lowered.
                    self.sweep_sooner.notify_waiters();
                    peers.stale.queue(queue);
                }
                Heard::Signal(Signal::Entry(key)) => heed_entry(peers, &key),
                Heard::Signal(Signal::Notice(notice)) => match event::read(&notice) {
                    Some(Told::Events(events)) => events.into_iter().for_each(|event| self.pass_on(event)),
                    Some(Told::Missed) => self.events.lose(),
                    None => {}
                },
                Heard::Lost => {
                    // Whoever watches from before the first of them was told that by the offset it came with.
                    if std::mem::replace(&mut listens, true) {
                        self.events.lose();
                    }
                    self.look_at_everything(peers);
                }
            }
        }
    }

    /// Anything may have happened.
    fn look_at_everything(&self, peers: &Peers) {
        for live in self.queues.all() {
            live.due_changed.notify_one();
            live.wake();
        }
        self.sweep_sooner.notify_waiters();
        peers.lock_freed.notify_waiters();
        peers.keys_changed.notify_one();
        peers.subscriptions_changed.notify_one();
        peers.stale.everything();
    }

    /// Something may be ready in a queue; those who told it know.
    fn wake_here(&self, queue: &QueueName) {
        if let Some(live) = self.queues.known(queue) {
            live.due_changed.notify_one();
            live.wake();
        }
    }

    /// Tells an event of another instance to those who watch here.
    fn pass_on(&self, event: Event) {
        if let Happening::Breaker(change) = event.what
            && change.to == BreakerState::HalfOpen
            && let Some(live) = self.queues.known(&event.queue)
            && let Some(breaker) = live.rules().breaker.as_mut()
        {
            // It has been told: each instance would see by itself that the time is over.
            breaker.poll(self.now());
        }
        self.events.pass_on(event);
    }
}

fn heed_entry(peers: &Peers, key: &EntryKey) {
    match key.kind {
        EntryKind::ApiKey => peers.keys_changed.notify_one(),
        EntryKind::Lock => peers.lock_freed.notify_waiters(),
        EntryKind::Breaker => {
            if let Ok(queue) = QueueName::new(key.name.as_str()) {
                peers.stale.breaker(queue);
            }
        }
        EntryKind::Operation => {
            if let Ok(id) = key.name.as_str().parse() {
                peers.stale.operation(id);
            }
        }
        EntryKind::Subscription | EntryKind::Topic => peers.subscriptions_changed.notify_one(),
    }
}
