//! The commands that need no server, and those that look at a machine: the real binary, with good input and with bad.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod config;
mod doctor;
mod manual;
mod run;
mod simulate;
mod store;
mod top;
