//! Subscriptions, and breakers.

use redrive_broker::{BreakerView, BrokerError, Caller};
use redrive_bus::{Bus, BusError, Created, Subscription, WhyDisabled};
use redrive_core::access::{Deed, Use};
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Timestamp;
use redrive_wire as wire;
use redrive_wire::{Time, v1};
use tonic::{Request, Response, Status};

use super::convert::{maybe, retry, retry_view};
use super::{Service, caller, page_limit, status, wrong};
use crate::convert;
use crate::http::OVERLAP_DEFAULT;

type Shown = Result<Response<v1::Subscription>, Status>;

fn named(id: impl AsRef<str>) -> Result<SubscriptionId, Status> {
    SubscriptionId::new(id.as_ref()).map_err(wrong)
}

/// What is done to a subscription.
#[derive(Debug, Clone, Copy)]
pub(super) enum Switch {
    Pause,
    Resume,
    Disable,
    Enable,
}

impl Switch {
    const fn deed(self) -> Deed {
        match self {
            Self::Pause => Deed::PauseSubscription,
            Self::Resume => Deed::ResumeSubscription,
            Self::Disable => Deed::DisableSubscription,
            Self::Enable => Deed::EnableSubscription,
        }
    }
}

impl Service {
    fn subscription(&self, subscription: &Subscription) -> v1::Subscription {
        shown(convert::subscription::view(subscription, self.gate.now()))
    }

    fn created(&self, created: &Created) -> (Option<v1::Subscription>, String) {
        let view = convert::subscription::created_view(created, self.gate.now());
        (Some(shown(view.subscription)), view.secret.unwrap_or_default())
    }

    pub(super) async fn subscribe(
        &self,
        request: Request<v1::CreateSubscriptionRequest>,
    ) -> Result<Response<v1::CreateSubscriptionResponse>, Status> {
        let caller = caller(&request)?;
        let new = convert::subscription::created(asked(request.into_inner())).map_err(wrong)?;
        let created = self.bus.create_subscription(&caller, new).await.map_err(status::bus)?;
        let (subscription, secret) = self.created(&created);
        Ok(Response::new(v1::CreateSubscriptionResponse { subscription, secret }))
    }

    pub(super) async fn show_subscription(&self, request: Request<v1::GetSubscriptionRequest>) -> Shown {
        let caller = caller(&request)?;
        let id = named(request.into_inner().id)?;
        let subscription = self.bus.subscription(&caller, &id).await.map_err(status::bus)?;
        let view = convert::subscription::shown_to(&caller, &subscription, self.gate.now());
        Ok(Response::new(shown(view)))
    }

