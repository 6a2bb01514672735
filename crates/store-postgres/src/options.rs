//! What a store is opened with.

use redrive_core::limits::Limits;
use redrive_core::queue::QueueSettings;

/// How often an answer of PostgreSQL must have reached a disk before it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Whatever the server is set to.
    Any,
    /// The end of the server's process loses nothing: `synchronous_commit` is on.
    Local,
    /// The end of the primary's disk loses nothing either: there is a synchronous standby.
    Replicated,
}

/// What a store is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the database is, as libpq would take it: `postgres://user:password@host:port/database`.
    pub url: String,
    /// The schema that everything is kept in.
    pub schema: String,
    /// Most connections that one instance opens, its listener not counted.
    pub connections: usize,
    /// Whether a proxy may give each transaction another connection, so that nothing can be prepared ahead.
    pub transaction_pooling: bool,
    /// The settings of a queue that sets nothing.
    pub defaults: QueueSettings,
    /// What a queue may hold.
    pub limits: Limits,
    /// The first epoch of lease ids, where the database has none yet.
    pub first_epoch: u16,
    /// What the server must promise for the store to open.
    pub durability: Durability,
}

impl Options {
    /// The defaults, at that address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            schema: "redrive".to_owned(),
            connections: 16,
            transaction_pooling: false,
            defaults: QueueSettings::default(),
            limits: Limits::default(),
            first_epoch: 1,
            durability: Durability::Local,
        }
    }
}
