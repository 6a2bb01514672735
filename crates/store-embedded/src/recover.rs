//! Opening a directory: the journal is read back record by record, by the functions that applied the records when they
//! were written.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use hashbrown::HashMap;
use redrive_core::message::Phase;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::{Entry, StoreError};

use crate::clean::Cleaner;
use crate::clock::Clock;
use crate::core::{Arrival, Core, Names};
use crate::disk::Disk;
use crate::fault::{damaged, unavailable};
use crate::format::bytes::size;
use crate::format::message::{SpecView, Until};
use crate::format::record::{self, HoldKey, Located, MessageRecord, Record, Records, StoreRecord};
use crate::format::{Malformed, Place, config, segment};
use crate::journal::Journal;
use crate::scan::{Found, Frame};
use crate::state::entry::{Extra, Held};
use crate::state::holds::{self, Hold};
use crate::state::ids;
use crate::state::messages::Messages;
use crate::state::queue::QueueState;
use crate::time::Time;
use crate::{LOGS, Options, SEGMENTS};

/// What is only known while a journal is read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The bases of messages by segment: where each begins, and which message it is.
    bases: Vec<(u32, Vec<(u32, u32)>)>,
    /// Queues that were named before their base was read: it comes later, or they are gone.
    missing: BTreeMap<u32, Place>,
    /// Queues that are gone; what is in them goes when everything has been read.
    pub(crate) gone: BTreeSet<u32>,
    /// The first segment that is needed, as the journal says.
    first_needed: u32,
    /// What the last message began with.
    last: Beginning,
}

/// What the spec of a message without a dedup key begins with: mostly the next one begins with the same.
#[derive(Debug, Default)]
struct Beginning {
    queue: u32,
    bytes: Vec<u8>,
    lease_timeout: Option<Millis>,
    max_attempts: Option<NonZeroU32>,
}

impl Reading {
    /// Bases come in the order of their places, so the last segment is the one.
    fn remember(&mut self, at: Place, slot: u32) {
        match self.bases.last_mut() {
            Some((segment, bases)) if *segment == at.segment() => bases.push((at.offset(), slot)),
            _ => self.bases.push((at.segment(), vec![(at.offset(), slot)])),
        }
    }

    /// All bases of messages that were read, with the message that each was the base of.
    pub(crate) fn bases(&self) -> impl Iterator<Item = (Place, u32)> {
        self.bases.iter().flat_map(|(segment, bases)| {
            bases.iter().map(|(offset, slot)| (Place::new(*segment, *offset), *slot))
        })
    }

    fn slot(&self, base: Place) -> Option<u32> {
        let at = self.bases.binary_search_by_key(&base.segment(), |(segment, _)| *segment).ok()?;
        let (_, bases) = self.bases.get(at)?;
        let at = bases.binary_search_by_key(&base.offset(), |(offset, _)| *offset).ok()?;
        bases.get(at).map(|(_, slot)| *slot)
    }
}

impl Core {
    /// An empty store that nothing was read into yet.
    fn empty(disk: &Arc<dyn Disk>, clock: Arc<dyn Clock>, options: Options) -> Self {
        let log_bytes = (options.segment_bytes / 8).max(64 * 1024);
        Self {
            journal: Journal::new(Arc::clone(disk), SEGMENTS, options.segment_bytes),
            log_journal: Journal::new(Arc::clone(disk), LOGS, log_bytes),
            store: StoreRecord {
                receipt_key: [0; 32],
                epoch: options.first_epoch,
                leases: 0,
                sequence: 0,
                version: 0,
                queues: 0,
            },
            store_at: (Place::default(), 0),
            time: Time::new(clock),
            messages: Messages::default(),
            names: BTreeMap::new(),
            queues: HashMap::new(),
            registry: BTreeMap::new(),
            logs: BTreeMap::new(),
            cleaner: Cleaner::default(),
            moved: HashMap::new(),
            dirty: Vec::new(),
            undo: None,
            commands: 0,
            syncs: 0,
            backups: 0,
            fault: None,
            options,
        }
    }

