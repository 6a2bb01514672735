//! Carrying an operation out, step by step.

use std::pin::pin;
use std::sync::Arc;

use redrive_core::time::Millis;
use redrive_store::{
    Bulk, EntryKey, EntryKind, EntryName, Expect, Limit, QueueError, RetryAdvice, Selection, Write,
    WriteOutcome, Writes,
};
use tokio::sync::{Notify, watch};

use super::Wish;
use super::record::{Operation, OperationId, OperationState, Work};
use crate::broker::Broker;
use crate::clock::pause;
use crate::error::BrokerError;

/// How many messages one step touches at most.
const STEP_MAX: usize = 500;
/// How long to wait before a step is tried again that the store could not do.
const TRY_AGAIN: Millis = Millis::from_secs(1);

/// A step that takes this long is not the end of the instance: the others are told that it goes on.
const STILL_HERE: Millis = Millis::from_secs(10);

/// Whether the operation goes on here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Step,
    Over,
}

/// An operation that is under way here.
#[derive(Debug)]
pub(super) struct Ours {
    pub(super) operation: Operation,
    /// The version of its record that is known here, and the state that is in it.
    pub(super) version: u64,
    pub(super) written: OperationState,
}

/// What somebody wants of an operation, here or at another instance.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) wished: watch::Receiver<Wish>,
    pub(super) look: Arc<Notify>,
}

impl Broker {
    /// Carries an operation out until it has come to its end, or somebody wants it to stop.
    pub(super) async fn carry_out(&self, operation: Operation, version: u64, mut asked: Asked) {
        let written = operation.state;
        let mut ours = Ours { operation, version, written };
        loop {
            match self.go_on(&mut ours, &mut asked).await {
                Ok(Next::Step) => {}
                Ok(Next::Over) => return,
                Err(error) => {
                    return tracing::error!(id = %ours.operation.id, %error, "an operation was given up");
                }
            }
        }
    }

    /// Does what is wanted of the operation, one step of it, and waits as its rate says.
    async fn go_on(&self, ours: &mut Ours, asked: &mut Asked) -> Result<Next, BrokerError> {
        if self.heed(ours, asked).await? == Next::Over {
            return Ok(Next::Over);
        }
        // Whoever was away for too long asks before the next step, not after it.
        if self.is_late(&ours.operation, self.now()) && self.keep_ours(ours).await? == Next::Over {
            return Ok(Next::Over);
        }
        let wait = match self.next_step(ours).await {
            Ok(Some(touched)) => ours.operation.rate.map_or(Millis::ZERO, |rate| {
                Millis::new(touched.saturating_mul(1_000) / u64::from(rate.max(1)))
            }),
            Ok(None) => return Ok(Next::Over),
            Err(error) if self.may_step_again(&error) => {
                tracing::warn!(id = %ours.operation.id, %error, "a step of an operation is tried again");
                TRY_AGAIN
            }
            Err(error) => {
                ours.operation.state = OperationState::Failed;
                ours.operation.problem = Some(error.to_string());
                Millis::ZERO
            }
        };
        ours.operation.updated_at = self.now();
        if self.keep_ours(ours).await? == Next::Over {
            return Ok(Next::Over);
        }
        if ours.operation.state.is_ended() {
            self.tell_operation(&ours.operation);
            return Ok(Next::Over);
        }
        self.wait_for_step(wait, ours, asked).await
    }

    /// Waits before the next step, unless somebody wants something else first.
    async fn wait_for_step(
        &self,
        wait: Millis,
        ours: &mut Ours,
        asked: &mut Asked,
    ) -> Result<Next, BrokerError> {
        let mut waited = pin!(pause(wait));
        loop {
            tokio::select! {
                () = &mut waited => return Ok(Next::Step),
                changed = asked.wished.changed() => {
                    return Ok(if changed.is_err() { Next::Over } else { Next::Step });
                }
                // What others want is wished for here then.
                () = asked.look.notified() => if self.reconcile(ours).await? == Next::Over {
                    return Ok(Next::Over);
                },
            }
        }
    }

    /// Whether a step that failed is done again. A database may lose an answer and go on; what the step had done by then is
    /// not done twice, and not counted.
    fn may_step_again(&self, error: &BrokerError) -> bool {
        match error.advice() {
            RetryAdvice::Retry => true,
            RetryAdvice::Ask => self.peers.is_some(),
            RetryAdvice::GiveUp => false,
        }
    }

    /// Writes an operation down as often as it takes: a store that is full for a moment must not end a purge.
    pub(super) async fn keep_again(&self, operation: &Operation, version: u64) -> Result<u64, BrokerError> {
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
    async fn heed(&self, ours: &mut Ours, asked: &mut Asked) -> Result<Next, BrokerError> {
        loop {
            let wish = *asked.wished.borrow_and_update();
            if wish == Wish::Rest {
                self.leave_operation(ours).await;
                return Ok(Next::Over);
            }
            if ours.operation.state != wish.state() {
                ours.operation.state = wish.state();
                ours.operation.updated_at = self.now();
                if self.keep_ours(ours).await? == Next::Over {
                    return Ok(Next::Over);
                }
                self.tell_operation(&ours.operation);
                continue;
            }
            match wish {
                Wish::Cancel => return Ok(Next::Over),
                Wish::Pause => tokio::select! {
                    () = asked.look.notified() => {
                        if self.reconcile(ours).await? == Next::Over {
                            return Ok(Next::Over);
                        }
                    }
                    changed = asked.wished.changed() => if changed.is_err() {
                        return Ok(Next::Over);
                    },
                },
                Wish::Run | Wish::Rest => return Ok(Next::Step),
            }
        }
    }

    /// One step; answers how many messages it touched, and nothing where the operation goes on elsewhere.
    async fn next_step(&self, ours: &mut Ours) -> Result<Option<u64>, BrokerError> {
        let operation = &ours.operation;
        let most = operation.rate.map_or(STEP_MAX, |rate| STEP_MAX.min(rate.max(1) as usize));
        let selection = Selection {
            after: operation.cursor,
            until: operation.until,
            limit: Limit::new(most)?,
            ..Selection::new(operation.queue.clone(), operation.filter.clone())
        };
        let work = operation.work.clone();
        let mut step = pin!(self.step(selection, &work));
        let bulk = loop {
            tokio::select! {
                biased;
                bulk = &mut step => break bulk?,
                () = self.still_here() => if self.keep_ours(ours).await? == Next::Over {
                    return Ok(None);
                },
            }
        };
        let progress = &mut ours.operation.progress;
        progress.matched += bulk.matched;
        progress.applied += bulk.applied.len() as u64;
        progress.refused += bulk.refused.len() as u64;
        ours.operation.cursor = bulk.next;
        if bulk.next.is_none() {
            ours.operation.state = OperationState::Done;
        }
        Ok(Some(bulk.matched))
    }

    /// Returns when the others have to be told that this instance still carries out what it began.
    async fn still_here(&self) {
        match &self.peers {
            Some(_) => self.clock.until(self.now().plus(STILL_HERE)).await,
            None => std::future::pending().await,
        }
    }

    /// One step of any work.
    pub(super) async fn step(&self, selection: Selection, work: &Work) -> Result<Bulk, BrokerError> {
        match work {
            Work::Redrive { by, reason } => self.redrive(selection, by.clone(), reason.clone()).await,
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
