//! What follows when an attempt failed, and when a message died: it may travel on to `dead_letter_to`.

use redrive_core::lifecycle::{Ended, Verb};
use redrive_core::message::{Checkpoint, ErrorText, Progress};
use redrive_core::policy::Verdict;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::Judged;

use crate::core::Core;
use crate::format::message::Link;

impl Core {
    /// Counts and writes down how an attempt ended, and moves the message on if it died.
    pub(crate) fn ended(
        &mut self,
        verb: Verb,
        slot: u32,
        progress: Progress,
        ended: Ended,
        checkpoint: Option<Checkpoint>,
        now: Timestamp,
    ) -> Judged {
        let number = self.messages.at(slot).queue;
        self.count(number, verb);
        let (error, leased_at) = (ended.record.error.clone(), Some(ended.record.leased_at));
        let consumer = Some(ended.record.consumer.clone());
        let death = progress.death().copied();
        let link = Link { failure: Some(ended.record), checkpoint, death, ..Link::default() };
        let judged = self.judged(slot, (progress, link), ended.verdict, error, now);
        Judged { leased_at, consumer, ..judged }
    }

    /// Carries out a verdict and reports it, after moving the message on if it died.
    pub(crate) fn judged(
        &mut self,
        slot: u32,
        (progress, link): (Progress, Link),
        verdict: Verdict,
        error: ErrorText,
        now: Timestamp,
    ) -> Judged {
        let number = self.messages.at(slot).queue;
        let queue = self.queue(number);
        let name = queue.queue.name.clone();
        let max_attempts = queue.terms(&self.messages, slot).policy.max_attempts;
        let kind = queue.class_of(&self.messages, slot).0.clone();
        let (message, attempts) = (self.id(slot), progress.attempts);
        self.change(slot, progress, None, link);
        let moved_to = match verdict {
            Verdict::Dead(_) => self.died(slot, number, now),
            Verdict::RetryAt(..) => None,
        };
        Judged {
            at: now,
            leased_at: None,
            consumer: None,
            queue: name,
            message,
            kind,
            attempts,
            max_attempts,
            error,
            verdict,
            moved_to,
        }
    }

    /// Moves the message to `dead_letter_to`, whatever that queue's `max_waiting` says. A target that is missing or
    /// cannot take it leaves it dead where it is.
    fn died(&mut self, slot: u32, number: u32, now: Timestamp) -> Option<QueueName> {
        self.totals(number).died += 1;
        let target = self.queue(number).settings.dead_letter_to.clone()?;
        let to = self.number(&target).ok()?;
        self.carry(slot, to, now).ok()?;
        Some(target)
    }
}
