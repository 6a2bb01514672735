//! The event bus: topics, subscriptions, and what brings events to them.

pub mod webhook;
