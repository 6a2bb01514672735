//! lease: ready → leased. Who is served next, in the order of the design: lane, fairness, priority, order.
//!
//! The claim is one statement. Whose turn it is, is what an instance keeps for itself: where its walk over the keys of a
//! lane has come, and how much the retry lane is owed.

use std::sync::Arc;

use redrive_core::lease::LeaseId;
use redrive_core::lifecycle::{self, Verb};
use redrive_core::limits::BATCH_BYTES_MAX;
use redrive_core::message::{Lane, MessageId, MessageType, Source};
use redrive_core::policy::{LaneCredit, RetryLane};
use redrive_core::time::Timestamp;
use redrive_store::{LaneChoice, LeaseRequest, Leased, Limit, Now, Pick, QueueNotFound, StoreError, Swept};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_postgres::Row;

use crate::behind::Behind;
use crate::error::Fault;
use crate::queue::Known;
use crate::row::{
    self, Columns, Kept, MESSAGE_COLUMNS, STORY_COLUMNS, count, millis, signed, span, time, uuid,
};
use crate::session::{Session, one};
use crate::store::{Shared, items};
use crate::work::{Lock, Work};

/// Delayed messages whose time has come that one call makes ready.
const PROMOTED_MAX: i64 = 1_000;
/// The columns of a claim before those of the message.
const STATUS_COLUMNS: usize = 20;
/// Statements that one call claims with at most; then it says that there is more.
const CLAIMS_MAX: usize = 8;

/// Where the walk over the keys of a lane has come.
#[derive(Debug, Clone, Default)]
struct Walk {
    /// The key that was served last, or walked to.
    key: Option<String>,
    /// What is left of its turn; 0 where it is over.
    left: i32,
    /// The last place that was given out when the circle began; whatever an instance finds when it first looks was there.
    circle: Option<i64>,
    /// How many keys that came since may be served: as many as were served of those that were there before.
    credit: i32,
}

/// Whose turn it is in a queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns {
    credit: LaneCredit,
    fresh: Walk,
    retry: Walk,
    /// Whether the last claim was served before it had come round all keys. Then the next one waits until it is known how far
    /// that one came: two from the same place would walk over the same keys, and find each other's messages taken.
    many_keys: bool,
    line: Arc<Mutex<()>>,
    /// What claims leave out.
    pub(crate) behind: Behind,
}

impl Walk {
    /// From where the next walk goes, and whether that key is still to be served.
    fn start(&self) -> (&str, bool, i32) {
        match &self.key {
            None => ("", true, 0),
            Some(key) => (key, self.left > 0, self.left),
        }
    }

    /// A message of that key was handed out.
    fn served(&mut self, key: &str, weight: i32) {
        let left =
            if self.key.as_deref() == Some(key) && self.left > 0 { self.left.min(weight) } else { weight };
        self.key = Some(key.to_owned());
        self.left = left - 1;
    }
}

/// What a claim answers besides messages.
#[expect(clippy::struct_excessive_bools, reason = "each is a column of the answer")]
struct Status {
    now: Timestamp,
    stamp: Option<i64>,
    /// Whether something is overdue, too old, or due and not made ready yet.
    due: bool,
    contested: bool,
    missed: bool,
    has_fresh: bool,
    retries_left: i32,
    circle: i64,
    fresh: LaneStatus,
    retry: LaneStatus,
}

struct LaneStatus {
    /// How many it was asked for.
    asked: Option<i32>,
    /// The key that the walk ended with.
    end: Option<String>,
    /// Whether the walk was cut off.
    cut: bool,
    /// Whether it was, or ended before it had gone round, or a key gave all that it was asked for: there may be more.
    more: bool,
}

impl LaneStatus {
    /// Whether a lane that gave so many has no more to give. One that was asked for nothing has not said so.
    fn ended(&self, taken: usize) -> bool {
        self.asked.is_none_or(|asked| items(taken) < i64::from(asked)) && !self.more
    }
}

