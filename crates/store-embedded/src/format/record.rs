//! Records: what a frame is made of.
//!
//! A tag, the length of the body, the body. Messages and changes of messages begin with a checksum of their own, because
//! they are read back one by one.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use redrive_core::lease::{ConsumerName, LeaseId};
use redrive_core::message::{History, MessageId, Progress};
use redrive_core::queue::{Queue, QueueName};
use redrive_core::time::Timestamp;
use redrive_store::{EntryKey, EntryKind, EntryName, LogName};

use super::bytes::{Put, Take, size};
use super::config::{self, COUNTERS};
use super::message::{self, Link, Until};
use super::{Malformed, Place};

const STORE: u8 = 1;
const QUEUE: u8 = 2;
const QUEUE_GONE: u8 = 3;
const COUNTS: u8 = 4;
const MESSAGE: u8 = 5;
const LEASES: u8 = 6;
const GONE: u8 = 7;
const CHANGE: u8 = 8;
const HOLD: u8 = 9;
const ENTRY: u8 = 10;
const ENTRY_GONE: u8 = 11;
const LOG: u8 = 12;
const KEPT: u8 = 13;
const LOG_RECORD: u8 = 14;
const GRACE: u8 = 15;
const MESSAGE_AGAIN: u8 = 16;

/// The tag and the length before every body.
pub(crate) const HEADER_BYTES: usize = 5;

/// What the store knows about itself. A base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreRecord {
    pub(crate) receipt_key: [u8; 32],
    /// The epoch of the leases that are taken from here on.
    pub(crate) epoch: u16,
    /// The last lease of that epoch.
    pub(crate) leases: u64,
    /// The last order number of a message.
    pub(crate) sequence: u64,
    /// The last version of a queue or an entry.
    pub(crate) version: u64,
    /// The last number of a queue.
    pub(crate) queues: u32,
}

/// The address of a dedup key: the queue and a digest of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct HoldKey {
    pub(crate) queue: u32,
    pub(crate) digest: u128,
}

/// A message as it stands. A base.
#[derive(Debug, Clone)]
pub(crate) struct MessageRecord<'a> {
    pub(crate) id: MessageId,
    pub(crate) queue: u32,
    pub(crate) created_at: Timestamp,
    /// What body and headers weigh.
    pub(crate) load: u32,
    /// The base that it replaces, where it was written before.
    pub(crate) replaces: Option<Place>,
    pub(crate) progress: Progress,
    /// The dedup key that it holds.
    pub(crate) hold: Option<(u128, Until)>,
    /// What the producer wrote, as [`message::put_spec`] writes it.
    pub(crate) spec: &'a [u8],
    /// What happened to it, as [`message::put_history`] writes it; nothing where nothing happened.
    pub(crate) history: Option<&'a [u8]>,
}

/// A message stands elsewhere. A change.
#[derive(Debug, Clone)]
pub(crate) struct ChangeRecord {
    pub(crate) base: Place,
    pub(crate) progress: Progress,
    /// The queue it was moved to, where it was; a moved message has no dedup key.
    pub(crate) queue: Option<u32>,
    pub(crate) link: Option<Link>,
}

/// Messages that were handed out together; the first has the first lease, and so on. A change.
#[derive(Debug, Clone)]
pub(crate) struct LeasesRecord<'a> {
    pub(crate) consumer: ConsumerName,
    pub(crate) leased_at: Timestamp,
    pub(crate) first: LeaseId,
    items: &'a [u8],
}

impl LeasesRecord<'_> {
    /// Base and deadline of each.
    pub(crate) fn items(&self) -> impl Iterator<Item = (Place, Timestamp)> {
        self.items.chunks_exact(16).filter_map(|chunk| {
            let mut item = Take(chunk);
            Some((item.place().ok()?, item.time().ok()?))
        })
    }
}

