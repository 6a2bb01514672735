//! move: any but leased → another queue.

use redrive_core::invalid::Invalid;
use redrive_core::lifecycle;
use redrive_core::message::Message;
use redrive_core::queue::QueueName;
use redrive_store::{Bulk, Now, QueueNotFound, Selection};

use crate::bulk::Change;
use crate::error::Fault;
use crate::store::Shared;

impl Shared {
    pub(crate) async fn move_to(
        &self,
        now: Now,
        selection: &Selection,
        target: &QueueName,
    ) -> Result<Bulk, Fault> {
        let to = self.look(target).await?.ok_or_else(|| QueueNotFound(target.clone()))?;
        if *target == selection.queue {
            return Err(Invalid::unusable("target", "must be another queue").into());
        }
        let free = |message: &Message| lifecycle::may_move(&message.progress);
        let words = vec![self.options.limits.classes_per_queue.to_string()];
        let change = Change { verb: &self.link.scripts.move_to, target: Some(&to), words };
        self.bulk(now, selection, free, change).await
    }
}
