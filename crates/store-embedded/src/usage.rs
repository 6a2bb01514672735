//! What the journal takes, and what it has done.

use redrive_store::StoreError;

use crate::core::Core;
use crate::engine::Later;
use crate::store::EmbeddedStore;

/// What the journal takes, and what it has done since the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Segments that are kept.
    pub segments: u64,
    /// Files that hold nothing and take the next segments.
    pub spares: u64,
    /// Bytes that all frames take.
    pub total_bytes: u64,
    /// Bytes of it that are still needed.
    pub live_bytes: u64,
    /// Frames written.
    pub frames: u64,
    /// Files synced for answers.
    pub syncs: u64,
    /// Bytes written, cleaning included.
    pub written_bytes: u64,
    /// Segments cleaned.
    pub cleaned_segments: u64,
    /// Bytes written by cleaning.
    pub cleaned_bytes: u64,
    /// Commands run.
    pub commands: u64,
    /// Whether the disk has no room for another message.
    pub full: bool,
}

impl Core {
    pub(crate) fn usage(&self) -> Usage {
        let journals = [&self.journal, &self.log_journal];
        Usage {
            segments: journals.iter().map(|journal| journal.segments.len() as u64).sum(),
            spares: journals.iter().map(|journal| journal.spares.len() as u64).sum(),
            total_bytes: journals.iter().map(|journal| journal.total_bytes()).sum(),
            live_bytes: journals.iter().map(|journal| journal.live_bytes).sum(),
            frames: journals.iter().map(|journal| journal.written.frames).sum(),
            syncs: self.syncs,
            written_bytes: journals.iter().map(|journal| journal.written.bytes).sum(),
            cleaned_segments: self.cleaner.cleaned_segments,
            cleaned_bytes: self.cleaner.cleaned_bytes,
            commands: self.commands,
            full: self.journal.is_full(),
        }
    }
}

impl EmbeddedStore {
    /// What the journal takes, and what it has done.
    pub async fn usage(&self) -> Result<Usage, StoreError> {
        self.look(|core| Later::Now(core.usage())).await
    }
}