    /// Reads a directory, and changes nothing in it where it is `read_only`.
    pub(crate) fn read(
        disk: &Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        options: Options,
        read_only: bool,
    ) -> Result<Self, StoreError> {
        let mut core = Self::empty(disk, clock, options);
        let mut reading = Reading::default();
        let mut scanned = Journal::new(Arc::clone(disk), SEGMENTS, core.options.segment_bytes);
        scanned.read_only = read_only;
        let last = scanned.scan(|found| match found {
            Found::Segment(segment) => {
                core.journal.segments.push_back(segment);
                Ok(())
            }
            Found::Frame(frame) => core.take_in(&mut reading, &frame),
            Found::End(used) => {
                core.journal.end_last(used);
                Ok(())
            }
        })?;
        core.journal.take_over(scanned);
        core.check_whole(&reading)?;
        core.derive(&reading)?;
        core.drop_orphans();
        let log_last = core.read_logs(read_only)?;
        core.time.floor = last.max(log_last);
        Ok(core)
    }

    fn read_logs(&mut self, read_only: bool) -> Result<Timestamp, StoreError> {
        let disk = Arc::clone(&self.journal.disk);
        let mut scanned = Journal::new(Arc::clone(&disk), LOGS, self.log_journal.segment_bytes);
        scanned.read_only = read_only;
        let last = scanned.scan(|found| match found {
            Found::Segment(segment) => {
                self.log_journal.segments.push_back(segment);
                Ok(())
            }
            Found::End(used) => {
                self.log_journal.end_last(used);
                Ok(())
            }
            Found::Frame(frame) => {
                let name = segment::name(frame.segment, LOGS);
                let broken = |at: usize| {
                    let disk = disk.as_ref();
                    let name = name.clone();
                    move |problem: Malformed| damaged(disk, &name, at as u64, problem)
                };
                for located in Records::new(frame.records, frame.at) {
                    let located = located.map_err(broken(frame.at))?;
                    let placed = (Place::new(frame.segment, size(located.at)), located.length);
                    match located.read(true).map_err(broken(located.at))? {
                        Record::Logged(log, number, at, _) => {
                            self.apply_log_record(log, number, at, placed);
                        }
                        _ => return Err(broken(located.at)(Malformed("only records of logs belong here"))),
                    }
                }
                Ok(())
            }
        })?;
        self.log_journal.take_over(scanned);
        Ok(last)
    }

    /// Takes in the records of a frame.
    fn take_in(&mut self, reading: &mut Reading, frame: &Frame<'_>) -> Result<(), StoreError> {
        self.time.floor = frame.time;
        for located in Records::new(frame.records, frame.at) {
            let at = located.as_ref().map_or(frame.at, |located| located.at);
            let taken = located.and_then(|located| {
                let placed = (Place::new(frame.segment, size(located.at)), located.length);
                self.take_in_record(reading, &located, placed)
            });
            taken.map_err(|problem| {
                let name = segment::name(frame.segment, SEGMENTS);
                damaged(self.journal.disk.as_ref(), &name, at as u64, problem)
            })?;
        }
        Ok(())
    }

    fn take_in_record(
        &mut self,
        reading: &mut Reading,
        located: &Located<'_>,
        placed: (Place, u32),
    ) -> Result<(), Malformed> {
        if let Some(base) = located.message()? {
            return self.take_in_message(reading, &base, placed);
        }
        match located.read(false)? {
            Record::Store(store) => {
                if self.store_at.1 > 0 {
                    self.journal.let_go(self.store_at.0, self.store_at.1);
                }
                self.journal.keep(placed.0, placed.1);
                (self.store, self.store_at) = (store, placed);
            }
            Record::Queue(number, queue, counters) => {
                reading.missing.remove(&number);
                self.take_in_queue(number, *queue, &counters, placed);
            }
            Record::QueueGone(number) => {
                reading.missing.remove(&number);
                if self.queues.contains_key(&number) {
                    reading.gone.insert(number);
                }
                self.names.retain(|_, named| *named != number);
                reading.last = Beginning::default();
            }
            Record::Counts(number, base, more) => self.take_in_counts(number, base, &more)?,
            Record::Message(base) => self.take_in_message(reading, &base, placed)?,
            Record::Leases(leases) => {
                for (ahead, (base, deadline)) in (0..).zip(leases.items()) {
                    let id = redrive_core::lease::LeaseId::from_bits(leases.first.bits() + ahead);
                    self.saw_lease(id);
                    if let Some(slot) = self.known(reading, base)? {
                        let consumer = leases.consumer.clone();
                        self.apply_lease(slot, Held { id, consumer, leased_at: leases.leased_at, deadline });
                    }
                }
            }
            Record::Gone(bases) => {
                for base in bases {
                    if let Some(slot) = self.known(reading, base)? {
                        self.apply_gone(slot);
                    }
                }
            }
            Record::Change(change) => {
                self.store.sequence = self.store.sequence.max(change.progress.sequence);
                if let Some(slot) = self.known(reading, change.base)? {
                    if let Some(queue) = change.queue {
                        // Its names are looked up in the other queue.
                        reading.last = Beginning::default();
                        self.expect_queue(reading, queue, placed.0)?;
                    }
                    self.apply_change(slot, change, placed);
                }
            }
            Record::Hold(key, message, until, base) => {
                self.expect_queue(reading, key.queue, placed.0)?;
                let slot = base.map_or(Ok(None), |base| self.known(reading, base))?;
                self.take_key(key, message, until, placed.0, slot);
            }
            Record::Entry(key, version, value) => {
                self.apply_entry(Entry { key, version, value: value.to_vec().into() }, placed);
            }
            Record::EntryGone(key, base) => {
                let there = self.registry.get(&key).is_some_and(|registered| registered.at == base);
                if !there && !self.is_stale(base) {
                    return Err(Malformed("an entry is gone that was not there"));
                }
                if there {
                    self.apply_entry_gone(&key);
                }
            }
            Record::Log(name, last, horizon) => {
                self.apply_log(name.clone(), last, horizon);
                self.place_log(&name, placed);
            }
            Record::Grace(overdue, granted) => {
                self.apply_grace(overdue, granted);
            }
            Record::Kept(first) => reading.first_needed = reading.first_needed.max(first),
            Record::Logged(..) => return Err(Malformed("a record of a log does not belong here")),
        }
        Ok(())
    }

