//! The breakers of queues: what they hear, what is told when one changes, and what an operator may do.

use std::sync::Arc;

use redrive_core::message::MessageId;
use redrive_core::policy::{Breaker, BreakerState, Change, ChangeReason, Outcome, Tally};
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
        let act = move |breaker: &mut Breaker| breaker.record(now, leased_at, message, outcome);
        match self.queues.known(queue) {
            Some(live) => self.move_breaker(&live, now, act),
            None => self.move_breaker_elsewhere(queue, now, act),
        }
    }

    /// Consumers settle where they please: another instance may have handed out the probe of a queue that nobody has
    /// asked for here.
    fn move_breaker_elsewhere(
        &self,
        queue: &QueueName,
        now: Timestamp,
        act: impl Fn(&mut Breaker) -> Option<Change> + Send + Sync + 'static,
    ) {
        if self.peers.is_some() {
            let (broker, queue) = (self.clone(), queue.clone());
            tokio::spawn(async move {
                if let Ok(live) = broker.live(&queue).await {
                    broker.move_breaker(&live, now, act);
                }
            });
        }
    }

    /// The lease of a message was extended: the probe's slot is its own for longer.
    pub(crate) fn extend_probe(&self, queue: &QueueName, message: MessageId, deadline: Timestamp) {
        let Some(live) = self.queues.known(queue) else { return };
        self.move_breaker(&live, self.now(), move |breaker| {
            breaker.probe_extended(message, deadline);
            None
        });
    }

    /// Does something to a breaker. Where that changes what all instances must know, it goes through the row that they
    /// share, and nobody waits for it. So it does while the breaker is open: the probe may be another instance's, and not
    /// known here yet.
    pub(crate) fn move_breaker(
        &self,
        live: &Arc<Live>,
        now: Timestamp,
        act: impl Fn(&mut Breaker) -> Option<Change> + Send + Sync + 'static,
    ) {
        let changes = {
            let mut rules = live.rules();
            let Some(breaker) = rules.breaker.as_mut() else { return };
            let elapsed = breaker.poll(now);
            let before = breaker.footing();
            let change = act(breaker);
            let open = before.row().open_until.is_some();
            if self.peers.is_some() && (open || breaker.row() != before.row()) {
                breaker.stand_on(before);
                self.swap_row_later(live, act);
                [elapsed, None]
            } else {
                [elapsed, change]
            }
        };
        for change in changes {
            self.tell_breaker(live, change);
        }
    }

    /// A breaker changed: an event, a log line, a metric, and a look for those who wait.
    pub(crate) fn tell_breaker(&self, live: &Live, change: Option<Change>) {
        let Some(change) = change else { return };
        let queue = &live.name;
        self.metrics.breaker_changed(queue, change.to.as_str());
        // The event of what another instance did comes from there.
        if change.reason != ChangeReason::Adopted {
            self.events.tell(Happening::Breaker(change), queue, 0, Trigger::Scheduler, change.at);
        }
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
        self.refresh_breaker(&live).await?;
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
        let moved = self.act_on_breaker(&live, move |breaker, now| {
            let change = if open { breaker.trip(now) } else { breaker.reset(now) };
            ((), change)
        });
        moved.await?.ok_or_else(|| BrokerError::NoBreaker(queue.clone()))?;
        live.wake();
        Ok(())
    }
}
