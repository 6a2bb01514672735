//! What is said of a delivery after it was tried.

use redrive_broker::{BrokerError, Bury, Extend, Nack, Release, pause};
use redrive_core::message::MessageId;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Millis;
use redrive_store::RetryAdvice;

use crate::bus::Bus;

/// How often the store is told.
const TRIES: u32 = 5;

/// What is said.
#[derive(Debug, Clone)]
pub(super) enum Say {
    /// It is done.
    Ack(String),
    /// It failed.
    Nack(Nack),
    /// It failed for that subscription, in a queue that is not its own.
    NackOf(SubscriptionId, Nack),
    /// It will never work.
    Bury(Bury),
    /// It goes back unharmed.
    Release(Release),
    /// It takes longer.
    Extend(Extend),
}

impl Bus {
    /// Says it, a few times where the store cannot be reached; answers whether it was heard and applied. Where it was not, the
    /// lease runs out, and the event comes once more.
    pub(super) async fn settle(&self, message: MessageId, say: &Say) -> bool {
        for tried in 1..=TRIES {
            match self.say(say.clone()).await {
                Ok(applied) => return applied,
                Err(error) if tried == TRIES || error.advice() == RetryAdvice::GiveUp => {
                    tracing::warn!(%error, %message, "a delivery could not be settled, and may come once more");
                    return false;
                }
                Err(_) => pause(Millis::new(100 << tried)).await,
            }
        }
        false
    }

    async fn say(&self, say: Say) -> Result<bool, BrokerError> {
        let broker = &self.broker;
        Ok(match say {
            Say::Ack(receipt) => applied(&broker.ack(vec![receipt]).await?),
            Say::Nack(nack) => applied(&broker.nack(vec![nack]).await?),
            Say::NackOf(subscription, nack) => applied(&[broker.nack_of(&subscription, nack).await?]),
            Say::Bury(bury) => applied(&broker.bury(vec![bury]).await?),
            Say::Release(release) => applied(&broker.release(vec![release]).await?),
            Say::Extend(extend) => applied(&broker.extend(vec![extend]).await?),
        })
    }
}

fn applied<T>(answers: &[redrive_broker::Settlement<T>]) -> bool {
    answers.iter().all(|answer| answer.code().is_none())
}