    /// Whether a base lies before the first segment that is kept.
    fn is_stale(&self, base: Place) -> bool {
        self.journal.segments.front().is_some_and(|first| base.segment() < first.number)
    }

    /// The message with that base; `None` where a change to it means nothing any more.
    fn known(&self, reading: &Reading, base: Place) -> Result<Option<u32>, Malformed> {
        if self.is_stale(base) {
            return Ok(None);
        }
        let slot = reading.slot(base).ok_or(Malformed("a change names a message that is not there"))?;
        if self.messages.at(slot).at == base {
            Ok(Some(slot))
        } else {
            Err(Malformed("a change names a message that is gone, or has a newer base"))
        }
    }

    fn saw_lease(&mut self, id: redrive_core::lease::LeaseId) {
        let counter = id.bits() & redrive_core::lease::LeaseId::COUNTER_MAX;
        let latest = (self.store.epoch, self.store.leases).max((id.epoch(), counter));
        (self.store.epoch, self.store.leases) = latest;
    }

    /// A queue is named whose base may come later, because it was written again: it stands in for it until then.
    fn expect_queue(&mut self, reading: &mut Reading, number: u32, place: Place) -> Result<(), Malformed> {
        if reading.gone.contains(&number) {
            return Err(Malformed("it names a queue that is gone"));
        }
        if self.queues.contains_key(&number) {
            return Ok(());
        }
        reading.missing.insert(number, place);
        let queue = redrive_core::queue::Queue {
            name: "unknown".parse().expect("a good name"),
            created_at: Timestamp::EPOCH,
            version: 0,
            config: redrive_core::queue::QueueConfig::default(),
            pauses: redrive_core::queue::Pauses::default(),
        };
        let settings = self.options.defaults.clone();
        self.queues.insert(number, unread(number, queue, settings));
        Ok(())
    }

    fn take_in_queue(
        &mut self,
        number: u32,
        queue: redrive_core::queue::Queue,
        counters: &[u64; config::COUNTERS],
        (at, length): (Place, u32),
    ) {
        self.store.queues = self.store.queues.max(number);
        self.store.version = self.store.version.max(queue.version);
        let settings = queue.config.over(&self.options.defaults);
        let mut totals = redrive_core::queue::Totals::default();
        config::add_counters(&mut totals, counters);
        self.names.insert(queue.name.clone(), number);
        let state =
            self.queues.entry(number).or_insert_with(|| unread(number, queue.clone(), settings.clone()));
        if state.length > 0 {
            self.journal.let_go(state.at, state.length);
        }
        self.journal.keep(at, length);
        (state.at, state.length, state.totals, state.counted) = (at, length, totals, *counters);
        self.apply_config(number, queue, settings);
    }

    fn take_in_counts(
        &mut self,
        number: u32,
        base: Place,
        more: &[u64; config::COUNTERS],
    ) -> Result<(), Malformed> {
        let stale = self.is_stale(base);
        match self.queues.get_mut(&number) {
            Some(queue) if queue.at == base => {
                config::add_counters(&mut queue.totals, more);
                queue.counted = config::counters(&queue.totals);
                Ok(())
            }
            _ if stale => Ok(()),
            _ => Err(Malformed("a queue has counted that is not there, or has a newer base")),
        }
    }

