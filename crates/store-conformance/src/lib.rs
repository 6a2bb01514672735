//! The suite that every store passes.
//!
//! [`main`] runs every [`Rule`] against a [`Subject`] as tests of their own.

mod check;
mod rules;
mod subject;
mod suite;
mod world;

pub use subject::{Instance, Memory, Setup, Subject};
pub use suite::{Finding, Needs, Rule, check, main, rules};
