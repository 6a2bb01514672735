//! Cleaning: what is still needed of the oldest segment is written again at the end, and then the segment goes.
//!
//! It begins when the journal is more than twice as long as what is needed of it, and it is paced: a frame carries at
//! most as much of it as of its own, or 64 KiB, and the less the closer the journal is to twice. So no command waits for
//! more than that, and the journal stays below three times what is needed, and a few segments.

use hashbrown::HashMap;
use redrive_core::time::Timestamp;

use crate::core::Core;
use crate::fault::Fault;
use crate::format::message::{Link, put_history, without_dedup};
use crate::format::record::{self, HoldKey, Located, MessageParts, MessageRecord, Record, Records};
use crate::format::{Malformed, Place, bytes::size, config, frame};
use crate::journal::{Admission, Purpose};
use crate::load::read_base;
use crate::state::ids;

/// What a frame may carry of cleaning, however small it is itself, in bytes.
const ALLOWANCE_BYTES_MIN: usize = 64 * 1024;
/// How much may be read for each byte that may be written.
const READ_FACTOR: u64 = 8;

/// How far cleaning is.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    victim: Option<Victim>,
    /// How many of the oldest segments are clean and go when this frame is on the disk.
    pub(crate) clean: usize,
    pub(crate) cleaned_segments: u64,
    pub(crate) cleaned_bytes: u64,
    /// How long the base is that did not fit into the segment that is written to; nothing where it did.
    stalled: usize,
}

/// The segment that is being cleaned.
#[derive(Debug, Default)]
struct Victim {
    number: u32,
    /// Where the next frame begins.
    at: u32,
    /// The frame before it, and where it begins.
    frame: Vec<u8>,
    frame_at: u32,
    /// Its bases that may still be needed, and how many of them are clean.
    bases: Vec<Base>,
    clean: usize,
    /// What happened to messages whose bases are among them, by base, with the newest link there was.
    histories: HashMap<Place, (Newest, Vec<Link>)>,
}

/// A base that may still be needed.
#[derive(Debug, Clone, Copy)]
struct Base {
    /// Where it begins in its frame.
    at: u32,
    length: u32,
    /// The message whose base it was when the frame was read.
    slot: Option<u32>,
}

impl Victim {
    fn place(&self, base: Base) -> Place {
        Place::new(self.number, self.frame_at + base.at)
    }

    fn record(&self, base: Base) -> Result<Located<'_>, Malformed> {
        let bytes = self.frame.get(base.at as usize..(base.at + base.length) as usize);
        Located::whole(bytes.unwrap_or_default())
    }
}

/// The newest link of a history.
type Newest = Option<(Place, u32)>;

impl Core {
    /// Cleans as much as the frame that is being made may carry.
    pub(crate) fn clean(&mut self) -> Result<(), Fault> {
        let allowance = self.journal.frame.len().max(ALLOWANCE_BYTES_MIN) as u64;
        let (mut written, mut read) = (0, 0);
        loop {
            // Asked again each time: a segment that goes may be enough, and one that goes alone is used again.
            let budget = self.cleaning_budget(allowance);
            if written >= budget || read >= budget.saturating_mul(READ_FACTOR) || !self.find_victim() {
                return Ok(());
            }
            let before = self.journal.frame.len();
            let more = self.clean_some(budget - written)?;
            let wrote = (self.journal.frame.len() - before) as u64;
            self.cleaner.cleaned_bytes += wrote;
            if wrote == 0 && more == 0 {
                return Ok(());
            }
            written += wrote;
            read += more;
        }
    }

    /// How much a frame may carry: nothing up to twice what is needed, all that is allowed from three times on.
    fn cleaning_budget(&self, allowance: u64) -> u64 {
        let gone = self.journal.segments.iter().take(self.cleaner.clean);
        let gone: u64 = gone.map(|segment| u64::from(segment.used)).sum();
        let (total, live) = (self.journal.total_bytes().saturating_sub(gone), self.journal.live_bytes);
        let excess = total.saturating_sub(live.saturating_mul(2));
        // Where the disk is full and less than a segment can be won, moving the rest about only takes what is kept for
        // changes.
        if excess == 0 && total.saturating_sub(live) < u64::from(self.journal.segment_bytes) {
            return 0;
        }
        if excess == 0 && !self.journal.is_full() {
            return 0;
        }
        if self.journal.is_full() || excess >= live {
            return allowance;
        }
        let share = u128::from(allowance) * u128::from(excess) / u128::from(live.max(1));
        u64::try_from(share).unwrap_or(allowance) + 1
    }

