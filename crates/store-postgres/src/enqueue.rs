//! enqueue: nothing → ready | delayed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use redrive_core::lifecycle::Verb;
use redrive_core::message::{MessageId, Phase, Uniqueness};
use redrive_core::time::Timestamp;
use redrive_store::{Batch, EnqueueItem, EnqueueOutcome, EnqueueRefusal, Now, QueueNotFound};
use uuid::Uuid;

use crate::error::Fault;
use crate::row::{self, Columns, message_id, millis, span, uuid, write_headers};
use crate::session::one;
use crate::store::Shared;
use crate::tally::{Other, Tally};
use crate::work::{Lock, Work};

/// How many dedup keys whose window is over an enqueue forgets.
const HOLDS_FORGOTTEN: i64 = 100;

/// A message that is let in.
struct Entering<'a> {
    queue: i32,
    class: i32,
    item: &'a EnqueueItem,
    visible_at: Timestamp,
    /// For how long it holds its dedup key, where it takes it.
    holds: Option<Hold>,
}

/// For how long a dedup key is held.
#[derive(Clone, Copy)]
enum Hold {
    Until(Timestamp),
    UntilDone,
}

/// What a batch must know of the queues it goes to before it decides.
#[derive(Default)]
struct Census {
    /// Messages that are there, or that an earlier item of the batch brought.
    ids: BTreeSet<(i32, MessageId)>,
    /// Who holds a dedup key.
    holds: HashMap<(i32, String), MessageId>,
    /// How many messages wait, where that is limited.
    waiting: BTreeMap<i32, u64>,
    /// How many dedup keys are taken, where one more is asked for.
    held: BTreeMap<i32, u64>,
}

impl Shared {
    pub(crate) async fn enqueue(
        &self,
        now: Now,
        batch: &Batch<EnqueueItem>,
    ) -> Result<Vec<EnqueueOutcome>, Fault> {
        let mut work = Work::begin(self, now).await?;
        work.hold_queues(batch.items().iter().map(|item| &item.queue)).await?;
        let mut census = Census::take(&mut work, batch.items()).await?;
        let mut outcomes = Vec::with_capacity(batch.items().len());
        let mut entering = Vec::new();
        for item in batch.items() {
            outcomes.push(work.enqueue_one(item, &mut census, &mut entering).await?);
        }
        let refused = |outcome: &EnqueueOutcome| matches!(outcome, EnqueueOutcome::Refused(_));
        if batch.is_all_or_nothing() && outcomes.iter().any(refused) {
            for outcome in outcomes.iter_mut().filter(|outcome| !refused(outcome)) {
                *outcome = EnqueueOutcome::Aborted;
            }
            work.undo().await?;
            return Ok(outcomes);
        }
        work.insert(&entering).await?;
        work.hold(&entering).await?;
        work.commit().await?;
        Ok(outcomes)
    }
}

