//! Which instance carries an operation out, where there are several.
//!
//! The record names its owner, with an end that every write of the owner puts off. Whoever finds the end passed, or no owner
//! at all, may sign instead, by compare-and-set: one of them wins, and the one before finds out by its next write. Where the
//! store has one owner, nobody signs.

use std::sync::PoisonError;

use redrive_core::time::{Millis, Timestamp};
use redrive_store::{EntryKind, Limit, QueueError, RetryAdvice};

use super::record::{Operation, OperationId, OperationState, Owner};
use super::run::{Next, Ours};
use super::{OPERATIONS_MAX, Wish};
use crate::broker::Broker;
use crate::error::BrokerError;
use crate::instances::LIFETIME;

/// By so much the clocks of instances never differ.
const PAST: Millis = Millis::from_secs(3_600);

/// Whether somebody else wrote in between, or may have.
pub(super) fn is_conflict(error: &BrokerError) -> bool {
    matches!(error, BrokerError::Queue(QueueError::VersionMismatch { .. }))
        || error.advice() == RetryAdvice::Ask
}

impl Broker {
    /// The operation as this instance's own, from now on for as long as a lock lives. What has come to its end is nobody's.
    pub(super) fn signed(&self, operation: Operation) -> Operation {
        let owner = self
            .peers
            .as_ref()
            .filter(|_| !operation.state.is_ended())
            .map(|peers| Owner::new(peers.token.to_string(), self.now().plus(LIFETIME)));
        Operation { owner, ..operation }
    }

    /// Whether this instance carries the operation out, if anybody does.
    pub(super) fn owns(&self, operation: &Operation) -> bool {
        let Some(peers) = &self.peers else { return true };
        operation.owner.as_ref().is_some_and(|owner| owner.token == peers.token.to_string())
    }

    /// Whether nobody would mind if this instance carried it out.
    pub(super) fn may_take(&self, operation: &Operation) -> bool {
        self.peers.is_none() || operation.owner.as_ref().is_none_or(|owner| owner.until() <= self.now())
    }

    /// Whether an operation should be under way, and nobody carries it out.
    pub(super) fn is_orphan(&self, operation: &Operation) -> bool {
        operation.state == OperationState::Running && self.may_take(operation)
    }

    /// Carries an operation out from here on, unless another instance does.
    pub(super) async fn take_operation(&self, operation: Operation, version: u64) -> Result<(), BrokerError> {
        if self.peers.is_none() {
            self.run_operation(operation, version);
            return Ok(());
        }
        if self.is_stopping() || self.operations.lock().len() >= OPERATIONS_MAX {
            return Ok(());
        }
        let operation = self.signed(operation);
        match self.keep_operation(&operation, Some(version)).await {
            Ok(version) => {
                tracing::info!(id = %operation.id, "an operation goes on at this instance");
                self.run_operation(operation, version);
                Ok(())
            }
            // Another instance was faster, or it will be seen the next time.
            Err(error) if is_conflict(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Goes on with what another instance left behind.
    pub(crate) async fn adopt_operations(&self) -> Result<(), BrokerError> {
        let mut after = self.operations.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut all_ended = true;
        loop {
            let entries = self.store.registry_list(EntryKind::Operation, after.as_ref(), Limit::MAX).await?;
            let Some(last) = entries.last().map(|entry| entry.key.name.clone()) else { return Ok(()) };
            for entry in entries {
                let operation = Operation::decode(&entry.value);
                all_ended &= operation.as_ref().is_none_or(|operation| self.is_past(operation));
                if all_ended {
                    let mut ended = self.operations.ended.lock().unwrap_or_else(PoisonError::into_inner);
                    *ended = Some(entry.key.name);
                }
                if let Some(operation) = operation.filter(|operation| self.is_orphan(operation)) {
                    self.adopt_operation(operation, entry.version).await?;
                }
            }
            after = Some(last);
        }
    }

    /// Whether an operation has ended, so long ago that no instance gives out an id below its own any more.
    fn is_past(&self, operation: &Operation) -> bool {
        operation.state.is_ended() && self.now().since(operation.started_at) > PAST
    }

    async fn adopt_operation(&self, operation: Operation, version: u64) -> Result<(), BrokerError> {
        // Who carried it out here finds out that another has done so since.
        if self.operations.look(operation.id) {
            return Ok(());
        }
        self.take_operation(operation, version).await
    }

    /// Another instance wrote into the record of an operation.
    pub(crate) async fn refresh_operation(&self, id: OperationId) -> Result<(), BrokerError> {
        if self.operations.look(id) {
            return Ok(());
        }
        match self.read_operation(id).await {
            Ok((operation, version)) if self.is_orphan(&operation) => {
                self.take_operation(operation, version).await
            }
            Ok(_) | Err(BrokerError::OperationNotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Another instance may have written into the records of operations that are under way here.
    pub(crate) fn refresh_operations(&self) {
        for running in self.operations.lock().values() {
            running.look.notify_one();
        }
    }

    /// Writes an operation down that is under way here, whatever others wanted of it meanwhile; says whether it goes on
    /// here.
    pub(super) async fn keep_ours(&self, ours: &mut Ours) -> Result<Next, BrokerError> {
        loop {
            ours.operation = self.signed(ours.operation.clone());
            match self.keep_again(&ours.operation, ours.version).await {
                Ok(version) => {
                    ours.version = version;
                    ours.written = ours.operation.state;
                    return Ok(Next::Step);
                }
                Err(error) if self.peers.is_some() && is_conflict(&error) => {
                    if self.reconcile(ours).await? == Next::Over {
                        return Ok(Next::Over);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes over what others wrote into the record; says whether the operation goes on here.
    pub(super) async fn reconcile(&self, ours: &mut Ours) -> Result<Next, BrokerError> {
        let id = ours.operation.id;
        let (there, version) = match self.read_operation(id).await {
            Err(BrokerError::OperationNotFound(_)) => return Ok(Next::Over),
            read => read?,
        };
        if version == ours.version {
            return Ok(Next::Step);
        }
        if !self.owns(&there) || there.state.is_ended() {
            tracing::info!(%id, "an operation goes on elsewhere, or was ended there");
            return Ok(Next::Over);
        }
        ours.version = version;
        // What is done is done: nothing is left to be paused.
        if there.state != ours.written && !ours.operation.state.is_ended() {
            let paused = there.state == OperationState::Paused;
            self.operations.wish(id, if paused { Wish::Pause } else { Wish::Run });
            ours.operation.state = there.state;
        }
        ours.written = there.state;
        Ok(Next::Step)
    }

    /// Whether the others may think that this instance is gone.
    pub(super) fn is_late(&self, operation: &Operation, now: Timestamp) -> bool {
        self.peers.is_some() && operation.owner.as_ref().is_none_or(|owner| owner.until() <= now)
    }

    /// Leaves an operation to whoever comes next.
    pub(super) async fn leave_operation(&self, ours: &Ours) {
        if self.peers.is_none() {
            return;
        }
        let operation = Operation { owner: None, ..ours.operation.clone() };
        match self.keep_operation(&operation, Some(ours.version)).await {
            Ok(_) => self.tell_entry(EntryKind::Operation, &operation.id.to_string()),
            Err(error) => tracing::warn!(id = %operation.id, %error, "an operation is taken over later"),
        }
    }
}

impl super::Operations {
    /// Tells who carries an operation out that its record is another; says whether it is under way here.
    fn look(&self, id: OperationId) -> bool {
        let running = self.lock();
        running.get(&id).map(|running| running.look.notify_one()).is_some()
    }
}