impl Status {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let mut from = Columns::from(row, 0);
        let now = time(from.take()?);
        let stamp = from.take()?;
        let due = from.take::<Option<bool>>()?.unwrap_or_default();
        let contested = from.take::<Option<bool>>()?.unwrap_or_default();
        let missed = from.take()?;
        let has_fresh = from.take::<Option<bool>>()?.unwrap_or_default();
        let retries_left = from.take::<Option<i32>>()?.unwrap_or_default();
        let circle = from.take()?;
        let mut lane = || -> Result<LaneStatus, StoreError> {
            let (asked, end) = (from.take()?, from.take()?);
            let cut = from.take::<Option<bool>>()?.unwrap_or_default();
            Ok(LaneStatus { asked, end, cut, more: from.take::<Option<bool>>()?.unwrap_or_default() })
        };
        let (fresh, retry) = (lane()?, lane()?);
        Ok(Self { now, stamp, due, contested, missed, has_fresh, retries_left, circle, fresh, retry })
    }
}

/// What one statement handed out.
struct Claimed {
    status: Status,
    /// What it left out.
    behind: Behind,
    /// In the order of the picks.
    messages: Vec<Picked>,
    /// Whose turn it is as long as the walk has not been told. The claim has to be committed then.
    line: Option<OwnedMutexGuard<()>>,
}

struct Picked {
    kept: Kept,
    lane: Lane,
    /// The weight of its key.
    weight: i32,
    /// How many new keys may be served after it.
    credit: i32,
    /// Whether the walk has gone round to come to it.
    new_circle: bool,
}

/// What a statement is asked for.
struct Ask {
    limit: usize,
    fresh: bool,
    retry: bool,
    sweep_first: bool,
}

impl Shared {
    /// Requests that differ in nothing but who asks for how many. The messages are those of the first, then those of the
    /// second, and so on.
    pub(crate) async fn lease(&self, now: Now, requests: &[LeaseRequest]) -> Result<Leased, Fault> {
        let limits = requests.iter().map(|request| request.limit.get()).sum();
        let [first, ..] = requests else { return Ok(Leased::default()) };
        let request = &LeaseRequest { limit: Limit::new(limits)?, ..first.clone() };
        // Who gets the n-th message; one alone gets all of them.
        let consumers: Vec<&str> = match requests {
            [one] => vec![one.consumer.as_str()],
            many => many.iter().flat_map(|one| vec![one.consumer.as_str(); one.limit.get()]).collect(),
        };
        request.check()?;
        let mut leased = Leased::default();
        let outcome = match request.pick {
            Pick::Probe { avoid } => self.lease_probe(&mut leased, now, request, avoid).await,
            Pick::Fair => self.lease_into(&mut leased, now, request, &consumers).await,
        };
        if outcome.is_err() {
            // What was claimed for nobody may come back to where it was.
            self.forget_behind(&request.queue);
        }
        match outcome {
            // What it has is handed out. The rest is there another time.
            Err(Fault::Again(_) | Fault::Raced | Fault::Undone(_) | Fault::Unknown(_))
                if !leased.messages.is_empty() || leased.swept != Swept::default() =>
            {
                (leased.at, leased.more) = (self.link.seen(), true);
            }
            outcome => outcome?,
        }
        Ok(leased)
    }