    /// Whether there is a segment to clean: the oldest, never the one that is written to.
    fn find_victim(&mut self) -> bool {
        if self.cleaner.victim.is_some() {
            return true;
        }
        let at = self.cleaner.clean;
        if at + 1 >= self.journal.segments.len() {
            return false;
        }
        let number = self.journal.segments[at].number;
        let start = crate::format::segment::HEADER_BYTES;
        self.cleaner.victim = Some(Victim { number, at: start, ..Victim::default() });
        true
    }

    /// Cleans records of one frame, and answers how many bytes it read.
    fn clean_some(&mut self, budget: u64) -> Result<u64, Fault> {
        let Some(mut victim) = self.cleaner.victim.take() else { return Ok(0) };
        let segment = self.journal.segment(victim.number).expect("a segment is there until it is clean");
        if segment.live == 0 {
            record::put_kept(&mut self.journal.frame, victim.number + 1);
            self.cleaner.clean += 1;
            return Ok(1);
        }
        let mut read = 1;
        if victim.clean == victim.bases.len() {
            if victim.at >= segment.used {
                return Err(Fault::new(
                    "cleaning",
                    format!("segment {} is needed and has nothing", victim.number),
                ));
            }
            read = self.read_victim(&mut victim)?;
        }
        let done = self.clean_records(&mut victim, budget)?;
        self.cleaner.victim = Some(victim);
        Ok(if done { read } else { 0 })
    }

    /// Writes the bases of a frame again that are still needed, as far as the budget goes. Says whether it came any
    /// further.
    fn clean_records(&mut self, victim: &mut Victim, budget: u64) -> Result<bool, Fault> {
        let (start, before) = (victim.clean, self.journal.frame.len());
        while let Some(base) = victim.bases.get(victim.clean).copied() {
            if (self.journal.frame.len() - before) as u64 >= budget {
                break;
            }
            let place = victim.place(base);
            let broken = |problem: Malformed| Fault::new("cleaning", format!("{place}: {problem}"));
            let slot = base.slot.filter(|slot| self.messages.at(*slot).at == place);
            let located = victim.record(base).map_err(broken)?;
            let stalls = !self.has_room(base.length as usize);
            if stalls && (slot.is_some() || self.is_needed(place, located).map_err(broken)?) {
                self.cleaner.stalled = base.length as usize;
                break;
            }
            let history = victim.histories.remove(&place);
            let located = victim.record(base).map_err(broken)?;
            self.rewrite(place, slot, located, history).map_err(broken)?;
            victim.clean += 1;
        }
        Ok(victim.clean > start || victim.bases.is_empty())
    }

    /// Goes on where the last frame had no room for the next base, in a segment that has it: before any command can
    /// take it.
    pub(crate) fn clean_on(&mut self) -> Result<(), Fault> {
        let stalled = std::mem::take(&mut self.cleaner.stalled);
        let budget = self.cleaning_budget(ALLOWANCE_BYTES_MIN as u64);
        if stalled == 0 || budget == 0 || self.journal.has_records() {
            return Ok(());
        }
        if self.journal.admit(stalled + 2 * 1_024, Purpose::Clean)? == Admission::Now {
            self.clean_some(budget)?;
        }
        Ok(())
    }

    fn has_room(&self, bytes: usize) -> bool {
        let room =
            self.journal.segments.back().map_or(0, |segment| segment.limit.saturating_sub(segment.used));
        self.journal.frame.len() + bytes + 1_024 <= room as usize
    }

