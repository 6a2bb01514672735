//! What expire and lapse have in common, and retain. What is due is looked for, judged, and then changed, if it is still as it was seen.

use redrive_core::lifecycle::Terms;
use redrive_core::message::{Cause, ErrorText, Message, MessageId};
use redrive_core::policy::{Fingerprint, Sentence, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Judged, Now, QueueError, StoreError, SweepRequest};

use crate::error::{Fault, damaged};
use crate::lease::seen;
use crate::link::Args;
use crate::queue::Known;
use crate::reply::Reply;
use crate::store::{LOOKS, Shared};
use crate::words::{
    Words, error_word, last_error, print_word, read_consumer, read_pair, read_reason, rule_word,
};

/// A message as it was seen: its line, by which it is known whether somebody has touched it since.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) message: Message,
    pub(crate) line: String,
    pub(crate) due: Timestamp,
}

impl Seen {
    /// Reads what `judged` of `scripts/keep.lua` answers; nothing where the message is gone.
    pub(crate) fn read(queue: &QueueName, mut from: Reply) -> Result<Option<Self>, StoreError> {
        let (id, line) = (from.id()?, from.text()?);
        if line.is_empty() {
            return Ok(None);
        }
        let pair = read_pair(&from.text()?)?;
        let mut message = Words::read(&line)?.message(queue, id, pair);
        message.history.last_error = last_error(from.maybe()?.as_deref())?;
        let due = from.maybe()?.and_then(|score| score.parse::<f64>().ok());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time in milliseconds")]
        let due = due.map_or(Timestamp::EPOCH, |ms| Timestamp::from_millis(ms as u64));
        Ok(Some(Self { message, line, due }))
    }
}

/// What a failed attempt came to, as `ended` of `scripts/ended.lua` answers it.
pub(crate) fn judged(
    from: &mut Reply,
    (queue, message, at): (&QueueName, MessageId, Timestamp),
    terms: &Terms,
    (error, sentence): (ErrorText, Sentence),
) -> Result<Judged, StoreError> {
    let (kind, _) = read_pair(&from.text()?)?;
    let attempts = u32::try_from(from.number()?).unwrap_or(u32::MAX);
    let leased_at = from.time()?;
    let consumer = read_consumer(&from.text()?)?;
    let verdict = match (from.text()?.as_str(), sentence) {
        ("r", Sentence::RetryAfter(_, rule)) => Verdict::RetryAt(from.time()?, rule),
        ("d", _) => Verdict::Dead(read_reason(&from.text()?)?),
        (other, _) => return Err(damaged("an answer", other)),
    };
    Ok(Judged {
        at,
        leased_at: Some(leased_at),
        consumer: Some(consumer),
        queue: queue.clone(),
        message,
        kind,
        attempts,
        max_attempts: terms.policy.max_attempts,
        error,
        verdict,
        moved_to: moved_to(from.maybe()?)?,
    })
}

/// The queue to which a message was moved, dead, in the same step.
pub(crate) fn moved_to(name: Option<String>) -> Result<Option<QueueName>, StoreError> {
    name.map(QueueName::new).transpose().map_err(|error| damaged("the name of a queue", error))
}

/// A sentence as scripts read it: what it is, the delay or the reason, and the rule.
pub(crate) fn sentence_args(args: &mut Args, sentence: Sentence, error: &ErrorText) {
    match sentence {
        Sentence::RetryAfter(delay, rule) => args.push("r").number(delay.get()).push(rule_word(rule)),
        Sentence::Dead(reason) => args.push("d").push(reason.name()).push("-"),
    };
    args.push(print_word(Fingerprint::of(error.as_str()))).push(error_word(error));
}

/// What was judged before something failed: it has happened, and is told of once, now or never. Nothing was judged: the failure.
pub(crate) fn so_far(judged: Vec<Judged>, fault: Fault) -> Result<Vec<Judged>, Fault> {
    if judged.is_empty() {
        return Err(fault);
    }
    tracing::warn!(?fault, judged = judged.len(), "a sweep came no further for now");
    Ok(judged)
}

/// What was found in a queue, or done there. A sweep of all of them goes on without those in which something is damaged: what is in the others is
/// not. Who has asked for that one is told.
pub(crate) fn readable<T>(
    asked: Option<&QueueName>,
    name: &QueueName,
    found: Result<Option<T>, Fault>,
) -> Result<Option<T>, Fault> {
    match found {
        Err(Fault::Undone(error @ StoreError::Damaged { .. })) if asked.is_none() => {
            tracing::error!(%error, queue = %name, "a queue in which something is damaged is not swept");
            Ok(None)
        }
        found => found,
    }
}

impl Shared {
    /// What is known of a queue, and of the one that its dead go to, was not right any more.
    pub(crate) fn forget_both(&self, known: &Known) {
        self.forget(&known.queue.name);
        known.settings.dead_letter_to.iter().for_each(|target| self.forget(target));
    }

