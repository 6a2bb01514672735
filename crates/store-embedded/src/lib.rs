//! The default store: one writer, group commit, a segmented journal.
//!
//! Everything durable is in the journal (`format` says how); everything in memory is derived from it (`state`). `core`
//! is the state with the few steps that change it, and each verb is a method of it in the file of its name. `engine`
//! is the step function: commands in, one frame, one sync, answers out. `driver` runs it on a thread, or in the
//! caller's. `scan` and `recover` read a journal back, `clean` keeps it short. `disk` and `clock` are traits, so that
//! tests can take the power away and turn the clock back.

mod backup;
mod batch;
mod bulk;
mod clean;
mod clock;
mod contents;
mod core;
mod count;
mod death;
mod derive;
mod discard;
pub mod disk;
mod driver;
mod engine;
mod enqueue;
mod expire;
mod extend;
mod fault;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod journal;
mod lapse;
mod lease;
mod list;
mod load;
mod log;
mod r#move;
mod nack;
mod options;
mod queue;
mod recover;
mod redrive;
mod registry;
mod release;
mod repair;
mod reschedule;
mod scan;
mod select;
mod settle;
mod state;
mod store;
mod time;
mod undo;
mod usage;
mod verify;

pub use backup::{BackupReport, restore};
pub use clock::{Clock, MachineClock};
pub use contents::{Contents, contents};
pub use options::{Durability, Options};
pub use repair::{RepairReport, repair};
pub use store::{EmbeddedStore, Stepper};
pub use time::StoreClock;
pub use usage::Usage;
pub use verify::{VerifyReport, verify};

/// The segments of the journal.
const SEGMENTS: &str = "segment";
/// The segments of the logs.
const LOGS: &str = "log";
