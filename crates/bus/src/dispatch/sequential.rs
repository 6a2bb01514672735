//! One event for several subscriptions, one after another, in the order of their creation.
//!
//! Where the last one that succeeded stands is the message's checkpoint, written before the next one begins: whatever crashes,
//! what succeeded is not run again. A failure ends the run, and the event comes back by one policy that is as permissive as
//! the most permissive of all. At its cap it is dead for who failed, and was never reached by the rest; a redrive goes on
//! there. Who is paused, or behind an open breaker, is passed by, and the event waits for it without being charged.

use std::sync::Arc;

use redrive_broker::{Admission, Bury, Delivery, Extend, Nack, Target as Lease};
use redrive_core::dice::Dice;
use redrive_core::invalid::Invalid;
use redrive_core::message::{Checkpoint, ErrorText, Message};
use redrive_core::policy::{
    Asked, Failure as Failed, Outcome, ProbeTicket, RetryOverride, RetryPolicy, Sentence, sentence,
};
use redrive_core::queue::QueueConfig;
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::Topic;

use super::attempt::Failure;
use super::in_flight::Entered;
use super::independent::{ELSEWHERE, give_back};
use super::settle::Say;
use crate::bus::Bus;
use crate::error::BusError;
use crate::event::{ORDER_HEADER, TOPIC_HEADER};
use crate::subscription::{State, Subscription, Target, WhyDisabled, default_policy};
use crate::view::Matching;

/// How long an event is leased before its first handler is known.
const LEASE: Millis = Millis::from_secs(60);
/// How many subscriptions may be passed by; more fit into no checkpoint, and the rest is not reached for now.
const WAITING_MAX: usize = 128;
/// How long an event waits for those who were passed by, where nobody knows better.
const WAIT_MAX: Millis = Millis::from_secs(30);
const WAIT_MIN: Millis = Millis::new(50);

/// One policy for all of them: field by field the most permissive of what they override, and the default for what nobody does.
pub(crate) fn merged_policy<'a>(all: impl Iterator<Item = &'a Subscription>) -> RetryPolicy {
    let overrides = all.map(|subscription| subscription.settings.retry);
    overrides
        .fold(RetryOverride::default(), RetryOverride::most_permissive)
        .over(default_policy(&Target::Handler))
}

/// The queue leaves the judging to who merges the policies: the cap is the message's own.
pub(crate) fn sequence_config() -> QueueConfig {
    QueueConfig {
        lease_timeout: Some(LEASE),
        max_lease: Some(Millis::from_days(1)),
        retry: RetryOverride { max_attempts: Some(None), ..RetryOverride::default() },
        ..QueueConfig::default()
    }
}

/// How far an event came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SequencePoint {
    /// The last subscription that was reached and is done with it, by its order.
    pub(crate) done: u64,
    /// Those before it that were passed by.
    pub(crate) waiting: Vec<u64>,
}

impl SequencePoint {
    /// What the checkpoint of a message says.
    pub(crate) fn of(message: &Message) -> Self {
        let text = message.history.checkpoint.as_ref().map(|checkpoint| checkpoint.bytes().as_ref());
        let text = text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
        let mut numbers = text.split(' ').map_while(|number| number.parse().ok());
        Self { done: numbers.next().unwrap_or_default(), waiting: numbers.take(WAITING_MAX).collect() }
    }

    fn checkpoint(&self) -> Result<Checkpoint, Invalid> {
        let mut text = self.done.to_string();
        for waiting in &self.waiting {
            text.push(' ');
            text.push_str(&waiting.to_string());
        }
        Checkpoint::new(text)
    }

    /// Whether a subscription of that order is done with the event.
    pub(crate) fn is_done(&self, order: u64) -> bool {
        order <= self.done && !self.waiting.contains(&order)
    }

    fn note_done(&mut self, order: u64) {
        self.waiting.retain(|waiting| *waiting != order);
        self.done = self.done.max(order);
    }

    fn note_passed_by(&mut self, order: u64) {
        if !self.waiting.contains(&order) {
            self.waiting.push(order);
        }
        self.done = self.done.max(order);
    }
}

/// A run of one event.
struct Run<'a> {
    bus: &'a Bus,
    message: Message,
    receipt: String,
    point: SequencePoint,
    /// When to look again for those who were passed by.
    wait_until: Option<Timestamp>,
    policy: RetryPolicy,
}

