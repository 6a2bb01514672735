//! Numbers about a queue.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use redrive_core::message::{ErrorText, Phase, State as MessageState};
use redrive_core::policy::Fingerprint;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{CountBy, CountRow, Counts, FailureGroup, NextDue, QueueError, QueueStats, StateCounts};

use crate::state::{QueueState, State};

impl State {
    pub(crate) fn count(
        &self,
        now: Timestamp,
        queue: &QueueName,
        by: CountBy,
        limit: usize,
    ) -> Result<Counts, QueueError> {
        let mut counts: BTreeMap<CountRow, u64> = BTreeMap::new();
        for message in self.queue(queue)?.messages.values() {
            let row = CountRow {
                state: message.state(now),
                kind: by.kind.then(|| message.spec.kind.clone()),
                source: by.source.then(|| message.spec.source.clone()),
                key: by.key.then(|| message.spec.fairness_key.clone()),
                messages: 0,
            };
            *counts.entry(row).or_default() += 1;
        }
        let mut rows: Vec<CountRow> =
            counts.into_iter().map(|(row, messages)| CountRow { messages, ..row }).collect();
        rows.sort_by_key(|row| Reverse(row.messages));
        let truncated = rows.len() > limit;
        rows.truncate(limit);
        Ok(Counts { at: now, rows, truncated })
    }

    pub(crate) fn stats(&self, now: Timestamp, name: &QueueName) -> Result<QueueStats, QueueError> {
        let queue = self.queue(name)?;
        let mut states = StateCounts::default();
        let mut overdue = 0;
        for message in queue.messages.values() {
            states.add(message.state(now), 1);
            overdue += u64::from(message.lease().is_some_and(|lease| lease.is_overdue(now)));
        }
        let ready = queue.messages.values().filter(|message| message.state(now) == MessageState::Ready);
        Ok(QueueStats {
            at: now,
            queue: queue.queue.clone(),
            settings: queue.settings.clone(),
            states,
            overdue,
            retries_in_flight: queue.retries_in_flight(),
            oldest_ready: ready.map(|message| message.progress.visible_at).min(),
            dedup_keys: queue.holds(now) as u64,
            totals: queue.totals,
        })
    }

    pub(crate) fn failure_groups(
        &self,
        queue: &QueueName,
        limit: usize,
    ) -> Result<Vec<FailureGroup>, QueueError> {
        let mut groups: BTreeMap<Fingerprint, FailureGroup> = BTreeMap::new();
        for message in self.queue(queue)?.messages.values() {
            let Some(death) = message.progress.death() else {
                continue;
            };
            let error = message.history.last_error.clone();
            let error = error.unwrap_or_else(|| ErrorText::new(death.reason.name()));
            let group = groups.entry(death.fingerprint).or_insert_with(|| FailureGroup {
                fingerprint: death.fingerprint,
                sample: error.clone(),
                messages: 0,
                first: death.at,
                last: death.at,
            });
            group.messages += 1;
            group.first = group.first.min(death.at);
            if death.at >= group.last {
                (group.last, group.sample) = (death.at, error);
            }
        }
        let mut groups: Vec<FailureGroup> = groups.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.messages));
        groups.truncate(limit);
        Ok(groups)
    }

    pub(crate) fn next_due(&self, now: Timestamp, queue: Option<&QueueName>) -> Result<NextDue, QueueError> {
        let mut next = NextDue { at: now, ..NextDue::default() };
        for name in self.queues_of(queue)? {
            next = next.min(self.queue(&name)?.next_due(now));
        }
        Ok(next)
    }
}

impl QueueState {
    fn next_due(&self, now: Timestamp) -> NextDue {
        let mut next = NextDue { resume: self.queue.pauses.next_end(now), ..NextDue::default() };
        for message in self.messages.values() {
            let progress = &message.progress;
            next = next.min(match &progress.phase {
                Phase::Waiting => NextDue {
                    ready: Some(progress.visible_at).filter(|visible_at| *visible_at > now),
                    lapse: progress.expires_at,
                    ..NextDue::default()
                },
                Phase::Leased(lease) => NextDue { overdue: Some(lease.deadline), ..NextDue::default() },
                Phase::Dead(_) | Phase::Done(_) => NextDue::default(),
            });
        }
        next
    }
}
