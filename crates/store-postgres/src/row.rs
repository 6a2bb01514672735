//! How a message lies in its rows.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use bytes::Bytes;
use redrive_core::lease::{ConsumerName, Lease, LeaseId};
use redrive_core::message::{
    AttemptRecord, Body, Cause, Checkpoint, ContentType, DeadReason, Death, Dedup, DedupKey, ErrorText,
    FairnessKey, Headers, History, Message, MessageId, MessageType, Note, Phase, Priority, Progress,
    RedriveNote, Source, Spec, Uniqueness,
};
use redrive_core::policy::{DelayRule, Fingerprint};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::StoreError;
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use uuid::Uuid;

use crate::error::damaged;

/// A delayed message, as far as somebody has written down.
pub(crate) const DELAYED: i16 = 0;
pub(crate) const READY: i16 = 1;
pub(crate) const LEASED: i16 = 2;
pub(crate) const DEAD: i16 = 3;
pub(crate) const DONE: i16 = 4;

/// How many columns the state of a message has, and what happened to it.
pub(crate) const MESSAGE_COLUMNS: usize = 30;
pub(crate) const STORY_COLUMNS: usize = 9;

/// A message, and what its rows say besides.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) no: i64,
    pub(crate) queue_id: i32,
    pub(crate) class_id: i32,
    /// The queue it was read from; a move changes `queue_id`.
    pub(crate) was_in: i32,
    pub(crate) storied: bool,
    /// The error of a nack that nobody has judged yet.
    pub(crate) nacked: Option<ErrorText>,
    pub(crate) message: Message,
}

/// Where a priority stands in its line: the first one has the smallest.
pub(crate) fn rank(priority: Priority) -> i16 {
    9 - i16::from(priority.get())
}

impl Kept {
    /// Its place in its line.
    pub(crate) fn place(&self) -> i64 {
        i64::try_from(self.message.progress.sequence).unwrap_or(i64::MAX)
    }

    /// Whether it is in that state, delayed and ready being one.
    pub(crate) fn is_in(&self, state: i16) -> bool {
        match &self.message.progress.phase {
            Phase::Waiting => state == DELAYED || state == READY,
            Phase::Leased(_) => state == LEASED,
            Phase::Dead(_) => state == DEAD,
            Phase::Done(_) => state == DONE,
        }
    }
}

/// Signed numbers sort as unsigned ones do, once the first bit is flipped.
pub(crate) const fn signed(bits: u64) -> i64 {
    (bits ^ (1 << 63)).cast_signed()
}

pub(crate) const fn unsigned(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

pub(crate) fn millis(at: Timestamp) -> i64 {
    i64::try_from(at.as_millis()).expect("no time is beyond the year 9999")
}

pub(crate) fn span(time: Millis) -> i64 {
    i64::try_from(time.get()).unwrap_or(i64::MAX)
}

pub(crate) fn time(at: i64) -> Timestamp {
    Timestamp::from_millis(u64::try_from(at).unwrap_or_default())
}

pub(crate) fn uuid(id: MessageId) -> Uuid {
    Uuid::from_bytes(*id.as_bytes())
}

pub(crate) fn message_id(id: Uuid) -> MessageId {
    MessageId::from_bytes(*id.as_bytes())
}

/// A number that cannot be negative, as PostgreSQL keeps it.
pub(crate) fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Reads columns one after the other.
pub(crate) struct Columns<'a> {
    row: &'a Row,
    next: usize,
}

impl<'a> Columns<'a> {
    pub(crate) fn from(row: &'a Row, first: usize) -> Self {
        Self { row, next: first }
    }

    pub(crate) fn take<T: FromSql<'a>>(&mut self) -> Result<T, StoreError> {
        let at = self.next;
        self.next += 1;
        self.row.try_get(at).map_err(|error| {
            let name = self.row.columns().get(at).map_or("?", |column| column.name());
            damaged(format!("column {name}"), error)
        })
    }

    fn number(&mut self) -> Result<u32, StoreError> {
        let number: i32 = self.take()?;
        u32::try_from(number).map_err(|error| damaged("a counter", error))
    }

    fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.take().map(time)
    }

    fn maybe_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.take::<Option<i64>>()?.map(time))
    }
}

fn said<T, E: ToString>(what: &'static str, value: Result<T, E>) -> Result<T, StoreError> {
    value.map_err(|error| damaged(what, error.to_string()))
}

/// Who had a message, of which a statement has answered it last.
pub(crate) fn consumer(from: &mut Columns<'_>) -> Result<ConsumerName, StoreError> {
    let name: Option<&str> = from.take()?;
    said("consumer", ConsumerName::new(name.unwrap_or_default()))
}

