//! The breakers of queues: what they hear, what is told when one changes, and what an operator may do.

use redrive_core::message::MessageId;
use redrive_core::policy::{BreakerState, Change, Outcome, Tally};
use redrive_core::queue::QueueName;
use redrive_core::time::Timestamp;

use crate::broker::Broker;
use crate::error::BrokerError;
use crate::events::{Happening, Trigger};
use crate::queues::Live;

/// A breaker at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerView {
    /// Where it stands.
    pub state: BreakerState,
    /// Until when nothing is handed out.
    pub open_until: Option<Timestamp>,
    /// The message that is probed.
    pub probe: Option<MessageId>,
    /// What the window holds.
    pub tally: Tally,
}

impl Broker {
    /// A lease ended: the breaker of the queue hears how.
    pub(crate) fn record(
        &self,
        queue: &QueueName,
        now: Timestamp,
        leased_at: Timestamp,
        message: MessageId,
        outcome: Outcome,
    ) {
        let Some(live) = self.queues.known(queue) else { return };
        let changes = {
            let mut rules = live.rules();
            let Some(breaker) = rules.breaker.as_mut() else { return };
            [breaker.poll(now), breaker.record(now, leased_at, message, outcome)]
        };
        for change in changes {
            self.tell_breaker(&live, change);
        }
    }

    /// A breaker changed: an event, a log line, a metric, and a look for those who wait.
    pub(crate) fn tell_breaker(&self, live: &Live, change: Option<Change>) {
        let Some(change) = change else { return };
        let queue = &live.name;
        self.metrics.breaker_changed(queue, change.to.as_str());
        self.events.tell(Happening::Breaker(change), queue, 0, Trigger::Scheduler, change.at);
        tracing::warn!(
            target: "redrive::breaker",
            queue = queue.as_str(),
            from = change.from.as_str(),
            to = change.to.as_str(),
            reason = change.reason.as_str(),
            "breaker"
        );
        live.wake();
    }

    /// The breaker of a queue; `None` where it has none.
    pub async fn breaker(&self, queue: &QueueName) -> Result<Option<BreakerView>, BrokerError> {
        let live = self.live(queue).await?;
        let now = self.now();
        let mut rules = live.rules();
        Ok(rules.breaker.as_mut().map(|breaker| {
            let row = breaker.row();
            BreakerView {
                state: breaker.state(now),
                open_until: row.open_until,
                probe: row.probe.and_then(|slot| slot.message),
                tally: breaker.tally(now),
            }
        }))
    }

    /// An operator opens or closes the breaker of a queue.
    pub async fn set_breaker(&self, queue: &QueueName, open: bool) -> Result<(), BrokerError> {
        let live = self.live(queue).await?;
        let now = self.now();
        let change = {
            let mut rules = live.rules();
            let breaker = rules.breaker.as_mut().ok_or_else(|| BrokerError::NoBreaker(queue.clone()))?;
            if open { breaker.trip(now) } else { breaker.reset(now) }
        };
        self.tell_breaker(&live, change);
        live.wake();
        Ok(())
    }
}
