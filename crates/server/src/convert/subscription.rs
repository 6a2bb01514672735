//! Subscriptions, and how their deliveries went.

use std::num::NonZeroU32;

use redrive_broker::{BreakerView, Caller};
use redrive_bus::webhook::{Capture, SigningSecret};
use redrive_bus::{
    Attempt, Created, DeadCursor, DeadDelivery, Endpoint, EndpointSettings, Format, HeaderFilter,
    NewSubscription, NewTarget, Outcome, ReplayProgress, State, Subscription, SubscriptionChange,
    SubscriptionSettings, Target,
};
use redrive_core::access::Use;
use redrive_core::invalid::Invalid;
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::{Millis, Timestamp};
use redrive_core::topic::TopicPattern;
use redrive_wire as wire;
use redrive_wire::Maybe;

use super::queue::{breaker, breaker_status, breaker_view, policy_view, retry, retry_view};
use super::{message, millis, time, timestamp};

/// What is set beside the target.
struct Settings {
    pattern: String,
    filter: wire::HeaderFilter,
    retry: Option<wire::Retry>,
    timeout_ms: Option<u64>,
    max_in_flight: Option<u32>,
    breaker: Maybe<wire::Breaker>,
}

impl Settings {
    fn read(self) -> Result<SubscriptionSettings, Invalid> {
        let max_in_flight = match self.max_in_flight {
            None => None,
            Some(max) => Some(NonZeroU32::new(max).ok_or_else(|| {
                Invalid::out_of_range("max_in_flight", 1, redrive_core::limits::IN_FLIGHT_MAX)
            })?),
        };
        Ok(SubscriptionSettings {
            pattern: TopicPattern::new(self.pattern)?,
            filter: HeaderFilter::new(self.filter)?,
            retry: retry(&self.retry.unwrap_or_default())?,
            timeout: millis(self.timeout_ms),
            max_in_flight,
            breaker: match self.breaker.set() {
                None => None,
                Some(None) => Some(None),
                Some(Some(value)) => Some(Some(breaker(&value)?)),
            },
        })
    }
}

pub(crate) fn created(request: wire::CreateSubscriptionRequest) -> Result<NewSubscription, Invalid> {
    let settings = Settings {
        pattern: request.pattern,
        filter: request.filter,
        retry: request.retry,
        timeout_ms: request.timeout_ms,
        max_in_flight: request.max_in_flight,
        breaker: request.breaker,
    };
    let id = request.id.map(SubscriptionId::new).transpose();
    Ok(NewSubscription {
        id: id.map_err(|wrong| Invalid { field: "id", ..wrong })?,
        settings: settings.read()?,
        target: target(request.target)?,
        replay_from: request.replay_from.map(timestamp),
    })
}

pub(crate) fn changed(
    request: wire::UpdateSubscriptionRequest,
    expected: Option<u64>,
) -> Result<SubscriptionChange, Invalid> {
    let settings = Settings {
        pattern: request.pattern,
        filter: request.filter,
        retry: request.retry,
        timeout_ms: request.timeout_ms,
        max_in_flight: request.max_in_flight,
        breaker: request.breaker,
    };
    let endpoint =
        |update: wire::TargetUpdate| endpoint(update.url, update.format.as_deref(), update.disable_after_ms);
    let endpoint = request.target.map(endpoint).transpose()?;
    Ok(SubscriptionChange { settings: settings.read()?, endpoint, expected })
}

fn endpoint(
    url: String,
    format: Option<&str>,
    disable_after: Maybe<u64>,
) -> Result<EndpointSettings, Invalid> {
    let format = format.map(Format::named).transpose()?.unwrap_or_default();
    let disable_after = disable_after.set().map(|time| time.map(Millis::new));
    Ok(EndpointSettings { url, format, disable_after })
}

