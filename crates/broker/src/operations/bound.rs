//! Where an operation ends: it is about what was there when it was started.
//!
//! Steps go over a queue in the order of ids, and what comes later has a larger id. So the last message that matches at the
//! start is the last that is touched; without it, an operation that is slower than what comes in would never end, and
//! do more than somebody was asked about. An id that a client brought along may be larger than all that are to come. Then
//! the filter says until when messages were enqueued, too; not always, because a store may have to read each message for that.

use redrive_core::message::{MessageId, State};
use redrive_core::time::Timestamp;
use redrive_store::{Filter, Limit, ListRequest};

use super::{NewOperation, Work};
use crate::broker::Broker;
use crate::error::BrokerError;

impl Broker {
    /// The last message that the operation is about. Where that does not keep out what comes later, the filter is narrowed.
    pub(super) async fn bound(&self, new: &mut NewOperation) -> Result<MessageId, BrokerError> {
        let Some((last, at)) = self.newest(new).await? else {
            // Nothing matches, and nothing comes before the first of all ids.
            return Ok(MessageId::MIN);
        };
        if last.made_at() > at {
            narrow(&mut new.filter, at);
        }
        Ok(last)
    }

    /// The last message that matches, and the time of the look.
    async fn newest(&self, new: &NewOperation) -> Result<Option<(MessageId, Timestamp)>, BrokerError> {
        let mut filter = new.filter.clone();
        if matches!(new.work, Work::Redrive { .. }) && filter.states.is_empty() {
            filter.states.push(State::Dead);
        }
        let mut request = ListRequest::new(new.queue.clone(), filter);
        (request.newest_first, request.limit) = (true, Limit::ONE);
        loop {
            let page = self.list(request.clone()).await?;
            match (page.messages.first(), page.next) {
                (Some(last), _) => return Ok(Some((last.id(), page.at))),
                (None, Some(next)) => request.after = Some(next),
                (None, None) => return Ok(None),
            }
        }
    }
}

/// Only what was enqueued until then.
fn narrow(filter: &mut Filter, at: Timestamp) {
    let (after, before) = match &filter.created {
        Some(range) => (*range.start(), at.min(*range.end())),
        None => (Timestamp::EPOCH, at),
    };
    filter.created = Some(after..=before);
}
