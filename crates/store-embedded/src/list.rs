//! get and list: a look that takes no lease.

use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::MessageId;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{ListRequest, QueueError};

use crate::core::Core;
use crate::load::Shot;
use crate::select::Search;

impl Core {
    pub(crate) fn get(&self, queue: &QueueName, id: MessageId) -> Option<Shot> {
        let number = self.number(queue).ok()?;
        self.find(number, id).map(|slot| self.shot(slot))
    }

    /// The messages of a page, and where the next one starts.
    pub(crate) fn list(
        &mut self,
        now: Timestamp,
        request: &ListRequest,
    ) -> Result<(Vec<Shot>, Option<MessageId>), QueueError> {
        request.check()?;
        let search = Search {
            queue: self.number(&request.queue)?,
            filter: &request.filter,
            after: request.after,
            until: None,
            newest_first: request.newest_first,
            limit: request.limit.get(),
            bytes: BATCH_BYTES_MAX,
        };
        let selected = self.select(now, &search, |_| true);
        Ok((self.shots(&selected.slots), selected.next))
    }
}