    /// Reads the next frame of the victim, and finds what may be needed of it.
    fn read_victim(&self, victim: &mut Victim) -> Result<u64, Fault> {
        let place = Place::new(victim.number, victim.at);
        let broken = |problem: Malformed| Fault::new("cleaning", format!("{place}: {problem}"));
        let mut head = [0; frame::HEADER_BYTES];
        self.journal.read_into(&mut head, place)?;
        let header = frame::Header::decode(&head, victim.number).map_err(broken)?;
        victim.frame.resize(header.span(), 0);
        self.journal.read_into(&mut victim.frame, place)?;
        // What is copied keeps its own checksum, but nothing may be copied that is not what was written.
        let (_, records) = frame::decode(&victim.frame, victim.number).map_err(broken)?;
        victim.frame_at = victim.at;
        victim.at += size(header.span());
        (victim.clean, victim.bases) = (0, Vec::new());
        let mut newest = Vec::new();
        for located in Records::new(records, frame::HEADER_BYTES) {
            let located = located.map_err(broken)?;
            if !located.is_base() {
                continue;
            }
            let mut base = Base { at: size(located.at), length: located.length, slot: None };
            let place = Place::new(victim.number, victim.frame_at + base.at);
            if let Some(message) = located.message().map_err(broken)? {
                base.slot = self.message_at(place, &message);
                let extra = base.slot.and_then(|slot| self.messages.extra(slot));
                newest.extend(extra.and_then(|extra| extra.link).map(|link| (place, link)));
                if base.slot.is_none() && message.hold.is_none() {
                    continue;
                }
            }
            victim.bases.push(base);
        }
        victim.histories = self.histories_of(&newest)?;
        Ok(header.span() as u64)
    }

    /// What happened to messages since their bases were written, read all at once.
    fn histories_of(
        &self,
        newest: &[(Place, (Place, u32))],
    ) -> Result<HashMap<Place, (Newest, Vec<Link>)>, Fault> {
        let links = self.journal.links(newest.iter().map(|(_, link)| Some(*link)).collect())?;
        let links = newest.iter().zip(links);
        Ok(links.map(|((place, link), links)| (*place, (Some(*link), links))).collect())
    }

