//! One round of a queue at a time, whatever it is for, unless one is full.
//!
//! A server with one thread does one thing at a time. If each verb had a round of its own under way, they would only wait for each other
//! there, and those who come meanwhile would be spread over more and smaller rounds, of which each costs as much as several messages. So
//! a small round waits for the one that is under way, and grows; one that is large enough goes at once, so that the server has the next
//! thing to do when it is done with this one. It is what Nagle did for small packets. Nobody waits long: a round may be held up by a server
//! that is away, and what others ask may need another one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::queue::QueueName;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The queues in which something is under way, each with its one place.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queues: Mutex<HashMap<QueueName, Arc<Semaphore>>>,
}

/// A wish for turns in a queue; its place is forgotten with the last who has one.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    queue: QueueName,
    /// It is there until we are gone.
    place: Option<Arc<Semaphore>>,
}

/// As long as it is held, it is nobody else's turn.
pub(crate) type Place<'t> = SemaphorePermit<'t>;

impl Turns {
    fn queues(&self) -> MutexGuard<'_, HashMap<QueueName, Arc<Semaphore>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(self: &Arc<Self>, queue: &QueueName) -> Turn {
        let mut queues = self.queues();
        let place = queues.entry(queue.clone()).or_insert_with(|| Arc::new(Semaphore::new(1)));
        Turn { turns: Arc::clone(self), queue: queue.clone(), place: Some(Arc::clone(place)) }
    }
}

impl Turn {
    fn place(&self) -> &Semaphore {
        self.place.as_ref().expect("it is there until we are gone")
    }

    /// Waits for the place; whoever waits longest is next.
    pub(crate) async fn take(&self) -> Place<'_> {
        self.place().acquire().await.expect("nobody closes it")
    }

    /// The place, where nobody has it and nobody waits for it.
    pub(crate) fn try_take(&self) -> Option<Place<'_>> {
        self.place().try_acquire().ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queues = self.turns.queues();
        self.place = None;
        // What is left is the map's. Others come by the map alone, which is locked.
        if queues.get(&self.queue).is_some_and(|place| Arc::strong_count(place) == 1) {
            queues.remove(&self.queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(name: &str) -> QueueName {
        QueueName::new(name).expect("a good name")
    }

    #[tokio::test]
    async fn one_at_a_time_in_a_queue_and_other_queues_are_free() {
        let turns = Arc::new(Turns::default());
        let (first, next, other) = (turns.of(&queue("a")), turns.of(&queue("a")), turns.of(&queue("b")));
        let place = first.take().await;
        assert!(next.try_take().is_none(), "it is taken");
        drop(other.take().await);
        drop(place);
        drop(next.take().await);
    }

    #[tokio::test]
    async fn a_queue_is_forgotten_with_the_last_who_wants_a_turn() {
        let turns = Arc::new(Turns::default());
        let (one, another) = (turns.of(&queue("a")), turns.of(&queue("a")));
        drop(one);
        assert_eq!(turns.queues().len(), 1);
        drop(another);
        assert!(turns.queues().is_empty());
    }
}