    fn take_in_message(
        &mut self,
        reading: &mut Reading,
        base: &MessageRecord<'_>,
        (at, length): (Place, u32),
    ) -> Result<(), Malformed> {
        if base.queue != reading.last.queue || reading.last.bytes.is_empty() {
            self.expect_queue(reading, base.queue, at)?;
        }
        self.store.sequence = self.store.sequence.max(base.progress.sequence);
        if let Phase::Leased(lease) = &base.progress.phase {
            self.saw_lease(lease.id);
        }
        let past = if base.history.is_some() { base.read_history()?.0.checkpoint } else { None };
        let checkpoint = past.map_or(0, |checkpoint| size(checkpoint.bytes().len()));
        if let Some(replaced) = base.replaces
            && let Some(slot) = self.known(reading, replaced)?
        {
            self.detach(slot);
        }
        let extra = Extra { checkpoint, past: base.history.is_some(), ..Extra::default() };
        let slot = self.attach_read(reading, base, (at, length), extra)?;
        reading.remember(at, slot);
        if let Some((digest, until)) = base.hold {
            self.take_key(HoldKey { queue: base.queue, digest }, base.id, until, at, Some(slot));
        }
        Ok(())
    }

    /// Brings a message into memory that was read.
    fn attach_read(
        &mut self,
        reading: &mut Reading,
        base: &MessageRecord<'_>,
        (at, length): (Place, u32),
        mut extra: Extra,
    ) -> Result<u32, Malformed> {
        let arrival = |names, extra| Arrival {
            id: ids::number(base.id),
            queue: base.queue,
            at,
            length,
            load: base.load,
            names,
            progress: base.progress.clone(),
            extra,
        };
        let last = &mut reading.last;
        if last.queue == base.queue
            && !last.bytes.is_empty()
            && base.spec.starts_with(&last.bytes)
            && let Some((key, class)) = self.queue_mut(base.queue).join_last()
        {
            (extra.lease_timeout, extra.max_attempts) = (last.lease_timeout, last.max_attempts);
            return Ok(self.attach(arrival(Names::Joined(key, class), extra)));
        }
        let view = SpecView::take(base.spec)?.checked()?;
        extra.unique = self.unique_of(base, &view);
        (extra.lease_timeout, extra.max_attempts) = (view.lease_timeout, view.max_attempts);
        last.queue = base.queue;
        (last.lease_timeout, last.max_attempts) = (view.lease_timeout, view.max_attempts);
        last.bytes.clear();
        last.bytes.extend_from_slice(view.beginning(base.spec));
        let (kind, source, key) = (view.kind, view.source, view.key);
        Ok(self.attach(arrival(Names::Given { kind, source, key }, extra)))
    }

    /// The dedup key that a message holds while it is not done: its base says so, or a record of its own, before.
    fn unique_of(&self, base: &MessageRecord<'_>, view: &SpecView<'_>) -> Option<u128> {
        if let Some((digest, Until::Done)) = base.hold {
            return Some(digest);
        }
        // One that has ended let it go; what said so may have been a change to a base that is not kept.
        if !matches!(base.progress.phase, Phase::Waiting | Phase::Leased(_)) {
            return None;
        }
        let digest = view.unique_key.map(holds::digest_of)?;
        let hold = self.queue(base.queue).holds.get(digest)?;
        (hold.until() == Until::Done && hold.message() == ids::number(base.id)).then_some(digest)
    }

    /// Lets keys go whose message is gone: what said so was a change to a base that is not kept.
    fn drop_orphans(&mut self) {
        let orphans: Vec<(u32, u128, Place)> = self
            .all_holds()
            .filter(|(number, digest, hold)| {
                let slot = self.queue(*number).ids.get(hold.message());
                let holds =
                    |slot| self.messages.extra(slot).is_some_and(|extra| extra.unique == Some(*digest));
                hold.until() == Until::Done && !slot.is_some_and(holds)
            })
            .map(|(number, digest, hold)| (number, digest, hold.at))
            .collect();
        for (number, digest, at) in orphans {
            self.queue_mut(number).holds.remove(digest);
            self.journal.let_go(at, 0);
        }
    }