fn target(target: wire::NewTarget) -> Result<NewTarget, Invalid> {
    let webhook = [
        ("target.url", target.url.is_some()),
        ("target.format", target.format.is_some()),
        ("target.disable_after_ms", !target.disable_after_ms.is_unset()),
        ("target.secret", target.secret.is_some()),
    ];
    let queue = ("target.queue", target.queue.is_some());
    match target.kind.as_str() {
        "handler" => {
            only("a handler has none", webhook.into_iter().chain([queue]))?;
            Ok(NewTarget::Handler)
        }
        "queue" => {
            only("a queue has none", webhook)?;
            let name = target.queue.ok_or_else(|| missing("target.queue"))?;
            let name = QueueName::new(name).map_err(|wrong| Invalid { field: "target.queue", ..wrong })?;
            Ok(NewTarget::Queue(name))
        }
        "webhook" => {
            only("a webhook has none", [queue])?;
            let url = target.url.ok_or_else(|| missing("target.url"))?;
            let endpoint = endpoint(url, target.format.as_deref(), target.disable_after_ms)?;
            Ok(NewTarget::Webhook(endpoint, target.secret.as_deref().map(secret).transpose()?))
        }
        _ => Err(Invalid::unusable("target.kind", "must be handler, webhook or queue")),
    }
}

/// Refuses what a target of that kind does not have.
fn only(why: &'static str, given: impl IntoIterator<Item = (&'static str, bool)>) -> Result<(), Invalid> {
    match given.into_iter().find(|(_, given)| *given) {
        Some((field, _)) => Err(Invalid::unusable(field, why)),
        None => Ok(()),
    }
}

const fn missing(field: &'static str) -> Invalid {
    Invalid::unusable(field, "is needed with a target of this kind")
}

pub(crate) fn secret(text: &str) -> Result<SigningSecret, Invalid> {
    SigningSecret::parse(text)
}

fn target_view(target: &Target, now: Timestamp) -> wire::TargetView {
    let view = wire::TargetView { kind: target.kind().to_owned(), ..wire::TargetView::default() };
    match target {
        Target::Handler => view,
        Target::Queue(queue) => wire::TargetView { queue: Some(queue.as_str().to_owned()), ..view },
        Target::Webhook(endpoint) => endpoint_view(endpoint, view, now),
    }
}

fn endpoint_view(endpoint: &Endpoint, view: wire::TargetView, now: Timestamp) -> wire::TargetView {
    let (secrets, until) = endpoint.secrets_at(now);
    wire::TargetView {
        url: Some(endpoint.url.as_str().to_owned()),
        format: Some(endpoint.format.name().to_owned()),
        disable_after_ms: endpoint.disable_after.map(Millis::get),
        secrets: Some(u32::try_from(secrets).unwrap_or(u32::MAX)),
        old_secrets_until: until.map(time),
        ..view
    }
}

/// A subscription as that caller may see it. The path of a webhook is often a secret of its receiver: who may not read what goes
/// there sees whose it is, and no more.
pub(crate) fn shown_to(
    caller: &Caller,
    subscription: &Subscription,
    now: Timestamp,
) -> wire::SubscriptionView {
    let mut shown = view(subscription, now);
    if let Target::Webhook(endpoint) = &subscription.target
        && !caller.sees(Use::Inspect, &subscription.id.queue())
    {
        shown.target.url = Some(endpoint.url.origin());
    }
    shown
}

