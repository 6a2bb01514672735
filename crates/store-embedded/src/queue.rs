//! Queues: create, update, delete, pause, and looking at them.

use std::ops::Bound;

use redrive_core::queue::{Pauses, Queue, QueueName, QueueSettings};
use redrive_core::time::Timestamp;
use redrive_store::{CreateQueue, DeleteQueue, PauseQueue, QueueError, UpdateQueue};

use crate::core::Core;
use crate::format::record;
use crate::state::queue::QueueState;

impl Core {
    pub(crate) fn create_queue(&mut self, now: Timestamp, request: CreateQueue) -> Result<Queue, QueueError> {
        if self.names.contains_key(&request.name) {
            return Err(QueueError::AlreadyExists(request.name));
        }
        if self.names.len() >= self.options.limits.queues {
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
        self.store.queues += 1;
        let number = self.store.queues;
        self.names.insert(request.name, number);
        self.queues.insert(number, Box::new(QueueState::new(number, queue.clone(), settings)));
        self.put_queue(number);
        Ok(queue)
    }

    pub(crate) fn update_queue(&mut self, request: UpdateQueue) -> Result<Queue, QueueError> {
        let number = self.number(&request.name)?;
        let actual = self.queue(number).queue.version;
        if let Some(expected) = request.expected.filter(|expected| *expected != actual) {
            return Err(QueueError::VersionMismatch { expected, actual });
        }
        let settings = request.config.over(&self.options.defaults);
        self.check_settings(&request.name, &settings)?;
        let version = self.next_version();
        let before = self.queue(number).queue.clone();
        let queue = Queue { config: request.config, version, ..before };
        self.apply_config(number, queue.clone(), settings);
        self.put_queue(number);
        Ok(queue)
    }

    fn check_settings(&self, name: &QueueName, settings: &QueueSettings) -> Result<(), QueueError> {
        settings.check()?;
        let first = settings.dead_letter_to.as_ref();
        let mut next = first;
        // A line longer than there are queues goes round in a circle somewhere, with or without this queue.
        for _ in 0..self.names.len() + 2 {
            match next {
                None => return Ok(()),
                Some(target) if target == name => break,
                Some(target) => {
                    let queue = self.names.get(target).map(|number| self.queue(*number));
                    next = queue.and_then(|queue| queue.settings.dead_letter_to.as_ref());
                }
            }
        }
        Err(QueueError::DeadLetterCycle(first.unwrap_or(name).clone()))
    }

    /// A queue has another configuration, which acts on what waits in it.
    pub(crate) fn apply_config(&mut self, number: u32, config: Queue, settings: QueueSettings) {
        let now = self.time.floor;
        let (queue, messages) = self.parts(number);
        let caps = |settings: &QueueSettings| (settings.retry.max_attempts, settings.max_deliveries);
        let same_caps = caps(&queue.settings) == caps(&settings);
        (queue.queue, queue.settings) = (config, settings);
        queue.turns.readmit();
        if same_caps {
            return;
        }
        // Who was over a cap may be under it now, and the other way round.
        let all: Vec<u32> = queue.ids.after(None).map(|(_, slot)| slot).collect();
        for slot in all {
            if messages.at(slot).stage.is_waiting() {
                queue.unindex(messages, slot);
                queue.index(messages, slot, now);
            }
        }
    }

    pub(crate) fn delete_queue(&mut self, request: &DeleteQueue) -> Result<(), QueueError> {
        let number = self.number(&request.name)?;
        let messages = self.queue(number).ids.len() as u64;
        if messages > 0 && !request.force {
            return Err(QueueError::NotEmpty { messages });
        }
        record::put_queue_gone(&mut self.journal.frame, number);
        self.apply_queue_gone(number);
        Ok(())
    }

    /// A queue is gone, and with it what was in it.
    pub(crate) fn apply_queue_gone(&mut self, number: u32) {
        let Some(queue) = self.queues.get(&number) else { return };
        let all: Vec<u32> = queue.ids.after(None).map(|(_, slot)| slot).collect();
        for slot in all {
            self.detach(slot);
        }
        let Some(queue) = self.queues.remove(&number) else { return };
        queue.holds.iter().for_each(|(_, hold)| self.journal.let_go(hold.at, 0));
        if queue.length > 0 {
            self.journal.let_go(queue.at, queue.length);
        }
        // When a journal is read, another queue may have the name by now.
        if self.names.get(&queue.queue.name) == Some(&number) {
            self.names.remove(&queue.queue.name);
        }
    }

    pub(crate) fn pause_queue(&mut self, now: Timestamp, request: PauseQueue) -> Result<Queue, QueueError> {
        let number = self.number(&request.name)?;
        let queue = self.queue_mut(number);
        queue.queue.pauses.set(request.key, request.pause, now)?;
        queue.turns.readmit();
        let answer = queue.queue.clone();
        self.put_queue(number);
        Ok(answer)
    }

    pub(crate) fn get_queue(&self, name: &QueueName) -> Option<Queue> {
        self.names.get(name).map(|number| self.queue(*number).queue.clone())
    }

    pub(crate) fn list_queues(&self, after: Option<&QueueName>, limit: usize) -> Vec<Queue> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let queues = self.names.range::<QueueName, _>((start, Bound::Unbounded));
        queues.take(limit).map(|(_, number)| self.queue(*number).queue.clone()).collect()
    }
}