    async fn lease_into(
        &self,
        leased: &mut Leased,
        now: Now,
        request: &LeaseRequest,
        consumers: &[&str],
    ) -> Result<(), Fault> {
        let mut session = self.link.session().await?;
        let mut known = self.known(&session, &request.queue).await?;
        self.look_behind(&session, &known).await?;
        let mut sweep_first = true;
        let (mut fresh, mut retry) = (true, true);
        for _ in 0..CLAIMS_MAX {
            let settings = &known.settings;
            let (lane_fresh, lane_retry) = match request.lane {
                LaneChoice::Only(lane) => (lane == Lane::Fresh, lane == Lane::Retry),
                LaneChoice::Queue => (true, settings.retry_lane == RetryLane::Shared),
            };
            let limit = request.limit.get() - leased.messages.len();
            let ask = Ask { limit, fresh: fresh && lane_fresh, retry: retry && lane_retry, sweep_first };
            let was_paused = known.queue.pauses.holds_queue(self.link.now_at_least(now));
            let claimed = self.claim(&mut session, &known, now, request, consumers, &ask).await?;
            self.link.saw(claimed.status.now);
            leased.at = claimed.status.now;
            match claimed.status.stamp {
                Some(stamp) if stamp == known.stamp => {}
                // It was changed, or made anew, since we looked.
                _ => {
                    let now_known = self.look(&session, &request.queue).await?;
                    known = now_known.ok_or_else(|| QueueNotFound(request.queue.clone()))?;
                    continue;
                }
            }
            // By the database's clock the pause has ended, which we did not know when we asked.
            if was_paused && !known.queue.pauses.holds_queue(claimed.status.now) {
                continue;
            }
            if sweep_first && claimed.status.due {
                drop(session);
                let (swept, more) = self.sweep_before_lease(now, request).await?;
                leased.swept = swept;
                leased.more |= more;
                session = self.link.session().await?;
                sweep_first = false;
                continue;
            }
            sweep_first = false;
            // Others may be about to end what is overdue: what they make ready is more to have.
            leased.more |= claimed.status.due;
            let taken = self.served(&known, &ask, &claimed);
            let Claimed { status, behind, messages, line } = claimed;
            if let Some(line) = line {
                // Where the next one begins is known; it need not wait for the disk, too.
                drop(line);
                session.commit_and_stay().await?;
            }
            leased.messages.extend(messages.into_iter().map(|picked| picked.kept.message));
            if leased.messages.len() >= request.limit.get() {
                // Full, so there may be more; unless all that is left are retries, and no more of them may be out.
                leased.more |= status.has_fresh || items(taken.retry) < i64::from(status.retries_left);
                return Ok(());
            }
            if behind.leaves_out() {
                // It may be among what was left out.
                self.forget_behind(&request.queue);
                continue;
            }
            if status.missed {
                leased.more = true;
                return Ok(());
            }
            let (fresh_ended, retry_ended) =
                (status.fresh.ended(taken.fresh), status.retry.ended(taken.retry));
            if status.contested && fresh_ended != retry_ended {
                // One lane ran dry: the other one serves the rest.
                (fresh, retry) = (fresh && !fresh_ended, retry && !retry_ended);
            } else if !(status.fresh.more || status.retry.more) {
                return Ok(());
            }
        }
        leased.more = true;
        Ok(())
    }

