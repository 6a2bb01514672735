//! The worker: a handler, run for every message of a queue.
//!
//! [`WorkerBuilder`] says what is run and how, [`Running`] is a worker that runs. `driver` is one task that owns everything
//! that is held: it hears what is handed out, starts a `task` for each message, and says what became of them, as much as
//! there is in one go. `held` is one lease with what is known of it. `handler`, `body`, `context` and `outcome` are
//! the handler's side.

mod body;
mod builder;
mod context;
mod driver;
mod handler;
mod held;
mod outcome;
mod running;
mod table;
mod task;

pub use body::{BadBody, FromMessage, Json};
pub use builder::{InvalidWorker, Worker, WorkerBuilder};
pub use context::{Context, NotExtended};
pub use handler::{HandlerService, Job, handler_fn};
pub use outcome::{Failure, IntoOutcome, Outcome};
pub use running::{Running, WorkerError};
