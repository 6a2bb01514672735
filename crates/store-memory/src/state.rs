//! Everything the store knows.

use std::collections::{BTreeMap, BTreeSet};

use redrive_core::lease::LeaseId;
use redrive_core::lifecycle::Terms;
use redrive_core::message::{DedupKey, FairnessKey, Lane, Message, MessageId, MessageType, Phase, Source};
use redrive_core::policy::{LaneCredit, Ring};
use redrive_core::queue::{Queue, QueueName, QueueSettings, Totals};
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Entry, EntryKey, LogName, Now, QueueNotFound, StoreError};

use crate::Options;
use crate::dedup::Hold;
use crate::log::Log;

/// Everything the store knows.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) options: Options,
    /// The latest time seen; time never runs back.
    floor: Timestamp,
    epoch: u16,
    leases: u64,
    sequence: u64,
    version: u64,
    pub(crate) queues: BTreeMap<QueueName, QueueState>,
    pub(crate) registry: BTreeMap<EntryKey, Entry>,
    pub(crate) logs: BTreeMap<LogName, Log>,
}

/// One queue and what is in it.
#[derive(Debug, Clone)]
pub(crate) struct QueueState {
    pub(crate) queue: Queue,
    pub(crate) settings: QueueSettings,
    pub(crate) messages: BTreeMap<MessageId, Message>,
    pub(crate) holds: BTreeMap<DedupKey, Hold>,
    pub(crate) totals: Totals,
    pub(crate) turns: Turns,
}

/// Whose turn it is: what an instance keeps for itself and forgets when it ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    pub(crate) credit: LaneCredit,
    fresh: Ring<FairnessKey>,
    retry: Ring<FairnessKey>,
}

impl Turns {
    pub(crate) fn ring(&mut self, lane: Lane) -> &mut Ring<FairnessKey> {
        match lane {
            Lane::Fresh => &mut self.fresh,
            Lane::Retry => &mut self.retry,
        }
    }
}

impl State {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            epoch: options.first_epoch,
            options,
            floor: Timestamp::EPOCH,
            leases: 0,
            sequence: 0,
            version: 0,
            queues: BTreeMap::new(),
            registry: BTreeMap::new(),
            logs: BTreeMap::new(),
        }
    }

    /// The time of a call.
    pub(crate) fn clock(&mut self, now: Now) -> Result<Timestamp, StoreError> {
        match now {
            Now::At(at) => {
                self.floor = self.floor.max(at);
                Ok(self.floor)
            }
            Now::Store => Err(StoreError::Unsupported { backend: "memory", what: "a clock of its own" }),
        }
    }

    /// The next place at the back of every line.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// A version that was never used.
    pub(crate) fn next_version(&mut self) -> u64 {
        self.version += 1;
        self.version
    }

    /// A fencing token larger than every other.
    pub(crate) fn next_lease(&mut self) -> Result<LeaseId, StoreError> {
        self.leases += 1;
        LeaseId::new(self.epoch, self.leases).ok_or(StoreError::Exhausted("lease ids"))
    }

    pub(crate) fn queue(&self, name: &QueueName) -> Result<&QueueState, QueueNotFound> {
        self.queues.get(name).ok_or_else(|| QueueNotFound(name.clone()))
    }

    pub(crate) fn queue_mut(&mut self, name: &QueueName) -> Result<&mut QueueState, QueueNotFound> {
        self.queues.get_mut(name).ok_or_else(|| QueueNotFound(name.clone()))
    }

    /// The queues that a sweeper was sent to: one, or all.
    pub(crate) fn queues_of(&self, name: Option<&QueueName>) -> Result<Vec<QueueName>, QueueNotFound> {
        match name {
            Some(name) => self.queue(name).map(|_| vec![name.clone()]),
            None => Ok(self.queues.keys().cloned().collect()),
        }
    }

    /// What is left after the process ended and another began at `now`.
    pub(crate) fn reopened(&self, now: Timestamp) -> Result<Self, StoreError> {
        let mut next = self.clone();
        next.epoch = next.epoch.checked_add(1).ok_or(StoreError::Exhausted("epochs"))?;
        next.leases = 0;
        next.floor = self.floor.max(now);
        let granted = next.floor.plus(self.options.restart_grace);
        for queue in next.queues.values_mut() {
            queue.turns = Turns::default();
            for message in queue.messages.values_mut() {
                // Without a grace the deadline stays what it was: other instances may be at work.
                if let Phase::Leased(lease) = &mut message.progress.phase
                    && lease.deadline <= next.floor
                    && self.options.restart_grace > Millis::ZERO
                {
                    lease.deadline = granted;
                }
            }
        }
        Ok(next)
    }
}

impl QueueState {
    /// What a message of this queue is judged by.
    pub(crate) fn terms(&self, message: &Message) -> Terms {
        Terms::new(&self.settings, message.spec.max_attempts)
    }

    /// Whether a message of that type and source may come in: it brings no new pair, or there is room for one.
    pub(crate) fn takes_class(&self, kind: &MessageType, source: &Source, max: usize) -> bool {
        let classes = self.messages.values().map(|message| (&message.spec.kind, &message.spec.source));
        classes.clone().any(|class| class == (kind, source)) || classes.collect::<BTreeSet<_>>().len() < max
    }
}
