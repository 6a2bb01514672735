//! A transaction: messages are read under a lock, the rules of `redrive-core` are applied to them, and what became of them
//! is written back in a few statements.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use redrive_core::lifecycle::{self, Ended, Terms, Verb};
use redrive_core::limits::ATTEMPT_RECORDS_MAX;
use redrive_core::message::{
    AttemptRecord, DeadReason, ErrorText, Lane, MessageId, MessageType, Phase, Source, Uniqueness,
};
use redrive_core::policy::Verdict;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{BulkRefusal, Judged, Now, QueueNotFound};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::error::Fault;
use crate::queue::{Classes, Known};
use crate::row::{self, DEAD, DELAYED, DONE, Kept, LEASED, READY, millis, rule_number, signed, span, uuid};
use crate::session::Session;
use crate::store::Shared;
use crate::tally::{Other, Tally};

/// The place of a message that goes to the back: the database gives it the next one.
pub(crate) const BACK: u64 = u64::MAX;

/// What only one transaction at a time does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    /// Create, change and delete queues.
    Queues = 0x5244_0001,
    /// Enqueue to a queue with a limit that has to be counted.
    Enqueue = 0x5244_0002,
    /// Hand out retries of a queue that limits those in flight.
    Retries = 0x5244_0003,
}

impl Shared {
    pub(crate) async fn lock(&self, session: &Session, what: Lock, queue: i32) -> Result<(), Fault> {
        session.rows(&self.link.sql.lock_queue, &[&(what as i32), &queue]).await?;
        Ok(())
    }
}

/// A transaction under way, and what it will write.
pub(crate) struct Work<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) session: Session,
    pub(crate) now: Timestamp,
    queues: HashMap<QueueName, Option<Arc<Known>>>,
    tallies: BTreeMap<i32, Tally>,
    changed: Vec<Kept>,
    stories: BTreeSet<i64>,
    failures: Vec<(i64, AttemptRecord)>,
    trimmed: Vec<i64>,
    gone: Vec<(i32, Uuid)>,
    let_go: Vec<(i32, String, Uuid)>,
    arrived: BTreeSet<(i32, MessageId)>,
    /// Queues in which messages wait again, and the earliest time of theirs.
    returned: HashMap<i32, i64>,
    /// The pairs of type and source of queues to which this transaction has added some.
    classes: HashMap<i32, Classes>,
    /// Those that a message has, or will have once it is written.
    used: BTreeSet<(i32, i32)>,
}

impl<'a> Work<'a> {
    pub(crate) async fn begin(shared: &'a Shared, now: Now) -> Result<Self, Fault> {
        let (session, now) = shared.link.begin(now).await?;
        Ok(Self {
            shared,
            session,
            now,
            queues: HashMap::new(),
            tallies: BTreeMap::new(),
            changed: Vec::new(),
            stories: BTreeSet::new(),
            failures: Vec::new(),
            trimmed: Vec::new(),
            gone: Vec::new(),
            let_go: Vec::new(),
            arrived: BTreeSet::new(),
            returned: HashMap::new(),
            classes: HashMap::new(),
            used: BTreeSet::new(),
        })
    }

    // Queues.

    /// Reads the queues of that name; they cannot be deleted before the transaction ends.
    pub(crate) async fn hold_queues(
        &mut self,
        names: impl IntoIterator<Item = &QueueName>,
    ) -> Result<(), Fault> {
        let wanted: BTreeSet<&QueueName> =
            names.into_iter().filter(|name| !self.queues.contains_key(*name)).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = wanted.iter().map(|name| name.as_str()).collect();
        let rows = self.session.rows(&self.shared.link.sql.queue_hold, &[&texts]).await?;
        for name in wanted {
            self.queues.insert(name.clone(), None);
        }
        for row in &rows {
            let known = Known::read(row, &self.shared.options.defaults)?;
            // What is cached has the pairs of type and source already, if it is still right.
            let cached = self.shared.cache().get(&known.queue.name).map(Arc::clone);
            let right = cached.filter(|cached| cached.id == known.id && cached.stamp == known.stamp);
            let known = if let Some(cached) = right {
                cached
            } else {
                known.read_classes(&self.session).await?;
                let known = Arc::new(known);
                self.shared.cache().insert(known.queue.name.clone(), Arc::clone(&known));
                known
            };
            self.queues.insert(known.queue.name.clone(), Some(known));
        }
        Ok(())
    }