pub(crate) fn reason_number(reason: DeadReason) -> i16 {
    match reason {
        DeadReason::MaxAttempts => 0,
        DeadReason::Buried => 1,
        DeadReason::ExpiredTtl => 2,
        DeadReason::MaxDeliveries => 3,
        DeadReason::NotReached => 4,
    }
}

pub(crate) fn reason(number: i16) -> Result<DeadReason, StoreError> {
    let known = DeadReason::ALL.into_iter().find(|reason| reason_number(*reason) == number);
    known.ok_or_else(|| damaged("dead_reason", number))
}

pub(crate) fn cause_number(cause: Cause) -> i16 {
    match cause {
        Cause::Nack => 0,
        Cause::Expire => 1,
        Cause::Bury => 2,
    }
}

pub(crate) fn rule_number(rule: DelayRule) -> i16 {
    match rule {
        DelayRule::Backoff => 0,
        DelayRule::AtLeast => 1,
        DelayRule::Exactly => 2,
        DelayRule::Overdue => 3,
    }
}

fn death(
    reason_number: Option<i16>,
    at: Option<i64>,
    fingerprint: Option<i64>,
) -> Result<Option<Death>, StoreError> {
    match (reason_number, at, fingerprint) {
        (Some(number), Some(at), Some(bits)) => {
            let fingerprint = Fingerprint::from_bits(unsigned(bits));
            Ok(Some(Death { reason: reason(number)?, at: time(at), fingerprint }))
        }
        _ => Ok(None),
    }
}

/// A message without its content, from the columns that `{message}` and `{story}` name. Its type and source are those of
/// its class, which the caller knows.
pub(crate) fn read(
    row: &Row,
    first: usize,
    queue: &QueueName,
    class: impl FnOnce(i32) -> Result<(MessageType, Source), StoreError>,
) -> Result<Kept, StoreError> {
    let mut from = Columns::from(row, first);
    let id = message_id(from.take()?);
    let class_id: i32 = from.take()?;
    let created_at = from.time()?;
    let visible_at = from.time()?;
    let place: i64 = from.take()?;
    let state: i16 = from.take()?;
    let rank: i16 = from.take()?;
    let unique_key: Option<bool> = from.take()?;
    let (attempts, deliveries, deliveries_before, redrives) =
        (from.number()?, from.number()?, from.number()?, from.number()?);
    let max_attempts: Option<i32> = from.take()?;
    let lease_timeout: Option<i64> = from.take()?;
    let expires_at = from.maybe_time()?;
    let lease_id: Option<i64> = from.take()?;
    let leased_at = from.maybe_time()?;
    let deadline = from.maybe_time()?;
    let ended_at: Option<i64> = from.take()?;
    let fingerprint: Option<i64> = from.take()?;
    let dead_reason: Option<i16> = from.take()?;
    let fairness_key = said("fairness_key", FairnessKey::new(from.take::<&str>()?))?;
    let consumer: Option<&str> = from.take()?;
    let dedup_key: Option<&str> = from.take()?;
    let origin_queue: Option<&str> = from.take()?;
    let no: i64 = from.take()?;
    let queue_id: i32 = from.take()?;
    let storied: bool = from.take()?;
    let nacked: Option<&str> = from.take()?;
    let _size: i32 = from.take()?;
    let phase = match state {
        DELAYED | READY => Phase::Waiting,
        LEASED => {
            let id = lease_id.ok_or_else(|| damaged("lease_id", "a leased message has none"))?;
            Phase::Leased(Lease {
                id: LeaseId::from_bits(unsigned(id)),
                consumer: said("consumer", ConsumerName::new(consumer.unwrap_or_default()))?,
                leased_at: leased_at.unwrap_or_default(),
                deadline: deadline.unwrap_or_default(),
            })
        }
        DEAD => Phase::Dead(
            death(dead_reason, ended_at, fingerprint)?
                .ok_or_else(|| damaged("dead_reason", "a dead message has none"))?,
        ),
        DONE => Phase::Done(time(ended_at.unwrap_or_default())),
        other => return Err(damaged("state", other)),
    };
    let dedup = match dedup_key {
        Some(key) => {
            let unique = if unique_key == Some(true) { Uniqueness::UntilDone } else { Uniqueness::Window };
            Some(Dedup { key: said("dedup_key", DedupKey::new(key))?, unique })
        }
        None => None,
    };
    let (kind, source) = class(class_id)?;
    let message = Message {
        queue: queue.clone(),
        spec: Spec {
            id,
            body: Body::default(),
            content_type: ContentType::default(),
            headers: Headers::default(),
            kind,
            source,
            fairness_key,
            dedup,
            lease_timeout: lease_timeout.map(|ms| Millis::new(u64::try_from(ms).unwrap_or_default())),
            max_attempts: max_attempts.and_then(|max| u32::try_from(max).ok()).and_then(NonZeroU32::new),
        },
        created_at,
        progress: Progress {
            phase,
            visible_at,
            sequence: u64::try_from(place).unwrap_or_default(),
            priority: said("rank", Priority::new(u8::try_from(9 - rank).unwrap_or(u8::MAX)))?,
            expires_at,
            attempts,
            deliveries,
            deliveries_before,
            redrives,
        },
        history: if storied { story(&mut from)? } else { History::default() },
        origin_queue: origin_queue
            .map(QueueName::new)
            .transpose()
            .map_err(|error| damaged("origin_queue", error))?,
    };
    Ok(Kept {
        no,
        queue_id,
        class_id,
        was_in: queue_id,
        storied,
        nacked: nacked.map(ErrorText::new),
        message,
    })
}

