//! A disk in memory that keeps the promises of POSIX and not one more, and can be told to fail.
//!
//! A file is what a reader sees, what is durable, and the writes in between; a directory is the same for names.
//! [`SimulatedDisk::crash`] answers what a power cut leaves behind: of the writes that were not synced each is
//! lost, kept, or torn at sectors, and of the names any set that could have come to be. Everything follows from the
//! seed.

mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::state::{EIO, ENOSPC, Fault, Inode, NameChange, Pending, State, error};
use super::{Disk, File};

/// What a disk writes in one piece.
pub const SECTOR_BYTES: usize = 512;

/// What can be asked of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// [`Disk::create`].
    Create,
    /// [`Disk::open`].
    Open,
    /// [`Disk::list`].
    List,
    /// [`Disk::rename`].
    Rename,
    /// [`Disk::remove`].
    Remove,
    /// [`Disk::sync_names`].
    SyncNames,
    /// [`File::read_at`].
    Read,
    /// [`File::write_at`].
    Write,
    /// [`File::sync`].
    Sync,
}

impl Call {
    /// Every call.
    pub const ALL: [Self; 9] = [
        Self::Create,
        Self::Open,
        Self::List,
        Self::Rename,
        Self::Remove,
        Self::SyncNames,
        Self::Read,
        Self::Write,
        Self::Sync,
    ];

    /// Those that change something.
    pub const CHANGES: [Self; 6] =
        [Self::Create, Self::Rename, Self::Remove, Self::SyncNames, Self::Write, Self::Sync];
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The call fails with EIO; part of what it wrote may be there.
    Eio,
    /// The call fails with ENOSPC; part of what it wrote may be there.
    Enospc,
    /// Nothing is ever answered again: this call and all after it fail, and it may have done its work.
    PowerCut,
}

/// What a test may switch: each is a way in which a disk lies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lies {
    /// A sync of a file answers OK and does nothing.
    pub ignore_sync: bool,
    /// A sync of the names answers OK and does nothing.
    pub ignore_sync_names: bool,
    /// After a failed sync everything that was pending is lost, and the next sync answers OK; otherwise chance
    /// decides what is lost.
    pub lie_after_failed_sync: bool,
}

/// A disk in memory. Clones share it.
#[derive(Debug)]
pub struct SimulatedDisk {
    state: Arc<Mutex<State>>,
    /// Whether this handle has the lock; dropping it lets the lock go.
    owner: AtomicBool,
}

impl Clone for SimulatedDisk {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), owner: AtomicBool::new(false) }
    }
}

impl Drop for SimulatedDisk {
    fn drop(&mut self) {
        if self.owner.load(Ordering::SeqCst) {
            self.state().locked = false;
        }
    }
}

impl SimulatedDisk {
    /// An empty disk whose chance comes from `seed`.
    pub fn new(seed: u64) -> Self {
        Self::of(State::new(seed))
    }

    fn of(state: State) -> Self {
        Self { state: Arc::new(Mutex::new(state)), owner: AtomicBool::new(false) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The disk after the process ended: everything written is there, durable or not, and nobody has the lock.
    #[must_use]
    pub fn kill(&self) -> Self {
        let mut state = self.state();
        let seed = state.dice.roll();
        Self::of(state.clone().restarted(seed))
    }

    /// The disk after a power cut: of what was not synced, whatever chance leaves.
    #[must_use]
    pub fn crash(&self) -> Self {
        let mut state = self.state();
        let seed = state.dice.roll();
        let mut next = state.clone().restarted(seed);
        drop(state);
        next.cut();
        Self::of(next)
    }

    /// Lets one of the next `calls` fail, after `skip` of them went well.
    pub fn fail(&self, calls: &[Call], skip: u64, trouble: Trouble) {
        let mut state = self.state();
        state.fault = Some(Fault { calls: calls.to_vec(), skip, trouble });
        state.fired = None;
    }

    /// Takes back what was told to fail and did not yet.
    pub fn disarm(&self) {
        self.state().fault = None;
    }

    /// Whether that call may still be made to fail.
    pub fn awaits(&self, call: Call) -> bool {
        self.state().fault.as_ref().is_some_and(|fault| fault.calls.contains(&call))
    }

    /// The call that was made to fail, if it came to that.
    pub fn fired(&self) -> Option<Call> {
        self.state().fired
    }

    /// Whether the power is off.
    pub fn is_off(&self) -> bool {
        self.state().off
    }

    /// How many bytes all files together may have; `None` is no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// How many bytes all files have together.
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// Sets how the disk lies.
    pub fn set_lies(&self, lies: Lies) {
        self.state().lies = lies;
    }

    /// How often something was asked.
    pub fn count(&self, call: Call) -> u64 {
        self.state().counts.get(&call).copied().unwrap_or_default()
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.state().counts.values().sum()
    }

    /// What a reader sees in a file; `None` where there is none of that name.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        let state = self.state();
        state.inodes.get(state.names.get(name)?).map(|inode| inode.seen.clone())
    }

    /// Turns one bit of a file over, on the medium and in every cache; `false` where the file has no such byte.
    pub fn flip(&self, name: &str, offset: u64, bit: u8) -> bool {
        let Some(mut byte) = usize::try_from(offset).ok().and_then(|at| self.content(name)?.get(at).copied())
        else {
            return false;
        };
        byte ^= 1 << (bit % 8);
        self.overwrite(name, offset, &[byte])
    }

    /// Puts other bytes on the medium and into every cache; `false` where the file does not have as many.
    pub fn overwrite(&self, name: &str, offset: u64, bytes: &[u8]) -> bool {
        let mut state = self.state();
        let Some(inode) = state.names.get(name).copied() else {
            return false;
        };
        let Ok(offset) = usize::try_from(offset) else {
            return false;
        };
        let Some(inode) = state.inodes.get_mut(&inode) else {
            return false;
        };
        if offset + bytes.len() > inode.seen.len() {
            return false;
        }
        let pending = Pending { offset, bytes: bytes.to_vec(), doomed: false };
        pending.land(&mut inode.seen, |_| true);
        pending.land(&mut inode.durable, |_| true);
        inode.pending.push(pending);
        true
    }

    /// Cuts a file short, on the medium and in every cache.
    pub fn truncate(&self, name: &str, size: u64) {
        let mut state = self.state();
        let Some(inode) = state.names.get(name).copied() else {
            return;
        };
        if let (Some(inode), Ok(size)) = (state.inodes.get_mut(&inode), usize::try_from(size)) {
            inode.seen.truncate(size);
            inode.durable.truncate(size);
        }
    }

    fn handle(&self, inode: u64) -> Arc<dyn File> {
        Arc::new(SimulatedFile { state: Arc::clone(&self.state), inode })
    }
}

fn not_found(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("there is no file {name}"))
}

