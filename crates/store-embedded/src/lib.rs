//! The default store: one writer, group commit, a segmented journal.

mod clock;
pub mod disk;
mod options;

pub use clock::{Clock, MachineClock};
pub use options::{Durability, Options};