    /// The keys of a queue and, where its dead go to another one and can in the same step, of that; and how scripts are told.
    pub(crate) async fn with_target(&self, known: &Known) -> Result<(Vec<String>, String), Fault> {
        let mut keys = known.keys.to_vec();
        let Some(name) = known.settings.dead_letter_to.as_ref() else { return Ok((keys, "0".to_owned())) };
        if self.link.cluster {
            let there = self.may_be_there(name).await?;
            return Ok((keys, if there { format!("@{name}") } else { "0".to_owned() }));
        }
        let Some(target) = self.known(name).await? else { return Ok((keys, "0".to_owned())) };
        keys.extend(target.keys.iter().cloned());
        Ok((keys, "1".to_owned()))
    }

    pub(crate) async fn retain(&self, now: Now, request: &SweepRequest) -> Result<u64, Fault> {
        // Nobody else waits for what is left of a queue, or for a node that cannot be reached.
        if request.queue.is_none()
            && let Err(fault) = self.clear_gone().await
        {
            tracing::warn!(?fault, "what deleted queues left stays for now");
        }
        let (mut left, mut gone) = (request.limit.get() as u64, 0);
        for name in self.swept_queues(request.queue.as_ref()).await? {
            if left == 0 {
                break;
            }
            let here = self.retain_in(now, &name, left).await;
            let here = self.reached(request.queue.as_ref(), &name, here)?.unwrap_or_default();
            (left, gone) = (left.saturating_sub(here), gone + here);
        }
        Ok(gone)
    }

    /// Takes away what one queue keeps no longer; nothing where there is no such queue any more.
    async fn retain_in(&self, now: Now, name: &QueueName, limit: u64) -> Result<Option<u64>, Fault> {
        let Some(known) = self.known(name).await? else { return Ok(None) };
        self.resume_relays(now, &known).await;
        for _ in 0..LOOKS {
            let Some(known) = self.known(name).await? else { return Ok(None) };
            let (done, dead) = (known.settings.retain_done, known.settings.retain_dead);
            let mut args = Args::default();
            args.push(self.time_arg(now))
                .push(known.stamp.as_str())
                .number(limit)
                .maybe(done.and_then(|kept| kept.age).map(Millis::get))
                .maybe(done.map_or(Some(0), |kept| kept.count))
                .maybe(dead.and_then(|kept| kept.age).map(Millis::get))
                .maybe(dead.and_then(|kept| kept.count));
            let mut answer = Reply::of(self.link.run(&self.link.scripts.retain, &known.keys, &args).await?)?;
            if answer.text()? == "ok" {
                return Ok(Some(answer.number()?));
            }
            self.forget(name);
        }
        Ok(None)
    }

    /// What was found in a queue. A sweep of all of them goes on without those at a node of the cluster that is away: nobody else waits
    /// for it. Who has asked for that one is told.
    pub(crate) fn reached<T>(
        &self,
        asked: Option<&QueueName>,
        name: &QueueName,
        found: Result<Option<T>, Fault>,
    ) -> Result<Option<T>, Fault> {
        match found {
            Err(Fault::Again(error) | Fault::Unknown(error)) if asked.is_none() && self.link.cluster => {
                tracing::warn!(%error, queue = %name, "a queue that cannot be reached is swept later");
                Ok(None)
            }
            found => readable(asked, name, found),
        }
    }

    /// The queues that a sweeper was sent to: one, or all.
    pub(crate) async fn swept_queues(&self, queue: Option<&QueueName>) -> Result<Vec<QueueName>, Fault> {
        if let Some(name) = queue {
            self.there(name).await?;
            return Ok(vec![name.clone()]);
        }
        let mut names: Vec<QueueName> = Vec::new();
        loop {
            let page = self.queue_names(names.last(), 1_000).await?;
            let full = page.len() == 1_000;
            names.extend(page);
            if !full {
                return Ok(names);
            }
        }
    }

    /// What is overdue in a queue, or past its time to live; nothing where there is no such queue any more.
    pub(crate) async fn find(
        &self,
        now: Now,
        name: &QueueName,
        what: &str,
        limit: usize,
    ) -> Result<Option<(Timestamp, Vec<Seen>)>, Fault> {
        let mut args = Args::default();
        args.push(self.time_arg(now)).push(what).number(limit);
        match self.on_queue(name, &self.link.scripts.find, &args).await {
            Ok((known, mut answer)) => {
                let (at, stamp) = (answer.time()?, answer.text()?);
                if stamp != known.stamp {
                    self.forget(name);
                }
                Ok(Some((at, seen(name, answer.replies()?)?)))
            }
            Err(Fault::Refused(QueueError::NotFound(_))) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// The time of the second half of a call: the same as that of the first, where the caller has named it.
pub(crate) fn now_or(now: Now, at: Timestamp) -> Now {
    match now {
        Now::Store => Now::Store,
        Now::At(time) => Now::At(time.max(at)),
    }
}

/// How an attempt ended, as a failure is written down.
pub(crate) fn cause_of(buried: bool) -> Cause {
    if buried { Cause::Bury } else { Cause::Nack }
}
