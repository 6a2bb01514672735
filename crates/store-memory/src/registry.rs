//! The registry: versioned entries, written all or none.

use redrive_store::{Entry, EntryKey, EntryKind, EntryName, WriteOutcome, Writes};

use crate::state::State;

impl State {
    pub(crate) fn registry_get(&self, key: &EntryKey) -> Option<Entry> {
        self.registry.get(key).cloned()
    }

    pub(crate) fn registry_list(
        &self,
        kind: EntryKind,
        after: Option<&EntryName>,
        limit: usize,
    ) -> Vec<Entry> {
        let of_kind = self.registry.values().filter(|entry| entry.key.kind == kind);
        of_kind
            .filter(|entry| after.is_none_or(|after| entry.key.name > *after))
            .take(limit)
            .cloned()
            .collect()
    }

    pub(crate) fn registry_write(&mut self, writes: Writes) -> WriteOutcome {
        for (index, write) in writes.items().iter().enumerate() {
            let actual = self.registry.get(&write.key).map(|entry| entry.version);
            if !write.expect.holds(actual) {
                return WriteOutcome::Conflict { index, actual };
            }
        }
        let mut versions = Vec::new();
        for write in writes.into_items() {
            match write.value {
                None => {
                    self.registry.remove(&write.key);
                    versions.push(None);
                }
                Some(value) => {
                    let version = self.next_version();
                    self.registry.insert(write.key.clone(), Entry { key: write.key, version, value });
                    versions.push(Some(version));
                }
            }
        }
        WriteOutcome::Committed(versions)
    }
}
