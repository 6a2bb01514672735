//! reschedule: ready ↔ delayed, or another priority.

use redrive_core::lifecycle::Reschedule;
use redrive_core::message::{Message, Phase};
use redrive_store::{Bulk, Now, Selection};

use crate::bulk::Change;
use crate::error::Fault;
use crate::store::Shared;
use crate::words::when_word;

impl Shared {
    pub(crate) async fn reschedule(
        &self,
        now: Now,
        selection: &Selection,
        change: Reschedule,
    ) -> Result<Bulk, Fault> {
        change.check()?;
        let waits = |message: &Message| message.progress.phase == Phase::Waiting;
        let visible = change.visible.map_or_else(String::new, when_word);
        let priority = change.priority.map_or_else(String::new, |priority| priority.get().to_string());
        let words = vec![visible, priority];
        let change = Change { verb: &self.link.scripts.reschedule, target: None, words };
        self.bulk(now, selection, waits, change).await
    }
}
