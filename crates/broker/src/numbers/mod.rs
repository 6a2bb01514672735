//! Numbers for people: how long messages wait and run, what consumers do, what dies of what, and what somebody should look
//! at first.
//!
//! What is counted here is counted as it happens, in memory, by this instance, and all of it is bounded. The hot paths pay
//! for it with a few atomic additions in what is known of the queue anyway; nothing is shared between queues but a count of
//! what is remembered. What can be derived from the store is: who holds what, how full a queue is.
//!
//! `histogram` and `history` (one level up) are about time, `consumers` and `deaths` about who and why; `attention` is the
//! one place that decides what is worth a person's look. The rest puts together what a page asks for.

mod attention;
mod consumers;
mod deaths;
mod groups;
mod histogram;
mod leases;
mod overview;
mod rows;

pub use attention::{Attention, AttentionKind, Disabled, Severity, SubscriptionFacts};
pub use consumers::{ConsumerSeen, ConsumersSeen};
pub(crate) use consumers::{Did, Doings, Noted, Remembered};
pub use deaths::DEATH_MINUTES;
pub(crate) use deaths::Deaths;
pub use groups::{GroupOfQueue, GroupsOfQueues};
pub(crate) use histogram::{Counts, Spread};
pub use leases::{LeaseCursor, LeaseOfQueue, LeasesOfQueues, LeasesWanted};
pub use overview::Overview;
pub(crate) use overview::{Full, Looks};
pub use rows::{QueueRow, Rows, RowsWanted, StatsCursor, StatsOrder};

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use redrive_core::message::Message;
use redrive_core::time::{Millis, Timestamp};

/// What is counted of one queue while the broker runs.
#[derive(Debug)]
pub(crate) struct Numbers {
    wait: OnceLock<Box<Spread>>,
    run: OnceLock<Box<Spread>>,
    pub(crate) doings: Doings,
    /// When somebody last asked for work, or stopped waiting for it.
    asked_at: AtomicU64,
}

impl Numbers {
    pub(crate) fn new(remembered: &Arc<Remembered>) -> Self {
        Self {
            wait: OnceLock::new(),
            run: OnceLock::new(),
            doings: Doings::new(Arc::clone(remembered)),
            asked_at: AtomicU64::new(0),
        }
    }

    /// Somebody asks for work, or does so no longer.
    pub(crate) fn asked(&self, now: Timestamp) {
        self.asked_at.fetch_max(now.as_millis(), Ordering::Relaxed);
    }

    /// When somebody last did.
    pub(crate) fn last_asked(&self) -> Timestamp {
        Timestamp::from_millis(self.asked_at.load(Ordering::Relaxed))
    }

    /// A message was handed out; answers for how long it could have been.
    pub(crate) fn waited(&self, message: &Message) -> Option<Millis> {
        let wait = message.lease()?.leased_at.since(message.progress.visible_at);
        self.wait.get_or_init(Box::default).add(wait);
        Some(wait)
    }

    /// A message succeeded, that long after it was handed out.
    pub(crate) fn ran(&self, run: Millis) {
        self.run.get_or_init(Box::default).add(run);
    }

    /// How long messages waited and ran since this was last asked.
    pub(crate) fn take_times(&self) -> (Option<Counts>, Option<Counts>) {
        let take = |spread: &OnceLock<Box<Spread>>| spread.get().and_then(|spread| spread.take());
        (take(&self.wait), take(&self.run))
    }
}