    pub(super) async fn show_subscriptions(
        &self,
        request: Request<v1::ListSubscriptionsRequest>,
    ) -> Result<Response<v1::ListSubscriptionsResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let after = (!request.after.is_empty()).then(|| named(request.after)).transpose()?;
        let limit = page_limit(request.limit)?;
        let (subscriptions, _) = self.bus.subscriptions(&caller, after, limit).await.map_err(status::bus)?;
        let now = self.gate.now();
        let views = subscriptions.iter().map(|one| convert::subscription::shown_to(&caller, one, now));
        let subscriptions = views.map(shown).collect();
        Ok(Response::new(v1::ListSubscriptionsResponse { subscriptions }))
    }

    pub(super) async fn change_subscription(&self, request: Request<v1::UpdateSubscriptionRequest>) -> Shown {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let id = named(&request.id)?;
        let expected = request.expected_version;
        let change = convert::subscription::changed(update(request), expected).map_err(wrong)?;
        let changed = self.bus.update_subscription(&caller, &id, change).await.map_err(status::bus)?;
        Ok(Response::new(self.subscription(&changed)))
    }

    pub(super) async fn unsubscribe(
        &self,
        request: Request<v1::DeleteSubscriptionRequest>,
    ) -> Result<Response<v1::DeleteSubscriptionResponse>, Status> {
        let caller = caller(&request)?;
        let id = named(request.into_inner().id)?;
        let delete = async |bus: Bus| bus.delete_subscription(&id).await;
        let deleted = self.bus.act_on(&caller, Deed::DeleteSubscription, &id, delete).await;
        deleted.map_err(status::bus)?;
        Ok(Response::new(v1::DeleteSubscriptionResponse {}))
    }

    pub(super) async fn switch(&self, caller: Caller, id: String, switch: Switch) -> Shown {
        let id = named(id)?;
        let act = async |bus: Bus| match switch {
            Switch::Pause => bus.pause_subscription(&id).await,
            Switch::Resume => bus.resume_subscription(&id).await,
            Switch::Disable => bus.disable_subscription(&id, WhyDisabled::Operator).await,
            Switch::Enable => bus.enable_subscription(&id).await,
        };
        let switched = self.bus.act_on(&caller, switch.deed(), &id, act).await.map_err(status::bus)?;
        Ok(Response::new(self.subscription(&switched)))
    }

    pub(super) async fn replace_secret(
        &self,
        request: Request<v1::RotateSecretRequest>,
    ) -> Result<Response<v1::RotateSecretResponse>, Status> {
        let caller = caller(&request)?;
        let v1::RotateSecretRequest { id, secret, overlap_ms } = request.into_inner();
        let id = named(id)?;
        let given = (!secret.is_empty()).then(|| convert::subscription::secret(&secret)).transpose();
        let given = given.map_err(wrong)?;
        let overlap = convert::millis(overlap_ms).unwrap_or(OVERLAP_DEFAULT);
        let rotate = async |bus: Bus| bus.rotate_secret(&id, given, overlap).await;
        let rotated = self.bus.act_on(&caller, Deed::RotateSecret, &id, rotate).await;
        let (subscription, secret) = self.created(&rotated.map_err(status::bus)?);
        Ok(Response::new(v1::RotateSecretResponse { subscription, secret }))
    }

    pub(super) async fn replay(
        &self,
        request: Request<v1::ReplaySubscriptionRequest>,
    ) -> Result<Response<v1::ReplaySubscriptionResponse>, Status> {
        let caller = caller(&request)?;
        let v1::ReplaySubscriptionRequest { id, from_ms } = request.into_inner();
        let id = named(id)?;
        let replay = async |bus: Bus| bus.replay(&id, Timestamp::from_millis(from_ms)).await;
        let replay = self.bus.act_on(&caller, Deed::Replay, &id, replay).await.map_err(status::bus)?;
        Ok(Response::new(v1::ReplaySubscriptionResponse { replay: replay.to_string() }))
    }

    /// The breaker of a queue or of a subscription, opened or closed before it is shown where that is asked.
    pub(super) async fn breaker(
        &self,
        caller: Caller,
        of: Of,
        set: Option<bool>,
    ) -> Result<Response<v1::Breaker>, Status> {
        let shown = match of {
            Of::Queue(name) => self.breaker_of_queue(&caller, name, set).await,
            Of::Subscription(id) => self.breaker_of_subscription(&caller, id, set).await,
        };
        shown.map(Response::new).map_err(status::bus)
    }

    async fn breaker_of_queue(
        &self,
        caller: &Caller,
        name: String,
        set: Option<bool>,
    ) -> Result<v1::Breaker, BusError> {
        let queue = QueueName::new(name)?;
        if let Some(open) = set {
            caller.act(deed(open), &queue, async |broker| broker.set_breaker(&queue, open).await).await?;
        }
        let view = caller.may(Use::Look, &queue)?.breaker(&queue).await?;
        breaker(queue, view)
    }

    async fn breaker_of_subscription(
        &self,
        caller: &Caller,
        id: String,
        set: Option<bool>,
    ) -> Result<v1::Breaker, BusError> {
        let id = SubscriptionId::new(id)?;
        if let Some(open) = set {
            let set = async |bus: Bus| bus.set_breaker(&id, open).await;
            self.bus.act_on(caller, deed(open), &id, set).await?;
        }
        let view = self.bus.may(caller, Use::Look, &id.queue())?.breaker(&id).await?;
        breaker(id.queue(), view)
    }
}

/// Whose breaker is meant.
pub(super) enum Of {
    Queue(String),
    Subscription(String),
}

macro_rules! of {
    ($($name:ident),+) => {$(
        impl Of {
            pub(super) fn $name(of: Option<v1::$name::Of>) -> Result<Self, Status> {
                match of {
                    Some(v1::$name::Of::Queue(name)) => Ok(Self::Queue(name)),
                    Some(v1::$name::Of::Subscription(id)) => Ok(Self::Subscription(id)),
                    None => Err(wrong(redrive_core::invalid::Invalid::unusable(
                        "of",
                        "must be a queue or a subscription",
                    ))),
                }
            }
        }
    )+};
}

of!(get_breaker_request, trip_breaker_request, reset_breaker_request);

