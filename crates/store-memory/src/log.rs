//! Append-only logs with retention.

use redrive_core::time::Timestamp;
use redrive_store::{Append, LogName, LogRange, LogRecord};

use crate::state::State;

/// A log: its records, and the number of the last one ever appended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    records: Vec<LogRecord>,
    last: u64,
}

impl State {
    pub(crate) fn log_append(&mut self, now: Timestamp, log: &LogName, records: Append) -> Vec<u64> {
        let log = self.logs.entry(log.clone()).or_default();
        let append = |value| {
            log.last += 1;
            log.records.push(LogRecord { sequence: log.last, at: now, value });
            log.last
        };
        records.into_values().into_iter().map(append).collect()
    }

    pub(crate) fn log_read(&self, log: &LogName, range: LogRange, limit: usize) -> Vec<LogRecord> {
        let records = self.logs.get(log).map_or(&[][..], |log| &log.records).iter();
        match range {
            LogRange::After(number) => {
                records.filter(|record| record.sequence > number).take(limit).cloned().collect()
            }
            LogRange::Before(number) => {
                records.rev().filter(|record| record.sequence < number).take(limit).cloned().collect()
            }
        }
    }

    pub(crate) fn log_trim(&mut self, log: &LogName, horizon: Timestamp) -> u64 {
        let Some(log) = self.logs.get_mut(log) else {
            return 0;
        };
        let before = log.records.len();
        log.records.retain(|record| record.at >= horizon);
        (before - log.records.len()) as u64
    }
}
