//! redrive: dead → ready.

use redrive_core::message::{Message, Note};
use redrive_store::{Bulk, Now, Selection};

use crate::bulk::Change;
use crate::error::Fault;
use crate::store::Shared;
use crate::words::note_words;

impl Shared {
    pub(crate) async fn redrive(
        &self,
        now: Now,
        selection: &Selection,
        by: &Note,
        reason: &Note,
    ) -> Result<Bulk, Fault> {
        let dead = |message: &Message| message.progress.death().is_some();
        let max = self.options.limits.dedup_keys_per_queue;
        let words = vec![max.to_string(), note_words(by, reason)];
        let change = Change { verb: &self.link.scripts.redrive, target: None, words };
        self.bulk(now, selection, dead, change).await
    }
}
