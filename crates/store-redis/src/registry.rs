//! The registry and the logs: what the layers above keep.

use bytes::Bytes;
use redis::Value;
use redrive_core::time::Timestamp;
use redrive_store::{
    Append, Entry, EntryKey, EntryKind, EntryName, Expect, Limit, LogName, LogRange, LogRecord, Now,
    StoreError, WriteOutcome, Writes,
};

use crate::error::{Fault, damaged};
use crate::link::Args;
use crate::reply::{self, Reply};
use crate::store::Shared;

/// An entry as it is kept: its version, a space, its value.
fn entry(key: EntryKey, kept: Vec<u8>) -> Result<Entry, StoreError> {
    let kept = Bytes::from(kept);
    let read = || {
        let end = kept.iter().position(|byte| *byte == b' ')?;
        let version = std::str::from_utf8(kept.get(..end)?).ok()?.parse().ok()?;
        Some((version, kept.slice(end + 1..)))
    };
    let (version, value) = read().ok_or_else(|| damaged("an entry", key.name.as_str()))?;
    Ok(Entry { key, version, value })
}

impl Shared {
    pub(crate) async fn registry_get(&self, key: &EntryKey) -> Result<Option<Entry>, Fault> {
        let entries = self.link.keys.entries(key.kind);
        let command = redis::cmd("HGET").arg(&entries).arg(key.name.as_str()).clone();
        match self.link.send(&entries, &command, false).await? {
            Value::BulkString(kept) => Ok(Some(entry(key.clone(), kept)?)),
            _ => Ok(None),
        }
    }

    pub(crate) async fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: Limit,
    ) -> Result<Vec<Entry>, Fault> {
        let (entries, order) = (self.link.keys.entries(kind), self.link.keys.order(kind));
        let from = after.map_or_else(|| "-".to_owned(), |after| format!("({}", after.as_str()));
        let mut command = redis::cmd("ZRANGEBYLEX");
        command.arg(&order).arg(from).arg("+").arg("LIMIT").arg(0).arg(limit.get());
        let names = Reply::of(self.link.send(&order, &command, false).await?)?.texts()?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let values = self.link.send(&entries, redis::cmd("HMGET").arg(&entries).arg(&names), false).await?;
        let mut values = Reply::of(values)?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let name = EntryName::new(name).map_err(|error| damaged("the name of an entry", error))?;
            if let Value::BulkString(kept) = values.next() {
                found.push(entry(EntryKey { kind, name }, kept)?);
            }
        }
        Ok(found)
    }

    pub(crate) async fn registry_write(&self, writes: &Writes) -> Result<WriteOutcome, Fault> {
        let mut keys = vec![self.link.keys.store()];
        let mut args = Args::default();
        for write in writes.items() {
            let expected = match write.expect {
                Expect::Anything => "*".to_owned(),
                Expect::Absent => "-".to_owned(),
                Expect::Version(version) => version.to_string(),
            };
            keys.extend([self.link.keys.entries(write.key.kind), self.link.keys.order(write.key.kind)]);
            args.push(write.key.name.as_str())
                .push(expected)
                .flag(write.value.is_some())
                .push(write.value.as_ref().map_or_else(Vec::new, |value| value.to_vec()));
        }
        let mut answer = Reply::of(self.link.run(&self.link.scripts.registry_write, &keys, &args).await?)?;
        if answer.text()? == "conflict" {
            let index = usize::try_from(answer.number()?).unwrap_or_default();
            let actual = Some(answer.text()?).filter(|version| !version.is_empty());
            let actual = actual.map(|version| version.parse()).transpose();
            let actual = actual.map_err(|error| damaged("a version", error))?;
            return Ok(WriteOutcome::Conflict { index, actual });
        }
        let mut versions = answer.reply()?;
        let version = |version: u64| Some(version).filter(|version| *version > 0);
        let versions =
            (0..versions.len()).map(|_| versions.number().map(version)).collect::<Result<_, _>>()?;
        Ok(WriteOutcome::Committed(versions))
    }

    pub(crate) async fn log_append(
        &self,
        now: Now,
        log: &LogName,
        records: &Append,
    ) -> Result<Vec<u64>, Fault> {
        let mut args = Args::default();
        args.push(self.time_arg(now));
        for value in records.values() {
            args.push(value.to_vec());
        }
        let keys = self.link.keys.log(log);
        let mut numbers = Reply::of(self.link.run(&self.link.scripts.log_append, &keys, &args).await?)?;
        Ok((0..numbers.len()).map(|_| numbers.number()).collect::<Result<_, _>>()?)
    }

    pub(crate) async fn log_read(
        &self,
        log: &LogName,
        range: LogRange,
        limit: Limit,
    ) -> Result<Vec<LogRecord>, Fault> {
        let [records, _] = self.link.keys.log(log);
        let command = match range {
            LogRange::After(u64::MAX) | LogRange::Before(0) => return Ok(Vec::new()),
            LogRange::After(number) => {
                redis::cmd("XRANGE").arg(&records).arg(format!("{}-0", number + 1)).arg("+").clone()
            }
            LogRange::Before(number) => {
                redis::cmd("XREVRANGE").arg(&records).arg(format!("{}-0", number - 1)).arg("-").clone()
            }
        };
        let command = command.clone().arg("COUNT").arg(limit.get()).clone();
        let mut rows = Reply::of(self.link.send(&records, &command, false).await?)?;
        let mut found = Vec::with_capacity(rows.len());
        for _ in 0..rows.len() {
            let mut row = rows.reply()?;
            let number = row.text()?;
            let sequence = number.split_once('-').and_then(|(number, _)| number.parse().ok());
            let sequence = sequence.ok_or_else(|| damaged("a record", &number))?;
            let mut pairs = row.reply()?;
            let (_, at, _) = (pairs.text()?, pairs.number()?, pairs.text()?);
            found.push(LogRecord { sequence, at: Timestamp::from_millis(at), value: pairs.bytes()? });
        }
        Ok(found)
    }

    pub(crate) async fn log_trim(&self, log: &LogName, horizon: Timestamp) -> Result<u64, Fault> {
        let [records, _] = self.link.keys.log(log);
        let mut args = Args::default();
        args.number(horizon.as_millis());
        Ok(reply::number(self.link.run(&self.link.scripts.log_trim, &[records], &args).await?)?)
    }
}
