//! Who says what time it is.

use redrive_core::time::Timestamp;

/// The time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Now {
    /// The caller's clock: tests, and stores that have none of their own.
    At(Timestamp),
    /// The database's clock, which all instances share.
    Store,
}

impl From<Timestamp> for Now {
    fn from(at: Timestamp) -> Self {
        Self::At(at)
    }
}
