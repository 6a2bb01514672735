//! The same queue on PostgreSQL: any number of stateless instances on one database.
//!
//! * The statements are in `sql/`, a file each; [`schema_sql`] is what a database administrator runs.
//! * What happens often is one statement: `lease` is `sql/claim.sql`. Everything else is a transaction that reads messages
//!   under a lock, asks the rules of `redrive-core`, and writes them back: `work.rs`.
//! * Small calls that arrive while another is under way share a statement and a commit (`redrive-store-shared`). Large enqueues come by COPY: `copy.rs`.
//! * Where an old transaction keeps the database from clearing up, claims do not read what is left of messages that are
//!   gone: `behind.rs`.
//! * The database's clock is the clock. What an instance keeps for itself is whose turn it is, and what it has cached of
//!   queues, which carries a stamp that every statement checks.
//! * Applications have functions of their own in the schema, `sql/migrations/0002_functions.sql`: they enqueue in their own
//!   transaction, claim, ack and nack, with the same rows, locks and receipts. What needs the judge they leave to an instance.
//!   `docs/postgres-functions.md` is their manual.

mod behind;
mod bulk;
mod clock;
mod copy;
mod count;
mod discard;
mod doubt;
mod durability;
mod enqueue;
mod error;
mod expire;
mod extend;
mod fast;
mod inspect;
mod lapse;
mod lease;
mod list;
mod migrate;
mod r#move;
mod nack;
mod options;
#[cfg(test)]
mod plans;
mod queue;
mod redrive;
mod registry;
mod release;
mod reschedule;
mod row;
mod scan;
mod server;
mod session;
mod settle;
mod signal;
mod sql;
mod store;
mod sweep;
mod tally;
mod tls;
mod work;

pub use clock::StoreClock;
pub use inspect::{Inspection, SchemaState, inspect};
pub use migrate::schema_sql;
pub use options::{Durability, Options, Patience, WrongOption};
pub use store::PostgresStore;
