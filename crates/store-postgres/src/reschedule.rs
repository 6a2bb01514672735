//! reschedule: ready ↔ delayed, or another priority.

use redrive_core::lifecycle::{self, Reschedule, Verb};
use redrive_store::{Bulk, Now, Selection};

use crate::bulk::Step;
use crate::error::Fault;
use crate::store::Shared;
use crate::work::BACK;

impl Shared {
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
}
