//! redrive, discard, move and reschedule: one step over the messages of a queue that match.

use std::collections::HashMap;
use std::sync::Arc;

use redrive_core::invalid::Invalid;
use redrive_core::lifecycle::{self, Reschedule, Verb};
use redrive_core::message::{Note, RedriveNote, Uniqueness};
use redrive_core::queue::QueueName;
use redrive_store::{Bulk, BulkRefusal, Now, Selection};
use uuid::Uuid;

use crate::error::Fault;
use crate::queue::Known;
use crate::row::{Columns, Kept, message_id, millis, uuid};
use crate::scan::Scan;
use crate::session::one;
use crate::store::Shared;
use crate::work::{BACK, Lock, Work};

/// A step that was begun: the messages it is about, held.
struct Step<'a> {
    work: Work<'a>,
    known: Arc<Known>,
    bulk: Bulk,
    kept: Vec<Kept>,
}

impl Shared {
    /// Finds the messages that are selected and from which the verb starts, and holds them. A dry run holds nothing.
    async fn step(&self, now: Now, selection: &Selection, starts: &'static str) -> Result<Step<'_>, Fault> {
        selection.check()?;
        let mut work = Work::begin(self, now).await?;
        let known = work.queue(&selection.queue).await?;
        let scan = Scan {
            filter: &selection.filter,
            now: work.now,
            after: selection.after,
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

    pub(crate) async fn reschedule(
        &self,
        now: Now,
        selection: &Selection,
        change: Reschedule,
    ) -> Result<Bulk, Fault> {
        change.check()?;
        let Step { mut work, known, mut bulk, kept } = self.step(now, selection, "m.state < 2").await?;
        for mut kept in kept {
            let was = kept.message.progress.phase.clone();
            if lifecycle::reschedule(&mut kept.message.progress, &change, BACK, work.now) {
                work.tally(known.id).verb(Verb::Reschedule, 1);
            }
            bulk.applied.push(kept.message.id());
            work.change(kept, &was);
        }
        work.commit().await?;
        Ok(bulk)
    }

    pub(crate) async fn move_to(
        &self,
        now: Now,
        selection: &Selection,
        target: &QueueName,
    ) -> Result<Bulk, Fault> {
        let mut look = Work::begin(self, now).await?;
        look.queue(target).await?;
        look.undo().await?;
        if *target == selection.queue {
            return Err(Invalid::unusable("target", "must be another queue").into());
        }
        let Step { mut work, known, mut bulk, kept } = self.step(now, selection, "m.state <> 2").await?;
        for mut kept in kept {
            let was = kept.message.progress.phase.clone();
            let id = kept.message.id();
            match work.carry(&known, &mut kept, target).await? {
                Ok(()) => {
                    bulk.applied.push(id);
                    work.change(kept, &was);
                }
                Err(refusal) => bulk.refused.push((id, refusal)),
            }
        }
        work.commit().await?;
        Ok(bulk)
    }

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