/// A record as it is read.
#[derive(Debug, Clone)]
pub(crate) enum Record<'a> {
    Store(StoreRecord),
    /// A queue with its number and what it has counted. A base.
    Queue(u32, Box<Queue>, [u64; COUNTERS]),
    /// The queue of that number is gone, and with it what was in it.
    QueueGone(u32),
    /// A queue has counted more. A change.
    Counts(u32, Place, [u64; COUNTERS]),
    Message(MessageRecord<'a>),
    Leases(LeasesRecord<'a>),
    /// Messages that are gone. A change.
    Gone(Vec<Place>),
    Change(ChangeRecord),
    /// A dedup key with a record of its own: its message is gone, or took it later. Where the message is there, its
    /// base is named. A base itself.
    Hold(HoldKey, MessageId, Until, Option<Place>),
    /// An entry of the registry. A base.
    Entry(EntryKey, u64, &'a [u8]),
    /// An entry is gone. A change.
    EntryGone(EntryKey, Place),
    /// A log with its last number and the time before which it was trimmed. A base.
    Log(LogName, u64, Timestamp),
    /// Segments before this one are not needed any more.
    Kept(u32),
    /// Leases that had run out at the first time got until the second. A change of all of them.
    Grace(Timestamp, Timestamp),
    /// A record of a log, in the segments of logs.
    Logged(LogName, u64, Timestamp, &'a [u8]),
}

/// Appends a record and answers where it begins in the frame, and how long it is.
fn append(frame: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) -> (usize, u32) {
    let start = frame.len();
    frame.put_u8(tag);
    frame.put_u32(0);
    body(frame);
    let length = size(frame.len() - start - HEADER_BYTES);
    patch(frame, start + 1, length);
    (start, length + size(HEADER_BYTES))
}

/// The same where the body has a checksum of its own at its front.
fn append_checked(frame: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) -> (usize, u32) {
    append(frame, tag, |frame| put_checked(frame, body))
}

fn put_checked(frame: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = frame.len();
    frame.put_u32(0);
    body(frame);
    let sum = crc32c::crc32c(frame.get(at + 4..).unwrap_or_default());
    patch(frame, at, sum);
}

fn patch(frame: &mut [u8], at: usize, value: u32) {
    if let Some(field) = frame.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_le_bytes());
    }
}

fn checked(body: &[u8]) -> Result<Take<'_>, Malformed> {
    let mut from = Take(body);
    if from.u32()? == crc32c::crc32c(from.0) {
        Ok(from)
    } else {
        Err(Malformed("the record does not match its checksum"))
    }
}

pub(crate) fn put_store(frame: &mut Vec<u8>, store: &StoreRecord) -> (usize, u32) {
    append(frame, STORE, |out| {
        out.put(&store.receipt_key);
        out.put_u16(store.epoch);
        out.put_u64(store.leases);
        out.put_u64(store.sequence);
        out.put_u64(store.version);
        out.put_u32(store.queues);
    })
}

pub(crate) fn put_queue(
    frame: &mut Vec<u8>,
    number: u32,
    queue: &Queue,
    counters: &[u64; COUNTERS],
) -> (usize, u32) {
    append(frame, QUEUE, |out| {
        out.put_u32(number);
        config::put_queue(out, queue);
        config::put_counters(out, counters);
    })
}

pub(crate) fn put_queue_gone(frame: &mut Vec<u8>, number: u32) {
    append(frame, QUEUE_GONE, |out| out.put_u32(number));
}

pub(crate) fn put_counts(frame: &mut Vec<u8>, number: u32, base: Place, more: &[u64; COUNTERS]) {
    append(frame, COUNTS, |out| {
        out.put_u32(number);
        out.put_place(base);
        config::put_counters(out, more);
    });
}

/// What a message record is made of when it is written: the parts that may have changed, and the parts that are written
/// by the caller, as they are or copied from the record before.
pub(crate) struct MessageParts<'a> {
    pub(crate) id: MessageId,
    pub(crate) queue: u32,
    pub(crate) created_at: Timestamp,
    pub(crate) load: u32,
    /// The base that it replaces, where it was written before.
    pub(crate) replaces: Option<Place>,
    pub(crate) progress: &'a Progress,
    pub(crate) hold: Option<(u128, Until)>,
}