    /// One statement.
    async fn claim(
        &self,
        session: &mut Session,
        known: &Known,
        now: Now,
        request: &LeaseRequest,
        consumers: &[&str],
        ask: &Ask,
    ) -> Result<Claimed, Fault> {
        let line = self.line(known.id).await;
        let turns = self.turns().entry(known.id).or_default().clone();
        let settings = &known.settings;
        // Counted and handed out by one at a time, or two would both see room for the last one.
        let held = match settings.max_retries_in_flight {
            Some(_) => {
                let (held, _) = self.link.begin(now).await?;
                self.lock(&held, Lock::Retries, known.id).await?;
                Some(held)
            }
            None => None,
        };
        let (at, floor) = self.link.time(now);
        let limit = i32::try_from(ask.limit).unwrap_or(i32::MAX);
        let mut credit = turns.credit;
        let both =
            (0..ask.limit).filter(|_| credit.pick(settings.retry_share, true, true) == Some(Lane::Retry));
        let retries = i32::try_from(both.count()).unwrap_or(i32::MAX);
        let ((fresh_key, fresh_itself, fresh_left), (retry_key, retry_itself, retry_left)) =
            (turns.fresh.start(), turns.retry.start());
        let served = (request.limit.get() - ask.limit).min(consumers.len() - 1);
        let consumers = &consumers[served..];
        let (fresh_circle, retry_circle) =
            (turns.fresh.circle.unwrap_or(i64::MAX), turns.retry.circle.unwrap_or(i64::MAX));
        let lease_time = request.time.map(span);
        let (timeout, longest) = (span(settings.lease_timeout), span(settings.max_lease));
        let attempts = settings.retry.max_attempts.map(|max| count(max.get()));
        let deliveries = settings.max_deliveries.map(|max| count(max.get()));
        let in_flight = settings.max_retries_in_flight.map(|max| count(max.get()));
        let epoch = signed(u64::from(self.epoch()) << 48);
        let bytes = items(BATCH_BYTES_MAX);
        let (kinds, sources) = wanted(request);
        // A paused queue hands nothing out, and still ends what is overdue.
        let paused = known.queue.pauses.holds_queue(self.link.now_at_least(now));
        let (serve_fresh, serve_retry) = (ask.fresh && !paused, ask.retry && !paused);
        let keyed = known.has_key_settings();
        let behind = &turns.behind;
        let ([fresh, retry], overdue) =
            ([Lane::Fresh, Lane::Retry].map(|lane| behind.mark(lane)), behind.overdue());
        let params: [crate::session::Param<'_>; 40] = [
            &known.id,
            &at,
            &floor,
            &known.stamp,
            &ask.sweep_first,
            &limit,
            &retries,
            &serve_fresh,
            &serve_retry,
            &fresh_key,
            &fresh_itself,
            &fresh_left,
            &fresh_circle,
            &retry_key,
            &retry_itself,
            &retry_left,
            &retry_circle,
            &consumers,
            &lease_time,
            &timeout,
            &longest,
            &attempts,
            &deliveries,
            &in_flight,
            &epoch,
            &bytes,
            &kinds,
            &sources,
            &turns.fresh.credit,
            &turns.retry.credit,
            &keyed,
            &fresh.key,
            &fresh.rank,
            &fresh.visible_at,
            &fresh.place,
            &retry.key,
            &retry.rank,
            &retry.visible_at,
            &retry.place,
            &overdue,
        ];
        let sql = &self.link.sql.claim;
        let rows = match (held, &line) {
            (Some(held), _) => {
                let rows = held.rows(sql, &params).await?;
                held.commit().await?;
                rows
            }
            (None, Some(_)) => session.begin_with(sql, &params).await?,
            (None, None) => session.commit_rows(sql, &params).await?,
        };
        let is_open = in_flight.is_none() && line.is_some();
        let claimed = self.claimed(session, known, turns.behind, &rows).await;
        let mut claimed = claimed.map_err(|fault| if is_open { fault } else { fault.after_commit() })?;
        if is_open && claimed.messages.is_empty() {
            session.end_and_stay().await;
        } else if is_open {
            claimed.line = line;
        }
        Ok(claimed)
    }

    /// Waits for the claim before this one, where that matters.
    async fn line(&self, queue: i32) -> Option<OwnedMutexGuard<()>> {
        let line = {
            let mut all = self.turns();
            let turns = all.entry(queue).or_default();
            turns.many_keys.then(|| Arc::clone(&turns.line))
        };
        Some(line?.lock_owned().await)
    }

