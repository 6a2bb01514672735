//! How a message is written: where it stands, what it carries, what happened to it.

#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

use std::num::NonZeroU32;

use redrive_core::lease::{Lease, LeaseId};
use redrive_core::message::{
    AttemptRecord, Cause, Checkpoint, DeadReason, Death, Dedup, ErrorText, FairnessKey, History, MessageType,
    Phase, Priority, Progress, RedriveNote, Source, Spec, Uniqueness,
};
use redrive_core::policy::{DelayRule, Fingerprint};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};

use super::bytes::{Put, Take, size};
use super::{Malformed, Place};

const WAITING: u8 = 0;
const LEASED: u8 = 1;
const DEAD: u8 = 2;
const DONE: u8 = 3;

pub(crate) fn put_progress(out: &mut Vec<u8>, progress: &Progress) {
    out.put_u8(match progress.phase {
        Phase::Waiting => WAITING,
        Phase::Leased(_) => LEASED,
        Phase::Dead(_) => DEAD,
        Phase::Done(_) => DONE,
    });
    out.put_u8(progress.priority.get());
    out.put_time(progress.visible_at);
    out.put_u64(progress.sequence);
    out.put_u32(progress.attempts);
    out.put_u32(progress.deliveries);
    out.put_u32(progress.deliveries_before);
    out.put_u32(progress.redrives);
    out.put_option(progress.expires_at, Vec::put_time);
    match &progress.phase {
        Phase::Waiting => {}
        Phase::Leased(lease) => {
            out.put_u64(lease.id.bits());
            out.put_time(lease.leased_at);
            out.put_time(lease.deadline);
            out.put_short(lease.consumer.as_str().as_bytes());
        }
        Phase::Dead(death) => put_death(out, *death),
        Phase::Done(at) => out.put_time(*at),
    }
}

pub(crate) fn take_progress(from: &mut Take<'_>) -> Result<Progress, Malformed> {
    let phase = from.u8()?;
    let priority = Priority::new(from.u8()?).map_err(|_| Malformed("no such priority"))?;
    let mut progress = Progress {
        phase: Phase::Waiting,
        priority,
        visible_at: from.time()?,
        sequence: from.u64()?,
        attempts: from.u32()?,
        deliveries: from.u32()?,
        deliveries_before: from.u32()?,
        redrives: from.u32()?,
        expires_at: from.option(Take::time)?,
    };
    progress.phase = match phase {
        WAITING => Phase::Waiting,
        LEASED => Phase::Leased(Lease {
            id: LeaseId::from_bits(from.u64()?),
            leased_at: from.time()?,
            deadline: from.time()?,
            consumer: from.parse()?,
        }),
        DEAD => Phase::Dead(take_death(from)?),
        DONE => Phase::Done(from.time()?),
        _ => return Err(Malformed("no such state")),
    };
    Ok(progress)
}

fn put_death(out: &mut Vec<u8>, death: Death) {
    out.put_u8(match death.reason {
        DeadReason::MaxAttempts => 0,
        DeadReason::Buried => 1,
        DeadReason::ExpiredTtl => 2,
        DeadReason::MaxDeliveries => 3,
        DeadReason::NotReached => 4,
    });
    out.put_time(death.at);
    out.put_u64(death.fingerprint.to_bits());
}

fn take_death(from: &mut Take<'_>) -> Result<Death, Malformed> {
    let reason = match from.u8()? {
        0 => DeadReason::MaxAttempts,
        1 => DeadReason::Buried,
        2 => DeadReason::ExpiredTtl,
        3 => DeadReason::MaxDeliveries,
        4 => DeadReason::NotReached,
        _ => return Err(Malformed("no such reason to be dead")),
    };
    Ok(Death { reason, at: from.time()?, fingerprint: Fingerprint::from_bits(from.u64()?) })
}

/// How long a dedup key is held, as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// While its message is delayed, ready or leased.
    Done,
    /// Until this time.
    Time(Timestamp),
}

pub(crate) fn put_until(out: &mut Vec<u8>, until: Until) {
    out.put_u64(match until {
        Until::Done => u64::MAX,
        Until::Time(at) => at.as_millis(),
    });
}

pub(crate) fn take_until(from: &mut Take<'_>) -> Result<Until, Malformed> {
    Ok(match from.u64()? {
        u64::MAX => Until::Done,
        ms => Until::Time(Timestamp::from_millis(ms)),
    })
}

/// Writes what the producer wrote, the id left out.
pub(crate) fn put_spec(out: &mut Vec<u8>, spec: &Spec) {
    out.put_option(spec.lease_timeout, |out, time| out.put_u64(time.get()));
    out.put_u32(spec.max_attempts.map_or(0, NonZeroU32::get));
    out.put_short(spec.kind.as_str().as_bytes());
    out.put_short(spec.source.as_str().as_bytes());
    out.put_short(spec.fairness_key.as_str().as_bytes());
    out.put_option(spec.dedup.as_ref(), |out, dedup| {
        out.put_u8(u8::from(dedup.unique == Uniqueness::UntilDone));
        out.put_short(dedup.key.as_str().as_bytes());
    });
    out.put_short(spec.content_type.as_str().as_bytes());
    out.put_u32(size(spec.headers.iter().count()));
    for (name, value) in spec.headers.iter() {
        out.put_long(name.as_bytes());
        out.put_long(value.as_bytes());
    }
    out.put_long(spec.body.bytes());
}