/// How a run ended.
enum Ended {
    /// All are done, or wait.
    Through,
    /// One of them failed.
    Failed(Arc<Subscription>, Failure),
    /// Somebody else has the event by now, or nobody knows.
    Lost,
}

/// Whose turn it is.
enum Turn {
    /// Its own, under its breaker.
    Taken(Entered, Option<ProbeTicket>),
    /// Not yet, until then.
    Wait(Option<Timestamp>),
}

impl Bus {
    /// The subscriptions that an event of a sequence is for: those that match and were there before it.
    pub(crate) fn sequence_of(&self, message: &Message) -> Matching {
        let headers = &message.spec.headers;
        let order: u64 = headers.get(ORDER_HEADER).and_then(|order| order.parse().ok()).unwrap_or(u64::MAX);
        let Ok(topic) = Topic::new(headers.get(TOPIC_HEADER).unwrap_or_default()) else {
            return Matching::new();
        };
        let mut all = self.view().matching(&topic);
        all.retain(|one| one.order <= order && one.settings.filter.passes(headers));
        all
    }

    /// Runs one event through its subscriptions, and settles it.
    pub(super) async fn run_sequence(&self, delivery: Delivery) {
        let Delivery { message, receipt } = delivery;
        if let Err(error) = self.keep_up().await {
            tracing::warn!(%error, "who gets an event may not be known yet");
        }
        let all = self.sequence_of(&message);
        let policy = merged_policy(all.iter().map(Arc::as_ref));
        let mut point = SequencePoint::of(&message);
        // Nobody waits for who is not there any more.
        point.waiting.retain(|order| all.iter().any(|one| one.order == *order));
        let mut run = Run { bus: self, message, receipt, point, wait_until: None, policy };
        let ended = run.through(&all).await;
        run.settle(ended).await;
    }
}

