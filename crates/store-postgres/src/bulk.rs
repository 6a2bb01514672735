//! One step over the messages of a queue that match: what redrive, discard, move and reschedule have in common.

use std::collections::HashMap;
use std::sync::Arc;

use redrive_store::{Bulk, BulkRefusal, Now, Selection};
use uuid::Uuid;

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Columns, Kept, message_id, uuid};
use crate::scan::Scan;
use crate::store::Shared;
use crate::work::Work;

/// A step that was begun: the messages it is about, held.
pub(crate) struct Step<'a> {
    pub(crate) work: Work<'a>,
    pub(crate) known: Arc<Known>,
    pub(crate) bulk: Bulk,
    pub(crate) kept: Vec<Kept>,
}

impl Shared {
    /// Finds the messages that are selected and from which the verb starts, and holds them. A dry run holds nothing.
    pub(crate) async fn step(
        &self,
        now: Now,
        selection: &Selection,
        starts: &'static str,
    ) -> Result<Step<'_>, Fault> {
        selection.check()?;
        let mut work = Work::begin(self, now).await?;
        let known = work.queue(&selection.queue).await?;
        let scan = Scan {
            filter: &selection.filter,
            now: work.now,
            after: selection.after,
            until: selection.until,
            newest_first: false,
            limit: selection.limit.get(),
            content: false,
            starts,
        };
        let found = scan.run(&work.session, &known).await?;
        let mut bulk = Bulk { matched: found.rows.len() as u64, next: found.looked_to, ..Bulk::default() };
        let mut kept = Vec::new();
        if !selection.dry_run && !found.rows.is_empty() {
            let mut ids: Vec<Uuid> = Vec::with_capacity(found.rows.len());
            for row in &found.rows {
                ids.push(Columns::from(row, 0).take()?);
            }
            let queues = vec![known.id; ids.len()];
            let rows = work.session.rows(&self.link.sql.settle_lock, &[&queues, &ids]).await?;
            // What changed between the look and the lock may not match any more.
            let seen: HashMap<Uuid, i64> = found
                .rows
                .iter()
                .map(|row| Ok((Columns::from(row, 0).take()?, Columns::from(row, 4).take()?)))
                .collect::<Result<_, Fault>>()?;
            let held = work.read(&known, &rows).await?;
            let there: HashMap<Uuid, Kept> =
                held.into_iter().map(|kept| (uuid(kept.message.id()), kept)).collect();
            let mut there = there;
            for (id, row) in ids.iter().zip(&found.rows) {
                let state: i16 = Columns::from(row, 5).take()?;
                match there.remove(id) {
                    Some(same)
                        if seen.get(id).is_some_and(|place| same.place() == *place) && same.is_in(state) =>
                    {
                        kept.push(same);
                    }
                    _ => bulk.refused.push((message_id(*id), BulkRefusal::NotFound)),
                }
            }
        }
        Ok(Step { work, known, bulk, kept })
    }
}
