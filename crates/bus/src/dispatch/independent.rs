//! One delivery of one subscription, from its own queue.

use redrive_broker::{Bury, Delivery, Nack, Release, Target as Lease};
use redrive_core::message::ErrorText;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Millis;

use super::attempt::Failure;
use super::settle::Say;
use crate::bus::Bus;
use crate::subscription::{State, Subscription, Target, WhyDisabled};

/// After how long what cannot be handled here is looked at again.
pub(super) const ELSEWHERE: Millis = Millis::from_secs(1);

impl Bus {
    /// Tries a delivery, and settles it. The queue's judge decides what a failure leads to, and its breaker hears of it.
    pub(super) async fn deliver(&self, id: SubscriptionId, delivery: Delivery) {
        let Delivery { message, receipt } = delivery;
        let Some(subscription) = self.view().subscription(&id) else { return };
        let _entered = self.in_flight.enter(&subscription).await;
        let result = self.attempt(&subscription, &message).await;
        let message = message.id();
        self.note_health(&subscription, &result).await;
        // Where it was not heard, the lease runs out.
        let _heard = match result {
            Ok(()) => self.settle(message, &Say::Ack(receipt)).await,
            Err(Failure::Retry { error, asked }) => {
                let nack = Nack { receipt, asked, error: ErrorText::new(error), checkpoint: None };
                self.settle(message, &Say::Nack(nack)).await
            }
            Err(Failure::Bury(error)) => {
                let bury = Bury { receipt, error: ErrorText::new(error) };
                self.settle(message, &Say::Bury(bury)).await
            }
            Err(Failure::Gone) => {
                self.disable(&subscription, WhyDisabled::Gone).await;
                self.settle(message, &give_back(receipt, None)).await
            }
            Err(Failure::Release(delay)) => self.settle(message, &give_back(receipt, delay)).await,
            Err(Failure::Elsewhere) => self.settle(message, &give_back(receipt, Some(ELSEWHERE))).await,
        };
    }

    /// Switches a webhook off. Where that does not work, the next attempt finds the same.
    pub(crate) async fn disable(&self, subscription: &Subscription, why: WhyDisabled) {
        let known = self.view().subscription(&subscription.id);
        let over = known.is_none_or(|known| matches!(known.state, State::Disabled { .. }));
        // Several attempts may find the same at a time.
        if over || !matches!(subscription.target, Target::Webhook(_)) {
            return;
        }
        match self.disable_subscription(&subscription.id, why).await {
            Ok(_) => tracing::warn!(
                target: "redrive::subscription",
                subscription_id = subscription.id.as_str(),
                reason = why.name(),
                "disabled"
            ),
            Err(error) => {
                tracing::error!(%error, subscription = %subscription.id, "an endpoint could not be switched off");
            }
        }
    }
}

/// A delivery goes back unharmed: its attempt was none.
pub(super) fn give_back(receipt: String, delay: Option<Millis>) -> Say {
    Say::Release(Release { target: Lease::Receipt(receipt), delay })
}