    /// What a claim has answered.
    async fn claimed(
        &self,
        session: &Session,
        known: &Known,
        behind: Behind,
        rows: &[Row],
    ) -> Result<Claimed, Fault> {
        let first = rows.first().ok_or_else(|| crate::error::damaged("a claim", "there is no answer"))?;
        let status = Status::read(first)?;
        let mut messages = Vec::with_capacity(rows.len());
        for row in rows {
            let mut from = Columns::from(row, STATUS_COLUMNS - 4);
            let Some(new_circle) = from.take::<Option<bool>>()? else { continue };
            let (weight, credit, retry): (i32, i32, bool) = (from.take()?, from.take()?, from.take()?);
            let class: i32 = Columns::from(row, STATUS_COLUMNS + 1).take()?;
            if known.classes().pair(class).is_none() {
                known.read_classes(session).await?;
            }
            let mut kept = row::read(row, STATUS_COLUMNS, &known.queue.name, |id| known.class(id))?;
            row::read_content(row, STATUS_COLUMNS + MESSAGE_COLUMNS + STORY_COLUMNS, &mut kept)?;
            let lane = if retry { Lane::Retry } else { Lane::Fresh };
            messages.push(Picked { kept, lane, weight, credit, new_circle });
        }
        Ok(Claimed { status, behind, messages, line: None })
    }

    /// Remembers whose turn it was.
    fn served(&self, known: &Known, ask: &Ask, claimed: &Claimed) -> Taken {
        let mut taken = Taken { fresh: 0, retry: 0 };
        let mut all = self.turns();
        let turns = all.entry(known.id).or_default();
        let status = &claimed.status;
        if let [first, .., last] = &claimed.messages[..] {
            let [first, last] = [first, last].map(|picked| &picked.kept.message.spec.fairness_key);
            turns.many_keys = first != last && !claimed.messages.iter().any(|picked| picked.new_circle);
        }
        if !status.due {
            turns.behind.nothing_overdue(&claimed.behind, status.now);
        }
        for Picked { kept, lane, weight, credit, new_circle } in &claimed.messages {
            let walk = match lane {
                Lane::Fresh => &mut turns.fresh,
                Lane::Retry => &mut turns.retry,
            };
            turns.behind.handed_out(&claimed.behind, *lane, kept);
            walk.served(kept.message.spec.fairness_key.as_str(), *weight);
            walk.credit = if *new_circle { 0 } else { *credit };
            if *new_circle {
                walk.circle = Some(status.circle);
            }
            walk.circle.get_or_insert(status.circle);
            match lane {
                Lane::Fresh => taken.fresh += 1,
                Lane::Retry => taken.retry += 1,
            }
        }
        for (walk, lane, taken) in
            [(&mut turns.fresh, &status.fresh, taken.fresh), (&mut turns.retry, &status.retry, taken.retry)]
        {
            // A walk over keys that had nothing to give goes on behind them, and a whole circle of them is one.
            if taken == 0
                && let Some(end) = &lane.end
            {
                (walk.key, walk.left) = (Some(end.clone()), 0);
                if !lane.cut {
                    (walk.circle, walk.credit) = (Some(status.circle), 0);
                }
            }
        }
        if status.contested {
            let settings = &known.settings;
            let (mut fresh, mut retry) = (taken.fresh, taken.retry);
            for _ in 0..(taken.fresh + taken.retry).min(ask.limit) {
                let full = |lane: &LaneStatus, taken: usize| {
                    lane.asked.is_some_and(|asked| items(taken) >= i64::from(asked))
                };
                let can_fresh = fresh > 0 || full(&status.fresh, taken.fresh);
                let can_retry = retry > 0 || full(&status.retry, taken.retry);
                match turns.credit.pick(settings.retry_share, can_fresh, can_retry) {
                    Some(Lane::Fresh) => fresh = fresh.saturating_sub(1),
                    Some(Lane::Retry) => retry = retry.saturating_sub(1),
                    None => break,
                }
            }
        }
        taken
    }

