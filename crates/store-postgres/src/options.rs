//! What a store is opened with.

use std::time::Duration;

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

/// How long a store waits for what.
///
/// Behind a proxy that gives each transaction another connection, what the server should end is set for each transaction;
/// a call that is one statement has only the limits of the role or the database, and ours on answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// For a connection that others use, and for each host that a new one is tried with.
    pub connection: Duration,
    /// For somebody else's lock; then the server ends the statement.
    pub lock: Duration,
    /// For a statement; then the server ends it.
    pub statement: Duration,
    /// For our own next word within a transaction; then the server ends the connection.
    pub idle_in_transaction: Duration,
    /// For an answer, also from a server that cannot say that it ended the statement; then the connection is given up.
    pub answer: Duration,
    /// For a word from a connection that is at rest, before it is asked whether it is still there.
    pub silence: Duration,
    /// For what became of a commit whose answer was lost; then the outcome is unknown. It is less than the five minutes
    /// for which it can be told.
    pub doubt: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connection: Duration::from_secs(5),
            lock: Duration::from_secs(10),
            statement: Duration::from_secs(30),
            idle_in_transaction: Duration::from_mins(1),
            answer: Duration::from_secs(40),
            silence: Duration::from_secs(15),
            doubt: Duration::from_secs(20),
        }
    }
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
    /// How long a store waits for what.
    pub patience: Patience,
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
            patience: Patience::default(),
        }
    }
}
