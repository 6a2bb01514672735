//! The registry and the logs that the layers above keep.

use std::collections::HashMap;

use bytes::Bytes;
use redrive_core::time::Timestamp;
use redrive_store::{
    Append, Entry, EntryKey, EntryKind, EntryName, Limit, LogName, LogRange, LogRecord, Now, WriteOutcome,
    Writes,
};
use tokio_postgres::Row;

use crate::error::{Fault, damaged};
use crate::row::{Columns, millis, time};
use crate::session::one;
use crate::store::{Shared, items};

fn entry(kind: EntryKind, row: &Row) -> Result<Entry, Fault> {
    let mut from = Columns::from(row, 0);
    let name = EntryName::new(from.take::<String>()?).map_err(|error| damaged("an entry", error))?;
    let version: i64 = from.take()?;
    let value: &[u8] = from.take()?;
    Ok(Entry {
        key: EntryKey { kind, name },
        version: version.unsigned_abs(),
        value: Bytes::copy_from_slice(value),
    })
}

impl Shared {
    pub(crate) async fn registry_get(&self, key: &EntryKey) -> Result<Option<Entry>, Fault> {
        let session = self.link.session().await?;
        let rows = session.rows(&self.link.sql.entry_get, &[&key.kind.name(), &key.name.as_str()]).await?;
        rows.first().map(|row| entry(key.kind, row)).transpose()
    }

    pub(crate) async fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: Limit,
    ) -> Result<Vec<Entry>, Fault> {
        let session = self.link.session().await?;
        let (after, limit) = (after.map(EntryName::as_str), items(limit.get()));
        let rows = session.rows(&self.link.sql.entry_list, &[&kind.name(), &after, &limit]).await?;
        rows.iter().map(|row| entry(kind, row)).collect()
    }

    pub(crate) async fn registry_write(&self, writes: &Writes) -> Result<WriteOutcome, Fault> {
        let sql = &self.link.sql;
        let (session, _) = self.link.begin(Now::Store).await?;
        let kinds: Vec<&str> = writes.items().iter().map(|write| write.key.kind.name()).collect();
        let names: Vec<&str> = writes.items().iter().map(|write| write.key.name.as_str()).collect();
        // An entry that is not there cannot be held. Whoever else makes it at the same time makes this one fail as not
        // unique, and looks again.
        let mut versions: HashMap<(String, String), u64> = HashMap::new();
        for row in session.rows(&sql.entry_lock, &[&kinds, &names]).await? {
            let mut from = Columns::from(&row, 0);
            let key = (from.take()?, from.take()?);
            versions.insert(key, from.take::<i64>()?.unsigned_abs());
        }
        for (index, write) in writes.items().iter().enumerate() {
            let key = (write.key.kind.name().to_owned(), write.key.name.as_str().to_owned());
            let actual = versions.get(&key).copied();
            if !write.expect.holds(actual) {
                session.undo().await?;
                return Ok(WriteOutcome::Conflict { index, actual });
            }
        }
        let mut written = Vec::with_capacity(writes.items().len());
        for write in writes.items() {
            let (kind, name) = (write.key.kind.name(), write.key.name.as_str());
            written.push(match &write.value {
                None => {
                    session.rows(&sql.entry_drop, &[&kind, &name]).await?;
                    None
                }
                Some(value) => {
                    let there = versions.contains_key(&(kind.to_owned(), name.to_owned()));
                    let statement = if there { &sql.entry_put } else { &sql.entry_insert };
                    let version: i64 = one(&session.rows(statement, &[&kind, &name, &&value[..]]).await?)?;
                    Some(version.unsigned_abs())
                }
            });
        }
        session.commit().await?;
        Ok(WriteOutcome::Committed(written))
    }

    pub(crate) async fn log_append(
        &self,
        now: Now,
        log: &LogName,
        records: &Append,
    ) -> Result<Vec<u64>, Fault> {
        let (session, now) = self.link.begin(now).await?;
        let values: Vec<&[u8]> = records.values().iter().map(|value| &value[..]).collect();
        let rows = session.rows(&self.link.sql.log_append, &[&log.as_str(), &millis(now), &values]).await?;
        session.commit().await?;
        let mut numbers = Vec::with_capacity(rows.len());
        for row in &rows {
            numbers.push(Columns::from(row, 0).take::<i64>()?.unsigned_abs());
        }
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub(crate) async fn log_read(
        &self,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, Fault> {
        let session = self.link.session().await?;
        let (statement, number) = match range {
            LogRange::After(number) => (&self.link.sql.log_read, number),
            LogRange::Before(number) => (&self.link.sql.log_read_back, number),
        };
        let (number, limit) = (i64::try_from(number).unwrap_or(i64::MAX), items(limit.get()));
        let rows = session.rows(statement, &[&log.as_str(), &number, &limit]).await?;
        let mut records = Vec::with_capacity(rows.len());
        for row in &rows {
            let mut from = Columns::from(row, 0);
            let sequence = from.take::<i64>()?.unsigned_abs();
            let at = time(from.take()?);
            records.push(LogRecord { sequence, at, value: Bytes::copy_from_slice(from.take()?) });
        }
        Ok(records)
    }

    pub(crate) async fn log_trim(&self, log: &LogName, horizon: Timestamp) -> Result<u64, Fault> {
        let (session, _) = self.link.begin(Now::Store).await?;
        let gone = session.rows(&self.link.sql.log_trim, &[&log.as_str(), &millis(horizon)]).await?;
        session.commit().await?;
        Ok(gone.len() as u64)
    }
}
