//! expire: leased → delayed | ready | dead, for leases whose deadline has passed.

use redrive_core::dice::Dice;
use redrive_core::lease::{Lease, LeaseId};
use redrive_core::lifecycle::{self, OVERDUE_ERROR, Verb};
use redrive_core::message::{ErrorText, MessageId};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{ExpireRequest, Judged, QueueError};

use crate::state::State;

impl State {
    pub(crate) fn expire(
        &mut self,
        now: Timestamp,
        request: &ExpireRequest,
    ) -> Result<Vec<Judged>, QueueError> {
        let mut overdue: Vec<(Timestamp, LeaseId, QueueName, MessageId)> = Vec::new();
        for name in self.queues_of(request.queue.as_ref())? {
            for message in self.queue(&name)?.messages.values() {
                if let Some(Lease { id, deadline, .. }) =
                    message.lease().filter(|lease| lease.is_overdue(now))
                {
                    overdue.push((*deadline, *id, name.clone(), message.id()));
                }
            }
        }
        overdue.sort_unstable();
        let error = request.error.clone().unwrap_or_else(|| ErrorText::new(OVERDUE_ERROR));
        let mut judged = Vec::new();
        for (_, _, name, id) in overdue.into_iter().take(request.limit.get()) {
            judged.extend(self.expire_one(now, (&name, id), error.clone(), request.seed));
        }
        Ok(judged)
    }

    fn expire_one(
        &mut self,
        now: Timestamp,
        (name, id): (&QueueName, MessageId),
        error: ErrorText,
        seed: u64,
    ) -> Option<Judged> {
        let sequence = self.next_sequence();
        let queue = self.queues.get_mut(name)?;
        let terms = queue.terms(queue.messages.get(&id)?);
        let progress = &mut queue.messages.get_mut(&id)?.progress;
        let mut dice = Dice::for_attempt(seed, id, progress.attempts);
        let ended = lifecycle::expire(progress, &terms, error, sequence, now, &mut dice)?;
        self.ended((Verb::Expire, name, id), ended, now)
    }
}
