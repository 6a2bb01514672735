//! Queues: create, update, delete, pause, and looking at them.

use std::collections::BTreeMap;
use std::ops::Bound;

use redrive_core::queue::{Pauses, Queue, QueueName, QueueSettings, Totals};
use redrive_core::time::Timestamp;
use redrive_store::{CreateQueue, DeleteQueue, PauseQueue, QueueError, UpdateQueue};

use crate::state::{QueueState, State, Turns};

impl State {
    pub(crate) fn create_queue(&mut self, now: Timestamp, request: CreateQueue) -> Result<Queue, QueueError> {
        if self.queues.contains_key(&request.name) {
            return Err(QueueError::AlreadyExists(request.name));
        }
        if self.queues.len() >= self.options.limits.queues {
            return Err(QueueError::TooManyQueues { max: self.options.limits.queues });
        }
        let settings = request.config.over(&self.options.defaults);
        self.check_settings(&request.name, &settings)?;
        let queue = Queue {
            name: request.name.clone(),
            created_at: now,
            version: self.next_version(),
            config: request.config,
            pauses: Pauses::default(),
        };
        let state = QueueState {
            queue: queue.clone(),
            settings,
            messages: BTreeMap::new(),
            holds: BTreeMap::new(),
            totals: Totals::default(),
            turns: Turns::default(),
        };
        self.queues.insert(request.name, state);
        Ok(queue)
    }

    pub(crate) fn update_queue(&mut self, request: UpdateQueue) -> Result<Queue, QueueError> {
        let actual = self.queue(&request.name)?.queue.version;
        if let Some(expected) = request.expected.filter(|expected| *expected != actual) {
            return Err(QueueError::VersionMismatch { expected, actual });
        }
        let settings = request.config.over(&self.options.defaults);
        self.check_settings(&request.name, &settings)?;
        let version = self.next_version();
        let queue = self.queue_mut(&request.name)?;
        queue.settings = settings;
        queue.queue.config = request.config;
        queue.queue.version = version;
        Ok(queue.queue.clone())
    }

    fn check_settings(&self, name: &QueueName, settings: &QueueSettings) -> Result<(), QueueError> {
        settings.check()?;
        let first = settings.dead_letter_to.as_ref();
        let mut next = first;
        // A line longer than there are queues goes round in a circle somewhere, with or without this queue.
        for _ in 0..self.queues.len() + 2 {
            match next {
                None => return Ok(()),
                Some(target) if target == name => break,
                Some(target) => {
                    next = self.queues.get(target).and_then(|queue| queue.settings.dead_letter_to.as_ref());
                }
            }
        }
        Err(QueueError::DeadLetterCycle(first.unwrap_or(name).clone()))
    }

    pub(crate) fn delete_queue(&mut self, request: &DeleteQueue) -> Result<(), QueueError> {
        let messages = self.queue(&request.name)?.messages.len() as u64;
        if messages > 0 && !request.force {
            return Err(QueueError::NotEmpty { messages });
        }
        self.queues.remove(&request.name);
        Ok(())
    }

    pub(crate) fn pause_queue(&mut self, now: Timestamp, request: PauseQueue) -> Result<Queue, QueueError> {
        let queue = self.queue_mut(&request.name)?;
        queue.queue.pauses.set(request.key, request.pause, now)?;
        Ok(queue.queue.clone())
    }

    pub(crate) fn get_queue(&self, name: &QueueName) -> Option<Queue> {
        self.queues.get(name).map(|state| state.queue.clone())
    }

    pub(crate) fn list_queues(&self, after: Option<&QueueName>, limit: usize) -> Vec<Queue> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let queues = self.queues.range::<QueueName, _>((start, Bound::Unbounded));
        queues.take(limit).map(|(_, state)| state.queue.clone()).collect()
    }
}
