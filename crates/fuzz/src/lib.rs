//! Hostile bytes for every parser of bytes that come from outside.
//!
//! * [`targets`] has one function for each parser. It feeds it and checks what must hold whatever it was fed.
//! * [`TARGETS`] is the table of them; everything else goes by it.
//! * [`trial`] runs one input: a panic is a failure, and so is an allocation that the input does not pay for.
//! * [`mutate`] makes inputs of other inputs, and [`search`] does that for a while, keeps what led somewhere new, and
//!   makes what failed as small as it can.
//! * [`corpus`] reads the inputs that everybody starts with.
//!
//! The tests of this crate search for a second a target. `cargo xtask fuzz` runs the same functions under libFuzzer, which
//! sees every branch that an input takes, for as long as one likes.

pub mod corpus;
pub mod mutate;
pub mod search;
mod table;
mod target;
pub mod targets;
pub mod trial;

pub use table::{TARGETS, named};
pub use target::Target;
