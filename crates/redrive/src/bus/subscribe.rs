//! What is said of a subscription, and how it comes into being.
//!
//! Whoever subscribes says the whole of it. Where there is a subscription of that name already, which is what a restart looks
//! like, it is set as was said this time; events that wait for it stay.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;
use redrive_bus::webhook::{SigningSecret, WebhookUrl};
use redrive_bus::{
    Bus, BusError, Created, EndpointSettings, Format, HeaderFilter, NewSubscription, NewTarget,
    SubscriptionChange, SubscriptionSettings, Target,
};
use redrive_client::{BadBody, FromMessage, IntoOutcome, RetrySettings};
use redrive_core::invalid::Invalid;
use redrive_core::limits::IN_FLIGHT_MAX;
use redrive_core::policy::BreakerConfig;
use redrive_core::queue::QueueName;
use redrive_core::subscription::SubscriptionId;
use redrive_core::time::Timestamp;
use tokio::sync::mpsc;

use super::handler::{self, Called, EventContext, Function};
use super::{EventBus, name};
use crate::convert;
use crate::error::Error;
use crate::local::ensure_queue;

/// When deliveries stop because the target is down. What is not set is as for most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BreakerSettings {
    /// How long an outcome counts; a minute, where nothing is said.
    pub window: Option<Duration>,
    /// Fewer events than this in the window never open it; 4, where nothing is said.
    pub min_messages: Option<u32>,
    /// It opens when more than this many of a hundred events failed; 50, where nothing is said.
    pub failure_percent: Option<u32>,
    /// How long nothing is delivered before one event is tried; 30 seconds, where nothing is said.
    pub open_for: Option<Duration>,
}

impl From<BreakerSettings> for BreakerConfig {
    fn from(settings: BreakerSettings) -> Self {
        let most = Self::default();
        let permille = settings.failure_percent.map(|percent| percent.saturating_mul(10));
        Self {
            window: settings.window.map_or(most.window, convert::millis),
            min_messages: settings.min_messages.unwrap_or(most.min_messages),
            failure_share_permille: permille.unwrap_or(most.failure_share_permille),
            open_for: settings.open_for.map_or(most.open_for, convert::millis),
            ..most
        }
    }
}

/// From when on events of the past are brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayFrom {
    /// From this time on.
    At(SystemTime),
    /// From this long ago.
    Ago(Duration),
}

impl ReplayFrom {
    pub(super) fn timestamp(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => convert::timestamp(at),
            Self::Ago(span) => now.minus(convert::millis(span)),
        }
    }
}

impl From<SystemTime> for ReplayFrom {
    fn from(at: SystemTime) -> Self {
        Self::At(at)
    }
}

impl From<Duration> for ReplayFrom {
    fn from(span: Duration) -> Self {
        Self::Ago(span)
    }
}

/// To a function of this program.
pub struct ToHandler {
    function: Function,
    bad_body: BadBody,
}

impl ToHandler {
    pub(super) fn new<F, B, Fut>(function: F) -> Self
    where
        F: Fn(B, EventContext) -> Fut + Send + Sync + 'static,
        B: FromMessage + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoOutcome,
    {
        Self { function: handler::function(function), bad_body: BadBody::default() }
    }
}

impl fmt::Debug for ToHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToHandler").field("bad_body", &self.bad_body).finish_non_exhaustive()
    }
}

/// To an HTTP endpoint.
#[derive(Debug)]
pub struct ToWebhook {
    url: String,
    format: Format,
    secret: Option<String>,
    disable_after: DisableAfter,
}

/// How long an endpoint may do nothing but fail.
#[derive(Debug, Clone, Copy, Default)]
enum DisableAfter {
    /// As for most.
    #[default]
    Default,
    /// This long.
    Time(Duration),
    Never,
}

impl ToWebhook {
    pub(super) fn new(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            format: Format::default(),
            secret: None,
            disable_after: DisableAfter::Default,
        }
    }
}