impl Census {
    async fn take(work: &mut Work<'_>, items: &[EnqueueItem]) -> Result<Self, Fault> {
        let mut census = Self::default();
        let (mut queues, mut ids) = (Vec::new(), Vec::new());
        let (mut key_queues, mut keys) = (Vec::new(), Vec::new());
        let (mut limited, mut deduped) = (BTreeSet::new(), BTreeSet::new());
        for item in items {
            let Some(known) = work.held(&item.queue) else { continue };
            queues.push(known.id);
            ids.push(uuid(item.draft.spec.id));
            if known.settings.max_waiting.is_some() {
                limited.insert(known.id);
            }
            if let Some(dedup) = &item.draft.spec.dedup {
                key_queues.push(known.id);
                keys.push(dedup.key.as_str());
                deduped.insert(known.id);
            }
        }
        // What is counted must not change before it is written.
        for queue in limited.union(&deduped) {
            work.shared.lock(&work.session, Lock::Enqueue, *queue).await?;
        }
        let sql = &work.shared.link.sql;
        for row in work.session.rows(&sql.enqueue_known, &[&queues, &ids]).await? {
            let mut from = Columns::from(&row, 0);
            census.ids.insert((from.take()?, message_id(from.take()?)));
        }
        let now = millis(work.now);
        if !keys.is_empty() {
            for row in work.session.rows(&sql.hold_get, &[&key_queues, &keys]).await? {
                let mut from = Columns::from(&row, 0);
                let (queue, key, message): (i32, String, Uuid) = (from.take()?, from.take()?, from.take()?);
                if from.take::<Option<i64>>()?.is_none_or(|until| until > now) {
                    census.holds.insert((queue, key), message_id(message));
                }
            }
        }
        for queue in deduped {
            let held: i64 = one(&work.session.rows(&sql.hold_count, &[&queue, &now]).await?)?;
            census.held.insert(queue, held.unsigned_abs());
            let forgotten: i64 =
                one(&work.session.rows(&sql.hold_sweep, &[&queue, &now, &HOLDS_FORGOTTEN]).await?)?;
            work.tally(queue).holds(-forgotten);
        }
        for queue in limited {
            let columns: Vec<i64> = one(&work.session.rows(&sql.tally_sum, &[&queue]).await?)?;
            census.waiting.insert(queue, Tally::from_columns(&columns).waiting());
        }
        Ok(census)
    }
}