    /// Whether all is there that the journal says is needed.
    fn check_whole(&self, reading: &Reading) -> Result<(), StoreError> {
        let Some(first) = self.journal.segments.front() else {
            return Ok(());
        };
        let disk = self.journal.disk.as_ref();
        let needed = reading.first_needed.max(1);
        if first.number > needed {
            let name = segment::name(needed, SEGMENTS);
            return Err(damaged(disk, &name, 0, "the file is missing"));
        }
        if let Some((number, place)) = reading.missing.first_key_value() {
            let name = segment::name(place.segment(), SEGMENTS);
            let problem = format!("queue {number} is named and is not there");
            return Err(damaged(disk, &name, u64::from(place.offset()), problem));
        }
        if self.store_at.1 == 0 && self.journal.sequence > 1 {
            let name = segment::name(first.number, SEGMENTS);
            return Err(damaged(disk, &name, 0, "no record says what store this is"));
        }
        Ok(())
    }

    /// Opens a directory for this process: takes it, reads it, and writes that a new epoch has begun.
    pub(crate) fn open(
        disk: &Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        options: Options,
        random: [u8; 32],
    ) -> Result<Self, StoreError> {
        if !disk.lock().map_err(unavailable)? {
            let place = disk.place("lock");
            return Err(StoreError::Unavailable(
                format!("another process has the directory: {place} is locked").into(),
            ));
        }
        let mut core = Self::read(disk, clock, options, false)?;
        let last = core.time.floor;
        core.time.start(last);
        for number in core.numbers_of(None).unwrap_or_default() {
            core.forget_keys(number, core.time.floor);
        }
        if core.store_at.1 == 0 {
            core.store.receipt_key = random;
        } else {
            core.begin_epoch();
        }
        core.begin().map_err(unavailable)?;
        Ok(core)
    }

    /// Raises the epoch if any lease was taken in the last one. The last epoch of all does not end: its counter goes on
    /// from the last lease that the journal knows, and no lease leaves the store before the journal knows it.
    fn begin_epoch(&mut self) {
        if self.store.leases > 0 && self.store.epoch < u16::MAX {
            self.store.epoch += 1;
            self.store.leases = 0;
        }
    }

    fn begin(&mut self) -> Result<(), crate::fault::Fault> {
        use crate::journal::{Admission, Purpose};
        if self.journal.admit(4_096, Purpose::Clean)? == Admission::Full {
            return Err(crate::fault::Fault::new("opening", "the disk is full"));
        }
        self.put_store();
        let now = self.time.floor;
        let granted = now.plus(self.options.restart_grace);
        if self.apply_grace(now, granted) {
            record::put_grace(&mut self.journal.frame, now, granted);
        }
        let file = self.journal.write(self.time.floor)?;
        file.sync().map_err(crate::fault::during("opening"))?;
        self.journal.has_spares(2)?;
        Ok(())
    }

    /// Leases that have run out get a little longer: their consumers had no way to extend them. Says whether any had.
    fn apply_grace(&mut self, overdue: Timestamp, granted: Timestamp) -> bool {
        let now = self.time.floor;
        let mut any = false;
        for queue in self.queues.values_mut() {
            let late = queue.deadlines.iter().take_while(|(deadline, ..)| *deadline <= overdue);
            let late: Vec<u32> = late.map(|(.., slot)| *slot).collect();
            any |= !late.is_empty();
            for slot in late {
                queue.unindex(&mut self.messages, slot);
                self.messages.set_deadline(slot, granted);
                queue.index(&mut self.messages, slot, now);
            }
        }
        any
    }

    /// Every dedup key that is held, with its queue.
    pub(crate) fn all_holds(&self) -> impl Iterator<Item = (u32, u128, &Hold)> {
        self.queues
            .values()
            .flat_map(|queue| queue.holds.iter().map(|(digest, hold)| (queue.number, digest, hold)))
    }
}

/// A queue whose messages are still to be read.
fn unread(
    number: u32,
    queue: redrive_core::queue::Queue,
    settings: redrive_core::queue::QueueSettings,
) -> Box<QueueState> {
    let mut state = QueueState::new(number, queue, settings);
    state.reading = true;
    Box::new(state)
}

impl Journal {
    /// The last segment was read up to here.
    fn end_last(&mut self, used: u32) {
        if let Some(last) = self.segments.back_mut() {
            last.used = used;
        }
    }

    /// Goes on where a scan ended.
    fn take_over(&mut self, scanned: Self) {
        self.sequence = scanned.sequence;
        self.spares = scanned.spares;
        self.next_spare = scanned.next_spare;
    }
}
