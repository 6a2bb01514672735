//! Everything the store knows, and the few steps that every verb is made of.
//!
//! A verb reads the state, asks the rules of `redrive-core`, and then takes one of these steps: [`Core::admit_message`],
//! [`Core::change`], [`Core::remove`]. Each puts a record into the frame that is being made and applies it at once; when a
//! journal is read back, the same records are applied by the same functions. Nothing here waits for the disk: the
//! engine does, before it lets an answer go.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use redrive_core::lease::LeaseId;
use redrive_core::lifecycle::Verb;
use redrive_core::message::{FairnessKey, Message, MessageId, MessageType, Progress, Source};
use redrive_core::queue::{QueueName, Totals};
use redrive_core::time::Timestamp;
use redrive_store::{EntryKey, LogName, QueueNotFound, StoreError};

use crate::Options;
use crate::clean::Cleaner;
use crate::fault::Fault;
use crate::format::message::{Link, Until, put_spec};
use crate::format::record::{self, ChangeRecord, HoldKey, MessageParts, StoreRecord};
use crate::format::{Place, bytes::size};
use crate::journal::Journal;
use crate::log::Log;
use crate::registry::Registered;
use crate::state::entry::{Entry, Extra, Stage};
use crate::state::holds::{self, Hold};
use crate::state::ids;
use crate::state::messages::Messages;
use crate::state::queue::QueueState;
use crate::time::Time;
use crate::undo::Undo;

/// A message whose history has this many links gets a new base before the next: reading it must not take for ever.
const LINKS_MAX: u32 = 32;

/// Everything the store knows.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) options: Options,
    pub(crate) journal: Journal,
    /// The segments of the logs.
    pub(crate) log_journal: Journal,
    pub(crate) store: StoreRecord,
    pub(crate) store_at: (Place, u32),
    pub(crate) time: Time,
    pub(crate) messages: Messages,
    pub(crate) names: BTreeMap<QueueName, u32>,
    pub(crate) queues: HashMap<u32, Box<QueueState>>,
    pub(crate) registry: BTreeMap<EntryKey, Registered>,
    pub(crate) logs: BTreeMap<LogName, Log>,
    pub(crate) cleaner: Cleaner,
    /// Messages whose base names the queue that they were moved from, by that base.
    pub(crate) moved: HashMap<Place, u32>,
    /// Queues whose totals are to be written with this frame.
    pub(crate) dirty: Vec<u32>,
    /// What an all-or-nothing batch did so far.
    pub(crate) undo: Option<Undo>,
    /// Commands that ran since the store was opened.
    pub(crate) commands: u64,
    /// Files that were synced for answers since the store was opened.
    pub(crate) syncs: u64,
    /// Backups under way: what they read must not be written over.
    pub(crate) backups: u32,
    /// The disk failed while a verb was at it; the engine stops.
    pub(crate) fault: Option<Fault>,
}

/// A message on its way into memory.
pub(crate) struct Arrival<'a> {
    pub(crate) id: u128,
    pub(crate) queue: u32,
    pub(crate) at: Place,
    pub(crate) length: u32,
    pub(crate) load: u32,
    pub(crate) names: Names<'a>,
    pub(crate) progress: Progress,
    pub(crate) extra: Extra,
}

/// What a queue keeps once for all messages that have it.
pub(crate) enum Names<'a> {
    /// Type, source and fairness key.
    Given { kind: &'a str, source: &'a str, key: &'a str },
    /// The numbers of key and class, which count the message already.
    Joined(u32, u16),
}

impl Core {
    pub(crate) fn number(&self, name: &QueueName) -> Result<u32, QueueNotFound> {
        self.names.get(name).copied().ok_or_else(|| QueueNotFound(name.clone()))
    }

    pub(crate) fn queue(&self, number: u32) -> &QueueState {
        self.queues.get(&number).expect("a number in use belongs to a queue")
    }

    pub(crate) fn queue_mut(&mut self, number: u32) -> &mut QueueState {
        self.queues.get_mut(&number).expect("a number in use belongs to a queue")
    }

