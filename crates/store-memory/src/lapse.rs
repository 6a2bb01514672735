//! lapse: ready | delayed → dead, for messages that can never be handed out again.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{DeadReason, ErrorText, MessageId};
use redrive_core::policy::Verdict;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Judged, QueueError, SweepRequest};

use crate::state::State;

impl State {
    pub(crate) fn lapse(
        &mut self,
        now: Timestamp,
        request: &SweepRequest,
    ) -> Result<Vec<Judged>, QueueError> {
        self.lapse_those(now, request, |_| true)
    }

    /// Lapses those messages whose reason is meant.
    pub(crate) fn lapse_those(
        &mut self,
        now: Timestamp,
        request: &SweepRequest,
        meant: impl Fn(DeadReason) -> bool,
    ) -> Result<Vec<Judged>, QueueError> {
        let mut lapsing: Vec<(Timestamp, MessageId, QueueName, DeadReason)> = Vec::new();
        for name in self.queues_of(request.queue.as_ref())? {
            let queue = self.queue(&name)?;
            for message in queue.messages.values() {
                if let Some(reason) = lifecycle::lapse_reason(&message.progress, &queue.terms(message), now)
                    && meant(reason)
                {
                    let too_old = message.progress.expires_at.filter(|_| reason == DeadReason::ExpiredTtl);
                    lapsing.push((too_old.unwrap_or(Timestamp::MAX), message.id(), name.clone(), reason));
                }
            }
        }
        lapsing.sort_unstable();
        let mut judged = Vec::new();
        for (_, id, name, reason) in lapsing.into_iter().take(request.limit.get()) {
            judged.extend(self.lapse_one(now, &name, id, reason));
        }
        Ok(judged)
    }

    pub(crate) fn lapse_one(
        &mut self,
        now: Timestamp,
        name: &QueueName,
        id: MessageId,
        reason: DeadReason,
    ) -> Option<Judged> {
        let queue = self.queues.get_mut(name)?;
        queue.totals.count(Verb::Lapse);
        let message = queue.messages.get_mut(&id)?;
        lifecycle::lapse(&mut message.progress, reason, message.history.last_error.as_ref(), now);
        let error = message.history.last_error.clone().unwrap_or_else(|| ErrorText::new(reason.name()));
        self.judged(name, id, Verdict::Dead(reason), error, now)
    }
}