    /// Writes a base again, if it is still the base of anything.
    fn rewrite(
        &mut self,
        place: Place,
        slot: Option<u32>,
        located: Located<'_>,
        history: Option<(Newest, Vec<Link>)>,
    ) -> Result<(), Malformed> {
        match located.read(false)? {
            Record::Message(base) => match slot {
                Some(slot) if base.hold.is_none() && !self.messages.at(slot).is_changed() => {
                    let put = record::copy_message(&mut self.journal.frame, located, place)?;
                    let old_length = self.messages.at(slot).length;
                    self.moved_base(slot, (place, old_length), self.journal.placed(put));
                }
                Some(slot) => self.rebase_from(slot, &base, history)?,
                None => self.outlive(place, &base),
            },
            Record::Hold(key, message, ..) => {
                let held = self.queues.get(&key.queue).and_then(|queue| queue.holds.get(key.digest)).copied();
                if let Some(hold) = held.filter(|hold| hold.at == place) {
                    let base = self.find(key.queue, message).map(|slot| self.messages.at(slot).at);
                    let put = record::put_hold(&mut self.journal.frame, key, message, hold.until(), base);
                    self.move_hold(key, place, self.journal.placed(put).0);
                }
            }
            Record::Queue(number, ..) if self.queues.get(&number).is_some_and(|queue| queue.at == place) => {
                self.put_queue(number);
            }
            Record::Store(_) if self.store_at.0 == place => self.put_store(),
            Record::Entry(key, ..) => {
                if let Some(registered) =
                    self.registry.get_mut(&key).filter(|registered| registered.at == place)
                {
                    let entry = &registered.entry;
                    let put = record::put_entry(&mut self.journal.frame, &key, entry.version, &entry.value);
                    let (at, length) = self.journal.placed(put);
                    (registered.at, registered.length) = (at, length);
                    self.journal.let_go(place, length);
                    self.journal.keep(at, length);
                }
            }
            Record::Log(name, ..) if self.logs.get(&name).is_some_and(|log| log.at.0 == place) => {
                self.put_log(&name);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a base is still the base of anything.
    fn is_needed(&self, place: Place, located: Located<'_>) -> Result<bool, Malformed> {
        let hold_at = |queue: u32, digest: u128| {
            self.queues.get(&queue).and_then(|queue| queue.holds.get(digest)).map(|hold| hold.at)
        };
        Ok(match located.read(false)? {
            Record::Message(base) => {
                let held = base.hold.and_then(|(digest, _)| hold_at(base.queue, digest));
                self.message_at(place, &base).is_some() || held == Some(place)
            }
            Record::Hold(key, ..) => hold_at(key.queue, key.digest) == Some(place),
            Record::Queue(number, ..) => self.queues.get(&number).is_some_and(|queue| queue.at == place),
            Record::Store(_) => self.store_at.0 == place,
            Record::Entry(key, ..) => {
                self.registry.get(&key).is_some_and(|registered| registered.at == place)
            }
            Record::Log(name, ..) => self.logs.get(&name).is_some_and(|log| log.at.0 == place),
            _ => false,
        })
    }

    /// The message whose base that is.
    fn message_at(&self, place: Place, base: &MessageRecord<'_>) -> Option<u32> {
        let queue = self.queues.get(&base.queue);
        let slot = queue.and_then(|queue| queue.ids.get(ids::number(base.id)));
        let slot = slot.filter(|slot| self.messages.at(*slot).at == place);
        slot.or_else(|| self.moved.get(&place).copied())
    }

    /// Writes a dedup key by itself whose message is gone, or elsewhere.
    fn outlive(&mut self, place: Place, base: &MessageRecord<'_>) {
        let Some((digest, _)) = base.hold else { return };
        let key = HoldKey { queue: base.queue, digest };
        let held = self.queues.get(&key.queue).and_then(|queue| queue.holds.get(digest)).copied();
        if let Some(hold) = held.filter(|hold| hold.at == place) {
            let message = ids::id(hold.message());
            let put = record::put_hold(&mut self.journal.frame, key, message, hold.until(), None);
            self.move_hold(key, place, self.journal.placed(put).0);
        }
    }

    fn move_hold(&mut self, key: HoldKey, from: Place, to: Place) {
        self.queue_mut(key.queue).holds.moved(key.digest, to);
        self.journal.let_go(from, 0);
        self.journal.keep(to, 0);
    }

    /// Writes a new base for a message, with its whole state.
    pub(crate) fn rebase(&mut self, slot: u32) {
        let entry = self.messages.at(slot);
        let read = self.journal.read(entry.at, entry.length);
        let written = read.and_then(|whole| {
            let base = read_base(&whole);
            base.and_then(|base| self.rebase_from(slot, &base, None))
                .map_err(|problem| Fault::new("writing a message again", problem))
        });
        if let Err(fault) = written {
            self.fault.get_or_insert(fault);
        }
    }

    fn rebase_from(
        &mut self,
        slot: u32,
        base: &MessageRecord<'_>,
        history: Option<(Newest, Vec<Link>)>,
    ) -> Result<(), Malformed> {
        let entry = self.messages.at(slot);
        let (old, old_length, number, load) = (entry.at, entry.length, entry.queue, entry.load);
        let extra = self.messages.extra(slot).cloned().unwrap_or_default();
        let progress = self.messages.progress(slot);
        if number != base.queue {
            self.outlive(old, base);
        }
        let holds = &self.queue(number).holds;
        let hold = base.hold.filter(|_| number == base.queue).and_then(|(digest, _)| {
            holds.get(digest).filter(|hold| hold.at == old).map(|hold| (digest, hold.until()))
        });
        let parts = MessageParts {
            id: base.id,
            queue: number,
            created_at: base.created_at,
            load,
            replaces: Some(old),
            progress: &progress,
            hold,
        };
        let past = match extra.link {
            None => base.history.map(<[u8]>::to_vec),
            newest => Some(self.whole_history(base, newest, history)?),
        };
        let spec = if extra.moved { without_dedup(base.spec)? } else { None };
        let put = record::put_message(
            &mut self.journal.frame,
            &parts,
            |out| out.extend_from_slice(spec.as_deref().unwrap_or(base.spec)),
            |out| out.extend_from_slice(past.as_deref().unwrap_or_default()),
        );
        if past.is_some() {
            self.messages.extra_mut(slot).past = true;
        }
        let (at, length) = self.journal.placed(put);
        self.moved_base(slot, (old, old_length + extra.link_bytes), (at, length));
        if let Some((digest, _)) = hold {
            self.move_hold(HoldKey { queue: number, digest }, old, at);
        }
        Ok(())
    }

    /// All that happened to a message, as it is written: what its base says, and the links since. They may have been read
    /// before, if no newer one has come.
    fn whole_history(
        &self,
        base: &MessageRecord<'_>,
        newest: Newest,
        read: Option<(Newest, Vec<Link>)>,
    ) -> Result<Vec<u8>, Malformed> {
        let links = match read {
            Some((link, links)) if link == newest => links,
            _ => {
                let links = self.journal.links(vec![newest]);
                links.map_err(|_| Malformed("its history cannot be read"))?.pop().unwrap_or_default()
            }
        };
        let (mut history, mut origin) = base.read_history()?;
        links.into_iter().rev().for_each(|link| link.add_to(&mut history, &mut origin));
        let mut bytes = Vec::new();
        put_history(&mut bytes, &history, origin.as_ref());
        Ok(bytes)
    }

    /// A message has another base, which holds all there is to say.
    fn moved_base(&mut self, slot: u32, (old, old_bytes): (Place, u32), (at, length): (Place, u32)) {
        self.journal.let_go(old, old_bytes);
        self.journal.keep(at, length);
        let entry = self.messages.at_mut(slot);
        (entry.at, entry.length) = (at, length);
        entry.set_changed(false);
        if self.messages.extra(slot).is_some() {
            let extra = self.messages.extra_mut(slot);
            if extra.moved {
                extra.moved = false;
                self.moved.remove(&old);
            }
            let extra = self.messages.extra_mut(slot);
            (extra.link, extra.links, extra.link_bytes) = (None, 0, 0);
        }
    }

    /// Writes the base of a queue.
    pub(crate) fn put_queue(&mut self, number: u32) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        let counters = config::counters(&queue.totals);
        let put = record::put_queue(&mut self.journal.frame, number, &queue.queue, &counters);
        let (at, length) = self.journal.placed(put);
        if queue.length > 0 {
            self.journal.let_go(queue.at, queue.length);
        }
        self.journal.keep(at, length);
        (queue.at, queue.length, queue.counted) = (at, length, counters);
    }

    /// Writes what the store knows about itself.
    pub(crate) fn put_store(&mut self) {
        let put = record::put_store(&mut self.journal.frame, &self.store);
        let placed = self.journal.placed(put);
        if self.store_at.1 > 0 {
            self.journal.let_go(self.store_at.0, self.store_at.1);
        }
        self.journal.keep(placed.0, placed.1);
        self.store_at = placed;
    }

    /// Gives up the segments that are clean, now that this is on the disk.
    pub(crate) fn drop_clean(&mut self) -> Result<(), Fault> {
        for _ in 0..std::mem::take(&mut self.cleaner.clean) {
            self.journal.drop_oldest(self.backups == 0)?;
            self.cleaner.cleaned_segments += 1;
        }
        Ok(())
    }

    /// Cleans by itself where the disk is full: nobody else may be able to write. Answers whether there is a frame to
    /// write.
    pub(crate) fn clean_when_full(&mut self) -> Result<bool, Fault> {
        if !self.journal.is_full() || self.cleaning_budget(ALLOWANCE_BYTES_MIN as u64) == 0 {
            return Ok(false);
        }
        self.journal.admit(ALLOWANCE_BYTES_MIN, Purpose::Clean)?;
        Ok(true)
    }

    /// How many frames it takes at most to clean so many segments.
    pub(crate) fn frames_to_clean(&self, segments: usize) -> usize {
        segments * (self.journal.segment_bytes as usize / ALLOWANCE_BYTES_MIN + 2)
    }

    /// The store's time, for the header of a frame.
    pub(crate) fn frame_time(&self) -> Timestamp {
        self.time.floor
    }
}