    /// A queue, which cannot be deleted before the transaction ends.
    pub(crate) async fn queue(&mut self, name: &QueueName) -> Result<Arc<Known>, Fault> {
        self.hold_queues([name]).await?;
        self.held(name).ok_or_else(|| QueueNotFound(name.clone()).into())
    }

    /// A queue that was read before; `None` where there is none of that name.
    pub(crate) fn held(&self, name: &QueueName) -> Option<Arc<Known>> {
        self.queues.get(name).and_then(Option::as_ref).map(Arc::clone)
    }

    pub(crate) fn tally(&mut self, queue: i32) -> &mut Tally {
        self.tallies.entry(queue).or_default()
    }

    // Messages.

    /// Reads messages of one queue.
    pub(crate) async fn read(&self, known: &Known, rows: &[Row]) -> Result<Vec<Kept>, Fault> {
        let mut kept = Vec::with_capacity(rows.len());
        for row in rows {
            let class: i32 = row::Columns::from(row, 1).take()?;
            if known.classes().pair(class).is_none() {
                known.read_classes(&self.session).await?;
            }
            kept.push(row::read(row, 0, &known.queue.name, |id| known.class(id))?);
        }
        Ok(kept)
    }

    /// What a message of a queue is judged by.
    pub(crate) fn terms(known: &Known, kept: &Kept) -> Terms {
        Terms::new(&known.settings, kept.message.spec.max_attempts)
    }

    /// The message is as it is now. `was` is where it stood before.
    pub(crate) fn change(&mut self, kept: Kept, was: &Phase) {
        self.tally(kept.was_in).state(was, -1);
        self.tally(kept.queue_id).state(&kept.message.progress.phase, 1);
        if kept.message.progress.phase == Phase::Waiting {
            self.came_back(kept.queue_id, millis(kept.message.progress.visible_at));
        }
        self.changed.push(kept);
    }

    /// Something of that time stands in a line of the queue again.
    pub(crate) fn came_back(&mut self, queue: i32, visible_at: i64) {
        let earliest = self.returned.entry(queue).or_insert(visible_at);
        *earliest = visible_at.min(*earliest);
    }

    /// The message is gone.
    pub(crate) fn remove(&mut self, kept: &Kept, was: &Phase) {
        self.tally(kept.was_in).state(was, -1);
        self.gone.push((kept.was_in, uuid(kept.message.id())));
    }

    /// Something besides a failure has happened to the message.
    pub(crate) fn remember(&mut self, kept: &mut Kept) {
        kept.storied = true;
        self.stories.insert(kept.no);
    }

    /// Lets the key go that a message holds while it is not done. A key held for a window stays held.
    pub(crate) fn let_go(&mut self, kept: &Kept) {
        if let Some(dedup) =
            kept.message.spec.dedup.as_ref().filter(|dedup| dedup.unique == Uniqueness::UntilDone)
        {
            self.let_go.push((kept.was_in, dedup.key.as_str().to_owned(), uuid(kept.message.id())));
        }
    }