/// What happened to a message, from the columns that `{story}` names.
fn story(from: &mut Columns<'_>) -> Result<History, StoreError> {
    let last_error: Option<&str> = from.take()?;
    let checkpoint: Option<&[u8]> = from.take()?;
    let (reason, at, fingerprint) = (from.take()?, from.take()?, from.take()?);
    let redriven_at: Option<i64> = from.take()?;
    let (by, why): (Option<&str>, Option<&str>) = (from.take()?, from.take()?);
    let failures: Option<&str> = from.take()?;
    let redriven = match redriven_at {
        Some(at) => Some(RedriveNote {
            at: time(at),
            by: said("redriven_by", Note::new(by.unwrap_or_default()))?,
            reason: said("redriven_reason", Note::new(why.unwrap_or_default()))?,
        }),
        None => None,
    };
    let checkpoint = checkpoint.map(|bytes| Checkpoint::new(Bytes::copy_from_slice(bytes))).transpose();
    Ok(History {
        last_error: last_error.map(ErrorText::new),
        failures: failures.map_or(Ok(VecDeque::new()), read_failures)?,
        checkpoint: said("checkpoint", checkpoint)?,
        death: death(reason, at, fingerprint)?,
        redriven,
    })
}

fn read_failures(json: &str) -> Result<VecDeque<AttemptRecord>, StoreError> {
    let rows: Vec<Value> = said("failures", serde_json::from_str(json))?;
    rows.iter().map(|row| failure(row).ok_or_else(|| damaged("failures", row))).collect()
}

fn failure(row: &Value) -> Option<AttemptRecord> {
    let [attempt, cause, rule, leased_at, ended_at, delay, consumer, error] = row.as_array()?.as_slice()
    else {
        return None;
    };
    let cause = match cause.as_u64()? {
        0 => Cause::Nack,
        1 => Cause::Expire,
        2 => Cause::Bury,
        _ => return None,
    };
    let delay = match (delay.as_u64(), rule.as_u64()) {
        (Some(delay), Some(rule)) => {
            let rule = match rule {
                0 => DelayRule::Backoff,
                1 => DelayRule::AtLeast,
                2 => DelayRule::Exactly,
                3 => DelayRule::Overdue,
                _ => return None,
            };
            Some((Millis::new(delay), rule))
        }
        _ => None,
    };
    Some(AttemptRecord {
        attempt: u32::try_from(attempt.as_u64()?).ok()?,
        consumer: ConsumerName::new(consumer.as_str()?).ok()?,
        leased_at: Timestamp::from_millis(leased_at.as_u64()?),
        ended_at: Timestamp::from_millis(ended_at.as_u64()?),
        cause,
        error: ErrorText::new(error.as_str()?),
        delay,
    })
}

/// Adds the content, from the columns that `{content}` names.
pub(crate) fn read_content(row: &Row, first: usize, kept: &mut Kept) -> Result<(), StoreError> {
    let mut from = Columns::from(row, first);
    let body: &[u8] = from.take()?;
    let content_type: &str = from.take()?;
    let headers: Option<Value> = from.take()?;
    let spec = &mut kept.message.spec;
    spec.body = said("body", Body::within(Bytes::copy_from_slice(body), usize::MAX))?;
    spec.content_type = said("content_type", ContentType::new(content_type))?;
    if let Some(headers) = headers {
        let pairs = headers.as_object().into_iter().flatten();
        let pairs = pairs.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
        spec.headers = said("headers", Headers::new(pairs))?;
    }
    Ok(())
}

/// Headers as they are kept.
pub(crate) fn write_headers(headers: &Headers) -> Option<String> {
    if headers.size() == 0 {
        return None;
    }
    let map: serde_json::Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
    Some(Value::Object(map).to_string())
}
