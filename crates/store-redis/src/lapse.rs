//! lapse: ready | delayed → dead, for messages that can never be handed out again.

use std::collections::BTreeSet;

use redrive_core::lifecycle::{self, Terms};
use redrive_core::message::{DeadReason, ErrorText};
use redrive_core::policy::{Fingerprint, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{Judged, Now, SweepRequest};

use crate::error::Fault;
use crate::lease::seen;
use crate::link::Args;
use crate::queue::Known;
use crate::reply::Reply;
use crate::store::Shared;
use crate::sweep::{Seen, moved_to, now_or, readable, so_far};
use crate::words::{print_word, read_pair};

/// How many messages are looked at in one step, and how many steps one sweep makes in a queue.
const STEP: usize = 1_000;
const STEPS_MAX: usize = 20;
/// What stands for all messages.
const ALL: &str = "~";

/// How far somebody has looked for what is over a cap.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// The number of what has come to it that may be; empty where there is nothing to look for by id.
    capped: String,
    /// The last message that was looked at, or [`ALL`].
    last: String,
}

impl Shared {
    pub(crate) async fn lapse(&self, now: Now, request: &SweepRequest) -> Result<Vec<Judged>, Fault> {
        let limit = request.limit.get();
        let names = self.swept_queues(request.queue.as_ref()).await?;
        let mut found: Vec<(Timestamp, Seen)> = Vec::new();
        for name in &names {
            let found_here = self.find(now, name, "ttl", limit).await;
            let found_here = self.reached(request.queue.as_ref(), name, found_here)?;
            let Some((at, seen)) = found_here else { continue };
            found.extend(seen.into_iter().map(|seen| (at, seen)));
        }
        found.sort_by_key(|(_, seen)| (seen.due, seen.message.id()));
        let (mut judged, mut passed) = (Vec::new(), BTreeSet::new());
        for (at, seen) in found {
            let name = seen.message.queue.clone();
            if judged.len() >= limit || passed.contains(&name) {
                continue;
            }
            let one = async {
                let Some(known) = self.known(&name).await? else { return Ok(None) };
                self.lapse_seen(now, at, &known, vec![seen], None).await.map(Some)
            };
            match readable(request.queue.as_ref(), &name, one.await) {
                Ok(Some(one)) => judged.extend(one),
                Ok(None) => drop(passed.insert(name)),
                Err(fault) => return so_far(judged, fault),
            }
        }
        for name in &names {
            if judged.len() < limit {
                let capped = self.lapse_capped(now, name, limit - judged.len()).await.map(Some);
                match self.reached(request.queue.as_ref(), name, capped) {
                    Ok(capped) => judged.extend(capped.into_iter().flatten()),
                    Err(fault) => return so_far(judged, fault),
                }
            }
        }
        Ok(judged)
    }

    /// Lapses waiting messages that are over a cap, where there may be any.
    async fn lapse_capped(&self, now: Now, name: &QueueName, limit: usize) -> Result<Vec<Judged>, Fault> {
        let mut judged = Vec::new();
        for _ in 0..STEPS_MAX {
            match self.lapse_step(now, name, limit - judged.len()).await {
                Ok((lapsed, is_over)) => {
                    judged.extend(lapsed);
                    if is_over || judged.len() >= limit {
                        break;
                    }
                }
                Err(fault) => return so_far(judged, fault),
            }
        }
        Ok(judged)
    }

    /// One step of that, and whether it was the last.
    async fn lapse_step(
        &self,
        now: Now,
        name: &QueueName,
        limit: usize,
    ) -> Result<(Vec<Judged>, bool), Fault> {
        let Some(known) = self.known(name).await? else { return Ok((Vec::new(), true)) };
        let mut args = Args::default();
        args.push(self.time_arg(now))
            .push(known.stamp.as_str())
            .number(STEP)
            .number(limit)
            .maybe(known.settings.retry.max_attempts)
            .maybe(known.settings.max_deliveries);
        let mut answer = Reply::of(self.link.run(&self.link.scripts.tried, &known.keys, &args).await?)?;
        if answer.text()? != "ok" {
            self.forget(name);
            return Ok((Vec::new(), false));
        }
        let at = answer.time()?;
        let looked = Looked { capped: answer.text()?, last: answer.text()? };
        let is_over = looked.capped.is_empty() || looked.last == ALL;
        let mut over = seen(name, answer.replies()?)?;
        over.retain(|seen| {
            let terms = Terms::new(&known.settings, seen.message.spec.max_attempts);
            let reason = lifecycle::lapse_reason(&seen.message.progress, &terms, at);
            reason.is_some_and(|reason| reason != DeadReason::ExpiredTtl)
        });
        // One that was put aside may be among those by id as well.
        over.sort_by_key(|seen| seen.message.id());
        over.dedup_by_key(|seen| seen.message.id());
        Ok((self.lapse_seen(now, at, &known, over, Some(looked)).await?, is_over))
    }

    /// Lapses messages that were seen to have no delivery left.
    pub(crate) async fn lapse_seen(
        &self,
        now: Now,
        at: Timestamp,
        known: &Known,
        lapsing: Vec<Seen>,
        looked: Option<Looked>,
    ) -> Result<Vec<Judged>, Fault> {
        let looked = looked.unwrap_or_default();
        if lapsing.is_empty() && looked.capped.is_empty() {
            return Ok(Vec::new());
        }
        let (keys, to) = self.with_target(known).await?;
        let mut args = Args::default();
        args.push(self.time_arg(now_or(now, at)))
            .push(known.stamp.as_str())
            .number(self.options.limits.classes_per_queue)
            .push(to)
            .push(looked.capped)
            .push(looked.last);
        let mut doomed = Vec::with_capacity(lapsing.len());
        for seen in lapsing {
            let terms = Terms::new(&known.settings, seen.message.spec.max_attempts);
            let Some(reason) = lifecycle::lapse_reason(&seen.message.progress, &terms, at) else { continue };
            let error = seen.message.history.last_error.clone();
            let error = error.unwrap_or_else(|| ErrorText::new(reason.name()));
            args.number(seen.message.id())
                .push(seen.line.as_str())
                .push(reason.name())
                .push(print_word(Fingerprint::of(error.as_str())));
            doomed.push((seen, terms, reason, error));
        }
        let mut answer = Reply::of(self.link.run(&self.link.scripts.lapse, &keys, &args).await?)?;
        if answer.text()? != "ok" {
            self.forget_both(known);
            return Ok(Vec::new());
        }
        let at = answer.time()?;
        let mut judged = Vec::new();
        for ((seen, terms, reason, error), mut from) in doomed.into_iter().zip(answer.replies()?) {
            if from.text()? != "e" {
                continue;
            }
            let (kind, _) = read_pair(&from.text()?)?;
            let mut one = Judged {
                at,
                leased_at: None,
                consumer: None,
                queue: known.queue.name.clone(),
                message: seen.message.id(),
                kind,
                attempts: u32::try_from(from.number()?).unwrap_or(u32::MAX),
                max_attempts: terms.policy.max_attempts,
                error,
                verdict: Verdict::Dead(reason),
                moved_to: moved_to(from.maybe()?)?,
            };
            self.travel_on(now, known, &mut one).await;
            judged.push(one);
        }
        Ok(judged)
    }
}
