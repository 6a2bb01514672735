//! What must be in the logs. They are kept apart from the queues, so a crash may keep what one call appended and lose
//! what another in the same moment did to a queue, or the other way round.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::executor::block_on;
use redrive_core::time::Timestamp;
use redrive_store::{Limit, LogName, LogRange, Store};

use crate::command::{Answer, Command, Outcome};
use crate::compare::same;
use crate::oracle::Checked;
use crate::workload::logs;

/// The records of every log, each with its time and, once it was told, its number.
#[derive(Debug, Clone, Default)]
pub(crate) struct Logs {
    records: BTreeMap<LogName, Vec<(Timestamp, Bytes, Option<u64>)>>,
    last: BTreeMap<LogName, u64>,
}

impl Logs {
    /// Follows an answer; `None` where the call has nothing to do with logs.
    pub(crate) fn follow(&mut self, now: Timestamp, command: &Command, told: &Outcome) -> Option<Checked> {
        match (command, told) {
            (Command::Append(log, _), Ok(Answer::Numbers(numbers))) => {
                self.apply(now, command);
                Some(self.number(log, numbers))
            }
            (Command::Trim(..), Ok(Answer::Count(gone))) => {
                let before = self.count();
                self.apply(now, command);
                Some(same("what was trimmed", gone, &(before - self.count())))
            }
            (Command::Append(..) | Command::Trim(..), other) => Some(Err(format!("a log answers {other:?}"))),
            _ => None,
        }
    }

    fn count(&self) -> u64 {
        self.records.values().map(|records| records.len() as u64).sum()
    }

    fn apply(&mut self, now: Timestamp, command: &Command) {
        match command {
            Command::Append(log, records) => {
                let records = records.clone().into_values().into_iter().map(|value| (now, value, None));
                self.records.entry(log.clone()).or_default().extend(records);
            }
            Command::Trim(log, horizon) => {
                if let Some(records) = self.records.get_mut(log) {
                    records.retain(|(at, ..)| at >= horizon);
                }
            }
            _ => {}
        }
    }

    /// Numbers the last records of a log as they were told; numbers only ever grow.
    fn number(&mut self, log: &LogName, numbers: &[u64]) -> Checked {
        let records = self.records.entry(log.clone()).or_default();
        let first = records.len().saturating_sub(numbers.len());
        let last = self.last.entry(log.clone()).or_default();
        for ((.., known), number) in records.iter_mut().skip(first).zip(numbers) {
            if *number <= *last {
                return Err(format!("record {number} was appended after record {last}"));
            }
            (*known, *last) = (Some(*number), *number);
        }
        Ok(())
    }

    /// Whether the logs are what they must be; learns numbers that nobody was told.
    pub(crate) fn check(&mut self, subject: &dyn Store) -> Checked {
        for log in logs() {
            let read = block_on(subject.log_read(&log, LogRange::After(0), Limit::MAX))
                .map_err(|error| error.to_string())?;
            let records = self.records.entry(log.clone()).or_default();
            let ours: Vec<(Timestamp, &Bytes)> =
                read.iter().map(|record| (record.at, &record.value)).collect();
            let theirs: Vec<(Timestamp, &Bytes)> =
                records.iter().map(|(at, value, _)| (*at, value)).collect();
            same("a log", &ours, &theirs)?;
            let last = self.last.entry(log).or_default();
            for (record, (.., known)) in read.iter().zip(records) {
                same("the number of a record", &record.sequence, known.get_or_insert(record.sequence))?;
                *last = record.sequence.max(*last);
            }
        }
        Ok(())
    }

    /// Finds out from what is there whether the calls of a frame happened whose outcome is unknown: those that append
    /// all or none, and those that trim, which are written elsewhere.
    pub(crate) fn resolve(
        &mut self,
        subject: &dyn Store,
        unsure: Option<&(Timestamp, Vec<Command>)>,
    ) -> Checked {
        let mut reasons = Vec::new();
        for (appended, trimmed) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut logs = self.clone();
            for (now, command) in
                unsure.iter().flat_map(|(now, commands)| commands.iter().map(move |c| (now, c)))
            {
                let happened = match command {
                    Command::Append(..) => appended,
                    _ => trimmed,
                };
                if happened {
                    logs.apply(*now, command);
                }
            }
            match logs.check(subject) {
                Ok(()) => {
                    *self = logs;
                    return Ok(());
                }
                Err(reason) => reasons.push(reason),
            }
        }
        reasons.dedup();
        Err(reasons.join("\nor: "))
    }
}
