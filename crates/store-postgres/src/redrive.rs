//! redrive: dead → ready.

use redrive_core::lifecycle::{self, Verb};
use redrive_core::message::{Note, RedriveNote, Uniqueness};
use redrive_store::{Bulk, BulkRefusal, Now, Selection};

use crate::bulk::Step;
use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Columns, Kept, message_id, millis, uuid};
use crate::session::one;
use crate::store::Shared;
use crate::work::{BACK, Lock, Work};

impl Shared {
    pub(crate) async fn redrive(
        &self,
        now: Now,
        selection: &Selection,
        by: &Note,
        reason: &Note,
    ) -> Result<Bulk, Fault> {
        let Step { mut work, known, mut bulk, kept } = self.step(now, selection, "m.state = 3").await?;
        for mut kept in kept {
            let was = kept.message.progress.phase.clone();
            let id = kept.message.id();
            if let Err(refusal) = work.hold_again(&known, &kept).await? {
                bulk.refused.push((id, refusal));
                continue;
            }
            if lifecycle::redrive(&mut kept.message.progress, BACK, work.now) {
                let note = RedriveNote { at: work.now, by: by.clone(), reason: reason.clone() };
                kept.message.history.redriven = Some(note);
                work.remember(&mut kept);
                work.tally(known.id).verb(Verb::Redrive, 1);
            }
            bulk.applied.push(id);
            work.change(kept, &was);
        }
        work.commit().await?;
        Ok(bulk)
    }
}

impl Work<'_> {
    /// Takes the unique key of a dead message again, unless somebody else has it.
    async fn hold_again(&mut self, known: &Known, kept: &Kept) -> Result<Result<(), BulkRefusal>, Fault> {
        let unique = kept.message.spec.dedup.as_ref().filter(|dedup| dedup.unique == Uniqueness::UntilDone);
        let Some(dedup) = unique else { return Ok(Ok(())) };
        let (queue, key, id) = ([known.id], [dedup.key.as_str()], [uuid(kept.message.id())]);
        let now = millis(self.now);
        self.shared.lock(&self.session, Lock::Enqueue, known.id).await?;
        let sql = &self.shared.link.sql;
        let holder = self.session.rows(&sql.hold_get, &[&queue.as_slice(), &key.as_slice()]).await?;
        if let Some(row) = holder.first() {
            let mut from = Columns::from(row, 2);
            let message = message_id(from.take()?);
            if from.take::<Option<i64>>()?.is_none_or(|until| until > now) {
                return Ok(Err(BulkRefusal::Duplicate(message)));
            }
        }
        let held: i64 = one(&self.session.rows(&sql.hold_count, &[&known.id, &now]).await?)?;
        let max = self.shared.options.limits.dedup_keys_per_queue;
        if usize::try_from(held).is_ok_and(|held| held >= max) {
            return Ok(Err(BulkRefusal::TooManyDedupKeys { max }));
        }
        self.take_keys(&queue, &key, &id, &[None]).await?;
        // What is counted must be seen by the next one.
        self.flush_tallies().await?;
        Ok(Ok(()))
    }
}
