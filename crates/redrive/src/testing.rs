//! A broker for tests, whose time passes when the test says so.
//!
//! ```
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::time::Duration;
//!
//! use redrive::testing::TimeTravel;
//! use redrive::{Context, QueueSettings, State, Worker};
//!
//! let redrive = TimeTravel::start().await?;
//! redrive.create_queue("mail", QueueSettings::default().base_delay(Duration::from_secs(60))).await?;
//! let worker = Worker::builder("mail").handler(|_: String, context: Context| async move {
//!     if context.attempt() == 1 { Err("the line is busy") } else { Ok(()) }
//! })?;
//! let running = redrive.run(worker);
//!
//! let id = redrive.enqueue("mail", "hello").await?.id;
//! redrive.drain("mail").await?;
//! assert_eq!(redrive.state("mail", &id).await?, Some(State::Delayed));
//!
//! redrive.advance(Duration::from_secs(66));
//! redrive.drain("mail").await?;
//! assert_eq!(redrive.state("mail", &id).await?, None, "it is done");
//! running.shutdown().await?;
//! # Ok(())
//! # }
//! ```

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use redrive_broker::{Clock, ManualClock};
use redrive_core::subscription::SubscriptionId;

use crate::clock::WallClock;
use crate::convert::millis;
use crate::error::Error;
use crate::open::Redrive;

/// A broker in memory whose clock stands still until a test moves it. Delays, leases, pauses and times to live follow
/// that clock; how long a handler may take, and when its worker extends a lease, follow the machine's.
#[derive(Debug)]
pub struct TimeTravel {
    redrive: Redrive,
    clock: Arc<ManualClock>,
}

impl TimeTravel {
    /// An empty broker.
    pub async fn start() -> Result<Self, Error> {
        let clock = Arc::new(ManualClock::new(WallClock.now()));
        let redrive = Redrive::in_memory_at(Arc::clone(&clock) as Arc<dyn Clock>).await?;
        Ok(Self { redrive, clock })
    }

    /// Moves the clock ahead: what is due is due at once.
    pub fn advance(&self, time: Duration) {
        self.clock.advance(millis(time));
    }

    /// Waits until nothing of a queue is ready or with a worker. What is delayed or dead does not count.
    pub async fn drain(&self, queue: &str) -> Result<(), Error> {
        let mut events = self.redrive.broker().watch(None);
        loop {
            let stats = self.redrive.stats(queue).await?;
            if stats.ready == 0 && stats.leased == 0 {
                return Ok(());
            }
            drop(events.next().await);
        }
    }

    /// Waits until nothing of a subscription is ready or under way. What is delayed or dead does not count.
    pub async fn drain_subscription(&self, name: &str) -> Result<(), Error> {
        self.drain(name.parse::<SubscriptionId>()?.queue().as_str()).await
    }
}

impl Deref for TimeTravel {
    type Target = Redrive;

    fn deref(&self) -> &Redrive {
        &self.redrive
    }
}
