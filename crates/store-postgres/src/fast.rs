//! The common case in one statement: enqueue, ack and nack where nothing has to be counted, kept or buried.
//!
//! Each answers `None` where it is not that simple, and then nothing has happened; the transaction in the file of the verb
//! does it instead.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use redrive_core::dice::Dice;
use redrive_core::lifecycle::{Terms, When};
use redrive_core::message::MessageId;
use redrive_core::policy::{DelayRule, Failure, Sentence, Verdict};
use redrive_core::queue::QueueName;
use redrive_core::receipt::Claim;
use redrive_store::{
    AckItem, Acked, Batch, EnqueueItem, EnqueueOutcome, Judged, NackItem, Now, Settled, StoreError,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::copy::{COPY_MIN, Copied};
use crate::doubt::Became;
use crate::error::{Fault, damaged};
use crate::queue::Known;
use crate::row::{self, Columns, millis, rule_number, signed, span, time, uuid, write_headers};
use crate::server::Place;
use crate::session::{Param, Session};
use crate::store::{Shared, again};

/// How often the statement is tried with what is known anew, before the transaction takes over.
const LOOKS: usize = 3;

/// What became of an item, as the statements answer it.
const DONE: i16 = 0;
const NOT_FOUND: i16 = 1;
const LEASE_LOST: i16 = 2;

/// The queues of a batch, as this instance knows them.
struct Queues(BTreeMap<QueueName, Arc<Known>>);

impl Queues {
    /// `None` where one of them is not there.
    async fn of<'q>(
        shared: &Shared,
        session: &Session,
        names: impl Iterator<Item = &'q QueueName>,
    ) -> Result<Option<Self>, Fault> {
        let mut queues = BTreeMap::new();
        for name in names {
            if !queues.contains_key(name) {
                let cached = shared.cache().get(name).map(Arc::clone);
                let known = match cached {
                    Some(known) => known,
                    None => match shared.look(session, name).await? {
                        Some(known) => known,
                        None => return Ok(None),
                    },
                };
                queues.insert(name.clone(), known);
            }
        }
        Ok(Some(Self(queues)))
    }

    fn get(&self, name: &QueueName) -> Result<&Arc<Known>, Fault> {
        self.0.get(name).ok_or_else(|| redrive_store::QueueNotFound(name.clone()).into())
    }

    /// The queue of a batch that goes to one.
    fn only(&self) -> Option<&Arc<Known>> {
        self.0.values().next().filter(|_| self.0.len() == 1)
    }

    fn ids(&self) -> Vec<i32> {
        self.0.values().map(|known| known.id).collect()
    }

    fn stamps(&self) -> Vec<i64> {
        self.0.values().map(|known| known.stamp).collect()
    }

    /// They were changed: what is known of them is forgotten.
    fn forget(&self, shared: &Shared) {
        for name in self.0.keys() {
            shared.cache().remove(name);
        }
    }
}

/// The receipts of a batch; no message is among them twice.
struct Claims {
    queues: Vec<i32>,
    ids: Vec<Uuid>,
    leases: Vec<i64>,
}

impl Claims {
    fn of<'c>(queues: &Queues, claims: impl Iterator<Item = &'c Claim>) -> Result<Option<Self>, Fault> {
        let mut to = Self { queues: Vec::new(), ids: Vec::new(), leases: Vec::new() };
        let mut seen: BTreeSet<(i32, MessageId)> = BTreeSet::new();
        for claim in claims {
            let queue = queues.get(&claim.queue)?.id;
            if !seen.insert((queue, claim.message)) {
                return Ok(None);
            }
            to.queues.push(queue);
            to.ids.push(uuid(claim.message));
            to.leases.push(signed(claim.lease.bits()));
        }
        Ok(Some(to))
    }
}

