//! The suite that every store passes.
//!
//! * [`main`] runs every [`Rule`] against a [`Subject`], each as a test of its own. A rule is an example worth
//!   reading: one file per verb in `rules/`, and one for each promise that spans verbs.
//! * [`model`] runs random histories of every operation against the reference, and shrinks what fails.
//!
//! A store brings a [`Subject`]: how to open an empty one, and how to end it and open it again. What a store
//! says it cannot do is asked of its `Capabilities` and reported as not applicable, never as passed.

mod check;
pub mod model;
mod rules;
mod subject;
mod suite;
mod world;

pub use subject::{Instance, Memory, Setup, Subject};
pub use suite::{Finding, Needs, Rule, check, main, rules};