    /// Counts and writes down how an attempt ended, and moves the message on if it died.
    pub(crate) async fn ended(
        &mut self,
        known: &Known,
        verb: Verb,
        kept: &mut Kept,
        ended: Ended,
    ) -> Result<Judged, Fault> {
        self.tally(known.id).verb(verb, 1);
        let (error, leased_at) = (ended.record.error.clone(), Some(ended.record.leased_at));
        let consumer = Some(ended.record.consumer.clone());
        if kept.message.history.failures.len() == ATTEMPT_RECORDS_MAX {
            self.trimmed.push(kept.no);
        }
        self.failures.push((kept.no, ended.record.clone()));
        kept.message.history.add(ended.record);
        self.remember(kept);
        let judged = self.judged(known, kept, ended.verdict, error).await?;
        Ok(Judged { leased_at, consumer, ..judged })
    }

    /// Gives up a waiting message that can never be handed out again.
    pub(crate) async fn lapse(
        &mut self,
        known: &Known,
        kept: &mut Kept,
        reason: DeadReason,
    ) -> Result<Judged, Fault> {
        self.tally(known.id).verb(Verb::Lapse, 1);
        let message = &mut kept.message;
        lifecycle::lapse(&mut message.progress, reason, message.history.last_error.as_ref(), self.now);
        let error = message.history.last_error.clone().unwrap_or_else(|| ErrorText::new(reason.name()));
        self.judged(known, kept, Verdict::Dead(reason), error).await
    }

    /// Reports a verdict that was carried out, after moving the message on if it died.
    async fn judged(
        &mut self,
        known: &Known,
        kept: &mut Kept,
        verdict: Verdict,
        error: ErrorText,
    ) -> Result<Judged, Fault> {
        let max_attempts = Self::terms(known, kept).policy.max_attempts;
        let (kind, attempts) = (kept.message.spec.kind.clone(), kept.message.progress.attempts);
        let moved_to = match verdict {
            Verdict::Dead(_) => self.died(known, kept).await?,
            Verdict::RetryAt(..) => None,
        };
        Ok(Judged {
            at: self.now,
            leased_at: None,
            consumer: None,
            queue: known.queue.name.clone(),
            message: kept.message.id(),
            kind,
            attempts,
            max_attempts,
            error,
            verdict,
            moved_to,
        })
    }

    /// Lets the unique key go and moves the message to `dead_letter_to`, whatever that queue's `max_waiting` says. A
    /// target that is missing or cannot take it leaves it dead where it is.
    async fn died(&mut self, known: &Known, kept: &mut Kept) -> Result<Option<QueueName>, Fault> {
        self.tally(known.id).other(Other::Died);
        kept.message.history.death = kept.message.progress.death().copied();
        self.remember(kept);
        self.let_go(kept);
        let Some(target) = known.settings.dead_letter_to.clone() else { return Ok(None) };
        Ok(self.carry(known, kept, &target).await?.is_ok().then_some(target))
    }

    /// Takes a message from one queue to another, counted in both.
    pub(crate) async fn carry(
        &mut self,
        from: &Known,
        kept: &mut Kept,
        to: &QueueName,
    ) -> Result<Result<(), BulkRefusal>, Fault> {
        self.hold_queues([to]).await?;
        let Some(target) = self.held(to) else { return Ok(Err(BulkRefusal::NotFound)) };
        let id = kept.message.id();
        let (queues, ids) = ([target.id], [uuid(id)]);
        let sql = &self.shared.link.sql;
        let there = self.session.rows(&sql.enqueue_known, &[&queues.as_slice(), &ids.as_slice()]).await?;
        if self.arrived.contains(&(target.id, id)) || !there.is_empty() {
            return Ok(Err(BulkRefusal::Duplicate(id)));
        }
        let spec = &kept.message.spec;
        let Some(class) = self.class(&target, &spec.kind, &spec.source).await? else {
            return Ok(Err(BulkRefusal::TooManyClasses {
                max: self.shared.options.limits.classes_per_queue,
            }));
        };
        self.let_go(kept);
        self.tally(from.id).verb(Verb::Move, 1);
        self.tally(target.id).other(Other::MovedIn);
        self.arrived.insert((target.id, id));
        lifecycle::move_to(&mut kept.message, to.clone(), BACK, self.now);
        (kept.queue_id, kept.class_id) = (target.id, class);
        Ok(Ok(()))
    }

