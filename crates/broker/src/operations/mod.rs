//! Operations: work on more messages than one call may touch. Kept in the store, with progress; they can be paused and
//! cancelled, and go on after a restart where they were. Where there are several instances, one of them carries an operation
//! out, and the others ask for what they want of it in its record.

mod bound;
mod owner;
mod record;
mod run;

pub use record::{Operation, OperationId, OperationState, Progress, Work};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;
use redrive_store::{EntryKind, EntryName, Filter, Limit, Selection};
use tokio::sync::{Notify, watch};

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::events::{Act, Happening, Trigger};
use owner::is_conflict;

/// How many operations may be under way at a time.
const OPERATIONS_MAX: usize = 64;

/// What somebody wants of an operation that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Run,
    Pause,
    Cancel,
    /// The broker ends; the operation keeps where it is.
    Rest,
}

impl Wish {
    /// The state in which the operation is then.
    const fn state(self) -> OperationState {
        match self {
            Self::Run | Self::Rest => OperationState::Running,
            Self::Pause => OperationState::Paused,
            Self::Cancel => OperationState::Cancelled,
        }
    }
}

#[derive(Debug)]
struct Running {
    wish: watch::Sender<Wish>,
    /// Another instance wrote into its record.
    look: Arc<Notify>,
    /// Closed when the task has ended.
    ended: watch::Receiver<()>,
}

/// The operations that are under way here.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    running: Mutex<HashMap<OperationId, Running>>,
    /// The last of the first operations that have all ended: nobody has to look at those again.
    ended: Mutex<Option<EntryName>>,
}

impl Operations {
    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets all operations finish their step and keep where they are.
    pub(crate) async fn rest(&self) {
        let ended: Vec<watch::Receiver<()>> = self
            .lock()
            .values()
            .map(|running| {
                running.wish.send_replace(Wish::Rest);
                running.ended.clone()
            })
            .collect();
        for mut ended in ended {
            // It only ever ends by the sender going away.
            drop(ended.changed().await);
        }
    }

    fn wish(&self, id: OperationId, wish: Wish) -> bool {
        match self.lock().get(&id) {
            Some(running) => {
                running.wish.send_replace(wish);
                true
            }
            None => false,
        }
    }
}

/// What an operation is to do.
#[derive(Debug, Clone)]
pub struct NewOperation {
    /// In which queue.
    pub queue: QueueName,
    /// To which messages.
    pub filter: Filter,
    /// What.
    pub work: Work,
    /// How many messages a second at most; `None` is as fast as it goes.
    pub rate: Option<u32>,
}

impl Broker {
    /// How many messages an operation would touch now.
    pub async fn dry_run(&self, new: &NewOperation) -> Result<u64, BrokerError> {
        self.matched(new, None).await
    }

    async fn matched(&self, new: &NewOperation, until: Option<MessageId>) -> Result<u64, BrokerError> {
        let whole = Selection::new(new.queue.clone(), new.filter.clone());
        let mut selection = Selection { dry_run: true, until, ..whole };
        selection.check()?;
        self.live(&new.queue).await?;
        let mut matched = 0;
        loop {
            let bulk = self.step(selection.clone(), &new.work).await?;
            matched += bulk.matched;
            match bulk.next {
                Some(next) => selection.after = Some(next),
                None => return Ok(matched),
            }
        }
    }

    /// Starts an operation, on what is there now.
    pub async fn start_operation(&self, mut new: NewOperation) -> Result<Operation, BrokerError> {
        let until = self.bound(&mut new).await?;
        let total = self.matched(&new, Some(until)).await?;
        if self.operations.lock().len() >= OPERATIONS_MAX {
            return Err(BrokerError::TooManyOperations { max: OPERATIONS_MAX });
        }
        if let Work::Move { target } = &new.work {
            self.live(target).await?;
        }
        let now = self.now();
        let id = self.chance.ids(now, 1)?.pop().map(OperationId).unwrap_or_default();
        let operation = Operation {
            id,
            queue: new.queue,
            filter: new.filter,
            work: new.work,
            rate: new.rate,
            state: OperationState::Running,
            progress: Progress { total, ..Progress::default() },
            cursor: None,
            until: Some(until),
            started_at: now,
            updated_at: now,
            problem: None,
            owner: None,
        };
        let operation = self.signed(operation);
        let version = self.keep_operation(&operation, None).await?;
        self.tell_operation(&operation);
        self.run_operation(operation.clone(), version);
        Ok(operation)
    }

