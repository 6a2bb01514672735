//! get and list: a look that takes no lease.

use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::{Message, MessageId};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{ListRequest, Page, QueueError};

use crate::lease::load;
use crate::state::State;

impl State {
    pub(crate) fn get(&self, queue: &QueueName, id: MessageId) -> Option<Message> {
        self.queues.get(queue)?.messages.get(&id).cloned()
    }

    pub(crate) fn list(&self, now: Timestamp, request: &ListRequest) -> Result<Page, QueueError> {
        request.check()?;
        let messages = &self.queue(&request.queue)?.messages;
        let matches = |message: &&Message| request.filter.matches(message, now);
        if request.newest_first {
            let beyond = |message: &&Message| request.after.is_none_or(|after| message.id() < after);
            Ok(page(now, messages.values().rev().filter(beyond).filter(matches), request))
        } else {
            let beyond = |message: &&Message| request.after.is_none_or(|after| message.id() > after);
            Ok(page(now, messages.values().filter(beyond).filter(matches), request))
        }
    }
}

fn page<'a>(at: Timestamp, matching: impl Iterator<Item = &'a Message>, request: &ListRequest) -> Page {
    let mut page = Page { at, ..Page::default() };
    let mut bytes = 0;
    for message in matching {
        bytes += load(message);
        let full = page.messages.len() == request.limit.get();
        if full || (bytes > BATCH_BYTES_MAX && !page.messages.is_empty()) {
            page.next = page.messages.last().map(Message::id);
            break;
        }
        page.messages.push(message.clone());
    }
    page
}
