//! Numbers about a queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use redrive_core::message::{ErrorText, State};
use redrive_core::policy::Fingerprint;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{CountBy, CountRow, Counts, FailureGroup, NextDue, QueueError, QueueStats, StateCounts};

use crate::core::Core;
use crate::select::state;
use crate::state::entry::End;
use crate::state::queue::QueueState;

impl Core {
    pub(crate) fn count_by(
        &mut self,
        now: Timestamp,
        name: &QueueName,
        by: CountBy,
        limit: usize,
    ) -> Result<Counts, QueueError> {
        let number = self.number(name)?;
        let queue = self.queue(number);
        let mut counts: HashMap<(State, Option<u16>, Option<u32>), u64> = HashMap::new();
        for (_, slot) in queue.ids.after(None) {
            let entry = self.messages.at(slot);
            let class = (by.kind || by.source).then_some(entry.class);
            let row = (state(entry.stage, entry.visible_at, now), class, by.key.then_some(entry.key));
            *counts.entry(row).or_default() += 1;
        }
        // Two classes are one row where only the type, or only the source, is asked for.
        let mut rows: BTreeMap<CountRow, u64> = BTreeMap::new();
        for ((state, class, key), messages) in counts {
            let class = class.map(|class| queue.classes.get(class));
            let row = CountRow {
                state,
                kind: class.map(|(kind, _)| kind).filter(|_| by.kind).cloned(),
                source: class.map(|(_, source)| source).filter(|_| by.source).cloned(),
                key: key.map(|key| queue.keys.name(key).clone()),
                messages: 0,
            };
            *rows.entry(row).or_default() += messages;
        }
        let mut rows: Vec<CountRow> =
            rows.into_iter().map(|(row, messages)| CountRow { messages, ..row }).collect();
        rows.sort_by_key(|row| Reverse(row.messages));
        let truncated = rows.len() > limit;
        rows.truncate(limit);
        Ok(Counts { at: now, rows, truncated })
    }

    pub(crate) fn stats(&mut self, now: Timestamp, name: &QueueName) -> Result<QueueStats, QueueError> {
        let number = self.number(name)?;
        self.forget_keys(number, now);
        let (queue, messages) = self.parts(number);
        queue.promote(messages, now);
        let queue = self.queue(number);
        // Who waits to lapse is ready or delayed, too.
        let aside =
            queue.spent.iter().map(|(_, slot)| slot).chain(queue.lapsing.iter().map(|(.., slot)| slot));
        let aside: std::collections::BTreeSet<u32> = aside
            .copied()
            .filter(|slot| self.messages.at(*slot).stage == crate::state::entry::Stage::Aside)
            .collect();
        let visible = |slot: &u32| self.messages.at(*slot).visible_at;
        let late = aside.iter().filter(|slot| visible(slot) > now).count();
        let delayed = queue.delayed.len() + late;
        let mut states = StateCounts::default();
        states.add(State::Delayed, delayed as u64);
        states.add(State::Ready, queue.waiting - delayed as u64);
        states.add(State::Leased, queue.deadlines.len() as u64);
        states.add(State::Dead, queue.dead.len() as u64);
        states.add(State::Done, queue.done.len() as u64);
        let overdue = queue.deadlines.iter().take_while(|(deadline, ..)| *deadline <= now).count();
        let ready = queue.keys.heads().chain(aside.iter().copied()).filter(|slot| visible(slot) <= now);
        Ok(QueueStats {
            at: now,
            queue: queue.queue.clone(),
            settings: queue.settings.clone(),
            states,
            overdue: overdue as u64,
            retries_in_flight: queue.retries_in_flight,
            oldest_ready: ready.map(|slot| visible(&slot)).min(),
            dedup_keys: queue.holds.len() as u64,
            totals: queue.totals,
        })
    }

    /// The largest groups of dead messages, each with the message whose error is its sample.
    pub(crate) fn failure_groups(
        &mut self,
        name: &QueueName,
        limit: usize,
    ) -> Result<Vec<FailureGroup>, QueueError> {
        let number = self.number(name)?;
        let mut groups: BTreeMap<Fingerprint, (FailureGroup, u32)> = BTreeMap::new();
        for (at, _, slot) in &self.queue(number).dead {
            let Some(End::Dead(death)) = self.messages.end(*slot) else { continue };
            let (group, sample) = groups.entry(death.fingerprint).or_insert_with(|| {
                let sample = ErrorText::new(death.reason.name());
                let fingerprint = death.fingerprint;
                (FailureGroup { fingerprint, sample, messages: 0, first: *at, last: *at }, *slot)
            });
            group.messages += 1;
            (group.last, *sample) = (*at, *slot);
        }
        let mut groups: Vec<(FailureGroup, u32)> = groups.into_values().collect();
        groups.sort_by_key(|(group, _)| Reverse(group.messages));
        groups.truncate(limit);
        let mut told = Vec::new();
        for (mut group, slot) in groups {
            group.sample = match (self.history(slot).last_error, self.messages.end(slot)) {
                (Some(error), _) => error,
                (None, Some(End::Dead(death))) => ErrorText::new(death.reason.name()),
                (None, _) => group.sample,
            };
            told.push(group);
        }
        Ok(told)
    }

    pub(crate) fn next_due(
        &mut self,
        now: Timestamp,
        queue: Option<&QueueName>,
    ) -> Result<NextDue, QueueError> {
        let mut next = NextDue { at: now, ..NextDue::default() };
        for number in self.numbers_of(queue)? {
            let (queue, messages) = self.parts(number);
            queue.promote(messages, now);
            next = next.min(queue.next_due(messages, now));
        }
        Ok(next)
    }
}

impl QueueState {
    fn next_due(&self, messages: &crate::state::messages::Messages, now: Timestamp) -> NextDue {
        let first = self.delayed.first().map(|(due, ..)| *due);
        let aside =
            self.spent.iter().map(|(_, slot)| messages.at(*slot).visible_at).filter(|at| *at > now).min();
        NextDue {
            ready: first.into_iter().chain(aside).min(),
            overdue: self.deadlines.first().map(|(deadline, ..)| *deadline),
            lapse: self.lapsing.first().map(|(expires_at, ..)| *expires_at),
            resume: self.queue.pauses.next_end(now),
            ..NextDue::default()
        }
    }
}
