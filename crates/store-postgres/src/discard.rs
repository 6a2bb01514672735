//! discard: any but leased → gone; by force leased ones too. Retention is a discard with time as its cause.

use redrive_core::lifecycle::Verb;
use redrive_core::queue::{QueueName, Retention};
use redrive_store::{Bulk, Now, QueueError, Selection, SweepRequest};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::bulk::Step;
use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Columns, DEAD, DONE, Kept, millis};
use crate::store::{Shared, items};
use crate::work::Work;

impl Shared {
    pub(crate) async fn discard(&self, now: Now, selection: &Selection, force: bool) -> Result<Bulk, Fault> {
        let starts = if force { "" } else { "m.state <> 2" };
        let Step { mut work, known, mut bulk, kept } = self.step(now, selection, starts).await?;
        for kept in &kept {
            work.discard(&known, kept);
            bulk.applied.push(kept.message.id());
        }
        work.commit().await?;
        Ok(bulk)
    }

    pub(crate) async fn retain(&self, now: Now, request: &SweepRequest) -> Result<u64, Fault> {
        let mut gone = 0;
        for queue in self.queues_of(request.queue.as_ref()).await? {
            let left = request.limit.get() - gone;
            if left == 0 {
                break;
            }
            match self.retain_in(now, &queue, left).await {
                Ok(some) => gone += some,
                // Deleted since.
                Err(Fault::Refused(QueueError::NotFound(_))) if request.queue.is_none() => {}
                // What is gone is gone; the rest is for the next time.
                Err(_) if gone > 0 => return Ok(gone as u64),
                Err(fault) => return Err(fault),
            }
        }
        if let Err(fault) = self.tidy().await {
            tracing::debug!(?fault, "not everything was tidied up");
        }
        Ok(gone as u64)
    }

    async fn retain_in(&self, now: Now, queue: &QueueName, limit: usize) -> Result<usize, Fault> {
        let mut work = Work::begin(self, now).await?;
        let known = work.queue(queue).await?;
        let gone = work.retain(&known, limit).await?;
        work.commit().await?;
        Ok(gone)
    }
}

impl Work<'_> {
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
            let params: [(crate::session::Param<'_>, Type); 4] =
                [(&known.id, Type::INT4), (&age, Type::INT8), (&count, Type::INT8), (&limit, Type::INT8)];
            let text = self.shared.link.sql.retain.text.replace("{state}", &state.to_string());
            for row in self.session.rows_of(&text, &params).await? {
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
