//! What follows when a message died: its key is let go, and it may travel on to `dead_letter_to`.

use std::num::NonZeroU32;

use redrive_core::lifecycle::{Ended, Verb};
use redrive_core::message::{ErrorText, MessageId};
use redrive_core::policy::Verdict;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::Judged;

use crate::state::State;

impl State {
    /// Counts and writes down how an attempt ended, and moves the message on if it died.
    pub(crate) fn ended(
        &mut self,
        (verb, name, id): (Verb, &QueueName, MessageId),
        ended: Ended,
        now: Timestamp,
    ) -> Option<Judged> {
        let queue = self.queues.get_mut(name)?;
        queue.totals.count(verb);
        let (error, leased_at) = (ended.record.error.clone(), Some(ended.record.leased_at));
        let consumer = Some(ended.record.consumer.clone());
        queue.messages.get_mut(&id)?.history.add(ended.record);
        let judged = self.judged(name, id, ended.verdict, error, now)?;
        Some(Judged { leased_at, consumer, ..judged })
    }

    /// Reports a verdict that was carried out, after moving the message on if it died.
    pub(crate) fn judged(
        &mut self,
        name: &QueueName,
        id: MessageId,
        verdict: Verdict,
        error: ErrorText,
        now: Timestamp,
    ) -> Option<Judged> {
        let queue = self.queues.get(name)?;
        let message = queue.messages.get(&id)?;
        let max_attempts: Option<NonZeroU32> = queue.terms(message).policy.max_attempts;
        let (kind, attempts) = (message.spec.kind.clone(), message.progress.attempts);
        let moved_to = match verdict {
            Verdict::Dead(_) => self.died(name, id, now),
            Verdict::RetryAt(..) => None,
        };
        let queue = name.clone();
        Some(Judged {
            at: now,
            leased_at: None,
            consumer: None,
            queue,
            message: id,
            kind,
            attempts,
            max_attempts,
            error,
            verdict,
            moved_to,
        })
    }

    /// Lets the unique key go and moves the message to `dead_letter_to`, whatever that queue's `max_waiting`
    /// says. A target that is missing or cannot take it leaves it dead where it is.
    fn died(&mut self, name: &QueueName, id: MessageId, now: Timestamp) -> Option<QueueName> {
        let queue = self.queues.get_mut(name)?;
        queue.totals.died += 1;
        let message = queue.messages.get_mut(&id)?;
        message.history.death = message.progress.death().copied();
        let message = message.clone();
        queue.let_go(&message);
        let target = queue.settings.dead_letter_to.clone()?;
        self.carry(name, &target, id, now).ok()?;
        Some(target)
    }
}
