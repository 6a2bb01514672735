//! The registry: versioned entries, written all or none.

use redrive_store::{Entry, EntryKey, EntryKind, EntryName, WriteOutcome, Writes};

use crate::core::Core;
use crate::format::Place;
use crate::format::record;

/// An entry, and where its base is.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) entry: Entry,
    pub(crate) at: Place,
    pub(crate) length: u32,
}

impl Core {
    pub(crate) fn registry_get(&self, key: &EntryKey) -> Option<Entry> {
        self.registry.get(key).map(|registered| registered.entry.clone())
    }

    pub(crate) fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: usize,
    ) -> Vec<Entry> {
        let of_kind = self.registry.values().map(|registered| &registered.entry);
        let of_kind = of_kind.filter(|entry| entry.key.kind == kind);
        let beyond = of_kind.filter(|entry| after.is_none_or(|after| entry.key.name > *after));
        beyond.take(limit).cloned().collect()
    }

    pub(crate) fn registry_write(&mut self, writes: Writes) -> WriteOutcome {
        for (index, write) in writes.items().iter().enumerate() {
            let actual = self.registry.get(&write.key).map(|registered| registered.entry.version);
            if !write.expect.holds(actual) {
                return WriteOutcome::Conflict { index, actual };
            }
        }
        let mut versions = Vec::new();
        for write in writes.into_items() {
            match write.value {
                None => {
                    if let Some(registered) = self.registry.get(&write.key) {
                        record::put_entry_gone(&mut self.journal.frame, &write.key, registered.at);
                    }
                    self.apply_entry_gone(&write.key);
                    versions.push(None);
                }
                Some(value) => {
                    let version = self.next_version();
                    let put = record::put_entry(&mut self.journal.frame, &write.key, version, &value);
                    let placed = self.journal.placed(put);
                    self.apply_entry(Entry { key: write.key, version, value }, placed);
                    versions.push(Some(version));
                }
            }
        }
        WriteOutcome::Committed(versions)
    }

    pub(crate) fn apply_entry(&mut self, entry: Entry, (at, length): (Place, u32)) {
        self.store.version = self.store.version.max(entry.version);
        self.apply_entry_gone(&entry.key);
        self.journal.keep(at, length);
        self.registry.insert(entry.key.clone(), Registered { entry, at, length });
    }

    pub(crate) fn apply_entry_gone(&mut self, key: &EntryKey) {
        if let Some(before) = self.registry.remove(key) {
            self.journal.let_go(before.at, before.length);
        }
    }
}
