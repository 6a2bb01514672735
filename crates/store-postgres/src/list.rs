//! get and list: a look that takes no lease.

use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::{Message, MessageId};
use redrive_core::queue::QueueName;
use redrive_store::{ListRequest, Now, Page};

use crate::error::Fault;
use crate::row::{self, uuid};
use crate::scan::{CONTENT_AT, Scan};
use crate::store::Shared;

impl Shared {
    pub(crate) async fn get(&self, queue: &QueueName, id: MessageId) -> Result<Option<Message>, Fault> {
        let session = self.link.session().await?;
        let rows = session.rows(&self.link.sql.get, &[&queue.as_str(), &uuid(id)]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let Some(known) = self.look(&session, queue).await? else { return Ok(None) };
        let mut kept = row::read(row, 0, queue, |id| known.class(id))?;
        row::read_content(row, CONTENT_AT, &mut kept)?;
        Ok(Some(kept.message))
    }

    pub(crate) async fn list(&self, now: Now, request: &ListRequest) -> Result<Page, Fault> {
        request.check()?;
        let (session, now) = self.link.begin(now).await?;
        let known = self.look(&session, &request.queue).await?;
        let known = known.ok_or_else(|| redrive_store::QueueNotFound(request.queue.clone()))?;
        let scan = Scan {
            filter: &request.filter,
            now,
            after: request.after,
            until: None,
            newest_first: request.newest_first,
            limit: request.limit.get(),
            content: true,
            starts: "",
        };
        let found = scan.run(&session, &known).await?;
        session.end().await;
        let mut page = Page { at: now, messages: Vec::new(), next: found.looked_to };
        let mut bytes = 0;
        for row in &found.rows {
            let mut kept = row::read(row, 0, &request.queue, |id| known.class(id))?;
            row::read_content(row, CONTENT_AT, &mut kept)?;
            bytes += load(&kept.message);
            if bytes > BATCH_BYTES_MAX && !page.messages.is_empty() {
                page.next = page.messages.last().map(Message::id);
                break;
            }
            page.messages.push(kept.message);
        }
        Ok(page)
    }
}

/// What a message weighs when it is handed out or listed.
fn load(message: &Message) -> usize {
    let checkpoint = message.history.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.bytes().len());
    message.spec.body.bytes().len() + message.spec.headers.size() + checkpoint
}