pub(crate) fn view(subscription: &Subscription, now: Timestamp) -> wire::SubscriptionView {
    let settings = &subscription.settings;
    let in_force = || wire::DeliverySettings {
        retry: policy_view(&subscription.policy()),
        timeout_ms: subscription.timeout().get(),
        max_in_flight: subscription.max_in_flight(),
        breaker: subscription.breaker().as_ref().map(breaker_view),
    };
    wire::SubscriptionView {
        id: subscription.id.as_str().to_owned(),
        pattern: settings.pattern.as_str().to_owned(),
        filter: settings.filter.iter().map(|(name, values)| (name.to_owned(), values.to_vec())).collect(),
        target: target_view(&subscription.target, now),
        retry: retry_view(&settings.retry),
        timeout_ms: settings.timeout.map(Millis::get),
        max_in_flight: settings.max_in_flight.map(NonZeroU32::get),
        breaker: Maybe::from_set(settings.breaker.as_ref().map(|set| set.as_ref().map(breaker_view))),
        settings: subscription.owns_queue().then(in_force),
        state: subscription.state.name().to_owned(),
        disabled: match subscription.state {
            State::Disabled { at, why } => {
                Some(wire::DisabledView { at: time(at), why: why.name().to_owned() })
            }
            State::Active | State::Paused => None,
        },
        failing_since: subscription.failing_since.map(time),
        created_at: time(subscription.created_at),
        order: subscription.order,
        version: subscription.version,
        queue: subscription.queue().as_str().to_owned(),
        breaker_status: None,
    }
}

/// With the secret that was made, which is shown this once.
pub(crate) fn created_view(created: &Created, now: Timestamp) -> wire::NewSubscriptionView {
    wire::NewSubscriptionView {
        subscription: view(&created.subscription, now),
        secret: created.secret.as_ref().map(SigningSecret::reveal),
    }
}

pub(crate) fn replay(progress: &ReplayProgress) -> wire::ReplayView {
    wire::ReplayView {
        id: progress.id.to_string(),
        from: time(progress.from),
        started_at: time(progress.started_at),
        replayed: progress.replayed,
    }
}

fn headers(headers: &[(String, String)]) -> Vec<wire::HeaderView> {
    let one =
        |(name, value): &(String, String)| wire::HeaderView { name: name.clone(), value: value.clone() };
    headers.iter().map(one).collect()
}

pub(crate) fn attempt(attempt: &Attempt) -> wire::DeliveryAttempt {
    let sent = |capture: &Capture| wire::SentView {
        headers: headers(&capture.request_headers),
        body: capture.request_body.clone(),
        body_bytes: capture.request_bytes as u64,
    };
    let answered = |capture: &Capture| {
        Some(wire::AnswerView {
            status: capture.status?,
            headers: headers(&capture.response_headers),
            body: capture.response_body.clone(),
        })
    };
    wire::DeliveryAttempt {
        event: attempt.event.to_string(),
        attempt: attempt.attempt,
        at: time(attempt.at),
        took_ms: attempt.took.get(),
        delivered: attempt.outcome == Outcome::Delivered,
        error: match &attempt.outcome {
            Outcome::Delivered => None,
            Outcome::Failed(error) => Some(error.clone()),
        },
        request: attempt.capture.as_ref().map(sent),
        response: attempt.capture.as_ref().and_then(answered),
    }
}

pub(crate) fn dead(dead: &DeadDelivery, now: Timestamp) -> wire::DeadDeliveryView {
    wire::DeadDeliveryView {
        reason: dead.reason.name().to_owned(),
        message: message::view(&dead.message, now),
    }
}

/// Where a page of dead letters ended: the queue, and the message where it ended within one.
pub(crate) fn dead_cursor(text: &str) -> Result<DeadCursor, Invalid> {
    let wrong = || Invalid::unusable("cursor", "must be the next_cursor of a page");
    let (queue, after) = text.split_once('/').ok_or_else(wrong)?;
    let after = if after.is_empty() { None } else { Some(after.parse().map_err(|_| wrong())?) };
    Ok(DeadCursor { queue: QueueName::new(queue).map_err(|_| wrong())?, after })
}

pub(crate) fn dead_cursor_view(cursor: &DeadCursor) -> String {
    let after = cursor.after.map(|id| id.to_string()).unwrap_or_default();
    format!("{}/{after}", cursor.queue)
}

pub(crate) fn of_queue((queue, breaker): &(QueueName, BreakerView)) -> wire::BreakerView {
    wire::BreakerView {
        queue: queue.as_str().to_owned(),
        subscription: SubscriptionId::of_queue(queue).map(str::to_owned),
        status: breaker_status(breaker),
    }
}
