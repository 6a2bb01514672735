//! The running queue: a store, and everything that happens over it while time passes.
//!
//! [`Broker`] is the handle that every API calls, one method per verb in the file of its name. `waiters` and [`LeaseCall`]
//! are the long poll: nobody looks twice unless something was said to be ready. `sweep` ends what is overdue when its
//! time comes. `breaker` tells an outage from a poison message, `operations` does what takes more than one call. `events`,
//! `metrics`, `history`, `numbers`, `log` and `trace` tell what happened, `why` what does not. `instances` is for stores on which several
//! brokers work: what they tell each other, and who of them sweeps.
//!
//! `access` stands before all of it: APIs reach the broker through a [`Gate`], which knows who asks.
//!
//! The store decides and remembers; what is kept here (who waits, windows, samples) is gone with the process, and
//! nothing is lost by that.

mod access;
mod breaker;
mod broker;
mod chance;
mod clock;
mod config;
mod dispatch;
mod enqueue;
mod error;
mod events;
mod history;
mod instances;
mod lease;
mod log;
mod message;
mod metrics;
mod numbers;
mod operations;
mod queue;
mod queues;
mod settle;
mod sweep;
mod trace;
mod waiters;
mod why;

pub use access::{
    About, Access, Act as AuditAct, ApiKey, AuditEntry, Caller, Consuming, Counted, Counts, Cut, Fault, Gate,
    NewKey, Quotas, Shown, Stranger, ToldCount, Unauthenticated, Watcher, Who, has_keys,
};
pub use breaker::BreakerView;
pub use broker::{Background, Broker, Shared};
#[cfg(feature = "test-clock")]
pub use clock::ManualClock;
pub use clock::{Clock, pause};
pub use config::BrokerConfig;
pub use dispatch::Admission;
pub use enqueue::NewMessage;
pub use error::BrokerError;
pub use events::{Act, Event, Happening, Told, Trigger, Watch};
pub use history::{Rates, Sample, Times};
pub use lease::{Delivery, LeaseCall};
pub use metrics::RetryShare;
pub use numbers::{
    Attention, AttentionKind, ConsumerSeen, ConsumersSeen, DEATH_MINUTES, Disabled, GroupOfQueue,
    GroupsOfQueues, LeaseCursor, LeaseOfQueue, LeasesOfQueues, LeasesWanted, Overview, QueueRow, Rows,
    RowsWanted, Severity, StatsCursor, StatsOrder, SubscriptionFacts,
};
pub use operations::{NewOperation, Operation, OperationId, OperationState, Progress, Work};
pub use settle::{Bury, Extend, Nack, Release, Settlement, Target};
pub use trace::{Attempted, Failure, HowEnded, Sent, Span, TraceConfig, TraceParent, TraceRatio, Tracing};
pub use why::{Obstacle, Why};
