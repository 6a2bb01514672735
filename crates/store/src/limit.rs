//! How much one call may ask for.

use redrive_core::invalid::Invalid;
use redrive_core::limits::{LEASE_SETTLES_MAX, PAGE_ITEMS_MAX};

/// 1 to [`PAGE_ITEMS_MAX`] items. Never none: a step of nothing would never come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Limit(usize);

impl Limit {
    /// One item.
    pub const ONE: Self = Self(1);
    /// As many as a call may ask for.
    pub const MAX: Self = Self(PAGE_ITEMS_MAX);

    /// How many overdue leases one lease call ends, and how many waiting messages it lapses, at most.
    pub const LEASE_SETTLES: Self = Self(LEASE_SETTLES_MAX);

    /// Refuses 0 and anything above [`PAGE_ITEMS_MAX`].
    pub fn new(items: usize) -> Result<Self, Invalid> {
        if (1..=PAGE_ITEMS_MAX).contains(&items) {
            Ok(Self(items))
        } else {
            Err(Invalid::out_of_range("limit", 1, PAGE_ITEMS_MAX))
        }
    }

    /// The number of items.
    pub const fn get(self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_neither_none_nor_too_many() {
        assert_eq!(Limit::new(0).unwrap_err().to_string(), "limit: must lie between 1 and 1000");
        assert!(Limit::new(PAGE_ITEMS_MAX + 1).is_err());
        assert_eq!((Limit::new(1), Limit::new(PAGE_ITEMS_MAX)), (Ok(Limit::ONE), Ok(Limit::MAX)));
    }
}