impl Work<'_> {
    /// Whether the queue takes a message: no, or it has it already, or yes. A repeated enqueue is answered with the first
    /// one even where a new one would be refused: the producer must be able to learn that it got in.
    async fn enqueue_one<'i>(
        &mut self,
        item: &'i EnqueueItem,
        census: &mut Census,
        entering: &mut Vec<Entering<'i>>,
    ) -> Result<EnqueueOutcome, Fault> {
        let Some(known) = self.held(&item.queue) else {
            return Ok(EnqueueOutcome::Refused(QueueNotFound(item.queue.clone()).into()));
        };
        let spec = &item.draft.spec;
        let key = spec.dedup.as_ref().map(|dedup| (known.id, dedup.key.as_str().to_owned()));
        let same_id = census.ids.contains(&(known.id, spec.id)).then_some(spec.id);
        let first = same_id.or_else(|| key.as_ref().and_then(|key| census.holds.get(key).copied()));
        if let Some(id) = first {
            self.tally(known.id).other(Other::Duplicates);
            return Ok(EnqueueOutcome::Duplicate { id });
        }
        let waiting = census.waiting.entry(known.id).or_default();
        if let Some(max) = known.settings.max_waiting.filter(|max| *waiting >= max.get()) {
            return Ok(EnqueueOutcome::Refused(EnqueueRefusal::QueueFull { max_waiting: max.get() }));
        }
        let limits = self.shared.options.limits;
        let Some(class) = self.class(&known, &spec.kind, &spec.source).await? else {
            return Ok(EnqueueOutcome::Refused(EnqueueRefusal::TooManyClasses {
                max: limits.classes_per_queue,
            }));
        };
        let held = census.held.entry(known.id).or_default();
        if key.is_some() && usize::try_from(*held).is_ok_and(|held| held >= limits.dedup_keys_per_queue) {
            let max = limits.dedup_keys_per_queue;
            return Ok(EnqueueOutcome::Refused(EnqueueRefusal::TooManyDedupKeys { max }));
        }
        *census.waiting.entry(known.id).or_default() += 1;
        census.ids.insert((known.id, spec.id));
        let end = self.now.plus(known.settings.dedup_window);
        let holds = spec.dedup.as_ref().and_then(|dedup| match dedup.unique {
            Uniqueness::UntilDone => Some(Hold::UntilDone),
            // A window that is over as it begins keeps nobody out, not even the rest of the batch.
            Uniqueness::Window => (end > self.now).then_some(Hold::Until(end)),
        });
        if let (Some(key), Some(_)) = (key, holds) {
            *held += 1;
            census.holds.insert(key, spec.id);
        }
        let visible_at = item.draft.visible.at(self.now);
        entering.push(Entering { queue: known.id, class, item, visible_at, holds });
        Ok(EnqueueOutcome::Enqueued { id: spec.id, visible_at })
    }

    async fn insert(&mut self, entering: &[Entering<'_>]) -> Result<(), Fault> {
        if entering.is_empty() {
            return Ok(());
        }
        let draft = || entering.iter().map(|message| &message.item.draft);
        let spec = || draft().map(|draft| &draft.spec);
        let now = millis(self.now);
        let queues: Vec<i32> = entering.iter().map(|message| message.queue).collect();
        let classes: Vec<i32> = entering.iter().map(|message| message.class).collect();
        let ids: Vec<Uuid> = spec().map(|spec| uuid(spec.id)).collect();
        let visible: Vec<i64> = entering.iter().map(|message| millis(message.visible_at)).collect();
        let ranks: Vec<i16> = draft().map(|draft| row::rank(draft.priority)).collect();
        let unique: Vec<Option<bool>> = spec()
            .map(|spec| spec.dedup.as_ref().map(|dedup| dedup.unique == Uniqueness::UntilDone))
            .collect();
        let size = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        let sizes: Vec<i32> =
            spec().map(|spec| size(spec.body.bytes().len() + spec.headers.size())).collect();
        let caps: Vec<Option<i32>> =
            spec().map(|spec| spec.max_attempts.map(|max| row::count(max.get()))).collect();
        let leases: Vec<Option<i64>> = spec().map(|spec| spec.lease_timeout.map(span)).collect();
        let expires: Vec<Option<i64>> =
            draft().map(|draft| draft.expires.map(|expires| millis(expires.at(self.now)))).collect();
        let keys: Vec<&str> = spec().map(|spec| spec.fairness_key.as_str()).collect();
        let dedup: Vec<Option<&str>> =
            spec().map(|spec| spec.dedup.as_ref().map(|dedup| dedup.key.as_str())).collect();
        let bodies: Vec<&[u8]> = spec().map(|spec| &spec.body.bytes()[..]).collect();
        let types: Vec<&str> = spec().map(|spec| spec.content_type.as_str()).collect();
        let headers: Vec<Option<String>> = spec().map(|spec| write_headers(&spec.headers)).collect();
        self.session
            .rows(
                &self.shared.link.sql.enqueue,
                &[
                    &now, &queues, &classes, &ids, &visible, &ranks, &unique, &sizes, &caps, &leases,
                    &expires, &keys, &dedup, &bodies, &types, &headers,
                ],
            )
            .await?;
        for message in entering {
            let tally = self.tally(message.queue);
            tally.state(&Phase::Waiting, 1);
            tally.verb(Verb::Enqueue, 1);
        }
        Ok(())
    }

    /// Takes the dedup keys of the messages.
    async fn hold(&mut self, entering: &[Entering<'_>]) -> Result<(), Fault> {
        let (mut queues, mut keys, mut messages, mut until) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for message in entering {
            let (Some(dedup), Some(hold)) = (&message.item.draft.spec.dedup, message.holds) else { continue };
            queues.push(message.queue);
            keys.push(dedup.key.as_str());
            messages.push(uuid(message.item.draft.spec.id));
            until.push(match hold {
                Hold::Until(end) => Some(millis(end)),
                Hold::UntilDone => None,
            });
        }
        self.take_keys(&queues, &keys, &messages, &until).await
    }

    /// Takes dedup keys that nobody holds.
    pub(crate) async fn take_keys(
        &mut self,
        queues: &[i32],
        keys: &[&str],
        messages: &[Uuid],
        until: &[Option<i64>],
    ) -> Result<(), Fault> {
        if keys.is_empty() {
            return Ok(());
        }
        let now = millis(self.now);
        let sql = &self.shared.link.sql;
        let taken = self.session.rows(&sql.hold_take, &[&queues, &keys, &messages, &until, &now]).await?;
        if taken.len() < keys.len() {
            return Err(Fault::Raced);
        }
        for row in &taken {
            let mut from = Columns::from(row, 0);
            let (queue, new): (i32, bool) = (from.take()?, from.take()?);
            self.tally(queue).holds(i64::from(new));
        }
        Ok(())
    }
}