    /// The number of a pair of type and source in a queue; `None` where the queue has as many as it may.
    pub(crate) async fn class(
        &mut self,
        known: &Known,
        kind: &MessageType,
        source: &Source,
    ) -> Result<Option<i32>, Fault> {
        let found = match self.classes.get(&known.id) {
            Some(classes) => classes.id(kind, source),
            None => known.classes().id(kind, source),
        };
        if let Some(id) = found {
            self.used.insert((known.id, id));
            return Ok(found);
        }
        // From here on this transaction has its own list: what it adds is nobody else's business before it ends.
        let sql = &self.shared.link.sql;
        let max = self.shared.options.limits.classes_per_queue;
        self.shared.lock(&self.session, Lock::Enqueue, known.id).await?;
        let mut classes = Classes::read(&self.session, known.id).await?;
        if classes.id(kind, source).is_none() && classes.len() >= max {
            // Pairs that no message has make room. Nobody may be about to use one of them.
            self.session.rows(&sql.queue_own, &[&known.id]).await?;
            let used = self.used.range((known.id, i32::MIN)..=(known.id, i32::MAX));
            let used: Vec<i32> = used.map(|(_, class)| *class).collect();
            self.session.rows(&sql.class_sweep, &[&known.id, &used]).await?;
            self.session.rows(&sql.queue_restamp, &[&known.id]).await?;
            classes = Classes::read(&self.session, known.id).await?;
        }
        if classes.id(kind, source).is_none() {
            if classes.len() >= max {
                self.classes.insert(known.id, classes);
                return Ok(None);
            }
            let params = (kind.as_str(), source.as_str());
            let rows = self.session.rows(&sql.class_insert, &[&known.id, &params.0, &params.1]).await?;
            classes.add(crate::session::one(&rows)?, (kind.clone(), source.clone()));
        }
        let found = classes.id(kind, source);
        self.used.extend(found.map(|id| (known.id, id)));
        self.classes.insert(known.id, classes);
        Ok(found)
    }

    // The end.

