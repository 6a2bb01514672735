//! move: any but leased → another queue.

use redrive_core::invalid::Invalid;
use redrive_core::queue::QueueName;
use redrive_store::{Bulk, Now, Selection};

use crate::bulk::Step;
use crate::error::Fault;
use crate::store::Shared;
use crate::work::Work;

impl Shared {
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
}
