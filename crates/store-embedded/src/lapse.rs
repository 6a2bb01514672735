//! lapse: ready | delayed → dead, for messages that can never be handed out again.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{DeadReason, ErrorText};
use redrive_core::policy::Verdict;
use redrive_core::time::Timestamp;
use redrive_store::{Judged, QueueError, SweepRequest};

use crate::core::Core;
use crate::format::message::Link;

impl Core {
    pub(crate) fn lapse(
        &mut self,
        now: Timestamp,
        request: &SweepRequest,
    ) -> Result<Vec<Judged>, QueueError> {
        let numbers = self.numbers_of(request.queue.as_ref())?;
        let mut judged = Vec::new();
        for number in &numbers {
            judged.extend(self.lapse_old(now, *number, request.limit.get() - judged.len()));
        }
        for number in &numbers {
            judged.extend(self.lapse_spent(now, *number, request.limit.get() - judged.len()));
        }
        Ok(judged)
    }

    /// Lapses messages whose time to live has passed, the earliest first.
    pub(crate) fn lapse_old(&mut self, now: Timestamp, number: u32, limit: usize) -> Vec<Judged> {
        let (queue, messages) = self.parts(number);
        queue.promote(messages, now);
        let old = queue.lapsing.iter().take_while(|(expires_at, ..)| *expires_at <= now).take(limit);
        let old: Vec<u32> = old.map(|(.., slot)| *slot).collect();
        old.into_iter().map(|slot| self.lapse_one(now, slot, DeadReason::ExpiredTtl)).collect()
    }

    fn lapse_spent(&mut self, now: Timestamp, number: u32, limit: usize) -> Vec<Judged> {
        let spent: Vec<u32> = self.queue(number).spent.iter().take(limit).map(|(_, slot)| *slot).collect();
        let one = |slot| {
            let reason = self.queue(number).spent(&self.messages, slot)?;
            Some(self.lapse_one(now, slot, reason))
        };
        spent.into_iter().filter_map(one).collect()
    }

    pub(crate) fn lapse_one(&mut self, now: Timestamp, slot: u32, reason: DeadReason) -> Judged {
        self.count(self.messages.at(slot).queue, Verb::Lapse);
        let last_error = self.history(slot).last_error;
        let mut progress = self.messages.progress(slot);
        lifecycle::lapse(&mut progress, reason, last_error.as_ref(), now);
        let error = last_error.unwrap_or_else(|| ErrorText::new(reason.name()));
        let link = Link { death: progress.death().copied(), ..Link::default() };
        self.judged(slot, (progress, link), Verdict::Dead(reason), error, now)
    }
}
