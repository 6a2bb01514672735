//! Numbers about a queue, and when something happens next.

use redrive_core::message::{ErrorText, FairnessKey, MessageType, Source, State};
use redrive_core::policy::Fingerprint;
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;
use redrive_store::{
    CountBy, CountRow, Counts, FailureGroup, Limit, NextDue, Now, QueueNotFound, QueueStats, StateCounts,
    json,
};

use crate::error::{Fault, damaged};
use crate::queue::Known;
use crate::row::{Columns, millis, reason, time, unsigned};
use crate::session::Session;
use crate::store::{Shared, items};
use crate::tally::Tally;

fn number(count: i64) -> u64 {
    u64::try_from(count).unwrap_or_default()
}

impl Shared {
    /// A transaction that sees one moment, and the queue in it.
    async fn at_one_moment(&self, now: Now, queue: &QueueName) -> Result<(Session, Timestamp, Known), Fault> {
        let (session, now) = self.link.begin(now).await?;
        let rows = session.rows(&self.link.sql.queue_get, &[&queue.as_str()]).await?;
        let row = rows.first().ok_or_else(|| QueueNotFound(queue.clone()))?;
        let known = Known::read(row, &self.options.defaults)?;
        Ok((session, now, known))
    }

    pub(crate) async fn stats(&self, now: Now, queue: &QueueName) -> Result<QueueStats, Fault> {
        let (session, now, known) = self.at_one_moment(now, queue).await?;
        let sql = &self.link.sql;
        let at = millis(now);
        let params: [crate::session::Param<'_>; 2] = [&known.id, &at];
        let rows = session.rows(&sql.stats, &params).await?;
        let row = rows.first().ok_or_else(|| damaged("an answer", "there is no row"))?;
        let mut from = Columns::from(row, 0);
        let (delayed, overdue, retries, lapsed): (i64, i64, i64, i64) =
            (from.take()?, from.take()?, from.take()?, from.take()?);
        let oldest: Option<i64> = from.take()?;
        let columns: Vec<i64> = from.take()?;
        let tally = Tally::from_columns(&columns);
        session.end().await;
        let mut states = StateCounts::default();
        states.add(State::Delayed, number(delayed));
        states.add(State::Ready, tally.waiting().saturating_sub(number(delayed)));
        states.add(State::Leased, tally.leased());
        states.add(State::Dead, tally.dead());
        states.add(State::Done, tally.done());
        Ok(QueueStats {
            at: now,
            queue: known.queue,
            settings: known.settings,
            states,
            overdue: number(overdue),
            retries_in_flight: number(retries),
            oldest_ready: oldest.map(time),
            dedup_keys: tally.held().saturating_sub(number(lapsed)),
            totals: tally.totals(),
        })
    }

    pub(crate) async fn count(
        &self,
        now: Now,
        queue: &QueueName,
        by: CountBy,
        limit: Limit,
    ) -> Result<Counts, Fault> {
        let (session, now, known) = self.at_one_moment(now, queue).await?;
        let (at, rows) = (millis(now), items(limit.get() + 1));
        let params: [crate::session::Param<'_>; 6] = [&known.id, &at, &by.kind, &by.source, &by.key, &rows];
        let found = session.rows(&self.link.sql.count, &params).await?;
        session.end().await;
        let mut rows = Vec::with_capacity(found.len());
        for row in &found {
            let mut from = Columns::from(row, 0);
            let state = match from.take::<i16>()? {
                0 => State::Delayed,
                1 => State::Ready,
                2 => State::Leased,
                3 => State::Dead,
                _ => State::Done,
            };
            let said = |what, error| damaged(what, error);
            let kind: Option<&str> = from.take()?;
            let source: Option<&str> = from.take()?;
            let key: Option<&str> = from.take()?;
            rows.push(CountRow {
                state,
                kind: kind.map(MessageType::new).transpose().map_err(|error| said("type", error))?,
                source: source.map(Source::new).transpose().map_err(|error| said("source", error))?,
                key: key.map(FairnessKey::new).transpose().map_err(|error| said("fairness_key", error))?,
                messages: number(from.take()?),
            });
        }
        let truncated = rows.len() > limit.get();
        rows.truncate(limit.get());
        Ok(Counts { at: now, rows, truncated })
    }

    pub(crate) async fn failure_groups(
        &self,
        queue: &QueueName,
        limit: Limit,
    ) -> Result<Vec<FailureGroup>, Fault> {
        let session = self.link.session().await?;
        let known = self.look(&session, queue).await?.ok_or_else(|| QueueNotFound(queue.clone()))?;
        let limit = items(limit.get());
        let rows = session.rows(&self.link.sql.groups, &[&known.id, &limit]).await?;
        let mut groups = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut from = Columns::from(row, 0);
            let (print, messages, first, last): (i64, i64, i64, i64) =
                (from.take()?, from.take()?, from.take()?, from.take()?);
            let error: Option<&str> = from.take()?;
            let why = reason(from.take()?)?;
            groups.push(FailureGroup {
                fingerprint: Fingerprint::from_bits(unsigned(print)),
                sample: ErrorText::new(error.unwrap_or_else(|| why.name())),
                messages: number(messages),
                first: time(first),
                last: time(last),
            });
        }
        Ok(groups)
    }

    pub(crate) async fn next_due(&self, now: Now, queue: Option<&QueueName>) -> Result<NextDue, Fault> {
        let Some(queue) = queue else { return self.next_due_any(now).await };
        let (session, now, known) = self.at_one_moment(now, queue).await?;
        let at = millis(now);
        let rows = session.rows(&self.link.sql.next_due, &[&known.id, &at]).await?;
        session.end().await;
        let row = rows.first().ok_or_else(|| damaged("an answer", "there is no row"))?;
        Ok(NextDue { at: now, resume: known.queue.pauses.next_end(now), ..due(&mut Columns::from(row, 0))? })
    }

    async fn next_due_any(&self, now: Now) -> Result<NextDue, Fault> {
        let (session, now) = self.link.begin(now).await?;
        let rows = session.rows(&self.link.sql.next_due_any, &[&millis(now)]).await?;
        session.end().await;
        let mut next = NextDue { at: now, ..NextDue::default() };
        for row in &rows {
            let mut from = Columns::from(row, 1);
            let pauses = json::read_pauses(&from.take()?).map_err(|problem| damaged("pauses", problem))?;
            next = next.min(NextDue { resume: pauses.next_end(now), ..due(&mut from)? });
        }
        Ok(next)
    }
}

fn due(from: &mut Columns<'_>) -> Result<NextDue, Fault> {
    let mut at = || -> Result<Option<Timestamp>, Fault> { Ok(from.take::<Option<i64>>()?.map(time)) };
    Ok(NextDue { ready: at()?, overdue: at()?, lapse: at()?, ..NextDue::default() })
}
