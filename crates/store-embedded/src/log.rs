//! Append-only logs with retention, in segments of their own: a log is long and read rarely, and goes from the front.

use std::collections::VecDeque;

use bytes::Bytes;
use redrive_core::time::Timestamp;
use redrive_store::{Append, LogName, LogRange, LogRecord};

use crate::core::Core;
use crate::fault::Fault;
use crate::format::record::{self, Located, Record};
use crate::format::{Malformed, Place};
use crate::journal::Journal;

/// Where a record of a log is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogPlace {
    sequence: u64,
    at: Timestamp,
    place: Place,
    length: u32,
}

/// A log: its records that are left, and the number of the last one ever appended.
#[derive(Debug, Default)]
pub(crate) struct Log {
    records: VecDeque<LogPlace>,
    pub(crate) last: u64,
    /// Records from before this time are forgotten.
    horizon: Timestamp,
    /// Its base, once it was trimmed.
    pub(crate) at: (Place, u32),
}

impl Core {
    pub(crate) fn log_append(&mut self, now: Timestamp, name: &LogName, records: Append) -> Vec<u64> {
        let mut numbers = Vec::new();
        for value in records.into_values() {
            let number = self.logs.get(name).map_or(0, |log| log.last) + 1;
            let put = record::put_log_record(&mut self.log_journal.frame, name, number, now, &value);
            let placed = self.log_journal.placed(put);
            self.apply_log_record(name.clone(), number, now, placed);
            numbers.push(number);
        }
        numbers
    }

    pub(crate) fn apply_log_record(
        &mut self,
        name: LogName,
        number: u64,
        at: Timestamp,
        placed: (Place, u32),
    ) {
        let log = self.logs.entry(name).or_default();
        log.last = log.last.max(number);
        if at >= log.horizon {
            self.log_journal.keep(placed.0, placed.1);
            log.records.push_back(LogPlace { sequence: number, at, place: placed.0, length: placed.1 });
        }
    }

    /// Where the records are that were asked for.
    pub(crate) fn log_places(&self, log: &LogName, range: LogRange, limit: usize) -> Vec<LogPlace> {
        let Some(log) = self.logs.get(log) else {
            return Vec::new();
        };
        match range {
            LogRange::After(number) => {
                let start = log.records.partition_point(|record| record.sequence <= number);
                log.records.range(start..).take(limit).copied().collect()
            }
            LogRange::Before(number) => {
                let end = log.records.partition_point(|record| record.sequence < number);
                log.records.range(..end).rev().take(limit).copied().collect()
            }
        }
    }

    pub(crate) fn log_trim(&mut self, name: &LogName, horizon: Timestamp) -> u64 {
        let Some(log) = self.logs.get(name).filter(|log| log.horizon < horizon) else {
            return 0;
        };
        let gone = log.records.partition_point(|record| record.at < horizon);
        if gone == 0 {
            return 0;
        }
        let last = log.last;
        self.apply_log(name.clone(), last, horizon);
        self.put_log(name);
        gone as u64
    }

    /// A log was trimmed.
    pub(crate) fn apply_log(&mut self, name: LogName, last: u64, horizon: Timestamp) {
        let log = self.logs.entry(name).or_default();
        log.last = log.last.max(last);
        log.horizon = log.horizon.max(horizon);
        while let Some(first) = log.records.front().copied().filter(|record| record.at < horizon) {
            log.records.pop_front();
            self.log_journal.let_go(first.place, first.length);
        }
    }

    /// Writes the base of a log.
    pub(crate) fn put_log(&mut self, name: &LogName) {
        let Some(log) = self.logs.get(name) else { return };
        let put = record::put_log(&mut self.journal.frame, name, log.last, log.horizon);
        let placed = self.journal.placed(put);
        self.place_log(name, placed);
    }

    pub(crate) fn place_log(&mut self, name: &LogName, placed: (Place, u32)) {
        let log = self.logs.entry(name.clone()).or_default();
        if log.at.1 > 0 {
            self.journal.let_go(log.at.0, log.at.1);
        }
        self.journal.keep(placed.0, placed.1);
        log.at = placed;
    }

    /// Gives up segments of which every record was trimmed, now that this is on the disk.
    pub(crate) fn drop_log_segments(&mut self) -> Result<(), Fault> {
        while self.log_journal.segments.len() > 1 && self.log_journal.segments[0].live == 0 {
            self.log_journal.drop_oldest(self.backups == 0)?;
        }
        Ok(())
    }
}

impl Journal {
    /// Reads records of a log.
    pub(crate) fn log_records(&self, places: &[LogPlace]) -> Result<Vec<LogRecord>, Fault> {
        places.iter().map(|place| self.log_record(place)).collect()
    }

    fn log_record(&self, place: &LogPlace) -> Result<LogRecord, Fault> {
        let bytes = self.read(place.place, place.length)?;
        let broken = |problem: Malformed| Fault::new("reading a log", format!("{}: {problem}", place.place));
        match Located::whole(&bytes).and_then(|record| record.read(true)).map_err(broken)? {
            Record::Logged(_, sequence, at, value) => {
                Ok(LogRecord { sequence, at, value: Bytes::copy_from_slice(value) })
            }
            _ => Err(broken(Malformed("this is not a record of a log"))),
        }
    }
}
