//! How urgent a message is among those of its fairness key.

use crate::invalid::Invalid;

/// 0 to 9, 9 first, 5 unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Served after everything else of its key.
    pub const MIN: Self = Self(0);
    /// Served before everything else of its key.
    pub const MAX: Self = Self(9);

    /// Refuses anything above 9.
    pub fn new(level: u8) -> Result<Self, Invalid> {
        if level <= Self::MAX.0 { Ok(Self(level)) } else { Err(Invalid::out_of_range("priority", 0, 9)) }
    }

    /// The level as a number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self(5)
    }
}