const fn deed(open: bool) -> Deed {
    if open { Deed::TripBreaker } else { Deed::ResetBreaker }
}

fn breaker(queue: QueueName, view: Option<BreakerView>) -> Result<v1::Breaker, BusError> {
    let Some(view) = view else { return Err(BrokerError::NoBreaker(queue).into()) };
    Ok(v1::Breaker {
        queue: queue.as_str().to_owned(),
        state: view.state.as_str().to_owned(),
        open_until_ms: view.open_until.map(Timestamp::as_millis),
        probe: view.probe.map(|probe| probe.to_string()).unwrap_or_default(),
        messages: view.tally.messages,
        failed: view.tally.failed,
    })
}

// What comes in is what comes in over HTTP, and is checked there.

fn said(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

fn filter(filter: std::collections::HashMap<String, v1::HeaderValues>) -> wire::HeaderFilter {
    filter.into_iter().map(|(name, values)| (name, values.values)).collect()
}

const fn breaker_set(breaker: Option<bool>) -> wire::Maybe<wire::Breaker> {
    match breaker {
        None => wire::Maybe::Unset,
        Some(false) => wire::Maybe::Nothing,
        Some(true) => wire::Maybe::Some(wire::Breaker {
            window_ms: None,
            min_messages: None,
            failure_share: None,
            open_for_ms: None,
            probe_timeout_ms: None,
        }),
    }
}

fn asked(request: v1::CreateSubscriptionRequest) -> wire::CreateSubscriptionRequest {
    let settings = request.settings.unwrap_or_default();
    let target = request.target.unwrap_or_default();
    let endpoint = target.endpoint.unwrap_or_default();
    wire::CreateSubscriptionRequest {
        id: said(request.id),
        pattern: settings.pattern,
        filter: filter(settings.filter),
        target: wire::NewTarget {
            kind: target.kind,
            url: said(endpoint.url),
            format: said(endpoint.format),
            disable_after_ms: maybe(endpoint.disable_after_ms),
            secret: said(target.secret),
            queue: said(target.queue),
        },
        retry: settings.retry.map(retry),
        timeout_ms: settings.timeout_ms,
        max_in_flight: settings.max_in_flight,
        breaker: breaker_set(settings.breaker),
        replay_from: request.replay_from_ms.map(Time),
    }
}

fn update(request: v1::UpdateSubscriptionRequest) -> wire::UpdateSubscriptionRequest {
    let settings = request.settings.unwrap_or_default();
    wire::UpdateSubscriptionRequest {
        pattern: settings.pattern,
        filter: filter(settings.filter),
        target: request.endpoint.map(|endpoint| wire::TargetUpdate {
            url: endpoint.url,
            format: said(endpoint.format),
            disable_after_ms: maybe(endpoint.disable_after_ms),
        }),
        retry: settings.retry.map(retry),
        timeout_ms: settings.timeout_ms,
        max_in_flight: settings.max_in_flight,
        breaker: breaker_set(settings.breaker),
    }
}

fn shown(view: wire::SubscriptionView) -> v1::Subscription {
    let target = view.target;
    let endpoint = target.url.map(|url| v1::Endpoint {
        url,
        format: target.format.unwrap_or_default(),
        disable_after_ms: Some(target.disable_after_ms.unwrap_or_default()),
    });
    let filter = view.filter.into_iter().map(|(name, values)| (name, v1::HeaderValues { values }));
    v1::Subscription {
        id: view.id,
        settings: Some(v1::SubscriptionSettings {
            pattern: view.pattern,
            filter: filter.collect(),
            retry: view.retry.map(retry_view),
            timeout_ms: view.timeout_ms,
            max_in_flight: view.max_in_flight,
            breaker: view.breaker.set().map(|breaker| breaker.is_some()),
        }),
        target: Some(v1::Target {
            kind: target.kind,
            endpoint,
            secrets: target.secrets.unwrap_or_default(),
            old_secrets_until_ms: target.old_secrets_until.map(|until| until.0),
            queue: target.queue.unwrap_or_default(),
        }),
        policy: view.settings.map(|settings| retry_view(settings.retry)),
        state: view.state,
        disabled_at_ms: view.disabled.as_ref().map(|disabled| disabled.at.0),
        disabled_why: view.disabled.map(|disabled| disabled.why).unwrap_or_default(),
        failing_since_ms: view.failing_since.map(|since| since.0),
        created_at_ms: view.created_at.0,
        order: view.order,
        version: view.version,
        queue: view.queue,
    }
}
