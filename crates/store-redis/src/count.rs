//! Numbers about a queue.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use redrive_core::message::{ErrorText, State};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{
    CountBy, CountRow, Counts, FailureGroup, Limit, NextDue, Now, QueueNotFound, QueueStats, StateCounts,
};

use crate::error::Fault;
use crate::link::Args;
use crate::queue::{fields, read, totals};
use crate::store::Shared;
use crate::words::{last_error, read_print, read_reason};

impl Shared {
    pub(crate) async fn count(
        &self,
        now: Now,
        queue: &QueueName,
        by: CountBy,
        limit: Limit,
    ) -> Result<Counts, Fault> {
        let known = self.look(queue).await?.ok_or_else(|| QueueNotFound(queue.clone()))?;
        let at = self.queue_clock(now, &known).await?;
        let mut counts: BTreeMap<CountRow, u64> = BTreeMap::new();
        let mut after = None;
        loop {
            let page = self.page(&known, after, None, false).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.message.id());
            for seen in page {
                let message = seen.message;
                let row = CountRow {
                    state: message.state(at),
                    kind: by.kind.then(|| message.spec.kind.clone()),
                    source: by.source.then(|| message.spec.source.clone()),
                    key: by.key.then(|| message.spec.fairness_key.clone()),
                    messages: 0,
                };
                *counts.entry(row).or_default() += 1;
            }
        }
        let mut rows: Vec<CountRow> =
            counts.into_iter().map(|(row, messages)| CountRow { messages, ..row }).collect();
        rows.sort_by_key(|row| Reverse(row.messages));
        let truncated = rows.len() > limit.get();
        rows.truncate(limit.get());
        Ok(Counts { at, rows, truncated })
    }

    pub(crate) async fn stats(&self, now: Now, queue: &QueueName) -> Result<QueueStats, Fault> {
        let mut args = Args::default();
        args.push(self.time_arg(now));
        let mut answer = loop {
            let (_, answer, said) = self.on_queue_saying(queue, &self.link.scripts.stats, &args).await?;
            // What a million lines have begun with since the last time is set right in steps, and others come between them.
            if said != "again" {
                break answer;
            }
        };
        let at = answer.time()?;
        self.saw(now, at);
        let record = fields(answer.next())?;
        let mut sizes = answer.reply()?;
        let (all, leased, dead, done, delayed) =
            (sizes.number()?, sizes.number()?, sizes.number()?, sizes.number()?, sizes.number()?);
        let mut states = StateCounts::default();
        states.add(State::Leased, leased);
        states.add(State::Dead, dead);
        states.add(State::Done, done);
        states.add(State::Delayed, delayed);
        states.add(State::Ready, all.saturating_sub(leased + dead + done + delayed));
        let queue = read(&record)?;
        Ok(QueueStats {
            at,
            settings: queue.config.over(&self.options.defaults),
            queue,
            states,
            overdue: sizes.number()?,
            retries_in_flight: sizes.number()?,
            dedup_keys: sizes.number()?,
            oldest_ready: answer.maybe_time()?,
            totals: totals(&record),
        })
    }

    pub(crate) async fn failure_groups(
        &self,
        queue: &QueueName,
        limit: Limit,
    ) -> Result<Vec<FailureGroup>, Fault> {
        let mut args = Args::default();
        args.push("0").number(limit.get());
        let (_, mut answer) = self.on_queue(queue, &self.link.scripts.groups, &args).await?;
        let _now = answer.time()?;
        let mut groups = Vec::new();
        for mut from in answer.replies()? {
            let (fingerprint, messages) = (read_print(&from.text()?)?, from.number()?);
            let (first, last) = (from.time()?, from.time()?);
            let reason = read_reason(&from.text()?)?;
            let sample =
                last_error(from.maybe()?.as_deref())?.unwrap_or_else(|| ErrorText::new(reason.name()));
            groups.push(FailureGroup { fingerprint, sample, messages, first, last });
        }
        groups.sort_by_key(|group| (Reverse(group.messages), group.fingerprint));
        Ok(groups)
    }

    pub(crate) async fn next_due(&self, now: Now, queue: Option<&QueueName>) -> Result<NextDue, Fault> {
        let names = self.swept_queues(queue).await?;
        let mut next = NextDue { at: self.clock(now).await?, ..NextDue::default() };
        let looks = names.iter().map(|name| self.due_in(now, name));
        for (name, due) in names.iter().zip(futures::future::join_all(looks).await) {
            let due = match due {
                // One that was deleted meanwhile.
                Err(Fault::Refused(_)) if queue.is_none() => Ok(None),
                due => due.map(Some),
            };
            if let Some(due) = self.reached(queue, name, due)? {
                next = next.min(due);
            }
        }
        Ok(next)
    }

    async fn due_in(&self, now: Now, name: &QueueName) -> Result<NextDue, Fault> {
        let mut args = Args::default();
        args.push(self.time_arg(now));
        let (mut known, mut answer) = self.on_queue(name, &self.link.scripts.due, &args).await?;
        let (at, stamp): (Timestamp, String) = (answer.time()?, answer.text()?);
        self.saw(now, at);
        if stamp != known.stamp {
            known = self.look(name).await?.ok_or_else(|| QueueNotFound(name.clone()))?;
        }
        Ok(NextDue {
            at,
            ready: answer.maybe_time()?,
            overdue: answer.maybe_time()?,
            lapse: answer.maybe_time()?,
            resume: known.queue.pauses.next_end(at),
        })
    }
}
