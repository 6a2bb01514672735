//! expire, lapse and retain: what time does to messages.

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{self, OVERDUE_ERROR, Verb};
use redrive_core::message::{ErrorText, Phase};
use redrive_core::policy::Asked;
use redrive_core::queue::{QueueName, Retention};
use redrive_store::{ExpireRequest, Judged, Limit, Now, QueueError, SweepRequest};
use uuid::Uuid;

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Columns, DEAD, DONE, Kept, count, millis};
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
            let mut work = Work::begin(self, now).await?;
            let known = match work.queue(&queue).await {
                Ok(known) => known,
                // Deleted since.
                Err(Fault::Refused(QueueError::NotFound(_))) if request.queue.is_none() => continue,
                Err(error) => return Err(error),
            };
            judged.extend(work.expire(&known, left, request.error.as_ref(), request.seed).await?);
            work.commit().await?;
        }
        Ok(judged)
    }

    pub(crate) async fn lapse(&self, now: Now, request: &SweepRequest) -> Result<Vec<Judged>, Fault> {
        let queues = self.queues_of(request.queue.as_ref()).await?;
        let mut judged = Vec::new();
        for queue in queues {
            let left = request.limit.get() - judged.len();
            if left == 0 {
                break;
            }
            let mut work = Work::begin(self, now).await?;
            let known = match work.queue(&queue).await {
                Ok(known) => known,
                Err(Fault::Refused(QueueError::NotFound(_))) if request.queue.is_none() => continue,
                Err(error) => return Err(error),
            };
            let old = work.lapse_old(&known, left).await?;
            let spent =
                if left > old.len() { work.lapse_spent(&known, left - old.len()).await? } else { Vec::new() };
            judged.extend(old.into_iter().chain(spent));
            work.commit().await?;
        }
        Ok(judged)
    }

    pub(crate) async fn retain(&self, now: Now, request: &SweepRequest) -> Result<u64, Fault> {
        let mut gone = 0;
        for queue in self.queues_of(request.queue.as_ref()).await? {
            let left = request.limit.get() - gone;
            if left == 0 {
                break;
            }
            let mut work = Work::begin(self, now).await?;
            let known = match work.queue(&queue).await {
                Ok(known) => known,
                Err(Fault::Refused(QueueError::NotFound(_))) if request.queue.is_none() => continue,
                Err(error) => return Err(error),
            };
            gone += work.retain(&known, left).await?;
            work.commit().await?;
        }
        self.fold_tallies().await?;
        Ok(gone as u64)
    }

    /// Adds up tallies that have become long.
    async fn fold_tallies(&self) -> Result<(), Fault> {
        let session = self.link.session().await?;
        for row in session.rows(&self.link.sql.tally_long, &[]).await? {
            let queue: i32 = Columns::from(&row, 0).take()?;
            // Whether it happened or not, the sum is the same.
            session.rows(&self.link.sql.tally_fold, &[&queue]).await?;
        }
        Ok(())
    }

    async fn queues_with(
        &self,
        now: Now,
        statement: &crate::sql::Statement,
    ) -> Result<Vec<QueueName>, Fault> {
        let (session, now) = self.link.begin(now).await?;
        let rows = session.rows(statement, &[&millis(now)]).await?;
        session.commit().await?;
        rows.iter().map(|row| name(Columns::from(row, 0).take()?)).collect()
    }

    /// The queues that a sweeper was sent to: one, or all.
    async fn queues_of(&self, queue: Option<&QueueName>) -> Result<Vec<QueueName>, Fault> {
        if let Some(queue) = queue {
            return Ok(vec![queue.clone()]);
        }
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let page = self.list_queues(after.as_ref(), Limit::MAX).await?;
            let full = page.len() == Limit::MAX.get();
            names.extend(page.into_iter().map(|queue| queue.name));
            if !full {
                return Ok(names);
            }
            after = names.last().cloned();
        }
    }
}

fn name(text: &str) -> Result<QueueName, Fault> {
    Ok(QueueName::new(text).map_err(|error| crate::error::damaged("a queue", error))?)
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
        let (verb, ended) = match (kept.nacked.take(), &was) {
            (Some(error), Phase::Leased(lease)) => {
                let failure = (Asked::Nothing, error);
                let ended =
                    lifecycle::nack(progress, lease.clone(), &terms, failure, BACK, self.now, &mut dice);
                (Verb::Nack, Some(ended))
            }
            _ => {
                let error = error.cloned().unwrap_or_else(|| ErrorText::new(OVERDUE_ERROR));
                (Verb::Expire, lifecycle::expire(progress, &terms, error, BACK, self.now, &mut dice))
            }
        };
        let Some(ended) = ended else { return Ok(None) };
        let judged = self.ended(known, verb, &mut kept, ended).await?;
        self.change(kept, &was);
        Ok(Some(judged))
    }

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

    /// Discards what retention no longer keeps, the oldest first.
    async fn retain(&mut self, known: &Known, limit: usize) -> Result<usize, Fault> {
        let settings = &known.settings;
        let done = settings.retain_done.unwrap_or(Retention { age: None, count: Some(0) });
        let dead = settings.retain_dead.unwrap_or(Retention { age: None, count: None });
        let mut beyond: Vec<(i64, Uuid)> = Vec::new();
        for (state, kept) in [(DONE, done), (DEAD, dead)] {
            let age = kept.age.map(|age| millis(self.now) - crate::row::span(age));
            let count = kept.count.map(|count| i64::try_from(count).unwrap_or(i64::MAX));
            if age.is_none() && count.is_none() {
                continue;
            }
            let limit = items(limit);
            let params: [crate::session::Param<'_>; 5] = [&known.id, &state, &age, &count, &limit];
            for row in self.session.rows(&self.shared.link.sql.retain, &params).await? {
                let mut from = Columns::from(&row, 0);
                let id = from.take()?;
                beyond.push((from.take()?, id));
            }
        }
        beyond.sort_unstable();
        beyond.truncate(limit);
        let (queues, ids): (Vec<i32>, Vec<Uuid>) = beyond.iter().map(|(_, id)| (known.id, *id)).unzip();
        let rows = self.session.rows(&self.shared.link.sql.settle_lock, &[&queues, &ids]).await?;
        let gone = self.read(known, &rows).await?;
        for kept in &gone {
            self.discard(known, kept);
        }
        Ok(gone.len())
    }

    /// The message goes, whatever it is.
    pub(crate) fn discard(&mut self, known: &Known, kept: &Kept) {
        let was = kept.message.progress.phase.clone();
        self.let_go(kept);
        self.remove(kept, &was);
        self.tally(known.id).verb(Verb::Discard, 1);
    }
}