impl Disk for SimulatedDisk {
    fn lock(&self) -> io::Result<bool> {
        let mut state = self.state();
        if state.off {
            return Err(error(EIO));
        }
        let free = !state.locked;
        if free {
            state.locked = true;
            self.owner.store(true, Ordering::SeqCst);
        }
        Ok(free || self.owner.load(Ordering::SeqCst))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.guard(Call::List, |_, _| ())?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str, size: u64) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        let bytes = vec![0; usize::try_from(size).map_err(|_| error(ENOSPC))?];
        let (inode, used) = (state.next_inode, state.used());
        state.next_inode += 1;
        let make = |state: &mut State| {
            let (seen, durable) = (bytes.clone(), bytes.clone());
            state.inodes.insert(inode, Inode { seen, durable, pending: Vec::new() });
            state.change(NameChange::Create(name.to_owned(), inode));
        };
        if state.names.contains_key(name) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("there is a file {name}")));
        }
        state.guard(Call::Create, |state, trouble| {
            if state.just_made_it(trouble) {
                make(state);
            }
        })?;
        if state.capacity.is_some_and(|capacity| used + size > capacity) {
            return Err(error(ENOSPC));
        }
        make(&mut state);
        drop(state);
        Ok(self.handle(inode))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        state.guard(Call::Open, |_, _| ())?;
        let inode = *state.names.get(name).ok_or_else(|| not_found(name))?;
        drop(state);
        Ok(self.handle(inode))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(from) {
            return Err(not_found(from));
        }
        let rename = |state: &mut State| state.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        state.guard(Call::Rename, |state, trouble| {
            if state.just_made_it(trouble) {
                rename(state);
            }
        })?;
        rename(&mut state);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        if !state.names.contains_key(name) {
            return Err(not_found(name));
        }
        let remove = |state: &mut State| state.change(NameChange::Remove(name.to_owned()));
        state.guard(Call::Remove, |state, trouble| {
            if state.just_made_it(trouble) {
                remove(state);
            }
        })?;
        remove(&mut state);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.state();
        // A file system that cannot write its own journal stops, so a later sync that succeeds has written all.
        state.guard(Call::SyncNames, |_, _| ())?;
        if !state.lies.ignore_sync_names {
            state.sync_names();
        }
        Ok(())
    }

    fn place(&self, name: &str) -> String {
        format!("disk/{name}")
    }
}

#[derive(Debug)]
struct SimulatedFile {
    state: Arc<Mutex<State>>,
    inode: u64,
}

impl SimulatedFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seen(state: &State, inode: u64) -> io::Result<&[u8]> {
    state.inodes.get(&inode).map(|inode| inode.seen.as_slice()).ok_or_else(|| error(EIO))
}

impl File for SimulatedFile {
    fn size(&self) -> io::Result<u64> {
        Ok(seen(&self.state(), self.inode)?.len() as u64)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        let offset = usize::try_from(offset).map_err(|_| error(ENOSPC))?;
        // The engine writes into space that it has preallocated, and nowhere else.
        if offset + bytes.len() > seen(&state, self.inode)?.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a write beyond the end of the file"));
        }
        state.guard(Call::Write, |state, _| {
            let written = usize::try_from(state.dice.between(0, bytes.len() as u64));
            state.write(self.inode, offset, written.ok().and_then(|end| bytes.get(..end)).unwrap_or(bytes));
        })?;
        state.write(self.inode, offset, bytes);
        Ok(())
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let mut state = self.state();
        state.guard(Call::Read, |_, _| ())?;
        let end = || io::Error::new(io::ErrorKind::UnexpectedEof, "a read beyond the end of the file");
        let offset = usize::try_from(offset).map_err(|_| end())?;
        let bytes = seen(&state, self.inode)?;
        let bytes = offset.checked_add(into.len()).and_then(|to| bytes.get(offset..to)).ok_or_else(end)?;
        into.copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.guard(Call::Sync, |state, trouble| match trouble {
            Trouble::PowerCut => (),
            Trouble::Eio | Trouble::Enospc => state.doom(self.inode),
        })?;
        if !state.lies.ignore_sync {
            state.sync(self.inode);
        }
        Ok(())
    }
}