/// What the producer wrote, as views into the record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpecView<'a> {
    pub(crate) lease_timeout: Option<Millis>,
    pub(crate) max_attempts: Option<NonZeroU32>,
    pub(crate) kind: &'a str,
    pub(crate) source: &'a str,
    pub(crate) key: &'a str,
    /// The dedup key, where it is held while the message is not done.
    pub(crate) unique_key: Option<&'a str>,
    dedup: Option<(bool, &'a str)>,
    rest: Take<'a>,
}

/// The parts of a spec that only a reader of messages wants.
pub(crate) struct SpecRest<'a> {
    pub(crate) dedup: Option<Dedup>,
    pub(crate) content_type: &'a str,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: &'a [u8],
}

impl<'a> SpecView<'a> {
    pub(crate) fn take(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut from = Take(bytes);
        let (lease_timeout, max_attempts) = (from.option(Take::millis)?, NonZeroU32::new(from.u32()?));
        let (kind, source, key) = (from.text()?, from.text()?, from.text()?);
        let dedup = from.option(|from| Ok((from.bool()?, from.text()?)))?;
        let unique_key = dedup.filter(|(unique, _)| *unique).map(|(_, key)| key);
        Ok(Self { lease_timeout, max_attempts, kind, source, key, unique_key, dedup, rest: from })
    }

    /// The same, where its names keep the rules of their types.
    pub(crate) fn checked(self) -> Result<Self, Malformed> {
        let broken = |_| Malformed("a type, a source or a fairness key breaks its rule");
        self.kind.parse::<MessageType>().map_err(broken)?;
        self.source.parse::<Source>().map_err(broken)?;
        self.key.parse::<FairnessKey>().map_err(broken)?;
        Ok(self)
    }

    /// The part of the spec that these fields were read from; nothing where there is a dedup key, which is different in
    /// every message.
    pub(crate) fn beginning(&self, spec: &'a [u8]) -> &'a [u8] {
        let length = spec.len().saturating_sub(self.rest.0.len());
        spec.get(..length).filter(|_| self.dedup.is_none()).unwrap_or_default()
    }

    pub(crate) fn rest(&self) -> Result<SpecRest<'a>, Malformed> {
        let mut from = self.rest;
        let dedup = match self.dedup {
            None => None,
            Some((unique, key)) => {
                let unique = if unique { Uniqueness::UntilDone } else { Uniqueness::Window };
                Some(Dedup {
                    unique,
                    key: key.parse().map_err(|_| Malformed("a dedup key breaks its rule"))?,
                })
            }
        };
        let content_type = from.text()?;
        let mut headers = Vec::new();
        for _ in 0..from.u32()? {
            let (name, value) = (from.long()?, from.long()?);
            let text = |bytes: &[u8]| {
                String::from_utf8(bytes.to_vec()).map_err(|_| Malformed("a header is not UTF-8"))
            };
            headers.push((text(name)?, text(value)?));
        }
        let body = from.long()?;
        from.end()?;
        Ok(SpecRest { dedup, content_type, headers, body })
    }
}

/// What the producer wrote without its dedup key; `None` where it has none.
pub(crate) fn without_dedup(spec: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    let view = SpecView::take(spec)?;
    let Some((_, key)) = view.dedup else {
        return Ok(None);
    };
    // The key is the last thing before the rest: a byte that says it is there, one for its kind, its length, itself.
    let (before, after) = spec.split_at(spec.len() - view.rest.0.len());
    let kept = before.len() - (1 + 1 + 2 + key.len());
    let mut bytes = before.get(..kept).ok_or(Malformed("a dedup key is longer than what holds it"))?.to_vec();
    bytes.put_u8(0);
    bytes.put(after);
    Ok(Some(bytes))
}

/// What one transition added to the history of a message. The one before it is named, so that they make a chain from
/// the newest to the base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Link {
    pub(crate) before: Option<(Place, u32)>,
    pub(crate) failure: Option<AttemptRecord>,
    pub(crate) checkpoint: Option<Checkpoint>,
    pub(crate) redriven: Option<RedriveNote>,
    pub(crate) death: Option<Death>,
    pub(crate) origin: Option<QueueName>,
}