pub(crate) fn put_message(
    frame: &mut Vec<u8>,
    parts: &MessageParts<'_>,
    spec: impl FnOnce(&mut Vec<u8>),
    history: impl FnOnce(&mut Vec<u8>),
) -> (usize, u32) {
    let body = |out: &mut Vec<u8>| {
        out.put(parts.id.as_bytes());
        out.put_u32(parts.queue);
        out.put_time(parts.created_at);
        out.put_u32(parts.load);
        message::put_progress(out, parts.progress);
        out.put_option(parts.hold, |out, (digest, until)| {
            out.put(&digest.to_be_bytes());
            message::put_until(out, until);
        });
        let spec_at = out.len();
        out.put_u32(0);
        spec(out);
        let length = size(out.len() - spec_at - 4);
        patch(out, spec_at, length);
        history(out);
    };
    match parts.replaces {
        None => append_checked(frame, MESSAGE, body),
        // In front of the checksum, so that a copy needs no other.
        Some(place) => append(frame, MESSAGE_AGAIN, |out| {
            out.put_place(place);
            put_checked(out, body);
        }),
    }
}

/// Writes a message again whose record still says all there is to say: as it is, checksum and all.
pub(crate) fn copy_message(
    frame: &mut Vec<u8>,
    message: Located<'_>,
    replaces: Place,
) -> Result<(usize, u32), Malformed> {
    let body = message.message_body()?;
    Ok(append(frame, MESSAGE_AGAIN, |out| {
        out.put_place(replaces);
        out.put(body);
    }))
}

pub(crate) fn put_leases(
    frame: &mut Vec<u8>,
    consumer: &ConsumerName,
    leased_at: Timestamp,
    first: LeaseId,
    items: impl Iterator<Item = (Place, Timestamp)>,
) {
    append(frame, LEASES, |out| {
        out.put_short(consumer.as_str().as_bytes());
        out.put_time(leased_at);
        out.put_u64(first.bits());
        for (base, deadline) in items {
            out.put_place(base);
            out.put_time(deadline);
        }
    });
}

pub(crate) fn put_gone(frame: &mut Vec<u8>, bases: impl Iterator<Item = Place>) {
    append(frame, GONE, |out| bases.for_each(|base| out.put_place(base)));
}

pub(crate) fn put_change(frame: &mut Vec<u8>, change: &ChangeRecord) -> (usize, u32) {
    append_checked(frame, CHANGE, |out| {
        out.put_place(change.base);
        message::put_progress(out, &change.progress);
        out.put_option(change.queue, Vec::put_u32);
        out.put_option(change.link.as_ref(), message::put_link);
    })
}

pub(crate) fn put_hold(
    frame: &mut Vec<u8>,
    key: HoldKey,
    message: MessageId,
    until: Until,
    base: Option<Place>,
) -> (usize, u32) {
    append(frame, HOLD, |out| {
        out.put_u32(key.queue);
        out.put(&key.digest.to_be_bytes());
        out.put(message.as_bytes());
        message::put_until(out, until);
        out.put_option(base, Vec::put_place);
    })
}

fn put_key(out: &mut Vec<u8>, key: &EntryKey) {
    let kind = EntryKind::ALL.iter().position(|kind| *kind == key.kind).unwrap_or_default();
    out.put_u8(u8::try_from(kind).expect("there are few kinds"));
    out.put_short(key.name.as_str().as_bytes());
}

fn take_key(from: &mut Take<'_>) -> Result<EntryKey, Malformed> {
    let kind = EntryKind::ALL.get(usize::from(from.u8()?)).ok_or(Malformed("no such kind of entry"))?;
    Ok(EntryKey { kind: *kind, name: take_name(from)? })
}

fn take_name(from: &mut Take<'_>) -> Result<EntryName, Malformed> {
    EntryName::new(from.text()?).map_err(|_| Malformed("a name breaks its rule"))
}

pub(crate) fn put_entry(frame: &mut Vec<u8>, key: &EntryKey, version: u64, value: &[u8]) -> (usize, u32) {
    append(frame, ENTRY, |out| {
        put_key(out, key);
        out.put_u64(version);
        out.put_long(value);
    })
}