    /// Writes everything and ends the transaction.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        self.flush().await?;
        let committed = self.session.commit().await;
        // Also where nobody knows whether it was: then it may have been.
        let mut turns = self.shared.turns();
        for (queue, visible_at) in self.returned {
            if let Some(turns) = turns.get_mut(&queue) {
                turns.behind.came_back(visible_at);
            }
        }
        committed
    }

    /// Ends the transaction; nothing happened.
    pub(crate) async fn undo(self) -> Result<(), Fault> {
        self.session.undo().await
    }

    /// Writes everything that has changed so far.
    pub(crate) async fn flush(&mut self) -> Result<(), Fault> {
        self.write_messages().await?;
        self.write_stories().await?;
        let sql = &self.shared.link.sql;
        if !self.gone.is_empty() {
            let (queues, ids): (Vec<i32>, Vec<Uuid>) = std::mem::take(&mut self.gone).into_iter().unzip();
            self.session.rows(&sql.remove, &[&queues, &ids]).await?;
        }
        if !self.let_go.is_empty() {
            let mut columns = (Vec::new(), Vec::new(), Vec::new());
            for (queue, key, message) in std::mem::take(&mut self.let_go) {
                columns.0.push(queue);
                columns.1.push(key);
                columns.2.push(message);
            }
            let dropped = self.session.rows(&sql.hold_drop, &[&columns.0, &columns.1, &columns.2]).await?;
            for row in &dropped {
                let queue = row::Columns::from(row, 0).take()?;
                self.tally(queue).holds(-1);
            }
        }
        self.flush_tallies().await
    }

    /// Adds what was counted so far to the tallies.
    pub(crate) async fn flush_tallies(&mut self) -> Result<(), Fault> {
        for (queue, tally) in std::mem::take(&mut self.tallies) {
            if !tally.is_zero() {
                self.session.rows(&self.shared.link.sql.tally, &[&queue, &tally.columns()]).await?;
            }
        }
        Ok(())
    }

    async fn write_messages(&mut self) -> Result<(), Fault> {
        if self.changed.is_empty() {
            return Ok(());
        }
        let mut to = Written::default();
        for kept in &self.changed {
            to.add(kept, self.now);
        }
        self.session
            .rows(
                &self.shared.link.sql.write,
                &[
                    &to.queue_id,
                    &to.id,
                    &to.to_queue,
                    &to.class_id,
                    &to.visible_at,
                    &to.place,
                    &to.state,
                    &to.rank,
                    &to.retry,
                    &to.storied,
                    &to.attempts,
                    &to.deliveries,
                    &to.deliveries_before,
                    &to.redrives,
                    &to.expires_at,
                    &to.lease_id,
                    &to.consumer,
                    &to.leased_at,
                    &to.deadline,
                    &to.ended_at,
                    &to.fingerprint,
                    &to.dead_reason,
                    &to.dedup_key,
                    &to.origin_queue,
                ],
            )
            .await?;
        Ok(())
    }

    async fn write_stories(&mut self) -> Result<(), Fault> {
        let sql = &self.shared.link.sql;
        let changed = std::mem::take(&mut self.changed);
        let stories: Vec<&Kept> = changed.iter().filter(|kept| self.stories.contains(&kept.no)).collect();
        if !stories.is_empty() {
            let no: Vec<i64> = stories.iter().map(|kept| kept.no).collect();
            let history = || stories.iter().map(|kept| &kept.message.history);
            let errors: Vec<Option<&str>> =
                history().map(|history| history.last_error.as_ref().map(ErrorText::as_str)).collect();
            let checkpoints: Vec<Option<&[u8]>> = history()
                .map(|history| history.checkpoint.as_ref().map(|point| &point.bytes()[..]))
                .collect();
            let death = || history().map(|history| history.death);
            let reasons: Vec<Option<i16>> =
                death().map(|death| death.map(|death| row::reason_number(death.reason))).collect();
            let died: Vec<Option<i64>> = death().map(|death| death.map(|death| millis(death.at))).collect();
            let prints: Vec<Option<i64>> =
                death().map(|death| death.map(|death| signed(death.fingerprint.to_bits()))).collect();
            let redriven = || history().map(|history| history.redriven.as_ref());
            let at: Vec<Option<i64>> = redriven().map(|note| note.map(|note| millis(note.at))).collect();
            let by: Vec<Option<&str>> = redriven().map(|note| note.map(|note| note.by.as_str())).collect();
            let why: Vec<Option<&str>> =
                redriven().map(|note| note.map(|note| note.reason.as_str())).collect();
            self.session
                .rows(
                    &sql.write_history,
                    &[&no, &errors, &checkpoints, &reasons, &died, &prints, &at, &by, &why],
                )
                .await?;
        }
        self.stories.clear();
        let failures = std::mem::take(&mut self.failures);
        if !failures.is_empty() {
            let no: Vec<i64> = failures.iter().map(|(no, _)| *no).collect();
            let of = || failures.iter().map(|(_, record)| record);
            let attempts: Vec<i32> = of().map(|record| row::count(record.attempt)).collect();
            let causes: Vec<i16> = of().map(|record| row::cause_number(record.cause)).collect();
            let rules: Vec<Option<i16>> =
                of().map(|record| record.delay.map(|(_, rule)| rule_number(rule))).collect();
            let leased: Vec<i64> = of().map(|record| millis(record.leased_at)).collect();
            let ended: Vec<i64> = of().map(|record| millis(record.ended_at)).collect();
            let delays: Vec<Option<i64>> =
                of().map(|record| record.delay.map(|(delay, _)| span(delay))).collect();
            let consumers: Vec<&str> = of().map(|record| record.consumer.as_str()).collect();
            let errors: Vec<&str> = of().map(|record| record.error.as_str()).collect();
            self.session
                .rows(
                    &sql.write_failures,
                    &[&no, &attempts, &causes, &rules, &leased, &ended, &delays, &consumers, &errors],
                )
                .await?;
        }
        let trimmed = std::mem::take(&mut self.trimmed);
        if !trimmed.is_empty() {
            let kept = i64::try_from(ATTEMPT_RECORDS_MAX).unwrap_or(i64::MAX);
            self.session.rows(&sql.trim_failures, &[&trimmed, &kept]).await?;
        }
        Ok(())
    }
}

