//! lease: ready → leased.

use bytes::Bytes;
use redis::Value;
use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::{Lane, Message, MessageId};
use redrive_core::policy::RetryLane;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{LaneChoice, LeaseRequest, Leased, Limit, Now, Pick, QueueError, StoreError, Swept};

use crate::error::{Fault, damaged, unavailable};
use crate::link::Args;
use crate::queue::{Known, key_settings, paused_until};
use crate::reply::Reply;
use crate::store::{LOOKS, Shared};
use crate::sweep::Seen;
use crate::words::{Words, consumer_word, escape, read_content, read_kept, read_pair};

/// Numbers for the leases of one call, which nobody else gives out.
#[derive(Debug, Clone, Copy)]
struct Reserved {
    first: u64,
    epoch: u64,
}

/// What a consumer without a name is called in the group of the stream.
const NAMELESS: &str = "-";

/// The name of a consumer in the group of the stream, where people see it.
pub(crate) fn group_name(consumer: &str) -> &str {
    if consumer.is_empty() { NAMELESS } else { consumer }
}

fn args(
    shared: &Shared,
    now: Now,
    known: &Known,
    (first, requests): (&LeaseRequest, &[LeaseRequest]),
    (swept, reserved): (bool, Option<Reserved>),
) -> Args {
    let (settings, request) = (&known.settings, first);
    let (fresh, retry) = match request.lane {
        LaneChoice::Only(lane) => (lane == Lane::Fresh, lane == Lane::Retry),
        LaneChoice::Queue => (true, settings.retry_lane == RetryLane::Shared),
    };
    let (weighted, key_pauses) = key_settings(known);
    let (pick, avoid) = match request.pick {
        Pick::Fair => ("fair", String::new()),
        Pick::Probe { avoid } => ("probe", avoid.map_or_else(String::new, |id| id.to_string())),
    };
    let mut args = Args::default();
    args.push(shared.time_arg(now))
        .push(known.stamp.as_str())
        .number(requests.iter().map(|request| request.limit.get()).sum::<usize>())
        .maybe(request.time.map(redrive_core::time::Millis::get))
        .flag(fresh)
        .flag(retry)
        .number(settings.retry_share.millionths())
        .maybe(settings.max_retries_in_flight)
        .number(settings.lease_timeout.get())
        .number(settings.max_lease.get())
        .maybe(settings.retry.max_attempts)
        .maybe(settings.max_deliveries)
        .push(reserved.map_or_else(String::new, |reserved| format!("{:04x}", reserved.epoch)))
        .number(BATCH_BYTES_MAX)
        .push(known.queue.pauses.queue.map_or_else(String::new, paused_until))
        .flag(weighted)
        .flag(key_pauses)
        .flag(swept)
        .number(Limit::LEASE_SETTLES.get())
        .push(pick)
        .push(avoid)
        .maybe(reserved.map(|reserved| reserved.first))
        .number(request.filter.kinds.len());
    for kind in &request.filter.kinds {
        args.push(escape(kind.as_str()));
    }
    args.number(request.filter.sources.len());
    for source in &request.filter.sources {
        args.push(escape(source.as_str()));
    }
    for request in requests {
        args.push(group_name(request.consumer.as_str()))
            .push(consumer_word(&request.consumer))
            .number(request.limit.get());
    }
    args
}

/// The ids and the lines of what `scripts/lease.lua` handed out.
fn handed_out(mut each: Reply) -> Result<Vec<(MessageId, String)>, StoreError> {
    let mut all = Vec::with_capacity(each.len() / 2);
    while each.len() > 0 {
        all.push((each.id()?, each.text()?));
    }
    Ok(all)
}

/// Messages that were handed out, with their contents, and what else is kept of which under which letter.
///
/// They are leased. One that cannot be read is nobody's until its lease runs out, which is no reason to keep the others back.
fn messages(
    queue: &QueueName,
    lines: Vec<(MessageId, String)>,
    mut contents: Reply,
    mut kept: Reply,
) -> Result<Vec<Message>, StoreError> {
    let unreadable = |id: MessageId, error: &StoreError| {
        tracing::error!(%error, %queue, %id, "a message was leased and cannot be read");
    };
    let mut messages = Vec::with_capacity(lines.len());
    for (id, line) in lines {
        let message = contents.bytes().and_then(|content| bare_message(queue, id, &line, &content));
        messages.push(message.inspect_err(|error| unreadable(id, error)).ok());
    }
    while kept.len() > 0 {
        let (number, letter, value) = (kept.number()?, kept.text()?, kept.bytes());
        let whose = usize::try_from(number).ok().and_then(|number| messages.get_mut(number.checked_sub(1)?));
        let whose = whose.ok_or_else(|| damaged("the number of a message", number))?;
        if let Some(message) = whose
            && let Err(error) = value.and_then(|value| read_kept(message, &letter, &value))
        {
            unreadable(message.id(), &error);
            *whose = None;
        }
    }
    Ok(messages.into_iter().flatten().collect())
}

/// A message of which nothing else is kept than its line and its content.
fn bare_message(
    queue: &QueueName,
    id: MessageId,
    line: &str,
    content: &Bytes,
) -> Result<Message, StoreError> {
    let mut message = Words::read(line)?.message(queue, id, read_pair(" ")?);
    read_content(&mut message, content)?;
    Ok(message)
}