pub(crate) fn put_entry_gone(frame: &mut Vec<u8>, key: &EntryKey, base: Place) {
    append(frame, ENTRY_GONE, |out| {
        put_key(out, key);
        out.put_place(base);
    });
}

pub(crate) fn put_log(frame: &mut Vec<u8>, log: &LogName, last: u64, horizon: Timestamp) -> (usize, u32) {
    append(frame, LOG, |out| {
        out.put_short(log.as_str().as_bytes());
        out.put_u64(last);
        out.put_time(horizon);
    })
}

pub(crate) fn put_kept(frame: &mut Vec<u8>, first: u32) {
    append(frame, KEPT, |out| out.put_u32(first));
}

pub(crate) fn put_grace(frame: &mut Vec<u8>, overdue: Timestamp, granted: Timestamp) {
    append(frame, GRACE, |out| {
        out.put_time(overdue);
        out.put_time(granted);
    });
}

pub(crate) fn put_log_record(
    frame: &mut Vec<u8>,
    log: &LogName,
    number: u64,
    at: Timestamp,
    value: &[u8],
) -> (usize, u32) {
    append(frame, LOG_RECORD, |out| {
        out.put_short(log.as_str().as_bytes());
        out.put_u64(number);
        out.put_time(at);
        out.put_long(value);
    })
}

/// The records of a frame, each with where it begins and how long it is.
pub(crate) struct Records<'a> {
    left: Take<'a>,
    at: usize,
}

impl<'a> Records<'a> {
    /// The records in the body of a frame, which begins at `at`.
    pub(crate) fn new(body: &'a [u8], at: usize) -> Self {
        Self { left: Take(body), at }
    }

    fn take_one(&mut self) -> Result<Located<'a>, Malformed> {
        let at = self.at;
        let tag = self.left.u8()?;
        let body = self.left.long()?;
        let length = HEADER_BYTES + body.len();
        self.at += length;
        Ok(Located { at, length: size(length), tag, body })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Located<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.0.is_empty() {
            return None;
        }
        let taken = self.take_one();
        if taken.is_err() {
            self.left = Take(&[]);
        }
        Some(taken)
    }
}

/// A record where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Located<'a> {
    pub(crate) at: usize,
    pub(crate) length: u32,
    tag: u8,
    body: &'a [u8],
}

impl<'a> Located<'a> {
    /// The record that `bytes` are, no more and no less.
    pub(crate) fn whole(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut records = Records::new(bytes, 0);
        let record = records.take_one()?;
        records.left.end()?;
        Ok(record)
    }

    /// Whether a cleaner has to look at it: changes follow their base, and go with it.
    pub(crate) fn is_base(&self) -> bool {
        matches!(self.tag, STORE | QUEUE | MESSAGE | MESSAGE_AGAIN | HOLD | ENTRY | LOG)
    }