    /// The queue of a message, and the messages, to be changed together.
    pub(crate) fn parts(&mut self, number: u32) -> (&mut QueueState, &mut Messages) {
        let queue = self.queues.get_mut(&number).expect("a number in use belongs to a queue");
        (queue, &mut self.messages)
    }

    /// The numbers of the queues that a sweeper was sent to: one, or all.
    pub(crate) fn numbers_of(&self, name: Option<&QueueName>) -> Result<Vec<u32>, QueueNotFound> {
        match name {
            Some(name) => self.number(name).map(|number| vec![number]),
            None => Ok(self.names.values().copied().collect()),
        }
    }

    pub(crate) fn find(&self, queue: u32, id: MessageId) -> Option<u32> {
        self.queue(queue).ids.get(ids::number(id))
    }

    pub(crate) fn id(&self, slot: u32) -> MessageId {
        ids::id(self.messages.at(slot).id())
    }

    /// The next place at the back of every line.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.store.sequence += 1;
        self.store.sequence
    }

    /// A version that was never used.
    pub(crate) fn next_version(&mut self) -> u64 {
        self.store.version += 1;
        self.store.version
    }

    /// The lease id after so many others of this call.
    pub(crate) fn lease_id(&self, ahead: u64) -> Result<LeaseId, StoreError> {
        let counter = self.store.leases + 1 + ahead;
        LeaseId::new(self.store.epoch, counter).ok_or(StoreError::Exhausted("lease ids"))
    }

    /// The totals of a queue, which will be written with this frame.
    pub(crate) fn totals(&mut self, number: u32) -> &mut Totals {
        let queue = self.queues.get_mut(&number).expect("a number in use belongs to a queue");
        if let Some(undo) = &mut self.undo {
            undo.remember_totals(number, queue.totals);
        }
        if !queue.dirty {
            queue.dirty = true;
            self.dirty.push(number);
        }
        &mut queue.totals
    }

    pub(crate) fn count(&mut self, number: u32, verb: Verb) {
        self.totals(number).count(verb);
    }

    /// A message comes into being: its base is written, and its dedup key is taken.
    pub(crate) fn admit_message(
        &mut self,
        message: &Message,
        number: u32,
        hold: Option<(u128, Until)>,
    ) -> u32 {
        let load = size(message.spec.body.bytes().len() + message.spec.headers.size());
        let parts = MessageParts {
            id: message.id(),
            queue: number,
            created_at: message.created_at,
            load,
            replaces: None,
            progress: &message.progress,
            hold,
        };
        let spec = &message.spec;
        let put = record::put_message(&mut self.journal.frame, &parts, |out| put_spec(out, spec), |_| ());
        let (at, length) = self.journal.placed(put);
        let slot = self.attach(Arrival {
            id: ids::number(message.id()),
            queue: number,
            at,
            length,
            load,
            names: Names::Given {
                kind: spec.kind.as_str(),
                source: spec.source.as_str(),
                key: spec.fairness_key.as_str(),
            },
            progress: message.progress.clone(),
            extra: Extra {
                max_attempts: spec.max_attempts,
                lease_timeout: spec.lease_timeout,
                ..Extra::default()
            },
        });
        if let Some((digest, until)) = hold {
            self.take_key(HoldKey { queue: number, digest }, message.id(), until, at, Some(slot));
        }
        if let Some(undo) = &mut self.undo {
            undo.created(number, ids::number(message.id()), hold.map(|(digest, _)| digest));
        }
        slot
    }

    /// Takes a dedup key for a message, which may be gone.
    pub(crate) fn take_key(
        &mut self,
        key: HoldKey,
        message: MessageId,
        until: Until,
        at: Place,
        slot: Option<u32>,
    ) {
        let Some(queue) = self.queues.get_mut(&key.queue) else { return };
        if let Some(before) = queue.holds.remove(key.digest) {
            self.journal.let_go(before.at, 0);
        }
        queue.holds.insert(Hold::new(key.digest, ids::number(message), until, at));
        self.journal.keep(at, 0);
        if let Some(slot) = slot.filter(|_| until == Until::Done) {
            self.messages.extra_mut(slot).unique = Some(key.digest);
        }
    }

    /// Lets the key go that a message holds while it is not done.
    fn let_key_go(&mut self, slot: u32) {
        let Some(digest) = self.messages.extra(slot).and_then(|extra| extra.unique) else { return };
        self.messages.extra_mut(slot).unique = None;
        let number = self.messages.at(slot).queue;
        if let Some(hold) = self.queue_mut(number).holds.remove(digest) {
            self.journal.let_go(hold.at, 0);
        }
    }

    /// Forgets the dedup keys of a queue whose time is over.
    pub(crate) fn forget_keys(&mut self, number: u32, now: Timestamp) {
        let Some(queue) = self.queues.get_mut(&number) else { return };
        while let Some(hold) = queue.holds.forget_one(now) {
            self.journal.let_go(hold.at, 0);
        }
    }

    /// Brings a message into memory, and into the indexes of its queue.
    pub(crate) fn attach(&mut self, arrival: Arrival<'_>) -> u32 {
        let now = self.time.floor;
        let queue = self.queues.get_mut(&arrival.queue).expect("a message arrives in a queue that is there");
        self.journal.keep(arrival.at, arrival.length + arrival.extra.link_bytes);
        let mut entry = Entry::new(arrival.id, arrival.at, arrival.length, arrival.queue);
        entry.load = arrival.load;
        (entry.key, entry.class) = match arrival.names {
            Names::Given { kind, source, key } => (queue.keys.join(key), queue.classes.join(kind, source)),
            Names::Joined(key, class) => (key, class),
        };
        let moved = arrival.extra.moved;
        let slot = self.messages.insert(entry, arrival.progress, arrival.extra);
        if moved {
            self.moved.insert(arrival.at, slot);
        }
        if !queue.reading && !queue.ids.insert(arrival.id, slot) {
            self.fault.get_or_insert(Fault::new("taking a message in", "it is there already"));
        }
        queue.index(&mut self.messages, slot, now);
        slot
    }

    /// Takes a message out of memory, and out of the indexes of its queue.
    pub(crate) fn detach(&mut self, slot: u32) {
        let entry = self.messages.at(slot);
        let (id, at, number) = (entry.id(), entry.at, entry.queue);
        let (key, class) = (entry.key, entry.class);
        if self.messages.extra(slot).is_some_and(|extra| extra.moved) {
            self.moved.remove(&at);
        }
        let bytes = entry.length + self.messages.extra(slot).map_or(0, |extra| extra.link_bytes);
        let (queue, messages) = self.parts(number);
        queue.unindex(messages, slot);
        if !queue.reading {
            queue.ids.remove(id);
        }
        queue.keys.leave(key);
        queue.classes.leave(class);
        messages.remove(slot);
        self.journal.let_go(at, bytes);
    }

    /// Messages are gone: one record for all of them.
    pub(crate) fn remove_all(&mut self, slots: &[u32]) {
        if slots.is_empty() {
            return;
        }
        let messages = &self.messages;
        record::put_gone(&mut self.journal.frame, slots.iter().map(|slot| messages.at(*slot).at));
        for slot in slots {
            self.remember(*slot);
            self.apply_gone(*slot);
        }
    }

    /// A message is gone.
    pub(crate) fn apply_gone(&mut self, slot: u32) {
        self.let_key_go(slot);
        self.detach(slot);
    }

    /// A message stands elsewhere, and something may have happened to it.
    pub(crate) fn change(&mut self, slot: u32, progress: Progress, queue: Option<u32>, mut link: Link) {
        self.remember(slot);
        if self.undo.is_none() && self.messages.extra(slot).is_some_and(|extra| extra.links >= LINKS_MAX) {
            self.rebase(slot);
        }
        let link = (!link.is_empty()).then(|| {
            link.before = self.messages.extra(slot).and_then(|extra| extra.link);
            link
        });
        let change = ChangeRecord { base: self.messages.at(slot).at, progress, queue, link };
        let put = record::put_change(&mut self.journal.frame, &change);
        let placed = self.journal.placed(put);
        self.apply_change(slot, change, placed);
    }

    /// Carries out a change that was written at that place.
    pub(crate) fn apply_change(&mut self, slot: u32, change: ChangeRecord, placed: (Place, u32)) {
        let now = self.time.floor;
        let number = self.messages.at(slot).queue;
        let (queue, messages) = self.parts(number);
        queue.unindex(messages, slot);
        let ended = !matches!(
            change.progress.phase,
            redrive_core::message::Phase::Waiting | redrive_core::message::Phase::Leased(_)
        );
        if ended || change.queue.is_some() {
            self.let_key_go(slot);
        }
        if let Some(target) = change.queue {
            self.carry_over(slot, target);
        }
        self.messages.set_progress(slot, change.progress);
        if let Some(link) = change.link {
            self.journal.live_bytes += u64::from(placed.1);
            let extra = self.messages.extra_mut(slot);
            extra.link = Some(placed);
            extra.links += 1;
            extra.link_bytes += placed.1;
            if let Some(checkpoint) = &link.checkpoint {
                extra.checkpoint = size(checkpoint.bytes().len());
            }
        }
        let number = self.messages.at(slot).queue;
        let (queue, messages) = self.parts(number);
        queue.index(messages, slot, now);
    }

    /// Takes a message that is in no index from its queue to another.
    fn carry_over(&mut self, slot: u32, target: u32) {
        let (kind, source, key) = self.names_of(slot);
        let entry = self.messages.at(slot);
        let (id, number, old_key, old_class) = (entry.id(), entry.queue, entry.key, entry.class);
        let queue = self.queue_mut(number);
        let reading = queue.reading;
        if !reading {
            queue.ids.remove(id);
        }
        queue.keys.leave(old_key);
        queue.classes.leave(old_class);
        let queue = self.queue_mut(target);
        let key = queue.keys.join(key.as_str());
        let class = queue.classes.join(kind.as_str(), source.as_str());
        if !reading {
            queue.ids.insert(id, slot);
        }
        let entry = self.messages.at_mut(slot);
        (entry.queue, entry.key, entry.class) = (target, key, class);
        let at = entry.at;
        self.messages.extra_mut(slot).moved = true;
        self.moved.insert(at, slot);
    }

    /// Type, source and fairness key of a message.
    pub(crate) fn names_of(&self, slot: u32) -> (MessageType, Source, FairnessKey) {
        let entry = self.messages.at(slot);
        let queue = self.queue(entry.queue);
        let (kind, source) = queue.classes.get(entry.class);
        (kind.clone(), source.clone(), queue.keys.name(entry.key).clone())
    }

    /// A message was handed out.
    pub(crate) fn apply_lease(&mut self, slot: u32, held: crate::state::entry::Held) {
        let now = self.time.floor;
        let number = self.messages.at(slot).queue;
        let (queue, messages) = self.parts(number);
        queue.unindex(messages, slot);
        messages.set_leased(slot, held);
        queue.index(messages, slot, now);
    }

    /// Whether the message waits, is leased, or has ended.
    pub(crate) fn stage(&self, slot: u32) -> Stage {
        self.messages.at(slot).stage
    }

    /// Writes what the queues have counted since the last frame.
    pub(crate) fn put_counts(&mut self) {
        for number in std::mem::take(&mut self.dirty) {
            let Some(queue) = self.queues.get_mut(&number) else { continue };
            queue.dirty = false;
            let more = queue.uncounted();
            if more.iter().any(|count| *count > 0) {
                record::put_counts(&mut self.journal.frame, number, queue.at, &more);
                queue.counted = crate::format::config::counters(&queue.totals);
            }
        }
    }

    /// What a dedup key is kept as in a queue, and until when.
    pub(crate) fn hold_of(
        &self,
        number: u32,
        dedup: &redrive_core::message::Dedup,
        now: Timestamp,
    ) -> (u128, Until) {
        let until = match dedup.unique {
            redrive_core::message::Uniqueness::UntilDone => Until::Done,
            redrive_core::message::Uniqueness::Window => {
                Until::Time(now.plus(self.queue(number).settings.dedup_window))
            }
        };
        (holds::digest(&dedup.key), until)
    }
}
