//! One attempt to bring an event to a target, whatever the target is: once, and within its time.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use redrive_core::message::Message;
use redrive_core::policy::Asked;
use redrive_core::queue::QueueName;
use redrive_core::time::{Millis, Timestamp};
use redrive_store::EnqueueOutcome;

use super::{HandlerFailure, Incoming};
use crate::bus::Bus;
use crate::cloudevents;
use crate::deliveries::{Attempt, Outcome};
use crate::event::{self, Event};
use crate::subscription::{Endpoint, Subscription, Target};
use crate::webhook::{Call, Capture, Verdict};

/// The longest wait that an endpoint may ask for.
const RETRY_AFTER_MAX: Millis = Millis::from_days(1);

/// Why a target does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It may be tried again.
    Retry {
        /// What went wrong.
        error: String,
        /// When it is wanted back.
        asked: Asked,
    },
    /// It will never work.
    Bury(String),
    /// The endpoint says that it is gone for good.
    Gone,
    /// The handler gives it back unharmed.
    Release(Option<Millis>),
    /// The target is not at this instance.
    Elsewhere,
}

impl Failure {
    fn retry(error: impl Into<String>) -> Self {
        Self::Retry { error: error.into(), asked: Asked::Nothing }
    }

    /// Whether that was an attempt at all.
    fn is_attempt(&self) -> bool {
        !matches!(self, Self::Elsewhere | Self::Release(_))
    }

    /// What is kept with the message.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Retry { error, .. } | Self::Bury(error) => error,
            Self::Gone => "the endpoint answered 410: it is gone",
            Self::Release(_) => "the handler gave it back",
            Self::Elsewhere => "the handler is not at this instance",
        }
    }
}

impl From<HandlerFailure> for Failure {
    fn from(failure: HandlerFailure) -> Self {
        match failure {
            HandlerFailure::Retry { error, after } => {
                Self::Retry { error, asked: after.map_or(Asked::Nothing, Asked::AtLeast) }
            }
            HandlerFailure::Bury { error } => Self::Bury(error),
            HandlerFailure::Release { after } => Self::Release(after),
        }
    }
}

impl Bus {
    /// Brings an event to the target of a subscription. What takes longer than it may is dropped, and whatever it still says
    /// is not heard.
    pub(crate) async fn attempt(
        &self,
        subscription: &Subscription,
        message: &Message,
    ) -> Result<(), Failure> {
        let began = self.broker.now();
        let deadline = began.plus(subscription.timeout());
        let mut capture = None;
        let result = {
            let reached = self.reach(subscription, message, deadline, &mut capture);
            tokio::select! {
                reached = reached => reached,
                () = self.broker.until(deadline) => {
                    Err(Failure::retry(format!("timed out after {} ms", subscription.timeout().get())))
                }
            }
        };
        let (id, took) = (&subscription.id, self.broker.now().since(began));
        if result.as_ref().err().is_none_or(Failure::is_attempt) {
            let outcome = match &result {
                Ok(()) => Outcome::Delivered,
                Err(failure) => Outcome::Failed(failure.text().to_owned()),
            };
            let (event, attempt) = (message.id(), message.progress.attempts);
            self.deliveries.note(id, Attempt { event, attempt, at: began, took, outcome, capture });
            self.metrics.attempted(subscription, message, result.is_ok(), (began, took));
        }
        result
    }

    async fn reach(
        &self,
        subscription: &Subscription,
        message: &Message,
        deadline: Timestamp,
        capture: &mut Option<Capture>,
    ) -> Result<(), Failure> {
        match &subscription.target {
            Target::Handler => self.call_handler(subscription, message, deadline).await,
            Target::Webhook(endpoint) => self.call_webhook(subscription, endpoint, message, capture).await,
            Target::Queue(queue) => self.pass_on(queue, message).await,
        }
    }

    async fn call_handler(
        &self,
        subscription: &Subscription,
        message: &Message,
        deadline: Timestamp,
    ) -> Result<(), Failure> {
        let handler = self.handler(&subscription.id).ok_or(Failure::Elsewhere)?;
        let incoming = Incoming {
            event: Event::of(message),
            subscription: subscription.id.clone(),
            attempt: message.progress.attempts,
            deadline,
            lease_id: message.lease().map(|lease| lease.id),
        };
        let ran = AssertUnwindSafe(async move { handler.handle(incoming).await }).catch_unwind();
        match ran.await {
            Ok(result) => Ok(result?),
            Err(panic) => Err(Failure::retry(format!("the handler panicked: {}", text(&*panic)))),
        }
    }

    async fn call_webhook(
        &self,
        subscription: &Subscription,
        endpoint: &Endpoint,
        message: &Message,
        capture: &mut Option<Capture>,
    ) -> Result<(), Failure> {
        let Some(webhooks) = &self.webhooks else { return Err(Failure::Elsewhere) };
        let now = self.broker.now();
        let event = Event::of(message);
        let (content_type, headers, body) = cloudevents::written(&event, endpoint.format);
        let secrets = endpoint.live_secrets(now);
        let call = Call {
            url: &endpoint.url,
            secrets: &secrets,
            id: &event.id.to_string(),
            at: now,
            content_type: &content_type,
            headers: &headers,
            body,
            timeout: subscription.timeout(),
        };
        let answer = webhooks.deliver(call).await;
        *capture = Some(answer.capture);
        match answer.verdict {
            Verdict::Delivered => Ok(()),
            Verdict::Gone => Err(Failure::Gone),
            Verdict::Failed { error, retry_after } => {
                let asked = retry_after.map(|wait| Asked::AtLeast(wait.min(RETRY_AFTER_MAX)));
                Err(Failure::Retry { error, asked: asked.unwrap_or_default() })
            }
        }
    }

    /// Where handlers run one after another, a queue is one of them.
    async fn pass_on(&self, queue: &QueueName, message: &Message) -> Result<(), Failure> {
        let copy = event::message(queue.clone(), event::copy_of(message), None);
        let outcome = self.broker.enqueue_existing(vec![copy], true).await;
        let outcome = outcome.and_then(|mut outcomes| outcomes.pop().transpose());
        match outcome {
            Ok(Some(EnqueueOutcome::Enqueued { .. } | EnqueueOutcome::Duplicate { .. })) => Ok(()),
            Ok(Some(EnqueueOutcome::Refused(refusal))) => Err(Failure::retry(refusal.to_string())),
            Ok(_) => Err(Failure::retry("the queue did not answer")),
            Err(error) => Err(Failure::retry(error.to_string())),
        }
    }

    /// The function for a subscription at this instance.
    pub(crate) fn handler(
        &self,
        id: &redrive_core::subscription::SubscriptionId,
    ) -> Option<Arc<dyn super::Handler>> {
        self.handlers.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(id).cloned()
    }
}

/// What a panic says.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
