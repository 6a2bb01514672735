//! lapse: ready | delayed → dead, for messages that can never be handed out again.

use redrive_core::lifecycle;
use redrive_core::queue::QueueName;
use redrive_store::{Judged, Now, QueueError, SweepRequest};

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{count, millis};
use crate::store::{Shared, items};
use crate::work::Work;

impl Shared {
    pub(crate) async fn lapse(&self, now: Now, request: &SweepRequest) -> Result<Vec<Judged>, Fault> {
        let queues = self.queues_of(request.queue.as_ref()).await?;
        let mut judged = Vec::new();
        for queue in queues {
            let left = request.limit.get() - judged.len();
            if left == 0 {
                break;
            }
            match self.lapse_in(now, &queue, left).await {
                Ok(some) => judged.extend(some),
                // Deleted since.
                Err(Fault::Refused(QueueError::NotFound(_))) if request.queue.is_none() => {}
                // What was given up is told; the rest is for the next time.
                Err(_) if !judged.is_empty() => break,
                Err(fault) => return Err(fault),
            }
        }
        Ok(judged)
    }

    async fn lapse_in(&self, now: Now, queue: &QueueName, limit: usize) -> Result<Vec<Judged>, Fault> {
        let mut work = Work::begin(self, now).await?;
        let known = work.queue(queue).await?;
        let mut judged = work.lapse_old(&known, limit).await?;
        if limit > judged.len() {
            judged.extend(work.lapse_spent(&known, limit - judged.len()).await?);
        }
        work.commit().await?;
        Ok(judged)
    }
}

impl Work<'_> {
    /// Gives up waiting messages whose time to live passed, the earliest first.
    pub(crate) async fn lapse_old(&mut self, known: &Known, limit: usize) -> Result<Vec<Judged>, Fault> {
        let (now, limit) = (millis(self.now), items(limit));
        let rows = self.session.rows(&self.shared.link.sql.lapse_lock, &[&known.id, &now, &limit]).await?;
        self.lapse_those(known, &rows).await
    }

    /// Gives up waiting messages that are over a cap which was lowered.
    async fn lapse_spent(&mut self, known: &Known, limit: usize) -> Result<Vec<Judged>, Fault> {
        let settings = &known.settings;
        let attempts = settings.retry.max_attempts.map(|max| count(max.get()));
        let deliveries = settings.max_deliveries.map(|max| count(max.get()));
        let (now, limit) = (millis(self.now), items(limit));
        let params: [crate::session::Param<'_>; 5] = [&known.id, &now, &attempts, &deliveries, &limit];
        let rows = self.session.rows(&self.shared.link.sql.lapse_spent, &params).await?;
        self.lapse_those(known, &rows).await
    }

    async fn lapse_those(
        &mut self,
        known: &Known,
        rows: &[tokio_postgres::Row],
    ) -> Result<Vec<Judged>, Fault> {
        let mut judged = Vec::new();
        for mut kept in self.read(known, rows).await? {
            let was = kept.message.progress.phase.clone();
            let terms = Self::terms(known, &kept);
            if let Some(reason) = lifecycle::lapse_reason(&kept.message.progress, &terms, self.now) {
                judged.push(self.lapse(known, &mut kept, reason).await?);
                self.change(kept, &was);
            }
        }
        Ok(judged)
    }
}
