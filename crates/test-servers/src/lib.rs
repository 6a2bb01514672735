//! Real servers for tests.
//!
//! * [`shared_postgres_url`] is what most tests want: one PostgreSQL for all of them, which the test command starts.
//! * [`Postgres`] is a server of a test's own, to be killed, restarted and [promoted](Postgres::promote), with the
//!   [`Settings`] that the test wants.
//! * [`proxy`] stands between a client and a PostgreSQL and breaks the connection where a rule says so.
//! * [`install_postgres`] gets the Debian package; the program of this crate calls it and then runs the test command
//!   beside a server.
//!
//! Nothing stays behind: a server and its data go with the [`Postgres`], or with the process that started it, however
//! that ends; `folder.rs` sees to that. Everything blocks: async tests use `spawn_blocking` where it matters.

mod account;
mod binaries;
mod failure;
mod folder;
mod install;
mod log;
mod port;
mod postgres;
mod processes;
mod program;
pub mod proxy;
mod random;
mod settings;
mod shared;
mod standby;
mod template;

pub use failure::Failure;
pub use install::install_postgres;
pub use postgres::Postgres;
pub use settings::Settings;
pub use shared::{POSTGRES_VARIABLE, shared_postgres_url};
