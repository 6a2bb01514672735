//! Two rounds of a queue at a time, whatever they are for, and those that are full.
//!
//! A server with one thread does one thing at a time. If each verb had a round of its own under way, they would only wait for each other
//! there, and those who come meanwhile would be spread over more and smaller rounds, of which each costs as much as several messages. So
//! a small round waits until one of two is over, and grows: one that is carried out, and one that is on its way, so that the server has the
//! next thing to do. One that is large enough goes at once. It is what Nagle did for small packets. Nobody waits long: a round may be
//! held up by a server that is away, and what others ask may need another one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::queue::QueueName;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many rounds of a queue are under way at once, besides those that are full.
const PLACES: usize = 2;

/// The queues in which something is under way, each with its places.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    queues: Mutex<HashMap<QueueName, Arc<Semaphore>>>,
}

/// A wish for turns in a queue; its places are forgotten with the last who has one.
#[derive(Debug)]
pub(crate) struct Turn {
    turns: Arc<Turns>,
    queue: QueueName,
    /// It is there until we are gone.
    places: Option<Arc<Semaphore>>,
}

/// One of them: as long as it is held, nobody else has it.
pub(crate) type Place<'t> = SemaphorePermit<'t>;

impl Turns {
    fn queues(&self) -> MutexGuard<'_, HashMap<QueueName, Arc<Semaphore>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn of(self: &Arc<Self>, queue: &QueueName) -> Turn {
        let mut queues = self.queues();
        let places = queues.entry(queue.clone()).or_insert_with(|| Arc::new(Semaphore::new(PLACES)));
        Turn { turns: Arc::clone(self), queue: queue.clone(), places: Some(Arc::clone(places)) }
    }
}

impl Turn {
    fn places(&self) -> &Semaphore {
        self.places.as_ref().expect("it is there until we are gone")
    }

    /// Waits for a place; whoever waits longest is next.
    pub(crate) async fn take(&self) -> Place<'_> {
        self.places().acquire().await.expect("nobody closes it")
    }

    /// A place, where one is free and nobody waits for it.
    pub(crate) fn try_take(&self) -> Option<Place<'_>> {
        self.places().try_acquire().ok()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut queues = self.turns.queues();
        self.places = None;
        // What is left is the map's. Others come by the map alone, which is locked.
        if queues.get(&self.queue).is_some_and(|places| Arc::strong_count(places) == 1) {
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
    async fn two_at_a_time_in_a_queue_and_other_queues_are_free() {
        let turns = Arc::new(Turns::default());
        let [first, second, third] = ["a", "a", "a"].map(|name| turns.of(&queue(name)));
        let places = (first.take().await, second.take().await);
        assert!(third.try_take().is_none(), "both are taken");
        drop(turns.of(&queue("b")).take().await);
        drop(places.0);
        drop(third.take().await);
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
