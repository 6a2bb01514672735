//! What all sweepers need: where to go, and what to tidy up on the way.

use redrive_core::queue::QueueName;
use redrive_store::{Limit, Now};

use crate::error::Fault;
use crate::row::{Columns, millis};
use crate::store::Shared;

impl Shared {
    /// Adds up tallies that have become long, and forgets marks that are old. If not now, then the next time.
    pub(crate) async fn tidy(&self) -> Result<(), Fault> {
        let session = self.link.session().await?;
        session.rows(&self.link.sql.mark_sweep, &[]).await?;
        for row in session.rows(&self.link.sql.tally_long, &[]).await? {
            let queue: i32 = Columns::from(&row, 0).take()?;
            // Whether it happened or not, the sum is the same.
            session.rows(&self.link.sql.tally_fold, &[&queue]).await?;
        }
        Ok(())
    }

    pub(crate) async fn queues_with(
        &self,
        now: Now,
        statement: &crate::sql::Statement,
    ) -> Result<Vec<QueueName>, Fault> {
        let (session, now) = self.link.begin(now).await?;
        let rows = session.rows(statement, &[&millis(now)]).await?;
        session.end().await;
        rows.iter().map(|row| name(Columns::from(row, 0).take()?)).collect()
    }

    /// The queues that a sweeper was sent to: one, or all.
    pub(crate) async fn queues_of(&self, queue: Option<&QueueName>) -> Result<Vec<QueueName>, Fault> {
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
