//! Large enqueues: rows by COPY, which costs less for each than anything else does.
//!
//! COPY knows no conflicts: where a message is there already nothing happens, and a statement that does know them takes over.

use bytes::{BufMut, Bytes, BytesMut};
use futures::SinkExt;
use redrive_core::lifecycle::Verb;
use redrive_core::message::Phase;
use redrive_core::time::Timestamp;
use redrive_store::{EnqueueItem, EnqueueOutcome, Now};
use tokio_postgres::error::SqlState;

use crate::error::{Fault, damaged};
use crate::queue::Known;
use crate::row::{self, Columns, DELAYED, READY, millis, span, time, uuid, write_headers};
use crate::session::{Param, Session};
use crate::store::Shared;
use crate::tally::Tally;

/// From so many messages on, COPY is faster than the statement; below, its round trips cost more than it saves.
pub(crate) const COPY_MIN: usize = 50;

/// What comes in front of the rows, and behind them.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const END: i16 = -1;
/// About what a row takes, so that the buffer need not grow: of `message` all, of `content` what is not body or headers.
const MESSAGE_BYTES: usize = 192;
const CONTENT_BYTES: usize = 64;
/// In front of a document in its binary form.
const JSONB_VERSION: u8 = 1;

/// How a COPY ended.
pub(crate) enum Copied {
    Done(Vec<EnqueueOutcome>),
    /// The queue is not what the caller knows of it.
    Changed,
    /// Some are there already.
    Conflict,
}

impl Shared {
    /// Enqueues messages of one queue that have no dedup keys.
    pub(crate) async fn enqueue_copy(
        &self,
        now: Now,
        items: &[EnqueueItem],
        known: &Known,
        classes: &[i32],
    ) -> Result<Copied, Fault> {
        let sql = &self.link.sql;
        let (at, floor) = self.link.time(now);
        let many = i32::try_from(items.len()).unwrap_or(i32::MAX);
        let params: [Param<'_>; 5] = [&at, &floor, &known.id, &known.stamp, &many];
        let (session, rows) = self.link.begin_with(&sql.copy_begin, &params).await?;
        let first = rows.first().ok_or_else(|| damaged("an enqueue", "there is no answer"))?;
        let mut from = Columns::from(first, 0);
        let now = time(from.take()?);
        self.link.saw(now);
        if !from.take::<bool>()? {
            session.undo().await?;
            return Ok(Copied::Changed);
        }
        let numbers: Vec<i64> = from.take()?;
        let (messages, contents) = rows_of(now, items, known.id, classes, &numbers);
        let mut tally = Tally::default();
        tally.state(&Phase::Waiting, i64::from(many));
        tally.verb(Verb::Enqueue, i64::from(many));
        let columns = tally.columns();
        let counted: [Param<'_>; 2] = [&known.id, &columns];
        // All in one go, and last the one that may find a message there: a COPY that is sent behind one that fails leaves its
        // connection unusable. What is not prepared yet would be asked for in between.
        let [content, message] = [&sql.copy_content, &sql.copy_message];
        let (content, message) = (session.prepared(content).await?, session.prepared(message).await?);
        session.prepared(&sql.tally).await?;
        let (content, counted, copied) = futures::future::join3(
            session.copy(&content, contents),
            session.rows(&sql.tally, &counted),
            session.copy(&message, messages),
        )
        .await;
        content?;
        counted?;
        if !copied? {
            session.undo().await?;
            return Ok(Copied::Conflict);
        }
        session.commit().await?;
        let outcome = |item: &EnqueueItem| EnqueueOutcome::Enqueued {
            id: item.draft.spec.id,
            visible_at: item.draft.visible.at(now),
        };
        Ok(Copied::Done(items.iter().map(outcome).collect()))
    }
}

impl Session {
    /// Copies rows within a transaction, unless one of them is there already.
    async fn copy(&self, prepared: &tokio_postgres::Statement, rows: Bytes) -> Result<bool, Fault> {
        let client = self.client()?;
        let copied = async {
            let mut sink = std::pin::pin!(client.copy_in(prepared).await?);
            sink.send(rows).await?;
            match sink.finish().await {
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(false),
                copied => copied.map(|_| true),
            }
        };
        self.answer(copied, false).await
    }
}

/// The rows of both tables.
fn rows_of(
    now: Timestamp,
    items: &[EnqueueItem],
    queue: i32,
    classes: &[i32],
    numbers: &[i64],
) -> (Bytes, Bytes) {
    let load: usize = items.iter().map(redrive_store::Item::load).sum();
    let (mut messages, mut contents) =
        (Rows::new(14, items.len() * MESSAGE_BYTES), Rows::new(4, load + items.len() * CONTENT_BYTES));
    for ((item, class), no) in items.iter().zip(classes).zip(numbers) {
        let (draft, spec) = (&item.draft, &item.draft.spec);
        let visible_at = draft.visible.at(now);
        let size = spec.body.bytes().len() + spec.headers.size();
        messages.row();
        messages.field(Some(&queue.to_be_bytes()));
        messages.field(Some(&class.to_be_bytes()));
        messages.field(Some(uuid(spec.id).as_bytes()));
        messages.field(Some(&no.to_be_bytes()));
        messages.field(Some(&millis(now).to_be_bytes()));
        messages.field(Some(&millis(visible_at).to_be_bytes()));
        messages.field(Some(&no.to_be_bytes()));
        messages.field(Some(&(if visible_at > now { DELAYED } else { READY }).to_be_bytes()));
        messages.field(Some(&row::rank(draft.priority).to_be_bytes()));
        messages.field(Some(&i32::try_from(size).unwrap_or(i32::MAX).to_be_bytes()));
        messages.field(spec.max_attempts.map(|max| row::count(max.get()).to_be_bytes()).as_ref());
        messages.field(spec.lease_timeout.map(|time| span(time).to_be_bytes()).as_ref());
        messages.field(draft.expires.map(|expires| millis(expires.at(now)).to_be_bytes()).as_ref());
        messages.field(Some(spec.fairness_key.as_str().as_bytes()));
        contents.row();
        contents.field(Some(&no.to_be_bytes()));
        contents.field(Some(&spec.body.bytes()[..]));
        contents.field(Some(spec.content_type.as_str().as_bytes()));
        let headers = write_headers(&spec.headers);
        contents.field(headers.map(|text| [&[JSONB_VERSION], text.as_bytes()].concat()).as_ref());
    }
    (messages.done(), contents.done())
}

/// Rows in the binary form of COPY.
struct Rows {
    bytes: BytesMut,
    columns: i16,
}

impl Rows {
    fn new(columns: i16, capacity: usize) -> Self {
        let mut bytes = BytesMut::with_capacity(HEAD.len() + capacity);
        bytes.put_slice(HEAD);
        Self { bytes, columns }
    }

    fn row(&mut self) {
        self.bytes.put_i16(self.columns);
    }

    /// The next field of the row; `None` is null.
    fn field(&mut self, value: Option<&(impl AsRef<[u8]> + ?Sized)>) {
        match value.map(AsRef::as_ref) {
            Some(value) => {
                self.bytes.put_i32(i32::try_from(value.len()).expect("a field is smaller than a batch"));
                self.bytes.put_slice(value);
            }
            None => self.bytes.put_i32(-1),
        }
    }

    fn done(mut self) -> Bytes {
        self.bytes.put_i16(END);
        self.bytes.freeze()
    }
}