impl Link {
    /// Whether it says anything.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self { before: self.before, ..Self::default() }
    }

    /// Adds what it says to the history so far.
    pub(crate) fn add_to(self, history: &mut History, origin: &mut Option<QueueName>) {
        if let Some(failure) = self.failure {
            history.add(failure);
        }
        history.checkpoint = self.checkpoint.or(history.checkpoint.take());
        history.redriven = self.redriven.or(history.redriven.take());
        history.death = self.death.or(history.death);
        *origin = self.origin.or(origin.take());
    }
}

pub(crate) fn put_link(out: &mut Vec<u8>, link: &Link) {
    out.put_option(link.before, |out, (place, length)| {
        out.put_place(place);
        out.put_u32(length);
    });
    out.put_option(link.failure.as_ref(), put_failure);
    out.put_option(link.checkpoint.as_ref(), |out, checkpoint| out.put_short(checkpoint.bytes()));
    out.put_option(link.redriven.as_ref(), put_note);
    out.put_option(link.death, put_death);
    out.put_option(link.origin.as_ref(), |out, origin| out.put_short(origin.as_str().as_bytes()));
}

pub(crate) fn take_link(from: &mut Take<'_>) -> Result<Link, Malformed> {
    Ok(Link {
        before: from.option(|from| Ok((from.place()?, from.u32()?)))?,
        failure: from.option(take_failure)?,
        checkpoint: from.option(take_checkpoint)?,
        redriven: from.option(take_note)?,
        death: from.option(take_death)?,
        origin: from.option(Take::parse)?,
    })
}

/// Writes all that happened to a message.
pub(crate) fn put_history(out: &mut Vec<u8>, history: &History, origin: Option<&QueueName>) {
    out.put_option(history.last_error.as_ref(), |out, error| out.put_short(error.as_str().as_bytes()));
    out.put_u8(u8::try_from(history.failures.len()).expect("twenty at most"));
    history.failures.iter().for_each(|failure| put_failure(out, failure));
    out.put_option(history.checkpoint.as_ref(), |out, checkpoint| out.put_short(checkpoint.bytes()));
    out.put_option(history.redriven.as_ref(), put_note);
    out.put_option(history.death, put_death);
    out.put_option(origin, |out, origin| out.put_short(origin.as_str().as_bytes()));
}

pub(crate) fn take_history(from: &mut Take<'_>) -> Result<(History, Option<QueueName>), Malformed> {
    let last_error = from.option(|from| from.text().map(ErrorText::new))?;
    let mut history = History { last_error, ..History::default() };
    for _ in 0..from.u8()? {
        history.failures.push_back(take_failure(from)?);
    }
    history.checkpoint = from.option(take_checkpoint)?;
    history.redriven = from.option(take_note)?;
    history.death = from.option(take_death)?;
    Ok((history, from.option(Take::parse)?))
}

fn take_checkpoint(from: &mut Take<'_>) -> Result<Checkpoint, Malformed> {
    Checkpoint::new(from.short()?.to_vec()).map_err(|_| Malformed("a checkpoint is too long"))
}

fn put_note(out: &mut Vec<u8>, note: &RedriveNote) {
    out.put_time(note.at);
    out.put_short(note.by.as_str().as_bytes());
    out.put_short(note.reason.as_str().as_bytes());
}

fn take_note(from: &mut Take<'_>) -> Result<RedriveNote, Malformed> {
    Ok(RedriveNote { at: from.time()?, by: from.parse()?, reason: from.parse()? })
}

fn put_failure(out: &mut Vec<u8>, failure: &AttemptRecord) {
    out.put_u32(failure.attempt);
    out.put_short(failure.consumer.as_str().as_bytes());
    out.put_time(failure.leased_at);
    out.put_time(failure.ended_at);
    out.put_u8(match failure.cause {
        Cause::Nack => 0,
        Cause::Expire => 1,
        Cause::Bury => 2,
    });
    out.put_short(failure.error.as_str().as_bytes());
    out.put_option(failure.delay, |out, (delay, rule)| {
        out.put_u64(delay.get());
        out.put_u8(match rule {
            DelayRule::Backoff => 0,
            DelayRule::AtLeast => 1,
            DelayRule::Exactly => 2,
            DelayRule::Overdue => 3,
        });
    });
}

fn take_failure(from: &mut Take<'_>) -> Result<AttemptRecord, Malformed> {
    Ok(AttemptRecord {
        attempt: from.u32()?,
        consumer: from.parse()?,
        leased_at: from.time()?,
        ended_at: from.time()?,
        cause: match from.u8()? {
            0 => Cause::Nack,
            1 => Cause::Expire,
            2 => Cause::Bury,
            _ => return Err(Malformed("no such cause of a failure")),
        },
        error: from.text().map(ErrorText::new)?,
        delay: from.option(|from| {
            let delay = from.millis()?;
            let rule = match from.u8()? {
                0 => DelayRule::Backoff,
                1 => DelayRule::AtLeast,
                2 => DelayRule::Exactly,
                3 => DelayRule::Overdue,
                _ => return Err(Malformed("no such rule for a delay")),
            };
            Ok((delay, rule))
        })?,
    })
}