impl Shared {
    pub(crate) async fn ack_fast(
        &self,
        now: Now,
        batch: &Batch<AckItem>,
    ) -> Result<Option<Vec<Settled<Acked>>>, Fault> {
        if batch.is_all_or_nothing() || batch.items().is_empty() {
            return Ok(None);
        }
        let session = self.link.session().await?;
        for _ in 0..LOOKS {
            let names = batch.items().iter().map(|item| &item.claim.queue);
            let Some(queues) = Queues::of(self, &session, names).await? else { return Ok(None) };
            if queues.0.values().any(|known| known.settings.retain_done.is_some()) {
                return Ok(None);
            }
            let Some(claims) = Claims::of(&queues, batch.items().iter().map(|item| &item.claim))? else {
                return Ok(None);
            };
            let (ids, stamps) = (queues.ids(), queues.stamps());
            let params: [Param<'_>; 5] = [&ids, &stamps, &claims.queues, &claims.ids, &claims.leases];
            let rows = session.commit_rows(&self.link.sql.ack_fast, &params).await?;
            if !answers(&rows, batch.items().len(), 0)? {
                queues.forget(self);
                continue;
            }
            let outcomes = self.acked(&session, now, batch, &queues, &rows).await;
            return outcomes.map(Some).map_err(Fault::after_commit);
        }
        Ok(None)
    }

    /// What the statement has answered. It is committed by now.
    async fn acked(
        &self,
        session: &Session,
        now: Now,
        batch: &Batch<AckItem>,
        queues: &Queues,
        rows: &[Row],
    ) -> Result<Vec<Settled<Acked>>, Fault> {
        let mut outcomes = Vec::with_capacity(rows.len());
        for (item, row) in batch.items().iter().zip(rows) {
            let mut from = Columns::from(row, 1);
            outcomes.push(match from.take::<i16>()? {
                DONE => {
                    let known = queues.get(&item.claim.queue)?;
                    let (kind, _) = self.class_of(session, known, from.take()?).await?;
                    let attempts = u32::try_from(from.take::<i32>()?).unwrap_or_default();
                    let leased_at = time(from.take()?);
                    let consumer = row::consumer(&mut from)?;
                    Settled::Applied(Acked {
                        message: item.claim.message,
                        kind,
                        attempts,
                        leased_at,
                        consumer,
                    })
                }
                NOT_FOUND => Settled::NotFound,
                LEASE_LOST => Settled::LeaseLost,
                // Somebody else was at it at the same moment.
                _ => {
                    let one = Batch::one(item.clone())?;
                    self.one_more(again(|| self.ack(now, &one)).await?)?
                }
            });
        }
        Ok(outcomes)
    }

    pub(crate) async fn nack_fast(
        &self,
        now: Now,
        batch: &Batch<NackItem>,
        seed: u64,
    ) -> Result<Option<Vec<Settled<Judged>>>, Fault> {
        if batch.is_all_or_nothing() || batch.items().is_empty() {
            return Ok(None);
        }
        let session = self.link.session().await?;
        for _ in 0..LOOKS {
            let names = batch.items().iter().map(|item| &item.claim.queue);
            let Some(queues) = Queues::of(self, &session, names).await? else { return Ok(None) };
            let Some(claims) = Claims::of(&queues, batch.items().iter().map(|item| &item.claim))? else {
                return Ok(None);
            };
            let mut delays = Vec::with_capacity(batch.items().len());
            for item in batch.items() {
                let claim = &item.claim;
                let terms = Terms::new(&queues.get(&claim.queue)?.settings, claim.max_attempts);
                let mut dice = Dice::for_attempt(seed, claim.message, claim.attempts);
                match terms.sentence(claim.attempts, claim.deliveries, Failure::Nack(item.asked), &mut dice) {
                    Sentence::RetryAfter(delay, rule) => delays.push((delay, rule)),
                    Sentence::Dead(_) => return Ok(None),
                }
            }
            let (at, floor) = self.link.time(now);
            let (ids, stamps) = (queues.ids(), queues.stamps());
            let spans: Vec<i64> = delays.iter().map(|(delay, _)| span(*delay)).collect();
            let rules: Vec<i16> = delays.iter().map(|(_, rule)| rule_number(*rule)).collect();
            let errors: Vec<&str> = batch.items().iter().map(|item| item.error.as_str()).collect();
            let points: Vec<Option<&[u8]>> = batch
                .items()
                .iter()
                .map(|item| item.checkpoint.as_ref().map(|point| &point.bytes()[..]))
                .collect();
            let params: [Param<'_>; 11] = [
                &at,
                &floor,
                &ids,
                &stamps,
                &claims.queues,
                &claims.ids,
                &claims.leases,
                &spans,
                &rules,
                &errors,
                &points,
            ];
            let rows = session.commit_rows(&self.link.sql.nack_fast, &params).await?;
            if !answers(&rows, batch.items().len(), 1)? {
                queues.forget(self);
                continue;
            }
            let rules: Vec<DelayRule> = delays.into_iter().map(|(_, rule)| rule).collect();
            let outcomes = self.nacked(&session, batch, seed, (&queues, &rules), &rows).await;
            return outcomes.map(Some).map_err(Fault::after_commit);
        }
        Ok(None)
    }

    /// What the statement has answered. It is committed by now.
    async fn nacked(
        &self,
        session: &Session,
        batch: &Batch<NackItem>,
        seed: u64,
        (queues, rules): (&Queues, &[DelayRule]),
        rows: &[Row],
    ) -> Result<Vec<Settled<Judged>>, Fault> {
        let mut outcomes = Vec::with_capacity(rows.len());
        for ((item, row), rule) in batch.items().iter().zip(rows).zip(rules) {
            let mut from = Columns::from(row, 0);
            let now = time(from.take()?);
            self.link.saw(now);
            let _fresh: bool = from.take()?;
            outcomes.push(match from.take::<i16>()? {
                DONE => {
                    let known = queues.get(&item.claim.queue)?;
                    let (kind, _) = self.class_of(session, known, from.take()?).await?;
                    let attempts = u32::try_from(from.take::<i32>()?).unwrap_or_default();
                    let leased_at = Some(time(from.take()?));
                    let terms = Terms::new(&known.settings, item.claim.max_attempts);
                    let verdict = Verdict::RetryAt(time(from.take()?), *rule);
                    Settled::Applied(Judged {
                        at: now,
                        leased_at,
                        consumer: Some(row::consumer(&mut from)?),
                        queue: item.claim.queue.clone(),
                        message: item.claim.message,
                        kind,
                        attempts,
                        max_attempts: terms.policy.max_attempts,
                        error: item.error.clone(),
                        verdict,
                        moved_to: None,
                    })
                }
                NOT_FOUND => Settled::NotFound,
                LEASE_LOST => Settled::LeaseLost,
                // It dies of age, or somebody else was at it at the same moment.
                _ => {
                    let one = Batch::one(item.clone())?;
                    self.one_more(again(|| self.nack(Now::At(now), &one, seed)).await?)?
                }
            });
        }
        Ok(outcomes)
    }

    pub(crate) async fn enqueue_fast(
        &self,
        now: Now,
        batch: &Batch<EnqueueItem>,
    ) -> Result<Option<Vec<EnqueueOutcome>>, Fault> {
        if batch.items().is_empty() || batch.items().iter().any(|item| item.draft.spec.dedup.is_some()) {
            return Ok(None);
        }
        let mut session = self.link.session().await?;
        let mut copies = batch.items().len() >= COPY_MIN && self.link.keeps_connections();
        for _ in 0..LOOKS {
            let names = batch.items().iter().map(|item| &item.queue);
            let Some(queues) = Queues::of(self, &session, names).await? else { return Ok(None) };
            if queues.0.values().any(|known| known.settings.max_waiting.is_some()) {
                return Ok(None);
            }
            let mut classes = Vec::with_capacity(batch.items().len());
            for item in batch.items() {
                let (spec, known) = (&item.draft.spec, queues.get(&item.queue)?);
                if known.classes().id(&spec.kind, &spec.source).is_none() {
                    // Somebody may have brought it since we looked.
                    known.read_classes(&session).await?;
                }
                match known.classes().id(&spec.kind, &spec.source) {
                    Some(class) => classes.push(class),
                    None => return Ok(None),
                }
            }
            if let Some(known) = queues.only().filter(|_| copies) {
                drop(session);
                // Apart from the rest, whose callers should not carry it along.
                match Box::pin(self.enqueue_copy(now, batch.items(), known, &classes)).await? {
                    Copied::Done(outcomes) => return Ok(Some(outcomes)),
                    Copied::Changed => queues.forget(self),
                    Copied::Conflict => copies = false,
                }
                session = self.link.session().await?;
                continue;
            }
            let (mark, place) = (self.link.mark(), session.place()?.clone());
            let rows = match self.insert_fast(&session, now, batch.items(), &queues, &classes, mark).await {
                Err(Fault::Unknown(lost)) => {
                    drop(session);
                    return self.enqueued(batch, &place, mark, lost).await.map(Some);
                }
                answer => answer?,
            };
            let first = rows.first().ok_or_else(|| damaged("an enqueue", "there is no answer"))?;
            let mut from = Columns::from(first, 0);
            self.link.saw(time(from.take()?));
            if !from.take::<bool>()? {
                queues.forget(self);
                continue;
            }
            let mut outcomes = Vec::with_capacity(rows.len());
            for (item, row) in batch.items().iter().zip(&rows) {
                let mut from = Columns::from(row, 2);
                let (id, new): (MessageId, bool) = (item.draft.spec.id, from.take()?);
                outcomes.push(if new {
                    EnqueueOutcome::Enqueued { id, visible_at: time(from.take()?) }
                } else {
                    EnqueueOutcome::Duplicate { id }
                });
            }
            return Ok(Some(outcomes));
        }
        Ok(None)
    }

    /// The answer that was lost.
    async fn enqueued(
        &self,
        batch: &Batch<EnqueueItem>,
        place: &Place,
        mark: Uuid,
        lost: StoreError,
    ) -> Result<Vec<EnqueueOutcome>, Fault> {
        let (at, repeated) = match self.link.became(place, mark).await {
            Some(Became::Committed { at: Some(at), repeated }) => (time(at), repeated),
            Some(Became::Committed { at: None, .. }) => {
                return Err(damaged("mark", "an enqueue does not say when it was").into());
            }
            Some(Became::Undone) => return Err(Fault::lost(lost, false)),
            None => return Err(Fault::Unknown(lost)),
        };
        self.link.saw(at);
        let outcome = |(nth, item): (i32, &EnqueueItem)| {
            let id = item.draft.spec.id;
            if repeated.contains(&nth) {
                EnqueueOutcome::Duplicate { id }
            } else {
                EnqueueOutcome::Enqueued { id, visible_at: item.draft.visible.at(at) }
            }
        };
        Ok((1..).zip(batch.items()).map(outcome).collect())
    }

    async fn insert_fast(
        &self,
        session: &Session,
        now: Now,
        items: &[EnqueueItem],
        queues: &Queues,
        classes: &[i32],
        mark: Uuid,
    ) -> Result<Vec<Row>, Fault> {
        let (at, floor) = self.link.time(now);
        let (known, stamps) = (queues.ids(), queues.stamps());
        let draft = || items.iter().map(|item| &item.draft);
        let spec = || draft().map(|draft| &draft.spec);
        let to: Vec<i32> = items
            .iter()
            .map(|item| queues.get(&item.queue).map(|known| known.id))
            .collect::<Result<_, _>>()?;
        let ids: Vec<Uuid> = spec().map(|spec| uuid(spec.id)).collect();
        let (visible, relative): (Vec<i64>, Vec<bool>) = draft().map(|draft| when(draft.visible)).unzip();
        let expires: Vec<Option<i64>> =
            draft().map(|draft| draft.expires.map(|expires| when(expires).0)).collect();
        let expires_relative: Vec<bool> =
            draft().map(|draft| draft.expires.is_some_and(|expires| when(expires).1)).collect();
        let ranks: Vec<i16> = draft().map(|draft| row::rank(draft.priority)).collect();
        let size = |bytes: usize| i32::try_from(bytes).unwrap_or(i32::MAX);
        let sizes: Vec<i32> =
            spec().map(|spec| size(spec.body.bytes().len() + spec.headers.size())).collect();
        let caps: Vec<Option<i32>> =
            spec().map(|spec| spec.max_attempts.map(|max| row::count(max.get()))).collect();
        let leases: Vec<Option<i64>> = spec().map(|spec| spec.lease_timeout.map(span)).collect();
        let keys: Vec<&str> = spec().map(|spec| spec.fairness_key.as_str()).collect();
        let bodies: Vec<&[u8]> = spec().map(|spec| &spec.body.bytes()[..]).collect();
        let types: Vec<&str> = spec().map(|spec| spec.content_type.as_str()).collect();
        let headers: Vec<Option<String>> = spec().map(|spec| write_headers(&spec.headers)).collect();
        let params: [Param<'_>; 20] = [
            &at,
            &floor,
            &known,
            &stamps,
            &to,
            &classes,
            &ids,
            &visible,
            &relative,
            &expires,
            &expires_relative,
            &ranks,
            &sizes,
            &caps,
            &leases,
            &keys,
            &bodies,
            &types,
            &headers,
            &mark,
        ];
        session.commit_rows(&self.link.sql.enqueue_fast, &params).await
    }

    /// The type and source of a class; one that is new here is looked up.
    async fn class_of(
        &self,
        session: &Session,
        known: &Known,
        class: i32,
    ) -> Result<(redrive_core::message::MessageType, redrive_core::message::Source), Fault> {
        if known.classes().pair(class).is_none() {
            known.read_classes(session).await?;
        }
        Ok(known.class(class)?)
    }

    #[expect(clippy::unused_self, reason = "reads like the other steps of a settlement")]
    fn one_more<T>(&self, outcomes: Vec<Settled<T>>) -> Result<Settled<T>, Fault> {
        Ok(outcomes.into_iter().next().ok_or_else(|| damaged("a settlement", "there is no outcome"))?)
    }
}

/// Whether what the caller knew of the queues was right; `fresh` is the column that says so.
fn answers(rows: &[Row], items: usize, fresh: usize) -> Result<bool, Fault> {
    let first = rows.first().filter(|_| rows.len() == items);
    let first = first.ok_or_else(|| damaged("a settlement", "there is not an answer for each item"))?;
    Ok(Columns::from(first, fresh).take()?)
}

/// A time, and whether it is counted from now.
fn when(at: When) -> (i64, bool) {
    match at {
        When::Now => (0, true),
        When::After(delay) => (span(delay), true),
        When::At(at) => (millis(at), false),
    }
}