/// Into a queue.
#[derive(Debug)]
pub struct ToQueue {
    queue: String,
}

impl ToQueue {
    pub(super) fn new(queue: &str) -> Self {
        Self { queue: queue.to_owned() }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::ToHandler {}
    impl Sealed for super::ToWebhook {}
}

/// A target to which the bus itself brings events: it has retries, a time, a limit and a breaker.
pub trait Delivered: sealed::Sealed {}

impl Delivered for ToHandler {}
impl Delivered for ToWebhook {}

/// A subscription that is to be. It is, when this was awaited, or [started](Subscribe::start).
#[derive(Debug)]
#[must_use = "nobody has subscribed before this is awaited"]
pub struct Subscribe<T> {
    bus: EventBus,
    pattern: String,
    name: Option<String>,
    filter: Vec<(String, Vec<String>)>,
    retry: RetrySettings,
    timeout: Option<Duration>,
    max_in_flight: Option<u32>,
    breaker: Option<BreakerSettings>,
    has_breaker: bool,
    replay_from: Option<ReplayFrom>,
    target: T,
}

/// A name, and whether somebody gave it.
struct Named {
    id: SubscriptionId,
    derived: bool,
}

impl<T> Subscribe<T> {
    pub(super) fn new(bus: EventBus, pattern: &str, target: T) -> Self {
        Self {
            bus,
            pattern: pattern.to_owned(),
            name: None,
            filter: Vec::new(),
            retry: RetrySettings::default(),
            timeout: None,
            max_in_flight: None,
            breaker: None,
            has_breaker: true,
            replay_from: None,
            target,
        }
    }

    /// Under this name. Where nothing is said, the name follows from the pattern: `order.*` is `order.any`.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Only events with this header, and one of these values. Where several headers are named, an event needs all of them.
    pub fn filter<V: Into<String>>(
        mut self,
        header: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.filter.push((header.into(), values.into_iter().map(Into::into).collect()));
        self
    }

    /// Brings events of the past as well, as far as their topics [retain](super::TopicBuilder::retain) them: from a time on, or
    /// from this long ago. It counts when the subscription comes into being, and not at a restart.
    pub fn replay_from(self, from: impl Into<ReplayFrom>) -> Self {
        Self { replay_from: Some(from.into()), ..self }
    }

    fn named(&self, more: Option<&str>) -> Result<Named, Error> {
        match &self.name {
            Some(name) => Ok(Named { id: SubscriptionId::new(name)?, derived: false }),
            None => Ok(Named { id: name::derived(&self.pattern.parse()?, more)?, derived: true }),
        }
    }

    fn settings(&self) -> Result<SubscriptionSettings, Error> {
        let in_flight = |max| {
            NonZeroU32::new(max).ok_or_else(|| Invalid::out_of_range("max_in_flight", 1, IN_FLIGHT_MAX))
        };
        Ok(SubscriptionSettings {
            pattern: self.pattern.parse()?,
            filter: HeaderFilter::new(self.filter.clone())?,
            retry: convert::retry(&self.retry)?,
            timeout: self.timeout.map(convert::millis),
            max_in_flight: self.max_in_flight.map(in_flight).transpose()?,
            breaker: match self.breaker {
                _ if !self.has_breaker => Some(None),
                None => None,
                Some(settings) => Some(Some(settings.into())),
            },
        })
    }

    /// Makes the subscription, or sets the one of that name as was said. Answers what came into being.
    async fn ensure(&self, bus: &Bus, named: &Named, target: NewTarget) -> Result<Option<Created>, Error> {
        let settings = self.settings()?;
        let known = match bus.subscription(&named.id).await {
            Ok(known) => known,
            Err(BusError::SubscriptionNotFound(_)) => {
                let replay_from = self.replay_from.map(|from| from.timestamp(bus.broker().now()));
                let new = NewSubscription { id: Some(named.id.clone()), settings, target, replay_from };
                return Ok(Some(bus.create_subscription(new).await?));
            }
            Err(error) => return Err(error.into()),
        };
        let endpoint = self.endpoint_of(&known.target, target, named)?;
        if named.derived && known.settings.pattern != settings.pattern {
            return Err(self.taken(&named.id));
        }
        if known.settings != settings || endpoint.is_some() {
            let change = SubscriptionChange { settings, endpoint, expected: None };
            bus.update_subscription(&named.id, change).await?;
        }
        Ok(None)
    }

