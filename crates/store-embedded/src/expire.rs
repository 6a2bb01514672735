//! expire: leased → delayed | ready | dead, for leases whose deadline has passed.

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{self, OVERDUE_ERROR, Verb};
use redrive_core::message::ErrorText;
use redrive_core::time::Timestamp;
use redrive_store::{ExpireRequest, Judged, QueueError};

use crate::core::Core;

impl Core {
    pub(crate) fn expire(
        &mut self,
        now: Timestamp,
        request: &ExpireRequest,
    ) -> Result<Vec<Judged>, QueueError> {
        let error = request.error.clone().unwrap_or_else(|| ErrorText::new(OVERDUE_ERROR));
        let mut judged = Vec::new();
        for number in self.numbers_of(request.queue.as_ref())? {
            let left = request.limit.get() - judged.len();
            for slot in self.overdue(number, now, left) {
                judged.extend(self.expire_one(now, slot, error.clone(), request.seed));
            }
        }
        Ok(judged)
    }

    /// The messages of a queue whose leases have run out, the most overdue first.
    fn overdue(&mut self, number: u32, now: Timestamp, limit: usize) -> Vec<u32> {
        let (queue, messages) = self.parts(number);
        queue.promote(messages, now);
        let overdue = queue.deadlines.iter().take_while(|(deadline, ..)| *deadline <= now);
        overdue.take(limit).map(|(.., slot)| *slot).collect()
    }

    fn expire_one(&mut self, now: Timestamp, slot: u32, error: ErrorText, seed: u64) -> Option<Judged> {
        let sequence = self.next_sequence();
        let terms = self.queue(self.messages.at(slot).queue).terms(&self.messages, slot);
        let mut progress = self.messages.progress(slot);
        let mut dice = Dice::for_attempt(seed, self.id(slot), progress.attempts);
        let ended = lifecycle::expire(&mut progress, &terms, error, sequence, now, &mut dice)?;
        Some(self.ended(Verb::Expire, slot, progress, ended, None, now))
    }
}