    /// The message that it is, if it is one: the most frequent record, read without a detour and without checking its
    /// own checksum.
    pub(crate) fn message(&self) -> Result<Option<MessageRecord<'a>>, Malformed> {
        let mut from = Take(self.body);
        let replaces = match self.tag {
            MESSAGE => None,
            MESSAGE_AGAIN => Some(from.place()?),
            _ => return Ok(None),
        };
        from.u32()?;
        take_message(from, replaces).map(Some)
    }

    /// What is under the checksum of a message, and the checksum.
    fn message_body(&self) -> Result<&'a [u8], Malformed> {
        let mut from = Take(self.body);
        match self.tag {
            MESSAGE => Ok(from.0),
            MESSAGE_AGAIN => from.place().map(|_| from.0),
            _ => Err(Malformed("this is not a message")),
        }
    }

    /// Reads it, and checks the checksum of its own where it has one and `check` says so.
    pub(crate) fn read(&self, check: bool) -> Result<Record<'a>, Malformed> {
        let mut from = Take(self.body);
        let checked_body = |body| {
            if check {
                checked(body)
            } else {
                Take(body).bytes(4).map(|_| Take(body.get(4..).unwrap_or_default()))
            }
        };
        let record = match self.tag {
            STORE => Record::Store(take_store(&mut from)?),
            QUEUE => {
                let number = from.u32()?;
                let queue = Box::new(config::take_queue(&mut from)?);
                Record::Queue(number, queue, config::take_counters(&mut from)?)
            }
            QUEUE_GONE => Record::QueueGone(from.u32()?),
            COUNTS => Record::Counts(from.u32()?, from.place()?, config::take_counters(&mut from)?),
            MESSAGE => return take_message(checked_body(self.body)?, None).map(Record::Message),
            MESSAGE_AGAIN => {
                let replaces = from.place()?;
                return take_message(checked_body(from.0)?, Some(replaces)).map(Record::Message);
            }
            LEASES => {
                let consumer = from.parse()?;
                let (leased_at, first) = (from.time()?, LeaseId::from_bits(from.u64()?));
                if from.0.len() % 16 != 0 {
                    return Err(Malformed("a lease ends too early"));
                }
                return Ok(Record::Leases(LeasesRecord { consumer, leased_at, first, items: from.0 }));
            }
            GONE => {
                let mut bases = Vec::with_capacity(from.0.len() / 8);
                while !from.0.is_empty() {
                    bases.push(from.place()?);
                }
                Record::Gone(bases)
            }
            CHANGE => return take_change(checked_body(self.body)?).map(Record::Change),
            HOLD => Record::Hold(
                HoldKey { queue: from.u32()?, digest: from.u128()? },
                MessageId::from_bytes(from.u128()?.to_be_bytes()),
                message::take_until(&mut from)?,
                from.option(Take::place)?,
            ),
            ENTRY => Record::Entry(take_key(&mut from)?, from.u64()?, from.long()?),
            ENTRY_GONE => Record::EntryGone(take_key(&mut from)?, from.place()?),
            LOG => Record::Log(take_name(&mut from)?, from.u64()?, from.time()?),
            KEPT => Record::Kept(from.u32()?),
            GRACE => Record::Grace(from.time()?, from.time()?),
            LOG_RECORD => Record::Logged(take_name(&mut from)?, from.u64()?, from.time()?, from.long()?),
            _ => return Err(Malformed("no such kind of record")),
        };
        from.end()?;
        Ok(record)
    }
}

fn take_store(from: &mut Take<'_>) -> Result<StoreRecord, Malformed> {
    let mut receipt_key = [0; 32];
    receipt_key.copy_from_slice(from.bytes(32)?);
    Ok(StoreRecord {
        receipt_key,
        epoch: from.u16()?,
        leases: from.u64()?,
        sequence: from.u64()?,
        version: from.u64()?,
        queues: from.u32()?,
    })
}

fn take_message(mut from: Take<'_>, replaces: Option<Place>) -> Result<MessageRecord<'_>, Malformed> {
    let id = MessageId::from_bytes(from.u128()?.to_be_bytes());
    let (queue, created_at, load) = (from.u32()?, from.time()?, from.u32()?);
    let progress = message::take_progress(&mut from)?;
    let hold = from.option(|from| Ok((from.u128()?, message::take_until(from)?)))?;
    let spec = from.long()?;
    let history = Some(from.0).filter(|history| !history.is_empty());
    Ok(MessageRecord { id, queue, created_at, load, replaces, progress, hold, spec, history })
}

impl MessageRecord<'_> {
    /// What happened to it before this record was written.
    pub(crate) fn read_history(&self) -> Result<(History, Option<QueueName>), Malformed> {
        let Some(bytes) = self.history else {
            return Ok((History::default(), None));
        };
        let mut from = Take(bytes);
        let history = message::take_history(&mut from)?;
        from.end()?;
        Ok(history)
    }
}

fn take_change(mut from: Take<'_>) -> Result<ChangeRecord, Malformed> {
    let change = ChangeRecord {
        base: from.place()?,
        progress: message::take_progress(&mut from)?,
        queue: from.option(Take::u32)?,
        link: from.option(message::take_link)?,
    };
    from.end()?;
    Ok(change)
}
