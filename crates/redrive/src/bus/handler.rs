//! A function of the program to which events are brought, and what it is told of its event.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use redrive_bus::{Handler, HandlerFailure, Incoming};
use redrive_client::{BadBody, Failure, FromMessage, IntoOutcome, Message, Outcome};
use redrive_core::lease::LeaseId;
use tokio::sync::mpsc;

use crate::convert;

/// What a handler knows of its event. Clones are of the same attempt.
#[derive(Debug, Clone)]
pub struct EventContext(Arc<Incoming>);

impl EventContext {
    /// The id of the event, the same at every attempt and for every subscription.
    pub fn id(&self) -> String {
        self.0.event.id.to_string()
    }

    /// What it is about.
    pub fn topic(&self) -> &str {
        &self.0.event.topic
    }

    /// What kind of event it is; its topic, where the publisher did not say.
    pub fn kind(&self) -> &str {
        self.0.event.kind.as_str()
    }

    /// What its body is, such as `application/json`.
    pub fn content_type(&self) -> &str {
        self.0.event.content_type.as_str()
    }

    /// When it was published, by the broker's clock.
    pub fn published_at(&self) -> SystemTime {
        convert::system_time(self.0.event.published_at)
    }

    /// A header that the publisher set.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The headers that the publisher set, beside attributes.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.event.own_headers()
    }

    /// An attribute as CloudEvents knows them, such as `source`, where the publisher set it.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.0.event.attribute(name)
    }

    /// Every attribute that the publisher set, by name.
    pub fn attributes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.event.attributes()
    }

    /// The subscription for which it came.
    pub fn subscription(&self) -> &str {
        self.0.subscription.as_str()
    }

    /// Which attempt this is, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// The fencing token: larger for every later attempt. Who writes somewhere else hands it over, and what is written there
    /// with a larger one is not overwritten.
    pub fn fencing_token(&self) -> u64 {
        self.0.lease_id.map(LeaseId::bits).unwrap_or_default()
    }

    /// When the handler is dropped, unless it is done before; by the broker's clock.
    pub fn deadline(&self) -> SystemTime {
        convert::system_time(self.0.deadline)
    }
}

/// A function, whatever its types are: it begins its work, or says why the body cannot be read.
pub(super) type Function =
    Box<dyn Fn(&Message, EventContext) -> Result<BoxFuture<'static, Outcome>, String> + Send + Sync>;

/// Forgets the types of a function.
pub(super) fn function<F, B, Fut>(function: F) -> Function
where
    F: Fn(B, EventContext) -> Fut + Send + Sync + 'static,
    B: FromMessage + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoOutcome,
{
    Box::new(move |message, context| {
        let body = B::from_message(message)?;
        Ok(function(body, context).map(IntoOutcome::into_outcome).boxed())
    })
}

/// A function as the bus calls it.
pub(super) struct Called {
    pub(super) function: Function,
    pub(super) bad_body: BadBody,
    /// Gone when this is, and so when no call is under way: whoever listens at the other end hears of it.
    pub(super) alive: mpsc::Sender<()>,
}

impl fmt::Debug for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Called").field("bad_body", &self.bad_body).finish_non_exhaustive()
    }
}

impl Handler for Called {
    fn handle(&self, incoming: Incoming) -> BoxFuture<'static, Result<(), HandlerFailure>> {
        let message = convert::event_message(&incoming);
        match (self.function)(&message, EventContext(Arc::new(incoming))) {
            Ok(work) => {
                let alive = self.alive.clone();
                work.map(move |outcome| {
                    drop(alive);
                    outcome.map_err(failure)
                })
                .boxed()
            }
            Err(problem) => ready(Err(unreadable(self.bad_body, &problem))).boxed(),
        }
    }
}

fn unreadable(bad_body: BadBody, problem: &str) -> HandlerFailure {
    let error = format!("the body cannot be read: {problem}");
    match bad_body {
        BadBody::Bury => HandlerFailure::Bury { error },
        BadBody::Retry => HandlerFailure::Retry { error, after: None },
    }
}

/// What the handler of a worker may say, said to the bus.
fn failure(failure: Failure) -> HandlerFailure {
    match failure {
        Failure::Retry(error) => HandlerFailure::Retry { error, after: None },
        Failure::RetryAfter(delay, error) => {
            HandlerFailure::Retry { error, after: Some(convert::delay(delay)) }
        }
        Failure::Release(delay) => HandlerFailure::Release { after: delay.map(convert::delay) },
        Failure::Bury(error) => HandlerFailure::Bury { error },
    }
}