/// Messages as arrays of their columns.
#[derive(Default)]
struct Written<'a> {
    queue_id: Vec<i32>,
    id: Vec<Uuid>,
    to_queue: Vec<i32>,
    class_id: Vec<i32>,
    visible_at: Vec<i64>,
    place: Vec<Option<i64>>,
    state: Vec<i16>,
    rank: Vec<i16>,
    retry: Vec<bool>,
    storied: Vec<bool>,
    attempts: Vec<i32>,
    deliveries: Vec<i32>,
    deliveries_before: Vec<i32>,
    redrives: Vec<i32>,
    expires_at: Vec<Option<i64>>,
    lease_id: Vec<Option<i64>>,
    consumer: Vec<Option<&'a str>>,
    leased_at: Vec<Option<i64>>,
    deadline: Vec<Option<i64>>,
    ended_at: Vec<Option<i64>>,
    fingerprint: Vec<Option<i64>>,
    dead_reason: Vec<Option<i16>>,
    dedup_key: Vec<Option<&'a str>>,
    origin_queue: Vec<Option<&'a str>>,
}

impl<'a> Written<'a> {
    fn add(&mut self, kept: &'a Kept, now: Timestamp) {
        let Kept { message, .. } = kept;
        let progress = &message.progress;
        let lease = progress.lease();
        let death = progress.death();
        let (state, ended_at) = match &progress.phase {
            Phase::Waiting if progress.visible_at > now => (DELAYED, None),
            Phase::Waiting => (READY, None),
            Phase::Leased(_) => (LEASED, None),
            Phase::Dead(death) => (DEAD, Some(death.at)),
            Phase::Done(at) => (DONE, Some(*at)),
        };
        self.queue_id.push(kept.was_in);
        self.id.push(uuid(message.id()));
        self.to_queue.push(kept.queue_id);
        self.class_id.push(kept.class_id);
        self.visible_at.push(millis(progress.visible_at));
        self.place.push(i64::try_from(progress.sequence).ok());
        self.state.push(state);
        self.rank.push(row::rank(progress.priority));
        self.retry.push(progress.lane() == Lane::Retry);
        self.storied.push(kept.storied);
        self.attempts.push(row::count(progress.attempts));
        self.deliveries.push(row::count(progress.deliveries));
        self.deliveries_before.push(row::count(progress.deliveries_before));
        self.redrives.push(row::count(progress.redrives));
        self.expires_at.push(progress.expires_at.map(millis));
        self.lease_id.push(lease.map(|lease| signed(lease.id.bits())));
        self.consumer.push(lease.map(|lease| lease.consumer.as_str()));
        self.leased_at.push(lease.map(|lease| millis(lease.leased_at)));
        self.deadline.push(lease.map(|lease| millis(lease.deadline)));
        self.ended_at.push(ended_at.map(millis));
        self.fingerprint.push(death.map(|death| signed(death.fingerprint.to_bits())));
        self.dead_reason.push(death.map(|death| row::reason_number(death.reason)));
        self.dedup_key.push(message.spec.dedup.as_ref().map(|dedup| dedup.key.as_str()));
        self.origin_queue.push(message.origin_queue.as_ref().map(QueueName::as_str));
    }
}
