//! Checking a whole directory without changing it: every frame, every record, and that both agree with the state that
//! they make.

use std::sync::Arc;

use redrive_store::StoreError;

use crate::clock::{Clock, MachineClock};
use crate::core::Core;
use crate::disk::Disk;
use crate::fault::{Problem, damaged};
use crate::format::{Place, segment};
use crate::state::entry::Stage;
use crate::state::queue::QueueState;
use crate::{Options, SEGMENTS};

/// How many messages are read back at a time.
const READ_MESSAGES: usize = 256;

/// What is in a directory that was found whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Segments, those of logs included.
    pub segments: u64,
    /// Bytes that all frames take.
    pub total_bytes: u64,
    /// Bytes of it that are still needed.
    pub live_bytes: u64,
    /// Queues.
    pub queues: u64,
    /// Messages, in any state.
    pub messages: u64,
    /// Entries of the registry.
    pub entries: u64,
}

/// Checks a directory that no process has open, and changes nothing in it.
pub fn verify(disk: &Arc<dyn Disk>, options: &Options) -> Result<VerifyReport, StoreError> {
    verify_with(disk, Arc::new(MachineClock), options)
}

pub(crate) fn verify_with(
    disk: &Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    options: &Options,
) -> Result<VerifyReport, StoreError> {
    let core = Core::read(disk, clock, options.clone(), true)?;
    let mut messages = 0;
    for queue in core.queues.values() {
        messages += core.verify_queue(queue)?;
    }
    core.verify_live()?;
    let usage = core.usage();
    Ok(VerifyReport {
        segments: usage.segments,
        total_bytes: usage.total_bytes,
        live_bytes: usage.live_bytes,
        queues: core.queues.len() as u64,
        messages,
        entries: core.registry.len() as u64,
    })
}

impl Core {
    fn broken(&self, place: Place, problem: impl Into<Problem>) -> StoreError {
        let name = segment::name(place.segment(), SEGMENTS);
        damaged(self.journal.disk.as_ref(), &name, u64::from(place.offset()), problem)
    }

    /// Reads every message of a queue back, and counts that each is in exactly the index that its state needs.
    fn verify_queue(&self, queue: &QueueState) -> Result<u64, StoreError> {
        let slots: Vec<u32> = queue.ids.after(None).map(|(_, slot)| slot).collect();
        for some in slots.chunks(READ_MESSAGES) {
            if self.journal.load(self.shots(some)).is_ok() {
                continue;
            }
            for slot in some {
                let at = self.messages.at(*slot).at;
                self.journal.load(self.shots(&[*slot])).map_err(|fault| self.broken(at, fault))?;
            }
        }
        let of = |wanted: fn(Stage) -> bool| {
            slots.iter().filter(|slot| wanted(self.messages.at(**slot).stage)).count()
        };
        let in_lines = queue.keys.count(&self.messages.entries);
        let aside = of(|stage| stage == Stage::Aside);
        let counts = [
            ("waiting", of(Stage::is_waiting), usize::try_from(queue.waiting).unwrap_or(usize::MAX)),
            ("in line", of(|stage| matches!(stage, Stage::Line | Stage::Stray)), in_lines),
            ("delayed", of(|stage| stage == Stage::Delayed), queue.delayed.len()),
            ("waiting to lapse", aside, queue.spent.len()),
            ("leased", of(|stage| stage == Stage::Leased), queue.deadlines.len()),
            ("dead", of(|stage| stage == Stage::Dead), queue.dead.len()),
            ("done", of(|stage| stage == Stage::Done), queue.done.len()),
        ];
        for (what, messages, indexed) in counts {
            if messages != indexed {
                let problem = format!(
                    "queue {}: {messages} messages are {what}, {indexed} are listed",
                    queue.queue.name
                );
                return Err(self.broken(queue.at, problem));
            }
        }
        let present = slots.len() as u64;
        if queue.totals.expected_present() != Some(present) {
            let expected = queue.totals.expected_present().unwrap_or_default();
            let problem =
                format!("queue {}: it has {present} messages and counted {expected}", queue.queue.name);
            return Err(self.broken(queue.at, problem));
        }
        Ok(present)
    }

    /// Counts what is needed of each segment from what there is, and compares it with what was kept while reading.
    fn verify_live(&self) -> Result<(), StoreError> {
        let mut live = std::collections::BTreeMap::<u32, u64>::new();
        let mut needs = |place: Place| *live.entry(place.segment()).or_default() += 1;
        for queue in self.queues.values() {
            needs(queue.at);
            queue.ids.after(None).for_each(|(_, slot)| needs(self.messages.at(slot).at));
            queue.holds.iter().for_each(|(_, hold)| needs(hold.at));
        }
        self.registry.values().for_each(|registered| needs(registered.at));
        self.logs.values().filter(|log| log.at.1 > 0).for_each(|log| needs(log.at.0));
        if self.store_at.1 > 0 {
            needs(self.store_at.0);
        }
        for segment in &self.journal.segments {
            let needed = live.get(&segment.number).copied().unwrap_or_default();
            if segment.live != needed {
                let problem =
                    format!("{needed} records of the segment are needed, {} were counted", segment.live);
                return Err(self.broken(Place::new(segment.number, 0), problem));
            }
        }
        Ok(())
    }
}
