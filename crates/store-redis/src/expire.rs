//! expire: leased → delayed | ready | dead, for leases whose deadline has passed.

use std::collections::BTreeSet;

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{OVERDUE_ERROR, Terms};
use redrive_core::message::ErrorText;
use redrive_core::policy::Failure;
use redrive_core::time::Timestamp;
use redrive_store::{ExpireRequest, Judged, Now};

use crate::error::Fault;
use crate::link::Args;
use crate::queue::Known;
use crate::reply::Reply;
use crate::store::Shared;
use crate::sweep::{Seen, judged, now_or, readable, sentence_args, so_far};

impl Shared {
    pub(crate) async fn expire(&self, now: Now, request: &ExpireRequest) -> Result<Vec<Judged>, Fault> {
        let mut found: Vec<(Timestamp, Seen)> = Vec::new();
        let limit = request.limit.get();
        for name in self.swept_queues(request.queue.as_ref()).await? {
            let found_here = self.find(now, &name, "deadlines", limit).await;
            let found_here = self.reached(request.queue.as_ref(), &name, found_here)?;
            let Some((at, seen)) = found_here else { continue };
            found.extend(seen.into_iter().map(|seen| (at, seen)));
        }
        let lease = |seen: &Seen| seen.message.lease().map(|lease| (lease.deadline, lease.id));
        found.sort_by_key(|(_, seen)| lease(seen));
        let (mut judged, mut passed) = (Vec::new(), BTreeSet::new());
        for (at, seen) in found {
            let name = seen.message.queue.clone();
            if judged.len() >= limit || passed.contains(&name) {
                continue;
            }
            let one = async {
                let Some(known) = self.known(&name).await? else { return Ok(None) };
                let error = request.error.as_ref();
                self.expire_seen(now, at, &known, vec![seen], error, request.seed).await.map(Some)
            };
            match readable(request.queue.as_ref(), &name, one.await) {
                Ok(Some(one)) => judged.extend(one),
                Ok(None) => drop(passed.insert(name)),
                Err(fault) => return so_far(judged, fault),
            }
        }
        Ok(judged)
    }

    /// Ends leases that were seen to be overdue.
    pub(crate) async fn expire_seen(
        &self,
        now: Now,
        at: Timestamp,
        known: &Known,
        overdue: Vec<Seen>,
        error: Option<&ErrorText>,
        seed: u64,
    ) -> Result<Vec<Judged>, Fault> {
        if overdue.is_empty() {
            return Ok(Vec::new());
        }
        let error = error.cloned().unwrap_or_else(|| ErrorText::new(OVERDUE_ERROR));
        let (keys, to) = self.with_target(known).await?;
        let mut args = Args::default();
        args.push(self.time_arg(now_or(now, at)))
            .push(known.stamp.as_str())
            .number(self.options.limits.classes_per_queue)
            .push(to);
        let mut sentences = Vec::with_capacity(overdue.len());
        for seen in &overdue {
            let progress = &seen.message.progress;
            let terms = Terms::new(&known.settings, seen.message.spec.max_attempts);
            let mut dice = Dice::for_attempt(seed, seen.message.id(), progress.attempts);
            let failure = Failure::Expire { backoff: terms.overdue_backoff };
            let sentence =
                terms.sentence(progress.attempts, progress.deliveries_counted(), failure, &mut dice);
            args.number(seen.message.id()).push(seen.line.as_str());
            sentence_args(&mut args, sentence, &error);
            sentences.push((terms, sentence));
        }
        let mut answer = Reply::of(self.link.run(&self.link.scripts.expire, &keys, &args).await?)?;
        if answer.text()? != "ok" {
            self.forget_both(known);
            return Ok(Vec::new());
        }
        let at = answer.time()?;
        let mut all = Vec::new();
        for ((seen, (terms, sentence)), mut from) in overdue.iter().zip(sentences).zip(answer.replies()?) {
            if from.text()? == "e" {
                let about = (&known.queue.name, seen.message.id(), at);
                let mut judged = judged(&mut from, about, &terms, (error.clone(), sentence))?;
                self.travel_on(now, known, &mut judged).await;
                all.push(judged);
            }
        }
        Ok(all)
    }
}
