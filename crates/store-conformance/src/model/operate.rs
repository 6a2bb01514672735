//! What sweepers and operators do to both stores.

use std::num::{NonZeroU32, NonZeroU64};

use bytes::Bytes;
use redrive_core::lifecycle::{Reschedule, Verb, When};
use redrive_core::message::{MessageId, Priority, State};
use redrive_core::policy::{Jitter, RetryLane, RetryOverride, Weight};
use redrive_core::queue::{Pause, QueueConfig, QueueName, Retention, Weights};
use redrive_core::time::Millis;
use redrive_store::{
    Append, Bulk, CreateQueue, DeleteQueue, EntryKey, EntryKind, EntryName, Expect, ExpireRequest, Filter,
    Judged, Limit, LogName, LogRange, LogRecord, Now, PauseQueue, QueueError, Selection, Store, StoreError,
    SweepRequest, UpdateQueue, Write, WriteOutcome, Writes,
};

use super::compare::{coded, same};
use super::pair::{Checked, ERRORS, Pair, Versions, name};
use super::step::{self, Expected, Pausing, Select, Setting, Sweep};
use crate::world::{at_most, key, kind, note};

impl Pair {
    pub(super) async fn sweep(
        &mut self,
        sweep: Sweep,
        queue: Option<u8>,
        limit: usize,
    ) -> Result<Vec<Verb>, String> {
        let (now, seed, queue) = (self.at(), self.dice.roll(), queue.map(name));
        // Over all queues there is no order, so only a sweep of everything leads to the same state.
        let limit = if queue.is_some() { at_most(limit) } else { Limit::MAX };
        let request = SweepRequest { queue: queue.clone(), limit };
        match sweep {
            Sweep::Expire => {
                let request = ExpireRequest { queue, limit, error: None, seed };
                let ours = coded(self.subject.expire(now, request.clone()).await);
                let sorted = |judged: Result<Vec<Judged>, _>| judged.map(by_message);
                let theirs = coded(self.reference.expire(now, request).await);
                self.judged(ours.as_deref().unwrap_or_default());
                same("expire", &sorted(ours), &sorted(theirs))?;
                Ok(vec![Verb::Expire, Verb::Move])
            }
            Sweep::Lapse => {
                let ours = coded(self.subject.lapse(now, request.clone()).await);
                let theirs = coded(self.reference.lapse(now, request).await);
                self.judged(ours.as_deref().unwrap_or_default());
                same("lapse", &ours.map(by_message), &theirs.map(by_message))?;
                Ok(vec![Verb::Lapse, Verb::Move])
            }
            Sweep::Retain => {
                let ours = coded(self.subject.retain(now, request.clone()).await);
                same("retain", &ours, &coded(self.reference.retain(now, request).await))?;
                Ok(vec![Verb::Discard])
            }
        }
    }

    pub(super) async fn bulk(
        &mut self,
        bulk: &step::Bulk,
        queue: u8,
        pick: &Select,
        (limit, dry_run): (usize, bool),
    ) -> Result<Vec<Verb>, String> {
        let filter = self.filter(pick);
        let selection = Selection { limit: at_most(limit), dry_run, ..Selection::new(name(queue), filter) };
        let ours = stepwise(self.subject.as_ref(), self.at(), bulk, selection.clone()).await;
        let theirs = stepwise(&self.reference, self.at(), bulk, selection).await;
        let ours = coded(ours);
        for id in ours.iter().flat_map(|done| &done.applied) {
            self.note(bulk, &name(queue), *id);
        }
        same("a bulk verb", &ours, &coded(theirs))?;
        Ok(match bulk {
            step::Bulk::Reschedule { .. } => vec![Verb::Reschedule],
            step::Bulk::Move(_) => vec![Verb::Move],
            step::Bulk::Redrive => vec![Verb::Redrive],
            step::Bulk::Discard { .. } => vec![Verb::Discard],
        })
    }

    /// Tells the ledger what a bulk verb did to one message.
    fn note(&mut self, bulk: &step::Bulk, queue: &QueueName, id: MessageId) {
        match bulk {
            step::Bulk::Reschedule { delay: Some(ms), .. } => {
                self.ledger.rescheduled(queue, id, self.now.plus(Millis::new(*ms)));
            }
            step::Bulk::Reschedule { delay: None, .. } => {}
            step::Bulk::Move(target) => {
                let dead = self.states.get(&(queue.clone(), id)) == Some(&State::Dead);
                self.ledger.moved(queue, id, &name(*target), (self.now, dead));
            }
            step::Bulk::Redrive => self.ledger.redriven(queue, id, self.now),
            step::Bulk::Discard { .. } => self.ledger.discarded(queue, id),
        }
    }