    /// An operation.
    pub async fn operation(&self, id: OperationId) -> Result<Operation, BrokerError> {
        Ok(self.read_operation(id).await?.0)
    }

    /// Operations, the oldest first, after the one given.
    pub async fn operations(
        &self,
        after: Option<OperationId>,
        limit: Limit,
    ) -> Result<Vec<Operation>, BrokerError> {
        let after = after.map(|after| EntryName::new(after.to_string())).transpose()?;
        let entries = self.store.registry_list(EntryKind::Operation, after.as_ref(), limit).await?;
        Ok(entries.iter().filter_map(|entry| Operation::decode(&entry.value)).collect())
    }

    /// Pauses an operation after the step it is at.
    pub async fn pause_operation(&self, id: OperationId) -> Result<Operation, BrokerError> {
        self.change_operation(id, Wish::Pause).await
    }

    /// Lets an operation go on.
    pub async fn resume_operation(&self, id: OperationId) -> Result<Operation, BrokerError> {
        self.change_operation(id, Wish::Run).await
    }

    /// Ends an operation after the step it is at. What it did stays done.
    pub async fn cancel_operation(&self, id: OperationId) -> Result<Operation, BrokerError> {
        self.change_operation(id, Wish::Cancel).await
    }

    async fn change_operation(&self, id: OperationId, wish: Wish) -> Result<Operation, BrokerError> {
        loop {
            let (mut operation, version) = self.read_operation(id).await?;
            if operation.state.is_ended() {
                return Err(BrokerError::OperationEnded(id));
            }
            operation.state = wish.state();
            if self.owns(&operation) && self.operations.wish(id, wish) {
                // Whoever runs it writes it down.
                return Ok(operation);
            }
            // Where it is this instance's, nobody here carries it out any more.
            let run = wish == Wish::Run && (self.owns(&operation) || self.may_take(&operation));
            operation.updated_at = self.now();
            let operation = if run { self.signed(operation) } else { operation };
            match self.keep_operation(&operation, Some(version)).await {
                Ok(version) => {
                    if run {
                        self.run_operation(operation.clone(), version);
                    }
                    self.tell_entry(EntryKind::Operation, &id.to_string());
                    return Ok(operation);
                }
                // Whoever runs it came further meanwhile.
                Err(error) if self.peers.is_some() && is_conflict(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(crate) fn tell_operation(&self, operation: &Operation) {
        let what = Happening::Queue(Act::Operation);
        let done = operation.progress.applied;
        self.events.tell(what, &operation.queue, done, Trigger::Operator, self.now());
    }

    /// Goes on with what was under way when the broker ended.
    pub(crate) async fn resume_operations(&self) -> Result<(), BrokerError> {
        let mut after = None;
        loop {
            let entries = self.store.registry_list(EntryKind::Operation, after.as_ref(), Limit::MAX).await?;
            after = entries.last().map(|entry| entry.key.name.clone());
            for entry in &entries {
                match Operation::decode(&entry.value) {
                    Some(operation) if self.is_orphan(&operation) => {
                        self.take_operation(operation, entry.version).await?;
                    }
                    Some(_) => {}
                    None => tracing::error!(name = entry.key.name.as_str(), "an operation cannot be read"),
                }
            }
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn run_operation(&self, operation: Operation, version: u64) {
        let (wish, wished) = watch::channel(Wish::Run);
        let (alive, ended) = watch::channel(());
        let look = Arc::new(Notify::new());
        let id = operation.id;
        self.operations.lock().insert(id, Running { wish, look: Arc::clone(&look), ended });
        let broker = self.clone();
        tokio::spawn(async move {
            broker.carry_out(operation, version, run::Asked { wished, look }).await;
            broker.operations.lock().remove(&id);
            drop(alive);
        });
    }
}