impl Run<'_> {
    async fn through(&mut self, all: &Matching) -> Ended {
        let mut first = true;
        for subscription in all {
            if self.point.is_done(subscription.order) {
                continue;
            }
            if self.point.waiting.len() >= WAITING_MAX {
                break;
            }
            let (entered, probe) = match self.turn(subscription).await {
                Ok(Turn::Taken(entered, probe)) => (entered, probe),
                Ok(Turn::Wait(until)) => {
                    self.pass_by(subscription, until);
                    continue;
                }
                Err(error) => {
                    let failure = Failure::Retry { error: error.to_string(), asked: Asked::Nothing };
                    return Ended::Failed(Arc::clone(subscription), failure);
                }
            };
            // What the ones before achieved is written down before anything more happens.
            let leased = first && subscription.lease_time() <= LEASE;
            if !leased && !self.go_on(subscription.lease_time()).await {
                self.free(subscription, probe).await;
                return Ended::Lost;
            }
            first = false;
            let began = self.bus.broker.now();
            let result = self.bus.attempt(subscription, &self.message).await;
            drop(entered);
            self.bus.note_health(subscription, &result).await;
            let queue = subscription.id.queue();
            let id = self.message.id();
            match result {
                Ok(()) => {
                    self.bus.broker.note_outcome(&queue, began, id, Outcome::Success);
                    self.point.note_done(subscription.order);
                }
                Err(Failure::Gone) => {
                    self.bus.broker.note_outcome(&queue, began, id, Outcome::NoOutcome);
                    self.bus.disable(subscription, WhyDisabled::Gone).await;
                    self.point.note_done(subscription.order);
                }
                Err(failure) => {
                    let outcome = match failure {
                        Failure::Retry { .. } => Outcome::Failure,
                        _ => Outcome::NoOutcome,
                    };
                    self.bus.broker.note_outcome(&queue, began, id, outcome);
                    return Ended::Failed(Arc::clone(subscription), failure);
                }
            }
        }
        Ended::Through
    }

    /// Asks whether it is a subscription's turn. A plain queue has no breaker and is never paused.
    async fn turn(&self, subscription: &Subscription) -> Result<Turn, BusError> {
        if subscription.state == State::Paused {
            return Ok(Turn::Wait(None));
        }
        let entered = self.bus.in_flight.enter(subscription).await;
        if !subscription.owns_queue() {
            return Ok(Turn::Taken(entered, None));
        }
        let queue = subscription.id.queue();
        let deadline = self.bus.broker.now().plus(subscription.lease_time());
        let admitted = self.bus.broker.admit(&queue, self.message.id(), entered.others(), deadline).await;
        let admitted = match admitted {
            Err(error) if error.code() == "QUEUE_NOT_FOUND" => {
                self.bus.mend_queue(&queue).await?;
                Admission::Free
            }
            admitted => admitted?,
        };
        Ok(match admitted {
            Admission::Free => Turn::Taken(entered, None),
            Admission::Probe(ticket) => Turn::Taken(entered, Some(ticket)),
            Admission::Wait(until) => Turn::Wait(until),
        })
    }

    fn pass_by(&mut self, subscription: &Subscription, until: Option<Timestamp>) {
        self.point.note_passed_by(subscription.order);
        let until = until.unwrap_or_else(|| self.bus.broker.now().plus(Millis::from_secs(1)));
        self.wait_until = Some(self.wait_until.map_or(until, |earlier| earlier.min(until)));
    }

    /// A probe that was not reached frees its slot.
    async fn free(&self, subscription: &Subscription, probe: Option<ProbeTicket>) {
        let Some(ticket) = probe else { return };
        if let Err(error) = self.bus.broker.drop_probe(&subscription.id.queue(), ticket).await {
            tracing::warn!(%error, subscription = %subscription.id, "the slot of a probe is freed by time");
        }
    }

    /// Writes down how far the event came, and has it for longer; says whether it is still ours.
    async fn go_on(&self, time: Millis) -> bool {
        let Ok(checkpoint) = self.point.checkpoint() else { return false };
        let extend = Extend {
            target: Lease::Receipt(self.receipt.clone()),
            time: Some(time),
            checkpoint: Some(checkpoint),
        };
        self.bus.settle(self.message.id(), &Say::Extend(extend)).await
    }

    async fn settle(self, ended: Ended) {
        let said = match ended {
            Ended::Lost => None,
            Ended::Through if self.point.waiting.is_empty() => Some(Say::Ack(self.receipt.clone())),
            Ended::Through => {
                let wait = self.wait_for();
                self.after_go_on(give_back(self.receipt.clone(), Some(wait))).await
            }
            Ended::Failed(_, Failure::Release(delay)) => {
                self.after_go_on(give_back(self.receipt.clone(), delay)).await
            }
            Ended::Failed(_, Failure::Elsewhere) => {
                self.after_go_on(give_back(self.receipt.clone(), Some(ELSEWHERE))).await
            }
            Ended::Failed(subscription, failure) => self.failed(&subscription, failure).await,
        };
        if let Some(say) = said {
            // Where it was not heard, the lease runs out.
            let _heard = self.bus.settle(self.message.id(), &say).await;
        }
    }

    /// How long the event waits for those who were passed by; nobody is charged for that.
    fn wait_for(&self) -> Millis {
        let now = self.bus.broker.now();
        self.wait_until.map_or(WAIT_MAX, |until| until.since(now)).clamp(WAIT_MIN, WAIT_MAX)
    }

    /// What is said once it is written down how far the event came: what goes back takes no checkpoint along.
    async fn after_go_on(&self, say: Say) -> Option<Say> {
        self.go_on(LEASE).await.then_some(say)
    }

    /// One failed: the merged policy says when the event comes back, and the message's own cap whether it does.
    async fn failed(&self, subscription: &Subscription, failure: Failure) -> Option<Say> {
        let error = ErrorText::new(format!("[{}] {}", subscription.id, failure.text()));
        let (message, attempts) = (self.message.id(), self.message.progress.attempts);
        let Failure::Retry { asked, .. } = failure else {
            let bury = Bury { receipt: self.receipt.clone(), error };
            return self.after_go_on(Say::Bury(bury)).await;
        };
        let mut dice = Dice::for_attempt(self.bus.broker.seed(), message, attempts);
        let uncapped = RetryPolicy { max_attempts: None, ..self.policy };
        let delay = match sentence(&uncapped, attempts, Failed::Nack(asked), &mut dice) {
            Sentence::RetryAfter(delay, _) => delay,
            Sentence::Dead(_) => Millis::ZERO,
        };
        let nack = Nack {
            receipt: self.receipt.clone(),
            asked: Asked::Exactly(delay),
            error,
            checkpoint: self.point.checkpoint().ok(),
        };
        Some(Say::NackOf(subscription.id.clone(), nack))
    }
}
