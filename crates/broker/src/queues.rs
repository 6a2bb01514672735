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
use crate::numbers::{Numbers, Remembered};
use crate::waiters::{Ready, Waiters};

/// What changes with the configuration of a queue.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) settings: Arc<QueueSettings>,
    pub(crate) breaker: Option<Breaker>,
    /// The version of the queue that this is.
    version: u64,
}

/// A queue while the broker runs.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) name: QueueName,
    pub(crate) waiters: Arc<Waiters>,
    rules: Mutex<Rules>,
    pub(crate) history: Mutex<History>,
    pub(crate) numbers: Numbers,
    /// What is due next may have changed.
    pub(crate) due_changed: Notify,
    /// The earliest time that was said to be due since the timer last asked the store. By the time it asks, that may have
    /// passed, and the store knows only of what is still to come.
    due_by: AtomicU64,
    /// Whether somebody keeps the time for those who wait.
    pub(crate) timed: Mutex<bool>,
    /// When the queue was created: another of its name was created at another time.
    created_at: Timestamp,
    /// Who this instance is to the others' breakers; 0 where there are none.
    instance: u64,
    /// Held by who changes the row that the breakers of all instances share.
    pub(crate) swapping: tokio::sync::Mutex<()>,
}

impl Live {
    fn new(queue: &Queue, defaults: &QueueSettings, instance: u64, remembered: &Arc<Remembered>) -> Self {
        let settings = queue.config.over(defaults);
        let breaker = settings.breaker.map(|config| Breaker::shared(config, instance));
        let version = queue.version;
        Self {
            name: queue.name.clone(),
            waiters: Arc::default(),
            rules: Mutex::new(Rules { settings: Arc::new(settings), breaker, version }),
            history: Mutex::default(),
            numbers: Numbers::new(remembered),
            due_changed: Notify::new(),
            due_by: AtomicU64::new(u64::MAX),
            timed: Mutex::new(false),
            created_at: queue.created_at,
            instance,
            swapping: tokio::sync::Mutex::default(),
        }
    }

    /// Whether that is the same queue, and not another of its name.
    pub(crate) fn is_of(&self, queue: &Queue) -> bool {
        self.created_at == queue.created_at
    }

    /// Whether the configuration of that is newer.
    pub(crate) fn is_older_than(&self, queue: &Queue) -> bool {
        self.rules().version < queue.version
    }

    pub(crate) fn rules(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn settings(&self) -> Arc<QueueSettings> {
        Arc::clone(&self.rules().settings)
    }

    /// Takes over another configuration; a breaker whose rules stay the same goes on as it is.
    /// What is older than what is known is not news.
    fn configure(&self, queue: &Queue, defaults: &QueueSettings) {
        let settings = queue.config.over(defaults);
        let mut rules = self.rules();
        if queue.version < rules.version {
            return;
        }
        if rules.settings.breaker != settings.breaker {
            rules.breaker = settings.breaker.map(|config| Breaker::shared(config, self.instance));
        }
        rules.settings = Arc::new(settings);
        rules.version = queue.version;
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
pub(crate) struct Queues {
    live: RwLock<HashMap<QueueName, Arc<Live>>>,
    /// How much is remembered of the consumers of all of them.
    pub(crate) remembered: Arc<Remembered>,
}

impl Queues {
    /// A queue that was asked for before.
    pub(crate) fn known(&self, name: &QueueName) -> Option<Arc<Live>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Live>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn add(&self, queue: &Queue, defaults: &QueueSettings, instance: u64) -> Arc<Live> {
        let mut queues = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Live::new(queue, defaults, instance, &self.remembered));
        Arc::clone(queues.entry(queue.name.clone()).or_insert_with(new))
    }

    /// Removes a queue and says that it was there, unless it was deleted and made again meanwhile.
    fn remove(&self, live: &Arc<Live>) -> bool {
        let mut queues = self.live.write().unwrap_or_else(PoisonError::into_inner);
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
            Some(queue) => {
                let live = self.add_queue(&queue);
                if self.peers.is_some() {
                    // Apart, so that a poll is no larger for what it does once.
                    Box::pin(self.refresh_breaker(&live)).await?;
                }
                Ok(live)
            }
            None => Err(QueueNotFound(name.clone()).into()),
        }
    }

    fn add_queue(&self, queue: &Queue) -> Arc<Live> {
        let instance = self.peers.as_ref().map_or(0, |peers| peers.token.short());
        self.queues.add(queue, &self.config.defaults, instance)
    }

    /// A queue was created or changed.
    pub(crate) fn note_queue(&self, queue: &Queue) {
        self.note_queue_here(queue);
        self.tell_queue_changed(&queue.name);
    }

    /// The same where another instance did it.
    pub(crate) fn note_queue_here(&self, queue: &Queue) {
        // Another instance may have deleted the one before it, and that may be news here.
        if let Some(before) = self.queues.known(&queue.name).filter(|live| !live.is_of(queue)) {
            self.forget_queue(&before);
        }
        let live = self.add_queue(queue);
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
            self.deaths.forget(&live.name);
            self.forget_attempts_of(&live.name);
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
        let gone = queues.add(&queue, &defaults, 0);
        assert!(queues.remove(&gone));
        let next = queues.add(&queue, &defaults, 0);
        assert!(!queues.remove(&gone), "somebody was late");
        assert!(queues.known(&name).is_some_and(|known| Arc::ptr_eq(&known, &next)));
    }
}
