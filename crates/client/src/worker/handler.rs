//! Handlers are services: whatever makes a [`tower::Service`] of a [`Job`] can be one, under any layers.

use std::convert::Infallible;
use std::fmt;
use std::fmt::Display;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use futures::FutureExt;
use futures::future::{BoxFuture, Either, Map, Ready, ready};
use tower::{Service, ServiceExt};

use super::body::{BadBody, FromMessage};
use super::context::Context;
use super::outcome::{Failure, IntoOutcome, Outcome};

/// One message that is to be worked on; the request of a handler's service.
#[derive(Debug)]
pub struct Job {
    /// What is known of it.
    pub context: Context,
}

/// A function as a service.
pub struct HandlerService<F, B> {
    function: Arc<F>,
    bad_body: BadBody,
    body: PhantomData<fn() -> B>,
}

/// Makes a service of a function of a body and a [`Context`].
pub fn handler_fn<F, B>(function: F, bad_body: BadBody) -> HandlerService<F, B> {
    HandlerService { function: Arc::new(function), bad_body, body: PhantomData }
}

impl<F, B> Clone for HandlerService<F, B> {
    fn clone(&self) -> Self {
        Self { function: Arc::clone(&self.function), bad_body: self.bad_body, body: PhantomData }
    }
}

impl<F, B> fmt::Debug for HandlerService<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerService").field("bad_body", &self.bad_body).finish_non_exhaustive()
    }
}

type Answered = Result<Outcome, Infallible>;

impl<F, B, Fut> Service<Job> for HandlerService<F, B>
where
    F: Fn(B, Context) -> Fut,
    B: FromMessage,
    Fut: Future,
    Fut::Output: IntoOutcome,
{
    type Response = Outcome;
    type Error = Infallible;
    type Future = Either<Ready<Answered>, Map<Fut, fn(Fut::Output) -> Answered>>;

    fn poll_ready(&mut self, _: &mut TaskContext<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, job: Job) -> Self::Future {
        match B::from_message(job.context.message()) {
            Ok(body) => Either::Right((self.function)(body, job.context).map(|said| Ok(said.into_outcome()))),
            Err(problem) => Either::Left(ready(Ok(Err(self.bad_body.failure(&problem))))),
        }
    }
}

/// A handler under its layers, whatever its type is: the one place where that is forgotten.
pub(super) trait Run: Send + Sync {
    fn run(&self, job: Job) -> BoxFuture<'static, Outcome>;
}

impl<S> Run for S
where
    S: Service<Job, Response = Outcome> + Clone + Send + Sync + 'static,
    S::Error: Display,
    S::Future: Send,
{
    fn run(&self, job: Job) -> BoxFuture<'static, Outcome> {
        // A layer fails as a handler does.
        self.clone().oneshot(job).map(|said| said.unwrap_or_else(|error| Err(Failure::retry(error)))).boxed()
    }
}