    fn filter(&self, pick: &Select) -> Filter {
        match pick {
            Select::State(n) => Filter::state(State::ALL[usize::from(*n) % State::ALL.len()]),
            Select::Kind(n) => Filter { kinds: vec![kind(&format!("type {n}"))], ..Filter::default() },
            Select::Message(index) if !self.ids.is_empty() => Filter::ids([*index.get(&self.ids)]),
            Select::All | Select::Message(_) => Filter::default(),
            Select::Attempts(n) => Filter { attempts: Some(*n..=u32::MAX), ..Filter::default() },
            Select::Error(n) => {
                Filter { error: Some(ERRORS[usize::from(*n)].to_owned()), ..Filter::default() }
            }
        }
    }

    pub(super) async fn configure(&mut self, queue: u8, setting: &Setting) -> Checked {
        let request = UpdateQueue { name: name(queue), config: config(setting), expected: None };
        let ours = coded(self.subject.update_queue(self.at(), request.clone()).await).map(|_| ());
        let theirs = coded(self.reference.update_queue(self.at(), request).await).map(|_| ());
        same("update_queue", &ours, &theirs)
    }

    pub(super) async fn pause(&mut self, queue: u8, of: Option<u8>, pause: Pausing) -> Checked {
        let pause = match pause {
            Pausing::UntilResumed => Some(Pause::UntilResumed),
            Pausing::For(ms) => Some(Pause::Until(self.now.plus(Millis::new(ms)))),
            Pausing::Over => None,
        };
        let key = of.map(|n| key(&format!("tenant {n}")));
        let request = PauseQueue { name: name(queue), key, pause };
        let ours =
            coded(self.subject.pause_queue(self.at(), request.clone()).await).map(|queue| queue.pauses);
        let theirs = coded(self.reference.pause_queue(self.at(), request).await).map(|queue| queue.pauses);
        same("pause_queue", &ours, &theirs)
    }

    pub(super) async fn create(&mut self, queue: u8) -> Checked {
        let request = CreateQueue { name: name(queue), config: QueueConfig::default() };
        let ours = coded(self.subject.create_queue(self.at(), request.clone()).await).map(|_| ());
        let theirs = coded(self.reference.create_queue(self.at(), request).await).map(|_| ());
        same("create_queue", &ours, &theirs)
    }

    pub(super) async fn delete(&mut self, queue: u8, force: bool) -> Checked {
        let request = DeleteQueue { name: name(queue), force };
        let ours = coded(self.subject.delete_queue(self.at(), request.clone()).await);
        let theirs = coded(self.reference.delete_queue(self.at(), request).await);
        if ours.is_ok() {
            self.ledger.deleted(&name(queue));
        }
        same("delete_queue", &ours, &theirs)
    }

    pub(super) async fn register(&mut self, writes: &[(u8, Expected, bool)]) -> Checked {
        let value = Bytes::from(self.dice.roll().to_string());
        let mut writes = writes.to_vec();
        writes.sort_by_key(|(entry, ..)| *entry);
        writes.dedup_by_key(|(entry, ..)| *entry);
        let versions = &self.versions;
        let build = |of: fn(&Versions) -> Option<u64>| {
            let write = |(entry, expected, delete): &(u8, Expected, bool)| {
                let known = versions.get(entry).and_then(of);
                Write {
                    key: entry_key(*entry),
                    expect: expect(*expected, known),
                    value: (!delete).then(|| value.clone()),
                }
            };
            Writes::new(writes.iter().map(write).collect()).expect("distinct entries")
        };
        let ours = self.subject.registry_write(build(|known| known.0)).await.map_err(|error| error.code())?;
        let theirs =
            self.reference.registry_write(build(|known| known.1)).await.map_err(|error| error.code())?;
        match (ours, theirs) {
            (WriteOutcome::Committed(ours), WriteOutcome::Committed(theirs)) => {
                for ((entry, ..), known) in writes.iter().zip(ours.into_iter().zip(theirs)) {
                    self.versions.insert(*entry, known);
                }
                Ok(())
            }
            (WriteOutcome::Conflict { index: ours, .. }, WriteOutcome::Conflict { index: theirs, .. }) => {
                same("the conflict", &ours, &theirs)
            }
            (ours, theirs) => same("registry_write", &ours, &theirs),
        }
    }