    /// What is to be set of the endpoint of a subscription that is there. One that leads elsewhere is another one.
    fn endpoint_of(
        &self,
        known: &Target,
        wanted: NewTarget,
        named: &Named,
    ) -> Result<Option<EndpointSettings>, Error> {
        match (known, wanted) {
            (Target::Handler, NewTarget::Handler) => Ok(None),
            (Target::Queue(known), NewTarget::Queue(wanted)) if *known == wanted => Ok(None),
            (Target::Webhook(known), NewTarget::Webhook(wanted, _))
                if !named.derived || known.url == WebhookUrl::kept(&wanted.url)? =>
            {
                Ok(Some(wanted))
            }
            _ if named.derived => Err(self.taken(&named.id)),
            (known, _) => {
                Err(Error::OtherTarget { name: named.id.as_str().to_owned(), target: known.kind() })
            }
        }
    }

    fn taken(&self, id: &SubscriptionId) -> Error {
        Error::NameTaken { name: id.as_str().to_owned(), pattern: self.pattern.clone() }
    }
}

impl<T: Delivered> Subscribe<T> {
    /// When what failed is tried again. What is not set follows the defaults: three retries after 1, 2 and 4 seconds for a
    /// function, and eleven over two days for a webhook.
    pub fn retry(self, retry: RetrySettings) -> Self {
        Self { retry, ..self }
    }

    /// How long an attempt may take, 30 seconds where nothing is said. A function that takes longer is dropped, and whatever
    /// it would have said is not heard.
    pub fn timeout(self, time: Duration) -> Self {
        Self { timeout: Some(time), ..self }
    }

    /// How many events are under way at a time, 16 where nothing is said.
    pub fn max_in_flight(self, events: u32) -> Self {
        Self { max_in_flight: Some(events), ..self }
    }

    /// When deliveries stop because the target is down.
    pub fn breaker(self, settings: BreakerSettings) -> Self {
        Self { breaker: Some(settings), has_breaker: true, ..self }
    }

    /// Deliveries never stop because the target is down.
    pub fn no_breaker(self) -> Self {
        Self { has_breaker: false, ..self }
    }
}

impl Subscribe<ToHandler> {
    /// What becomes of an event whose body cannot be read; it is buried where nothing is said.
    pub fn bad_body(mut self, bad_body: BadBody) -> Self {
        self.target.bad_body = bad_body;
        self
    }

    /// Subscribes. Events that waited for a handler of that name come now.
    pub async fn start(self) -> Result<Subscription, Error> {
        let slot = self.bus.slot()?;
        let bus = slot.bus().await?;
        let named = self.named(None)?;
        let name = named.id.as_str();
        let Some(claim) = slot.claim(name) else {
            let taken =
                if named.derived { self.taken(&named.id) } else { Error::AlreadyHandled(name.to_owned()) };
            return Err(taken);
        };
        self.ensure(&bus, &named, NewTarget::Handler).await?;
        let (alive, ended) = mpsc::channel(1);
        let ToHandler { function, bad_body } = self.target;
        bus.handle(&named.id, Arc::new(Called { function, bad_body, alive })).await?;
        Ok(Subscription { bus: self.bus, id: named.id, start: claim.keep(), ended })
    }
}

impl IntoFuture for Subscribe<ToHandler> {
    type Output = Result<Subscription, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.start().boxed()
    }
}

/// A function to which events are brought. It goes on when this is dropped.
#[derive(Debug)]
pub struct Subscription {
    bus: EventBus,
    id: SubscriptionId,
    /// The number of its start: another one of its name may be at work by now.
    start: u64,
    /// Closed when the function is gone.
    ended: mpsc::Receiver<()>,
}

