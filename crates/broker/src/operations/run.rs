//! Carrying an operation out, step by step.

use redrive_core::time::Millis;
use redrive_store::{
    Bulk, EntryKey, EntryKind, EntryName, Expect, Limit, QueueError, RetryAdvice, Selection, Write,
    WriteOutcome, Writes,
};
use tokio::sync::watch;

use super::Wish;
use super::record::{Operation, OperationId, OperationState, Work};
use crate::broker::Broker;
use crate::clock::pause;
use crate::error::BrokerError;
use crate::events::{Happening, Trigger};

/// How many messages one step touches at most.
const STEP_MAX: usize = 500;
/// How long to wait before a step is tried again that the store could not do.
const TRY_AGAIN: Millis = Millis::from_secs(1);

/// Whether the operation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Step,
    Over,
}

impl Broker {
    /// Carries an operation out until it has come to its end, or somebody wants it to stop.
    pub(super) async fn carry_out(
        &self,
        mut operation: Operation,
        mut version: u64,
        mut wished: watch::Receiver<Wish>,
    ) {
        loop {
            match self.heed(&mut operation, &mut version, &mut wished).await {
                Ok(Next::Step) => {}
                Ok(Next::Over) => return,
                Err(error) => return tracing::error!(id = %operation.id, %error, "an operation was given up"),
            }
            let wait = match self.next_step(&mut operation).await {
                Ok(touched) => operation.rate.map_or(Millis::ZERO, |rate| {
                    Millis::new(touched.saturating_mul(1_000) / u64::from(rate.max(1)))
                }),
                Err(error) if error.advice() == RetryAdvice::Retry => {
                    tracing::warn!(id = %operation.id, %error, "a step of an operation is tried again");
                    TRY_AGAIN
                }
                Err(error) => {
                    operation.state = OperationState::Failed;
                    operation.problem = Some(error.to_string());
                    Millis::ZERO
                }
            };
            operation.updated_at = self.now();
            match self.keep_again(&operation, version).await {
                Ok(kept) => version = kept,
                Err(error) => return tracing::error!(id = %operation.id, %error, "an operation was given up"),
            }
            if operation.state.is_ended() {
                return self.tell_operation(&operation);
            }
            tokio::select! {
                () = pause(wait) => {}
                changed = wished.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Writes an operation down as often as it takes: a store that is full for a moment must not end a purge.
    async fn keep_again(&self, operation: &Operation, version: u64) -> Result<u64, BrokerError> {
        loop {
            match self.keep_operation(operation, Some(version)).await {
                Err(error) if error.advice() == RetryAdvice::Retry && !self.is_stopping() => {
                    tracing::warn!(id = %operation.id, %error, "an operation cannot be written down yet");
                    pause(TRY_AGAIN).await;
                }
                kept => return kept,
            }
        }
    }

    /// Does what somebody wants of the operation, and waits while it is paused.
    async fn heed(
        &self,
        operation: &mut Operation,
        version: &mut u64,
        wished: &mut watch::Receiver<Wish>,
    ) -> Result<Next, BrokerError> {
        loop {
            let wish = *wished.borrow_and_update();
            let state = match wish {
                Wish::Rest => return Ok(Next::Over),
                Wish::Run => OperationState::Running,
                Wish::Pause => OperationState::Paused,
                Wish::Cancel => OperationState::Cancelled,
            };
            if operation.state != state {
                operation.state = state;
                operation.updated_at = self.now();
                *version = self.keep_operation(operation, Some(*version)).await?;
                self.tell_operation(operation);
            }
            match wish {
                Wish::Cancel => return Ok(Next::Over),
                Wish::Pause => {
                    if wished.changed().await.is_err() {
                        return Ok(Next::Over);
                    }
                }
                Wish::Run | Wish::Rest => return Ok(Next::Step),
            }
        }
    }

    /// One step; answers how many messages it touched.
    async fn next_step(&self, operation: &mut Operation) -> Result<u64, BrokerError> {
        let most = operation.rate.map_or(STEP_MAX, |rate| STEP_MAX.min(rate.max(1) as usize));
        let selection = Selection {
            after: operation.cursor,
            limit: Limit::new(most)?,
            ..Selection::new(operation.queue.clone(), operation.filter.clone())
        };
        let bulk = self.step(selection, &operation.work).await?;
        let progress = &mut operation.progress;
        progress.matched += bulk.matched;
        progress.applied += bulk.applied.len() as u64;
        progress.refused += bulk.refused.len() as u64;
        operation.cursor = bulk.next;
        if bulk.next.is_none() {
            operation.state = OperationState::Done;
        }
        Ok(bulk.matched)
    }

    /// One step of any work.
    pub(super) async fn step(&self, selection: Selection, work: &Work) -> Result<Bulk, BrokerError> {
        match work {
            Work::Redrive { by, reason } => {
                let (queue, dry_run) = (selection.queue.clone(), selection.dry_run);
                let redriven = self.store.redrive(self.at(), selection, by.clone(), reason.clone()).await?;
                if !dry_run {
                    let count = redriven.applied.len() as u64;
                    self.events.tell(Happening::Requeue, &queue, count, Trigger::Operator, self.now());
                    self.wake_queue(&queue);
                }
                Ok(redriven)
            }
            Work::Discard { force } => self.discard(selection, *force).await,
            Work::Move { target } => self.move_to(selection, target.clone()).await,
        }
    }

    pub(super) async fn read_operation(&self, id: OperationId) -> Result<(Operation, u64), BrokerError> {
        let entry = self.store.registry_get(&key(id)?).await?;
        let entry = entry.ok_or(BrokerError::OperationNotFound(id))?;
        let operation = Operation::decode(&entry.value).ok_or(BrokerError::OperationNotFound(id))?;
        Ok((operation, entry.version))
    }

    /// Writes an operation down, if nobody else has; answers its version.
    pub(super) async fn keep_operation(
        &self,
        operation: &Operation,
        version: Option<u64>,
    ) -> Result<u64, BrokerError> {
        let expect = version.map_or(Expect::Absent, Expect::Version);
        let write = Write { key: key(operation.id)?, expect, value: Some(operation.encode()?.into()) };
        match self.store.registry_write(Writes::new(vec![write])?).await? {
            WriteOutcome::Committed(versions) => {
                Ok(versions.into_iter().flatten().next().unwrap_or_default())
            }
            WriteOutcome::Conflict { actual, .. } => Err(QueueError::VersionMismatch {
                expected: version.unwrap_or_default(),
                actual: actual.unwrap_or_default(),
            }
            .into()),
        }
    }
}

fn key(id: OperationId) -> Result<EntryKey, BrokerError> {
    Ok(EntryKey { kind: EntryKind::Operation, name: EntryName::new(id.to_string())? })
}
