//! What the disk knows, and what each call does to it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use redrive_core::dice::Dice;

use super::{Call, Lies, SECTOR_BYTES, Trouble};

pub(super) const EIO: i32 = 5;
pub(super) const ENOSPC: i32 = 28;

/// What is told to go wrong, and when.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) calls: Vec<Call>,
    pub(super) skip: u64,
    pub(super) trouble: Trouble,
}

/// A write that was not synced yet. One that is doomed never becomes durable, whatever a later sync answers.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) offset: usize,
    pub(super) bytes: Vec<u8>,
    pub(super) doomed: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Inode {
    pub(super) seen: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<Pending>,
}

pub(super) type Names = BTreeMap<String, u64>;

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Create(String, u64),
    Rename(String, String),
    Remove(String),
}

impl NameChange {
    /// Makes the change, if it can be made.
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) next_inode: u64,
    pub(super) names: Names,
    pub(super) durable_names: Names,
    pub(super) pending_names: Vec<NameChange>,
    pub(super) dice: Dice,
    pub(super) fault: Option<Fault>,
    pub(super) fired: Option<Call>,
    pub(super) off: bool,
    pub(super) capacity: Option<u64>,
    pub(super) counts: BTreeMap<Call, u64>,
    pub(super) lies: Lies,
    pub(super) locked: bool,
}

impl Pending {
    /// Writes those sectors of it that `keeps` keeps; what lies beyond the end of the file is gone.
    pub(super) fn land(&self, file: &mut [u8], mut keeps: impl FnMut(usize) -> bool) {
        let mut at = self.offset;
        let end = self.offset + self.bytes.len();
        while at < end {
            let sector = at / SECTOR_BYTES;
            let next = ((sector + 1) * SECTOR_BYTES).min(end);
            let from = self.bytes.get(at - self.offset..next - self.offset);
            if keeps(sector)
                && let (Some(from), Some(to)) = (from, file.get_mut(at..next))
            {
                to.copy_from_slice(from);
            }
            at = next;
        }
    }
}

impl State {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            inodes: BTreeMap::new(),
            next_inode: 1,
            names: Names::new(),
            durable_names: Names::new(),
            pending_names: Vec::new(),
            dice: Dice::seeded(seed),
            fault: None,
            fired: None,
            off: false,
            capacity: None,
            counts: BTreeMap::new(),
            lies: Lies::default(),
            locked: false,
        }
    }

    pub(super) fn used(&self) -> u64 {
        let sizes = self.names.values().filter_map(|inode| self.inodes.get(inode));
        sizes.map(|inode| inode.seen.len() as u64).sum()
    }

    /// The same disk for another process: nothing fails, nobody has the lock, chance goes on from `seed`.
    pub(super) fn restarted(mut self, seed: u64) -> Self {
        self.dice = Dice::seeded(seed);
        (self.fault, self.fired, self.off, self.locked) = (None, None, false, false);
        self.counts.clear();
        self.forget_nameless();
        self
    }

    /// Nobody has a file open any more, so those without a name are gone.
    fn forget_nameless(&mut self) {
        let mut named: BTreeSet<u64> =
            self.names.values().chain(self.durable_names.values()).copied().collect();
        named.extend(self.pending_names.iter().filter_map(|change| match change {
            NameChange::Create(_, inode) => Some(*inode),
            NameChange::Rename(..) | NameChange::Remove(_) => None,
        }));
        self.inodes.retain(|inode, _| named.contains(inode));
    }

    /// Loses what was not durable, as chance decides.
    pub(super) fn cut(&mut self) {
        let mut names = self.durable_names.clone();
        let changes = std::mem::take(&mut self.pending_names);
        // Most file systems keep the order of changes; none promises it.
        let in_order = self.dice.between(0, 1) == 0;
        let kept = self.dice.between(0, changes.len() as u64);
        for (number, change) in changes.iter().enumerate() {
            let survives = if in_order { (number as u64) < kept } else { self.dice.between(0, 1) == 0 };
            if survives {
                change.apply(&mut names);
            }
        }
        let (dice, inodes) = (&mut self.dice, &mut self.inodes);
        inodes.retain(|number, _| names.values().any(|named| named == number));
        for inode in inodes.values_mut() {
            for write in inode.pending.drain(..).filter(|write| !write.doomed) {
                match dice.between(0, 2) {
                    0 => {}
                    1 => write.land(&mut inode.durable, |_| true),
                    _ => write.land(&mut inode.durable, |_| dice.between(0, 1) == 0),
                }
            }
            inode.seen.clone_from(&inode.durable);
        }
        self.durable_names.clone_from(&names);
        self.names = names;
    }

    /// Counts a call, and says what goes wrong with it.
    pub(super) fn enter(&mut self, call: Call) -> Option<Trouble> {
        *self.counts.entry(call).or_default() += 1;
        let fault = self.fault.as_mut().filter(|fault| fault.calls.contains(&call))?;
        if fault.skip > 0 {
            fault.skip -= 1;
            return None;
        }
        let trouble = fault.trouble;
        (self.fault, self.fired) = (None, Some(call));
        Some(trouble)
    }

    /// Counts a call and fails it where it is to fail; `partly` is what it does all the same.
    pub(super) fn guard(&mut self, call: Call, partly: impl FnOnce(&mut Self, Trouble)) -> io::Result<()> {
        if self.off {
            return Err(error(EIO));
        }
        let Some(trouble) = self.enter(call) else {
            return Ok(());
        };
        partly(self, trouble);
        self.off = trouble == Trouble::PowerCut;
        Err(error(if trouble == Trouble::Enospc { ENOSPC } else { EIO }))
    }

    /// Whether a call that the power cut met has done its work.
    pub(super) fn just_made_it(&mut self, trouble: Trouble) -> bool {
        trouble == Trouble::PowerCut && self.dice.between(0, 1) == 0
    }

    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.pending_names.push(change);
    }

    pub(super) fn sync_names(&mut self) {
        for change in std::mem::take(&mut self.pending_names) {
            change.apply(&mut self.durable_names);
        }
    }

    pub(super) fn write(&mut self, inode: u64, offset: usize, bytes: &[u8]) {
        if let Some(inode) = self.inodes.get_mut(&inode) {
            let write = Pending { offset, bytes: bytes.to_vec(), doomed: false };
            write.land(&mut inode.seen, |_| true);
            inode.pending.push(write);
        }
    }

    pub(super) fn sync(&mut self, inode: u64) {
        if let Some(inode) = self.inodes.get_mut(&inode) {
            for write in inode.pending.drain(..).filter(|write| !write.doomed) {
                write.land(&mut inode.durable, |_| true);
            }
        }
    }

    /// After a failed sync the kernel may have dropped what it could not write, and will not say so again.
    pub(super) fn doom(&mut self, inode: u64) {
        let (all, dice) = (self.lies.lie_after_failed_sync, &mut self.dice);
        let pending = self.inodes.get_mut(&inode).map(|inode| &mut inode.pending);
        for write in pending.into_iter().flatten() {
            write.doomed |= all || dice.between(0, 1) == 0;
        }
    }
}

pub(super) fn error(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}