impl Subscription {
    /// The name of the subscription.
    pub fn name(&self) -> &str {
        self.id.as_str()
    }

    /// Brings nothing more to the function. The subscription stays, and events wait for whoever subscribes under its name.
    /// What was under way has ended when this returns, or was given back after a few seconds.
    pub async fn stop(mut self) -> Result<(), Error> {
        let slot = self.bus.slot()?;
        if !slot.is_current(self.name(), self.start) {
            return Ok(());
        }
        slot.bus().await?.stop_handling(&self.id).await;
        slot.release(self.name());
        // Where handlers run one after another, the last event may still be under way.
        while self.ended.recv().await.is_some() {}
        Ok(())
    }
}

impl Subscribe<ToWebhook> {
    /// The body of a request is the data as it was published, and the rest of the event is in headers. Where nothing is said,
    /// the whole event is a JSON object, as CloudEvents has it.
    pub fn binary(mut self) -> Self {
        self.target.format = Format::Binary;
        self
    }

    /// Requests are signed with this secret, `whsec_` and base64, from when the subscription comes into being. Where nothing is
    /// said, one is made up.
    pub fn secret(mut self, secret: impl Into<String>) -> Self {
        self.target.secret = Some(secret.into());
        self
    }

    /// For how long the endpoint may do nothing but fail before it is switched off; five days, where nothing is said.
    pub fn disable_after(mut self, time: Duration) -> Self {
        self.target.disable_after = DisableAfter::Time(time);
        self
    }

    /// The endpoint is never switched off for doing nothing but fail.
    pub fn never_disable(mut self) -> Self {
        self.target.disable_after = DisableAfter::Never;
        self
    }

    /// Subscribes.
    pub async fn start(self) -> Result<WebhookSubscription, Error> {
        let bus = self.bus.bus().await?;
        let named = self.named(Some("webhook"))?;
        let ToWebhook { url, format, secret, disable_after } = &self.target;
        let endpoint = EndpointSettings {
            url: url.clone(),
            format: *format,
            disable_after: match disable_after {
                DisableAfter::Default => None,
                DisableAfter::Time(time) => Some(Some(convert::millis(*time))),
                DisableAfter::Never => Some(None),
            },
        };
        let secret = secret.as_deref().map(SigningSecret::parse).transpose()?;
        let created = self.ensure(&bus, &named, NewTarget::Webhook(endpoint, secret)).await?;
        let made = created.and_then(|created| created.secret);
        Ok(WebhookSubscription { id: named.id, secret: made.map(|secret| secret.reveal()) })
    }
}

impl IntoFuture for Subscribe<ToWebhook> {
    type Output = Result<WebhookSubscription, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.start().boxed()
    }
}

/// An endpoint to which events are brought.
#[derive(Clone)]
pub struct WebhookSubscription {
    id: SubscriptionId,
    secret: Option<String>,
}

impl WebhookSubscription {
    /// The name of the subscription.
    pub fn name(&self) -> &str {
        self.id.as_str()
    }

    /// The secret that was made up for it, to be handed to the receiver. It is not told a second time: where the subscription
    /// was there already, or the secret was given, there is none.
    pub fn secret(&self) -> Option<&str> {
        self.secret.as_deref()
    }
}

impl fmt::Debug for WebhookSubscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookSubscription").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Subscribe<ToQueue> {
    /// Subscribes. Answers the name of the subscription.
    pub async fn start(self) -> Result<String, Error> {
        let bus = self.bus.bus().await?;
        let queue = QueueName::new(&self.target.queue)?;
        let named = self.named(Some(queue.as_str()))?;
        ensure_queue(bus.broker(), &queue).await?;
        self.ensure(&bus, &named, NewTarget::Queue(queue)).await?;
        Ok(named.id.as_str().to_owned())
    }
}

impl IntoFuture for Subscribe<ToQueue> {
    type Output = Result<String, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        self.start().boxed()
    }
}
