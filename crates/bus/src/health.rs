//! Since when an endpoint does nothing but fail. One that does so for longer than it may is switched off.
//!
//! It is remembered here, and written down only when it has lasted for a while: an endpoint that fails now and then costs
//! no write.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use redrive_broker::{Act, Disabled, SubscriptionFacts};
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};

use crate::bus::Bus;
use crate::dispatch::Failure;
use crate::error::BusError;
use crate::subscription::{State, Subscription, Target, WhyDisabled};

/// How long an endpoint fails before that is written down.
const WORTH_WRITING: Millis = Millis::from_secs(60);

/// Since when endpoints fail, as this instance saw it.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<HashMap<SubscriptionId, Timestamp>>);

impl Health {
    fn lock(&self) -> MutexGuard<'_, HashMap<SubscriptionId, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn forget(&self, id: &SubscriptionId) {
        self.lock().remove(id);
    }
}

impl Bus {
    /// An attempt ended: the endpoint works, or has failed once more.
    pub(crate) async fn note_health(&self, subscription: &Subscription, result: &Result<(), Failure>) {
        let Target::Webhook(endpoint) = &subscription.target else { return };
        let now = self.broker.now();
        match result {
            Ok(()) => {
                self.health.forget(&subscription.id);
                if subscription.failing_since.is_some() {
                    self.write_failing(subscription, None).await;
                }
            }
            Err(Failure::Retry { .. }) => {
                let seen = *self.health.lock().entry_ref(&subscription.id).or_insert(now);
                let since = subscription.failing_since.unwrap_or(seen);
                if endpoint.disable_after.is_some_and(|time| now.since(since) >= time) {
                    self.disable(subscription, WhyDisabled::Failing).await;
                } else if subscription.failing_since.is_none() && now.since(seen) >= WORTH_WRITING {
                    self.write_failing(subscription, Some(seen)).await;
                }
            }
            Err(_) => {}
        }
    }

    /// The subscriptions that fail or are switched off, of those that somebody may see.
    pub(crate) async fn troubled(
        &self,
        sees: impl Fn(&SubscriptionId) -> bool,
    ) -> Result<Vec<SubscriptionFacts>, BusError> {
        self.keep_up().await?;
        let view = self.view();
        Ok(view.after(None).filter_map(|one| trouble(one)).filter(|one| sees(&one.id)).collect())
    }

    async fn write_failing(&self, subscription: &Subscription, since: Option<Timestamp>) {
        let written = self.change_subscription(&subscription.id, Act::Updated, |_, known| {
            Ok(Subscription { failing_since: since, ..known.clone() })
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, subscription = %subscription.id, "how an endpoint fares is written down later");
        }
    }
}

/// What is wrong with a subscription, where something is. An endpoint that has only just begun to fail is not told.
fn trouble(subscription: &Subscription) -> Option<SubscriptionFacts> {
    let disabled = match subscription.state {
        State::Disabled { at, why } => {
            let why = match why {
                WhyDisabled::Gone => Disabled::Gone,
                WhyDisabled::Failing => Disabled::Failing,
                WhyDisabled::Operator => Disabled::Operator,
            };
            Some((why, at))
        }
        State::Active | State::Paused => None,
    };
    let failing_since = subscription.failing_since;
    (disabled.is_some() || failing_since.is_some()).then(|| SubscriptionFacts {
        id: subscription.id.clone(),
        failing_since,
        disabled,
    })
}
