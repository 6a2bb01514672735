//! What is kept in memory: the messages, and the queues with their indexes. All of it is derived from the journal.

pub(crate) mod classes;
pub(crate) mod entry;
pub(crate) mod holds;
pub(crate) mod ids;
pub(crate) mod keys;
pub(crate) mod messages;
pub(crate) mod queue;
pub(crate) mod slab;
