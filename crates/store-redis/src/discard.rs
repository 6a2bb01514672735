//! discard: any but leased → gone; by force leased ones too.

use redrive_core::lifecycle;
use redrive_core::message::Message;
use redrive_store::{Bulk, Now, Selection};

use crate::bulk::Change;
use crate::error::Fault;
use crate::store::Shared;

impl Shared {
    pub(crate) async fn discard(&self, now: Now, selection: &Selection, force: bool) -> Result<Bulk, Fault> {
        let free = |message: &Message| lifecycle::may_discard(&message.progress, force);
        let change = Change { verb: &self.link.scripts.discard, target: None, words: Vec::new() };
        self.bulk(now, selection, free, change).await
    }
}
