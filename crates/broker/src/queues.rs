//! What the broker knows of each queue while it runs: who waits, the breaker, the history.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use redrive_core::policy::Breaker;
use redrive_core::queue::{Queue, QueueName, QueueSettings};
use redrive_core::time::Timestamp;
use redrive_store::QueueNotFound;
use tokio::sync::Notify;

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::history::History;
use crate::waiters::{Ready, Waiters};

/// What changes with the configuration of a queue.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) settings: Arc<QueueSettings>,
    pub(crate) breaker: Option<Breaker>,
}

/// A queue while the broker runs.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) name: QueueName,
    pub(crate) waiters: Arc<Waiters>,
    rules: Mutex<Rules>,
    pub(crate) history: Mutex<History>,
    /// What is due next may have changed.
    pub(crate) due_changed: Notify,
    /// The earliest time that was said to be due since the timer last asked the store. By the time it asks, that may have
    /// passed, and the store knows only of what is still to come.
    due_by: AtomicU64,
    /// Whether somebody keeps the time for those who wait.
    pub(crate) timed: Mutex<bool>,
}

impl Live {
    fn new(queue: &Queue, defaults: &QueueSettings) -> Self {
        let settings = queue.config.over(defaults);
        let breaker = settings.breaker.map(Breaker::new);
        Self {
            name: queue.name.clone(),
            waiters: Arc::default(),
            rules: Mutex::new(Rules { settings: Arc::new(settings), breaker }),
            history: Mutex::default(),
            due_changed: Notify::new(),
            due_by: AtomicU64::new(u64::MAX),
            timed: Mutex::new(false),
        }
    }

    pub(crate) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn settings(&self) -> Arc<QueueSettings> {
        Arc::clone(&self.rules().settings)
    }

    /// Takes over another configuration; a breaker whose rules stay the same goes on as it is.
    fn configure(&self, queue: &Queue, defaults: &QueueSettings) {
        let settings = queue.config.over(defaults);
        let mut rules = self.rules();
        if rules.settings.breaker != settings.breaker {
            rules.breaker = settings.breaker.map(Breaker::new);
        }
        rules.settings = Arc::new(settings);
    }

    /// Something becomes ready then.
    pub(crate) fn due_by(&self, at: Timestamp) {
        self.due_by.fetch_min(at.as_millis(), Ordering::SeqCst);
        self.due_changed.notify_one();
    }

    /// The earliest time that was said to be due since this was last asked.
    pub(crate) fn take_due(&self) -> Option<Timestamp> {
        let due = self.due_by.swap(u64::MAX, Ordering::SeqCst);
        (due != u64::MAX).then(|| Timestamp::from_millis(due))
    }

    /// Something may be ready; nobody knows what.
    pub(crate) fn wake(&self) {
        self.waiters.wake(Ready::Something);
    }
}

/// The queues that somebody asked for since the broker started.
#[derive(Debug, Default)]
pub(crate) struct Queues(RwLock<HashMap<QueueName, Arc<Live>>>);

impl Queues {
    /// A queue that was asked for before.
    pub(crate) fn known(&self, name: &QueueName) -> Option<Arc<Live>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn add(&self, queue: &Queue, defaults: &QueueSettings) -> Arc<Live> {
        let mut queues = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let live = queues.entry(queue.name.clone()).or_insert_with(|| Arc::new(Live::new(queue, defaults)));
        Arc::clone(live)
    }

    /// Removes a queue and says that it was there, unless it was deleted and made again meanwhile.
    fn remove(&self, live: &Arc<Live>) -> bool {
        let mut queues = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let same = queues.get(&live.name).is_some_and(|known| Arc::ptr_eq(known, live));
        same && queues.remove(&live.name).is_some()
    }
}

impl Broker {
    /// A queue that is there.
    pub(crate) async fn live(&self, name: &QueueName) -> Result<Arc<Live>, BrokerError> {
        if let Some(live) = self.queues.known(name) {
            return Ok(live);
        }
        match self.store.get_queue(name).await? {
            Some(queue) => Ok(self.queues.add(&queue, &self.config.defaults)),
            None => Err(QueueNotFound(name.clone()).into()),
        }
    }

    /// A queue was created or changed.
    pub(crate) fn note_queue(&self, queue: &Queue) {
        let live = self.queues.add(queue, &self.config.defaults);
        live.configure(queue, &self.config.defaults);
        match queue.pauses.next_end(Timestamp::default()) {
            Some(end) => live.due_by(end),
            None => live.due_changed.notify_one(),
        }
        live.wake();
    }

    /// A queue is gone, which says nothing about one of the same name that came into being meanwhile.
    pub(crate) fn forget_queue(&self, live: &Arc<Live>) {
        if self.queues.remove(live) {
            live.waiters.wake_all();
            live.due_changed.notify_one();
            self.metrics.forget_queue(&live.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::queue::{Pauses, QueueConfig};

    use super::*;

    #[test]
    fn who_finds_a_queue_gone_forgets_that_one_and_not_the_next_of_its_name() {
        let (queues, defaults) = (Queues::default(), QueueSettings::default());
        let name = QueueName::new("jobs").unwrap();
        let queue = Queue {
            name: name.clone(),
            created_at: Timestamp::default(),
            version: 1,
            config: QueueConfig::default(),
            pauses: Pauses::default(),
        };
        let gone = queues.add(&queue, &defaults);
        assert!(queues.remove(&gone));
        let next = queues.add(&queue, &defaults);
        assert!(!queues.remove(&gone), "somebody was late");
        assert!(queues.known(&name).is_some_and(|known| Arc::ptr_eq(&known, &next)));
    }
}