    /// Ends what is overdue, gives up what is too old, and makes ready what is due.
    async fn sweep_before_lease(&self, now: Now, request: &LeaseRequest) -> Result<(Swept, bool), Fault> {
        let mut work = Work::begin(self, now).await?;
        let known = work.queue(&request.queue).await?;
        let limit = Limit::LEASE_SETTLES.get();
        let expired = work.expire(&known, limit, None, request.seed).await?;
        work.flush().await?;
        let lapsed = work.lapse_old(&known, limit).await?;
        work.flush().await?;
        let at = millis(work.now);
        let promoted = work.session.rows(&self.link.sql.promote, &[&known.id, &at, &PROMOTED_MAX]).await?;
        let since: Option<i64> =
            promoted.first().map(|row| Columns::from(row, 1).take()).transpose()?.flatten();
        let promoted: i64 = one(&promoted)?;
        if let Some(since) = since {
            work.came_back(known.id, since);
        }
        work.commit().await?;
        let more = expired.len() >= limit || promoted >= PROMOTED_MAX;
        Ok((Swept { expired, lapsed }, more))
    }

    /// Leases one message to see whether an outage is over.
    async fn lease_probe(
        &self,
        leased: &mut Leased,
        now: Now,
        request: &LeaseRequest,
        avoid: Option<MessageId>,
    ) -> Result<(), Fault> {
        (leased.swept, _) = self.sweep_before_lease(now, request).await?;
        let mut work = Work::begin(self, now).await?;
        let known = work.queue(&request.queue).await?;
        (leased.at, leased.more) = (work.now, true);
        if known.queue.pauses.holds_queue(work.now) {
            leased.more = false;
            return Ok(());
        }
        let settings = &known.settings;
        let at = millis(work.now);
        let avoid = avoid.map(uuid);
        let (kinds, sources) = wanted(request);
        let attempts = settings.retry.max_attempts.map(|max| count(max.get()));
        let deliveries = settings.max_deliveries.map(|max| count(max.get()));
        let params: [crate::session::Param<'_>; 7] =
            [&known.id, &at, &avoid, &kinds, &sources, &attempts, &deliveries];
        let sql = &self.link.sql;
        let Some(found) = work
            .session
            .rows(&sql.probe, &params)
            .await?
            .first()
            .map(|row| Columns::from(row, 0).take())
            .transpose()?
        else {
            leased.more = false;
            return Ok(());
        };
        let id: uuid::Uuid = found;
        let mut messages = Vec::new();
        let rows = work.session.rows(&sql.probe_lock, &[&known.id, &id]).await?;
        for mut kept in work.read(&known, &rows).await? {
            row::read_content(&rows[0], MESSAGE_COLUMNS + STORY_COLUMNS, &mut kept)?;
            let token: i64 = one(&work.session.rows(&sql.token, &[]).await?)?;
            let lease =
                LeaseId::new(self.epoch(), token.unsigned_abs()).ok_or(StoreError::Exhausted("lease ids"))?;
            let was = kept.message.progress.phase.clone();
            let lasts = lifecycle::lease_time(settings, kept.message.spec.lease_timeout, request.time);
            lifecycle::lease(&mut kept.message.progress, lease, request.consumer.clone(), lasts, work.now);
            work.tally(known.id).verb(Verb::Lease, 1);
            messages.push(kept.message.clone());
            work.change(kept, &was);
        }
        work.flush().await?;
        leased.more = !work.session.rows(&sql.probe, &params).await?.is_empty();
        work.commit().await?;
        leased.messages = messages;
        Ok(())
    }
}

type Wanted<'a> = Option<Vec<&'a str>>;

/// The types and the sources that a call takes; `None` for all.
fn wanted(request: &LeaseRequest) -> (Wanted<'_>, Wanted<'_>) {
    let kinds: Vec<&str> = request.filter.kinds.iter().map(MessageType::as_str).collect();
    let sources: Vec<&str> = request.filter.sources.iter().map(Source::as_str).collect();
    (Some(kinds).filter(|kinds| !kinds.is_empty()), Some(sources).filter(|sources| !sources.is_empty()))
}

/// How many messages came from each lane.
struct Taken {
    fresh: usize,
    retry: usize,
}