/// A message as `scripts/read.lua` answers it: its id, its line, its content, and what is kept of it under which letter.
pub(crate) fn message(queue: &QueueName, mut from: Reply) -> Result<Message, StoreError> {
    let mut message = bare_message(queue, from.id()?, &from.text()?, &from.bytes()?)?;
    while from.len() >= 2 {
        let letter = from.text()?;
        read_kept(&mut message, &letter, &from.bytes()?)?;
    }
    Ok(message)
}

impl Shared {
    /// The first of as many numbers for leases as a call may need, and their epoch, where the script cannot count them itself.
    async fn reserve(&self, requests: &[LeaseRequest]) -> Result<Option<Reserved>, Fault> {
        if !self.link.cluster {
            return Ok(None);
        }
        let numbers: u64 = requests.iter().map(|request| request.limit.get() as u64).sum();
        let mut args = Args::default();
        args.number(numbers);
        let answer = self.link.run(&self.link.scripts.reserve, &[self.link.keys.store()], &args).await?;
        let mut answer = Reply::of(answer)?;
        Ok(Some(Reserved { first: answer.number()? + 1 - numbers, epoch: answer.number()? }))
    }

    /// The contents of messages that this call has leased. It is not begun anew where this does not work.
    async fn contents(&self, known: &Known, leased: &[(MessageId, String)]) -> Result<Reply, Fault> {
        if leased.is_empty() {
            return Ok(Reply::of(Value::Nil)?);
        }
        let bodies = self.link.keys.of_queue(&known.id, "b");
        let mut command = redis::cmd("HMGET");
        command.arg(&bodies);
        for (id, _) in leased {
            command.arg(id.to_string());
        }
        let contents = self.link.again(|| self.link.send(&bodies, &command, false)).await;
        let contents = contents.map_err(|fault| {
            let told = format!(
                "messages were leased, and their contents cannot be read: {}",
                QueueError::from(fault)
            );
            Fault::Unknown(StoreError::OutcomeUnknown(told.into()))
        })?;
        Ok(Reply::of(contents)?)
    }

    /// One lease for all who ask, who want the same: they differ in their names, and in how many they want.
    pub(crate) async fn lease(&self, now: Now, requests: &[LeaseRequest]) -> Result<Leased, Fault> {
        let mut swept = None;
        match self.lease_after(now, requests, &mut swept).await {
            Ok((at, messages, more)) => {
                Ok(Leased { at, messages, more, swept: swept.map(|(_, swept)| swept).unwrap_or_default() })
            }
            // What was swept has happened, and is told of now or never; whoever asked asks again.
            Err(fault) => match swept {
                Some((at, swept)) if !swept.expired.is_empty() || !swept.lapsed.is_empty() => {
                    tracing::warn!(?fault, "a lease came no further than to what is overdue");
                    Ok(Leased { at, messages: Vec::new(), more: true, swept })
                }
                _ => Err(fault),
            },
        }
    }

    /// When, what, and whether there may be more; and what was swept before, even where the rest fails.
    async fn lease_after(
        &self,
        now: Now,
        requests: &[LeaseRequest],
        swept: &mut Option<(Timestamp, Swept)>,
    ) -> Result<(Timestamp, Vec<Message>, bool), Fault> {
        let request = requests.first().ok_or_else(|| damaged("a lease", "nobody asked for it"))?;
        let mut now = now;
        for _ in 0..LOOKS {
            let known = self.there(&request.queue).await?;
            let reserved = self.reserve(requests).await?;
            let args = args(self, now, &known, (request, requests), (swept.is_some(), reserved));
            let mut keys = known.keys.to_vec();
            keys.extend(reserved.is_none().then(|| self.link.keys.store()));
            let mut answer = Reply::of(self.link.run(&self.link.scripts.lease, &keys, &args).await?)?;
            match answer.text()?.as_str() {
                "ok" => {
                    let (at, more) = (answer.time()?, answer.number()? > 0);
                    self.saw(now, at);
                    let (lines, kept) = (handed_out(answer.reply()?)?, answer.reply()?);
                    let contents = match answer.len() {
                        0 => self.contents(&known, &lines).await?,
                        _ => answer.reply()?,
                    };
                    let messages = messages(&request.queue, lines, contents, kept)?;
                    self.link.was_given(&messages);
                    return Ok((at, messages, more));
                }
                "sweep" => {
                    let at = answer.time()?;
                    // The rest of the call is at the time at which it began.
                    if now != Now::Store {
                        now = Now::At(at);
                    }
                    let overdue = seen(&request.queue, answer.replies()?)?;
                    let lapsing = seen(&request.queue, answer.replies()?)?;
                    let (_, swept) = swept.get_or_insert_with(|| (at, Swept::default()));
                    swept
                        .expired
                        .extend(self.expire_seen(now, at, &known, overdue, None, request.seed).await?);
                    swept.lapsed.extend(self.lapse_seen(now, at, &known, lapsing, None).await?);
                }
                // Another call was faster, and its numbers are later ones.
                "late" => {}
                _ => self.forget(&request.queue),
            }
        }
        Err(Fault::Again(unavailable("the queue is changed all the time")))
    }
}

/// Messages that were seen, without those that are gone.
pub(crate) fn seen(queue: &QueueName, replies: Vec<Reply>) -> Result<Vec<Seen>, StoreError> {
    let mut all = Vec::with_capacity(replies.len());
    for from in replies {
        all.extend(Seen::read(queue, from)?);
    }
    Ok(all)
}