    pub(super) async fn log(&mut self, records: usize, trim: Option<u64>) -> Checked {
        let log = LogName::new("audit").expect("a good name");
        let values = (0..records).map(|_| Bytes::from(self.dice.roll().to_string())).collect();
        let records = Append::new(values).expect("few and small");
        for store in [self.subject.as_ref(), &self.reference as &dyn Store] {
            store.log_append(self.at(), &log, records.clone()).await.map_err(|error| error.to_string())?;
            if let Some(ms) = trim {
                let horizon = self.now.minus(Millis::new(ms));
                store.log_trim(&log, horizon).await.map_err(|error| error.to_string())?;
            }
        }
        for range in [LogRange::After(0), LogRange::Before(u64::MAX)] {
            let ours = self.subject.log_read(&log, range, Limit::MAX).await;
            let theirs = self.reference.log_read(&log, range, Limit::MAX).await;
            let told = |records: Result<Vec<LogRecord>, StoreError>| -> Result<Vec<_>, String> {
                let records = records.map_err(|error| error.to_string())?;
                Ok(records.into_iter().map(|record| (record.at, record.value)).collect())
            };
            same("the log", &told(ours)?, &told(theirs)?)?;
        }
        Ok(())
    }
}

fn entry_key(entry: u8) -> EntryKey {
    EntryKey {
        kind: EntryKind::Operation,
        name: EntryName::new(format!("entry {entry}")).expect("a good name"),
    }
}

fn expect(expected: Expected, known: Option<u64>) -> Expect {
    match expected {
        Expected::Anything => Expect::Anything,
        Expected::Absent => Expect::Absent,
        Expected::Current => known.map_or(Expect::Absent, Expect::Version),
        Expected::Stale => Expect::Version(known.unwrap_or(1) - 1),
    }
}

fn by_message(mut judged: Vec<Judged>) -> Vec<Judged> {
    judged.sort_by(|a, b| (&a.queue, a.message).cmp(&(&b.queue, b.message)));
    judged
}

/// Carries out a bulk verb in as many steps as it takes to reach its limit or the end: a store may take smaller
/// ones than the reference.
async fn stepwise(
    store: &dyn Store,
    now: Now,
    bulk: &step::Bulk,
    whole: Selection,
) -> Result<Bulk, QueueError> {
    let mut sum = Bulk::default();
    let mut after = None;
    loop {
        let left = whole.limit.get() - usize::try_from(sum.matched).expect("at most the limit");
        let selection = Selection { after, limit: at_most(left), ..whole.clone() };
        let step = one_step(store, now, bulk, selection).await?;
        sum.matched += step.matched;
        sum.applied.extend(step.applied);
        sum.refused.extend(step.refused);
        after = step.next;
        if after.is_none() || sum.matched >= whole.limit.get() as u64 {
            return Ok(sum);
        }
    }
}

async fn one_step(
    store: &dyn Store,
    now: Now,
    bulk: &step::Bulk,
    selection: Selection,
) -> Result<Bulk, QueueError> {
    match bulk {
        step::Bulk::Reschedule { delay, priority } => {
            let visible = delay.map(|ms| When::After(Millis::new(ms)));
            let priority = priority.map(|level| Priority::new(level).expect("0 to 9"));
            store.reschedule(now, selection, Reschedule { visible, priority }).await
        }
        step::Bulk::Move(target) => store.move_to(now, selection, name(*target)).await,
        step::Bulk::Redrive => store.redrive(now, selection, note("operator"), note("why not")).await,
        step::Bulk::Discard { force } => store.discard(now, selection, *force).await,
    }
}

fn config(setting: &Setting) -> QueueConfig {
    let kept = |count: Option<u64>| count.map(|count| Retention { age: None, count: Some(count) });
    let weight = Weight::new(setting.weight).expect("1 to 4");
    QueueConfig {
        max_deliveries: Some(setting.max_deliveries.and_then(NonZeroU32::new)),
        retry_lane: Some(if setting.separate { RetryLane::Separate } else { RetryLane::Shared }),
        max_retries_in_flight: Some(setting.retries_in_flight.and_then(NonZeroU32::new)),
        overdue_backoff: Some(setting.overdue_backoff),
        dead_letter_to: Some(setting.dead_letter_to.map(name)),
        retain_done: Some(kept(setting.retain_done)),
        retain_dead: Some(kept(setting.retain_dead)),
        dedup_window: Some(Millis::new(setting.dedup_window)),
        max_waiting: Some(setting.max_waiting.and_then(NonZeroU64::new)),
        weights: Some(Weights::new([(key("tenant 0"), weight)]).expect("one key")),
        retry: RetryOverride {
            max_attempts: Some(setting.max_attempts.and_then(NonZeroU32::new)),
            base_delay: Some(Millis::new(setting.base_delay)),
            jitter: Some(if setting.jitter { Jitter::Proportional(100) } else { Jitter::None }),
            ..RetryOverride::default()
        },
        ..QueueConfig::default()
    }
}
