//! expire: leased → delayed | ready | dead, for leases whose deadline has passed.

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{self, OVERDUE_ERROR, Verb};
use redrive_core::message::{ErrorText, Phase};
use redrive_core::policy::Asked;
use redrive_core::queue::QueueName;
use redrive_store::{ExpireRequest, Judged, Now, QueueError};

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Kept, millis};
use crate::store::{Shared, items};
use crate::work::{BACK, Work};

impl Shared {
    pub(crate) async fn expire(&self, now: Now, request: &ExpireRequest) -> Result<Vec<Judged>, Fault> {
        let queues = match &request.queue {
            Some(queue) => vec![queue.clone()],
            None => self.queues_with(now, &self.link.sql.expire_queues).await?,
        };
        let mut judged = Vec::new();
        for queue in queues {
            let left = request.limit.get() - judged.len();
            if left == 0 {
                break;
            }
            match self.expire_in(now, &queue, left, request).await {
                Ok(some) => judged.extend(some),
                // Deleted since.
                Err(Fault::Refused(QueueError::NotFound(_))) if request.queue.is_none() => {}
                // What was ended is told; the rest is for the next time.
                Err(_) if !judged.is_empty() => break,
                Err(fault) => return Err(fault),
            }
        }
        Ok(judged)
    }

    async fn expire_in(
        &self,
        now: Now,
        queue: &QueueName,
        limit: usize,
        request: &ExpireRequest,
    ) -> Result<Vec<Judged>, Fault> {
        let mut work = Work::begin(self, now).await?;
        let known = work.queue(queue).await?;
        let judged = work.expire(&known, limit, request.error.as_ref(), request.seed).await?;
        work.commit().await?;
        Ok(judged)
    }
}

impl Work<'_> {
    /// Ends leases that ran out, the most overdue first.
    pub(crate) async fn expire(
        &mut self,
        known: &Known,
        limit: usize,
        error: Option<&ErrorText>,
        seed: u64,
    ) -> Result<Vec<Judged>, Fault> {
        let (now, limit) = (millis(self.now), items(limit));
        let rows = self.session.rows(&self.shared.link.sql.expire_lock, &[&known.id, &now, &limit]).await?;
        let mut judged = Vec::new();
        for kept in self.read(known, &rows).await? {
            judged.extend(self.expire_one(known, kept, error, seed).await?);
        }
        Ok(judged)
    }

    async fn expire_one(
        &mut self,
        known: &Known,
        mut kept: Kept,
        error: Option<&ErrorText>,
        seed: u64,
    ) -> Result<Option<Judged>, Fault> {
        let terms = Self::terms(known, &kept);
        let was = kept.message.progress.phase.clone();
        let id = kept.message.id();
        let progress = &mut kept.message.progress;
        let mut dice = Dice::for_attempt(seed, id, progress.attempts);
        // A nack that came through SQL is judged here, as what it is.
        let (verb, ended) = if let (Some(error), Phase::Leased(lease)) = (kept.nacked.take(), &was) {
            let failure = (Asked::Nothing, error);
            let ended = lifecycle::nack(progress, lease.clone(), &terms, failure, BACK, self.now, &mut dice);
            (Verb::Nack, Some(ended))
        } else {
            let error = error.cloned().unwrap_or_else(|| ErrorText::new(OVERDUE_ERROR));
            (Verb::Expire, lifecycle::expire(progress, &terms, error, BACK, self.now, &mut dice))
        };
        let Some(ended) = ended else { return Ok(None) };
        let judged = self.ended(known, verb, &mut kept, ended).await?;
        self.change(kept, &was);
        Ok(Some(judged))
    }
}
