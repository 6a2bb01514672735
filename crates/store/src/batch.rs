//! Several transitions in one call.

use redrive_core::invalid::Invalid;
use redrive_core::limits::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX};

/// What an item of a batch must be.
pub trait Item {
    /// What it weighs: the bytes of bodies, headers, checkpoints and errors that it carries.
    fn load(&self) -> usize {
        0
    }

    /// Refuses what is over a limit, naming the field.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
}

/// Transitions that travel together. They are applied in order, each with an outcome of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<T> {
    items: Vec<T>,
    all_or_nothing: bool,
}

impl<T: Item> Batch<T> {
    /// Items that succeed or fail one by one.
    pub fn each(items: Vec<T>) -> Result<Self, Invalid> {
        Invalid::check_length("batch", items.len(), BATCH_ITEMS_MAX, "items")?;
        Invalid::check_length("batch", items.iter().map(Item::load).sum(), BATCH_BYTES_MAX, "bytes")?;
        items.iter().try_for_each(Item::check)?;
        Ok(Self { items, all_or_nothing: false })
    }

    /// Items that succeed together or change nothing: where one is refused, the others are `Aborted`. Needs
    /// `Capabilities::atomic_across_queues` where they name more than one queue.
    pub fn all_or_nothing(items: Vec<T>) -> Result<Self, Invalid> {
        Ok(Self { all_or_nothing: true, ..Self::each(items)? })
    }

    /// One item.
    pub fn one(item: T) -> Result<Self, Invalid> {
        Self::each(vec![item])
    }
}

impl<T> Batch<T> {
    /// Whether one refusal undoes all.
    pub fn is_all_or_nothing(&self) -> bool {
        self.all_or_nothing
    }

    /// The items, in order.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The items, in order.
    pub fn into_items(self) -> Vec<T> {
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone)]
    struct Weighs(usize);

    impl Item for Weighs {
        fn load(&self) -> usize {
            self.0
        }
    }

    #[test]
    fn a_batch_is_bounded_in_items_and_bytes() {
        assert!(Batch::each(vec![Weighs(0); BATCH_ITEMS_MAX]).is_ok());
        let items = Batch::each(vec![Weighs(0); BATCH_ITEMS_MAX + 1]).unwrap_err();
        assert_eq!(items.to_string(), "batch: is 1001 items long, the limit is 1000");
        assert!(Batch::each(vec![Weighs(BATCH_BYTES_MAX)]).is_ok());
        let bytes = Batch::all_or_nothing(vec![Weighs(BATCH_BYTES_MAX), Weighs(1)]).unwrap_err();
        assert_eq!(bytes.to_string(), "batch: is 16777217 bytes long, the limit is 16777216");
    }
}
