//! The life of a message: one table of arrows, one file for the rule of each verb.
//!
//! The rules are functions over [`Progress`](crate::message::Progress): they take the time, the dice and the
//! next sequence number as arguments and change nothing else, so that a store decides where the result goes.

mod ack;
mod attempt;
mod bury;
mod discard;
mod enqueue;
mod expire;
mod extend;
mod lapse;
mod lease;
mod r#move;
mod nack;
mod redrive;
mod release;
mod reschedule;
mod table;

pub use ack::ack;
pub use attempt::{Ended, Terms};
pub use bury::bury;
pub use discard::may_discard;
pub use enqueue::{Draft, When, enqueue};
pub use expire::{OVERDUE_ERROR, expire};
pub use extend::extend;
pub use lapse::{lapse, lapse_reason};
pub use lease::{lease, lease_time, may_lease};
pub use r#move::{arrive, may_move, move_to};
pub use nack::nack;
pub use redrive::redrive;
pub use release::release;
pub use reschedule::{Reschedule, reschedule};
pub use table::{ARROWS, Arrow, Verb, allows};
